"""Offer skills as a pydantic-ai toolset (extra `pydantic-ai`): the tools, and the catalog as instructions."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic_ai import ModelMessage, RunContext, Tool
from pydantic_ai.messages import (
    InstructionPart,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from skillshelf.adapters.conversations import Target, own_conversations
from skillshelf.adapters.json_tools import NOT_AN_OBJECT, Start, run_task
from skillshelf.adapters.json_tools import task_tool as task_schema
from skillshelf.adapters.messages import SeenItem, seen_call, seen_result, seen_text
from skillshelf.session.session import Session

__all__ = ["Answer", "SkillToolset", "task_tool", "text_tool"]


class SkillToolset(FunctionToolset[Any]):
    """The skills of a shelf or of one session, for `Agent(toolsets=[...])`.

    With a shelf each conversation has a session of its own, which `session_for(ctx)` gives; `options` are those of
    `shelf.session`. A session is one conversation. `instructions` replaces the system prompt of the session; `prefix`
    is put before the names of the tools, for an agent that has a tool of the same name.
    """

    def __init__(
        self,
        target: Target,
        *,
        id: str = "skills",  # noqa: A002
        instructions: Callable[[], str] | None = None,
        prefix: str = "",
        **options: Any,
    ) -> None:
        super().__init__(id=id)
        self._compose = instructions
        self._run: str | None = None
        self.conversations = own_conversations(target, **({"prefix": prefix} if prefix else {}), **options)
        # Only where the program holds the session itself.
        self.session = target if isinstance(target, Session) else None

    async def for_run(self, ctx: RunContext[Any]) -> "SkillToolset":
        """Return a toolset for one run, whose conversation is found by the messages that it starts with."""
        toolset = SkillToolset(self.conversations, id=self.id or "skills", instructions=self._compose)
        toolset.session = self.session
        toolset._run = ctx.run_id
        return toolset

    async def __aexit__(self, *args: Any) -> bool | None:
        """End the run: a later one can continue the conversation."""
        if self._run is not None:
            self.conversations.end_run(self._run)
        return await super().__aexit__(*args)

    def session_for(self, run: RunContext[Any]) -> Session:
        """Return the session of the conversation that a run belongs to."""
        return self.conversations.session_for(**_conversation(run))

    async def get_instructions(self, ctx: RunContext[Any]) -> list[InstructionPart] | None:
        """Return the catalog as it is now; it is asked for before each request."""
        session = await self.conversations.asession_for(**_conversation(ctx))
        text = await asyncio.to_thread(self._compose or session.system_prompt)
        return [InstructionPart(text, dynamic=True)] if text else None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the current tools of the session."""
        session = await self.conversations.asession_for(**_conversation(ctx))
        tools = await asyncio.to_thread(self.conversations.tools, session)
        self.tools.clear()
        for tool in tools:
            self.add_tool(text_tool(self._function(tool.name), tool.name, tool.description, tool.input_schema))
        return await super().get_tools(ctx)

    async def answer(self, ctx: RunContext[Any], name: str, arguments: dict[str, Any]) -> str:
        """Return the text that answers a call of a skill tool, for a tool of your own that passes calls on."""
        conversation = _conversation(ctx)
        result = await self.conversations.acall(name, arguments, call_id=ctx.tool_call_id or "", **conversation)
        # An error is returned as text: the model can act on it, and it does not count as a retry.
        return result.text

    def _function(self, name: str) -> "Answer":
        async def call(ctx: RunContext[Any], arguments: dict[str, Any]) -> str:
            return await self.answer(ctx, name, arguments)

        return call


Answer = Callable[[RunContext[Any], dict[str, Any]], Awaitable[str]]
"""Returns the text that answers a call with its arguments."""


def text_tool(answer: Answer, name: str, description: str, schema: Mapping[str, Any]) -> Tool[Any]:
    """Return a tool that answers every call with text, also one whose arguments are no object.

    The framework passes any JSON value on to a tool with a schema of its own, and a run would end with an exception.
    """

    # Positional only: a model may send an argument of any name.
    async def call(ctx: RunContext[Any], /, **arguments: Any) -> str:
        return NOT_AN_OBJECT if _WRONG in arguments else await answer(ctx, arguments)

    tool: Tool[Any] = Tool.from_schema(call, name, description, dict(schema), takes_ctx=True)
    tool.function_schema.validator = SchemaValidator(
        core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, dict) else {_WRONG: value}
        )
    )
    return tool


_WRONG = "not an object"
"""The one argument of a call whose arguments are no object."""


def task_tool(session: Session, start: Start) -> Tool[Any]:
    """Return a tool for `Agent(tools=[...])` that gives a task to a sub-agent with the skills that the model names."""
    tool = task_schema(session)

    async def answer(ctx: RunContext[Any], arguments: dict[str, Any]) -> str:
        return (await run_task(session, arguments, start)).text

    return text_tool(answer, tool.name, tool.description, tool.input_schema)


def _conversation(ctx: RunContext[Any]) -> dict[str, Any]:
    """Return what identifies the conversation of a run: a fork has its id too, so the messages decide."""
    return {"scope": ctx.conversation_id or "", "run": ctx.run_id, "items": seen_items(ctx.messages)}


def seen_items(messages: Iterable[ModelMessage]) -> list[SeenItem]:
    """Return messages by value."""
    return [item for message in messages for item in _seen(message)]


def _seen(message: ModelMessage) -> Iterator[SeenItem]:
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            yield seen_call(part.tool_call_id, part.tool_name, part.args)
        elif isinstance(part, ToolReturnPart):
            yield seen_result(part.tool_call_id, part.model_response_str(), part.tool_name)
        elif isinstance(part, RetryPromptPart) and part.tool_name is not None:
            yield seen_result(part.tool_call_id, part.model_response(), part.tool_name)
        elif isinstance(part, UserPromptPart):
            yield from seen_text("user", _text(part.content))
        elif isinstance(part, TextPart):
            yield from seen_text("assistant" if isinstance(message, ModelResponse) else "user", part.content)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return json.dumps([item if isinstance(item, str) else repr(item) for item in content])
