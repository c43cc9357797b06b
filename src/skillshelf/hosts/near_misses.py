"""A place to what looks like a root or a SKILL.md and is none to most hosts, and to roots that cannot be entered."""

import os
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import RootRule
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.hosts.survey import SkillFile, Survey, base_of, is_broken

__all__ = ["NearMiss", "Rename", "broken_roots", "entries_in", "near_misses", "rename_for"]

_ROOTS = {path for host in HOSTS.values() for rule in host.roots for path in rule.paths}
_FOLDERS = {path.split("/")[0] for path in _ROOTS} - {"", ".config"}


class NearMiss(NamedTuple):
    """A folder or file that somebody meant as a root or a skill, what is wrong, and how it ought to be called."""

    path: str
    message: str
    rename: str = ""


def near_misses(survey: Survey) -> list[NearMiss]:
    """Roots that cannot be entered, and what is spelt nearly like a root or a SKILL.md; each says how to mend it."""
    found = [miss for base in dict.fromkeys(_bases(survey)) for miss in _misses_in(base)]
    named = [*dict.fromkeys(found), *_misnamed_files(survey)]
    return [*dict.fromkeys(broken_roots(survey)), *(_with_command(miss, survey.environment) for miss in named)]


class Rename(NamedTuple):
    """The command that gives a folder of skills, or a file, the name that hosts read, and the path a skill then has."""

    command: str
    path: str


def rename_for(skill_file: SkillFile, survey: Survey) -> Rename | None:
    """What gives the folder that a skill lies in, or its file, its right name; None if it has it."""
    for miss in near_misses(survey):
        if miss.rename and f"{skill_file.path}/".startswith(f"{miss.path}/"):
            return Rename(_command(miss, survey.environment), miss.rename + skill_file.path[len(miss.path) :])
    return None


def _with_command(miss: NearMiss, environment: Environment) -> NearMiss:
    return miss._replace(message=f"{miss.message}; to mend it: {_command(miss, environment)}") if miss.rename else miss


def _command(miss: NearMiss, environment: Environment) -> str:
    """What renames it, or moves what it holds to where the right name is taken."""
    old, new = (_typed(path, environment) for path in (miss.path, miss.rename))
    return f"mv {old}/* {new}/" if files.kind_at(miss.rename) == "folder" else f"mv {old} {new}"


def _typed(path: str, environment: Environment) -> str:
    """A path as it is typed in the working directory."""
    if path.startswith(f"{environment.cwd}/"):
        return quote(path[len(environment.cwd) + 1 :])
    # An unquoted tilde is the home folder of whoever types it, which another home given to us is not.
    if environment.home and path.startswith(f"{environment.home}/") and not environment.home_moved:
        return f"~/{quote(path[len(environment.home) + 1 :])}"
    return quote(path)


def broken_roots(survey: Survey) -> Iterator[NearMiss]:
    """Roots that hosts read and that cannot be entered."""
    for root in (root for state in survey.states.values() for root in state.roots if is_broken(root)):
        if files.kind_at(root.path) == "link":
            said = f"the link leads nowhere: target {files.link_target(root.path)}"
        else:
            said = "it is no folder"
        yield NearMiss(root.path, f"cannot be entered by any host: {said}")


def _bases(survey: Survey) -> Iterator[str]:
    environment: Environment = survey.environment
    yield environment.cwd
    if environment.home:
        yield environment.home
    for state in survey.states.values():
        yield from (base_of(root) for root in state.roots if root.kind == "project" and root.exists)


def _misses_in(base: str) -> Iterator[NearMiss]:
    for name, _ in entries_in(base):
        path = f"{base}/{name}"
        if name not in _FOLDERS and name.lower() in _FOLDERS and entries_in(path):
            yield NearMiss(path, "is not read: folders are spelt in lower case", f"{base}/{name.lower()}")
        elif name in _FOLDERS:
            for child, holds in entries_in(path):
                if child.lower() in ("skill", "skills", "skills.md") and f"{name}/{child}" not in _ROOTS:
                    message = "is not read by any host: the folder must be called skills"
                    yield NearMiss(f"{path}/{child}", message, f"{path}/skills" if holds else "")
    if files.kind_at(f"{base}/.agent/skills"):
        few = [host.name for host in HOSTS.values() if any(".agent/skills" in rule.paths for rule in host.roots)]
        yield NearMiss(f"{base}/.agent/skills", f"is read by {' and '.join(few)} only: most read .agents/skills")


_FILES_TOLD = 10


def _misnamed_files(survey: Survey) -> Iterator[NearMiss]:
    """Files in roots that are nearly called SKILL.md; of many of them the first, and how many more there are."""
    files_so_named = [skill_file for skill_file in survey.skill_files if skill_file.file_name != SKILL_FILE]
    for skill_file in files_so_named[:_FILES_TOLD]:
        path = skill_file.path
        readers = [host.name for host in HOSTS.values() if any(_takes(path, rule) for rule in host.roots)]
        said = f"is read by {' and '.join(readers)} only: all others want" if readers else _UNREAD_FILE
        yield NearMiss(path, f"{said} {SKILL_FILE}", f"{os.path.dirname(path)}/{SKILL_FILE}")
    if more := files_so_named[_FILES_TOLD:]:
        yield NearMiss(more[0].path, f"and {len(more) - 1} more are not called {SKILL_FILE} either")


_UNREAD_FILE = "is not read by any host: the file must be called"


def _takes(path: str, rule: RootRule) -> bool:
    """Whether a host takes a Markdown file of any name for a skill there, by one of its rules."""
    if rule.loose_files == "none" or not path.endswith(".md"):
        return False
    below = [path.partition(f"/{root}/")[2] for root in rule.paths]
    return any(rest and (rule.loose_files == "everywhere" or "/" in rest) for rest in below)


def entries_in(folder: str) -> Sequence[tuple[str, bool]]:
    """The names in a folder, each with whether it is a folder itself; none where it cannot be read."""
    try:
        descriptor = files.open_folder(files.real_path(folder))
    except OSError:
        return ()
    try:
        return files.entries_in(descriptor)
    except OSError:
        return ()
    finally:
        files.close(descriptor)
