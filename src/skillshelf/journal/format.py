"""Write an event as a line of a journal, parse a line, and find edited, moved or missing lines.

A line is JSON in one form only: UTF-8, no blanks, keys sorted by code point, text unescaped where JSON allows it.
So a line with the same meaning in another form is detected as edited.
"""

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Literal, NoReturn

from skillshelf.core.digests import sha256
from skillshelf.core.limits import JOURNAL_DEPTH, JOURNAL_LINE_BYTES, JOURNAL_MEMBER_BYTES, JOURNAL_PROBLEMS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import escape_surrogates
from skillshelf.journal.events import PlainList

__all__ = [
    "NOTHING_BEFORE",
    "RESERVED",
    "SUM_DIFFERS",
    "Chain",
    "Kind",
    "Line",
    "Problem",
    "canonical",
    "digest_of",
    "parse_line",
    "plain",
    "seal",
    "shortened",
]


NOTHING_BEFORE = "0" * 64
"""The `prev` of the first line of a journal."""

_MEMBERS: Mapping[str, type] = {"seq": int, "session": str, "ts_ms": int, "type": str, "prev": str, "sum": str}
RESERVED = frozenset(_MEMBERS)
"""The members of every event, beside its payload."""

_START_SHOWN = 200
_MOST_DIGITS = 20


class Line(NamedTuple):
    """A line of a journal; a broken line has a `problem` and possibly no record. `file` is the part that holds it."""

    number: int
    record: dict[str, Any] | None
    problem: str | None
    digest: str = ""
    whole: bool = True
    file: str = ""


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hex digits."""
    return sha256(data).hexdigest()


def seal(record: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the line of a record without its newline, and its `sum`."""
    # Members are sorted, so the line is encoded once, in two parts, and its sum stands between them.
    before = _encode({name: value for name, value in record.items() if name < "sum"})[1:-1]
    after = _encode({name: value for name, value in record.items() if name > "sum"})[1:-1]
    total = digest_of(f"{{{','.join(filter(None, (before, after)))}}}".encode())
    member = f'"sum":"{total}"'
    return f"{{{','.join(filter(None, (before, member, after)))}}}".encode(), total


# Created once: with these options `json.dumps` would create a new encoder for every line.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Any) -> bytes:
    """Return a JSON value in the one form that journals have."""
    return _encode(value).encode()


# Values to JSON -----------------------------------------------------------------------------------


def plain(value: Any, depth: int = JOURNAL_DEPTH) -> Any:
    """Return the value as JSON: unusual numbers and objects as text, bytes as base64."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth == 0:
        return f"[cut: more than {JOURNAL_DEPTH} levels]"
    if isinstance(value, bytes | bytearray):
        return {"base64": b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        return {escape_surrogates(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, PlainList):
        return value
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]
    if isinstance(value, Set):
        # Sorted, since the order of a set differs from run to run.
        return sorted((plain(item, depth - 1) for item in value), key=canonical)
    return escape_surrogates(str(value))


def shortened(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload that is too long for a line with its long members, or all of it, cut to a digest and a start."""
    short = {name: _cut(value) for name, value in payload.items()}
    return short if len(canonical(short)) < JOURNAL_LINE_BYTES // 2 else {"cut": _cut(payload)}


def _cut(value: Any) -> Any:
    data = canonical(value)
    if len(data) <= JOURNAL_MEMBER_BYTES:
        return value
    return {
        "cut_bytes": len(data),
        "digest": f"sha256:{digest_of(data)}",
        "start": data[:_START_SHOWN].decode("utf-8", "ignore"),
    }


# JSON to values -----------------------------------------------------------------------------------

SUM_DIFFERS = "its sum does not match its text"
"""The problem of a line in the right form whose text was not written with its `sum`."""


def parse_line(number: int, data: bytes) -> Line:
    """Parse a line; it has a problem unless it is exactly as `seal` writes it."""
    digest = digest_of(data)
    try:
        record = _record(data)
        if canonical(record) != data:
            return Line(number, record, "its bytes were changed", digest)
        body = _without_sum(data, record)
    except UnicodeDecodeError as error:
        return Line(number, None, f"not UTF-8 at byte {error.start}", digest)
    except UnicodeEncodeError:
        return Line(number, None, "a text in it holds a lone surrogate", digest)
    except RecursionError:
        return Line(number, None, f"more than {JOURNAL_DEPTH} levels", digest)
    except ValueError as error:
        return Line(number, None, str(error), digest)
    return Line(number, record, None if digest_of(body) == record["sum"] else SUM_DIFFERS, digest)


