"""Serve the Model Context Protocol to many callers: one server for each catalog, sessions of one caller each."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.abc
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from skillshelf.servers.mcp.http import ENDS_SESSION, App, HttpLimits, Message, Receive, Scope, Send, protocol_app
from skillshelf.servers.mcp.plain_calls import PlainCalls
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.team.catalogs import CatalogKey, TeamCatalogs, key_of
from skillshelf.servers.team.metrics import Metrics
from skillshelf.servers.team.values import Caller

__all__ = ["CALLER", "McpEndpoint"]

CALLER = "skillshelf.caller"
"""The key of the caller in the scope of a request."""

_METHODS = frozenset(
    {
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/directory/read",
        "prompts/list",
        "prompts/get",
        "skills/list",
        "skills/get",
        "completion/complete",
        "subscriptions/listen",
    }
)


class _Served:
    """The server of one catalog, until it is stopped."""

    def __init__(self, server: SkillServer, app: App) -> None:
        self.server = server
        self.app = app
        self.stop = anyio.Event()


class McpEndpoint:
    """The application at `/mcp`. Its `run` must be active while it serves."""

    def __init__(self, catalogs: TeamCatalogs, metrics: Metrics, limits: HttpLimits) -> None:
        self._catalogs = catalogs
        self._metrics = metrics
        self._limits = limits
        self._served: dict[CatalogKey, _Served] = {}
        self._opening = anyio.Lock()
        self.search_turn = anyio.CapacityLimiter(1)
        self.started = anyio.Event()
        self._group: anyio.abc.TaskGroup | None = None
        self._token: Any = None
        # Whose catalog each session is of, and who opened it.
        self._sessions: OrderedDict[str, tuple[CatalogKey, AuthenticatedUser]] = OrderedDict()
        self.call_ended: Callable[[], None] = lambda: None
        catalogs.closed = self._closed
        metrics.watch("skillshelf_sessions", lambda: len(self._sessions))

    @property
    def running(self) -> int:
        """The number of calls that run."""
        return sum(served.server.running for served in self._served.values())

    def close(self) -> None:
        """End the streams of all clients."""
        for served in self._served.values():
            served.server.subscriptions.close()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Keep the servers running until cancelled."""
        self._token = anyio.lowlevel.current_token()
        async with anyio.create_task_group() as group:
            self._group = group
            self.started.set()
            task_status.started()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of a caller."""
        name = _session_in(scope)
        if scope.get(ENDS_SESSION):
            known = self._sessions.pop(name or "", None)
            served = self._served.get(known[0]) if known is not None else None
            if known is not None and served is not None:
                await served.app({**scope, "user": known[1]}, receive, send)
            return
        caller: Caller = scope[CALLER]
        key, user = key_of(caller), _user_of(caller)
        served = await self._server_of(key)

        async def observe(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                if scope["method"] == "DELETE":
                    self._sessions.pop(name or "", None)
                else:
                    self._note_session(message, key, user)
            await send(message)

        await served.app({**scope, "user": user}, receive, observe)

    def _note_session(self, message: Message, key: CatalogKey, user: AuthenticatedUser) -> None:
        for header, value in message["headers"]:
            if header.lower() == b"mcp-session-id":
                self._sessions[value.decode("latin-1")] = key, user
                self._sessions.move_to_end(value.decode("latin-1"))
        while len(self._sessions) > self._limits.sessions + self._limits.requests:
            self._sessions.popitem(last=False)

    async def _server_of(self, key: CatalogKey) -> _Served:
        """Return the server of a catalog, which is started now if it is not running."""
        # Also for one that runs: it is in use.
        skills = self._catalogs.opened(key)
        served = self._served.get(key)
        if served is not None and served.server.skills is skills:
            return served
        skills = await anyio.to_thread.run_sync(self._catalogs.skills, key)
        async with self._opening:
            served = self._served.get(key)
            if served is not None and served.server.skills is skills:
                return served
            assert self._group is not None
            server = SkillServer(skills, show_paths=False, subject_of=_subject_of, search_turn=self.search_turn)
            server.call_ended = self._ended
            server.server.middleware.append(self._count_method)
            app = PlainCalls(server, protocol_app(server, self._limits), self._count)
            served = self._served[key] = _Served(server, app)
            await self._group.start(self._keep_running, key, served)
            return served

    def _ended(self) -> None:
        self.call_ended()

    async def _keep_running(self, key: CatalogKey, served: _Served, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with served.server.server.session_manager.run():
            task_status.started()
            await served.stop.wait()
        if self._served.get(key) is served:
            del self._served[key]

    def _closed(self, key: CatalogKey) -> None:
        """Stop the server of a catalog that is no longer kept; a thread may call this."""
        served = self._served.get(key)
        if served is not None and self._token is not None:
            anyio.from_thread.run_sync(served.stop.set, token=self._token)

    async def announce_changes(self, seconds: float = 2.0) -> None:
        """Tell clients when the skills that they see have changed, until cancelled."""
        told: dict[CatalogKey, Any] = {}
        while True:
            await anyio.sleep(seconds)
            # The catalogs of servers that were stopped are not kept.
            told = {key: visible for key, visible in told.items() if key in self._served}
            for key, served in list(self._served.items()):
                visible = await anyio.to_thread.run_sync(_visible, served.server)
                if told.get(key, visible) is not visible:
                    await served.server.announce(set(), catalog=True)
                told[key] = visible

    async def server_of(self, key: CatalogKey) -> SkillServer:
        """Return the server of a catalog, running."""
        return (await self._server_of(key)).server

    def _count(self, method: str) -> None:
        self._metrics.add("skillshelf_tool_calls_total", method=method if method in _METHODS else "other")

    async def _count_method(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        self._count(ctx.method)
        return await call_next(ctx)


def _visible(server: SkillServer) -> Any:
    return server.skills.visible


def _session_in(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name.lower() == b"mcp-session-id":
            return str(value.decode("latin-1"))
    return None


def _user_of(caller: Caller) -> AuthenticatedUser:
    """Return the caller as the SDK compares it: a session can only be used by whoever opened it."""
    return AuthenticatedUser(
        AccessToken(
            token="",
            client_id=caller.tenant,
            scopes=sorted(caller.scopes),
            subject=caller.subject,
            claims={"iss": caller.issuer},
        )
    )


def _subject_of(scope: Mapping[str, Any]) -> str | None:
    caller = scope.get(CALLER)
    return caller.subject if isinstance(caller, Caller) else None
