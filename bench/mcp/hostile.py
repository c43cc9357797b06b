"""Send ten thousand invalid messages on both transports; the server must answer or close, and keep serving.

python bench/mcp/hostile.py [--messages 10000]
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from fixtures import command, fixture, http_server

from skillshelf.core.limits import CLIENT_SESSIONS, SILENT_SECONDS, UNFINISHED_AT_ONCE

CODES = {-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32020, -32021, -32022}
PATHS = (
    *("skill://alpha/../../../etc/passwd", "skill://alpha/%2e%2e/%2e%2e/etc/passwd", "skill://alpha//etc/passwd"),
    *(
        "file:///etc/passwd",
        "skill://alpha/link.md",
        "skill://alpha/SKILL.md/",
        "skill://alpha/SKILL.md%00",
        "skill://",
    ),
    *("skill://alpha/..%2f..%2fetc%2fpasswd", "skill://alpha/\\..\\..\\etc", "skill://" + "a/" * 3000, "\u0000", ""),
    *("skill://alpha/__pycache__/left.pyc", "skill://Alpha/SKILL.md", "SKILL://alpha/SKILL.md", "skill://alpha/%zz"),
)
METHODS = (
    *("skills/get", "skills/list", "resources/read", "resources/directory/read", "resources/list", "tools/call"),
    *(
        "prompts/get",
        "completion/complete",
        "skills/delete",
        "",
        "initialize",
        "ping",
        "resources/subscribe",
        "x" * 9999,
    ),
)
VALUES = (None, True, -1, 2**70, 1e308, "", "x" * 5000, [], {}, [[]], {"uri": 1}, {"cursor": 5}, {"cursor": "nonsense"})

SESSIONS, HALVES = CLIENT_SESSIONS + 100, UNFINISHED_AT_ONCE + 200
"""More than the limits of the server."""

Maker = Callable[[random.Random], bytes]


def request(chance: random.Random) -> bytes:
    """Return a request of the right form with a wrong value in it."""
    params: object = {"uri": chance.choice(PATHS)}
    if chance.random() < 0.5:
        params = chance.choice(VALUES)
    elif chance.random() < 0.4:
        arguments = {"name": chance.choice(VALUES), "uri": chance.choice(PATHS), "query": chance.choice(VALUES)}
        params = {
            "name": chance.choice(("skill_load", "skill_read", "skill_search", "skill_run", "?")),
            "arguments": dict(chance.sample(list(arguments.items()), 1)),
        }
    message = {"jsonrpc": "2.0", "id": chance.randrange(10**6), "method": chance.choice(METHODS), "params": params}
    return json.dumps(message).encode()


MAKERS: tuple[Maker, ...] = (
    lambda chance: chance.randbytes(chance.randrange(1, 400)).replace(b"\n", b""),
    lambda chance: request(chance)[: chance.randrange(5, 60)],
    lambda chance: b"[" * chance.choice((10, 1_000, 50_000)),
    lambda chance: b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    lambda chance: json.dumps(chance.choice(VALUES)).encode(),
    lambda chance: json.dumps([json.loads(request(chance))] * 3).encode(),
    lambda chance: json.dumps({"jsonrpc": chance.choice(("1.0", 2, None)), "id": 1, "method": "ping"}).encode(),
    lambda chance: json.dumps({"jsonrpc": "2.0", "id": chance.choice(({}, [], 1.5, None)), "method": "ping"}).encode(),
    lambda chance: json.dumps({"jsonrpc": "2.0", "id": 7, "result": {}}).encode(),
    lambda chance: b'{"jsonrpc":"2.0","id":1,"method":"skills/get","params":{"uri":"\\ud800"}}',
    lambda chance: (
        b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":"' + b"y" * 2_000_000 + b'"}}'
        if chance.random() < 0.02
        else b"{}"
    ),
    request,
    request,
    request,
)


def invalid_message(chance: random.Random) -> bytes:
    """Return one invalid message."""
    return chance.choice(MAKERS)(chance)


GOOD = {"jsonrpc": "2.0", "id": "good", "method": "skills/list", "params": {}}
OPENING = {
    "jsonrpc": "2.0",
    "id": "opening",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "hostile", "version": "1"}},
}


def on_stdio(base: Path, messages: int) -> bool:
    """Send all messages to one process, which must answer a valid request at the end."""
    process = subprocess.Popen(command(base), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin
    answers: Counter[str] = Counter()
    good = threading.Event()

    def listen() -> None:
        assert process.stdout
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == "good":
                answers["good answers"] += "alpha" in line.decode()
                good.set()
            elif "error" in answer:
                answers[f"error {answer['error']['code']}"] += 1
            else:
                answers["results" if "result" in answer else "notifications"] += 1

    listener = threading.Thread(target=listen)
    listener.start()
    chance = random.Random(1)
    opening = [json.dumps(OPENING).encode(), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
    for message in (*opening, *(invalid_message(chance) for _ in range(messages)), json.dumps(GOOD).encode()):
        process.stdin.write(message + b"\n")
    process.stdin.flush()
    served = good.wait(60)
    process.stdin.close()
    status = process.wait(30)
    listener.join(10)
    print(f"stdio: {messages} messages, {dict(sorted(answers.items()))}, exit {status} after the input ended")
    strange = {what for what in answers if what.startswith("error") and int(what.split()[1]) not in CODES}
    return served and status == 0 and not strange and answers["good answers"] == 1


def on_http(base: Path, messages: int) -> bool:
    """Send all messages by four clients over HTTP, some of them not even HTTP, then use a valid client."""
    with http_server(base) as (url, _):
        where = urlsplit(url)
        statuses: Counter[str] = Counter()
        threads = [threading.Thread(target=_post_all, args=(where, messages // 4, n, statuses)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"HTTP: {messages} messages, {dict(sorted(statuses.items()))}")
        opened = Counter(_post(where, json.dumps(OPENING).encode(), {})[0] for _ in range(SESSIONS))
        print(f"  {SESSIONS} sessions of the older era that are never ended: {dict(opened)}")
        lingering = [_half_a_request(where) for _ in range(HALVES)]
        time.sleep(SILENT_SECONDS + 3)
        modern = _post(where, json.dumps({**GOOD, "params": {"_meta": META}}).encode(), MODERN)
        older, _ = _post(where, json.dumps(OPENING).encode(), {})
        print(
            f"  {HALVES} halves of requests; after {SILENT_SECONDS + 3} seconds good clients get {modern[0]}, {older}"
        )
        for connection in lingering:
            connection.close()
    failed = sum(number for what, number in statuses.items() if what.startswith("5"))
    calm = "Traceback" not in (base / "server.log").read_text()
    good = (modern[0], older, set(opened)) == (200, 200, {200}) and b"alpha" in modern[1]
    return good and calm and not failed


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "skills/list"}
ODD_HEADERS: tuple[dict[str, str], ...] = (
    *(
        {},
        {},
        {},
        MODERN,
        {"mcp-protocol-version": "nonsense"},
        {"mcp-session-id": "x" * 100},
        {"host": "evil.example"},
    ),
    *({"origin": "https://evil.example"}, {"content-type": "text/plain"}, {"accept": "text/html"}),
    {"mcp-protocol-version": "2026-07-28", "mcp-method": "resources/read", "mcp-name": "\u00ff"},
)


def _post_all(where: object, messages: int, seed: int, statuses: Counter[str]) -> None:
    chance = random.Random(seed)
    for _ in range(messages):
        try:
            if chance.random() < 0.05:
                _garbage(where, chance)
                statuses["not HTTP"] += 1
            else:
                status, _ = _post(where, invalid_message(chance), chance.choice(ODD_HEADERS))
                statuses[str(status)] += 1
        except (OSError, http.client.HTTPException) as error:
            statuses[f"closed: {type(error).__name__}"] += 1


def _post(where: object, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)  # type: ignore[attr-defined]
    plain = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        connection.request("POST", "/mcp", body, {**plain, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _half_a_request(where: object) -> socket.socket:
    raw = socket.create_connection((where.hostname, where.port), timeout=10)  # type: ignore[attr-defined]
    raw.sendall(b"POST /mcp HTTP/1.1\r\nHost: local")
    return raw


def _garbage(where: object, chance: random.Random) -> None:
    with socket.create_connection((where.hostname, where.port), timeout=10) as raw:  # type: ignore[attr-defined]
        raw.sendall(chance.randbytes(300) + b"\r\n\r\n")


def main() -> int:
    """Run both transports."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = fixture(Path(folder))
        good = [on_stdio(base, given.messages), on_http(base, given.messages)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
