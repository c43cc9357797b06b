"""Every route of a server with releases and journals: what the token of another tenant sees of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.journal_streams import chain, events
from support.published_servers import packed
from support.teams import Answer, RunningTeam
from support.trees import Machine, write_skill

from anyio.from_thread import start_blocking_portal  # isort: skip

from skillshelf.core.environment import make_environment
from skillshelf.servers.mcp.http import ServerAccess, bind
from skillshelf.servers.team.blobs import open_blobs
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.routes import METRICS_ACCESS, PUBLIC, TeamRoute
from skillshelf.servers.team.server import TeamServer

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


@pytest.fixture
def team(machine: Machine, database: Database, tmp_path: Path) -> Iterator[RunningTeam]:
    with team_with_releases(machine, database, tmp_path) as running:
        own = running.token("ada", "admin")
        data = packed(SECRET, f"The {WORD} text.")
        published = running.ask("POST", "/api/v1/releases?version=1", own, body=data)
        assert published.status == 201, published.body
        lines = b"".join(line + b"\n" for line in chain(events(4, session=f"{WORD}-session")))
        stored = running.ask("POST", f"/api/v1/journal?stream={STREAM}&machine={WORD}-box", own, body=lines)
        assert stored.status == 200, stored.body
        yield running


def addresses_of(team: RunningTeam, route: TeamRoute) -> Iterator[str]:
    """The addresses of a route with what the default tenant has: its names, versions, digests and streams."""
    own = team.token("ada", "admin")
    (release,) = team.get("/api/v1/releases", own).json["releases"]
    digest = release["artifact"].removeprefix("sha256:")[:16]
    parts = {"name": SECRET, "version": "1", "stream": STREAM, "digest": digest, "file": f"{SECRET}.zip"}
    parts |= {"session": f"{WORD}-session", "path": "SKILL.md", "slug": SECRET, "key": STREAM, "channel": "latest"}
    path = route.path.replace(":path}", "}")
    for name, value in parts.items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, f"the test knows no value for a part of {route.path}"
    yield f"{path}?q=plan&stream={STREAM}&name={SECRET}"


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


def test_the_table_has_the_routes_of_releases_and_of_journals(team: RunningTeam) -> None:
    own = team.token("ada", "admin")

    seen = {
        route.path
        for route in reads_of(team)
        if route.method == "GET" and any(WORD.encode() in answer.body for _, answer in asked(team, route, own))
    }

    assert {
        "/api/v1/skills",
        "/api/v1/search",
        "/api/v1/releases",
        "/api/v1/skills/{name}/versions",
        "/api/v1/journal",
        "/api/v1/journal/streams",
        "/api/v1/journal/sessions",
        "/.well-known/agent-skills/index.json",
    } <= seen


def test_no_route_tells_another_tenant_of_a_release_a_journal_or_a_digest(team: RunningTeam) -> None:
    other = team.token("eve", "admin", tenant="acme")

    for route in reads_of(team):
        for address, answer in asked(team, route, other):
            # What the request itself names may be repeated: it says nothing that its sender did not know.
            said = answer.body
            for known in (SECRET, STREAM, address.partition("?")[0].rpartition("/")[2]):
                said = said.replace(known.encode(), b"")
            assert WORD.encode() not in said, (route.method, address)
            assert b"ada" not in said.replace(b"metadata", b""), (route.method, address)


def test_what_another_tenant_has_is_answered_like_what_does_not_exist(team: RunningTeam) -> None:
    other = team.token("eve", "admin", tenant="acme")

    for route in reads_of(team):
        if "{" not in route.path or route.access == PUBLIC:
            continue
        for address, there in asked(team, route, other):
            method = "POST" if route.method == "*" else route.method
            absent = address.replace(SECRET, "nowhere-skill").replace(STREAM, "cd" * 16)
            body = b"{}" if method in ("POST", "PUT") else None
            nowhere = team.ask(method, absent, other, body=body)
            assert there.status == nowhere.status, (route.method, address)
            same = there.body.replace(SECRET.encode(), b"?").replace(STREAM.encode(), b"?")
            assert same == nowhere.body.replace(b"nowhere-skill", b"?").replace(b"cd" * 16, b"?"), address


def test_another_tenant_counts_nothing(team: RunningTeam) -> None:
    other = team.token("eve", "admin", tenant="acme")

    for path, member in {
        "/api/v1/skills": "skills",
        "/api/v1/search?q=plan": "results",
        "/api/v1/releases": "releases",
        "/api/v1/journal/streams": "streams",
        "/api/v1/journal/sessions": "sessions",
        "/api/v1/journal/alarms": "alarms",
        "/api/v1/usage": "usage",
        "/.well-known/agent-skills/index.json": "skills",
    }.items():
        answer = team.get(path, other)
        assert (path, answer.json[member]) == (path, [])
        assert answer.headers.get("skillshelf-revision", "0") == "0"


def test_nobody_changes_what_another_tenant_has(team: RunningTeam) -> None:
    own, other = team.token("ada", "admin"), team.token("eve", "admin", tenant="acme")
    before = team.get(f"/api/v1/skills/{SECRET}/versions", own).json

    for route in reads_of(team):
        if route.method not in ("GET", "*"):
            list(asked(team, route, other))

    assert team.get(f"/api/v1/skills/{SECRET}/versions", own).json == before


def test_every_route_of_releases_and_journals_answers_401_without_a_token(team: RunningTeam) -> None:
    for route in reads_of(team):
        if route.access == PUBLIC:
            continue
        for token in (None, "sks_default_" + "A" * 43, "sks_acme_" + "A" * 43, "nonsense"):
            for address, answer in asked(team, route, token):
                assert answer.status == 401, (route.method, address, token)
                assert WORD.encode() not in answer.body
