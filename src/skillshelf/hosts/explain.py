"""Find the files that a name or path means, and explain which hosts see each of them and how to fix the others."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.packed import skills_at
from skillshelf.config.hosts import HOSTS, find_host
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.environment import Environment, find_repository
from skillshelf.core.limits import STRAY_FOLDERS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import near
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic
from skillshelf.hosts.fixes import Fix, fix_for, link_command, needs_placement, ranked_fixes
from skillshelf.hosts.link_records import record_at
from skillshelf.hosts.machine_roots import machine_roots
from skillshelf.hosts.near_misses import entries_in, near_misses
from skillshelf.hosts.placement import (
    CopyState,
    copies_of,
    copy_state,
    is_own_copy,
    link_name,
    source_of,
    why_not_copied,
)
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import SkillFile, Survey, order_key, skill_file_at, take_survey

__all__ = [
    "FileExplanation",
    "absolute_path",
    "explain",
    "find",
    "fix_by_host",
    "hidden_files",
    "is_path",
    "named_in",
    "requested_hosts",
    "similar_names",
    "survey_of_names",
    "verdicts_of",
    "why_candidates",
]


def requested_hosts(names: Sequence[str]) -> list[str]:
    """Return the named hosts, or all if none is named; raise a ConfigurationError for an unknown name."""
    return [find_host(name).name for name in dict.fromkeys(names)] or list(HOSTS)


def verdicts_of(skill_file: SkillFile, survey: Survey, hosts: Iterable[str]) -> list[Verdict]:
    """Return the verdict of each of these hosts on a file."""
    return [judge(skill_file, survey.state_about(host, skill_file), survey) for host in hosts]


# Find ---------------------------------------------------------------------------------------------


def is_path(wanted: str) -> bool:
    """Return true if an argument is a path rather than a name."""
    return "/" in wanted or wanted in (".", "..", SKILL_FILE)


def absolute_path(wanted: str, environment: Environment) -> str:
    """Return the absolute path that an argument means."""
    return os.path.normpath(os.path.join(environment.cwd, os.path.expanduser(wanted)))


def find(
    wanted: str,
    environment: Environment,
    hosts: Sequence[str],
    *,
    cache_folder: str | None = None,
    settings: Settings | None = None,
) -> tuple[Survey, list[SkillFile]]:
    """Take a survey and return the files that a path or name means; a name also where no host reads."""
    if is_path(wanted):
        return _find_at(absolute_path(wanted, environment), environment, hosts, cache_folder)
    survey = survey_of_names([wanted], environment, hosts, cache_folder=cache_folder, settings=settings)
    if found := named_in(wanted, survey):
        # Where no host reads, one below here is meant before one elsewhere.
        below = [one for one in found if files.is_inside(one.path, environment.cwd)]
        return survey, (survey.packages is not None and below) or found
    folders, problems = _folders_with_roots(environment.cwd)
    stray = next(_strays(wanted, survey, folders), None)
    if stray is not None:
        return _find_at(stray, environment, hosts, cache_folder)
    if machine_roots(environment, Settings())[0].top is not None:
        # The walk of the repository goes further, and says itself where it ended.
        problems = []
    return survey._replace(unseen=(*survey.unseen, *problems)), []


def survey_of_names(
    wanted: Iterable[str],
    environment: Environment,
    hosts: Sequence[str],
    *,
    cache_folder: str | None = None,
    settings: Settings | None = None,
) -> Survey:
    """Take a survey of what hosts read or, if a name is not found there, of the whole machine."""
    survey = take_survey(environment, hosts, progress=sys.stderr, cache_folder=cache_folder)
    if all(named_in(one, survey) for one in wanted):
        return survey
    machine, _ = machine_roots(environment, settings or Settings())
    return take_survey(environment, hosts, progress=sys.stderr, cache_folder=cache_folder, machine=machine)


def named_in(wanted: str, survey: Survey) -> list[SkillFile]:
    """Return the files of a survey that a path or name means."""
    if is_path(wanted):
        meant = skill_file_at(absolute_path(wanted, survey.environment))
        found = survey.by_path.get(meant.real_path) if meant is not None else None
        return [found] if found is not None else []
    return [one for one in _possibly_named(wanted, survey) if wanted in _names_of(one, survey)]


def _find_at(
    path: str, environment: Environment, hosts: Sequence[str], cache_folder: str | None
) -> tuple[Survey, list[SkillFile]]:
    survey = take_survey(environment, hosts, path=path, progress=sys.stderr, cache_folder=cache_folder)
    return survey, named_in(path, survey)


def _possibly_named(wanted: str, survey: Survey) -> list[SkillFile]:
    """Return the files that some host may call by this name, in the order of the survey."""
    prefixes = {root.prefix for host in survey.hosts.values() for root in host.roots}
    words = [wanted, *(wanted.removeprefix(prefix) for prefix in prefixes if prefix and wanted.startswith(prefix))]
    possible = {skill_file.real_path: skill_file for word in words for skill_file in survey.names.named(word)}
    return sorted(possible.values(), key=order_key)


def _names_of(skill_file: SkillFile, survey: Survey) -> set[str]:
    """Return every name of a file: its folder, the declared name, and the names that hosts derive from them."""
    real_path = skill_file.real_path
    states = (survey.state_about(host, skill_file) for host in survey.hosts)
    derived = {state.by_file[real_path].name for state in states if real_path in state.by_file}
    return {skill_file.folder, link_name(skill_file), *derived}


def similar_names(wanted: str, survey: Survey) -> list[str]:
    """Return up to five names similar to one that was not found."""
    for host in survey.hosts:
        survey.state(host)
    known = {name.lower(): name for skill_file in survey.skill_files for name in _names_of(skill_file, survey)}
    word = os.path.basename(wanted.rstrip("/"))[:200].lower()
    if not word:
        return []
    close = near(word, known, 3)
    close += [name for name in sorted(known) if word in name and name not in close]
    return [known[name] for name in close[:5]]


def _project_labels() -> set[str]:
    return {path for host in HOSTS.values() for rule in host.roots if rule.kind == "project" for path in rule.paths}


def _strays(wanted: str, survey: Survey, folders: Iterable[str]) -> Iterator[str]:
    """Yield folders of skills with that name in misspelt roots, then in roots of these folders."""
    misspelt = [path for miss in near_misses(survey) for path in (miss.path, f"{miss.path}/skills")]
    labels = sorted(_project_labels())
    for root in chain(misspelt, (f"{folder}/{label}" for folder in folders for label in labels)):
        if files.kind_at(f"{root}/{wanted}/{SKILL_FILE}") is not None:
            yield f"{root}/{wanted}"


def _folders_with_roots(cwd: str) -> tuple[list[str], list[Diagnostic]]:
    """Return the folders of the repository that have roots of their own, those below cwd first.

    The second value says that the repository has too many folders to search them all.
    """
    markers = sorted({marker for host in HOSTS.values() for marker in host.markers})
    repository = find_repository(cwd, markers) or cwd
    tops = {label.split("/")[0] for label in _project_labels()}
    waiting, found = list(dict.fromkeys((cwd, repository))), []
    # The list grows during the iteration.
    for folder in islice(waiting, STRAY_FOLDERS):
        names = [name for name, is_folder in entries_in(folder) if is_folder]
        found += [folder] if tops.intersection(names) and not files.is_inside(cwd, folder) else []
        below = [f"{folder}/{name}" for name in names if not name.startswith(".") and name != "node_modules"]
        waiting += [path for path in below if path != cwd]
    if len(waiting) <= STRAY_FOLDERS:
        return found, []
    message = f"only the first {STRAY_FOLDERS:,} folders were searched for skills that no host reads"
    return found, [Diagnostic(repository, "walk-limit", message)]


# Explain ------------------------------------------------------------------------------------------


class FileExplanation(NamedTuple):
    """The answer of `why` for one file: the verdict of every requested host, and the fixes.

    `is_copy` marks a copy that `link` made; `by_copy` are the hosts that see such a copy of this file.
    """

    path: str
    verdicts: Sequence[Verdict]
    fixes: Sequence[Fix]
    text: tuple[bytes, int]
    note: str = ""
    is_copy: bool = False
    by_copy: Sequence[str] = ()


JudgedFiles = Mapping[str, Sequence[Verdict]]
"""The verdicts of the requested hosts on each file, by its real path."""


class _JudgedCopy(NamedTuple):
    """A copy of a skill, its state, and the verdicts of the hosts that read its place."""

    skill_file: SkillFile
    state: CopyState
    verdicts: Sequence[Verdict]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that see the copy."""
        return tuple(verdict.host for verdict in self.verdicts if verdict.visible)

    @property
    def folder(self) -> str:
        """The path of the copy."""
        return os.path.dirname(self.skill_file.path)


