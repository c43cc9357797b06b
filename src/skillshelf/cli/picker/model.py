"""Provide the picker's data: rows, previews, the verdicts of hosts, and the switch that disables a skill."""

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.build_context import is_listed, required_by
from skillshelf.cli.picker.rows import (
    MatchingRows,
    RowFilter,
    ScreenLine,
    SkillRow,
    details,
    host_lines,
    preview,
    rows_of,
    select_rows,
)
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings_edit import change_list
from skillshelf.config.system_policy import is_banned
from skillshelf.core.console import PathDisplay
from skillshelf.core.environment import Environment, expand, user_config_path
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import folded_name, trust_command
from skillshelf.core.worker_process import WorkerLost, WorkerProcess
from skillshelf.errors import ConfigurationError, PermissionDenied, SkillError

if TYPE_CHECKING:
    from skillshelf.core.values import CatalogSkill
    from skillshelf.hosts.stages import Verdict
    from skillshelf.shelf import Shelf

__all__ = ["PickerModel", "SurveyWorker", "handle"]

_NICENESS = 10
"""The picker comes first where the machine is too slow for both processes."""


class SurveyWorker:
    """A process that surveys all hosts; it starts with the first request and ends with `close`.

    The first survey of 10,000 skills takes seconds. In a thread of the picker it would delay every key.
    """

    def __init__(self, environment: Environment, cache_folder: str | None = None) -> None:
        place = environment._replace(env=dict(environment.env))
        self._process = WorkerProcess("skillshelf.cli.picker.model", (place, cache_folder))
        self._lock = Lock()
        self._is_ready = False
        self.failure = ""

    def survey(self) -> None:
        """Survey all hosts, unless that is done already."""
        self._request("wait")
        self._is_ready = True

    def verdicts(self, path: str) -> "list[Verdict] | None":
        """Return each host's verdict on a file, or None while the process is busy with something longer."""
        if not self._is_ready or not self._lock.acquire(blocking=False):
            return None
        self._lock.release()
        return list(self._request("verdicts", path))

    def hidden_from(self, host: str) -> frozenset[str]:
        """Return every path to a file that a host does not give to its model."""
        return frozenset(self._request("hidden_from", host))

    def close(self) -> None:
        """End the process, whatever it does; later requests fail."""
        self._process.close()

    def _request(self, *request: str) -> Any:
        with self._lock:
            try:
                answer = self._process.ask(request)
            except WorkerLost as lost:
                self._is_ready = False
                self.failure = f"the process that surveys them {lost}; skillshelf hosts may show why"
                raise SkillError(f"hosts cannot be surveyed: {self.failure}") from None
            self.failure = ""
            return answer


# In the other process -----------------------------------------------------------------------------


def handle(place: tuple[Environment, str | None]) -> Callable[[tuple[str, ...]], Any]:
    """Return the function that answers requests: each is the name of a method of the survey, with its arguments."""
    os.nice(_NICENESS)
    survey = _AllHostsSurvey(*place)
    return lambda request: getattr(survey, request[0])(*request[1:])


class _AllHostsSurvey:
    """One survey of all hosts, with their budgets."""

    def __init__(self, environment: Environment, cache_folder: str | None) -> None:
        from skillshelf.hosts.survey import take_survey

        self._survey = take_survey(environment, list(HOSTS), cache_folder=cache_folder)
        for host, profile in HOSTS.items():
            if profile.catalog_budget:
                self._survey.list_size(host)
        if cache_folder is not None:
            self._survey.keep(cache_folder)

    def wait(self) -> None:
        """Do nothing: an answer means that the survey is complete."""

    def verdicts(self, path: str) -> "list[Verdict]":
        """Return each host's verdict on a file, or nothing if there is no such file."""
        from skillshelf.hosts.stages import judge
        from skillshelf.hosts.survey import skill_file_at

        skill_file = self._survey.by_path.get(path) or skill_file_at(path)
        if skill_file is None:
            return []
        states = [self._survey.state_about(host, skill_file) for host in self._survey.hosts]
        return [judge(skill_file, state, self._survey) for state in states]

    def hidden_from(self, host: str) -> list[str]:
        """Return every path to a file that a host does not give to its model, as far as that is known."""
        from skillshelf.hosts.stages import judge

        state, found = self._survey.state(host), self._survey.skill_files
        hidden = {one.real_path for one in found if judge(one, state, self._survey).visible is False}
        return [path for path, skill_file in self._survey.by_path.items() if skill_file.real_path in hidden]


