"""Offer a session's tools as plain JSON to the Anthropic and OpenAI APIs, without their packages."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from skillshelf.catalog.prompt import visible_to_model
from skillshelf.errors import SkillError, kind_of
from skillshelf.session.results import clean, failure
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult

__all__ = [
    "Start",
    "anthropic_result",
    "anthropic_tools",
    "arguments_in",
    "openai_result",
    "openai_tools",
    "run_task",
    "task_tool",
]


def anthropic_tools(session: Session) -> list[dict[str, Any]]:
    """Return the value for `tools=` of a message."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
        for tool in session.tools()
    ]


def anthropic_result(session: Session, block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `tool_result` block that answers a `tool_use` block."""
    result = session.call(block["name"], block.get("input") or {})
    answer = {"type": "tool_result", "tool_use_id": block["id"], "content": result.text}
    return answer if result.ok else {**answer, "is_error": True}


def openai_tools(session: Session) -> list[dict[str, Any]]:
    """Return the value for `tools=` of a chat completion."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
        }
        for tool in session.tools()
    ]


def openai_result(session: Session, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `tool` message that answers a tool call; arguments must be a JSON object, else it is an error."""
    function = call["function"]
    arguments = arguments_in(function.get("arguments"))
    if arguments is None:
        text = "Error: the arguments are not a JSON object; send them again"
    else:
        text = session.call(function["name"], arguments).text
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def arguments_in(text: str | None) -> dict[str, Any] | None:
    """Return the arguments that a model sent as text, or None if they are not a JSON object."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


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
