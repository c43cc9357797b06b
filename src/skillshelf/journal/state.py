"""Compute the state of a session and usage statistics from events."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from skillshelf.core.limits import JOURNAL_NAMES, JOURNAL_SESSIONS
from skillshelf.core.records import NamedTuple
from skillshelf.journal.events import (
    ContextCompacted,
    Event,
    PermissionDecided,
    ResultDropped,
    SessionEnded,
    SessionStarted,
    SkillActivated,
    SkillDeactivated,
    SkillInvoked,
    SkillLoaded,
    SkillRead,
    ToolEnded,
    ToolFailed,
    ToolStarted,
)
from skillshelf.journal.format import Line, digest_of

__all__ = ["OpenCalls", "SessionState", "Usage", "count_usage", "state_of"]


class SessionState(NamedTuple):
    """The state of a session, from its events.

    `loaded` has one entry for each skill that was sent to the model: its name, path, digest, arguments, reference,
    and whether the model still has it.
    """

    session: str = ""
    profile: str = ""
    cwd: str = ""
    policy: str = ""
    preloaded: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    asked_for: tuple[str, ...] = ()
    loaded: tuple[Mapping[str, Any], ...] = ()
    read: tuple[Mapping[str, Any], ...] = ()
    denied: int = 0
    failed: int = 0
    ended: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in self._asdict().items()}


def state_of(session: str, events: Sequence[Event]) -> SessionState:
    """Return the state of a session from its events alone."""
    builder = _Builder(session)
    for event in events:
        builder.take(event)
    return builder.state


class _Builder:
    """A state that is updated by each event."""

    def __init__(self, session: str) -> None:
        self.state = SessionState(session=session)
        self._act: ToolStarted | None = None
        self._to_preload = 0
        self._digests: dict[str, str] = {}

    def take(self, event: Event) -> None:
        """Apply one event."""
        step = _STEPS.get(type(event))
        if step is not None:
            step(self, event)

    def change(self, **members: Any) -> None:
        self.state = self.state._replace(**members)

    def started(self, event: SessionStarted) -> None:
        self._to_preload = len(event.preload)
        name = event.policy.get("name")
        self.change(profile=event.profile, cwd=event.cwd, policy=name if isinstance(name, str) else "")

    def tool_started(self, event: ToolStarted) -> None:
        self._act = event

    def decided(self, event: PermissionDecided) -> None:
        if event.verdict == "deny":
            self.change(denied=self.state.denied + 1)

    def loaded(self, event: SkillLoaded) -> None:
        self._digests[event.path] = event.digest

    def read(self, event: SkillRead) -> None:
        entry = {"uri": event.uri, "path": event.path, "digest": event.digest, "ref": event.ref}
        self.change(read=(*self.state.read, entry))

    def invoked(self, event: SkillInvoked) -> None:
        if event.mode == "manual":
            self._requested(event.name)
        if self._act is None:
            return
        if self._to_preload:
            preloaded = (*self.state.preloaded, event.name)
            self.change(preloaded=preloaded, active=_with(self.state.active, event.path))
        elif event.mode == "auto" or self._act.command is not None:
            self._sent(event)

    def _sent(self, event: SkillInvoked) -> None:
        entry = {
            "name": event.name,
            "path": event.path,
            "digest": self._digests.get(event.path, ""),
            "arguments": event.args or "",
            "ref": event.ref or "",
            "in_context": True,
        }
        others = [sent for sent in self.state.loaded if sent["path"] != event.path]
        places = [sent["path"] for sent in self.state.loaded]
        others.insert(places.index(event.path) if event.path in places else len(others), entry)
        self.change(loaded=tuple(others), active=_with(self.state.active, event.path))

    def _requested(self, name: str) -> None:
        # Showing a skill to a person is not a request to the model to use it.
        if self._act is None or self._act.command is not None or self._to_preload:
            self.change(asked_for=_with(self.state.asked_for, name))

    def activated(self, event: SkillActivated) -> None:
        self.change(active=_with(self.state.active, event.path), asked_for=_with(self.state.asked_for, event.name))

    def deactivated(self, event: SkillDeactivated) -> None:
        self.change(active=tuple(path for path in self.state.active if path != event.path))

    def compacted(self, event: ContextCompacted) -> None:
        self.change(loaded=tuple({**sent, "in_context": False} for sent in self.state.loaded))

    def dropped(self, event: ResultDropped) -> None:
        self.change(
            loaded=tuple(
                {**sent, "in_context": sent["in_context"] and sent["path"] not in event.skills}
                for sent in self.state.loaded
            )
        )

    def tool_ended(self, event: ToolEnded | ToolFailed) -> None:
        self._act = None
        self._to_preload = max(0, self._to_preload - 1)
        if isinstance(event, ToolFailed):
            self.change(failed=self.state.failed + 1)

    def ended(self, event: SessionEnded) -> None:
        self.change(ended=True)


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(sorted({*names, name}))


_STEPS: Mapping[type, Callable[[_Builder, Any], None]] = {
    SessionStarted: _Builder.started,
    ToolStarted: _Builder.tool_started,
    PermissionDecided: _Builder.decided,
    SkillLoaded: _Builder.loaded,
    SkillRead: _Builder.read,
    SkillInvoked: _Builder.invoked,
    SkillActivated: _Builder.activated,
    SkillDeactivated: _Builder.deactivated,
    ContextCompacted: _Builder.compacted,
    ResultDropped: _Builder.dropped,
    ToolEnded: _Builder.tool_ended,
    ToolFailed: _Builder.tool_ended,
    SessionEnded: _Builder.ended,
}


OTHERS = "(others)"
_NAME_CHARS = 256
_ENDS = ("tool_ended", "tool_failed")


class OpenCall(NamedTuple):
    """A running tool call: the tool, its start, and its skill as far as known."""

    tool: str
    began_ms: int
    skill: str | None


class OpenCalls:
    """The open calls of a journal, to relate each event to its call and skill; events come in order."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], OpenCall] = {}
        self._current: dict[str, str] = {}

    def follow(self, record: Mapping[str, Any]) -> tuple[OpenCall | None, str | None]:
        """Return the call that an event belongs to, and the skill that it concerns."""
        session, kind = record["session"], record["type"]
        if kind == "tool_decided":
            # A tool of the host: it belongs to no call of ours.
            return None, None
        if kind == "tool_started":
            call = OpenCall(_text(record.get("name")) or "?", record["ts_ms"], _skill_in(record.get("args")))
            self._begin(session, str(record.get("tool_id")), call)
            return call, call.skill
        identity = _text(record.get("tool_id")) or self._current.get(session, "")
        open_call = self._open.get((session, identity))
        name = None if kind.startswith("tool_") else _text(record.get("name"))
        if open_call and name and open_call.skill != name:
            # The arguments may name a path or nothing; the resolved skill counts.
            open_call = self._open[session, identity] = open_call._replace(skill=name)
        if kind in _ENDS:
            self._open.pop((session, identity), None)
            self._current.pop(session, None)
        return open_call, name or (open_call.skill if open_call else None)

    def _begin(self, session: str, identity: str, call: OpenCall) -> None:
        if len(self._open) >= JOURNAL_NAMES:
            # Thousands of calls that never ended: the oldest will not end any more.
            del self._open[next(iter(self._open))]
        if len(self._current) >= JOURNAL_NAMES:
            del self._current[next(iter(self._current))]
        self._open[session, identity] = call
        self._current[session] = identity


