"""Run the commands that change what is installed: add, install, update, remove, rollback, gc, import."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from skillshelf.catalog.lock import LockedSkill
from skillshelf.cli.commands import Values
from skillshelf.cli.install_run import InstallRun
from skillshelf.cli.install_view import (
    ActionKind,
    InstallAction,
    InstallPlan,
    difference_json,
    difference_view,
    plan_json,
    plan_view,
    review_json,
    review_view,
    slow_work,
)
from skillshelf.core import files
from skillshelf.core.console import as_json, can_ask, note, write
from skillshelf.core.text import folded_name, plural, visible
from skillshelf.errors import (
    DENIED,
    DONE,
    NEGATIVE,
    ConfigurationError,
    PermissionDenied,
    SkillChanged,
    SkillError,
)
from skillshelf.install.wishes import Wish

if TYPE_CHECKING:
    from skillshelf.catalog.source import SourceEntry
    from skillshelf.install.difference import TreeDifference
    from skillshelf.install.foreign import ForeignSkill
    from skillshelf.install.reference import SourceReference
    from skillshelf.install.review import SkillReview
    from skillshelf.install.sources import FetchedSkill
    from skillshelf.install.transaction import CommitResult, Generation
    from skillshelf.install.verify import SkillFound
    from skillshelf.lint.consent import Consent

__all__ = ["add", "gc", "import_lock", "install", "remove", "rollback", "update"]


# What a command decides and does ------------------------------------------------------------------


class _Draft:
    """What a command is about to do: the plan, the bytes and entries behind it, and what is shown about them."""

    def __init__(self, kind: ActionKind) -> None:
        self.kind = kind
        self.entries: dict[str, tuple[LockedSkill, Wish | None]] = {}
        self.contents: dict[str, Mapping[str, bytes]] = {}
        self.replaced: set[str] = set()
        self.reviews: dict[str, SkillReview] = {}
        self.differences: dict[str, tuple[str | None, TreeDifference]] = {}
        self.unchanged: list[tuple[str, str, str]] = []
        self.refused: list[tuple[str, str]] = []

    def put(self, name: str, skill: LockedSkill, contents: Mapping[str, bytes], wish: Wish | None = None) -> None:
        """Add a skill with the bytes that its entry of the lock names; without a wish, the wishes stay as they are."""
        self.entries[name] = (skill, wish)
        self.contents[name] = contents

    def plan(self, run: InstallRun) -> InstallPlan:
        """Return the plan that people and programs see."""
        actions = (
            InstallAction(self.kind, name, skill.tree, skill.source, run.shown_folder(name))
            for name, (skill, _) in self.entries.items()
        )
        return InstallPlan(tuple(actions), tuple(self.unchanged), tuple(self.refused))


def _carried_out(run: InstallRun, draft: _Draft, question: str, consent: "Consent | None", *, refused: int) -> int:
    """Show a draft, ask, and carry it out whole or not at all; `refused` is the status if a part was refused."""
    _show(run, draft)
    status = refused if draft.refused else DONE
    if not draft.entries:
        _finish(run, draft, consent, planned=run.dry_run)
        return status
    if run.dry_run:
        if consent is not None:
            from skillshelf.cli.consent_view import show_findings

            show_findings(consent, run.environment.cwd)
        _finish(run, draft, consent, planned=True)
        return status
    if not run.may_write(question, consent):
        _finish(run, draft, consent, planned=True, quiet=True)
        return DENIED
    result = _commit(run, draft)
    _finish(run, draft, consent, planned=False)
    return max(status, _say_result(run, result))


def _show(run: InstallRun, draft: _Draft) -> None:
    if run.values["json"]:
        return
    for name, review in draft.reviews.items():
        if name not in draft.differences:
            write(review_view(review, run.shown_folder(name), _seen_by(run, draft.entries[name][0].hosts), run.display))
    for name, (_, difference) in draft.differences.items():
        write(difference_view(name, difference, run.environment.env))


def _finish(run: InstallRun, draft: _Draft, consent: "Consent | None", *, planned: bool, quiet: bool = False) -> None:
    """Print the plan: as JSON, or in lines unless it was shown before the question."""
    plan = draft.plan(run)
    if not run.values["json"]:
        is_shown = quiet and (draft.reviews or draft.differences)
        write("" if is_shown else plan_view(plan, run.display, run.environment.env, planned=planned))
        return
    more = {
        "findings": consent.rows() if consent is not None else [],
        "reviews": [review_json(review, run.shown_folder(name)) for name, review in draft.reviews.items()],
        "differences": [
            difference_json(name, (before, draft.entries[name][0].tree), difference)
            for name, (before, difference) in draft.differences.items()
        ],
    }
    write(as_json(plan_json(plan, **more)))


def _commit(run: InstallRun, draft: _Draft) -> "CommitResult":
    """Store the bytes that were shown, make them the installed ones by one commit, and remember what was approved."""
    from skillshelf.install.transaction import SkillChange, commit

    with slow_work("Storing"):
        for name, contents in draft.contents.items():
            # Exactly what was shown: nothing is fetched again.
            if (tree := run.store.put(contents)) != draft.entries[name][0].tree:
                raise SkillChanged(name, (tree,))
        changes = [SkillChange(name, skill, wish) for name, (skill, wish) in draft.entries.items()]
        label = f"{draft.kind} {' '.join(draft.entries)}"
        result = commit(run.scope, run.environment, changes, label=label, force=draft.replaced)
    for name, review in draft.reviews.items():
        _approve(run, name, review.tree, draft.entries[name][0].source)
    return result


def _approve(run: InstallRun, name: str, tree: str, origin: str) -> None:
    from skillshelf.config.approvals import add_approval

    for tool in ("skill_load", "skill_read"):
        add_approval(run.environment, tool, name, None, tree, origin=origin)


def _say_result(run: InstallRun, result: "CommitResult") -> int:
    """Say what else happened; return the status of it: a host that could not be served is a negative answer."""
    for line in result.notes:
        note(line)
    for one in result.refused:
        note(f"{one.skill}{f', {one.host}' if one.host else ''}: {one.reason}")
    if run.command != "rollback" and not run.values["json"]:
        note(f"to undo: skillshelf rollback{' --user' if run.values['user'] else ''}")
    return NEGATIVE if result.refused else DONE


def _seen_by(run: InstallRun, hosts: Iterable[str]) -> str:
    """Return which of the user's hosts will see a skill, and how to reach others."""
    from skillshelf.hosts.detection import chosen_by, chosen_hosts
    from skillshelf.install.review import hosts_reading

    own, named, kind = chosen_hosts(run.environment, run.settings), [*hosts], run.scope.kind
    reading = hosts_reading(".agents/skills", kind, own) if kind == "project" or not named else []
    others = [host for host in reading if host not in named]
    if chosen_by(run.environment, run.settings) == "all" and others:
        return ", ".join([*named, f"every agent that reads .agents/skills ({len(others)} known)"])
    unseen = [host for host in own if host not in (*named, *reading)]
    hint = f"; not by {', '.join(unseen)} (to change that: --host {unseen[0]})" if unseen else ""
    return (", ".join([*named, *others]) or "no host") + hint


