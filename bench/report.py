"""Measurements to tables, and to the page docs/benchmarks.md."""

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from measure import Run
from rows import COLD, FLOOR, LIST, SEARCH, SHOW, START, WARM

__all__ = ["Counts", "Report", "goals_table", "page", "profile_table", "whole_report"]


class Counts(NamedTuple):
    """System calls and allocations for each skill, or why there is no number."""

    name: str
    calls: float | str
    allocations: float | str


class Report(NamedTuple):
    """Everything one run of the benchmark found."""

    sizes: Sequence[int]
    rows: Sequence[str]
    runs: dict[tuple[int, str], list[Run]]
    peaks: dict[tuple[int, str], float]
    notes: dict[tuple[int, str], str]
    counts: Sequence[Counts]
    parsing: Sequence[tuple[str, dict[str, float] | str]]
    profiles: Sequence[tuple[str, Any]]
    folder: Path
    has_cache: bool

    def best(self, size: int, name: str, field: str) -> float | None:
        """The smallest figure of a row's runs, None where there is none."""
        figures = [getattr(each, field) for each in self.runs.get((size, name), ())]
        return min((figure for figure in figures if figure is not None), default=None)

    def ratio(self, size: int, over: tuple[str, str], under: tuple[str, str]) -> float | None:
        """One row's figure divided by another row's, each named as row and field."""
        upper, lower = self.best(size, *over), self.best(size, *under)
        return upper / lower if upper is not None and lower else None

    def peer(self, name: str) -> str:
        """The row of a peer, whose label ends in its version."""
        return next((row for row in self.rows if row.startswith(f"{name} ")), name)


# Goals --------------------------------------------------------------------------------------------


class Goal(NamedTuple):
    """A number to reach: `good` and `excellent` are bounds from above, or from below for `at_least`."""

    what: str
    unit: str
    good: float
    excellent: float | None
    value: Callable[[Report], float | None]
    at_least: bool = False

    def verdict(self, value: float | None) -> str:
        """Return whether the value reaches its goal."""
        if value is None:
            return "not measured"
        sign = -1 if self.at_least else 1
        if self.excellent is not None and sign * value <= sign * self.excellent:
            return "excellent"
        return "reached" if sign * value <= sign * self.good else "missed"


def _floors(size: int, row: str) -> Callable[[Report], float | None]:
    return lambda report: report.ratio(size, (row, "wall"), (FLOOR, "wall"))


def _starts(size: int, row: str) -> Callable[[Report], float | None]:
    return lambda report: report.ratio(size, (row, "process_wall"), (START, "process_wall"))


def _growth(report: Report) -> float | None:
    """How much more than the floor the cold scan grows from the smallest to the largest size."""
    first = report.ratio(report.sizes[0], (COLD, "wall"), (FLOOR, "wall"))
    last = report.ratio(report.sizes[-1], (COLD, "wall"), (FLOOR, "wall"))
    return last / first if first and last and len(report.sizes) > 1 else None


LIST_WARM = f"{LIST}, warm"
GOALS = (
    Goal("cold scan in process, 1,000", "floors", 12, 10, _floors(1_000, COLD)),
    Goal("cold scan in process, 10,000", "floors", 10, 8, _floors(10_000, COLD)),
    Goal("cold scan in process, 50,000", "floors", 10, 8, _floors(50_000, COLD)),
    Goal("growth of the cold scan, smallest to largest", "times the floor's growth", 1, None, _growth),
    Goal(
        "cold scan in process, 1,000, Codex beside it",
        "times faster",
        10,
        None,
        lambda report: report.ratio(1_000, (report.peer("Codex"), "wall"), (COLD, "wall")),
        at_least=True,
    ),
    *(
        Goal(f"warm scan in process, {size:,}", "floors", 2.5, None, _floors(size, WARM))
        for size in (1_000, 10_000, 50_000)
    ),
    Goal("`skillshelf list` of 1,000, warm, whole process", "bare starts", 5, None, _starts(1_000, LIST_WARM)),
    Goal(
        "the same, Codex's listing without its start beside it",
        "times faster",
        6,
        None,
        lambda report: report.ratio(1_000, (report.peer("Codex"), "wall"), (LIST_WARM, "process_wall")),
        at_least=True,
    ),
    Goal(
        "peak memory, `skillshelf list` of 10,000",
        "MiB",
        80,
        None,
        lambda report: report.peaks.get((10_000, f"{LIST}, cold")),
    ),
    Goal("one skill shown out of 10,000, whole process", "bare starts", 4, None, _starts(10_000, f"{SHOW}, warm")),
    Goal("search in 10,000, whole process", "bare starts", 5, None, _starts(10_000, f"{SEARCH}, warm")),
)


