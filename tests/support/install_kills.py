"""Kill changes of installed skills, let the next command recover, and compare with the states before and after."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from skillshelf.catalog.lock import read_lock
from skillshelf.catalog.tree import skill_tree
from skillshelf.core.environment import make_environment
from skillshelf.install.generation import current_generation, read_generation
from skillshelf.install.scope import scope_of
from support import install_driver

STEPS: dict[str, tuple[str, ...]] = {
    "add": (),
    "many": (),
    "update": ("add",),
    "remove": ("add",),
    "rollback": ("add", "update"),
}
"""Each operation, and what is done before it."""

SCOPES = ("project", "user")
CALLS = (
    "rename",
    "renameat",
    "renameat2",
    "fsync",
    "syncfs",
    "write",
    "unlink",
    "unlinkat",
    "symlink",
    "mkdir",
    "mkdirat",
)
"""The system calls at which a process is killed; strace counts each of them by itself."""


def prepare(folder: Path, kind: str, what: str, through: str) -> None:
    """Make a machine on which an operation can be done."""
    (folder / "home").mkdir(parents=True)
    (folder / "repo" / ".git").mkdir(parents=True)
    # A file of each kind that an install adds to.
    (folder / "repo" / "skillshelf.toml").write_text("# ours\n[skills]\ndisabled = []  # none\n")
    install_driver.write_sources(str(folder), "one")
    for step in STEPS[what]:
        assert in_child(partial(install_driver.main, str(folder), kind, step, through)) == 0
        install_driver.write_sources(str(folder), "two")


def snapshot(folder: Path, kind: str) -> dict[str, Any]:
    """Return everything that an install may change, but for the history and the store."""
    found: dict[str, Any] = {}
    for path in sorted((folder / "repo").rglob("*")) + sorted((folder / "home").rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith("home/.local/") and not name.endswith("links.json"):
            continue
        if path.is_symlink():
            found[name] = f"-> {path.resolve().relative_to(folder)}"
        elif name.endswith("links.json"):
            # The folders that were made are a set, and a change of links that is done has only to be tidied up.
            records = json.loads(path.read_bytes())
            pending = records["pending"] if records["pending"] and not records["pending"]["done"] else None
            found[name] = {**records, "folders": sorted(records["folders"]), "pending": pending}
        elif path.is_file() and (path.suffix != ".lock" or path.name == "skillshelf.lock"):
            found[name] = (path.read_bytes(), path.stat().st_mode & 0o100)
    return found


def problems(folder: Path, kind: str) -> Iterator[str]:
    """Yield what is wrong whatever the state is: lock, copies, generation and leftovers."""
    environment = make_environment(str(folder / "repo"), str(folder / "home"), {})
    scope = scope_of(environment, user=kind == "user")
    lock = read_lock(scope.lock_path) or {}
    number = current_generation(scope.history)
    if number is not None and dict(read_generation(scope.history, number).skills) != lock:
        yield f"generation {number} is not the lock"
    for name in lock if scope.skills_folder is not None else ():
        if skill_tree(f"{scope.skills_folder}/{name}", without_git=False).digest != lock[name].tree:
            yield f"the copy of {name} is not that of the lock"
    for path in folder.rglob("*"):
        # What a process was writing in our own folders is removed by the next change there.
        is_ours = ".local" in path.relative_to(folder).parts
        if re.search(r"^\.skillshelf-|^pending\.json$", path.name) or (path.suffix in (".new", ".old") and not is_ours):
            yield f"left: {path}"
        if path.is_symlink() and not path.exists():
            yield f"a link that leads nowhere: {path}"


class Kills:
    """The states before and after one operation, and the count of kills that ended in each."""

    def __init__(self, work: Path, kind: str, what: str, *, through: str = "functions") -> None:
        self.work, self.kind, self.what, self.through = work, kind, what, through
        # Each run has the same paths: records name them, and so do the digests of projects.
        self.start, self.place = work / "start", work / "machine"
        prepare(self.place, kind, what, through)
        shutil.copytree(self.place, self.start, symlinks=True)
        self.before = snapshot(self.place, kind)
        began = time.monotonic()
        assert in_child(partial(self._do, what)) == 0
        self.seconds = time.monotonic() - began
        self.after = snapshot(self.place, kind)
        self.count = {"before": 0, "after": 0, "survived": 0}
        self.said = ""
        assert self.before != self.after

    def _do(self, what: str) -> None:
        install_driver.main(str(self.place), self.kind, what, self.through)

    def run(self, kill: Callable[[Path], bool]) -> None:
        """Kill one run, recover, and compare; `kill` returns whether the process was killed."""
        place = self.place
        shutil.rmtree(place)
        shutil.copytree(self.start, place, symlinks=True)
        killed = kill(place)
        assert in_child(partial(self._do, "recover")) == 0
        now = snapshot(place, self.kind)
        state = "before" if now == self.before else "after" if now == self.after else "between"
        wrong = [*problems(place, self.kind)]
        if state == "between" or wrong:
            differs = {name for name in {*now, *self.after} if now.get(name) != self.after.get(name)}
            raise AssertionError(f"{self.kind} {self.what}: {state}; {wrong}; unlike after: {sorted(differs)}")
        self.count[state if killed else "survived"] += 1

    def by_strace(self, place: Path, call: str, number: int) -> bool:
        """Kill the process at the system call of a name and a number; return whether it came so far."""
        status = self._traced(place, call, f"signal=KILL:when={number}")
        assert status in (0, -signal.SIGKILL, 128 + signal.SIGKILL), f"the process failed: {status}: {self.said}"
        return status != 0

    def by_failure(self, place: Path, call: str, number: int, error: str) -> bool:
        """Let a system call fail and all of its name that follow for a while; return whether the process failed."""
        return self._traced(place, call, f"error={error}:when={number}") != 0

    def _traced(self, place: Path, call: str, injected: str) -> int:
        inject = f"--inject=?{call}:{injected}"
        driver = [sys.executable, install_driver.__file__, str(place), self.kind, self.what, self.through]
        ended = subprocess.run(
            ["strace", "-f", "-o", "/dev/null", f"--trace=?{call}", inject, *driver],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=False,
            timeout=60,
        )
        self.said = ended.stderr.decode("utf-8", "replace")
        return ended.returncode

    def at_random(self, place: Path, seconds: float) -> bool:
        """Kill the process after a time."""
        child = os.fork()
        if child == 0:
            _quiet(partial(self._do, self.what))
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)


def load_modules(work: Path, through: str) -> None:
    """Do everything once in this process, so that children need not load what it takes."""
    for kind in SCOPES:
        folder = work / kind
        (folder / "home").mkdir(parents=True)
        (folder / "repo" / ".git").mkdir(parents=True)
        install_driver.write_sources(str(folder), "one")
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            for what in ("add", "recover", "rollback"):
                install_driver.main(str(folder), kind, what, through)


def in_child(function: Callable[[], object]) -> int:
    """Run a function in a process of its own, without any memory of what the files were; return its exit status."""
    child = os.fork()
    if child == 0:
        _quiet(function)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _quiet(function: Callable[[], object]) -> None:
    try:
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        function()
        os._exit(0)
    except SystemExit as end:
        os._exit(int(end.code or 0))
    except BaseException:
        os._exit(70)
