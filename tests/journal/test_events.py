"""The events of a session: their order and contents, for acts that succeed and acts that fail."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from jsonschema import Draft202012Validator
from schemas import SCHEMAS
from support.policies import put
from support.trees import Machine, write_skill

from skillshelf import ConfigurationError, Session, SkillError
from skillshelf.catalog.load import digest_of
from skillshelf.journal.events import EVENTS, MEMBERS, NotAnEvent, parse_event, payload_of, type_of
from skillshelf.journal.file import read

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "events.md"


def record(machine: Machine, act: Callable[[Session], object], profile: str = "standard", **options: Any) -> list[Any]:
    """Return the events of one act, without those that begin a session."""
    events: list[Any] = []
    session = machine.shelf(profile).session(on_event=events.append, **options)
    begun = len(events)
    with suppress(SkillError):
        act(session)
    return events[begun:]


def types(events: list[Any]) -> list[str]:
    """Return the types of events in their order."""
    return [type_of(event) for event in events]


# Order --------------------------------------------------------------------------------------------

LOAD = ["tool_started", "permission_decided", "skill_loaded", "skill_invoked", "tool_ended"]
DENIED = ["tool_started", "permission_decided", "tool_failed"]
NOT_FOUND = ["tool_started", "tool_failed"]

ACTS: dict[str, tuple[Callable[[Session], object], list[str]]] = {
    "load": (lambda s: s.call("skill_load", {"name": "deploy"}), LOAD),
    "load by path": (lambda s: s.call("skill_load", {"path": s.skills[0].dir}), LOAD),
    "read": (
        lambda s: s.call("skill_read", {"uri": "skill://deploy/scripts/hello.sh"}),
        ["tool_started", "permission_decided", "skill_read", "tool_ended"],
    ),
    "search": (
        lambda s: s.call("skill_search", {"query": "deploy"}),
        ["tool_started", "permission_decided", "tool_ended"],
    ),
    "load of nothing": (lambda s: s.call("skill_load", {"name": "nonsense"}), NOT_FOUND),
    "wrong arguments": (lambda s: s.call("skill_load", {"nam": "deploy"}), NOT_FOUND),
    "no object": (lambda s: s.call("skill_load", [1]), NOT_FOUND),
    "no such tool": (lambda s: s.call("format_disk", {}), NOT_FOUND),
    "read of nothing": (
        lambda s: s.call("skill_read", {"uri": "skill://deploy/nothing"}),
        DENIED,
    ),
    "a script that nobody allows": (lambda s: s.call("skill_run", {"name": "deploy", "script": "hello.sh"}), DENIED),
    "a command": (lambda s: s.command("/skill:deploy to production"), LOAD),
    "a command for nothing": (lambda s: s.command("/skill:nonsense"), NOT_FOUND),
    "a person looks": (lambda s: s.load("deploy"), LOAD),
    "a person looks for nothing": (lambda s: s.load("nonsense"), NOT_FOUND),
    "a person reads": (
        lambda s: s.read("skill://deploy"),
        ["tool_started", "permission_decided", "skill_read", "tool_ended"],
    ),
    "a prompt": (lambda s: s.system_prompt("You are helpful."), ["prompt_composed"]),
    "a tool of the host": (lambda s: s.decide("Bash", {"command": "ls"}), ["tool_decided"]),
    "an answer about a tool of the host": (lambda s: s.record_answer("Bash", "allow", "user"), ["tool_answered"]),
    "a tool of ours": (lambda s: s.decide("skill_load", {"name": "deploy"}), []),
    "a mention": (
        lambda s: s.resolve_mentions("use $deploy"),
        ["skill_mentioned", "permission_decided", "skill_invoked"],
    ),
    "no mention": (lambda s: s.resolve_mentions("costs $100"), []),
    "an activation": (
        lambda s: s.activate("deploy"),
        ["tool_started", "permission_decided", "skill_loaded", "skill_invoked", "skill_activated", "tool_ended"],
    ),
    "a failed activation": (lambda s: s.activate("nonsense"), NOT_FOUND),
    "compaction": (lambda s: s.compact(), ["context_compacted"]),
    "the end": (lambda s: s.close(), ["session_ended"]),
}


@pytest.mark.req("K-11", "K-39")
@pytest.mark.parametrize("name", ACTS)
def test_every_act_has_its_events_in_their_order(machine: Machine, name: str) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    act, expected = ACTS[name]
    assert types(record(machine, act)) == expected


@pytest.mark.req("K-11", "K-54")
def test_a_repeated_load_is_an_invocation_without_a_load(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")

    def twice(session: Session) -> None:
        session.call("skill_load", {"name": "deploy"})
        session.call("skill_load", {"name": "deploy"})

    again = record(machine, twice)[len(LOAD) :]

    assert types(again) == [kind for kind in LOAD if kind != "skill_loaded"]
    assert (again[2].repeat, again[2].mode, again[2].ref) == (True, "auto", "load-1")


@pytest.mark.req("K-54")
@pytest.mark.parametrize(
    ("act", "mode"),
    [
        (ACTS["load"][0], "auto"),
        (ACTS["a command"][0], "manual"),
        (ACTS["a mention"][0], "manual"),
        (ACTS["a person looks"][0], "manual"),
    ],
)
def test_mode_says_whether_a_model_or_a_person_invoked(
    machine: Machine, act: Callable[[Session], object], mode: str
) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    assert {event.mode for event in record(machine, act) if hasattr(event, "mode")} == {mode}


def test_preloaded_skills_are_recorded_where_the_session_begins(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    events: list[Any] = []

    machine.shelf().session(preload=["deploy"], on_event=events.append).close()

    assert types(events) == ["session_started", "skill_catalog_updated", *LOAD, "session_ended"]
    assert (events[0].preload, events[-3].mode, events[-1].events) == (["deploy"], "manual", 8)


def test_a_session_that_cannot_begin_is_ended_all_the_same(machine: Machine) -> None:
    events: list[Any] = []
    with pytest.raises(ConfigurationError):
        machine.shelf().session(preload=["nonsense"], on_event=events.append)
    assert types(events)[-3:] == ["tool_started", "tool_failed", "session_ended"]


def test_after_its_end_a_session_does_nothing_and_says_so(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    events: list[Any] = []
    with machine.shelf().session(on_event=events.append) as session:
        pass
    session.close()

    result = session.call("skill_load", {"name": "deploy"})

    assert result.error is not None
    assert result.error.message == "this session was closed"
    with pytest.raises(SkillError, match="closed"):
        session.load("deploy")
    assert types(events)[-1] == "session_ended"
    assert types(events).count("session_ended") == 1


# Contents -----------------------------------------------------------------------------------------


@pytest.mark.req("K-47", "K-48", "K-49", "K-52", "K-53")
def test_a_load_records_folder_frontmatter_and_digest(machine: Machine) -> None:
    path = put(machine.repo / ".agents/skills", "deploy", "colour: [red, 5]\nallowed-tools: Read\n")

    events = record(machine, lambda s: s.call("skill_load", {"name": "deploy", "args": "v2"}))

    assert payload_of(events[2]) == {
        "name": "deploy",
        "path": str(path),
        "dir": str(path.parent),
        "digest": digest_of(path.read_bytes()),
        "frontmatter": {
            "name": "deploy",
            "description": "Does deploy.",
            "colour": ["red", 5],
            "allowed-tools": "Read",
        },
    }
    assert payload_of(events[3]) == {
        "name": "deploy",
        "path": str(path),
        "mode": "auto",
        "args": "v2",
        "ref": "load-1",
        "effective_allowed_tools": ["Read"],
    }


def test_a_load_records_the_file_as_it_is_now_and_says_that_it_changed(machine: Machine) -> None:
    path = put(machine.repo / ".agents/skills", "deploy")
    events: list[Any] = []
    session = machine.shelf().session(on_event=events.append)
    path.write_text("---\nname: deploy\ndescription: New words.\n---\nNew body.\n")

    session.call("skill_load", {"name": "deploy"})

    (loaded,) = [event for event in events if type_of(event) == "skill_loaded"]
    assert loaded.digest == digest_of(path.read_bytes())
    assert loaded.frontmatter["description"] == "New words."
    assert [warning["rule"] for warning in loaded.warnings] == ["changed"]


@pytest.mark.req("K-49")
def test_a_read_records_the_digest_of_the_file(machine: Machine) -> None:
    path = put(machine.repo / ".agents/skills", "deploy").parent / "scripts/hello.sh"
    uri = "skill://deploy/scripts/hello.sh"

    events = record(machine, lambda s: s.call("skill_read", {"uri": uri}))

    data = path.read_bytes()
    assert payload_of(events[2]) == {
        "name": "deploy",
        "path": str(path),
        "uri": uri,
        "digest": digest_of(data),
        "size": len(data),
        "ref": "read-1",
    }


@pytest.mark.req("K-23", "K-46", "K-51", "K-55")
def test_a_collision_is_told_with_both_candidates_and_who_won(machine: Machine) -> None:
    lost = put(machine.home / ".agents/skills", "deploy")
    won = put(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "broken", "no frontmatter")
    events: list[Any] = []
    machine.shelf().session(on_event=events.append)

    updated, *warnings = events[1:]

    assert updated.count == 1
    assert updated.collisions == [{"name": "deploy", "path": str(lost), "by": str(won)}]
    assert [root["path"] for root in updated.roots] == events[0].roots
    told = {warning.kind: warning for warning in warnings}
    assert (told["name-collision"].name, told["name-collision"].path) == ("deploy", str(lost))
    assert str(won) in told["name-collision"].detail
    assert told["frontmatter-missing"].path.endswith("broken/SKILL.md")


def test_a_catalog_with_many_problems_tells_some_and_how_many_are_left(machine: Machine) -> None:
    for number in range(205):
        write_skill(machine.repo / ".agents/skills", f"broken-{number}", "no frontmatter")
    events: list[Any] = []
    machine.shelf().session(on_event=events.append)

    assert types(events).count("skill_warning") == 201
    assert events[-1].detail.startswith("5 more are not listed")


def test_a_catalog_that_changed_is_told_once_more_and_one_that_did_not_is_not(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    events: list[Any] = []
    shelf = machine.shelf()
    session = shelf.session(on_event=events.append)
    shelf.refresh()
    session.call("skill_load", {"name": "deploy"})
    put(machine.repo / ".agents/skills", "review")
    shelf.refresh()
    session.call("skill_load", {"name": "review"})

    assert [event.count for event in events if type_of(event) == "skill_catalog_updated"] == [1, 2]


@pytest.mark.parametrize("value", [float("nan"), 2**70, b"bytes", {1: 2}, object(), "\ud800", [[[[]]]]])
def test_whatever_a_host_passes_as_arguments_can_be_recorded(machine: Machine, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with machine.shelf().session(journal=path) as session:
        session.call("skill_load", {"name": value})
        session.call(str(value), value)

    lines = list(read(str(path)))
    assert [line.problem for line in lines] == [None] * len(lines)
    assert [line.record["type"] for line in lines if line.record].count("tool_failed") == 2


# The form -----------------------------------------------------------------------------------------


def test_every_event_and_every_member_is_documented_and_nothing_else() -> None:
    members = {member for kind in EVENTS.values() for member in get_type_hints(kind)}
    assert members == set(MEMBERS)
    assert [name for name, kind in EVENTS.items() if not kind.__doc__ or kind.__doc__.startswith(kind.__name__)] == []
    text = DOCS.read_text(encoding="utf-8")
    assert [name for name in EVENTS if f"## `{name}`" not in text] == []


def test_a_journal_fits_its_schema_and_its_events_come_back_equal(machine: Machine, tmp_path: Path) -> None:
    put(machine.repo / ".agents/skills", "deploy", "model: big\nallowed-tools: Read\n")
    put(machine.home / ".agents/skills", "deploy")
    path = tmp_path / "run.jsonl"
    events: list[Any] = []
    options: Any = {"policy": {"grant_from_skills": ["deploy"]}, "journal": path, "on_event": events.append}
    with machine.shelf().session(**options) as session:
        session.drop_result("t1", ["/skills/deploy/SKILL.md"])
        session.record_answer("Bash", "deny", "user")
        for act, _ in ACTS.values():
            with suppress(SkillError):
                act(session)

    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    validator = Draft202012Validator(SCHEMAS["event"])
    assert [error.message for entry in records for error in validator.iter_errors(entry)] == []
    # Only the journal has the list of a catalog.
    for entry in records:
        entry.pop("listed", None)
    assert [parse_event(entry) for entry in records] == events
    silent = {"tool_stdout", "tool_stderr", "skill_deactivated", "journal_continued"}
    assert {entry["type"] for entry in records} == set(EVENTS) - silent


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"type": "nonsense"},
        {"type": ["skill_loaded"]},
        {"type": "session_ended"},
        {"type": "session_ended", "events": "5"},
        {"type": "session_ended", "events": True},
        {"type": "session_ended", "events": 5, "more": 1},
        {"type": "context_compacted", "skills": [1]},
        {"type": "skill_invoked", "name": "a", "path": "b", "mode": "other"},
    ],
)
def test_what_is_no_event_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(NotAnEvent):
        parse_event(record)


# Without a listener -------------------------------------------------------------------------------


def test_a_journal_that_cannot_be_written_does_not_stop_the_session_and_is_said(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    with machine.shelf().session(journal="/nonexistent/run.jsonl") as session:
        assert session.call("skill_load", {"name": "deploy"}).ok

    assert session.journal_problem is not None
    assert session.journal_problem.startswith("8 events are not in the journal")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "lost"),
    [
        (("show", "deploy"), 0, 8),
        (("show", "nonsense"), 3, 5),
        (("read", "skill://deploy/nothing"), 3, 6),
        (("run", "deploy", "hello.sh"), 4, 6),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_command_says_once_that_its_journal_cannot_be_written_whether_it_fails_or_not(
    machine: Machine, words: tuple[str, ...], status: int, lost: int
) -> None:
    put(machine.home / ".agents/skills", "deploy")

    done = machine.run(*words, "--journal", "/nonexistent/run.jsonl")

    told = f"skillshelf: {lost} events are not in the journal: /nonexistent/run.jsonl: No such file or directory"
    assert done.returncode == status
    assert [line for line in done.stderr.splitlines() if "in the journal" in line] == [told]


def test_a_command_says_that_it_set_aside_what_a_crash_left_of_a_line(machine: Machine) -> None:
    put(machine.home / ".agents/skills", "deploy")
    (machine.repo / "run.jsonl").write_bytes(b'{"begun":')

    done = machine.run("show", "deploy", "--journal", "run.jsonl")

    assert done.returncode == 0
    assert f"the 9 bytes it left are in {machine.repo}/run.jsonl.torn" in done.stderr


def test_a_journal_that_could_not_be_forced_to_the_disk_is_said(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with machine.shelf().session(journal=machine.base / "run.jsonl", fsync="end") as session:
        pass

    assert session.journal_problem == f"{machine.base}/run.jsonl: not forced to the disk: {os.strerror(errno.EIO)}"


def test_contents_are_kept_only_beside_a_journal(machine: Machine, tmp_path: Path) -> None:
    path = put(machine.repo / ".agents/skills", "deploy")
    with pytest.raises(ConfigurationError):
        machine.shelf().session(keep=True)
    with machine.shelf().session(journal=tmp_path / "run.jsonl", keep=True) as session:
        session.call("skill_load", {"name": "deploy"})

    kept = tmp_path / "run.jsonl.d" / "sha256" / digest_of(path.read_bytes()).removeprefix("sha256:")
    assert kept.read_bytes() == path.read_bytes()
