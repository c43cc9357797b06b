"""The tokens of a team server: made once, shown once, kept as digests, revocable.

A token names its tenant, so that it is looked up among the tokens of that tenant alone. A login is the same for a
browser: a random value in a cookie, bound to the token that it was made with.
"""

import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from skillshelf.core.digests import sha256
from skillshelf.core.limits import LOGIN_SECONDS, LOGINS_PER_SUBJECT
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.servers.team.database import Database, Transaction, now_ms
from skillshelf.servers.team.values import (
    READ,
    ROLES,
    SLUG,
    Caller,
    NoSuchTenant,
    checked_scopes,
    checked_slug,
    checked_subject,
    no_such_tenant,
)

__all__ = [
    "LOGIN_PREFIX",
    "Member",
    "NewToken",
    "Revoked",
    "TokenRecord",
    "add_login",
    "caller_with_login",
    "caller_with_token",
    "create_token",
    "end_login",
    "is_own_token",
    "list_members",
    "list_tokens",
    "revoke_tokens",
    "scopes_of_member",
    "set_member",
    "token_digest",
]

_PREFIX: Final = "sks"
LOGIN_PREFIX: Final = "skl"
_TOKEN = re.compile(rf"(sks|skl)_({SLUG})_([A-Za-z0-9_-]{{43}})")
_SECRET_BYTES = 32
_ID_BYTES = 6


class NewToken(NamedTuple):
    """A token when it is made; afterwards nobody can show it again."""

    id: str
    token: str
    subject: str
    tenant: str
    scopes: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """The JSON form, as `serve token create --json` prints it."""
        return {**self._asdict(), "scopes": [*self.scopes]}


class TokenRecord(NamedTuple):
    """A token as it is listed, with the role of its subject, which counts without scopes; times in milliseconds."""

    id: str
    subject: str
    tenant: str
    scopes: tuple[str, ...]
    created: int
    expires: int | None
    revoked: int | None
    role: str | None

    @property
    def is_valid(self) -> bool:
        """Whether it was neither revoked nor has ended."""
        return self.revoked is None and (self.expires is None or self.expires > now_ms())

    def to_dict(self) -> dict[str, object]:
        """The JSON form, as `serve token list --json` prints it."""
        return {**self._asdict(), "scopes": [*self.scopes]}


def token_digest(token: str) -> str:
    """Return the digest that a token is kept and cached under; a token has 256 random bits, so no salt is needed."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _tenant_of(token: str, prefix: str) -> str | None:
    found = _TOKEN.fullmatch(token)
    return found[2] if found and found[1] == prefix else None


def is_own_token(token: str) -> bool:
    """Return True if a token has the form of those that this server makes."""
    return _tenant_of(token, _PREFIX) is not None


# Tokens -------------------------------------------------------------------------------------------


def create_token(
    database: Database, tenant: str, subject: str, scopes: Iterable[str] = (), expires: int | None = None
) -> NewToken:
    """Make a token and keep its digest; without scopes it has those of the subject's role, else it may read skills.

    Raise `NoSuchTenant`, or `ConfigurationError` for a scope that does not exist.
    """
    checked_subject(subject)
    given = checked_scopes(scopes)
    with database.transaction(checked_slug(tenant)) as transaction:
        _require_tenant(transaction)
        if not given and not scopes_of_member(transaction, subject):
            given = frozenset({READ})
        made = NewToken(
            secrets.token_hex(_ID_BYTES),
            f"{_PREFIX}_{tenant}_{secrets.token_urlsafe(_SECRET_BYTES)}",
            subject,
            tenant,
            tuple(sorted(given)),
        )
        transaction.execute(
            "insert into token (tenant, id, hash, subject, scopes, created, expires) values (?, ?, ?, ?, ?, ?, ?)",
            (tenant, made.id, token_digest(made.token), subject, " ".join(made.scopes), now_ms(), expires),
        )
    return made


def _require_tenant(transaction: Transaction) -> None:
    if transaction.row("select id from tenant where id = ?", (transaction.tenant,)) is None:
        raise no_such_tenant(transaction.tenant)


def list_tokens(database: Database, tenant: str) -> list[TokenRecord]:
    """Return the tokens of a tenant, the oldest first."""
    query = (
        "select t.id, t.subject, t.scopes, t.created, t.expires, t.revoked, m.role from token t "
        "left join member m on m.tenant = t.tenant and m.subject = t.subject where t.tenant = ? "
        "order by t.created, t.id"
    )
    with database.transaction(checked_slug(tenant), readonly=True) as transaction:
        _require_tenant(transaction)
        rows = transaction.rows(query, (tenant,))
    return [TokenRecord(row[0], row[1], tenant, tuple(row[2].split()), *row[3:]) for row in rows]


class Revoked(NamedTuple):
    """The number of tokens that were revoked, and of logins that ended with them or belonged to the subject."""

    tokens: int
    logins: int


def revoke_tokens(database: Database, tenant: str, which: str) -> Revoked:
    """Revoke the token of an id, or all tokens and logins of a subject; return how many."""
    with database.transaction(checked_slug(tenant)) as transaction:
        _require_tenant(transaction)
        count = transaction.execute(
            "update token set revoked = ? where tenant = ? and revoked is null and (id = ? or subject = ?)",
            (now_ms(), tenant, which, which),
        )
        # Logins of an issuer's tokens have no token of ours, and belong to their subject.
        logins = transaction.execute(
            "delete from login where tenant = ? and (token = ? or subject = ?)", (tenant, which, which)
        )
    return Revoked(count, logins)


def caller_with_token(database: Database, token: str) -> tuple[Caller, int | None] | None:
    """Return who has a token of this server, and when it expires; None if nobody has, or no longer."""
    tenant = _tenant_of(token, _PREFIX)
    if tenant is None:
        return None
    query = "select id, subject, scopes, expires, revoked from token where tenant = ? and hash = ?"
    try:
        with database.transaction(tenant, readonly=True) as transaction:
            row = transaction.row(query, (tenant, token_digest(token)))
            if row is None or row[4] is not None or (row[3] is not None and row[3] <= now_ms()):
                return None
            scopes = frozenset(row[2].split()) or scopes_of_member(transaction, row[1])
    except NoSuchTenant:
        return None
    return Caller(row[1], tenant, scopes, token=row[0]), row[3]


# Members ------------------------------------------------------------------------------------------


class Member(NamedTuple):
    """A subject with a role in a tenant."""

    subject: str
    role: str


def list_members(database: Database, tenant: str) -> list[Member]:
    """Return the members of a tenant by name."""
    with database.transaction(checked_slug(tenant), readonly=True) as transaction:
        _require_tenant(transaction)
        rows = transaction.rows("select subject, role from member where tenant = ?", (tenant,))
    # Sorted here: the orders of databases differ.
    return sorted(Member(*row) for row in rows)


def set_member(database: Database, tenant: str, subject: str, role: str | None) -> bool:
    """Give a subject a role in a tenant, or with None take it away; return whether it had one before."""
    checked_subject(subject)
    if role is not None and role not in ROLES:
        raise ConfigurationError(f"no role {role!r}; the roles are {', '.join(ROLES)}")
    with database.transaction(checked_slug(tenant)) as transaction:
        _require_tenant(transaction)
        removed = transaction.execute("delete from member where tenant = ? and subject = ?", (tenant, subject))
        if role is not None:
            transaction.execute("insert into member (tenant, subject, role) values (?, ?, ?)", (tenant, subject, role))
    return removed > 0


def scopes_of_member(transaction: Transaction, subject: str) -> frozenset[str]:
    """Return the scopes of a subject's role; none if it has no role."""
    row = transaction.row("select role from member where tenant = ? and subject = ?", (transaction.tenant, subject))
    return ROLES.get(row[0], frozenset()) if row is not None else frozenset()


