"""Keep a tantivy index of the skills of a catalog up to date, on disk or in memory."""

import marshal
import os
import time
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from skillshelf.catalog.document import body
from skillshelf.catalog.load import read_skill
from skillshelf.config.profile import TermKind
from skillshelf.core import files
from skillshelf.core.blake2 import blake2b
from skillshelf.core.console import Progress
from skillshelf.core.disk_writes import locked_within, make_own_folder, remove_folder, replace_file, write_new
from skillshelf.core.limits import BLOB_BYTES, INDEX_WAIT_SECONDS, INDEXES_KEPT, SETTLED_NS, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CacheEntry, CatalogSkill, Stamp
from skillshelf.errors import FileReadError, LimitExceeded, PathEscape, ResourceNotFound
from skillshelf.search.rank import WEIGHTS, IndexSnapshot, Weights, analyzer, impact_terms

if TYPE_CHECKING:
    from queue import SimpleQueue
    from typing import TextIO

    import tantivy

    from skillshelf.core.worker_process import WorkerProcess

__all__ = [
    "FORMAT",
    "IndexedTerms",
    "ScanStamps",
    "body_of",
    "digest_stamp",
    "folder_for",
    "gather",
    "handle",
    "index_damage",
    "index_stamps",
    "indexed_terms",
    "is_complete_index",
    "open_index",
    "packed_index",
    "place_index",
    "text_index",
]


_MANY = 250
"""From this number of skills on, a second process pays for its start."""
_BATCH = 16
"""Skills sent to the worker at once; at the end we may have to wait for one batch."""


class IndexedTerms(NamedTuple):
    """The terms of a skill with their impacts, and the state of its file after it was read."""

    terms: str
    after: Stamp | None


_DoneBatch = tuple[range, list[IndexedTerms]]
"""Positions of skills, and the indexed text of each."""


def gather(
    skills: Sequence[CatalogSkill], weights: Weights, *, worker_from: int = _MANY
) -> Generator[tuple[int, IndexedTerms], None, None]:
    """Yield the indexed text of each skill with its position, in the order in which they are done.

    From `worker_from` skills on, a second process takes a share.
    """
    if len(skills) >= worker_from:
        from skillshelf.core.worker_process import WorkerProcess, can_start_worker

        if can_start_worker():
            yield from _gather_with_worker(skills, weights, WorkerProcess("skillshelf.search.index", weights))
            return
    yield from ((position, _indexed_text(skill, weights)) for position, skill in enumerate(skills))


