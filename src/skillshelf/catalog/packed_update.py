"""Bring a packed catalog up to date after a few skills came, went or changed, without looking at the others.

This is done only where nothing else can depend on them: each lies in a folder directly below one root, has a name of
its own, and is reached by one path. Everything else is left to a scan.
"""

import marshal
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any

from skillshelf.catalog.build import build, diagnostic_key, order_key
from skillshelf.catalog.discovery import SKILL_FILE, discover_root
from skillshelf.catalog.disk_state import DiskState, Entries, ScanRecord, is_reached
from skillshelf.catalog.look_alikes import looks_like_others
from skillshelf.catalog.packed import PackedSkills, PackedTables, pack_tables, tables_of
from skillshelf.catalog.packed_file import PackedFile, Sections
from skillshelf.catalog.search_roots import Roots
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import folded_name
from skillshelf.core.values import Candidate, Catalog, CatalogSkill

__all__ = ["OldCatalog", "UpdatedCatalog", "updated_catalog"]

_ABOUT_NAMES = ("name-collision", "name-confusable")
"""The rules that look at the names of several skills."""


class OldCatalog(NamedTuple):
    """A packed catalog of a disk that has changed since: its file, the state of the disk then, and its inputs."""

    catalog: Catalog
    file: PackedFile
    state: DiskState
    roots: Roots
    profile: Profile
    settings: Settings


class UpdatedCatalog(NamedTuple):
    """The sections of a catalog after a change, and the state of the disk; None if that proves nothing."""

    sections: Sections
    state: DiskState | None


class _Touched(NamedTuple):
    """The skills that changed in one root: the names of their folders, and the files of those that are still there."""

    root: int
    names: Set[str]
    found: Sequence[Candidate]


def updated_catalog(old: OldCatalog, changed: Set[str], key: str, now_ns: int) -> UpdatedCatalog | None:
    """Return a catalog after entries with these real paths changed; None if other parts of it may have changed, too."""
    if old.profile.below_skill != "skip" or old.catalog.truncated:
        return None
    record = ScanRecord(now_ns)
    try:
        listed: dict[str, Entries] = marshal.loads(old.file["listed"])
        touched = _all_touched(old, changed, listed, record)
        if touched is None:
            return None
        state: DiskState | None = old.state
        for root, names, _ in touched:
            real_path = old.roots.roots[root].real_path or ""
            state = state.updated(real_path, names, record) if state is not None else None
        sections = _sections(old, touched, key, state or old.state, listed)
    except (AttributeError, EOFError, KeyError, TypeError, ValueError):
        return None
    return UpdatedCatalog(sections, state) if sections is not None else None


# The disk -----------------------------------------------------------------------------------------


def _all_touched(
    old: OldCatalog, changed: Collection[str], listed: dict[str, Entries], record: ScanRecord
) -> list[_Touched] | None:
    """Look again at what changed, root by root; None if anything but folders of skills did."""
    result: list[_Touched] = []
    for index, root in enumerate(old.roots.roots):
        inside = [path for path in changed if root.real_path and files.is_inside(path, root.real_path)]
        if inside:
            touched = _touched(old, index, inside, listed, record)
            if touched is None:
                return None
            result.append(touched)
    here = {old.roots.roots[one.root].real_path or "/" for one in result}
    return result if all(any(files.is_inside(path, place) for place in here) for path in changed) else None


def _touched(
    old: OldCatalog, index: int, changed: Collection[str], listed: dict[str, Entries], record: ScanRecord
) -> _Touched | None:
    root = old.roots.roots[index]
    assert root.real_path is not None
    below = [path[len(root.real_path) + 1 :].split("/") for path in changed if path != root.real_path]
    if root.loose_files != "none" or not all(parts[1:] == [SKILL_FILE] for parts in below):
        return None
    try:
        came_and_went = _listed_again(root.real_path, listed, record)
    except OSError:
        return None
    if came_and_went is None:
        return None
    names = came_and_went | {parts[0] for parts in below}
    others = [one.real_path for at, one in enumerate(old.roots.roots) if at != index and one.real_path]
    places = [*others, *(end for _, end in old.state.links)]
    if is_reached({f"{root.real_path}/{name}" for name in names}, places) or not old.state.has_only(
        root.real_path, names, SKILL_FILE
    ):
        return None
    here = [(name, True) for name, _ in listed[root.real_path] if name in names]
    reachable = [old.roots.repository, root.real_path, *others]
    items = discover_root(root, old.profile, reachable=reachable, heads={}, record=record, entries=here).found
    found = [item._replace(root=index) for item in items if isinstance(item, Candidate)]
    if len(found) != len(items) or [one.path for one in found] != [
        f"{root.path}/{name}/{SKILL_FILE}" for name, _ in (here if old.profile.folder_order == "sorted" else here[::-1])
    ]:
        return None
    return _Touched(index, names, found)


