"""A session's tools as plain JSON for the Anthropic and OpenAI APIs; no package of theirs is needed."""

import json
from collections.abc import Mapping
from typing import Any

from skillshelf.session.session import Session

__all__ = ["anthropic_result", "anthropic_tools", "arguments_in", "openai_result", "openai_tools"]


def anthropic_tools(session: Session) -> list[dict[str, Any]]:
    """For `tools=` of a message."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
        for tool in session.tools()
    ]


def anthropic_result(session: Session, block: Mapping[str, Any]) -> dict[str, Any]:
    """The `tool_result` block that answers a `tool_use` block."""
    result = session.call(block["name"], block.get("input") or {})
    answer = {"type": "tool_result", "tool_use_id": block["id"], "content": result.text}
    return answer if result.ok else {**answer, "is_error": True}


def openai_tools(session: Session) -> list[dict[str, Any]]:
    """For `tools=` of a chat completion."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
        }
        for tool in session.tools()
    ]


def openai_result(session: Session, call: Mapping[str, Any]) -> dict[str, Any]:
    """The `tool` message that answers a tool call; arguments that are no JSON object are an error for the model."""
    function = call["function"]
    arguments = arguments_in(function.get("arguments"))
    if arguments is None:
        text = "Error: the arguments are not a JSON object; send them again"
    else:
        text = session.call(function["name"], arguments).text
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def arguments_in(text: str | None) -> dict[str, Any] | None:
    """The arguments that a model sent as text; None if they are no JSON object."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None
