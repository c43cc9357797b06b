"""The templates of the pages, and the two files that they load: a style sheet and a small script."""

import os
from functools import cache

from skillshelf.core import files
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.records import NamedTuple

__all__ = ["Asset", "asset", "asset_names", "template_source"]

_HERE = os.path.dirname(os.path.abspath(__file__))
_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file that pages load."""

    data: bytes
    media_type: str


def asset_names() -> tuple[str, ...]:
    """Return the names of all files that pages load."""
    return tuple(_TYPES)


@cache
def _read(folder: str, name: str) -> bytes | None:
    return files.read_file(f"{_HERE}/{folder}/{name}", limit=CONFIG_BYTES, links="follow")


def asset(name: str) -> Asset | None:
    """Return a file that pages load; None for any other name."""
    data = _read("static", name) if name in _TYPES else None
    return Asset(data, _TYPES[name]) if data is not None else None


def template_source(name: str) -> str | None:
    """Return the text of a template by its name; None if there is none."""
    data = _read("templates", name)
    return data.decode("utf-8") if data is not None else None
