"""The releases in the database of a tenant: what they are, how they are read, and the statements that change them.

A release is immutable: its name and version always mean the same tree. An approval is of a tree, so it holds for every
release of exactly those files and for no other. `release_access` decides who may do what.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from skillshelf.catalog.look_alikes import looks_like_others
from skillshelf.catalog.tree import folded_path
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError, PermissionDenied, SkillNotFound, SourceRefused
from skillshelf.servers.team.database import Row, Transaction, now_ms
from skillshelf.servers.team.upload import Upload
from skillshelf.servers.team.values import Caller

__all__ = [
    "CATALOG_TOPIC",
    "CHANNELS",
    "PUBLISHED",
    "RELEASE_ROWS",
    "Channel",
    "ChannelMove",
    "Release",
    "ServedRelease",
    "TenantPolicy",
    "approve_tree",
    "changed_releases",
    "checked_policy",
    "current_rev",
    "finish_change",
    "insert_release",
    "is_approved",
    "newest_moves",
    "next_rev",
    "next_version",
    "point_channel",
    "policy_of",
    "release_of",
    "releases_in",
    "require_distinct_name",
    "served_names",
    "served_releases",
    "settle_approved",
    "withdraw_yanked_approvals",
    "yank_release",
]

Channel = Literal["latest", "approved"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
PUBLISHED = "published"
"""The source of a skill that was published, in a catalog."""

CATALOG_TOPIC = "skillshelf_catalog"
"""The topic of PostgreSQL under which servers tell each other of a new revision, with the tenant."""


class TenantPolicy(NamedTuple):
    """What a tenant demands of releases.

    With `approved_only` models and clients get approved releases alone. `approvals` people must approve a tree; the
    one who published it is none of them unless `approve_own`. `accept_rules` are security rules that refuse nothing.
    """

    approved_only: bool = False
    approvals: int = 1
    approve_own: bool = True
    accept_rules: tuple[str, ...] = ()

    @property
    def channel(self) -> Channel:
        """The channel that models and clients are served from."""
        return "approved" if self.approved_only else "latest"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**self._asdict(), "accept_rules": [*self.accept_rules]}


class Release(NamedTuple):
    """A release as people see it."""

    name: str
    version: str
    tree: str
    artifact: str
    bytes: int
    description: str
    source: str
    commit: str
    publisher: str
    published: int
    yanked: bool
    yanked_by: str | None
    yanked_why: str | None
    rev: int
    approvals: tuple[tuple[str, int], ...]
    channels: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        approvals = [{"by": by, "at": at} for by, at in self.approvals]
        return {**self._asdict(), "approvals": approvals, "channels": [*self.channels]}


class ServedRelease(NamedTuple):
    """A release that models and clients are served, with what a catalog needs of it."""

    name: str
    version: str
    tree: str
    artifact: str
    description: str
    fields: str
    size: int
    published: int

    @property
    def frontmatter(self) -> Mapping[str, Any]:
        """The fields of its SKILL.md."""
        found = json.loads(self.fields)
        return found if isinstance(found, dict) else {}


# Revisions ----------------------------------------------------------------------------------------


def current_rev(transaction: Transaction) -> int:
    """Return the revision of the catalog of a tenant; 0 before the first release."""
    row = transaction.row("select rev from catalog_rev where tenant = ?", (transaction.tenant,))
    return int(row[0]) if row else 0


def next_rev(transaction: Transaction) -> int:
    """Return the revision that a change has; other changes of the tenant wait until this transaction ends."""
    tenant = transaction.tenant
    transaction.execute("insert into catalog_rev (tenant, rev) values (?, 0) on conflict do nothing", (tenant,))
    row = transaction.row(f"select rev from catalog_rev where tenant = ?{transaction.row_lock}", (tenant,))
    return int(row[0]) + 1 if row else 1


def finish_change(transaction: Transaction, rev: int) -> None:
    """Record the revision of a change, and tell the other servers at the end of the transaction if that can be."""
    transaction.execute("update catalog_rev set rev = ? where tenant = ?", (rev, transaction.tenant))
    if transaction.engine == "postgresql":
        transaction.row(f"select pg_notify('{CATALOG_TOPIC}', ?)", (transaction.tenant,))


# Policy -------------------------------------------------------------------------------------------


def policy_of(transaction: Transaction) -> TenantPolicy:
    """Return the policy of a tenant."""
    rows = transaction.rows("select name, value from policy where tenant = ?", (transaction.tenant,))
    known = {name: json.loads(value) for name, value in rows if name in TenantPolicy._fields}
    if "accept_rules" in known:
        known["accept_rules"] = tuple(known["accept_rules"])
    return TenantPolicy(**known)


def checked_policy(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy that a request gives, or raise ConfigurationError for what none may be."""
    from skillshelf.lint.consent import accepted_rules

    for name, value in given.items():
        default = TenantPolicy()._asdict().get(name)
        if default is None:
            raise ConfigurationError(f"no policy {visible(name)!r}; there are {', '.join(TenantPolicy._fields)}")
        if isinstance(default, bool) and not isinstance(value, bool):
            raise ConfigurationError(f"{name} is true or false")
        if type(default) is int and not (type(value) is int and 1 <= value <= 100):
            raise ConfigurationError(f"{name} is a whole number from 1 to 100")
    rules = given.get("accept_rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise ConfigurationError("accept_rules is a list of security rules")
    accepted_rules(rules)
    return dict(given)


# Reading ------------------------------------------------------------------------------------------

RELEASE_ROWS = """select r.name, r.version, r.tree, t.artifact, t.bytes, r.description, r.source, r.revision,
    r.publisher, r.published, r.yanked, r.yanked_by, r.yanked_why, r.rev
    from release r join tree t on t.digest = r.tree where r.tenant = ?"""
"""The query of releases of a tenant, to which more conditions are added."""

_SERVED = """select r.name, r.version, r.tree, t.artifact, r.description, r.fields, r.size, r.published
    from channel c join release r on r.tenant = c.tenant and r.name = c.name and r.version = c.version
    join tree t on t.digest = r.tree where c.tenant = ? and c.channel = ?"""


_MOVES = 16
_NAMES_ASKED = 500
"""Names in one statement; databases bound the values that one takes."""


def served_releases(transaction: Transaction, names: Sequence[str] | None = None) -> list[ServedRelease]:
    """Return the releases that models and clients are served, by name; with `names` those of them, in any order."""
    given = (transaction.tenant, policy_of(transaction).channel)
    if names is None:
        return [ServedRelease(*row) for row in transaction.rows(f"{_SERVED} order by c.name", given)]
    found = []
    for start in range(0, len(names), _NAMES_ASKED):
        asked = names[start : start + _NAMES_ASKED]
        places = ", ".join("?" * len(asked))
        found += [
            ServedRelease(*row) for row in transaction.rows(f"{_SERVED} and c.name in ({places})", (*given, *asked))
        ]
    return found


def served_names(transaction: Transaction) -> list[str]:
    """Return the names of the releases that models and clients are served."""
    rows = transaction.rows(
        "select name from channel where tenant = ? and channel = ? and version <> ''",
        (transaction.tenant, policy_of(transaction).channel),
    )
    return [name for (name,) in rows]


def changed_releases(transaction: Transaction, channel: Channel, after: int) -> dict[str, ServedRelease | None]:
    """Return what a channel means for each name that changed after a revision; None for a name that it has no more."""
    given = (transaction.tenant, channel, after)
    names = transaction.rows("select name from channel where tenant = ? and channel = ? and rev > ?", given)
    rows = transaction.rows(f"{_SERVED} and c.rev > ?", given) if names else ()
    found = {row[0]: ServedRelease(*row) for row in rows}
    return {name: found.get(name) for (name,) in names}


class ChannelMove(NamedTuple):
    """What a channel means for a name since a revision, and when that release was published."""

    name: str
    version: str
    rev: int
    published: int | None


def newest_moves(transaction: Transaction, channel: Channel, until: int) -> tuple[ChannelMove, ...]:
    """Return the newest moves of a channel until a revision, the newest first."""
    rows = transaction.rows(
        "select c.name, c.version, c.rev, r.published from channel c "
        "left join release r on r.tenant = c.tenant and r.name = c.name and r.version = c.version "
        f"where c.tenant = ? and c.channel = ? and c.rev <= ? order by c.rev desc, c.name limit {_MOVES}",
        (transaction.tenant, channel, until),
    )
    return tuple(ChannelMove(*row) for row in rows)


def releases_in(transaction: Transaction, rows: Iterable[Row]) -> list[Release]:
    """Return releases with their approvals and channels."""
    rows, tenant = list(rows), transaction.tenant
    approvals: dict[str, list[tuple[str, int]]] = {}
    channels: dict[tuple[str, str], list[str]] = {}
    names = sorted({row[0] for row in rows})
    for start in range(0, len(names), _NAMES_ASKED):
        asked = names[start : start + _NAMES_ASKED]
        where, given = f"tenant = ? and name in ({', '.join('?' * len(asked))})", (tenant, *asked)
        for tree, by, at in transaction.rows(
            "select tree, approver, at from approval where tenant = ? "
            f"and tree in (select tree from release where {where}) order by at",
            (tenant, *given),
        ):
            known = approvals.setdefault(tree, [])
            known += [(by, at)] if (by, at) not in known else []
        for name, version, channel in transaction.rows(
            f"select name, version, channel from channel where {where}", given
        ):
            channels.setdefault((name, version), []).append(channel)
    return [
        Release._make(
            (
                *(*row[:10], bool(row[10]), *row[11:]),
                tuple(approvals.get(row[2], ())),
                tuple(sorted(channels.get((row[0], row[1]), ()))),
            )
        )
        for row in rows
    ]


def release_of(transaction: Transaction, name: str, version: str) -> Release:
    """Return the release of a name and a version; raise SkillNotFound."""
    row = transaction.row(f"{RELEASE_ROWS} and r.name = ? and r.version = ?", (transaction.tenant, name, version))
    if row is None:
        raise SkillNotFound(f"{name} {version}")
    return releases_in(transaction, [row])[0]


def is_approved(release: Release, policy: TenantPolicy) -> bool:
    """Return whether as many people approved a release as a policy demands."""
    people = {by for by, _ in release.approvals if policy.approve_own or by != release.publisher}
    return len(people) >= policy.approvals


# Statements of a change ---------------------------------------------------------------------------


def require_distinct_name(transaction: Transaction, caller: Caller, name: str) -> None:
    """Raise SourceRefused for a new name that some machine, or a reader, takes for one that the tenant has.

    Both in one index would make clients refuse all of it, since they cannot be installed side by side. A name that the
    caller may not know of is not said.
    """
    names = {str(row[0]) for row in transaction.rows("select name from skill where tenant = ?", (transaction.tenant,))}
    if name in names:
        return
    folded = folded_path(name)
    # Within ASCII, `modern` looks like `modem`, and both are words.
    others = [other for other in names if not (name.isascii() and other.isascii())]
    twins = [other for other in names if folded_path(other) == folded]
    if not twins and looks_like_others([name], others):
        twins = [other for other in others if looks_like_others([name], [other])]
    if twins:
        known = [repr(visible(twin)) for twin in sorted(twins) if caller.may_read(twin)]
        told = f"{known[0]}, which" if known else "a name that"
        raise SourceRefused("name-confusable", f"{visible(name)!r} looks like {told} is published here")


def insert_release(
    transaction: Transaction, caller: Caller, upload: Upload, version: str, *, source: str, commit: str, rev: int
) -> None:
    """Add a release with its skill and its tree."""
    tenant, now = caller.tenant, now_ms()
    transaction.execute(
        "insert into skill (tenant, name, description) values (?, ?, ?) "
        "on conflict (tenant, name) do update set description = excluded.description",
        (tenant, upload.name, upload.description),
    )
    # The release first: a tenant sees the tree of a release, and nothing says whether others had it before.
    transaction.execute(
        "insert into release (tenant, name, version, tree, source, revision, publisher, published, rev, description, "
        "fields, size) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(tenant, upload.name, version, upload.tree, source, commit, caller.subject, now, rev),
            *(upload.description, upload.fields_text, upload.size),
        ),
    )
    transaction.execute(
        "insert into tree (digest, manifest, bytes, files, artifact, artifact_bytes, first_seen) "
        "values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
        (
            *(upload.tree, upload.manifest.encode(), sum(map(len, upload.contents.values())), len(upload.contents)),
            *(upload.artifact_digest, len(upload.artifact), now),
        ),
    )


