"""Run the commands that compare installed skills with their lock and their sources: verify, diff, outdated."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.lock import LockedSkill
from skillshelf.cli.commands import Values
from skillshelf.cli.install_run import InstallRun
from skillshelf.cli.install_view import difference_json, difference_view, slow_work, verify_json, verify_view
from skillshelf.core.console import as_json, note, screen, write
from skillshelf.core.text import plural, visible
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError, SkillChanged, SkillError, SourceNotFound, kind_of

if TYPE_CHECKING:
    from skillshelf.install.verify import SkillFound

__all__ = ["diff", "outdated", "verify"]


# Verify -------------------------------------------------------------------------------------------


def verify(values: Values) -> int:
    """Compare installed skills with the lock, and name every file that differs."""
    runs = [InstallRun("verify", values)]
    if values["all"]:
        runs.append(InstallRun("verify", values, user=not values["user"]))
    found, settle = [], {}
    with slow_work("Reading installed skills"):
        for run in runs:
            for name, skill in run.named(values["name"] if run is runs[0] else ()).items():
                for one in run.all_found(name, skill):
                    found.append(one)
                    settle[one.path] = _how_to_settle(run, one)
    if values["json"]:
        write(as_json(verify_json(found)))
    else:
        write(verify_view(found, runs[0].display, settle))
    return DONE if all(one.ok for one in found) else NEGATIVE


def _how_to_settle(run: InstallRun, found: "SkillFound") -> tuple[str, ...]:
    """Return the commands that settle a difference, each with what it does."""
    scope = " --user" if run.scope.kind == "user" else ""
    if found.state == "missing":
        return (f"to bring it back: skillshelf install{scope}",)
    if found.state != "changed":
        return ()
    restore = f"skillshelf update {found.name} --restore{scope}"
    if found.cause.startswith("only "):
        return (f"to restore them: {restore}",)
    return (
        f"to see it: skillshelf diff {found.name}{scope}",
        f"to bring the locked files back: {restore}",
        f"to take these: skillshelf update {found.name} --accept{scope}",
    )


# Diff ---------------------------------------------------------------------------------------------

_SIDES = ("locked", "disk", "source")


def diff(values: Values) -> int:
    """Show how an installed skill differs from its lock, or else from what its source has now."""
    from skillshelf.install.difference import difference_of

    run = InstallRun("diff", values)
    (name,), (skill,) = zip(*run.named([values["name"]]).items(), strict=True)
    before, after = values["a"] or "locked", values["b"]
    if after is None:
        # What a person did comes first; without that, what the source did.
        after = "disk" if not run.found(name, skill).ok else "source"
    sides = {side: _side(run, name, skill, side) for side in (before, after)}
    difference = difference_of(sides[before], sides[after])
    if values["json"]:
        trees = (_tree(sides[before]), _tree(sides[after]))
        write(as_json({"sides": [before, after], **difference_json(name, trees, difference)}))
        return DONE
    note(f"{name}: from {before} to {after}")
    if difference.files:
        write(difference_view(name, difference, run.environment.env))
    else:
        write(f"{visible(name)}: no difference\n")
    return DONE


def _side(run: InstallRun, name: str, skill: LockedSkill, side: str) -> Mapping[str, bytes]:
    """Return the files of one side of a comparison."""
    if side == "disk":
        from skillshelf.install.verify import disk_contents

        return disk_contents(run.folder_of(name, skill))
    if side == "source":
        return _source_contents(run, name, skill)
    if side != "locked" and not side.startswith("sha256:"):
        raise ConfigurationError(f"{side!r} is not {', '.join(_SIDES)} or the digest of a tree in the store")
    try:
        return run.store.read(skill.tree if side == "locked" else side)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    except SkillChanged:
        if side == "locked" and run.found(name, skill).state == "ok":
            return _side(run, name, skill, "disk")
        fetch = f"skillshelf update {name} --restore{' --user' if run.scope.kind == 'user' else ''}"
        raise SourceNotFound(
            f"the store does not have {side} files of {name} (to fetch the locked ones: {fetch})"
        ) from None


def _source_contents(run: InstallRun, name: str, skill: LockedSkill) -> Mapping[str, bytes]:
    from skillshelf.install.sources import locked_reference

    reference = locked_reference(skill, run.environment, run.scope)
    run.require_permitted([reference])
    run.require_vouched({name: skill})
    with run.sources([reference], f"Reading {reference.canonical}") as reader:
        return reader.fetch(name, reference).contents


def _tree(contents: Mapping[str, bytes]) -> str:
    from skillshelf.catalog.store import listed_files
    from skillshelf.catalog.tree import tree_digest

    return tree_digest(listed_files(contents))


# Outdated -----------------------------------------------------------------------------------------


def outdated(values: Values) -> int:
    """List installed skills whose sources have other bytes now."""
    from skillshelf.install.sources import locked_reference

    run = InstallRun("outdated", values)
    skills = run.named(values["name"])
    references = {name: locked_reference(skill, run.environment, run.scope) for name, skill in skills.items()}
    run.require_permitted([*references.values()])
    if skills:
        run.require_vouched(skills)
    rows: list[dict[str, Any]] = []
    failed: SkillError | None = None
    with run.sources([*references.values()], f"Asking the sources of {plural(len(skills), 'skill')}") as reader:
        for name, reference in references.items():
            row = {"name": name, "source": skills[name].source, "ref": skills[name].ref, "tree": skills[name].tree}
            try:
                newer = reader.newer(name, reference, skills[name])
            except SkillError as error:
                failed = failed or error
                rows.append({**row, "state": "unknown", "new_tree": None, "new_commit": None, "reason": str(error)})
                continue
            state = "current" if newer is None else "outdated"
            commit = newer.identity.commit if newer is not None else skills[name].commit
            tree = newer.tree if newer is not None else skills[name].tree
            rows.append({**row, "state": state, "new_tree": tree, "new_commit": commit, "reason": None})
    write(as_json({"skills": rows}) if values["json"] else _outdated_view(run, rows))
    if any(row["state"] == "outdated" for row in rows):
        return NEGATIVE
    return kind_of(failed).exit_status if failed is not None else DONE


def _outdated_view(run: InstallRun, rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "No skill is installed here (to add one: skillshelf add SOURCE).\n"
    shown = [
        (row["state"], visible(row["name"]), visible(row["reason"] or f"{row['source']}{_at(row)}"))
        for row in rows
        if row["state"] != "current"
    ]
    lines = screen(run.environment.env).table(shown, ("yellow", "bold", None), wrap=True) if shown else []
    lines.append(f"{sum(row['state'] == 'current' for row in rows)} of {plural(len(rows), 'skill')} current")
    if any(row["state"] == "outdated" for row in rows):
        scope = " --user" if run.scope.kind == "user" else ""
        lines.append(f"To see what would change, and take it: skillshelf update{scope}")
    return "".join(f"{line}\n" for line in lines)


def _at(row: Mapping[str, Any]) -> str:
    return f" at {row['ref']}" if row["ref"] else ""
