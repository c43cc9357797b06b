"""Measurements to tables, and to the page docs/benchmarks.md."""

import math
import os
import platform
import re
import subprocess
import textwrap
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from measure import Run
from rows import (
    BUBBLEWRAP,
    CHECK,
    COLD,
    FLOOR,
    HOSTS,
    INDEX,
    LIST,
    LIST_COLD,
    MCP_FIRST,
    QUERY,
    READ,
    RPC_AGAIN,
    SEARCH,
    SHOW,
    SKILL_RUN,
    START,
    VERSION,
    WARM,
    WHY,
    Kind,
    Place,
    Row,
    Section,
)

__all__ = ["GOALS", "Counts", "Goal", "Report", "goals_table", "page", "profile_table", "whole_report"]

Clock = Literal["cpu", "wall"]
PATH = re.compile(r"(?<![\w.`])(?:/[^/\s:]+)+/([^/\s:]+)")
"""An absolute path of this machine, and its last part."""


class Counts(NamedTuple):
    """System calls and allocations for each skill, or why there is no number."""

    name: str
    calls: float | str
    allocations: float | str


class Report(NamedTuple):
    """Everything one run of the benchmark found."""

    places: Sequence[Place]
    rows: Sequence[Row]
    runs: dict[tuple[Place, str], list[Run]]
    peaks: dict[tuple[Place, str], float]
    notes: dict[tuple[Place, str], str]
    folder: Path
    load: tuple[float, float]
    words: str
    rounds: int = 0
    counts: Sequence[Counts] = ()
    parsing: Sequence[tuple[str, dict[str, float] | str]] = ()
    profiles: Sequence[tuple[str, Any]] = ()
    minutes: float | None = None
    """None until the run is complete."""

    def best(self, place: Place, name: str, field: str) -> float | None:
        """The smallest figure of a row's runs, None where there is none."""
        figures = [getattr(each, field) for each in self.runs.get((place, name), ())]
        return min((figure for figure in figures if figure is not None), default=None)

    def ratio(self, place: Place, over: tuple[str, str], under: tuple[str, str]) -> float | None:
        """One row's figure divided by another row's, each named as row and field."""
        upper, lower = self.best(place, *over), self.best(place, *under)
        return upper / lower if upper is not None and lower else None

    def peer(self, name: str) -> str:
        """The row of a peer, whose label ends in its version."""
        return next((row.name for row in self.rows if row.name.startswith(f"{name} ")), name)

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of trees, the one that counts first."""
        return list(dict.fromkeys(kind for kind, _ in self.places))


# Goals --------------------------------------------------------------------------------------------


class Goal(NamedTuple):
    """A number to reach: `good` and `excellent` are bounds from above, or from below for `at_least`.

    `value` measures a row at a place by one clock, and `clock` is the one by which the goal is decided.
    """

    what: str
    row: str
    size: int
    value: "Callable[[Report, Place, str, Clock], float | None]"
    unit: str
    good: float
    excellent: float | None = None
    clock: Clock = "cpu"
    at_least: bool = False

    def verdict(self, value: float | None) -> str:
        """Return whether the value reaches its goal."""
        if value is None:
            return "not measured"
        sign = -1 if self.at_least else 1
        if self.excellent is not None and sign * value <= sign * self.excellent:
            return "excellent"
        return "reached" if sign * value <= sign * self.good else "missed"


def _floors(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    return report.ratio(place, (row, clock), (FLOOR, clock))


def _starts(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    return report.ratio(place, (row, f"process_{clock}"), (START, f"process_{clock}"))


def _process_seconds(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    return _thousandth(report.best(place, row, f"process_{clock}"))


def _seconds(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    return _thousandth(report.best(place, row, clock))


def _milliseconds(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    return report.best(place, row, clock)


def _megabytes(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    peak = _mebibytes(report, place, row, clock)
    return None if peak is None else peak * 2**20 / 1e6


def _mebibytes(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    """The peak memory of a row, cold or warm, whichever is larger."""
    del clock
    cold = LIST_COLD if row == LIST else f"{row}, cold"
    return max((report.peaks[place, name] for name in (row, cold) if (place, name) in report.peaks), default=None)


def _codex_cold(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    return report.ratio(place, (report.peer("Codex"), clock), (row, clock))


def _codex_warm(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    return report.ratio(place, (report.peer("Codex"), clock), (row, f"process_{clock}"))


def _above_bubblewrap(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    ours, bare = (report.best(place, name, clock) for name in (row, BUBBLEWRAP))
    return ours - bare if ours is not None and bare is not None else None


def _growth(report: Report, place: Place, row: str, clock: Clock) -> float | None:
    """How much more than the floor a row grows from the smallest to the largest size."""
    sizes = [size for kind, size in report.places if kind == place[0]]
    first, last = (_floors(report, (place[0], size), row, clock) for size in (sizes[0], sizes[-1]))
    return last / first if first and last and len(sizes) > 1 else None


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1e3


ANY = 0
"""The size of a goal that does not depend on one."""

GOALS = (
    Goal("cold scan in process", COLD, 1_000, _floors, "floors", 12, 10),
    Goal("cold scan in process", COLD, 10_000, _floors, "floors", 10, 8),
    Goal("cold scan in process", COLD, 50_000, _floors, "floors", 10, 8),
    Goal("growth of the cold scan, smallest to largest", COLD, ANY, _growth, "times the floor's growth", 1),
    Goal("cold scan in process, Codex beside it", COLD, 1_000, _codex_cold, "times faster", 10, None, "wall", True),
    Goal("warm scan in process", WARM, 1_000, _floors, "floors", 2.5),
    Goal("warm scan in process", WARM, 10_000, _floors, "floors", 2.5),
    Goal("warm scan in process", WARM, 50_000, _floors, "floors", 2.5),
    Goal("`list`, warm", LIST, 1_000, _starts, "bare starts", 5),
    Goal("`list`, warm, Codex's listing beside it", LIST, 1_000, _codex_warm, "times faster", 6, None, "wall", True),
    Goal("`list`, peak memory", LIST, 10_000, _mebibytes, "MiB", 80),
    Goal("`show` of one", SHOW, 10_000, _starts, "bare starts", 4.5),
    Goal("`read` of one", READ, 10_000, _starts, "bare starts", 4.5),
    Goal("`search`, new process", SEARCH, 3_000, _starts, "bare starts", 6),
    Goal("`search`, new process", SEARCH, 10_000, _starts, "bare starts", 8),
    Goal("`why NAME`", WHY, 1_000, _starts, "bare starts", 12),
    Goal("`why NAME`", WHY, 3_000, _starts, "bare starts", 18),
    Goal("`why NAME`", WHY, 10_000, _starts, "bare starts", 40),
    Goal("`why NAME`, peak memory", WHY, 3_000, _megabytes, "MB", 100),
    Goal("`why NAME`, peak memory", WHY, 10_000, _megabytes, "MB", 100),
    Goal("`hosts`", HOSTS, 3_000, _starts, "bare starts", 35),
    Goal("`hosts`", HOSTS, 10_000, _starts, "bare starts", 100),
    Goal("`hosts`, peak memory", HOSTS, 3_000, _megabytes, "MB", 100),
    Goal("`hosts`, peak memory", HOSTS, 10_000, _megabytes, "MB", 100),
    Goal("`check`", CHECK, 3_000, _process_seconds, "s of CPU", 1.5),
    Goal("MCP, start to first page", MCP_FIRST, 3_000, _seconds, "s of CPU", 0.5),
    Goal("RPC, `skills.list` again", RPC_AGAIN, 3_000, _milliseconds, "ms of CPU", 10),
    Goal("`skill_run` above bare bubblewrap", SKILL_RUN, ANY, _above_bubblewrap, "ms", 10, None, "wall"),
    Goal("`--version`", VERSION, ANY, _starts, "bare starts", 3),
    Goal("search index from nothing", INDEX, 3_000, _seconds, "s", 3, None, "wall"),
    Goal("search, one query, median", QUERY, 17_700, _milliseconds, "ms of CPU", 5),
)


def goals_table(report: Report) -> str:
    """Every goal with what was measured: on real skills where there are some, and on synthetic ones."""
    kinds = report.kinds
    rows = [["goal", "skills", "wanted", *(f"{kind}, by {clock}" for kind in kinds for clock in ("CPU", "wall")), ""]]
    for goal in GOALS:
        words = "at least" if goal.at_least else "at most"
        excellent = "" if goal.excellent is None else f", excellent {goal.excellent:g}"
        values = {(kind, clock): _reached(report, goal, kind, clock) for kind in kinds for clock in _CLOCKS}
        rows.append(
            [
                goal.what,
                f"{goal.size:,}" if goal.size else "–",
                f"{words} {goal.good:g} {goal.unit}{excellent}",
                *(_number(value) for value in values.values()),
                goal.verdict(values[kinds[0], goal.clock]),
            ]
        )
    return _table(rows)


_CLOCKS: tuple[Clock, ...] = ("cpu", "wall")


def _reached(report: Report, goal: Goal, kind: Kind, clock: Clock) -> float | None:
    """The value of a goal on one kind of skills; what depends on no size is taken where it was measured."""
    sizes = [goal.size] if goal.size else [size for each, size in report.places if each == kind]
    values = (goal.value(report, (kind, size), goal.row, clock) for size in sizes)
    return next((value for value in values if value is not None), None)


# Tables -------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of figures: its head, and the figure of a row at a place."""

    head: str
    figure: "Callable[[Report, Place, str], float | None]"


