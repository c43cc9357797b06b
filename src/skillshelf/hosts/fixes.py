"""Find the steps that make a skill visible to a host, and rank the fixes for all hosts by how many they help.

Every fix is tried in a simulation first: only hosts whose verdict it changes are counted.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from shlex import quote
from typing import Literal

from skillshelf.catalog.build_context import hidden_by_author
from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.shared_scan import SharedScan
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.config.settings import load_system_policy
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import VerdictName
from skillshelf.hosts.near_misses import rename_for
from skillshelf.hosts.placement import (
    Obstacle,
    Placement,
    link_name,
    placement_for,
    policy_refusal,
    readers_ignoring_safeguard,
)
from skillshelf.hosts.stages import Verdict, how_to_turn_on, judge, refusals
from skillshelf.hosts.survey import HostScan, SkillFile, Survey
from skillshelf.hosts.verdict import SAFEGUARD, document_of, ignores_safeguard
from skillshelf.hosts.what_if import after_link, after_trust
from skillshelf.lint.fix import FixInput, fix_text

__all__ = ["Fix", "Step", "fix_for", "how_to_make_readable", "link_command", "needs_placement", "ranked_fixes"]


# Steps for one host -------------------------------------------------------------------------------


class Step(NamedTuple):
    """One thing to do for one host; `rules` are satisfied afterwards.

    A `text` step changes bytes of the file that have no meaning, a `manual` step needs a person and may satisfy several
    rules: closing the frontmatter also brings back the fields in it.
    """

    kind: Literal["link", "trust", "clear", "text", "manual"]
    what: str
    rules: frozenset[str] = frozenset()


_MISPLACED: frozenset[VerdictName] = frozenset(
    {"root-not-read", "outside-boundary", "too-deep", "hidden-dir", "ignored", "limit-hit", "dir-link-skipped"}
)
_OTHER_STEPS: Mapping[VerdictName, str] = {
    "shadowed-by": "rename or remove one of the two",
    "untrusted": "trust this folder in {host}",
    "over-budget": "shorten this description or those of other skills",
    "disabled-by-config": "",
    "hidden-from-model": "",
}
"""Verdicts that no change of the file's form would affect, with the step; the empty ones depend on the case."""

_OUR_LIMITS = frozenset({"yaml-duplicate-key"})
"""Rules that keep us from parsing a file, so that the verdict is unknown; most hosts fail there too."""


def fix_for(verdict: Verdict, skill_file: SkillFile, survey: Survey) -> str | None:
    """Return the steps that make this host see the file; None if nothing has to be done, or no step is known."""
    return ", then: ".join(step.what for step in _steps_for(verdict, skill_file, survey)) or None


def _steps_for(verdict: Verdict, skill_file: SkillFile, survey: Survey) -> tuple[Step, ...]:
    if skill_file.problem:
        return (Step("manual", how_to_make_readable(skill_file, survey)),)
    if verdict.visible or (verdict.verdict == "unknown" and verdict.rule not in _OUR_LIMITS):
        return ()
    host = verdict.host
    if verdict.verdict == "untrusted":
        then = after_trust(host, survey)
        further = _steps_for(judge(skill_file, then.state_about(host, skill_file), then), skill_file, then)
        return (Step("trust", f"trust this folder in {host}"), *further)
    if needs_placement(verdict, skill_file):
        return _link_steps(skill_file, survey.hosts[host], survey)
    if skill_file.file_name != SKILL_FILE and verdict.verdict not in (*_OTHER_STEPS, "unknown"):
        rename = Step("manual", _CHANGES["file-name"])
        link = Step("link", link_command(skill_file, host, survey))
        return (rename, link) if verdict.verdict in _MISPLACED else (rename,)
    return _change_steps(verdict, skill_file, survey)


def needs_placement(verdict: Verdict, skill_file: SkillFile) -> bool:
    """Return true if a link or copy is what a host lacks: it does not read the place where the skill is."""
    is_misplaced = verdict.verdict in _MISPLACED and verdict.rule != "root-file"
    return is_misplaced and skill_file.file_name == SKILL_FILE and not skill_file.problem


