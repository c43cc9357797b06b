"""Cache accepted SKILL.md files of earlier scans in one SQLite file.

An entry counts only while its file has the stamp it was read with, so a cache that is old, shared by many
processes, damaged, locked or gone makes a listing slower and never wrong. All skills of one root are one row:
a row for each would take longer to fetch than to check. A checksum guards each row, because `marshal`
must not be given damaged bytes.
"""

import marshal
import os
import sys
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from skillshelf import __version__
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import CACHE_FROM, CACHE_ROWS, CACHE_WAIT_SECONDS, SETTLED_NS
from skillshelf.core.values import CacheEntry, Root, Stamp

if TYPE_CHECKING:
    import sqlite3

__all__ = ["CACHE_FORMAT", "FILE_NAME", "Cache", "cache_damage", "connect", "database_damage"]

FILE_NAME = "skills.sqlite3"

_TABLE = (
    "CREATE TABLE IF NOT EXISTS roots "
    "(root TEXT, reading TEXT, written INTEGER, data BLOB, PRIMARY KEY (root, reading)) WITHOUT ROWID"
)
_DELETE_OLD = "DELETE FROM roots WHERE written < (SELECT written FROM roots ORDER BY written DESC LIMIT 1 OFFSET ?)"

CACHE_FORMAT = 2
"""The format of an entry. Raise it whenever a file gives another entry than before within one version."""


class Cache:
    """The entries of each root under one profile. Without a `folder` they stay in memory."""

    def __init__(self, folder: str | None, profile: Profile) -> None:
        self._folder = folder
        self._profile = profile
        # By root and by who reads: a program may give up rights while it runs.
        self._rows: dict[tuple[str, str], bytes] = {}
        self._fetched: dict[tuple[str, str], dict[str, CacheEntry]] = {}

    def entries(self, root: Root) -> Mapping[str, CacheEntry]:
        """Return the entries of the skills below a root, by path."""
        key = _key(root), self.reading
        if key not in self._rows:
            self._rows[key] = self._fetch(*key)
        self._fetched[key] = _decode(self._rows[key])
        return self._fetched[key]

    def keep(self, root: Root, entries: Mapping[str, CacheEntry], *, scanned_at_ns: int) -> None:
        """Store the skills that a scan, begun at that time, found below a root.

        A file that had just changed is left out: another change within the same tick of the clock would not show.
        """
        key, latest = (_key(root), self.reading), scanned_at_ns - SETTLED_NS
        fetched = self._fetched.pop(key, {})
        settled = {path: entry for path, entry in entries.items() if entry.stamp[4] <= latest}
        is_known = len(settled) == len(fetched) and all(fetched.get(path) is settled[path] for path in settled)
        if is_known or len(settled) < CACHE_FROM:
            return
        self._rows[key] = _encode(settled)
        self._store(*key, scanned_at_ns)

    @property
    def reading(self) -> str:
        """The key of all that decides an entry besides its file: version, parser, profile, and who reads."""
        # Which files may be read depends on the groups that a login, `sg` or `sudo` gave this process, and may change.
        return f"{self._versions} {files.reader()!r}"

    @cached_property
    def _versions(self) -> str:
        versions = (CACHE_FORMAT, __version__, sys.implementation.cache_tag, marshal.version, _parser_stamp())
        return repr((versions, self._profile))

    def _fetch(self, root: str, reading: str) -> bytes:
        path = self._path()
        if path is None or not files.is_own_file(path):
            return b""
        import sqlite3

        try:
            connection = connect(path, "ro")
            try:
                query = "SELECT data FROM roots WHERE root = ? AND reading = ?"
                row = connection.execute(query, (root, reading)).fetchone()
            finally:
                connection.close()
        except (sqlite3.Error, UnicodeDecodeError):
            return b""
        return row[0] if row and isinstance(row[0], bytes) else b""

    def _store(self, root: str, reading: str, now_ns: int) -> None:
        path = self._path()
        if path is None or (files.kind_at(path) is not None and not files.is_own_file(path)):
            return
        import sqlite3

        from skillshelf.core.disk_writes import make_own_folder, remove

        try:
            make_own_folder(os.path.dirname(path))
            self._write(path, (root, reading, now_ns, self._rows[root, reading]))
        except OSError:
            return
        except sqlite3.OperationalError as error:
            # Only the general error means damage; after locked, full or read-only, the next scan tries again.
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR:
                remove(path)
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            remove(path)

    def _write(self, path: str, row: tuple[str, str, int, bytes]) -> None:
        connection = connect(path, "rwc")
        try:
            # Damage by a power failure is detected and repaired; waiting for the disk would cost more.
            connection.execute("PRAGMA synchronous = OFF")
            with connection:
                connection.execute(_TABLE)
                connection.execute(
                    "INSERT OR REPLACE INTO roots (root, reading, written, data) VALUES (?, ?, ?, ?)", row
                )
                connection.execute(_DELETE_OLD, (CACHE_ROWS - 1,))
        finally:
            connection.close()

    def _path(self) -> str | None:
        return None if self._folder is None else f"{self._folder}/{FILE_NAME}"


