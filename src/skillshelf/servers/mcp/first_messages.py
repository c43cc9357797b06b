"""Answer the first messages of a client before the SDK of the protocol is imported, which takes most of the start.

Clients begin with a few messages that are nearly always the same. Those are answered here, byte for byte as the SDK
would answer them. The first message that is not of a known form is not judged here: it and all that follow are for the
SDK, as are the messages of `replayed`, which it needs to know but must not answer again.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

from skillshelf.core.records import NamedTuple
from skillshelf.servers.mcp.client_sessions import ClientSession
from skillshelf.servers.mcp.listings import CACHE_SCOPE, CACHE_TTL_MS, EXTENSIONS, SERVER_INFO, Listing, Listings
from skillshelf.servers.mcp.plain_messages import (
    HANDSHAKE_VERSIONS,
    INITIALIZE,
    NEWER_VERSION,
    SERVER_INFO_KEY,
    PlainRequest,
    is_plain_number,
    newer_request,
    older_request,
    parsed_message,
)
from skillshelf.servers.mcp.skills import PublishedSkills

__all__ = ["Opening"]

_INITIALIZED, _DISCOVER = "notifications/initialized", "server/discover"
_COMPLETE = {"resultType": "complete"}
_CACHED = {"ttlMs": CACHE_TTL_MS, "cacheScope": CACHE_SCOPE}
_SCHEMA_ORDER: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "older": dict.fromkeys(("inputSchema", "outputSchema"), ("properties", "required", "type")),
    "newer": {"inputSchema": ("type",), "outputSchema": ()},
}
"""The members that the SDK knows in the schema of a tool; it writes them first."""

Era = Literal["older", "newer"]


class _PageParams(NamedTuple):
    """The parameters of a listing with several pages."""

    cursor: Any = None


class Opening:
    """The conversation with one client until the SDK takes it over.

    `client` is its session, and `replayed` the messages that bring the SDK to the same state. The SDK answers the first
    of them to `replayed_id`, which no client knows.
    """

    def __init__(self, skills: PublishedSkills, listings: Listings) -> None:
        self._skills = skills
        self._listings = listings
        self._era: Era | None = None
        self._instructions = listings.instructions()
        self.client: ClientSession | None = None
        self.replayed: list[bytes] = []
        self.replayed_id = f"skillshelf-{os.urandom(16).hex()}"
        self._one_page: Mapping[str, Callable[[], Listing]] = {
            "tools/list": listings.tools,
            "resources/templates/list": listings.templates,
            "prompts/list": listings.prompts,
        }
        self._pages: Mapping[str, Callable[[ClientSession, str | None], Listing]] = {
            "skills/list": listings.skills,
            "resources/list": listings.resources,
        }

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to a line, which is empty if it needs none, or None if the SDK has to answer."""
        if not line.strip():
            return b""
        try:
            message = parsed_message(line)
            if self._is_initialized(message):
                self.replayed.append(line)
                return b""
            request = newer_request(message) if self._era != "older" else None
            if request is not None:
                return self._answer_newer(request)
            request = older_request(message) if self._era != "newer" else None
            return self._answer_older(request) if request is not None else None
        except Exception:
            # Whatever failed: nothing was sent, and the SDK does it again and reports it.
            return None

    def _is_initialized(self, message: Mapping[str, Any]) -> bool:
        """Return True for the message that ends the handshake, the first time."""
        is_bare = message.keys() == {"jsonrpc", "method"} or message.get("params") == {}
        return (
            self._era == "older"
            and len(self.replayed) == 1
            and is_bare
            and message.keys() <= {"jsonrpc", "method", "params"}
            and message["jsonrpc"] == "2.0"
            and message["method"] == _INITIALIZED
        )

    # The older era --------------------------------------------------------------------------------

    def _answer_older(self, request: PlainRequest) -> bytes | None:
        if (request.method == INITIALIZE) is not (self._era is None):
            return None
        if request.method == INITIALIZE:
            result: Any = self._handshake(request.params["protocolVersion"])
        elif request.method == "ping" and not request.params:
            result = {}
        else:
            result = self._listing(request)
            if result is None:
                return None
            result = _in_order(result, "older")
        self._open(request)
        answer = _encoded(request.id, result)
        if request.method == INITIALIZE:
            self._begin("older", request.method, request.params)
        return answer

    def _handshake(self, version: str) -> dict[str, Any]:
        return {
            "capabilities": {**_capabilities(newer=False), "extensions": EXTENSIONS},
            "instructions": self._instructions,
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "serverInfo": dict(sorted(SERVER_INFO.items())),
        }

    # The newer era --------------------------------------------------------------------------------

    def _answer_newer(self, request: PlainRequest) -> bytes | None:
        if request.method == _DISCOVER and request.params.keys() == {"_meta"}:
            result: Any = self._discovered()
        else:
            found = self._listing(request)
            if found is None:
                return None
            # The SDK knows the members of its own methods, and sorts them.
            known = request.method != "skills/list"
            whole = {**_in_order(found, "newer"), **_CACHED, **_COMPLETE}
            result = dict(sorted(whole.items())) if known else whole
        result["_meta"] = {**result.get("_meta", {}), SERVER_INFO_KEY: SERVER_INFO}
        self._open(request)
        answer = _encoded(request.id, result)
        if self._era is None:
            # The SDK has to learn the era of the connection, and this method does nothing else.
            self._begin("newer", _DISCOVER, {"_meta": request.params["_meta"]})
        return answer

    def _discovered(self) -> dict[str, Any]:
        return {
            "cacheScope": CACHE_SCOPE,
            "capabilities": _capabilities(newer=True),
            "instructions": self._instructions,
            **_COMPLETE,
            "supportedVersions": [NEWER_VERSION],
            "ttlMs": 0,
        }

    # Both -----------------------------------------------------------------------------------------

    def _listing(self, request: PlainRequest) -> Listing | None:
        """Return the result of a listing method, or None if the request is for another or has more parameters."""
        given = {name: value for name, value in request.params.items() if name != "_meta"}
        if request.method in self._one_page and not given:
            return self._one_page[request.method]()
        if request.method in self._pages and given.keys() <= set(_PageParams._fields):
            after = _PageParams(**given).cursor
            if after is None or isinstance(after, str):
                return self._pages[request.method](self._client_of(request), after)
        return None

    def _client_of(self, request: PlainRequest) -> ClientSession:
        self.client = self.client or self._skills.sessions.start(request.client)
        return self.client

    def _open(self, request: PlainRequest) -> None:
        """Open the session of the client, which the first message does."""
        with self._client_of(request).session():
            pass

    def _begin(self, era: Era, method: str, params: Mapping[str, Any]) -> None:
        self._era = era
        replayed = {"jsonrpc": "2.0", "id": self.replayed_id, "method": method, "params": params}
        self.replayed.append(json.dumps(replayed).encode())


