"""Change the user's configuration: `enable`, `disable` and `trust`."""

import os
from collections.abc import Callable
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from skillshelf.cli.commands import Values, environment_for, shelf_for
from skillshelf.core.console import as_json, note, write
from skillshelf.errors import DONE, NEGATIVE, AmbiguousSkill, ConfigurationError, SkillNotFound

if TYPE_CHECKING:
    from skillshelf.config.approvals import Approval
    from skillshelf.core.environment import Environment
    from skillshelf.hosts.host_switches import SwitchResult
    from skillshelf.shelf import Shelf

__all__ = ["disable", "enable", "trust"]


def enable(values: Values) -> int:
    """Remove a skill from the list of disabled skills, or turn it on in hosts."""
    name = values["name"]
    if values["in"]:
        return _switch_in_hosts(values, on=True)
    spellings = _spellings(name, shelf_for(values))
    status = _change_disabled(
        values,
        name,
        lambda names: [other for other in names if _key(other) not in spellings],
        ("enabled", "not in the list of disabled skills"),
    )
    found = [s for s in shelf_for(values, trust="ask").catalog.skills if {_key(s.name), s.dir} & spellings]
    if still := next((skill for skill in found if skill.hidden == "disabled"), None):
        note(f"{name} is still disabled, by its name or its path, in {still.hidden_by}")
        return NEGATIVE
    if not found:
        note(f"no skill here is named {name} (run `skillshelf list` to see the skills)")
    return status


def _spellings(name: str, shelf: "Shelf") -> set[str]:
    """Return every spelling by which a list may name the skills of a name or a path; names are folded."""
    from skillshelf.catalog.build_context import spellings
    from skillshelf.core.environment import expand

    meant = {name, expand(name, shelf.environment, base=shelf.environment.cwd)} if "/" in name else {_key(name)}
    for skill in shelf.catalog.skills:
        paths = spellings(skill.name, skill.path, skill.real_path) - {skill.name}
        if _key(skill.name) == _key(name) or paths & meant:
            meant |= paths
    return meant


def _key(entry: str) -> str:
    """Return what entries of a list are compared by: a path as it is, a name folded."""
    from skillshelf.core.text import folded_name

    return entry if "/" in entry else folded_name(entry)


def disable(values: Values) -> int:
    """Add a skill to the list of disabled skills, or turn it off in hosts."""
    name = values["name"]
    if values["in"]:
        return _switch_in_hosts(values, on=False)
    listed = _disabled_path(name, values) if "/" in name else _disabled_name(name, values)
    return _change_disabled(
        values,
        listed,
        lambda names: names if _key(listed) in map(_key, names) else [*names, listed],
        ("disabled", "already disabled"),
    )


def _disabled_path(path: str, values: Values) -> str:
    """Return the absolute folder of the skill at a path, which is valid from every working directory."""
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
        return resolve(shelf_for(values).catalog.skills, name=name).name
    return name


def _change_disabled(
    values: Values, name: str, change: Callable[[list[str]], list[str]], words: tuple[str, str]
) -> int:
    """Change the list of disabled skills and print which of the two words describes the result."""
    from skillshelf.config.settings_edit import change_list
    from skillshelf.core.text import visible

    dry_run = values["dry_run"]
    path, changed = change_list(environment_for(values), "skills", "disabled", change, dry_run=dry_run)
    if values["json"]:
        write(as_json({"name": name, "file": path, "changed": changed}))
        return DONE
    would = "would be " if dry_run and changed else ""
    write(f"{visible(name)}: {would}{words[0] if changed else words[1]} ({visible(path)})\n")
    note(f"{_REACH}; in a host itself: skillshelf {words[0].removesuffix('d')} {quote(name)} --in HOST")
    return DONE


_REACH = "this counts for agents that get their skills from skillshelf"


def _switch_in_hosts(values: Values, *, on: bool) -> int:
    """Turn a skill on or off by the own settings of hosts, and say what was written."""
    from skillshelf.config.hosts import HOSTS
    from skillshelf.hosts.explain import find, is_path, requested_hosts, similar_names
    from skillshelf.hosts.host_switches import switch_in_host
    from skillshelf.hosts.link import only_skill

    wanted, environment = values["name"], environment_for(values)
    hosts = requested_hosts([host for given in values["in"] for host in given.split(",") if host])
    survey, found = find(wanted, environment, list(HOSTS))
    if not found:
        missing = SkillNotFound(wanted)
        missing.near = tuple(similar_names(wanted, survey))
        raise missing
    skill_file = only_skill(wanted, found, survey)
    options = {"on": on, "by_path": is_path(wanted), "dry_run": values["dry_run"]}
    results = [switch_in_host(skill_file, host, survey, **options) for host in hosts]
    if values["json"]:
        rows = [
            {"host": one.host, "file": one.file or None, "changed": one.changed, "reason": one.refused or one.detail}
            for one in results
        ]
        write(as_json({"name": wanted, "hosts": rows}))
    else:
        for one in results:
            _show_switch(one, wanted, on=on, dry_run=values["dry_run"])
    return NEGATIVE if any(one.refused for one in results) else DONE


