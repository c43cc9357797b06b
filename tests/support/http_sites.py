"""Sites on this machine that answer exactly the bytes they are told to, with TLS and a proxy where wanted."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from skillshelf.install.well_known import INDEX_PATH, INDEX_SCHEMA

__all__ = [
    "Certificates",
    "Request",
    "Site",
    "answer",
    "connect_proxy",
    "digest_of",
    "index",
    "make_certificates",
    "redirect",
    "skill_text",
]


class Request(NamedTuple):
    """A request that a site got: method, path with its query, headers in small letters, body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[[Request, socket.socket], None]
Route = bytes | Handler


def answer(body: bytes, status: int = 200, **headers: str) -> bytes:
    """Return a whole answer; underscores in the names of headers stand for hyphens."""
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def redirect(location: str, status: int = 302) -> bytes:
    """Return an answer that sends the client elsewhere."""
    return answer(b"", status, Location=location)


def digest_of(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def skill_text(name: str = "deploy", body: str = "# Deploy\n") -> bytes:
    return f"---\nname: {name}\ndescription: Deploys the shop. Use when a release is due.\n---\n{body}".encode()


def index(*entries: Mapping[str, Any], schema: Any = INDEX_SCHEMA, **more: Any) -> bytes:
    """Return the answer with an index of version 0.2."""
    return answer(json.dumps({"$schema": schema, "skills": list(entries), **more}).encode())


class Site:
    """A server on a free port of 127.0.0.1; a path without a route is not found.

    A route is the bytes of an answer, or a function that writes to the connection itself. `requests` are those it got.
    """

    def __init__(self, routes: Mapping[str, Route] | None = None, certificates: Certificates | None = None) -> None:
        self.routes: dict[str, Route] = dict(routes or {})
        self.requests: list[Request] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._context = certificates.context() if certificates else None
        self.url = f"{'https' if certificates else 'http'}://127.0.0.1:{self.port}"
        self.base = "/.well-known/agent-skills/"

    def __enter__(self) -> Site:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._listener.close()

    def offer(self, data: bytes, name: str = "deploy", kind: str = "skill-md", **changes: Any) -> None:
        """List one skill in the index, with changes to its entry."""
        self.routes[f"{self.base}{name}/artifact"] = answer(data)
        entry = {"name": name, "type": kind, "description": "Deploys.", "url": f"{name}/artifact"}
        entry = {**entry, "digest": digest_of(data), **changes}
        self.routes[INDEX_PATH] = index({key: value for key, value in entry.items() if value is not None})

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        with suppress(OSError, ValueError), connection:
            if self._context is None:
                self._answer(connection)
                return
            with self._context.wrap_socket(connection, server_side=True) as secured:
                self._answer(secured)
                # A goodbye, so that an answer without a length is known to be whole.
                with suppress(OSError):
                    secured.unwrap()

    def _answer(self, connection: socket.socket) -> None:
        request = read_request(connection)
        if request is None:
            return
        self.requests.append(request)
        route = self.routes.get(request.path, self.routes.get(request.path.partition("?")[0]))
        route = self.routes.get("*", answer(b"nothing here", 404)) if route is None else route
        if isinstance(route, bytes):
            connection.sendall(route)
        else:
            route(request, connection)


def read_request(connection: socket.socket) -> Request | None:
    """Return the request on a connection; None if it breaks off."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, path, _ = first.split(" ")
    return Request(method, path, headers, body)


def drip(data: bytes, seconds: float) -> Handler:
    """Return a route that sends one byte after the other, each after a pause."""

    def send(_: Request, connection: socket.socket) -> None:
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(seconds)

    return send


def endless(head: bytes, piece: bytes) -> Handler:
    """Return a route that sends without an end."""

    def send(_: Request, connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return send


# TLS ----------------------------------------------------------------------------------------------


class Certificates(NamedTuple):
    """An authority of our own, and a certificate that it gave to 127.0.0.1, localhost and site.test."""

    authority: Path
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_certificates(folder: Path) -> Certificates:
    """Make both with the program `openssl`."""
    folder.mkdir(parents=True, exist_ok=True)

    def run(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=60)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "3650", "-subj", "/CN=Tests")
    run("req", *new, "-keyout", "site.key", "-out", "site.csr", "-subj", "/CN=site.test")
    (folder / "names").write_text("subjectAltName=DNS:site.test,DNS:other.test,DNS:localhost,IP:127.0.0.1\n")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650", "-extfile", "names")
    run("x509", "-req", "-in", "site.csr", "-out", "site.pem", *signed)
    return Certificates(folder / "ca.pem", folder / "site.pem", folder / "site.key")


# Proxies ------------------------------------------------------------------------------------------


@contextmanager
def connect_proxy(port: int, status: int = 200) -> Iterator[tuple[str, list[Request]]]:
    """Run a proxy that leads every tunnel to one port of this machine; give its address and what it was asked."""
    asked: list[Request] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def tunnel(client: socket.socket) -> None:
        with suppress(OSError), client:
            request = read_request(client)
            if request is None:
                return
            asked.append(request)
            client.sendall(f"HTTP/1.1 {status} Status\r\n\r\n".encode())
            if status != 200:
                return
            with socket.create_connection(("127.0.0.1", port)) as server:
                there = threading.Thread(target=_pump, args=(client, server), daemon=True)
                there.start()
                _pump(server, client)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=tunnel, args=(client,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
