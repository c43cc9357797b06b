"""Run a function in a thread of its own, where no signal handler interrupts it."""

import _thread
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

__all__ = ["CallerLeft", "CallerThread", "run_in_thread"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class CallerLeft(Exception):
    """Nobody waits for the result any more."""


class CallerThread(Generic[_Item]):
    """The thread that waits for a function, as the function sees it."""

    def __init__(self, wire: socket.socket, items: "deque[_Item]") -> None:
        self._wire = wire
        self._items = items

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the caller leaves."""
        return self._wire.fileno()

    def send(self, item: _Item) -> None:
        """Hand an item to the caller, without waiting."""
        self._items.append(item)
        # A caller that has not read this far is woken already, and one that left needs no item.
        with suppress(BlockingIOError, BrokenPipeError):
            self._wire.send(b".", socket.MSG_DONTWAIT)


def run_in_thread(function: Callable[[CallerThread[_Item]], _Result], receive: Callable[[_Item], None]) -> _Result:
    """Return or raise what a function does in a thread of its own; this thread gives its items to `receive`.

    Python runs signal handlers in the main thread, between any two steps of any function. If one raises, or `receive`
    does, the function sees its caller leave, ends in order, and only then the first of these exceptions goes on.
    """
    task = _Task(function)
    left: list[BaseException] = []
    _wait(task, receive, left, _LEVELS)
    task.close()
    if left:
        raise left[0]
    return task.result()


_HANDLER_SECONDS = 0.2
"""Seconds that the handler of a signal may have to wait."""

_LEVELS = 30
"""The number of exceptions by which a caller leaves, and is waited for all the same."""


def _wait(
    task: "_Task[_Item, _Result]", receive: Callable[[_Item], None], left: list[BaseException], levels: int
) -> None:
    """Return when the function has ended; add the exceptions that came meanwhile.

    What is raised at one level, even while it catches another exception, is caught by the level above, which goes on.
    """
    try:
        if levels > 0:
            _wait(task, receive, left, levels - 1)
        else:
            task.start()
            task.wait(receive)
        if left and task.leave():
            task.wait(lambda _: None)
    except BaseException as error:
        left.append(error)


class _Worker(Generic[_Item, _Result]):
    """A function and its end of the wire, as its thread has them."""

    def __init__(self, function: Callable[[CallerThread[_Item]], _Result], wire: socket.socket) -> None:
        self.items: deque[_Item] = deque()
        self.results: list[_Result] = []
        self.errors: list[BaseException] = []
        self.wire = wire
        self.once = threading.Lock()
        self._function = function

    def run(self) -> None:
        # Whoever takes the lock decides whether the function is called at all.
        if not self.once.acquire(blocking=False):
            return
        try:
            self.results.append(self._function(CallerThread(self.wire, self.items)))
        except BaseException as error:
            self.errors.append(error)
        finally:
            _close(self.wire)


class _Task(Generic[_Item, _Result]):
    """A function in its thread, as its caller has it.

    The thread does not hold the caller's end of the wire, so that end is closed with the last reference to the task,
    however the caller leaves. The caller sees the end of the function as often as it looks: an event that is taken
    only once could be lost to a signal.
    """

    def __init__(self, function: Callable[[CallerThread[_Item]], _Result]) -> None:
        self._wire, wire = socket.socketpair()
        self._wire.settimeout(_HANDLER_SECONDS)
        self._worker = _Worker(function, wire)

    def start(self) -> None:
        # Not by an object: a signal in the middle of its `start` leaves a thread that cannot find itself.
        _thread.start_new_thread(self._worker.run, ())

    def wait(self, receive: Callable[[_Item], None]) -> None:
        """Return when the function has ended and all its items are given to `receive`."""
        items, more = self._worker.items, True
        while more or items:
            while items:
                receive(items.popleft())
            # A signal that comes just before the call does not end it: its handler runs when the time is up.
            with suppress(TimeoutError):
                more = bool(self._wire.recv(4096))

    def leave(self) -> bool:
        """Tell the function that its caller leaves; return False if it was not called and never will be."""
        # The function may have ended.
        with suppress(OSError):
            self._wire.shutdown(socket.SHUT_WR)
        if self._worker.once.acquire(blocking=False):
            _close(self._worker.wire)
            return False
        return True

    def close(self) -> None:
        _close(self._wire)

    def result(self) -> _Result:
        """Return or raise what the function did."""
        for error in self._worker.errors:
            raise error
        return self._worker.results[0]


def _close(end: socket.socket) -> None:
    # For a process, too, that was forked off meanwhile and has the same ends.
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
