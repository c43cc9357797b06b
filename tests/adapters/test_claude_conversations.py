"""The Claude Agent SDK with skills in the process of the program: `python tools/claude_conversations.py` runs this.

Its program talks to a model on the loopback interface. Messages cannot be seen from a tool, so every load has the text.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs
from support.script_server import ScriptServer, script_server
from support.trees import SOURCE, Machine, write_skill

pytestmark = [pytest.mark.slow, needs("claude_agent_sdk")]


def body(name: str) -> str:
    """The text of a skill that no other has."""
    return f"The secret of {name} is {name[::-1]}."


def write(machine: Machine, name: str) -> None:
    """Write a skill whose window has one tool that no other has."""
    text = f"---\nname: {name}\ndescription: Does {name}.\nallowed-tools: Tool{name}\n---\n{body(name)}\n"
    write_skill(machine.repo / ".agents/skills", name, text)


def options_of(machine: Machine, model: ScriptServer, **more: Any) -> Any:
    """Return the options of a conversation that reaches nothing but the model."""
    from claude_agent_sdk import ClaudeAgentOptions

    keys = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1"}
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "ENABLE_TOOL_SEARCH": "0"}
    env = {"HOME": str(machine.home), **keys, **quiet}
    return ClaudeAgentOptions(cwd=machine.repo, env=env, setting_sources=[], tools=[], **more)


async def ask(text: str, options: Any) -> tuple[str, str, int]:
    """Return the answer, the session id, and the number of streamed pieces."""
    from claude_agent_sdk import ResultMessage, StreamEvent, query

    said = [message async for message in query(prompt=text, options=options)]
    [result] = [message for message in said if isinstance(message, ResultMessage)]
    return str(result.result), result.session_id, sum(isinstance(message, StreamEvent) for message in said)


def test_four_conversations_of_one_server_each_get_the_text_and_keep_to_themselves(
    machine: Machine, tmp_path: Path
) -> None:
    from skillshelf.adapters.claude import ClaudeSkillServer

    for name in ("tea", "coffee", "cocoa"):
        write(machine, name)
    journal = tmp_path / "run.jsonl"
    with script_server() as model:
        server = ClaudeSkillServer(machine.shelf(), journal=journal)
        plain = server.options(options_of(machine, model, system_prompt="You are helpful."))
        streamed = server.options(options_of(machine, model, include_partial_messages=True))

        async def everybody() -> Any:
            return await asyncio.gather(
                ask("load tea", plain),
                ask("load tae; load tea; second", plain),
                ask("load coffee", streamed),
                ask("load cocoa", plain),
            )

        first, second, third, fourth = asyncio.run(everybody())

    assert [first[0], second[0], third[0], fourth[0]] == ["done"] * 4
    assert third[2] > 0
    assert body("tea") in model.of("load tea")[-1].results[-1]
    assert ["did you mean tea?" in text for text in model.of("second")[-1].results] == [True, False]
    assert body("tea") in model.of("second")[-1].results[-1]
    assert body("coffee") in model.of("coffee")[-1].results[0]
    assert body("cocoa") in model.of("cocoa")[-1].results[0]
    assert all("You are helpful." in heard.system for heard in model.of("cocoa"))
    assert all(heard.system.count("<name>tea</name>") == 1 for heard in model.heard)
    active = [server.session_for(session).active for _, session, _ in (first, second, third, fourth)]
    assert active == [("tea",), ("tea",), ("coffee",), ("cocoa",)]
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    loads = [(event["session"], event["name"]) for event in events if event["type"] == "skill_loaded"]
    assert sorted(name for _, name in loads) == ["cocoa", "coffee", "tea", "tea"]
    assert len({session for session, _ in loads}) == 4


def test_a_resumed_conversation_has_its_session_again_and_gets_the_text_again(machine: Machine) -> None:
    from dataclasses import replace

    from skillshelf.adapters.claude import ClaudeSkillServer

    write(machine, "tea")
    with script_server() as model:
        server = ClaudeSkillServer(machine.shelf())
        options = server.options(options_of(machine, model, session_id=str(uuid.uuid4())))

        async def twice() -> tuple[str, str]:
            _, session, _ = await ask("load tea", options)
            before = server.session_for(session)
            _, again, _ = await ask("load tea; again", replace(options, session_id=None, resume=session))
            assert server.session_for(again) is before
            return session, again

        session, again = asyncio.run(twice())

    assert session == again
    assert [body("tea") in text for text in model.heard[-1].results] == [True, True]


def test_tools_without_a_server_of_ours_send_the_text_with_each_load(machine: Machine) -> None:
    from claude_agent_sdk import create_sdk_mcp_server

    from skillshelf.adapters.claude import skill_instructions, skill_tools

    write(machine, "tea")
    shelf = machine.shelf()
    with script_server() as model:
        options = options_of(
            machine,
            model,
            mcp_servers={"skills": create_sdk_mcp_server("skills", tools=skill_tools(shelf))},
            allowed_tools=["mcp__skills__skill_load"],
            system_prompt=skill_instructions(shelf, "You are helpful."),
        )
        answer, _, _ = asyncio.run(ask("load tea; load tea", options))

    assert answer == "done"
    assert [body("tea") in text for text in model.heard[-1].results] == [True, True]
    assert "<name>tea</name>" in model.heard[-1].system


def test_the_example_of_the_page_holds_two_conversations(machine: Machine) -> None:
    write(machine, "tea")
    page = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^<!-- model: claude -->\n```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    with script_server() as model:
        quiet = options_of(machine, model).env
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=machine.repo,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **quiet},
            capture_output=True,
            text=True,
            timeout=90,
        )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done", "done"]
    assert [[body("tea") in text for text in heard.results] for heard in model.heard] == [[], [True], [], [True]]
