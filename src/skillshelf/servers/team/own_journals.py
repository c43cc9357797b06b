"""Record what a team server does for its callers: a journal for each tenant, whose lines go to the common store.

A process writes into a folder of its own, so events survive a database that is away and a process that is killed: the
next server on this machine with the same database, or another one that runs there, stores what is left. Lines that are
stored do not stay in that folder, since what is removed from the database must not be left there.
"""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice

from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.disk_writes import lock, make_own_folder, move, open_to_append, remove, remove_folder
from skillshelf.core.limits import (
    JOURNAL_BATCH_BYTES,
    JOURNAL_BATCH_LINES,
    JOURNAL_PART_BYTES,
    JOURNAL_STORE_SECONDS,
    JOURNAL_STORED_SECONDS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.errors import SkillError
from skillshelf.journal.file import Journal, JournalPlace, exact_lines, lines_after
from skillshelf.journal.parts import CONTINUED, base_of, parts_of
from skillshelf.journal.push import stream_of
from skillshelf.journal.sent_lines import reduced_line, sent_line
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.journal_intake import SERVER, head_of, take
from skillshelf.servers.team.values import DEFAULT_TENANT, Caller, DatabaseAway, NoSuchTenant, checked_slug

__all__ = ["ROTATION", "OwnJournals"]

ROTATION = "16MB"
"""When a journal of the server begins a new part; parts that are stored are removed."""

_END = ".jsonl"
_LOCK = "lock"
_OUTPUTS = "artifacts"


class _Stored(NamedTuple):
    """How far a journal is stored: its stream, and the place after the last line that is."""

    stream: str
    place: JournalPlace


class OwnJournals:
    """The journals of one server process, in a folder that it holds by a lock.

    `seconds` is the time after which stored lines are removed from it.
    """

    def __init__(
        self,
        database: Database,
        folder: str,
        *,
        seconds: float = JOURNAL_STORED_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._above = folder
        # Servers with other databases may use the same data folder: what they leave is not for this one.
        self._mark = f"{_database_mark(database)}-"
        self._folder = f"{folder}/{self._mark}{secrets.token_hex(8)}"
        make_own_folder(folder)
        make_own_folder(self._folder)
        self._held = open_to_append(f"{self._folder}/{_LOCK}.new")
        lock(self._held, "alone", seconds=0)
        # It has its name once it is held: until then another process would take the folder for a left one.
        move(f"{self._folder}/{_LOCK}.new", f"{self._folder}/{_LOCK}")
        self._seconds = seconds
        self._clock = clock
        self._adopted: float | None = None
        self._began: dict[str, float] = {}
        self._seen: dict[str, object] = {}
        self._stored: dict[str, _Stored] = {}
        self._outputs: dict[str, float] = {}
        self._broken: set[str] = set()
        self._storing = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def path_of(self, tenant: str) -> str:
        """Return the journal for the sessions of a tenant."""
        return f"{self._folder}/{checked_slug(tenant)}{_END}"

    def start(self) -> None:
        """Store new lines in the background, and what a process leaves that ends."""
        self._thread = threading.Thread(target=self._run, name="journals", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            # What is not stored now is stored later.
            with suppress(DatabaseAway, OSError):
                self.adopt_if_due()
            with suppress(DatabaseAway, OSError):
                self.store()
            if self._stopped.wait(JOURNAL_STORE_SECONDS):
                return

    def store(self) -> None:
        """Store the lines that are not stored yet; raise `DatabaseAway` if that is not possible now.

        Lines that were stored some time ago are removed from the disk, and so are long outputs of scripts.
        """
        with self._storing:
            self._remove_outputs()
            self._store_folder(self._folder)
            for path in [path for path in self._seen if os.path.dirname(path) == self._folder]:
                now = self._clock()
                if path not in self._broken and now - self._began.setdefault(path, now) >= self._seconds:
                    self._renew(path)
                    self._began[path] = now

    def adopt_if_due(self) -> None:
        """Store what other processes left, unless that succeeded some time ago: one may have ended since."""
        now = self._clock()
        if self._adopted is not None and now - self._adopted < self._seconds:
            return
        self.adopt()
        self._adopted = now

    def adopt(self) -> None:
        """Store the lines of processes with this database that have ended, and remove their folders."""
        for name in _names(self._above):
            folder = f"{self._above}/{name}"
            if not name.startswith(self._mark) or folder == self._folder:
                continue
            if files.kind_at(f"{folder}/{_LOCK}") != "file":
                continue
            held = open_to_append(f"{folder}/{_LOCK}")
            try:
                if lock(held, "alone", seconds=0) and self._store_folder(folder):
                    remove_folder(folder)
            finally:
                os.close(held)

    def close(self) -> None:
        """Store the last lines; remove the folder if nothing is left in it."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(2 * JOURNAL_STORE_SECONDS)
        with suppress(DatabaseAway, OSError), self._storing:
            if self._store_folder(self._folder):
                remove_folder(self._folder)
        os.close(self._held)

    def _store_folder(self, folder: str) -> bool:
        """Store the journals in a folder; return whether all their lines are stored."""
        done = True
        # A process that was killed while it rotated leaves parts alone.
        for path in sorted({base_of(f"{folder}/{name}") for name in _names(folder)}):
            if not path.endswith(_END):
                continue
            if path in self._broken:
                done = False
                continue
            state = files.state_at(path)
            if state is not None and self._seen.get(path) == state:
                continue
            problem = self._store_journal(path, os.path.basename(path).removesuffix(_END))
            if problem is None:
                self._seen[path] = state
                continue
            done = False
            self._broken.add(path)
            note(f"{path} is not stored: {problem}")
        return done

    def _remove_outputs(self) -> None:
        """Remove long outputs of scripts that have been beside a journal for some time: nobody reads them again."""
        now = self._clock()
        found: dict[str, float] = {}
        for name in _names(self._folder):
            folder = f"{self._folder}/{name}/{_OUTPUTS}"
            if name.endswith(f"{_END}.d") and files.kind_at(folder) == "folder":
                found |= {path: self._outputs.get(path, now) for path in (f"{folder}/{one}" for one in _names(folder))}
        for path in [path for path, since in found.items() if now - since >= self._seconds]:
            remove(path)
            del found[path]
        self._outputs = found

    def _renew(self, path: str) -> None:
        """Begin a new part of a journal, and remove the part before it once all its lines are stored."""
        found = lines_after(path, None)
        if found is None or not found[0] or (len(found[0]) == 1 and _continues(found[0][0])):
            return
        if Journal(path, session="").begin_part():
            self._store_folder(self._folder)
            remove(f"{path}.torn")

    def _store_journal(self, path: str, tenant: str) -> str | None:
        """Store the lines of one journal, and remove its parts that are stored; return why that is not possible."""
        try:
            known = self._stored.pop(path, None)
            added = lines_after(path, known.place) if known is not None else None
            if known is not None and added is not None:
                problem = self._store_lines(tenant, known.stream, _batches(iter(added[0])))
                if problem is None:
                    self._stored[path] = known._replace(place=added[1])
                return problem
            return self._store_whole(path, tenant)
        except NoSuchTenant as error:
            return str(error)
        except DatabaseAway:
            raise
        except SkillError as error:
            return str(error)

    def _store_whole(self, path: str, tenant: str) -> str | None:
        """Store the lines of a journal that are not stored yet, from its first line on."""
        # Before anything is read: nobody writes to these parts any more, so all their lines are read.
        parts = [part for _, part in parts_of(path)]
        # With parts, the lines are read one by one, and how far they are stored is not remembered.
        single = lines_after(path, None)
        lines = iter(single[0]) if single is not None else exact_lines(path)
        opening = next(lines, None)
        first = sent_line(opening) if opening else None
        if first is None or isinstance(first, str):
            return first
        stream = stream_of(path, first)
        with self._database.transaction(tenant, readonly=True) as transaction:
            head = head_of(transaction, stream)
        known = head.seq - first.seq + 1 if head else 0
        problem = self._store_lines(tenant, stream, _batches(chain([opening], lines), known))
        if problem is not None:
            return problem
        if single is not None:
            self._stored[path] = _Stored(stream, single[1])
        # Until the next part has begun the last one stays: without it the journal would begin a new chain.
        for part in parts if _has_begun(path) else parts[:-1]:
            remove(part)
        return None

    def _store_lines(self, tenant: str, stream: str, batches: Iterable[list[bytes]]) -> str | None:
        caller = Caller("", tenant, frozenset())
        for batch in batches:
            receipt = take(self._database, caller, stream, batch, machine=SERVER, origin=SERVER)
            if receipt.problem == "content":
                # What the tenant demands of machines counts for this server, too.
                reduced = [_reduced(line) for line in batch]
                receipt = take(self._database, caller, stream, reduced, machine=SERVER, origin=SERVER)
            if receipt.problem is not None:
                return receipt.detail
        return None


def _database_mark(database: Database) -> str:
    """Return what tells this database from others, wherever it is: the time at which it was made."""
    with database.transaction(DEFAULT_TENANT, readonly=True) as transaction:
        row = transaction.row("select created from tenant where id = ?", (DEFAULT_TENANT,))
    return str(row[0]) if row else "0"


def _reduced(line: bytes) -> bytes:
    found = sent_line(line)
    return line if isinstance(found, str) else reduced_line(line, found.record)


def _continues(line: bytes | None) -> bool:
    """Return whether a line is the first of a part, which tells nothing about anybody."""
    found = sent_line(line or b"")
    return not isinstance(found, str) and found.record["type"] == CONTINUED


def _has_begun(path: str) -> bool:
    """Return whether a journal has a line, with which its chain goes on."""
    try:
        descriptor = files.open_to_read(path)
    except OSError:
        return False
    try:
        # The first line after a part is short.
        return b"\n" in os.pread(descriptor, JOURNAL_PART_BYTES, 0)
    finally:
        os.close(descriptor)


def _names(folder: str) -> list[str]:
    descriptor = files.open_folder(folder)
    try:
        return sorted(files.names_in(descriptor))
    finally:
        os.close(descriptor)


def _batches(lines: Iterator[bytes | None], known: int = 0) -> Iterator[list[bytes]]:
    """Yield the lines after those that are known, in lists of a bounded size."""
    batch: list[bytes] = []
    size = 0
    for line in islice(lines, max(known, 0), None):
        if len(batch) >= JOURNAL_BATCH_LINES or size > JOURNAL_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(line or b"")
        size += len(line or b"")
    if batch:
        yield batch
