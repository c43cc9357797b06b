"""The releases of a tenant: publish, approve, yank, and move channels, each in one transaction that bumps the revision.

A release is immutable: its name and version always mean the same tree. An approval is of a tree, so it holds for every
release of exactly those files and for no other.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from skillshelf.core.limits import RELEASES_LISTED
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError, PermissionDenied, SkillNotFound
from skillshelf.servers.team.blobs import BlobStore
from skillshelf.servers.team.database import Database, Row, Transaction, now_ms
from skillshelf.servers.team.upload import Upload, checked_version, require_accepted
from skillshelf.servers.team.values import ADMIN, PUBLISH, READ, BlobsAway, Caller, ReleaseExists, TooNew

__all__ = [
    "CATALOG_TOPIC",
    "CHANNELS",
    "PUBLISHED",
    "Channel",
    "Release",
    "ReleaseChange",
    "Releases",
    "ServedRelease",
    "TenantPolicy",
    "changed_releases",
    "current_rev",
    "policy_of",
    "served_releases",
]

Channel = Literal["latest", "approved"]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
PUBLISHED = "published"
"""The source of a skill that was published, in a catalog."""

CATALOG_TOPIC = "skillshelf_catalog"
"""The topic of PostgreSQL under which servers tell each other of a new revision, with the tenant."""

_TEXT_CHARS = 500


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


class ReleaseChange(NamedTuple):
    """The outcome of publishing: the release, the revision, and whether it is new."""

    release: Release
    rev: int
    changed: bool


# Revisions ----------------------------------------------------------------------------------------


def current_rev(transaction: Transaction) -> int:
    """Return the revision of the catalog of a tenant; 0 before the first release."""
    row = transaction.row("select rev from catalog_rev where tenant = ?", (transaction.tenant,))
    return int(row[0]) if row else 0


def _next_rev(transaction: Transaction) -> int:
    """Return the revision that a change has; other changes of the tenant wait until this transaction ends."""
    tenant = transaction.tenant
    transaction.execute("insert into catalog_rev (tenant, rev) values (?, 0) on conflict do nothing", (tenant,))
    row = transaction.row(f"select rev from catalog_rev where tenant = ?{transaction.row_lock}", (tenant,))
    return int(row[0]) + 1 if row else 1


def _finish(transaction: Transaction, rev: int) -> None:
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


def _checked_policy(given: Mapping[str, Any]) -> dict[str, Any]:
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

_RELEASE = """select r.name, r.version, r.tree, t.artifact, t.bytes, r.description, r.source, r.revision, r.publisher,
    r.published, r.yanked, r.yanked_by, r.yanked_why, r.rev
    from release r join tree t on t.digest = r.tree where r.tenant = ?"""

_SERVED = """select r.name, r.version, r.tree, t.artifact, r.description, r.fields, r.size, r.published
    from channel c join release r on r.tenant = c.tenant and r.name = c.name and r.version = c.version
    join tree t on t.digest = r.tree where c.tenant = ? and c.channel = ?"""


def served_releases(transaction: Transaction) -> list[ServedRelease]:
    """Return the releases that models and clients are served, by name."""
    channel = policy_of(transaction).channel
    rows = transaction.rows(f"{_SERVED} order by c.name", (transaction.tenant, channel))
    return [ServedRelease(*row) for row in rows]


def changed_releases(transaction: Transaction, channel: Channel, after: int) -> dict[str, ServedRelease | None]:
    """Return what a channel means for each name that changed after a revision; None for a name that it has no more."""
    given = (transaction.tenant, channel, after)
    names = transaction.rows("select name from channel where tenant = ? and channel = ? and rev > ?", given)
    rows = transaction.rows(f"{_SERVED} and c.rev > ?", given) if names else ()
    found = {row[0]: ServedRelease(*row) for row in rows}
    return {name: found.get(name) for (name,) in names}


def _releases(transaction: Transaction, rows: Iterable[Row]) -> list[Release]:
    """Return releases with their approvals and channels."""
    rows, tenant = list(rows), transaction.tenant
    approvals: dict[str, list[tuple[str, int]]] = {}
    channels: dict[tuple[str, str], list[str]] = {}
    names = {row[0] for row in rows}
    where, given = (" and name = ?", [tenant, *names]) if len(names) == 1 else ("", [tenant])
    for tree, by, at in transaction.rows(
        "select tree, approver, at from approval where tenant = ? order by at", (tenant,)
    ):
        approvals.setdefault(tree, []).append((by, at))
    for name, version, channel in transaction.rows(
        f"select name, version, channel from channel where tenant = ?{where}", given
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


def _release(transaction: Transaction, name: str, version: str) -> Release:
    row = transaction.row(f"{_RELEASE} and r.name = ? and r.version = ?", (transaction.tenant, name, version))
    if row is None:
        raise SkillNotFound(f"{name} {version}")
    return _releases(transaction, [row])[0]


def _is_approved(release: Release, policy: TenantPolicy) -> bool:
    people = {by for by, _ in release.approvals if policy.approve_own or by != release.publisher}
    return len(people) >= policy.approvals


class Releases:
    """The releases of all tenants. Each method acts for a caller, and sees the tenant of that caller alone.

    `changed` is called with the tenant after its catalog changed.
    """

    def __init__(
        self, database: Database, blobs: BlobStore, *, changed: Callable[[str], None] = lambda tenant: None
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._changed = changed

    # Changing -------------------------------------------------------------------------------------

    def publish(
        self,
        caller: Caller,
        upload: Upload,
        *,
        version: str | None = None,
        source: str = "",
        commit: str = "",
        accept: Sequence[str] = (),
    ) -> ReleaseChange:
        """Add a release; the bytes are stored first, so that a release never names bytes that are nowhere.

        The version is the one that is given, else that of the frontmatter, else the next whole number.
        """
        _require_publisher(caller, upload.name)
        if accept and not caller.may(ADMIN):
            raise PermissionDenied("only an admin may accept what a security rule found")
        wanted = version or upload.version
        wanted = checked_version(wanted) if wanted else None
        for text in (source, commit):
            if len(text) > _TEXT_CHARS or not text.isprintable():
                raise ConfigurationError(f"source and commit have at most {_TEXT_CHARS} printable characters")
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            require_accepted(upload, {*accept, *policy_of(transaction).accept_rules})
        self._blobs.put_new(upload.artifact_digest, upload.artifact)
        with self._database.transaction(caller.tenant) as transaction:
            rev = _next_rev(transaction)
            known = self._known(transaction, upload, wanted)
            if known is not None:
                return ReleaseChange(_release(transaction, upload.name, known), rev - 1, changed=False)
            wanted = wanted or _next_version(transaction, upload.name)
            _insert(transaction, caller, upload, wanted, source=source, commit=commit, rev=rev)
            release = _release(transaction, upload.name, wanted)
            _point(transaction, upload.name, "latest", wanted, rev)
            if _is_approved(release, policy_of(transaction)):
                _point(transaction, upload.name, "approved", wanted, rev)
            _finish(transaction, rev)
            release = _release(transaction, upload.name, wanted)
        self._changed(caller.tenant)
        return ReleaseChange(release, rev, changed=True)

    def _known(self, transaction: Transaction, upload: Upload, version: str | None) -> str | None:
        """Return the version under which exactly this was published before; None if it is new."""
        if version is None:
            latest = transaction.row(
                "select r.version, r.tree from release r where r.tenant = ? and r.name = ? order by r.rev desc limit 1",
                (transaction.tenant, upload.name),
            )
            return str(latest[0]) if latest and latest[1] == upload.tree else None
        row = transaction.row(
            "select tree from release where tenant = ? and name = ? and version = ?",
            (transaction.tenant, upload.name, version),
        )
        if row is not None and row[0] != upload.tree:
            raise ReleaseExists(
                f"{upload.name} {version} is published with other files, and never changes; choose another version"
            )
        return version if row is not None else None

    def approve(self, caller: Caller, name: str, version: str) -> ReleaseChange:
        """Approve the tree of a release; it moves to the channel `approved` once enough people did."""
        return self._change(
            caller, name, version, lambda transaction, release, rev: _approve(transaction, caller, release, rev)
        )

    def yank(self, caller: Caller, name: str, version: str, why: str = "") -> ReleaseChange:
        """Take a release out of channels and listings; who knows its version still gets it, with a mark."""
        if len(why) > _TEXT_CHARS or not (why or "x").isprintable():
            raise ConfigurationError(f"a reason has at most {_TEXT_CHARS} printable characters")
        return self._change(
            caller, name, version, lambda transaction, release, rev: _yank(transaction, caller, release, rev, why)
        )

    def move_channel(self, caller: Caller, name: str, channel: str, version: str) -> ReleaseChange:
        """Let a channel mean another release, such as an older one."""
        if channel not in CHANNELS:
            raise ConfigurationError(f"no channel {visible(channel)!r}; there are {', '.join(CHANNELS)}")

        def move(transaction: Transaction, release: Release, rev: int) -> bool:
            if channel in release.channels:
                return False
            if release.yanked:
                raise ConfigurationError(f"{name} {version} is yanked, and no channel may have it")
            if channel == "approved" and not _is_approved(release, policy_of(transaction)):
                raise PermissionDenied(f"{name} {version} is not approved")
            _point(transaction, name, channel, version, rev)
            return True

        return self._change(caller, name, version, move)

    def set_policy(self, caller: Caller, given: Mapping[str, Any]) -> TenantPolicy:
        """Change the policy of the tenant, which an admin may do."""
        if not caller.may(ADMIN):
            raise PermissionDenied("only an admin may change the policy of a tenant")
        checked = _checked_policy(given)
        with self._database.transaction(caller.tenant) as transaction:
            for name, value in checked.items():
                transaction.execute(
                    "insert into policy (tenant, name, value) values (?, ?, ?) "
                    "on conflict (tenant, name) do update set value = excluded.value",
                    (caller.tenant, name, json.dumps(value)),
                )
            rev = _next_rev(transaction)
            policy = policy_of(transaction)
            _settle_approved(transaction, policy, rev)
            _finish(transaction, rev)
        self._changed(caller.tenant)
        return policy

    def _change(
        self, caller: Caller, name: str, version: str, act: Callable[[Transaction, Release, int], bool]
    ) -> ReleaseChange:
        _require_publisher(caller, name)
        with self._database.transaction(caller.tenant) as transaction:
            rev = _next_rev(transaction)
            changed = act(transaction, _release(transaction, name, version), rev)
            if changed:
                _finish(transaction, rev)
            found = ReleaseChange(_release(transaction, name, version), current_rev(transaction), changed)
        if changed:
            self._changed(caller.tenant)
        return found

    # Reading --------------------------------------------------------------------------------------

    def policy(self, caller: Caller) -> TenantPolicy:
        """Return the policy of the tenant."""
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            return policy_of(transaction)

    def rev(self, caller: Caller, at_least: int = 0) -> int:
        """Return the revision now; raise `TooNew` if the database has not seen the one that is asked for."""
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            return _require_rev(transaction, at_least)

    def listed(
        self, caller: Caller, *, after: str = "", yanked: bool = False, at_least: int = 0, most: int = RELEASES_LISTED
    ) -> tuple[int, list[Release], str | None]:
        """Return the revision, releases by name and version, and where to go on; None at the end.

        A reader sees what the policy of the tenant serves, a publisher all that is not yanked.
        """
        _require_reader(caller)
        name, _, version = after.partition(" ")
        found: list[Release] = []
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rev, policy = _require_rev(transaction, at_least), policy_of(transaction)
            more: str | None = f"{name} {version}"
            while more is not None and len(found) < most:
                rows = transaction.rows(
                    f"{_RELEASE} and (r.name > ? or (r.name = ? and r.version > ?)) "
                    f"order by r.name, r.version limit {int(most)}",
                    (caller.tenant, name, name, version),
                )
                found += [
                    one for one in _releases(transaction, rows) if self._lists(caller, policy, one, yanked=yanked)
                ]
                more = None
                if len(rows) == most:
                    name, version = rows[-1][:2]
                    more = f"{name} {version}"
        if len(found) > most:
            found = found[:most]
            more = f"{found[-1].name} {found[-1].version}"
        return rev, found, more

    def _lists(self, caller: Caller, policy: TenantPolicy, release: Release, *, yanked: bool) -> bool:
        return (not release.yanked or yanked) and _may_get(caller, policy, release)

    def versions(self, caller: Caller, name: str, *, at_least: int = 0) -> tuple[int, list[Release]]:
        """Return the revision and all releases of a name, the newest first; raise SkillNotFound."""
        _require_reader(caller)
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rev, policy = _require_rev(transaction, at_least), policy_of(transaction)
            rows = transaction.rows(f"{_RELEASE} and r.name = ? order by r.rev desc", (caller.tenant, name))
            found = [one for one in _releases(transaction, rows) if _may_get(caller, policy, one)] if rows else []
        if not found:
            raise SkillNotFound(name)
        return rev, found

    def artifact(self, caller: Caller, name: str, version: str, *, at_least: int = 0) -> tuple[int, Release, bytes]:
        """Return the revision, a release by its version or channel, and its archive; raise SkillNotFound."""
        rev, found = self.versions(caller, name, at_least=at_least)
        meant = [one for one in found if version in ((one.version, *one.channels))]
        if not meant:
            raise SkillNotFound(f"{name} {version}")
        return rev, meant[0], self._bytes(meant[0].artifact)

    def artifact_with(self, caller: Caller, name: str, begin: str) -> bytes | None:
        """Return the archive of a release of a name by the first 16 hex digits of its digest; None if there is none.

        A digest alone leads nowhere: what another tenant has cannot be asked for.
        """
        _require_reader(caller)
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rows = transaction.rows(f"{_RELEASE} and r.name = ?", (caller.tenant, name))
            meant = [row for row in rows if row[3] == f"sha256:{begin}{row[3][23:]}" and len(begin) == 16]
            policy = policy_of(transaction)
            found = [one for one in _releases(transaction, meant) if _may_get(caller, policy, one)] if meant else []
        return self._bytes(found[0].artifact) if found else None

    def served(self, caller: Caller, *, at_least: int = 0) -> tuple[int, list[ServedRelease]]:
        """Return the revision and the releases that clients are served."""
        _require_reader(caller)
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rev = _require_rev(transaction, at_least)
            return rev, [one for one in served_releases(transaction) if caller.may_read(one.name)]

    def _bytes(self, digest: str) -> bytes:
        data = self._blobs.get(digest)
        if data is None:
            raise BlobsAway(f"the blob store has lost {digest}")
        return data


# What a caller may do -----------------------------------------------------------------------------


def _require_publisher(caller: Caller, name: str) -> None:
    """Raise unless a caller may change a name; patterns of names that it may read bound what it may publish."""
    if not caller.may(PUBLISH):
        raise PermissionDenied(f"this token has no scope {PUBLISH}")
    if caller.subset and not caller.may_read(name):
        raise PermissionDenied(f"this token may not publish {visible(name)}")


def _require_reader(caller: Caller) -> None:
    if not (caller.may(READ) or caller.may(PUBLISH)):
        raise PermissionDenied(f"this token has no scope {READ}")


def _may_get(caller: Caller, policy: TenantPolicy, release: Release) -> bool:
    """Return whether a caller may know of a release; who publishes also sees what nobody approved yet."""
    if caller.subset and not caller.may_read(release.name):
        return False
    return caller.may(PUBLISH) or not policy.approved_only or _is_approved(release, policy)


def _require_rev(transaction: Transaction, at_least: int) -> int:
    rev = current_rev(transaction)
    if rev < at_least:
        raise TooNew(f"this server knows revision {rev} of the catalog, and {at_least} was asked for; try again")
    return rev


# Statements of a change ---------------------------------------------------------------------------


def _insert(
    transaction: Transaction, caller: Caller, upload: Upload, version: str, *, source: str, commit: str, rev: int
) -> None:
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


def _next_version(transaction: Transaction, name: str) -> str:
    rows = transaction.rows("select version from release where tenant = ? and name = ?", (transaction.tenant, name))
    numbers = [int(version) for (version,) in rows if version.isascii() and version.isdecimal()]
    return str(max(numbers, default=0) + 1)


def _point(transaction: Transaction, name: str, channel: str, version: str | None, rev: int) -> None:
    """Let a channel mean a version, or nothing: its row stays, without a version, to say when that changed."""
    transaction.execute(
        "insert into channel (tenant, name, channel, version, rev) values (?, ?, ?, ?, ?) "
        "on conflict (tenant, name, channel) do update set version = excluded.version, rev = excluded.rev",
        (transaction.tenant, name, channel, version or "", rev),
    )


def _approve(transaction: Transaction, caller: Caller, release: Release, rev: int) -> bool:
    policy = policy_of(transaction)
    if release.yanked:
        raise ConfigurationError(f"{release.name} {release.version} is yanked")
    if not policy.approve_own and caller.subject == release.publisher:
        raise PermissionDenied(
            f"{caller.subject} published {release.name} {release.version}; somebody else approves it"
        )
    added = transaction.execute(
        "insert into approval (tenant, tree, approver, at) values (?, ?, ?, ?) on conflict do nothing",
        (transaction.tenant, release.tree, caller.subject, now_ms()),
    )
    now = _release(transaction, release.name, release.version)
    if "approved" not in now.channels and _is_approved(now, policy):
        _point(transaction, release.name, "approved", release.version, rev)
        return True
    return added > 0


def _yank(transaction: Transaction, caller: Caller, release: Release, rev: int, why: str) -> bool:
    if release.yanked:
        return False
    transaction.execute(
        "update release set yanked = 1, yanked_by = ?, yanked_why = ? where tenant = ? and name = ? and version = ?",
        (caller.subject, why, transaction.tenant, release.name, release.version),
    )
    policy = policy_of(transaction)
    rows = transaction.rows(
        f"{_RELEASE} and r.name = ? and r.yanked = 0 order by r.rev desc", (transaction.tenant, release.name)
    )
    left = _releases(transaction, rows) if rows else []
    for channel in release.channels:
        fit = [one for one in left if channel == "latest" or _is_approved(one, policy)]
        _point(transaction, release.name, channel, fit[0].version if fit else None, rev)
    return True


def _settle_approved(transaction: Transaction, policy: TenantPolicy, rev: int) -> None:
    """Let the channel `approved` of each name follow a policy that asks for more or fewer approvals."""
    rows = transaction.rows(f"{_RELEASE} and r.yanked = 0 order by r.rev desc", (transaction.tenant,))
    approved: dict[str, list[Release]] = {}
    for release in _releases(transaction, rows) if rows else ():
        approved.setdefault(release.name, [])
        if _is_approved(release, policy):
            approved[release.name].append(release)
    for name, fit in approved.items():
        if any("approved" in one.channels for one in fit):
            continue
        _point(transaction, name, "approved", fit[0].version if fit else None, rev)
