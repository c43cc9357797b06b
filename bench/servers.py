"""Time the answers of a server or of the picker: `python bench/servers.py ASK HOME [--no-cache]`.

The CPU time is that of the server process with all its threads, from its start or from the question up to the answer.
It prints a line like the drivers in `peers/`.
"""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["ASKS"]

TIMES = 5
LINES, COLUMNS = 24, 80
PATIENCE = 60.0
LETTERS = "zqjxvw"
PAUSE = 0.1
BACKSPACE = b"\x7f"
MCP_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

Figures = tuple[float, float, int | None]
"""Wall and CPU seconds, and the number of skills in the answer."""


def command(*words: str) -> list[str]:
    """Return the command line of a server on the home folder that was given."""
    home, *options = sys.argv[2:]
    return [sys.executable, "-m", "skillshelf", *words, "--home", home, "--cwd", f"{home}/work", *options]


def cpu_of(process: "subprocess.Popen[bytes]") -> float:
    """Return the CPU seconds of a running process."""
    # What clock_getcpuclockid(3) returns, which Python does not have; /proc counts in steps of ten milliseconds.
    return time.clock_gettime((~process.pid << 3) | 2)


class Server:
    """A running server that is asked in lines of JSON."""

    def __init__(self, *words: str, **params: Any) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._params = params
        self._asked = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a request; notifications before it are ignored."""
        self._asked += 1
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params | self._params}
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            # The answer that the clock waits for is long, and reading it as JSON is no work of the server.
            if b'"id"' in line[:60] or b'"id"' in line[-60:]:
                self.answered = time.perf_counter(), cpu_of(self.process)
                answer = json.loads(line)
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error'].get('message')}")
                return dict(answer["result"])
        assert self.process.stderr
        sys.exit(f"the server ended: {self.process.stderr.read().decode().strip()[-160:]}")

    def timed(self, method: str, **params: Any) -> Figures:
        """Return the least time of several equal requests."""
        wall, cpu, listed = [], [], None
        for _ in range(TIMES):
            before = time.perf_counter(), cpu_of(self.process)
            listed = skills_in(self.ask(method, **params))
            wall.append(self.answered[0] - before[0])
            cpu.append(self.answered[1] - before[1])
        return min(wall), min(cpu), listed

    def first(self, method: str) -> Figures:
        """Return the time from the start of the server to its first answer."""
        listed = skills_in(self.ask(method))
        return self.answered[0] - self.started, self.answered[1], listed


def skills_in(result: dict[str, Any]) -> int | None:
    """Return the number of skills in an answer, None if it has no list of them."""
    found = result.get("catalog", result).get("skills")
    return len(found) if isinstance(found, list) else None


@contextmanager
def running(*words: str, **params: Any) -> Iterator[Server]:
    """Run a server, and end it without waiting for what it still does."""
    server = Server(*words, **params)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def mcp_first() -> Figures:
    """Start a server and ask for its first page."""
    with running("mcp", _meta=MCP_META) as server:
        return server.first("skills/list")


def mcp_read() -> Figures:
    """Read a resource of the first page, again and again."""
    with running("mcp", _meta=MCP_META) as server:
        skills = server.ask("skills/list")["skills"]
        uri = skills[len(skills) // 2]["resources"][0]["uri"]
        server.ask("resources/read", uri=uri)
        return server.timed("resources/read", uri=uri)


def rpc_first() -> Figures:
    """Start a server and ask for the catalog."""
    with running("rpc") as server:
        return server.first("skills.list")


def rpc_again(**params: Any) -> Figures:
    """Ask for a catalog that did not change."""
    with running("rpc") as server:
        server.ask("skills.list")
        return server.timed("skills.list", **params)


# The picker -----------------------------------------------------------------------------------------


class Screen:
    """A picker that runs in a terminal of this program's own, and what it has drawn."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self.process, self._terminal = process, terminal
        self._drawn = b""

    def press(self, key: bytes) -> None:
        """Press a key; what was drawn before is forgotten."""
        self._take(0.0)
        self._drawn = b""
        os.write(self._terminal, key)

    def wait(self, text: str) -> None:
        """Wait until that text was drawn."""
        end = time.perf_counter() + PATIENCE
        while text.encode() not in self._drawn:
            if time.perf_counter() > end:
                sys.exit(f"{text!r} was not drawn within {PATIENCE:.0f} seconds")
            self._take(1.0)

    def _take(self, patience: float) -> None:
        while select.select([self._terminal], [], [], patience)[0]:
            try:
                self._drawn += os.read(self._terminal, 65536)
            except OSError:
                sys.exit(f"the picker ended: {self._drawn.decode('utf-8', 'replace').strip()[-160:]}")
            patience = 0.0


@contextmanager
def picker() -> Iterator[Screen]:
    """Run a picker, and end it without waiting for what it still does."""
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        command("pick"),
        stdin=other,
        stdout=other,
        stderr=other,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(other)
    try:
        yield Screen(process, terminal)
    finally:
        process.kill()
        os.close(terminal)
        process.wait()


def first_name() -> str:
    """Return the name of the first line of the picker."""
    done = subprocess.run(command("list", "--json"), capture_output=True, check=True)
    return min(skill["name"] for skill in json.loads(done.stdout)["skills"])


def picker_start() -> Figures:
    """Start the picker and wait for the first line of its list."""
    line = f">{first_name()[:20]}"
    start = time.perf_counter()
    with picker() as screen:
        screen.wait(line)
        return time.perf_counter() - start, cpu_of(screen.process), None


def picker_letter() -> Figures:
    """Type letters, one after the other; the median of the time until each is drawn counts."""
    line = f">{first_name()[:20]}"
    taken = []
    with picker() as screen:
        screen.wait(line)
        for letter in LETTERS:
            before = time.perf_counter(), cpu_of(screen.process)
            screen.press(letter.encode())
            screen.wait(letter)
            taken.append((time.perf_counter() - before[0], cpu_of(screen.process) - before[1]))
            time.sleep(PAUSE)
            screen.press(BACKSPACE)
            time.sleep(PAUSE)
    wall, cpu = (sorted(each[clock] for each in taken)[len(taken) // 2] for clock in (0, 1))
    return wall, cpu, None


ASKS: dict[str, Callable[[], Figures]] = {
    "mcp-first": mcp_first,
    "mcp-read": mcp_read,
    "rpc-first": rpc_first,
    "rpc-again": rpc_again,
    "rpc-reload": lambda: rpc_again(force_reload=True),
    "picker-start": picker_start,
    "picker-letter": picker_letter,
}


def main() -> None:
    """Print the figures of one question."""
    wall, cpu, listed = ASKS[sys.argv[1]]()
    print(json.dumps({"listed": listed, "wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3}))


if __name__ == "__main__":
    main()
