"""The skills of a catalog to an index of their terms, kept up to date with the disk.

An index holds one document a skill: a stamp, which stands for the file as it was read and for the name and
description the catalog gives it, and the skill's terms with their impacts (`impacts.entry`). What has to be
done to an index follows from its stamps alone: those that no skill has any more go, those that are missing
come. The states of the files are those seen by the look at the disk that gave the catalog.

On disk an index lies in a folder of its own with a seal beside it, which says what its files were after the
last commit, and of which skills it is. An index whose files do not fit its seal was damaged, or its writer was
killed: it is made anew.
"""

import marshal
import os
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.core import files, writing
from skillshelf.core.limits import INDEX_WAIT_SECONDS, INDEXES_KEPT, SETTLED_NS
from skillshelf.core.progress import Progress, progress
from skillshelf.core.values import CatalogSkill, Entry, Stamp
from skillshelf.search.gathering import gather
from skillshelf.search.impacts import WEIGHTS, Weights
from skillshelf.search.scoring import SkillIndex

if TYPE_CHECKING:
    from typing import TextIO

    import tantivy

__all__ = ["Look", "folder_for", "open_index"]

FORMAT = 2
"""Changes whenever an index of an earlier version would give other answers."""

_HEAP_BYTES = 64_000_000
_SMALL_HEAP_BYTES = 15_000_000
_FEW = 200
_MOMENT = 0.5
"""Longer than another process takes for a few changes; who has an index need not wait for more, in seconds."""
_LOCKS = ".tantivy"
_SEAL_BYTES = 1 << 26
_SUM_BYTES = 16


class _Damaged(Exception):
    """What lies on disk is no index of ours, or one that cannot be used."""


class Look(NamedTuple):
    """What a look at the disk saw: when it began, and the entries of each root by their paths."""

    at_ns: int
    entries: Sequence[Mapping[str, Entry]]


class _Found(NamedTuple):
    """An index with the stamps of its skills."""

    base: "tantivy.Index"
    schema: "tantivy.Schema"
    stamps: Sequence[int]


# Opening ------------------------------------------------------------------------------------------


def folder_for(cache: str, roots: Sequence[str], profile: str) -> str:
    """Where the index for a set of roots lies: another set, version or profile has another."""
    from tantivy.tantivy import __version__ as library

    key = repr((FORMAT, library, profile, *roots))
    return f"{cache}/search/{blake2b(key.encode('utf-8', 'surrogateescape'), digest_size=12).hexdigest()}"


def open_index(
    skills: Sequence[CatalogSkill],
    folder: str | None,
    *,
    look: Look | None = None,
    stream: "TextIO | None" = None,
    weights: Weights = WEIGHTS,
) -> SkillIndex:
    """An index of exactly these skills as the look that found them saw them, or as they are on disk now.

    Without a folder, or where nothing can be kept there, it is made in memory.
    """
    work = _Work(skills, look or Look(time.time_ns(), ()), weights, stream)
    if folder is not None:
        try:
            return _open_kept(work, folder)
        except (OSError, _Damaged):
            # Read-only, full, held by another for long, or damaged even after it was made anew.
            pass
    try:
        with _failures():
            return work.settle(_Found(*_new_index(None), ()))
    except _Damaged as error:
        raise OSError(f"no index for the search can be made: {error}") from error


def _open_kept(work: "_Work", folder: str) -> SkillIndex:
    """The index in a folder: as it is if nothing changed, or else with what changed."""
    writing.make_own_folder(folder)
    if not all(map(files.is_own_folder, (os.path.dirname(folder), folder))):
        raise PermissionError("what is there belongs to somebody else, or is a link")
    kept = _Kept(folder)
    if (found := kept.look()) and work.fits(found):
        return work.asking(found)
    with writing.locked_within(f"{folder}/lock", INDEX_WAIT_SECONDS if found is None else _MOMENT) as held:
        if not held and found is not None:
            return work.beside(found)
        if not held:
            raise BlockingIOError("another process is busy with this index")
        if found is None or kept.changed():
            found = kept.look()
        if found is None:
            _forget_others(folder)
            found = kept.start()
        if work.fits(found):
            return work.asking(found)
        with _failures():
            settled = work.settle(found)
        kept.seal(work)
        return settled


class _Kept:
    """An index in a folder, with its seal."""

    def __init__(self, folder: str) -> None:
        self._files = f"{folder}/index"
        self._seal = f"{folder}/seal"
        self._looked_at = b""

    def look(self) -> _Found | None:
        """The index as its seal describes it; None for everything else."""
        try:
            self._looked_at = self._state()
            seal = files.read_file(self._seal, limit=_SEAL_BYTES, links="never")
            told = (seal or b"")[_SUM_BYTES:]
            if seal != _sum(told) + told:
                return None
            with _failures():
                state, stamps = marshal.loads(told)
                return _Found(*_new_index(self._files), stamps) if state == self._looked_at else None
        except (OSError, _Damaged):
            return None

    def changed(self) -> bool:
        """Whether the files are others than at the last look."""
        return self._looked_at != self._state()

    def start(self) -> _Found:
        """An empty index in the place of what is there."""
        writing.remove_folder(self._files)
        writing.make_own_folder(self._files)
        with _failures():
            return _Found(*_new_index(self._files), ())

    def seal(self, work: "_Work") -> None:
        """Write down what the files are now, and of which skills."""
        told = marshal.dumps((self._state(), work.stamps))
        writing.replace_file(self._seal, _sum(told) + told)

    def _state(self) -> bytes:
        stamps = files.stamps_in(self._files)
        return repr(sorted((name, *stamp) for name, stamp in stamps.items() if not name.startswith(_LOCKS))).encode()