def _best(head: str, field: str) -> Column:
    return Column(head, lambda report, place, row: report.best(place, row, field))


def _times(head: str, field: str, under: str, under_field: str) -> Column:
    return Column(head, lambda report, place, row: report.ratio(place, (row, field), (under, under_field)))


_PEAK = Column("peak MiB", lambda report, place, row: report.peaks.get((place, row)))
_PROCESS = (
    _best("process ms", "process_wall"),
    _best("process CPU ms", "process_cpu"),
    _times("bare starts", "process_cpu", START, "process_cpu"),
    _times("by wall", "process_wall", START, "process_wall"),
    _PEAK,
)
COLUMNS: dict[Section, tuple[Column, ...]] = {
    "listing": (
        Column("listed", lambda report, place, row: report.runs[place, row][-1].listed),
        _best("in process ms", "wall"),
        _best("CPU ms", "cpu"),
        _times("floors", "cpu", FLOOR, "cpu"),
        _times("÷ ours cold", "wall", COLD, "wall"),
        _times("÷ ours warm", "wall", WARM, "wall"),
        *_PROCESS,
    ),
    "commands": _PROCESS,
    "calls": (
        _best("ms", "wall"),
        _best("CPU ms", "cpu"),
        _times("floors", "cpu", FLOOR, "cpu"),
        _times("bare starts", "cpu", START, "process_cpu"),
    ),
}
TITLES: dict[Section, str] = {
    "listing": "Listing",
    "commands": "Commands, whole process",
    "calls": "Servers, sessions and calls in process",
}


