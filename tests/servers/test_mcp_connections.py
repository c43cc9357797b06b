"""Over HTTP, idle connections and sessions are ended, and streams end with the server."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from http.client import HTTPConnection

import pytest
from support.mcps import HELLO, post, run, serving
from support.trees import Machine, write_skill

import anyio  # isort: skip
import anyio.to_thread  # isort: skip
from support.floods import HEADERS, META, NEWER, message

from skillshelf.core.server_socket import listening_socket
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.connections import room_within
from skillshelf.servers.mcp.http import HttpLimits
from skillshelf.servers.mcp.notices import library_notices
from skillshelf.servers.mcp.request_line import Message, Places, RequestRefused

PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def test_a_response_is_sent_at_once_and_does_not_wait_for_the_client_to_confirm_a_part_of_it() -> None:
    async def check() -> None:
        delays = asyncio.get_running_loop().create_future()

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            delays.set_result(not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        bound = listening_socket("127.0.0.1", 0, backlog=1, hint="choose another port")
        async with await asyncio.start_server(accepted, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname())
            assert not await delays
            writer.close()

    asyncio.run(check())


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


@pytest.mark.parametrize(("length", "served"), [(1, False), (200, True)])
def test_a_body_in_many_tiny_chunks_closes_its_connection(machine: Machine, length: int, served: bool) -> None:
    chunks = [json.dumps(HELLO).encode(), *[b" " * length] * 2_000]
    sent = f"{HEADERS}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
    sent += b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"

    async def check() -> None:
        async with serving(machine, HttpLimits()) as port, await anyio.connect_tcp("127.0.0.1", port) as client:
            await client.send(sent)
            answer = await client.receive()
            assert answer.startswith(b"HTTP/1.1 200" if served else b"HTTP/1.1 400")

    run(check)


def test_what_is_not_http_after_a_response_has_begun_closes_the_connection_quietly(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    too_large = f"{HEADERS}Transfer-Encoding: chunked\r\n\r\n200000\r\n".encode() + b" " * 0x200000 + b"\r\n"

    async def check() -> None:
        async with serving(machine, HttpLimits()) as port, await anyio.connect_tcp("127.0.0.1", port) as client:
            with library_notices():
                await client.send(too_large)
                assert (await client.receive()).startswith(b"HTTP/1.1 413")
                with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                    await client.send(b"no chunk\r\n")
                    await client.receive()

    run(check)
    assert "Fatal" not in capsys.readouterr().err


def test_a_new_session_of_the_older_era_ends_the_one_that_was_idle_longest(machine: Machine) -> None:
    async def check() -> None:
        async with serving(machine, HttpLimits(sessions=2, session_rest_seconds=0)) as port:
            names = [(await post(port, HELLO))[1] for _ in range(2)]
            # A request that opens no session ends none.
            assert (await post(port, PING))[0] == 400
            # The first is used last, so the second is idle longer.
            assert [(await post(port, PING, name))[0] for name in reversed(names)] == [200, 200]
            names.append((await post(port, HELLO))[1])
            assert [(await post(port, PING, name))[0] for name in names] == [200, 404, 200]

    run(check)


def test_a_session_that_is_opened_with_escapes_counts_like_any_other(machine: Machine) -> None:
    spelt = json.dumps(HELLO).replace('"initialize"', '"\\u0069nitiali\\u007Ae"').encode()
    sent = f"{HEADERS}Connection: close\r\nContent-Length: {len(spelt)}\r\n\r\n".encode() + spelt

    async def check() -> None:
        async with serving(machine, HttpLimits(sessions=1, wait_seconds=0.05)) as port:
            _, name = await post(port, HELLO)
            async with await anyio.connect_tcp("127.0.0.1", port) as client:
                await client.send(sent)
                assert (await client.receive()).startswith(b"HTTP/1.1 503")
            assert (await post(port, PING, name))[0] == 200

    run(check)


def test_a_session_that_was_opened_or_used_a_moment_ago_is_not_ended_for_a_new_one(machine: Machine) -> None:
    async def check() -> None:
        async with serving(machine, HttpLimits(sessions=2, wait_seconds=0.05)) as port:
            names = [(await post(port, HELLO))[1] for _ in range(2)]
            assert (await post(port, PING, names[0]))[0] == 200
            assert (await post(port, HELLO)) == (503, None)
            assert [(await post(port, PING, name))[0] for name in names] == [200, 200]

    run(check)


def test_a_new_session_waits_until_another_one_has_been_idle(machine: Machine) -> None:
    async def check() -> None:
        async with serving(machine, HttpLimits(sessions=1, session_rest_seconds=0.2)) as port:
            names = [(await post(port, HELLO))[1] for _ in range(3)]
            assert [(await post(port, PING, name))[0] for name in names] == [404, 404, 200]

    run(check)


def test_sessions_that_were_never_used_are_ended_before_those_that_were(machine: Machine) -> None:
    async def check() -> None:
        async with serving(machine, HttpLimits(sessions=2, session_rest_seconds=0)) as port:
            _, used = await post(port, HELLO)
            assert (await post(port, PING, used))[0] == 200
            unused = [(await post(port, HELLO))[1] for _ in range(4)]
            assert [(await post(port, PING, name))[0] for name in (used, *unused)] == [200, 404, 404, 404, 200]

    run(check)


def test_too_many_connections_close_those_that_never_had_a_request(machine: Machine) -> None:
    async def check() -> None:
        async with serving(machine, HttpLimits(connections=8)) as port:
            used = HTTPConnection("127.0.0.1", port, timeout=30)
            assert await anyio.to_thread.run_sync(status_on, used) == 400
            idle = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(12)]
            with anyio.fail_after(10), pytest.raises(anyio.EndOfStream):
                await idle[0].receive()
            # The connection that had a request is still the same one, and a new client is served.
            assert await anyio.to_thread.run_sync(status_on, used) == 400
            assert (await post(port, HELLO))[0] == 200
            used.close()
            for one in idle:
                await one.aclose()

    run(check)


def status_on(connection: HTTPConnection) -> int:
    """Return the status of a request on a connection, which stays open."""
    connection.auto_open = connection.sock is None
    connection.request("POST", "/mcp", b"{}", {"content-type": "application/json", "accept": "*/*"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_a_client_that_does_not_read_its_response_is_cut_off(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents/skills", "alpha").parent
    (folder / "large.txt").write_text("x" * 12_000_000)
    uri = "skill://alpha/large.txt"
    headers = {**NEWER, "Mcp_Method": "resources/read", "Mcp_Name": uri}

    async def check() -> None:
        limits = HttpLimits(unread_seconds=0.2)
        async with serving(machine, limits) as port, await anyio.connect_tcp("127.0.0.1", port) as client:
            await client.send(message("resources/read", {"uri": uri, "_meta": META}, **headers))
            # Sending fails when the other side has closed the connection.
            with anyio.fail_after(20), suppress(anyio.BrokenResourceError):
                while True:
                    await client.send(b"x")
                    await anyio.sleep(0.05)

    run(check)


@pytest.mark.parametrize(
    ("open_files", "room"), [(20_000, (4096, 512)), (1024, (512, 256)), (256, (128, 64)), (64, (32, 16))]
)
def test_the_system_s_limit_on_open_files_leaves_room_for_reading_skills(
    open_files: int, room: tuple[int, int]
) -> None:
    connections, backlog = room_within(open_files)
    limits = HttpLimits().within(connections)

    assert (connections, backlog) == room
    assert connections + backlog < open_files
    assert limits.unfinished + limits.waiting + limits.streams < limits.connections == connections


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


def test_senders_have_turns_one_by_one_however_many_requests_one_of_them_sends() -> None:
    served: list[str] = []

    async def nothing() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(places: Places, sender: str) -> None:
        try:
            leave = await places.enter(nothing, 30, sender)
        except RequestRefused as refused:
            served.append(f"{sender} {refused.status}")
            return
        served.append(sender)
        leave()

    async def check() -> None:
        places = Places(1, "REQUESTS_WAITING", 4)
        leave = await places.enter(nothing, 30)
        async with anyio.create_task_group() as group:
            # The line is full with the fifth of one sender, and another one takes the place of the latest of the first.
            for sender in ("eve", "eve", "eve", "eve", "eve", "ada", "ben"):
                group.start_soon(send, places, sender)
                await anyio.wait_all_tasks_blocked()
            leave()

    run(check)
    assert served == ["eve 503", "eve 503", "eve 503", "eve", "ada", "ben", "eve"]


def test_a_sender_has_at_most_half_of_the_places_and_others_do_not_wait_for_it() -> None:
    served: list[str] = []

    async def nothing() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def hold(places: Places, sender: str) -> None:
        await places.enter(nothing, 30, sender)
        served.append(sender)

    async def check() -> None:
        places = Places(4, "REQUESTS_WAITING", 10)
        async with anyio.create_task_group() as group:
            for sender in ("eve", "eve", "eve", "ada", "ben", "cem"):
                group.start_soon(hold, places, sender)
                await anyio.wait_all_tasks_blocked()
            assert served == ["eve", "eve", "ada", "ben"]
            group.cancel_scope.cancel()

    run(check)


@pytest.mark.parametrize(
    ("host", "advice"),
    [
        ("192.0.2.1", r"192\.0\.2\.1:0: .+ \(name an address of this machine, such as 127\.0\.0\.1 or 0\.0\.0\.0\)"),
        ("nowhere.invalid", r"nowhere\.invalid:0: .+ \(name an address of this machine"),
    ],
)
def test_an_address_of_another_machine_is_not_blamed_on_the_port(host: str, advice: str) -> None:
    with pytest.raises(ConfigurationError, match=advice):
        listening_socket(host, 0, backlog=1, hint="choose another port")


def test_a_port_that_is_in_use_is_blamed_on_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port}: .+ \(choose another port\)"):
            listening_socket("127.0.0.1", port, backlog=1, hint="choose another port")
