"""The events of a journal, what verifying it found and how skills were used, to what a person is shown."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillshelf.core.console import Screen, Style, as_json
from skillshelf.core.limits import JOURNAL_SESSIONS
from skillshelf.core.text import fold, plural, shorten
from skillshelf.journal.file import Verification
from skillshelf.journal.format import RESERVED, Line
from skillshelf.journal.state import Usage

__all__ = ["EventLines", "stats_view", "verify_view"]

_SESSION_SHOWN = 8
_TYPE_CELLS = 21
_VALUE_SHOWN = 300


# One event ----------------------------------------------------------------------------------------


class EventLines:
    """Events to lines: when, in which session, what, and in words what happened; or what is wrong with the line.

    A pipe gets the whole time on each line. A terminal gets the day on a line of its own where another begins,
    so that there is room for the words.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._day = ""

    def text(self, line: Line) -> str:
        """The event on one line."""
        if line.record is None:
            blank = " " * (_SESSION_SHOWN + 2 + _TYPE_CELLS)
            cells = (f"line {line.number}".ljust(len(self._time(0))), blank, f"broken: {line.problem}")
            return self._screen.table([cells], ("red", None, "red"))[0] + "\n"
        day = _when(line.record["ts_ms"])[:10]
        heading = self._screen.paint(f"{day} (UTC)", "bold") + "\n" if self._is_another(day) else ""
        return heading + self._row(line, line.record) + "\n"

    def _row(self, line: Line, record: Mapping[str, Any]) -> str:
        words = _WORDS.get(record["type"], _members)(record)
        if line.problem:
            words = f"[line {line.number}: {line.problem}] {words}"
        style = "red" if line.problem else _style(record)
        cells = (
            self._time(record["ts_ms"]),
            record["session"][:_SESSION_SHOWN].ljust(_SESSION_SHOWN),
            record["type"][:_TYPE_CELLS].ljust(_TYPE_CELLS),
            fold(words),
        )
        return self._screen.table([cells], ("dim", "dim", style or "bold", style))[0]

    def _time(self, ts_ms: int) -> str:
        return _when(ts_ms) if self._screen.columns is None else _when(ts_ms)[11:19]

    def _is_another(self, day: str) -> bool:
        another = self._screen.columns is not None and day != self._day
        self._day = day
        return another


