"""Start a copied script by the launcher: in the sandbox, or with a reaper process where there is none."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import IO, TYPE_CHECKING, Literal

from skillshelf.core.disk_writes import open_to_write
from skillshelf.core.files import path_bytes, read_file
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.core.values import Wall
from skillshelf.core.worker_thread import CallerLeft
from skillshelf.errors import PermissionDenied, ScriptNotRunnable
from skillshelf.sandbox.bubblewrap import (
    SKILL,
    Grants,
    as_user,
    bubblewrap_error,
    can_disable_userns,
    command_line,
    memory_file,
    program_path,
    script_variables,
)
from skillshelf.sandbox.scripts import RunFolder, StagedScript
from skillshelf.sandbox.seccomp import filter_problem, load_filter

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["Started", "in_sandbox", "no_sandbox", "without_sandbox"]


class Launched:
    """A launcher process, and our end of the socket to it and to the script's process before it starts.

    It becomes readable when the launcher says something, and when it and all processes of the script have ended.
    """

    def __init__(self, gate: socket.socket, process: "Popen[bytes]") -> None:
        self.gate = gate
        self.process = process
        self._said = b""

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self.gate.fileno()

    def hear(self) -> bytes:
        """Take what the launcher says; nothing means that it has ended."""
        try:
            data = self.gate.recv(4096)
        except ConnectionResetError:
            # It was closed before all was read that we said.
            return b""
        # A script may get hold of the socket, and could say anything, but only about itself.
        self._said = (self._said + data)[-4096:]
        return data

    @property
    def exit_code(self) -> int:
        """The exit code of the script, as in a shell; that of a killed one if it did not end by itself."""
        codes = [line[5:] for line in self._said.split(b"\n") if line.startswith(b"exit ")]
        return int(codes[-1]) if codes and codes[-1].isdigit() else 128 + signal.SIGKILL

    def end(self) -> None:
        """Let the launcher kill all processes of the script, and return when it has."""
        # Not `close`: a process that was forked off from us meanwhile may have the same socket.
        with suppress(OSError):
            self.gate.shutdown(socket.SHUT_RDWR)
        if self.process.returncode is None:
            if not _ends(self.process.pid, _END_SECONDS):
                # Its children die with it.
                self.process.kill()
                _ends(self.process.pid, _END_SECONDS)
            try:
                status = os.waitpid(self.process.pid, os.WNOHANG if sys.platform == "linux" else 0)[1]
            except ChildProcessError:
                # Somebody else took its status, or the program around us ignores the ends of its children.
                status = 0
            self.process.returncode = os.waitstatus_to_exitcode(status)


_END_SECONDS = 20.0
"""Seconds that the launcher may take to kill all processes of a script."""


def _ends(process: int, seconds: float) -> bool:
    """Return whether a process ends in that time."""
    import select

    if sys.platform != "linux":
        return True
    try:
        ended = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        events = select.poll()
        events.register(ended, select.POLLIN)
        return bool(events.poll(seconds * 1000))
    finally:
        os.close(ended)


class Started(NamedTuple):
    """A running script.

    All its processes descend from `root`. `missing` are the parts of the sandbox that it does not have.
    """

    launched: Launched
    root: int
    kind: Literal["bubblewrap", "none"]
    missing: tuple[Wall, ...] = ()


OnReady = Callable[[int, int | None, Iterable[Wall]], tuple[Wall, ...]]
"""Called before the script starts, with the first process of its tree, the only other one, which waits and may be
unknown, and the parts of the sandbox that are missing so far; it returns all that are missing. An exception ends the
process."""


def _missing_in_sandbox(bubblewrap: str, user: int | None, *, filtered: bool) -> Iterator[Wall]:
    if not filtered:
        yield "seccomp"
        if user is not None or not can_disable_userns(bubblewrap):
            yield "userns"


def _missing_without_sandbox(*, filtered: bool) -> Iterator[Wall]:
    yield "bubblewrap"
    if not filtered:
        yield from ("seccomp", "userns")


def no_sandbox(why: str) -> PermissionDenied:
    """Return the error for a machine without a sandbox."""
    return PermissionDenied(
        f"no sandbox is available: {why}; a script runs without one only if the policy allows `unsandboxed`"
    )


@contextmanager
def in_sandbox(
    bubblewrap: str,
    paths: RunFolder,
    staged: StagedScript,
    args: Sequence[str],
    *,
    limits: Mapping[str, int],
    grants: Grants,
    cgroups: Sequence[str],
    seconds: float,
    caller: int,
    on_ready: OnReady,
) -> Iterator[Started]:
    """Run the script in the sandbox; it waits there until its limits are set.

    `cgroups` are files by which a process enters its cgroups, before it makes the sandbox. `seconds` bound the start;
    it ends when the descriptor `caller` becomes readable.
    """
    seccomp = None if grants.all_calls or filter_problem() else load_filter()
    known = tuple(_missing_in_sandbox(bubblewrap, paths.user, filtered=seccomp is not None))
    program = staged.interpreter.program
    command = [*as_user(paths.user), *_command(program_path(program), SKILL, staged, args)]
    with ExitStack() as stack:
        prepared = command_line(bubblewrap, paths, program, grants, seccomp)
        for descriptor in prepared.descriptors:
            stack.callback(os.close, descriptor)
        status, status_writer = _pipe(stack)
        own = ["--json-status-fd", str(status_writer.fileno())]
        # Passed by descriptor: a script can read the command line of the process that made its sandbox.
        hidden = memory_file("\0".join([*prepared.arguments, *own]).encode("utf-8", "surrogateescape"))
        stack.callback(os.close, hidden)
        entrances = []
        for path in cgroups:
            # Without it the process does not enter, which is seen before the script starts.
            with suppress(OSError):
                entrances.append(open_to_write(path))
                stack.callback(os.close, entrances[-1])
        launched = _launch(
            stack,
            "sandbox",
            [bubblewrap, "--args", str(hidden), "--", *_gated(program_path(program), command, program)],
            descriptors=[*prepared.descriptors, status_writer.fileno(), hidden],
            limits={name: max(number, _FLOORS[name]) for name, number in limits.items() if name in _FLOORS},
            cwd="/",
            entrances=entrances,
        )
        status_writer.close()
        ready = _until_ready(launched.gate, caller, seconds)
        if ready is None:
            raise no_sandbox(bubblewrap_error(_errors(launched)))
        if ready.process is None:
            raise ScriptNotRunnable(f"{visible(program)} cannot be started: it is not visible in the sandbox")
        root = _status(status.readline())["child-pid"]
        _limit(ready.process, limits)
        missing = on_ready(root, ready.process or None, (*known, *ready.missing))
        launched.gate.send(_GO)
        yield Started(launched, root, "bubblewrap", missing)


# Inside the walls, right before the script: it says that all is set up, and starts only on a byte. An end of file means
# that the supervisor is gone. The environment is given whole, because some shells add to it.
_GATE = (
    '[ -x "$1" ] || { echo unseen >&0; exit 125; }; shift; '
    'echo ready >&0; read -r go || exit 125; exec /usr/bin/env -i "$@" </dev/null'
)
_GO = b"\n"

_FLOORS = {"RLIMIT_CORE": 0, "RLIMIT_DATA": 64 * 1024 * 1024, "RLIMIT_FSIZE": 1024 * 1024, "RLIMIT_NOFILE": 1024}
"""The limits that bubblewrap itself needs: lower ones are set when it has done its work. The number of processes is
limited only inside: outside it counts all processes of the user."""


def _gated(program: str, command: Sequence[str], interpreter: str) -> list[str]:
    variables = [f"{name}={value}" for name, value in script_variables(None, interpreter).items()]
    if "=" in command[0]:
        # `env` takes such a program for a variable.
        command = ["/bin/sh", "-c", 'exec "$0" "$@"', *command]
    return ["/bin/sh", "-c", _GATE, "gate", program, *variables, *command]


class _Ready(NamedTuple):
    """The message over the gate: the process that waits, or None if its program is not there, and missing parts."""

    process: int | None
    missing: tuple[Wall, ...]


def _until_ready(gate: socket.socket, caller: int, seconds: float) -> _Ready | None:
    """Return when the script's process waits for the start; None if it ended before."""
    import select
    import struct
    import time

    events = select.poll()
    events.register(gate, select.POLLIN)
    events.register(caller, select.POLLIN)
    end = time.monotonic() + seconds
    said = b""
    while True:
        found = [descriptor for descriptor, _ in events.poll(max(0.0, end - time.monotonic()) * 1000)]
        if caller in found:
            raise CallerLeft
        if not found:
            raise ScriptNotRunnable(f"it could not be started within {seconds:g} seconds")
        try:
            data, credentials, _, _ = gate.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS))
        except ConnectionResetError:
            return None
        if not data:
            return None
        said += data
        lines = said.decode("ascii", "replace").split("\n")[:-1]
        missing: tuple[Wall, ...] = ("keyring",) if "keyring" in lines else ()
        if "ready" in lines:
            # The system itself says who wrote this.
            sender = struct.unpack("3i", credentials[0][2])[0] if credentials else 0
            return _Ready(sender, missing)
        if "unseen" in lines:
            return _Ready(None, missing)
        if any(line.startswith("exit ") for line in lines):
            return None


