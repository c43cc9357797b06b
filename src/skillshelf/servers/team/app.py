"""The application of the team server: check who sends a request before its body is read, then serve its route."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote

import anyio
import anyio.to_thread

from skillshelf.core.console import note
from skillshelf.core.http_client import is_loopback_name
from skillshelf.core.limits import FILE_THREADS, PROBES_AT_ONCE, TEAM_THREADS
from skillshelf.core.text import cut, fold, visible
from skillshelf.errors import ConfigurationError, SkillError, kind_of
from skillshelf.servers.mcp.http import PATH, PROBE, SENDER, App, Message, Receive, Scope, Send, header_in
from skillshelf.servers.mcp.request_line import RequestRefused
from skillshelf.servers.team.api import STALE_HEADER
from skillshelf.servers.team.catalogs import key_of
from skillshelf.servers.team.mcp_endpoint import CALLER, McpEndpoint
from skillshelf.servers.team.probes import METADATA_PATH, cookie_in
from skillshelf.servers.team.release_routes import demands_revision, with_rev
from skillshelf.servers.team.routes import (
    ANY_TOKEN,
    METRICS_ACCESS,
    PUBLIC,
    RouteKind,
    RouteTable,
    TeamAnswer,
    TeamRequest,
    TeamRoute,
    base_of,
    json_answer,
)
from skillshelf.servers.team.services import TeamServices
from skillshelf.servers.team.tokens import LOGIN_PREFIX
from skillshelf.servers.team.values import (
    DEFAULT_TENANT,
    FILES_AWAY,
    JOURNAL_READ,
    METRICS_READ,
    NO_SPACE,
    READ,
    BlobsAway,
    BlobsFull,
    Caller,
    DatabaseAway,
    DatabaseFull,
    IssuerAway,
    NotAuthenticated,
    TooNew,
    status_of,
)
from skillshelf.servers.web.pages import HEADERS, PageAnswer, login_page, message_page

__all__ = ["ObservedApp", "TeamApp"]

_ROUTE = "skillshelf.route"
_PARTS = "skillshelf.parts"
_QUERY_CHARS = 16 * 1024
_QUERY_FIELDS = 32
_AUTH_THREADS = 8


class TeamApp:
    """Serves the routes of a table. `authorize` must have seen a request before it is served."""

    def __init__(self, services: TeamServices, table: RouteTable, mcp: McpEndpoint) -> None:
        self._services = services
        self._table = table
        self._mcp = mcp
        # Of each kind: a blob store that hangs keeps those waiting who need it, and nobody else.
        self._limiters: Mapping[RouteKind, anyio.CapacityLimiter] = {
            "common": anyio.CapacityLimiter(TEAM_THREADS),
            "search": anyio.CapacityLimiter(TEAM_THREADS),
            "files": anyio.CapacityLimiter(FILE_THREADS),
            "probe": anyio.CapacityLimiter(PROBES_AT_ONCE),
        }
        self._auth_limiter = anyio.CapacityLimiter(_AUTH_THREADS)
        # Of their own: while an issuer is slow, people with tokens of this server are not kept waiting.
        self._issuer_limiter = anyio.CapacityLimiter(_AUTH_THREADS)

    # Who may -----------------------------------------------------------------------------------------

    async def authorize(self, scope: Scope) -> int:
        """Find the route and the caller of a request; return how many bytes its body may have.

        Raise `RequestRefused` for a request without the token or the scope that the route needs.
        """
        # A NUL is in no name, and PostgreSQL does not even take it in a question.
        scope["path"] = scope["path"].replace("\0", "\ufffd")
        scope["query_string"] = scope["query_string"].replace(b"%00", b"%EF%BF%BD")
        route, parts, others = self._table.find(scope["method"], scope["path"])
        scope[_ROUTE], scope[_PARTS] = route, parts
        scope[PROBE] = route is not None and route.kind == "probe"
        if route is not None and route.access == PUBLIC:
            return route.body_bytes
        if route is not None and route.access == METRICS_ACCESS and _is_from_here(scope):
            return route.body_bytes
        scope[CALLER] = caller = await self._caller(scope, route)
        scope[SENDER] = caller.tenant, caller.subject
        if route is None:
            if others:
                raise RequestRefused(405, "this address does not take this method", {"allow": ", ".join(others)})
            page = message_page("There is no such page", "It may have been removed.", status=404, back=True)
            raise _refusal(scope, route, page, "there is nothing at this address", {"cache-control": "no-store"})
        self._require_scope(scope, route, caller)
        return route.body_bytes

    async def _caller(self, scope: Scope, route: TeamRoute | None) -> Caller:
        token = _token_in(scope)
        if token is None:
            raise self._refused(scope, route, "a token is needed (send Authorization: Bearer TOKEN)", is_wrong=False)
        people = self._services.authenticator
        if (known := people.known(token)) is not None:
            return known
        try:
            limiter = self._issuer_limiter if people.asks_issuer(token) else self._auth_limiter
            return await anyio.to_thread.run_sync(people.authenticate, token, limiter=limiter)
        except NotAuthenticated as error:
            raise self._refused(scope, route, str(error), is_wrong=True) from None
        except IssuerAway as error:
            raise _not_now(scope, route, str(error)) from None
        except DatabaseAway:
            raise _not_now(scope, route, "the database does not answer, and this token is not known") from None

    def _refused(self, scope: Scope, route: TeamRoute | None, reason: str, *, is_wrong: bool) -> RequestRefused:
        self._services.metrics.add("skillshelf_refused_tokens_total")
        # A client of MCP asks its issuer for this scope; without it, for all that the metadata lists, also `admin`.
        wanted = {"scope": READ} if scope["path"] == PATH else {}
        problem = {"error": "invalid_token"} if is_wrong else {}
        headers = {"www-authenticate": self._challenge(scope, wanted | problem)}
        told = "Your login has ended." if is_wrong else ""
        page = login_page(told, status=401, wanted=_page_asked_for(scope, route))
        return _refusal(scope, route, page, reason, headers)

    def _challenge(self, scope: Scope, parts: Mapping[str, str]) -> str:
        """Return what a refusal asks for; it names the metadata if they name an issuer that gives tokens."""
        if self._services.issuer is not None:
            parts = {"resource_metadata": f"{base_of(scope)}{METADATA_PATH}{PATH}", **parts}
        return " ".join(("Bearer", ", ".join(f'{name}="{value}"' for name, value in parts.items()))).strip()

    def _require_scope(self, scope: Scope, route: TeamRoute, caller: Caller) -> None:
        needed = (METRICS_READ,) if route.access == METRICS_ACCESS else route.scopes
        is_foreign = route.access == METRICS_ACCESS and caller.tenant != DEFAULT_TENANT
        if route.access == ANY_TOKEN or (any(caller.may(one) for one in needed) and not is_foreign):
            return
        challenge = self._challenge(scope, {"error": "insufficient_scope", "scope": needed[0]})
        reason = f"the token has no scope {' or '.join(needed)}"
        if is_foreign:
            # They count what all tenants do, and no answer tells a tenant about another one.
            reason = f"the metrics are those of the whole server; they need a token of the tenant {DEFAULT_TENANT}"
        text = f"Your token has no scope {' or '.join(needed)}. An operator of this server can give you one that has."
        # The overview is no way out for who may not see it either.
        links = [("/login", "Log in with another token")]
        if caller.may(JOURNAL_READ) and not caller.may(READ):
            links.insert(0, ("/journal", "To the journal"))
        page = message_page("You may not see this page", text, status=403, back=caller.may(READ), links=links)
        raise _refusal(scope, route, page, reason, {"www-authenticate": challenge})

    # Serving -----------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that was authorized, or the lifespan of the web server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        route: TeamRoute | None = scope.get(_ROUTE)
        app = self._mcp if scope["path"] == PATH else route.app if route is not None else None
        if app is not None:
            send = self._marked(scope, send)
            try:
                await app(scope, receive, send)
            except DatabaseAway as error:
                # The skills of the caller could not be opened, before anything was sent.
                await _send(send, _away(error), with_body=scope["method"] != "HEAD")
        elif route is not None:
            answer = await self._answer(route, scope, receive)
            await _send(send, answer, with_body=scope["method"] != "HEAD")

    def _marked(self, scope: Scope, send: Send) -> Send:
        """Return how an answer of an application is sent: with a mark if it is made without the database."""
        published, caller = self._services.published, scope.get(CALLER)
        if published is None or caller is None or not published.is_stale(caller.tenant):
            return send

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (STALE_HEADER.encode(), b"true")]}
            await send(message)

        return marked

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with anyio.create_task_group() as group:
            await group.start(self._mcp.run)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            group.cancel_scope.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, route: TeamRoute, scope: Scope, receive: Receive) -> TeamAnswer:
        assert route.run is not None
        try:
            query = _query_of(scope)
        except ConfigurationError as error:
            return _error(status_of(error), kind_of(error).code, str(error))
        request = TeamRequest(
            self._services,
            scope["method"],
            scope["path"],
            scope[_PARTS],
            query,
            {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]},
            (await receive()).get("body", b""),
            scope.get(CALLER),
            base_of(scope),
        )
        # Abandoned at the limit on time, and when the server stops: the client gets its answer then, and the thread
        # ends what it does. A publish or a batch of lines that is sent again changes nothing.
        is_turn = route.kind == "search" and self._is_brief(request)
        limiter = self._mcp.search_turn if is_turn else self._limiters[route.kind]
        return await anyio.to_thread.run_sync(_answered, route.run, request, limiter=limiter, abandon_on_cancel=True)

    def _is_brief(self, request: TeamRequest) -> bool:
        """Return whether a search only computes: nobody waits behind one that asks the database or another server."""
        skills = self._services.catalogs.opened(key_of(request.caller))
        return skills is not None and skills.shelf.is_search_brief and not demands_revision(request)


def _answered(run: Callable[[TeamRequest], TeamAnswer], request: TeamRequest) -> TeamAnswer:
    """Return the answer of a route, or the error that it raises."""
    try:
        return run(request)
    except DatabaseAway as error:
        return _away(error)
    except BlobsAway as error:
        told = NO_SPACE if isinstance(error, BlobsFull) else FILES_AWAY
        if str(error) != told:
            note(f"{request.method} {cut(fold(request.path), 200)}: {cut(fold(str(error)), 200)}")
        return _error(503, "unavailable", told)
    except TooNew as error:
        # A client that has seen a newer one can then say how old this server is.
        return with_rev(_error(503, kind_of(error).code, str(error)), error.known, request.caller.tenant)
    except SkillError as error:
        return _error(status_of(error), kind_of(error).code, str(error))
    except Exception as error:  # the outermost frame: a mistake of ours must not end the connection
        note(f"{request.method} {request.path}: {type(error).__name__}: {cut(fold(str(error)), 200)}")
        return _error(500, "failed", "an error of the server")


def _away(error: DatabaseAway) -> TeamAnswer:
    told = NO_SPACE if isinstance(error, DatabaseFull) else "the database does not answer"
    return _error(503, "unavailable", told)


def _error(status: int, code: str, message: str) -> TeamAnswer:
    headers = {"retry_after": "1"} if status == 503 else {}
    return json_answer({"error": {"code": code, "message": message}}, status, **headers)


async def _send(send: Send, answer: TeamAnswer, *, with_body: bool) -> None:
    headers = [("content-type", answer.media_type), ("content-length", str(len(answer.body))), *answer.headers]
    if not any(name == "x-content-type-options" for name, _ in answer.headers):
        headers.append(("x-content-type-options", "nosniff"))
    if not any(name == "cache-control" for name, _ in answer.headers):
        # What one caller may see is not for others behind the same proxy.
        headers.append(("cache-control", "private, no-cache"))
    encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.body if with_body else b""})


def _query_of(scope: Scope) -> Mapping[str, str]:
    """Return the parameters of a request; raise `ConfigurationError` for too many, none of which may be ignored."""
    text = scope["query_string"].decode("latin-1")
    if len(text) <= _QUERY_CHARS:
        with suppress(ValueError):
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_QUERY_FIELDS))
    raise ConfigurationError(f"a query has at most {_QUERY_CHARS} characters and {_QUERY_FIELDS} parameters")


def _refusal(
    scope: Scope, route: TeamRoute | None, page: PageAnswer, reason: str, headers: Mapping[str, str]
) -> RequestRefused:
    """Return the refusal of a request: a page for a browser that asks for one, else the reason in a line."""
    asks_for_page = route.is_page if route is not None else not scope["path"].startswith(("/api/", "/.well-known/"))
    if scope["method"] == "GET" and asks_for_page and "text/html" in (header_in(scope, "accept") or ""):
        shown = {**HEADERS, **headers, "content-type": page.media_type}
        return RequestRefused(page.status, page.body.decode(), shown)
    return RequestRefused(page.status, reason, headers)


def _page_asked_for(scope: Scope, route: TeamRoute | None) -> str:
    """Return the address of a page, with its query, to go to after a login."""
    if route is None or not route.is_page:
        return ""
    query = scope["query_string"].decode("latin-1")
    return quote(scope["path"]) + (f"?{query}" if query else "")


def _not_now(scope: Scope, route: TeamRoute | None, reason: str) -> RequestRefused:
    """Return the refusal of a request while nobody can tell who sends it."""
    text = f"Nobody can tell now who you are: {reason}. Try again in a moment."
    return _refusal(scope, route, message_page("Not now", text, status=503), reason, {})


def _token_in(scope: Scope) -> str | None:
    """Return the token of a request, or the cookie of a login where it only reads."""
    scheme, _, token = (header_in(scope, "authorization") or "").partition(" ")
    if token:
        # The value of a cookie only reads, whichever header has it.
        is_token = scheme.lower() == "bearer" and not token.strip().startswith(f"{LOGIN_PREFIX}_")
        return token.strip() if is_token else None
    # A page of another site could make a browser send a cookie, so it never allows a change.
    if scope["method"] not in ("GET", "HEAD") or scope["path"] == PATH:
        return None
    return cookie_in(header_in(scope, "cookie") or "")


def _is_from_here(scope: Scope) -> bool:
    """Return True for a request of this machine; behind a proxy everybody's requests seem to be."""
    host = (header_in(scope, "host") or "").rpartition(":")[0] or (header_in(scope, "host") or "")
    is_passed_on = any(header_in(scope, name) is not None for name in ("x-forwarded-for", "forwarded", "via"))
    client = scope.get("client")
    is_local = client is not None and is_loopback_name(client[0])
    return is_local and is_loopback_name(host.strip("[]")) and not is_passed_on