def _listed_again(real_path: str, listed: dict[str, Entries], record: ScanRecord) -> set[str] | None:
    """List the folder of a root; return the folders that came or went, or None if another entry did."""
    folder = files.open_folder(real_path)
    try:
        record.listed(real_path, files.stamp_of_open(folder))
        entries = files.entries_in(folder)
    finally:
        files.close(folder)
    different = {*entries} ^ {*listed[real_path]}
    listed[real_path] = entries
    names = {name for name, _ in different}
    return names if all(is_folder for _, is_folder in different) and len(names) == len(different) else None


# The catalog --------------------------------------------------------------------------------------


def _sections(
    old: OldCatalog, touched: Sequence[_Touched], key: str, state: DiskState, listed: Mapping[str, Entries]
) -> Sections | None:
    """Return the sections of the catalog with the skills that changed; None if they affect others."""
    roots, skills = old.roots.roots, old.catalog.skills
    assert isinstance(skills, PackedSkills)
    places = {f"{roots[one.root].path}/{name}/{SKILL_FILE}" for one in touched for name in one.names}
    new = build(
        [item for one in touched for item in one.found],
        old.roots,
        old.profile,
        old.settings,
        look_alikes="ignore",
    )
    gone = {at for path in places for at in skills.table.at_path(path)}
    before = [skills[at] for at in gone]
    tables = skills.tables()
    if new.shadowed or not _are_alone(old, before, new.skills, places, tables):
        return None
    order = _ordered(old, gone, new.skills)
    if order is None:
        return None
    added = tables_of(new.skills, roots)
    whole = PackedTables(*(_chosen(order, *columns) for columns in zip(tables, added, strict=True)))
    counts = [0] * len(roots)
    for change, some in ((-1, before), (1, new.skills)):
        for skill in some:
            counts[skill.root] += change
    reports = [one._replace(skills=one.skills + count) for one, count in zip(old.catalog.roots, counts, strict=True)]
    catalog = old.catalog._replace(
        roots=tuple(reports),
        errors=_merged(old.catalog.errors, new.errors, places, diagnostic_key),
        warnings=_merged(old.catalog.warnings, new.warnings, places, diagnostic_key),
        filtered=_merged(old.catalog.filtered, new.filtered, places, lambda one: one[:3]),
    )
    return pack_tables(whole, catalog, state, key, listed)


def _chosen(order: Sequence[int], before: Sequence[Any], added: Sequence[Any]) -> list[Any]:
    """Return values in an order of positions; those below zero count from the end of what was added."""
    return [before[at] if at >= 0 else added[at] for at in order]


def _are_alone(
    old: OldCatalog,
    before: Sequence[CatalogSkill],
    after: Sequence[CatalogSkill],
    places: Set[str],
    tables: PackedTables,
) -> bool:
    """Return whether no other skill has, or looks as if it had, a name of these skills before or after the change."""
    names = [folded_name(skill.name) for skill in after]
    own = {*names, *(folded_name(skill.name) for skill in before)}
    others = {name for name, path in zip(tables.names, tables.paths, strict=True) if path not in places}
    others.update(folded_name(one.name) for one in old.catalog.shadowed)
    others.update(folded_name(one.name) for one in old.catalog.filtered if one.path not in places)
    if len({*names}) < len(names) or own & others:
        return False
    if any(places & {one.path, one.by} for one in old.catalog.shadowed):
        return False
    about_names = [one for one in (*old.catalog.errors, *old.catalog.warnings) if one.rule in _ABOUT_NAMES]
    if any(one.path in places for one in about_names):
        return False
    if {skill.name for skill in before} == {skill.name for skill in after}:
        return True
    if about_names:
        return False
    shown = [line.partition("\t")[0] for line in tables.lines]
    new = {skill.name for skill in after} - {skill.name for skill in before}
    # A name with characters that are not shown as they are is not in the table.
    return "\\" not in "".join(shown) and not looks_like_others(new, shown)


def _ordered(old: OldCatalog, gone: Collection[int], added: Sequence[CatalogSkill]) -> list[int] | None:
    """Return the positions of all skills in the new order, those of added ones from -1 down; None if it is open."""
    key, skills = order_key(old.profile, old.roots.roots), old.catalog.skills
    order = [at for at in range(len(skills)) if at not in gone]

    def key_at(at: int) -> Any:
        return key(skills[at] if at >= 0 else added[at])

    for number in range(-len(added), 0):
        at = bisect(order, key_at(number), key=key_at)
        if at and key_at(order[at - 1]) == key_at(number):
            return None
        order.insert(at, number)
    return order


def _merged(
    before: Iterable[Any], new: Iterable[Any], places: Collection[str], key: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """Return the reports on other files as before, and on the files at these places as they are now."""
    kept = [one for one in before if one.path not in places]
    return tuple(sorted(dict.fromkeys([*kept, *(one for one in new if one.path in places)]), key=key))
