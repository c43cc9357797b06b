"""The skills that the MCP server publishes, and the pool of sessions that serve its requests.

The server does not know what is still in a client's context. So a session here never assumes that a text it sent
earlier is still there.
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
from skillshelf.servers.mcp.skill_entries import (
    EntryBuilder,
    OmittedSkill,
    PublishableFolder,
    PublishableSkill,
    SkillEntry,
    address,
)
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolResult
from skillshelf.shelf import Shelf

__all__ = ["PublishedSkills", "SessionPool", "SkillTarget"]

_MOST_ACTS = 1_000
# A session keeps each text for a recall, which this protocol does not offer.
_MOST_BYTES = 2 * 1024 * 1024


class _PooledSession:
    """A session with counters of what it has done."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.acts = 0
        self.size = 0
        self.loaded = False
        self.has_user_command = False

    @property
    def is_spent(self) -> bool:
        """True if a new session should replace it: it holds many texts, or a command of one user."""
        return self.has_user_command or self.acts >= _MOST_ACTS or self.size >= _MOST_BYTES


class SessionPool:
    """The sessions of a server: one for each concurrent request, each replaced after a limited amount of work."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open = open_session
        self._lock = threading.Lock()
        self._free: list[_PooledSession] = []
        self._closed = False
        self.problem: str | None = None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Return the result of a tool of the profile."""
        with self._borrow() as pooled:
            # In a profile without a load tool, the read tool loads skills.
            loads = NAMES_OF_TOOLS.get(tool) == "skill_load" or tool == "read"
            if loads:
                self._reset(pooled)
            result = pooled.session.call(tool, arguments)
            pooled.loaded = pooled.loaded or (loads and result.ok)
            pooled.size += len(result.text)
            return result

    def command(self, text: str) -> ToolResult | None:
        """Return the result of a user's command; the session is not reused for other clients."""
        with self._borrow() as pooled:
            self._reset(pooled)
            pooled.has_user_command = True
            return pooled.session.command(text)

    def fetch(self, uri: str, path: str) -> Resource:
        """Return a whole file of the skill at a path, or raise what a read raises."""
        with self._borrow() as pooled:
            resource = pooled.session.read(uri, path=path, limit=PUBLISHED_BYTES, for_model=True)
            pooled.size += len(resource.content)
            return resource

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Borrow a session for a query that does not change it."""
        with self._borrow() as pooled:
            yield pooled.session

    def close(self) -> None:
        """Close the sessions; one in use is closed when its request ends."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for pooled in free:
            self._end(pooled)

    def _end(self, pooled: _PooledSession) -> None:
        pooled.session.close()
        self.problem = pooled.session.journal_problem or self.problem

    @staticmethod
    def _reset(pooled: _PooledSession) -> None:
        if pooled.loaded:
            pooled.session.compact()
            for name in tuple(pooled.session.active):
                pooled.session.deactivate(name)
            pooled.loaded = False

    @contextmanager
    def _borrow(self) -> Iterator[_PooledSession]:
        with self._lock:
            pooled = self._free.pop() if self._free else None
        pooled = pooled or _PooledSession(self._open())
        pooled.acts += 1
        try:
            yield pooled
        finally:
            with self._lock:
                keep = not self._closed and not pooled.is_spent
                if keep:
                    self._free.append(pooled)
            if not keep:
                self._end(pooled)


_MISS_SECONDS = 1.0
_TRIES = 5


class SkillTarget(NamedTuple):
    """The target of an address: a skill, the segments it is published under, and a path in its folder."""

    skill: CatalogSkill
    base: tuple[str, ...]
    path: str


class _Index(NamedTuple):
    """The skills visible to a model, and the address of each; skills of the same name have their id before it."""

    source: Sequence[CatalogSkill]
    visible: tuple[CatalogSkill, ...]
    bases: Mapping[str, tuple[str, ...]]
    by_base: Mapping[tuple[str, ...], CatalogSkill]


