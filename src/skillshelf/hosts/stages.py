"""A file in a host's list to an answer: whether its model is told, and what is odd about it."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import body_problem
from skillshelf.catalog.host_settings import switched_off
from skillshelf.catalog.rules import check, description_of, placed
from skillshelf.catalog.search_roots import is_on
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile, RootRule
from skillshelf.core import files
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.text import fold
from skillshelf.core.values import CatalogSkill, Diagnostic, Finding, Root, VerdictName
from skillshelf.hosts.survey import HostState, SkillFile, Survey, base_of
from skillshelf.hosts.verdict import (
    SAFEGUARD,
    SEEN,
    VERDICTS,
    Case,
    Outcome,
    document_of,
    ignored_safeguard,
    own_root,
    shown_path,
)

__all__ = ["NO_WINNER", "VERDICTS", "Verdict", "is_open", "judge", "listed", "no_winner", "refusals", "to_turn_on"]


NO_WINNER = "no-winner"
"""The rule of an answer that is open because the host takes one of several, and nobody can say which."""


def listed(case: Case) -> Outcome | None:
    """A file in the host's list: whether its model is told, and what is odd about it."""
    skill = case.state.by_file.get(case.skill_file.real_path)
    if skill is None:
        return None
    at = skill.path
    off = case.state.switched.get(at)
    if off is not None and off.verdict == "disabled-by-config":
        return Outcome(off.verdict, off.detail, at)
    if skill.hidden is not None:
        is_bare = skill.hidden == "no-description"
        why = "it has no description" if is_bare else "disable-model-invocation is set"
        rule = "description-missing" if is_bare else ""
        return Outcome("hidden-from-model", f"{why}; people can still call it", at, rule)
    if off is not None:
        return Outcome(off.verdict, off.detail, at)
    if skill.path in case.state.dropped:
        budget = case.profile.budget_chars
        said = f"its list ends before this one, at {budget:,} characters" if budget else "its list ends before this one"
        return Outcome("over-budget", said, at)
    for found in (_rivalry(case, skill), _open_question(case, skill), _body(case)):
        if found is not None:
            return found._replace(at=at)
    return next(_notes(case, skill), Outcome("visible"))._replace(at=at)


def _rivalry(case: Case, skill: CatalogSkill) -> Outcome | None:
    """What others of the same name mean for one that is listed."""
    state = case.state
    losers = state.losers.get(skill.path, ())
    if losers and is_open(case.profile, skill.path, losers[0], state.roots):
        return Outcome("unknown", no_winner(case.profile, len(losers) + 1), rule=NO_WINNER)
    return None


def is_open(profile: Profile, path: str, other: str, roots: Sequence[Root]) -> bool:
    """Whether nobody can say which of two copies this host takes."""
    if profile.collision == "race" or profile.collision_doubt == "always":
        return True
    mine, theirs = own_root(path, roots), own_root(other, roots)
    if mine is None or theirs is None or profile.collision_doubt == "none":
        return False
    one_root = mine.path == theirs.path
    return one_root if profile.collision_doubt == "same-root" else not one_root and mine.kind == theirs.kind


def no_winner(profile: Profile, copies: int) -> str:
    """What is known of a name that so many skills have."""
    if profile.collision == "race":
        return f"{copies} skills have this name, and which one wins differs from run to run"
    return f"{copies} skills have this name; which one wins is not established"


def _open_question(case: Case, skill: CatalogSkill) -> Outcome | None:
    """Something about a listed file that nobody has tried on this host."""
    profile = case.profile
    if not profile.unknown:
        return None
    for what, field in _oddities(case, skill):
        if field in profile.unknown:
            return Outcome("unknown", f"nobody has tried it: {what}")
    document = document_of(case.skill_file, profile, case.survey)
    for finding in check(document, case.skill_file.folder, profile):
        if finding.rule in profile.unknown:
            found = placed(finding, document)
            return Outcome("unknown", f"nobody has tried it: {finding.message}", rule=found.rule)
    return None


