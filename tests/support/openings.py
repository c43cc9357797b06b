"""Openings of MCP clients, and what a server answers to one: with the early answers, or by the SDK alone."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
import mcp_types as types
from pydantic import ValidationError
from pydantic_core import from_json

from skillshelf.core.limits import REQUEST_BYTES
from skillshelf.servers.mcp.command import answer_opening
from skillshelf.servers.mcp.event_loop import ClientInput, serve_stdio
from skillshelf.servers.mcp.first_messages import Opening
from skillshelf.servers.mcp.listings import Listings
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills
from support.mcps import HELLO

PREFIX = "io.modelcontextprotocol/"
VERSION, CAPABILITIES, CLIENT = (PREFIX + name for name in ("protocolVersion", "clientCapabilities", "clientInfo"))
ENVELOPE = {VERSION: "2026-07-28", CAPABILITIES: {}, CLIENT: {"name": "test", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LISTS = ("tools/list", "resources/list", "skills/list", "prompts/list", "resources/templates/list")
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01", "")
SECONDS = 60

Way = Literal["early", "sdk"]


def request(number: Any, method: Any, params: Any = None, **more: Any) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params}), **more}


def enveloped(number: Any, method: Any, envelope: Any = None, **params: Any) -> dict[str, Any]:
    """Return a request of the newer era."""
    return request(number, method, {**params, "_meta": ENVELOPE if envelope is None else envelope})


def hello(**params: Any) -> dict[str, Any]:
    """Return a handshake with other parameters."""
    return {**HELLO, "params": {**HELLO["params"], **params}}  # type: ignore[dict-item]


def line(message: Any) -> bytes:
    """Return the line of a message."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


# Recorded openings --------------------------------------------------------------------------------

_OLDER = [HELLO, INITIALIZED, *(request(n, method) for n, method in enumerate(("ping", *LISTS), 2))]
_NEWER = [enveloped(n, method) for n, method in enumerate(("server/discover", *LISTS), 2)]
_CALL = {"name": "skill_load", "arguments": {"name": "alpha"}}
_SDK_ONLY = [request(90, "tools/call", _CALL), request(91, "nonsense"), request(92, "resources/read", {"uri": "x"})]

RECORDED: dict[str, list[Any]] = {
    "older": _OLDER,
    "newer": _NEWER,
    "older, then calls": [*_OLDER, *_SDK_ONLY, *_OLDER[2:]],
    "newer, then calls": [*_NEWER, enveloped(90, "tools/call", **_CALL), enveloped(91, "nonsense"), *_NEWER],
    "no handshake": _OLDER[2:],
    "listing before the handshake": [request(1, "tools/list"), *_OLDER],
    "ping before the handshake": [request(0, "ping"), *_OLDER],
    "initialized before the handshake": [INITIALIZED, request(1, "tools/list"), *_OLDER],
    "initialized twice": [HELLO, INITIALIZED, INITIALIZED, *_OLDER[2:]],
    "no initialized": [HELLO, *_OLDER[2:]],
    "initialized with parameters": [HELLO, {**INITIALIZED, "params": {}}, {**INITIALIZED, "params": {"_meta": {}}}],
    "handshake twice": [HELLO, HELLO, *_OLDER[1:]],
    "older, then newer": [*_OLDER, *_NEWER],
    "newer, then older": [*_NEWER, *_OLDER],
    "newer, then a notification": [_NEWER[0], INITIALIZED, *_NEWER],
    "notifications first": [{"jsonrpc": "2.0", "method": f"notifications/{n}"} for n in range(12)] + _OLDER,
    "answers first": [{"jsonrpc": "2.0", "id": 1, "result": {}}, *_NEWER],
    "cancelled when it is done": [
        *_OLDER[:5],
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
        *_OLDER[5:],
    ],
    "blank lines": [b"", b" ", b"\r", HELLO, b"\t", *_OLDER[1:]],
    "carriage returns": [line(message) + b"\r" for message in _OLDER],
    "one cursor after the other": [
        HELLO,
        *(request(n, method, {"cursor": "wrong"}) for n, method in enumerate(LISTS, 2)),
        *(request(n, method, {"cursor": None}) for n, method in enumerate(LISTS, 20)),
    ],
    "parameters that say nothing": [
        HELLO,
        *(request(n, method, {}) for n, method in enumerate(("ping", *LISTS), 2)),
        *(request(n, method, {"_meta": {"progressToken": n}}) for n, method in enumerate(("ping", *LISTS), 20)),
    ],
    "a huge line": [HELLO, b'{"x": "' + b"x" * REQUEST_BYTES + b'"}', *_OLDER[1:]],
    "a huge line first": [b"x" * (REQUEST_BYTES + 1), *_NEWER],
    "a line of the largest size": [line(HELLO).ljust(REQUEST_BYTES), *_OLDER[1:]],
    "many arrays": [b"[" * 5000, *_NEWER],
    "two objects in a line": [line(HELLO) + line(INITIALIZED), *_OLDER],
    "a batch": [[HELLO, INITIALIZED], *_OLDER],
    "nothing": [],
}


