"""Conversations of one agent object in each client and framework, with the real package and a model on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clients import CLIENTS, LangChainClient, OpenAIAgentsClient, PydanticAIClient
from support.model_loopback import ModelLoopback, model_loopback
from support.trees import Machine, write_skill

from skillshelf import Shelf

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NARROW = "---\nname: narrow\ndescription: Reads only.\nallowed-tools: Read\n---\n# narrow\nOnly read.\n"
POLICY = {"allow": [{"tool": "Bash"}, {"tool": "Read"}]}
REMINDER = "<skill_context_reminder"


@pytest.fixture
def model() -> Iterator[ModelLoopback]:
    """Serve the model."""
    with model_loopback() as served:
        yield served


def shelf_with_skills(machine: Machine, *names: str) -> Shelf:
    """Open a shelf with `narrow`, which limits the tools, and skills that do not."""
    root = machine.home / ".agents/skills"
    write_skill(root, "narrow", NARROW)
    for name in names:
        write_skill(root, name)
    return machine.shelf()


def events_in(journal: Path) -> list[dict[str, Any]]:
    """Return the events of a journal."""
    return [json.loads(line) for line in journal.read_text().splitlines()]


@pytest.mark.req("C-74", "C-75", "C-116")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", CLIENTS)
def test_each_run_of_one_agent_gets_the_text_and_a_continued_run_a_reminder(
    machine: Machine, model: ModelLoopback, client: str, stream: bool
) -> None:
    agent = CLIENTS[client](shelf_with_skills(machine, "tea"), model.url)

    async def talk() -> None:
        first = await agent.run("use tea tea", stream=stream)
        await agent.run("use tea", stream=stream)
        await agent.run("use  tea", first, stream=stream)
        await agent.run("use   tea", agent.trim(first), stream=stream)

    asyncio.run(talk())

    assert "<name>tea</name>" in model.turns[0].system
    whole, again = model.last("use tea tea").since
    assert "# tea" in whole
    assert again.startswith(REMINDER)
    assert model.last("use tea").since == [whole]
    # Continued, where the whole text is still there; then without it.
    [reminded] = model.last("use  tea").since
    assert reminded.startswith(REMINDER)
    assert model.last("use   tea").since == [whole]


@pytest.mark.req("K-34")
@pytest.mark.parametrize("client", CLIENTS)
def test_what_one_user_loads_does_not_narrow_another(machine: Machine, model: ModelLoopback, client: str) -> None:
    agent = CLIENTS[client](shelf_with_skills(machine, "tea"), model.url, policy=POLICY)

    async def talk() -> None:
        first = await agent.run("use narrow bash")
        await agent.run("use bash")
        first = await agent.run("use  bash narrow bash", first)
        fork = await agent.run("use   bash", first)
        assert agent.session_for(fork).active == ("narrow",)

    asyncio.run(talk())

    assert model.last("use narrow bash").since[-1] == "deny"
    assert model.last("use bash").since == ["allow"]
    before, reminder, after = model.last("use  bash narrow bash").since
    assert (before, after) == ("deny", "deny")
    assert reminder.startswith(REMINDER)
    assert model.last("use   bash").since == ["deny"]


@pytest.mark.parametrize("client", CLIENTS)
def test_after_a_restart_the_window_stays_and_the_text_comes_again(
    machine: Machine, model: ModelLoopback, client: str
) -> None:
    shelf = shelf_with_skills(machine)

    async def talk() -> None:
        first = await CLIENTS[client](shelf, model.url, policy=POLICY).run("use narrow")
        await CLIENTS[client](machine.shelf(), model.url, policy=POLICY).run("use bash narrow", first)

    asyncio.run(talk())

    verdict, text = model.last("use bash narrow").since
    assert verdict == "deny"
    assert text == model.last("use narrow").since[0]


@pytest.mark.parametrize("client", CLIENTS)
def test_an_error_is_a_result_that_the_model_can_act_on(machine: Machine, model: ModelLoopback, client: str) -> None:
    agent = CLIENTS[client](shelf_with_skills(machine, "tea"), model.url)
    asyncio.run(agent.run("use tae tea"))
    wrong, right = model.last("use tae tea").since
    assert "did you mean tea?" in wrong
    assert "# tea" in right


@pytest.mark.req("C-74", "K-13")
@pytest.mark.parametrize("client", CLIENTS)
def test_twenty_conversations_at_once_each_have_their_own_skill_window_and_journal(
    machine: Machine, model: ModelLoopback, client: str
) -> None:
    from skillshelf.journal.file import verify

    names = [f"skill-{n}" for n in range(20)]
    journal = machine.base / "run.jsonl"
    agent = CLIENTS[client](shelf_with_skills(machine, *names), model.url, policy=POLICY, journal=journal)
    texts = [f"use {name} {'narrow ' * (n % 2)}bash {name}" for n, name in enumerate(names)]

    async def talk() -> None:
        await asyncio.gather(*(agent.run(text) for text in texts))

    asyncio.run(talk())

    for n, (name, text) in enumerate(zip(names, texts, strict=True)):
        results = model.last(text).since
        assert f"# {name}" in results[0]
        assert results[-2:] == ["deny" if n % 2 else "allow", results[-1]]
        assert results[-1].startswith(REMINDER)
    loads: dict[str, set[str]] = {}
    for event in events_in(journal):
        if event["type"] == "skill_loaded" and event["name"] != "narrow":
            loads.setdefault(event["session"], set()).add(event["name"])
    assert sorted(map(sorted, loads.values())) == sorted([name] for name in names)
    assert not verify(str(journal)).problems


@pytest.mark.parametrize("client", CLIENTS)
def test_parallel_calls_of_one_turn_are_of_one_conversation(
    machine: Machine, model: ModelLoopback, client: str
) -> None:
    journal = machine.base / "run.jsonl"
    agent = CLIENTS[client](shelf_with_skills(machine, "tea"), model.url, journal=journal)

    async def talk() -> None:
        first = await agent.run("both tea narrow")
        await agent.run("use narrow tea", first)

    asyncio.run(talk())

    assert len(model.last("both tea narrow").since) == 2
    assert [text.startswith(REMINDER) for text in model.last("use narrow tea").since] == [True, True]
    loads = [event for event in events_in(journal) if event["type"] == "skill_loaded"]
    assert len({event["session"] for event in loads}) == 1
    assert len(loads) == 2


# Each framework trims history in its own ways -----------------------------------------------------


def test_a_history_processor_of_pydantic_ai_that_drops_the_load_brings_the_text_again(
    machine: Machine, model: ModelLoopback
) -> None:
    def from_last_prompt(messages: list[Any]) -> list[Any]:
        prompts = [any(part.part_kind == "user-prompt" for part in message.parts) for message in messages]
        return messages[len(messages) - 1 - prompts[::-1].index(True) :]

    capabilities = pytest.importorskip("pydantic_ai.capabilities")
    trimmed = [capabilities.ProcessHistory(from_last_prompt)]
    agent = PydanticAIClient(shelf_with_skills(machine, "tea"), model.url, capabilities=trimmed)

    async def talk() -> None:
        first = await agent.run("use tea tea")
        await agent.run("use  tea tea", first)

    asyncio.run(talk())

    for text in ("use tea tea", "use  tea tea"):
        whole, again = model.last(text).since
        assert "# tea" in whole
        assert again.startswith(REMINDER)


def test_a_middleware_of_langchain_that_trims_only_the_request_brings_the_text_again(
    machine: Machine, model: ModelLoopback
) -> None:
    middleware = pytest.importorskip("langchain.agents.middleware")

    class Trim(middleware.AgentMiddleware):  # type: ignore[misc, name-defined]
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            last = max(n for n, message in enumerate(request.messages) if message.type == "human")
            return await handler(request.override(messages=request.messages[last:]))

    agent = LangChainClient(shelf_with_skills(machine, "tea"), model.url, middleware=[Trim()])
    history = asyncio.run(agent.run("use tea"))
    asyncio.run(agent.run("use  tea", history))

    assert "# tea" in model.last("use  tea").since[-1]


def test_an_input_filter_of_the_agents_sdk_brings_the_text_again(machine: Machine, model: ModelLoopback) -> None:
    agents = pytest.importorskip("agents")

    whole = OpenAIAgentsClient(shelf_with_skills(machine, "tea"), model.url)
    history = asyncio.run(whole.run("use tea"))
    config = agents.RunConfig(tracing_disabled=True, call_model_input_filter=lambda data: data.model_data)
    filtered = OpenAIAgentsClient(machine.shelf(), model.url, run_config=config)
    asyncio.run(filtered.run("use  tea tea", history))

    assert all("# tea" in text for text in model.last("use  tea tea").since)


class _Scripted:
    """A model of the Agents SDK that makes one call after the other, and keeps the results that it was sent."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls = list(calls)
        self.results: list[str] = []

    def model(self) -> Any:
        """Return it as the SDK wants it."""
        from agents import ModelResponse, Usage
        from agents.models.interface import Model
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        script = self

        class Scripted(Model):
            async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
                given = [] if isinstance(input, str) else input
                script.results = [item["output"] for item in given if item.get("type") == "function_call_output"]
                output: Any
                if script.calls:
                    name, arguments = script.calls.pop(0)
                    output = ResponseFunctionToolCall(
                        type="function_call",
                        call_id=f"{id(script)}-{len(script.calls)}",
                        name=name,
                        arguments=json.dumps(arguments),
                    )
                else:
                    said = ResponseOutputText(type="output_text", text="done", annotations=[])
                    output = ResponseOutputMessage(
                        id="m", type="message", role="assistant", status="completed", content=[said]
                    )
                return ModelResponse(output=[output], usage=Usage(), response_id=None)

            def stream_response(self, *args: Any, **kwargs: Any) -> Any:
                raise NotImplementedError

        return Scripted()