def _oddities(case: Case, skill: CatalogSkill) -> Iterator[tuple[str, str]]:
    """What is unusual about where a listed file lies, with the field of the profile that decides about it."""
    root = own_root(skill.path, case.state.roots)
    assert root is not None
    assert root.real_path is not None
    below = skill.path[len(root.path) + 1 :]
    if root.kind == "project" and not files.is_inside(root.path, case.survey.environment.cwd):
        yield "a skill above the working directory", "above-cwd"
    if os.path.basename(skill.real_path) != SKILL_FILE or os.path.dirname(skill.real_path) != skill.real_dir:
        yield "SKILL.md is a link", "linked_file"
    elif f"{root.real_path}/{below}" != skill.real_path and own_root(skill.real_path, case.state.roots) is None:
        yield "the folder is a link", "links"
    elif _is_linked_root(root) and own_root(skill.real_path, case.state.roots) is None:
        yield "the root is a link", "links"
    if any(part.startswith(".") for part in below.split("/")):
        yield "a folder that begins with a dot", "hidden"
    if "node_modules" in below.split("/"):
        yield "a skill below node_modules", "skip_directories"
    declared = skill.frontmatter.get("name")
    if declared is not None and declared != os.path.basename(skill.dir):
        yield f"a name ({declared!r}) that is not the folder's", "name-directory"
    if below.count("/") > 1:
        yield "a folder of folders", "max_depth"
    if "hides_on" in case.profile.unknown and "disable-model-invocation" in skill.frontmatter:
        yield "what disable-model-invocation does", "hides_on"


def _is_linked_root(root: Root) -> bool:
    """Whether a root, or a folder of its name, is a link; what leads to the folder it is in does not count."""
    return root.real_path != f"{files.real_path(base_of(root))}/{root.label}"


def _body(case: Case) -> Outcome | None:
    """A file whose rest, which a listing does not read, is not UTF-8, for a host that insists on it."""
    skill_file, bodies = case.skill_file, case.survey.bodies
    if case.profile.body_text == "any" or len(skill_file.head) >= skill_file.size:
        return None
    if skill_file.real_path not in bodies:
        try:
            data = files.read_file(skill_file.real_path, limit=SKILL_FILE_BYTES, links="never")
        except OSError:
            return Outcome("unknown", "the file cannot be read")
        bodies[skill_file.real_path] = body_problem(data or b"")
    found = bodies[skill_file.real_path]
    return Outcome("wrong-type", found.message, rule=found.rule, line=found.line) if found else None


def _notes(case: Case, skill: CatalogSkill) -> Iterator[Outcome]:
    """What a person should know about a skill that is visible."""
    state, profile = case.state, case.profile
    if SAFEGUARD in skill.frontmatter and ignored_safeguard(skill.frontmatter, profile):
        yield Outcome("visible", f"ignores {SAFEGUARD}: its model may call it")
    if len(state.by_name[skill.name]) > 1:
        others = [other.path for other in state.by_name[skill.name] if other is not skill]
        yield Outcome("ambiguous", f"as is {shown_path(others[0], case)}; both are listed")
    document = document_of(case.skill_file, profile, case.survey)
    for finding in document.findings:
        if finding.rule in ("yaml-colon", "yaml-brackets", "yaml-tab", "yaml-lines", "yaml", "frontmatter-missing"):
            yield Outcome("repaired", finding.message, rule=finding.rule, line=finding.line)
    if ":" in skill.name and (root := own_root(skill.path, state.roots)) is not None and root.prefix:
        yield Outcome("renamed-by-plugin", f"called {skill.name!r} here")
    if lost := _lost(case, skill):
        yield Outcome("description-cut", lost)
    declared = document.fields.get("name")
    if skill.name == os.path.basename(skill.dir) != declared:
        yield Outcome("name-from-folder", f"called {skill.name!r} here" + (f", not {declared!r}" if declared else ""))
    if cut := _cut(case, skill):
        yield Outcome("description-cut", cut)
    if losers := state.losers.get(skill.path):
        yield Outcome("shadows", f"in front of {shown_path(losers[0], case)}")


def _lost(case: Case, skill: CatalogSkill) -> str:
    """What a list that is too long for this host does to the description."""
    state, profile = case.state, case.profile
    if not state.cut:
        return ""
    full = f"its list is full at {profile.budget_chars:,} characters"
    if profile.overflow == "drop-least-used":
        return f"{full}: {len(state.cut)} of {state.text.entries} lose the description, the least used first"
    if skill.path not in state.cut:
        return ""
    return f"{full}: {'a part' if profile.overflow == 'shorten' else 'none'} of the description is left"


