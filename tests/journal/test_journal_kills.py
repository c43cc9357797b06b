"""Eight processes append to one journal and are killed at random: no event that was acknowledged is lost.

Ten are killed by default, or as many as SKILLSHELF_KILLS says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.trees import SOURCE

from skillshelf.journal.file import Journal, read, verify

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("SKILLSHELF_KILLS", "10"))
KILLS_A_ROUND = 10

ROUND = """
import json, os, random, signal, sys, time
from skillshelf.journal.file import Journal, verify

folder, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
path = folder + "/run.jsonl"
dice = random.Random(seed)


def write_for_ever(number):
    # An event is acknowledged when its sum is in this file, which only this process writes.
    told = os.open(f"{folder}/told-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    journal = Journal(path, session=f"writer-{number}")
    dice = random.Random(number)
    while True:
        # Lines of many pages: the kernel can be stopped between two pages of one write.
        size = dice.choice((10, 10, 3_000, 100_000))
        total = journal.append("tool_stdout", {"chunk": "x" * dice.randrange(size)})
        assert total, journal.problem
        os.write(told, total.encode() + b"\\n")
        time.sleep(dice.random() / 50)


def start(number):
    pid = os.fork()
    if not pid:
        try:
            write_for_ever(number)
        finally:
            os._exit(1)
    return pid


def end(pid):
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, "a writer failed by itself"


writers = [start(number) for number in range(8)]
seen = []
for kill in range(kills):
    time.sleep(0.005 + dice.random() / 50)
    victim = dice.randrange(8)
    end(writers[victim])
    found = verify(path) if os.path.exists(path) else None
    seen += [problem._asdict() for problem in found.problems] if found else []
    writers[victim] = start(8 + kill)
for pid in writers:
    end(pid)
print(json.dumps(seen))
"""


def test_no_acknowledged_event_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    for number in range(max(1, KILLS // KILLS_A_ROUND)):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "run.jsonl"

        done = subprocess.run(
            [sys.executable, "-c", ROUND, str(folder), str(KILLS_A_ROUND), str(number)],
            env={"PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            timeout=300,
        )

        assert (done.returncode, done.stderr) == (0, "")
        # Only what the last writer was killed amid may be seen, until the next one comes.
        assert {problem["kind"] for problem in json.loads(done.stdout)} <= {"torn"}
        assert [problem.kind for problem in verify(str(path)).problems] in ([], ["torn"])
        assert verify(str(path)).torn_tail is not path.read_bytes().endswith(b"\n")
        assert Journal(str(path), session="after").append("session_ended", {})
        found = verify(str(path))
        assert (found.ok, found.problems) == (True, ())
        stored = [line.record["sum"] for line in read(str(path)) if line.record]
        told = [total for file in folder.glob("told-*") for total in file.read_text().split()]
        assert len(told) > 20
        assert set(told) <= set(stored)
        assert len(stored) == found.lines == len(set(stored))
