"""A process to all that came from it, and what they take together."""

import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from skillshelf.core import files
from skillshelf.core.atomic_write import unlinked_files

__all__ = ["Taken", "command_of", "descendants", "main", "taken_by"]


_PROC = "/proc"
_MOST = 64 * 1024
"""No file of /proc that is read here is larger."""


def descendants(process: int) -> list[int]:
    """The children of a process, theirs, and so on; empty where the system does not tell."""
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
            # The name of the program stands in brackets and may itself hold brackets and blanks.
            yield int(name), int(fields.rpartition(b")")[2].split()[1])


class Taken(NamedTuple):
    """How many threads some processes have, the bytes of memory they have for themselves, and those in open files
    that are in no folder: removed ones, and ones that were in memory only from the start."""

    threads: int
    memory: int
    nameless: int


def taken_by(processes: Iterable[int]) -> Taken:
    """What these processes take together."""
    threads = memory = 0
    nameless: dict[tuple[int, int], int] = {}
    for process in processes:
        nameless |= unlinked_files(process)
        for line in _read(process, "status").splitlines():
            if line.startswith(b"Threads:"):
                threads += int(line.split()[1])
            elif line.startswith((b"RssAnon:", b"RssShmem:")):
                memory += 1024 * int(line.split()[1])
    return Taken(threads, memory, sum(nameless.values()))


def _read(process: int, name: str) -> bytes:
    try:
        return files.read_file(f"{_PROC}/{process}/{name}", limit=_MOST, links="never") or b""
    except OSError:
        # It ended in the meantime.
        return b""


_PR_SET_CHILD_SUBREAPER = 36
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from skillshelf.sandbox.reaper import main; sys.exit(main(sys.argv[2:]))"
)


def command_of(leash: int, limits: Mapping[str, int], command: Sequence[str]) -> list[str]:
    """The command that keeps another; it ends when the other end of the descriptor `leash` is closed."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    numbers = ",".join(f"{name}={number}" for name, number in limits.items())
    return [sys.executable, "-I", "-S", "-c", _START, package, str(leash), numbers, *command]


def main(words: Sequence[str]) -> int:
    """Run the command, and give its status as a shell would."""
    leash, numbers, command = int(words[0]), words[1], words[2:]
    _adopt_orphans()
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    script = os.fork()
    if script == 0:
        _become(command, dict(part.split("=") for part in numbers.split(",") if part))
    status = None
    while status is None:
        ready, _, _ = select.select([leash, heard], [], [])
        if leash in ready:
            break
        os.read(heard, 512)
        status = _reap(script)
    _end_all(script)
    return 128 + signal.SIGKILL if status is None else _as_shell(status)


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _become(command: Sequence[str], limits: Mapping[str, str]) -> None:
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
    """The status of the script, once it ended; other children are only buried."""
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
    """Kill until there is nobody left to kill."""
    _send(os.killpg, script)
    while True:
        victims = descendants(os.getpid())
        # Whole groups first: a group is killed at once, and has no time to grow.
        for group in {_group(victim) for victim in victims} - {None, os.getpgrp()}:
            _send(os.killpg, group or script)
        for victim in victims:
            _send(os.kill, victim)
        try:
            # Wait for one, and bury all others that are dead by then.
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
        _reap(script)


def _group(process: int) -> int | None:
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return None


def _send(way: Callable[[int, int], None], number: int) -> None:
    try:
        way(number, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # It is dead already, or a program that changed its user: nobody but root ends that.
        return


def _as_shell(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