def explain(
    found: Sequence[SkillFile], survey: Survey, hosts: Sequence[str], *, ranked: bool = True
) -> list[FileExplanation]:
    """Explain each file that a name means; unless fixes shall be `ranked`, which takes longest, it has none."""
    copies = [copy for skill_file in found for copy in copies_of(skill_file, survey)]
    everything = {one.real_path: one for one in (*found, *copies)}
    judged = {path: verdicts_of(one, survey, hosts) for path, one in everything.items()}
    return [_explanation(one, list(everything.values()), judged, survey, ranked=ranked) for one in found]


_COPY_NOTES: Mapping[CopyState, str] = {
    "current": "a copy made by skillshelf",
    "stale": "a stale copy made by skillshelf",
    "modified": "a copy made by skillshelf and modified since",
}


def _explanation(
    skill_file: SkillFile, everything: Sequence[SkillFile], judged: JudgedFiles, survey: Survey, *, ranked: bool
) -> FileExplanation:
    verdicts = judged[skill_file.real_path]
    if (source := source_of(skill_file, survey)) is not None:
        # Fixes are for the skill itself, which its copies follow.
        note = _COPY_NOTES[copy_state(skill_file, source, survey.environment)]
        return FileExplanation(skill_file.path, verdicts, (), skill_file.text, note, is_copy=True)
    copies = []
    for one in copies_of(skill_file, survey):
        there = [verdict for verdict in judged[one.real_path] if not needs_placement(verdict, one)]
        copies.append(_JudgedCopy(one, copy_state(one, skill_file, survey.environment), there))
    fixes = _fixes(skill_file, copies, everything, judged, survey) if ranked else []
    by_copy = tuple(host for copy in copies for host in copy.hosts)
    shown = [_with_copy(verdict, skill_file, copies, survey) for verdict in verdicts]
    note = _UNREAD if _is_unread(skill_file, survey) else ""
    return FileExplanation(skill_file.path, shown, fixes, skill_file.text, note, by_copy=by_copy)


