"""Session: the public API of one conversation on a shelf."""

import os
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.build import COLLISION_KEYS
from skillshelf.catalog.build_context import ban_on
from skillshelf.catalog.load import SKILL_FILE, LoadedSkill, digest_of, parse_address, resource_of
from skillshelf.catalog.prompt import LISTED_IN_TOOL, SYSTEM_RULES, CatalogText
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.profile import Profile
from skillshelf.config.system_policy import is_banned, is_outdated, trust_refusal
from skillshelf.core import files
from skillshelf.core.limits import RESOURCE_BYTES, SOURCE_REST_SECONDS
from skillshelf.core.text import is_true_variable
from skillshelf.core.values import CatalogSkill, Diagnostic
from skillshelf.errors import FileReadError, PermissionDenied, SkillError
from skillshelf.session.conversation import Conversation, Proposal, ShelfProtocol, is_for_users
from skillshelf.session.effects import Effects
from skillshelf.session.entries import ENTRIES, EntryName
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import Decision, Policy, can_run, make_policy
from skillshelf.session.recorder import RecordingOptions, RunningCall
from skillshelf.session.render import agents_md_files, held_back_warning, joined_agents_md, render_preloaded
from skillshelf.session.results import ShownSkill, clean, failure, in_envelope, recorded_text
from skillshelf.session.sent_texts import ConversationMark, Memory, SentTexts
from skillshelf.session.system_rules import as_record, require_required, require_served, require_usable, still_required
from skillshelf.session.threads import AnyConfirm, SessionLock, in_thread, synchronous
from skillshelf.session.tool_calls import (
    CALLS,
    Mentions,
    check_snapshot,
    differences,
    found_skills,
    is_load,
    mentioned_names,
    resolve_mentions,
    resource_text,
    search_skills,
    take_snapshot,
)
from skillshelf.session.tools import Tool, ToolError, ToolResult, check_arguments, tools_of

if TYPE_CHECKING:
    from skillshelf.catalog.load import Resource
    from skillshelf.journal.events import Event
    from skillshelf.sandbox.run import OnOutput, Run
    from skillshelf.search.query import SearchReport

__all__ = ["Session"]

COMMAND = "/skill:"


def _setting_warnings(shelf: ShelfProtocol) -> list[Diagnostic]:
    """Return a warning if the environment variable for the budget holds no number that can be used."""
    variable = shelf.profile.budget_env
    given = shelf.environment.env.get(variable, "").strip() if variable else ""
    used = shelf.settings_in_force.max_chars
    if not variable or not given or (given.isascii() and given.isdecimal() and int(given[:18]) == used):
        return []
    message = f"{variable}={given[:40]!r} is no whole number of at least 1; the budget is {used} characters"
    return [Diagnostic(variable, "setting", message, None)]


