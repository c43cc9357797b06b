"""Open the database of a team that an address names: SQLite files or PostgreSQL, with transactions of one tenant."""

import os

from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.postgres_database import PostgresDatabase
from skillshelf.servers.team.postgres_migration import PostgresMigration, migrate_postgres
from skillshelf.servers.team.sqlite_database import SqliteDatabase
from skillshelf.servers.team.transactions import Database, Row, Transaction, now_ms

__all__ = [
    "Database",
    "PostgresDatabase",
    "PostgresMigration",
    "Row",
    "SqliteDatabase",
    "Transaction",
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
    raise ConfigurationError(f"--database takes sqlite:///FILE or postgresql://..., not {url.partition(':')[0]!r}")
