"""The skills that the MCP server publishes: their addresses and entries, as the policy of the server leaves them."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

from skillshelf.catalog.held_back import HeldBack
from skillshelf.catalog.load import parse_address
from skillshelf.catalog.lock_places import may_be_locked
from skillshelf.catalog.prompt import visible_to_model
from skillshelf.core import files
from skillshelf.core.limits import SOURCE_REST_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError
from skillshelf.servers.mcp.client_sessions import ClientSession, ClientSessions
from skillshelf.servers.mcp.skill_entries import (
    EntryBuilder,
    OmittedSkill,
    PublishableFolder,
    PublishableSkill,
    SkillEntry,
    address,
)
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import Policy
from skillshelf.session.session import Session
from skillshelf.session.system_rules import is_served
from skillshelf.shelf import Shelf

__all__ = ["PublishedSkills", "ServedSkills", "SkillTarget"]

_MISS_SECONDS = 1.0
_TRIES = 5
_CHANGING = "its files change while they are read; try again"


class SkillTarget(NamedTuple):
    """The target of an address: a skill, the segments it is published under, and a path in its folder."""

    skill: CatalogSkill
    base: tuple[str, ...]
    path: str


class ServedSkills(NamedTuple):
    """The skills visible to a model, and the address of each; skills of the same name have their id before it."""

    source: Sequence[CatalogSkill]
    visible: tuple[CatalogSkill, ...]
    bases: Mapping[str, tuple[str, ...]]
    by_base: Mapping[tuple[str, ...], CatalogSkill]
    by_path: Mapping[str, CatalogSkill]

    def base_of(self, skill: CatalogSkill) -> tuple[str, ...]:
        """Return the segments that a skill is published under."""
        return self.bases.get(skill.path, (skill.name,))

    def uri_of(self, skill: CatalogSkill) -> str:
        """Return the address of a skill's SKILL.md."""
        return address(*self.base_of(skill), "SKILL.md")


