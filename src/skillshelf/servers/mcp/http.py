"""Serve over HTTP: check Host, Origin and token, and limit connections, requests and sessions."""

import asyncio
import ipaddress
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from hmac import compare_digest
from math import ceil
from typing import Any, Literal, cast

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette

from skillshelf.core.console import note
from skillshelf.core.environment import secret_in
from skillshelf.core.limits import REQUEST_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.server_socket import listening_socket
from skillshelf.core.text import plural
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.connections import (
    ClientConnection,
    ConnectionRoom,
    connection_room,
    watch_connections,
)
from skillshelf.servers.mcp.notices import limit_notice
from skillshelf.servers.mcp.plain_calls import PlainCalls
from skillshelf.servers.mcp.request_line import (
    App,
    BufferedBody,
    HttpLimits,
    Message,
    Places,
    Receive,
    RequestBodies,
    RequestRefused,
    Scope,
    Send,
    WaitingLine,
)
from skillshelf.servers.mcp.server import SkillServer

__all__ = [
    "ENDS_SESSION",
    "PATH",
    "PROBE",
    "SENDER",
    "App",
    "Authorize",
    "HttpLimits",
    "Message",
    "OlderSessions",
    "Receive",
    "RequestGuard",
    "Scope",
    "Send",
    "ServerAccess",
    "address_of",
    "allowed_host",
    "bind",
    "header_in",
    "host_and_port",
    "listen_address",
    "protocol_app",
    "run_web_server",
    "serve_http",
]

PATH = "/mcp"
TOKEN_VARIABLE = "SKILLSHELF_MCP_TOKEN"
_BLOCKED_SECONDS = 0.5
_BACKLOG = 512
_TOKEN_CHARS = 16
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Only a name and a port: user information in an address could imitate a name.
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{0,5})?")
# The method that opens a session of the older era, with letters written as escapes or not.
_INITIALIZE = re.compile(b'"%s"' % b"".join(b"(?:%c|\\\\u00%02x)" % (c, c) for c in b"initialize"), re.IGNORECASE)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(.+)")

Kind = Literal["request", "stream", "probe"]
"""A request that is answered, a stream that stays open for notifications, or a request of an operator."""

Authorize = Callable[[Scope], Awaitable[int]]
"""Raise `RequestRefused` for a request that its sender may not make, else return how many bytes its body may have."""

ENDS_SESSION = "skillshelf.ends_session"
"""The key in a scope of a request that this server sends itself, to end a session of whomever."""


SENDER = "skillshelf.sender"
"""The key in a scope of whoever sends the request, which `authorize` may set: senders have turns one by one."""


