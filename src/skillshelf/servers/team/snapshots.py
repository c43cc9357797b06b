"""Snapshots of the search index of a tenant: built once for a revision, kept in the blob store, mapped by every server.

A snapshot has the skills by the digests of their files, so it fits on every machine. It is built behind the answers:
until it is there, the one before answers, and what that lacks is found by an index in memory.
"""

import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from skillshelf.catalog.source import SourceLimits
from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.disk_writes import locked_within, make_own_folder, remove, remove_folder
from skillshelf.core.limits import BLOB_BYTES, INDEX_WAIT_SECONDS, SNAPSHOTS_KEPT
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError
from skillshelf.install.archive import unpack
from skillshelf.install.pack import zip_of
from skillshelf.search.index import (
    FORMAT,
    digest_stamp,
    index_stamps,
    is_complete_index,
    open_index,
    packed_index,
    place_index,
)
from skillshelf.servers.team.blobs import BlobStore, digest_of
from skillshelf.servers.team.database import Database, Transaction
from skillshelf.servers.team.values import BlobsAway

__all__ = ["SnapshotRecord", "Snapshots", "recorded_snapshot"]

_PACKED_FILES = 4096
_WORK_PREFIX = ".build-"
_OTHER_KINDS_KEPT = 2
"""Snapshots of other versions of this program that stay: servers of two versions would build theirs in turns."""

_LEVEL = 1
"""Of compression: the index is half as large then, and more costs more than the network."""


class SnapshotRecord(NamedTuple):
    """The newest snapshot that the database names: its digest and the revision that it was built for."""

    digest: str
    rev: int


def recorded_snapshot(transaction: Transaction) -> SnapshotRecord | None:
    """Return the newest snapshot of a tenant that this version can read; None if there is none."""
    return _recorded_snapshots(transaction).get(_kind())


def _recorded_snapshots(transaction: Transaction) -> dict[str, SnapshotRecord]:
    """Return the newest snapshots of a tenant, by what wrote them: servers of two versions run during an upgrade."""
    row = transaction.row("select snapshot, snapshot_rev from catalog_rev where tenant = ?", (transaction.tenant,))
    # Before there were several, the revision was that of the other column alone.
    lines = [[*line.split(), row[1]] for line in (row[0] or "").splitlines()] if row is not None else []
    return {kind: SnapshotRecord(digest, int(rev)) for kind, digest, rev, *_ in lines}


def _kind() -> str:
    """Return what an index must have been written by to be read: another version builds its own."""
    from tantivy.tantivy import __version__ as library

    return f"{FORMAT}-{library}".replace(" ", "-")