def whole_report(report: Report) -> str:
    """All tables but the goals."""
    first = min(size for _, size in report.places)
    parts = [
        *(f"## {title}\n\n{_section_table(report, section)}" for section, title in TITLES.items()),
    ]
    if report.counts:
        parts.append(f"## For each skill, counted at {first:,}\n\n" + _counts_table(report))
    if report.parsing:
        parts.append("## Parsing frontmatter\n\n" + _parsing_table(report))
    if report.profiles:
        found = (profile_table(title, one, functions=False) for title, one in report.profiles)
        parts.append("## Where our time goes\n\n" + "\n\n".join(found))
    return "\n\n".join(parts)


def _section_table(report: Report, section: Section) -> str:
    columns = COLUMNS[section]
    head = ["skills", "what", *(column.head for column in columns), "runs", "note"]
    lines = [
        _line(report, place, row.name, columns)
        for place in report.places
        for row in report.rows
        if row.section == section and ((place, row.name) in report.runs or (place, row.name) in report.notes)
    ]
    return _table([head, *lines])


def _line(report: Report, place: Place, row: str, columns: Sequence[Column]) -> list[str]:
    runs = report.runs.get((place, row), [])
    label = f"{place[1]:,} {place[0]}"
    if not runs:
        return [label, row, *["–"] * (len(columns) + 1), report.notes.get((place, row), "")]
    figures = (column.figure(report, place, row) for column in columns)
    # A count is shown as a whole number, however small.
    cells = [f"{figure:,}" if isinstance(figure, int) else _number(figure) for figure in figures]
    return [label, row, *cells, str(len(runs)), _note(report, place, row, columns)]