def _cut(case: Case, skill: CatalogSkill) -> str:
    """What this host leaves of a description, where that is not all of it."""
    profile, most = case.profile, case.profile.description_shown
    if profile.closing_fence == "anywhere":
        shown = len(fold(skill.description))
        whole = description_of(document_of(case.skill_file, _PLAIN, case.survey).fields)
        if 0 < shown < len(fold(whole)):
            return f"ends at the `---` inside it, after {shown} of {len(fold(whole))} characters"
    if most is not None and len(skill.description) > most and (shown := len(fold(skill.description))) > most:
        return f"shows {most:,} of {shown:,} characters"
    return ""


_PLAIN = Profile(name="", summary="", evidence="", as_of="")


class Verdict(NamedTuple):
    """What one host makes of one file; `rule` is the rule of ours that found it, `at` the way it was judged by."""

    host: str
    visible: bool | None
    verdict: VerdictName
    detail: str
    told: bool | None
    at: str
    rule: str = ""
    line: int | None = None


def judge(skill_file: SkillFile, state: HostState, survey: Survey) -> Verdict:
    """The verdict of one host on one file."""
    profile = state.profile
    verdict, detail, at, rule, line = _settled(_answer(Case(skill_file, state, survey)), profile)
    told: bool | None = None
    if verdict in SEEN:
        return Verdict(profile.name, True, verdict, detail, told, at or skill_file.path, rule, line)
    if verdict not in ("unknown", "hidden-from-model"):
        telling = profile.tells.get(VERDICTS[verdict][0], "unknown")
        # What a host says of a link that leads nowhere was not tried on any.
        if telling != "unknown" and not (skill_file.broken and rule):
            told = telling == "screen"
            detail += " (only its log says so)" if telling == "log" else ""
    visible = None if verdict == "unknown" else False
    return Verdict(profile.name, visible, verdict, detail, told, at or skill_file.path, rule, line)


def _answer(case: Case) -> Outcome:
    """The answer of the first stage that knows one."""
    # Most files lie in no root of most hosts, and then no walk or list has to be asked.
    for path in case.skill_file.paths:
        if path.startswith(case.state.below):
            break
    else:
        return listed(case) or _no_root(case)
    return next((answer for stage in STAGES if (answer := stage(case))), Outcome("unknown"))


_DOUBTS: Mapping[VerdictName, str] = {
    "too-deep": "max_depth",
    "hidden-dir": "hidden",
    "dir-link-skipped": "links",
    "file-link-skipped": "linked_file",
    "ignored": "below_skill",
    "hidden-from-model": "hides_on",
}


def _settled(answer: Outcome, profile: Profile) -> Outcome:
    """The answer, or `unknown` where it rests on something nobody has established for this host."""
    if not profile.unknown or answer.verdict == "unknown":
        return answer
    if answer.rule in profile.unknown or _DOUBTS.get(answer.verdict) in profile.unknown:
        said = answer.detail or VERDICTS[answer.verdict][1]
        return answer._replace(verdict="unknown", detail=f"nobody has tried it: {said}")
    return answer


# Files that the host leaves out -------------------------------------------------------------------


def _shadowed(case: Case) -> Outcome | None:
    for path in case.skill_file.paths:
        loser = case.state.shadowed.get(path)
        if loser is not None:
            if is_open(case.profile, path, loser.by, case.state.roots):
                return Outcome("unknown", no_winner(case.profile, 2), path, NO_WINNER)
            return Outcome("shadowed-by", _beside(case, loser.by), path)
    return None


def _beside(case: Case, winner: str) -> str:
    """The copy that won, and whether it says the same."""
    other = case.survey.by_path.get(winner)
    same = other is not None and (other.head, other.size) == (case.skill_file.head, case.skill_file.size)
    return f"{shown_path(winner, case)} wins ({'the same text' if same else 'another text'})"


_FILTERED: Mapping[str, VerdictName] = {
    "too-deep": "too-deep",
    "source-off": "disabled-by-config",
    "ignored": "ignored",
    "inside-skill": "ignored",
}


def _filtered(case: Case) -> Outcome | None:
    for path in case.skill_file.paths:
        left_out = case.state.filtered.get(path)
        if left_out is not None:
            verdict = _FILTERED.get(left_out.reason, "unknown")
            doubt = switched_off(case.skill_file.folder, case.skill_file.real_path, case.state.entered.switches)
            if verdict == "disabled-by-config" and doubt is not None and doubt.verdict == "unknown":
                # What is off by itself may have been turned on there.
                return Outcome("unknown", doubt.detail, path)
            return Outcome(verdict, _FILTER_DETAILS[verdict](case, path), path)
    return None


