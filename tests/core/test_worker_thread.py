"""A function in a thread of its own: what its caller gets, and that no signal interrupts it."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator

import pytest

from skillshelf.core.worker_thread import CallerThread, run_in_thread


class Interrupted(Exception):
    """What the handler of a signal raises."""


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Make SIGUSR1 raise an exception in the main thread."""

    def handle(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handle)
    yield
    signal.signal(signal.SIGUSR1, before)


def wait_until_left(caller: CallerThread[int]) -> None:
    assert select.select([caller], [], [], 20)[0]


def test_what_the_function_returns_or_raises_comes_to_its_caller() -> None:
    def fail(caller: CallerThread[int]) -> None:
        raise ValueError("its own")

    assert run_in_thread(lambda caller: threading.current_thread() is not threading.main_thread(), print)
    with pytest.raises(ValueError, match="its own"):
        run_in_thread(fail, print)


def test_items_are_received_in_order_by_the_thread_of_the_caller() -> None:
    received: list[tuple[int, int]] = []

    def count(caller: CallerThread[int]) -> str:
        for number in range(5000):
            caller.send(number)
        return "done"

    assert run_in_thread(count, lambda item: received.append((item, threading.get_ident()))) == "done"
    assert received == [(number, threading.get_ident()) for number in range(5000)]


def test_a_receiver_that_fails_ends_the_function_first() -> None:
    ended: list[str] = []

    def function(caller: CallerThread[int]) -> None:
        caller.send(1)
        wait_until_left(caller)
        caller.send(2)
        ended.append("in order")

    def fail(item: int) -> None:
        raise BrokenPipeError(str(item))

    with pytest.raises(BrokenPipeError, match="1"):
        run_in_thread(function, fail)
    assert ended == ["in order"]


@pytest.mark.usefixtures("interrupts")
def test_signals_reach_the_caller_and_never_the_function() -> None:
    ended: list[str] = []

    def function(caller: CallerThread[int]) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        wait_until_left(caller)
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGUSR1)
            sum(range(10_000))
        ended.append("in order")

    with pytest.raises(Interrupted):
        run_in_thread(function, print)
    assert ended == ["in order"]
