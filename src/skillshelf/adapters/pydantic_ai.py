"""Offer a session as a pydantic-ai toolset (extra `pydantic-ai`): its tools, and the catalog as instructions."""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from skillshelf.adapters.json_tools import Start, run_task
from skillshelf.adapters.json_tools import task_tool as task_schema
from skillshelf.session.session import Session

__all__ = ["SkillToolset", "task_tool"]


class SkillToolset(FunctionToolset[Any]):
    """The skills of a session for `Agent(toolsets=[...])`; `instructions` replaces its system prompt."""

    def __init__(
        self,
        session: Session,
        *,
        id: str = "skills",  # noqa: A002
        instructions: Callable[[], str] | None = None,
    ) -> None:
        # Called before each request, so that the skills are current.
        current = instructions or session.system_prompt
        super().__init__(id=id, instructions=lambda: current() or None)
        self.session = session

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the current tools of the session."""
        self.tools.clear()
        for tool in self.session.tools():
            function = _call_function(self.session, tool.name)
            self.add_tool(Tool.from_schema(function, tool.name, tool.description, dict(tool.input_schema)))
        return await super().get_tools(ctx)


def task_tool(session: Session, start: Start) -> Tool[Any]:
    """Return a tool for `Agent(tools=[...])` that gives a task to a sub-agent with the skills that the model names."""
    tool = task_schema(session)

    async def call(**arguments: Any) -> str:
        return (await run_task(session, arguments, start)).text

    return Tool.from_schema(call, tool.name, tool.description, dict(tool.input_schema))


def _call_function(session: Session, name: str) -> Callable[..., Awaitable[str]]:
    async def call(**arguments: Any) -> str:
        # An error is returned as text: the model can act on it, and it does not count as a retry.
        return (await session.acall(name, arguments)).text

    return call
