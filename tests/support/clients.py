"""Agents of real clients and frameworks, each made once from a shelf, that hold any number of conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from skillshelf import Session, Shelf
from skillshelf.adapters import json_tools
from skillshelf.adapters.conversations import Conversations
from support.needs import require

__all__ = ["CLIENTS", "Client"]


class Client(Protocol):
    """One agent object. A run takes a text and the history of the conversation, and gives the history after it."""

    async def run(self, text: str, history: Any = None, *, stream: bool = False) -> Any:
        """Hold one run."""

    def session_for(self, history: Any) -> Session:
        """Return the session of a conversation with this history."""

    def trim(self, history: Any) -> Any:
        """Return the history without its calls and results."""


def _bash(session: Session) -> str:
    """Return what a host's tool `bash` may do in a conversation."""
    return session.decide("Bash", {"command": "ls"}).verdict


class _Plain:
    """A client without a framework: the loop of docs/adapters.md."""

    def __init__(self, shelf: Shelf, url: str, **options: Any) -> None:
        self.target = Conversations(shelf, **options)
        self.url = url

    async def run(self, text: str, history: Any = None, *, stream: bool = False) -> Any:
        return await asyncio.to_thread(self.talk, text, list(history or []), stream)

    def talk(self, text: str, messages: list[Any], stream: bool) -> list[Any]:
        raise NotImplementedError

    def session_for(self, history: Any) -> Session:
        return json_tools.session_for(self.target, history)

    def trim(self, history: Any) -> Any:
        return history[-1:]


class AnthropicClient(_Plain):
    """The package `anthropic`."""

    def __init__(self, shelf: Shelf, url: str, **options: Any) -> None:
        require("anthropic")
        import anthropic

        super().__init__(shelf, url, **options)
        self.client = anthropic.Anthropic(base_url=url, api_key="none")

    def talk(self, text: str, messages: list[Any], stream: bool) -> list[Any]:
        messages.append({"role": "user", "content": text})
        bash = {"name": "bash", "input_schema": {"type": "object"}}
        while True:
            request: Any = {
                "model": "m",
                "max_tokens": 100,
                "system": json_tools.system_prompt(self.target, "Help.", messages),
                "messages": messages,
                "tools": [*json_tools.anthropic_tools(self.target), bash],
            }
            if stream:
                with self.client.messages.stream(**request) as events:
                    answer = events.get_final_message()
            else:
                answer = self.client.messages.create(**request)
            # The objects of the package go into the list as they are.
            messages.append({"role": "assistant", "content": answer.content})
            calls: list[Any] = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return messages
            results = [self._result(block, messages) for block in calls]
            messages.append({"role": "user", "content": results})

    def _result(self, block: Any, messages: list[Any]) -> dict[str, Any]:
        if block.name == "bash":
            return {"type": "tool_result", "tool_use_id": block.id, "content": _bash(self.session_for(messages))}
        return json_tools.anthropic_result(self.target, block, messages)


class OpenAIChatClient(_Plain):
    """The package `openai` with chat completions."""

    def __init__(self, shelf: Shelf, url: str, **options: Any) -> None:
        require("openai")
        import openai

        super().__init__(shelf, url, **options)
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")

    def talk(self, text: str, messages: list[Any], stream: bool) -> list[Any]:
        messages.append({"role": "user", "content": text})
        bash = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
        while True:
            system = {"role": "system", "content": json_tools.system_prompt(self.target, "Help.", messages)}
            tools = [*json_tools.openai_tools(self.target), bash]
            request: Any = {"model": "m", "messages": [system, *messages], "tools": tools}
            if stream:
                with self.client.chat.completions.stream(**request) as events:
                    answer: Any = events.get_final_completion().choices[0].message
            else:
                answer = self.client.chat.completions.create(**request).choices[0].message
            messages.append(answer)
            if not answer.tool_calls:
                return messages
            for call in answer.tool_calls:
                if call.function.name == "bash":
                    verdict = _bash(self.session_for(messages))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": verdict})
                else:
                    messages.append(json_tools.openai_result(self.target, call, messages))


