"""Work that takes long to a line that says how far it is, for a person who waits at a terminal."""

import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

__all__ = ["Progress", "progress", "watched"]

Item = TypeVar("Item")

_QUIET_SECONDS = 1.0
_PAUSE_SECONDS = 0.1
_CELLS = 24


class Progress:
    """A bar that is drawn on a terminal once a second has passed, and is gone when the work is done.

    Where nobody knows how much there is to do, it is a count.
    """

    def __init__(self, label: str, total: int | None, stream: TextIO | None) -> None:
        self._label = label
        self._total = total
        self._stream = stream if stream is not None and stream.isatty() else None
        self._done = 0
        self._next = time.monotonic() + _QUIET_SECONDS
        self._drawn = False

    def advance(self, steps: int = 1) -> None:
        """Count steps that were done."""
        self._done += steps
        if self._stream is not None and time.monotonic() >= self._next:
            self._draw(self._stream)

    def _draw(self, stream: TextIO) -> None:
        if self._total is None:
            told = f"{self._done:,}"
        else:
            share = min(1.0, self._done / max(1, self._total))
            told = f"[{('#' * int(share * _CELLS)).ljust(_CELLS, '.')}] {self._done:,}/{self._total:,}"
        stream.write(f"\r\x1b[K{self._label} {told}")
        stream.flush()
        self._drawn = True
        self._next = time.monotonic() + _PAUSE_SECONDS

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._drawn and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def progress(label: str, total: int | None, stream: TextIO | None) -> Progress:
    """A bar for that many steps; without a terminal it stays silent."""
    return Progress(label, total, stream)


def watched(items: Iterable[Item], label: str, stream: TextIO | None, total: int | None = None) -> Iterator[Item]:
    """The same items, with a bar for those that were taken."""
    with progress(label, total, stream) as bar:
        for item in items:
            yield item
            bar.advance()
