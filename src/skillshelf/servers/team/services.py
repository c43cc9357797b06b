"""What the routes of the team server share: the database, the skills, the people and the counts."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from skillshelf.core.console import note
from skillshelf.core.limits import BLOB_CHECK_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold
from skillshelf.servers.team.catalogs import TeamCatalogs
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.identity import Authenticator, Issuer
from skillshelf.servers.team.metrics import Metrics
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.release_access import Releases
from skillshelf.servers.team.values import NO_SPACE, BlobsAway, BlobsFull, DatabaseAway, DatabaseFull

__all__ = ["ReadyCheck", "TeamServices"]


class _StorageCheck:
    """Knows whether a place of files can be used: `check` raises `BlobsAway` if not.

    It is asked behind the answers, since it may be slow, and not often.
    """

    def __init__(self, what: str, check: Callable[[], None], clock: Callable[[], float]) -> None:
        self._what = what
        self._check = check
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._reason = ""
        self._problem: str | None = "is being asked"

    def problem(self) -> str | None:
        """Return what is known, and ask again if that is old."""
        with self._lock:
            is_due = self._asked is None or self._clock() - self._asked >= BLOB_CHECK_SECONDS
            if is_due:
                self._asked = self._clock()
        if is_due:
            threading.Thread(target=self._ask, name="blobs-check", daemon=True).start()
        return self._problem

    def _ask(self) -> None:
        reason, problem = "", None
        try:
            self._check()
        except BlobsAway as error:
            # The reason holds a path or an address, and is for those who run the server.
            reason, problem = cut(fold(str(error)), 200), NO_SPACE if isinstance(error, BlobsFull) else "cannot be used"
        before, self._reason, self._problem = self._reason, reason, problem
        if reason != before:
            note(reason or f"{self._what} can be used again")


ReadyCheck = Callable[[], str | None]
"""Return why the server is not ready, or None; it runs in a thread."""


class _Check(NamedTuple):
    name: str
    run: ReadyCheck


class TeamServices:
    """The parts of a running server. A part that comes with more routes is added as an attribute."""

    def __init__(
        self,
        database: Database,
        catalogs: TeamCatalogs,
        authenticator: Authenticator,
        *,
        issuer: Issuer | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.database = database
        self.catalogs = catalogs
        self.authenticator = authenticator
        self.issuer = issuer
        self.releases: Releases | None = None
        self.published: PublishedCatalogs | None = None
        self.metrics = metrics or Metrics()
        self._checks = [_Check("database", self._database_problem)]
        self.metrics.watch("skillshelf_catalogs", lambda: len(catalogs))
        self.metrics.watch("skillshelf_database_up", lambda: self._database_problem() is None)

    def add_blobs(self, published: PublishedCatalogs, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Make it a condition for being ready that published files can be had, and kept on this machine."""
        store = _StorageCheck("the blob store", published.blobs.check, clock)
        local = _StorageCheck("the data folder", published.require_room, clock)
        for check in (store, local):
            check.problem()

        def problem() -> str | None:
            kept = local.problem() if published.has_releases() else None
            return store.problem() or kept or published.problem()

        self.add_check("blobs", problem)

    def add_check(self, name: str, run: ReadyCheck) -> None:
        """Add a condition for being ready."""
        self._checks.append(_Check(name, run))

    def problems(self) -> dict[str, str | None]:
        """Return what is not ready, by name; None for what is."""
        return {check.name: check.run() for check in self._checks}

    def _database_problem(self) -> str | None:
        try:
            self.database.check()
        except DatabaseAway as error:
            # The reason may hold a path or an address, and this route is public.
            return NO_SPACE if isinstance(error, DatabaseFull) else "does not answer"
        return None

    def close(self) -> None:
        """End the sessions of clients, and close the database."""
        if self.published is not None:
            self.published.close()
        self.catalogs.close()
        with suppress(DatabaseAway):
            self.database.close()
