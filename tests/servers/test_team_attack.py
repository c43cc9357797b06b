"""Attacks on a team server by somebody with a small token: odd addresses and values, races, and trees of others."""

from __future__ import annotations

import io
import json
import socket
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.published_servers import packed
from support.team_routes import SECRET, WORD, team_with_releases
from support.teams import RunningTeam
from support.trees import Machine

from skillshelf.core.limits import CONFIG_BYTES, UPLOAD_BYTES
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.tokens import revoke_tokens


@pytest.fixture
def team(machine: Machine, database: Database, tmp_path: Path) -> Iterator[RunningTeam]:
    with team_with_releases(machine, database, tmp_path) as running:
        own = running.token("ada", "admin")
        done = running.ask("POST", "/api/v1/releases?version=1", own, body=packed(SECRET, f"The {WORD} text."))
        assert done.status == 201, done.body
        yield running


ODD = (
    "/api/v1/skills/a%00b/versions",
    "/api/v1/skills/%ff%fe/versions",
    "/api/v1/skills/%ED%A0%80",
    f"/api/v1/skills/{'a' * 4000}",
    "/api/v1/releases?after=%00",
    "/api/v1/releases?after=%ED%A0%80",
    "/api/v1/search?q=%00",
    "/api/v1/usage?since=9223372036854775808",
    "/api/v1/journal/sessions?subject=%00&client=%ff",
    "/api/v1/journal/streams?after=%00",
    "/api/v1/policy?min_rev=-1",
    "/.well-known/agent-skills/index.json?after=%00&name=%00",
    f"/.well-known/agent-skills/{SECRET}/{'0' * 16}/x.zip",
    "/skills/%00",
    "/journal/%00",
    "//api/v1/skills",
    "/api/v1//skills",
    "/api/v1/../v1/skills",
    "/api/v1/skills/%2e%2e/%2e%2e/policy",
    "/api/v1/skills/..%2f..%2f..%2fhealth",
    f"/api/v1/skills/{SECRET}%2Fversions",
    f"/api/v1/skills/{SECRET}/versions/1%2Fartifact",
    f"/api/v1/skills/{SECRET}/versions/%00/artifact",
    f"/api/v1/skills/{SECRET}/versions/..%2f1/artifact",
)


def test_an_odd_address_is_one_answer_and_says_nothing_of_another_tenant(team: RunningTeam) -> None:
    tokens = {
        "admin": team.token("eve", "admin", tenant="acme"),
        "small": team.token("bob", "skills:read:web-*", tenant="acme"),
    }

    for address in ODD:
        for who, token in tokens.items():
            for method in ("GET", "HEAD", "OPTIONS", "TRACE"):
                found = team.ask(method, address, token)
                assert found.status in (200, 400, 403, 404, 405), (who, method, address, found.body)
                assert WORD.encode() not in found.body.replace(SECRET.encode(), b""), (who, method, address)


BODIES = (
    b"",
    b"[1]",
    b"{" * 5000,
    b"\xff\xfe",
    b'{"channel": "latest", "version": "\\ud800"}',
    b'{"channel": "latest", "version": "\\u0000"}',
    b'{"channel": 7, "version": {}}',
    b'{"why": "\\ud800", "tree": "\\u0000"}',
    b'{"tree": ["sha256:"]}',
    b'{"approvals": 1e400}',
    b'{"approvals": true, "approved_only": 1}',
    b'{"accept_rules": ["\\ud800"]}',
    b'{"\\ud800": 1}',
    b'{"' + b"a" * CONFIG_BYTES + b'": 1}',
)


