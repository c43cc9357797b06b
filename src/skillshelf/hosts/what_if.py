"""Predict the verdicts of hosts after a link, a copy or trust, without writing anything."""

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


def after_trust(state: HostState, survey: Survey) -> HostState:
    """Return the state of a host that trusts the folder."""
    roots = tuple(root._replace(trusted=True) for root in state.roots)
    entered = state.entered._replace(roots=roots)
    found = list(discover(roots, state.profile, repository=entered.repository))
    return state_of(state.profile, roots, entered, found, survey.documents)


def after_link(placement: Placement, skill_file: SkillFile, survey: Survey, hosts: Iterable[str]) -> list[Verdict]:
    """Return the verdict of each host once a link or copy of a skill exists: the better one of original and copy."""
    # The placement may replace a link that `link` made.
    paths = tuple(path for path in skill_file.paths if not path.startswith(f"{placement.path}/"))
    original = skill_file._replace(paths=paths or (skill_file.real_path,))
    copy = None
    if placement.how == "copy":
        try:
            data = files.read_file(skill_file.real_path, limit=SKILL_FILE_BYTES, links="never") or skill_file.head
        except OSError:
            data = skill_file.head
        path = f"{placement.path}/{SKILL_FILE}"
        copy = skill_file._replace(real_path=path, paths=(path,), head=data, size=len(data))
    return [_verdict_after(placement, original, copy, survey.states[host], survey) for host in hosts]


def _verdict_after(
    placement: Placement, original: SkillFile, copy: SkillFile | None, state: HostState, survey: Survey
) -> Verdict:
    real_root = files.real_path(placement.root)
    roots = [root for root in state.roots if files.real_path(root.path) == real_root]
    if not roots:
        return judge(original, state, survey)
    paths = tuple(f"{root.path}/{placement.name}/{SKILL_FILE}" for root in roots)
    new = copy._replace(paths=paths) if copy else original._replace(paths=(*original.paths, *paths))
    changed = _state_with(new, original, paths, placement, state, survey)
    # If the placement does not help, the reason to give is about the new path, so that path is judged first.
    judged = (judge(file, changed, survey) for file in (new._replace(paths=paths), original if copy else new))
    return max(judged, key=lambda verdict: (False, None, True).index(verdict.visible))


def _state_with(
    new: SkillFile, original: SkillFile, paths: Sequence[str], placement: Placement, state: HostState, survey: Survey
) -> HostState:
    """Return the state of a host that also found the new file at these paths."""
    replaced = (f"{placement.path}/", *(os.path.dirname(path) + "/" for path in paths))
    roots = tuple(_created(root, placement) for root in state.roots)
    entered = state.entered._replace(roots=tuple(_created(root, placement) for root in state.entered.roots))
    rivals = _rivals(new, placement, state, survey)
    found: list[Found] = [item for item in rivals if not f"{item.path}/".startswith(replaced)]
    for index, root in enumerate(entered.roots):
        path = f"{root.path}/{placement.name}/{SKILL_FILE}"
        if path in paths and (item := _discovered(index, root, path, new, placement, state.profile)) is not None:
            found.insert(_position(item, index, found, state.profile), item)
    return state_of(state.profile, roots, entered, _deduplicated(found, (new, original)), survey.documents)


def _rivals(new: SkillFile, placement: Placement, state: HostState, survey: Survey) -> Iterator[Found]:
    """Yield what may affect the new file: everything if the list has a budget, else what has a similar name."""
    if state.profile.catalog_budget:
        yield from state.found
        return
    names = {_letters(name) for name in (placement.name, new.declared)}
    for item in state.found:
        other = survey.by_path.get(item.path)
        if other is None or not names.isdisjoint((_letters(other.folder), _letters(other.declared))):
            yield item


@cache
def _letters(name: str) -> str:
    """Return a name without the characters that hosts change."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _created(root: Root, placement: Placement) -> Root:
    """Return a root as it is once the placement has created it."""
    is_new = root.real_path is None and files.real_path(root.path) == files.real_path(placement.root)
    return root._replace(real_path=files.real_path(root.path), exists=True) if is_new else root


def _discovered(
    index: int, root: Root, path: str, new: SkillFile, placement: Placement, profile: Profile
) -> Found | None:
    """Return the item that a walk will find at the new path, or None if it finds none."""
    if placement.name in profile.skip_directories or (root.hidden == "skip" and placement.name.startswith(".")):
        return None
    if placement.how == "link" and root.links == "never":
        return Diagnostic(os.path.dirname(path), "link-skipped", "a link; this profile follows none")
    folder = os.path.dirname(new.real_path)
    return Candidate(index, path, new.real_path, folder, new.head, (0, 0, new.size, 0, 0))


def _position(item: Found, index: int, found: Sequence[Found], profile: Profile) -> int:
    """Return the position of an item in the walk of a host: root by root, and in each the folders in its order."""
    for position, other in enumerate(found):
        root = getattr(other, "root", None)
        if root is None or root < index:
            continue
        is_later = files.path_bytes(other.path) > files.path_bytes(item.path)
        if root > index or is_later == (profile.folder_order == "sorted"):
            return position
    return len(found)


def _deduplicated(found: Iterable[Found], changed: Sequence[SkillFile]) -> list[Found]:
    """Make the first path to each changed file a candidate and every later one a repeat."""
    waiting = {file.real_path: file for file in reversed(changed)}
    known = {file.real_path for file in changed}
    result: list[Found] = []
    for item in found:
        if isinstance(item, Candidate | Repeat) and item.real_path in known:
            file = waiting.pop(item.real_path, None)
            item = Candidate(*item[:4], file.head, (0, 0, file.size, 0, 0)) if file else Repeat(*item[:4])
        result.append(item)
    return result
