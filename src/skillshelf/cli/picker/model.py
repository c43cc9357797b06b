"""A place to what every host makes of a file in it, found out by a process of its own.

With ten thousand skills that is work for half a minute. A thread of the program that draws would take turns with it,
and every key would wait.
"""

import os
from collections.abc import Callable, Hashable, Sequence
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.cli.picker.rows import (
    PickerAnswer,
    RowFilter,
    ScreenLine,
    SkillRow,
    answer,
    details,
    hosts_of,
    preview,
    rows_of,
)
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings_edit import change_list
from skillshelf.core.console import PathDisplay
from skillshelf.core.environment import Environment, expand, user_config_path
from skillshelf.core.worker_process import WorkerLost, WorkerProcess
from skillshelf.errors import ConfigurationError, SkillError

if TYPE_CHECKING:
    from skillshelf.hosts.stages import Verdict
    from skillshelf.shelf import Shelf

__all__ = ["Errands", "PickerModel", "SurveyWorker", "answers"]


_POLITE = 10
"""How much less than the program that draws the other one counts, where there is too little of the machine for both."""


class SurveyWorker:
    """Asks the process, which is started with the first question and ended by `close`."""

    def __init__(self, environment: Environment) -> None:
        self._partner = WorkerProcess("skillshelf.cli.picker.model", environment._replace(env=dict(environment.env)))
        self._lock = Lock()
        self._is_ready = False
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
        self._partner.close()

    def _ask(self, *question: str) -> Any:
        with self._lock:
            try:
                answer = self._partner.ask(question)
            except WorkerLost as lost:
                self._is_ready = False
                self.failure = f"the process that asks them {lost}; skillshelf hosts may say why"
                raise SkillError(f"no host could be asked: {self.failure}") from None
            self.failure = ""
            return answer


# The other process --------------------------------------------------------------------------------


def answers(environment: Environment) -> Callable[[tuple[str, ...]], Any]:
    """What the other process answers: a question is the name of a method of its eyes, with words."""
    os.nice(_POLITE)
    eyes = _Eyes(environment)
    return lambda question: getattr(eyes, question[0])(*question[1:])


class _Eyes:
    """One survey of a place."""

    def __init__(self, environment: Environment) -> None:
        from skillshelf.config.hosts import HOSTS
        from skillshelf.hosts.survey import take_survey

        self._survey = take_survey(environment, list(HOSTS))

    def look(self) -> None:
        """Nothing: the look was taken."""

    def verdicts(self, path: str) -> "list[Verdict]":
        """What each host makes of a file; nothing where there is none."""
        from skillshelf.hosts.stages import judge
        from skillshelf.hosts.survey import skill_file_at

        skill_file = self._survey.by_path.get(path) or skill_file_at(path)
        return [judge(skill_file, state, self._survey) for state in self._survey.states.values()] if skill_file else []

    def seen_by(self, host: str) -> list[str]:
        """Every path to a file that a host tells its model about."""
        from skillshelf.hosts.stages import judge

        state = self._survey.states[host]
        visible = {found.real_path for found in self._survey.skill_files if judge(found, state, self._survey).visible}
        return [path for path, skill_file in self._survey.by_path.items() if skill_file.real_path in visible]


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


