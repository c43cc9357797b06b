"""Every rule by id: why it is there, and how to mend what it finds. Only `check` and the documentation read this."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from skillshelf.config.profile import Profile
from skillshelf.config.rules import RULES
from skillshelf.config.systems import author_severities
from skillshelf.core.console import PathDisplay, Screen, Style, as_json
from skillshelf.core.text import visible
from skillshelf.lint.check import Change, CheckFinding, Level, Report

__all__ = ["FORMATS", "Reader"]


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
    row = RULES[rule]
    weight = author_severities(profile)[rule]
    level = {"reject": "error", "warn": "warning", "info": "note", "off": "none"}[weight]
    return {
        "id": rule,
        "shortDescription": {"text": row.summary},
        "fullDescription": {"text": row.why},
        "help": {"text": row.how_to_fix, "markdown": row.how_to_fix},
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
