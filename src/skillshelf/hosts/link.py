"""Create, update and remove links and copies that make a skill visible to a host.

Only what the manifest lists as made by `link` is replaced or removed, and only if it was not changed since.
"""

import os
from collections.abc import Sequence
from typing import Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.disk_writes import (
    make_folder,
    make_link,
    make_parents,
    remove_empty,
    remove_folder,
    remove_link,
    replace_folder,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural, visible
from skillshelf.errors import AmbiguousSkill
from skillshelf.hosts.explain import find, verdicts_of
from skillshelf.hosts.fixes import fix_for, link_command, needs_placement
from skillshelf.hosts.placement import (
    CopyContents,
    Placement,
    contents_at,
    copied_from,
    copies_of,
    copy_state,
    hosts_of,
    is_as_made,
    manifest_entry,
    own_kind,
    placement_for,
    read_contents,
    readers_ignoring_safeguard,
    real_root,
    record_entry,
    record_host,
    refuse_foreign_manifest,
    sources,
    why_copy,
)
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import HostScan, SkillFile, Survey
from skillshelf.hosts.verdict import SAFEGUARD, document_of, ignores_safeguard
from skillshelf.hosts.what_if import after_link

__all__ = ["HostLinkResult", "copies_for", "link_to", "only_skill", "remove", "result_line"]


class HostLinkResult(NamedTuple):
    """The result for one host; `refused` if it needs something that was not done.

    `target` is what a link points to; hosts `in_doubt` saw the skill before and may not see it afterwards.
    """

    host: str
    how: Literal["link", "copy", "removed", "kept", "nothing"]
    path: str
    detail: str = ""
    target: str = ""
    refused: bool = False
    in_doubt: tuple[str, ...] = ()


def result_line(result: HostLinkResult, *, is_visible: bool | None = None) -> str:
    """Describe a result in one line."""
    host, how, path, detail = result[:4]
    if how == "nothing" and is_visible and not result.refused:
        return visible(f"{host}: already visible as {path}" + (f" ({detail})" if detail else ""))
    words = {"link": "linked", "copy": "copied to", "removed": "removed", "kept": "kept", "nothing": "no change"}
    line = f"{host}: {words[how]}{':' if how == 'nothing' and path else ''}{' ' + path if path else ''}"
    line += f" -> {result.target}" if result.target else ""
    remarks = [remark for remark in (detail, "now visible" if is_visible else "") if remark]
    return visible(f"{line} ({'; '.join(remarks)})" if remarks else line)


def only_skill(wanted: str, found: Sequence[SkillFile], survey: Survey) -> SkillFile:
    """Return the one skill among files; a copy made by `link` counts as its source. Raise if several remain."""
    meant = sources(found, survey)
    if len(meant) > 1:
        raise AmbiguousSkill(wanted, tuple(skill_file.path for skill_file in meant))
    return meant[0]


def link_to(
    hosts: Sequence[str], skill_file: SkillFile, survey: Survey, *, force: bool = False
) -> tuple[list[HostLinkResult], Survey]:
    """Make a skill visible to hosts; return the results and a survey of all hosts afterwards.

    `force` also gives it to a host that ignores the author's safeguard.
    """
    results = []
    for host in sorted(hosts, key=_follows_links):
        results.append(_make_visible(host, survey.by_path[skill_file.real_path], survey, force=force))
        if results[-1].how != "nothing":
            # What was made for one host may be what the next one needs.
            survey, _ = find(skill_file.real_path, survey.environment, list(HOSTS))
    return results, survey


def _follows_links(host: str) -> bool:
    """Return false for a host that may need a copy; these come first, because a copy serves the others as well."""
    profile = HOSTS[host]
    return "never" not in (profile.user_links, profile.other_links) and "links" not in profile.unknown


def _make_visible(host: str, skill_file: SkillFile, survey: Survey, *, force: bool) -> HostLinkResult:
    """Link or copy a skill to where a host reads it, if that is what the host lacks."""
    scan = survey.hosts[host]
    (verdict,) = verdicts_of(skill_file, survey, [host])
    if (result := _use_copy(skill_file, verdict, survey)) is not None:
        return result
    if verdict.visible:
        record_host(os.path.dirname(verdict.at), host)
        return HostLinkResult(host, "nothing", verdict.at)
    if not needs_placement(verdict, skill_file):
        return HostLinkResult(host, "nothing", verdict.at, _no_link(verdict, skill_file, survey))
    placement = placement_for(skill_file, scan, survey)
    if isinstance(placement, str):
        reason = f"{placement}: move it away and try again" if placement else "the host has no folder for a link"
        return HostLinkResult(host, "nothing", "", reason, refused=True)
    if ignoring := _hosts_ignoring_safeguard(placement, host, skill_file, survey):
        warning = _safeguard_warning(ignoring, placement.name)
        if not force:
            command = f"{link_command(skill_file, host, survey)} --force"
            return HostLinkResult(host, "nothing", "", f"{warning}; to do it anyway: {command}", refused=True)
        note(warning)
    in_doubt = _warn(host, placement, skill_file, survey)
    try:
        return _place(placement, skill_file, scan.profile)._replace(in_doubt=in_doubt)
    except OSError as error:
        return _failed(host, placement.path, error)._replace(in_doubt=in_doubt)


def _failed(host: str, path: str, error: OSError) -> HostLinkResult:
    reason = error.strerror.lower() if error.strerror else error
    return HostLinkResult(host, "nothing", path, f"failed: {reason}", refused=True)


# Links and copies ---------------------------------------------------------------------------------


def _place(placement: Placement, skill_file: SkillFile, profile: Profile) -> HostLinkResult:
    """Create a link or copy and record it; an earlier link made by `link` is restored if that fails."""
    host, path = profile.name, placement.path
    refuse_foreign_manifest(placement.root)
    contents = _contents(skill_file) if placement.how == "copy" else None
    entry = manifest_entry(path) or {}
    old_target = files.link_target(path) if own_kind(path) == "link" else None
    others = [other for other in hosts_of(entry) if other != host] if old_target is not None else []
    if old_target is not None:
        remove_link(path)
    try:
        folders = len(make_parents(placement.root)) + _created_folders(entry)
        if contents is None:
            target = _relative(os.path.dirname(skill_file.real_path), placement.root)
            make_link(path, target)
            made = {"how": "link", "target": target}
            result = HostLinkResult(host, "link", path, target=target)
        else:
            make_folder(path, contents.data, executables=contents.executables)
            source = _relative(os.path.dirname(skill_file.path), placement.root)
            made = {"how": "copy", **contents.recorded, "source": source}
            result = HostLinkResult(host, "copy", path, f"{_count(contents)}, {why_copy(skill_file, profile)}")
        record_entry(path, {**made, "folders": folders, "for": [*others, host]})
    except OSError:
        if old_target is not None and files.kind_at(path) is None:
            make_link(path, old_target)
        raise
    if old_target is None:
        return result
    replaced = "replaces the link made by skillshelf"
    return result._replace(detail=f"{replaced}; {result.detail}" if result.detail else replaced)


def _relative(folder: str, root: str) -> str:
    """Return the relative path from a root to a folder; both are resolved, because they may be reached by links."""
    return os.path.relpath(files.real_path(folder), files.real_path(root))


def _created_folders(entry: dict[str, object]) -> int:
    """Return the number of folders above a link or copy that were created for it and are removed with it."""
    folders = entry.get("folders", 0)
    return folders if isinstance(folders, int) else 0


def _contents(skill_file: SkillFile) -> CopyContents:
    return read_contents(os.path.dirname(skill_file.path), skill_file.real_path)


def _count(contents: CopyContents) -> str:
    left_out = f" without {plural(contents.left_out, 'link')}" if contents.left_out else ""
    return plural(len(contents.files), "file") + left_out


def copies_for(host: str, skill_file: SkillFile, survey: Survey) -> list[tuple[SkillFile, Verdict]]:
    """Return the copies of a skill that are in a place that a host reads, each with its verdict."""
    judged = [(copy, verdicts_of(copy, survey, [host])[0]) for copy in copies_of(skill_file, survey)]
    return [(copy, verdict) for copy, verdict in judged if not needs_placement(verdict, copy)]


def _use_copy(skill_file: SkillFile, verdict: Verdict, survey: Survey) -> HostLinkResult | None:
    """Serve a host by a copy that it reads: update a stale one, leave a modified one; None if it has no copy."""
    host, folder_of_skill = verdict.host, os.path.dirname(skill_file.path)
    found = [(copy_state(copy, skill_file), copy, seen) for copy, seen in copies_for(host, skill_file, survey)]
    # A stale copy is updated even if this host sees the skill itself: others see the copy.
    found.sort(key=lambda one: ("stale", "current", "modified").index(one[0]))
    if not found or (verdict.visible and found[0][0] != "stale"):
        return None
    state, copy, seen = found[0]
    folder = os.path.dirname(copy.path)
    if state == "modified":
        source = survey.short(folder_of_skill)
        reason = f"this copy was modified: move your changes to {source}, remove the copy and try again"
        return HostLinkResult(host, "nothing", os.path.dirname(seen.at), reason, refused=True)
    if not verdict.visible:
        record_host(folder, host, source=_relative(folder_of_skill, os.path.dirname(folder)))
    if state == "stale":
        return _update(folder, host, skill_file)
    # A host that will see the copy once it trusts the folder needs nothing else.
    is_served = seen.visible or seen.verdict == "untrusted"
    return HostLinkResult(host, "nothing", seen.at, "" if is_served else _no_link(seen, copy, survey))


def _update(path: str, host: str, skill_file: SkillFile) -> HostLinkResult:
    """Replace a stale copy by the present contents of the skill."""
    try:
        contents = _contents(skill_file)
        refuse_foreign_manifest(os.path.dirname(path))
        replace_folder(path, contents.data, executables=contents.executables)
        kept = {key: value for key, value in (manifest_entry(path) or {}).items() if key not in ("tree", "digest")}
        record_entry(path, {**kept, **contents.recorded})
    except OSError as error:
        return _failed(host, path, error)
    return HostLinkResult(host, "copy", path, f"updated because the skill changed: {_count(contents)}")


def _no_link(verdict: Verdict, skill_file: SkillFile, survey: Survey) -> str:
    """Explain that a host reads the place of a file already, and what to do instead of a link."""
    fix = fix_for(verdict, skill_file, survey)
    return f"a link would not help; {fix}" if fix else "a link would not help"


# Warnings -----------------------------------------------------------------------------------------


def _hosts_ignoring_safeguard(placement: Placement, host: str, skill_file: SkillFile, survey: Survey) -> list[str]:
    """Return the hosts that would begin to show their model a skill that its author keeps from models."""
    profile = survey.hosts[host].profile
    own = [host] if ignores_safeguard(document_of(skill_file, profile, survey).fields, profile) else []
    readers = [reader for reader in readers_ignoring_safeguard(placement, skill_file) if reader != host]
    if not own and not readers:
        return []
    return own + [verdict.host for verdict in verdicts_of(skill_file, survey, readers) if not verdict.visible]


def _safeguard_warning(hosts: Sequence[str], name: str) -> str:
    shown = ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")
    verb, model = ("ignores", "its model") if len(hosts) == 1 else ("ignore", "their models")
    return f"{shown} {verb} {SAFEGUARD}: {model} could call {name} without the user's request"


def _warn(host: str, placement: Placement, skill_file: SkillFile, survey: Survey) -> tuple[str, ...]:
    """Say where a link or copy really goes, and which hosts may no longer see the skill; return these hosts."""
    root = survey.short(placement.root)
    if real := real_root(placement.root, placement.label):
        note(f"{root} is really {real}")
    before = [verdict.host for verdict in verdicts_of(skill_file, survey, survey.hosts) if verdict.visible]
    then = after_link(placement, skill_file, survey, before)
    in_doubt = tuple(verdict.host for verdict in then if not verdict.visible)
    if in_doubt:
        hosts = ", ".join(in_doubt)
        note(f"with a {placement.how} in {root}, these hosts find two skills of this name, either may win: {hosts}")
        note(f"to undo this: skillshelf link {placement.name} --to {host} --remove")
    return in_doubt


# Removal ------------------------------------------------------------------------------------------


def remove(name: str, scan: HostScan) -> list[HostLinkResult]:
    """Remove the links and copies of a name that were made for a host; what was changed since stays."""
    host = scan.profile.name
    results, others = [], []
    for root in scan.roots:
        path = f"{root.path}/{name}"
        if (entry := manifest_entry(path)) is None:
            continue
        if (hosts := hosts_of(entry)) and host not in hosts:
            others += hosts
            continue
        left = [other for other in hosts if other != host]
        try:
            if left:
                record_entry(path, {**entry, "for": left})
                need = "needs" if len(left) == 1 else "need"
                results.append(HostLinkResult(host, "kept", path, f"{', '.join(left)} {need} it"))
            else:
                results.append(_remove(host, path))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            results.append(HostLinkResult(host, "nothing", path, f"not removed: {reason}"))
    if others and not results:
        return [HostLinkResult(host, "nothing", "", f"what is here was made for {', '.join(others)}")]
    return results or [HostLinkResult(host, "nothing", "", "skillshelf made no link or copy of this name here")]


def _remove(host: str, path: str) -> HostLinkResult:
    entry = manifest_entry(path) or {}
    kind = own_kind(path)
    exists = files.kind_at(path) is not None
    if kind == "link":
        remove_link(path)
    elif kind == "copy":
        contents = contents_at(path, f"{path}/{SKILL_FILE}")
        if contents is None or not is_as_made(contents, entry):
            return HostLinkResult(
                host, "nothing", path, "this copy was modified; remove it by hand if you do not need it"
            )
        if (source := copied_from(path)) and files.kind_at(f"{source}/{SKILL_FILE}") is None:
            reason = f"{source} is gone, so this may be the only copy left; remove it by hand"
            return HostLinkResult(host, "nothing", path, reason)
        remove_folder(path)
    elif exists:
        return HostLinkResult(host, "nothing", path, "this is not what skillshelf made; it was left unchanged")
    record_entry(path, None)
    remove_empty(os.path.dirname(path), _created_folders(entry))
    return HostLinkResult(host, "removed", path, "" if exists else "it was already gone")
