"""The MCP server keeps one session for each client session, and one for each request where the transport has none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.mcps import ERAS, HELLO, ask, client_of, post, run, serving, text_of
from support.trees import Machine, write_skill

import anyio  # isort: skip
import mcp_types as types  # isort: skip
from mcp import Client  # isort: skip

import skillshelf
from skillshelf.core import limits
from skillshelf.servers.mcp.http import HttpLimits

SKILL = "---\nname: {0}\ndescription: Works.\nallowed-tools: {1}\n---\n# {0}\n"
MINE = "---\nname: mine\ndescription: Mine.\ndisable-model-invocation: true\n---\n# mine\n"
CLIENT_INFO = types.Implementation(name="first", version="1.5")


def skills(machine: Machine) -> None:
    """Write two skills that leave one tool each, and one that only a user may invoke."""
    root = machine.home / ".agents/skills"
    write_skill(root, "reads", SKILL.format("reads", "Read"))
    write_skill(root, "writes", SKILL.format("writes", "Read Write"))
    write_skill(root, "mine", MINE)


def sessions_in(journal: Path) -> list[list[dict[str, Any]]]:
    """Return the events of a journal by session, in the order in which the sessions started."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in journal.read_text().splitlines():
        event = json.loads(line)
        found.setdefault(event["session"], []).append(event)
    return list(found.values())