def _too_deep(case: Case, path: str) -> str:
    root = own_root(path, case.state.roots)
    below = path[len(root.path) + 1 :] if root else path
    most = case.profile.max_depth or 0
    levels = "one level" if most == 1 else f"{most} levels"
    return f"{os.path.dirname(below)} is {below.count('/')} levels down; it goes {levels}"


def _switch(case: Case, path: str) -> str:
    for rule in _rules_at(path, case.state):
        for variable in rule.off_by:
            if is_on(variable, case.survey.environment):
                return f"the variable {variable} turns its folder off"
        if rule.host_switch:
            return f"off unless its setting {rule.host_switch} is on"
    return "off in its settings"


def _rules_at(path: str, state: HostState) -> list[RootRule]:
    """The rules of a host that name the root a file lies in."""
    root = own_root(path, state.roots)
    return [rule for rule in state.profile.roots if root and root.kind == rule.kind and root.label in rule.paths]


def to_turn_on(verdict: Verdict, state: HostState) -> str:
    """What undoes the setting by which a host leaves a file out."""
    if off := state.switched.get(verdict.at):
        return off.fix
    for rule in _rules_at(verdict.at, state):
        if variable := next((name for name in rule.off_by if f" {name} " in verdict.detail), None):
            return f"unset {variable}"
        if rule.host_switch:
            return f"turn {rule.host_switch} on in {verdict.host}"
    return f"turn it on in {verdict.host}"


_FILTER_DETAILS: Mapping[VerdictName, Callable[[Case, str], str]] = {
    "too-deep": _too_deep,
    "disabled-by-config": _switch,
    "ignored": lambda case, path: "left out by its rules",
    "unknown": lambda case, path: "",
}

