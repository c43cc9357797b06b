"""Append events to a journal file and read it back: one line each, under a lock, chained by digests.

The lock is on the journal itself, not on a file beside it: a journal is never replaced, so every open descriptor
is the right one, and a read-only folder can still hold a journal. The kernel releases the lock of a process that
ends.

A complete line is never changed or removed. An incomplete line, left by a killed process or a full disk, was never
reported as stored: it is moved to `<journal>.torn`, so that the next line begins at the start of a line.

Rotation is one rename under the lock: whoever writes next creates a new file, whose first line continues the chain of
the last part. A process that is killed in between leaves only parts, which the next writer continues.
"""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, Literal

from skillshelf.core import files
from skillshelf.core.disk_writes import is_at, lock, move, open_to_append, remove, sync_folder, unlock
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
from skillshelf.journal.parts import CONTINUED, Rotation, base_of, is_part, part_path, parts_of

__all__ = [
    "Journal",
    "JournalCheck",
    "JournalPlace",
    "Line",
    "NewEvent",
    "Once",
    "Part",
    "Problem",
    "Verification",
    "exact_lines",
    "force_to_disk",
    "in_words",
    "journals_in",
    "lines_after",
    "read",
    "verify",
]

_BLOCK = 1 << 16
_TRIES = 100
_OPEN_PARTS = 200
_LISTED = 1_000
_ENDING_BYTES = 512
_FILES_REMEMBERED = 64


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Refused(OSError):
    """Events cannot be added to this file."""


class _Tail(NamedTuple):
    """The end of a journal: the offset after the last complete line, that line, and the incomplete rest."""

    end: int
    last: bytes | None
    torn: bytes


class _Beginning(NamedTuple):
    """The beginning of a new part: its first line, what follows it, and the parts that it says are removed."""

    line: bytes
    seq: int
    prev: str
    doomed: tuple[str, ...] = ()


class Once(NamedTuple):
    """A long member that is written once into each file by a process, and the digest of its value."""

    member: str
    digest: str


class NewEvent(NamedTuple):
    """An event to be appended: its type and payload, the time it happened, and a member that is written once.

    Without a time, it happens when it is written. `is_plain` says that the payload is portable JSON already.
    """

    type: str
    payload: Mapping[str, Any]
    ts_ms: int | None = None
    once: Once | None = None
    is_plain: bool = False


class _Ending(NamedTuple):
    """The offset after a line, and the last bytes of that line."""

    offset: int
    data: bytes


_written_once: dict[tuple[int, int, str], _Ending] = {}
"""The line with a value that is written once, by the device and inode of the file and the digest of the value."""


class _LastLine(NamedTuple):
    """A line that this process wrote, its `seq` and its digest."""

    data: bytes
    seq: int
    digest: str


