"""A verdict to what to do about it, step by step: a command to type, or what to change in the file, in words."""

import os
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from skillshelf.discovery import SKILL_FILE
from skillshelf.document import parse
from skillshelf.foresight import after_put, trusting
from skillshelf.place import Place
from skillshelf.putting import in_the_way, link_name, put_for
from skillshelf.questions import document_of, ignored_safeguard
from skillshelf.survey import HostView, Sighting, Survey
from skillshelf.values import VerdictName
from skillshelf.verdicts import Verdict, judge, to_turn_on

__all__ = ["Step", "asked_as", "fix_for", "made_readable", "step_for", "steps_for", "wants_put"]


class Step(NamedTuple):
    """One thing to do; `rules` are those that a change of the text satisfies which means nothing."""

    kind: Literal["put", "trust", "clear", "text", "hand"]
    what: str
    rules: frozenset[str] = frozenset()


_PLACES: frozenset[VerdictName] = frozenset(
    {"root-not-read", "outside-boundary", "too-deep", "hidden-dir", "ignored", "limit-hit", "dir-link-skipped"}
)

_TEXT_RULES: Mapping[str, str] = {
    "bom": "remove the byte order mark",
    "fence-blanks": "remove the blanks after the opening ---",
    "yaml-colon": "put quotes around the value in line {line}",
    "yaml-brackets": "put quotes around the value in line {line}",
    "yaml-tab": "indent line {line} with blanks instead of tabs",
}
"""Repairs that change no meaning, by the rule they satisfy."""

_BY_HAND: Mapping[str, str] = {
    "frontmatter-missing": "begin the file with a line ---, with nothing above it",
    "frontmatter-unclosed": "end the frontmatter with a line ---",
    "frontmatter-type": "write the frontmatter as `key: value` lines",
    "yaml": "make line {line} valid YAML",
    "name-missing": "add `name: {folder}`",
    "name-type": "put quotes around the name",
    "name-length": "shorten the name to 64 characters",
    "name-pattern": "use lower-case letters, digits and single hyphens in the name",
    "name-directory": "give the folder and the name the same words",
    "description-missing": "add a description",
    "description-type": "write the description as one text in quotes",
    "description-length": "shorten the description to 1,024 characters",
    "field-type": "put quotes around the value that is not text",
    "body-encoding": "save the file as UTF-8",
    "encoding": "save the file as UTF-8",
    "file-name": "rename the file to SKILL.md",
    "root-file": "give SKILL.md a folder of its own",
    "link-skipped": "put a real SKILL.md in place of the link",
    "not-a-file": "put a real file in its place",
}


_READABLE = "make the file readable for yourself"


def made_readable(sighting: Sighting, place: Place) -> str:
    """What to do about a file that cannot be read."""
    from shlex import quote

    if not sighting.broken:
        return f"{_READABLE} ({sighting.problem})"
    link = _shown_from(sighting.broken, place.cwd)
    return f"{sighting.problem}; put that back, or remove the link: rm {quote(link)}"


def fix_for(verdict: Verdict, sighting: Sighting, view: HostView, survey: Survey) -> str | None:
    """What to do so that this host sees the file; None where there is nothing to do, or nobody knows."""
    return ", then: ".join(step.what for step in steps_for(verdict, sighting, view, survey)) or None


def steps_for(verdict: Verdict, sighting: Sighting, view: HostView, survey: Survey) -> tuple[Step, ...]:
    """What to do, in order, so that this host sees the file."""
    if sighting.problem:
        return (Step("hand", made_readable(sighting, survey.place)),)
    if verdict.visible or verdict.verdict == "unknown":
        return ()
    if verdict.verdict == "untrusted":
        return _to_trust(sighting, view, survey)
    if wants_put(verdict, sighting):
        return _to_put(sighting, view, survey)
    if sighting.file_name != SKILL_FILE and verdict.verdict not in _FIXES:
        return (Step("hand", _BY_HAND["file-name"]),)
    return _to_mend(verdict, sighting, view)


def wants_put(verdict: Verdict, sighting: Sighting) -> bool:
    """Whether the skill lies where this host does not see it, so that a link or a copy is what it lacks."""
    is_misplaced = verdict.verdict in _PLACES and verdict.rule != "root-file"
    return is_misplaced and sighting.file_name == SKILL_FILE and not sighting.problem


