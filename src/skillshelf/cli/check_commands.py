"""Run `check` and `explain`: what is wrong with skills, and what a rule means."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from skillshelf.cli.command_table import command_again
from skillshelf.cli.commands import shelf_for
from skillshelf.cli.outside import is_on_terminal, note_outside
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, SYSTEMS, author_severities
from skillshelf.config.rule_examples import EXAMPLES, RuleExample, grouped_rules
from skillshelf.config.rules import RULES, unknown_rule
from skillshelf.config.settings import CheckLevel, CheckSeverity
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, Screen, as_json, note, screen, write
from skillshelf.core.text import did_you_mean, shorten
from skillshelf.core.values import Severity
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError
from skillshelf.lint.baseline import (
    Baseline,
    BaselineKey,
    Comparison,
    KnownFinding,
    compare,
    read_baseline,
    write_baseline,
)
from skillshelf.lint.fix import FIXERS, rename
from skillshelf.lint.report import FORMATS, ReportContext
from skillshelf.lint.run import (
    LEVELS,
    CheckOptions,
    Level,
    Mode,
    Report,
    Targets,
    check_targets,
    in_paths,
    in_repository,
    is_excluded,
    walked_folder,
    without_excluded,
)
from skillshelf.lint.suppression import RuleChoice, can_ignore_inline, choose_rules
from skillshelf.shelf import Shelf

__all__ = ["check", "explain"]

Values = Mapping[str, Any]


def check(values: Values) -> int:
    """Check skills, and fix what is safe to fix."""
    form = _format(values)
    shelf = shelf_for(values)
    settings = shelf.settings
    if settings.check_problem:
        raise ConfigurationError(settings.check_problem)
    rules = choose_rules(shelf.profile, settings, values["select"], values["ignore"])
    severity = _severity(values, settings.check_severity)
    baseline, baseline_file = _baseline(values, settings.check_baseline)
    targets = in_paths(values["path"], shelf) if values["path"] else in_repository(shelf, user=values["user"])
    targets = without_excluded(targets, settings.check_exclude)
    renames = values["fix_names"]
    mode: Mode = "diff" if values["diff"] or values["dry_run"] else "fix" if values["fix"] or renames else "look"
    options = CheckOptions(rules, renames=renames)
    report = check_targets(targets, shelf.profile, mode=mode, progress=shelf.progress, options=options)
    comparison = _compared(report, baseline, baseline_file, targets, rules)
    report = report._replace(findings=comparison.new) if comparison is not None else report
    report = report.at_least(severity or "info")
    if values["write_baseline"]:
        report, comparison = _written(report, comparison, baseline, values, targets)
    write(FORMATS[form](report, _reader(values, shelf, comparison)))
    for change in report.changes:
        if change.refusal:
            note(f"{change.path} {'was' if mode == 'fix' else 'would'} not {_CHANGED[mode]}: {change.refusal}")
    if form == "text":
        _note_unchecked(shelf, values, targets)
    fails = LEVELS[: LEVELS.index(severity or "warning") + 1]
    return NEGATIVE if any(finding.severity in fails for finding in report.findings) else DONE


_CHANGED: Mapping[Mode, str] = {"fix": "changed", "look": "be changed", "diff": "be changed"}


def _format(values: Values) -> str:
    form: str = values["format"] or ("json" if values["json"] else "text")
    if form not in FORMATS:
        known = f"{did_you_mean(form, FORMATS)} (known: {', '.join(FORMATS)})"
        raise ConfigurationError(f"unknown format {form!r}{known}")
    if values["json"] and form != "json":
        raise ConfigurationError(f"--json and --format {form} exclude each other")
    return form


def _severity(values: Values, configured: CheckLevel | None) -> Level | None:
    """Return the lowest severity that is shown and fails; without one all are shown, and warnings fail."""
    given = values["severity"]
    if given is None:
        return configured
    for level in LEVELS:
        if given == level:
            return level
    known = f"{did_you_mean(given, LEVELS)} (known: {', '.join(get_args(CheckLevel))})"
    raise ConfigurationError(f"unknown severity {given!r}{known}")


def _reader(values: Values, shelf: Shelf, comparison: Comparison | None) -> ReportContext:
    again = {"diff": None, "dry_run": None, "format": None, "write_baseline": None}
    pruned = values["baseline"] or (comparison.path if comparison is not None else None)
    where = PathDisplay(shelf.project_root, shelf.environment.home)
    return ReportContext(
        where,
        screen(shelf.environment.env),
        shelf.profile,
        shelf.project_root,
        command_again(values, "check", **again, fix=True, fix_names=None),
        command_again(values, "check", **again, fix=None, fix_names=True),
        command_again(
            values, "check", **again | {"fix": None, "fix_names": None, "baseline": pruned, "write_baseline": pruned}
        ),
        "" if values["path"] else _checked_what(shelf, values),
        comparison,
    )


def _checked_what(shelf: Shelf, values: Values) -> str:
    """Return what a check without a path has checked."""
    top = walked_folder(shelf)
    # Nothing is below it, so that paths are shown whole, or from `~`.
    home = PathDisplay("/dev/null", shelf.environment.home)
    if top is None:
        where = home.short(shelf.project_root)
        return (
            f"checked the folders of skills that the profile names: {where} holds the home folder and is not searched"
        )
    is_repository = top != shelf.environment.cwd or any(
        files.kind_at(f"{top}/{mark}") for mark in shelf.profile.markers
    )
    what = f"checked {'the repository' if is_repository else 'the folder'} {home.short(top)}"
    return f"{what} and your own folders of skills" if values["user"] else f"{what} (--user adds your home folder)"


def _note_unchecked(shelf: Shelf, values: Values, targets: Targets) -> None:
    if is_on_terminal():
        shown = {path for target in targets.found for path in target[:2]} | {one.path for one in targets.problems}
        note_outside(values, shelf.environment, shelf.settings.custom_directories, lambda: shown)


# The baseline -------------------------------------------------------------------------------------


def _baseline(values: Values, configured: str | None) -> tuple[Baseline | None, str]:
    """Return the known findings, and their file; whoever writes a baseline anew needs none."""
    if values["baseline"]:
        path = _typed_path(values["baseline"])
        return read_baseline(path, links="follow"), path
    if configured is None or values["write_baseline"]:
        return None, ""
    return read_baseline(configured, links="never"), configured


def _typed_path(path: str) -> str:
    return os.path.abspath(files.from_system(path))


def _key(shelf: Shelf) -> BaselineKey:
    return BaselineKey(shelf.project_root, shelf.environment.home)


def _compared(
    report: Report, baseline: Baseline | None, path: str, targets: Targets, rules: RuleChoice
) -> Comparison | None:
    if baseline is None:
        return None
    key = _key(targets.shelf)

    def was_checked(known: KnownFinding) -> bool:
        file = key.path(known)
        is_inside = any(files.is_inside(file, folder) for folder in targets.scope)
        is_left_out = known.rule in rules.left_out or is_excluded(file, targets.shelf.settings.check_exclude)
        return is_inside and not is_left_out

    return compare(report.findings, baseline, path, key, was_checked)


def _written(
    report: Report, comparison: Comparison | None, baseline: Baseline | None, values: Values, targets: Targets
) -> tuple[Report, Comparison]:
    """Write what is known: all findings, or with a baseline those of it that are not fixed."""
    path = _typed_path(values["write_baseline"])
    if comparison is not None and baseline is not None:
        known = {name: count - comparison.fixed.get(name, 0) for name, count in baseline.items()}
        kept = {name: count for name, count in known.items() if count > 0}
        write_baseline(path, kept)
        return report, comparison._replace(path=path, written=sum(kept.values()))
    key, counted = _key(targets.shelf), dict[KnownFinding, int]()
    for finding in report.findings:
        name = key.of(finding)
        counted[name] = counted.get(name, 0) + 1
    write_baseline(path, counted)
    done = Comparison(path, known=report.findings, written=len(report.findings))
    return report._replace(findings=()), done


# Rules --------------------------------------------------------------------------------------------

_WIDEST = 100
"""Lines longer than this are hard to read, however wide the terminal is."""

_LINES_SHOWN = 8
_CELLS_SHOWN = 200
_CHECK_SEVERITIES: Mapping[Severity, CheckSeverity] = {
    "reject": "error",
    "warn": "warning",
    "info": "info",
    "off": "off",
}


def explain(values: Values) -> int:
    """Print what a rule is about, with an example; without a rule, list them all."""
    display = screen(os.environ)
    display = display._replace(columns=min(display.columns or 80, _WIDEST))
    rule = values["rule"]
    if rule is not None and rule not in RULES:
        raise ConfigurationError(unknown_rule(rule))
    if values["json"]:
        listed = [_rule_form(name, group) for group, names in grouped_rules().items() for name in names]
        write(as_json({"rules": listed} if rule is None else next(form for form in listed if form["rule"] == rule)))
    else:
        write("\n".join(_all_rules(display) if rule is None else _one_rule(rule, display)) + "\n")
    return DONE


def _rule_form(rule: str, group: str) -> dict[str, Any]:
    row, example = RULES[rule], EXAMPLES.get(rule, _NO_EXAMPLE)
    fixers = [fixer for rules, fixer in FIXERS if rule in rules]
    severity, profiles = _severities(rule)
    return {
        "rule": rule,
        "group": group,
        "severity": severity,
        "profiles": profiles,
        "summary": row.summary,
        "why": row.why,
        "how_to_fix": row.how_to_fix,
        "fix": "no" if not fixers else "names" if fixers == [rename] else "safe",
        "inline": can_ignore_inline(rule, SYSTEMS[DEFAULT_PROFILE]),
        "example": example.part,
        "bad": example.bad,
        "good": example.good,
    }


_NO_EXAMPLE = RuleExample("", "", "place")


def _severities(rule: str) -> tuple[CheckSeverity, dict[str, CheckSeverity]]:
    """Return the severity of a rule in `check`, and the profiles in which it is another."""
    found = {name: _CHECK_SEVERITIES[author_severities(profile)[rule]] for name, profile in SYSTEMS.items()}
    usual = found[DEFAULT_PROFILE]
    return usual, {name: severity for name, severity in found.items() if severity != usual}


def _all_rules(display: Screen) -> Iterator[str]:
    width = max(map(len, RULES))
    for group, rules in grouped_rules().items():
        yield display.paint(group, "bold")
        rows = [(rule.ljust(width), _severities(rule)[0].ljust(7), RULES[rule].summary) for rule in rules]
        yield from display.table(rows, (None, "dim", None), indent=2, wrap=True)
        yield ""
    yield "More about a rule: skillshelf explain RULE"


def _one_rule(rule: str, display: Screen) -> Iterator[str]:
    row, (severity, profiles) = RULES[rule], _severities(rule)
    yield f"{display.paint(rule, 'bold')}  {severity}"
    yield from display.table([(row.summary,)], (None,), wrap=True)
    for title, text in (("Why", row.why), ("How to fix it", row.how_to_fix)):
        yield from ("", display.paint(title, "bold"), *display.table([(text,)], (None,), indent=2, wrap=True))
    if example := EXAMPLES.get(rule):
        yield from ("", display.paint("Bad", "bold"), *_example_lines(example.bad, display))
        yield from ("", display.paint("Good", "bold"), *_example_lines(example.good, display))
    yield from ("", display.paint("Severity", "bold"))
    same = {level: [name for name, other in profiles.items() if other == level] for level in profiles.values()}
    others = "".join(f"; {level} in {', '.join(names)}" for level, names in same.items())
    yield from display.table([(f"{severity} in {DEFAULT_PROFILE}{others}",)], (None,), indent=2, wrap=True)
    yield from ("", display.paint("To switch it off", "bold"))
    yield from display.table(_switches(rule), (None, "dim"), indent=2, wrap=True)


def _example_lines(text: str, display: Screen) -> list[str]:
    lines = text.removesuffix("\n").split("\n")
    shown = [(shorten(line, _CELLS_SHOWN),) for line in lines[:_LINES_SHOWN]]
    more = [f"  ... {len(lines) - _LINES_SHOWN:,} more lines"] if len(lines) > _LINES_SHOWN else []
    return [*display.table(shown, (None,), indent=2, wrap=True), *more]


def _switches(rule: str) -> list[tuple[str, str]]:
    """Return the ways to leave out a rule, each with where it is written."""
    rows = [
        (f"skillshelf check --ignore {rule}", "for one run"),
        (f'{rule} = "off"', "below [check.rules] in skillshelf.toml"),
    ]
    if can_ignore_inline(rule, SYSTEMS[DEFAULT_PROFILE]):
        return [*rows, (f"<!-- skillshelf: ignore {rule} -->", "in the text of one SKILL.md")]
    return [*rows, ("(no comment in a file)", "a file must not vouch for itself")]
