"""Run a conversation of an agent with skills: `AgentConfiguration` and `AgentSession`.

Skills are handled by a session on a shelf. Only `prompt` talks to a model, and only it needs the extra `agent`.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar

from skillshelf.adapters.loaders import Skill, SkillDiscovery
from skillshelf.adapters.registry import RegistryBackedShelf, SkillRegistry, skills_of
from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.builtin_profiles import LOADER_PROFILES
from skillshelf.errors import ConfigurationError, PermissionDenied, SkillError, SkillNotFound
from skillshelf.journal.events import ANSWER_CUT
from skillshelf.session.policy import Policy
from skillshelf.session.recorder import OnEvent
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolError
from skillshelf.shelf import Shelf, open_shelf

if TYPE_CHECKING:
    from collections.abc import AsyncIterable
    from concurrent.futures import Future

    from pydantic_ai import Agent, ModelMessage, ModelResponse
    from pydantic_ai.models import Model

__all__ = ["AgentConfiguration", "AgentSession", "OnText", "check_installed", "cut_reason", "usable_model"]

P = ParamSpec("P")
T = TypeVar("T")
Answer = bool | Literal["remember"]
Confirm = Callable[[str, str, str], Answer | Awaitable[Answer]]
"""Called with the tool, the skill's name and the reason; a plain function is called in its own thread."""
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
    """

    instructions: str
    model: "Model | str | None"
    skill_registry: SkillRegistry | None = None
    auto_discover_skills: bool = True
    skill_search_paths: Sequence[str] = ()

    def with_skills(
        self,
        registry: SkillRegistry | None = None,
        auto_discover: bool = True,
        additional_paths: Sequence[str] = (),
    ) -> "AgentConfiguration":
        """Return a copy with skills; folders are searched only if skills are discovered."""
        if registry is None and not auto_discover and additional_paths:
            raise ConfigurationError(
                "additional_paths are searched only with auto_discover; enable it, or register the skills of "
                "SkillDiscovery.discover(path) and pass the registry"
            )
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
        confirmer: "_Confirmer",
    ) -> None:
        self.configuration = configuration
        self.session = session
        self.cut: str | None = None
        self._registry = registry
        self._confirmer = confirmer
        self._by_program: set[str] = set()
        self._history: list[ModelMessage] = []
        self._turn = asyncio.Lock()
        self._was_aborted = False

    @classmethod
    async def create(
        cls,
        configuration: AgentConfiguration,
        *,
        shelf: Shelf | None = None,
        policy: Policy | Mapping[str, Any] | str | None = None,
        confirm: Confirm | None = None,
        journal: str | os.PathLike[str] | None = None,
        preload: Iterable[str] = (),
        keep: bool = False,
        on_event: OnEvent | None = None,
    ) -> "AgentSession":
        """Find the skills and start the conversation.

        `shelf` decides which folders and profile are used; without it the folders are those of `SkillDiscovery`. The
        other options are those of `Shelf.session`; `confirm` may be a coroutine function.
        """
        confirmer = _Confirmer(confirm)

        def begin() -> AgentSession:
            registry = _registry_of(configuration)
            if registry is None:
                return cls(configuration, None, None, confirmer)
            base = shelf or open_shelf(profile=LOADER_PROFILES["registry"].name)
            if configuration.auto_discover_skills:
                _discover(registry, base, configuration.skill_search_paths)
            skills = RegistryBackedShelf(base, registry, discovers=configuration.auto_discover_skills)
            session = skills.session(
                policy,
                journal=journal,
                confirm=confirmer if confirm else None,
                preload=preload,
                keep=keep,
                on_event=on_event,
            )
            return cls(configuration, session, registry, confirmer)

        return await confirmer.in_thread(begin)

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
        loaded = await self._confirmer.in_thread(self.session.activate, name)
        skill = _with_instructions(loaded)
        self._registry.register_active(skill)
        self._by_program.add(name)
        return skill

    async def deactivate_skill(self, name: str) -> None:
        """Deactivate a skill; do nothing if it is not active."""
        if self.session is None or self._registry is None:
            return
        self._by_program.discard(name)
        self._registry.deactivate(name)
        await self._confirmer.in_thread(self.session.deactivate, name)

    async def active_skills(self) -> list[str]:
        """Return the names of the active skills, including those that the model loaded."""
        return self._registry.active_skill_names if self._registry else []

    async def close(self) -> None:
        """End the conversation and complete its journal."""
        if self.session is not None:
            await self._confirmer.in_thread(self.session.close)

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
            with _OpenPrompt() as turn, ExitStack() as unless_answered:
                unless_answered.callback(self._abort, turn)
                message = await self._confirmer.in_thread(self._message, text)
                result = await agent.run(
                    message,
                    message_history=self._history,
                    event_stream_handler=_streaming(on_text) if on_text else None,
                )
                unless_answered.pop_all()
            self._history = result.all_messages()
            self.cut = cut_reason(result.response)
            await self._confirmer.in_thread(self._record_end)
            return str(result.output)

    def _abort(self, turn: "_OpenPrompt") -> None:
        """End a turn that failed or was cancelled."""
        turn.end()
        self._was_aborted = True

    def _agent(self) -> "Agent[None, str]":
        model = usable_model(self.configuration.model)
        from pydantic_ai import Agent

        from skillshelf.adapters.pydantic_ai import SkillToolset

        if self.session is None:
            return Agent(model, instructions=self.configuration.instructions, retries=_RETRIES)
        # One text, not one for the agent and one for its tools: many models take a single system message.
        return Agent(
            model, toolsets=[SkillToolset(self.session, instructions=self._current_instructions)], retries=_RETRIES
        )

    def _current_instructions(self) -> str:
        """Return the instructions with the skills that the program activated; other loads are in the history."""
        active = self._registry.generate_active_skills_prompt(self._by_program) if self._registry else ""
        return "\n\n".join(part for part in (self.instructions, active) if part)

    def _message(self, text: str) -> str:
        """Return the user's text for the model: a command is replaced by its skill, mentions are listed."""
        if self.session is None:
            return text
        if self._was_aborted and self.session.active:
            # Skills loaded in an aborted turn are not in the history; a reminder of them would be wrong.
            self.session.compact()
        self._was_aborted = False
        result = self.session.command(text)
        if result is None:
            return self.session.resolve_mentions(text).text
        if result.error is not None:
            raise _error_of(text, result.error)
        return result.text

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
    registry.register(skills_of(shelf))
    for path in paths:
        registry.register(SkillDiscovery.discover(path))


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


