"""Jobs to a thread of their own: the newest of a kind is done, older ones that still wait are forgotten."""

from collections.abc import Callable, Hashable
from threading import Condition, Thread
from typing import Any, NamedTuple

__all__ = ["Errands"]

Deliver = Callable[[Callable[..., Any], Any], object]


class _Errand(NamedTuple):
    job: Callable[[], Any]
    then: Callable[[Any], object]


class Errands:
    """One thread that does jobs in the order they were asked for; what a job raises is its result.

    The thread is a daemon: a program that ends does not wait for a disk.
    """

    def __init__(self, name: str, deliver: Deliver) -> None:
        self._deliver = deliver
        self._waiting: dict[Hashable, _Errand] = {}
        self._changed = Condition()
        Thread(target=self._work, name=name, daemon=True).start()

    def ask(self, kind: Hashable, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Do the job, then hand over its result; of one kind only the last that waits is done."""
        with self._changed:
            self._waiting.pop(kind, None)
            self._waiting[kind] = _Errand(job, then)
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                errand = self._waiting.pop(next(iter(self._waiting)))
            try:
                result = errand.job()
            except Exception as error:
                result = error
            try:
                self._deliver(errand.then, result)
            except RuntimeError:
                # Nobody is there any more to hand it to.
                return
