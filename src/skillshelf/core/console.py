"""Print to the terminal: tables, colours, paths, JSON, questions and progress, safe for untrusted text."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TextIO, TypeVar

from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import shorten, visible, width

__all__ = [
    "PathDisplay",
    "Progress",
    "Screen",
    "Style",
    "as_json",
    "ask",
    "ask_within",
    "can_ask",
    "divert",
    "exit_on_signals",
    "note",
    "screen",
    "watched",
    "write",
    "write_data",
    "write_piece",
    "write_raw",
    "write_text",
]


Style = Literal["bold", "dim", "red", "yellow", "green"]
_CODES: Mapping[Style, str] = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "green": "32"}
_GAP = 2
_NARROW = 30
_LEAST = 12
_LEAST_CUT = 16
"""Cells of a column that stay, however narrow the screen is."""


class Screen(NamedTuple):
    """The output device; without `columns` nothing is cut."""

    colour: bool = False
    columns: int | None = None
    lines: int | None = None

    def paint(self, text: str, style: Style | None) -> str:
        """Return the text in a style if colours are on."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and style else text

    def table(
        self, rows: Iterable[Sequence[str]], styles: Sequence[Style | None], *, indent: int = 0, wrap: bool = False
    ) -> list[str]:
        """Return the rows as lines with aligned columns; the last column is cut to fit, or wrapped.

        Where that is not enough, the widest of the other columns are cut too, unless the last one is wrapped.
        """
        columns = [[visible(cell) for cell in column] for column in zip(*rows, strict=True)]
        if not columns:
            return []
        *aligned, last = columns
        if self.columns is not None and not wrap:
            aligned = _fitting(aligned, last, self.columns - indent)
        heads, used = [" " * indent] * len(last), indent
        for column, style in zip(aligned, styles, strict=False):
            widths = [width(cell) for cell in column]
            cells = max(widths) + _GAP
            used += cells
            heads = [
                head + self.paint(cell, style) + " " * (cells - taken)
                for head, cell, taken in zip(heads, column, widths, strict=True)
            ]
        style = styles[len(aligned)]
        if wrap and self.columns is not None:
            rest = zip(heads, last, strict=True)
            return [
                line for head, text in rest for line in self._wrapped(head, text, style, indent, used, self.columns)
            ]
        if self.columns is not None:
            room = max(_LEAST, self.columns - used)
            last = [shorten(text, room) for text in last]
        return [(head + self.paint(text, style)).rstrip() for head, text in zip(heads, last, strict=True)]

    def _wrapped(self, head: str, text: str, style: Style | None, indent: int, used: int, columns: int) -> list[str]:
        room = columns - used
        if room >= _NARROW:
            first, *rest = _wrapped(text, room) or [""]
            return [
                (head + self.paint(first, style)).rstrip(),
                *(" " * used + self.paint(line, style) for line in rest),
            ]
        # Too narrow for a column: the text goes below its row, if there is anything else in it.
        above = [head.rstrip()] if head.strip() else []
        below = " " * (indent + 4 if above else indent)
        lines = _wrapped(text, max(_NARROW, columns - len(below)))
        return [*above, *(below + self.paint(line, style) for line in lines)]


def _fitting(aligned: list[list[str]], last: list[str], room: int) -> list[list[str]]:
    """Return columns of which the widest are cut, as far as a part of the last one needs their room."""
    widths = [max(map(width, column)) for column in aligned]
    too_much = sum(widths) + _GAP * len(widths) + _LEAST - room
    if too_much <= 0:
        return aligned
    too_much -= max(0, _LEAST - max(map(width, last)))
    while too_much > 0 and max(widths, default=0) > _LEAST_CUT:
        widest = widths.index(max(widths))
        # No further than to the next one, which is cut then as well.
        to = max(_LEAST_CUT, widths[widest] - too_much, *sorted(widths)[-2:-1])
        to = min(to, widths[widest] - 1)
        too_much -= widths[widest] - to
        widths[widest] = to
    return [[shorten(cell, cells) for cell in column] for column, cells in zip(aligned, widths, strict=True)]


def _wrapped(text: str, cells: int) -> list[str]:
    if width(text) == len(text):
        from textwrap import wrap
    else:
        from wcwidth import wrap
    return wrap(text, cells, break_on_hyphens=False)


def screen(env: Mapping[str, str]) -> Screen:
    """Return the screen that standard output is connected to."""
    if not sys.stdout or not sys.stdout.isatty():
        return Screen()
    colour = not env.get("NO_COLOR") and env.get("TERM") != "dumb"
    given = env.get("COLUMNS", "")
    try:
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, lines = 80, 0
    return Screen(colour, int(given) if given.isdecimal() and int(given) else columns or 80, lines or None)


def write_text(text: str) -> None:
    """Write untrusted text of several lines: escaped for a terminal, exact in a pipe."""
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(visible(line) for line in text.replace("\t", "    ").split("\n"))
        text += "" if text.endswith("\n") else "\n"
    write(text)


def write_data(data: bytes) -> None:
    """Write untrusted bytes: exact in a pipe; on a terminal escaped text, or only their number if they are not text.

    A text stream that a caller put in place of standard output gets text, too, since it cannot hold bytes.
    """
    if sys.stdout is None or (hasattr(sys.stdout, "buffer") and not sys.stdout.isatty()):
        _send(data)
        return
    try:
        write_text(data.decode("utf-8"))
    except UnicodeDecodeError:
        write(f"{len(data)} bytes that are not text; redirect them to a file, or use --json\n")


