"""Run a script as a child subreaper, and measure process trees. Runs as its own process, with few imports."""

import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from skillshelf.core import files
from skillshelf.core.disk_writes import unlinked_files

__all__ = ["ProcessUsage", "descendants", "main", "reaper_command", "usage_of"]


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


class ProcessUsage(NamedTuple):
    """The number of threads, bytes of private memory, and bytes in open files without a name: removed files and files
    in memory."""

    threads: int
    memory: int
    nameless: int


def usage_of(processes: Iterable[int]) -> ProcessUsage:
    """Return the total usage of some processes."""
    threads = memory = 0
    nameless: dict[tuple[int, int], int] = {}
    for process in processes:
        nameless |= unlinked_files(process)
        for line in _read(process, "status").splitlines():
            if line.startswith(b"Threads:"):
                threads += int(line.split()[1])
            elif line.startswith((b"RssAnon:", b"RssShmem:")):
                memory += 1024 * int(line.split()[1])
    return ProcessUsage(threads, memory, sum(nameless.values()))


def _read(process: int, name: str) -> bytes:
    try:
        return files.read_file(f"{_PROC}/{process}/{name}", limit=_PROC_FILE_BYTES, links="never") or b""
    except OSError:
        # The process ended in the meantime.
        return b""


_PR_SET_CHILD_SUBREAPER = 36
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from skillshelf.sandbox.reaper import main; sys.exit(main(sys.argv[2:]))"
)


def reaper_command(liveness_fd: int, limits: Mapping[str, int], command: Sequence[str]) -> list[str]:
    """Return the command line of a reaper; it ends when the other end of `liveness_fd` is closed."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    numbers = ",".join(f"{name}={number}" for name, number in limits.items())
    return [sys.executable, "-I", "-S", "-c", _START, package, str(liveness_fd), numbers, *command]


def main(words: Sequence[str]) -> int:
    """Run the command and return its status as a shell does."""
    liveness_fd, numbers, command = int(words[0]), words[1], words[2:]
    if sys.platform == "linux":
        import ctypes

        # Orphans of the script become our children, so that they can be found and killed.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signals, signal_writer = os.pipe()
    os.set_blocking(signal_writer, False)
    signal.set_wakeup_fd(signal_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    script = os.fork()
    if script == 0:
        _exec(command, dict(part.split("=") for part in numbers.split(",") if part))
    status = None
    while status is None:
        ready, _, _ = select.select([liveness_fd, signals], [], [])
        if liveness_fd in ready:
            break
        os.read(signals, 512)
        status = _reap(script)
    _end_all(script)
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _exec(command: Sequence[str], limits: Mapping[str, str]) -> None:
    import resource

    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for name, number in limits.items():
            hard = resource.getrlimit(getattr(resource, name))[1]
            most = int(number) if hard == resource.RLIM_INFINITY else min(int(number), hard)
            resource.setrlimit(getattr(resource, name), (most, most))
        os.closerange(3, 256)
        os.execv(command[0], list(command))
    except (OSError, ValueError) as error:
        os.write(2, f"{command[0]}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _reap(script: int) -> int | None:
    """Reap all dead children; return the status of the script if it is one of them."""
    found = None
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if child == 0:
            return found
        if child == script:
            found = status


def _end_all(script: int) -> None:
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
        except ChildProcessError:
            return
        _reap(script)


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
