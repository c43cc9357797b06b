"""Store the lines of a journal as rows: the lines themselves, their sessions, and the use of skills by day.

All of it happens in the transaction of one batch. Each line adds to the counts by itself, or with the one before it in
its session, which may be stored: it does not matter where a batch ends.
"""

import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from skillshelf.core.limits import JOURNAL_ALARMS
from skillshelf.core.records import NamedTuple
from skillshelf.journal.format import digest_of
from skillshelf.journal.parts import CONTINUED
from skillshelf.journal.sent_lines import SentLine, stored_line
from skillshelf.servers.team.database import Transaction

__all__ = ["BURIED", "StoredBatch", "day_of", "raise_alarm", "stored_text"]

_NAME_CHARS = 256
_MOST_MS: Final = 253_402_300_799_999
_COUNTS = ("loads", "reads", "runs", "denials")
_BETWEEN: Final = "override_proposed"
"""The type of the lines that may come between a load and the read of the same file."""
_LINES_BEFORE: Final = 100
"""How many lines back the last one of a session is looked for: those of other sessions may come between."""


class StoredBatch:
    """New lines of one stream on their way into the database, inside the transaction of their batch.

    `subject` is that of every line; None in a stream of a server, whose lines name their own. `machine` stands for the
    machine in the counts.
    """

    def __init__(
        self,
        transaction: Transaction,
        stream: str,
        lines: Sequence[SentLine],
        subject: str | None,
        machine: str,
        at: int,
    ) -> None:
        self._transaction = transaction
        self._stream = stream
        self._new = lines
        self._subject = subject
        self._machine = machine
        self._at = at

    def store(self) -> None:
        """Store everything."""
        transaction, day = self._transaction, day_of(self._at)
        known = self._known_sessions() if self._subject is None else {}
        forgotten = {name for name, (_, is_forgotten) in known.items() if is_forgotten}
        kept = [line for line in self._new if _session_of(line) not in forgotten]
        rows = [(line.seq, *_columns(line.record), line.data) for line in kept]
        if rows and transaction.engine == "postgresql":
            # One statement for all: a statement for each line takes most of the time there.
            transaction.execute(_EVENTS_AT_ONCE, (transaction.tenant, self._stream, day, *_columns_of(rows)))
        else:
            own = (transaction.tenant, self._stream, day)
            transaction.execute_many(_EVENTS, ((*own, *row) for row in rows))
        self._bury(forgotten)
        sessions = _sessions_in(kept, self._at)
        self._raise_subject_alarms()
        self._store_sessions(sessions, known)
        self._store_use(sessions)

    def _bury(self, forgotten: Container[str]) -> None:
        """Keep what the chain needs of lines in sessions whose person was forgotten, and nothing else."""
        lines = [line for line in self._new if _session_of(line) in forgotten]
        own, day = (self._transaction.tenant, self._stream), day_of(self._at)
        self._transaction.execute_many(BURIED, [(*own, one.seq, day, one.sum, one.digest, self._at) for one in lines])
        # The row by which they are known stays as long as such lines come.
        self._transaction.execute_many(
            "update journal_session set day = ? where tenant = ? and stream = ? and session = ?",
            [(day, *own, name) for name in sorted({_session_of(line) for line in lines})],
        )

    def _raise_subject_alarms(self) -> None:
        """Raise an alarm for each session with a line that names another subject than the token, whatever its type."""
        details: dict[int | str, str] = {}
        for line in self._new if self._subject is not None else ():
            if line.record.get("subject") in (None, "", self._subject):
                continue
            name = _session_of(line)
            detail = f"session {name[:32]} names another subject than the token, in seq {line.seq}"
            details.setdefault(digest_of(name.encode())[:16], detail)
        _raise_alarms(self._transaction, self._stream, "subject", details, self._at)

    def _store_sessions(self, sessions: dict[str, "_SessionPart"], known: "_KnownSessions") -> None:
        for name, part in sorted(sessions.items()):
            subject = part.subject if self._subject is None else self._subject
            self._transaction.execute(
                _SESSION,
                (
                    *(self._transaction.tenant, self._stream, name, subject, part.client),
                    *(part.started, part.latest, part.ended, part.events, day_of(self._at)),
                ),
            )
            sessions[name] = part._replace(subject=subject or known.get(name, (None, False))[0])

    def _known_sessions(self) -> "_KnownSessions":
        found = {}
        for name in {_session_of(line) for line in self._new}:
            row = self._transaction.row(
                "select subject, forgotten from journal_session where tenant = ? and stream = ? and session = ?",
                (self._transaction.tenant, self._stream, name),
            )
            if row:
                found[name] = (row[0], bool(row[1]))
        return found

    def _store_use(self, sessions: Mapping[str, "_SessionPart"]) -> None:
        """Add the use of skills in the new lines to the counts of their days.

        Keys are sorted, so that two transactions never wait for each other.
        """
        skills: dict[tuple[int, str, str], Counter[str]] = {}
        people: dict[tuple[int, str, str], Counter[str]] = {}
        today = day_of(self._at)
        for line, (kind, skill, tree) in self._acts():
            # A clock that goes ahead must not fill days to come.
            day = min(day_of(_bounded_ms(line.record["ts_ms"])), today)
            part = sessions.get(_session_of(line))
            subject = (part.subject if part else None) or ""
            skills.setdefault((day, skill, tree), Counter())[kind] += 1
            people.setdefault((day, subject, skill), Counter())[kind] += 1
        by_skill, by_person = _in_order(skills), _in_order(people)
        if self._transaction.engine == "postgresql":
            self._add_at_once(by_skill, by_person)
        else:
            self._add_each(by_skill, by_person)

    def _acts(self) -> Iterator[tuple[SentLine, tuple[str, str, str]]]:
        """Yield what each new line adds to the counts; a `SKILL.md` that was read as a file is a load, and no read."""
        loaded: dict[str, tuple[str, str] | None] = {}
        for line in self._new:
            session, kind, file = _session_of(line), line.record["type"], _file_in(line.record)
            if kind == "skill_read" and session not in loaded:
                loaded[session] = self._loaded_before(session)
            is_load = kind == "skill_read" and file is not None and file == loaded[session]
            if (act := _act(line.record)) is not None and not is_load:
                yield line, act
            if kind != _BETWEEN:
                loaded[session] = file if kind == "skill_loaded" else None

    def _loaded_before(self, session: str) -> tuple[str, str] | None:
        """Return the file of the load that the last stored line of a session is; None if it is no load."""
        first = self._new[0].seq
        row = self._transaction.row(
            "select type, line from event where tenant = ? and stream = ? and seq >= ? and seq < ? and session = ? "
            "and type <> ? order by seq desc limit 1",
            (self._transaction.tenant, self._stream, first - _LINES_BEFORE, first, session, _BETWEEN),
        )
        line = stored_line(bytes(row[1])) if row and row[0] == "skill_loaded" else None
        return _file_in(line.record) if isinstance(line, SentLine) else None

    def _add_each(self, by_skill: "_Uses", by_person: "_Uses") -> None:
        tenant = self._transaction.tenant
        for key, counts in by_skill:
            added = self._transaction.execute(_USE_MACHINE, (tenant, *key, self._machine or self._stream))
            self._transaction.execute(_USE_DAY, (tenant, *key, *(counts[name] for name in _COUNTS), max(added, 0)))
        for key, counts in by_person:
            self._transaction.execute(_USE_PERSON, (tenant, *key, *(counts[name] for name in _COUNTS)))

    def _add_at_once(self, by_skill: "_Uses", by_person: "_Uses") -> None:
        """Add all counts with three statements: a statement for each skill takes longer than the lines.

        Other batches wait for the rows of skills that they use too, so this also keeps them waiting for less time.
        """
        if not by_skill:
            return
        tenant, keys = self._transaction.tenant, _columns_of([key for key, _ in by_skill])
        added = self._transaction.rows(_MACHINES_AT_ONCE, (tenant, self._machine or self._stream, *keys))
        new = {tuple(row) for row in added}
        counts = [(*(found[name] for name in _COUNTS), int(key in new)) for key, found in by_skill]
        self._transaction.execute(_DAYS_AT_ONCE, (tenant, *keys, *_columns_of(counts)))
        rows = [(*key, *(found[name] for name in _COUNTS)) for key, found in by_person]
        self._transaction.execute(_PEOPLE_AT_ONCE, (tenant, *_columns_of(rows)))