def write_piece(stream: Literal["stdout", "stderr"], data: bytes) -> None:
    """Write a piece of a program's output to its stream: exact in a pipe, escaped on a terminal."""
    if stream == "stdout":
        if sys.stdout is not None and sys.stdout.isatty():
            data = _safe(data)
        _send(data)
    elif sys.stderr is not None:
        _write_bytes(sys.stderr, _safe(data) if sys.stderr.isatty() else data)


def _safe(data: bytes) -> bytes:
    lines = data.decode("utf-8", "replace").replace("\t", "    ").split("\n")
    return "\n".join(visible(line) for line in lines).encode()


def can_ask() -> bool:
    """Return whether a person at a terminal can read a question and answer it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def ask(question: str) -> bool:
    """Ask a question; return whether the answer was yes."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask_within(question: str, seconds: float) -> bool | None:
    """Ask a question that may stay open; return whether the answer was yes, or None if nobody answered in time."""
    from select import select

    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline() if select([sys.stdin], [], [], seconds)[0] else ""
    if not line:
        sys.stderr.write("\n")
    return line.strip().lower() in ("y", "yes") if line else None


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the process as Ctrl-C does, so that work in progress is recorded and cleaned up."""
    import signal
    from contextlib import suppress

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            # Only the main thread may set handlers.
            with suppress(ValueError):
                signal.signal(number, leave)


def write(text: str) -> None:
    """Write text to standard output as UTF-8, whatever the locale."""
    _send(text.encode("utf-8", "backslashreplace"))


_output: Callable[[bytes], None] | None = None
_notes: Callable[[str], None] | None = None


def divert(output: Callable[[bytes], None] | None, notes: Callable[[str], None] | None) -> None:
    """Give what is written for people to these functions instead of the standard streams; None ends that."""
    global _output, _notes
    _output, _notes = output, notes


def _send(data: bytes) -> None:
    if _output is not None:
        _output(data)
    else:
        write_raw(data)


def write_raw(data: bytes) -> None:
    """Write bytes to standard output as they are, whoever wants to have them; ignore a closed pipe."""
    if sys.stdout is None:
        return
    try:
        _write_bytes(sys.stdout, data)
    except OSError as error:
        # The interpreter flushes once more when it ends; there is nothing to flush to.
        if hasattr(sys.stdout, "buffer"):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise


def _write_bytes(stream: TextIO, data: bytes) -> None:
    """Write bytes to a standard stream, or their text to a text stream that stands in for it, as `io.StringIO`."""
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode("utf-8", "backslashreplace"))
    else:
        buffer.write(data)
        buffer.flush()


class PathDisplay(NamedTuple):
    """The folders that shown paths start from, so that they stay short."""

    cwd: str
    home: str | None

    def short(self, path: str) -> str:
        """Return a path relative to the working directory or to `~` if it lies below one of them."""
        if path.startswith(self.cwd.rstrip("/") + "/"):
            return path[len(self.cwd.rstrip("/")) + 1 :]
        if self.home and path == self.home.rstrip("/"):
            return "~"
        if self.home and path.startswith(self.home.rstrip("/") + "/"):
            return "~/" + path[len(self.home.rstrip("/")) + 1 :]
        return path


# Characters that a terminal obeys and JSON does not escape: DEL, C1, bidirectional and tag characters.
_RAW_IN_JSON = lazy_pattern("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")

_FOREIGN_BYTE = lazy_pattern("[\udc80-\udcff]")


def as_json(value: Any) -> str:
    """Return one line of JSON that is safe to print."""
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not text.isascii() or "\x7f" in text:
        # A byte of a file name that is not UTF-8 is not a character, and JSON holds only characters.
        text = _FOREIGN_BYTE.sub(lambda match: f"\\\\x{ord(match[0]) - 0xDC00:02x}", text)
        text = _RAW_IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f"), text)
    return text + "\n"


def note(message: str) -> None:
    """Write one line for people to standard error."""
    if _notes is not None:
        _notes(message)
        return
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"skillshelf: {visible(message)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        # Standard error is closed.
        return


Item = TypeVar("Item")

_QUIET_SECONDS = 1.0
_PAUSE_SECONDS = 0.1
_CELLS = 24


class Progress:
    """A progress bar on a terminal that appears after a second and is removed at the end.

    Without a total it is a count. `report` is called with the number of finished steps after each.
    """

    def __init__(
        self, label: str, total: int | None, stream: TextIO | None, report: Callable[[int], None] | None = None
    ) -> None:
        self._label = label
        self._total = total
        self._stream = stream if stream is not None and stream.isatty() else None
        self._report = report
        self._done = 0
        self._next = time.monotonic() + _QUIET_SECONDS
        self._drawn = False

    def advance(self, steps: int = 1) -> None:
        """Count finished steps."""
        self._done += steps
        if self._report is not None:
            self._report(self._done)
        if self._stream is not None and time.monotonic() >= self._next:
            self._draw(self._stream)

    def _draw(self, stream: TextIO) -> None:
        if self._total is None:
            state = f"{self._done:,}"
        else:
            share = min(1.0, self._done / max(1, self._total))
            state = f"[{('#' * int(share * _CELLS)).ljust(_CELLS, '.')}] {self._done:,}/{self._total:,}"
        stream.write(f"\r\x1b[K{self._label} {state}")
        stream.flush()
        self._drawn = True
        self._next = time.monotonic() + _PAUSE_SECONDS

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._drawn and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def watched(items: Iterable[Item], label: str, stream: TextIO | None, total: int | None = None) -> Iterator[Item]:
    """Yield the same items with a progress bar."""
    with Progress(label, total, stream) as bar:
        for item in items:
            yield item
            bar.advance()
