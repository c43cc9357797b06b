"""Make the state of a script's process from nothing, start it in the sandbox or without one, and end all its processes.

Runs as its own process, by its path and with few imports: every millisecond here is added to every run. Its standard
input is a socket to the supervisor: over it come a plan and later the word to start; back go the names of missing
parts, `ready` and the exit code.
"""

# Not `signal`, nor `ctypes` below: their enums and classes take longer to make than all the rest.
import _signal  # type: ignore[import-not-found]
import marshal
import os
import resource
import select
import sys

__all__ = ["NOT_STARTED", "main"]

NOT_STARTED = 125
"""The exit code of a process that ended before the script was started."""

_END_MILLISECONDS = 200
_GATE = 0
_UMASK = 0o022
_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_KEYCTL_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}
"""The number of the system call, which the C library has no function for."""


def main(supervisor: int, way: str) -> int:
    """Take a plan from the supervisor, start the script, and return its exit code when all its processes have ended."""
    _default_signals()
    # Opened before the check of the parent: it is the supervisor's as long as it is our parent.
    parent = os.pidfd_open(supervisor) if _LINUX else None
    _check_parent(supervisor)
    plan = marshal.loads(_take(int.from_bytes(_take(8), "big")))
    if _LINUX:
        # Orphans of the script become our children, so that they can be found and killed.
        _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Written to by the C handler of every signal, so none is missed between two looks.
    signals, signal_writer = os.pipe()
    os.set_blocking(signal_writer, False)
    _signal.set_wakeup_fd(signal_writer, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    reaper = os.getpid()
    script = os.fork()
    if script == 0:
        _start(plan, way, reaper)
    for descriptor in (*plan["descriptors"], *plan["entrances"]):
        os.close(descriptor)
    code = _wait_for(script, signals, parent)
    if way != "sandbox" or not _end_sandbox(script, signals):
        sys.path.insert(0, plan["package"])
        from skillshelf.sandbox.reaper import end_all

        end_all(script)
    # Not by the exit code alone: a supervisor that ignores the ends of its children is not told that. One that is
    # gone ends this process here.
    os.write(_GATE, f"exit {code}\n".encode())
    return code


def _start(plan: dict, way: str, reaper: int) -> None:  # type: ignore[type-arg]
    """Become the sandbox, or the script when the supervisor says so."""
    try:
        _signal.set_wakeup_fd(-1)
        _die_with(reaper)
        os.setsid()
        for entrance in plan["entrances"]:
            _enter(entrance)
        _make_state(plan)
        if way != "sandbox":
            os.write(_GATE, b"ready\n")
            _take(1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), _GATE)
            if plan["seccomp"] is not None:
                _set_filter(plan["seccomp"])
        os.execve(plan["command"][0], plan["command"], plan["env"])
    except (OSError, ValueError) as error:
        os.write(2, f"{os.fsdecode(plan['command'][0])}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _wait_for(script: int, signals: int, supervisor: int | None) -> int:
    """Return the exit code of the script, as a shell does, when it or its supervisor ends, or the gate is closed.

    `signals` becomes readable with every signal. `supervisor` is a pidfd: a process that was forked off from the
    supervisor may still have the other end of the gate.
    """
    events = select.poll()
    events.register(signals, select.POLLIN)
    # Not what is said over the gate, which is for the script's process, but only its end.
    events.register(_GATE, 0)
    if supervisor is not None:
        events.register(supervisor, select.POLLIN)
    while [ready for ready, _ in events.poll()] == [signals]:
        os.read(signals, 512)
        code = _reap_until(script)
        if code is not None:
            return code
    return 128 + int(_signal.SIGKILL)


def _reap_until(script: int) -> int | None:
    """Reap dead children but the script; return its exit code if it is dead.

    It stays a zombie until its group is killed, so that no other process can have its number by then.
    """
    while True:
        try:
            if not _LINUX:
                child, status = os.waitpid(-1, os.WNOHANG)
                if child == script:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
            else:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                child = ended.si_pid if ended else 0
                if ended and child == script:
                    return ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status
                if child:
                    os.waitpid(child, 0)
        except ChildProcessError:
            return None
        if not child:
            return None


def _end_sandbox(bubblewrap: int, signals: int) -> bool:
    """Kill bubblewrap and the first process in the sandbox; return whether all are dead soon.

    Bubblewrap alone is not enough: if it is killed early, its child waits for it forever. Both belong to one group,
    until the child leaves it: then the child dies with bubblewrap, and all others with the child.
    """
    try:
        os.killpg(bubblewrap, _signal.SIGKILL)
    except ProcessLookupError:
        # It leads no group yet.
        os.kill(bubblewrap, _signal.SIGKILL)
    events = select.poll()
    events.register(signals, select.POLLIN)
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        if not events.poll(_END_MILLISECONDS):
            return False
        os.read(signals, 512)


def _die_with(parent: int) -> None:
    """Be killed when the parent ends."""
    if _LINUX:
        _call("prctl", _PR_SET_PDEATHSIG, int(_signal.SIGKILL), 0, 0, 0)
    _check_parent(parent)


def _check_parent(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(NOT_STARTED)


def _take(count: int) -> bytes:
    """Read from the supervisor; end if it is gone."""
    data = b""
    while len(data) < count:
        part = os.read(_GATE, count - len(data))
        if not part:
            os._exit(NOT_STARTED)
        data += part
    return data


def _enter(entrance: int) -> None:
    """Move this process to the cgroup of an open file; where that fails, the supervisor sees that it is not there."""
    try:
        os.write(entrance, b"0")
    except OSError:
        return
    finally:
        # No script may have it.
        os.close(entrance)


def _make_state(plan: dict) -> None:  # type: ignore[type-arg]
    """Set all that a process inherits, whatever the supervisor's is; descriptors are closed by exec."""
    _default_signals()
    os.umask(_UMASK)
    os.chdir(plan["cwd"])
    if not _join_new_keyring():
        os.write(_GATE, b"keyring\n")
    for name, number in plan["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(kind, (most, most))


def _default_signals() -> None:
    for number in _signal.valid_signals():
        if number not in (_signal.SIGKILL, _signal.SIGSTOP):
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _join_new_keyring() -> bool:
    """Leave the session keyring, which holds credentials, for an empty one without a name."""
    if not _LINUX:
        # There is no such thing to leave.
        return True
    number = _KEYCTL.get(os.uname().machine)
    return number is not None and _call("syscall", number, _KEYCTL_JOIN_SESSION_KEYRING, None) != -1


def _call(function: str, *words: int | None) -> int:
    """Call a function of the C library with numbers and null pointers."""
    try:
        from _ctypes import call_function, dlopen, dlsym
    except ImportError:
        # Another Python than CPython.
        import ctypes

        return int(getattr(ctypes.CDLL(None), function)(*words))
    program: str = None  # type: ignore[assignment]  # The program itself, as in `ctypes.CDLL(None)`.
    return int(call_function(dlsym(dlopen(program, 0), function), words))


def _set_filter(program: bytes) -> None:
    """Filter the system calls of this process and of all that it starts; raise OSError if that cannot be."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions of 8 bytes, and where they are.
    pointer = ctypes.addressof(instructions).to_bytes(8, sys.byteorder)
    given = ctypes.create_string_buffer((len(program) // 8).to_bytes(8, sys.byteorder) + pointer, 16)
    for words in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, given, 0, 0)):
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "the seccomp filter cannot be set")


if __name__ == "__main__":
    try:
        os._exit(main(int(sys.argv[1]), sys.argv[2]))
    except (OSError, ValueError) as error:
        sys.exit(f"launcher: {error}")
