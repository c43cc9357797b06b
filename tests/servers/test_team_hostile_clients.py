"""While clients attack a team server, others are served and nothing stays open; a server that stops loses nothing."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support.journal_streams import chain, events
from support.needs import needs
from support.postgres import PASSWORD, PostgresCluster
from support.published_servers import fetched, served_process, skill, token_for
from support.team_attacks import (
    HELD,
    LEAVING,
    ODD,
    WAYS,
    Target,
    Usage,
    WrongTokens,
    answer_to,
    held,
    honest,
    leave,
    usage_of,
)
from support.waiting import wait_for

from skillshelf.core.limits import DATABASE_CONNECTIONS
from skillshelf.install.pack import zip_of
from skillshelf.servers.team.database import migrate_postgres

pytestmark = [pytest.mark.slow, *map(needs, ("mcp", "jwt", "cryptography", "watchfiles", "uvicorn", "psycopg"))]

SHARE = 0.02
LARGE_BYTES = 3_000_000
# The files of pooled connections to the database, and threads that wait for the next request for a while.
MORE_FILES = 3 * DATABASE_CONNECTIONS
MORE_THREADS = 24


class Attacked(NamedTuple):
    """A server of this test, an attacker who may do everything, and somebody who may read."""

    pid: int
    attacker: Target
    reader: Target
    log: Path


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def attacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A server in a process of its own, with a release that has a large file."""
    folder = tmp_path_factory.mktemp("attacked")
    database = address_of(request.param, folder, request)
    tokens = token_for(database, "eve", "admin"), token_for(database, "ada", "skills:read")
    with served_process(folder / "home", database, folder / "blobs") as (process, address):
        port = int(address.rpartition(":")[2])
        large = skill("large", large=random.Random(1).randbytes(LARGE_BYTES))
        done = fetched(f"{address}/api/v1/releases?version=1", tokens[0], body=zip_of(large, wrapper="large"))
        assert done[0] == 201, done
        yield Attacked(process.pid, Target(port, tokens[0]), Target(port, tokens[1]), folder / "home/log")


def address_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the address of an empty database."""
    if kind == "sqlite":
        return f"sqlite:///{folder}/team.sqlite"
    cluster: PostgresCluster = request.getfixturevalue("cluster")
    return migrate_postgres(cluster.new_database(), PASSWORD).address


def wait_until_back(server: Attacked, before: Usage) -> None:
    """Wait until a server has no files and threads of an attack any more."""

    def is_back() -> bool | None:
        now = usage_of(server.pid)
        return (now.files <= before.files + MORE_FILES and now.threads <= before.threads + MORE_THREADS) or None

    wait_for(is_back)


def test_an_odd_request_gets_one_clear_answer(attacked: Attacked) -> None:
    before = usage_of(attacked.pid)

    found = {name: answer_to(attacked.attacker, one.sent(attacked.attacker))[0] for name, one in ODD.items()}

    assert {name: status for name, status in found.items() if status not in ODD[name].statuses} == {}
    wait_until_back(attacked, before)


def test_clients_that_leave_at_any_moment_leave_nothing_behind(attacked: Attacked) -> None:
    before = usage_of(attacked.pid)

    for sent in LEAVING.values():
        for way in WAYS:
            leave(attacked.attacker, sent(attacked.attacker), way)

    wait_until_back(attacked, before)
    asyncio.run(honest(attacked.reader, 2))


def test_others_are_served_while_connections_are_held(attacked: Attacked) -> None:
    before = usage_of(attacked.pid)

    async def attack() -> None:
        for one in HELD.values():
            async with held(attacked.attacker, one, SHARE):
                await honest(attacked.reader, 2)

    asyncio.run(attack())
    wait_until_back(attacked, before)


def test_others_are_served_while_somebody_tries_tokens(attacked: Attacked) -> None:
    attack = WrongTokens(attacked.attacker, 10)

    async def run() -> None:
        async with attack.running():
            await honest(attacked.reader, 4)
            async with asyncio.timeout(60):
                while not attack.tried:
                    await asyncio.sleep(0.01)

    asyncio.run(run())
    assert set(attack.tried) == {401}


def test_the_server_says_nothing_but_lines_of_its_own(attacked: Attacked) -> None:
    lines = attacked.log.read_text().splitlines()

    assert [line for line in lines if not line.startswith("skillshelf: ")] == []


# Stopping -----------------------------------------------------------------------------------------


def opened(target: Target, sent: bytes) -> socket.socket:
    """Return a connection on which something was sent."""
    sock = socket.create_connection(("127.0.0.1", target.port), timeout=30)
    sock.sendall(sent)
    return sock


def rest_of(sock: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    data = b""
    with sock:
        while part := sock.recv(65536):
            data += part
    return data


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGTERM] * 3, [signal.SIGINT], [signal.SIGHUP]],
    ids=["SIGTERM thrice", "SIGINT", "SIGHUP"],
)
def test_a_server_that_is_stopped_refuses_what_is_incomplete_and_keeps_what_it_acknowledged(
    tmp_path: Path, signals: list[signal.Signals]
) -> None:
    database = f"sqlite:///{tmp_path}/team.sqlite"
    token = token_for(database, "ada", "admin")
    lines = chain(events(10))
    with served_process(tmp_path / "home", database, tmp_path / "blobs") as (process, address):
        target = Target(int(address.rpartition(":")[2]), token)
        body = zip_of(skill("kept"), wrapper="kept")
        assert fetched(f"{address}/api/v1/releases?version=1", token, body=body)[0] == 201
        pushed = b"".join(line + b"\n" for line in lines)
        assert fetched(f"{address}/api/v1/journal?stream={'ab' * 16}", token, body=pushed)[0] == 200
        half = target.head("POST", "/api/v1/releases", "expect: 100-continue\r\ncontent-length: 100000\r\n")
        uploads = [opened(target, half) for _ in range(2)]
        stream = opened(target, target.stream)
        # They are being served: the bodies are asked for, and the stream has begun.
        assert all(one.recv(100).startswith(b"HTTP/1.1 100") for one in uploads)
        assert stream.recv(12) == b"HTTP/1.1 200"
        for number in signals:
            process.send_signal(number)

        assert all(
            b"503 Service Unavailable" in (found := rest_of(one)) and b"shutting down" in found for one in uploads
        )
        assert rest_of(stream)
        assert process.wait(20) == 0
        assert re.findall("problem", (tmp_path / "home/log").read_text()) == []

    # The same port, at once; and everything is there.
    listen = ("--listen", address.removeprefix("http://"))
    with served_process(tmp_path / "home", database, tmp_path / "blobs", *listen) as (_, again):
        assert again == address
        assert fetched(f"{address}/api/v1/skills/kept/versions", token)[1]["channels"] == {"latest": "1"}
        _, state, _ = fetched(f"{address}/api/v1/journal?stream={'ab' * 16}", token, body=pushed)
        assert (state["stored"], state["acknowledged"]) == (0, json.loads(lines[-1])["seq"])
