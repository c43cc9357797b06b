"""The table of routes: who may use each one, what it takes and gives, and the OpenAPI document made from it.

A route is a function of a request that runs in a thread, or an ASGI application. The table is what the server checks
tokens by, so a route that is not in it cannot be reached.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from skillshelf.core.records import NamedTuple
from skillshelf.core.validation import schema_of
from skillshelf.servers.mcp.http import header_in
from skillshelf.servers.team.values import SCOPES, Caller, NotAuthenticated

if TYPE_CHECKING:
    from skillshelf.servers.mcp.http import App, Scope
    from skillshelf.servers.team.services import TeamServices

__all__ = [
    "ANY_TOKEN",
    "METRICS_ACCESS",
    "PUBLIC",
    "Parameter",
    "RouteTable",
    "TeamAnswer",
    "TeamRequest",
    "TeamRoute",
    "base_of",
    "json_answer",
    "openapi_document",
]

PUBLIC: Final = "public"
ANY_TOKEN: Final = "token"
METRICS_ACCESS: Final = "metrics"
"""The scope `metrics:read` in the tenant `default`, or a request from this machine."""


class Parameter(NamedTuple):
    """A parameter of a route, in its path or its query."""

    name: str
    summary: str
    place: Literal["path", "query"] = "query"
    required: bool = False
    kind: Literal["string", "integer"] = "string"


class TeamRequest(NamedTuple):
    """A request to a route: who sends it, the parts of its path, its query, headers and body."""

    services: "TeamServices"
    method: str
    path: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    sender: Caller | None
    base: str
    """The address of this server as the client wrote it, such as https://skills.example."""

    @property
    def caller(self) -> Caller:
        """Who sends the request; a public route has nobody."""
        if self.sender is None:
            raise NotAuthenticated("a token is needed")
        return self.sender


class TeamAnswer(NamedTuple):
    """The answer to a request."""

    body: bytes
    status: int = 200
    media_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


def json_answer(value: Any, status: int = 200, **headers: str) -> TeamAnswer:
    """Return a JSON value as an answer."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return TeamAnswer(body + b"\n", status, headers=tuple((key.replace("_", "-"), headers[key]) for key in headers))


RouteKind = Literal["common", "search", "files", "probe"]
"""What a route does for long: a search computes, `files` may wait for the blob store, a probe is asked by operators."""


class TeamRoute(NamedTuple):
    """One row: a method, a pattern of paths, the access it needs, and the function or application that serves it.

    `access` is `public`, `token` for any valid token, `metrics`, or scopes of which one is needed, separated by blanks.
    `body_bytes` is the size of a body that it takes. `gives` is the type of its answer, `media_type` the form, and
    `added` what the status 201 means, if it has that. `is_page` is for people: a browser without a login
    is shown how to log in. `kind` says whom it must not keep waiting.
    """

    method: str
    path: str
    access: str
    summary: str
    run: Callable[[TeamRequest], TeamAnswer] | None = None
    app: "App | None" = None
    parameters: tuple[Parameter, ...] = ()
    body_bytes: int = 0
    gives: Any = None
    media_type: str = "application/json"
    added: str = ""
    takes: Mapping[str, Any] | None = None
    is_page: bool = False
    kind: RouteKind = "common"

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of which one is needed; empty if any token does, or none is needed."""
        return tuple(scope for scope in self.access.split() if scope in SCOPES)


class RouteTable:
    """All routes of a server, and which of them a request is for."""

    def __init__(self, routes: Iterable[TeamRoute]) -> None:
        self.routes: Sequence[TeamRoute] = tuple(routes)
        self._patterns = [(_pattern(route.path), route) for route in self.routes]

    def find(self, method: str, path: str) -> tuple[TeamRoute | None, Mapping[str, str], tuple[str, ...]]:
        """Return the route of a request and the parts of its path; without one, the methods that the path takes."""
        others = []
        wanted = "GET" if method == "HEAD" else method
        for pattern, route in self._patterns:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            if route.method in (wanted, "*"):
                return route, found.groupdict(), ()
            others.append(route.method)
        return None, {}, tuple(dict.fromkeys(others))


def _pattern(path: str) -> re.Pattern[str]:
    """Return the pattern of a path with `{name}` for a segment and `{name:path}` for several."""
    parts = re.split(r"(\{\w+(?::path)?\})", path)
    return re.compile("".join(_part(part) for part in parts), re.DOTALL)


def _part(text: str) -> str:
    if not text.startswith("{"):
        return re.escape(text)
    name, _, kind = text.strip("{}").partition(":")
    return f"(?P<{name}>.+)" if kind else f"(?P<{name}>[^/]+)"


# The OpenAPI document -----------------------------------------------------------------------------

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
_ERRORS = {
    "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
    "text/plain": {"schema": {"type": "string"}},
}
_BEARER = {"type": "http", "scheme": "bearer"}


def openapi_document(routes: Iterable[TeamRoute], version: str, begin: str = "/api/") -> dict[str, Any]:
    """Return the OpenAPI document of the routes below a path."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.path.startswith(begin):
            path = re.sub(r":path\}", "}", route.path)
            paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "skillshelf", "version": version, "description": "The skills of a team, and their use."},
        "paths": paths,
        "components": {"securitySchemes": {"bearer": _BEARER}, "schemas": {"Error": _ERROR}},
        "security": [{"bearer": []}],
    }


def _operation(route: TeamRoute) -> dict[str, Any]:
    content = {route.media_type: {"schema": schema_of(route.gives)} if route.gives is not None else {}}
    denied = f"a scope is missing: {' or '.join(route.scopes)}; or it is denied" if route.scopes else "it is denied"
    responses = {
        "200": {"description": "done, or it was before" if route.added else "done", "content": content},
        **({"201": {"description": route.added, "content": content}} if route.added else {}),
        "401": {"description": "no valid token"},
        "403": {"description": denied},
        "default": {"description": "an error; a line of text if the request was not even read", "content": _ERRORS},
    }
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "responses": responses,
    }
    if parameters := [_parameter(one) for one in route.parameters]:
        operation["parameters"] = parameters
    if route.takes is not None:
        operation["requestBody"] = {"required": _is_needed(route.takes), "content": route.takes}
    return operation


def _is_needed(takes: Mapping[str, Any]) -> bool:
    """Return whether a body must be sent: an object without members that are required may be left out."""
    schemas = [form.get("schema", {}) for form in takes.values()]
    return any(schema.get("type") != "object" or schema.get("required") for schema in schemas)


def _operation_id(route: TeamRoute) -> str:
    words = re.findall(r"[a-z0-9]+", route.path.partition("/v1/")[2])
    return "_".join((route.method.lower(), *words))


def _parameter(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": one.place,
        "required": one.required or one.place == "path",
        "description": one.summary,
        "schema": {"type": one.kind},
    }


def base_of(scope: "Scope") -> str:
    """Return the address of this server as the client wrote it; a proxy that ends TLS says so in a header."""
    is_secure = scope["scheme"] == "https" or header_in(scope, "x-forwarded-proto") == "https"
    return f"{'https' if is_secure else 'http'}://{header_in(scope, 'host') or 'localhost'}"
