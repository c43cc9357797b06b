"""Take the journals of many machines: check that each continues its chain, store each line once, count its use.

Everything about one batch is one transaction under the lock of its stream: the lines, the head, the sessions and the
counts. So a batch that is sent again, or by two programs at once, changes nothing, and what was acknowledged stays.
"""

import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from skillshelf.core.limits import JOURNAL_ALARMS, JOURNAL_BATCH_BYTES, JOURNAL_BATCH_LINES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import LimitExceeded
from skillshelf.journal.format import NOTHING_BEFORE, digest_of
from skillshelf.journal.parts import CONTINUED
from skillshelf.journal.sent_lines import Break, Content, SentLine, broken_link, is_reduced, parse_sent
from skillshelf.servers.team.database import Database, Transaction, now_ms
from skillshelf.servers.team.values import Caller, TeamError

__all__ = [
    "CONTENT_POLICY",
    "FORGOTTEN",
    "MACHINES",
    "SERVER",
    "Receipt",
    "StreamHead",
    "checked_stream",
    "day_of",
    "demanded_content",
    "digest_of_stored",
    "head_of",
    "lines_in",
    "set_content",
    "stored_text",
    "take",
]

CONTENT_POLICY = "journal.content"
"""The policy of a tenant that says whether lines may be sent whole (`full`, also without one) or reduced (`digest`)."""

SERVER: Final = "server"
MACHINES: Final = "machine"
FORGOTTEN: Final = "forgotten"
Origin = Literal["machine", "server", "forgotten"]
"""Where a stream comes from: a machine of one person, a server that serves many, or a person who was forgotten."""

Refusal = Literal["edited", "gap", "fork", "owner", "content"]

_NAME_CHARS = 256
_MOST_MS = 253_402_300_799_999
_STREAM_CHARS = frozenset("0123456789abcdef")
_COUNTS = ("loads", "reads", "runs", "denials")


class StreamHead(NamedTuple):
    """The end of a stream: `seq`, `sum` and digest of its last line. `first` is the `seq` of the first ever sent."""

    origin: Origin
    subject: str
    machine: str
    content: str
    first: int
    seq: int
    sum: str
    digest: str


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
    now: int | None = None,
) -> Receipt:
    """Store the lines that continue a stream, and return what is stored now.

    The subject of every line is that of the caller, whatever a line says; in a stream of a server it is the line's.
    """
    stream, at = checked_stream(stream), now_ms() if now is None else now
    sent, broken = _checked(lines)
    with database.transaction(caller.tenant) as transaction:
        if transaction.engine == "postgresql":
            # Before any other lock: making a partition waits for all transactions that write events.
            transaction.rows("select add_event_day(?)", (day_of(at),))
        if sent and demanded_content(transaction) == "digest" and any(line.content == "full" for line in sent):
            return _refused(stream, head_of(transaction, stream), "content", "this server takes reduced lines only")
        head = _locked_head(transaction, stream, sent, caller, machine[:64], origin, at)
        if head is None:
            return Receipt(stream, None, None, 0, broken and broken.kind, broken and broken.seq, _detail(broken))
        if head.origin != origin or (origin == MACHINES and head.subject != caller.subject):
            return _foreign(transaction, stream, at)
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


def _detail(broken: Break | None) -> str:
    return broken.detail if broken else ""


def _refused(stream: str, head: StreamHead | None, problem: Refusal, detail: str) -> Receipt:
    return Receipt(stream, head.seq if head else None, head.sum if head else None, 0, problem, None, detail)


