"""The team database in SQLite: a file for each tenant, so that a transaction cannot reach another one."""

import errno
import re
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

from skillshelf.core import files
from skillshelf.core.disk_writes import free_bytes, locked_within, make_own_folder, move, remove, write_new
from skillshelf.core.limits import (
    DATABASE_CONNECTIONS,
    DATABASE_WAIT_SECONDS,
    DISK_LEAST_BYTES,
    MIGRATION_WAIT_SECONDS,
    TENANTS_OPEN,
)
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.migrations import MIGRATIONS, Migration, sqlite_statements
from skillshelf.servers.team.transactions import NOT_KEPT, Engine, Row, Transaction, now_ms, require_version
from skillshelf.servers.team.values import (
    DEFAULT_TENANT,
    NO_SPACE,
    SLUG,
    DatabaseAway,
    DatabaseFull,
    RowExists,
    TeamError,
    checked_slug,
    no_such_tenant,
)

__all__ = ["SqliteDatabase"]

_FILE_OF_ITS_OWN = re.compile(r"lock|v[0-9]+")
"""What follows the name of a database without an extension in the files beside it that are no tenants."""


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
        self._idle: OrderedDict[_File, list[sqlite3.Connection]] = OrderedDict()
        self._migrated: set[_File] = set()
        self.version_before = 0
        """The version that the file of the default tenant had; 0 if it was made now."""
        with _sqlite_errors(self.path):
            make_own_folder(self.path.rpartition("/")[0] or "/")
            self._make(DEFAULT_TENANT)

    def file_of(self, tenant: str) -> str:
        """Return the file of a tenant, whether or not it exists."""
        if tenant == DEFAULT_TENANT:
            return self.path
        folder, _, name = self.path.rpartition("/")
        stem, dot, end = name.rpartition(".")
        if self._is_taken(checked_slug(tenant)):
            raise no_such_tenant(tenant)
        return f"{folder}/{stem or end}.{tenant}{dot + end if stem else ''}"

    def _is_taken(self, slug: str) -> bool:
        """Return True if the file of a tenant would be the lock of the database, or the copy of an older version."""
        has_extension = "." in self.path.rpartition("/")[2].strip(".")
        return not has_extension and _FILE_OF_ITS_OWN.fullmatch(slug) is not None

    @contextmanager
    def transaction(self, tenant: str, *, readonly: bool = False) -> Iterator[Transaction]:
        """Begin a transaction; one that writes waits for the one before it."""
        path = self.file_of(tenant)
        with _sqlite_errors(path):
            file = self._current_file(tenant, path)
            connection = self._connection(file)
            try:
                connection.execute("begin" if readonly else "begin immediate")
                yield _SqliteTransaction(tenant, connection)
                connection.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.rollback()
                connection.close()
                raise
            self._give_back(file, connection)

    def add_tenant(self, slug: str) -> bool:
        """Make the file of a tenant."""
        if self._is_taken(slug):
            raise ConfigurationError(
                f"{self.path}.{slug} is a file of the database itself (name the tenant otherwise, or the database with "
                "an extension, for example team.sqlite)"
            )
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
        return [DEFAULT_TENANT, *sorted(slug for slug in {*found} - {DEFAULT_TENANT} if not self._is_taken(slug))]

    def check(self) -> None:
        """Read one row of the default tenant, and look whether more could be written."""
        with self.transaction(DEFAULT_TENANT, readonly=True) as transaction:
            transaction.row("select id from tenant")
            if free_bytes(self.path) < DISK_LEAST_BYTES:
                raise DatabaseFull(NO_SPACE)

    def empty_log(self, tenant: str) -> None:
        """Write the log of a tenant's file into it, and empty the log: it has what was removed from the file.

        While somebody reads, the log stays until it is written over.
        """
        path = self.file_of(tenant)
        with _sqlite_errors(path), closing(_connect(path)) as connection:
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()

    def close(self) -> None:
        """Close the connections that are not used."""
        with self._lock:
            idle, self._idle = self._idle, OrderedDict()
        for connection in (one for of_file in idle.values() for one in of_file):
            connection.close()

    def _current_file(self, tenant: str, path: str) -> "_File":
        """Return the file at a path, at the current version.

        A connection outlives the removal and the replacement of its file, and would go on writing to nothing.
        """
        identity = files.identity_at(path)
        if identity is None:
            # Without the file of the default tenant, too, it is the disk that is away.
            if tenant != DEFAULT_TENANT and files.kind_at(self.path) is not None:
                raise no_such_tenant(tenant)
            raise DatabaseAway(f"{path} is gone")
        if (path, identity) not in self._migrated:
            self._migrate(path)
        return path, identity

    def _connection(self, file: "_File") -> sqlite3.Connection:
        with self._lock:
            idle = self._idle.get(file)
            if idle:
                return idle.pop()
        return _connect(file[0])

    def _give_back(self, file: "_File", connection: sqlite3.Connection) -> None:
        closed: list[sqlite3.Connection] = []
        with self._lock:
            idle = self._idle.setdefault(file, [])
            (idle if len(idle) < DATABASE_CONNECTIONS else closed).append(connection)
            self._idle.move_to_end(file)
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
                if path == self.path:
                    self.version_before = version
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
            identity = files.identity_at(path)
        if identity is not None:
            self._migrated.add((path, identity))


_File = tuple[str, tuple[int, int]]
"""A path, and the identity of the file that is there."""


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
    # What is removed is overwritten, also where SQLite was built without that.
    connection.execute("pragma secure_delete = on")
    return connection


def _uri_path(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _copy(connection: sqlite3.Connection, path: str) -> None:
    """Copy a database whole, also what is only in its log; nothing is left of a copy that fails."""
    made = f"{path}.new"
    _remove_unfinished(made)
    try:
        write_new(made)
        with closing(sqlite3.connect(made)) as target:
            connection.backup(target)
        remove(path)
        move(made, path)
    except BaseException:
        # What it took of a full disk is needed by others.
        _remove_unfinished(made)
        raise


def _remove_unfinished(path: str) -> None:
    """Remove a database that was not finished, with the log by which SQLite would undo what it lacks."""
    remove(f"{path}-journal")
    remove(path)


@contextmanager
def _sqlite_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise RowExists(str(error)) from None
    except (sqlite3.DataError, UnicodeEncodeError, OverflowError):
        raise TeamError(NOT_KEPT) from None
    except sqlite3.Error as error:
        is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        # Writing the shared memory beside a log fails as an error of input and output, whatever the reason is.
        if is_full or (_is_failed_write(error) and free_bytes(path.rpartition("/")[0] or "/") < DISK_LEAST_BYTES):
            raise DatabaseFull(NO_SPACE) from None
        raise DatabaseAway(f"the database {path} cannot be used: {error}") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DatabaseFull(NO_SPACE) from None
        raise DatabaseAway(f"the database {path} cannot be used: {error.strerror or error}") from None


def _is_failed_write(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
