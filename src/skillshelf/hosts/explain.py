"""A name or a path to the files that are meant by it, and hosts to their verdicts on them."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.config.hosts import HOSTS, find_host
from skillshelf.core import files
from skillshelf.core.console import PathDisplay
from skillshelf.core.environment import Environment, find_repository
from skillshelf.core.limits import STRAY_FOLDERS
from skillshelf.core.values import Diagnostic
from skillshelf.hosts.fixes import Fix, command_name, fix_for, ranked_fixes, wants_put
from skillshelf.hosts.near_misses import entries_in, near_misses
from skillshelf.hosts.placement import (
    Standing,
    copies_of,
    hosts_of,
    is_own_copy,
    link_name,
    manifest_entry,
    source_of,
    standing_of,
)
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import SkillFile, Survey, skill_file_at, take_survey

__all__ = [
    "asked_about",
    "asked_hosts",
    "find",
    "fixes_of",
    "is_path",
    "near",
    "near_miss_lines",
    "path_of",
    "verdicts_of",
]


def asked_hosts(given: Sequence[str]) -> list[str]:
    """The hosts that were named, or all."""
    return [find_host(name).name for name in dict.fromkeys(given)] or list(HOSTS)


def verdicts_of(skill_file: SkillFile, survey: Survey, hosts: Iterable[str]) -> list[Verdict]:
    """What each of these hosts makes of a file."""
    return [judge(skill_file, survey.states[host], survey) for host in hosts]


# Finding ------------------------------------------------------------------------------------------


def is_path(wanted: str) -> bool:
    """Whether a word is meant as a path."""
    return "/" in wanted or wanted in (".", "..", SKILL_FILE)


def path_of(wanted: str, environment: Environment) -> str:
    """The absolute path that is meant."""
    return os.path.normpath(os.path.join(environment.cwd, os.path.expanduser(wanted)))


def find(wanted: str, environment: Environment, hosts: Sequence[str]) -> tuple[Survey, list[SkillFile]]:
    """A survey, and the files in it that are meant: by path, by name, or by name where no host looks."""
    if is_path(wanted):
        return _at(path_of(wanted, environment), environment, hosts)
    survey = take_survey(environment, hosts, progress=sys.stderr)
    if found := [skill_file for skill_file in survey.skill_files if wanted in _names_of(skill_file, survey)]:
        return survey, found
    folders, problems = _folders_below(environment.cwd, find_repository(environment.cwd, _MARKERS) or environment.cwd)
    stray = next(_strays(wanted, survey, folders), None)
    if stray is not None:
        return _at(stray, environment, hosts)
    return survey._replace(unseen=(*survey.unseen, *problems)), []


def _at(path: str, environment: Environment, hosts: Sequence[str]) -> tuple[Survey, list[SkillFile]]:
    survey = take_survey(environment, hosts, path=path, progress=sys.stderr)
    meant = skill_file_at(path)
    found = survey.by_path.get(meant.real_path) if meant is not None else None
    return survey, [found] if found is not None else []


def _names_of(skill_file: SkillFile, survey: Survey) -> set[str]:
    """Every name a file goes by: its folder's, what it declares, and what hosts make of that."""
    found = {
        state.by_file[skill_file.real_path].name
        for state in survey.states.values()
        if skill_file.real_path in state.by_file
    }
    return {skill_file.folder, link_name(skill_file), *found}


def near(wanted: str, survey: Survey) -> list[str]:
    """Names that look like the one asked for."""
    from difflib import get_close_matches

    known = {name.lower(): name for skill_file in survey.skill_files for name in _names_of(skill_file, survey)}
    word = os.path.basename(wanted.rstrip("/"))[:200].lower()
    if not word:
        return []
    close = get_close_matches(word, list(known), 3, 0.6)
    close += [name for name in sorted(known) if word in name and name not in close]
    return [known[name] for name in close[:5]]


def near_miss_lines(survey: Survey, where: PathDisplay | None = None) -> list[str]:
    """Folders that are spelt nearly like one that hosts read, each with what is wrong."""
    return [f"{where.short(path) if where else path} {message}" for path, message, _ in near_misses(survey)]


# Where no host looks ------------------------------------------------------------------------------

_LABELS = sorted(
    {path for host in HOSTS.values() for rule in host.roots if rule.kind == "project" for path in rule.paths}
)


