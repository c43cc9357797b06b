"""Predict the verdicts of hosts after a link, a copy or trust, without writing anything."""

import os
from collections.abc import Iterable, Sequence
from functools import cache

from skillshelf.catalog.build import order_key
from skillshelf.catalog.discovery import SKILL_FILE, Found, Repeat, left_out
from skillshelf.catalog.facts import Facts
from skillshelf.catalog.shared_scan import SharedScan
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.values import Candidate, CatalogSkill, Diagnostic, Root
from skillshelf.hosts.placement import Placement
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import (
    HostScan,
    HostState,
    ListSize,
    SkillFile,
    Survey,
    is_decided_by_name,
    size_of,
    state_of,
)

__all__ = ["after_link", "after_trust"]


def after_trust(host: str, survey: Survey) -> Survey:
    """Return the survey as it is once a host trusts the folder; it is the same for all files of a survey."""
    key = f"trusted by {host}"
    known = survey.recalled.get(key)
    # A trial of another text has the memory of its survey, but a scan of its own.
    if known is not None and known[0] is survey.scan:
        trusted: Survey = known[1]
        return trusted
    scan = survey.hosts[host]
    roots = tuple(root._replace(trusted=True) for root in scan.roots)
    entered = scan.entered._replace(roots=roots)
    walk = survey.scan.walk(roots, scan.profile, repository=entered.repository)
    trusted = survey.with_host(HostScan(scan.profile, roots, entered, walk))
    survey.recalled[key] = survey.scan, trusted
    return trusted


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
        copy = skill_file._replace(real_path=path, paths=(path,), data=data, digest=b"", size=len(data))
    return [_verdict_after(placement, original, copy, host, survey) for host in hosts]


def _verdict_after(
    placement: Placement, original: SkillFile, copy: SkillFile | None, host: str, survey: Survey
) -> Verdict:
    real_root = files.real_path(placement.root)
    roots = [root for root in survey.hosts[host].roots if files.real_path(root.path) == real_root]
    if not roots:
        return judge(original, survey.state_about(host, original), survey)
    paths = tuple(f"{root.path}/{placement.name}/{SKILL_FILE}" for root in roots)
    new = copy._replace(paths=paths) if copy else original._replace(paths=(*original.paths, *paths))
    # A copy has a path of its own, at which another text may be tried next.
    trial = survey._replace(scan=SharedScan(top=survey.environment.ceiling)) if copy else survey
    changed = _state_with(new, original, paths, placement, host, survey, trial.scan.facts)
    # If the placement does not help, the reason to give is about the new path, so that path is judged first.
    judged = (judge(file, changed, trial) for file in (new._replace(paths=paths), original if copy else new))
    return max(judged, key=lambda verdict: (False, None, True).index(verdict.visible))


def _state_with(
    new: SkillFile,
    original: SkillFile,
    paths: Sequence[str],
    placement: Placement,
    host: str,
    survey: Survey,
    facts: Facts,
) -> HostState:
    """Return the state of a host that also found the new file at these paths, as far as it matters to that file."""
    scan = survey.hosts[host]
    replaced = (f"{placement.path}/", *(os.path.dirname(path) + "/" for path in paths))
    among = None
    if is_decided_by_name(scan):
        among = _affected(new, original, placement, replaced, survey) | survey.names.preventing(scan.profile)
    found = [item for item in scan.walk.found(among, survey.names.files) if not f"{item.path}/".startswith(replaced)]
    roots = tuple(_created(root, placement) for root in scan.roots)
    entered = scan.entered._replace(roots=tuple(_created(root, placement) for root in scan.entered.roots))
    for index, root in enumerate(entered.roots):
        path = f"{root.path}/{placement.name}/{SKILL_FILE}"
        if path in paths and (item := _discovered(index, root, path, new, placement, scan.profile)) is not None:
            found.insert(_position(item, index, found, scan.profile), item)
    found = _deduplicated(found, (new, original))
    changed = scan._replace(roots=roots, entered=entered)
    if among is None:
        return state_of(changed, found, facts)
    if not scan.profile.catalog_budget:
        return state_of(changed, found, facts, ListSize)
    before, after = survey.state_among(host, among), state_of(changed, found, facts, ListSize)

    @cache
    def size() -> ListSize:
        return size_of(_with_changes(survey.visible_list(host), before, after), scan.profile, survey.scan.facts.sizes)

    # Not in `after` itself: a state that refers to itself keeps the whole survey until the collector finds the cycle.
    return after._replace(size=size)


def _affected(
    new: SkillFile, original: SkillFile, placement: Placement, replaced: tuple[str, ...], survey: Survey
) -> frozenset[str]:
    """Return the real paths of all files that may have a name in common with the new file or with what it replaces."""
    names = {placement.name, *survey.names.of(new), *survey.names.of(original)}
    if any(files.kind_at(folder) for folder in replaced):
        gone = {file.real_path: file for path, file in survey.by_path.items() if path.startswith(replaced)}
        names.update(*(survey.names.of(file) for file in gone.values()))
    return survey.names.rivals(names)


def _with_changes(listed: Iterable[CatalogSkill], before: HostState, after: HostState) -> list[CatalogSkill]:
    """Return the list of a host after a change, of which two states show the part that it affects."""
    old, new = ({skill.path: skill for skill in state.listed} for state in (before, after))
    gone = {path for path, skill in old.items() if new.get(path) != skill}
    added = [skill for path, skill in new.items() if old.get(path) != skill]
    kept = [skill for skill in listed if skill.path not in gone]
    return sorted([*kept, *added], key=order_key(after.profile, after.entered.roots))


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
    if profile.root_file == "alone" and files.kind_at(f"{root.path}/{SKILL_FILE}") is not None:
        return None
    if profile.ignore_files and (ignored := left_out(root, placement.name, profile)) is not None:
        return ignored
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