# In the picker ------------------------------------------------------------------------------------


class _HostCatalog(NamedTuple):
    """The shelf of a host, and the rows of its catalog without those that it does not give to its model."""

    shelf: "Shelf"
    rows: Sequence[SkillRow]


class PickerModel:
    """The skills of a shelf; `open_shelf` opens it again after a change of the configuration.

    With a host as filter they are those of the host's own catalog. `to_trust` returns the command that trusts the
    project of a shelf.
    """

    def __init__(self, open_shelf: "Callable[[], Shelf]", *, to_trust: "Callable[[Shelf], str] | None" = None) -> None:
        self._open_shelf = open_shelf
        self._to_trust = to_trust or (lambda shelf: trust_command(shelf.project_root))
        self._lock = Lock()
        self.shelf = self._open()
        self.where = PathDisplay(self.shelf.environment.cwd, self.shelf.environment.home)
        self._rows: Sequence[SkillRow] | None = None
        self._is_indexed = False
        self._hosts = SurveyWorker(self.shelf.environment, self.shelf.cache)
        self._hidden_from: dict[str, frozenset[str]] = {}
        self._catalogs: dict[str, _HostCatalog] = {}

    def _open(self) -> "Shelf":
        shelf = self._open_shelf()
        # A progress line would be drawn over the picker.
        shelf.progress = None
        return shelf

    def rows(self, host: str | None = None) -> Sequence[SkillRow]:
        """Return every row, or those of a host that was loaded; the first call reads the disk."""
        if host is not None:
            return self._catalogs[host].rows
        with self._lock:
            if self._rows is None:
                self._rows = rows_of(self.shelf.catalog, self.where)
            return self._rows

    def select(self, row_filter: RowFilter) -> MatchingRows:
        """Return the rows that match a filter; without an index only names are compared."""
        shelf = self._shelf_of(row_filter.host)
        return select_rows(shelf, self.rows(row_filter.host), row_filter, rank=self._is_indexed)

    def _shelf_of(self, host: str | None) -> "Shelf":
        return self.shelf if host is None else self._catalogs[host].shelf

    def build_index(self) -> None:
        """Update the search index, which takes a while the first time."""
        # Words that begin no name: a search that names alone can answer does not open the index.
        self.shelf.search("and now for the index")
        self._is_indexed = True

    def describe(self, row: SkillRow, host: str | None = None) -> list[ScreenLine]:
        """Return the details of a row, the verdicts of hosts, and the text that a model would get."""
        text = preview(self._shelf_of(host), row)
        about = details(row, self.where, self._to_trust(self.shelf))
        return [*about, *self._host_lines(row), *([ScreenLine("")] if text else []), *text]

    def close(self) -> None:
        """End the survey of hosts."""
        self._hosts.close()

    # Hosts ----------------------------------------------------------------------------------------

    def survey_hosts(self) -> None:
        """Survey all hosts; with thousands of skills that takes seconds."""
        self._hosts.survey()

    def load_host(self, host: str) -> None:
        """Find the skills that a host gives to its model, for a filter with that host."""
        if host not in self._hidden_from:
            self._hidden_from[host] = self._hosts.hidden_from(host)
        if host not in self._catalogs:
            self._catalogs[host] = self._host_catalog(host)

    def _host_catalog(self, host: str) -> _HostCatalog:
        from skillshelf.shelf import Shelf

        own = self.shelf
        use_cache = own.cache is not None
        shelf = Shelf(own.environment, HOSTS[host], own.settings, own.trust, use_cache=use_cache)
        if self._is_indexed:
            shelf.prepare_search()
        # Other commands know by name what is in the catalog of the profile.
        known = {row.path: row for row in self.rows() if row.skill is not None}
        rows = []
        for row in rows_of(shelf.catalog, self.where):
            if row.skill is None or row.path not in self._hidden_from[host]:
                twin = known.get(row.path)
                is_known = twin is not None and twin.name == row.name and not twin.has_namesake
                rows.append(row._replace(has_namesake=not is_known))
        return _HostCatalog(shelf, rows)

    def _host_lines(self, row: SkillRow) -> list[ScreenLine]:
        try:
            verdicts = self._hosts.verdicts(row.path)
        except SkillError:
            verdicts = None
        if self._hosts.failure:
            return [ScreenLine(f"hosts    {self._hosts.failure}", "bad", hang=9)]
        if verdicts is not None:
            return host_lines(verdicts)
        return [*host_lines(self._first_verdicts(row)), ScreenLine("hosts    checking their budgets …", "quiet")]

    def _first_verdicts(self, row: SkillRow) -> "list[Verdict]":
        """Return verdicts from the file and others of its name alone, until the survey is complete."""
        from skillshelf.hosts.stages import judge
        from skillshelf.hosts.survey import survey_one

        rivals = [other.path for other in self.rows() if other.name == row.name]
        survey = survey_one(self.shelf.environment, list(HOSTS), row.path, rivals)
        skill_file = survey.by_path.get(row.path)
        return [judge(skill_file, state, survey) for state in survey.states.values()] if skill_file else []

    # Enable and disable ---------------------------------------------------------------------------

    def toggle(self, row: SkillRow) -> str:
        """Disable a skill, or enable it, in the user's configuration file; return a message with the result."""
        if row.skill is None:
            raise ConfigurationError(f"{row.name} is not in the catalog; it cannot be enabled or disabled")
        wanted = not row.skill.enabled
        self._require_choice(row.skill)
        file = self._edit_disabled(row, row.skill, enable=wanted)
        shelf = self._open()
        rows = rows_of(shelf.catalog, self.where)
        with self._lock:
            self.shelf, self._rows = shelf, rows
        self._catalogs = {host: self._host_catalog(host) for host in self._catalogs}
        now = next((other.skill for other in rows if other.path == row.path), None)
        if now is not None and now.enabled != wanted:
            state = "enabled" if now.enabled else "disabled"
            return f"{row.name} is still {state}: another configuration file sets it"
        return f"{row.name} is {'enabled' if wanted else 'disabled'} ({self.where.short(file)})"

    def _require_choice(self, skill: "CatalogSkill") -> None:
        """Raise PermissionDenied for a skill that the system policy requires or forbids: nobody turns it on or off."""
        if is_banned(skill.hidden_by):
            raise PermissionDenied(f"{skill.name} is forbidden by the system policy ({skill.hidden_by})")
        subject = (skill.name, skill.path, skill.real_path, skill.real_dir)
        if by := required_by(self.shelf.settings.system, *subject):
            raise PermissionDenied(f"{skill.name} cannot be disabled: the system policy requires it ({by})")

    def _edit_disabled(self, row: SkillRow, skill: "CatalogSkill", *, enable: bool) -> str:
        """Add the skill to `skills.disabled`, or remove every entry that means it; return the path of the file."""
        environment = self.shelf.environment
        base = os.path.dirname(user_config_path(environment) or "")
        # The name, as the command disable writes it, or the path if several skills have that name.
        names = [folded_name(other.name) for other in self.rows() if other.skill is not None]
        several = names.count(folded_name(row.name)) > 1
        key = row.path if several else row.name

        def edit(entries: list[str]) -> list[str]:
            full = [expand(entry, environment, base=base) if "/" in entry else entry for entry in entries]
            others = [
                entry
                for entry, name in zip(entries, full, strict=True)
                if not is_listed([name], skill.name, skill.path, skill.real_path)
            ]
            return others if enable else [*others, key]

        return change_list(environment, "skills", "disabled", edit)[0]