def cut_openings() -> Iterator[tuple[str, list[Any], bytes]]:
    """Yield openings that end after each message, and in the middle of one."""
    for name, messages in (("older", _OLDER), ("newer", _NEWER)):
        for length in range(len(messages)):
            yield f"{name} cut after {length}", messages[:length], b""
            yield f"{name} cut in {length}", messages[:length], line(messages[length])[: 7 + 3 * length]


# Generated openings -------------------------------------------------------------------------------

_IDS = [0, -1, -0.0, 7, 2**31, 2**63 - 1, 2**63, 2**70, 1.0, 1.5, "", "a", "é", "\u2028", "\x7f", "\x00", "1", True]
_IDS += [False, None, [], {}, [1]]
_ODD: list[Any] = [None, True, 1, 1.5, "", "x", [], {}, {"x": 1}, {"x": {}}, {"x": {"y": {}}}, [{}], 2**70]
_SOUND_CAPABILITIES: list[Any] = [
    {},
    {"roots": {}},
    {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    {"sampling": {"tools": {}, "context": {"a": "b"}}, "elicitation": {"form": {}, "url": {}}},
    {"experimental": {"a": {"b": 1, "c": None}}, "extensions": {PREFIX + "ui": {"on": True}}},
]
_RAW = [
    b"nonsense",
    b"\xff\xfe",
    b'{"jsonrpc": "2.0", "id": 5, "method": "ping"',
    b"\xef\xbb\xbf" + line(HELLO),
    line(HELLO).decode().encode("utf-16"),
    b'{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":-0,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1e2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\\ud83d\\ude00","method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\xf0\x9f\x98\x80","method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\\u00e9\\/","method":"p\\u0069ng"}',
    b'{"jsonrpc":"2.0","id":01,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    b'{"jsonrpc":"2.0","id":5,"method":"ping"} x',
    b"{'jsonrpc':'2.0','id':5,'method':'ping'}",
    b'{"jsonrpc":"2.0","id":"a\tb","method":"ping"}',
    b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"_meta":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}}",
    b"[]",
    b"null",
    b"5",
]


def generated_openings(number: int, seed: int) -> Iterator[list[Any]]:
    """Yield openings that are nearly right: of either era, with changed, wrong, added and missing messages."""
    chance = random.Random(seed)
    for _ in range(number):
        messages = [
            _changed(message, chance) for message in (_older(chance) if chance.random() < 0.5 else _newer(chance))
        ]
        for _ in range(chance.choice((0, 0, 1, 2))):
            messages.insert(chance.randrange(len(messages) + 1), chance.choice(_RAW))
        if chance.random() < 0.15:
            chance.shuffle(messages)
        yield messages


def _older(chance: random.Random) -> list[Any]:
    capabilities = chance.choice(_SOUND_CAPABILITIES)
    opening: list[Any] = [hello(protocolVersion=chance.choice(VERSIONS), capabilities=capabilities)]
    opening += chance.choices(([INITIALIZED], []), (4, 1))[0]
    return opening + [request(n, chance.choice((*LISTS, "ping"))) for n in range(2, chance.randrange(3, 8))]