def _skill_in(args: object) -> str | None:
    """Return the skill that the arguments of a call name."""
    if not isinstance(args, Mapping):
        return None
    for key in ("name", "skillName"):
        if name := _text(args.get(key)):
            return name
    for key in ("uri", "path"):
        address = _text(args.get(key)) or ""
        if address.startswith("skill://"):
            return address.removeprefix("skill://").partition("/")[0] or None
    return None


def _text(value: object) -> str | None:
    return value[:_NAME_CHARS] if isinstance(value, str) and value else None


# Counting -----------------------------------------------------------------------------------------

SKILL_COUNTS = ("auto", "manual", "repeated", "loaded", "read", "denied", "calls", "failed")
TOOL_COUNTS = ("calls", "failed", "denied")
_SIZES = ("total_ms", "longest_ms", "bytes")


class Usage(NamedTuple):
    """The use of skills and tools in a journal, most used first."""

    events: int
    sessions: int
    broken: int
    skills: list[dict[str, Any]]
    tools: list[dict[str, Any]]


def count_usage(lines: Iterable[Line], *, session: str = "") -> Usage:
    """Count the use of skills and tools, of all sessions or of those whose name begins with `session`."""
    calls, skills, tools = OpenCalls(), _Rows(SKILL_COUNTS), _Rows(TOOL_COUNTS)
    sessions: set[str] = set()
    events = broken = 0
    for line in lines:
        broken += line.problem is not None
        record = line.record
        if record is None or not record["session"].startswith(session):
            continue
        events += 1
        if len(sessions) < JOURNAL_SESSIONS:
            sessions.add(digest_of(record["session"].encode()))
        call, skill = calls.follow(record)
        if skill:
            _count(skills, skill, record, call)
        tool = call.tool if call else _text(record.get("tool"))
        if tool:
            _count(tools, tool, record, call)
    return Usage(events, len(sessions), broken, skills.sorted_by("auto", "manual", "calls"), tools.sorted_by("calls"))