def _consent(run: InstallRun, reviews: Mapping[str, "SkillReview"]) -> "Consent":
    from skillshelf.lint.consent import accepted_rules, consent_needed

    accepted = accepted_rules(run.values["accept_rule"])
    found = {f"{run.shown_folder(name)}/SKILL.md": review.security for name, review in reviews.items()}
    return consent_needed(found, accepted)


def _review(run: InstallRun, one: "FetchedSkill", *, claims: Sequence[str] = ()) -> "SkillReview":
    from skillshelf.install.review import require_permitted_tree, review_skill

    require_permitted_tree(run.policy, one.name, one.tree)
    return review_skill(one.name, one.identity, one.contents, notes=one.notes, claims=claims)


def _named_hosts(run: InstallRun) -> tuple[str, ...]:
    """Return the hosts that `--host` names; raise for one that is unknown or not allowed."""
    names = [name.strip() for given in run.values["host"] for name in given.split(",") if name.strip()]
    if not names:
        return ()
    from skillshelf.config.system_policy import require_host
    from skillshelf.hosts.explain import requested_hosts

    hosts = requested_hosts(names)
    require_host(run.policy, hosts)
    return tuple(sorted(hosts))


def _is_edited(found: "SkillFound") -> bool:
    """Return whether a folder holds bytes of somebody's own, which a restore would destroy."""
    if found.state != "changed":
        return False
    return not found.files or any(file.state != "missing" for file in found.files)


