"""The database of the team server: SQLite files or PostgreSQL, with transactions that see one tenant.

SQLite has a file for each tenant, so a transaction cannot reach another one. In PostgreSQL row-level security hides the
rows of others: each transaction sets its tenant, and the server connects as a role that cannot switch that off.
Statements are the same for both, with `?` for a parameter.
"""

import os
import re
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import quote, urlencode

from skillshelf.core import files
from skillshelf.core.disk_writes import locked_within, make_own_folder, move, remove, write_new
from skillshelf.core.limits import (
    DATABASE_CONNECTIONS,
    DATABASE_WAIT_SECONDS,
    MIGRATION_WAIT_SECONDS,
    STATEMENT_SECONDS,
    TENANTS_OPEN,
)
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.migrations import (
    APP_ROLE,
    MIGRATIONS,
    SCHEMA,
    TENANT_TABLES,
    Migration,
    postgres_grants,
    postgres_policies,
    postgres_statements,
    sqlite_statements,
)
from skillshelf.servers.team.values import (
    DEFAULT_TENANT,
    SLUG,
    DatabaseAway,
    NoSuchTenant,
    RowExists,
    TeamError,
    checked_slug,
)

if TYPE_CHECKING:
    import psycopg

__all__ = [
    "Database",
    "PostgresDatabase",
    "PostgresMigration",
    "SqliteDatabase",
    "Transaction",
    "migrate_postgres",
    "now_ms",
    "open_database",
]

Row = tuple[Any, ...]
Engine = Literal["sqlite", "postgresql"]

_NOT_KEPT = "a value has characters or digits that no database keeps"
_PLACEHOLDER = re.compile(r"'(?:[^']|'')*'|\?|%")


def now_ms() -> int:
    """Return the time in milliseconds, as the database keeps it."""
    return time.time_ns() // 1_000_000


class Transaction(Protocol):
    """A transaction of one tenant. It is committed at the end of its block, and rolled back by an exception.

    `row_lock` ends a `select` whose rows stay locked until the end; SQLite has one writer anyway, and needs none.
    """

    tenant: str
    engine: Engine
    row_lock: str

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement, and return the number of rows that it changed."""

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of parameters."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a query, or None."""


class Database(Protocol):
    """A database of many tenants. Its methods may be called by many threads; they raise `DatabaseAway`."""

    engine: Engine

    def transaction(self, tenant: str, *, readonly: bool = False) -> "Transactions":
        """Return the block of a transaction that sees the rows of this tenant only."""

    def add_tenant(self, slug: str) -> bool:
        """Add a tenant; return False if there is one of this name."""

    def alone(self, task: str) -> AbstractContextManager[bool]:
        """Return the block of a task that one server does at a time; it gets False while another one does it."""

    def check(self) -> None:
        """Raise `DatabaseAway` if the database does not answer."""

    def close(self) -> None:
        """Close the connections that are not used."""


class Transactions(Protocol):
    """The block of a transaction."""

    def __enter__(self) -> Transaction: ...

    def __exit__(self, *error: Any) -> bool | None: ...


def open_database(url: str) -> "Database":
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


# SQLite -------------------------------------------------------------------------------------------


class _SqliteTransaction:
    """A transaction in the file of a tenant."""

    engine: Engine = "sqlite"
    row_lock = ""

    def __init__(self, tenant: str, connection: sqlite3.Connection) -> None:
        self.tenant = tenant
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._connection.execute(sql, parameters).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        found: Row | None = self._connection.execute(sql, parameters).fetchone()
        return found


