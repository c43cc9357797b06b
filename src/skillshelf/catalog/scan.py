"""Scan the roots of a shelf: take the catalog of an unchanged disk as it is, or discover and build it anew."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from skillshelf.catalog.cache import Cache
from skillshelf.catalog.disk_state import DiskState, Entries, ScanRecord
from skillshelf.catalog.packed import PackedSkills, open_packed, pack_catalog
from skillshelf.catalog.packed_file import PackedFile, SectionsInMemory, place_of, read_latest, write_sections
from skillshelf.catalog.search_roots import Roots
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.limits import CACHE_FROM
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CacheEntry, Catalog
from skillshelf.errors import FileReadError

if TYPE_CHECKING:
    from skillshelf.catalog.discovery import Found

__all__ = ["FinishedScan", "Scanner"]

Watch = Callable[[Iterator["Found"]], Iterator["Found"]]
"""Pass on what is found, and show progress."""


class FinishedScan(NamedTuple):
    """A scan with its result: when it began, the cache entries of each root, and the state of the disk it saw.

    `state` is None if the disk may change without changing a stamp. `reader` is what decided which files could be read,
    `generation` the mark of a packed catalog.
    """

    catalog: Catalog
    roots: Roots
    at_ns: int
    entries: Sequence[dict[str, CacheEntry]]
    state: DiskState | None
    reader: tuple[object, ...]
    generation: bytes | None = None


class Scanner:
    """The scans of one shelf. What they found is kept in a folder, or without one only in memory."""

    def __init__(self, folder: str | None, profile: Profile, settings: Settings) -> None:
        self._inputs = _ScanInputs(folder, profile, settings, Cache(folder, profile))
        self.last: FinishedScan | None = None

    def scan(self, roots: Roots, *, watch: Watch, account: bool = False) -> Catalog:
        """Return the catalog of the roots; the same object if nothing changed since the last scan."""
        if account:
            return _scan(self._inputs, roots, watch, account=True).catalog
        last = self.last
        if last is None or (last.roots, last.reader) != (roots, files.reader()) or not _is_current(last.state):
            last = self.last = _unpacked(self._inputs, roots) or _scan(self._inputs, roots, watch)
        return last.catalog


class _ScanInputs(NamedTuple):
    """The inputs that all scans of a shelf share.

    A packed catalog knows them, to scan again if its file is damaged: they must not know any catalog, or neither would
    go away before the next search for garbage.
    """

    folder: str | None
    profile: Profile
    settings: Settings
    cache: Cache

    @property
    def decide_alone(self) -> bool:
        """Whether no rule looks at other files: one that names a place follows links, one that names a tree reads."""
        denied = [rule for file in self.settings.files for rule in file.deny]
        if self.settings.system.looks_at_files:
            return False
        return not any(rule.path or rule.tree for rule in (*self.settings.deny, *denied))

    def key(self, roots: Roots) -> str:
        """Return all that decides a catalog besides the files below the roots."""
        return repr((self.cache.reading, roots, self.settings))


def _is_current(state: DiskState | None) -> bool:
    return state is not None and state.is_current()


def _scan(inputs: _ScanInputs, roots: Roots, watch: Watch, *, account: bool = False) -> FinishedScan:
    """Discover and build; files that have not changed since an earlier scan are not read."""
    # Imported here: an unchanged disk needs neither.
    from skillshelf.catalog.build import build
    from skillshelf.catalog.discovery import discover

    _, profile, settings, cache = inputs
    now = time.time_ns()
    record = ScanRecord(now)
    entries_of_roots: list[dict[str, CacheEntry]] = [{} for _ in roots.roots]
    repository = roots.repository
    found = discover(roots.roots, profile, repository=repository, account=account, cached=cache.entries, record=record)
    catalog = build(watch(found), roots, profile, settings, entries_of_roots)
    for root, entries in zip(roots.roots, entries_of_roots, strict=True):
        cache.keep(root, entries, scanned_at_ns=now)
    real = [root.real_path for root in roots.roots if root.real_path is not None]
    state = record.state(real) if not account and inputs.decide_alone else None
    done = FinishedScan(catalog, roots, now, entries_of_roots, state, files.reader())
    return done if account else done._replace(generation=_pack(inputs, done, record.roots))


def _pack(inputs: _ScanInputs, done: FinishedScan, listed: Mapping[str, Entries]) -> bytes | None:
    """Write a catalog for later processes, and return its mark; None if it was not written."""
    if inputs.folder is None or done.state is None or len(done.catalog.skills) < CACHE_FROM:
        return None
    key = inputs.key(done.roots)
    sections = pack_catalog(done.catalog, done.roots.roots, done.state, key, listed)
    if sections is None:
        return None
    write_sections(inputs.folder, key, sections, unchecked=("entries",))
    return sections["generation"]


def _unpacked(inputs: _ScanInputs, roots: Roots) -> FinishedScan | None:
    """Return what an earlier process found, if the disk has not changed since."""
    if inputs.folder is None or not inputs.decide_alone:
        return None
    now = time.time_ns()
    found = read_latest(inputs.folder, inputs.key(roots))
    if found is None:
        return None
    file, state = found
    changed = state.changes()
    if changed is None:
        return None
    if changed:
        return _updated(inputs, roots, file, state, changed, now)

    def again() -> Catalog | None:
        # Only the same disk gives the same skills in the same order.
        return _scan(inputs, roots, lambda items: items).catalog if state.is_current() else None

    catalog = open_packed(file, roots.roots, again)
    if catalog is None:
        return None
    generation = catalog.skills.generation if isinstance(catalog.skills, PackedSkills) else None
    return FinishedScan(catalog, roots, now, (), state, files.reader(), generation)


def _updated(
    inputs: _ScanInputs, roots: Roots, file: PackedFile, state: DiskState, changed: Set[str], now: int
) -> FinishedScan | None:
    """Return what an earlier process found, with the skills that changed since; None if all has to be scanned."""
    # Imported here: an unchanged disk does not need it.
    from skillshelf.catalog.packed_update import OldCatalog, updated_catalog

    key = inputs.key(roots)
    before = open_packed(file, roots.roots, lambda: None)
    if before is None or inputs.folder is None:
        return None
    try:
        old = OldCatalog(before, file, state, roots, inputs.profile, inputs.settings)
        update = updated_catalog(old, changed, key, now)
    except FileReadError:
        # A part of the file is damaged.
        return None
    if update is None:
        return None
    sections, current = update
    if current is not None:
        write_sections(inputs.folder, key, sections, unchecked=("entries",))
    made = SectionsInMemory(place_of(inputs.folder, key), sections)

    def again() -> Catalog | None:
        return _scan(inputs, roots, lambda items: items).catalog if _is_current(current) else None

    catalog = open_packed(made, roots.roots, again)
    if catalog is None:
        return None
    generation = sections["generation"] if current is not None else None
    return FinishedScan(catalog, roots, now, (), current, files.reader(), generation)
