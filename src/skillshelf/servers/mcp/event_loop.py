"""Run the event loop of the MCP server: serve clients, watch the folders of skills, and stop at a signal."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import anyio.abc
import anyio.to_thread
import mcp_types as types
from mcp.server.stdio import stdio_server
from pydantic import ValidationError
from pydantic_core import from_json
from watchfiles import awatch

from skillshelf.catalog.lock_places import lock_states
from skillshelf.core import files
from skillshelf.core.limits import LISTED_ENTRIES, REQUEST_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills

__all__ = [
    "ClientInput",
    "Run",
    "run_until_stopped",
    "serve_stdio",
    "stopped_by_signal",
    "watch",
]

_BLOCK = 1 << 16


class ClientInput(NamedTuple):
    """The streams of a client, and what it has sent before the event loop runs.

    Its messages in `replayed` were answered; the SDK answers the first again, to `replayed_id`, and that is not sent.
    The bytes in `unread` were not answered. `ended` is True if the client sends nothing more.
    """

    read: int
    write: int
    replayed: tuple[bytes, ...] = ()
    replayed_id: str = ""
    unread: bytes = b""
    ended: bool = False


async def serve_stdio(server: SkillServer, client: ClientInput) -> None:
    """Serve one client on its streams until it closes its side."""
    out = _MessageWriter(client)
    streams = stdio_server(cast(Any, _MessageReader(client, out)), cast(Any, out))
    async with streams as (incoming, outgoing):
        await server.server.run(incoming, outgoing, server.server.create_initialization_options())


class _MessageWriter:
    """Writes messages, one at a time."""

    def __init__(self, client: ClientInput) -> None:
        self._descriptor = client.write
        self._sent_before = f'{{"jsonrpc":"2.0","id":"{client.replayed_id}",' if client.replayed else None
        self._lock = anyio.Lock()

    async def write(self, text: str) -> None:
        """Write all of a text, waiting for a client that does not read."""
        if self._sent_before is not None and text.startswith(self._sent_before):
            self._sent_before = None
            return
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

    def __init__(self, client: ClientInput, out: _MessageWriter) -> None:
        self._client = client
        self._out = out

    async def __aiter__(self) -> AsyncIterator[str]:
        for answered in self._client.replayed:
            yield answered.decode()
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
        block = self._client.unread or await self._read()
        while block:
            *ended, rest = (kept + block).split(b"\n")
            for line in ended:
                yield None if too_long or len(line) > REQUEST_BYTES else line
                too_long = False
            too_long = too_long or len(rest) > REQUEST_BYTES
            kept = b"" if too_long else rest
            block = await self._read()
        if kept:
            yield kept

    async def _read(self) -> bytes:
        if self._client.ended:
            return b""
        return await anyio.to_thread.run_sync(os.read, self._client.read, _BLOCK, abandon_on_cancel=True)


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
            is_unnamed = False
            try:
                if folders:
                    await _watch(server, folders, stop, poll_ms, debounce_ms)
                    continue
            except* (OSError, RuntimeError) as errors:
                # A folder was removed meanwhile, the system has no more watches, or the watcher cannot name what
                # changed: it stops at a name that is not UTF-8 and drops the changes that it found before.
                skills.watched = False
                is_unnamed = errors.subgroup(RuntimeError) is not None
            since = time.time_ns() - 2 * poll_ms * 1_000_000
            await anyio.sleep(poll_ms / 1000)
            await _announce(server, await anyio.to_thread.run_sync(_changed, skills, since) if is_unnamed else set())


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
    locks = await anyio.to_thread.run_sync(lock_states, skills.shelf.environment, folders)
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
        # Locks lie above the watched folders, and decide what of them is published.
        before, locks = locks, await anyio.to_thread.run_sync(lock_states, skills.shelf.environment, folders)
        # The first time even without a change: there may have been one between the last scan and the watch.
        if changed or not skills.watched or before != locks:
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
    # A path that begins otherwise is the address of a skill that is kept elsewhere.
    on_disk = (skill.real_dir for skill in catalog.skills if skill.path.startswith("/"))
    elsewhere = {path for path in on_disk if not any(files.is_inside(path, root) for root in roots)}
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


def _changed(skills: PublishedSkills, since: int) -> set[str]:
    """Return the files of visible skills that changed since a moment, which is given in nanoseconds."""
    found = set()
    for skill in skills.visible:
        with suppress(OSError), files.Folder(skill.real_dir) as folder:
            for name in folder.files(LISTED_ENTRIES)[0]:
                path = f"{skill.real_dir}/{name}"
                stamp = files.stamp_at(path)
                if stamp is not None and stamp[-1] >= since:
                    found.add(path)
    return found


Run = Callable[[SkillServer], Awaitable[None]]


async def run_until_stopped(server: SkillServer, run: Run) -> None:
    """Serve and watch the disk until the server ends or a signal comes."""
    async with stopped_by_signal() as group:
        group.start_soon(watch, server)
        await run(server)


@asynccontextmanager
async def stopped_by_signal() -> AsyncIterator[anyio.abc.TaskGroup]:
    """Yield a task group that is cancelled when a signal asks the process to end, and at the end of the block.

    What is stopped ends in bounded time, so further signals change nothing, until the process has ended.
    """
    loop, has_come = asyncio.get_running_loop(), False

    async with anyio.create_task_group() as group:

        def stop(*_: object) -> None:
            nonlocal has_come
            has_come = True
            # The loop may have ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(group.cancel_scope.cancel)

        # Before anything else: whoever reads that the server runs may stop it. Not by the functions of the event loop:
        # they set the handlers of the system back when the loop ends, and the process has more to do then.
        # Who ignores a terminal that is closed, as `nohup` does, goes on.
        stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        numbers = (signal.SIGINT, signal.SIGTERM, *(() if stays else (signal.SIGHUP,)))
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield group
        finally:
            group.cancel_scope.cancel()
    if not has_come:
        for number, handler in before.items():
            signal.signal(number, handler)