_KnownSessions = Mapping[str, tuple[str | None, bool]]
"""The sessions of a stream that have a row: whose they are, and whether that person was forgotten."""

_Uses = Sequence[tuple[tuple[int, str, str], Counter[str]]]
"""How often a skill was used: by day, skill and tree, or by day, person and skill."""


def _in_order(uses: Mapping[tuple[int, str, str], Counter[str]]) -> _Uses:
    return sorted(uses.items(), key=lambda item: item[0])


def _columns_of(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


_EVENT = "insert into event (tenant, stream, day, seq, ts, type, session, skill, tree, line) "
_EVENTS = _EVENT + "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_EVENTS_AT_ONCE = (
    _EVENT + "select ?::text, ?::text, ?::integer, seq, ts, type, session, skill, tree, line "
    "from unnest(?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bytea[]) "
    "as new (seq, ts, type, session, skill, tree, line)"
)

BURIED: Final = (
    "insert into tombstone (tenant, stream, seq, day, sum, digest, at) values (?, ?, ?, ?, ?, ?, ?) "
    "on conflict do nothing"
)
"""The statement that keeps what is left of a line that was removed with a person."""

_SESSION = """insert into journal_session
        (tenant, stream, session, subject, client, started, latest, ended, events, day)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (tenant, stream, session) do update set
        subject = coalesce(excluded.subject, journal_session.subject),
        client = coalesce(excluded.client, journal_session.client),
        started = case when excluded.started < journal_session.started
            then excluded.started else journal_session.started end,
        latest = case when excluded.latest > journal_session.latest
            then excluded.latest else journal_session.latest end,
        ended = coalesce(excluded.ended, journal_session.ended),
        events = journal_session.events + excluded.events,
        day = case when excluded.day > journal_session.day then excluded.day else journal_session.day end"""

