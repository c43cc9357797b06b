"""How long the picker lets a person wait: `python bench/picker.py [--skills N] [--seconds S]`.

It runs in a terminal of this program's own. A key is late by the time from when it was sent until what it does was
drawn; keys are sent one after the other, from the first screen on, while index and hosts are still being read.
"""

import argparse
import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trees import write_tree

__all__ = ["main"]

LINES, COLUMNS = 24, 80
PAUSE = 0.1
PATIENCE = 60.0
LETTERS = "zqjxvw"
DOWN, BACKSPACE = b"\x1b[B", b"\x7f"


class Screen:
    """A picker that runs, and what it has drawn."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self._process, self._terminal = process, terminal
        self._drawn = b""

    def press(self, key: bytes) -> None:
        """Press a key; what was drawn before is forgotten."""
        self._take(0.0)
        self._drawn = b""
        os.write(self._terminal, key)

    def wait(self, text: str) -> float:
        """The seconds until that text was drawn."""
        start = time.perf_counter()
        while text.encode() not in self._drawn:
            if time.perf_counter() - start > PATIENCE:
                raise SystemExit(f"{text!r} was not drawn within {PATIENCE:.0f} seconds")
            self._take(1.0)
        return time.perf_counter() - start

    def _take(self, patience: float) -> None:
        while select.select([self._terminal], [], [], patience)[0]:
            self._drawn += os.read(self._terminal, 65536)
            patience = 0.0


@contextmanager
def picker(home: Path) -> Iterator[Screen]:
    """A picker in a terminal of its own, which is ended afterwards."""
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    words = [sys.executable, "-m", "skillshelf", "pick", "--home", str(home)]
    env = {**os.environ, "TERM": "xterm-256color", "HOME": str(home)}
    process = subprocess.Popen(
        words, stdin=other, stdout=other, stderr=other, cwd=home, env=env, start_new_session=True, preexec_fn=_control
    )
    os.close(other)
    try:
        yield Screen(process, terminal)
    finally:
        process.send_signal(signal.SIGTERM)
        os.close(terminal)
        process.wait(30)


def _control() -> None:
    """Make the terminal the one that `/dev/tty` means."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def typed(screen: Screen, seconds: float) -> Iterator[float]:
    """How late each of many letters is: one is typed, taken away, and so on."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for letter in LETTERS:
            screen.press(letter.encode())
            yield screen.wait(letter)
            time.sleep(PAUSE)
        for _ in LETTERS:
            screen.press(BACKSPACE)
            time.sleep(PAUSE / 2)


def scrolled(screen: Screen, names: list[str], steps: int) -> Iterator[float]:
    """How late each step down the list is."""
    for name in names[1 : steps + 1]:
        screen.press(DOWN)
        yield screen.wait(f">{name}")
        time.sleep(PAUSE / 5)


def told(what: str, waits: list[float]) -> None:
    """Print one row."""
    ordered = sorted(1000 * wait for wait in waits)
    high = ordered[int(len(ordered) * 0.95)]
    print(
        f"| {what} | {len(ordered)} | {statistics.median(ordered):.0f} | {high:.0f} | {ordered[-1]:.0f} |", flush=True
    )


def main() -> None:
    """Print a table: the first screen, keys while everything is read for the first time, keys after that."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    wanted = parser.parse_args()
    home = Path(tempfile.mkdtemp())
    try:
        write_tree(home / ".agents/skills", wanted.skills)
        names = sorted(path.name for path in (home / ".agents/skills").iterdir())
        print("| what | times | median ms | 95 % ms | longest ms |\n|---|--:|--:|--:|--:|")
        for run in ("first run", "next run"):
            start = time.perf_counter()
            with picker(home) as screen:
                screen.wait(f">{names[0]}")
                told(f"{run}: list is there", [time.perf_counter() - start])
                told(f"{run}: letter", list(typed(screen, wanted.seconds)))
                screen.wait(f">{names[0]}")
                told(f"{run}: step down", list(scrolled(screen, names, 60)))
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
