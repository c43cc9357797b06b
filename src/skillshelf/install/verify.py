"""Compare installed skills with their lock: which files changed, are missing or were added, and the likely cause."""

import os
from collections.abc import Iterator, Mapping
from typing import Literal

from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.store import Store, listed_files
from skillshelf.catalog.tree import PROBLEMS, SkillTree, TreeFile, skill_tree, tree_digest
from skillshelf.core import files
from skillshelf.core.limits import LISTED_ENTRIES, TREE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import FileReadError, SkillChanged, SkillDirectoryNotFound

__all__ = ["FileFound", "SkillFound", "VerifyState", "disk_contents", "verify_folder"]

VerifyState = Literal["ok", "changed", "missing", "extra"]

_BYTECODE = "__pycache__"


class FileFound(NamedTuple):
    """A file that is not as the lock says, by its path in the skill."""

    path: str
    state: VerifyState


class SkillFound(NamedTuple):
    """The content of the folder of a locked skill: its tree, or None if it has none, its state, the files that differ.

    `cause` says what happened where that is certain: nothing but line ends or modes differ, or there is a reason why
    the folder has no digest.
    """

    name: str
    path: str
    tree: str
    found: str | None
    state: VerifyState
    files: tuple[FileFound, ...] = ()
    cause: str = ""

    @property
    def ok(self) -> bool:
        """Whether a load gets the locked bytes."""
        return self.state in ("ok", "extra")


def verify_folder(name: str, path: str, tree: str, store: Store, *, through_links: bool = True) -> SkillFound:
    """Return what lies in a folder that must be a tree; the files that differ are named as far as the store has it.

    Without `through_links` a folder behind a link is a change, whatever it holds.
    """
    real = files.real_path(path)
    if not through_links and real != path:
        return SkillFound(
            name, path, tree, None, "changed", cause=f"a link leads to {real}; an installed skill is a folder"
        )
    try:
        # A `.git` in a skill that we installed was put there by somebody else.
        found = skill_tree(real, bounded=False, without_git=False)
    except SkillDirectoryNotFound:
        return SkillFound(name, path, tree, None, "missing")
    except FileReadError as error:
        return SkillFound(name, path, tree, None, "changed", cause=str(error))
    if found.digest == tree:
        return SkillFound(name, path, tree, tree, "ok")
    extra = {one for one in found.listed if _BYTECODE in one.split("/")[:-1]}
    if extra and tree_digest({one: file for one, file in found.listed.items() if one not in extra}) == tree:
        rows = tuple(FileFound(one, "extra") for one in sorted(extra))
        return SkillFound(name, path, tree, found.digest, "extra", rows)
    return _changed(SkillFound(name, path, tree, found.digest, "changed"), real, found, store)


def _changed(row: SkillFound, real: str, found: SkillTree, store: Store) -> SkillFound:
    """Add to the row of a changed skill what differs, and why, if the store still has the locked files."""
    problem = PROBLEMS[found.problem] if found.problem is not None else ""
    try:
        locked = store.read(row.tree)
    except SkillChanged:
        about = "the store does not have the locked files, so it cannot be said which differ"
        return row._replace(cause="; ".join(text for text in (problem, about) if text))
    expected = listed_files(locked)
    listed = found.listed if found.digest is not None else _regular_files(real)
    rows = sorted([*_differences(expected, listed), *_others(real, expected, listed)])
    if problem:
        return row._replace(files=tuple(rows), cause=problem)
    is_extra = all(one.state == "extra" and _is_new_bytecode(one.path, expected) for one in rows)
    state: VerifyState = "extra" if rows and is_extra else "changed"
    return row._replace(state=state, files=tuple(rows), cause=_cause(real, rows, locked, listed))


def _differences(expected: Mapping[str, TreeFile], listed: Mapping[str, TreeFile]) -> Iterator[FileFound]:
    for path in {*expected, *listed}:
        if path not in listed:
            yield FileFound(path, "missing")
        elif path not in expected:
            yield FileFound(path, "extra")
        elif expected[path] != listed[path]:
            yield FileFound(path, "changed")


def _is_new_bytecode(path: str, expected: Mapping[str, TreeFile]) -> bool:
    """Return whether a file lies in a folder of bytecode that the locked tree does not have."""
    segments = path.split("/")[:-1]
    if _BYTECODE not in segments:
        return False
    folder = "/".join(segments[: segments.index(_BYTECODE) + 1]) + "/"
    return not any(one.startswith(folder) for one in expected)


def _regular_files(real: str) -> dict[str, TreeFile]:
    """Return the regular files of a folder that has no digest, as far as they can be read."""
    found: dict[str, TreeFile] = {}
    try:
        with files.Folder(real) as folder:
            for path, stamp in folder.tree(LISTED_ENTRIES, without=()).files.items():
                measured = folder.measure(path.split("/"))
                found[path] = TreeFile(stamp[2], measured.sha256, measured.executable)
    except OSError:
        # The files that were read are worth naming.
        return found
    return found


def _others(real: str, expected: Mapping[str, TreeFile], listed: Mapping[str, TreeFile]) -> Iterator[FileFound]:
    """Yield the links, pipes and devices that take the place of a file, or lie beside the files."""
    try:
        with files.Folder(real) as folder:
            others = folder.tree(LISTED_ENTRIES, without=()).others
    except OSError:
        return
    yield from (FileFound(path, "extra") for path in others if path not in listed and path not in expected)


def _cause(real: str, rows: list[FileFound], locked: Mapping[str, bytes], listed: Mapping[str, TreeFile]) -> str:
    """Say that only line ends or mode bits differ, if that is all; a tool did that, no author."""
    differ = [one.path for one in rows if not (one.state == "extra" and _BYTECODE in one.path.split("/"))]
    if not differ or any(path not in locked or path not in listed for path in differ):
        return ""
    causes = []
    if any(isinstance(locked[path], ExecutableFile) != listed[path].executable for path in differ):
        causes.append("mode bits")
    expected = listed_files(locked)
    other_bytes = [path for path in differ if expected[path].sha256 != listed[path].sha256]
    if other_bytes:
        if not all(_has_other_line_ends(real, path, locked[path]) for path in other_bytes):
            return ""
        causes.insert(0, "line ends")
    return f"only {' and '.join(causes)} differ"


def _has_other_line_ends(real: str, path: str, locked: bytes) -> bool:
    try:
        with files.Folder(real) as folder:
            data = folder.read(path.split("/"), limit=TREE_BYTES).data
    except OSError:
        return False
    return data.replace(b"\r\n", b"\n") == locked.replace(b"\r\n", b"\n")


def disk_contents(path: str) -> dict[str, bytes]:
    """Return the files of a folder as they are now, bytecode left out; raise FileReadError or a SourceRefused.

    What has no digest raises FileReadError with the reason.
    """
    real = files.real_path(path)
    contents: dict[str, bytes] = {}
    try:
        with files.Folder(real) as folder:
            found = folder.tree(LISTED_ENTRIES, without=(_BYTECODE,))
            if found.others or not found.complete:
                what = next(iter(found.others), "too many entries")
                raise FileReadError(os.path.join(path, what), OSError("a skill holds files and folders only"))
            for name, stamp in found.files.items():
                data, _, runnable = folder.read(name.split("/"), limit=stamp[2])
                contents[name] = ExecutableFile(data) if runnable else data
    except OSError as error:
        raise FileReadError(path, error) from error
    listed_files(contents)
    return contents
