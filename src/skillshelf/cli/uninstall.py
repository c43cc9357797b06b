"""Run the command `uninstall`: remove what skillshelf made on this machine, and list what is left."""

import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from typing import Any

from skillshelf import __version__
from skillshelf.cli.commands import Values, environment_for
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, as_json, ask, can_ask, note, screen, write
from skillshelf.core.disk_writes import owned_folders, remove_below, remove_whole_below, sweep_owned_folders
from skillshelf.core.environment import Environment, user_data_folder
from skillshelf.core.kept_files import TEMPORARY, KeptFolder, KeptPlace, kept_folder, kept_folders
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural, visible
from skillshelf.errors import DENIED, DONE, NEGATIVE, SkillError
from skillshelf.hosts.link_records import MANIFEST, UnusableRecords, records_path
from skillshelf.hosts.made_links import (
    MADE_STATES,
    MadeLink,
    forget_records,
    is_forgettable,
    made_links,
    remove_made_links,
)
from skillshelf.install.garbage import known_projects

__all__ = ["removal_command", "uninstall"]

_JOURNAL_HEAD = 4096
_MOST_JOURNALS = 200
_MOST_SHOWN = 5


class RemovalStep(NamedTuple):
    """One thing to remove; `remove` returns why it stays, or an empty text, and may raise an OSError."""

    kind: str
    path: str
    detail: str
    remove: Callable[[], str]


class LeftOver(NamedTuple):
    """One thing that is left, why, and how to remove it by hand."""

    kind: str
    path: str
    reason: str
    run: str = ""


class RemovalPlan(NamedTuple):
    """All that is removed, in this order, and all that is left."""

    steps: tuple[RemovalStep, ...]
    left: tuple[LeftOver, ...]


def uninstall(values: Values) -> int:
    """Show what would be removed and what is left, ask, and remove it."""
    environment = environment_for(values)
    plan = _plan(environment)
    asks = not values["dry_run"] and not values["yes"] and bool(plan.steps)
    if not values["json"]:
        _write_plan(plan, environment, applies=not values["dry_run"])
    is_refused = asks and not (can_ask() and not values["json"] and ask("Remove these? [y/N] "))
    if is_refused or values["dry_run"] or not plan.steps:
        if values["json"]:
            write(as_json(_plan_json(plan, None)))
        if is_refused:
            note("nothing was removed" + ("" if can_ask() else " (run `skillshelf uninstall --yes` to remove it)"))
        return DENIED if is_refused else DONE
    results = [_apply(step) for step in plan.steps]
    if values["json"]:
        write(as_json(_plan_json(plan, results)))
    else:
        _write_results(plan, results, environment)
    return NEGATIVE if any(results) else DONE


def _apply(step: RemovalStep) -> str:
    """Remove one thing; return why it is still there, or an empty text."""
    try:
        return step.remove()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except SkillError as error:
        return str(error)


# The plan -----------------------------------------------------------------------------------------


def _plan(environment: Environment) -> RemovalPlan:
    """Return the plan: links and copies first, and the state, which has their records, after them."""
    steps, left = _links(environment)
    for prefix in TEMPORARY:
        if found := owned_folders(prefix):
            path, detail = f"{os.path.dirname(found[0])}/{prefix}*", f"{plural(len(found), 'abandoned folder')} of runs"
            steps.append(RemovalStep("temporary", path, detail, partial(_sweep, prefix)))
    has_links = any(step.kind in ("link", "copy") for step in steps)
    for folder in kept_folders(environment):
        # To remove a link that version 0.1 made, its record is moved to the state folder first.
        steps += _steps_in(folder, is_touched=has_links and folder.place == "state")
        left += _left_in(folder)
    left += _left_elsewhere(environment)
    return RemovalPlan(tuple(steps), tuple(left))


