"""Keep records of the links and copies that skillshelf made, in `links.json` of the user's state folder.

Only what a record describes, and what is still as it was made, is ever replaced or removed. Versions 0.1 and 0.2 kept
a manifest beside the links; it is read like a record, and its entries move here with the next change in its folder.
A copy of it stays in the state folder, where no version control sees it.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Literal

from skillshelf.config.hosts import HOSTS
from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.disk_writes import locked_within, make_own_folder, remove, replace_file, write_new
from skillshelf.core.environment import Environment, user_state_folder
from skillshelf.core.limits import CONFIG_BYTES, RECORDS_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.state_file import StateFile, UnusableState
from skillshelf.core.validation import validate
from skillshelf.errors import ConfigurationError, SkillError

__all__ = [
    "MANIFEST",
    "RECORDS_VERSION",
    "LinkRecord",
    "LinkState",
    "LinkStep",
    "PendingChange",
    "UnusableRecords",
    "links_settled",
    "locked_state",
    "move_manifest",
    "place_of",
    "read_records",
    "read_state",
    "record_at",
    "records_path",
    "with_manifests",
    "write_state",
]

MANIFEST = ".skillshelf-made.json"
"""The file that versions 0.1 and 0.2 kept beside the links and copies they made."""

RECORDS_VERSION = 1
_FILE = "links.json"
_FULL = "remove some links: skillshelf sync --remove"
_LOCK_SECONDS = 60.0


class LinkRecord(NamedTuple):
    """A link or copy that skillshelf made: where it lies, what it was made from, and for which hosts.

    `target` is the text of a link. `tree` is the digest of the files of a copy, or `digest` that of version 0.1 and
    for names that no tree may hold.
    """

    path: str
    how: Literal["link", "copy"]
    source: str | None = None
    target: str | None = None
    tree: str | None = None
    digest: str | None = None
    hosts: tuple[str, ...] = ()


class LinkStep(NamedTuple):
    """One step of a change: what is made at a path, and what was there before.

    `target` is the text of a new link; `tree` or `digest` tells a new copy; a removal has none of them. `old_target`
    is the text of a link that was there, `aside` the path at which a folder that was there waits for the end.
    """

    path: str
    target: str | None = None
    tree: str | None = None
    digest: str | None = None
    old_target: str | None = None
    aside: str | None = None


class PendingChange(NamedTuple):
    """A change that has begun: its steps, the folders that it makes, and the process that does it.

    One that is `done` has only to be tidied up; any other is undone by the next change.
    """

    process: int
    done: bool
    steps: tuple[LinkStep, ...]
    folders: tuple[str, ...]


class LinkState(NamedTuple):
    """All records, the folders that were made for links and copies, and a change that has begun."""

    links: tuple[LinkRecord, ...] = ()
    folders: tuple[str, ...] = ()
    pending: PendingChange | None = None


class UnusableRecords(UnusableState):
    """The file of records cannot be used: nothing in it counts, and it is never written over."""


def records_path(environment: Environment) -> str | None:
    """Return the path of the file, whether or not it exists; None without a home folder."""
    folder = user_state_folder(environment)
    return f"{folder}/{_FILE}" if folder is not None else None


def place_of(path: str) -> str:
    """Return the path by which a link or copy is recorded: in the real folder that it lies in."""
    return os.path.join(files.real_path(os.path.dirname(path)), os.path.basename(path))


# Reading ------------------------------------------------------------------------------------------


def read_records(environment: Environment) -> list[LinkRecord]:
    """Return every record; raise UnusableRecords if the file is damaged, newer or not the user's."""
    return list(read_state(environment).links)


def read_state(environment: Environment) -> LinkState:
    """Return the content of the file; raise UnusableRecords if it is damaged, newer or not the user's."""
    path = records_path(environment)
    stamp = files.stamp_at(path) if path is not None else None
    return _state_at(path, stamp) if path is not None and stamp is not None else LinkState()


