"""Append events to a journal file and read it back: one line each, under a lock, chained by digests.

The lock is on the journal itself, not on a file beside it: a journal is never replaced, so every open descriptor
is the right one, and a read-only folder can still hold a journal. The kernel releases the lock of a process that
ends.

A complete line is never changed or removed. An incomplete line, left by a killed process or a full disk, was never
reported as stored: it is moved to `<journal>.torn`, so that the next line begins at the start of a line.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal

from skillshelf.core import files
from skillshelf.core.disk_writes import is_at, lock, open_to_append, sync_folder, unlock
from skillshelf.core.limits import JOURNAL_LINE_BYTES, JOURNAL_LOCK_SECONDS, JOURNAL_PROBLEMS, JOURNAL_SESSIONS
from skillshelf.core.records import NamedTuple
from skillshelf.journal.format import (
    NOTHING_BEFORE,
    RESERVED,
    Chain,
    Line,
    Problem,
    digest_of,
    parse_line,
    plain,
    seal,
    shortened,
)

__all__ = ["Journal", "Line", "Problem", "Verification", "in_words", "read", "verify"]

_BLOCK = 1 << 16
_TRIES = 100


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Refused(OSError):
    """Events cannot be added to this file."""


class _Tail(NamedTuple):
    """The end of a journal: the offset after the last complete line, that line, and the incomplete rest."""

    end: int
    last: bytes | None
    torn: bytes


# Writing ------------------------------------------------------------------------------------------


class Journal:
    """A file to which any number of threads and processes append events.

    A failure of the machine never raises: an event that cannot be written is counted in `lost`, and `problem` has
    the reason for the first. `notice` has the first warning about something that lost no event.
    """

    def __init__(
        self,
        path: str,
        *,
        session: str,
        fsync: Literal["never", "end", "always"] = "never",
        now_ms: Callable[[], int] = _now_ms,
        lock_seconds: float = JOURNAL_LOCK_SECONDS,
    ) -> None:
        self.path = os.path.abspath(path)
        self.session = session
        self.lost = 0
        self.problem: str | None = None
        self.notice: str | None = None
        self._fsync = fsync
        self._now_ms = now_ms
        self._lock_seconds = lock_seconds
        self._counting = threading.Lock()
        self._written = 0
        self._stopped: str | None = None
        self._closed = False

    def append(self, type: str, payload: Mapping[str, Any]) -> str | None:  # noqa: A002 - the member is called so.
        """Append one event; return its `sum` if it was stored, else None."""
        if taken := sorted(RESERVED & payload.keys()):
            raise ValueError(f"the journal itself writes {', '.join(taken)}")
        if self._closed:
            raise ValueError("the journal is closed")
        head = {"session": plain(self.session), "type": plain(type)}
        try:
            return self._add(head, plain(payload))
        except (OSError, ValueError) as error:
            self._lose(in_words(error))
            return None

    def close(self) -> None:
        """Close the journal, and flush it to the disk if `fsync` says so."""
        if self._closed:
            return
        self._closed = True
        if self._fsync == "end" and self._written:
            try:
                descriptor = open_to_append(self.path)
                try:
                    self._force(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                self.problem = self.problem or f"{self.path}: not forced to the disk: {in_words(error)}"

    def _add(self, head: dict[str, Any], payload: dict[str, Any]) -> str:
        if self._stopped:
            raise _Refused(self._stopped)
        descriptor = _open_locked(self.path, self._lock_seconds)
        try:
            tail = _read_tail(descriptor)
            if tail.torn:
                self._set_aside(descriptor, tail)
            seq, prev = _following(descriptor, tail)
            line, total = self._line({**head, "seq": seq, "prev": prev, "ts_ms": self._now_ms()}, payload)
            _write(descriptor, line + b"\n", tail.end)
            self._written += 1
            if self._fsync == "always":
                unlock(descriptor)
                self._force(descriptor)
        finally:
            os.close(descriptor)
        return total

    def _line(self, head: Mapping[str, Any], payload: Mapping[str, Any]) -> tuple[bytes, str]:
        line, total = seal({**payload, **head})
        if len(line) > JOURNAL_LINE_BYTES:
            size = len(line)
            line, total = seal({**shortened(payload), **head})
            if len(line) > JOURNAL_LINE_BYTES:
                raise _Refused(f"an event of {size:,} bytes is longer than JOURNAL_LINE_BYTES")
            self._notify(f"an event of {size:,} bytes was shortened to JOURNAL_LINE_BYTES ({JOURNAL_LINE_BYTES:,})")
        return line, total

    def _set_aside(self, descriptor: int, tail: _Tail) -> None:
        """Move an incomplete last line to a file of its own."""
        _require_journal(descriptor, tail)
        entry = {"at": tail.end, "bytes": len(tail.torn), "text": tail.torn.decode("utf-8", "backslashreplace")}
        message = f"a writer was stopped within a line; the {len(tail.torn):,} bytes it left are"
        try:
            aside = open_to_append(f"{self.path}.torn")
            try:
                line, _ = seal({**entry, "session": plain(self.session), "ts_ms": self._now_ms()})
                _write(aside, line + b"\n", os.fstat(aside).st_size)
            finally:
                os.close(aside)
            self._notify(f"{message} in {self.path}.torn")
        except OSError as error:
            # This event was never reported as stored, so losing it must not block the journal.
            self._notify(f"{message} lost: {in_words(error)}")
        os.ftruncate(descriptor, tail.end)

    def _force(self, descriptor: int) -> None:
        try:
            os.fsync(descriptor)
            if self._written == 1 or self._fsync == "end":
                # A folder without read permission cannot be flushed; the file has been.
                with suppress(PermissionError):
                    sync_folder(os.path.dirname(self.path))
        except OSError as error:
            # Never tried again: after a failure the next call may report success for lost bytes.
            self._stopped = f"the disk did not take it: {error.strerror}"
            raise

    def _lose(self, reason: str) -> None:
        with self._counting:
            self.lost += 1
            self.problem = self.problem or f"{self.path}: {reason}"

    def _notify(self, message: str) -> None:
        with self._counting:
            self.notice = self.notice or f"{self.path}: {message}"


def in_words(error: Exception) -> str:
    """Return the reason of a failure for a person."""
    if isinstance(error, files.NotRegular):
        return f"it is a {error.kind}, not a file; name the file itself"
    if isinstance(error, IsADirectoryError):
        return "it is a folder, not a file"
    if isinstance(error, _Refused) or not isinstance(error, OSError):
        return str(error)
    return error.strerror or str(error)


def _open_locked(path: str, seconds: float) -> int:
    """Open the journal and hold its lock."""
    for _ in range(_TRIES):
        descriptor = open_to_append(path)
        with ExitStack() as unless_kept:
            unless_kept.callback(os.close, descriptor)
            if not lock(descriptor, "alone", seconds=seconds):
                raise _Refused(f"another process has held its lock for {seconds} seconds")
            # Removed or moved while we waited: an event added there would be lost.
            if is_at(path, descriptor):
                unless_kept.pop_all()
                return descriptor
    raise _Refused("it is replaced repeatedly")


def _write(descriptor: int, data: bytes, end: int) -> None:
    """Append all bytes or none: truncate what a full disk took."""
    try:
        written = os.write(descriptor, data)
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        # If even that fails, the next writer finds a torn line and sets it aside.
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


# The end of the file ------------------------------------------------------------------------------


def _read_tail(descriptor: int) -> _Tail:
    """Return the end of a journal; a line longer than the limit does not count as a line."""
    size = os.fstat(descriptor).st_size
    begin = max(0, size - 4096)
    data = os.pread(descriptor, size - begin, begin)
    # Backward to two line ends, or as far as a torn line and a complete one can reach.
    while begin > 0 and data.count(b"\n") < 2 and len(data) < 2 * (JOURNAL_LINE_BYTES + 1):
        more = min(begin, _BLOCK)
        begin -= more
        data = os.pread(descriptor, more, begin) + data
    whole, newline, torn = data.rpartition(b"\n")
    if len(torn) > JOURNAL_LINE_BYTES or (begin > 0 and not newline):
        return _Tail(size, None, b"")
    if not newline:
        return _Tail(0, None, torn)
    _, newline, last = whole.rpartition(b"\n")
    return _Tail(size - len(torn), last if newline or begin == 0 else None, torn)


def _following(descriptor: int, tail: _Tail) -> tuple[int, str]:
    """Return the seq and the prev of the next line."""
    if tail.end == 0:
        return 0, NOTHING_BEFORE
    line = parse_line(0, tail.last) if tail.last is not None else None
    if line and line.record and not line.problem:
        return line.record["seq"] + 1, line.digest
    # The last line was edited: later events are still worth keeping, if this is a journal at all.
    _require_journal(descriptor, tail)
    if tail.last is None:
        raise _Refused("its last line is longer than JOURNAL_LINE_BYTES; choose another file")
    return sum(1 for _ in _raw_lines(descriptor, tail.end)), digest_of(tail.last)


def _require_journal(descriptor: int, tail: _Tail) -> None:
    """Raise unless the file is a journal: no other file is appended to or truncated."""
    if tail.end:
        first, _ = next(_raw_lines(descriptor, tail.end))
        known = first is not None and parse_line(1, first).record is not None
    else:
        # Only a torn line: it must be the start of an event, not a JSON file without a newline.
        line = parse_line(1, tail.torn)
        began = tail.torn[:2] in (b"{", b'{"') and (line.problem or "").startswith(("not JSON", "not UTF-8"))
        known = line.record is not None or began or not tail.torn.strip(b"\0")
    if not known:
        raise _Refused("it is not a journal; choose another file")


# Reading ------------------------------------------------------------------------------------------


def read(path: str, *, lock_seconds: float = JOURNAL_LOCK_SECONDS) -> Iterator[Line]:
    """Yield the lines of a journal, broken ones with their problem.

    Lines that are appended meanwhile are left out. Raise OSError if the file cannot be read.
    """
    with _open(path) as descriptor:
        tail = _tail_at_rest(descriptor, lock_seconds)
        number = broken = 0
        for data, whole in _raw_lines(descriptor, tail.end):
            number += 1
            line = parse_line(number, data) if data is not None else Line(number, None, _TOO_LONG, whole=whole)
            yield line
            broken += line.problem is not None
            if broken > JOURNAL_PROBLEMS:
                yield Line(number + 1, None, f"the rest is not read: more than {JOURNAL_PROBLEMS:,} lines are broken")
                return
        if tail.torn:
            yield Line(number + 1, None, f"the line breaks off after {len(tail.torn):,} bytes", whole=False)


_TOO_LONG = f"longer than JOURNAL_LINE_BYTES ({JOURNAL_LINE_BYTES:,})"


@contextmanager
def _open(path: str) -> Iterator[int]:
    descriptor = files.open_to_read(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _tail_at_rest(descriptor: int, seconds: float) -> _Tail:
    """Return the end of the file while no writer is within a line, if the lock can be had."""
    with suppress(OSError):
        lock(descriptor, "shared", seconds=seconds)
    try:
        return _read_tail(descriptor)
    finally:
        with suppress(OSError):
            unlock(descriptor)


def _raw_lines(descriptor: int, end: int) -> Iterator[tuple[bytes | None, bool]]:
    """Yield the bytes of each line up to an offset, None for a line that is too long, and whether it is complete."""
    at, pending, too_long = 0, b"", False
    while at < end and (block := os.pread(descriptor, min(_BLOCK, end - at), at)):
        at += len(block)
        *ended, rest = block.split(b"\n")
        for part in ended:
            data = pending + part
            yield None if too_long or len(data) > JOURNAL_LINE_BYTES else data, True
            pending, too_long = b"", False
        pending = b"" if too_long else pending + rest
        if len(pending) > JOURNAL_LINE_BYTES:
            pending, too_long = b"", True
    if too_long:
        yield None, False


# Verifying ----------------------------------------------------------------------------------------


class Verification(NamedTuple):
    """The result of verifying every line of a journal."""

    file: str
    ok: bool
    lines: int
    sessions: int
    torn_tail: bool
    problems: tuple[Problem, ...]
    head: str | None
    open_end: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as `log verify --json` prints it."""
        return {**self._asdict(), "problems": [problem.to_dict() for problem in self.problems]}


