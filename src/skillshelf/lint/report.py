"""Every rule by id: why it is there, and how to mend what it finds. Only `check` and the documentation read this."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from skillshelf.config.profile import RULES, Profile
from skillshelf.config.systems import severities_for_authors
from skillshelf.core.console import PathDisplay, Screen, Style, as_json
from skillshelf.core.text import visible
from skillshelf.lint.check import Change, CheckFinding, Level, Report

__all__ = ["FORMATS", "GUIDANCE", "Guidance", "Reader"]


class Guidance(NamedTuple):
    """What an author wants to know about a rule."""

    why: str
    how: str


_UNQUOTED = "YAML reads such a value as something else, or not at all; most agents then drop the skill without a word."
_BOUND = "A reader that takes anything can be held up or filled up by one file."

GUIDANCE: dict[str, Guidance] = {
    # A root
    "root-missing": Guidance(
        "You named a folder of skills, and nothing is there: its skills are missing everywhere.",
        "Mend the path in the variable or the configuration, or make the folder.",
    ),
    "root-not-a-directory": Guidance(
        "Skills are looked for in folders; this is something else.", "Move it away and make a folder of that name."
    ),
    "root-unreadable": Guidance(
        "The system does not let us list the folder, so nothing in it is found.",
        "Give yourself the right to read it: chmod u+rx.",
    ),
    "root-link": Guidance(
        "A cloned repository must not reach out of itself by a link.",
        "Put the folder into the repository, or name its target as a root of your own.",
    ),
    "root-file": Guidance(
        "A skill is a folder with a SKILL.md; a SKILL.md among the folders belongs to none.",
        "Move it into a folder that has the skill's name.",
    ),
    "home-missing": Guidance("Your own skills lie below the home folder.", "Set HOME to an absolute path."),
    "boundary-outside": Guidance(
        "A boundary that is not above the working directory bounds nothing.", "Name a folder above this one."
    ),
    "plugins-unreadable": Guidance(
        "The folders of installed plugins are named in that list.", "Mend the file, or install the plugin again."
    ),
    "settings-unreadable": Guidance(
        "Whether a host trusts a folder, and so what it reads there, stands in that file.", "Mend the file."
    ),
    # A folder or file
    "walk-limit": Guidance(
        "A walk without an end would hold up every agent that starts.",
        "Keep skills in a folder of their own, away from large trees, or raise `max_directories`.",
    ),
    "unreadable": Guidance(
        "What cannot be read cannot be listed.", "Give yourself the right to read it: chmod u+r, for folders u+rx."
    ),
    "not-a-file": Guidance(
        "Reading a pipe or a device can hang or have effects; a link to nothing has no text.",
        "Put a regular file there.",
    ),
    "file-size": Guidance(
        "An agent reads SKILL.md whole; what is larger than a megabyte fits no context.",
        "Move data into files beside it and name them in the text.",
    ),
    "file-name": Guidance(
        "Agents look for `SKILL.md`, with these letters; on most systems another spelling is another file.",
        "Rename the file to SKILL.md.",
    ),
    "path-encoding": Guidance(
        "A path that is no text cannot be printed, stored or sent to a model.", "Rename the folder."
    ),
    "link-outside": Guidance(
        "A cloned repository must not reach out of itself by a link.",
        "Copy the skill here, or name the folder it lies in as a root of your own.",
    ),
    "link-skipped": Guidance("This profile's system follows no links.", "Copy the skill instead of linking it."),
    "link-broken": Guidance("The link was meant to lead to a skill.", "Mend the link or remove it."),
    "link-loop": Guidance("Walking in a circle finds nothing new.", "Remove the link."),
    "too-deep": Guidance(
        "Agents look only some levels deep, and most only one.", "Move the skill's folder directly below the root."
    ),
    "inside-skill": Guidance(
        "A folder below a skill belongs to that skill; agents do not look for skills in it.",
        "Move it beside the outer skill if it should be one; leave it if it is an example.",
    ),
    # The form of a SKILL.md
    "encoding": Guidance("Agents read UTF-8; anything else is rubbish or an error.", "Save the file as UTF-8."),
    "control-character": Guidance(
        "YAML forbids them, and a terminal would obey them.", "Delete the character at that place."
    ),
    "bom": Guidance(
        "Several agents look for `---` as the first three bytes and do not see the skill.",
        "`--fix` takes the mark away; in an editor, save as UTF-8 without BOM.",
    ),
    "crlf": Guidance(
        "Some readers keep the carriage return as part of a value or miss the fence.",
        "`--fix` makes them LF; keep them so with `*.md text eol=lf` in .gitattributes.",
    ),
    "fence-blanks": Guidance(
        "Some agents compare the first line with `---` to the letter and drop the file.", "`--fix` deletes the blanks."
    ),
    "frontmatter-missing": Guidance(
        "Name and description are read from the lines between two `---`; without them there is no skill.",
        "Begin the file, in its first line, with `---`, name, description and `---`.",
    ),
    "frontmatter-unclosed": Guidance(
        "Without a second `---` nobody knows where the fields end.", "Put a line `---` after the last field."
    ),
    "frontmatter-size": Guidance(_BOUND, "Keep the fields short; long text belongs below the frontmatter."),
    "frontmatter-depth": Guidance(_BOUND, "Use flat fields."),
    "frontmatter-keys": Guidance(_BOUND, "Move data into a file beside SKILL.md."),
    "frontmatter-type": Guidance(
        "A list or a sentence has no field `name`.", "Write one `key: value` a line between the fences."
    ),
    "yaml": Guidance(
        "A frontmatter that cannot be read drops the skill, in most agents without a word.",
        "Mend the line named; values with `:`, `#`, quotes or brackets are safest in double quotes.",
    ),
    "yaml-alias": Guidance(
        "A few lines of aliases can grow to gigabytes, and many readers refuse them.", "Write the value out."
    ),
    "yaml-tag": Guidance("Tags ask the reader to make objects; most refuse or ignore them.", "Delete the tag."),
    "yaml-merge": Guidance("Merge keys are not part of YAML 1.2.", "Write the fields out."),
    "yaml-duplicate-key": Guidance(
        "One reader takes the first, another the last, a third refuses the file.", "Keep one of them."
    ),
    "yaml-key": Guidance("Fields are found by their name, which is text.", "Use a word as key."),
    "yaml-value": Guidance("The value would be changed on its way to an agent.", "Put quotes around it."),
    "yaml-colon": Guidance(_UNQUOTED, "`--fix` puts quotes around the value."),
    "yaml-brackets": Guidance(_UNQUOTED, "`--fix` puts quotes around the value."),
    "yaml-tab": Guidance(
        "YAML forbids tabs as indentation.",
        "`--fix` makes each tab two blanks, unless a wider tab would say something else.",
    ),
    "yaml-lines": Guidance(
        "Some agents read such a file line by line, others leave it out.", "Write valid YAML, with text as values."
    ),
    # Its fields
    "name-missing": Guidance(
        "The specification requires it; some agents drop a skill without one.", "`--fix` takes the folder's name."
    ),
    "name-type": Guidance("A number or a truth value is no name.", "Put quotes around it."),
    "name-address": Guidance(
        "Names become addresses, commands and file names.", "Use lower-case letters, digits and hyphens."
    ),
    "name-length": Guidance("The specification allows 64 characters.", "Choose a shorter name for folder and field."),
    "name-pattern": Guidance(
        "The specification allows lower-case letters, digits and single hyphens; some agents reject the rest.",
        "Rename the folder so, then `--fix` takes its name.",
    ),
    "name-directory": Guidance(
        "The specification wants both to be the same: some agents go by one, some by the other.",
        "`--fix` takes the folder's name; if the field is right, rename the folder instead.",
    ),
    "name-collision": Guidance(
        "Only one of them is reached by its name, and which one depends on the agent.", "Rename one of them."
    ),
    "description-missing": Guidance(
        "The description is all a model has to choose the skill by.",
        "Say in one or two sentences what the skill does and when to use it.",
    ),
    "description-type": Guidance("A description is read as text.", "Put quotes around it."),
    "description-length": Guidance(
        "The specification allows 1,024 characters; agents cut or drop what is longer.",
        "Keep what helps to choose the skill, and move the rest below the frontmatter.",
    ),
    "license-type": Guidance("The specification asks for text.", "Put quotes around it."),
    "version-type": Guidance("`1.10` without quotes is the number 1.1.", "Put quotes around it."),
    "compatibility-type": Guidance("The specification asks for text.", "Write one sentence."),
    "compatibility-length": Guidance("The specification allows 1 to 500 characters.", "Shorten it, or remove it."),
    "metadata-type": Guidance("The specification asks for a map of texts.", "Write one `key: value` a line below it."),
    "metadata-values": Guidance(
        "The specification asks for texts; a strict reader refuses numbers, lists and maps.",
        "Put quotes around each value.",
    ),
    "allowed-tools-type": Guidance("Agents read one text.", "Write the tools in one line, with blanks between."),
    "allowed-tools-list": Guidance(
        "The specification asks for one text; not every agent reads a list.",
        "Write the tools in one line, with blanks between.",
    ),
    "field-type": Guidance("An agent that wants text there leaves the skill out.", "Put quotes around the value."),
    "globs-type": Guidance("Patterns are matched one by one.", "Write a list of texts."),
    "always-apply-type": Guidance("It is a switch.", "Write true or false."),
    "unknown-field": Guidance(
        "Other agents ignore it; if it is a misspelling, so does yours.",
        "Mend the spelling, or move data of your own below `metadata`.",
    ),
    "hidden-text": Guidance(
        "A person does not see it and a model obeys it: that is how instructions are smuggled.", "Delete it."
    ),
    # What only `check` looks at
    "description-cut": Guidance(
        "YAML takes everything from ` #` on for a comment: no agent ever sees it.",
        "Put quotes around the whole description.",
    ),
    "description-vague": Guidance(
        "A model chooses among dozens of skills by this text; fewer than six words rarely tell them apart.",
        "Say what the skill does and leaves behind, and when to use it, in the words users type.",
    ),
    "description-when": Guidance(
        "A model that is not told when to use a skill uses it too rarely.",
        'Add a sentence such as "Use when the user asks for ...".',
    ),
    "description-long": Guidance(
        "Every conversation carries every description; agents cut them when there are many.",
        "Keep what helps to choose the skill within 500 characters.",
    ),
    "body-empty": Guidance("Loading the skill gives a model nothing.", "Write what to do, step by step."),
    "body-encoding": Guidance("The skill is listed, and then cannot be loaded.", "Save the file as UTF-8."),
    "body-control-character": Guidance(
        "It has no meaning in Markdown; a terminal would obey it, and some tools take the file for binary.",
        "Delete the character at that place.",
    ),
    "body-lines": Guidance(
        "The specification advises at most 500 lines: all of them are loaded each time.",
        "Move what only some tasks need to references/, and say in the text when to read it.",
    ),
    "body-tokens": Guidance(
        "The specification advises at most 5,000 tokens (bytes / 4): all of them are loaded each time.",
        "Move what only some tasks need to references/, and say in the text when to read it.",
    ),
    "reference-missing": Guidance(
        "A model that follows the text finds nothing, and guesses.", "Mend the path, add the file, or cut the sentence."
    ),
    "reference-outside": Guidance(
        "A skill is installed as one folder; what lies beside it stays behind.", "Copy the file into the skill."
    ),
    "reference-deep": Guidance(
        "A model reads what SKILL.md names; what only a reference names is read late, in part or never.",
        "Name the file in SKILL.md, with the case that needs it.",
    ),
    "script-shebang": Guidance(
        "Without `#!` a script runs only for those who know what runs it.",
        "Begin the file with a line such as `#!/usr/bin/env python3`.",
    ),
    "script-run-bit": Guidance("The system refuses to run it by its path.", "chmod +x, and git add the new mode."),
    "check-limit": Guidance(_BOUND, "Nothing needs mending; the files beyond the limit were not checked."),
    "skill-unknown": Guidance(
        "A model that is sent to a skill which is not there loses its way.",
        "Mend the name, install the skill, or say where it comes from.",
    ),
    "skill-cycle": Guidance(
        "Skills that send a reader to each other can fill a context with one another.",
        "Let one of them lead, and cut the way back.",
    ),
    # What other hosts make of it
    "portability-safeguard": Guidance(
        "Where the field is ignored, what it should hold back is not held back.",
        "Say it in the text, too, or keep the skill from those agents.",
    ),
    "portability-field": Guidance(
        "The skill behaves differently from agent to agent.", "Do not let the skill depend on the field."
    ),
    # A load
    "changed": Guidance("What was listed is not what was loaded.", "Look again."),
    "closing-tag": Guidance("A text must not end the element it stands in.", "Write the tag in another way."),
    # The configuration
    "config-untrusted": Guidance("A project must not widen its own rights.", "Trust the folder if you do."),
    "skills-disabled": Guidance("You, or this project, switched skills off.", "Set `skills.enabled = true`."),
    # Ourselves
    "internal": Guidance("It is our mistake and not yours.", "Please report it, with the file if you can."),
}


class Reader(NamedTuple):
    """Who reads a report: from where paths are shown, on what screen, and by what command it was asked for."""

    where: PathDisplay
    screen: Screen
    profile: Profile
    base: str
    paths: tuple[str, ...] = ()


Format = Callable[[Report, Reader], str]
"""The whole text of a report in one format."""

# Text ---------------------------------------------------------------------------------------------

_STYLES: Mapping[Level, Style] = {"error": "red", "warning": "yellow", "info": "dim"}
_NOUNS: Mapping[Level, str] = {"error": "error", "warning": "warning", "info": "note"}


def text_report(report: Report, reader: Reader) -> str:
    """The report for people: what was repaired, then the findings file by file, then what to do."""
    lines = [line for change in report.changes if change.diff and not change.refusal for line in _diff(change, reader)]
    for path, findings in groupby(report.findings, key=lambda finding: finding.path):
        lines += [reader.screen.paint(visible(reader.where.short(path)) or "(this machine)", "bold")]
        lines += _rows([*findings], reader.screen)
        lines += [""]
    return "\n".join([*lines, *_summary(report, reader)]) + "\n"


def _rows(findings: Sequence[CheckFinding], screen: Screen) -> Iterator[str]:
    places = [f"{finding.line}:{finding.column}" if finding.line else "" for finding in findings]
    cells = (max(map(len, places)), max(len(f.severity) for f in findings), max(len(f.rule) for f in findings))
    for place, finding in zip(places, findings, strict=True):
        row = (place.ljust(cells[0]), finding.severity.ljust(cells[1]), finding.rule.ljust(cells[2]), finding.message)
        styles: tuple[Style | None, ...] = ("dim", _STYLES[finding.severity], "dim", None)
        yield from screen.table([row], styles, indent=2, wrap=True)
        if _has_more(finding):
            yield from screen.table([("", f"repaired: {finding.fix}")], (None, "green"), indent=cells[0] + 2, wrap=True)


def _has_more(finding: CheckFinding) -> bool:
    """Whether the repaired text says more than the message."""
    return finding.fix is not None and finding.fix not in finding.message


def _diff(change: Change, reader: Reader) -> Iterator[str]:
    name = visible(reader.where.short(change.path))
    yield from (f"--- {name}", f"+++ {name}")
    for line in change.diff[2:]:
        yield reader.screen.paint(visible(line), _diff_style(line))
    yield ""


def _diff_style(line: str) -> Style | None:
    return {"+": "green", "-": "red", "@": "dim", "#": "dim"}.get(line[:1])  # type: ignore[return-value]


def _summary(report: Report, reader: Reader) -> Iterator[str]:
    counts = {level: sum(f.severity == level for f in report.findings) for level in _NOUNS}
    told = ", ".join(_plural(count, _NOUNS[level]) for level, count in counts.items() if count) or "nothing to report"
    worst: Style = "red" if counts["error"] else "yellow" if counts["warning"] else "green"
    yield reader.screen.paint(f"{_plural(report.checked, 'skill')} checked: {told}", worst)
    if report.fixed:
        yield f"{_plural(report.fixed, 'finding')} repaired in {_plural(_written(report), 'file')}"
    refused = {change.path for change in report.changes if change.refusal}
    if repairable := sum(finding.fix is not None and finding.path not in refused for finding in report.findings):
        words = " ".join(["skillshelf check", *(visible(path) for path in reader.paths), "--fix"])
        yield f"{repairable} can be repaired without guessing: {words}"
    if not report.checked and not report.findings:
        yield "There is no skill here yet; make one: skillshelf new NAME"


def _written(report: Report) -> int:
    return sum(change.refusal is None for change in report.changes)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# Programs -----------------------------------------------------------------------------------------


def json_report(report: Report, reader: Reader) -> str:
    """The report as one line of JSON."""
    return as_json(report.to_dict())


_SARIF_LEVELS: Mapping[Level, str] = {"error": "error", "warning": "warning", "info": "note"}


def sarif_report(report: Report, reader: Reader) -> str:
    """The report in the format that code hosts and editors exchange, SARIF 2.1.0."""
    rules = sorted({finding.rule for finding in report.findings})
    driver = {
        "name": "skillshelf",
        # The package itself stands above its modules, and is loaded before any of them.
        "version": sys.modules["skillshelf"].__version__,
        "rules": [_sarif_rule(rule, reader.profile) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": f"{_address(reader.base.rstrip('/'))}/"}},
        "results": [_sarif_result(finding, rules, reader.base) for finding in report.findings],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return as_json({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _sarif_rule(rule: str, profile: Profile) -> dict[str, Any]:
    why, how = GUIDANCE[rule]
    weight = severities_for_authors(profile)[rule]
    level = {"reject": "error", "warn": "warning", "info": "note", "off": "none"}[weight]
    return {
        "id": rule,
        "shortDescription": {"text": RULES[rule].summary},
        "fullDescription": {"text": why},
        "help": {"text": how, "markdown": how},
        "defaultConfiguration": {"level": level},
    }


def _sarif_result(finding: CheckFinding, rules: Sequence[str], base: str) -> dict[str, Any]:
    artifact = _artifact(finding.path, base)
    place: dict[str, Any] = {"artifactLocation": artifact}
    if finding.line is not None:
        place["region"] = {"startLine": finding.line, "startColumn": finding.column or 1}
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": visible(finding.message)},
        # What is wrong with the machine has no path.
        "locations": [{"physicalLocation": place}] if finding.path else [],
    }
    if finding.fix is not None and finding.line is not None and finding.rule in _WHOLE_LINE:
        result["fixes"] = [
            {
                "description": {"text": "Write the line as it is read."},
                "artifactChanges": [
                    {
                        "artifactLocation": artifact,
                        "replacements": [
                            {
                                "deletedRegion": {"startLine": finding.line, "startColumn": finding.column or 1},
                                "insertedContent": {"text": finding.fix},
                            }
                        ],
                    }
                ],
            }
        ]
    return result


# Their repair is the rest of the one line they are about.
_WHOLE_LINE = frozenset({"yaml-colon", "yaml-brackets", "name-directory", "name-pattern", "name-length", "name-type"})


def _artifact(path: str, base: str) -> dict[str, str]:
    inside = _inside(path, base)
    if inside is None:
        return {"uri": _address(path)}
    return {"uri": quote(inside, errors="surrogateescape"), "uriBaseId": "SRCROOT"}


def _address(path: str) -> str:
    return f"file://{quote(path, errors='surrogateescape')}"


def _inside(path: str, base: str) -> str | None:
    """The path from the base, where it lies below it."""
    prefix = base.rstrip("/") + "/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


# Annotations --------------------------------------------------------------------------------------

_COMMANDS: Mapping[Level, str] = {"error": "error", "warning": "warning", "info": "notice"}
_IN_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_DATA, ":": "%3A", ",": "%2C"}


def github_report(report: Report, reader: Reader) -> str:
    """One line a finding that GitHub Actions shows at its place in the source."""
    return "".join(f"{_annotation(finding, reader.base)}\n" for finding in report.findings)


def _annotation(finding: CheckFinding, base: str) -> str:
    inside = _inside(finding.path, base)
    properties = {"file": finding.path if inside is None else inside}
    if finding.line is not None:
        properties |= {"line": str(finding.line), "col": str(finding.column or 1)}
    properties["title"] = finding.rule
    told = ",".join(f"{name}={_escaped(value, _IN_PROPERTY)}" for name, value in properties.items() if value)
    message = f"{finding.message}; repaired: {finding.fix}" if _has_more(finding) else finding.message
    return f"::{_COMMANDS[finding.severity]} {told}::{_escaped(message, _IN_DATA)}"


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(character, visible(character)) for character in text)


FORMATS: Mapping[str, Format] = {
    "text": text_report,
    "json": json_report,
    "sarif": sarif_report,
    "github": github_report,
}