class _Confirmer:
    """Calls a session in a thread, and calls `confirm`, which may be a coroutine function, from there."""

    def __init__(self, confirm: Confirm | None) -> None:
        self._confirm = confirm
        self._loop: asyncio.AbstractEventLoop | None = None

    async def in_thread(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Return the result of a call that may wait for the disk or for an answer."""
        self._loop = asyncio.get_running_loop()
        return await asyncio.to_thread(call, *arguments, **options)

    def __call__(self, tool: str, name: str, reason: str) -> Answer:
        """Return the answer; no if the prompt is over."""
        assert self._confirm is not None
        turn = _TURN.get() or _OpenPrompt()
        if turn.is_over:
            return False
        answer = self._confirm(tool, name, reason)
        if not isawaitable(answer):
            return answer
        assert self._loop is not None
        return turn.wait_for(asyncio.run_coroutine_threadsafe(_wait_for(answer), self._loop))


class _OpenPrompt:
    """One prompt and its open questions. A tool call continues in its thread when the prompt is aborted."""

    def __init__(self) -> None:
        self.is_over = False
        self._open: set[Future[Answer]] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> "_OpenPrompt":
        self._token = _TURN.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _TURN.reset(self._token)

    def wait_for(self, question: "Future[Answer]") -> Answer:
        """Return the answer; no if the question was cancelled."""
        from concurrent.futures import CancelledError

        with self._lock:
            self._open.add(question)
            if self.is_over:
                # The question came while the prompt was being aborted, so `end` has not cancelled it.
                question.cancel()
        try:
            return question.result()
        except CancelledError:
            return False
        finally:
            self._open.discard(question)

    def end(self) -> None:
        """Cancel the open questions."""
        with self._lock:
            self.is_over = True
            for question in tuple(self._open):
                question.cancel()


_TURN: ContextVar[_OpenPrompt | None] = ContextVar("_TURN", default=None)
"""The prompt that a tool call belongs to; its thread gets it with the context."""


async def _wait_for(answer: Awaitable[Answer]) -> Answer:
    return await answer
