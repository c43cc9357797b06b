"""Run calls of a session in threads, so that an event loop never waits for a disk, a lock or a person.

Each call has a thread of its own. A bounded pool could come to a stop: all of its threads may wait for an answer
that needs one more.
"""

import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from skillshelf.errors import ConfigurationError, SkillError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future
    from weakref import WeakKeyDictionary

    from skillshelf.session.policy import Confirm

__all__ = ["AnyConfirm", "SessionLock", "in_thread", "synchronous"]

T = TypeVar("T")
Answer = bool | Literal["remember"]
AnyConfirm = Callable[[str, str, str], Answer | Awaitable[Answer]]
"""Ask the user, as `Confirm` does. A coroutine function is awaited on the event loop of `acall`, `aload` or
`asearch`; a plain function is called in the thread of the call."""


class SessionLock:
    """Let one thread at a time into a session; the same thread may enter again.

    The thread of an event loop that has to answer a question of the call inside gets an error: it would wait for
    itself.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owner: int | None = None
        self._depth = 0
        self._answering: int | None = None
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            while self._owner not in (None, me):
                if self._answering == me:
                    raise SkillError("this session waits for an answer from this event loop; use `await` to call it")
                self._changed.wait()
            self._owner = me
            self._depth += 1
        if (call := _CALL.get()) is not None:
            call.locks.add(self)

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._depth -= 1
            if self._depth:
                return
            self._owner = None
            self._changed.notify_all()
        if (call := _CALL.get()) is not None:
            call.locks.discard(self)

    def set_answering(self, thread: int | None) -> None:
        """Name the thread that has to answer the call inside, or None."""
        with self._changed:
            self._answering = thread
            self._changed.notify_all()

    def turn(self) -> "asyncio.Lock":
        """Return the lock that orders the calls of the running event loop; those that wait need no thread."""
        import asyncio
        from weakref import WeakKeyDictionary

        with self._changed:
            if self._turns is None:
                self._turns = WeakKeyDictionary()
            return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def synchronous(confirm: AnyConfirm | None) -> "Confirm | None":
    """Return a function that asks from the thread of a call and waits there for the answer of a coroutine."""
    if confirm is None:
        return None

    def ask(tool: str, name: str, reason: str) -> Answer:
        call = _CALL.get()
        if call is not None and call.is_abandoned:
            return False
        answer = confirm(tool, name, reason)
        if not isinstance(answer, Awaitable):
            return answer
        if call is None:
            _close(answer)
            raise ConfigurationError("`confirm` is a coroutine function: use `await session.acall(...)`")
        return call.answer_of(answer)

    return ask


async def in_thread(
    function: Callable[[], T], *, lock: SessionLock | None = None, drop: Callable[[T], object] | None = None
) -> T:
    """Return the result of a function that runs in its own thread; with `lock`, one at a time in order.

    If this coroutine is cancelled, the function continues to its end, open questions are answered with no, and `drop`
    gets the result that nobody received. The next call with the same lock starts after that.
    """
    import asyncio

    outer = _CALL.get()
    if lock is not None and outer is not None and lock in outer.locks:
        raise SkillError("this session waits for the answer of `confirm`, which cannot call it")
    turn = lock.turn() if lock is not None else asyncio.Lock()
    await turn.acquire()
    call = _ThreadedCall(function, drop, turn)
    call.start()
    try:
        await call.finished
    except BaseException:
        call.abandon()
        raise
    turn.release()
    return call.result()


class _ThreadedCall(Generic[T]):
    """One call in its thread, with the locks that it holds and the question that it asks."""

    def __init__(self, function: Callable[[], T], drop: Callable[[T], object] | None, turn: "asyncio.Lock") -> None:
        import asyncio

        self.locks: set[SessionLock] = set()
        self.is_abandoned = False
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._thread_of_loop = threading.get_ident()
        self._function = function
        self._drop = drop
        self._turn = turn
        self._state = threading.Lock()
        self._is_done = False
        self._question: Future[Answer] | None = None
        self._value: list[T] = []
        self._error: BaseException | None = None

    def start(self) -> None:
        """Start the thread, which has the context of the caller."""
        # Not a daemon: the program ends only after a call has completed its journal.
        threading.Thread(target=copy_context().run, args=(self._work,), name="skillshelf-call").start()

    def _work(self) -> None:
        _CALL.set(self)
        try:
            self._value.append(self._function())
        except BaseException as error:
            # Nothing is swallowed: the caller gets it from `result`.
            self._error = error
        with self._state:
            self._is_done = True
            is_abandoned = self.is_abandoned
        if is_abandoned:
            self._clean_up()
        else:
            self._tell_loop(self._finish)

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def result(self) -> T:
        """Return or raise what the function did."""
        if self._error is not None:
            raise self._error
        return self._value[0]

    def abandon(self) -> None:
        """Give up the result: answer open questions with no, and drop what the function returns."""
        with self._state:
            self.is_abandoned = True
            is_done, question = self._is_done, self._question
        if question is not None:
            question.cancel()
        if is_done:
            threading.Thread(target=self._clean_up, name="skillshelf-drop").start()

    def _clean_up(self) -> None:
        try:
            if self._drop is not None and self._value:
                self._drop(self._value[0])
        finally:
            self._tell_loop(self._turn.release)

    def _tell_loop(self, callback: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop was closed, so nobody waits there any more.
            return

    def answer_of(self, answer: Awaitable[Answer]) -> Answer:
        """Return the answer of a coroutine that runs on the event loop; no if the call was abandoned."""
        import asyncio
        from concurrent.futures import CancelledError

        with self._state:
            if self.is_abandoned or self._loop.is_closed():
                _close(answer)
                return False
            question = self._question = asyncio.run_coroutine_threadsafe(_wait_for(answer), self._loop)
        held = tuple(self.locks)
        for lock in held:
            lock.set_answering(self._thread_of_loop)
        try:
            return question.result()
        except CancelledError:
            return False
        finally:
            self._question = None
            for lock in held:
                lock.set_answering(None)


_CALL: ContextVar[_ThreadedCall[Any] | None] = ContextVar("_CALL", default=None)
"""The call that this thread runs, or that the coroutine of a question belongs to."""


async def _wait_for(answer: Awaitable[Answer]) -> Answer:
    return await answer


def _close(answer: object) -> None:
    """Close a coroutine that is never awaited, which Python would warn about."""
    close = getattr(answer, "close", None)
    if close is not None:
        close()