def _edited(found: "SkillFound") -> str:
    """Return why an edited skill is left alone, and how to settle it."""
    name = found.name
    which = ", ".join(f"{file.path} ({file.state})" for file in found.files[:3])
    more = f" and {len(found.files) - 3} more" if len(found.files) > 3 else ""
    cause = f"; {found.cause}" if found.cause else ""
    return (
        f"its files are not those of the lock: {which or 'unknown files'}{more}{cause} "
        f"(to see it: skillshelf diff {name}; to settle it: skillshelf update {name} --restore, or --accept)"
    )


# Add ----------------------------------------------------------------------------------------------


def add(values: Values) -> int:
    """Install skills of a source that the user names, after showing what they are."""
    from skillshelf.install.sources import scoped_reference

    run = InstallRun("add", values)
    hosts = _named_hosts(run)
    reference = scoped_reference(values["source"], run.environment, run.scope, path=values["path"], ref=values["ref"])
    run.require_permitted([reference])
    draft = _Draft("add")
    for one in _fetch_chosen(run, reference):
        _draft_added(run, draft, one, reference, hosts)
    consent = _consent(run, draft.reviews)
    names = ", ".join(visible(name) for name in draft.entries)
    status = _carried_out(run, draft, f"Install {names}", consent, refused=DENIED)
    if draft.entries and status == DONE and not run.dry_run and not values["json"]:
        name, scope = next(iter(draft.entries)), " --user" if values["user"] else ""
        note(f"to read it: skillshelf show {name}; to check it later: skillshelf verify{scope}")
    return status


def _fetch_chosen(run: InstallRun, reference: "SourceReference") -> "list[FetchedSkill]":
    """Fetch the skills of a source that are named, or its only one, or those that a person picks."""
    from skillshelf.install.sources import SourceSkill, fetch_skill, listed_entries, named_entries, open_source

    with slow_work(f"Reading {reference.canonical}") as progress:
        context = run.context(progress)
        source = open_source(reference, context)
        entries = listed_entries(source, reference)
    names = [name.strip() for given in run.values["skill"] for name in given.split(",") if name.strip()]
    if names and names != ["*"]:
        entries = named_entries(entries, names, reference.canonical)
    elif len(entries) > 1 and not names:
        entries = _picked(run, entries, reference)
    with slow_work(f"Fetching {plural(len(entries), 'skill')}") as progress:
        context = run.context(progress)
        return [fetch_skill(SourceSkill(source, entry), context) for entry in entries]


def _picked(run: InstallRun, entries: "Sequence[SourceEntry]", reference: "SourceReference") -> "list[SourceEntry]":
    """Ask which of several skills are meant; raise ConfigurationError with their names where nobody can be asked."""
    names = [visible(entry.name) for entry in entries]
    if run.values["json"] or not can_ask():
        raise ConfigurationError(
            f"{visible(reference.canonical)} has {len(names)} skills: {', '.join(names)}; "
            f"name those you want: {run.again(skill=['NAME,...'])}"
        )
    for number, entry in enumerate(entries, 1):
        sys.stderr.write(f"{number:>4}  {visible(entry.name)}  {visible(entry.description)[:80]}\n")
    sys.stderr.write("Which of them? Numbers or names, separated by commas: ")
    sys.stderr.flush()
    words = [word.strip() for word in sys.stdin.readline().split(",") if word.strip()]
    chosen = {entry.name for n, entry in enumerate(entries, 1) if str(n) in words or entry.name in words}
    if not chosen:
        raise PermissionDenied("nothing was written: no skill was chosen")
    return [entry for entry in entries if entry.name in chosen]


def _draft_added(
    run: InstallRun,
    draft: _Draft,
    one: "FetchedSkill",
    reference: "SourceReference",
    hosts: tuple[str, ...] = (),
    *,
    claims: Sequence[str] = (),
) -> None:
    """Add one fetched skill to a draft; one that is installed from the same tree is unchanged."""
    name, known = one.name, run.locked.get(one.name)
    if known is not None:
        found = run.found(name, known)
        same = (known.tree, known.source, tuple(sorted(known.hosts))) == (one.tree, one.identity.source, hosts)
        if same and found.ok:
            draft.unchanged.append((name, one.tree, run.shown_folder(name)))
            return
        if _is_edited(found):
            draft.refused.append((name, _edited(found)))
            return
    elif run.scope.skills_folder is not None and files.kind_at(run.shown_folder(name)) is not None:
        _require_same_folder(run, one)
    review = _review(run, one, claims=[*claims, *_claims(run, one)])
    wish = Wish(one.identity.source, one.identity.path, reference.ref, name, hosts)
    draft.reviews[name] = review
    draft.put(name, review.locked(hosts), one.contents, wish)
    if known is not None and known.tree != one.tree:
        _draft_difference(run, draft, name, known, one.contents)


