"""Retention: old lines of all tenants go every day, with what belongs to them, and one server at a time does it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.journal_streams import ADA, NOW, chain, events
from support.needs import needs
from support.postgres import PASSWORD, PostgresCluster
from support.published_servers import serving
from support.trees import Machine
from support.waiting import wait_for

from skillshelf.servers.team.database import Database, SqliteDatabase, migrate_postgres, open_database
from skillshelf.servers.team.journal_intake import SERVER, take
from skillshelf.servers.team.journal_removal import DailyRetention, Removed, apply_retention, forget
from skillshelf.servers.team.migrations import MIGRATIONS

DAY_MS = 24 * 60 * 60 * 1000
TENANTS = ("default", "acme", "globex")


@contextmanager
def owned_database(cluster: PostgresCluster) -> Iterator[str]:
    """A database whose owner is no superuser, so that row-level security holds for its functions."""
    import psycopg

    with psycopg.connect(cluster.address("postgres"), autocommit=True) as connection:
        connection.execute("create role keeper login createrole")
        connection.execute("create database kept owner keeper")
        # Another test of this cluster made the role; its owner may use it.
        if connection.execute("select 1 from pg_roles where rolname = 'skillshelf_app'").fetchone():
            connection.execute("grant skillshelf_app to keeper with admin option, inherit false, set false")
        try:
            yield cluster.address("kept", "keeper")
        finally:
            connection.execute("drop database kept with (force)")
            connection.execute("drop owned by keeper cascade")
            connection.execute("drop role keeper")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with lines, sessions and tombstones of two days in every tenant."""
    if request.param == "sqlite":
        with closing(SqliteDatabase(str(tmp_path / "team.sqlite"))) as database:
            fill(database)
            yield database
        return
    with owned_database(request.getfixturevalue("cluster")) as owner:
        address = migrate_postgres(owner, PASSWORD).address
        with closing(open_database(address)) as database:
            fill(database)
            yield database


def fill(database: Database) -> None:
    for number, tenant in enumerate(TENANTS):
        database.add_tenant(tenant)
        caller = ADA._replace(tenant=tenant)
        for day in (0, 5):
            then = [{"ts_ms": NOW + day * DAY_MS, **one} for one in events(4, session=f"s{day}", subject="eve")]
            take(database, caller, f"{number}{day}" * 8, chain(then), origin=SERVER, now=NOW + day * DAY_MS)
        old = [{"ts_ms": NOW, **one} for one in events(2, session="gone", subject="bob")]
        take(database, caller, f"{number}9" * 8, chain(old), origin=SERVER, now=NOW)
        assert forget(database, tenant, "bob").lines == 2


def left(database: Database, tenant: str) -> dict[str, int]:
    with database.transaction(tenant, readonly=True) as transaction:
        return {
            table: transaction.rows(f"select count(*) from {table}")[0][0]
            for table in ("event", "journal_session", "tombstone", "usage_day", "usage_machine")
        }


def test_retention_removes_old_lines_sessions_and_tombstones_of_every_tenant(filled: Database) -> None:
    before = {tenant: left(filled, tenant) for tenant in TENANTS}

    removed = apply_retention(filled, 2, now=NOW + 5 * DAY_MS)

    assert removed == (Removed(lines=12) if filled.engine == "sqlite" else Removed(days=1))
    for tenant in TENANTS:
        kept = {"usage_day": 6}
        assert before[tenant] == {"event": 8, "journal_session": 3, "tombstone": 2, "usage_machine": 7, **kept}
        assert left(filled, tenant) == {"event": 4, "journal_session": 1, "tombstone": 0, "usage_machine": 3, **kept}
    assert apply_retention(filled, 2, now=NOW + 5 * DAY_MS) == Removed()


def test_retention_of_one_tenant_leaves_the_others(filled: Database) -> None:
    assert apply_retention(filled, 2, tenant="acme", now=NOW + 5 * DAY_MS) == Removed(lines=4)

    assert [left(filled, tenant)["event"] for tenant in TENANTS] == [8, 4, 8]