_last_written: dict[tuple[int, int], _LastLine] = {}
"""The last line that this process wrote into a file, by the device and inode of the file: it need not be read again."""


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
        rotation: Rotation | None = None,
    ) -> None:
        self.path = os.path.abspath(path)
        self.session = session
        self.lost = 0
        self.problem: str | None = None
        self.notice: str | None = None
        self._fsync = fsync
        self._now_ms = now_ms
        self._lock_seconds = lock_seconds
        self._rotation = rotation
        self._began: tuple[tuple[int, int], int] | None = None
        self._counting = threading.Lock()
        self._written = 0
        self._stopped: str | None = None
        self._closed = False

    def append(
        self,
        type: str,  # noqa: A002 - the member is called so.
        payload: Mapping[str, Any],
        *,
        once: Once | None = None,
    ) -> str | None:
        """Append one event; return its `sum` if it was stored, else None."""
        return self.append_all([NewEvent(type, payload, once=once)])

    def append_all(self, events: Sequence[NewEvent]) -> str | None:
        """Append some events together, all or none of them; return the `sum` of the last if they were stored."""
        for event in events:
            if taken := sorted(RESERVED & event.payload.keys()):
                raise ValueError(f"the journal itself writes {', '.join(taken)}")
        if self._closed:
            raise ValueError("the journal is closed")
        try:
            return self._add([one if one.is_plain else one._replace(payload=plain(one.payload)) for one in events])
        except (OSError, ValueError) as error:
            self._lose(len(events), in_words(error))
            return None

    @property
    def now_ms(self) -> int:
        """The time by the clock of the journal."""
        return self._now_ms()

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

    def _add(self, events: Sequence[NewEvent]) -> str:
        if self._stopped:
            raise _Refused(self._stopped)
        for _ in range(_TRIES):
            descriptor = _open_locked(self.path, self._lock_seconds)
            try:
                total = self._add_to(descriptor, events)
            finally:
                os.close(descriptor)
            if total is not None:
                return total
        raise _Refused("it is rotated repeatedly")

    def _add_to(self, descriptor: int, events: Sequence[NewEvent]) -> str | None:
        """Append events to the open journal; return the last `sum`, or None if the journal was rotated instead."""
        tail = _read_tail(descriptor)
        if tail.torn:
            self._set_aside(descriptor, tail)
        begun = self._beginning() if tail.end == 0 else None
        seq, prev = (begun.seq, begun.prev) if begun else _following(descriptor, tail)
        lines, total, last = self._lines(descriptor, events, seq, prev)
        added = b"".join(line + b"\n" for line in lines)
        if tail.end and self._is_due(descriptor, tail.end + len(added)) and self._rotate(descriptor):
            return None
        data = (begun.line if begun else b"") + added
        _write(descriptor, data, tail.end)
        _remember_last(descriptor, _LastLine(lines[-1], seq + len(lines) - 1, last))
        self._written += 1
        _remember_once(descriptor, events, lines, tail.end + len(data) - len(added))
        if begun and begun.doomed:
            _remove_parts(descriptor, begun.doomed)
        if self._fsync == "always":
            unlock(descriptor)
            self._force(descriptor)
        return total

    def _lines(self, descriptor: int, events: Sequence[NewEvent], seq: int, prev: str) -> tuple[list[bytes], str, str]:
        """Return the lines of events, of which the first has `seq` and `prev`, with `sum` and digest of the last."""
        lines, total = [], ""
        for number, event in enumerate(events, seq):
            payload = event.payload
            if event.once and _has_value(descriptor, event.once):
                payload = {name: value for name, value in payload.items() if name != event.once.member}
            ts_ms = self._now_ms() if event.ts_ms is None else event.ts_ms
            head = {"session": plain(self.session), "type": plain(event.type), "seq": number, "prev": prev}
            line, total = self._line({**head, "ts_ms": ts_ms}, payload)
            prev = digest_of(line)
            lines.append(line)
        return lines, total, prev

    # Rotation ---------------------------------------------------------------------------------------

    def _is_due(self, descriptor: int, size: int) -> bool:
        """Return whether a new part is to begin before the file has this size."""
        rotation = self._rotation
        if rotation is None:
            return False
        if rotation.max_bytes is not None and size > rotation.max_bytes:
            return True
        if rotation.max_age_ms is None:
            return False
        status = os.fstat(descriptor)
        if self._began is None or self._began[0] != (status.st_dev, status.st_ino):
            first = _first_record(descriptor)
            self._began = (status.st_dev, status.st_ino), first["ts_ms"] if first else self._now_ms()
        return self._now_ms() - self._began[1] > rotation.max_age_ms

    def _rotate(self, descriptor: int) -> bool:
        """Give the journal the name of a part, under its lock; return False if that is not possible."""
        try:
            if self._fsync != "never":
                os.fsync(descriptor)
            # The lock keeps other writers from taking the same number.
            number = max((number for number, _ in parts_of(self.path)), default=0) + 1
            if not is_part(part_path(self.path, number)):
                raise _Refused(f"part {number:,} would have too long a name")
            move(self.path, part_path(self.path, number))
        except OSError as error:
            self._rotation = None
            self._notify(f"not rotated: {in_words(error)}")
            return False
        return True

    def begin_part(self) -> bool:
        """End the part that is written, and begin the next one with its first line; return False if there is no event.

        Whoever reads the parts before may remove them afterwards: the chain goes on from that line.
        """
        try:
            with _closing(_open_locked(self.path, self._lock_seconds)) as descriptor:
                if not _read_tail(descriptor).end or not self._rotate(descriptor):
                    return False
            with _closing(_open_locked(self.path, self._lock_seconds)) as descriptor:
                # Another writer may have begun it meanwhile.
                begun = self._beginning() if not _read_tail(descriptor).end else None
                if begun is not None:
                    _write(descriptor, begun.line, 0)
        except OSError as error:
            self._notify(f"not rotated: {in_words(error)}")
            return False
        return True

    def _beginning(self) -> _Beginning | None:
        """Return the beginning of a new part; None if no part is before it."""
        parts = parts_of(self.path)
        end = next(filter(None, (_end_of(path) for _, path in reversed(parts))), None)
        if end is None:
            return None
        members: dict[str, Any] = {"part": parts[-1][0] + 1, "before": os.path.basename(end.path)}
        if end.head:
            members["head"] = end.head
        if end.first.get("type") == CONTINUED:
            members |= {name: end.first[name] for name in ("removed_part", "removed_seq", "gap") if name in end.first}
        keep = self._rotation.keep if self._rotation else None
        # Whatever else has the name of a part is not ours to remove.
        own = [part for part in parts if _is_journal(part[1])] if keep else []
        doomed = own[:-keep] if keep else []
        if doomed:
            members |= _removal(own, len(doomed), members)
        head = {"session": "", "type": CONTINUED, "seq": end.seq, "prev": end.prev, "ts_ms": self._now_ms()}
        opening, _ = seal({**plain(members), **head})
        return _Beginning(opening + b"\n", end.seq + 1, digest_of(opening), tuple(path for _, path in doomed))

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

    def _lose(self, events: int, reason: str) -> None:
        with self._counting:
            self.lost += events
            self.problem = self.problem or f"{self.path}: {reason}"

    def _notify(self, message: str) -> None:
        with self._counting:
            self.notice = self.notice or f"{self.path}: {message}"


