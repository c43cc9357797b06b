"""A journal gives back the session it tells of, and repeating it shows what is different, running nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schemas import SCHEMAS
from support.policies import put
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import ConfigurationError, Replay, Session, SkillError
from skillshelf.catalog.load import digest_of
from skillshelf.core.values import CatalogSkill
from skillshelf.journal.events import type_of
from skillshelf.journal.file import Journal, verify
from skillshelf.journal.format import RESERVED

POLICY = {
    "allow": [{"tool": "skill_run", "skill_name": "deploy"}],
    "deny": [{"tool": "skill_load", "skill_name": "secret"}],
    "run_unsandboxed": True,
}


def prepare(machine: Machine) -> Path:
    """Four skills, one of them with a script that leaves a mark; returns the folder of that one."""
    for name in ("review", "secret"):
        put(machine.home / ".agents/skills", name)
    put(machine.repo / ".agents/skills", "stranger")
    skill = put(machine.home / ".agents/skills", "deploy", "model: big\nallowed-tools: Bash(git:*) Read\n").parent
    (skill / "scripts/mark.sh").write_text('#!/bin/sh\necho "ran with $1"\necho careful >&2\nexit 3\n')
    (skill / "notes.md").write_text("Notes.\n")
    return skill


def everything(session: Session) -> None:
    """Loads, reads, denied calls, a script, and all that a user and a host do."""
    session.system_prompt("You are helpful.")
    session.call("skill_load", {"name": "deploy", "args": "v2"})
    session.call("skill_load", {"name": "deploy", "args": "v2"})
    session.call("skill_read", {"uri": "skill://deploy/notes.md"})
    session.call("skill_load", {"name": "secret"})
    session.call("skill_load", {"name": "stranger"})
    session.call("skill_load", {"nam": 5})
    session.call("skill_search", {"query": "deploy"})
    session.call("skill_run", {"name": "deploy", "script": "mark.sh", "args": ["a"]})
    session.command("/skill:review the code")
    session.command("/skill:nonsense")
    session.resolve_mentions("$review and $deplo")
    session.decide("Bash", {"command": "git status"})
    session.decide("Write", {"content": "x" * 10_000})
    session.compact()
    session.call("skill_load", {"name": "deploy", "args": "v2"})
    session.activate("stranger")
    session.deactivate("review")
    session.load("review")
    session.read("skill://review")
    with suppress(SkillError):
        session.load("nonsense")


def recorded(machine: Machine, act: Callable[[Session], object] = everything, **options: Any) -> tuple[Path, Session]:
    """The journal of a session in which the user says yes, and the session."""
    path = machine.base / "run.jsonl"
    given: Any = {"policy": POLICY, "confirm": lambda *_: True, **options}
    session = machine.shelf(trust="ask").session(journal=path, **given)
    act(session)
    session.close()
    return path, session


def again(machine: Machine, path: Path, **options: Any) -> Replay:
    """The journal repeated on the machine."""
    return skillshelf.replay(path, home=machine.home, env={}, **options)


def rewritten(machine: Machine, events: list[dict[str, Any]]) -> Path:
    """A journal with these events, chained again."""
    path = machine.base / "rewritten.jsonl"
    journal = Journal(str(path), session="x")
    for event in events:
        journal.append(event["type"], {key: value for key, value in event.items() if key not in RESERVED})
    journal.close()
    return path


# State --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("K-59")
def test_the_state_of_a_session_comes_back_from_its_events_alone(machine: Machine) -> None:
    prepare(machine)
    path, session = recorded(machine, preload=["review"])
    snapshot = session.snapshot()

    state = again(machine, path).state

    assert state.profile == snapshot["profile"]
    assert list(state.active) == snapshot["active"]
    assert list(state.preloaded) == snapshot["preloaded"]
    assert list(state.asked_for) == snapshot["asked_for"]
    sent = [
        {key: value for key, value in entry.items() if key not in ("mtime_ms", "whole")} for entry in snapshot["loaded"]
    ]
    assert list(state.loaded) == sent
    assert [entry["uri"] for entry in state.read] == ["skill://deploy/notes.md", "skill://review"]
    assert (state.denied, state.ended) == (1, True)


@pytest.mark.slow
def test_the_state_needs_no_disk(machine: Machine) -> None:
    prepare(machine)
    path, _ = recorded(machine)
    here = again(machine, path)
    elsewhere = skillshelf.replay(path, home=machine.base / "nowhere", env={}, cwd=machine.base)

    assert elsewhere.state == here.state
    assert elsewhere.differences


# Repeating ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.req("K-59", "K-60", "K-50", "K-39")
def test_a_session_with_loads_reads_refusals_and_a_script_replays_equal(machine: Machine) -> None:
    prepare(machine)
    path, _ = recorded(machine)
    assert again(machine, path).differences == ()


@pytest.mark.parametrize("profile", ["standard", "strict", "codelia", "swiftagent", "mycodeagent", "rip", "omp"])
def test_a_session_of_every_profile_replays_equal(machine: Machine, profile: str) -> None:
    roots = {"mycodeagent": "skills", "swiftagent": ".agent/skills", "omp": ".omp/skills"}
    put(machine.repo / roots.get(profile, ".agents/skills"), "deploy")
    path = machine.base / "run.jsonl"
    tools = {"mycodeagent": "Skill", "swiftagent": "activate_skill", "omp": "read"}
    given = {"swiftagent": {"skillName": "deploy"}, "omp": {"path": "skill://deploy"}}
    with machine.shelf(profile).session(journal=path) as session:
        for _ in range(2):
            assert session.call(tools.get(profile, "skill_load"), given.get(profile, {"name": "deploy"})).ok
        session.command("/skill:deploy now")
        session.load("deploy")
        session.read("skill://deploy/scripts/hello.sh")

    assert again(machine, path, trust="all").differences == ()


@pytest.mark.slow
def test_a_script_that_changed_is_shown_by_the_digest_that_was_allowed(machine: Machine) -> None:
    mark = prepare(machine) / "scripts/mark.sh"
    path, _ = recorded(machine, lambda s: s.call("skill_run", {"name": "deploy", "script": "mark.sh"}))
    mark.write_text("#!/bin/sh\necho other\n")

    (difference,) = again(machine, path).differences

    assert difference.detail == "permission_decided of deploy: digest, tree differ"


@pytest.mark.slow
@pytest.mark.req("K-59")
def test_one_byte_of_one_skill_is_all_that_is_shown(machine: Machine) -> None:
    skill = prepare(machine)
    path, _ = recorded(machine)
    text = (skill / "SKILL.md").read_text()
    (skill / "SKILL.md").write_text(text.replace("Body of", "body of"))

    (difference,) = again(machine, path).differences

    assert difference.detail == "skill_loaded of deploy: digest differs"
    assert difference.recorded is not None
    assert difference.repeated is not None
    different = {key for key in difference.recorded if difference.recorded[key] != difference.repeated.get(key)}
    assert different == {"digest"}
    assert json.loads(path.read_text().splitlines()[difference.line - 1])["type"] == "skill_loaded"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["SKILL.md", "notes.md"])
def test_contents_that_were_kept_stand_for_files_that_changed(machine: Machine, what: str) -> None:
    skill = prepare(machine)
    path, _ = recorded(machine, keep=True)
    text = (skill / what).read_text()
    (skill / what).write_text(text.replace("otes", "OTES").replace("Body of", "body of"))

    assert again(machine, path).differences == ()
    assert len(again(machine, path, kept=False).differences) == 1


@pytest.mark.slow
def test_a_kept_content_that_somebody_changed_is_not_taken(machine: Machine) -> None:
    skill = prepare(machine)
    path, _ = recorded(machine, keep=True)
    (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text().replace("Body of", "body of"))
    for kept in (machine.base / "run.jsonl.d/sha256").iterdir():
        kept.write_bytes(b"---\nname: deploy\ndescription: Does deploy.\n---\nDo evil.\n")

    assert again(machine, path).differences


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda m, s: (s / "SKILL.md").unlink(), "skill_catalog_updated: count, roots, digest differ"),
        (lambda m, s: (s / "notes.md").unlink(), "tool_ended: text_digest, text_bytes differ"),
        (lambda m, s: write_skill(m.repo / ".agents/skills", "new"), "skill_catalog_updated: count, roots differ"),
    ],
    ids=["a skill is gone", "a file is gone", "a skill is new"],
)
def test_what_is_different_on_the_disk_is_said_in_words(
    machine: Machine, change: Callable[[Machine, Path], object], detail: str
) -> None:
    skill = prepare(machine)
    path, _ = recorded(machine)
    change(machine, skill)

    (difference,) = again(machine, path).differences

    assert difference.detail.startswith(detail)


def test_a_project_that_moved_replays_equal(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    path, _ = recorded(machine, lambda session: session.call("skill_load", {"name": "deploy"}))
    moved = machine.base / "elsewhere"
    machine.repo.rename(moved)

    assert again(machine, path, cwd=moved).differences == ()
    (difference,) = again(machine, path).differences
    assert "name one with --cwd" in difference.detail


def test_answers_come_from_the_journal_and_the_users_rules_of_today_do_not_count(machine: Machine) -> None:
    prepare(machine)
    answers: Any = iter([False, "remember", True])
    load, uri = {"name": "stranger"}, {"uri": "skill://stranger/scripts/hello.sh"}

    def act(session: Session) -> None:
        for _ in range(3):
            session.call("skill_load", load)
        for _ in range(2):
            session.call("skill_read", uri)

    path, _ = recorded(machine, act, confirm=lambda *_: next(answers))
    machine.configure("[[permissions.deny]]\ntool = 'skill_load'\nskill_name = 'review'\n")
    approvals = machine.home / ".local/state/skillshelf/approvals.json"
    approvals.unlink()

    assert again(machine, path).differences == ()
    assert not approvals.exists()


def test_sessions_that_share_a_journal_are_told_apart(machine: Machine) -> None:
    prepare(machine)
    path = machine.base / "run.jsonl"
    shelf = machine.shelf(trust="ask")
    with shelf.session(journal=path) as one, shelf.session(journal=path) as other:
        one.call("skill_load", {"name": "deploy"})
        other.call("skill_load", {"name": "review"})
        one.call("skill_load", {"name": "review"})

    found = again(machine, path)

    assert found.differences == ()
    assert [[sent["name"] for sent in state.loaded] for state in found.sessions] == [["deploy", "review"], ["review"]]


def test_a_session_that_goes_on_from_a_snapshot_is_not_repeated_and_that_is_said(machine: Machine) -> None:
    prepare(machine)
    _, session = recorded(machine, lambda s: s.call("skill_load", {"name": "deploy"}))
    path = machine.base / "more.jsonl"
    shelf = machine.shelf(trust="ask")
    from skillshelf.session.recorder import RecordingOptions

    Session.restore(session.snapshot(), shelf, recording=RecordingOptions(str(path))).close()

    found = again(machine, path)

    assert found.differences == ()
    assert "goes on from a snapshot" in found.skipped[0]


@pytest.mark.slow
def test_a_journal_whose_end_is_open_is_compared_as_far_as_it_goes(machine: Machine) -> None:
    prepare(machine)
    path, _ = recorded(machine)
    lines = path.read_text().splitlines(keepends=True)
    for number in range(1, len(lines), 5):
        path.write_text("".join(lines[:number]))
        assert again(machine, path).differences == ()


# What the model got ---------------------------------------------------------------------------------


def what_the_model_gets(session: Session) -> None:
    """A prompt, a load and a search."""
    session.system_prompt("You are helpful.")
    session.call("skill_load", {"name": "deploy"})
    session.call("skill_search", {"query": "deploy a release"})


def _add_a_file(machine: Machine, skill: Path) -> None:
    (skill / "references").mkdir()
    (skill / "references/more.md").write_text("More.\n")


def _edit_a_body(machine: Machine, skill: Path) -> None:
    other = machine.home / ".agents/skills/review/SKILL.md"
    other.write_text(other.read_text() + "Deploy a release, deploy a release.\n")


@pytest.mark.req("K-59", "K-49")
@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (_add_a_file, "tool_ended: text_digest, text_bytes differ"),
        (_edit_a_body, "tool_ended: text_digest, text_bytes differ"),
    ],
    ids=["a file added to a skill", "another answer of a search"],
)
def test_a_text_that_a_model_would_not_get_today_is_a_difference(
    machine: Machine, change: Callable[[Machine, Path], None], detail: str
) -> None:
    skill = prepare(machine)
    path, _ = recorded(machine, what_the_model_gets)
    assert again(machine, path).differences == ()
    change(machine, skill)

    (difference,) = again(machine, path).differences

    assert difference.detail == detail


@pytest.mark.req("K-59")
def test_a_prompt_whose_budget_changed_is_a_difference(machine: Machine) -> None:
    prepare(machine)
    path = machine.base / "run.jsonl"
    with machine.shelf("omp", trust="ask").session(journal=path) as session:
        session.system_prompt("base", tools=["bash"])
        session.system_prompt("base", tools=["bash"])
        session.system_prompt("another base", tools=["bash", "read"])
    events = [json.loads(line) for line in path.read_text().splitlines()]
    composed = [event for event in events if event["type"] == "prompt_composed"]
    assert [(event["bytes"] > 0, event.get("read_tool", True)) for event in composed] == [(False, False), (True, True)]
    assert composed[0]["base_digest"] == digest_of(b"base")
    assert again(machine, path).differences == ()
    composed[1]["digest"] = digest_of(b"another renderer")

    (difference,) = again(machine, rewritten(machine, events)).differences

    assert difference.detail == "prompt_composed: digest differs"


@pytest.mark.req("K-59")
@pytest.mark.parametrize("profile", ["standard", "mycodeagent"])
def test_a_changed_renderer_is_a_difference(machine: Machine, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillshelf.session import render

    put(machine.repo / {"mycodeagent": "skills"}.get(profile, ".agents/skills"), "deploy")
    path = machine.base / "run.jsonl"
    tool = {"mycodeagent": "Skill"}.get(profile, "skill_load")
    with machine.shelf(profile).session(journal=path) as session:
        session.call(tool, {"name": "deploy"})
        session.call(tool, {"name": "nonsense"})
        session.load("deploy")
    assert again(machine, path, trust="all").differences == ()
    form: Any = {"mycodeagent": "envelope"}.get(profile, "skill-content")
    changed = render.FORMS[form]._replace(write=lambda context, body: "another text")
    forms: Any = {**render.FORMS, form: changed}
    monkeypatch.setattr(render, "FORMS", forms)

    (difference,) = again(machine, path, trust="all").differences

    assert difference.detail == "tool_ended: text_digest, text_bytes differ"


@pytest.mark.req("K-59")
@pytest.mark.parametrize(
    ("kind", "member", "value"),
    [
        ("skill_loaded", "frontmatter", {"name": "deploy", "description": "Does something else."}),
        ("session_started", "roots", ["/elsewhere/skills"]),
        ("skill_catalog_updated", "roots", []),
        ("skill_catalog_updated", "collisions", []),
        ("tool_ended", "text_digest", digest_of(b"another text")),
        ("tool_ended", "text_bytes", 1),
        ("tool_failed", "text_digest", digest_of(b"another text")),
        ("tool_decided", "verdict", "deny"),
        ("prompt_composed", "entries", 77),
        ("session_started", "memory", "none"),
    ],
)
def test_a_member_that_replay_does_not_repeat_is_a_difference(
    machine: Machine, kind: str, member: str, value: Any
) -> None:
    put(machine.home / ".agents/skills", "deploy")
    put(machine.home / ".claude/skills", "deploy")

    def act(session: Session) -> None:
        what_the_model_gets(session)
        session.call("skill_load", {"name": "deplo"})
        session.call("skill_load", {"name": "deploy"})
        session.decide("Bash", {"command": "ls"})

    path, _ = recorded(machine, act)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    event = next(event for event in events if event["type"] == kind)
    assert event.get(member) != value
    event[member] = value

    (difference,) = again(machine, rewritten(machine, events)).differences

    assert kind == "session_started" or member in difference.detail


@pytest.mark.req("K-49")
def test_the_digest_of_a_binary_file_that_was_read_is_of_its_bytes(machine: Machine) -> None:
    skill = prepare(machine)
    data = bytes(range(256))
    (skill / "logo.png").write_bytes(data)
    events: list[Any] = []
    with machine.shelf().session(on_event=events.append) as session:
        result = session.call("skill_read", {"uri": "skill://deploy/logo.png"})

    (read,) = [event for event in events if type_of(event) == "skill_read"]
    (ended,) = [event for event in events if type_of(event) == "tool_ended"]
    assert (read.digest, read.size) == (digest_of(data), len(data))
    assert (ended.text_digest, ended.text_bytes) == (digest_of(result.text.encode()), len(result.text))


@pytest.mark.req("K-49")
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("skill_load", {"name": "deploy", "args": "v2"}),
        ("skill_load", {"name": "deplo"}),
        ("skill_search", {"query": "deploy"}),
        ("skill_read", {"uri": "skill://deploy/notes.md"}),
        ("nonsense", {}),
    ],
)
def test_every_call_is_recorded_with_the_digest_of_its_text(machine: Machine, tool: str, given: Any) -> None:
    prepare(machine)
    events: list[Any] = []
    with machine.shelf().session(on_event=events.append) as session:
        text = session.call(tool, given).text.encode()

    ended = events[-2]
    assert (ended.text_digest, ended.text_bytes) == (digest_of(text), len(text))


def test_the_text_of_an_envelope_is_recorded_without_its_time(machine: Machine) -> None:
    put(machine.repo / "skills", "deploy")
    events: list[Any] = []
    with machine.shelf("mycodeagent").session(on_event=events.append) as session:
        result = session.call("Skill", {"name": "deploy"})

    envelope = json.loads(result.text)
    envelope["stats"]["time_ms"] = 0
    text = json.dumps(envelope, indent=2, ensure_ascii=False).encode()
    assert events[-2].text_digest == digest_of(text)


# Memory -------------------------------------------------------------------------------------------


def messages(session: Session) -> None:
    """A load, a load that the model still sees, and one after its messages were trimmed."""
    sent = session.call("skill_load", {"name": "deploy"})
    seen = {digest_of(sent.text.encode())}
    assert session.call("skill_load", {"name": "deploy"}, visible=seen).data["already_loaded"]
    assert not session.call("skill_load", {"name": "deploy"}, visible=()).data["already_loaded"]


@pytest.mark.req("K-59")
@pytest.mark.parametrize("memory", ["messages", "none"])
def test_a_session_without_a_memory_of_its_own_replays_equal(machine: Machine, memory: str) -> None:
    prepare(machine)

    def load_twice(session: Session) -> None:
        for _ in range(2):
            assert not session.call("skill_load", {"name": "deploy"}).data["already_loaded"]

    path, _ = recorded(machine, messages if memory == "messages" else load_twice, memory=memory)

    assert again(machine, path).differences == ()


@pytest.mark.req("K-59")
@pytest.mark.parametrize("memory", ["messages", "none"])
def test_a_reminder_of_a_text_that_was_never_sent_is_a_difference(machine: Machine, memory: str) -> None:
    prepare(machine)
    path, _ = recorded(machine, messages, memory="messages")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    ended = next(n for n, event in enumerate(events) if event["type"] == "tool_ended")
    (first,) = [event for event in events[:ended] if event["type"] == "skill_invoked"]
    first["repeat"] = True
    events[0]["memory"] = memory
    kept = [event for event in events if event["type"] not in ("skill_loaded", "override_proposed")]
    path = rewritten(machine, kept)

    (difference,) = again(machine, path).differences

    assert difference.detail == "the journal has skill_invoked, here it is skill_loaded"


def test_a_journal_says_whom_a_session_served(machine: Machine) -> None:
    prepare(machine)
    given = {"client": "editor 1.2", "subject": "user-7", "per_request": True, "memory": "none"}
    path, _ = recorded(machine, lambda session: None, **given)

    first = json.loads(path.read_text().splitlines()[0])

    assert {key: first[key] for key in given} == given
    assert again(machine, path).differences == ()


def types_in(path: Path) -> list[str]:
    """Return the types of the events in a journal."""
    return [json.loads(line)["type"] for line in path.read_text().splitlines()] if path.exists() else []


def test_a_session_of_one_request_records_what_it_is_about_to_do_before_it_does_it(machine: Machine) -> None:
    prepare(machine)
    path = machine.base / "request.jsonl"
    before: list[str] = []

    class Witness:
        def score(self, query: str, skills: Sequence[CatalogSkill]) -> Sequence[float]:
            before.extend(types_in(path))
            return [0.0] * len(skills)

    shelf = machine.shelf("standard", trust="all")
    shelf.scorer = Witness()
    session = shelf.session(journal=str(path), per_request=True, memory="none")
    session.call("skill_search", {"query": "release"})
    session.close()

    assert before == ["session_started", "skill_catalog_updated", "tool_started", "permission_decided"]
    assert types_in(path) == [*before, "tool_ended", "session_ended"]
    assert verify(str(path)).ok


# Strangers ----------------------------------------------------------------------------------------

STARTED: dict[str, Any] = {
    "profile": "standard",
    "roots": [],
    "policy": {"name": "full-auto", "run_unsandboxed": True, "run_network": True},
    "trust": "all",
    "version": "0.1.0",
}


def forged(machine: Machine, *events: tuple[str, dict[str, Any]], **started: Any) -> Path:
    """A journal that a stranger wrote."""
    path = machine.base / "forged.jsonl"
    journal = Journal(str(path), session="x")
    journal.append("session_started", {**STARTED, "cwd": str(machine.repo), **started})
    for kind, payload in events:
        journal.append(kind, payload)
    journal.close()
    return path


@pytest.mark.slow
@pytest.mark.req("K-60")
def test_a_journal_that_would_run_and_remember_does_neither(reachable_machine: Machine) -> None:
    skill = prepare(reachable_machine)
    out = reachable_machine.base / "out"
    out.mkdir()
    # A script of root's runs as a user of its own, who must be able to write there.
    out.chmod(0o777)
    (skill / "scripts/mark.sh").write_text(f"#!/bin/sh\necho ran > {out}/ran\n")
    policy = {"allow": [{"tool": "skill_run"}], "run_write": [str(out)], "run_unsandboxed": True}

    def run_and_remember(session: Session) -> None:
        assert session.call("skill_run", {"name": "deploy", "script": "mark.sh"}).ok
        assert session.call("skill_load", {"name": "stranger"}).ok

    path, _ = recorded(reachable_machine, run_and_remember, policy=policy, confirm=lambda *_: "remember")
    (out / "ran").unlink()
    (reachable_machine.home / ".local/state/skillshelf/approvals.json").unlink()
    before = sorted(str(path) for path in reachable_machine.base.rglob("*"))

    found = again(reachable_machine, path)

    assert found.differences == ()
    assert sorted(str(path) for path in reachable_machine.base.rglob("*")) == before


@pytest.mark.parametrize("args", [5, {"a": 1}, "a b", True])
def test_arguments_that_are_no_list_in_a_journal_are_a_difference(machine: Machine, args: object) -> None:
    prepare(machine)
    path, _ = recorded(machine, lambda session: session.call("skill_load", {"name": "deploy"}))
    records = [json.loads(line) for line in path.read_text().splitlines()]
    events = [(r["type"], {k: v for k, v in r.items() if k not in RESERVED}) for r in records]
    begun = [kind for kind, _ in events].index("tool_started")
    given = {"name": "deploy", "script": "hello.sh", "args": args}
    events[begun][1].update(name="skill_run", args=given, mode="manual")
    copy = Journal(str(machine.base / "strange.jsonl"), session="x")
    for kind, payload in events:
        copy.append(kind, payload)

    (difference,) = again(machine, Path(copy.path)).differences

    assert (difference.line, difference.detail) == (begun + 1, "tool_started of skill_run: args differs")


def test_a_session_whose_beginning_is_gone_is_a_difference(machine: Machine) -> None:
    prepare(machine)
    path, _ = recorded(machine, lambda session: session.call("skill_load", {"name": "deploy"}))
    path.write_bytes(path.read_bytes().partition(b"\n")[2])

    (difference,) = again(machine, path).differences

    assert (difference.line, difference.detail) == (1, "the session has no beginning in this journal")
    assert machine.run("log", "replay", str(path)).returncode == 1


def test_a_journal_that_cannot_be_read_is_said_with_its_reason(machine: Machine) -> None:
    done = machine.run("log", "replay", str(machine.repo))
    assert (done.returncode, done.stderr) == (
        5,
        f"skillshelf: Failed to read file '{machine.repo}': it is a folder, not a file\n",
    )


def test_a_projects_configuration_does_not_count_because_a_journal_says_so(machine: Machine) -> None:
    outside = machine.base / "outside"
    put(outside, "loot")
    (machine.repo / "skillshelf.toml").write_text(f"skills.custom_directories = ['{outside}']\n")
    path = forged(machine, ("skill_catalog_updated", {"count": 1, "roots": [], "digest": "x"}))

    (difference,) = again(machine, path).differences

    assert str(outside) not in json.dumps(difference.repeated)


@pytest.mark.parametrize(
    "started",
    [
        {"cwd": "/nonexistent"},
        {"cwd": "relative"},
        {"cwd": "/etc/\0passwd"},
        {"cwd": ""},
        {"profile": "nonsense"},
        {"policy": {"name": "yolo"}},
        {"policy": {"allow": [{"tool": "*"}]}},
        {"policy": {"allow": 5}},
        {"preload": ["nonsense"]},
    ],
)
def test_a_session_that_cannot_begin_here_is_a_difference(machine: Machine, started: dict[str, Any]) -> None:
    found = again(machine, forged(machine, ("session_ended", {"events": 2}), **started))
    assert len(found.differences) == 1


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("tool_started", {"tool_id": "t1", "name": "skill_run", "args": {"name": 5, "args": "x"}, "mode": "manual"}),
        ("tool_started", {"tool_id": "t1", "name": "skill_load", "args": [], "mode": "manual"}),
        ("tool_started", {"tool_id": "t1", "name": "skill_read", "args": {"uri": "/etc/passwd"}, "mode": "manual"}),
        ("tool_started", {"tool_id": "t1", "name": "activate", "args": {"path": "/etc"}, "mode": "manual"}),
        ("tool_started", {"tool_id": "t1", "name": "nonsense", "args": {}, "mode": "manual"}),
        ("tool_started", {"tool_id": "t1", "name": "x", "args": {}, "mode": "manual", "command": "rm -rf /"}),
        ("tool_started", {"tool_id": 5}),
        ("skill_mentioned", {"names": ["$(x)", "a b"]}),
        ("skill_deactivated", {"name": "x", "path": "y"}),
        ("nonsense", {}),
        ("session_started", {}),
    ],
)
def test_no_event_of_a_stranger_makes_replay_fail(machine: Machine, kind: str, payload: dict[str, Any]) -> None:
    prepare(machine)
    found = again(machine, forged(machine, (kind, payload)))
    assert found.differences


def test_a_file_that_is_no_journal_has_broken_lines(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n{}\n")
    found = again(machine, path)
    assert [difference.line for difference in found.differences] == [1, 2]
    with pytest.raises(ConfigurationError):
        again(machine, tmp_path / "nothing")


# The command --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_exits_with_1_and_shows_the_difference(machine: Machine) -> None:
    skill = prepare(machine)
    path, _ = recorded(machine)
    same = machine.run("log", "replay", str(path))
    (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text().replace("Body of", "body of"))
    other = machine.run("log", "replay", str(path))
    form = machine.run("log", "replay", str(path), "--json")

    assert (same.returncode, same.stdout) == (0, f"{path}: 1 session, no difference\n")
    assert (other.returncode, other.stderr) == (1, "")
    lines = other.stdout.splitlines()
    assert lines[0] == f"{path}: 1 session, 1 difference"
    assert lines[1].endswith("skill_loaded of deploy: digest differs")
    assert [line.split()[0] for line in lines[2:]] == ["digest", "journal", "here"]
    Draft202012Validator(SCHEMAS["log-replay"]).validate(json.loads(form.stdout))
    assert machine.run("log", "replay", str(machine.base / "nothing")).returncode == 3


# Calls that are repeated as they were made ---------------------------------------------------------


@pytest.mark.req("K-59")
@pytest.mark.parametrize("given", [[], "", 0, False, [1], {"name": 10**30}, {"name": "review", "offset": 10**30}])
def test_arguments_that_are_no_object_or_too_large_are_recorded_as_they_were_given(
    machine: Machine, given: object
) -> None:
    prepare(machine)
    path, _ = recorded(machine, lambda session: session.call("skill_load", given))

    assert again(machine, path).differences == ()


@pytest.mark.req("K-59")
def test_a_skill_that_a_host_passes_on_twice_replays_equal(machine: Machine) -> None:
    prepare(machine)

    def act(session: Session) -> None:
        session.load("deploy", for_model=True)
        session.load("deploy", for_model=True)
        assert not session.call("skill_load", {"name": "deploy"}).data["already_loaded"]
        session.load("deploy", for_model=True)

    path, _ = recorded(machine, act)

    assert again(machine, path).differences == ()


@pytest.mark.req("K-59", "C-50")
def test_a_file_of_one_of_two_skills_of_a_name_that_a_host_reads_replays_equal(machine: Machine) -> None:
    files = [put(base / ".agents/skills", "twin") for base in (machine.home, machine.repo)]
    path = machine.base / "run.jsonl"
    with machine.shelf("codelia").session(journal=path) as session:
        for file in files:
            for uri in ("skill://twin", "skill://twin/SKILL.md", "skill://twin/scripts/hello.sh"):
                session.read(uri, path=str(file), for_model=True)
                session.read(uri, path=str(file))

    assert again(machine, path).differences == ()


@pytest.mark.req("K-59", "C-50")
def test_one_of_two_active_skills_of_a_name_is_deactivated_alone(machine: Machine) -> None:
    files = [put(base / ".agents/skills", "twin") for base in (machine.home, machine.repo)]
    path = machine.base / "run.jsonl"
    with machine.shelf("codelia").session(journal=path) as session:
        for file in files:
            session.call("skill_load", {"path": str(file)})
        session.deactivate("twin", path=str(files[1]))
        assert session.snapshot()["active"] == [str(files[0])]

    found = again(machine, path)

    assert found.differences == ()
    assert found.state.active == (str(files[0]),)


@pytest.mark.req("K-59")
def test_a_call_with_an_absolute_path_is_repeated_where_the_project_moved_to(machine: Machine) -> None:
    folder = put(machine.repo / ".agents/skills", "deploy").parent
    path = machine.base / "run.jsonl"
    with machine.shelf().session(journal=path) as session:
        assert session.call("skill_load", {"path": str(folder)}).ok
        session.call("skill_load", {"path": str(folder / "nothing")})
        session.deactivate("deploy")
        session.resume(str(folder / "SKILL.md"))
    machine.repo.rename(machine.base / "moved")

    assert again(machine, path, cwd=machine.base / "moved").differences == ()


@pytest.mark.req("K-59")
def test_the_order_of_the_parameters_in_an_envelope_is_no_difference(machine: Machine) -> None:
    put(machine.repo / "skills", "deploy")
    path = machine.base / "run.jsonl"
    with machine.shelf("mycodeagent").session(journal=path) as session:
        assert session.call("Skill", {"name": "deploy", "args": "now"}).ok
        session.call("Skill", {"name": {"z": 1, "a": 2}})

    assert again(machine, path).differences == ()


@pytest.mark.req("K-59")
def test_a_warning_of_a_host_is_taken_from_the_journal(machine: Machine) -> None:
    prepare(machine)
    path, _ = recorded(machine, lambda session: session.warn("budget", "the answer was expensive"))

    assert again(machine, path).differences == ()


@pytest.mark.req("K-59")
def test_approvals_that_could_not_be_read_are_warned_of_again(machine: Machine) -> None:
    prepare(machine)
    file = machine.home / ".local/state/skillshelf/approvals.json"
    file.parent.mkdir(parents=True)
    file.write_text("{broken")

    def act(session: Session) -> None:
        session.tools()
        session.decide("skill_load", {"name": "stranger"})
        session.call("skill_load", {"name": "stranger"})

    path, _ = recorded(machine, act)

    assert '"kind":"approvals"' in path.read_text()
    file.unlink()
    assert again(machine, path).differences == ()


@pytest.mark.req("K-59")
def test_a_skill_that_a_host_reads_where_reading_is_loading_replays_equal(machine: Machine) -> None:
    put(machine.repo / ".omp/skills", "deploy")
    path = machine.base / "run.jsonl"
    with machine.shelf("omp").session(journal=path) as session:
        session.call("read", {"path": "skill://deploy"})
        session.read("skill://deploy", for_model=True)
        session.read("skill://deploy/SKILL.md", for_model=True)
        session.call("read", {"path": "skill://deploy"})

    assert again(machine, path).differences == ()


def test_the_name_of_a_tool_that_cannot_be_encoded_is_recorded_as_it_is_answered(machine: Machine) -> None:
    prepare(machine)
    path, _ = recorded(machine, lambda session: session.call("\ud800", {}))

    assert again(machine, path).differences == ()
