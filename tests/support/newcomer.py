"""The machine of a newcomer: 46 skills in eight places, for two agents."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from support.trees import SOURCE, Machine, write_skill

PLACES = {
    "home/.claude/skills": 13,
    "home/.codex/skills": 6,
    "repo/.agents/skills": 11,
    "repo/.github/skills": 5,
    "repo/.claude/skills": 2,
    "repo/packages/api/.claude/skills": 4,
    "repo/packages/web/.agents/skills": 4,
    "repo/packages/api/skills": 1,
}
"""The number of skills in each place."""

AGENTS = ("claude-code", "codex")

ODD = {
    "home/.claude/skills": {
        "colon": "---\nname: colon\ndescription: Use when asked to: deploy\n---\n# Colon\n\nDo it.\n"
    },
    "home/.codex/skills": {"bare": "---\nname: bare\n---\n# Bare\n\nDo it.\n"},
    "repo/.agents/skills": {
        "翻译": "---\nname: 翻译\ndescription: 把文字翻译成中文。用户要求翻译时使用。\n---\n# 翻译\n\n翻译。\n",
        "under_score": "",
    },
}


def make_newcomer(machine: Machine) -> None:
    """Put the skills of the newcomer on disk, and say which agents are theirs."""
    number = 0
    for place, count in PLACES.items():
        odd = ODD.get(place, {})
        for name, text in odd.items():
            write_skill(machine.base / place, name, text or None)
        for _ in range(count - len(odd)):
            number += 1
            write_skill(machine.base / place, f"task-{number:02}")
    script = machine.base / "repo/.claude/skills" / f"task-{number - 9}" / "scripts/hello.py"
    script.parent.mkdir(parents=True)
    script.write_text("print('hello')\n")
    machine.configure(f"hosts = [{', '.join(map(repr, AGENTS))}]\n".replace("'", '"'))


def all_files(machine: Machine) -> set[str]:
    """Every SKILL.md of a machine, as the disk has them."""
    return {str(path) for path in Path(machine.base).rglob("SKILL.md")}


def in_terminal(machine: Machine, *words: str, columns: int = 100, cwd: Path | None = None) -> str:
    """All that a command writes to a terminal of this width, to either stream."""
    ours, theirs = pty.openpty()
    # With CI nobody is asked whether searches may learn.
    size = {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1", "SKILLSHELF_PAGER": "", "CI": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "skillshelf", *words],
        cwd=cwd or machine.repo,
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home), "PATH": "", **size},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            # The other end is closed.
            break
        if not part:
            break
        written += part
    process.wait(60)
    os.close(ours)
    return written.decode("utf-8").replace("\r\n", "\n")