def windows(events: Sequence[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return the name and the effective tools of each use of a skill."""
    uses = [event for event in events if event["type"] == "skill_invoked"]
    return [(event["name"], event.get("effective_allowed_tools")) for event in uses]


@pytest.mark.req("C-75", "C-116", "K-13")
@pytest.mark.parametrize("era", ERAS)
def test_a_second_load_is_whole_and_no_event_is_invented(machine: Machine, era: str) -> None:
    """C-75, C-116 and K-13 diverge here: a client session is not a conversation, so the server never reminds."""
    journal = machine.base / "run.jsonl"
    skills(machine)

    async def check() -> None:
        async with client_of(machine, era, journal=journal) as client:
            results = [await client.call_tool("skill_load", {"name": name}) for name in ("reads", "reads", "writes")]
            assert all("# " in result.model_dump_json() for result in results)
            assert [result.structured_content["already_loaded"] for result in results] == [False, False, False]
            assert results[0].structured_content == results[1].structured_content

    run(check)
    (events,) = sessions_in(journal)
    kinds = [event["type"] for event in events]
    assert not {"context_compacted", "skill_deactivated"} & set(kinds)
    assert kinds.count("skill_loaded") == 3
    assert not any(event.get("repeat") for event in events if event["type"] == "skill_invoked")
    # The window of the first load is still open at the third.
    assert windows(events) == [("reads", ["Read"]), ("reads", ["Read"]), ("writes", ["Read"])]
    assert skillshelf.replay(journal, home=machine.home).differences == ()


@pytest.mark.parametrize("era", ERAS)
def test_the_client_on_standard_input_is_one_client_session_in_both_eras(machine: Machine, era: str) -> None:
    journal = machine.base / "run.jsonl"
    skills(machine)

    async def check() -> None:
        async with client_of(machine, era, journal=journal, client_info=CLIENT_INFO) as client:
            assert (await client.call_tool("skill_load", {"name": "mine"})).is_error
            await client.get_prompt("mine")
            # Its user asked for it, so its model may load it.
            assert "# mine" in await text_of(client, "skill_load", name="mine")
            await ask(client, "resources/read", uri="skill://reads/SKILL.md")
            await text_of(client, "skill_load", name="writes")

    run(check)
    (events,) = sessions_in(journal)
    assert (events[0]["client"], events[0]["memory"]) == ("first/1.5", "none")
    assert not events[0].get("per_request")
    assert events[-1]["type"] == "session_ended"


@pytest.mark.req("K-13")
def test_two_clients_over_http_share_no_window_and_no_request_of_a_user(machine: Machine) -> None:
    journal = machine.base / "run.jsonl"
    skills(machine)

    async def check() -> None:
        async with serving(machine, journal=journal) as port:
            url = f"http://127.0.0.1:{port}/mcp"
            async with Client(url, mode="legacy", client_info=CLIENT_INFO) as one:
                async with Client(url, mode="legacy") as two:
                    await text_of(one, "skill_load", name="reads")
                    await one.get_prompt("mine")
                    assert "# mine" in await text_of(one, "skill_load", name="mine")
                    assert (await two.call_tool("skill_load", {"name": "mine"})).is_error
                    assert "# writes" in await text_of(two, "skill_load", name="writes")
                    assert "# reads" in await text_of(two, "skill_load", name="reads")
                # The second has left: the first goes on with its own window.
                assert "# writes" in await text_of(one, "skill_load", name="writes")

    run(check)
    one, two = sessions_in(journal)
    assert windows(one) == [("reads", ["Read"]), ("mine", ["Read"]), ("mine", ["Read"]), ("writes", ["Read"])]
    assert windows(two) == [("writes", ["Read", "Write"]), ("reads", ["Read"])]
    assert one[0]["client"] == "first/1.5"
    assert [events[-1]["type"] for events in (one, two)] == ["session_ended", "session_ended"]
    assert skillshelf.replay(journal, home=machine.home).differences == ()


def test_in_the_newer_era_each_request_over_http_is_a_session_of_its_own(machine: Machine) -> None:
    journal = machine.base / "run.jsonl"
    skills(machine)

    async def check() -> None:
        async with (
            serving(machine, journal=journal) as port,
            Client(f"http://127.0.0.1:{port}/mcp", mode=ERAS["newer"], client_info=CLIENT_INFO) as client,
        ):
            for name in ("reads", "writes"):
                assert f"# {name}" in await text_of(client, "skill_load", name=name)
            await client.get_prompt("mine")
            assert (await client.call_tool("skill_load", {"name": "mine"})).is_error
            await ask(client, "resources/read", uri="skill://reads/SKILL.md")

    run(check)
    found = sessions_in(journal)
    assert len(found) == 5
    assert {(events[0]["per_request"], events[0]["client"]) for events in found} == {(True, "first/1.5")}
    assert {events[-1]["type"] for events in found} == {"session_ended"}
    assert [windows(events) for events in found[:3]] == [
        [("reads", ["Read"])],
        [("writes", ["Read", "Write"])],
        [("mine", None)],
    ]


@pytest.mark.parametrize("reason", ["idle", "too many"])
def test_a_client_session_over_http_that_is_idle_or_one_too_many_ends(machine: Machine, reason: str) -> None:
    journal = machine.base / "run.jsonl"
    skills(machine)
    limited = HttpLimits(session_idle_seconds=0.3) if reason == "idle" else HttpLimits(sessions=1)

    async def check() -> None:
        load = {"name": "skill_load", "arguments": {"name": "reads"}}
        async with serving(machine, limited, journal=journal) as port:
            _, session = await post(port, HELLO)
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": load}
            assert (await post(port, call, session))[0] == 200
            if reason == "too many":
                await post(port, HELLO)
            await ended(journal)
            assert (await post(port, call, session))[0] == 404

    async def ended(journal: Path) -> None:
        while not any(event["type"] == "session_ended" for event in sessions_in(journal)[0]):
            await anyio.sleep(0.05)

    run(check)
    assert len(sessions_in(journal)) == (1 if reason == "idle" else 2)


def test_a_client_session_keeps_a_bounded_amount_of_texts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillshelf.servers.mcp import client_sessions

    monkeypatch.setattr(client_sessions, "CLIENT_TEXT_CHARS", 1_000)
    skills(machine)
    started = client_sessions.ClientSessions(machine.shelf().session).start()
    for number in range(50):
        assert started.call("skill_load", {"name": "reads", "args": f"{number}"}).ok

    with started.session() as session:
        texts = session.snapshot()["texts"]

    assert len(texts) == 50
    assert sum(map(len, texts.values())) < 2_000
    assert limits.CLIENT_TEXT_CHARS > limits.SKILL_FILE_BYTES
