"""Carry out a plan of links and copies, and take back what its host does not see."""

from collections.abc import Sequence
from typing import Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import note
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import AmbiguousSkill
from skillshelf.hosts.explain import verdicts_of
from skillshelf.hosts.link_changes import LinkChange, carry_out
from skillshelf.hosts.link_plan import LinkAction, LinkPlan, LinkRefusal, UnchangedLink, plan_links, plan_removal
from skillshelf.hosts.link_records import record_at
from skillshelf.hosts.placement import link_name, sources
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import SkillFile, Survey, skill_file_at, take_survey

__all__ = ["HostLinkResult", "apply_plan", "link_to", "only_skill", "remove", "result_line", "verdict_on"]


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


def result_line(result: HostLinkResult, *, is_visible: bool | None = None, planned: bool = False) -> str:
    """Describe a result, or what is planned, in one line."""
    host, how, path, detail = result[:4]
    if how == "nothing" and is_visible and not result.refused:
        return visible(f"{host}: already visible as {path}" + (f" ({detail})" if detail else ""))
    words = {"link": "linked", "copy": "copied to", "removed": "removed", "kept": "kept", "nothing": "no change"}
    if planned:
        words |= {"link": "would link", "copy": "would copy to", "removed": "would remove", "kept": "would keep"}
    line = f"{host}: {words[how]}{':' if how == 'nothing' and path else ''}{' ' + path if path else ''}"
    line += f" -> {result.target}" if result.target else ""
    remarks = [remark for remark in (detail, "now visible" if is_visible else "") if remark]
    return visible(f"{line} ({'; '.join(remarks)})" if remarks else line)


def only_skill(wanted: str, found: Sequence[SkillFile], survey: Survey) -> SkillFile:
    """Return the one skill among files; a copy made by skillshelf counts as its source. Raise if several remain."""
    meant = sources(found, survey)
    if len(meant) > 1:
        raise AmbiguousSkill(wanted, tuple(skill_file.path for skill_file in meant))
    return meant[0]


# A plan -------------------------------------------------------------------------------------------


def apply_plan(plan: LinkPlan, survey: Survey) -> tuple[LinkPlan, Survey]:
    """Carry out a plan, whole or not at all; return what is true then, and a survey of all hosts afterwards.

    A link or copy that its host does not see is taken back and refused. Raise an OSError or a SkillError if the plan
    cannot be carried out.
    """
    environment = survey.environment
    for remark in plan.remarks:
        note(remark)
    carry_out(plan.changes, environment)
    if all(action.kind in ("remove", "forget") for action in plan.actions):
        return plan, survey
    survey = take_survey(environment, list(HOSTS))
    judged = [(action, _unseen(action, survey)) for action in plan.actions]
    unseen = [action for action, verdict in judged if verdict is not None]
    if not unseen:
        return plan, survey
    carry_out(_taken_back(unseen, survey), environment)
    refused = [
        LinkRefusal(one.skill, one.host, f"taken back, it was still {verdict.verdict}: {verdict.detail}", one.path)
        for one, verdict in judged
        if verdict is not None
    ]
    kept = tuple(action for action, verdict in judged if verdict is None)
    return plan._replace(actions=kept, refused=(*plan.refused, *refused)), take_survey(environment, list(HOSTS))


def _unseen(action: LinkAction, survey: Survey) -> Verdict | None:
    """Return the verdict of a host that does not see what was made for it."""
    if action.kind not in ("link", "copy"):
        return None
    verdict = verdict_on(action.path, action.host, survey)
    if verdict is None or verdict.visible is not False or verdict.verdict == "hidden-from-model":
        return None
    return verdict


def verdict_on(path: str, host: str, survey: Survey) -> Verdict | None:
    """Judge the skill at a path for a host; None if there is none."""
    made = skill_file_at(path)
    found = survey.by_path.get(made.real_path) if made is not None else None
    return verdicts_of(found, survey, [host])[0] if found is not None else None


def _taken_back(actions: Sequence[LinkAction], survey: Survey) -> list[LinkChange]:
    """Return the changes that take back what was made for hosts that do not see it."""
    left: dict[str, tuple[str, ...]] = {}
    changes = []
    for action in actions:
        if (record := record_at(action.path, survey.environment)) is not None:
            hosts = left.get(record.path, record.hosts)
            left[record.path] = tuple(host for host in hosts if host != action.host)
    for path, hosts in left.items():
        record = record_at(path, survey.environment)
        changes.append(LinkChange(path, record, record._replace(hosts=hosts) if record and hosts else None))
    return changes


