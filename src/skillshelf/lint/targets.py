"""Paths, or the roots of a shelf, to the SKILL.md files a check is about."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from skillshelf.catalog.build import build
from skillshelf.catalog.discovery import NEAR_MISSES, SKILL_FILE, Found, discover, probe
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.environment import find_repository
from skillshelf.core.limits import CHECKED_DIRECTORIES
from skillshelf.core.values import Candidate, Diagnostic, Filtered, Root
from skillshelf.errors import ConfigurationError, ResourceNotFound, SkillFileNotFound
from skillshelf.shelf import Shelf

__all__ = ["Target", "Targets", "in_paths", "in_roots", "is_beside"]


class Target(NamedTuple):
    """A SKILL.md to check: as found, where it really is, and the name of the folder it was found in."""

    path: str
    real_path: str
    directory: str
    description_required: bool = True


class Targets(NamedTuple):
    """What to check, what was wrong on the way, where files may be written, and the shelf around it."""

    found: tuple[Target, ...]
    problems: tuple[Diagnostic, ...]
    writable: tuple[str, ...]
    shelf: Shelf


def is_beside(target: Target, name: str) -> bool:
    """Whether a skill of that name lies beside another one."""
    folder = os.path.dirname(os.path.dirname(target.path))
    return files.kind_at(f"{folder}/{name}/{SKILL_FILE}") is not None


def in_roots(shelf: Shelf) -> Targets:
    """Every skill that the roots of a shelf hold, also those that are in no catalog."""
    roots = resolve_roots(shelf.profile, shelf.place, shelf.settings, trust=shelf.trust)
    found = list(discover(roots.roots, shelf.profile, repository=roots.repository, account=True))
    targets = [_target(item, roots.roots[item.root]) for item in found if isinstance(item, Candidate)]
    problems = [*roots.problems, *(item for item in found if isinstance(item, Diagnostic))]
    for item in found:
        if isinstance(item, Filtered) and item.reason in _LEFT_OUT:
            problems.append(Diagnostic(item.path, item.reason, _LEFT_OUT[item.reason]))
        if isinstance(item, Filtered) and item.reason == "too-deep":
            more, trouble = _one_folder(os.path.dirname(item.path), shelf.profile, roots.repository)
            targets += more
            problems += trouble
    catalog = build(found, roots, shelf.profile, shelf.settings)
    problems += [warning for warning in catalog.warnings if warning.rule == "name-collision"]
    writable = [roots.repository, *(root.real_path for root in roots.roots if root.real_path)]
    return Targets(_once(targets), tuple(problems), tuple(writable), shelf)


_LEFT_OUT = {
    "too-deep": "it lies deeper than this profile looks; move it up, or raise `max_depth` in a profile of your own",
    "inside-skill": "it lies inside another skill, so no agent lists it; that is right for an example",
}


def in_paths(paths: Sequence[str], shelf: Shelf) -> Targets:
    """Every skill at or below the paths that somebody named."""
    targets: list[Target] = []
    problems: list[Diagnostic] = []
    writable = []
    for given in paths:
        path = os.path.normpath(os.path.join(shelf.place.cwd, files.from_system(given)))
        found, trouble = _at(path, shelf.profile)
        if not found and not trouble:
            raise SkillFileNotFound(path)
        targets += found
        problems += trouble
        writable.append(files.real_path(path))
    return Targets(_once(targets), tuple(dict.fromkeys(problems)), tuple(writable), shelf)


Findings = tuple[list[Target], list[Diagnostic]]


def _at(path: str, profile: Profile) -> Findings:
    """The skills at one path, which may be a folder of skills, a skill, or a SKILL.md."""
    kind = files.kind_at(files.real_path(path)) if "\0" not in path else None
    name = os.path.basename(path)
    if kind is None and files.kind_at(path) is None:
        raise ResourceNotFound(path)
    if kind == "folder" and name != SKILL_FILE:
        return _folder(path, profile)
    if name == SKILL_FILE:
        folder = os.path.dirname(path)
        return _one_folder(folder, profile, find_repository(files.real_path(folder), profile.markers))
    if name.lower() in NEAR_MISSES:
        return [], [Diagnostic(path, "file-name", f"{name!r} is not read; rename it to {SKILL_FILE}")]
    raise ConfigurationError(f"{path} is no {SKILL_FILE}; name a skill, its {SKILL_FILE}, or a folder of skills")


def _folder(path: str, profile: Profile) -> Findings:
    real = files.real_path(path)
    anywhere = profile._replace(
        max_depth=None, root_file="skill", below_skill="enter", hidden="enter", max_directories=CHECKED_DIRECTORIES
    )
    repository = find_repository(real, profile.markers) or real
    return _sorted_out(discover([_root(path)], anywhere, repository=repository), _root(path))


def _one_folder(folder: str, profile: Profile, repository: str | None) -> Findings:
    root = _root(folder)
    return _sorted_out(probe(root, profile, repository=repository or root.real_path or folder), root)


def _root(path: str) -> Root:
    """A folder that somebody named, as a root."""
    return Root(path, files.real_path(path), "custom", "custom", "custom", "contained", trusted=True)


def _sorted_out(found: Iterable[Found], root: Root) -> Findings:
    targets: list[Target] = []
    problems: list[Diagnostic] = []
    for item in found:
        if isinstance(item, Candidate):
            targets.append(_target(item, root))
        elif isinstance(item, Diagnostic):
            problems.append(item)
    return targets, problems


def _target(candidate: Candidate, root: Root) -> Target:
    directory = os.path.basename(os.path.dirname(candidate.path))
    return Target(candidate.path, candidate.real_path, directory, root.description_required)


def _once(targets: Iterable[Target]) -> tuple[Target, ...]:
    """The targets by path, each real file once; where it really lies comes before a link to it."""
    ordered = sorted(targets, key=lambda target: (target.path != target.real_path, target.path), reverse=True)
    return tuple(sorted({target.real_path: target for target in ordered}.values()))
