"""Measure a team server: CPU of a search, the first one after a start, many clients, memory, events and pages.

    python bench/serve_load.py CORPUS [--skills 3000] [--database sqlite] [--seconds 20] [--memory-seconds 600]
        [--publish-seconds 5] [--keep FOLDER] [--queries FILE]

CORPUS is a folder of real skills; they are published into the default tenant. With more than it has, `--skills` makes
that many synthetic ones, recombined from real ones: a name, a description and eight lines each. The clients run in this
process, so the CPU of the server is its own; that of PostgreSQL is shown apart. `--queries` has a JSON object in each
line, with the member `query`; without it queries are made from the words of the skills. `--keep` keeps the published
catalog for the next run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from serve_fixtures import (
    Reply,
    TeamCluster,
    TeamProcess,
    build_snapshot,
    copy_catalog,
    memory_of,
    packed,
    publish_corpus,
    publish_synthetic,
    token_of,
)

from skillshelf.journal.format import NOTHING_BEFORE, digest_of, seal

CLIENTS = 8
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
}
BATCH = 500


# A client -----------------------------------------------------------------------------------------


class Line:
    """One connection that stays open, and requests on it one after the other."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._start = f"host: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, method: str, path: str, body: bytes = b"", more: str = "") -> Reply:
        """Return the answer to a request."""
        began = time.perf_counter()
        head = f"{method} {path} HTTP/1.1\r\n{self._start}{more}content-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        data = await self._body(headers)
        return Reply(int(first.split()[1]), headers, data, time.perf_counter() - began)

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        parts = []
        while size := int(await self._reader.readline(), 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readline()
        await self._reader.readline()
        return b"".join(parts)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class Searcher:
    """A client that searches over one of the ways: `api`, `mcp` of today, or `mcp-older` with a session."""

    def __init__(self, way: str, port: int, token: str) -> None:
        self._way = way
        self._line = Line(port, token)
        self._session = ""
        self._asked = 0

    async def open(self) -> None:
        """Connect, and open a session where the protocol has one."""
        await self._line.open()
        if self._way != "mcp-older":
            return
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        opened = await self._post("initialize", hello, "")
        self._session = f"mcp-session-id: {opened.headers['mcp-session-id']}\r\nmcp-protocol-version: 2025-11-25\r\n"
        await self._line.ask(
            "POST", "/mcp", b'{"jsonrpc":"2.0","method":"notifications/initialized"}', _ACCEPTS + self._session
        )

    async def _post(self, method: str, params: dict[str, object], more: str) -> Reply:
        self._asked += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}).encode()
        return await self._line.ask("POST", "/mcp", body, _ACCEPTS + more)

    async def search(self, query: str) -> Reply:
        """Search; an answer that is an error has another status than 200."""
        if self._way == "api":
            return await self._line.ask("GET", f"/api/v1/search?q={quote(query)}")
        params: dict[str, object] = {"name": "skill_search", "arguments": {"query": query}}
        if self._way == "mcp":
            params["_meta"] = META
            reply = await self._post("tools/call", params, _NEWER)
        else:
            reply = await self._post("tools/call", params, self._session)
        is_wrong = b'"error"' in reply.body[:200] or b'"isError":true' in reply.body
        return reply._replace(status=599) if reply.status == 200 and is_wrong else reply

    def close(self) -> None:
        """Close the connection."""
        self._line.close()


_ACCEPTS = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
_NEWER = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: skill_search\r\n"


# Measuring ----------------------------------------------------------------------------------------


