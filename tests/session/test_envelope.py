"""The `Skill` tool: its response envelope, its errors, when it looks at the disk again, and its place in a prompt."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, put_folder_for_file, put_pipe_for_file, write_skill
from support.users import ordinary_user

from skillshelf import Session, SkillLoader

TEXT = "---\nname: code-review\ndescription: Looks for risks.\nx-own: 1\n---\n\n# Review\n\nLook at $ARGUMENTS.\n\n"


def project(machine: Machine, text: str | bytes = TEXT) -> Path:
    """A project with one skill; returns its file."""
    return write_skill(machine.repo / "skills", "code-review", text)


def session(machine: Machine, **env: str) -> Session:
    """A session of the profile whose catalog is made already."""
    machine.env.update(env)
    shelf = machine.shelf("mycodeagent")
    assert shelf.catalog.profile == "mycodeagent"
    return shelf.session()


# The envelope -------------------------------------------------------------------------------------

CODES = {
    "NOT_FOUND",
    "ACCESS_DENIED",
    "PERMISSION_DENIED",
    "INVALID_PARAM",
    "TIMEOUT",
    "INTERNAL_ERROR",
    "EXECUTION_ERROR",
    "CONFLICT",
    "IS_DIRECTORY",
    "BINARY_FILE",
}
"""The codes that the protocol's own validator accepts."""

HINTS = re.compile(r"\b(try|check|use|run|verify)\b", re.IGNORECASE)