def next_version(transaction: Transaction, name: str) -> str:
    """Return the next whole number that no release of a name has as its version."""
    rows = transaction.rows("select version from release where tenant = ? and name = ?", (transaction.tenant, name))
    numbers = [int(version) for (version,) in rows if version.isascii() and version.isdecimal()]
    return str(max(numbers, default=0) + 1)


def point_channel(transaction: Transaction, name: str, channel: str, version: str | None, rev: int) -> None:
    """Let a channel mean a version, or nothing: its row stays, without a version, to say when that changed."""
    transaction.execute(
        "insert into channel (tenant, name, channel, version, rev) values (?, ?, ?, ?, ?) "
        "on conflict (tenant, name, channel) do update set version = excluded.version, rev = excluded.rev",
        (transaction.tenant, name, channel, version or "", rev),
    )


def approve_tree(transaction: Transaction, caller: Caller, release: Release, rev: int) -> bool:
    """Approve the tree of a release; return whether that is news.

    Once enough people did, `approved` means the newest release of these files, unless it means a newer one. An approval
    of what was approved before moves nothing: somebody may have gone back with the channel.
    """
    policy = policy_of(transaction)
    if release.yanked:
        raise ConfigurationError(f"{release.name} {release.version} is yanked")
    if not policy.approve_own and caller.subject == release.publisher:
        raise PermissionDenied(
            f"{caller.subject} published {release.name} {release.version}; somebody else approves it"
        )
    before = {one.version for one in _releases_left(transaction, release.name) if is_approved(one, policy)}
    added = transaction.execute(
        "insert into approval (tenant, tree, approver, at) values (?, ?, ?, ?) on conflict do nothing",
        (transaction.tenant, release.tree, caller.subject, now_ms()),
    )
    return _settle(transaction, _releases_left(transaction, release.name), policy, before, rev) or added > 0