def goals_table(report: Report) -> str:
    """Every goal beside what was measured; the verdict is on wall time."""
    rows = [["goal", "wanted", "measured", "by CPU time", ""]]
    for goal in GOALS:
        value = goal.value(report)
        word = "at least" if goal.at_least else "at most"
        wanted = f"{word} {goal.good:g} {goal.unit}" + (f", excellent {goal.excellent:g}" if goal.excellent else "")
        rows.append([goal.what, wanted, _number(value), _number(goal.value(_by_cpu(report))), goal.verdict(value)])
    return _table(rows)


def _by_cpu(report: Report) -> Report:
    """The report with CPU times where it has wall times."""
    runs = {
        key: [each._replace(wall=each.cpu, process_wall=each.process_cpu) for each in found]
        for key, found in report.runs.items()
    }
    return report._replace(runs=runs)


# Tables -------------------------------------------------------------------------------------------

HEAD = ["skills", "what", "listed", "in process ms", "CPU ms", "floors", "÷ ours cold", "÷ ours warm"]
HEAD += ["process ms", "CPU ms", "bare starts", "peak MiB", "runs", "note"]


def whole_report(report: Report) -> str:
    """All tables but the goals."""
    parts = [
        "## Listing\n\n" + _table([HEAD, *(_line(report, size, row) for size in report.sizes for row in report.rows)]),
        f"## For each skill, counted at {report.sizes[0]:,}\n\n" + _counts_table(report),
        "## Parsing frontmatter\n\n" + _parsing_table(report),
        "## Where our time goes\n\n"
        + "\n\n".join(profile_table(title, found, functions=False) for title, found in report.profiles),
    ]
    return "\n\n".join(parts)


def _line(report: Report, size: int, row: str) -> list[str]:
    runs = report.runs.get((size, row), [])
    if not runs:
        return [f"{size:,}", row, *["–"] * 11, report.notes.get((size, row), "")]
    return [
        f"{size:,}",
        row,
        "–" if runs[-1].listed is None else f"{runs[-1].listed:,}",
        _number(report.best(size, row, "wall")),
        _number(report.best(size, row, "cpu")),
        _number(report.ratio(size, (row, "wall"), (FLOOR, "wall"))),
        _number(report.ratio(size, (row, "wall"), (COLD, "wall"))),
        _number(report.ratio(size, (row, "wall"), (WARM, "wall"))),
        _number(report.best(size, row, "process_wall")),
        _number(report.best(size, row, "process_cpu")),
        _number(report.ratio(size, (row, "process_wall"), (START, "process_wall"))),
        _number(report.peaks[size, row]),
        str(len(runs)),
        _note(report, size, row, runs[-1].listed),
    ]


def _note(report: Report, size: int, row: str, listed: int | None) -> str:
    notes = [report.notes.get((size, row), "")]
    if listed is not None and listed != size:
        notes.append(f"**lists {listed:,} of {size:,}**")
    if "warm" in row and not report.has_cache:
        notes.append("this version has no cache")
    return "; ".join(note for note in notes if note)


def _counts_table(report: Report) -> str:
    rows = [["what", "system calls", "allocations"]]
    return _table([*rows, *([c.name, _number(c.calls), _number(c.allocations)] for c in report.counts)])