def _fixes(
    skill_file: SkillFile,
    copies: Sequence[_JudgedCopy],
    everything: Sequence[SkillFile],
    judged: JudgedFiles,
    survey: Survey,
) -> list[Fix]:
    """Return what helps, the most helpful first: updates of copies, then what gives more hosts the skill."""
    verdicts = judged[skill_file.real_path]
    fixes = [fix for copy in copies if (fix := _update_fix(copy, skill_file, survey))]
    reached = {verdict.host for copy in copies for verdict in copy.verdicts}
    served = _served(skill_file, everything, judged, survey.environment) | reached
    fixes += ranked_fixes(skill_file, verdicts, survey, served=served)
    seeing = {host for copy in copies for host in copy.hosts}
    seeing |= {verdict.host for verdict in verdicts if verdict.visible}
    for copy in copies:
        left = [verdict for verdict in copy.verdicts if verdict.host not in seeing]
        fixes += ranked_fixes(copy.skill_file, left, survey) if left and copy.state == "current" else []
    return _merged(fixes)


_UNREAD = "in a folder that no host reads"


def _is_unread(skill_file: SkillFile, survey: Survey) -> bool:
    """Return true for a file in no root, not even in one of a package, which hosts read that are started there."""
    below = tuple(f"{root.path}/" for root in survey.roots)
    if skill_file.problem or any(path.startswith(below) for path in skill_file.paths):
        return False
    return not any(f"/{label}/" in path for path in skill_file.paths for label in _project_labels())


def _with_copy(verdict: Verdict, skill_file: SkillFile, copies: Sequence[_JudgedCopy], survey: Survey) -> Verdict:
    """Return a verdict whose detail mentions the copy that the host has, if it does not see the file itself."""
    found = [(copy, one) for copy in copies for one in copy.verdicts if one.host == verdict.host]
    if verdict.visible or not found:
        return verdict
    copy, seen = max(found, key=lambda pair: pair[1].visible is True)
    folder = survey.short(copy.folder)
    if seen.visible:
        state = "" if copy.state == "current" else f"{copy.state} "
        return verdict._replace(detail=f"sees the {state}copy {folder}")
    is_misplaced = needs_placement(verdict, skill_file)
    return verdict._replace(detail=f"{seen.verdict}: the copy {folder}") if is_misplaced else verdict


def _merged(fixes: Iterable[Fix]) -> list[Fix]:
    """Merge equal fixes of a skill and its copies."""
    found: dict[str, Fix] = {}
    for fix in fixes:
        if known := found.get(fix.what):
            fix = known._replace(hosts=known.hosts + fix.hosts, need_more=known.need_more + fix.need_more)
        found[fix.what] = fix
    return list(found.values())


