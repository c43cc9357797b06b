"""What the routes of the team server share: the database, the skills, the people and the counts."""

from collections.abc import Callable
from contextlib import suppress

from skillshelf.core.records import NamedTuple
from skillshelf.servers.team.catalogs import TeamCatalogs
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.identity import Authenticator, Issuer
from skillshelf.servers.team.metrics import Metrics
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.release_access import Releases
from skillshelf.servers.team.values import DatabaseAway

__all__ = ["ReadyCheck", "TeamServices"]

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

    def add_check(self, name: str, run: ReadyCheck) -> None:
        """Add a condition for being ready."""
        self._checks.append(_Check(name, run))

    def problems(self) -> dict[str, str | None]:
        """Return what is not ready, by name; None for what is."""
        return {check.name: check.run() for check in self._checks}

    def _database_problem(self) -> str | None:
        try:
            self.database.check()
        except DatabaseAway:
            # The reason may hold a path or an address, and this route is public.
            self.metrics.set("skillshelf_database_up", 0)
            return "does not answer"
        self.metrics.set("skillshelf_database_up", 1)
        return None

    def close(self) -> None:
        """End the sessions of clients, and close the database."""
        if self.published is not None:
            self.published.close()
        self.catalogs.close()
        with suppress(DatabaseAway):
            self.database.close()
