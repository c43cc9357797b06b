"""How long `hosts` takes: 2,000 skills over ten roots, in a process of its own, beside one bare start of Python.

python bench/hosts.py [SKILLS]
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOTS = (
    *("repo/.agents/skills", "repo/.claude/skills", "repo/.codex/skills", "repo/.github/skills"),
    *("repo/.opencode/skills", "home/.agents/skills", "home/.claude/skills", "home/.codex/skills"),
    *("home/.gemini/skills", "home/.copilot/skills"),
)


def make(base: Path, skills: int) -> None:
    """Skills of ordinary size, spread evenly over the roots."""
    (base / "repo/.git").mkdir(parents=True)
    for number in range(skills):
        folder = base / ROOTS[number % len(ROOTS)] / f"skill-{number}"
        folder.mkdir(parents=True)
        text = f"---\nname: skill-{number}\ndescription: Does thing {number}. Use when it is asked for.\n---\n"
        (folder / "SKILL.md").write_text(text + "Do the thing.\n" * 200)


def seconds(*words: str) -> float:
    """The time of one process, the best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the time and the ratio."""
    skills = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        make(base, skills)
        words = ("-m", "skillshelf", "hosts", "--json", "--cwd", f"{base}/repo", "--home", f"{base}/home")
        bare, whole = seconds("-c", "pass"), seconds(*words)
    print(f"hosts, {skills} skills over {len(ROOTS)} roots: {whole:.2f} s, {whole / bare:.0f} bare starts of Python")


if __name__ == "__main__":
    main()
