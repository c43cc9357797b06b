"""Keep the survey of a disk in a packed file, which counts while every folder, file and link is as it was.

It holds what the scan found, not what follows from it: the files by all their names, the walk of each host, and how the
list of each host fits its budget. The first bytes of a file are read again when somebody asks for them.
"""

import marshal
from collections.abc import Mapping, Sequence, Set
from typing import Any

from skillshelf.catalog.cache import Cache
from skillshelf.catalog.discovery import Found, Repeat
from skillshelf.catalog.disk_state import DiskState
from skillshelf.catalog.packed_file import Damaged, Sections, read_latest, write_sections
from skillshelf.catalog.search_roots import Roots
from skillshelf.catalog.shared_scan import NOT_READ, NOTHING_SCANNED, ProfileWalk, RootWalk, ScannedRoot, SharedScan
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.limits import CACHE_FROM, FRONTMATTER_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate, Diagnostic, Filtered, Root

__all__ = [
    "PackedSurvey",
    "SurveyContents",
    "add_to_packed",
    "open_survey",
    "pack_survey",
    "recall_stale",
    "state_of_scan",
    "survey_key",
]

_FORMAT = 3
"""The format of the sections. Raise it whenever a disk gives other sections than before within one version."""

_FOUND: Mapping[str, Any] = {"candidate": Candidate, "repeat": Repeat, "filtered": Filtered, "diagnostic": Diagnostic}


class SurveyContents(NamedTuple):
    """The result of a scan: the rows of the files, their positions by name, the walk of each host, and that of all.

    Of the walk of all, which found the files, only the plain folders are kept. `packages` are the roots that a walk of
    the repository found; None if it was not walked.
    """

    rows: Sequence[tuple[Any, ...]]
    positions: dict[str, list[int]]
    walks: Mapping[str, ProfileWalk]
    census: ProfileWalk
    unseen: Sequence[Diagnostic]
    packages: Sequence[str] | None = None


class PackedSurvey(NamedTuple):
    """The sections of a survey, the state of the disk that it was made from, and what has changed since."""

    folder: str
    key: str
    sections: Sections
    state: DiskState
    changed: Set[str] = frozenset()

    def recall(self, what: str) -> Any:
        """Return what a survey of this disk learned; None if none did."""
        try:
            return marshal.loads(self.sections[what])
        except (EOFError, KeyError, TypeError, ValueError):
            return None

    @property
    def learned(self) -> list[str]:
        """The names of everything that was learned."""
        return [name for name in self.sections if name not in _FOUND_ON_DISK]

    def scanned(self) -> dict[str, ScannedRoot] | None:
        """Return the folders that were scanned, by real path; None if the sections have another shape."""
        try:
            return {path: ScannedRoot(*one) for path, one in marshal.loads(self.sections["scanned"]).items()}
        except (AttributeError, EOFError, KeyError, TypeError, ValueError):
            return None

    def contents(
        self, scan: SharedScan, entered: Mapping[str, Sequence[Root]], everything: Sequence[Root], profile: Profile
    ) -> SurveyContents | None:
        """Return what was found, in the scanned folders of a scan; None if the sections have another shape.

        `entered` are the roots of each host, `everything` those of the walk of all, which has its own profile.
        """
        try:
            rows, positions, unseen, packages = marshal.loads(self.sections["files"])
            if not all(0 <= position < len(rows) for found in positions.values() for position in found):
                return None
            walks, census = marshal.loads(self.sections["walks"])
            made = {host: _walk(walks[host], HOSTS[host], roots, scan) for host, roots in entered.items()}
            all_roots = _walk(census, profile, everything, scan)
            return SurveyContents(rows, positions, made, all_roots, [Diagnostic(*one) for one in unseen], packages)
        except (AttributeError, EOFError, IndexError, KeyError, TypeError, ValueError):
            return None


_FOUND_ON_DISK = ("state", "files", "scanned", "walks")
"""The sections that a scan gives; all others are what was learned from them."""


def survey_key(
    environment: Environment, hosts: Sequence[str], resolved: Mapping[str, Roots], machine: object = None
) -> str:
    """Return all that decides a survey besides the files below the roots; `machine` is what else is surveyed."""
    any_host = next(iter(HOSTS.values()))
    place = (environment.cwd, environment.home)
    # Whether a root is a link is decided by the real path of the folder that it belongs to.
    bases = {root.base for roots in resolved.values() for root in roots.roots if root.base}
    real_bases = [(base, files.real_path(base)) for base in sorted(bases)]
    return repr((_FORMAT, Cache(None, any_host).reading, HOSTS, place, tuple(hosts), resolved, real_bases, machine))


