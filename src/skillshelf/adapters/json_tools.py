"""Offer skills as plain JSON to the Anthropic and OpenAI APIs, without their packages.

Every function takes a shelf, a session or `Conversations` as its target. With a shelf each conversation gets a session
of its own, found by the messages; a shelf without messages sends the text of a skill with every load. Calls and
messages are dictionaries or the objects of the APIs' own packages.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from inspect import isawaitable
from typing import Any

from skillshelf.adapters.conversations import Conversations, Target, conversations_of
from skillshelf.adapters.messages import SeenItem, seen_call, seen_result, seen_text
from skillshelf.catalog.prompt import visible_to_model
from skillshelf.errors import SkillError, kind_of
from skillshelf.session.results import clean, failure
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult

__all__ = [
    "Conversations",
    "Start",
    "anthropic_result",
    "anthropic_tools",
    "arguments_in",
    "openai_result",
    "openai_tools",
    "responses_result",
    "responses_tools",
    "run_task",
    "seen_items",
    "session_for",
    "system_prompt",
    "task_tool",
]

Messages = Iterable[Any]
"""The messages of a conversation as one of the APIs takes them; dictionaries and objects may be mixed."""


def session_for(target: Target, messages: Messages | None = None) -> Session:
    """Return the session of the conversation with these messages, to `decide` or to see what is `active`."""
    return conversations_of(target).session_for(items=_items(messages))


def system_prompt(target: Target, base: str = "", messages: Messages | None = None) -> str:
    """Return the system prompt for a request, with the skills that there are now."""
    items = _items(messages)
    return conversations_of(target).system_prompt(base, **({} if items is None else {"items": items}))


# Tools --------------------------------------------------------------------------------------------


def anthropic_tools(target: Target) -> list[dict[str, Any]]:
    """Return the value for `tools=` of a message."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
        for tool in conversations_of(target).current_tools()
    ]


def openai_tools(target: Target) -> list[dict[str, Any]]:
    """Return the value for `tools=` of a chat completion."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
        }
        for tool in conversations_of(target).current_tools()
    ]


def responses_tools(target: Target) -> list[dict[str, Any]]:
    """Return the value for `tools=` of a response."""
    # Strict schemas allow no optional parameter, and the session checks arguments anyway. The key is no text here,
    # because a profile has the same name, and only the tables of profiles may name one.
    loose = dict(strict=False)  # noqa: C408
    return [{"type": "function", **tool["function"], **loose} for tool in openai_tools(target)]


# Results ------------------------------------------------------------------------------------------


def anthropic_result(target: Target, block: Any, messages: Messages | None = None) -> dict[str, Any]:
    """Return the `tool_result` block that answers a `tool_use` block."""
    given = _member(block, "input") or {}
    result = _call(target, _member(block, "name"), given, _member(block, "id"), messages)
    answer = {"type": "tool_result", "tool_use_id": _member(block, "id"), "content": result.text}
    return answer if result.ok else {**answer, "is_error": True}


def openai_result(target: Target, call: Any, messages: Messages | None = None) -> dict[str, Any]:
    """Return the `tool` message that answers a tool call; arguments must be a JSON object, else it is an error."""
    function = _member(call, "function")
    if function is None:
        text = "Error: only calls of functions are answered here"
        return {"role": "tool", "tool_call_id": _member(call, "id"), "content": text}
    text = _call_text(target, _member(function, "name"), _member(function, "arguments"), _member(call, "id"), messages)
    return {"role": "tool", "tool_call_id": _member(call, "id"), "content": text}


def responses_result(target: Target, item: Any, items: Messages | None = None) -> dict[str, Any]:
    """Return the `function_call_output` item that answers a `function_call` item."""
    number = _member(item, "call_id")
    text = _call_text(target, _member(item, "name"), _member(item, "arguments"), number, items)
    return {"type": "function_call_output", "call_id": number, "output": text}


def _call(target: Target, name: str, given: Any, number: str | None, messages: Messages | None) -> ToolResult:
    items = _items(messages)
    return conversations_of(target).call(name, given, items=items, call_id=number or "")


def _call_text(target: Target, name: str, text: str | None, number: str | None, messages: Messages | None) -> str:
    arguments = arguments_in(text)
    if arguments is None:
        return NOT_AN_OBJECT
    return _call(target, name, arguments, number, messages).text


NOT_AN_OBJECT = "Error: the arguments are not a JSON object; send them again"
"""The answer to a call whose arguments are something else."""


def arguments_in(text: str | None) -> dict[str, Any] | None:
    """Return the arguments that a model sent as text, or None if they are not a JSON object."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


