"""Standard input and output to a connection: bounded lines in, one message each, and an answer to what is none."""

import os
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.stdio import stdio_server
from pydantic import ValidationError
from pydantic_core import from_json

from skillshelf.core.limits import REQUEST_BYTES
from skillshelf.servers.mcp.server import SkillServer

__all__ = ["serve_stdio"]

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
