"""The first answers of `skillshelf mcp`, before the SDK is imported: the bytes that the SDK would send."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.mcps import HELLO
from support.trees import Machine, write_skill

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")

from mcp_types import version
from support.openings import (
    INITIALIZED,
    LISTS,
    RECORDED,
    OpeningServer,
    cut_openings,
    enveloped,
    generated_openings,
    line,
    request,
)

from skillshelf.servers.mcp.first_messages import Opening
from skillshelf.servers.mcp.listings import Listings
from skillshelf.servers.mcp.plain_messages import HANDSHAKE_VERSIONS, NEWER_VERSION
from skillshelf.servers.mcp.skills import PublishedSkills

BETA = r"""---
name: beta
description: "é \L \" \\ \x7f 字 \u0001 \b \U0001F600"
metadata: {a: [1, true, null, -0], b: {c: "<&>"}}
---
"""
GENERATED = int(os.environ.get("SKILLSHELF_OPENINGS", "140"))


@pytest.fixture
def skills(machine: Machine) -> Machine:
    """A machine with skills whose listings can be written early."""
    root = machine.home / ".agents/skills"
    (write_skill(root, "alpha").parent / "notes.md").write_text("notes")
    write_skill(root, "beta", BETA)
    write_skill(root, "Left Out")
    Path(os.fsdecode(os.fsencode(root / "alpha") + b"/\xff.md")).touch()
    return machine


@pytest.fixture
def odd_skills(skills: Machine) -> Machine:
    """A machine with a skill that only the SDK can write."""
    write_skill(skills.home / ".agents/skills", "odd", "---\nname: odd\ndescription: Odd.\nweight: 1.0e+16\n---\n")
    return skills


def both(
    machine: Machine, messages: list[Any], last: bytes = b"", *, pipelined: bool = False, page_entries: int = 1
) -> tuple[list[bytes], int]:
    """Return the answers with the early loop, which must be those of the SDK alone, and the number of early ones."""
    shelf = machine.shelf(trust="ask")
    early = OpeningServer(shelf, "early", page_entries=page_entries)
    found = early.answers(messages, last, pipelined=pipelined)
    alone = OpeningServer(shelf, "sdk", page_entries=page_entries).answers(messages, last, pipelined=pipelined)
    if pipelined:
        # The SDK works on several requests at once, and answers each when it is done.
        assert sorted(found) == sorted(alone)
    else:
        assert found == alone
    return found, early.early


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_opening_gets_the_bytes_of_the_sdk(skills: Machine, name: str) -> None:
    both(skills, RECORDED[name])


def test_openings_that_end_anywhere_get_the_bytes_of_the_sdk(skills: Machine) -> None:
    for name, messages, last in cut_openings():
        found, _ = both(skills, messages, last)
        assert len(found) >= sum("id" in message for message in messages), name


def test_generated_openings_get_the_bytes_of_the_sdk(skills: Machine) -> None:
    early = [both(skills, messages)[1] for messages in generated_openings(GENERATED, seed=18)]

    assert sum(map(bool, early)) > GENERATED / 3


def test_pipelined_openings_get_the_same_answers_in_any_order(skills: Machine) -> None:
    for messages in [*generated_openings(20, seed=19), RECORDED["older"], RECORDED["newer"]]:
        both(skills, messages, pipelined=True)


@pytest.mark.parametrize("name", ["older, then calls", "newer, then calls"])
def test_what_only_the_sdk_can_write_is_left_to_it(odd_skills: Machine, name: str) -> None:
    found, early = both(odd_skills, RECORDED[name], page_entries=50)

    assert any(b'"weight":' in answer for answer in found)
    assert early < sum("id" in message for message in RECORDED[name])


@pytest.mark.parametrize("name", ["older", "newer"])
def test_a_usual_opening_is_answered_without_the_sdk(skills: Machine, name: str) -> None:
    messages = RECORDED[name]
    server = OpeningServer(skills.shelf(trust="ask"), "early")

    server.answers(messages)

    assert server.early == sum("id" in message for message in messages)


def test_pages_follow_each_other_from_the_early_answers_to_the_sdk(skills: Machine) -> None:
    shelf = skills.shelf(trust="ask")
    first = json.loads(OpeningServer(shelf, "early", page_entries=1).answers([HELLO, request(2, "skills/list")])[1])
    cursor = first["result"]["nextCursor"]

    found, early = both(skills, [HELLO, request(2, "skills/list", {"cursor": cursor})])

    assert early == 2
    assert "nextCursor" not in json.loads(found[1])["result"]


@pytest.mark.parametrize(
    "messages",
    [
        [HELLO, INITIALIZED, request(2, "tools/list"), request(3, "skills/list"), request(4, "nonsense")],
        [enveloped(1, "tools/list"), enveloped(2, "skills/list"), enveloped(3, "resources/list")],
        [enveloped(1, "skills/list"), enveloped(2, "tools/call", name="skill_load", arguments={"name": "alpha"})],
        [request(1, "tools/list"), HELLO, request(2, "skills/list")],
        [enveloped(1, "nonsense"), enveloped(2, "server/discover")],
    ],
)
def test_the_journal_of_an_opening_is_that_of_the_sdk(skills: Machine, messages: list[Any]) -> None:
    events = []
    for way in ("early", "sdk"):
        journal = skills.base / f"{way}.jsonl"
        OpeningServer(skills.shelf(trust="ask"), way, journal).answers(messages)
        records = map(json.loads, journal.read_text().splitlines())
        left_out = {"session", "ts_ms", "prev", "sum", "duration_ms"}
        events.append([{name: record[name] for name in record if name not in left_out} for record in records])

    assert events[0] == events[1]
    assert [event["type"] for event in events[0]][:1] == ["session_started"]


def test_the_versions_of_the_opening_are_those_of_the_sdk() -> None:
    assert version.HANDSHAKE_PROTOCOL_VERSIONS == HANDSHAKE_VERSIONS
    assert version.MODERN_PROTOCOL_VERSIONS == (NEWER_VERSION,)


def test_nothing_is_answered_after_the_first_message_that_is_left_to_the_sdk(skills: Machine) -> None:
    published = PublishedSkills(skills.shelf(trust="ask"))
    opening = Opening(published, Listings(published, show_paths=True))
    try:
        assert opening.answer(line(request(1, LISTS[0]))) is None
        assert opening.answer(line(HELLO))
        assert opening.answer(line(enveloped(2, LISTS[0]))) is None
    finally:
        published.sessions.close()