LOAD_TEA = ("skill_load", {"name": "tea"})


def test_an_agent_that_gets_a_filtered_history_by_a_handoff_gets_the_text(machine: Machine) -> None:
    agents = pytest.importorskip("agents")
    from agents.extensions.handoff_filters import remove_all_tools

    from skillshelf.adapters.openai_agents import skill_instructions, skill_tools

    shelf = shelf_with_skills(machine, "tea")
    common = {"instructions": skill_instructions(shelf), "tools": skill_tools(shelf)}
    second = _Scripted(LOAD_TEA)
    taker = agents.Agent("taker", model=second.model(), **common)
    handoffs = [agents.handoff(taker, input_filter=remove_all_tools)]
    giver = agents.Agent(
        "giver", model=_Scripted(LOAD_TEA, ("transfer_to_taker", {})).model(), handoffs=handoffs, **common
    )
    asyncio.run(agents.Runner.run(giver, "tea", run_config=agents.RunConfig(tracing_disabled=True)))

    [text] = second.results
    assert "# tea" in text


def test_an_agent_as_a_tool_with_the_same_input_is_a_conversation_of_its_own(machine: Machine) -> None:
    agents = pytest.importorskip("agents")
    from agents.tool_context import ToolContext

    from skillshelf.adapters.openai_agents import skill_instructions, skill_tools

    shelf = shelf_with_skills(machine, "tea")
    tools = skill_tools(shelf)
    active: list[Any] = []

    async def look(ctx: ToolContext[Any]) -> str:
        active.append(tools.session_for(ctx).active)
        return "seen"

    look.__annotations__.update(ctx=ToolContext[Any])
    common: dict[str, Any] = {"instructions": skill_instructions(shelf), "tools": [*tools, agents.function_tool(look)]}
    inner = _Scripted(("look", {}), LOAD_TEA)
    asked = agents.Agent("asked", model=inner.model(), **common)
    common["tools"] = [*common["tools"], asked.as_tool("ask", "Ask.")]
    outer = _Scripted(("skill_load", {"name": "narrow"}), LOAD_TEA, ("ask", {"input": "hi"}), ("look", {}))
    agent = agents.Agent("agent", model=outer.model(), **common)
    asyncio.run(agents.Runner.run(agent, "hi", run_config=agents.RunConfig(tracing_disabled=True)))

    assert "# tea" in inner.results[-1]
    assert active == [(), ("narrow", "tea")]


