"""Print what servers have to say to people: limits that were reached and problems of the libraries, a line for each."""

import logging
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from skillshelf.core.console import note
from skillshelf.core.text import cut, fold

__all__ = ["library_notices", "limit_notice"]

_PAUSE_SECONDS = 60.0
_MOST_KINDS = 200
_CHARS = 200
_LIBRARIES = ("mcp", "uvicorn", "anyio", "asyncio", "starlette", "sse_starlette", "watchfiles")
# A client that leaves is no problem of the server.
_EXPECTED = ("ClientDisconnect", "ClosedResourceError", "BrokenResourceError", "EndOfStream", "CancelledError")
# The place of an argument, which may quote a client, and the name of a session, which is another one each time.
_CHANGING = re.compile(r"%[-#0-9.]*[a-zA-Z]|\b[0-9a-f]{32}\b")


class _Notices:
    """Lines that are printed at most once in a while for each kind, with the number of those left out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[str, tuple[float, int]] = {}

    def add(self, kind: str, message: str) -> None:
        """Print a message unless one of its kind was printed a short while ago."""
        now = time.monotonic()
        with self._lock:
            printed, left_out = self._kinds.get(kind, (None, 0))
            if printed is not None and now - printed < _PAUSE_SECONDS:
                self._kinds[kind] = (printed, left_out + 1)
                return
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            self._kinds[kind] = (now, 0)
        note(f"{message} ({left_out} more times since the last such line)" if left_out else message)


_NOTICES = _Notices()


def limit_notice(limit: str, consequence: str) -> None:
    """Print that a limit was reached and what was done, at most once a minute for each limit."""
    _NOTICES.add(limit, f"limit {limit} reached: {consequence}")


class _LibraryHandler(logging.Handler):
    """Prints one line for each kind of problem, without a traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print what a library logs, unless a client caused it by leaving."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None or not _is_expected(error):
            words = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
            # Lines after the first describe objects by their addresses, which makes each a kind of its own.
            _library_notice(record.name.partition(".")[0], _CHANGING.sub("…", fold(words.partition("\n")[0])), error)


def _is_expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_expected, error.exceptions))
    return type(error).__name__ in _EXPECTED or isinstance(error, ConnectionError)


def _library_notice(library: str, words: str, error: BaseException | None) -> None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    name = type(error).__name__ if error is not None else ""
    # The text of an exception may quote a client, which must not write lines of its own: it is no part of the kind.
    text = cut(fold(f"{words}: {name}: {error}" if name else words), _CHARS)
    _NOTICES.add(f"{library} {words} {name}", f"problem in the library {library}: {text}")


@contextmanager
def library_notices() -> Iterator[None]:
    """Print problems of the libraries as one line for each kind, instead of tracebacks, while a server runs."""
    handler = _LibraryHandler(logging.WARNING)
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    hooks = sys.unraisablehook, threading.excepthook
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    sys.unraisablehook, threading.excepthook = _unraisable, _thread_failed
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = hooks
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate


def _unraisable(unraisable: Any) -> None:
    _report(unraisable.exc_value, "an object could not be removed")


def _thread_failed(failure: Any) -> None:
    _report(failure.exc_value, "a thread failed")


def _report(error: BaseException | None, words: str) -> None:
    if error is None or not _is_expected(error):
        _library_notice(_module_of(error.__traceback__ if error is not None else None), words, error)


def _module_of(trace: TracebackType | None) -> str:
    """Return the package in which an error happened."""
    name = "unknown"
    while trace is not None:
        name, trace = trace.tb_frame.f_globals.get("__name__", name), trace.tb_next
    return str(name).partition(".")[0]