# Some skills --------------------------------------------------------------------------------------


def link_to(
    hosts: Sequence[str],
    skill_files: Sequence[SkillFile],
    survey: Survey,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> tuple[list[list[HostLinkResult]], Survey]:
    """Make skills visible to hosts; return the results for each skill, and a survey of all hosts afterwards.

    `force` also gives them to a host that ignores the author's safeguard.
    """
    skill_files = [survey.by_path.get(skill_file.real_path, skill_file) for skill_file in skill_files]
    plan = plan_links([[skill_file] for skill_file in skill_files], hosts, survey, force=force)
    if dry_run:
        return _by_skill(plan, skill_files, hosts), survey
    try:
        plan, survey = apply_plan(plan, survey)
        plan = _without_shared(plan)
    except OSError as error:
        reason = f"failed: {error.strerror.lower() if error.strerror else error}"
        failed = [LinkRefusal(one.skill, one.host, reason, one.path) for one in plan.actions]
        plan = plan._replace(actions=(), refused=(*plan.refused, *failed))
    return _by_skill(plan, skill_files, hosts), survey


def _without_shared(plan: LinkPlan) -> LinkPlan:
    """Return a plan that is carried out, in which hosts that share a link see it already."""
    shared = [UnchangedLink(one.skill, one.host, f"{one.path}/{SKILL_FILE}") for one in plan.actions if one.shared]
    actions = tuple(one for one in plan.actions if not one.shared)
    return plan._replace(actions=actions, unchanged=(*plan.unchanged, *shared))


def _by_skill(plan: LinkPlan, skill_files: Sequence[SkillFile], hosts: Sequence[str]) -> list[list[HostLinkResult]]:
    results = _results(plan)
    ordered = sorted(results, key=lambda pair: hosts.index(pair[1].host))
    names = dict.fromkeys(link_name(skill_file) for skill_file in skill_files)
    return [[result for skill, result in ordered if skill == name] for name in names]


def _results(plan: LinkPlan) -> list[tuple[str, HostLinkResult]]:
    results = [(one.skill, _result(one)) for one in plan.actions]
    results += [(one.skill, HostLinkResult(one.host, "nothing", one.path, one.detail)) for one in plan.unchanged]
    for one in plan.refused:
        results.append((one.skill, HostLinkResult(one.host, "nothing", one.path, one.reason, refused=True)))
    return results


def _result(action: LinkAction) -> HostLinkResult:
    after = action.change.after
    how: Literal["link", "copy"] = "link" if after is not None and after.how == "link" else "copy"
    target = (after.target or "") if after is not None else ""
    return HostLinkResult(action.host, how, action.path, action.reason, target, in_doubt=action.in_doubt)


def remove(
    names: Sequence[str], hosts: Sequence[str], survey: Survey, *, dry_run: bool = False
) -> list[HostLinkResult]:
    """Remove the links and copies of some names that were made for hosts; what was changed since stays."""
    plan = plan_removal(names, hosts, survey)
    problem = ""
    if not dry_run:
        try:
            carry_out(plan.changes, survey.environment)
        except OSError as error:
            problem = f"not removed: {(error.strerror or str(error)).lower()}"
    results = []
    for one in plan.actions:
        how: Literal["removed", "kept", "nothing"] = "kept" if one.kind == "forget" else "removed"
        results.append(HostLinkResult(one.host, "nothing" if problem else how, one.path, problem or one.reason))
    results += [HostLinkResult(one.host, "kept", one.path, one.detail) for one in plan.unchanged]
    results += [HostLinkResult(one.host, "nothing", one.path, one.reason) for one in plan.refused]
    missing = [host for host in hosts if host not in {result.host for result in results}]
    results += [HostLinkResult(host, "nothing", "", _nothing_made(names, host, survey)) for host in missing]
    return sorted(results, key=lambda result: hosts.index(result.host))


def _nothing_made(names: Sequence[str], host: str, survey: Survey) -> str:
    """Explain that nothing was made for a host; what is there may have been made for others."""
    paths = [f"{root.path}/{name}" for root in survey.hosts[host].roots for name in names]
    records = [record for path in paths if (record := record_at(path, survey.environment)) is not None]
    others = dict.fromkeys(other for record in records for other in record.hosts)
    if others:
        return f"what is here was made for {', '.join(others)}"
    return "skillshelf made no link or copy of this name here"
