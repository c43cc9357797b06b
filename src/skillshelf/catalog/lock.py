"""Read `skillshelf.lock`, and tell which tree of files the folder of an installed skill must be.

A lock that is not exactly what this version writes is refused with its line; it is never repaired or guessed at.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from skillshelf.catalog.lock_places import INSTALLED, LOCK_FILE, user_lock_path
from skillshelf.catalog.tree import folded_path, name_problem
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.environment import (
    Environment,
    find_repository,
    user_data_folder,
    user_state_folder,
)
from skillshelf.core.limits import INSTALLED_NAME_BYTES, LOCK_BYTES, RECORDS_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut
from skillshelf.core.validation import validate
from skillshelf.errors import ConfigurationError

__all__ = [
    "INSTALLED",
    "LOCK_FILE",
    "LOCK_VERSION",
    "LockedSkill",
    "LockedTree",
    "Locks",
    "UnusableLock",
    "is_installable_name",
    "locked_tree",
    "parse_lock",
    "read_lock",
]

LOCK_VERSION = 1

_MARKERS = (".git", ".jj", ".hg")

_QUOTED = 200
"""Characters of a lock that a message quotes."""

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
        raise UnusableLock(f"{path}: it is a {kind}, not a file; move it away")
    try:
        data = files.read_file(path, limit=LOCK_BYTES, links="never")
    except OSError as error:
        raise UnusableLock(f"{path}: cannot be read: {error.strerror}") from None
    if data is None:
        raise UnusableLock(f"{path}: has more than {LOCK_BYTES} bytes (LOCK_BYTES)")
    return parse_lock(data, path)


def parse_lock(data: bytes, path: str) -> dict[str, LockedSkill]:
    """Return the skills of a lock by their names; `path` is named in errors."""
    return dict(_parsed_lock(data, path))


# A change of skills needs the lock several times: before, after, and in the generations of both.
@lru_cache(maxsize=2)
def _parsed_lock(data: bytes, path: str) -> dict[str, LockedSkill]:
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
        raise UnusableLock(f"{path}: line {line}: {_quoted(str(error))} occurs twice") from None
    except (ValueError, RecursionError):
        raise UnusableLock(f"{path}: not a lock") from None
    return _skills_of(document, data, path)


def _skills_of(document: Any, data: bytes, path: str) -> dict[str, LockedSkill]:
    version = document.get("lock") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UnusableLock(f"{path}: not a lock: the member lock is missing")
    if version != LOCK_VERSION:
        raise UnusableLock(
            f"{path}: lock {cut(str(version), 20)} is of another version of skillshelf (this one reads {LOCK_VERSION})"
        )
    skills = document.get("skills")
    if set(document) != {"lock", "skills"} or not isinstance(skills, dict):
        raise UnusableLock(f"{path}: a lock has the members lock and skills, and no other")
    found = {}
    for name, entry in skills.items():
        if (problem := _problem(name, entry)) is not None:
            raise UnusableLock(f"{path}: line {_line_of(data, name)}: {_quoted(name)}: {cut(problem, _QUOTED)}")
        found[name] = LockedSkill(**entry)
    if (twin := _twin(found)) is not None:
        line = _line_of(data, twin)
        raise UnusableLock(f"{path}: line {line}: {_quoted(twin)}: another skill has nearly the same name")
    return found


_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("source", "path", "tree"), (str,)),
    **dict.fromkeys(("ref", "commit", "artifact"), (str, type(None))),
    **dict.fromkeys(("files", "bytes"), (int,)),
    "hosts": (list,),
}


def _problem(name: str, entry: Any) -> str | None:
    if not is_installable_name(name):
        return "not a name that a skill can be installed as"
    if not isinstance(entry, Mapping) or set(entry) != set(LockedSkill._fields):
        return f"needs exactly the members {', '.join(LockedSkill._fields)}"
    # Validation costs more than the rest of reading a lock, and nearly every entry is right.
    if any(type(entry[member]) not in types for member, types in _TYPES.items()) or not {
        *map(type, entry["hosts"])
    } <= {str}:
        return str(validate(entry, LockedSkill, "skill") or "a member has a wrong type")
    if not _TREE.match(entry["tree"]):
        return "tree is not sha256: and 64 hex digits"
    return None


def is_installable_name(name: str) -> bool:
    """Return whether a skill may be installed under a name, which becomes the name of its folder.

    It has nothing that a reader cannot see, and leaves room for the ends of temporary names beside it.
    """
    if "/" in name or name[:1] in ("", ".", "-", "~") or name_problem([name]) is not None:
        return False
    if len(name.encode()) > INSTALLED_NAME_BYTES:
        return False
    if name.isascii():
        return True
    from skillshelf.core.hidden_text import hidden_text

    return hidden_text(name) is None


def _twin(names: Iterable[str]) -> str | None:
    """Return the first name that not every machine can tell from one before it."""
    seen = set()
    for name in names:
        if (folded := folded_path(name)) in seen:
            return name
        seen.add(folded)
    return None


class _Repeated(ValueError):
    """A member that occurs twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Repeated(name)
        found[name] = value
    return found