# Messages -----------------------------------------------------------------------------------------


def _items(messages: Messages | None) -> list[SeenItem] | None:
    return None if messages is None else seen_items(messages)


def seen_items(messages: Messages) -> list[SeenItem]:
    """Return messages of the Anthropic API, or of either OpenAI API, by value."""
    return [item for message in messages for item in _seen(message)]


def _seen(message: Any) -> Iterator[SeenItem]:
    kind = _member(message, "type")
    role = _member(message, "role")
    if kind == "function_call":
        yield seen_call(_member(message, "call_id"), _member(message, "name"), _member(message, "arguments"))
    elif kind == "function_call_output":
        yield seen_result(_member(message, "call_id"), _text(_member(message, "output")))
    elif role == "tool":
        yield seen_result(_member(message, "tool_call_id"), _text(_member(message, "content")))
    elif role is not None:
        yield from _blocks(str(role), _member(message, "content"))
        for call in _member(message, "tool_calls") or ():
            function = _member(call, "function") or _member(call, "custom")
            arguments = _member(function, "arguments") or _member(function, "input")
            yield seen_call(_member(call, "id"), _member(function, "name"), arguments)
    elif kind not in _LEFT_OUT:
        yield SeenItem("text", _plain_text(message), str(kind))


_TEXTS = ("text", "input_text", "output_text")
_LEFT_OUT = ("reasoning", "thinking", "redacted_thinking")
"""The items that a model writes for itself: programs send them back or not, as they like."""


def _blocks(role: str, content: Any) -> Iterator[SeenItem]:
    if content is None or isinstance(content, str):
        yield from seen_text(role, content or "")
        return
    for block in content:
        kind = _member(block, "type")
        if isinstance(block, str) or kind in _TEXTS:
            yield from seen_text(role, block if isinstance(block, str) else _member(block, "text"))
        elif kind == "tool_use":
            yield seen_call(_member(block, "id"), _member(block, "name"), _member(block, "input"))
        elif kind == "tool_result":
            yield seen_result(_member(block, "tool_use_id"), _text(_member(block, "content")))
        elif kind not in _LEFT_OUT:
            yield from seen_text(role, _plain_text(block))


def _text(content: Any) -> str:
    """Return the content of a result: a text, or the texts of its blocks."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(
        str(_member(block, "text")) if _member(block, "type") in _TEXTS else _plain_text(block) for block in content
    )


def _plain_text(value: Any) -> str:
    """Return a picture, a file or another block as JSON, without what only steers the request."""
    plain = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
    if isinstance(plain, Mapping):
        plain = {key: item for key, item in plain.items() if item is not None and key != "cache_control"}
    return json.dumps(plain, sort_keys=True, default=str)


def _member(value: Any, name: str) -> Any:
    """Return a member of a dictionary or of an object of an API's package; None if it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


# Sub-agents ---------------------------------------------------------------------------------------

Start = Callable[[Session, str], str | Awaitable[str]]
"""Runs a sub-agent on a session and a task, and returns its answer."""

_DESCRIPTION = (
    "Hand a task to a sub-agent and get its answer. It starts with the skills you name and knows nothing of this "
    "conversation: say in the prompt all it needs."
)


def task_tool(session: Session) -> Tool:
    """Return the tool `task`, with the names of the skills that can be pinned."""
    names = sorted({skill.name for skill in visible_to_model(session.skills)})
    skills = {"type": "array", "items": {"type": "string", **({"enum": names} if names else {})}}
    return Tool(
        "task",
        _DESCRIPTION,
        {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "the task, in full"},
                "skills": {**skills, "description": "skills whose instructions the sub-agent has from the start"},
            },
            "required": ["prompt"],
            "additionalProperties": False,
        },
    )


async def run_task(session: Session, arguments: Any, start: Start) -> ToolResult:
    """Return the answer of the sub-agent; an unknown skill is an error, and nothing is started."""
    given = arguments if isinstance(arguments, Mapping) else {}
    prompt, names = given.get("prompt"), given.get("skills") or []
    if not isinstance(prompt, str) or not prompt.strip():
        return failure("invalid_params", "task needs the parameter `prompt`: the task, in full")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return failure("invalid_params", "`skills` must be a list of names")
    try:
        # In a thread: loading a skill may need a confirmation that is answered in this one.
        child = await asyncio.to_thread(session.child, [clean(name) for name in names])
    except SkillError as error:
        return failure(kind_of(error).code, str(error))
    with child:
        answer = start(child, clean(prompt))
        return ToolResult(True, await answer if isawaitable(answer) else answer, {"skills": names})
