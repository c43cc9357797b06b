"""Real disks that are full, read-only or not ours: the session goes on, and lost events are counted and reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.trees import SOURCE
from support.users import ordinary_user

from skillshelf.journal.file import Journal, verify

pytestmark = pytest.mark.slow

OWN_DISK = ("unshare", "--mount", "--user", "--map-root-user", "sh", "-ec")
MOUNT = 'mount -t tmpfs -o size=64k none "$1"; exec "$2" -c "$3" "$1"'


def can_mount() -> bool:
    """Return whether a process here may mount a private disk."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*OWN_DISK, 'mount -t tmpfs none "$1"', "sh", folder]
        try:
            return subprocess.run(words, capture_output=True, timeout=60).returncode == 0
        except FileNotFoundError:
            return False


def run(*words: str) -> Any:
    """Return the JSON that a program prints in a process of its own."""
    done = subprocess.run(
        words, env={"PYTHONPATH": SOURCE, "PATH": os.environ["PATH"]}, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


FILL = """
import json, os, sys
from skillshelf.journal.file import Journal, verify

folder = sys.argv[1]
path = folder + "/run.jsonl"
journal = Journal(path, session="s1")
stored = []
while not journal.lost:
    stored.append(journal.append("tool_stdout", {"chunk": "x" * 1500}))
full = os.path.getsize(path)
found = verify(path)
# With as little room as there is left, again and again.
for _ in range(5):
    assert journal.append("tool_stdout", {"chunk": "x" * 70_000}) is None
assert os.path.getsize(path) == full
first = journal.problem
os.unlink(folder + "/ballast") if os.path.exists(folder + "/ballast") else free()
after = journal.append("session_ended", {})
print(json.dumps({
    "acknowledged": len(stored) - 1, "lines": found.lines, "ok": found.ok, "lost": journal.lost,
    "problem": first, "after": bool(after), "ok_after": verify(path).ok, "lines_after": verify(path).lines,
}))
"""
BALLAST = 'open(__import__("sys").argv[1] + "/ballast", "wb").write(b"x" * 8192)\n'
LIMIT = """
import resource

resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
free = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
"""


@pytest.mark.skipif(not can_mount(), reason="no right to mount a small disk here")
def test_a_full_disk_costs_events_that_are_counted_and_no_line(tmp_path: Path) -> None:
    told = run(*OWN_DISK, MOUNT, "sh", str(tmp_path), sys.executable, BALLAST + FILL)

    assert told.pop("problem") == f"{tmp_path}/run.jsonl: No space left on device"
    assert told.pop("acknowledged") == told["lines"] > 10
    assert told.pop("lines_after") == told.pop("lines") + 1
    assert told == {"ok": True, "lost": 6, "after": True, "ok_after": True}


def test_a_limit_on_the_size_of_files_is_met_like_a_full_disk(tmp_path: Path) -> None:
    told = run(sys.executable, "-c", LIMIT + FILL, str(tmp_path))

    assert told.pop("problem") == f"{tmp_path}/run.jsonl: File too large"
    assert told.pop("acknowledged") == told["lines"] > 10
    assert told.pop("lines_after") == told.pop("lines") + 1
    assert told == {"ok": True, "lost": 6, "after": True, "ok_after": True}


READ_ONLY = """
import json, os, subprocess, sys
from skillshelf.journal.file import Journal, verify

path = sys.argv[1] + "/run.jsonl"
Journal(path, session="s1").append("session_started", {})
# Not without `bind`: then `mount` says who owns the disk, by a number that a user of a namespace may not know.
subprocess.run(["mount", "-o", "remount,bind,ro", sys.argv[1]], check=True)
journal = Journal(path, session="s2")
assert journal.append("session_started", {}) is None
print(json.dumps([journal.lost, journal.problem, verify(path).ok]))
"""


@pytest.mark.skipif(not can_mount(), reason="no right to mount a small disk here")
def test_a_read_only_disk_takes_nothing_and_is_still_read(tmp_path: Path) -> None:
    told = run(*OWN_DISK, MOUNT, "sh", str(tmp_path), sys.executable, READ_ONLY)

    assert told == [1, f"{tmp_path}/run.jsonl: Read-only file system", True]


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user may pass through."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(os.path.realpath(folder))


def test_a_file_that_may_not_be_written_takes_nothing(reachable: Path) -> None:
    path = reachable / "run.jsonl"
    Journal(str(path), session="s1").append("session_started", {})
    path.chmod(0o444)
    before = path.read_bytes()
    journal = Journal(str(path), session="s2")

    with ordinary_user():
        assert journal.append("session_started", {}) is None

    assert (journal.lost, journal.problem) == (1, f"{path}: Permission denied")
    assert path.read_bytes() == before


def test_a_folder_that_takes_no_new_file_is_said_and_its_old_journal_goes_on(reachable: Path) -> None:
    old, new = reachable / "old.jsonl", reachable / "new.jsonl"
    Journal(str(old), session="s1").append("session_started", {})
    old.chmod(0o666)
    reachable.chmod(0o555)
    journals = [Journal(str(path), session="s2") for path in (old, new)]

    with ordinary_user():
        assert [journal.append("session_started", {}) is not None for journal in journals] == [True, False]

    reachable.chmod(0o755)
    assert [journal.problem for journal in journals] == [None, f"{new}: Permission denied"]
    assert verify(str(old)).ok
