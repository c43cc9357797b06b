"""The lines of a journal as a machine sends them: whole, or reduced to names, sizes and digests.

A reduced line keeps what links it to its neighbours (`seq`, `prev`, `sum`, and under `!line` the size and the digest of
the whole line), so a chain of reduced lines is still checked. That its members are those of the whole line is not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from skillshelf.core.limits import JOURNAL_LINE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.journal.format import RESERVED, SUM_DIFFERS, canonical, digest_of, parse_line

__all__ = ["Break", "Content", "SentLine", "broken_link", "is_reduced", "parse_sent", "reduced_line", "sent_line"]

Content = Literal["full", "digest"]
"""Whether lines are sent whole or reduced."""

_OF_LINE = "!line"
_BEGIN = b'{"!line":{'
_HEX = re.compile("[0-9a-f]{64}")
_NAME_CHARS = 256
_MOST_SEQ = 2**63 - 2

_KEPT = frozenset(
    {
        *("base_digest", "by", "bytes", "client", "code", "count", "digest", "entries", "events"),
        *("exit_code", "gap", "head", "host", "inputs", "kind", "listing", "memory", "mode"),
        *(
            "name",
            "omitted",
            "output_bytes",
            "part",
            "per_request",
            "profile",
            "read_tool",
            "removed_part",
            "removed_seq",
        ),
        *("repeat", "restored", "size", "subject", "text_bytes", "text_digest", "timeout_ms", "tool", "tool_id"),
        *("tree", "truncated", "trust", "verdict", "version"),
    }
)
"""The members that a reduced line has as they are: names of skills and tools, numbers, digests and closed choices."""


class SentLine(NamedTuple):
    """A line that was checked by itself: its bytes as sent, what they say, and the digest of the whole line."""

    data: bytes
    record: Mapping[str, Any]
    digest: str
    content: Content

    @property
    def seq(self) -> int:
        """The place of the line in its journal."""
        return int(self.record["seq"])

    @property
    def sum(self) -> str:
        """The sum of the whole line."""
        return str(self.record["sum"])


class Break(NamedTuple):
    """The place where sent lines stop being one chain, and why."""

    kind: Literal["edited", "gap", "fork"]
    seq: int | None
    detail: str


def is_reduced(data: bytes) -> bool:
    """Return whether a line has the reduced form; no event has a member of that name."""
    return data.startswith(_BEGIN)


def reduced_line(data: bytes, record: Mapping[str, Any]) -> bytes:
    """Return the reduced form of a whole line."""
    members = {
        name: value if name in RESERVED or (name in _KEPT and _is_short(value)) else _reduced(value)
        for name, value in record.items()
    }
    return canonical({**members, _OF_LINE: {"bytes": len(data), "digest": digest_of(data)}})


def _is_short(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, int) for item in value)
    return value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _NAME_CHARS)


def _reduced(value: Any) -> dict[str, Any]:
    data = canonical(value)
    return {"bytes": len(data), "digest": f"sha256:{digest_of(data)}"}


def sent_line(data: bytes) -> SentLine | str:
    """Return the line in some bytes, or why they are none."""
    if len(data) > JOURNAL_LINE_BYTES:
        return f"longer than JOURNAL_LINE_BYTES ({JOURNAL_LINE_BYTES:,})"
    line = parse_line(0, data)
    if line.record is None or not 0 <= line.record["seq"] <= _MOST_SEQ:
        return line.problem or "its seq is no place in a journal"
    if not is_reduced(data):
        return line.problem or SentLine(data, line.record, line.digest, "full")
    if line.problem not in (None, SUM_DIFFERS):
        return line.problem
    whole = line.record[_OF_LINE]
    digests = (line.record["prev"], line.record["sum"], whole.get("digest"))
    if not all(isinstance(one, str) and _HEX.fullmatch(one) for one in digests) or type(whole.get("bytes")) is not int:
        return "a reduced line needs the digests and the size of the whole one"
    return SentLine(data, line.record, whole["digest"], "digest")


def parse_sent(lines: Iterable[bytes]) -> Iterator[SentLine | Break]:
    """Yield the lines of one chain; a break is the last that is yielded."""
    before: SentLine | None = None
    for data in lines:
        line = sent_line(data)
        if isinstance(line, str):
            yield Break("edited", before.seq + 1 if before else None, line)
            return
        if before and (found := broken_link(line, before.seq, before.digest)):
            yield found
            return
        yield line
        before = line


def broken_link(line: SentLine, seq: int, digest: str) -> Break | None:
    """Return why a line does not follow the one with this `seq` and digest; None if it does."""
    if line.seq > seq + 1:
        return Break("gap", seq + 1, f"seq {seq + 1} is wanted, not {line.seq}")
    if line.seq <= seq:
        return Break("fork", line.seq, f"seq {line.seq} comes a second time")
    if line.record["prev"] != digest:
        return Break("fork", line.seq, f"seq {line.seq} continues another line than seq {seq} here")
    return None
