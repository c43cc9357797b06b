"""Changes on disk to a fresh catalog, and to a word to everybody who listens."""

import os
from collections.abc import Iterable

import anyio
import anyio.to_thread
from watchfiles import awatch

from skillshelf.core import files
from skillshelf.servers.mcp.library import Library
from skillshelf.servers.mcp.server import SkillServer

__all__ = ["watch"]

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


def _folders(library: Library) -> frozenset[str]:
    """The folders to watch: each root there is, and each skill that a link leads to outside of them."""
    catalog = library.shelf.catalog
    roots = {files.real_path(root.path) for root in catalog.roots if files.kind_at(files.real_path(root.path))}
    elsewhere = {skill.real_dir for skill in catalog.skills if not _is_below(skill.real_dir, roots)}
    return frozenset(path for path in roots | elsewhere if files.kind_at(path) == "folder")


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(files.is_inside(path, folder) for folder in folders)


def _addresses(library: Library, paths: set[str]) -> set[str]:
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
