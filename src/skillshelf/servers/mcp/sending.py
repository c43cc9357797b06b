"""A result to one that can be sent: a name of a file that is no text must not end the server."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from skillshelf.core.text import visible

__all__ = ["only_text", "sendable"]


async def only_text(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a method gives, with nothing in it that cannot be written as UTF-8."""
    return sendable(await call_next(ctx))


def sendable(value: Any) -> Any:
    """The value itself where it can be written; else with each text that is none written out."""
    try:
        to_json(value)
    except PydanticSerializationError:
        return _mended(value)
    return value


def _mended(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(inner) for inner in value]
    return visible(value) if isinstance(value, str) and not _is_utf8(value) else value


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