@lru_cache(maxsize=4)
def _state_at(path: str, stamp: object) -> LinkState:
    """Return the state in a file with this stamp."""
    file = StateFile(path, RECORDS_VERSION, RECORDS_BYTES, "a list of links and copies", _FULL)
    try:
        document = file.read() or {"links": []}
    except UnusableState as error:
        raise UnusableRecords(str(error)) from None
    value = {name: member for name, member in document.items() if name != "version"}
    if "links" not in value or validate(value, LinkState):
        raise UnusableRecords(str(file.damaged()))
    links = tuple(_made(LinkRecord, {**entry, "hosts": tuple(entry.get("hosts", ()))}) for entry in value["links"])
    return LinkState(links, tuple(value.get("folders", ())), _pending(value.get("pending")))


def _pending(value: Any) -> PendingChange | None:
    if value is None:
        return None
    steps = tuple(_made(LinkStep, step) for step in value["steps"])
    return PendingChange(value["process"], value["done"], steps, tuple(value["folders"]))


def _made(form: Any, members: dict[str, Any]) -> Any:
    return form(**members)


_SAID: set[str] = set()


def record_at(path: str, environment: Environment) -> LinkRecord | None:
    """Return the record of the link or copy at a path; a file of records that cannot be used is named once."""
    try:
        place = place_of(path)
        known = next((record for record in read_state(environment).links if record.path == place), None)
    except UnusableRecords as error:
        if str(error) not in _SAID:
            _SAID.add(str(error))
            note(str(error))
        return None
    return known or _manifest(os.path.dirname(path)).get(os.path.basename(path))


# Manifests of earlier versions --------------------------------------------------------------------


def _manifest(root: str) -> dict[str, LinkRecord]:
    """Return the entries of the manifest in a folder as records, by name."""
    path = f"{root}/{MANIFEST}"
    stamp = files.stamp_at(path)
    return (_entries_at(path, stamp) or {}) if stamp is not None else {}


@lru_cache(maxsize=64)
def _entries_at(path: str, stamp: object) -> dict[str, LinkRecord] | None:
    """Return the entries of a manifest, or None if it cannot be read."""
    try:
        found = json.loads(files.read_file(path, limit=CONFIG_BYTES, links="never") or b"")
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    root = files.real_path(os.path.dirname(path))
    made = {name: _record_of(f"{root}/{name}", entry) for name, entry in found.items() if _is_plain(name)}
    return {name: record for name, record in made.items() if record is not None}


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def _record_of(path: str, entry: Any) -> LinkRecord | None:
    """Return an entry of a manifest as a record, or None if it is none."""
    if not isinstance(entry, dict) or entry.get("how") not in ("link", "copy"):
        return None
    texts = {key: entry[key] for key in ("target", "tree", "digest") if isinstance(entry.get(key), str)}
    source = entry.get("source", texts.get("target"))
    folder = os.path.normpath(os.path.join(os.path.dirname(path), source)) if isinstance(source, str) else None
    hosts = entry.get("for")
    # Whoever wrote the manifest, its words become part of commands that are shown.
    named = tuple(host for host in HOSTS if host in hosts) if isinstance(hosts, list) else ()
    return LinkRecord(path, entry["how"], folder, hosts=named, **texts)


def with_manifests(state: LinkState, roots: Iterable[str]) -> tuple[LinkState, list[str]]:
    """Return the state with the entries of the manifests in these folders, and the manifests.

    The caller moves them away once the state is written. One that cannot be read is no manifest, and stays.
    """
    manifests = []
    for root in dict.fromkeys(files.real_path(root) for root in roots):
        path = f"{root}/{MANIFEST}"
        if files.kind_at(path) != "file" or _entries_at(path, files.stamp_at(path)) is None:
            continue
        manifests.append(path)
        known = {record.path for record in state.links}
        new = [record for record in _manifest(root).values() if record.path not in known]
        made = [folder for record in new for folder in _folders_of(record.path, path)]
        state = state._replace(links=(*state.links, *new), folders=tuple(dict.fromkeys((*state.folders, *made))))
    return state, manifests


def move_manifest(manifest: str, environment: Environment) -> None:
    """Keep a copy of a manifest in the state folder, and remove the manifest; its entries are in the state by now."""
    from hashlib import sha256

    folder = f"{os.path.dirname(records_path(environment) or '')}/manifests"
    try:
        data = files.read_file(manifest, limit=CONFIG_BYTES, links="never") or b""
        name = sha256(files.path_bytes(manifest) + b"\0" + data).hexdigest()[:16]
        make_own_folder(folder)
        # One that is there has the same bytes, of the same place.
        with suppress(FileExistsError):
            write_new(f"{folder}/{name}.json", data)
    except OSError as error:
        note(f"{manifest} stays: it cannot be copied to {folder}: {(error.strerror or str(error)).lower()}")
        return
    remove(manifest)
    note(f"moved the records in {manifest} to your state folder; the old file is {folder}/{name}.json")


