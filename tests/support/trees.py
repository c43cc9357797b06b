"""Folders for tests: what a test says about a skill or a tree, put on a real disk."""

from __future__ import annotations

import gc
import io
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import skillshelf

PROJECT_ROOTS: Mapping[str, str] = {
    "standard": ".agents/skills",
    "strict": ".agents/skills",
    "codelia": ".agents/skills",
    "swiftagent": ".agent/skills",
    "mycodeagent": "skills",
    "rip": ".agents/skills",
    "omp": ".omp/skills",
}
"""A root that each profile has in the working directory when that is the repository."""

FIXTURES = Path(__file__).parents[1] / "fixtures" / "skills"


def write_skill(root: Path, name: str, text: str | bytes | None = None, *, folder: str | None = None) -> Path:
    """Put `<root>/<folder or name>/SKILL.md` on disk; without a text it is a valid one. Returns the file."""
    path = root / (folder or name) / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        text = f"---\nname: {name}\ndescription: Does {name} things. Use when {name} is asked for.\n---\n# {name}\n"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def put_folder_for_file(path: Path) -> None:
    """Let a folder stand where a file stood."""
    path.unlink()
    path.mkdir()


def put_pipe_for_file(path: Path) -> None:
    """Let a pipe stand where a file stood."""
    path.unlink()
    os.mkfifo(path)


class Machine:
    """A home folder and a repository of a test's own, and the shelf and the command as seen from there."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.repo = base / "repo"
        self.home.mkdir()
        (self.repo / ".git").mkdir(parents=True)
        self.env: dict[str, str] = {}

    def shelf(self, profile: str | None = None, *, cwd: Path | None = None, **options: Any) -> skillshelf.Shelf:
        """The shelf of the repository, or of a folder in it."""
        return skillshelf.open_shelf(
            cwd or self.repo, profile, home=self.home, env={"HOME": str(self.home), **self.env}, **options
        )

    def catalog(self, profile: str | None = None, **options: Any) -> skillshelf.Catalog:
        """The catalog of the shelf."""
        return self.shelf(profile, **options).catalog

    def names(self, profile: str | None = None, **options: Any) -> list[str]:
        """The names of the skills in the catalog, in its order."""
        return [skill.name for skill in self.catalog(profile, **options).skills]

    def configure(self, text: str) -> Path:
        """Write the user's configuration file."""
        path = self.home / ".config" / "skillshelf" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *words: str, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        """The command as a person runs it."""
        return run_command(*words, "--home", str(self.home), cwd=cwd or self.repo, env=self.env, **options)

    def run_json(self, *words: str, **options: Any) -> Any:
        """The output of the real command with `--json`."""
        done = self.run(*words, "--json", **options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def run_command(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`skillshelf` with only the environment a test names: in this process where that shows the same."""
    # Only commands that start programs need a PATH; to the others it would say which hosts are installed here.
    path = os.environ.get("PATH", "") if set(words) & set(_OWN_PROCESS) else "/nonexistent"
    environment = {"PATH": path, "HOME": "/nonexistent", "PYTHONPATH": SOURCE, **(env or {})}
    if set(options) <= {"input"} and _fits_in_process(words, env or {}):
        return _run_in_process(words, cwd=cwd, env=environment, given=options.get("input") or "")
    return subprocess.run(
        [sys.executable, "-m", "skillshelf", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        **options,
    )


_OWN_PROCESS = ("chat", "mcp", "pick", "rpc", "run")
"""Commands that read descriptors, handle signals or start processes."""

_START_VARIABLES = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""Variables that count when a process starts."""


def _fits_in_process(words: Sequence[str], env: Mapping[str, str]) -> bool:
    return (
        not set(words) & set(_OWN_PROCESS)
        and not any(name.startswith(_START_VARIABLES) for name in env)
        and not any("\0" in word for word in words)
        and (os.getuid(), os.getgid()) == (os.geteuid(), os.getegid())
        # Threads run commands at the same time; a process has one working directory and one environment.
        and threading.current_thread() is threading.main_thread()
    )


def _run_in_process(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], given: str
) -> subprocess.CompletedProcess[str]:
    from skillshelf.cli.main import main

    before = dict(os.environ), os.getcwd(), (sys.stdin, sys.stdout, sys.stderr), gc.get_threshold()
    streams = [io.TextIOWrapper(io.BytesIO(given.encode("utf-8", "surrogateescape")), encoding="utf-8")]
    streams += [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2)]
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        os.environ.clear()
        os.environ.update(before[0])
        os.chdir(before[1])
        sys.stdin, sys.stdout, sys.stderr = before[2]
        gc.set_threshold(*before[3])
    texts = []
    for stream in streams[1:]:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess([*words], status, *texts)


SOURCE = str(Path(skillshelf.__file__).parent.parent)


def put_socket(path: Path) -> None:
    """A socket at a path, however long that path is: its address is given from where it stands."""
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
