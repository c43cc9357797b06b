"""Write the pages of a catalogue as static files, with relative links only.

The pages are followed from the first one, so what no page links to is not written. The same skills give the same bytes.
"""

import json
import os
import posixpath
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TextIO
from urllib.parse import quote

from starlette.routing import compile_path

from skillshelf.core import files
from skillshelf.core.console import watched
from skillshelf.core.disk_writes import make_parents, remove_below, replace_file
from skillshelf.core.limits import WEB_SITE_FILE_BYTES, WEB_SITE_MARKER_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.servers.web.assets import asset
from skillshelf.servers.web.catalogue import Catalogue, slug_of
from skillshelf.servers.web.pages import HTML, PAGES, PLAIN, PageAnswer, PageRequest

__all__ = ["MARKER", "SITE_VERSION", "write_site"]

MARKER = ".skillshelf-site.json"
"""The file that marks a folder as a site of ours, and lists what was written."""

SITE_VERSION = 1


class _SitePage(NamedTuple):
    """A page by its path in the site and its query."""

    path: str
    query: tuple[tuple[str, str], ...] = ()


def write_site(catalogue: Catalogue, folder: str, *, progress: TextIO | None = None) -> int:
    """Write all pages into a folder that is empty or a site of ours; return the number of files.

    Files of an earlier site that are not written again are removed; others are left alone. Raise ConfigurationError if
    the folder is something else.
    """
    before = _require_own(folder)
    real = files.real_path(folder)
    written: list[str] = []
    _write(real, MARKER, _marker(before))
    try:
        for name, data in watched(_pages(catalogue), "Writing pages", progress):
            written.append(name)
            _write(real, name, data)
    except BaseException:
        # The next run removes what it does not need, also of this one.
        _write(real, MARKER, _marker(sorted({*before, *written})))
        raise
    for name in sorted({*before} - {*written}, reverse=True):
        _remove(real, name)
    _write(real, MARKER, _marker(sorted(written)))
    return len(written)


# The folder ---------------------------------------------------------------------------------------


def _require_own(folder: str) -> list[str]:
    """Return the files of an earlier site in a folder; create the folder if there is none."""
    kind = files.kind_at(files.real_path(folder))
    if kind is None:
        make_parents(folder)
        return []
    if kind != "folder":
        raise ConfigurationError(f"{folder} is a {kind}, not a folder")
    if not files.stamps_in(folder):
        return []
    marker = f"{folder}/{MARKER}"
    is_there = files.kind_at(marker) == "file"
    data = files.read_file(marker, limit=WEB_SITE_MARKER_BYTES, links="never") if is_there else None
    try:
        found = json.loads(data or b"")
        names = [name for name in found["files"] if isinstance(name, str) and _is_inner(name)]
        version = found["site"]
    except (ValueError, TypeError, KeyError):
        names, version = [], None
    if type(version) is int and version > SITE_VERSION:
        raise ConfigurationError(
            f"{marker}: version {version} is of a newer skillshelf (this one writes {SITE_VERSION}; update it, or "
            "name another folder)"
        )
    if version != SITE_VERSION:
        raise ConfigurationError(f"{folder} is neither empty nor a site that skillshelf wrote; name another folder")
    return names


def _is_inner(name: str) -> bool:
    return name.isprintable() and not {"", ".", ".."} & {*name.split("/")}


def _marker(names: list[str]) -> bytes:
    return (json.dumps({"site": SITE_VERSION, "files": names}, indent=0) + "\n").encode()


def _write(real: str, name: str, data: bytes) -> None:
    path = f"{real}/{name}"
    folder = os.path.dirname(path)
    make_parents(folder)
    if files.real_path(folder) != folder or files.kind_at(path) not in (None, "file"):
        raise ConfigurationError(f"{path} is behind a link, or not a file; nothing is written through links")
    replace_file(path, data, mode=0o644, durable=False)


def _remove(real: str, name: str) -> None:
    # A file that somebody removed is gone, and a folder that is not empty stays.
    with suppress(OSError):
        remove_below(real, name)
        parts = name.split("/")[:-1]
        while parts:
            remove_below(real, "/".join(parts))
            parts.pop()


# The pages ----------------------------------------------------------------------------------------


def _pages(catalogue: Catalogue) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of every file, beginning with the first page and following all links."""
    names = _FileNames()
    patterns = [(compile_path(path)[0], page) for path, page in PAGES]
    waiting = deque([_SitePage("/")])
    known = set(waiting)
    while waiting:
        target = waiting.popleft()
        name = names.of(target)

        def link(path: str, query: Mapping[str, str], here: str = name) -> str:
            other = _SitePage(path, tuple(sorted(query.items())))
            if other not in known:
                known.add(other)
                waiting.append(other)
            return quote(posixpath.relpath(names.of(other), posixpath.dirname(here) or "."))

        if target.path.startswith("/static/"):
            found = asset(target.path.removeprefix("/static/"))
            yield name, found.data if found is not None else b""
            continue
        matches = ((pattern.match(target.path), page) for pattern, page in patterns)
        match, page = next((match, page) for match, page in matches if match)
        assert match is not None
        answer = page(PageRequest(catalogue, match.groupdict(), dict(target.query), link, live=False))
        is_file = name.endswith(".txt")
        yield name, _UNREAD if is_file and answer.media_type == HTML else _bytes(answer)


_UNREAD = b"This file could not be read, and is not a part of this site.\n"


def _bytes(answer: PageAnswer) -> bytes:
    """Return what a file of the site holds: a file that is no text, or large, is only described."""
    if answer.media_type not in (HTML, PLAIN):
        return f"This file is not text. Its {len(answer.body):,} bytes are not a part of this site.\n".encode()
    if answer.media_type == PLAIN and len(answer.body) > WEB_SITE_FILE_BYTES:
        return f"This file has {len(answer.body):,} bytes, more than this site copies.\n".encode()
    return answer.body


class _FileNames:
    """The file of each page: plain characters only, and no two that differ in case alone."""

    def __init__(self) -> None:
        self._names: dict[_SitePage, str] = {}
        self._taken: set[str] = set()

    def of(self, target: _SitePage) -> str:
        """Return the name of the file of a page."""
        if target not in self._names:
            stem, suffix = _name(target)
            name, number = f"{stem}{suffix}", 2
            while name.lower() in self._taken:
                name, number = f"{stem}~~{number}{suffix}", number + 1
            self._taken.add(name.lower())
            self._names[target] = name
        return self._names[target]


def _name(target: _SitePage) -> tuple[str, str]:
    """Return the name of the file of a page in two parts, between which a number may come."""
    if target.path.startswith("/static/"):
        return posixpath.splitext(target.path[1:])
    parts = [part for part in target.path.split("/") if part]
    if len(parts) > 2 and parts[0] == "skills" and parts[2] in ("raw", "files"):
        # Whatever it is called, a web server gives it as plain text.
        rest = [slug_of(part) for part in parts[3:]] or ["SKILL.md"]
        return "/".join(["skills", *map(_folder, [parts[1], "files", *rest[:-1]]), rest[-1]]), ".txt"
    parts += ["_".join(f"{key}-{slug_of(value)}" for key, value in target.query)] if target.query else []
    return "/".join([*map(_folder, parts), "index"]), ".html"


def _folder(part: str) -> str:
    """Return the name of a folder, which no file of the site has: `skills/index.html` may be a page or a skill."""
    return f"{part}~" if part.lower().endswith((".html", ".txt")) else part
