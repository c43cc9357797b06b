"""Read the messages of a client that have the usual form, without the SDK of the protocol.

What this module does not know it does not judge: a message of any other form is for the SDK.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from skillshelf.core.records import NamedTuple
from skillshelf.servers.mcp.client_sessions import client_label

__all__ = [
    "HANDSHAKE_VERSIONS",
    "INITIALIZE",
    "NEWER_VERSION",
    "SERVER_INFO_KEY",
    "PlainRequest",
    "is_plain_number",
    "newer_request",
    "older_request",
    "parsed_message",
]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions of the protocol that begin with a handshake, the latest last."""

NEWER_VERSION = "2026-07-28"
"""The version of the protocol without a handshake."""

INITIALIZE = "initialize"
"""The method that begins a conversation of the older era."""

_PREFIX = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES, _CLIENT_INFO = (
    _PREFIX + name for name in ("protocolVersion", "clientCapabilities", "clientInfo")
)
SERVER_INFO_KEY = _PREFIX + "serverInfo"
"""The member of `_meta` in which an answer of the newer era names the server."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""A character of two halves, or one half of it, as JSON may write it."""

_MOST_ID = 2**63
_CAPABILITY_PARTS: Mapping[str, Mapping[str, type]] = {
    "roots": {"listChanged": bool},
    "sampling": {"context": dict, "tools": dict},
    "elicitation": {"form": dict, "url": dict},
}


class PlainRequest(NamedTuple):
    """A request of a known form: the client that it names is a label, or None."""

    id: str | int
    method: str
    params: Mapping[str, Any]
    client: str | None


def parsed_message(line: bytes) -> dict[str, Any]:
    """Return the object in a line; raise ValueError for what two parsers of JSON might read differently."""
    text = line.decode()
    if _HALF.search(text):
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


def older_request(message: Mapping[str, Any]) -> PlainRequest | None:
    """Return a request of the older era if it has a known form."""
    params = message.get("params", {})
    if not _is_request(message) or not _is_meta(params.get("_meta", {})):
        return None
    if message["method"] != INITIALIZE:
        return PlainRequest(message["id"], message["method"], params, None)
    info = params.get("clientInfo")
    if not (
        params.keys() - {"_meta"} == {"protocolVersion", "capabilities", "clientInfo"}
        and isinstance(params["protocolVersion"], str)
        and _is_capabilities(params["capabilities"])
        and _is_client_info(info)
    ):
        return None
    return PlainRequest(message["id"], INITIALIZE, params, client_label(info["name"], info["version"]))


def newer_request(message: Mapping[str, Any]) -> PlainRequest | None:
    """Return a request of the newer era if it has a known form."""
    if not _is_request(message) or message["method"] == INITIALIZE:
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
    return PlainRequest(message["id"], message["method"], params, label)


def _is_request(message: Mapping[str, Any]) -> bool:
    identity = message.get("id")
    return (
        message.keys() - {"params"} == {"jsonrpc", "id", "method"}
        and message["jsonrpc"] == "2.0"
        and isinstance(message["method"], str)
        and isinstance(message.get("params", {}), dict)
        and (isinstance(identity, str) or is_plain_number(identity))
    )


def is_plain_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_MOST_ID < value < _MOST_ID


def _is_meta(meta: Any) -> bool:
    """Return True if this says at most where to report progress."""
    if not isinstance(meta, dict) or not meta.keys() <= {"progressToken"}:
        return False
    token = meta.get("progressToken", "")
    return isinstance(token, str) or is_plain_number(token)


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
    return all(isinstance(value, str | bool) or value is None or is_plain_number(value) for value in settings.values())
