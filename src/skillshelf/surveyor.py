"""A place to what every host makes of a file in it, found out by a process of its own.

With ten thousand skills that is work for half a minute. A thread of the program that draws would take turns with it,
and every key would wait.
"""

import os
import pickle
import sys
from contextlib import suppress
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from skillshelf.errors import SkillError
from skillshelf.place import Place

# What only the other process needs is imported there.
if TYPE_CHECKING:
    import subprocess

    from skillshelf.verdicts import Verdict

__all__ = ["Surveyor", "serve"]

_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from skillshelf.surveyor import serve; serve()"
_POLITE = 10
"""How much less than the program that draws the other one counts, where there is too little of the machine for both."""


class Surveyor:
    """Asks the process, which is started with the first question and ended by `close`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._is_closed = False
        self.failure = ""

    def look(self) -> None:
        """Look at the place as every host does, if that is still to be done."""
        self._ask("look")
        self._is_ready = True

    def verdicts(self, path: str) -> "list[Verdict] | None":
        """What each host makes of a file; None as long as the answer would have to wait for something longer."""
        if not self._is_ready or not self._lock.acquire(blocking=False):
            return None
        self._lock.release()
        return list(self._ask("verdicts", path))

    def seen_by(self, host: str) -> frozenset[str]:
        """Every path to a file that a host tells its model about."""
        return frozenset(self._ask("seen_by", host))

    def close(self) -> None:
        """End the process, whatever it does; nothing can be asked any more."""
        self._is_closed = True
        self._end()

    def _end(self) -> int | None:
        """How the process ended; where it still runs, it is killed."""
        process, self._process, self._is_ready = self._process, None, False
        if process is None:
            return None
        process.kill()
        # What was still to be written has no reader.
        with suppress(OSError):
            process.communicate()
        return process.returncode

    def _ask(self, *question: str) -> Any:
        with self._lock:
            try:
                asked, told = self._streams()
                pickle.dump(question, asked)
                asked.flush()
                return pickle.load(told)
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                self.failure = f"the process that asks them ended ({self._end()}); skillshelf hosts may say why"
                raise SkillError(f"no host could be asked: {self.failure}") from None

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        """Where questions go and where answers come from."""
        import subprocess

        if self._is_closed:
            raise EOFError
        if self._process is None:
            package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            # A session of its own: Ctrl-C is for the picker. -P: nothing is imported from the folder it is run in.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, package],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._process.stdin is not None
            pickle.dump(self._place._replace(env=dict(self._place.env)), self._process.stdin)
            self.failure = ""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


# The other process --------------------------------------------------------------------------------


def serve() -> None:
    """Answer questions from standard input until it ends."""
    os.nice(_POLITE)
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    eyes = _Eyes(pickle.load(questions))
    with suppress(EOFError):
        while True:
            _answer(eyes, questions, answers)


def _answer(eyes: "_Eyes", questions: BinaryIO, answers: BinaryIO) -> None:
    name, *words = pickle.load(questions)
    pickle.dump(getattr(eyes, name)(*words), answers)
    answers.flush()


class _Eyes:
    """One survey of a place."""

    def __init__(self, place: Place) -> None:
        from skillshelf.hosts import HOSTS
        from skillshelf.survey import take_survey

        self._survey = take_survey(place, list(HOSTS))

    def look(self) -> None:
        """Nothing: the look was taken."""

    def verdicts(self, path: str) -> "list[Verdict]":
        """What each host makes of a file; nothing where there is none."""
        from skillshelf.survey import sight
        from skillshelf.verdicts import judge

        sighting = self._survey.by_path.get(path) or sight(path)
        return [judge(sighting, view, self._survey) for view in self._survey.views.values()] if sighting else []

    def seen_by(self, host: str) -> list[str]:
        """Every path to a file that a host tells its model about."""
        from skillshelf.verdicts import judge

        view = self._survey.views[host]
        visible = {found.real_path for found in self._survey.sightings if judge(found, view, self._survey).visible}
        return [path for path, sighting in self._survey.by_path.items() if sighting.real_path in visible]