def _releases_left(transaction: Transaction, name: str) -> list[Release]:
    """Return the releases of a name that are not yanked, the newest first."""
    rows = transaction.rows(
        f"{RELEASE_ROWS} and r.name = ? and r.yanked = 0 order by r.rev desc", (transaction.tenant, name)
    )
    return releases_in(transaction, rows) if rows else []


def _settle(
    transaction: Transaction, left: Sequence[Release], policy: TenantPolicy, before: Container[str], rev: int
) -> bool:
    """Let `approved` of a name mean what it should after an approval or a change of the policy; return if it moved.

    `left` are the releases of the name that are not yanked, the newest first, and `before` has the versions of those
    that were approved before.
    """
    current = next((one for one in left if "approved" in one.channels), None)
    meant = _approved_now(left, current, policy, before)
    if meant == current:
        return False
    point_channel(transaction, left[0].name, "approved", meant.version if meant else None, rev)
    return True


def _approved_now(
    left: Sequence[Release], current: Release | None, policy: TenantPolicy, before: Container[str]
) -> Release | None:
    """Return the newest release that was not approved before; else the current one, or the newest older that fits.

    Where `approved` means nothing, somebody left what was approved before, and it stays so.
    """
    approved = [one for one in left if is_approved(one, policy)]
    after = current.rev if current is not None else 0
    newer = [one for one in approved if one.rev > after and one.version not in before]
    fit = newer or [one for one in approved if one.rev <= after]
    return fit[0] if fit else None


