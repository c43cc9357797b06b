"""The recipe for the Claude Agent SDK in docs/adapters.md: its options start our server, and a model uses it.

The whole conversation needs the SDK, which brings its own program; the model is a server on the loopback interface.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.anthropic_server import anthropic_server
from support.mcps import run
from support.needs import require
from support.trees import Machine, write_skill

from mcp import Client, StdioServerParameters  # isort: skip
from mcp_types import TextContent  # isort: skip

pytestmark = pytest.mark.slow

ADAPTERS = Path(__file__).parents[2] / "docs" / "adapters.md"
SCRIPTS = os.path.dirname(sys.executable)


def recipe() -> str:
    """Return the recipe as it is printed."""
    blocks = re.findall(r"```python\n(.*?)```", ADAPTERS.read_text(encoding="utf-8"), flags=re.DOTALL)
    [found] = [block for block in blocks if "claude_agent_sdk" in block and '"command": "skillshelf"' in block]
    return str(found)


def options_of(text: str, **others: Any) -> Any:
    """Return the options that the recipe creates."""
    names: dict[str, Any] = dict(others)
    exec(text, names)
    return names["options"]


def environment(machine: Machine) -> dict[str, str]:
    """Return an environment with the command and the skills of this machine."""
    if shutil.which("skillshelf", path=SCRIPTS) is None:
        pytest.skip("skillshelf is not installed as a command")
    path = os.pathsep.join([SCRIPTS, os.environ["PATH"]])
    return {"PATH": path, "HOME": str(machine.home), "AGENT_SKILLS_PATH": ""}


@pytest.mark.slow
def test_the_command_of_the_recipe_serves_skills(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    # The options alone, for where the SDK is not installed.
    text = recipe().replace("from claude_agent_sdk import ClaudeAgentOptions", "")
    options = options_of(text, ClaudeAgentOptions=SimpleNamespace)
    [(name, server)] = options.mcp_servers.items()
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env=environment(machine), cwd=machine.repo
    )

    async def talk() -> None:
        async with Client(parameters) as client:
            offered = {f"mcp__{name}__{tool.name}" for tool in (await client.list_tools()).tools}
            loaded = await client.call_tool("skill_load", {"name": "deploy"})
            assert set(options.allowed_tools) <= offered
            [block] = loaded.content
            assert isinstance(block, TextContent)
            assert '<skill_content name="deploy"' in block.text
            assert loaded.structured_content
            assert loaded.structured_content["text"] == block.text

    run(talk)


@pytest.mark.slow
def test_a_model_behind_the_sdk_sees_skills_and_loads_one(machine: Machine) -> None:
    require("claude_agent_sdk")
    from claude_agent_sdk import ResultMessage, query

    write_skill(machine.home / ".agents/skills", "deploy")
    with anthropic_server("mcp__skills__skill_load", {"name": "deploy"}, "It is deployed.") as server:
        keys = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1"}
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "ENABLE_TOOL_SEARCH": "0"}
        options = dataclasses.replace(
            options_of(recipe()), cwd=machine.repo, env={**environment(machine), **keys, **quiet}, setting_sources=[]
        )

        async def talk() -> None:
            said = [message async for message in query(prompt="Deploy it.", options=options)]
            assert [message.result for message in said if isinstance(message, ResultMessage)] == ["It is deployed."]

        run(talk)

    assert "1 Agent Skills: instructions for tasks" in str(server.requests[0]["messages"])
    [loaded] = server.results()
    assert "# deploy" in loaded