def test_retention_of_sqlite_needs_room_for_the_days_one_by_one(tmp_path: Path) -> None:
    path, day_bytes = tmp_path / "team.sqlite", 4_000_000
    with closing(SqliteDatabase(str(path))) as database:
        for day in range(12):
            with database.transaction("default") as transaction:
                transaction.execute_many(
                    "insert into event (tenant, stream, seq, day, ts, type, session, line) "
                    "values ('default', 'aa', ?, ?, 1, 'x', 's', ?)",
                    ((100 * day + place, 20261101 + day, b"x" * (day_bytes // 100)) for place in range(100)),
                )
        database.empty_log("default")

        assert apply_retention(database, 1, now=NOW).lines == 1200

        assert path.with_name("team.sqlite-wal").stat().st_size < 4 * day_bytes


def test_a_server_applies_it_once_a_day_and_not_while_another_one_does(filled: Database) -> None:
    now = NOW + 5 * DAY_MS
    retention = DailyRetention(filled, 2, clock=lambda: now)

    with filled.alone("retention") as held:
        assert held
        assert retention.apply_if_due() is None
    assert retention.apply_if_due() not in (None, Removed())
    assert retention.apply_if_due() is None
    now += 3 * DAY_MS
    assert retention.apply_if_due() not in (None, Removed())
    assert left(filled, "acme")["event"] == 0


def test_the_thread_goes_on_after_a_failure_and_ends_when_it_is_told(
    filled: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    tries: list[int] = []
    again = threading.Event()

    class Failing(DailyRetention):
        def apply_if_due(self) -> Removed | None:
            from skillshelf.servers.team.values import DatabaseAway

            tries.append(1)
            if len(tries) == 1:
                raise DatabaseAway("the database cannot be used")
            again.set()
            return super().apply_if_due()

    retention = Failing(filled, 2, seconds=0.01, clock=lambda: NOW + 5 * DAY_MS)
    retention.start()
    assert again.wait(60)
    wait_for(lambda: True if left(filled, "acme")["event"] == 4 else None)
    retention.close()

    assert "were not removed, and are tried again: the database cannot be used" in capsys.readouterr().err


@pytest.mark.slow
def test_outside_of_retention_its_policies_show_nothing(cluster: PostgresCluster) -> None:
    import psycopg

    with owned_database(cluster) as owner:
        address = migrate_postgres(owner, PASSWORD).address
        with closing(open_database(address)) as database:
            fill(database)
            with database.transaction("globex") as transaction:
                # The server's own role gains nothing by the switch of the function.
                transaction.row("select set_config('skillshelf.retention', 'on', true)")
                rows: list[Any] = transaction.rows("select distinct tenant from journal_session")
        with psycopg.connect(owner, autocommit=True) as connection:
            seen = connection.execute("select count(*) from skillshelf.journal_session").fetchone()

    assert rows == [("globex",)]
    assert seen == (0,)


@pytest.mark.slow
def test_a_database_of_the_first_version_gets_it_and_no_policy_names_a_role(cluster: PostgresCluster) -> None:
    import psycopg

    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD, migrations=MIGRATIONS[:1])
    done = migrate_postgres(owner)
    with closing(open_database(done.address)) as database:
        fill(database)
        assert apply_retention(database, 2, now=NOW + 5 * DAY_MS) == Removed(days=1)
    with psycopg.connect(owner) as connection:
        roles = connection.execute("select distinct roles::text from pg_policies").fetchall()

    # A dump is restored in clusters whose roles have other names.
    assert (done.before, roles) == (1, [("{public}",)])


def session_days(database: Database, tenant: str) -> dict[str, int]:
    with database.transaction(tenant, readonly=True) as transaction:
        return dict(transaction.rows("select session, day from journal_session"))


def without_days(database: Database) -> None:
    """Store sessions as the version before did, of which one has no line left."""
    for number, tenant in enumerate(TENANTS):
        database.add_tenant(tenant)
        with database.transaction(tenant) as transaction:
            if transaction.engine == "postgresql":
                transaction.rows("select add_event_day(20261118)")
            for session in ("kept", "gone"):
                transaction.execute(
                    "insert into journal_session (tenant, stream, session, started, latest) values (?, ?, ?, 1, 1)",
                    (tenant, f"{number}" * 16, session),
                )
            transaction.execute(
                "insert into event (tenant, stream, seq, day, ts, type, session, line) "
                "values (?, ?, 0, 20261118, 1, 'x', 'kept', ?)",
                (tenant, f"{number}" * 16, b"{}"),
            )


def test_an_older_sqlite_database_gets_the_days_of_its_sessions_from_their_lines(tmp_path: Path) -> None:
    path = str(tmp_path / "team.sqlite")
    with closing(SqliteDatabase(path, migrations=MIGRATIONS[:3])) as old:
        without_days(old)

    with closing(SqliteDatabase(path)) as database:
        found = [session_days(database, tenant) for tenant in TENANTS]

    assert found == [{"kept": 20261118, "gone": 0}] * 3


@pytest.mark.slow
def test_an_older_postgresql_database_gets_the_days_of_its_sessions_from_their_lines(cluster: PostgresCluster) -> None:
    import psycopg

    from skillshelf.servers.team.postgres_database import PostgresDatabase

    with owned_database(cluster) as owner:
        address = migrate_postgres(owner, PASSWORD, migrations=MIGRATIONS[:3]).address
        with closing(PostgresDatabase(address)) as old:
            without_days(old)
        migrate_postgres(owner)
        with closing(open_database(address)) as database:
            found = [session_days(database, tenant) for tenant in TENANTS]
        with psycopg.connect(owner) as connection:
            unforced = connection.execute(
                "select relname from pg_class where relrowsecurity and not relforcerowsecurity"
            ).fetchall()

    assert found == [{"kept": 20261118, "gone": 0}] * 3
    assert unforced == []


@needs("mcp")
@needs("watchfiles")
@needs("jwt")
@needs("starlette")
def test_a_time_that_is_none_ends_the_server_before_it_listens(machine: Machine) -> None:
    done = machine.run("serve", "--keep-lines", "soon", "--listen", "127.0.0.1:0")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--keep-lines needs a time such as 90d, 12w or 2y, not 'soon'" in done.stderr


@needs("mcp")
@needs("watchfiles")
@needs("jwt")
@needs("starlette")
@pytest.mark.slow
def test_a_server_that_starts_removes_what_is_too_old(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    with closing(SqliteDatabase(str(path))) as database:
        fill(database)
        with database.transaction("default") as transaction:
            transaction.execute("update event set day = 20200101")

    with (
        serving(tmp_path / "home", f"sqlite:///{path}", tmp_path / "blobs", "--keep-lines", "90d"),
        closing(SqliteDatabase(str(path))) as database,
    ):
        wait_for(lambda: True if left(database, "default")["event"] == 0 else None)