class _Rows:
    """Counts by name and kind."""

    def __init__(self, counts: Sequence[str]) -> None:
        self._rows: dict[str, dict[str, int]] = {}
        self._counts = counts

    def add(self, name: str, what: str, number: int = 1) -> None:
        """Add to a count if these rows have it."""
        row = self._row(name)
        if what == "longest_ms":
            row[what] = max(row[what], number)
        elif what in row:
            row[what] += number

    def _row(self, name: str) -> dict[str, int]:
        if name not in self._rows and len(self._rows) >= JOURNAL_NAMES:
            name = OTHERS
        return self._rows.setdefault(name, dict.fromkeys((*self._counts, *_SIZES), 0))

    def sorted_by(self, *counts: str) -> list[dict[str, Any]]:
        """Return one row for each name, sorted by the sum of these counts, then by name."""
        rows: list[dict[str, Any]] = [{"name": name, **row} for name, row in self._rows.items()]
        return sorted(rows, key=lambda row: (-sum(row[count] for count in counts), row["name"]))


def _count(rows: _Rows, name: str, record: Mapping[str, Any], call: OpenCall | None) -> None:
    kind = record["type"]
    if kind in _COUNTED:
        rows.add(name, _COUNTED[kind](record))
    if kind in _ENDS and call:
        took = _number(record.get("duration_ms")) or max(0, record["ts_ms"] - call.began_ms)
        rows.add(name, "total_ms", took)
        rows.add(name, "longest_ms", took)
    chunk = record.get("chunk")
    size = len(chunk.encode("utf-8", "replace")) if isinstance(chunk, str) else _number(record.get("size"))
    rows.add(name, "bytes", size)


_COUNTED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "tool_started": lambda _: "calls",
    "tool_failed": lambda record: "" if record.get("code") == "denied" else "failed",
    "permission_decided": lambda record: "denied" if record.get("verdict") == "deny" else "",
    "tool_decided": lambda record: "denied" if record.get("verdict") == "deny" else "",
    "skill_loaded": lambda record: "loaded",
    "skill_read": lambda record: "read",
    "skill_invoked": lambda record: "repeated" if record.get("repeat") is True else str(record.get("mode")),
}
"""The count that an event of each type adds to; the empty text means none."""


def _number(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
