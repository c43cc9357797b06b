"""A model on the loopback interface that follows a script in what the user says, in the form of three APIs.

The APIs are those of Gemini, OpenAI (chat) and Anthropic. What it does next is a pure function of the messages it gets,
so one server plays any number of conversations at once: `load NAME`, `read URI` and `search WORDS` in the last text of
the user are the calls that it makes, one for each request, then it says `done`. A question about tea makes it load
`tea`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from support.anthropic_server import stream_events
from support.loopback import serving

__all__ = ["Heard", "ScriptServer", "script_server"]

_TOOLS = {"load": ("skill_load", "name"), "read": ("skill_read", "uri"), "search": ("skill_search", "query")}


class Heard(NamedTuple):
    """What one request told the model: the system prompt, the tools, and the items of the conversation."""

    system: str
    tools: dict[str, Any]
    items: list[tuple[str, str]]
    """Pairs of `user`, `model`, `call` or `result`, and a text."""

    @property
    def asked(self) -> str:
        """The last text of the user."""
        return [text for kind, text in self.items if kind == "user"][-1]

    @property
    def results(self) -> list[str]:
        """The results of tools that the model sees."""
        return [text for kind, text in self.items if kind == "result"]

    @property
    def next(self) -> tuple[str, dict[str, str]] | None:
        """The next call; None when it is time to answer."""
        last = max(n for n, (kind, _) in enumerate(self.items) if kind == "user")
        made = sum(kind == "result" for kind, _ in self.items[last:])
        words = [line.split(" ", 1) for line in self.asked.split("; ") if line.split(" ", 1)[0] in _TOOLS]
        if "tea?" in self.asked:
            words = [["load", "tea"]]
        if made >= len(words):
            return None
        tool, parameter = _TOOLS[words[made][0]]
        return tool, {parameter: words[made][1]}


class ScriptServer:
    """The address of the server and the requests it got."""

    def __init__(self) -> None:
        self.url = ""
        self.heard: list[Heard] = []

    def of(self, word: str) -> list[Heard]:
        """The requests of the conversation whose last question has this word."""
        return [heard for heard in self.heard if word in heard.asked]


@contextmanager
def script_server() -> Iterator[ScriptServer]:
    """A server until the end of the block."""
    script = ScriptServer()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "/v1/messages" in self.path:
                self._anthropic(request)
                return
            gemini = "GenerateContent" in self.path or "generateContent" in self.path
            heard = _gemini_heard(request) if gemini else _openai_heard(request)
            with lock:
                script.heard.append(heard)
                number = len(script.heard)
            if "fail" in heard.asked:
                self._send(b'{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}', status=400)
                return
            streams = "streamGenerateContent" in self.path or bool(request.get("stream"))
            pieces = (_gemini_pieces if gemini else _openai_pieces)(heard, number, streams=streams)
            if streams:
                self._send(_lines(pieces, end="" if gemini else "data: [DONE]\n\n"), kind="text/event-stream")
            else:
                self._send(json.dumps(list(pieces)[-1]).encode())

        def _anthropic(self, request: dict[str, Any]) -> None:
            heard = _anthropic_heard(request)
            if "count_tokens" in self.path:
                self._send(b'{"input_tokens": 1}')
                return
            with lock:
                number = len(script.heard)
                # Claude Code also asks for titles and the like, without the tools.
                if heard.tools:
                    script.heard.append(heard)
            message = _anthropic_message(heard, number, request["model"])
            if request.get("stream"):
                self._send(b"".join(stream_events(message)), kind="text/event-stream")
            else:
                self._send(json.dumps(message).encode())

        def do_GET(self) -> None:
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815

        def _send(self, data: bytes, *, status: int = 200, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as script.url:
        yield script


def _lines(pieces: Iterator[dict[str, Any]], *, end: str) -> bytes:
    return "".join([*(f"data: {json.dumps(piece)}\r\n\r\n" for piece in pieces), end]).encode()


# Gemini -------------------------------------------------------------------------------------------


def _gemini_heard(request: dict[str, Any]) -> Heard:
    items: list[tuple[str, str]] = []
    for content in request["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                items.append(("call", json.dumps(part["functionCall"]["args"])))
            elif "functionResponse" in part:
                response = part["functionResponse"]["response"]
                items.append(("result", response.get("result", response.get("error"))))
            elif "text" in part:
                items.append((content["role"], part["text"]))
    declared = [tool for group in request.get("tools", ()) for tool in group["functionDeclarations"]]
    tools = {tool["name"]: tool["parameters_json_schema"] for tool in declared}
    system = "".join(part["text"] for part in request.get("systemInstruction", {"parts": ()})["parts"])
    return Heard(system, tools, items)


def _gemini_pieces(heard: Heard, number: int, *, streams: bool) -> Iterator[dict[str, Any]]:
    parts: list[list[dict[str, Any]]]
    if call := heard.next:
        parts = [[{"functionCall": {"name": call[0], "args": call[1]}}]]
    else:
        parts = [[{"text": "do"}], [{"text": "ne"}]] if streams else [[{"text": "done"}]]
    for n, piece in enumerate(parts, 1):
        end = {"finishReason": "STOP"} if n == len(parts) else {}
        yield {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": piece}, **end}],
            "responseId": str(number),
        }


# OpenAI -------------------------------------------------------------------------------------------


def _openai_heard(request: dict[str, Any]) -> Heard:
    items: list[tuple[str, str]] = []
    system = []
    for message in request["messages"]:
        text = message.get("content") or ""
        plain = text if isinstance(text, str) else "".join(block.get("text", "") for block in text)
        if message["role"] in ("system", "developer"):
            system.append(plain)
        elif message["role"] == "tool":
            items.append(("result", plain))
        else:
            if plain:
                items.append(("user" if message["role"] == "user" else "model", plain))
            items += [("call", call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in request.get("tools") or ()}
    return Heard("\n".join(system), tools, items)


def _openai_pieces(heard: Heard, number: int, *, streams: bool) -> Iterator[dict[str, Any]]:
    told: dict[str, Any] = {"role": "assistant", "content": "done"}
    if call := heard.next:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        told = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}],
        }
    reason = "tool_calls" if call else "stop"
    kind, member = ("chat.completion.chunk", "delta") if streams else ("chat.completion", "message")
    about = {"id": f"c{number}", "object": kind, "created": 1, "model": "m"}
    if not streams:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        yield {**about, "choices": [{"index": 0, member: told, "finish_reason": reason}], "usage": usage}
        return
    yield {**about, "choices": [{"index": 0, member: told, "finish_reason": None}]}
    yield {**about, "choices": [{"index": 0, member: {}, "finish_reason": reason}]}


# Anthropic ----------------------------------------------------------------------------------------


def _anthropic_heard(request: dict[str, Any]) -> Heard:
    items: list[tuple[str, str]] = []
    for message in request.get("messages", ()):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_use":
                items.append(("call", json.dumps(block["input"])))
            elif block["type"] == "tool_result":
                items.append(("result", _plain(block["content"])))
            elif block["type"] == "text" and not block["text"].startswith("<system-reminder>"):
                items.append(("user" if message["role"] == "user" else "model", block["text"]))
    tools = {tool["name"]: tool.get("input_schema") for tool in request.get("tools") or ()}
    skills = {name: schema for name, schema in tools.items() if name.startswith("mcp__skills__")}
    return Heard(_plain(request.get("system") or ""), skills, items)


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def _anthropic_message(heard: Heard, number: int, model: str) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "text", "text": "done" if heard.tools else "-"}
    if heard.tools and (call := heard.next):
        content = {"type": "tool_use", "id": f"toolu_{number}", "name": f"mcp__skills__{call[0]}", "input": call[1]}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [content],
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "stop_reason": "tool_use" if content["type"] == "tool_use" else "end_turn",
    }