def _require_same_folder(run: InstallRun, one: "FetchedSkill") -> None:
    """Raise PermissionDenied if a folder that nobody installed is in the way, unless it holds the same bytes."""
    from skillshelf.catalog.tree import skill_tree

    path = run.shown_folder(one.name)
    is_same = files.kind_at(path) == "folder" and skill_tree(path, without_git=False).digest == one.tree
    if not is_same:
        raise PermissionDenied(
            f"{run.display.short(path)} exists and was not installed by skillshelf; move it away, then: {run.again()}"
        )


def _claims(run: InstallRun, one: "FetchedSkill") -> list[str]:
    from skillshelf.cli.commands import shelf_for
    from skillshelf.install.review import claims_of

    folder = run.shown_folder(one.name).rpartition("/")[0]
    catalog = shelf_for(run.values).catalog
    return list(claims_of(one.name, one.identity.source, folder, run.locked, catalog))


def _draft_difference(
    run: InstallRun, draft: _Draft, name: str, before: LockedSkill, after: Mapping[str, bytes]
) -> None:
    """Add to a draft how the installed skill becomes the new one."""
    from skillshelf.install.difference import difference_of

    draft.differences[name] = (before.tree, difference_of(_installed(run, name, before), after))


def _installed(run: InstallRun, name: str, skill: LockedSkill) -> Mapping[str, bytes]:
    """Return the locked bytes of a skill; if the store lost them, those on the disk, or nothing."""
    from skillshelf.install.verify import disk_contents

    try:
        return run.store.read(skill.tree)
    except SkillChanged:
        note(f"{name}: the store does not have the installed version; the difference is to what lies on the disk")
    try:
        return disk_contents(run.folder_of(name, skill))
    except SkillError:
        return {}


# Install ------------------------------------------------------------------------------------------


def install(values: Values) -> int:
    """Make the disk what the lock says; without `--frozen` also install wishes that no lock has."""
    run = InstallRun("install", values)
    new = _wishes_to_resolve(run)
    if new and values["frozen"]:
        return _not_locked(run, new)
    if not run.locked and not new:
        where = run.display.short(run.scope.lock_path)
        note(f"nothing to install: {where} has no skill (to add one: skillshelf add SOURCE)")
    draft = _Draft("install")
    needed = _needed(run, draft)
    if draft.refused:
        # Somebody's own bytes lie there; a part of a lock is never installed.
        return _carried_out(run, draft, "", None, refused=NEGATIVE)
    if not needed and not new:
        return _carried_out(run, draft, "", None, refused=NEGATIVE)
    run.require_permitted(_references(run, {**needed, **new}))
    run.require_vouched({**needed, **new})
    _draft_locked(run, draft, needed)
    if draft.refused:
        draft.entries.clear()
        return _carried_out(run, draft, "", None, refused=NEGATIVE)
    for name, wish in new.items():
        _draft_wish(run, draft, name, wish)
    consent = _consent(run, draft.reviews)
    if not run.is_vouched(needed):
        consent = _consent(run, {**draft.reviews, **_reviews_of_locked(run, draft, needed)})
    return _carried_out(run, draft, f"Install {plural(len(draft.entries), 'skill')}", consent, refused=NEGATIVE)


def _wishes_to_resolve(run: InstallRun) -> dict[str, Wish]:
    """Return the wishes that the lock does not answer, by name; one without a name by its source."""
    from skillshelf.install.sources import scoped_reference

    found = {}
    for wish in run.wishes:
        reference = scoped_reference(
            wish.source, run.environment, run.scope, path=wish.path, ref=wish.ref, base=run.scope.root
        )
        answers = [
            name
            for name, skill in run.locked.items()
            if skill.source == reference.canonical
            and (not reference.path or skill.path == reference.path)
            and skill.ref == reference.ref
            and wish.name in (None, name)
        ]
        if not answers:
            found[wish.name or wish.source] = wish
    return found


