"""Serve an archive of real skills; measure the cold start, all pages and reads, and check every digest.

python bench/mcp/corpus.py skills.tar.xz [--sample 200]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import anyio
from clients import ask, digest_of_resource, entries
from conformance import inspector, verified
from fixtures import command, corpus
from mcp import Client, StdioServerParameters

FIRST_PAGE_SECONDS, READ_MS = 3.0, 5.0


async def measured(base: Path, mode: str, sample: int) -> bool:
    """Return True if one era meets the goals and every digest is correct."""
    program, *words = command(base, "--no-cache")
    began = time.perf_counter()
    async with Client(StdioServerParameters(command=program, args=words), mode=mode) as client:
        first = await ask(client, "skills/list")
        first_page = time.perf_counter() - began
        began = time.perf_counter()
        skills = [skill async for skill in entries(client)]
        listing = time.perf_counter() - began
        files = [(file["uri"], file["digest"]) for skill in skills for file in skill["resources"]]
        times, wrong = [], 0
        for uri, digest in random.Random(1).sample(files, min(sample, len(files))):
            began = time.perf_counter()
            wrong += await digest_of_resource(client, uri) != digest
            times.append((time.perf_counter() - began) * 1000)
    unique = len({skill["uri"] for skill in skills})
    p50 = statistics.median(times)
    print(f"{mode}: first page ({len(first['skills'])} skills) {first_page:.2f} s from a cold start")
    print(f"  all {len(skills)} entries ({unique} addresses) in {listing:.2f} s")
    print(f"  a read {p50:.2f} ms (median of {len(times)}), {wrong} with a wrong digest")
    return first_page < FIRST_PAGE_SECONDS and p50 < READ_MS and not wrong and unique == len(skills)


def main() -> int:
    """Measure both eras."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--modules", type=Path)
    parser.add_argument("--node", default="node")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = corpus(given.archive, Path(folder))
        good = [anyio.run(measured, base, mode, given.sample) for mode in ("legacy", "2026-07-28")]
    if given.modules:
        with tempfile.TemporaryDirectory() as folder:
            base = corpus(given.archive, Path(folder), most=given.sample)
            line = inspector(given.modules, given.node)
            good += [verified(line, era, "stdio", command(base), base) for era in ("modern", "legacy")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
