"""Grade a recorded run: whether the model loaded a skill, by the journal alone.

A live run is graded by its journal too, so that whoever has the file can repeat the grade.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from skillshelf.core import files
from skillshelf.core.limits import EVAL_INDEX_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.journal.events import (
    Event,
    NotAnEvent,
    SessionEnded,
    SkillInvoked,
    SkillLoaded,
    SkillRead,
    SkillWarning,
    ToolDecided,
    ToolEnded,
    ToolFailed,
    ToolStarted,
    parse_event,
)
from skillshelf.journal.file import read, verify

__all__ = ["INDEX_FILE", "RUN_FAILED", "RunGrade", "RunOutcome", "TriggerWatch", "grade_journal", "regrade"]

INDEX_FILE = "runs.json"
"""The file in a folder of journals that says which skill, query and run each journal is about."""

RUN_FAILED = "eval-error"
"""The kind of the warning by which a journal says that its run failed."""

RunOutcome = Literal["triggered", "missed", "error"]


class RunGrade(NamedTuple):
    """The outcome of one run: whether the model loaded the skill, and what it did otherwise.

    `loaded` are the names of the skills that the model loaded, in their order, `calls` is the number of its tool calls
    that the session has seen. `detail` says what went wrong if the outcome is `error`.
    """

    outcome: RunOutcome
    detail: str = ""
    loaded: tuple[str, ...] = ()
    calls: int = 0


class TriggerWatch:
    """Follows the events of a run; a skill is known by the path of its SKILL.md.

    Every tool call of the answer counts, whichever came before. A skill counts as loaded once a call of the model has
    given it its SKILL.md, whatever the tool: one that loads, or one that reads files.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_in_call = False
        self._is_ended = False
        self._problem: str | None = None
        self._calls = 0
        self._loaded: dict[str, str] = {}

    @property
    def is_triggered(self) -> bool:
        """True if the model has loaded the skill."""
        return self._path in self._loaded

    def take(self, event: Event) -> None:
        """Follow the next event."""
        if isinstance(event, ToolStarted):
            # A call of a person, or a text that the host loaded in advance, is no choice of the model.
            self._is_in_call = event.mode == "auto"
            self._calls += self._is_in_call
        elif isinstance(event, ToolEnded | ToolFailed):
            self._is_in_call = False
        elif isinstance(event, ToolDecided):
            self._calls += 1
        elif isinstance(event, SkillLoaded | SkillInvoked | SkillRead):
            if self._is_in_call and (not isinstance(event, SkillRead) or _is_whole_skill(event)):
                self._loaded.setdefault(event.path, event.name)
        elif isinstance(event, SkillWarning) and event.kind == RUN_FAILED:
            self._problem = event.detail
        elif isinstance(event, SessionEnded):
            self._is_ended = True

    def grade(self) -> RunGrade:
        """Return the grade by the events so far; a session that has not ended is an error."""
        loaded = tuple(self._loaded.values())
        problem = self._problem if self._is_ended else self._problem or "the session has no end"
        if problem is not None:
            return RunGrade("error", problem, loaded, self._calls)
        return RunGrade("triggered" if self.is_triggered else "missed", "", loaded, self._calls)


def _is_whole_skill(event: SkillRead) -> bool:
    return os.path.basename(event.path) == "SKILL.md"


def grade_journal(journal: str | os.PathLike[str], skill_path: str) -> RunGrade:
    """Return the grade of the run that a journal records, for the skill whose SKILL.md has this path.

    A journal that cannot be read, does not verify or has no end is no evidence: the outcome is `error`.
    """
    file, watch = os.fspath(journal), TriggerWatch(skill_path)
    try:
        checked = verify(file)
        if not checked.ok:
            return RunGrade("error", f"the journal does not verify: {checked.problems[0].detail}")
        for event in _events(file):
            watch.take(event)
    except OSError as error:
        return RunGrade("error", f"the journal cannot be read: {(error.strerror or str(error)).lower()}")
    except NotAnEvent as error:
        return RunGrade("error", f"the journal has an unknown event: {error}")
    return watch.grade()


def _events(file: str) -> Iterator[Event]:
    for line in read(file):
        if line.record is not None:
            yield parse_event(line.record)


def regrade(folder: str | os.PathLike[str]) -> list[tuple[Mapping[str, Any], RunGrade]]:
    """Return each entry of the index of a folder of journals, with the grade that its journal gives now."""
    place = os.fspath(folder)
    try:
        data = files.read_file(os.path.join(place, INDEX_FILE), limit=EVAL_INDEX_BYTES, links="never")
        entries = json.loads(data or b"")["runs"]
        return [(entry, grade_journal(_journal_of(place, entry), str(entry["path"]))) for entry in entries]
    except OSError as error:
        raise ConfigurationError(f"{place} has no readable {INDEX_FILE}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ConfigurationError(f"{os.path.join(place, INDEX_FILE)} is no index of journals") from None


def _journal_of(folder: str, entry: Mapping[str, Any]) -> str:
    # An index comes with its folder, from anywhere: it names files beside it and nothing else.
    return os.path.join(folder, os.path.basename(str(entry["journal"])))