def open_survey(folder: str, key: str) -> PackedSurvey | None:
    """Return the survey that an earlier process made, with what has changed on the disk since.

    None if there is none, or if links lead elsewhere than they did.
    """
    found = read_latest(folder, key)
    if found is None:
        return None
    sections, state = found
    changed = state.changes()
    return PackedSurvey(folder, key, sections, state, changed) if changed is not None else None


def recall_stale(folder: str, key: str, what: str) -> Any:
    """Return what the last survey learned, although the disk may have changed since; None if there is none."""
    found = read_latest(folder, key)
    return PackedSurvey(folder, key, *found).recall(what) if found is not None else None


def state_of_scan(scan: SharedScan, contents: SurveyContents) -> DiskState | None:
    """Return the state of the disk that a scan saw; None if the disk may change without changing a stamp."""
    real = [root.real_path for walk in contents.walks.values() for root in (one.root for one in walk.walks)]
    return scan.record.state([*scan.scanned, *(path for path in real if path)])


def pack_survey(
    folder: str, key: str, scan: SharedScan, state: DiskState, contents: SurveyContents, learned: Mapping[str, Any]
) -> None:
    """Write a survey for later processes."""
    if len(contents.rows) < CACHE_FROM and contents.packages is None:
        return
    if any(len(part) > FRONTMATTER_BYTES for row in contents.rows for part in row if isinstance(part, bytes)):
        return
    scanned = {path: (dict(one.plain), list(one.others), *one[2:]) for path, one in scan.scanned.items()}
    walks = {host: [_packed(walk) for walk in found.walks] for host, found in contents.walks.items()}
    census = [_packed(walk._replace(others=())) for walk in contents.census.walks]
    packages = None if contents.packages is None else list(contents.packages)
    unseen = [tuple(one) for one in contents.unseen]
    files_found = ([*map(tuple, contents.rows)], contents.positions, unseen, packages)
    sections: Sections = {
        "state": state.encoded(),
        "files": marshal.dumps(files_found),
        "scanned": marshal.dumps(scanned),
        "walks": marshal.dumps((walks, census)),
    }
    add_to_packed(PackedSurvey(folder, key, sections, state), learned)


def add_to_packed(packed: PackedSurvey, learned: Mapping[str, Any]) -> None:
    """Write a survey with what was learned from it, each under its name."""
    shared = {"lists": _with_shared_texts(learned["lists"])} if "lists" in learned else {}
    added = {name: marshal.dumps(value) for name, value in {**learned, **shared}.items()}
    try:
        known = {**packed.sections}
    except Damaged:
        # The file was damaged since it was opened: the next process makes it anew.
        return
    write_sections(packed.folder, packed.key, known | added)


def _with_shared_texts(lists: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lists of hosts with each text as one object, which is written once: they are much alike."""
    known: dict[str, str] = {}
    one = known.setdefault
    return {
        host: (
            [(one(name, name), one(about, about), one(path, path), *rest) for name, about, path, *rest in rows],
            waiting,
        )
        for host, (rows, waiting) in lists.items()
    }


def _packed(walk: RootWalk) -> tuple[bool, list[tuple[Any, ...]], int]:
    return walk.scanned is not NOTHING_SCANNED, [_packed_item(item) for item in walk.others], walk.used


def _packed_item(item: Found) -> tuple[Any, ...]:
    kind = next(name for name, made in _FOUND.items() if isinstance(item, made))
    if isinstance(item, Candidate):
        item = item._replace(head=b"", stamp=NOT_READ)
    return kind, *item


def _walk(
    packed: Sequence[tuple[bool, Sequence[tuple[Any, ...]], int]],
    profile: Profile,
    roots: Sequence[Root],
    scan: SharedScan,
) -> ProfileWalk:
    walks = []
    for root, (is_scanned, items, used) in zip(roots, packed, strict=True):
        scanned = scan.scanned[root.real_path or ""] if is_scanned else NOTHING_SCANNED
        walks.append(RootWalk(root, scanned, [_FOUND[kind](*values) for kind, *values in items], used))
    return ProfileWalk(walks, profile, scan.head_of)
