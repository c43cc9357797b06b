"""Measure commands on 500 locked skills: CPU seconds of the best run, and bare starts of Python.

`python bench/install_frozen.py [COUNT]` prints one line for `add` of all, for `install --frozen` with a warm store
where the copies are gone (the goal is 1 s of CPU) and where they are there, for other commands, and for `add` of one
skill more. File systems differ in what a new folder costs: set TMPDIR to measure another one.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

SOURCE = str(Path(__file__).resolve().parent.parent / "src")
RUNS = 5


def cpu_of(words: list[str], cwd: Path, home: Path) -> float:
    """Return the CPU seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_skills(folder: Path, count: int, stem: str = "skill") -> None:
    """Write skills of three files each, about 3 KiB."""
    for number in range(count):
        skill = folder / f"{stem}-{number:03}"
        (skill / "references").mkdir(parents=True)
        (skill / "scripts").mkdir()
        description = f"Does thing {number}. Use when thing {number} is asked for."
        head = f"---\nname: {skill.name}\ndescription: {description}\n---\n"
        (skill / "SKILL.md").write_text(head + f"# {skill.name}\n\n" + "Do it with care.\n" * 60)
        (skill / "references/notes.md").write_text(f"Notes on {number}.\n" * 80)
        (skill / "scripts/run.py").write_text(f"print({number})\n")


def main(count: int) -> None:
    """Measure each command several times and print the best time."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        home, repo = base / "home", base / "repo"
        home.mkdir()
        (repo / ".git").mkdir(parents=True)
        write_skills(base / "up", count)
        write_skills(base / "more", 1, "more")
        cpu = partial(cpu_of, cwd=repo, home=home)
        first = cpu(["-m", "skillshelf", "add", "../up", "--skill", "*", "--yes"])
        bare = min(cpu(["-c", "pass"]) for _ in range(RUNS))
        frozen = ["install", "--frozen", "--offline", "--yes"]
        gone, one = [], []
        for _ in range(RUNS):
            shutil.rmtree(repo / ".agents")
            gone.append(cpu(["-m", "skillshelf", *frozen]))
        rows = {f"add, {count} skills": first, f"install --frozen, {count} copies gone": min(gone)}
        others = {f"install --frozen, {count} copies there": frozen, f"list, {count} skills": ["list"]}
        others |= {f"{word}, {count} skills": [word] for word in ("verify", "outdated")}
        others[f"update, {count} skills"] = ["update", "--yes"]
        for what, words in others.items():
            rows[what] = min(cpu(["-m", "skillshelf", *words]) for _ in range(RUNS))
        for _ in range(RUNS):
            one.append(cpu(["-m", "skillshelf", "add", "../more/more-000", "--yes"]))
            cpu(["-m", "skillshelf", "remove", "more-000", "--yes"])
        rows[f"add, 1 skill to {count}"] = min(one)
        for what, seconds in rows.items():
            print(f"{what:<36} {seconds:6.3f} s CPU  {seconds / bare:6.1f} bare starts")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
