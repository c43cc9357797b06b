"""Attacks on a team server over raw connections: slow, vanishing, silent and malformed clients, and an honest one.

Everything is a table: what a client sends, what it does then, and what the server may answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = [
    "HELD",
    "LEAVING",
    "ODD",
    "Held",
    "Odd",
    "Target",
    "Usage",
    "WrongTokens",
    "answer_to",
    "held",
    "honest",
    "leave",
    "usage_of",
]

Way = Literal["reset", "close", "half-close"]
WAYS: Sequence[Way] = ("reset", "close", "half-close")
_WINDOW = 1024
_ACCEPTS = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
_NEWER = f"{_ACCEPTS}mcp-protocol-version: 2026-07-28\r\n"
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "attack", "version": "1"},
}


class Target(NamedTuple):
    """A server under attack: its port, the token of somebody who may do everything, and a skill with a large file."""

    port: int
    token: str
    skill: str = "large"

    def head(self, method: str, path: str, more: str = "", version: str = "1.1") -> bytes:
        """The line and headers of a request with the token; `more` are further headers, each with its end."""
        return (
            f"{method} {path} HTTP/{version}\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self.token}\r\n{more}\r\n"
        ).encode()

    def post(self, path: str, body: bytes, more: str = "") -> bytes:
        """A whole request with a body."""
        return self.head("POST", path, f"{more}content-length: {len(body)}\r\n") + body

    def called(self, method: str, more: str = "", **params: object) -> bytes:
        """A whole request of the Model Context Protocol."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}})
        return self.post("/mcp", body.encode(), f"{_NEWER}mcp-method: {method}\r\n{more}")

    @property
    def search(self) -> bytes:
        """A search over the API."""
        return self.head("GET", "/api/v1/search?q=review+the+code")

    @property
    def artifact(self) -> bytes:
        """A request for a large answer."""
        return self.head("GET", f"/api/v1/skills/{self.skill}/versions/latest/artifact")

    @property
    def stream(self) -> bytes:
        """A request for a stream that stays open."""
        return self.called("subscriptions/listen", notifications={"toolsListChanged": True})


# Connections that are held ------------------------------------------------------------------------


class Held(NamedTuple):
    """Connections that are held open: how many, what each sends at first and then every second; none of them reads."""

    clients: int
    sent: Callable[[Target], bytes]
    trickle: bytes = b""


def _upload(target: Target) -> bytes:
    return target.head("POST", "/api/v1/releases", "content-length: 1000000\r\n") + b"PK"


def _push(target: Target) -> bytes:
    return target.head("POST", f"/api/v1/journal?stream={'ab' * 16}", "content-length: 1000000\r\n") + b"{"


def _chunked(target: Target, begin: bytes = b"") -> bytes:
    return target.head("POST", "/api/v1/releases", "transfer-encoding: chunked\r\n") + begin


