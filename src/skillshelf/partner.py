"""A question to its answer by a process of its own, of the same program and with the same rights."""

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

__all__ = ["Partner", "PartnerLost", "can_have_partner", "serve"]

_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from skillshelf.partner import serve; serve(sys.argv[2])"

Answer = Callable[[Any], Any]


class PartnerLost(Exception):
    """The other process is not there any more, or never was."""


def can_have_partner() -> bool:
    """Whether this program can be started a second time, and there is a second core to run it on."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    # A program that has Python inside would start itself.
    is_python = os.path.basename(sys.executable or "").lower().startswith(("python", "pypy"))
    return cores > 1 and is_python and not getattr(sys, "frozen", False)


class Partner:
    """A process that is started with the first question and ended by `close`.

    `module` is the name of a module of this package whose function `answers` makes of the setting what answers
    each question. Any thread may ask or close.
    """

    def __init__(self, module: str, setting: object) -> None:
        self._module = module
        self._setting = setting
        self._asking = Lock()
        self._starting = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def ask(self, question: object) -> Any:
        """The answer to a question; PartnerLost where there is none."""
        with self._asking:
            try:
                process = self._started()
                assert process.stdin is not None
                assert process.stdout is not None
                pickle.dump(question, process.stdin)
                process.stdin.flush()
                return pickle.load(process.stdout)
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                raise PartnerLost(f"ended ({self._end()})") from None

    def close(self) -> None:
        """End the process, whatever it does; nothing can be asked any more."""
        with self._starting:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
        # Who waits for an answer hears now that there will be none.
        with self._asking:
            self._end()

    def _end(self) -> int | None:
        """How the process ended; where it still runs, it is killed."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        # What was still to be written has no reader.
        with suppress(OSError):
            process.communicate()
        return process.returncode

    def _started(self) -> "subprocess.Popen[bytes]":
        import subprocess

        with self._starting:
            if self._is_closed:
                raise EOFError
            if self._process is not None:
                return self._process
            package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            # Nothing is imported from the folder it is run in, nor from elsewhere if we may not.
            alone = "-I" if sys.flags.isolated else "-P"
            # A session of its own: Ctrl-C is for us.
            process = self._process = subprocess.Popen(
                [sys.executable, alone, "-c", _PROGRAM, package, self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        assert process.stdin is not None
        pickle.dump(self._setting, process.stdin)
        return process


def serve(module: str) -> None:
    """Answer questions from standard input until it ends: this is what the other process does."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    answer: Answer = import_module(module).answers(pickle.load(questions))
    with suppress(EOFError):
        while True:
            pickle.dump(answer(pickle.load(questions)), answers)
            answers.flush()