def _key(descriptor: int, once: Once) -> tuple[int, int, str]:
    return *_file_key(descriptor), once.digest


def _remember_once(descriptor: int, events: Sequence[NewEvent], lines: Sequence[bytes], at: int) -> None:
    """Remember where the values are that are written once; the lines of some events begin at an offset."""
    for event, line in zip(events, lines, strict=True):
        at += len(line) + 1
        once = event.once
        if once is None or once.member not in event.payload or len(_written_once) >= _LISTED:
            continue
        if not _has_value(descriptor, once):
            _written_once[_key(descriptor, once)] = _Ending(at, (line + b"\n")[-_ENDING_BYTES:])


def _has_value(descriptor: int, once: Once) -> bool:
    """Return whether this process wrote the value into the open file.

    The line is looked at again, because a new file may have the inode of a removed one.
    """
    ending = _written_once.get(_key(descriptor, once))
    if ending is None:
        return False
    return os.pread(descriptor, len(ending.data), ending.offset - len(ending.data)) == ending.data


class _PartEnd(NamedTuple):
    """The end of a part, for the one after it: the next `seq` and `prev`, the sum of its last line, its first line."""

    path: str
    seq: int
    prev: str
    head: str | None
    first: Mapping[str, Any]


def _end_of(path: str) -> _PartEnd | None:
    """Return the end of a part; None for a file, a folder or anything else that only has the name of one."""
    try:
        with _open(path) as descriptor:
            tail = _read_tail(descriptor)
            if tail.end == 0:
                return None
            seq, prev = _following(descriptor, tail)
            first = _first_record(descriptor) or {}
    except OSError:
        return None
    line = parse_line(0, tail.last) if tail.last is not None else None
    return _PartEnd(path, seq, prev, line.record["sum"] if line and line.record and not line.problem else None, first)


def _first_record(descriptor: int) -> dict[str, Any] | None:
    """Return the first event of an open file; None if its first line is none."""
    data, _ = next(_raw_lines(descriptor, os.fstat(descriptor).st_size), (None, False))
    return parse_line(1, data).record if data is not None else None


