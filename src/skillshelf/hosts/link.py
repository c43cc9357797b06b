"""A skill and a host to a link or a copy where that host looks; only our own is replaced or removed.

A link or a copy that somebody else made, or changed since, is left alone.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.config.hosts import HOSTS
from skillshelf.core import files
from skillshelf.core.atomic_write import (
    make_folder,
    make_link,
    make_parents,
    remove_empty,
    remove_folder,
    remove_link,
    replace_folder,
)
from skillshelf.core.console import PathDisplay, note
from skillshelf.core.environment import Environment
from skillshelf.core.text import visible
from skillshelf.errors import AmbiguousSkill
from skillshelf.hosts.explain import find, verdicts_of
from skillshelf.hosts.fixes import command_name, fix_for, wants_put
from skillshelf.hosts.placement import (
    CopyContents,
    Placement,
    careless_readers,
    contents_of,
    copied_from,
    copies_of,
    digest_at,
    digest_of,
    hosts_of,
    in_the_way,
    is_own_link,
    keep_for,
    manifest_entry,
    put_for,
    real_root,
    record_entry,
    refuse_foreign,
    sources,
    standing_of,
    why_copy,
)
from skillshelf.hosts.simulate import after_link
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import HostState, SkillFile, Survey
from skillshelf.hosts.verdict import SAFEGUARD, document_of, ignored_safeguard

__all__ = [
    "LinkAction",
    "LinkResult",
    "claim",
    "hand_to",
    "in_order",
    "made_line",
    "make",
    "on_copies",
    "refusal",
    "renew",
    "take_back",
    "the_one",
]


How = Literal["link", "copy", "removed", "kept", "nothing"]


class LinkAction(NamedTuple):
    """What was done for one host, where, and what there is to say about it; `refused` if it should have been done."""

    host: str
    how: How
    path: str
    detail: str
    refused: bool = False


def refusal(host: str, reason: str, path: str = "") -> LinkAction:
    """Nothing was done for a host, although it needs something."""
    return LinkAction(host, "nothing", path, reason, refused=True)


def made_line(one: LinkAction, seen: bool | None = None) -> str:
    """What was done, for a person, and whether the host sees the skill now."""
    words = {"link": "linked", "copy": "copied", "removed": "removed", "kept": "left", "nothing": "nothing done"}
    detail = f" ({one.detail})" if one.detail else ""
    if one.how == "nothing" and seen and not one.refused:
        return visible(f"{one.host}: sees it already, as {one.path}{detail}")
    now = {True: " - its model is told of it", False: " - its model is not told of it", None: ""}[seen]
    return visible(f"{one.host}: {words[one.how]}{' ' + one.path if one.path else ''}{detail}{now}")


def make(skill_file: SkillFile, state: HostState, environment: Environment) -> LinkAction:
    """Put the skill into a root of the host: a relative link, or a copy where that is not sure to be followed."""
    host = state.profile.name
    put = put_for(skill_file, state, environment)
    if put is None:
        taken = in_the_way(skill_file, state, environment)
        return refusal(host, f"{taken}: move it away and try again" if taken else "it has no root to put a link in")
    try:
        refuse_foreign(put.root)
        made = _replaced(put, host, skill_file) if is_own_link(put.path) else _MAKERS[put.how](put, [host], skill_file)
        return made._replace(detail=f"{made.detail}, {why_copy(skill_file, state)}") if made.how == "copy" else made
    except OSError as error:
        return _not_made(host, put.path, error)


def _not_made(host: str, path: str, error: OSError) -> LinkAction:
    return refusal(host, f"not made: {error.strerror.lower() if error.strerror else error}", path)


def renew(copy: SkillFile, host: str, skill_file: SkillFile) -> LinkAction:
    """Make a copy of ours again from the skill, which changed since."""
    path = os.path.dirname(copy.path)
    root, name = os.path.split(path)
    try:
        contents = _contents(skill_file)
        refuse_foreign(root)
        replace_folder(path, contents.files)
        record_entry(root, name, {**(manifest_entry(root, name) or {}), "digest": digest_of(contents)})
    except OSError as error:
        return _not_made(host, path, error)
    return LinkAction(host, "copy", path, f"anew, since the skill changed: {_counted(contents)}")


def claim(copy: SkillFile, host: str, skill_file: SkillFile) -> None:
    """Note that a host needs a copy of ours too, and where the skill is now."""
    root, name = os.path.split(os.path.dirname(copy.path))
    entry = manifest_entry(root, name) or {}
    hosts = hosts_of(entry)
    now = {**entry, "source": _way(os.path.dirname(skill_file.path), root)}
    now["for"] = hosts if host in hosts else [*hosts, host]
    if now != entry:
        record_entry(root, name, now)


def _replaced(put: Placement, host: str, skill_file: SkillFile) -> LinkAction:
    """Make something in the place of a link of our own, which is back there if that fails."""
    target = files.link_target(put.path)
    hosts = hosts_of(manifest_entry(put.root, put.name) or {})
    remove_link(put.path)
    try:
        made = _MAKERS[put.how](put, [*(other for other in hosts if other != host), host], skill_file)
    except OSError:
        make_link(put.path, target)
        raise
    return made._replace(host=host, detail=f"in place of the link that skillshelf made; {made.detail}")


def _link(put: Placement, hosts: list[str], skill_file: SkillFile) -> LinkAction:
    made = make_parents(put.root)
    target = _way(os.path.dirname(skill_file.real_path), put.root)
    make_link(put.path, target)
    _record(put, {"how": "link", "target": target, "folders": len(made), "for": hosts})
    return LinkAction(hosts[-1], "link", put.path, f"leads to {target}")


def _way(folder: str, root: str) -> str:
    """How to go from a root to a folder, from where both really are: the way to them may lead through links."""
    return os.path.relpath(files.real_path(folder), files.real_path(root))


def _copy(put: Placement, hosts: list[str], skill_file: SkillFile) -> LinkAction:
    contents = _contents(skill_file)
    made = make_parents(put.root)
    make_folder(put.path, contents.files)
    source = _way(os.path.dirname(skill_file.path), put.root)
    entry = {"how": "copy", "digest": digest_of(contents), "source": source, "folders": len(made), "for": hosts}
    _record(put, entry)
    return LinkAction(hosts[-1], "copy", put.path, _counted(contents))


def _contents(skill_file: SkillFile) -> CopyContents:
    return contents_of(os.path.dirname(skill_file.path), skill_file.real_path)


def _counted(contents: CopyContents) -> str:
    """How many files were copied, and how much was not."""
    count = "1 file" if len(contents.files) == 1 else f"{len(contents.files)} files"
    links = "1 link" if contents.left_out == 1 else f"{contents.left_out} links"
    return f"{count} without the {links} in it" if contents.left_out else count


_MAKERS: Mapping[str, Callable[[Placement, list[str], SkillFile], LinkAction]] = {"link": _link, "copy": _copy}
"""How each kind is made, for these hosts, the last of which asked for it."""


def _record(put: Placement, entry: Mapping[str, Any]) -> None:
    """Note what was made; the folders that were made for what it replaces are still ours."""
    before = manifest_entry(put.root, put.name) or {}
    folders = before.get("folders", 0)
    record_entry(
        put.root, put.name, {**entry, "folders": entry["folders"] + (folders if isinstance(folders, int) else 0)}
    )


# Taking back --------------------------------------------------------------------------------------


def take_back(name: str, state: HostState) -> list[LinkAction]:
    """Remove what `make` put into the roots of a host under a name; what was changed since stays."""
    host = state.profile.name
    done, foreign = [], []
    for root in state.roots:
        entry = manifest_entry(root.path, name)
        if entry is not None and (hosts := hosts_of(entry)) and host not in hosts:
            foreign += hosts
        elif entry is not None:
            path = f"{root.path}/{name}"
            try:
                done.append(_give_up(host, root.path, path, entry))
            except OSError as error:
                done.append(LinkAction(host, "nothing", path, f"not removed: {(error.strerror or str(error)).lower()}"))
    if foreign and not done:
        return [LinkAction(host, "nothing", "", f"what there is was made for {', '.join(foreign)}")]
    return done or [LinkAction(host, "nothing", "", "skillshelf made no link or copy of that name here")]


def _give_up(host: str, root: str, path: str, entry: Mapping[str, Any]) -> LinkAction:
    """Remove what was made for a host, unless another one needs it too."""
    others = [other for other in hosts_of(entry) if other != host]
    if not others:
        return _remove(host, root, path, entry)
    record_entry(root, os.path.basename(path), {**entry, "for": others})
    return LinkAction(host, "kept", path, f"{', '.join(others)} {'needs' if len(others) == 1 else 'need'} it")


def _remove(host: str, root: str, path: str, entry: Mapping[str, Any]) -> LinkAction:
    kind = files.kind_at(path)
    if kind == "link" and entry.get("how") == "link" and files.link_target(path) == entry.get("target"):
        remove_link(path)
    elif kind == "folder" and entry.get("how") == "copy":
        if digest_at(path, f"{path}/{SKILL_FILE}") != entry.get("digest"):
            return LinkAction(
                host, "nothing", path, "the copy was changed since; remove it by hand if you do not need it"
            )
        if (source := copied_from(path)) and files.kind_at(f"{source}/{SKILL_FILE}") is None:
            return LinkAction(
                host, "nothing", path, f"{source} is gone, so this may be all there is; remove it by hand"
            )
        remove_folder(path)
    elif kind is not None:
        return LinkAction(host, "nothing", path, "this is not what skillshelf made; it was left alone")
    record_entry(root, os.path.basename(path), None)
    folders = entry.get("folders", 0)
    remove_empty(root, folders if isinstance(folders, int) else 0)
    return LinkAction(host, "removed", path, "" if kind else "it was gone already")


class LinkResult(NamedTuple):
    """What was done for a host, and who saw the skill before and is in doubt since."""

    made: LinkAction
    doubtful: frozenset[str] = frozenset()


def the_one(wanted: str, found: Sequence[SkillFile], survey: Survey) -> SkillFile:
    """The one skill that is meant by files of a name; raises where there are several."""
    meant = sources(found, survey)
    if len(meant) > 1:
        raise AmbiguousSkill(wanted, tuple(skill_file.path for skill_file in meant))
    return meant[0]


def in_order(hosts: Sequence[str]) -> list[str]:
    """Hosts that may want a copy first: it serves those who follow links as well."""
    return sorted(hosts, key=lambda name: not _may_want_copy(name))


def _may_want_copy(host: str) -> bool:
    profile = HOSTS[host]
    return "never" in (profile.user_links, profile.other_links) or "links" in profile.unknown


def hand_to(host: str, skill_file: SkillFile, environment: Environment, *, even_so: bool = False) -> LinkResult:
    """Do for one host what it lacks; `even_so` hands a skill also to a host that does not heed its author."""
    # Looked at again: what was made for one host may be what the next one needs, too.
    survey, (now, *_) = find(skill_file.real_path, environment, list(HOSTS))
    state = survey.states[host]
    (verdict,) = verdicts_of(now, survey, [host])
    if (made := _by_copy(host, now, verdict, survey)) is not None:
        return LinkResult(made)
    if verdict.visible:
        keep_for(host, verdict.at)
        return LinkResult(LinkAction(host, "nothing", verdict.at, ""))
    if not wants_put(verdict, now):
        return LinkResult(LinkAction(host, "nothing", verdict.at, _no_link(verdict, now, survey)))
    put = put_for(now, state, environment)
    if put is None:
        return LinkResult(make(now, state, environment))
    if careless := _careless(put, host, now, survey):
        if not even_so:
            command = f"skillshelf link {command_name(now, survey)} --to {host} --even-so"
            return LinkResult(refusal(host, f"{_would_ignore(careless, put.name)}; if you want that: {command}"))
        note(_would_ignore(careless, put.name))
    doubtful = _warn(host, put, now, survey)
    return LinkResult(make(now, state, environment), doubtful)


# Copies that there are ----------------------------------------------------------------------------


def on_copies(skill_file: SkillFile, survey: Survey, host: str) -> list[tuple[SkillFile, Verdict]]:
    """The copies of a skill that lie where a host looks, with what it makes of each."""
    judged = [(copy, verdicts_of(copy, survey, [host])[0]) for copy in copies_of(skill_file, survey)]
    return [(copy, verdict) for copy, verdict in judged if not wants_put(verdict, copy)]


def _by_copy(host: str, skill_file: SkillFile, verdict: Verdict, survey: Survey) -> LinkAction | None:
    """What was done for a host that has a copy: one that fell behind is made anew, one that was edited stays."""
    copies = [(copy, seen, standing_of(copy, skill_file)) for copy, seen in on_copies(skill_file, survey, host)]
    for copy, _, standing in copies:
        if standing == "behind":
            if not verdict.visible:
                claim(copy, host, skill_file)
            return renew(copy, host, skill_file)
    if verdict.visible:
        return None
    for copy, seen, standing in sorted(copies, key=lambda one: one[2] == "edited"):
        if standing == "edited":
            source = PathDisplay(survey.environment.cwd, survey.environment.home).short(
                os.path.dirname(skill_file.path)
            )
            why = f"this copy was edited since it was made: put what you need into {source}, remove the copy, try again"
            return refusal(host, why, os.path.dirname(seen.at))
        claim(copy, host, skill_file)
        # What a host will see once it trusts the folder needs nothing else either.
        is_there = seen.visible or seen.verdict == "untrusted"
        return LinkAction(host, "nothing", seen.at, "" if is_there else _no_link(seen, copy, survey))
    return None


def _no_link(verdict: Verdict, skill_file: SkillFile, survey: Survey) -> str:
    """That a file already lies where a host looks, and what keeps it out there."""
    fix = fix_for(verdict, skill_file, survey.states[verdict.host], survey)
    return f"no link would help; {fix}" if fix else "no link would help"


# What is said before ------------------------------------------------------------------------------


def _careless(put: Placement, host: str, skill_file: SkillFile, survey: Survey) -> list[str]:
    """The hosts that would begin to tell their model about a skill which its author keeps from models."""
    profile = survey.states[host].profile
    own = [host] if ignored_safeguard(document_of(skill_file, profile, survey).fields, profile) else []
    readers = [reader for reader in careless_readers(put, skill_file) if reader != host]
    if not own and not readers:
        return []
    return own + [verdict.host for verdict in verdicts_of(skill_file, survey, readers) if not verdict.visible]


_NAMED = 3


def _would_ignore(hosts: Sequence[str], name: str) -> str:
    more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
    one = len(hosts) == 1
    return (
        f"{', '.join(hosts[:_NAMED])}{more} {'ignores' if one else 'ignore'} {SAFEGUARD}: "
        f"{'its model' if one else 'their models'} could call {name} unasked"
    )


def _warn(host: str, put: Placement, skill_file: SkillFile, survey: Survey) -> frozenset[str]:
    """Say beforehand which hosts will not be sure of a skill, and where it really goes; returns these hosts."""
    where = PathDisplay(survey.environment.cwd, survey.environment.home)
    if real := real_root(put.root, put.label):
        note(f"{where.short(put.root)} is really {real}")
    before = [verdict.host for verdict in verdicts_of(skill_file, survey, survey.states) if verdict.visible]
    doubtful = [verdict.host for verdict in after_link(put, skill_file, survey, before) if not verdict.visible]
    if doubtful:
        what = f"a {put.how} in {where.short(put.root)}"
        note(f"with {what} these have two skills of that name, and which one wins is open: {', '.join(doubtful)}")
        note(f"to take it back: skillshelf link {put.name} --to {host} --remove")
    return frozenset(doubtful)
