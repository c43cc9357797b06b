"""A journal is rotated by size and age: its parts are one chain, whoever writes and whoever is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import SOURCE, Machine, write_skill
from support.waiting import wait_for

import skillshelf
from skillshelf.errors import ConfigurationError
from skillshelf.journal.file import Journal, Once, read, verify
from skillshelf.journal.parts import Rotation, rotation_of

DAY_MS = 24 * 60 * 60 * 1000


def fill(path: Path, events: int = 100, **options: Any) -> list[str]:
    """Append events to a journal that is rotated at 4 KiB; return their sums."""
    journal = Journal(str(path), session="s", rotation=Rotation(4096, keep=options.pop("keep", None)), **options)
    sums = [journal.append("tool_stdout", {"chunk": f"{number:03d}" + "x" * 100}) for number in range(events)]
    assert all(sums), journal.problem
    return [total for total in sums if total]


def parts(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.part-*"))


def kinds(path: Path) -> list[str]:
    return [problem.kind for problem in verify(str(path)).problems]


def test_a_part_that_is_begun_on_request_continues_the_chain_while_others_write(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(str(path), session="s")
    assert not journal.begin_part()
    threads = [threading.Thread(target=fill, args=(path, 60)) for _ in range(3)]

    fill(path, 1)
    for thread in threads:
        thread.start()
    for _ in range(20):
        # A writer that has just begun a part itself may not have written its first line yet.
        wait_for(lambda: Journal(str(path), session="").begin_part() or None)
    for thread in threads:
        thread.join()

    assert (verify(str(path)).ok, kinds(path)) == (True, [])
    assert [line.record["type"] for line in read(str(path)) if line.record].count("tool_stdout") == 181
    for part in parts(path):
        part.unlink()
    fill(path, 1)
    assert verify(str(path)).problems[0].kind == "removed"
    assert len(verify(str(path)).problems) == 1


# One chain ----------------------------------------------------------------------------------------


def test_the_parts_are_one_journal_for_whoever_reads_it(machine: Machine) -> None:
    path = machine.repo / "run.jsonl"
    sums = fill(path)

    assert len(parts(path)) > 3
    assert all(part.stat().st_size <= 4096 for part in parts(path))
    assert all(part.stat().st_mode & 0o777 == 0o600 for part in parts(path))
    records = [line.record for line in read(str(path)) if line.record]
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert [record["sum"] for record in records if record["type"] == "tool_stdout"] == sums
    found = machine.run_json("log", "verify", "run.jsonl", "--head", sums[-1])
    jsonschema.validate(found, SCHEMAS["log-verify"])
    assert (found["ok"], found["lines"], found["removed_parts"]) == (True, len(records), 0)
    assert [part["file"] for part in found["parts"]] == [*map(str, parts(path)), str(path)]
    assert machine.run("log", "verify", "run.jsonl").stdout.startswith("run.jsonl: unchanged, ")
    shown = machine.run_json("log", "show", "run.jsonl", "--type", "tool_stdout")
    assert [entry["sum"] for entry in shown] == sums
    jsonschema.validate(machine.run_json("log", "show", "run.jsonl", "--last", "60"), SCHEMAS["log-show"])
    assert machine.run_json("log", "stats", "run.jsonl")["events"] == 100


def test_a_part_begins_with_the_part_before_and_its_last_sum(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    fill(path)
    first, second = parts(path)[:2]

    record = json.loads(second.read_bytes().splitlines()[0])

    assert (record["type"], record["session"], record["part"], record["before"]) == (
        "journal_continued",
        "",
        2,
        first.name,
    )
    assert record["head"] == json.loads(first.read_bytes().splitlines()[-1])["sum"]
    assert "removed_part" not in record


def test_a_part_can_be_verified_and_shown_alone(machine: Machine) -> None:
    fill(machine.repo / "run.jsonl")

    assert machine.run("log", "verify", "run.jsonl.part-000002").returncode == 0
    assert "part 2, after run.jsonl.part-000001" in machine.run("log", "show", "run.jsonl.part-000002").stdout


def remove_first(path: Path) -> None:
    parts(path)[0].unlink()


def remove_middle(path: Path) -> None:
    parts(path)[1].unlink()


def remove_last(path: Path) -> None:
    parts(path)[-1].unlink()


def edit(path: Path) -> None:
    part = parts(path)[1]
    part.write_bytes(part.read_bytes().replace(b"xxx", b"xxy", 1))


def swap(path: Path) -> None:
    first, second = parts(path)[1:3]
    first.rename(path.parent / "aside")
    second.rename(first)
    (path.parent / "aside").rename(second)


def cut(path: Path) -> None:
    part = parts(path)[1]
    part.write_bytes(part.read_bytes()[:-300])


@pytest.mark.parametrize(
    ("harm", "kind", "place"),
    [
        (remove_first, "removed", "part-000002 line 1"),
        (remove_middle, "removed", "part-000003 line 1"),
        (remove_last, "removed", "run.jsonl line 1"),
        (edit, "edited", "part-000002 line 2"),
        (swap, "reordered", "part-00000"),
        (cut, "torn", "part-000002 line "),
    ],
)
def test_a_part_that_was_removed_edited_moved_or_cut_is_found(
    machine: Machine, harm: Any, kind: str, place: str
) -> None:
    path = machine.repo / "run.jsonl"
    fill(path)
    harm(path)

    shown = machine.run("log", "verify", "run.jsonl")

    assert shown.returncode == 1
    assert kind in kinds(path)
    assert place in shown.stdout


def test_a_journal_of_one_file_is_written_and_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(str(path), session="s")
    for _ in range(100):
        assert journal.append("tool_stdout", {"chunk": "x" * 100})

    assert list(tmp_path.iterdir()) == [path]
    assert verify(str(path)).parts == ()
    # What another program made of its own old files is no part.
    (tmp_path / "run.jsonl.1").write_text("other\n")
    assert verify(str(path)).ok


# Age ----------------------------------------------------------------------------------------------


def test_a_journal_is_rotated_by_age(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    now = 0
    journal = Journal(str(path), session="s", rotation=Rotation(max_age_days=7), now_ms=lambda: now)
    for day in range(30):
        now = day * DAY_MS
        assert journal.append("tool_stdout", {"chunk": str(day)})

    assert len(parts(path)) == 3
    assert verify(str(path)).ok
    assert [json.loads(part.read_bytes().splitlines()[-1])["ts_ms"] // DAY_MS for part in parts(path)] == [7, 15, 23]


# Removal ------------------------------------------------------------------------------------------


def test_removed_parts_leave_a_record_and_the_rest_verifies(machine: Machine) -> None:
    path = machine.repo / "run.jsonl"
    fill(path, keep=2)

    found = verify(str(path))

    assert len(parts(path)) == 2
    assert (found.ok, found.removed_parts > 0) == (True, True)
    shown = machine.run("log", "verify", "run.jsonl").stdout
    assert f"Begins with part {found.removed_parts + 1}: the parts before were removed by rotation." in shown
    assert parts(path)[0].name == f"run.jsonl.part-{found.removed_parts + 1:06d}"


def test_a_part_that_was_removed_without_a_record_is_found_for_as_long_as_the_journal_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    fill(path, keep=3)
    parts(path)[0].unlink()

    assert kinds(path) == ["removed"]
    fill(path, keep=3)
    assert kinds(path) == ["removed"]
    assert "others were already missing without a record" in verify(str(path)).problems[0].detail


# Writers ------------------------------------------------------------------------------------------


def test_whoever_comes_after_a_rename_continues_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    sums = fill(path, 10)
    path.rename(tmp_path / "run.jsonl.part-000001")

    assert verify(str(path)).head == sums[-1]
    assert Journal(str(path), session="other").append("session_ended", {})
    assert verify(str(path)).ok
    assert verify(str(path), sums[-1]).ok


WRITER = """
import os, random, signal, sys
from skillshelf.journal.file import Journal
from skillshelf.journal.parts import Rotation
from skillshelf.core import disk_writes
from skillshelf.journal import file

