"""Releases for those who may see and change them: each act is one transaction for a caller that bumps the revision."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillshelf.core.limits import RELEASES_LISTED
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError, PermissionDenied, SkillNotFound
from skillshelf.servers.team.blobs import BlobStore
from skillshelf.servers.team.database import Database, Transaction
from skillshelf.servers.team.release_findings import SkillFindings, keep_findings
from skillshelf.servers.team.releases import (
    CHANNELS,
    RELEASE_ROWS,
    Release,
    ServedRelease,
    TenantPolicy,
    approve_tree,
    checked_policy,
    current_rev,
    finish_change,
    insert_release,
    is_approved,
    next_rev,
    next_version,
    point_channel,
    policy_of,
    release_of,
    releases_in,
    require_distinct_name,
    served_names,
    served_releases,
    settle_approved,
    withdraw_yanked_approvals,
    yank_release,
)
from skillshelf.servers.team.upload import Upload, checked_version, require_accepted
from skillshelf.servers.team.values import ADMIN, PUBLISH, READ, BlobsAway, Caller, ReleaseExists, TooNew

__all__ = ["ReleaseChange", "Releases"]

_TEXT_CHARS = 500


class ReleaseChange(NamedTuple):
    """The outcome of publishing: the release, the revision, and whether it is new."""

    release: Release
    rev: int
    changed: bool


class Releases:
    """The releases of all tenants. Each method acts for a caller, and sees the tenant of that caller alone.

    `changed` is called with the tenant after its catalog changed, and `check` before a new release is added: it returns
    what is found in its files, None if that cannot be said now. With `at_least` a method raises `TooNew` if the
    database has not seen that revision, as when it was set back to a backup: then nothing is changed either.
    """

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        *,
        changed: Callable[[str], None] = lambda tenant: None,
        check: Callable[[Upload], SkillFindings | None] = lambda upload: None,
    ) -> None:
        self._database = database
        self._blobs = blobs
        self._changed = changed
        self._check = check

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
        at_least: int = 0,
    ) -> ReleaseChange:
        """Add a release; its bytes are stored first, so that a release never names bytes that are nowhere.

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
            # What is refused leaves nothing in the store; what others do meanwhile is looked at again.
            _require_rev(transaction, at_least)
            require_accepted(upload, {*accept, *policy_of(transaction).accept_rules})
            is_new = self._known(transaction, upload, wanted) is None
            if is_new:
                require_distinct_name(transaction, caller, upload.name)
        # Also where another tenant has the same files: nothing tells that, no time either.
        found = self._check(upload) if is_new else None
        self._blobs.put_new(upload.artifact_digest, upload.artifact)
        with self._database.transaction(caller.tenant) as transaction:
            rev = next_rev(transaction)
            known = self._known(transaction, upload, wanted)
            if known is not None:
                return ReleaseChange(release_of(transaction, upload.name, known), rev - 1, changed=False)
            require_distinct_name(transaction, caller, upload.name)
            wanted = wanted or checked_version(next_version(transaction, upload.name))
            withdraw_yanked_approvals(transaction, upload.tree)
            insert_release(transaction, caller, upload, wanted, source=source, commit=commit, rev=rev)
            if found is not None:
                keep_findings(transaction, upload.tree, found)
            release = release_of(transaction, upload.name, wanted)
            point_channel(transaction, upload.name, "latest", wanted, rev)
            if is_approved(release, policy_of(transaction)):
                point_channel(transaction, upload.name, "approved", wanted, rev)
            finish_change(transaction, rev)
            release = release_of(transaction, upload.name, wanted)
        self._changed(caller.tenant)
        return ReleaseChange(release, rev, changed=True)

    def _known(self, transaction: Transaction, upload: Upload, version: str | None) -> str | None:
        """Return the version under which exactly this was published before; None if it is new.

        Without a version, what was yanked can be published again as the next one.
        """
        if version is None:
            latest = transaction.row(
                "select r.version, r.tree, r.yanked from release r where r.tenant = ? and r.name = ? "
                "order by r.rev desc limit 1",
                (transaction.tenant, upload.name),
            )
            return str(latest[0]) if latest and latest[1] == upload.tree and not latest[2] else None
        row = transaction.row(
            "select tree from release where tenant = ? and name = ? and version = ?",
            (transaction.tenant, upload.name, version),
        )
        if row is not None and row[0] != upload.tree:
            raise ReleaseExists(
                f"{upload.name} {version} is published with other files, and never changes; choose another version"
            )
        return version if row is not None else None

    def approve(self, caller: Caller, name: str, version: str, tree: str = "", *, at_least: int = 0) -> ReleaseChange:
        """Approve the tree of a release; it moves to the channel `approved` once enough people did.

        With `tree` it must be that one: what somebody looked at is what they approve.
        """

        def approve(transaction: Transaction, release: Release, rev: int) -> bool:
            if tree and release.tree != tree:
                raise ReleaseExists(f"{name} {version} has another tree than the one that is approved: {release.tree}")
            return approve_tree(transaction, caller, release, rev)

        return self._change(caller, name, version, approve, at_least)

    def yank(self, caller: Caller, name: str, version: str, why: str = "", *, at_least: int = 0) -> ReleaseChange:
        """Take a release out of channels and listings; who knows its version still gets it, with a mark."""
        if len(why) > _TEXT_CHARS or not (why or "x").isprintable():
            raise ConfigurationError(f"a reason has at most {_TEXT_CHARS} printable characters")

        def yank(transaction: Transaction, release: Release, rev: int) -> bool:
            return yank_release(transaction, caller, release, rev, why)

        return self._change(caller, name, version, yank, at_least)

    def move_channel(
        self, caller: Caller, name: str, channel: str, version: str, *, at_least: int = 0
    ) -> ReleaseChange:
        """Let a channel mean another release, such as an older one."""
        if channel not in CHANNELS:
            raise ConfigurationError(f"no channel {visible(channel)!r}; there are {', '.join(CHANNELS)}")

        def move(transaction: Transaction, release: Release, rev: int) -> bool:
            if channel in release.channels:
                return False
            if release.yanked:
                raise ConfigurationError(f"{name} {version} is yanked, and no channel may have it")
            if channel == "approved" and not is_approved(release, policy_of(transaction)):
                raise PermissionDenied(f"{name} {version} is not approved")
            point_channel(transaction, name, channel, version, rev)
            return True

        return self._change(caller, name, version, move, at_least)

    def set_policy(self, caller: Caller, given: Mapping[str, Any], *, at_least: int = 0) -> TenantPolicy:
        """Change the policy of the tenant, which an admin may do."""
        if not caller.may(ADMIN):
            raise PermissionDenied("only an admin may change the policy of a tenant")
        checked = checked_policy(given)
        with self._database.transaction(caller.tenant) as transaction:
            # First: changes at the same time wait here, before any of them has written a row that another one needs.
            rev = next_rev(transaction)
            _require_rev(transaction, at_least)
            before = policy_of(transaction)
            for name, value in sorted(checked.items()):
                transaction.execute(
                    "insert into policy (tenant, name, value) values (?, ?, ?) "
                    "on conflict (tenant, name) do update set value = excluded.value",
                    (caller.tenant, name, json.dumps(value)),
                )
            policy = policy_of(transaction)
            if policy == before:
                return policy
            settle_approved(transaction, before, policy, rev)
            finish_change(transaction, rev)
        self._changed(caller.tenant)
        return policy

    def _change(
        self,
        caller: Caller,
        name: str,
        version: str,
        act: Callable[[Transaction, Release, int], bool],
        at_least: int,
    ) -> ReleaseChange:
        _require_publisher(caller, name)
        with self._database.transaction(caller.tenant) as transaction:
            rev = next_rev(transaction)
            _require_rev(transaction, at_least)
            changed = act(transaction, release_of(transaction, name, version), rev)
            if changed:
                finish_change(transaction, rev)
            found = ReleaseChange(release_of(transaction, name, version), current_rev(transaction), changed)
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
        # A name may have blanks, a version has none.
        name, _, version = after.rpartition(" ")
        found: list[Release] = []
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rev, policy = _require_rev(transaction, at_least), policy_of(transaction)
            is_end = False
            # One more than are asked for: where to go on is said only if there is more that the caller may see.
            while not is_end and len(found) <= most:
                rows = transaction.rows(
                    f"{RELEASE_ROWS} and (r.name > ? or (r.name = ? and r.version > ?)) "
                    f"order by r.name, r.version limit {int(most)}",
                    (caller.tenant, name, name, version),
                )
                found += [
                    one for one in releases_in(transaction, rows) if self._lists(caller, policy, one, yanked=yanked)
                ]
                is_end = len(rows) < most
                if not is_end:
                    name, version = rows[-1][:2]
        more = f"{found[most - 1].name} {found[most - 1].version}" if len(found) > most else None
        return rev, found[:most], more

    def _lists(self, caller: Caller, policy: TenantPolicy, release: Release, *, yanked: bool) -> bool:
        return (not release.yanked or yanked) and _may_get(caller, policy, release)

    def versions(self, caller: Caller, name: str, *, at_least: int = 0) -> tuple[int, list[Release]]:
        """Return the revision and all releases of a name, the newest first; raise SkillNotFound."""
        _require_reader(caller)
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rev, policy = _require_rev(transaction, at_least), policy_of(transaction)
            rows = transaction.rows(f"{RELEASE_ROWS} and r.name = ? order by r.rev desc", (caller.tenant, name))
            found = [one for one in releases_in(transaction, rows) if _may_get(caller, policy, one)] if rows else []
        if not found:
            raise SkillNotFound(name)
        return rev, found

    def artifact(self, caller: Caller, name: str, version: str, *, at_least: int = 0) -> tuple[int, Release, bytes]:
        """Return the revision, a release by its version or channel, and its archive; raise SkillNotFound."""
        rev, found = self.versions(caller, name, at_least=at_least)
        meant = [one for one in found if version in ((one.version, *one.channels))]
        if not meant:
            raise SkillNotFound(f"{name} {version}")
        return rev, meant[0], self.archive(meant[0].artifact)

    def artifact_with(self, caller: Caller, name: str, begin: str) -> bytes | None:
        """Return the archive of a release of a name by the first 16 hex digits of its digest; None if there is none.

        A digest alone leads nowhere: what another tenant has cannot be asked for.
        """
        _require_reader(caller)
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rows = transaction.rows(f"{RELEASE_ROWS} and r.name = ?", (caller.tenant, name))
            meant = [row for row in rows if row[3][:23] == f"sha256:{begin}"]
            policy = policy_of(transaction)
            found = [one for one in releases_in(transaction, meant) if _may_get(caller, policy, one)] if meant else []
        return self.archive(found[0].artifact) if found else None

    def served(self, caller: Caller, names: Sequence[str]) -> list[ServedRelease]:
        """Return the releases of some names that clients are served, as far as the caller may read them."""
        _require_reader(caller)
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            return served_releases(transaction, [name for name in names if caller.may_read(name)])

    def served_names(self, caller: Caller, *, at_least: int = 0) -> tuple[int, list[str]]:
        """Return the revision, and the names of the releases that clients are served."""
        _require_reader(caller)
        with self._database.transaction(caller.tenant, readonly=True) as transaction:
            rev = _require_rev(transaction, at_least)
            return rev, [name for name in served_names(transaction) if caller.may_read(name)]

    def archive(self, digest: str) -> bytes:
        """Return an archive by its digest, which the caller must be known to see; raise `BlobsAway`."""
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
    return caller.may(PUBLISH) or not policy.approved_only or is_approved(release, policy)


def _require_rev(transaction: Transaction, at_least: int) -> int:
    rev = current_rev(transaction)
    if rev < at_least:
        raise TooNew(rev, at_least)
    return rev