class Bench:
    """A server, its database, and what was measured of them."""

    def __init__(self, server: TeamProcess, token: str, queries: list[str], cluster: TeamCluster | None) -> None:
        self.server = server
        self.token = token
        self.queries = queries
        self.cluster = cluster

    def searches(self, way: str, seconds: float, clients: int = CLIENTS) -> str:
        """Search with a few clients for some time; return a line of figures."""
        asyncio.run(self._load(way, 2.0, clients))
        before = self._clocks()
        times, statuses, wall = asyncio.run(self._load(way, seconds, clients))
        server, client, database = (now - then for now, then in zip(self._clocks(), before, strict=True))
        done = len(times)
        times.sort()
        return (
            f"{way:10} {done / wall * 60:7.0f} searches/min, {server / done * 1e3:6.2f} ms server CPU, "
            f"{client / done * 1e3:5.2f} ms client CPU, {database / done * 1e3:5.2f} ms database CPU, "
            f"p50 {times[done // 2] * 1e3:.0f} ms, p95 {times[done * 95 // 100] * 1e3:.0f} ms, "
            f"cores used {server / wall:.2f}, {dict(statuses)}"
        )

    def _clocks(self) -> tuple[float, float, float]:
        return self.server.cpu, time.process_time(), self.cluster.cpu if self.cluster else 0.0

    async def _load(self, way: str, seconds: float, clients: int) -> tuple[list[float], Counter[int], float]:
        times: list[float] = []
        statuses: Counter[int] = Counter()
        began = time.perf_counter()

        async def work(number: int) -> None:
            chance = random.Random(number)
            searcher = Searcher(way, self.server.port, self.token)
            await searcher.open()
            while time.perf_counter() - began < seconds:
                reply = await searcher.search(chance.choice(self.queries))
                times.append(reply.seconds)
                statuses[reply.status] += 1
            searcher.close()

        await asyncio.gather(*(work(number) for number in range(clients)))
        return times, statuses, time.perf_counter() - began

    def crowd(self, way: str, clients: int = 500, each: int = 4) -> str:
        """Let many clients connect and search at the same time; return a line of figures."""

        async def one(number: int) -> tuple[list[float], Counter[str]]:
            chance, found, times = random.Random(number), Counter[str](), []
            searcher = Searcher(way, self.server.port, self.token)
            try:
                await searcher.open()
                for _ in range(each):
                    reply = await searcher.search(chance.choice(self.queries))
                    found[str(reply.status)] += 1
                    times.append(reply.seconds)
                searcher.close()
            except (OSError, EOFError, KeyError, ValueError) as error:
                found[type(error).__name__] += 1
            return times, found

        async def all_of_them() -> list[tuple[list[float], Counter[str]]]:
            return await asyncio.gather(*(one(number) for number in range(clients)))

        began = time.perf_counter()
        done = asyncio.run(all_of_them())
        wall = time.perf_counter() - began
        times = sorted(second for each_times, _ in done for second in each_times)
        total = sum((found for _, found in done), Counter[str]())
        return (
            f"{way:10} {clients} clients at once, {each} searches each: {wall:.1f} s, {dict(total)}, "
            f"p50 {times[len(times) // 2] * 1e3:.0f} ms, the slowest {times[-1] * 1e3:.0f} ms"
        )

    def memory(self, way: str, seconds: float, publish_seconds: float, snapshots: Path) -> str:
        """Search for a long time, and publish every few seconds if asked to; return what the server uses over time."""

        async def publishing() -> int:
            line, number = Line(self.server.port, self.token), 0
            await line.open()
            while True:
                await asyncio.sleep(publish_seconds)
                number += 1
                body = packed(f"endure-{number}", f"What endure-{number} does. " * 40, f"Use it for endure-{number}.")
                reply = await line.ask("POST", f"/api/v1/releases?version={time.time_ns()}", body)
                assert reply.status == 201, reply.body

        async def watched() -> tuple[list[Used], Counter[int]]:
            load = asyncio.create_task(self._load(way, seconds, CLIENTS))
            other = asyncio.create_task(publishing()) if publish_seconds else None
            used = []
            while not load.done():
                used.append(used_by(self.server.process.pid, snapshots))
                await asyncio.wait([load], timeout=seconds / 200)
            if other is not None and not other.cancel():
                other.result()
            return used, load.result()[1]

        used, statuses = asyncio.run(watched())
        tenth = max(1, len(used) // 10)
        parts = [used[n : n + tenth] for n in range(0, len(used) - tenth + 1, tenth)]
        over = {name: [round(statistics.mean(getattr(one, name) for one in part)) for part in parts] for name in _USED}
        return f"over {seconds:.0f} s of {way}, a publish every {publish_seconds:g} s: {over}, {dict(statuses)}"

    def events(self, machines: int, each: int, tokens: list[str]) -> str:
        """Send journals of some machines at once; return a line of figures."""
        journals = [chained(f"m{number}", each) for number in range(machines)]

        async def one(number: int) -> Counter[int]:
            line, statuses, lines = Line(self.server.port, tokens[number]), Counter[int](), journals[number]
            await line.open()
            stream = digest_of(lines[0])[:32]
            for start in range(0, each, BATCH):
                body = b"".join(one_line + b"\n" for one_line in lines[start : start + BATCH])
                reply = await line.ask("POST", f"/api/v1/journal?stream={stream}&machine=m{number}", body)
                statuses[reply.status] += 1
            line.close()
            return statuses

        async def all_of_them() -> list[Counter[int]]:
            return await asyncio.gather(*(one(number) for number in range(machines)))

        before, began = self._clocks(), time.perf_counter()
        statuses = sum(asyncio.run(all_of_them()), Counter[int]())
        wall = time.perf_counter() - began
        server, client, database = (now - then for now, then in zip(self._clocks(), before, strict=True))
        done = machines * each
        size = sum(map(len, journals[0])) / each
        return (
            f"events     {done / wall:.0f} a second ({machines} machines x {each} of {size:.0f} bytes, batches of "
            f"{BATCH}), {server / done * 1e6:.0f} us server CPU, {client / done * 1e6:.0f} us client CPU, "
            f"{database / done * 1e6:.0f} us database CPU an event, {dict(statuses)}"
        )

    def pages(self, names: list[str]) -> Iterator[str]:
        """Yield the time of each page and of the routes that pages of other programs need."""
        paths = ["/", "/skills", f"/skills/{names[0]}", "/search?q=review+code", "/problems", "/usage", "/hosts"]
        paths += ["/journal", "/api/v1/skills", f"/api/v1/skills/{names[0]}", "/api/v1/usage", "/api/v1/releases"]
        for path in [*paths, "/.well-known/agent-skills/index.json", "/metrics"]:
            # The first one fills what is kept of a revision.
            first, before = self.server.ask("GET", path, self.token), self.server.cpu
            replies = [self.server.ask("GET", path, self.token) for _ in range(5)]
            cpu = (self.server.cpu - before) / 5
            best = min(reply.seconds for reply in replies)
            yield (
                f"page {path:40} status {first.status}, first {first.seconds * 1e3:.0f} ms, "
                f"again {best * 1e3:.0f} ms, {cpu * 1e3:.0f} ms CPU, {len(first.body) / 1024:.0f} KiB"
            )


def chained(session: str, number: int) -> list[bytes]:
    """Return the lines of a journal, about the size of real ones."""
    lines: list[bytes] = []
    prev, now = NOTHING_BEFORE, time.time_ns() // 1_000_000 - number
    kinds = ("skill_loaded", "skill_read", "permission_decided", "tool_started", "tool_ended")
    for place in range(number):
        about = {"name": f"skill-{place % 40}", "digest": f"sha256:{place:064x}"}
        kind = kinds[place % 5] if place else "session_started"
        more = {"tool": "skill_run", "verdict": "allow"} if kind == "permission_decided" else {}
        record = {"type": kind, "session": session, "ts_ms": now + place, **about, **more, "seq": place, "prev": prev}
        line, _ = seal(record)
        prev = digest_of(line)
        lines.append(line)
    return lines


class Used(NamedTuple):
    """What a server uses: memory and snapshots on the disk in MiB, open files, and mapped files of indexes."""

    memory: float
    disk: float
    files: int
    mapped: int


_USED = Used._fields


def used_by(pid: int, snapshots: Path) -> Used:
    """Return what a server uses now."""
    disk = 0
    for path in snapshots.rglob("*"):
        with suppress(FileNotFoundError):
            disk += path.stat().st_size
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    mapped = sum("/snapshots/" in line for line in maps)
    return Used(memory_of(pid), disk / 2**20, len(os.listdir(f"/proc/{pid}/fd")), mapped)


# A run --------------------------------------------------------------------------------------------


def catalog(base: Path, corpus: Path, skills: int) -> str:
    """Return the address of a SQLite database with so many releases; it is made unless it is there."""
    address, pages = f"sqlite:///{base}/team.sqlite", base / "pages"
    if not (base / "team.sqlite").exists():
        began = time.process_time()
        real = sum(1 for _ in corpus.rglob("SKILL.md"))
        if skills <= real:
            done = publish_corpus(address, base / "blobs", corpus, pages)
        else:
            done = publish_synthetic(address, corpus, pages, skills)
        say(f"published {done} skills, {time.process_time() - began:.1f} s CPU")
    if not (base / "home/team/snapshots").exists():
        seconds = build_snapshot(base / "home", address, base / "blobs", pages)
        say(f"built the snapshot of the index with {seconds:.1f} s CPU")
    return address


def queries_from(path: Path | None, corpus: Path) -> list[str]:
    """Return queries of a file, or made of the words of skills."""
    if path is not None:
        return [json.loads(line)["query"] for line in path.read_text().splitlines()]
    chance, texts = random.Random(7), [file.read_text("utf-8", "replace") for file in sorted(corpus.rglob("SKILL.md"))]
    return [" ".join(chance.sample(text[:2000].split(), 6)) for text in texts if len(text.split()) > 60]


@contextmanager
def database_for(engine: str, source: str, folder: Path) -> Iterator[tuple[str, TeamCluster | None]]:
    """Yield the address of a copy of a catalog in a database of a kind, and its server if it has one."""
    if engine == "sqlite":
        shutil.copyfile(source.removeprefix("sqlite:///"), folder / "team.sqlite")
        yield f"sqlite:///{folder}/team.sqlite", None
        return
    with TeamCluster(folder / "pg") as cluster:
        address = cluster.new_database()
        copy_catalog(source, address)
        yield address, cluster


def first_search(server: TeamProcess, token: str, query: str) -> str:
    """Return how long the first search takes, asked for as soon as the server listens."""
    listening = time.perf_counter() - server.began
    reply = server.ask("GET", f"/api/v1/search?q={quote(query)}", token)
    answered = time.perf_counter() - server.began
    again = server.ask("GET", f"/api/v1/search?q={quote(query)}", token)
    return (
        f"first search {reply.seconds:.2f} s after the server listened (status {reply.status}), the next "
        f"{again.seconds * 1e3:.0f} ms; listening {listening:.2f} s and answered {answered:.2f} s after the start, "
        f"{server.cpu:.2f} s CPU, {server.memory_mib:.0f} MiB"
    )


def say(text: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Measure one kind of database with one number of skills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--skills", type=int, default=3000)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--memory-seconds", type=float, default=600)
    parser.add_argument("--publish-seconds", type=float, default=0, help="publish so often while memory is watched")
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--only", default="first,search,crowd,pages,events,memory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="serve-load") as made:
        base = given.keep or Path(made) / "catalog"
        base.mkdir(parents=True, exist_ok=True)
        source = catalog(base, given.corpus, given.skills)
        with database_for(given.database, source, Path(made)) as (address, cluster):
            run(given, base, address, cluster)
    return 0


