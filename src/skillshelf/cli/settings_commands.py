"""The commands that write down what the person chose: `enable`, `disable` and `trust`."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from skillshelf.cli.commands import Values, environment_for, shelf_for
from skillshelf.core.console import as_json, note
from skillshelf.errors import DONE, NEGATIVE, AmbiguousSkill, ConfigurationError, SkillNotFound

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

__all__ = ["disable", "enable", "trust"]


def enable(values: Values) -> int:
    """Take a skill off the list of disabled ones."""
    name = values["name"]
    spellings = _spellings(name, shelf_for(values))
    status = _choose(
        values, name, lambda names: [other for other in names if other not in spellings], "enabled", "was not listed"
    )
    meant = [skill for skill in shelf_for(values).catalog.skills if {skill.name, skill.dir} & spellings]
    if any(skill.hidden == "disabled" for skill in meant):
        note(f"{name} is still disabled, by the project's configuration or by its name; see skills.disabled there")
        return NEGATIVE
    if not meant:
        note(f"there is no skill {name} here; skillshelf list shows those there are")
    return status


def _spellings(name: str, shelf: "Shelf") -> set[str]:
    """What a list may call the skills that somebody means by a name or a path."""
    from skillshelf.catalog.build_context import spellings
    from skillshelf.core.environment import expand

    meant = {name, expand(name, shelf.environment, base=shelf.environment.cwd)} if "/" in name else {name}
    for skill in shelf.catalog.skills:
        paths = spellings(skill.name, skill.path, skill.real_path) - {skill.name}
        if skill.name == name or paths & meant:
            meant |= paths
    return meant


def disable(values: Values) -> int:
    """Put a skill on the list of disabled ones."""
    name = values["name"]
    listed = _disabled_path(name, values) if "/" in name else _disabled_name(name, values)
    return _choose(
        values, listed, lambda names: names if listed in names else [*names, listed], "disabled", "was disabled already"
    )


def _disabled_path(path: str, values: Values) -> str:
    """The folder of the skill at a path, as a list must name it to be understood from everywhere."""
    from skillshelf.core import files
    from skillshelf.core.environment import expand

    environment = environment_for(values)
    folder = expand(files.from_system(path), environment, base=environment.cwd)
    folder = os.path.dirname(folder) if os.path.basename(folder) == "SKILL.md" else folder
    if files.kind_at(f"{folder}/SKILL.md") is None:
        raise SkillNotFound(path)
    return folder


def _disabled_name(name: str, values: Values) -> str:
    from skillshelf.catalog.load import resolve

    # All skills of one name are disabled together.
    with suppress(AmbiguousSkill):
        resolve(shelf_for(values).catalog.skills, name=name)
    return name


def _choose(values: Values, name: str, change: Callable[[list[str]], list[str]], done: str, idle: str) -> int:
    from skillshelf.config.settings_edit import change_list
    from skillshelf.core.console import write
    from skillshelf.core.text import visible

    path, changed = change_list(environment_for(values), "skills", "disabled", change)
    if values["json"]:
        write(as_json({"name": name, "file": path, "changed": changed}))
    else:
        write(f"{visible(name)} {done if changed else idle} ({visible(path)})\n")
    return DONE


def trust(values: Values) -> int:
    """Trust a folder with everything below, take that back, or list what is trusted."""
    from skillshelf.config.settings_edit import change_list, listed
    from skillshelf.core import files
    from skillshelf.core.console import write
    from skillshelf.core.environment import expand
    from skillshelf.core.text import visible

    environment = environment_for(values)
    if values["list"]:
        folders = listed(environment, "trust", "folders")
        lines = "".join(f"{visible(folder)}\n" for folder in folders) or "No folder is trusted.\n"
        write(as_json(folders) if values["json"] else lines)
        return DONE
    folder = os.path.abspath(os.path.join(environment.cwd, values["dir"] or "."))
    if files.kind_at(files.real_path(folder)) != "folder" and not values["remove"]:
        raise ConfigurationError(f"there is no folder {folder} to trust")

    def real(other: str) -> str:
        return files.real_path(expand(other, environment, base=environment.cwd))

    def change(folders: list[str]) -> list[str]:
        if values["remove"]:
            return [other for other in folders if real(other) != real(folder)]
        return folders if folder in folders else [*folders, folder]

    path, changed = change_list(environment, "trust", "folders", change)
    for other in listed(environment, "trust", "folders") if values["remove"] else ():
        if files.is_inside(real(folder), real(other)):
            note(f"{folder} is still trusted, with {other}; to end that: skillshelf trust {other} --remove")
    if values["json"]:
        write(as_json({"folder": folder, "file": path, "changed": changed}))
        return DONE
    verb = (
        ("no longer trusted" if changed else "was not trusted")
        if values["remove"]
        else ("trusted, with everything below it" if changed else "was trusted already")
    )
    write(f"{visible(folder)} {verb} ({visible(path)})\n")
    return DONE
