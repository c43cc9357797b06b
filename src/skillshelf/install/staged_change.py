"""Change files and copies of a scope by renames alone, so that a killed process leaves something to finish or undo.

What is to be done is written down first, in `pending.json`. Then everything new is written beside its place and flushed
to the disk; then each thing is renamed. Until the generation of the change is the current one, all of it is undone;
from then on, it is only tidied up. All of this happens below open folders, through no link.
"""

import json
import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.store import Store
from skillshelf.catalog.tree import TREE_DEPTH, SkillTree, tree_digest, tree_of
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.disk_writes import (
    make_folder_at,
    remove,
    remove_at,
    remove_empty_at,
    rename_at,
    replace_file,
    sync_file_system,
    sync_folder,
    sync_open_folder,
    write_at,
    write_tree_at,
)
from skillshelf.core.limits import CONFIG_BYTES, LOCK_BYTES, TREE_BYTES, TREE_FILES
from skillshelf.core.records import NamedTuple
from skillshelf.core.validation import validate
from skillshelf.errors import ConfigurationError, SkillChanged, SkillError, SourceNotFound, SourceRefused
from skillshelf.install.scope import InstallScope

__all__ = [
    "PENDING_FILE",
    "PENDING_VERSION",
    "CopyStep",
    "FileStep",
    "OpenScope",
    "PendingCommit",
    "UnusablePending",
    "apply_steps",
    "digest_of",
    "forget_pending",
    "missing_in_store",
    "new_token",
    "read_pending",
    "stage_steps",
    "tidy_steps",
    "tree_without_bytecode",
    "undo_steps",
    "write_pending",
]

PENDING_VERSION = 1
PENDING_FILE = "pending.json"

_FLUSHED_ALONE = 8
"""Copies whose files are flushed one by one; that of a whole file system waits for what other programs wrote."""

_BYTES = 64 * 1024 * 1024
_ATTEMPTS = 3
_TOKEN = re.compile(r"[0-9]{1,10}-[0-9a-f]{8}")
_SKILLS = (".agents", "skills")


class FileStep(NamedTuple):
    """A file that gets other bytes: the digests of those before and after, None where there is no file."""

    path: str
    old: str | None
    new: str | None


class CopyStep(NamedTuple):
    """The copy of one skill in a project: whether something lies there before, and its tree afterwards, if any."""

    name: str
    old: bool
    new: str | None


class PendingCommit(NamedTuple):
    """A change that has begun: its number and steps, the folders that it makes, and the skills that it is about.

    `is_new` says whether the generation was made for it; a rollback goes to one that was there.
    """

    number: int
    is_new: bool
    token: str
    files: tuple[FileStep, ...]
    copies: tuple[CopyStep, ...]
    folders: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def staging(self) -> str:
        """The name of the folder in `.agents` with new copies, and with the old ones until the end."""
        return f".skillshelf-{self.token}"


class UnusablePending(ConfigurationError):
    """A record of a change that is damaged or of a newer version; nothing is done before somebody has looked."""


# The record ---------------------------------------------------------------------------------------


