"""Run the command `doctor`: check every part of the installation, and repair what can be made again.

A check is one row of `CHECKS`. It yields one result for each thing it looked at; `repair` is set only where the thing
can be made again, so `--fix` never empties approvals, configuration or records.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.cli.command_table import command_again
from skillshelf.cli.commands import Values, environment_for
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, Screen, as_json, note, screen, write
from skillshelf.core.disk_writes import owned_folders, remove_below, remove_whole_below, sweep_owned_folders, tighten
from skillshelf.core.environment import Environment
from skillshelf.core.kept_files import TEMPORARY, KeptFolder, kept_folders
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError, SkillError

if TYPE_CHECKING:
    from skillshelf.hosts.made_links import MadeLink

__all__ = ["CHECKS", "CheckResult", "Checkup", "InstallationCheck", "doctor"]


class CheckResult(NamedTuple):
    """The finding of a check: `missing` is a part that is optional. `run` is the command that helps."""

    state: Literal["ok", "problem", "missing"]
    detail: str
    path: str | None = None
    run: str | None = None
    repair: Callable[[], None] | None = None


class Checkup(NamedTuple):
    """The inputs of the checks."""

    environment: Environment
    folders: tuple[KeptFolder, ...]

    def folder(self, place: str) -> KeptFolder | None:
        """Return one of the user's folders; None without a home folder."""
        return next((folder for folder in self.folders if folder.place == place), None)


class InstallationCheck(NamedTuple):
    """One row of the table of checks."""

    name: str
    help: str
    run: Callable[[Checkup], Iterator[CheckResult]]


def doctor(values: Values) -> int:
    """Check everything, repair with `--fix`, and print one line for each result."""
    environment = environment_for(values)
    if values["dry_run"] and not values["fix"]:
        raise ConfigurationError("--dry-run is for --fix, which is the only option that writes something")
    checkup = Checkup(environment, tuple(kept_folders(environment)))
    checks = _requested(values["check"])
    results = [(check.name, result, False) for check in checks for result in _results(check, checkup)]
    if values["fix"] and not values["dry_run"]:
        results = [_repaired(*one) for one in results]
    if values["json"]:
        write(as_json(_report_json(results)))
    else:
        write(_report(results, environment, screen(environment.env), planned=values["dry_run"]))
    left = [result for _, result, is_fixed in results if result.state == "problem" and not is_fixed]
    if not values["json"] and any(result.repair for result in left):
        again = command_again(values, "doctor", fix=True, dry_run=None)
        note(f"run `{again}` to repair what can be made again")
    return NEGATIVE if left else DONE


def _requested(names: Sequence[str]) -> Sequence[InstallationCheck]:
    """Return the checks that were named, or all."""
    known = [check.name for check in CHECKS]
    if unknown := next((name for name in names if name not in known), None):
        near = get_close_matches(unknown, known, 1)
        hint = f"; did you mean {near[0]}?" if near else f" (known: {', '.join(known)})"
        raise ConfigurationError(f"unknown check {unknown!r}{hint}")
    return [check for check in CHECKS if not names or check.name in names]


def _results(check: InstallationCheck, checkup: Checkup) -> Sequence[CheckResult]:
    """Return the results of a check; one that fails is a problem of its own and keeps no other from running."""
    try:
        return list(check.run(checkup))
    except (OSError, SkillError) as error:
        return [CheckResult("problem", f"this check failed: {error}")]


def _repaired(name: str, result: CheckResult, is_fixed: bool) -> tuple[str, CheckResult, bool]:
    if result.state != "problem" or result.repair is None:
        return name, result, is_fixed
    try:
        result.repair()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return name, result._replace(detail=f"{result.detail}; the repair failed: {reason}", repair=None), False
    return name, result, True


