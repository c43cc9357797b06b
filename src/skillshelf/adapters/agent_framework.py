"""Offer skills to agents of the Microsoft agent-framework (extra `agent-framework`): tools, and instructions."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from typing import Any

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    SessionContext,
    included_messages,
)

from skillshelf.adapters.conversations import Conversations, ConversationTools, SameObject, Target, conversations_of
from skillshelf.adapters.messages import SeenItem, seen_call, seen_result, seen_text
from skillshelf.errors import ConfigurationError
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool

__all__ = ["SkillFunctionTool", "SkillProvider", "session_for", "skill_instructions", "skill_tools"]


class SkillProvider(ContextProvider):
    """The skills of a shelf or of one session, for `Agent(context_providers=[...])`.

    With a shelf each `AgentSession`, by its id, has a session of its own, which `session_for(run)` gives; a run without
    one is a conversation of its own. `options` are those of `shelf.session`. Tools and catalog are composed for
    each run. `base` stands before the catalog; `tools=False` leaves the tools to `skill_tools`.
    """

    def __init__(
        self, target: Target, base: str = "", *, source_id: str = "skills", tools: bool = True, **options: Any
    ) -> None:
        super().__init__(source_id)
        self._base = base
        self._tools = tools
        self.conversations = conversations_of(target, **options)

    def session_for(self, run: Any) -> Session:
        """Return the session of a conversation: of an `AgentSession`, or of the context that a tool gets."""
        return self.conversations.session_for(key=_key(run))

    async def before_run(self, *, agent: Any, session: AgentSession, context: SessionContext, state: Any) -> None:
        """Add the catalog, and tools that see the messages of this run."""
        own = await self.conversations.asession_for(key=_key(session))
        if text := await asyncio.to_thread(own.system_prompt, self._base):
            context.extend_instructions(self.source_id, text)
        if self._tools:
            requests = _SentRequests()
            context.extend_middleware(self.source_id, requests)
            tools = await asyncio.to_thread(self.conversations.tools, own)
            context.extend_tools(
                self.source_id, [SkillFunctionTool(self.conversations, tool, requests) for tool in tools]
            )


class _SentRequests(ChatMiddleware):
    """The last request of a run, as the model got it: what shortens the messages changes this object."""

    def __init__(self) -> None:
        self._last: ChatContext | None = None

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        self._last = context
        await call_next()

    def items(self) -> list[SeenItem]:
        return [] if self._last is None else list(_items(included_messages(list(self._last.messages))))


class SkillFunctionTool(FunctionTool):
    """One tool. It can remind a model of a text only if it was made for a run, by `SkillProvider`."""

    def __init__(self, conversations: Conversations, tool: Tool, requests: _SentRequests | None = None) -> None:
        self._conversations = conversations
        self._requests = requests
        schema = copy.deepcopy(dict(tool.input_schema))
        super().__init__(name=tool.name, description=tool.description, func=self._call, input_model=schema)

    def _prepare_arguments(self, arguments: Any) -> dict[str, Any]:
        # The session checks arguments itself, and says what is wrong with them; the framework would not tell the model.
        return dict(arguments or {})

    async def _call(self, /, ctx: FunctionInvocationContext, **arguments: Any) -> str:
        items = self._requests.items() if self._requests else None
        result = await self._conversations.acall(self.name, arguments, key=_key(ctx), items=items)
        # An error is returned as text: of an exception the framework tells the model nothing.
        return result.text

    def session_for(self, run: Any) -> Session:
        """Return the session of a conversation: of an `AgentSession`, or of the context that a tool gets."""
        return self._conversations.session_for(key=_key(run))


def skill_tools(target: Target, **options: Any) -> ConversationTools[FunctionTool]:
    """Return the tools for `Agent(tools=...)`; they cannot see messages, so every load sends the text."""
    conversations = conversations_of(target, **options)
    tools = [SkillFunctionTool(conversations, tool) for tool in conversations.fixed_tools()]
    return ConversationTools(tools, lambda run: conversations.session_for(key=_key(run)))


def skill_instructions(target: Target, base: str = "", **options: Any) -> SkillProvider:
    """Return a context provider that adds the catalog to each run, and no tools.

    Give it the same options as `skill_tools`, so that both belong to the same conversations.
    """
    return SkillProvider(target, base, source_id="skill_instructions", tools=False, **options)


def session_for(run: FunctionInvocationContext) -> Session:
    """Return the session of a conversation, by the context that a tool of an agent with skills gets."""
    for tool in [run.function, *(run.tools or ())]:
        if isinstance(tool, SkillFunctionTool):
            return tool.session_for(run)
    raise ConfigurationError("the agent of this context has no tools for skills")


# Conversations and messages -----------------------------------------------------------------------


def _key(run: Any) -> Hashable | None:
    session = run if isinstance(run, AgentSession) else run.session
    if session is not None:
        return str(session.session_id)
    # Without a session the list of tools is what the calls of one run share, and no other run has it.
    return None if run.tools is None else SameObject(run.tools)


def _items(messages: Iterable[Message]) -> Iterator[SeenItem]:
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                yield seen_call(content.call_id, content.name or "", content.arguments)
            elif content.type == "function_result":
                yield seen_result(content.call_id, str(content.result))
            elif content.type == "text":
                yield from seen_text(str(message.role), content.text or "")
