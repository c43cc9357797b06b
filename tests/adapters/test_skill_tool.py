"""The tool of the documents: called with what its schema says, over a registry or a loader, and in the adapters."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs, require
from support.players import Player
from support.trees import FIXTURES, Machine, write_skill

import skillshelf
from skillshelf import SkillLoader, SkillMetadata, SkillRegistry, SkillTool
from skillshelf.adapters.json_tools import openai_result, openai_tools

VALID = FIXTURES / "valid-skill"


@pytest.fixture
def tool() -> SkillTool:
    """The tool over a registry with one skill."""
    registry = SkillRegistry()
    registry.register(SkillLoader.load_metadata(VALID))
    return SkillTool(registry)


# Over a registry ----------------------------------------------------------------------------------


@pytest.mark.req("S-94")
@pytest.mark.parametrize(
    ("positional", "named"),
    [
        (({"skillName": "valid-skill"},), {}),
        ((), {"skillName": "valid-skill"}),
        ((), {"skill_name": "valid-skill"}),
        (("valid-skill",), {}),
    ],
)
def test_the_tool_is_called_with_what_its_schema_says(tool: SkillTool, positional: Any, named: Any) -> None:
    assert [*tool.parameters["properties"]] == tool.parameters["required"] == ["skillName"]
    assert tool.input_schema == tool.parameters

    assert tool.call(*positional, **named).skill_name == "valid-skill"


@pytest.mark.req("S-94")
@pytest.mark.parametrize("given", [{}, {"skillName": 1}, {"skillName": "valid-skill", "more": 1}, {"name": "x"}])
def test_other_arguments_are_an_error_that_names_the_argument(tool: SkillTool, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="activate_skill takes one argument, the text `skillName`"):
        tool.call(given)


@pytest.mark.req("S-95")
def test_the_output_nests_the_resources_and_is_no_tuple(tool: SkillTool) -> None:
    output = tool.run({"skillName": "valid-skill"})

    has = output.resources_available
    assert (has.has_scripts, has.has_references, has.has_assets) == (True, True, False)
    assert not hasattr(output, "count")
    assert not hasattr(output, "index")
    assert output == tool.call("valid-skill")
    assert len({output, copy.copy(output), pickle.loads(pickle.dumps(output))}) == 1


# Over a loader ------------------------------------------------------------------------------------


@pytest.mark.req("M-29", "M-30", "M-31")
def test_the_tool_over_a_projects_loader_returns_the_envelope(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "review", "---\nname: review\ndescription: R.\n---\nReview $ARGUMENTS now.\n")
    tool = SkillTool(SkillLoader(tmp_path))

    assert (tool.name, [*tool.parameters["properties"]]) == ("Skill", ["name", "args"])
    envelope = tool.run({"name": "review", "args": "main.py"})

    assert envelope["status"] == "success"
    assert "Review main.py now." in envelope["data"]["content"]
    assert json.loads(str(envelope)) == envelope
    assert tool.run({"name": "nobody"})["status"] == "error"
    assert tool.call("review")["status"] == "success"


def test_a_loader_and_its_tool_have_one_catalog(tmp_path: Path) -> None:
    loader = SkillLoader(tmp_path)
    tool = SkillTool(loader)
    assert (loader.list_skills(), tool.run({"name": "review"})["status"]) == ([], "error")

    path = write_skill(tmp_path / "skills", "review")
    assert tool.run({"name": "review"})["status"] == "success"
    assert [meta.name for meta in loader.list_skills()] == ["review"]
    assert loader.refresh_if_stale() is False

    path.write_text(path.read_text().replace("# review", "# changed"))
    assert loader.refresh_if_stale() is True
    assert "# changed" in tool.run({"name": "review"})["data"]["content"]
    path.unlink()
    assert loader.refresh_if_stale() is True
    assert tool.run({"name": "review"})["status"] == "error"


# In the adapters ----------------------------------------------------------------------------------


CALL = {"skillName": "valid-skill"}


def test_plain_clients_offer_and_call_the_tool_by_its_session(tool: SkillTool) -> None:
    from skillshelf.adapters.json_tools import anthropic_result, anthropic_tools, openai_result, openai_tools

    text = str(tool.call(CALL))
    (offered,) = anthropic_tools(tool)
    assert (offered["name"], [*offered["input_schema"]["properties"]]) == ("activate_skill", ["skillName"])
    block = {"type": "tool_use", "id": "1", "name": "activate_skill", "input": CALL}
    assert anthropic_result(tool, block)["content"] == text
    assert openai_tools(tool)[0]["function"]["name"] == "activate_skill"
    call = {"id": "1", "type": "function", "function": {"name": "activate_skill", "arguments": json.dumps(CALL)}}
    assert openai_result(tool, call)["content"] == text


@needs("pydantic_ai")
def test_pydantic_ai_offers_and_calls_the_tool(tool: SkillTool) -> None:
    from pydantic_ai import Agent

    from skillshelf.adapters.pydantic_ai import SkillToolset

    player = Player(("activate_skill", CALL))
    asyncio.run(Agent(player.pydantic_ai(), toolsets=[SkillToolset(tool)]).run("Go."))

    assert player.answers == [str(tool.call(CALL))]


def test_langchain_and_the_agents_sdk_offer_and_call_the_tool(tool: SkillTool) -> None:
    require("langchain_core")
    require("agents")
    from skillshelf.adapters import langchain, openai_agents

    (made,) = langchain.skill_tools(tool)
    assert made.invoke(CALL) == str(tool.call(CALL))
    assert [function.name for function in openai_agents.skill_tools(tool)] == ["activate_skill"]


# Values -------------------------------------------------------------------------------------------


@pytest.mark.req("S-35")
def test_a_skill_and_its_metadata_are_values_and_no_tuples() -> None:
    skill = SkillLoader.load_full(VALID)

    for value in (skill, skill.metadata):
        same = [copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), value._replace()]
        assert same == [value] * 4
        assert len({value, *same}) == 1
        assert not hasattr(value, "count")
        assert not hasattr(value, "index")
        with pytest.raises(AttributeError):
            value.instructions = "x"  # type: ignore[misc]
    assert skill != skill._replace(instructions=None)
    assert skill.metadata != skill.metadata._replace(name="x")
    assert SkillMetadata.from_dict(json.loads(json.dumps(skill.metadata.to_dict()))) == skill.metadata


@pytest.mark.req("C-02", "C-25")
@pytest.mark.parametrize("scope", ["repo", "user", "project", "custom", "env", "remote", "system", "admin", "Repo", ""])
def test_a_scope_is_one_of_the_labels_of_all_profiles(scope: str) -> None:
    from importlib.resources import files

    from skillshelf.config.builtin_profiles import SYSTEMS
    from skillshelf.config.hosts import HOSTS
    from skillshelf.config.profile import scopes_of

    schema = json.loads(files(skillshelf).joinpath("json_schemas/scope.json").read_text())
    known = {label for profile in (*SYSTEMS.values(), *HOSTS.values()) for label in scopes_of(profile)}
    assert {*schema["enum"]} == known | {"remote"}

    value = {"name": "a", "description": "b", "scope": scope}
    if scope in schema["enum"] or scope == "":
        assert SkillMetadata.from_dict(value).scope == scope
    else:
        with pytest.raises(ValueError, match=r"unknown scope .*repo"):
            SkillMetadata.from_dict(value)


@pytest.mark.req("O-05")
def test_a_skill_has_file_path_base_dir_provider_and_level_as_the_document_has_them(machine: Machine) -> None:
    path = write_skill(machine.home / ".claude/skills", "deploy")
    write_skill(machine.repo / ".omp/skills", "review")

    found = {skill.name: skill for skill in machine.catalog("omp").skills}

    deploy = found["deploy"]
    assert (deploy.file_path, deploy.base_dir) == (str(path), str(path.parent))
    assert [(found[name].provider, found[name].level) for name in ("deploy", "review")] == [
        ("claude", "user"),
        (found["review"].source.partition(":")[0], "project"),
    ]
    (other,) = [skill for skill in machine.catalog("standard").skills if skill.name == "deploy"]
    assert (other.provider, other.level) == ("", "")


@pytest.mark.req("S-94")
def test_the_functions_for_plain_clients_take_the_tool_like_a_shelf(tool: SkillTool) -> None:
    call = {"id": "c1", "function": {"name": "activate_skill", "arguments": '{"skillName": "valid-skill"}'}}

    assert [entry["function"]["name"] for entry in openai_tools(tool)] == ["activate_skill"]
    assert openai_result(tool, call, [])["content"].startswith("# Skill Activated: valid-skill")
    assert openai_result(tool, {"id": "c2", "type": "custom", "custom": {"name": "x"}}, [])["content"].startswith(
        "Error"
    )
