"""Calls of a session from asyncio: the event loop is never blocked, and a cancelled call is complete."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import ConfigurationError, Session, SkillError, ToolResult

DEPLOY = {"name": "deploy"}


@pytest.fixture
def stocked(machine: Machine) -> Machine:
    """A machine with a skill of the user's and one of a project that nobody trusts."""
    write_skill(machine.home / ".agents/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "cloned")
    return machine


class Gate:
    """A `confirm` that is answered when the test says so; it may be used from threads."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()
        self.threads: list[int] = []

    def __call__(self, tool: str, name: str, reason: str) -> bool:
        self.threads.append(threading.get_ident())
        self.asked.set()
        assert self.open.wait(30)
        return True


async def until(condition: Callable[[], bool]) -> int:
    """Let the event loop go on until something is so; return how often it went round."""
    for turns in range(10_000):
        if condition():
            return turns
        await asyncio.sleep(0.001)
    raise AssertionError("it never happened")


def played(play: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a test's coroutine within a bounded time."""

    async def bounded() -> Any:
        return await asyncio.wait_for(play(), 30)

    return asyncio.run(bounded())


def types_in(journal: Path) -> list[str]:
    """The types of the events in a journal."""
    return [json.loads(line)["type"] for line in journal.read_text().splitlines()]


# The same results ---------------------------------------------------------------------------------


def test_a_call_a_load_and_a_search_give_what_their_synchronous_forms_give(stocked: Machine) -> None:
    shelf = stocked.shelf()
    plain, session = shelf.session(), shelf.session()

    async def play() -> None:
        assert await session.acall("skill_load", DEPLOY) == plain.call("skill_load", DEPLOY)
        assert await session.acall("skill_load", DEPLOY) == plain.call("skill_load", DEPLOY)
        assert await session.acall("nonsense", {}) == plain.call("nonsense", {})
        assert await session.aload("deploy") == plain.load("deploy")
        assert await session.asearch("deploy", limit=1) == plain.search("deploy", limit=1)
        with pytest.raises(skillshelf.SkillNotFound):
            await session.aload("nonsense")
        with pytest.raises(ConfigurationError):
            await session.asearch("deploy", scope="nonsense")

    played(play)
    assert session.active == plain.active == ("deploy",)


def test_the_messages_of_a_call_count_in_its_asynchronous_form_too(stocked: Machine) -> None:
    from skillshelf.catalog.load import digest_of

    session = stocked.shelf().session(memory="messages")

    async def play() -> list[ToolResult]:
        first = await session.acall("skill_load", DEPLOY)
        seen = {digest_of(first.text.encode())}
        return [
            first,
            await session.acall("skill_load", DEPLOY, visible=seen),
            await session.acall("skill_load", DEPLOY),
        ]

    results = played(play)
    assert [result.data["already_loaded"] for result in results] == [False, True, False]


# The event loop -----------------------------------------------------------------------------------


def test_the_event_loop_goes_on_while_twenty_calls_wait_for_a_person(stocked: Machine) -> None:
    gate = Gate()
    sessions = [stocked.shelf(trust="ask").session(confirm=gate) for _ in range(20)]

    async def play() -> list[ToolResult]:
        calls = [asyncio.create_task(session.acall("skill_load", {"name": "cloned"})) for session in sessions]
        await until(lambda: len(gate.threads) == 20)
        assert not any(call.done() for call in calls)
        gate.open.set()
        return await asyncio.gather(*calls)

    results = played(play)
    assert all(result.ok and not result.data["already_loaded"] for result in results)
    assert threading.get_ident() not in gate.threads


def test_twenty_calls_of_one_session_run_in_order_and_only_one_has_a_thread(stocked: Machine) -> None:
    gate = Gate()
    order: list[int] = []
    session = stocked.shelf(trust="ask").session(confirm=gate)

    async def call(number: int) -> None:
        await session.acall("skill_load", {"name": "cloned"})
        order.append(number)

    async def play() -> int:
        calls = [asyncio.create_task(call(number)) for number in range(20)]
        await until(gate.asked.is_set)
        running = sum(thread.name == "skillshelf-call" for thread in threading.enumerate())
        gate.open.set()
        await asyncio.gather(*calls)
        return running

    assert played(play) == 1
    assert order == list(range(20))


def test_a_session_may_be_used_by_one_event_loop_after_the_other(stocked: Machine) -> None:
    session = stocked.shelf().session()

    async def play() -> list[bool]:
        results = await asyncio.gather(*(session.acall("skill_load", DEPLOY) for _ in range(3)))
        return [result.data["already_loaded"] for result in results]

    assert played(play) == [False, True, True]
    assert played(play) == [True, True, True]


# Questions ----------------------------------------------------------------------------------------


def asking(answers: list[str], answer: Any = True) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A `confirm` that is a coroutine function."""

    async def confirm(tool: str, name: str, reason: str) -> Any:
        await asyncio.sleep(0)
        answers.append(f"{threading.current_thread().name} {tool} {name}")
        return answer

    return confirm


@pytest.mark.parametrize("answer", [True, False])
def test_confirm_may_be_a_coroutine_function_which_is_awaited_on_the_loop(stocked: Machine, answer: bool) -> None:
    asked: list[str] = []
    session = stocked.shelf(trust="ask").session(confirm=asking(asked, answer))

    result: ToolResult = played(lambda: session.acall("skill_load", {"name": "cloned"}))

    assert result.ok is answer
    assert asked == ["MainThread skill_load cloned"]


def test_a_child_asks_with_the_coroutine_of_its_parent(stocked: Machine) -> None:
    asked: list[str] = []
    child = stocked.shelf(trust="ask").session(confirm=asking(asked)).child()

    result: ToolResult = played(lambda: child.acall("skill_load", {"name": "cloned"}))

    assert (result.ok, asked) == (True, ["MainThread skill_load cloned"])


def test_a_synchronous_call_with_a_coroutine_function_says_what_to_use_and_loads_nothing(stocked: Machine) -> None:
    asked: list[str] = []
    session = stocked.shelf(trust="ask").session(confirm=asking(asked))

    result = session.call("skill_load", {"name": "cloned"})

    assert result.error is not None
    assert "await session.acall" in result.error.message
    assert (session.active, asked) == ((), [])


def test_an_error_of_confirm_denies_the_call_and_the_session_goes_on(stocked: Machine) -> None:
    async def confirm(tool: str, name: str, reason: str) -> bool:
        raise LookupError("no terminal")

    session = stocked.shelf(trust="ask").session(confirm=confirm)

    async def play() -> ToolResult:
        failed = await session.acall("skill_load", {"name": "cloned"})
        assert failed.error is not None
        assert (failed.error.code, session.active) == ("denied", ())
        return await session.acall("skill_load", DEPLOY)

    assert played(play).ok


def test_the_coroutine_that_answers_gets_an_error_from_its_own_session_and_may_use_another(stocked: Machine) -> None:
    shelf = stocked.shelf(trust="ask")
    other = shelf.session()
    told: list[Any] = []

    async def confirm(tool: str, name: str, reason: str) -> bool:
        told.append((await session.acall("skill_load", DEPLOY)).ok)
        with pytest.raises(SkillError, match="waits for an answer"):
            _ = session.active
        told.append((await other.acall("skill_load", DEPLOY)).ok)
        return True

    session = shelf.session(confirm=confirm)

    assert played(lambda: session.acall("skill_load", {"name": "cloned"})).ok
    assert told == [False, True]


def test_a_synchronous_use_on_the_loop_that_has_to_answer_is_an_error_and_not_a_deadlock(stocked: Machine) -> None:
    asked = asyncio.Event()
    answered = asyncio.Event()

    async def confirm(tool: str, name: str, reason: str) -> bool:
        asked.set()
        await answered.wait()
        return True

    session = stocked.shelf(trust="ask").session(confirm=confirm)

    async def play() -> ToolResult:
        call = asyncio.create_task(session.acall("skill_load", {"name": "cloned"}))
        await asked.wait()
        with pytest.raises(SkillError, match="use `await`"):
            session.decide("Bash", {})
        answered.set()
        return await call

    assert played(play).ok


# Cancellation -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_a_call_cancelled_at_its_question_is_denied_and_its_journal_is_complete(
    stocked: Machine, tmp_path: Path, is_coroutine: bool
) -> None:
    journal = tmp_path / "run.jsonl"
    gate = Gate()

    async def confirm(tool: str, name: str, reason: str) -> bool:
        gate.asked.set()
        await asyncio.sleep(3600)
        return True

    session = stocked.shelf(trust="ask").session(confirm=confirm if is_coroutine else gate, journal=journal)

    async def play() -> ToolResult:
        call = asyncio.create_task(session.acall("skill_load", {"name": "cloned"}))
        await until(gate.asked.is_set)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.open.set()
        return await session.acall("skill_load", DEPLOY)

    assert played(play).ok
    session.close()
    types = types_in(journal)
    assert types.count("tool_started") == types.count("tool_ended") + types.count("tool_failed") == 2
    assert types.count("result_dropped") == 1
    assert types[-1] == "session_ended"
    assert session.active == ("deploy",)
    assert replayed(stocked, journal) == ()


def replayed(machine: Machine, journal: Path) -> tuple[Any, ...]:
    """The differences of a replay."""
    return skillshelf.replay(journal, home=machine.home, env={"HOME": str(machine.home)}).differences


def test_what_a_cancelled_call_loaded_is_neither_active_nor_called_loaded(stocked: Machine, tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    gate = Gate()
    write_skill(
        stocked.home / ".agents/skills", "narrow", "---\nname: narrow\ndescription: N.\nallowed-tools: Read\n---\n# n\n"
    )

    # Called after the load was recorded: the cancellation comes when the text is on its way.
    def listener(event: Any) -> None:
        if type(event).__name__ == "SkillInvoked" and event.name == "narrow" and not gate.open.is_set():
            gate("", "", "")

    session = stocked.shelf().session("full-auto", journal=journal, on_event=listener)

    async def play() -> ToolResult:
        call = asyncio.create_task(session.acall("skill_load", {"name": "narrow"}))
        await until(gate.asked.is_set)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.open.set()
        search = await session.asearch("narrow")
        assert search.count
        assert session.active == ()
        assert session.decide("Bash", {"command": "ls"}).verdict == "allow"
        return await session.acall("skill_load", {"name": "narrow"})

    result = played(play)
    assert "# n" in result.text
    assert result.data["already_loaded"] is False
    assert session.active == ("narrow",)
    session.close()
    replay = skillshelf.replay(journal, home=stocked.home, env={"HOME": str(stocked.home)})
    assert replay.differences == ()
    assert [(sent["name"], sent["in_context"]) for sent in replay.state.loaded] == [("narrow", True)]


def test_a_result_that_is_cancelled_on_its_way_is_dropped_before_the_next_call(stocked: Machine) -> None:
    """The thread has ended, but the task was cancelled before it went on."""
    events: list[str] = []
    session = stocked.shelf().session(on_event=lambda event: events.append(type(event).__name__))

    async def play() -> ToolResult:
        call = asyncio.create_task(session.acall("skill_load", DEPLOY))
        later = asyncio.create_task(session.acall("skill_load", DEPLOY))
        await asyncio.sleep(0)
        # Without going on: the event loop is blocked until the thread has ended, as a busy program may block it.
        while any(thread.name == "skillshelf-call" for thread in threading.enumerate()):
            pass
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await later

    assert played(play).data["already_loaded"] is False
    assert "ResultDropped" in events


def test_a_cancelled_wait_for_a_turn_starts_nothing(stocked: Machine) -> None:
    gate = Gate()
    events: list[str] = []
    session = stocked.shelf(trust="ask").session(
        confirm=gate, on_event=lambda event: events.append(type(event).__name__)
    )

    async def play() -> None:
        first = asyncio.create_task(session.acall("skill_load", {"name": "cloned"}))
        second = asyncio.create_task(session.acall("skill_load", {"name": "cloned"}))
        await until(gate.asked.is_set)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.open.set()
        assert (await first).ok

    played(play)
    assert events.count("ToolStarted") == 1


def test_a_program_that_ends_during_a_question_completes_the_journal(stocked: Machine, tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    asked = asyncio.Event()

    async def confirm(tool: str, name: str, reason: str) -> bool:
        asked.set()
        await asyncio.sleep(3600)
        return True

    session: Session = stocked.shelf(trust="ask").session(confirm=confirm, journal=journal)

    async def play() -> None:
        task = asyncio.create_task(session.acall("skill_load", {"name": "cloned"}))
        await asked.wait()
        assert not task.done()

    asyncio.run(play())
    for thread in threading.enumerate():
        if thread.name.startswith("skillshelf-"):
            thread.join(30)
    session.close()
    types = types_in(journal)
    assert types[-3:] == ["tool_failed", "result_dropped", "session_ended"]
