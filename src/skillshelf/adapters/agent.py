"""Instructions, a model and skills to an agent that answers: `AgentConfiguration` and `AgentSession`.

Everything about skills is a session on a shelf; only `prompt` talks to a model, and only it needs the extra `agent`.
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
from skillshelf.adapters.registry import RegisteredShelf, SkillRegistry, found_on
from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.systems import LOADER_PROFILES
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

__all__ = ["AgentConfiguration", "AgentSession", "OnText", "check_installed", "usable_model", "why_cut"]

P = ParamSpec("P")
T = TypeVar("T")
Answer = bool | Literal["remember"]
Confirm = Callable[[str, str, str], Answer | Awaitable[Answer]]
"""Asked with the tool, the skill's name and the reason; a plain function is called in a thread of its own."""
OnText = Callable[[str], object]
"""Told each piece of an answer as it comes."""

INSTALL = "pip install 'skillshelf[agent]'"

_PROVIDERS_THAT_SAY = ("anthropic", "openai")
"""Those whose every answer ends with the reason why it ends."""

_WRONG_CALLS = 5
"""How often in a row a model may call a tool that is not there; each time it is told which there are."""


class AgentConfiguration(NamedTuple):
    """What an agent is made of. Skills are off where no registry is given and none are discovered.

    `model` is whatever pydantic-ai takes: a name such as `anthropic:claude-sonnet-4-5`, or a model object.
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
        """A copy with skills; folders are searched only where skills are discovered."""
        if registry is None and not auto_discover and additional_paths:
            raise ConfigurationError(
                "additional_paths are searched only with auto_discover; leave that on, or register the skills of "
                "SkillDiscovery.discover(path) and give the registry"
            )
        return self._replace(
            skill_registry=registry, auto_discover_skills=auto_discover, skill_search_paths=additional_paths
        )

    def without_skills(self) -> "AgentConfiguration":
        """A copy without skills."""
        return self._replace(skill_registry=None, auto_discover_skills=False)


class AgentSession:
    """One conversation of an agent with skills; made by `create`.

    `session` is the conversation as far as skills are concerned, None where skills are off. `cut` says why the last
    answer is not whole, None if it is.
    """

    def __init__(
        self,
        configuration: AgentConfiguration,
        session: Session | None,
        registry: SkillRegistry | None,
        asker: "_Asker",
    ) -> None:
        self.configuration = configuration
        self.session = session
        self.cut: str | None = None
        self._registry = registry
        self._asker = asker
        self._by_program: set[str] = set()
        self._history: list[ModelMessage] = []
        self._turn = asyncio.Lock()
        self._is_cut = False

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
        """Find the skills and begin the conversation.

        `shelf` says where skills are discovered and by which profile; without it the folders are those of
        `SkillDiscovery`. The other options are those of `Shelf.session`; `confirm` may be a coroutine function.
        """
        asker = _Asker(confirm)

        def begin() -> AgentSession:
            registry = _registry_of(configuration)
            if registry is None:
                return cls(configuration, None, None, asker)
            base = shelf or open_shelf(profile=LOADER_PROFILES["registry"].name)
            if configuration.auto_discover_skills:
                _discover(registry, base, configuration.skill_search_paths)
            skills = RegisteredShelf(base, registry, discovers=configuration.auto_discover_skills)
            session = skills.session(
                policy,
                journal=journal,
                confirm=asker if confirm else None,
                preload=preload,
                keep=keep,
                on_event=on_event,
            )
            return cls(configuration, session, registry, asker)

        return await asker.in_thread(begin)

    # Skills ---------------------------------------------------------------------------------------

    @property
    def instructions(self) -> str:
        """What the model is told before anything else: the configured text, then the skills there are."""
        base = self.configuration.instructions
        return base if self.session is None else self.session.system_prompt(base)

    async def list_skills(self) -> list[Skill]:
        """All registered skills, by name."""
        return self._registry.all_skills if self._registry else []

    async def activate_skill(self, name: str) -> Skill:
        """Read the instructions of a skill and give them to the model with the next prompt."""
        if self.session is None or self._registry is None:
            raise SkillNotFound(name)
        loaded = await self._asker.in_thread(self.session.activate, name)
        skill = _with_instructions(loaded)
        self._registry.put_active(skill)
        self._by_program.add(name)
        return skill

    async def deactivate_skill(self, name: str) -> None:
        """Give a skill back; nothing happens where it is not active."""
        if self.session is None or self._registry is None:
            return
        self._by_program.discard(name)
        self._registry.deactivate(name)
        await self._asker.in_thread(self.session.deactivate, name)

    async def active_skills(self) -> list[str]:
        """The names of the active skills, those that the model loaded included."""
        return self._registry.active_skill_names if self._registry else []

    async def close(self) -> None:
        """End the conversation; what was recorded of it is complete then."""
        if self.session is not None:
            await self._asker.in_thread(self.session.close)

    async def __aenter__(self) -> "AgentSession":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    # The model ------------------------------------------------------------------------------------

    async def prompt(self, text: str, *, on_text: OnText | None = None) -> str:
        """What the model answers to the user, after as many skill calls as it wants; needs the extra `agent`.

        `/skill:name` and `$name` in the text work as far as the profile knows them. With `on_text` the answer is
        streamed. If it fails or is cancelled, the conversation is as it was before, and the model is sent again
        what it had loaded.
        """
        agent = self._agent()
        async with self._turn:
            self.cut = None
            with _Turn() as turn, ExitStack() as unless_answered:
                unless_answered.callback(self._break_off, turn)
                message = await self._asker.in_thread(self._message, text)
                result = await agent.run(
                    message,
                    message_history=self._history,
                    event_stream_handler=_streaming(on_text) if on_text else None,
                )
                unless_answered.pop_all()
            self._history = result.all_messages()
            self.cut = why_cut(result.response)
            await self._asker.in_thread(self._note_end)
            return str(result.output)

    def _break_off(self, turn: "_Turn") -> None:
        """Leave a turn that failed or was cancelled."""
        turn.end()
        self._is_cut = True

    def _agent(self) -> "Agent[None, str]":
        model = usable_model(self.configuration.model)
        from pydantic_ai import Agent

        from skillshelf.adapters.pydantic_ai import SkillToolset

        if self.session is None:
            return Agent(model, instructions=self.configuration.instructions, retries=_WRONG_CALLS)
        # One text, not one for the agent and one for its tools: many models take a single system message.
        return Agent(model, toolsets=[SkillToolset(self.session, instructions=self._told)], retries=_WRONG_CALLS)

    def _told(self) -> str:
        """The instructions with the skills that the program activated; the model's own loads are in its history."""
        active = self._registry.generate_active_skills_prompt(self._by_program) if self._registry else ""
        return "\n\n".join(part for part in (self.instructions, active) if part)

    def _message(self, text: str) -> str:
        """What the model gets of what the user wrote: a command is replaced by its skill, mentions are listed."""
        if self.session is None:
            return text
        if self._is_cut and self.session.active:
            # What was loaded in a turn that failed is not in the history; a reminder would point at nothing.
            self.session.compact()
        self._is_cut = False
        result = self.session.command(text)
        if result is None:
            return self.session.resolve_mentions(text).text
        if result.error is not None:
            raise _error_of(text, result.error)
        return result.text

    def _note_end(self) -> None:
        """Tell the registry which skills the model loaded, and record an answer that is not whole."""
        if self.session is None or self._registry is None:
            return
        if self.cut is not None:
            self.session.warn(ANSWER_CUT, self.cut)
        for name in self.session.active:
            if self._registry.is_active(name):
                continue
            # The file may be gone again; the model has its text all the same.
            with suppress(SkillError):
                self._registry.put_active(_with_instructions(self.session.shelf.load(name)))