def test_a_query_with_more_than_is_read_is_refused_and_nothing_of_it_is_ignored(team: RunningTeam) -> None:
    token, body = team.token("eve", "admin"), packed("others", "Other text.")
    for more in (f"source={'x' * 17_000}", "&".join(f"a{number}=1" for number in range(40))):
        answers = [
            team.ask("POST", f"/api/v1/releases?version=7.0&{more}", token, body=body),
            team.get(f"/api/v1/releases?min_rev=999&{more}", token),
            team.get(f"/api/v1/search?q=text&limit=1&{more}", token),
            team.get(f"/health?{more}"),
        ]
        assert [(answer.status, answer.json["error"]["code"]) for answer in answers] == [(400, "invalid_params")] * 4
    assert [one["name"] for one in team.get("/api/v1/releases", token).json["releases"]] == [SECRET]


def test_an_odd_body_is_refused_and_changes_nothing(team: RunningTeam) -> None:
    own = team.token("ada", "admin")
    skill = f"/api/v1/skills/{SECRET}"
    before = team.get(f"{skill}/versions", own).json, team.get("/api/v1/policy", own).json

    for body in BODIES:
        for method, address in (
            ("POST", f"{skill}/channel"),
            ("POST", f"{skill}/versions/%00/approve"),
            ("POST", f"{skill}/versions/2/yank"),
            ("POST", "/api/v1/skills/%ff/versions/%00/yank"),
            ("POST", "/api/v1/releases?version=%00"),
            ("POST", "/api/v1/releases?source=%00"),
        ):
            assert team.ask(method, address, own, body=body).status in (400, 404, 413, 422), (address, body[:40])
        if body not in (b"",):
            assert team.ask("PUT", "/api/v1/policy", own, body=body).status in (400, 413), body[:40]

    assert (team.get(f"{skill}/versions", own).json, team.get("/api/v1/policy", own).json) == before


def test_an_approval_of_another_tree_than_that_of_the_release_is_refused(team: RunningTeam) -> None:
    own = team.token("ada", "admin")
    (release,) = team.get(f"/api/v1/skills/{SECRET}/versions", own).json["versions"]
    address = f"/api/v1/skills/{SECRET}/versions/1/approve"

    other = team.ask("POST", address, own, body=json.dumps({"tree": f"sha256:{'0' * 64}"}).encode())
    same = team.ask("POST", address, own, body=json.dumps({"tree": release["tree"]}).encode())

    assert (other.status, same.status) == (409, 200)
    assert [one["by"] for one in same.json["release"]["approvals"]] == ["ada"]


# Races --------------------------------------------------------------------------------------------


def test_of_many_that_publish_one_version_at_once_exactly_one_wins(team: RunningTeam) -> None:
    own = team.token("ada", "admin")
    bodies = [packed("race", f"Text {number}.") for number in range(12)]

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda body: team.ask("POST", "/api/v1/releases?version=1.0", own, body=body), bodies))

    assert sorted(one.status for one in found) == [201] + [409] * 11
    (winner,) = [one.json["release"] for one in found if one.status == 201]
    (only,) = team.get("/api/v1/skills/race/versions", own).json["versions"]
    assert only["tree"] == winner["tree"]
    assert only["channels"] == ["latest"]


def test_of_many_that_publish_without_a_version_each_gets_a_number_of_its_own(team: RunningTeam) -> None:
    own = team.token("ada", "admin")
    bodies = [packed("race", f"Text {number}.") for number in range(8)]

    with ThreadPoolExecutor(8) as pool:
        found = [
            one.json for one in pool.map(lambda body: team.ask("POST", "/api/v1/releases", own, body=body), bodies)
        ]

    assert sorted(one["release"]["version"] for one in found) == [str(number) for number in range(1, 9)]
    assert len({one["rev"] for one in found}) == 8


# The trees of others ------------------------------------------------------------------------------


def without_own(answer: dict[str, Any], *names: str) -> dict[str, Any]:
    """An answer about a release without what differs between any two releases."""
    text = json.dumps({**answer, "release": {**answer["release"], "published": 0, "tree": "", "artifact": ""}})
    for name in names:
        text = text.replace(name, "?")
    return dict(json.loads(text))