def _without_sum(data: bytes, record: Mapping[str, Any]) -> bytes:
    """Return a line as it was before its `sum` was added."""
    member = b',"sum":"%s"' % record["sum"].encode()
    # Cut out where that is certain: the sum needs no escapes, and no inner object has the same member.
    if record["sum"].isalnum() and data.count(member) == 1 and not data.startswith(member[1:], 1):
        return data.replace(member, b"")
    return canonical({name: value for name, value in record.items() if name != "sum"})


def _record(data: bytes) -> dict[str, Any]:
    """Return the object in a line; raise ValueError with the reason if there is none."""
    if not data:
        raise ValueError("an empty line")
    text = data.decode("utf-8")
    try:
        value = _decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(value, dict):
        raise ValueError("not an event: not a JSON object")
    for name, kind in _MEMBERS.items():
        if type(value.get(name)) is not kind:
            raise ValueError(f"not an event: `{name}` is missing or not {'a number' if kind is int else 'text'}")
    if text.count("{") + text.count("[") > JOURNAL_DEPTH and _is_deeper(value, JOURNAL_DEPTH):
        raise ValueError(f"more than {JOURNAL_DEPTH} levels")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def _integer(text: str) -> int:
    # Reading a number takes time quadratic in its length.
    if len(text) > _MOST_DIGITS + 1:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text[:_MOST_DIGITS]} is not a valid number")


_decode = json.JSONDecoder(parse_int=_integer, parse_float=_finite, parse_constant=_refuse).decode


Kind = Literal["edited", "removed", "reordered", "torn", "cut"]


