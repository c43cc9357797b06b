"""The catalogs of all tenants in use, which follow the database; their files come from the blob store.

A server that changed something builds the next snapshot of the search index, behind the answers.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from skillshelf.catalog.source import ExecutableFile
from skillshelf.core.console import note
from skillshelf.core.disk_writes import make_own_folder
from skillshelf.core.limits import CATALOG_POLL_SECONDS, TENANTS_OPEN
from skillshelf.core.text import cut, fold
from skillshelf.errors import SkillError
from skillshelf.install.review import problems_in
from skillshelf.servers.team.blobs import BlobStore, require_room
from skillshelf.servers.team.database import Database, PostgresDatabase
from skillshelf.servers.team.release_access import Releases
from skillshelf.servers.team.release_findings import SkillFindings, found_by
from skillshelf.servers.team.release_source import ReleaseSource
from skillshelf.servers.team.releases import CATALOG_TOPIC
from skillshelf.servers.team.tenant_shelf import TenantShelf
from skillshelf.servers.team.upload import Upload
from skillshelf.servers.team.values import DEFAULT_TENANT, BlobsAway, DatabaseAway, NoSuchTenant
from skillshelf.shelf import Shelf, open_shelf

__all__ = ["PublishedCatalogs"]

_LISTEN_SECONDS = 0.5
"""Time after which the thread that listens looks whether it should end."""

_CLOSE_SECONDS = 5.0
_REST_SECONDS = 30.0
_AWAY_SECONDS = 0.5

_LOOKS_FOR_A_BUILDER = 8
"""Looks at the database after which a server builds a snapshot that the server which published has not built."""


class PublishedCatalogs:
    """The shelves of all tenants in use, which follow the database: when it tells of a change, and every few seconds.

    `changed` is what a server calls after it published: it then builds the snapshot too.
    """

    def __init__(
        self,
        own: Shelf,
        database: Database,
        blobs: BlobStore,
        folder: str,
        *,
        seconds: float = CATALOG_POLL_SECONDS,
    ) -> None:
        self._own = own
        self._database = database
        self.blobs = blobs
        self._folder = folder
        self._seconds = seconds
        self.releases = Releases(database, blobs, changed=self.changed, check=self._checked)
        self.source = ReleaseSource(database, blobs, folder)
        self._lock = threading.Lock()
        # A shelf that a catalog uses stays the one of its tenant, and is followed, however many others are opened.
        self._shelves: WeakValueDictionary[str, TenantShelf] = WeakValueDictionary()
        self._recent: OrderedDict[str, TenantShelf] = OrderedDict()
        self._openings: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        # What was noted last of a tenant, and the tenants of which neither a snapshot nor the files can be had.
        self._noted: dict[tuple[str, str], str] = {}
        self._without_files: set[str] = set()
        self._database_away: str | None = None
        self._wake = threading.Event()
        self._to_build: set[str] = set()
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, name="catalog", daemon=True),
            threading.Thread(target=self._build, name="snapshot", daemon=True),
            # Of its own: a blob store that is slow must not keep this server from following the database.
            threading.Thread(target=self._bring_near, name="texts", daemon=True),
        ]
        self._near = threading.Event()
        # Why a tenant could not be opened, and until when that counts.
        self._away: dict[str, tuple[str, float]] = {}
        self._built = threading.Condition()
        if isinstance(database, PostgresDatabase):
            self._threads.append(threading.Thread(target=self._listen, args=(database,), name="listen", daemon=True))

    def start(self) -> None:
        """Begin to follow the database."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop following; a snapshot that is being built is left to the next server."""
        self._closed.set()
        self._wake.set()
        self._near.set()
        with self._built:
            self._built.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_CLOSE_SECONDS)

    # Shelves --------------------------------------------------------------------------------------

    def shelf_of(self, tenant: str) -> TenantShelf:
        """Return the skills of a tenant, opened at the first use.

        Raise `DatabaseAway` if nothing is known of them yet: a catalog without them would look as if there were none.
        """
        with self._lock:
            if (found := self._used(tenant)) is not None:
                return found
            opening = self._openings.setdefault(tenant, threading.Lock())
        # Of this tenant alone: whoever waits for a database that hangs keeps no other tenant waiting.
        with opening:
            with self._lock:
                found = self._used(tenant)
            return found if found is not None else self._add(self._opened(tenant))

    def _used(self, tenant: str) -> TenantShelf | None:
        """Return the shelf of a tenant as the one used last, if it is open."""
        found = self._shelves.get(tenant)
        if found is not None:
            self._recent[tenant] = found
            self._recent.move_to_end(tenant)
            while len(self._recent) > TENANTS_OPEN:
                self._recent.pop(next(other for other in self._recent if other != DEFAULT_TENANT))
        return found

    def _add(self, shelf: TenantShelf) -> TenantShelf:
        """Follow a shelf from now on, and build its snapshot if there is none."""
        with self._lock:
            self._shelves[shelf.tenant] = shelf
            self._used(shelf.tenant)
        with self._built:
            self._to_build.add(shelf.tenant)
            self._built.notify_all()
        return shelf

    def _open_shelves(self) -> list[TenantShelf]:
        with self._lock:
            return list(self._shelves.values())

    def is_stale(self, tenant: str) -> bool:
        """Return whether a tenant is served what was known before the database went away; it never waits."""
        found = self._shelves.get(tenant)
        return found is not None and found.away is not None

    def problem(self) -> str | None:
        """Return why the skills cannot be served although the blob store answers; None if they can.

        A tenant that lost files keeps nobody else from being served: only a store that has none of them is a wrong one.
        """
        tenants = self._tenants_served()
        return "has no files of the releases" if tenants and tenants <= self._without_files else None

    def has_releases(self) -> bool:
        """Return whether any release is served."""
        return bool(self._tenants_served())

    def _tenants_served(self) -> set[str]:
        return {shelf.tenant for shelf in self._open_shelves() if shelf.has_releases}

    def require_room(self) -> None:
        """Raise `BlobsAway` if files of releases cannot be kept on this machine, where they are served from."""
        require_room(self._folder, f"the data folder {self._folder}")

    def _opened(self, tenant: str) -> TenantShelf:
        """Return a new shelf; a database that did not answer a moment ago is not asked again."""
        reason, until = self._away.get(tenant, ("", 0.0))
        if time.monotonic() < until:
            raise DatabaseAway(reason)
        own = self._own if tenant == DEFAULT_TENANT else self._nothing()
        found = TenantShelf(own, tenant, self.source)
        if found.away is not None:
            if len(self._away) >= TENANTS_OPEN:
                self._away.clear()
            self._away[tenant] = found.away, time.monotonic() + _AWAY_SECONDS
            raise DatabaseAway(found.away)
        self._away.pop(tenant, None)
        return found

    def _nothing(self) -> Shelf:
        """Return a shelf without any skill of this machine."""
        empty = f"{self._folder}/empty"
        make_own_folder(empty)
        return open_shelf(
            empty,
            self._own.profile.name,
            home=empty,
            env={},
            config={"profiles": {}} if not self._own.settings.profiles else {},
            use_cache=False,
            trust=self._own.trust,
        )

    def _checked(self, upload: Upload) -> SkillFindings | None:
        """Return what is found in files that are published next; None if they cannot be checked now."""
        profile, contents = self._own.profile, upload.contents
        executables = {path for path, data in contents.items() if isinstance(data, ExecutableFile)}
        try:
            found = found_by(profile, problems_in(upload.name, contents, profile, executables=executables))
        except OSError:
            # A disk without room keeps nobody from publishing: they are checked when somebody looks.
            return None
        return found if found.is_kept else None

    # Following ------------------------------------------------------------------------------------

    def changed(self, tenant: str) -> None:
        """Follow a change that this server made at the next look, and build its snapshot behind the answers."""
        with suppress(DatabaseAway):
            # The release is there, whatever happened to the database since; who looks next opens the shelf.
            self.shelf_of(tenant).expect_change()
        with self._built:
            self._to_build.add(tenant)
            self._built.notify_all()
        self._wake.set()

    def _follow(self) -> None:
        while not self._closed.is_set():
            self._wake.wait(self._seconds)
            self._wake.clear()
            shelves = self._open_shelves()
            for shelf in shelves:
                self._guarded(shelf.follow, shelf.tenant)
                if shelf.state.snapshot is None or shelf.state.snapshot.rev < shelf.state.rev:
                    # The server that published builds it; if that one is gone, the next look does it here.
                    self._build_later(shelf)
            self._note_database(next((shelf.away for shelf in shelves if shelf.away is not None), None))
            self._near.set()

    def _note_database(self, away: str | None) -> None:
        """Say once that the database went away, and once that it is back: it is the same for all tenants."""
        before, self._database_away = self._database_away, away
        if away is not None and before is None:
            note(f"skills are served as they were last read: {cut(fold(away), 200)}")
        elif away is None and before is not None:
            note("the database answers again")

    def _bring_near(self) -> None:
        while not self._closed.is_set():
            self._near.wait()
            self._near.clear()
            for shelf in self._open_shelves():
                if not self._closed.is_set():
                    self._guarded(partial(self._bring_one_near, shelf), shelf.tenant)

    def _bring_one_near(self, shelf: TenantShelf) -> None:
        more, is_had = shelf.bring_near()
        if more:
            self._near.set()
        if not is_had:
            self._build_later(shelf)
        elif shelf.tenant in self._without_files and shelf.has_snapshot:
            # Where none was built yet, only building the first one tells whether the files can be had.
            self._without_files.discard(shelf.tenant)
        if not more:
            shelf.keep()

    def _build_later(self, shelf: TenantShelf) -> None:
        waiting = shelf.attachments.get("waits for snapshot")
        now = time.monotonic()
        if not isinstance(waiting, tuple) or waiting[0] != shelf.state.rev:
            shelf.attachments["waits for snapshot"] = (shelf.state.rev, now)
        elif now - waiting[1] > _LOOKS_FOR_A_BUILDER * self._seconds:
            shelf.attachments["waits for snapshot"] = (shelf.state.rev, now)
            with self._built:
                self._to_build.add(shelf.tenant)
                self._built.notify_all()

    def _build(self) -> None:
        while not self._closed.is_set():
            with self._built:
                while not self._to_build and not self._closed.is_set():
                    self._built.wait()
                if self._closed.is_set():
                    return
                tenant = self._to_build.pop()
            with self._lock:
                shelf = self._shelves.get(tenant)
            if shelf is None:
                continue
            began = time.monotonic()
            self._guarded(partial(self._build_one, shelf), tenant)
            self._guarded(shelf.follow, tenant)
            self._near.set()
            # Many releases in a row share a snapshot: building takes at most a third of the time.
            self._closed.wait(min(2 * (time.monotonic() - began), _REST_SECONDS))

    def _build_one(self, shelf: TenantShelf) -> None:
        try:
            shelf.build_snapshot()
        except BlobsAway as error:
            if not shelf.has_snapshot:
                self._without_files.add(shelf.tenant)
                raise BlobsAway(f"{error}; does --blobs name the store that the releases were published to?") from None
            raise
        self._without_files.discard(shelf.tenant)

    def _guarded(self, act: Callable[[], Any], tenant: str) -> None:
        """Do something in a thread that must go on whatever happens to the database, the blobs or the disk.

        A reason is noted once, however often it comes again; that the database is away is noted for all tenants.
        """
        doing = threading.current_thread().name
        try:
            act()
        except (DatabaseAway, NoSuchTenant):
            # The file of a tenant that was open may be away with its disk.
            return
        except (SkillError, OSError) as error:
            text = cut(fold(str(error)), 300)
            if self._noted.get((tenant, doing)) != text:
                self._noted[tenant, doing] = text
                note(f"tenant {tenant}: {text}")

    def _listen(self, database: PostgresDatabase) -> None:
        """Wait for other servers to tell of a change; while that cannot be, the clock does."""
        import psycopg

        while not self._closed.is_set():
            with suppress(psycopg.Error, OSError, DatabaseAway), closing(database.connect()) as connection:
                connection.execute(f"listen {CATALOG_TOPIC}".encode())
                while not self._closed.is_set():
                    for _ in connection.notifies(timeout=_LISTEN_SECONDS, stop_after=1):
                        self._wake.set()
            self._closed.wait(min(self._seconds, 1.0))