def _folders_of(place: str, manifest: str) -> Iterator[str]:
    """Yield the folders that were made for a link or copy, of which a manifest has only the number.

    None above the first hidden one was: the roots of hosts begin there, whatever a stranger's manifest says.
    """
    try:
        entry = json.loads(files.read_file(manifest, limit=CONFIG_BYTES, links="never") or b"{}")
        count = entry[os.path.basename(place)].get("folders", 0)
    except (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return
    folder = os.path.dirname(place)
    for _ in range(min(count, 8) if isinstance(count, int) else 0):
        if files.kind_at(f"{folder}/.git") is not None:
            return
        yield folder
        if os.path.basename(folder).startswith("."):
            return
        folder = os.path.dirname(folder)


# Writing ------------------------------------------------------------------------------------------


_HELD: ContextVar[str] = ContextVar("held", default="")
"""The file of records whose lock is held by whoever asks."""


@contextmanager
def links_settled(environment: Environment) -> Iterator[None]:
    """Let no other process change links meanwhile, so that what is planned can be done; raise if one never ends.

    A user whose state folder cannot be written can change no links; the change itself says so.
    """
    path = records_path(environment)
    if path is None or path == _HELD.get():
        yield
        return
    with suppress(UnusableRecords):
        # An older file is migrated when it is read, under the same lock.
        read_state(environment)
    with ExitStack() as stack:
        with suppress(OSError):
            make_own_folder(os.path.dirname(path))
            stack.enter_context(_lock(path))
        yield


@contextmanager
def _lock(path: str) -> Iterator[None]:
    """Hold the lock of a file of records; say that it waits if that takes long."""

    def say() -> None:
        note(f"waiting for another skillshelf that changes links, at most {_LOCK_SECONDS:.0f} seconds")

    with locked_within(f"{path}.lock", _LOCK_SECONDS, say=say) as held:
        if not held:
            reason = f"another program has held {path}.lock for {_LOCK_SECONDS:.0f} seconds"
            raise SkillError(f"nothing was done: {reason}; run the command again when it has ended")
        token = _HELD.set(path)
        try:
            yield
        finally:
            _HELD.reset(token)


@contextmanager
def locked_state(environment: Environment) -> Iterator[LinkState]:
    """Hold the lock of the records and yield them; raise if they cannot be used, or if the lock is not to be had."""
    path = records_path(environment)
    if path is None:
        raise ConfigurationError("there is no home folder for the records of links; name one with --home")
    if path == _HELD.get():
        yield read_state(environment)
        return
    try:
        make_own_folder(os.path.dirname(path))
    except OSError as error:
        raise _not_written(path, error) from None
    # An older file is migrated when it is read, under the same lock.
    read_state(environment)
    with _lock(path):
        yield read_state(environment)


def write_state(environment: Environment, state: LinkState) -> None:
    """Replace the file; the caller holds the lock. Raise a SkillError if that fails."""
    path = records_path(environment) or ""
    try:
        if state == LinkState():
            remove(path)
            return
        pending = state.pending
        value = {
            "version": RECORDS_VERSION,
            "links": [_short(record) for record in state.links],
            "folders": state.folders,
            "pending": pending and {**pending._asdict(), "steps": [_short(step) for step in pending.steps]},
        }
        data = (json.dumps(value, indent=1) + "\n").encode()
        if len(data) > RECORDS_BYTES:
            raise SkillError(f"{path} is full; {_FULL}")
        replace_file(path, data, mode=0o600)
    except OSError as error:
        raise _not_written(path, error) from None


def _short(record: LinkRecord | LinkStep) -> dict[str, Any]:
    return {name: value for name, value in record._asdict().items() if value is not None}


def _not_written(path: str, error: OSError) -> SkillError:
    return SkillError(f"{path} cannot be written: {(error.strerror or type(error).__name__).lower()}")