def _link_steps(skill_file: SkillFile, host: HostScan, survey: Survey) -> tuple[Step, ...]:
    """Return the `link` command for a host, after the steps that it needs first."""
    profile = host.profile
    if ignores_safeguard(document_of(skill_file, profile, survey).fields, profile):
        # We never suggest giving a skill to a host that ignores its author.
        return ()
    if step := _policy_step(skill_file, profile.name, survey):
        return (step,)
    link = Step("link", link_command(skill_file, profile.name, survey))
    placement = placement_for(skill_file, host, survey)
    if isinstance(placement, Obstacle):
        if skill_file.path != skill_file.real_path:
            # The link to move away may be the one that gives the skill its name.
            folder = survey.typed(os.path.dirname(skill_file.real_path))
            link = Step("link", f"skillshelf link {folder} --to {profile.name}")
        return (Step("clear", placement.what), link) if placement.reason else ()
    (then,) = after_link(placement, skill_file, survey, [profile.name])
    if then.visible or then.verdict == "hidden-from-model":
        return (link,)
    first = _change_steps(then, skill_file, survey)
    return (*first, link) if first else ()


def _policy_step(skill_file: SkillFile, host: str, survey: Survey) -> Step | None:
    """Return what the system policy says against a link; None if it lets a host have this skill."""
    system = load_system_policy(survey.environment)
    reason = policy_refusal(skill_file, host, system) if system.files else None
    return Step("manual", reason) if reason else None


def link_command(skill_file: SkillFile, host: str, survey: Survey) -> str:
    """Return the command that links a skill, by its name or, if that is ambiguous, by the path of its folder."""
    name = link_name(skill_file)
    named = survey.names.named(name)
    alike = [one for one in named if name in (one.folder, link_name(one)) and not one.problem]
    # A file without a base is in no root: only a search below the working directory would find it.
    is_clear = len(alike) == 1 and skill_file.base and not name.startswith("-")
    return f"skillshelf link {quote(name) if is_clear else survey.typed(os.path.dirname(skill_file.path))} --to {host}"


def how_to_make_readable(skill_file: SkillFile, survey: Survey) -> str:
    """Return the step for a file that cannot be read."""
    if not skill_file.broken:
        return f"make the file readable for your user ({skill_file.problem})"
    return f"{skill_file.problem}; restore the target or remove the link: rm {survey.typed(skill_file.broken)}"


# Changes of the file ------------------------------------------------------------------------------

_YAML = frozenset({"yaml-colon", "yaml-brackets", "yaml-tab"})
_TEXT_RULES = frozenset({"bom", "fence-blanks", "name-type"}) | _YAML
"""Rules that a safe fix satisfies, without a change of meaning."""

_CHANGES: Mapping[str, str] = {
    "bom": "remove the byte order mark",
    "fence-blanks": "remove the spaces after the opening ---",
    "yaml-colon": "put quotes around the value in {line}",
    "yaml-brackets": "put quotes around the value in {line}",
    "yaml-tab": "indent {line} with spaces instead of tabs",
    "file-empty": "start the file with frontmatter: a line ---, name and description, a line ---",
    "frontmatter-missing": "start the file with frontmatter: a line ---, name and description, a line ---",
    "frontmatter-unclosed": "end the frontmatter with a line ---",
    "frontmatter-type": "write the frontmatter as `key: value` lines",
    "yaml": "make {line} valid YAML",
    "yaml-duplicate-key": "remove one of the two keys, see {line}",
    "name-missing": "add `name: {folder}`",
    "name-type": "put quotes around the name",
    "name-length": "shorten the name to 64 characters",
    "name-pattern": "use lower-case letters, digits and single hyphens in the name",
    "name-directory": "give the folder and the skill the same name",
    "description-missing": "add a description",
    "description-type": "write the description as one quoted string",
    "description-length": "shorten the description to 1,024 characters",
    "body-encoding": "save the file as UTF-8",
    "encoding": "save the file as UTF-8",
    "file-name": "rename the file to SKILL.md",
    "root-file": "move SKILL.md into a folder of its own",
    "link-skipped": "replace the link with a regular SKILL.md",
    "not-a-file": "replace it with a regular file",
}
"""The change of the file that satisfies each rule."""

