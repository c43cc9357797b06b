"""Team servers for tests: their routes called in this process, with a caller of any tenant."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skillshelf import open_shelf
from skillshelf.install.pack import zip_of
from skillshelf.servers.team.database import Database, open_database
from support.waiting import wait_for

__all__ = [
    "ServerUnderTest",
    "fetched",
    "packed",
    "running_server",
    "served_process",
    "serving",
    "skill",
    "token_for",
]


def skill(name: str, text: str = "Do it.", description: str | None = None, **files: bytes) -> dict[str, bytes]:
    """Return the files of a skill."""
    about = description or f"Use it for {name}."
    page = f"---\nname: {name}\ndescription: {about}\n---\n\n{text}\n".encode()
    return {"SKILL.md": page, **{path.replace("__", "/"): data for path, data in files.items()}}


def packed(name: str, text: str = "Do it.", **options: Any) -> bytes:
    """Return the archive that `skillshelf pack` makes of a skill."""
    return zip_of(skill(name, text, **options), wrapper=name)


class ServerUnderTest:
    """A server whose routes are called directly, as its application calls them."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.published = server.services.published

    def call(
        self,
        caller: Any,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Any:
        """Return the answer of a route; 403 where the table refuses a scope."""
        from skillshelf.servers.team.app import _answered
        from skillshelf.servers.team.routes import TeamAnswer, TeamRequest

        route, parts, _ = self.server.table.find(method, path)
        if route is None:
            return TeamAnswer(b"", 404)
        if route.access != "public" and not any(caller.may(scope) for scope in route.scopes):
            return TeamAnswer(b"", 403)
        request = TeamRequest(
            self.server.services, method, path, parts, query, headers or {}, body, caller, "http://127.0.0.1"
        )
        return _answered(route.run, request)

    def json(self, caller: Any, method: str, path: str, body: Any = b"", status: int = 200, **options: Any) -> Any:
        """Return the value of an answer, which must have a status."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.call(caller, method, path, data, **options)
        assert answer.status == status, answer.body
        return json.loads(answer.body)


def _tenants(database: Database) -> None:
    for tenant in ("acme", "umbrella"):
        database.add_tenant(tenant)


@contextmanager
def running_server(
    folder: Path, database: str, *, home: Path | None = None, seconds: float = 5.0
) -> Iterator[ServerUnderTest]:
    """Open a server on a database, with blobs in the folder; its trees and snapshots lie in `home`."""
    from skillshelf.core.environment import make_environment
    from skillshelf.servers.team.blobs import open_blobs
    from skillshelf.servers.team.published_catalog import PublishedCatalogs
    from skillshelf.servers.team.server import TeamServer

    own = home or folder / "home"
    (own / "work").mkdir(parents=True, exist_ok=True)
    opened = open_database(database)
    _tenants(opened)
    shelf = open_shelf(own / "work", home=own, env={}, config={})
    blobs = open_blobs(str(folder / "blobs"), make_environment(str(own), str(own), {}))
    published = PublishedCatalogs(shelf, opened, blobs, str(own / "team"), seconds=seconds)
    server = TeamServer(shelf, opened, published=published)
    try:
        yield ServerUnderTest(server)
    finally:
        server.close()


@contextmanager
def serving(home: Path, database: str, blobs: Path, *more: str) -> Iterator[str]:
    """Run `skillshelf serve` as a process of its own until the end of the block; give its address."""
    with served_process(home, database, blobs, *more) as (_, address):
        yield address


@contextmanager
def served_process(home: Path, database: str, blobs: Path, *more: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run `skillshelf serve` as a process of its own until the end of the block; give the process and its address."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    log = home / "log"
    env = {**os.environ, "HOME": str(home)}
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        env.pop(name, None)
    listen = () if "--listen" in more else ("--listen", "127.0.0.1:0")
    options = [*listen, "--database", database, "--blobs", str(blobs), "--access-log", "none", *more]
    with log.open("wb") as output:
        # Whoever runs these tests may ignore the signal, as `nohup` does, and the server would then ignore it too.
        process = subprocess.Popen(
            ["env", "--default-signal=HUP", sys.executable, "-m", "skillshelf", "serve", *options],
            cwd=home / "work",
            env=env,
            stderr=output,
            stdout=output,
        )
    try:
        yield process, wait_for(lambda: _address_in(log, process))
    finally:
        process.terminate()
        process.wait(timeout=20)


def _address_in(log: Path, process: subprocess.Popen[bytes]) -> str | None:
    assert process.poll() is None, log.read_text()
    found = re.search(r"serving at (http://[^\s/]+)", log.read_text())
    return found[1] if found and "ready:" in log.read_text() else None


def token_for(database: str, subject: str, *scopes: str, tenant: str = "default") -> str:
    """Return a new token."""
    from skillshelf.servers.team.tokens import create_token

    opened = open_database(database)
    try:
        opened.add_tenant(tenant)
        return create_token(opened, tenant, subject, scopes).token
    finally:
        opened.close()


def fetched(
    url: str, token: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any, Mapping[str, str]]:
    """Send a request; return the status, the value and the headers of the answer."""
    request = urllib.request.Request(url, data=body, headers={"Authorization": f"Bearer {token}", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read()), {k.lower(): v for k, v in answer.headers.items()}
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null"), {k.lower(): v for k, v in error.headers.items()}
