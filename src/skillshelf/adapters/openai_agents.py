"""Offer a session's tools and instructions to the OpenAI Agents SDK (extra `openai-agents`)."""

import asyncio
from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper
from agents.tool_context import ToolContext

from skillshelf.adapters.json_tools import Start, arguments_in, openai_result, run_task
from skillshelf.adapters.json_tools import task_tool as task_schema
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool

__all__ = ["skill_instructions", "skill_tools", "task_tool"]


def skill_instructions(session: Session, base: str = "") -> Callable[[RunContextWrapper[Any], Agent[Any]], str]:
    """Return a function for `Agent(instructions=...)`; it is called before each run, so the skills are current."""
    return lambda context, agent: session.system_prompt(base)


def skill_tools(session: Session) -> list[FunctionTool]:
    """Return the current tools of the session, for `Agent(tools=[...])`."""
    return [_function(session, tool) for tool in session.tools()]


def task_tool(session: Session, start: Start) -> FunctionTool:
    """Return a tool that gives a task to a sub-agent with the skills that the model names."""
    tool = task_schema(session)

    async def invoke(context: ToolContext[Any], text: str) -> str:
        return (await run_task(session, arguments_in(text), start)).text

    return FunctionTool(tool.name, tool.description, dict(tool.input_schema), invoke, strict_json_schema=False)


def _function(session: Session, tool: Tool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], text: str) -> str:
        call = {"id": context.tool_call_id, "function": {"name": tool.name, "arguments": text}}
        answer = await asyncio.to_thread(openai_result, session, call)
        return str(answer["content"])

    # Strict schemas allow no optional parameter, and the session checks arguments anyway.
    return FunctionTool(tool.name, tool.description, dict(tool.input_schema), invoke, strict_json_schema=False)
