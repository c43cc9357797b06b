"""Change the user's configuration: `enable`, `disable` and `trust`."""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from skillshelf.cli.commands import Values, environment_for, shelf_for
from skillshelf.core.console import as_json, note, write
from skillshelf.errors import DONE, NEGATIVE, AmbiguousSkill, ConfigurationError, PermissionDenied, SkillNotFound

if TYPE_CHECKING:
    from skillshelf.config.approvals import Approval
    from skillshelf.core.environment import Environment
    from skillshelf.core.values import CatalogSkill
    from skillshelf.hosts.host_switches import SwitchResult
    from skillshelf.lint.consent import Consent
    from skillshelf.shelf import Shelf

__all__ = ["disable", "enable", "trust"]


def enable(values: Values) -> int:
    """Remove a skill from the list of disabled skills, or turn it on in hosts."""
    name = values["name"]
    if values["in"]:
        return _switch_in_hosts(values, on=True)
    spellings = _spellings(name, shelf_for(values))
    _require_not_banned(name, [skill for skill in _skills_here(values) if {_key(skill.name), skill.dir} & spellings])
    status = _change_disabled(
        values,
        name,
        lambda names: [other for other in names if _key(other) not in spellings],
        ("enabled", "not in the list of disabled skills"),
    )
    found = [skill for skill in _skills_here(values) if {_key(skill.name), skill.dir} & spellings]
    if still := next((skill for skill in found if skill.hidden == "disabled"), None):
        note(f"{name} is still disabled, by its name or its path, in {still.hidden_by}")
        return NEGATIVE
    if not found:
        note(f"no skill here is named {name} (run `skillshelf list` to see the skills)")
    return status


def _skills_here(values: Values) -> "Sequence[CatalogSkill]":
    """Return the skills as models see them or not."""
    return shelf_for(values, trust="ask").catalog.skills


def _require_not_banned(name: str, skills: "Sequence[CatalogSkill]") -> None:
    """Raise PermissionDenied if the system policy forbids all skills that a name means."""
    from skillshelf.config.system_policy import is_banned

    by = [skill.hidden_by for skill in skills if is_banned(skill.hidden_by)]
    if by and len(by) == len(skills):
        raise PermissionDenied(f"{name} cannot be enabled: the system policy forbids it ({by[0]})")


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
    for skill in shelf_for(values, trust="ask").catalog.skills:
        if {_key(skill.name), skill.dir} & {_key(listed)}:
            _require_optional(skill.name, skill.path, environment_for(values))
    return _change_disabled(
        values,
        listed,
        lambda names: names if _key(listed) in map(_key, names) else [*names, listed],
        ("disabled", "already disabled"),
    )


def _require_optional(name: str, path: str, environment: "Environment") -> None:
    """Raise PermissionDenied for a skill that the system policy requires: nobody can turn it off."""
    from skillshelf.catalog.build_context import required_by
    from skillshelf.config.settings import load_system_policy
    from skillshelf.core import files

    real = files.real_path(path)
    if by := required_by(load_system_policy(environment), name, path, real, os.path.dirname(real)):
        raise PermissionDenied(f"{name} cannot be disabled: the system policy requires it ({by})")


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
    from skillshelf.config.settings import load_system_policy
    from skillshelf.config.system_policy import require_host
    from skillshelf.hosts.explain import find, is_path, requested_hosts, similar_names
    from skillshelf.hosts.host_switches import switch_in_host
    from skillshelf.hosts.link import only_skill
    from skillshelf.hosts.placement import policy_refusal

    wanted, environment = values["name"], environment_for(values)
    hosts = requested_hosts([host for given in values["in"] for host in given.split(",") if host])
    require_host(load_system_policy(environment), hosts)
    survey, found = find(wanted, environment, list(HOSTS))
    if not found:
        missing = SkillNotFound(wanted)
        missing.near = tuple(similar_names(wanted, survey))
        raise missing
    skill_file = only_skill(wanted, found, survey)
    if on and (reason := policy_refusal(skill_file, None, load_system_policy(environment))):
        raise PermissionDenied(f"{wanted} cannot be enabled: {reason}")
    if not on:
        _require_optional(skill_file.declared or skill_file.folder, skill_file.path, environment)
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


def _is_at(approval: "Approval", path: str, installed: Collection[str]) -> bool:
    """Return True if an approval is about the SKILL.md at a real path or below it, or about an installed tree there."""
    from skillshelf.core import files

    return approval.tree in installed if approval.path is None else files.is_inside(approval.path, path)


def _installed_trees(environment: "Environment", path: str) -> set[str]:
    """Return the trees that locks name for the skills that are installed at or below a real path."""
    from contextlib import suppress

    from skillshelf.catalog.lock import INSTALLED, Locks, UnusableLock
    from skillshelf.catalog.lock_places import LOCK_FILE, user_lock_path
    from skillshelf.core import files
    from skillshelf.core.environment import user_data_folder
    from skillshelf.errors import SkillError
    from skillshelf.install.garbage import known_projects

    locks, data = Locks(environment), user_data_folder(environment)
    places: dict[str, str] = {}
    if data is not None:
        with suppress(SkillError):
            places.update((f"{root}/{LOCK_FILE}", root) for _, root in known_projects(data) if root)
    if (own := user_lock_path(environment)) is not None and environment.home is not None:
        places[own] = environment.home
    trees = set()
    for lock, root in places.items():
        with suppress(UnusableLock):
            for name, entry in locks.skills_in(lock).items():
                place = f"{root}/{INSTALLED}/{name}/SKILL.md"
                if any(files.is_inside(one, path) for one in (place, files.real_path(place))):
                    trees.add(entry.tree)
    return trees