class SqliteDatabase:
    """A file for each tenant: the named one for the default tenant, one beside it for each other.

    A connection to one file cannot read another, so a statement that forgets its tenant still finds nothing of others.
    """

    engine: Engine = "sqlite"

    def __init__(self, path: str, *, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        self.path = path
        self._migrations = migrations
        self._lock = threading.Lock()
        self._idle: OrderedDict[str, list[sqlite3.Connection]] = OrderedDict()
        self._migrated: set[str] = set()
        with _sqlite_errors(self.path):
            make_own_folder(self.path.rpartition("/")[0] or "/")
            self._make(DEFAULT_TENANT)

    def file_of(self, tenant: str) -> str:
        """Return the file of a tenant, whether or not it exists."""
        if tenant == DEFAULT_TENANT:
            return self.path
        folder, _, name = self.path.rpartition("/")
        stem, dot, end = name.rpartition(".")
        return f"{folder}/{stem or end}.{checked_slug(tenant)}{dot + end if stem else ''}"

    @contextmanager
    def transaction(self, tenant: str, *, readonly: bool = False) -> Iterator[Transaction]:
        """Begin a transaction; one that writes waits for the one before it."""
        path = self.file_of(tenant)
        with _sqlite_errors(path):
            connection = self._connection(tenant, path)
            try:
                connection.execute("begin" if readonly else "begin immediate")
                yield _SqliteTransaction(tenant, connection)
                connection.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.rollback()
                connection.close()
                raise
            self._give_back(path, connection)

    def add_tenant(self, slug: str) -> bool:
        """Make the file of a tenant."""
        with _sqlite_errors(self.file_of(checked_slug(slug))):
            return self._make(slug)

    @contextmanager
    def alone(self, task: str) -> Iterator[bool]:
        """Hold the lock file of a task."""
        try:
            with locked_within(f"{self.path}.{task}.lock", 0) as held:
                yield held
        except OSError as error:
            raise DatabaseAway(f"{self.path}.{task}.lock cannot be used: {error.strerror or error}") from None

    def tenants(self) -> list[str]:
        """Return the tenants that have a file."""
        folder, _, name = self.path.rpartition("/")
        stem, dot, end = name.rpartition(".")
        pattern = re.compile(rf"{re.escape(stem or end)}\.({SLUG}){re.escape(dot + end) if stem else ''}")
        try:
            found = [match[1] for match in map(pattern.fullmatch, files.stamps_in(folder or "/")) if match]
        except OSError as error:
            raise DatabaseAway(f"{folder} cannot be read: {error.strerror or error}") from None
        return [DEFAULT_TENANT, *sorted(set(found) - {DEFAULT_TENANT})]

    def check(self) -> None:
        """Read one row of the default tenant."""
        with self.transaction(DEFAULT_TENANT, readonly=True) as transaction:
            transaction.row("select id from tenant")

    def close(self) -> None:
        """Close the connections that are not used."""
        with self._lock:
            idle, self._idle = self._idle, OrderedDict()
        for connection in (one for of_file in idle.values() for one in of_file):
            connection.close()

    def _connection(self, tenant: str, path: str) -> sqlite3.Connection:
        # A connection outlives the removal of its file, and would go on writing to nothing.
        if files.kind_at(path) is None:
            if tenant != DEFAULT_TENANT:
                raise NoSuchTenant(f"no tenant {tenant}")
            raise DatabaseAway(f"{path} is gone")
        if path not in self._migrated:
            self._migrate(path)
        with self._lock:
            idle = self._idle.get(path)
            if idle:
                return idle.pop()
        return _connect(path)

    def _give_back(self, path: str, connection: sqlite3.Connection) -> None:
        closed: list[sqlite3.Connection] = []
        with self._lock:
            idle = self._idle.setdefault(path, [])
            (idle if len(idle) < DATABASE_CONNECTIONS else closed).append(connection)
            self._idle.move_to_end(path)
            while len(self._idle) > TENANTS_OPEN:
                closed += self._idle.popitem(last=False)[1]
        for one in closed:
            one.close()

    def _make(self, tenant: str) -> bool:
        path = self.file_of(tenant)
        is_new = files.kind_at(path) is None
        self._migrate(path)
        with closing(_connect(path)) as connection:
            connection.execute("insert or ignore into tenant values (?, ?, ?)", (tenant, tenant, now_ms()))
        return is_new

    def _migrate(self, path: str) -> None:
        """Bring a file to the current version, under a lock; the file as it was stays beside it."""
        with locked_within(f"{path}.lock", MIGRATION_WAIT_SECONDS) as held:
            if not held:
                raise DatabaseAway(f"another process has been migrating {path} for {MIGRATION_WAIT_SECONDS} seconds")
            if files.kind_at(path) is None:
                write_new(path)
            with closing(_connect(path)) as connection:
                version = connection.execute("pragma user_version").fetchone()[0]
                require_version(version, len(self._migrations), path)
                if version < len(self._migrations):
                    if version:
                        _copy(connection, f"{path}.v{version}")
                    connection.execute("begin exclusive")
                    for migration in self._migrations[version:]:
                        for statement in sqlite_statements(migration):
                            connection.execute(statement)
                    connection.execute(f"pragma user_version = {len(self._migrations)}")
                    connection.execute("commit")
        self._migrated.add(path)


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{_uri_path(path)}?mode=rw",
        uri=True,
        timeout=DATABASE_WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("pragma journal_mode = wal")
    # With a write-ahead log only `full` keeps what was acknowledged when the machine loses power.
    connection.execute("pragma synchronous = full")
    return connection


def _uri_path(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _copy(connection: sqlite3.Connection, path: str) -> None:
    """Copy a database whole, also what is only in its log."""
    remove(f"{path}.new")
    write_new(f"{path}.new")
    with closing(sqlite3.connect(f"{path}.new")) as target:
        connection.backup(target)
    remove(path)
    move(f"{path}.new", path)


@contextmanager
def _sqlite_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise RowExists(str(error)) from None
    except (sqlite3.DataError, UnicodeEncodeError, OverflowError):
        raise TeamError(_NOT_KEPT) from None
    except sqlite3.Error as error:
        raise DatabaseAway(f"the database {path} cannot be used: {error}") from None
    except OSError as error:
        raise DatabaseAway(f"the database {path} cannot be used: {error.strerror or error}") from None


def require_version(found: int, current: int, what: str) -> None:
    """Raise `ConfigurationError` for a database of a newer version."""
    if found > current:
        raise ConfigurationError(
            f"{what} has version {found}, and this program knows versions up to {current} (update skillshelf)"
        )


# PostgreSQL ---------------------------------------------------------------------------------------


class _PostgresTransaction:
    """A transaction with the tenant set."""

    engine: Engine = "postgresql"
    row_lock = " for update"

    def __init__(self, tenant: str, connection: "psycopg.Connection[Row]") -> None:
        self.tenant = tenant
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return self._connection.execute(_translated(sql), parameters).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_translated(sql), parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        return self._connection.execute(_translated(sql), parameters).fetchone()

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

    @contextmanager
    def transaction(self, tenant: str, *, readonly: bool = False) -> Iterator[Transaction]:
        """Begin a transaction, with the tenant set until its end."""
        if not self._places.acquire(timeout=DATABASE_WAIT_SECONDS):
            raise DatabaseAway("all connections to the database are in use")
        try:
            with _postgres_errors():
                connection = self._begun(tenant, readonly=readonly)
                try:
                    yield _PostgresTransaction(tenant, connection)
                    connection.execute("commit")
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
        with _postgres_errors(), closing(self.connect()) as connection:
            row = connection.execute("select pg_try_advisory_lock(hashtext(%s))", (f"skillshelf.{task}",)).fetchone()
            yield bool(row and row[0])

    def check(self) -> None:
        """Ask for one row of the default tenant."""
        with self.transaction(DEFAULT_TENANT, readonly=True) as transaction:
            transaction.row("select id from tenant")

    def close(self) -> None:
        """Close the connections that are not used."""
        while self._idle:
            self._idle.pop().close()

    def connect(self) -> "psycopg.Connection[Row]":
        """Return a new connection, which is not one of the pool; each of its statements is a transaction."""
        import psycopg

        return psycopg.connect(
            self._url, connect_timeout=DATABASE_WAIT_SECONDS, autocommit=True, application_name="skillshelf"
        )

    def require_application_role(self) -> None:
        """Raise `ConfigurationError` if row-level security does not count for this role, or if tables are missing."""
        with _postgres_errors(), closing(self.connect()) as connection:
            role = connection.execute(_ROLE, (SCHEMA, list(TENANT_TABLES))).fetchone()
            name, is_super, bypasses, owns = role or ("?", True, True, True)
            why = "is a superuser" if is_super else "has BYPASSRLS" if bypasses else "owns the tables" if owns else None
            if why is not None:
                raise ConfigurationError(
                    f"the role {name} {why}, so tenants would not be kept apart (run `skillshelf serve migrate` "
                    "as this role, and use the address that it prints)"
                )
            version = version_in(connection)
        require_version(version, len(MIGRATIONS), "the database")
        if version < len(MIGRATIONS):
            raise ConfigurationError(
                f"the database has version {version}, and this program needs {len(MIGRATIONS)} "
                "(run `skillshelf serve migrate` as the owner of its tables)"
            )

    def _begun(self, tenant: str, *, readonly: bool) -> "psycopg.Connection[Row]":
        import psycopg

        while self._idle:
            connection = self._idle.pop()
            try:
                return _begin(connection, tenant, readonly=readonly)
            except psycopg.OperationalError:
                # The server closed it while nobody used it.
                connection.close()
        return _begin(self.connect(), tenant, readonly=readonly)

    def _rolled_back(self, connection: "psycopg.Connection[Row]") -> None:
        import psycopg

        try:
            connection.execute("rollback")
        except psycopg.Error:
            connection.close()
        else:
            self._idle.append(connection)


_BEGIN = (
    "select set_config('skillshelf.tenant', %s, true), set_config('search_path', %s, true), "
    "set_config('statement_timeout', %s, true)"
)

_ROLE = """select current_user, bool_or(r.rolsuper), bool_or(r.rolbypassrls),
    exists (select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = %s and c.relname = any(%s) and pg_has_role(current_user, c.relowner, 'member'))
    from pg_roles r where pg_has_role(current_user, r.oid, 'member')"""
"""The role, and what holds for it or for a role that it may take on."""


def _begin(connection: "psycopg.Connection[Row]", tenant: str, *, readonly: bool) -> "psycopg.Connection[Row]":
    connection.execute("begin read only" if readonly else "begin")
    connection.execute(_BEGIN, (tenant, f"{SCHEMA}, pg_temp", f"{STATEMENT_SECONDS}s"))
    return connection


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
def _postgres_errors() -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.IntegrityError as error:
        raise RowExists(error.diag.message_primary or "a key is taken") from None
    except (psycopg.DataError, UnicodeEncodeError):
        # A NUL, half of a surrogate pair, a number beyond 64 bits: the database is well, the request is not.
        raise TeamError(_NOT_KEPT) from None
    except psycopg.Error as error:
        # The text may quote the address, and an address may hold a password.
        reason = error.diag.message_primary or type(error).__name__
        raise DatabaseAway(f"the database cannot be used: {reason}") from None


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
    url: str, password: str | None = None, *, migrations: Sequence[Migration] = MIGRATIONS
) -> PostgresMigration:
    """Bring a PostgreSQL database to the current version, and make the role of the server.

    The owner of the tables runs it; others wait. Raise `ConfigurationError` for a newer version or a role that may not.
    """
    import psycopg

    with _postgres_errors(), closing(PostgresDatabase(url).connect()) as connection:
        connection.execute(f"set lock_timeout = '{MIGRATION_WAIT_SECONDS}s'")
        connection.execute("select pg_advisory_lock(hashtext('skillshelf.migrate'))")
        try:
            before = version_in(connection)
            require_version(before, len(migrations), "the database")
            with connection.transaction():
                _migrate(connection, before, migrations)
                password = _make_role(connection, password)
                for statement in (*postgres_policies(), *postgres_grants()):
                    connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConfigurationError(
                f"this role may not migrate the database: {error.diag.message_primary} "
                f"(use the owner of the database, which may create roles, or create the role {APP_ROLE} first)"
            ) from None
        return PostgresMigration(before, len(migrations), _address(url, password), password is not None)


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
        connection.execute(sql.SQL(f"alter role {APP_ROLE} password {{}}").format(sql.Literal(password)))
    return password


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
