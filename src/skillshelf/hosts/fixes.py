"""A verdict to what to do about it, step by step: a command to type, or what to change in the file, in words."""

import os
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import parse
from skillshelf.core.environment import Place
from skillshelf.core.values import VerdictName
from skillshelf.hosts.putting import in_the_way, link_name, put_for
from skillshelf.hosts.simulate import after_put, trusting
from skillshelf.hosts.survey import HostView, Sighting, Survey
from skillshelf.hosts.verdict import document_of, ignored_safeguard
from skillshelf.hosts.verdicts import Verdict, judge, to_turn_on

__all__ = ["Step", "asked_as", "fix_for", "made_readable", "step_for", "steps_for", "wants_put"]


class Step(NamedTuple):
    """One thing to do; `rules` are kept after it.

    For a change of the `text`, which means nothing, these are rules that it is made for. A change by `hand` may settle
    more than one: whoever closes the frontmatter has the fields that are in it.
    """

    kind: Literal["put", "trust", "clear", "text", "hand"]
    what: str
    rules: frozenset[str] = frozenset()


_PLACES: frozenset[VerdictName] = frozenset(
    {"root-not-read", "outside-boundary", "too-deep", "hidden-dir", "ignored", "limit-hit", "dir-link-skipped"}
)

_TEXT_RULES: Mapping[str, str] = {
    "bom": "remove the byte order mark",
    "fence-blanks": "remove the blanks after the opening ---",
    "yaml-colon": "put quotes around the value in {line}",
    "yaml-brackets": "put quotes around the value in {line}",
    "yaml-tab": "indent {line} with blanks instead of tabs",
}
"""Repairs that change no meaning, by the rule they satisfy."""

