"""Kill and signal programs that run scripts, and count the processes and folders that stay behind.

    PYTHONPATH=src:tests python tests/support/kills.py --early 500 --late 500 --signals 2000 [--way none] [--seed 7]

Each program is a fork of this one, which takes in all its orphans: none can hide by its name or by its parent.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from skillshelf.sandbox import bubblewrap
from skillshelf.sandbox.reaper import descendants
from skillshelf.sandbox.run import Grants, RunLimits, run_script

WAYS = ("sandbox", "none")
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 10.0
"""Seconds after which a process counts as left behind, or a program as hung."""

_SCRIPTS = {
    "long.sh": "sleep 600 & sleep 600",
    "short.sh": "echo begun; sleep 0.03; (sleep 600 &); echo done",
    "quick.sh": "echo ran",
}


class Losses(NamedTuple):
    """What was tried, and what was lost: processes and folders left behind, programs that hung."""

    tried: int
    processes: int = 0
    folders: int = 0
    hangs: int = 0

    @property
    def lost(self) -> bool:
        """True if anything was."""
        return bool(self.processes or self.folders or self.hangs)


class Scene:
    """A folder for everything temporary, and a skill with scripts."""

    def __init__(self, folder: Path, way: str) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.skill = folder / "skill"
        (self.skill / "scripts").mkdir(parents=True)
        (self.skill / "SKILL.md").write_text("---\nname: skill\ndescription: d\n---\n")
        for name, text in _SCRIPTS.items():
            (self.skill / "scripts" / name).write_text(text)
        tempfile.tempdir = str(self.temporary)
        os.environ["TMPDIR"] = str(self.temporary)
        if way == "none":
            # Not by PATH, which the scripts need.
            bubblewrap.find_bubblewrap = lambda: None
        _adopt_orphans()

    def run(self, script: str) -> None:
        """Run a script of the skill."""
        grants = Grants(unsandboxed=True)
        run_script(str(self.skill), script, digest=None, grants=grants, limits=RunLimits(seconds=60))

    def folders(self) -> int:
        """The number of folders that are left after one more start."""
        self.run("quick.sh")
        return len(list(self.temporary.iterdir()))


def _adopt_orphans() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _fork(act: Callable[[], None]) -> int:
    # The thread of a former run has given its result and may not have ended: Python warns of a fork beside it.
    until = time.monotonic() + _PATIENCE
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def _left_behind() -> int:
    """Wait for all descendants to end; return how many do not, and kill them."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return 0
        if time.monotonic() > end:
            left = descendants(os.getpid())
            for process in left:
                with suppress(OSError):
                    print(process, Path(f"/proc/{process}/cmdline").read_bytes()[:300], file=sys.stderr)
                    os.kill(process, signal.SIGKILL)
            with suppress(ChildProcessError):
                while True:
                    os.waitpid(-1, 0)
            return len(left)
        time.sleep(0.002)


def kill_parents(scene: Scene, count: int, *, within: tuple[float, float], dice: random.Random) -> Losses:
    """Kill programs some seconds after they began to run a script."""
    processes = 0
    scene.run("quick.sh")
    for _ in range(count):
        reader, writer = os.pipe()

        def act(told: int = writer) -> None:
            os.write(told, b".")
            scene.run("long.sh")

        child = _fork(act)
        os.read(reader, 1)
        time.sleep(dice.uniform(*within))
        os.kill(child, signal.SIGKILL)
        os.close(reader)
        os.close(writer)
        processes += _left_behind()
    return Losses(count, processes, scene.folders())


class Interrupted(Exception):
    """What the handlers of a signalled program raise."""


_RAISING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1)
_HARMLESS = (signal.SIGCHLD, signal.SIGWINCH, signal.SIGUSR2, signal.SIGIO, signal.SIGURG)
_MOST_RAISED = 3


class _Signalled:
    """A program that runs scripts one after another, while signals end many of them."""

    def __init__(self, scene: Scene, beats: int, stop: int) -> None:
        self._scene, self._beats, self._stop = scene, beats, stop
        self._raises_left = 0

    def __call__(self) -> None:
        for number in _RAISING:
            signal.signal(number, self._handle)
        for number in _HARMLESS:
            signal.signal(number, lambda *_: None)
        scripts = ["short.sh", "quick.sh", "long.sh"]
        os.write(self._beats, b".")
        while not select.select([self._stop], [], [], 0)[0]:
            script = scripts[0]
            scripts.append(scripts.pop(0))
            self._guarded(script, _MOST_RAISED + 1)
            self._raises_left = 0
            os.write(self._beats, b".")
        # A run that was left by two exceptions in a row ends in a thread of its own.
        while [name for name in os.listdir(self._scene.temporary) if name.startswith("skillshelf-")]:
            time.sleep(0.01)

    def _guarded(self, script: str, depth: int) -> None:
        try:
            if depth > 0:
                self._guarded(script, depth - 1)
            else:
                self._raises_left = random.randint(1, _MOST_RAISED)
                self._scene.run(script)
        except Interrupted:
            return

    def _handle(self, *_: Any) -> None:
        if self._raises_left:
            self._raises_left -= 1
            raise Interrupted


def send_signals(scene: Scene, count: int, *, dice: random.Random) -> Losses:
    """Send random signals at random moments to a program that runs scripts."""
    beats, beat_writer = os.pipe()
    stop, stop_writer = os.pipe()
    scene.run("quick.sh")
    child = _fork(_Signalled(scene, beat_writer, stop))
    os.read(beats, 1)
    last_beat = time.monotonic()
    for _ in range(count):
        time.sleep(dice.uniform(0, 0.02))
        number = dice.choice((*_RAISING, *_RAISING, *_HARMLESS, signal.SIGSTOP))
        os.kill(child, number)
        if number == signal.SIGSTOP:
            time.sleep(dice.uniform(0, 0.01))
            os.kill(child, signal.SIGCONT)
        if select.select([beats], [], [], 0)[0]:
            os.read(beats, 4096)
            last_beat = time.monotonic()
        elif time.monotonic() - last_beat > _PATIENCE:
            break
    os.write(stop_writer, b".")
    hangs = int(not _ends(child))
    folders = len(list(scene.temporary.iterdir()))
    for descriptor in (beats, beat_writer, stop, stop_writer):
        os.close(descriptor)
    return Losses(count, _left_behind(), folders, hangs)


def _ends(child: int) -> bool:
    """Interrupt what a program still runs, and return whether it ends then."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        os.kill(child, signal.SIGINT)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    return False


def attack(way: str, *, early: int, late: int, signals: int, seed: int) -> dict[str, Losses]:
    """Return the losses of each attack."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(os.path.realpath(folder)), way)
        return {
            "killed within 15 ms": kill_parents(scene, early, within=(0, 0.015), dice=dice),
            "killed later": kill_parents(scene, late, within=(0.015, 0.3), dice=dice),
            "signals": send_signals(scene, signals, dice=dice),
        }


def main() -> int:
    """Attack as the command line says, and print what was lost."""
    parser = argparse.ArgumentParser()
    for name in ("early", "late", "signals"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--way", choices=WAYS, default="sandbox")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    losses = attack(chosen.way, early=chosen.early, late=chosen.late, signals=chosen.signals, seed=chosen.seed)
    for name, found in losses.items():
        print(f"{chosen.way}, {name}: {found}")
    return int(any(found.lost for found in losses.values()))


if __name__ == "__main__":
    sys.exit(main())