def _strays(wanted: str, survey: Survey, folders: Iterable[str]) -> Iterator[str]:
    """Skills of that name in a folder that is spelt wrong, or among those of the folders below."""
    misspelt = [path for miss in near_misses(survey) for path in (miss.path, f"{miss.path}/skills")]
    for root in chain(misspelt, (f"{folder}/{label}" for folder in folders for label in _LABELS)):
        if files.kind_at(f"{root}/{wanted}/{SKILL_FILE}") is not None:
            yield f"{root}/{wanted}"


_MARKERS = sorted({marker for host in HOSTS.values() for marker in host.markers})


def _folders_below(cwd: str, top: str) -> tuple[list[str], list[Diagnostic]]:
    """The folders that hold a folder of some host, those below here first, and that there were too many to look at."""
    tops = {label.split("/")[0] for label in _LABELS}
    waiting, found = list(dict.fromkeys((cwd, top))), []
    # The list grows while it is gone through.
    for folder in islice(waiting, STRAY_FOLDERS):
        names = [name for name, is_folder in entries_in(folder) if is_folder]
        found += [folder] if tops.intersection(names) and not files.is_inside(cwd, folder) else []
        below = [f"{folder}/{name}" for name in names if not name.startswith(".") and name != "node_modules"]
        waiting += [path for path in below if path != cwd]
    if len(waiting) <= STRAY_FOLDERS:
        return found, []
    message = f"only the first {STRAY_FOLDERS:,} folders below were searched for skills that no host knows"
    return found, [Diagnostic(top, "walk-limit", message)]


class Explanation(NamedTuple):
    """One file, the verdict of every host asked, what helps, its text, and what there is to say about its place.

    `is_copy` if it is one that `link` made; `by_copy` are the hosts that have such a copy of it.
    """

    path: str
    verdicts: Sequence[Verdict]
    help: Sequence[Fix]
    text: tuple[bytes, int]
    note: str = ""
    is_copy: bool = False
    by_copy: Sequence[str] = ()


Judged = Mapping[str, Sequence[Verdict]]
"""What each host makes of a file, by its real path."""