PROBE = "skillshelf.probe"
"""The key in a scope that `authorize` sets to True for a request of an operator: it never waits behind others."""


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
    host, port = host_and_port(str(values["http"]), "--http")
    token = _token(values["token_file"], env)
    address = ServerAccess(host, port, token, frozenset(map(allowed_host, values["allow_host"])))
    if token is None and not address.is_local:
        raise ConfigurationError(
            f"{host} can be reached from other machines, so a token is needed (write one to a file and pass it with "
            f"--token-file, or set ${TOKEN_VARIABLE}; or listen on 127.0.0.1)"
        )
    return address


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """Return the host and the port that an option names, or raise `ConfigurationError`."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]").lower()
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"{option} takes HOST:PORT, for example 127.0.0.1:8000, not {text!r}")
    return host, int(port)


def allowed_host(text: str) -> str:
    """Return the name that `--allow-host` gives, or raise `ConfigurationError`."""
    name = _host_in(text)
    if name is None:
        raise ConfigurationError(f"--allow-host takes a host name, for example skills.example, not {text!r}")
    return name


def _token(path: str | None, env: Mapping[str, str]) -> str | None:
    token = env.get(TOKEN_VARIABLE) if path is None else secret_in(path, what="token file")
    if token is not None and (len(token) < _TOKEN_CHARS or not token.isascii() or not token.isprintable()):
        raise ConfigurationError(f"a token has at least {_TOKEN_CHARS} ASCII characters")
    return token


# Sessions of the older protocol ------------------------------------------------------------------


class _OlderSession:
    """A session of the older protocol: who opened it, its running requests and streams, and when it was last used."""

    def __init__(self, sender: Hashable, now: float) -> None:
        self.sender = sender
        self.requests = 0
        self.streams = 0
        self.uses = 0
        self.rests_since = now

    def order(self) -> tuple[bool, bool, float]:
        """Return the key by which sessions are ended: first those that were never used, last those with a stream."""
        return self.uses > 0, self.streams > 0, self.rests_since


class OlderSessions:
    """The sessions of the older protocol: if there are too many, the one that was idle longest is ended.

    It is one of whoever has most of them, so that nobody can end those of others by opening many. Clients of that
    protocol need not end their sessions, and most do not. A session that was opened or used a moment ago is not ended:
    its client is about to send the next request. Then the opening of another one waits.
    """

    def __init__(self, app: App, path: str, limits: HttpLimits) -> None:
        self._app = app
        self._path = path
        self._limits = limits
        self._active: dict[str, _OlderSession] = {}
        self._opening = 0
        self._to_end: list[str] = []
        self.line = WaitingLine("CLIENT_SESSIONS", limits.waiting, self._take)

    def _take(self, sender: Hashable) -> bool:
        """Reserve room for a session of a sender; return False if there is none: others who have fewer keep theirs."""
        if len(self._active) + self._opening >= self._limits.sessions:
            before = anyio.current_time() - self._limits.session_rest_seconds
            held = Counter(one.sender for one in self._active.values())
            idle = (
                name
                for name, one in self._active.items()
                if not one.requests and one.rests_since <= before and held[one.sender] >= held[sender]
            )
            oldest = min(
                idle,
                key=lambda name: (-held[self._active[name].sender], *self._active[name].order()),
                default=None,
            )
            if oldest is None:
                return False
            limit_notice("CLIENT_SESSIONS", "a new client session ends the one that was idle longest")
            del self._active[oldest]
            self._to_end.append(oldest)
        self._opening += 1
        return True

    def _opened(self) -> None:
        self._opening -= 1
        self.line.advance()

    @asynccontextmanager
    async def opening(self, scope: Scope, receive: Receive) -> AsyncIterator[None]:
        """Wait until a session may be opened, and end those that have to go for it."""
        await self.line.wait(receive, self._limits.wait_seconds, give_back=self._opened, sender=scope.get(SENDER))
        try:
            while self._to_end:
                await self._end(self._to_end.pop(), scope)
            yield
        finally:
            self._opened()

    async def _end(self, name: str, scope: Scope) -> None:
        headers = [(key, value) for key, value in scope["headers"] if key == b"host"]
        headers += [(b"mcp-session-id", name.encode("latin-1")), (b"accept", b"application/json, text/event-stream")]
        delete = {**scope, "method": "DELETE", "path": self._path, "headers": headers, ENDS_SESSION: True}
        await self._app(delete, _no_body, _discard)

    @contextmanager
    def using(self, name: str | None, kind: Kind) -> Iterator[None]:
        """Count a running request or stream of a session."""
        session = self._active.get(name or "")
        if session is None:
            yield
            return
        session.uses += 1
        session.requests += kind == "request"
        session.streams += kind == "stream"
        try:
            yield
        finally:
            session.requests -= kind == "request"
            session.streams -= kind == "stream"
            session.rests_since = anyio.current_time()

    def response_sent(self, scope: Scope, message: Message) -> None:
        """Add the session that a response opens, or remove the one that it ends; a refusal does neither."""
        if message["type"] != "http.response.start" or message["status"] >= 400:
            return
        if scope["method"] == "DELETE":
            self._remove(header_in(scope, "mcp-session-id"))
            return
        for key, value in message["headers"]:
            if key.lower() == b"mcp-session-id":
                opened = _OlderSession(scope.get(SENDER), anyio.current_time())
                self._active.setdefault(value.decode("latin-1"), opened)

    def _remove(self, name: str | None) -> None:
        if name is not None and self._active.pop(name, None) is not None:
            self.line.advance()


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard(message: Message) -> None:
    return None


# Serving ------------------------------------------------------------------------------------------


async def serve_http(
    server: SkillServer, address: ServerAccess, bound: socket.socket, limits: HttpLimits = _DEFAULT_LIMITS
) -> None:
    """Serve until cancelled; running requests then get `shutdown_seconds` to end."""
    app = PlainCalls(server, protocol_app(server, limits))
    room = connection_room()
    limits = limits.within(room.connections)
    check = RequestGuard(app, address, limits, lambda: server.running)
    server.call_ended = check.advance
    note(f"serving {plural(len(server.skills.visible), 'skill')} at {address_of(address, bound)}{PATH}")
    await run_web_server(check, check, bound, room, limits, server.subscriptions.close)


def protocol_app(server: SkillServer, limits: HttpLimits) -> Starlette:
    """Return the application that serves the protocol at `PATH`; its lifespan must run."""
    return server.server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=REQUEST_BYTES,
        session_idle_timeout=limits.session_idle_seconds,
        # `OlderSessions` ends idle sessions beyond the limit; each running request may open one more.
        max_sessions=limits.sessions + limits.requests,
        # `RequestGuard` has checked Host and Origin.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


def address_of(address: ServerAccess, bound: socket.socket) -> str:
    """Return the address of a server that listens, as one would type it."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{bound.getsockname()[1]}"