def _capabilities(*, newer: bool) -> dict[str, Any]:
    return {
        "completions": {},
        **({"extensions": EXTENSIONS} if newer else {}),
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": newer},
        "tools": {"listChanged": newer},
    }


def _in_order(listing: Listing, era: Era) -> Listing:
    """Return a listing with the members of the schemas of tools in the order of an era."""
    if "tools" not in listing:
        return listing
    return {**listing, "tools": [_tool_in_order(tool, era) for tool in listing["tools"]]}


def _tool_in_order(tool: Mapping[str, Any], era: Era) -> dict[str, Any]:
    ordered = dict(tool)
    for member, known in _SCHEMA_ORDER[era].items():
        if member in tool:
            schema = tool[member]
            ordered[member] = {**{name: schema[name] for name in known if name in schema}, **schema}
    return ordered


# Answers ------------------------------------------------------------------------------------------


def _encoded(identity: str | int, result: Mapping[str, Any]) -> bytes:
    """Return the line of an answer; raise ValueError for values that the SDK might write differently."""
    answer = {"jsonrpc": "2.0", "id": identity, "result": result}
    if not _is_plain(answer):
        raise ValueError("not plain JSON")
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return all(type(name) is str and _is_plain(inner) for name, inner in value.items())
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    return kind is str or kind is bool or value is None or (kind is int and is_plain_number(value))
