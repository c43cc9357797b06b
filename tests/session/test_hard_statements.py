"""Statements that are easily broken without a word: each test here fails for a small change in the code."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.policies import put
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import Session
from skillshelf.catalog.load import digest_of
from skillshelf.journal.events import type_of
from skillshelf.journal.file import Journal, read
from skillshelf.journal.format import RESERVED

# Windows ------------------------------------------------------------------------------------------


@pytest.mark.req("K-34", "K-35")
def test_a_call_must_be_allowed_by_every_active_skill(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "one", "allowed-tools: Read Grep\n")
    put(machine.repo / ".agents/skills", "other", "allowed-tools: Read Write\n")
    events: list[Any] = []
    policy = {"allow": [{"tool": tool} for tool in ("Read", "Write", "Grep")]}
    session = machine.shelf().session(policy, on_event=events.append)
    session.call("skill_load", {"name": "one"})
    session.call("skill_load", {"name": "other"})

    verdicts = {tool: session.decide(tool, {}).verdict for tool in ("Read", "Write", "Grep")}
    recorded = [event.effective_allowed_tools for event in events if type_of(event) == "skill_invoked"]

    assert verdicts == {"Read": "allow", "Write": "deny", "Grep": "deny"}
    assert session.effective_allowed_tools == ("Read",)
    assert recorded == [["Read", "Grep"], ["Read"]]


@pytest.mark.req("K-36", "K-10")
def test_a_grant_by_name_is_not_for_an_untrusted_skill_that_the_user_let_in(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger", "allowed-tools: Bash\n")
    put(machine.home / ".agents/skills", "friend", "allowed-tools: Bash\n")
    policy = {"grant_from_skills": ["stranger", "friend"]}

    verdicts = {}
    for name in ("stranger", "friend"):
        session = machine.shelf(trust="ask").session(policy, confirm=lambda *_: True)
        assert session.call("skill_load", {"name": name}).ok
        verdicts[name] = session.decide("Bash", {"command": "ls"}).verdict

    assert verdicts == {"stranger": "confirm", "friend": "allow"}


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.req("C-74", "C-75")
def test_a_namesake_at_another_path_was_not_loaded(machine: Machine) -> None:
    one = put(machine.repo / ".agents/skills", "deploy")
    other = write_skill(machine.home / ".agents/skills", "deploy", one.read_bytes())
    for path in (one, other):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    session = machine.shelf("codelia").session()

    results = [session.call("skill_load", {"path": str(path)}) for path in (one, other, one)]

    assert [result.data["already_loaded"] for result in results] == [False, False, True]
    assert "Body of deploy." in results[1].text


@pytest.mark.req("C-75", "C-116")
def test_with_messages_a_reminder_needs_the_whole_text_among_them(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    session = machine.shelf().session(memory="messages")
    whole = session.call("skill_load", {"name": "deploy"}).text
    visible = {
        "nothing": set[str](),
        "the whole text": {digest_of(whole.encode())},
        "a shortened text": {digest_of(whole[:-1].encode())},
        "the file": {digest_of((machine.repo / ".agents/skills/deploy/SKILL.md").read_bytes())},
    }

    reminded = {
        what: session.call("skill_load", {"name": "deploy"}, visible=digests).data["already_loaded"]
        for what, digests in visible.items()
    }

    assert reminded == {"nothing": False, "the whole text": True, "a shortened text": False, "the file": False}


@pytest.mark.req("C-75")
def test_a_text_in_the_messages_that_this_session_did_not_send_is_sent(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    shelf = machine.shelf()
    whole = shelf.session().call("skill_load", {"name": "deploy"}).text

    new = shelf.session(memory="messages")

    assert new.call("skill_load", {"name": "deploy"}, visible={digest_of(whole.encode())}).text == whole


@pytest.mark.req("C-75", "C-116")
def test_without_a_memory_every_load_is_whole_and_none_is_recorded_as_a_repetition(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "deploy")
    events: list[Any] = []
    session = machine.shelf().session(memory="none", on_event=events.append)

    results = [session.call("skill_load", {"name": "deploy"}) for _ in range(3)]

    assert len({result.text for result in results}) == 1
    assert [result.data["already_loaded"] for result in results] == [False] * 3
    assert [event.repeat for event in events if type_of(event) == "skill_invoked"] == [False] * 3
    assert [type_of(event) for event in events if type_of(event) in ("context_compacted", "skill_deactivated")] == []


# Digests ------------------------------------------------------------------------------------------


@pytest.mark.req("K-49")
def test_the_digest_of_a_binary_file_is_that_of_its_bytes(machine: Machine) -> None:
    data = b"\x89PNG\r\n\x1a\n\xff\x00"
    skill = put(machine.repo / ".agents/skills", "deploy")
    (skill.parent / "logo.png").write_bytes(data)
    events: list[Any] = []
    session = machine.shelf().session(on_event=events.append)

    result = session.call("skill_read", {"uri": "skill://deploy/logo.png"})

    (event,) = [event for event in events if type_of(event) == "skill_read"]
    assert base64.b64encode(data).decode() in result.text
    assert (event.digest, event.size) == (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))


# Replay -------------------------------------------------------------------------------------------


def rewritten(path: Path, kind: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """Write the journal again with every event of a type changed, as an honest writer of those events would."""
    copy = Journal(str(path.with_suffix(".changed.jsonl")), session="x")
    for line in read(str(path)):
        assert line.record is not None
        payload = {key: value for key, value in line.record.items() if key not in RESERVED}
        if line.record["type"] == kind:
            change(payload)
        copy.append(line.record["type"], payload)
    copy.close()
    return Path(copy.path)


@pytest.fixture
def journal(machine: Machine) -> Path:
    """A session with a collision of names, a field that no profile knows, and two loads."""
    put(machine.repo / ".agents/skills", "deploy", "colour: red\nallowed-tools: Read\n")
    put(machine.home / ".agents/skills", "deploy")
    put(machine.home / ".agents/skills", "review")
    path = machine.base / "run.jsonl"

    def act(session: Session) -> None:
        session.call("skill_load", {"name": "deploy", "args": "now"})
        session.call("skill_load", {"name": "review"})
        session.call("skill_read", {"uri": "skill://deploy/scripts/hello.sh"})
        session.call("skill_search", {"query": "deploy"})

    with machine.shelf().session(journal=path) as session:
        act(session)
    return path


@pytest.mark.req("K-59")
@pytest.mark.parametrize(
    ("kind", "member", "change"),
    [
        ("session_started", "roots", lambda event: event["roots"].pop()),
        ("skill_catalog_updated", "roots", lambda event: event["roots"].reverse()),
        ("skill_catalog_updated", "collisions", lambda event: event["collisions"].clear()),
        ("skill_catalog_updated", "collisions", lambda event: event["collisions"][0].update(by="/elsewhere")),
        ("skill_catalog_updated", "count", lambda event: event.update(count=event["count"] + 1)),
        ("skill_loaded", "frontmatter", lambda event: event["frontmatter"].update(colour="blue")),
        ("skill_loaded", "dir", lambda event: event.update(dir="/elsewhere")),
        ("skill_loaded", "digest", lambda event: event.update(digest="sha256:" + "0" * 64)),
        ("skill_invoked", "effective_allowed_tools", lambda event: event.update(effective_allowed_tools=["Write"])),
        ("skill_invoked", "args", lambda event: event.update(args="later")),
        ("skill_read", "digest", lambda event: event.update(digest="sha256:" + "0" * 64)),
        ("permission_decided", "verdict", lambda event: event.update(verdict="deny")),
    ],
)
def test_replay_compares_every_member_of_an_event(
    machine: Machine, journal: Path, kind: str, member: str, change: Callable[[dict[str, Any]], object]
) -> None:
    same = skillshelf.replay(rewritten(journal, "", change), home=machine.home, env={})
    journal.with_suffix(".changed.jsonl").unlink()
    differs = skillshelf.replay(rewritten(journal, kind, change), home=machine.home, env={})

    assert same.differences == ()
    assert [member in difference.detail for difference in differs.differences] == [True]
