"""Judge one file for one host: stages in order, the first of which knows the outcome."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import body_problem
from skillshelf.catalog.frontmatter import NO_ANCHOR
from skillshelf.catalog.host_settings import named_folder, setting_effect
from skillshelf.catalog.rules import description_of, placed
from skillshelf.catalog.search_roots import turned_off_by
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile, RootRule
from skillshelf.core import files
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.text import fold, is_false
from skillshelf.core.values import CatalogSkill, Diagnostic, Finding, Root, VerdictName
from skillshelf.hosts.survey import HostState, SkillFile, Survey
from skillshelf.hosts.verdict import (
    SAFEGUARD,
    VERDICTS,
    VISIBLE,
    FileOnHost,
    StageVerdict,
    Verdict,
    document_of,
    ignores_safeguard,
    own_root,
)

__all__ = ["NO_WINNER", "RULE_VERDICTS", "VERDICTS", "Verdict", "how_to_turn_on", "judge", "refusals"]


NO_WINNER = "no-winner"
"""The rule of a verdict that is unknown because it is open which of several skills of one name the host takes."""


def judge(skill_file: SkillFile, state: HostState, survey: Survey) -> Verdict:
    """Return the verdict of one host on one file."""
    profile = state.profile
    verdict, detail, at, rule, line = _with_doubt(_first_outcome(FileOnHost(skill_file, state, survey)), profile)
    visible = True if verdict in VISIBLE else None if verdict == "unknown" else False
    warns: bool | None = None
    if visible is False and verdict != "hidden-from-model":
        reported = profile.tells.get(VERDICTS[verdict][0], "unknown")
        # No host was run on broken links.
        if reported != "unknown" and not (skill_file.broken and rule):
            warns = reported == "screen"
            detail += " (reported only in its log)" if reported == "log" else ""
    return Verdict(profile.name, visible, verdict, detail, warns, at or skill_file.path, rule, line)


def _first_outcome(case: FileOnHost) -> StageVerdict:
    # Most files are in no root of most hosts; then the stages about a host's own folders cannot apply.
    for path in case.skill_file.paths:
        if path.startswith(case.state.below):
            break
    else:
        return _listed(case) or _no_root(case)
    return next((outcome for stage in STAGES if (outcome := stage(case))), StageVerdict("unknown"))


_DOUBTS: Mapping[VerdictName, str] = {
    "too-deep": "max_depth",
    "hidden-dir": "hidden",
    "dir-link-skipped": "links",
    "file-link-skipped": "linked_file",
    "ignored": "below_skill",
    "hidden-from-model": "hides_on",
}
"""The field of a profile that a verdict rests on."""


def _with_doubt(outcome: StageVerdict, profile: Profile) -> StageVerdict:
    """Return the outcome, or `unknown` if it rests on something that was not established for this host."""
    if not profile.unknown or outcome.verdict == "unknown":
        return outcome
    if outcome.rule in profile.unknown or _DOUBTS.get(outcome.verdict) in profile.unknown:
        detail = outcome.detail or VERDICTS[outcome.verdict][1]
        return outcome._replace(verdict="unknown", detail=f"not tested: {detail}")
    return outcome


# Files in the list of the host --------------------------------------------------------------------


def _listed(case: FileOnHost) -> StageVerdict | None:
    """Judge a file that the host lists: does the model see it, and is anything odd about it?"""
    skill = case.state.by_file.get(case.skill_file.real_path)
    if skill is None:
        return None
    at = skill.path
    effect = case.state.switched.get(at)
    if effect is not None and effect.verdict == "disabled-by-config":
        return StageVerdict(effect.verdict, effect.detail, at)
    if skill.hidden is not None:
        return _hidden(skill, case.profile)
    if effect is not None and effect.verdict != "visible":
        return StageVerdict(effect.verdict, effect.detail, at)
    if skill.path in case.state.size().dropped:
        if case.profile.budget_least:
            detail = f"{_room(case.profile)}, which this skill may not get"
            return StageVerdict("unknown", detail, at)
        return StageVerdict("over-budget", f"{_room(case.profile)} before this skill", at)
    losers = case.state.losers.get(skill.path, ())
    if losers and _is_open(case.profile, skill.path, losers[0], case.state.roots):
        return StageVerdict("unknown", _no_winner(case.profile, len(losers) + 1), at, NO_WINNER)
    found = (
        _untested(case, skill)
        or _body(case)
        or _changed(case, skill)
        or next(_remarks(case, skill), StageVerdict("visible"))
    )
    return found._replace(at=at)


def _hidden(skill: CatalogSkill, profile: Profile) -> StageVerdict:
    """Judge a listed file that its author, or the lack of a description, keeps from the model."""
    if skill.hidden == "on-use":
        field = next(field for field in profile.waits_for if field in skill.frontmatter)
        return StageVerdict("unknown", f"not at its start, but once files that `{field}` matches are used", skill.path)
    is_bare = skill.hidden == "no-description"
    why = "it has no description" if is_bare else f"{SAFEGUARD} is set"
    is_kept = any(is_false(skill.frontmatter.get(field, "")) for field in profile.keeps_from_users)
    others = "nobody can invoke it: it is kept from users too" if is_kept else "users can still invoke it"
    rule = "description-missing" if is_bare else ""
    return StageVerdict("hidden-from-model", f"{why}; {others}", skill.path, rule)


def _is_open(profile: Profile, path: str, other: str, roots: Sequence[Root]) -> bool:
    """Return true if it is not known which of two files of one name this host takes."""
    if profile.collision == "race" or profile.collision_doubt == "always":
        return True
    mine, theirs = own_root(path, roots), own_root(other, roots)
    if mine is None or theirs is None or profile.collision_doubt == "none":
        return False
    return mine.path == theirs.path


def _no_winner(profile: Profile, copies: int) -> str:
    doubt = "varies from run to run" if profile.collision == "race" else "is not known"
    return f"{copies} skills have this name; which one wins {doubt}"


def _untested(case: FileOnHost, skill: CatalogSkill) -> StageVerdict | None:
    """Return `unknown` if something about a listed file was not tested on this host."""
    profile = case.profile
    if not profile.unknown:
        return None
    for oddity, field in _oddities(case, skill):
        if field in profile.unknown:
            return StageVerdict("unknown", f"not tested: {oddity}")
    skill_file = case.skill_file
    for finding in case.survey.scan.facts.findings(skill_file.candidate(), skill_file.folder, profile):
        if finding.rule in profile.unknown:
            return StageVerdict("unknown", f"not tested: {finding.message}", rule=finding.rule)
    return None


def _oddities(case: FileOnHost, skill: CatalogSkill) -> Iterator[tuple[str, str]]:
    """Yield what is unusual about the place of a listed file, with the field of the profile that decides about it."""
    roots = case.state.roots
    root = own_root(skill.path, roots)
    assert root is not None
    assert root.real_path is not None
    below = skill.path[len(root.path) + 1 :]
    if root.kind == "project" and not files.is_inside(root.path, case.survey.environment.cwd):
        yield "a skill above the working directory", "above-cwd"
    if os.path.basename(skill.real_path) != SKILL_FILE or os.path.dirname(skill.real_path) != skill.real_dir:
        yield "SKILL.md is a link", "linked_file"
    elif f"{root.real_path}/{below}" != skill.real_path and own_root(skill.real_path, roots) is None:
        yield "the folder is a link", "links"
    elif _is_linked_root(root) and own_root(skill.real_path, roots) is None:
        yield "the root is a link", "links"
    if any(part.startswith(".") for part in below.split("/")):
        yield "a folder that starts with a dot", "hidden"
    if "node_modules" in below.split("/"):
        yield "a skill below node_modules", "skip_directories"
    declared = skill.frontmatter.get("name")
    if declared is not None and declared != os.path.basename(skill.dir):
        yield f"a name ({declared!r}) that is not the folder's", "name-directory"
    if below.count("/") > 1:
        yield "a folder of folders", "max_depth"
    if "hides_on" in case.profile.unknown and SAFEGUARD in skill.frontmatter:
        yield f"the effect of {SAFEGUARD}", "hides_on"


def _is_linked_root(root: Root) -> bool:
    """Return true if a root, or a folder of its label, is a link; links above its base do not count."""
    return root.real_path != f"{files.real_path(root.base)}/{root.label}"


def _body(case: FileOnHost) -> StageVerdict | None:
    """Reject a file whose body, which a listing does not read, is not UTF-8, if the host requires that."""
    skill_file, bodies = case.skill_file, case.survey.bodies
    if case.profile.body_text == "any" or len(skill_file.head) >= skill_file.size:
        return None
    if skill_file.real_path not in bodies:
        try:
            data = files.read_file(skill_file.real_path, limit=SKILL_FILE_BYTES, links="never")
        except OSError:
            return StageVerdict("unknown", "the file cannot be read")
        bodies[skill_file.real_path] = body_problem(data or b"")
    found = bodies[skill_file.real_path]
    return StageVerdict("wrong-type", found.message, rule=found.rule, line=found.line) if found else None


def _changed(case: FileOnHost, skill: CatalogSkill) -> StageVerdict | None:
    """Judge an installed skill whose files are not those of its lock; the host knows nothing of locks, and sees it."""
    locked = case.survey.lock_state(skill.real_dir, skill.dir)
    if locked is None or not locked.changed:
        return None
    return StageVerdict("changed", f"its files are not those that {case.survey.short(locked.locked.by)} names")


def _remarks(case: FileOnHost, skill: CatalogSkill) -> Iterator[StageVerdict]:
    """Yield what a person should know about a visible skill, the most important first."""
    state, profile = case.state, case.profile
    if (effect := state.switched.get(skill.path)) is not None:
        yield StageVerdict(effect.verdict, effect.detail)
    if SAFEGUARD in skill.frontmatter and ignores_safeguard(skill.frontmatter, profile):
        yield StageVerdict("visible", f"ignores {SAFEGUARD}: its model may call it")
    if others := [other.path for other in state.by_name[skill.name] if other is not skill]:
        yield StageVerdict("ambiguous", f"{case.survey.short(others[0])} has the same name; both are listed")
    document = document_of(case.skill_file, profile, case.survey)
    for finding in document.findings:
        if finding.rule in ("yaml-colon", "yaml-brackets", "yaml-tab", "yaml-lines", "yaml", "frontmatter-missing"):
            yield StageVerdict("repaired", finding.message, rule=finding.rule, line=finding.line)
    if ":" in skill.name and (root := own_root(skill.path, state.roots)) is not None and root.prefix:
        yield StageVerdict("renamed-by-plugin", f"called {skill.name!r} here")
    if lost := _lost_to_budget(case, skill):
        yield StageVerdict("description-cut", lost)
    declared = document.fields.get("name")
    if skill.name == os.path.basename(skill.dir) != declared:
        yield StageVerdict(
            "name-from-folder", f"called {skill.name!r} here" + (f", not {declared!r}" if declared else "")
        )
    if cut := _cut(case, skill):
        yield StageVerdict("description-cut", cut)
    if losers := state.losers.get(skill.path):
        yield StageVerdict("shadows", f"takes precedence over {case.survey.short(losers[0])}")
    if dropped := _dropped(case):
        yield StageVerdict("visible", f"{dropped}, perhaps this one")


def _lost_to_budget(case: FileOnHost, skill: CatalogSkill) -> str:
    """Describe what the budget of the host's list does to the description, or return an empty string."""
    profile, size = case.profile, case.state.size()
    if not (size.cut or size.unsure):
        return ""
    if profile.overflow == "drop-least-used":
        return f"{_dropped(case)}, this one unless it is used more" if skill.path in size.cut else ""
    effect = "shortened" if profile.overflow == "shorten" else "dropped"
    if skill.path in size.cut:
        return f"{_room(profile)}: the description is {effect}"
    return f"{_room(profile)}: the description may be {effect}" if skill.path in size.unsure else ""


