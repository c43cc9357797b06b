"""Run Caddy and nginx with the files of `deploy` in front of two team servers, and check what clients get through TLS.

PYTHONPATH=src:tests:bench python tests/long/proxies.py [--caddy PROGRAM] [--nginx PROGRAM] [--times 100]

Everything is on the loopback device: two `skillshelf serve` with one SQLite database, a certificate of the proxy's own
(Caddy's internal authority, or one of `openssl`), and clients that speak HTTP/1.1 over TLS. A program that is missing
is skipped by name. Checked are pages and a login by cookie, names of other sites, `/metrics` with forged headers,
bodies below and above the limit, both eras of the Model Context Protocol with events that come while their stream is
open, and requests that go on while one server is killed and comes back.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.parse import urlencode

from serve_fixtures import Reply, TeamProcess, packed, token_of

from skillshelf.core.limits import UPLOAD_BYTES

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "skills.localhost"
MIB = 1024 * 1024
LIMIT = 32 * MIB
NEW_ERA = "2026-07-28"
_JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_FORGED = {"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", "forwarded": "for=127.0.0.1"}


Proxy = Callable[[str, Path, list[int]], AbstractContextManager[tuple[int, Path]]]
"""Run a program in front of the servers at these ports; give its port and the authority of its certificate."""


class Client:
    """Requests through a proxy, and what was wrong."""

    def __init__(self, port: int, authority: Path, token: str) -> None:
        self.port, self.token, self.wrong = port, token, list[str]()
        self._trust = ssl.create_default_context(cafile=str(authority))

    def open(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> HTTPResponse:
        """Send a request on a connection of its own; return the answer before its body is read."""
        connection = HTTPSConnection(NAME, self.port, timeout=60)
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sock = self._trust.wrap_socket(plain, server_hostname=NAME)
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def ask(self, method: str, path: str, body: bytes | None = None, /, **more: str) -> Reply:
        """Return the whole answer; status 0 if there is none. An empty `token` is none, other names are headers."""
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if token := headers.pop("token", self.token):
            headers["authorization"] = f"Bearer {token}"
        began = time.perf_counter()
        try:
            found = self.open(method, path, body, headers)
            fields = {key.lower(): value for key, value in found.getheaders()}
            return Reply(found.status, fields, found.read(), time.perf_counter() - began)
        except (OSError, HTTPException) as error:
            return Reply(0, {}, repr(error).encode(), time.perf_counter() - began)

    def expect(self, what: str, found: Reply, *, holds: bool) -> None:
        """Note what does not hold."""
        if not holds:
            self.wrong.append(f"{what}: status {found.status} {dict(found.headers)} {found.body[:200]!r}")

    # Pages, names and limits -----------------------------------------------------------------------

    def check_pages(self) -> None:
        """Log in by a form, and read a page with the cookie."""
        form = urlencode({"token": self.token}).encode()
        type_ = "application/x-www-form-urlencoded"
        found = self.ask("POST", "/login", form, token="", content_type=type_, origin=f"https://{NAME}:{self.port}")
        cookie = found.headers.get("set-cookie", "")
        holds = found.status == 303 and all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=Strict"))
        self.expect("a login gives a cookie for TLS only", found, holds=holds)
        found = self.ask("GET", "/", token="", cookie=cookie.partition(";")[0])
        self.expect("a page with the cookie", found, holds=found.status == 200 and b"<html" in found.body)

    def check_names(self) -> None:
        """Ask by the name of another site, and for the metrics as if from the machine of the server."""
        found = self.ask("GET", "/api/v1/skills", host="other.example.com")
        self.expect("another name gets nothing", found, holds=found.status == 421 or not found.body)
        for headers in ({}, _FORGED):
            found = self.ask("GET", "/metrics", token="", **headers)
            self.expect("metrics need a token", found, holds=found.status == 401)
        found = self.ask("GET", "/metrics")
        self.expect("an administrator reads the metrics", found, holds=found.status == 200)

    def check_bodies(self) -> None:
        """Send a body below the limit, which is no release, and one above it."""
        for size, wanted in ((UPLOAD_BYTES - MIB, {422}), (LIMIT + MIB, {413, 0})):
            found = self.ask("POST", "/api/v1/releases", b"x" * size, content_type="application/zip")
            self.expect(f"a body of {size} bytes", found, holds=found.status in wanted)

    def publish(self, name: str) -> Reply:
        """Publish a skill."""
        data = packed(name, f"# {name}\n\nWhat {name} does.", f"Use it for {name}.")
        return self.ask("POST", "/api/v1/releases", data, content_type="application/zip")

    # Conversations ---------------------------------------------------------------------------------

    def initialize(self) -> tuple[Reply, str]:
        """Open a conversation of the older protocol; return the answer and its id."""
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "trial", "version": "1"}}
        found = self.call("initialize", client)
        return found, found.headers.get("mcp-session-id", "")

    def call(self, method: str, params: Mapping[str, object], /, **headers: str) -> Reply:
        """Return the answer to one message."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        return self.ask("POST", "/mcp", body, **{**_JSON, **headers})

    def check_older(self, times: int) -> None:
        """Open many conversations of the older protocol; then get an event on an open stream."""
        answers = [self.initialize() for _ in range(times)]
        lost = [found for found, _ in answers if found.status != 200 or b"serverInfo" not in found.body]
        self.expect(f"{len(lost)} of {times} conversations did not open", (lost or [answers[0][0]])[0], holds=not lost)
        key = {"mcp-session-id": answers[-1][1], "mcp-protocol-version": "2025-06-18"}
        self.ask("POST", "/mcp", b'{"jsonrpc":"2.0","method":"notifications/initialized"}', **_JSON, **key)
        found = self.call("tools/list", {}, **key)
        self.expect("tools of a conversation", found, holds=b"skill_search" in found.body)
        login = {"authorization": f"Bearer {self.token}", "accept": "text/event-stream", **key}
        self.check_event(self.open("GET", "/mcp", None, login), "proxied-older")

    def check_newer(self) -> None:
        """Get an event on a stream of the newer protocol."""
        about = "io.modelcontextprotocol/"
        meta = {f"{about}protocolVersion": NEW_ERA, f"{about}clientCapabilities": {}}
        meta[f"{about}clientInfo"] = {"name": "trial", "version": "1"}
        params = {"notifications": {"resourcesListChanged": True}, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}).encode()
        headers = {"authorization": f"Bearer {self.token}", "mcp-protocol-version": NEW_ERA, **_JSON}
        headers["mcp-method"] = "subscriptions/listen"
        self.check_event(self.open("POST", "/mcp", body, headers), "proxied-newer")

    def check_event(self, stream: HTTPResponse, name: str) -> None:
        """Publish while a stream is open; its event must come although the stream does not end."""
        done = self.publish(name)
        self.expect("publish", done, holds=done.status == 201)
        end, line = time.monotonic() + 60, b" "
        while line and b"resources/list_changed" not in line and time.monotonic() < end:
            line = stream.readline()
        self.expect(f"an event of {name}", done, holds=b"resources/list_changed" in line)
        stream.close()

    # A server that goes away -----------------------------------------------------------------------

    def check_loss(self, servers: tuple[TeamProcess, TeamProcess]) -> None:
        """Kill each server in turn, and start it again: no request may fail for longer than a health check takes."""
        for number, server in enumerate(servers):
            server.kill()
            got = [self.ask("GET", "/api/v1/search?q=proxied") for _ in range(20)]
            got += [self.publish(f"while-away-{number}-{one}") for one in range(5)]
            failed = [one for one in got if one.status not in {200, 201}]
            holds = not failed
            self.expect(f"server {number} away: {len(failed)} of 25 failed", (failed or got)[0], holds=holds)
            server.start()
            server.wait_until_ready()


