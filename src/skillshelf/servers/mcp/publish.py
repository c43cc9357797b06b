"""A cursor that a client sent back to where its next page begins.

A cursor says after what the page begins, not at which number, so that what comes and goes between two pages moves
nothing: what stays is listed once.
"""

import json
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote

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
from skillshelf.core.values import CatalogSkill, Stamp

__all__ = [
    "LeftOut",
    "Published",
    "Publisher",
    "SkillEntry",
    "SkillState",
    "WrongCursor",
    "address",
    "cursor_after",
    "key_in",
    "names_after",
    "skills_after",
]


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


NOT_SERVED = frozenset({".git", ".hg", ".jj", ".svn", "__pycache__", ".DS_Store"})
"""What tools leave in a folder and nobody means to be part of a skill."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST = {"description": 1024, "compatibility": 500}
"""Characters that the standard lets a field have."""
_REPAIRS = ("yaml-colon", "yaml-brackets", "yaml-tab")
_TRIES = 5
_MOST_DIGESTS = 200_000


def address(*segments: str) -> str:
    """The one spelling of the address with these segments."""
    return SCHEME + "/".join(quote(segment, safe="") for segment in segments)


class SkillEntry(NamedTuple):
    """A published skill: the address of its SKILL.md, its frontmatter as written, every file with its digest."""

    uri: str
    frontmatter: Mapping[str, Any]
    resources: tuple[Mapping[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """The form on the wire."""
        return {"uri": self.uri, "frontmatter": self.frontmatter, "resources": list(self.resources)}


class LeftOut(NamedTuple):
    """A SKILL.md that is not published, and why."""

    uri: str
    reason: str


class SkillState(NamedTuple):
    """One look at the folder of a skill: where it is published, and what of it can be."""

    skill: CatalogSkill
    base: tuple[str, ...]
    files: Mapping[str, Stamp]
    folders: tuple[str, ...]
    complete: bool

    def uri(self, path: str = "") -> str:
        """The address of a file or folder of the skill."""
        return address(*self.base, *(path.split("/") if path else ()))


class Published(NamedTuple):
    """A SKILL.md that may be published: its path in the folder that was looked at, and what it says."""

    look: SkillState
    path: str
    frontmatter: Mapping[str, Any]
    data: bytes

    @property
    def uri(self) -> str:
        """Its address."""
        return self.look.uri(self.path)

    @property
    def folder(self) -> str:
        """The folder it makes a skill of, with a slash at its end, or nothing for the folder itself."""
        return self.path.removesuffix(SKILL_FILE)


class Publisher:
    """Looks at folders, and remembers the digests of the files it read."""

    def __init__(self) -> None:
        self._digests: dict[Stamp, str] = {}

    def look(self, skill: CatalogSkill, base: tuple[str, ...]) -> SkillState:
        """What of a skill's folder can be served; OSError if there is no such folder any more."""
        with files.Folder(skill.real_dir) as folder:
            tree = _settled_tree(folder)
        served = {path: stamp for path, stamp in tree.files.items() if _is_address(base, path)}
        folders = tuple(path for path in tree.folders if _is_address(base, path))
        return SkillState(skill, base, dict(sorted(served.items())), folders, tree.complete)

    def skills(self, look: SkillState) -> Iterator[Published | LeftOut]:
        """The skill itself, then each one inside it; what may not be published comes with the reason."""
        inner = [path for path in look.files if path.endswith("/" + SKILL_FILE)]
        for path in (SKILL_FILE, *inner):
            try:
                with files.Folder(look.skill.real_dir) as folder:
                    data, _ = folder.read_stamped(path.split("/"), limit=SKILL_FILE_BYTES)
            except OSError as error:
                yield LeftOut(look.uri(path), f"it cannot be read: {error.strerror or type(error).__name__}")
                continue
            fields, reason = _frontmatter(data, _name_for(look, path))
            reason = reason or _too_much(look, path.removesuffix(SKILL_FILE))
            yield LeftOut(look.uri(path), reason) if reason else Published(look, path, fields, data)

    def entry(self, published: Published) -> SkillEntry:
        """The entry of a skill; OSError if its folder does not keep still long enough to be read."""
        manifest = []
        with files.Folder(published.look.skill.real_dir) as folder:
            for path, stamp in published.look.files.items():
                if path == published.path:
                    # Of the very bytes that the frontmatter was read from.
                    digest, size = digest_of(published.data), len(published.data)
                elif path.startswith(published.folder):
                    digest, size = self._measured(folder, path, stamp)
                else:
                    continue
                manifest.append({"uri": published.look.uri(path), "digest": digest, "size": size})
        return SkillEntry(published.uri, published.frontmatter, tuple(manifest))

    def _measured(self, folder: files.Folder, path: str, stamp: Stamp) -> tuple[str, int]:
        if stamp in self._digests:
            return self._digests[stamp], stamp[2]
        now = time.time_ns()
        data, state = folder.read_stamped(path.split("/"), limit=PUBLISHED_BYTES)
        digest = digest_of(data)
        # A file may change twice within one tick of the clock that its state is told by.
        if now - max(state[3], state[4]) > SETTLED_NS and state[2] == len(data):
            if len(self._digests) >= _MOST_DIGESTS:
                self._digests.clear()
            self._digests[state] = digest
        return digest, len(data)