def _dropped(case: FileOnHost) -> str:
    """Return how many descriptions a host drops that keeps those of the skills in use; empty if it drops none."""
    size = case.state.size()
    if case.profile.overflow != "drop-least-used" or not (size.cut or size.unsure):
        return ""
    lost = f"{len(size.cut)} to {len(size.cut | size.unsure)}" if size.unsure else str(len(size.cut))
    return f"{_room(case.profile)}: {lost} of {size.entries} descriptions are dropped, the least used first"


def _room(profile: Profile) -> str:
    """Return how much a host's list holds: where a model's context window decides, from the least to the usual."""
    if profile.budget_least:
        least, usual = profile.budget_least, profile.budget_chars
        return f"its list has room for {least:,} to {usual:,} characters, by the model's context window"
    return f"its list is full at {profile.budget_chars:,} characters" if profile.budget_chars else "its list is full"


def _cut(case: FileOnHost, skill: CatalogSkill) -> str:
    """Describe what the host cuts from every long description, or return an empty string."""
    profile, most = case.profile, case.profile.description_shown
    if profile.closing_fence == "anywhere":
        shown = len(fold(skill.description))
        whole = description_of(document_of(case.skill_file, _PLAIN, case.survey).fields)
        if 0 < shown < len(fold(whole)):
            return f"cut at the `---` inside it, after {shown} of {len(fold(whole))} characters"
    if most is not None and len(skill.description) > most and (shown := len(fold(skill.description))) > most:
        return f"shows {most:,} of {shown:,} characters"
    return ""


