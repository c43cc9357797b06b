"""Find folders and files whose names are almost those that hosts read, and roots that cannot be entered."""

import os
from collections.abc import Iterator, Sequence

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import RootRule
from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.hosts.survey import SkillFile, Survey, is_broken

__all__ = ["NearMiss", "Rename", "broken_roots", "entries_in", "misspelt_roots", "near_misses", "rename_for"]


class NearMiss(NamedTuple):
    """A folder or file that was meant as a root or a skill, what is wrong, and the path it should have."""

    path: str
    message: str
    rename: str = ""


class Rename(NamedTuple):
    """The command that gives a folder or file the name that hosts read, and the path that a skill then has."""

    command: str
    path: str


def near_misses(survey: Survey) -> list[NearMiss]:
    """Return roots that cannot be entered and misspelt folders and files, each with the command that fixes it."""
    misspelt = [miss for base in dict.fromkeys(_bases(survey)) for miss in misspelt_roots(base)]
    found = [*dict.fromkeys(broken_roots(survey))]
    for miss in (*dict.fromkeys(misspelt), *_misnamed_files(survey)):
        fix = f"; to fix it: {_command(miss, survey)}" if miss.rename else ""
        found.append(miss._replace(message=miss.message + fix))
    return found


def rename_for(skill_file: SkillFile, survey: Survey) -> Rename | None:
    """Return the renaming of a misspelt folder above a skill or of its file; None if both are spelt right."""
    for miss in near_misses(survey):
        if miss.rename and f"{skill_file.path}/".startswith(f"{miss.path}/"):
            return Rename(_command(miss, survey), miss.rename + skill_file.path[len(miss.path) :])
    return None


def _command(miss: NearMiss, survey: Survey) -> str:
    """Return the command that renames a folder or file, or moves its contents if the right name is taken."""
    old, new = survey.typed(miss.path), survey.typed(miss.rename)
    return f"mv {old}/* {new}/" if files.kind_at(miss.rename) == "folder" else f"mv {old} {new}"


def broken_roots(survey: Survey) -> Iterator[NearMiss]:
    """Yield roots that hosts read and that cannot be entered."""
    for root in (root for host in survey.hosts.values() for root in host.roots if is_broken(root)):
        is_link = files.kind_at(root.path) == "link"
        why = f"the link leads nowhere: target {files.link_target(root.path)}" if is_link else "it is not a folder"
        yield NearMiss(root.path, f"cannot be read by any host: {why}")


def _bases(survey: Survey) -> Iterator[str]:
    """Yield the folders that may contain roots."""
    yield survey.environment.cwd
    if survey.environment.home:
        yield survey.environment.home
    for host in survey.hosts.values():
        yield from (root.base for root in host.roots if root.kind == "project" and root.exists)


def misspelt_roots(base: str) -> Iterator[NearMiss]:
    """Yield the folders directly below one that were meant as roots."""
    labels = {path for host in HOSTS.values() for rule in host.roots for path in rule.paths}
    tops = {label.split("/")[0] for label in labels} - {"", ".config"}
    for name, _ in entries_in(base):
        path = f"{base}/{name}"
        if name not in tops and name.lower() in tops and entries_in(path):
            yield NearMiss(path, "is not read: the folder name must be lower case", f"{base}/{name.lower()}")
        elif name in tops:
            for child, is_folder in entries_in(path):
                if child.lower() in ("skill", "skills", "skills.md") and f"{name}/{child}" not in labels:
                    message = "is not read by any host: the folder must be named skills"
                    yield NearMiss(f"{path}/{child}", message, f"{path}/skills" if is_folder else "")
    if files.kind_at(f"{base}/.agent/skills"):
        few = [host.name for host in HOSTS.values() if any(".agent/skills" in rule.paths for rule in host.roots)]
        yield NearMiss(f"{base}/.agent/skills", f"is read by {' and '.join(few)} only: most hosts read .agents/skills")


_FILES_SHOWN = 10


def _misnamed_files(survey: Survey) -> Iterator[NearMiss]:
    """Yield files in roots whose names are almost SKILL.md: the first of many, and how many more there are."""
    misnamed = [skill_file for skill_file in survey.skill_files if skill_file.file_name != SKILL_FILE]
    for path in (skill_file.path for skill_file in misnamed[:_FILES_SHOWN]):
        readers = [host.name for host in HOSTS.values() if any(_takes(path, rule) for rule in host.roots)]
        message = "is not read by any host: the file must be named"
        if readers:
            message = f"is read by {' and '.join(readers)} only: all other hosts require"
        yield NearMiss(path, f"{message} {SKILL_FILE}", f"{os.path.dirname(path)}/{SKILL_FILE}")
    if more := misnamed[_FILES_SHOWN:]:
        yield NearMiss(more[0].path, f"and {len(more) - 1} more are not named {SKILL_FILE} either")


def _takes(path: str, rule: RootRule) -> bool:
    """Return true if a host takes a Markdown file of any name in that root for a skill."""
    if rule.loose_files == "none" or not path.endswith(".md"):
        return False
    below = [path.partition(f"/{root}/")[2] for root in rule.paths]
    return any(rest and (rule.loose_files == "in-folders") == ("/" in rest) for rest in below)


def entries_in(folder: str) -> Sequence[tuple[str, bool]]:
    """Return the names in a folder, each with whether it is a folder; nothing if it cannot be read."""
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