def _quoted(name: str) -> str:
    """Return a name for a message, which is no longer than a line because a stranger's lock is."""
    return repr(cut(name, _QUOTED))


def _refused_number(text: str) -> float:
    raise ValueError(text)


def _line_of(data: bytes, name: str) -> int:
    """Return the line of the last mention of a member."""
    return data.count(b"\n", 0, data.rfind(json.dumps(name, ensure_ascii=False).encode("utf-8", "replace"))) + 1


# Which tree a folder must be ------------------------------------------------------------------------


class LockedTree(NamedTuple):
    """The tree that a folder must be, the file that says so, and what its lock knows of its origin.

    `tree` is None if nobody can tell, and `problem` says why. `ours` is True for what lies in the store and for copies
    that we made of it, to which an approval without a path reaches. `folder` is the folder of the whole installed
    skill, and `inside` is the path in it of the folder that was asked about: empty unless that is a skill inside it.
    """

    tree: str | None
    by: str
    name: str
    source: str | None = None
    version: str | None = None
    ours: bool = False
    problem: str | None = None
    folder: str = ""
    inside: str = ""


def locked_tree(folder: str, environment: Environment, place: str | None = None) -> LockedTree | None:
    """Return which tree a real folder must be now; None if no lock, store or record of a copy speaks of it.

    `place` is the path that it was found at.
    """
    return Locks(environment).tree_of(folder, place)


_PARSED: dict[str, tuple[object, Any]] = {}
"""Locks and records by path, each with the state of its file and what is in it."""

_MOST_PARSED = 64


def _parsed(path: str, parse: Callable[[str], Any]) -> Any:
    """Return what is in a file, or the UnusableLock that it raises; an unchanged file is read once."""
    state = files.state_at(path)
    if state is None:
        return None
    known = _PARSED.get(path)
    if known is not None and known[0] == state:
        return known[1]
    try:
        found = parse(path)
    except UnusableLock as error:
        found = error
    if len(_PARSED) >= _MOST_PARSED:
        _PARSED.clear()
    _PARSED[path] = state, found
    return found


