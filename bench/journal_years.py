"""Store the journals of a team for months in PostgreSQL, then measure pages, size, retention and forgetting a person.

PYTHONPATH=src:bench python bench/journal_years.py FOLDER [--events 5000000] [--days 100] [--writers 2]

The lines go through the functions that the route for journals calls, which take the day as an argument; the route
itself would store all of them today. FOLDER keeps the database, so a second run measures what is stored already.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import random
import sys
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from serve_fixtures import TeamCluster, TeamProcess, token_of

from skillshelf.journal.format import NOTHING_BEFORE, digest_of, seal
from skillshelf.servers.team.database import Database, open_database
from skillshelf.servers.team.journal_intake import digest_of_stored, lines_in, take
from skillshelf.servers.team.journal_records import journal_lines
from skillshelf.servers.team.journal_removal import apply_retention, forget
from skillshelf.servers.team.journal_rows import day_of
from skillshelf.servers.team.values import JOURNAL_WRITE, Caller

BATCH = 500
MACHINES = 100
PEOPLE = 50
SKILLS = 1000
SESSION_LINES = 50
DAY_MS = 24 * 60 * 60 * 1000
KINDS = ("skill_loaded", "skill_read", "permission_decided", "tool_started", "tool_ended")
PAGES = (
    *("/usage", "/journal", "/api/v1/usage", "/api/v1/usage?by=day", "/api/v1/usage?by=person"),
    *("/api/v1/journal/sessions", "/api/v1/journal/streams"),
)


# Lines --------------------------------------------------------------------------------------------


class MachineJournal:
    """The journal of one machine, which goes on from day to day; few skills are used often, and many seldom."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.stream = sha256(f"machine {number}".encode()).hexdigest()[:32]
        self.caller = Caller(f"person{number % PEOPLE}", "default", frozenset({JOURNAL_WRITE}))
        self._chance = random.Random(number)
        self._weights = list(accumulate(1 / place for place in range(1, SKILLS + 1)))
        self._seq, self._prev = 0, NOTHING_BEFORE

    def batch(self, at: int, uses: Counter[tuple[str, str]]) -> list[bytes]:
        """Return the next lines, made at a time, and count what they use of which skill."""
        return [self._line(at + place, uses) for place in range(BATCH)]

    def _line(self, at: int, uses: Counter[tuple[str, str]]) -> bytes:
        place = self._seq % SESSION_LINES
        kind = "session_started" if not place else KINDS[place % 5]
        number = bisect(self._weights, self._chance.random() * self._weights[-1])
        name = f"skill-{number}"
        tree = f"sha256:{sha256(name.encode()).hexdigest()}"
        record: dict[str, Any] = {"type": kind, "session": f"s{self._seq // SESSION_LINES:08x}", "ts_ms": at}
        if kind == "permission_decided":
            record |= {"tool": "skill_run", "verdict": "allow"}
        if kind != "session_started":
            record |= {"name": name, "tree": tree}
        line, _ = seal({**record, "seq": self._seq, "prev": self._prev})
        self._seq, self._prev = self._seq + 1, digest_of(line)
        if kind in ("skill_loaded", "skill_read", "permission_decided"):
            uses[name, kind] += 1
        return line


