"""Bring a kept survey up to date: look again at the plain folders that changed, and at nothing else.

Everything else in the survey stays as it was, unless it may depend on what changed: the files that some host may call
by the same name. What was learned about those is left out, and is found out again when it is asked for.
"""

from bisect import bisect
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from skillshelf.catalog.discovery import SKILL_FILE, Repeat
from skillshelf.catalog.disk_state import DiskState, is_reached
from skillshelf.catalog.shared_scan import (
    NOTHING_SCANNED,
    ProfileWalk,
    RescannedRoot,
    RootWalk,
    ScannedRoot,
    SharedScan,
)
from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate
from skillshelf.hosts.overview_table import OverviewTable
from skillshelf.hosts.packed_survey import PackedSurvey, SurveyContents
from skillshelf.hosts.skill_files import NameIndex, SkillFile, order_key, take_census

__all__ = ["Rescans", "UpdatedFiles", "finds_known_files", "rescan_changes", "updated_files", "updated_learning"]

Rescans = Mapping[str, RescannedRoot]
"""The scanned folders in which something changed, by real path."""


class UpdatedFiles(NamedTuple):
    """The files of a survey after a change, their names, and the state of the disk; None if it proves nothing.

    `before` is the number of files before, `origins` are the positions of these files then, -1 for one that is new or
    has changed. `affected` are the real paths of all files, gone ones included, that share one of the `shared` names
    with a file that changed; `gone` are all paths to them before the change.
    """

    skill_files: tuple[SkillFile, ...]
    names: NameIndex
    state: DiskState | None
    before: int
    origins: Sequence[int]
    affected: Set[str]
    shared: Set[str]
    gone: Set[str]


# The scan -----------------------------------------------------------------------------------------


def rescan_changes(packed: PackedSurvey, scan: SharedScan) -> Rescans | None:
    """Look again at everything that changed since a survey; None if more than plain folders changed."""
    changed = packed.changed
    roots = [path for path in scan.scanned if any(files.is_inside(one, path) for one in changed)]
    if not all(any(files.is_inside(one, path) for path in roots) for one in changed):
        return None
    fixed = {*scan.scanned, *(group.folder for group in packed.state.groups), *(end for _, end in packed.state.links)}
    rescans = {}
    for path in roots:
        done = scan.rescan(path, changed)
        if done is None or is_reached({f"{path}/{name}" for name in done.replaced}, fixed - {path, "/"}):
            return None
        rescans[path] = done
    for path, done in rescans.items():
        scan.scanned[path] = done.scanned
    return rescans


# The files ----------------------------------------------------------------------------------------


def updated_files(
    rescans: Rescans, packed: PackedSurvey, contents: SurveyContents, before: NameIndex, scan: SharedScan
) -> UpdatedFiles | None:
    """Return the files of a survey after a rescan; None if a walk may find more than plain folders there."""
    walks = [contents.census, *contents.walks.values()]
    if not all(_is_walked_alike(walk, rescans) for walk in walks):
        return None
    touched = {
        f"{path}/{name}/{SKILL_FILE}" for path, done in rescans.items() for name in (*done.edited, *done.replaced)
    }
    replacing = _replacing(rescans, contents.census, before, scan)
    if replacing is None:
        return None
    old = before.skill_files
    rows = [row for row in old if row.real_path not in touched]
    origins = [at for at, row in enumerate(old) if row.real_path not in touched]
    for row in replacing:
        at = bisect(rows, order_key(row), key=order_key)
        rows.insert(at, row)
        origins.insert(at, -1)
    state: DiskState | None = packed.state
    for path, done in rescans.items():
        state = state.updated(path, done.replaced, scan.record) if state is not None else None
    names = before.updated(rows, origins)
    shared = before.names_of(touched).union(*map(names.of, replacing))
    affected = before.rivals(shared) | names.rivals(shared)
    gone = {path for row in old if row.real_path in affected for path in (*row.paths, row.real_path)}
    return UpdatedFiles(tuple(rows), names, state, len(old), origins, affected, shared, gone)


def _is_walked_alike(walk: ProfileWalk, rescans: Rescans) -> bool:
    """Return whether a walk takes the plain folders of the changed roots from the scan, and visits all of them."""
    here = [one for one in walk.walks if one.root.real_path in rescans]
    return all(one.scanned is not NOTHING_SCANNED and one.is_within_limit(walk.profile) for one in here)


def _replacing(rescans: Rescans, census: ProfileWalk, before: NameIndex, scan: SharedScan) -> list[SkillFile] | None:
    """Return the files in the folders that changed, as a census of all roots finds them."""
    walks = [RootWalk(walk.root, _changed_part(rescans.get(walk.root.real_path or "")), ()) for walk in census.walks]
    edited = {f"{path}/{name}/{SKILL_FILE}" for path, done in rescans.items() for name in done.edited}
    found = take_census(census._replace(walks=walks), scan).found
    result = []
    for real_path, row in found.items():
        known = before.files.get(real_path)
        if known is not None and known.paths != row.paths:
            # Links lead there as well, and still do after an edit.
            if real_path not in edited:
                return None
            row = row._replace(paths=known.paths, kind=known.kind, base=known.base)
        result.append(row)
    return result


def _changed_part(done: RescannedRoot | None) -> ScannedRoot:
    if done is None:
        return NOTHING_SCANNED
    names = done.edited | done.replaced
    return ScannedRoot.of({name: counts for name, counts in done.scanned.plain.items() if name in names}, ())


# What was learned ---------------------------------------------------------------------------------


def finds_known_files(walk: ProfileWalk, names: NameIndex) -> bool:
    """Return whether a host finds no other files than those of the survey."""
    items = (item for one in walk.walks for item in one.others if isinstance(item, Candidate | Repeat))
    return all(item.real_path in names.files for item in items)


def updated_learning(
    update: UpdatedFiles, packed: PackedSurvey, all_hosts: Collection[str], hosts: Collection[str]
) -> dict[str, Any]:
    """Return what a survey learned before a change, as far as it is still so; only of `hosts`, not of `all_hosts`."""
    learned: dict[str, Any] = {}
    for what in packed.learned:
        # The size of a list is measured again.
        values = packed.recall(what) if what in ("lists", "overview") else None
        if what == "lists" and isinstance(values, dict):
            learned[what] = {
                host: ([row for row in rows if row[2] not in update.gone], sorted({*waiting, *update.affected}))
                for host, (rows, waiting) in values.items()
                if host in hosts
            }
        elif what == "overview" and (table := OverviewTable.unpacked(values, all_hosts, update.before)) is not None:
            affected = [at for at, row in enumerate(update.skill_files) if row.real_path in update.affected]
            learned[what] = table.updated(update.origins, affected, update.shared, hosts).packed()
    return learned
