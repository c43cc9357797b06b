"""Addresses `skill://name/path` to bytes inside that skill, and nowhere else."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import ADDRESS_CHARS, ADDRESS_SEGMENTS, LISTED_CHILDREN, LISTED_ENTRIES, RESOURCE_BYTES
from skillshelf.core.text import visible
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import AmbiguousSkill, FileReadError, LimitExceeded, PathEscape, ResourceNotFound, SkillNotFound

__all__ = [
    "Address",
    "Listing",
    "Resource",
    "digest_of",
    "list_files",
    "parse_address",
    "read_resource",
    "read_skill",
    "refusing",
    "resource_of",
]

SCHEME = "skill://"
SKILL_FILE = "SKILL.md"


class Address(NamedTuple):
    """A skill's name and the names on the way to one of its files, decoded and found harmless."""

    name: str
    segments: tuple[str, ...]


class Resource(NamedTuple):
    """One file of a skill; `content` is text, or base64 where the bytes are no UTF-8."""

    uri: str
    path: str
    content: str
    encoding: Literal["utf-8", "base64"]
    content_type: str
    size: int
    digest: str


class Listing(NamedTuple):
    """The files of a skill by relative path, how many there are, and whether some are left out."""

    files: tuple[str, ...]
    total: int
    truncated: bool


def digest_of(data: bytes) -> str:
    """The digest of some bytes, as it is written everywhere."""
    return "sha256:" + sha256(data).hexdigest()


# Addresses ----------------------------------------------------------------------------------------


def parse_address(uri: str) -> Address:
    """The address a text is; PathEscape, with the reason, for everything that is none."""
    if len(uri) > ADDRESS_CHARS:
        raise LimitExceeded(f"an address has at most {ADDRESS_CHARS} characters")
    if any("\ud800" <= c <= "\udfff" for c in uri):
        raise PathEscape("an address must be UTF-8")
    if not uri.startswith(SCHEME):
        raise PathEscape(f"not an address of the form {SCHEME}<name>/<path>")
    if any(c < " " or "\x7f" <= c < "\xa0" or c in "\\?#" for c in uri):
        raise PathEscape("control characters, backslashes, `?` and `#` must be percent-encoded in an address")
    name, _, path = uri[len(SCHEME) :].partition("/")
    if not name:
        raise PathEscape(f"an address needs a skill's name: {SCHEME}<name>")
    segments = path.removesuffix("/").split("/") if path else []
    if len(segments) > ADDRESS_SEGMENTS:
        raise LimitExceeded(f"an address has at most {ADDRESS_SEGMENTS} segments")
    return Address(_decoded(name), tuple(_segment(segment) for segment in segments))


def _decoded(text: str) -> str:
    """The text with its percent-encoding undone, once."""
    position = text.find("%")
    while position >= 0:
        if len(text[position + 1 : position + 3]) != 2 or not all(c in _HEX for c in text[position + 1 : position + 3]):
            raise PathEscape("a `%` in an address must be followed by two hexadecimal digits")
        position = text.find("%", position + 1)
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise PathEscape("an address must be UTF-8") from None


_HEX = frozenset("0123456789abcdefABCDEF")


def _segment(raw: str) -> str:
    """One name of a path, decoded; a name that means another folder is refused."""
    name = _decoded(raw)
    if not name or name.startswith("/"):
        raise PathEscape(f"Absolute paths are not allowed in {SCHEME} addresses")
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or "." in parts:
        raise PathEscape(f"Path traversal (..) is not allowed in {SCHEME} addresses")
    if len(parts) > 1 or any(c < " " or "\x7f" <= c < "\xa0" for c in name) or len(name.encode()) > 255:
        raise PathEscape("an address may not hold encoded slashes, backslashes or control characters")
    return name


# Reading ------------------------------------------------------------------------------------------


def read_skill(skill: CatalogSkill, *, limit: int) -> files.Contents:
    """A skill's SKILL.md, where it was when the catalog was made."""
    folder, name = os.path.split(skill.real_path)
    return _read(folder, (name,), limit=limit, shown=skill.path)


