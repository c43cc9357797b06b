"""Skills with scripts for tests, and what is left of a script on the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillshelf.sandbox.run import Run, RunLimits, run_script
from support.trees import Machine, write_skill

QUICK = RunLimits(seconds=30)
"""Enough for every test on a busy machine; those about time set their own."""


def skill_with(machine: Machine, scripts: Mapping[str, str | bytes]) -> str:
    """The folder of a skill that has these files below `scripts/`."""
    folder = write_skill(machine.home / ".agents" / "skills", "runs").parent
    for name, text in scripts.items():
        path = folder / "scripts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(folder)


def run_text(machine: Machine, text: str, *args: str, name: str = "it.py", **options: Any) -> Run:
    """Run a script of this text."""
    folder = skill_with(machine, {name: text})
    return run_script(folder, name, args, **{"digest": None, "limits": QUICK, **options})


def said(run: Run) -> str:
    """The output of a script that succeeded."""
    assert (run.exit_code, run.stderr) == (0, b"")
    return run.stdout.decode()


def processes_with(marker: str) -> list[int]:
    """The processes of this machine, but for us, that have a text in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(folder.name))
    return found