def _foreign(transaction: Transaction, stream: str, at: int) -> Receipt:
    """Refuse a push to the stream of somebody else: it says nothing about that stream."""
    _alarm(transaction, stream, "owner", -1, "another subject than that of the stream sent lines to it", at)
    return Receipt(stream, None, None, 0, "owner", None, "this stream belongs to another subject")


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
    "select origin, subject, machine, content, first_seq, head_seq, head_sum, head_digest "
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
        """Return the first line that is stored with another text; lines that retention removed are not compared."""
        if not known:
            return None
        rows = self._transaction.rows(
            "select seq, line from event where tenant = ? and stream = ? and seq between ? and ?",
            (self._transaction.tenant, self._stream, known[0].seq, known[-1].seq),
        )
        stored = {seq: digest_of_stored(bytes(line)) for seq, line in rows}
        for line in known:
            if stored.get(line.seq, line.digest) != line.digest:
                return Break("fork", line.seq, f"seq {line.seq} is stored with another text")
        return None

    def receipt(self, broken: Break | None) -> Receipt:
        """Store what was taken, and return the answer."""
        head = self._head
        if self._new:
            self._store()
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
            _alarm(self._transaction, self._stream, broken.kind, broken.seq or 0, broken.detail, self._at)
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

    # Storing ----------------------------------------------------------------------------------------

    def _store(self) -> None:
        transaction, day = self._transaction, day_of(self._at)
        rows = [(line.seq, *_columns(line.record), line.data) for line in self._new]
        if transaction.engine == "postgresql":
            # One statement for all: a statement for each line takes most of the time there.
            columns = [list(column) for column in zip(*rows, strict=True)]
            transaction.execute(_EVENTS_AT_ONCE, (transaction.tenant, self._stream, day, *columns))
        else:
            own = (transaction.tenant, self._stream, day)
            transaction.execute_many(_EVENTS, ((*own, *row) for row in rows))
        sessions = self._sessions()
        self._store_sessions(sessions)
        self._store_use(sessions)

    def _sessions(self) -> dict[str, "_SessionPart"]:
        """Return what the new lines say about their sessions."""
        found: dict[str, _SessionPart] = {}
        for line in self._new:
            record = line.record
            if record["type"] == CONTINUED:
                continue
            name = stored_text(record["session"])
            part = found.get(name) or _SessionPart()
            found[name] = part.with_line(record)
        return found

    def _store_sessions(self, sessions: dict[str, "_SessionPart"]) -> None:
        served = self._head.origin == SERVER
        known = self._known_subjects(sessions) if served else {}
        for name, part in sorted(sessions.items()):
            subject = part.subject if served else self._caller.subject
            if not served and part.subject not in (None, self._caller.subject):
                detail = f"session {name[:32]} names another subject than the token"
                _alarm(self._transaction, self._stream, "subject", part.first_seq, detail, self._at)
            self._transaction.execute(
                _SESSION,
                (
                    *(self._transaction.tenant, self._stream, name, subject, part.client),
                    *(part.started, part.latest, part.ended, part.events),
                ),
            )
            sessions[name] = part._replace(subject=subject or known.get(name))

    def _known_subjects(self, sessions: Iterable[str]) -> dict[str, str]:
        found = {}
        for name in sessions:
            row = self._transaction.row(
                "select subject from journal_session where tenant = ? and stream = ? and session = ?",
                (self._transaction.tenant, self._stream, name),
            )
            if row and row[0]:
                found[name] = row[0]
        return found

    def _store_use(self, sessions: Mapping[str, "_SessionPart"]) -> None:
        """Add the use of skills in the new lines to the counts of their days.

        Keys are sorted, so that two transactions never wait for each other.
        """
        skills: dict[tuple[int, str, str], Counter[str]] = {}
        people: dict[tuple[int, str, str], Counter[str]] = {}
        today = day_of(self._at)
        for line in self._new:
            act = _act(line.record)
            if act is None:
                continue
            kind, skill, tree = act
            # A clock that goes ahead must not fill days to come.
            day = min(day_of(_bounded_ms(line.record["ts_ms"])), today)
            part = sessions.get(stored_text(line.record["session"]))
            subject = (part.subject if part else None) or ""
            skills.setdefault((day, skill, tree), Counter())[kind] += 1
            people.setdefault((day, subject, skill), Counter())[kind] += 1
        tenant = self._transaction.tenant
        for key, counts in sorted(skills.items(), key=lambda item: item[0]):
            added = self._transaction.execute(_USE_MACHINE, (tenant, *key, self._head.machine or self._stream))
            self._transaction.execute(_USE_DAY, (tenant, *key, *(counts[name] for name in _COUNTS), max(added, 0)))
        for key, counts in sorted(people.items(), key=lambda item: item[0]):
            self._transaction.execute(_USE_PERSON, (tenant, *key, *(counts[name] for name in _COUNTS)))


_EVENT = "insert into event (tenant, stream, day, seq, ts, type, session, skill, tree, line) "
_EVENTS = _EVENT + "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_EVENTS_AT_ONCE = (
    _EVENT + "select ?::text, ?::text, ?::integer, seq, ts, type, session, skill, tree, line "
    "from unnest(?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bytea[]) "
    "as new (seq, ts, type, session, skill, tree, line)"
)

_SESSION = """insert into journal_session (tenant, stream, session, subject, client, started, latest, ended, events)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (tenant, stream, session) do update set
        subject = coalesce(excluded.subject, journal_session.subject),
        client = coalesce(excluded.client, journal_session.client),
        started = case when excluded.started < journal_session.started
            then excluded.started else journal_session.started end,
        latest = case when excluded.latest > journal_session.latest
            then excluded.latest else journal_session.latest end,
        ended = coalesce(excluded.ended, journal_session.ended),
        events = journal_session.events + excluded.events"""

