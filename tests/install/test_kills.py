"""A change of installed skills that is killed at any moment is finished or undone by the next command."""

from __future__ import annotations

import random
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from support.install_kills import SCOPES, STEPS, Kills

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

RANDOM_KILLS = 6
"""For each operation and scope; `tests/long/kill_install.py` does thousands."""


@pytest.mark.parametrize("what", STEPS)
@pytest.mark.parametrize("kind", SCOPES)
def test_a_kill_at_a_random_moment_leaves_the_state_before_or_after(tmp_path: Path, kind: str, what: str) -> None:
    kills, chance = Kills(tmp_path, kind, what, through="commands"), random.Random(f"{kind} {what}")
    for _ in range(RANDOM_KILLS):
        kills.run(partial(kills.at_random, seconds=chance.uniform(0, kills.seconds)))
    assert sum(kills.count.values()) == RANDOM_KILLS


@pytest.mark.parametrize("what", STEPS)
@pytest.mark.parametrize("kind", SCOPES)
@pytest.mark.parametrize("call", ["rename", "renameat"])
def test_a_kill_at_a_rename_leaves_the_state_before_or_after(tmp_path: Path, kind: str, what: str, call: str) -> None:
    _require_strace()
    kills = Kills(tmp_path, kind, what)
    for number in (1, 2, 4):
        kills.run(partial(kills.by_strace, call=call, number=number))
    assert sum(kills.count.values()) == 3


@pytest.mark.parametrize("what", STEPS)
@pytest.mark.parametrize("kind", SCOPES)
@pytest.mark.parametrize(("call", "error"), [("write", "ENOSPC"), ("fsync", "EIO"), ("renameat", "EROFS")])
def test_a_disk_that_fails_leaves_the_state_before_or_after(
    tmp_path: Path, kind: str, what: str, call: str, error: str
) -> None:
    _require_strace()
    kills = Kills(tmp_path, kind, what)
    for number in (2, 5):
        kills.run(partial(kills.by_failure, call=call, number=number, error=error))
    assert sum(kills.count.values()) == 2


def test_a_kill_or_a_failure_at_the_one_flush_of_many_copies_undoes_all_of_them(tmp_path: Path) -> None:
    _require_strace()
    kills = Kills(tmp_path, "project", "many")
    kills.run(partial(kills.by_strace, call="syncfs", number=1))
    kills.run(partial(kills.by_failure, call="syncfs", number=1, error="EIO"))
    assert kills.count == {"before": 2, "after": 0, "survived": 0}


def _require_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace: it is not installed")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs strace: it cannot trace here")