class Session:
    """One conversation on a shelf. Safe to use from several threads and tasks; one call runs at a time.

    Its events go to `recording`; close it, or use it in a `with` statement, to complete the journal. `effects` does
    the work outside the session, and only replay replaces it.
    """

    def __init__(
        self,
        shelf: ShelfProtocol,
        *,
        policy: Policy | Mapping[str, Any] | str | None = None,
        confirm: AnyConfirm | None = None,
        preload: Iterable[str] = (),
        recording: RecordingOptions = RecordingOptions(),  # noqa: B008 - a value that never changes.
        effects: Effects | None = None,
        restored: bool = False,
        memory: Memory = "session",
        person: bool = False,
    ) -> None:
        if effects is None:
            shelf.renew_policy()
            if not person:
                require_served(shelf)
        self.shelf = shelf
        self._system = shelf.settings.system
        self.changes: tuple[str, ...] = ()
        self._recording = recording
        self._effects = effects
        self._lock = SessionLock()
        names = shelf.profile.rule_names
        rules = make_policy(policy, shelf.settings, environment=shelf.environment, names=names)
        self._conversation = Conversation(shelf, rules, synchronous(confirm), recording, effects, memory)
        self._conversation.warnings += _setting_warnings(shelf)
        preloaded = list(preload)
        with self._conversation.one_catalog(), ExitStack() as on_error:
            self._conversation.recorder.started(
                self._conversation.catalog,
                rules,
                profile=shelf.profile.name,
                cwd=shelf.environment.cwd,
                trust=shelf.trust,
                preload=preloaded,
                restored=restored,
                memory=memory,
                tools=_added_tools(shelf),
                client=recording.client,
                subject=recording.subject,
                per_request=recording.per_request,
                system=as_record(self._system) if self._system.files else [],
            )
            self._conversation.record_catalog()
            on_error.callback(self.close)
            if effects is None and not person:
                # The rules of this session may hide more than those of the shelf.
                require_required(self._conversation.skills, self._system)
            for name in preloaded:
                self._conversation.preload(name)
            on_error.pop_all()

    @property
    def is_outdated(self) -> bool:
        """True if the system policy changed since the session began: it gives nothing more to a model then."""
        if self._effects is not None:
            return False
        system = self.shelf.settings.system
        return system is not self._system or is_outdated(system, self.shelf.environment)

    def _serve(self) -> None:
        """Raise PermissionDenied if the system policy lets no model be served, or not by this session any more."""
        if self._effects is None:
            require_usable(self._system)
            if self.is_outdated:
                self.close()
                raise PermissionDenied("the system policy changed, which ended this session; open a new one")

    def close(self) -> None:
        """End the session and complete its journal."""
        with self._lock:
            self._conversation.recorder.ended()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def journal_problem(self) -> str | None:
        """A sentence about events that could not be recorded; None if all were."""
        return self._conversation.recorder.loss()

    @property
    def journal_notice(self) -> str | None:
        """A sentence about the journal although nothing was lost, for example a line that an earlier crash broke."""
        return self._conversation.recorder.notice()

    # What the model sees --------------------------------------------------------------------------

    @property
    def profile(self) -> Profile:
        """The profile of the shelf."""
        return self.shelf.profile

    @property
    def policy(self) -> Policy:
        """The policy, with the rules of the configuration in it."""
        return self._conversation.permissions.policy

    @property
    def skills(self) -> Sequence[CatalogSkill]:
        """The skills of the shelf, hidden ones included."""
        return self._conversation.skills

    @property
    def warnings(self) -> list[Diagnostic]:
        """Diagnostics about the skills that the model loaded."""
        return self._conversation.warnings

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """Changes that loaded skills propose to the host and the policy does not deny; only the host can apply them."""
        return self._conversation.proposals

    def catalog_text(self) -> CatalogText:
        """Return the catalog text of the profile, with the extra fields that the policy allows."""
        self._serve()
        return self._conversation.catalog_text()

    def record_catalog(self) -> None:
        """Record the catalog if it changed since it was last recorded."""
        with self._lock:
            self._conversation.record_catalog()

    def system_prompt(self, base: str = "", agents_context: str = "", tools: Sequence[str] | None = None) -> str:
        """Return the base text, the agents context, then the skills.

        `tools` are the names of the host's tools; None means that `read` is one of them.
        """
        given = _joined(base, agents_context)
        with self._lock:
            self._serve()
            self._refresh_on_call()
            ours = self.compose_prompt(digest_of(given.encode("utf-8", "replace")), tools is None or "read" in tools)
        return _joined(given, ours)

    def agents_context(self) -> str:
        """Return the AGENTS.md files that count here as one text, for `system_prompt`; empty if the profile has none.

        Those of a project that is not trusted are left out, and named in `warnings`.
        """
        if self.profile.context_files != "agents-md":
            return ""
        shelf, place = self._conversation.shelf, self._conversation.shelf.environment
        sent, held = agents_md_files(place.cwd, shelf.trust, shelf.settings.trusted_folders, place.home)
        if self._system.files:
            closed = [file for file in sent if trust_refusal(self._system, files.real_path(os.path.dirname(file.path)))]
            sent, held = [file for file in sent if file not in closed], [*held, *closed]
        with self._lock:
            self._conversation.warn(held_back_warning(file) for file in held)
        return joined_agents_md(sent)

    def compose_prompt(self, base_digest: str, read_tool: bool = True) -> str:
        """Return our part of the system prompt and record it; `base_digest` stands for what the host gave."""
        self._serve()
        with self._conversation.one_catalog():
            return self._compose_prompt(base_digest, read_tool=read_tool)

    def _compose_prompt(self, base_digest: str, *, read_tool: bool) -> str:
        parts = []
        recorder = self._conversation.recorder
        if not recorder.closed:
            self._conversation.record_catalog()
        preloaded = self._conversation.preloaded
        lists_skills = not preloaded and read_tool
        catalog = CatalogText("", 0, 0, truncated=False)
        if self.profile.catalog_condition == "always" or lists_skills:
            catalog = self.catalog_text()
        if catalog.text and self.profile.catalog_place != "prompt":
            parts += [SYSTEM_RULES.get(self.profile.catalog_form, ""), LISTED_IN_TOOL]
            catalog = CatalogText("", 0, 0, truncated=False)
        elif catalog.text:
            parts += [SYSTEM_RULES.get(self.profile.catalog_form, ""), catalog.text]
        if preloaded:
            parts.append(render_preloaded(preloaded).text)
        text = _joined(*parts)
        recorder.prompt_composed(text, catalog.entries, catalog.omitted, base_digest, read_tool=read_tool)
        return text

    def tools(self) -> list[Tool]:
        """Return the tools of the profile that the policy can allow; none if there is no skill."""
        with self._lock:
            self._serve()
            self._refresh_on_call()
        runs = can_run(self.policy, can_ask=self._conversation.permissions.may_confirm("skill_run", self.skills))
        return tools_of(
            self.profile,
            self.skills,
            prompt=self.catalog_text().text,
            requested=self._conversation.permissions.requested,
            without=() if runs else ("skill_run",),
        )

    def commands(self) -> list[str]:
        """Return one slash command for each skill that a user may invoke."""
        if self.profile.commands == "none" or not self.shelf.settings.commands:
            return []
        offered = [skill for skill in self.skills if skill.enabled and not is_banned(skill.hidden_by)]
        return [COMMAND + skill.name for skill in offered if is_for_users(skill)]

    # Tool calls -----------------------------------------------------------------------------------

    def call(self, tool: str, arguments: Any = None, *, visible: Container[str] = ()) -> ToolResult:
        """Call a tool of the profile. A mistake of the model is an error in the result, never an exception.

        `visible` are the digests of the tool results that the model still sees; they count if the session was opened
        with `memory="messages"`.
        """
        tool = clean(tool)
        given = {key: clean(value) for key, value in arguments.items()} if isinstance(arguments, Mapping) else {}
        recorded = given if arguments is None or isinstance(arguments, Mapping) else arguments
        started = time.perf_counter()
        cause: SkillError | None = None
        with self._lock, self._conversation.one_catalog():
            if self._conversation.recorder.closed:
                return failure("failed", "this session was closed")
            try:
                self._serve()
            except PermissionDenied as error:
                return self._failure(error)
            self._conversation.record_catalog()
            self._conversation.visible = visible
            with self._conversation.recorder.act(tool, recorded, mode="auto") as act:
                try:
                    if arguments is None or isinstance(arguments, Mapping):
                        act.result = self._call(tool, given, act)
                    else:
                        act.result = failure("invalid_params", "the arguments of a tool are an object")
                except SkillError as error:
                    cause = error
                    act.result = self._failure(error)
                took = round((time.perf_counter() - started) * 1000)
                result = self._in_envelope(given, act.result, took, cause)
                if result is not act.result:
                    act.text = partial(recorded_text, result)
            return result

    def _call(self, tool: str, given: dict[str, Any], act: RunningCall) -> ToolResult:
        if tool not in self.profile.tools:
            return failure("unknown_tool", f"unknown tool {tool!r} (known: {', '.join(self.profile.tools)})")
        if not self.shelf.settings.enabled:
            return failure("denied", "skills are disabled")
        self._refresh_on_call()
        if self._system.files and (missing := still_required(self.skills, self._system)):
            self._conversation.permissions.deny_from_above(NAMES_OF_TOOLS[tool], missing)
        wrong = check_arguments(tool, self.profile, given)
        if wrong is not None:
            return failure("invalid_params", wrong)
        return CALLS[tool](self._conversation, given, act)

    async def acall(self, tool: str, arguments: Any = None, *, visible: Container[str] = ()) -> ToolResult:
        """Call a tool as `call` does, in a thread; `confirm` may be a coroutine function.

        A call that is cancelled ends in its thread and its events are complete, but it leaves no trace in the
        conversation: what it loaded is not active, and is sent again.
        """

        def call() -> tuple[ToolResult, ConversationMark]:
            with self._lock:
                mark = self._conversation.mark()
                return self.call(tool, arguments, visible=visible), mark

        try:
            return (await in_thread(call, lock=self._lock, drop=lambda done: self._drop(done[1])))[0]
        except SkillError as error:
            return self._failure(error)

    def _drop(self, mark: ConversationMark) -> None:
        """Record that the model did not get the result of the last call, and take back what it brought."""
        with self._lock:
            if not self._conversation.recorder.closed:
                self._conversation.drop_since(mark)

    async def aload(
        self, name: str | None = None, *, path: str | None = None, arguments: str = "", for_model: bool = False
    ) -> ShownSkill:
        """Load a skill as `load` does, in a thread."""
        return await in_thread(
            lambda: self.load(name, path=path, arguments=arguments, for_model=for_model), lock=self._lock
        )

    async def asearch(self, query: str, *, limit: int | None = None, scope: str | None = None) -> "SearchReport":
        """Search as `search` does, in a thread."""
        return await in_thread(lambda: self.search(query, limit=limit, scope=scope), lock=self._lock)

    # Acts of a user -------------------------------------------------------------------------------

    def command(self, text: str) -> ToolResult | None:
        """Run `/skill:name args`; return None for text that is not a command of this profile."""
        if self.profile.commands == "none" or not self.shelf.settings.commands or not text.startswith(COMMAND):
            return None
        name, arguments = self._split_command(text[len(COMMAND) :])
        given = {"name": name, **({"args": arguments} if arguments else {})}
        with self._lock:
            try:
                self._serve()
            except PermissionDenied as error:
                return self._failure(error)
        with self._lock, self._act("command", given, command=text) as act:
            try:
                act.result = self._conversation.use_one("command", name, arguments=arguments).result
            except SkillError as error:
                act.result = self._failure(error)
            return act.result

    def _split_command(self, text: str) -> tuple[str, str]:
        """Return the name and the arguments; only the catalog tells where a name of several words ends."""
        names = [skill.name for skill in self.skills if " " in skill.name]
        key = COLLISION_KEYS[self.profile.collision_key]
        if begun := [name for name in names if key(text[: len(name)]) == key(name)]:
            end = len(max(begun, key=len))
            return text[:end].strip(), text[end:].strip()
        name, arguments = [*text.split(None, 1), "", ""][:2]
        return name, arguments

    def _act(
        self, entry: EntryName, given: Mapping[str, Any], *, tool: str = "", command: str | None = None
    ) -> AbstractContextManager[RunningCall]:
        steps = ENTRIES[entry]
        # A file that a host reads leaves the same events as one that a model reads.
        is_host = entry == "load_for_model" or (entry == "read_for_model" and self._loads(given))
        return self._conversation.act(steps.event_tool or tool, given, mode=steps.mode, command=command, host=is_host)

    def load(
        self, name: str | None = None, *, path: str | None = None, arguments: str = "", for_model: bool = False
    ) -> ShownSkill:
        """Load a skill for a person, exactly as a model would get it; a person is shown everything.

        The text does not enter the model's context: a later load by the model sends it whole. `for_model` is for a
        host that passes it on to a model: then the policy decides as it does in a call.
        """
        tool = next((tool for tool in self.profile.tools if NAMES_OF_TOOLS[tool] == "skill_load"), "skill_load")
        key = "skillName" if tool == "activate_skill" else "name"
        more = {"args": arguments} if arguments else {}
        given = {**({key: name} if path is None else {"path": path}), **more}
        entry: EntryName = "load_for_model" if for_model else "load"
        with self._lock:
            if for_model:
                self._serve()
            with self._act(entry, given, tool=tool) as act:
                used = self._conversation.use_one(entry, name, path, arguments)
                assert used.loaded is not None
                act.result = self._in_envelope({"name": used.skill.name, **more}, used.result, 0)
                if act.result is not used.result:
                    act.text = partial(recorded_text, act.result)
            return ShownSkill(used.loaded, act.result.text, used.warnings)

    def read(
        self, uri: str, *, path: str | None = None, limit: int = RESOURCE_BYTES, for_model: bool = False
    ) -> "Resource":
        """Read a file of a skill for a person, who is shown everything; `for_model` applies the policy.

        Where several skills have the name in the address, `path` selects one.
        """
        tool, key = ("read", "path") if "read" in self.profile.tools else ("skill_read", "uri")
        entry: EntryName = "read_for_model" if for_model else "read"
        if for_model:
            self._serve()
        with self._lock, self._act(entry, {key: uri, **self._selected(uri, path)}, tool=tool) as act:
            address = parse_address(uri)
            if is_load(address, self.profile):
                used = self._conversation.use_one(entry, address.name, path)
                assert used.loaded is not None
                act.result = used.result
                return resource_of(uri, used.skill.path, SKILL_FILE, used.loaded.data, self.profile)
            resource, ref = self._conversation.read_file(entry, uri, path=path, limit=limit)
            act.text = partial(resource_text, self._conversation, resource, ref)
            return resource

    def _loads(self, given: Mapping[str, Any]) -> bool:
        """Return True if a read with these parameters is how the profile loads a skill."""
        try:
            return is_load(parse_address(str(given.get("uri") or given.get("path"))), self.profile)
        except SkillError:
            return False

    def _selected(self, uri: str, path: str | None) -> dict[str, str]:
        """Return the parameter with the path of the skill, if the name in the address does not say which one."""
        if path is None:
            return {}
        try:
            name = parse_address(uri).name
        except SkillError:
            return {}
        return {} if [skill.path for skill in self.skills if skill.name == name] == [path] else {"skill_path": path}

    def search(self, query: str, *, limit: int | None = None, scope: str | None = None) -> "SearchReport":
        """Return the skills visible to the model that match a query; errors are raised."""
        self._serve()
        options = {"limit": limit, "scope": scope}
        given = {"query": query, **{key: value for key, value in options.items() if value is not None}}
        with self._lock, self._conversation.act("skill_search", given, mode="auto") as act:
            report = search_skills(self._conversation, act, query, limit, scope)
            act.result = found_skills(self._conversation, report)
            return report

    def run(
        self, name: str, script: str, args: Sequence[str] = (), *, on_output: "OnOutput | None" = None
    ) -> "tuple[Run, ToolResult]":
        """Run a script for a person; it still has to be confirmed unless a rule allows it."""
        self._serve()
        given = {"name": name, "script": script, **({"args": list(args)} if args else {})}
        with self._lock, self._conversation.act("skill_run", given, mode="manual") as act:
            run, act.result = self._conversation.run_script(name, script, args, act, by_user=True, on_output=on_output)
            return run, act.result

    def resolve_mentions(self, text: str) -> Mentions:
        """Use the skills that a user's text mentions as `$name`; a name that is not a skill is not a mention."""
        names = mentioned_names(text)
        if self.profile.mentions == "none" or not names:
            return Mentions(text, (), ())
        self._serve()
        with self._lock, self._conversation.one_catalog():
            return resolve_mentions(text, names, self._conversation)

    # Activation -----------------------------------------------------------------------------------

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the active skills, sorted."""
        with self._lock:
            return tuple(sorted({loaded.skill.name for loaded in self._conversation.active.values()}))

    def activate(self, name: str | None = None, *, path: str | None = None) -> LoadedSkill:
        """Load a skill and make it active; raise what a load raises."""
        self._serve()
        with self._lock, self._act("activate", {"name": name} if path is None else {"path": path}):
            used = self._conversation.use_one("activate", name, path)
            assert used.loaded is not None
            return used.loaded

    def resume(self, path: str) -> None:
        """Make a skill active whose instructions are in the messages already: nothing is decided, and nothing sent."""
        with self._lock, self._act("resume", {"path": path}):
            self._conversation.use_one("resume", path=path)

    def deactivate(self, name: str, *, path: str | None = None) -> None:
        """Make a skill inactive, so that its `allowed-tools` no longer count; `path` selects one of several."""
        key = COLLISION_KEYS[self.profile.collision_key]
        with self._lock:
            for active, loaded in list(self._conversation.active.items()):
                if key(loaded.skill.name) == key(name) and path in (None, active):
                    del self._conversation.active[active]
                    self._conversation.recorder.record("skill_deactivated", name=loaded.skill.name, path=active)

    @property
    def loaded_versions(self) -> dict[str, int]:
        """The loaded skills whose text is still in the context: their time of change (`mtime_ms`) by path."""
        # Without the lock: one look at the dictionary, which must not wait for a running script.
        sent = tuple(self._conversation.sent.skills.values())
        return {skill.path: skill.mtime_ms for skill in sent if skill.in_context and skill.whole}

    @property
    def effective_allowed_tools(self) -> tuple[str, ...] | None:
        """The patterns that the active skills leave of the host's tools; None if they narrow nothing."""
        with self._lock:
            return self._conversation.effective_tools(self._conversation.active.values())

    def decide(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Return the policy's decision on a call.

        A skill tool is decided for the skill that its arguments resolve to, any other tool by the `allowed-tools` of
        the active skills too.
        """
        if self._effects is None and (self._system.problem or self.is_outdated):
            return Decision("deny", None, "the system policy changed or cannot be used; open a new session")
        with self._lock:
            given = dict(arguments or {})
            decision = self._conversation.decide(tool, given)
            if not self._conversation.is_skill_tool(tool, given):
                self._conversation.recorder.tool_decided(tool, given, decision)
            return decision

    def child(self, skills: Iterable[str] = ()) -> "Session":
        """Return a session for a sub-agent with these skills preloaded; raise if a name is unknown."""
        return Session(
            self.shelf,
            policy=self.policy,
            confirm=self._conversation.permissions.confirm,
            preload=skills,
            recording=self._recording,
            effects=self._effects,
            memory=self._conversation.memory,
        )

    # Texts and state--------------------------------------------------------------------------------

    def recall(self, ref: str) -> str:
        """Return the whole text of a reference; it is kept until the session ends."""
        self._serve()
        with self._lock:
            return self._conversation.sent.recall(ref)

    def drop_texts(self) -> None:
        """Drop the texts that `recall` returns, for a host that never recalls; their references stay taken."""
        with self._lock:
            self._conversation.sent.drop_texts()

    def compact(self) -> None:
        """Record that the host compacted the context: loaded texts are no longer in it."""
        with self._lock:
            paths = sorted(path for path, sent in self._conversation.sent.skills.items() if sent.in_context)
            self._conversation.sent.compact()
            self._conversation.recorder.record("context_compacted", skills=paths)

    def drop_result(self, tool_id: str, skills: Iterable[str]) -> None:
        """Record that the model did not get the result of a call, which sent these skills."""
        with self._lock:
            self._conversation.drop(tool_id, skills)

    def record_answer(self, tool: str, verdict: str, by: str) -> None:
        """Record the answer of a person about a tool of the host that the policy left to confirm."""
        with self._lock:
            if not self._conversation.recorder.closed:
                self._conversation.recorder.record("tool_answered", tool=tool, verdict=verdict, by=by)

    def warn(self, kind: str, detail: str) -> None:
        """Record a warning of the host about this conversation."""
        with self._lock:
            self._conversation.recorder.record("skill_warning", kind=kind, detail=detail)

    def record_event(self, event: "Event") -> None:
        """Record an event as it is, for replay."""
        with self._lock:
            self._conversation.recorder.emit(event)

    def snapshot(self) -> dict[str, Any]:
        """Return the session as a JSON value."""
        with self._lock:
            return take_snapshot(self._conversation)

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any], shelf: ShelfProtocol, **options: Any) -> "Session":
        """Return a session with the state of a snapshot; `changes` lists what changed on disk since then."""
        check_snapshot(snapshot, shelf.profile)
        session = cls(shelf, restored=True, **options)
        session._conversation.sent = SentTexts.from_dict(snapshot)
        if banned := session._banned_texts():
            # A text does not say which skill it came from.
            session._conversation.sent.drop_texts()
            session.changes += tuple(f"no longer recalled: {one}" for one in banned)
        for name in snapshot["preloaded"]:
            try:
                session._conversation.preload(name)
            except SkillError as error:
                session.changes += (f"no longer preloaded: {name}: {error}",)
        session.changes += tuple(differences(session._conversation))
        for loaded in list(session._conversation.active.values()):
            if loaded.skill.path not in snapshot["active"]:
                session.deactivate(loaded.skill.name, path=loaded.skill.path)
        for path in snapshot["active"]:
            if path in session._conversation.active:
                continue
            try:
                session.activate(path=path)
            except SkillError as error:
                session.changes += (f"no longer active: {path}: {error}",)
        session._conversation.restore_requests(snapshot["asked_for"])
        return session

    def _banned_texts(self) -> list[str]:
        """Return a phrase for each skill of a snapshot that the system policy forbids now."""
        sent = self._conversation.sent.skills.values()
        found = [(one, files.real_path(one.path)) for one in sent if self._system.rules]
        denied = [(one, ban_on(self._system, one.name, one.path, real, os.path.dirname(real))) for one, real in found]
        return [f"{one.name}: the system policy denies it ({by})" for one, by in denied if by]

    # Results --------------------------------------------------------------------------------------

    def explain(self, error: SkillError) -> ToolError:
        """Return an error of this session as a call would return it."""
        return self._conversation.explain(error)

    def _refresh_on_call(self) -> None:
        variable = self.profile.refresh_env
        word = self.shelf.environment.env.get(variable, "true") if variable else "true"
        if self.profile.refresh == "on-call" and is_true_variable(word) and not self._conversation.recorder.closed:
            self.shelf.refresh(sources_after=SOURCE_REST_SECONDS)
            self._conversation.record_catalog()

    def _failure(self, error: SkillError) -> ToolResult:
        explained = self._conversation.explain(error)
        return failure(explained.code, explained.message, explained.candidates)

    def _in_envelope(
        self, given: Mapping[str, Any], result: ToolResult, time_ms: int, error: SkillError | None = None
    ) -> ToolResult:
        if self.profile.load_form != "envelope":
            return result
        cause = error.underlying if isinstance(error, FileReadError) else None
        root, cwd = self.shelf.project_root, self.shelf.environment.cwd
        return in_envelope(given, result, root=root, cwd=cwd, time_ms=time_ms, cause=cause)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _added_tools(shelf: ShelfProtocol) -> list[str]:
    """Return the tools that a host added to those of the profile."""
    name = shelf.profile.name
    known = shelf.settings.profiles.get(name) or SYSTEMS.get(name)
    return [tool for tool in shelf.profile.tools if known is not None and tool not in known.tools]
