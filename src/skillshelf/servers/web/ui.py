"""Serve the pages to one browser on this machine: a one-time address, then a cookie; nothing can be changed.

The address that `ui` prints has a token that is good once, and for `WEB_TOKEN_SECONDS`. It is exchanged for a cookie
that no script can read and no other site can send. A name of this machine that is not its own (DNS rebinding) and a
page of another origin are refused before anything else.
"""

import os
import secrets
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from skillshelf.core.console import note, write
from skillshelf.core.limits import WEB_CONNECTIONS, WEB_TOKEN_SECONDS
from skillshelf.core.server_socket import listening_socket
from skillshelf.servers.web.catalogue import Catalogue
from skillshelf.servers.web.pages import HEADERS, failed_page, message_page, page_response, page_routes

__all__ = ["OneTimeAccess", "serve_ui", "ui_app"]

_ADDRESS = "127.0.0.1"
_NAMES = (_ADDRESS, "localhost")
_HTTP_PORT = 80
_BACKLOG = 128
_STOP_SECONDS = 2

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


class OneTimeAccess:
    """A token that is good once and for a short time, and the cookie that it is exchanged for."""

    def __init__(self, port: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(32)
        # Cookies of one machine are shared by all its ports.
        self.cookie_name = f"skillshelf-{port}"
        self._cookie = secrets.token_urlsafe(32)
        self._now = now
        self._until: float | None = now() + WEB_TOKEN_SECONDS
        self._lock = threading.Lock()

    def exchange(self, token: str) -> str | None:
        """Return the cookie for the token, once; None for any other text, and afterwards."""
        with self._lock:
            is_right = compare_digest(token.encode("utf-8", "replace"), self.token.encode())
            if not is_right or self._until is None or self._now() > self._until:
                return None
            self._until = None
            return self._cookie

    def admits(self, cookie: str | None) -> bool:
        """Return whether a cookie is the one that the token was exchanged for."""
        return cookie is not None and compare_digest(cookie.encode("utf-8", "replace"), self._cookie.encode())


class _Doorkeeper:
    """Checks Host, Origin, method and cookie of every request before a page sees it."""

    def __init__(self, app: _App, access: OneTimeAccess, port: int) -> None:
        self._app = app
        self._access = access
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES)
        if port == _HTTP_PORT:
            # A browser leaves out the port that http has anyway.
            self._hosts |= frozenset(_NAMES)

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send)

    def _answer(self, scope: _Scope) -> Response | None:
        """Return the answer to a request that no page sees; None for one that may go on."""
        connection = HTTPConnection(scope)
        hosts = connection.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _plain(421, "this Host is not a name of this server")
        origins = connection.headers.getlist("origin")
        if origins and origins != [f"http://{hosts[0].lower()}"]:
            return _plain(403, "this Origin is not allowed")
        if scope["method"] not in ("GET", "HEAD"):
            return _plain(405, "these pages change nothing: GET alone is answered", allow="GET, HEAD")
        if scope["path"].startswith("/static/") or scope["path"] == "/favicon.ico":
            return None
        is_known = self._access.admits(connection.cookies.get(self._access.cookie_name))
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if token and scope["path"] == "/" and scope["method"] == "GET":
            return self._exchange(token, is_known=is_known)
        return None if is_known else _unknown()

    def _exchange(self, token: str, *, is_known: bool) -> Response:
        """Return the way to the pages for who brings the token, or brought it before and opens its address again."""
        cookie = self._access.exchange(token)
        if cookie is None:
            return RedirectResponse("/", 303, headers=dict(HEADERS)) if is_known else _unknown()
        given = f"{self._access.cookie_name}={cookie}; Path=/; HttpOnly; SameSite=Strict"
        return RedirectResponse("/", 303, headers={**HEADERS, "set-cookie": given})


def _plain(status: int, reason: str, **headers: str) -> Response:
    return Response(f"{reason}\n", status, {**HEADERS, **headers}, "text/plain; charset=utf-8")


def _unknown() -> Response:
    text = (
        "These pages are for whoever started them. The address is good once, "
        f"and for {WEB_TOKEN_SECONDS} seconds; start again for a new one:"
    )
    return page_response(message_page("Not signed in", text, status=401, command="skillshelf ui"))


def ui_app(catalogue: Catalogue, access: OneTimeAccess, port: int) -> _App:
    """Return the application: all pages of a catalogue behind the checks."""

    def not_found(request: Any, error: Exception) -> Response:
        return page_response(message_page("There is no such page", "It may have been removed.", status=404, back=True))

    handlers: dict[Any, Any] = {404: not_found, 500: failed_page}
    app = Starlette(routes=list(page_routes(lambda request: catalogue)), exception_handlers=handlers)
    app.router.redirect_slashes = False
    return _Doorkeeper(app, access, port)


# The command --------------------------------------------------------------------------------------


def serve_ui(catalogue_of: Callable[[], Catalogue], *, port: int, open_browser: bool) -> None:
    """Serve on loopback until a signal comes; the address is the first line that is printed."""
    bound = listening_socket(_ADDRESS, port, backlog=_BACKLOG, hint="choose another --port")
    port = bound.getsockname()[1]
    access = OneTimeAccess(port)
    address = f"http://{_ADDRESS}:{port}/?token={access.token}"
    # Connections wait until the server runs, so the address is good from here on.
    write(f"{address}\n")
    sys.stdout.flush()
    note(f"open it within {WEB_TOKEN_SECONDS} seconds; it works once. Ctrl-C ends the server")
    app = ui_app(catalogue_of(), access, port)
    if open_browser:
        _open_browser(address)
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=WEB_CONNECTIONS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    try:
        uvicorn.Server(config).run(sockets=[bound])
    except KeyboardInterrupt:
        # The usual end; uvicorn has closed its connections, and raises the signal again.
        return


def _open_browser(address: str) -> None:
    """Open the address where there is a screen; a browser of the terminal would take it away from the server."""
    has_screen = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    if not has_screen:
        return
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
