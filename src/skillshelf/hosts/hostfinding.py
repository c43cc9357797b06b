"""A name or a path to the files that are meant by it, and hosts to their verdicts on them."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.config.hosts import HOSTS, find_host
from skillshelf.core import files
from skillshelf.core.console import PathDisplay
from skillshelf.core.environment import Place, find_repository
from skillshelf.core.limits import STRAY_FOLDERS
from skillshelf.core.values import Diagnostic
from skillshelf.hosts.near_misses import entries_in, near_misses
from skillshelf.hosts.putting import link_name
from skillshelf.hosts.survey import Sighting, Survey, sight, take_survey
from skillshelf.hosts.verdicts import Verdict, judge

__all__ = [
    "asked_hosts",
    "find",
    "is_path",
    "near",
    "near_miss_lines",
    "path_of",
    "verdicts_of",
]


def asked_hosts(given: Sequence[str]) -> list[str]:
    """The hosts that were named, or all."""
    return [find_host(name).name for name in dict.fromkeys(given)] or list(HOSTS)


def verdicts_of(sighting: Sighting, survey: Survey, hosts: Iterable[str]) -> list[Verdict]:
    """What each of these hosts makes of a file."""
    return [judge(sighting, survey.views[host], survey) for host in hosts]


# Finding ------------------------------------------------------------------------------------------


def is_path(wanted: str) -> bool:
    """Whether a word is meant as a path."""
    return "/" in wanted or wanted in (".", "..", SKILL_FILE)


def path_of(wanted: str, place: Place) -> str:
    """The absolute path that is meant."""
    return os.path.normpath(os.path.join(place.cwd, os.path.expanduser(wanted)))


def find(wanted: str, place: Place, hosts: Sequence[str]) -> tuple[Survey, list[Sighting]]:
    """A survey, and the files in it that are meant: by path, by name, or by name where no host looks."""
    if is_path(wanted):
        return _at(path_of(wanted, place), place, hosts)
    survey = take_survey(place, hosts, progress=sys.stderr)
    if found := [sighting for sighting in survey.sightings if wanted in _names_of(sighting, survey)]:
        return survey, found
    folders, problems = _folders_below(place.cwd, find_repository(place.cwd, _MARKERS) or place.cwd)
    stray = next(_strays(wanted, survey, folders), None)
    if stray is not None:
        return _at(stray, place, hosts)
    return survey._replace(unseen=(*survey.unseen, *problems)), []


def _at(path: str, place: Place, hosts: Sequence[str]) -> tuple[Survey, list[Sighting]]:
    survey = take_survey(place, hosts, path=path, progress=sys.stderr)
    meant = sight(path)
    found = survey.by_path.get(meant.real_path) if meant is not None else None
    return survey, [found] if found is not None else []


def _names_of(sighting: Sighting, survey: Survey) -> set[str]:
    """Every name a file goes by: its folder's, what it declares, and what hosts make of that."""
    found = {
        view.by_file[sighting.real_path].name for view in survey.views.values() if sighting.real_path in view.by_file
    }
    return {sighting.folder, link_name(sighting), *found}


def near(wanted: str, survey: Survey) -> list[str]:
    """Names that look like the one asked for."""
    from difflib import get_close_matches

    known = {name.lower(): name for sighting in survey.sightings for name in _names_of(sighting, survey)}
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
