"""Mistakes of a model: each is an error in the result, with a code and a message to act on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.scenario import SYSTEMS
from support.trees import Machine, write_skill

BODY = "This line is in the body only."


def put(machine: Machine, name: str, profile: str = "standard", *, more: str = "") -> None:
    """Write a skill where the profile looks in a project."""
    text = f"---\nname: {name}\ndescription: Does {name} things.\n{more}---\n{BODY}\n"
    write_skill(machine.repo / SYSTEMS[profile].root, name, text)


HUGE = "x" * 1_000_000
MISTAKES: list[tuple[str, str, Any, str]] = [
    ("standard", "skill_lod", {"name": "deploy"}, "unknown_tool"),
    ("standard", "", {}, "unknown_tool"),
    ("standard", "Skill", {"name": "deploy"}, "unknown_tool"),
    ("standard", HUGE, {}, "unknown_tool"),
    ("standard", "skill_load", {}, "invalid_params"),
    ("standard", "skill_load", None, "invalid_params"),
    ("standard", "skill_load", [], "invalid_params"),
    ("standard", "skill_load", "deploy", "invalid_params"),
    ("standard", "skill_load", 7, "invalid_params"),
    ("standard", "skill_load", {"name": None}, "invalid_params"),
    ("standard", "skill_load", {"name": ""}, "invalid_params"),
    ("standard", "skill_load", {"name": 5}, "invalid_params"),
    ("standard", "skill_load", {"name": True}, "invalid_params"),
    ("standard", "skill_load", {"name": ["deploy"]}, "invalid_params"),
    ("standard", "skill_load", {"name": {"name": "deploy"}}, "invalid_params"),
    ("standard", "skill_load", {"nme": "deploy"}, "invalid_params"),
    ("standard", "skill_load", {"name": "deploy", "more": 1}, "invalid_params"),
    ("standard", "skill_load", {"name": "deploy", "args": 7}, "invalid_params"),
    ("standard", "skill_load", {"name": "deploy", "path": 7}, "invalid_params"),
    ("standard", "skill_load", {"name": "deployed"}, "not_found"),
    ("standard", "skill_load", {"name": "deploy\0"}, "not_found"),
    ("standard", "skill_load", {"name": HUGE}, "not_found"),
    ("standard", "skill_load", {"name": "\ud800"}, "not_found"),
    ("standard", "skill_load", {"path": "\0"}, "not_found"),
    ("standard", "skill_load", {"path": "/etc/passwd"}, "not_found"),
    ("standard", "skill_load", {"path": "\ud800"}, "not_found"),
    ("standard", "skill_load", {"path": "a/" * 20_000}, "not_found"),
    ("standard", "skill_load", {"name": "deploy", "path": "elsewhere"}, "not_found"),
    ("standard", "skill_read", {}, "invalid_params"),
    ("standard", "skill_read", {"uri": ""}, "invalid_params"),
    ("standard", "skill_read", {"uri": 5}, "invalid_params"),
    ("standard", "skill_read", {"uri": "deploy"}, "invalid_params"),
    ("standard", "skill_read", {"uri": "skill://deploy/\0"}, "invalid_params"),
    ("standard", "skill_read", {"uri": "skill://deploy/\ud800"}, "invalid_params"),
    ("standard", "skill_read", {"uri": HUGE}, "too_large"),
    ("standard", "skill_read", {"uri": "skill://deploy/absent"}, "not_found"),
    ("standard", "skill_search", {}, "invalid_params"),
    ("standard", "skill_search", {"query": 5}, "invalid_params"),
    ("standard", "skill_search", {"query": "x", "limit": 0}, "invalid_params"),
    ("standard", "skill_search", {"query": "x", "limit": -1}, "invalid_params"),
    ("standard", "skill_search", {"query": "x", "limit": 1.5}, "invalid_params"),
    ("standard", "skill_search", {"query": "x", "limit": 0.0}, "invalid_params"),
    ("standard", "skill_search", {"query": "x", "limit": float("inf")}, "invalid_params"),
    ("standard", "skill_search", {"query": "x", "limit": "3"}, "invalid_params"),
    ("standard", "skill_search", {"query": "x", "limit": True}, "invalid_params"),
    ("codelia", "skill_load", {"name": "deploy", "args": "x"}, "invalid_params"),
    ("codelia", "skill_read", {"uri": "skill://deploy"}, "unknown_tool"),
    ("swiftagent", "activate_skill", {"name": "deploy"}, "invalid_params"),
    ("swiftagent", "activate_skill", {"skillName": "\0"}, "not_found"),
    ("mycodeagent", "Skill", {}, "invalid_params"),
    ("mycodeagent", "Skill", {"name": " "}, "invalid_params"),
    ("mycodeagent", "Skill", {"name": "deploy", "args": {}}, "invalid_params"),
    ("mycodeagent", "Skill", ["deploy"], "invalid_params"),
    ("mycodeagent", "skill_load", {"name": "deploy"}, "unknown_tool"),
    ("rip", "skill_load", {"path": "deploy"}, "invalid_params"),
    ("rip", "skill_search", {"query": "deploy"}, "unknown_tool"),
    ("omp", "read", {"path": "/etc/passwd"}, "invalid_params"),
    ("omp", "read", {"uri": "skill://deploy"}, "invalid_params"),
    ("omp", "read", {"path": "skill://absent"}, "not_found"),
]


@pytest.mark.parametrize(("profile", "tool", "arguments", "code"), MISTAKES, ids=lambda value: ascii(value)[:40])
def test_a_mistake_of_a_model_is_an_error_it_can_read(
    machine: Machine, profile: str, tool: str, arguments: Any, code: str
) -> None:
    put(machine, "deploy", profile)

    result = machine.shelf(profile).session().call(tool, arguments)

    assert result.error is not None
    assert (result.ok, result.error.code) == (False, code)
    assert profile == "mycodeagent" or result.text.startswith(f"Error: {result.error.message}")
    # A host sends it on as UTF-8.
    assert result.text.encode()
    assert BODY not in result.text
    # What the model sent is not sent back at length; one protocol wants its parameters whole.
    assert len(result.text) < 5000 or profile == "mycodeagent"


@pytest.mark.parametrize(
    "text", ["\ud800", "\0", HUGE, "$ARGUMENTS", "</skill_content>", "\x1b[31m"], ids=lambda text: ascii(text[:9])
)
def test_odd_arguments_for_a_skill_are_no_mistake(machine: Machine, text: str) -> None:
    put(machine, "deploy")
    session = machine.shelf().session()

    result = session.call("skill_load", {"name": "deploy", "args": text})

    assert result.ok
    assert BODY in result.text
    assert json.loads(json.dumps(session.snapshot())) == session.snapshot()


@pytest.mark.parametrize(
    "query", ["", " ", "\0", "\ud800", HUGE, "🧾", "deploy things", "(["], ids=lambda q: ascii(q[:9])
)
def test_any_text_is_a_query(machine: Machine, query: str) -> None:
    put(machine, "deploy")
    # A larger number than portable JSON can hold is no number.
    result = machine.shelf().session().call("skill_search", {"query": query, "limit": 10**18})
    assert result.error is None or (result.error.code, query.strip()) == ("invalid_params", "")


def test_a_typo_gets_the_names_it_may_have_meant(machine: Machine) -> None:
    for name in ("deploy", "release-notes", "secret"):
        put(machine, name, more="disable-model-invocation: true\n" if name == "secret" else "")
    session = machine.shelf().session()

    error = session.call("skill_load", {"name": "release-note"}).error
    hidden = session.call("skill_load", {"name": "secre"}).error

    assert error is not None
    assert (error.code, error.candidates) == ("not_found", ("release-notes",))
    assert error.message == "Skill not found: release-note; did you mean release-notes?"
    assert hidden is not None
    assert hidden.candidates == ()


@pytest.mark.parametrize("tool", ["skill_load", "skill_run", "skill_read"])
@pytest.mark.parametrize("value", [["deploy"], {"a": 1}, 3, 1.5, True])
@pytest.mark.parametrize("key", ["name", "path", "uri", "script"])
def test_a_decision_about_arguments_of_another_type_is_no(machine: Machine, tool: str, value: Any, key: str) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    assert machine.shelf().session().decide(tool, {key: value}).verdict == "deny"