def _report(
    results: Sequence[tuple[str, CheckResult, bool]], environment: Environment, view: Screen, *, planned: bool
) -> str:
    display = PathDisplay(environment.cwd, environment.home)
    rows = []
    for name, result, is_fixed in results:
        where = f"{display.short(result.path)}: " if result.path else ""
        would = planned and _is_fixable(result)
        command = f" (run `{result.run}`)" if result.run and not is_fixed and not would else ""
        state = "fixed" if is_fixed else "would fix" if would else result.state
        rows.append((state, name, f"{where}{result.detail}{command}"))
    problems = sum(result.state == "problem" and not is_fixed for _, result, is_fixed in results)
    fixed = sum(is_fixed for _, _, is_fixed in results)
    lines = view.table(rows, ("bold", None, None), wrap=True)
    end = f"{plural(problems, 'problem')} left" if problems else "No problems left" if fixed else "No problems"
    missing = sum(result.state == "missing" for _, result, _ in results)
    counts = (f"{fixed} fixed" if fixed else "", f"{plural(missing, 'optional part')} missing" if missing else "")
    lines += ["", ", ".join(filter(None, (end, *counts)))]
    return "\n".join(lines) + "\n"


def _is_fixable(result: CheckResult) -> bool:
    return result.state == "problem" and result.repair is not None


def _report_json(results: Sequence[tuple[str, CheckResult, bool]]) -> dict[str, Any]:
    checks = [
        {
            "check": name,
            "state": "ok" if is_fixed else result.state,
            "detail": result.detail,
            "path": result.path,
            "run": result.run,
            "fixed": is_fixed,
            "fixable": _is_fixable(result),
        }
        for name, result, is_fixed in results
    ]
    return {"ok": all(check["state"] != "problem" for check in checks), "checks": checks}


_OLDEST_PYTHON = (3, 11)


# The program --------------------------------------------------------------------------------------