def test_tools_of_the_agents_sdk_name_the_skills_that_there_are_in_each_run(machine: Machine) -> None:
    agents = pytest.importorskip("agents")
    from skillshelf.adapters.openai_agents import skill_tools

    shelf = shelf_with_skills(machine)
    agent = agents.Agent("agent", tools=skill_tools(shelf))
    write_skill(machine.home / ".agents/skills", "tea")
    shelf.refresh()

    offered = asyncio.run(agent.get_all_tools(agents.RunContextWrapper(None)))
    schemas = {tool.name: tool.params_json_schema["properties"] for tool in offered}
    assert schemas["skill_load"]["name"]["enum"] == ["narrow", "tea"]


def test_a_session_of_the_agents_sdk_is_found_by_the_shelf_and_the_options_of_its_tools(machine: Machine) -> None:
    pytest.importorskip("agents")
    from skillshelf.adapters.openai_agents import session_for, skill_tools

    shelf = shelf_with_skills(machine)
    tools = skill_tools(shelf, policy=POLICY)
    said = [{"role": "user", "content": "hello"}]
    assert session_for(said, shelf, policy=POLICY) is tools.session_for(said)
    assert session_for(said, shelf) is not tools.session_for(said)


def test_tools_that_are_listed_once_name_no_skills_and_are_there_before_the_first(machine: Machine) -> None:
    pytest.importorskip("langchain_core")
    from skillshelf.adapters.langchain import skill_tools

    shelf = machine.shelf()
    before = {tool.name: tool for target in (shelf, shelf.session()) for tool in skill_tools(target)}
    write_skill(machine.home / ".agents/skills", "tea")
    shelf.refresh()

    assert "# tea" in before["skill_load"].invoke({"name": "tea"})
    after = {tool.name: tool for tool in skill_tools(shelf)}
    assert "enum" not in json.dumps(after["skill_load"].args_schema)


