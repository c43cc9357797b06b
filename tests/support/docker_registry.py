"""A real registry on this machine: the program `docker-registry` with its files in a folder of the test."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.needs import needs_program

__all__ = ["docker_registry", "needs_docker_registry"]

needs_docker_registry = needs_program("docker-registry")

_CONFIG = """
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"{tls}}}
{auth}
"""


@contextmanager
def docker_registry(folder: Path, auth: str = "", tls: str = "") -> Iterator[str]:
    """Run a registry until the end of the block; give its host and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yml"
    config.write_text(_CONFIG.format(folder=folder / "data", port=port, auth=auth, tls=tls))
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
    try:
        _wait(port, started)
        yield f"127.0.0.1:{port}"
    finally:
        started.kill()
        started.wait()


def _wait(port: int, started: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end and started.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("docker-registry does not start")