def _not_locked(run: InstallRun, new: Mapping[str, Wish]) -> int:
    """Say that the lock does not have all wishes; a frozen install resolves nothing."""
    reason = f"it is in {run.display.short(run.scope.wishes_path)} and not in the lock (to lock it: skillshelf install)"
    plan = InstallPlan(refused=tuple((name, reason) for name in new))
    if run.values["json"]:
        write(as_json(plan_json(plan, findings=[], reviews=[], differences=[])))
    for name, why in plan.refused:
        note(f"{name}: {why}")
    return NEGATIVE


def _references(run: InstallRun, skills: Mapping[str, Wish | LockedSkill]) -> "list[SourceReference]":
    from skillshelf.install.sources import scoped_reference

    return [
        scoped_reference(one.source, run.environment, run.scope, path=one.path, ref=one.ref, base=run.scope.root)
        for one in skills.values()
    ]


def _needed(run: InstallRun, draft: _Draft) -> dict[str, LockedSkill]:
    """Return the locked skills that are not on the disk; all others go to the draft, as unchanged or refused."""
    needed = {}
    for name, skill in run.locked.items():
        found = run.found(name, skill)
        if found.ok:
            draft.unchanged.append((name, skill.tree, run.shown_folder(name)))
        elif _is_edited(found):
            draft.refused.append((name, _edited(found)))
        else:
            # Nothing of anybody's own is lost where only files are missing.
            draft.replaced.add(name)
            needed[name] = skill
    return needed


def _draft_locked(run: InstallRun, draft: _Draft, needed: Mapping[str, LockedSkill]) -> None:
    """Add the exact bytes of locked skills: those of the store, else those that the source still has."""
    from skillshelf.install.review import require_permitted_tree

    missing = {}
    for name, skill in needed.items():
        require_permitted_tree(run.policy, name, skill.tree)
        try:
            draft.put(name, skill, run.store.read(skill.tree))
        except SkillChanged:
            missing[name] = skill
    for name, one in _fetch_locked(run, missing).items():
        skill = missing[name]
        if one.tree == skill.tree:
            draft.put(name, skill, one.contents)
        else:
            draft.refused.append((name, _other_bytes(one, skill)))


def _other_bytes(one: "FetchedSkill", skill: LockedSkill) -> str:
    size = sum(map(len, one.contents.values()))
    which = ", ".join(sorted(one.contents)[:3]) + (", ..." if len(one.contents) > 3 else "")
    return (
        f"the source has other bytes than the lock: {one.tree}, {len(one.contents)} files ({which}), {size} bytes; "
        f"locked is {skill.tree}, {skill.files} files, {skill.bytes} bytes "
        f"(to see and take the new ones: skillshelf update {one.name})"
    )


def _fetch_locked(run: InstallRun, skills: Mapping[str, LockedSkill]) -> "dict[str, FetchedSkill]":
    """Fetch the versions that a lock names."""
    from skillshelf.install.sources import locked_reference, pinned_reference

    if not skills:
        return {}
    references = {
        name: pinned_reference(skill, locked_reference(skill, run.environment, run.scope))
        for name, skill in skills.items()
    }
    with run.sources([*references.values()], f"Fetching {plural(len(skills), 'skill')}") as reader:
        return {name: reader.fetch(name, reference) for name, reference in references.items()}


def _draft_wish(run: InstallRun, draft: _Draft, name: str, wish: Wish) -> None:
    """Resolve a wish that the lock does not answer, as `add` would."""
    from skillshelf.install.sources import SourceReader, scoped_reference

    reference = scoped_reference(
        wish.source, run.environment, run.scope, path=wish.path, ref=wish.ref, base=run.scope.root
    )
    with slow_work(f"Reading {reference.canonical}") as progress:
        reader = SourceReader(run.context(progress))
        names = reader.names(reference) if wish.name is None else [wish.name]
        if len(names) > 1:
            where = f"{run.scope.wishes_path}: {visible(wish.source)}"
            raise ConfigurationError(f"{where} has {len(names)} skills: {', '.join(names)}; name one in the table")
        one = reader.fetch(names[0], reference)
    review = _review(run, one, claims=_claims(run, one))
    draft.reviews[one.name] = review
    known = run.locked.get(one.name)
    if known is None and run.scope.skills_folder is not None and files.kind_at(run.shown_folder(one.name)) is not None:
        _require_same_folder(run, one)
    draft.put(one.name, review.locked(wish.hosts), one.contents, wish._replace(name=one.name))
    draft.unchanged = [row for row in draft.unchanged if row[0] != one.name]
    if known is not None and known.tree != one.tree:
        _draft_difference(run, draft, one.name, known, one.contents)


