"""Signed tokens over real HTTP, from an issuer that is honest, hostile, slow or away, and from strangers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from support.http_sites import Request, Route, Site, answer, endless, redirect
from support.issuers import AUDIENCE, IssuerUnderTest, unsigned
from support.mcps import HELLO
from support.teams import RunningTeam, running_team
from support.trees import Machine, write_skill

from skillshelf.core.limits import KEY_REFETCH_SECONDS
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.identity import Issuer
from skillshelf.servers.team.tokens import set_member

from cryptography.hazmat.primitives.asymmetric import rsa  # isort: skip
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # isort: skip

DISCOVERY, KEYS = "/.well-known/openid-configuration", "/keys"
_JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
ADDRESSES = {"discovery": DISCOVERY, "keys": KEYS, "usual": "/.well-known/jwks.json"}


def document(site: Site, **changes: Any) -> bytes:
    """The answer with the issuer's own document."""
    return answer(json.dumps({"issuer": site.url, "jwks_uri": f"{site.url}{KEYS}", **changes}).encode())


@contextmanager
def team_of(
    machine: Machine, database: Database, **routes: Route
) -> Iterator[tuple[RunningTeam, Site, IssuerUnderTest]]:
    """A server that takes the tokens of an issuer, an honest one but for the routes that are given."""
    write_skill(machine.home / ".agents/skills", "deploy")
    with Site() as site:
        issuer = IssuerUnderTest(site.url)
        site.routes |= {DISCOVERY: document(site), KEYS: keys_of(issuer)}
        site.routes |= {ADDRESSES[name]: route for name, route in routes.items()}
        with running_team(machine, database, issuer=Issuer(site.url, AUDIENCE)) as team:
            yield team, site, issuer


def test_a_signed_token_opens_the_server(machine: Machine, database: Database) -> None:
    set_member(database, "default", "ada", "reader")
    with team_of(machine, database) as (team, _, issuer):
        for name in issuer.offered:
            assert team.get("/api/v1/me", issuer.token(name)).json["scopes"] == ["skills:read"]


def keys_of(issuer: IssuerUnderTest, **changes: Any) -> bytes:
    """The answer with the keys of an issuer."""
    return answer(json.dumps({"keys": [{**issuer.public(name), **changes} for name in issuer.offered]}).encode())


def test_an_issuer_without_a_document_has_its_keys_at_the_usual_address(machine: Machine, database: Database) -> None:
    gone, usual = answer(b"", 404), keys_of(IssuerUnderTest())
    with team_of(machine, database, discovery=gone, keys=gone, usual=usual) as (team, _, issuer):
        assert team.get("/api/v1/me", issuer.token(scope="skills:read")).json["subject"] == "ada"


def test_a_token_that_names_no_key_is_good_if_one_of_the_issuer_signed_it(machine: Machine, database: Database) -> None:
    with team_of(machine, database, keys=keys_of(IssuerUnderTest(), kid=None)) as (team, _, issuer):
        good = [issuer.token(name, headers={"kid": None}) for name in issuer.offered]
        issuer.keys["rsa"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        strange = issuer.token("rsa", headers={"kid": None})

        assert [team.get("/api/v1/me", token).status for token in (*good, strange)] == [200, 200, 200, 401]


def with_secret_of_public_key(issuer: IssuerUnderTest) -> str:
    """A token whose shared secret is the public key, which everybody knows."""
    secret = issuer.keys["rsa"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 99}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "kid": "rsa", "typ": "JWT"}, claims)
    ]
    signature = hmac.new(secret, b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


def with_header(text: str) -> str:
    """A token whose header is any text."""
    return ".".join([base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode(), "e30", "AAAA"])


BAD: Mapping[str, Callable[[IssuerUnderTest], str]] = {
    "no algorithm": lambda issuer: unsigned(
        {"iss": issuer.url, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 99}, {"alg": "none", "kid": "rsa"}
    ),
    "the public key as a shared secret": with_secret_of_public_key,
    "another audience": lambda issuer: issuer.token(aud="https://other.example"),
    "another issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "expired beyond the leeway": lambda issuer: issuer.token(exp=int(time.time()) - 30),
    "not valid yet": lambda issuer: issuer.token(nbf=int(time.time()) + 60),
    "an expiry that is no number": lambda issuer: issuer.token(exp="soon"),
    "an endless expiry": lambda issuer: issuer.token(exp=float("inf")),
    "an expiry of digits in a text": lambda issuer: issuer.token(exp=str(int(time.time()) + 600)),
    "a start of digits in a text": lambda issuer: issuer.token(nbf="7"),
    "an issue of digits in a text": lambda issuer: issuer.token(iat="7"),
    "a start that is true": lambda issuer: issuer.token(nbf=True),
    "a subject of blanks": lambda issuer: issuer.token(sub="  "),
    "no subject": lambda issuer: issuer.token(sub=None),
    "an empty subject": lambda issuer: issuer.token(sub=""),
    "a subject with a control character": lambda issuer: issuer.token(sub="ada\x1b[2J"),
    "a subject with a line break": lambda issuer: issuer.token(sub="ada\nroot"),
    "a subject that reads backwards": lambda issuer: issuer.token(sub="ada\u202e"),
    "a long subject": lambda issuer: issuer.token(sub="a" * 300),
    "a tenant that does not exist": lambda issuer: issuer.token(tenant="umbrella"),
    "a tenant that is a path": lambda issuer: issuer.token(tenant="../default"),
    "a tenant that is no text": lambda issuer: issuer.token(tenant=["default"]),
    "a header of brackets": lambda issuer: with_header("[" * 5_000),
    "a header of many objects": lambda issuer: with_header('{"a":' * 1_000 + "1" + "}" * 1_000),
    "a header that is a number": lambda issuer: with_header("7"),
    "a key name that is no text": lambda issuer: with_header('{"alg": "RS256", "kid": ["rsa"]}'),
    "an algorithm that is no text": lambda issuer: with_header('{"alg": {"a": 1}, "kid": "rsa"}'),
    "bytes that are no text": lambda issuer: "\xff\xfe.e30.AAAA",
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningTeam, IssuerUnderTest]]:
    from skillshelf.servers.team.database import SqliteDatabase

    folder = tmp_path_factory.mktemp("issuers")
    machine, database = Machine(folder), SqliteDatabase(f"{folder}/team.sqlite")
    with team_of(machine, database) as (team, _, issuer):
        yield team, issuer