class Snapshots:
    """The snapshots of all tenants, unpacked below a folder of this machine. It is safe to use from several threads."""

    def __init__(self, database: Database, blobs: BlobStore, folder: str) -> None:
        self._database = database
        self._blobs = blobs
        self._folder = folder
        self._lock = threading.Lock()

    def path_of(self, tenant: str, digest: str) -> str:
        """Return the folder of a snapshot on this machine, whether or not it is there."""
        return f"{self._folder}/{tenant}/{digest.removeprefix('sha256:')[:32]}"

    def beside(self, tenant: str, record: SnapshotRecord) -> str:
        """Return the file for what a server keeps of the revision of a snapshot, whether or not it is there."""
        return f"{self.path_of(tenant, record.digest)}/catalog"

    def placed(self, tenant: str, record: SnapshotRecord | None) -> str | None:
        """Return the folder of a snapshot if it is on this machine as it was placed; None otherwise."""
        if record is None:
            return None
        path = self.path_of(tenant, record.digest)
        return path if is_complete_index(path) else None

    def opened(self, tenant: str, record: SnapshotRecord | None) -> str | None:
        """Return the folder of a snapshot, fetched if it is not on this machine; None if it cannot be had."""
        if record is None:
            return None
        path = self.path_of(tenant, record.digest)
        try:
            with self._placing(tenant):
                if self.placed(tenant, record) is not None:
                    return path
                if files.kind_at(f"{path}/seal") is not None:
                    # It was copied here, or somebody changed it.
                    note(f"tenant {tenant}: the files of a search index do not match its seal, so it is fetched again")
                data = self._blobs.get(record.digest)
                if data is None:
                    return None
                self._place(path, data)
                self._remove_old(tenant, path)
        except (OSError, zlib.error, SkillError):
            # Without it the skills are indexed in memory.
            return None
        return path

    @contextmanager
    def _placing(self, tenant: str) -> Iterator[None]:
        """Keep other threads, and other servers of this machine, from placing a snapshot at the same time."""
        make_own_folder(f"{self._folder}/{tenant}")
        with self._lock, locked_within(f"{self._folder}/{tenant}/lock", INDEX_WAIT_SECONDS) as held:
            if not held:
                raise BlockingIOError("another server places a snapshot")
            yield

    def _place(self, path: str, data: bytes) -> None:
        inflate = zlib.decompressobj()
        archive = inflate.decompress(data, BLOB_BYTES)
        if inflate.unconsumed_tail:
            raise OSError(f"a snapshot has more than {BLOB_BYTES} bytes (BLOB_BYTES)")
        contents = unpack(archive, SourceLimits(_PACKED_FILES, BLOB_BYTES), kind="zip")
        make_own_folder(path)
        place_index(path, contents)

    def _remove_old(self, tenant: str, path: str) -> None:
        above = f"{self._folder}/{tenant}"
        seals = {name: files.stamp_at(f"{above}/{name}/seal") for name in files.stamps_in(above)}
        by_age = sorted((name for name in seals if seals[name]), key=lambda name: seals[name] or (), reverse=True)
        for name in by_age[SNAPSHOTS_KEPT:]:
            if f"{above}/{name}" != path:
                remove_folder(f"{above}/{name}")

    def build(
        self,
        tenant: str,
        rev: int,
        skills: Sequence[CatalogSkill],
        digests: Mapping[str, str],
        make_ready: Callable[[CatalogSkill], None],
    ) -> SnapshotRecord:
        """Build the snapshot of a revision from the one before, store it and record it; return the newest one.

        One of the same revision that cannot be had any more is replaced.
        """
        before = self._recorded(tenant)
        base = self.opened(tenant, before)
        if before is not None and (before.rev > rev or (before.rev == rev and base is not None)):
            return before
        with self._work_folder(tenant) as work:
            contents = packed_index(base) if base is not None else None
            if contents is not None:
                place_index(work, contents)
            known = index_stamps(work) if contents is not None else frozenset()
            for skill in skills:
                if digest_stamp(skill, digests[skill.path]) not in known:
                    make_ready(skill)
            index = open_index(skills, work, digests=digests)
            if index.unread:
                raise BlobsAway(f"{index.unread} skills could not be read, so no snapshot was made")
            packed = packed_index(work)
            if packed is None:
                raise OSError(f"no index could be written to {work}")
            data = zlib.compress(zip_of(packed), _LEVEL)
            record = SnapshotRecord(digest_of(data), rev)
            self._blobs.put_new(record.digest, data)
            with self._placing(tenant):
                path = self.path_of(tenant, record.digest)
                place_index(path, packed)
                self._remove_old(tenant, path)
        return self._record(tenant, record, before)

    @contextmanager
    def _work_folder(self, tenant: str) -> Iterator[str]:
        """Make a folder for a build, and remove those of servers that were killed while they built."""
        above = f"{self._folder}/{tenant}"
        make_own_folder(above)
        work = f"{above}/{_WORK_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        left: set[str] = set()
        with suppress(FileNotFoundError):
            # Another server of this machine may be done just now.
            left = {name.removesuffix(".lock") for name in files.stamps_in(above) if name.startswith(_WORK_PREFIX)}
        for name in left:
            with locked_within(f"{above}/{name}.lock", 0) as is_left:
                if is_left:
                    remove_folder(f"{above}/{name}")
                    remove(f"{above}/{name}.lock")
        with locked_within(f"{work}.lock", 0):
            try:
                make_own_folder(work)
                yield work
            finally:
                remove_folder(work)
                remove(f"{work}.lock")

    def _recorded(self, tenant: str) -> SnapshotRecord | None:
        with self._database.transaction(tenant, readonly=True) as transaction:
            return recorded_snapshot(transaction)

    def _record(self, tenant: str, record: SnapshotRecord, before: SnapshotRecord | None) -> SnapshotRecord:
        """Name a snapshot in the database unless a newer one is there, and remove those that nobody needs now."""
        with self._database.transaction(tenant) as transaction:
            transaction.row(f"select rev from catalog_rev where tenant = ?{transaction.row_lock}", (tenant,))
            records, kind = _recorded_snapshots(transaction), _kind()
            known = records.pop(kind, None)
            if known is None or known.rev < record.rev or (known == before and known.rev == record.rev):
                newest, gone = record, [known]
                others = sorted(records.items(), key=lambda other: other[1].rev, reverse=True)
                gone += [other for _, other in others[_OTHER_KINDS_KEPT:]]
                rows = [(kind, record), *others[:_OTHER_KINDS_KEPT]]
                text = "\n".join(f"{kind} {one.digest} {one.rev}" for kind, one in rows)
                transaction.execute(
                    "update catalog_rev set snapshot = ?, snapshot_rev = ? where tenant = ?",
                    (text, record.rev, tenant),
                )
            else:
                newest, gone = known, [record]
        for one in gone:
            if one is not None and one.digest != newest.digest:
                # A server that asks for it just now finds none, and asks the database again.
                self._blobs.remove(one.digest)
        return newest
