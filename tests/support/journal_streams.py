"""Journals for a team server: the lines of a machine, and the databases that take them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skillshelf.journal.file import Journal, read
from skillshelf.journal.format import NOTHING_BEFORE, canonical, digest_of, seal
from skillshelf.servers.team.database import Database, SqliteDatabase, open_database
from skillshelf.servers.team.values import JOURNAL_READ, JOURNAL_WRITE, Caller

__all__ = ["ADA", "BEN", "NOW", "chain", "database_on", "events", "lines_of", "write_journal"]

NOW = 1_794_960_000_000
"""18 November 2026, midnight in UTC."""

ADA = Caller("ada", "default", frozenset({JOURNAL_WRITE, JOURNAL_READ}))
BEN = Caller("ben", "default", frozenset({JOURNAL_WRITE, JOURNAL_READ}))
_NUMBERS = itertools.count()

Event = tuple[str, Mapping[str, Any]]


def events(number: int, *, session: str = "s1", subject: str | None = None) -> list[dict[str, Any]]:
    """The events of one session that loads, reads, runs and is denied, in turn."""
    started = {"type": "session_started", "client": "probe/1.0", **({"subject": subject} if subject else {})}
    acts: list[dict[str, Any]] = [
        {"type": "skill_loaded", "name": "release-notes", "tree": "t1"},
        {"type": "skill_read", "name": "release-notes", "uri": "skill://release-notes/a.md"},
        {"type": "permission_decided", "tool": "skill_run", "name": "deploy", "verdict": "allow", "tree": "t2"},
        {"type": "permission_decided", "tool": "skill_load", "name": "deploy", "verdict": "deny"},
        {"type": "tool_stdout", "tool_id": "t1", "chunk": "the secret is 4711"},
    ]
    found = [started, *(acts[place % len(acts)] for place in range(number - 1))]
    return [{"session": session, **event} for event in found[:number]]


def chain(records: Sequence[Mapping[str, Any]], *, seq: int = 0, prev: str = NOTHING_BEFORE) -> list[bytes]:
    """The lines of some events, as a journal has them."""
    lines: list[bytes] = []
    for place, record in enumerate(records, seq):
        line, _ = seal({"ts_ms": NOW - 1000 + place, **record, "seq": place, "prev": prev})
        prev = digest_of(line)
        lines.append(line)
    return lines


def write_journal(path: Path, number: int, **options: Any) -> list[bytes]:
    """Append events to a journal; return all its lines."""
    for record in events(number, **options):
        journal = Journal(str(path), session=record["session"], now_ms=lambda: NOW - 1000)
        payload = {name: value for name, value in record.items() if name not in ("session", "type")}
        assert journal.append(record["type"], payload)
    return lines_of(path)


def lines_of(path: Path) -> list[bytes]:
    """The lines of a journal and its parts."""
    return [canonical(line.record) for line in read(str(path)) if line.record is not None]


@contextmanager
def database_on(address: str, tmp_path: Path) -> Iterator[tuple[Database, Caller]]:
    """A database with a tenant that nobody else uses, and a caller of it."""
    if not address:
        database: Database = SqliteDatabase(str(tmp_path / f"team{next(_NUMBERS)}.db"))
    else:
        database = open_database(address)
    tenant = f"t{next(_NUMBERS)}"
    database.add_tenant(tenant)
    try:
        yield database, ADA._replace(tenant=tenant)
    finally:
        database.close()
