"""An agent with skills: its configuration, and a conversation with a scripted model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs
from support.players import Player
from support.trees import SOURCE, Machine, write_skill

from skillshelf import (
    AgentConfiguration,
    AgentSession,
    ConfigurationError,
    Shelf,
    Skill,
    SkillDirectoryNotFound,
    SkillDiscovery,
    SkillError,
    SkillLoader,
    SkillNotFound,
    SkillRegistry,
    ToolResult,
)

BASE = "You are a helpful assistant."
PLAIN = AgentConfiguration(BASE, None)


@pytest.fixture
def here(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Run the program in the repository and with the home folder of the machine."""
    monkeypatch.chdir(machine.repo)
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("AGENT_SKILLS_PATH", raising=False)
    return machine


def with_session(
    configuration: AgentConfiguration, act: Callable[[AgentSession], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    """Return the result of an action in a new session."""

    async def play() -> Any:
        async with await AgentSession.create(configuration, **options) as session:
            return await act(session)

    return asyncio.run(play())


async def names_of(session: AgentSession) -> list[str]:
    """Return the names of the session's skills."""
    return [skill.id for skill in await session.list_skills()]


# Configuration ------------------------------------------------------------------------------------


@pytest.mark.req("S-99", "S-100", "S-101")
def test_skills_are_discovered_by_default() -> None:
    configuration = AgentConfiguration("Be brief.", "openai:gpt-5")

    assert configuration == AgentConfiguration(
        instructions="Be brief.",
        model="openai:gpt-5",
        skill_registry=None,
        auto_discover_skills=True,
        skill_search_paths=(),
    )


@pytest.mark.req("S-102", "S-103")
def test_a_configuration_with_or_without_skills_is_a_copy() -> None:
    registry = SkillRegistry()
    given = AgentConfiguration("Be brief.", "m", registry, False, ("/opt/skills",))

    assert given.with_skills() == AgentConfiguration("Be brief.", "m", None, True, ())
    assert given.with_skills(registry, auto_discover=False, additional_paths=["/a"]) == AgentConfiguration(
        "Be brief.", "m", registry, False, ["/a"]
    )
    assert given.without_skills() == AgentConfiguration("Be brief.", "m", None, False, ("/opt/skills",))
    assert given == AgentConfiguration("Be brief.", "m", registry, False, ("/opt/skills",))


@pytest.mark.req("S-102")
def test_folders_without_discovery_are_kept_in_the_copy_and_not_searched(here: Machine) -> None:
    write_skill(here.base / "team", "review")
    paths = [str(here.base / "team")]

    copy = PLAIN.with_skills(auto_discover=False, additional_paths=paths)

    assert copy == AgentConfiguration(BASE, None, None, False, paths)
    assert with_session(copy, names_of) == []


# Skills of a session ------------------------------------------------------------------------------


@pytest.mark.req("S-106", "S-117")
def test_a_session_lists_discovered_skills_with_name_and_description(here: Machine) -> None:
    write_skill(here.home / ".agent/skills", "review")
    write_skill(here.repo / ".agent/skills", "deploy")

    skills: list[Skill] = with_session(PLAIN, AgentSession.list_skills)

    assert [(skill.metadata.name, skill.metadata.description) for skill in skills] == [
        ("deploy", "Does deploy things. Use when deploy is asked for."),
        ("review", "Does review things. Use when review is asked for."),
    ]
    assert skills == SkillDiscovery.discover_all()


@pytest.mark.req("S-107", "S-119")
def test_more_folders_are_searched_in_their_order_and_the_last_of_a_name_wins(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    folders = [here.base / "company", here.base / "team"]
    for folder in folders:
        write_skill(folder, "deploy")
        write_skill(folder, f"only-{folder.name}")

    async def look(session: AgentSession) -> list[tuple[str, str]]:
        return [(skill.id, skill.directory_path) for skill in await session.list_skills()]

    assert with_session(PLAIN.with_skills(additional_paths=[str(folder) for folder in folders]), look) == [
        ("deploy", str(folders[1] / "deploy")),
        ("only-company", str(folders[0] / "only-company")),
        ("only-team", str(folders[1] / "only-team")),
    ]


def test_a_skill_that_another_folder_replaced_is_named_with_the_one_that_replaced_it(here: Machine) -> None:
    lost = write_skill(here.repo / ".agent/skills", "deploy")
    kept = write_skill(here.base / "team", "deploy")

    async def look(session: AgentSession) -> Any:
        assert session.session is not None
        return [(loser.path, loser.by) for loser in session.session.shelf.catalog.shadowed]

    configuration = PLAIN.with_skills(additional_paths=[str(here.base / "team")])
    assert with_session(configuration, look) == [(str(lost), str(kept))]


@pytest.mark.req("S-108", "S-118")
def test_a_registry_alone_gives_exactly_its_skills(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    registry = SkillRegistry()
    registry.register(SkillLoader.load_metadata(write_skill(here.base / "mine", "review").parent))
    configuration = PLAIN.with_skills(registry, auto_discover=False, additional_paths=[str(here.base / "nowhere")])

    assert with_session(configuration, names_of) == ["review"]
    assert registry.registered_names == ["review"]


@pytest.mark.req("S-104", "S-105")
@pytest.mark.parametrize(
    ("given", "discover", "names"),
    [(True, True, ["deploy", "review"]), (True, False, ["review"]), (False, True, ["deploy"]), (False, False, None)],
)
def test_there_is_a_registry_if_one_is_given_or_skills_are_discovered(
    here: Machine, given: bool, discover: bool, names: list[str] | None
) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    registry = SkillRegistry()
    registry.register(SkillLoader.load_metadata(write_skill(here.base / "mine", "review").parent))

    async def look(session: AgentSession) -> list[str] | None:
        return await names_of(session) if session.session else None

    configuration = PLAIN.with_skills(registry if given else None, auto_discover=discover)
    assert with_session(configuration, look) == names
    assert registry.registered_names == (names if given else ["review"])


@pytest.mark.req("S-111", "S-112", "S-113", "S-114")
def test_without_a_registry_there_is_nothing_to_list_activate_or_deactivate(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")

    async def play(session: AgentSession) -> None:
        assert await session.list_skills() == []
        with pytest.raises(SkillNotFound) as caught:
            await session.activate_skill("deploy")
        assert caught.value.name == "deploy"
        await session.deactivate_skill("deploy")
        assert await session.active_skills() == []
        assert session.instructions == BASE

    with_session(PLAIN.without_skills(), play)


@pytest.mark.req("S-111", "S-112", "S-113", "S-114", "S-135")
def test_a_skill_is_activated_with_its_instructions_and_deactivated(here: Machine) -> None:
    path = write_skill(here.repo / ".agent/skills", "deploy")
    registry = SkillRegistry()

    async def play(session: AgentSession) -> None:
        skill = await session.activate_skill("deploy")
        assert skill == SkillLoader.load_full(path.parent)._replace(metadata=skill.metadata)
        assert (skill.instructions, await session.active_skills()) == ("# deploy", ["deploy"])
        assert registry.is_active("deploy")
        with pytest.raises(SkillNotFound):
            await session.activate_skill("nonsense")
        await session.deactivate_skill("deploy")
        await session.deactivate_skill("nonsense")
        assert await session.active_skills() == []
        assert [skill.instructions for skill in await session.list_skills()] == [None]

    with_session(PLAIN.with_skills(registry), play)


@pytest.mark.req("S-24", "S-109", "S-110")
def test_the_listing_follows_the_instructions_after_a_blank_line_if_there_is_one(here: Machine) -> None:
    async def instructions(session: AgentSession) -> str:
        return session.instructions

    assert with_session(PLAIN, instructions) == BASE
    write_skill(here.repo / ".agent/skills", "deploy")
    registry = SkillRegistry()
    text = with_session(PLAIN.with_skills(registry), instructions)
    assert text == f"{BASE}\n\n{registry.generate_available_skills_prompt()}"
    assert "<name>deploy</name>" in text


def test_a_disabled_skill_is_hidden_from_the_model_even_if_a_program_registers_it(here: Machine) -> None:
    here.configure("skills.disabled = ['review']\n")
    registry = SkillRegistry()
    for name in ("review", "deploy"):
        registry.register(SkillLoader.load_metadata(write_skill(here.base / "mine", name).parent))

    async def play(session: AgentSession) -> str:
        with pytest.raises(SkillError, match="review is disabled"):
            await session.activate_skill("review")
        return session.instructions

    text = with_session(PLAIN.with_skills(registry, auto_discover=False), play)
    assert "<name>deploy</name>" in text
    assert "review" not in text


def test_a_skill_registered_later_is_visible_and_a_removed_one_is_not(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    registry = SkillRegistry()

    async def play(session: AgentSession) -> None:
        registry.register(SkillLoader.load_metadata(write_skill(here.base / "mine", "review").parent))
        registry.unregister("deploy")
        assert "<name>review</name>" in session.instructions
        assert "deploy" not in session.instructions
        write_skill(here.repo / ".agent/skills", "later")
        assert session.session is not None
        assert session.session.shelf.refresh() is True
        assert await names_of(session) == ["later", "review"]
        assert session.session.shelf.refresh() is False
        (here.repo / ".agent/skills/later/SKILL.md").unlink()
        assert session.session.shelf.refresh() is True
        assert await names_of(session) == ["review"]

    with_session(PLAIN.with_skills(registry), play)


@pytest.mark.parametrize(
    ("paths", "error"),
    [("/opt/skills", ConfigurationError), (["/nowhere/at/all"], SkillDirectoryNotFound)],
    ids=["a text", "a folder that is not there"],
)
def test_an_invalid_search_path_is_an_immediate_error(here: Machine, paths: Any, error: type[SkillError]) -> None:
    with pytest.raises(error):
        with_session(PLAIN.with_skills(additional_paths=paths), names_of)


# A model ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_the_extra_everything_but_a_prompt_works_and_the_error_says_what_to_install(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    program = """
import asyncio, sys
sys.modules["pydantic_ai"] = None
from skillshelf import AgentConfiguration, AgentSession, ConfigurationError

async def main():
    session = await AgentSession.create(AgentConfiguration("Hi.", "openai:gpt-5"))
    assert [skill.id for skill in await session.list_skills()] == ["deploy"]
    assert (await session.activate_skill("deploy")).instructions == "# deploy"
    try:
        await session.prompt("Deploy.")
    except ConfigurationError as error:
        print(error)

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=here.repo,
        env={"PYTHONPATH": SOURCE, "HOME": str(here.home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "pip install 'skillshelf[agent]'" in done.stdout, done.stderr


def played(player: Player) -> AgentConfiguration:
    """Return the configuration of an agent whose model makes the calls of a player."""
    return AgentConfiguration(BASE, player.pydantic_ai())


@needs("pydantic_ai")
@pytest.mark.req("S-03", "S-24", "S-135")
def test_a_model_sees_the_skills_and_activates_one_by_the_tool_of_its_profile(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    player = Player(("activate_skill", {"skillName": "deploy"}))
    registry = SkillRegistry()

    async def play(session: AgentSession) -> list[str]:
        assert await session.prompt("Deploy, please.") == "done"
        assert player.instructions == [session.instructions] * 2
        return await session.active_skills()

    assert with_session(played(player).with_skills(registry), play) == ["deploy"]
    assert registry.is_active("deploy")
    assert "# deploy" in player.answers[0]


@needs("pydantic_ai")
def test_a_skill_that_the_program_activated_is_in_the_instructions_until_it_is_deactivated(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    player = Player()
    active = '<active_skill name="deploy">\n# deploy\n</active_skill>'

    async def play(session: AgentSession) -> None:
        await session.prompt("One.")
        await session.activate_skill("deploy")
        await session.prompt("Two.")
        await session.deactivate_skill("deploy")
        await session.prompt("Three.")

    with_session(played(player), play)
    assert [active in instructions for instructions in player.instructions] == [False, True, False]


@needs("pydantic_ai")
def test_a_conversation_continues_from_prompt_to_prompt(here: Machine) -> None:
    player = Player()

    async def play(session: AgentSession) -> None:
        await session.prompt("My name is Ada.")
        await session.prompt("Who am I?")

    with_session(played(player), play)
    assert player.heard == ["My name is Ada.", "My name is Ada.", "Who am I?"]


@needs("pydantic_ai")
def test_a_model_that_calls_unknown_tools_gets_an_error_and_continues(here: Machine) -> None:
    write_skill(here.repo / ".agents/skills", "deploy")
    player = Player(*[("Bash", {"command": "ls"})] * 3)

    assert with_session(played(player), lambda session: session.prompt("List the files.")) == "done"


@needs("pydantic_ai")
def test_an_answer_is_streamed_piece_by_piece_with_on_text(here: Machine) -> None:
    write_skill(here.repo / ".agent/skills", "deploy")
    pieces: list[str] = []
    player = Player(("activate_skill", {"skillName": "deploy"}), says="a long answer")

    with_session(played(player), lambda session: session.prompt("Go.", on_text=pieces.append))

    assert len(pieces) > 1
    assert "".join(pieces) == "a long answer"


def standard(machine: Machine) -> Shelf:
    """Return a shelf of the default profile, with one skill that has a script and one that has none."""
    folder = write_skill(machine.home / ".agents/skills", "deploy").parent
    (folder / "scripts").mkdir()
    (folder / "scripts/hello.sh").write_text("#!/bin/sh\necho hello\n")
    write_skill(machine.home / ".agents/skills", "review")
    machine.configure("permissions.run.unsandboxed = true\n")
    return machine.shelf()


RUN = ("skill_run", {"name": "deploy", "script": "hello.sh"})


def asked_with(answer: Any) -> Sequence[Any]:
    """Return a function and a coroutine function that give the same answer."""

    async def later(tool: str, name: str, reason: str) -> Any:
        await asyncio.sleep(0)
        return answer

    return [lambda tool, name, reason: answer, later]


@pytest.mark.slow
@needs("pydantic_ai")
@pytest.mark.parametrize("kind", [0, 1], ids=["a function", "a coroutine function"])
@pytest.mark.parametrize(("answer", "ran"), [(True, True), (False, False), (None, False), ("yes", False)])
def test_confirm_is_called_before_a_script_runs(machine: Machine, answer: Any, ran: bool, kind: int) -> None:
    player = Player(RUN)

    with_session(
        played(player),
        lambda session: session.prompt("Run it."),
        shelf=standard(machine),
        confirm=asked_with(answer)[kind],
    )

    assert ("hello" in player.answers[0]) is ran
    assert player.answers[0].startswith("Error: ") is not ran


@needs("pydantic_ai")
def test_cancelling_a_prompt_cancels_its_question_and_the_next_prompt_works(machine: Machine) -> None:
    player = Player(("skill_load", {"name": "deploy"}), RUN)
    asked = asyncio.Event()

    async def never(tool: str, name: str, reason: str) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    async def play(session: AgentSession) -> None:
        task = asyncio.create_task(session.prompt("Run it."))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        player.calls = [("skill_load", {"name": "deploy"})]
        await session.prompt("Only load it.")

    with_session(played(player), play, shelf=standard(machine), confirm=never)
    # What the first prompt loaded is in no history: it comes whole, not as a reminder.
    assert [answer.startswith("<skill_content") for answer in player.answers] == [True, True]
    assert player.heard == ["Run it.", "Only load it."]


@needs("pydantic_ai")
def test_a_question_that_is_asked_while_a_prompt_is_aborted_is_answered_no(machine: Machine) -> None:
    """The thread of the call is delayed until the prompt is over; it must not wait for ever."""
    player = Player(RUN)
    asking, gone = threading.Event(), threading.Event()

    async def never(tool: str, name: str, reason: str) -> bool:
        await asyncio.Event().wait()
        return True

    def late(tool: str, name: str, reason: str) -> Any:
        asking.set()
        assert gone.wait(30)
        return never(tool, name, reason)

    async def play(session: AgentSession) -> None:
        task = asyncio.create_task(session.prompt("Run it."))
        await asyncio.to_thread(asking.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gone.set()
        player.calls = []
        assert await asyncio.wait_for(session.prompt("Never mind."), 30)

    with_session(played(player), play, shelf=standard(machine), confirm=late)
    assert player.heard == ["Run it.", "Never mind."]


@needs("pydantic_ai")
def test_commands_and_mentions_of_the_user_reach_the_model(machine: Machine) -> None:
    player = Player()

    async def play(session: AgentSession) -> None:
        await session.prompt("/skill:deploy v2 now")
        await session.prompt("use $review")
        with pytest.raises(SkillError, match="Skill not found: nonsense"):
            await session.prompt("/skill:nonsense")

    with_session(played(player), play, shelf=standard(machine))
    command, _, mention = player.heard
    assert command.startswith('<skill_content name="deploy"')
    assert "v2 now" in command
    assert mention == "use $review\n\n<skill_mentions>\n- review\n</skill_mentions>"


@needs("pydantic_ai")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (None, "needs a model"),
        ("nonsense:x", "Unknown model: nonsense:x"),
        ("gpt", "Unknown model: gpt"),
    ],
)
def test_a_model_that_cannot_be_used_is_an_error_that_says_why(here: Machine, model: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        with_session(AgentConfiguration(BASE, model), lambda session: session.prompt("Hi."))


@needs("pydantic_ai")
def test_a_conversation_is_recorded_and_the_journal_is_complete_after_closing(machine: Machine, tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    seen: list[str] = []
    player = Player(("skill_load", {"name": "deploy"}))

    with_session(
        played(player),
        lambda session: session.prompt("Load it."),
        shelf=standard(machine),
        journal=journal,
        on_event=lambda event: seen.append(type(event).__name__),
    )

    assert seen == [
        "SessionStarted",
        "SkillCatalogUpdated",
        "PromptComposed",
        "ToolStarted",
        "PermissionDecided",
        "SkillLoaded",
        "SkillInvoked",
        "ToolEnded",
        "SessionEnded",
    ]
    assert len(journal.read_text().splitlines()) == len(seen)


def test_the_result_of_a_tool_equals_that_of_a_plain_session(machine: Machine) -> None:
    shelf = standard(machine)

    async def load(session: AgentSession) -> ToolResult:
        assert session.session is not None
        return session.session.call("skill_load", {"name": "deploy"})

    assert with_session(PLAIN, load, shelf=shelf) == shelf.session().call("skill_load", {"name": "deploy"})