# The access log -----------------------------------------------------------------------------------


class ObservedApp:
    """Counts and logs every request: one line of JSON, without its query, its cookies or any token."""

    def __init__(self, app: App, services: TeamServices, log: Callable[[str], None] | None) -> None:
        self._app = app
        self._metrics = services.metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request and note its outcome."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, size, began = 0, 0, time.perf_counter()

        async def observe(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        self._metrics.add("skillshelf_requests_running")
        try:
            await self._app(scope, receive, observe)
        finally:
            self._metrics.add("skillshelf_requests_running", -1)
            self._note(scope, status, size, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        route: TeamRoute | None = scope.get(_ROUTE)
        path = route.path if route is not None else "none"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.add("skillshelf_requests_total", route=path, method=method, status=str(status))
        self._metrics.observe("skillshelf_request_seconds", seconds, route=path)
        if self._log is not None:
            self._log(json.dumps(self._line(scope, path, status, size, seconds), ensure_ascii=True) + "\n")

    def _line(self, scope: Scope, route: str, status: int, size: int, seconds: float) -> dict[str, Any]:
        caller: Caller | None = scope.get(CALLER)
        client = scope.get("client")
        # What a proxy says: anybody else who reaches the server can say it, too.
        forwarded = header_in(scope, "x-forwarded-for")
        return {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": client[0] if client else None,
            **({"forwarded_for": cut(visible(forwarded), 200)} if forwarded else {}),
            "method": scope["method"],
            "path": cut(scope["path"], 200),
            "route": route,
            "status": status,
            "bytes": size,
            "ms": round(seconds * 1000, 1),
            "tenant": caller.tenant if caller is not None else None,
            "subject": caller.subject if caller is not None else None,
        }


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
