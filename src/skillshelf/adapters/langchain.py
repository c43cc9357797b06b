"""Offer skills to LangChain (extra `langchain`): tools, and a middleware for `create_agent` with the system prompt."""

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool, ToolException

from skillshelf.adapters.conversations import Conversations, ConversationTools, Target, own_conversations
from skillshelf.adapters.json_tools import Start, run_task, task_tool
from skillshelf.adapters.messages import SeenItem, marks_of, seen_call, seen_result, seen_text, visible_digests
from skillshelf.core.limits import CONVERSATIONS_KEPT
from skillshelf.errors import ConfigurationError
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
else:
    try:
        from langchain.agents.middleware import AgentMiddleware
    except ImportError:
        # `langchain-core` alone has no agents; the tools work without them.
        AgentMiddleware = object

__all__ = ["LangChainSkillTool", "SkillMiddleware", "SkillTaskTool", "SkillTool", "session_for", "skill_tools"]


class LangChainSkillTool(BaseTool):
    """One skill tool; in a graph it sees the thread and the messages that it is called with."""

    conversations: Any
    requests: Any = None
    # An error becomes a message with the status `error`, which the model can act on.
    handle_tool_error: bool = True

    def __init__(self, target: Session | Conversations, tool: Tool, requests: "_Requests | None" = None) -> None:
        super().__init__(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.input_schema),
            conversations=target if isinstance(target, Conversations) else Conversations(target),
            requests=requests,
        )

    def _run(self, /, **arguments: Any) -> str:
        call = self._call_of(arguments)
        return _text(self.conversations.call(self.name, arguments, **call))

    async def _arun(self, /, **arguments: Any) -> str:
        call = self._call_of(arguments)
        return _text(await self.conversations.acall(self.name, arguments, **call))

    def _call_of(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Take the runtime out of the arguments, and return what it says about the call and its conversation."""
        runtime = arguments.get("runtime")
        if runtime is not None and hasattr(runtime, "tool_call_id"):
            del arguments["runtime"]
        # The config is asked for here, because a parameter would swallow an argument of that name.
        conversation = _conversation(runtime, ensure_config())
        number = str(getattr(runtime, "tool_call_id", None) or "")
        seen = self.requests.visible(number, conversation["items"]) if self.requests is not None else None
        return {**conversation, "call_id": number, "visible": seen}

    def func(self, runtime: Any = None) -> str:
        """Stand for the signature of the tool: LangGraph looks here for the parameter `runtime`, and fills it."""
        raise NotImplementedError

    @property
    def _injected_args_keys(self) -> frozenset[str]:
        return frozenset({"runtime"})


SkillTool = LangChainSkillTool
"""The name of 0.1."""


class SkillTaskTool(BaseTool):
    """The tool that gives a task to a sub-agent with the skills that the model names."""

    session: Any
    start: Any
    handle_tool_error: bool = True

    def __init__(self, session: Session, start: Start) -> None:
        tool = task_tool(session)
        super().__init__(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.input_schema),
            session=session,
            start=start,
        )

    def _run(self, /, **arguments: Any) -> str:
        return asyncio.run(self._arun(**arguments))

    async def _arun(self, /, **arguments: Any) -> str:
        return _text(await run_task(self.session, arguments, self.start))


def skill_tools(target: Target, **options: Any) -> ConversationTools[BaseTool]:
    """Return the tools, for `bind_tools` or an agent; without a skill those of the profile, for skills to come.

    With a shelf each conversation has a session of its own, and `options` are those of `shelf.session`; a session is
    one conversation. `prefix` is put before the names of the tools. Called outside a graph, a tool sees no messages
    and always sends the text.
    """
    conversations = own_conversations(target, **options)
    tools = [LangChainSkillTool(conversations, tool) for tool in conversations.fixed_tools()]
    return ConversationTools(tools, lambda run: session_for(run, conversations))


def session_for(run: Any, target: Session | Conversations | None = None) -> Session:
    """Return the session of a conversation: of the runtime of a tool, a thread id, a config or a list of messages.

    The runtime of a tool knows the other tools, and they their skills; anything else needs the target, or `session_for`
    of what `skill_tools` or `SkillMiddleware` returned.
    """
    if target is None:
        found = [tool for tool in getattr(run, "tools", ()) if isinstance(tool, LangChainSkillTool)]
        if not found:
            raise ConfigurationError("this run has no skill tools; name the target")
        target = found[0].conversations
    if isinstance(target, Shelf):
        # Two agents with one shelf have conversations of their own, which may have the same thread ids.
        raise ConfigurationError("a shelf may have several agents; use `session_for` of the middleware or of the tools")
    conversations = own_conversations(target)
    if isinstance(run, str):
        return conversations.session_for(key=(run, ""))
    if isinstance(run, Mapping):
        return conversations.session_for(**_conversation(None, run))
    if hasattr(run, "state"):
        return conversations.session_for(**_conversation(run, getattr(run, "config", None) or {}))
    return conversations.session_for(items=seen_items(run))


class SkillMiddleware(AgentMiddleware):  # type: ignore[misc, type-arg, unused-ignore]
    """The skills of a shelf, or of one session, for `create_agent(middleware=[...])`: the tools and the system prompt.

    The prompt is composed for each request. Put it last, so that it sees the messages as the others leave them.
    """

    def __init__(self, target: Target, **options: Any) -> None:
        if AgentMiddleware is object:
            raise ConfigurationError("SkillMiddleware needs the package langchain: pip install 'skillshelf[langchain]'")
        super().__init__()
        self.conversations = own_conversations(target, **options)
        self._requests = _Requests()
        self.tools = [
            LangChainSkillTool(self.conversations, tool, self._requests) for tool in self.conversations.fixed_tools()
        ]

    def session_for(self, run: Any) -> Session:
        """Return the session of a conversation: of the runtime of a tool, a thread id, a config or messages."""
        return session_for(run, self.conversations)

    def wrap_model_call(
        self, request: "ModelRequest[Any]", handler: "Callable[[ModelRequest[Any]], ModelResponse[Any]]"
    ) -> "ModelResponse[Any]":
        """Add the skills to the request."""
        changed = self._with_skills(request, _current_config())
        response = handler(changed)
        self._note(request, response)
        return response

    async def awrap_model_call(
        self, request: "ModelRequest[Any]", handler: "Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]"
    ) -> "ModelResponse[Any]":
        """Add the skills to the request."""
        changed = await asyncio.to_thread(self._with_skills, request, _current_config())
        response = await handler(changed)
        self._note(request, response)
        return response

    def _with_skills(self, request: "ModelRequest[Any]", config: Mapping[str, Any]) -> "ModelRequest[Any]":
        conversation = _conversation_of(request.state.get("messages", ()), config)
        session = self.conversations.session_for(**conversation)
        ours = {tool.name for tool in self.tools}
        others = [tool for tool in request.tools if not (isinstance(tool, BaseTool) and tool.name in ours)]
        tools = self.conversations.tools(session)
        current = [LangChainSkillTool(self.conversations, tool, self._requests) for tool in tools]
        base = request.system_message.content if request.system_message is not None else ""
        if isinstance(base, str):
            text = session.system_prompt(base)
            return request.override(tools=[*others, *current], system_message=SystemMessage(text) if text else None)
        blocks = [*base, {"type": "text", "text": session.system_prompt()}]
        return request.override(tools=[*others, *current], system_message=SystemMessage(content=blocks))

    def _note(self, request: "ModelRequest[Any]", response: Any) -> None:
        """Keep what the model saw when it made its calls."""
        said = getattr(response, "result", None) or []
        calls = [call["id"] or "" for message in said if isinstance(message, AIMessage) for call in message.tool_calls]
        self._requests.add(calls, seen_items(request.state.get("messages", ())), seen_items(request.messages))


class _Requests:
    """The results that the model saw when it made a call, for the tools that are called next.

    A middleware may send the model less than the state has. Call ids need not be unique, so the state counts too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, bytes], frozenset[str]] = OrderedDict()

    def add(self, calls: Iterable[str], state: list[SeenItem], request: list[SeenItem]) -> None:
        """Note the messages of the state and of a request, and the calls that the model answered with."""
        visible, mark = frozenset(visible_digests(request)), marks_of("", state)[-1]
        with self._lock:
            for number in calls:
                self._seen[number, mark] = visible
                self._seen.move_to_end((number, mark))
            while len(self._seen) > CONVERSATIONS_KEPT:
                self._seen.popitem(last=False)

    def visible(self, number: str, state: list[SeenItem] | None) -> frozenset[str]:
        """Return the digests of the results that the model saw when it made a call; none if that is unknown."""
        marks = marks_of("", state or [])
        with self._lock:
            found = [seen for mark in reversed(marks) if (seen := self._seen.get((number, mark))) is not None]
        return found[0] if found else frozenset()