@pytest.mark.parametrize("name", BAD)
def test_a_bad_signed_token_is_answered_401(honest: tuple[RunningTeam, IssuerUnderTest], name: str) -> None:
    team, issuer = honest

    found = team.get("/api/v1/me", BAD[name](issuer))

    assert found.status == 401, found.body
    assert 'error="invalid_token"' in found.headers["www-authenticate"]


def test_a_small_difference_of_clocks_is_forgiven(honest: tuple[RunningTeam, IssuerUnderTest]) -> None:
    team, issuer = honest
    now = int(time.time())

    assert team.get("/api/v1/me", issuer.token(nbf=now + 3)).status == 200
    assert team.get("/api/v1/me", issuer.token(exp=10**400)).status == 200


def test_the_claim_of_a_tenant_opens_that_tenant_and_no_other(machine: Machine, database: Database) -> None:
    database.add_tenant("acme")
    with team_of(machine, database) as (team, _, issuer):
        team.wait_until_ready()
        token = issuer.token(tenant="acme", scope="admin")

        assert team.get("/api/v1/me", token).json["tenant"] == "acme"
        assert team.get("/api/v1/skills", token).json["count"] == 0
        assert team.get("/api/v1/skills", issuer.token(scope="admin")).json["count"] == 1


def test_a_session_of_somebody_with_the_same_name_at_an_issuer_is_another_ones(
    honest: tuple[RunningTeam, IssuerUnderTest],
) -> None:
    team, issuer = honest
    own, theirs = team.token("ada", "skills:read"), issuer.token(scope="skills:read")
    hello, ping = json.dumps(HELLO).encode(), b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}'
    session = team.ask("POST", "/mcp", own, headers=_JSON, body=hello).headers["mcp-session-id"]
    given = {**_JSON, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}

    assert [team.ask("POST", "/mcp", one, headers=given, body=ping).status for one in (theirs, own)] == [404, 200]


