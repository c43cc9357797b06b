"""Over HTTP, idle connections and sessions are ended, and streams end with the server."""

from __future__ import annotations

import pytest
from support.mcps import HELLO, post, run, serving
from support.trees import Machine

import anyio  # isort: skip
import anyio.to_thread  # isort: skip
from skillshelf.servers.mcp.http import HttpLimits

PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


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
        async with serving(machine, HttpLimits(sessions=2)) as port:
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
