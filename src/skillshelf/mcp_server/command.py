"""The words of `skillshelf mcp` to a server that runs until its client leaves or somebody stops it."""

import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from skillshelf.mcp_server.library import Library
from skillshelf.mcp_server.server import SkillServer
from skillshelf.mcp_server.stdio import serve_stdio
from skillshelf.session import Session
from skillshelf.shelf import Shelf

__all__ = ["serve"]


def serve(shelf: Shelf, values: Mapping[str, Any]) -> None:
    """Serve a shelf as the words say; returns when there is nobody to serve any more."""

    def open_session() -> Session:
        journal = os.path.abspath(values["journal"]) if values["journal"] else None
        return shelf.session(journal=journal, keep=values["keep"])

    library = Library(shelf, open_session)
    try:
        server = SkillServer(library, show_paths=True)
        anyio.run(_until_stopped, lambda: serve_stdio(server))
    finally:
        library.lanes.close()


async def _until_stopped(run: Callable[[], Awaitable[None]]) -> None:
    """Run until it ends by itself or this process is asked to end."""
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signal, group.cancel_scope)
        await run()
        group.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return
