"""Read `skillshelf.lock`: which tree of files each installed skill must be.

A lock that is not exactly what this version writes is refused with its line; it is never repaired or guessed at.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from skillshelf.catalog.tree import name_problem
from skillshelf.core import files
from skillshelf.core.limits import LOCK_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.validation import validate
from skillshelf.errors import ConfigurationError

__all__ = ["LOCK_FILE", "LOCK_VERSION", "LockedSkill", "UnusableLock", "is_installable_name", "parse_lock", "read_lock"]

LOCK_FILE = "skillshelf.lock"
LOCK_VERSION = 1

_TREE = re.compile(r"sha256:[0-9a-f]{64}\Z")
_MARKER = re.compile(rb"^(<{7}|={7}|>{7}|\|{7})( |$)", re.MULTILINE)


class LockedSkill(NamedTuple):
    """One installed skill: where it came from, the version that was fetched, and the tree of its files.

    `artifact` is the digest of the archive, the OCI manifest or the index entry; `path` is the folder inside the
    source, empty at its root.
    """

    source: str
    path: str
    ref: str | None
    commit: str | None
    artifact: str | None
    tree: str
    files: int
    bytes: int
    hosts: list[str]


class UnusableLock(ConfigurationError):
    """A lock that is damaged, newer or in conflict: nothing in it counts, and it is never written over."""


def read_lock(path: str) -> dict[str, LockedSkill] | None:
    """Return the skills of a lock, or None if there is no such file; raise UnusableLock."""
    if (kind := files.kind_at(path)) is None:
        return None
    if kind != "file":
        raise UnusableLock(f"{path}: it is a {kind}, not a file")
    try:
        data = files.read_file(path, limit=LOCK_BYTES, links="never")
    except OSError as error:
        raise UnusableLock(f"{path}: cannot be read: {error.strerror}") from None
    if data is None:
        raise UnusableLock(f"{path}: has more than {LOCK_BYTES} bytes (LOCK_BYTES)")
    return parse_lock(data, path)


def parse_lock(data: bytes, path: str) -> dict[str, LockedSkill]:
    """Return the skills of a lock by their names; `path` is named in errors."""
    if (marker := _MARKER.search(data)) is not None:
        line = data.count(b"\n", 0, marker.start()) + 1
        raise UnusableLock(f"{path}: line {line}: a merge conflict is not resolved")
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused_number)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnusableLock(f"{path}: line {line}: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UnusableLock(f"{path}: line {error.lineno}: {error.msg}") from None
    except _Repeated as error:
        line = _line_of(data, str(error))
        raise UnusableLock(f"{path}: line {line}: {str(error)!r} occurs twice") from None
    except (ValueError, RecursionError):
        raise UnusableLock(f"{path}: not a lock") from None
    return _skills_of(document, data, path)


def _skills_of(document: Any, data: bytes, path: str) -> dict[str, LockedSkill]:
    version = document.get("lock") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UnusableLock(f"{path}: not a lock: the member lock is missing")
    if version != LOCK_VERSION:
        raise UnusableLock(
            f"{path}: lock {version} is of another version of skillshelf (this one reads {LOCK_VERSION})"
        )
    skills = document.get("skills")
    if set(document) != {"lock", "skills"} or not isinstance(skills, dict):
        raise UnusableLock(f"{path}: a lock has the members lock and skills, and no other")
    found = {}
    for name, entry in skills.items():
        if (problem := _problem(name, entry)) is not None:
            raise UnusableLock(f"{path}: line {_line_of(data, name)}: {name!r}: {problem}")
        found[name] = LockedSkill(**entry)
    if (twin := name_problem(found)) is not None:
        raise UnusableLock(f"{path}: line {_line_of(data, twin)}: {twin!r}: another skill has nearly the same name")
    return found


def _problem(name: str, entry: Any) -> str | None:
    if not is_installable_name(name):
        return "not a name that a skill can be installed as"
    if not isinstance(entry, Mapping) or set(entry) != set(LockedSkill._fields):
        return f"needs exactly the members {', '.join(LockedSkill._fields)}"
    if (wrong := validate(entry, LockedSkill, "skill")) is not None:
        return str(wrong)
    if not _TREE.match(entry["tree"]):
        return "tree is not sha256: and 64 hex digits"
    return None


def is_installable_name(name: str) -> bool:
    """Return whether a skill may be installed under a name, which becomes the name of its folder."""
    return "/" not in name and name[:1] not in ("", ".", "-", "~") and name_problem([name]) is None


class _Repeated(ValueError):
    """A member that occurs twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Repeated(next(name for name in names if names.count(name) > 1))
    return found


def _refused_number(text: str) -> float:
    raise ValueError(text)


def _line_of(data: bytes, name: str) -> int:
    """Return the line of the last mention of a member."""
    return data.count(b"\n", 0, data.rfind(json.dumps(name, ensure_ascii=False).encode("utf-8", "replace"))) + 1
