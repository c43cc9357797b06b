"""Another process that keeps exchanging something for a link to the outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SWAP = """
import itertools, os, sys, time

place, inside, outside, kind = sys.argv[1:]
spare = os.path.join(os.path.dirname(inside), "spare")
parent = os.getppid()
print("ready", flush=True)
for turn in itertools.count():
    if os.getppid() != parent:
        break
    # Now and then each state lasts long enough to be read as a whole, so that both are met soon.
    rest = 0.001 if turn % 8 == 0 else 0
    if kind == "replace":
        # One step: a hard link to the file inside, then a link to the file outside.
        os.link(inside, spare)
        os.replace(spare, place)
        time.sleep(rest)
        os.symlink(outside, spare)
        os.replace(spare, place)
        time.sleep(rest)
    elif kind == "relink":
        for target in (inside, outside):
            os.symlink(target, spare)
            os.replace(spare, place)
            time.sleep(rest)
    else:
        # A folder cannot be replaced in one step.
        os.rename(place, spare)
        os.symlink(outside, place)
        time.sleep(rest)
        os.unlink(place)
        os.rename(spare, place)
        time.sleep(rest)
"""


@contextmanager
def swapping(place: Path, *, inside: Path, outside: Path, how: str) -> Iterator[None]:
    """Another process that keeps putting a link to the outside where something of ours was."""
    words = [sys.executable, "-c", SWAP, str(place), str(inside), str(outside), how]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield
            assert process.poll() is None, "the other process ended early: there was no race"
        finally:
            process.kill()
