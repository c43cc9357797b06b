"""Hold requests over HTTP until they can run: those without a complete body, and those that wait in line.

An unfinished request takes nobody's place: if there are too many, the slowest of them are ended. A complete request
waits for its turn for a limited time.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from heapq import nlargest, nsmallest
from math import ceil
from typing import Any, NoReturn

import anyio

from skillshelf.core.limits import (
    AUTHORIZED_SECONDS,
    BODY_SECONDS,
    BUFFERED_BYTES,
    CLIENT_IDLE_SECONDS,
    CLIENT_SESSIONS,
    CONNECTIONS_AT_ONCE,
    PROBES_AT_ONCE,
    REQUEST_BYTES,
    REQUEST_SECONDS,
    REQUEST_WAIT_SECONDS,
    REQUESTS_AT_ONCE,
    REQUESTS_WAITING,
    SESSION_REST_SECONDS,
    SILENT_SECONDS,
    STREAMS_AT_ONCE,
    UNFINISHED_AT_ONCE,
    UNREAD_BYTES,
    UNREAD_SECONDS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.servers.mcp.notices import limit_notice

__all__ = [
    "App",
    "BufferedBody",
    "HttpLimits",
    "Message",
    "Places",
    "Receive",
    "RequestBodies",
    "RequestRefused",
    "Scope",
    "Send",
    "WaitingLine",
]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# What a request is credited with before it has sent anything: a client may send headers and body apart.
_CREDIT_BYTES = 4096
_MOMENT = 1e-6
_STOPPING = "the server is shutting down"


class HttpLimits(NamedTuple):
    """The limits on time and number of requests and connections."""

    idle_seconds: float = SILENT_SECONDS
    body_seconds: float = BODY_SECONDS
    request_seconds: float = REQUEST_SECONDS
    shutdown_seconds: float = 3
    requests: int = REQUESTS_AT_ONCE
    streams: int = STREAMS_AT_ONCE
    probes: int = PROBES_AT_ONCE
    sessions: int = CLIENT_SESSIONS
    session_idle_seconds: float = CLIENT_IDLE_SECONDS
    session_rest_seconds: float = SESSION_REST_SECONDS
    waiting: int = REQUESTS_WAITING
    wait_seconds: float = REQUEST_WAIT_SECONDS
    unfinished: int = UNFINISHED_AT_ONCE
    buffered_bytes: int = BUFFERED_BYTES
    unread_bytes: int = UNREAD_BYTES
    unread_seconds: float = UNREAD_SECONDS
    connections: int = CONNECTIONS_AT_ONCE
    authorized_seconds: float = AUTHORIZED_SECONDS

    def within(self, connections: int) -> "HttpLimits":
        """Return the limits for a process that can have only so many connections open."""
        if connections >= self.connections:
            return self
        return self._replace(
            connections=connections,
            unfinished=min(self.unfinished, connections // 8),
            waiting=min(self.waiting, connections // 2),
            streams=min(self.streams, connections // 4),
        )


class RequestRefused(Exception):
    """A request that is not served: the status and the reason, or no status if the client has left.

    `headers` are sent with it, in place of those that belong to the status.
    """

    def __init__(self, status: int | None, reason: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers or {}


# Bodies -------------------------------------------------------------------------------------------


class BufferedBody:
    """The body of a request, complete or not. As a receiver it yields the body once, then what the client does."""

    def __init__(self, receive: Receive, bodies: "RequestBodies") -> None:
        self.began = anyio.current_time()
        self.size = 0
        self.limit = anyio.CancelScope()
        self.is_ended = False
        self._bodies = bodies
        self._receive = receive
        self._parts: list[bytes] | None = []

    def add(self, part: bytes) -> None:
        """Keep a part."""
        assert self._parts is not None
        self._parts.append(part)
        self.size += len(part)

    def contains(self, pattern: re.Pattern[bytes]) -> bool:
        """Return True if a pattern is found in the body, which has not been passed on yet."""
        return pattern.search(b"".join(self._parts or ())) is not None

    def speed(self, now: float) -> float:
        """Return how many bytes came in a second."""
        return (self.size + _CREDIT_BYTES) / (now - self.began + _MOMENT)

    def burden(self, now: float) -> float:
        """Return how much memory the body took for how long."""
        return self.size * (now - self.began + _MOMENT)

    def end(self) -> None:
        """Stop waiting for the rest."""
        self.is_ended = True
        self.limit.cancel()

    def drop(self) -> bytes:
        """Return the whole body, which is then no longer kept."""
        parts, self._parts = self._parts or [], None
        self._bodies.release(self.size)
        self.size = 0
        return b"".join(parts)

    async def __call__(self) -> Message:
        """Return the body, or later that the client has left."""
        if self._parts is not None:
            return {"type": "http.request", "body": self.drop(), "more_body": False}
        return await self._receive()


class RequestBodies:
    """The bodies that are incomplete, and the memory of these and of those that wait in line."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._unfinished: dict[BufferedBody, None] = {}
        self._bytes = 0
        self._is_closed = False

    def release(self, size: int) -> None:
        """Count bytes that are no longer kept."""
        self._bytes -= size

    async def read(self, receive: Receive, announced: str | None = None, most: int = REQUEST_BYTES) -> BufferedBody:
        """Return the complete body of a request, or raise `RequestRefused`; its headers announced a length."""
        if announced is not None and announced.isdecimal() and int(announced[:20]) > most:
            raise _too_large(most)
        if self._is_closed:
            raise RequestRefused(503, _STOPPING)
        body = BufferedBody(receive, self)
        self._unfinished[body] = None
        if len(self._unfinished) > self._limits.unfinished:
            self._end_slowest()
        try:
            body.limit.deadline = body.began + self._limits.body_seconds
            with body.limit:
                await self._read(body, receive, most)
                return body
            self._refuse_unfinished(body)
        except BaseException:
            body.drop()
            raise
        finally:
            self._unfinished.pop(body, None)

    async def _read(self, body: BufferedBody, receive: Receive, most: int) -> None:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestRefused(None)
            if body.is_ended:
                self._refuse_unfinished(body)
            part = message.get("body", b"")
            body.add(part)
            self._bytes += len(part)
            if body.size > most:
                raise _too_large(most)
            if self._bytes > self._limits.buffered_bytes:
                self._end_largest(body, is_complete=not message.get("more_body", False))
                if body.is_ended:
                    self._refuse_unfinished(body)
            if not message.get("more_body", False):
                return

    def close(self) -> None:
        """Refuse all requests that are incomplete, and everybody else from now on."""
        self._is_closed = True
        for body in tuple(self._unfinished):
            self._end(body)

    def _refuse_unfinished(self, body: BufferedBody) -> NoReturn:
        if self._is_closed:
            raise RequestRefused(503, _STOPPING)
        if body.is_ended:
            raise RequestRefused(408, "too many requests are incomplete, and this one was among the slowest; try again")
        raise RequestRefused(408, f"the request was not complete after {self._limits.body_seconds} seconds")

    def _end_slowest(self) -> None:
        """End an eighth of the unfinished requests, so that a flood is not sorted at each of its connections."""
        now = anyio.current_time()
        limit_notice("UNFINISHED_AT_ONCE", "the slowest incomplete requests are ended")
        # The newest, which is the last, has had no time yet.
        older = list(self._unfinished)[:-1]
        for body in nsmallest(max(1, self._limits.unfinished // 8), older, key=lambda body: body.speed(now)):
            self._end(body)

    def _end_largest(self, new: BufferedBody, *, is_complete: bool) -> None:
        """End unfinished requests until there is room; if they do not suffice, the new one alone is refused."""
        now, most = anyio.current_time(), self._limits.buffered_bytes
        limit_notice("BUFFERED_BYTES", "the largest incomplete requests are ended")
        others = [body for body in self._unfinished if not is_complete or body is not new]
        if sum(body.size for body in others) < self._bytes - most:
            raise RequestRefused(503, "too many requests are waiting; try again")
        for body in nlargest(len(others), others, key=lambda body: body.burden(now)):
            # An eighth below the bound, so that a flood is not sorted at each of its parts.
            if self._bytes <= most - most // 8:
                return
            self._end(body)

    def _end(self, body: BufferedBody) -> None:
        del self._unfinished[body]
        body.drop()
        body.end()


def _too_large(most: int) -> RequestRefused:
    return RequestRefused(413, f"a message has at most {most} bytes")


# Waiting ------------------------------------------------------------------------------------------


class WaitingLine:
    """Requests that wait for something: each sender has one turn after the other, in the order of arrival.

    So somebody who sends thousands of requests keeps others waiting for one of them. `take` takes what a sender waits
    for and returns True, or returns False if there is none for it at the moment; `advance` must be called when that may
    have changed.
    """

    def __init__(self, name: str, most: int, take: Callable[[Hashable], bool]) -> None:
        self._name = name
        self._most = most
        self._take = take
        # The lines of senders; the first one is next.
        self._lines: OrderedDict[Hashable, dict[anyio.Event, None]] = OrderedDict()
        self._waiting = 0
        self._crowded: set[anyio.Event] = set()
        self._is_closed = False

    async def wait(
        self, receive: Receive, seconds: float, *, give_back: Callable[[], None], sender: Hashable = None
    ) -> None:
        """Return when it is this request's turn, or raise `RequestRefused`.

        `give_back` undoes `take` for a client that left at the very moment at which its turn came.
        """
        if self._is_closed:
            raise RequestRefused(503, _STOPPING)
        if not self._lines and self._take(sender):
            return
        if self._waiting >= self._most:
            self._make_room(sender)
        turn = anyio.Event()
        self._lines.setdefault(sender, {})[turn] = None
        self._waiting += 1
        # Those before may wait for something that is there for this sender.
        self.advance()
        has_turn = False
        try:
            has_turn = await self._wait(turn, receive, seconds)
        finally:
            was_called = not self._remove(turn, sender) and not self._is_closed and turn not in self._crowded
            self._crowded.discard(turn)
            if was_called and not has_turn:
                give_back()

    def _make_room(self, sender: Hashable) -> None:
        """Refuse the latest request of whoever has most of them in line, or this one if it is from there."""
        limit_notice(self._name, "requests are refused with status 503")
        most = max(self._lines, key=lambda one: len(self._lines[one]), default=sender)
        if most == sender or len(self._lines[most]) <= len(self._lines.get(sender, ())) + 1:
            raise RequestRefused(503, self._full)
        turn = next(reversed(self._lines[most]))
        self._remove(turn, most)
        self._crowded.add(turn)
        turn.set()

    @property
    def _full(self) -> str:
        return f"{self._most} requests are waiting already; try again"

    def _remove(self, turn: anyio.Event, sender: Hashable) -> bool:
        """Take a request out of its line; return False if it is not there any more."""
        line = self._lines.get(sender, {})
        if turn not in line:
            return False
        del line[turn]
        self._waiting -= 1
        if not line:
            del self._lines[sender]
        return True

    async def _wait(self, turn: anyio.Event, receive: Receive, seconds: float) -> bool:
        """Return True when it is this request's turn; raise `RequestRefused` otherwise."""
        has_left = False

        async def leave_with_client(scope: anyio.CancelScope) -> None:
            nonlocal has_left
            while (await receive())["type"] != "http.disconnect":
                pass
            has_left = True
            scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(leave_with_client, group.cancel_scope)
            with anyio.move_on_after(seconds):
                await turn.wait()
            group.cancel_scope.cancel()
        if has_left:
            raise RequestRefused(None)
        if self._is_closed:
            raise RequestRefused(503, _STOPPING)
        if turn in self._crowded:
            raise RequestRefused(503, self._full)
        if not turn.is_set():
            limit_notice("REQUEST_WAIT_SECONDS", "requests are refused with status 503")
            raise RequestRefused(503, f"too many requests for {seconds:g} seconds; try again")
        return True

    def advance(self) -> None:
        """Let those whose turn it is go on."""
        while not self._is_closed:
            sender, line = next(((one, line) for one, line in self._lines.items() if self._take(one)), (None, None))
            if line is None:
                return
            turn = next(iter(line))
            self._remove(turn, sender)
            if sender in self._lines:
                self._lines.move_to_end(sender)
            turn.set()

    def close(self) -> None:
        """Refuse those who wait, and everybody else from now on."""
        self._is_closed = True
        for line in self._lines.values():
            for turn in line:
                turn.set()
        self._lines.clear()
        self._waiting = 0


class Places:
    """Places for a number of requests at one time; a sender that is known has at most half of them.

    `running` counts work that goes on after its client has left.
    """

    def __init__(self, most: int, line: str, waiting: int, running: Callable[[], int] = lambda: 0) -> None:
        self._most = most
        self._running = running
        self._taken: Counter[Hashable] = Counter()
        self.line = WaitingLine(line, waiting, self._take)

    def _take(self, sender: Hashable) -> bool:
        is_full = max(self._taken.total(), self._running()) >= self._most
        if is_full or (sender is not None and self._taken[sender] >= ceil(self._most / 2)):
            return False
        self._taken[sender] += 1
        return True

    def _give_back(self, sender: Hashable) -> None:
        self._taken[sender] -= 1
        if not self._taken[sender]:
            del self._taken[sender]
        self.line.advance()

    async def enter(self, receive: Receive, seconds: float, sender: Hashable = None) -> Callable[[], None]:
        """Take a place when it is this request's turn; return the function that gives it back, once."""
        give_back = partial(self._give_back, sender)
        await self.line.wait(receive, seconds, give_back=give_back, sender=sender)
        held = [give_back]

        def leave() -> None:
            with suppress(IndexError):
                held.pop()()

        return leave