_STRUCTURE = (
    *("file-empty", "frontmatter-missing", "frontmatter-unclosed", "frontmatter-type"),
    *("yaml", "yaml-duplicate-key", "encoding"),
)
_ALSO_SATISFIED: Mapping[str, frozenset[str]] = {
    # A file whose structure is broken only seems to lack the fields in it.
    **{rule: frozenset({rule, "name-missing", "description-missing"}) for rule in _STRUCTURE},
    **dict.fromkeys(_YAML, _YAML),
    "description-type": frozenset({"description-type", "description-missing", "field-type"}),
    "description-missing": frozenset({"description-missing", "description-type", "field-type"}),
    "name-type": frozenset({"name-type", "field-type"}),
    "name-missing": frozenset({"name-missing", "name-type", "field-type"}),
}


def _change_steps(verdict: Verdict, skill_file: SkillFile, survey: Survey) -> tuple[Step, ...]:
    """Return the step for something that a host does not accept although it reads the place."""
    if verdict.verdict not in _OTHER_STEPS:
        step = _step_for(verdict.rule, verdict.line, skill_file)
        return (step,) if step else ()
    what: str | None = _OTHER_STEPS[verdict.verdict].format(host=verdict.host)
    if verdict.verdict == "disabled-by-config":
        what = how_to_turn_on(verdict, survey.state_about(verdict.host, skill_file))
    elif verdict.verdict == "hidden-from-model":
        what = _CHANGES.get(verdict.rule)
    kind: Literal["trust", "manual"] = "trust" if verdict.verdict == "untrusted" else "manual"
    return (Step(kind, what, frozenset({verdict.rule} - {""})),) if what else ()


def _step_for(rule: str, line: int | None, skill_file: SkillFile) -> Step | None:
    """Return the change of the file that satisfies a rule."""
    findings = skill_file.parsed().findings
    unquoted = [one.line for one in findings if one.line and one.rule in ("yaml-colon", "yaml-brackets")]
    if rule.startswith("yaml") and unquoted:
        return Step("text", f"put quotes around the value in line {' and '.join(map(str, unquoted))}", _YAML)
    line = line or next((finding.line for finding in findings if finding.rule == rule), None)
    if rule == "field-type" and line:
        return _type_step(line, skill_file)
    if rule == "yaml" and line and _is_fixed(skill_file, frozenset({"yaml"})):
        return Step("text", f"put quotes around the value in line {line}", _ALSO_SATISFIED["yaml"])
    if rule == "file-empty" and skill_file.head.strip():
        return Step("manual", "write the instructions below the frontmatter", frozenset({rule}))
    if rule not in _CHANGES:
        return None
    what = _CHANGES[rule].format(line=f"line {line}" if line else "the frontmatter", folder=skill_file.folder)
    is_safe = rule in _TEXT_RULES and (rule != "name-type" or _is_fixed(skill_file, frozenset({rule})))
    return Step("text" if is_safe else "manual", what, _ALSO_SATISFIED.get(rule, frozenset({rule})))


def _is_fixed(skill_file: SkillFile, rules: frozenset[str]) -> bool:
    """Return true if a safe fix of these rules changes the file."""
    return _fixed(skill_file, rules) != skill_file.head


def _fixed(skill_file: SkillFile, rules: frozenset[str]) -> bytes:
    """Return the first bytes of a file after the safe fixes of these rules."""
    text = FixInput(skill_file.head, skill_file.folder, find_profile(DEFAULT_PROFILE), None)
    return fix_text(text, only=rules).data


def _type_step(line: int, skill_file: SkillFile) -> Step | None:
    """Return the step for a value that should be a string; a missing value is empty rather than of another type."""
    lines = skill_file.head.splitlines()
    text = lines[line - 1].decode("utf-8", "replace") if line <= len(lines) else ""
    key, value = (part.strip() for part in text.partition(":")[::2])
    if key in ("name", "description"):
        return _step_for(f"{key}-type" if value else f"{key}-missing", line, skill_file)
    if not value:
        return Step("manual", f"write a value after `{key}:`, or remove the line", frozenset({"field-type"}))
    # `check --fix` quotes this field only.
    kind: Literal["text", "manual"] = "text" if key == "argument-hint" else "manual"
    return Step(kind, f"put quotes around the value in line {line}", frozenset({"field-type"}))


