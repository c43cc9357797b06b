"""A team server in this process, with people who have tokens, and requests to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest

from support.trees import Machine
from support.waiting import wait_for

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[server]'")
pytest.importorskip("jwt", reason="needs the extra: pip install 'skillshelf[server]'")
pytest.importorskip("cryptography", reason="needs the extra: pip install 'skillshelf[server]'")
pytest.importorskip("watchfiles", reason="needs the extra: pip install 'skillshelf[server]'")

from anyio.from_thread import start_blocking_portal

from skillshelf.servers.mcp.http import HttpLimits, ServerAccess, bind
from skillshelf.servers.team.blobs import BlobStore
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.identity import Issuer
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.server import TeamServer
from skillshelf.servers.team.tokens import create_token

__all__ = ["Answer", "RunningTeam", "running_team"]


class Answer(NamedTuple):
    """An answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a JSON value."""
        return json.loads(self.body)


class RunningTeam:
    """A server that runs, and what a test asks of it."""

    def __init__(self, server: TeamServer, database: Database, port: int, lines: list[str]) -> None:
        self.server = server
        self.database = database
        self.port = port
        self.lines = lines
        self.url = f"http://127.0.0.1:{port}"

    def token(self, subject: str, *scopes: str, tenant: str = "default") -> str:
        """A new token."""
        return create_token(self.database, tenant, subject, scopes).token

    def ask(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """The answer to one request, on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {**({"authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, token: str | None = None, **options: Any) -> Answer:
        """The answer to a GET request."""
        return self.ask("GET", path, token, **options)

    def wait_until_ready(self) -> None:
        """Wait until all skills are read."""
        wait_for(lambda: True if self.get("/ready").status == 200 else None)


@contextmanager
def running_team(
    machine: Machine,
    database: Database,
    *,
    issuer: Issuer | None = None,
    limits: HttpLimits | None = None,
    values: Mapping[str, Any] | None = None,
    names: frozenset[str] = frozenset(),
    blobs: BlobStore | None = None,
) -> Iterator[RunningTeam]:
    """Run a server in a thread, with releases if it has a blob store; at the end it must stop."""
    lines: list[str] = []
    shelf = machine.shelf(trust="ask")
    published = PublishedCatalogs(shelf, database, blobs, str(machine.base / "team")) if blobs is not None else None
    server = TeamServer(shelf, database, issuer, values, limits=limits, published=published)
    address = ServerAccess("127.0.0.1", 0, None, names)
    bound = bind(address)
    with start_blocking_portal() as portal:
        served = portal.start_task_soon(server.serve, address, bound, lines.append)
        try:
            yield RunningTeam(server, database, bound.getsockname()[1], lines)
        finally:
            served.cancel()
            server.close()