class Locks:
    """The locks, the store and the copies of one environment, as they are when each is first needed.

    Make one for each load, or for one pass over a catalog: it is not read again during its life.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._projects: dict[str, tuple[str, ...]] = {}
        self._read: dict[str, Any] = {}
        self.unusable: dict[str, UnusableLock] = {}

    def tree_of(self, folder: str, place: str | None = None) -> LockedTree | None:
        """Return which tree a real folder must be; None if nothing speaks of it.

        `place` is the path that it was found at: a lock speaks of what lies at a place, wherever a link there leads.
        """
        found = self._tree_at(folder)
        if place is None or place == folder or not place.startswith("/"):
            return found
        named = self._tree_at(place)
        if named is None or (found is not None and named.tree in (None, found.tree) and found.inside == named.inside):
            return found
        return named._replace(folder=files.real_path(named.folder))

    def _tree_at(self, path: str) -> LockedTree | None:
        return self._in_store(path) or self._in_project(path) or self._of_user(path) or self._copied(path)

    def installed(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the folder of every skill that the lock of this project or of the user names.

        The folder itself may be a link, and so may those above it.
        """
        project = self.project_lock(self._environment.cwd)
        places = [(project, os.path.dirname(project))] if project is not None else []
        if (own := user_lock_path(self._environment)) is not None and self._environment.home is not None:
            places.append((own, self._environment.home))
        for path, root in places:
            with suppress(UnusableLock):
                base = _below(root, INSTALLED)
                yield from ((name, f"{base}/{name}") for name in self.skills_in(path))

    def is_ours(self, folder: str, tree: str, place: str | None = None) -> bool:
        """Return whether a real folder is a tree in the store, or a copy of it that this user's commands made."""
        locked = self.tree_of(folder, place)
        if locked is None or locked.tree != tree or locked.inside:
            return False
        if locked.ours or (self._copies().get(folder) or {}).get("tree") == tree:
            return True
        return self._is_installed_here(files.real_path(os.path.dirname(locked.by)), locked.name, tree)

    def _is_installed_here(self, root: str, name: str, tree: str) -> bool:
        """Return whether the current generation of a project, which only this user's commands write, has a skill."""
        data = user_data_folder(self._environment)
        if data is None:
            return False
        mark = sha256(files.path_bytes(root)).hexdigest()[:16]
        # The link is another one after every change, and the file behind it is never changed.
        path = f"{data}/projects/{mark}/current"
        known: Mapping[str, LockedSkill] = self._content(path, partial(_generation_at, root=root)) or {}
        return name in known and known[name].tree == tree

    def names_in(self, parent: str) -> Collection[str] | None:
        """Return the names that folders directly in a real folder must have to be spoken of; None if any may be."""
        if "/store/" in f"{parent}/":
            return None
        names: set[str] = set()
        try:
            if self._tree_at(parent) is not None:
                return None
            for path in self._locks_around(parent):
                names.update(self.skills_in(path))
            if parent.endswith(f"/{INSTALLED}") and (own := user_lock_path(self._environment)) is not None:
                names.update(self.skills_in(own))
        except UnusableLock:
            return None
        copies = (os.path.split(path) for path in self._copies())
        return names.union(name for above, name in copies if above == parent)

    def project_lock(self, folder: str) -> str | None:
        """Return the lock of the project that a folder lies in: that of the repository, else the nearest."""
        repository, above = find_repository(folder, _MARKERS), folder
        while above:
            path = f"{above}/{LOCK_FILE}"
            if repository in (None, above) and files.kind_at(path) is not None:
                return path
            above = above.rpartition("/")[0]
        return None

    def _locks_around(self, folder: str) -> tuple[str, ...]:
        """Return the locks that may speak of what lies in a folder, the nearest first."""
        if folder not in self._projects:
            self._projects[folder] = tuple(_locks_above(folder))
        return self._projects[folder]

    def skills_in(self, path: str) -> Mapping[str, LockedSkill]:
        """Return the skills of a lock; none if there is no such file; raise UnusableLock."""
        found = self._content(path, read_lock)
        if isinstance(found, UnusableLock):
            self.unusable[path] = found
            raise found
        return found or {}

    def _content(self, path: str, parse: Callable[[str], Any]) -> Any:
        if path not in self._read:
            self._read[path] = _parsed(path, parse)
        return self._read[path]

    def _in_store(self, folder: str) -> LockedTree | None:
        # A path without these names is in no store; this is asked for every skill.
        if "/store/" not in folder:
            return None
        from skillshelf.catalog.store import STORE_VERSION, Store

        data = user_data_folder(self._environment)
        if data is None:
            return None
        place = files.real_path(f"{data}/store/{STORE_VERSION}")
        if not folder.startswith(f"{place}/"):
            return None
        segments = folder[len(place) + 1 :].split("/")
        whole, inside = "/".join((place, *segments[:2])), "/".join(segments[2:])
        tree = Store(place).tree_at(whole)
        return (
            self._described(tree, whole, by=place)._replace(folder=whole, inside=inside) if tree is not None else None
        )

    def _described(self, tree: str, folder: str, *, by: str) -> LockedTree:
        """Return a tree of ours with what the user's lock knows of it."""
        own = user_lock_path(self._environment)
        try:
            named = self.skills_in(own) if own is not None else {}
        except UnusableLock:
            named = {}
        for name, entry in named.items():
            if entry.tree == tree:
                return LockedTree(tree, own or by, name, entry.source, _version(entry), ours=True)
        return LockedTree(tree, by, os.path.basename(folder), version=_short(tree), ours=True)

    def _in_project(self, folder: str) -> LockedTree | None:
        """Return the tree that the lock of a project around a folder names for it, or for the skill that it lies in."""
        for path in self._locks_around(os.path.dirname(folder)):
            root = os.path.dirname(path)
            if (found := self._named_by(path, root, folder[len(root) + 1 :].split("/"))) is not None:
                return found
        return None

    def _named_by(self, path: str, root: str, segments: Sequence[str]) -> LockedTree | None:
        try:
            skills = self.skills_in(path)
        except UnusableLock as error:
            return _unknown(path, root, segments, str(error))
        for at, name in enumerate(segments):
            entry = skills.get(name)
            if entry is not None and "/".join(segments[:at]) in _labels(entry.hosts):
                whole, inside = "/".join((root, *segments[: at + 1])), "/".join(segments[at + 1 :])
                return LockedTree(entry.tree, path, name, entry.source, _version(entry), folder=whole, inside=inside)
        return None

    def _of_user(self, folder: str) -> LockedTree | None:
        """Return the tree of a folder that lies where the user's lock wants an installed skill, or in such a skill."""
        home, own = self._environment.home, user_lock_path(self._environment)
        above, _, rest = folder.partition(f"/{INSTALLED}/")
        if home is None or own is None or not rest:
            return None
        wanted = f"{home}/{INSTALLED}"
        if f"{above}/{INSTALLED}" not in (wanted, files.real_path(wanted)):
            return None
        name, _, inside = rest.partition("/")
        whole = f"{above}/{INSTALLED}/{name}"
        try:
            entry = self.skills_in(own).get(name)
        except UnusableLock as error:
            return LockedTree(None, own, name, problem=str(error), folder=whole, inside=inside)
        if entry is None:
            return None
        return LockedTree(entry.tree, own, name, entry.source, _version(entry), folder=whole, inside=inside)

    def _copied(self, folder: str) -> LockedTree | None:
        """Return the tree of a copy that we made of an installed skill, or of the copy that a folder lies in."""
        copies, whole = self._copies(), folder
        while whole and copies and whole not in copies:
            whole = whole.rpartition("/")[0]
        record = copies.get(whole)
        source, tree = (record.get("source"), record.get("tree")) if record is not None else (None, None)
        if not isinstance(source, str) or not isinstance(tree, str) or not _TREE.match(tree):
            return None
        origin = files.real_path(source)
        # A chain of copies has an end: the source of a copy is an installed skill itself, or nothing is known of it.
        known = self._in_store(origin) or self._in_project(origin) or self._of_user(origin)
        if known is None:
            return None
        found = self._described(tree, whole, by=known.by)
        inside = folder[len(whole) + 1 :]
        return found._replace(name=known.name, by=known.by, source=known.source, folder=whole, inside=inside)

    def _copies(self) -> Mapping[str, Mapping[str, Any]]:
        state = user_state_folder(self._environment)
        return (self._content(f"{state}/links.json", _copies_in) if state is not None else None) or {}


