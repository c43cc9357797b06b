"""Make, replace and remove links and copies in one change: all of its steps, or none.

The change is written down before its first step. If a step fails, the steps before it are undone; if the process is
killed, the next change undoes them. What is removed is only put aside until the change is done.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.core import files
from skillshelf.core.disk_writes import (
    make_folder,
    make_link,
    make_parents,
    move,
    remove_empty,
    remove_folder,
    remove_link,
)
from skillshelf.core.environment import Environment
from skillshelf.core.records import NamedTuple
from skillshelf.errors import SkillError
from skillshelf.hosts.copy_contents import CopyContents, contents_at, is_as_made
from skillshelf.hosts.link_records import (
    LinkRecord,
    LinkState,
    LinkStep,
    PendingChange,
    UnusableRecords,
    locked_state,
    move_manifest,
    place_of,
    read_state,
    with_manifests,
    write_state,
)

__all__ = [
    "LinkChange",
    "LinksChanged",
    "RemovedLink",
    "carry_out",
    "finish_pending",
    "has_source",
    "how_it_stands",
    "remove_recorded",
    "why_kept",
]


class LinkChange(NamedTuple):
    """One link or copy to make, to replace or to remove: the record before and after, and the files of a copy.

    With `forgets` only the record goes: what is at the path now is somebody else's.
    """

    path: str
    before: LinkRecord | None
    after: LinkRecord | None
    contents: CopyContents | None = None
    forgets: bool = False


class LinksChanged(SkillError):
    """The disk is no longer as the change was planned for: another process was faster."""


class RemovedLink(NamedTuple):
    """A record, and why what it describes was not removed; without a reason it is gone, with its record."""

    record: LinkRecord
    reason: str = ""


def how_it_stands(path: str, record: LinkRecord) -> Literal["as-made", "gone", "modified", "foreign"]:
    """Return how what lies at a path compares with its record: `as-made`, `gone`, `modified` or `foreign`."""
    kind = files.kind_at(path)
    if kind is None:
        return "gone"
    if place_of(path) != path:
        return "foreign"
    if record.how == "link":
        return "as-made" if kind == "link" and files.link_target(path) == record.target else "foreign"
    if kind != "folder":
        return "foreign"
    contents = contents_at(path, f"{path}/{SKILL_FILE}")
    # A copy that we make holds no link, and its digest does not know of one.
    is_same = contents is not None and not contents.left_out and is_as_made(contents, record)
    return "as-made" if is_same else "modified"


# One change ---------------------------------------------------------------------------------------


def carry_out(changes: Sequence[LinkChange], environment: Environment) -> None:
    """Carry out all changes or none, and record them; raise an OSError or a SkillError if that is not possible."""
    if not changes:
        return
    with locked_state(environment) as found:
        state, manifests = with_manifests(_recovered(found, environment), (os.path.dirname(c.path) for c in changes))
        for change in changes:
            _refuse_changed(change, state)
        real = [change for change in changes if not _is_about_records(change)]
        steps = tuple(_step(change) for change in real)
        folders = _missing_folders(change.path for change in real if change.after is not None)
        pending = PendingChange(os.getpid(), False, steps, folders)
        write_state(environment, state._replace(pending=pending))
        for manifest in manifests:
            move_manifest(manifest, environment)
        try:
            for change, step in zip(real, steps, strict=True):
                _take(change, step)
        except BaseException:
            _undo(pending)
            write_state(environment, state)
            raise
        _commit(_recorded(state, changes, folders), pending, environment)


def finish_pending(environment: Environment) -> bool:
    """Undo or tidy up a change that a killed process left behind; return whether there was one.

    Whoever plans a change calls it first: what is planned from a tree that is half changed is not so once the rest is
    undone. Records that cannot be used are left to the change itself, which refuses them.
    """
    try:
        if read_state(environment).pending is None:
            return False
    except UnusableRecords:
        return False
    with locked_state(environment) as state:
        _recovered(state, environment)
        return state.pending is not None


def _recovered(state: LinkState, environment: Environment) -> LinkState:
    """Return the state without a change that a killed process left behind."""
    if state.pending is None:
        return state
    if state.pending.done:
        _tidy(state.pending)
    else:
        _undo(state.pending)
    state = _without_folders(state)._replace(pending=None)
    write_state(environment, state)
    return state


def _refuse_changed(change: LinkChange, state: LinkState) -> None:
    """Raise an OSError if a path is no longer as it was when the change was planned."""
    known = next((record for record in state.links if record.path == change.path), None)
    stands = how_it_stands(change.path, change.before) if change.before is not None else "gone"
    if change.before is None and files.kind_at(change.path) is not None:
        stands = "foreign"
    if known == change.before and _is_about_records(change) and not (change.forgets and stands == "as-made"):
        return
    # A folder above may have become a link, which leads elsewhere.
    is_other = known != change.before or change.forgets or place_of(change.path) != change.path
    if is_other or stands not in ("as-made", "gone"):
        raise LinksChanged(f"{change.path} changed meanwhile; nothing was done, run the command again")


def _is_about_records(change: LinkChange) -> bool:
    """Return true if a change leaves the disk as it is: a record goes, or only its hosts or its source are others."""
    before, after = change.before, change.after
    if change.forgets:
        return True
    if before is None or after is None or before._replace(hosts=after.hosts, source=after.source) != after:
        return False
    return files.kind_at(change.path) is not None


def _step(change: LinkChange) -> LinkStep:
    """Return what has to be known to undo a change."""
    kind = files.kind_at(change.path)
    old = {"old_target": files.link_target(change.path)} if kind == "link" else {}
    if kind == "folder":
        folder, name = os.path.split(change.path)
        old = {"aside": f"{folder}/.{name}.{os.getpid()}.old"}
    after = change.after
    new = {"target": after.target, "tree": after.tree, "digest": after.digest} if after is not None else {}
    return LinkStep(change.path, **new, **old)


def _take(change: LinkChange, step: LinkStep) -> None:
    """Put aside what is at a path, and make what shall be there."""
    if step.old_target is not None:
        remove_link(step.path)
    elif step.aside is not None:
        move(step.path, step.aside)
    if change.after is None:
        return
    make_parents(os.path.dirname(step.path))
    if change.contents is None:
        make_link(step.path, step.target or "")
    else:
        make_folder(step.path, change.contents.data, executables=change.contents.executables)


def _undo(pending: PendingChange) -> None:
    """Bring back what was there before each step; what somebody else has changed meanwhile stays."""
    for step in reversed(pending.steps):
        folder, name = os.path.split(step.path)
        remove_folder(f"{folder}/.{name}.{pending.process}.new")
        kind = files.kind_at(step.path)
        if kind == "link" and step.target is not None and files.link_target(step.path) == step.target:
            remove_link(step.path)
        elif kind == "folder" and (step.tree or step.digest) and (step.aside is None or files.kind_at(step.aside)):
            contents = contents_at(step.path, f"{step.path}/{SKILL_FILE}")
            if contents is not None and is_as_made(contents, step):
                remove_folder(step.path)
        if files.kind_at(step.path) is None:
            if step.old_target is not None:
                make_link(step.path, step.old_target)
            elif step.aside is not None and files.kind_at(step.aside) is not None:
                move(step.aside, step.path)
    for made in pending.folders:
        remove_empty(made, 1)


def _commit(state: LinkState, pending: PendingChange, environment: Environment) -> None:
    """Write the records of a change that is done, then remove for good what was put aside."""
    done = pending._replace(done=True)
    write_state(environment, state._replace(pending=done))
    _tidy(done)
    write_state(environment, _without_folders(state))


def _tidy(pending: PendingChange) -> None:
    for step in pending.steps:
        if step.aside is not None:
            remove_folder(step.aside)


def _recorded(state: LinkState, changes: Sequence[LinkChange], folders: Sequence[str]) -> LinkState:
    paths = {change.path for change in changes}
    links = [record for record in state.links if record.path not in paths]
    links += [change.after for change in changes if change.after is not None]
    made = dict.fromkeys((*state.folders, *folders))
    return state._replace(links=tuple(sorted(links)), folders=tuple(made))


def _missing_folders(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the folders that have to be made for these paths, the innermost first."""
    missing = set()
    for path in paths:
        folder = os.path.dirname(path)
        while files.kind_at(folder) is None:
            missing.add(folder)
            folder = os.path.dirname(folder)
    return tuple(sorted(missing, key=len, reverse=True))