def test_two_keys_of_one_name_both_count(machine: Machine, database: Database) -> None:
    with team_of(machine, database) as (_, site, issuer):
        issuer.keys["rsa-new"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        twins = [{**issuer.public(name), "kid": "one"} for name in ("rsa", "rsa-new", "ec")]
        site.routes[KEYS] = answer(json.dumps({"keys": twins}).encode())
        # A server that starts now: the other one has fetched its keys already.
        with running_team(machine, database, issuer=Issuer(site.url, AUDIENCE)) as late:
            for name in ("rsa", "rsa-new", "ec"):
                assert late.get("/api/v1/me", issuer.token(name, headers={"kid": "one"})).status == 200
            assert late.get("/api/v1/me", issuer.token("ed", headers={"kid": "one"})).status == 401


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

HOSTILE: Mapping[str, dict[str, Route]] = {
    "an error": {"discovery": answer(b"broken", 500)},
    "a page": {"discovery": answer(b"<!doctype html><title>Log in</title>", Content_Type="text/html")},
    "a list": {"discovery": answer(b"[]")},
    "deep nesting": {"discovery": answer(b"[" * 100_000)},
    "another issuer": {"discovery": answer(b'{"issuer": "https://evil.example", "jwks_uri": "https://evil.example"}')},
    "keys that are huge": {"keys": answer(json.dumps({"keys": [{"kid": "x" * 1000}] * 400}).encode())},
    "keys without an end": {"keys": endless(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65536)},
    "keys in small pieces": {
        "keys": endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 999)
    },
    "headers without an end": {"keys": endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 999)},
    "keys that are an error": {"keys": answer(b"", 503)},
    "keys that are a page": {"keys": answer(b"<html>")},
    "no list of keys": {"keys": answer(b'{"keys": {"rsa": 1}}')},
    "a redirect without an end": {"keys": redirect(KEYS)},
    "an answer that breaks off": {"keys": b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"keys": ['},
    "compressed keys": {"keys": answer(b"{}", Content_Encoding="gzip")},
}


def rounds_since(began: float) -> int:
    """How often an issuer may have been asked since a time: once, and again on a slow machine."""
    return 1 + int((time.monotonic() - began) / KEY_REFETCH_SECONDS)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_issuer_costs_its_own_tokens_and_nothing_else(
    machine: Machine, database: Database, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    with team_of(machine, database, **HOSTILE[name]) as (team, site, issuer):
        refused = [team.get("/api/v1/me", issuer.token(jti=str(number))).status for number in range(5)]

        assert set(refused) == {503}
        told = team.get("/api/v1/me", issuer.token(jti="told")).body
        assert b"the issuer of this token does not answer" in told
        assert b"database" not in told
        assert team.get("/api/v1/me", team.token("bob", "skills:read")).status == 200
        # One round of fetching: the other tokens do not ask again.
        assert len([one for one in site.requests if one.path == DISCOVERY]) <= rounds_since(began)
    # The operator learns of it once, also if the keys were asked for often.
    assert capsys.readouterr().err.count("cannot be fetched: ") == 1


def test_an_issuer_that_leads_to_a_private_address_is_not_followed(machine: Machine, database: Database) -> None:
    with Site() as inner:
        there = f"http://localhost:{inner.port}/secret"
        for routes in ({"keys": redirect(there)}, {"discovery": redirect(there)}):
            with team_of(machine, database, **routes) as (team, _, issuer):
                assert team.get("/api/v1/me", issuer.token()).status == 503
        with Site() as site:
            issuer = IssuerUnderTest(site.url)
            site.routes[DISCOVERY] = document(site, jwks_uri=there)
            with running_team(machine, database, issuer=Issuer(site.url, AUDIENCE)) as team:
                assert team.get("/api/v1/me", issuer.token()).status == 503
        assert inner.requests == []


def test_unknown_keys_do_not_make_the_server_ask_the_issuer_again_and_again(
    machine: Machine, database: Database
) -> None:
    began = time.monotonic()
    with team_of(machine, database) as (team, site, issuer):
        assert team.get("/api/v1/me", issuer.token()).status == 200
        tokens = [issuer.token("ed", headers={"kid": f"unknown-{number}"}) for number in range(120)]

        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda token: team.get("/api/v1/me", token).status, tokens))

        assert set(found) == {401}
        # The document and the keys, for the first token and for one of the unknown keys.
        assert len(site.requests) <= 2 * (1 + rounds_since(began))


def test_an_issuer_that_hangs_keeps_nobody_waiting_but_its_own_tokens(machine: Machine, database: Database) -> None:
    held, released = threading.Event(), threading.Event()

    def hang(_: Request, connection: socket.socket) -> None:
        held.set()
        released.wait(60)
        connection.sendall(answer(b"{}"))

    with team_of(machine, database, keys=hang) as (team, _, issuer):
        own = [team.token(f"person-{number}", "skills:read") for number in range(12)]
        strangers = [issuer.token(jti=str(number)) for number in range(40)]
        with ThreadPoolExecutor(40) as pool:
            waiting = [pool.submit(team.get, "/api/v1/me", token) for token in strangers]
            assert held.wait(30)

            # Each token is new to the server, so each is looked up in a thread.
            seen = [team.get("/api/v1/me", token).json["subject"] for token in own]
            assert team.get("/health").status == 200

            # Nobody waits for the issuer to answer, which it never does here.
            assert {one.result(30).status for one in waiting} == {503}
            assert not released.is_set()
            released.set()
    assert seen == [f"person-{number}" for number in range(12)]
