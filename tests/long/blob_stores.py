"""Publish through a team server whose blobs are in another implementation of S3 than that of the tests, or a registry.

PYTHONPATH=src:tests:bench python tests/long/blob_stores.py [--rclone PROGRAM]

`rclone serve s3` stands for a provider, `docker-registry` for a registry; a program that is missing is skipped by
name. A skill is published, found and fetched; a second server with an empty disk reads the same blobs; the same bytes
are put twice; wrong credentials and a store that dies are refused with one line, and work goes on when it is back.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from serve_fixtures import Reply, TeamProcess, packed, token_of
from support.docker_registry import docker_registry

from skillshelf.core.environment import make_environment
from skillshelf.servers.team.blobs import open_blobs
from skillshelf.servers.team.values import BlobsAway

KEYS = ("trial-key", "trial-secret")
WRONG: list[str] = []


def expect(what: str, found: object, *, holds: bool) -> None:
    """Print what does not hold."""
    if not holds:
        WRONG.append(what)
        text = f"{found.status} {found.body[:200]!r}" if isinstance(found, Reply) else repr(found)
        sys.stdout.write(f"WRONG {what}: {text}\n")


class RcloneS3:
    """A server of S3 on the loopback device that can be killed and started again."""

    def __init__(self, program: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (folder / "team").mkdir(parents=True)
        place = ["--addr", f"127.0.0.1:{self.port}", "--auth-key", ",".join(KEYS)]
        self._words = [program, "serve", "s3", *place, str(folder)]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process = subprocess.Popen(self._words, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise SystemExit("rclone does not start")

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()


def publish(server: TeamProcess, token: str, name: str) -> Reply:
    """Publish a skill."""
    data = packed(name, f"# {name}\n\nWhat {name} does.", f"Use it for {name}.")
    return server.ask("POST", "/api/v1/releases", token, data, **{"content-type": "application/zip"})


def served(base: Path, url: str, store: RcloneS3 | None) -> None:
    """Publish, search and fetch by two servers; then without the store, and again with it."""
    database = f"sqlite:///{base}/team.sqlite"
    token = token_of(database, "ada", "admin")
    # The helper makes a path of what it gets, which would fold the slashes of an address: the last option counts.
    with TeamProcess(base / "one", database, base / "unused", "--blobs", url) as one:
        one.wait_until_ready()
        done = publish(one, token, "kept-elsewhere")
        expect("publish", done, holds=done.status == 201)
        found = one.ask("GET", "/api/v1/search?q=kept+elsewhere", token)
        expect("search", found, holds=b"kept-elsewhere" in found.body)
        with TeamProcess(base / "other", database, base / "unused", "--blobs", url) as other:
            other.wait_until_ready()
            path = "/api/v1/skills/kept-elsewhere"
            found = other.ask("GET", path, token)
            expect("a server with an empty disk reads it", found, holds=found.status == 200)
            if store is not None:
                away(one, token, store)


def away(server: TeamProcess, token: str, store: RcloneS3) -> None:
    """Take the store away, and give it back."""
    store.kill()
    found = publish(server, token, "never-kept")
    expect("a publish without the store", found, holds=found.status == 503 and found.body.count(b"\n") == 1)
    found = server.ask("GET", "/api/v1/search?q=kept", token)
    expect("a search without the store", found, holds=found.status == 200)
    store.start()
    found = publish(server, token, "kept-again")
    expect("a publish when it is back", found, holds=found.status == 201)


def check_s3(program: str, base: Path) -> None:
    """Try S3."""
    store = RcloneS3(program, base / "s3")
    variables = {"AWS_ACCESS_KEY_ID": KEYS[0], "AWS_SECRET_ACCESS_KEY": KEYS[1], "AWS_REGION": "us-east-1"}
    os.environ.update(variables, AWS_ENDPOINT_URL=f"http://127.0.0.1:{store.port}")
    blobs = open_blobs("s3://team/some/prefix", make_environment(str(base), str(base), dict(os.environ)))
    data = b"bytes" * 100_000
    digest = f"sha256:{sha256(data).hexdigest()}"
    for _ in range(2):
        blobs.put_new(digest, data)
    expect("the same bytes twice", None, holds=blobs.get(digest) == data and blobs.has(digest))
    os.environ["AWS_SECRET_ACCESS_KEY"] = "another"
    other = open_blobs("s3://team/some/prefix", make_environment(str(base), str(base), dict(os.environ)))
    try:
        expect("wrong credentials", other.get(digest), holds=False)
    except BlobsAway as error:
        expect("one line for wrong credentials", str(error), holds="\n" not in str(error))
    os.environ["AWS_SECRET_ACCESS_KEY"] = KEYS[1]
    try:
        served(base, "s3://team/some/prefix", store)
    finally:
        store.kill()


def main() -> int:
    """Try each store whose program is there; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rclone", default="rclone", help="the program of rclone, 1.65 or later")
    given = parser.parse_args()
    for program in (given.rclone, "docker-registry"):
        if shutil.which(program) is None:
            sys.stdout.write(f"{program}: skipped, the program is missing\n")
            continue
        with tempfile.TemporaryDirectory(prefix="blobs") as made:
            if program == given.rclone:
                check_s3(program, Path(made))
            else:
                with docker_registry(Path(made) / "registry") as host:
                    served(Path(made), f"oci://{host}/team/blobs", None)
        sys.stdout.write(f"{program}: tried\n")
    sys.stdout.write("something was wrong\n" if WRONG else "nothing was wrong\n")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
