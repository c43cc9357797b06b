"""Connections and sessions to places for those who come: nobody keeps a place that is not used."""

import ipaddress
import os
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from hmac import compare_digest
from typing import Any, Literal, NamedTuple

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.limits import (
    BODY_SECONDS,
    REQUEST_BYTES,
    REQUEST_SECONDS,
    REQUESTS_AT_ONCE,
    SILENT_SECONDS,
    STREAMS_AT_ONCE,
)
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.server import SkillServer

__all__ = [
    "App",
    "ConnectionLimits",
    "Listening",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "bind",
    "listening_for",
    "send_away_the_silent",
    "serve_http",
]


_LOOK_SECONDS = 0.5

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def send_away_the_silent(connections: Iterable[Any], seconds: float) -> None:
    """Close each connection that has no whole request to answer for so long, until cancelled.

    The web server waits for the headers of a request as long as a client likes, and a few hundred clients that never
    send theirs would take every place.
    """
    since: dict[tuple[Any, Any], float] = {}
    while True:
        await anyio.sleep(min(_LOOK_SECONDS, seconds))
        now = anyio.current_time()
        silent = [(one, one.cycle) for one in connections if one.cycle is None or one.cycle.response_complete]
        since = {wait: since.get(wait, now) for wait in silent}
        for (connection, _), began in since.items():
            if now - began >= seconds:
                connection.transport.close()


class ConnectionLimits:
    """The sessions of the older era: a client that comes when all are taken gets the place of one that rests.

    Such a client need not say when it leaves, and most do not.
    """

    def __init__(self, app: App, path: str, most: int) -> None:
        self._app = app
        self._path = path
        self._most = most
        self._at_work: dict[str, int] = {}

    async def make_room(self, scope: Scope) -> None:
        """End the session that rests longest, if there are more than there may be; never the newest."""
        older = list(self._at_work)[:-1] if len(self._at_work) > self._most else []
        resting = next((name for name in older if not self._at_work[name]), None)
        if resting is None:
            return
        self.forget(resting)
        headers = [(key, value) for key, value in scope["headers"] if key == b"host"]
        headers += [(b"mcp-session-id", resting.encode("latin-1")), (b"accept", b"application/json, text/event-stream")]
        goodbye = {**scope, "method": "DELETE", "path": self._path, "headers": headers}
        await self._app(goodbye, _no_body, _nobody_hears)

    def begin(self, name: str | None) -> None:
        """A request of a session comes in."""
        if name in self._at_work:
            # Put last: the first is the one that was used longest ago.
            self._at_work[name] = self._at_work.pop(name) + 1

    def end(self, name: str | None) -> None:
        """A request of a session was served."""
        if name in self._at_work:
            self._at_work[name] -= 1

    def opened(self, message: Message) -> None:
        """An answer goes out; it may open a session."""
        if message["type"] == "http.response.start" and message["status"] < 400:
            for key, value in message["headers"]:
                if key.lower() == b"mcp-session-id":
                    self._at_work.setdefault(value.decode("latin-1"), 0)

    def forget(self, name: str | None) -> None:
        """A session is no more."""
        if name is not None:
            self._at_work.pop(name, None)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nobody_hears(message: Message) -> None:
    return None


PATH = "/mcp"
TOKEN_VARIABLE = "SKILLSHELF_MCP_TOKEN"
_TOKEN_CHARS = 16
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SHUTDOWN_SECONDS = 3
_WAITING = 128
# Nothing but a name and a port: what else an address may hold says who asks, not who is asked.
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{0,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(.+)")

Kind = Literal["request", "stream"]
"""What is answered and done, and what stays open for announcements."""

_MOST: Mapping[Kind, int] = {"request": REQUESTS_AT_ONCE, "stream": STREAMS_AT_ONCE}


class Listening(NamedTuple):
    """Where a server listens, who may come, and by which names."""

    host: str
    port: int
    token: str | None
    names: frozenset[str]

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in _LOOPBACK


# What the user asks for ---------------------------------------------------------------------------


def listening_for(values: Mapping[str, Any], env: Mapping[str, str]) -> Listening:
    """What the words of the command ask for; an error says what is missing."""
    host, port = _host_and_port(str(values["http"]))
    token = _token(values["token_file"], env)
    listening = Listening(host, port, token, frozenset(map(_allowed, values["allow_host"])))
    if token is None and not listening.is_local:
        raise ConfigurationError(
            f"{host} can be reached from other machines, so a token is needed: put one into a file and name it with "
            f"--token-file, or set ${TOKEN_VARIABLE}; without one, listen at 127.0.0.1"
        )
    return listening


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]").lower()
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"--http takes HOST:PORT, for example 127.0.0.1:8000, not {text!r}")
    return host, int(port)