def _forget_others(folder: str) -> None:
    """Remove the indexes that were not changed for longest, where there are too many beside this one."""
    parent = os.path.dirname(folder)
    # One that has no seal yet is being made, and as old as its folder.
    seals = {name: files.stamp_at(f"{parent}/{name}/seal") or made for name, made in files.stamps_in(parent).items()}
    by_age = sorted(seals, key=lambda name: seals[name][3], reverse=True)
    for name in by_age[INDEXES_KEPT:]:
        if f"{parent}/{name}" != folder:
            writing.remove_folder(f"{parent}/{name}")


def _new_index(folder: str | None) -> "tuple[tantivy.Index, tantivy.Schema]":
    """An index in a folder, new or opened, or in memory."""
    import tantivy

    schema = (
        tantivy.SchemaBuilder()
        .add_integer_field("stamp", stored=False, indexed=True, fast=True)
        .add_text_field("terms", stored=False, tokenizer_name="blanks", index_option="basic")
        .build()
    )
    index = tantivy.Index(schema, folder)
    index.register_tokenizer("blanks", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.config_reader("manual")
    return index, schema


def _sum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_SUM_BYTES).digest()


@contextmanager
def _failures() -> Iterator[None]:
    """Turn every failure of the library into one kind: it raises ValueError, and its panics are no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
            raise
        raise _Damaged(str(error)) from error


# Bringing up to date ------------------------------------------------------------------------------


class _Work:
    """The skills an index shall hold, by the stamps they have now."""

    def __init__(self, skills: Sequence[CatalogSkill], look: Look, weights: Weights, stream: "TextIO | None") -> None:
        self._skills = skills
        self._weights = weights
        self._stream = stream
        self._unread = 0
        self._seen = _seen(skills, look)
        # Two changes within one tick of the clock leave the same state: a file that had just changed is read again.
        latest = look.at_ns - SETTLED_NS
        once = [0 if seen is None or seen[4] <= latest else look.at_ns for seen in self._seen]
        self.stamps = list(map(_stamp, skills, self._seen, once))

    def fits(self, found: _Found) -> bool:
        """Whether an index needs no change."""
        return set(found.stamps) == set(self.stamps)

    def asking(self, *found: _Found) -> SkillIndex:
        """Indexes that fit together, for asking."""
        positions = dict(zip(self.stamps, range(len(self.stamps)), strict=True))
        outdated = [stamp for one in found for stamp in one.stamps if stamp not in positions]
        return SkillIndex(
            [one.base.searcher() for one in found],
            found[0].schema,
            positions,
            coverage=self._weights.coverage,
            outdated=outdated,
            unread=self._unread,
        )

    def beside(self, found: _Found) -> SkillIndex:
        """An index that another process is busy with as it was committed last, and in memory what it does not have."""
        new = _Found(*_new_index(None), ())
        with _failures():
            self._write(new, set(), self._missing(found))
        return self.asking(found, new)

    def settle(self, found: _Found) -> SkillIndex:
        """Take out of an index what is no longer there, put in what is missing, and commit."""
        self._write(found, set(found.stamps) - set(self.stamps), self._missing(found))
        return self.asking(found._replace(stamps=self.stamps))

    def _missing(self, found: _Found) -> list[int]:
        have = set(found.stamps)
        return [position for position, stamp in enumerate(self.stamps) if stamp not in have]

    def _write(self, found: _Found, gone: Set[int], missing: Sequence[int]) -> None:
        writer = found.base.writer(_HEAP_BYTES if len(missing) > _FEW else _SMALL_HEAP_BYTES, 1)
        for stamp in gone:
            writer.delete_documents_by_term("stamp", stamp)
        with progress("Indexing skills", len(missing), self._stream) as bar:
            self._add(writer, missing, bar)
        writer.commit()
        writer.wait_merging_threads()
        found.base.reload()

    def _add(self, writer: "tantivy.IndexWriter", missing: Sequence[int], bar: Progress) -> None:
        from tantivy import Document

        with closing(gather([self._skills[position] for position in missing], self._weights)) as gathered:
            for place, (terms, after) in gathered:
                position = missing[place]
                skill, seen = self._skills[position], self._seen[position]
                self._unread += after is None
                if after != seen:
                    # Written after it was seen: what was read may be half of it.
                    self.stamps[position] = _stamp(skill, seen, time.time_ns())
                document = Document()
                document.add_integer("stamp", self.stamps[position])
                # The token that every document has: it tells how many there are, deleted ones included.
                document.add_text("terms", f"/ {terms}")
                writer.add_document(document)
                bar.advance()


def _seen(skills: Sequence[CatalogSkill], look: Look) -> list[Stamp | None]:
    """The states of the files of some skills; those that the look did not read are looked at now."""
    known = [look.entries[skill.root].get(skill.path) if look.entries else None for skill in skills]
    return [
        entry.stamp if entry else files.stamp_at(skill.real_path) for entry, skill in zip(known, skills, strict=True)
    ]


def _stamp(skill: CatalogSkill, seen: Stamp | None, once: int) -> int:
    """A number that stands for a skill with its file as it is; with `once`, one that no later look will find."""
    # Numbers have the same hash in every process, which costs a tenth of writing them down.
    told = f"{skill.path}\0{skill.name}\0{skill.description}\0{hash(seen) if seen else None}\0{once}"
    digest = blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
