"""Requests of many clients to sessions, one request in a session at a time.

A client of this protocol may have forgotten everything between two requests, and nobody tells the server. So a
session here never takes for granted that what it sent is still in somebody's context.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from skillshelf.catalog.load import Resource
from skillshelf.core.limits import PUBLISHED_BYTES
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolResult

__all__ = ["Lanes"]

_MOST_ACTS = 1_000
# A session keeps each text for a recall, which nobody can ask for over this protocol.
_MOST_BYTES = 2 * 1024 * 1024


class _Lane:
    """A session, and how much it has done."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.acts = 0
        self.size = 0
        self.loaded = False
        self.asked_for = False

    @property
    def is_spent(self) -> bool:
        """Whether a new session should take its place: it holds many texts, or a wish that is not everybody's."""
        return self.asked_for or self.acts >= _MOST_ACTS or self.size >= _MOST_BYTES


class Lanes:
    """The sessions of a server: one for each request at one time, each ended after a bounded amount of work."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open = open_session
        self._lock = threading.Lock()
        self._free: list[_Lane] = []
        self._closed = False
        self.problem: str | None = None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What a tool of the profile gives."""
        with self._lane() as lane:
            # The tool that reads may load too, where the profile has no other.
            loads = NAMES_OF_TOOLS.get(tool) == "skill_load" or tool == "read"
            if loads:
                self._forget(lane)
            result = lane.session.call(tool, arguments)
            lane.loaded = lane.loaded or (loads and result.ok)
            lane.size += len(result.text)
            return result

    def command(self, text: str) -> ToolResult | None:
        """What a command of a user gives; that a user asked for a skill opens it to no other client."""
        with self._lane() as lane:
            self._forget(lane)
            lane.asked_for = True
            return lane.session.command(text)

    def fetch(self, uri: str, path: str) -> Resource:
        """A whole file of the skill at a path; raises what a read raises."""
        with self._lane() as lane:
            resource = lane.session.read(uri, path=path, limit=PUBLISHED_BYTES, for_model=True)
            lane.size += len(resource.content)
            return resource

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A session to ask something that leaves no trace in it."""
        with self._lane() as lane:
            yield lane.session

    def close(self) -> None:
        """End the sessions; one that is at work ends when its request does."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for lane in free:
            self._end(lane)

    def _end(self, lane: _Lane) -> None:
        lane.session.close()
        # What could not be written to the journal.
        self.problem = lane.session.journal_problem or self.problem

    @staticmethod
    def _forget(lane: _Lane) -> None:
        if lane.loaded:
            lane.session.compact()
            for name in tuple(lane.session.active):
                lane.session.deactivate(name)
            lane.loaded = False

    @contextmanager
    def _lane(self) -> Iterator[_Lane]:
        with self._lock:
            lane = self._free.pop() if self._free else None
        lane = lane or _Lane(self._open())
        lane.acts += 1
        try:
            yield lane
        finally:
            with self._lock:
                keep = not self._closed and not lane.is_spent
                if keep:
                    self._free.append(lane)
            if not keep:
                self._end(lane)