class PublishedSkills:
    """The skills of a shelf that a server publishes. Every access to their files goes through `sessions`.

    `watched` is True while changes on disk are announced; otherwise the skills are refreshed every `refresh_seconds`.
    """

    def __init__(self, shelf: Shelf, open_session: Callable[[], Session], *, refresh_seconds: float = 2.0) -> None:
        self.shelf = shelf
        self._refresh_seconds = refresh_seconds
        self.sessions = SessionPool(open_session)
        self.watched = False
        self._publisher = EntryBuilder()
        self._lock = threading.Lock()
        self._refreshed = time.monotonic()
        self._index: _Index | None = None

    # The catalog ----------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Read the disk again; return True if the catalog has changed."""
        with self._lock:
            self._refreshed = time.monotonic()
            return self.shelf.refresh()

    def _refresh_after(self, seconds: float) -> None:
        if time.monotonic() - self._refreshed >= seconds:
            self.refresh()

    @property
    def visible(self) -> tuple[CatalogSkill, ...]:
        """The skills that are visible to a model."""
        if not self.watched:
            self._refresh_after(self._refresh_seconds)
        return self._indexed().visible

    def listed(self) -> tuple[CatalogSkill, ...]:
        """Return the visible skills for a listing; a session records the catalog if it has changed."""
        visible = self.visible
        with self.sessions.session() as session:
            session.record_catalog()
        return visible

    @property
    def untrusted(self) -> int:
        """The number of skills hidden from a model because their project is not trusted."""
        return sum(skill.hidden == "untrusted" for skill in self.shelf.catalog.skills)

    def _indexed(self) -> _Index:
        with self.sessions.session() as session:
            source = session.skills
        index = self._index
        if index is None or index.source is not source:
            index = self._index = _index_of(source)
        return index

    # Addresses ------------------------------------------------------------------------------------

    def base_of(self, skill: CatalogSkill) -> tuple[str, ...]:
        """Return the segments that a skill is published under."""
        return self._indexed().bases.get(skill.path, (skill.name,))

    def uri_of(self, skill: CatalogSkill) -> str:
        """Return the address of a skill's SKILL.md."""
        return address(*self.base_of(skill), "SKILL.md")

    def uri_in(self, skill: CatalogSkill, path: str) -> str:
        """Return the address of a file of a skill."""
        return address(*self.base_of(skill), *os.fsencode(path).decode("utf-8", "replace").split("/"))

    def locate(self, uri: str) -> SkillTarget | None:
        """Return the target of a canonical address, or None."""
        target = self._find(uri)
        if target is None:
            # The skill may be new, and the watcher may not have reported it yet.
            self._refresh_after(_MISS_SECONDS)
            target = self._find(uri)
        return target

    def _find(self, uri: str) -> SkillTarget | None:
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
                return SkillTarget(skill, segments[:length], "/".join(segments[length:]))
        return None

    # Published entries ----------------------------------------------------------------------------

    def scan(self, target: SkillTarget) -> PublishableFolder | None:
        """Return the files and folders of a skill as they are now, or None if it is gone."""
        try:
            return self._publisher.scan(target.skill, target.base)
        except OSError:
            return None

    def published(self, skill: CatalogSkill) -> Iterator[PublishableSkill | OmittedSkill]:
        """Yield a skill and those inside it, as far as they are published."""
        target = SkillTarget(skill, self.base_of(skill), "")
        state = self.scan(target)
        if state is None:
            yield OmittedSkill(address(*target.base, "SKILL.md"), "its folder is gone")
        elif self._is_unreadable(skill):
            yield OmittedSkill(address(*target.base, "SKILL.md"), "a rule denies reading its files")
        else:
            yield from self._publisher.skills(state)

    def _is_unreadable(self, skill: CatalogSkill) -> bool:
        """Return True if a rule denies every read of its files, which an entry would promise."""
        with self.sessions.session() as session:
            if not session.policy.deny:
                return False
            decision = session.decide("skill_read", {"uri": address(skill.name)})
        return decision.verdict == "deny" and decision.rule is not None

    def entries(self, skill: CatalogSkill) -> list[SkillEntry | OmittedSkill]:
        """Return the entry of a skill and of those inside it, all from one scan of its folder."""
        for _ in range(_TRIES):
            try:
                return [
                    found if isinstance(found, OmittedSkill) else self._publisher.entry(found)
                    for found in self.published(skill)
                ]
            except OSError:
                # A file was removed between the scan and the read: scan again.
                continue
        return [OmittedSkill(self.uri_of(skill), "its files change while they are read; try again")]

    def entry(self, uri: str) -> SkillEntry | OmittedSkill | None:
        """Return the entry at the address of a SKILL.md, or None if there is none."""
        target = self.locate(uri)
        if target is None:
            return None
        return next((found for found in self.entries(target.skill) if found.uri == uri), None)


def _index_of(source: Sequence[CatalogSkill]) -> _Index:
    names = Counter(skill.name for skill in visible_to_model(source))

    def order(skill: CatalogSkill) -> tuple[str, str]:
        # By name and id, so that a page can begin after a skill that was removed. An id is a digest.
        return skill.name, skill.id if names[skill.name] > 1 else ""

    visible = tuple(sorted(visible_to_model(source), key=order))
    bases = {skill.path: (skill.name,) if names[skill.name] == 1 else (skill.id, skill.name) for skill in visible}
    return _Index(source, visible, bases, {bases[skill.path]: skill for skill in visible})