HELD: Mapping[str, Held] = {
    "silent": Held(2000, lambda _: b""),
    "half a request line": Held(1000, lambda _: b"GET /api", b"x"),
    "half a header": Held(1000, lambda _: b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: b", b"x"),
    "one more header a second": Held(500, lambda _: b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n", b"a: b\r\n"),
    "one byte of an upload a second": Held(700, _upload, b"x"),
    "one byte of a journal a second": Held(700, _push, b"x"),
    "half uploads of 900 kB": Held(200, lambda target: _upload(target) + b"x" * 900_000),
    "chunks without an end": Held(700, _chunked, b"1\r\nx\r\n"),
    "tiny chunks": Held(200, lambda target: _chunked(target, b"1\r\nx\r\n" * 100_000)),
    "the header of a chunk without an end": Held(200, lambda target: _chunked(target, b"1;" + b"x" * 200_000), b"x"),
    "waiting for 100 Continue": Held(
        500, lambda target: target.head("POST", "/api/v1/releases", "expect: 100-continue\r\ncontent-length: 9\r\n")
    ),
    "idle after a search": Held(2000, lambda target: target.search),
    "unread releases": Held(300, lambda target: target.head("GET", "/api/v1/releases") * 4),
    "unread index": Held(300, lambda target: target.head("GET", "/.well-known/agent-skills/index.json") * 4),
    "unread archives": Held(60, lambda target: target.artifact),
    "unread pages": Held(300, lambda target: target.head("GET", "/skills") * 20),
    "unread streams": Held(300, lambda target: target.stream),
    "pipelined": Held(100, lambda target: target.head("GET", "/health") * 1000),
    "pipelined searches": Held(100, lambda target: target.search * 50),
    "100,000 headers": Held(20, lambda target: target.head("GET", "/health", "a: b\r\n" * 100_000)),
    "tokens of 1 MB": Held(50, lambda target: target._replace(token="x" * 1_000_000).search),
}


@asynccontextmanager
async def held(target: Target, attack: Held, share: float = 1.0) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Hold the connections of an attack, or a share of them, until the end of the block."""
    count, writers = max(1, int(attack.clients * share)), list[asyncio.StreamWriter]()

    async def connect() -> None:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(sock=await _connected(target.port), limit=_WINDOW)
            writers.append(writer)
            writer.write(attack.sent(target))

    async def trickle() -> None:
        while attack.trickle:
            await asyncio.sleep(1)
            for writer in writers:
                if not writer.is_closing():
                    writer.write(attack.trickle)

    for start in range(0, count, 100):
        await asyncio.gather(*(connect() for _ in range(min(100, count - start))))
    task = asyncio.create_task(trickle())
    try:
        yield writers
    finally:
        task.cancel()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(task, *(writer.wait_closed() for writer in writers), return_exceptions=True)


async def _connected(port: int) -> socket.socket:
    """Return a connection whose client takes hardly anything before it reads."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    except OSError:
        sock.close()
        raise
    return sock


class WrongTokens:
    """Clients that try tokens, each another one, as fast as they are answered; `tried` counts the answers."""

    def __init__(self, target: Target, clients: int) -> None:
        self._target = target
        self._clients = clients
        self.tried: dict[int, int] = {}

    async def _try(self, number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._target.port)
        try:
            for place in range(1_000_000):
                token = f"sks_default_{number:021d}{place:022d}"
                writer.write(self._target._replace(token=token).search)
                status = await _status_of(reader)
                self.tried[status] = self.tried.get(status, 0) + 1
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Try until the end of the block."""
        tasks = [asyncio.create_task(self._try(number)) for number in range(self._clients)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _status_of(reader: asyncio.StreamReader) -> int:
    """Return the status of the next answer on a connection, and read it to its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    if size := int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0):
        await reader.readexactly(size)
    else:
        await reader.readuntil(b"0\r\n\r\n")
    return int(head.split()[1])


# Clients that leave -------------------------------------------------------------------------------

LEAVING: Mapping[str, Callable[[Target], bytes]] = {
    "before a byte": lambda _: b"",
    "in the request line": lambda _: b"GET /api/v1/ski",
    "in the headers": lambda _: b"GET /api/v1/skills HTTP/1.1\r\nhost: 127.",
    "in an upload": lambda target: _upload(target) + b"x" * 100_000,
    "in a journal": _push,
    "in a chunk": lambda target: _chunked(target, b"ffff\r\nx"),
    "during a search": lambda target: target.search,
    "during a page": lambda target: target.head("GET", "/skills"),
    "during a large answer": lambda target: target.artifact,
    "during a call": lambda target: target.called("tools/list"),
    "during a stream": lambda target: target.stream,
    "after an upload that is no archive": lambda target: target.post("/api/v1/releases", b"no archive"),
    "after a journal that is none": lambda target: target.post(f"/api/v1/journal?stream={'ab' * 16}", b"x\n"),
    "between two requests": lambda target: target.search + b"GET /api",
}


def leave(target: Target, sent: bytes, way: Way) -> None:
    """Send something, and leave in a way."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", target.port), timeout=10) as sock:
        sock.sendall(sent)
        if way == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif way == "half-close":
            sock.shutdown(socket.SHUT_WR)
            sock.recv(100)


# Malformed requests -------------------------------------------------------------------------------


class Odd(NamedTuple):
    """A request that is odd, and the statuses that it may get; 0 stands for a connection that is closed."""

    sent: Callable[[Target], bytes]
    statuses: tuple[int, ...]


_BOTH = "content-length: 4\r\ntransfer-encoding: chunked\r\n"

ODD: Mapping[str, Odd] = {
    "HTTP/1.0 with a Host": Odd(lambda t: t.head("GET", "/api/v1/skills", version="1.0"), (200,)),
    "HTTP/1.0 without a Host": Odd(lambda _: b"GET /health HTTP/1.0\r\n\r\n", (421,)),
    "HTTP/1.1 without a Host": Odd(lambda _: b"GET /health HTTP/1.1\r\n\r\n", (400,)),
    "two Hosts": Odd(lambda t: t.head("GET", "/health", "host: 127.0.0.1\r\n"), (400, 421)),
    "HTTP/2.0": Odd(lambda t: t.head("GET", "/health", version="2.0"), (400,)),
    "HTTP/0.9": Odd(lambda _: b"GET /health\r\n\r\n", (400,)),
    "the preface of HTTP/2": Odd(lambda _: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400,)),
    "TLS": Odd(lambda _: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200 + b"\r\n\r\n", (400,)),
    "an absolute target": Odd(lambda t: t.head("GET", "http://127.0.0.1/health"), (200, 400, 404)),
    "an absolute target elsewhere": Odd(lambda t: t.head("GET", "http://evil.example/health"), (400, 404, 421)),
    "CONNECT": Odd(lambda t: t.head("CONNECT", "evil.example:443"), (400, 404, 405)),
    "OPTIONS *": Odd(lambda t: t.head("OPTIONS", "*"), (400, 404, 405)),
    "a lower-case method": Odd(lambda t: t.head("get", "/api/v1/skills"), (400, 404, 405)),
    "two lengths that differ": Odd(lambda t: t.head("POST", "/api/v1/releases", "content-length: 3\r\n" * 2)[:-2]
        + b"content-length: 4\r\n\r\nabcd", (400,)),
    "a negative length": Odd(lambda t: t.head("POST", "/api/v1/releases", "content-length: -1\r\n"), (400,)),
    "a length that is no number": Odd(lambda t: t.head("POST", "/api/v1/releases", "content-length: 0x4\r\n"), (400,)),
    "a length of 10^30": Odd(lambda t: t.head("POST", "/api/v1/releases", f"content-length: 1{'0' * 30}\r\n"),
        (400, 413)),
    "a length and chunks": Odd(lambda t: t.head("POST", "/api/v1/releases", _BOTH) + b"0\r\n\r\n", (400,)),
    "chunks and a length": Odd(
        lambda t: t.head("POST", "/api/v1/releases", "transfer-encoding: chunked\r\ncontent-length: 4\r\n")
        + b"0\r\n\r\n", (400,)),
    "another transfer coding": Odd(lambda t: t.head("POST", "/api/v1/releases", "transfer-encoding: gzip\r\n"),
        (400, 501)),
    "two transfer codings": Odd(lambda t: t.head("POST", "/api/v1/releases", "transfer-encoding: gzip, chunked\r\n"),
        (400, 501)),
    "a folded header": Odd(lambda t: t.head("GET", "/health", "x-a: b\r\n c\r\n"), (200, 400)),
    "a blank before the colon": Odd(lambda t: t.head("GET", "/health", "x-a : b\r\n"), (400,)),
    "a NUL in a header": Odd(lambda t: t.head("GET", "/health", "x-a: \0\r\n"), (400,)),
    "bare line feeds": Odd(lambda t: t.head("GET", "/health").replace(b"\r\n", b"\n"), (200, 400)),
    "chunks in HTTP/1.0": Odd(
        lambda t: t.head("POST", "/api/v1/releases", "transfer-encoding: chunked\r\n", "1.0") + b"0\r\n\r\n", (400,)),
    "a chunk size of 100 digits": Odd(lambda t: _chunked(t, b"f" * 100 + b"\r\nx"), (400,)),
    "a chunk that is longer than it says": Odd(lambda t: _chunked(t, b"1\r\nxxxx\r\n0\r\n\r\n"), (400,)),
    "10,000 trailers": Odd(lambda t: _chunked(t, b"0\r\n" + b"a: b\r\n" * 10_000 + b"\r\n"), (400, 0)),
    "20,000 headers": Odd(lambda t: t.head("GET", "/health", "a: b\r\n" * 20_000), (400, 431, 0)),
    "a target of 1 MB": Odd(lambda t: t.head("GET", f"/{'x' * 1_000_000}"), (400, 414, 0)),
    "a token of 10 kB": Odd(lambda t: t._replace(token="x" * 10_000).search, (401,)),
    "a token of 1 MB": Odd(lambda t: t._replace(token="x" * 1_000_000).search, (400, 431, 0)),
    "an upgrade": Odd(lambda t: t.head("GET", "/health", "connection: upgrade\r\nupgrade: websocket\r\n"), (200, 400)),
    "an upgrade to HTTP/2": Odd(
        lambda t: t.head("GET", "/health", "connection: upgrade, http2-settings\r\nupgrade: h2c\r\n"), (200, 400)),
    "an unknown expectation": Odd(lambda t: t.head("GET", "/health", "expect: 200-ok\r\n"), (200, 417)),
    "100 Continue with a body": Odd(
        lambda t: t.head("POST", "/api/v1/releases", "expect: 100-continue\r\ncontent-length: 1\r\n") + b"x",
        (100, 400, 422)),
    "gzip where none is taken": Odd(lambda t: t.post("/api/v1/releases", b"\x1f\x8b", "content-encoding: gzip\r\n"),
        (400, 422)),
    "a journal that is no gzip": Odd(
        lambda t: t.post(f"/api/v1/journal?stream={'ab' * 16}", b"no gzip", "content-encoding: gzip\r\n"), (400,)),
    "a body for a page": Odd(lambda t: t.head("GET", "/skills", "content-length: 5\r\n") + b"hello", (413, 200)),
    "a body that is too large": Odd(lambda t: t.head("POST", "/api/v1/releases", "content-length: 999999999\r\n"),
        (413,)),
}  # fmt: skip


def answer_to(target: Target, sent: bytes, seconds: float = 10.0) -> tuple[int, bytes]:
    """Return the status and all bytes of the first answer to a request; 0 if the connection was closed without one."""
    data = b""
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", target.port), timeout=seconds) as sock:
        with suppress(ConnectionError):
            sock.sendall(sent)
        while b"\r\n\r\n" not in data and (part := sock.recv(65536)):
            data += part
    return (int(data.split()[1]) if data.startswith(b"HTTP/1.1 ") else 0), data


# The honest client --------------------------------------------------------------------------------


async def honest(target: Target, times: int) -> list[float]:
    """Search, and fetch a page, on new connections; return the seconds of each, and fail if one is not answered."""
    seconds = []
    for number in range(times):
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        writer.write(target.search if number % 2 else target.head("GET", "/skills"))
        line = await asyncio.wait_for(reader.readline(), 30)
        assert line.startswith(b"HTTP/1.1 200"), line
        seconds.append(time.perf_counter() - began)
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
    return sorted(seconds)


class Usage(NamedTuple):
    """What a process uses: open files, threads, and memory in MiB."""

    files: int
    threads: int
    memory: float


def usage_of(pid: int) -> Usage:
    """Return what a process uses now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {name: value.split()[0] for name, _, value in (line.partition(":\t") for line in lines) if value.split()}
    return Usage(len(os.listdir(f"/proc/{pid}/fd")), int(values["Threads"]), int(values["VmRSS"]) / 1024)
