"""Connections and sessions to places for those who come: nobody keeps a place that is not used."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import anyio

__all__ = ["App", "Message", "Receive", "Scope", "Send", "Sessions", "send_away_the_silent"]

_LOOK_SECONDS = 0.5

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def send_away_the_silent(connections: Iterable[Any], seconds: float) -> None:
    """Close each connection that has no whole request to answer for so long, until cancelled.

    The web server waits for the headers of a request as long as a client likes, and a few hundred clients that never
    send theirs would take every place.
    """
    since: dict[tuple[Any, Any], float] = {}
    while True:
        await anyio.sleep(min(_LOOK_SECONDS, seconds))
        now = anyio.current_time()
        silent = [(one, one.cycle) for one in connections if one.cycle is None or one.cycle.response_complete]
        since = {wait: since.get(wait, now) for wait in silent}
        for (connection, _), began in since.items():
            if now - began >= seconds:
                connection.transport.close()


class Sessions:
    """The sessions of the older era: a client that comes when all are taken gets the place of one that rests.

    Such a client need not say when it leaves, and most do not.
    """

    def __init__(self, app: App, path: str, most: int) -> None:
        self._app = app
        self._path = path
        self._most = most
        self._at_work: dict[str, int] = {}

    async def make_room(self, scope: Scope) -> None:
        """End the session that rests longest, if there are more than there may be; never the newest."""
        older = list(self._at_work)[:-1] if len(self._at_work) > self._most else []
        resting = next((name for name in older if not self._at_work[name]), None)
        if resting is None:
            return
        self.forget(resting)
        headers = [(key, value) for key, value in scope["headers"] if key == b"host"]
        headers += [(b"mcp-session-id", resting.encode("latin-1")), (b"accept", b"application/json, text/event-stream")]
        goodbye = {**scope, "method": "DELETE", "path": self._path, "headers": headers}
        await self._app(goodbye, _no_body, _nobody_hears)

    def begin(self, name: str | None) -> None:
        """A request of a session comes in."""
        if name in self._at_work:
            # Put last: the first is the one that was used longest ago.
            self._at_work[name] = self._at_work.pop(name) + 1

    def end(self, name: str | None) -> None:
        """A request of a session was served."""
        if name in self._at_work:
            self._at_work[name] -= 1

    def opened(self, message: Message) -> None:
        """An answer goes out; it may open a session."""
        if message["type"] == "http.response.start" and message["status"] < 400:
            for key, value in message["headers"]:
                if key.lower() == b"mcp-session-id":
                    self._at_work.setdefault(value.decode("latin-1"), 0)

    def forget(self, name: str | None) -> None:
        """A session is no more."""
        if name is not None:
            self._at_work.pop(name, None)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nobody_hears(message: Message) -> None:
    return None
