"""Measures how many events a second a journal takes: `python bench/journal.py [FOLDER]`.

The floor is a program that adds lines of the same size to an open file and does nothing else.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import Process
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from skillshelf.journal.file import Journal, read, verify

PAYLOAD = {"name": "release-notes", "path": "/home/ada/.agents/skills/release-notes/SKILL.md", "mode": "auto"}


def add(path: str, count: int, fsync: str = "never") -> None:
    """Events by one writer."""
    journal = Journal(path, session="0123456789abcdef", fsync=fsync)  # type: ignore[arg-type]
    for _ in range(count):
        assert journal.append("skill_invoked", PAYLOAD), journal.problem
    journal.close()


def add_together(path: str, count: int) -> None:
    """Events by eight writers."""
    writers = [Process(target=add, args=(path, count // 8)) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def add_plainly(path: str, count: int) -> None:
    """Lines without lock, chain and JSON."""
    with open(path, "ab", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * 380 + b"\n")


def measure(what: str, run: Callable[[str, int], object], path: str, count: int, floor: float | None) -> float:
    """Print one row and return how many a second."""
    began = time.perf_counter()
    run(path, count)
    speed = count / (time.perf_counter() - began)
    print(f"{what:28}{speed:12,.0f} a second" + (f"{floor / speed:10.1f} floors" if floor else ""))
    return speed


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        floor = measure("floor: plain lines", add_plainly, f"{folder}/plain", 20_000, None)
        measure("fsync never", lambda path, count: add(path, count), f"{folder}/never", 10_000, floor)
        measure("fsync end", lambda path, count: add(path, count, "end"), f"{folder}/end", 10_000, floor)
        measure("fsync always", lambda path, count: add(path, count, "always"), f"{folder}/always", 500, floor)
        measure("eight writers, fsync never", add_together, f"{folder}/together", 10_000, floor)
        measure("read", lambda path, _: sum(1 for _ in read(path)), f"{folder}/never", 10_000, None)
        measure("verify", lambda path, _: verify(path), f"{folder}/together", 10_000, None)
        assert verify(f"{folder}/together").ok
        print(f"{os.path.getsize(f'{folder}/never') / 10_000:.0f} bytes a line")


if __name__ == "__main__":
    main()
