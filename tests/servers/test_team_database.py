"""The database of a team: tenants see nothing of each other, migrations run once, a missing database is an error."""

from __future__ import annotations

import functools
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from support.postgres import PASSWORD, PostgresCluster
from support.waiting import wait_for

from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.database import Database, PostgresDatabase, SqliteDatabase, migrate_postgres, open_database
from skillshelf.servers.team.journal_removal import apply_retention
from skillshelf.servers.team.migrations import MIGRATIONS, SHARED_TABLES, TENANT_TABLES, Migration
from skillshelf.servers.team.postgres_waits import Attempts
from skillshelf.servers.team.tokens import create_token, list_tokens, set_member
from skillshelf.servers.team.values import DatabaseAway, DatabaseFull, NoSuchTenant, RowExists

DAY = 20261117

VALUES = {"day": DAY, "tree": "sha256:aa", "digest": "sha256:aa"}
"""The values of columns that other tables name."""


@functools.cache
def columns() -> dict[str, dict[str, Any]]:
    """The columns of every table, and a value for each."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteDatabase(f"{folder}/team.sqlite")) as database,
        database.transaction("default", readonly=True) as transaction,
    ):
        return {
            table: {
                name: VALUES.get(name, {"text": "x", "blob": b"x"}.get(kind.lower(), 1))
                for _, name, kind, *_ in transaction.rows(f"pragma table_info({table})")
            }
            for table in (*TENANT_TABLES, *SHARED_TABLES)
        }


ROWS = tuple(table for table in TENANT_TABLES if table != "tenant")


def insert(table: str, tenant: str) -> tuple[str, tuple[Any, ...]]:
    """The statement that writes a row of a tenant, and its parameters."""
    row = {name: tenant if name == "tenant" else value for name, value in columns()[table].items()}
    return f"insert into {table} ({', '.join(row)}) values ({', '.join('?' * len(row))})", tuple(row.values())


def fill(database: Database, tenant: str) -> None:
    """Write one row into every table."""
    database.add_tenant(tenant)
    with database.transaction(tenant) as transaction:
        if transaction.engine == "postgresql":
            transaction.rows("select add_event_day(?)", (DAY,))
        for table in (*ROWS, *SHARED_TABLES):
            transaction.execute(*insert(table, tenant))


def execute(database: Database, statement: str, parameters: tuple[Any, ...] = ()) -> int:
    """Run one statement as another tenant."""
    with database.transaction("globex") as transaction:
        return transaction.execute(statement, parameters)


def test_every_table_but_the_shared_ones_begins_its_key_with_the_tenant() -> None:
    first = {table: next(iter(names)) for table, names in columns().items() if table not in SHARED_TABLES}

    assert first.pop("tenant") == "id"
    assert first == dict.fromkeys(first, "tenant")


def test_a_query_without_its_tenant_still_sees_nothing_of_another_tenant(database: Database) -> None:
    fill(database, "acme")
    database.add_tenant("globex")

    with database.transaction("globex") as transaction:
        seen = {table: transaction.rows(f"select * from {table}") for table in (*TENANT_TABLES, *SHARED_TABLES)}

    assert seen.pop("tenant")[0][0] == "globex"
    assert seen == {table: [] for table in seen}


def test_a_change_without_its_tenant_still_changes_nothing_of_another_tenant(database: Database) -> None:
    fill(database, "acme")
    database.add_tenant("globex")

    with database.transaction("globex") as transaction:
        for table in ROWS:
            assert transaction.execute(f"update {table} set tenant = tenant") == 0
            assert transaction.execute(f"delete from {table}") == 0

    with database.transaction("acme") as transaction:
        assert {table: len(transaction.rows(f"select * from {table}")) for table in ROWS} == dict.fromkeys(ROWS, 1)


def test_the_tenant_itself_sees_all_its_rows_and_the_trees_of_its_releases(database: Database) -> None:
    fill(database, "acme")

    with database.transaction("acme", readonly=True) as transaction:
        seen = {table: len(transaction.rows(f"select * from {table}")) for table in (*TENANT_TABLES, *SHARED_TABLES)}

    assert seen == dict.fromkeys(seen, 1)


@pytest.mark.slow
def test_a_row_of_another_tenant_cannot_be_written(postgres: PostgresDatabase) -> None:
    postgres.add_tenant("acme")

    for table in ROWS:
        if table != "event":
            with pytest.raises(DatabaseAway, match="row-level security"):
                execute(postgres, *insert(table, "acme"))


@pytest.mark.slow
def test_a_transaction_without_a_tenant_sees_nothing(postgres: PostgresDatabase) -> None:
    fill(postgres, "acme")

    with postgres.transaction("") as transaction:
        assert [row for table in TENANT_TABLES for row in transaction.rows(f"select * from {table}")] == []


@pytest.mark.slow
def test_the_tenant_of_a_transaction_ends_with_it(postgres: PostgresDatabase) -> None:
    fill(postgres, "acme")
    rows = "select count(*) from skillshelf.stream"

    with postgres.transaction("acme") as transaction:
        assert transaction.row(rows) != (0,)
        connection: Any = transaction.connection  # type: ignore[attr-defined]

    # The connection that was used goes back to the others.
    for query, none in (("select current_setting('skillshelf.tenant', true)", ""), (rows, 0)):
        assert (connection.execute(query).fetchone()[0] or none) == none


def test_a_transaction_is_whole_or_not_at_all(database: Database) -> None:
    with suppress(ZeroDivisionError), database.transaction("default") as transaction:
        transaction.execute("insert into member values (?, ?, ?)", ("default", "ada", "reader"))
        raise ZeroDivisionError

    with database.transaction("default", readonly=True) as transaction:
        assert transaction.rows("select * from member") == []


def test_a_transaction_that_reads_sees_one_state_whatever_is_written_meanwhile(database: Database) -> None:
    with database.transaction("default", readonly=True) as reading:
        assert reading.rows("select * from member") == []
        with database.transaction("default") as writing:
            writing.execute("insert into member values (?, ?, ?)", ("default", "ada", "reader"))
        assert reading.rows("select * from member") == []

    with database.transaction("default", readonly=True) as later:
        assert len(later.rows("select * from member")) == 1


def test_a_key_that_is_taken_is_an_error_of_its_own(database: Database) -> None:
    set_member(database, "default", "ada", "reader")

    with pytest.raises(RowExists), database.transaction("default") as transaction:
        transaction.execute("insert into member values (?, ?, ?)", ("default", "ada", "admin"))


def test_text_with_marks_of_both_databases_is_kept_as_it_is(database: Database) -> None:
    odd = "100 % sure? it's 'quoted' \\ and ünïcode %s"
    with database.transaction("default") as transaction:
        transaction.execute("insert into member values (?, ?, ?)", ("default", odd, "a%?'"))
        assert transaction.rows("select subject, role, '?%s' from member where subject like '100 %'") == [
            (odd, "a%?'", "?%s")
        ]


def test_a_tenant_is_made_once(database: Database) -> None:
    assert database.add_tenant("acme") is True
    assert database.add_tenant("acme") is False
    with pytest.raises(ConfigurationError, match="a tenant is named"):
        database.add_tenant("../acme")


def test_a_token_for_a_tenant_that_does_not_exist_is_refused(database: Database) -> None:
    with pytest.raises(NoSuchTenant):
        create_token(database, "nobody", "ada")


def test_many_threads_write_one_after_the_other(database: Database) -> None:
    def work(number: int) -> None:
        for step in range(5):
            set_member(database, "default", f"subject {number} {step}", "reader")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.transaction("default", readonly=True) as transaction:
        assert transaction.row("select count(*) from member") == (30,)


# SQLite -------------------------------------------------------------------------------------------

NEWER = (*MIGRATIONS, Migration(("create table extra (tenant text primary key)",)))


def test_an_older_file_is_migrated_and_a_copy_of_it_stays_beside(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    old = SqliteDatabase(str(path))
    old.add_tenant("acme")
    for tenant in ("default", "acme"):
        set_member(old, tenant, "ada", "reader")
    old.close()

    new = SqliteDatabase(str(path), migrations=NEWER)

    # The file of another tenant when it is used first.
    for tenant in ("default", "acme"):
        with new.transaction(tenant) as transaction:
            assert transaction.rows("select subject from member") == [("ada",)]
            assert transaction.rows("select * from extra") == []
    with sqlite3.connect(f"{path}.v{len(MIGRATIONS)}") as copy:
        assert copy.execute("select subject from member").fetchall() == [("ada",)]
        assert copy.execute("pragma user_version").fetchone() == (len(MIGRATIONS),)
    assert (tmp_path / f"team.sqlite.v{len(MIGRATIONS)}").stat().st_mode & 0o777 == 0o600


MIGRATE_ON_A_SMALL_DISK = """
import resource, signal, sys
from skillshelf.servers.team.sqlite_database import SqliteDatabase
from skillshelf.servers.team.values import DatabaseAway

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
try:
    SqliteDatabase(sys.argv[1])