class OpenAIResponsesClient(_Plain):
    """The package `openai` with responses."""

    def __init__(self, shelf: Shelf, url: str, **options: Any) -> None:
        require("openai")
        import openai

        super().__init__(shelf, url, **options)
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")

    def talk(self, text: str, messages: list[Any], stream: bool) -> list[Any]:
        messages.append({"role": "user", "content": text})
        bash = {"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}, "strict": False}
        while True:
            request: Any = {
                "model": "m",
                "instructions": json_tools.system_prompt(self.target, "Help.", messages),
                "input": messages,
                "tools": [*json_tools.responses_tools(self.target), bash],
            }
            if stream:
                with self.client.responses.stream(**request) as events:
                    answer: Any = events.get_final_response()
            else:
                answer = self.client.responses.create(**request)
            messages += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return messages
            for item in calls:
                if item.name == "bash":
                    verdict = _bash(self.session_for(messages))
                    messages.append({"type": "function_call_output", "call_id": item.call_id, "output": verdict})
                else:
                    messages.append(json_tools.responses_result(self.target, item, messages))


class PydanticAIClient:
    """An agent of pydantic-ai."""

    def __init__(self, shelf: Shelf, url: str, *, capabilities: Any = (), **options: Any) -> None:
        require("pydantic_ai")
        require("openai")
        from pydantic_ai import Agent, RunContext
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from skillshelf.adapters.pydantic_ai import SkillToolset

        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
        self.toolset = toolset = SkillToolset(shelf, **options)
        self.agent: Any = Agent(model, toolsets=[toolset], capabilities=list(capabilities))

        def bash(ctx: RunContext[Any], command: str) -> str:
            return _bash(toolset.session_for(ctx))

        bash.__annotations__.update(ctx=RunContext[Any], command=str)
        self.agent.tool(bash)

    async def run(self, text: str, history: Any = None, *, stream: bool = False) -> Any:
        if not stream:
            return (await self.agent.run(text, message_history=history)).all_messages()
        async with self.agent.run_stream(text, message_history=history) as events:
            await events.get_output()
            return events.all_messages()

    def session_for(self, history: Any) -> Session:
        from skillshelf.adapters.pydantic_ai import seen_items

        scope = history[-1].conversation_id or ""
        return self.toolset.conversations.session_for(scope=scope, items=seen_items(history))

    def trim(self, history: Any) -> Any:
        return history[-1:]


class LangChainClient:
    """An agent of LangChain with the middleware."""

    def __init__(self, shelf: Shelf, url: str, *, middleware: Any = (), **options: Any) -> None:
        require("langchain_openai")
        from langchain.agents import create_agent
        from langchain.tools import ToolRuntime, tool
        from langchain_openai import ChatOpenAI

        from skillshelf.adapters.langchain import SkillMiddleware

        model = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="none")  # type: ignore[arg-type]
        self.skills = skills = SkillMiddleware(shelf, **options)

        def bash(command: str, runtime: ToolRuntime) -> str:
            """Run a command."""
            return _bash(skills.session_for(runtime))

        bash.__annotations__["runtime"] = ToolRuntime
        bash.__annotations__["command"] = str
        self.agent: Any = create_agent(
            model, tools=[tool(bash)], middleware=[*middleware, skills], system_prompt="Help."
        )

    async def run(self, text: str, history: Any = None, *, stream: bool = False) -> Any:
        given = {"messages": [*(history or []), {"role": "user", "content": text}]}
        if not stream:
            return (await self.agent.ainvoke(given))["messages"]
        return [state async for state in self.agent.astream(given, stream_mode="values")][-1]["messages"]

    def session_for(self, history: Any) -> Session:
        return self.skills.session_for(history)

    def trim(self, history: Any) -> Any:
        return history[-1:]


class OpenAIAgentsClient:
    """An agent of the OpenAI Agents SDK."""

    def __init__(self, shelf: Shelf, url: str, *, run_config: Any = None, **options: Any) -> None:
        require("agents")
        from agents import Agent, OpenAIChatCompletionsModel, RunConfig, function_tool
        from agents.tool_context import ToolContext
        from openai import AsyncOpenAI

        from skillshelf.adapters.openai_agents import skill_instructions, skill_tools

        self.tools = tools = skill_tools(shelf, **options)
        self.config = run_config or RunConfig(tracing_disabled=True)

        async def bash(ctx: ToolContext[Any], command: str) -> str:
            """Run a command."""
            return _bash(tools.session_for(ctx))

        bash.__annotations__.update(ctx=ToolContext[Any], command=str)
        model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=f"{url}/v1", api_key="none"))
        instructions = skill_instructions(shelf, "Help.", **options)
        self.agent: Any = Agent("a", instructions=instructions, tools=[*tools, function_tool(bash)], model=model)

    async def run(self, text: str, history: Any = None, *, stream: bool = False) -> Any:
        from agents import Runner

        given = [*(history or []), {"role": "user", "content": text}]
        if not stream:
            return (await Runner.run(self.agent, given, run_config=self.config)).to_input_list()
        result = Runner.run_streamed(self.agent, given, run_config=self.config)
        async for _ in result.stream_events():
            pass
        return result.to_input_list()

    def session_for(self, history: Any) -> Session:
        return self.tools.session_for(history)

    def trim(self, history: Any) -> Any:
        return history[-1:]


CLIENTS: Mapping[str, Callable[..., Client]] = {
    "anthropic": AnthropicClient,
    "openai": OpenAIChatClient,
    "openai-responses": OpenAIResponsesClient,
    "pydantic-ai": PydanticAIClient,
    "langchain": LangChainClient,
    "openai-agents": OpenAIAgentsClient,
}
