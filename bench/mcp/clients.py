"""Call the methods of the skills extension with a client of the SDK."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

__all__ = ["MCPError", "ask", "digest_of_resource", "entries"]


class _Params(types.RequestParams):
    model_config = ConfigDict(extra="allow")


class _Result(types.Result):
    model_config = ConfigDict(extra="allow")


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Return the result of a method."""
    request: Any = types.Request(method=method, params=_Params(**params))
    result = await client.session.send_request(request, _Result)
    return result.model_dump(by_alias=True, exclude_none=True)


async def entries(client: Client) -> AsyncIterator[dict[str, Any]]:
    """Yield every entry of the listing, page by page."""
    page = await ask(client, "skills/list")
    while True:
        for skill in page["skills"]:
            yield skill
        if "nextCursor" not in page:
            return
        page = await ask(client, "skills/list", cursor=page["nextCursor"])


async def digest_of_resource(client: Client, uri: str) -> str:
    """Return the digest of the bytes of a resource."""
    contents = (await client.session.read_resource(uri)).contents[0]
    data = b64decode(contents.blob) if isinstance(contents, types.BlobResourceContents) else contents.text.encode()
    return "sha256:" + sha256(data).hexdigest()
