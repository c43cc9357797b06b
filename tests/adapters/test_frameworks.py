"""Google ADK and Microsoft agent-framework: one agent object, many conversations, a model on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.framework_agents import FRAMEWORKS, FrameworkAgent
from support.needs import require
from support.script_server import ScriptServer, script_server
from support.trees import SOURCE, Machine, write_skill

from skillshelf.errors import ConfigurationError

MakeAgent = Callable[..., FrameworkAgent]


@pytest.fixture(params=FRAMEWORKS)
def make(request: pytest.FixtureRequest) -> MakeAgent:
    return FRAMEWORKS[request.param]


@pytest.fixture
def model() -> Iterator[ScriptServer]:
    with script_server() as server:
        yield server


def body(name: str) -> str:
    """The text of a skill that no other has."""
    return f"The secret of {name} is {name[::-1]}."


def write(machine: Machine, name: str, allowed: str = "") -> None:
    """Write a skill; `allowed` are its tools."""
    field = f"allowed-tools: {allowed}\n" if allowed else ""
    text = f"---\nname: {name}\ndescription: Does {name}.\n{field}---\n{body(name)}\n"
    write_skill(machine.repo / ".agents/skills", name, text)


async def talk(agent: FrameworkAgent, *said: tuple[str, str], stream: bool = False) -> None:
    """Say these things one after the other, each in its conversation."""
    for conversation, text in said:
        assert await agent.say(conversation, text, stream=stream) == "done"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("functions", [False, True], ids=["class", "functions"])
def test_every_conversation_of_one_agent_gets_the_text(
    machine: Machine, model: ScriptServer, make: MakeAgent, *, stream: bool, functions: bool
) -> None:
    write(machine, "tea")
    agent = make(machine.shelf(), model.url, functions=functions)

    asyncio.run(talk(agent, ("one", "load tea"), ("two", "load tea"), stream=stream))

    first, second = model.heard[1], model.heard[3]
    assert [len(heard.items) for heard in model.heard] == [1, 3, 1, 3]
    assert body("tea") in first.results[0]
    assert second.results == first.results
    assert all("You are helpful." in heard.system for heard in model.heard)
    assert all(heard.system.count("<name>tea</name>") == 1 for heard in model.heard)
    # Functions of agent-framework are listed once, so they name no skills: there may be others later.
    named = [["tea"]] if not functions or "adk" in type(agent).__name__.lower() else [None]
    assert [heard.tools["skill_load"]["properties"]["name"].get("enum") for heard in model.heard] == named * 4
    assert agent.session_for("one") is not agent.session_for("two")
    assert "".join(agent.pieces()) == ("done" if stream else "")


def test_a_model_is_reminded_only_while_the_whole_text_is_in_its_messages(
    machine: Machine, model: ScriptServer, make: MakeAgent
) -> None:
    write(machine, "tea")
    agent = make(machine.shelf(), model.url)

    asyncio.run(talk(agent, ("one", "load tea"), ("one", "load tea")))

    results = model.heard[-1].results
    assert [body("tea") in text for text in results] == [True, False]
    assert results[1].startswith("<skill_context_reminder")


def test_a_text_that_was_trimmed_away_is_sent_again(machine: Machine, model: ScriptServer, make: MakeAgent) -> None:
    write(machine, "tea")
    agent = make(machine.shelf(), model.url, trim=True)

    asyncio.run(talk(agent, ("one", "load tea"), ("one", "load tea; load tea")))

    results = model.heard[-1].results
    assert [body("tea") in text for text in results] == [True, False]
    assert results[1].startswith("<skill_context_reminder")


def test_functions_without_a_view_of_the_messages_repeat(machine: Machine, model: ScriptServer) -> None:
    write(machine, "tea")
    agent = FRAMEWORKS["agent-framework"](machine.shelf(), model.url, functions=True)

    asyncio.run(talk(agent, ("one", "load tea; load tea")))

    assert [body("tea") in text for text in model.heard[-1].results] == [True, True]


def test_a_model_gets_errors_that_it_can_act_on(machine: Machine, model: ScriptServer, make: MakeAgent) -> None:
    write(machine, "tea")
    agent = make(machine.shelf(), model.url)

    asyncio.run(talk(agent, ("one", "load tae; load tea; read skill://tea/absent.md")))

    typo, loaded, absent = model.heard[-1].results
    assert "Skill not found: tae; did you mean tea?" in typo
    assert body("tea") in loaded
    assert "File not found: absent.md" in absent


def test_a_failure_of_the_model_leaves_the_conversation_usable(
    machine: Machine, model: ScriptServer, make: MakeAgent
) -> None:
    write(machine, "tea")
    agent = make(machine.shelf(), model.url)

    async def conversation() -> None:
        await talk(agent, ("one", "load tea"))
        with pytest.raises(Exception, match="no"):
            await agent.say("two", "fail; load tea")
        await talk(agent, ("three", "load tea"))

    asyncio.run(conversation())

    assert body("tea") in model.heard[-1].results[0]


def test_a_window_of_allowed_tools_belongs_to_one_conversation(
    machine: Machine, model: ScriptServer, make: MakeAgent
) -> None:
    write(machine, "narrow", allowed="Read")
    write(machine, "tea")
    agent = make(machine.shelf(), model.url, policy={"allow": [{"tool": "Bash"}]})

    asyncio.run(talk(agent, ("one", "load narrow"), ("two", "load tea")))

    one, two = agent.session_for("one"), agent.session_for("two")
    assert (one.active, two.active) == (("narrow",), ("tea",))
    assert (one.decide("Bash").verdict, two.decide("Bash").verdict) == ("deny", "allow")


def test_twenty_conversations_at_once_keep_to_themselves(
    machine: Machine, model: ScriptServer, make: MakeAgent, tmp_path: Path
) -> None:
    names = [f"skill-{n:02}" for n in range(20)]
    for name in names:
        write(machine, name, allowed=f"tool-{name}")
    journal = tmp_path / "run.jsonl"
    agent = make(machine.shelf(), model.url, journal=journal)

    async def everybody() -> None:
        await asyncio.gather(*(talk(agent, (name, f"load {name}"), (name, f"load {name}; again")) for name in names))

    asyncio.run(everybody())

    for name in names:
        last = model.of(f"load {name}; again")[-1]
        assert body(name) in last.results[0]
        assert not any(body(other) in text for other in names if other != name for text in last.results)
        assert agent.session_for(name).active == (name,)
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    loads: dict[str, set[str]] = {}
    for event in events:
        if event["type"] == "skill_loaded":
            loads.setdefault(event["session"], set()).add(event["name"])
    assert sorted(loads.values(), key=str) == sorted(({name} for name in names), key=str)


def test_a_skill_that_is_added_later_is_offered_in_the_next_run(
    machine: Machine, model: ScriptServer, make: MakeAgent
) -> None:
    shelf = machine.shelf()
    agent = make(shelf, model.url)

    async def conversation() -> None:
        await talk(agent, ("one", "hello"))
        write(machine, "tea")
        shelf.refresh()
        await talk(agent, ("one", "load tea"))

    asyncio.run(conversation())

    assert model.heard[0].tools == {}
    assert "tea" not in model.heard[0].system
    assert body("tea") in model.heard[-1].results[0]


def test_a_session_is_one_conversation_and_keeps_its_memory(
    machine: Machine, model: ScriptServer, make: MakeAgent
) -> None:
    write(machine, "tea")
    session = machine.shelf().session()
    agent = make(session, model.url)

    asyncio.run(talk(agent, ("one", "load tea"), ("two", "load tea")))

    assert agent.session_for("one") is session
    assert model.heard[-1].results[0].startswith("<skill_context_reminder")
    with pytest.raises(ConfigurationError, match="a session has its options already: policy"):
        make(session, model.url, policy="read-only")


# Each framework alone -----------------------------------------------------------------------------


def test_two_services_of_adk_may_have_sessions_of_the_same_id(machine: Machine, model: ScriptServer) -> None:
    write(machine, "tea")
    write(machine, "narrow", allowed="Read")
    shelf = machine.shelf()
    agents = [FRAMEWORKS["adk"](shelf, model.url, functions=True) for _ in range(2)]

    asyncio.run(talk(agents[0], ("one", "load narrow")))
    asyncio.run(talk(agents[1], ("one", "load tea")))

    assert [agent.session_for("one").active for agent in agents] == [("narrow",), ("tea",)]


def test_a_message_that_agent_framework_compacted_away_is_not_in_the_context(
    machine: Machine, model: ScriptServer
) -> None:
    require("agent_framework_openai")
    from agent_framework import Agent, SlidingWindowStrategy
    from agent_framework_openai import OpenAIChatCompletionClient

    from skillshelf.adapters.agent_framework import SkillProvider

    write(machine, "tea")
    client = OpenAIChatCompletionClient("m", api_key="none", base_url=f"{model.url}/v1")
    provider = SkillProvider(machine.shelf())
    compaction = SlidingWindowStrategy(keep_last_groups=2)
    agent = Agent(client, context_providers=[provider], compaction_strategy=compaction)

    async def conversation() -> None:
        session = agent.create_session()
        await agent.run("load tea", session=session)
        await agent.run("thanks", session=session)
        await agent.run("load tea", session=session)
        assert provider.session_for(session).active == ("tea",)

    asyncio.run(conversation())

    assert body("tea") in model.heard[-1].results[-1]
    assert "reminder" not in str(model.heard)


@pytest.mark.parametrize("functions", [False, True], ids=["provider", "functions"])
def test_each_run_of_agent_framework_without_a_session_is_a_conversation(
    machine: Machine, model: ScriptServer, *, functions: bool
) -> None:
    require("agent_framework_openai")
    from agent_framework import Agent, FunctionInvocationContext, function_middleware
    from agent_framework_openai import OpenAIChatCompletionClient

    from skillshelf.adapters.agent_framework import SkillProvider, session_for, skill_tools

    write(machine, "tea")
    write(machine, "coffee")
    sessions: list[Any] = []

    async def note(context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()
        sessions.append(session_for(context))

    client = OpenAIChatCompletionClient("m", api_key="none", base_url=f"{model.url}/v1")
    shelf = machine.shelf()
    skills: dict[str, Any] = (
        {"tools": skill_tools(shelf)} if functions else {"context_providers": [SkillProvider(shelf)]}
    )
    agent = Agent(client, middleware=[function_middleware(note)], **skills)

    async def runs() -> None:
        await agent.run("load tea; load coffee")
        await agent.run("load tea")

    asyncio.run(runs())

    assert body("tea") in model.heard[-1].results[-1]
    first, again, second = sessions
    assert first is again
    assert (first.active, second.active) == (("coffee", "tea"), ("tea",))


def test_a_conversation_of_agent_framework_that_continues_in_a_new_process_keeps_its_window(
    machine: Machine, model: ScriptServer
) -> None:
    require("agent_framework_openai")
    from agent_framework import Agent, AgentSession
    from agent_framework_openai import OpenAIChatCompletionClient

    from skillshelf.adapters.agent_framework import SkillProvider

    write(machine, "narrow", allowed="Read")
    write(machine, "tea")
    client = OpenAIChatCompletionClient("m", api_key="none", base_url=f"{model.url}/v1")

    async def process(session: Any, text: str) -> Any:
        provider = SkillProvider(machine.shelf(), policy={"allow": [{"tool": "Bash"}]})
        agent = Agent(client, context_providers=[provider])
        await agent.run(text, session=session)
        assert provider.session_for(session).decide("Bash").verdict == "deny"
        return session.to_dict()

    async def restart() -> None:
        kept = await process(AgentSession(), "load narrow")
        await process(AgentSession.from_dict(json.loads(json.dumps(kept))), "load tea; load narrow")

    asyncio.run(restart())

    assert [body("narrow") in text for text in model.heard[-1].results] == [True, False, True]


# The page -----------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^<!-- model: frameworks -->\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2), ids=["adk", "agent-framework"])
def test_the_example_of_the_page_holds_two_conversations(machine: Machine, model: ScriptServer, number: int) -> None:
    write(machine, "tea")
    block = BLOCKS[number]
    for package in re.findall(r"^from ((?:google\.adk|agent_framework)\w*)", block, re.MULTILINE):
        require(package)
    env = {"GOOGLE_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.url}
    env |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{model.url}/v1"}

    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=machine.repo,
        env={"PATH": os.environ["PATH"], "HOME": str(machine.home), "PYTHONPATH": SOURCE, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done", "done", "done"]
    assert "You are helpful." in model.heard[0].system
    assert "<name>tea</name>" in model.heard[0].system
    last = [heard.results[-1] for heard in model.heard if heard.results and heard.next is None]
    assert [body("tea") in text for text in last] == [True, False, True]
    assert last[1].startswith("<skill_context_reminder")
