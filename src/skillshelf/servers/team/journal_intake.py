"""Take the journals of many machines: check that each continues its chain, and store each line once.

Everything about one batch is one transaction under the lock of its stream: the lines, the head, the sessions and the
counts. So a batch that is sent again, or by two programs at once, changes nothing, and what was acknowledged stays.
"""

import zlib
from collections.abc import Sequence
from typing import Any, Final, Literal

from skillshelf.core.limits import JOURNAL_BATCH_BYTES, JOURNAL_BATCH_LINES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import LimitExceeded
from skillshelf.journal.format import NOTHING_BEFORE, digest_of
from skillshelf.journal.sent_lines import (
    Break,
    Content,
    Reported,
    SentLine,
    broken_link,
    is_reduced,
    parse_sent,
    stored_line,
)
from skillshelf.servers.team.database import Database, Transaction, now_ms
from skillshelf.servers.team.journal_rows import StoredBatch, day_of, raise_alarm
from skillshelf.servers.team.values import Caller, TeamError

__all__ = [
    "CONTENT_POLICY",
    "FORGOTTEN",
    "MACHINES",
    "SERVER",
    "Receipt",
    "StreamHead",
    "checked_stream",
    "demanded_content",
    "digest_of_stored",
    "head_of",
    "lines_in",
    "set_content",
    "take",
]

CONTENT_POLICY = "journal.content"
"""The policy of a tenant that says whether lines may be sent whole (`full`, also without one) or reduced (`digest`)."""

SERVER: Final = "server"
MACHINES: Final = "machine"
FORGOTTEN: Final = "forgotten"
Origin = Literal["machine", "server", "forgotten"]
"""Where a stream comes from: a machine of one person, a server that serves many, or a person who was forgotten."""

Refusal = Literal["edited", "gap", "fork", "owner", "content", "forgotten"]

_DAY_MS = 24 * 60 * 60 * 1000
_STREAM_CHARS = frozenset("0123456789abcdef")


class StreamHead(NamedTuple):
    """The end of a stream: `seq`, `sum` and digest of its last line. `first` is the `seq` of the first ever sent.

    `updated` is the time at which the last line came.
    """

    origin: Origin
    subject: str
    machine: str
    content: str
    first: int
    seq: int
    sum: str
    digest: str
    updated: int


class Receipt(NamedTuple):
    """The answer to a batch: the last line that is stored with all before it, and how many were new.

    A batch with a problem is stored up to it; `wanted` is the `seq` that the server would take next.
    """

    stream: str
    acknowledged: int | None
    head: str | None
    stored: int
    problem: Refusal | None = None
    seq: int | None = None
    detail: str = ""

    @property
    def wanted(self) -> int | None:
        """The `seq` of the next line; None if any journal may begin."""
        return None if self.acknowledged is None else self.acknowledged + 1

    @property
    def status(self) -> int:
        """The HTTP status."""
        return 200 if self.problem is None else 422 if self.problem in ("edited", "content") else 409

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        members = {name: getattr(self, name) for name in ("stream", "acknowledged", "stored", "head", "wanted")}
        if self.problem is None:
            return members
        return {**members, "error": {"code": self.problem, "message": self.detail, "seq": self.seq}}


# The body of a request ----------------------------------------------------------------------------


def lines_in(body: bytes, encoding: str = "") -> list[bytes]:
    """Return the lines of a batch; raise `LimitExceeded` or `TeamError` for one that is too large or no gzip."""
    data = _decompressed(body) if encoding.strip().lower() == "gzip" else body
    if len(data) > JOURNAL_BATCH_BYTES:
        raise LimitExceeded(f"a batch has more than {JOURNAL_BATCH_BYTES:,} bytes (JOURNAL_BATCH_BYTES)")
    if data and not data.endswith(b"\n"):
        raise TeamError("a batch consists of whole lines, each with its newline")
    if data.count(b"\n") > JOURNAL_BATCH_LINES:
        raise LimitExceeded(f"a batch has more than {JOURNAL_BATCH_LINES:,} lines (JOURNAL_BATCH_LINES)")
    return data.split(b"\n")[:-1]


def _decompressed(body: bytes) -> bytes:
    """Return what a gzip stream holds, and read no further than the limit."""
    stream = zlib.decompressobj(wbits=31)
    try:
        data = stream.decompress(body, JOURNAL_BATCH_BYTES + 1)
    except zlib.error:
        raise TeamError("the body is not gzip") from None
    if len(data) <= JOURNAL_BATCH_BYTES and (not stream.eof or stream.unused_data):
        raise TeamError("the body is not one whole gzip stream")
    return data


