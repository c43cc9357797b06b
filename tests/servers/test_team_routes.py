"""Every route of the team server: who may use it, what another tenant sees, and what the answers are."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from support.teams import Answer, RunningTeam, running_team
from support.trees import Machine, write_skill
from support.waiting import wait_for
from support.web import shown

from support.issuers import AUDIENCE, IssuerUnderTest, issuer_over_http, unsigned  # isort: skip

from skillshelf.servers.mcp.request_line import RequestRefused
from skillshelf.servers.team.blobs import FolderBlobs
from skillshelf.servers.team.database import Database, SqliteDatabase
from skillshelf.servers.team.identity import Issuer
from skillshelf.servers.team.routes import METRICS_ACCESS, PUBLIC, TeamRoute
from skillshelf.servers.team.tokens import revoke_tokens
from skillshelf.servers.team.values import DatabaseAway

SECRET = "hidden-skill"
PARTS = {
    "stream": "0" * 32,
    "version": "1.0",
    "channel": "latest",
    "name": SECRET,
    "slug": SECRET,
    "digest": "0" * 16,
    "file": "SKILL.md",
    "path": "SKILL.md",
    "key": "0",
}


@pytest.fixture
def team(machine: Machine, database: Database) -> Iterator[RunningTeam]:
    """A server with one skill, and two tenants of which only the default one may see it."""
    write_skill(machine.home / ".agents/skills", SECRET)
    database.add_tenant("acme")
    with running_team(machine, database, names=frozenset({"skills.example"})) as running:
        running.wait_until_ready()
        yield running


def address_of(route: TeamRoute) -> str:
    """An address of a route, with a value for each part."""
    path = route.path.replace(":path}", "}")
    for name, value in PARTS.items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, f"the test knows no value for a part of {route.path}"
    return path + "?q=things"


def method_of(route: TeamRoute) -> str:
    return "POST" if route.method == "*" else route.method


def ask(team: RunningTeam, route: TeamRoute, token: str | None, **headers: str) -> Answer:
    """Send a request to a route."""
    body = b"{}" if method_of(route) in ("POST", "PUT") else None
    return team.ask(method_of(route), address_of(route), token, headers=headers, body=body)


def bad_tokens(issuer: IssuerUnderTest) -> dict[str, str]:
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ada", "exp": now + 600, "scope": "admin"}
    return {
        "nonsense": "nonsense",
        "unknown": "sks_default_" + "A" * 43,
        "no tenant": "sks_nobody_" + "A" * 43,
        "no name of a tenant": "sks_-_" + "A" * 43,
        "nearly a name": "sks_a-_" + "A" * 43,
        "login": "skl_default_" + "A" * 43,
        "expired": issuer.token(scope="admin", exp=now - 60),
        "audience": issuer.token(scope="admin", aud="https://other.example"),
        "issuer": issuer.token(scope="admin", iss="https://other.example"),
        "alg none": unsigned(claims, {"alg": "none", "kid": "rsa"}),
        "unknown key": issuer.token(scope="admin", headers={"kid": "unknown"}),
        "tenant": issuer.token(scope="admin", tenant="unknown"),
    }


# Every route --------------------------------------------------------------------------------------


def test_every_route_but_the_public_ones_answers_401_without_a_token(team: RunningTeam) -> None:
    outside = {"x-forwarded-for": "192.0.2.1"}
    answers = {
        (route.method, route.path): ask(team, route, None, **outside)
        for route in team.server.table.routes
        if route.access != PUBLIC
    }

    assert {key: answer.status for key, answer in answers.items()} == dict.fromkeys(answers, 401)
    for answer in answers.values():
        assert answer.headers["www-authenticate"] in ("Bearer", 'Bearer scope="skills:read"')
        assert SECRET.encode() not in answer.body


def test_an_address_that_does_not_exist_answers_401_without_a_token_and_404_with_one(team: RunningTeam) -> None:
    token = team.token("ada", "skills:read")
    for path in ("/nothing", "/api/v1/nothing", "/mcp/x", "/%2e%2e/", "//health", "/api/v1/skills/a/b/c"):
        assert team.get(path).status == 401, path
        assert team.get(path, token).status == 404, path
    assert team.ask("DELETE", "/api/v1/search", token).status == 405
    assert team.ask("DELETE", "/api/v1/search").status == 401


def test_every_route_refuses_every_bad_token(machine: Machine, tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "team.sqlite"))
    with (
        issuer_over_http() as issuer,
        running_team(machine, database, issuer=Issuer(issuer.url, AUDIENCE)) as team,
    ):
        good = issuer.token(scope="admin", roles=["admin"])
        assert team.get("/api/v1/me", good).json == {"subject": "ada", "tenant": "default", "scopes": ["admin"]}
        bad = bad_tokens(issuer)
        for route in team.server.table.routes:
            if route.access in (PUBLIC, METRICS_ACCESS):
                continue
            found = {name: ask(team, route, token).status for name, token in bad.items()}
            assert found == dict.fromkeys(bad, 401), route.path
        challenge = team.get("/api/v1/me", bad["expired"]).headers["www-authenticate"]
        assert 'error="invalid_token"' in challenge


def test_another_tenant_sees_nothing_on_any_route(team: RunningTeam) -> None:
    own = team.token("ada", "admin")
    other = team.token("eve", "admin", tenant="acme")

    seen = [route.path for route in team.server.table.routes if SECRET.encode() in ask(team, route, own).body]
    assert {"/api/v1/skills", "/api/v1/skills/{name}", "/api/v1/search"} <= set(seen)
    for route in team.server.table.routes:
        if route.access == METRICS_ACCESS:
            continue
        answer = ask(team, route, other)
        leaked = SECRET.encode() in answer.body.replace(f"not found: {SECRET}".encode(), b"")
        assert not leaked, route.path
        if "{name}" in route.path.removeprefix("/static/") or "{slug}" in route.path:
            assert answer.status in (400, 404), route.path
    assert team.get("/api/v1/skills", other).json == {"count": 0, "skills": [], "next": None}


def test_a_skill_of_another_tenant_is_answered_like_one_that_does_not_exist(team: RunningTeam) -> None:
    other = team.token("eve", "admin", tenant="acme")

    there = team.get(f"/api/v1/skills/{SECRET}", other)
    nowhere = team.get("/api/v1/skills/nowhere-skill", other)

    assert there.status == nowhere.status == 404
    assert there.body.replace(SECRET.encode(), b"?") == nowhere.body.replace(b"nowhere-skill", b"?")


def test_every_route_needs_its_scope(team: RunningTeam) -> None:
    journal = team.token("machine", "journal:write")
    for route in team.server.table.routes:
        if route.scopes and "journal:write" not in route.scopes:
            answer = ask(team, route, journal)
            assert answer.status == 403, route.path
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


def test_the_body_of_a_request_without_a_token_is_not_read(team: RunningTeam) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", team.port), timeout=20) as connection:
        connection.sendall(
            b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            b"content-type: application/json\r\ncontent-length: 900000\r\n\r\n{"
        )
        assert connection.recv(12) == b"HTTP/1.1 401"


def test_the_host_and_the_origin_of_a_request_are_checked(team: RunningTeam) -> None:
    token = team.token("ada", "skills:read")
    assert team.get("/api/v1/me", token, headers={"host": "evil.example"}).status == 421
    assert team.get("/api/v1/me", token, headers={"origin": "https://evil.example"}).status == 403
    assert team.get("/api/v1/me", token, headers={"host": "skills.example"}).status == 200


# Skills -------------------------------------------------------------------------------------------


def test_a_caller_sees_the_names_that_the_patterns_of_its_scopes_match(machine: Machine, tmp_path: Path) -> None:
    for name in ("web-css", "web-html", "secret-plan"):
        write_skill(machine.home / ".agents/skills", name)
    database = SqliteDatabase(str(tmp_path / "team.sqlite"))
    with running_team(machine, database) as team:
        team.wait_until_ready()
        part, whole = team.token("ada", "skills:read:web-*"), team.token("bob", "skills:read")

        assert [skill["name"] for skill in team.get("/api/v1/skills", part).json["skills"]] == ["web-css", "web-html"]
        assert {one["name"] for one in team.get("/api/v1/search?q=things", part).json["results"]} == {
            "web-css",
            "web-html",
        }
        assert team.get("/api/v1/skills/secret-plan", part).status == 404
        assert team.get("/api/v1/skills/secret-plan", whole).json["name"] == "secret-plan"
        index = team.get("/.well-known/agent-skills/index.json", part).json
        assert [entry["name"] for entry in index["skills"]] == ["web-css", "web-html"]


def test_the_index_promises_the_bytes_that_it_gives(team: RunningTeam) -> None:
    from skillshelf.core.digests import sha256

    token = team.token("ada", "skills:read")
    (entry,) = team.get("/.well-known/agent-skills/index.json", token).json["skills"]

    artifact = team.get(f"/.well-known/agent-skills/{entry['url']}", token)

    assert artifact.status == 200
    assert entry["digest"] == f"sha256:{sha256(artifact.body).hexdigest()}"
    assert team.get(f"/.well-known/agent-skills/{SECRET}/{'0' * 16}/SKILL.md", token).status == 404


def test_no_answer_has_a_path_of_the_server(team: RunningTeam, machine: Machine) -> None:
    token = team.token("ada", "admin")
    for route in team.server.table.routes:
        assert str(machine.base).encode() not in ask(team, route, token).body, route.path


@pytest.mark.parametrize("query", [{"source": "x" * 20_000}, {f"part{number}": "x" for number in range(40)}])
def test_a_query_that_is_too_long_is_refused_whole(team: RunningTeam, query: dict[str, str]) -> None:
    # What is left out of it could be the version that is published.
    refused = team.get(f"/api/v1/skills?{urlencode({'limit': '1', **query})}", team.token("ada", "skills:read"))
    assert refused.status == 400
    assert "a query has at most" in refused.json["error"]["message"]


def test_a_listing_has_pages(machine: Machine, tmp_path: Path) -> None:
    names = [f"skill-{number}" for number in range(5)]
    for name in names:
        write_skill(machine.home / ".agents/skills", name)
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as team:
        team.wait_until_ready()
        token = team.token("ada", "skills:read")
        page = team.get("/api/v1/skills?limit=2", token).json
        found = [skill["name"] for skill in page["skills"]]
        while page["next"] is not None:
            page = team.get(f"/api/v1/skills?limit=2&after={page['next']}", token).json
            found += [skill["name"] for skill in page["skills"]]
        assert found == names
        for query in ("limit=0", "limit=x", "after=x", "after=" + "x" * 9000):
            assert team.get(f"/api/v1/skills?{query}", token).status == 400, query
        assert team.get("/api/v1/search", token).status == 400


def test_the_openapi_document_describes_every_answer_of_the_api(team: RunningTeam) -> None:
    token = team.token("ada", "admin")
    document = team.get("/api/v1/openapi.json", token).json

    paths = {route.path.replace(":path}", "}") for route in team.server.table.routes if route.path.startswith("/api/")}
    assert set(document["paths"]) == paths
    for path in ("/api/v1/me", "/api/v1/skills", "/api/v1/skills/{name}", "/api/v1/search"):
        answers = document["paths"][path]["get"]["responses"]
        schema = answers["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(team.get(path.replace("{name}", SECRET) + "?q=things", token).json, schema)
    error = team.get("/api/v1/skills/nothing", token).json
    jsonschema.validate(error, document["components"]["schemas"]["Error"])


def test_a_skill_that_is_added_or_changed_is_seen_without_a_restart(machine: Machine, tmp_path: Path) -> None:
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as team:
        team.wait_until_ready()
        token = team.token("ada", "skills:read:late-*")
        assert team.get("/api/v1/skills", token).json["count"] == 0
        write_skill(machine.home / ".agents/skills", "late-one")
        deadline = time.monotonic() + 30
        while team.get("/api/v1/skills", token).json["count"] == 0:
            assert time.monotonic() < deadline


# Operators ----------------------------------------------------------------------------------------


def test_health_and_readiness_need_no_token_and_tell_nothing(team: RunningTeam) -> None:
    assert team.get("/health").json["status"] == "ok"
    assert team.get("/ready").json == {"status": "ready", "checks": {"database": "ok", "catalog": "ok"}}


def test_while_the_database_is_away_reads_go_on_and_readiness_says_so(machine: Machine, tmp_path: Path) -> None:
    write_skill(machine.home / ".agents/skills", SECRET)
    path = tmp_path / "team.sqlite"
    with running_team(machine, SqliteDatabase(str(path))) as team:
        team.wait_until_ready()
        known, unknown = team.token("ada", "skills:read"), team.token("bob", "skills:read")
        assert team.get("/api/v1/skills", known).status == 200
        path.rename(tmp_path / "elsewhere.sqlite")

        assert team.get("/ready").status == 503
        assert team.get("/ready").json["checks"]["database"] == "does not answer"
        assert team.get("/health").status == 200
        assert team.get("/api/v1/skills", known).json["count"] == 1
        answer = team.get("/api/v1/skills", unknown)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")


def test_while_the_folder_of_the_databases_is_away_other_tenants_are_not_taken_for_removed_ones(
    machine: Machine, tmp_path: Path
) -> None:
    folder, clock = tmp_path / "databases", [0.0]
    with running_team(machine, SqliteDatabase(str(folder / "team.sqlite"))) as team:
        team.database.add_tenant("acme")
        known, unknown = team.token("ada", "skills:read", tenant="acme"), team.token("bob", tenant="acme")
        team.server.services.authenticator._clock = lambda: clock[0]
        assert team.get("/api/v1/skills", known).status == 200
        folder.rename(tmp_path / "elsewhere")
        clock[0] += 599

        assert team.get("/api/v1/me", known).status == 200
        assert team.get("/api/v1/skills", known).status == 200
        assert [team.get("/api/v1/me", one).status for one in (unknown, "sks_nobody_" + "A" * 43)] == [503, 503]
        (tmp_path / "elsewhere").rename(folder)
        (folder / "team.acme.sqlite").unlink()
        clock[0] += 61
        assert team.get("/api/v1/me", known).status == 401


def test_metrics_are_for_this_machine_and_for_administrators(team: RunningTeam) -> None:
    passed_on = {"x-forwarded-for": "192.0.2.1"}
    reader, admin = team.token("ada", "skills:read"), team.token("root", "admin")

    assert team.get("/metrics").status == 200
    assert team.get("/metrics", headers=passed_on).status == 401
    assert team.get("/metrics", headers={"host": "skills.example"}).status == 401
    from_elsewhere = {"path": "/metrics", "headers": [(b"host", b"127.0.0.1")], "client": ("192.0.2.1", 40000)}
    scope = {"method": "GET", "query_string": b"", "scheme": "http", **from_elsewhere}
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(team.server.app.authorize(scope))
    assert refused.value.status == 401
    assert team.get("/metrics", reader, headers=passed_on).status == 403
    text = team.get("/metrics", admin, headers=passed_on).body.decode()
    assert 'skillshelf_requests_total{method="GET",route="/metrics",status="401"} 2' in text
    assert "skillshelf_database_up 1" in text
    assert 'skillshelf_request_seconds_bucket{route="/metrics",le="+Inf"}' in text


def test_the_metrics_are_not_for_administrators_of_one_tenant_among_several(team: RunningTeam) -> None:
    team.database.add_tenant("acme")
    passed_on = {"x-forwarded-for": "192.0.2.1"}
    for scope in ("admin", "metrics:read"):
        answer = team.get("/metrics", team.token("eve", scope, tenant="acme"), headers=passed_on)
        assert (answer.status, b"whole server; they need a token of the tenant default" in answer.body) == (403, True)
        assert team.get("/metrics", team.token("root", scope), headers=passed_on).status == 200


def test_a_token_for_the_metrics_reads_nothing_else(team: RunningTeam) -> None:
    watcher, passed_on = team.token("prometheus", "metrics:read"), {"x-forwarded-for": "192.0.2.1"}

    assert team.get("/metrics", watcher, headers=passed_on).status == 200
    assert [team.get(f"/api/v1/{path}", watcher).status for path in ("skills", "usage")] == [403, 403]


def test_the_access_log_has_one_line_a_request_and_never_a_token(team: RunningTeam) -> None:
    token = team.token("ada", "skills:read")
    team.get(f"/api/v1/search?q=things&access_token={token}", token)
    team.ask("POST", "/login", body=f"token={token}".encode())
    team.get("/api/v1/me", "sks_default_" + "B" * 43)

    def lines_of_requests() -> list[tuple[str, int, str | None]] | None:
        """The lines without those of `wait_until_ready`; each is written after its answer."""
        lines = [json.loads(line) for line in [*team.lines]]
        found = [(line["path"], line["status"], line["subject"]) for line in lines if line["path"] != "/ready"]
        return found if len(found) >= 3 else None

    assert sorted(wait_for(lines_of_requests)) == [
        ("/api/v1/me", 401, None),
        ("/api/v1/search", 200, "ada"),
        ("/login", 303, None),
    ]
    assert token not in "".join(team.lines)
    assert "BBBB" not in "".join(team.lines)


def test_the_access_log_says_whom_a_proxy_passed_on(team: RunningTeam) -> None:
    team.get("/health", headers={"x-forwarded-for": "192.0.2.7, 10.0.0.1 \x85" + "9" * 300})
    team.get("/api/v1/me")

    def lines_of_requests() -> dict[str, Any] | None:
        lines = {line["path"]: line for line in map(json.loads, [*team.lines])}
        return lines if {"/health", "/api/v1/me"} <= {*lines} else None

    found = wait_for(lines_of_requests)
    assert found["/health"]["client"] == "127.0.0.1"
    assert found["/health"]["forwarded_for"].startswith("192.0.2.7, 10.0.0.1 ")
    assert (len(found["/health"]["forwarded_for"]), "\x85" in found["/health"]["forwarded_for"]) == (200, False)
    assert "forwarded_for" not in found["/api/v1/me"]


def test_a_token_without_its_word_is_told_how_it_is_sent(team: RunningTeam) -> None:
    token = team.token("ada", "skills:read")

    for given in (token, f"Basic {token}"):
        answer = team.get("/api/v1/me", headers={"authorization": given})
        assert answer.status == 401
        assert "send Authorization: Bearer TOKEN" in answer.body.decode()


def test_the_metadata_of_authorization_names_the_issuer(machine: Machine, tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "team.sqlite"))
    with running_team(machine, database, issuer=Issuer("https://login.example", AUDIENCE)) as team:
        for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
            found = team.get(path).json
            assert found["resource"] == AUDIENCE
            assert found["authorization_servers"] == ["https://login.example"]
            assert "skills:read" in found["scopes_supported"]
        for token in (None, "nonsense"):
            challenge = team.get("/mcp", token).headers["www-authenticate"]
            assert f'resource_metadata="{team.url}/.well-known/oauth-protected-resource/mcp"' in challenge
            assert 'scope="skills:read"' in challenge
        metadata = f'resource_metadata="{team.url}/.well-known/oauth-protected-resource/mcp"'
        assert team.get("/api/v1/me").headers["www-authenticate"] == f"Bearer {metadata}"
        denied = team.get("/api/v1/skills", team.token("ada", "journal:write")).headers["www-authenticate"]
        assert denied == f'Bearer {metadata}, error="insufficient_scope", scope="skills:read"'


def test_without_an_issuer_no_client_is_led_to_metadata_that_name_none(team: RunningTeam) -> None:
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        answer = team.get(path)
        assert (answer.status, answer.json["error"]["code"]) == (404, "not_found")
    assert (
        team.get("/mcp", "nonsense").headers["www-authenticate"] == 'Bearer scope="skills:read", error="invalid_token"'
    )


# Browsers -----------------------------------------------------------------------------------------


def log_in(team: RunningTeam, token: str, **headers: str) -> Answer:
    body = f"token={token}".encode()
    return team.ask(
        "POST", "/login", body=body, headers={"content-type": "application/x-www-form-urlencoded", **headers}
    )


def test_a_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use(team: RunningTeam) -> None:
    token = team.token("ada", "skills:read")

    answer = log_in(team, token)

    cookie = answer.headers["set-cookie"]
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert token not in cookie
    assert "Secure" in log_in(team, token, **{"x-forwarded-proto": "https"}).headers["set-cookie"]
    given = {"cookie": cookie.partition(";")[0]}
    assert team.get("/api/v1/me", headers=given).json["subject"] == "ada"
    # Who may set a cookie for this name beside it cannot say which one counts.
    other = log_in(team, team.token("eve", "skills:read")).headers["set-cookie"].partition(";")[0]
    assert team.get("/api/v1/me", headers={"cookie": f"{given['cookie']}; {other}"}).status == 401
    # Nothing can be changed by it, and it is not a token.
    assert team.ask("POST", "/mcp", headers=given, body=b"{}").status == 401
    value = given["cookie"].partition("=")[2]
    assert log_in(team, value).status == 401
    for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/api/v1/me"), ("PUT", "/api/v1/policy")):
        assert team.ask(method, path, value, body=b"{}").status == 401, path


def test_a_login_from_another_site_or_with_a_bad_token_is_refused(team: RunningTeam) -> None:
    token = team.token("ada", "skills:read")
    assert log_in(team, token, origin="https://evil.example").status == 403
    assert log_in(team, token, **{"sec-fetch-site": "cross-site"}).status == 403
    for bad in ("", "nonsense", "%00", "sks_default_" + "A" * 43):
        answer = log_in(team, bad)
        assert answer.status == 401
        assert "set-cookie" not in answer.headers


def test_a_login_leads_to_the_page_that_was_asked_for_and_never_elsewhere(team: RunningTeam) -> None:
    token, form = team.token("ada", "skills:read"), {"content-type": "application/x-www-form-urlencoded"}
    asked = team.get("/search?q=release%20notes&page=2", headers={"accept": "text/html"})
    assert b'name="wanted" value="/search?q=release%20notes&amp;page=2"' in asked.body

    def led_to(wanted: str, given: str = token) -> Answer:
        return team.ask("POST", "/login", body=urlencode({"token": given, "wanted": wanted}).encode(), headers=form)

    found = led_to("/search?q=release%20notes&page=2")
    assert (found.status, found.headers["location"]) == (303, "/search?q=release%20notes&page=2")
    # A wrong token is asked for again, and the page is not forgotten.
    assert b'name="wanted" value="/hosts"' in led_to("/hosts", "nonsense").body
    for bad in (
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "/a\r\nset-cookie: x=1",
        "/\t/evil",
        "hosts",
    ):
        answer = led_to(bad)
        assert (answer.status, answer.headers["location"]) == (303, "/")
    assert b'name="wanted"' not in team.get("//evil.example", headers={"accept": "text/html"}).body


def test_a_logout_ends_the_login(team: RunningTeam) -> None:
    cookie = log_in(team, team.token("ada", "skills:read")).headers["set-cookie"].partition(";")[0]
    assert team.get("/api/v1/me", headers={"cookie": cookie}).status == 200

    assert team.ask("POST", "/logout", headers={"cookie": cookie}).status == 303

    assert team.get("/api/v1/me", headers={"cookie": cookie}).status == 401


@pytest.mark.parametrize("tenant", ["default", "acme", "nosuch", "-", "a-", "../x"])
def test_a_logout_tells_nobody_which_tenants_there_are(team: RunningTeam, tenant: str) -> None:
    answer = team.ask("POST", "/logout", headers={"cookie": f"skillshelf_login=skl_{tenant}_{'A' * 43}"})

    assert (answer.status, answer.headers["location"], answer.body) == (303, "/login", b"")


def test_a_logout_without_the_database_takes_the_cookie_from_the_browser(
    team: RunningTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(tenant: str, *, readonly: bool = False) -> Any:
        raise DatabaseAway("the secret address")

    cookie = log_in(team, team.token("ada", "skills:read")).headers["set-cookie"].partition(";")[0]
    monkeypatch.setattr(team.database, "transaction", away)

    answer = team.ask("POST", "/logout", headers={"cookie": cookie})

    assert (answer.status, b"secret" in answer.body) == (503, False)
    assert b"the login itself ends later" in answer.body
    assert "Max-Age=0" in answer.headers["set-cookie"]


def test_revoking_a_token_ends_its_logins(team: RunningTeam) -> None:
    cookie = log_in(team, team.token("ada", "skills:read")).headers["set-cookie"].partition(";")[0]
    revoke_tokens(team.database, "default", "ada")
    # Not known yet, so it is looked up.
    assert team.get("/api/v1/me", headers={"cookie": cookie}).status == 401


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (DatabaseAway, 503, {"code": "unavailable", "message": "the database does not answer"}),
        (ZeroDivisionError, 500, {"code": "failed", "message": "an error of the server"}),
    ],
)
def test_a_mistake_of_a_route_is_an_answer_without_its_details(
    team: RunningTeam, monkeypatch: Any, error: type[Exception], status: int, told: dict[str, str]
) -> None:
    def fail(tenant: str, *, readonly: bool = False) -> Any:
        raise error("the secret address")

    token = team.token("ada", "journal:read")
    assert team.get("/api/v1/me", token).status == 200
    monkeypatch.setattr(team.database, "transaction", fail)
    answer = team.get("/api/v1/journal/sessions", token)
    assert (answer.status, answer.json) == (status, {"error": told})


# Pages --------------------------------------------------------------------------------------------


def test_a_browser_without_a_login_is_shown_how_to_log_in(team: RunningTeam) -> None:
    answer = team.get("/", headers={"accept": "text/html"})

    assert answer.status == 401
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b'action="/login"' in answer.body
    assert b'action="/login"' in team.get("/login").body


def test_a_browser_that_is_refused_gets_a_page_and_a_program_gets_a_line(team: RunningTeam) -> None:
    token, page = team.token("ada", "skills:read"), {"accept": "text/html"}
    cases = {"/none": (404, b"There is no such page"), "/journal": (403, b"You may not see this page")}
    for path, (status, text) in cases.items():
        answer = team.get(path, token, headers=page)
        assert (answer.status, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert text in answer.body
        assert team.get(path, token).headers["content-type"] == "text/plain; charset=utf-8"
    assert b"<html" in team.get("/none", headers=page).body
    assert b"<html" not in team.get("/api/v1/none", token, headers=page).body


def test_a_page_that_somebody_may_not_see_links_to_one_that_they_may(team: RunningTeam) -> None:
    page = {"accept": "text/html"}

    def links(path: str, *scopes: str) -> list[str]:
        answer = team.get(path, team.token("ada", *scopes), headers=page)
        assert answer.status == 403
        return re.findall('<a href="([^"]*)"', answer.body.decode())

    assert links("/journal", "skills:read:web-*") == ["/", "/login"]
    assert links("/", "journal:read") == ["/journal", "/login"]
    assert links("/", "journal:write") == ["/login"]


def test_a_form_of_the_pages_tells_its_origin(team: RunningTeam) -> None:
    # Without a referrer a browser sends the Origin `null`, and the login would be refused.
    assert team.get("/login").headers["referrer-policy"] == "same-origin"
    home = team.get("/", team.token("ada", "skills:read"))
    assert home.headers["referrer-policy"] == "same-origin"
    assert b'action="/logout" method="post"' in home.body


def test_pages_without_a_database_say_so(machine: Machine, tmp_path: Path) -> None:
    write_skill(machine.home / ".agents/skills", SECRET)
    path = tmp_path / "team.sqlite"
    with running_team(machine, SqliteDatabase(str(path)), blobs=FolderBlobs(str(tmp_path / "blobs"))) as team:
        team.wait_until_ready()
        admin = team.token("root", "admin")
        assert team.get("/", admin).status == 200
        path.rename(tmp_path / "elsewhere.sqlite")

        home, usage = team.get("/", admin), team.get("/usage", admin)

        diff = team.get(f"/skills/{SECRET}/diff?from=1&to=2", admin)
        unknown = team.get("/", headers={"cookie": f"skillshelf_login=skl_default_{'A' * 43}", "accept": "text/html"})

        assert (home.status, usage.status, diff.status, unknown.status) == (200, 503, 503, 503)
        assert b"<h1>Not now</h1>" in unknown.body
        assert unknown.headers["retry-after"] == "1"
        assert b"The database does not answer" in home.body
        assert SECRET.encode() in home.body
        assert b"does not answer" in usage.body


def test_a_skill_on_the_disk_of_the_server_has_neither_a_tree_nor_an_installation(team: RunningTeam) -> None:
    page = shown(team.get(f"/skills/{SECRET}", team.token("ada", "skills:read")).body.decode())

    assert "Tree none: only a release has one" in page
    assert "Origin the disk of the server" in page


def test_a_login_with_many_fields_is_a_mistake_of_the_client(team: RunningTeam) -> None:
    assert team.ask("POST", "/login", body=b"&".join([b"a=1"] * 20)).status == 400


def test_descriptions_that_say_the_same_are_a_problem_of_a_team(machine: Machine, tmp_path: Path) -> None:
    said = "Writes minutes of meetings with decisions, owners and dates from a transcript"
    for name in ("minutes", "meeting-notes"):
        write_skill(machine.home / ".agents/skills", name, f"---\nname: {name}\ndescription: {said}\n---\nx\n")
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as team:
        team.wait_until_ready()
        token, deadline = team.token("ada", "skills:read"), time.monotonic() + 30
        while b"says nearly the same as" not in (body := team.get("/problems", token).body):
            assert time.monotonic() < deadline
        assert b'href="/skills/minutes"' in body
        assert b'href="/skills/meeting-notes"' in body


def test_the_pages_show_what_the_login_may_see(team: RunningTeam) -> None:
    def page(token: str, path: str) -> Answer:
        cookie = log_in(team, token).headers["set-cookie"].partition(";")[0]
        return team.get(path, headers={"cookie": cookie, "accept": "text/html"})

    reader, admin = team.token("ada", "skills:read"), team.token("root", "admin")
    other = team.token("eve", "admin", tenant="acme")
    for path in ("/", "/skills", f"/skills/{SECRET}", "/search?q=things", f"/skills/{SECRET}/raw"):
        assert page(reader, path).status == 200, path
        assert SECRET.encode() in page(reader, path).body, path
        assert SECRET.encode() not in page(other, path).body, path
    assert page(reader, "/journal").status == 403
    for path in ("/journal", "/usage", "/problems"):
        assert page(admin, path).status == 200, path
    assert "default-src 'none'" in page(reader, "/").headers["content-security-policy"]


def test_readers_see_how_much_their_skills_are_used_and_nothing_about_people(team: RunningTeam) -> None:
    reader, other = team.token("ada", "skills:read"), team.token("bob", "skills:read:frontend-*")
    admin = team.token("root", "admin")
    team.get(f"/api/v1/skills/{SECRET}", reader)

    def rows_of(token: str) -> list[str]:
        return [row["skill"] for row in team.get("/api/v1/usage", token).json["usage"]]

    wait_for(lambda: rows_of(admin) or None)
    assert (rows_of(reader), rows_of(other)) == ([SECRET], [])
    assert [team.get(f"/api/v1/usage?by={view}", reader).status for view in ("day", "person")] == [403, 403]
    assert [team.get(f"/api/v1/usage?by={view}", admin).status for view in ("day", "person")] == [200, 200]


def test_the_journal_without_a_stream_lists_the_journals(team: RunningTeam) -> None:
    admin = team.token("root", "admin")

    listed = team.get("/api/v1/journal", admin)

    assert listed.status == 200
    assert listed.body == team.get("/api/v1/journal/streams", admin).body


def test_the_use_of_two_people_is_on_the_page_of_usage(team: RunningTeam) -> None:
    admin = team.token("root", "admin")
    for who in ("ada", "bob"):
        assert team.get(f"/api/v1/skills/{SECRET}", team.token(who, "skills:read")).status == 200
    deadline = time.monotonic() + 30
    while True:
        body = team.get("/usage", admin).body
        if b"ada" in body and b"bob" in body and SECRET.encode() in body:
            break
        assert time.monotonic() < deadline
    sessions = team.get("/journal", admin).body
    assert b"ada" in sessions
    assert b"bob" in sessions
