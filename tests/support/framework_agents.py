"""Agents of the frameworks with skills from a shelf, each with a model on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from support.needs import require

__all__ = ["FRAMEWORKS", "FrameworkAgent"]


class FrameworkAgent(Protocol):
    """One agent object, which serves any number of conversations."""

    async def say(self, conversation: str, text: str, *, stream: bool = False) -> str:
        """Say something in a conversation and return the whole answer."""

    def session_for(self, conversation: str) -> Any:
        """Return the session that a tool of that conversation last got from the adapter."""

    def pieces(self) -> list[str]:
        """Return the pieces of the last streamed answer."""


class _AdkAgent:
    def __init__(self, target: Any, url: str, *, trim: bool = False, functions: bool = False, **options: Any) -> None:
        require("google.adk")
        from google.adk.agents import LlmAgent
        from google.adk.models.google_llm import Gemini
        from google.adk.runners import InMemoryRunner

        from skillshelf.adapters import adk

        def shorten(callback_context: Any, llm_request: Any) -> None:
            if trim:
                texts = [n for n, content in enumerate(llm_request.contents) if _is_question(content)]
                llm_request.contents = llm_request.contents[texts[-1] :]

        async def note(tool: Any, args: Any, tool_context: Any) -> None:
            self._sessions[tool_context.session.id] = adk.session_for(tool_context)

        self._sessions: dict[str, Any] = {}
        self._pieces: list[str] = []
        with_functions = {
            "tools": adk.skill_tools(target, **options),
            "instruction": adk.skill_instructions(target, "You are helpful.", **options),
        }
        with_class = {"tools": [adk.SkillToolset(target, **options)], "instruction": "You are helpful."}
        agent = LlmAgent(
            name="helper",
            model=Gemini(model="gemini-2.5-flash", base_url=url, client_kwargs={"api_key": "none"}),
            before_model_callback=shorten,
            before_tool_callback=note,
            **(with_functions if functions else with_class),
        )
        self._runner = InMemoryRunner(agent, app_name="app")

    async def say(self, conversation: str, text: str, *, stream: bool = False) -> str:
        from google.adk.agents.run_config import RunConfig
        from google.genai import types

        service: Any = self._runner.session_service
        who = {"app_name": "app", "user_id": "user", "session_id": conversation}
        if await service.get_session(**who) is None:
            await service.create_session(**who)
        said, self._pieces = "", []
        run = self._runner.run_async(
            user_id="user",
            session_id=conversation,
            new_message=types.Content(role="user", parts=[types.Part(text=text)]),
            run_config=RunConfig.model_validate({"streaming_mode": "sse" if stream else None}),
        )
        async for event in run:
            parts = event.content.parts if event.content else None
            words = "".join(part.text or "" for part in parts or ())
            if event.partial:
                self._pieces.append(words)
            else:
                said += words
        return said

    def session_for(self, conversation: str) -> Any:
        return self._sessions[conversation]

    def pieces(self) -> list[str]:
        return self._pieces


def _is_question(content: Any) -> bool:
    return content.role == "user" and any(part.text for part in content.parts)


class _MicrosoftAgent:
    def __init__(self, target: Any, url: str, *, trim: bool = False, functions: bool = False, **options: Any) -> None:
        require("agent_framework")
        require("agent_framework_openai")
        from agent_framework import Agent, chat_middleware, function_middleware
        from agent_framework_openai import OpenAIChatCompletionClient

        from skillshelf.adapters import agent_framework as adapter

        async def shorten(context: Any, call_next: Any) -> None:
            if trim:
                texts = [n for n, message in enumerate(context.messages) if message.role == "user"]
                context.messages = context.messages[texts[-1] :]
            await call_next()

        async def note(context: Any, call_next: Any) -> None:
            self._sessions[context.session.session_id] = adapter.session_for(context)
            await call_next()

        self._sessions: dict[str, Any] = {}
        self._known: dict[str, Any] = {}
        self._pieces: list[str] = []
        with_functions: dict[str, Any] = {
            "tools": adapter.skill_tools(target, **options),
            "context_providers": [adapter.skill_instructions(target, **options)],
        }
        with_class = {"context_providers": [adapter.SkillProvider(target, **options)]}
        self._agent = Agent(
            OpenAIChatCompletionClient("m", api_key="none", base_url=f"{url}/v1"),
            "You are helpful.",
            middleware=[chat_middleware(shorten), function_middleware(note)],
            **(with_functions if functions else with_class),
        )

    async def say(self, conversation: str, text: str, *, stream: bool = False) -> str:
        session = self._known.setdefault(conversation, self._agent.create_session(session_id=conversation))
        if not stream:
            return str((await self._agent.run(text, session=session)).text)
        self._pieces = []
        async for update in self._agent.run(text, session=session, stream=True):
            self._pieces.append(update.text)
        return "".join(self._pieces)

    def session_for(self, conversation: str) -> Any:
        return self._sessions[conversation]

    def pieces(self) -> list[str]:
        return self._pieces


FRAMEWORKS: Mapping[str, Callable[..., FrameworkAgent]] = {"adk": _AdkAgent, "agent-framework": _MicrosoftAgent}
"""A maker of agents: of a target and the address of the model; `trim` leaves the last turn of the messages, `functions`
uses `skill_tools` and `skill_instructions` instead of the class of the adapter, options are those of a session."""