_PLAIN = Profile(name="", summary="", evidence="", as_of="")


# Files that the host does not list ----------------------------------------------------------------


def _untrusted(case: FileOnHost) -> StageVerdict | None:
    """Judge a file below a root that the host does not read before its user trusts the folder."""
    for path in case.skill_file.paths:
        root = own_root(path, case.state.roots)
        if root is not None and not root.trusted:
            for problem in case.state.entered.problems:
                if problem.rule == "settings-unreadable":
                    return StageVerdict(
                        "unknown", f"cannot tell whether it trusts this folder: {problem.message}", path
                    )
            return StageVerdict("untrusted", f"until you trust this folder (~/{case.profile.trust_file})", path)
    return None


def _without_list(case: FileOnHost) -> StageVerdict | None:
    """Judge a file of a host that lists nothing while another file has a value that it cannot read."""
    fields = [one.field for one in case.profile.types if one.otherwise == "no-list"]
    for error in case.state.errors.values() if fields else ():
        if error.rule == "field-type" and error.message.split("`")[1] in fields:
            detail = f"in {case.survey.short(error.path)} {error.message}; until then it lists no skill"
            return StageVerdict("unknown", detail, rule=error.rule)
    return None


def _shadowed(case: FileOnHost) -> StageVerdict | None:
    """Judge a file that lost its name to another one."""
    for path in case.skill_file.paths:
        loser = case.state.shadowed.get(path)
        if loser is None:
            continue
        if _is_open(case.profile, path, loser.by, case.state.roots):
            return StageVerdict("unknown", _no_winner(case.profile, 2), path, NO_WINNER)
        other = case.survey.by_path.get(loser.by)
        text = "same text" if other is not None and other.text == case.skill_file.text else "different text"
        return StageVerdict("shadowed-by", f"{case.survey.short(loser.by)} wins ({text})", path)
    return None