_CREDENTIALS = 12
"""The size of struct ucred."""


def _launch(
    stack: ExitStack,
    way: Literal["sandbox", "reaper"],
    command: Sequence[str],
    *,
    descriptors: Sequence[int] = (),
    limits: Mapping[str, int],
    cwd: str,
    env: Mapping[str, str] | None = None,
    seccomp: bytes | None = None,
    entrances: Sequence[int] = (),
) -> Launched:
    """Start the launcher and give it its plan; it has the other end of the socket as its input.

    The command inherits the descriptors, but not those of the `entrances` to its cgroups.
    """
    import marshal

    from skillshelf.sandbox import launcher

    if not sys.executable:
        raise ScriptNotRunnable("it cannot be started: this program does not say where its Python is (sys.executable)")
    gate, inner = socket.socketpair()
    stack.enter_context(gate)
    with inner:
        if sys.platform == "linux":
            gate.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        code = memory_file(_compiled(launcher.__file__))
        try:
            words = ["-I", "-S", "-c", _BOOT, str(os.getpid()), way, str(code)]
            process = _open([sys.executable, *words], inner.fileno(), [*descriptors, *entrances, code])
        finally:
            os.close(code)
    launched = Launched(gate, process)
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stack.enter_context(stream)
    stack.callback(launched.end)
    plan = marshal.dumps(
        {
            "command": [path_bytes(word) for word in command],
            "cwd": path_bytes(cwd),
            "descriptors": list(descriptors),
            "entrances": list(entrances),
            "env": {path_bytes(name): path_bytes(value) for name, value in (env or {}).items()},
            "limits": dict(limits),
            "package": os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
            "seccomp": seccomp,
        }
    )
    # It may have ended already, and what it said about that is read later.
    with suppress(BrokenPipeError, ConnectionResetError):
        gate.sendall(len(plan).to_bytes(8, "big") + plan)
    return launched