def checked_stream(name: str) -> str:
    """Return the id of a stream, or raise `TeamError`."""
    if not 16 <= len(name) <= 64 or not _STREAM_CHARS.issuperset(name):
        raise TeamError("the id of a stream has 16 to 64 hex digits")
    return name


# One batch ----------------------------------------------------------------------------------------


def take(
    database: Database,
    caller: Caller,
    stream: str,
    lines: Sequence[bytes],
    *,
    machine: str = "",
    origin: Origin = MACHINES,
    reported: Reported | None = None,
    now: int | None = None,
) -> Receipt:
    """Store the lines that continue a stream, and return what is stored now.

    The subject of every line is that of the caller, whatever a line says; in a stream of a server it is the line's.
    What the machine `reported` about its journal is an alarm.
    """
    stream, at = checked_stream(stream), now_ms() if now is None else now
    sent, broken = _checked(lines)
    with database.transaction(caller.tenant) as transaction:
        if transaction.engine == "postgresql":
            # Before any other lock: making a partition waits for all transactions that write events.
            transaction.rows("select add_event_day(?)", (day_of(at),))
        if sent and demanded_content(transaction) == "digest" and any(line.content == "full" for line in sent):
            head = head_of(transaction, stream)
            if head is None or _is_own(head, caller, origin):
                return _refused(stream, head, "content", "this server takes reduced lines only")
        head = _locked_head(transaction, stream, sent, caller, machine[:64], origin, at)
        if head is None:
            return Receipt(stream, None, None, 0, broken and broken.kind, broken and broken.seq, _detail(broken))
        if not _is_own(head, caller, origin):
            return _foreign(transaction, stream, head, at)
        at = _stored_at(transaction, head, at)
        if reported is not None:
            _raise_reported(transaction, stream, head, reported, sent, at)
        batch = _SentBatch(transaction, stream, head, caller, at)
        return batch.receipt(batch.fitting(sent) or broken)


def _checked(lines: Sequence[bytes]) -> tuple[list[SentLine], Break | None]:
    """Return the lines up to the first that is broken or does not follow, and why the rest is left out."""
    sent: list[SentLine] = []
    for found in parse_sent(lines):
        if isinstance(found, Break):
            return sent, found
        if found.seq == 0 and found.record["prev"] != NOTHING_BEFORE:
            return sent, Break("edited", 0, "it names a line before it, but is the first")
        sent.append(found)
    return sent, None


def _stored_at(transaction: Transaction, head: StreamHead, at: int) -> int:
    """Return the time that counts for new lines: not before that of the last one, where two servers differ a little.

    Else retention, which removes whole days, would remove a line between two others. A clock that was more than a day
    ahead does not count: lines must not be kept for as long as it says.
    """
    if not at < head.updated <= at + _DAY_MS:
        return at
    if transaction.engine == "postgresql":
        transaction.rows("select add_event_day(?)", (day_of(head.updated),))
    return head.updated


def _detail(broken: Break | None) -> str:
    return broken.detail if broken else ""


def _refused(stream: str, head: StreamHead | None, problem: Refusal, detail: str) -> Receipt:
    return Receipt(stream, head.seq if head else None, head.sum if head else None, 0, problem, None, detail)


def _is_own(head: StreamHead, caller: Caller, origin: Origin) -> bool:
    return head.origin == origin and (origin != MACHINES or head.subject == caller.subject)


def _foreign(transaction: Transaction, stream: str, head: StreamHead, at: int) -> Receipt:
    """Refuse a push to the stream of somebody else: it says nothing about that stream.

    That of a person who was forgotten belongs to nobody, so it is no alarm that their machine still sends lines.
    """
    if head.origin == FORGOTTEN:
        return Receipt(stream, None, None, 0, "forgotten", None, "the person of this stream was forgotten")
    raise_alarm(transaction, stream, "owner", -1, "another subject than that of the stream sent lines to it", at)
    return Receipt(stream, None, None, 0, "owner", None, "this stream belongs to another subject")


def _raise_reported(
    transaction: Transaction, stream: str, head: StreamHead, reported: Reported, sent: Sequence[SentLine], at: int
) -> None:
    """Raise an alarm for what a machine says about its own journal."""
    detail = f"a line up to seq {head.seq}, or the one after it, was changed or removed on the machine"
    if reported == "cut":
        where = f"with seq {sent[-1].seq}" if sent else f"before seq {head.seq}"
        detail = f"the journal on the machine ends {where}, and lines up to seq {head.seq} were sent"
    raise_alarm(transaction, stream, reported, head.seq, detail, at)


def demanded_content(transaction: Transaction) -> Content:
    """Return how a tenant wants its lines."""
    found = transaction.row(
        "select value from policy where tenant = ? and name = ?", (transaction.tenant, CONTENT_POLICY)
    )
    return "digest" if found and found[0] == "digest" else "full"