def _removal(parts: list[tuple[int, str]], doomed: int, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that record the removal of the oldest parts.

    A part that was already missing without a record must not pass for one that rotation removed.
    """
    firsts = []
    for _, path in (parts[0], parts[doomed]):
        with _open(path) as descriptor:
            record = _first_record(descriptor)
            firsts.append(record["seq"] if record else 0)
    numbers = [number for number, _ in parts[: doomed + 1]]
    removed = known.get("removed_seq", -1)
    gap = firsts[0] - 1 > (removed if isinstance(removed, int) else -1)
    gap = gap or numbers != list(range(numbers[0], numbers[0] + len(numbers)))
    return {"removed_part": parts[doomed - 1][0], "removed_seq": firsts[1] - 1, **({"gap": True} if gap else {})}


def _remove_parts(descriptor: int, paths: tuple[str, ...]) -> None:
    """Remove parts, oldest first, once the record of their removal is on the disk."""
    with suppress(OSError):
        os.fsync(descriptor)
        for path in paths:
            remove(path)


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
    known = _last_written.get(_file_key(descriptor))
    if known is not None and known.data == tail.last:
        return known.seq + 1, known.digest
    line = parse_line(0, tail.last) if tail.last is not None else None
    if line and line.record and not line.problem:
        return line.record["seq"] + 1, line.digest
    # The last line was edited: later events are still worth keeping, if this is a journal at all.
    _require_journal(descriptor, tail)
    if tail.last is None:
        raise _Refused("its last line is longer than JOURNAL_LINE_BYTES; choose another file")
    first = _first_record(descriptor)
    return (first["seq"] if first else 0) + sum(1 for _ in _raw_lines(descriptor, tail.end)), digest_of(tail.last)


def _file_key(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _remember_last(descriptor: int, last: _LastLine) -> None:
    key = _file_key(descriptor)
    if key not in _last_written and len(_last_written) >= _FILES_REMEMBERED:
        _last_written.clear()
    _last_written[key] = last


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
    """Yield the lines of a journal and of its parts, numbered as one file, broken ones with their problem.

    Lines that are appended meanwhile are left out. Raise OSError if the file cannot be read.
    """
    number = broken = 0
    with ExitStack() as opened:
        for file, descriptor in _open_parts(path, opened):
            tail = _tail_at_rest(descriptor, lock_seconds)
            for data, whole in _raw_lines(descriptor, tail.end):
                number += 1
                line = parse_line(number, data) if data is not None else Line(number, None, _TOO_LONG, whole=whole)
                yield line._replace(file=file)
                broken += line.problem is not None
                if broken > JOURNAL_PROBLEMS:
                    rest = f"the rest is not read: more than {JOURNAL_PROBLEMS:,} lines are broken"
                    yield Line(number + 1, None, rest, file=file)
                    return
            if tail.torn:
                number += 1
                problem = f"the line breaks off after {len(tail.torn):,} bytes"
                yield Line(number, None, problem, whole=False, file=file)


def exact_lines(path: str, *, lock_seconds: float = JOURNAL_LOCK_SECONDS) -> Iterator[bytes | None]:
    """Yield the bytes of each complete line of a journal and of its parts; None for a line that is too long.

    An incomplete last line is left out, and so are lines that are appended meanwhile. Raise OSError if the file cannot
    be read.
    """
    with ExitStack() as opened:
        for _, descriptor in _open_parts(path, opened):
            tail = _tail_at_rest(descriptor, lock_seconds)
            for data, whole in _raw_lines(descriptor, tail.end):
                if whole:
                    yield data


def force_to_disk(path: str, parts: set[str]) -> None:
    """Write what the system still holds of a journal and its parts to the disk, as far as that is possible.

    Those in `parts` were written before, and do not change any more; the others are added to them.
    """
    path = files.real_path(path)
    new = {part for _, part in parts_of(path)} - parts
    for name in (*sorted(new), path):
        # A disk that cannot be written has nothing to lose.
        with suppress(OSError), _open(name) as descriptor:
            os.fsync(descriptor)
    parts |= new


class JournalPlace(NamedTuple):
    """A place between two lines of a journal: the file that it is in, by device and inode, and the offset."""

    device: int
    inode: int
    offset: int


def lines_after(
    path: str, place: JournalPlace | None, *, lock_seconds: float = JOURNAL_LOCK_SECONDS
) -> tuple[list[bytes | None], JournalPlace] | None:
    """Return the complete lines after a place of a journal, and the place after them.

    Without a place they are those of the last part, and there must be no other. Return None if the journal was rotated
    since: the place is then in another part. Raise OSError if the file cannot be read.
    """
    with ExitStack() as opened:
        try:
            descriptor = _opened(path, opened)
        except FileNotFoundError:
            return None
        device, inode = _file_key(descriptor)
        if place is None and parts_of(path):
            return None
        if place is not None and (place.device, place.inode) != (device, inode):
            return None
        end = _tail_at_rest(descriptor, lock_seconds).end
        start = place.offset if place is not None else 0
        if end < start:
            return None
        lines = [data for data, whole in _raw_lines(descriptor, end, start) if whole]
        return lines, JournalPlace(device, inode, end)


def _open_parts(path: str, opened: ExitStack) -> Iterator[tuple[str, int]]:
    """Yield the name and an open descriptor of each part of a journal, oldest first, then of the journal itself.

    Many are opened before the first is read: rotation may remove the oldest meanwhile.
    """
    if files.kind_at(path) == "link":
        # The parts are where the journal is written.
        path = files.real_path(path)
    for _ in range(_TRIES):
        with ExitStack() as attempt:
            names, last = _parts_now(path, attempt)
            try:
                early = [_opened(name, attempt) for name in names[:_OPEN_PARTS]]
            except FileNotFoundError:
                continue
            opened.push(attempt.pop_all())
            break
    else:
        raise _Refused("it is rotated repeatedly")
    yield from zip(names[:_OPEN_PARTS], early, strict=True)
    for name in names[_OPEN_PARTS:]:
        with _open(name) as descriptor:
            yield name, descriptor
    if last is not None:
        yield path, last


def _parts_now(path: str, opened: ExitStack) -> tuple[list[str], int | None]:
    """Return the parts of a journal, and a descriptor of the journal, which may be missing if there are parts."""
    if is_part(path):
        return [], _opened(path, opened)
    for _ in range(_TRIES):
        with ExitStack() as attempt:
            try:
                last = _opened(path, attempt)
            except FileNotFoundError:
                last = None
            names = [name for _, name in parts_of(path) if _may_be_file(name)]
            if last is None and not names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            # It may have become a part before the parts were listed.
            if not names or last is None or is_at(files.real_path(path), last):
                opened.push(attempt.pop_all())
                return names, last
    raise _Refused("it is rotated repeatedly")


def _may_be_file(path: str) -> bool:
    """Return whether something is no folder, pipe or device; what is gone by now may have been a file."""
    kind = files.kind_at(path)
    return kind in (None, "file") or (kind == "link" and files.kind_at(files.real_path(path)) == "file")


def _opened(path: str, opened: ExitStack) -> int:
    descriptor = files.open_to_read(path)
    opened.callback(os.close, descriptor)
    return descriptor


_TOO_LONG = f"longer than JOURNAL_LINE_BYTES ({JOURNAL_LINE_BYTES:,})"


def _open(path: str) -> AbstractContextManager[int]:
    return _closing(files.open_to_read(path))


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
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


def _raw_lines(descriptor: int, end: int, start: int = 0) -> Iterator[tuple[bytes | None, bool]]:
    """Yield the bytes of each line up to an offset, None for a line that is too long, and whether it is complete.

    The first of them begins at `start`.
    """
    at, pending, too_long = start, b"", False
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


def journals_in(path: str, levels: int = 4) -> list[str]:
    """Return the journals in a folder and the folders in it, by name; of a file, the file itself.

    A file in a folder counts if its first line is an event, a link in it never does: it would be counted twice. Raise
    OSError if there is nothing at the path.
    """
    if files.kind_at(files.real_path(path)) != "folder":
        if files.kind_at(path) is None and not parts_of(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return [path]
    descriptor = files.open_folder(files.real_path(path))
    try:
        entries = files.entries_in(descriptor)
    finally:
        os.close(descriptor)
    found: dict[str, None] = {}
    for name, is_folder in entries:
        inner = f"{path}/{name}"
        if is_folder and levels > 1:
            with suppress(OSError):
                found |= dict.fromkeys(journals_in(inner, levels - 1))
        elif not is_folder and base_of(inner) not in found and files.kind_at(inner) != "link" and _is_journal(inner):
            found[base_of(inner)] = None
    return list(found)


def _is_journal(path: str) -> bool:
    try:
        with _open(path) as descriptor:
            return _first_record(descriptor) is not None
    except OSError:
        return False


# Verifying ----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A file of a rotated journal: the number of its lines, and the `seq` of the first."""

    file: str
    lines: int
    first_seq: int | None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return self._asdict()


class Verification(NamedTuple):
    """The result of verifying every line of a journal, with its parts if it was rotated.

    `removed_parts` is the number of the last part that rotation removed, with a record of it.
    """

    file: str
    ok: bool
    lines: int
    sessions: int
    torn_tail: bool
    problems: tuple[Problem, ...]
    head: str | None
    open_end: bool
    parts: tuple[Part, ...] = ()
    removed_parts: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as `log verify --json` prints it."""
        parts = [part.to_dict() for part in self.parts]
        return {**self._asdict(), "problems": [problem.to_dict() for problem in self.problems], "parts": parts}


class JournalCheck:
    """Verifies a journal line by line; a part `alone` may begin anywhere."""

    def __init__(self, alone: bool = False) -> None:
        self.parts = _Parts()
        self.torn: list[Problem] = []
        self.chain = Chain()
        self._alone = alone

    def add(self, line: Line) -> None:
        """Add the next line."""
        self.parts.add(line)
        if not line.whole:
            self.torn.append(Problem(line.number, None, "torn", line.problem or ""))
        elif not self.chain.full:
            self.chain.add(line)

    def problems(self) -> list[Problem]:
        """Return what is wrong with the lines so far."""
        start = self.parts.may_begin_at(alone=self._alone)
        return [*self.chain.problems(start), *self.parts.problems(), *self.torn]


def verify(path: str, head: str | None = None) -> Verification:
    """Verify that each line is unchanged and in its place; with a `head`, that its line still exists."""
    check, sessions = JournalCheck(is_part(path)), _Sessions()
    lines, last = 0, None
    wanted = head.lower().removeprefix("sha256:") if head else None
    found = wanted is None
    for line in read(path):
        check.add(line)
        if not line.whole:
            continue
        lines = line.number
        found = found or (line.record is not None and line.record["sum"] == wanted)
        if line.record and not line.problem:
            last = line.record
            sessions.add(line.record)
        if check.chain.full:
            break
    problems, parts = check.problems(), check.parts
    if check.chain.full:
        problems.append(Problem(lines, None, "edited", "too many problems; the lines after this were not read"))
    elif not found:
        seq = last["seq"] + 1 if last else 0
        detail = f"no line has the sum {head}: the end was cut off, or that line was changed"
        problems.append(Problem(lines + 1, seq, "cut", detail))
    return Verification(
        path,
        not problems,
        lines,
        len(sessions.ended),
        bool(check.torn),
        tuple(parts.placed(problem) for problem in problems),
        last["sum"] if last else None,
        sessions.are_open,
        tuple(parts.found) if len(parts.found) > 1 or parts.removed_part else (),
        parts.removed_part,
    )


class _Parts:
    """The files of a journal while it is verified, and the removals of parts that it records."""

    def __init__(self) -> None:
        self.found: list[Part] = []
        self.removed_part = 0
        self._removed_seq = -1
        self._gaps: list[Line] = []

    def add(self, line: Line) -> None:
        """Count a line of a part."""
        record = line.record if line.problem is None else None
        if not self.found or self.found[-1].file != line.file:
            self.found.append(Part(line.file, 0, record["seq"] if record else None))
        self.found[-1] = self.found[-1]._replace(lines=self.found[-1].lines + 1)
        if record is None or record["type"] != CONTINUED:
            return
        part, seq = record.get("removed_part"), record.get("removed_seq")
        if isinstance(part, int) and isinstance(seq, int):
            self.removed_part, self._removed_seq = part, seq
        if record.get("gap") is True:
            self._gaps.append(line)

    def may_begin_at(self, *, alone: bool) -> int:
        """Return the highest `seq` that the first line may have; a part that is verified alone begins anywhere."""
        return 2**64 if alone else self._removed_seq + 1

    def problems(self) -> Iterator[Problem]:
        """Yield a problem if rotation found parts that were missing without a record."""
        for line in self._gaps[:1]:
            detail = "when rotation removed the oldest parts, others were already missing without a record"
            yield Problem(line.number, line.record["seq"] if line.record else None, "removed", detail)

    def placed(self, problem: Problem) -> Problem:
        """Return a problem of a journal with several files with its file, and its line there."""
        if len(self.found) < 2:
            return problem
        line = problem.line
        for part in self.found[:-1]:
            if line <= part.lines:
                return problem._replace(file=part.file, line_in_file=line)
            line -= part.lines
        return problem._replace(file=self.found[-1].file, line_in_file=line)


class _Sessions:
    """The sessions of a journal, and which of them have ended."""

    def __init__(self) -> None:
        self.ended: dict[bytes, bool] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Count an event of a session."""
        if record["type"] == CONTINUED:
            return
        # A digest, since a name in an untrusted file may be as long as a line.
        name = bytes.fromhex(digest_of(record["session"].encode("utf-8", "surrogatepass")))
        if name in self.ended or len(self.ended) < JOURNAL_SESSIONS:
            self.ended[name] = self.ended.get(name, False) or record["type"] == "session_ended"

    @property
    def are_open(self) -> bool:
        """True if a session has not ended."""
        return not all(self.ended.values())