_DAY = "insert into usage_day (tenant, day, skill, tree, loads, reads, runs, denials, machines) "
_DAY_KNOWN = """ on conflict (tenant, day, skill, tree) do update set
        loads = usage_day.loads + excluded.loads, reads = usage_day.reads + excluded.reads,
        runs = usage_day.runs + excluded.runs, denials = usage_day.denials + excluded.denials,
        machines = usage_day.machines + excluded.machines"""
_USE_DAY = _DAY + "values (?, ?, ?, ?, ?, ?, ?, ?, ?)" + _DAY_KNOWN
_DAYS_AT_ONCE = (
    _DAY + "select ?::text, new.* from unnest(?::integer[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], "
    "?::bigint[], ?::bigint[], ?::bigint[]) as new" + _DAY_KNOWN
)

_MACHINE = "insert into usage_machine (tenant, day, skill, tree, machine) "
_USE_MACHINE = _MACHINE + "values (?, ?, ?, ?, ?) on conflict do nothing"
_MACHINES_AT_ONCE = (
    "with given (tenant, machine) as (values (?::text, ?::text)) "
    + _MACHINE
    + "select given.tenant, new.day, new.skill, new.tree, given.machine "
    "from given, unnest(?::integer[], ?::text[], ?::text[]) as new (day, skill, tree) "
    "on conflict do nothing returning day, skill, tree"
)

