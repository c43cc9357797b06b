"""Bound the connections of the web server: their number, those without a request, and responses that nobody reads."""

import asyncio
import resource
from collections.abc import Callable, Iterable
from contextlib import suppress
from heapq import nsmallest
from typing import Any

import anyio
import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillshelf.core.limits import BODY_CHUNKS, CONNECTIONS_AT_ONCE, UNREAD_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.servers.mcp.notices import limit_notice
from skillshelf.servers.mcp.request_line import HttpLimits

__all__ = [
    "ClientConnection",
    "ConnectionRoom",
    "connection_room",
    "cut_off_unread",
    "room_within",
    "watch_connections",
]

_BACKLOG = 512
_OTHER_FILES = 256
_POLL_SECONDS = 0.5
_MOMENT = 1e-3
_CHUNK_BYTES = 64
# Less than by default, so that a round of reading from many connections is short.
_READ_BYTES = 32 * 1024


class ConnectionRoom(NamedTuple):
    """The number of connections that may be open, and of those that wait in the system to be accepted."""

    connections: int
    backlog: int


def connection_room() -> ConnectionRoom:
    """Return the room that the limit of the process on open files leaves; that limit is raised as far as possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_AT_ONCE + _BACKLOG + _OTHER_FILES
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        # The system may have a lower limit of its own.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return room_within(wanted if soft == resource.RLIM_INFINITY else min(wanted, soft))


def room_within(open_files: int) -> ConnectionRoom:
    """Return the room for connections if so many files may be open; the rest is for reading skills."""
    backlog, others = min(_BACKLOG, open_files // 4), min(_OTHER_FILES, open_files // 4)
    return ConnectionRoom(min(CONNECTIONS_AT_ONCE, open_files - backlog - others), backlog)


class _Parser(h11.Connection):
    """Refuses a request whose end a proxy may see elsewhere, and a body in many tiny chunks.

    To parse such a chunk takes as long as to read kilobytes, and everybody waits.
    """

    _chunks = 0
    _bytes = 0

    def next_event(self) -> Any:
        """Return the next part of a request."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            _require_one_end(event)
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_end
            self._bytes += len(event.data)
            if self._chunks > BODY_CHUNKS + self._bytes // _CHUNK_BYTES:
                limit_notice("BODY_CHUNKS", "connections with bodies in many tiny chunks are closed")
                raise h11.RemoteProtocolError("too many tiny chunks")
        return event


def _require_one_end(request: h11.Request) -> None:
    """Raise for a request with a length and chunks, chunks before HTTP/1.1, or another protocol than HTTP/1."""
    names = {name for name, _ in request.headers}
    if not request.http_version.startswith(b"1."):
        raise h11.RemoteProtocolError("not HTTP/1")
    if b"transfer-encoding" in names and (b"content-length" in names or request.http_version == b"1.0"):
        raise h11.RemoteProtocolError("its body may end at two places")


class ClientConnection(H11Protocol):
    """A connection of the web server that knows since when it waits for a request.

    If there are too many connections, those are closed that wait longest: first those that never had a request. The
    limit of the web server itself would refuse everybody.
    """

    def __init__(self, *arguments: Any, unread_bytes: int = UNREAD_BYTES, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unread_bytes = unread_bytes
        self.conn = _Parser(h11.SERVER)
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self.waits_since = self.loop.time()
        self.unread_since: float | None = None

    @property
    def is_waiting(self) -> bool:
        """True if no request of the connection is being served."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Add a connection, for which others may have to go."""
        super().connection_made(transport)
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]
        self.waits_since = self.loop.time()
        if self._most is not None and len(self.connections) > self._most:
            self._make_room(self._most)

    def on_response_complete(self) -> None:
        """Note that the connection waits for the next request."""
        self.waits_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Make room for a response that its client does not take at once: more of them may come in no time."""
        super().pause_writing()
        cut_off_unread(self.connections, self._unread_bytes)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; if a response has begun, it cannot be answered any more."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.cut_off()

    def _make_room(self, most: int) -> None:
        limit_notice("CONNECTIONS_AT_ONCE", "connections without a request are closed, the oldest first")
        others: list[Any] = [one for one in self.connections if one is not self]
        waiting = [one for one in others if one.is_waiting]
        # An eighth of them, so that a flood is not sorted at each of its connections.
        oldest = nsmallest(max(1, most // 8), waiting, key=lambda one: (one.cycle is not None, one.waits_since))
        for one in oldest or [self]:
            one.cut_off()

    def cut_off(self) -> None:
        """Close the connection now, whatever it has not read."""
        self.connections.discard(self)
        self.transport.abort()


async def watch_connections(
    connections: Iterable[Any], limits: HttpLimits, advance: Callable[[], None] = lambda: None
) -> None:
    """Close connections that wait or do not read for too long, until cancelled; call `advance` regularly.

    The web server waits without limit for the headers of a request, and for a client to read a response.
    """
    while True:
        await anyio.sleep(min(_POLL_SECONDS, limits.idle_seconds))
        now = asyncio.get_running_loop().time()
        for one in tuple(connections):
            size = one.transport.get_write_buffer_size()
            one.unread_since = (one.unread_since or now) if size else None
            if size and now - one.unread_since > limits.unread_seconds:
                limit_notice("UNREAD_SECONDS", "responses that their clients do not read are cut off")
                one.cut_off()
            elif not size and one.is_waiting and now - one.waits_since >= limits.idle_seconds:
                one.transport.close()
        cut_off_unread(connections, limits.unread_bytes)
        advance()


def cut_off_unread(connections: Iterable[Any], most: int) -> None:
    """Cut off responses that their clients have not read until the rest has at most so many bytes.

    First those that took most memory for the longest time: a client that reads is not among them.
    """
    sizes = {one: one.transport.get_write_buffer_size() for one in connections}
    total = sum(sizes.values())
    if total <= most:
        return
    limit_notice("UNREAD_BYTES", "responses that their clients do not read are cut off, the largest first")
    now = asyncio.get_running_loop().time()
    for one in sorted(sizes, key=lambda one: sizes[one] * (now - (one.unread_since or now) + _MOMENT), reverse=True):
        if total <= most:
            return
        total -= sizes[one]
        one.cut_off()
