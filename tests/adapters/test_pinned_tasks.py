"""A task for a sub-agent with pinned skills, as the tool of each framework."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.needs import require
from support.players import PLAYS, Player
from support.trees import Machine, write_skill

from skillshelf import Session


class SubAgents:
    """Starts sub-agents that only record their input; every second one is started by a coroutine."""

    def __init__(self) -> None:
        self.started: list[tuple[str, str]] = []
        self.children: list[Session] = []

    def __call__(self, child: Session, prompt: str) -> Any:
        self.children.append(child)
        self.started.append((prompt, child.system_prompt()))
        return "at once" if len(self.started) % 2 else self._later()

    async def _later(self) -> str:
        return "later"


def session_of(machine: Machine, **options: Any) -> Session:
    """Open a session with two skills."""
    for name in ("deploy", "review"):
        write_skill(machine.home / ".agents/skills", name)
    return machine.shelf().session(**options)


@pytest.mark.slow
@pytest.mark.req("O-40", "O-42")
@pytest.mark.parametrize("framework", PLAYS)
def test_a_sub_agent_starts_with_the_skills_that_the_model_pinned(machine: Machine, framework: str) -> None:
    journal = machine.base / "run.jsonl"
    agents = SubAgents()
    player = Player(
        ("task", {"prompt": "Ship v2.", "skills": ["deploy"]}),
        ("task", {"prompt": "Think.", "skills": []}),
        ("task", {"prompt": "Think again."}),
    )
    with session_of(machine, journal=journal) as session:
        PLAYS[framework](session, player, agents)

    assert player.answers == ["at once", "later", "at once"]
    assert [prompt for prompt, _ in agents.started] == ["Ship v2.", "Think.", "Think again."]
    assert ["# deploy" in instructions for _, instructions in agents.started] == [True, False, False]
    assert not any("# deploy" in instructions for instructions in player.instructions)
    assert player.tools[0]["task"]["properties"]["skills"]["items"]["enum"] == ["deploy", "review"]
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    begun = {entry["session"]: entry.get("preload", []) for entry in records if entry["type"] == "session_started"}
    assert list(begun.values()) == [[], ["deploy"], [], []]
    assert {entry["session"] for entry in records if entry["type"] == "session_ended"} == set(begun)


@pytest.mark.req("O-41")
@pytest.mark.parametrize("framework", PLAYS)
def test_an_unknown_skill_is_an_error_that_lists_the_names_and_nothing_starts(machine: Machine, framework: str) -> None:
    agents = SubAgents()
    wrong: list[dict[str, Any]] = [
        {"prompt": "Ship v2.", "skills": ["review", "deplyo"]},
        {"prompt": "Ship v2.", "skills": "deploy"},
        {"prompt": "Ship v2.", "skills": [5]},
        {"prompt": " "},
        {"skills": ["deploy"]},
    ]
    player = Player(*(("task", arguments) for arguments in wrong))

    PLAYS[framework](session_of(machine), player, agents)

    assert player.answers == [
        "Error: Unknown skill: deplyo. Available: deploy, review",
        "Error: `skills` must be a list of names",
        "Error: `skills` must be a list of names",
        "Error: task needs the parameter `prompt`: the task, in full",
        "Error: task needs the parameter `prompt`: the task, in full",
    ]
    assert agents.started == []


def test_a_child_is_closed_when_its_task_fails(machine: Machine) -> None:
    import asyncio

    from skillshelf.adapters.json_tools import run_task

    agents = SubAgents()

    def fail(child: Session, prompt: str) -> str:
        agents(child, prompt)
        raise TimeoutError("the model is away")

    with pytest.raises(TimeoutError):
        asyncio.run(run_task(session_of(machine), {"prompt": "Ship v2."}, fail))
    assert agents.children[0].call("skill_load", {"name": "deploy"}).text == "Error: this session was closed"


def test_langchain_marks_an_error_as_one_and_works_in_coroutines_too(machine: Machine) -> None:
    require("langchain_core")
    import asyncio

    from skillshelf.adapters.langchain import skill_tools

    tools = {tool.name: tool for tool in skill_tools(session_of(machine))}

    def call(**arguments: Any) -> Any:
        return {"type": "tool_call", "id": "c1", "name": "skill_load", "args": arguments}

    load = tools["skill_load"]
    assert [load.invoke(call(name=name)).status for name in ("deploy", "nonsense")] == ["success", "error"]
    assert asyncio.run(load.ainvoke(call(name="nonsense"))).status == "error"
    # Names that a framework's own parameters have are only wrong arguments.
    for strange in ("self", "config", "run_manager", "func", "callbacks"):
        assert load.invoke(call(**{strange: "x"})).content.startswith("Error: skill_load has no parameter")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '"deploy"'])
def test_the_agents_sdk_gets_an_error_for_arguments_that_are_not_an_object(machine: Machine, text: str) -> None:
    require("agents")
    import asyncio

    from agents.tool_context import ToolContext

    from skillshelf.adapters.openai_agents import skill_tools, task_tool

    async def answer(tool: Any, context: Any, text: str) -> str:
        return str(await tool.on_invoke_tool(context, text))

    session = session_of(machine)
    for tool in (*skill_tools(session), task_tool(session, SubAgents())):
        context = ToolContext(None, tool_name=tool.name, tool_call_id="c1", tool_arguments=text)
        assert asyncio.run(answer(tool, context, text)).startswith("Error: ")