def run(given: argparse.Namespace, base: Path, address: str, cluster: TeamCluster | None) -> None:
    """Start a server on a database, and measure what was asked for."""
    parts = given.only.split(",")
    token = token_of(address, "bench", "admin")
    machines = [token_of(address, f"user{number}", "journal:write") for number in range(8)]
    queries = queries_from(given.queries, given.corpus)
    say(f"{given.database}, {given.skills} skills, {len(queries)} queries")
    with TeamProcess(base / "home", address, base / "blobs") as server:
        bench = Bench(server, token, queries, cluster)
        say(first_search(server, token, queries[0]))
        server.wait_until_ready()
        names = [skill["name"] for skill in server.ask("GET", "/api/v1/skills?limit=5", token).json["skills"]]
        ways = ("api", "mcp", "mcp-older")
        for way in ways if "search" in parts else ():
            say(bench.searches(way, given.seconds))
        for way in ways if "crowd" in parts else ():
            say(bench.crowd(way))
        for line in bench.pages(names) if "pages" in parts else ():
            say(line)
        if "events" in parts:
            say(bench.events(len(machines), given.events, machines))
        if "memory" in parts:
            say(bench.memory("mcp", given.memory_seconds, given.publish_seconds, base / "home/team/snapshots"))
        say(f"at the end {server.memory_mib:.0f} MiB")
    if problems := [line for line in server.log.splitlines() if not line.startswith(("serving", "ready"))]:
        say("the server said:\n" + "\n".join(problems[:10]))


if __name__ == "__main__":
    sys.exit(main())
