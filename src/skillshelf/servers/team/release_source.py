"""Where the catalog of a tenant comes from: what the database says of its releases, and the archives of their files."""

import errno
from collections.abc import Mapping

from skillshelf.catalog.store import Store
from skillshelf.core.records import NamedTuple
from skillshelf.errors import SkillError
from skillshelf.servers.team.blobs import BlobStore
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.releases import (
    Channel,
    ChannelMove,
    ServedRelease,
    changed_releases,
    current_rev,
    newest_moves,
    policy_of,
    served_releases,
)
from skillshelf.servers.team.snapshots import SnapshotRecord, Snapshots, recorded_snapshot
from skillshelf.servers.team.upload import unpacked_artifact
from skillshelf.servers.team.values import (
    BlobsAway,
    BlobsFull,
)

__all__ = ["UNKNOWN", "CatalogNews", "CatalogState", "ReleaseSource"]


class CatalogState(NamedTuple):
    """What the database said last: the revision, the channel that is served, and the newest snapshot.

    `moves` are the newest moves of the channel, by which a database is known that was set back; empty if unknown.
    """

    rev: int
    channel: Channel
    snapshot: SnapshotRecord | None
    moves: tuple[ChannelMove, ...] = ()


UNKNOWN = CatalogState(0, "latest", None)
"""Before the database has said anything."""


def _follows(before: CatalogState, state: CatalogState, left: tuple[ChannelMove, ...]) -> bool:
    """Return whether changes alone lead from a state to another: not if the database was set back in between.

    `left` are the moves of the channel until the revision before that no later one has replaced: a database that was
    set back, and has caught up since, has others.
    """
    old, new = before.snapshot, state.snapshot
    if state.rev < before.rev or (old is not None and new != old and (new is None or new.rev < old.rev)):
        return False
    known = before.moves
    return before.channel == state.channel and all(
        move in known for move in left if known and move.rev >= known[-1].rev
    )


class CatalogNews(NamedTuple):
    """What changed since a state: the releases of some names, None for a name without one; or all of them."""

    state: CatalogState
    changes: Mapping[str, ServedRelease | None]
    is_whole: bool = False


class ReleaseSource:
    """The releases of all tenants: their rows in the database, their files, and the snapshots of their indexes."""

    def __init__(self, database: Database, blobs: BlobStore, folder: str) -> None:
        self._database = database
        self._blobs = blobs
        self._folder = folder
        self.snapshots = Snapshots(database, blobs, f"{folder}/snapshots")

    def store_of(self, tenant: str) -> Store:
        """Return the store of the files of a tenant on this machine.

        Each tenant has its own: files that are there at once would tell that somebody else has the same.
        """
        return Store(f"{self._folder}/store/1/{tenant}")

    def recorded(self, tenant: str) -> SnapshotRecord | None:
        """Return the newest snapshot that the database names."""
        with self._database.transaction(tenant, readonly=True) as transaction:
            return recorded_snapshot(transaction)

    def news(self, tenant: str, before: CatalogState) -> CatalogNews:
        """Return what the database says now, and what changed; the state is `before` itself if nothing did.

        Rows that did not change are not read, unless the tenant is served from another channel now or its revision is
        an older one, or has a history of its own: then the database was set back, and anything may have changed.
        """
        with self._database.transaction(tenant, readonly=True) as transaction:
            rev, snapshot = current_rev(transaction), recorded_snapshot(transaction)
            channel = policy_of(transaction).channel
            state = CatalogState(rev, channel, snapshot, newest_moves(transaction, channel, rev))
            if state == before:
                return CatalogNews(before, {})
            left = newest_moves(transaction, channel, before.rev) if rev > before.rev else state.moves
            if before is not UNKNOWN and _follows(before, state, left):
                return CatalogNews(state, changed_releases(transaction, state.channel, before.rev))
            found = served_releases(transaction)
            return CatalogNews(state, {release.name: release for release in found}, is_whole=True)

    def fetch(self, store: Store, tree: str, artifact: str | None) -> None:
        """Bring a tree to the store of a tenant on this machine; raise `BlobsAway`."""
        if store.has(tree) and store.is_intact(tree):
            return
        data = self._blobs.get(artifact) if artifact is not None else None
        if data is None:
            raise BlobsAway(f"the blob store does not have the files of {tree}")
        try:
            stored = store.put(unpacked_artifact(data))
        except OSError as error:
            kind = BlobsFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else BlobsAway
            raise kind(f"{store.folder} cannot be written: {error.strerror or error}") from None
        except SkillError as error:
            raise BlobsAway(f"the blob store has no usable archive of {tree}: {error}") from None
        if stored != tree:
            raise BlobsAway(f"the blob store has other files in the archive of {tree}")
