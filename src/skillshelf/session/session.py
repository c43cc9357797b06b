"""A shelf and what a model does with it: one conversation, which remembers what is in its context."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.load import SKILL_FILE, LoadedSkill, parse_address, resource_of
from skillshelf.catalog.prompt import SYSTEM_RULES, CatalogText
from skillshelf.config.profile import Profile
from skillshelf.core.limits import RESOURCE_BYTES
from skillshelf.core.text import is_true
from skillshelf.core.values import CatalogSkill, Diagnostic
from skillshelf.errors import FileReadError, PermissionDenied, SkillError
from skillshelf.session.conversation import Conversation, Proposal, SentTexts, ShelfProtocol
from skillshelf.session.effects import Effects
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import Confirm, Decision, Policy, make_policy
from skillshelf.session.recorder import Act, Recording
from skillshelf.session.render import render_preloaded
from skillshelf.session.results import Shown, can_run, clean, failure, in_envelope, load_result
from skillshelf.session.tool_calls import CALLS, Mentions, found, is_for_users, is_load, names_in, resolve_mentions
from skillshelf.session.tools import Tool, ToolError, ToolResult, check_arguments, tools_of

if TYPE_CHECKING:
    from skillshelf.catalog.load import Resource
    from skillshelf.sandbox.run import OnOutput, Run
    from skillshelf.search.query import SearchReport

__all__ = ["Session"]

COMMAND = "/skill:"


class Session:
    """One conversation on a shelf. Safe to use from several threads; one call runs at a time.

    What happens in it is told to `recording`; close it, or use it in a `with` statement, to end that well. `world`
    is what it does outside itself, which only replay replaces.
    """

    def __init__(
        self,
        shelf: ShelfProtocol,
        *,
        policy: Policy | Mapping[str, Any] | str | None = None,
        confirm: Confirm | None = None,
        preload: Iterable[str] = (),
        recording: Recording = Recording(),  # noqa: B008 - a value that never changes.
        effects: Effects | None = None,
        restored: bool = False,
    ) -> None:
        self.shelf = shelf
        self.changes: tuple[str, ...] = ()
        self._recording = recording
        self._lock = threading.RLock()
        self._cause: Exception | None = None
        rules = make_policy(policy, shelf.settings)
        self._conversation = Conversation(shelf, rules, confirm, recording, effects)
        wanted = list(preload)
        self._conversation.recorder.started(
            shelf.catalog,
            rules,
            profile=shelf.profile.name,
            cwd=shelf.environment.cwd,
            trust=shelf.trust,
            preload=wanted,
            restored=restored,
        )
        self._conversation.look()
        with ExitStack() as unless_begun:
            unless_begun.callback(self.close)
            for name in wanted:
                self._conversation.preload(name)
            unless_begun.pop_all()

    def close(self) -> None:
        """End the session; what was recorded of it is complete then."""
        with self._lock:
            self._conversation.recorder.ended()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def journal_problem(self) -> str | None:
        """What could not be written to the journal, in words; None if all of it was."""
        return self._conversation.recorder.lost()

    @property
    def journal_notice(self) -> str | None:
        """What is worth knowing of the journal although nothing was lost, as a line that an earlier crash broke."""
        return self._conversation.recorder.notice()

    # What the model is told -----------------------------------------------------------------------

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
        """The skills of the shelf, those a model is not told of included."""
        return self._conversation.skills

    @property
    def warnings(self) -> list[Diagnostic]:
        """What had to be said about the skills that the model loaded."""
        return self._conversation.warnings

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """What loaded skills wish for, as far as the policy does not deny it; nobody follows them but the host."""
        return self._conversation.proposals

    def catalog_text(self) -> CatalogText:
        """The catalog as the profile writes it, with the fields that the policy opened."""
        return self._conversation.catalog_text()

    def look(self) -> None:
        """Record the catalog if it is another one than the last that was recorded."""
        with self._lock:
            self._conversation.look()

    def system_prompt(self, base: str = "", agents_context: str = "", tools: Sequence[str] | None = None) -> str:
        """Base text, standing context, then skills; `tools` are the host's own, None means that `read` is one."""
        parts = [base, agents_context]
        if self._lists_skills(tools) and (catalog := self.catalog_text().text):
            parts += [SYSTEM_RULES.get(self.profile.catalog_form, ""), catalog]
        if self._conversation.preloaded:
            parts.append(render_preloaded(self._conversation.preloaded).text)
        return "\n\n".join(part for part in parts if part)

    def _lists_skills(self, tools: Sequence[str] | None) -> bool:
        if self.profile.catalog_condition == "always":
            return True
        return not self._conversation.preloaded and (tools is None or "read" in tools)

    def tools(self) -> list[Tool]:
        """The tools of the profile, for the skills there are and as far as the policy can ever allow them."""
        runs = can_run(self.policy, asked=self._conversation.permissions.confirm is not None)
        return tools_of(
            self.profile,
            self.skills,
            prompt=self.catalog_text().text,
            asked_for=self._conversation.permissions.asked_for,
            without=() if runs else ("skill_run",),
        )

    def commands(self) -> list[str]:
        """One slash command for each skill that a user may invoke, for completion."""
        if self.profile.commands == "none" or not self.shelf.settings.commands:
            return []
        return [COMMAND + skill.name for skill in self.skills if skill.enabled and is_for_users(skill)]

    # What the model does --------------------------------------------------------------------------

    def call(self, tool: str, arguments: Any = None) -> ToolResult:
        """Run a tool of the profile. A mistake of the model is an error in the result, never an exception."""
        given = {key: clean(value) for key, value in arguments.items()} if isinstance(arguments, Mapping) else {}
        started = time.perf_counter()
        with self._lock:
            if self._conversation.recorder.closed:
                return failure("failed", "this session was closed")
            self._conversation.look()
            with self._conversation.recorder.act(tool, arguments or {}, mode="auto") as act:
                if arguments is None or isinstance(arguments, Mapping):
                    act.result = self._called(tool, given, act)
                else:
                    act.result = failure("invalid_params", "the arguments of a tool are an object")
            return self._enveloped(given, act.result, round((time.perf_counter() - started) * 1000))

    def _called(self, tool: str, given: dict[str, Any], act: Act) -> ToolResult:
        if tool not in self.profile.tools:
            return failure("unknown_tool", f"no tool {tool!r}; there are: {', '.join(self.profile.tools)}")
        if not self.shelf.settings.enabled:
            return failure("denied", "skills are disabled")
        self._refresh_if_asked()
        wrong = check_arguments(tool, self.profile, given)
        if wrong is not None:
            return failure("invalid_params", wrong)
        try:
            return CALLS[tool](self._conversation, given, act)
        except SkillError as error:
            return self._failed(error)

    # What a user does -----------------------------------------------------------------------------

    def command(self, text: str) -> ToolResult | None:
        """Run `/skill:name args`; None for text that is no command of this profile."""
        if self.profile.commands == "none" or not self.shelf.settings.commands or not text.startswith(COMMAND):
            return None
        name, arguments = self._command_words(text[len(COMMAND) :])
        given = {"name": name, **({"args": arguments} if arguments else {})}
        with self._lock:
            self._conversation.begin()
            with self._conversation.recorder.act("skill_load", given, mode="manual", command=text) as act:
                try:
                    act.result = self._commanded(name, arguments)
                except SkillError as error:
                    act.result = self._failed(error)
            return act.result

    def _commanded(self, name: str, arguments: str) -> ToolResult:
        skill = self._conversation.resolve(name)
        if not is_for_users(skill):
            raise PermissionDenied(f"{skill.name} is not meant to be invoked by a user")
        self._conversation.permissions.asked_for.add(skill.name)
        self._conversation.permissions.require("skill_load", skill, by_user=True)
        return self._conversation.deliver(skill, arguments, follow_up=self.profile.arguments == "user-line")

    def _command_words(self, text: str) -> tuple[str, str]:
        """The name and the rest of a command; a name of several words is known by the catalog."""
        names = [skill.name for skill in self.skills if " " in skill.name and text.startswith(skill.name)]
        if names:
            name = max(names, key=len)
            return name, text[len(name) :].strip()
        name, arguments = [*text.split(None, 1), "", ""][:2]
        return name, arguments

    def load(
        self, name: str | None = None, *, path: str | None = None, arguments: str = "", for_model: bool = False
    ) -> Shown:
        """A skill that a person asked for, exactly as a model would get it; a person is shown everything.

        The model of this session did not get it: a load by the model sends the whole text all the same.
        `for_model` is for a host that hands it on to a model: then the policy decides as it does in a call.
        """
        tool = next((tool for tool in self.profile.tools if NAMES_OF_TOOLS[tool] == "skill_load"), "skill_load")
        key = "skillName" if tool == "activate_skill" else "name"
        asked = {key: name} if path is None else {"path": path}
        given = {**asked, **({"args": arguments} if arguments else {})}
        with self._lock:
            self._conversation.begin()
            with self._conversation.recorder.act(tool, given, mode="auto" if for_model else "manual"):
                skill = self._conversation.resolve(name, path)
                self._ask_or_show("skill_load", skill, for_model=for_model)
                loaded, rendered, ref = self._conversation.look_into(skill, arguments)
                result = load_result(loaded, rendered.text, ref, self.profile, root=self.shelf.project_root)
            warnings = (*loaded.warnings, *rendered.warnings)
            named = {"name": skill.name, **({"args": arguments} if arguments else {})}
            return Shown(loaded, self._enveloped(named, result, 0).text, warnings)

    def read(
        self, uri: str, *, path: str | None = None, limit: int = RESOURCE_BYTES, for_model: bool = False
    ) -> "Resource":
        """A file of a skill that a person asked for; a person is shown everything, a model what the policy allows.

        Where several skills have the name in the address, `path` says which of them is meant.
        """
        tool, key = ("read", "path") if "read" in self.profile.tools else ("skill_read", "uri")
        with self._lock:
            self._conversation.begin()
            with self._conversation.recorder.act(tool, {key: uri}, mode="auto" if for_model else "manual"):
                address = parse_address(uri)
                skill = self._conversation.resolve(address.name, path)
                self._ask_or_show("skill_read", skill, for_model=for_model)
                if not is_load(address, self.profile):
                    return self._conversation.read_file(uri, skill, limit=limit)[0]
                data = self._conversation.look_into(skill, "")[0].data
                return resource_of(uri, skill.path, SKILL_FILE, data, self.profile)

    def _ask_or_show(self, tool: str, skill: CatalogSkill, *, for_model: bool) -> None:
        if for_model:
            self._conversation.permissions.require(tool, skill)
        else:
            self._conversation.permissions.show(tool, skill)

    def search(self, query: str, *, limit: int | None = None, scope: str | None = None) -> "SearchReport":
        """The skills that fit a query, of those that a model is told of; raises what a call would answer."""
        wishes = {"limit": limit, "scope": scope}
        given = {"query": query, **{key: value for key, value in wishes.items() if value is not None}}
        with self._lock:
            self._conversation.begin()
            with self._conversation.recorder.act("skill_search", given, mode="auto"):
                return found(self._conversation, query, limit, scope)

    def run(
        self, name: str, script: str, args: Sequence[str] = (), *, on_output: "OnOutput | None" = None
    ) -> "tuple[Run, ToolResult]":
        """Run a script that a person asked for; somebody is asked all the same, unless a rule allows it."""
        given = {"name": name, "script": script, **({"args": list(args)} if args else {})}
        with self._lock:
            self._conversation.begin()
            with self._conversation.recorder.act("skill_run", given, mode="manual") as act:
                skill = self._conversation.resolve(name)
                run, act.result = self._conversation.run_script(
                    skill, script, args, act, by_user=True, on_output=on_output
                )
            return run, act.result

    def resolve_mentions(self, text: str) -> Mentions:
        """The skills that `$name` means in a user's text; what is no skill is no mention."""
        named = names_in(text)
        if self.profile.mentions == "none" or not named:
            return Mentions(text, (), ())
        with self._lock:
            return resolve_mentions(text, named, self._conversation)

    # Activation -----------------------------------------------------------------------------------

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the skills that were loaded and not given back."""
        with self._lock:
            return tuple(sorted({loaded.skill.name for loaded in self._conversation.active.values()}))

    def activate(self, name: str | None = None, *, path: str | None = None) -> LoadedSkill:
        """Load a skill and keep it active; raises what a load raises."""
        with self._lock:
            self._conversation.begin()
            with self._conversation.recorder.act(
                "activate", {"name": name} if path is None else {"path": path}, mode="manual"
            ):
                skill = self._conversation.resolve(name, path)
                self._conversation.permissions.asked_for.add(skill.name)
                self._conversation.permissions.require("skill_load", skill, by_user=True)
                loaded = self._conversation.effects.load(skill, self.profile)
                self._conversation.reached_model(loaded, loaded.warnings)
                self._conversation.recorder.note("skill_activated", name=skill.name, path=skill.path)
                self._conversation.activate(loaded)
                return loaded

    def deactivate(self, name: str) -> None:
        """Give a skill back; its text is freed and its `allowed-tools` count no longer."""
        with self._lock:
            for path, loaded in list(self._conversation.active.items()):
                if loaded.skill.name == name:
                    del self._conversation.active[path]
                    self._conversation.recorder.note("skill_deactivated", name=name, path=path)

    @property
    def effective_allowed_tools(self) -> tuple[str, ...] | None:
        """What the active skills leave of the host's tools, as patterns; None if they narrow nothing."""
        with self._lock:
            return self._conversation.effective(self._conversation.active.values())

    def decide(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """What the policy says about a call: of a skill tool on the skill that its arguments really mean, of any
        other on the `allowed-tools` of the active skills too."""
        with self._lock:
            return self._conversation.decide(tool, dict(arguments or {}))

    def child(self, skills: Iterable[str] = ()) -> "Session":
        """A session for a sub-agent that starts with these skills; an unknown name is an error at once."""
        return Session(
            self.shelf,
            policy=self.policy,
            confirm=self._conversation.permissions.confirm,
            preload=skills,
            recording=self._recording,
            effects=self._conversation.effects,
        )

    # Memory ---------------------------------------------------------------------------------------

    def recall(self, ref: str) -> str:
        """The whole text behind a reference, until the session ends."""
        with self._lock:
            return self._conversation.memory.recall(ref)

    def compact(self) -> None:
        """Say that the model's context was shortened: what was loaded is no longer in it."""
        with self._lock:
            held = sorted(path for path, sent in self._conversation.memory.sent.items() if sent.in_context)
            self._conversation.memory.compact()
            self._conversation.recorder.note("context_compacted", skills=held)

    def warn(self, kind: str, detail: str) -> None:
        """Record what the host thinks that somebody should know of this conversation."""
        with self._lock:
            self._conversation.recorder.note("skill_warning", kind=kind, detail=detail)

    def snapshot(self) -> dict[str, Any]:
        """The session as a JSON value."""
        from skillshelf.session.tool_calls import take_snapshot

        with self._lock:
            return take_snapshot(self._conversation)

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any], shelf: ShelfProtocol, **options: Any) -> "Session":
        """The session a snapshot was taken of; `changes` says what is different on disk since then."""
        from skillshelf.session.tool_calls import check_snapshot, differences

        check_snapshot(snapshot, shelf.profile)
        session = cls(shelf, restored=True, **options)
        session._conversation.memory = SentTexts.from_dict(snapshot)
        for name in snapshot["preloaded"]:
            try:
                session._conversation.preload(name)
            except SkillError as error:
                session.changes += (f"no longer preloaded: {name}: {error}",)
        session.changes += tuple(differences(session._conversation))
        for path in snapshot["active"]:
            try:
                session.activate(path=path)
            except SkillError as error:
                session.changes += (f"no longer active: {path}: {error}",)
        session._conversation.permissions.asked_for = set(snapshot["asked_for"])
        return session

    # One act --------------------------------------------------------------------------------------

    def explain(self, error: SkillError) -> ToolError:
        """An error that a method of this session raised, as a call would have answered it."""
        return self._conversation.explained(error)

    def _refresh_if_asked(self) -> None:
        variable = self.profile.refresh_env
        word = self.shelf.environment.env.get(variable, "true") if variable else "true"
        if self.profile.refresh == "on-call" and is_true(word):
            self.shelf.refresh()
            self._conversation.look()

    def _failed(self, error: SkillError) -> ToolResult:
        self._cause = error.underlying if isinstance(error, FileReadError) else None
        told = self._conversation.explained(error)
        return failure(told.code, told.message, told.candidates)

    def _enveloped(self, given: Mapping[str, Any], result: ToolResult, time_ms: int) -> ToolResult:
        if self.profile.load_form != "envelope":
            return result
        root, cwd = self.shelf.project_root, self.shelf.environment.cwd
        return in_envelope(given, result, root=root, cwd=cwd, time_ms=time_ms, cause=self._cause)
