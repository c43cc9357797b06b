"""A small server with the Anthropic API on the loopback interface, whose model calls one tool and then says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.loopback import serving

__all__ = ["Asked", "anthropic_server", "stream_events"]


class Asked:
    """The address of the server, and the requests that came with tools."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []

    def results(self) -> list[str]:
        """The results of tools in the last request."""
        blocks = [block for message in self.requests[-1]["messages"] for block in _blocks(message)]
        return [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@contextmanager
def anthropic_server(tool: str, arguments: dict[str, Any], text: str) -> Iterator[Asked]:
    """A model that calls the tool as soon as it is offered, and says the text once it has the answer."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.path.startswith("/v1/messages?") and self.path != "/v1/messages":
                self._send(b'{"input_tokens": 1}', "application/json")
                return
            content = self._content(request)
            message = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": request["model"],
                "content": [content],
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
                "stop_reason": "tool_use" if content["type"] == "tool_use" else "end_turn",
            }
            if request.get("stream"):
                self._send(b"".join(stream_events(message)), "text/event-stream")
            else:
                self._send(json.dumps(message).encode(), "application/json")

        def _content(self, request: dict[str, Any]) -> dict[str, Any]:
            if tool not in [offered["name"] for offered in request.get("tools", ())]:
                return {"type": "text", "text": "-"}
            asked.requests.append(request)
            if any(block["type"] == "tool_result" for message in request["messages"] for block in _blocks(message)):
                return {"type": "text", "text": text}
            return {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}

        def _send(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(404)

        def do_HEAD(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as asked.url:
        yield asked


def stream_events(message: dict[str, Any]) -> Iterator[bytes]:
    """A message as the events of a stream."""
    [content] = message["content"]
    if content["type"] == "tool_use":
        begun = {**content, "input": {}}
        piece = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
    else:
        begun = {"type": "text", "text": ""}
        piece = {"type": "text_delta", "text": content["text"]}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    for event in (
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": begun},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