def why_cut(response: "ModelResponse") -> str | None:
    """Why an answer of a model is not whole; None if it is."""
    if response.finish_reason == "length":
        return "the answer was cut off: it reached the most tokens that the model may write"
    # The framework takes a stream that just ends for a whole answer; what the provider itself said is kept beside it.
    said = (response.provider_details or {}).get("finish_reason")
    if response.state != "complete" or (said is None and response.provider_name in _PROVIDERS_THAT_SAY):
        return "the answer was cut off: the model's stream ended before it said that this was all"
    return None


def _error_of(command: str, error: ToolError) -> SkillError:
    """What a command of the user failed with, as an exception."""
    if error.code == "denied":
        return PermissionDenied(error.message)
    if error.code != "not_found":
        return SkillError(error.message)
    missing = SkillNotFound(command.partition(":")[2].partition(" ")[0])
    missing.near = error.candidates
    return missing


def check_installed() -> None:
    """Raise what to install if a prompt cannot work here."""
    try:
        import pydantic_ai  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(f"this needs the package pydantic-ai ({error}); install it with: {INSTALL}") from None


def usable_model(model: "Model | str | None") -> "Model":
    """The model that a name means; an error says what to install or to set."""
    check_installed()
    from pydantic_ai import UserError
    from pydantic_ai.models import infer_model

    if model is None:
        raise ConfigurationError("a prompt needs a model; name one in the configuration")
    try:
        return infer_model(model)
    except (UserError, ImportError) as error:
        raise ConfigurationError(f"the model cannot be used: {error}") from None


