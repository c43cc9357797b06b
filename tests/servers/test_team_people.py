"""Who a caller is: tokens of the server, signed tokens of an issuer, logins; and what happens when others are away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.issuers import AUDIENCE, URL, IssuerUnderTest, unsigned

pytest.importorskip("jwt", reason="needs the extra: pip install 'skillshelf[server]'")

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from skillshelf.core.limits import TOKEN_CHARS
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.database import Database, SqliteDatabase
from skillshelf.servers.team.identity import Authenticator, Issuer, IssuerKeys
from skillshelf.servers.team.tokens import add_login, create_token, list_tokens, revoke_tokens, set_member
from skillshelf.servers.team.values import Caller, DatabaseAway, IssuerAway, NotAuthenticated, checked_scopes

ISSUER = Issuer(URL, AUDIENCE)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def issuer() -> IssuerUnderTest:
    return IssuerUnderTest()


def people(database: Database, issuer: IssuerUnderTest | None = None, clock: Clock | None = None) -> Authenticator:
    clock = clock or Clock()
    keys = IssuerKeys(ISSUER, issuer.fetch, clock=clock) if issuer is not None else None
    return Authenticator(database, keys, clock=clock)


# Tokens of the server -----------------------------------------------------------------------------


def test_a_token_stands_for_its_subject_in_its_tenant_with_its_scopes(database: Database) -> None:
    database.add_tenant("acme")
    made = create_token(database, "acme", "ada", ["skills:read:web-*", "journal:write"])

    caller = people(database).authenticate(made.token)

    assert caller == Caller("ada", "acme", frozenset({"skills:read:web-*", "journal:write"}), token=made.id)
    assert made.token.startswith("sks_acme_")


@pytest.mark.parametrize("subject", ["", " ", " ada", "ada ", "a\nb", "\u200b", "x" * 5000])
def test_what_could_be_taken_for_another_name_is_no_subject(database: Database, subject: str) -> None:
    with pytest.raises(ConfigurationError, match="a subject has 1 to"):
        create_token(database, "default", subject)
    with pytest.raises(ConfigurationError, match="a subject has 1 to"):
        set_member(database, "default", subject, "reader")


def test_the_database_has_no_token_only_its_digest(database: Database) -> None:
    made = create_token(database, "default", "ada")

    with database.transaction("default", readonly=True) as transaction:
        (row,) = transaction.rows("select * from token")

    secret = made.token.removeprefix("sks_default_")
    assert len(secret) == 43
    assert made.id in row
    assert not [value for value in row if secret in str(value)]


@pytest.mark.parametrize(
    "token",
    [
        "",
        "sks_default_",
        "sks_default_" + "A" * 43,
        "sks_acme_" + "A" * 43,
        "x" * 100_000,
        "a.b.c",
        "sks_../x_" + "A" * 43,
    ],
)
def test_what_is_not_a_token_is_nobody(database: Database, token: str) -> None:
    create_token(database, "default", "ada")
    with pytest.raises(NotAuthenticated):
        people(database).authenticate(token)


def test_a_token_of_one_tenant_with_the_name_of_another_is_nobody(database: Database) -> None:
    database.add_tenant("acme")
    made = create_token(database, "acme", "ada")
    with pytest.raises(NotAuthenticated):
        people(database).authenticate(made.token.replace("sks_acme_", "sks_default_"))


def test_an_expired_token_is_nobody_also_while_it_is_remembered(database: Database) -> None:
    now = int(time.time() * 1000)
    with pytest.raises(NotAuthenticated):
        people(database).authenticate(create_token(database, "default", "ada", expires=now - 1).token)
    wall = [time.time()]
    remembering = Authenticator(database, clock=Clock(), wall_clock=lambda: wall[0])
    token = create_token(database, "default", "ada", expires=now + 30_000).token
    remembering.authenticate(token)
    wall[0] += 31
    assert remembering.known(token) is None


def test_a_revoked_token_works_for_a_minute_at_most(database: Database) -> None:
    clock = Clock()
    remembering = people(database, clock=clock)
    made = create_token(database, "default", "ada")
    remembering.authenticate(made.token)

    assert revoke_tokens(database, "default", made.id).tokens == 1
    clock.now += 59
    assert remembering.authenticate(made.token).subject == "ada"
    clock.now += 2
    with pytest.raises(NotAuthenticated):
        remembering.authenticate(made.token)


def test_all_tokens_of_a_subject_are_revoked_by_its_name(database: Database) -> None:
    tokens = [create_token(database, "default", "ada").token for _ in range(3)]
    other = create_token(database, "default", "bob").token

    assert revoke_tokens(database, "default", "ada").tokens == 3
    assert revoke_tokens(database, "default", "ada") == (0, 0)
    for token in tokens:
        with pytest.raises(NotAuthenticated):
            people(database).authenticate(token)
    assert people(database).authenticate(other).subject == "bob"
    assert [one.revoked is not None for one in list_tokens(database, "default")].count(True) == 3


def test_without_scopes_a_token_has_those_of_the_role_as_it_is_now(database: Database) -> None:
    set_member(database, "default", "ada", "publisher")
    token = create_token(database, "default", "ada").token
    assert people(database).authenticate(token).may("skills:publish")
    set_member(database, "default", "ada", "reader")
    assert not people(database).authenticate(token).may("skills:publish")
    set_member(database, "default", "ada", None)
    assert people(database).authenticate(token).scopes == frozenset()


def test_a_scope_or_a_role_that_does_not_exist_is_refused(database: Database) -> None:
    bad = ("skills", "skills:write", "Admin", "skills:publish:x")
    for scope in (*bad, "skills:read:", "skills:read:a b", "skills:read:a,b", "skills:read:a\u202e"):
        with pytest.raises(ConfigurationError, match="no scope"):
            checked_scopes([scope])
    with pytest.raises(ConfigurationError, match="no role"):
        set_member(database, "default", "ada", "king")


def test_a_scope_with_a_pattern_lets_a_caller_read_only_matching_names() -> None:
    caller = Caller("ada", "default", frozenset({"skills:read:web-*", "skills:read:docs"}))

    assert caller.may("skills:read")
    assert not caller.may("skills:publish")
    assert [name for name in ("web-css", "docs", "docs-old", "secret") if caller.may_read(name)] == ["web-css", "docs"]
    assert Caller("ada", "default", frozenset({"admin"})).may_read("secret")
    # Any name that can be published can be named.
    scopes = checked_scopes(["skills:read:PDF-*", "skills:read:größe", "skills:read:with?blank"])
    assert all(Caller("ada", "default", scopes).may_read(name) for name in ("PDF-forms", "größe", "with blank"))
    assert not Caller("ada", "default", frozenset({"journal:write"})).may("skills:read")


# The database is away -----------------------------------------------------------------------------


class Absent:
    """A database that does not answer."""

    engine = "sqlite"

    def transaction(self, tenant: str, *, readonly: bool = False) -> Any:
        raise DatabaseAway("away")


def test_while_the_database_is_away_known_tokens_work_ten_minutes_and_others_wait(database: Database) -> None:
    clock = Clock()
    remembering = people(database, clock=clock)
    made = create_token(database, "default", "ada")
    remembering.authenticate(made.token)
    remembering._database = Absent()  # type: ignore[assignment]

    clock.now += 599
    assert remembering.authenticate(made.token).subject == "ada"
    with pytest.raises(DatabaseAway):
        remembering.authenticate(create_token(database, "default", "bob").token)
    clock.now += 2
    with pytest.raises(DatabaseAway):
        remembering.authenticate(made.token)


def test_while_the_disk_of_a_database_is_away_known_tokens_of_every_tenant_work(tmp_path: Path) -> None:
    clock, folder = Clock(), tmp_path / "disk"
    database = SqliteDatabase(str(folder / "team.sqlite"))
    database.add_tenant("acme")
    remembering = people(database, clock=clock)
    tokens = [create_token(database, tenant, "ada").token for tenant in ("default", "acme")]
    for token in tokens:
        remembering.authenticate(token)
    folder.rename(tmp_path / "away")

    clock.now += 61
    assert [remembering.authenticate(token).tenant for token in tokens] == ["default", "acme"]
    with pytest.raises(DatabaseAway):
        remembering.authenticate("sks_acme_" + "A" * 43)
    (tmp_path / "away").rename(folder)
    # A tenant that is gone while the database is there is none.
    for file in folder.glob("team.acme.*"):
        file.unlink()
    clock.now += 61
    assert remembering.authenticate(tokens[0]).tenant == "default"
    with pytest.raises(NotAuthenticated):
        remembering.authenticate(tokens[1])


def test_a_token_that_was_refused_once_does_not_count_again_when_the_database_goes_away(database: Database) -> None:
    clock = Clock()
    remembering = people(database, clock=clock)
    made = create_token(database, "default", "ada")
    remembering.authenticate(made.token)
    revoke_tokens(database, "default", made.id)
    clock.now += 61
    with pytest.raises(NotAuthenticated):
        remembering.authenticate(made.token)
    remembering._database = Absent()  # type: ignore[assignment]

    with pytest.raises(DatabaseAway):
        remembering.authenticate(made.token)


# Logins -------------------------------------------------------------------------------------------


def test_a_login_ends_with_its_token(database: Database) -> None:
    made = create_token(database, "default", "ada", ["skills:read"])
    caller = people(database).authenticate(made.token)
    cookie, _ = add_login(database, caller, None)

    assert people(database).authenticate(cookie) == caller
    assert revoke_tokens(database, "default", made.id) == (1, 1)
    # A browser may log in with a token that is still remembered.
    late, _ = add_login(database, caller, None)
    for one in (cookie, late):
        with pytest.raises(NotAuthenticated):
            people(database).authenticate(one)


def test_a_login_ends_at_its_own_time(database: Database) -> None:
    cookie, ends = add_login(
        database, people(database).authenticate(create_token(database, "default", "ada").token), None
    )
    assert ends > time.time() * 1000
    assert people(database).authenticate(cookie).subject == "ada"
    with database.transaction("default") as transaction:
        transaction.execute("update login set expires = ? where tenant = 'default'", (int(time.time() * 1000) - 1,))

    with pytest.raises(NotAuthenticated):
        people(database).authenticate(cookie)


def test_a_login_ends_when_its_token_expires_whatever_its_own_time_is(database: Database) -> None:
    made = create_token(database, "default", "ada", ["skills:read"])
    cookie, _ = add_login(database, people(database).authenticate(made.token), None)
    with database.transaction("default") as transaction:
        transaction.execute("update token set expires = ? where tenant = 'default'", (int(time.time() * 1000) - 1,))

    with pytest.raises(NotAuthenticated):
        people(database).authenticate(cookie)


def test_a_login_does_not_outlive_the_token_and_the_oldest_ones_go(database: Database) -> None:
    caller = people(database).authenticate(create_token(database, "default", "ada").token)
    soon = int(time.time() * 1000) + 5000
    assert add_login(database, caller, soon)[1] == soon

    cookies = [add_login(database, caller, None)[0] for _ in range(40)]
    with database.transaction("default", readonly=True) as transaction:
        assert transaction.row("select count(*) from login") == (16,)
    assert people(database).authenticate(cookies[-1]).subject == "ada"


def test_a_login_of_an_issuers_token_has_the_role_of_its_subject_as_long_as_that_lasts(
    database: Database, issuer: IssuerUnderTest
) -> None:
    set_member(database, "default", "ada", "admin")
    cookie, _ = add_login(database, people(database, issuer).authenticate(issuer.token()), None)
    assert people(database, issuer).authenticate(cookie).may("admin")

    set_member(database, "default", "ada", None)

    assert people(database, issuer).authenticate(cookie).scopes == frozenset()
    assert revoke_tokens(database, "default", "ada") == (0, 1)
    with pytest.raises(NotAuthenticated):
        people(database, issuer).authenticate(cookie)


def test_a_login_of_an_issuer_that_the_server_does_not_take_any_more_is_nobody(
    database: Database, issuer: IssuerUnderTest
) -> None:
    cookie, _ = add_login(database, people(database, issuer).authenticate(issuer.token()), None)
    other = Authenticator(database, IssuerKeys(ISSUER._replace(url="https://other.example"), issuer.fetch))

    assert people(database, issuer).authenticate(cookie).subject == "ada"
    for remembering in (people(database), other):
        with pytest.raises(NotAuthenticated):
            remembering.authenticate(cookie)


def test_a_login_keeps_the_scopes_that_an_issuers_token_names(database: Database, issuer: IssuerUnderTest) -> None:
    token = issuer.token(scope="skills:read")
    cookie, _ = add_login(database, people(database, issuer).authenticate(token), None)
    set_member(database, "default", "ada", "admin")

    assert people(database, issuer).authenticate(cookie).scopes == {"skills:read"}


@pytest.mark.parametrize(
    "claims",
    [
        {"scp": ["skills:read:x admin"]},
        {"scope": "skills:read:x\u00a0admin"},
        {"scp": ["skills:read", "skills:read:x\x1fadmin"]},
        {"scope": ["skills:read:x "]},
    ],
)
def test_no_scope_of_an_issuers_token_becomes_several(
    database: Database, issuer: IssuerUnderTest, claims: dict[str, Any]
) -> None:
    """A login keeps them as words; then `skills:read:x admin` would be the scope of an administrator, too."""
    with pytest.raises(NotAuthenticated):
        people(database, issuer).authenticate(issuer.token(**claims))
    token = issuer.token(scope=" skills:read\tjournal:read\n", roles=["Two Words"])
    assert people(database, issuer).authenticate(token).scopes == {"skills:read", "journal:read"}


# Tokens of an issuer ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rsa", "ec", "ed"])
def test_a_signed_token_stands_for_its_subject(database: Database, issuer: IssuerUnderTest, name: str) -> None:
    token = issuer.token(name, scope="openid skills:read journal:write", roles=["auditor"])

    caller = people(database, issuer).authenticate(token)

    assert caller == Caller("ada", "default", frozenset({"skills:read", "journal:write", "journal:read"}), URL)


def test_a_claim_names_the_tenant_and_the_members_role_counts_without_scopes(
    database: Database, issuer: IssuerUnderTest
) -> None:
    database.add_tenant("acme")
    set_member(database, "acme", "ada", "publisher")

    assert people(database, issuer).authenticate(issuer.token(tenant="acme")).may("skills:publish")
    assert people(database, issuer).authenticate(issuer.token()).scopes == frozenset()
    for tenant in ("unknown", "../acme", 7, ["acme"]):
        with pytest.raises(NotAuthenticated):
            people(database, issuer).authenticate(issuer.token(tenant=tenant))


BAD: dict[str, Callable[[IssuerUnderTest], str]] = {
    "longer than any token": lambda issuer: issuer.token(padding="x" * TOKEN_CHARS),
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 60),
    "without expiry": lambda issuer: issuer.token(exp=None),
    "not valid yet": lambda issuer: issuer.token(nbf=int(time.time()) + 60),
    "another audience": lambda issuer: issuer.token(aud="https://other.example"),
    "without audience": lambda issuer: issuer.token(aud=None),
    "another issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "without subject": lambda issuer: issuer.token(sub=None),
    "subject like another": lambda issuer: issuer.token(sub="ada "),
    "unknown key": lambda issuer: issuer.token(headers={"kid": "unknown"}),
    "extension that must be understood": lambda issuer: issuer.token(headers={"crit": ["bound"], "bound": "to"}),
    "no key id": lambda issuer: jwt.encode({"sub": "ada"}, issuer.keys["rsa"], "RS256"),
    "key of another kind": lambda issuer: issuer.token("rsa", headers={"kid": "ec"}),
    "no algorithm": lambda issuer: unsigned(
        {"iss": URL, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 99}, {"alg": "none", "kid": "rsa"}
    ),
    "shared secret": lambda issuer: jwt.encode(
        {"iss": URL, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 99},
        b"k" * 32,
        "HS256",
        headers={"kid": "shared"},
    ),
    "cut": lambda issuer: issuer.token()[:-8],
    "changed": lambda issuer: issuer.token().replace(".", ".e", 1),
    "own signature": lambda issuer: jwt.encode(
        {"iss": URL, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 99},
        ec.generate_private_key(ec.SECP256R1()),
        "ES256",
        headers={"kid": "ec"},
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_signed_token_is_nobody(tmp_path: Path, issuer: IssuerUnderTest, name: str) -> None:
    with pytest.raises(NotAuthenticated):
        people(SqliteDatabase(str(tmp_path / "team.sqlite")), issuer).authenticate(BAD[name](issuer))


def test_a_new_key_is_found_and_unknown_ones_do_not_make_us_ask_often(
    database: Database, issuer: IssuerUnderTest
) -> None:
    clock = Clock()
    remembering = people(database, issuer, clock)
    issuer.offered = ["rsa"]
    remembering.authenticate(issuer.token("rsa"))
    asked = issuer.asked
    issuer.offered = ["ec"]
    for _ in range(50):
        with pytest.raises(NotAuthenticated):
            remembering.authenticate(issuer.token("ec"))
    assert issuer.asked == asked
    clock.now += 11
    assert remembering.authenticate(issuer.token("ec")).subject == "ada"
    # The key that was taken away no longer counts.
    with pytest.raises(NotAuthenticated):
        remembering.authenticate(issuer.token("rsa", jti="another"))


def test_a_key_that_the_issuer_took_away_does_not_count_again_when_the_issuer_goes_away(
    database: Database, issuer: IssuerUnderTest
) -> None:
    clock = Clock()
    remembering = people(database, issuer, clock)
    issuer.offered = ["rsa"]
    token = issuer.token("rsa")
    remembering.authenticate(token)
    issuer.offered = ["ec"]
    clock.now += 11
    remembering.authenticate(issuer.token("ec"))
    issuer.is_away = True
    for seconds in (120, 300):
        clock.now += seconds
        with pytest.raises(IssuerAway, match="the issuer of this token does not answer"):
            remembering.authenticate(token)
    # Keys that it had when it answered last go on.
    assert remembering.authenticate(issuer.token("ec", jti="another")).subject == "ada"


def test_a_token_of_a_new_key_is_not_called_wrong_while_the_issuer_is_away(
    database: Database, issuer: IssuerUnderTest
) -> None:
    clock = Clock()
    remembering = people(database, issuer, clock)
    issuer.offered = ["rsa"]
    remembering.authenticate(issuer.token("rsa"))
    issuer.offered, issuer.is_away = ["rsa", "ec"], True
    clock.now += 11

    with pytest.raises(IssuerAway):
        remembering.authenticate(issuer.token("ec"))


def test_while_the_issuer_is_away_known_keys_work_for_ten_minutes(database: Database, issuer: IssuerUnderTest) -> None:
    clock = Clock()
    remembering = people(database, issuer, clock)
    issuer.is_away = True
    with pytest.raises(IssuerAway):
        remembering.authenticate(issuer.token())
    issuer.is_away = False
    clock.now += 11
    remembering.authenticate(issuer.token())
    issuer.is_away = True
    clock.now += 500
    assert remembering.authenticate(issuer.token(jti="another")).subject == "ada"
    clock.now += 200
    with pytest.raises(IssuerAway):
        remembering.authenticate(issuer.token(jti="a third"))


def _with_use(document: Mapping[str, Any], use: str) -> Mapping[str, Any]:
    """A document of an issuer whose keys are all for another use."""
    keys = [{**key, "use": use} for key in document.get("keys", []) if isinstance(key, dict)]
    return {**document, "keys": keys} if keys else document


def test_a_document_of_another_issuer_and_weak_keys_do_not_count(database: Database, issuer: IssuerUnderTest) -> None:
    issuer.keys["rsa-weak"] = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    issuer.offered = ["rsa-weak"]
    with pytest.raises(NotAuthenticated), pytest.warns():
        people(database, issuer).authenticate(issuer.token("rsa-weak"))
    issuer.offered = ["rsa"]
    for_encryption = IssuerKeys(ISSUER, lambda url: _with_use(issuer.fetch(url), "enc"))
    with pytest.raises(NotAuthenticated):
        Authenticator(database, for_encryption).authenticate(issuer.token())
    issuer.offered, issuer.name = ["rsa"], "https://evil.example"
    with pytest.raises(IssuerAway):
        people(database, issuer).authenticate(issuer.token())


def test_while_one_token_waits_for_the_issuer_others_are_answered_with_what_is_known(
    database: Database, issuer: IssuerUnderTest
) -> None:
    clock, asked, released = Clock(), threading.Event(), threading.Event()

    def fetch(url: str) -> Mapping[str, Any]:
        if issuer.is_away:
            asked.set()
            assert released.wait(60)
        return IssuerUnderTest.fetch(issuer, url) if not issuer.is_away else {}

    remembering = Authenticator(database, IssuerKeys(ISSUER, fetch, clock=clock), clock=clock)
    remembering.authenticate(issuer.token())
    issuer.is_away = True
    clock.now += 90
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(remembering.authenticate, issuer.token(jti="first"))
        assert asked.wait(60)

        # The fetch is still running: it ends when this test lets it.
        second = pool.submit(remembering.authenticate, issuer.token(jti="second"))
        try:
            assert second.result(60).subject == "ada"
            with pytest.raises(IssuerAway):
                pool.submit(remembering.authenticate, issuer.token(headers={"kid": "unknown"})).result(60)
            assert not first.done()
        finally:
            released.set()
        assert first.result(60).subject == "ada"


def test_tokens_that_come_while_the_keys_are_fetched_are_judged_by_the_new_ones(
    database: Database, issuer: IssuerUnderTest
) -> None:
    clock, fetching, released = Clock(), threading.Event(), threading.Event()

    def fetch(url: str) -> Mapping[str, Any]:
        if issuer.offered == ["ec"]:
            fetching.set()
            assert released.wait(60)
        return issuer.fetch(url)

    keys = IssuerKeys(ISSUER, fetch, clock=clock)
    issuer.offered = ["rsa"]
    assert keys.claims(issuer.token("rsa")) is not None
    issuer.offered = ["ec"]
    clock.now += 61
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(keys.claims, issuer.token("ec"))
        assert fetching.wait(60)
        others = [pool.submit(keys.claims, issuer.token(name)) for name in ("rsa", "ec")]
        threading.Timer(0.2, released.set).start()

        assert [one.result(60) is not None for one in (first, *others)] == [True, False, True]


def test_a_key_that_is_taken_away_counts_for_a_minute_in_all(database: Database, issuer: IssuerUnderTest) -> None:
    clock = Clock()
    remembering = people(database, issuer, clock)
    remembering.authenticate(issuer.token("rsa"))
    clock.now += 29
    late = issuer.token("rsa", jti="late")
    remembering.authenticate(late)
    issuer.offered = ["ec"]
    clock.now += 32

    # 61 seconds after the keys were fetched, 32 after this token was checked with them.
    with pytest.raises(NotAuthenticated):
        remembering.authenticate(late)
