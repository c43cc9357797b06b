"""The tools of an agent: its own and the user's, each call decided by the policy and recorded."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs
from support.players import Player
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import AgentConfiguration, AgentSession, ConfigurationError, SkillLoader, SkillRegistry

pytestmark = needs("pydantic_ai")

BASE = "You are a helpful assistant."
FORMS = "Fill in box 7 of every form.\n"


@pytest.fixture
def here(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Run the program in a repository with one skill that has a reference and a script."""
    monkeypatch.chdir(machine.repo)
    monkeypatch.setenv("HOME", str(machine.home))
    for variable in ("XDG_CONFIG_HOME", "AGENT_SKILLS_PATH"):
        monkeypatch.delenv(variable, raising=False)
    folder = write_skill(machine.repo / ".agent/skills", "pdf").parent
    (folder / "references").mkdir()
    (folder / "references/forms.md").write_text(FORMS)
    (folder / "scripts").mkdir()
    (folder / "scripts/fill.py").write_text("import sys\nprint('filled', *sys.argv[1:])\n")
    return machine


def read_file(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


def execute_command(command: list[str]) -> str:
    """Run a command."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout


def prompted(
    player: Player, *, create: Mapping[str, Any] | None = None, **configured: Any
) -> tuple[str, list[str], list[Any]]:
    """Return the answer of an agent to one prompt, its active skills, and the events."""
    events: list[Any] = []

    async def play() -> tuple[str, list[str]]:
        configuration = AgentConfiguration(BASE, player.pydantic_ai(), **configured)
        async with await AgentSession.create(configuration, on_event=events.append, **(create or {})) as session:
            return await session.prompt("Fill the form."), await session.active_skills()

    return *asyncio.run(asyncio.wait_for(play(), 50)), events


def calls_for(here: Machine) -> list[tuple[str, dict[str, Any]]]:
    """What a model does with the skill: activate it, read its reference, run its script."""
    folder = here.repo / ".agent/skills/pdf"
    return [
        ("activate_skill", {"skillName": "pdf"}),
        ("read_file", {"path": str(folder / "references/forms.md")}),
        ("execute_command", {"command": [sys.executable, str(folder / "scripts/fill.py"), "a.pdf"]}),
    ]


# References and scripts ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("S-03", "S-21", "S-120", "S-121", "S-122", "S-124")
def test_a_model_reads_a_reference_and_runs_a_script_with_the_users_tools_under_the_delegate(here: Machine) -> None:
    player = Player(*calls_for(here))
    asked: list[tuple[str, list[str], str]] = []

    async def permission(tool: str, arguments: Mapping[str, Any], reason: str) -> bool:
        asked.append((tool, sorted(arguments), reason))
        return True

    answer, active, _ = prompted(player, tools=[read_file, execute_command], permission=permission)

    assert (answer, active) == ("done", ["pdf"])
    assert "# pdf" in player.answers[0]
    assert player.answers[1:] == [FORMS, "filled a.pdf\n"]
    assert asked == [
        ("read_file", ["path"], "no rule matches this tool"),
        ("execute_command", ["command"], "no rule matches this tool"),
    ]


@pytest.mark.slow
@pytest.mark.req("S-21", "S-121", "S-122")
def test_the_skill_tools_that_a_configuration_names_read_and_run_in_the_sandbox(here: Machine) -> None:
    player = Player(
        ("activate_skill", {"skillName": "pdf"}),
        ("skill_read", {"uri": "skill://pdf/references/forms.md"}),
        ("skill_run", {"name": "pdf", "script": "fill.py", "args": ["a.pdf"]}),
    )
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def permission(tool: str, arguments: Mapping[str, Any], reason: str) -> bool:
        asked.append((tool, arguments))
        assert threading.current_thread() is not threading.main_thread()
        return True

    journal = here.base / "run.jsonl"
    _, _, events = prompted(
        player, create={"journal": journal}, tools=["skill_read", "skill_run"], permission=permission
    )

    assert [*player.tools[0]] == ["activate_skill", "skill_read", "skill_run"]
    assert player.answers[1] == FORMS
    assert "filled a.pdf" in player.answers[2]
    assert asked == [("skill_run", {"name": "pdf"})]
    decided = [event for event in events if type(event).__name__ == "PermissionDecided"]
    assert [(event.tool, event.verdict, event.by) for event in decided] == [
        ("skill_load", "allow", "default"),
        ("skill_read", "allow", "default"),
        ("skill_run", "allow", "user"),
    ]
    assert skillshelf.replay(journal, home=here.home, env=dict(os.environ), trust="all").differences == ()


def test_a_name_that_is_no_skill_tool_is_refused_with_the_known_ones(here: Machine) -> None:
    with pytest.raises(ConfigurationError, match=r"no skill tool is called 'bash' .*skill_read"):
        prompted(Player(), tools=["bash"])


# Decisions ----------------------------------------------------------------------------------------


def note(text: str, seen: list[str] | None = None) -> str:
    """Note a text."""
    NOTED.append(text)
    return "noted"


NOTED: list[str] = []


@pytest.mark.req("S-121", "S-124")
@pytest.mark.parametrize(
    ("create", "permission", "answer", "recorded"),
    [
        ({}, None, "no rule matches this tool, and there is no way to ask the user", ("deny", "nobody")),
        ({}, lambda *asked: False, "no rule matches this tool, and the user refused it", ("deny", "user")),
        ({}, lambda *asked: "yes", "no rule matches this tool, and the user refused it", ("deny", "user")),
        ({}, lambda *asked: True, None, ("allow", "user")),
        ({}, lambda *asked: 1 / 0, "no rule matches this tool, and asking the user failed", ("deny", "failed")),
        ({"policy": {"deny": [{"tool": "note"}]}}, lambda *asked: True, "a rule denies it", None),
        ({"policy": {"allow": [{"tool": "note"}]}}, lambda *asked: False, None, None),
        ({"policy": "read-only"}, lambda *asked: True, "the policy read-only allows a tool only by a rule", None),
        ({"policy": "full-auto"}, None, None, None),
        ({"confirm": lambda *asked: True}, None, None, ("allow", "user")),
    ],
)
@pytest.mark.parametrize("form", ["tools", "toolsets", "dynamic"])
def test_a_tool_of_the_user_runs_only_if_policy_or_delegate_allow_it(
    here: Machine, create: dict[str, Any], permission: Any, answer: str | None, recorded: Any, form: str
) -> None:
    from pydantic_ai.toolsets import FunctionToolset

    NOTED.clear()
    player = Player(("note", {"text": "x"}))
    forms: dict[str, Any] = {
        "tools": {"tools": [note]},
        "toolsets": {"toolsets": [FunctionToolset([note])]},
        "dynamic": {"toolsets": [lambda context: FunctionToolset([note])]},
    }
    given = forms[form]

    done, _, events = prompted(player, create=create, permission=permission, **given)

    assert done == "done"
    assert player.answers == [f"Error: note may not be used: {answer}" if answer else "noted"]
    assert ([] if answer else ["x"]) == NOTED
    answers = [(e.verdict, e.by) for e in events if type(e).__name__ == "ToolAnswered"]
    assert answers == ([recorded] if recorded else [])


def test_a_tool_of_the_user_is_decided_without_skills_too(here: Machine) -> None:
    NOTED.clear()
    player = Player(("note", {"text": "x"}))

    done, active, events = prompted(player, tools=[note], auto_discover_skills=False)

    assert (done, active, events, NOTED) == ("done", [], [], [])
    assert "there is no way to ask the user" in player.answers[0]


def test_the_allowed_tools_of_a_loaded_skill_narrow_the_tools_of_the_user(machine: Machine) -> None:
    NOTED.clear()
    text = "---\nname: narrow\ndescription: N.\nallowed-tools: Read\n---\n# n\n"
    write_skill(machine.repo / ".agents/skills", "narrow", text)
    player = Player(("note", {"text": "before"}), ("skill_load", {"name": "narrow"}), ("note", {"text": "after"}))

    prompted(player, create={"shelf": machine.shelf("standard"), "policy": "full-auto"}, tools=[note])

    assert NOTED == ["before"]
    assert "not among the allowed-tools of narrow" in player.answers[2]


def test_two_agents_with_one_configuration_never_share_a_window(machine: Machine) -> None:
    NOTED.clear()
    text = "---\nname: narrow\ndescription: N.\nallowed-tools: Read\n---\n# n\n"
    write_skill(machine.repo / ".agents/skills", "narrow", text)
    first = Player(("skill_load", {"name": "narrow"}))
    second = Player(("note", {"text": "free"}), ("skill_load", {"name": "narrow"}))
    registry = SkillRegistry()
    create: dict[str, Any] = {"shelf": machine.shelf("standard"), "policy": "full-auto"}

    async def play() -> list[list[str]]:
        sessions = []
        for player in (first, second):
            configuration = AgentConfiguration(BASE, player.pydantic_ai(), registry, tools=[note])
            sessions.append(await AgentSession.create(configuration, **create))
        await sessions[0].prompt("Go.")
        before = await sessions[1].active_skills()
        await sessions[1].prompt("Go.")
        await sessions[0].deactivate_skill("narrow")
        return [before, *[await session.active_skills() for session in sessions]]

    assert asyncio.run(play()) == [[], [], ["narrow"]]
    assert NOTED == ["free"]
    assert "# n" in first.answers[0]
    assert "# n" in second.answers[1]


def test_settings_and_limits_reach_the_model(here: Machine) -> None:
    from pydantic_ai import ModelResponse, TextPart, UsageLimitExceeded, UsageLimits
    from pydantic_ai.models.function import FunctionModel

    seen: list[Any] = []

    def answer(messages: list[Any], info: Any) -> Any:
        seen.append(info.model_settings)
        return ModelResponse(parts=[TextPart("ok")])

    async def play(configuration: AgentConfiguration) -> str:
        return await (await AgentSession.create(configuration)).prompt("Hi.")

    plain = AgentConfiguration(BASE, FunctionModel(answer), model_settings={"temperature": 0.5})
    assert asyncio.run(play(plain)) == "ok"
    assert seen == [{"temperature": 0.5}]
    limited = plain._replace(model=Player(("activate_skill", {"skillName": "pdf"})).pydantic_ai())
    with pytest.raises(UsageLimitExceeded):
        asyncio.run(play(limited._replace(usage_limits=UsageLimits(request_limit=1))))


def test_a_recorded_answer_of_the_delegate_is_repeated_by_replay(here: Machine, tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    player = Player(("note", {"text": "x"}), ("activate_skill", {"skillName": "pdf"}))

    prompted(player, create={"journal": journal}, tools=[note], permission=lambda *asked: True)

    types = [json.loads(line)["type"] for line in journal.read_text().splitlines()]
    assert "tool_answered" in types
    assert skillshelf.replay(journal, home=here.home, env=dict(os.environ), trust="all").differences == ()


# Activation ---------------------------------------------------------------------------------------


def conversation(
    player: Player, registry: SkillRegistry, act: Callable[[AgentSession], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    """Return the result of an action in a session with a registry."""

    async def play() -> Any:
        configuration = AgentConfiguration(BASE, player.pydantic_ai(), registry)
        async with await AgentSession.create(configuration, **options) as session:
            return await act(session)

    return asyncio.run(asyncio.wait_for(play(), 50))


PDF = '<active_skill name="pdf">\n# pdf\n</active_skill>'


@pytest.mark.req("S-73")
def test_a_skill_activated_in_the_registry_reaches_the_model_until_it_is_deactivated_there(here: Machine) -> None:
    registry = SkillRegistry()
    player = Player()

    async def play(session: AgentSession) -> list[list[str]]:
        states = []
        for change in (lambda: None, lambda: registry.activate("pdf"), lambda: registry.deactivate("pdf")):
            change()
            await session.prompt("Go.")
            assert session.session is not None
            assert list(session.session.active) == registry.active_skill_names
            states.append(await session.active_skills())
        return states

    assert conversation(player, registry, play) == [[], ["pdf"], []]
    assert [PDF in text for text in player.instructions] == [False, True, False]


@pytest.mark.req("S-73")
def test_a_skill_activated_before_the_session_or_without_a_prompt_is_active_in_it(here: Machine) -> None:
    registry = SkillRegistry()
    registry.register(SkillLoader.load_metadata(here.repo / ".agent/skills/pdf"))
    registry.activate("pdf")
    player = Player()

    async def play(session: AgentSession) -> list[str]:
        active = await session.active_skills()
        await session.prompt("Go.")
        return active

    assert conversation(player, registry, play) == ["pdf"]
    assert PDF in player.instructions[0]


def test_a_denied_skill_activated_in_the_registry_does_not_reach_the_model(here: Machine) -> None:
    registry = SkillRegistry()
    player = Player()

    async def play(session: AgentSession) -> list[str]:
        registry.activate("pdf")
        await session.prompt("Go.")
        return await session.active_skills()

    policy = {"deny": [{"tool": "skill_load", "skill_name": "pdf"}]}
    assert conversation(player, registry, play, policy=policy) == []
    assert "active_skill" not in player.instructions[0]


def test_what_a_failed_turn_loaded_is_not_active_and_is_sent_again_without_a_false_compaction(machine: Machine) -> None:
    from pydantic_ai import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    text = "---\nname: narrow\ndescription: N.\nallowed-tools: Read\n---\n# n\n"
    write_skill(machine.repo / ".agents/skills", "narrow", text)
    write_skill(machine.repo / ".agents/skills", "deploy")
    seen: list[str] = []
    events: list[Any] = []
    failures = iter([True, False])

    def answer(messages: list[Any], info: Any) -> Any:
        last = messages[-1].parts[-1]
        if last.part_kind == "user-prompt":
            return ModelResponse(parts=[ToolCallPart("skill_load", {"name": "narrow"})])
        seen.append(last.content)
        if next(failures):
            raise ConnectionError("the network is gone")
        return ModelResponse(parts=[TextPart("ok")])

    async def play() -> list[list[str]]:
        configuration = AgentConfiguration(BASE, FunctionModel(answer))
        session = await AgentSession.create(configuration, shelf=machine.shelf("standard"), on_event=events.append)
        await session.activate_skill("deploy")
        with pytest.raises(ConnectionError):
            await session.prompt("Go.")
        failed = await session.active_skills()
        await session.prompt("Again.")
        return [failed, await session.active_skills()]

    assert asyncio.run(asyncio.wait_for(play(), 50)) == [["deploy"], ["deploy", "narrow"]]
    assert ["# n" in text for text in seen] == [True, True]
    assert "ContextCompacted" not in [type(event).__name__ for event in events]


def test_preloaded_and_read_skills_are_active_in_the_conversation(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "review")
    player = Player(("skill_read", {"uri": "skill://review"}))

    _, active, _ = prompted(player, create={"shelf": machine.shelf("standard"), "preload": ["deploy"]})

    assert active == ["deploy", "review"]


@pytest.mark.req("S-73")
def test_a_tool_that_activates_a_skill_in_the_registry_has_it_in_the_next_request(here: Machine) -> None:
    registry = SkillRegistry()
    player = Player(("use_pdf", {}))

    def use_pdf() -> str:
        """Activate the skill."""
        registry.activate("pdf")
        return "ok"

    _, active, _ = prompted(player, create={"policy": "full-auto"}, skill_registry=registry, tools=[use_pdf])

    assert active == ["pdf"]
    assert [PDF in text for text in player.instructions] == [False, True]


def test_a_read_of_the_user_and_that_of_the_profile_are_one_tool(machine: Machine) -> None:
    write_skill(machine.repo / ".omp/skills", "deploy")
    (machine.repo / "notes.txt").write_text("notes")
    player = Player(("read", {"file": "skill://deploy"}), ("read", {"file": str(machine.repo / "notes.txt")}))

    def read(file: str) -> str:
        """Read a file."""
        return Path(file).read_text()

    create: dict[str, Any] = {"shelf": machine.shelf("omp"), "policy": {"allow": [{"tool": "read"}]}}
    _, active, _ = prompted(player, create=create, tools=[read], permission=lambda *asked: True)

    assert [*player.tools[0]] == ["read"]
    assert "# deploy" in player.answers[0]
    assert player.answers[1] == "notes"
    assert active == ["deploy"]