class _Copy(NamedTuple):
    """A copy of a skill, how it stands to that, and what the hosts make of it that look where it lies."""

    skill_file: SkillFile
    standing: Standing
    verdicts: Sequence[Verdict]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that see it."""
        return tuple(verdict.host for verdict in self.verdicts if verdict.visible)

    @property
    def folder(self) -> str:
        """Where it lies."""
        return os.path.dirname(self.skill_file.path)


def asked_about(found: Sequence[SkillFile], survey: Survey, hosts: Sequence[str]) -> list[Explanation]:
    """What there is to say about each file."""
    copies = [copy for skill_file in found for copy in copies_of(skill_file, survey)]
    everything = {one.real_path: one for one in (*found, *copies)}
    judged = {path: verdicts_of(one, survey, hosts) for path, one in everything.items()}
    return [_asked(skill_file, list(everything.values()), judged, survey) for skill_file in found]


def _asked(skill_file: SkillFile, everything: Sequence[SkillFile], judged: Judged, survey: Survey) -> Explanation:
    verdicts = judged[skill_file.real_path]
    text = (skill_file.head, skill_file.size)
    if is_own_copy(os.path.dirname(skill_file.path)) and (source := source_of(skill_file, survey)) is not None:
        # What helps is told of the skill itself, which a copy follows.
        words = "a copy that skillshelf made" + _STANDS[standing_of(skill_file, source)]
        return Explanation(skill_file.path, verdicts, (), text, words, is_copy=True)
    copies = [_copy(copy, skill_file, judged) for copy in copies_of(skill_file, survey)]
    helping = [fix for copy in copies if (fix := _remedy(copy, skill_file, survey))]
    reached = {verdict.host for copy in copies for verdict in copy.verdicts}
    served = _served(skill_file, everything, judged) | reached
    helping += ranked_fixes(skill_file, verdicts, survey, served=served)
    seeing = {host for copy in copies for host in copy.hosts} | {one.host for one in verdicts if one.visible}
    for copy in copies:
        left = [verdict for verdict in copy.verdicts if verdict.host not in seeing]
        helping += ranked_fixes(copy.skill_file, left, survey) if left and copy.standing == "same" else []
    told = [_told(verdict, skill_file, copies, survey) for verdict in verdicts]
    by_copy = tuple(host for copy in copies for host in copy.hosts)
    return Explanation(skill_file.path, told, _together(helping), text, by_copy=by_copy)


def _copy(copy: SkillFile, skill_file: SkillFile, judged: Judged) -> _Copy:
    there = [verdict for verdict in judged[copy.real_path] if not wants_put(verdict, copy)]
    return _Copy(copy, standing_of(copy, skill_file), there)


_STANDS: Mapping[Standing, str] = {"same": "", "behind": ", which fell behind", "edited": ", which was edited since"}


_SEES: Mapping[Standing, str] = {
    "same": "sees the copy",
    "behind": "sees an old copy,",
    "edited": "sees an edited copy,",
}


def _told(verdict: Verdict, skill_file: SkillFile, copies: Sequence[_Copy], survey: Survey) -> Verdict:
    """A verdict as it is told: of a host that does not look where the file lies, with the copy that it has."""
    having = [(copy, one) for copy in copies for one in copy.verdicts if one.host == verdict.host]
    if verdict.visible or not having:
        return verdict
    copy, seen = max(having, key=lambda pair: pair[1].visible is True)
    shown = PathDisplay(survey.environment.cwd, survey.environment.home).short(copy.folder)
    if seen.visible:
        return verdict._replace(detail=f"{_SEES[copy.standing]} {shown}")
    return verdict._replace(detail=f"{seen.verdict}: the copy {shown}") if wants_put(verdict, skill_file) else verdict


def _together(helping: Iterable[Fix]) -> list[Fix]:
    """The same advice for a skill and its copies as one."""
    found: dict[str, Fix] = {}
    for one in helping:
        known = found.get(one.what)
        more = known and known._replace(hosts=known.hosts + one.hosts, needing=known.needing + one.needing)
        found[one.what] = more or one
    return list(found.values())


def _remedy(copy: _Copy, skill_file: SkillFile, survey: Survey) -> Fix | None:
    """What to do about a copy that no longer says what the skill says; None where it does, or nobody asked has it."""
    if copy.standing == "same" or not copy.verdicts:
        return None
    where = PathDisplay(survey.environment.cwd, survey.environment.home)
    having = tuple(verdict.host for verdict in copy.verdicts)
    hosts = copy.hosts or having
    made_for = hosts_of(manifest_entry(*os.path.split(copy.folder)) or {})
    command = _renewing(skill_file, next((host for host in made_for if host in having), having[0]), survey)
    if copy.standing == "behind":
        return Fix("hand", f"{command}  ({where.short(copy.folder)} fell behind)", hosts)
    source = where.short(os.path.dirname(skill_file.path))
    edited = f"{where.short(copy.folder)} was edited since"
    return Fix("hand", f"{edited}: put what you need into {source}, remove the copy, then: {command}", hosts)


def _renewing(skill_file: SkillFile, host: str, survey: Survey) -> str:
    return f"skillshelf link {command_name(skill_file, survey)} --to {host}"


def _served(skill_file: SkillFile, everything: Sequence[SkillFile], judged: Judged) -> set[str]:
    """The hosts that see another file of the name, or would if they trusted the folder.

    Not those that see another text instead of this one, which of the two is meant has to be settled; a copy of ours
    is meant to be the same.
    """
    mine = {verdict.host: verdict.verdict for verdict in judged[skill_file.real_path]}
    served, misled = set(), set()
    for other in (other for other in everything if other is not skill_file):
        seeing = {verdict.host for verdict in judged[other.real_path] if verdict.visible}
        asking = {verdict.host for verdict in judged[other.real_path] if verdict.verdict == "untrusted"}
        served |= seeing | {host for host in asking if mine[host] != "untrusted"}
        if (other.head, other.size) != (skill_file.head, skill_file.size) and not is_own_copy(
            os.path.dirname(other.path)
        ):
            misled |= seeing
    return served - {host for host in misled if mine[host] == "shadowed-by"}


def fixes_of(asked: Explanation, survey: Survey) -> dict[str, str | None]:
    """What to do for each host so that it sees the file, or the text that this has now."""
    skill_file = survey.by_path[asked.path]
    hosts = [verdict.host for verdict in asked.verdicts]
    if asked.is_copy:
        return dict.fromkeys(hosts)
    fixes = {one.host: fix_for(one, skill_file, survey.states[one.host], survey) for one in asked.verdicts}
    for copy in copies_of(skill_file, survey):
        behind = standing_of(copy, skill_file) == "behind"
        for one in verdicts_of(copy, survey, hosts):
            if fixes[one.host] is not None and not wants_put(one, copy):
                fix = fix_for(one, copy, survey.states[one.host], survey)
                fixes[one.host] = _renewing(skill_file, one.host, survey) if behind else fix
    return fixes
