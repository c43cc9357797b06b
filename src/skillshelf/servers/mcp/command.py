"""The words of `skillshelf mcp` to a server that runs until its client leaves or somebody stops it."""

import os
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio

from skillshelf.core.console import note
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.library import Library
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.stdio import serve_stdio
from skillshelf.servers.mcp.watching import watch
from skillshelf.session.session import Session
from skillshelf.shelf import Shelf

__all__ = ["serve"]

_LEAVE_SECONDS = 0.5

Run = Callable[[SkillServer], Awaitable[None]]


def serve(shelf: Shelf, values: Mapping[str, Any]) -> None:
    """Serve a shelf as the words say; returns when there is nobody to serve any more."""
    over_http = bool(values["http"])
    if not over_http and (given := [word for word in ("token_file", "allow_host", "paths") if values[word]]):
        raise ConfigurationError(f"--{given[0].replace('_', '-')} is for --http")
    run = _http(values, shelf) if over_http else serve_stdio

    def open_session() -> Session:
        journal = os.path.abspath(values["journal"]) if values["journal"] else None
        return shelf.session(journal=journal, keep=values["keep"])

    library = Library(shelf, open_session)
    try:
        # Who starts a server on its own machine may know where the skills lie; somebody far away need not.
        server = SkillServer(library, show_paths=not over_http or values["paths"])
        _say_first(library, to_program=not over_http)
        anyio.run(_until_stopped, server, run)
    finally:
        library.lanes.close()
    if problem := library.lanes.problem:
        note(problem)
    _leave()


def _http(values: Mapping[str, Any], shelf: Shelf) -> Run:
    """How to serve at the address that the words name, which is taken from now on."""
    # The web server takes a fifth of the whole start, and a program that starts its own server needs none.
    from skillshelf.servers.mcp.http import bind, listening_for, serve_http

    listening = listening_for(values, shelf.place.env)
    return partial(serve_http, listening=listening, bound=bind(listening))


def _say_first(library: Library, *, to_program: bool) -> None:
    """What whoever started the server should know at once."""
    with library.lanes.session() as session:
        for told in filter(None, (session.journal_problem, session.journal_notice)):
            note(told)
    if to_program and os.isatty(0):
        note("this speaks the Model Context Protocol with a program, not with you; Ctrl-C ends it")


def _leave() -> None:
    """End the process if something in it cannot be ended: a read of our input, a write that nobody takes, a script."""
    threads = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in threads:
        thread.join(_LEAVE_SECONDS / len(threads))
    if any(thread.is_alive() and not thread.daemon for thread in threads):
        os._exit(0)


async def _until_stopped(server: SkillServer, run: Run) -> None:
    """Run, and watch the disk, until it ends by itself or this process is asked to end."""
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signal, group.cancel_scope)
        group.start_soon(watch, server)
        await run(server)
        group.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return
