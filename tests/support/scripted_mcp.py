"""MCP servers for tests: one that says what a test wants, byte for byte, and keeps what it was asked."""

from __future__ import annotations

import hashlib
import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

EXTENSION = "io.modelcontextprotocol/skills"
INVALID_PARAMS = -32602
TEXT = "---\nname: brew\ndescription: Brew a good coffee\nlevel: 3\n---\nGrind. See references/water.md\n"
FILES = {"SKILL.md": TEXT.encode(), "references/water.md": b"hot\n", "assets/bean.bin": b"\xff\x00bean"}
FIELDS = {"name": "brew", "description": "Brew a good coffee", "level": 3}

Answer = Callable[[Mapping[str, Any]], Any]


class Refusal(Exception):
    """An error that a server answers with."""

    def __init__(self, code: int, message: str = "no such thing") -> None:
        super().__init__(message)
        self.code = code


def entry_of(files: Mapping[str, bytes] = FILES, root: str = "skill://brew", **changes: Any) -> dict[str, Any]:
    """The entry of a skill as an honest server lists it."""
    resources = [
        {"uri": f"{root}/{path}", "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}
        for path, data in files.items()
    ]
    return {"uri": f"{root}/SKILL.md", "frontmatter": FIELDS, "resources": resources, **changes}


def content_of(uri: str, data: bytes) -> dict[str, Any]:
    """A file as `resources/read` returns it."""
    try:
        return {"uri": uri, "text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"uri": uri, "blob": b64encode(data).decode()}


class ScriptedServer:
    """A server over HTTP on loopback. `answers` replaces what it says to a method; `log` is what it was asked."""

    def __init__(self, files: Mapping[str, bytes] = FILES, **answers: Answer) -> None:
        self.files = dict(files)
        self.root = "skill://brew"
        self.log: list[tuple[str, str]] = []
        self.headers: dict[str, str] = {}
        self.before: Callable[[str], None] = lambda method: None
        self.raw: Callable[[bytes], bytes] = lambda data: data
        self._answers = {name.replace("__", "/"): answer for name, answer in answers.items()}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/mcp"

    @property
    def methods(self) -> list[str]:
        """The methods that it was asked for, without those that open a connection."""
        return [method for method, _ in self.log if method not in ("server/discover", "initialize")]

    @contextmanager
    def running(self) -> Iterator[ScriptedServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()

    def result(self, method: str, params: Mapping[str, Any]) -> Any:
        """What an honest server answers, unless the test says otherwise."""
        cache = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if method in self._answers:
            return {**cache, **self._answers[method](params)}
        if method == "server/discover":
            capabilities: dict[str, Any] = {"resources": {}, "extensions": {EXTENSION: {}}}
            return {**cache, "supportedVersions": ["2026-07-28"], "capabilities": capabilities}
        if method == "skills/list":
            return {**cache, "skills": [entry_of(self.files, self.root)]}
        if method == "skills/get":
            if params.get("uri") != f"{self.root}/SKILL.md":
                raise Refusal(INVALID_PARAMS)
            return {**cache, "skill": entry_of(self.files, self.root)}
        if method == "resources/read":
            path = str(params["uri"]).removeprefix(f"{self.root}/")
            if path not in self.files:
                raise Refusal(INVALID_PARAMS)
            return {**cache, "contents": [content_of(params["uri"], self.files[path])]}
        raise Refusal(-32601, "unknown method")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.send_error(405)

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["content-length"])))
                method, params = message.get("method", ""), message.get("params") or {}
                server.log.append((method, str(params.get("uri", params.get("cursor", "")))))
                server.before(method)
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
                try:
                    answer["result"] = server.result(method, params)
                except Refusal as refusal:
                    answer["error"] = {"code": refusal.code, "message": str(refusal)}
                data = server.raw(json.dumps(answer).encode())
                self.send_response(200)
                for name, value in {"content-type": "application/json", **server.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler
