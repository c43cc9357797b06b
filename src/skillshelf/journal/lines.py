"""An event to a line of a journal, and a line back to its event.

A line is JSON in one form only: UTF-8, no blanks, keys sorted by code point, text unescaped where JSON allows
it. So a line that means the same but reads otherwise was not written by us, and is found.
"""

import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping, Set
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

from skillshelf.core.limits import JOURNAL_DEPTH, JOURNAL_LINE_BYTES, JOURNAL_MEMBER_BYTES

__all__ = ["NOTHING_BEFORE", "RESERVED", "Line", "digest_of", "parse_line", "plain", "seal", "shortened"]

NOTHING_BEFORE = "0" * 64
"""What the first line of a journal has as `prev`."""

_MEMBERS: Mapping[str, type] = {"seq": int, "session": str, "ts_ms": int, "type": str, "prev": str, "sum": str}
RESERVED = frozenset(_MEMBERS)
"""The members that every event has; its payload stands beside them."""

_START_SHOWN = 200
_MOST_DIGITS = 20
_NO_CHARACTER = re.compile("[\ud800-\udfff]")


class Line(NamedTuple):
    """A line of a journal; where something is wrong with it `problem` says what, and there may be no record."""

    number: int
    record: dict[str, Any] | None
    problem: str | None
    digest: str = ""
    whole: bool = True


def digest_of(data: bytes) -> str:
    """The SHA-256 of bytes as 64 hex digits."""
    return sha256(data).hexdigest()


def seal(record: Mapping[str, Any]) -> tuple[bytes, str]:
    """The line of a record without its newline, and the `sum` that was put into it."""
    total = digest_of(_written(record))
    return _written({**record, "sum": total}), total


# Made once: `json.dumps` makes a new one for every line that is not written in its own form.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _written(value: Any) -> bytes:
    return _encode(value).encode()


# Values to JSON -----------------------------------------------------------------------------------


def plain(value: Any, depth: int = JOURNAL_DEPTH) -> Any:
    """The value as JSON can hold it: odd numbers and objects as text, bytes as base64."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _characters(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth == 0:
        return f"[cut: more than {JOURNAL_DEPTH} levels]"
    if isinstance(value, bytes | bytearray):
        return {"base64": b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        return {_characters(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]
    if isinstance(value, Set):
        # In an order of its own: that of a set differs from run to run.
        return sorted((plain(item, depth - 1) for item in value), key=_written)
    return _characters(str(value))


def _characters(text: str) -> str:
    """The text with what is no character, as a byte of a file name that is not UTF-8, written as an escape."""
    return text if text.isascii() else _NO_CHARACTER.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    point = ord(found[0])
    return f"\\x{point - 0xDC00:02x}" if 0xDC80 <= point <= 0xDCFF else f"\\u{point:04x}"


def shortened(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload that is too long for a line, with its long members, or all of it, cut to a digest and a start."""
    short = {name: _cut(value) for name, value in payload.items()}
    return short if len(_written(short)) < JOURNAL_LINE_BYTES // 2 else {"cut": _cut(payload)}


def _cut(value: Any) -> Any:
    data = _written(value)
    if len(data) <= JOURNAL_MEMBER_BYTES:
        return value
    return {
        "cut_bytes": len(data),
        "digest": f"sha256:{digest_of(data)}",
        "start": data[:_START_SHOWN].decode("utf-8", "ignore"),
    }


# JSON to values -----------------------------------------------------------------------------------


def parse_line(number: int, data: bytes) -> Line:
    """The line with its record, and with a problem if it is not exactly as `seal` writes it."""
    digest = digest_of(data)
    try:
        record = _record(data)
        if _written(record) != data:
            return Line(number, record, "its bytes are not as they were written", digest)
        body = _written({name: value for name, value in record.items() if name != "sum"})
    except UnicodeDecodeError as error:
        return Line(number, None, f"not UTF-8 at byte {error.start}", digest)
    except UnicodeEncodeError:
        return Line(number, None, "a text in it holds half a character", digest)
    except RecursionError:
        return Line(number, None, f"more than {JOURNAL_DEPTH} levels", digest)
    except ValueError as error:
        return Line(number, None, str(error), digest)
    return Line(number, record, None if digest_of(body) == record["sum"] else "its sum is not that of its text", digest)


def _record(data: bytes) -> dict[str, Any]:
    """The object in a line; a ValueError says in words why there is none."""
    if not data:
        raise ValueError("an empty line")
    text = data.decode("utf-8")
    try:
        value = _decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(value, dict):
        raise ValueError("not an event: no JSON object")
    for name, kind in _MEMBERS.items():
        if type(value.get(name)) is not kind:
            raise ValueError(f"not an event: no {name}, or no {'number' if kind is int else 'text'} in it")
    if text.count("{") + text.count("[") > JOURNAL_DEPTH and _is_deeper(value, JOURNAL_DEPTH):
        raise ValueError(f"more than {JOURNAL_DEPTH} levels")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def _integer(text: str) -> int:
    # Reading a number takes time by the square of its length.
    if len(text) > _MOST_DIGITS + 1:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text[:_MOST_DIGITS]} is no number")


_decode = json.JSONDecoder(parse_int=_integer, parse_float=_finite, parse_constant=_refuse).decode
