"""Run one function in a worker process of the same program."""

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
    """The worker process has ended or could not be started."""


def can_start_worker() -> bool:
    """Return whether a worker can be started and there is a second core for it."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    # A program that embeds Python would start itself.
    is_python = os.path.basename(sys.executable or "").lower().startswith(("python", "pypy"))
    return cores > 1 and is_python and not getattr(sys, "frozen", False)


class WorkerProcess:
    """A process that the first request starts and `close` ends.

    `module` names a module of this package; its function `handle` takes the setting and returns the function that
    answers requests. Any thread may ask or close.
    """

    def __init__(self, module: str, setting: object) -> None:
        self._module = module
        self._setting = setting
        self._asking = Lock()
        self._starting = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def ask(self, question: object) -> Any:
        """Return the answer to a request; raise WorkerLost if there is none."""
        with self._asking:
            try:
                process = self._started()
                assert process.stdin is not None
                assert process.stdout is not None
                pickle.dump(question, process.stdin)
                process.stdin.flush()
                return pickle.load(process.stdout)
            except Exception:
                # Bytes of a broken process can raise anything in the reader.
                raise WorkerLost(f"ended ({self._end()})") from None
            except BaseException:
                # The answer is still to come, and would be taken for the next one.
                self._end()
                raise

    def close(self) -> None:
        """Kill the process; later requests raise WorkerLost."""
        with self._starting:
            self._is_closed = True
            process = self._process
        if process is not None:
            process.kill()
        # A thread that waits for an answer now gets WorkerLost.
        with self._asking:
            self._end()

    def _end(self) -> int | None:
        """Kill the process if it still runs, and return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        # The rest of the request has no reader.
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
            # A new session, so that Ctrl-C reaches only us.
            process = self._process = subprocess.Popen(
                [sys.executable, *_options(), "-c", _PROGRAM, self._module, *_import_paths()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        assert process.stdin is not None
        pickle.dump(self._setting, process.stdin)
        return process


def _options() -> list[str]:
    """Return the options with which Python imports only from `_import_paths` and decodes file names as here."""
    no_bytecode = ["-B"] if sys.dont_write_bytecode else []
    return ["-I", "-S", *no_bytecode, "-X", f"utf8={sys.flags.utf8_mode}"]


def _import_paths() -> list[str]:
    """Return the import paths of this process, so that the worker runs the same program."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [*(path for path in sys.path if isinstance(path, str) and path), package]


def serve(module: str) -> None:
    """Answer requests from standard input until it ends; the worker process runs this."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Imports may print; that must not be read as an answer.
    os.dup2(2, 1)
    answer: Handler = import_module(module).handle(pickle.load(questions))
    with suppress(EOFError):
        while True:
            pickle.dump(answer(pickle.load(questions)), answers)
            answers.flush()