except DatabaseAway:
    sys.exit(5)
"""


@pytest.mark.slow
def test_a_copy_that_finds_no_space_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    with closing(SqliteDatabase(str(path), migrations=MIGRATIONS[:-1])) as old, old.transaction("default") as begun:
        begun.execute("insert into policy (tenant, name, value) values (?, ?, ?)", ("default", "x", "y" * 1_000_000))
    version = len(MIGRATIONS) - 1

    done = subprocess.run([sys.executable, "-c", MIGRATE_ON_A_SMALL_DISK, str(path)], timeout=60, check=False)

    assert done.returncode == 5
    assert [one.name for one in tmp_path.iterdir() if f".v{version}" in one.name] == []
    with closing(SqliteDatabase(str(path))) as new, new.transaction("default", readonly=True) as transaction:
        assert transaction.row("select length(value) from policy") == (1_000_000,)
    assert [one.name for one in tmp_path.iterdir() if f".v{version}" in one.name] == [f"team.sqlite.v{version}"]


def test_a_newer_file_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    SqliteDatabase(str(path), migrations=NEWER).close()
    before = path.read_bytes()

    newer = f"has version {len(NEWER)}, and this program knows versions up to {len(MIGRATIONS)}"
    with pytest.raises(ConfigurationError, match=newer):
        open_database(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_two_processes_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    problems: list[BaseException] = []

    def start() -> None:
        try:
            SqliteDatabase(str(tmp_path / "team.sqlite")).close()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []


def test_a_file_that_is_not_a_database_or_is_gone_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    path.write_bytes(b"not a database, but more than a hundred bytes of something else" * 20)
    with pytest.raises(DatabaseAway, match="cannot be used"):
        open_database(f"sqlite:///{path}")

    path.unlink()
    database = open_database(f"sqlite:///{path}")
    path.unlink()
    with pytest.raises(DatabaseAway, match="is gone"):
        list_tokens(database, "default")


def test_another_kind_of_address_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="sqlite:///FILE or postgresql"):
        open_database("mysql://localhost/team")


# PostgreSQL ---------------------------------------------------------------------------------------


@contextmanager
def role(cluster: PostgresCluster, owner: str, name: str, *attributes: str) -> Iterator[str]:
    """A role of the database, and its address."""
    import psycopg

    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"create role {name} login {' '.join(attributes)}".encode())
        try:
            yield owner.replace("postgres@", f"{name}@")
        finally:
            connection.execute(f"drop owned by {name}".encode())
            connection.execute(f"drop role {name}".encode())


@pytest.mark.slow
def test_a_migration_runs_once_and_keeps_the_password_of_the_role(cluster: PostgresCluster) -> None:
    owner = cluster.new_database()

    first = migrate_postgres(owner, PASSWORD)
    second = migrate_postgres(owner)

    assert (first.before, first.version, first.has_password) == (0, len(MIGRATIONS), True)
    assert (second.before, second.version, second.has_password) == (len(MIGRATIONS), len(MIGRATIONS), False)
    assert "skillshelf_app:a%20password%20of%20the%20tests@" in first.address
    with closing(open_database(first.address)) as database:
        database.check()


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["superuser", "bypassrls"])
def test_a_migration_takes_no_role_for_the_server_that_sees_everything(
    cluster: PostgresCluster, attribute: str
) -> None:
    import psycopg

    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"alter role skillshelf_app {attribute}".encode())
        try:
            with pytest.raises(ConfigurationError, match="the role skillshelf_app is a superuser or has BYPASSRLS"):
                migrate_postgres(owner)
        finally:
            connection.execute(f"alter role skillshelf_app no{attribute}".encode())


@pytest.mark.slow
def test_a_server_refuses_a_superuser_and_a_database_that_was_not_migrated(cluster: PostgresCluster) -> None:
    owner = cluster.new_database()
    with pytest.raises(ConfigurationError, match="the role postgres is a superuser"):
        open_database(owner)
    migrate_postgres(owner, PASSWORD)
    other = cluster.new_database().replace("postgres@", "skillshelf_app@")
    with pytest.raises(ConfigurationError, match=f"has version 0, and this program needs {len(MIGRATIONS)}"):
        open_database(other)


@pytest.mark.slow
def test_a_server_refuses_a_role_with_bypassrls_and_a_member_of_the_owner(cluster: PostgresCluster) -> None:
    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    with (
        role(cluster, owner, "bypasser", "bypassrls") as address,
        pytest.raises(ConfigurationError, match=r"BYPASSRLS.*when the owner of the tables runs it"),
    ):
        open_database(address)
    with (
        role(cluster, owner, "insider", "in role postgres") as address,
        pytest.raises(ConfigurationError, match="is a superuser"),
    ):
        open_database(address)


@pytest.mark.slow
def test_a_server_refuses_a_superuser_who_takes_on_the_role_of_the_server(cluster: PostgresCluster) -> None:
    """`reset role` would make it a superuser again."""
    import psycopg

    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    with pytest.raises(ConfigurationError, match="the role postgres is a superuser"):
        open_database(f"{owner}&options=-c%20role%3Dskillshelf_app")
    with role(cluster, owner, "disguised", "superuser") as address:
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute("alter role disguised set role = skillshelf_app")
        with pytest.raises(ConfigurationError, match="the role disguised is a superuser"):
            open_database(address)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_does_not_keep_every_character_is_refused(cluster: PostgresCluster, encoding: str) -> None:
    import psycopg

    owner = cluster.new_database()
    name = f"with_{encoding.lower()}"
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"create database {name} encoding '{encoding}' locale 'C' template template0".encode())
    with pytest.raises(ConfigurationError, match=f"has the encoding {encoding}, .*`create database {name} encoding"):
        migrate_postgres(cluster.address(name))
    with psycopg.connect(cluster.address(name)) as connection:
        assert connection.execute("select 1 from pg_namespace where nspname = 'skillshelf'").fetchone() is None


@pytest.mark.slow
def test_names_are_kept_whatever_encoding_the_environment_asks_for(
    cluster: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    with closing(open_database(cluster.migrated_database())) as opened:
        create_token(opened, "default", "\u017caneta-\u65e5")
        assert [one.subject for one in list_tokens(opened, "default")] == ["\u017caneta-\u65e5"]


@pytest.mark.slow
def test_a_server_refuses_the_owner_of_the_tables(cluster: PostgresCluster) -> None:
    import psycopg

    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    with role(cluster, owner, "landlord") as address:
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute("alter table skillshelf.member owner to landlord")
        with pytest.raises(ConfigurationError, match="owns tables"):
            open_database(address)


@pytest.mark.slow
def test_the_owner_of_the_tables_is_bound_by_row_level_security_too(cluster: PostgresCluster) -> None:
    import psycopg

    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    with psycopg.connect(owner, autocommit=True) as connection:
        forced = connection.execute(
            "select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where nspname = 'skillshelf' and relkind in ('r', 'p') and relrowsecurity and relforcerowsecurity"
        ).fetchall()

    assert {name for (name,) in forced} == {*TENANT_TABLES, *SHARED_TABLES}


@pytest.mark.slow
def test_a_newer_database_is_refused_and_a_role_that_may_not_migrate_is_told(cluster: PostgresCluster) -> None:
    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD, migrations=NEWER)
    newer = f"has version {len(NEWER)}, and this program knows versions up to {len(MIGRATIONS)}"
    with pytest.raises(ConfigurationError, match=newer):
        migrate_postgres(owner)
    with (
        role(cluster, owner, "visitor") as address,
        pytest.raises(ConfigurationError, match="this role may not migrate"),
    ):
        migrate_postgres(address, migrations=(*NEWER, NEWER[-1]))


@pytest.mark.slow
def test_an_owner_that_may_not_change_the_password_of_the_role_is_told_who_may(cluster: PostgresCluster) -> None:
    import psycopg

    # As where two databases of one cluster have owners of their own.
    migrate_postgres(cluster.new_database(), PASSWORD)
    other = cluster.new_database()
    with role(cluster, other, "second_owner", "createrole") as address:
        with psycopg.connect(other, autocommit=True) as connection:
            connection.execute(f"grant create on database {connection.info.dbname} to second_owner".encode())
        with pytest.raises(ConfigurationError, match="an administrator run `alter role skillshelf_app password"):
            migrate_postgres(address, PASSWORD)
        assert migrate_postgres(address).version == len(MIGRATIONS)


@pytest.mark.slow
def test_a_migration_that_waits_too_long_says_for_whom_and_changes_nothing(cluster: PostgresCluster) -> None:
    import psycopg

    owner = cluster.new_database()
    with psycopg.connect(owner, autocommit=True) as other:
        other.execute("select pg_advisory_lock(hashtext('skillshelf.migrate'))")
        with pytest.raises(DatabaseAway, match=r"waited 1 s .* for another one, or for whoever uses the tables"):
            migrate_postgres(owner, PASSWORD, wait_seconds=1)

    assert migrate_postgres(owner, PASSWORD).before == 0


@pytest.mark.slow
def test_the_application_cannot_reach_a_partition_change_a_table_or_switch_the_security_off(
    postgres: PostgresDatabase,
) -> None:
    fill(postgres, "acme")

    for statement in (
        f"select * from event_{DAY}",
        "alter table member disable row level security",
        "drop table member",
        "create table mine (id text)",
        "delete from tree",
        "update verdict set result = ''",
        "delete from tenant",
    ):
        with pytest.raises(DatabaseAway):
            execute(postgres, statement)


@pytest.mark.slow
def test_days_of_events_are_added_and_dropped_whole(postgres: PostgresDatabase) -> None:
    with postgres.transaction("default") as transaction:
        for day in (DAY, DAY + 1, DAY):
            transaction.rows("select add_event_day(?)", (day,))
        assert transaction.rows("select event_days()") == [(DAY,), (DAY + 1,)]
        # Each is a table of its own, and as closed as that of all events.
        switches = "select relrowsecurity, relforcerowsecurity from pg_class where relname in (?, ?)"
        assert transaction.rows(switches, (f"event_{DAY}", f"event_{DAY + 1}")) == [(True, True)] * 2
        assert transaction.row("select drop_event_days(?)", (DAY + 1,)) == (1,)
        assert transaction.rows("select event_days()") == [(DAY + 1,)]


@pytest.mark.slow
def test_two_servers_may_add_the_same_day_at_the_same_time(postgres: PostgresDatabase) -> None:
    waits = "select 1 from pg_locks where locktype = 'advisory' and not granted"

    def add() -> None:
        with postgres.transaction("default") as transaction:
            transaction.rows("select add_event_day(20261117)")

    with ThreadPoolExecutor(1) as pool, postgres.transaction("default") as transaction:
        transaction.rows("select add_event_day(20261117)")
        other = pool.submit(add)
        wait_for(lambda: transaction.row(waits))
        transaction.execute("commit")
        other.result(timeout=30)
        transaction.execute("begin")


@pytest.mark.slow
def test_a_day_is_added_while_a_backup_reads_and_none_is_dropped_then(postgres: PostgresDatabase) -> None:
    with postgres.transaction("default") as transaction:
        transaction.rows("select add_event_day(?)", (DAY,))
    with postgres.transaction("default", readonly=True) as backup:
        backup.rows("select count(*) from event")
        with postgres.transaction("default") as transaction:
            transaction.rows("select add_event_day(?)", (DAY + 1,))
        with pytest.raises(DatabaseAway, match="in use, by a backup for example"):
            apply_retention(postgres, 1, now=2_000_000_000_000)
    with postgres.transaction("default") as transaction:
        assert transaction.rows("select event_days()") == [(DAY,), (DAY + 1,)]
        partitions = "select count(*), count(distinct indrelid) from pg_index join pg_inherits on inhrelid = indexrelid"
        indexes = "select count(*) from pg_index where indrelid = 'event'::regclass"
        # Both have the indexes of the table, and nothing else.
        assert transaction.row(partitions) == (2 * (transaction.row(indexes) or (0,))[0], 2)


@pytest.mark.slow
def test_a_server_that_went_away_is_an_error_and_then_comes_back(cluster: PostgresCluster) -> None:
    import psycopg

    owner = cluster.new_database()
    with closing(open_database(migrate_postgres(owner, PASSWORD).address)) as database:
        database.check()
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'skillshelf_app' "
                "and datname = current_database()"
            )
        database.check()
    with pytest.raises(DatabaseAway):
        open_database("postgresql://nobody@/team?host=/nonexistent")


@pytest.mark.slow
def test_a_database_that_hangs_is_away_after_a_time_and_then_comes_back(
    postgres: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "skillshelf.servers.team.postgres_database"
    with postgres.transaction("default") as transaction:
        (process,) = transaction.row("select pg_backend_pid()") or ()
    with ThreadPoolExecutor(1) as pool:
        os.kill(process, signal.SIGSTOP)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(f"{module}.BEGIN_SECONDS", 0.5)
                found = pool.submit(postgres.check).exception(timeout=60)
            assert isinstance(found, DatabaseAway)
        finally:
            os.kill(process, signal.SIGCONT)
        postgres.check()

        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.WAIT_SECONDS", 0.5)
            found = pool.submit(execute, postgres, "select pg_sleep(15)").exception(timeout=60)
        assert isinstance(found, DatabaseAway)
        postgres.check()


def test_while_a_database_hangs_one_attempt_waits_and_the_others_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("skillshelf.servers.team.postgres_waits._SLOW_SECONDS", 0.0)
    attempts, told = Attempts(), []

    def begin(problem: str | None = None) -> None:
        with attempts.attempt():
            told.append(problem)
            if problem is not None:
                raise DatabaseAway(problem)

    with attempts.attempt():
        begin()
        with pytest.raises(DatabaseAway, match="it hangs"):
            begin("it hangs")
    with pytest.raises(DatabaseAway, match="it hangs"):
        begin("it hangs")
    with attempts.attempt():
        with pytest.raises(DatabaseAway, match="it hangs"):
            begin("nobody tries this")
        assert told == [None, "it hangs", "it hangs"]
    with attempts.attempt():
        begin()


@pytest.mark.slow
def test_a_server_takes_a_plain_member_of_its_role_and_no_other_role(cluster: PostgresCluster) -> None:
    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    with role(cluster, owner, "plain", "in role skillshelf_app") as address, closing(open_database(address)) as opened:
        create_token(opened, "default", "ada")
    for name, attributes, message in (
        ("stranger", (), "is neither skillshelf_app nor a member of it"),
        ("maker", ("createrole", "in role skillshelf_app"), "may create roles"),
        ("passer", ("bypassrls", "in role skillshelf_app"), "has BYPASSRLS"),
        ("copier", ("replication", "in role skillshelf_app"), "has REPLICATION"),
        ("runner", ("in role skillshelf_app, pg_execute_server_program",), "may use the files or programs"),
    ):
        with role(cluster, owner, name, *attributes) as address, pytest.raises(ConfigurationError, match=message):
            open_database(address)


@pytest.mark.slow
def test_a_server_refuses_a_role_that_owns_anything_anywhere(cluster: PostgresCluster) -> None:
    import psycopg

    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    with (
        role(cluster, owner, "holder", "in role skillshelf_app") as address,
        psycopg.connect(owner, autocommit=True) as connection,
    ):
        open_database(address).close()
        connection.execute("create schema elsewhere authorization holder")
        try:
            with pytest.raises(ConfigurationError, match="owns tables or other things"):
                open_database(address)
        finally:
            connection.execute("drop schema elsewhere")


BREACHES = {
    "alter table token disable row level security": "skillshelf.token has no row-level security",
    "alter table release no force row level security": "skillshelf.release has no row-level security for its owner",
    "alter table tree disable row level security": "skillshelf.tree has no row-level security",
    "drop policy of_tenant on member": "skillshelf.member has no policy that shows a tenant its own rows alone",
    "alter policy of_tenant on alarm using (true)": "skillshelf.alarm has no policy",
    "alter policy of_tenant on login with check (true)": "skillshelf.login has no policy",
    "alter policy of_tenant on release using (true or tenant = current_setting('skillshelf.tenant', true))": (
        "skillshelf.release has no policy"
    ),
    "alter policy of_tenant on skill to skillshelf_app": "skillshelf.skill has no policy",
    "alter policy of_retention on tombstone using (true)": "skillshelf.tombstone has another policy of_retention",
    "drop policy added on tree; create policy added on tree using (true)": "skillshelf.tree has another policy added",
    "create policy everything on event using (true)": "skillshelf.event has a policy .* did not make: everything",
    "drop table alarm": "skillshelf.alarm is missing",
}


@pytest.mark.slow
def test_a_server_refuses_tables_that_do_not_keep_tenants_apart(cluster: PostgresCluster) -> None:
    import psycopg

    owner = cluster.new_database()
    address = migrate_postgres(owner, PASSWORD).address
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("set search_path = skillshelf")
        for breach, message in BREACHES.items():
            connection.execute(breach.encode())
            with pytest.raises(ConfigurationError, match=message):
                open_database(address)
            if "everything" in breach:
                connection.execute("drop policy everything on event")
            if breach.startswith("drop table"):
                continue
            migrate_postgres(owner)
            open_database(address).close()


@pytest.mark.slow
def test_a_connection_problem_is_one_line_that_says_what_to_do_and_no_password(cluster: PostgresCluster) -> None:
    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    place = owner.partition("@")[2]
    with socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        for address, message in (
            (f"postgresql://app:S3cret@127.0.0.1:{port}/team", f"nothing listens at 127.0.0.1:{port}"),
            ("postgresql://app:S3cret@nowhere.invalid/team", "the host of nowhere.invalid:5432 is not known"),
            (f"postgresql://nobody:S3cret@{place}", "has no role nobody"),
            (owner.replace("/team", "/S3rver"), "has no database S3rver"),
            ("postgresql://app:S3cret@/team?host=/nonexistent", "nothing listens at /nonexistent"),
        ):
            with pytest.raises(DatabaseAway, match=message) as caught:
                open_database(address)
            assert "S3cret" not in str(caught.value)
            assert "\n" not in str(caught.value)
    for address in (
        "postgresql://app:S3cret/with@slash@127.0.0.1/team",
        "postgresql://app:12/S3cret@127.0.0.1/team",
        "postgresql://app:x@S3cret@127.0.0.1/team",
        "postgresql://app@127.0.0.1:S3cret/team",
        "postgresql://app@127.0.0.1/team?S3cret=1",
        "postgresql://app:S3cret%zz@127.0.0.1/team",
    ):
        with pytest.raises((ConfigurationError, DatabaseAway)) as refused:
            open_database(address)
        assert "S3cret" not in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('FATAL:  password authentication failed for user "app"', "does not take the password of app"),
        ("fe_sendauth: no password supplied", "does not take the password of app"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.9", user "app"', "does not let app connect to team from here"),
        ("connection timeout expired", "db.example:6432 does not answer"),
        ("FATAL:  sorry, too many clients already", "no connection left"),
        ("something S3cret happened\nand more", "db.example:6432: something ... happened and more"),
    ],
)
def test_what_the_library_says_about_a_connection_is_told_with_advice(said: str, told: str) -> None:
    pytest.importorskip("psycopg", reason="needs the extra: pip install 'skillshelf[server]'")
    from skillshelf.servers.team.postgres_checks import connection_problem

    error = Exception(f'connection failed: connection to server at "db.example", port 6432 failed: {said}')
    found = connection_problem("postgresql://app:S3cret@db.example:6432/team", error)

    assert told in found
    assert "S3cret" not in found
    assert "\n" not in found


def test_only_the_role_of_the_server_is_told_how_it_gets_another_password() -> None:
    pytest.importorskip("psycopg", reason="needs the extra: pip install 'skillshelf[server]'")
    from skillshelf.servers.team.postgres_checks import connection_problem

    error = Exception('connection failed: connection failed: FATAL:  password authentication failed for user "x"')

    assert "--password-file" in connection_problem("postgresql://skillshelf_app:x@db.example/team", error)
    # Whoever may not connect as the owner cannot set a password, and would take the servers down if it worked.
    assert "--password-file" not in connection_problem("postgresql://owner:x@db.example/team", error)


# A full disk and odd files ------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3, 99])
def test_the_sqlite_file_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path, version: int) -> None:
    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table bookmarks (url text)")
        connection.execute(f"pragma user_version = {version}")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(ConfigurationError, match="is a database of another program; name another file"):
        SqliteDatabase(str(path))

    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {"places.sqlite", "places.sqlite.lock"}


def test_a_file_that_was_replaced_is_the_one_that_is_written(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    database = SqliteDatabase(str(path))
    with closing(database):
        create_token(database, "default", "ada")
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "backup")) as copy:
            source.backup(copy)
        create_token(database, "default", "ben")
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        (tmp_path / "backup").replace(path)

        create_token(database, "default", "cem")

        assert [one.subject for one in list_tokens(database, "default")] == ["ada", "cem"]
    with closing(SqliteDatabase(str(path))) as again:
        assert [one.subject for one in list_tokens(again, "default")] == ["ada", "cem"]


def test_a_full_disk_is_an_error_of_its_own(database: Database) -> None:
    statement = "insert into policy (tenant, name, value) values (?, ?, ?)"
    if database.engine == "sqlite":
        with database.transaction("default") as transaction:
            # What a connection may use of a disk that has no more.
            pages = (transaction.row("pragma page_count") or (0,))[0]
            transaction.rows(f"pragma max_page_count = {pages}")
        with pytest.raises(DatabaseFull), database.transaction("default") as transaction:
            transaction.execute(statement, ("default", "x", "y" * 100_000))
    else:
        with pytest.raises(DatabaseFull), database.transaction("default") as transaction:
            transaction.execute("do $$ begin raise exception 'disk' using errcode = '53100'; end $$")
    with database.transaction("default") as transaction:
        transaction.execute(statement, ("default", "x", "y"))


def test_files_beside_a_database_without_an_extension_are_no_tenants(tmp_path: Path) -> None:
    path = tmp_path / "team"
    with closing(SqliteDatabase(str(path), migrations=MIGRATIONS[:1])):
        pass
    with closing(SqliteDatabase(str(path))) as database:
        assert {one.name for one in tmp_path.iterdir()} >= {"team", "team.lock", "team.v1"}
        database.add_tenant("acme")

        assert database.tenants() == ["default", "acme"]
        for slug in ("lock", "v1"):
            before = (tmp_path / f"team.{slug}").read_bytes()
            with pytest.raises(ConfigurationError, match="is a file of the database itself"):
                database.add_tenant(slug)
            with pytest.raises(NoSuchTenant, match="serve tenant create"):
                create_token(database, slug, "ada")
            assert (tmp_path / f"team.{slug}").read_bytes() == before
    with closing(SqliteDatabase(str(tmp_path / "team.sqlite"))) as other:
        assert other.add_tenant("lock")
        assert other.tenants() == ["default", "lock"]
