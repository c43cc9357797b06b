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
from skillshelf.servers.mcp.client_sessions import ClientSession, client_label
from skillshelf.servers.mcp.listings import CACHE_SCOPE, CACHE_TTL_MS, EXTENSIONS, SERVER_INFO, Listing, Listings
from skillshelf.servers.mcp.skills import PublishedSkills

__all__ = ["HANDSHAKE_VERSIONS", "NEWER_VERSION", "Opening"]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that begin with a handshake, the latest last."""

NEWER_VERSION = "2026-07-28"
"""The version of the protocol without a handshake."""

_PREFIX = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES, _CLIENT_INFO = (
    _PREFIX + name for name in ("protocolVersion", "clientCapabilities", "clientInfo")
)
_INITIALIZE, _INITIALIZED, _DISCOVER = "initialize", "notifications/initialized", "server/discover"
_COMPLETE = {"resultType": "complete"}
_CACHED = {"ttlMs": CACHE_TTL_MS, "cacheScope": CACHE_SCOPE}
_MOST_ID = 2**63
_CAPABILITY_PARTS: Mapping[str, Mapping[str, type]] = {
    "roots": {"listChanged": bool},
    "sampling": {"context": dict, "tools": dict},
    "elicitation": {"form": dict, "url": dict},
}
_SCHEMA_ORDER: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "older": dict.fromkeys(("inputSchema", "outputSchema"), ("properties", "required", "type")),
    "newer": {"inputSchema": ("type",), "outputSchema": ()},
}
"""The members that the SDK knows in the schema of a tool; it writes them first."""

Era = Literal["older", "newer"]


class _Request(NamedTuple):
    """A request of a known form: the client that it names is a label, or None."""

    id: str | int
    method: str
    params: Mapping[str, Any]
    client: str | None


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
            message = _parsed(line)
            if self._is_initialized(message):
                self.replayed.append(line)
                return b""
            request = _newer_request(message) if self._era != "older" else None
            if request is not None:
                return self._answer_newer(request)
            request = _older_request(message) if self._era != "newer" else None
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

    def _answer_older(self, request: _Request) -> bytes | None:
        if (request.method == _INITIALIZE) is not (self._era is None):
            return None
        if request.method == _INITIALIZE:
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
        if request.method == _INITIALIZE:
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

    def _answer_newer(self, request: _Request) -> bytes | None:
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
        result["_meta"] = {**result.get("_meta", {}), _PREFIX + "serverInfo": SERVER_INFO}
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

    def _listing(self, request: _Request) -> Listing | None:
        """Return the result of a listing method, or None if the request is for another or has more parameters."""
        given = {name: value for name, value in request.params.items() if name != "_meta"}
        if request.method in self._one_page and not given:
            return self._one_page[request.method]()
        if request.method in self._pages and given.keys() <= set(_PageParams._fields):
            after = _PageParams(**given).cursor
            if after is None or isinstance(after, str):
                return self._pages[request.method](self._client_of(request), after)
        return None

    def _client_of(self, request: _Request) -> ClientSession:
        self.client = self.client or self._skills.sessions.start(request.client)
        return self.client

    def _open(self, request: _Request) -> None:
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


# Messages -----------------------------------------------------------------------------------------


def _parsed(line: bytes) -> dict[str, Any]:
    """Return the object in a line; raise ValueError for what two parsers of JSON might read differently."""
    text = line.decode()
    if "\\ud" in text.lower():
        raise ValueError("may be half of a character")
    value = json.loads(text, object_pairs_hook=_unique, parse_float=_refused, parse_constant=_refused)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refused(text: str) -> Any:
    raise ValueError("a number with a fraction")


def _older_request(message: Mapping[str, Any]) -> _Request | None:
    """Return a request of the older era if it has a known form."""
    params = message.get("params", {})
    if not _is_request(message) or not _is_meta(params.get("_meta", {})):
        return None
    if message["method"] != _INITIALIZE:
        return _Request(message["id"], message["method"], params, None)
    info = params.get("clientInfo")
    if not (
        params.keys() - {"_meta"} == {"protocolVersion", "capabilities", "clientInfo"}
        and isinstance(params["protocolVersion"], str)
        and _is_capabilities(params["capabilities"])
        and _is_client_info(info)
    ):
        return None
    return _Request(message["id"], _INITIALIZE, params, client_label(info["name"], info["version"]))


def _newer_request(message: Mapping[str, Any]) -> _Request | None:
    """Return a request of the newer era if it has a known form."""
    if not _is_request(message) or message["method"] == _INITIALIZE:
        return None
    params = message.get("params", {})
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not {_VERSION, _CAPABILITIES} <= meta.keys():
        return None
    info = meta.get(_CLIENT_INFO)
    if not (
        meta[_VERSION] == NEWER_VERSION
        and _is_capabilities(meta[_CAPABILITIES])
        and (_CLIENT_INFO not in meta or _is_client_info(info))
        and _is_meta({name: meta[name] for name in meta if name not in (_VERSION, _CAPABILITIES, _CLIENT_INFO)})
    ):
        return None
    label = client_label(info["name"], info["version"]) if info else None
    return _Request(message["id"], message["method"], params, label)


def _is_request(message: Mapping[str, Any]) -> bool:
    identity = message.get("id")
    return (
        message.keys() - {"params"} == {"jsonrpc", "id", "method"}
        and message["jsonrpc"] == "2.0"
        and isinstance(message["method"], str)
        and isinstance(message.get("params", {}), dict)
        and (isinstance(identity, str) or _is_number(identity))
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_MOST_ID < value < _MOST_ID


def _is_meta(meta: Any) -> bool:
    """Return True if this says at most where to report progress."""
    if not isinstance(meta, dict) or not meta.keys() <= {"progressToken"}:
        return False
    token = meta.get("progressToken", "")
    return isinstance(token, str) or _is_number(token)


def _is_client_info(info: Any) -> bool:
    return (
        isinstance(info, dict)
        and {"name", "version"} <= info.keys() <= {"name", "version", "title", "description", "websiteUrl"}
        and all(isinstance(value, str) for value in info.values())
    )


def _is_capabilities(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_capability(name, given) for name, given in value.items())


def _is_capability(name: str, given: Any) -> bool:
    if not isinstance(given, dict):
        return False
    if name in ("experimental", "extensions"):
        return all(isinstance(settings, dict) and _is_flat(settings) for settings in given.values())
    parts = _CAPABILITY_PARTS.get(name)
    return parts is not None and all(
        part in parts and isinstance(inner, parts[part]) and (not isinstance(inner, dict) or _is_flat(inner))
        for part, inner in given.items()
    )


def _is_flat(settings: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str | bool) or value is None or _is_number(value) for value in settings.values())


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
    return kind is str or kind is bool or value is None or (kind is int and _is_number(value))
