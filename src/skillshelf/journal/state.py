"""Compute the state of a session from its events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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

__all__ = ["SessionState", "state_of"]


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
