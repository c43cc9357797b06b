"""The command in a process of its own, without the start of Python: forked from one that has loaded it already.

Most of the time of a short command is spent on starting Python and importing modules. A server, one for each process
that runs tests, does that once; every command is a fork of it, with a folder, an environment and streams of its own.
What must be there when Python starts, such as `PYTHONHASHSEED`, needs a process from scratch.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import skillshelf

__all__ = ["can_fork", "run_forked"]

_MOST_INPUT = 60_000
"""Bytes that fit into a pipe before anybody reads it."""

_AT_THE_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""Variables that count when a process starts."""


def can_fork(env: Mapping[str, str], words: Sequence[str], given: str) -> bool:
    """Whether a fork would do what a process from scratch does."""
    return (
        sys.platform == "linux"
        and not any(name.startswith(_AT_THE_START) for name in env if name != "PYTHONPATH")
        and len(given) < _MOST_INPUT // 4
        # A fork has the rights and the streams of the server, whatever happened to this process meanwhile.
        and (os.getuid(), os.getgid()) == (os.geteuid(), os.getegid())
        and not _BUSY.locked()
        # An argument that cannot be passed on is for the system to refuse.
        and not any("\0" in word for word in words)
    )


_BUSY = threading.Lock()
_SERVERS: dict[int, socket.socket] = {}


def run_forked(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], given: str | None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """The command `skillshelf` with these words, as `subprocess.run` would give it."""
    with _BUSY, contextlib.ExitStack() as streams:

        def pipe() -> list[int]:
            ends = list(os.pipe())
            for end in ends:
                streams.callback(_close, end)
            return ends

        stdin = pipe() if given is not None else [os.open(os.devnull, os.O_RDONLY), -1]
        stdout, stderr = pipe(), pipe()
        if given is not None:
            os.write(stdin[1], given.encode("utf-8", "surrogateescape"))
        else:
            streams.callback(_close, stdin[0])
        server = _server()
        order = json.dumps({"words": list(words), "cwd": os.fspath(cwd), "env": dict(env)}).encode()
        socket.send_fds(server, [len(order).to_bytes(8, "big")], [stdin[0], stdout[1], stderr[1]])
        server.sendall(order)
        child = int.from_bytes(_exactly(server, 8), "big")
        for end in (*stdin, stdout[1], stderr[1]):
            _close(end)
        written = _read_all({stdout[0]: b"", stderr[0]: b""}, child, timeout)
        status = int.from_bytes(_exactly(server, 8), "big", signed=True)
        texts = [written[end].decode() for end in (stdout[0], stderr[0])]
        return subprocess.CompletedProcess([*words], status, *texts)


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _read_all(written: dict[int, bytes], child: int, timeout: float) -> dict[int, bytes]:
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as ready:
        for descriptor in written:
            ready.register(descriptor, selectors.EVENT_READ)
        while ready.get_map():
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                raise subprocess.TimeoutExpired("skillshelf", timeout)
            for key, _ in ready.select(1):
                if piece := os.read(key.fd, 1 << 16):
                    written[key.fd] += piece
                else:
                    ready.unregister(key.fd)
    return written


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        assert piece, "the server of the tests is gone"
        data += piece
    return data


# The server ---------------------------------------------------------------------------------------


def _server() -> socket.socket:
    """The connection to the server of this process, which is started when it is first needed."""
    if os.getpid() not in _SERVERS:
        ours, theirs = socket.socketpair()
        subprocess.run(
            [sys.executable, __file__, str(theirs.fileno())],
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(Path(skillshelf.__file__).parent.parent)},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        theirs.close()
        _SERVERS[os.getpid()] = ours
        atexit.register(ours.close)
    return _SERVERS[os.getpid()]


def _serve(connection: socket.socket) -> None:
    """Fork for every order; returns in the fork, with everything as the order says."""
    if os.fork():
        # No child of the tests: some of them look for their children, to end them.
        os._exit(0)
    _import_all()
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
        if not head:
            os._exit(0)
        order = json.loads(_exactly(connection, int.from_bytes(head, "big")))
        child = os.fork()
        if not child:
            connection.close()
            _become(order, descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(child.to_bytes(8, "big"))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(status.to_bytes(8, "big", signed=True))


def _import_all() -> None:
    """Load what commands load, as far as it is installed."""
    import gc
    import pkgutil
    import re
    from importlib import import_module

    for module in pkgutil.walk_packages(skillshelf.__path__, "skillshelf."):
        # These need packages that may not be installed.
        if not re.search(r"__main__|adapters|cli\.(chat$|picker)|servers\.mcp", module.name):
            import_module(module.name)
    for name in ("argparse", "difflib", "ryaml", "sqlite3", "tantivy", "tomlkit", "tomllib"):
        import_module(name)
    gc.freeze()


def _become(order: Mapping[str, object], descriptors: Sequence[int]) -> None:
    for stream, descriptor in enumerate(descriptors):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order["env"])  # type: ignore[call-overload]
    os.chdir(str(order["cwd"]))
    sys.argv = ["skillshelf", *order["words"]]  # type: ignore[misc]


def _run() -> None:
    """Run the command and end the process at once: taking apart what the server had loaded takes longer than that."""
    from skillshelf.cli.main import main

    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _run()