def _allowed(text: str) -> str:
    name = _host_in(text)
    if name is None:
        raise ConfigurationError(f"--allow-host takes the name of a machine, for example skills.example, not {text!r}")
    return name


def _token(path: str | None, env: Mapping[str, str]) -> str | None:
    if path is None:
        token = env.get(TOKEN_VARIABLE)
    else:
        try:
            data = files.read_file(os.path.abspath(path), limit=4096, links="follow")
        except OSError as error:
            raise ConfigurationError(f"the token file {path} cannot be read: {error.strerror}") from None
        token = (data or b"").decode("utf-8", "replace").strip()
    if token is not None and (len(token) < _TOKEN_CHARS or not token.isascii() or not token.isprintable()):
        raise ConfigurationError(f"a token has at least {_TOKEN_CHARS} ASCII characters")
    return token


# Serving ------------------------------------------------------------------------------------------


async def serve_http(server: SkillServer, listening: Listening, bound: socket.socket) -> None:
    """Serve until cancelled; what is under way then has a moment to end."""
    app = server.server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=REQUEST_BYTES,
        # The door ends those that are more; only so many can come in at the same moment.
        max_sessions=STREAMS_AT_ONCE + REQUESTS_AT_ONCE,
        # The door below has looked at Host and Origin.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    door = HostCheck(app, listening)
    web = _Web(
        uvicorn.Config(
            door,
            http="h11",
            ws="none",
            log_level="error",
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_keep_alive=SILENT_SECONDS,
            timeout_graceful_shutdown=2 * _SHUTDOWN_SECONDS,
            limit_concurrency=2 * (REQUESTS_AT_ONCE + STREAMS_AT_ONCE),
        )
    )
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    note(f"serving {len(server.library.told)} skills at http://{host}:{bound.getsockname()[1]}{PATH}")
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_cancelled, web, server, door)
        group.start_soon(send_away_the_silent, web.server_state.connections, SILENT_SECONDS)
        with anyio.CancelScope(shield=True):
            await web.serve(sockets=[bound])
        group.cancel_scope.cancel()


async def _stop_when_cancelled(web: "_Web", server: SkillServer, door: "HostCheck") -> None:
    try:
        await anyio.sleep_forever()
    finally:
        server.listening.close()
        door.close()
        web.should_exit = True