def test_publishing_a_tree_that_another_tenant_has_is_answered_like_a_new_one(team: RunningTeam) -> None:
    eve = team.token("eve", "admin", tenant="acme")
    known = packed(SECRET, f"The {WORD} text.")
    fresh = packed("zanzibar-blue", f"The {WORD} text.")

    there = team.ask("POST", "/api/v1/releases?version=1", eve, body=known)
    nowhere = team.ask("POST", "/api/v1/releases?version=1", eve, body=fresh)

    assert (there.status, nowhere.status) == (201, 201)
    assert without_own({**there.json, "rev": 0, "release": {**there.json["release"], "rev": 0}}, SECRET) == without_own(
        {**nowhere.json, "rev": 0, "release": {**nowhere.json["release"], "rev": 0}}, "zanzibar-blue"
    )
    assert sorted(there.headers) == sorted(nowhere.headers)
    # Its approvals and its publisher stay those of each tenant.
    assert [one["publisher"] for one in team.get("/api/v1/releases", eve).json["releases"]] == ["eve", "eve"]


def test_an_approval_of_a_tree_does_not_count_in_another_tenant(team: RunningTeam) -> None:
    own, eve = team.token("ada", "admin"), team.token("eve", "admin", tenant="acme")
    assert team.ask("POST", f"/api/v1/skills/{SECRET}/versions/1/approve", own, body=b"{}").status == 200

    done = team.ask("POST", "/api/v1/releases?version=1", eve, body=packed(SECRET, f"The {WORD} text.")).json

    assert (done["release"]["approvals"], done["release"]["channels"]) == ([], ["latest"])


# Large and broken requests ------------------------------------------------------------------------


def bomb() -> bytes:
    """A small archive that unpacks to a large file."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/SKILL.md", "---\nname: bomb\ndescription: Use it never.\n---\n")
        with archive.open("bomb/zeros", "w") as file:
            for _ in range(64):
                file.write(b"\0" * 2**20)
    return data.getvalue()


def sent(team: RunningTeam, head: str, *pieces: bytes) -> bytes:
    """The first line of the answer to bytes on a connection; empty if it is closed without one."""
    with socket.create_connection(("127.0.0.1", team.port), timeout=60) as connection:
        connection.sendall(f"{head}\r\nHost: 127.0.0.1:{team.port}\r\n".encode())
        try:
            for piece in pieces:
                connection.sendall(piece)
            return connection.makefile("rb").readline()
        except OSError:
            return b""


def test_a_bomb_and_a_body_beyond_its_limit_are_refused(team: RunningTeam) -> None:
    own = team.token("ada", "admin")
    access = f"Authorization: Bearer {own}\r\n".encode()
    publish = "POST /api/v1/releases?version=1 HTTP/1.1"

    assert team.ask("POST", "/api/v1/releases?version=1", own, body=bomb()).status == 422
    declared = f"Content-Length: {UPLOAD_BYTES + 1}\r\n\r\n".encode()
    assert b" 413 " in sent(team, publish, access + declared)
    endless = b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + b"a" * 2**20 + b"\r\n"
    too_many = [b"100000\r\n" + b"a" * 2**20 + b"\r\n"] * 40
    assert sent(team, publish, access + endless, *too_many).partition(b" ")[2][:3] in (b"", b"413")
    assert b" 400 " in sent(team, "GET /api/v1/me HTTP/1.1", access + b"X: " + b"a" * 100_000 + b"\r\n\r\n")
    two = f"Authorization: Bearer {team.token('bob', 'skills:read')}\r\n\r\n".encode()
    assert b" 401 " in sent(team, "GET /api/v1/me HTTP/1.1", access + two)
    assert team.get("/api/v1/me", own).status == 200


def test_a_token_that_is_revoked_by_another_process_is_refused_once_it_is_looked_up_again(
    team: RunningTeam, database: Database
) -> None:
    token = team.token("bob", "skills:read")
    assert team.get("/api/v1/me", token).status == 200

    revoke_tokens(database, "default", "bob")
    # Within a minute it is looked up again; this is that moment.
    team.server.services.authenticator.forget(token)

    assert team.get("/api/v1/me", token).status == 401
