"""A cursor that a client sent back to where its next page begins.

A cursor says after what the page begins, not at which number, so that what comes and goes between two pages moves
nothing: what stays is listed once.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Sequence

from skillshelf.core.values import CatalogSkill

__all__ = ["WrongCursor", "cursor_after", "key_in", "names_after", "skills_after"]

_MOST_CHARS = 8192


class WrongCursor(ValueError):
    """A cursor that this server did not give for this listing."""


def cursor_after(listing: str, *key: str) -> str:
    """The cursor for the page of a listing that begins after a key."""
    return urlsafe_b64encode(json.dumps([listing, *key]).encode()).decode()


def key_in(listing: str, cursor: str | None, *, length: int) -> list[str] | None:
    """The key in a cursor of this listing; None for the first page."""
    if cursor is None:
        return None
    try:
        if len(cursor) > _MOST_CHARS:
            raise ValueError
        parts = json.loads(urlsafe_b64decode(cursor.encode()).decode())
        if not isinstance(parts, list) or len(parts) != length + 1 or parts[0] != listing:
            raise ValueError
        if not all(isinstance(part, str) for part in parts):
            raise ValueError
    except (ValueError, RecursionError):
        raise WrongCursor("this cursor is not one of this listing; begin again without a cursor") from None
    return parts[1:]


def skills_after(skills: Sequence[CatalogSkill], key: Sequence[str] | None) -> Sequence[CatalogSkill]:
    """The skills, which are sorted by name and id, from the first after that name and id."""
    if key is None:
        return skills
    return skills[bisect_right(skills, tuple(key), key=lambda skill: (skill.name, skill.id)) :]


def names_after(names: Sequence[str], key: Sequence[str] | None) -> list[str]:
    """The names, which are sorted, that come after one."""
    return [name for name in names if key is None or name > key[0]]
