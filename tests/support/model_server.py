"""A small server with the OpenAI API on the loopback interface, whose model says what a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from support.loopback import serving

__all__ = ["Ending", "ModelServer", "Step", "model_server"]


class Ending(NamedTuple):
    """A text and the reason why it ends; without one the stream just ends."""

    text: str
    reason: str | None


Step = str | tuple[str, dict[str, Any]] | int | Ending
"""A text to say, a tool to call, the status of a failure, or a text with an end of its own."""


class ModelServer:
    """The steps still to be made, the requests that came, and a gate before the last piece of each text."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.requests: list[dict[str, Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.url = ""

    @property
    def env(self) -> dict[str, str]:
        """The variables that point a client at this server."""
        return {"OPENAI_BASE_URL": self.url}

    def said_to_model(self, role: str) -> list[str]:
        """The texts of one role in the last request."""
        return [message["content"] for message in self.requests[-1]["messages"] if message["role"] == role]


@contextmanager
def model_server(*steps: Step) -> Iterator[ModelServer]:
    """A server that makes these steps, one for each request."""
    script = ModelServer(*steps)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            script.requests.append(json.loads(body))
            step = script.steps.pop(0) if script.steps else 500
            if self.path != "/v1/chat/completions" or isinstance(step, int):
                self._fail(step if isinstance(step, int) else 404)
            else:
                self._stream(step)

        def _fail(self, status: int) -> None:
            data = json.dumps({"error": {"message": "no such \x1b[31mkey"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, step: str | tuple[str, dict[str, Any]] | Ending) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if isinstance(step, str):
                step = Ending(step, "stop")
            if isinstance(step, Ending):
                first, _, rest = step.text.partition(" ")
                self._send({"role": "assistant", "content": first})
                script.gate.wait(30)
                if rest:
                    self._send({"content": f" {rest}"})
                if step.reason is None:
                    return
                self._send({}, step.reason)
            else:
                function = {"name": step[0], "arguments": json.dumps(step[1])}
                call = {"index": 0, "id": f"call_{len(script.requests)}", "type": "function", "function": function}
                self._send({"role": "assistant", "content": None, "tool_calls": [call]})
                self._send({}, "tool_calls")
            self.wfile.write(b"data: [DONE]\n\n")

        def _send(self, delta: dict[str, Any], finish: str | None = None) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as address:
        script.url = f"{address}/v1"
        try:
            yield script
        finally:
            script.gate.set()