async def run_web_server(
    app: App,
    guard: "RequestGuard",
    bound: socket.socket,
    room: ConnectionRoom,
    limits: HttpLimits,
    before_end: Callable[[], None],
) -> None:
    """Run the web server of an application until cancelled; its guard then refuses and ends requests."""
    web = _WebServer(
        uvicorn.Config(
            app,
            http=cast(Any, partial(ClientConnection, unread_bytes=limits.unread_bytes)),
            ws="none",
            log_config=None,
            log_level="error",
            access_log=False,
            lifespan="on",
            server_header=False,
            # The client is whoever connects: headers about somebody else are read where they are meant to count.
            proxy_headers=False,
            timeout_keep_alive=ceil(limits.idle_seconds),
            timeout_graceful_shutdown=ceil(2 * limits.shutdown_seconds),
            limit_concurrency=limits.connections,
            backlog=room.backlog,
        )
    )
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_cancelled, web, guard, before_end)
        group.start_soon(watch_connections, web.server_state.connections, limits, guard.advance)
        with anyio.CancelScope(shield=True):
            await web.serve(sockets=[bound])
        group.cancel_scope.cancel()


async def _stop_when_cancelled(web: "_WebServer", guard: "RequestGuard", before_end: Callable[[], None]) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        before_end()
        guard.close()
        web.should_exit = True


def bind(address: ServerAccess) -> socket.socket:
    """Return a socket that listens at the address, or raise `ConfigurationError`."""
    # From here on clients wait for the server to start instead of being refused.
    return listening_socket(address.host, address.port, backlog=_BACKLOG, hint="choose another port")


class _WebServer(uvicorn.Server):
    """The web server without its own handling of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the command."""
        yield