# Runs and messages --------------------------------------------------------------------------------


def _current_config() -> Mapping[str, Any]:
    from langgraph.config import get_config

    try:
        return get_config()
    except RuntimeError:
        return {}


def _thread(config: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the thread of a run, and the place of the graph in it: a sub-agent is a conversation of its own."""
    given = config.get("configurable") or {}
    if (thread := given.get("thread_id")) is None:
        return None
    return str(thread), str(given.get("checkpoint_ns") or "").rpartition("|")[0]


def _conversation(runtime: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies the conversation of a tool call."""
    state = getattr(runtime, "state", None)
    if isinstance(state, list):
        messages: Any = state
    else:
        messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    return _conversation_of(messages, getattr(runtime, "config", None) or config)


def _conversation_of(messages: Iterable[BaseMessage] | None, config: Mapping[str, Any]) -> dict[str, Any]:
    items = None if messages is None else seen_items(messages)
    return {"key": _thread(config), "items": items}


def seen_items(messages: Iterable[BaseMessage]) -> list[SeenItem]:
    """Return messages by value."""
    return [item for message in messages for item in _seen(message)]


def _seen(message: BaseMessage) -> Iterator[SeenItem]:
    text = _content(message.content)
    if isinstance(message, ToolMessage):
        yield seen_result(message.tool_call_id, text, message.name)
        return
    role = "user" if isinstance(message, HumanMessage) else "assistant" if isinstance(message, AIMessage) else "system"
    yield from seen_text(role, text)
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield seen_call(call["id"], call["name"], call["args"])


_LEFT_OUT = ("tool_use", "tool_call", "function_call", "thinking", "redacted_thinking", "reasoning", "input_json_delta")


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif block.get("type") == "text":
            parts.append(str(block.get("text") or ""))
        elif block.get("type") not in _LEFT_OUT:
            parts.append(json.dumps(block, sort_keys=True, default=str))
    return "".join(parts)


def _text(result: ToolResult) -> str:
    if not result.ok:
        raise ToolException(result.text)
    return result.text
