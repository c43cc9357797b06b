"""File descriptors to lines and threads: what `rpcserver` is made of, none of it knows the protocol."""

import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator

from skillshelf.core.limits import RPC_LINE_BYTES

__all__ = ["Workers", "Writer", "read_lines"]

_CHUNK = 64 * 1024
# A pipe that is ready to be written takes so much without blocking.
_PIECE = select.PIPE_BUF
_LOOK_SECONDS = 0.2


def read_lines(fd: int, wake: int | None = None) -> Iterator[bytes | None]:
    """Each line without its newline, None for one that is too long; ends with the stream, or when `wake` is readable.

    Of a line that is too long nothing is kept. What follows the last newline is a line too.
    """
    held = bytearray()
    is_long = False
    while (chunk := _next_chunk(fd, wake)) != b"":
        if chunk is None:
            return
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            held += part
            yield None if is_long or len(held) > RPC_LINE_BYTES else bytes(held)
            held.clear()
            is_long = False
        held += rest
        if is_long or len(held) > RPC_LINE_BYTES:
            is_long = True
            held.clear()
    if held or is_long:
        yield None if is_long else bytes(held)


def _next_chunk(fd: int, wake: int | None) -> bytes | None:
    """What can be read now, nothing at the end of the stream; None if the reader is to stop."""
    watched = [fd] if wake is None else [fd, wake]
    try:
        ready, _, _ = select.select(watched, [], [])
        return None if wake in ready else os.read(fd, _CHUNK)
    except OSError:
        # Standard input is closed, or its terminal is gone: the client is.
        return b""


class Writer:
    """Writes whole lines from any thread; a client that is gone, or no longer reads at the end, gets nothing more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._give_up_after: float | None = None
        self.is_broken = False

    def send(self, line: bytes) -> None:
        """Write one line."""
        with self._lock:
            for start in range(0, len(line), _PIECE):
                if not self._has_room():
                    self.is_broken = True
                    return
                self._write(line[start : start + _PIECE])

    def give_up_after(self, seconds: float) -> None:
        """From now on wait no longer than this for a client to read."""
        self._give_up_after = seconds

    def _has_room(self) -> bool:
        since = time.monotonic()
        while not self.is_broken:
            try:
                if select.select([], [self._fd], [], _LOOK_SECONDS)[1]:
                    return True
            except OSError:
                return False
            if self._give_up_after is not None and time.monotonic() - since > self._give_up_after:
                return False
        return False

    def _write(self, piece: bytes) -> None:
        try:
            while piece:
                piece = piece[os.write(self._fd, piece) :]
        except OSError:
            self.is_broken = True


class Workers:
    """Up to `most` threads that do what they are given in its order; with one of them, one after the other."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._undone = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Have a job done; it must not raise."""
        with self._lock:
            self._undone += 1
            if self._undone > len(self._threads) < self._most:
                thread = threading.Thread(target=self._work, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._undone -= 1

    def finish(self) -> None:
        """Let the threads end when all that was given to them is done."""
        for _ in self._threads:
            self._jobs.put(None)

    def has_finished(self, seconds: float) -> bool:
        """Whether all threads end within so many seconds."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)
