"""The lines of a journal as a machine sends them: whole, or reduced to names, sizes and digests.

A reduced line keeps what links it to its neighbours (`seq`, `prev`, `sum`, and under `!line` the size and the digest of
the whole line), so a chain of reduced lines is still checked, and so is that it holds no content: whoever sends it may
only claim so. That its members are those of the whole line is not checked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from skillshelf.core.limits import JOURNAL_LINE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.journal.format import RESERVED, SUM_DIFFERS, canonical, digest_of, parse_line

__all__ = [
    "Break",
    "Content",
    "Reported",
    "SentLine",
    "broken_link",
    "is_reduced",
    "parse_sent",
    "reduced_line",
    "sent_line",
    "stored_line",
]

Content = Literal["full", "digest"]
"""Whether lines are sent whole or reduced."""

Reported = Literal["cut", "edited"]
"""The reports of a machine about its journal that no line of it shows: the end is missing, or a line was changed."""

_OF_LINE = "!line"
_OTHERS = "others"
_BEGIN = b'{"!line":{'
_HEX = re.compile("[0-9a-f]{64}")
_DIGEST = re.compile("(sha256:)?[0-9a-f]{64}")
_MEMBER_NAME = re.compile("[a-z][a-z0-9_]{0,31}")
_NAME_CHARS = 256
_MOST_MEMBERS = 64
_MOST_SEQ = 2**63 - 2
_MOST_NUMBER = 2**63 - 1

_NUMBERS = frozenset(
    {
        *("bytes", "count", "entries", "events", "exit_code", "gap", "host", "omitted", "part", "per_request"),
        *("read_tool", "removed_part", "removed_seq", "repeat", "restored", "size", "text_bytes", "timeout_ms"),
        "truncated",
    }
)
_DIGESTS = frozenset({"base_digest", "digest", "head", "inputs", "listing", "text_digest", "tree"})
_NAMES = frozenset(
    {
        *("by", "client", "code", "kind", "memory", "mode", "name", "profile", "subject", "tool", "tool_id", "trust"),
        *("verdict", "version"),
    }
)
"""The members that a reduced line has as they are: numbers, digests, and names of skills, tools and closed choices."""


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
    known = {name: value for name, value in record.items() if name in RESERVED or _MEMBER_NAME.fullmatch(name)}
    members = {name: value if _is_kept(name, value) else _reduced(value) for name, value in known.items()}
    for name in ("session", "type"):
        if not _is_kept(name, record[name]):
            # Each line has them as text.
            members[name] = f"sha256:{digest_of(record[name].encode())}"
    if len(known) < len(record):
        # The name of a member can hold content, too.
        members[_OTHERS] = _reduced({name: value for name, value in record.items() if name not in known})
    return canonical({**members, _OF_LINE: {"bytes": len(data), "digest": digest_of(data)}})


def _is_kept(name: str, value: object) -> bool:
    """Return whether a member of a reduced line is as it was, for what it is called and holds."""
    if value is None or name in ("seq", "ts_ms"):
        return True
    if name in _NUMBERS:
        return _is_number(value)
    if name == "output_bytes":
        return isinstance(value, list) and len(value) <= 2 and all(map(_is_number, value))
    if name in _DIGESTS or name in ("prev", "sum"):
        return isinstance(value, str) and _DIGEST.fullmatch(value) is not None
    if name in _NAMES or name in ("session", "type"):
        return isinstance(value, str) and len(value) <= _NAME_CHARS and value.isprintable()
    return False


def _is_number(value: object) -> bool:
    # Whole numbers only, of the size that a counter or a time has.
    return isinstance(value, int) and abs(value) <= _MOST_NUMBER


def _reduced(value: Any) -> dict[str, Any]:
    data = canonical(value)
    return {"bytes": len(data), "digest": f"sha256:{digest_of(data)}"}


def _is_size_and_digest(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"bytes", "digest"}
        and type(value["bytes"]) is int
        and 0 <= value["bytes"] <= _MOST_NUMBER
        and isinstance(value["digest"], str)
        and _DIGEST.fullmatch(value["digest"]) is not None
    )


def _content_in(record: Mapping[str, Any]) -> str | None:
    """Return what makes a line with the reduced form hold more than sizes, digests, names and numbers; None if nothing.

    No text of the line is repeated.
    """
    if not _is_size_and_digest(record[_OF_LINE]):
        return "a reduced line has the size and the digest of the whole one, and nothing else, under !line"
    if len(record) > _MOST_MEMBERS:
        return f"a reduced line has at most {_MOST_MEMBERS} members"
    for name, value in record.items():
        if name == _OF_LINE or _is_kept(name, value):
            continue
        if not _MEMBER_NAME.fullmatch(name):
            return "a reduced line has a member with an unknown kind of name"
        if name in RESERVED or not _is_size_and_digest(value):
            return f"the member {name} of a reduced line is not reduced to its size and digest"
    return None


def sent_line(data: bytes) -> SentLine | str:
    """Return the line in some bytes that were sent, or why they are none."""
    line = stored_line(data)
    if isinstance(line, str) or line.content == "full":
        return line
    return _content_in(line.record) or line


def stored_line(data: bytes) -> SentLine | str:
    """Return the line in some bytes, or why they are none; one with the reduced form may still hold content.

    Earlier versions stored such lines.
    """
    if len(data) > JOURNAL_LINE_BYTES:
        return f"longer than JOURNAL_LINE_BYTES ({JOURNAL_LINE_BYTES:,})"
    line = parse_line(0, data)
    if line.record is None or not 0 <= line.record["seq"] <= _MOST_SEQ:
        return line.problem or "its seq is no place in a journal"
    if line.problem is None and not _HEX.fullmatch(line.record["prev"]):
        return "its prev is no digest"
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