def verify(path: str, head: str | None = None) -> Verification:
    """Verify that each line is unchanged and in its place; with a `head`, that its line still exists."""
    chain, sessions = Chain(), _Sessions()
    lines, last, torn = 0, None, None
    wanted = head.lower().removeprefix("sha256:") if head else None
    found = wanted is None
    for line in read(path):
        if not line.whole:
            torn = Problem(line.number, None, "torn", line.problem or "")
            continue
        lines = line.number
        chain.add(line)
        found = found or (line.record is not None and line.record["sum"] == wanted)
        if line.record and not line.problem:
            last = line.record
            sessions.add(line.record)
        if chain.full:
            break
    problems = [*chain.problems(), *([torn] if torn else [])]
    if chain.full:
        problems.append(Problem(lines, None, "edited", "too many problems; the lines after this were not read"))
    elif not found:
        seq = last["seq"] + 1 if last else 0
        detail = f"no line has the sum {head}: the end was cut off, or that line was changed"
        problems.append(Problem(lines + 1, seq, "cut", detail))
    total = last["sum"] if last else None
    return Verification(
        path, not problems, lines, len(sessions.ended), torn is not None, tuple(problems), total, sessions.are_open
    )


class _Sessions:
    """The sessions of a journal, and which of them have ended."""

    def __init__(self) -> None:
        self.ended: dict[bytes, bool] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Count an event of a session."""
        # A digest, since a name in an untrusted file may be as long as a line.
        name = bytes.fromhex(digest_of(record["session"].encode("utf-8", "surrogatepass")))
        if name in self.ended or len(self.ended) < JOURNAL_SESSIONS:
            self.ended[name] = self.ended.get(name, False) or record["type"] == "session_ended"

    @property
    def are_open(self) -> bool:
        """True if a session has not ended."""
        return not all(self.ended.values())
