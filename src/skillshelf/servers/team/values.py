"""Values of the team server: the caller of a request, the scopes, and the HTTP status of each error."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from skillshelf.core.records import NamedTuple
from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    LimitExceeded,
    PathEscape,
    PermissionDenied,
    ResourceNotFound,
    SkillAlreadyExists,
    SkillError,
    SkillNotFound,
    SkillsDisabled,
    SourceNotFound,
    SourceRefused,
    ValidationFailed,
)

__all__ = [
    "ADMIN",
    "DEFAULT_TENANT",
    "FILES_AWAY",
    "JOURNAL_READ",
    "JOURNAL_WRITE",
    "METRICS_READ",
    "NO_SPACE",
    "PUBLISH",
    "READ",
    "ROLES",
    "SCOPES",
    "SLUG",
    "BlobsAway",
    "BlobsFull",
    "Caller",
    "DatabaseAway",
    "DatabaseFull",
    "IssuerAway",
    "NoSuchTenant",
    "NotAuthenticated",
    "ReleaseExists",
    "RowExists",
    "TeamError",
    "TooNew",
    "checked_scopes",
    "checked_slug",
    "checked_subject",
    "no_such_tenant",
    "status_of",
]

READ: Final = "skills:read"
PUBLISH: Final = "skills:publish"
JOURNAL_WRITE: Final = "journal:write"
JOURNAL_READ: Final = "journal:read"
METRICS_READ: Final = "metrics:read"
ADMIN: Final = "admin"

SCOPES: Mapping[str, str] = {
    READ: "list, search and load skills; with a pattern, as skills:read:frontend-*, only those whose names match",
    PUBLISH: "publish, yank and approve releases",
    JOURNAL_WRITE: "send journals",
    JOURNAL_READ: "read journals, and usage by day and person",
    METRICS_READ: "read the metrics of the server with a token of the tenant default, and nothing else",
    ADMIN: "everything in the tenant; in the tenant default also the metrics",
}
"""Every scope, and what it allows."""

ROLES: Mapping[str, frozenset[str]] = {
    "reader": frozenset({READ}),
    "member": frozenset({READ, JOURNAL_WRITE}),
    "publisher": frozenset({READ, JOURNAL_WRITE, PUBLISH}),
    "auditor": frozenset({READ, JOURNAL_READ}),
    "admin": frozenset({ADMIN}),
}
"""The roles of a member, and the scopes of each; they count where a token names no scopes of its own."""

DEFAULT_TENANT: Final = "default"
"""The tenant that every database has; the skills on the server's own disk are visible to it alone."""

SLUG: Final = r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
"""The pattern of the name of a tenant."""

_PATTERN = re.compile(r"[^\s,]{1,128}")
_SUBJECT_CHARS = 256
_ALL: Final = ("*",)


class TeamError(SkillError):
    """A request that the team server cannot do."""


class NotAuthenticated(TeamError):
    """A request without a valid token."""


class DatabaseAway(TeamError):
    """The database does not answer."""


class DatabaseFull(DatabaseAway):
    """The database has no space left on its disk."""


class IssuerAway(TeamError):
    """The issuer of a token does not answer, and the key of the token is not known."""


class BlobsAway(TeamError):
    """The blob store does not answer, or has other bytes than it promised."""


class BlobsFull(BlobsAway):
    """The disk of the blob store, or of the files that come from it, has no space left."""


NO_SPACE: Final = "no space left on the server's disk"
"""What callers are told of a full disk."""

FILES_AWAY: Final = "the blob store does not have the files of this skill, or does not answer"
"""What callers are told of `BlobsAway`, whose reason may hold a path or an address."""


class TooNew(TeamError):
    """A revision of the catalog that this server has not seen yet; `known` is the newest that it has."""

    def __init__(self, known: int, wanted: int) -> None:
        super().__init__(f"this server knows revision {known} of the catalog, and {wanted} was asked for; try again")
        self.known = known