RULE_VERDICTS: Mapping[str, VerdictName] = {
    "bom": "bom",
    "frontmatter-missing": "no-fence",
    "frontmatter-unclosed": "no-fence",
    "fence-blanks": "no-fence",
    "frontmatter-type": "yaml-error",
    "yaml": "yaml-error",
    "yaml-colon": "yaml-error",
    "yaml-brackets": "yaml-error",
    "yaml-tab": "yaml-error",
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
"""The verdict for each rule of ours by which a host leaves a file out; any other rule is a limit of our own."""


def _refused(case: Case) -> Outcome | None:
    for path in case.skill_file.paths:
        error = case.state.errors.get(path) or _error_above(path, case.state.folder_errors)
        if error is not None:
            return _refusal(error, path, case.profile)
    return None


def _error_above(path: str, errors: Mapping[str, Diagnostic]) -> Diagnostic | None:
    """Return the error about a folder above a file."""
    return next((error for folder, error in errors.items() if path.startswith(folder + "/")), None)


def _refusal(error: Diagnostic, path: str, profile: Profile) -> Outcome:
    where = f"line {error.line}: " if error.line and error.rule.startswith("yaml") else ""
    if error.rule == "link-skipped":
        verdict: VerdictName = "file-link-skipped" if os.path.basename(error.path) == SKILL_FILE else "dir-link-skipped"
        return Outcome(verdict, VERDICTS[verdict][1], path, error.rule)
    if error.rule == "encoding" and profile.body_text == "utf-8":
        return Outcome("wrong-type", error.message, path, error.rule, error.line)
    verdict = RULE_VERDICTS.get(error.rule, "unknown")
    if verdict == "unknown":
        reason = "cannot be read" if error.rule == "unreadable" else "skillshelf itself does not read this"
        return Outcome("unknown", f"{reason}: {error.message}", path, error.rule, error.line)
    # What we would read instead does not matter to a host that reads nothing.
    return Outcome(verdict, where + error.message.partition("; read as: ")[0], path, error.rule, error.line)


def _untrusted(case: Case) -> Outcome | None:
    """A file below a root that the host does not read before it is told to trust the folder."""
    for path in case.skill_file.paths:
        root = own_root(path, case.state.roots)
        if root is not None and not root.trusted:
            if doubt := _trust_problem(case.state):
                return Outcome("unknown", f"nobody knows whether it trusts the folder: {doubt}", path)
            return Outcome("untrusted", f"until you trust the folder (~/{case.profile.trust_file})", path)
    return None


def _trust_problem(state: HostState) -> str:
    """Why it is not known whether a host trusts a folder."""
    problems = state.entered.problems
    return next((problem.message for problem in problems if problem.rule == "settings-unreadable"), "")


def _not_walked(case: Case) -> Outcome | None:
    """A file below a root of the host that its walk passed by without a word."""
    for path in case.skill_file.paths:
        root = own_root(path, case.state.roots)
        if root is None:
            continue
        if root.real_path is None:
            return Outcome("unknown", "the root cannot be entered", path)
        if os.path.basename(path) != SKILL_FILE:
            return Outcome("wrong-file-name", f"it is called {os.path.basename(path)}", path, "file-name")
        folders = path[len(root.path) + 1 :].split("/")[:-1]
        return _passed_by(folders, root, case)._replace(at=path)
    return None


def _passed_by(folders: Sequence[str], root: Root, case: Case) -> Outcome:
    for folder in folders:
        if root.hidden == "skip" and folder.startswith("."):
            return Outcome("hidden-dir", f"{folder} begins with a dot")
        if folder in case.profile.skip_directories:
            return Outcome("ignored", f"it never looks into {folder}")
    most = case.profile.max_depth
    if most is not None and len(folders) > most:
        return Outcome("too-deep", f"{'/'.join(folders)} is {len(folders)} levels down; it goes {most}")
    if case.profile.below_skill == "skip" and len(folders) > 1:
        return Outcome("ignored", "it lies inside another skill")
    if case.state.catalog.truncated:
        return Outcome("limit-hit", f"it stops after {case.profile.max_directories:,} folders without a skill")
    return Outcome("unknown", "it lies in a root of this host and was not met there")


def _no_root(case: Case) -> Outcome:
    """A file that lies in no root of the host."""
    profile, environment = case.profile, case.survey.environment
    for path in case.skill_file.paths:
        for label in _project_roots(profile.name):
            base, found, _ = path.partition(f"/{label}/")
            if not found:
                continue
            if base != environment.cwd and files.is_inside(base, environment.cwd) and profile.nested == "on-use":
                return Outcome("unknown", "maybe, once files there are in use", path)
            said = f"not in {_shown_base(base, case)}: it reads {label} {_reach(profile)}"
            return Outcome("outside-boundary", said, path)
    home = environment.home
    at_home = home is not None and case.skill_file.path.startswith(home.rstrip("/") + "/.")
    return Outcome("root-not-read", _reads(profile.name, at_home=at_home))


def _shown_base(base: str, case: Case) -> str:
    """A folder of a project as people are shown it: one beside the working directory as seen from there."""
    shown, cwd = shown_path(base, case), case.survey.environment.cwd
    if shown != base or files.is_inside(cwd, base):
        return shown
    near = os.path.relpath(base, cwd)
    return near if not near.startswith("../../../") else shown


@cache
def _project_roots(host: str) -> tuple[str, ...]:
    return tuple(path for rule in HOSTS[host].roots if rule.kind == "project" for path in rule.paths)


def _reach(profile: Profile) -> str:
    bases = {rule.base for rule in profile.roots if rule.kind == "project"}
    return "up to the repository" if "chain" in bases else "of the working directory only"


@cache
def _reads(host: str, *, at_home: bool) -> str:
    """The roots a file would be expected in: those of a project for a project's file, else those of home."""
    kind = "user" if at_home else "project"
    paths = [path for rule in HOSTS[host].roots if rule.kind == kind for path in rule.paths]
    shown = [("~/" if at_home else "") + path for path in dict.fromkeys(paths) if not path.startswith("/")]
    return f"reads {', '.join(shown)}"


STAGES: tuple[Callable[[Case], Outcome | None], ...] = (
    listed,
    _untrusted,
    _shadowed,
    _filtered,
    _refused,
    _not_walked,
    _no_root,
)
"""Who is asked, in order; the last one always knows."""


def refusals(skill_file: SkillFile, profile: Profile, survey: Survey, *, folder: str) -> list[Finding]:
    """Why a host would leave the file out if it lay in a folder of that name in a root it reads."""
    document = document_of(skill_file, profile, survey)
    found = [placed(finding, document) for finding in check(document, folder, profile)]
    return [finding for finding in found if profile.rules[finding.rule] == "reject" or finding.rule in profile.unknown]
