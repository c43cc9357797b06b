"""Floods against the MCP server over HTTP: what a hostile or a large number of clients does, and who is still served.

python tests/support/floods.py [--share 1.0] runs every flood with its full numbers and prints a table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mcp import Client

SOURCE = str(Path(__file__).parents[2] / "src")
ERAS = ("legacy", "2026-07-28")
GOOD_SECONDS = 10
"""The longest time in which a good client must be served during a flood."""


class Outcome(NamedTuple):
    """One row of the table: what was tried, how often it held, and how long the slowest client took."""

    flood: str
    tried: int
    held: int
    seconds: float
    stderr: str = ""

    @property
    def lost(self) -> int:
        """How often it did not hold."""
        return self.tried - self.held


@contextmanager
def served_skills(folder: Path, *words: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Run the real command over HTTP; yield its address, and a function that stops it and returns what it printed."""
    skill = folder / "home/.agents/skills/alpha"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: alpha\ndescription: The first.\n---\n# Alpha\n")
    (skill / "large.txt").write_text("x" * 900_000)
    (folder / "repo").mkdir()
    places = ["--home", str(folder / "home"), "--cwd", str(folder / "repo")]
    printed = folder / "stderr"
    with printed.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "skillshelf", "mcp", "--http", "127.0.0.1:0", *places, *words],
            env={"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "PYTHONPATH": SOURCE},
            stdin=subprocess.DEVNULL,
            stderr=stderr,
            cwd=folder,
        )

    def stop() -> str:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0, printed.read_text()
        return printed.read_text()

    try:
        yield _address(process, printed), stop
    finally:
        stop()


def _address(process: subprocess.Popen[bytes], printed: Path) -> str:
    until = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < until:
        if found := re.search(r"http://\S+", printed.read_text()):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(printed.read_text())


# Clients ------------------------------------------------------------------------------------------


async def use(url: str, era: str, ready: Callable[[], Awaitable[None]] | None = None) -> float:
    """Open a client, list the tools and load a skill; return the seconds it took."""
    began = time.monotonic()
    async with Client(url, mode=era) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert "skill_load" in tools
        result = await client.call_tool("skill_load", {"name": "alpha"})
        assert "# Alpha" in str(result.content[0])
        taken = time.monotonic() - began
        if ready is not None:
            # Every client stays open until all are there.
            await ready()
            await client.list_tools()
    return taken


async def _served(url: str) -> tuple[int, float]:
    """Return how many of two good clients, one of each era, are served, and the longest time."""
    held, slowest = 0, 0.0
    for era in ERAS:
        began = time.monotonic()
        try:
            await asyncio.wait_for(use(url, era), GOOD_SECONDS)
            held += 1
        except Exception as error:
            print(f"  a good client ({era}) was not served: {_innermost(error)!r}", file=sys.stderr)
        slowest = max(slowest, time.monotonic() - began)
    return held, slowest


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def at_once(url: str, count: int, era: str) -> Outcome:
    """Open clients at one time, each of which stays until all have been served."""
    arrived, everybody = 0, asyncio.Event()

    async def ready() -> None:
        nonlocal arrived
        arrived += 1
        if arrived == count:
            everybody.set()
        await asyncio.wait_for(everybody.wait(), 300)

    began = time.monotonic()
    results = await asyncio.gather(*(use(url, era, ready) for _ in range(count)), return_exceptions=True)
    failed = [_innermost(result) for result in results if isinstance(result, BaseException)]
    for kind in sorted({repr(error)[:200] for error in failed}):
        print(f"  {kind}", file=sys.stderr)
    return Outcome(f"{count} clients at once ({era})", count, count - len(failed), time.monotonic() - began)


# Floods -------------------------------------------------------------------------------------------

HEADERS = (
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Accept: application/json, text/event-stream\r\n"
)


