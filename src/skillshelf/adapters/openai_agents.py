"""Offer skills to the OpenAI Agents SDK (extra `openai-agents`): tools and instructions."""

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper
from agents.tool_context import ToolContext

from skillshelf.adapters.conversations import (
    Conversations,
    ConversationTools,
    SeenItem,
    Target,
    conversations_of,
    seen_call,
    seen_result,
)
from skillshelf.adapters.json_tools import Start, arguments_in, run_task, seen_items
from skillshelf.adapters.json_tools import task_tool as task_schema
from skillshelf.errors import ConfigurationError
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool

__all__ = ["session_for", "skill_instructions", "skill_tools", "task_tool"]


def skill_instructions(
    target: Target, base: str = "", **options: Any
) -> Callable[[RunContextWrapper[Any], Agent[Any]], Any]:
    """Return a function for `Agent(instructions=...)`; it is called in each run, so the skills are current.

    Give it the same options as `skill_tools`, so that both belong to the same conversations.
    """
    conversations = conversations_of(target, **options)

    async def compose(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        return await asyncio.to_thread(conversations.system_prompt, base, **_run_of(context).conversation())

    return compose


def skill_tools(target: Target, **options: Any) -> ConversationTools[FunctionTool]:
    """Return the tools for `Agent(tools=[...])`.

    With a shelf each conversation has a session of its own, and `options` are those of `shelf.session`; a session is
    one conversation. `prefix` is put before the names of the tools, for an agent that has a tool of the same name.
    """
    conversations = conversations_of(target, **options)
    tools = [_function(conversations, tool) for tool in conversations.fixed_tools()]
    return ConversationTools(tools, lambda run: session_for(run, conversations))


def session_for(run: Any, target: Target | None = None) -> Session:
    """Return the session of a conversation: of a run context, or of a list of input items.

    The context of a tool call knows its agent, and the agent its skills; anything else needs the target.
    """
    if target is None:
        tools = getattr(getattr(run, "agent", None), "tools", ())
        found = [_CONVERSATIONS[tool] for tool in tools if isinstance(tool, _SkillFunctionTool)]
        if not found:
            raise ConfigurationError("the agent of this run has no skills; name the shelf")
        target = found[0]
    of_context = isinstance(run, RunContextWrapper)
    conversation = _run_of(run).conversation() if of_context else {"items": seen_items(run)}
    return conversations_of(target).session_for(**conversation)


def task_tool(session: Session, start: Start) -> FunctionTool:
    """Return a tool that gives a task to a sub-agent with the skills that the model names."""
    tool = task_schema(session)

    async def invoke(context: ToolContext[Any], text: str) -> str:
        return (await run_task(session, arguments_in(text), start)).text

    return FunctionTool(tool.name, tool.description, dict(tool.input_schema), invoke, strict_json_schema=False)


class _Run:
    """One run with one input, and the skill calls and results since: a tool is given only the input of the run."""

    def __init__(self, given: tuple[SeenItem, ...]) -> None:
        self.given = given
        self.since: list[SeenItem] = []

    def conversation(self) -> dict[str, Any]:
        """Return what identifies the conversation of this run."""
        return {"run": self, "items": self.given, "since": list(self.since)}


_runs: dict[int, tuple[weakref.ref[Any], dict[tuple[SeenItem, ...], _Run]]] = {}
_finding = threading.Lock()


def _run_of(context: RunContextWrapper[Any]) -> _Run:
    """Return the run of a context.

    All contexts of one run, and of the agents that it uses as tools, share one `usage`; the input tells them apart.
    """
    given, number = tuple(seen_items(context.turn_input)), id(context.usage)
    with _finding:
        known = _runs.get(number)
        if known is None or known[0]() is not context.usage:
            known = _runs[number] = weakref.ref(context.usage, lambda _: _runs.pop(number, None)), {}
        return known[1].setdefault(given, _Run(given))


class _SkillFunctionTool(FunctionTool):
    """A tool of this module, so that it can be found among the tools of an agent."""

    __hash__ = object.__hash__


_CONVERSATIONS: weakref.WeakKeyDictionary[_SkillFunctionTool, Conversations] = weakref.WeakKeyDictionary()


def _function(conversations: Conversations, tool: Tool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], text: str) -> str:
        arguments = arguments_in(text)
        if arguments is None:
            return "Error: the arguments are not a JSON object; send them again"
        number, run = context.tool_call_id, _run_of(context)
        seen = frozenset[str]() if _is_filtered(context) else None
        result = await conversations.acall(tool.name, arguments, call_id=number, visible=seen, **run.conversation())
        run.since += [seen_call(number, tool.name, arguments), seen_result(number, result.text)]
        return result.text

    async def is_offered(context: RunContextWrapper[Any], agent: Any) -> bool:
        current = await asyncio.to_thread(conversations.current_tools)
        return any(one.name == tool.name for one in current)

    function = _SkillFunctionTool(
        tool.name,
        tool.description,
        dict(tool.input_schema),
        invoke,
        # Strict schemas allow no optional parameter, and the session checks arguments anyway.
        strict_json_schema=False,
        is_enabled=is_offered,
    )
    _CONVERSATIONS[function] = conversations
    return function


def _is_filtered(context: ToolContext[Any]) -> bool:
    """Return True if the program changes the input of the model after this module could see it."""
    return context.run_config is None or context.run_config.call_model_input_filter is not None