def _reviews_of_locked(run: InstallRun, draft: _Draft, needed: Mapping[str, LockedSkill]) -> "dict[str, SkillReview]":
    """Return reviews of locked skills of a stranger's project, whose bytes nobody on this machine has approved."""
    from skillshelf.catalog.source import SourceIdentity
    from skillshelf.install.review import review_skill

    made = {}
    for name, skill in needed.items():
        identity = SourceIdentity(skill.source, skill.path, skill.ref, skill.commit, skill.artifact, "")
        made[name] = review_skill(name, identity, draft.contents[name])
    return made


# Update -------------------------------------------------------------------------------------------


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
    draft = _Draft("update")
    clean, edits = {}, {}
    for name, skill in skills.items():
        found = run.found(name, skill)
        if _is_edited(found) and not run.values["force"]:
            draft.refused.append((name, _edited(found)))
            continue
        clean[name] = skill
        edits.update({name: found} if _is_edited(found) else {})
    run.require_permitted(_references(run, clean))
    if clean:
        run.require_vouched(clean)
    for name, one in _newer(run, clean).items():
        _draft_update(run, draft, name, clean[name], one)
    for name, found in edits.items():
        if name in draft.entries:
            draft.replaced.add(name)
            note(
                f"{name}: your own changes are lost: {', '.join(file.path for file in found.files[:5]) or 'all files'}"
            )
    consent = _consent(run, draft.reviews)
    question = f"Update {', '.join(visible(name) for name in draft.entries)}"
    return _carried_out(run, draft, question, consent, refused=DENIED)


def _newer(run: InstallRun, skills: Mapping[str, LockedSkill]) -> "dict[str, FetchedSkill | None]":
    """Return what the sources of these skills have now; None for a skill that is the same."""
    from skillshelf.install.sources import locked_reference

    references = {name: locked_reference(skill, run.environment, run.scope) for name, skill in skills.items()}
    found: dict[str, FetchedSkill | None] = {}
    with run.sources([*references.values()], f"Asking the sources of {plural(len(skills), 'skill')}") as reader:
        for name, reference in references.items():
            found[name] = reader.newer(name, reference, skills[name])
    return found


def _draft_update(run: InstallRun, draft: _Draft, name: str, skill: LockedSkill, one: "FetchedSkill | None") -> None:
    if one is None:
        draft.unchanged.append((name, skill.tree, run.shown_folder(name)))
        return
    review = _review(run, one)
    draft.reviews[name] = review
    draft.put(name, review.locked(skill.hosts), one.contents)
    _draft_difference(run, draft, name, skill, one.contents)


def _restore(run: InstallRun, skills: Mapping[str, LockedSkill]) -> int:
    """Bring the locked bytes of skills back that were changed on the disk; the store comes first."""
    from skillshelf.install.difference import difference_of
    from skillshelf.install.verify import disk_contents

    draft, needed = _Draft("restore"), {}
    for name, skill in skills.items():
        if run.found(name, skill).state == "ok":
            draft.unchanged.append((name, skill.tree, run.shown_folder(name)))
        else:
            needed[name] = skill
    run.require_permitted(_references(run, needed))
    if any(not run.store.has(skill.tree) for skill in needed.values()):
        run.require_vouched(needed)
    _draft_locked(run, draft, needed)
    for name, (skill, _) in draft.entries.items():
        try:
            before = disk_contents(run.folder_of(name, skill))
        except SkillError:
            # What lies there has no bytes that could be shown.
            before = {}
        draft.differences[name] = (None, difference_of(before, draft.contents[name]))
        draft.replaced.add(name)
    return _carried_out(run, draft, f"Restore {', '.join(draft.entries)}", None, refused=NEGATIVE)


