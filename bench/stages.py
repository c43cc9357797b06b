"""Profile one listing and group its time by stage: `python bench/stages.py HOME [warm]`.

The profiler makes Python calls dearer than they are, so the shares are exact only to some per cent; the CPU time
beside them is taken without it.
"""

import cProfile
import json
import os
import pstats
import sys
import time
from typing import Any

import skillshelf

SOURCE = os.path.dirname(skillshelf.__file__)


def group_of(file: str, function: str) -> str:
    """The module of ours, the kernel, the YAML parser, or Python."""
    if file.startswith(SOURCE):
        return f"skillshelf.{os.path.relpath(file, SOURCE).removesuffix('.py')}"
    if "posix." in function or "DirEntry" in function:
        return "system calls (open, read, stat, close, list)"
    return "ryaml" if "ryaml" in function or "ryaml" in file else "other Python (builtins, standard library)"


def catalog(home: str, *, warm: bool) -> Any:
    """A fresh look at the shelf of this home."""
    return skillshelf.open_shelf(f"{home}/work", home=home, env={}, use_cache=warm).catalog


def profile(home: str, *, warm: bool) -> dict[str, Any]:
    """Skills, CPU milliseconds without the profiler, and per group its share and its calls."""
    plain = []
    for _ in range(4):
        start = time.process_time()
        skills = catalog(home, warm=warm).skills
        plain.append(time.process_time() - start)
    profiler = cProfile.Profile()
    profiler.runcall(catalog, home, warm=warm)
    groups: dict[str, list[float]] = {}
    functions = []
    for (file, _, function), (_, calls, own, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        group = groups.setdefault(group_of(file, function), [0, 0])
        group[0] += own
        group[1] += calls
        functions.append((own, calls, f"{group_of(file, function).rpartition('.')[2]}: {function}"))
    return {
        "skills": len(skills),
        "cpu_ms": min(plain) * 1e3,
        "groups": sorted(([name, *values] for name, values in groups.items()), key=lambda group: -group[1]),
        "functions": sorted(functions, reverse=True)[:15],
    }


if __name__ == "__main__":
    print(json.dumps(profile(sys.argv[1], warm=sys.argv[2:] == ["warm"])))