def _parsing_table(report: Report) -> str:
    rows = [["parser", "documents a second", "MB a second"]]
    for name, found in report.parsing:
        if isinstance(found, str):
            rows.append([name, found, "–"])
        else:
            rows.append([name, f"{found['documents']:,.0f}", _number(found["megabytes"])])
    return _table(rows)


def profile_table(title: str, found: Any, *, functions: bool) -> str:
    """Return the time of one listing by group and, on request, by function."""
    if isinstance(found, str):
        return f"{title}: {found}"
    each, total = found["cpu_ms"] * 1e3 / found["skills"], sum(group[1] for group in found["groups"])
    rows = [["where", "share", "µs a skill", "calls a skill"]]
    for name, own, calls in found["groups"]:
        if own / total >= 0.01:
            share = own / total
            rows.append([name, f"{share:.0%}", f"{each * share:.1f}", f"{calls / found['skills']:.1f}"])
    text = f"{title}: {found['cpu_ms']:.1f} ms CPU, {each:.1f} µs a skill\n\n{_table(rows)}"
    if functions:
        slow = [["function", "share", "calls a skill"]]
        slow += [
            [name, f"{own / total:.1%}", f"{calls / found['skills']:.1f}"] for own, calls, name in found["functions"]
        ]
        text += f"\n\n{_table(slow)}"
    return text


def _number(value: float | str | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, aligned so that a terminal shows it as well."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


# The page -----------------------------------------------------------------------------------------


def page(report: Report) -> str:
    """docs/benchmarks.md."""
    return f"""# Benchmarks

Written by `bench/scan.py` on {datetime.now(UTC):%Y-%m-%d}.
{_machine(report)}

Every figure is from one run of one command, in which the floor, skillshelf and the peers took turns. Each run is a
process of its own; times are the smallest of all runs, memory is the peak of the process, the page cache is warm for
all.

- **in process ms**: the listing alone. A driver first lists a folder with one skill, so imports are not in it.
- **process ms**: from the start of the process to its end. CPU time is steadier where others use the machine.
- **floors**: times the C program `bench/floor.c`: list the folder, open each SKILL.md, read 4 KiB, close it.
- **÷ ours**: how many times as long as skillshelf in process, without and with its cache.
- **bare starts**: times `python -c pass`.

The skills are made by `bench/trees.py`: about 300 bytes of frontmatter, some kilobytes of body, up to three files
beside it; all of them are valid by the standard. Each peer is asked for its own listing of one folder, by the few lines
in `bench/peers/`; its version is checked before anything is measured.

## To repeat it

```sh
python bench/scan.py --write docs/benchmarks.md --environments DIR
```

Run it where skillshelf is installed. Peers are installed in environments of their own below DIR, which also keeps the
trees, so that a second run starts at once. It needs a C compiler; Codex and pi need Node.js, agentskills-fs a
`python3.12` or later on the PATH, the counts strace: what is missing, the row says. `--peers none` leaves the peers
out, `--sizes 1000` the large trees; `--profile-ours` prints where our own time goes, down to functions. A row that
takes over ten seconds is run twice; one that would take longer than `--cap` seconds is not run, and says so.

## Goals

{goals_table(report)}

{whole_report(report)}

System calls are counted by strace, with those of all threads and child processes. Allocations are calls of malloc,
calloc and realloc with Python's pools switched off (`PYTHONMALLOC=malloc`); what CPython takes from its free lists is
not among them. Both are the difference between this tree and one with a single skill. The profiler makes Python calls
dearer than they are, so its shares are rough; the CPU time above each table is taken without it.
"""


def _machine(report: Report) -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    system = f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}"
    versions = f"CPython {platform.python_version()}, Node.js {_output('node', '--version') or 'none'}"
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}, {_output('stat', '-f', '-c', '%T', str(report.folder))}; "
        f"{versions}; load over the last quarter of an hour {os.getloadavg()[2]:.1f}."
    )


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""
