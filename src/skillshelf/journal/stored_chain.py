"""Verify the chain of a journal as a team server stores it.

Besides whole lines there are reduced ones, lines that were removed with a person, of which `seq`, `sum` and digest are
left, and a beginning that retention removed.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from skillshelf.core.records import NamedTuple
from skillshelf.journal.format import NOTHING_BEFORE, Kind, Problem
from skillshelf.journal.sent_lines import stored_line

__all__ = ["StoredVerification", "verify_stored"]

_MOST_PROBLEMS: Final = 20
_HEX = re.compile("[0-9a-f]{64}")


class StoredVerification(NamedTuple):
    """The result of verifying a journal that a server stores.

    `lines` are all of which something is left: of them `reduced` have no content, and `removed` no text. `first_seq` is
    the first of them, None if retention removed all.
    """

    stream: str
    ok: bool
    lines: int
    reduced: int
    removed: int
    first_seq: int | None
    head: str | None
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**self._asdict(), "problems": [problem.to_dict() for problem in self.problems]}


def verify_stored(
    stream: str, rows: Iterable[Mapping[str, Any]], *, acknowledged: int | None, head: str | None
) -> StoredVerification:
    """Verify the rows of a stream against each other, and against the last line that the server names.

    Lines that came after the server named it may follow.
    """
    chain = _StoredChain()
    for row in rows:
        chain.add(row)
        if acknowledged is not None and chain.seq == acknowledged and chain.sum != head:
            chain.report("edited", acknowledged, f"its sum is not that of the last line, {head}")
        if len(chain.problems) >= _MOST_PROBLEMS:
            break
    else:
        if chain.lines and acknowledged is not None and chain.seq < acknowledged:
            chain.report("cut", chain.seq + 1, f"seq {acknowledged} is the last line, and nothing is left of it")
    return StoredVerification(
        stream,
        not chain.problems,
        chain.lines,
        chain.reduced,
        chain.removed,
        chain.first_seq,
        chain.sum or None,
        tuple(chain.problems),
    )


class _StoredChain:
    """The lines of a stream while they are verified, and what the next one must continue."""

    def __init__(self) -> None:
        self.lines = self.reduced = self.removed = 0
        self.first_seq: int | None = None
        self.seq = -1
        self.sum = ""
        self.problems: list[Problem] = []
        self._digest: str | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Verify the next line."""
        self.lines += 1
        seq = row.get("seq")
        if type(seq) is not int or seq < 0:
            self.report("edited", None, "it has no place in a journal")
            self._digest = None
            return
        if self.first_seq is None:
            self.first_seq, self.seq = seq, seq - 1
        follows = seq == self.seq + 1
        if seq > self.seq + 1:
            self.report("removed", self.seq + 1, f"lines are missing here, from seq {self.seq + 1} to {seq - 1}")
        elif not follows:
            self.report("reordered", seq, f"seq {seq} is here after seq {self.seq}")
        self.seq = seq
        before = self._digest if follows else None
        text = row.get("line")
        self._digest = self._add_line(text, row, before) if isinstance(text, str) else self._add_removed(row)

    def _add_line(self, text: str, row: Mapping[str, Any], before: str | None) -> str | None:
        """Verify a line with a text against the digest of the one before it; return its own digest."""
        line = stored_line(text.encode("utf-8", "replace"))
        if isinstance(line, str) or line.seq != self.seq:
            self.report("edited", self.seq, line if isinstance(line, str) else f"its text has seq {line.seq}")
            self.sum = ""
            return None
        self.reduced += line.content == "digest"
        self.sum = line.sum
        prev = line.record["prev"]
        if (before is not None and prev != before) or (self.seq == 0 and prev != NOTHING_BEFORE):
            self.report("edited", self.seq, "it continues another line than the one before it")
        elif row.get("digest", line.digest) != line.digest:
            self.report("edited", self.seq, "the server gives another digest than its text")
        return line.digest

    def _add_removed(self, row: Mapping[str, Any]) -> str | None:
        """Take what is left of a line that was removed with a person; return its digest."""
        self.removed += 1
        total, digest = row.get("sum"), row.get("digest")
        if not all(isinstance(one, str) and _HEX.fullmatch(one) for one in (total, digest)):
            self.report("edited", self.seq, "it was removed, and its sum and digest are missing")
            self.sum = ""
            return None
        self.sum = str(total)
        return str(digest)

    def report(self, kind: Kind, seq: int | None, detail: str) -> None:
        """Add a problem with the line that was added last."""
        self.problems.append(Problem(self.lines, seq, kind, detail))
