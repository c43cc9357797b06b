"""Every route of a running team server with releases and journals, asked with what its default tenant has."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.teams import Answer, RunningTeam
from support.trees import Machine, write_skill

from anyio.from_thread import start_blocking_portal  # isort: skip

from skillshelf.core.environment import make_environment
from skillshelf.servers.mcp.http import ServerAccess, bind
from skillshelf.servers.team.blobs import open_blobs
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.routes import METRICS_ACCESS, TeamRoute
from skillshelf.servers.team.server import TeamServer

__all__ = ["SECRET", "STREAM", "WORD", "addresses_of", "asked", "reads_of", "team_with_releases"]

SECRET, WORD = "zanzibar-plan", "zanzibar"
STREAM = "ab" * 16


@contextmanager
def team_with_releases(machine: Machine, database: Database, folder: Path) -> Iterator[RunningTeam]:
    """A server with a release, a skill on its disk and a journal, all of the default tenant."""
    write_skill(machine.home / ".agents/skills", f"{WORD}-disk")
    database.add_tenant("acme")
    shelf = machine.shelf(trust="ask")
    blobs = open_blobs(str(folder / "blobs"), make_environment(str(folder), str(folder), {}))
    published = PublishedCatalogs(shelf, database, blobs, str(folder / "team"))
    server = TeamServer(shelf, database, published=published)
    address = ServerAccess("127.0.0.1", 0, None, frozenset())
    bound = bind(address)
    with start_blocking_portal() as portal:
        served = portal.start_task_soon(server.serve, address, bound, None)
        try:
            team = RunningTeam(server, database, bound.getsockname()[1], [])
            team.wait_until_ready()
            yield team
        finally:
            served.cancel()
            server.close()


def addresses_of(team: RunningTeam, route: TeamRoute) -> Iterator[str]:
    """The addresses of a route with what the default tenant has: its names, versions, digests and streams."""
    parts = {"name": SECRET, "version": "1", "stream": STREAM, "digest": _digest(team), "file": f"{SECRET}.zip"}
    parts |= {"session": f"{WORD}-session", "path": "SKILL.md", "slug": SECRET, "key": STREAM, "channel": "latest"}
    path = route.path.replace(":path}", "}")
    for name, value in parts.items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, f"the test knows no value for a part of {route.path}"
    yield f"{path}?q=plan&stream={STREAM}&name={SECRET}"


@functools.lru_cache(maxsize=1)
def _digest(team: RunningTeam) -> str:
    own = team.token("ada", "admin")
    release = next(one for one in team.get("/api/v1/releases", own).json["releases"] if one["name"] == SECRET)
    return str(release["artifact"].removeprefix("sha256:")[:16])


def asked(team: RunningTeam, route: TeamRoute, token: str | None) -> Iterator[tuple[str, Answer]]:
    """The answers of a route to a token, for each of its methods."""
    for method in ("GET", "POST", "DELETE") if route.method == "*" else (route.method,):
        for address in addresses_of(team, route):
            body = b"{}" if method in ("POST", "PUT") else None
            yield address, team.ask(method, address, token, body=body)


def reads_of(team: RunningTeam) -> list[TeamRoute]:
    """The routes that change nothing, first; then the others, as they stand in the table."""
    routes = [route for route in team.server.table.routes if route.access != METRICS_ACCESS]
    return sorted(routes, key=lambda route: route.method != "GET")
