"""Bring a PostgreSQL database of a team to the current version, and make the role that the server connects as."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from skillshelf.core.limits import MIGRATION_WAIT_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.migrations import (
    APP_ROLE,
    MIGRATIONS,
    SCHEMA,
    Migration,
    postgres_grants,
    postgres_policies,
    postgres_statements,
)
from skillshelf.servers.team.postgres_checks import require_utf8
from skillshelf.servers.team.postgres_database import PostgresDatabase, postgres_errors, version_in
from skillshelf.servers.team.transactions import Row, now_ms, require_version
from skillshelf.servers.team.values import DEFAULT_TENANT, DatabaseAway

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresMigration", "migrate_postgres"]

_OF_ROLE = ("user", "password", "passfile")


class PostgresMigration(NamedTuple):
    """What a migration of PostgreSQL did: the version before and now, and the address for the server.

    The address has no password if the role existed before and got no new one.
    """

    before: int
    version: int
    address: str
    has_password: bool


def migrate_postgres(
    url: str,
    password: str | None = None,
    *,
    migrations: Sequence[Migration] = MIGRATIONS,
    wait_seconds: int = MIGRATION_WAIT_SECONDS,
) -> PostgresMigration:
    """Bring a PostgreSQL database to the current version, and make the role of the server.

    The owner of the tables runs it; others wait. Raise `ConfigurationError` for a newer version or a role that may
    not, and `DatabaseAway` if others take too long.
    """
    with postgres_errors(), _advice(wait_seconds), closing(PostgresDatabase(url).connect()) as connection:
        require_utf8(connection)
        connection.execute(f"set lock_timeout = '{wait_seconds}s'")
        connection.execute("select pg_advisory_lock(hashtext('skillshelf.migrate'))")
        before = version_in(connection)
        require_version(before, len(migrations), "the database")
        with connection.transaction():
            _migrate(connection, before, migrations)
            password = _make_role(connection, password)
            for statement in (*postgres_policies(), *postgres_grants()):
                connection.execute(statement.encode())
        return PostgresMigration(before, len(migrations), _address(url, password), password is not None)


@contextmanager
def _advice(wait_seconds: int) -> Iterator[None]:
    """Say what to do about the two errors of the database that an owner can do something about."""
    import psycopg

    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"this role may not migrate the database: {error.diag.message_primary} "
            f"(use the owner of the database, which may create roles, or create the role {APP_ROLE} first)"
        ) from None
    except psycopg.errors.LockNotAvailable:
        raise DatabaseAway(
            f"the migration waited {wait_seconds} s (MIGRATION_WAIT_SECONDS) for another one, or for whoever uses the "
            "tables; nothing was changed (try again; pg_stat_activity shows what runs)"
        ) from None


def _migrate(connection: "psycopg.Connection[Row]", before: int, migrations: Sequence[Migration]) -> None:
    connection.execute(f"create schema if not exists {SCHEMA}".encode())
    connection.execute(f"set local search_path = {SCHEMA}, pg_temp".encode())
    connection.execute("create table if not exists schema_version (version integer not null)")
    for migration in migrations[before:]:
        for statement in postgres_statements(migration):
            connection.execute(statement.encode())
    connection.execute("delete from schema_version")
    connection.execute("insert into schema_version values (%s)", (len(migrations),))
    connection.execute("select set_config('skillshelf.tenant', %s, true)", (DEFAULT_TENANT,))
    if not before:
        connection.execute("insert into tenant values (%s, %s, %s)", (DEFAULT_TENANT, DEFAULT_TENANT, now_ms()))


def _make_role(connection: "psycopg.Connection[Row]", password: str | None) -> str | None:
    """Make the role of the server; return its password if it got one now."""
    from psycopg import sql

    found = connection.execute(
        "select rolsuper or rolbypassrls from pg_roles where rolname = %s", (APP_ROLE,)
    ).fetchone()
    if found and found[0]:
        raise ConfigurationError(f"the role {APP_ROLE} is a superuser or has BYPASSRLS (drop it, and run this again)")
    if found is None:
        password = password or secrets.token_urlsafe(24)
        limits = "login nosuperuser nobypassrls nocreatedb nocreaterole noreplication"
        connection.execute(sql.SQL(f"create role {APP_ROLE} {limits} password {{}}").format(sql.Literal(password)))
    elif password is not None:
        _set_password(connection, password)
    return password


def _set_password(connection: "psycopg.Connection[Row]", password: str) -> None:
    import psycopg
    from psycopg import sql

    try:
        connection.execute(sql.SQL(f"alter role {APP_ROLE} password {{}}").format(sql.Literal(password)))
    except psycopg.errors.InsufficientPrivilege:
        # Only who made a role may change it, and a superuser.
        raise ConfigurationError(
            f"the role {APP_ROLE} was made by somebody else, and this role may not change its password (leave out "
            f"--password-file, or let an administrator run `alter role {APP_ROLE} password '...'` instead)"
        ) from None


def _address(url: str, password: str | None) -> str:
    """Return the address of the same database for the role of the server."""
    from psycopg.conninfo import conninfo_to_dict

    known = {key: str(value) for key, value in conninfo_to_dict(url).items() if value and key not in _OF_ROLE}
    host, port, name = known.pop("host", ""), known.pop("port", ""), known.pop("dbname", "")
    if host.startswith("/"):
        known, host = {"host": host, **known}, ""
    login = f"{APP_ROLE}:{quote(password, safe='')}" if password else APP_ROLE
    place = f"[{host}]" if ":" in host else host
    query = f"?{urlencode(known)}" if known else ""
    return f"postgresql://{login}@{place}{':' + port if port else ''}/{quote(name)}{query}"
