"""A copied script to a running process: behind walls, or with a keeper where there are none."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from skillshelf.core.text import visible
from skillshelf.errors import PermissionDenied, ScriptNotRunnable, SkillError
from skillshelf.sandbox.bubblewrap import (
    SKILL,
    Grants,
    as_user,
    command_line,
    entry_of,
    environment,
    in_memory,
    why_not,
)
from skillshelf.sandbox.reaper import command_of, descendants
from skillshelf.sandbox.scripts import Staged, StagedPaths

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["Started", "in_sandbox", "no_sandbox", "not_begun", "without_sandbox"]


class Started(NamedTuple):
    """A script that runs.

    All its processes come from `root`. `end` kills them all and comes back when they are dead. `began` says
    afterwards whether the script was reached at all.
    """

    process: "Popen[bytes]"
    root: int
    kind: Literal["bubblewrap", "none"]
    end: Callable[[], None]
    began: Callable[[], bool]


def no_sandbox(why: str) -> PermissionDenied:
    """The refusal where no sandbox can be made."""
    return PermissionDenied(
        f"no sandbox here, because {why}; a script runs without one only where the policy allows `unsandboxed`"
    )


def not_begun(stderr: bytes) -> SkillError:
    """The refusal where there was a sandbox, but the script was not reached in it."""
    if stderr.startswith(b"bwrap: execvp"):
        return ScriptNotRunnable(f"its program cannot be started: {visible(stderr.decode('utf-8', 'replace').strip())}")
    return no_sandbox(why_not(stderr))


@contextmanager
def in_sandbox(
    bubblewrap: str,
    place: StagedPaths,
    staged: Staged,
    args: Sequence[str],
    *,
    limits: Mapping[str, int],
    grants: Grants,
) -> Iterator[Started]:
    """The script behind walls; it waits there until its limits are set."""
    program = staged.interpreter.program
    command = [*as_user(place.user), *_command(entry_of(program), SKILL, staged, args)]
    with ExitStack() as stack:
        prepared = command_line(bubblewrap, place, program, grants)
        for descriptor in prepared.descriptors:
            stack.callback(os.close, descriptor)
        told, tell = _pipe(stack)
        wait, go = _pipe(stack)
        own = ["--json-status-fd", str(tell.fileno()), "--block-fd", str(wait.fileno())]
        variables = [word for item in environment(None, program).items() for word in ("--setenv", *item)]
        # Not as words: a script can see the command line of the process that made its walls.
        hidden = in_memory("\0".join([*prepared.arguments, *variables, *own]).encode("utf-8", "surrogateescape"))
        stack.callback(os.close, hidden)
        process = _open(
            [bubblewrap, "--args", str(hidden), "--", *command],
            descriptors=[*prepared.descriptors, tell.fileno(), wait.fileno(), hidden],
            env={},
            cwd="/",
        )
        stack.enter_context(process)
        stack.callback(_kill_with_children, process)
        tell.close()
        wait.close()
        try:
            root = _child(told.readline())
            ended = os.pidfd_open(root)
            stack.callback(os.close, ended)
            _limit(root, limits)
        except (OSError, ValueError):
            # It is dead already: the walls could not be put up.
            raise no_sandbox(why_not(process.communicate()[1])) from None
        go.write(b".")

        def end() -> None:
            # Bubblewrap takes it along only from a point that it may not have reached yet.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(ended, signal.SIGKILL)
            process.kill()
            _reap(process)
            _wait_for(ended)

        stack.callback(end)
        yield Started(process, root, "bubblewrap", end, lambda: b"exit-code" in told.read())


def _open(command: Sequence[str], *, descriptors: Sequence[int], env: Mapping[str, str], cwd: str) -> "Popen[bytes]":
    """A process with nothing to read, and nothing of ours but the descriptors it is given."""
    import subprocess

    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise ScriptNotRunnable(f"it cannot be started: {error}") from error


def _child(status: bytes) -> int:
    """The first process behind the walls; ValueError if there is none."""
    import json

    return int(json.loads(status)["child-pid"])


def _limit(process: int, limits: Mapping[str, int]) -> None:
    import resource

    if sys.platform == "linux":
        for name, number in limits.items():
            kind = getattr(resource, name)
            hard = resource.prlimit(process, kind)[1]
            most = number if hard == resource.RLIM_INFINITY else min(number, hard)
            resource.prlimit(process, kind, (most, most))


def _kill_with_children(process: "Popen[bytes]") -> None:
    """End a process of which nobody knows yet whether it has children."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process.pid, signal.SIGSTOP)
        # It has no further children from the moment on in which it stands still.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        for child in descendants(process.pid):
            with suppress(ProcessLookupError):
                _kill(child)
    process.kill()
    _reap(process)


def _kill(number: int) -> None:
    """Come back when a process that is not our own child is dead."""
    ended = os.pidfd_open(number)
    try:
        signal.pidfd_send_signal(ended, signal.SIGKILL)
        _wait_for(ended)
    finally:
        os.close(ended)


def _reap(process: "Popen[bytes]") -> None:
    """Come back when a killed process is dead.

    Not by its own `wait`: a signal that comes in the middle of its `poll` leaves a lock taken, for which that would
    wait for ever.
    """
    if process.returncode is None:
        try:
            process.returncode = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        except ChildProcessError:
            # It was told of its end already, and the signal came before that was noted.
            process.returncode = -signal.SIGKILL


def _wait_for(ended: int) -> None:
    """Come back when a process is dead, and with it, as the first of its namespace, all others there."""
    import select

    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.poll()


@contextmanager
def without_sandbox(
    place: StagedPaths, staged: Staged, args: Sequence[str], *, limits: Mapping[str, int]
) -> Iterator[Started]:
    """The script with all rights of the user, and a keeper that ends it with all its children."""
    program = staged.interpreter.program
    # Processes are counted for the whole user here, so that limit would be one for the user's other programs.
    kept = {name: number for name, number in limits.items() if name != "RLIMIT_NPROC"}
    with ExitStack() as stack:
        heard, leash = _pipe(stack)
        process = _open(
            command_of(heard.fileno(), kept, _command(program, place.skill, staged, args)),
            descriptors=[heard.fileno()],
            env=environment(place, program),
            cwd=place.work,
        )
        stack.enter_context(process)
        heard.close()

        def end() -> None:
            leash.close()
            _reap(process)

        stack.callback(end)
        yield Started(process, process.pid, "none", end, lambda: True)


def _command(program: str, skill: str, staged: Staged, args: Sequence[str]) -> list[str]:
    return [program, *staged.interpreter.arguments, f"{skill}/{staged.path}", *args]


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return stack.enter_context(os.fdopen(reader, "rb", 0)), stack.enter_context(os.fdopen(writer, "wb", 0))
