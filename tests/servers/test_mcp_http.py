"""Over HTTP: the checks of Host, Origin and token, the limits, and what a remote client gets."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from support.mcps import ERAS, ask, command_of, run, text_of
from support.trees import Machine, write_skill

import anyio  # isort: skip
from mcp import Client  # isort: skip
from skillshelf.servers.mcp.http import HttpLimits, RequestGuard, ServerAccess, listen_address

TOKEN = "a-token-of-enough-characters"
LOCAL = ServerAccess("127.0.0.1", 8000, None, frozenset())
DEFAULT_LIMITS = HttpLimits()
OPEN = ServerAccess("0.0.0.0", 8000, TOKEN, frozenset({"skills.example"}))


@contextmanager
def serving(machine: Machine, *words: str, **variables: str) -> Iterator[str]:
    """Run the real command over HTTP and yield its address; it must end with status 0 at a signal."""
    parameters = command_of(machine, "--http", "127.0.0.1:0", *words)
    process = subprocess.Popen(
        [parameters.command, *parameters.args],
        env={**(parameters.env or {}), **variables},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(30) == 0, rest
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize(("words", "indexes"), [((), 1), (("--profile", "mycodeagent"), 0)])
def test_the_search_index_is_complete_before_requests_are_served(
    machine: Machine, words: tuple[str, ...], indexes: int
) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")

    with serving(machine, *words):
        sealed = list(machine.home.rglob("search/*/seal"))

    assert len(sealed) == indexes


@pytest.mark.slow
def test_both_eras_are_served_without_paths_of_the_machine(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")

    async def check(url: str) -> None:
        for era in ERAS.values():
            async with Client(url, mode=era) as client:
                (entry,) = (await ask(client, "skills/list"))["skills"]
                assert entry["uri"] == "skill://alpha/SKILL.md"
                assert 'directory="skill://alpha"' in await text_of(client, "skill_load", name="alpha")

    with serving(machine) as url:
        run(check, url)
        assert status_of(url, b"nonsense") == 400
        assert status_of(url, b"x" * 1_100_000) == 413
        assert status_of(url, b"{}", host="evil.example") == 421
        assert status_of(url, b"{}", origin="https://evil.example") == 403


def status_of(url: str, body: bytes, **headers: str) -> int:
    """Return the status of the response to a request."""
    connection = HTTPConnection(url.removeprefix("http://").partition("/")[0], timeout=30)
    plain = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        connection.request("POST", "/mcp", body, {**plain, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def answered(
    address: ServerAccess,
    *headers: tuple[str, str],
    app: Any = None,
    checks: list[RequestGuard] | None = None,
    limits: HttpLimits = DEFAULT_LIMITS,
) -> int:
    """Return the status of a request with these headers; the check itself is appended to `checks`."""

    async def welcome(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    statuses: list[int] = []

    async def send(message: Any) -> None:
        if "status" in message:
            statuses.append(message["status"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw}
    check = RequestGuard(app or welcome, address, limits)
    if checks is not None:
        checks.append(check)
    anyio.run(check, scope, receive, send)
    return statuses[0]


@pytest.mark.parametrize(
    ("address", "host", "status"),
    [
        *((LOCAL, host, 200) for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST")),
        *(
            (LOCAL, host, 421)
            for host in (
                *("evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", ""),
                *("evil@localhost", "localhost/x", "localhost?x", "localhost#x", "localhost:x", "localhost,evil"),
            )
        ),
        *((OPEN, host, 200) for host in ("10.0.0.1:8000", "skills.example", "localhost")),
        *((OPEN, host, 421) for host in ("evil.example", "skills.example.evil.example", "[", "skills.example@evil")),
    ],
)
def test_only_names_of_this_server_are_answered(address: ServerAccess, host: str, status: int) -> None:
    authorization = ("authorization", f"Bearer {TOKEN}")

    assert answered(address, ("host", host), authorization) == status


def test_a_name_that_is_allowed_may_be_given_with_its_port_and_in_any_case() -> None:
    words = {"http": "127.0.0.1:0", "token_file": None, "allow_host": ["Skills.Example:8443"]}

    assert answered(listen_address(words, {}), ("host", "skills.example")) == 200


def test_a_host_that_is_missing_or_named_twice_is_refused() -> None:
    assert answered(LOCAL) == 421
    assert answered(LOCAL, ("host", "localhost"), ("host", "evil.example")) == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        *((origin, 200) for origin in ("http://localhost:3000", "http://127.0.0.1:8000")),
        *((origin, 403) for origin in ("https://evil.example", "null", "http://localhost.evil.example", "x")),
        *(
            (origin, 403)
            for origin in ("http://[", "http://evil@localhost", "http://localhost/x", "", "http://10.0.0.1")
        ),
    ],
)
def test_only_pages_of_this_machine_are_served(origin: str, status: int) -> None:
    assert answered(LOCAL, ("host", "localhost"), ("origin", origin)) == status


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("10.0.0.1", "http://10.0.0.1:8000", 200),
        ("10.0.0.1", "https://skills.example", 200),
        ("10.0.0.1", "http://10.0.0.2", 403),
        ("10.0.0.1", "http://localhost:3000", 403),
    ],
    ids=["its own", "one that is allowed", "another address", "the machine of the client"],
)
def test_a_server_for_other_machines_takes_only_its_own_pages(host: str, origin: str, status: int) -> None:
    authorization = ("authorization", f"Bearer {TOKEN}")

    assert answered(OPEN, ("host", host), ("origin", origin), authorization) == status


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ((("authorization", f"Bearer {TOKEN}"),), 200),
        ((("authorization", f"bearer {TOKEN}"),), 200),
        ((("authorization", f"Bearer {TOKEN.upper()}"),), 401),
        ((("authorization", f"Basic {TOKEN}"),), 401),
        ((("authorization", f"Bearer {TOKEN}x"),), 401),
        ((("authorization", TOKEN),), 401),
        ((), 401),
        ((("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer other")), 401),
    ],
    ids=["right", "another spelling of bearer", "upper case", "basic", "wrong", "no bearer", "none", "two"],
)
def test_a_client_without_the_token_is_refused(given: tuple[tuple[str, str], ...], status: int) -> None:
    assert answered(OPEN, ("host", "skills.example"), *given) == status


class Conversation:
    """A request to a guard by hand: parts of the body are put in, and the status comes out."""

    def __init__(self, *parts: bytes, complete: bool = True, **headers: str) -> None:
        self.parts = list(parts) or [b"{}"]
        self.complete = complete
        self.status: int | None = None
        self.headers: dict[bytes, bytes] = {}
        self.left = anyio.Event()
        named = {"host": "localhost", **headers}
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
        self.scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw}

    async def receive(self) -> Any:
        if self.parts:
            part = self.parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self.parts) or not self.complete}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if "status" in message:
            self.status, self.headers = message["status"], dict(message["headers"])


class Counter:
    """An application that lets requests end one by one, and knows how many run."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.bodies: list[bytes] = []
        self.ends: list[anyio.Event] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        end = anyio.Event()
        self.order.append(dict(scope["headers"]).get(b"number"))
        self.bodies.append((await receive())["body"])
        self.ends.append(end)
        await end.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def start(group: Any, guard: Any, *conversations: Conversation) -> None:
    """Begin these requests in their order."""
    for one in conversations:
        group.start_soon(guard, one.scope, one.receive, one.send)