def _to_trust(sighting: Sighting, view: HostView, survey: Survey) -> tuple[Step, ...]:
    """What to do for a host that asks for trust: that, and what is still to do then."""
    trusted = trusting(view, survey)
    then = survey._replace(views={**survey.views, view.profile.name: trusted})
    first = Step("trust", f"trust this folder in {view.profile.name}")
    return (first, *steps_for(judge(sighting, trusted, then), sighting, trusted, then))


def _to_put(sighting: Sighting, view: HostView, survey: Survey) -> tuple[Step, ...]:
    """The command that makes a host see a file, after whatever has to be done before it."""
    host = view.profile.name
    if ignored_safeguard(document_of(sighting, view.profile, survey).fields, view.profile):
        # Nobody is advised to hand a skill to a host that does not heed its author.
        return ()
    command = Step("put", f"skillshelf link {asked_as(sighting, survey)} --to {host}")
    put = put_for(sighting, view, survey.place)
    if put is None:
        taken = in_the_way(sighting, view, survey.place)
        return (Step("clear", f"{taken}: move it away"), command) if taken else ()
    (then,) = after_put(put, sighting, survey, [host])
    if then.visible or then.verdict == "hidden-from-model":
        return (command,)
    before = _to_mend(then, sighting, view)
    return (*before, command) if before else ()


def _to_mend(verdict: Verdict, sighting: Sighting, view: HostView) -> tuple[Step, ...]:
    """What to do about what a host does not accept where it looks."""
    if verdict.verdict in _FIXES:
        what = _FIXES[verdict.verdict](verdict, view)
        kind: Literal["trust", "hand"] = "trust" if verdict.verdict == "untrusted" else "hand"
        return (Step(kind, what),) if what else ()
    step = step_for(verdict.rule, verdict.line, sighting)
    return (step,) if step else ()


def step_for(rule: str, line: int | None, sighting: Sighting) -> Step | None:
    """What to change in the file so that a rule is kept."""
    if rule.startswith("yaml") and (lines := _lines_to_quote(sighting)):
        return Step("text", f"put quotes around the value in line {' and '.join(map(str, lines))}", _YAML)
    if rule in _TEXT_RULES:
        return Step("text", _TEXT_RULES[rule].format(line=line), _YAML if rule in _YAML else frozenset({rule}))
    sentence = _BY_HAND.get(rule)
    return Step("hand", sentence.format(line=line, folder=sighting.folder)) if sentence else None


_YAML = frozenset({"yaml-colon", "yaml-brackets", "yaml-tab"})
"""Rules whose mistakes are repaired together."""


def _lines_to_quote(sighting: Sighting) -> list[int]:
    """The lines whose values only lack quotes; none where more than that is wrong."""
    findings = parse(sighting.head, whole=len(sighting.head) >= sighting.size).findings
    return [f.line for f in findings if f.line and f.rule in ("yaml-colon", "yaml-brackets")]


_FIXES: Mapping[VerdictName, Callable[[Verdict, HostView], str | None]] = {
    "shadowed-by": lambda verdict, view: "rename or remove one of the two",
    "disabled-by-config": to_turn_on,
    "untrusted": lambda verdict, view: f"trust this folder in {view.profile.name}",
    "hidden-from-model": lambda verdict, view: "add a description" if "no description" in verdict.detail else None,
    "over-budget": lambda verdict, view: "shorten descriptions, here or of other skills",
}


def asked_as(sighting: Sighting, survey: Survey) -> str:
    """What a command must call a skill by: its name, or the path of its folder where that does not lead to it alone."""
    from shlex import quote

    name = link_name(sighting)
    alike = [other for other in survey.sightings if name in (other.folder, link_name(other)) and not other.problem]
    # A file without a base lies in no root: only a search below this folder would meet it.
    if len(alike) == 1 and sighting.base and not name.startswith("-"):
        return quote(name)
    return quote(_shown_from(os.path.dirname(sighting.path), survey.place.cwd))


def _shown_from(path: str, folder: str) -> str:
    """A path as it is typed in a folder."""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else path