def _settled_tree(folder: files.Folder) -> files.Tree:
    """The tree below a folder; looked at again where something went away under way."""
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError):
            return folder.tree(LISTED_ENTRIES, without=NOT_SERVED)
    return folder.tree(LISTED_ENTRIES, without=NOT_SERVED)


def _is_address(base: tuple[str, ...], path: str) -> bool:
    """Whether a file can be asked for: its name is text without control characters, and the whole not too long."""
    segments = (*base, *path.split("/"))
    if len(segments) > ADDRESS_SEGMENTS or "\\" in path or not _is_text(path):
        return False
    return len(address(*segments)) <= ADDRESS_CHARS


def _is_text(path: str) -> bool:
    return not any(c < " " or "\x7f" <= c < "\xa0" or "\ud800" <= c <= "\udfff" for c in path)


def _name_for(look: SkillState, path: str) -> str:
    """The name that a SKILL.md must have for its address to be right."""
    return look.skill.name if path == SKILL_FILE else path.split("/")[-2]


def _frontmatter(data: bytes, expected: str) -> tuple[Mapping[str, Any], str | None]:
    """The fields of a SKILL.md, and why they cannot be published, if so."""
    document = parse(data, whole=True)
    fields, name = document.fields, document.fields.get("name")
    repaired = next((finding for finding in document.findings if finding.rule in _REPAIRS), None)
    if repaired is not None:
        return fields, f"its frontmatter is no valid YAML (line {repaired.line}); skillshelf check --fix repairs it"
    if not fields:
        return fields, "it has no frontmatter that can be read"
    if not isinstance(name, str):
        return fields, "its frontmatter has no `name` that is text"
    if len(name) > 64 or not _NAME.fullmatch(name):
        return fields, f"its name breaks the standard: {name[:80]!r}; lower-case letters, digits and single hyphens"
    if name != expected:
        return fields, f"it says that its name is {name!r}, and its address needs {expected!r}"
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        return fields, "its frontmatter has no `description` that is text"
    return fields, _too_long(fields)


def _too_long(fields: Mapping[str, Any]) -> str | None:
    """Which field is longer than the standard lets it be."""
    for field, most in _LONGEST.items():
        value = fields.get(field)
        if isinstance(value, str) and len(value.strip()) > most:
            return f"its `{field}` has {len(value.strip())} characters, and the standard allows {most}"
    return None


def _too_much(look: SkillState, folder: str) -> str | None:
    """What is more in a skill than the extension lets a server publish."""
    inside = [stamp[2] for path, stamp in look.files.items() if path.startswith(folder)]
    if not look.complete or len(inside) > PUBLISHED_FILES:
        return f"it has more than {PUBLISHED_FILES} files"
    if sum(inside) > PUBLISHED_BYTES:
        return f"its files have more than {PUBLISHED_BYTES} bytes together"
    return None