def _gather_with_worker(
    skills: Sequence[CatalogSkill], weights: Weights, worker: "WorkerProcess"
) -> Iterator[tuple[int, IndexedTerms]]:
    from queue import SimpleQueue
    from threading import Thread

    batches = deque(range(start, min(start + _BATCH, len(skills))) for start in range(0, len(skills), _BATCH))
    done: SimpleQueue[_DoneBatch | None] = SimpleQueue()
    thread = Thread(target=_feed_worker, args=(worker, skills, batches, done.put), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # No thread could be started: this process does everything.
        done.put(None)
    try:
        yield from _from_both_ends(skills, weights, batches, done)
    finally:
        batches.clear()
        worker.close()
        if thread.ident is not None:
            thread.join()


def _from_both_ends(
    skills: Sequence[CatalogSkill], weights: Weights, batches: deque[range], done: "SimpleQueue[_DoneBatch | None]"
) -> Iterator[tuple[int, IndexedTerms]]:
    """Yield what this process does from the front and, in between, what the worker did from the back."""
    has_worker = True
    while has_worker or batches:
        while has_worker and (not batches or not done.empty()):
            other = done.get()
            has_worker = other is not None
            yield from zip(*other, strict=True) if other else ()
        if batch := _take(batches.popleft):
            yield from ((position, _indexed_text(skills[position], weights)) for position in batch)


def _feed_worker(
    worker: "WorkerProcess",
    skills: Sequence[CatalogSkill],
    batches: deque[range],
    deliver: Callable[[_DoneBatch | None], None],
) -> None:
    """Send batches from the back to the worker until there are none; an unanswered batch goes back."""
    from skillshelf.core.worker_process import WorkerLost

    batch = _take(batches.pop)
    try:
        with suppress(WorkerLost):
            while batch is not None:
                # The rest of the frontmatter is not searched.
                deliver((batch, worker.ask([skills[position]._replace(frontmatter={}) for position in batch])))
                batch = _take(batches.pop)
    finally:
        # Whatever happened to the worker costs its help and nothing else.
        if batch is not None:
            batches.append(batch)
        deliver(None)


def _take(end: Callable[[], range]) -> range | None:
    """Return a batch from one end; None if the other side took the last one."""
    try:
        return end()
    except IndexError:
        return None


def handle(weights: Weights) -> Callable[[Sequence[CatalogSkill]], list[IndexedTerms]]:
    """Return the function that a worker process runs: skills in, indexed texts out."""
    return lambda skills: [_indexed_text(skill, weights) for skill in skills]


def _indexed_text(skill: CatalogSkill, weights: Weights) -> IndexedTerms:
    try:
        text = _body(skill)
        is_read = True
    except FileReadError:
        text, is_read = "", False
    terms = impact_terms(skill.name, skill.description, text, analyzer(weights.terms), weights)
    # After a failed read, a stamp that the file does not have makes the next scan read it again.
    return IndexedTerms(terms, files.stamp_at(skill.real_path) if is_read else None)


def indexed_terms(skill: CatalogSkill) -> str | None:
    """Return the terms of a skill as `open_index` takes them; None if its file cannot be read."""
    terms, after = _indexed_text(skill, WEIGHTS)
    return terms if after is not None else None


def _body(skill: CatalogSkill) -> str:
    """Return the text after the frontmatter; empty if the file is gone or a load would refuse it."""
    if skill.scope == "remote":
        # Nothing is fetched before a load; such a skill is found by its name and description.
        return ""
    try:
        data = read_skill(skill, limit=SKILL_FILE_BYTES).data
    except (IsADirectoryError, ResourceNotFound, PathEscape, LimitExceeded):
        return ""
    return body(data).decode("utf-8", "replace")


def body_of(skill: CatalogSkill) -> str:
    """Return the text after the frontmatter, to show some of it; empty if it cannot be read or is not handed out."""
    if skill.hidden == "changed":
        return ""
    try:
        return _body(skill)
    except FileReadError:
        return ""


FORMAT = 4
"""The format of an index. Raise it whenever an existing index would give other results."""

_HEAP_BYTES = 64_000_000
_SMALL_HEAP_BYTES = 15_000_000
_FEW = 200
_BRIEF_WAIT_SECONDS = 0.5
"""Longer than another process takes for a few changes; with an index at hand there is no need to wait longer."""
_LOCKS = ".tantivy"
_SEAL_BYTES = 1 << 26
_PACKED_FILES = 4096
_CHECKSUM_BYTES = 16


Report = Callable[[int, int], None]
"""Takes the number of skills to be indexed, and of those that are."""


class _Damaged(Exception):
    """The files on disk are not a usable search index."""


class ScanStamps(NamedTuple):
    """The start time of a scan of the disk, the cache entries of each root by path, and the mark of its catalog.

    An index that was sealed with the same mark needs no look at the stamp of any skill.
    """

    at_ns: int
    entries: Sequence[Mapping[str, CacheEntry]]
    generation: bytes | None = None


class _OpenIndex(NamedTuple):
    """An open index with the stamps of its skills, and the mark of the catalog that has them in this order."""

    base: "tantivy.Index"
    schema: "tantivy.Schema"
    stamps: Sequence[int]
    generation: bytes | None = None


# Opening ------------------------------------------------------------------------------------------


def folder_for(cache: str, roots: Sequence[str], profile: str, terms: TermKind = "extended") -> str:
    """Return the folder of the index for a set of roots; each set, version, profile and kind of terms has its own."""
    from tantivy.tantivy import __version__ as library

    key = repr((FORMAT, library, profile, terms, *roots))
    return f"{cache}/search/{blake2b(key.encode('utf-8', 'surrogateescape'), digest_size=12).hexdigest()}"


def open_index(
    skills: Sequence[CatalogSkill],
    folder: str | None,
    *,
    scan: ScanStamps | None = None,
    stream: "TextIO | None" = None,
    report: Report | None = None,
    weights: Weights = WEIGHTS,
    digests: Mapping[str, str] | None = None,
    stamps: Sequence[int] | None = None,
    known: dict[int, str] | None = None,
    readonly: bool = False,
) -> IndexSnapshot:
    """Return an index of exactly these skills, as a scan saw them or as they are on disk now.

    Without a folder, or if nothing can be stored there, it is built in memory. `report` is told of each skill that is
    added, of how many. `digests` are those of skills, by path, whose files never change: they are known by these and
    not by their files, so the index is the same on every machine; `stamps` are what `digest_stamp` returns for all
    skills, if they are known already, and `known` the terms of some by their stamps, which are not read again; those
    that are read are added to it. A `readonly` folder is left as it is, and what its index lacks is added in memory.
    """
    looked = scan or ScanStamps(time.time_ns(), ())
    update = _IndexUpdate(skills, looked, weights, stream, report, digests or {}, known)
    if stamps is not None:
        update.stamps = list(stamps)
    if folder is not None:
        try:
            if not readonly:
                return _open_stored(update, folder)
            if (found := _IndexFolder(folder).current()) is not None:
                return update.reader(found) if update.fits(found) else update.overlay(found)
        except (OSError, _Damaged):
            # Read-only, full, locked by another process for long, or damaged even after it was rebuilt.
            pass
    try:
        with _library_errors():
            return update.apply(_OpenIndex(*_new_index(None), ()))
    except _Damaged as error:
        raise OSError(f"cannot build a search index: {error}") from error


def text_index(skills: Sequence[CatalogSkill]) -> IndexSnapshot:
    """Return an index in memory of names and descriptions alone, as they are given."""
    # A skill of a live source is indexed without its text, which is fetched at a load.
    return open_index([skill._replace(scope="remote") for skill in skills], None)


def _open_stored(update: "_IndexUpdate", folder: str) -> IndexSnapshot:
    """Return the index in a folder, after applying what changed."""
    make_own_folder(folder)
    if not all(map(files.is_own_folder, (os.path.dirname(folder), folder))):
        raise PermissionError("the folder belongs to another user, or is a link")
    stored = _IndexFolder(folder)
    if (found := stored.current()) and update.fits(found):
        if update.generation not in (None, found.generation):
            # Nothing to index, but the next search need not look at each skill to know that.
            with locked_within(f"{folder}/lock", 0.0) as held:
                if held and not stored.changed():
                    stored.seal(update)
        return update.reader(found)
    with locked_within(f"{folder}/lock", INDEX_WAIT_SECONDS if found is None else _BRIEF_WAIT_SECONDS) as held:
        if not held and found is not None:
            return update.overlay(found)
        if not held:
            raise BlockingIOError("another process is updating this index")
        if found is None or stored.changed():
            found = stored.current()
        if found is None:
            _remove_oldest(folder)
            found = stored.create()
        elif update.fits(found):
            return update.reader(found)
        with _library_errors():
            index = update.apply(found)
        stored.seal(update)
        return index


class _IndexFolder:
    """An index in a folder, with a seal: a checksummed file that says which state of the index is complete."""

    def __init__(self, folder: str) -> None:
        self._files = f"{folder}/index"
        self._seal = f"{folder}/seal"
        self._opened_state = b""

    def current(self) -> _OpenIndex | None:
        """Return the index if its files match its seal, or else None."""
        try:
            if (sealed := self._sealed()) is None:
                return None
            with _library_errors():
                return _OpenIndex(*_new_index(self._files), *sealed)
        except (OSError, _Damaged):
            return None

    def is_sealed(self) -> bool:
        """Return whether the files match their seal, without opening the index."""
        try:
            return self._sealed() is not None
        except (OSError, _Damaged):
            return False

    def _sealed(self) -> tuple[Sequence[int], bytes | None] | None:
        """Return the stamps and the mark in the seal; None if the files do not match it."""
        self._opened_state = self._state()
        seal = files.read_file(self._seal, limit=_SEAL_BYTES, links="never")
        content = (seal or b"")[_CHECKSUM_BYTES:]
        if seal != _checksum(content) + content:
            return None
        with _library_errors():
            state, stamps, generation = marshal.loads(content)
        return (stamps, generation) if state == self._opened_state else None

    def changed(self) -> bool:
        """Return whether the files changed since the index was opened."""
        return self._opened_state != self._state()

    def create(self) -> _OpenIndex:
        """Replace whatever is there by an empty index."""
        remove_folder(self._files)
        make_own_folder(self._files)
        with _library_errors():
            return _OpenIndex(*_new_index(self._files), ())

    def seal(self, update: "_IndexUpdate") -> None:
        """Write the state of the files and the stamps of their skills."""
        self.seal_stamps(update.stamps, update.generation)

    def seal_stamps(self, stamps: Sequence[int], generation: bytes | None) -> None:
        """Write the state of the files and these stamps."""
        content = marshal.dumps((self._state(), list(stamps), generation))
        replace_file(self._seal, _checksum(content) + content)

    def _state(self) -> bytes:
        stamps = files.stamps_in(self._files)
        return repr(sorted((name, *stamp) for name, stamp in stamps.items() if not name.startswith(_LOCKS))).encode()


_STAMPS_FILE = "stamps"


def packed_index(folder: str) -> dict[str, bytes] | None:
    """Return the files of an index, and the stamps of its skills, to be placed on other machines; None without one."""
    found = _IndexFolder(folder).current()
    if found is None:
        return None
    with files.Folder(f"{folder}/index") as opened:
        inner = opened.contents(most=_PACKED_FILES, limit=BLOB_BYTES)
    packed = {f"index/{path}": one.data for path, one in inner.files.items() if not path.startswith(_LOCKS)}
    return {**packed, _STAMPS_FILE: array("q", found.stamps).tobytes()} if inner.complete else None


def place_index(folder: str, contents: Mapping[str, bytes]) -> None:
    """Write an index that was packed elsewhere into a folder, and seal it."""
    stamps = array("q")
    try:
        stamps.frombytes(contents[_STAMPS_FILE])
    except (KeyError, ValueError):
        raise OSError("not a packed index") from None
    remove_folder(folder)
    make_own_folder(f"{folder}/index")
    for path, data in contents.items():
        if path.startswith("index/") and path.count("/") == 1:
            write_new(f"{folder}/{path}", data)
    stored = _IndexFolder(folder)
    stored.seal_stamps(list(stamps), None)


def index_stamps(folder: str) -> frozenset[int]:
    """Return the stamps of the skills that the index in a folder has."""
    found = _IndexFolder(folder).current()
    return frozenset(found.stamps) if found is not None else frozenset()


def is_complete_index(folder: str) -> bool:
    """Return whether a folder has an index whose files match their seal."""
    return _IndexFolder(folder).is_sealed()


def index_damage(folder: str) -> str | None:
    """Return what is wrong with the index in a folder, or None if it is complete or another process writes it."""
    if not files.is_own_folder(folder):
        return "it is not a folder of yours that only you can write, so it is not used"
    try:
        with locked_within(f"{folder}/lock", 0.0) as held:
            return None if not held or _IndexFolder(folder).is_sealed() else "it is damaged or was never completed"
    except OSError as error:
        return f"it cannot be read: {(error.strerror or str(error)).lower()}"


def _remove_oldest(folder: str) -> None:
    """Remove the indexes with the oldest changes if there are too many besides this one."""
    parent = os.path.dirname(folder)
    # An index without a seal is being built; its folder gives its age.
    seals = {name: files.stamp_at(f"{parent}/{name}/seal") or built for name, built in files.stamps_in(parent).items()}
    by_age = sorted(seals, key=lambda name: seals[name][3], reverse=True)
    for name in by_age[INDEXES_KEPT:]:
        if f"{parent}/{name}" != folder:
            remove_folder(f"{parent}/{name}")


def _new_index(folder: str | None) -> "tuple[tantivy.Index, tantivy.Schema]":
    """Open or create an index in a folder, or create one in memory."""
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


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_CHECKSUM_BYTES).digest()