def test_langchain_gives_no_session_of_other_conversations_for_a_shelf(machine: Machine) -> None:
    pytest.importorskip("langchain_core")
    from skillshelf import ConfigurationError
    from skillshelf.adapters.langchain import session_for, skill_tools

    shelf = shelf_with_skills(machine)
    tools = skill_tools(shelf)
    load = next(tool for tool in tools if tool.name == "skill_load")
    load.invoke({"name": "narrow"}, {"configurable": {"thread_id": "one"}})

    assert tools.session_for("one").active == ("narrow",)
    with pytest.raises(ConfigurationError, match="several agents"):
        session_for("one", shelf)  # type: ignore[arg-type]


@pytest.mark.parametrize("client", ["pydantic-ai", "langchain", "openai-agents"])
def test_the_tools_may_have_a_prefix_so_that_an_agent_can_have_a_tool_of_the_same_name(
    machine: Machine, model: ModelLoopback, client: str
) -> None:
    agent = CLIENTS[client](shelf_with_skills(machine, "tea"), model.url, prefix="skills_")
    asyncio.run(agent.run("hello"))
    assert {"skills_skill_load", "skills_skill_read", "bash"} <= set(model.tools[0])


@pytest.mark.parametrize("client", ["pydantic-ai", "langchain", "openai-agents"])
def test_a_skill_that_is_added_after_the_agent_was_made_is_offered(
    machine: Machine, model: ModelLoopback, client: str
) -> None:
    shelf = machine.shelf()
    agent = CLIENTS[client](shelf, model.url)
    asyncio.run(agent.run("hello"))
    write_skill(machine.home / ".agents/skills", "tea")
    shelf.refresh()
    asyncio.run(agent.run("use tea"))

    assert model.tools[0] == ["bash"]
    assert "skill_load" in model.tools[1]
    assert "<name>tea</name>" in model.turns[1].system
    assert "# tea" in model.last("use tea").since[0]


# What each framework identifies a conversation by -------------------------------------------------


