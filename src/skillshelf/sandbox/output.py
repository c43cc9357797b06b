"""Pieces of a script's output to what is handed on, and to a file with the whole where that is too much."""

import os
from collections.abc import Callable
from typing import Literal

from skillshelf.core.atomic_write import append, write_new

__all__ = ["OnOutput", "Output", "Stream"]

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]
"""Told of each piece of output as it comes, up to the limit; no piece ends within a character."""

_NOTE = b"\n[the rest is not kept]\n"


class Output:
    """What a script printed so far."""

    def __init__(self, *, limit: int, on_output: OnOutput | None, folder: str | None, folder_limit: int) -> None:
        self.artifact: str | None = None
        self.artifact_truncated = False
        self.seen: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        self._limit = limit
        self._on_output = on_output
        self._folder = folder
        self._left = folder_limit
        self._pieces: list[tuple[Stream, bytes]] = []
        self._waiting: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    @property
    def truncated(self) -> bool:
        """Whether there was more than is handed on."""
        return any(seen > self._limit for seen in self.seen.values())

    def kept(self, stream: Stream) -> bytes:
        """What is handed on of a stream."""
        return b"".join(piece for name, piece in self._pieces if name == stream)

    def add(self, stream: Stream, data: bytes) -> None:
        """Take a piece of output; an empty one is the end of its stream."""
        room = max(0, self._limit - self.seen[stream])
        self.seen[stream] += len(data)
        cut = len(data) > room
        if cut or self.artifact:
            self._keep_whole(data)
        ready = self._waiting[stream] + data[:room]
        # At the end of a stream half a character is all there will be.
        whole = _whole_characters(ready) if data else len(ready)
        self._waiting[stream] = b"" if cut else ready[whole:]
        self._hand_on(stream, ready[:whole])

    def _hand_on(self, stream: Stream, piece: bytes) -> None:
        if piece:
            self._pieces.append((stream, piece))
            if self._on_output:
                self._on_output(stream, piece)

    def _keep_whole(self, data: bytes) -> None:
        """Put a piece into the file with the whole output; the first one brings along what came before."""
        if self._folder is None or self.artifact_truncated:
            return
        if self.artifact is None:
            before = [piece for _, piece in self._pieces]
            data = b"".join([*before, *self._waiting.values(), data])
        cut = len(data) > self._left
        data, self._left = data[: self._left] + (_NOTE if cut else b""), self._left - len(data)
        try:
            if self.artifact is None:
                path = os.path.join(self._folder, f"output-{os.urandom(8).hex()}.txt")
                write_new(path, data)
                self.artifact = path
            else:
                append(self.artifact, data)
        except OSError:
            # The disk is full, say. The script has nothing to do with that and runs on.
            cut = True
        self.artifact_truncated = cut


def _whole_characters(data: bytes) -> int:
    """How many bytes there are before a character of UTF-8 that is not complete yet."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) if back >= needed else len(data) - back
        if byte < 0x80:
            break
    return len(data)