def bind(listening: Listening) -> socket.socket:
    """A socket at the address; an error says why there can be none."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listening.host, listening.port))
        # From here on who comes is kept waiting and not turned away.
        bound.listen(_WAITING)
    except OSError as error:
        bound.close()
        where = f"{listening.host}:{listening.port}"
        raise ConfigurationError(f"cannot listen at {where}: {error.strerror or error}; take another port") from None
    return bound


class _Web(uvicorn.Server):
    """The web server, which leaves the signals to who started it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing to catch here."""
        yield


class HostCheck:
    """Lets a request in if it is meant for this server, comes from who may ask, and is not one too many."""

    def __init__(self, app: App, listening: Listening) -> None:
        self._app = app
        self._listening = listening
        self._at_work: dict[Kind, set[anyio.CancelScope]] = {"request": set(), "stream": set()}
        self._sessions = ConnectionLimits(app, PATH, STREAMS_AT_ONCE)
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = _Headers(scope["headers"])
        status, reason = self._refusal(headers)
        stays = scope["method"] == "GET" or headers.one("mcp-method") == "subscriptions/listen"
        kind: Kind = "stream" if stays else "request"
        if status is None and len(self._at_work[kind]) >= _MOST[kind]:
            status, reason = 503, f"more than {_MOST[kind]} at one time; try again"
        if status is not None:
            await _refuse(send, status, reason)
            return
        session = headers.one("mcp-session-id")
        self._sessions.begin(session)
        try:
            await self._serve(scope, receive, send, kind)
        finally:
            self._sessions.end(session)
            if scope["method"] == "DELETE":
                self._sessions.forget(session)
        await self._sessions.make_room(scope)

    def close(self) -> None:
        """End what stays open at once, and what is under way soon."""
        self._is_ending = True
        for limit in tuple(self._at_work["stream"]):
            limit.cancel()
        for limit in tuple(self._at_work["request"]):
            limit.deadline = min(limit.deadline, anyio.current_time() + _SHUTDOWN_SECONDS)

    def _refusal(self, headers: "_Headers") -> tuple[int | None, str]:
        """The status and the reason of a no; no status for a yes."""
        host = _host_in(headers.one("host"))
        if not self._is_own(host):
            return 421, "this Host is not the name of this server; --allow-host adds a name"
        origin = headers.one("origin")
        if origin is not None and not self._is_from_here(origin, host):
            return 403, "this Origin may not ask; --allow-host adds a name"
        token = self._listening.token
        if token is not None and not _has_token(headers.one("authorization"), token):
            return 401, "a bearer token is needed"
        return None, ""

    def _is_own(self, host: str | None) -> bool:
        """Whether a client names this server, and no name that somebody made lead here."""
        if host in _LOOPBACK or host in self._listening.names:
            return True
        return not self._listening.is_local and (host == self._listening.host or _is_number(host or ""))

    def _is_from_here(self, origin: str, host: str | None) -> bool:
        """Whether a page comes from this server, from a name that is allowed, or from the machine that both are on."""
        found = _ORIGIN.fullmatch(origin.lower())
        named = _host_in(found[1]) if found else None
        if named is None:
            return False
        return named == host or named in self._listening.names or (self._listening.is_local and named in _LOOPBACK)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, kind: Kind) -> None:
        """Let a request through; one that takes too long is answered so, or cut off."""
        started, ended = False, False

        async def sending(message: Message) -> None:
            nonlocal started, ended
            started, ended = True, message["type"] == "http.response.body" and not message.get("more_body", False)
            self._sessions.opened(message)
            await send(message)

        with anyio.move_on_after(REQUEST_SECONDS if kind == "request" else None) as limit:
            self._at_work[kind].add(limit)
            try:
                await self._app(scope, _Patient(receive), sending)
            finally:
                self._at_work[kind].discard(limit)
        if limit.cancelled_caught and not started and self._is_ending:
            await _refuse(send, 503, "the server ends")
        elif limit.cancelled_caught and not started:
            await _refuse(send, 504, f"not done after {REQUEST_SECONDS} seconds")
        elif limit.cancelled_caught and not ended:
            await send({"type": "http.response.body", "body": b""})


class _Patient:
    """What a client sends, as long as it does not take too long over all of it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_complete = False
        self._until = anyio.current_time() + BODY_SECONDS

    async def __call__(self) -> Message:
        """The next part; a client that does not send it has left."""
        if self._is_complete:
            return await self._receive()
        with anyio.move_on_after(max(0.0, self._until - anyio.current_time())):
            message = await self._receive()
            self._is_complete = not message.get("more_body", False)
            return message
        return {"type": "http.disconnect"}


class _Headers:
    """The headers of a request."""

    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        self._raw = raw

    def one(self, name: str) -> str | None:
        """The value of a header; of one that comes twice, something that nobody is called."""
        values = [value.decode("latin-1") for key, value in self._raw if key.decode("latin-1").lower() == name]
        return values[0] if len(values) == 1 else None if not values else ","


def _host_in(authority: str | None) -> str | None:
    """The name in a Host header or an address; None where there is anything else."""
    found = _AUTHORITY.fullmatch((authority or "").lower())
    return found[1].strip("[]") if found else None


def _has_token(given: str | None, token: str) -> bool:
    scheme, _, rest = (given or "").partition(" ")
    return scheme.lower() == "bearer" and compare_digest(rest.strip().encode("utf-8", "replace"), token.encode())


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _refuse(send: Send, status: int, reason: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})
