"""The skills of a catalog to an index of their terms, kept up to date with the disk.

An index holds one document a skill: a stamp, which stands for the file as it was read and for the name and
description the catalog gives it, and the skill's terms with their impacts (`impacts.entry`). What has to be
done to an index follows from its stamps alone: those that no skill has any more go, those that are missing
come. The states of the files are those seen by the look at the disk that gave the catalog.

Scores are sums of whole numbers, so that they do not depend on the order or the segments in which the documents
came, and frequencies are counted among the documents that are there, not among those deleted.

On disk an index lies in a folder of its own with a seal beside it, which says what its files were after the
last commit, and of which skills it is. An index whose files do not fit its seal was damaged, or its writer was
killed: it is made anew.
"""

import marshal
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from skillshelf import files, writing
from skillshelf.gathering import gather
from skillshelf.impacts import PER_UNIT, WEIGHTS, Weights
from skillshelf.limits import INDEX_WAIT_SECONDS, INDEXES_KEPT, SETTLED_NS
from skillshelf.progress import Progress, progress
from skillshelf.terms import is_single
from skillshelf.values import CatalogSkill, Entry, Stamp

if TYPE_CHECKING:
    from typing import TextIO

    import tantivy

__all__ = ["Look", "SkillIndex", "folder_for", "open_index"]

FORMAT = 2
"""Changes whenever an index of an earlier version would give other answers."""

_UNIT = 256
"""Parts of a point in which scores are counted; sums stay whole numbers that 32-bit floats hold exactly."""

_HEAP_BYTES = 64_000_000
_SMALL_HEAP_BYTES = 15_000_000
_FEW = 200
_REMEMBERED = 50_000
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


class _Postings(NamedTuple):
    """A term's tokens with their steps, and in how many skills it is."""

    steps: tuple[tuple[str, int], ...]
    skills: int


_NOWHERE = _Postings((), 0)


class SkillIndex:
    """One state of an index, for asking; what others do to the files does not change it."""

    def __init__(
        self,
        searcher: "tantivy.Searcher",
        schema: "tantivy.Schema",
        positions: Mapping[int, int],
        coverage: float,
    ) -> None:
        from tantivy import Query

        self.coverage = coverage
        self._term_query = Query.term_query
        self._searcher = searcher
        self._schema = schema
        self._positions = positions
        self._whole = searcher.doc_freq("terms", "/") == searcher.num_docs
        self._known: dict[str, _Postings] = {}

    def weight(self, term: str) -> float:
        """How rare a term is among the skills; 0 if none has it."""
        skills = self._postings(term).skills
        return math.log(1 + (len(self._positions) - skills + 0.5) / (skills + 0.5)) if skills else 0.0

    def skills_with(self, term: str) -> int:
        """In how many skills a term is."""
        return self._postings(term).skills

    def best(self, asked: Mapping[str, float], most: int) -> list[tuple[int, int]]:
        """The scores and positions of the skills that fit weighted terms best, in no order where scores are equal."""
        from tantivy import Occur, Query

        should, with_score = Occur.Should, Query.const_score_query
        clauses = [
            (should, with_score(self._token(token), float(round(_UNIT * weight * step / PER_UNIT))))
            for term, weight in asked.items()
            for token, step in self._postings(term).steps
        ]
        if not clauses:
            return []
        found = self._searcher.search(
            Query.boolean_query(clauses), limit=min(most, len(self._positions)), count=False
        ).hits
        stamps = self._searcher.fast_field_values("stamp", [address for _, address in found])
        return [(int(score), self._positions[int(stamp or 0)]) for (score, _), stamp in zip(found, stamps, strict=True)]

    def _token(self, token: str) -> "tantivy.Query":
        return self._term_query(self._schema, "terms", token, index_option="basic")

    def _postings(self, term: str) -> _Postings:
        known = self._known.get(term)
        if known is None:
            # A single character of a run is at the beginning of every pair it stands in, or at the end of the run.
            single = is_single(term)
            found = self._searcher.terms_with_prefix("terms", term if single else f"{term}/")
            if not found:
                return _NOWHERE
            counted = self._whole and not single
            skills = sum(skills for _, skills in found) if counted else self._count([token for token, _ in found])
            steps = tuple((token, int(token.rpartition("/")[2])) for token, _ in found)
            known = _Postings(steps, skills)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[term] = known
        return known

    def _count(self, tokens: Sequence[str]) -> int:
        """How many skills have one of the tokens: an index counts deleted documents until it gets rid of them."""
        from tantivy import Occur, Query

        if not tokens:
            return 0
        query = Query.boolean_query([(Occur.Should, self._token(token)) for token in tokens])
        return int(self._searcher.search(query, limit=1, count=True).count)  # type: ignore[attr-defined]


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
    with _failures():
        return work.settle(_Found(*_new_index(None), ()))


def _open_kept(work: "_Work", folder: str) -> SkillIndex:
    """The index in a folder: as it is if nothing changed, or else with what changed."""
    writing.make_own_folder(folder)
    kept = _Kept(folder)
    if (found := kept.look()) and work.fits(found):
        return work.asking(found)
    with writing.locked_within(f"{folder}/lock", INDEX_WAIT_SECONDS) as held:
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
    seals = {name: files.stamp_at(f"{parent}/{name}/seal") for name in files.stamps_in(parent)}
    by_age = sorted(seals, key=lambda name: (seals[name] or (0,) * 5)[3], reverse=True)
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
        self._seen = _seen(skills, look)
        # Two changes within one tick of the clock leave the same state: a file that had just changed is read again.
        latest = look.at_ns - SETTLED_NS
        once = [0 if seen is None or seen[4] <= latest else look.at_ns for seen in self._seen]
        self.stamps = list(map(_stamp, skills, self._seen, once))

    def fits(self, found: _Found) -> bool:
        """Whether an index needs no change."""
        return set(found.stamps) == set(self.stamps)

    def asking(self, found: _Found) -> SkillIndex:
        """An index that fits, for asking."""
        positions = dict(zip(self.stamps, range(len(self.stamps)), strict=True))
        return SkillIndex(found.base.searcher(), found.schema, positions, self._weights.coverage)

    def settle(self, found: _Found) -> SkillIndex:
        """Take out of an index what is no longer there, put in what is missing, and commit."""
        have, wanted = set(found.stamps), set(self.stamps)
        missing = [position for position, stamp in enumerate(self.stamps) if stamp not in have]
        writer = found.base.writer(_HEAP_BYTES if len(missing) > _FEW else _SMALL_HEAP_BYTES, 1)
        for stamp in have - wanted:
            writer.delete_documents_by_term("stamp", stamp)
        with progress("Indexing skills", len(missing), self._stream) as bar:
            self._add(writer, missing, bar)
        writer.commit()
        writer.wait_merging_threads()
        found.base.reload()
        return self.asking(found)

    def _add(self, writer: "tantivy.IndexWriter", missing: Sequence[int], bar: Progress) -> None:
        from tantivy import Document

        with closing(gather([self._skills[position] for position in missing], self._weights)) as gathered:
            for place, (terms, after) in gathered:
                position = missing[place]
                skill, seen = self._skills[position], self._seen[position]
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
