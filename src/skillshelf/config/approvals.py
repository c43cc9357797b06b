"""Keep what a person approved for good, in `approvals.json` of the user's state folder.

An approval is about a thing: a tool, the real path of one SKILL.md, and the tree of its files. It is no rule: a skill
of the same name elsewhere, or other files at the same place, have none.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from skillshelf.core import files
from skillshelf.core.environment import Environment, user_state_folder
from skillshelf.core.limits import APPROVALS_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.state_file import StateFile, UnusableState
from skillshelf.core.validation import validate
from skillshelf.errors import ConfigurationError

__all__ = [
    "APPROVALS_VERSION",
    "Approval",
    "ApprovedTree",
    "UnusableApprovals",
    "add_approval",
    "add_approvals",
    "approvals_path",
    "approved_trees",
    "is_approved",
    "is_origin_approved",
    "read_approvals",
    "remove_approvals",
]

APPROVALS_VERSION = 1
_FILE = "approvals.json"
_WHAT = "a list of approvals"
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("tool", "name", "tree", "at"), (str,)),
    **dict.fromkeys(("path", "origin"), (str, type(None))),
}


class Approval(NamedTuple):
    """One approval; `path` is None if it counts for the tree wherever we put it, `origin` is where that came from."""

    tool: str
    name: str
    path: str | None
    tree: str
    origin: str | None
    at: str


ApprovedTree = tuple[str | None, str]


class UnusableApprovals(UnusableState):
    """The file of approvals cannot be used: nothing in it counts, and it is never written over."""


def approvals_path(environment: Environment) -> str | None:
    """Return the path of the file, whether or not it exists; None without a home folder."""
    folder = user_state_folder(environment)
    return f"{folder}/{_FILE}" if folder is not None else None


def _file(environment: Environment) -> StateFile | None:
    path = approvals_path(environment)
    help_text = "take some back: skillshelf trust --remove PATH"
    return StateFile(path, APPROVALS_VERSION, APPROVALS_BYTES, _WHAT, help_text) if path is not None else None


def read_approvals(environment: Environment) -> list[Approval]:
    """Return the approvals of the user; raise UnusableApprovals if the file is damaged, newer or not the user's."""
    file = _file(environment)
    try:
        document = file.read() if file is not None else None
    except UnusableState as error:
        raise UnusableApprovals(str(error)) from None
    return _parsed(file, document) if file is not None and document is not None else []


def _parsed(file: StateFile, document: dict[str, Any]) -> list[Approval]:
    entries = document.get("approvals")
    if not isinstance(entries, list) or not all(map(_is_approval, entries)):
        raise UnusableApprovals(str(file.damaged()))
    return [Approval(**entry) for entry in entries]


def _is_approval(entry: Any) -> bool:
    # Validation costs more than the rest of reading, and nearly every entry has exactly these members.
    if type(entry) is dict and entry.keys() == _TYPES.keys():
        return all(type(entry[member]) in types for member, types in _TYPES.items())
    return not validate(entry, Approval, "approval")


def approved_trees(approvals: Sequence[Approval], tool: str) -> frozenset[ApprovedTree]:
    """Return what a tool is approved for: the real path of a SKILL.md, or None for wherever we put it, and a tree."""
    return frozenset((one.path, one.tree) for one in approvals if one.tool == tool)


def is_approved(approvals: Sequence[Approval], tool: str, path: str, tree: str, *, ours: bool = False) -> bool:
    """Return whether a tool is approved for the SKILL.md at a real path with this tree.

    `ours` is True for what lies in the store or is a copy that we made: an approval without a path counts there.
    """
    paths = (path, None) if ours else (path,)
    return any(one.path in paths and (one.tool, one.tree) == (tool, tree) for one in approvals)


def is_origin_approved(approvals: Sequence[Approval], tool: str, origin: str, tree: str) -> bool:
    """Return whether a tool is approved for this tree as it comes from an origin, at no place of its own."""
    return any((one.tool, one.path, one.origin, one.tree) == (tool, None, origin, tree) for one in approvals)


def add_approval(
    environment: Environment, tool: str, name: str, path: str | None, tree: str, *, origin: str | None = None
) -> bool:
    """Approve a tool for the SKILL.md at a real path with this tree; return whether that is new.

    Without a path the tree is approved wherever we put it, and as it comes from `origin`: the source that it was
    installed from, or the label of a live source.
    """
    return bool(add_approvals(environment, [Approval(tool, name, path, tree, origin, "")]))


def add_approvals(environment: Environment, approvals: Sequence[Approval]) -> list[Approval]:
    """Add approvals as given now, in one change of the file; return those that are new."""
    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

    def change(before: list[Approval]) -> list[Approval]:
        known = {_meaning(one) for one in before}
        new = {_meaning(one): one._replace(at=at) for one in approvals}
        return [*before, *(one for meaning, one in new.items() if meaning not in known)]

    return _change(environment, change)


def _meaning(one: Approval) -> Approval:
    """Return an approval without what does not count: its time, and the name that its skill had then."""
    return one._replace(at="", name="")


def remove_approvals(environment: Environment, matches: Callable[[Approval], bool]) -> list[Approval]:
    """Take back the approvals for which `matches` returns True, and return them."""
    return _change(environment, lambda before: [one for one in before if not matches(one)])


def _change(environment: Environment, change: Callable[[list[Approval]], list[Approval]]) -> list[Approval]:
    """Change the file under its lock; return the approvals that came or went."""
    file = _file(environment)
    if file is None:
        raise ConfigurationError("there is no home folder for approvals; name one with --home")
    if files.kind_at(file.path) is None and not change([]):
        return []
    before: list[Approval] = []
    after: list[Approval] = []

    def change_document(document: dict[str, Any]) -> dict[str, Any]:
        before[:] = _parsed(file, document) if document else []
        after[:] = change(before)
        return {**document, "approvals": [one._asdict() for one in after]} if after != before else document

    try:
        file.change(change_document)
    except UnusableState as error:
        raise UnusableApprovals(str(error)) from None
    changed = {*before} ^ {*after}
    return [one for one in (*before, *after) if one in changed]
