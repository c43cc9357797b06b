"""Start a copied script: in the sandbox, or with a reaper process where there is none."""

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
    bubblewrap_error,
    command_line,
    memory_file,
    program_path,
    script_variables,
)
from skillshelf.sandbox.reaper import descendants, reaper_command
from skillshelf.sandbox.scripts import RunFolder, StagedScript

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["Started", "in_sandbox", "no_sandbox", "not_started", "without_sandbox"]


class Started(NamedTuple):
    """A running script.

    All its processes descend from `root`. `end` kills them all and returns when they are dead. `began` tells
    afterwards whether the script itself was started.
    """

    process: "Popen[bytes]"
    root: int
    kind: Literal["bubblewrap", "none"]
    end: Callable[[], None]
    began: Callable[[], bool]


def no_sandbox(why: str) -> PermissionDenied:
    """Return the error for a machine without a sandbox."""
    return PermissionDenied(
        f"no sandbox is available: {why}; a script runs without one only if the policy allows `unsandboxed`"
    )


def not_started(stderr: bytes) -> SkillError:
    """Return the error for a script that the sandbox did not start."""
    if stderr.startswith(b"bwrap: execvp"):
        return ScriptNotRunnable(f"its program cannot be started: {visible(stderr.decode('utf-8', 'replace').strip())}")
    return no_sandbox(bubblewrap_error(stderr))


@contextmanager
def in_sandbox(
    bubblewrap: str,
    paths: RunFolder,
    staged: StagedScript,
    args: Sequence[str],
    *,
    limits: Mapping[str, int],
    grants: Grants,
) -> Iterator[Started]:
    """Run the script in the sandbox; it waits there until its limits are set."""
    program = staged.interpreter.program
    command = [*as_user(paths.user), *_command(program_path(program), SKILL, staged, args)]
    with ExitStack() as stack:
        prepared = command_line(bubblewrap, paths, program, grants)
        for descriptor in prepared.descriptors:
            stack.callback(os.close, descriptor)
        status, status_writer = _pipe(stack)
        wait, go = _pipe(stack)
        own = ["--json-status-fd", str(status_writer.fileno()), "--block-fd", str(wait.fileno())]
        variables = [word for item in script_variables(None, program).items() for word in ("--setenv", *item)]
        # Passed by descriptor: a script can read the command line of the process that made its sandbox.
        hidden = memory_file("\0".join([*prepared.arguments, *variables, *own]).encode("utf-8", "surrogateescape"))
        stack.callback(os.close, hidden)
        process = _open(
            [bubblewrap, "--args", str(hidden), "--", *command],
            descriptors=[*prepared.descriptors, status_writer.fileno(), wait.fileno(), hidden],
            env={},
            cwd="/",
        )
        stack.enter_context(process)
        stack.callback(_kill_with_children, process)
        status_writer.close()
        wait.close()
        try:
            root = _child(status.readline())
            ended = os.pidfd_open(root)
            stack.callback(os.close, ended)
            _limit(root, limits)
        except (OSError, ValueError):
            # It is dead already: the sandbox could not be created.
            raise no_sandbox(bubblewrap_error(process.communicate()[1])) from None
        go.write(b".")

        def end() -> None:
            # Bubblewrap ends its child only from a point that it may not have reached yet.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(ended, signal.SIGKILL)
            process.kill()
            _reap(process)
            _wait_for(ended)

        stack.callback(end)
        yield Started(process, root, "bubblewrap", end, lambda: b"exit-code" in status.read())


def _open(command: Sequence[str], *, descriptors: Sequence[int], env: Mapping[str, str], cwd: str) -> "Popen[bytes]":
    """Start a process with empty input that inherits only the given descriptors."""
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
    """Return the first process in the sandbox; raise ValueError if there is none."""
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
    """Kill a process and its children, if it has any yet."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process.pid, signal.SIGSTOP)
        # A stopped process starts no more children.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        for child in descendants(process.pid):
            with suppress(ProcessLookupError):
                _kill(child)
    process.kill()
    _reap(process)


def _kill(number: int) -> None:
    """Kill a process that is not our child and return when it is dead."""
    ended = os.pidfd_open(number)
    try:
        signal.pidfd_send_signal(ended, signal.SIGKILL)
        _wait_for(ended)
    finally:
        os.close(ended)


def _reap(process: "Popen[bytes]") -> None:
    """Return when a killed process is dead.

    Its own `wait` is not used: a signal in the middle of its `poll` leaves a lock taken, and `wait` would block
    forever.
    """
    if process.returncode is None:
        try:
            process.returncode = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        except ChildProcessError:
            # It was reaped already, and the signal came before the status was stored.
            process.returncode = -signal.SIGKILL


def _wait_for(ended: int) -> None:
    """Return when a process is dead; as the first of its namespace it takes all others with it."""
    import select

    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.poll()


@contextmanager
def without_sandbox(
    paths: RunFolder, staged: StagedScript, args: Sequence[str], *, limits: Mapping[str, int]
) -> Iterator[Started]:
    """Run the script with all rights of the user, and a reaper that ends it with all its children."""
    program = staged.interpreter.program
    # Outside a sandbox this limit counts all processes of the user, so it would affect other programs.
    kept = {name: number for name, number in limits.items() if name != "RLIMIT_NPROC"}
    with ExitStack() as stack:
        reaper_end, liveness = _pipe(stack)
        process = _open(
            reaper_command(reaper_end.fileno(), kept, _command(program, paths.skill, staged, args)),
            descriptors=[reaper_end.fileno()],
            env=script_variables(paths, program),
            cwd=paths.work,
        )
        stack.enter_context(process)
        reaper_end.close()

        def end() -> None:
            liveness.close()
            _reap(process)

        stack.callback(end)
        yield Started(process, process.pid, "none", end, lambda: True)


def _command(program: str, skill: str, staged: StagedScript, args: Sequence[str]) -> list[str]:
    return [program, *staged.interpreter.arguments, f"{skill}/{staged.path}", *args]


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return stack.enter_context(os.fdopen(reader, "rb", 0)), stack.enter_context(os.fdopen(writer, "wb", 0))