def _accept(run: InstallRun, skills: Mapping[str, LockedSkill]) -> int:
    """Take what lies on the disk as the new trees of skills, after the same checks as for a new skill."""
    from skillshelf.catalog.source import SourceIdentity
    from skillshelf.catalog.store import listed_files
    from skillshelf.catalog.tree import tree_digest
    from skillshelf.install.sources import FetchedSkill
    from skillshelf.install.verify import disk_contents

    draft = _Draft("accept")
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
        review = _review(run, FetchedSkill(name, identity, contents, tree, ()))
        draft.reviews[name] = review
        draft.put(name, review.locked(skill.hosts), contents)
        draft.replaced.add(name)
        _draft_difference(run, draft, name, skill, contents)
    consent = _consent(run, draft.reviews)
    return _carried_out(run, draft, f"Accept {', '.join(draft.entries)} as it is", consent, refused=NEGATIVE)


# Remove, rollback, gc -----------------------------------------------------------------------------


def remove(values: Values) -> int:
    """Remove installed skills; what was edited is kept unless that is forced."""
    from skillshelf.install.transaction import SkillChange, commit

    run = InstallRun("remove", values)
    skills = run.named(values["name"])
    actions, refused = [], []
    for name, skill in skills.items():
        _require_optional(run, name, skill)
        found = run.found(name, skill)
        if _is_edited(found) and not values["force"]:
            refused.append((name, f"{_edited(found)}; to remove it anyway: {run.again(force=True)}"))
        else:
            actions.append(InstallAction("remove", name, skill.tree, skill.source, run.shown_folder(name)))
    plan = InstallPlan(tuple(actions), (), tuple(refused))
    _show_plan(run, plan)
    status = DENIED if refused else DONE
    if actions and not run.dry_run:
        if not run.may_write(f"Remove {', '.join(one.name for one in actions)}"):
            return _printed(run, plan, DENIED)
        names = [one.name for one in actions]
        changes = [SkillChange(name, None) for name in names]
        result = commit(run.scope, run.environment, changes, label=f"remove {' '.join(names)}", force=names)
        _show_done(run, plan)
        status = max(status, _say_result(run, result))
    return _printed(run, plan, status)


def _show_plan(run: InstallRun, plan: InstallPlan) -> None:
    """Show what would be done, unless it is done at once and said then."""
    if not run.values["json"] and (run.dry_run or not run.values["yes"] or not plan.actions):
        write(plan_view(plan, run.display, run.environment.env, planned=True))


def _show_done(run: InstallRun, plan: InstallPlan) -> None:
    if not run.values["json"]:
        write(plan_view(plan, run.display, run.environment.env, planned=False))


def _printed(run: InstallRun, plan: InstallPlan, status: int) -> int:
    if run.values["json"]:
        write(as_json(plan_json(plan, findings=[], reviews=[], differences=[])))
    return status


def _require_optional(run: InstallRun, name: str, skill: LockedSkill) -> None:
    """Raise PermissionDenied for a skill that the system policy requires."""
    for one in run.policy.required:
        if one.entry == skill.tree or ("/" not in one.entry and folded_name(one.entry) == folded_name(name)):
            raise PermissionDenied(f"{name} cannot be removed: the system policy requires it ({one.by})")


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
    for name, skill in then.items():
        _require_permitted_again(run, name, skill)
    if not values["json"]:
        write(f"generation {number}, after `{visible(known[number].label)}`, {known[number].at}\n")
    _show_plan(run, plan)
    if not run.dry_run:
        if not run.may_write(f"Go back to generation {number}"):
            return _printed(run, plan, DENIED)
        force = {one.name for one in actions} if values["force"] else set()
        result = roll_back(run.scope, run.environment, number, force=force)
        _show_done(run, plan)
        return _printed(run, plan, _say_result(run, result))
    return _printed(run, plan, DONE)


def _origin(run: InstallRun, then: Mapping[str, LockedSkill], name: str) -> str:
    return then[name].source if name in then else run.locked[name].source


def _require_permitted_again(run: InstallRun, name: str, skill: LockedSkill) -> None:
    """Raise PermissionDenied for an earlier skill that the system policy forbids now."""
    from skillshelf.config.system_policy import require_source
    from skillshelf.install.review import require_permitted_tree

    require_source(run.policy, skill.source)
    require_permitted_tree(run.policy, name, skill.tree)


