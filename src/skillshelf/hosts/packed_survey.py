"""Keep the survey of a disk in a packed file, which counts while every folder, file and link is as it was.

It holds what the scan found, not what follows from it: the files by all their names, the walk of each host, and how the
list of each host fits its budget. The first bytes of a file are read again when somebody asks for them.
"""

import marshal
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.catalog.cache import Cache
from skillshelf.catalog.discovery import Found, Repeat
from skillshelf.catalog.packed_file import Damaged, Sections, read_current, write_sections
from skillshelf.catalog.search_roots import Roots
from skillshelf.catalog.shared_scan import NOT_READ, NOTHING_SCANNED, ProfileWalk, RootWalk, ScannedRoot, SharedScan
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.limits import CACHE_FROM, FRONTMATTER_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate, Diagnostic, Filtered, Root

__all__ = ["PackedSurvey", "SurveyContents", "add_to_packed", "open_survey", "pack_survey", "survey_key"]

_FORMAT = 2
"""The format of the sections. Raise it whenever a disk gives other sections than before within one version."""

_FOUND: Mapping[str, Any] = {"candidate": Candidate, "repeat": Repeat, "filtered": Filtered, "diagnostic": Diagnostic}


class SurveyContents(NamedTuple):
    """The result of a scan: the rows of the files, their positions by name, and the walk of each host."""

    rows: list[tuple[Any, ...]]
    positions: dict[str, list[int]]
    walks: Mapping[str, ProfileWalk]
    unseen: Sequence[Diagnostic]


class PackedSurvey(NamedTuple):
    """The sections of a survey of an unchanged disk."""

    folder: str
    key: str
    sections: Sections

    def recall(self, what: str) -> Any:
        """Return what a survey of this disk learned; None if none did."""
        try:
            return marshal.loads(self.sections[what])
        except (EOFError, KeyError, TypeError, ValueError):
            return None

    def contents(self, scan: SharedScan, entered: Mapping[str, Sequence[Root]]) -> SurveyContents | None:
        """Return what was found, with the scanned folders added to a scan; None if the sections have another shape."""
        try:
            rows, positions, unseen = marshal.loads(self.sections["files"])
            if not all(0 <= position < len(rows) for found in positions.values() for position in found):
                return None
            scanned, walks = marshal.loads(self.sections["walks"])
            for path, (plain, *rest) in scanned.items():
                scan.scanned[path] = ScannedRoot(dict.fromkeys(plain), *rest)
            made = {host: _walk(walks[host], HOSTS[host], roots, scan) for host, roots in entered.items()}
            return SurveyContents(rows, positions, made, [Diagnostic(*one) for one in unseen])
        except (AttributeError, EOFError, IndexError, KeyError, TypeError, ValueError):
            return None


def survey_key(environment: Environment, hosts: Sequence[str], resolved: Mapping[str, Roots]) -> str:
    """Return all that decides a survey besides the files below the roots."""
    any_host = next(iter(HOSTS.values()))
    place = (environment.cwd, environment.home)
    # Whether a root is a link is decided by the real path of the folder that it belongs to.
    bases = {root.base for roots in resolved.values() for root in roots.roots}
    real_bases = [(base, files.real_path(base)) for base in sorted(bases)]
    return repr((_FORMAT, Cache(None, any_host).reading, HOSTS, place, tuple(hosts), resolved, real_bases))


def open_survey(folder: str, key: str) -> PackedSurvey | None:
    """Return the survey that an earlier process made, if the disk has not changed since."""
    found = read_current(folder, key)
    return PackedSurvey(folder, key, found[0]) if found is not None else None


def pack_survey(folder: str, key: str, scan: SharedScan, contents: SurveyContents, learned: Mapping[str, Any]) -> None:
    """Write a survey for later processes, unless the disk may change without changing a stamp."""
    real = [root.real_path for walk in contents.walks.values() for root in (one.root for one in walk.walks)]
    state = scan.record.state([*scan.scanned, *(path for path in real if path)])
    if state is None or len(contents.rows) < CACHE_FROM:
        return
    if any(len(part) > FRONTMATTER_BYTES for row in contents.rows for part in row if isinstance(part, bytes)):
        return
    scanned = {path: (list(one.plain), list(one.others), one.folders, one.files) for path, one in scan.scanned.items()}
    walks = {host: [_packed(walk) for walk in found.walks] for host, found in contents.walks.items()}
    sections: Sections = {
        "state": state.encoded(),
        "files": marshal.dumps((contents.rows, contents.positions, [tuple(one) for one in contents.unseen])),
        "walks": marshal.dumps((scanned, walks)),
    }
    add_to_packed(PackedSurvey(folder, key, sections), learned)


def add_to_packed(packed: PackedSurvey, learned: Mapping[str, Any]) -> None:
    """Write a survey with what was learned from it, each under its name."""
    added = {name: marshal.dumps(value) for name, value in learned.items()}
    try:
        known = {**packed.sections}
    except Damaged:
        # The file was damaged since it was opened: the next process makes it anew.
        return
    write_sections(packed.folder, packed.key, known | added)


def _packed(walk: RootWalk) -> tuple[bool, list[tuple[Any, ...]]]:
    return walk.scanned is not NOTHING_SCANNED, [_packed_item(item) for item in walk.others]


def _packed_item(item: Found) -> tuple[Any, ...]:
    kind = next(name for name, made in _FOUND.items() if isinstance(item, made))
    if isinstance(item, Candidate):
        item = item._replace(head=b"", stamp=NOT_READ)
    return kind, *item


def _walk(
    packed: Sequence[tuple[bool, Sequence[tuple[Any, ...]]]], profile: Profile, roots: Sequence[Root], scan: SharedScan
) -> ProfileWalk:
    walks = []
    for root, (is_scanned, items) in zip(roots, packed, strict=True):
        scanned = scan.scanned[root.real_path or ""] if is_scanned else NOTHING_SCANNED
        walks.append(RootWalk(root, scanned, [_FOUND[kind](*values) for kind, *values in items]))
    return ProfileWalk(walks, profile, scan.head_of)
