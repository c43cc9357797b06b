"""The Model Context Protocol of the team server: real clients, sessions of one caller, names in the journal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.mcps import ERAS, HELLO, run
from support.teams import RunningTeam, running_team
from support.trees import SOURCE, Machine, write_skill
from support.waiting import wait_for

import httpx2  # isort: skip
import mcp_types as types  # isort: skip
from mcp import Client  # isort: skip
from mcp.client.streamable_http import streamable_http_client  # isort: skip

from skillshelf.servers.mcp.http import HttpLimits
from skillshelf.servers.team.blobs import FolderBlobs
from skillshelf.servers.team.database import SqliteDatabase

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
VALUES: dict[str, Any] = {"journal": None, "keep": False, "rotate": None, "otlp": None, "otlp_content": False}


@asynccontextmanager
async def connected(url: str, token: str, era: str) -> AsyncIterator[Client]:
    """Open a client of the SDK with a token."""
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        info = types.Implementation(name="an-agent", version="7")
        async with Client(transport, mode=ERAS[era], client_info=info) as client:
            yield client


def texts(result: Any) -> str:
    return "".join(part.text for part in result.content)


@pytest.mark.parametrize("era", ERAS)
def test_a_client_lists_searches_and_loads_what_its_token_may_read(machine: Machine, tmp_path: Path, era: str) -> None:
    for name in ("web-css", "secret-plan"):
        write_skill(machine.home / ".agents/skills", name)

    async def use(team: RunningTeam) -> None:
        async with connected(team.url, team.token("ada", "skills:read:web-*"), era) as client:
            found = await client.call_tool("skill_search", {"query": "things"})
            assert "web-css" in texts(found)
            assert "secret-plan" not in texts(found)
            assert "# web-css" in texts(await client.call_tool("skill_load", {"name": "web-css"}))
            refused = await client.call_tool("skill_load", {"name": "secret-plan"})
            assert refused.is_error
            assert "# secret-plan" not in texts(refused)
            listed = await client.list_resources()
            assert {str(one.uri) for one in listed.resources} == {"skill://web-css/SKILL.md"}

    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as team:
        team.wait_until_ready()
        run(use, team)


def test_without_the_database_the_answers_of_the_protocol_and_the_pages_are_marked(
    machine: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "team.sqlite"
    write_skill(machine.home / ".agents/skills", "web-css")
    with running_team(machine, SqliteDatabase(str(file)), blobs=FolderBlobs(str(tmp_path / "blobs"))) as team:
        team.wait_until_ready()
        token, opening = team.token("ada", "skills:read:web-*"), json.dumps(HELLO).encode()

        def mark() -> list[str | None]:
            answers = [team.ask("POST", "/mcp", token, headers=JSON, body=opening), team.get("/skills", token)]
            assert [answer.status for answer in answers] == [200, 200]
            return [answer.headers.get("skillshelf-stale") for answer in answers]

        assert mark() == [None, None]
        file.rename(tmp_path / "elsewhere")
        wait_for(lambda: mark() == ["true", "true"] or None)
        (tmp_path / "elsewhere").rename(file)
        wait_for(lambda: mark() == [None, None] or None)


def test_another_tenant_has_an_empty_catalog(machine: Machine, tmp_path: Path) -> None:
    write_skill(machine.home / ".agents/skills", "secret-plan")
    database = SqliteDatabase(str(tmp_path / "team.sqlite"))
    database.add_tenant("acme")

    async def use(team: RunningTeam) -> None:
        async with connected(team.url, team.token("eve", "admin", tenant="acme"), "newer") as client:
            assert "secret-plan" not in texts(await client.call_tool("skill_search", {"query": "secret plan"}))
            assert (await client.call_tool("skill_load", {"name": "secret-plan"})).is_error
            assert (await client.list_resources()).resources == []

    with running_team(machine, database) as team:
        team.wait_until_ready()
        run(use, team)


def test_a_session_belongs_to_its_caller_and_an_unknown_one_is_not_found(machine: Machine, tmp_path: Path) -> None:
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as team:
        team.wait_until_ready()
        ada, bob = team.token("ada", "skills:read"), team.token("bob", "skills:read")
        hello = json.dumps(HELLO).encode()
        session = team.ask("POST", "/mcp", ada, headers=JSON, body=hello).headers["mcp-session-id"]
        ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()

        def use(token: str, name: str, method: str = "POST") -> int:
            headers = {**JSON, "mcp-session-id": name, "mcp-protocol-version": "2025-11-25"}
            return team.ask(method, "/mcp", token, headers=headers, body=ping if method == "POST" else None).status

        assert use(ada, session) == 200
        assert use(bob, session) == 404
        assert use(bob, session, "DELETE") == 404
        assert use(ada, "0" * 32) == 404
        assert use(ada, session) == 200
        # Another token of the same person is the same person.
        assert use(team.token("ada", "skills:read"), session) == 200
        assert use(ada, session, "DELETE") == 200
        assert use(ada, session) == 404


def test_a_session_whose_end_was_refused_still_counts_among_the_sessions(machine: Machine, tmp_path: Path) -> None:
    limits = HttpLimits(sessions=3, requests=2, session_rest_seconds=0, wait_seconds=5)
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), limits=limits) as team:
        team.wait_until_ready()
        ada, bob = team.token("ada", "skills:read"), team.token("bob", "skills:read")
        opened, hello = [], json.dumps(HELLO).encode()

        for _ in range(7):
            answer = team.ask("POST", "/mcp", ada, headers=JSON, body=hello)
            assert answer.status == 200, answer.body
            opened.append(answer.headers["mcp-session-id"])
            headers = {**JSON, "mcp-session-id": opened[-1]}
            assert team.ask("DELETE", "/mcp", bob, headers=headers).status == 404

        assert "\nskillshelf_sessions 3\n" in team.get("/metrics").body.decode()
        assert team.ask("DELETE", "/mcp", ada, headers={**JSON, "mcp-session-id": opened[0]}).status == 404
        assert team.ask("DELETE", "/mcp", ada, headers={**JSON, "mcp-session-id": opened[-1]}).status == 200
        assert "\nskillshelf_sessions 2\n" in team.get("/metrics").body.decode()


def test_somebody_who_opens_many_sessions_ends_their_own_and_nobody_elses(machine: Machine, tmp_path: Path) -> None:
    limits = HttpLimits(sessions=4, requests=2, session_rest_seconds=0, wait_seconds=5)
    database = SqliteDatabase(str(tmp_path / "team.sqlite"))
    database.add_tenant("acme")
    with running_team(machine, database, limits=limits) as team:
        team.wait_until_ready()
        ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()

        def use(token: str, name: str) -> int:
            headers = {**JSON, "mcp-session-id": name, "mcp-protocol-version": "2025-11-25"}
            return team.ask("POST", "/mcp", token, headers=headers, body=ping).status

        def opened(token: str) -> str:
            found = team.ask("POST", "/mcp", token, headers=JSON, body=json.dumps(HELLO).encode())
            assert found.status == 200, found.body
            assert use(token, found.headers["mcp-session-id"]) == 200
            return found.headers["mcp-session-id"]

        ada, eve = team.token("ada", "skills:read"), team.token("eve", "skills:read", tenant="acme")
        kept = opened(ada)
        many = [opened(eve) for _ in range(8)]

        assert use(ada, kept) == 200
        assert [use(eve, name) for name in many] == [404] * 5 + [200] * 3


def test_somebody_whose_sessions_are_all_in_use_waits_and_ends_none_of_others(machine: Machine, tmp_path: Path) -> None:
    limits = HttpLimits(sessions=4, requests=2, session_rest_seconds=1, wait_seconds=0.1)
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), limits=limits) as team:
        team.wait_until_ready()
        ada, eve = team.token("ada", "skills:read"), team.token("eve", "skills:read")
        hello, ping = json.dumps(HELLO).encode(), b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}'
        kept = team.ask("POST", "/mcp", ada, headers=JSON, body=hello).headers["mcp-session-id"]
        rests_at = time.monotonic() + 1.1
        wait_for(lambda: time.monotonic() > rests_at or None)

        # The last ones are refused, or end another one of hers if the machine is slow.
        assert {team.ask("POST", "/mcp", eve, headers=JSON, body=hello).status for _ in range(5)} <= {200, 503}

        headers = {**JSON, "mcp-session-id": kept, "mcp-protocol-version": "2025-11-25"}
        assert team.ask("POST", "/mcp", ada, headers=headers, body=ping).status == 200


def test_every_session_of_the_journal_names_the_person_and_the_program(machine: Machine, tmp_path: Path) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    journal = tmp_path / "run.jsonl"

    async def use(team: RunningTeam) -> None:
        for subject in ("ada", "bob"):
            for era in ERAS:
                async with connected(team.url, team.token(subject, "skills:read"), era) as client:
                    await client.call_tool("skill_load", {"name": "alpha"})

    values = {**VALUES, "journal": str(journal)}
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), values=values) as team:
        team.wait_until_ready()
        run(use, team)
        team.get("/api/v1/skills/alpha", team.token("eve", "skills:read"), headers={"user-agent": "curl/8"})

    events = [json.loads(line) for line in journal.read_text().splitlines()]
    started = {event["session"]: event for event in events if event["type"] == "session_started"}
    loads = {(started[event["session"]]["subject"]) for event in events if event["type"] == "skill_loaded"}
    assert loads == {"ada", "bob", "eve"}
    assert {event["subject"] for event in started.values()} == {"ada", "bob", "eve"}
    assert {event["client"] for event in started.values() if event["subject"] != "eve"} == {"an-agent/7"}
    assert {event["client"] for event in started.values() if event["subject"] == "eve"} == {"curl/8"}


def test_the_oldest_idle_session_of_whomever_goes_when_there_are_too_many(machine: Machine, tmp_path: Path) -> None:
    from skillshelf.servers.mcp.http import HttpLimits

    limits = HttpLimits(sessions=2, session_rest_seconds=0)
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), limits=limits) as team:
        team.wait_until_ready()
        hello = json.dumps(HELLO).encode()
        people = [team.token(name, "skills:read") for name in ("ada", "bob", "eve")]
        names = [team.ask("POST", "/mcp", one, headers=JSON, body=hello).headers["mcp-session-id"] for one in people]
        ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
        found = [
            team.ask(
                "POST",
                "/mcp",
                one,
                headers={**JSON, "mcp-session-id": name, "mcp-protocol-version": "2025-11-25"},
                body=ping,
            ).status
            for one, name in zip(people, names, strict=True)
        ]
        assert found == [404, 200, 200]


# The command --------------------------------------------------------------------------------------


def start(machine: Machine, *words: str) -> subprocess.Popen[str]:
    """Start the real command."""
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(machine.home), "PYTHONPATH": SOURCE}
    return subprocess.Popen(
        [sys.executable, "-m", "skillshelf", "serve", "--listen", "127.0.0.1:0", "--home", str(machine.home), *words],
        env=environment,
        cwd=machine.repo,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_the_command_serves_until_a_signal_and_ends_what_runs(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    made = machine.run_json("serve", "token", "create", "ada", "--scope", "skills:read")
    journal = machine.base / "run.jsonl"
    process = start(machine, "--journal", str(journal))
    assert process.stderr
    try:
        lines = [process.stderr.readline()]
        while "serving at" not in lines[-1]:
            assert lines[-1], "".join(lines)
            lines.append(process.stderr.readline())
        url = lines[-1].split()[-1]
        while "ready: 1 skill" not in lines[-1]:
            assert lines[-1], "".join(lines)
            lines.append(process.stderr.readline())

        async def use() -> None:
            async with connected(url, made["token"], "older") as client:
                await client.call_tool("skill_load", {"name": "alpha"})
                process.send_signal(signal.SIGTERM)

        run(use)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
    assert json.loads(journal.read_text().splitlines()[-1])["type"] == "session_ended"


@pytest.mark.slow
def test_the_command_says_how_many_skills_of_an_untrusted_project_it_does_not_serve(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    write_skill(machine.repo / ".agents/skills", "beta")
    process = start(machine)
    assert process.stderr
    try:
        lines = [process.stderr.readline()]
        while lines[-1] and "ready: " not in lines[-1]:
            lines.append(process.stderr.readline())
        assert lines[-1] == "skillshelf: ready: 1 skill\n"
        assert process.stderr.readline().startswith("skillshelf: 1 skill of this project is hidden from models")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_the_command_says_what_is_wrong_in_one_line(machine: Machine) -> None:
    for words, message in {
        ("--listen", "nowhere"): "--listen takes HOST:PORT",
        ("--issuer", "https://login.example"): "--issuer and --audience need each other",
        ("--issuer", "http://login.example", "--audience", "x"): "--issuer takes an https address",
        ("--database", "mysql://x"): "--database takes sqlite:///FILE or postgresql://",
        ("--database", "postgresql://nobody@/x?host=/nonexistent"): "the database cannot be reached",
    }.items():
        process = start(machine, *words)
        _, errors = process.communicate(timeout=60)
        assert process.returncode not in (0, None)
        assert message in errors
        assert errors.count("\n") == 1, errors
