"""Databases for the tests of the team server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillshelf.servers.team.database import Database, PostgresDatabase, open_database
from support.postgres import PostgresCluster, postgres_cluster

if TYPE_CHECKING:
    from _pytest.fixtures import SubRequest


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresCluster]:
    """A PostgreSQL server for all tests of this process."""
    with postgres_cluster() as running:
        yield running


@pytest.fixture
def postgres(cluster: PostgresCluster) -> Iterator[PostgresDatabase]:
    """An empty team database in PostgreSQL, opened as the server opens it."""
    with closing(open_database(cluster.migrated_database())) as opened:
        assert isinstance(opened, PostgresDatabase)
        yield opened


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: SubRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty team database of each kind, opened as the server opens it."""
    if request.param == "postgresql":
        yield request.getfixturevalue("postgres")
        return
    with closing(open_database(f"sqlite:///{tmp_path}/team.sqlite")) as opened:
        yield opened
