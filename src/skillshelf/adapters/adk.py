"""Offer skills to agents of the Google ADK (extra `adk`): the tools, and the catalog as instructions."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from skillshelf.adapters.conversations import Conversations, ConversationTools, Target, conversations_of
from skillshelf.adapters.messages import SeenItem, seen_call, seen_result, seen_text
from skillshelf.errors import ConfigurationError
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool

__all__ = ["AdkSkillTool", "AdkSkillToolset", "SkillToolset", "session_for", "skill_instructions", "skill_tools"]


class AdkSkillToolset(BaseToolset):
    """The skills of a shelf or of one session, for `LlmAgent(tools=[...])`.

    With a shelf each session of ADK, and each branch of it, has a session of its own, which `session_for(context)`
    gives; `options` are those of `shelf.session`. Tools and catalog are current in each request. `instructions=False`
    leaves the catalog to `skill_instructions`.
    """

    def __init__(self, target: Target, *, instructions: bool = True, **options: Any) -> None:
        super().__init__()
        # The cache is for tools that are slow to list; skills can change between two requests.
        self._use_invocation_cache = False
        self._instructions = instructions
        self.conversations = conversations_of(target, **options)

    def session_for(self, run: Any) -> Session:
        """Return the session of a conversation: of the context that a tool, a callback or an instruction gets."""
        return self.conversations.session_for(key=_key(run))

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the current tools of the conversation."""
        if readonly_context is None:
            tools = await asyncio.to_thread(self.conversations.current_tools)
        else:
            session = await self.conversations.asession_for(key=_key(readonly_context))
            tools = await asyncio.to_thread(self.conversations.tools, session)
        return [AdkSkillTool(self.conversations, tool) for tool in tools]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Add the catalog to the system instruction of the request."""
        if not self._instructions:
            return
        if text := await asyncio.to_thread(self.conversations.system_prompt, key=_key(tool_context)):
            llm_request.append_instructions([text])

    async def close(self) -> None:
        """End the sessions of all conversations."""
        self.conversations.close()


SkillToolset = AdkSkillToolset
"""The name to use."""


class AdkSkillTool(BaseTool):
    """One tool, for one request to the model."""

    def __init__(self, conversations: Conversations, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._conversations = conversations
        self._tool = tool
        self._request: LlmRequest | None = None

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = dict(self._tool.input_schema)
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=copy.deepcopy(schema)
        )

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Offer the tool in a request, bound to it: callbacks may still shorten what the model gets to see."""
        bound = copy.copy(self)
        bound._request = llm_request
        llm_request.append_tools([bound])

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, str]:
        """Call the tool in the session of the conversation."""
        # A live connection adds to what the model has without a request that could be looked at.
        seen = self._request is not None and _invocation(tool_context).live_request_queue is None
        result = await self._conversations.acall(
            self.name,
            args,
            key=_key(tool_context),
            items=list(_items(self._request)) if seen else None,
            call_id=tool_context.function_call_id or "",
        )
        return {"result" if result.ok else "error": result.text}


def skill_tools(target: Target, **options: Any) -> ConversationTools[AdkSkillToolset]:
    """Return the value for `LlmAgent(tools=...)`: one toolset, whose tools are current in each request."""
    toolset = AdkSkillToolset(target, instructions=False, **options)
    return ConversationTools([toolset], toolset.session_for)


def skill_instructions(target: Target, base: str = "", **options: Any) -> Callable[[ReadonlyContext], Awaitable[str]]:
    """Return a function for `LlmAgent(instruction=...)`; it is called for each request, so the skills are current.

    Give it the same options as `skill_tools`, so that both belong to the same conversations.
    """
    conversations = conversations_of(target, **options)

    async def instruction(context: ReadonlyContext) -> str:
        return await asyncio.to_thread(conversations.system_prompt, base, key=_key(context))

    return instruction


def session_for(run: Any) -> Session:
    """Return the session of a conversation, by the context that a tool or a callback of an agent with skills gets."""
    for tools in getattr(_invocation(run).agent, "tools", ()):
        if isinstance(tools, AdkSkillToolset):
            return tools.session_for(run)
    raise ConfigurationError("the agent of this context has no tools for skills")


# Conversations and messages -----------------------------------------------------------------------

_services: "WeakKeyDictionary[Any, object]" = WeakKeyDictionary()


def _invocation(run: Any) -> Any:
    """Return the invocation of a context; an invocation itself is given to plugins."""
    return getattr(run, "_invocation_context", run)


def _key(run: Any) -> Hashable:
    invocation = _invocation(run)
    session = invocation.session
    # Two services may hold a session of the same id, as all that begin with `session-1` do.
    service = _services.setdefault(invocation.session_service, object())
    return (service, session.app_name, session.user_id, session.id, invocation.branch or "")


def _items(request: LlmRequest | None) -> Iterator[SeenItem]:
    for content in request.contents if request else ():
        for part in content.parts or ():
            if call := part.function_call:
                yield seen_call(call.id, call.name or "", call.args)
            elif answer := part.function_response:
                response = answer.response or {}
                yield seen_result(answer.id, str(response.get("result", response.get("error", ""))), answer.name)
            elif part.text:
                yield from seen_text(content.role or "", part.text)
