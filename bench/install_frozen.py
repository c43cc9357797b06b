"""Measure `install --frozen` of 500 locked skills with a warm store: CPU seconds, and bare starts of Python.

`python bench/install_frozen.py [COUNT]` prints one line for a project whose copies are gone, one for a project that is
complete, and one for `verify`. The goal for the first is 1 s of CPU.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
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


def write_skills(folder: Path, count: int) -> None:
    """Write skills of three files each, about 3 KiB."""
    for number in range(count):
        skill = folder / f"skill-{number:03}"
        (skill / "references").mkdir(parents=True)
        (skill / "scripts").mkdir()
        head = f"---\nname: {skill.name}\ndescription: Does thing {number}. Use when thing {number} is asked for.\n---\n"
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
        cpu_of(["-m", "skillshelf", "add", "../up", "--skill", "*", "--yes"], repo, home)
        bare = min(cpu_of(["-c", "pass"], repo, home) for _ in range(RUNS))
        frozen = ["-m", "skillshelf", "install", "--frozen", "--offline", "--yes"]
        gone = []
        for _ in range(RUNS):
            shutil.rmtree(repo / ".agents")
            gone.append(cpu_of(frozen, repo, home))
        rows = {
            f"install --frozen, {count} copies gone": min(gone),
            f"install --frozen, {count} copies there": min(cpu_of(frozen, repo, home) for _ in range(RUNS)),
            f"verify, {count} skills": min(cpu_of(["-m", "skillshelf", "verify"], repo, home) for _ in range(RUNS)),
        }
        for what, seconds in rows.items():
            print(f"{what:<36} {seconds:6.3f} s CPU  {seconds / bare:6.1f} bare starts")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
