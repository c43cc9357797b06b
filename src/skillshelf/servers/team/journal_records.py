"""Read what the journals of a team say: streams, sessions, lines, alarms, and the use of skills by day.

The use comes from the counts of each day alone, never from the lines.
"""

from collections.abc import Container, Sequence
from itertools import accumulate
from typing import Any, Literal

from skillshelf.core.limits import JOURNAL_PAGE_BYTES, JOURNAL_ROWS
from skillshelf.core.records import NamedTuple
from skillshelf.journal.sent_lines import is_reduced
from skillshelf.servers.team.database import Transaction
from skillshelf.servers.team.journal_intake import digest_of_stored

__all__ = [
    "LinePage",
    "UsageView",
    "alarm_groups",
    "alarms",
    "journal_lines",
    "journal_sessions",
    "sessions_by_person",
    "streams",
    "usage",
    "use_by_person",
    "use_by_skill",
]

UsageView = Literal["skill", "day", "person"]

_STREAM = ("stream", "machine", "subject", "origin", "content", "first_seq", "head_seq", "head_sum", "updated_ms")
_SESSION = ("stream", "session", "subject", "client", "started_ms", "latest_ms", "ended_ms", "events")
_ALARM = ("id", "at_ms", "stream", "kind", "detail")
_COUNTS = ("loads", "reads", "runs", "denials")


