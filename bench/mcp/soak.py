"""Let eight clients read and search on one server over HTTP while files change.

    python bench/mcp/soak.py [--seconds 60]

The script knows the digest of every version of a file, so it detects bytes that were never on disk. An entry that does
not match a read is requested again, as the extension says; it must match soon.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from hashlib import sha256
from pathlib import Path

import anyio
from clients import MCPError, ask, digest_of_resource, entries
from fixtures import http_server
from mcp import Client

CLIENTS, SKILLS, TRIES = 8, 40, 20


class Tree:
    """Skills that change, and the digests of all their versions."""

    def __init__(self, base: Path) -> None:
        self.root = base / "home" / ".agents" / "skills"
        self.known: set[str] = set()
        self.random = random.Random(1)
        for number in range(SKILLS):
            self.write(number)

    def write(self, number: int) -> None:
        """Write a new version of one skill, each file atomically."""
        name, word = f"skill-{number}", self.random.randbytes(4).hex()
        text = f"---\nname: {name}\ndescription: Does {word}.\n---\n# {name} {word}\n"
        for path, data in (
            ("SKILL.md", text.encode()),
            ("references/page.md", f"# {word}\n".encode() * self.random.randrange(1, 2000)),
            ("assets/noise.bin", self.random.randbytes(self.random.randrange(1, 20_000))),
        ):
            file = self.root / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            self.known.add("sha256:" + sha256(data).hexdigest())
            temporary = file.with_name(file.name + ".new")
            temporary.write_bytes(data)
            temporary.replace(file)


async def read_and_check(client: Client, tree: Tree, counts: Counter[str], chance: random.Random) -> None:
    """Read one file of one skill until its bytes match the digest in the entry."""
    name = f"skill-{chance.randrange(SKILLS)}"
    for _ in range(TRIES):
        entry = (await ask(client, "skills/get", uri=f"skill://{name}/SKILL.md"))["skill"]
        # Temporary files of atomic writes are skipped.
        file = chance.choice([file for file in entry["resources"] if not file["uri"].endswith(".new")])
        found = await digest_of_resource(client, file["uri"])
        if found not in tree.known:
            counts["wrong bytes"] += 1
        if found == file["digest"]:
            counts["reads"] += 1
            return
        counts["changed in between"] += 1
    counts["never fitted"] += 1


async def work(url: str, mode: str, tree: Tree, counts: Counter[str], seed: int) -> None:
    """Run one client until it is cancelled."""
    chance = random.Random(seed)
    async with Client(url, mode=mode) as client:
        while True:
            try:
                await read_and_check(client, tree, counts, chance)
                result = await client.call_tool("skill_search", {"query": f"skill-{chance.randrange(SKILLS)}"})
                counts["searches" if not result.is_error else "failed searches"] += 1
                result = await client.call_tool("skill_load", {"name": f"skill-{chance.randrange(SKILLS)}"})
                counts["loads" if not result.is_error else "failed loads"] += 1
                if chance.random() < 0.05:
                    counts["listed"] += len([entry async for entry in entries(client)]) >= SKILLS
            except MCPError as error:
                counts[f"error: {error.message[:100]}"] += 1


def memory_kib(pid: int) -> int:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def soak(url: str, pid: int, tree: Tree, seconds: float) -> tuple[Counter[str], list[int]]:
    """Run all clients while files change; return the counts and the memory over time."""
    counts: Counter[str] = Counter()
    sizes: list[int] = []
    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:
            for number in range(CLIENTS):
                mode = "legacy" if number % 2 else "2026-07-28"
                group.start_soon(work, url, mode, tree, counts, number)
            while True:
                await anyio.sleep(0.05)
                tree.write(tree.random.randrange(SKILLS))
                counts["written"] += 1
                if counts["written"] % 20 == 0:
                    sizes.append(memory_kib(pid))
    return counts, sizes


def main() -> int:
    """Run the soak test and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        tree = Tree(base)
        with http_server(base) as (url, process):
            counts, sizes = anyio.run(soak, url, process.pid, tree, given.seconds)
    for what, number in sorted(counts.items()):
        print(f"{number:8} {what}")
    tenth = max(1, len(sizes) // 10)
    over_time = [sum(part) // len(part) for n in range(0, len(sizes), tenth) if (part := sizes[n : n + tenth])]
    print(f"memory in KiB over time: {over_time}")
    before, after = over_time[len(over_time) // 2], over_time[-1]
    bad = [what for what in counts if what.startswith(("error", "failed", "wrong", "never"))]
    return 1 if bad or after > before * 1.15 or not counts["reads"] else 0


if __name__ == "__main__":
    sys.exit(main())
