"""Build the entries of the skills extension from folders of skills, and encode the cursors of listings.

A cursor holds the last key of a page, not a position: skills that appear or disappear between two pages do not shift
the others.
"""

import json
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from errno import ENOENT
from typing import Any
from urllib.parse import quote, unquote

from skillshelf.catalog.document import parse
from skillshelf.catalog.load import SCHEME, SKILL_FILE, digest_of
from skillshelf.core import files
from skillshelf.core.limits import (
    ADDRESS_CHARS,
    ADDRESS_SEGMENTS,
    LISTED_ENTRIES,
    PUBLISHED_BYTES,
    PUBLISHED_FILES,
    SETTLED_NS,
    SKILL_FILE_BYTES,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill, Stamp

__all__ = [
    "EntryBuilder",
    "InvalidCursor",
    "OmittedSkill",
    "PublishableFolder",
    "PublishableSkill",
    "SkillEntry",
    "address",
    "cursor_after",
    "cursor_key",
    "names_after",
    "skills_after",
]

_CURSOR_CHARS = 8192


class InvalidCursor(ValueError):
    """A cursor that this server did not return for this listing."""


def cursor_after(listing: str, *key: str) -> str:
    """Return the cursor of the page of a listing that begins after a key."""
    return urlsafe_b64encode(json.dumps([listing, *key]).encode()).decode()


def cursor_key(listing: str, cursor: str | None, *, length: int) -> list[str] | None:
    """Return the key in a cursor of this listing, or None for the first page."""
    if cursor is None:
        return None
    try:
        if len(cursor) > _CURSOR_CHARS:
            raise ValueError
        parts = json.loads(urlsafe_b64decode(cursor.encode()).decode())
        if not isinstance(parts, list) or len(parts) != length + 1 or parts[0] != listing:
            raise ValueError
        if not all(isinstance(part, str) for part in parts):
            raise ValueError
    except (ValueError, RecursionError):
        raise InvalidCursor("this cursor does not belong to this listing (start again without a cursor)") from None
    return parts[1:]


def skills_after(skills: Sequence[CatalogSkill], key: Sequence[str] | None) -> Sequence[CatalogSkill]:
    """Return the skills after a name and id; the skills are sorted by both."""
    if key is None:
        return skills
    return skills[bisect_right(skills, tuple(key), key=lambda skill: (skill.name, skill.id)) :]


def names_after(names: Sequence[str], key: Sequence[str] | None) -> list[str]:
    """Return the names after the one in a key; the names are sorted."""
    return [name for name in names if key is None or name > key[0]]


NOT_SERVED = frozenset({".git", ".hg", ".jj", ".svn", "__pycache__", ".DS_Store"})
"""Files and folders that tools create and that are not part of a skill."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST = {"description": 1024, "compatibility": 500}
"""The maximum number of characters of a field by the standard."""
_REPAIRS = ("yaml-colon", "yaml-brackets", "yaml-tab")
_TRIES = 5
_MOST_DIGESTS = 200_000


def address(*segments: str) -> str:
    """Return the canonical address with these segments."""
    return SCHEME + "/".join(quote(files.path_bytes(segment), safe="") for segment in segments)


class SkillEntry(NamedTuple):
    """A published skill: the address of its SKILL.md, its frontmatter as written, every file with its digest."""

    uri: str
    frontmatter: Mapping[str, Any]
    resources: tuple[Mapping[str, Any], ...]

    def path_of(self, resource: Mapping[str, Any]) -> str:
        """Return the path of one of its files in the folder of the skill."""
        return unquote(resource["uri"].removeprefix(self.uri.removesuffix(SKILL_FILE)), errors="surrogateescape")

    def to_dict(self) -> dict[str, Any]:
        """Return the form on the wire."""
        return {"uri": self.uri, "frontmatter": self.frontmatter, "resources": list(self.resources)}


class OmittedSkill(NamedTuple):
    """A SKILL.md that is not published, with the reason."""

    uri: str
    reason: str


class PublishableFolder(NamedTuple):
    """The files and folders of a skill that can be published, from one scan of its folder, and its base address.

    `contents` are the bytes of the files of an installed skill, which were checked; None for any other.
    """

    skill: CatalogSkill
    base: tuple[str, ...]
    files: Mapping[str, Stamp]
    folders: tuple[str, ...]
    complete: bool
    contents: Mapping[str, files.Contents] | None = None

    def uri(self, path: str = "") -> str:
        """Return the address of a file or folder of the skill."""
        return address(*self.base, *(path.split("/") if path else ()))


class PublishableSkill(NamedTuple):
    """A SKILL.md that may be published: its path in the scanned folder, its frontmatter and its bytes."""

    state: PublishableFolder
    path: str
    frontmatter: Mapping[str, Any]
    data: bytes

    @property
    def uri(self) -> str:
        """The address of the file."""
        return self.state.uri(self.path)

    @property
    def folder(self) -> str:
        """The folder of the file with a trailing slash, or nothing for the scanned folder itself."""
        return self.path.removesuffix(SKILL_FILE)


class EntryBuilder:
    """Scans folders of skills and caches the digests of their files."""

    def __init__(self) -> None:
        self._digests: dict[Stamp, str] = {}

    def scan(
        self, skill: CatalogSkill, base: tuple[str, ...], contents: Mapping[str, files.Contents] | None = None
    ) -> PublishableFolder:
        """Return the part of a skill's folder that can be served; raise OSError if the folder is gone.

        `contents` are the files of an installed skill, which are all that it has.
        """
        if contents is not None:
            return _installed_folder(skill, base, contents)
        with files.Folder(skill.real_dir) as folder:
            tree = _settled_tree(folder)
        served = {path: stamp for path, stamp in tree.files.items() if _is_address(base, path)}
        folders = tuple(path for path in tree.folders if _is_address(base, path))
        return PublishableFolder(skill, base, dict(sorted(served.items())), folders, tree.complete)

    def skills(self, state: PublishableFolder) -> Iterator[PublishableSkill | OmittedSkill]:
        """Yield the skill itself, then each one inside it; those that may not be published with the reason."""
        inner = [path for path in state.files if path.endswith("/" + SKILL_FILE)]
        for path in (SKILL_FILE, *inner):
            try:
                data = _skill_file(state, path)
            except OSError as error:
                yield OmittedSkill(state.uri(path), f"it cannot be read: {error.strerror or type(error).__name__}")
                continue
            expected = state.skill.name if path == SKILL_FILE else path.split("/")[-2]
            fields, reason = _frontmatter(data, expected)
            reason = reason or _too_much(state, path.removesuffix(SKILL_FILE))
            yield OmittedSkill(state.uri(path), reason) if reason else PublishableSkill(state, path, fields, data)

    def own(self, state: PublishableFolder) -> PublishableSkill:
        """Return the skill itself, whether or not the extension takes it; raise OSError if it cannot be read."""
        data = _skill_file(state, SKILL_FILE)
        return PublishableSkill(state, SKILL_FILE, parse(data, whole=True).fields, data)

    def entry(self, published: PublishableSkill) -> SkillEntry:
        """Return the entry of a skill; raise OSError if its folder changes while it is read."""
        manifest = []
        contents = published.state.contents
        with files.Folder(published.state.skill.real_dir) as folder:
            for path, stamp in published.state.files.items():
                if path == published.path:
                    # The digest is of the same bytes as the frontmatter.
                    digest, size = digest_of(published.data), len(published.data)
                elif not path.startswith(published.folder):
                    continue
                elif contents is not None:
                    digest, size = digest_of(contents[path].data), stamp[2]
                else:
                    digest, size = self._digest(folder, path, stamp)
                manifest.append({"uri": published.state.uri(path), "digest": digest, "size": size})
        return SkillEntry(published.uri, published.frontmatter, tuple(manifest))

    def _digest(self, folder: files.Folder, path: str, stamp: Stamp) -> tuple[str, int]:
        if stamp in self._digests:
            return self._digests[stamp], stamp[2]
        now = time.time_ns()
        data, state = folder.read_stamped(path.split("/"), limit=PUBLISHED_BYTES)
        digest = digest_of(data)
        # A file may change twice within one tick of the file system clock.
        if now - max(state[3], state[4]) > SETTLED_NS and state[2] == len(data):
            if len(self._digests) >= _MOST_DIGESTS:
                self._digests.clear()
            self._digests[state] = digest
        return digest, len(data)


def _installed_folder(
    skill: CatalogSkill, base: tuple[str, ...], contents: Mapping[str, files.Contents]
) -> PublishableFolder:
    """Return the files of an installed skill that can be served, from the bytes that were checked."""
    served = [path for path in sorted(contents) if NOT_SERVED.isdisjoint(path.split("/")) and _is_address(base, path)]
    above = {path[:at] for path in served for at, c in enumerate(path) if c == "/"}
    sizes = {path: (0, 0, len(contents[path].data), 0, 0) for path in served}
    return PublishableFolder(skill, base, sizes, tuple(sorted(above)), complete=True, contents=contents)


def _skill_file(state: PublishableFolder, path: str) -> bytes:
    """Return the bytes of a SKILL.md; raise OSError if it cannot be read."""
    if state.contents is not None:
        if path not in state.contents or len(state.contents[path].data) > SKILL_FILE_BYTES:
            raise FileNotFoundError(ENOENT, "No such file within the limit")
        return state.contents[path].data
    with files.Folder(state.skill.real_dir) as folder:
        return folder.read_stamped(path.split("/"), limit=SKILL_FILE_BYTES)[0]


def _settled_tree(folder: files.Folder) -> files.Tree:
    """Return the tree below a folder; it is read again if a file was removed meanwhile."""
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError):
            return folder.tree(LISTED_ENTRIES, without=NOT_SERVED)
    return folder.tree(LISTED_ENTRIES, without=NOT_SERVED)


def _is_address(base: tuple[str, ...], path: str) -> bool:
    """Return True if a file has a valid address: without control characters and backslashes, and not too long."""
    segments = (*base, *path.split("/"))
    if len(segments) > ADDRESS_SEGMENTS or "\\" in path:
        return False
    if any(c < " " or "\x7f" <= c < "\xa0" for c in path):
        return False
    return len(address(*segments)) <= ADDRESS_CHARS


def _frontmatter(data: bytes, expected: str) -> tuple[Mapping[str, Any], str | None]:
    """Return the fields of a SKILL.md, and the reason if they cannot be published; its address requires a name."""
    document = parse(data, whole=True)
    fields, name = document.fields, document.fields.get("name")
    repaired = next((finding for finding in document.findings if finding.rule in _REPAIRS), None)
    if repaired is not None:
        return fields, f"its frontmatter is not valid YAML at line {repaired.line} (run `skillshelf check --fix`)"
    if not fields:
        return fields, "it has no readable frontmatter"
    if not isinstance(name, str):
        return fields, "its frontmatter has no `name`, or it is not text"
    if len(name) > 64 or not _NAME.fullmatch(name):
        return fields, f"its name {name[:80]!r} is not valid: use lower-case letters, digits and single hyphens"
    if name != expected:
        return fields, f"its name is {name!r}, but its address requires {expected!r}"
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        return fields, "its frontmatter has no `description`, or it is not text"
    return fields, _too_long(fields)


def _too_long(fields: Mapping[str, Any]) -> str | None:
    """Return the reason if a field is longer than the standard allows."""
    for field, most in _LONGEST.items():
        value = fields.get(field)
        if isinstance(value, str) and len(value.strip()) > most:
            return f"its `{field}` has {len(value.strip())} characters; the standard allows {most}"
    return None


def _too_much(state: PublishableFolder, folder: str) -> str | None:
    """Return the reason if a skill has more files or bytes than the extension allows."""
    inside = [stamp[2] for path, stamp in state.files.items() if path.startswith(folder)]
    if not state.complete or len(inside) > PUBLISHED_FILES:
        return f"it has more than {PUBLISHED_FILES} files"
    if sum(inside) > PUBLISHED_BYTES:
        return f"its files have more than {PUBLISHED_BYTES} bytes in total"
    return None
