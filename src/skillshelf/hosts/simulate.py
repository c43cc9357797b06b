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
from skillshelf.hosts.survey import HostState, SkillFile, Survey, state_of

__all__ = ["after_link", "after_trust"]


def after_link(put: Placement, skill_file: SkillFile, survey: Survey, hosts: Iterable[str]) -> list[Verdict]:
    """What each host will make of a skill once a link or a copy of it is put somewhere: the better of the two."""
    # What is put there may take the place of a link of ours.
    paths = tuple(path for path in skill_file.paths if not path.startswith(f"{put.path}/"))
    kept = skill_file._replace(paths=paths or (skill_file.real_path,))
    twin = _copied(skill_file, put) if put.how == "copy" else None
    return [_foreseen(put, kept, twin, survey.states[host], survey) for host in hosts]


def _copied(skill_file: SkillFile, put: Placement) -> SkillFile:
    """The file that a copy will be."""
    try:
        data = files.read_file(skill_file.real_path, limit=SKILL_FILE_BYTES, links="never") or skill_file.head
    except OSError:
        data = skill_file.head
    path = f"{put.path}/{SKILL_FILE}"
    return skill_file._replace(real_path=path, paths=(path,), head=data, size=len(data))


def _foreseen(
    put: Placement, skill_file: SkillFile, twin: SkillFile | None, state: HostState, survey: Survey
) -> Verdict:
    there = files.real_path(put.root)
    mine = [root for root in state.roots if files.real_path(root.path) == there]
    if not mine:
        return judge(skill_file, state, survey)
    paths = tuple(f"{root.path}/{put.name}/{SKILL_FILE}" for root in mine)
    new = (twin or skill_file)._replace(paths=paths if twin else (*skill_file.paths, *paths))
    changed = _with(new, skill_file, paths, put, state, survey)
    # If it does not help, the reason is what keeps the new way to the file from the host, not the old one.
    files_then = (new._replace(paths=paths), skill_file if twin else new)
    return max((judge(file, changed, survey) for file in files_then), key=lambda verdict: _BETTER[verdict.visible])


_BETTER = {False: 0, None: 1, True: 2}


def _with(
    new: SkillFile, old: SkillFile, paths: Sequence[str], put: Placement, state: HostState, survey: Survey
) -> HostState:
    """The view of a host that met the new file as well."""
    ways_there = (f"{put.path}/", *(os.path.dirname(path) + "/" for path in paths))
    roots = tuple(_made(root, put) for root in state.roots)
    entered = state.entered._replace(roots=tuple(_made(root, put) for root in state.entered.roots))
    others = _rivals(new, put, state, survey)
    found: list[Found] = [item for item in others if not f"{item.path}/".startswith(ways_there)]
    for index, root in enumerate(entered.roots):
        path = f"{root.path}/{put.name}/{SKILL_FILE}"
        if path in paths and (item := _met(index, root, path, new, put, state.profile)) is not None:
            found.insert(_place_of(item, index, found, state.profile), item)
    return state_of(state.profile, roots, entered, _once(found, (new, old)), survey.documents)


def _rivals(new: SkillFile, put: Placement, state: HostState, survey: Survey) -> Iterator[Found]:
    """What a host found that may have a say: all of it where its list can be full, else what has a like name."""
    if state.profile.catalog_budget:
        yield from state.found
        return
    names = {_letters(name) for name in (put.name, new.declared)}
    for item in state.found:
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


def _met(index: int, root: Root, path: str, new: SkillFile, put: Placement, profile: Profile) -> Found | None:
    """What a walk will meet at the new place; None where it passes by."""
    if put.name in profile.skip_directories or (root.hidden == "skip" and put.name.startswith(".")):
        return None
    if put.how == "link" and root.links == "never":
        return Diagnostic(os.path.dirname(path), "link-skipped", "a link; this profile follows none")
    folder = os.path.dirname(new.real_path)
    return Candidate(index, path, new.real_path, folder, new.head, (0, 0, new.size, 0, 0))


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


def after_trust(state: HostState, survey: Survey) -> HostState:
    """What a host makes of a place once it trusts the folder."""
    roots = tuple(root._replace(trusted=True) for root in state.roots)
    entered = state.entered._replace(roots=roots)
    found = list(discover(roots, state.profile, repository=entered.repository))
    return state_of(state.profile, roots, entered, found, survey.documents)