def moments(days: int, batches: int) -> Iterator[int]:
    """Yield the time of each round of batches, from the first day to today."""
    today = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS
    for number in range(batches):
        yield today - (days - 1 - number * days // batches) * DAY_MS


# Storing ------------------------------------------------------------------------------------------


def write(address: str, machines: range, days: int, batches: int) -> tuple[int, float, float, Counter[tuple[str, str]]]:
    """Store the journals of some machines; return lines, CPU seconds of storing, wall seconds, and what they use."""
    journals, uses = [MachineJournal(number) for number in machines], Counter[tuple[str, str]]()
    stored, spent, began = 0, 0.0, time.perf_counter()
    with closing(open_database(address)) as database:
        for round_number, at in enumerate(moments(days, batches)):
            for journal in journals:
                body = gzip.compress(b"".join(line + b"\n" for line in journal.batch(at, uses)), 1)
                cpu = time.process_time()
                found = take(
                    *(database, journal.caller, journal.stream, lines_in(body, "gzip")),
                    machine=f"machine{journal.number}",
                    now=at + 1000,
                )
                spent += time.process_time() - cpu
                assert found.problem is None, found
                stored += found.stored
            if round_number % max(1, batches // 10) == 0 and not machines.start:
                say(f"  day {day_of(at)}: {stored} lines of the first writer")
    return stored, spent, time.perf_counter() - began, uses


def write_all(address: str, cluster: TeamCluster, given: argparse.Namespace) -> Counter[tuple[str, str]]:
    """Store everything with some processes at once; print what it took, and return what was used."""
    batches = max(1, given.events // (BATCH * MACHINES))
    each = MACHINES // given.writers
    parts = [(address, range(n * each, (n + 1) * each), given.days, batches) for n in range(given.writers)]
    before, began = cluster.cpu, time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(given.writers) as pool:
        done = pool.starmap(write, parts)
    wall, database = time.perf_counter() - began, cluster.cpu - before
    lines = sum(one[0] for one in done)
    spent = sum(one[1] for one in done)
    say(
        f"stored {lines} lines in {wall:.0f} s = {lines / wall:.0f} a second with {given.writers} writers, "
        f"{spent / lines * 1e6:.0f} us CPU of the storing process and {database / lines * 1e6:.0f} us of PostgreSQL a "
        "line (making the lines not counted in the first)"
    )
    return sum((one[3] for one in done), Counter())


# Measuring ----------------------------------------------------------------------------------------


def asked(address: str, question: str) -> Any:
    """Return the first value of the answer to a question of the owner of the database."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
    return row[0] if row else None


def sizes(owner: str) -> None:
    """Print how much the tables take."""
    lines = asked(owner, "select count(*) from skillshelf.event")
    of_events = "pg_inherits i where i.inhparent = 'skillshelf.event'::regclass"
    total = asked(owner, f"select sum(pg_total_relation_size(i.inhrelid)) from {of_events}")
    indexes = asked(owner, f"select sum(pg_indexes_size(i.inhrelid)) from {of_events}")
    days = asked(owner, f"select count(*) from {of_events}")
    if not lines:
        return
    say(
        f"{lines} lines in {days} days take {total / 2**20:.0f} MiB: {total / lines:.0f} bytes a line, of which "
        f"{indexes / lines:.0f} are indexes"
    )
    for table in ("usage_day", "usage_person", "usage_machine", "journal_session", "tombstone", "stream"):
        size = asked(owner, f"select pg_total_relation_size('skillshelf.{table}')")
        rows = asked(owner, f"select count(*) from skillshelf.{table}")
        say(f"  {table}: {rows} rows, {size / 2**20:.1f} MiB, {size / lines:.1f} bytes a line")


def pages(server: TeamProcess, cluster: TeamCluster, token: str) -> None:
    """Print what each page about use costs the server and the database."""
    for path in PAGES:
        first = server.ask("GET", path, token)
        before, of_database = server.cpu, cluster.cpu
        replies = [server.ask("GET", path, token) for _ in range(5)]
        say(
            f"page {path:28} status {first.status}, {(server.cpu - before) / 5 * 1e3:.1f} ms server CPU, "
            f"{(cluster.cpu - of_database) / 5 * 1e3:.0f} ms database CPU, "
            f"{min(one.seconds for one in replies) * 1e3:.0f} ms, {len(first.body) / 1024:.0f} KiB"
        )


def timed(what: str, cluster: TeamCluster, act: Callable[[], object]) -> None:
    """Do something, and print what it returned and took."""
    began, cpu, database = time.perf_counter(), time.process_time(), cluster.cpu
    found = act()
    say(
        f"{what}: {found}, {time.perf_counter() - began:.1f} s, {time.process_time() - cpu:.2f} s CPU here, "
        f"{cluster.cpu - database:.2f} s CPU of PostgreSQL"
    )


def check_top(server: TeamProcess, token: str, uses: Counter[tuple[str, str]]) -> None:
    """Compare the counts of the most used skills with those of the lines that were made."""
    rows = server.ask("GET", "/api/v1/usage", token).json["usage"]
    wrong = [
        row["skill"]
        for row in rows
        if (row["loads"], row["reads"], row["runs"])
        != tuple(uses[row["skill"], kind] for kind in ("skill_loaded", "skill_read", "permission_decided"))
    ]
    by_loads = sorted((row["loads"] for row in rows), reverse=True)
    is_sorted = by_loads == [row["loads"] for row in rows]
    say(f"top list: {len(rows)} skills, {len(wrong)} with a wrong count, sorted by loads: {is_sorted}")


def verified(database: Database, stream: str) -> str:
    """Read a stream whole, lines and what stands for removed ones, and follow its chain."""
    after, prev, lines, buried = -1, None, 0, 0
    while True:
        with database.transaction("default", readonly=True) as transaction:
            found = journal_lines(transaction, stream, after=after).lines
        if not found:
            return f"{lines} lines and {buried} removed ones, each continues the one before"
        for one in found:
            digest = one.get("digest") or digest_of_stored(one["line"].encode())
            if one["line"] is not None and prev is not None and f'"prev":"{prev}"' not in one["line"]:
                raise SystemExit(f"seq {one['seq']} does not continue the chain")
            lines, buried = lines + (one["line"] is not None), buried + (one["line"] is None)
            prev, after = digest, one["seq"]


def push_again(database: Database, days: int, batches: int) -> str:
    """Send the whole journal of one machine again, and return how many lines were stored."""
    journal, stored, problems = MachineJournal(MACHINES - 1), 0, 0
    for at in moments(days, batches):
        found = take(database, journal.caller, journal.stream, journal.batch(at, Counter()), machine="again")
        stored, problems = stored + found.stored, problems + (found.problem is not None)
    return f"{stored} of {batches * BATCH} lines stored, {problems} problems"


def say(text: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Store, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--writers", type=int, default=2)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with TeamCluster(given.folder / "pg") as cluster:
        known = given.folder / "address"
        if not known.exists():
            known.write_text(cluster.new_database())
        address = known.read_text()
        owner = cluster.owner_of(address)
        token = token_of(address, "reader", "admin")
        with TeamProcess(given.folder / "home", address, given.folder / "blobs") as server:
            server.wait_until_ready()
            is_new = not asked(owner, "select count(*) from skillshelf.stream")
            uses = write_all(address, cluster, given) if is_new else Counter()
            sizes(owner)
            pages(server, cluster, token)
            if is_new:
                check_top(server, token, uses)
        with closing(open_database(address)) as database:
            remove(database, cluster, given)
        sizes(owner)
    return 0


def remove(database: Database, cluster: TeamCluster, given: argparse.Namespace) -> None:
    """Send lines again, remove a person and a month, and verify what is left."""
    batches = max(1, given.events // (BATCH * MACHINES))
    timed("one machine sends all again", cluster, lambda: push_again(database, given.days, batches))
    timed("one person is forgotten", cluster, lambda: forget(database, "default", "person7"))
    streams = [MachineJournal(number).stream for number in (7, 8)]
    for stream in streams:
        timed("a stream is verified", cluster, partial(verified, database, stream))
    timed("the oldest month is removed", cluster, lambda: apply_retention(database, given.days - 30))
    for stream in streams:
        timed("a stream is verified", cluster, partial(verified, database, stream))
    timed("one machine sends all again", cluster, lambda: push_again(database, given.days, batches))


if __name__ == "__main__":
    sys.exit(main())
