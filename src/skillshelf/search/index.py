"""Skills to what an index keeps of each, found out by two processes where there is much to do."""

import marshal
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.catalog.document import body
from skillshelf.catalog.load import read_skill
from skillshelf.core import files
from skillshelf.core.atomic_write import locked_within, make_own_folder, remove_folder, replace_file
from skillshelf.core.console import Progress
from skillshelf.core.limits import INDEX_WAIT_SECONDS, INDEXES_KEPT, SETTLED_NS, SKILL_FILE_BYTES
from skillshelf.core.values import CatalogSkill, Entry, Stamp
from skillshelf.errors import FileReadError, LimitExceeded, PathEscape, ResourceNotFound
from skillshelf.search.rank import WEIGHTS, SkillIndex, Weights, analyzer, entry

if TYPE_CHECKING:
    from queue import SimpleQueue
    from typing import TextIO

    import tantivy

    from skillshelf.core.worker_process import WorkerProcess

__all__ = ["IndexedText", "Scan", "answers", "body_of", "folder_for", "gather", "open_index"]


_MANY = 250
"""So many skills take longer than it takes to start a process."""
_PIECE = 16
"""So many go to the other process at once; one piece is what we may have to wait for in the end."""


class IndexedText(NamedTuple):
    """The terms of a skill with their impacts, and the state of its file after it was read."""

    terms: str
    after: Stamp | None


_Done = tuple[range, list[IndexedText]]
"""Some positions, and what is kept of the skills there."""


def gather(skills: Sequence[CatalogSkill], weights: Weights) -> Generator[tuple[int, IndexedText], None, None]:
    """What is kept of each skill, with its position, in the order in which they are done."""
    if len(skills) >= _MANY:
        from skillshelf.core.worker_process import WorkerProcess, can_start_worker

        if can_start_worker():
            yield from _by_two(skills, weights, WorkerProcess("skillshelf.search.index", weights))
            return
    yield from ((position, _gathered(skill, weights)) for position, skill in enumerate(skills))


def _by_two(
    skills: Sequence[CatalogSkill], weights: Weights, partner: "WorkerProcess"
) -> Iterator[tuple[int, IndexedText]]:
    from queue import SimpleQueue
    from threading import Thread

    pieces = deque(range(start, min(start + _PIECE, len(skills))) for start in range(0, len(skills), _PIECE))
    done: SimpleQueue[_Done | None] = SimpleQueue()
    thread = Thread(target=_by_partner, args=(partner, skills, pieces, done.put), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # No thread is to be had: we do it all.
        done.put(None)
    try:
        yield from _from_both_ends(skills, weights, pieces, done)
    finally:
        pieces.clear()
        partner.close()
        if thread.ident is not None:
            thread.join()


def _from_both_ends(
    skills: Sequence[CatalogSkill], weights: Weights, pieces: deque[range], done: "SimpleQueue[_Done | None]"
) -> Iterator[tuple[int, IndexedText]]:
    """What we do ourselves from the front, and in between what the other process did from the back."""
    is_helped = True
    while is_helped or pieces:
        while is_helped and (not pieces or not done.empty()):
            other = done.get()
            is_helped = other is not None
            yield from zip(*other, strict=True) if other else ()
        if piece := _take(pieces.popleft):
            yield from ((position, _gathered(skills[position], weights)) for position in piece)


def _by_partner(
    partner: "WorkerProcess",
    skills: Sequence[CatalogSkill],
    pieces: deque[range],
    hand_over: Callable[[_Done | None], None],
) -> None:
    """Have pieces done from the back until there are none; a piece that is not answered goes back."""
    from skillshelf.core.worker_process import WorkerLost

    piece = _take(pieces.pop)
    try:
        with suppress(WorkerLost):
            while piece is not None:
                # What is in the rest of the frontmatter is not searched.
                hand_over((piece, partner.ask([skills[position]._replace(frontmatter={}) for position in piece])))
                piece = _take(pieces.pop)
    finally:
        # Whatever happened to the other process, or on the way to it, costs its help and nothing else.
        if piece is not None:
            pieces.append(piece)
        hand_over(None)


def _take(end: Callable[[], range]) -> range | None:
    """A piece from one end; None where the other side took the last one."""
    try:
        return end()
    except IndexError:
        return None


def answers(weights: Weights) -> Callable[[Sequence[CatalogSkill]], list[IndexedText]]:
    """What the other process answers: what is kept of each of some skills."""
    return lambda skills: [_gathered(skill, weights) for skill in skills]


def _gathered(skill: CatalogSkill, weights: Weights) -> IndexedText:
    try:
        text = _body(skill)
    except FileReadError:
        # The machine failed. A state that the file does not have makes that the next look reads it again.
        return IndexedText(_entry(skill, "", weights), None)
    return IndexedText(_entry(skill, text, weights), files.stamp_at(skill.real_path))


def _entry(skill: CatalogSkill, text: str, weights: Weights) -> str:
    return entry(skill.name, skill.description, text, analyzer(), weights)


def _body(skill: CatalogSkill) -> str:
    """The text after the frontmatter; empty where the file is gone or refused, as a load would say."""
    try:
        data = read_skill(skill, limit=SKILL_FILE_BYTES).data
    except (IsADirectoryError, ResourceNotFound, PathEscape, LimitExceeded):
        return ""
    return body(data).decode("utf-8", "replace")


def body_of(skill: CatalogSkill) -> str:
    """The text after the frontmatter, as far as it can be read, to show some of it."""
    try:
        return _body(skill)
    except FileReadError:
        return ""


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


class Scan(NamedTuple):
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
    look: Scan | None = None,
    stream: "TextIO | None" = None,
    weights: Weights = WEIGHTS,
) -> SkillIndex:
    """An index of exactly these skills as the look that found them saw them, or as they are on disk now.

    Without a folder, or where nothing can be kept there, it is made in memory.
    """
    work = _Work(skills, look or Scan(time.time_ns(), ()), weights, stream)
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
    make_own_folder(folder)
    if not all(map(files.is_own_folder, (os.path.dirname(folder), folder))):
        raise PermissionError("what is there belongs to somebody else, or is a link")
    kept = _Kept(folder)
    if (found := kept.look()) and work.fits(found):
        return work.asking(found)
    with locked_within(f"{folder}/lock", INDEX_WAIT_SECONDS if found is None else _MOMENT) as held:
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
        remove_folder(self._files)
        make_own_folder(self._files)
        with _failures():
            return _Found(*_new_index(self._files), ())

    def seal(self, work: "_Work") -> None:
        """Write down what the files are now, and of which skills."""
        told = marshal.dumps((self._state(), work.stamps))
        replace_file(self._seal, _sum(told) + told)

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
            remove_folder(f"{parent}/{name}")


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

    def __init__(self, skills: Sequence[CatalogSkill], look: Scan, weights: Weights, stream: "TextIO | None") -> None:
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
        with Progress("Indexing skills", len(missing), self._stream) as bar:
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


def _seen(skills: Sequence[CatalogSkill], look: Scan) -> list[Stamp | None]:
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
