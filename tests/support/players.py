"""Models that are played: each makes given calls, in the form of one framework, and keeps what it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from skillshelf import AgentConfiguration, AgentSession, Session, Shelf
from support.needs import require

if TYPE_CHECKING:
    from skillshelf.adapters.json_tools import Start

__all__ = ["PLAYS", "Call", "Player", "play_agent_session", "play_pydantic_ai", "play_session"]

Call = tuple[str, dict[str, Any]]
TASK = "Deploy, please."


class Player:
    """The calls still to be made, and what the model was told, offered, asked and answered."""

    def __init__(self, *calls: Call, says: str = "done") -> None:
        self.calls = list(calls)
        self.says = says
        self.instructions: list[str] = []
        self.tools: list[dict[str, Any]] = []
        self.heard: list[str] = []
        self.answers: list[str] = []

    def next(self) -> Call | None:
        """The next call; None when it is time to answer."""
        return self.calls.pop(0) if self.calls else None

    def pydantic_ai(self) -> Any:
        """The player as pydantic-ai's function model."""
        from pydantic_ai.models.function import FunctionModel

        return FunctionModel(self._answer, stream_function=self._stream)

    def _answer(self, messages: list[Any], info: Any) -> Any:
        from pydantic_ai import ModelResponse, TextPart, ToolCallPart

        call = self._step(messages, info)
        return ModelResponse(parts=[TextPart(self.says) if call is None else ToolCallPart(*call)])

    async def _stream(self, messages: list[Any], info: Any) -> AsyncIterator[Any]:
        from pydantic_ai.models.function import DeltaToolCall

        call = self._step(messages, info)
        if call is not None:
            yield {0: DeltaToolCall(call[0], json.dumps(call[1]))}
            return
        for character in self.says:
            yield character

    def _step(self, messages: list[Any], info: Any) -> Call | None:
        self.instructions.append(info.instructions or "")
        self.tools.append({tool.name: tool.parameters_json_schema for tool in info.function_tools})
        last = messages[-1].parts
        self.answers += [part.content for part in last if part.part_kind == "tool-return"]
        if any(part.part_kind == "user-prompt" for part in last):
            parts = [part for message in messages for part in message.parts]
            self.heard += [part.content for part in parts if part.part_kind == "user-prompt"]
        return self.next()


# One run of an agent in each framework --------------------------------------------------------------


def play_session(session: Session, player: Player) -> None:
    """Without any framework: the calls, one after the other."""
    player.instructions.append(session.system_prompt())
    player.tools.append({tool.name: tool.input_schema for tool in session.tools()})
    while call := player.next():
        player.answers.append(session.call(*call).text)


def play_pydantic_ai(session: Session, player: Player, start: Start | None = None, *, toolset: Any = None) -> None:
    """An agent of pydantic-ai with the toolset of a session."""
    require("pydantic_ai")
    from pydantic_ai import Agent

    from skillshelf.adapters.pydantic_ai import SkillToolset, task_tool

    tools = [task_tool(session, start)] if start else []
    agent = Agent(player.pydantic_ai(), toolsets=[toolset or SkillToolset(session)], tools=tools)
    assert asyncio.run(agent.run(TASK)).output == player.says


def play_langchain(session: Session, player: Player, start: Start | None = None) -> None:
    """The loop of a LangChain agent, with the tools of a session and LangChain's own fake model."""
    require("langchain_core")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from skillshelf.adapters.langchain import SkillTaskTool, skill_tools

    offered = [*skill_tools(session), *([SkillTaskTool(session, start)] if start else [])]
    tools = {tool.name: tool for tool in offered}
    forms = [convert_to_openai_tool(tool)["function"] for tool in tools.values()]
    calls = [{"name": name, "args": args, "id": f"call_{n}"} for n, (name, args) in enumerate(player.calls)]
    steps = [AIMessage("", tool_calls=[call]) for call in calls]
    model = GenericFakeChatModel(messages=iter([*steps, AIMessage(player.says)]))
    history: list[Any] = [SystemMessage(session.system_prompt()), HumanMessage(TASK)]
    player.tools.append({form["name"]: form["parameters"] for form in forms})
    player.instructions.append(str(history[0].content))
    while not (answer := model.invoke(history)).content:
        history += [answer, *(tools[call["name"]].invoke(call) for call in answer.tool_calls)]
        player.answers.append(history[-1].content)
    assert answer.content == player.says


def play_openai_agents(session: Session, player: Player, start: Start | None = None) -> None:
    """An agent of the OpenAI Agents SDK with the tools of a session."""
    require("agents")
    from agents import Agent, ModelResponse, RunConfig, Runner, Usage
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from skillshelf.adapters.openai_agents import skill_instructions, skill_tools, task_tool

    class Played(Model):
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **options: Any) -> Any:  # noqa: A002
            given = input
            player.instructions.append(system_instructions)
            player.tools.append({tool.name: tool.params_json_schema for tool in options["tools"]})
            if isinstance(given, list) and given[-1].get("type") == "function_call_output":
                player.answers.append(given[-1]["output"])
            item: Any
            if call := player.next():
                name, arguments = call[0], json.dumps(call[1])
                number = f"call_{len(player.answers)}"
                item = ResponseFunctionToolCall(type="function_call", call_id=number, name=name, arguments=arguments)
            else:
                text = ResponseOutputText(type="output_text", text=player.says, annotations=[])
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    offered: list[Any] = [*skill_tools(session), *([task_tool(session, start)] if start else [])]
    agent = Agent("deployer", instructions=skill_instructions(session), tools=offered, model=Played())
    done = asyncio.run(Runner.run(agent, TASK, max_turns=30, run_config=RunConfig(tracing_disabled=True)))
    assert done.final_output == player.says


PLAYS: Mapping[str, Callable[..., None]] = {
    "pydantic-ai": play_pydantic_ai,
    "LangChain": play_langchain,
    "OpenAI Agents SDK": play_openai_agents,
}
"""Every adapter, with a session, a player, and how sub-agents start if there are any."""


def play_agent_session(shelf: Shelf, player: Player, **options: Any) -> None:
    """An `AgentSession` on a shelf, with the options of a session."""
    require("pydantic_ai")

    async def play() -> None:
        configuration = AgentConfiguration("", player.pydantic_ai())
        async with await AgentSession.create(configuration, shelf=shelf, **options) as session:
            assert await session.prompt(TASK) == player.says

    asyncio.run(play())