def yank_release(transaction: Transaction, caller: Caller, release: Release, rev: int, why: str) -> bool:
    """Mark a release as yanked, and let its channels go back; return False if it was yanked before.

    They go to the newest release that is older, never forward: somebody may have gone back from a newer one.
    """
    if release.yanked:
        return False
    transaction.execute(
        "update release set yanked = 1, yanked_by = ?, yanked_why = ? where tenant = ? and name = ? and version = ?",
        (caller.subject, why, transaction.tenant, release.name, release.version),
    )
    policy = policy_of(transaction)
    older = [one for one in _releases_left(transaction, release.name) if one.rev < release.rev]
    for channel in release.channels:
        fit = [one for one in older if channel == "latest" or is_approved(one, policy)]
        point_channel(transaction, release.name, channel, fit[0].version if fit else None, rev)
    return True


def withdraw_yanked_approvals(transaction: Transaction, tree: str) -> None:
    """Remove the approvals of files all of whose releases were yanked: published again, they are approved again."""
    transaction.execute(
        "delete from approval where tenant = ? and tree = ? "
        "and exists (select 1 from release where tenant = ? and tree = ?) "
        "and not exists (select 1 from release where tenant = ? and tree = ? and yanked = 0)",
        (transaction.tenant, tree) * 3,
    )


def settle_approved(transaction: Transaction, before: TenantPolicy, policy: TenantPolicy, rev: int) -> None:
    """Let the channel `approved` of each name follow a policy that asks for more or fewer approvals."""
    rows = transaction.rows(f"{RELEASE_ROWS} and r.yanked = 0 order by r.rev desc", (transaction.tenant,))
    by_name: dict[str, list[Release]] = {}
    for release in releases_in(transaction, rows) if rows else ():
        by_name.setdefault(release.name, []).append(release)
    for left in by_name.values():
        _settle(transaction, left, policy, {one.version for one in left if is_approved(one, before)}, rev)
