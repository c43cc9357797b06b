"""A line of a client to JSON-RPC 2.0 messages, and answers to lines.

Nothing here raises for what a client sent: what is no message becomes the error that the protocol has for it.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NoReturn

from skillshelf.core.console import as_json
from skillshelf.core.limits import RPC_BATCH, RPC_DEPTH, RPC_LINE_BYTES

__all__ = [
    "INTERNAL",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REFUSED",
    "Incoming",
    "InvalidMessage",
    "Request",
    "ResponseMessage",
    "error_answer",
    "line_of",
    "parse_message",
    "too_long",
]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
REFUSED = -32000
"""A request that is well formed and still cannot be done; `data.code` says why."""

Id = str | int | float | None


class Request(NamedTuple):
    """A request, or without `is_answered` a notification, which nobody hears of again."""

    id: Id
    method: str
    params: Any
    is_answered: bool


class ResponseMessage(NamedTuple):
    """What a client answers to a request of the server; an error has no result."""

    id: Id
    result: Any


class InvalidMessage(NamedTuple):
    """What is no message, and what to say about it."""

    id: Id
    code: int
    message: str


Message = Request | ResponseMessage | InvalidMessage


class Incoming(NamedTuple):
    """What one line holds: one message, or those of a batch."""

    messages: tuple[Message, ...]
    form: Literal["single", "batch"] = "single"


class _NotJson(ValueError):
    pass


# A client's line ----------------------------------------------------------------------------------


def too_long() -> Incoming:
    """What stands for a line that was not read because of its length."""
    return _wrong(PARSE_ERROR, f"a message has at most {RPC_LINE_BYTES} bytes (RPC_LINE_BYTES)")


def parse_message(line: bytes) -> Incoming:
    """The messages of a line."""
    try:
        text = line.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except UnicodeDecodeError:
        return _wrong(PARSE_ERROR, "the line is not UTF-8")
    except RecursionError:
        return _wrong(PARSE_ERROR, f"the message is deeper than {RPC_DEPTH} levels (RPC_DEPTH)")
    except ValueError as error:
        return _wrong(PARSE_ERROR, f"the line is not JSON: {str(error)[:200]}")
    if _is_deep(value):
        return _wrong(INVALID_REQUEST, f"the message is deeper than {RPC_DEPTH} levels (RPC_DEPTH)")
    mend = _whole if _HALF.search(text) else _as_it_is
    if not isinstance(value, list):
        return Incoming((_message(value, mend),))
    if not value:
        return _wrong(INVALID_REQUEST, "a batch holds at least one message")
    if len(value) > RPC_BATCH:
        return _wrong(INVALID_REQUEST, f"a batch holds at most {RPC_BATCH} messages (RPC_BATCH)")
    return Incoming(tuple(_message(item, mend) for item in value), "batch")


def _wrong(code: int, message: str) -> Incoming:
    return Incoming((InvalidMessage(None, code, message),))


def _refuse(word: str) -> NoReturn:
    raise _NotJson(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise _NotJson("a number is too large")
    return number


def _is_deep(value: Any) -> bool:
    """Whether a value has more levels than a message may have."""
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


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _whole(value: Any) -> Any:
    """The value without halves of characters, which JSON can escape and nobody can send on."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def _as_it_is(value: Any) -> Any:
    return value


def _message(value: Any, mend: Callable[[Any], Any]) -> Message:
    if not isinstance(value, dict):
        return InvalidMessage(None, INVALID_REQUEST, "a message is an object")
    given = value.get("id")
    known_id = given if isinstance(given, str | int | float | None) and not isinstance(given, bool) else None
    if value.get("jsonrpc") != "2.0":
        return InvalidMessage(known_id, INVALID_REQUEST, 'a message has the member "jsonrpc": "2.0"')
    if known_id is None and given is not None:
        return InvalidMessage(None, INVALID_REQUEST, "an id is text, a number or null")
    if "method" not in value and ("result" in value or "error" in value):
        return ResponseMessage(known_id, None if "error" in value else value["result"])
    if not isinstance(value.get("method"), str):
        return InvalidMessage(known_id, INVALID_REQUEST, "a request has a method, which is text")
    params = value.get("params")
    if not isinstance(params, dict | list | None):
        return InvalidMessage(known_id, INVALID_REQUEST, "params is an object")
    return Request(known_id, value["method"], {} if params is None else mend(params), "id" in value)


# Answers ------------------------------------------------------------------------------------------


def error_answer(id_: Id, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """The answer to what cannot be done."""
    error = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return {"jsonrpc": "2.0", "id": id_, "error": error}


def line_of(value: Any) -> bytes:
    """A message as one line."""
    try:
        return as_json(value).encode("utf-8", "backslashreplace")
    except (TypeError, ValueError) as error:
        id_ = value.get("id") if isinstance(value, dict) else None
        return line_of(error_answer(id_, INTERNAL, f"the answer is no JSON: {error}"))
