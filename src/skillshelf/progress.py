"""Work that takes long to a line that says how far it is, for a person who waits at a terminal."""

import time
from typing import TextIO

__all__ = ["Progress", "progress"]

_QUIET_SECONDS = 1.0
_PAUSE_SECONDS = 0.1
_CELLS = 24


class Progress:
    """A bar that is drawn on a terminal once a second has passed, and is gone when the work is done."""

    def __init__(self, label: str, total: int, stream: TextIO | None) -> None:
        self._label = label
        self._total = max(1, total)
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
        share = min(1.0, self._done / self._total)
        bar = ("#" * int(share * _CELLS)).ljust(_CELLS, ".")
        stream.write(f"\r\x1b[K{self._label} [{bar}] {self._done}/{self._total}")
        stream.flush()
        self._drawn = True
        self._next = time.monotonic() + _PAUSE_SECONDS

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._drawn and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def progress(label: str, total: int, stream: TextIO | None) -> Progress:
    """A bar for that many steps; without a terminal it stays silent."""
    return Progress(label, total, stream)
