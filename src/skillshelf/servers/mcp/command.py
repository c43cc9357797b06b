"""Run the `mcp` command: serve over standard input and output or HTTP, and watch the folders of skills."""

import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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
from skillshelf.core.disk_writes import open_to_append
from skillshelf.core.limits import REQUEST_BYTES
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills
from skillshelf.shelf import Shelf

__all__ = ["serve", "serve_stdio", "watch"]

_BLOCK = 1 << 16


async def serve_stdio(server: SkillServer) -> None:
    """Serve one client on standard input and output until it closes its side."""
    # Other output of this process must not get between the messages.
    read, write = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    out = _MessageWriter(write)
    streams = stdio_server(cast(Any, _MessageReader(read, out)), cast(Any, out))
    async with streams as (incoming, outgoing):
        await server.server.run(incoming, outgoing, server.server.create_initialization_options())


class _MessageWriter:
    """Writes messages, one at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = anyio.Lock()

    async def write(self, text: str) -> None:
        """Write all of a text, waiting for a client that does not read."""
        async with self._lock:
            await anyio.to_thread.run_sync(self._write, text.encode(), abandon_on_cancel=True)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except BrokenPipeError:
            # The client no longer reads; the end of its input will end the server.
            return

    async def flush(self) -> None:
        """Do nothing: writes are not buffered."""

    async def refuse(self, code: int, message: str, request: Any = None) -> None:
        """Return an error for a line that is not a valid message."""
        identity = request if isinstance(request, str | int) and not isinstance(request, bool) else None
        error = types.JSONRPCError(jsonrpc="2.0", id=identity, error=types.ErrorData(code=code, message=message))
        await self.write(error.model_dump_json(by_alias=True, exclude_unset=True) + "\n")


class _MessageReader:
    """Yields the lines that are valid messages, and answers all others with an error."""

    def __init__(self, descriptor: int, out: _MessageWriter) -> None:
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
        """Yield each line, or None for one that is too long, of which nothing is kept."""
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


_POLL_MS = 2_000
_DEBOUNCE_MS = 400
_STEP_MS = 50


async def watch(server: SkillServer, poll_ms: int = _POLL_MS, debounce_ms: int = _DEBOUNCE_MS) -> None:
    """Watch the folders of skills until cancelled; where that is impossible, the skills are refreshed when used."""
    skills, stop = server.skills, anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_set_when_cancelled, stop)
        # Thousands of folders take a while to watch, and a client sends its first request immediately.
        await anyio.sleep(poll_ms / 2000)
        while True:
            folders = await anyio.to_thread.run_sync(_folders, skills)
            skills.watched = False
            try:
                if folders:
                    await _watch(server, folders, stop, poll_ms, debounce_ms)
                    continue
            except (OSError, RuntimeError):
                # A folder was removed meanwhile, or the system has no more watches.
                skills.watched = False
            await anyio.sleep(poll_ms / 1000)
            await _announce(server, set())


async def _set_when_cancelled(stop: anyio.Event) -> None:
    # The thread that waits for changes ends by this event only, and the task group waits for it.
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()


async def _watch(
    server: SkillServer, folders: frozenset[str], stop: anyio.Event, poll_ms: int, debounce_ms: int
) -> None:
    """Watch these folders until the set of folders changes."""
    skills = server.skills
    changes = awatch(
        *folders,
        watch_filter=None,
        debounce=debounce_ms,
        step=_STEP_MS,
        rust_timeout=poll_ms,
        yield_on_timeout=True,
        ignore_permission_denied=True,
        stop_event=stop,
    )
    async for changed in changes:
        # The first time even without a change: there may have been one between the last scan and the watch.
        if changed or not skills.watched:
            await _announce(server, {path for _, path in changed})
            skills.watched = True
        # A root may have been created, or a link to a skill elsewhere.
        if await anyio.to_thread.run_sync(_folders, skills) != folders:
            await _announce(server, set())
            return


async def _announce(server: SkillServer, paths: set[str]) -> None:
    is_new = await anyio.to_thread.run_sync(server.skills.refresh)
    if is_new or paths:
        addresses = await anyio.to_thread.run_sync(_addresses, server.skills, paths)
        await server.announce(addresses, catalog=is_new)


def _folders(skills: PublishedSkills) -> frozenset[str]:
    """Return the folders to watch: each existing root, and each skill outside of them that a link leads to."""
    catalog = skills.shelf.catalog
    roots = {files.real_path(root.path) for root in catalog.roots if files.kind_at(files.real_path(root.path))}
    elsewhere = {
        skill.real_dir for skill in catalog.skills if not any(files.is_inside(skill.real_dir, root) for root in roots)
    }
    return frozenset(path for path in roots | elsewhere if files.kind_at(path) == "folder")


def _addresses(skills: PublishedSkills, paths: set[str]) -> set[str]:
    """Return the addresses of those files that belong to a visible skill."""
    by_folder = {skill.real_dir: skill for skill in skills.visible} if paths else {}
    found = set()
    for path in paths:
        above = os.path.dirname(path)
        while above not in by_folder and len(above) > 1:
            above = os.path.dirname(above)
        if above in by_folder:
            found.add(skills.uri_in(by_folder[above], path[len(above) + 1 :]))
    return found


_EXIT_SECONDS = 0.5

Run = Callable[[SkillServer], Awaitable[None]]


def serve(shelf: Shelf, values: Mapping[str, Any]) -> None:
    """Serve a shelf with the options of the command line, until the client leaves or a signal comes."""
    over_http = bool(values["http"])
    if not over_http and (given := [name for name in ("token_file", "allow_host", "paths") if values[name]]):
        raise ConfigurationError(f"--{given[0].replace('_', '-')} needs --http")
    run = _http(values, shelf) if over_http else serve_stdio

    journal = os.path.abspath(values["journal"]) if values["journal"] else None
    skills = PublishedSkills(shelf, journal=journal, keep=values["keep"])
    try:
        # A program that starts its own server may know the paths of skills; a remote client need not.
        server = SkillServer(skills, show_paths=not over_http or values["paths"], one_client=not over_http)
        _note_at_start(journal, over_stdio=not over_http)
        anyio.run(_run_until_stopped, server, run)
    finally:
        skills.sessions.close()
    _exit()


def _http(values: Mapping[str, Any], shelf: Shelf) -> Run:
    """Bind the address of `--http`, and return the function that serves there."""
    # Importing the web server takes a fifth of the start, and stdio does not need it.
    from skillshelf.servers.mcp.http import bind, listen_address, serve_http

    address = listen_address(values, shelf.environment.env)
    return partial(serve_http, address=address, bound=bind(address))


def _note_at_start(journal: str | None, *, over_stdio: bool) -> None:
    """Print that the journal cannot be written, and a hint for a user who started the server in a terminal."""
    if journal is not None:
        try:
            os.close(open_to_append(journal))
        except OSError as error:
            note(f"nothing will be recorded in {journal}: {error.strerror or error}")
    if over_stdio and os.isatty(0):
        note("this is a server for programs that speak the Model Context Protocol; press Ctrl-C to stop it")


def _exit() -> None:
    """Exit now if a thread cannot be stopped: it reads our input, waits for a client to read, or runs a script."""
    threads = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in threads:
        thread.join(_EXIT_SECONDS / len(threads))
    if any(thread.is_alive() and not thread.daemon for thread in threads):
        os._exit(0)


async def _run_until_stopped(server: SkillServer, run: Run) -> None:
    """Serve and watch the disk until the server ends or a signal comes."""
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