def test_requests_beyond_the_limit_wait_in_line_in_the_order_of_their_arrival() -> None:
    async def check() -> None:
        app = Counter()
        guard = RequestGuard(app, LOCAL, HttpLimits(requests=2))
        requests = [Conversation(number=str(number)) for number in range(6)]
        async with anyio.create_task_group() as group:
            start(group, guard, *requests)
            await anyio.wait_all_tasks_blocked()
            assert app.order == [b"0", b"1"]
            for number in range(6):
                app.ends[number].set()
                await anyio.wait_all_tasks_blocked()
        assert app.order == [b"0", b"1", b"2", b"3", b"4", b"5"]
        assert [one.status for one in requests] == [200] * 6

    run(check)


@pytest.mark.parametrize(
    "limits",
    [HttpLimits(requests=1, wait_seconds=0.01), HttpLimits(requests=1, waiting=0)],
    ids=["too long", "too many"],
)
def test_a_request_that_waits_too_long_or_behind_too_many_is_told_to_try_again(limits: HttpLimits) -> None:
    async def check() -> None:
        app = Counter()
        guard = RequestGuard(app, LOCAL, limits)
        first, second = Conversation(), Conversation()
        async with anyio.create_task_group() as group:
            start(group, guard, first)
            await anyio.wait_all_tasks_blocked()
            await guard(second.scope, second.receive, second.send)
            assert (second.status, second.headers[b"retry-after"]) == (503, b"1")
            app.ends[0].set()
        assert (first.status, len(app.order)) == (200, 1)

    run(check)


