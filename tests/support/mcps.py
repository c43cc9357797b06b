"""Clients of the MCP SDK for tests: of a server in this process, or of the real command in its own process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support.trees import SOURCE, Machine

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")
pytest.importorskip("watchfiles", reason="needs the extra: pip install 'skillshelf[mcp]'")

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from skillshelf.core.limits import PAGE_ENTRIES
from skillshelf.servers.mcp.event_loop import watch
from skillshelf.servers.mcp.http import HttpLimits, ServerAccess, bind, serve_http
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills

ERAS = {"older": "legacy", "newer": "2026-07-28"}
"""The two eras of the protocol, and the mode of the client for each."""

INVALID_PARAMS = -32602
POLL_MS, DEBOUNCE_MS = 100, 50
"""The times of a server that watches the disk, shorter than those of the command."""


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
"""The message that opens a client session of the older era."""


class _Params(types.RequestParams):
    model_config = ConfigDict(extra="allow")


class _Result(types.Result):
    model_config = ConfigDict(extra="allow")


def run(test: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
    """Run the asynchronous part of a test for at most a minute."""

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
    page_entries: int = PAGE_ENTRIES,
    refresh_seconds: float = 2.0,
    progress_seconds: float = 0.5,
    **options: Any,
) -> AsyncIterator[Client]:
    """Open a client of a server in this process, which sees the machine as the command does."""
    shelf = machine.shelf(profile, trust="ask")
    skills = PublishedSkills(shelf, policy, journal=journal, refresh_seconds=refresh_seconds)
    server = SkillServer(
        skills, show_paths=show_paths, one_client=True, page_entries=page_entries, progress_seconds=progress_seconds
    )
    try:
        async with anyio.create_task_group() as group, Client(server.server, mode=ERAS[era], **options) as client:
            if watching:
                group.start_soon(watch, server, POLL_MS, DEBOUNCE_MS)
            yield client
            group.cancel_scope.cancel()
    finally:
        skills.sessions.close()


@asynccontextmanager
async def serving(
    machine: Machine,
    limits: HttpLimits | None = None,
    journal: Path | None = None,
    *,
    show_paths: bool = False,
) -> AsyncIterator[int]:
    """Run a server over HTTP in this process and yield its port; at the end it must stop."""
    skills = PublishedSkills(machine.shelf(trust="ask"), journal=journal)
    address = ServerAccess("127.0.0.1", 0, None, frozenset())
    bound = bind(address)
    try:
        async with anyio.create_task_group() as group:
            server = SkillServer(skills, show_paths=show_paths)
            group.start_soon(serve_http, server, address, bound, limits or HttpLimits())
            yield bound.getsockname()[1]
            group.cancel_scope.cancel()
    finally:
        skills.sessions.close()


async def post(port: int, message: Any, session: str | None = None) -> tuple[int, str | None]:
    """Return the status of the response to a message of the older era, and the session that it opens."""

    def ask() -> tuple[int, str | None]:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"} if session else {}
        try:
            connection.request("POST", "/mcp", json.dumps(message), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader("mcp-session-id")
        finally:
            connection.close()

    return await anyio.to_thread.run_sync(ask)


def command_of(machine: Machine, *words: str) -> StdioServerParameters:
    """Return the parameters to start the real command."""
    folders = ["--cwd", str(machine.repo), "--home", str(machine.home)]
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "PYTHONPATH": SOURCE}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "skillshelf", "mcp", *folders, *words], env=environment
    )


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Return the result of a method without the members that the SDK adds."""
    request: Any = types.Request(method=method, params=_Params(**params))
    result = (await client.session.send_request(request, _Result)).model_dump(by_alias=True, exclude_none=True)
    meta = {key: value for key, value in result.pop("_meta", {}).items() if "serverInfo" not in key}
    return {**result, **({"_meta": meta} if meta else {})}


async def code_of(client: Client, method: str, **params: Any) -> int | None:
    """Return the code of a method's error, or None if it succeeds."""
    try:
        await ask(client, method, **params)
    except MCPError as error:
        return error.code
    return None


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    """Return the text of a tool's result."""
    content = (await client.call_tool(tool, arguments)).content[0]
    assert isinstance(content, types.TextContent)
    return content.text
