"""A server on loopback that stands for a model: it keeps what a host sends to it, and refuses every request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.loopback import serving

__all__ = ["QUESTION", "PromptServer", "prompt_server"]

QUESTION = "please answer quaxo now"
"""What the model is asked, by which its request is found among others."""


class PromptServer:
    """The address of the server, and the requests that came since the last question."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Any] = []

    def prompt(self) -> str | None:
        """Return every text of the request that carries the question and the tools; None before it came."""
        for request in self.requests:
            texts = list(_texts(request))
            if isinstance(request, dict) and _has_tools(request) and any(QUESTION in text for text in texts):
                return "\n\n".join(texts)
        return None


def _has_tools(request: dict[str, Any]) -> bool:
    """Return true if a request has tools, itself or in one of its inputs."""
    inputs = request.get("input")
    inner = inputs if isinstance(inputs, list) else []
    return any(isinstance(one, dict) and one.get("tools") for one in (request, *inner))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


@contextmanager
def prompt_server() -> Iterator[PromptServer]:
    """A server that runs until the end of the block."""
    kept = PromptServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(200, {"object": "list", "data": [{"id": "m", "object": "model"}]})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                kept.requests.append(json.loads(body))
            except ValueError:
                kept.requests.append(None)
            self._reply(400, {"error": {"message": "stop", "type": "invalid_request_error"}})

        def _reply(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as address:
        kept.url = address
        yield kept