_FILTERED: Mapping[str, VerdictName] = {
    "too-deep": "too-deep",
    "source-off": "disabled-by-config",
    "ignored": "ignored",
    "inside-skill": "ignored",
}


def _filtered(case: FileOnHost) -> StageVerdict | None:
    """Judge a file that the host found and left out."""
    skill_file = case.skill_file
    for path in skill_file.paths:
        left_out = case.state.filtered.get(path)
        if left_out is None:
            continue
        verdict = _FILTERED.get(left_out.reason, "unknown")
        effect = setting_effect(skill_file.folder, skill_file.real_path, case.state.entered.switches)
        if verdict == "disabled-by-config" and effect is not None and effect.verdict == "unknown":
            # A folder that is off by default may have been turned on there.
            return StageVerdict("unknown", effect.detail, path)
        details = {"too-deep": _too_deep, "disabled-by-config": _switch}
        detail = details[verdict](case, path) if verdict in details else ""
        if verdict == "ignored":
            detail = f"{left_out.by} leaves it out" if left_out.by else "excluded by its rules"
        return StageVerdict(verdict, detail, path)
    return None


def _too_deep(case: FileOnHost, path: str) -> str:
    root = own_root(path, case.state.roots)
    below = os.path.dirname(path[len(root.path) + 1 :] if root else path)
    return f"{below} is {below.count('/') + 1} levels deep; the limit is {case.profile.max_depth}"


def _switch(case: FileOnHost, path: str) -> str:
    for rule in _rules_at(path, case.state):
        if variable := turned_off_by(rule, case.survey.environment):
            return f"the variable {variable} turns its folder off"
        if rule.host_switch:
            return f"off unless its setting {rule.host_switch} is on"
    root = own_root(path, case.state.roots)
    return f"its plugin {root.prefix.rstrip(':')} is off" if root and root.prefix else "off in its settings"


def _rules_at(path: str, state: HostState) -> list[RootRule]:
    """Return the rules of a host for the root that contains a path."""
    root = own_root(path, state.roots)
    return [rule for rule in state.profile.roots if root and root.kind == rule.kind and root.label in rule.paths]