def _take_back(environment: "Environment", path: str, *, dry_run: bool) -> "list[Approval]":
    """Take back the approvals at or below a real path; a file of approvals that cannot be used is named."""
    from skillshelf.config.approvals import UnusableApprovals, read_approvals, remove_approvals

    installed = _installed_trees(environment, path)
    try:
        if dry_run:
            return [one for one in read_approvals(environment) if _is_at(one, path, installed)]
        return remove_approvals(environment, lambda one: _is_at(one, path, installed))
    except UnusableApprovals as error:
        note(str(error))
        return []


def _take_back_remote(values: Values) -> int:
    """Take back the approvals of a live source, or of one of its skills, by their address."""
    from skillshelf.catalog.source import source_address
    from skillshelf.config.approvals import approvals_path, read_approvals, remove_approvals
    from skillshelf.core.text import visible

    environment, address = environment_for(values), values["dir"]

    def is_below(one: "Approval") -> bool:
        whole = f"{source_address(one.origin or '')}/{one.name}/"
        return one.path is None and one.origin is not None and whole.startswith(f"{address.rstrip('/')}/")

    found = [one for one in read_approvals(environment) if is_below(one)]
    if not values["dry_run"]:
        remove_approvals(environment, is_below)
    if values["json"]:
        file = approvals_path(environment) or ""
        write(as_json({"folder": address, "file": file, "changed": bool(found), "findings": []}))
        return DONE
    gone = "would no longer be" if values["dry_run"] else "is no longer"
    for one in found:
        write(visible(f"{one.origin}: {one.tool} of {one.name} {gone} approved") + "\n")
    if not found:
        write(visible(f"{address}: nothing of it was approved") + "\n")
    return DONE


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


def _require_trustable(folder: str, environment: "Environment") -> None:
    """Raise if there is no such folder, or if the system policy lets nobody trust it."""
    from skillshelf.config.settings import load_system_policy
    from skillshelf.config.system_policy import trust_refusal
    from skillshelf.core import files

    if files.kind_at(files.real_path(folder)) != "folder":
        raise ConfigurationError(f"folder {folder} not found")
    if by := trust_refusal(load_system_policy(environment), files.real_path(folder)):
        raise PermissionDenied(f"{folder} cannot be trusted: the system policy forbids it ({by})")


def _consent_to_trust(values: Values, folder: str) -> "Consent":
    """Return what the security rules find in the skills below a folder, and which rules nobody accepted."""
    from skillshelf.errors import SkillFileNotFound
    from skillshelf.lint.consent import accepted_rules, consent_needed
    from skillshelf.lint.run import in_paths, security_findings_of

    accepted = accepted_rules(values["accept_rule"])
    try:
        targets = in_paths([folder], shelf_for(values))
    except SkillFileNotFound:
        return consent_needed({})
    return consent_needed({target.path: security_findings_of(target) for target in targets.found}, accepted)


def _before_trust(values: Values, folder: str) -> "Consent":
    """Return the security findings of a folder that is to be trusted, after somebody agreed to them."""
    from skillshelf.cli.consent_view import refusal, require_consent, show_findings
    from skillshelf.core.text import visible

    consent = _consent_to_trust(values, folder)
    if consent.rules or values["dry_run"]:
        show_findings(consent, folder)
    if consent.rules and not values["dry_run"]:
        command = f"skillshelf trust {quote(folder)}"
        refused = refusal(consent, f"{folder} is not trusted: its skills", command, consent.rules)
        no = PermissionDenied(f"{folder} is not trusted")
        require_consent(consent, f"Trust {visible(folder)}", refused, asks=not values["json"], no=no)
    return consent


def trust(values: Values) -> int:
    """Trust a folder and everything below it, stop trusting it, or list the trusted folders."""
    from skillshelf.config.settings_edit import change_list, listed
    from skillshelf.core import files
    from skillshelf.core.environment import expand
    from skillshelf.core.text import visible

    environment = environment_for(values)
    if values["list"] or (values["remove"] and (values["dir"] or "").startswith("source://")):
        return _list_trust(environment, wants_json=values["json"]) if values["list"] else _take_back_remote(values)
    folder = os.path.abspath(os.path.join(environment.cwd, values["dir"] or "."))
    if not values["remove"]:
        _require_trustable(folder, environment)

    def real(other: str) -> str:
        return files.real_path(expand(other, environment, base=environment.cwd))

    def change(folders: list[str]) -> list[str]:
        if values["remove"]:
            return [other for other in folders if real(other) != real(folder)]
        return folders if folder in folders else [*folders, folder]

    dry_run = values["dry_run"]
    known = values["remove"] or folder in listed(environment, "trust", "folders")
    found = [] if known else _before_trust(values, folder).rows()
    path, changed = change_list(environment, "trust", "folders", change, dry_run=dry_run)
    taken_back = _take_back(environment, real(folder), dry_run=dry_run) if values["remove"] else []
    still = listed(environment, "trust", "folders") if values["remove"] and not dry_run else []
    for other in [other for other in still if files.is_inside(real(folder), real(other))]:
        note(f"{folder} is still trusted, with {other}; to end that: skillshelf trust {other} --remove")
    if values["json"]:
        form = {"folder": folder, "file": path, "changed": changed or bool(taken_back), "findings": found}
        write(as_json(form))
        return DONE
    for one in taken_back:
        gone = "would no longer be" if dry_run else "is no longer"
        where = one.path or "wherever it is installed"
        write(visible(f"{where}: {one.tool} of {one.name} {gone} approved") + "\n")
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
