"""Serve over HTTP: check Host, Origin and token, and limit connections, requests and sessions."""

import ipaddress
import os
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from hmac import compare_digest
from math import ceil
from typing import Any, Literal, NamedTuple

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.limits import (
    BODY_SECONDS,
    CLIENT_IDLE_SECONDS,
    CLIENT_SESSIONS,
    REQUEST_BYTES,
    REQUEST_SECONDS,
    REQUESTS_AT_ONCE,
    SILENT_SECONDS,
    STREAMS_AT_ONCE,
)
from skillshelf.core.text import plural
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.server import SkillServer

__all__ = [
    "App",
    "HttpLimits",
    "Message",
    "OlderSessions",
    "Receive",
    "Scope",
    "Send",
    "ServerAccess",
    "bind",
    "close_idle_connections",
    "listen_address",
    "serve_http",
]

PATH = "/mcp"
TOKEN_VARIABLE = "SKILLSHELF_MCP_TOKEN"
_POLL_SECONDS = 0.5
_TOKEN_CHARS = 16
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_BACKLOG = 128
# Only a name and a port: user information in an address could imitate a name.
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{0,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(.+)")

Kind = Literal["request", "stream"]
"""A request that is answered, or a stream that stays open for notifications."""

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class HttpLimits(NamedTuple):
    """The limits on time and number of requests and connections."""

    idle_seconds: float = SILENT_SECONDS
    body_seconds: float = BODY_SECONDS
    request_seconds: float = REQUEST_SECONDS
    shutdown_seconds: float = 3
    requests: int = REQUESTS_AT_ONCE
    streams: int = STREAMS_AT_ONCE
    sessions: int = CLIENT_SESSIONS
    session_idle_seconds: float = CLIENT_IDLE_SECONDS


class ServerAccess(NamedTuple):
    """The address of a server, its token, and its additional host names."""

    host: str
    port: int
    token: str | None
    names: frozenset[str]

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach it."""
        return self.host in _LOOPBACK


_DEFAULT_LIMITS = HttpLimits()

# Options ------------------------------------------------------------------------------------------


def listen_address(values: Mapping[str, Any], env: Mapping[str, str]) -> ServerAccess:
    """Return the address that the options of the command name, or raise `ConfigurationError`."""
    host, port = _host_and_port(str(values["http"]))
    token = _token(values["token_file"], env)
    address = ServerAccess(host, port, token, frozenset(map(_allowed_host, values["allow_host"])))
    if token is None and not address.is_local:
        raise ConfigurationError(
            f"{host} can be reached from other machines, so a token is needed (write one to a file and pass it with "
            f"--token-file, or set ${TOKEN_VARIABLE}; or listen on 127.0.0.1)"
        )
    return address


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]").lower()
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"--http takes HOST:PORT, for example 127.0.0.1:8000, not {text!r}")
    return host, int(port)


def _allowed_host(text: str) -> str:
    name = _host_in(text)
    if name is None:
        raise ConfigurationError(f"--allow-host takes a host name, for example skills.example, not {text!r}")
    return name


def _token(path: str | None, env: Mapping[str, str]) -> str | None:
    if path is None:
        token = env.get(TOKEN_VARIABLE)
    else:
        try:
            data = files.read_file(os.path.abspath(path), limit=4096, links="follow")
        except OSError as error:
            raise ConfigurationError(f"token file {path} cannot be read: {error.strerror}") from None
        token = (data or b"").decode("utf-8", "replace").strip()
    if token is not None and (len(token) < _TOKEN_CHARS or not token.isascii() or not token.isprintable()):
        raise ConfigurationError(f"a token has at least {_TOKEN_CHARS} ASCII characters")
    return token


# Connections and sessions -------------------------------------------------------------------------


async def close_idle_connections(connections: Iterable[Any], seconds: float) -> None:
    """Close each connection without a complete request for this long, until cancelled.

    The web server waits without limit for the headers of a request, so a few hundred clients that never send theirs
    would use up all connections.
    """
    since: dict[tuple[Any, Any], float] = {}
    while True:
        await anyio.sleep(min(_POLL_SECONDS, seconds))
        now = anyio.current_time()
        idle = [(one, one.cycle) for one in connections if one.cycle is None or one.cycle.response_complete]
        since = {connection: since.get(connection, now) for connection in idle}
        for (connection, _), began in since.items():
            if now - began >= seconds:
                connection.transport.close()


class OlderSessions:
    """The sessions of the older protocol: if there are too many, the one that was idle longest is ended.

    Clients of that protocol need not end their sessions, and most do not.
    """

    def __init__(self, app: App, path: str, most: int) -> None:
        self._app = app
        self._path = path
        self._most = most
        self._active: dict[str, int] = {}

    async def end_idle_session(self, scope: Scope) -> None:
        """End the session that was idle longest if there are too many, but never the newest."""
        older = list(self._active)[:-1] if len(self._active) > self._most else []
        idle = next((name for name in older if not self._active[name]), None)
        if idle is None:
            return
        self.remove(idle)
        headers = [(key, value) for key, value in scope["headers"] if key == b"host"]
        headers += [(b"mcp-session-id", idle.encode("latin-1")), (b"accept", b"application/json, text/event-stream")]
        delete = {**scope, "method": "DELETE", "path": self._path, "headers": headers}
        await self._app(delete, _no_body, _discard)

    def request_started(self, name: str | None) -> None:
        """Count a running request of a session."""
        if name in self._active:
            # Moved to the end: the first is the one that was used longest ago.
            self._active[name] = self._active.pop(name) + 1

    def request_ended(self, name: str | None) -> None:
        """Stop counting a request of a session."""
        if name in self._active:
            self._active[name] -= 1

    def response_sent(self, message: Message) -> None:
        """Add the session that a response opens, if it does."""
        if message["type"] == "http.response.start" and message["status"] < 400:
            for key, value in message["headers"]:
                if key.lower() == b"mcp-session-id":
                    self._active.setdefault(value.decode("latin-1"), 0)

    def remove(self, name: str | None) -> None:
        """Remove a session that was ended."""
        if name is not None:
            self._active.pop(name, None)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard(message: Message) -> None:
    return None


# Serving ------------------------------------------------------------------------------------------


async def serve_http(
    server: SkillServer, address: ServerAccess, bound: socket.socket, limits: HttpLimits = _DEFAULT_LIMITS
) -> None:
    """Serve until cancelled; running requests then get `shutdown_seconds` to end."""
    app = server.server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=REQUEST_BYTES,
        session_idle_timeout=limits.session_idle_seconds,
        # `OlderSessions` ends idle sessions beyond the limit; each running request may open one more.
        max_sessions=limits.sessions + limits.requests,
        # `HostCheck` has checked Host and Origin.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    check = RequestGuard(app, address, limits)
    web = _WebServer(
        uvicorn.Config(
            check,
            http="h11",
            ws="none",
            log_level="error",
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_keep_alive=ceil(limits.idle_seconds),
            timeout_graceful_shutdown=ceil(2 * limits.shutdown_seconds),
            limit_concurrency=2 * (limits.requests + limits.streams),
        )
    )
    host = f"[{address.host}]" if ":" in address.host else address.host
    note(f"serving {plural(len(server.skills.visible), 'skill')} at http://{host}:{bound.getsockname()[1]}{PATH}")
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_cancelled, web, server, check)
        group.start_soon(close_idle_connections, web.server_state.connections, limits.idle_seconds)
        with anyio.CancelScope(shield=True):
            await web.serve(sockets=[bound])
        group.cancel_scope.cancel()


async def _stop_when_cancelled(web: "_WebServer", server: SkillServer, check: "RequestGuard") -> None:
    try:
        await anyio.sleep_forever()
    finally:
        server.subscriptions.close()
        check.close()
        web.should_exit = True


def bind(address: ServerAccess) -> socket.socket:
    """Return a socket that listens at the address, or raise `ConfigurationError`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
        # From here on clients wait for the server to start instead of being refused.
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        where = f"{address.host}:{address.port}"
        raise ConfigurationError(f"cannot listen on {where}: {error.strerror or error} (choose another port)") from None
    return bound


class _WebServer(uvicorn.Server):
    """The web server without its own handling of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the command."""
        yield


class RequestGuard:
    """Passes on a request whose Host, Origin and token are right, within the limits on number and time."""

    def __init__(self, app: App, address: ServerAccess, limits: HttpLimits = _DEFAULT_LIMITS) -> None:
        self._app = app
        self._address = address
        self._limits = limits
        self._active: dict[Kind, set[anyio.CancelScope]] = {"request": set(), "stream": set()}
        self._sessions = OlderSessions(app, PATH, limits.sessions)
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        status, reason = self._refusal(scope)
        is_stream = scope["method"] == "GET" or _header(scope, "mcp-method") == "subscriptions/listen"
        kind: Kind = "stream" if is_stream else "request"
        most = self._limits.streams if is_stream else self._limits.requests
        if status is None and len(self._active[kind]) >= most:
            status, reason = 503, f"more than {most} at one time; try again"
        if status is not None:
            await _refuse(send, status, reason)
            return
        session = _header(scope, "mcp-session-id")
        self._sessions.request_started(session)
        try:
            await self._serve(scope, receive, send, kind)
        finally:
            self._sessions.request_ended(session)
            if scope["method"] == "DELETE":
                self._sessions.remove(session)
        await self._sessions.end_idle_session(scope)

    def close(self) -> None:
        """End streams immediately, and running requests soon."""
        self._is_ending = True
        for stream in tuple(self._active["stream"]):
            stream.cancel()
        for request in tuple(self._active["request"]):
            request.deadline = min(request.deadline, anyio.current_time() + self._limits.shutdown_seconds)

    def _refusal(self, scope: Scope) -> tuple[int | None, str]:
        """Return the status and the reason of a refusal; the status is None if the request is allowed."""
        host = _host_in(_header(scope, "host"))
        if not self._is_own_host(host):
            return 421, "this Host is not a name of this server (add one with --allow-host)"
        origin = _header(scope, "origin")
        if origin is not None and not self._is_allowed_origin(origin, host):
            return 403, "this Origin is not allowed (add one with --allow-host)"
        token = self._address.token
        if token is not None and not _has_token(_header(scope, "authorization"), token):
            return 401, "a bearer token is needed"
        return None, ""

    def _is_own_host(self, host: str | None) -> bool:
        """Return True if the Host names this server, not another name that resolves to it (DNS rebinding)."""
        if host in _LOOPBACK or host in self._address.names:
            return True
        return not self._address.is_local and (host == self._address.host or _is_ip_address(host or ""))

    def _is_allowed_origin(self, origin: str, host: str | None) -> bool:
        """Return True if a page comes from this server, from an allowed name, or from the machine that both run on."""
        found = _ORIGIN.fullmatch(origin.lower())
        named = _host_in(found[1]) if found else None
        if named is None:
            return False
        return named == host or named in self._address.names or (self._address.is_local and named in _LOOPBACK)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, kind: Kind) -> None:
        """Pass on a request; one that takes too long gets status 504, or its response is cut off."""
        started, ended = False, False

        async def observe(message: Message) -> None:
            nonlocal started, ended
            started, ended = True, message["type"] == "http.response.body" and not message.get("more_body", False)
            self._sessions.response_sent(message)
            await send(message)

        with anyio.move_on_after(self._limits.request_seconds if kind == "request" else None) as limit:
            self._active[kind].add(limit)
            try:
                await self._app(scope, _TimedBody(receive, self._limits.body_seconds), observe)
            finally:
                self._active[kind].discard(limit)
        if limit.cancelled_caught and not started and self._is_ending:
            await _refuse(send, 503, "the server is shutting down")
        elif limit.cancelled_caught and not started:
            await _refuse(send, 504, f"not done after {self._limits.request_seconds} seconds")
        elif limit.cancelled_caught and not ended:
            await send({"type": "http.response.body", "body": b""})


class _TimedBody:
    """Receives the body of a request within a time limit for all of it."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._is_complete = False
        self._until = anyio.current_time() + seconds

    async def __call__(self) -> Message:
        """Return the next part, or a disconnect if the client does not send it in time."""
        if self._is_complete:
            return await self._receive()
        with anyio.move_on_after(max(0.0, self._until - anyio.current_time())):
            message = await self._receive()
            self._is_complete = not message.get("more_body", False)
            return message
        return {"type": "http.disconnect"}


def _header(scope: Scope, name: str) -> str | None:
    """Return the value of a header; for a repeated header, a value that matches nothing."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key.decode("latin-1").lower() == name]
    return values[0] if len(values) == 1 else None if not values else ","


def _host_in(authority: str | None) -> str | None:
    """Return the name in a Host header or an origin, or None if it has other parts."""
    found = _AUTHORITY.fullmatch((authority or "").lower())
    return found[1].strip("[]") if found else None


def _has_token(given: str | None, token: str) -> bool:
    scheme, _, rest = (given or "").partition(" ")
    return scheme.lower() == "bearer" and compare_digest(rest.strip().encode("utf-8", "replace"), token.encode())


def _is_ip_address(host: str) -> bool:
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
