"""Over HTTP, idle connections and sessions are ended, and streams end with the server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from support.mcps import run
from support.trees import Machine

import anyio  # isort: skip
import anyio.to_thread  # isort: skip
from skillshelf.servers.mcp.http import HttpLimits, ServerAccess, bind, serve_http
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
DEFAULT_LIMITS = HttpLimits()


@asynccontextmanager
async def serving(machine: Machine, limits: HttpLimits = DEFAULT_LIMITS) -> AsyncIterator[int]:
    """Run a server over HTTP in this process and yield its port; at the end it must stop."""
    shelf = machine.shelf(trust="ask")
    skills = PublishedSkills(shelf, shelf.session)
    address = ServerAccess("127.0.0.1", 0, None, frozenset())
    bound = bind(address)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(serve_http, SkillServer(skills, show_paths=False), address, bound, limits)
            yield bound.getsockname()[1]
            group.cancel_scope.cancel()
    finally:
        skills.sessions.close()


async def post(port: int, message: Any, session: str | None = None) -> tuple[int, str | None]:
    """Return the status of the response to a message of the older era, and the session that it opens."""

    def ask() -> tuple[int, str | None]:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"} if session else {}
        try:
            connection.request("POST", "/mcp", json.dumps(message), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader("mcp-session-id")
        finally:
            connection.close()

    return await anyio.to_thread.run_sync(ask)


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: local"], ids=["nothing", "half of the headers"])
def test_a_connection_without_a_complete_request_is_closed(machine: Machine, sent: bytes) -> None:
    async def check() -> None:
        limits = HttpLimits(idle_seconds=0.1)
        async with serving(machine, limits) as port, await anyio.connect_tcp("127.0.0.1", port) as idle:
            if sent:
                await idle.send(sent)
            with pytest.raises(anyio.EndOfStream):
                await idle.receive()

    run(check)


def test_a_new_session_of_the_older_era_ends_the_one_that_was_idle_longest(machine: Machine) -> None:
    async def check() -> None:
        async with serving(machine, HttpLimits(streams=2)) as port:
            names = [(await post(port, HELLO))[1] for _ in range(2)]
            # A request that opens no session ends none.
            assert (await post(port, PING))[0] == 400
            # The first is used last, so the second is idle longer.
            assert [(await post(port, PING, name))[0] for name in reversed(names)] == [200, 200]
            names.append((await post(port, HELLO))[1])
            assert [(await post(port, PING, name))[0] for name in names] == [200, 404, 200]

    run(check)


def test_a_stream_ends_immediately_and_cleanly_with_the_server(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    async def check() -> None:
        async with serving(machine) as port:
            _, session = await post(port, HELLO)
            stream = await anyio.connect_tcp("127.0.0.1", port)
            headers = f"Host: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n"
            await stream.send(f"GET /mcp HTTP/1.1\r\n{headers}\r\n".encode())
            assert b"200 OK" in await stream.receive()
        async with stream:
            rest = b"".join([part async for part in stream])
        assert rest.endswith(b"0\r\n\r\n")

    run(check)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("skillshelf: serving ")
