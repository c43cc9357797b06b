"""A process to all that came from it, and what they take together."""

from collections.abc import Iterable, Iterator

from skillshelf import files

__all__ = ["descendants", "memory_of", "threads_of"]

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
    try:
        with files.Folder(_PROC) as proc:
            names = [name.rstrip("/") for name in proc.children(())]
    except OSError:
        return
    for name in names:
        if name.isdecimal() and (fields := _read(int(name), "stat")):
            # The name of the program stands in brackets and may itself hold brackets and blanks.
            yield int(name), int(fields.rpartition(b")")[2].split()[1])


def memory_of(processes: Iterable[int]) -> int:
    """The bytes of memory that these processes have for themselves."""
    return 1024 * sum(_numbers(process, (b"RssAnon:", b"RssShmem:")) for process in processes)


def threads_of(processes: Iterable[int]) -> int:
    """How many threads these processes have; each has one at least."""
    return sum(_numbers(process, (b"Threads:",)) for process in processes)


def _numbers(process: int, fields: tuple[bytes, ...]) -> int:
    lines = _read(process, "status").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(fields))


def _read(process: int, name: str) -> bytes:
    try:
        return files.read_file(f"{_PROC}/{process}/{name}", limit=_MOST, links="never") or b""
    except OSError:
        # It ended in the meantime.
        return b""