# Fixes for all hosts ------------------------------------------------------------------------------

FixKind = Literal["link", "text", "manual"]
"""`link` is done by the command, `text` is a safe fix of the file, `manual` needs a person."""


class Fix(NamedTuple):
    """One action and the hosts that see the skill after it alone; for a link or copy also its placement.

    In the hosts `users_only` people can then invoke the skill, but its author keeps it from models. The hosts
    `need_trust` then require trust, `need_more` another step; hosts `in_doubt` see it now and may not see it then.
    """

    kind: FixKind
    what: str
    hosts: tuple[str, ...]
    placement: Placement | None = None
    users_only: tuple[str, ...] = ()
    need_trust: tuple[str, ...] = ()
    need_more: tuple[str, ...] = ()
    in_doubt: tuple[str, ...] = ()


Before = Mapping[str, Verdict]
"""The present verdict of each host."""


def ranked_fixes(
    skill_file: SkillFile, verdicts: Sequence[Verdict], survey: Survey, *, served: Collection[str] = ()
) -> list[Fix]:
    """Return the fixes, the most helpful first; hosts that are `served` in another way need none."""
    if skill_file.problem:
        # It is not known what an unreadable file says, and so not who would see it.
        return [Fix("manual", how_to_make_readable(skill_file, survey), ())]
    before = {verdict.host: verdict for verdict in verdicts}
    unserved = {host for host, verdict in before.items() if not verdict.visible and host not in served}
    if rename := _rename_fix(skill_file, before, survey):
        # The skill then has another place, and everything else may change.
        return [rename]
    links = _link_fixes(skill_file, before, unserved, survey)
    reached = {host for link in links for host in (*link.hosts, *link.users_only, *link.need_trust)}
    left = [verdict for verdict in verdicts if verdict.host in unserved - reached]
    return sorted([*links, *_change_fixes(skill_file, left, survey)], key=_rank)


def _rank(fix: Fix) -> tuple[int, int, int, int, str]:
    """Order by the hosts that gain the skill, then by those that may lose it, then by those that come closer to it."""
    closer = len(fix.need_trust) + len(fix.need_more)
    return -len(fix.hosts), len(fix.in_doubt), -len(fix.users_only), -closer, fix.what


def _rename_fix(skill_file: SkillFile, before: Before, survey: Survey) -> Fix | None:
    """Return the renaming of a folder whose name is almost one that hosts read."""
    rename = rename_for(skill_file, survey)
    if rename is None or os.path.dirname(rename.path) == os.path.dirname(skill_file.path):
        return None
    root, name = os.path.split(os.path.dirname(rename.path))
    then = after_link(Placement(root, name, "copy", ""), skill_file, survey, before)
    hosts = tuple(one.host for one in then if one.visible and not before[one.host].visible)
    need_trust = tuple(one.host for one in then if one.verdict == "untrusted")
    return Fix("manual", rename.command, hosts, need_trust=need_trust) if hosts or need_trust else None


def _link_fixes(skill_file: SkillFile, before: Before, unserved: Collection[str], survey: Survey) -> list[Fix]:
    """Return the fewest links, and then copies, that reach the hosts which lack nothing else."""
    waiting = {*unserved}
    possible = list(_possible_links(skill_file, before, unserved, survey))
    chosen = []

    def gain(fix: Fix) -> int:
        return len(waiting.intersection((*fix.hosts, *fix.users_only)))

    while possible := [fix for fix in possible if gain(fix)]:
        # Links before copies, which become stale.
        best = max(possible, key=lambda fix: (fix.placement is not None and fix.placement.how == "link", gain(fix)))
        best = best._replace(
            hosts=tuple(host for host in best.hosts if host in waiting),
            users_only=tuple(host for host in best.users_only if host in waiting),
            need_trust=tuple(host for host in best.need_trust if host in waiting),
        )
        chosen.append(best)
        waiting -= {*best.hosts, *best.users_only, *best.need_trust}
    return chosen


