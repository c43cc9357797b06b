"""Measure the check at every load of an installed skill, and what locks cost a listing, in CPU time.

Run `python bench/load_check.py`. The check alone is measured in this process, a load with and without it too, and
`skillshelf list` as a whole process: with 500 skills that no lock names, and with the same skills locked.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from skillshelf import open_shelf
from skillshelf.catalog.locked_files import read_locked
from skillshelf.catalog.tree import skill_tree
from skillshelf.core.environment import make_environment

SKILLS = 500
ROUNDS = 15


def write_skill(root: Path, name: str, contents: dict[str, bytes]) -> Path:
    """Put a skill into a project and return its folder."""
    folder = root / ".agents/skills" / name
    text = f"---\nname: {name}\ndescription: Does {name} things. Use when {name} is asked for.\n---\n# {name}\n"
    for path, data in {"SKILL.md": text.encode(), **contents}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def write_lock(root: Path, folders: list[Path]) -> None:
    """Lock the skills of a project as they are."""
    skills = {}
    for folder in folders:
        tree = skill_tree(str(folder))
        facts = {"tree": tree.digest, "files": tree.files, "bytes": tree.size}
        others = {"source": "./x", "path": "", "ref": None, "commit": None, "artifact": None, "hosts": []}
        skills[folder.name] = {**others, **facts}
    (root / "skillshelf.lock").write_text(json.dumps({"lock": 1, "skills": skills}, indent=2, sort_keys=True))


def cpu(act: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of one act: the least of several rounds, since other work only adds."""
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(times):
            act()
        rounds.append((time.process_time() - start) / times)
    return min(rounds)


def listing(root: Path, home: Path) -> float:
    """Return the CPU seconds of one `skillshelf list` with a warm cache, the least of several."""
    command = [sys.executable, "-m", "skillshelf", "list", "--cwd", str(root), "--home", str(home)]
    found = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found[2:])


def measure(base: Path) -> None:
    """Print every number."""
    root, home = base / "one/repo", base / "home"
    (root / ".git").mkdir(parents=True)
    home.mkdir()
    small = write_skill(root, "small", {"references/a.md": b"a" * 2000, "scripts/run.py": b"b" * 1000})
    big = write_skill(root, "big", {f"assets/{n}.bin": os.urandom((1 << 20) - 40) for n in range(16)})
    shelf = open_shelf(root, home=home, env={})
    unlocked = cpu(lambda: shelf.load("small"), 500)
    write_lock(root, [small, big])
    environment = make_environment(str(root), str(home), {})
    print(f"check of a small skill (3 files)  {cpu(lambda: read_locked(str(small), environment), 1000) * 1e6:8.0f} us")
    print(f"check of 16 MiB in 17 files       {cpu(lambda: read_locked(str(big), environment), 5) * 1e3:8.1f} ms")
    print(f"load of it, no lock               {unlocked * 1e6:8.0f} us")
    print(f"load of it, locked                {cpu(lambda: shelf.load('small'), 500) * 1e6:8.0f} us")
    many = base / "many/repo"
    (many / ".git").mkdir(parents=True)
    contents = {"references/a.md": b"a" * 500, "scripts/run.py": b"b" * 500}
    folders = [write_skill(many, f"skill-{n}", contents) for n in range(SKILLS)]
    time.sleep(3)  # Until all stamps have settled, which a cache waits for.
    print(f"list of {SKILLS}, no lock              {listing(many, home) * 1e3:8.1f} ms")
    write_lock(many, folders)
    print(f"list of {SKILLS}, all locked           {listing(many, home) * 1e3:8.1f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder))