def test_a_client_that_leaves_is_no_longer_in_line() -> None:
    async def check() -> None:
        app = Counter()
        guard = RequestGuard(app, LOCAL, HttpLimits(requests=1, waiting=1))
        first, left, last = Conversation(number="1"), Conversation(number="2"), Conversation(number="3")
        async with anyio.create_task_group() as group:
            start(group, guard, first, left)
            await anyio.wait_all_tasks_blocked()
            left.left.set()
            await anyio.wait_all_tasks_blocked()
            start(group, guard, last)
            await anyio.wait_all_tasks_blocked()
            app.ends[0].set()
            await anyio.wait_all_tasks_blocked()
            app.ends[1].set()
        assert (app.order, left.status, last.status) == ([b"1", b"3"], None, 200)

    run(check)


def test_when_the_server_ends_those_in_line_are_told_at_once() -> None:
    async def check() -> None:
        guard = RequestGuard(Counter(), LOCAL, HttpLimits(requests=1, shutdown_seconds=0.01))
        requests = [Conversation() for _ in range(20)]
        async with anyio.create_task_group() as group:
            start(group, guard, *requests)
            await anyio.wait_all_tasks_blocked()
            guard.close()
        assert {one.status for one in requests} == {503}

    run(check)


def test_a_request_without_its_body_takes_nobodys_place() -> None:
    async def check() -> None:
        app = Counter()
        guard = RequestGuard(app, LOCAL, HttpLimits(requests=1, body_seconds=0.2))
        halves = [Conversation(b"{", complete=False) for _ in range(20)]
        good = Conversation(b'{"a":', b"1}", number="1")
        async with anyio.create_task_group() as group:
            start(group, guard, *halves, good)
            await anyio.wait_all_tasks_blocked()
            assert (app.order, app.bodies) == ([b"1"], [b'{"a":1}'])
            app.ends[0].set()
        assert ({one.status for one in halves}, good.status) == ({408}, 200)

    run(check)


def test_too_many_unfinished_requests_end_the_slowest_of_themselves() -> None:
    async def check() -> None:
        guard = RequestGuard(Counter(), LOCAL, HttpLimits(unfinished=16))
        slow = [Conversation(b"{", complete=False) for _ in range(16)]
        fast = Conversation(b" " * 100_000, complete=False)
        async with anyio.create_task_group() as group:
            start(group, guard, *slow, fast)
            await anyio.sleep(0.05)
            start(group, guard, Conversation(b"{", complete=False))
            await anyio.sleep(0.05)
            ended = [one.status for one in (*slow, fast)]
            group.cancel_scope.cancel()
        assert (ended.count(408), ended[-1]) == (2, None)

    run(check)


