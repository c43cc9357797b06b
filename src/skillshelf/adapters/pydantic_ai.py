"""A session as a pydantic-ai toolset: its tools, and the catalog as instructions. Needs the extra `pydantic-ai`."""

from collections.abc import Callable
from typing import Any

from pydantic_ai import Tool
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.session import Session

__all__ = ["SkillToolset"]


class SkillToolset(FunctionToolset[Any]):
    """The skills of a session for `Agent(toolsets=[...])`."""

    def __init__(self, session: Session, *, id: str = "skills") -> None:  # noqa: A002
        tools = [
            Tool.from_schema(_calling(session, tool.name), tool.name, tool.description, dict(tool.input_schema))
            for tool in session.tools()
        ]
        # Asked before each request, so that the model hears of skills that came or went.
        super().__init__(tools=tools, id=id, instructions=lambda: session.system_prompt() or None)
        self.session = session


def _calling(session: Session, name: str) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        # An error is text too: the model can act on it, and no retry is used up.
        return session.call(name, arguments).text

    return call