def _links(environment: Environment) -> tuple[list[RemovalStep], list[LeftOver]]:
    """Return the links and copies that are removed, and those that are left."""
    try:
        found = made_links(environment)
    except UnusableRecords as error:
        place = records_path(environment) or ""
        reason = f"{str(error).removeprefix(f'{place}: ')}; links and copies are not known without it"
        return [], [LeftOver("record of links", place, reason)]
    removable = [made for made in found if made.is_removable]

    @cache
    def reasons() -> dict[str, str]:
        results = remove_made_links(removable, environment)
        return {made.path: reason for made, reason in zip(removable, results, strict=True)}

    steps = [_step_of(made, reasons) for made in removable]
    left = [LeftOver(made.record.how, made.path, MADE_STATES[made.state]) for made in found if not made.is_removable]
    path = records_path(environment)
    if path is not None and not all(made.is_removable or is_forgettable(made) for made in found):
        left.append(LeftOver("record of links", path, "it names what is left of them"))
    elif path is not None and files.kind_at(path) is not None:
        steps.append(RemovalStep("state", path, "the record of links", partial(forget_records, environment)))
    return steps, left


def _step_of(made: MadeLink, reasons: Callable[[], dict[str, str]]) -> RemovalStep:
    hosts = f"made for {', '.join(made.record.hosts)}" if made.record.hosts else ""
    detail = "; ".join(filter(None, (hosts, "" if made.state == "current" else MADE_STATES[made.state])))
    return RemovalStep(made.record.how, made.path, detail, lambda: reasons()[made.path])


def _sweep(prefix: str) -> str:
    sweep_owned_folders(prefix, seconds=5)
    rest = owned_folders(prefix)
    return f"{plural(len(rest), 'folder')} could not be removed" if rest else ""


def _steps_in(folder: KeptFolder, *, is_touched: bool) -> Iterable[RemovalStep]:
    names = [found.relative for found in folder.removable]
    is_empty = folder.exists and not folder.files
    if not folder.problem and (names or is_empty or is_touched):
        detail = ", ".join(names) if len(names) <= 3 else plural(len(names), "file")
        yield RemovalStep(folder.place, folder.path, detail, partial(_remove_own, folder.place, folder.path))


def _remove_own(place: KeptPlace, path: str) -> str:
    """Remove the files of ours in a folder as it is now, then the folders that are empty; return the first failure."""
    folder = kept_folder(place, path)
    if folder.problem:
        return folder.problem
    problems = []
    for found in folder.removable:
        is_file = found.row is None or found.row.kind == "file"
        try:
            (remove_below if is_file else remove_whole_below)(found.folder, found.relative)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{found.relative}: {(error.strerror or str(error)).lower()}")
    above, name = files.real_path(os.path.dirname(path)), os.path.basename(path)
    for inner in (*(f"{name}/{inner}" for inner in folder.folders), name):
        with suppress(OSError):
            remove_below(above, inner)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""


def _left_in(folder: KeptFolder) -> Iterable[LeftOver]:
    if folder.problem:
        yield LeftOver(folder.place, folder.path, folder.problem)
    for found in folder.files:
        if found.problem:
            yield LeftOver("other file", found.path, found.problem)
        elif found.row is not None and found.row.on_uninstall == "left":
            remove = "rm -r" if found.row.kind == "folder" else "rm"
            yield LeftOver(found.row.name, found.path, found.row.holds, f"{remove} {_quoted(found.path)}")


def _left_elsewhere(environment: Environment) -> Iterable[LeftOver]:
    for path in _journals(environment.cwd):
        yield LeftOver("journal", path, "the record of what happened")
    data = user_data_folder(environment)
    for _, root in known_projects(data) if data is not None else ():
        if files.kind_at(root) is not None:
            yield LeftOver("project", root, "its wishes, its lock and the copies in .agents/skills belong to it")
    kept = owned_folders("skillshelf-kept-", released=True)
    for path in kept[:_MOST_SHOWN]:
        yield LeftOver("kept work", path, "files that a script made", f"rm -r {_quoted(path)}")
    if len(kept) > _MOST_SHOWN:
        reason = f"{len(kept) - _MOST_SHOWN} more folders with files that scripts made"
        yield LeftOver("kept work", f"{os.path.dirname(kept[0])}/skillshelf-kept-*", reason)
    yield LeftOver(
        "elsewhere",
        "",
        "journals in other folders; completion scripts and servers that you entered in files of your shell or agents, "
        "and skills that you turned off there; links that version 0.1 made in other repositories (beside "
        f"{MANIFEST}): run `skillshelf uninstall` there too",
    )
    yield LeftOver("program", sys.prefix, f"skillshelf {__version__}", removal_command())


