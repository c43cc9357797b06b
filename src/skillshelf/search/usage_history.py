"""Keep which skills were loaded after which searches, in `usage.sqlite` of the user's state folder.

A search is kept as salted hashes of its terms and of its results, for ten minutes. A load of one of its results within
that time makes it a use: the hashed terms, the real path of the SKILL.md and the time. No text of a query is kept. A
file that is newer, damaged or not the user's own is never written over, and costs one sentence and its bonuses.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress

from skillshelf.core import files
from skillshelf.core.disk_writes import make_own_folder, remove, write_new
from skillshelf.core.environment import Environment, user_state_folder
from skillshelf.core.limits import (
    USAGE_A_DAY,
    USAGE_BYTES,
    USAGE_ROWS,
    USAGE_SEARCHES,
    USAGE_SECONDS,
    USAGE_TERMS,
    USAGE_WAIT_SECONDS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.search.usage_prior import HASH_BYTES, PastUse, UsagePrior, hashed_term

__all__ = ["USAGE_VERSION", "UnusableUsage", "UsageCount", "UsageHistory", "UsageSummary", "usage_path"]

USAGE_VERSION = 1
_FILE = "usage.sqlite"
_DAY = 86_400
_SALT_BYTES = 16
_USES_KEPT = USAGE_ROWS - USAGE_SEARCHES - 1
"""Uses in the file: it has one row besides uses and searches."""

_TABLES = (
    "CREATE TABLE history (salt BLOB NOT NULL, removed INTEGER NOT NULL)",
    "CREATE TABLE searches (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, terms BLOB NOT NULL, results BLOB NOT NULL)",
    "CREATE TABLE uses (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, path BLOB NOT NULL, terms BLOB NOT NULL)",
)


class UnusableUsage(ConfigurationError):
    """The history of use cannot be used: nothing in it counts, and it is never written over."""


class _FileReplaced(Exception):
    """Another process cleared the history while this one waited for its lock."""


class UsageCount(NamedTuple):
    """The uses of one skill."""

    path: str
    loads: int
    last: int


class UsageSummary(NamedTuple):
    """The content of a history: its uses by skill, its rows, and how many old uses it had to drop."""

    skills: tuple[UsageCount, ...] = ()
    rows: int = 0
    removed: int = 0
    since: int | None = None


def usage_path(environment: Environment) -> str | None:
    """Return the path of the history, whether or not it exists; None without a home folder."""
    folder = user_state_folder(environment)
    return f"{folder}/{_FILE}" if folder is not None else None


class UsageHistory:
    """The history of use in one file; many processes may use it at once. `clock` returns the time in seconds."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._known: tuple[tuple[int, ...] | None, UsagePrior | None] = (None, None)

    def prior(self) -> UsagePrior | None:
        """Return the uses to rank by, or None if there are none; raise UnusableUsage."""
        state = files.state_at(self.path)
        if state is None:
            return None
        if self._known[0] != state:
            with self._reading() as connection:
                if connection is None:
                    return None
                salt = _salt(connection)
                query = "SELECT path, terms FROM uses ORDER BY id DESC LIMIT ?"
                found = [_use(*row) for row in connection.execute(query, (USAGE_ROWS,))]
            uses = tuple(use for use in found if use is not None)
            self._known = state, UsagePrior(uses, salt) if uses else None
        return self._known[1]

    def add_search(self, terms: Iterable[str], results: Iterable[str]) -> None:
        """Keep a search for ten minutes: its terms, the rarest first, and the real paths of its results."""
        listed, found = list(terms)[:USAGE_TERMS], list(results)
        if not listed or not found:
            return
        with self._writing() as connection:
            salt, now = _salt(connection), int(self._clock())
            hashes = (_joined(sorted(hashed_term(text, salt) for text in texts)) for texts in (listed, found))
            _drop_searches(connection, now)
            connection.execute("INSERT INTO searches (at, terms, results) VALUES (?, ?, ?)", (now, *hashes))
            kept = "SELECT id FROM searches ORDER BY id DESC LIMIT ?"
            connection.execute(f"DELETE FROM searches WHERE id NOT IN ({kept})", (USAGE_SEARCHES,))

    def add_load(self, path: str) -> bool:
        """Count the load of a skill for the last search that found it; return False if it does not count.

        Only a result counts: a skill that a search did not find says nothing about its words. One search counts once
        for a skill, and a skill a few times a day, so that no script can vote all day long.
        """
        if files.kind_at(self.path) is None:
            return False
        with self._writing() as connection:
            salt, now = _salt(connection), int(self._clock())
            wanted = hashed_term(path, salt)
            _drop_searches(connection, now)
            query = "SELECT id, terms, results FROM searches ORDER BY id DESC"
            searches = ((number, terms, _parted(results)) for number, terms, results in connection.execute(query))
            found = next((one for one in searches if wanted in one[2]), None)
            if found is None:
                return False
            number, terms, results = found
            left = _joined(one for one in results if one != wanted)
            connection.execute("UPDATE searches SET results = ? WHERE id = ?", (left, number))
            connection.execute("DELETE FROM searches WHERE results = ?", (b"",))
            encoded, day = files.path_bytes(path), now // _DAY * _DAY
            today = "SELECT count(*) FROM uses WHERE path = ? AND at >= ? AND at < ?"
            if connection.execute(today, (encoded, day, day + _DAY)).fetchone()[0] >= USAGE_A_DAY:
                return False
            connection.execute("INSERT INTO uses (at, path, terms) VALUES (?, ?, ?)", (now, encoded, terms))
            # By the order of writing and not by the time, which a clock that was set back would confuse.
            kept = "SELECT id FROM uses ORDER BY id DESC LIMIT ?"
            dropped = connection.execute(f"DELETE FROM uses WHERE id NOT IN ({kept})", (_USES_KEPT,)).rowcount
            connection.execute("UPDATE history SET removed = removed + ?", (dropped,))
            return True

    def summary(self) -> UsageSummary:
        """Return what the file holds; raise UnusableUsage."""
        if files.kind_at(self.path) is None:
            return UsageSummary()
        with self._reading() as connection:
            if connection is None:
                return UsageSummary()
            _salt(connection)
            rows = connection.execute("SELECT path, count(*), max(at) FROM uses GROUP BY path").fetchall()
            total = "SELECT (SELECT count(*) FROM uses) + (SELECT count(*) FROM searches), removed FROM history"
            count, removed = connection.execute(total).fetchone()
            since = connection.execute("SELECT min(at) FROM uses").fetchone()[0]
        counts = [UsageCount(_text(path), loads, last) for path, loads, last in rows if isinstance(path, bytes)]
        counts.sort(key=lambda one: (-one.loads, one.path))
        return UsageSummary(tuple(counts), count, removed, since)

    def clear(self) -> bool:
        """Remove the file, whatever it is; return False if there was none."""
        if files.kind_at(self.path) is None:
            return False
        try:
            # While a process writes, its journal lies beside the file: it must not outlive it.
            with closing(self._connection()) as connection:
                connection.execute("BEGIN EXCLUSIVE")
                remove(self.path)
        except (sqlite3.Error, UnusableUsage) as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise SkillError(f"{self.path} cannot be removed: another program holds its lock") from None
            remove(self.path)
        if (kind := files.kind_at(self.path)) is not None:
            raise SkillError(f"{self.path} cannot be removed: it is a {kind} that this user may not remove")
        for end in ("-journal", "-wal", "-shm"):
            remove(self.path + end)
        return True

    # The file -------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give a connection, or None if the file is empty: a process that makes its tables is at work, or was ended."""
        with self._told("read"), closing(self._connection()) as connection:
            yield connection if self._require_version(connection) else None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection in a transaction that is committed at the end; make the file if there is none."""
        with self._told("written"):
            connection = self._begun()
            try:
                if not self._require_version(connection):
                    self._make_tables(connection)
                yield connection
                connection.execute("COMMIT")
            finally:
                # Two states within one tick of the clock look alike.
                self._known = (None, None)
                connection.close()

    def _begun(self) -> sqlite3.Connection:
        """Return a connection that holds the lock of the file at the path."""
        for _ in range(3):
            if files.kind_at(self.path) is None:
                make_own_folder(os.path.dirname(self.path))
                with suppress(FileExistsError):
                    write_new(self.path)
            before = files.identity_at(self.path)
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            if files.identity_at(self.path) == before:
                return connection
            # It was cleared before this process had the lock, which is that of a file without a name.
            connection.close()
        raise _FileReplaced

    def _connection(self) -> sqlite3.Connection:
        if not files.is_own_file(self.path):
            raise UnusableUsage(f"{self.path}: not a file of yours that only you can write; nothing in it counts")
        if ((files.stamp_at(self.path) or ())[2:3] or (0,))[0] > USAGE_BYTES:
            raise UnusableUsage(f"{self.path}: has more than {USAGE_BYTES} bytes; nothing in it counts")
        escaped = self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        # Also to read: a process that was ended may have left a change that is to be taken back.
        return sqlite3.connect(f"file:{escaped}?mode=rw", uri=True, timeout=USAGE_WAIT_SECONDS, isolation_level=None)

    @contextmanager
    def _told(self, verb: str) -> Iterator[None]:
        """Turn what can go wrong with the file into UnusableUsage, with one sentence."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise UnusableUsage(f"{self.path}: cannot be {verb}: {error}") from None
        except (sqlite3.Error, UnicodeError, ValueError, TypeError, OverflowError):
            raise self._damaged() from None
        except OSError as error:
            raise UnusableUsage(f"{self.path}: cannot be {verb}: {(error.strerror or str(error)).lower()}") from None
        except _FileReplaced:
            raise UnusableUsage(f"{self.path}: cannot be {verb}: it is cleared again and again") from None

    def _require_version(self, connection: sqlite3.Connection) -> bool:
        """Return True for a file of this version, False for one without tables; raise UnusableUsage."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > USAGE_VERSION:
            newer = f"version {version} is of a newer skillshelf (this one reads {USAGE_VERSION})"
            raise UnusableUsage(f"{self.path}: {newer}; nothing in it counts")
        # A view or a trigger of another program is not executed: it may never end.
        found = connection.execute("SELECT sql FROM sqlite_master LIMIT ?", (len(_TABLES) + 1,)).fetchall()
        if version == USAGE_VERSION and sorted(map(str, (sql for (sql,) in found))) == sorted(_TABLES):
            return True
        if version == 0 and not found:
            return False
        raise self._damaged()

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        for table in _TABLES:
            connection.execute(table)
        connection.execute("INSERT INTO history (salt, removed) VALUES (?, 0)", (os.urandom(_SALT_BYTES),))
        connection.execute(f"PRAGMA user_version = {USAGE_VERSION}")

    def _damaged(self) -> UnusableUsage:
        help_text = "nothing in it counts; `skillshelf usage --clear` removes it"
        return UnusableUsage(f"{self.path}: not a history of use; {help_text}")


def _salt(connection: sqlite3.Connection) -> bytes:
    row = connection.execute("SELECT salt FROM history").fetchone()
    if row is None or not isinstance(row[0], bytes) or len(row[0]) != _SALT_BYTES:
        raise ValueError("no salt")
    return row[0]


def _drop_searches(connection: sqlite3.Connection, now: int) -> None:
    """Remove the searches of more than ten minutes ago, and those of a time to come: the clock was set back."""
    connection.execute("DELETE FROM searches WHERE at < ? OR at > ?", (now - USAGE_SECONDS, now))


def _use(path: object, terms: object) -> PastUse | None:
    """Return a row as a use; None if another program wrote something else."""
    if not isinstance(path, bytes) or not isinstance(terms, bytes) or len(terms) > USAGE_TERMS * HASH_BYTES:
        return None
    return PastUse(_text(path), frozenset(_parted(terms)))


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _joined(hashes: Iterable[bytes]) -> bytes:
    return b"".join(hashes)


def _parted(hashes: bytes) -> list[bytes]:
    return [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]