def _without_folders(state: LinkState) -> LinkState:
    """Remove the folders that were made for links and are empty now; return the state without those that are gone."""
    needed = {os.path.dirname(record.path) for record in state.links}
    for folder in sorted(state.folders, key=len, reverse=True):
        if not any(files.is_inside(root, folder) for root in needed):
            remove_empty(folder, 1)
    return state._replace(folders=tuple(folder for folder in state.folders if files.kind_at(folder) == "folder"))


# Removal of what records describe -----------------------------------------------------------------


def remove_recorded(records: Iterable[LinkRecord], environment: Environment) -> list[RemovedLink]:
    """Remove the links and copies of these records, all that can be removed in one change; the rest has a reason."""
    judged = [RemovedLink(record, why_kept(record)) for record in records]
    changes = [LinkChange(one.record.path, one.record, None) for one in judged if not one.reason]
    carry_out(changes, environment)
    return judged


def why_kept(record: LinkRecord) -> str:
    """Return why what a record describes must not be removed, or an empty text."""
    stands = how_it_stands(record.path, record)
    if stands == "modified":
        return "this copy was modified; remove it by hand if you do not need it"
    if stands == "foreign":
        return "this is not what skillshelf made; it was left unchanged"
    if stands == "as-made" and record.how == "copy" and not has_source(record):
        return f"{record.source} is gone, so this may be the only copy left; remove it by hand"
    return ""


def has_source(record: LinkRecord) -> bool:
    """Return whether the skill of a record is still where it was; a copy is never taken for its own source."""
    if record.source is None:
        return True
    source = files.real_path(record.source)
    is_elsewhere = record.how == "link" or not files.is_inside(source, files.real_path(record.path))
    return is_elsewhere and files.kind_at(files.real_path(f"{source}/{SKILL_FILE}")) is not None