def _wanted_generation(run: InstallRun, known: "Mapping[int, Generation]") -> int:
    """Return the generation to go back to; raise ConfigurationError with those that there are."""
    from skillshelf.install.generation import current_generation

    given = run.values["n"]
    shown = ", ".join(map(str, sorted(known))) or "none"
    if given is not None:
        if given.isascii() and given.isdecimal() and int(given) in known:
            return int(given)
        raise ConfigurationError(f"there is no generation {visible(given)} here (there are: {shown})")
    current = current_generation(run.scope.history)
    earlier = [number for number in sorted(known) if current is not None and number < current]
    if not earlier:
        raise ConfigurationError(f"there is nothing to go back to (generations: {shown}; now: {current})")
    # A restore is a change that leaves the lock as it was; going back to it would bring nothing back.
    others = [number for number in earlier if known[number].skills != run.locked]
    return (others or earlier)[-1]


def gc(values: Values) -> int:
    """Remove the trees from the store that no generation and no known lock names."""
    from skillshelf.install.garbage import collect_garbage

    run = InstallRun("gc", values)
    found = collect_garbage(run.environment, dry_run=True)
    plan = InstallPlan(tuple(_collected(run, line) for line in found))
    _show_plan(run, plan)
    if not values["json"]:
        write("" if found else "nothing to remove: generations and locks name everything in the store\n")
    if found and not run.dry_run:
        if not run.may_write(f"Remove {plural(len(found), 'thing')} that nothing needs"):
            return _printed(run, plan, DENIED)
        with slow_work("Removing"):
            gone = collect_garbage(run.environment, dry_run=False)
        plan = InstallPlan(tuple(_collected(run, line) for line in gone))
        _show_done(run, plan)
    return _printed(run, plan, DONE)


def _collected(run: InstallRun, line: str) -> InstallAction:
    """Return the action for one line about garbage: a tree of the store, or a path, and why nothing needs it."""
    what, _, reason = line.rpartition(": ")
    is_tree = what.startswith("sha256:")
    return InstallAction("collect", "", what if is_tree else None, reason, run.store.path_of(what) if is_tree else what)


# Import -------------------------------------------------------------------------------------------


def import_lock(values: Values) -> int:
    """Install what the lock or list of another tool names, and say where its hashes are not those of the bytes."""
    from skillshelf.core.environment import expand
    from skillshelf.install.foreign import read_foreign
    from skillshelf.install.sources import scoped_reference

    run = InstallRun("import", values)
    path = expand(files.from_system(values["file"]), run.environment, base=run.environment.cwd)
    draft, wishes, known = _Draft("import"), {}, {}
    for skill in read_foreign(path):
        if skill.source is None:
            draft.refused.append((skill.name, skill.problem or "it names no source"))
            continue
        base = path.rpartition("/")[0] or "/"
        reference = scoped_reference(
            skill.source, run.environment, run.scope, path=skill.path, ref=skill.ref, base=base
        )
        wishes[skill.name] = Wish(reference.canonical, reference.path, reference.ref, skill.name)
        known[skill.name] = (skill, reference)
    run.require_permitted([reference for _, reference in known.values()])
    if wishes and files.is_inside(files.real_path(path), run.scope.root):
        # The list is a part of the project, like its lock.
        run.require_vouched(wishes)
    for skill, reference in known.values():
        _draft_foreign(run, draft, skill, reference)
    consent = _consent(run, draft.reviews)
    return _carried_out(run, draft, f"Install {plural(len(draft.entries), 'skill')}", consent, refused=NEGATIVE)


def _draft_foreign(run: InstallRun, draft: _Draft, skill: "ForeignSkill", reference: "SourceReference") -> None:
    """Fetch one skill of a foreign list; one that cannot be had is refused with the reason, and the others go on."""
    from skillshelf.install.foreign import is_as_recorded
    from skillshelf.install.sources import SourceReader

    try:
        with slow_work(f"Reading {reference.canonical}") as progress:
            one = SourceReader(run.context(progress)).fetch(skill.name, reference)
    except SkillError as error:
        draft.refused.append((skill.name, str(error)))
        return
    claims = []
    if skill.digest is not None and is_as_recorded(skill.digest, one.contents, one.identity.artifact) is False:
        claims.append(f"its bytes are not those of the {skill.digest.kind} that was recorded: {skill.digest.value}")
    for claim in claims:
        note(f"{skill.name}: {claim}")
    _draft_added(run, draft, one, reference, claims=claims)
