"""A session as a pydantic-ai toolset: its tools, and the catalog as instructions. Needs the extra `pydantic-ai`."""

from collections.abc import Callable
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from skillshelf.adapters.json_tools import Start, run_task
from skillshelf.adapters.json_tools import task_tool as task_of
from skillshelf.session.session import Session

__all__ = ["SkillToolset", "task_tool"]


class SkillToolset(FunctionToolset[Any]):
    """The skills of a session for `Agent(toolsets=[...])`; `instructions` replaces what the model is told of them."""

    def __init__(
        self,
        session: Session,
        *,
        id: str = "skills",  # noqa: A002
        instructions: Callable[[], str] | None = None,
    ) -> None:
        # Asked before each request, so that the model hears of skills that came or went.
        told = instructions or session.system_prompt
        super().__init__(id=id, instructions=lambda: told() or None)
        self.session = session

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools of the session as they are now."""
        self.tools.clear()
        for tool in self.session.tools():
            function = _calling(self.session, tool.name)
            self.add_tool(Tool.from_schema(function, tool.name, tool.description, dict(tool.input_schema)))
        return await super().get_tools(ctx)


def task_tool(session: Session, start: Start) -> Tool[Any]:
    """For `Agent(tools=[...])`: hands a task to a sub-agent that starts with the skills the model names."""
    tool = task_of(session)

    async def call(**arguments: Any) -> str:
        return (await run_task(session, arguments, start)).text

    return Tool.from_schema(call, tool.name, tool.description, dict(tool.input_schema))


def _calling(session: Session, name: str) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        # An error is text too: the model can act on it, and no retry is used up.
        return session.call(name, arguments).text

    return call