def _when(ts_ms: int) -> str:
    """The time in UTC, so that the same journal reads the same everywhere."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ts_ms // 1000)) + f".{ts_ms % 1000:03d}Z"
    except (OverflowError, ValueError, OSError):
        return "????-??-?? ??:??:??.???Z"


def _style(record: Mapping[str, Any]) -> Style | None:
    if record["type"] == "tool_failed" or record.get("verdict") == "deny":
        return "red"
    return _STYLES.get(record["type"])


_STYLES: Mapping[str, Style] = {
    "skill_warning": "yellow",
    "policy_widened": "yellow",
    "tool_stdout": "dim",
    "tool_stderr": "dim",
    "session_started": "green",
    "session_ended": "green",
}


def _value(value: object) -> str:
    """A member as text; what is no text as JSON."""
    if value is None:
        return ""
    return shorten(value if isinstance(value, str) else as_json(value).strip(), _VALUE_SHOWN)


def _of(record: Mapping[str, Any], name: str, missing: str = "?") -> str:
    return _value(record.get(name)) or missing


def _with(record: Mapping[str, Any], name: str, form: str) -> str:
    """The member put into a form, or nothing where it is missing, null, false or empty."""
    return form.format(_value(record[name])) if record.get(name) not in (None, "", False, [], {}) else ""


def _counted(record: Mapping[str, Any], name: str, noun: str) -> str:
    value = record.get(name)
    count = len(value) if isinstance(value, list | dict) else value if isinstance(value, int) else None
    return plural(count, noun) if count is not None else f"? {noun}s"


def _session_started(record: Mapping[str, Any]) -> str:
    policy = record.get("policy")
    name = policy.get("name") if isinstance(policy, dict) else policy
    return f"profile {_of(record, 'profile')}, policy {_value(name) or '?'}, in {_of(record, 'cwd')}"


def _catalog(record: Mapping[str, Any]) -> str:
    collisions = f", {_counted(record, 'collisions', 'collision')}" if record.get("collisions") else ""
    return f"{_counted(record, 'count', 'skill')} in {_counted(record, 'roots', 'root')}{collisions}"


def _loaded(record: Mapping[str, Any]) -> str:
    warnings = f", {_counted(record, 'warnings', 'warning')}" if record.get("warnings") else ""
    return f"{_of(record, 'name')} from {_of(record, 'path')} ({_of(record, 'digest')[:19]}){warnings}"


def _invoked(record: Mapping[str, Any]) -> str:
    again = ", which the model has already" if record.get("repeat") is True else ""
    return f"{_of(record, 'name')}, {_of(record, 'mode')}{again}{_with(record, 'args', ', with: {}')}"


def _started(record: Mapping[str, Any]) -> str:
    return f"{_of(record, 'name')} {_value(record.get('args'))}{_with(record, 'command', ' by {}')}"


def _output(record: Mapping[str, Any]) -> str:
    chunk = record.get("chunk")
    size = plural(len(chunk.encode("utf-8", "replace")), "byte") if isinstance(chunk, str) else "? bytes"
    return f"{size}: {_value(chunk)}"


def _ended(record: Mapping[str, Any]) -> str:
    return (
        f"exit {_of(record, 'exit_code')}{_with(record, 'duration_ms', ', {} ms')}"
        f"{_with(record, 'truncated', ', output cut')}{_with(record, 'artifacts', ', kept: {}')}"
    )


def _decided(record: Mapping[str, Any]) -> str:
    return (
        f"{_of(record, 'verdict')}: {_of(record, 'tool')} for {_of(record, 'name', 'no skill')}"
        f"{_with(record, 'script', ' script {}')}{_with(record, 'rule', ', {}')}{_with(record, 'by', ', by {}')}"
    )


def _members(record: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in record.items() if name not in RESERVED)


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "session_started": _session_started,
    "session_ended": lambda record: f"after {_counted(record, 'events', 'event')}",
    "skill_catalog_updated": _catalog,
    "skill_loaded": _loaded,
    "skill_read": lambda record: f"{_of(record, 'uri', _of(record, 'path'))}{_with(record, 'size', ', {} bytes')}",
    "skill_invoked": _invoked,
    "skill_warning": lambda record: (
        f"{_of(record, 'kind')}: {_of(record, 'detail')}{_with(record, 'name', ' (skill {})')}"
    ),
    "skill_activated": lambda record: _of(record, "name"),
    "skill_deactivated": lambda record: _of(record, "name"),
    "tool_started": _started,
    "tool_stdout": _output,
    "tool_stderr": _output,
    "tool_ended": _ended,
    "tool_failed": lambda record: f"{_with(record, 'code', '{}: ')}{_of(record, 'error')}",
    "permission_decided": _decided,
    "context_compacted": lambda record: f"{_counted(record, 'skills', 'skill')} no longer in the context",
}
"""An event in words, by its type; the others show their members."""


# What verifying found -----------------------------------------------------------------------------


def verify_view(found: Verification, name: str, screen: Screen) -> str:
    """The verdict, each problem with its line, and the sum to keep."""
    sessions = plural(found.sessions, "session") + (" or more" if found.sessions >= JOURNAL_SESSIONS else "")
    size = f"{plural(found.lines, 'line')}, {sessions}"
    verdict = screen.paint("unchanged", "green") if found.ok else screen.paint("not as it was written", "red")
    lines = screen.table([(f"{name}:",)], (None,))
    lines[0] += f" {verdict}, {size}"
    rows = [(f"line {p.line}", p.kind, p.detail) for p in found.problems]
    lines += screen.table(rows, (None, "red", None), indent=2, wrap=True)
    if found.open_end:
        lines.append("Its end is open: a session has no session_ended, so it still runs, was killed, or was cut off.")
    if found.head:
        lines.append(f"Last sum: {found.head}")
    if found.ok and found.head:
        lines.append("Keep it elsewhere; log verify --head SUM then finds a cut end.")
    return "\n".join(lines) + "\n"


# How skills were used -----------------------------------------------------------------------------


def stats_view(usage: Usage, screen: Screen) -> str:
    """A table of the skills, one of the tools, and what they were counted from."""
    lines = _numbers(_SKILL_COLUMNS, "SKILL", usage.skills, screen) or ["No skill was used."]
    if usage.tools:
        lines += ["", *_numbers(_TOOL_COLUMNS, "TOOL", usage.tools, screen)]
    lines += ["", screen.paint(f"{plural(usage.events, 'event')} of {plural(usage.sessions, 'session')}", "bold")]
    if usage.broken:
        told = f"{plural(usage.broken, 'line')} not as written; skillshelf log verify names them"
        lines.append(screen.paint(told, "red"))
    return "\n".join(lines) + "\n"


_SKILL_COLUMNS = ("auto", "manual", "loaded", "read", "denied", "total_ms", "bytes")
_TOOL_COLUMNS = ("calls", "failed", "denied", "total_ms", "longest_ms", "bytes")


def _numbers(columns: Sequence[str], what: str, entries: Sequence[Mapping[str, Any]], screen: Screen) -> list[str]:
    """The numbers at the right of their columns, then the name, which may be long."""
    if not entries:
        return []
    rows = [[column.removesuffix("_ms").replace("total", "time").upper() for column in columns]]
    rows += [[_number(column, entry[column]) for column in columns] for entry in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    names = [what, *(entry["name"] for entry in entries)]
    table = [
        (*(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), name)
        for row, name in zip(rows, names, strict=True)
    ]
    return screen.table(table, (*([None] * len(columns)), "bold"))


def _number(column: str, number: int) -> str:
    if not number:
        return "-"
    return _duration(number) if column.endswith("_ms") else f"{number:,}"


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:.1f} s" if ms < 600_000 else f"{ms // 60_000:,} min"