def _update_fix(copy: _JudgedCopy, skill_file: SkillFile, survey: Survey) -> Fix | None:
    """Suggest an update for a copy, or None if it is current or not used by the requested hosts."""
    if copy.state == "current" or not copy.verdicts:
        return None
    readers = tuple(verdict.host for verdict in copy.verdicts)
    record = record_at(copy.folder, survey.environment)
    host = next((host for host in (record.hosts if record else ()) if host in readers), readers[0])
    command, folder = link_command(skill_file, host, survey), survey.short(copy.folder)
    what = f"{command}  ({folder} is stale)"
    if copy.state == "modified":
        source = survey.short(os.path.dirname(skill_file.path))
        what = f"{folder} was modified: move your changes to {source}, remove the copy, then: {command}"
    elif obstacle := why_not_copied(skill_file, survey).what:
        what = f"{folder} is stale, and {obstacle}, then: {command}"
    return Fix("manual", what, copy.hosts or readers)


def _served(
    skill_file: SkillFile, everything: Sequence[SkillFile], judged: JudgedFiles, environment: Environment
) -> set[str]:
    """Return the hosts that see another file of the name, or would if they trusted the folder.

    Hosts that see a different text instead of this one are not served: the author has to choose between the two. A
    copy made by `link` is meant to have the same text.
    """
    own = {verdict.host: verdict.verdict for verdict in judged[skill_file.real_path]}
    served, misled = set(), set()
    for other in (other for other in everything if other is not skill_file):
        seeing = {verdict.host for verdict in judged[other.real_path] if verdict.visible}
        untrusted = {verdict.host for verdict in judged[other.real_path] if verdict.verdict == "untrusted"}
        served |= seeing | {host for host in untrusted if own[host] != "untrusted"}
        if other.text != skill_file.text and not is_own_copy(other, environment):
            misled |= seeing
    return served - {host for host in misled if own[host] == "shadowed-by"}


def fix_by_host(explanation: FileExplanation, survey: Survey) -> dict[str, str | None]:
    """Return the fix for each host, so that it sees the file with its present text."""
    skill_file = survey.by_path[explanation.path]
    hosts = [verdict.host for verdict in explanation.verdicts]
    if explanation.is_copy:
        return dict.fromkeys(hosts)
    fixes = {one.host: fix_for(one, skill_file, survey) for one in explanation.verdicts}
    for copy in copies_of(skill_file, survey):
        is_stale = copy_state(copy, skill_file, survey.environment) == "stale"
        obstacle = why_not_copied(skill_file, survey).what
        for one in verdicts_of(copy, survey, hosts):
            if fixes[one.host] is not None and not needs_placement(one, copy):
                fix = fix_for(one, copy, survey)
                update = f"{obstacle}, then: " * bool(obstacle) + link_command(skill_file, one.host, survey)
                fixes[one.host] = update if is_stale else fix
    return fixes


# As JSON ------------------------------------------------------------------------------------------

HiddenFiles = Mapping[str, tuple[str, str | None]]
"""Why skillshelf itself hides files from models or leaves them out, and who said so, by real path."""


def hidden_files(catalog: Catalog, found: Sequence[SkillFile], survey: Survey) -> HiddenFiles:
    """Return which of some files skillshelf itself hides from models or leaves out."""
    left_out = {files.real_path(entry.path): (str(entry.reason), entry.by) for entry in catalog.filtered}
    skills: Iterable[CatalogSkill] = catalog.skills
    read = {root.path for host in survey.hosts.values() for root in host.roots}
    if not survey.unseen and {root.path for root in catalog.roots} <= read:
        # Then the survey knows every path by which skillshelf may find these files.
        paths = {path for skill_file in found for path in (*skill_file.paths, skill_file.real_path)}
        skills = (skill for path in paths for skill in skills_at(catalog.skills, path))
    return left_out | {skill.real_path: (skill.hidden, skill.hidden_by) for skill in skills if skill.hidden}


def why_candidates(
    explanations: Sequence[FileExplanation], survey: Survey, hidden: HiddenFiles
) -> list[dict[str, Any]]:
    """Return the candidates of `why` in JSON form: each file with the verdict of every host and its fix."""
    candidates = []
    for explanation in explanations:
        fixes = fix_by_host(explanation, survey)
        verdicts = [
            {
                "host": verdict.host,
                "visible": verdict.visible,
                "verdict": verdict.verdict,
                "detail": verdict.detail,
                "told": verdict.warns,
                "fix": fixes[verdict.host],
                "as_of": HOSTS[verdict.host].as_of,
                "grade": HOSTS[verdict.host].grade,
            }
            for verdict in explanation.verdicts
        ]
        reason, by = hidden.get(files.real_path(explanation.path), (None, None))
        about = {"path": explanation.path, "hosts": verdicts, "hidden": reason, "hidden_by": by}
        folder, place = (os.path.dirname(path) for path in (files.real_path(explanation.path), explanation.path))
        candidates.append({**about, **survey.lock_members(folder, place)})
    return candidates