class PickerModel:
    """What is on the shelf now; `open_shelf` opens it anew, with the configuration as it is then."""

    def __init__(self, open_shelf: "Callable[[], Shelf]") -> None:
        self._open_shelf = open_shelf
        self._lock = Lock()
        self.shelf = self._open()
        self.where = PathDisplay(self.shelf.environment.cwd, self.shelf.environment.home)
        self._rows: Sequence[SkillRow] | None = None
        self._is_indexed = False
        self._surveyor = SurveyWorker(self.shelf.environment)
        self._seen: dict[str, frozenset[str]] = {}

    def _open(self) -> "Shelf":
        """The shelf, silent: a line that says how far it is would be drawn over the picker."""
        shelf = self._open_shelf()
        shelf.progress = None
        return shelf

    def rows(self) -> Sequence[SkillRow]:
        """Every row there is; the disk is looked at when they are first asked for."""
        with self._lock:
            if self._rows is None:
                self._rows = rows_of(self.shelf.catalog, self.where)
            return self._rows

    def answer(self, look: RowFilter) -> PickerAnswer:
        """The rows that fit a look; by their names only while there is no index."""
        seen = self._seen[look.host] if look.host is not None else None
        sees = None if seen is None else lambda row: row.path in seen
        return answer(self.shelf, self.rows(), look, sees=sees, rank=self._is_indexed)

    def make_index(self) -> None:
        """Bring the search index up to date, which takes a while the first time."""
        # Words that begin no name: a search that names answer does not ask the index.
        self.shelf.search("and now for the index")
        self._is_indexed = True

    def about(self, row: SkillRow) -> list[ScreenLine]:
        """Everything there is to say about a row, and what a model would get of it."""
        told = preview(self.shelf, row)
        return [*details(row, self.where), *self._verdicts(row), *([ScreenLine("")] if told else []), *told]

    # Hosts ----------------------------------------------------------------------------------------

    @property
    def hosts(self) -> Sequence[str]:
        """The hosts that can be asked."""
        return list(HOSTS)

    def ask_hosts(self) -> None:
        """Look at the place as every host does; with thousands of skills that takes seconds."""
        self._surveyor.look()

    def ask_host(self, host: str) -> None:
        """Find out what one host tells its model, so that a look can ask for it."""
        if host not in self._seen:
            self._seen[host] = self._surveyor.seen_by(host)

    def _verdicts(self, row: SkillRow) -> list[ScreenLine]:
        try:
            verdicts = self._surveyor.verdicts(row.path)
        except SkillError:
            verdicts = None
        if self._surveyor.failure:
            return [ScreenLine(f"hosts    {self._surveyor.failure}", "bad", hang=9)]
        if verdicts is not None:
            return hosts_of(verdicts)
        return [*hosts_of(self._first_verdicts(row)), ScreenLine("hosts    looking at their budgets …", "quiet")]

    def _first_verdicts(self, row: SkillRow) -> "list[Verdict]":
        """What hosts make of one file by a look at it and its rivals, until all files have been looked at."""
        from skillshelf.hosts.stages import judge
        from skillshelf.hosts.survey import survey_one

        rivals = [other.path for other in self.rows() if other.name == row.name]
        survey = survey_one(self.shelf.environment, self.hosts, row.path, rivals)
        skill_file = survey.by_path.get(row.path)
        return [judge(skill_file, state, survey) for state in survey.states.values()] if skill_file else []

    def close(self) -> None:
        """End what still goes on."""
        self._surveyor.close()

    # Switches -------------------------------------------------------------------------------------

    def switch(self, row: SkillRow) -> str:
        """Disable a skill, or enable it, in the user's own file; says what came of it."""
        if row.skill is None:
            raise ConfigurationError(f"{row.name} is not in the catalog; there is nothing to switch")
        wanted = not row.skill.enabled
        changed = self._change(row, enable=wanted)
        self._look_again()
        now = next((other.skill for other in self.rows() if other.path == row.path), None)
        if now is not None and now.enabled != wanted:
            state = "enabled" if now.enabled else "disabled"
            return f"{row.name} stays {state}: another configuration file decides"
        return f"{row.name} is {'enabled' if wanted else 'disabled'} ({self.where.short(changed)})"

    def _change(self, row: SkillRow, *, enable: bool) -> str:
        """Put the skill on the list of disabled ones, or take off what means it; returns the file."""
        assert row.skill is not None
        skill, environment = row.skill, self.shelf.environment
        base = os.path.dirname(user_config_path(environment) or "")
        meant = {skill.name, skill.path, skill.real_path, skill.dir, os.path.dirname(skill.real_path)}
        # The name, as the command disable keeps it; the path where a name alone would mean several.
        several = sum(other.name == row.name for other in self.rows() if other.skill is not None) > 1
        key = row.path if several else row.name

        def change(entries: list[str]) -> list[str]:
            full = [expand(entry, environment, base=base) if "/" in entry else entry for entry in entries]
            others = [entry for entry, name in zip(entries, full, strict=True) if name not in meant]
            return others if enable else [*others, key]

        return change_list(environment, "skills", "disabled", change)[0]

    def _look_again(self) -> None:
        shelf = self._open()
        rows = rows_of(shelf.catalog, self.where)
        with self._lock:
            self.shelf, self._rows = shelf, rows
