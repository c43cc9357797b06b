"""Find out who sends a request: by a token of this server, by a signed token of an issuer, or by a login.

Answers are kept for a minute, so revocation takes effect within that. While the database or the issuer does not answer,
those who were known stay known for ten minutes.
"""

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jwt

from skillshelf.core.console import note
from skillshelf.core.environment import Environment
from skillshelf.core.http_client import HttpClient, is_loopback_name, origin_of, require_found
from skillshelf.core.limits import (
    CALLERS_KEPT,
    ISSUER_BYTES,
    ISSUER_FIRST_SECONDS,
    ISSUER_KEYS,
    ISSUER_SECONDS,
    KEY_REFETCH_SECONDS,
    KNOWN_AWAY_SECONDS,
    KNOWN_SECONDS,
    TOKEN_CHARS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.errors import ConfigurationError, SkillError, SourceNotFound
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.tokens import (
    LOGIN_PREFIX,
    caller_with_login,
    caller_with_token,
    is_own_token,
    scopes_of_member,
    token_digest,
)
from skillshelf.servers.team.values import (
    DEFAULT_TENANT,
    READ,
    ROLES,
    SCOPES,
    Caller,
    DatabaseAway,
    IssuerAway,
    NoSuchTenant,
    NotAuthenticated,
    checked_slug,
    checked_subject,
)

__all__ = ["Authenticator", "Issuer", "IssuerKeys"]

ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
"""Signatures that only the issuer can make; a shared secret, or none, is refused."""

_LEEWAY_SECONDS = 5
_LATEST_SECONDS = 253_402_300_799
_RSA_BITS = 2048
_DISCOVERY = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")
_USUAL_KEYS = "/.well-known/jwks.json"
_ANY_KEY = ""
_BLANKS = re.compile(r"[ \t\r\n]+")

Clock = Callable[[], float]
Fetch = Callable[[str], Mapping[str, Any]]
"""Return the JSON object at an address, or raise `SkillError`."""


class Issuer(NamedTuple):
    """An issuer of tokens: its address, the audience that a token must have, and the claims that are read."""

    url: str
    audience: str
    tenant_claim: str = "tenant"
    roles_claim: str = "roles"


class _Known(NamedTuple):
    caller: Caller
    since: float
    expires: float | None


class Authenticator:
    """Finds the caller of a request. Its methods may be called by many threads; `clock` returns seconds."""

    def __init__(
        self,
        database: Database,
        keys: "IssuerKeys | None" = None,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._database = database
        self._keys = keys
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def known(self, token: str) -> Caller | None:
        """Return the caller of a token that was checked within the last minute, without waiting for anything."""
        found = self._known.get(token_digest(token))
        return found.caller if found is not None and self._is_fresh(found, KNOWN_SECONDS) else None

    def authenticate(self, token: str) -> Caller:
        """Return the caller of a token or of the cookie of a login.

        Raise `NotAuthenticated`, or `DatabaseAway` or `IssuerAway` if one of them must be asked and does not answer.
        """
        if (caller := self.known(token)) is not None:
            return caller
        key = token_digest(token)
        try:
            found = self._look_up(token)
        except (DatabaseAway, IssuerAway):
            old = self._known.get(key)
            if old is not None and self._is_fresh(old, KNOWN_AWAY_SECONDS) and not self._is_withdrawn(token):
                return old.caller
            raise
        if found is None:
            with self._lock:
                self._known.pop(key, None)
            raise NotAuthenticated("the token is not valid here, or no longer")
        self._keep(key, found)
        return found.caller

    def forget(self, token: str) -> None:
        """Forget a token or cookie, so that it is looked up next time."""
        with self._lock:
            self._known.pop(token_digest(token), None)

    def expiry(self, token: str) -> int | None:
        """Return when a token that was checked expires, in milliseconds."""
        found = self._known.get(token_digest(token))
        return int(found.expires * 1000) if found is not None and found.expires is not None else None

    def now_ms(self) -> int:
        """Return the time in milliseconds, by the clock of expiry."""
        return int(self._wall_clock() * 1000)

    def _is_fresh(self, known: _Known, seconds: float) -> bool:
        is_valid = known.expires is None or self._wall_clock() < known.expires
        return is_valid and self._clock() - known.since < seconds

    def _keep(self, key: str, known: _Known) -> None:
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            while len(self._known) > CALLERS_KEPT:
                self._known.popitem(last=False)

    def _is_withdrawn(self, token: str) -> bool:
        """Return True for a token whose key was not among those that the issuer had when it last answered."""
        return self._keys is not None and self.asks_issuer(token) and self._keys.lack_key_of(token)

    def asks_issuer(self, token: str) -> bool:
        """Return True for a token that only the issuer can vouch for, who may be slow."""
        return not (token.startswith(f"{LOGIN_PREFIX}_") or is_own_token(token))

    def _look_up(self, token: str) -> _Known | None:
        if len(token) > TOKEN_CHARS:
            return None
        if not self.asks_issuer(token):
            look_up = caller_with_login if token.startswith(f"{LOGIN_PREFIX}_") else caller_with_token
            own = look_up(self._database, token)
            if own is not None and own[0].issuer and (self._keys is None or own[0].issuer != self._keys.issuer.url):
                # A login that was made with a token of an issuer that this server does not take any more.
                return None
            return _Known(own[0], self._clock(), None if own[1] is None else own[1] / 1000) if own else None
        if self._keys is None:
            return None
        signed = self._keys.claims(token)
        if signed is None or (found := self._caller_with_claims(signed.claims, self._keys.issuer)) is None:
            return None
        # Known since the keys are known: a key that the issuer takes away counts for a minute in all, not for two.
        return found._replace(since=min(signed.fetched, self._clock()))

    def _caller_with_claims(self, claims: Mapping[str, Any], issuer: Issuer) -> _Known | None:
        """Return the caller that the claims of a token name; without scopes it has those of its role."""
        tenant = claims.get(issuer.tenant_claim, DEFAULT_TENANT)
        try:
            subject = checked_subject(claims["sub"])
            with self._database.transaction(checked_slug(tenant), readonly=True) as transaction:
                if transaction.row("select id from tenant where id = ?", (tenant,)) is None:
                    return None
                named = _scopes_in(claims, issuer)
                scopes = named or scopes_of_member(transaction, subject)
        except (ConfigurationError, NoSuchTenant, TypeError):
            return None
        expires = min(int(claims["exp"]), _LATEST_SECONDS)
        caller = Caller(subject, tenant, scopes, issuer.url, has_role_scopes=not named)
        return _Known(caller, self._clock(), expires)


def _scopes_in(claims: Mapping[str, Any], issuer: Issuer) -> frozenset[str]:
    """Return the scopes of this server in the claims of a token: those it names, and those of the roles it names.

    Raise `ConfigurationError` for a scope with white space: a login keeps scopes as words, and would make it several.
    """
    named = {*_words(claims.get("scope")), *_words(claims.get("scp"))}
    own = {scope for scope in named if scope in SCOPES or scope.startswith(f"{READ}:")}
    if any(character.isspace() for scope in own for character in scope):
        raise ConfigurationError("a scope has no white space")
    roles = (ROLES.get(role, frozenset()) for role in _words(claims.get(issuer.roles_claim)))
    return frozenset(own).union(*roles)


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return _BLANKS.split(value)
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


# Keys of an issuer --------------------------------------------------------------------------------


def fetch_from(issuer: Issuer, environment: Environment) -> Fetch:
    """Return how the documents of an issuer are fetched: bounded, and over plain HTTP only from this machine."""
    client = HttpClient(
        issuer.url,
        environment,
        allow_http=is_loopback_name(origin_of(issuer.url).host),
        seconds=ISSUER_SECONDS,
        limit="ISSUER_SECONDS",
        netrc=False,
    )

    def fetch(url: str) -> Mapping[str, Any]:
        answer = require_found(client.get(url, limit=ISSUER_BYTES, headers={"Accept": "application/json"}))
        try:
            found = json.loads(answer.data)
        except (ValueError, RecursionError):
            raise SkillError(f"{issuer.url} sends something that is not JSON") from None
        if not isinstance(found, dict):
            raise SkillError(f"{issuer.url} sends something that is not a JSON object")
        return found

    return fetch


class SignedClaims(NamedTuple):
    """The claims of a token whose signature was checked, and the time at which the keys for that were fetched."""

    claims: Mapping[str, Any]
    fetched: float


_KeyName = tuple[str, str]
"""The name of a key, and the algorithm that it is for."""


class IssuerKeys:
    """The keys of an issuer, which are fetched when a token needs them and kept for a minute.

    One request at a time asks the issuer. The others are answered with what is known, so that an issuer that is slow
    costs one thread, whatever tokens arrive.
    """

    def __init__(self, issuer: Issuer, fetch: Fetch, *, clock: Clock = time.monotonic) -> None:
        self.issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: Mapping[_KeyName, Sequence[jwt.PyJWK]] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._running: threading.Event | None = None
        self._problem: str | None = None

    def claims(self, token: str) -> SignedClaims | None:
        """Return the claims of a token that the issuer signed for this audience; None if it is not valid.

        Raise `IssuerAway` if the issuer must be asked and does not answer.
        """
        name = _key_name(token)
        if name is None:
            return None
        keys, fetched = self._keys_of(name)
        found = (self._decoded(token, key, name[1]) for key in keys)
        return next((SignedClaims(claims, fetched) for claims in found if claims is not None), None)

    def lack_key_of(self, token: str) -> bool:
        """Return True if the issuer has answered, and its last answer has no key for a token."""
        name = _key_name(token)
        with self._lock:
            return self._fetched is not None and (name is None or name not in self._keys)

    def _decoded(self, token: str, key: jwt.PyJWK, algorithm: str) -> Mapping[str, Any] | None:
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self.issuer.audience,
                issuer=self.issuer.url,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            return None
        # The library takes a text of digits for a time, which RFC 7519 does not.
        is_well_formed = all(type(claims.get(name, 0)) in (int, float) for name in ("exp", "nbf", "iat"))
        return claims if is_well_formed else None

    def _keys_of(self, name: _KeyName) -> tuple[Sequence[jwt.PyJWK], float]:
        """Return the keys of a name, and when they were fetched; raise `IssuerAway` if nobody can know them now."""
        self._update(name)
        with self._lock:
            found, fetched, is_away = self._keys.get(name, ()), self._fetched, self._problem is not None
        age = KNOWN_AWAY_SECONDS if fetched is None else self._clock() - fetched
        if fetched is None or age >= KNOWN_AWAY_SECONDS or (not found and (is_away or age >= KNOWN_SECONDS)):
            raise IssuerAway("the issuer of this token does not answer, and its key is not known")
        return found, fetched

    def _update(self, name: _KeyName) -> None:
        """Fetch the keys if that is due and nobody does it already; wait only for what cannot be answered without."""
        with self._lock:
            age = None if self._fetched is None else self._clock() - self._fetched
            is_known = age is not None and age < KNOWN_SECONDS and name in self._keys
            is_due = not is_known or (age or 0) >= KNOWN_SECONDS / 2
            running = self._running
            # What is known may be wrong until the answer is there; while the issuer is away, nobody waits for it.
            is_awaited = age is None or (not is_known and self._problem is None)
            begins = is_due and running is None and self._may_try()
            if begins:
                self._tried, self._running = self._clock(), threading.Event()
        if begins and is_known:
            threading.Thread(target=self._fetch_all, name="issuer-keys", daemon=True).start()
        elif begins:
            self._fetch_all()
        elif running is not None and is_awaited:
            running.wait(ISSUER_FIRST_SECONDS)

    def _may_try(self) -> bool:
        """Return True unless the issuer was asked a moment ago: tokens of unknown keys must not make us ask often."""
        return self._tried is None or self._clock() - self._tried >= KEY_REFETCH_SECONDS

    def fetch_behind(self) -> None:
        """Fetch the keys in a thread of its own, so that the first token need not wait for them."""
        with self._lock:
            if self._running is not None or not self._may_try():
                return
            self._tried, self._running = self._clock(), threading.Event()
        threading.Thread(target=self._fetch_all, name="issuer-keys", daemon=True).start()

    def _fetch_all(self) -> None:
        found, problem = None, None
        try:
            found = _keys_in(self._fetch(self._address()))
        except SkillError as error:
            problem = str(error)
        finally:
            with self._lock:
                if found is not None:
                    self._keys, self._fetched = found, self._clock()
                running, self._running = self._running, None
                is_news, self._problem = problem != self._problem, problem
            if running is not None:
                running.set()
        if is_news:
            state = f"cannot be fetched: {visible(cut(problem, 300))}" if problem else "are fetched again"
            note(f"the keys of {self.issuer.url} {state}")

    def _address(self) -> str:
        """Return the address of the keys: what the issuer's own document names, or the usual one if it has none."""
        base, end = self.issuer.url.rstrip("/"), time.monotonic() + ISSUER_SECONDS
        problem = None
        for path in _DISCOVERY:
            try:
                document = self._fetch(base + path)
            except SourceNotFound:
                continue
            except SkillError as error:
                problem = error
                # An issuer that took all its time for the first one gets no second chance now.
                if time.monotonic() >= end:
                    break
                continue
            address = document.get("jwks_uri")
            if document.get("issuer") == self.issuer.url and isinstance(address, str):
                return address
            problem = SkillError(f"{self.issuer.url} names no keys, or another issuer")
        if problem is not None:
            raise problem
        return base + _USUAL_KEYS


def _key_name(token: str) -> _KeyName | None:
    """Return the name of the key that signed a token, and its algorithm; None if it is no token, or of another kind."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return None
    # Without a name, each key of the algorithm may have signed it.
    name, algorithm = header.get("kid", _ANY_KEY), header.get("alg")
    return (name, algorithm) if isinstance(name, str) and algorithm in ALGORITHMS else None


def _keys_in(document: Mapping[str, Any]) -> Mapping[_KeyName, Sequence[jwt.PyJWK]]:
    """Return the usable keys of a set by name and algorithm: for signatures, asymmetric, and long enough.

    Several keys may have one name: a token is good if one of them signed it. `_ANY_KEY` is a name of each.
    """
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise SkillError("the set of keys has no list of them")
    found: dict[_KeyName, list[jwt.PyJWK]] = {}
    for value in listed[:ISSUER_KEYS]:
        if not isinstance(value, dict) or value.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(value)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError):
            continue
        if key.algorithm_name in ALGORITHMS and getattr(key.key, "key_size", _RSA_BITS) >= _least_bits(value):
            for name in {_ANY_KEY, key.key_id or _ANY_KEY}:
                found.setdefault((name, key.algorithm_name), []).append(key)
    return found


def _least_bits(value: Mapping[str, Any]) -> int:
    return _RSA_BITS if value.get("kty") == "RSA" else 0
