"""Changes on disk while a server runs are visible to clients and announced to subscribers."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.mcps import ask, client_of, run
from support.trees import Machine, write_skill

import anyio  # isort: skip
from mcp import Client  # isort: skip


def root_of(machine: Machine) -> Path:
    return machine.home / ".agents/skills"


@asynccontextmanager
async def listening(machine: Machine, era: str) -> AsyncIterator[tuple[Client, anyio.Event]]:
    """Open a client of a server that watches the disk; the event is set when a changed listing is announced."""
    announced, ready = anyio.Event(), anyio.Event()

    async def on_message(message: Any) -> None:
        if "resources/list_changed" in getattr(message, "method", ""):
            announced.set()

    async def listen(client: Client) -> None:
        async with client.listen(resources_list_changed=True) as events:
            ready.set()
            async for _ in events:
                announced.set()

    async with (
        client_of(machine, era, watching=True, message_handler=on_message) as client,
        anyio.create_task_group() as group,
    ):
        if era == "newer":
            group.start_soon(listen, client)
            await ready.wait()
        yield client, announced
        group.cancel_scope.cancel()


def put(root: Path, name: str, words: str = "here") -> None:
    write_skill(root, name, f"---\nname: {name}\ndescription: {words}\n---\n")


def a_new_skill(machine: Machine) -> None:
    put(root_of(machine), "beta")


def an_edit(machine: Machine) -> None:
    put(root_of(machine), "alpha", "other words")


def a_skill_renamed(machine: Machine) -> None:
    (root_of(machine) / "alpha").rename(root_of(machine) / "gamma")
    put(root_of(machine), "gamma")


def a_skill_deleted(machine: Machine) -> None:
    shutil.rmtree(root_of(machine) / "alpha")


def a_root_that_was_not_there(machine: Machine) -> None:
    put(machine.home / ".claude/skills", "delta")


def another_target_of_a_link(machine: Machine) -> None:
    link = root_of(machine) / "linked"
    link.unlink()
    link.symlink_to(machine.base / "second/linked")


def many_at_once(machine: Machine) -> None:
    for number in range(100):
        put(root_of(machine), f"many-{number:03}")


CHANGES: dict[Callable[[Machine], None], list[str]] = {
    a_new_skill: ["alpha: here", "beta: here", "linked: first"],
    an_edit: ["alpha: other words", "linked: first"],
    a_skill_renamed: ["gamma: here", "linked: first"],
    a_skill_deleted: ["linked: first"],
    a_root_that_was_not_there: ["alpha: here", "delta: here", "linked: first"],
    another_target_of_a_link: ["alpha: here", "linked: second"],
    many_at_once: ["alpha: here", "linked: first", *(f"many-{number:03}: here" for number in range(100))],
}


@pytest.mark.parametrize(
    ("era", "change"),
    [("older", a_new_skill), *(("newer", change) for change in CHANGES)],
    ids=lambda given: given if isinstance(given, str) else given.__name__,
)
def test_a_change_is_announced_and_then_seen(machine: Machine, era: str, change: Callable[[Machine], None]) -> None:
    put(root_of(machine), "alpha")
    for place in ("first", "second"):
        put(machine.base / place, "linked", place)
    (root_of(machine) / "linked").symlink_to(machine.base / "first/linked")

    async def listed(client: Client) -> list[str]:
        page = await ask(client, "skills/list")
        entries = list(page["skills"])
        while "nextCursor" in page:
            page = await ask(client, "skills/list", cursor=page["nextCursor"])
            entries += page["skills"]
        return [f"{entry['frontmatter']['name']}: {entry['frontmatter']['description']}" for entry in entries]

    async def check() -> None:
        async with listening(machine, era) as (client, announced):
            # At once: also what happens before the watch begins is seen.
            change(machine)
            await announced.wait()
            while await listed(client) != CHANGES[change]:
                # It was seen half done; the rest is announced as well.
                await anyio.sleep(0.05)

    run(check)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that stores any bytes")
def test_a_change_of_a_file_whose_name_is_not_utf_8_is_announced_with_those_beside_it(machine: Machine) -> None:
    put(root_of(machine), "alpha")
    folder = root_of(machine) / "alpha"
    wanted = {"skill://alpha/not-%FF.txt", "skill://alpha/plain.txt"}

    async def check() -> None:
        async with (
            client_of(machine, "newer", watching=True) as client,
            client.listen(resource_subscriptions=sorted(wanted)) as events,
        ):
            await anyio.sleep(0.5)
            (folder / "plain.txt").write_text("new")
            (folder / os.fsdecode(b"not-\xff.txt")).write_text("new")
            seen: set[str] = set()
            async for event in events:
                seen.add(getattr(event, "uri", ""))
                if seen >= wanted:
                    return

    run(check)