_USE_DAY = """insert into usage_day (tenant, day, skill, tree, loads, reads, runs, denials, machines)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (tenant, day, skill, tree) do update set
        loads = usage_day.loads + excluded.loads, reads = usage_day.reads + excluded.reads,
        runs = usage_day.runs + excluded.runs, denials = usage_day.denials + excluded.denials,
        machines = usage_day.machines + excluded.machines"""

_USE_MACHINE = """insert into usage_machine (tenant, day, skill, tree, machine) values (?, ?, ?, ?, ?)
    on conflict do nothing"""

_USE_PERSON = """insert into usage_person (tenant, day, subject, skill, loads, reads, runs, denials)
    values (?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (tenant, day, subject, skill) do update set
        loads = usage_person.loads + excluded.loads, reads = usage_person.reads + excluded.reads,
        runs = usage_person.runs + excluded.runs, denials = usage_person.denials + excluded.denials"""


class _SessionPart(NamedTuple):
    """What some lines say about one session."""

    first_seq: int = -1
    subject: str | None = None
    client: str | None = None
    started: int = _MOST_MS
    latest: int = 0
    ended: int | None = None
    events: int = 0

    def with_line(self, record: Mapping[str, Any]) -> "_SessionPart":
        """Return the part with one more line."""
        at = _bounded_ms(record["ts_ms"])
        part = self._replace(started=min(self.started, at), latest=max(self.latest, at), events=self.events + 1)
        if record["type"] == "session_started":
            subject, client = _text(record.get("subject")), _text(record.get("client"))
            part = part._replace(first_seq=record["seq"], subject=subject, client=client)
        elif record["type"] == "session_ended":
            part = part._replace(ended=at)
        return part


def _columns(record: Mapping[str, Any]) -> tuple[int, str, str, str | None, str | None]:
    """Return time, type, session, skill and tree of a line, in the form that both databases take."""
    skill = None if record["type"].startswith("tool_") else _text(record.get("name"))
    session = stored_text(record["session"])
    return _bounded_ms(record["ts_ms"]), stored_text(record["type"])[:64], session, skill, _text(record.get("tree"))


def _act(record: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return what a line adds to the counts: of what, for which skill and tree; None for nothing.

    Each is decided by one line alone, so that it does not matter where a batch ends.
    """
    kind, skill = record["type"], _text(record.get("name"))
    if skill is None:
        return None
    tree = _text(record.get("tree")) or ""
    if kind == "skill_loaded" or (kind == "skill_invoked" and record.get("repeat") is True):
        return "loads", skill, tree
    if kind == "skill_read":
        return "reads", skill, tree
    if kind == "permission_decided" and record.get("verdict") == "deny":
        return "denials", skill, tree
    if kind == "permission_decided" and record.get("tool") == "skill_run":
        return "runs", skill, tree
    return None


def _text(value: object) -> str | None:
    return stored_text(value) if isinstance(value, str) and value else None


def stored_text(text: str) -> str:
    """Return a text of an untrusted line as a column holds it: short, and without what PostgreSQL refuses."""
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= _NAME_CHARS else f"{text[:128]}…{digest_of(text.encode())}"


def _bounded_ms(ts_ms: int) -> int:
    return min(max(ts_ms, 0), _MOST_MS)


def day_of(ts_ms: int) -> int:
    """Return the day of a time as a number such as 20261117, in UTC."""
    found = time.gmtime(_bounded_ms(ts_ms) // 1000)
    return found.tm_year * 10_000 + found.tm_mon * 100 + found.tm_mday


def digest_of_stored(data: bytes) -> str:
    """Return the digest of the whole line that a stored one stands for."""
    if not is_reduced(data):
        return digest_of(data)
    found = next(iter(parse_sent([data])))
    return found.digest if isinstance(found, SentLine) else ""


def _alarm(transaction: Transaction, stream: str, kind: str, seq: int, detail: str, at: int) -> None:
    """Raise an alarm once for a place in a stream; a stream has a bounded number of them."""
    count = transaction.row("select count(*) from alarm where tenant = ? and stream = ?", (transaction.tenant, stream))
    if count and count[0] >= JOURNAL_ALARMS:
        return
    transaction.execute(
        "insert into alarm (tenant, id, at, stream, kind, detail) values (?, ?, ?, ?, ?, ?) on conflict do nothing",
        (transaction.tenant, f"{stream}:{kind}:{seq}", at, stream, kind, detail),
    )
