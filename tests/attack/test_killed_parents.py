"""A program that runs scripts is killed or signalled at random moments: nothing stays behind, and nothing hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.kills import WAYS
from support.trees import SOURCE

from skillshelf.sandbox.run import sandbox_problem

COUNTS = os.environ.get("SKILLSHELF_KILLS", "--early 12 --late 3 --signals 60")
"""The numbers of the long run are `--early 500 --late 500 --signals 2000`."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to the process that watches here")
@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_is_killed_or_signalled_leaves_no_process_and_no_folder(way: str, tmp_path: Path) -> None:
    if way == "sandbox" and sandbox_problem() is not None:
        pytest.skip("needs bwrap")
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}:{tests}", "TMPDIR": str(tmp_path)}

    words = [sys.executable, str(tests / "support" / "kills.py"), "--way", way, *COUNTS.split()]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