@contextmanager
def _library_errors() -> Iterator[None]:
    """Raise _Damaged for every failure of the library: it raises ValueError, and its panics are not Exceptions."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
            raise
        raise _Damaged(str(error)) from error


# Updating -----------------------------------------------------------------------------------------


class _IndexUpdate:
    """The skills that an index must contain, by their current stamps."""

    def __init__(
        self,
        skills: Sequence[CatalogSkill],
        scan: ScanStamps,
        weights: Weights,
        stream: "TextIO | None",
        report: Report | None,
        digests: Mapping[str, str],
        known: dict[int, str] | None,
    ) -> None:
        self._skills = skills
        self._digests = digests
        self._known = known
        self._weights = weights
        self._stream = stream
        self._report = report
        self._unread: set[int] = set()
        self._scan = scan
        self.generation = scan.generation

    @cached_property
    def _seen(self) -> list[Stamp | None]:
        """The stamps of the files of the skills."""
        return _seen_stamps(self._skills, self._scan, self._digests)

    @cached_property
    def stamps(self) -> list[int]:
        """A number for each skill and the state of its file."""
        # Two changes within one tick of the clock leave the same stamp: a file that had just changed is read again.
        latest = self._scan.at_ns - SETTLED_NS
        once = [0 if seen is None or seen[4] <= latest else self._scan.at_ns for seen in self._seen]
        if any(once):
            self.generation = None
        found = list(map(_stamp, self._skills, self._seen, once)) if len(self._digests) < len(self._skills) else []
        if not self._digests:
            return found
        return [
            digest_stamp(skill, self._digests[skill.path]) if skill.path in self._digests else found[position]
            for position, skill in enumerate(self._skills)
        ]

    def fits(self, found: _OpenIndex) -> bool:
        """Return whether an index needs no change."""
        is_same = self.generation is not None and found.generation == self.generation
        if is_same and len(found.stamps) == len(self._skills):
            # The same catalog of the same files: its stamps need not be computed.
            self.stamps = list(found.stamps)
            return True
        return set(found.stamps) == set(self.stamps)

    def reader(self, *found: _OpenIndex) -> IndexSnapshot:
        """Return indexes that together contain all skills, ready to be searched."""
        positions = dict(zip(self.stamps, range(len(self.stamps)), strict=True))
        outdated = [stamp for one in found for stamp in one.stamps if stamp not in positions]
        return IndexSnapshot(
            [one.base.searcher() for one in found],
            found[0].schema,
            positions,
            coverage=self._weights.coverage,
            terms=self._weights.terms,
            outdated=outdated,
            unread=self._unread,
        )

    def overlay(self, found: _OpenIndex) -> IndexSnapshot:
        """Return the last commit of an index that another process is updating, plus what it lacks in memory."""
        new = _OpenIndex(*_new_index(None), ())
        with _library_errors():
            self._write(new, set(), self._missing(found))
        return self.reader(found, new)

    def apply(self, found: _OpenIndex) -> IndexSnapshot:
        """Delete from an index what is gone, add what is missing, and commit."""
        self._write(found, set(found.stamps) - set(self.stamps), self._missing(found))
        return self.reader(found._replace(stamps=self.stamps))

    def _missing(self, found: _OpenIndex) -> list[int]:
        have = set(found.stamps)
        return [position for position, stamp in enumerate(self.stamps) if stamp not in have]

    def _write(self, found: _OpenIndex, gone: Set[int], missing: Sequence[int]) -> None:
        writer = found.base.writer(_HEAP_BYTES if len(missing) > _FEW else _SMALL_HEAP_BYTES, 1)
        for stamp in gone:
            writer.delete_documents_by_term("stamp", stamp)
        report = partial(self._report, len(missing)) if self._report else None
        with Progress("Indexing skills", len(missing), self._stream, report) as bar:
            self._add(writer, missing, bar)
        writer.commit()
        writer.wait_merging_threads()
        found.base.reload()

    def _add(self, writer: "tantivy.IndexWriter", missing: Sequence[int], bar: Progress) -> None:
        unknown: list[int] = []
        for position in missing:
            if self._known is not None and (found := self._known.get(self.stamps[position])) is not None:
                self._add_terms(writer, position, found)
                bar.advance()
            else:
                unknown.append(position)
        with closing(gather([self._skills[position] for position in unknown], self._weights)) as gathered:
            for number, (terms, after) in gathered:
                position = unknown[number]
                skill, seen = self._skills[position], self._seen[position]
                if after != seen and skill.path not in self._digests:
                    # The file was written after the scan: what was read may be half of it.
                    self.generation = None
                    self.stamps[position] = _stamp(skill, seen, time.time_ns())
                if after is None:
                    self._unread.add(self.stamps[position])
                if self._known is not None:
                    self._known.setdefault(self.stamps[position], terms)
                self._add_terms(writer, position, terms)
                bar.advance()

    def _add_terms(self, writer: "tantivy.IndexWriter", position: int, terms: str) -> None:
        from tantivy import Document

        document = Document()
        document.add_integer("stamp", self.stamps[position])
        # The token "/" is in every document; it counts them, deleted ones included.
        document.add_text("terms", f"/ {terms}")
        writer.add_document(document)


def _seen_stamps(skills: Sequence[CatalogSkill], scan: ScanStamps, digests: Mapping[str, str]) -> list[Stamp | None]:
    """Return the stamps of the files of some skills; those that the scan did not read are taken now."""
    known = [scan.entries[skill.root].get(skill.path) if scan.entries else None for skill in skills]
    return [
        entry.stamp if entry else None if skill.path in digests else files.stamp_at(skill.real_path)
        for entry, skill in zip(known, skills, strict=True)
    ]


def digest_stamp(skill: CatalogSkill, digest: str) -> int:
    """Return a number for a skill whose files have a digest; it is the same on every machine."""
    content = f"{skill.name}\0{skill.description}\0{digest}"
    return int.from_bytes(_checksum(content.encode("utf-8", "surrogatepass"))[:8], "big", signed=True)


def _stamp(skill: CatalogSkill, seen: Stamp | None, once: int) -> int:
    """Return a number for a skill and the state of its file; with `once`, one that no later scan will match."""
    # Tuples of numbers have the same hash in every process, which takes a tenth of the time of formatting them.
    content = f"{skill.path}\0{skill.name}\0{skill.description}\0{hash(seen) if seen else None}\0{once}"
    digest = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
