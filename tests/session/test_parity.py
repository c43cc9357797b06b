"""The same act leaves the same events, whichever surface it comes through.

A new surface is one line in `SURFACES`: a function that does one act of the scenario and records it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from support.needs import require
from support.players import PLAYS, Player, play_agent_session
from support.policies import put
from support.rpcclient import rpc_in_process
from support.trees import Machine

from skillshelf import Session, SkillError

LEFT_OUT = {"session", "ts_ms", "prev", "sum", "mode", "memory", "client"}
"""The members in which surfaces may differ: also whom a session serves, and what remembers its texts."""


class Act(NamedTuple):
    """One act: what a model would call, in words that every surface can translate."""

    kind: Literal["load", "read", "run"]
    arguments: Mapping[str, Any]


SCENARIO = {
    "a load": Act("load", {"name": "deploy"}),
    "a load with words": Act("load", {"name": "deploy", "args": "v2 now"}),
    "a load by path": Act("load", {"path": "{home}/.agents/skills/deploy/SKILL.md"}),
    "a load of a near miss": Act("load", {"name": "deplo"}),
    "a load of nothing": Act("load", {"name": "nonsense"}),
    "a load of a file that is gone": Act("load", {"path": "/nowhere/deploy"}),
    "a read": Act("read", {"uri": "skill://deploy/scripts/hello.sh"}),
    "a read of a folder": Act("read", {"uri": "skill://deploy/scripts"}),
    "a read of nothing": Act("read", {"uri": "skill://deploy/nothing.md"}),
    "a read that climbs": Act("read", {"uri": "skill://deploy/../x"}),
    "a run": Act("run", {"name": "deploy", "script": "hello.sh", "args": ["a", "b c"]}),
    "a run that fails": Act("run", {"name": "deploy", "script": "fail.sh"}),
    "a run that nobody allows": Act("run", {"name": "review", "script": "hello.sh"}),
    "a run of nothing": Act("run", {"name": "deploy", "script": "nothing.sh"}),
}

TOOLS = {"load": "skill_load", "read": "skill_read", "run": "skill_run"}

Surface = Callable[[Machine, Act, Path], None]


def a_model_in_python(machine: Machine, act: Act, journal: Path) -> None:
    """A tool call through a session."""
    with machine.shelf(trust="ask").session(journal=journal) as session:
        session.call(TOOLS[act.kind], dict(act.arguments))


def a_model_whose_user_says_no(machine: Machine, act: Act, journal: Path) -> None:
    """The same with a user who always says no."""
    tool = {"load": "skill_load", "read": "skill_read", "run": "skill_run"}[act.kind]
    with machine.shelf(trust="ask").session(journal=journal, confirm=lambda *question: False) as session:
        session.call(tool, dict(act.arguments))


def a_person_in_python(machine: Machine, act: Act, journal: Path) -> None:
    """The methods of a session that serve a person."""
    given = act.arguments
    with machine.shelf(trust="ask").session(journal=journal) as session, suppress(SkillError):
        if act.kind == "load":
            session.load(given.get("name"), path=given.get("path"), arguments=given.get("args", ""))
        elif act.kind == "read":
            session.read(given["uri"])
        else:
            session.run(given["name"], given["script"], given.get("args", ()))


def the_command_line(machine: Machine, act: Act, journal: Path) -> None:
    """`show`, `read` and `run` in a process of their own."""
    given = act.arguments
    words = {
        "load": [
            "show",
            given.get("path") or given.get("name"),
            *(["--args", given["args"]] if "args" in given else []),
        ],
        "read": ["read", given.get("uri")],
        "run": ["run", given.get("name"), given.get("script"), *given.get("args", ())],
    }[act.kind]
    done = machine.run(*words, "--journal", str(journal))
    assert "internal error in skillshelf" not in done.stderr


def a_client_of_the_mcp_server(machine: Machine, act: Act, journal: Path) -> None:
    """A tool call over the Model Context Protocol."""
    from support.mcps import client_of, run

    async def call() -> None:
        async with client_of(machine, journal=journal) as client:
            await client.call_tool(f"skill_{act.kind}", dict(act.arguments))

    run(call)


def a_session_over_json_rpc(machine: Machine, act: Act, journal: Path) -> None:
    """A tool call through the server of `skillshelf rpc`, to a client whose user says no."""
    tool = {"load": "skill_load", "read": "skill_read", "run": "skill_run"}[act.kind]
    with rpc_in_process(machine, started={"journal": str(journal)}) as client:
        client.confirm = lambda question: False
        client.ask("session.call", session=client.open(), tool=tool, arguments=dict(act.arguments))


def through(play: Callable[[Session, Player], None]) -> Surface:
    """A tool call by way of a framework."""

    def surface(machine: Machine, act: Act, journal: Path) -> None:
        with machine.shelf(trust="ask").session(journal=journal) as session:
            play(session, Player((TOOLS[act.kind], dict(act.arguments))))

    return surface


def an_agent_session(machine: Machine, act: Act, journal: Path) -> None:
    """A tool call of the model of an `AgentSession`."""
    player = Player((TOOLS[act.kind], dict(act.arguments)))
    play_agent_session(machine.shelf(trust="ask"), player, journal=journal)


SURFACES: dict[str, Surface] = {
    "a client of the MCP server": a_client_of_the_mcp_server,
    "a person in Python": a_person_in_python,
    "the command line": the_command_line,
    "a session over JSON-RPC": a_session_over_json_rpc,
    "AgentSession": an_agent_session,
    "pydantic-ai": through(PLAYS["pydantic-ai"]),
    "LangChain": through(PLAYS["LangChain"]),
    "OpenAI Agents SDK": through(PLAYS["OpenAI Agents SDK"]),
}
"""Every surface besides tool calls in Python, with which they are compared."""

ASKING: dict[str, Surface] = {"a session over JSON-RPC": a_model_whose_user_says_no}
"""The surfaces that ask the user, and the tool calls in Python with which they are compared."""


def events_of(machine: Machine, act: Act, surface: Surface, journal: Path) -> list[dict[str, Any]]:
    """Return the events of an act through a surface, without members that may differ."""
    surface(machine, act, journal)
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    # Composing a system prompt is an act of its own, which only surfaces with a model of theirs do.
    composed = [entry for entry in records if entry["type"] == "prompt_composed"]
    records[-1]["events"] -= len(composed)
    acts = [entry for entry in records if entry not in composed]
    return [
        {**{key: value for key, value in entry.items() if key not in LEFT_OUT}, "seq": number}
        for number, entry in enumerate(acts)
    ]


@pytest.mark.slow
@pytest.mark.req("K-03", "K-12", "K-13")
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", SCENARIO)
def test_the_same_act_leaves_the_same_events(machine: Machine, name: str, surface: str) -> None:
    skill = put(machine.home / ".agents/skills", "deploy", "model: big\nallowed-tools: Read\n").parent
    put(machine.home / ".agents/skills", "review")
    put(machine.repo / ".agents/skills", "stranger")
    (skill / "scripts/hello.sh").write_text('#!/bin/sh\necho "hello $2"\necho oops >&2\n')
    (skill / "scripts/fail.sh").write_text("#!/bin/sh\nexit 3\n")
    machine.configure(
        "permissions.allow = [{ tool = 'skill_run', skill_name = 'deploy' }]\npermissions.run.unsandboxed = true\n"
    )
    act = SCENARIO[name]
    act = act._replace(
        arguments={
            key: value.format(home=machine.home) if isinstance(value, str) else value
            for key, value in act.arguments.items()
        }
    )

    expected = events_of(machine, act, ASKING.get(surface, a_model_in_python), machine.base / "model.jsonl")
    found = events_of(machine, act, SURFACES[surface], machine.base / "surface.jsonl")

    assert found == expected
    assert len(expected) > 4


@pytest.mark.slow
def test_a_run_is_in_the_same_frames_as_any_other_call(machine: Machine) -> None:
    put(machine.home / ".agents/skills", "deploy")
    policy = {"allow": [{"tool": "skill_run"}], "run_unsandboxed": True}
    events: list[Any] = []
    session = machine.shelf().session(policy, on_event=events.append)
    session.call("skill_load", {"name": "deploy"})
    session.call("skill_run", {"name": "deploy", "script": "hello.sh"})

    frames = [event for event in events if hasattr(event, "tool_id")]

    assert [(type(frame).__name__, frame.tool_id) for frame in frames] == [
        ("ToolStarted", "t1"),
        ("ToolEnded", "t1"),
        ("ToolStarted", "t2"),
        ("ToolStdout", "t2"),
        ("ToolEnded", "t2"),
    ]


@pytest.mark.req("K-12")
@pytest.mark.parametrize("address", ["skill://deploy", "skill://deploy/scripts/hello.sh"])
def test_a_read_leaves_the_same_events_where_reading_is_how_a_skill_is_loaded(machine: Machine, address: str) -> None:
    put(machine.home / ".omp/agent/skills", "deploy", "allowed-tools: Read\n")

    def by_model(machine: Machine, act: Act, journal: Path) -> None:
        with machine.shelf("omp", trust="ask").session(journal=journal) as session:
            session.call("read", {"path": act.arguments["uri"]})

    def by_command(machine: Machine, act: Act, journal: Path) -> None:
        machine.run("read", act.arguments["uri"], "--profile", "omp", "--journal", str(journal))

    act = Act("read", {"uri": address})
    expected = events_of(machine, act, by_model, machine.base / "model.jsonl")
    found = events_of(machine, act, by_command, machine.base / "command.jsonl")

    assert found == expected
    reached = "skill_loaded" if address == "skill://deploy" else "skill_read"
    assert [entry["type"] for entry in found if entry["type"] in ("skill_loaded", "skill_read")] == [reached]


# Second loads -------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """The texts of one conversation, and of the first load in another one."""

    texts: list[str]
    elsewhere: str


Conversation = Callable[[Machine, Callable[[], None], Path], Shown]
"""Load alpha, alpha and beta, compact, load alpha, edit it, load it, and load it in a second conversation."""


def in_python(machine: Machine, edit: Callable[[], None], journal: Path) -> Shown:
    """A session of a program."""
    shelf = machine.shelf(trust="ask")
    with shelf.session(journal=journal) as session, shelf.session(journal=journal) as other:
        texts = [session.call("skill_load", {"name": name}).text for name in ("alpha", "alpha", "beta")]
        session.compact()
        texts.append(session.call("skill_load", {"name": "alpha"}).text)
        edit()
        texts.append(session.call("skill_load", {"name": "alpha"}).text)
        return Shown(texts, other.call("skill_load", {"name": "alpha"}).text)


def over_json_rpc(machine: Machine, edit: Callable[[], None], journal: Path) -> Shown:
    """A session of the server of `skillshelf rpc`."""
    with rpc_in_process(machine, started={"journal": str(journal)}) as client:
        session, other = client.open(), client.open()

        def load(name: str, of: str) -> str:
            result = client.ask("session.call", session=of, tool="skill_load", arguments={"name": name})
            return str(result["text"])

        texts = [load(name, session) for name in ("alpha", "alpha", "beta")]
        client.ask("session.compact", session=session)
        texts.append(load("alpha", session))
        edit()
        texts.append(load("alpha", session))
        return Shown(texts, load("alpha", other))


def by_way_of(play: Callable[[Session, Player], None]) -> Conversation:
    """A session that a framework uses in several runs."""

    def conversation(machine: Machine, edit: Callable[[], None], journal: Path) -> Shown:
        shelf = machine.shelf(trust="ask")

        def run(session: Session, *names: str) -> list[str]:
            player = Player(*(("skill_load", {"name": name}) for name in names))
            play(session, player)
            return player.answers

        with shelf.session(journal=journal) as session, shelf.session(journal=journal) as other:
            texts = run(session, "alpha", "alpha", "beta")
            session.compact()
            texts += run(session, "alpha")
            edit()
            texts += run(session, "alpha")
            return Shown(texts, run(other, "alpha")[0])

    return conversation


def over_mcp(machine: Machine, edit: Callable[[], None], journal: Path) -> Shown:
    """Two clients of the MCP server over HTTP, which knows of no compaction."""
    require("mcp")
    from mcp import Client
    from support.mcps import run, serving, text_of

    shown: list[Shown] = []

    async def talk() -> None:
        async with serving(machine, journal=journal, show_paths=True) as port:
            url = f"http://127.0.0.1:{port}/mcp"
            async with Client(url, mode="legacy") as client, Client(url, mode="legacy") as other:
                texts = [await text_of(client, "skill_load", name=name) for name in ("alpha", "alpha", "beta", "alpha")]
                edit()
                texts.append(await text_of(client, "skill_load", name="alpha"))
                shown.append(Shown(texts, await text_of(other, "skill_load", name="alpha")))

    run(talk)
    return shown[0]


def on_the_command_line(machine: Machine, edit: Callable[[], None], journal: Path) -> Shown:
    """The command `show`, once for each load; the last gets what the picker prints."""
    from skillshelf.cli.picker.model import PickerModel
    from skillshelf.cli.picker.plain import choose_plain

    def show(name: str) -> str:
        return machine.run("show", name, "--journal", str(journal)).stdout.removesuffix("\n")

    texts = [show(name) for name in ("alpha", "alpha", "beta", "alpha")]
    edit()
    texts.append(show("alpha"))
    with closing(PickerModel(machine.shelf)) as model:
        row = choose_plain(model, StringIO("alpha\n1\n"), StringIO())
    assert row
    return Shown(texts, show(row.identifier))


REMINDING: dict[str, Conversation] = {
    "a session over JSON-RPC": over_json_rpc,
    "pydantic-ai": by_way_of(PLAYS["pydantic-ai"]),
    "LangChain": by_way_of(PLAYS["LangChain"]),
    "OpenAI Agents SDK": by_way_of(PLAYS["OpenAI Agents SDK"]),
}
REPEATING: dict[str, Conversation] = {"MCP": over_mcp, "the command line": on_the_command_line}


def written(machine: Machine) -> Callable[[], None]:
    """Write two skills; return a function that edits the first, and edits it back."""
    skill = put(machine.home / ".agents/skills", "alpha")
    put(machine.home / ".agents/skills", "beta")
    before = skill.read_bytes()

    def edit() -> None:
        skill.write_bytes(before + b"And one more line.\n" if skill.read_bytes() == before else before)

    return edit


@pytest.mark.slow
@pytest.mark.req("C-74", "C-75", "C-76", "C-77", "C-116", "K-13")
@pytest.mark.parametrize("surface", REMINDING)
def test_a_second_load_is_the_same_reminder_in_python_over_rpc_and_in_the_adapters(
    machine: Machine, surface: str
) -> None:
    edit = written(machine)
    expected = in_python(machine, edit, machine.base / "python.jsonl")
    edit()
    found = REMINDING[surface](machine, edit, machine.base / "surface.jsonl")

    assert found == expected
    first, second, other, compacted, edited = found.texts
    assert len(second) < len(first)
    assert compacted == first
    assert "And one more line." in edited
    assert edited == found.elsewhere
    assert "beta" in other


@pytest.mark.slow
@pytest.mark.req("C-75", "C-116", "K-13")
@pytest.mark.parametrize("surface", REPEATING)
def test_over_mcp_and_on_the_command_line_every_load_is_the_first_one_again(machine: Machine, surface: str) -> None:
    """C-75, C-116 and, for second loads, K-13 diverge here: neither surface knows what a model still sees."""
    edit = written(machine)
    expected = in_python(machine, edit, machine.base / "python.jsonl")
    edit()
    journal = machine.base / "surface.jsonl"
    found = REPEATING[surface](machine, edit, journal)

    whole = [expected.texts[index] for index in (0, 0, 2, 3, 4)]
    assert found == Shown(whole, expected.elsewhere)
    kinds = [json.loads(line)["type"] for line in journal.read_text(encoding="utf-8").splitlines()]
    assert kinds.count("skill_loaded") == 6
    assert not {"context_compacted", "skill_deactivated"} & set(kinds)
    assert kinds.count("session_started") == kinds.count("session_ended") == (2 if surface == "MCP" else 6)