def read_resource(
    uri: str, skills: Sequence[CatalogSkill], profile: Profile, *, limit: int = RESOURCE_BYTES
) -> tuple[CatalogSkill, Resource]:
    """The file an address names, with its skill; an address of a folder gives the names in it."""
    address = parse_address(uri)
    skill = _named(address.name, skills)
    shown = "/".join(address.segments) or SKILL_FILE
    if not address.segments:
        return skill, resource_of(uri, skill.path, shown, read_skill(skill, limit=limit).data, profile)
    path = os.path.join(skill.dir, *address.segments)
    try:
        data = _read(skill.real_dir, address.segments, limit=limit, shown=shown).data
    except IsADirectoryError:
        names = _children(skill.real_dir, address.segments, shown)
        return skill, resource_of(uri, path, "children.txt", "\n".join(names).encode(), profile)
    return skill, resource_of(uri, path, shown, data, profile)


def _named(name: str, skills: Sequence[CatalogSkill]) -> CatalogSkill:
    named = [skill for skill in skills if skill.name == name]
    if not named:
        raise SkillNotFound(name)
    if len(named) > 1:
        raise AmbiguousSkill(name, [skill.path for skill in named])
    return named[0]


def resource_of(uri: str, path: str, shown: str, data: bytes, profile: Profile) -> Resource:
    """The resource that these bytes are; `shown` is the path in the skill, which decides its type."""
    kind = CONTENT_TYPES[profile.content_types](shown)
    try:
        return Resource(uri, path, data.decode("utf-8"), "utf-8", kind, len(data), digest_of(data))
    except UnicodeDecodeError:
        from base64 import b64encode

        return Resource(uri, path, b64encode(data).decode(), "base64", kind, len(data), digest_of(data))


def _read(folder: str, segments: Sequence[str], *, limit: int, shown: str) -> files.Contents:
    """A regular file below a folder, opened name by name and never through a link."""
    with refusing(shown, limit), files.Folder(folder) as here:
        return here.read(segments, limit=limit)


def _children(folder: str, segments: Sequence[str], shown: str) -> list[str]:
    with refusing(shown, 0), files.Folder(folder) as here:
        names = [visible(name) for name in here.children(segments)]
    if len(names) > LISTED_CHILDREN:
        return [*names[:LISTED_CHILDREN], f"({len(names) - LISTED_CHILDREN} more are not listed)"]
    return names


@contextmanager
def refusing(shown: str, limit: int) -> Iterator[None]:
    """Failures of the door as errors that name what was asked for; a folder stays a folder's error."""
    try:
        yield
    except FileNotFoundError:
        raise ResourceNotFound(shown) from None
    except IsADirectoryError:
        raise
    except files.NotRegular as error:
        raise PathEscape(f"not a regular file: {shown} ({error.kind})") from None
    except files.TooLarge as error:
        raise LimitExceeded(f"{shown} has {error.size} bytes; at most {limit} are read") from None
    except OSError as error:
        raise FileReadError(shown, error) from error


def list_files(skill: CatalogSkill, *, most: int, most_bytes: int | None) -> Listing:
    """The regular files of a skill but its SKILL.md, sorted before anything is cut."""
    try:
        with files.Folder(skill.real_dir) as here:
            found, complete = here.files(LISTED_ENTRIES)
    except OSError:
        return Listing((), 0, True)
    paths = sorted((path for path in found if path != SKILL_FILE), key=os.fsencode)
    kept: list[str] = []
    used = 0
    for path in paths[:most]:
        used += len(os.fsencode(path)) + 1
        if most_bytes is not None and used > most_bytes:
            break
        kept.append(path)
    return Listing(tuple(kept), len(paths), not complete or len(kept) < len(paths))


# Content types ------------------------------------------------------------------------------------


def _markdown_or_plain(path: str) -> str:
    return "text/markdown" if path.lower().endswith(".md") else "text/plain"


def _by_extension(path: str) -> str:
    if path.lower().endswith((".md", ".markdown")):
        return "text/markdown"
    known = _TYPES.get(path.lower().rpartition(".")[2])
    return known or "text/plain"


# The platform's table differs between machines; the same file must have the same type on all of them.
_TYPES = {
    "css": "text/css",
    "csv": "text/csv",
    "gif": "image/gif",
    "gz": "application/gzip",
    "htm": "text/html",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "pdf": "application/pdf",
    "png": "image/png",
    "py": "text/x-python",
    "sh": "application/x-sh",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "ttf": "font/ttf",
    "wasm": "application/wasm",
    "webp": "image/webp",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
}

CONTENT_TYPES = {"markdown-or-plain": _markdown_or_plain, "by-extension": _by_extension}
