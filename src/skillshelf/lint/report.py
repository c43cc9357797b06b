"""Format the report of a check as text, JSON, SARIF or GitHub annotations."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from skillshelf.config.builtin_profiles import author_severities
from skillshelf.config.profile import Profile
from skillshelf.config.rules import RULES
from skillshelf.core.console import PathDisplay, Screen, Style, as_json
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural, visible
from skillshelf.lint.baseline import Comparison
from skillshelf.lint.run import Change, CheckFinding, Level, Report

__all__ = ["FORMATS", "ReportContext"]


class ReportContext(NamedTuple):
    """The recipient of a report: how to display paths, the screen, the profile, and what to run next.

    `checked_what` says what was checked if no path was given. `comparison` is there if a baseline was used;
    `prune_command` takes out of it what is fixed.
    """

    where: PathDisplay
    screen: Screen
    profile: Profile
    base: str
    fix_command: str = "skillshelf check --fix"
    rename_command: str = "skillshelf check --fix=names"
    prune_command: str = ""
    checked_what: str = ""
    comparison: Comparison | None = None


Format = Callable[[Report, ReportContext], str]
"""A function that returns the whole text of a report in one format."""

# Text ---------------------------------------------------------------------------------------------

_STYLES: Mapping[Level, Style] = {"error": "red", "warning": "yellow", "info": "dim"}
_NOUNS: Mapping[Level, str] = {"error": "error", "warning": "warning", "info": "note"}


def text_report(report: Report, reader: ReportContext) -> str:
    """Return the report for people: diffs, then the findings of each file, then a summary."""
    lines = [line for change in report.changes if change.diff and not change.refusal for line in _diff(change, reader)]
    for path, findings in groupby(report.findings, key=lambda finding: finding.path):
        lines += [reader.screen.paint(visible(reader.where.short(path)) or "(this machine)", "bold")]
        lines += _rows([*findings], reader.screen)
        lines += [""]
    return "\n".join([*lines, *_summary(report, reader)]) + "\n"


def _rows(findings: Sequence[CheckFinding], screen: Screen) -> Iterator[str]:
    positions = [f"{finding.line}:{finding.column}" if finding.line else "" for finding in findings]
    cells = (max(map(len, positions)), max(len(f.severity) for f in findings), max(len(f.rule) for f in findings))
    same_look = groupby(
        zip(positions, findings, strict=True), lambda item: (item[1].severity, item[1] if _has_more(item[1]) else None)
    )
    for (severity, changed), items in same_look:
        rows = [(p.ljust(cells[0]), f.severity.ljust(cells[1]), f.rule.ljust(cells[2]), f.message) for p, f in items]
        styles: tuple[Style | None, ...] = ("dim", _STYLES[severity], "dim", None)
        yield from screen.table(rows, styles, indent=2, wrap=True)
        if changed is not None:
            more = [("", f"would become: {changed.fix}")]
            yield from screen.table(more, (None, "green"), indent=cells[0] + 2, wrap=True)


def _has_more(finding: CheckFinding) -> bool:
    """Return whether the fixed text is not already part of the message."""
    return finding.fix is not None and finding.fix not in finding.message


def _diff(change: Change, reader: ReportContext) -> Iterator[str]:
    name = visible(reader.where.short(change.path))
    yield from (f"--- {name}", f"+++ {name}")
    for line in change.diff[2:]:
        yield reader.screen.paint(visible(line), _DIFF_STYLES.get(line[:1]))
    yield ""


_DIFF_STYLES: Mapping[str, Style] = {"+": "green", "-": "red", "@": "dim", "#": "dim"}


def _summary(report: Report, reader: ReportContext) -> Iterator[str]:
    counts = {level: sum(f.severity == level for f in report.findings) for level in _NOUNS}
    found = ", ".join(plural(count, _NOUNS[level]) for level, count in counts.items() if count) or "no findings"
    worst: Style = "red" if counts["error"] else "yellow" if counts["warning"] else "green"
    yield reader.screen.paint(f"{plural(report.checked, 'skill')} checked: {found}", worst)
    if reader.checked_what:
        yield visible(reader.checked_what)
    yield from _left_out(report)
    if reader.comparison is not None:
        yield from _about_baseline(reader.comparison, reader)
    if report.fixed:
        written = sum(change.refusal is None for change in report.changes)
        yield f"{plural(report.fixed, 'finding')} fixed, {plural(written, 'file')} changed"
    refused = {change.path for change in report.changes if change.refusal}
    fixable = [f for f in report.findings if f.fix is not None and f.path not in refused]
    if safe := sum(not finding.renames for finding in fixable):
        yield f"{safe} can be fixed automatically: {visible(reader.fix_command)}"
    if renames := len(fixable) - safe:
        yield f"{renames} by giving a skill the name of its folder: {visible(reader.rename_command)}"
    if not report.checked and not report.findings:
        yield "there are no skills here yet; create one with: skillshelf new NAME"


def _left_out(report: Report) -> Iterator[str]:
    """Yield how much was found and is not shown."""
    parts = {
        "ignored by comments in the files": len(report.ignored),
        "of rules that are switched off": report.left_out,
        "of a lower severity": report.hidden,
    }
    if told := [f"{plural(count, 'finding')} {what}" for what, count in parts.items() if count]:
        yield f"not shown: {', '.join(told)}"
    if report.excluded:
        yield f"not checked: {plural(report.excluded, 'skill')} that the configuration excludes"


def _about_baseline(found: Comparison, reader: ReportContext) -> Iterator[str]:
    name = visible(reader.where.short(found.path))
    if found.written is not None:
        yield f"{name} written: {plural(found.written, 'finding')} known from now on"
        return
    yield f"compared with {name}: {plural(len(found.known), 'known finding')}, {len(found.new)} new"
    if fixed := sum(found.fixed.values()):
        verb, which = ("is", "it") if fixed == 1 else ("are", "them")
        take_out = f"to take {which} out: {visible(reader.prune_command)}"
        yield f"{plural(fixed, 'finding')} of the baseline {verb} fixed; {take_out}"


# Programs -----------------------------------------------------------------------------------------


def json_report(report: Report, reader: ReportContext) -> str:
    """Return the report as one line of JSON."""
    findings = [{**f.to_dict(), "relative": _inside(f.path, reader.base)} for f in report.findings]
    ignored = {"comments": len(report.ignored), "rules": report.left_out, "severity": report.hidden}
    return as_json(
        {
            "checked": report.checked,
            "findings": findings,
            "fixed": report.fixed,
            "ignored": ignored,
            "excluded": report.excluded,
            "baseline": reader.comparison.to_dict() if reader.comparison is not None else None,
        }
    )


_SARIF_LEVELS: Mapping[Level, str] = {"error": "error", "warning": "warning", "info": "note"}


def sarif_report(report: Report, reader: ReportContext) -> str:
    """Return the report in SARIF 2.1.0, the exchange format of code hosts and editors."""
    results = [*_sarif_states(report, reader.comparison)]
    rules = sorted({finding.rule for finding, _ in results})
    driver = {
        "name": "skillshelf",
        # Not an import: the package itself is above this module in the import rules.
        "version": sys.modules["skillshelf"].__version__,
        "rules": [_sarif_rule(rule, reader.profile) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": f"{_address(reader.base.rstrip('/'))}/"}},
        "results": [{**_sarif_result(finding, rules, reader.base), **state} for finding, state in results],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return as_json({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _sarif_states(report: Report, comparison: Comparison | None) -> Iterator[tuple[CheckFinding, dict[str, Any]]]:
    """Yield the findings, those that are ignored or known included, each with what SARIF says of its state."""
    state = {"baselineState": "new"} if comparison is not None and comparison.written is None else {}
    yield from ((finding, state) for finding in report.findings)
    yield from ((finding, {"suppressions": [{"kind": "inSource"}]}) for finding in report.ignored)
    if comparison is not None:
        known = {"baselineState": "unchanged", "suppressions": [{"kind": "external"}]}
        yield from ((finding, known) for finding in comparison.known)
        yield from ((finding, {"baselineState": "absent"}) for finding in comparison.gone if finding.rule in RULES)


def _sarif_rule(rule: str, profile: Profile) -> dict[str, Any]:
    row = RULES[rule]
    level = {"reject": "error", "warn": "warning", "info": "note", "off": "none"}[author_severities(profile)[rule]]
    return {
        "id": rule,
        "shortDescription": {"text": row.summary},
        "fullDescription": {"text": row.why},
        "help": {"text": row.how_to_fix, "markdown": row.how_to_fix},
        "defaultConfiguration": {"level": level},
    }


def _sarif_result(finding: CheckFinding, rules: Sequence[str], base: str) -> dict[str, Any]:
    artifact = _artifact(finding.path, base)
    location: dict[str, Any] = {"artifactLocation": artifact}
    if finding.line is not None:
        location["region"] = {"startLine": finding.line, "startColumn": finding.column or 1}
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": visible(finding.message)},
        # A problem of the machine has no path.
        "locations": [{"physicalLocation": location}] if finding.path else [],
    }
    if finding.fix is not None and finding.line is not None and finding.rule in _WHOLE_LINE:
        replacement = {"deletedRegion": location["region"], "insertedContent": {"text": finding.fix}}
        changes = [{"artifactLocation": artifact, "replacements": [replacement]}]
        result["fixes"] = [{"description": {"text": "Write the line as it is read."}, "artifactChanges": changes}]
    return result


# The fix of these rules is the rest of the line of the finding.
_WHOLE_LINE = frozenset({"yaml-colon", "yaml-brackets", "name-directory", "name-pattern", "name-length", "name-type"})


def _artifact(path: str, base: str) -> dict[str, str]:
    inside = _inside(path, base)
    if inside is None:
        return {"uri": _address(path)}
    return {"uri": quote(inside, errors="surrogateescape"), "uriBaseId": "SRCROOT"}


def _address(path: str) -> str:
    return f"file://{quote(path, errors='surrogateescape')}"


def _inside(path: str, base: str) -> str | None:
    """Return the path relative to the base, or None if it is outside."""
    prefix = base.rstrip("/") + "/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


# Annotations --------------------------------------------------------------------------------------

_COMMANDS: Mapping[Level, str] = {"error": "error", "warning": "warning", "info": "notice"}
_IN_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_DATA, ":": "%3A", ",": "%2C"}


def github_report(report: Report, reader: ReportContext) -> str:
    """Return one line for each finding, which GitHub Actions shows beside the source, and the summary for its log."""
    lines = [*(_annotation(finding, reader.base) for finding in report.findings), *_summary(report, reader)]
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: CheckFinding, base: str) -> str:
    inside = _inside(finding.path, base)
    properties = {"file": finding.path if inside is None else inside}
    if finding.line is not None:
        properties |= {"line": str(finding.line), "col": str(finding.column or 1)}
    properties["title"] = finding.rule
    listed = ",".join(f"{name}={_escaped(value, _IN_PROPERTY)}" for name, value in properties.items() if value)
    message = f"{finding.message}; would become: {finding.fix}" if _has_more(finding) else finding.message
    return f"::{_COMMANDS[finding.severity]} {listed}::{_escaped(message, _IN_DATA)}"


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(character, visible(character)) for character in text)


FORMATS: Mapping[str, Format] = {
    "text": text_report,
    "json": json_report,
    "sarif": sarif_report,
    "github": github_report,
}
