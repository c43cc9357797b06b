"""Say in words what an event of a journal tells."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from skillshelf.core.console import as_json
from skillshelf.core.text import plural, shorten
from skillshelf.journal.format import RESERVED

__all__ = ["event_time", "event_words"]

_VALUE_SHOWN = 300
_YEAR_10000_MS = 253_402_300_800_000


def event_words(record: Mapping[str, Any]) -> str:
    """Return the description of an event; one of an unknown type shows its members."""
    return _WORDS.get(record["type"], _members)(record)


def event_time(ts_ms: int) -> str:
    """Return the time in UTC, so that a journal reads the same everywhere; every time has the same length."""
    if not 0 <= ts_ms < _YEAR_10000_MS:
        return "????-??-?? ??:??:??.???Z"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ts_ms // 1000)) + f".{ts_ms % 1000:03d}Z"


def _value(value: object) -> str:
    """Return a member as text, or as JSON if it is not text."""
    if value is None:
        return ""
    return shorten(value if isinstance(value, str) else as_json(value).strip(), _VALUE_SHOWN)


def _of(record: Mapping[str, Any], name: str, missing: str = "?") -> str:
    return _value(record.get(name)) or missing


def _with(record: Mapping[str, Any], name: str, form: str) -> str:
    """Return the formatted member, or nothing if it is missing, null, false or empty."""
    return form.format(_value(record[name])) if record.get(name) not in (None, "", False, [], {}) else ""


def _counted(record: Mapping[str, Any], name: str, noun: str) -> str:
    value = record.get(name)
    count = len(value) if isinstance(value, list | dict) else value if isinstance(value, int) else None
    return plural(count, noun) if count is not None else f"? {noun}s"


def _session_started(record: Mapping[str, Any]) -> str:
    policy = record.get("policy")
    name = policy.get("name") if isinstance(policy, dict) else policy
    served = _with(record, "client", ", for {}") + _with(record, "subject", " ({})")
    one = ", one request" if record.get("per_request") is True else ""
    return f"profile {_of(record, 'profile')}, policy {_value(name) or '?'}, in {_of(record, 'cwd')}{served}{one}"


def _catalog(record: Mapping[str, Any]) -> str:
    collisions = f", {_counted(record, 'collisions', 'collision')}" if record.get("collisions") else ""
    return f"{_counted(record, 'count', 'skill')} in {_counted(record, 'roots', 'root')}{collisions}"


def _loaded(record: Mapping[str, Any]) -> str:
    warnings = f", {_counted(record, 'warnings', 'warning')}" if record.get("warnings") else ""
    return f"{_of(record, 'name')} from {_of(record, 'path')} ({_of(record, 'digest')[:19]}){warnings}"


def _invoked(record: Mapping[str, Any]) -> str:
    again = ", already in the context" if record.get("repeat") is True else ""
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
        f"{_with(record, 'text_bytes', ', {} bytes of text')}{_with(record, 'truncated', ', output cut')}"
        f"{_with(record, 'artifacts', ', kept: {}')}"
    )


def _decided(record: Mapping[str, Any]) -> str:
    return (
        f"{_of(record, 'verdict')}: {_of(record, 'tool')} for {_of(record, 'name', 'no skill')}"
        f"{_with(record, 'script', ' script {}')}{_with(record, 'rule', ', {}')}{_with(record, 'by', ', by {}')}"
    )


def _prompt(record: Mapping[str, Any]) -> str:
    omitted = f", {_counted(record, 'omitted', 'skill')} omitted" if record.get("omitted") else ""
    return f"{_of(record, 'bytes')} bytes with {_counted(record, 'entries', 'skill')}{omitted}"


def _tool_decided(record: Mapping[str, Any]) -> str:
    return (
        f"{_of(record, 'verdict')}: {_of(record, 'tool')}{_with(record, 'args', ' {}')}{_with(record, 'rule', ', {}')}"
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
    "prompt_composed": _prompt,
    "tool_decided": _tool_decided,
    "tool_answered": lambda record: f"{_of(record, 'verdict')}: {_of(record, 'tool')}{_with(record, 'by', ', by {}')}",
    "result_dropped": lambda record: "the caller was cancelled: the model did not get the result",
    "journal_continued": lambda record: f"part {_of(record, 'part')}, after {_of(record, 'before')}",
    "context_compacted": lambda record: f"{_counted(record, 'skills', 'skill')} no longer in the context",
}
"""The description of an event by its type."""
