"""Platforms: Windows is refused at import, and `core` needs no POSIX module to be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.trees import SOURCE

import skillshelf

CORE = sorted(f"skillshelf.core.{path.stem}" for path in (Path(skillshelf.__file__).parent / "core").glob("[!_]*.py"))
POSIX_ONLY = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True)


@pytest.mark.slow
def test_on_windows_the_import_ends_with_one_sentence_that_names_wsl() -> None:
    done = python("import sys\nsys.platform = 'win32'\nimport skillshelf\n")

    assert done.returncode == 1
    last_line = done.stderr.splitlines()[-1]
    assert last_line == "ImportError: skillshelf does not support Windows; install and run it inside WSL"


@pytest.mark.slow
def test_core_can_be_imported_without_any_module_that_only_posix_has() -> None:
    # A module that is None in this table cannot be imported.
    blocked = f"import sys\nsys.modules.update(dict.fromkeys({POSIX_ONLY!r}))\n"
    done = python(blocked + "".join(f"import {module}\n" for module in CORE))

    assert (done.returncode, done.stderr) == (0, "")
