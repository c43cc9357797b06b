"""A session: what its model gets, which tools it has, and what it does when the disk or its users change."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.scenario import SYSTEMS
from support.trees import Machine, write_skill

from skillshelf import ConfigurationError, Session, SkillError, SkillNotFound, ToolResult
from skillshelf.session.render import agents_context

BODY = "This line is in the body only."


def put(machine: Machine, name: str, profile: str = "standard", *, more: str = "", body: str = BODY) -> str:
    """Write a skill where the profile looks in a project; returns its text."""
    text = f"---\nname: {name}\ndescription: Does {name} things.\n{more}---\n{body}\n"
    write_skill(machine.repo / SYSTEMS[profile].root, name, text)
    return text


# The system prompt --------------------------------------------------------------------------------


@pytest.mark.req("C-05", "C-58")
@pytest.mark.parametrize("profile", SYSTEMS)
def test_a_system_prompt_is_the_base_then_standing_context_then_skills(machine: Machine, profile: str) -> None:
    session = machine.shelf(profile).session()
    without = session.system_prompt(base="You are a test.", agents_context="Be kind.")
    put(machine, "deploy", profile)
    shelf = machine.shelf(profile)

    prompt = shelf.session().system_prompt(base="You are a test.", agents_context="Be kind.")

    assert without == "You are a test.\n\nBe kind."
    assert prompt.startswith(without + "\n\n")
    assert prompt.endswith(shelf.prompt())
    assert BODY not in prompt


@pytest.mark.req("C-05")
def test_skills_and_the_files_of_a_project_stand_side_by_side_in_one_prompt(machine: Machine) -> None:
    (machine.repo / "AGENTS.md").write_text("Use tabs. <available_skills> is a word here.\n")
    put(machine, "deploy")
    shelf = machine.shelf()

    prompt = shelf.session().system_prompt(agents_context=agents_context(shelf.environment.cwd))

    context, _, skills = prompt.rpartition("\n\n")
    assert context.endswith("Use tabs. <available_skills> is a word here.")
    assert skills == shelf.prompt()


def test_parts_that_are_empty_leave_no_gap(machine: Machine) -> None:
    session = machine.shelf().session()
    assert session.system_prompt() == ""
    assert session.system_prompt(agents_context="Be kind.") == "Be kind."


@pytest.mark.req("O-01", "O-37", "O-38")
@pytest.mark.parametrize(
    ("tools", "listed"), [(None, True), (["read"], True), (["bash", "read"], True), ([], False), (["bash"], False)]
)
def test_skills_are_listed_where_there_is_a_tool_to_read_them(
    machine: Machine, tools: list[str] | None, listed: bool
) -> None:
    put(machine, "deploy", "omp")
    prompt = machine.shelf("omp").session().system_prompt(base="Base.", tools=tools)

    if listed:
        assert '<skill name="deploy">\nDoes deploy things.\n</skill>' in prompt
    else:
        assert prompt == "Base."


@pytest.mark.parametrize("profile", [profile for profile in SYSTEMS if profile != "omp"])
def test_other_systems_list_their_skills_whatever_tools_a_host_has(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    session = machine.shelf(profile).session()
    assert session.system_prompt(tools=[]) == session.system_prompt()
    assert "Does deploy things." in session.system_prompt(tools=[])


@pytest.mark.req("O-38", "O-39", "O-42")
def test_skills_given_at_the_start_are_inlined_in_full_instead_of_the_list(machine: Machine) -> None:
    texts = {name: put(machine, name, "omp") for name in ("deploy", "review", "unused")}
    prompt = machine.shelf("omp").session(preload=["review", "deploy"]).system_prompt(tools=["read"])

    assert prompt == (
        "<preloaded_skills>\n"
        f'<skill name="review">\n{texts["review"]}</skill>\n'
        f'<skill name="deploy">\n{texts["deploy"]}</skill>\n'
        "</preloaded_skills>"
    )


@pytest.mark.req("O-01")
def test_the_model_hears_of_the_skills_there_were_when_the_session_began(machine: Machine) -> None:
    put(machine, "deploy", "omp")
    shelf = machine.shelf("omp")
    session = shelf.session()
    before = session.system_prompt()
    put(machine, "review", "omp")

    assert "review" not in before
    assert session.system_prompt() == before
    assert shelf.refresh() is True
    assert '<skill name="review">' in session.system_prompt()


@pytest.mark.req("C-23")
def test_a_body_comes_through_the_load_tool_and_in_no_other_way(machine: Machine) -> None:
    put(machine, "deploy", "codelia")
    shelf = machine.shelf("codelia")
    session = shelf.session()
    told = [
        session.system_prompt("Base.", "Agents."),
        shelf.prompt(),
        repr(session.tools()),
        repr(session.call("skill_search", {"query": "deploy"})),
        repr(session.call("skill_search", {"query": BODY}).data["results"]),
        repr(session.resolve_mentions("$deploy")),
        repr(session.command("/skill:deploy")),
        repr(session.call("skill_read", {"uri": "skill://deploy"})),
    ]

    assert [text for text in told if BODY in text] == []
    assert BODY in session.call("skill_load", {"name": "deploy"}).text
    assert BODY not in session.system_prompt()


# Sub-agents ---------------------------------------------------------------------------------------


@pytest.mark.req("O-40", "O-42")
def test_a_sub_agent_starts_with_the_skills_a_task_names(machine: Machine) -> None:
    text = put(machine, "deploy", "omp")
    session = machine.shelf("omp").session()

    child = session.child(["deploy"])

    assert f'<skill name="deploy">\n{text}</skill>' in child.system_prompt()
    assert text not in session.system_prompt()


@pytest.mark.req("O-41")
@pytest.mark.parametrize("wrong", ["deplyo", "", "Deploy", "../deploy", "deploy\0"])
def test_an_unknown_name_is_an_error_at_once_that_lists_the_names(machine: Machine, wrong: str) -> None:
    for name in ("deploy", "review"):
        put(machine, name, "omp")
    session = machine.shelf("omp").session()

    for start in (session.child, lambda names: machine.shelf("omp").session(preload=names)):
        with pytest.raises(ConfigurationError, match="Available: deploy, review"):
            start(["review", wrong])


def test_an_unknown_name_where_there_is_no_skill_says_that_there_is_none(machine: Machine) -> None:
    with pytest.raises(ConfigurationError, match="Available: none"):
        machine.shelf("omp").session(preload=["deploy"])


def test_a_sub_agent_remembers_for_itself(machine: Machine) -> None:
    put(machine, "deploy")
    session = machine.shelf().session()
    assert BODY in session.call("skill_load", {"name": "deploy"}).text

    assert BODY in session.child().call("skill_load", {"name": "deploy"}).text
    assert BODY not in session.call("skill_load", {"name": "deploy"}).text


# Tools --------------------------------------------------------------------------------------------

PARAMETERS = {
    "standard": {
        "skill_search": ["query", "limit?", "scope?"],
        "skill_load": ["name?", "path?", "args?", "offset?"],
        "skill_read": ["uri"],
    },
    "codelia": {"skill_search": ["query", "limit?", "scope?"], "skill_load": ["name?", "path?", "offset?"]},
    "swiftagent": {"activate_skill": ["skillName"]},
    "mycodeagent": {"Skill": ["name", "args?"]},
    "rip": {"skill_load": ["name", "args?", "offset?"], "skill_read": ["uri"]},
    "omp": {"read": ["path"]},
}
PARAMETERS["strict"] = PARAMETERS["standard"]


@pytest.mark.parametrize("profile", PARAMETERS)
def test_a_profile_has_its_tools_with_their_parameters_and_valid_schemas(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)

    tools = machine.shelf(profile).session().tools()

    shown = {}
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        required = tool.input_schema["required"]
        shown[tool.name] = [name + ("" if name in required else "?") for name in tool.input_schema["properties"]]
        assert tool.description
        assert json.loads(json.dumps(tool.to_dict())) == tool.to_dict()
    assert {name: row for name, row in shown.items() if name != "skill_run"} == PARAMETERS[profile]


@pytest.mark.parametrize("profile", SYSTEMS)
def test_a_call_that_the_schema_accepts_works_and_one_it_refuses_does_not(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    system, session = SYSTEMS[profile], machine.shelf(profile).session()
    (schema,) = [tool.input_schema for tool in session.tools() if tool.name == system.tool]
    accepts = Draft202012Validator(schema).is_valid

    right = {system.parameter: system.value.format(name="deploy")}
    assert (accepts(right), session.call(system.tool, right).ok) == (True, True)
    for wrong in ({**right, "more": 1}, {system.parameter: 5}, {system.parameter: ["deploy"]}):
        assert (accepts(wrong), session.call(system.tool, wrong).ok) == (False, False)


@pytest.mark.parametrize("profile", [profile for profile in SYSTEMS if profile != "omp"])
def test_a_schema_names_the_skills_while_they_are_few(machine: Machine, profile: str) -> None:
    parameter = SYSTEMS[profile].parameter

    def names() -> list[str] | None:
        (tool,) = [
            tool for tool in machine.shelf(profile).session().tools() if parameter in tool.input_schema["properties"]
        ]
        found: list[str] | None = tool.input_schema["properties"][parameter].get("enum")
        return found

    many = [f"skill-{number:02}" for number in range(50)]
    for name in many:
        put(machine, name, profile)
    assert names() == many
    put(machine, "one-more", profile)
    assert names() is None


def test_a_schema_names_no_skill_that_the_model_is_not_told_of(machine: Machine) -> None:
    put(machine, "deploy")
    put(machine, "secret", more="disable-model-invocation: true\n")
    put(machine, "off")
    machine.configure('skills.disabled = ["off"]\n')

    (load,) = [tool for tool in machine.shelf().session().tools() if tool.name == "skill_load"]

    assert load.input_schema["properties"]["name"]["enum"] == ["deploy"]


@pytest.mark.parametrize("profile", SYSTEMS)
def test_without_a_skill_there_is_no_tool_and_nothing_to_tell(machine: Machine, profile: str) -> None:
    session = machine.shelf(profile).session()
    assert (session.tools(), session.commands(), session.system_prompt()) == ([], [], "")


# Activation ---------------------------------------------------------------------------------------


def test_what_was_loaded_is_active_until_it_is_given_back(machine: Machine) -> None:
    for name in ("deploy", "review", "test"):
        put(machine, name)
    session = machine.shelf().session()

    loaded = session.activate("review")
    session.call("skill_load", {"name": "deploy"})
    session.command("/skill:test")
    session.call("skill_load", {"name": "absent"})

    assert (loaded.skill.name, loaded.body) == ("review", BODY + "\n")
    assert list(session.active) == ["deploy", "review", "test"]
    session.deactivate("deploy")
    session.deactivate("deploy")
    assert list(session.active) == ["review", "test"]


def test_activating_what_is_not_there_raises(machine: Machine) -> None:
    session = machine.shelf().session()
    with pytest.raises(SkillNotFound):
        session.activate("deploy")
    assert session.active == ()


# Refresh ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "found"), [(None, True), ("true", True), ("1", True), ("false", False), ("0", False)])
def test_a_system_that_looks_at_each_call_finds_a_new_skill(machine: Machine, word: str | None, found: bool) -> None:
    put(machine, "deploy", "mycodeagent")
    machine.env = {"SKILLS_REFRESH_ON_CALL": word} if word else {}
    session = machine.shelf("mycodeagent").session()
    before = [tool.to_dict() for tool in session.tools()]
    put(machine, "review", "mycodeagent")

    session.call("Skill", {"name": "deploy"})

    assert session.call("Skill", {"name": "review"}).ok is found
    assert ([tool.to_dict() for tool in session.tools()] != before) is found


@pytest.mark.req("M-43", "M-44")
def test_the_first_skill_of_a_project_brings_the_tool(machine: Machine) -> None:
    # Two, since the one that is asked for first must look again by itself.
    one, other = (machine.shelf("mycodeagent").session() for _ in range(2))
    before = [(session.tools(), session.system_prompt("Base.")) for session in (one, other)]
    put(machine, "deploy", "mycodeagent")

    assert before == [([], "Base.")] * 2
    assert [tool.name for tool in one.tools()] == ["Skill"]
    assert "- deploy: " in other.system_prompt("Base.")


@pytest.mark.parametrize("profile", [profile for profile in SYSTEMS if profile != "mycodeagent"])
def test_other_systems_look_again_when_they_are_told_to(machine: Machine, profile: str) -> None:
    put(machine, "deploy", profile)
    shelf = machine.shelf(profile)
    session = shelf.session()
    session.tools()
    put(machine, "review", profile)

    assert not SYSTEMS[profile].load(session, "review").ok
    assert shelf.refresh() is True
    assert SYSTEMS[profile].load(session, "review").ok
    assert shelf.refresh() is False


# Threads ------------------------------------------------------------------------------------------


def test_of_many_threads_that_load_one_skill_one_gets_the_body(machine: Machine) -> None:
    put(machine, "deploy")
    session = machine.shelf().session()

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: session.call("skill_load", {"name": "deploy"}), range(64)))

    assert [BODY in result.text for result in results].count(True) == 1
    assert {result.data["ref"] for result in results} == {"load-1"}
    assert [result.data["already_loaded"] for result in results].count(False) == 1


def test_threads_that_do_different_things_at_once_do_not_disturb_each_other(machine: Machine) -> None:
    names = [f"skill-{number}" for number in range(8)]
    for name in names:
        put(machine, name, body=f"{BODY} {name}")
    session = machine.shelf().session()

    def work(number: int) -> ToolResult:
        name = names[number % 8]
        session.resolve_mentions(f"${name}")
        session.deactivate(name)
        if number % 7 == 0:
            session.compact()
        assert Session.restore(json.loads(json.dumps(session.snapshot())), session.shelf)
        result = session.call("skill_load", {"name": name, "args": str(number)})
        assert session.recall(result.data["ref"]) == result.text
        return result

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(40)))

    assert all(f"{BODY} {names[number % 8]}" in result.text for number, result in enumerate(results))
    assert len({result.data["ref"] for result in results}) == len(results)


def test_every_failure_of_a_session_is_one_that_a_caller_can_catch(machine: Machine) -> None:
    put(machine, "deploy")
    session = machine.shelf().session()
    for use in (session.activate, session.recall, session.load, lambda name: session.child([name])):
        with pytest.raises(SkillError):
            use("absent")


def test_sessions_of_one_shelf_record_its_catalog_alike_and_each_its_own_rules(machine: Machine) -> None:
    for name in ("web-css", "web-html"):
        write_skill(machine.home / ".agents/skills", name)
    shelf = machine.shelf()

    def recorded(policy: dict[str, Any] | None = None) -> dict[str, Any]:
        path = machine.base / "journal.jsonl"
        path.unlink(missing_ok=True)
        with shelf.session(policy, journal=path):
            pass
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        (found,) = (line for line in lines if line["type"] == "skill_catalog_updated")
        return {name: found.get(name) for name in ("count", "digest", "listing", "listed")}

    first = recorded()
    assert recorded() == first
    assert recorded({"deny": [{"tool": "skill_load", "skill_name": "web-css"}]})["digest"] != first["digest"]
    assert recorded() == first
    write_skill(machine.home / ".agents/skills", "web-js")
    shelf.refresh()
    changed = recorded()
    assert (changed["count"], changed["digest"] != first["digest"], changed["listing"] != first["listing"]) == (
        3,
        True,
        True,
    )
