"""Offer skills to the OpenAI Agents SDK (extra `openai-agents`): tools and instructions."""

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper
from agents.tool_context import ToolContext

from skillshelf.adapters.conversations import Conversations, ConversationTools, Target, conversations_of
from skillshelf.adapters.json_tools import NOT_AN_OBJECT, Start, arguments_in, run_task, seen_items
from skillshelf.adapters.json_tools import task_tool as task_schema
from skillshelf.adapters.messages import SeenItem, seen_call, seen_result, visible_digests
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
        return await asyncio.to_thread(conversations.system_prompt, base, **_started(context, agent).conversation())

    return compose


def skill_tools(target: Target, **options: Any) -> ConversationTools[FunctionTool]:
    """Return the tools for `Agent(tools=[...])`.

    With a shelf each conversation has a session of its own, and `options` are those of `shelf.session`; a session is
    one conversation. `prefix` is put before the names of the tools, for an agent that has a tool of the same name.
    """
    conversations = conversations_of(target, **options)
    tools = [_function(conversations, tool) for tool in conversations.fixed_tools()]
    return ConversationTools(tools, lambda run: session_for(run, conversations))


def session_for(run: Any, target: Target | None = None, **options: Any) -> Session:
    """Return the session of a conversation: of a run context, or of a list of input items.

    The context of a tool call knows its agent, and the agent its skills; anything else needs the target, and a shelf
    the same options as `skill_tools`.
    """
    if target is None:
        tools = getattr(getattr(run, "agent", None), "tools", ())
        found = [_CONVERSATIONS[tool] for tool in tools if isinstance(tool, _SkillFunctionTool)]
        if not found:
            raise ConfigurationError("the agent of this run has no skills; name the shelf")
        target = found[0]
    of_context = isinstance(run, RunContextWrapper)
    conversation = _run_of(run).conversation() if of_context else {"items": seen_items(run)}
    return conversations_of(target, **options).session_for(**conversation)


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
        self._since: list[tuple[SeenItem, object]] = []

    def conversation(self) -> dict[str, Any]:
        """Return what identifies the conversation of this run."""
        return {"run": self, "items": self.given, "since": [item for item, _ in self._since]}

    def add(self, agent: object, *items: SeenItem) -> None:
        """Note a call of an agent, and its result."""
        self._since += [(item, agent) for item in items]

    def visible(self, agent: Any) -> set[str]:
        """Return the digests of the results that the model of an agent sees.

        Where agents hand over to each other, what is left of earlier results cannot be seen.
        """
        stays = agent is not None and not getattr(agent, "handoffs", ())
        return visible_digests([*self.given, *(item for item, other in self._since if stays and other is agent)])


class _RunsOfUsage:
    """The runs that share one `usage`: a run, and those of the agents that it uses as tools."""

    def __init__(self, usage: Any, forget: Callable[[Any], object]) -> None:
        self.usage = weakref.ref(usage, forget)
        self.runs: dict[tuple[tuple[SeenItem, ...], object], _Run] = {}
        # Each run has one context for its agents, and tools are given copies of it: the agent leads from one to the
        # other. The input alone does not, since a model can hand on what it was given to the letter.
        self.names: weakref.WeakKeyDictionary[RunContextWrapper[Any], object] = weakref.WeakKeyDictionary()
        self.by_agent: dict[tuple[tuple[SeenItem, ...], int], object] = {}


_runs: dict[int, _RunsOfUsage] = {}
_finding = threading.Lock()


def _started(context: RunContextWrapper[Any], agent: object) -> _Run:
    """Return the run of a context that the SDK made for the run itself, before a request of an agent."""
    given = tuple(seen_items(context.turn_input))
    with _finding:
        known = _runs_with(context)
        name = known.by_agent[given, id(agent)] = known.names.setdefault(context, object())
        return known.runs.setdefault((given, name), _Run(given))


def _run_of(context: RunContextWrapper[Any]) -> _Run:
    """Return the run of a context that a tool or a hook is given."""
    given = tuple(seen_items(context.turn_input))
    with _finding:
        known = _runs_with(context)
        name = known.by_agent.get((given, id(getattr(context, "agent", None)))) or known.names.get(context)
        return known.runs.setdefault((given, name), _Run(given))


def _runs_with(context: RunContextWrapper[Any]) -> _RunsOfUsage:
    number = id(context.usage)
    known = _runs.get(number)
    if known is None or known.usage() is not context.usage:
        known = _runs[number] = _RunsOfUsage(context.usage, lambda _: _runs.pop(number, None))
    return known


class _SkillFunctionTool(FunctionTool):
    """A tool of this module, so that it can be found among the tools of an agent."""

    __hash__ = object.__hash__


_CONVERSATIONS: weakref.WeakKeyDictionary[_SkillFunctionTool, Conversations] = weakref.WeakKeyDictionary()


def _function(conversations: Conversations, tool: Tool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], text: str) -> str:
        arguments = arguments_in(text)
        if arguments is None:
            return NOT_AN_OBJECT
        number, run = context.tool_call_id, _run_of(context)
        seen = set[str]() if _is_filtered(context) else run.visible(context.agent)
        result = await conversations.acall(tool.name, arguments, call_id=number, visible=seen, **run.conversation())
        run.add(context.agent, seen_call(number, tool.name, arguments), seen_result(number, result.text))
        return result.text

    async def is_offered(context: RunContextWrapper[Any], agent: Any) -> bool:
        _started(context, agent)
        current = await asyncio.to_thread(conversations.current_tools)
        for one in current:
            if one.name == tool.name:
                # The SDK looks at these after it asked: they name the skills that there are now.
                made.description, made.params_json_schema = one.description, dict(one.input_schema)
                return True
        return False

    made = _SkillFunctionTool(
        tool.name,
        tool.description,
        dict(tool.input_schema),
        invoke,
        # Strict schemas allow no optional parameter, and the session checks arguments anyway.
        strict_json_schema=False,
        is_enabled=is_offered,
    )
    _CONVERSATIONS[made] = conversations
    return made


def _is_filtered(context: ToolContext[Any]) -> bool:
    """Return True if the program changes the input of the model after this module could see it."""
    return context.run_config is None or context.run_config.call_model_input_filter is not None