class Problem(NamedTuple):
    """A problem at a line, by its current number, with the `seq` that is concerned if known.

    In a journal with parts `line` counts over all of them; `file` and `line_in_file` say where it is.
    """

    line: int
    seq: int | None
    kind: Kind
    detail: str
    file: str = ""
    line_in_file: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; one file needs no name."""
        members = self._asdict()
        return members if self.file else {name: members[name] for name in ("line", "seq", "kind", "detail")}


class _UnbrokenLines(NamedTuple):
    """Consecutive lines: number, seq and prev of the first, and the last two digests."""

    line: int
    seq: int
    size: int
    prev: str
    digest: str
    digest_before: str

    @property
    def end(self) -> int:
        return self.seq + self.size - 1

    @property
    def last_line(self) -> int:
        return self.line + self.size - 1

    def longer(self, digest: str) -> "_UnbrokenLines":
        return self._replace(size=self.size + 1, digest=digest, digest_before=self.digest)


_START = _UnbrokenLines(line=0, seq=-1, size=1, prev="", digest=NOTHING_BEFORE, digest_before="")


class Chain:
    """The chain of a journal, line by line; it keeps only the places where the chain breaks."""

    def __init__(self) -> None:
        self._runs: list[_UnbrokenLines] = []
        self._broken: list[Line] = []

    @property
    def full(self) -> bool:
        """True if there are too many problems to go on."""
        return len(self._runs) + len(self._broken) > JOURNAL_PROBLEMS

    def add(self, line: Line) -> None:
        """Add the next line of the file."""
        if line.problem or line.record is None:
            self._broken.append(line)
            return
        seq, prev = line.record["seq"], line.record["prev"]
        if self._runs:
            last = self._runs[-1]
            if seq == last.end + 1 and prev == last.digest and line.number == last.last_line + 1:
                self._runs[-1] = last.longer(line.digest)
                return
            rivals = seq == last.end and prev == last.digest_before and line.digest != last.digest
            if rivals and last.size > 1:
                # Both continue the same line: the first of them was inserted.
                kept = last._replace(size=last.size - 1, digest=last.digest_before, digest_before="")
                inserted = _UnbrokenLines(last.last_line, seq, 1, prev, last.digest, "")
                self._runs[-1:] = [kept, inserted]
        self._runs.append(_UnbrokenLines(line.number, seq, 1, prev, line.digest, prev))

    def problems(self, may_begin_at: int = 0) -> list[Problem]:
        """Return all problems in the order of the lines; the first line may have a `seq` up to `may_begin_at`."""
        kept = _in_place(self._runs)
        start = _START
        if kept and 0 < kept[0].seq <= may_begin_at:
            start = _START._replace(seq=kept[0].seq - 1, digest=kept[0].prev)
        moved = [run for run in self._runs if run not in kept]
        found = [*self._edited(kept), *_reordered(kept, moved)]
        for before, run in zip([start, *kept], kept, strict=False):
            between = sum(before.last_line < line.number < run.line for line in self._broken)
            found += _between(before, run, between, moved)
        return sorted(found)

    def _edited(self, kept: Sequence[_UnbrokenLines]) -> Iterator[Problem]:
        for line in self._broken:
            before = max((run for run in kept if run.line < line.number), default=_START)
            after = next((run for run in kept if run.line > line.number), None)
            inserted = after is not None and _follows(before, after)
            note = "; it was inserted: the lines around it follow each other" if inserted else ""
            seq = line.record["seq"] if line.record else None
            yield Problem(line.number, seq, "edited", f"{line.problem}{note}")


def _follows(before: _UnbrokenLines, run: _UnbrokenLines) -> bool:
    return run.seq == before.end + 1 and run.prev == before.digest


def _in_place(runs: Sequence[_UnbrokenLines]) -> list[_UnbrokenLines]:
    """Return the runs with rising seq that hold the most lines, then have the most links, then are the fewest."""
    best: list[tuple[tuple[int, int, int], int]] = []
    for place, run in enumerate(runs):
        choices = [(_score(_START, run, (0, 0, 0)), -1)]
        for earlier in range(place):
            before = runs[earlier]
            if before.seq < run.seq and before.end < run.end:
                choices.append((_score(before, run, best[earlier][0]), earlier))
        best.append(max(choices))
    kept: list[_UnbrokenLines] = []
    place = max(range(len(runs)), key=lambda place: best[place][0], default=-1)
    while place >= 0:
        kept.append(runs[place])
        place = best[place][1]
    return kept[::-1]


def _score(before: _UnbrokenLines, run: _UnbrokenLines, score: tuple[int, int, int]) -> tuple[int, int, int]:
    lines, links, fewer = score
    return lines + run.end - max(before.end, run.seq - 1), links + _follows(before, run), fewer - 1


def _between(
    before: _UnbrokenLines, run: _UnbrokenLines, broken: int, moved: Sequence[_UnbrokenLines]
) -> Iterator[Problem]:
    """Yield the problems between two runs that are both in their place."""
    if run.seq <= before.end:
        copies = min(run.size, before.end - run.seq + 1)
        yield Problem(run.line, run.seq, "reordered", f"{_place(run, copies)} a second time")
        return
    missing = _missing(before.end + 1, run.seq - 1, moved)
    lost = sum(end - first + 1 for first, end in missing) - broken
    if lost > 0:
        first = next(_after(missing, broken))
        one = f"the line with seq {first} is missing here"
        several = f"{lost} lines are missing here, from seq {first} on"
        yield Problem(run.line, first, "removed", one if lost == 1 else several)
    elif run.seq == before.end + 1 and not broken and not _follows(before, run):
        if before is _START:
            yield Problem(run.line, run.seq, "edited", "it names a line before it, but is the first")
        else:
            detail = f"its sum was computed again: line {run.line} was written after another text"
            yield Problem(before.last_line, before.end, "edited", detail)


def _missing(first: int, end: int, moved: Sequence[_UnbrokenLines]) -> list[tuple[int, int]]:
    """Return the ranges of seq that no moved line has."""
    left = []
    for run in sorted(moved, key=lambda run: run.seq):
        if run.end < first or run.seq > end:
            continue
        if run.seq > first:
            left.append((first, run.seq - 1))
        first = run.end + 1
    return [*left, (first, end)] if first <= end else left


def _after(ranges: Sequence[tuple[int, int]], skipped: int) -> Iterator[int]:
    """Yield the first seq in the ranges after skipping some."""
    for first, end in ranges:
        if first + skipped <= end:
            yield first + skipped
        skipped -= min(skipped, end - first + 1)


def _reordered(kept: Sequence[_UnbrokenLines], moved: Sequence[_UnbrokenLines]) -> Iterator[Problem]:
    for run in moved:
        what = _place(run, run.size)
        if any(other.seq <= run.seq and run.end <= other.end for other in kept):
            yield Problem(run.line, run.seq, "reordered", f"{what} a second time")
            continue
        before = max((other for other in kept if other.line < run.line), default=None)
        after = min((other for other in kept if other.line > run.line), default=None)
        around = [f"after seq {before.end}"] if before else []
        around += [f"before seq {after.seq}"] if after else []
        yield Problem(run.line, run.seq, "reordered", f"{what} {' and '.join(around)}")


def _place(run: _UnbrokenLines, lines: int) -> str:
    if lines == 1:
        return f"seq {run.seq} is here"
    return f"seq {run.seq} to {run.seq + lines - 1} (up to line {run.line + lines - 1}) are here"