def _note(report: Report, place: Place, row: str, columns: Sequence[Column]) -> str:
    notes = [
        report.notes.get((place, row), ""),
        "**stops at a limit**" if report.runs[place, row][-1].is_partial else "",
    ]
    listed = report.runs[place, row][-1].listed
    # Of real skills some are invalid, and who lists how many of them is in the column.
    if columns[0].head == "listed" and listed not in (None, place[1]) and place[0] == "synthetic":
        notes.append(f"**lists {listed:,} of {place[1]:,}**")
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
    if value >= 10:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.1g}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, aligned so that a terminal shows it as well; only the end of each path in it is kept."""
    rows = [[PATH.sub(r"…/\1", cell) for cell in row] for row in rows]
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
all, and all Python sources are compiled. Unless a row says cold, the caches and the index of skillshelf are there: they
were made before the first run. A warm scan looks at every file and makes objects only of the skills that are asked for;
the row below it asks for the name and the description of each. Before each run of a row with an edit, one SKILL.md of
the tree gets another text.

- **in process ms**: the listing alone. A driver first lists a folder with one skill, so imports are not in it.
- **process ms**: from the start of the process to its end. CPU time is steadier where others use the machine.
- **floors**: times the CPU time of the C program `bench/floor.c` on the same tree: list the folder, open each SKILL.md,
  read 4 KiB, close it.
- **÷ ours**: how many times as long as skillshelf in process, without and with its cache.
- **bare starts**: times the CPU time of `python -c pass`; **by wall** is the same by wall time.

{_trees_text(report)} Each peer is asked for its own listing of one folder, by the few lines in `bench/peers/`; its
version is checked before anything is measured.

## To repeat it

```sh
python bench/scan.py --write docs/benchmarks.md --environments DIR --real FOLDER
python bench/scan.py --quick --write docs/benchmarks.md --environments DIR --real FOLDER
```

The second one takes about a quarter of an hour: fewer sizes and rounds, one kind of skills, no counts and profiles, and
only the peers that are installed.

{_duration(report)}

```sh
python bench/scan.py {report.words}
```

Run it where skillshelf is installed. `--real` names a folder with SKILL.md files at any depth; without it only
synthetic skills are measured. Peers are installed in environments of their own below DIR, which also keeps the
trees, so that a second run starts at once. It needs a C compiler; Codex and pi need Node.js, agentskills-fs a
`python3.12` or later on the PATH, the counts strace, MCP, the picker and `AgentSession` their extras, `skill_run`
bubblewrap: what is missing, the row says. `--peers none` leaves the peers out, `--sizes 1000` the large trees;
`--profile-ours` prints where our own time goes, down to functions. A row that takes over ten seconds is run twice; one
that would take longer than `--cap` seconds is not run, and says so. A row that **stops at a limit** did not look at
everything: the synthetic skills have folders beside their SKILL.md, and a scan for hosts visits 5,000 such folders.
Rows that do not depend on the skills are measured once, peers not at 3,000, and at 17,700 only the queries of a search.

## Goals

{goals_table(report)}

{_verdict_text(report)}

{whole_report(report)}

A server is timed from its start, or from the question if it runs already, up to the answer; the CPU time is that of the
server process with all its threads. In process, an act is repeated in one process after a first one without a clock,
and the least time counts; an event of the journal is a mean over a hundred or more. The CPU time of `skill_run` and of
what is beside it includes the processes that were started.

System calls are counted by strace, with those of all threads and child processes. Allocations are calls of malloc,
calloc and realloc with Python's pools switched off (`PYTHONMALLOC=malloc`); what CPython takes from its free lists is
not among them. Both are the difference between a synthetic tree and one with a single skill. The profiler makes Python
calls dearer than they are, so its shares are rough; the CPU time above each table is taken without it.
"""


def _duration(report: Report) -> str:
    if report.minutes is None:
        return "**The run is not complete: it was stopped, or it still goes on.** It was started by"
    return f"This page was written in {math.ceil(report.minutes)} minutes by"


def _trees_text(report: Report) -> str:
    synthetic = (
        "The synthetic skills are made by `bench/trees.py`: about 300 bytes of frontmatter, some kilobytes of body, up "
        "to three files beside it; all of them are valid by the standard."
    )
    if "real" in report.kinds:
        text = (
            "The real skills are SKILL.md files of public collections, which are not part of this repository. "
            "`bench/trees.py` copies them, without the files beside them, as often as the size needs, with a number "
            "behind each name; what is invalid stays so. " + synthetic
        )
    else:
        text = f"No real skills were given to this run, so only synthetic ones are measured. {synthetic}"
    return textwrap.fill(text, 120)


def _verdict_text(report: Report) -> str:
    others = " The quality of search has goals of its own, measured in [search](search.md)."
    text = (
        f"The last column is about {report.kinds[0]} skills and the CPU time, except for Codex, `skill_run` and the "
        "index: those are decided by wall time, because Codex and the index use several cores and a run may wait."
    )
    return textwrap.fill(text + others, 120)


def _machine(report: Report) -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    system = f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}"
    versions = f"CPython {platform.python_version()}, Node.js {_output('node', '--version') or 'none'}"
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}, {_output('stat', '-f', '-c', '%T', str(report.folder))}; "
        f"{versions}.\n"
        f"Rounds: {report.rounds}. Load over a quarter of an hour: {report.load[0]:.1f} before the run, "
        f"{report.load[1]:.1f} at its end; the run itself adds about 1.\n{_beside(report)}"
    )


def _beside(report: Report) -> str:
    """Say whether other programs used the machine."""
    if max(report.load[0], report.load[1] - 1) < 0.5:
        return "Nothing else ran beside it."
    return "Other work ran beside it, so wall times say little and ratios of CPU times are rough."


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""