def _python(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf import __version__

    version = sys.version.split()[0]
    if tuple(sys.version_info[:2]) < _OLDEST_PYTHON:
        yield CheckResult("problem", f"Python {version} is older than {_OLDEST_PYTHON[0]}.{_OLDEST_PYTHON[1]}")
    else:
        yield CheckResult("ok", f"skillshelf {__version__} with Python {version}", sys.executable)


def _packages(checkup: Checkup) -> Iterator[CheckResult]:
    """Check the packages that every command needs."""
    from importlib import import_module
    from importlib.metadata import PackageNotFoundError, version

    for name in ("ryaml", "tantivy"):
        try:
            import_module(name)
            yield CheckResult("ok", f"{name} {version(name)}")
        except (ImportError, PackageNotFoundError) as error:
            run = f"{sys.executable} -m pip install {name}"
            yield CheckResult("problem", f"{name} cannot be used: {error}", run=run)


def _native(checkup: Checkup) -> Iterator[CheckResult]:
    if files.has_native_core():
        yield CheckResult("ok", "loaded")
    elif checkup.environment.env.get("SKILLSHELF_NATIVE") == "off":
        yield CheckResult("missing", "switched off by SKILLSHELF_NATIVE=off")
    else:
        yield CheckResult("missing", "not built, so scans are slower; it is compiled where pip finds a C compiler")


def _sandbox(checkup: Checkup) -> Iterator[CheckResult]:
    """Run a script that does nothing, and report the parts of the sandbox that it did not have."""
    from skillshelf.core.disk_writes import make_owned_folder, remove_owned_folder, write_new
    from skillshelf.sandbox.run import run_script
    from skillshelf.sandbox.walls import WALLS

    folder = make_owned_folder("skillshelf-run-")
    try:
        write_new(f"{folder.path}/scripts/probe.sh", b"#!/bin/sh\n:\n", mode=0o755)
        ended = run_script(folder.path, "probe.sh", digest=None)
    except SkillError as error:
        yield CheckResult("missing", f"scripts cannot be run: {error}")
        return
    finally:
        remove_owned_folder(folder)
    if ended.exit_code:
        reason = ended.reason or ended.stderr.decode("utf-8", "replace").strip() or f"status {ended.exit_code}"
        yield CheckResult("problem", f"a script that does nothing failed in it: {reason}")
    for name, purpose in WALLS.items():
        if name in ended.missing:
            yield CheckResult("missing", f"{name}: {purpose.does}; to get it: {purpose.remedy}")
        else:
            yield CheckResult("ok", f"{name}: {purpose.does}")


# The user's folders -------------------------------------------------------------------------------


def _folders(checkup: Checkup) -> Iterator[CheckResult]:
    """Check the owner, the kind and the permissions of each folder, and whether everything in it is ours."""
    if not checkup.folders:
        yield CheckResult("problem", "there is no home folder, so nothing is kept", run="skillshelf doctor --home DIR")
    for folder in checkup.folders:
        if not folder.exists:
            yield CheckResult("ok", "not there yet", folder.path)
        elif folder.problem:
            yield CheckResult("problem", _not_usable(folder), folder.path)
        elif not files.is_own_folder(folder.path):
            repair = partial(tighten, folder.path)
            yield CheckResult("problem", "other users can write here", folder.path, f"chmod go-w {folder.path}", repair)
        else:
            yield CheckResult("ok", plural(len(folder.files), "file"), folder.path)
        for found in folder.files:
            if found.row is not None and found.problem:
                yield CheckResult("problem", f"{found.problem}, so it is not used", found.path)
            elif found.row is not None and found.is_abandoned:
                repair = partial(remove_below, found.folder, found.relative)
                yield CheckResult("problem", "a process ended while it wrote this", found.path, None, repair)


def _not_usable(folder: KeptFolder) -> str:
    variable = f"XDG_{folder.place.upper()}_HOME"
    return f"{folder.problem}; use a folder of your own there, or name one with {variable}"


def _rebuilt(checkup: Checkup, name: str, damage: Callable[[str], str | None]) -> Iterator[CheckResult]:
    """Check the files of one row of the table that are made again if they are removed."""
    folder = checkup.folder("cache")
    own = [one for one in folder.files if one.row is not None and one.row.name == name] if folder else []
    whole = 0
    for found in own:
        if found.relative.endswith(".new"):
            continue
        if (problem := damage(found.path)) is not None:
            yield CheckResult("problem", problem, found.path, None, partial(remove_below, found.folder, found.relative))
        else:
            whole += 1
    yield CheckResult("ok", plural(whole, "file") if whole else "empty")


def _cache(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf.catalog.cache import FILE_NAME, cache_damage

    return _rebuilt(checkup, "cache", lambda path: cache_damage(path) if path.endswith(FILE_NAME) else None)


def _embeddings(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf.search.vector_cache import VECTOR_FILE, vector_damage

    return _rebuilt(checkup, "embeddings", lambda path: vector_damage(path) if path.endswith(VECTOR_FILE) else None)


def _packed(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf.catalog.packed_file import packed_damage

    return _rebuilt(checkup, "packed catalogs", packed_damage)


def _index(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf.search.index import index_damage

    folder = checkup.folder("cache")
    own = [one for one in folder.files if one.row is not None and one.row.name == "search index"] if folder else []
    indexes: dict[str, list[str]] = {}
    for found in own:
        indexes.setdefault("/".join(found.relative.split("/")[:2]), []).append(found.relative)
    whole = 0
    for name, inside in indexes.items():
        top = own[0].folder
        if (problem := index_damage(f"{top}/{name}")) is None:
            whole += 1
        else:
            yield CheckResult("problem", problem, f"{top}/{name}", None, partial(_remove_all, top, name, inside))
    yield CheckResult("ok", f"{whole} complete" if whole else "empty")


def _remove_all(top: str, name: str, inside: Sequence[str]) -> None:
    for relative in (*inside, f"{name}/index", name):
        if files.kind_at(f"{top}/{relative}") is not None:
            remove_below(top, relative)


def _temporary(checkup: Checkup) -> Iterator[CheckResult]:
    for prefix in TEMPORARY:
        if found := owned_folders(prefix):
            path = f"{os.path.dirname(found[0])}/{prefix}*"
            repair = partial(sweep_owned_folders, prefix, seconds=5)
            yield CheckResult("problem", f"{plural(len(found), 'folder')} of runs that were killed", path, None, repair)
        else:
            yield CheckResult("ok", f"no abandoned {prefix}*")


# What cannot be made again ------------------------------------------------------------------------


def _approvals(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf.config.approvals import UnusableApprovals, approvals_path, read_approvals

    path = approvals_path(checkup.environment)
    try:
        yield CheckResult("ok", plural(len(read_approvals(checkup.environment)), "approval"), path)
    except UnusableApprovals as error:
        yield CheckResult("problem", str(error).removeprefix(f"{path}: "), path)


def _usage(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf.search.usage_history import UnusableUsage, UsageHistory, usage_path

    path = usage_path(checkup.environment)
    try:
        rows = UsageHistory(path).summary().rows if path is not None else 0
        yield CheckResult("ok", plural(rows, "row") if rows else "empty", path)
    except UnusableUsage as error:
        yield CheckResult("problem", str(error).removeprefix(f"{path}: "), path, "skillshelf usage --clear")


def _configuration(checkup: Checkup) -> Iterator[CheckResult]:
    from skillshelf.config.settings import load_settings
    from skillshelf.core.environment import user_config_path

    path = user_config_path(checkup.environment)
    try:
        settings = load_settings(checkup.environment, trust="ask")
    except ConfigurationError as error:
        yield CheckResult("problem", str(error))
        return
    for warning in settings.warnings:
        if warning.rule == "policy-unusable":
            continue
        # That a stranger's file has no effect is as it should be.
        yield CheckResult("ok" if warning.rule == "config-untrusted" else "problem", warning.message, warning.path)
    if path is not None and files.kind_at(path) is not None:
        yield CheckResult("ok", "can be read", path)
    if (project := settings.project_file) is not None:
        yield CheckResult("ok", "can be read", project.path)
    elif path is None or files.kind_at(path) is None:
        yield CheckResult("ok", "none, so the defaults count")


def _policy(checkup: Checkup) -> Iterator[CheckResult]:
    """Report the files of the system policy, and the skills that they require."""
    from skillshelf.cli.policy import required_errors
    from skillshelf.config.settings import load_system_policy
    from skillshelf.core.environment import SYSTEM_POLICY

    system = load_system_policy(checkup.environment)
    if not system.files:
        yield CheckResult("ok", f"none ({SYSTEM_POLICY} does not exist)")
    for file in system.files:
        state: Literal["ok", "problem"] = "problem" if file.problem else "ok"
        detail = f"{file.problem}; no model is served" if file.problem else "in force, and only root can write it"
        yield CheckResult(state, detail, file.path, "skillshelf policy" if file.problem else None)
    for message in required_errors(checkup.environment) if system.files else ():
        yield CheckResult("problem", f"{message}; no model is served")


def _links(checkup: Checkup) -> Iterator[CheckResult]:
    """Check the records of links and copies, and everything that they describe."""
    from skillshelf.hosts.link_changes import finish_pending
    from skillshelf.hosts.link_records import UnusableRecords, read_state, records_path
    from skillshelf.hosts.made_links import MADE_STATES, made_links

    path = records_path(checkup.environment)
    try:
        found = made_links(checkup.environment)
        pending = read_state(checkup.environment).pending
    except UnusableRecords as error:
        yield CheckResult("problem", str(error).removeprefix(f"{path}: "), path)
        return
    if pending is not None:
        detail = "a change of links was interrupted; the next one undoes it"
        yield CheckResult("problem", detail, path, None, lambda: _finish(finish_pending, checkup.environment))
    for made in found:
        if made.state != "current":
            yield CheckResult("problem", MADE_STATES[made.state], made.path, _advice(made))
    current = sum(made.state == "current" for made in found)
    if current or not found:
        yield CheckResult("ok", f"{current} as made" if current else "none")


def _finish(finish_pending: Callable[[Environment], object], environment: Environment) -> None:
    try:
        finish_pending(environment)
    except SkillError as error:
        raise OSError(str(error)) from None


def _advice(made: "MadeLink") -> str | None:
    """Return the command that helps with a link or copy that is not as it was made."""
    record = made.record
    link = f"skillshelf link {quote(os.path.basename(made.path))} --to {','.join(record.hosts) or 'HOST'}"
    if made.state == "modified" and record.source is not None:
        return f"diff -r {quote(record.source)} {quote(made.path)}"
    commands = {"stale": link, "dangling": f"{link} --remove", "gone": f"{link} --remove"}
    return commands.get(made.state)


def _store(checkup: Checkup) -> Iterator[CheckResult]:
    """Check every tree that a current generation needs, and what killed processes left in the store."""
    from skillshelf.install.checkup import half_written, missing_trees, needed_trees

    needed = needed_trees(checkup.environment)
    broken = missing_trees(checkup.environment, needed)
    for tree in broken:
        names, root = needed[tree]
        where = f" --cwd {quote(root)}" if root else " --user"
        yield CheckResult("problem", f"the files of {names} are missing or changed", tree, f"skillshelf install{where}")
    folder = checkup.folder("data")
    for relative in half_written(checkup.environment) if folder is not None else ():
        repair = partial(remove_whole_below, files.real_path(folder.path if folder else ""), relative)
        yield CheckResult("problem", "a process ended while it wrote or removed this", relative, None, repair)
    yield CheckResult("ok", f"{len(needed) - len(broken)} of {plural(len(needed), 'tree')} as they should be")


def _locks(checkup: Checkup) -> Iterator[CheckResult]:
    """Check the locks, the wishes and the generations of the user and of this project, and what is pending there."""
    from skillshelf.install.checkup import scope_problems
    from skillshelf.install.scope import scope_of
    from skillshelf.install.transaction import recover

    for user in (True, False):
        scope = scope_of(checkup.environment, user=user)
        found = list(scope_problems(scope))
        for path, problem in found:
            yield CheckResult("problem", problem, path)
        if not found and files.kind_at(scope.lock_path) is not None:
            yield CheckResult("ok", "lock, wishes and generations can be read", scope.lock_path)
        if files.kind_at(pending := f"{scope.history}/pending.json") is not None and not found:
            repair = partial(_finish, partial(recover, scope), checkup.environment)
            yield CheckResult("problem", "a change of installed skills was interrupted", pending, None, repair)


def _hosts(checkup: Checkup) -> Iterator[CheckResult]:
    """Report the hosts that commands speak of, and those that are set but not found."""
    from skillshelf.config.settings import load_settings
    from skillshelf.hosts.detection import chosen_by, host_states

    environment = checkup.environment
    settings = load_settings(environment, trust="user")
    by = chosen_by(environment, settings)
    if by == "all":
        yield CheckResult(
            "missing", "no host was found, so commands speak of all", run="skillshelf hosts --set HOST,..."
        )
        return
    for host in host_states(environment, settings):
        if host.detected and host.enabled:
            yield CheckResult("ok", host.host, host.by)
        elif host.enabled:
            yield CheckResult("missing", f"{host.host} is set, but was not found on this machine")


CHECKS: tuple[InstallationCheck, ...] = (
    InstallationCheck("python", "the versions of skillshelf and of Python", _python),
    InstallationCheck("packages", "the packages that every command needs", _packages),
    InstallationCheck("native", "the optional C extension", _native),
    InstallationCheck("folders", "owner, kind and permissions of the user's four folders", _folders),
    InstallationCheck("cache", "`skills.sqlite3`", _cache),
    InstallationCheck("embeddings", "`embeddings.sqlite3`", _embeddings),
    InstallationCheck("packed", "the packed catalogs", _packed),
    InstallationCheck("index", "the search indexes", _index),
    InstallationCheck("runs", "folders that runs left when they were killed", _temporary),
    InstallationCheck("approvals", "`approvals.json`", _approvals),
    InstallationCheck("usage", "`usage.sqlite`, the history of use", _usage),
    InstallationCheck("configuration", "your file, and that of the project", _configuration),
    InstallationCheck("policy", "the system policy: its owner, its keys, and the skills that it requires", _policy),
    InstallationCheck("store", "the trees of installed skills", _store),
    InstallationCheck("locks", "locks, wishes and generations of you and of this project", _locks),
    InstallationCheck("links", "every link and copy that `link` made", _links),
    InstallationCheck("hosts", "the hosts that are set or found on this machine", _hosts),
    InstallationCheck("sandbox", "the parts of the sandbox, by a script that does nothing", _sandbox),
)
"""Every check, in the order of the report."""
