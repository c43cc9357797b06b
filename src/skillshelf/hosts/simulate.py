"""A survey and a change to what hosts will say after it: the stages are gone through again, and nothing is written."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from skillshelf.catalog.discovery import SKILL_FILE, Found, Repeat, discover
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.values import Candidate, Diagnostic, Root
from skillshelf.hosts.placement import Placement
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import HostState, SkillFile, Survey, view_of

__all__ = ["after_link", "trusting"]


def after_link(put: Placement, sighting: SkillFile, survey: Survey, hosts: Iterable[str]) -> list[Verdict]:
    """What each host will make of a skill once a link or a copy of it is put somewhere: the better of the two."""
    # What is put there may take the place of a link of ours.
    ways = tuple(way for way in sighting.ways if not way.startswith(f"{put.path}/"))
    kept = sighting._replace(ways=ways or (sighting.real_path,))
    twin = _copied(sighting, put) if put.how == "copy" else None
    return [_foreseen(put, kept, twin, survey.views[host], survey) for host in hosts]


def _copied(sighting: SkillFile, put: Placement) -> SkillFile:
    """The file that a copy will be."""
    try:
        data = files.read_file(sighting.real_path, limit=SKILL_FILE_BYTES, links="never") or sighting.head
    except OSError:
        data = sighting.head
    path = f"{put.path}/{SKILL_FILE}"
    return sighting._replace(real_path=path, ways=(path,), head=data, size=len(data))


def _foreseen(put: Placement, sighting: SkillFile, twin: SkillFile | None, view: HostState, survey: Survey) -> Verdict:
    there = files.real_path(put.root)
    mine = [root for root in view.roots if files.real_path(root.path) == there]
    if not mine:
        return judge(sighting, view, survey)
    ways = tuple(f"{root.path}/{put.name}/{SKILL_FILE}" for root in mine)
    new = (twin or sighting)._replace(ways=ways if twin else (*sighting.ways, *ways))
    changed = _with(new, sighting, ways, put, view, survey)
    # If it does not help, the reason is what keeps the new way to the file from the host, not the old one.
    files_then = (new._replace(ways=ways), sighting if twin else new)
    return max((judge(file, changed, survey) for file in files_then), key=lambda verdict: _BETTER[verdict.visible])


_BETTER = {False: 0, None: 1, True: 2}


def _with(
    new: SkillFile, old: SkillFile, ways: Sequence[str], put: Placement, view: HostState, survey: Survey
) -> HostState:
    """The view of a host that met the new file as well."""
    ways_there = (f"{put.path}/", *(os.path.dirname(way) + "/" for way in ways))
    roots = tuple(_made(root, put) for root in view.roots)
    entered = view.entered._replace(roots=tuple(_made(root, put) for root in view.entered.roots))
    others = _rivals(new, put, view, survey)
    found: list[Found] = [item for item in others if not f"{item.path}/".startswith(ways_there)]
    for index, root in enumerate(entered.roots):
        way = f"{root.path}/{put.name}/{SKILL_FILE}"
        if way in ways and (item := _met(index, root, way, new, put, view.profile)) is not None:
            found.insert(_place_of(item, index, found, view.profile), item)
    return view_of(view.profile, roots, entered, _once(found, (new, old)), survey.documents)


def _rivals(new: SkillFile, put: Placement, view: HostState, survey: Survey) -> Iterator[Found]:
    """What a host found that may have a say: all of it where its list can be full, else what has a like name."""
    if view.profile.catalog_budget:
        yield from view.found
        return
    names = {_letters(name) for name in (put.name, new.declared)}
    for item in view.found:
        other = survey.by_path.get(item.path)
        if other is None or not names.isdisjoint((_letters(other.folder), _letters(other.declared))):
            yield item


@cache
def _letters(name: str) -> str:
    """A name without what hosts change in it."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _made(root: Root, put: Placement) -> Root:
    """A root after it was made, if that is the one that something is put into."""
    is_new = root.real_path is None and files.real_path(root.path) == files.real_path(put.root)
    return root._replace(real_path=files.real_path(root.path), exists=True) if is_new else root


def _met(index: int, root: Root, way: str, new: SkillFile, put: Placement, profile: Profile) -> Found | None:
    """What a walk will meet at the new place; None where it passes by."""
    if put.name in profile.skip_directories or (root.hidden == "skip" and put.name.startswith(".")):
        return None
    if put.how == "link" and root.links == "never":
        return Diagnostic(os.path.dirname(way), "link-skipped", "a link; this profile follows none")
    folder = os.path.dirname(new.real_path)
    return Candidate(index, way, new.real_path, folder, new.head, (0, 0, new.size, 0, 0))


def _place_of(item: Found, index: int, found: Sequence[Found], profile: Profile) -> int:
    """Where in its walk a host meets something: root by root, and in each the folders in its order."""
    for position, other in enumerate(found):
        root = getattr(other, "root", None)
        if root is None or root < index:
            continue
        is_later = os.fsencode(other.path) > os.fsencode(item.path)
        if root > index or is_later == (profile.folder_order == "sorted"):
            return position
    return len(found)


def _once(found: Iterable[Found], changed: Sequence[SkillFile]) -> list[Found]:
    """The first way to a file is a candidate, every later one a repeat."""
    left = {file.real_path: file for file in reversed(changed)}
    told: list[Found] = []
    for item in found:
        if not isinstance(item, Candidate | Repeat):
            told.append(item)
        elif (file := left.pop(item.real_path, None)) is not None:
            told.append(Candidate(*item[:4], file.head, (0, 0, file.size, 0, 0)))
        elif any(item.real_path == file.real_path for file in changed):
            told.append(Repeat(*item[:4]))
        else:
            told.append(item)
    return told


def trusting(view: HostState, survey: Survey) -> HostState:
    """What a host makes of a place once it trusts the folder."""
    roots = tuple(root._replace(trusted=True) for root in view.roots)
    entered = view.entered._replace(roots=roots)
    found = list(discover(roots, view.profile, repository=entered.repository))
    return view_of(view.profile, roots, entered, found, survey.documents)
