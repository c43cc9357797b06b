"""Acts of a session to events, for whoever listens: a journal, a host's callback, a folder of contents.

Where nobody listens nothing is made, and the events are not even imported.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from skillshelf import __version__
from skillshelf.catalog.load import LoadedSkill, Resource, digest_of
from skillshelf.core.limits import WARNINGS_TOLD
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic
from skillshelf.errors import SkillError
from skillshelf.session.policy import Decision, Policy, policy_to_dict
from skillshelf.session.tools import ToolError, ToolResult

if TYPE_CHECKING:
    from skillshelf.journal.events import By, Event, Mode
    from skillshelf.journal.file import Journal

__all__ = ["Act", "OnEvent", "Recorder", "Recording", "open_recorder"]

OnEvent = Callable[["Event"], object]
Explain = Callable[[SkillError], ToolError]
"""An error in the words that a model gets, so that an act which raises it is recorded as one that returns it."""


class Recording(NamedTuple):
    """Where the events of a session go: a file, with the contents of what was loaded beside it, or a callback."""

    journal: str | None = None
    keep: bool = False
    fsync: Literal["never", "end", "always"] = "never"
    on_event: OnEvent | None = None


class Act:
    """One call while it runs: `result` is what it gave, `ended` how the script ended that it ran, if it ran one."""

    def __init__(self, tool_id: str, mode: "Mode") -> None:
        self.tool_id = tool_id
        self.mode = mode
        self.result: ToolResult | None = None
        self.ended: dict[str, Any] = {}


def open_recorder(recording: Recording, explain: Explain) -> "Recorder":
    """The recorder that tells everybody who wants to know."""
    listeners = [recording.on_event] if recording.on_event else []
    if recording.journal is None:
        return Recorder(listeners, explain)
    from os import urandom

    from skillshelf.journal.file import Journal

    journal = Journal(recording.journal, session=urandom(8).hex(), fsync=recording.fsync)
    store = recording.journal + ".d" if recording.keep else None
    return Recorder(listeners, explain, journal=journal, store=store)


class Recorder:
    """Makes the events of one session, in their order."""

    def __init__(
        self,
        listeners: Sequence[OnEvent],
        explain: Explain,
        *,
        journal: "Journal | None" = None,
        store: str | None = None,
    ) -> None:
        self._explain = explain
        self._listeners = listeners
        self._journal = journal
        self._store = store
        self._mode: Mode = "manual"
        self._calls = 0
        self._events = 0
        self._catalog: Catalog | None = None
        self._temporary: str | None = None
        self._forget: Callable[[], object] = lambda: None
        self.on = bool(listeners) or journal is not None
        self.closed = False
        self.problem: str | None = None

    def tell(self, event: "Event") -> None:
        """Hand an event to everybody who listens."""
        from skillshelf.journal.events import payload_of, type_of

        self._events += 1
        if self._journal is not None:
            self._journal.append(type_of(event), payload_of(event))
        for listener in self._listeners:
            listener(event)

    def lost(self) -> str | None:
        """What could not be kept of this session, in words; None if nothing was lost."""
        journal, told = self._journal, []
        if journal is not None and journal.lost:
            events = "1 event is" if journal.lost == 1 else f"{journal.lost} events are"
            told.append(f"{events} not in the journal: {journal.problem}")
        elif journal is not None and journal.problem:
            told.append(journal.problem)
        return "; ".join([*told, *([self.problem] if self.problem else [])]) or None

    def notice(self) -> str | None:
        """What is worth knowing of the journal although nothing was lost; None if there is nothing."""
        return self._journal.notice if self._journal is not None else None

    # A session --------------------------------------------------------------------------------------

    def started(self, catalog: Catalog, policy: Policy, **members: Any) -> None:
        """The session begins."""
        if not self.on:
            return
        from skillshelf.journal.events import PolicyWidened, SessionStarted

        roots = [root.path for root in catalog.roots]
        self.tell(SessionStarted(roots=roots, policy=policy_to_dict(policy), version=__version__, **members))
        if policy.name == "full-auto":
            self.tell(PolicyWidened("full-auto", "what would be confirmed by somebody is allowed without asking"))

    def catalog_seen(self, catalog: Catalog, text: Callable[[], str]) -> None:
        """The catalog as it is now; an event only if it is another one than before."""
        if not self.on or catalog == self._catalog:
            return
        from skillshelf.journal.events import SkillCatalogUpdated, SkillWarning

        self._catalog = catalog
        told = text().encode()
        roots = [root._asdict() for root in catalog.roots]
        collisions = [
            {"name": loser.name, "path": loser.path, "by": loser.by}
            for loser in catalog.shadowed
            if not loser.same_file
        ]
        self.tell(SkillCatalogUpdated(len(catalog.skills), roots, digest_of(told), collisions))
        self._keep(told)
        told_of = [*catalog.errors, *catalog.warnings]
        for found in told_of[:WARNINGS_TOLD]:
            self.tell(SkillWarning(found.rule, found.message, _name_at(catalog, found.path), found.path))
        if len(told_of) > WARNINGS_TOLD:
            rest = f"{len(told_of) - WARNINGS_TOLD} more are not told; skillshelf list --all has them"
            self.tell(SkillWarning("more-warnings", rest))

    def ended(self) -> None:
        """The session ends; after this nothing is recorded and nothing more can be done in it."""
        if self.on and not self.closed:
            from skillshelf.journal.events import SessionEnded

            self.tell(SessionEnded(self._events + 1))
        if self._journal is not None and not self.closed:
            self._journal.close()
        self._forget()
        self.closed = True

    # A call -----------------------------------------------------------------------------------------

    @contextmanager
    def act(
        self, name: str, args: Any, *, mode: "Mode", command: str | None = None, timeout_ms: int | None = None
    ) -> Iterator[Act]:
        """Everything in the `with` block is one call: it starts, and it ends or fails, whatever happens in it."""
        self._calls += 1
        self._mode = mode
        act = Act(f"t{self._calls}", mode)
        if not self.on:
            yield act
            return
        from skillshelf.journal.events import ToolEnded, ToolFailed, ToolStarted, plain

        self.tell(ToolStarted(act.tool_id, name, plain(args), mode, timeout_ms, command))
        try:
            yield act
        except SkillError as error:
            told = self._explain(error)
            self.tell(ToolFailed(act.tool_id, told.code, told.message))
            raise
        except BaseException as error:
            self.tell(ToolFailed(act.tool_id, "failed", type(error).__name__))
            raise
        failed = act.result.error if act.result is not None else None
        if failed is not None and not act.ended:
            self.tell(ToolFailed(act.tool_id, failed.code, failed.message))
        else:
            self.tell(ToolEnded(act.tool_id, **{"exit_code": 0, **act.ended}))

    def decided(
        self,
        tool: str,
        skill: CatalogSkill | None,
        decision: Decision,
        by: "By",
        *,
        script: str | None = None,
        digest: str | None = None,
        folder_digest: str | None = None,
    ) -> None:
        """The policy, or somebody who was asked, decided."""
        if not self.on:
            return
        from skillshelf.journal.events import PermissionDecided

        verdict: Literal["allow", "deny"] = "allow" if decision.verdict == "allow" else "deny"
        name, path = (skill.name, skill.path) if skill else (None, None)
        self.tell(PermissionDecided(tool, name, path, verdict, decision.rule, by, script, digest, folder_digest))

    def loaded(self, loaded: LoadedSkill, warnings: Sequence[Diagnostic]) -> None:
        """A skill was read for the model."""
        if not self.on:
            return
        from skillshelf.journal.events import SkillLoaded

        skill = loaded.skill
        told = [warning.to_dict() for warning in warnings]
        self.tell(SkillLoaded(skill.name, skill.path, skill.dir, loaded.digest, dict(loaded.frontmatter), told))
        self._keep(loaded.data)

    def read(self, skill: CatalogSkill, resource: Resource, ref: str) -> None:
        """A file of a skill was read for the model."""
        if not self.on:
            return
        from base64 import b64decode

        from skillshelf.journal.events import SkillRead

        self.tell(SkillRead(skill.name, resource.path, resource.uri, resource.digest, resource.size, ref))
        self._keep(resource.content.encode() if resource.encoding == "utf-8" else b64decode(resource.content))

    def invoked(
        self, skill: CatalogSkill, args: str, *, ref: str | None, repeat: bool, tools: Sequence[str] | None
    ) -> None:
        """A skill was put to use."""
        if not self.on:
            return
        from skillshelf.journal.events import SkillInvoked

        effective = list(tools) if tools is not None else None
        self.tell(SkillInvoked(skill.name, skill.path, self._mode, args or None, ref, repeat, effective))

    def artifacts_folder(self) -> str:
        """Where a script's whole output goes: beside the journal, or else to a place that goes with the session."""
        if self._journal is not None:
            return f"{self._journal.path}.d/artifacts"
        if self._temporary is None:
            from weakref import finalize

            from skillshelf.core.atomic_write import make_private_folder, remove_tree

            self._temporary = make_private_folder("skillshelf-output-")
            # Whoever forgets to close a session leaves nothing behind all the same.
            self._forget = finalize(self, remove_tree, self._temporary)
        return self._temporary

    # Everything else --------------------------------------------------------------------------------

    def note(self, type_name: str, **members: Any) -> None:
        """An event that needs nothing but its members."""
        if self.on:
            from skillshelf.journal.events import EVENTS

            self.tell(EVENTS[type_name](**members))

    def by_person(self) -> None:
        """What follows is done by a person and not by a model."""
        self._mode = "manual"

    def _keep(self, data: bytes) -> None:
        """Put a content into the folder beside the journal, under its digest."""
        if self._store is None:
            return
        from skillshelf.core.atomic_write import keep_content

        try:
            keep_content(self._store, data)
        except OSError as error:
            self.problem = f"a content is not kept in {self._store}: {error.strerror}"


def _name_at(catalog: Catalog, path: str) -> str | None:
    """The name of the skill at a path, if it has one in this catalog."""
    known = {skill.path: skill.name for skill in catalog.skills} | {lost.path: lost.name for lost in catalog.shadowed}
    return known.get(path)
