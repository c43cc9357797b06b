"""`log push` against a running team server: what is sent, what is found out, and what happens without a server."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from schemas import SCHEMAS
from support.http_sites import Site, answer, endless, redirect
from support.journal_streams import ADA, NOW, chain, events, lines_of, write_journal
from support.teams import RunningTeam, running_team
from support.trees import Machine, write_skill

from skillshelf.cli.main import main
from skillshelf.core.environment import make_environment
from skillshelf.core.http_client import HttpAnswer, HttpClient, HttpRequest
from skillshelf.core.limits import JOURNAL_LINE_BYTES, JOURNAL_PAGE_BYTES, JOURNAL_ROWS
from skillshelf.errors import ConfigurationError, SourceRefused, SourceUnreachable
from skillshelf.journal.file import Journal
from skillshelf.journal.format import digest_of, parse_line, seal
from skillshelf.journal.parts import Rotation
from skillshelf.journal.push import JournalPush, JournalServer, StreamState, machine_id, push_journal
from skillshelf.journal.sent_lines import reduced_line
from skillshelf.journal.stored_chain import verify_stored
from skillshelf.servers.team.database import Database, SqliteDatabase, open_database
from skillshelf.servers.team.journal_intake import SERVER, set_content, take
from skillshelf.servers.team.journal_records import journal_sessions
from skillshelf.servers.team.journal_removal import forget
from skillshelf.servers.team.own_journals import OwnJournals
from skillshelf.servers.team.tokens import create_token
from skillshelf.servers.team.values import ADMIN, JOURNAL_READ, JOURNAL_WRITE, DatabaseAway


@pytest.fixture
def team(machine: Machine, database: Database) -> Iterator[RunningTeam]:
    with running_team(machine, database) as running:
        yield running


def push(team: RunningTeam, path: Path, token: str = "", **options: Any) -> JournalPush:
    client = HttpClient(team.url, make_environment(None, None, None), allow_http=True, netrc=False)
    tries = options.pop("tries", 1)
    token = token or team.token("ada", JOURNAL_WRITE)
    return push_journal(str(path), JournalServer(team.url, client, token, tries=tries), **options)


def stored(team: RunningTeam, stream: str) -> list[bytes]:
    answer = team.get(f"/api/v1/journal?stream={stream}", team.token("auditor", JOURNAL_READ))
    return [line["line"].encode() for line in answer.json["lines"]]


def alarms(team: RunningTeam) -> list[str]:
    return [one["kind"] for one in team.get("/api/v1/journal/alarms", team.token("a", JOURNAL_READ)).json["alarms"]]


# A journal that grows -----------------------------------------------------------------------------


def test_a_journal_is_sent_in_batches_and_goes_on_where_it_was(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 12)

    first = push(team, path, batch_lines=5)
    lines = write_journal(path, 3, session="s2")
    second, third = push(team, path), push(team, path)

    assert (first.acknowledged, first.stored, first.problem) == (11, 12, None)
    assert (second.acknowledged, second.stored, third.stored) == (14, 3, 0)
    assert first.stream == second.stream == parse_line(1, lines[0]).record["sum"][:32]  # type: ignore[index]
    assert stored(team, first.stream) == lines


def test_lines_are_on_the_disk_before_they_are_sent(
    team: RunningTeam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, auditor = tmp_path / "run.jsonl", team.token("auditor", JOURNAL_READ)
    journal = Journal(str(path), session="s", rotation=Rotation(max_bytes=4096))
    while not Path(f"{path}.part-000001").exists():
        journal.append("tool_stdout", {"tool_id": "t1", "chunk": "x" * 200})
    forced: list[tuple[str, int]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if name.startswith(f"{path}"):
            forced.append((os.path.basename(name), len(team.get("/api/v1/journal/streams", auditor).json["streams"])))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)

    push(team, path)
    assert {("run.jsonl.part-000001", 0), ("run.jsonl", 0)} <= {*forced}
    forced.clear()
    assert push(team, path).stored == 0
    assert forced == []


def test_a_journal_that_takes_long_to_read_is_not_read_beyond_the_time_of_a_push(
    team: RunningTeam, tmp_path: Path
) -> None:
    write_journal(tmp_path / "run.jsonl", 3)
    push(team, tmp_path / "run.jsonl")

    class Late(JournalServer):
        """A server whose time is over once it has said what it has."""

        def state(self, stream: str) -> StreamState:
            found = super().state(stream)
            self._deadline = 0.0
            return found

    client = HttpClient(team.url, make_environment(None, None, None), allow_http=True, netrc=False)
    server = Late(team.url, client, team.token("ada", JOURNAL_WRITE))

    with pytest.raises(SourceUnreachable, match="it takes too long"):
        push_journal(str(tmp_path / "run.jsonl"), server)


def test_a_torn_end_is_not_sent(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = write_journal(path, 4)
    path.write_bytes(path.read_bytes() + b'{"half of a li')

    assert push(team, path).acknowledged == 3
    assert stored(team, push(team, path).stream) == lines


def test_an_empty_journal_has_nothing_to_send(team: RunningTeam, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(b"")

    assert push(team, tmp_path / "run.jsonl") == JournalPush("", None, 0)


def test_a_journal_that_begins_with_an_empty_line_is_not_one_with_nothing_to_send(
    team: RunningTeam, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 3)
    path.write_bytes(b"\n" + path.read_bytes())

    assert push(team, path) == JournalPush("", None, 0, "line 1: an empty line")


def test_the_id_of_a_stream_that_a_newer_version_kept_is_left_alone(team: RunningTeam, tmp_path: Path) -> None:
    path, kept = tmp_path / "run.jsonl", '{"version": 2, "stream": "' + "ab" * 16 + '"}'
    write_journal(path, 3)
    Path(f"{path}.stream").write_text(kept)

    with pytest.raises(ConfigurationError, match="version 2 is of a newer skillshelf"):
        push(team, path)

    assert Path(f"{path}.stream").read_text() == kept


def test_a_link_in_the_place_of_the_id_of_a_stream_is_not_followed(team: RunningTeam, tmp_path: Path) -> None:
    path, other = tmp_path / "run.jsonl", tmp_path / "other"
    lines = write_journal(path, 3)
    other.write_text("of the user")
    Path(f"{path}.stream").symlink_to(other)

    done = push(team, path)

    assert stored(team, done.stream) == lines
    assert push(team, path) == done._replace(stored=0)
    assert other.read_text() == "of the user"
    assert Path(f"{path}.stream").is_symlink()


def test_a_rotated_journal_is_one_stream_also_when_its_first_parts_are_gone(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(str(path), session="s", rotation=Rotation(max_bytes=4096, keep=2))

    def write() -> None:
        for _ in range(6):
            journal.append("tool_stdout", {"tool_id": "t1", "chunk": "x" * 200})

    write()
    first = push(team, path)
    for _ in range(12):
        write()
        last = push(team, path)

    assert len(lines_of(path)) < 60
    assert (last.stream, last.problem) == (first.stream, None)
    assert stored(team, first.stream)[-len(lines_of(path)) :] == lines_of(path)
    assert len(stored(team, first.stream)) == (last.acknowledged or 0) + 1
    assert alarms(team) == []


def test_a_part_stands_for_its_journal_and_is_no_cut_end(
    team: RunningTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(str(path), session="s", rotation=Rotation(max_bytes=4096))
    while not Path(f"{path}.part-000002").exists():
        journal.append("tool_stdout", {"tool_id": "t1", "chunk": "x" * 200})
    sent = push(team, path)
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("ada", JOURNAL_WRITE))

    for part in (f"{path}.part-000001", f"{path}.part-000002"):
        assert push(team, Path(part)) == sent._replace(stored=0)
        assert main(["log", "verify", part, "--server", team.url, "--allow-http", "--home", str(tmp_path)]) == 0
        assert "3 parts" in capsys.readouterr().out

    path.unlink()
    assert push(team, Path(f"{path}.part-000001")).problem is not None
    assert alarms(team) == ["cut"]


def test_lines_that_rotation_removed_unsent_are_reported(
    team: RunningTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(str(path), session="s", rotation=Rotation(max_bytes=4096, keep=1))
    journal.append("tool_stdout", {"chunk": "first"})
    push(team, path)
    for _ in range(100):
        journal.append("tool_stdout", {"chunk": "x" * 300})

    done = push(team, path)

    assert done.acknowledged == 0
    assert "removed before they were sent" in (done.problem or "")
    assert f"to send this one as a new journal, remove {path}.stream" in (done.problem or "")
    assert alarms(team) == ["gap"]
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("ada", JOURNAL_WRITE))
    words = ["log", "verify", str(path), "--server", team.url, "--allow-http", "--home", str(tmp_path), "--json"]
    assert main(words) == 1
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [(one["kind"], one["seq"]) for one in problems] == [("removed", 1)]
    assert "removed before they were sent" in problems[0]["detail"]
    (tmp_path / "run.jsonl.stream").unlink()
    assert push(team, path).problem is None
    assert main(words) == 0


def test_a_journal_whose_sent_lines_rotation_removed_is_unchanged(
    team: RunningTeam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    journal = Journal(str(path), session="s", rotation=Rotation(max_bytes=4096, keep=1))
    first, second = tmp_path / "run.jsonl.part-000001", tmp_path / "run.jsonl.part-000002"
    journal.append("tool_stdout", {"chunk": "first"})
    while not first.exists():
        push(team, path)
        journal.append("tool_stdout", {"chunk": "x" * 300})
    while not second.exists():
        journal.append("tool_stdout", {"chunk": "x" * 300})
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("ada", JOURNAL_WRITE))
    words = ["log", "verify", str(path), "--server", team.url, "--allow-http", "--home", str(tmp_path)]

    assert not first.exists()
    assert main(words) == 0
    assert push(team, path).problem is None


def test_a_line_of_the_greatest_size_is_sent(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    random = os.urandom(JOURNAL_LINE_BYTES // 2 - 1000).hex()
    path.write_bytes(chain([{"session": "s", "type": "tool_stdout", "chunk": random}] * 1)[0] + b"\n")

    assert push(team, path).acknowledged == 0


# What was changed ---------------------------------------------------------------------------------


def test_a_cut_end_is_visible_to_push_and_to_verify(
    team: RunningTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    lines = write_journal(path, 6)
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("ada", JOURNAL_WRITE))
    server = ["--allow-http", "--home", str(tmp_path)]
    assert main(["log", "push", team.url, str(path), *server, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["acknowledged"] == 5
    assert main(["log", "verify", str(path), "--server", team.url, *server]) == 0
    path.write_bytes(b"".join(line + b"\n" for line in lines[:4]))

    assert main(["log", "push", team.url, str(path), *server, "--json"]) == 1
    assert "the end was cut off" in capsys.readouterr().out
    assert main(["log", "verify", str(path), "--server", team.url, *server]) == 1
    assert "cut" in capsys.readouterr().out
    found = team.get("/api/v1/journal/alarms", team.token("auditor", JOURNAL_READ)).json["alarms"]
    assert [(one["kind"], one["detail"]) for one in found] == [
        ("cut", "the journal on the machine ends with seq 3, and lines up to seq 5 were sent")
    ]
    metrics = team.get("/metrics", team.token("root", ADMIN)).body.decode()
    assert 'skillshelf_journal_refused_total{kind="cut"} 1' in metrics
    # The same is not kept twice.
    assert push(team, path).problem
    assert alarms(team) == ["cut"]


@pytest.mark.parametrize(
    ("left", "problem", "alarm"),
    [(b"", "the end was cut off: the server has lines up to seq 5", "cut"), (b"x\n", "line 1: ", "edited")],
)
def test_a_journal_without_any_of_its_lines_is_not_one_with_nothing_to_send(
    team: RunningTeam, machine: Machine, left: bytes, problem: str, alarm: str
) -> None:
    path = machine.base / "run.jsonl"
    write_journal(path, 6)
    machine.env["SKILLSHELF_TOKEN"] = team.token("ada", JOURNAL_WRITE)
    machine.run("log", "push", team.url, str(path), "--allow-http")
    path.write_bytes(left)

    pushed = machine.run("log", "push", team.url, str(path), "--allow-http")
    verified = machine.run("log", "verify", str(path), "--server", team.url, "--allow-http")

    assert (pushed.returncode, verified.returncode) == (1, 1)
    assert problem in pushed.stderr
    assert "cut" in verified.stdout
    assert alarms(team) == [alarm]


def test_a_file_that_went_on_after_a_cut_is_a_fork(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = write_journal(path, 6)
    stream = push(team, path).stream
    path.write_bytes(b"".join(line + b"\n" for line in lines[:4]))
    write_journal(path, 5, session="other")

    assert "it was changed" in (push(team, path).problem or "")
    assert stored(team, stream) == lines
    assert alarms(team) == ["fork"]


def test_two_copies_of_a_journal_that_both_go_on_are_a_fork_with_an_alarm(team: RunningTeam, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    write_journal(one, 3)
    shutil.copy(one, two)
    lines, other = write_journal(one, 2, session="here"), write_journal(two, 2, session="there")
    stream = push(team, one).stream
    token = team.token("ada", JOURNAL_WRITE)

    assert "it was changed" in (push(team, two, content="digest").problem or "")
    found = team.get("/api/v1/journal/alarms", team.token("auditor", JOURNAL_READ)).json["alarms"]
    assert [(one["kind"], one["detail"]) for one in found] == [("fork", "seq 4 is stored with another text")]
    # A client that does not look first is refused by the server.
    body = b"".join(line + b"\n" for line in other)
    answer = team.ask("POST", f"/api/v1/journal?stream={stream}", token, body=body)
    assert (answer.status, answer.json["error"]["code"], answer.json["error"]["seq"]) == (409, "fork", 3)
    assert stored(team, stream) == lines
    assert alarms(team) == ["fork", "fork"]


def test_a_fork_is_found_by_the_head_where_retention_removed_the_lines(team: RunningTeam, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    write_journal(one, 3)
    shutil.copy(one, two)
    write_journal(one, 2, session="here")
    write_journal(two, 4, session="there")
    push(team, one)
    with team.database.transaction("default") as transaction:
        transaction.execute("delete from event where tenant = 'default'")

    assert "it was changed" in (push(team, two).problem or "")
    assert alarms(team) == ["fork"]


@pytest.mark.parametrize(("removed", "later"), [(2, 3), (5, 3), (2, 1)])
def test_a_line_that_is_missing_in_a_sent_journal_is_an_alarm_and_nothing_is_stored(
    team: RunningTeam, tmp_path: Path, removed: int, later: int
) -> None:
    path = tmp_path / "run.jsonl"
    lines = write_journal(path, 6)
    stream = push(team, path).stream
    more = write_journal(path, 4, session="later")[: 5 + later]
    path.write_bytes(b"".join(line + b"\n" for place, line in enumerate(more) if place != removed))

    assert "lines that the server has are missing before line" in (push(team, path).problem or "")
    assert stored(team, stream) == lines
    assert alarms(team) == ["edited"]


def test_lines_that_another_program_appends_and_sends_meanwhile_are_no_cut_end(
    team: RunningTeam, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 3)
    push(team, path)

    class Meanwhile(JournalServer):
        def state(self, stream: str) -> StreamState:
            write_journal(path, 4, session="other")
            push(team, path)
            return super().state(stream)

    client = HttpClient(team.url, make_environment(None, None, None), allow_http=True, netrc=False)
    done = push_journal(str(path), Meanwhile(team.url, client, team.token("ada", JOURNAL_WRITE), tries=1))

    assert (done.acknowledged, done.stored, done.problem) == (6, 0, None)
    assert alarms(team) == []


def test_lines_that_another_program_sends_first_are_not_counted(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 3)

    class Second(JournalServer):
        def send(self, stream: str, machine: str, body: bytes) -> tuple[int | None, int, str | None]:
            assert push(team, path).stored == 3
            return super().send(stream, machine, body)

    client = HttpClient(team.url, make_environment(None, None, None), allow_http=True, netrc=False)
    done = push_journal(str(path), Second(team.url, client, team.token("ada", JOURNAL_WRITE), tries=1))

    assert (done.acknowledged, done.stored, done.problem) == (2, 0, None)


def test_lines_before_an_edited_one_are_sent_and_the_line_is_named(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = write_journal(path, 6)
    path.write_bytes(path.read_bytes().replace(b'"verdict":"allow"', b'"verdict":"deny"'))

    done = push(team, path)

    assert done.acknowledged == 2
    assert (done.problem or "").startswith("line 4: its sum does not match")
    assert stored(team, done.stream) == lines[:3]
    assert alarms(team) == ["edited"]


def test_a_sent_line_that_was_changed_is_an_alarm_and_the_lines_after_it_are_sent(
    team: RunningTeam, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    # The last line has a member that looks as if it continued the changed one.
    changed, _ = seal({**json.loads(chain(events(6))[3]), "verdict": "deny", "sum": None})
    record = {"type": "tool_started", "session": "s1", "arguments": {"prev": digest_of(changed)}}
    lines = chain([*events(4), record, *events(3)])
    path.write_bytes(b"".join(line + b"\n" for line in lines[:6]))
    assert push(team, path).problem is None
    assert push(team, path).problem is None

    path.write_bytes(b"".join(line + b"\n" for line in [*lines[:3], changed, *lines[4:]]))
    done = push(team, path)

    assert (done.acknowledged, done.stored) == (7, 2)
    assert (done.problem or "").startswith("line 4, or the one after it, was changed")
    assert stored(team, done.stream) == lines
    assert alarms(team) == ["edited"]
    path.write_bytes(b"".join(line + b"\n" for line in [lines[0], lines[2], lines[1], *lines[3:]]))
    assert (push(team, path).problem or "").startswith("line 1, or the one after it, was changed")


def test_a_journal_in_the_place_of_another_is_reported_and_sent_only_when_its_owner_says_so(
    team: RunningTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    lines = write_journal(path, 6)
    stream = push(team, path).stream
    path.unlink()
    write_journal(path, 9, session="other")
    kept = (tmp_path / "run.jsonl.stream").read_bytes()
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("ada", JOURNAL_WRITE))
    server = ["--allow-http", "--home", str(tmp_path)]

    assert main(["log", "verify", str(path), "--server", team.url, *server]) == 1
    out, err = capsys.readouterr()
    assert "cut" in out
    assert "another journal is in the place of the one that was sent: the server has that one up to seq 5" in err
    assert f"remove {path}.stream" in err
    assert main(["log", "push", team.url, str(path), *server]) == 1
    assert f"remove {path}.stream" in capsys.readouterr().err
    assert (tmp_path / "run.jsonl.stream").read_bytes() == kept
    assert stored(team, stream) == lines
    assert alarms(team) == ["fork"]

    (tmp_path / "run.jsonl.stream").unlink()
    done = push(team, path)
    assert (done.acknowledged, done.problem) == (8, None)
    assert done.stream != stream
    assert main(["log", "verify", str(path), "--server", team.url, *server]) == 0


def test_a_new_journal_beside_a_stream_that_the_server_does_not_have_is_sent(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    (tmp_path / "run.jsonl.stream").write_text(json.dumps({"version": 1, "stream": "ab" * 16}))
    first = json.loads(write_journal(path, 3)[0])

    done = push(team, path)

    # By its first line, so that a copy of it somewhere else is the same stream.
    assert (done.stream, done.acknowledged) == (first["sum"][:32], 2)
    assert push(team, path) == done._replace(stored=0)


# Content ------------------------------------------------------------------------------------------


def test_the_name_of_a_machine_tells_nothing_about_it() -> None:
    own = Path("/etc/machine-id")

    assert re.fullmatch("([0-9a-f]{16})?", machine_id())
    assert machine_id() == machine_id()
    if own.exists() and own.read_text().strip():
        assert machine_id()
        assert machine_id() not in own.read_text()


def test_a_server_that_demands_digests_never_sees_content(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = write_journal(path, 8)
    set_content(team.database, "default", "digest")

    done = push(team, path)

    assert (done.acknowledged, done.content) == (7, "digest")
    sent = b"".join(stored(team, done.stream))
    assert b"secret" not in sent
    assert b"release-notes" in sent
    state = team.get(f"/api/v1/journal/streams/{done.stream}", team.token("ada", JOURNAL_WRITE)).json
    assert state["head"] == parse_line(1, lines[-1]).record["sum"]  # type: ignore[index]
    body = chain(events(1), seq=8, prev=digest_of(lines[-1]))[0] + b"\n"
    answer = team.ask("POST", f"/api/v1/journal?stream={done.stream}", team.token("ada", JOURNAL_WRITE), body=body)
    assert (answer.status, answer.json["error"]["code"]) == (422, "content")
    # A line that shows a fork is reduced too; a whole one would be refused for its content, without an alarm.
    path.write_bytes(b"".join(line + b"\n" for line in chain([*events(7), {"session": "s1", "type": "other"}])))
    assert "it was changed" in (push(team, path).problem or "")
    assert alarms(team) == ["fork"]


# Access -------------------------------------------------------------------------------------------


def test_a_push_needs_the_scope_and_reading_another(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 2)

    with pytest.raises(SourceRefused):
        push(team, path, team.token("eve", JOURNAL_READ))
    with pytest.raises(SourceRefused):
        push(team, path, "sks_" + "0" * 43)
    done = push(team, path)
    writer = team.token("ada", JOURNAL_WRITE)
    for route in ("journal?stream=" + done.stream, "journal/sessions", "journal/streams", "journal/alarms", "usage"):
        assert team.get(f"/api/v1/{route}", writer).status == 403
        assert team.get(f"/api/v1/{route}").status == 401
        assert team.get(f"/api/v1/{route}", team.token("root", ADMIN)).status == 200


def test_the_stream_of_another_looks_like_none_and_cannot_be_pushed_to(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 2)
    stream = push(team, path).stream
    ben = team.token("ben", JOURNAL_WRITE)

    state = team.get(f"/api/v1/journal/streams/{stream}", ben).json

    assert (state["acknowledged"], state["head"]) == (None, None)
    assert "belongs to another subject" in (push(team, path, ben).problem or "")
    assert alarms(team) == ["owner"]


def test_a_machine_whose_person_was_forgotten_is_told_so_and_sends_nothing(
    team: RunningTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 3)
    push(team, path)
    forget(team.database, "default", "ada")
    write_journal(path, 2, session="later")
    sent: list[HttpRequest] = []

    class Watched(HttpClient):
        def send(self, request: HttpRequest) -> HttpAnswer:
            sent.append(request)
            return super().send(request)

    client = Watched(team.url, make_environment(None, None, None), allow_http=True, netrc=False)
    done = push_journal(str(path), JournalServer(team.url, client, team.token("ada", JOURNAL_WRITE), tries=1))

    assert (done.acknowledged, done.stored) == (None, 0)
    assert "was forgotten on the server" in (done.problem or "")
    assert [request.method for request in sent] == ["GET"]
    assert alarms(team) == []
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("ada", JOURNAL_WRITE))
    assert main(["log", "verify", str(path), "--server", team.url, "--allow-http", "--home", str(tmp_path)]) == 2
    assert "was forgotten on the server" in capsys.readouterr().err


def test_the_page_of_use_says_of_counts_without_a_name_whose_they_are(team: RunningTeam, tmp_path: Path) -> None:
    write_journal(tmp_path / "run.jsonl", 5)
    push(team, tmp_path / "run.jsonl")
    assert b"people who were forgotten" not in team.get("/usage", team.token("auditor", JOURNAL_READ)).body

    forget(team.database, "default", "ada")

    page = team.get("/usage", team.token("auditor", JOURNAL_READ)).body
    assert page.count(b'<th scope="row">people who were forgotten</th>') == 1


def test_every_alarm_is_found_by_pages_stream_and_kind_and_one_stream_hides_no_other(team: RunningTeam) -> None:
    with team.database.transaction("default") as transaction:
        transaction.execute_many(
            "insert into alarm (tenant, id, at, stream, kind, detail) values ('default', ?, ?, ?, ?, 'x')",
            [
                *((f"a:fork:{number}", 1_000 + number // 3, "aa" * 16, "fork") for number in range(JOURNAL_ROWS + 7)),
                ("b:cut:1", 5, "bb" * 16, "cut"),
            ],
        )
    token = team.token("auditor", JOURNAL_READ, "skills:read")

    def found(query: str = "") -> list[str]:
        ids: list[str] = []
        after: str | None = ""
        while after is not None:
            page = team.get(f"/api/v1/journal/alarms?{query}{f'&after={after}' if after else ''}", token).json
            ids += [one["id"] for one in page["alarms"]]
            after = page["next"]
        return ids

    assert len(found()) == len(set(found())) == JOURNAL_ROWS + 8
    assert found("limit=400") == found()
    assert found()[-1] == "b:cut:1"
    assert found("kind=cut") == found(f"stream={'bb' * 16}") == ["b:cut:1"]
    assert team.get("/api/v1/journal/alarms?after=x", token).status == 400
    page = team.get("/problems", token).body.decode()
    assert f"fork: {JOURNAL_ROWS + 7} or more alarms" in page
    assert "cut: x" in page


def test_every_session_and_every_use_is_found_by_pages(team: RunningTeam, tmp_path: Path) -> None:
    ada, auditor = team.token("ada", JOURNAL_WRITE), team.token("auditor", JOURNAL_READ)
    names = [f"skill-{number}" for number in range(7)]
    for number in range(2):
        # In each journal all sessions have one time, and names that an address must escape.
        acts = [{"type": "skill_loaded", "session": f"s.{name}/\u00e9&", "name": name, "ts_ms": NOW} for name in names]
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in chain([{**acts[0], "machine": number}, *acts[1:]])))
        assert push(team, path, ada).problem is None

    def pages(route: str, name: str) -> list[list[dict[str, Any]]]:
        found, following = [], None
        while True:
            query = urlencode({"limit": 3, **({} if following is None else {"after": following})})
            page = team.get(f"/api/v1/{route}{'&' if '?' in route else '?'}{query}", auditor).json
            found.append(page[name])
            following = page["next"]
            if following is None:
                return found

    sessions, use = pages("journal/sessions", "sessions"), pages("usage", "usage")
    assert [len(page) for page in sessions] == [3, 3, 3, 3, 2]
    assert len({(one["stream"], one["session"]) for page in sessions for one in page}) == 14
    assert [len(page) for page in use] == [3, 3, 1]
    assert [one["skill"] for page in use for one in page] == names
    assert [one["skill"] for page in pages("usage?by=person", "usage") for one in page] == names
    assert [[one["loads"] for one in page] for page in pages("usage?by=day", "usage")] == [[14]]
    assert team.get("/api/v1/journal/sessions?after=x", auditor).status == 400


def test_another_tenant_sees_no_stream_session_alarm_or_use(team: RunningTeam, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 8)
    stream = push(team, path).stream
    team.database.add_tenant("other")
    token = team.token("eve", JOURNAL_READ, JOURNAL_WRITE, tenant="other")

    assert team.get(f"/api/v1/journal?stream={stream}", token).status == 404
    assert team.get("/api/v1/journal/sessions", token).json == {"sessions": [], "next": None}
    assert team.get("/api/v1/journal/streams", token).json["streams"] == []
    assert team.get("/api/v1/usage?by=person", token).json["usage"] == []
    assert push(team, path, token).stored == 8
    assert alarms(team) == []


@pytest.mark.parametrize(
    ("query", "headers", "body", "status"),
    [
        ("?stream=zz", {}, b"", 400),
        ("", {}, b"", 400),
        ("?stream=" + "ab" * 16, {"content-encoding": "br"}, b"x", 400),
        ("?stream=" + "ab" * 16, {"content-encoding": "gzip"}, b"x", 400),
        ("?stream=" + "ab" * 16, {"content-encoding": "gzip"}, gzip.compress(b"\0" * (64 << 20), 1), 413),
        ("?stream=" + "ab" * 16, {"content-encoding": "gzip"}, gzip.compress(b"{}\n" * 1_000_000, 1), 413),
        ("?stream=" + "ab" * 16, {}, b"{}\n", 422),
        ("?stream=" + "ab" * 16 + "&machine=%00%ff", {}, b"", 200),
        ("?stream=" + "ab" * 16 + "&problem=cut", {}, b"", 200),
        ("?stream=" + "ab" * 16 + "&problem=x", {}, b"", 400),
    ],
    ids=["id", "none", "br", "gzip", "bomb", "tiny", "broken", "empty", "unknown", "problem"],
)
def test_a_hostile_request_is_one_answer(
    team: RunningTeam, query: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    token = team.token("eve", JOURNAL_WRITE)

    assert team.ask("POST", f"/api/v1/journal{query}", token, headers=headers, body=body).status == status


@pytest.mark.parametrize(
    "route", ["journal/sessions?subject=%00", "usage?skill=%00&by=person", "usage?by=x", "usage?since=-1"]
)
def test_odd_questions_about_journals_are_answered(team: RunningTeam, route: str) -> None:
    assert team.get(f"/api/v1/{route}", team.token("a", JOURNAL_READ)).status in (200, 400)


def test_a_server_that_is_away_is_tried_again_and_then_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write_journal(path, 2)
    pauses: list[float] = []
    client = HttpClient("http://127.0.0.1:9", make_environment(None, None, None), allow_http=True, netrc=False)
    server = JournalServer("http://127.0.0.1:9", client, "t", tries=4, pause=pauses.append)

    with pytest.raises(SourceUnreachable):
        push_journal(str(path), server)

    assert pauses == [0.5, 1.0, 2.0]


JOURNAL = "/api/v1/journal"
EMPTY = b'{"acknowledged": null, "head": null, "content": "full"}'


@pytest.mark.parametrize(
    ("state", "taken", "status", "said"),
    [
        (answer(EMPTY), answer(b'{"acknowledged": 99999999999999999}'), 0, ""),
        (answer(EMPTY), answer(b'{"acknowledged": null}'), 1, "does not acknowledge the lines"),
        (answer(EMPTY), answer(b'{"acknowledged": 1}'), 1, "does not acknowledge the lines"),
        (answer(EMPTY), answer(b'{"acknowledged": -7, "error": {"message": "\\u001b[2J"}}', 409), 1, "refuses these"),
        (answer(EMPTY), answer(b"[" * 60_000), 5, "does not answer as a team server"),
        (answer(EMPTY), answer(b"<html>", 500), 5, "status 500"),
        (answer(EMPTY), redirect("http://127.0.0.1:9/elsewhere", 307), 5, "status 307"),
        (answer(EMPTY), endless(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65536), 4, "sends more than"),
        (answer(b'{"acknowledged": 1e99, "head": "x"}'), answer(b'{"acknowledged": 4}'), 0, ""),
        (answer(b'{"acknowledged": ' + b"9" * 4000 + b"}"), answer(b'{"acknowledged": 4}'), 0, ""),
        (answer(b'{"acknowledged": 4611686018427387904, "head": "\\u001b[2J"}'), b"", 1, "could not be told"),
        (answer(b'{"acknowledged": 2, "head": "' + b"a" * 64 + b'"}'), b"", 1, "it was changed"),
        (redirect("http://localhost:9/"), b"", 4, "address"),
        (answer(b"", 401), b"", 4, "refuses access"),
        (answer(b"the token has no\x1b[2J scope", 403, Content_Type="text/plain"), b"", 4, ": the token has no"),
    ],
)
def test_a_server_that_lies_costs_one_line_and_no_lie_is_repeated(
    tmp_path: Path, state: bytes, taken: Any, status: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path, token = tmp_path / "run.jsonl", tmp_path / "token"
    write_journal(path, 5)
    token.write_text("sks_default_" + "A" * 43)
    with Site() as site:
        site.routes |= {"*": state, JOURNAL: taken}
        words = ["log", "push", site.url, str(path), "--allow-http", "--token-file", str(token), "--json"]
        found = main([*words, "--home", str(tmp_path)])

    out, err = capfd.readouterr()
    assert (found, len(err.splitlines())) == (status, 1 if said else 0), err
    assert said in err
    assert "\x1b" not in err
    if "acknowledged" in out:
        assert json.loads(out)["acknowledged"] in (None, 1, 2, 4, 4611686018427387904)
        assert json.loads(out)["stored"] <= 5


# Without asking -----------------------------------------------------------------------------------


def test_a_command_sends_its_journal_only_if_the_users_own_file_says_so(
    team: RunningTeam, machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(machine.home / ".agents" / "skills", "alpha")
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("ada", JOURNAL_WRITE))
    journal = machine.repo / "run.jsonl"
    words = ["show", "alpha", "--journal", str(journal), "--cwd", str(machine.repo), "--home", str(machine.home)]
    auditor = team.token("auditor", JOURNAL_READ)

    (machine.repo / "skillshelf.toml").write_text(f'[journal]\npush = "{team.url}"\n')
    assert main(words) == 0
    assert team.get("/api/v1/journal/streams", auditor).json["streams"] == []

    own = machine.home / ".config" / "skillshelf" / "config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f'[journal]\npush = "{team.url}"\ncontent = "digest"\n')
    assert main(words) == 0
    found = team.get("/api/v1/journal/streams", auditor).json["streams"]
    assert [(one["subject"], one["content"]) for one in found] == [("ada", "digest")]
    assert found[0]["head_seq"] + 1 == len(lines_of(journal))

    own.write_text('[journal]\npush = "http://127.0.0.1:9"\n')
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().err.count("the journal was not sent") == 1

    before = journal.read_bytes()
    site = ["site", str(machine.base / "site"), "--journal", str(journal), *words[words.index("--home") :][:2]]
    assert main([*site, "--cwd", str(machine.repo)]) == 0
    assert "the journal was not sent" not in capsys.readouterr().err
    assert journal.read_bytes() == before

    journal.unlink()
    own.write_text("[journal\n")
    assert main(words) == 2
    assert "the journal was not sent" not in capsys.readouterr().err


# The sessions of the server itself ----------------------------------------------------------------


def test_the_journals_of_a_process_that_was_killed_are_stored_by_the_next(
    machine: Machine, database: Database, tmp_path: Path
) -> None:
    killed = OwnJournals(database, str(tmp_path / "journals"))
    lines = write_journal(Path(killed.path_of("default")), 5, subject="ada")
    killed.store()
    lines = [*lines, *write_journal(Path(killed.path_of("default")), 2, session="late", subject="ben")][5:]
    # As the kernel does for a process that ends.
    os.close(killed._held)

    following = OwnJournals(database, str(tmp_path / "journals"))
    following.adopt()
    following.close()

    with running_team(machine, database) as team:
        sessions = team.get("/api/v1/journal/sessions", team.token("a", JOURNAL_READ)).json["sessions"]
        assert stored(team, sessions[0]["stream"]) == lines
    assert {one["session"]: one["subject"] for one in sessions} == {"s1": "ada", "late": "ben"}
    assert list((tmp_path / "journals").iterdir()) == []


def test_what_a_killed_process_left_is_stored_when_the_database_is_back_and_by_a_server_that_runs_already(
    tmp_path: Path,
) -> None:
    database, now = SqliteDatabase(str(tmp_path / "team.db")), 0.0

    def killed(session: str) -> None:
        journals = OwnJournals(database, str(tmp_path / "journals"))
        write_journal(Path(journals.path_of("default")), 3, session=session, subject="ada")
        os.close(journals._held)

    def sessions() -> set[str]:
        with database.transaction("default", readonly=True) as transaction:
            return {one["session"] for one in journal_sessions(transaction)}

    killed("first")
    running = OwnJournals(database, str(tmp_path / "journals"), seconds=600, clock=lambda: now)
    (tmp_path / "team.db").rename(tmp_path / "away")
    with pytest.raises(DatabaseAway):
        running.adopt_if_due()
    (tmp_path / "away").rename(tmp_path / "team.db")
    running.adopt_if_due()
    assert sessions() == {"first"}

    killed("second")
    now = 599
    running.adopt_if_due()
    assert sessions() == {"first"}
    now = 600
    running.adopt_if_due()
    assert sessions() == {"first", "second"}
    running.close()
    database.close()
    assert list((tmp_path / "journals").iterdir()) == []


def test_what_a_killed_process_left_is_left_alone_by_a_server_with_another_database(tmp_path: Path) -> None:
    # Its first tenant was made at another time.
    own, other = SqliteDatabase(str(tmp_path / "own.db")), SqliteDatabase(str(tmp_path / "other.db"))
    with other.transaction("default") as transaction:
        transaction.execute("update tenant set created = created + 1")
    killed = OwnJournals(own, str(tmp_path / "journals"))
    write_journal(Path(killed.path_of("default")), 3, subject="ada")
    os.close(killed._held)

    def sessions_after_adoption(database: SqliteDatabase) -> list[str]:
        running = OwnJournals(database, str(tmp_path / "journals"))
        running.adopt()
        running.close()
        with database.transaction("default", readonly=True) as transaction:
            found = [str(one["subject"]) for one in journal_sessions(transaction)]
        database.close()
        return found

    assert sessions_after_adoption(other) == []
    assert sessions_after_adoption(own) == ["ada"]
    assert list((tmp_path / "journals").iterdir()) == []


def texts_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_stored_lines_leave_the_folder_of_the_server_after_a_time_and_the_chain_goes_on(
    machine: Machine, database: Database, tmp_path: Path
) -> None:
    now = 0.0
    journals = OwnJournals(database, str(tmp_path / "journals"), seconds=600, clock=lambda: now)
    path = Path(journals.path_of("default"))
    write_journal(path, 4, subject="mallory")
    journals.store()
    now = 599
    journals.store()
    assert b"mallory" in texts_in(tmp_path / "journals")

    now = 600
    journals.store()

    assert b"mallory" not in texts_in(tmp_path / "journals")
    assert [line["type"] for line in map(json.loads, lines_of(path))] == ["journal_continued"]
    # Without new events nothing more is written, however often it is looked at.
    for now in range(1200, 9000, 600):  # noqa: B007 - the clock reads it.
        journals.store()
    write_journal(path, 3, session="later", subject="ben")
    now = 20_000
    journals.store()
    journals.store()
    journals.close()

    assert list((tmp_path / "journals").iterdir()) == []
    with running_team(machine, database) as team:
        streams = team.get("/api/v1/journal/streams", team.token("a", JOURNAL_READ)).json["streams"]
        lines = [json.loads(line) for line in stored(team, streams[0]["stream"])]
        assert verified(team, "all") == [True]
    assert len(streams) == 1
    assert [line["seq"] for line in lines] == list(range(9))
    assert [line["type"] for line in lines].count("journal_continued") == 2


def test_long_outputs_of_scripts_leave_the_folder_of_the_server_after_a_time(tmp_path: Path) -> None:
    now = 0.0
    database = open_database(f"sqlite:///{tmp_path}/team.sqlite")
    journals = OwnJournals(database, str(tmp_path / "journals"), seconds=600, clock=lambda: now)
    folder = Path(f"{journals.path_of('default')}.d/artifacts")
    folder.mkdir(parents=True)
    (folder / "output-1.txt").write_text("what mallory ran")
    write_journal(Path(journals.path_of("default")), 4)
    journals.store()
    now = 300.0
    (folder / "output-2.txt").write_text("what ben ran")
    journals.store()
    assert len(list(folder.iterdir())) == 2

    now = 600.0
    journals.store()

    assert [path.name for path in folder.iterdir()] == ["output-2.txt"]
    journals.close()
    assert list((tmp_path / "journals").iterdir()) == []
    database.close()


def test_a_server_stores_its_own_sessions_reduced_where_that_is_demanded(
    machine: Machine, database: Database, tmp_path: Path
) -> None:
    journals = OwnJournals(database, str(tmp_path / "journals"), seconds=0)
    path = Path(journals.path_of("default"))
    write_journal(path, 3, subject="ada")
    journals.store()
    set_content(database, "default", "digest")
    write_journal(path, 8, session="s2", subject="ben")
    journals.store()
    journals.close()

    assert list((tmp_path / "journals").iterdir()) == []
    with running_team(machine, database) as team:
        stream = team.get("/api/v1/journal/streams", team.token("a", JOURNAL_READ)).json["streams"][0]
        sent = b"".join(stored(team, stream["stream"]))
        people = team.get("/api/v1/usage?by=person", team.token("a", JOURNAL_READ)).json["usage"]
        assert verified(team, "all") == [True]
    assert stream["content"] == "mixed"
    assert b"secret" not in sent
    assert {row["subject"] for row in people} == {"ada", "ben"}


def test_a_part_that_a_killed_process_left_without_the_next_one_is_continued(
    machine: Machine, database: Database, tmp_path: Path
) -> None:
    journals = OwnJournals(database, str(tmp_path / "journals"), seconds=0)
    path = Path(journals.path_of("default"))
    write_journal(path, 4, subject="ada")
    path.rename(f"{path}.part-000001")

    journals.store()
    assert [one.name for one in path.parent.glob("*part*")] == ["default.jsonl.part-000001"]
    write_journal(path, 2, session="s2", subject="ada")
    journals.store()
    journals.store()

    assert b'"ada"' not in texts_in(tmp_path / "journals")
    with running_team(machine, database) as team:
        assert verified(team, "all") == [True]
    journals.close()


# What the server stores ---------------------------------------------------------------------------


def server_of(team: RunningTeam, token: str) -> JournalServer:
    client = HttpClient(team.url, make_environment(None, None, None), allow_http=True, netrc=False)
    return JournalServer(team.url, client, token, tries=1)


def verified(team: RunningTeam, which: str) -> list[bool]:
    server = server_of(team, team.token("auditor", JOURNAL_READ))
    found = []
    for stream in server.streams() if which == "all" else [which]:
        state = server.state(stream)
        one = verify_stored(stream, server.lines(stream), acknowledged=state.acknowledged, head=state.head)
        found.append(one.ok)
    return found


def test_a_chain_with_removed_and_reduced_lines_and_without_its_beginning_verifies_on_the_server(
    team: RunningTeam, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = team.database
    day = 24 * 3600 * 1000
    many = chain(events(2 * JOURNAL_ROWS + 5))
    for begin in range(0, len(many), JOURNAL_ROWS):
        take(database, ADA, "aa" * 16, many[begin : begin + JOURNAL_ROWS])
    served = chain([*events(4, session="a", subject="mallory"), *events(3, session="b", subject="ben")])
    take(database, ADA, "bb" * 16, served, origin=SERVER)
    old = chain(events(9))
    for begin in (0, 5):
        take(database, ADA, "cc" * 16, old[begin : begin + 5], now=NOW + begin * day)
    take(database, ADA, "dd" * 16, [reduced_line(line, json.loads(line)) for line in chain(events(6))])
    take(database, ADA._replace(subject="mallory"), "ee" * 16, chain(events(2)))
    forget(database, "default", "mallory")
    with database.transaction("default") as transaction:
        # As retention does; PostgreSQL drops the days of all tenants.
        transaction.execute("delete from event where tenant = 'default' and stream = ? and seq < 5", ("cc" * 16,))
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("auditor", JOURNAL_READ))
    words = ["log", "verify", "--server", team.url, "--allow-http", "--home", str(tmp_path)]

    assert main([*words, "--stream", "all"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{'aa' * 16}: unchanged, {len(many)} lines",
        f"{'bb' * 16}: unchanged, 7 lines (4 removed)",
        f"{'cc' * 16}: unchanged, 4 lines",
        "The beginning is missing, it begins with seq 5: the lines before it were removed, by retention or in the "
        "database, or were never sent.",
        f"{'dd' * 16}: unchanged, 6 lines (6 reduced)",
        f"{'ee' * 16}: unchanged, 2 lines (2 removed)",
    ]
    assert main([*words, "--stream", "bb" * 16, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMAS["log-verify-stored"])
    assert [(one["stream"], one["removed"]) for one in found["streams"]] == [("bb" * 16, 4)]
    assert main([*words, "--stream", "ff" * 16]) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("delete from event where seq = 3", "seq 3  removed"),
        ("delete from event where seq = 7", "seq 7  cut"),
        ("update tombstone set digest = '' where seq = 2", "seq 2  edited"),
        ("update stream set head_sum = head_digest", "seq 7  edited"),
    ],
)
def test_what_was_changed_in_the_database_is_found(
    team: RunningTeam,
    tmp_path: Path,
    change: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = chain([*events(3, session="a", subject="mallory"), *events(5, session="b", subject="ben")])
    take(team.database, ADA, "bb" * 16, lines, origin=SERVER)
    forget(team.database, "default", "mallory")
    with team.database.transaction("default") as transaction:
        assert transaction.execute(change) == 1
    monkeypatch.setenv("SKILLSHELF_TOKEN", team.token("auditor", JOURNAL_READ))
    words = ["log", "verify", "--server", team.url, "--stream", "bb" * 16, "--allow-http", "--home", str(tmp_path)]

    assert main(words) == 1
    out = capsys.readouterr().out
    assert "not as it was written" in out
    assert said in out


def test_long_lines_are_read_in_pages_of_a_bounded_size(team: RunningTeam) -> None:
    lines = chain([{"session": "s", "type": "tool_stdout", "chunk": "x" * 900_000}] * 20)
    for line in lines:
        take(team.database, ADA, "aa" * 16, [line])
    auditor = team.token("auditor", JOURNAL_READ, "skills:read")

    page = team.get(f"/api/v1/journal?stream={'aa' * 16}", auditor)
    story = team.get(f"/journal/{'aa' * 16}.s", auditor).body.decode()

    assert JOURNAL_PAGE_BYTES < len(page.body) < JOURNAL_PAGE_BYTES + 2 * JOURNAL_LINE_BYTES
    assert page.json["next"] == len(page.json["lines"]) - 1 == 4
    assert "15 more events not shown here" in story
    assert verified(team, "aa" * 16) == [True]


def test_verifying_what_a_server_stores_needs_the_scope_and_a_server(team: RunningTeam, tmp_path: Path) -> None:
    take(team.database, ADA, "aa" * 16, chain(events(2)))

    with pytest.raises(SourceRefused):
        list(server_of(team, team.token("ada", JOURNAL_WRITE)).lines("aa" * 16))
    for words in (
        ["verify", "--stream", "aa" * 16],
        ["verify", "run.jsonl", "--server", team.url, "--stream", "aa" * 16],
        ["verify", "--server", team.url, "--stream", "../x"],
        ["verify", "--server", team.url],
        ["show", "--stream", "aa" * 16],
    ):
        assert main(["log", *words, "--allow-http", "--home", str(tmp_path)]) == 2


# Commands -----------------------------------------------------------------------------------------


def test_the_commands_say_what_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/team.sqlite"
    with closing(open_database(url)) as database:
        take(database, ADA, "ab" * 16, chain(events(4)), now=NOW - 100 * 24 * 3600 * 1000)
        take(database, ADA, "cd" * 16, chain(events(3)))
    place = ["--database", url, "--home", str(tmp_path), "--json"]

    def said(*words: str) -> Any:
        assert main(["serve", *words, *place]) == 0
        return json.loads(capsys.readouterr().out)

    assert said("retention", "--keep-lines", "90d") == {"keep_days": 90, "lines": 4, "days": 0}
    assert said("forget", "ada") == {"tenant": "default", "subject": "ada", "streams": 2, "lines": 3, "records": 4}
    for words, status in ((["forget", "adda"], 1), (["forget", "ada"], 1), (["forget", ""], 2), (["forget", " "], 2)):
        assert main(["serve", *words, "--database", url, "--home", str(tmp_path)]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert "the journals of default know nothing about 'adda'" in err
    with closing(open_database(url)) as database:
        take(database, ADA, "ef" * 16, chain(events(2)))
        create_token(database, "default", "ada", ["admin"], expires=1)
        create_token(database, "default", "bob", ["admin"])
    assert main(["serve", "forget", "ada", "--database", url, "--home", str(tmp_path)]) == 0
    assert "tokens stay valid" not in capsys.readouterr().err
    with closing(open_database(url)) as database:
        take(database, ADA, "01" * 16, chain(events(2)))
        create_token(database, "default", "ada", ["admin"])
    assert main(["serve", "forget", "ada", "--database", url, "--home", str(tmp_path)]) == 0
    assert "tokens stay valid; end them with `skillshelf serve token revoke ada`" in capsys.readouterr().err
    assert said("journal", "digest") == {"tenant": "default", "content": "digest"}
    for words in (["retention"], ["retention", "--keep-lines", "x"], ["journal", "some"], ["forget"]):
        assert main(["serve", *words, *place]) == 2
