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
ACTIVATED = ["permission_decided", "skill_loaded", "override_proposed", "skill_activated"]
MENTIONED = ["permission_decided", "skill_invoked"]


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
    decided = payload_of(first[1])
    assert (decided["tool"], decided["verdict"]) == (steps.rule, "allow")
    repeats = [event._asdict()["repeat"] for event in [*first, *second] if type_of(event) == "skill_invoked"]
    reminds = steps.text == "sent" and seen.session.profile.reload == "remind"
    assert repeats == ([] if steps.event == "skill_activated" else [False, reminds])


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

    assert [decision["verdict"] for decision in decided] == ["deny" if steps.permission == "model" else "allow"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_a_rule_denies_is_refused_by_every_entry_but_one_that_shows(machine: Machine, entry: EntryName) -> None:
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
    assert bool(used) == (steps.permission == "show")
    assert snapshot["active"] == []
    # A request counts although the policy denied it, except in a mention.
    assert snapshot["asked_for"] == (["deploy"] if steps.request == "before" else [])


def test_a_child_session_preloads(machine: Machine) -> None:
    with watched(shelf_with(machine, "standard")) as seen, seen.session.child(["deploy"]) as child:
        types = [type_of(event) for event in seen.since()]
        state = child.snapshot()

    assert types == ["session_started", "skill_catalog_updated", "tool_started", *USED, "tool_ended"]
    assert (state["preloaded"], state["active"], seen.session.active) == (["deploy"], [], ())


def test_only_a_call_of_a_load_tool_reports_a_deleted_skill_as_gone(machine: Machine) -> None:
    path = machine.repo / SYSTEMS["standard"].root / "deploy"
    shelf = shelf_with(machine, "standard")

    with watched(shelf) as seen:
        (path / "SKILL.md").unlink()
        shelf.refresh()
        called, commanded = seen.session.call("skill_load", {"name": "deploy"}), seen.session.command("/skill:deploy")

    assert commanded is not None
    assert [result.error and result.error.code for result in (called, commanded)] == ["gone", "not_found"]
