"""A server on the loopback interface whose model does what the user says, in the form of three APIs.

It keeps no state: what it does next follows from the messages of the request alone, so any number of conversations can
be held at once. The user's text is `use WORD WORD ...`; for each word the model makes one call: `bash` is the host's
tool, every other word a skill to load. `both WORD WORD` makes it load them in
one turn. In any other text the word `tea` makes it load that skill. Its call ids are the
same in every conversation.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from support.loopback import serving

__all__ = ["ModelLoopback", "Turn", "model_loopback"]


class Turn(NamedTuple):
    """What a request holds: the user's texts, and the results since the last of them."""

    users: list[str]
    results: list[str]
    since: list[str]
    system: str


class ModelLoopback:
    """The requests that came, and what the model was told in them."""

    def __init__(self) -> None:
        self.url = ""
        self.turns: list[Turn] = []
        self.tools: list[list[str]] = []
        self.lock = threading.Lock()

    def last(self, user: str) -> Turn:
        """Return the last request of a conversation whose last text of the user is this."""
        return [turn for turn in self.turns if turn.users[-1] == user][-1]


def _texts(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(block.get("text", "") for block in content)


def _turn(request: dict[str, Any]) -> Turn:
    users: list[str] = []
    results: list[str] = []
    since: list[str] = []
    system = _texts(request.get("system") or request.get("instructions") or "")
    given: Any = request.get("messages", request.get("input"))
    for message in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        content: Any = message.get("content")
        blocks = content if isinstance(content, list) else []
        answers = [_texts(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
        if message.get("type") == "function_call_output":
            answers = [_texts(message["output"])]
        elif message.get("role") == "tool":
            answers = [_texts(message["content"])]
        if answers:
            results += answers
            since += answers
        elif message.get("role") == "user":
            users.append(_texts(message["content"]))
            since = []
        elif message.get("role") in ("system", "developer"):
            system += _texts(message["content"])
    return Turn(users, results, since, system)


def _next(turn: Turn, tools: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that the model makes now."""
    words = turn.users[-1].split()
    if words[0] != "both":
        call = _one(turn, tools)
        return [call] if call else []
    return [] if turn.since else [("skill_load", {"name": word}) for word in words[1:]]


def _one(turn: Turn, tools: list[str]) -> tuple[str, dict[str, Any]] | None:
    words = turn.users[-1].split()[1:] if turn.users[-1].startswith("use ") else re.findall("tea", turn.users[-1])
    if len(turn.since) >= len(words):
        return None
    word = words[len(turn.since)]
    if word == "bash":
        return "bash", {"command": "ls"}
    return ("read", {"path": f"skill://{word}"}) if "read" in tools else ("skill_load", {"name": word})


@contextmanager
def model_loopback() -> Iterator[ModelLoopback]:
    """Serve the model until the end of the block."""
    model = ModelLoopback()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            turn = _turn(request)
            tools = [_name(tool) for tool in request.get("tools") or ()]
            with model.lock:
                model.turns.append(turn)
                model.tools.append(tools)
            calls = [(f"call_{len(turn.results) + n}", *call) for n, call in enumerate(_next(turn, tools), 1)]
            make = {"messages": _anthropic, "chat/completions": _chat, "responses": _responses}
            kind = next(kind for kind in make if self.path.endswith(f"/{kind}"))
            whole, events = make[kind](calls)
            if request.get("stream"):
                self._send("".join(events).encode(), "text/event-stream")
            else:
                self._send(json.dumps(whole).encode(), "application/json")

        def _send(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as model.url:
        yield model


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("name") or tool["function"]["name"])


Answer = tuple[dict[str, Any], list[str]]
Calls = list[tuple[str, str, dict[str, Any]]]


def _anthropic(calls: Calls) -> Answer:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": number, "name": name, "input": given} for number, name, given in calls
    ] or [{"type": "text", "text": "done"}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    stop = "tool_use" if calls else "end_turn"
    whole: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    whole |= {"stop_reason": stop, "stop_sequence": None, "usage": usage}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for n, block in enumerate(blocks):
        begun, piece = {**block, "text": ""}, {"type": "text_delta", "text": "done"}
        if calls:
            begun = {**block, "input": {}}
            piece = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": n, "content_block": begun},
            {"type": "content_block_delta", "index": n, "delta": piece},
            {"type": "content_block_stop", "index": n},
        ]
    end = {"stop_reason": stop, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}, {"type": "message_stop"}]
    return whole, [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def _chat(calls: Calls) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        message["tool_calls"] = [
            {"index": n, "id": number, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for n, (number, name, given) in enumerate(calls)
        ]
    finish = "tool_calls" if calls else "stop"
    head = {"id": "c", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    pieces = [{"index": 0, "delta": message, "finish_reason": None}, {"index": 0, "delta": {}, "finish_reason": finish}]
    chunks = [{**head, "object": "chat.completion.chunk", "choices": [piece]} for piece in pieces]
    return whole, [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


def _responses(calls: Calls) -> Answer:
    text = {"type": "output_text", "text": "done", "annotations": []}
    items: list[dict[str, Any]] = [
        {"type": "function_call", "id": f"f{number}", "call_id": number, "name": name, "arguments": json.dumps(given)}
        for number, name, given in calls
    ] or [{"type": "message", "id": "m", "role": "assistant", "content": [text]}]
    items = [{**item, "status": "completed"} for item in items]
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
    whole = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": items}
    whole |= {"usage": usage, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "error": None}
    whole |= {"incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1}
    begun = {**whole, "output": [], "status": "in_progress", "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for n, item in enumerate(items):
        events += [
            {"type": "response.output_item.added", "output_index": n, "item": item},
            {"type": "response.output_item.done", "output_index": n, "item": item},
        ]
    events.append({"type": "response.completed", "response": whole})
    lines = [{**event, "sequence_number": n} for n, event in enumerate(events)]
    return whole, [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in lines]
