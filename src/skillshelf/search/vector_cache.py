"""Keep the embeddings of texts in one SQLite file of the cache folder, by the digest of model and text.

A file that is damaged, locked, read-only or gone costs requests and never a search. No text is stored, and nothing
about queries.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from zlib import crc32

from skillshelf.catalog.cache import connect, database_damage
from skillshelf.core import files
from skillshelf.core.limits import EMBEDDING_WAIT_SECONDS, EMBEDDINGS_KEPT

__all__ = ["VECTOR_FILE", "VECTOR_FORMAT", "VectorCache", "vector_damage"]

VECTOR_FILE = "embeddings.sqlite3"

VECTOR_FORMAT = 1
"""The format of a row, part of the digest of its model: rows of another format are not found, and removed in time."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors "
    "(model BLOB, text BLOB, written INTEGER, data BLOB, PRIMARY KEY (model, text)) WITHOUT ROWID"
)
_DELETE_OLD = "DELETE FROM vectors WHERE written < (SELECT written FROM vectors ORDER BY written DESC LIMIT 1 OFFSET ?)"
_AT_ONCE = 500
"""Keys in one question; SQLite takes 999 values in older versions."""


class VectorCache:
    """The embeddings of one model. Without a `folder` they stay in memory."""

    def __init__(self, folder: str | None, model: str) -> None:
        self._path = f"{folder}/{VECTOR_FILE}" if folder is not None else None
        self._model = _digest(f"{VECTOR_FORMAT}\0{model}")
        self._rows: dict[bytes, bytes] = {}

    def fetch(self, texts: Sequence[str]) -> dict[str, bytes]:
        """Return the embeddings that are there, by text."""
        by_key = {_digest(text): text for text in texts}
        rows = self._rows if self._path is None else dict(self._fetched(list(by_key)))
        return {by_key[key]: rows[key] for key in by_key.keys() & rows.keys()}

    def store(self, vectors: Mapping[str, bytes]) -> None:
        """Store the embeddings of some texts, if that is possible."""
        rows = {_digest(text): vector for text, vector in vectors.items()}
        if self._path is None:
            self._rows |= rows
            return
        now = time.time_ns()
        sealed = [(self._model, key, now, crc32(vector).to_bytes(4, "big") + vector) for key, vector in rows.items()]
        self._write(
            ("INSERT OR REPLACE INTO vectors (model, text, written, data) VALUES (?, ?, ?, ?)", sealed),
            (_DELETE_OLD, [(EMBEDDINGS_KEPT - 1,)]),
        )

    def forget(self) -> None:
        """Remove all embeddings of this model: it is no longer the one that made them."""
        self._rows.clear()
        if self._path is not None:
            self._write(("DELETE FROM vectors WHERE model = ?", [(self._model,)]))

    def _fetched(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        import sqlite3

        if self._path is None or not files.is_own_file(self._path):
            return
        try:
            connection = connect(self._path, "ro")
            try:
                for start in range(0, len(keys), _AT_ONCE):
                    some = keys[start : start + _AT_ONCE]
                    query = f"SELECT text, data FROM vectors WHERE model = ? AND text IN ({','.join('?' * len(some))})"
                    for key, data in connection.execute(query, (self._model, *some)):
                        # Another program may have written the row, and SQLite does not see a flipped bit.
                        if isinstance(data, bytes) and crc32(data[4:]) == int.from_bytes(data[:4], "big"):
                            yield key, data[4:]
            finally:
                connection.close()
        except sqlite3.Error:
            return

    def _write(self, *statements: tuple[str, Sequence[tuple[object, ...]]]) -> None:
        """Execute statements in one transaction; a damaged file is removed, so that the next one can be made."""
        import sqlite3

        from skillshelf.core.disk_writes import make_own_folder, remove, write_new

        path = self._path
        if path is None or (files.kind_at(path) is not None and not files.is_own_file(path)):
            return
        try:
            make_own_folder(os.path.dirname(path))
            with suppress(FileExistsError):
                # SQLite would follow the umask, and a file that others can write is not used.
                write_new(path)
            connection = connect(path, "rwc", seconds=EMBEDDING_WAIT_SECONDS)
            try:
                # Damage by a power failure is detected and repaired; waiting for the disk would cost more.
                connection.execute("PRAGMA synchronous = OFF")
                with connection:
                    connection.execute(_TABLE)
                    for statement, rows in statements:
                        connection.executemany(statement, rows)
            finally:
                connection.close()
        except OSError:
            return
        except sqlite3.DatabaseError as error:
            # Locked, full or read-only is no damage: the next search tries again.
            if getattr(error, "sqlite_errorcode", None) in _DAMAGED:
                remove(path)


_DAMAGED = (1, 11, 26)
"""The codes of SQLite for a table of another shape, for a damaged file and for one that is no database."""


def vector_damage(path: str) -> str | None:
    """Return what is wrong with a file of embeddings, or None if it can be used."""
    return database_damage(path, "SELECT model, text, written, data FROM vectors LIMIT 1")


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