# Logins -------------------------------------------------------------------------------------------


def add_login(database: Database, caller: Caller, expires: int | None) -> tuple[str, int]:
    """Return a value for a cookie that stands for a caller, and when it expires; it ends with the token."""
    now = now_ms()
    ends = min(now + LOGIN_SECONDS * 1000, expires or now + LOGIN_SECONDS * 1000)
    cookie = f"{LOGIN_PREFIX}_{caller.tenant}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    with database.transaction(caller.tenant) as transaction:
        of_subject = (caller.tenant, caller.subject)
        transaction.execute("delete from login where tenant = ? and expires <= ?", (caller.tenant, now))
        transaction.execute(
            "delete from login where tenant = ? and subject = ? and hash not in (select hash from login "
            "where tenant = ? and subject = ? order by expires desc limit ?)",
            (*of_subject, *of_subject, LOGINS_PER_SUBJECT - 1),
        )
        transaction.execute(
            "insert into login (tenant, hash, token, subject, scopes, issuer, expires) values (?, ?, ?, ?, ?, ?, ?)",
            (
                caller.tenant,
                token_digest(cookie),
                caller.token,
                caller.subject,
                # Those of a role are looked up: it may be taken away meanwhile.
                "" if caller.has_role_scopes else " ".join(sorted(caller.scopes)),
                caller.issuer,
                ends,
            ),
        )
    return cookie, ends


def caller_with_login(database: Database, cookie: str) -> tuple[Caller, int | None] | None:
    """Return who has a cookie, and when it expires; None if nobody has, no longer, or the token was revoked."""
    tenant = _tenant_of(cookie, LOGIN_PREFIX)
    if tenant is None:
        return None
    query = "select token, subject, scopes, issuer, expires from login where tenant = ? and hash = ?"
    try:
        with database.transaction(tenant, readonly=True) as transaction:
            row = transaction.row(query, (tenant, token_digest(cookie)))
            if row is None or row[4] <= now_ms():
                return None
            given = frozenset(row[2].split()) or scopes_of_member(transaction, row[1])
            scopes = given if not row[0] else _scopes_of_token(transaction, row[0])
    except NoSuchTenant:
        return None
    return None if scopes is None else (Caller(row[1], tenant, scopes, row[3], row[0]), row[4])


def _scopes_of_token(transaction: Transaction, token: str) -> frozenset[str] | None:
    """Return the scopes that the token of an id has now; None if it has ended."""
    row = transaction.row(
        "select subject, scopes, expires from token where tenant = ? and id = ? and revoked is null",
        (transaction.tenant, token),
    )
    if row is None or (row[2] is not None and row[2] <= now_ms()):
        return None
    return frozenset(row[1].split()) or scopes_of_member(transaction, row[0])


def end_login(database: Database, cookie: str) -> None:
    """Forget a login; a cookie of no tenant is none, and nobody learns which it was."""
    tenant = _tenant_of(cookie, LOGIN_PREFIX)
    if tenant is not None:
        with suppress(NoSuchTenant), database.transaction(tenant) as transaction:
            transaction.execute("delete from login where tenant = ? and hash = ?", (tenant, token_digest(cookie)))
