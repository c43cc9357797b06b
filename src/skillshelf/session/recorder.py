"""Turn the acts of a session into events for the journal, a host's callback and a folder of contents.

Without a listener no event is made, and the event types are not even imported.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os.path import abspath
from typing import TYPE_CHECKING, Any, Literal

from skillshelf import __version__
from skillshelf.catalog.load import LoadedSkill, Resource, digest_of
from skillshelf.config.settings import Settings
from skillshelf.core.digests import sha256
from skillshelf.core.limits import JOURNAL_ARGUMENT_BYTES, JOURNAL_LISTED_SKILLS, WARNINGS_TOLD
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.session.effects import Effects, ShelfProtocol
from skillshelf.session.policy import Decision, Policy, policy_to_dict
from skillshelf.session.results import failure
from skillshelf.session.tools import ToolError, ToolResult

if TYPE_CHECKING:
    from skillshelf.journal.events import By, Event, Mode
    from skillshelf.journal.file import Journal, NewEvent, Once
    from skillshelf.journal.otlp import EventExporter, SessionExport
    from skillshelf.journal.parts import Rotation

__all__ = ["OnEvent", "Recorder", "RecordingOptions", "RunningCall", "open_recorder", "recording_options"]

OnEvent = Callable[["Event"], object]
Explain = Callable[[SkillError], ToolError]
"""Return an error as a model gets it: an act that raises it is recorded like one that returns it."""


class RecordingOptions(NamedTuple):
    """The destination of a session's events: a file, a callback or both; `keep` stores the inputs by the file.

    `client`, `subject` and `per_request` are members of `session_started`: whom a server serves, and whether the
    session is a single request.
    """

    journal: str | None = None
    keep: bool = False
    fsync: Literal["never", "end", "always"] = "never"
    on_event: OnEvent | None = None
    client: str | None = None
    subject: str | None = None
    per_request: bool = False
    rotation: "Rotation | None" = None
    exporter: "EventExporter | None" = None
    as_recorded: Callable[[str], str] | None = None
    """Replay in another folder: return a text with its paths as they were recorded, before its digest is taken."""


def recording_options(values: Mapping[str, Any], *, owned: bool = False) -> dict[str, Any]:
    """Return the options of `Shelf.session` that a command line names; its session closes an `owned` exporter."""
    for option, needed in (("rotate", "journal"), ("otlp_content", "otlp")):
        if values[option] and not values[needed]:
            raise ConfigurationError(f"--{option.replace('_', '-')} needs --{needed}")
    found = {"journal": abspath(values["journal"]) if values["journal"] else None, "keep": values["keep"]}
    exporter = None
    if values["otlp"]:
        from skillshelf.journal.otlp import EventExporter

        exporter = EventExporter(values["otlp"], content=values["otlp_content"], owned=owned)
    return {**found, "rotate": values["rotate"], "otlp": exporter}


class RunningCall:
    """One call while it runs: its result and text, and the members of `tool_ended` if it ran a script."""

    def __init__(self, tool_id: str) -> None:
        self.tool_id = tool_id
        self.result: ToolResult | None = None
        self.ended: dict[str, Any] = {}
        self.text: Callable[[], str] | None = None
        """The text that a model gets, if it is not that of the result; only called if it is recorded."""


def open_recorder(recording: RecordingOptions, explain: Explain, settings: Settings) -> "Recorder":
    """Return a recorder for a destination; the settings may say when its journal is rotated."""
    listeners = [recording.on_event] if recording.on_event else []
    exporter, as_recorded = recording.exporter, recording.as_recorded
    if recording.journal is None and exporter is None:
        return Recorder(listeners, explain, as_recorded=as_recorded)
    from os import urandom

    session = urandom(8).hex()
    export = exporter.listener(session) if exporter else None
    if recording.journal is None:
        return Recorder(listeners, explain, export=export, as_recorded=as_recorded)
    from skillshelf.journal.file import Journal

    rotation = recording.rotation or _configured_rotation(settings)
    journal = Journal(recording.journal, session=session, fsync=recording.fsync, rotation=rotation)
    store = recording.journal + ".d" if recording.keep else None
    return Recorder(
        listeners,
        explain,
        journal=journal,
        export=export,
        store=store,
        as_recorded=as_recorded,
        is_request=recording.per_request,
    )


_LISTING = "recorded list of the catalog"

_HELD = frozenset({"session_started", "skill_catalog_updated", "skill_warning", "tool_started", "tool_ended"})
"""Events of a session of one request that are written with the next one: nothing happens between the two.

