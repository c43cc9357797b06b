"""Remove journals from a team's database: days that are no longer kept, and all that a person did.

The head of each stream stays, so a machine goes on where it was. What a person did leaves a row for each line with its
`seq`, `sum` and digest: the lines after it still verify.
"""

import re
import threading
from collections.abc import Callable

from skillshelf.core.console import note
from skillshelf.core.limits import JOURNAL_BATCH_LINES, RETENTION_LOCK_SECONDS, RETENTION_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural
from skillshelf.errors import ConfigurationError
from skillshelf.journal.sent_lines import SentLine, stored_line
from skillshelf.servers.team.database import Database, SqliteDatabase, Transaction, now_ms
from skillshelf.servers.team.journal_intake import FORGOTTEN, MACHINES, SERVER, head_of
from skillshelf.servers.team.journal_records import journal_lines
from skillshelf.servers.team.journal_rows import BURIED, day_of, stored_text
from skillshelf.servers.team.migrations import RETAINED_TABLES
from skillshelf.servers.team.values import DEFAULT_TENANT, TeamError, checked_subject

__all__ = ["DailyRetention", "Forgotten", "Removed", "apply_retention", "forget", "kept_days", "remove_days"]

_DAY_MS = 24 * 60 * 60 * 1000
_UNITS = {"d": 1, "w": 7, "y": 365}


