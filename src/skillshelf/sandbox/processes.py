"""A process to all that came from it, and what they take together."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from skillshelf.core import files
from skillshelf.core.atomic_write import nameless_files

__all__ = ["Taken", "descendants", "taken_by"]

_PROC = "/proc"
_MOST = 64 * 1024
"""No file of /proc that is read here is larger."""


def descendants(process: int) -> list[int]:
    """The children of a process, theirs, and so on; empty where the system does not tell."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = list(children.get(process, ()))
    for child in found:
        found += children.get(child, ())
    return found


def _parents() -> Iterator[tuple[int, int]]:
    if files.kind_at(_PROC) != "folder":
        return
    folder = files.open_folder(_PROC)
    try:
        names = files.names_in(folder)
    finally:
        files.close(folder)
    for name in names:
        if name.isdecimal() and (fields := _read(int(name), "stat")):
            # The name of the program stands in brackets and may itself hold brackets and blanks.
            yield int(name), int(fields.rpartition(b")")[2].split()[1])


class Taken(NamedTuple):
    """How many threads some processes have, the bytes of memory they have for themselves, and those in open files
    that are in no folder: removed ones, and ones that were in memory only from the start."""

    threads: int
    memory: int
    nameless: int


def taken_by(processes: Iterable[int]) -> Taken:
    """What these processes take together."""
    threads = memory = 0
    nameless: dict[tuple[int, int], int] = {}
    for process in processes:
        nameless |= nameless_files(process)
        for line in _read(process, "status").splitlines():
            if line.startswith(b"Threads:"):
                threads += int(line.split()[1])
            elif line.startswith((b"RssAnon:", b"RssShmem:")):
                memory += 1024 * int(line.split()[1])
    return Taken(threads, memory, sum(nameless.values()))


def _read(process: int, name: str) -> bytes:
    try:
        return files.read_file(f"{_PROC}/{process}/{name}", limit=_MOST, links="never") or b""
    except OSError:
        # It ended in the meantime.
        return b""