class ReleaseExists(TeamError):
    """A release of this name and version that has another tree."""


class NoSuchTenant(TeamError):
    """A tenant that the database does not have."""


def no_such_tenant(tenant: str) -> NoSuchTenant:
    """Return the error about a tenant that nobody has made."""
    return NoSuchTenant(f"no tenant {tenant} (make it with `skillshelf serve tenant create`)")


class RowExists(TeamError):
    """A row that breaks a key of its table."""


class Caller(NamedTuple):
    """The person or program that sends a request, as its token says.

    `issuer` is empty for a token of this server, whose id is `token`. All that a caller sees and does is of `tenant`.
    `has_role_scopes` is True if an issuer's token names no scopes, so that they are those of the subject's role.
    """

    subject: str
    tenant: str
    scopes: frozenset[str]
    issuer: str = ""
    token: str = ""
    has_role_scopes: bool = False

    def may(self, scope: str) -> bool:
        """Return True if the caller has this scope; `admin` has all of them."""
        return ADMIN in self.scopes or scope in self.scopes or (scope == READ and bool(self.subset))

    @property
    def subset(self) -> tuple[str, ...]:
        """The patterns of names that the caller may read, sorted; empty if none."""
        if ADMIN in self.scopes or READ in self.scopes:
            return _ALL
        begin = f"{READ}:"
        return tuple(sorted(scope.removeprefix(begin) for scope in self.scopes if scope.startswith(begin)))

    def may_read(self, name: str) -> bool:
        """Return True if the caller may know of a skill of this name."""
        return any(fnmatchcase(name, pattern) for pattern in self.subset)


def checked_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """Return the scopes, or raise `ConfigurationError` for one that does not exist."""
    found = frozenset(scopes)
    for scope in sorted(found):
        pattern = scope.removeprefix(f"{READ}:")
        if scope not in SCOPES and (pattern == scope or not _PATTERN.fullmatch(pattern) or not pattern.isprintable()):
            known = ", ".join(SCOPES)
            raise ConfigurationError(f"no scope {scope!r}; the scopes are {known}, and {READ}:PATTERN")
    return found


def checked_slug(slug: str) -> str:
    """Return the name of a tenant, or raise `ConfigurationError`."""
    if not re.fullmatch(SLUG, slug):
        raise ConfigurationError(
            f"a tenant is named with up to 40 letters a-z, digits and dashes, for example acme, not {slug!r}"
        )
    return slug


def checked_subject(subject: str) -> str:
    """Return the name of a person or program, or raise `ConfigurationError`."""
    if not subject or len(subject) > _SUBJECT_CHARS or not subject.isprintable() or subject != subject.strip():
        raise ConfigurationError(
            f"a subject has 1 to {_SUBJECT_CHARS} printable characters without blanks around them, "
            "for example ada@example"
        )
    return subject


_STATUS: Mapping[type[SkillError], int] = {
    SkillError: 500,
    TeamError: 400,
    NotAuthenticated: 401,
    DatabaseAway: 503,
    BlobsAway: 503,
    IssuerAway: 503,
    TooNew: 503,
    ReleaseExists: 409,
    NoSuchTenant: 404,
    RowExists: 409,
    ConfigurationError: 400,
    ValidationFailed: 422,
    PathEscape: 400,
    PermissionDenied: 403,
    SkillsDisabled: 403,
    SkillNotFound: 404,
    ResourceNotFound: 404,
    SourceNotFound: 404,
    AmbiguousSkill: 409,
    SkillAlreadyExists: 409,
    LimitExceeded: 413,
    SourceRefused: 422,
}
"""The HTTP status of each exception."""


def status_of(error: SkillError) -> int:
    """Return the HTTP status of an exception; a class without one has that of its base class."""
    return next(_STATUS[base] for base in type(error).__mro__ if base in _STATUS)
