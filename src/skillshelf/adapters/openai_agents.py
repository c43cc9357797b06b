"""A session as function tools and instructions of the OpenAI Agents SDK. Needs the extra `openai-agents`."""

import asyncio
from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper
from agents.tool_context import ToolContext

from skillshelf.adapters.json_tools import Start, arguments_in, openai_result, run_task
from skillshelf.adapters.json_tools import task_tool as task_of
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool

__all__ = ["skill_instructions", "skill_tools", "task_tool"]


def skill_instructions(session: Session, base: str = "") -> Callable[[RunContextWrapper[Any], Agent[Any]], str]:
    """For `Agent(instructions=...)`: asked before each run, so that the model hears of skills that came or went."""
    return lambda context, agent: session.system_prompt(base)


def skill_tools(session: Session) -> list[FunctionTool]:
    """For `Agent(tools=[...])`: the tools of the session as they are now."""
    return [_function(session, tool) for tool in session.tools()]


def task_tool(session: Session, start: Start) -> FunctionTool:
    """A tool by which the model hands a task to a sub-agent that starts with the skills it names."""
    tool = task_of(session)

    async def invoke(context: ToolContext[Any], text: str) -> str:
        return (await run_task(session, arguments_in(text), start)).text

    return FunctionTool(tool.name, tool.description, dict(tool.input_schema), invoke, strict_json_schema=False)


def _function(session: Session, tool: Tool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], text: str) -> str:
        call = {"id": context.tool_call_id, "function": {"name": tool.name, "arguments": text}}
        answer = await asyncio.to_thread(openai_result, session, call)
        return str(answer["content"])

    # Strict schemas allow no optional parameter; the session checks arguments by itself.
    return FunctionTool(tool.name, tool.description, dict(tool.input_schema), invoke, strict_json_schema=False)
