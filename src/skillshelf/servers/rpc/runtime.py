"""The shelves and sessions that the methods of `skillshelf rpc` work on."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog.packed import is_same_catalog
from skillshelf.config.settings import Trust
from skillshelf.core.limits import RPC_SHELVES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Catalog
from skillshelf.errors import ConfigurationError, SkillDirectoryNotFound, SkillError, SkillsDisabled
from skillshelf.journal.events import payload_of, type_of
from skillshelf.servers.rpc.messages import EncodedResult, line_of
from skillshelf.session.recorder import RecordingOptions
from skillshelf.session.results import message_text
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolError
from skillshelf.shelf import Shelf, open_shelf

if TYPE_CHECKING:
    from skillshelf.catalog.source import Source
    from skillshelf.journal.events import Event
    from skillshelf.journal.otlp import EventExporter
    from skillshelf.journal.parts import Rotation

__all__ = ["ClientCallbacks", "Options", "Refused", "Runtime"]


Reread = Literal["nothing", "disk", "everything"]
"""The part of a kept shelf that is read again: nothing, the skills, or the configuration and the skills."""


class Options(NamedTuple):
    """The options that the server was started with; paths are absolute."""

    cwd: str
    profile: str | None = None
    home: str | None = None
    config: str | None = None
    use_cache: bool = True
    trust: Trust = "ask"
    journal: str | None = None
    keep: bool = False
    rotate: "Rotation | None" = None
    otlp: "EventExporter | None" = None
    sources: "Sequence[Source]" = ()


class ClientCallbacks(NamedTuple):
    """The callbacks to the other side: ask its user, send it an event, and print a note for people."""

    confirm: Callable[[str, str, str, str], bool | Literal["remember"]]
    on_event: Callable[[dict[str, Any]], None]
    note: Callable[[str], None]


class Refused(Exception):
    """A request that cannot be carried out, with the error to return."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


class _ShelfSlot:
    """The shelf of one folder and profile; the lock is held while the disk is read for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shelf: Shelf | None = None


class Runtime:
    """The state between requests: catalogs by folder, and open sessions."""

    def __init__(self, options: Options, client: ClientCallbacks) -> None:
        self.options = options
        self.sessions: dict[str, Session] = {}
        self._client = client
        self._requests = 0
        self._lock = threading.Lock()
        self._slots: dict[tuple[str, str | None], _ShelfSlot] = {}
        self._listed: tuple[Catalog, EncodedResult] | None = None

    def listing(self, catalog: Catalog) -> EncodedResult:
        """Return the JSON form of a catalog; asked for again, it is not written again."""
        # Read once: another thread may list another folder meanwhile.
        listed = self._listed
        if listed is None or not is_same_catalog(listed[0], catalog):
            listed = self._listed = catalog, EncodedResult(line_of(catalog.to_dict())[:-1])
        return listed[1]

    # Shelves --------------------------------------------------------------------------------------

    def shelf(self, cwd: str, profile: str = "", *, reread: Reread = "nothing") -> Shelf:
        """Return the shelf of a folder; it is opened at the first use."""
        key = (self._absolute(cwd, "cwd"), profile or self.options.profile)
        with self._lock:
            slot = self._slots.pop(key, None) or _ShelfSlot()
            self._slots[key] = slot
        with slot.lock:
            if slot.shelf is not None and reread == "disk":
                slot.shelf.refresh()
            elif slot.shelf is None or reread == "everything":
                try:
                    slot.shelf = self._open_shelf(*key)
                except SkillError:
                    with self._lock:
                        self._slots.pop(key, None)
                    raise
            shelf = slot.shelf
        with self._lock:
            while len(self._slots) > RPC_SHELVES:
                del self._slots[next(iter(self._slots))]
        return shelf

    def _absolute(self, path: str, parameter: str) -> str:
        if "\0" in path:
            raise ConfigurationError(f"{parameter} is not a valid path: it contains a NUL character")
        return os.path.abspath(os.path.join(self.options.cwd, path))

    def _open_shelf(self, cwd: str, profile: str | None) -> Shelf:
        _, _, home, config, use_cache, trust, *_, sources = self.options
        try:
            shelf = open_shelf(
                cwd, profile, home=home, config=config, use_cache=use_cache, trust=trust, sources=sources
            )
        except SkillDirectoryNotFound as error:
            raise ConfigurationError(f"cwd must be an existing folder: {error.path}") from None
        if line := shelf.held_back.for_user():
            self._client.note(line)
        return shelf

    # Sessions -------------------------------------------------------------------------------------

    def session_options(self, name: str, policy: Any = None, journal: str = "") -> dict[str, Any]:
        """Return the options of a session of this server."""
        path = self._absolute(journal, "journal") if journal else self.options.journal

        def confirm(tool: str, skill: str, reason: str) -> bool | Literal["remember"]:
            return self._client.confirm(name, tool, skill, reason)

        def on_event(event: "Event") -> None:
            self._client.on_event({"session": name, "type": type_of(event), **payload_of(event)})

        recording = RecordingOptions(
            path,
            self.options.keep and path is not None,
            on_event=on_event,
            rotation=self.options.rotate,
            exporter=self.options.otlp,
        )
        return {"policy": policy, "confirm": confirm, "recording": recording}

    @contextmanager
    def short_session(self, cwd: str) -> Iterator[Session]:
        """Open a session for one request; it has the policy and the events of any other."""
        shelf = self.shelf(cwd)
        if not shelf.settings.enabled:
            raise SkillsDisabled
        with self._lock:
            self._requests += 1
            name = f"r{self._requests}"
        with Session(shelf, **self.session_options(name)) as session:
            try:
                yield session
            except SkillError as error:
                raise Refused(session.explain(error)) from error
        self._report_journal(session)

    def session(self, name: str) -> Session:
        """Return an open session."""
        if name not in self.sessions:
            raise Refused(ToolError("not_found", f"no session {message_text(name)!r}; it was closed or never opened"))
        return self.sessions[name]

    def keep(self, name: str, session: Session) -> None:
        """Keep a session open under a name; a problem with its journal is reported immediately."""
        self.sessions[name] = session
        self._report_journal(session)

    def close(self, name: str) -> str | None:
        """Close a session; return which events its journal does not hold."""
        session = self.session(name)
        session.close()
        del self.sessions[name]
        return self._report_journal(session)

    def _report_journal(self, session: Session) -> str | None:
        if problem := session.journal_problem:
            self._client.note(problem)
        return problem
