"""The adapters of a session for model APIs and for pydantic-ai."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.needs import needs
from support.players import Player, play_pydantic_ai
from support.scenario import SYSTEMS
from support.trees import Machine, write_skill

from skillshelf import Session
from skillshelf.adapters.json_tools import anthropic_result, anthropic_tools, openai_result, openai_tools

BODY = "Read references/style.md first."


def session_with_a_skill(machine: Machine, profile: str = "standard") -> Session:
    """Open a session with the skill `deploy`, which has one reference."""
    text = f"---\nname: deploy\ndescription: Deploys things.\n---\n{BODY}\n"
    folder = write_skill(machine.repo / SYSTEMS[profile].root, "deploy", text).parent
    (folder / "references").mkdir()
    (folder / "references" / "style.md").write_text("Past tense.\n")
    return machine.shelf(profile).session()


# Plain JSON ---------------------------------------------------------------------------------------


# Tools with other names, parameters and schemas; every profile offers its tools through the same two functions.
@pytest.mark.parametrize("profile", ["standard", "swiftagent", "mycodeagent"])
def test_tools_have_the_form_of_each_api(machine: Machine, profile: str) -> None:
    session = session_with_a_skill(machine, profile)
    tools = session.tools()

    listed = [tool.to_dict() for tool in tools]
    assert anthropic_tools(session) == listed
    assert openai_tools(session) == [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in tools
    ]
    # Both APIs allow these names only.
    assert all(tool["name"].replace("_", "").isalnum() and len(tool["name"]) <= 64 for tool in listed)
    for form in (anthropic_tools(session), openai_tools(session)):
        assert json.loads(json.dumps(form)) == form


def anthropic(session: Session, name: str, arguments: Any) -> str:
    """Return the text of the answer to a call in this API's form."""
    answer = anthropic_result(session, {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments})
    assert (answer["type"], answer["tool_use_id"]) == ("tool_result", "toolu_1")
    assert answer.get("is_error", False) is not session.call(name, arguments).ok
    return str(answer["content"])