def read_pending(history: str) -> PendingCommit | None:
    """Return the change that has begun and not ended; raise UnusablePending."""
    path = f"{history}/{PENDING_FILE}"
    try:
        data = files.read_file(path, limit=_BYTES, links="never")
        value = json.loads(data or b"")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusablePending(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    version = value.pop("version", None) if isinstance(value, dict) else None
    if isinstance(version, int) and version > PENDING_VERSION:
        newer = f"version {version} is of a newer skillshelf (this one reads {PENDING_VERSION})"
        raise UnusablePending(f"{path}: {newer}; finish with that one")
    if version != PENDING_VERSION or validate(value, PendingCommit) or not _TOKEN.fullmatch(value["token"]):
        raise _damaged(path)
    return _pending(value)


def _damaged(path: str) -> UnusablePending:
    return UnusablePending(f"{path}: not the record of a change; move it away, then run `skillshelf verify`")


def _pending(value: dict[str, Any]) -> PendingCommit:
    steps = tuple(FileStep(**step) for step in value["files"])
    copies = tuple(CopyStep(**step) for step in value["copies"])
    folders, names = tuple(value["folders"]), tuple(value["names"])
    return PendingCommit(value["number"], value["is_new"], value["token"], steps, copies, folders, names)


def write_pending(history: str, pending: PendingCommit) -> None:
    """Write down a change before its first step."""
    value = {
        "version": PENDING_VERSION,
        **pending._asdict(),
        "files": [step._asdict() for step in pending.files],
        "copies": [step._asdict() for step in pending.copies],
    }
    replace_file(f"{history}/{PENDING_FILE}", f"{json.dumps(value, indent=1)}\n".encode())
    sync_folder(history)


def forget_pending(history: str) -> None:
    """Remove the record of a change that is finished or undone."""
    remove(f"{history}/{PENDING_FILE}")


def new_token() -> str:
    """Return a text that makes the temporary names of one change, which a dead process may have used but once."""
    return f"{os.getpid()}-{os.urandom(4).hex()}"


def digest_of(data: bytes | None) -> str | None:
    """Return the digest by which bytes are known again; None for a file that is not there."""
    return sha256(data).hexdigest() if data is not None else None


# The open folders ---------------------------------------------------------------------------------


class OpenScope:
    """The folders of a scope, opened once; use it in a `with` statement."""

    def __init__(self, scope: InstallScope) -> None:
        self.scope = scope
        self._folders: dict[str, int] = {}

    def __enter__(self) -> "OpenScope":
        return self

    def __exit__(self, *exception: object) -> None:
        for descriptor in self._folders.values():
            files.close(descriptor)

    def file(self, path: str) -> tuple[int, str]:
        """Return the folder of a file, and its name there; `path` is a real path."""
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = files.open_folder(folder)
        return self._folders[folder], name

    def read(self, path: str, limit: int) -> bytes | None:
        """Return the bytes of a file, or None if there is none; raise a SkillError for a link or anything else."""
        folder, name = self.file(path)
        try:
            kind = files.kind_of(files.stat_at(folder, name).st_mode)
            found = files.read_whole(folder, name, limit=limit) if kind == "file" else None
        except FileNotFoundError:
            return None
        if found is None or found.data is None:
            what = f"it is a {kind}, and nothing is written through it" if kind != "file" else f"over {limit} bytes"
            raise SourceRefused("not-a-file", f"{path} cannot be used: {what}")
        return found.data

    def agents(self, *, make: bool = False) -> int | None:
        """Return the folder `.agents` of a project, made on demand; None if there is none."""
        return self._below(self.scope.root, _SKILLS[0], make=make)

    def skills(self, *, make: bool = False) -> int | None:
        """Return the folder of the copies of a project, made on demand; None if there is none."""
        if self.agents(make=make) is None:
            return None
        return self._below(f"{self.scope.root.rstrip('/')}/{_SKILLS[0]}", _SKILLS[1], make=make)

    def _below(self, folder: str, name: str, *, make: bool) -> int | None:
        path = f"{folder.rstrip('/')}/{name}"
        if path in self._folders:
            return self._folders[path]
        above, _ = self.file(path)
        try:
            self._folders[path] = make_folder_at(above, name)[0] if make else files.open_folder_at(above, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            with suppress(OSError):
                if (kind := files.kind_of(files.stat_at(above, name).st_mode)) != "folder":
                    reason = f"{path} is a {kind}; nothing is written through it"
                    raise SourceRefused("link" if kind == "link" else "occupied", reason) from None
            raise error
        return self._folders[path]

    def missing_folders(self) -> tuple[str, ...]:
        """Return the folders that have to be made for copies, the innermost first."""
        if self.skills() is not None:
            return ()
        return _SKILLS[1:] if self.agents() is not None else (_SKILLS[1], _SKILLS[0])

    def tree(self, folder: int, name: str) -> SkillTree | None:
        """Return the tree of a folder below an open one; None if nothing is there, no digest for anything else."""
        nothing = SkillTree(None, None, 0, 0, None)
        try:
            if files.kind_of(files.stat_at(folder, name).st_mode) != "folder":
                return nothing
            with files.Folder("", descriptor=folder) as above, files.Folder(name, parent=above) as found:
                trees = (tree_of(found, without_git=False) for _ in range(_ATTEMPTS))
                return next((tree for tree in trees if tree is not None), nothing)
        except FileNotFoundError:
            return None
        except OSError:
            return nothing


def tree_without_bytecode(tree: SkillTree) -> str | None:
    """Return the digest of a tree without the folders of bytecode that Python leaves where it runs."""
    left = {path: file for path, file in tree.listed.items() if "__pycache__" not in path.split("/")[:-1]}
    return tree_digest(left) if tree.digest is not None else None


# The steps ----------------------------------------------------------------------------------------


def stage_steps(pending: PendingCommit, opened: OpenScope, contents: Mapping[str, bytes | None], store: Store) -> None:
    """Write everything new beside its place, and the old bytes of files, so that only renames are left to do."""
    for step in pending.files:
        folder, name = opened.file(step.path)
        like = files.stat_at(folder, name) if step.old is not None else None
        mode = 0o666 if opened.scope.kind == "project" else 0o600
        old = opened.read(step.path, max(LOCK_BYTES, CONFIG_BYTES))
        if digest_of(old) != step.old:
            raise SkillError(f"{step.path} changed meanwhile")
        for end, data in (("new", contents[step.path]), ("old", old)):
            if data is not None:
                with _failing_at(step.path):
                    write_at(folder, f"{name}.{pending.token}.{end}", data, mode=mode, like=like)
    if not pending.copies:
        return
    with _failing_at(opened.scope.skills_folder or ""):
        opened.skills(make=True)
        staging = _staging(pending, opened, make=True)
        try:
            # No rename before the disk has what it brings to its place: a loss of power leaves whole copies, too.
            # Three flushes or more for each copy cost more than all the rest, so many copies share one.
            is_one_flush = len(pending.copies) > _FLUSHED_ALONE
            for n, copy in enumerate(pending.copies):
                if copy.new is not None:
                    _stage_copy(staging, n, copy, store, flush=not is_one_flush)
            if is_one_flush:
                sync_file_system(staging)
            else:
                sync_open_folder(staging)
        finally:
            files.close(staging)


@contextmanager
def _failing_at(path: str) -> Iterator[None]:
    """Let an error of the machine name a place, not a temporary name beside it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from None


def _stage_copy(staging: int, n: int, copy: CopyStep, store: Store, *, flush: bool) -> None:
    try:
        data = store.read(copy.new or "")
    except SkillChanged:
        raise missing_in_store(copy.name, copy.new or "", store) from None
    executables = {path for path, one in data.items() if isinstance(one, ExecutableFile)}
    write_tree_at(staging, f"{n}.new", data, executables, flush=flush)
    if not _is_exact(staging, f"{n}.new", data, executables):
        reason = f"this file system keeps no exact copy of {copy.name!r} (names or mode bits differ)"
        raise SourceRefused("file-system", reason)


def missing_in_store(name: str, tree: str, store: Store) -> SourceNotFound:
    """Return the error for a skill whose tree the store lacks, or has with other files."""
    reason = "does not have" if not store.has(tree) else "has other"
    return SourceNotFound(f"the store {reason} files for {name!r} ({tree}); run `skillshelf install`")


def _is_exact(folder: int, name: str, data: Mapping[str, bytes], executables: Container[str]) -> bool:
    """Return whether a folder below an open one has exactly these files."""
    with files.Folder("", descriptor=folder) as above, files.Folder(name, parent=above) as made:
        found = made.contents(most=TREE_FILES, limit=TREE_BYTES, depth=TREE_DEPTH)
    if found.others or not found.complete or found.files.keys() != data.keys():
        return False
    return all(one.data == data[path] and one.runnable == (path in executables) for path, one in found.files.items())


def _staging(pending: PendingCommit, opened: OpenScope, *, make: bool) -> int:
    agents = opened.agents(make=make)
    if agents is None:
        raise FileNotFoundError(pending.staging)
    return make_folder_at(agents, pending.staging)[0] if make else files.open_folder_at(agents, pending.staging)


def apply_steps(pending: PendingCommit, opened: OpenScope) -> None:
    """Rename everything to its place."""
    if pending.copies:
        skills = opened.skills() or 0
        staging = _staging(pending, opened, make=False)
        try:
            with _failing_at(opened.scope.skills_folder or ""):
                for n, copy in enumerate(pending.copies):
                    _apply_copy(n, copy, skills, staging)
                sync_open_folder(staging)
                sync_open_folder(skills)
        finally:
            files.close(staging)
    for step in pending.files:
        folder, name = opened.file(step.path)
        if digest_of(opened.read(step.path, max(LOCK_BYTES, CONFIG_BYTES))) != step.old:
            raise SkillError(f"{step.path} changed meanwhile")
        if step.new is not None:
            rename_at(folder, f"{name}.{pending.token}.new", folder, name)
        else:
            remove_at(folder, name)
        sync_open_folder(folder)


def _apply_copy(n: int, copy: CopyStep, skills: int, staging: int) -> None:
    if copy.old:
        rename_at(skills, copy.name, staging, f"{n}.old")
    if copy.new is not None:
        if _is_there(skills, copy.name):
            raise SourceRefused("occupied", f"a folder {copy.name!r} was made there meanwhile")
        rename_at(staging, f"{n}.new", skills, copy.name)


def _is_there(folder: int, name: str) -> bool:
    try:
        files.stat_at(folder, name)
    except FileNotFoundError:
        return False
    return True


def undo_steps(pending: PendingCommit, opened: OpenScope) -> None:
    """Bring back what was there before; what somebody else has changed meanwhile stays as it is."""
    for step in reversed(pending.files):
        _undo_file(step, pending.token, opened)
    agents, skills = opened.agents(), opened.skills()
    if agents is not None and _is_there(agents, pending.staging):
        staging = _staging(pending, opened, make=False)
        try:
            for n, copy in enumerate(pending.copies):
                if skills is not None:
                    _undo_copy(n, copy, skills, staging, opened)
            if skills is not None:
                sync_open_folder(skills)
        finally:
            files.close(staging)
        remove_at(agents, pending.staging)
    _remove_empty(pending.folders, opened)


def _undo_file(step: FileStep, token: str, opened: OpenScope) -> None:
    folder, name = opened.file(step.path)
    found = digest_of(opened.read(step.path, max(LOCK_BYTES, CONFIG_BYTES)))
    if found == step.new != step.old:
        if step.old is None:
            remove_at(folder, name)
        elif _is_there(folder, f"{name}.{token}.old"):
            rename_at(folder, f"{name}.{token}.old", folder, name)
    remove_at(folder, f"{name}.{token}.old")
    remove_at(folder, f"{name}.{token}.new")
    sync_open_folder(folder)


def _undo_copy(n: int, copy: CopyStep, skills: int, staging: int, opened: OpenScope) -> None:
    was_moved = _is_there(staging, f"{n}.old")
    if copy.new is not None and (was_moved or not copy.old) and not _is_there(staging, f"{n}.new"):
        found = opened.tree(skills, copy.name)
        if found is not None and found.digest == copy.new:
            rename_at(skills, copy.name, staging, f"{n}.undone")
    if was_moved and not _is_there(skills, copy.name):
        rename_at(staging, f"{n}.old", skills, copy.name)


def tidy_steps(pending: PendingCommit, opened: OpenScope) -> None:
    """Remove what a change that is done left beside: the old copies and the old bytes."""
    for step in pending.files:
        folder, name = opened.file(step.path)
        remove_at(folder, f"{name}.{pending.token}.old")
        remove_at(folder, f"{name}.{pending.token}.new")
    if not pending.copies:
        return
    agents = opened.agents()
    if agents is not None:
        remove_at(agents, pending.staging)
    if any(copy.new is None for copy in pending.copies):
        _remove_empty(_SKILLS, opened)


def _remove_empty(folders: tuple[str, ...], opened: OpenScope) -> None:
    """Remove folders of the project that are empty, the innermost first."""
    root, agents = opened.file(f"{opened.scope.root.rstrip('/')}/{_SKILLS[0]}")[0], opened.agents()
    if _SKILLS[1] in folders and agents is not None:
        remove_empty_at(agents, _SKILLS[1])
    if _SKILLS[0] in folders:
        remove_empty_at(root, _SKILLS[0])
