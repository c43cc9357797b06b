"""`skillshelf log`: a journal for people and programs, whoever wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import SOURCE, Machine
from test_cli_output import COLOUR, RAW, in_terminal

from skillshelf.cli.log import ACTIONS, EventLines, verify_view
from skillshelf.cli.usage_view import stats_view
from skillshelf.core.console import Screen
from skillshelf.core.limits import JOURNAL_DEPTH, JOURNAL_LINE_BYTES, JOURNAL_PROBLEMS
from skillshelf.journal.file import Journal, read, verify
from skillshelf.journal.usage import count_usage

EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("session_started", {"profile": "standard", "cwd": "/shop", "roots": [], "policy": {"name": "default"}}),
    ("skill_catalog_updated", {"count": 4, "roots": [{}, {}], "collisions": [{}]}),
    ("skill_warning", {"kind": "name-collision", "detail": "taken", "name": "deploy"}),
    ("tool_started", {"tool_id": "t1", "name": "skill_load", "args": {"name": "notes"}}),
    ("permission_decided", {"tool": "skill_load", "name": "notes", "verdict": "allow", "rule": None, "by": "default"}),
    ("skill_loaded", {"name": "notes", "path": "/shop/SKILL.md", "digest": "sha256:" + "ab" * 32}),
    ("skill_invoked", {"name": "notes", "mode": "auto"}),
    ("tool_ended", {"tool_id": "t1", "exit_code": 0}),
    ("tool_started", {"tool_id": "t2", "name": "skill_run", "args": {"name": "deploy", "script": "go.sh"}}),
    ("permission_decided", {"tool": "skill_run", "name": "deploy", "verdict": "deny", "rule": "no runs", "by": "rule"}),
    ("tool_failed", {"tool_id": "t2", "code": "denied", "error": "the policy said no"}),
    ("tool_started", {"tool_id": "t3", "name": "skill_read", "args": {"uri": "skill://notes/a.md"}}),
    ("skill_read", {"name": "notes", "uri": "skill://notes/a.md", "size": 1832}),
    ("tool_stdout", {"tool_id": "t3", "chunk": "größe\n"}),
    ("tool_ended", {"tool_id": "t3", "exit_code": 0, "duration_ms": 500}),
    ("skill_invoked", {"name": "notes", "mode": "manual", "args": "v2"}),
    ("skill_invoked", {"name": "notes", "mode": "auto", "repeat": True}),
    ("context_compacted", {"skills": ["/shop/SKILL.md"]}),
    ("from_the_future", {"what": [1, 2]}),
    ("session_ended", {"events": 20}),
]


def write_journal(machine: Machine, *, session: str = "7f3a9c1e5b2d", name: str = "run.jsonl") -> Path:
    """A journal of one session, ten milliseconds between two events."""
    path = machine.repo / name
    ticks = count(1_794_790_121_228, 10)
    journal = Journal(str(path), session=session, now_ms=lambda: next(ticks))
    for event in EVENTS:
        assert journal.append(*event)
    return path


# Show ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [(), ("run.jsonl",), ("https://skills.example",), ("run.jsonl", "https://skills.example")]
)
def test_a_push_without_a_server_and_a_journal_says_what_it_takes(machine: Machine, words: tuple[str, ...]) -> None:
    done = machine.run("log", "push", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "skillshelf: log push takes the address of a server and one journal: log push URL FILE\n"


def test_show_says_what_happened_one_line_an_event(machine: Machine) -> None:
    write_journal(machine)

    done = machine.run("log", "show", "run.jsonl")

    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("2026-11-16 00:48:41.228Z  7f3a9c1e  session_started        ")
    assert [line[59:] for line in lines] == [
        "profile standard, policy default, in /shop",
        "4 skills in 2 roots, 1 collision",
        "name-collision: taken (skill deploy)",
        'skill_load {"name":"notes"}',
        "allow: skill_load for notes, by default",
        "notes from /shop/SKILL.md (sha256:abababababab)",
        "notes, auto",
        "exit 0",
        'skill_run {"name":"deploy","script":"go.sh"}',
        "deny: skill_run for deploy, no runs, by rule",
        "denied: the policy said no",
        'skill_read {"uri":"skill://notes/a.md"}',
        "skill://notes/a.md, 1832 bytes",
        "8 bytes: größe",
        "exit 0, 500 ms",
        "notes, manual, with: v2",
        "notes, auto, already in the context",
        "1 skill no longer in the context",
        "what=[1,2]",
        "after 20 events",
    ]


@pytest.mark.slow
def test_show_in_a_terminal_names_the_day_once_and_fits_the_window(machine: Machine) -> None:
    write_journal(machine)

    shown = in_terminal(machine, "log", "show", "run.jsonl", columns=80)

    lines = COLOUR.sub("", shown).splitlines()
    assert COLOUR.search(shown)
    assert lines[:2] == [
        "2026-11-16 (UTC)",
        "00:48:41  7f3a9c1e  session_started        profile standard, policy default, in…",
    ]
    assert max(map(len, lines)) <= 80
    assert len(lines) == len(EVENTS) + 1
    assert not COLOUR.search(in_terminal(machine, "log", "show", "run.jsonl", env={"NO_COLOR": "1"}))


@pytest.mark.parametrize(
    ("words", "seqs"),
    [
        (("--type", "skill_read"), [12]),
        (("--type", "skill_read", "--type=skill_loaded"), [5, 12]),
        (("--skill", "deploy"), [2, 8, 9, 10]),
        (("--skill", "notes", "--last", "2"), [15, 16]),
        (("--skill", "notes", "--type", "tool_stdout"), [13]),
        (("--last", "1"), [19]),
        (("--last", "500"), list(range(20))),
        (("--session", "7f3a"), list(range(20))),
        (("--session", "s2"), [20]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_show_narrows_what_it_shows(machine: Machine, words: tuple[str, ...], seqs: list[int]) -> None:
    path = write_journal(machine)
    if "s2" in words:
        Journal(str(path), session="s2").append("session_started", {})

    shown = machine.run_json("log", "show", "run.jsonl", *words)

    jsonschema.validate(shown, SCHEMAS["log-show"])
    assert [record["seq"] for record in shown] == seqs
    assert all(record == json.loads(path.read_bytes().splitlines()[record["seq"]]) for record in shown)


def test_show_without_a_match_is_a_negative_answer(machine: Machine) -> None:
    write_journal(machine)
    (machine.repo / "empty.jsonl").write_bytes(b"")

    done = machine.run("log", "show", "run.jsonl", "--skill", "nothing")
    assert (done.returncode, done.stdout) == (1, "No event matches.\n")
    done = machine.run("log", "show", "run.jsonl", "--skill", "nothing", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (1, [])
    done = machine.run("log", "show", "empty.jsonl")
    assert (done.returncode, done.stdout) == (0, "No events.\n")


def test_show_marks_broken_lines_and_shows_the_others(machine: Machine) -> None:
    path = write_journal(machine)
    data = path.read_bytes().replace(b'"count":4', b'"count":5') + b"hello\n" + b'{"half'
    path.write_bytes(data)

    text = machine.run("log", "show", "run.jsonl").stdout.splitlines()
    shown = machine.run_json("log", "show", "run.jsonl")

    assert text[1].endswith("[line 2: its sum does not match its text] 5 skills in 2 roots, 1 collision")
    assert [" ".join(line.split()) for line in text[-2:]] == [
        "line 21 broken: not JSON: Expecting value at character 0",
        "line 22 broken: the line breaks off after 6 bytes",
    ]
    assert (shown[1]["line"], shown[1]["record"]["count"]) == (2, 5)
    assert shown[-1] == {"line": 22, "problem": "the line breaks off after 6 bytes", "record": None}


TYPES = sorted({kind for kind, _ in EVENTS} | {"tool_stderr", "skill_activated", "skill_deactivated"})


@pytest.mark.parametrize("value", [None, 5, -1, True, "text", [], [1], {"name": {}}, {"name": "x"}, 1.5], ids=repr)
def test_an_event_with_missing_or_odd_members_is_shown_and_counted(tmp_path: Path, value: Any) -> None:
    members = {name for _, payload in EVENTS for name in payload}
    for kind in TYPES:
        path = str(tmp_path / f"{kind}.jsonl")
        journal = Journal(path, session="s1")
        for payload in ({}, dict.fromkeys(members, value)):
            assert journal.append(kind, payload)

        lines = [*read(path)]

        assert [EventLines(Screen()).text(line).count("\n") for line in lines] == [1, 1], kind
        assert stats_view(count_usage(lines), Screen()).endswith("2 events of 1 session\n"), kind


def test_a_colour_only_repeats_what_the_words_say(machine: Machine) -> None:
    path = write_journal(machine)
    path.write_bytes(path.read_bytes().replace(b'"count":4', b'"count":5') + b"broken")
    lines = [*read(str(path))]

    def texts(screen: Screen) -> list[str]:
        views = [verify_view(verify(str(path)), "run.jsonl", screen), stats_view(count_usage(lines), screen)]
        return [*(EventLines(screen).text(line) for line in lines), *views]

    coloured, plain = texts(Screen(colour=True)), texts(Screen())
    assert [COLOUR.sub("", text) for text in coloured] == plain
    red = [text for text, shown in zip(plain, coloured, strict=True) if "\x1b[31m" in shown]
    assert len(red) == 6
    for text in red:
        assert any(word in text for word in ("broken", "line 2:", "deny", "failed", "not as it was", "damaged")), text


_SIZES = ("total_ms", "longest_ms", "bytes")


# Stats --------------------------------------------------------------------------------------------


@pytest.mark.req("S-130")
def test_stats_counts_how_skills_and_tools_were_used(machine: Machine) -> None:
    path = write_journal(machine)

    stats = machine.run_json("log", "stats", "run.jsonl")

    jsonschema.validate(stats, SCHEMAS["log-stats"])
    none = {"auto": 0, "manual": 0, "repeated": 0, "loaded": 0, "read": 0, "denied": 0, "failed": 0}
    tool = {"calls": 1, "failed": 0, "denied": 0}
    notes = {**none, "auto": 1, "manual": 1, "repeated": 1, "loaded": 1, "read": 1, "calls": 2}
    told = {name: stats[name] for name in ("file", "events", "sessions", "broken", "tools")}
    told["skills"] = [{name: row[name] for name in ("name", *notes, *_SIZES)} for row in stats["skills"]]
    assert told == {
        "file": str(path),
        "events": 20,
        "sessions": 1,
        "broken": 0,
        "skills": [
            {"name": "notes", **notes, "total_ms": 540, "longest_ms": 500, "bytes": 1840},
            {"name": "deploy", **none, "denied": 1, "calls": 1, "total_ms": 20, "longest_ms": 20, "bytes": 0},
        ],
        "tools": [
            {"name": "skill_load", **tool, "total_ms": 40, "longest_ms": 40, "bytes": 0},
            {"name": "skill_read", **tool, "total_ms": 500, "longest_ms": 500, "bytes": 1840},
            {"name": "skill_run", **tool, "denied": 1, "total_ms": 20, "longest_ms": 20, "bytes": 0},
        ],
    }


def test_stats_is_a_table_for_people(machine: Machine) -> None:
    write_journal(machine)

    assert machine.run("log", "stats", "run.jsonl").stdout.splitlines() == [
        "Used",
        "  USES  USERS       FIRST        LAST  SKILL",
        "     4      1  2026-11-16  2026-11-16  notes (run.jsonl)",
        "",
        "By user",
        "  USES  SKILLS  SESSIONS  DENIED        LAST  USER",
        "     4       1         1       1  2026-11-16  run.jsonl",
        "",
        "Per week (ISO, UTC)",
        "  USES  SEARCHES  SESSIONS  DENIED  FAILED  WEEK",
        "     4         -         1       1       -  2026-W47",
        "",
        "Denied",
        "  COUNT        LAST  TOOL       WHAT",
        "      1  2026-11-16  skill_run  deploy: no runs, by rule (run.jsonl)",
        "",
        "1 session without a list of the skills: what was never used there is not known",
        "20 events of 1 session",
    ]
    assert machine.run("log", "stats", "run.jsonl", "--by", "tool").stdout.splitlines()[:4] == [
        "CALLS  FAILED  DENIED    TIME  LONGEST  BYTES  TOOL",
        "    1       -       -   40 ms    40 ms      -  skill_load",
        "    1       -       -  500 ms   500 ms  1,840  skill_read",
        "    1       -       1   20 ms    20 ms      -  skill_run",
    ]


# Verify -------------------------------------------------------------------------------------------


def test_verify_answers_by_its_exit_status_and_by_the_schema(machine: Machine) -> None:
    path = write_journal(machine)
    head = json.loads(path.read_bytes().splitlines()[-1])["sum"]

    found = machine.run_json("log", "verify", "run.jsonl", "--head", head)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    cut = machine.run("log", "verify", "run.jsonl", "--head", head, "--json")

    jsonschema.validate(found, SCHEMAS["log-verify"])
    jsonschema.validate(json.loads(cut.stdout), SCHEMAS["log-verify"])
    empty: dict[str, Any] = {"torn_tail": False, "problems": [], "parts": [], "removed_parts": 0}
    assert found == {
        **empty,
        "file": str(path),
        "ok": True,
        "lines": 20,
        "sessions": 1,
        "head": head,
        "open_end": False,
    }
    assert cut.returncode == 1
    problems = json.loads(cut.stdout)["problems"]
    assert [(problem["line"], problem["seq"], problem["kind"]) for problem in problems] == [(20, 19, "cut")]
    assert machine.run("log", "verify", "run.jsonl").returncode == 0


def test_verify_tells_a_person_each_line_and_the_sum_to_keep(machine: Machine) -> None:
    path = write_journal(machine)
    lines = path.read_bytes().splitlines(keepends=True)
    head = json.loads(lines[-1])["sum"]

    whole = machine.run("log", "verify", "run.jsonl")
    path.write_bytes(b"".join([*lines[:4], lines[5], lines[4], *lines[6:10], *lines[11:]]))
    broken = machine.run("log", "verify", "run.jsonl")

    assert whole.stdout.splitlines() == [
        "run.jsonl: unchanged, 20 lines, 1 session",
        f"Last sum: {head}",
        "Keep it elsewhere: log verify --head SUM detects a journal whose end was cut off.",
    ]
    assert broken.returncode == 1
    assert broken.stdout.splitlines() == [
        "run.jsonl: not as it was written, 19 lines, 1 session",
        "  line 5   reordered  seq 5 is here after seq 3 and before seq 4",
        "  line 11  removed    the line with seq 10 is missing here",
        f"Last sum: {head}",
    ]


def test_an_open_end_is_a_note_and_no_fault(machine: Machine) -> None:
    path = machine.repo / "run.jsonl"
    Journal(str(path), session="s1").append("session_started", {})

    done = machine.run("log", "verify", "run.jsonl")

    assert done.returncode == 0
    assert "The end is open: a session has no session_ended" in done.stdout


# Mistakes -----------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no action": (
        ("log",),
        2,
        "missing argument ACTION: show, verify, stats, replay, export or push (usage: ",
    ),
    "unknown action": (
        ("log", "sing", "run.jsonl"),
        2,
        "unknown action 'sing' (known: show, verify, stats, replay, export, push)",
    ),
    "no file": (
        ("log", "verify"),
        2,
        "missing argument FILE: the journal; of stats and export also several",
    ),
    "no such file": (("log", "verify", "nothing.jsonl"), 3, "nothing.jsonl' not found"),
    "no such file to show": (("log", "show", "nothing.jsonl"), 3, "nothing.jsonl' not found"),
    "no such file to count": (("log", "stats", "nothing.jsonl"), 3, "nothing.jsonl' not found"),
    "a folder": (("log", "show", "."), 5, "it is a folder, not a file"),
    "a pipe": (("log", "verify", "pipe"), 5, "it is a pipe, not a file; name the file itself"),
    "a device": (("log", "stats", "/dev/zero"), 5, "it is a device, not a file; name the file itself"),
    "an option of another action": (
        ("log", "verify", "run.jsonl", "--skill", "x"),
        2,
        "log verify takes no option --skill",
    ),
    "a number that is none": (("log", "show", "run.jsonl", "--last", "x"), 2, "--last needs a number from 1 to"),
    "no number at all": (("log", "show", "run.jsonl", "--last", "0"), 2, "--last needs a number from 1 to"),
    "a sum that is none": (("log", "verify", "run.jsonl", "--head", "abc"), 2, "--head needs a sum of 64 hex digits"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_that_helps(machine: Machine, mistake: str) -> None:
    words, status, message = MISTAKES[mistake]
    write_journal(machine)
    os.mkfifo(machine.repo / "pipe")

    done = machine.run(*words)

    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    failure = machine.run(*words, "--json")
    jsonschema.validate(json.loads(failure.stdout), SCHEMAS["failure"])


# Journals of strangers ----------------------------------------------------------------------------


def deep(levels: int) -> bytes:
    """A line of nested lists."""
    return b'{"a":' + b"[" * levels + b"]" * levels + b"}"


STRANGE: dict[str, tuple[bytes, str]] = {
    "empty line": (b"", "an empty line"),
    "deep": (deep(100_000), f"more than {JOURNAL_DEPTH} levels"),
    "huge number": (b'{"seq":' + b"9" * 500_000 + b"}", "a number of 500000 digits"),
    "infinite": (b'{"seq":1e999}', "1e999 is not a valid number"),
    "not a number": (b'{"seq":NaN}', "NaN is not a valid number"),
    "nul": (b'{"a":"\0"}', "not JSON: Invalid control character at at character 6"),
    "not utf-8": (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
    "half a character": (
        b'{"prev":"","seq":0,"session":"\\ud800","sum":"","ts_ms":0,"type":""}',
        "a text in it holds a lone surrogate",
    ),
    "a list": (b"[1]", "not an event: not a JSON object"),
    "no event": (b'{"seq":true}', "not an event: `seq` is missing or not a number"),
    "too long": (b'"' + b"x" * JOURNAL_LINE_BYTES, "longer than JOURNAL_LINE_BYTES (1,048,576)"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_a_strange_line_costs_one_problem_and_no_neighbour(tmp_path: Path, case: str) -> None:
    line, problem = STRANGE[case]
    path = tmp_path / "run.jsonl"
    journal = Journal(str(path), session="s1")
    journal.append("session_started", {})
    before = path.read_bytes()
    journal.append("session_ended", {})
    after = path.read_bytes()[len(before) :]
    path.write_bytes(before + line + b"\n" + after)

    assert [line.problem for line in read(str(path))] == [None, problem, None]
    assert [(problem.line, problem.kind) for problem in verify(str(path)).problems] == [(2, "edited")]


def no_newline(path: Path) -> None:
    """More than the memory there is without an end of line; it takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(220 << 20)


