"""Times one listing in a fresh process; every driver in Python ends in `report`.

A driver is called with two folders of skills. The first holds one skill and is listed without a clock, so that
imports and what a library sets up once are not in the figure; the second is the one that is measured.
"""

import json
import sys
import time
from collections.abc import Callable, Sized

__all__ = ["report"]


def report(listing: Callable[[str], Sized]) -> None:
    """Print how many skills the second folder gave, and the wall and CPU time that took."""
    small, measured = sys.argv[1:3]
    listing(small)
    wall, cpu = time.perf_counter(), time.process_time()
    skills = listing(measured)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"listed": len(skills), "wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3}))