def problems(text: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with an envelope, by the rules of the protocol."""
    whole = json.loads(text)
    status, error = whole.get("status"), whole.get("error")
    expected = {"status", "data", "text", "stats", "context", *(["error"] if status == "error" else [])}
    if set(whole) != expected:
        yield f"members {sorted(whole)}"
        return
    if status not in ("success", "partial", "error"):
        yield f"status {status}"
    if not isinstance(whole["data"], dict) or (status == "error" and whole["data"] != {}):
        yield "data is no object, or not empty on an error"
    elif bool(whole["data"].get("truncated")) != (status == "partial"):
        yield "what is truncated is partial, and nothing else"
    if not isinstance(whole["text"], str) or len(whole["text"]) < 10:
        yield "text says nothing"
    elif status != "success" and not HINTS.search(whole["text"]):
        yield "text names no next step"
    yield from problems_of_members(whole, error, status, given)


def problems_of_members(whole: Mapping[str, Any], error: Any, status: str, given: Mapping[str, Any]) -> Iterator[str]:
    """The same for `error`, `stats` and `context`."""
    if status == "error":
        if set(error) != {"code", "message"} or error["code"] not in CODES or error["message"] != whole["text"]:
            yield f"error {error}"
    elif whole["stats"].get("time_ms", 0) < 1:
        yield "a success takes at least a millisecond"
    times = whole["stats"].get("time_ms")
    if isinstance(times, bool) or not isinstance(times, int | float):
        yield "no time"
    if not all(isinstance(value, int | float | str) for value in whole["stats"].values()):
        yield "stats that are neither numbers nor texts"
    context = whole["context"]
    if not isinstance(context.get("cwd"), str) or os.path.isabs(context["cwd"]):
        yield "cwd is not relative to the project"
    if context.get("params_input") != given:
        yield "params_input is not what was given"
    if os.path.isabs(context.get("path_resolved", "")):
        yield "path_resolved is not relative to the project"


@pytest.mark.req("M-03", "M-08", "M-31", "M-32", "M-34", "M-35", "M-36", "M-37", "M-70")
def test_a_loaded_skill_comes_in_the_envelope(machine: Machine) -> None:
    project(machine)
    given = {"name": "code-review", "args": "src/größe.py"}
    result = session(machine).call("Skill", given)
    envelope = json.loads(result.text)
    time_ms = envelope["stats"]["time_ms"]
    assert (result.ok, result.error, result.data) == (True, None, envelope)
    assert envelope == {
        "status": "success",
        "data": {
            "name": "code-review",
            "base_dir": "skills/code-review",
            "content": "Base directory for this skill: skills/code-review\n\n# Review\n\nLook at src/größe.py.",
        },
        "text": "Loaded skill 'code-review'.",
        "stats": {"time_ms": time_ms},
        "context": {"cwd": ".", "params_input": given, "path_resolved": "skills/code-review/SKILL.md"},
    }
    assert [*problems(result.text, given)] == []


@pytest.mark.req("M-34", "M-70")
def test_the_envelope_is_written_for_people_too(machine: Machine) -> None:
    project(machine, TEXT.replace("risks", "größe 日本"))
    result = session(machine).call("Skill", {"name": "code-review", "args": "größe"})
    assert result.text == json.dumps(result.data, indent=2, ensure_ascii=False)
    assert "größe" in result.text


@pytest.mark.req("M-34", "M-36")
def test_paths_in_the_envelope_start_at_the_project(machine: Machine) -> None:
    project(machine)
    write_skill(machine.repo / "skills/group/deep", "other")
    (machine.repo / "src" / "app").mkdir(parents=True)
    shelf = machine.shelf("mycodeagent", cwd=machine.repo / "src" / "app")
    result = shelf.session().call("Skill", {"name": "other"})
    assert [*problems(result.text, {"name": "other"})] == []
    assert result.data["data"]["base_dir"] == "skills/group/deep/other"
    assert result.data["context"]["cwd"] == "src/app"
    assert result.data["context"]["path_resolved"] == "skills/group/deep/other/SKILL.md"


@pytest.mark.req("M-34")
def test_a_long_skill_comes_whole_because_no_tool_could_give_the_rest(machine: Machine) -> None:
    project(machine, TEXT + "x" * 300_000)
    result = session(machine).call("Skill", {"name": "code-review"})
    assert (result.data["status"], "truncated" in result.data["data"]) == ("success", False)
    assert "x" * 300_000 in result.data["data"]["content"]
    assert [*problems(result.text, {"name": "code-review"})] == []


@pytest.mark.req("M-34", "M-70")
def test_a_person_is_shown_the_same_envelope(machine: Machine) -> None:
    project(machine)
    here = session(machine)
    text = here.load("code-review", arguments="src").text
    given = {"name": "code-review", "args": "src"}
    assert [*problems(text, given)] == []
    assert json.loads(text)["data"] == here.call("Skill", given).data["data"]


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.req("M-56", "M-29", "M-30", "M-34", "M-70")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"name": ""},
        {"name": "  "},
        {"name": None},
        {"name": 5},
        {"name": ["code-review"]},
        {"args": "x"},
        {"name": "code-review", "args": 5},
        {"name": "code-review", "path": "x"},
    ],
)
def test_a_missing_name_or_a_wrong_type_is_an_invalid_parameter(machine: Machine, given: dict[str, Any]) -> None:
    project(machine)
    result = session(machine).call("Skill", given)
    assert [*problems(result.text, given)] == []
    assert (result.ok, result.data["error"]["code"]) == (False, "INVALID_PARAM")


@pytest.mark.req("M-56")
def test_a_call_without_any_arguments_is_an_invalid_parameter(machine: Machine) -> None:
    project(machine)
    result = session(machine).call("Skill")
    assert [*problems(result.text, {})] == []
    assert result.data["error"]["code"] == "INVALID_PARAM"


@pytest.mark.req("M-57", "M-34", "M-70")
@pytest.mark.parametrize("name", ["nobody", "Code-Review", "code-review/../x", "skills/code-review", "größe"])
def test_an_unknown_name_is_not_found(machine: Machine, name: str) -> None:
    project(machine)
    result = session(machine).call("Skill", {"name": name})
    assert [*problems(result.text, {"name": name})] == []
    assert (result.ok, result.data["error"]["code"]) == (False, "NOT_FOUND")
    assert name in result.data["text"]


REFRESH = pytest.mark.parametrize("refresh", ["true", "false"], ids=["refresh on call", "no refresh"])


@pytest.mark.req("M-58", "M-34", "M-70")
@REFRESH
def test_a_file_that_the_system_does_not_let_us_read_is_permission_denied(
    reachable_machine: Machine, refresh: str
) -> None:
    path = project(reachable_machine)
    here = session(reachable_machine, SKILLS_REFRESH_ON_CALL=refresh)
    # Everything that is imported late is imported now: an ordinary user may not be able to read it.
    assert here.call("Skill", {"name": "code-review"}).ok
    path.chmod(0)
    with ordinary_user():
        result = here.call("Skill", {"name": "code-review"})
    assert [*problems(result.text, {"name": "code-review"})] == []
    assert result.data["error"]["code"] == "PERMISSION_DENIED"
    # The failure of one call says nothing about the next.
    assert here.call("Skill", {"nme": "code-review"}).data["error"]["code"] == "INVALID_PARAM"


def put_file_for_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("x")


@pytest.mark.req("M-59", "M-34", "M-70")
@pytest.mark.parametrize("happens", [put_file_for_folder, put_folder_for_file, put_pipe_for_file])
def test_any_other_failure_of_the_system_is_an_execution_or_internal_error(
    machine: Machine, happens: Callable[[Path], None]
) -> None:
    path = project(machine)
    here = session(machine, SKILLS_REFRESH_ON_CALL="false")
    happens(path)
    result = here.call("Skill", {"name": "code-review"})
    assert [*problems(result.text, {"name": "code-review"})] == []
    assert result.data["error"]["code"] in ("EXECUTION_ERROR", "INTERNAL_ERROR")


@pytest.mark.req("M-61", "M-34", "M-70")
@REFRESH
@pytest.mark.parametrize(
    "text",
    ["no frontmatter\n", "---\nname: [a\n---\n", "---\nname: code-review\n---\n", TEXT.encode() + b"\xff"],
    ids=["no frontmatter", "no YAML", "no description", "no UTF-8"],
)
def test_a_listed_skill_that_no_longer_parses_is_an_internal_error(
    machine: Machine, refresh: str, text: str | bytes
) -> None:
    project(machine)
    here = session(machine, SKILLS_REFRESH_ON_CALL=refresh)
    assert here.call("Skill", {"name": "code-review"}).ok
    project(machine, text)
    result = here.call("Skill", {"name": "code-review"})
    assert [*problems(result.text, {"name": "code-review"})] == []
    assert result.data["error"]["code"] == "INTERNAL_ERROR"


@pytest.mark.req("M-60", "M-61")
def test_a_skill_that_never_parsed_is_not_listed_and_an_internal_error_with_its_rule(machine: Machine) -> None:
    project(machine)
    write_skill(machine.repo / "skills", "broken", "no frontmatter\n")
    here = session(machine)
    assert "broken" not in here.system_prompt()
    assert [error.path for error in here.shelf.catalog.errors] == [str(machine.repo / "skills/broken/SKILL.md")]
    error = here.call("Skill", {"name": "broken"}).data["error"]
    assert error["code"] == "INTERNAL_ERROR"
    assert "frontmatter-missing" in error["message"]


@pytest.mark.req("M-01", "M-28")
@pytest.mark.parametrize("tool", ["skill_load", "skill_read", "activate_skill", "read", "skill", "nonsense"])
def test_nothing_but_the_one_tool_loads_a_skill(machine: Machine, tool: str) -> None:
    project(machine)
    given = {"name": "code-review"}
    result = session(machine).call(tool, given)
    assert [*problems(result.text, given)] == []
    assert (result.ok, result.data["error"]["code"]) == (False, "INVALID_PARAM")
    assert "# Review" not in result.text


# When the disk is looked at again -----------------------------------------------------------------


def listed(here: Session) -> list[str]:
    """The names in the prompt of the tool."""
    return re.findall("^- ([a-z-]+): ", here.catalog_text().text.partition("Available skills:")[2], re.MULTILINE)


def asked(here: Session, name: str) -> str:
    """The status of a call for that skill."""
    status: str = here.call("Skill", {"name": name}).data["status"]
    return status


@pytest.mark.req("M-51")
def test_without_a_call_there_is_one_look_at_the_disk_for_all_sessions_of_a_shelf(machine: Machine) -> None:
    project(machine)
    shelf = machine.shelf("mycodeagent")
    first, second = shelf.session(), shelf.session()
    assert listed(first) == ["code-review"]
    write_skill(machine.repo / "skills", "late")
    assert listed(first) == listed(second) == ["code-review"]
    assert first.shelf.catalog is second.shelf.catalog


@pytest.mark.req("M-52", "M-53", "M-55")
@pytest.mark.parametrize(
    "env", [{}, {"SKILLS_REFRESH_ON_CALL": "true"}, {"SKILLS_REFRESH_ON_CALL": "1"}, {"SKILLS_REFRESH_ON_CALL": "Yes"}]
)
def test_a_call_sees_what_was_added_changed_and_removed_before_it(machine: Machine, env: dict[str, str]) -> None:
    path = project(machine)
    here = session(machine, **env)
    write_skill(machine.repo / "skills", "late")
    assert (asked(here, "late"), listed(here)) == ("success", ["code-review", "late"])

    project(machine, TEXT.replace("Looks for risks.", "Looks twice."))
    assert asked(here, "late") == "success"
    assert "- code-review: Looks twice." in here.catalog_text().text

    shutil.rmtree(path.parent)
    assert (asked(here, "late"), listed(here)) == ("success", ["late"])
    assert asked(here, "code-review") == "error"


@pytest.mark.req("M-55", "M-54", "M-51")
@pytest.mark.parametrize("word", ["false", "0", "no", "off", "FALSE"])
def test_a_variable_switches_the_look_at_each_call_off(machine: Machine, word: str) -> None:
    project(machine)
    here = session(machine, SKILLS_REFRESH_ON_CALL=word)
    write_skill(machine.repo / "skills", "late")
    assert (asked(here, "late"), listed(here)) == ("error", ["code-review"])
    assert here.shelf.refresh()
    assert (asked(here, "late"), listed(here)) == ("success", ["code-review", "late"])


@pytest.mark.req("M-15", "M-51", "M-53")
def test_a_loader_keeps_its_scan_until_a_date_says_that_it_is_stale(machine: Machine) -> None:
    path = project(machine)
    loader = SkillLoader(machine.repo)
    (before,) = loader.scan()
    os.utime(path, (1_700_000_000, 1_700_000_000))
    write_skill(machine.repo / "skills", "late")
    assert loader.list_skills() == [before]
    assert loader.get_skill("late") is None
    assert loader.refresh_if_stale() is True
    after = {skill.name: skill for skill in loader.list_skills()}
    assert sorted(after) == ["code-review", "late"]
    assert after["code-review"] == before._replace(mtime=1_700_000_000.0)


@pytest.mark.req("M-15", "M-53")
def test_a_new_date_alone_makes_a_scan_stale(machine: Machine) -> None:
    path = project(machine)
    loader = SkillLoader(machine.repo)
    loader.scan()
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert [loader.refresh_if_stale(), loader.refresh_if_stale()] == [True, False]


@pytest.mark.req("M-54")
def test_a_scan_that_is_not_stale_stays_what_it_was(machine: Machine) -> None:
    project(machine)
    loader = SkillLoader(machine.repo)
    before = loader.scan()
    assert loader.refresh_if_stale() is False
    assert loader.list_skills() == before
    here = session(machine)
    text = here.system_prompt()
    assert asked(here, "code-review") == "success"
    assert here.system_prompt() == text


# The tool and the system prompt -------------------------------------------------------------------


@pytest.mark.req("M-28", "M-29", "M-30", "M-39", "M-43")
def test_the_tool_has_a_required_name_and_optional_arguments(machine: Machine) -> None:
    project(machine)
    (tool,) = session(machine).tools()
    schema: Any = tool.input_schema
    assert tool.name == "Skill"
    assert {name: about["type"] for name, about in schema["properties"].items()} == {"name": "string", "args": "string"}
    assert schema["required"] == ["name"]


@pytest.mark.req("M-07", "M-43", "M-44", "M-49")
def test_the_prompt_of_the_tool_with_its_list_is_part_of_the_system_prompt(machine: Machine) -> None:
    project(machine)
    here = session(machine)
    (tool,) = here.tools()
    prompt = here.shelf.prompt()
    assert prompt.endswith("Available skills:\n- code-review: Looks for risks.")
    assert here.system_prompt("You are kind.").endswith(f"\n\n{prompt}")
    assert "code-review" not in tool.description


@pytest.mark.req("M-41", "M-42", "M-49")
def test_three_hundred_skills_are_listed_once_and_within_the_budget(machine: Machine) -> None:
    for number in range(300):
        text = f"---\nname: s-{number:03}\ndescription: {'x' * 91}\n---\n"
        write_skill(machine.repo / "skills", f"s-{number:03}", text)
    here = session(machine)
    prompt, tools = here.system_prompt(), json.dumps([tool.to_dict() for tool in here.tools()])

    assert 11_700 < len(prompt) <= 12_000
    assert prompt.count("- s-000: ") == 1
    assert "x" * 91 not in tools


def test_a_profile_may_put_the_list_into_the_tool_instead(machine: Machine) -> None:
    project(machine)
    config = {"profiles": {"lab": {"extends": "mycodeagent", "catalog_place": "tool"}}}
    here = machine.shelf("lab", config=config).session()

    assert "- code-review: " in here.tools()[0].description
    assert "- code-review: " not in here.system_prompt()
    assert here.system_prompt().endswith("The description of the tool that loads skills lists them.")


@pytest.mark.req("M-45")
def test_the_system_prompt_has_a_section_of_rules_before_the_tool(machine: Machine) -> None:
    project(machine)
    base, rules, tool = re.split(r"\n\n(?=# Skills|Tool: )", session(machine).system_prompt("You are kind."))
    assert base == "You are kind."
    assert rules.split("\n")[0] == "# Skills"
    assert tool.startswith("Tool: Skill\n")


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(r"- When the user names a skill \(\$code-review.*\), load it with", marks=pytest.mark.req("M-46")),
        pytest.param("- When a task clearly matches the description", marks=pytest.mark.req("M-47")),
        pytest.param("- Load a skill only when it is needed; never load all", marks=pytest.mark.req("M-48")),
    ],
)
def test_the_rules_say_when_a_skill_is_loaded(machine: Machine, rule: str) -> None:
    project(machine)
    assert re.search(f"^{rule}", session(machine).system_prompt(), re.MULTILINE)


@pytest.mark.req("M-70")
def test_the_next_step_fits_the_error(machine: Machine) -> None:
    project(machine)
    write_skill(machine.repo / "skills", "broken", "no frontmatter\n")
    machine.configure('[permissions]\ndeny = [{ tool = "skill_load", skill_name = "code-review" }]\n')
    write_skill(machine.repo / "skills", "other")
    here = session(machine)
    texts = {
        name: here.call("Skill", given).data["text"]
        for name, given in {
            "missing": {"name": "nothing-like-it"},
            "denied": {"name": "code-review"},
            "broken": {"name": "broken"},
            "args": {"name": "other", "args": 5},
        }.items()
    }

    assert {name: "list of available skills" in text for name, text in texts.items()} == {
        "missing": True,
        "denied": False,
        "broken": False,
        "args": False,
    }
    assert "ask the user to allow it" in texts["denied"]
    assert "correct it" in texts["broken"]
    assert "parameters" in texts["args"]


def test_arguments_that_json_cannot_hold_are_an_error_in_the_envelope(machine: Machine) -> None:
    project(machine)

    for given in ({"name": b"code-review"}, {"name": object()}, {1: "code-review", "name": "code-review"}):
        result = session(machine).call("Skill", given)

        assert result.error is not None
        assert json.loads(result.text)["error"]["code"] == "INVALID_PARAM"
