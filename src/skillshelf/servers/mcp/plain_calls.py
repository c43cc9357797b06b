"""Answer the calls of tools over HTTP without the SDK of the protocol, which takes longer for one than a search.

A call of the newer era is one request: nothing comes before it or after it. A call of the usual form is answered here,
byte for byte as the SDK would answer it. Every other request is for the SDK: another method, a header that is missing,
repeated or disagrees with the body, a client that wants to hear of progress, a tool that may run for long.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from skillshelf.servers.mcp.listings import SERVER_INFO
from skillshelf.servers.mcp.plain_messages import (
    NEWER_VERSION,
    SERVER_INFO_KEY,
    PlainRequest,
    newer_request,
    parsed_message,
)
from skillshelf.servers.mcp.request_line import App, Message, Receive, Scope, Send
from skillshelf.servers.mcp.server import SkillServer, encodable
from skillshelf.session.permissions import NAMES_OF_TOOLS

__all__ = ["CALL", "PlainCalls"]

CALL = "tools/call"
_TYPES = ("application/json", "text/event-stream")
_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")
_OTHERS = (b"mcp-session-id", b"content-type", b"accept")


class PlainCalls:
    """The application of a server that answers plain calls, and leaves the rest to the application of the SDK.

    `counted` is called with the method of each request that is answered here.
    """

    def __init__(self, server: SkillServer, app: App, counted: Callable[[str], None] = lambda method: None) -> None:
        self._server = server
        self._app = app
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request whose body is complete, or whatever the SDK serves."""
        tool = _tool_in(scope)
        if tool is None or not self._is_brief(tool):
            await self._app(scope, receive, send)
            return
        message = await receive()
        answer = await self._answer(scope, tool, message)
        if answer is None:
            await self._app(scope, _again(message, receive), send)
            return
        headers = [(b"content-length", b"%d" % len(answer)), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _is_brief(self, tool: str) -> bool:
        """Return whether a tool answers soon: the SDK keeps the connection of a call alive that takes long."""
        kind = NAMES_OF_TOOLS.get(tool)
        return kind != "skill_run" and (kind != "skill_search" or self._server.skills.shelf.is_search_ready)

    async def _answer(self, scope: Scope, tool: str, message: Message) -> bytes | None:
        """Return the answer to a call; None if the SDK has to give it."""
        try:
            request = _call_in(message, tool)
            if request is None:
                return None
            result = await self._server.call(scope, request.client, tool, request.params["arguments"])
            answer = _encoded(request, result)
        except Exception:
            # Whatever failed: nothing was sent, and the SDK does it again and reports it.
            return None
        self._counted(CALL)
        return answer


def _tool_in(scope: Scope) -> str | None:
    """Return the tool that the headers of a plain call name; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _ROUTING or name in _OTHERS:
            if name in found:
                return None
            found[name] = value
        elif name.startswith(b"mcp-param-"):
            return None
    if found.get(b"mcp-protocol-version") != NEWER_VERSION.encode() or found.get(b"mcp-method") != CALL.encode():
        return None
    accepted = [one.strip() for one in found.get(b"accept", b"").decode("latin-1").split(",")]
    is_plain = found.get(b"content-type") == b"application/json" and all(kind in accepted for kind in _TYPES)
    tool = found.get(b"mcp-name", b"").decode("latin-1")
    return tool if is_plain and b"mcp-session-id" not in found and tool.isascii() and tool.isidentifier() else None


def _call_in(message: Message, tool: str) -> PlainRequest | None:
    """Return the call in the body of a request; None if it has another form, or calls another tool."""
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    request = newer_request(parsed_message(message.get("body", b"")))
    if request is None or request.method != CALL or request.params.keys() != {"name", "arguments", "_meta"}:
        return None
    is_plain = request.params["name"] == tool and isinstance(request.params["arguments"], dict)
    return request if is_plain and "progressToken" not in request.params["_meta"] else None


def _encoded(request: PlainRequest, result: Mapping[str, Any]) -> bytes:
    """Return the answer as the SDK writes it."""
    data = {"structuredContent": result["structuredContent"]} if "structuredContent" in result else {}
    whole = {
        "content": [{"text": part["text"], "type": part["type"]} for part in result["content"]],
        "isError": result["isError"],
        "resultType": "complete",
        **data,
        "_meta": {SERVER_INFO_KEY: SERVER_INFO},
    }
    answer = {"jsonrpc": "2.0", "id": request.id, "result": whole}
    text = json.dumps(answer, separators=(",", ":"))
    if "\\ud" in text:
        # Half of a character is written otherwise than a whole one.
        text = json.dumps(encodable(answer), separators=(",", ":"))
    return text.encode()


def _again(message: Message, receive: Receive) -> Receive:
    """Return a receiver that yields a message first, which was taken already."""
    taken = [message]

    async def received() -> Message:
        return taken.pop() if taken else await receive()

    return received