def _copies_in(path: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the records of copies by path, as `hosts.link_records` writes them; none of a file that is damaged.

    Whoever changes links says what is wrong with the file.
    """
    try:
        document = json.loads(files.read_file(path, limit=RECORDS_BYTES, links="never") or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    links = document.get("links") if isinstance(document, dict) else None
    copies = [one for one in links if isinstance(one, dict) and one.get("how") == "copy"] if links else []
    return {one["path"]: one for one in copies if isinstance(one.get("path"), str)}


def _generation_at(path: str, root: str) -> Mapping[str, LockedSkill]:
    """Return the skills of a generation of a project, as `install` writes it; none if it is not one of that project."""
    try:
        document = json.loads(files.read_file(path, limit=LOCK_BYTES, links="follow") or b"{}")
        if not isinstance(document, dict) or document.get("root") != root:
            return {}
        return parse_lock(str(document.get("lock")).encode("utf-8", "surrogatepass"), path)
    except (OSError, ValueError, RecursionError, UnusableLock):
        return {}


def _locks_above(folder: str) -> Iterator[str]:
    """Yield the locks that may speak of what lies in a folder, the nearest first.

    A lock counts at the root of a repository, or in a folder of none. Every host looks for the skills of a project in a
    hidden folder of it; that such a folder holds a repository or a lock of its own takes nothing from that lock.
    """
    root = folder.rpartition("/.")[0]
    while root:
        path = f"{root}/{LOCK_FILE}"
        if files.kind_at(path) is not None and find_repository(root, _MARKERS) in (None, root):
            yield path
        root = root.rpartition("/.")[0]


def _unknown(path: str, root: str, segments: Sequence[str], problem: str) -> LockedTree | None:
    """Return the refusal of a folder that a lock may name which cannot be used; None if it names no such folder."""
    for at, name in enumerate(segments):
        label = "/".join(segments[:at])
        is_copy = files.kind_at(f"{_below(root, INSTALLED)}/{name}") is not None and label in _labels(None)
        if label == INSTALLED or is_copy:
            whole, inside = "/".join((root, *segments[: at + 1])), "/".join(segments[at + 1 :])
            return LockedTree(None, path, name, problem=problem, folder=whole, inside=inside)
    return None


def _below(root: str, label: str) -> str:
    return f"{root.rstrip('/')}/{label}"


def _labels(names: Sequence[str] | None) -> set[str]:
    """Return the folders of a project that hold an installed skill or a copy of it for hosts; None means every host."""
    if names is not None and not names:
        return {INSTALLED}
    # Imported here: the table of hosts is large, and most skills have no copy.
    from skillshelf.config.hosts import HOSTS

    hosts = [HOSTS[name] for name in (HOSTS if names is None else names) if name in HOSTS]
    return {
        INSTALLED,
        *(path for host in hosts for rule in host.roots if rule.kind == "project" for path in rule.paths),
    }


def _version(entry: LockedSkill) -> str:
    """Return the version of a skill for people: its reference, its commit or its tree."""
    return entry.ref or (entry.commit[:12] if entry.commit else _short(entry.tree))


def _short(tree: str) -> str:
    return tree.removeprefix("sha256:")[:12]
