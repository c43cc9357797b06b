"""Open the database of a team that an address names: SQLite files or PostgreSQL, with transactions of one tenant."""

import os
from contextlib import closing

from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.migrations import SCHEMA
from skillshelf.servers.team.postgres_database import PostgresDatabase, postgres_errors
from skillshelf.servers.team.postgres_migration import PostgresMigration, migrate_postgres
from skillshelf.servers.team.sqlite_database import SqliteDatabase
from skillshelf.servers.team.transactions import Database, Row, Transaction, now_ms

__all__ = [
    "Database",
    "PostgresDatabase",
    "PostgresMigration",
    "Row",
    "SqliteDatabase",
    "TenantRecord",
    "Transaction",
    "list_tenants",
    "migrate_postgres",
    "now_ms",
    "open_database",
]


def open_database(url: str) -> Database:
    """Return the database at `sqlite:///FILE` or `postgresql://...`; a SQLite file is made or migrated.

    Raise `ConfigurationError` for another address, a version that is too new or too old, or a role of PostgreSQL for
    which row-level security does not count.
    """
    if url.startswith("sqlite:///"):
        return SqliteDatabase(os.path.abspath(url.removeprefix("sqlite:///")))
    if url.startswith(("postgresql://", "postgres://")):
        database = PostgresDatabase(url)
        database.require_application_role()
        return database
    raise ConfigurationError("the address of a database is sqlite:///FILE or postgresql://...")


class TenantRecord(NamedTuple):
    """A tenant, and when it was made, in milliseconds."""

    tenant: str
    created: int


def list_tenants(url: str) -> list[TenantRecord]:
    """Return the tenants of the database at an address by name.

    In PostgreSQL the role of the server and the owner see one tenant at a time, so it takes a role that may read all
    rows; raise `ConfigurationError` for another one.
    """
    if url.startswith("postgres"):
        return _tenants_of_postgres(url)
    found = []
    with closing(open_database(url)) as database:
        assert isinstance(database, SqliteDatabase), "the other kind was handled above"
        for slug in database.tenants():
            with database.transaction(slug, readonly=True) as transaction:
                found += [TenantRecord(*row) for row in transaction.rows("select id, created from tenant")]
    return sorted(found)


def _tenants_of_postgres(url: str) -> list[TenantRecord]:
    import psycopg

    with postgres_errors(), closing(PostgresDatabase(url).connect()) as connection:
        # Then a query that would not see all rows is an error, not a shorter list.
        connection.execute("set row_security = off")
        try:
            rows = connection.execute(f"select id, created from {SCHEMA}.tenant".encode()).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            raise ConfigurationError(
                "this role sees one tenant at a time, by row-level security (list tenants as a role that reads all "
                "rows, such as skillshelf_backup in docs/deploy.md)"
            ) from None
        except psycopg.errors.UndefinedTable:
            raise ConfigurationError("the database has no tables yet (run `skillshelf serve migrate`)") from None
    return sorted(TenantRecord(*row) for row in rows)
