"""Clients of the MCP SDK for tests: on a server in this process, or on the real command in one of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.trees import SOURCE, Machine

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")
pytest.importorskip("watchfiles", reason="needs the extra: pip install 'skillshelf[mcp]'")

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from skillshelf.servers.mcp.command import watch
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills

ERAS = {"older": "legacy", "newer": "2026-07-28"}
"""The two eras of the protocol, and how a client is told to speak each."""

WRONG_PARAMETERS = -32602


class _Params(types.RequestParams):
    model_config = ConfigDict(extra="allow")


class _Result(types.Result):
    model_config = ConfigDict(extra="allow")


def run(test: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
    """Run what a test does with a client; nothing may take longer than a minute."""

    async def bounded() -> None:
        with anyio.fail_after(60):
            await test(*arguments)

    anyio.run(bounded)


@asynccontextmanager
async def client_of(
    machine: Machine,
    era: str = "newer",
    *,
    profile: str | None = None,
    journal: Path | None = None,
    policy: Any = None,
    show_paths: bool = True,
    watching: bool = False,
    **options: Any,
) -> AsyncIterator[Client]:
    """A client on a server of this process, which sees the machine as the command does."""
    shelf = machine.shelf(profile, trust="ask")
    library = PublishedSkills(shelf, partial(shelf.session, policy, journal=journal))
    server = SkillServer(library, show_paths=show_paths)
    try:
        async with anyio.create_task_group() as group, Client(server.server, mode=ERAS[era], **options) as client:
            if watching:
                group.start_soon(watch, server)
            yield client
            group.cancel_scope.cancel()
    finally:
        library.lanes.close()


def command_of(machine: Machine, *words: str) -> StdioServerParameters:
    """The real command, as a client starts it."""
    place = ["--cwd", str(machine.repo), "--home", str(machine.home)]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "PYTHONPATH": SOURCE}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "skillshelf", "mcp", *place, *words], env=environment
    )


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """What a method gives, without what the SDK adds of its own."""
    request: Any = types.Request(method=method, params=_Params(**params))
    result = (await client.session.send_request(request, _Result)).model_dump(by_alias=True, exclude_none=True)
    meta = {key: value for key, value in result.pop("_meta", {}).items() if "serverInfo" not in key}
    return {**result, **({"_meta": meta} if meta else {})}


async def code_of(client: Client, method: str, **params: Any) -> int | None:
    """The code of the error that a method gives."""
    try:
        await ask(client, method, **params)
    except MCPError as error:
        return error.code
    return None


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    """The text that a tool gives."""
    content = (await client.call_tool(tool, arguments)).content[0]
    assert isinstance(content, types.TextContent)
    return content.text
