"""Find the descendants of a process, and end those of this one."""

import os
import signal
from collections.abc import Callable, Iterator

from skillshelf.core import files

__all__ = ["descendants", "end_all"]


_PROC = "/proc"
_PROC_FILE_BYTES = 64 * 1024
"""Larger than any file of /proc that is read here."""


def descendants(process: int) -> list[int]:
    """Return all descendants of a process; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = list(children.get(process, ()))
    for child in found:
        found += children.get(child, ())
    return found


def _parents() -> Iterator[tuple[int, int]]:
    if files.kind_at(_PROC) != "folder":
        return
    folder = files.open_folder(_PROC)
    try:
        names = files.names_in(folder)
    finally:
        files.close(folder)
    for name in names:
        if name.isdecimal() and (fields := _read(int(name), "stat")):
            # The program name is in parentheses and may contain parentheses and blanks.
            yield int(name), int(fields.rpartition(b")")[2].split()[1])


def _read(process: int, name: str) -> bytes:
    try:
        return files.read_file(f"{_PROC}/{process}/{name}", limit=_PROC_FILE_BYTES, links="never") or b""
    except OSError:
        # The process ended in the meantime.
        return b""


def end_all(script: int) -> None:
    """Kill all descendants until there are none."""
    _send(os.killpg, script)
    while True:
        targets = descendants(os.getpid())
        # Whole groups first: a group is killed at once and cannot grow.
        for group in {_group(target) for target in targets} - {None, os.getpgrp()}:
            _send(os.killpg, group or script)
        for target in targets:
            _send(os.kill, target)
        try:
            # Wait for one, then reap all others that are dead by then.
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _group(process: int) -> int | None:
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return None


def _send(kill: Callable[[int, int], None], number: int) -> None:
    try:
        kill(number, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # It is dead already, or it changed its user, and only root can kill it.
        return