def test_a_thread_of_langchain_is_a_conversation_and_survives_trimming(machine: Machine, model: ModelLoopback) -> None:
    pytest.importorskip("langchain_openai")
    from langchain.agents import create_agent
    from langchain_core.messages import RemoveMessage
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    from skillshelf.adapters.langchain import SkillMiddleware

    skills = SkillMiddleware(shelf_with_skills(machine, "tea"), policy=POLICY)
    chat: Any = ChatOpenAI(model="m", base_url=f"{model.url}/v1", api_key="none")  # type: ignore[arg-type]
    agent: Any = create_agent(chat, middleware=[skills], checkpointer=InMemorySaver())

    def ask(thread: str, text: str) -> Any:
        config = {"configurable": {"thread_id": thread}}
        return agent.invoke({"messages": [{"role": "user", "content": text}]}, config)

    ask("a", "use narrow")
    ask("b", "use tea")
    ask("a", "use  narrow")
    agent.update_state(
        {"configurable": {"thread_id": "a"}}, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}, as_node="model"
    )
    ask("a", "use   narrow")

    assert skills.session_for("a").active == ("narrow",)
    assert skills.session_for({"configurable": {"thread_id": "b"}}).active == ("tea",)
    assert model.last("use  narrow").since[0].startswith(REMINDER)
    assert "Only read" in model.last("use   narrow").since[0]


def test_tools_of_langchain_in_a_graph_see_its_messages_without_the_middleware(
    machine: Machine, model: ModelLoopback
) -> None:
    pytest.importorskip("langchain_openai")
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    from skillshelf.adapters.langchain import skill_tools

    tools = skill_tools(shelf_with_skills(machine, "tea"))
    chat: Any = ChatOpenAI(model="m", base_url=f"{model.url}/v1", api_key="none")  # type: ignore[arg-type]
    agent: Any = create_agent(chat, tools=tools)
    first = agent.invoke({"messages": [{"role": "user", "content": "use tea tea"}]})["messages"]
    agent.invoke({"messages": [{"role": "user", "content": "use tea"}]})

    whole, again = model.last("use tea tea").since
    assert again.startswith(REMINDER)
    assert model.last("use tea").since == [whole]
    assert tools.session_for(first).active == ("tea",)
    # By hand a tool sees nothing, and says everything.
    load = next(tool for tool in tools if tool.name == "skill_load")
    assert load.invoke({"name": "tea"}) == load.invoke({"name": "tea"}) == whole


@pytest.mark.parametrize("client", ["pydantic-ai", "langchain", "openai-agents"])
def test_a_confirmation_may_be_a_coroutine(machine: Machine, model: ModelLoopback, client: str) -> None:
    asked: list[str] = []

    async def confirm(tool: str, name: str, reason: str) -> bool:
        await asyncio.sleep(0)
        asked.append(name)
        return True

    shelf_with_skills(machine)
    write_skill(machine.repo / ".agents/skills", "tea")
    agent = CLIENTS[client](machine.shelf(trust="ask"), model.url, confirm=confirm)
    asyncio.run(agent.run("use tea"))

    assert asked == ["tea"]
    assert "# tea" in model.last("use tea").since[0]


def test_dictionaries_and_the_objects_of_a_package_are_the_same_conversation(machine: Machine) -> None:
    anthropic = pytest.importorskip("anthropic.types")
    openai = pytest.importorskip("openai.types.responses")
    from skillshelf.adapters.json_tools import anthropic_result, responses_result, seen_items, session_for

    shelf = shelf_with_skills(machine, "tea")
    block = {"type": "tool_use", "id": "t1", "name": "skill_load", "input": {"name": "tea"}}
    as_object = anthropic.ToolUseBlock(**block)
    hello: Any = {"role": "user", "content": [{"type": "text", "text": "Hi.", "cache_control": {"type": "ephemeral"}}]}
    plain: list[Any] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": [block]}]
    objects = [hello, {"role": "assistant", "content": [as_object]}]
    assert seen_items(plain) == seen_items(objects)

    answer = anthropic_result(shelf, as_object, objects)
    plain.append({"role": "user", "content": [answer]})
    assert "# tea" in answer["content"]
    assert session_for(shelf, plain) is session_for(shelf, [*objects, plain[-1]])
    assert session_for(shelf, plain).active == ("tea",)

    call = {"type": "function_call", "call_id": "c1", "name": "skill_load", "arguments": '{"name": "tea"}'}
    items: list[Any] = [{"role": "user", "content": "Hi."}, openai.ResponseFunctionToolCall(**call)]
    assert seen_items([*items[:1], call]) == seen_items(items)
    assert responses_result(shelf, items[-1], items) == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": answer["content"],
    }
    assert responses_result(shelf, {**call, "arguments": "["}, items)["output"].startswith("Error: ")
    assert responses_result(shelf, call)["output"] == answer["content"]