def test_the_memory_of_unfinished_and_waiting_requests_has_one_bound() -> None:
    async def check() -> None:
        app = Counter()
        guard = RequestGuard(app, LOCAL, HttpLimits(requests=1, buffered_bytes=5000))
        large = [Conversation(b" " * 1000, complete=False) for _ in range(5)]
        first, good, huge = Conversation(), Conversation(b" " * 2000), Conversation(b" " * 6000)
        async with anyio.create_task_group() as group:
            start(group, guard, first)
            await anyio.wait_all_tasks_blocked()
            start(group, guard, *large, good)
            await anyio.wait_all_tasks_blocked()
            assert [one.status for one in large].count(408) == 3
            await guard(huge.scope, huge.receive, huge.send)
            assert (huge.status, [one.status for one in large].count(408)) == (503, 3)
            app.ends[0].set()
            await anyio.wait_all_tasks_blocked()
            app.ends[1].set()
            for one in large:
                one.left.set()
        assert (good.status, app.bodies[1]) == (200, b" " * 2000)

    run(check)


def test_a_client_that_does_not_read_its_response_does_not_keep_its_place() -> None:
    async def check() -> None:
        unread, good = Conversation(number="1"), Conversation(number="2")

        async def blocked(message: Any) -> None:
            await anyio.sleep_forever()

        async def welcome(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})

        guard = RequestGuard(welcome, LOCAL, HttpLimits(requests=1))
        async with anyio.create_task_group() as group:
            group.start_soon(guard, unread.scope, unread.receive, blocked)
            await anyio.wait_all_tasks_blocked()
            await guard(good.scope, good.receive, good.send)
            assert good.status == 200
            group.cancel_scope.cancel()

    run(check)


def test_a_second_response_to_a_request_is_dropped() -> None:
    sent: list[Any] = []

    async def respond_twice(scope: Any, receive: Any, send: Any) -> None:
        for status in (202, 500):
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def check() -> None:
        async def send(message: Any) -> None:
            sent.append(message.get("status"))

        request = Conversation()
        await RequestGuard(respond_twice, LOCAL)(request.scope, request.receive, send)

    run(check)
    assert sent == [202, None]


def test_calls_that_run_on_after_their_clients_have_left_count() -> None:
    async def check() -> None:
        app, running = Counter(), [1]
        guard = RequestGuard(app, LOCAL, HttpLimits(requests=1), lambda: running[0])
        request = Conversation()
        async with anyio.create_task_group() as group:
            start(group, guard, request)
            await anyio.wait_all_tasks_blocked()
            assert app.order == []
            running[0] = 0
            guard.advance()
            await anyio.wait_all_tasks_blocked()
            app.ends[0].set()
        assert request.status == 200

    run(check)


def test_a_header_of_a_stream_does_not_lift_the_time_limit_in_the_older_era() -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await anyio.sleep_forever()

    headers = (("host", "localhost"), ("mcp-method", "subscriptions/listen"))
    limits = HttpLimits(request_seconds=0.01)

    assert answered(LOCAL, *headers, app=never, limits=limits) == 504
    assert answered(LOCAL, *headers, ("mcp-protocol-version", "2025-11-25"), app=never, limits=limits) == 504


def test_a_request_that_takes_too_long_is_ended() -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await anyio.sleep_forever()

    assert answered(LOCAL, ("host", "localhost"), app=never, limits=HttpLimits(request_seconds=0.01)) == 504


def test_a_request_that_is_not_done_when_the_server_ends_gets_a_status() -> None:
    checks: list[RequestGuard] = []

    async def never(scope: Any, receive: Any, send: Any) -> None:
        checks[0].close()
        await anyio.sleep_forever()

    assert (
        answered(LOCAL, ("host", "localhost"), app=never, checks=checks, limits=HttpLimits(shutdown_seconds=0.01))
        == 503
    )


def test_a_client_that_does_not_send_the_whole_body_in_time_is_refused() -> None:
    async def check() -> None:
        app, request = Counter(), Conversation(b"{", complete=False)
        guard = RequestGuard(app, LOCAL, HttpLimits(body_seconds=0.01))
        await guard(request.scope, request.receive, request.send)
        assert (app.order, request.status, request.headers[b"connection"]) == ([], 408, b"close")

    run(check)


def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    async def check() -> None:
        for request in (Conversation(content_length="1048577"), Conversation(*[b" " * 2**20] * 2)):
            app = Counter()
            await RequestGuard(app, LOCAL)(request.scope, request.receive, request.send)
            assert (app.order, request.status) == ([], 413)

    run(check)
