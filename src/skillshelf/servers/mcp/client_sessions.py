"""The client sessions of the MCP server: one session of skillshelf for each, with its own windows and journal session.

The server does not know what is still in the context of a client's model. So these sessions never remind
(`memory="none"`): every load is whole.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.load import Resource
from skillshelf.core.console import note
from skillshelf.core.limits import CLIENT_TEXT_CHARS, PUBLISHED_BYTES
from skillshelf.core.text import cut, visible
from skillshelf.errors import SkillError
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolResult

if TYPE_CHECKING:
    import anyio

__all__ = ["ClientSession", "ClientSessions", "client_label"]

_LABEL_CHARS = 200

OpenSession = Callable[..., Session]
"""Open a session; takes the keywords `client`, `subject` and `per_request`."""


def client_label(name: Any, version: Any) -> str | None:
    """Return the name and version of a client program for the journal, or None if it sent no name."""
    if not isinstance(name, str) or not name:
        return None
    return cut(visible(f"{name}/{version}" if isinstance(version, str) and version else name), _LABEL_CHARS)


class ClientSession:
    """One client session of the transport, or one request where the transport has none.

    Its session is opened at the first use. `turn` lets one request run at a time: a session runs one call at a time,
    and requests that wait for it must not occupy threads. `end` never waits: the last running use closes the session.
    """

    def __init__(self, open_session: Callable[[], Session], closed: Callable[["ClientSession", Session], None]) -> None:
        self._open = open_session
        self._closed = closed
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._uses = 0
        self._chars = 0
        self._ended = False

    @cached_property
    def turn(self) -> "anyio.Lock":
        """The lock of the event loop, which is imported when there is one."""
        import anyio

        return anyio.Lock()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Return the result of a tool of the profile."""
        with self.session() as session:
            result = session.call(tool, arguments)
            self._count(session, len(result.text))
            return result

    def command(self, text: str) -> ToolResult | None:
        """Return the result of a user's command."""
        with self.session() as session:
            result = session.command(text)
            self._count(session, len(result.text) if result is not None else 0)
            return result

    def read(self, uri: str, path: str) -> Resource:
        """Return a whole file of the skill at a path, or raise what a read raises."""
        with self.session() as session:
            resource = session.read(uri, path=path, limit=PUBLISHED_BYTES, for_model=True)
            self._count(session, len(resource.content))
            return resource

    def record_catalog(self) -> None:
        """Record the catalog if it changed since this client session was last given it."""
        with self.session() as session:
            session.record_catalog()

    def _count(self, session: Session, chars: int) -> None:
        # This protocol offers no recall, and a client session can last for days.
        self._chars += chars
        if self._chars > CLIENT_TEXT_CHARS:
            session.drop_texts()
            self._chars = 0

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Use the session, which is opened now if this is the first use."""
        with self._lock:
            if self._ended:
                raise SkillError("this client session has ended")
            if self._session is not None and self._session.is_outdated and not self._uses:
                # The system policy changed: what it says now counts from the next request on.
                self._session.close()
                self._session = None
            if self._session is None:
                self._session = self._open()
            session = self._session
            self._uses += 1
        try:
            yield session
        finally:
            with self._lock:
                self._uses -= 1
            self._close_if_ended()

    def end(self) -> None:
        """End the client session; nothing can be done in it afterwards."""
        with self._lock:
            self._ended = True
        self._close_if_ended()

    def _close_if_ended(self) -> None:
        with self._lock:
            if not self._ended or self._uses or self._session is None:
                return
            session, self._session = self._session, None
        session.close()
        self._closed(self, session)


class ClientSessions:
    """The client sessions of a server that have not ended."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open = open_session
        self._lock = threading.Lock()
        self._running: set[ClientSession] = set()
        self._told: set[str] = set()

    def start(
        self, client: str | None = None, *, subject: str | None = None, per_request: bool = False
    ) -> ClientSession:
        """Start a client session; `client` is the label of the client program, `subject` the person who uses it."""

        def opened() -> Session:
            session = self._open(client=client, subject=subject, per_request=per_request)
            self._tell(session)
            with self._lock:
                self._running.add(started)
            return session

        started = ClientSession(opened, self._forget)
        return started

    def close(self) -> None:
        """End all client sessions."""
        with self._lock:
            running = list(self._running)
        for one in running:
            one.end()

    def _forget(self, one: ClientSession, session: Session) -> None:
        with self._lock:
            self._running.discard(one)
        self._tell(session)

    def _tell(self, session: Session) -> None:
        """Print what the journal of a session reports, each sentence once."""
        for message in filter(None, (session.journal_problem, session.journal_notice)):
            with self._lock:
                is_new = message not in self._told and len(self._told) < _MOST_MESSAGES
                self._told.add(message)
            if is_new:
                note(message)


_MOST_MESSAGES = 20