# Programs -----------------------------------------------------------------------------------------


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def running(words: list[str], log: Path, **env: str) -> Iterator[None]:
    """Run a program until the end of the block."""
    with log.open("wb") as out:
        started = subprocess.Popen(words, stdout=out, stderr=out, env={**os.environ, **env})
    try:
        yield
    finally:
        started.terminate()
        started.wait(30)


@contextmanager
def caddy(program: str, base: Path, ports: list[int]) -> Iterator[tuple[int, Path]]:
    """Run Caddy with the file of the folder `deploy`; give its port and its authority."""
    port, file = free_port(), base / "Caddyfile"
    options = f"admin off\nskip_install_trust\nhttps_port {port}\nauto_https disable_redirects\n"
    file.write_text(f"{{\n{options}}}\n{(REPOSITORY / 'deploy' / 'Caddyfile').read_text()}")
    upstreams = " ".join(f"127.0.0.1:{one}" for one in ports)
    env = {"SERVER_NAME": NAME, "UPSTREAMS": upstreams, "XDG_DATA_HOME": str(base), "HOME": str(base)}
    if (
        subprocess.run([program, "version"], capture_output=True, text=True, check=True)
        .stdout.lstrip("v")
        .startswith("2.6.")
    ):
        env["REQUEST_BUFFERS"] = "buffer_requests"
    words = [program, "run", "--config", str(file), "--adapter", "caddyfile"]
    with running(words, base / "caddy.log", **env):
        yield port, base / "caddy" / "pki" / "authorities" / "local" / "root.crt"