# Compiled already: to read and compile its source would take a quarter of the time that Python needs to start.
_BOOT = "import marshal,os,sys;f=int(sys.argv.pop());c=os.read(f,1<<20);os.close(f);exec(marshal.loads(c))"


@cache
def _compiled(path: str) -> bytes:
    """Return the compiled launcher, for another process of the same Python."""
    import marshal

    data = read_file(path, limit=_LAUNCHER_BYTES, links="follow")
    if data is None:
        raise ScriptNotRunnable(f"it cannot be started: {visible(path)} is not a file of this program")
    # Some installations have compiled modules only.
    return data[_COMPILED_HEADER:] if path.endswith(".pyc") else marshal.dumps(compile(data, path, "exec"))


_LAUNCHER_BYTES = 1024 * 1024
_COMPILED_HEADER = 16
"""The bytes of a compiled module before its code."""


def _open(command: Sequence[str], standard_input: int, descriptors: Sequence[int]) -> "Popen[bytes]":
    """Start a process that inherits only the given descriptors."""
    import subprocess

    # What Python itself needs to start where it was installed in an unusual way; the script does not get it.
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    try:
        return subprocess.Popen(
            command,
            stdin=standard_input,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd="/",
            start_new_session=True,
            pass_fds=descriptors,
        )
    except OSError as error:
        raise ScriptNotRunnable(f"it cannot be started: {error}") from error


def _status(lines: bytes) -> dict[str, int]:
    """Return what bubblewrap said about its child."""
    import json

    said: dict[str, int] = {}
    for line in lines.splitlines():
        said |= json.loads(line)
    return said


def _limit(process: int, limits: Mapping[str, int]) -> None:
    import resource

    if sys.platform == "linux":
        for name, number in limits.items():
            kind = getattr(resource, name)
            hard = resource.prlimit(process, kind)[1]
            most = number if hard == resource.RLIM_INFINITY else min(number, hard)
            resource.prlimit(process, kind, (most, most))


def _errors(launched: Launched) -> bytes:
    """Return the error output of a launcher that ends."""
    launched.end()
    assert launched.process.stderr is not None
    os.set_blocking(launched.process.stderr.fileno(), False)
    return launched.process.stderr.read(4096) or b""


@contextmanager
def without_sandbox(
    paths: RunFolder,
    staged: StagedScript,
    args: Sequence[str],
    *,
    limits: Mapping[str, int],
    grants: Grants,
    seconds: float,
    caller: int,
    on_ready: OnReady,
) -> Iterator[Started]:
    """Run the script with all rights of the user, and a reaper that ends it with all its children."""
    seccomp = None if grants.all_calls or filter_problem() else load_filter()
    program = staged.interpreter.program
    with ExitStack() as stack:
        launched = _launch(
            stack,
            "reaper",
            _command(program, paths.skill, staged, args),
            # Outside a sandbox this limit counts all processes of the user, so it would affect other programs.
            limits={name: number for name, number in limits.items() if name != "RLIMIT_NPROC"},
            cwd=paths.work,
            env=script_variables(paths, program),
            seccomp=seccomp,
        )

        ready = _until_ready(launched.gate, caller, seconds)
        if ready is None:
            words = visible(_errors(launched).decode("utf-8", "replace").strip())
            raise ScriptNotRunnable(f"it cannot be started: {words}")
        missing = (*_missing_without_sandbox(filtered=seccomp is not None), *ready.missing)
        missing = on_ready(launched.process.pid, ready.process or None, missing)
        launched.gate.send(_GO)
        yield Started(launched, launched.process.pid, "none", missing)


def _command(program: str, skill: str, staged: StagedScript, args: Sequence[str]) -> list[str]:
    return [program, *staged.interpreter.arguments, f"{skill}/{staged.path}", *args]


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return stack.enter_context(os.fdopen(reader, "rb", 0)), stack.enter_context(os.fdopen(writer, "wb", 0))