def message(method: str, params: dict[str, Any], **headers: str) -> bytes:
    """Return a whole request over HTTP."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"{HEADERS}{named}Content-Length: {len(body)}\r\n\r\n".encode() + body


NEWER = {"Mcp_Protocol_Version": "2026-07-28"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "flood", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(tool: str, **arguments: str) -> bytes:
    """Return the request for a call of a tool in the newer era."""
    params = {"name": tool, "arguments": arguments, "_meta": META}
    return message("tools/call", params, **NEWER, Mcp_Method="tools/call", Mcp_Name=tool)


HALF_HEADERS = b"POST /mcp HTTP/1.1\r\nHost: local"
HALF_BODY = f"{HEADERS}Content-Length: 100\r\n\r\n{{".encode()
LARGE_BODY = f"{HEADERS}Content-Length: 1000000\r\n\r\n".encode() + b" " * 900_000
TINY_CHUNKS = f"{HEADERS}Transfer-Encoding: chunked\r\n\r\n".encode() + b"1\r\n \r\n" * 100_000
READING = call("skill_read", uri="skill://alpha/large.txt")


@asynccontextmanager
async def held(url: str, count: int, sent: bytes, more: bytes = b"") -> AsyncIterator[None]:
    """Hold so many connections on each of which this was sent, and send more every second; nothing is read."""
    where = urlsplit(url)
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> None:
        _, writer = await asyncio.open_connection(where.hostname, where.port, limit=1024)
        writers.append(writer)
        writer.write(sent)

    async def trickle() -> None:
        while more:
            await asyncio.sleep(1)
            for writer in writers:
                if not writer.is_closing():
                    writer.write(more)

    async with AsyncExitStack() as stack:
        for start in range(0, count, 100):
            await asyncio.gather(*(connect() for _ in range(min(100, count - start))), return_exceptions=True)
        task = asyncio.create_task(trickle())
        stack.callback(task.cancel)
        try:
            yield
        finally:
            for writer in writers:
                writer.transport.abort()


async def flood(url: str, name: str, count: int, sent: bytes, more: bytes = b"") -> Outcome:
    """Serve good clients while a flood lasts: at its beginning, and later (with full numbers after three seconds)."""
    total, slowest = 0, 0.0
    async with held(url, count, sent, more):
        for pause in (0, min(3, count / 100)):
            await asyncio.sleep(pause)
            served, seconds = await _served(url)
            total, slowest = total + served, max(slowest, seconds)
    return Outcome(f"{count} {name}", 4, total, slowest)


async def abandoned(url: str, count: int) -> Outcome:
    """Send calls and leave at once, in both eras, then serve good clients."""
    where = urlsplit(url)
    session = await _open_session(url)
    older = message(
        "tools/call",
        {"name": "skill_load", "arguments": {"name": "alpha"}},
        Mcp_Session_Id=session,
        Mcp_Protocol_Version="2025-11-25",
    )

    async def leave(sent: bytes) -> None:
        _, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(sent)
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.transport.abort()

    calls = [older if number % 2 else call("skill_load", name="alpha") for number in range(count)]
    await asyncio.gather(*map(leave, calls), return_exceptions=True)
    served, seconds = await _served(url)
    return Outcome(f"{count} abandoned calls", 2, served, seconds)


async def _open_session(url: str) -> str:
    where = urlsplit(url)
    info = {"name": "flood", "version": "1"}
    hello = message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(hello)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    writer.close()
    found = re.search(r"mcp-session-id: (\w+)", answer, re.IGNORECASE)
    assert found, answer
    return found[1]


FLOODS: dict[str, Callable[[str, float], Awaitable[Outcome]]] = {
    "headers": lambda url, share: flood(url, "half headers", int(2000 * share), HALF_HEADERS),
    "slow-headers": lambda url, share: flood(url, "slow headers", int(400 * share), HALF_HEADERS, b"x"),
    "bodies": lambda url, share: flood(url, "half bodies", int(2000 * share), HALF_BODY),
    "slow-bodies": lambda url, share: flood(url, "slow bodies", int(600 * share), HALF_BODY, b" "),
    "large-bodies": lambda url, share: flood(url, "large half bodies", int(200 * share), LARGE_BODY),
    "tiny-chunks": lambda url, share: flood(url, "bodies in tiny chunks", int(200 * share), TINY_CHUNKS),
    "unread": lambda url, share: flood(url, "unread responses", int(200 * share), READING),
    "abandoned": lambda url, share: abandoned(url, int(600 * share)),
    "older-clients": lambda url, share: at_once(url, int(500 * share), "legacy"),
    "newer-clients": lambda url, share: at_once(url, int(500 * share), "2026-07-28"),
}


def run_flood(name: str, share: float = 1.0) -> Outcome:
    """Run one flood against a server of its own; a line on standard error that is not one of ours is a loss."""
    with tempfile.TemporaryDirectory() as folder, served_skills(Path(folder)) as (url, stop):
        outcome = asyncio.run(_run(FLOODS[name], url, share))
        began = time.monotonic()
        printed = stop()
        ending = time.monotonic() - began
    strange = [line for line in printed.splitlines() if not line.startswith("skillshelf: ")]
    good = not strange and ending < 8
    return outcome._replace(tried=outcome.tried + 1, held=outcome.held + good, stderr=printed)


async def _run(attack: Callable[[str, float], Awaitable[Outcome]], url: str, share: float) -> Outcome:
    return await attack(url, share)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=1.0, help="the part of the full numbers")
    parser.add_argument("floods", nargs="*", default=list(FLOODS))
    given = parser.parse_args()
    print("| flood | tried | held | lost | slowest |\n|---|---|---|---|---|")
    lost = 0
    for name in given.floods:
        outcome = run_flood(name, given.share)
        lost += outcome.lost
        print(
            f"| {outcome.flood} | {outcome.tried} | {outcome.held} | {outcome.lost} | {outcome.seconds:.1f} s |",
            flush=True,
        )
        for line in outcome.stderr.splitlines()[1:8]:
            print(f"  {line[:200]}", file=sys.stderr)
    sys.exit(lost > 0)


if __name__ == "__main__":
    main()
