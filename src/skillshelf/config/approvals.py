"""Keep what a person approved for good, in `approvals.json` of the user's state folder.

An approval is about a thing: a tool, the real path of one SKILL.md, and the tree of its files. It is no rule: a skill
of the same name elsewhere, or other files at the same place, have none.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from skillshelf.core import files
from skillshelf.core.disk_writes import locked_within, make_own_folder, replace_file
from skillshelf.core.environment import Environment, user_state_folder
from skillshelf.core.limits import APPROVALS_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.validation import validate
from skillshelf.errors import ConfigurationError, SkillError

__all__ = [
    "APPROVALS_VERSION",
    "Approval",
    "UnusableApprovals",
    "add_approval",
    "approvals_path",
    "is_approved",
    "read_approvals",
    "remove_approvals",
]

APPROVALS_VERSION = 1
_FILE = "approvals.json"
_LOCK_SECONDS = 10.0


class Approval(NamedTuple):
    """One approval; `path` is None if it counts for the tree wherever we put it, `origin` is where that came from."""

    tool: str
    name: str
    path: str | None
    tree: str
    origin: str | None
    at: str


class UnusableApprovals(ConfigurationError):
    """The file of approvals cannot be used: nothing in it counts, and it is never written over."""


def approvals_path(environment: Environment) -> str | None:
    """Return the path of the file, whether or not it exists; None without a home folder."""
    folder = user_state_folder(environment)
    return f"{folder}/{_FILE}" if folder is not None else None


def read_approvals(environment: Environment) -> list[Approval]:
    """Return the approvals of the user; raise UnusableApprovals if the file is damaged, newer or not the user's."""
    path = approvals_path(environment)
    if path is None or files.kind_at(path) is None:
        return []
    if not files.is_own_file(path):
        raise UnusableApprovals(f"{path}: not a file of yours that only you can write; nothing in it counts")
    try:
        data = files.read_file(path, limit=APPROVALS_BYTES, links="never")
    except OSError as error:
        raise UnusableApprovals(f"{path}: cannot be read: {error.strerror}") from None
    if data is None:
        raise UnusableApprovals(f"{path}: has more than {APPROVALS_BYTES} bytes")
    try:
        return _parsed(path, json.loads(data, object_pairs_hook=_unique))
    except (ValueError, RecursionError):
        raise UnusableApprovals(_damaged(path)) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is there twice")
    return found


def _parsed(path: str, value: Any) -> list[Approval]:
    version = value.get("version") if isinstance(value, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version > APPROVALS_VERSION:
        newer = f"version {version} is of a newer skillshelf (this one reads {APPROVALS_VERSION})"
        raise UnusableApprovals(f"{path}: {newer}; nothing in it counts")
    entries = value.get("approvals") if isinstance(value, dict) else None
    if version != APPROVALS_VERSION or isinstance(version, bool) or not isinstance(entries, list):
        raise UnusableApprovals(_damaged(path))
    if any(validate(entry, Approval, "approval") for entry in entries):
        raise UnusableApprovals(_damaged(path))
    return [Approval(**entry) for entry in entries]


def _damaged(path: str) -> str:
    return f"{path}: not a list of approvals; nothing in it counts. Repair it, or move it away to begin a new one"


def is_approved(approvals: Sequence[Approval], tool: str, path: str, tree: str) -> bool:
    """Return whether a tool is approved for the SKILL.md at a real path with this tree."""
    return any((one.tool, one.path, one.tree) == (tool, path, tree) for one in approvals)


def add_approval(environment: Environment, tool: str, name: str, path: str, tree: str) -> bool:
    """Approve a tool for the SKILL.md at a real path with this tree; return whether that is new."""
    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    new = Approval(tool, name, path, tree, None, at)

    def change(before: list[Approval]) -> list[Approval]:
        return before if is_approved(before, tool, path, tree) else [*before, new]

    return bool(_change(environment, change))


def remove_approvals(environment: Environment, matches: Callable[[Approval], bool]) -> list[Approval]:
    """Take back the approvals for which `matches` returns True, and return them."""
    return _change(environment, lambda before: [one for one in before if not matches(one)])


def _change(environment: Environment, change: Callable[[list[Approval]], list[Approval]]) -> list[Approval]:
    """Change the file under its lock; return the approvals that came or went."""
    path = approvals_path(environment)
    if path is None:
        raise ConfigurationError("there is no home folder for approvals; name one with --home")
    if files.kind_at(path) is None and not change([]):
        return []
    try:
        make_own_folder(path.rpartition("/")[0])
        with locked_within(f"{path}.lock", _LOCK_SECONDS) as held:
            if not held:
                raise SkillError(f"{path} cannot be written: another program holds its lock")
            before = read_approvals(environment)
            after = change(before)
            if after != before:
                value = {"version": APPROVALS_VERSION, "approvals": [one._asdict() for one in after]}
                data = (json.dumps(value, indent=2) + "\n").encode()
                if len(data) > APPROVALS_BYTES and len(after) > len(before):
                    raise SkillError(f"{path} is full; take some back: skillshelf trust --remove PATH")
                replace_file(path, data, mode=0o600)
    except OSError as error:
        raise SkillError(f"{path} cannot be written: {(error.strerror or type(error).__name__).lower()}") from None
    return [one for one in (*before, *after) if (one in before) != (one in after)]
