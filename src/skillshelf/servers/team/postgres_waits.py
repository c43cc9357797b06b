"""Bound how long the server waits for a PostgreSQL that does not answer: one that hangs, or that the network lost.

Its library waits without end for an answer, and the limit on the time of a statement is kept by the database itself.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from skillshelf.core.limits import DATABASE_WAIT_SECONDS, STATEMENT_SECONDS
from skillshelf.servers.team.transactions import Row
from skillshelf.servers.team.values import DatabaseAway

if TYPE_CHECKING:
    import psycopg

__all__ = ["BEGIN_SECONDS", "WAIT_SECONDS", "Attempts", "Waits"]

WAIT_SECONDS: Final = STATEMENT_SECONDS + 2 * DATABASE_WAIT_SECONDS
"""Time for the answer to a statement, longer than the database itself allows for one."""

BEGIN_SECONDS: Final = DATABASE_WAIT_SECONDS
"""Time for the answer to the beginning of a transaction, which a database that is well gives within milliseconds."""

_LOOK_SECONDS = 0.25
_IDLE_LOOKS = 40
_SLOW_SECONDS = 1.0


class Waits:
    """The statements that wait for an answer. A thread breaks the connections of those that wait for too long."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[psycopg.Connection[Row], float] = {}
        self._runs = False

    @contextmanager
    def bounded(self, connection: "psycopg.Connection[Row]", seconds: float) -> Iterator[None]:
        """Break the connection if the block, which waits for an answer on it, is not left after this time."""
        with self._lock:
            self._until[connection] = time.monotonic() + seconds
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._watch, name="database-waits", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._until.pop(connection, None)

    def _watch(self) -> None:
        """Look at the statements that wait, until there was none for a while."""
        idle = 0
        while idle < _IDLE_LOOKS:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                idle = 0 if self._until else idle + 1
                now = time.monotonic()
                for connection in [one for one, until in self._until.items() if until <= now]:
                    del self._until[connection]
                    _break(connection)
                if idle >= _IDLE_LOOKS:
                    self._runs = False


def _break(connection: "psycopg.Connection[Row]") -> None:
    """End the stream of bytes of a connection, so that whoever waits for it is told that it was lost."""
    import psycopg

    with suppress(psycopg.Error, OSError), socket.socket(fileno=socket.dup(connection.fileno())) as stream:
        stream.shutdown(socket.SHUT_RDWR)


class Attempts:
    """The attempts to begin a transaction while the database hangs: one waits for it, the others are told at once.

    So a database that hangs costs one thread, and not all of those that could do without it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._is_tried = False

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Try in the block; raise `DatabaseAway` if the last attempt took long in vain, and another one is tried."""
        with self._lock:
            if self._problem is not None and self._is_tried:
                raise DatabaseAway(self._problem)
            is_first = self._problem is not None
            self._is_tried = self._is_tried or is_first
        began, problem = time.monotonic(), None
        try:
            yield
        except DatabaseAway as error:
            problem = str(error) if time.monotonic() - began >= _SLOW_SECONDS else None
            raise
        finally:
            with self._lock:
                self._problem = problem
                self._is_tried = self._is_tried and not is_first
