"""Every entry takes the steps of its row: its events in their order, what becomes active, what is reminded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, get_args

import pytest
from support.scenario import SYSTEMS
from support.trees import Machine, write_skill

from skillshelf import PermissionDenied, Session, Shelf
from skillshelf.journal.events import Event, payload_of, type_of
from skillshelf.session.entries import ENTRIES, EntryName

TEXT = """---
name: deploy
description: Deploys.
allowed-tools: Read
model: big
{more}---
Deploy it.
"""
USED = ["permission_decided", "skill_loaded", "override_proposed", "skill_invoked"]
REMINDED = ["permission_decided", "skill_invoked"]
READ = ["permission_decided", "skill_loaded", "override_proposed", "skill_read", "skill_invoked"]
ACTIVATED = [*USED, "skill_activated"]
MENTIONED = ["permission_decided", "skill_invoked"]
RESUMED = ACTIVATED[1:]


class Way(NamedTuple):
    """A way to take an entry, and what one sees of it in the events of a first and a second time."""

    take: Callable[[Session], object]
    first: list[str]
    second: list[str]
    tool: str | None
    profile: str = "standard"


WAYS: dict[EntryName, Way] = {
    "tool_load": Way(lambda s: s.call("skill_load", {"name": "deploy"}), USED, REMINDED, "skill_load"),
    "tool_read": Way(lambda s: s.call("read", {"path": "skill://deploy"}), USED, USED, "read", "omp"),
    "command": Way(lambda s: s.command("/skill:deploy"), USED, REMINDED, "skill_load"),
    "load": Way(lambda s: s.load("deploy"), USED, USED, "skill_load"),
    "load_for_model": Way(lambda s: s.load("deploy", for_model=True), USED, USED, "skill_load"),
    "read": Way(lambda s: s.read("skill://deploy"), USED, USED, "read", "omp"),
    "read_for_model": Way(lambda s: s.read("skill://deploy", for_model=True), USED, USED, "read", "omp"),
    "activate": Way(lambda s: s.activate("deploy"), ACTIVATED, ACTIVATED, "activate"),
    "preload": Way(lambda s: s._conversation.preload("deploy"), USED, USED, "skill_load"),
    "mention": Way(lambda s: s.resolve_mentions("use $deploy"), MENTIONED, MENTIONED, None),
    "resume": Way(lambda s: s.resume(s.skills[0].path), RESUMED, RESUMED, "resume"),
}


def test_the_table_has_a_row_for_every_entry_and_this_test_a_way_to_take_it() -> None:
    assert set(ENTRIES) == set(get_args(EntryName)) == set(WAYS)


class Watched(NamedTuple):
    """A session, and a function that takes its events since the last time."""

    session: Session
    events: list[Event]

    def since(self) -> list[Event]:
        """Return the events since the last call."""
        found = list(self.events)
        self.events.clear()
        return found


def shelf_with(machine: Machine, profile: str, more: str = "") -> Shelf:
    """Return a shelf with one skill."""
    write_skill(machine.repo / SYSTEMS[profile].root, "deploy", TEXT.format(more=more))
    return machine.shelf(profile)


@contextmanager
def watched(shelf: Shelf, **options: Any) -> Iterator[Watched]:
    """Open a session whose events are collected."""
    events: list[Event] = []
    with shelf.session(on_event=events.append, **options) as session:
        events.clear()
        yield Watched(session, events)


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_leaves_its_events_in_order_and_the_second_time_reminds_only_where_text_was_sent(
    machine: Machine, entry: EntryName
) -> None:
    way, steps = WAYS[entry], ENTRIES[entry]

    with watched(shelf_with(machine, way.profile)) as seen:
        way.take(seen.session)
        first = seen.since()
        way.take(seen.session)
        second = seen.since()

    frame = (["skill_mentioned"], []) if way.tool is None else (["tool_started"], ["tool_ended"])
    for events, expected in ((first, way.first), (second, way.second)):
        assert [type_of(event) for event in events] == [*frame[0], *expected, *frame[1]]
    started = payload_of(first[0])
    if way.tool is not None:
        assert (started["name"], started["mode"]) == (way.tool, steps.mode)
    if steps.event_tool is not None:
        assert way.tool == steps.event_tool
    if steps.permission != "none":
        decided = payload_of(first[1])
        assert (decided["tool"], decided["verdict"]) == (steps.rule, "allow")
    repeats = [event._asdict()["repeat"] for event in [*first, *second] if type_of(event) == "skill_invoked"]
    reminds = steps.text == "sent" and seen.session.profile.reload == "remind"
    assert repeats == [False, reminds]


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_changes_the_state_of_the_session_as_its_row_says(machine: Machine, entry: EntryName) -> None:
    way, steps = WAYS[entry], ENTRIES[entry]

    with watched(shelf_with(machine, way.profile)) as seen:
        way.take(seen.session)
        session, events = seen.session, seen.since()
        snapshot = session.snapshot()

    narrows = session.profile.allowed_tools == "narrow"
    assert session.active == (("deploy",) if steps.activates else ())
    assert session.effective_allowed_tools == (("Read",) if steps.activates and narrows else None)
    assert snapshot["asked_for"] == ([] if steps.request == "never" else ["deploy"])
    assert snapshot["preloaded"] == (["deploy"] if steps.preloads else [])
    assert ("Deploy it." in session.system_prompt()) == steps.preloads
    assert [sent["name"] for sent in snapshot["loaded"]] == (["deploy"] if steps.text == "sent" else [])
    assert len(snapshot["texts"]) == (0 if steps.text == "none" else 1)
    assert [proposal.key for proposal in session.proposals] == ([] if steps.render == "unloaded" else ["model"])
    for event in events:
        if type_of(event) == "skill_invoked":
            invoked = event._asdict()
            assert invoked["mode"] == steps.mode
            assert invoked["effective_allowed_tools"] == (["Read"] if steps.counts_itself and narrows else None)
            assert invoked["ref"] == (None if steps.text == "none" else "load-1")


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_the_user_reaches_what_an_author_keeps_from_models(machine: Machine, entry: EntryName) -> None:
    way, steps = WAYS[entry], ENTRIES[entry]

    with watched(shelf_with(machine, way.profile, "disable-model-invocation: true\n")) as seen:
        try:
            way.take(seen.session)
        except PermissionDenied:
            assert steps.permission == "model"
        decided = [payload_of(event) for event in seen.since() if type_of(event) == "permission_decided"]

    verdicts = [] if steps.permission == "none" else ["deny" if steps.permission == "model" else "allow"]
    assert [decision["verdict"] for decision in decided] == verdicts


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_a_rule_denies_is_refused_by_every_entry_but_one_that_shows_or_finds_it_in_the_messages(
    machine: Machine, entry: EntryName
) -> None:
    way, steps = WAYS[entry], ENTRIES[entry]
    shelf = shelf_with(machine, way.profile)

    with watched(shelf, policy={"deny": [{"tool": "skill_load", "skill_name": "deploy"}]}) as seen:
        try:
            way.take(seen.session)
        except PermissionDenied:
            assert steps.permission != "show"
        events = [type_of(event) for event in seen.since()]
        snapshot = seen.session.snapshot()

    used = {"skill_loaded", "skill_invoked", "skill_activated"} & set(events)
    assert bool(used) == (steps.permission in ("show", "none"))
    # What is in the messages narrows the tools, whether or not it should be there.
    assert bool(snapshot["active"]) == (steps.permission == "none")
    # A request counts although the policy denied it, except in a mention.
    assert snapshot["asked_for"] == (["deploy"] if steps.request == "before" else [])


def test_a_child_session_preloads(machine: Machine) -> None:
    with watched(shelf_with(machine, "standard")) as seen, seen.session.child(["deploy"]) as child:
        types = [type_of(event) for event in seen.since()]
        state = child.snapshot()

    assert types == ["session_started", "skill_catalog_updated", "tool_started", *USED, "tool_ended"]
    path = str(machine.repo / SYSTEMS["standard"].root / "deploy/SKILL.md")
    assert (state["preloaded"], state["active"], seen.session.active) == (["deploy"], [path], ())
    assert child.effective_allowed_tools == ("Read",)


def test_only_a_call_of_a_load_tool_reports_a_deleted_skill_as_gone(machine: Machine) -> None:
    path = machine.repo / SYSTEMS["standard"].root / "deploy"
    shelf = shelf_with(machine, "standard")

    with watched(shelf) as seen:
        (path / "SKILL.md").unlink()
        shelf.refresh()
        called, commanded = seen.session.call("skill_load", {"name": "deploy"}), seen.session.command("/skill:deploy")

    assert commanded is not None
    assert [result.error and result.error.code for result in (called, commanded)] == ["gone", "not_found"]


ALLOWS_BASH = {"allow": [{"tool": "Bash"}]}
DOORS: dict[str, Callable[[Session], object]] = {
    "skill_load": lambda s: s.call("skill_load", {"name": "deploy"}),
    "skill_load by path": lambda s: s.call("skill_load", {"path": ".agents/skills/deploy"}),
    "skill_read": lambda s: s.call("skill_read", {"uri": "skill://deploy"}),
    "skill_read of the file": lambda s: s.call("skill_read", {"uri": "skill://deploy/SKILL.md"}),
    "skill_read of an encoded name": lambda s: s.call("skill_read", {"uri": "skill://deploy/SKILL%2Emd"}),
    "a command": lambda s: s.command("/skill:deploy"),
    "an activation": lambda s: s.activate("deploy"),
    "a preload": lambda s: s._conversation.preload("deploy"),
    "a load for a model": lambda s: s.load("deploy", for_model=True),
    "a read for a model": lambda s: s.read("skill://deploy/SKILL.md", for_model=True),
}
OTHER_WAYS: dict[str, Callable[[Session], object]] = {
    "a mention": lambda s: s.resolve_mentions("use $deploy"),
    "a person's load": lambda s: s.load("deploy"),
    "a person's read": lambda s: s.read("skill://deploy/SKILL.md"),
    "a reference": lambda s: s.call("skill_read", {"uri": "skill://deploy/notes.md"}),
    "a list of files": lambda s: s.call("skill_read", {"uri": "skill://deploy/references"}),
    "a search": lambda s: s.call("skill_search", {"query": "deploy"}),
}


@pytest.mark.req("K-34", "O-42", "K-11")
@pytest.mark.parametrize("door", DOORS)
def test_instructions_that_enter_a_context_open_the_window_whatever_the_door(machine: Machine, door: str) -> None:
    with watched(shelf_with(machine, "standard"), policy=ALLOWS_BASH) as seen:
        before = seen.session.decide("Bash", {"command": "ls"}).verdict
        DOORS[door](seen.session)
        after = seen.session.decide("Bash", {"command": "ls"}).verdict
        events = seen.since()

    assert (before, after) == ("allow", "deny")
    assert (seen.session.active, seen.session.effective_allowed_tools) == (("deploy",), ("Read",))
    assert [type_of(event) for event in events].count("skill_loaded") == 1
    (invoked,) = [event._asdict() for event in events if type_of(event) == "skill_invoked"]
    assert (invoked["name"], invoked["effective_allowed_tools"]) == ("deploy", ["Read"])


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_what_brings_no_instructions_to_a_model_opens_no_window(machine: Machine, way: str) -> None:
    shelf = shelf_with(machine, "standard")
    folder = machine.repo / SYSTEMS["standard"].root / "deploy"
    (folder / "notes.md").write_text("Notes.\n")
    (folder / "references").mkdir()

    with watched(shelf, policy=ALLOWS_BASH) as seen:
        OTHER_WAYS[way](seen.session)

        assert seen.session.decide("Bash", {"command": "ls"}).verdict == "allow"
        assert (seen.session.active, seen.session.effective_allowed_tools) == ((), None)


def test_reading_a_skill_md_leaves_the_events_of_a_load_and_gives_the_text_each_time(machine: Machine) -> None:
    with watched(shelf_with(machine, "standard")) as seen:
        first = seen.session.call("skill_read", {"uri": "skill://deploy/SKILL.md"})
        types = [type_of(event) for event in seen.since()]
        second = seen.session.call("skill_read", {"uri": "skill://deploy/SKILL.md"})
        loaded = seen.session.call("skill_load", {"name": "deploy"})
        third = seen.session.call("skill_read", {"uri": "skill://deploy/SKILL.md"})
        again = seen.session.call("skill_load", {"name": "deploy"})

    assert types == ["tool_started", *READ, "tool_ended"]
    assert first.text == second.text == third.text == TEXT.format(more="")
    # The bare file lacks the list of files and the folder: the first load brings them, the second need not.
    assert (loaded.data["already_loaded"], again.data["already_loaded"]) == (False, True)


@pytest.mark.req("K-34")
def test_a_skill_inside_another_is_not_read_around_its_own_rules(machine: Machine) -> None:
    root = machine.repo / SYSTEMS["rip"].root
    write_skill(root, "outer", "---\nname: outer\ndescription: Outer.\n---\nOuter.\n")
    write_skill(root / "outer", "inner", "---\nname: inner\ndescription: Inner.\nallowed-tools: Read\n---\nInner.\n")
    address = {"uri": "skill://outer/inner/SKILL.md"}

    with watched(machine.shelf("rip")) as seen:
        read = seen.session.call("skill_read", address)
        active = seen.session.active
    with watched(machine.shelf("rip"), policy={"deny": [{"tool": "skill_load", "skill_name": "inner"}]}) as seen:
        denied = seen.session.call("skill_read", address)

    assert (read.ok, active) == (True, ("inner",))
    assert denied.error is not None
    assert denied.error.code == "denied"


@pytest.mark.parametrize("deactivated", [False, True])
def test_a_restored_session_has_the_same_active_skills(machine: Machine, deactivated: bool) -> None:
    with shelf_with(machine, "standard").session(preload=["deploy"]) as session:
        if deactivated:
            session.deactivate("deploy")
        snapshot = session.snapshot()

    with Session.restore(snapshot, machine.shelf()) as restored:
        assert restored.snapshot() == snapshot
        assert restored.active == (() if deactivated else ("deploy",))