def openai(session: Session, name: str, arguments: Any) -> str:
    """Return the text of the answer to a call in this API's form."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    answer = openai_result(session, {"id": "call_1", "type": "function", "function": function})
    assert (answer["role"], answer["tool_call_id"], set(answer)) == (
        "tool",
        "call_1",
        {"role", "tool_call_id", "content"},
    )
    return str(answer["content"])


APIS: list[Callable[[Session, str, Any], str]] = [anthropic, openai]


@pytest.mark.parametrize("ask", APIS)
def test_a_model_loads_reads_and_gets_errors_it_can_act_on(
    machine: Machine, ask: Callable[[Session, str, Any], str]
) -> None:
    session = session_with_a_skill(machine)

    assert BODY in ask(session, "skill_load", {"name": "deploy"})
    assert ask(session, "skill_read", {"uri": "skill://deploy/references/style.md"}) == "Past tense.\n"
    assert "did you mean deploy?" in ask(session, "skill_load", {"name": "deplyo"})
    assert "File not found: absent" in ask(session, "skill_read", {"uri": "skill://deploy/absent"})
    assert "(known: skill_search, skill_load, skill_read" in ask(session, "skill_lod", {})
    assert "needs the parameter `uri`" in ask(session, "skill_read", {})
    for wrong in (["deploy"], "deploy", 5):
        assert ask(session, "skill_load", wrong).startswith("Error: ")


@pytest.mark.parametrize("text", ["", "{", "[]", '"deploy"', "null", "5", '{"name": "deploy"} x', "\ud800"], ids=ascii)
def test_arguments_that_are_not_a_json_object_are_an_error_for_the_model(machine: Machine, text: str) -> None:
    session = session_with_a_skill(machine)
    call = {"id": "call_1", "function": {"name": "skill_load", "arguments": text}}
    assert openai_result(session, call)["content"].startswith("Error: ")


@pytest.mark.parametrize("missing", [{}, {"input": None}, {"input": {}}], ids=str)
def test_a_call_without_arguments_is_a_call_with_none(machine: Machine, missing: dict[str, Any]) -> None:
    session = session_with_a_skill(machine)
    answer = anthropic_result(session, {"type": "tool_use", "id": "t", "name": "skill_load", **missing})
    assert (answer["content"], answer["is_error"]) == ("Error: name or path is required", True)


@pytest.mark.req("C-66")
def test_a_body_arrives_as_an_ordinary_tool_message_and_stays_in_history(machine: Machine) -> None:
    session = session_with_a_skill(machine, "codelia")
    system = session.system_prompt("Base.")
    history: list[dict[str, Any]] = [{"role": "system", "content": system}, {"role": "user", "content": "Deploy."}]
    call = {"id": "call_1", "function": {"name": "skill_load", "arguments": '{"name": "deploy"}'}}

    history += [{"role": "assistant", "tool_calls": [call]}, openai_result(session, call)]

    assert [BODY in str(message.get("content")) for message in history] == [False, False, False, True]
    assert history[-1]["role"] == "tool"
    assert history[-1]["content"].startswith('<skill_context name="deploy"')
    assert session.system_prompt("Base.") == system


# pydantic-ai --------------------------------------------------------------------------------------

needs_pydantic_ai = needs("pydantic_ai")


def play(session: Session, *calls: tuple[str, Any], toolset: Any = None) -> Player:
    """Run an agent whose model makes these calls."""
    player = Player(*calls)
    play_pydantic_ai(session, player, toolset=toolset)
    return player


@needs_pydantic_ai
def test_an_agent_sees_the_catalog_and_the_tools_of_the_session(machine: Machine) -> None:
    session = session_with_a_skill(machine)

    player = play(session)

    assert player.instructions == [session.system_prompt()]
    assert "<name>deploy</name>" in player.instructions[0]
    assert player.tools == [{tool.name: tool.input_schema for tool in session.tools()}]
    for schema in player.tools[0].values():
        Draft202012Validator.check_schema(schema)


@needs_pydantic_ai
def test_an_agent_loads_a_skill_reads_its_reference_and_corrects_its_mistakes(machine: Machine) -> None:
    session = session_with_a_skill(machine)

    player = play(
        session,
        ("skill_load", {"name": "deplyo"}),
        ("skill_load", {"name": "deploy"}),
        ("skill_read", {"uri": "skill://deploy/references/absent.md"}),
        ("skill_read", {"uri": "skill://deploy/references"}),
        ("skill_read", {"uri": "skill://deploy/references/style.md"}),
        ("skill_load", {"name": "deploy"}),
    )

    typo, body, absent, listing, reference, again = player.answers
    assert typo == "Error: Skill not found: deplyo; did you mean deploy?\ndeploy"
    assert BODY in body
    assert absent == "Error: File not found: references/absent.md"
    assert (listing, reference) == ("style.md", "Past tense.\n")
    assert again.startswith("<skill_context_reminder")
    assert session.active == ("deploy",)


@needs_pydantic_ai
def test_an_agent_survives_arguments_the_schema_does_not_allow(machine: Machine) -> None:
    session = session_with_a_skill(machine)
    wrong: list[Any] = [{"nme": "deploy"}, {"name": 5}, {}, {"ctx": 1, "self": 2}, "null", "[1]", '"deploy"', "5"]
    player = play(session, *(("skill_load", arguments) for arguments in wrong), ("skill_load", {"name": "deploy"}))
    assert [answer.startswith("Error: ") for answer in player.answers] == [*[True] * len(wrong), False]


@needs_pydantic_ai
@pytest.mark.parametrize("profile", SYSTEMS)
def test_an_agent_works_with_every_system(machine: Machine, profile: str) -> None:
    system = SYSTEMS[profile]
    session = session_with_a_skill(machine, profile)
    player = play(session, (system.tool, {system.parameter: system.value.format(name="deploy")}))
    assert BODY in player.answers[0]


@needs_pydantic_ai
def test_a_skill_that_is_added_later_is_in_the_catalog_and_in_the_tools(machine: Machine) -> None:
    from skillshelf.adapters.pydantic_ai import SkillToolset

    session = machine.shelf().session()
    toolset = SkillToolset(session)
    assert play(session, toolset=toolset).tools == [{}]
    session_with_a_skill(machine)
    session.shelf.refresh()

    player = play(session, ("skill_load", {"name": "deploy"}), toolset=toolset)

    assert "<name>deploy</name>" in player.instructions[0]
    assert player.tools[0]["skill_load"]["properties"]["name"]["enum"] == ["deploy"]
    assert BODY in player.answers[0]
