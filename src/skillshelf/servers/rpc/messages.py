"""Parse lines of a client into JSON-RPC 2.0 messages, and encode responses as lines.

Nothing here raises for what a client sent: a line that is not a valid message becomes the error to return.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NoReturn

from skillshelf.core.console import as_json
from skillshelf.core.limits import RPC_BATCH, RPC_DEPTH, RPC_LINE_BYTES
from skillshelf.core.records import NamedTuple

__all__ = [
    "INTERNAL",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REFUSED",
    "ClientResponse",
    "EncodedResult",
    "Incoming",
    "InvalidMessage",
    "Message",
    "Request",
    "error_response",
    "line_of",
    "parse_message",
    "too_long",
]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
REFUSED = -32000
"""The request is valid but cannot be carried out; `data.code` says why."""

Id = str | int | float | None


class Request(NamedTuple):
    """A request, or a notification if `has_id` is false: a notification gets no response."""

    id: Id
    method: str
    params: Any
    has_id: bool


class ClientResponse(NamedTuple):
    """A client's response to a request of the server; the result is None if it is an error."""

    id: Id
    result: Any


class InvalidMessage(NamedTuple):
    """A line that is not a valid JSON-RPC message, with the error to return."""

    id: Id
    code: int
    message: str


Message = Request | ClientResponse | InvalidMessage


class Incoming(NamedTuple):
    """The content of one line: one message, or those of a batch."""

    messages: tuple[Message, ...]
    form: Literal["single", "batch"] = "single"


def too_long() -> Incoming:
    """Return the error for a line that was dropped because of its length."""
    return _invalid(PARSE_ERROR, f"a message has at most {RPC_LINE_BYTES} bytes (RPC_LINE_BYTES)")


def parse_message(line: bytes) -> Incoming:
    """Return the messages of a line."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError:
        return _invalid(PARSE_ERROR, "the line is not UTF-8")
    except RecursionError:
        return _invalid(PARSE_ERROR, f"the message is deeper than {RPC_DEPTH} levels (RPC_DEPTH)")
    except ValueError as error:
        return _invalid(PARSE_ERROR, f"the line is not JSON: {str(error)[:200]}")
    if _is_too_deep(value):
        return _invalid(INVALID_REQUEST, f"the message is deeper than {RPC_DEPTH} levels (RPC_DEPTH)")
    if not isinstance(value, list):
        return Incoming((_message(value),))
    if not value:
        return _invalid(INVALID_REQUEST, "a batch holds at least one message")
    if len(value) > RPC_BATCH:
        return _invalid(INVALID_REQUEST, f"a batch holds at most {RPC_BATCH} messages (RPC_BATCH)")
    return Incoming(tuple(map(_message, value)), "batch")


def _invalid(code: int, message: str) -> Incoming:
    return Incoming((InvalidMessage(None, code, message),))


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a valid number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise ValueError("a number is too large")
    return number


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(RPC_DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return False
        level = inner
    return True


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        return InvalidMessage(None, INVALID_REQUEST, "a message is an object")
    given = value.get("id")
    valid_id = given if isinstance(given, str | int | float | None) and not isinstance(given, bool) else None
    if value.get("jsonrpc") != "2.0":
        return InvalidMessage(valid_id, INVALID_REQUEST, 'a message has the member "jsonrpc": "2.0"')
    if valid_id is None and given is not None:
        return InvalidMessage(None, INVALID_REQUEST, "an id is text, a number or null")
    if "method" not in value and ("result" in value or "error" in value):
        return ClientResponse(valid_id, None if "error" in value else value["result"])
    if not isinstance(value.get("method"), str):
        return InvalidMessage(valid_id, INVALID_REQUEST, "a request has a method, which is text")
    params = value.get("params")
    if not isinstance(params, dict | list | None):
        return InvalidMessage(valid_id, INVALID_REQUEST, "params is an object")
    return Request(valid_id, value["method"], {} if params is None else _without_surrogates(params), "id" in value)


def _without_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which JSON can escape but UTF-8 cannot encode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def error_response(id_: Id, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return an error as a message."""
    error = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return {"jsonrpc": "2.0", "id": id_, "error": error}


def _is_encoded(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("result"), EncodedResult)


class EncodedResult(bytes):
    """A result that is JSON already, as `line_of` writes it."""


def line_of(value: Any) -> bytes:
    """Return a message as one line."""
    if isinstance(value, list) and any(isinstance(one, dict) and _is_encoded(one) for one in value):
        return b"[" + b",".join(line_of(one)[:-1] for one in value) + b"]\n"
    try:
        if isinstance(value, dict) and _is_encoded(value):
            start = as_json({**value, "result": None}).removesuffix("null}\n").encode("utf-8", "backslashreplace")
            return b"".join((start, value["result"], b"}\n"))
        return as_json(value).encode("utf-8", "backslashreplace")
    except (TypeError, ValueError) as error:
        id_ = value.get("id") if isinstance(value, dict) else None
        return line_of(error_response(id_, INTERNAL, f"the result is not valid JSON: {error}"))
