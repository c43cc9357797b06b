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

__all__ = ["WorkerLost", "WorkerProcess", "can_start_worker", "serve"]

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; from skillshelf.core.worker_process import serve; serve(sys.argv[1])"
)

Handler = Callable[[Any], Any]


class WorkerLost(Exception):
    """The other process is not there any more, or never was."""


def can_start_worker() -> bool:
    """Whether this program can be started a second time, and there is a second core to run it on."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    # A program that has Python inside would start itself.
    is_python = os.path.basename(sys.executable or "").lower().startswith(("python", "pypy"))
    return cores > 1 and is_python and not getattr(sys, "frozen", False)


class WorkerProcess:
    """A process that is started with the first question and ended by `close`.

    `module` is the name of a module of this package whose function `handle` makes of the setting what answers
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
        """The answer to a question; PartnerLost where there is none, for whatever reason."""
        with self._asking:
            try:
                process = self._started()
                assert process.stdin is not None
                assert process.stdout is not None
                pickle.dump(question, process.stdin)
                process.stdin.flush()
                return pickle.load(process.stdout)
            except Exception:
                # What another process wrote can make anything of a reader.
                raise WorkerLost(f"ended ({self._end()})") from None
            except BaseException:
                # The answer is still to come, and would be taken for that to the next question.
                self._end()
                raise

    def close(self) -> None:
        """End the process, whatever it does; nothing can be asked any more."""
        with self._starting:
            self._is_closed = True
            process = self._process
        if process is not None:
            process.kill()
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
            # A session of its own: Ctrl-C is for us.
            process = self._process = subprocess.Popen(
                [sys.executable, *_options(), "-c", _PROGRAM, self._module, *_places()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        assert process.stdin is not None
        pickle.dump(self._setting, process.stdin)
        return process


def _options() -> list[str]:
    """What makes the other Python import only what it is told to, and name files as we do."""
    no_bytecode = ["-B"] if sys.dont_write_bytecode else []
    return ["-I", "-S", *no_bytecode, "-X", f"utf8={sys.flags.utf8_mode}"]


def _places() -> list[str]:
    """From where the other process imports: from where we do, so that it is the same program."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [*(place for place in sys.path if isinstance(place, str) and place), package]


def serve(module: str) -> None:
    """Answer questions from standard input until it ends: this is what the other process does."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What an import may print is no answer.
    os.dup2(2, 1)
    answer: Handler = import_module(module).handle(pickle.load(questions))
    with suppress(EOFError):
        while True:
            pickle.dump(answer(pickle.load(questions)), answers)
            answers.flush()
