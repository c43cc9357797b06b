"""A command to its exit status, where there is no sandbox: whatever it started is dead by then.

This runs in a process of its own between us and the script. A process that loses its parent becomes a child of
the keeper, so a second fork and a session of its own help nobody to get away; and the keeper ends the script
when it hears nothing of us any more. Linux only: elsewhere the script's process group is all that can be found.
"""

import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

from skillshelf.sandbox.processes import descendants

__all__ = ["command_of", "main"]

_PR_SET_CHILD_SUBREAPER = 36
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from skillshelf.sandbox.keeper import main; sys.exit(main(sys.argv[2:]))"
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
