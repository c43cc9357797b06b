"""A whole conversation through every adapter: the model sees the same, gets the same, and the journal is the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.players import PLAYS, Call, Player, play_agent_session, play_session
from support.trees import Machine, write_skill

from skillshelf import Session, Shelf

pytestmark = pytest.mark.slow

LEFT_OUT = {"session", "ts_ms", "prev", "sum", "mode"}
RUN: Call = ("skill_run", {"name": "deploy", "script": "hello.sh", "args": ["a b", "$HOME"]})
CALLS: list[Call] = [
    ("skill_search", {"query": "deploy"}),
    ("skill_load", {"name": "deplyo"}),
    ("skill_load", {"name": "deploy", "args": "v2"}),
    ("skill_read", {"uri": "skill://deploy/references/style.md"}),
    RUN,
    RUN,
    ("skill_load", {"name": "deploy", "args": "v2"}),
    ("skill_load", {"nme": "deploy"}),
]


def prepared(machine: Machine) -> Shelf:
    """A shelf with a skill that has a reference and a script, and another one."""
    text = "---\nname: deploy\ndescription: Deploys the service.\nallowed-tools: Read\n---\nRead references/style.md.\n"
    folder = write_skill(machine.home / ".agents/skills", "deploy", text).parent
    for name, content in {
        "references/style.md": "Past tense.\n",
        "scripts/hello.sh": '#!/bin/sh\necho "<$1> $2"\n',
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    write_skill(machine.home / ".agents/skills", "review")
    machine.configure("permissions.run.unsandboxed = true\n")
    return machine.shelf(trust="ask")


def once_no_then_yes() -> Callable[[str, str, str], bool]:
    """Somebody who denies the first question and confirms the second."""
    answers = iter([False, True])
    return lambda tool, name, reason: next(answers)


def recorded(journal: Path) -> list[dict[str, Any]]:
    """The events, without what may differ between surfaces: how long a script took, and what remembers the texts."""
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    return [
        {key: value for key, value in r.items() if key not in {*LEFT_OUT, "duration_ms", "memory"}} for r in records
    ]


def naming(schema: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The schema of a tool that names these skills, or none."""
    known = {key: dict(value) for key, value in schema["properties"].items()}
    if "name" in known:
        known["name"].pop("enum", None)
        known["name"] |= {"enum": list(names)} if names else {}
    return {**schema, "properties": known}


Play = Callable[[Shelf, Path, Player], None]


def through(play: Callable[[Session, Player], None]) -> Play:
    """The conversation on a session, by way of a framework."""

    def conversation(shelf: Shelf, journal: Path, player: Player) -> None:
        with shelf.session(journal=journal, confirm=once_no_then_yes()) as session:
            play(session, player)

    return conversation


def through_agent_session(shelf: Shelf, journal: Path, player: Player) -> None:
    """The conversation through an `AgentSession`, which makes its own session."""
    play_agent_session(shelf, player, journal=journal, confirm=once_no_then_yes())


SURFACES: dict[str, Play] = {
    **{name: through(play) for name, play in PLAYS.items()},
    "AgentSession": through_agent_session,
}


@pytest.mark.req("S-03", "S-135")
@pytest.mark.parametrize("surface", SURFACES)
def test_a_whole_conversation_is_the_same_through_every_adapter(machine: Machine, surface: str) -> None:
    shelf = prepared(machine)
    expected, found = Player(*CALLS), Player(*CALLS)

    through(play_session)(shelf, machine.base / "plain.jsonl", expected)
    SURFACES[surface](shelf, machine.base / "surface.jsonl", found)

    search, typo, body, reference, denied, ran, again, mistake = found.answers
    assert search.startswith("1 skill found:\n1. deploy ")
    assert typo == "Error: Skill not found: deplyo; did you mean deploy?\ndeploy"
    assert body.startswith('<skill_content name="deploy"')
    assert reference == "Past tense.\n"
    assert denied.startswith("Error: deploy may not be used: a script runs only after the user confirms it")
    assert "<a b> $HOME" in ran
    assert again.startswith("<skill_context_reminder")
    assert mistake.startswith("Error: skill_load has no parameter nme")
    assert found.answers == expected.answers
    assert "<name>deploy</name>" in found.instructions[0]
    assert set(found.instructions) == set(expected.instructions)
    # LangChain's tools are listed once, before the run: a name that comes later must not be refused by their schema.
    names = () if surface == "LangChain" else ("deploy", "review")
    assert found.tools[0] == {tool: naming(schema, names) for tool, schema in expected.tools[0].items()}
    assert recorded(machine.base / "surface.jsonl") == recorded(machine.base / "plain.jsonl")