def set_content(database: Database, tenant: str, content: str) -> None:
    """Keep how a tenant wants its lines."""
    with database.transaction(tenant) as transaction:
        transaction.execute(
            "insert into policy (tenant, name, value) values (?, ?, ?) "
            "on conflict (tenant, name) do update set value = excluded.value",
            (tenant, CONTENT_POLICY, content),
        )


_HEAD = (
    "select origin, subject, machine, content, first_seq, head_seq, head_sum, head_digest, updated "
    "from stream where tenant = ? and id = ?"
)


def head_of(transaction: Transaction, stream: str, *, locked: bool = False) -> StreamHead | None:
    """Return the end of a stream; None if there is no such stream."""
    row = transaction.row(_HEAD + (transaction.row_lock if locked else ""), (transaction.tenant, stream))
    return StreamHead(*row) if row else None


def _locked_head(
    transaction: Transaction,
    stream: str,
    sent: Sequence[SentLine],
    caller: Caller,
    machine: str,
    origin: Origin,
    at: int,
) -> StreamHead | None:
    """Return the head of a stream, locked until the end; a new stream begins before its first line."""
    head = head_of(transaction, stream, locked=True)
    if head is not None or not sent:
        return head
    first = sent[0]
    subject = caller.subject if origin == MACHINES else ""
    values = (subject, origin, "", first.seq, first.seq - 1, "", first.record["prev"], at)
    transaction.execute(
        "insert into stream (tenant, id, machine, subject, origin, content, first_seq, head_seq, head_sum, "
        "head_digest, updated) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
        (transaction.tenant, stream, machine, *values),
    )
    return head_of(transaction, stream, locked=True)


class _SentBatch:
    """The lines of one request against the head of their stream, inside its transaction."""

    def __init__(self, transaction: Transaction, stream: str, head: StreamHead, caller: Caller, at: int) -> None:
        self._transaction = transaction
        self._stream = stream
        self._head = head
        self._caller = caller
        self._at = at
        self._new: list[SentLine] = []

    def fitting(self, sent: Sequence[SentLine]) -> Break | None:
        """Take the lines that follow the head; return why the others are left out."""
        head = self._head
        known = [line for line in sent if line.seq <= head.seq]
        if found := self._differing(known):
            return found
        self._new = list(sent[len(known) :])
        if self._new and (found := broken_link(self._new[0], head.seq, head.digest)):
            self._new = []
            return found
        return None

    def _differing(self, known: Sequence[SentLine]) -> Break | None:
        """Return the first line that is stored with another text.

        Of lines that retention removed the last one is compared, whose digest the head keeps.
        """
        if not known:
            return None
        rows = self._transaction.rows(
            "select seq, line from event where tenant = ? and stream = ? and seq between ? and ?",
            (self._transaction.tenant, self._stream, known[0].seq, known[-1].seq),
        )
        stored = {self._head.seq: self._head.digest} | {seq: digest_of_stored(bytes(line)) for seq, line in rows}
        for line in known:
            if stored.get(line.seq, line.digest) != line.digest:
                return Break("fork", line.seq, f"seq {line.seq} is stored with another text")
        return None

    def receipt(self, broken: Break | None) -> Receipt:
        """Store what was taken, and return the answer."""
        head = self._head
        if self._new:
            subject = None if head.origin == SERVER else self._caller.subject
            rows = StoredBatch(self._transaction, self._stream, self._new, subject, head.machine, self._at)
            rows.store()
            last = self._new[-1]
            contents = {line.content for line in self._new} | ({head.content} if head.content else set())
            content = contents.pop() if len(contents) == 1 else "mixed"
            self._transaction.execute(
                "update stream set head_seq = ?, head_sum = ?, head_digest = ?, content = ?, updated = ? "
                "where tenant = ? and id = ?",
                (last.seq, last.sum, last.digest, content, self._at, self._transaction.tenant, self._stream),
            )
            head = head._replace(seq=last.seq, sum=last.sum)
        if broken and broken.kind in ("gap", "fork"):
            raise_alarm(self._transaction, self._stream, broken.kind, broken.seq or 0, broken.detail, self._at)
        if head.seq < head.first:
            return Receipt(self._stream, None, None, 0, broken and broken.kind, broken and broken.seq, _detail(broken))
        return Receipt(
            self._stream,
            head.seq,
            head.sum,
            len(self._new),
            broken and broken.kind,
            broken and broken.seq,
            _detail(broken),
        )


def digest_of_stored(data: bytes) -> str:
    """Return the digest of the whole line that a stored one stands for."""
    if not is_reduced(data):
        return digest_of(data)
    found = stored_line(data)
    return found.digest if isinstance(found, SentLine) else ""
