"""A task that a model hands to a sub-agent, to a session of its own with the pinned skills in it from the start."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from skillshelf.catalog.prompt import told_to_models
from skillshelf.errors import SkillError
from skillshelf.session.results import clean, code_of, failure
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult

__all__ = ["Start", "run_task", "task_tool"]

Start = Callable[[Session, str], str | Awaitable[str]]
"""Runs a sub-agent on a session and a task, and gives its answer; the host decides what the sub-agent is."""

_DESCRIPTION = (
    "Hand a task to a sub-agent and get its answer. It starts with the skills you name and knows nothing of this "
    "conversation: say in the prompt all it needs."
)


def task_tool(session: Session) -> Tool:
    """The tool as a model is told of it, with the names of the skills that can be pinned."""
    names = sorted({skill.name for skill in told_to_models(session.skills)})
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
    """What the sub-agent answers; for a skill that is not there an error at once, and nothing is started."""
    given = arguments if isinstance(arguments, Mapping) else {}
    prompt, names = given.get("prompt"), given.get("skills") or []
    if not isinstance(prompt, str) or not prompt.strip():
        return failure("invalid_params", "task needs the parameter `prompt`: the task, in full")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return failure("invalid_params", "`skills` must be a list of names")
    try:
        # In a thread: somebody may be asked whether a skill may be loaded, and answers on this one.
        child = await asyncio.to_thread(session.child, [clean(name) for name in names])
    except SkillError as error:
        return failure(code_of(error), str(error))
    with child:
        answer = start(child, clean(prompt))
        return ToolResult(True, await answer if isawaitable(answer) else answer, {"skills": names})