class RequestGuard:
    """Passes on a request whose Host, Origin and token are right, within the limits on number and time.

    A request takes a place when its body is there. `running` returns the number of calls that run in the server, of
    which some may be of clients that have left. `authorize` decides who may send what, before a body is read.
    """

    def __init__(
        self,
        app: App,
        address: ServerAccess,
        limits: HttpLimits = _DEFAULT_LIMITS,
        running: Callable[[], int] = lambda: 0,
        authorize: Authorize | None = None,
    ) -> None:
        self._app = app
        self._address = address
        self._authorize = authorize
        self._limits = limits
        self._active: dict[Kind, set[anyio.CancelScope]] = {"request": set(), "stream": set(), "probe": set()}
        self._bodies = RequestBodies(limits)
        self._places: dict[Kind, Places] = {
            "request": Places(limits.requests, "REQUESTS_WAITING", limits.waiting, running),
            "stream": Places(limits.streams, "STREAMS_AT_ONCE", limits.waiting),
            "probe": Places(limits.probes, "PROBES_AT_ONCE", limits.probes),
        }
        self._sessions = OlderSessions(app, PATH, limits)
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            self._check(scope)
            most = REQUEST_BYTES if self._authorize is None else await self._authorize(scope)
            body = await self._bodies.read(receive, header_in(scope, "content-length"), most)
            try:
                await self._admit(scope, body, receive, send)
            finally:
                body.drop()
        except RequestRefused as refused:
            if refused.status is not None:
                await _refuse(send, refused.status, refused.reason, refused.headers)

    def advance(self) -> None:
        """Let those go on who wait for something that comes with time, or with the end of a call."""
        self._places["request"].line.advance()
        self._sessions.line.advance()

    def close(self) -> None:
        """Refuse those who wait or are incomplete and end streams immediately, and running requests soon."""
        self._is_ending = True
        self._bodies.close()
        self._sessions.line.close()
        for places in self._places.values():
            places.line.close()
        for stream in tuple(self._active["stream"]):
            stream.cancel()
        for request in (*self._active["request"], *self._active["probe"]):
            request.deadline = min(request.deadline, anyio.current_time() + self._limits.shutdown_seconds)

    async def _admit(self, scope: Scope, body: BufferedBody, receive: Receive, send: Send) -> None:
        """Serve a complete request when it is its turn."""
        kind, session = _kind_of(scope), header_in(scope, "mcp-session-id")
        opens = session is None and scope["method"] == "POST" and body.contains(_INITIALIZE)
        with self._sessions.using(session, kind):
            async with self._sessions.opening(scope, receive) if opens else nullcontext():
                leave = await self._places[kind].enter(receive, self._limits.wait_seconds, scope.get(SENDER))
                try:
                    await self._serve(scope, body, send, kind, leave)
                finally:
                    leave()

    def _check(self, scope: Scope) -> None:
        """Raise `RequestRefused` for a request with a wrong Host, Origin or token."""
        status, reason = self._refusal(scope)
        if status is not None:
            raise RequestRefused(status, reason)

    def _refusal(self, scope: Scope) -> tuple[int | None, str]:
        """Return the status and the reason of a refusal; the status is None if the request is allowed."""
        host = _host_in(header_in(scope, "host"))
        if not self._is_own_host(host):
            return 421, "this Host is not a name of this server (add one with --allow-host)"
        origin = header_in(scope, "origin")
        if origin is not None and not self._is_allowed_origin(origin, host):
            return 403, "this Origin is not allowed (add one with --allow-host)"
        token = self._address.token
        if token is not None and not _has_token(header_in(scope, "authorization"), token):
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

    async def _serve(self, scope: Scope, receive: Receive, send: Send, kind: Kind, leave: Callable[[], None]) -> None:
        """Pass on a request; one that takes too long gets status 504, or its response is cut off."""
        started, ended = False, False

        async def observe(message: Message) -> None:
            nonlocal started, ended
            if ended:
                # The SDK responds a second time if a session ends while it passes on a notification.
                return
            started, ended = True, message["type"] == "http.response.body" and not message.get("more_body", False)
            self._sessions.response_sent(scope, message)
            # A client that does not read must not keep its place.
            blocked = asyncio.get_running_loop().call_later(_BLOCKED_SECONDS, leave)
            try:
                await send(message)
            finally:
                blocked.cancel()

        with anyio.move_on_after(self._limits.request_seconds if kind != "stream" else None) as limit:
            self._active[kind].add(limit)
            try:
                async with self._ended_when_refused(scope, limit) if kind == "stream" else nullcontext():
                    await self._app(scope, receive, observe)
            finally:
                self._active[kind].discard(limit)
        if limit.cancelled_caught and not started and self._is_ending:
            await _refuse(send, 503, "the server is shutting down")
        elif limit.cancelled_caught and not started:
            await _refuse(send, 504, f"not done after {self._limits.request_seconds} seconds")
        elif limit.cancelled_caught and not ended:
            await send({"type": "http.response.body", "body": b""})

    @asynccontextmanager
    async def _ended_when_refused(self, scope: Scope, limit: anyio.CancelScope) -> AsyncIterator[None]:
        """End a stream when its sender would no longer be allowed to open it: a token may be revoked or expire."""
        if self._authorize is None:
            yield
            return
        watch = asyncio.create_task(self._wait_for_refusal(self._authorize, scope, limit))
        try:
            yield
        finally:
            watch.cancel()

    async def _wait_for_refusal(self, authorize: Authorize, scope: Scope, limit: anyio.CancelScope) -> None:
        try:
            while True:
                await anyio.sleep(self._limits.authorized_seconds)
                await authorize(dict(scope))
        except RequestRefused:
            limit.cancel()


def _kind_of(scope: Scope) -> Kind:
    """Return whether a request asks for a stream, which only GET and one method of the newer era do, or probes."""
    if scope.get(PROBE):
        return "probe"
    is_newer = header_in(scope, "mcp-protocol-version") not in (None, *HANDSHAKE_PROTOCOL_VERSIONS)
    listens = is_newer and header_in(scope, "mcp-method") == "subscriptions/listen"
    return "stream" if scope["path"] == PATH and (scope["method"] == "GET" or listens) else "request"


def header_in(scope: Scope, name: str) -> str | None:
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


async def _refuse(send: Send, status: int, reason: str, given: Mapping[str, str] | None = None) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")] if "content-type" not in (given or {}) else []
    if status != 413 and not given:
        # The rest of a body that is too large or not allowed is skipped: closing would discard the response with it.
        headers.append((b"connection", b"close"))
    if given:
        headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]
    elif status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})
