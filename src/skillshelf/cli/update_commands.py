"""Run the commands that change or remove installed skills: update, remove, rollback, gc."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from skillshelf.catalog.lock import LockedSkill
from skillshelf.cli.commands import Values
from skillshelf.cli.install_draft import (
    InstallDraft,
    carry_out,
    consent_to,
    draft_difference,
    draft_locked,
    edit_refusal,
    is_edited,
    print_plan,
    references_of,
    require_permitted,
    reviewed,
    say_result,
    show_done,
    show_plan,
    with_refused_hosts,
)
from skillshelf.cli.install_run import InstallRun
from skillshelf.cli.install_view import (
    InstallAction,
    InstallPlan,
    slow_work,
)
from skillshelf.core.console import note, write
from skillshelf.core.text import plural, visible
from skillshelf.errors import (
    DENIED,
    DONE,
    NEGATIVE,
    ConfigurationError,
    SkillError,
    SourceNotFound,
    kind_of,
)

if TYPE_CHECKING:
    from skillshelf.install.sources import FetchedSkill
    from skillshelf.install.transaction import Generation

__all__ = ["gc", "remove", "rollback", "update"]


def update(values: Values) -> int:
    """Take what the sources have now, after showing the difference; or settle what was edited on the disk."""
    if values["restore"] and values["accept"]:
        raise ConfigurationError("--restore and --accept are opposites: choose one")
    run = InstallRun("update", values)
    skills = run.named(values["name"])
    if not skills:
        note("nothing is installed here (to add a skill: skillshelf add SOURCE)")
    if values["restore"]:
        return _restore(run, skills)
    return _accept(run, skills) if values["accept"] else _update(run, skills)


def _update(run: InstallRun, skills: Mapping[str, LockedSkill]) -> int:
    draft = InstallDraft("update")
    clean, edits = {}, {}
    for name, skill in skills.items():
        found = run.found(name, skill)
        if is_edited(found) and not run.values["force"]:
            draft.refused.append((name, edit_refusal(found)))
            continue
        clean[name] = skill
        edits.update({name: found} if is_edited(found) else {})
    run.require_permitted(references_of(run, clean))
    if clean:
        run.require_vouched(clean)
    status = DENIED if draft.refused else DONE
    for name, one in _newer(run, clean).items():
        if isinstance(one, SkillError):
            status = status or kind_of(one).exit_status
            draft.refused.append((name, str(one)))
        else:
            _draft_update(run, draft, name, clean[name], one)
    for name, found in edits.items():
        if name in draft.entries:
            draft.replaced.add(name)
            note(
                f"{name}: your own changes are lost: {', '.join(file.path for file in found.files[:5]) or 'all files'}"
            )
    consent = consent_to(run, draft.reviews)
    question = f"Update {', '.join(visible(name) for name in draft.entries)}"
    return carry_out(run, draft, question, consent, refused=status)


def _newer(run: InstallRun, skills: Mapping[str, LockedSkill]) -> "dict[str, FetchedSkill | SkillError | None]":
    """Return what the sources of these skills have now: None for a skill that is the same, an error if one fails."""
    from skillshelf.install.sources import locked_reference

    references = {name: locked_reference(skill, run.environment, run.scope) for name, skill in skills.items()}
    found: dict[str, FetchedSkill | SkillError | None] = {}
    with run.sources([*references.values()], f"Asking the sources of {plural(len(skills), 'skill')}") as reader:
        for name, reference in references.items():
            try:
                found[name] = reader.newer(name, reference, skills[name])
            except SkillError as error:
                found[name] = error
    return found


def _draft_update(
    run: InstallRun, draft: InstallDraft, name: str, skill: LockedSkill, one: "FetchedSkill | None"
) -> None:
    if one is None:
        draft.unchanged.append((name, skill.tree, run.shown_folder(name)))
        return
    review = reviewed(run, one)
    draft.reviews[name] = review
    draft.put(name, review.locked(skill.hosts), one.contents)
    draft_difference(run, draft, name, skill, one.contents)


def _restore(run: InstallRun, skills: Mapping[str, LockedSkill]) -> int:
    """Bring the locked bytes of skills back that were changed on the disk; the store comes first."""
    from skillshelf.install.difference import difference_of
    from skillshelf.install.verify import disk_contents

    draft, needed = InstallDraft("restore"), {}
    for name, skill in skills.items():
        if run.found(name, skill).state == "ok":
            draft.unchanged.append((name, skill.tree, run.shown_folder(name)))
        else:
            needed[name] = skill
    run.require_permitted(references_of(run, needed))
    if any(not run.store.is_intact(skill.tree) for skill in needed.values()):
        run.require_vouched(needed)
    draft_locked(run, draft, needed)
    for name, (skill, _) in draft.entries.items():
        try:
            before = disk_contents(run.folder_of(name, skill))
        except SkillError:
            # What lies there has no bytes that could be shown.
            before = {}
        draft.differences[name] = (None, difference_of(before, draft.contents_of(run, name)))
        draft.replaced.add(name)
    return carry_out(run, draft, f"Restore {', '.join(draft.entries)}", None, refused=NEGATIVE)


def _accept(run: InstallRun, skills: Mapping[str, LockedSkill]) -> int:
    """Take what lies on the disk as the new trees of skills, after the same checks as for a new skill."""
    from skillshelf.catalog.source import SourceIdentity
    from skillshelf.catalog.store import listed_files
    from skillshelf.catalog.tree import tree_digest
    from skillshelf.install.sources import FetchedSkill
    from skillshelf.install.verify import disk_contents

    draft = InstallDraft("accept")
    for name, skill in skills.items():
        found = run.found(name, skill)
        if found.ok:
            draft.unchanged.append((name, skill.tree, run.shown_folder(name)))
            continue
        if found.state == "missing":
            draft.refused.append(
                (name, f"it is not on the disk (to bring it back: skillshelf update {name} --restore)")
            )
            continue
        contents = disk_contents(run.folder_of(name, skill))
        # The version of the source is another one from now on, so the lock names none.
        identity = SourceIdentity(skill.source, skill.path, skill.ref, None, None, "you, from the disk")
        tree = tree_digest(listed_files(contents))
        review = reviewed(run, FetchedSkill(name, identity, contents, tree, ()))
        draft.reviews[name] = review
        draft.put(name, review.locked(skill.hosts), contents)
        draft.replaced.add(name)
        draft_difference(run, draft, name, skill, contents)
    consent = consent_to(run, draft.reviews)
    return carry_out(run, draft, f"Accept {', '.join(draft.entries)} as it is", consent, refused=NEGATIVE)


def remove(values: Values) -> int:
    """Remove installed skills; what was edited is kept unless that is forced."""
    from skillshelf.install.transaction import SkillChange, commit

    run = InstallRun("remove", values)
    skills = run.named(values["name"])
    actions, refused = [], []
    for name, skill in skills.items():
        require_permitted(run, name, None)
        found = run.found(name, skill)
        if is_edited(found) and not values["force"]:
            refused.append((name, f"{edit_refusal(found)}; to remove it anyway: {run.again(force=True)}"))
        else:
            actions.append(InstallAction("remove", name, skill.tree, skill.source, run.shown_folder(name)))
    plan = InstallPlan(tuple(actions), (), tuple(refused))
    show_plan(run, plan)
    status = DENIED if refused else DONE
    if actions and not run.dry_run:
        if not run.may_write(f"Remove {', '.join(one.name for one in actions)}"):
            return print_plan(run, plan, DENIED)
        names = [one.name for one in actions]
        changes = [SkillChange(name, None) for name in names]
        result = commit(run.scope, run.environment, changes, label=f"remove {' '.join(names)}", force=names)
        show_done(run, plan)
        status = max(status, say_result(run, result))
        plan = with_refused_hosts(plan, result)
    return print_plan(run, plan, status)


def rollback(values: Values) -> int:
    """Bring back what was installed before the last change, or after an earlier one."""
    from skillshelf.install.transaction import generations
    from skillshelf.install.transaction import rollback as roll_back

    run = InstallRun("rollback", values)
    known = {one.number: one for one in generations(run.scope)}
    number = _wanted_generation(run, known)
    then = known[number].skills
    actions = [
        InstallAction("rollback", name, then[name].tree if name in then else None, _origin(run, then, name), path)
        for name in sorted({*then, *run.locked})
        if (path := run.shown_folder(name)) and then.get(name) != run.locked.get(name)
    ]
    plan = InstallPlan(tuple(actions), tuple((n, then[n].tree, run.shown_folder(n)) for n in then if n in run.locked))
    plan = plan._replace(unchanged=tuple(row for row in plan.unchanged if row[0] not in {a.name for a in actions}))
    _require_permitted_again(run, then)
    if not values["json"]:
        write(f"generation {number}, after `{visible(known[number].label)}`\n")
    show_plan(run, plan)
    if not run.dry_run:
        if not run.may_write(f"Go back to generation {number}"):
            return print_plan(run, plan, DENIED)
        force = {one.name for one in actions} if values["force"] else set()
        result = roll_back(run.scope, run.environment, number, force=force)
        show_done(run, plan)
        return print_plan(run, with_refused_hosts(plan, result), say_result(run, result))
    return print_plan(run, plan, DONE)


def _origin(run: InstallRun, then: Mapping[str, LockedSkill], name: str) -> str:
    return then[name].source if name in then else run.locked[name].source


def _require_permitted_again(run: InstallRun, then: Mapping[str, LockedSkill]) -> None:
    """Raise PermissionDenied for earlier skills that the system policy forbids now, or for a way back to none."""
    run.require_permitted(references_of(run, then))
    for name, skill in then.items():
        require_permitted(run, name, skill.tree)
    for name in run.locked:
        if name not in then:
            require_permitted(run, name, None)


def _wanted_generation(run: InstallRun, known: "Mapping[int, Generation]") -> int:
    """Return the generation to go back to; raise a SkillError with those that there are."""
    from skillshelf.install.generation import current_generation

    if not known:
        raise ConfigurationError("nothing was installed here yet, so there is nothing to go back to")
    given = run.values["n"]
    shown = ", ".join(map(str, sorted(known)))
    if given is not None:
        if not (given.isascii() and given.isdecimal()):
            raise ConfigurationError(f"{visible(given)!r} is not the number of a generation (there are: {shown})")
        if len(given) > 9 or int(given) not in known:
            raise SourceNotFound(f"there is no generation {given} here (there are: {shown})")
        return int(given)
    current = current_generation(run.scope.history)
    earlier = [number for number in sorted(known) if current is not None and number < current]
    if not earlier:
        raise ConfigurationError(
            f"there is no earlier generation to go back to (there are: {shown}; this is {current})"
        )
    # A restore is a change that leaves the lock as it was; going back to it would bring nothing back.
    others = [number for number in earlier if known[number].skills != run.locked]
    return (others or earlier)[-1]


def gc(values: Values) -> int:
    """Remove the trees from the store that no generation and no known lock names."""
    from skillshelf.install.garbage import collect_garbage

    run = InstallRun("gc", values)
    found = collect_garbage(run.environment, dry_run=True)
    plan = InstallPlan(tuple(_collected(run, line) for line in found))
    show_plan(run, plan)
    if not values["json"]:
        write("" if found else "nothing to remove: generations and locks name everything in the store\n")
    if found and not run.dry_run:
        if not run.may_write(f"Remove {plural(len(found), 'thing')} that nothing needs"):
            return print_plan(run, plan, DENIED)
        with slow_work("Removing"):
            gone = collect_garbage(run.environment, dry_run=False)
        plan = InstallPlan(tuple(_collected(run, line) for line in gone))
        show_done(run, plan)
    return print_plan(run, plan, DONE)


def _collected(run: InstallRun, line: str) -> InstallAction:
    """Return the action for one line about garbage: a tree of the store, or a path, and why nothing needs it."""
    what, _, reason = line.rpartition(": ")
    is_tree = what.startswith("sha256:")
    return InstallAction("collect", "", what if is_tree else None, reason, run.store.path_of(what) if is_tree else what)
