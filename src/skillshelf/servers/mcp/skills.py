"""Requests of many clients to sessions, one request in a session at a time.

A client of this protocol may have forgotten everything between two requests, and nobody tells the server. So a
session here never takes for granted that what it sent is still in somebody's context.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from skillshelf.catalog.load import Resource, parse_address
from skillshelf.catalog.prompt import visible_to_model
from skillshelf.core.limits import PUBLISHED_BYTES
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError
from skillshelf.servers.mcp.publish import LeftOut, Published, Publisher, SkillEntry, SkillState, address
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolResult
from skillshelf.shelf import Shelf

__all__ = ["PublishedSkills", "SessionPool", "SkillAddress"]


_MOST_ACTS = 1_000
# A session keeps each text for a recall, which nobody can ask for over this protocol.
_MOST_BYTES = 2 * 1024 * 1024


class _PooledSession:
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


class SessionPool:
    """The sessions of a server: one for each request at one time, each ended after a bounded amount of work."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open = open_session
        self._lock = threading.Lock()
        self._free: list[_PooledSession] = []
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

    def _end(self, lane: _PooledSession) -> None:
        lane.session.close()
        # What could not be written to the journal.
        self.problem = lane.session.journal_problem or self.problem

    @staticmethod
    def _forget(lane: _PooledSession) -> None:
        if lane.loaded:
            lane.session.compact()
            for name in tuple(lane.session.active):
                lane.session.deactivate(name)
            lane.loaded = False

    @contextmanager
    def _lane(self) -> Iterator[_PooledSession]:
        with self._lock:
            lane = self._free.pop() if self._free else None
        lane = lane or _PooledSession(self._open())
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


_LOOK_AGAIN_SECONDS = 2.0
_MISS_SECONDS = 1.0
_TRIES = 5


class SkillAddress(NamedTuple):
    """Where an address leads: a skill, the segments it is published under, and a path in its folder."""

    skill: CatalogSkill
    base: tuple[str, ...]
    path: str


class _Index(NamedTuple):
    """The skills a model may know of, and the address of each; those of one name have their id before it."""

    source: Sequence[CatalogSkill]
    told: tuple[CatalogSkill, ...]
    bases: Mapping[str, tuple[str, ...]]
    by_base: Mapping[tuple[str, ...], CatalogSkill]


class PublishedSkills:
    """The skills of a shelf for a server. What reaches into them goes through the sessions in `lanes`."""

    def __init__(self, shelf: Shelf, open_session: Callable[[], Session]) -> None:
        self.shelf = shelf
        self.lanes = SessionPool(open_session)
        self.watched = False
        self._publisher = Publisher()
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._index: _Index | None = None

    # The catalog ----------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Look at the disk again; True if the catalog is another one now."""
        with self._lock:
            self._looked = time.monotonic()
            return self.shelf.refresh()

    def _refresh_after(self, seconds: float) -> None:
        if time.monotonic() - self._looked >= seconds:
            self.refresh()

    @property
    def told(self) -> tuple[CatalogSkill, ...]:
        """The skills that a model may know of."""
        if not self.watched:
            self._refresh_after(_LOOK_AGAIN_SECONDS)
        return self._indexed().told

    def listed(self) -> tuple[CatalogSkill, ...]:
        """The same for a client that asks for a listing; a session records the catalog if it is another one."""
        told = self.told
        with self.lanes.session() as session:
            session.record_catalog()
        return told

    @property
    def held_back(self) -> int:
        """How many skills a model is not told of because nobody trusts their folder."""
        return sum(skill.hidden == "untrusted" for skill in self.shelf.catalog.skills)

    def _indexed(self) -> _Index:
        with self.lanes.session() as session:
            source = session.skills
        index = self._index
        if index is None or index.source is not source:
            index = self._index = _index_of(source)
        return index

    # Addresses ------------------------------------------------------------------------------------

    def base_of(self, skill: CatalogSkill) -> tuple[str, ...]:
        """The segments that a skill is published under."""
        return self._indexed().bases.get(skill.path, (skill.name,))

    def uri_of(self, skill: CatalogSkill) -> str:
        """The address of a skill's SKILL.md."""
        return address(*self.base_of(skill), "SKILL.md")

    def uri_in(self, skill: CatalogSkill, path: str) -> str:
        """The address of a file of a skill."""
        return address(*self.base_of(skill), *os.fsencode(path).decode("utf-8", "replace").split("/"))

    def locate(self, uri: str) -> SkillAddress | None:
        """Where an address leads; only its one spelling leads anywhere."""
        place = self._find(uri)
        if place is None:
            # It may have come since the last look, and whoever watches may not have told yet.
            self._refresh_after(_MISS_SECONDS)
            place = self._find(uri)
        return place

    def _find(self, uri: str) -> SkillAddress | None:
        try:
            found = parse_address(uri)
        except SkillError:
            return None
        segments = (found.name, *found.segments)
        if address(*segments) != uri:
            return None
        index = self._indexed()
        for length in (1, 2):
            skill = index.by_base.get(segments[:length])
            if skill is not None:
                return SkillAddress(skill, segments[:length], "/".join(segments[length:]))
        return None

    # What is published ----------------------------------------------------------------------------

    def look(self, place: SkillAddress) -> SkillState | None:
        """The files and folders of a skill as they are now; None if it is gone."""
        try:
            return self._publisher.look(place.skill, place.base)
        except OSError:
            return None

    def published(self, skill: CatalogSkill) -> Iterator[Published | LeftOut]:
        """What a skill and those inside it say, as far as they are published."""
        place = SkillAddress(skill, self.base_of(skill), "")
        look = self.look(place)
        if look is None:
            yield LeftOut(address(*place.base, "SKILL.md"), "its folder is gone")
        elif self._is_unreadable(skill):
            yield LeftOut(address(*place.base, "SKILL.md"), "a rule denies that its files are read")
        else:
            yield from self._publisher.skills(look)

    def _is_unreadable(self, skill: CatalogSkill) -> bool:
        """Whether a rule denies every read of its files: an entry promises them."""
        with self.lanes.session() as session:
            if not session.policy.deny:
                return False
            decision = session.decide("skill_read", {"uri": address(skill.name)})
        return decision.verdict == "deny" and decision.rule is not None

    def entries(self, skill: CatalogSkill) -> list[SkillEntry | LeftOut]:
        """The entry of a skill and of those inside it, all of one look at its folder."""
        for _ in range(_TRIES):
            try:
                return [
                    found if isinstance(found, LeftOut) else self._publisher.entry(found)
                    for found in self.published(skill)
                ]
            except OSError:
                # Something went away between the look and the reading: look again.
                continue
        return [LeftOut(self.uri_of(skill), "its files change faster than they can be read; try again")]

    def entry(self, uri: str) -> SkillEntry | LeftOut | None:
        """The entry that an address of a SKILL.md names; None where it names nothing of that kind."""
        place = self.locate(uri)
        if place is None:
            return None
        return next((found for found in self.entries(place.skill) if found.uri == uri), None)


def _index_of(source: Sequence[CatalogSkill]) -> _Index:
    names = Counter(skill.name for skill in visible_to_model(source))

    def order(skill: CatalogSkill) -> tuple[str, str]:
        # By name and id, so that a page can begin after a skill that has gone meanwhile. An id is a digest.
        return skill.name, skill.id if names[skill.name] > 1 else ""

    told = tuple(sorted(visible_to_model(source), key=order))
    bases = {skill.path: (skill.name,) if names[skill.name] == 1 else (skill.id, skill.name) for skill in told}
    return _Index(source, told, bases, {bases[skill.path]: skill for skill in told})