_BY_HAND: Mapping[str, str] = {
    "frontmatter-missing": "begin the file with a frontmatter: a line ---, name and description, a line ---",
    "frontmatter-unclosed": "end the frontmatter with a line ---",
    "frontmatter-type": "write the frontmatter as `key: value` lines",
    "yaml": "make {line} valid YAML",
    "yaml-duplicate-key": "remove one of the two keys, see {line}",
    "name-missing": "add `name: {folder}`",
    "name-type": "put quotes around the name",
    "name-length": "shorten the name to 64 characters",
    "name-pattern": "use lower-case letters, digits and single hyphens in the name",
    "name-directory": "give the folder and the name the same words",
    "description-missing": "add a description",
    "description-type": "write the description as one text in quotes",
    "description-length": "shorten the description to 1,024 characters",
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
    if verdict.visible:
        return ()
    if verdict.verdict == "unknown":
        # What keeps us from telling keeps most hosts from reading.
        return _to_mend(verdict, sighting, view) if verdict.rule in _OUR_LIMITS else ()
    if verdict.verdict == "untrusted":
        return _to_trust(sighting, view, survey)
    if wants_put(verdict, sighting):
        return _to_put(sighting, view, survey)
    if sighting.file_name != SKILL_FILE and verdict.verdict not in _FIXES:
        rename = Step("hand", _BY_HAND["file-name"])
        is_misplaced = verdict.verdict in _PLACES
        return (rename, *([_link(asked_as(sighting, survey), view.profile.name)] if is_misplaced else ()))
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
    command = _link(asked_as(sighting, survey), host)
    put = put_for(sighting, view, survey.place)
    if put is None:
        taken = in_the_way(sighting, view, survey.place)
        if sighting.path != sighting.real_path:
            # The link that is moved away may be where the skill has its name from.
            command = _link(_path_of(sighting.real_path, survey.place), host)
        return (Step("clear", f"{taken}: move it away"), command) if taken else ()
    (then,) = after_put(put, sighting, survey, [host])
    if then.visible or then.verdict == "hidden-from-model":
        return (command,)
    before = _to_mend(then, sighting, view)
    return (*before, command) if before else ()


def _link(called: str, host: str) -> Step:
    return Step("put", f"skillshelf link {called} --to {host}")


def _path_of(file: str, place: Place) -> str:
    """The folder of a file as it is typed in a command."""
    from shlex import quote

    return quote(_shown_from(os.path.dirname(file), place.cwd))


def _to_mend(verdict: Verdict, sighting: Sighting, view: HostView) -> tuple[Step, ...]:
    """What to do about what a host does not accept where it looks."""
    if verdict.verdict in _FIXES:
        what = _FIXES[verdict.verdict](verdict, view)
        kind: Literal["trust", "hand"] = "trust" if verdict.verdict == "untrusted" else "hand"
        return (Step(kind, what, frozenset({verdict.rule} - {""})),) if what else ()
    step = step_for(verdict.rule, verdict.line, sighting)
    return (step,) if step else ()


def step_for(rule: str, line: int | None, sighting: Sighting) -> Step | None:
    """What to change in the file so that a rule is kept."""
    if rule.startswith("yaml") and (lines := _lines_to_quote(sighting)):
        return Step("text", f"put quotes around the value in line {' and '.join(map(str, lines))}", _YAML)
    line = line or _line_of(rule, sighting)
    if rule == "field-type" and line:
        return _as_text(*_pair_in(line, sighting), line, sighting)
    where = f"line {line}" if line else "the frontmatter"
    if rule in _TEXT_RULES:
        return Step("text", _TEXT_RULES[rule].format(line=where), _YAML if rule in _YAML else frozenset({rule}))
    if rule not in _BY_HAND:
        return None
    return Step(
        "hand", _BY_HAND[rule].format(line=where, folder=sighting.folder), _SETTLED.get(rule, frozenset({rule}))
    )


def _as_text(key: str, value: str, line: int, sighting: Sighting) -> Step | None:
    """What to do about a value that a host wants as text; one that is not there is empty, and of no other type."""
    if key in ("name", "description"):
        return step_for(f"{key}-type" if value else f"{key}-missing", line, sighting)
    if not value:
        return Step("hand", f"write a text after `{key}:`, or remove the line", frozenset({"field-type"}))
    kind: Literal["text", "hand"] = "text" if key in _QUOTED else "hand"
    return Step(kind, f"put quotes around the value in line {line}", frozenset({"field-type"}))


def _pair_in(line: int, sighting: Sighting) -> tuple[str, str]:
    """Key and value of a line."""
    lines = sighting.head.splitlines()
    text = lines[line - 1].decode("utf-8", "replace") if line <= len(lines) else ""
    key, _, value = text.partition(":")
    return key.strip(), value.strip()


def _line_of(rule: str, sighting: Sighting) -> int | None:
    """The line of a rule's first finding."""
    findings = parse(sighting.head, whole=len(sighting.head) >= sighting.size).findings
    return next((finding.line for finding in findings if finding.rule == rule), None)


_OUR_LIMITS = frozenset({"yaml-duplicate-key"})
"""Rules by which we read nothing of a file, so that nobody can say what a host makes of it."""

_QUOTED = frozenset({"argument-hint"})
"""Fields that a repair puts into quotes."""

_FIELDS = frozenset({"name-missing", "description-missing"})
_STRUCTURE = (
    "frontmatter-missing",
    "frontmatter-unclosed",
    "frontmatter-type",
    "yaml",
    "yaml-duplicate-key",
    "encoding",
)
_SETTLED: Mapping[str, frozenset[str]] = {
    # A file whose structure is broken only seems to lack what is in it.
    **{rule: frozenset({rule}) | _FIELDS for rule in _STRUCTURE},
    "description-type": frozenset({"description-type", "description-missing", "field-type"}),
    "description-missing": frozenset({"description-missing", "description-type", "field-type"}),
    "name-type": frozenset({"name-type", "field-type"}),
    "name-missing": frozenset({"name-missing", "name-type", "field-type"}),
}
"""What is settled with a rule besides itself."""


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
    "hidden-from-model": lambda verdict, view: _BY_HAND.get(verdict.rule),
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
    return _path_of(sighting.path, survey.place)


def _shown_from(path: str, folder: str) -> str:
    """A path as it is typed in a folder."""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else path
