"""A survey to verdicts: does this host tell its model about this file, and if not, the first rule that keeps it out.

The stages are asked in the host's own order: root, walk, text, name, model. Each is a function that knows the
answer or passes the question on; what evidence leaves open ends as `unknown`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.host_settings import switched_off
from skillshelf.catalog.rules import check, placed
from skillshelf.catalog.search_roots import is_on
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile, RootRule
from skillshelf.core import files
from skillshelf.core.values import Diagnostic, Finding, Root, VerdictName
from skillshelf.hosts.listings import NO_WINNER, is_open, listed, no_winner
from skillshelf.hosts.survey import HostView, Sighting, Survey
from skillshelf.hosts.verdict import SEEN, VERDICTS, Answer, Question, document_of, own_root, shown_path

__all__ = ["VERDICTS", "Verdict", "judge", "refusals", "to_turn_on"]


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


def judge(sighting: Sighting, view: HostView, survey: Survey) -> Verdict:
    """The verdict of one host on one file."""
    profile = view.profile
    verdict, detail, at, rule, line = _settled(_answer(Question(sighting, view, survey)), profile)
    told: bool | None = None
    if verdict in SEEN:
        return Verdict(profile.name, True, verdict, detail, told, at or sighting.path, rule, line)
    if verdict not in ("unknown", "hidden-from-model"):
        telling = profile.tells.get(VERDICTS[verdict][0], "unknown")
        # What a host says of a link that leads nowhere was not tried on any.
        if telling != "unknown" and not (sighting.broken and rule):
            told = telling == "screen"
            detail += " (only its log says so)" if telling == "log" else ""
    visible = None if verdict == "unknown" else False
    return Verdict(profile.name, visible, verdict, detail, told, at or sighting.path, rule, line)


def _answer(question: Question) -> Answer:
    """The answer of the first stage that knows one."""
    # Most files lie in no root of most hosts, and then no walk or list has to be asked.
    for way in question.sighting.ways:
        if way.startswith(question.view.below):
            break
    else:
        return listed(question) or _no_root(question)
    return next((answer for stage in STAGES if (answer := stage(question))), Answer("unknown"))


_DOUBTS: Mapping[VerdictName, str] = {
    "too-deep": "max_depth",
    "hidden-dir": "hidden",
    "dir-link-skipped": "links",
    "file-link-skipped": "linked_file",
    "ignored": "below_skill",
    "hidden-from-model": "hides_on",
}


def _settled(answer: Answer, profile: Profile) -> Answer:
    """The answer, or `unknown` where it rests on something nobody has established for this host."""
    if not profile.unknown or answer.verdict == "unknown":
        return answer
    if answer.rule in profile.unknown or _DOUBTS.get(answer.verdict) in profile.unknown:
        said = answer.detail or VERDICTS[answer.verdict][1]
        return answer._replace(verdict="unknown", detail=f"nobody has tried it: {said}")
    return answer


# Files that the host leaves out -------------------------------------------------------------------


def _shadowed(question: Question) -> Answer | None:
    for way in question.sighting.ways:
        loser = question.view.shadowed.get(way)
        if loser is not None:
            if is_open(question.profile, way, loser.by, question.view.roots):
                return Answer("unknown", no_winner(question.profile, 2), way, NO_WINNER)
            return Answer("shadowed-by", _beside(question, loser.by), way)
    return None


def _beside(question: Question, winner: str) -> str:
    """The copy that won, and whether it says the same."""
    other = question.survey.by_path.get(winner)
    same = other is not None and (other.head, other.size) == (question.sighting.head, question.sighting.size)
    return f"{shown_path(winner, question)} wins ({'the same text' if same else 'another text'})"


_FILTERED: Mapping[str, VerdictName] = {
    "too-deep": "too-deep",
    "source-off": "disabled-by-config",
    "ignored": "ignored",
    "inside-skill": "ignored",
}


def _filtered(question: Question) -> Answer | None:
    for way in question.sighting.ways:
        left_out = question.view.filtered.get(way)
        if left_out is not None:
            verdict = _FILTERED.get(left_out.reason, "unknown")
            doubt = switched_off(question.sighting.folder, question.sighting.real_path, question.view.entered.switches)
            if verdict == "disabled-by-config" and doubt is not None and doubt.verdict == "unknown":
                # What is off by itself may have been turned on there.
                return Answer("unknown", doubt.detail, way)
            return Answer(verdict, _FILTER_DETAILS[verdict](question, way), way)
    return None


def _too_deep(question: Question, way: str) -> str:
    root = own_root(way, question.view.roots)
    below = way[len(root.path) + 1 :] if root else way
    most = question.profile.max_depth or 0
    levels = "one level" if most == 1 else f"{most} levels"
    return f"{os.path.dirname(below)} is {below.count('/')} levels down; it goes {levels}"


def _switch(question: Question, way: str) -> str:
    for rule in _rules_at(way, question.view):
        for variable in rule.off_by:
            if is_on(variable, question.survey.place):
                return f"the variable {variable} turns its folder off"
        if rule.host_switch:
            return f"off unless its setting {rule.host_switch} is on"
    return "off in its settings"


def _rules_at(way: str, view: HostView) -> list[RootRule]:
    """The rules of a host that name the root a file lies in."""
    root = own_root(way, view.roots)
    return [rule for rule in view.profile.roots if root and root.kind == rule.kind and root.label in rule.paths]


def to_turn_on(verdict: Verdict, view: HostView) -> str:
    """What undoes the setting by which a host leaves a file out."""
    if off := view.switched.get(verdict.at):
        return off.fix
    for rule in _rules_at(verdict.at, view):
        if variable := next((name for name in rule.off_by if f" {name} " in verdict.detail), None):
            return f"unset {variable}"
        if rule.host_switch:
            return f"turn {rule.host_switch} on in {verdict.host}"
    return f"turn it on in {verdict.host}"


_FILTER_DETAILS: Mapping[VerdictName, Callable[[Question, str], str]] = {
    "too-deep": _too_deep,
    "disabled-by-config": _switch,
    "ignored": lambda question, way: "left out by its rules",
    "unknown": lambda question, way: "",
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


def _refused(question: Question) -> Answer | None:
    for way in question.sighting.ways:
        error = question.view.errors.get(way) or _error_above(way, question.view.folder_errors)
        if error is not None:
            return _refusal(error, way, question.profile)
    return None


def _error_above(way: str, errors: Mapping[str, Diagnostic]) -> Diagnostic | None:
    """The error about a folder that a file lies in."""
    return next((error for path, error in errors.items() if way.startswith(path + "/")), None)


def _refusal(error: Diagnostic, way: str, profile: Profile) -> Answer:
    where = f"line {error.line}: " if error.line and error.rule.startswith("yaml") else ""
    if error.rule == "link-skipped":
        verdict: VerdictName = "file-link-skipped" if os.path.basename(error.path) == SKILL_FILE else "dir-link-skipped"
        return Answer(verdict, VERDICTS[verdict][1], way, error.rule)
    if error.rule == "encoding" and profile.body_text == "utf-8":
        return Answer("wrong-type", error.message, way, error.rule, error.line)
    verdict = RULE_VERDICTS.get(error.rule, "unknown")
    if verdict == "unknown":
        reason = "cannot be read" if error.rule == "unreadable" else "skillshelf itself does not read this"
        return Answer("unknown", f"{reason}: {error.message}", way, error.rule, error.line)
    # What we would read instead does not matter to a host that reads nothing.
    return Answer(verdict, where + error.message.partition("; read as: ")[0], way, error.rule, error.line)


def _untrusted(question: Question) -> Answer | None:
    """A file below a root that the host does not read before it is told to trust the folder."""
    for way in question.sighting.ways:
        root = own_root(way, question.view.roots)
        if root is not None and not root.trusted:
            if doubt := _trust_problem(question.view):
                return Answer("unknown", f"nobody knows whether it trusts the folder: {doubt}", way)
            return Answer("untrusted", f"until you trust the folder (~/{question.profile.trust_file})", way)
    return None


def _trust_problem(view: HostView) -> str:
    """Why it is not known whether a host trusts a folder."""
    problems = view.entered.problems
    return next((problem.message for problem in problems if problem.rule == "settings-unreadable"), "")


def _not_walked(question: Question) -> Answer | None:
    """A file below a root of the host that its walk passed by without a word."""
    for way in question.sighting.ways:
        root = own_root(way, question.view.roots)
        if root is None:
            continue
        if root.real_path is None:
            return Answer("unknown", "the root cannot be entered", way)
        if os.path.basename(way) != SKILL_FILE:
            return Answer("wrong-file-name", f"it is called {os.path.basename(way)}", way, "file-name")
        folders = way[len(root.path) + 1 :].split("/")[:-1]
        return _passed_by(folders, root, question)._replace(at=way)
    return None


def _passed_by(folders: Sequence[str], root: Root, question: Question) -> Answer:
    for folder in folders:
        if root.hidden == "skip" and folder.startswith("."):
            return Answer("hidden-dir", f"{folder} begins with a dot")
        if folder in question.profile.skip_directories:
            return Answer("ignored", f"it never looks into {folder}")
    most = question.profile.max_depth
    if most is not None and len(folders) > most:
        return Answer("too-deep", f"{'/'.join(folders)} is {len(folders)} levels down; it goes {most}")
    if question.profile.below_skill == "skip" and len(folders) > 1:
        return Answer("ignored", "it lies inside another skill")
    if question.view.catalog.truncated:
        return Answer("limit-hit", f"it stops after {question.profile.max_directories:,} folders without a skill")
    return Answer("unknown", "it lies in a root of this host and was not met there")


def _no_root(question: Question) -> Answer:
    """A file that lies in no root of the host."""
    profile, place = question.profile, question.survey.place
    for way in question.sighting.ways:
        for label in _project_roots(profile.name):
            base, found, _ = way.partition(f"/{label}/")
            if not found:
                continue
            if base != place.cwd and files.is_inside(base, place.cwd) and profile.nested == "on-use":
                return Answer("unknown", "maybe, once files there are in use", way)
            said = f"not in {_shown_base(base, question)}: it reads {label} {_reach(profile)}"
            return Answer("outside-boundary", said, way)
    home = place.home
    at_home = home is not None and question.sighting.path.startswith(home.rstrip("/") + "/.")
    return Answer("root-not-read", _reads(profile.name, at_home=at_home))


def _shown_base(base: str, question: Question) -> str:
    """A folder of a project as people are shown it: one beside the working directory as seen from there."""
    shown, cwd = shown_path(base, question), question.survey.place.cwd
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


STAGES: tuple[Callable[[Question], Answer | None], ...] = (
    listed,
    _untrusted,
    _shadowed,
    _filtered,
    _refused,
    _not_walked,
    _no_root,
)
"""Who is asked, in order; the last one always knows."""


def refusals(sighting: Sighting, profile: Profile, survey: Survey, *, folder: str) -> list[Finding]:
    """Why a host would leave the file out if it lay in a folder of that name in a root it reads."""
    document = document_of(sighting, profile, survey)
    found = [placed(finding, document) for finding in check(document, folder, profile)]
    return [finding for finding in found if profile.rules[finding.rule] == "reject" or finding.rule in profile.unknown]
