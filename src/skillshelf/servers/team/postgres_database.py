"""The team database in PostgreSQL, where row-level security hides the rows of other tenants.

Each transaction sets its tenant, and the server connects as a role that cannot switch that off.
"""

import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from skillshelf.core.limits import DATABASE_CONNECTIONS, DATABASE_WAIT_SECONDS, STATEMENT_SECONDS
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.migrations import MIGRATIONS, SCHEMA
from skillshelf.servers.team.postgres_checks import (
    MALFORMED,
    connection_problem,
    require_kept_apart,
    require_plain_role,
    require_utf8,
)
from skillshelf.servers.team.postgres_waits import BEGIN_SECONDS, WAIT_SECONDS, Attempts, Waits
from skillshelf.servers.team.transactions import NOT_KEPT, Engine, Row, Transaction, now_ms, require_version
from skillshelf.servers.team.values import (
    DEFAULT_TENANT,
    DatabaseAway,
    DatabaseFull,
    RowExists,
    TeamError,
    checked_slug,
)

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresDatabase", "postgres_errors", "version_in"]

_PLACEHOLDER = re.compile(r"'(?:[^']|'')*'|\?|%")


class _PostgresTransaction:
    """A transaction with the tenant set."""

    engine: Engine = "postgresql"
    row_lock = " for update"

    def __init__(self, tenant: str, connection: "psycopg.Connection[Row]", waits: Waits) -> None:
        self.tenant = tenant
        self._connection = connection
        self._waits = waits

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._executed(sql, parameters).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._waits.bounded(self._connection, WAIT_SECONDS), self._connection.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._executed(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        return self._executed(sql, parameters).fetchone()

    def _executed(self, sql: str, parameters: Sequence[Any]) -> "psycopg.Cursor[Row]":
        with self._waits.bounded(self._connection, WAIT_SECONDS):
            return self._connection.execute(_translated(sql), parameters)

    @property
    def connection(self) -> "psycopg.Connection[Row]":
        """The connection of psycopg, for what has no portable form, such as `copy`."""
        return self._connection


def _translated(sql: str) -> bytes:
    """Return a statement with the placeholders of psycopg."""
    return _PLACEHOLDER.sub(
        lambda found: {"?": "%s", "%": "%%"}.get(found[0], found[0].replace("%", "%%")), sql
    ).encode()


class PostgresDatabase:
    """A database of PostgreSQL, with a few connections that are used in turn."""

    engine: Engine = "postgresql"

    def __init__(self, url: str, *, connections: int = DATABASE_CONNECTIONS) -> None:
        self._url = url
        self._places = threading.BoundedSemaphore(connections)
        self._idle: list[psycopg.Connection[Row]] = []
        self._waits = Waits()
        self._attempts = Attempts()

    @contextmanager
    def transaction(self, tenant: str, *, readonly: bool = False) -> Iterator[Transaction]:
        """Begin a transaction, with the tenant set until its end."""
        if not self._places.acquire(timeout=DATABASE_WAIT_SECONDS):
            raise DatabaseAway("all connections to the database are in use")
        try:
            with self._attempts.attempt(), postgres_errors():
                connection = self._begun(tenant, readonly=readonly)
            with postgres_errors():
                try:
                    transaction = _PostgresTransaction(tenant, connection, self._waits)
                    yield transaction
                    transaction.execute("commit")
                except BaseException:
                    self._rolled_back(connection)
                    raise
                self._idle.append(connection)
        finally:
            self._places.release()

    def add_tenant(self, slug: str) -> bool:
        """Add the row of a tenant."""
        with self.transaction(checked_slug(slug)) as transaction:
            added = transaction.execute(
                "insert into tenant (id, slug, created) values (?, ?, ?) on conflict do nothing", (slug, slug, now_ms())
            )
        return added > 0

    @contextmanager
    def alone(self, task: str) -> Iterator[bool]:
        """Hold a lock of the database for a task, on a connection of its own; it ends with that."""
        name = f"skillshelf.{task}"
        with postgres_errors(), closing(self.connect()) as connection:
            row = connection.execute("select pg_try_advisory_lock(hashtext(%s))", (name,)).fetchone()
            held = bool(row and row[0])
            yield held
            if held:
                # The database ends a connection some time after it was closed here.
                connection.execute("select pg_advisory_unlock(hashtext(%s))", (name,))

    def check(self) -> None:
        """Ask for one row of the default tenant."""
        with self.transaction(DEFAULT_TENANT, readonly=True) as transaction:
            transaction.row("select id from tenant")

    def close(self) -> None:
        """Close the connections that are not used."""
        while (connection := self._unused()) is not None:
            connection.close()

    def _unused(self) -> "psycopg.Connection[Row] | None":
        """Take the connection that was used last; another thread may take it between a look at the list and this."""
        with suppress(IndexError):
            return self._idle.pop()
        return None

    def connect(self) -> "psycopg.Connection[Row]":
        """Return a new connection, which is not one of the pool; each of its statements is a transaction."""
        import psycopg

        try:
            return psycopg.connect(
                self._url,
                connect_timeout=DATABASE_WAIT_SECONDS,
                autocommit=True,
                application_name="skillshelf",
                # Whatever the role or the environment says: it would be a text that cannot be written.
                client_encoding="utf8",
            )
        except psycopg.OperationalError as error:
            raise DatabaseAway(connection_problem(self._url, error)) from None
        except (psycopg.ProgrammingError, UnicodeError):
            # The text quotes a part of the address, which may be the password.
            raise ConfigurationError(MALFORMED) from None

    def require_application_role(self) -> None:
        """Raise `ConfigurationError` unless this role sees one tenant at a time, in tables of the current version."""
        with postgres_errors(), closing(self.connect()) as connection:
            require_plain_role(connection)
            require_utf8(connection)
            version = version_in(connection)
            require_version(version, len(MIGRATIONS), "the database")
            if version < len(MIGRATIONS):
                raise ConfigurationError(
                    f"the database has version {version}, and this program needs {len(MIGRATIONS)} "
                    "(run `skillshelf serve migrate` as the owner of its tables)"
                )
            require_kept_apart(connection)

    def _begun(self, tenant: str, *, readonly: bool) -> "psycopg.Connection[Row]":
        import psycopg

        until = time.monotonic() + BEGIN_SECONDS
        while (connection := self._unused()) is not None:
            try:
                return self._begin(connection, tenant, readonly=readonly)
            except psycopg.OperationalError:
                # The server closed it while nobody used it.
                if time.monotonic() < until:
                    continue
                # It hangs, and the others would be waited for as long.
                self.close()
                raise DatabaseAway("the database does not answer") from None
        return self._begin(self.connect(), tenant, readonly=readonly)

    def _begin(
        self, connection: "psycopg.Connection[Row]", tenant: str, *, readonly: bool
    ) -> "psycopg.Connection[Row]":
        try:
            with self._waits.bounded(connection, BEGIN_SECONDS):
                # Several statements of one answer read one state: a line must not be gone between two of them.
                connection.execute("begin isolation level repeatable read read only" if readonly else "begin")
                connection.execute(_BEGIN, (tenant, f"{SCHEMA}, pg_temp", f"{STATEMENT_SECONDS}s"))
        except BaseException:
            connection.close()
            raise
        return connection

    def _rolled_back(self, connection: "psycopg.Connection[Row]") -> None:
        import psycopg

        try:
            with self._waits.bounded(connection, BEGIN_SECONDS):
                connection.execute("rollback")
        except psycopg.Error:
            connection.close()
        else:
            self._idle.append(connection)


_BEGIN = (
    "select set_config('skillshelf.tenant', %s, true), set_config('search_path', %s, true), "
    "set_config('statement_timeout', %s, true)"
)


def version_in(connection: "psycopg.Connection[Row]") -> int:
    """Return the version of a PostgreSQL database; 0 if it has no tables of ours."""
    found = connection.execute(
        "select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = %s and c.relname = 'schema_version'",
        (SCHEMA,),
    ).fetchone()
    if found is None:
        return 0
    row = connection.execute(f"select version from {SCHEMA}.schema_version").fetchone()
    return int(row[0]) if row else 0


@contextmanager
def postgres_errors() -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.IntegrityError as error:
        raise RowExists(error.diag.message_primary or "a key is taken") from None
    except (psycopg.DataError, UnicodeEncodeError):
        # A NUL, half of a surrogate pair, a number beyond 64 bits: the database is well, the request is not.
        raise TeamError(NOT_KEPT) from None
    except psycopg.errors.LockNotAvailable:
        raise DatabaseAway("the tables of the database are in use, by a backup for example (try again later)") from None
    except psycopg.errors.DiskFull:
        raise DatabaseFull("no space left on the disk of the database") from None
    except psycopg.Error as error:
        # The text may quote the address, and an address may hold a password.
        reason = error.diag.message_primary or type(error).__name__
        raise DatabaseAway(f"the database cannot be used: {reason}") from None
