"""Run a conversation of an agent with skills: `AgentConfiguration` and `AgentSession`.

Skills are handled by a session on a shelf. Only `prompt` talks to a model, and only it needs the extra `agent`.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from skillshelf.adapters.loaders import Skill, SkillDiscovery
from skillshelf.adapters.registry import RegistryBackedShelf, SkillRegistry, active_skills_prompt, skills_of
from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.builtin_profiles import LOADER_PROFILES
from skillshelf.config.settings import Settings, load_system_policy, with_system_policy
from skillshelf.core.environment import make_environment
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError, PermissionDenied, SkillError, SkillNotFound
from skillshelf.journal.events import ANSWER_CUT
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import Decision, Policy, decide_tool, make_policy
from skillshelf.session.recorder import OnEvent
from skillshelf.session.session import Session
from skillshelf.session.threads import AnyConfirm, in_thread
from skillshelf.session.tools import ToolError
from skillshelf.shelf import Shelf, open_shelf

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from pydantic_ai import Agent, ModelMessage, ModelResponse, UsageLimits
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.toolsets import AbstractToolset

    from skillshelf.journal.otlp import EventExporter

__all__ = [
    "AgentConfiguration",
    "AgentSession",
    "OnText",
    "Permission",
    "check_installed",
    "cut_reason",
    "usable_model",
]

Permission = Callable[[str, Mapping[str, Any], str], object]
"""Asked about a call that the policy leaves to a person: the tool, its arguments and the reason. True allows the call.
A plain function is called in a thread of its own; a coroutine function is awaited."""
OnText = Callable[[str], object]
"""Called with each piece of an answer as it arrives."""

INSTALL = "pip install 'skillshelf[agent]'"

_PROVIDERS_WITH_FINISH_REASON = ("anthropic", "openai")
"""The providers whose every complete answer has a finish reason."""

_RETRIES = 5
"""The number of consecutive calls of unknown tools; each is answered with the names of the tools."""


class AgentConfiguration(NamedTuple):
    """The configuration of an agent. Skills are off if there is no registry and none are discovered.

    `model` is any model that pydantic-ai accepts: a name such as `anthropic:claude-sonnet-4-5`, or a model object.
    `tools` are functions or tools of pydantic-ai, or names of skill tools that the profile does not offer, such as
    `skill_read`; `toolsets`, `model_settings` and `usage_limits` are those of pydantic-ai. Every call of a tool is
    decided by the policy; `permission` is asked where the policy says `confirm`. Without it, or if it raises, such a
    call is denied.
    """

    instructions: str
    model: "Model | str | None"
    skill_registry: SkillRegistry | None = None
    auto_discover_skills: bool = True
    skill_search_paths: Sequence[str] = ()
    tools: Sequence[Any] = ()
    toolsets: Sequence[Any] = ()
    model_settings: "ModelSettings | None" = None
    usage_limits: "UsageLimits | None" = None
    permission: Permission | None = None

    def with_skills(
        self,
        registry: SkillRegistry | None = None,
        auto_discover: bool = True,
        additional_paths: Sequence[str] = (),
    ) -> "AgentConfiguration":
        """Return a copy with skills; folders are searched only if skills are discovered."""
        return self._replace(
            skill_registry=registry, auto_discover_skills=auto_discover, skill_search_paths=additional_paths
        )

    def without_skills(self) -> "AgentConfiguration":
        """Return a copy without skills."""
        return self._replace(skill_registry=None, auto_discover_skills=False)


class AgentSession:
    """One conversation of an agent with skills; create it with `create`.

    `session` is the session on the skills, or None if skills are off. `cut` is the reason if the last answer is
    incomplete, else None.
    """

    def __init__(
        self,
        configuration: AgentConfiguration,
        session: Session | None,
        registry: SkillRegistry | None,
        decide: "_Decide",
        permission: Permission | None,
    ) -> None:
        self.configuration = configuration
        self.session = session
        self.cut: str | None = None
        self._registry = registry
        self._decide = decide
        self._permission = permission
        # The skills whose instructions are in the system prompt: those that the program activated.
        self._in_prompt: dict[str, Skill] = {}
        self._seen_acts = 0
        self._history: list[ModelMessage] = []
        self._turn = asyncio.Lock()
        self._active_before: frozenset[str] = frozenset()
        self._was_aborted = False

    @classmethod
    async def create(
        cls,
        configuration: AgentConfiguration,
        *,
        shelf: Shelf | None = None,
        policy: Policy | Mapping[str, Any] | str | None = None,
        confirm: AnyConfirm | None = None,
        journal: str | os.PathLike[str] | None = None,
        preload: Iterable[str] = (),
        keep: bool = False,
        rotate: str | Mapping[str, Any] | None = None,
        otlp: "str | EventExporter | None" = None,
        on_event: OnEvent | None = None,
    ) -> "AgentSession":
        """Find the skills and start the conversation.

        `shelf` decides which folders and profile are used; without it the folders are those of `SkillDiscovery`. The
        other options are those of `Shelf.session`; `confirm` may be a coroutine function.
        """
        permission = configuration.permission or _permission_of(confirm)
        named: list[Any] = [tool for tool in configuration.tools if isinstance(tool, str)]
        if unknown := [name for name in named if name not in NAMES_OF_TOOLS]:
            raise ConfigurationError(f"no skill tool is called {unknown[0]!r} (known: {', '.join(NAMES_OF_TOOLS)})")

        def begin() -> AgentSession:
            registry = _registry_of(configuration)
            if registry is None:
                above = load_system_policy(make_environment(None, None, None))
                rules = make_policy(policy, with_system_policy(Settings(), above))
                return cls(
                    configuration, None, None, lambda tool, given: decide_tool(rules, tool, given, ()), permission
                )
            base = shelf or open_shelf(profile=LOADER_PROFILES["registry"].name)
            if configuration.auto_discover_skills:
                _discover(registry, base, configuration.skill_search_paths)
            skills = RegistryBackedShelf(base, registry, discovers=configuration.auto_discover_skills, tools=named)
            session = skills.session(
                policy,
                journal=journal,
                confirm=confirm or _confirm_of(configuration.permission),
                preload=preload,
                keep=keep,
                rotate=rotate,
                otlp=otlp,
                on_event=on_event,
                # What the model has is in its messages: a turn may be aborted, and a history trimmed.
                memory="messages",
            )
            return cls(configuration, session, registry, session.decide, permission)

        return await in_thread(begin)

    # Skills ---------------------------------------------------------------------------------------

    @property
    def instructions(self) -> str:
        """The system prompt: the configured text, then the skills."""
        base = self.configuration.instructions
        return base if self.session is None else self.session.system_prompt(base)

    async def list_skills(self) -> list[Skill]:
        """Return all registered skills, sorted by name."""
        return self._registry.all_skills if self._registry else []

    async def activate_skill(self, name: str) -> Skill:
        """Load the instructions of a skill and add them to the next prompt."""
        if self.session is None or self._registry is None:
            raise SkillNotFound(name)
        return await in_thread(lambda: self._activate(name))

    def _activate(self, name: str) -> Skill:
        assert self.session is not None
        assert self._registry is not None
        skill = _with_instructions(self.session.activate(name))
        self._registry.register_active(skill)
        self._in_prompt[name] = skill
        return skill

    async def deactivate_skill(self, name: str) -> None:
        """Deactivate a skill; do nothing if it is not active."""
        session = self.session
        if session is None or self._registry is None:
            return
        self._in_prompt.pop(name, None)
        self._registry.release(name)
        await in_thread(lambda: session.deactivate(name))

    async def active_skills(self) -> list[str]:
        """Return the names of the active skills: loaded by the model, preloaded, or activated by the program."""
        if self.session is None:
            return []
        await in_thread(self.follow_registry)
        if not self._turn.locked():
            await in_thread(self._forget_aborted_turn)
        session = self.session
        return list(await in_thread(lambda: session.active))

    def follow_registry(self) -> None:
        """Repeat in this conversation what the program activated and deactivated in the registry."""
        if self.session is None or self._registry is None:
            return
        self._seen_acts, acts = self._registry.acts_since(self._seen_acts)
        for name, is_activation in acts:
            if not is_activation:
                self._in_prompt.pop(name, None)
                self.session.deactivate(name)
                continue
            # The policy may deny it here, or the file may be gone; the session has recorded that.
            with suppress(SkillError):
                self._in_prompt[name] = _with_instructions(self.session.activate(name))

    async def close(self) -> None:
        """End the conversation and complete its journal."""
        if self.session is not None:
            await in_thread(self.session.close)

    async def __aenter__(self) -> "AgentSession":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    # The model ------------------------------------------------------------------------------------

    async def prompt(self, text: str, *, on_text: OnText | None = None) -> str:
        """Return the answer of the model after any number of skill calls; needs the extra `agent`.

        `/skill:name` and `$name` in the text work if the profile has them. With `on_text` the answer is streamed. If
        the prompt fails or is cancelled, the conversation stays as it was, and skills that the model had loaded are
        sent again.
        """
        agent = self._agent()
        async with self._turn:
            self.cut = None
            with ExitStack() as unless_answered:
                unless_answered.callback(self._abort)
                message = await in_thread(lambda: self._message(text))
                result = await agent.run(
                    message,
                    message_history=self._history,
                    model_settings=self.configuration.model_settings,
                    usage_limits=self.configuration.usage_limits,
                    event_stream_handler=_streaming(on_text) if on_text else None,
                )
                unless_answered.pop_all()
            self._history = result.all_messages()
            self.cut = cut_reason(result.response)
            await in_thread(self._record_end)
            return str(result.output)

    def _abort(self) -> None:
        """End a turn that failed or was cancelled: what it loaded is not in the history."""
        self._was_aborted = True

    def _agent(self) -> "Agent[None, str]":
        model = usable_model(self.configuration.model)
        from pydantic_ai import Agent

        from skillshelf.adapters.pydantic_ai import SkillToolset

        others = self._decided_toolsets()
        if self.session is None:
            return Agent(model, instructions=self.configuration.instructions, toolsets=others, retries=_RETRIES)
        # One text, not one for the agent and one for its tools: many models take a single system message.
        skills = SkillToolset(self.session, instructions=self._current_instructions)
        own = {getattr(tool, "name", None) or getattr(tool, "__name__", "") for tool in self.configuration.tools}
        # A tool of the user with the name of ours takes both calls; see `skill_text`.
        offered = skills.filtered(lambda ctx, tool: tool.name not in own) if own else skills
        return Agent(model, toolsets=[offered, *others], retries=_RETRIES)

    def _decided_toolsets(self) -> "list[AbstractToolset[None]]":
        """Return the tools of the configuration; each call of one is decided first."""
        from pydantic_ai.toolsets import AbstractToolset, DynamicToolset, FunctionToolset

        functions = [tool for tool in self.configuration.tools if not isinstance(tool, str)]
        given: list[AbstractToolset[None]] = [FunctionToolset(functions)] if functions else []
        for toolset in self.configuration.toolsets:
            given.append(toolset if isinstance(toolset, AbstractToolset) else DynamicToolset(toolset))
        kind = _decided_toolset_class()
        return [kind(toolset, self) for toolset in given]

    async def skill_text(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """Return the answer to a call of the user's `read` with a `skill://` address where ours has that name too."""
        address = next((v for v in arguments.values() if isinstance(v, str) and v.startswith("skill://")), None)
        if self.session is None or address is None or tool not in self.session.profile.tools:
            return None
        key = "uri" if tool == "skill_read" else "path"
        return (await self.session.acall(tool, {key: address})).text

    async def refusal_of(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """Decide about a call of a tool that is not a skill tool; return what to tell the model if it is refused."""
        decision = await in_thread(lambda: self._decide(tool, arguments))
        if decision.verdict == "confirm":
            is_allowed, by = await _answer(self._permission, tool, arguments, decision)
            if self.session is not None:
                await in_thread(lambda: self._record_answer(tool, by, is_allowed=is_allowed))
            if is_allowed:
                return None
            decision = decision._replace(verdict="deny", reason=f"{decision.reason}, and {_REFUSALS[by]}")
        if decision.verdict == "allow":
            return None
        return f"Error: {tool} may not be used: {decision.reason}"

    def _record_answer(self, tool: str, by: str, *, is_allowed: bool) -> None:
        assert self.session is not None
        self.session.record_answer(tool, "allow" if is_allowed else "deny", by)

    def _current_instructions(self) -> str:
        """Return the instructions with the skills that the program activated; other loads are in the history."""
        active = active_skills_prompt(self._in_prompt[name] for name in sorted(self._in_prompt))
        return "\n\n".join(part for part in (self.instructions, active) if part)

    def _message(self, text: str) -> str:
        """Return the user's text for the model: a command is replaced by its skill, mentions are listed."""
        if self.session is None:
            return text
        self._forget_aborted_turn()
        self._active_before = frozenset(self.session.active)
        self.follow_registry()
        result = self.session.command(text)
        if result is None:
            return self.session.resolve_mentions(text).text
        if result.error is not None:
            raise _error_of(text, result.error)
        return result.text

    def _forget_aborted_turn(self) -> None:
        """Deactivate what an aborted turn loaded; what the program activated stays."""
        if self.session is None or not self._was_aborted:
            return
        for name in sorted({*self.session.active} - self._active_before - self._in_prompt.keys()):
            self.session.deactivate(name)
        self._was_aborted = False

    def _record_end(self) -> None:
        """Mark the skills that the model loaded as active, and record an incomplete answer."""
        if self.session is None or self._registry is None:
            return
        if self.cut is not None:
            self.session.warn(ANSWER_CUT, self.cut)
        for name in self.session.active:
            if self._registry.is_active(name):
                continue
            # The file may be gone by now; the model has its text anyway.
            with suppress(SkillError):
                self._registry.register_active(_with_instructions(self.session.shelf.load(name)))


_Decide = Callable[[str, Mapping[str, Any]], Decision]


_REFUSALS = {
    "user": "the user refused it",
    "nobody": "there is no way to ask the user",
    "failed": "asking the user failed",
}


async def _answer(
    permission: Permission | None, tool: str, arguments: Mapping[str, Any], decision: Decision
) -> tuple[bool, str]:
    """Return True if the delegate allows a call, and who answered; one that fails has decided nothing."""
    if permission is None:
        return False, "nobody"
    try:
        answer = await in_thread(lambda: permission(tool, arguments, decision.reason))
        return (await answer if isawaitable(answer) else answer) is True, "user"
    except Exception:
        return False, "failed"


def _permission_of(confirm: AnyConfirm | None) -> Permission | None:
    """Return the delegate that asks about the tools of the host as about those of skills."""
    if confirm is None:
        return None

    async def ask(tool: str, arguments: Mapping[str, Any], reason: str) -> bool:
        answer = await in_thread(lambda: confirm(tool, "", reason))
        return (await answer if isinstance(answer, Awaitable) else answer) in (True, "remember")

    return ask


def _confirm_of(permission: Permission | None) -> AnyConfirm | None:
    """Return the function that asks a delegate about a skill."""
    if permission is None:
        return None

    async def ask(tool: str, name: str, reason: str) -> bool:
        answer = await in_thread(lambda: permission(tool, {"name": name}, reason))
        return (await answer if isawaitable(answer) else answer) is True

    return ask


def _decided_toolset_class() -> "type[Any]":
    """Return a toolset that asks before each call; a function, since pydantic-ai may not be installed."""
    from dataclasses import dataclass

    from pydantic_ai import RunContext
    from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

    @dataclass
    class DecidedToolset(WrapperToolset[None]):
        agent: AgentSession

        async def call_tool(
            self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
        ) -> Any:
            # A refusal is an answer: the model can act on it, and it does not count as a retry.
            answer = await self.agent.skill_text(name, tool_args)
            if answer is None:
                answer = await self.agent.refusal_of(name, tool_args)
            if answer is not None:
                return answer
            result = await super().call_tool(name, tool_args, ctx, tool)
            # The tool may have activated a skill in the registry; the next request has it.
            await in_thread(self.agent.follow_registry)
            return result

    return DecidedToolset


def cut_reason(response: "ModelResponse") -> str | None:
    """Return the reason if an answer of a model is incomplete, else None."""
    if response.finish_reason == "length":
        return "the answer was cut off: it reached the token limit of the model"
    # The framework treats a stream that just ends as complete; the finish reason of the provider tells the difference.
    finish_reason = (response.provider_details or {}).get("finish_reason")
    if response.state != "complete" or (
        finish_reason is None and response.provider_name in _PROVIDERS_WITH_FINISH_REASON
    ):
        return "the answer was cut off: the model's stream ended without a finish reason"
    return None


def _error_of(command: str, error: ToolError) -> SkillError:
    """Return the error of a user's command as an exception."""
    if error.code == "denied":
        return PermissionDenied(error.message)
    if error.code != "not_found":
        return SkillError(error.message)
    missing = SkillNotFound(command.partition(":")[2].partition(" ")[0])
    missing.near = error.candidates
    return missing


def check_installed() -> None:
    """Raise `ConfigurationError` with the install command if pydantic-ai is missing."""
    try:
        import pydantic_ai  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(f"the package pydantic-ai is missing: {error} (run `{INSTALL}`)") from None


def usable_model(model: "Model | str | None") -> "Model":
    """Return the model of a name, or raise `ConfigurationError` with what to install or to set."""
    check_installed()
    from pydantic_ai import UserError
    from pydantic_ai.models import infer_model

    if model is None:
        raise ConfigurationError("a prompt needs a model (set `model` in AgentConfiguration)")
    try:
        return infer_model(model)
    except (UserError, ImportError) as error:
        raise ConfigurationError(f"the model cannot be used: {error}") from None


def _with_instructions(loaded: LoadedSkill) -> Skill:
    return Skill(loaded.skill.metadata, loaded.body.strip(), loaded.skill.dir)


def _registry_of(configuration: AgentConfiguration) -> SkillRegistry | None:
    if isinstance(configuration.skill_search_paths, str):
        raise ConfigurationError("skill_search_paths must be a list of folders, not one text")
    if configuration.skill_registry is None and not configuration.auto_discover_skills:
        return None
    return SkillRegistry() if configuration.skill_registry is None else configuration.skill_registry


def _discover(registry: SkillRegistry, shelf: Shelf, paths: Iterable[str]) -> None:
    for skills in (skills_of(shelf), *(SkillDiscovery.discover(path) for path in paths)):
        # Registering a skill again would deactivate it.
        registry.register(skill for skill in skills if not registry.is_same_active(skill))


def _streaming(on_text: OnText) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return a handler of pydantic-ai's events that passes on the text of an answer, piece by piece."""
    from pydantic_ai import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    async def handle(context: object, events: "AsyncIterable[object]") -> None:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                on_text(event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                on_text(event.delta.content_delta)

    return handle