def _with_instructions(loaded: LoadedSkill) -> Skill:
    return Skill(loaded.skill.metadata, loaded.body.strip(), loaded.skill.dir)


def _registry_of(configuration: AgentConfiguration) -> SkillRegistry | None:
    if isinstance(configuration.skill_search_paths, str):
        raise ConfigurationError("skill_search_paths is a list of folders, not one text")
    if configuration.skill_registry is None and not configuration.auto_discover_skills:
        return None
    return SkillRegistry() if configuration.skill_registry is None else configuration.skill_registry


def _discover(registry: SkillRegistry, shelf: Shelf, paths: Iterable[str]) -> None:
    registry.register(found_on(shelf))
    for path in paths:
        registry.register(SkillDiscovery.discover(path))


def _streaming(on_text: OnText) -> Callable[..., Coroutine[Any, Any, None]]:
    """A handler of pydantic-ai's events that tells the text of an answer, piece by piece."""
    from pydantic_ai import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    async def handle(context: object, events: "AsyncIterable[object]") -> None:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                on_text(event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                on_text(event.delta.content_delta)

    return handle


class _Asker:
    """Calls a session in a thread, and from there asks a callback that may be a coroutine function."""

    def __init__(self, confirm: Confirm | None) -> None:
        self._confirm = confirm
        self._loop: asyncio.AbstractEventLoop | None = None

    async def in_thread(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """What a call gives that may wait for the disk or for an answer."""
        self._loop = asyncio.get_running_loop()
        return await asyncio.to_thread(call, *arguments, **options)

    def __call__(self, tool: str, name: str, reason: str) -> Answer:
        """The answer; no if nobody waits for it any more."""
        assert self._confirm is not None
        turn = _TURN.get() or _Turn()
        if turn.is_over:
            return False
        answer = self._confirm(tool, name, reason)
        if not isawaitable(answer):
            return answer
        assert self._loop is not None
        return turn.answer_to(asyncio.run_coroutine_threadsafe(_wait_for(answer), self._loop))


class _Turn:
    """One prompt and what is asked in it. A call of a tool goes on in its thread when the prompt is broken off."""

    def __init__(self) -> None:
        self.is_over = False
        self._open: set[Future[Answer]] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> "_Turn":
        self._token = _TURN.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _TURN.reset(self._token)

    def answer_to(self, question: "Future[Answer]") -> Answer:
        """What is answered; no if the question was taken back."""
        from concurrent.futures import CancelledError

        with self._lock:
            self._open.add(question)
            if self.is_over:
                # It was asked while the prompt was broken off; nobody else would take it back.
                question.cancel()
        try:
            return question.result()
        except CancelledError:
            return False
        finally:
            self._open.discard(question)

    def end(self) -> None:
        """Take back what is being asked."""
        with self._lock:
            self.is_over = True
            for question in tuple(self._open):
                question.cancel()


_TURN: ContextVar[_Turn | None] = ContextVar("_TURN", default=None)
"""The prompt that a call of a tool belongs to; its thread gets it with the context."""


async def _wait_for(answer: Awaitable[Answer]) -> Answer:
    return await answer
