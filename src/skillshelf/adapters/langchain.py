"""Offer a session's tools to LangChain (extra `langchain`); the system prompt is `session.system_prompt(...)`."""

import asyncio
from typing import Any

from langchain_core.tools import BaseTool, ToolException

from skillshelf.adapters.json_tools import Start, run_task, task_tool
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult

__all__ = ["LangChainSkillTool", "SkillTaskTool", "SkillTool", "skill_tools"]


class LangChainSkillTool(BaseTool):
    """One tool of a session."""

    session: Any
    # An error becomes a message with the status `error`, which the model can act on.
    handle_tool_error: bool = True

    def __init__(self, session: Session, tool: Tool) -> None:
        super().__init__(
            name=tool.name, description=tool.description, args_schema=dict(tool.input_schema), session=session
        )

    def _run(self, /, **arguments: Any) -> str:
        return _text(self.session.call(self.name, arguments))

    async def _arun(self, /, **arguments: Any) -> str:
        return await asyncio.to_thread(self._run, **arguments)


SkillTool = LangChainSkillTool
"""The name of 0.1."""


class SkillTaskTool(LangChainSkillTool):
    """The tool that gives a task to a sub-agent with the skills that the model names."""

    start: Any

    def __init__(self, session: Session, start: Start) -> None:
        tool = task_tool(session)
        BaseTool.__init__(
            self,
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


def skill_tools(session: Session) -> list[BaseTool]:
    """Return the current tools of the session, for `bind_tools` or an agent."""
    return [LangChainSkillTool(session, tool) for tool in session.tools()]


def _text(result: ToolResult) -> str:
    if not result.ok:
        raise ToolException(result.text)
    return result.text
