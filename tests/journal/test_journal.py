"""Events are appended to a file: one line each, chained, with any number of writers and failing disks."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.trees import SOURCE

from skillshelf.core.limits import JOURNAL_DEPTH, JOURNAL_LINE_BYTES
from skillshelf.journal.file import Journal, NewEvent, read, verify

NOW = 1_794_790_121_228


def open_journal(path: Path, session: str = "s1", **options: Any) -> Journal:
    """Return a journal whose clock advances one millisecond per event."""
    ticks = count(NOW)
    return Journal(str(path), session=session, now_ms=lambda: next(ticks), **options)


def records(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal as JSON; none is broken."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a new journal."""
    return tmp_path / "run.jsonl"


# The form of a line -------------------------------------------------------------------------------


def test_a_line_reads_exactly_so(path: Path) -> None:
    journal = open_journal(path)

    total = journal.append("skill_invoked", {"name": "größe", "mode": "auto", "args": None})

    body = (
        '{"args":null,"mode":"auto","name":"größe","prev":"' + "0" * 64 + '","seq":0,"session":"s1",'
        '"ts_ms":1794790121228,"type":"skill_invoked"}'
    )
    assert total == hashlib.sha256(body.encode()).hexdigest()
    assert path.read_text(encoding="utf-8") == body.replace(',"ts_ms"', f',"sum":"{total}","ts_ms"') + "\n"