def only_newlines(path: Path) -> None:
    """Millions of empty lines."""
    path.write_bytes(b"\n" * 1_500_000)


def many_members(path: Path) -> None:
    """A line that becomes as many values as it can."""
    path.write_bytes((b"[" + b"0," * 500_000 + b"0]\n") * 3)


LIMITED = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 28,) * 2); "


@pytest.mark.slow
@pytest.mark.parametrize("action", [action for action in ACTIONS if action not in ("export", "push")])
@pytest.mark.parametrize("make", [no_newline, only_newlines, many_members])
def test_a_huge_file_takes_little_memory_and_ends(machine: Machine, make: Callable[[Path], None], action: str) -> None:
    make(machine.repo / "run.jsonl")

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            LIMITED + "from skillshelf.cli.main import main; sys.exit(main())",
            "log",
            action,
            "run.jsonl",
        ],
        cwd=machine.repo,
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode in (0, 1), done.stderr) == (True, "")
    assert 0 < done.stdout.count("\n") <= JOURNAL_PROBLEMS + 10


@pytest.mark.slow
@pytest.mark.parametrize("make", [no_newline, only_newlines, many_members])
def test_a_huge_file_that_is_no_journal_is_not_pushed(machine: Machine, make: Callable[[Path], None]) -> None:
    make(machine.repo / "run.jsonl")
    words = ["log", "push", "http://127.0.0.1:9", "run.jsonl", "--allow-http"]
    env = {"PYTHONPATH": SOURCE, "HOME": str(machine.home), "SKILLSHELF_TOKEN": "sks_default_0123456789abcdef"}

    done = subprocess.run(
        [sys.executable, "-c", LIMITED + "from skillshelf.cli.main import main; sys.exit(main())", *words],
        cwd=machine.repo,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )

    # A torn end is nothing to send; what is no event is refused, and an empty line is none.
    assert done.returncode in ((0,) if make is no_newline else (1, 5)), done.stderr
    assert (done.stdout + done.stderr).count("\n") <= 2
    assert "Traceback" not in done.stderr


def test_no_control_character_of_a_journal_is_printed_raw(machine: Machine) -> None:
    attack = "".join(sorted(RAW)) + "\n"
    path = str(machine.repo / "run.jsonl")
    for kind, payload in [*EVENTS, (attack, {attack: attack})]:
        members = dict.fromkeys((*payload, "name", "args", "chunk", "kind"), attack)
        assert Journal(path, session=attack).append(kind, members)
    with open(path, "ab") as file:
        file.write(attack.encode() + b"\n")

    for words in (("show",), ("show", "--json"), ("stats",), ("stats", "--json"), ("verify",), ("verify", "--json")):
        done = machine.run("log", words[0], "run.jsonl", *words[1:])
        assert done.stdout
        assert sorted(RAW.intersection(done.stdout + done.stderr)) == []