def _newer(chance: random.Random) -> list[Any]:
    envelope = {**ENVELOPE, CAPABILITIES: chance.choice(_SOUND_CAPABILITIES)}
    if chance.random() < 0.3:
        del envelope[CLIENT]
    methods = (*LISTS, "server/discover", "nonsense")
    return [enveloped(n, chance.choice(methods), envelope) for n in range(1, chance.randrange(2, 7))]


def _changed(message: dict[str, Any], chance: random.Random) -> Any:
    """Return a message in which a member, at any depth, is missing, added or another; or mostly the message itself."""
    if chance.random() < 0.7:
        return message
    changed: Any = json.loads(json.dumps(message))
    inside = changed
    while True:
        key = chance.choice([*inside, "new"])
        if isinstance(inside.get(key), dict) and inside[key] and chance.random() < 0.8:
            inside = inside[key]
            continue
        if key == "id":
            inside[key] = chance.choice(_IDS)
        elif chance.random() < 0.3:
            inside.pop(key, None)
        else:
            inside[key] = chance.choice([*_ODD, *_SOUND_CAPABILITIES, *VERSIONS, *LISTS, "initialize"])
        return changed


# What a server answers ----------------------------------------------------------------------------


def is_answered(data: bytes) -> bool:
    """Return True if the protocol has an answer for a line."""
    if not data.strip():
        return False
    try:
        found = types.jsonrpc_message_adapter.validate_python(from_json(data), by_name=False)
    except (ValidationError, ValueError, RecursionError):
        return True
    return isinstance(found, types.JSONRPCRequest)


class OpeningServer:
    """A server for one client on pipes: what answers it is the command's own early loop and the SDK, or the SDK."""

    def __init__(self, shelf: Any, way: Way, journal: Path | None = None, page_entries: int = 50) -> None:
        self._skills = PublishedSkills(shelf, journal=journal)
        self._listings = Listings(self._skills, show_paths=True, page_entries=page_entries)
        self._way = way
        self.early = 0

    def answers(self, messages: Sequence[Any], last: bytes = b"", *, pipelined: bool = False) -> list[bytes]:
        """Return the lines that a client reads; it waits for each answer unless it is `pipelined`."""
        server_in, client_out = os.pipe()
        client_in, server_out = os.pipe()
        found: list[bytes] = []
        client = threading.Thread(target=_talk, args=(client_in, client_out, messages, last, pipelined, found))
        client.start()
        try:
            anyio.run(self._serve, server_in, server_out)
        finally:
            self._skills.sessions.close()
            os.close(server_out)
            client.join(SECONDS)
            os.close(client_in)
            os.close(server_in)
        assert not client.is_alive(), "the client still waits for an answer"
        return found

    async def _serve(self, read: int, write: int) -> None:
        client, session = ClientInput(read, write), None
        with anyio.fail_after(SECONDS):
            if self._way == "early":
                opening = _CountedOpening(self._skills, self._listings)
                start = partial(answer_opening, opening, read, write, pause_seconds=SECONDS)
                rest = await anyio.to_thread.run_sync(start)
                self.early = opening.answered
                if rest is None:
                    return
                client = ClientInput(read, write, tuple(opening.replayed), opening.replayed_id, *rest)
                session = opening.client
            server = SkillServer(
                self._skills, show_paths=True, one_client=True, listings=self._listings, client=session
            )
            await serve_stdio(server, client)


class _CountedOpening(Opening):
    answered = 0

    def answer(self, line: bytes) -> bytes | None:
        found = super().answer(line)
        self.answered += bool(found)
        return found


def _talk(read: int, write: int, messages: Sequence[Any], last: bytes, pipelined: bool, found: list[bytes]) -> None:
    with os.fdopen(read, "rb", closefd=False) as answers, os.fdopen(write, "wb") as out:
        due = 0
        for message in map(line, messages):
            out.write(message + b"\n")
            due += is_answered(message)
            if not pipelined:
                out.flush()
                found += [answers.readline() for _ in range(due)]
                due = 0
        out.write(last)
        out.flush()
        found += [answers.readline() for _ in range(due)]
        out.close()
        found += answers.readlines()
