"""The routes for operators and browsers: health, readiness, metrics, login, and the metadata of authorization."""

import re
from typing import Final
from urllib.parse import parse_qs

from skillshelf import __version__
from skillshelf.servers.mcp.http import PATH
from skillshelf.servers.team.metrics import MEDIA_TYPE
from skillshelf.servers.team.routes import (
    METRICS_ACCESS,
    PUBLIC,
    TeamAnswer,
    TeamRequest,
    TeamRoute,
    json_answer,
)
from skillshelf.servers.team.tokens import LOGIN_PREFIX, add_login, end_login
from skillshelf.servers.team.values import NO_SPACE, SCOPES, DatabaseAway, DatabaseFull, IssuerAway, NotAuthenticated
from skillshelf.servers.web.pages import HEADERS, login_page

__all__ = ["COOKIE", "METADATA_PATH", "cookie_in", "login_answer", "probe_routes"]

COOKIE: Final = "skillshelf_login"
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"
_FORM_BYTES = 16 * 1024
# Two slashes, and for browsers also a backslash, begin the name of a host.
_OWN_PAGE = re.compile(r"/(?!/)[!-\[\]-~]{0,2000}")
_NOT_ENDED = (
    "This browser is logged out. The database does not answer, so the login itself ends later, by its own time. "
    "If somebody else may have the cookie, ask an operator to revoke your token."
)


def show_health(request: TeamRequest) -> TeamAnswer:
    """Say that the process answers."""
    return json_answer({"status": "ok", "version": __version__}, cache_control="no-store")


def show_ready(request: TeamRequest) -> TeamAnswer:
    """Say whether requests can be served, and what is missing."""
    problems = request.services.problems()
    is_ready = not any(problems.values())
    checks = {name: problem or "ok" for name, problem in problems.items()}
    answer = {"status": "ready" if is_ready else "not ready", "checks": checks}
    return json_answer(answer, 200 if is_ready else 503, cache_control="no-store")


def show_metrics(request: TeamRequest) -> TeamAnswer:
    """Give the counts in the text format of Prometheus."""
    return TeamAnswer(request.services.metrics.text().encode(), media_type=MEDIA_TYPE)


def show_metadata(request: TeamRequest) -> TeamAnswer:
    """Give the metadata of a protected resource, as RFC 9728 and the authorization of MCP say.

    Those of MCP name an issuer, so there are none without one: a client would ask this server itself for a token.
    """
    issuer = request.services.issuer
    if issuer is None:
        error = {"code": "not_found", "message": "no issuer gives tokens for this server; its operators do"}
        return json_answer({"error": error}, 404, cache_control="no-store")
    named = issuer.audience if issuer.audience.startswith(("http://", "https://")) else None
    found = {
        "resource": named or request.base + PATH,
        "authorization_servers": [issuer.url],
        "scopes_supported": [*SCOPES],
        "bearer_methods_supported": ["header"],
        "resource_name": "skillshelf",
    }
    return json_answer(found, cache_control="no-store")


# Logins -------------------------------------------------------------------------------------------


def login_answer(told: str = "", status: int = 200, wanted: str = "") -> TeamAnswer:
    """Return the page with the form that takes a token."""
    page = login_page(told, status=status, wanted=wanted)
    return TeamAnswer(page.body, page.status, page.media_type, tuple(HEADERS.items()))


def show_login(request: TeamRequest) -> TeamAnswer:
    """Show the form."""
    return login_answer()


def log_in(request: TeamRequest) -> TeamAnswer:
    """Take a token, and give the browser a cookie that stands for it."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return login_answer("Log in from this page, not from another site.", 403)
    try:
        form = parse_qs(request.body.decode("utf-8", "replace"), max_num_fields=8)
    except ValueError:
        return login_answer("A token is the only thing to send here.", 400)
    token, wanted = form.get("token", [""])[0].strip(), _own_page(form.get("wanted", [""])[0])
    people, metrics = request.services.authenticator, request.services.metrics
    try:
        # A cookie must not be used to make another one that lives longer.
        if not token or token.startswith(f"{LOGIN_PREFIX}_"):
            raise NotAuthenticated("a token is needed")
        caller = people.authenticate(token)
        cookie, expires = add_login(request.services.database, caller, people.expiry(token))
    except NotAuthenticated:
        metrics.add("skillshelf_logins_total", outcome="refused")
        return login_answer("This token is not valid here, or no longer.", 401, wanted)
    except IssuerAway:
        return login_answer("The issuer of this token does not answer; try again.", 503, wanted)
    except DatabaseFull:
        return login_answer(f"Nobody can log in now: {NO_SPACE}.", 503, wanted)
    except DatabaseAway:
        return login_answer("The database does not answer; try again.", 503, wanted)
    metrics.add("skillshelf_logins_total", outcome="done")
    return _redirect(_set_cookie(request, cookie, max(1, (expires - people.now_ms()) // 1000)), wanted or "/")


def _own_page(wanted: str) -> str:
    """Return an address of this server that a form names; empty for any other text, which could lead elsewhere."""
    return wanted if _OWN_PAGE.fullmatch(wanted) else ""


def log_out(request: TeamRequest) -> TeamAnswer:
    """End the login of this browser."""
    cookie, gone = cookie_in(request.headers.get("cookie", "")), _set_cookie(request, "", 0)
    if cookie is not None:
        request.services.authenticator.forget(cookie)
        try:
            end_login(request.services.database, cookie)
        except DatabaseAway:
            answer = login_answer(_NOT_ENDED, 503)
            return answer._replace(headers=(*answer.headers, ("set-cookie", gone)))
    return _redirect(gone, "/login")


def _set_cookie(request: TeamRequest, value: str, seconds: int) -> str:
    secure = "; Secure" if request.base.startswith("https://") else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _redirect(cookie: str, where: str) -> TeamAnswer:
    return TeamAnswer(b"", 303, "text/plain", (("location", where), ("set-cookie", cookie), *HEADERS.items()))


def cookie_in(header: str) -> str | None:
    """Return the value of our cookie in a header; None if there is none, or several."""
    pairs = [part.strip().partition("=") for part in header.split(";")]
    values = [value for name, _, value in pairs if name == COOKIE and value]
    return values[0] if len(values) == 1 else None


def probe_routes() -> list[TeamRoute]:
    """Return the routes of this module."""
    return [
        TeamRoute("GET", "/health", PUBLIC, "say that the process answers", show_health, kind="probe"),
        TeamRoute("GET", "/ready", PUBLIC, "say whether requests can be served", show_ready, kind="probe"),
        TeamRoute("GET", "/metrics", METRICS_ACCESS, "give the metrics", show_metrics, kind="probe"),
        TeamRoute("GET", METADATA_PATH, PUBLIC, "describe how to get a token", show_metadata),
        TeamRoute("GET", METADATA_PATH + PATH, PUBLIC, "describe how to get a token", show_metadata),
        TeamRoute("GET", "/login", PUBLIC, "show the form for a token", show_login),
        TeamRoute("POST", "/login", PUBLIC, "log a browser in", log_in, body_bytes=_FORM_BYTES),
        TeamRoute("POST", "/logout", PUBLIC, "log a browser out", log_out, body_bytes=_FORM_BYTES),
    ]