def _journals(folder: str) -> list[str]:
    """Return the journals directly in a folder: regular files whose first line is an event of ours."""
    found = []
    with suppress(OSError):
        names = sorted(name for name in files.stamps_in(folder) if re.search(r"\.jsonl(\.part-[0-9]+)?$", name))
        for name in names[:_MOST_JOURNALS]:
            path = f"{folder}/{name}"
            with suppress(OSError):
                if files.kind_at(path) == "file" and _is_journal(path):
                    found.append(path)
    return found


def _is_journal(path: str) -> bool:
    descriptor = files.open_to_read(path)
    try:
        line = files.read_at(descriptor, _JOURNAL_HEAD, 0).partition(b"\n")[0]
    finally:
        files.close(descriptor)
    is_first = b'"seq":0' in line and b'"type":"session_started"' in line
    return line.startswith(b"{") and (is_first or b'"type":"journal_continued"' in line)


def removal_command() -> str:
    """Return the command that removes the package itself, by the program that installed it."""
    from importlib.util import find_spec

    parts = sys.prefix.split("/")
    if "pipx" in parts:
        return "pipx uninstall skillshelf"
    if "uv" in parts and "tools" in parts:
        return "uv tool uninstall skillshelf"
    if find_spec("pip") is None:
        return f"uv pip uninstall --python {_quoted(sys.executable)} skillshelf"
    return f"{_quoted(sys.executable)} -m pip uninstall skillshelf"


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)


# Output -------------------------------------------------------------------------------------------


def _write_plan(plan: RemovalPlan, environment: Environment, *, applies: bool) -> None:
    display = PathDisplay(environment.cwd, environment.home)
    view = screen(environment.env)
    if plan.steps:
        rows = [(step.kind, display.short(step.path), step.detail) for step in plan.steps]
        lines = [view.paint("To remove:" if applies else "Would be removed:", "bold")]
        lines += view.table(rows, (None, None, "dim"), indent=2, wrap=True)
    else:
        lines = ["Nothing to remove: no links or copies of ours, no cache and no state."]
    lines.append(view.paint("Left:", "bold"))
    rows = [(one.kind, display.short(one.path), _left_text(one)) for one in plan.left]
    lines += view.table(rows, (None, None, "dim"), indent=2, wrap=True)
    write("\n".join(lines) + "\n")


def _left_text(one: LeftOver) -> str:
    return f"{one.reason}; to remove it: {one.run}" if one.run else one.reason


def _write_results(plan: RemovalPlan, results: list[str], environment: Environment) -> None:
    display = PathDisplay(environment.cwd, environment.home)
    for step, problem in zip(plan.steps, results, strict=True):
        path = visible(display.short(step.path))
        # A folder with files of others is still there.
        what = "our files in " if not problem and files.kind_at(step.path) == "folder" else ""
        write(f"not removed: {path}: {visible(problem)}\n" if problem else f"removed {what}{path}\n")
    if failed := sum(map(bool, results)):
        note(f"{plural(failed, 'thing')} could not be removed; run `skillshelf uninstall` again when that is mended")


def _plan_json(plan: RemovalPlan, results: list[str] | None) -> dict[str, Any]:
    states = ["planned" if results is None else "failed" if result else "done" for result in results or plan.steps]
    return {
        "applied": results is not None,
        "actions": [
            {"kind": step.kind, "path": step.path, "detail": problem or step.detail, "state": state}
            for step, problem, state in zip(plan.steps, results or [""] * len(plan.steps), states, strict=True)
        ],
        "left": [one._asdict() for one in plan.left],
    }
