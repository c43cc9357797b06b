"""Plan the links and copies that make skills visible to hosts, and their removal, without writing anything.

Each pair of a skill and a host is in one of three lists: something is done for it, nothing has to be done, or it is
refused with a reason. Nothing is planned for a host that would not see the skill afterwards.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import load_system_policy
from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural
from skillshelf.hosts.copy_contents import CopyContents, read_contents
from skillshelf.hosts.explain import verdicts_of
from skillshelf.hosts.fixes import fix_for, link_command, needs_placement
from skillshelf.hosts.link_changes import LinkChange, how_it_stands, why_kept
from skillshelf.hosts.link_records import LinkRecord, place_of, read_state, record_at, with_manifests
from skillshelf.hosts.placement import (
    Obstacle,
    Placement,
    copies_of,
    copy_state,
    is_own_copy,
    leads_out,
    link_name,
    own_kind,
    placement_for,
    policy_refusal,
    readers_ignoring_safeguard,
    real_root,
    why_copy,
    why_not_copied,
)
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import SkillFile, Survey
from skillshelf.hosts.verdict import SAFEGUARD, document_of, ignores_safeguard
from skillshelf.hosts.what_if import after_link

__all__ = [
    "LinkAction",
    "LinkPlan",
    "LinkRefusal",
    "UnchangedLink",
    "copies_for",
    "plan_links",
    "plan_removal",
    "removable_names",
    "skills_to_link",
]


class LinkAction(NamedTuple):
    """One thing to do for one skill and one host; it is `shared` if it is already done for another host.

    Hosts `in_doubt` saw the skill and may not see it then.
    """

    kind: Literal["link", "copy", "update", "remove", "forget"]
    skill: str
    host: str
    source: str
    path: str
    reason: str
    change: LinkChange
    shared: bool = False
    in_doubt: tuple[str, ...] = ()


class UnchangedLink(NamedTuple):
    """A skill and a host for which nothing has to be done; `change` is one of the records alone."""

    skill: str
    host: str
    path: str
    detail: str = ""
    change: LinkChange | None = None


class LinkRefusal(NamedTuple):
    """A skill and a host for which nothing is done, and why."""

    skill: str
    host: str
    reason: str
    path: str = ""


class LinkPlan(NamedTuple):
    """The actions to take, the links that need none, and what is refused; `remarks` are for the reader."""

    actions: tuple[LinkAction, ...] = ()
    unchanged: tuple[UnchangedLink, ...] = ()
    refused: tuple[LinkRefusal, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def changes(self) -> list[LinkChange]:
        """The changes of this plan; what is made for several hosts is one change."""
        found: dict[str, LinkChange] = {}
        planned = [one.change for one in self.unchanged] + [one.change for one in self.actions]
        for change in (change for change in planned if change is not None):
            known = found.get(change.path)
            if known is not None and known.after is not None and change.after is not None:
                hosts = tuple(dict.fromkeys((*known.after.hosts, *change.after.hosts)))
                change = change._replace(after=change.after._replace(hosts=hosts))
            found[change.path] = change
        return list(found.values())


def skills_to_link(survey: Survey, *, hidden: bool = False) -> list[list[SkillFile]]:
    """Return every skill in a root of the project or the user, as its files: those of one name and one text.

    Without `hidden`, those in folders that begin with a dot are left out: a host keeps its own skills there.
    """
    roots = {root.path for scan in survey.hosts.values() for root in scan.roots}
    skills: dict[tuple[str, tuple[bytes, int]], list[SkillFile]] = {}
    for skill_file in survey.skill_files:
        if not skill_file.base or skill_file.problem or is_own_copy(skill_file, survey.environment):
            continue
        if hidden or not all(_is_hidden(path, roots) for path in skill_file.paths):
            skills.setdefault((link_name(skill_file), skill_file.text), []).append(skill_file)
    return list(skills.values())


def _is_hidden(path: str, roots: Collection[str]) -> bool:
    """Return true if a folder between a root and a file begins with a dot."""
    folder = os.path.dirname(path)
    while folder not in roots and len(folder) > 1:
        if os.path.basename(folder).startswith("."):
            return True
        folder = os.path.dirname(folder)
    return False


def plan_links(
    skills: Sequence[Sequence[SkillFile]],
    hosts: Sequence[str],
    survey: Survey,
    *,
    force: bool = False,
    one_of_a_name: bool = False,
) -> LinkPlan:
    """Plan what makes each skill visible to each host.

    The survey is of all hosts. `force` also plans for hosts that ignore the author's safeguard; with `one_of_a_name`
    a host that sees another skill of the name gets none.
    """
    actions: list[LinkAction] = []
    unchanged: list[UnchangedLink] = []
    refused: list[LinkRefusal] = []
    remarks: list[str] = []
    system = load_system_policy(survey.environment)
    for skill_files in skills:
        planned: list[tuple[Placement, LinkAction]] = []
        for host in sorted(hosts, key=_follows_links):
            if system.files and (denied := policy_refusal(skill_files[0], host, system)):
                refused.append(LinkRefusal(link_name(skill_files[0]), host, denied))
                continue
            planner = _PairPlanner(skill_files, host, survey, force=force, one_of_a_name=one_of_a_name)
            taken = next((one for one in actions if (one.skill, one.host) == (planner.name, host)), None)
            if taken is not None:
                reason = f"another skill of this name is linked for it, from {survey.short(taken.source)}"
                refused.append(LinkRefusal(planner.name, host, reason))
                continue
            result = planner.plan(planned)
            remarks += planner.remarks
            if isinstance(result, LinkAction):
                actions.append(result)
            elif isinstance(result, UnchangedLink):
                unchanged.append(result)
            else:
                refused.append(result)
    return LinkPlan(tuple(actions), tuple(unchanged), tuple(refused), tuple(dict.fromkeys(remarks)))


def _follows_links(host: str) -> bool:
    """Return false for a host that may need a copy; these come first, because a copy serves the others as well."""
    profile = HOSTS[host]
    return "never" not in (profile.user_links, profile.other_links) and "links" not in profile.unknown


def copies_for(host: str, skill_file: SkillFile, survey: Survey) -> list[tuple[SkillFile, Verdict]]:
    """Return the copies of a skill that are in a place that a host reads, each with its verdict."""
    judged = [(copy, verdicts_of(copy, survey, [host])[0]) for copy in copies_of(skill_file, survey)]
    return [(copy, verdict) for copy, verdict in judged if not needs_placement(verdict, copy)]


# One skill and one host ---------------------------------------------------------------------------


class _PairPlanner:
    """Plans what one skill needs to be visible to one host."""

    def __init__(
        self, skill_files: Sequence[SkillFile], host: str, survey: Survey, *, force: bool, one_of_a_name: bool
    ) -> None:
        self.skill_file = skill_files[0]
        self.host = host
        self.survey = survey
        self.force = force
        self.one_of_a_name = one_of_a_name
        self.name = link_name(self.skill_file)
        self.remarks: list[str] = []
        judged = [verdicts_of(one, survey, [host])[0] for one in skill_files]
        self.verdict = max(judged, key=lambda verdict: (False, None, True).index(verdict.visible))

    def plan(self, planned: list[tuple[Placement, LinkAction]]) -> LinkAction | UnchangedLink | LinkRefusal:
        """Return what to do; add a new link or copy to those that are planned for this skill."""
        if (served := self._by_copy()) is not None:
            return served
        if self.verdict.visible:
            return self._unchanged(os.path.dirname(self.verdict.at))
        if not needs_placement(self.verdict, self.skill_file):
            return self._refused(self._no_link(self.verdict, self.skill_file), self.verdict.at)
        for placement, action in planned:
            (then,) = after_link(placement, self.skill_file, self.survey, [self.host])
            if then.visible and action.change.after is not None:
                after = action.change.after._replace(hosts=(*action.change.after.hosts, self.host))
                reason = f"the {action.kind} for {action.host} serves it too"
                change = action.change._replace(after=after)
                return action._replace(host=self.host, reason=reason, change=change, shared=True)
        return self._new(planned)

    def _refused(self, reason: str, path: str = "") -> LinkRefusal:
        return LinkRefusal(self.name, self.host, reason, path)

    def _unchanged(self, folder: str) -> UnchangedLink:
        """Return that a host sees a skill; what was made for other hosts is recorded as needed by this one too."""
        record = record_at(folder, self.survey.environment)
        change = None
        is_own = record is not None and how_it_stands(record.path, record) == "as-made"
        if record is not None and is_own and self.host not in record.hosts:
            after = record._replace(hosts=(*record.hosts, self.host))
            change = LinkChange(record.path, record, after)
        return UnchangedLink(self.name, self.host, self.verdict.at, change=change)

    def _by_copy(self) -> LinkAction | UnchangedLink | LinkRefusal | None:
        """Serve a host by a copy that it reads: update a stale one, leave a modified one; None if it has no copy."""
        survey, environment = self.survey, self.survey.environment
        found = [
            (copy_state(copy, self.skill_file, environment), copy, seen)
            for copy, seen in copies_for(self.host, self.skill_file, survey)
        ]
        # A stale copy is updated even if this host sees the skill itself: others see the copy.
        found.sort(key=lambda one: ("stale", "current", "modified").index(one[0]))
        if not found or (self.verdict.visible and found[0][0] != "stale"):
            return None
        state, copy, seen = found[0]
        folder = os.path.dirname(copy.path)
        record = record_at(folder, environment)
        if state == "modified" or record is None:
            source = survey.short(os.path.dirname(self.skill_file.path))
            reason = f"this copy was modified: move your changes to {source}, remove the copy and try again"
            return self._refused(reason, os.path.dirname(seen.at))
        hosts = record.hosts if self.verdict.visible or self.host in record.hosts else (*record.hosts, self.host)
        after = record._replace(hosts=hosts, source=files.real_path(os.path.dirname(self.skill_file.path)))
        if state == "stale":
            return self._update(folder, record, after)
        # A host that will see the copy once it trusts the folder needs nothing else.
        if not seen.visible and seen.verdict != "untrusted":
            return self._refused(self._no_link(seen, copy), seen.at)
        change = LinkChange(record.path, record, after) if after != record else None
        return UnchangedLink(self.name, self.host, seen.at, change=change)

    def _update(self, folder: str, record: LinkRecord, after: LinkRecord) -> LinkAction | LinkRefusal:
        """Return the replacement of a stale copy by the present contents of the skill."""
        contents = self._contents()
        if isinstance(contents, str):
            return self._refused(contents, folder)
        after = after._replace(tree=contents.recorded.get("tree"), digest=contents.recorded.get("digest"))
        reason = f"updated because the skill changed: {_count(contents)}"
        change = LinkChange(record.path, record, after, contents)
        return self._action("update", folder, reason, change)

    def _new(self, planned: list[tuple[Placement, LinkAction]]) -> LinkAction | LinkRefusal:
        """Return a new link or copy, if the host will see the skill then."""
        survey = self.survey
        placement = placement_for(self.skill_file, survey.hosts[self.host], survey)
        if isinstance(placement, Obstacle):
            what = placement.what
            return self._refused(f"{what} and try again" if what else "the host has no folder for a link")
        if self.one_of_a_name and (other := self._namesake()) is not None:
            return self._refused(f"it sees another skill of this name, {survey.short(other)}: rename one of them")
        if warning := self._safeguard(placement):
            return self._refused(warning)
        (then,) = after_link(placement, self.skill_file, survey, [self.host])
        if then.visible is False and then.verdict != "hidden-from-model":
            return self._refused(f"{placement.how} not made, it would be {then.verdict}; {self._first_steps()}")
        contents = self._contents() if placement.how == "copy" else None
        if isinstance(contents, str):
            return self._refused(contents, placement.path)
        action = self._action_for(placement, contents)._replace(in_doubt=self._in_doubt(placement))
        planned.append((placement, action))
        return action

    def _action_for(self, placement: Placement, contents: CopyContents | None) -> LinkAction:
        environment = self.survey.environment
        place, folder = place_of(placement.path), files.real_path(os.path.dirname(self.skill_file.path))
        known = record_at(place, environment)
        is_replaced = own_kind(placement.path, environment) == "link"
        before = known if is_replaced or files.kind_at(place) is None else None
        others = tuple(host for host in before.hosts if host != self.host) if before and is_replaced else ()
        hosts = (*others, self.host)
        if contents is None:
            folder = os.path.dirname(self.skill_file.real_path)
            target = os.path.relpath(folder, os.path.dirname(place))
            after = LinkRecord(place, "link", folder, target=target, hosts=hosts)
            reason = ""
        else:
            tree, digest = contents.recorded.get("tree"), contents.recorded.get("digest")
            after = LinkRecord(place, "copy", folder, tree=tree, digest=digest, hosts=hosts)
            reason = f"{_count(contents)}, {why_copy(self.skill_file, self._profile)}"
        if is_replaced:
            reason = "replaces the link made by skillshelf" + (f"; {reason}" if reason else "")
        return self._action(placement.how, placement.path, reason, LinkChange(place, before, after, contents))

    def _action(
        self, kind: Literal["link", "copy", "update"], path: str, reason: str, change: LinkChange
    ) -> LinkAction:
        source = os.path.dirname(self.skill_file.path)
        return LinkAction(kind, self.name, self.host, source, path, reason, change)

    @property
    def _profile(self) -> Profile:
        return self.survey.hosts[self.host].profile

    def _contents(self) -> CopyContents | str:
        """Return the files for a copy, or why they cannot be read."""
        if obstacle := why_not_copied(self.skill_file, self.survey).what:
            return f"{obstacle} and try again"
        try:
            return read_contents(os.path.dirname(self.skill_file.path), self.skill_file.real_path)
        except OSError as error:
            return f"failed: {error.strerror.lower() if error.strerror else error}"

    def _namesake(self) -> str | None:
        """Return the path of another skill that the host sees under this name."""
        state = self.survey.state_about(self.host, self.skill_file)
        seen = (skill for skill in state.by_name.get(self.name, ()) if skill.hidden is None)
        return next((skill.path for skill in seen if skill.real_path != self.skill_file.real_path), None)

    def _no_link(self, verdict: Verdict, skill_file: SkillFile) -> str:
        """Explain that a host reads the place of a file already, and what to do instead of a link."""
        fix = fix_for(verdict, skill_file, self.survey)
        return f"a link would not help; {fix}" if fix else "a link would not help"

    def _first_steps(self) -> str:
        fix = fix_for(self.verdict, self.skill_file, self.survey)
        return f"first: {fix}" if fix else "no step is known that would help"

    # Warnings

    def _safeguard(self, placement: Placement) -> str:
        """Return why a skill that its author keeps from models is not linked; with `force` only a remark is made."""
        ignoring = self._hosts_ignoring_safeguard(placement)
        if not ignoring:
            return ""
        warning = _safeguard_warning(ignoring, placement.name)
        if self.force:
            self.remarks.append(warning)
            return ""
        return f"{warning}; to do it anyway: {link_command(self.skill_file, self.host, self.survey)} --force"

    def _hosts_ignoring_safeguard(self, placement: Placement) -> list[str]:
        """Return the hosts that would begin to show their model a skill that its author keeps from models."""
        fields = document_of(self.skill_file, self._profile, self.survey).fields
        own = [self.host] if ignores_safeguard(fields, self._profile) else []
        readers = [one for one in readers_ignoring_safeguard(placement, self.skill_file) if one != self.host]
        if not own and not readers:
            return []
        judged = verdicts_of(self.skill_file, self.survey, readers)
        return own + [verdict.host for verdict in judged if not verdict.visible]

    def _in_doubt(self, placement: Placement) -> tuple[str, ...]:
        """Say where a link or copy really goes, and return the hosts that may no longer see the skill then."""
        survey, root = self.survey, self.survey.short(placement.root)
        if real := real_root(placement.root, placement.label):
            self.remarks.append(f"{root} is really {real}")
        before = [one.host for one in verdicts_of(self.skill_file, survey, survey.hosts) if one.visible]
        then = after_link(placement, self.skill_file, survey, before)
        in_doubt = tuple(verdict.host for verdict in then if not verdict.visible)
        if in_doubt:
            hosts = ", ".join(in_doubt)
            self.remarks += [
                f"with a {placement.how} in {root}, these hosts find two skills of this name, either may win: {hosts}",
                f"to undo this: skillshelf link {placement.name} --to {self.host} --remove",
            ]
        return in_doubt


def _safeguard_warning(hosts: Sequence[str], name: str) -> str:
    shown = ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")
    verb, model = ("ignores", "its model") if len(hosts) == 1 else ("ignore", "their models")
    return f"{shown} {verb} {SAFEGUARD}: {model} could call {name} without the user's request"


def _count(contents: CopyContents) -> str:
    left_out = f" without {plural(contents.left_out, 'link')}" if contents.left_out else ""
    return plural(len(contents.files), "file") + left_out


# Removal ------------------------------------------------------------------------------------------


def plan_removal(names: Sequence[str] | None, hosts: Sequence[str], survey: Survey) -> LinkPlan:
    """Plan the removal of what was made for these hosts in their roots: of some names, or of all.

    The record of something that somebody else has replaced is forgotten, and what is there stays. A root of the project
    that is reached by a link out of it belongs to somebody else.
    """
    actions: list[LinkAction] = []
    unchanged: list[UnchangedLink] = []
    refused: list[LinkRefusal] = []
    own = [root for host in hosts for root in survey.hosts[host].roots if not leads_out(root, survey.environment)]
    roots = dict.fromkeys(root.path for root in own)
    for record in _records_in(roots, survey):
        name = os.path.basename(record.path)
        mine = [host for host in hosts if host in (record.hosts or hosts)]
        if (names is not None and name not in names) or not mine:
            continue
        left = tuple(host for host in record.hosts if host not in hosts)
        if left:
            need = "needs" if len(left) == 1 else "need"
            change = LinkChange(record.path, record, record._replace(hosts=left))
            detail = f"{', '.join(left)} {need} it"
            unchanged += [UnchangedLink(name, host, record.path, detail, change) for host in mine]
        elif how_it_stands(record.path, record) == "foreign":
            change = LinkChange(record.path, record, None, forgets=True)
            actions += [_removal("forget", record, host, _FOREIGN, change) for host in mine]
        elif reason := why_kept(record):
            refused += [LinkRefusal(name, host, reason, record.path) for host in mine]
        else:
            detail = "" if files.kind_at(record.path) is not None else "it was already gone"
            change = LinkChange(record.path, record, None)
            actions += [_removal("remove", record, host, detail, change) for host in mine]
    return LinkPlan(tuple(actions), tuple(unchanged), tuple(refused))


_FOREIGN = "what is there now is not what skillshelf made; it stays"


def _removal(
    kind: Literal["remove", "forget"], record: LinkRecord, host: str, reason: str, change: LinkChange
) -> LinkAction:
    return LinkAction(kind, os.path.basename(record.path), host, record.source or "", record.path, reason, change)


def removable_names(hosts: Sequence[str], survey: Survey) -> list[str]:
    """Return the names of all that is recorded in the roots of these hosts."""
    roots = dict.fromkeys(root.path for host in hosts for root in survey.hosts[host].roots)
    return sorted({os.path.basename(record.path) for record in _records_in(roots, survey)})


def _records_in(roots: Iterable[str], survey: Survey) -> list[LinkRecord]:
    """Return the records of links and copies in some roots, those of earlier versions included."""
    real = {files.real_path(root) for root in roots}
    state, _ = with_manifests(read_state(survey.environment), real)
    return [record for record in state.links if os.path.dirname(record.path) in real]