_PERSON = "insert into usage_person (tenant, day, subject, skill, loads, reads, runs, denials) "
_PERSON_KNOWN = """ on conflict (tenant, day, subject, skill) do update set
        loads = usage_person.loads + excluded.loads, reads = usage_person.reads + excluded.reads,
        runs = usage_person.runs + excluded.runs, denials = usage_person.denials + excluded.denials"""
_USE_PERSON = _PERSON + "values (?, ?, ?, ?, ?, ?, ?, ?)" + _PERSON_KNOWN
_PEOPLE_AT_ONCE = (
    _PERSON + "select ?::text, new.* from unnest(?::integer[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], "
    "?::bigint[], ?::bigint[]) as new" + _PERSON_KNOWN
)


class _SessionPart(NamedTuple):
    """What some lines say about one session."""

    subject: str | None = None
    client: str | None = None
    started: int = _MOST_MS
    latest: int = 0
    ended: int | None = None
    events: int = 0

    def with_line(self, record: Mapping[str, Any], now: int) -> "_SessionPart":
        """Return the part with one more line, which came at this time."""
        # A clock that goes ahead must not keep a session above all that come later.
        at = min(_bounded_ms(record["ts_ms"]), now)
        part = self._replace(started=min(self.started, at), latest=max(self.latest, at), events=self.events + 1)
        if record["type"] == "session_started":
            subject, client = _text(record.get("subject")), _text(record.get("client"))
            part = part._replace(subject=subject, client=client)
        elif record["type"] == "session_ended":
            part = part._replace(ended=at)
        return part


def _session_of(line: SentLine) -> str:
    return stored_text(line.record["session"])


def _sessions_in(lines: Iterable[SentLine], now: int) -> dict[str, _SessionPart]:
    """Return what some lines, which came at this time, say about their sessions."""
    found: dict[str, _SessionPart] = {}
    for line in lines:
        if line.record["type"] != CONTINUED:
            name = _session_of(line)
            found[name] = (found.get(name) or _SessionPart()).with_line(line.record, now)
    return found


def _columns(record: Mapping[str, Any]) -> tuple[int, str, str, str | None, str | None]:
    """Return time, type, session, skill and tree of a line, in the form that both databases take."""
    skill = None if record["type"].startswith("tool_") else _text(record.get("name"))
    session = stored_text(record["session"])
    return _bounded_ms(record["ts_ms"]), stored_text(record["type"])[:64], session, skill, _text(record.get("tree"))


def _act(record: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return what a line alone adds to the counts: of what, for which skill and tree; None for nothing."""
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


def _file_in(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the skill and the digest of the file in a line; None without them."""
    skill, digest = record.get("name"), record.get("digest")
    return (skill, digest) if isinstance(skill, str) and isinstance(digest, str) else None


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


def raise_alarm(transaction: Transaction, stream: str, kind: str, place: int | str, detail: str, at: int) -> None:
    """Raise an alarm once for a place in a stream: a `seq` or a session; a stream has a bounded number of each kind."""
    _raise_alarms(transaction, stream, kind, {place: detail}, at)


def _raise_alarms(transaction: Transaction, stream: str, kind: str, details: Mapping[int | str, str], at: int) -> None:
    """Raise an alarm of one kind for each place in a stream that has none yet, as `raise_alarm` does.

    They are counted once: that takes longer the more alarms a tenant has.
    """
    if not details:
        return
    row = transaction.row(
        "select count(*) from alarm where tenant = ? and stream = ? and kind = ?", (transaction.tenant, stream, kind)
    )
    room = JOURNAL_ALARMS - (row[0] if row else 0)
    for place, detail in details.items():
        if room <= 0:
            return
        last = "; later ones of this kind are not recorded" if room == 1 else ""
        room -= transaction.execute(
            "insert into alarm (tenant, id, at, stream, kind, detail) values (?, ?, ?, ?, ?, ?) on conflict do nothing",
            (transaction.tenant, f"{stream}:{kind}:{place}", at, stream, kind, detail + last),
        )