def how_to_turn_on(verdict: Verdict, state: HostState) -> str:
    """Return the step that undoes a setting by which a host leaves a file out."""
    if effect := state.switched.get(verdict.at):
        return effect.fix
    for rule in _rules_at(verdict.at, state):
        variables = (*rule.off_by, *rule.off_if_set)
        if variable := next((name for name in variables if f" {name} " in verdict.detail), None):
            return f"unset {variable}"
        if rule.host_switch:
            return f"turn {rule.host_switch} on in {verdict.host}"
    root = own_root(verdict.at, state.roots)
    what = f"the plugin {root.prefix.rstrip(':')}" if root and root.prefix else "it"
    return f"turn {what} on in {verdict.host}"


RULE_VERDICTS: Mapping[str, VerdictName] = {
    "bom": "bom",
    "file-empty": "no-fence",
    "frontmatter-missing": "no-fence",
    "frontmatter-unclosed": "no-fence",
    "fence-blanks": "no-fence",
    "frontmatter-type": "yaml-error",
    "yaml": "yaml-error",
    "yaml-colon": "yaml-error",
    "yaml-brackets": "yaml-error",
    "yaml-tab": "yaml-error",
    "yaml-duplicate-key": "yaml-error",
    "yaml-tag": "yaml-error",
    "name-missing": "missing-name",
    "name-type": "wrong-type",
    "name-length": "name-rejected",
    "name-pattern": "name-rejected",
    "name-directory": "name-rejected",
    "description-missing": "missing-description",
    "description-type": "wrong-type",
    "description-length": "wrong-type",
    "field-type": "wrong-type",
    "body-encoding": "wrong-type",
    "not-a-file": "wrong-type",
    "link-broken": "wrong-type",
    "link-loop": "wrong-type",
    "root-file": "root-not-read",
    "file-name": "wrong-file-name",
}
"""The verdict for each rule by which a host leaves a file out; any other rule is a limit of our own."""


def _refused(case: FileOnHost) -> StageVerdict | None:
    """Judge a file that breaks a rule of the host, or that is in a folder which does."""
    for path in case.skill_file.paths:
        above = (error for folder, error in case.state.folder_errors.items() if path.startswith(folder + "/"))
        error = case.state.errors.get(path) or next(above, None)
        if error is not None:
            return _refusal(error, path, case.profile)
    return None


def _refusal(error: Diagnostic, path: str, profile: Profile) -> StageVerdict:
    if error.rule == "link-skipped":
        verdict: VerdictName = "file-link-skipped" if os.path.basename(error.path) == SKILL_FILE else "dir-link-skipped"
        return StageVerdict(verdict, VERDICTS[verdict][1], path, error.rule)
    if error.rule == "encoding" and profile.body_text == "utf-8":
        return StageVerdict("wrong-type", error.message, path, error.rule, error.line)
    verdict = RULE_VERDICTS.get(error.rule, "unknown")
    if error.message == NO_ANCHOR:
        return StageVerdict("yaml-error", f"line {error.line}: {error.message}", path, "yaml", error.line)
    if error.rule == "name-address" and profile.rules["name-pattern"] == "reject":
        return StageVerdict("name-rejected", error.message, path, error.rule, error.line)
    if error.rule in profile.accepts:
        return StageVerdict("visible", f"it accepts what skillshelf does not: {error.message}", path)
    if error.rule == "yaml-tag" and profile.tags == "drop":
        verdict = "unknown"
    if verdict == "unknown":
        reason = "cannot be read" if error.rule == "unreadable" else "skillshelf cannot parse this"
        return StageVerdict("unknown", f"{reason}: {error.message}", path, error.rule, error.line)
    where = f"line {error.line}: " if error.line and error.rule.startswith("yaml") else ""
    # The interpretation after "read as" is that of skillshelf; this host reads nothing.
    return StageVerdict(verdict, where + error.message.partition("; read as: ")[0], path, error.rule, error.line)


def _not_walked(case: FileOnHost) -> StageVerdict | None:
    """Judge a file below a root of the host that its walk passed by silently."""
    for path in case.skill_file.paths:
        root = own_root(path, case.state.roots)
        if root is None:
            continue
        if root.real_path is None:
            return StageVerdict("unknown", "the root cannot be read", path)
        if os.path.basename(path) != SKILL_FILE:
            return StageVerdict("wrong-file-name", f"the file is named {os.path.basename(path)}", path, "file-name")
        return _passed_by(path[len(root.path) + 1 :].split("/")[:-1], root, case)._replace(at=path)
    return None


