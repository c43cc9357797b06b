"""A client of `skillshelf rpc` for tests: it sends lines, sorts the messages it receives, and answers confirmations."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import IO, Any

from skillshelf.servers.rpc.runtime import Options
from skillshelf.servers.rpc.server import Server
from support.trees import SOURCE, Machine

__all__ = ["WAIT", "RpcClient", "rpc_in_process", "rpc_process", "start"]

WAIT = 30.0
"""Seconds after which a test fails instead of waiting for ever."""

NO_ANSWER = object()


class RpcClient:
    """The client side of the protocol. `confirm` returns the answer to a confirmation; by default there is none."""

    def __init__(self, to_server: IO[bytes], from_server: IO[bytes]) -> None:
        self._to_server = to_server
        self._ids = count(1)
        self._answers: dict[Any, queue.SimpleQueue[Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.questions: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.others: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.confirm: Callable[[dict[str, Any]], Any] = lambda question: NO_ANSWER
        self._thread = threading.Thread(target=self._listen, args=(from_server,), daemon=True)
        self._thread.start()

    def _listen(self, stream: IO[bytes]) -> None:
        for line in stream:
            message = json.loads(line)
            if isinstance(message, dict) and message.get("method") == "event":
                self.events.append(message["params"])
            elif isinstance(message, dict) and message.get("method") == "confirm":
                self.questions.put(message)
                if (answer := self.confirm(message["params"])) is not NO_ANSWER:
                    self.send({"id": message["id"], "result": answer})
            elif isinstance(message, dict) and message.get("id") in self._answers:
                self._answers[message["id"]].put(message)
            else:
                self.others.put(message)

    def line(self, data: bytes) -> None:
        """Send one line as it is."""
        self._to_server.write(data + b"\n")
        self._to_server.flush()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.line(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def start(self, method: str, **params: Any) -> Callable[[], dict[str, Any]]:
        """Send a request; return a function that waits for its response."""
        id_ = f"t{next(self._ids)}"
        box = self._answers[id_] = queue.SimpleQueue()
        self.send({"id": id_, "method": method, "params": params})
        return lambda: box.get(timeout=WAIT)

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request."""
        answer = self.start(method, **params)()
        assert "result" in answer, answer
        return answer["result"]

    def fail(self, method: str, **params: Any) -> tuple[int, str]:
        """Return the code of an error, and the code in its data."""
        error = self.start(method, **params)()["error"]
        return error["code"], error.get("data", {}).get("code")

    def open(self, **params: Any) -> str:
        """Open a session and return its name."""
        name: str = self.ask("session.open", **params)["session"]
        return name

    def other(self) -> Any:
        """Return the next message that is not a response to a started request."""
        return self.others.get(timeout=WAIT)

    def close(self) -> None:
        """End the input and wait for the end of the output."""
        if not self._to_server.closed:
            self._to_server.close()
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


def start(machine: Machine, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start `skillshelf rpc` in its own process."""
    return subprocess.Popen(
        [sys.executable, "-m", "skillshelf", "rpc", "--home", str(machine.home), *words],
        cwd=machine.repo,
        env={"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "PYTHONPATH": SOURCE, **machine.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@contextmanager
def rpc_process(machine: Machine, *words: str) -> Iterator[RpcClient]:
    """Open a client of a real process, which must end with status 0 and without internal errors."""
    process = start(machine, *words)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    client = RpcClient(process.stdin, process.stdout)
    try:
        yield client
        client.close()
        assert process.wait(WAIT) == 0
        assert b"internal error in skillshelf" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        client.close()
        process.stdout.close()
        process.stderr.close()


@contextmanager
def rpc_in_process(
    machine: Machine, *, started: Mapping[str, Any] | None = None, **options: Any
) -> Iterator[RpcClient]:
    """Open a client of a server in this process, which was started with these options."""
    (read, to_server), (from_server, write) = os.pipe(), os.pipe()
    words = Options(str(machine.repo), home=str(machine.home))._replace(**(started or {}))
    server = Server(words, read=read, write=write, **options)

    def serve() -> None:
        server.serve()
        os.close(write)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with os.fdopen(to_server, "wb") as output, os.fdopen(from_server, "rb") as answers:
        client = RpcClient(output, answers)
        try:
            yield client
        finally:
            # Also after a failed test: closing a pipe that a thread still reads would wait for ever.
            client.close()
            thread.join(WAIT)
        assert not thread.is_alive()
    os.close(read)
