"""Standard input and output to a connection: bounded lines in, one message each, and an answer to what is none."""

import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.stdio import stdio_server
from pydantic import ValidationError
from pydantic_core import from_json
from watchfiles import awatch

from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.limits import REQUEST_BYTES
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills
from skillshelf.session.session import Session
from skillshelf.shelf import Shelf

__all__ = ["serve", "serve_stdio", "watch"]


_BLOCK = 1 << 16


async def serve_stdio(server: SkillServer) -> None:
    """Serve the one client at the other end until it closes its side."""
    # Whatever else prints in this process must not get between the messages.
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    out = _Out(wire_out)
    streams = stdio_server(cast(Any, _In(wire_in, out)), cast(Any, out))
    async with streams as (incoming, outgoing):
        await server.server.run(incoming, outgoing, server.server.create_initialization_options())


class _Out:
    """Where messages are written, one at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = anyio.Lock()

    async def write(self, text: str) -> None:
        """Write all of a text; a client that does not read is waited for."""
        async with self._lock:
            await anyio.to_thread.run_sync(self._write, text.encode(), abandon_on_cancel=True)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except BrokenPipeError:
            # Nobody reads any more; that the input ends will end the server.
            return

    async def flush(self) -> None:
        """Nothing is held back."""

    async def refuse(self, code: int, message: str, request: Any = None) -> None:
        """Answer what is no message."""
        identity = request if isinstance(request, str | int) and not isinstance(request, bool) else None
        error = types.JSONRPCError(jsonrpc="2.0", id=identity, error=types.ErrorData(code=code, message=message))
        await self.write(error.model_dump_json(by_alias=True, exclude_unset=True) + "\n")


class _In:
    """The lines that are messages; all others are answered here."""

    def __init__(self, descriptor: int, out: _Out) -> None:
        self._descriptor = descriptor
        self._out = out

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines():
            if line is None:
                await self._out.refuse(types.INVALID_REQUEST, f"a message has at most {REQUEST_BYTES} bytes")
            elif line.strip() and await self._is_message(line):
                yield line.decode()

    async def _is_message(self, line: bytes) -> bool:
        try:
            value = from_json(line)
        except (ValueError, RecursionError) as error:
            await self._out.refuse(types.PARSE_ERROR, f"not JSON: {str(error)[:200]}")
            return False
        try:
            types.jsonrpc_message_adapter.validate_python(value, by_name=False)
        except (ValidationError, RecursionError):
            identity = value.get("id") if isinstance(value, dict) else None
            await self._out.refuse(types.INVALID_REQUEST, "not a JSON-RPC 2.0 message", identity)
            return False
        return True

    async def _lines(self) -> AsyncIterator[bytes | None]:
        """Each line; None for one that is too long, of which nothing is kept."""
        kept, too_long = b"", False
        while block := await anyio.to_thread.run_sync(os.read, self._descriptor, _BLOCK, abandon_on_cancel=True):
            *ended, rest = (kept + block).split(b"\n")
            for line in ended:
                yield None if too_long or len(line) > REQUEST_BYTES else line
                too_long = False
            too_long = too_long or len(rest) > REQUEST_BYTES
            kept = b"" if too_long else rest
        if kept:
            yield kept


_LOOK_MS = 2_000
_GATHER_MS = 400
_STEP_MS = 50


async def watch(server: SkillServer) -> None:
    """Watch the folders of skills until cancelled; where the system cannot, the library looks again by itself."""
    stop = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_set_when_cancelled, stop)
        # Thousands of folders take a while to watch, and whoever starts a server asks it something at once.
        await anyio.sleep(_LOOK_MS / 2000)
        await _watch_forever(server, stop)


async def _set_when_cancelled(stop: anyio.Event) -> None:
    # The thread that waits for changes hears of nothing else, and is waited for.
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()


async def _watch_forever(server: SkillServer, stop: anyio.Event) -> None:
    library = server.library
    while True:
        folders = await anyio.to_thread.run_sync(_folders, library)
        try:
            await _watch(server, folders, stop)
        except (OSError, RuntimeError):
            # A folder went away at once, or the system has no more watches to give.
            library.watched = False
            await anyio.sleep(_LOOK_MS / 1000)
            await _tell(server, set())


async def _watch(server: SkillServer, folders: frozenset[str], stop: anyio.Event) -> None:
    """Watch these folders until other ones should be."""
    library = server.library
    library.watched = False
    if not folders:
        await anyio.sleep(_LOOK_MS / 1000)
        await _tell(server, set())
        return
    changes = awatch(
        *folders,
        watch_filter=None,
        debounce=_GATHER_MS,
        step=_STEP_MS,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
        stop_event=stop,
    )
    async for changed in changes:
        # The first time also without a change: there may have been one after the last look and before the watch began.
        if changed or not library.watched:
            await _tell(server, {path for _, path in changed})
            library.watched = True
        # A root may have come that was not there, or a link to a skill elsewhere.
        if await anyio.to_thread.run_sync(_folders, library) != folders:
            await _tell(server, set())
            return


async def _tell(server: SkillServer, paths: set[str]) -> None:
    is_new = await anyio.to_thread.run_sync(server.library.refresh)
    if is_new or paths:
        addresses = await anyio.to_thread.run_sync(_addresses, server.library, paths)
        await server.announce(addresses, catalog=is_new)


def _folders(library: PublishedSkills) -> frozenset[str]:
    """The folders to watch: each root there is, and each skill that a link leads to outside of them."""
    catalog = library.shelf.catalog
    roots = {files.real_path(root.path) for root in catalog.roots if files.kind_at(files.real_path(root.path))}
    elsewhere = {skill.real_dir for skill in catalog.skills if not _is_below(skill.real_dir, roots)}
    return frozenset(path for path in roots | elsewhere if files.kind_at(path) == "folder")


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(files.is_inside(path, folder) for folder in folders)


def _addresses(library: PublishedSkills, paths: set[str]) -> set[str]:
    """The addresses that these files have, as far as they belong to a skill that is told of."""
    skills = {skill.real_dir: skill for skill in library.told} if paths else {}
    found = set()
    for path in paths:
        above = os.path.dirname(path)
        while above not in skills and len(above) > 1:
            above = os.path.dirname(above)
        if above in skills:
            found.add(library.uri_in(skills[above], path[len(above) + 1 :]))
    return found


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

    library = PublishedSkills(shelf, open_session)
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

    listening = listening_for(values, shelf.environment.env)
    return partial(serve_http, listening=listening, bound=bind(listening))


def _say_first(library: PublishedSkills, *, to_program: bool) -> None:
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
