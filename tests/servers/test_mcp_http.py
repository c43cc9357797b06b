"""Over HTTP: the checks of Host, Origin and token, the limits, and what a remote client gets."""

from __future__ import annotations

import json
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


def test_requests_beyond_the_limit_are_told_to_try_again() -> None:
    statuses: list[int] = []
    enough = anyio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await enough.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if "status" in message:
            statuses.append(message["status"])
            enough.set()

    async def check() -> None:
        host_check: Any = RequestGuard(slow, LOCAL)
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"localhost")]}
        async with anyio.create_task_group() as group:
            for _ in range(65):
                group.start_soon(host_check, scope, anyio.sleep_forever, send)

    run(check)
    assert statuses == [503, *[200] * 64]


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


def test_a_client_that_does_not_send_the_whole_body_is_disconnected() -> None:
    received: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        received.append(await receive())

    async def check() -> None:
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"host", b"localhost")]}
        host_check: Any = RequestGuard(app, LOCAL, HttpLimits(body_seconds=0.01))
        await host_check(scope, anyio.sleep_forever, anyio.sleep_forever)

    run(check)
    assert json.dumps(received) == '[{"type": "http.disconnect"}]'