def cache_damage(path: str) -> str | None:
    """Return what is wrong with a cache file, or None if it can be used."""
    return database_damage(path, "SELECT root, reading, written, data FROM roots LIMIT 1")


def database_damage(path: str, query: str) -> str | None:
    """Return what is wrong with a database of the cache folder that must answer a query, or None."""
    import sqlite3

    if not files.is_own_file(path):
        return "it is not a file of yours that only you can write, so it is not used"
    try:
        connection = connect(path, "ro")
        try:
            problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            connection.execute(query).fetchone()
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return f"it is damaged: {error}"
    return None if problem == "ok" else f"it is damaged: {problem}"


def connect(path: str, mode: Literal["ro", "rwc"], *, seconds: float = CACHE_WAIT_SECONDS) -> "sqlite3.Connection":
    """Open a database in the cache folder; wait some seconds for another process that writes it."""
    import sqlite3

    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(f"file:{escaped}?mode={mode}", uri=True, timeout=seconds)


def _key(root: Root) -> str:
    """Return the key of a root, with everything that its place in the profile decides."""
    # As repr: SQLite cannot store a path that is not UTF-8.
    return repr(root)


def _parser_stamp() -> Stamp | None:
    """Return the stamp of the YAML parser, without the cost of importing it or `importlib.util`."""
    stamps = (files.stamp_at(f"{folder}/ryaml/__init__.py") for folder in sys.path)
    return next((stamp for stamp in stamps if stamp is not None), None)


def _encode(entries: Mapping[str, CacheEntry]) -> bytes:
    try:
        data = marshal.dumps({path: tuple(entry) for path, entry in entries.items()})
    except ValueError:
        return b""
    return crc32(data).to_bytes(4, "big") + data


def _decode(row: bytes) -> dict[str, CacheEntry]:
    data = row[4:]
    if not data or crc32(data) != int.from_bytes(row[:4], "big"):
        return {}
    try:
        entries = marshal.loads(data)
        made = dict(zip(entries, map(CacheEntry._make, entries.values()), strict=True))
    except (AttributeError, EOFError, TypeError, ValueError):
        return {}
    # A right checksum does not prove a right shape: another program may have written the row.
    return made if all(map(_has_shape, made, made.values())) else {}


_SHAPE = tuple, str, str, str, dict, tuple


def _has_shape(path: object, entry: CacheEntry) -> bool:
    """Return whether an entry has the types that others rely on; a stamp that is wrong matches no file."""
    return (
        type(path) is str
        and tuple(map(type, entry)) == _SHAPE
        and set(map(type, entry.fields)) <= {str}
        and (not entry.warnings or all(map(_is_warning, entry.warnings)))
    )


def _is_warning(warning: object) -> bool:
    return type(warning) is tuple and tuple(map(type, warning)) in ((str, str, int), (str, str, type(None)))