def _passed_by(folders: Sequence[str], root: Root, case: FileOnHost) -> StageVerdict:
    profile = case.profile
    if profile.bundled_at and f"{root.label}/{'/'.join(folders)}".startswith(f"{profile.bundled_at}/"):
        return StageVerdict("unknown", "it comes with the host, which decides about it")
    for folder in folders:
        if root.hidden == "skip" and folder.startswith("."):
            return StageVerdict("hidden-dir", f"{folder} starts with a dot")
        if folder in case.profile.skip_directories:
            return StageVerdict("ignored", f"{folder} is never searched")
    most = case.profile.max_depth
    if most is not None and len(folders) > most:
        return StageVerdict("too-deep", f"{'/'.join(folders)} is {len(folders)} levels deep; the limit is {most}")
    if case.profile.root_file == "alone" and files.kind_at(f"{root.path}/{SKILL_FILE}") is not None:
        return StageVerdict("ignored", f"the {SKILL_FILE} in {case.survey.short(root.path)} makes it one skill")
    if case.profile.below_skill == "skip" and len(folders) > 1:
        return StageVerdict("ignored", "it is inside another skill")
    if case.state.catalog.truncated:
        return StageVerdict(
            "limit-hit", f"the search stops after {case.profile.max_directories:,} folders without a skill"
        )
    return StageVerdict("unknown", "it is in a folder that this host reads, but was not found there")


def _no_root(case: FileOnHost) -> StageVerdict:
    """Judge a file that is in no root of the host."""
    profile, environment = case.profile, case.survey.environment
    for problem in case.state.entered.problems:
        if problem.rule == "plugins-unreadable" and files.is_inside(
            case.skill_file.path, os.path.dirname(problem.path)
        ):
            return StageVerdict("unknown", f"{case.survey.short(problem.path)} is {problem.message}")
    if setting := named_folder(case.skill_file.path, case.state.entered.switches, environment):
        return StageVerdict("unknown", f"its setting {setting} names this folder")
    for path in case.skill_file.paths:
        for label in _root_labels(profile.name, "project"):
            base, found, _ = path.partition(f"/{label}/")
            if not found:
                continue
            if base != environment.cwd and files.is_inside(base, environment.cwd) and profile.nested == "on-use":
                return StageVerdict("unknown", "possibly, once files in that folder are used", path)
            is_chain = any(rule.kind == "project" and rule.base == "chain" for rule in profile.roots)
            reach = "up to the repository root" if is_chain else "in the working directory only"
            return StageVerdict("outside-boundary", f"not in {_shown_base(base, case)}: {label} is read {reach}", path)
    home = environment.home
    at_home = home is not None and case.skill_file.path.startswith(home.rstrip("/") + "/.")
    labels = _root_labels(profile.name, "user" if at_home else "project")
    shown = [("~/" if at_home else "") + label for label in labels if not label.startswith("/")]
    return StageVerdict("root-not-read", f"reads {', '.join(shown)}")


def _shown_base(base: str, case: FileOnHost) -> str:
    """Return a project folder as people read it: one beside the working directory relative to that."""
    shown, cwd = case.survey.short(base), case.survey.environment.cwd
    if shown != base or files.is_inside(cwd, base):
        return shown
    near = os.path.relpath(base, cwd)
    return near if not near.startswith("../../../") else shown


@cache
def _root_labels(host: str, kind: str) -> tuple[str, ...]:
    own = (rule for rule in HOSTS[host].roots if rule.kind == kind and rule.base != "plugin-list")
    paths = (path for rule in own for path in rule.paths)
    return tuple(dict.fromkeys(paths))


STAGES: tuple[Callable[[FileOnHost], StageVerdict | None], ...] = (
    _without_list,
    _listed,
    _untrusted,
    _shadowed,
    _filtered,
    _refused,
    _not_walked,
    _no_root,
)
"""The stages in order; the last one always has an outcome."""


def refusals(skill_file: SkillFile, profile: Profile, survey: Survey, *, folder: str) -> list[Finding]:
    """Return why a host would leave the file out if it were in a folder of that name in one of its roots."""
    document = document_of(skill_file, profile, survey)
    findings = survey.scan.facts.findings(skill_file.candidate(), folder, profile)
    found = [placed(finding, document) for finding in findings]
    return [finding for finding in found if profile.rules[finding.rule] == "reject" or finding.rule in profile.unknown]
