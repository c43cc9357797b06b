"""Run programs on a machine that has a system policy, without writing to the real one.

The policy lies in a folder of the test, which bwrap puts at `/etc/skillshelf` of a private view of the machine. As an
ordinary user that view has a root of its own: the user, by a user namespace.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

POLICY = "/etc/skillshelf/policy.toml"


def _view(policy: Path, writable: Path) -> list[str]:
    """The words that start a program with this folder as `/etc/skillshelf`; only one other folder can be written."""
    words = ["bwrap", "--unshare-user", "--uid", "0", "--gid", "0"] if os.geteuid() != 0 else ["bwrap"]
    for entry in sorted(Path("/").iterdir()):
        if entry.name in ("etc", "proc", "dev", "sys"):
            continue
        words += (
            ["--symlink", os.readlink(entry), str(entry)] if entry.is_symlink() else ["--ro-bind", *[str(entry)] * 2]
        )
    words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/etc"]
    for entry in sorted(Path("/etc").iterdir()):
        if entry.name != "skillshelf" and os.access(entry, os.R_OK) and not entry.is_symlink():
            words += ["--ro-bind", str(entry), str(entry)]
    return [
        *words,
        "--bind",
        str(writable),
        str(writable),
        "--bind",
        str(policy),
        "/etc/skillshelf",
        "--die-with-parent",
    ]


@cache
def _problem() -> str | None:
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return "there is no bwrap here"
    folder = Path("/usr/lib")
    tried = subprocess.run([*_view(folder, folder), "true"], capture_output=True, text=True, timeout=20)
    return None if tried.returncode == 0 else f"bwrap fails here: {tried.stderr.strip()[:100]}"


class Ended(NamedTuple):
    """What a program did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class PolicyMachine:
    """A machine with a home, a project and a system policy."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.project = base / "project"
        self.policy = base / "policy"
        for folder in (self.home, self.project / ".git", self.policy):
            folder.mkdir(parents=True, mode=0o755)
        self.policy.chmod(0o755)

    def write(self, text: str, *, mode: int = 0o644) -> Path:
        """Write the policy of the machine."""
        path = self.policy / "policy.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def skill(self, name: str, *, root: Path | None = None, body: str = "Do it well.\n") -> Path:
        """Write a skill into the home folder, or below another root."""
        folder = (root or self.home / ".agents/skills") / name
        folder.mkdir(parents=True, exist_ok=True)
        head = f"---\nname: {name}\ndescription: Use {name} whenever it is needed.\n---\n"
        (folder / "SKILL.md").write_text(f"{head}# {name}\n\n{body}", encoding="utf-8")
        return folder

    def configure(self, text: str) -> None:
        """Write the user's own configuration."""
        path = self.home / ".config/skillshelf/config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def start(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start Python with these words in the private view."""
        given = {
            name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "SKILLSHELF_SYSTEM"))
        }
        given |= {"HOME": str(self.home), "AGENT_SKILLS_PATH": "", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        return subprocess.Popen(
            [*_view(self.policy, self.base), "--chdir", str(cwd or self.project), sys.executable, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=given,
        )

    def python(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None, given: str = "") -> Ended:
        """Run Python with these words to its end."""
        with self.start(*words, env=env, cwd=cwd) as process:
            try:
                out, err = process.communicate(given, timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            return Ended(process.returncode, out, err)

    def run(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None, given: str = "") -> Ended:
        """Run a command of skillshelf to its end."""
        return self.python("-m", "skillshelf", *words, env=env, cwd=cwd, given=given)


def policy_machine(base: Path) -> PolicyMachine:
    """Return a machine, or leave the test out where no private view of `/etc` can be made."""
    required = os.environ.get("SKILLSHELF_REQUIRE", "").split(",")
    if (why := _problem()) is not None and "bwrap" not in required:
        pytest.skip(f"needs bwrap: {why}")
    return PolicyMachine(base)