class PublishedSkills:
    """The skills of a shelf that a server publishes. Their files reach a client only through `sessions`.

    `queries` answers what does not depend on a client; it records nothing. `watched` is True while changes on disk
    are announced; otherwise the skills are refreshed every `refresh_seconds`. `options` are those of `Shelf.session`.
    """

    def __init__(
        self,
        shelf: Shelf,
        policy: Policy | Mapping[str, Any] | str | None = None,
        *,
        refresh_seconds: float = 2.0,
        **options: Any,
    ) -> None:
        self.shelf = shelf
        self._refresh_seconds = refresh_seconds
        self._open_queries = partial(shelf.session, policy, memory="none")
        self._queries = self._open_queries()
        self.sessions = ClientSessions(partial(shelf.session, policy, memory="none", **options))
        self.watched = False
        self._publisher = EntryBuilder()
        self._lock = threading.Lock()
        self._refreshed = time.monotonic()
        self._has_changed = False
        self._index: ServedSkills | None = None

    @property
    def queries(self) -> Session:
        """The session for what does not depend on a client; a new one if the system policy changed since."""
        if self._queries.is_outdated:
            self._queries = self._open_queries()
        return self._queries

    # The catalog ----------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Read the disk again; return True if the catalog has changed since the last call."""
        with self._lock:
            self._read_disk()
            has_changed, self._has_changed = self._has_changed, False
            return has_changed

    def _read_disk(self) -> None:
        self._refreshed = time.monotonic()
        self._has_changed |= self.shelf.refresh(sources_after=SOURCE_REST_SECONDS)

    def _refresh_after(self, seconds: float) -> None:
        if time.monotonic() - self._refreshed >= seconds:
            with self._lock:
                # A change that a request notices is still announced by the watcher.
                self._read_disk()

    @property
    def served(self) -> ServedSkills:
        """The skills that are visible to a model as they are now, for one answer: each look asks the disk."""
        if not self.watched:
            self._refresh_after(self._refresh_seconds)
        if self._queries.is_outdated:
            self._has_changed |= self.shelf.refresh()
        if self.shelf.settings.system.files and not is_served(self.shelf):
            return _index_of(())
        return self._indexed()

    @property
    def visible(self) -> tuple[CatalogSkill, ...]:
        """The skills that are visible to a model."""
        return self.served.visible

    def prepare_search(self) -> None:
        """Open the search index, if a tool of the profile searches."""
        if "skill_search" in {NAMES_OF_TOOLS[tool] for tool in self.shelf.profile.tools}:
            self.shelf.prepare_search()

    def listed(self, client: ClientSession) -> tuple[CatalogSkill, ...]:
        """Return the visible skills for a listing; it is recorded for the client if the catalog has changed."""
        visible = self.visible
        client.record_catalog()
        return visible

    @property
    def held_back(self) -> HeldBack:
        """The count of what models are not told: skills of an untrusted project, and what its own file takes away."""
        return self.shelf.held_back

    def _indexed(self) -> ServedSkills:
        source = self.queries.skills
        index = self._index
        if index is None or index.source is not source:
            index = self._index = _index_of(source)
        return index

    # Addresses ------------------------------------------------------------------------------------

    def base_of(self, skill: CatalogSkill) -> tuple[str, ...]:
        """Return the segments that a skill is published under."""
        return self._indexed().base_of(skill)

    def uri_of(self, skill: CatalogSkill) -> str:
        """Return the address of a skill's SKILL.md."""
        return self._indexed().uri_of(skill)

    def uri_in(self, skill: CatalogSkill, path: str) -> str:
        """Return the address of a file of a skill."""
        return address(*self.base_of(skill), *path.split("/"))

    def locate(self, uri: str) -> SkillTarget | None:
        """Return the target of a canonical address, or None."""
        target = self._find(uri)
        if target is None:
            # The skill may be new, and the watcher may not have reported it yet.
            self._refresh_after(_MISS_SECONDS)
            target = self._find(uri)
        return target

    def _find(self, uri: str) -> SkillTarget | None:
        if self.shelf.settings.system.problem:
            return None
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
        """Return the files and folders of a skill as they are now, or None if it is gone.

        Raise SkillError for an installed skill whose files are others now.
        """
        try:
            self.shelf.make_ready(target.skill)
        except SkillError:
            return None
        try:
            return self._publisher.scan(target.skill, target.base, self._installed(target.skill))
        except OSError:
            return None

    def _installed(self, skill: CatalogSkill) -> Mapping[str, files.Contents] | None:
        """Return the files of an installed skill, checked; None for any other."""
        if not may_be_locked(self.shelf.environment, (skill.real_dir, skill.dir)):
            return None
        from skillshelf.catalog.locked_files import read_locked

        installed = read_locked(skill.real_dir, self.shelf.environment, name=skill.name, place=skill.dir)
        return installed.contents if installed is not None else None

    def published(self, skill: CatalogSkill) -> Iterator[PublishableSkill | OmittedSkill]:
        """Yield a skill and those inside it, as far as they are published."""
        state = self._folder_of(skill)
        if isinstance(state, OmittedSkill):
            yield state
        else:
            yield from self._publisher.skills(state)

    def _folder_of(self, skill: CatalogSkill) -> PublishableFolder | OmittedSkill:
        """Return the folder of a skill, or the reason if none of its files is given out."""
        target = SkillTarget(skill, self.base_of(skill), "")
        try:
            state = self.scan(target)
        except SkillError:
            return OmittedSkill(address(*target.base, "SKILL.md"), "its files are not those that its lock names")
        if state is None:
            return OmittedSkill(address(*target.base, "SKILL.md"), "its folder is gone")
        if self._is_unreadable(skill):
            return OmittedSkill(address(*target.base, "SKILL.md"), "a rule denies reading its files")
        return state

    def _is_unreadable(self, skill: CatalogSkill) -> bool:
        """Return True if a rule denies every read of its files, which an entry would promise."""
        if not self.queries.policy.deny:
            return False
        decision = self.queries.decide("skill_read", {"uri": address(skill.name)})
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
        return [OmittedSkill(self.uri_of(skill), _CHANGING)]

    def own_entry(self, skill: CatalogSkill) -> SkillEntry | OmittedSkill:
        """Return the entry of a skill, also of one that the extension leaves out for its name or a long field."""
        for _ in range(_TRIES):
            state = self._folder_of(skill)
            if isinstance(state, OmittedSkill):
                return state
            with suppress(OSError):
                return self._publisher.entry(self._publisher.own(state))
        return OmittedSkill(self.uri_of(skill), _CHANGING)

    def entry(self, uri: str) -> SkillEntry | OmittedSkill | None:
        """Return the entry at the address of a SKILL.md, or None if there is none."""
        target = self.locate(uri)
        if target is None:
            return None
        return next((found for found in self.entries(target.skill) if found.uri == uri), None)


def _index_of(source: Sequence[CatalogSkill]) -> ServedSkills:
    found = visible_to_model(source)
    names = Counter(map(attrgetter("name"), found))

    def order(skill: CatalogSkill) -> tuple[str, str]:
        # By name and id, so that a page can begin after a skill that was removed. An id is a digest.
        return skill.name, skill.id if names[skill.name] > 1 else ""

    if len(names) == len(found):
        # As nearly always; there may be a hundred thousand of them.
        visible = tuple(sorted(found, key=attrgetter("name")))
        bases: dict[str, tuple[str, ...]] = {skill.path: (skill.name,) for skill in visible}
    else:
        visible = tuple(sorted(found, key=order))
        bases = {skill.path: (skill.name,) if names[skill.name] == 1 else (skill.id, skill.name) for skill in visible}
    by_path = {skill.path: skill for skill in visible}
    return ServedSkills(source, visible, bases, {bases[path]: skill for path, skill in by_path.items()}, by_path)
