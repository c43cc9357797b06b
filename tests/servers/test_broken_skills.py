"""A skill that lies on the disk but is not in the catalog is answered with its rule and line on every surface."""

from __future__ import annotations

import json

import pytest
from support.mcps import client_of, run
from support.rpcclient import rpc_in_process
from support.trees import Machine, write_skill

BROKEN = "---\nname: broken\ndescription: [unclosed\n---\n# broken\n"


@pytest.fixture
def broken(machine: Machine) -> str:
    """The path of a skill with broken YAML, and the rule in the catalog's error."""
    path = write_skill(machine.home / ".agents/skills", "broken", BROKEN)
    write_skill(machine.home / ".agents/skills", "good")
    (error,) = machine.shelf().catalog.errors
    assert error.path == str(path)
    assert error.line
    return f"{error.rule} {error.line}"


def says_why(message: str, rule_and_line: str) -> bool:
    """Return True if a message has the rule and the line."""
    rule, line = rule_and_line.split()
    return rule in message and f"{line}" in message


@pytest.mark.slow
def test_the_command_line_says_why_a_skill_is_broken(machine: Machine, broken: str) -> None:
    done = machine.run("show", "broken")
    asked = json.loads(machine.run("show", "broken", "--json").stdout)["error"]

    assert done.returncode != 0
    assert says_why(done.stderr, broken)
    assert asked["code"] == "failed"
    assert says_why(asked["message"], broken)


def test_json_rpc_says_why_a_skill_is_broken(machine: Machine, broken: str) -> None:
    with rpc_in_process(machine) as client:
        called = client.ask("session.call", session=client.open(), tool="skill_load", arguments={"name": "broken"})
        refused = client.start("skills.load", name="broken")()["error"]

    assert called["error"]["code"] == refused["data"]["code"] == "failed"
    assert says_why(called["error"]["message"], broken)
    assert says_why(refused["message"], broken)


def test_mcp_says_why_a_skill_is_broken(machine: Machine, broken: str) -> None:
    async def check() -> None:
        async with client_of(machine) as client:
            result = await client.call_tool("skill_load", {"name": "broken"})
            assert result.is_error
            assert result.structured_content
            assert result.structured_content["error"]["code"] == "failed"
            assert says_why(result.model_dump_json(), broken)

    run(check)