def _show_switch(result: "SwitchResult", name: str, *, on: bool, dry_run: bool) -> None:
    """Print what was written into the settings of a host, and how to take it back."""
    from skillshelf.core.text import visible
    from skillshelf.lint.fix import unified_diff

    word, other = ("on", "disable") if on else ("off", "enable")
    if result.refused:
        write(visible(f"{result.host}: refused: {result.refused}") + "\n")
        return
    if not result.changed:
        write(visible(f"{result.host}: already {word}: {result.detail}") + "\n")
        return
    for line in unified_diff(result.before, result.after, result.file.lstrip("/")):
        write(visible(line) + "\n")
    done = f"would be turned {word}" if dry_run else f"turned {word}"
    write(visible(f"{result.host}: {name} {done} by {result.key} in {result.file}") + "\n")
    if not dry_run:
        note(f"to undo: skillshelf {other} {quote(name)} --in {result.host}")


def _is_at(approval: "Approval", path: str) -> bool:
    """Return True if an approval is about the SKILL.md at a real path or below it."""
    from skillshelf.core import files

    return approval.path is not None and files.is_inside(approval.path, path)


def _take_back(environment: "Environment", path: str, *, dry_run: bool) -> "list[Approval]":
    """Take back the approvals at or below a real path; a file of approvals that cannot be used is named."""
    from skillshelf.config.approvals import UnusableApprovals, read_approvals, remove_approvals

    try:
        if dry_run:
            return [one for one in read_approvals(environment) if _is_at(one, path)]
        return remove_approvals(environment, lambda one: _is_at(one, path))
    except UnusableApprovals as error:
        note(str(error))
        return []


def _list_trust(environment: "Environment", *, wants_json: bool) -> int:
    """Print the trusted folders, then the approvals; a file of approvals that cannot be used is named."""
    from skillshelf.config.approvals import UnusableApprovals, read_approvals
    from skillshelf.config.settings_edit import listed
    from skillshelf.core.text import visible

    folders = listed(environment, "trust", "folders")
    try:
        approvals = read_approvals(environment)
    except UnusableApprovals as error:
        approvals = []
        note(str(error))
    if wants_json:
        write(as_json([*folders, *(one._asdict() for one in approvals)]))
        return DONE
    write("".join(f"{visible(folder)}\n" for folder in folders) or "No folder is trusted.\n")
    for one in approvals:
        where = one.path or f"wherever it is installed, from {one.origin}"
        write(visible(f"approved: {one.tool} of {one.name} ({where}), {one.tree}, {one.at}") + "\n")
    return DONE


def trust(values: Values) -> int:
    """Trust a folder and everything below it, stop trusting it, or list the trusted folders."""
    from skillshelf.config.settings_edit import change_list, listed
    from skillshelf.core import files
    from skillshelf.core.environment import expand
    from skillshelf.core.text import visible

    environment = environment_for(values)
    if values["list"]:
        return _list_trust(environment, wants_json=values["json"])
    folder = os.path.abspath(os.path.join(environment.cwd, values["dir"] or "."))
    if files.kind_at(files.real_path(folder)) != "folder" and not values["remove"]:
        raise ConfigurationError(f"folder {folder} not found")

    def real(other: str) -> str:
        return files.real_path(expand(other, environment, base=environment.cwd))

    def change(folders: list[str]) -> list[str]:
        if values["remove"]:
            return [other for other in folders if real(other) != real(folder)]
        return folders if folder in folders else [*folders, folder]

    dry_run = values["dry_run"]
    path, changed = change_list(environment, "trust", "folders", change, dry_run=dry_run)
    taken_back = _take_back(environment, real(folder), dry_run=dry_run) if values["remove"] else []
    for other in listed(environment, "trust", "folders") if values["remove"] and not dry_run else ():
        if files.is_inside(real(folder), real(other)):
            note(f"{folder} is still trusted, with {other}; to end that: skillshelf trust {other} --remove")
    if values["json"]:
        write(as_json({"folder": folder, "file": path, "changed": changed or bool(taken_back)}))
        return DONE
    for one in taken_back:
        gone = "would no longer be" if dry_run else "is no longer"
        write(visible(f"{one.path}: {one.tool} of {one.name} {gone} approved") + "\n")
    if taken_back and not changed:
        return DONE
    state = (
        ("no longer trusted" if changed else "not trusted")
        if values["remove"]
        else ("trusted, with everything below it" if changed else "already trusted")
    )
    would = "would be " if dry_run and changed else ""
    write(f"{visible(folder)}: {would}{state} ({visible(path)})\n")
    if changed and not values["remove"]:
        note(f"{_REACH}; hosts that ask for trust keep their own lists (see `skillshelf hosts`)")
    return DONE