@contextmanager
def nginx(program: str, base: Path, ports: list[int]) -> Iterator[tuple[int, Path]]:
    """Run nginx with the file of the folder `deploy`; give its port and its certificate."""
    port, key, certificate = free_port(), base / "key.pem", base / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    made += ["-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run(made, check=True, capture_output=True)
    text = (REPOSITORY / "deploy" / "nginx.conf").read_text()
    changes = {"127.0.0.1:8000": f"127.0.0.1:{ports[0]}", "127.0.0.1:8001": f"127.0.0.1:{ports[1]}"}
    changes |= {"listen 443 ssl": f"listen 127.0.0.1:{port} ssl", "/etc/ssl/skills.example.com.pem": str(certificate)}
    changes |= {"/etc/ssl/skills.example.com.key": str(key), "skills.example.com": NAME}
    for old, new in changes.items():
        text = text.replace(old, new)
    places = "".join(f"{one}_temp_path {base}/{one};" for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    file = base / "nginx.conf"
    file.write_text(
        f"daemon off; pid {base}/pid; error_log stderr; events {{}}\nhttp {{ access_log off; {places}\n{text}}}\n"
    )
    with running([program, "-c", str(file), "-p", str(base)], base / "nginx.log"):
        yield port, certificate


class FixedPort(TeamProcess):
    """A server that listens at the same port after it started again."""

    def __init__(self, home: Path, database: str, blobs: Path) -> None:
        super().__init__(home, database, blobs, "--allow-host", NAME)
        self._words[self._words.index("127.0.0.1:0")] = f"127.0.0.1:{self.port}"


def until_it_answers(client_of: Callable[[], Client]) -> Client:
    """Return a client once the proxy answers."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            client = client_of()
            if client.ask("GET", "/ready", token="").status == 200:
                return client
        except FileNotFoundError:
            pass
        time.sleep(0.2)
    raise SystemExit("the proxy does not answer")


def trial(proxy: Proxy, program: str, times: int) -> list[str]:
    """Return what was wrong with a proxy."""
    with tempfile.TemporaryDirectory(prefix="proxy") as made, ExitStack() as stack:
        base = Path(made)
        # The worker of nginx is another user where root starts it.
        base.chmod(0o755)
        database = f"sqlite:///{base}/team.sqlite"
        token = token_of(database, "ada", "admin")
        one, other = (stack.enter_context(FixedPort(base / name, database, base / "blobs")) for name in ("one", "two"))
        for server in (one, other):
            server.wait_until_ready()
        port, authority = stack.enter_context(proxy(program, base, [one.port, other.port]))
        client = until_it_answers(lambda: Client(port, authority, token))
        client.check_pages()
        client.check_names()
        client.check_bodies()
        client.check_older(times)
        client.check_newer()
        client.check_loss((one, other))
        return client.wrong


def main() -> int:
    """Try each proxy that is there; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caddy", default="caddy", help="the program of Caddy")
    parser.add_argument("--nginx", default="nginx", help="the program of nginx")
    parser.add_argument("--times", type=int, default=100, help="how many conversations are opened")
    given, wrong = parser.parse_args(), 0
    for proxy, program in ((caddy, given.caddy), (nginx, given.nginx)):
        if shutil.which(program) is None:
            sys.stdout.write(f"{program}: skipped, the program is missing\n")
            continue
        found = trial(proxy, program, given.times)
        wrong += len(found)
        sys.stdout.write("".join(f"{program}: WRONG {one}\n" for one in found) or f"{program}: nothing was wrong\n")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