def kept_days(text: str) -> int:
    """Return the days in a text such as `90d`, `12w` or `2y`."""
    found = re.fullmatch(r"([0-9]{1,5})([dwy])", text)
    if not found or not int(found[1]):
        raise ConfigurationError(f"--keep-lines needs a time such as 90d, 12w or 2y, not {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def first_kept(days: int, now: int | None = None) -> int:
    """Return the first day that is kept, as a number; today is kept, and that many days before it."""
    return day_of((now_ms() if now is None else now) - days * _DAY_MS)


class Removed(NamedTuple):
    """What retention removed: whole days of all tenants in PostgreSQL, else lines."""

    days: int = 0
    lines: int = 0


def apply_retention(database: Database, days: int, *, tenant: str | None = None, now: int | None = None) -> Removed:
    """Remove what came before some days, of one tenant or of all.

    PostgreSQL drops whole partitions, and with them the sessions and tombstones of those days.
    """
    if tenant is not None:
        return Removed(lines=remove_days(database, tenant, days, now=now))
    if isinstance(database, SqliteDatabase):
        return Removed(lines=sum(remove_days(database, one, days, now=now) for one in database.tenants()))
    with database.transaction(DEFAULT_TENANT) as transaction:
        # While a backup reads, a day cannot be dropped, and everybody who stores lines waits behind the attempt.
        transaction.execute(f"set local lock_timeout = '{RETENTION_LOCK_SECONDS}s'")
        row = transaction.row("select drop_event_days(?)", (first_kept(days, now),))
    return Removed(days=int(row[0]) if row else 0)


def remove_days(database: Database, tenant: str, days: int, *, now: int | None = None) -> int:
    """Remove the lines of a tenant that came before some days, and its sessions without a line that came later.

    Return the number of lines. The counts of use stay. Each day is a transaction of its own, the oldest first: others
    write in between, and the log of SQLite needs room for one day.
    """
    lines = 0
    for day in _days_before(database, tenant, first_kept(days, now)):
        with database.transaction(tenant) as transaction:
            for table in RETAINED_TABLES:
                transaction.execute(f"delete from {table} where tenant = ? and day = ?", (tenant, day))
            lines += transaction.execute("delete from event where tenant = ? and day = ?", (tenant, day))
    return lines


def _days_before(database: Database, tenant: str, before: int) -> list[int]:
    """Return the days before one of which a tenant has anything that retention removes, the oldest first."""
    tables = ("event", *RETAINED_TABLES)
    query = " union ".join(f"select day from {table} where tenant = ? and day < ?" for table in tables)
    with database.transaction(tenant, readonly=True) as transaction:
        return sorted(day for (day,) in transaction.rows(query, (tenant, before) * len(tables)))


class DailyRetention:
    """Applies retention in a thread, once a day; of several servers one does it at a time.

    `seconds` is the time between two looks at the day, and until another try after a failure.
    """

    def __init__(
        self, database: Database, days: int, *, seconds: float = RETENTION_SECONDS, clock: Callable[[], int] = now_ms
    ) -> None:
        self._database = database
        self._days = days
        self._seconds = seconds
        self._clock = clock
        self._done: int | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Begin: the first time at once."""
        self._thread.start()

    def close(self) -> None:
        """Stop; a removal that runs may end first."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self.apply_if_due()
            except TeamError as error:
                note(f"old lines of journals were not removed, and are tried again: {error}")
            if self._stopped.wait(self._seconds):
                return

    def apply_if_due(self) -> Removed | None:
        """Remove what is too old if that was not done today; return None if it was, or another server does it now."""
        now = self._clock()
        if self._done == day_of(now):
            return None
        with self._database.alone("retention") as held:
            if not held:
                return None
            removed = apply_retention(self._database, self._days, now=now)
        self._done = day_of(now)
        if removed != Removed():
            what = f"{plural(removed.days, 'day')} of" if removed.days else plural(removed.lines, "line") + " of"
            note(f"removed {what} journals that are older than {plural(self._days, 'day')}")
        return removed


# A person -----------------------------------------------------------------------------------------


class Forgotten(NamedTuple):
    """What was removed with a person: streams, lines, and in how many sessions and counts the name was."""

    streams: int
    lines: int
    records: int


def forget(database: Database, tenant: str, subject: str, *, now: int | None = None) -> Forgotten:
    """Remove what the journals of a tenant know about a person; it can be run again after it was stopped.

    Lines become rows with `seq`, `sum` and digest, and so do later ones of a session that a server still serves, and
    sessions in the journals of others that name the person. The counts of use stay, without the name. Raise
    `ConfigurationError` for what is no name: the counts of all who were forgotten have an empty one.
    """
    checked_subject(subject.strip())
    at = now_ms() if now is None else now
    with database.transaction(tenant) as transaction:
        # First, and with the locks of the streams: from here on nobody can push to them, and what a batch adds that is
        # stored now is removed, too.
        transaction.execute(
            "update stream set origin = ? where tenant = ? and subject = ? and origin = ?",
            (FORGOTTEN, tenant, subject, MACHINES),
        )
        _remove_machines(transaction, subject)
        own = transaction.rows(
            "select id from stream where tenant = ? and subject = ? and origin = ?", (tenant, subject, FORGOTTEN)
        )
        served = _mark_served(transaction, subject)
    lines = 0
    for (stream,) in own:
        lines += _bury_all(database, tenant, stream, None, at)
    named = _sessions_naming(database, tenant, subject)
    with database.transaction(tenant) as transaction:
        # Once the line with the name is gone, only this mark tells another run whose session it is.
        transaction.execute_many(
            "update journal_session set subject = ?, forgotten = 1 where tenant = ? and stream = ? and session = ?",
            [(subject, tenant, stream, session) for stream, session in named],
        )
    for stream, session in [*served, *named]:
        lines += _bury_all(database, tenant, stream, session, at)
    with database.transaction(tenant) as transaction:
        records = _remove_name(transaction, tenant, subject)
    if isinstance(database, SqliteDatabase):
        database.empty_log(tenant)
    return Forgotten(len(own), lines, records)


def _remove_machines(transaction: Transaction, subject: str) -> None:
    """Remove which machines of a person used what, unless somebody else sends journals from them, too.

    They are counted already, and nothing more can come from them.
    """
    machines = "select case when machine = '' then id else machine end from stream where tenant = ? and subject"
    tenant = transaction.tenant
    transaction.execute(
        "delete from usage_machine "
        f"where tenant = ? and machine in ({machines} = ?) and machine not in ({machines} <> ?)",
        (tenant, tenant, subject, tenant, subject),
    )
    transaction.execute(
        "update stream set machine = '' where tenant = ? and subject = ? and origin = ?", (tenant, subject, FORGOTTEN)
    )


def _mark_served(transaction: Transaction, subject: str) -> list[tuple[str, str]]:
    """Mark the sessions of a person in the streams of servers, and return them: more lines of them may come."""
    tenant = transaction.tenant
    found = transaction.rows(
        "select distinct stream from journal_session where tenant = ? and subject = ?", (tenant, subject)
    )
    for (stream,) in sorted(found):
        # The lock of the stream: a batch that is stored now is buried, and the next one knows the mark.
        head = head_of(transaction, stream, locked=True)
        if head is not None and head.origin == SERVER:
            transaction.execute(
                "update journal_session set forgotten = 1 where tenant = ? and stream = ? and subject = ?",
                (tenant, stream, subject),
            )
    rows = transaction.rows(
        "select stream, session from journal_session where tenant = ? and subject = ? and forgotten = 1",
        (tenant, subject),
    )
    return [(stream, session) for stream, session in rows]


def _sessions_naming(database: Database, tenant: str, subject: str) -> list[tuple[str, str]]:
    """Return the sessions in journals that others sent with a line that names a person: such journals have an alarm."""
    with database.transaction(tenant, readonly=True) as transaction:
        streams = transaction.rows("select distinct stream from alarm where tenant = ? and kind = 'subject'", (tenant,))
    found = set()
    for (stream,) in streams:
        after: int | None = -1
        while after is not None:
            with database.transaction(tenant, readonly=True) as transaction:
                rows, after = journal_lines(transaction, stream, after=after)
            for row in rows:
                line = stored_line((row["line"] or "").encode())
                if isinstance(line, SentLine) and line.record.get("subject") == subject:
                    found.add((stream, stored_text(line.record["session"])))
    return sorted(found)


def _bury_all(database: Database, tenant: str, stream: str, session: str | None, at: int) -> int:
    """Replace the lines of a stream, or of one session in it, in transactions of a bounded size."""
    count = 0
    while True:
        with database.transaction(tenant) as transaction:
            found = _bury(transaction, stream, session, at)
        count += found
        if found < JOURNAL_BATCH_LINES:
            return count


def _bury(transaction: Transaction, stream: str, session: str | None, at: int) -> int:
    tenant = transaction.tenant
    clause, more = (" and session = ?", (session,)) if session is not None else ("", ())
    rows = transaction.rows(
        f"select seq, day, line from event where tenant = ? and stream = ?{clause} order by seq limit ?",
        (tenant, stream, *more, JOURNAL_BATCH_LINES),
    )
    buried = []
    for seq, day, data in rows:
        line = stored_line(bytes(data))
        total, digest = (line.sum, line.digest) if isinstance(line, SentLine) else ("", "")
        buried.append((tenant, stream, seq, day, total, digest, at))
    transaction.execute_many(BURIED, buried)
    if rows:
        # At once: a statement for each line looks for it in the partition of every day.
        transaction.execute(
            f"delete from event where tenant = ? and stream = ? and seq <= ?{clause}",
            (tenant, stream, rows[-1][0], *more),
        )
    return len(rows)


def _remove_name(transaction: Transaction, tenant: str, subject: str) -> int:
    """Remove the name of a person from sessions, streams and counts; return in how many sessions and counts it was."""
    served = "stream in (select id from stream where tenant = ? and origin = ?)"
    sessions = transaction.execute(
        "update journal_session set subject = null, client = null, started = 0, latest = 0, ended = null, events = 0 "
        f"where tenant = ? and subject = ? and forgotten = 1 and {served}",
        (tenant, subject, tenant, SERVER),
    )
    # Not one that began meanwhile: another run finds its lines by this row alone.
    sessions += transaction.execute(
        f"delete from journal_session where tenant = ? and not {served} "
        "and (forgotten = 1 or (subject = ? and stream in (select id from stream where tenant = ? and origin = ?)))",
        (tenant, tenant, SERVER, subject, tenant, FORGOTTEN),
    )
    transaction.execute(
        "update stream set subject = '' where tenant = ? and subject = ? and origin = ?", (tenant, subject, FORGOTTEN)
    )
    transaction.execute(
        "insert into usage_person (tenant, day, subject, skill, loads, reads, runs, denials) "
        "select tenant, day, '', skill, loads, reads, runs, denials from usage_person "
        "where tenant = ? and subject = ? "
        "on conflict (tenant, day, subject, skill) do update set "
        "loads = usage_person.loads + excluded.loads, reads = usage_person.reads + excluded.reads, "
        "runs = usage_person.runs + excluded.runs, denials = usage_person.denials + excluded.denials",
        (tenant, subject),
    )
    counts = transaction.execute("delete from usage_person where tenant = ? and subject = ?", (tenant, subject))
    return sessions + counts