def _possible_links(skill_file: SkillFile, before: Before, unserved: Collection[str], survey: Survey) -> Iterator[Fix]:
    """Simulate what `link` would do for each host that lacks a placement, and yield what changes a verdict."""
    placements: dict[Placement, list[str]] = {}
    for host in (host for host in before if host in unserved and needs_placement(before[host], skill_file)):
        if _policy_step(skill_file, host, survey):
            continue
        scan = survey.hosts[host]
        placement = placement_for(skill_file, scan, survey)
        if isinstance(placement, Obstacle) or readers_ignoring_safeguard(placement, skill_file):
            continue
        if not ignores_safeguard(document_of(skill_file, scan.profile, survey).fields, scan.profile):
            placements.setdefault(placement, []).append(host)
    for placement, hosts in placements.items():
        then = {verdict.host: verdict for verdict in after_link(placement, skill_file, survey, before)}
        gained = tuple(host for host in before if then[host].visible and not before[host].visible)
        users_only = tuple(host for host in hosts if then[host].verdict == "hidden-from-model")
        # The host in the command must be one that it helps, else `link` itself would report a failure.
        if named := next((host for host in hosts if host in (*gained, *users_only)), None):
            yield Fix(
                *("link", link_command(skill_file, named, survey), gained, placement, users_only),
                need_trust=tuple(host for host in hosts if then[host].verdict == "untrusted"),
                in_doubt=tuple(host for host in before if before[host].visible and not then[host].visible),
            )


def _change_fixes(skill_file: SkillFile, verdicts: Sequence[Verdict], survey: Survey) -> list[Fix]:
    """Return all other fixes, each with the hosts for which it is enough and those that need another step."""
    found: dict[str, Fix] = {}
    trusted = []
    for verdict in verdicts:
        steps = _steps_for(verdict, skill_file, survey)
        is_enough = len(steps) == 1 and _is_enough(steps[0], verdict, skill_file, survey)
        # Other hosts may need the same change of the file, so it is a fix of its own.
        changes = [step for step in steps if step.kind in ("text", "manual")]
        if is_enough and steps[0].kind == "trust":
            trusted.append(verdict.host)
            continue
        for step in changes:
            fix = found.get(step.what) or Fix("text" if step.kind == "text" else "manual", step.what, ())
            if is_enough:
                found[step.what] = fix._replace(hosts=(*fix.hosts, verdict.host))
            else:
                found[step.what] = fix._replace(need_more=(*fix.need_more, verdict.host))
        if steps and not changes:
            profile = survey.hosts[verdict.host].profile
            is_hidden = hidden_by_author(document_of(skill_file, profile, survey).fields, profile) is not None
            what = ", then: ".join(step.what for step in steps)
            fix = found.get(what) or Fix("manual", what, ())
            if is_hidden:
                found[what] = fix._replace(users_only=(*fix.users_only, verdict.host))
            else:
                found[what] = fix._replace(hosts=(*fix.hosts, verdict.host))
    trust = [Fix("manual", f"trust this folder in {' and in '.join(trusted)}", tuple(trusted))] if trusted else []
    return [*found.values(), *trust]


def _is_enough(step: Step, verdict: Verdict, skill_file: SkillFile, survey: Survey) -> bool:
    """Return true if the model of a host that finds the file will see it after this step alone."""
    profile = survey.hosts[verdict.host].profile
    if step.kind == "text":
        data = _fixed(skill_file, step.rules)
        skill_file = skill_file._replace(data=data, digest=b"", size=skill_file.size + len(data) - len(skill_file.head))
        survey = survey._replace(scan=SharedScan(top=survey.environment.ceiling))
    left = refusals(skill_file, profile, survey, folder=os.path.basename(os.path.dirname(verdict.at)))
    fields = document_of(skill_file, profile, survey).fields
    if "description-missing" in step.rules:
        fields = {**fields, "description": "x"}
    if "hides_on" in profile.unknown and SAFEGUARD in fields:
        # Whether this host honours the field is not known.
        return False
    return all(finding.rule in step.rules for finding in left) and hidden_by_author(fields, profile) is None
