"""Every route of a server with releases and journals: what the token of another tenant sees of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from support.journal_streams import chain, events
from support.published_servers import packed
from support.team_routes import SECRET, STREAM, WORD, addresses_of, asked, reads_of, team_with_releases
from support.teams import RunningTeam
from support.trees import Machine

from skillshelf.servers.team.database import Database
from skillshelf.servers.team.routes import PUBLIC


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
            assert not re.search(rb"\bada\b", said), (route.method, address)


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


def test_the_cookie_of_a_login_reads_and_changes_nothing_on_any_route(team: RunningTeam) -> None:
    form = f"token={team.token('ada', 'admin')}".encode()
    given = {"cookie": team.ask("POST", "/login", body=form).headers["set-cookie"].partition(";")[0]}

    for route in reads_of(team):
        if route.access == PUBLIC:
            continue
        for method in ("GET", "POST", "DELETE") if route.method == "*" else (route.method,):
            for address in addresses_of(team, route):
                answer = team.ask(method, address, headers=given, body=b"{}" if method != "GET" else None)
                assert (answer.status == 401) == (route.method != "GET"), (method, address)


def test_no_answer_is_kept_for_others_or_taken_for_another_type(team: RunningTeam) -> None:
    own = team.token("ada", "admin")

    for route in reads_of(team):
        if route.access != PUBLIC and route.method == "GET":
            for address, answer in asked(team, route, own):
                assert answer.headers["cache-control"] in ("private, no-cache", "no-store"), address
                assert answer.headers["x-content-type-options"] == "nosniff", address


def test_the_openapi_document_is_true_of_every_answer_of_every_route(team: RunningTeam) -> None:
    own, poor = team.token("ada", "admin"), team.token("eve", "metrics:read")
    document = team.get("/api/v1/openapi.json", own).json
    routes = [route for route in reads_of(team) if route.path.startswith("/api/")]
    # Before any of them is asked: a release that was yanked is listed no more.
    addresses = [(route, address) for route in routes for address in addresses_of(team, route)]
    bodies = [b"", b"{}", b"[", b'{"channel": "latest", "version": "1"}', packed(SECRET, "Another text."), b"x" * 2**25]
    # The body of a request that is refused is not even read.
    bodies_of = {own: bodies, poor: [b"{}"], None: [b"{}"]}
    seen = set()

    for route, address in addresses:
        described = document["paths"][route.path.replace(":path}", "}")][route.method.lower()]
        for token, sent in bodies_of.items():
            for body in sent if route.takes is not None else [None]:
                answer = team.ask(route.method, address, token, body=body)
                seen.add((route.method, route.path, answer.status))
                is_described = str(answer.status) in described["responses"]
                assert is_described or answer.status >= 400, (route.method, address, answer.status)
                response = described["responses"][str(answer.status) if is_described else "default"]
                if "content" in response:
                    form = response["content"][answer.headers["content-type"].partition(";")[0]]
                    known = {"components": document["components"], **form.get("schema", {})}
                    value = answer.json if "json" in answer.headers["content-type"] else "text"
                    jsonschema.validate(value, known if "schema" in form else {})
                if body == b"" and token == own and not described["requestBody"]["required"]:
                    assert answer.status == 200, (route.method, address)

    artifact = "/api/v1/skills/{name}/versions/{version}/artifact"
    assert {("POST", "/api/v1/releases", 201), ("POST", "/api/v1/releases", 413), ("GET", artifact, 200)} <= seen
    for path in ("/api/v1/skills", "/api/v1/search", "/api/v1/skills/{name}", "/api/v1/releases"):
        assert "min_rev" in [one["name"] for one in document["paths"][path]["get"]["parameters"]]