folder, number = sys.argv[1], int(sys.argv[2])
dice = random.Random(number)
told = os.open(f"{folder}/told-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
move = file.move

def die_at_times(path, target):
    # Killed right before or right after the rename, with the lock held.
    where = dice.random()
    if number % 2 and where < 0.2:
        os.kill(os.getpid(), signal.SIGKILL)
    move(path, target)
    if number % 2 and where > 0.8:
        os.kill(os.getpid(), signal.SIGKILL)

file.move = die_at_times
journal = Journal(folder + "/run.jsonl", session=f"w{number}", rotation=Rotation(8192), lock_seconds=60)
for _ in range(40):
    total = journal.append("tool_stdout", {"chunk": "x" * dice.randrange(600)})
    assert total, journal.problem
    os.write(told, total.encode() + b"\\n")
"""


@pytest.mark.slow
def test_sixteen_writers_rotate_and_are_killed_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(number)],
            env={"PYTHONPATH": SOURCE},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(16)
    ]
    endings = [(process.communicate(timeout=120)[1], process.returncode) for process in running]

    assert set(endings) <= {("", 0), ("", -9)}
    path = tmp_path / "run.jsonl"
    told = {total for file in tmp_path.glob("told-*") for total in file.read_text().split()}
    stored = [line.record["sum"] for line in read(str(path)) if line.record]
    assert len(parts(path)) > 5
    assert told <= set(stored)
    assert len(stored) == len(set(stored))
    found = verify(str(path))
    assert (found.ok, found.problems) == (True, ())


# Sessions -----------------------------------------------------------------------------------------


def test_a_session_a_command_and_the_configuration_rotate(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.repo / "run.jsonl"
    for _ in range(4):
        with machine.shelf().session(journal=path, rotate="4KiB,keep=9") as session:
            session.call("skill_load", {"name": "deploy"})
    by_session = len(parts(path))
    for _ in range(3):
        assert machine.run("show", "deploy", "--journal", "run.jsonl", "--rotate", "4KiB").returncode == 0
    by_command = len(parts(path))
    machine.configure("[journal]\nmax_bytes = 4096\nkeep = 2\n")
    for _ in range(3):
        assert machine.run("show", "deploy", "--journal", "run.jsonl").returncode == 0

    assert 0 < by_session < by_command
    assert len(parts(path)) == 2
    assert verify(str(path)).ok
    assert machine.run("show", "deploy", "--rotate", "4KiB").returncode == 2


def test_kept_inputs_replay_over_the_parts(machine: Machine) -> None:
    skill = write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.repo / "run.jsonl"
    for _ in range(4):
        with machine.shelf().session(journal=path, keep=True, rotate="4KiB") as session:
            session.call("skill_load", {"name": "deploy"})
    skill.unlink()

    assert len(parts(path)) > 1
    replayed = skillshelf.replay(path, against="kept")
    assert (len(replayed.sessions), replayed.differences, replayed.skipped) == (4, (), ())


def test_a_project_cannot_rotate_the_journal(machine: Machine) -> None:
    (machine.repo / "skillshelf.toml").write_text("[journal]\nmax_bytes = 4096\n")
    warnings = machine.shelf(trust="all").settings.warnings

    assert [warning.message for warning in warnings] == ["`journal.max_bytes` counts in the user's own file only"]


@pytest.mark.parametrize(
    ("text", "rotation"),
    [
        ("10MB", Rotation(10_000_000)),
        ("4KiB,12h", Rotation(4096, 0.5)),
        ("7d, keep=8", Rotation(None, 7, 8)),
        ("2w", Rotation(None, 14)),
    ],
)
def test_a_rotation_is_written_as_size_age_and_number(text: str, rotation: Rotation) -> None:
    assert rotation_of(text) == rotation
    assert rotation_of(rotation._asdict()) == rotation


@pytest.mark.parametrize("text", ["", "10", "x", "keep=3", "10MB,keep=0", "1B", "0d", "9" * 40 + "MB", "-1d"])
def test_a_rotation_that_is_none_is_said(text: str) -> None:
    with pytest.raises(ConfigurationError):
        rotation_of(text)


# What is no part ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "pipe", "text", "empty", "link"])
def test_what_only_has_the_name_of_a_part_costs_no_event_and_is_not_removed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.jsonl"
    other = tmp_path / "run.jsonl.part-000003"
    if kind == "folder":
        other.mkdir()
    elif kind == "pipe":
        os.mkfifo(other)
    elif kind == "link":
        other.symlink_to(tmp_path / "nowhere")
    else:
        other.write_text("My notes.\n" if kind == "text" else "")
    sums = fill(path, keep=1)

    assert len(parts(path)) == 2
    assert os.path.lexists(other)
    assert verify(str(path), sums[-1]).head == sums[-1]
    # A text may have been a part before somebody replaced it.
    assert kinds(path) == (["edited"] if kind == "text" else [])


def test_a_part_that_was_overwritten_stops_no_writer_and_is_found(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    fill(path)
    last = parts(path)[-1]
    path.unlink()
    last.write_text("gone\n")

    assert Journal(str(path), session="s").append("tool_stdout", {"chunk": "x"})
    assert kinds(path)


def test_an_event_is_stored_where_the_journal_cannot_be_rotated(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    (tmp_path / "run.jsonl.part-999999999999").mkdir()
    journal = Journal(str(path), session="s", rotation=Rotation(4096))
    assert all(journal.append("tool_stdout", {"chunk": "x" * 1000}) for _ in range(10))

    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run.jsonl", "run.jsonl.part-999999999999"]
    assert journal.notice is not None
    assert "not rotated" in journal.notice
    assert verify(str(path)).ok


def test_a_journal_of_which_only_parts_are_left_is_replayed(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    with machine.shelf().session(journal=machine.repo / "run.jsonl", keep=True) as session:
        session.call("skill_load", {"name": "deploy"})
    # As a writer leaves it that is killed after the rename.
    (machine.repo / "run.jsonl").rename(machine.repo / "run.jsonl.part-000001")

    assert machine.run_json("log", "replay", "run.jsonl")["differences"] == []
    assert machine.run("log", "replay", "other.jsonl").returncode == 3


def test_a_link_to_a_journal_is_read_with_its_parts_and_counted_once_in_a_folder(machine: Machine) -> None:
    folder = machine.repo / "journals"
    folder.mkdir()
    fill(folder / "run.jsonl")
    (folder / "link.jsonl").symlink_to("run.jsonl")
    (machine.repo / "named.jsonl").symlink_to("journals/run.jsonl")

    assert machine.run_json("log", "stats", "journals")["events"] == 100
    assert machine.run_json("log", "stats", "named.jsonl")["events"] == 100
    assert machine.run_json("log", "verify", "named.jsonl")["ok"] is True


def test_a_folder_without_a_journal_is_not_called_missing(machine: Machine) -> None:
    (machine.repo / "journals").mkdir()
    done = machine.run("log", "stats", "journals")
    assert (done.returncode, done.stderr) == (2, f"skillshelf: there is no journal in {machine.repo}/journals\n")


def test_a_list_is_written_again_into_a_file_that_has_the_number_of_a_removed_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for before in (1, 3):
        journal = Journal(str(path), session="s", now_ms=lambda: 0)  # equal first lines
        for _ in range(before):
            journal.append("tool_stdout", {"chunk": "x" * 1000})
        for _ in range(2):
            journal.append("skill_catalog_updated", {"listing": "d", "listed": ["x"]}, once=Once("listed", "d"))
        assert sum("listed" in (line.record or {}) for line in read(str(path))) == 1
        # Most disks give the number of a removed file to the next one.
        path.unlink()


def test_a_session_whose_beginning_rotation_removed_is_not_repeated_and_no_difference(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    for calls in (12, 1):
        with machine.shelf().session(journal=machine.repo / "run.jsonl", keep=True, rotate="4096B,keep=2") as session:
            for _ in range(calls):
                session.call("skill_load", {"name": "deploy"})
    found = machine.run_json("log", "replay", "run.jsonl")

    assert found["differences"] == []
    assert len(found["sessions"]) == 2
    (reason,) = found["skipped"]
    assert reason.endswith("its beginning was in a part of the journal that rotation removed")
