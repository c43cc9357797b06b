"""Run the conformance suite of the protocol on a team server, in both eras, as a caller with a token.

    npm install @modelcontextprotocol/conformance@0.2.0-alpha.12
    PYTHONPATH=bench python bench/mcp/serve_conformance.py NODE_MODULES [--node NODE]

Node 22 or later is needed. The suite has no option for a token, so a relay on the loopback device adds it to each
request and changes nothing else. Without the token every request must get 401.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from conformance import CHECKS, ERAS, OTHERS, other_scenario, scenario
from fixtures import fixture
from serve_fixtures import TeamProcess, token_of

from skillshelf.servers.team.database import open_database

_HEAD_BYTES = 64 * 1024


class Relay:
    """Passes requests on to a port with a token, one on each connection."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._added = f"\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n".encode()

    async def serve(self, started: threading.Event, stop: threading.Event) -> None:
        """Serve until told to stop."""
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, limit=_HEAD_BYTES)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        started.set()
        while not stop.is_set():
            await asyncio.sleep(0.05)
        server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError):
            head = (await reader.readuntil(b"\r\n\r\n")).removesuffix(b"\r\n\r\n")
            lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self._port)
            upstream.write(b"\r\n".join(lines) + self._added)
            sending = asyncio.create_task(_copy(reader, upstream))
            await _copy(upstream_reader, writer)
            sending.cancel()
            upstream.close()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_HEAD_BYTES):
            writer.write(data)
            await writer.drain()


@contextmanager
def relayed(port: int, token: str) -> Iterator[str]:
    """Run a relay in a thread; yield its address."""
    relay, started, stop = Relay(port, token), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(relay.serve(started, stop)))
    thread.start()
    try:
        started.wait()
        yield relay.url
    finally:
        stop.set()
        thread.join()


def main() -> int:
    """Run everything; return 1 if any check fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", type=Path, help="the folder node_modules")
    parser.add_argument("--node", default="node")
    given = parser.parse_args()
    program = given.modules.resolve() / "@modelcontextprotocol/conformance/dist/index.js"
    with tempfile.TemporaryDirectory() as folder:
        base = fixture(Path(folder))
        address = f"sqlite:///{base}/team.sqlite"
        with closing(open_database(address)):
            token = token_of(address, "suite", "skills:read")
        with TeamProcess(base / "home", address, base / "blobs") as server, relayed(server.port, token) as url:
            server.wait_until_ready()
            good = [server.ask("POST", "/mcp", body=b"{}").status == 401]
            suite = [given.node, str(program), "server", "--url", url]
            good += [scenario(suite, name, era, base) for era in ERAS for name in CHECKS]
            good += [other_scenario(suite, name, base) for name in OTHERS]
    print(f"{sum(good)} of {len(good)} passed")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