def test_each_line_holds_the_digest_of_the_bytes_before_it_and_of_itself(path: Path) -> None:
    journal = open_journal(path)
    sums = [journal.append("skill_read", {"uri": f"skill://a/{number}"}) for number in range(5)]

    before = "0" * 64
    for number, line in enumerate(path.read_bytes().splitlines()):
        record = json.loads(line)
        without = {key: value for key, value in record.items() if key != "sum"}
        text = json.dumps(without, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert (record["seq"], record["prev"]) == (number, before)
        assert record["sum"] == hashlib.sha256(text.encode()).hexdigest() == sums[number]
        before = hashlib.sha256(line).hexdigest()


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The data of each write of this process from now on."""
    found: list[bytes] = []
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        found.append(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    return found


def test_an_event_is_one_write(path: Path, written: list[bytes]) -> None:
    open_journal(path).append("tool_stdout", {"chunk": "x" * 500_000})

    assert written == [path.read_bytes()]


def test_events_that_are_appended_together_are_one_write_and_the_same_lines(path: Path, written: list[bytes]) -> None:
    payloads = [{"uri": f"skill://a/{number}"} for number in range(3)]
    one_by_one = open_journal(path.with_name("other.jsonl"))
    one_by_one.append("session_started", {})
    sums = [one_by_one.append("skill_read", payload) for payload in payloads]
    together = open_journal(path)
    together.append("session_started", {})
    written.clear()

    total = together.append_all([NewEvent("skill_read", payload) for payload in payloads])

    assert len(written) == 1
    assert total == sums[-1]
    assert path.read_bytes() == path.with_name("other.jsonl").read_bytes()
    assert verify(str(path)).ok


def test_an_event_that_is_appended_later_keeps_its_time(path: Path) -> None:
    journal = open_journal(path)

    journal.append_all([NewEvent("skill_read", {}, ts_ms=5), NewEvent("skill_read", {})])

    assert [record["ts_ms"] for record in records(path)] == [5, NOW]


def test_events_that_cannot_be_stored_together_are_all_counted_as_lost(path: Path) -> None:
    path.mkdir()
    journal = open_journal(path)

    assert journal.append_all([NewEvent("skill_read", {}), NewEvent("skill_read", {})]) is None
    assert journal.lost == 2


def test_a_journal_is_for_its_owner_alone(path: Path) -> None:
    old = os.umask(0)
    try:
        open_journal(path).append("session_started", {})
    finally:
        os.umask(old)

    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["seq", "session", "ts_ms", "type", "prev", "sum"])
def test_a_payload_cannot_take_a_name_of_the_journal(path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"the journal itself writes {name}"):
        open_journal(path).append("skill_warning", {"kind": "x", name: 1})

    assert not path.exists()


def test_nothing_is_added_to_a_closed_journal(path: Path) -> None:
    journal = open_journal(path)
    journal.append("session_started", {})
    journal.close()
    journal.close()

    with pytest.raises(ValueError, match="closed"):
        journal.append("session_ended", {})


ODD = {
    "lone surrogate": ("a\ud800b", "a\\ud800b"),
    "byte of a file name": ("caf\udce9", "caf\\xe9"),
    "bytes": (b"\x00\xff", {"base64": "AP8="}),
    "not a number": (float("nan"), "nan"),
    "infinity": (float("-inf"), "-inf"),
    "large number": (2**64, "0x10000000000000000"),
    "number of ten thousand digits": (-(10**10_000), hex(-(10**10_000))),
    "largest that stays": (2**64 - 1, 2**64 - 1),
    "tuple": ((1, "a"), [1, "a"]),
    "set": ({"b", "a", "c"}, ["a", "b", "c"]),
    "path": (Path("/a/b"), "/a/b"),
    "keys that are no text": ({1: True, None: 2, "\udcff": 3}, {"1": True, "None": 2, "\\xff": 3}),
    "float": (1e22, 1e22),
    "controls": ("\x00\x1b\x7f\u2028", "\x00\x1b\x7f\u2028"),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_json_cannot_hold_is_written_as_something_it_can(path: Path, odd: str) -> None:
    given, written = ODD[odd]

    assert open_journal(path).append("strange", {"value": given, "list": [{"deep": given}]})

    (record,) = records(path)
    assert (record["value"], record["list"]) == (written, [{"deep": written}])
    assert verify(str(path)).ok


def test_a_value_that_holds_itself_is_cut_at_a_depth(path: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert open_journal(path).append("strange", {"loop": loop})

    assert path.read_bytes().count(b"[") == JOURNAL_DEPTH
    assert f"[cut: more than {JOURNAL_DEPTH} levels]" in path.read_text()
    assert verify(str(path)).ok


def test_a_long_event_is_kept_with_its_long_members_cut_and_said(path: Path) -> None:
    journal = open_journal(path)
    chunk = "é" * JOURNAL_LINE_BYTES

    assert journal.append("tool_stdout", {"tool_id": "t1", "chunk": chunk})

    (record,) = records(path)
    data = json.dumps(chunk, ensure_ascii=False).encode()
    assert record["tool_id"] == "t1"
    assert record["chunk"] == {
        "cut_bytes": len(data),
        "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
        "start": data[:200].decode("utf-8", "ignore"),
    }
    assert journal.lost == 0
    assert journal.notice is not None
    assert "JOURNAL_LINE_BYTES" in journal.notice
    assert verify(str(path)).ok


def test_an_event_of_very_many_members_is_kept_as_a_digest(path: Path) -> None:
    assert open_journal(path).append("strange", {f"member{number}": "x" * 10_000 for number in range(500)})

    (record,) = records(path)
    assert record["cut"]["cut_bytes"] > 500 * 10_000
    assert verify(str(path)).ok


def test_an_event_that_stays_too_long_is_counted_as_lost(path: Path) -> None:
    journal = open_journal(path, session="s" * (JOURNAL_LINE_BYTES + 1))

    assert journal.append("strange", {}) is None

    assert journal.lost == 1
    assert journal.problem is not None
    assert "JOURNAL_LINE_BYTES" in journal.problem


# Several writers ----------------------------------------------------------------------------------


def test_two_journals_on_one_file_continue_one_chain(path: Path) -> None:
    first, second = open_journal(path, "first"), open_journal(path, "second")
    for _ in range(5):
        first.append("skill_read", {})
        second.append("skill_read", {})

    assert [record["session"] for record in records(path)] == ["first", "second"] * 5
    found = verify(str(path))
    assert (found.ok, found.lines, found.sessions) == (True, 10, 2)


def test_threads_share_a_journal(path: Path) -> None:
    journal = open_journal(path)
    threads = [
        threading.Thread(target=lambda name=name: [journal.append("skill_read", {"by": name}) for _ in range(25)])
        for name in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Counter(record["by"] for record in records(path)) == dict.fromkeys(range(8), 25)
    assert (verify(str(path)).ok, journal.lost) == (True, 0)


FORKS = """
import os, sys
from skillshelf.journal.file import Journal

journal = Journal(sys.argv[1], session="parent")
journal.append("session_started", {})
children = []
for child in range(4):
    pid = os.fork()
    if not pid:
        os._exit(0 if all([journal.append("skill_read", {"child": child}) for _ in range(25)]) else 1)
    children.append(pid)
assert all([journal.append("skill_read", {"child": -1}) for _ in range(25)])
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
"""


@pytest.mark.slow
def test_a_journal_that_was_open_before_a_fork_is_safe_after_it(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(path)], env={"PYTHONPATH": SOURCE}, capture_output=True, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, b"")
    found = verify(str(path))
    assert (found.ok, found.lines) == (True, 126)


def test_a_writer_that_was_stopped_with_the_lock_does_not_stop_the_others(path: Path) -> None:
    journal = open_journal(path, lock_seconds=0.01)
    assert journal.append("session_started", {})

    with path.open() as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        assert journal.append("skill_read", {}) is None
        assert [line.problem for line in read(str(path), lock_seconds=0.01)] == [None]
    assert journal.append("session_ended", {})

    assert journal.problem == f"{path}: another process has held its lock for 0.01 seconds"
    assert (journal.lost, verify(str(path)).ok) == (1, True)


def test_a_journal_that_was_removed_begins_again(path: Path) -> None:
    journal = open_journal(path)
    journal.append("session_started", {})
    path.rename(path.with_name("moved.jsonl"))
    journal.append("skill_read", {})

    assert [record["type"] for record in records(path)] == ["skill_read"]
    assert (verify(str(path)).ok, journal.lost) == (True, 0)


# What a killed writer leaves ----------------------------------------------------------------------


def test_a_line_cut_at_any_byte_is_set_aside_and_no_whole_line_is_lost(path: Path) -> None:
    journal = open_journal(path)
    for number in range(2):
        journal.append("skill_read", {"n": number, "text": "größe"})
    data = path.read_bytes()
    first = data.index(b"\n") + 1

    for cut in range(1, len(data)):
        torn = data[:cut].rpartition(b"\n")[2]
        aside = path.with_name("run.jsonl.torn")
        aside.unlink(missing_ok=True)
        path.write_bytes(data[:cut])
        assert verify(str(path)).torn_tail is bool(torn)

        after = open_journal(path, "after")
        assert after.append("session_started", {}), cut

        kept = data[: first if cut >= first else 0]
        assert path.read_bytes().startswith(kept)
        found = verify(str(path))
        assert (found.ok, found.lines) == (True, 2 if cut >= first else 1)
        if torn:
            entry = json.loads(aside.read_bytes())
            assert (entry["at"], entry["bytes"]) == (len(kept), len(torn))
            assert entry["text"] == torn.decode("utf-8", "backslashreplace")
            assert after.notice is not None
            assert f"{len(torn)} bytes it left are in {path}.torn" in after.notice


@pytest.mark.parametrize("whole", [0, 2])
def test_a_tail_of_zero_bytes_is_set_aside(path: Path, whole: int) -> None:
    journal = open_journal(path)
    for _ in range(whole):
        journal.append("skill_read", {})
    with path.open("ab") as file:
        file.write(b"\0" * 5000)

    assert open_journal(path).append("session_started", {})

    found = verify(str(path))
    assert (found.ok, found.lines) == (True, whole + 1)


def test_a_torn_line_that_cannot_be_kept_is_still_cut_off_and_said(path: Path) -> None:
    open_journal(path).append("session_started", {})
    with path.open("ab") as file:
        file.write(b'{"half')
    path.with_name("run.jsonl.torn").mkdir()

    journal = open_journal(path)
    assert journal.append("skill_read", {})

    assert verify(str(path)).ok
    assert journal.notice == (
        f"{path}: a writer was stopped within a line; the 6 bytes it left are lost: it is a folder, not a file"
    )


def test_after_an_edited_last_line_the_chain_goes_on_and_the_edit_stays_visible(path: Path) -> None:
    journal = open_journal(path)
    for _ in range(3):
        journal.append("skill_read", {"x": 1})
    data = path.read_bytes()
    path.write_bytes(data[:-10] + b"#" + data[-9:])

    assert journal.append("session_ended", {})

    assert records(path)[3]["seq"] == 3
    assert [(problem.line, problem.kind) for problem in verify(str(path)).problems] == [(3, "edited")]


# Places that take no journal ----------------------------------------------------------------------


def make_folder(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    (path.parent / "elsewhere").write_text("")
    path.symlink_to("elsewhere")


def make_text(path: Path) -> None:
    path.write_text("first line\nsecond line\n")


def make_text_without_end(path: Path) -> None:
    path.write_text("export PATH")


def make_json(path: Path) -> None:
    path.write_text('{"name": "somebody else\'s"}')


def make_json_lines(path: Path) -> None:
    path.write_text('{"a":1}\n{"b":')


def make_long_line(path: Path) -> None:
    path.write_bytes(b"{" * (JOURNAL_LINE_BYTES + 5))


REFUSED = {
    make_folder: "it is a folder, not a file",
    make_pipe: "it is a pipe, not a file; name the file itself",
    make_link: "it is a link, not a file; name the file itself",
    make_text: "it is not a journal; choose another file",
    make_text_without_end: "it is not a journal; choose another file",
    make_json: "it is not a journal; choose another file",
    make_json_lines: "it is not a journal; choose another file",
    make_long_line: "it is not a journal; choose another file",
}


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_what_is_no_journal_is_left_alone_and_the_loss_is_said(path: Path, make: Any) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else None
    journal = open_journal(path)

    assert [journal.append("session_started", {}), journal.append("skill_read", {})] == [None, None]

    assert (journal.lost, journal.problem) == (2, f"{path}: {REFUSED[make]}")
    assert (path.read_bytes() if path.is_file() else None) == before
    assert not path.with_name("run.jsonl.torn").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/dev/full", "it is a device, not a file; name the file itself"),
        ("/nonexistent/run.jsonl", "No such file or directory"),
        ("/tmp/a\0b", r"(open: )?embedded null (byte|character in path)"),
    ],
)
def test_a_path_that_cannot_be_opened_is_said(name: str, reason: str) -> None:
    journal = Journal(name, session="s1")

    assert journal.append("session_started", {}) is None

    assert journal.lost == 1
    assert re.fullmatch(f"{re.escape(name)}: {reason}", journal.problem or "")


def test_a_file_somebody_made_empty_is_used(path: Path) -> None:
    path.write_bytes(b"")

    assert open_journal(path).append("session_started", {})

    assert verify(str(path)).ok


# Disks that fail ----------------------------------------------------------------------------------


@contextmanager
def failing_fsync() -> Iterator[list[int]]:
    """A full disk; a test in this process cannot have a real one."""
    calls: list[int] = []

    def fail(descriptor: int) -> None:
        calls.append(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        yield calls


def test_after_a_failed_fsync_no_event_is_called_stored_any_more(path: Path) -> None:
    journal = open_journal(path, fsync="always")
    assert journal.append("session_started", {})

    with failing_fsync() as calls:
        assert journal.append("skill_read", {}) is None
        assert journal.append("skill_read", {}) is None
    assert journal.append("skill_read", {}) is None

    assert len(calls) == 1
    assert (journal.lost, journal.problem) == (3, f"{path}: Input/output error")
    assert verify(str(path)).ok


@pytest.mark.parametrize(("policy", "calls"), [("never", 0), ("end", 2), ("always", 4)])
def test_the_disk_is_asked_as_often_as_the_policy_says(
    path: Path, policy: Any, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        asked.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    journal = open_journal(path, fsync=policy)
    for _ in range(3):
        journal.append("skill_read", {})
    journal.close()

    # Once more than for the file: its folder must know it too.
    assert (len(asked), journal.problem) == (calls, None)


def test_a_failed_fsync_at_the_end_is_said(path: Path) -> None:
    journal = open_journal(path, fsync="end")
    journal.append("session_started", {})
    with failing_fsync():
        journal.close()

    assert (journal.lost, journal.problem) == (0, f"{path}: not forced to the disk: Input/output error")