def _clause(conditions: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return the conditions that have a value, and their values."""
    wanted = {text: value for text, value in conditions.items() if value is not None}
    return "".join(f" and {text}" for text in wanted), list(wanted.values())


def streams(transaction: Transaction, *, subject: str | None = None, after: str | None = None) -> list[dict[str, Any]]:
    """Return the journals by id; `kept_seq` is the first line that is still stored, None if there is none."""
    clause, values = _clause({"subject = ?": subject, "id > ?": after})
    rows = transaction.rows(
        "select id, machine, subject, origin, content, first_seq, head_seq, head_sum, updated, "
        "(select min(seq) from event where event.tenant = stream.tenant and event.stream = stream.id) "
        f"from stream where tenant = ?{clause} order by id limit {JOURNAL_ROWS}",
        (transaction.tenant, *values),
    )
    return [dict(zip((*_STREAM, "kept_seq"), row, strict=True)) for row in rows]


def journal_sessions(
    transaction: Transaction,
    *,
    subject: str | None = None,
    client: str | None = None,
    stream: str | None = None,
    session: str | None = None,
    since: int | None = None,
    until: int | None = None,
    after: tuple[int, str, str] | None = None,
    limit: int = JOURNAL_ROWS,
    start: int = 0,
) -> list[dict[str, Any]]:
    """Return sessions, the one with the latest event first, without the first `start`; times are milliseconds.

    With `after`, the time of the latest event, the stream and the id of a session, those that follow it.
    """
    clause, values = _clause(
        {
            "subject = ?": subject,
            "client = ?": client,
            "stream = ?": stream,
            "session = ?": session,
            "latest >= ?": since,
            "started < ?": until,
        }
    )
    if after is not None:
        latest, before, last = after
        clause += " and (latest < ? or (latest = ? and (stream > ? or (stream = ? and session > ?))))"
        values += [latest, latest, before, before, last]
    rows = transaction.rows(
        "select stream, session, subject, client, started, latest, ended, events from journal_session "
        f"where tenant = ? and forgotten = 0{clause} order by latest desc, stream, session limit ? offset ?",
        (transaction.tenant, *values, min(max(limit, 1), JOURNAL_ROWS), start),
    )
    return [dict(zip(_SESSION, row, strict=True)) for row in rows]


class LinePage(NamedTuple):
    """Lines of a stream in their order; `next` is the `seq` of the last one if there may be more."""

    lines: list[dict[str, Any]]
    next: int | None


def journal_lines(
    transaction: Transaction,
    stream: str,
    *,
    session: str | None = None,
    after: int = -1,
    limit: int = JOURNAL_ROWS,
    size: int = JOURNAL_PAGE_BYTES,
) -> LinePage:
    """Return the lines of a stream after a `seq`, exactly as they were sent, until their `size` is reached.

    A line that was removed with a person has no text, only what the next line needs to verify.
    """
    most = min(max(limit, 1), JOURNAL_ROWS)
    clause, values = _clause({"session = ?": session})
    # The sizes come first, so that no more lines are read than are given.
    sizes: list[tuple[int, int]] = transaction.rows(
        f"select seq, length(line) from event where tenant = ? and stream = ? and seq > ?{clause} order by seq limit ?",
        (transaction.tenant, stream, after, *values, most),
    )
    removed: dict[int, dict[str, Any]] = {}
    if session is None:
        rows = transaction.rows(
            "select seq, sum, digest from tombstone where tenant = ? and stream = ? and seq > ? order by seq limit ?",
            (transaction.tenant, stream, after, most),
        )
        removed = {seq: {"seq": seq, "line": None, "sum": total, "digest": digest} for seq, total, digest in rows}
    there = sorted([*((seq, 0) for seq in removed), *sizes])
    before = accumulate((length for _, length in there), initial=0)
    chosen = [seq for (seq, _), used in zip(there, before, strict=False) if used < size][:most]
    if not chosen:
        return LinePage([], None)
    lines = transaction.rows(
        f"select seq, line from event where tenant = ? and stream = ? and seq > ? and seq <= ?{clause} order by seq",
        (transaction.tenant, stream, after, chosen[-1], *values),
    )
    found = [*(_line(seq, bytes(line)) for seq, line in lines), *(removed[seq] for seq in chosen if seq in removed)]
    is_last = len(chosen) == len(there) < most
    return LinePage(sorted(found, key=lambda line: int(line["seq"])), None if is_last else chosen[-1])


def _line(seq: int, data: bytes) -> dict[str, Any]:
    line: dict[str, Any] = {"seq": seq, "line": data.decode("utf-8", "replace")}
    return {**line, "digest": digest_of_stored(data)} if is_reduced(data) else line


def alarms(
    transaction: Transaction,
    *,
    stream: str | None = None,
    kind: str | None = None,
    after: tuple[int, str] | None = None,
    limit: int = JOURNAL_ROWS,
) -> list[dict[str, Any]]:
    """Return the alarms, the latest first; `after` the time and id of one, those that follow it."""
    clause, values = _clause({"stream = ?": stream, "kind = ?": kind})
    if after is not None:
        clause, values = f"{clause} and (at < ? or (at = ? and id > ?))", [*values, after[0], *after]
    rows = transaction.rows(
        f"select id, at, stream, kind, detail from alarm where tenant = ?{clause} order by at desc, id limit ?",
        (transaction.tenant, *values, min(max(limit, 1), JOURNAL_ROWS)),
    )
    return [dict(zip(_ALARM, row, strict=True)) for row in rows]


def alarm_groups(transaction: Transaction) -> list[dict[str, Any]]:
    """Return how many alarms of each kind each stream has, with the time of the latest and one of the texts.

    The latest come first.
    """
    rows = transaction.rows(
        "select stream, kind, count(*), max(at), max(detail) from alarm where tenant = ? group by stream, kind "
        f"order by 4 desc, 1, 2 limit {JOURNAL_ROWS}",
        (transaction.tenant,),
    )
    return [dict(zip(("stream", "kind", "count", "at_ms", "detail"), row, strict=True)) for row in rows]


def usage(
    transaction: Transaction,
    *,
    by: UsageView = "skill",
    since: int | None = None,
    until: int | None = None,
    skill: str | None = None,
    names: Container[str] | None = None,
    limit: int = JOURNAL_ROWS,
    start: int = 0,
) -> list[dict[str, Any]]:
    """Return the use of skills in days such as 20261117, from `since` on and before `until`, most used first.

    With `names`, only the use of these skills. The first `start` rows are left out. `machines` are those of the day
    with the most.
    """
    table, keys = ("usage_person", ("subject", "skill")) if by == "person" else ("usage_day", _keys(by))
    clause, values = _clause({"day >= ?": since, "day < ?": until, "skill = ?": skill})
    machines = ", max(machines)" if table == "usage_day" else ""
    sums = ", ".join(f"cast(sum({name}) as bigint)" for name in _COUNTS)
    order = "1 desc" if by == "day" else f"{len(keys) + 1} desc, {', '.join(keys)}"
    most = min(max(limit, 1), JOURNAL_ROWS)
    # No database of ours can choose by a set of any size, so all rows are read then.
    end = (" limit ? offset ?", (most, start)) if names is None else ("", ())
    rows = transaction.rows(
        f"select {', '.join(keys)}, {sums}{machines}, min(day), max(day) from {table} "
        f"where tenant = ?{clause} group by {', '.join(keys)} order by {order}{end[0]}",
        (transaction.tenant, *values, *end[1]),
    )
    members = (*keys, *_COUNTS, *(("machines",) if machines else ()), "first_day", "last_day")
    found = (dict(zip(members, row, strict=True)) for row in rows)
    return list(found) if names is None else [row for row in found if row["skill"] in names][start : start + most]


_USES = "loads + reads + runs"
"""What is a use: the text of a skill, one of its files, or the run of a script."""


def use_by_skill(transaction: Transaction, skill: str | None = None) -> list[tuple[str, int, int]]:
    """Return every skill that was used or denied, or one, with its uses and denials in all days, most used first."""
    clause, values = _clause({"skill = ?": skill})
    rows = transaction.rows(
        f"select skill, cast(sum({_USES}) as bigint), cast(sum(denials) as bigint) from usage_day "
        f"where tenant = ?{clause} group by skill order by 2 desc, 1",
        (transaction.tenant, *values),
    )
    return [(skill, int(uses), int(denials)) for skill, uses, denials in rows]


def use_by_person(transaction: Transaction, since: int) -> list[tuple[str, int, int, int]]:
    """Return every person with the uses, the skills used and the denials from a day on, the busiest first."""
    # Skills are grouped first: to count distinct ones, PostgreSQL sorts all rows.
    rows = transaction.rows(
        "select subject, cast(sum(uses) as bigint), cast(sum(case when uses > 0 then 1 else 0 end) as bigint), "
        f"cast(sum(denials) as bigint) from (select subject, skill, sum({_USES}) as uses, sum(denials) as denials "
        "from usage_person where tenant = ? and day >= ? group by subject, skill) as used "
        "group by subject order by 2 desc, 1",
        (transaction.tenant, since),
    )
    return [(subject, int(uses), int(skills), int(denials)) for subject, uses, skills, denials in rows]


def sessions_by_person(transaction: Transaction, since: int = 0) -> dict[str, tuple[int, int]]:
    """Return the number of sessions of each person with lines from a day on, and of the events in them."""
    rows = transaction.rows(
        "select subject, count(*), cast(sum(events) as bigint) from journal_session "
        "where tenant = ? and forgotten = 0 and day >= ? group by subject",
        (transaction.tenant, since),
    )
    return {subject: (int(sessions), int(events)) for subject, sessions, events in rows}


def _keys(by: UsageView) -> Sequence[str]:
    return ("day",) if by == "day" else ("skill", "tree")