The start of a call comes before a decision, and its end before that of the session, after which it is answered. So
such a session locks and writes its journal twice, and what a call is about to do is written before it is done.
"""


class Recorder:
    """Make the events of one session, in their order."""

    def __init__(
        self,
        listeners: Sequence[OnEvent],
        explain: Explain,
        *,
        journal: "Journal | None" = None,
        export: "SessionExport | None" = None,
        store: str | None = None,
        as_recorded: Callable[[str], str] | None = None,
        is_request: bool = False,
    ) -> None:
        self._is_request = is_request
        self._held: list[NewEvent] = []
        self._explain = explain
        self._listeners = listeners
        self._journal = journal
        self._export = export
        self._store = store
        self._as_recorded = as_recorded or (lambda text: text)
        self._inputs: list[dict[str, Any]] | None = None
        self._prompt: tuple[str, str] | None = None
        self.mode: Mode = "manual"
        self._calls = 0
        self._events = 0
        self._catalog: Catalog | None = None
        self._temporary: str | None = None
        self._remove_temporary: Callable[[], object] = lambda: None
        self.on = bool(listeners) or journal is not None or export is not None
        self.closed = False
        self.problem: str | None = None

    def emit(self, event: "Event") -> None:
        """Append an event to the journal and pass it to every listener."""
        from skillshelf.journal.events import SkillCatalogUpdated, payload_of, type_of

        self._events += 1
        if self._journal is not None or self._export is not None:
            name, payload = type_of(event), payload_of(event)
            if self._journal is not None:
                self._write(self._journal, name, payload)
            if self._export is not None:
                self._export.take(name, payload)
        for listener in self._listeners:
            # The list of a long catalog is for counting later; whoever listens has the shelf.
            listener(event._replace(listed=[]) if isinstance(event, SkillCatalogUpdated) else event)

    def _write(self, journal: "Journal", name: str, payload: dict[str, Any]) -> None:
        """Append an event to the journal, with those that were held back for it; or hold it back too."""
        from skillshelf.journal.file import NewEvent

        at = journal.now_ms if self._is_request else None
        self._held.append(NewEvent(name, payload, at, _written_once(payload), is_plain=True))
        if not (self._is_request and name in _HELD):
            self._write_held(journal)

    def _write_held(self, journal: "Journal") -> None:
        held, self._held = self._held, []
        if held:
            journal.append_all(held)

    def loss(self) -> str | None:
        """Return a sentence about what could not be recorded; None if nothing was lost."""
        journal, sentences = self._journal, []
        if journal is not None and journal.lost:
            events = "1 event is" if journal.lost == 1 else f"{journal.lost} events are"
            sentences.append(f"{events} not in the journal: {journal.problem}")
        elif journal is not None and journal.problem:
            sentences.append(journal.problem)
        return "; ".join([*sentences, *([self.problem] if self.problem else [])]) or None

    def notice(self) -> str | None:
        """Return a sentence about the journal or the export although nothing was lost, or None."""
        notices = [self._journal.notice if self._journal else None, self._export.problem if self._export else None]
        return "; ".join(filter(None, notices)) or None

    # A session --------------------------------------------------------------------------------------

    def started(self, catalog: Catalog, policy: Policy, **members: Any) -> None:
        """Record the start of the session."""
        if not self.on:
            return
        from skillshelf.journal.events import PolicyWidened, SessionStarted

        roots = [root.path for root in catalog.roots]
        self.emit(SessionStarted(roots=roots, policy=policy_to_dict(policy), version=__version__, **members))
        if policy.name == "full-auto":
            self.emit(PolicyWidened("full-auto", "what would need confirmation is allowed without asking"))

    def catalog_updated(self, shelf: ShelfProtocol, catalog: Catalog, text: Callable[[], str]) -> None:
        """Record a catalog of the shelf if it is not the one that was last recorded, and keep it."""
        if not self.on or catalog == self._catalog:
            return
        from skillshelf.journal.events import MORE_WARNINGS, SkillCatalogUpdated, SkillWarning

        self._catalog = catalog
        prompt = self._as_recorded(text()).encode()
        roots = [root._asdict() for root in catalog.roots]
        collisions = [
            {"name": loser.name, "path": loser.path, "by": loser.by}
            for loser in catalog.shadowed
            if not loser.same_file
        ]
        inputs = self._keep_shelf(shelf, catalog)
        is_kept = self._journal is not None or self._export is not None
        listing, listed = _listing(shelf, catalog) if is_kept else (None, [])
        self.emit(
            SkillCatalogUpdated(len(catalog.skills), roots, digest_of(prompt), collisions, inputs, listing, listed)
        )
        found = [*catalog.errors, *catalog.warnings]
        names = {skill.path: skill.name for skill in catalog.skills} if found else {}
        names |= {loser.path: loser.name for loser in catalog.shadowed}
        for diagnostic in found[:WARNINGS_TOLD]:
            self.emit(SkillWarning(diagnostic.rule, diagnostic.message, names.get(diagnostic.path), diagnostic.path))
        if len(found) > WARNINGS_TOLD:
            rest = f"{len(found) - WARNINGS_TOLD} more are not listed; run `skillshelf list --all` to see them"
            self.emit(SkillWarning(MORE_WARNINGS, rest))

    def ended(self) -> None:
        """Record the end of the session and close the journal; nothing is recorded after this."""
        if self.on and not self.closed:
            from skillshelf.journal.events import SessionEnded

            self.emit(SessionEnded(self._events + 1))
        if self._journal is not None and not self.closed:
            self._write_held(self._journal)
            self._journal.close()
        if self._export is not None and not self.closed:
            self._export.close()
        self._remove_temporary()
        self.closed = True

    # A call -----------------------------------------------------------------------------------------

    @property
    def last_tool_id(self) -> str:
        """The `tool_id` of the last call."""
        return f"t{self._calls}"

    @contextmanager
    def act(
        self, name: str, args: Any, *, mode: "Mode", command: str | None = None, host: bool = False
    ) -> Iterator[RunningCall]:
        """Record the `with` block as one call that starts, and ends or fails."""
        self._calls += 1
        self.mode = mode
        act = RunningCall(f"t{self._calls}")
        if not self.on:
            yield act
            return
        from skillshelf.journal.events import ToolEnded, ToolFailed, ToolStarted, plain

        self.emit(ToolStarted(act.tool_id, name, plain(args), mode, command=command, host=host))
        self._inputs = []
        try:
            yield act
        except SkillError as error:
            explained = self._explain(error)
            text = failure(explained.code, explained.message, explained.candidates).text
            self.emit(ToolFailed(act.tool_id, explained.code, explained.message, **self._end_members(text)))
            raise
        except BaseException as error:
            self.emit(ToolFailed(act.tool_id, "failed", type(error).__name__, **self._end_members(None)))
            raise
        failed = act.result.error if act.result is not None else None
        if act.result is not None and failed is not None and not act.ended:
            self.emit(ToolFailed(act.tool_id, failed.code, failed.message, **self._end_members(act.result.text)))
        else:
            result_text = act.result.text if act.result is not None else None
            members = self._end_members(act.text() if act.text is not None else result_text)
            self.emit(ToolEnded(act.tool_id, **{"exit_code": 0, **act.ended, **members}))

    def _end_members(self, text: str | None) -> dict[str, Any]:
        """Return the members of the end of a call: its text, and its inputs if they are kept."""
        effects, self._inputs = self._inputs, None
        inputs = {"inputs": self._keep_call(effects)} if effects else {}
        if text is None:
            return inputs
        data = self._as_recorded(text).encode("utf-8", "replace")
        return {"text_digest": digest_of(data), "text_bytes": len(data), **inputs}

    def prompt_composed(self, text: str, entries: int, omitted: int, base_digest: str, *, read_tool: bool) -> None:
        """Record our part of a system prompt, unless the last one that was recorded is equal."""
        if not self.on or self.closed:
            return
        from skillshelf.journal.events import PromptComposed

        data = self._as_recorded(text).encode("utf-8", "replace")
        if (composed := (digest_of(data), base_digest)) == self._prompt:
            return
        self._prompt = composed
        self.emit(PromptComposed(composed[0], len(data), entries, omitted, base_digest, read_tool))

    def tool_decided(self, tool: str, arguments: Any, decision: Decision) -> None:
        """Record a decision about a tool of the host; of long arguments only the digest."""
        if not self.on or self.closed:
            return
        from json import dumps

        from skillshelf.journal.events import ToolDecided, plain

        args = plain(arguments) or None
        data = dumps(args, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        digest = digest_of(data) if len(data) > JOURNAL_ARGUMENT_BYTES else None
        self.emit(ToolDecided(plain(tool), *decision, args=None if digest else args, args_digest=digest))

    def decided(
        self,
        tool: str,
        skill: CatalogSkill | None,
        decision: Decision,
        by: "By",
        *,
        script: str | None = None,
        digest: str | None = None,
        tree: str | None = None,
    ) -> None:
        """Record a decision of the policy or of the user."""
        if not self.on:
            return
        from skillshelf.journal.events import PermissionDecided

        verdict: Literal["allow", "deny"] = "allow" if decision.verdict == "allow" else "deny"
        name, path = (skill.name, skill.path) if skill else (None, None)
        self.emit(PermissionDecided(tool, name, path, verdict, decision.rule, by, script, digest, tree=tree))

    def loaded(self, loaded: LoadedSkill, warnings: Sequence[Diagnostic]) -> None:
        """Record that a skill was loaded."""
        if not self.on:
            return
        from skillshelf.journal.events import SkillLoaded

        skill = loaded.skill
        found = [warning.to_dict() for warning in warnings]
        fields = dict(loaded.frontmatter)
        self.emit(SkillLoaded(skill.name, skill.path, skill.dir, loaded.digest, fields, found, loaded.tree))

    def read(self, skill: CatalogSkill, resource: Resource, ref: str) -> None:
        """Record that a file of a skill was read."""
        if not self.on:
            return
        from skillshelf.journal.events import SkillRead

        self.emit(SkillRead(skill.name, resource.path, resource.uri, resource.digest, resource.size, ref))

    def invoked(
        self, skill: CatalogSkill, args: str, *, ref: str | None, repeat: bool, tools: Sequence[str] | None
    ) -> None:
        """Record that a skill was used."""
        if not self.on:
            return
        from skillshelf.journal.events import SkillInvoked

        effective = list(tools) if tools is not None else None
        self.emit(SkillInvoked(skill.name, skill.path, self.mode, args or None, ref, repeat, effective))

    def artifacts_folder(self) -> str:
        """Return the folder for whole outputs of scripts: by the journal, or one that is removed with the session."""
        if self._journal is not None:
            return f"{self._journal.path}.d/artifacts"
        if self._temporary is None:
            from weakref import finalize

            from skillshelf.core.disk_writes import make_owned_folder, remove_owned_folder, sweep_owned_folders

            sweep_owned_folders("skillshelf-output-", seconds=5)
            folder = make_owned_folder("skillshelf-output-")
            self._temporary = folder.path
            # The folder is removed even if the session is never closed.
            self._remove_temporary = finalize(self, remove_owned_folder, folder)
        return self._temporary

    # Other events -----------------------------------------------------------------------------------

    def record(self, type_name: str, **members: Any) -> None:
        """Record an event from its type and members."""
        if self.on:
            from skillshelf.journal.events import EVENTS

            self.emit(EVENTS[type_name](**members))

    # Kept inputs ------------------------------------------------------------------------------------

    def taped(self, effects: Effects) -> Effects:
        """Return the effects, with their results kept if this session keeps its inputs."""
        if self._store is None:
            return effects
        from skillshelf.session.inputs import taped

        return taped(effects, self._keep, self._tape)

    def _tape(self, entry: dict[str, Any]) -> None:
        """Take a result of an effect; those outside a call are no input of an event."""
        if self._inputs is not None:
            self._inputs.append(entry)

    def _keep_call(self, effects: Sequence[dict[str, Any]]) -> str | None:
        """Keep the inputs of a call and return the digest of their document."""
        from skillshelf.session.inputs import KEPT_VERSION, CallInputs, as_document

        return self._keep(as_document(CallInputs(KEPT_VERSION, tuple(effects))))

    def _keep_shelf(self, shelf: ShelfProtocol, catalog: Catalog) -> str | None:
        """Keep the catalog and the configuration, and return the digest of their document."""
        if self._store is None:
            return None
        from skillshelf.session.inputs import as_document, shelf_inputs

        return self._keep(as_document(shelf_inputs(shelf, catalog)))

    def _keep(self, data: bytes) -> str | None:
        """Store a content in the folder by the journal and return its digest, or None if that failed."""
        if self._store is None:
            return None
        from skillshelf.core.disk_writes import keep_content

        try:
            keep_content(self._store, data)
        except OSError as error:
            self.problem = f"a content is not kept in {self._store}: {error.strerror}"
            return None
        return digest_of(data)


def _configured_rotation(settings: Settings) -> "Rotation | None":
    """Return when the configuration rotates a journal; None for never."""
    if settings.journal_max_bytes is None and settings.journal_max_age_days is None:
        return None
    from skillshelf.journal.parts import Rotation, rotation_of

    found = Rotation(settings.journal_max_bytes, settings.journal_max_age_days, settings.journal_keep)
    return rotation_of(found._asdict())


def _written_once(payload: dict[str, Any]) -> "Once | None":
    """Return the list of a catalog as a member that is written once into a file."""
    listing = payload.get("listing")
    if not isinstance(listing, str):
        return None
    from skillshelf.journal.file import Once

    return Once("listed", listing)


def _listing(shelf: ShelfProtocol, catalog: Catalog) -> tuple[str | None, list[Any]]:
    """Return the list of a catalog and its digest, made once for all sessions of the shelf."""
    from skillshelf.journal.events import PlainList, plain

    kept = shelf.attachments.get(_LISTING)
    if not isinstance(kept, tuple) or kept[0] is not catalog:
        listed = _listed(catalog)
        digest = digest_of(repr(listed).encode("utf-8", "replace")) if listed else None
        kept = shelf.attachments[_LISTING] = catalog, digest, PlainList(plain(listed))
    return kept[1], kept[2]


def _listed(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the enabled skills of a catalog by folder, as short as a journal needs them."""
    folders: dict[str, list[list[str]]] = {}
    for number, skill in enumerate(catalog.skills):
        if number >= JOURNAL_LISTED_SKILLS:
            break
        if not skill.enabled:
            continue
        folder, file = skill.path.removesuffix(f"/{skill.name}/SKILL.md"), ""
        if folder == skill.path:
            folder, _, file = skill.path.rpartition("/")
        mark = sha256(skill.description.encode("utf-8", "replace")).hexdigest()[:8]
        folders.setdefault(folder, []).append([skill.name, mark, *([file] if file else [])])
    return [{"folder": folder, "skills": skills} for folder, skills in folders.items()]
