"""Decide what a command of installing does, show it, ask, and carry it out whole or not at all."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from skillshelf.catalog.lock import LockedSkill
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
from skillshelf.config.system_policy import require_permitted_change
from skillshelf.core.console import as_json, note, write
from skillshelf.core.text import plural
from skillshelf.errors import (
    DENIED,
    DONE,
    NEGATIVE,
    SkillChanged,
    SkillError,
)
from skillshelf.install.wishes import Wish

if TYPE_CHECKING:
    from skillshelf.hosts.link_plan import LinkRefusal
    from skillshelf.install.difference import TreeDifference
    from skillshelf.install.reference import SourceReference
    from skillshelf.install.review import SkillReview
    from skillshelf.install.sources import FetchedSkill
    from skillshelf.install.transaction import CommitResult
    from skillshelf.install.verify import SkillFound
    from skillshelf.lint.consent import Consent

__all__ = [
    "InstallDraft",
    "carry_out",
    "consent_to",
    "draft_difference",
    "draft_locked",
    "edit_refusal",
    "is_edited",
    "print_plan",
    "references_of",
    "require_permitted",
    "reviewed",
    "say_result",
    "show_done",
    "show_plan",
    "with_refused_hosts",
]


class InstallDraft:
    """The intent of a command: the plan, the bytes and entries behind it, and what is shown about them."""

    def __init__(self, kind: ActionKind) -> None:
        self.kind = kind
        self.entries: dict[str, tuple[LockedSkill, Wish | None]] = {}
        self.contents: dict[str, Mapping[str, bytes]] = {}
        self.replaced: set[str] = set()
        self.reviews: dict[str, SkillReview] = {}
        self.strangers: dict[str, SkillReview] = {}
        """Skills that are shown, and not approved, since only the lock of a stranger's project names them."""
        self.differences: dict[str, tuple[str | None, TreeDifference]] = {}
        self.unchanged: list[tuple[str, str, str]] = []
        self.refused: list[tuple[str, str]] = []

    def put(self, name: str, skill: LockedSkill, contents: Mapping[str, bytes], wish: Wish | None = None) -> None:
        """Add a skill with the bytes that its entry of the lock names; without a wish, the wishes stay as they are."""
        self.entries[name] = (skill, wish)
        self.contents[name] = contents

    def contents_of(self, run: InstallRun, name: str) -> Mapping[str, bytes]:
        """Return the bytes of a skill of the draft; those that are in the store already are read there."""
        return self.contents[name] if name in self.contents else run.store.read(self.entries[name][0].tree)

    def plan(self, run: InstallRun) -> InstallPlan:
        """Return the plan that people and programs see."""
        actions = (
            InstallAction(self.kind, name, skill.tree, skill.source, run.shown_folder(name, skill))
            for name, (skill, _) in self.entries.items()
        )
        return InstallPlan(tuple(actions), tuple(self.unchanged), tuple(self.refused))


def carry_out(run: InstallRun, draft: InstallDraft, question: str, consent: "Consent | None", *, refused: int) -> int:
    """Show a draft, ask, and carry it out whole or not at all; `refused` is the status if a part was refused."""
    if draft.entries:
        run.require_own_place()
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
    _finish(run, draft, consent, planned=False, result=result)
    return max(status, say_result(run, result))


def _show(run: InstallRun, draft: InstallDraft) -> None:
    if run.values["json"]:
        return
    seen_by = lru_cache(partial(_seen_by, run))
    for name, review in {**draft.strangers, **draft.reviews}.items():
        if name not in draft.differences:
            skill = draft.entries[name][0]
            hosts = seen_by(tuple(skill.hosts))
            write(review_view(review, run.shown_folder(name, skill), hosts, run.display))
    for name, (_, difference) in draft.differences.items():
        write(difference_view(name, difference, run.environment.env))


def _finish(
    run: InstallRun,
    draft: InstallDraft,
    consent: "Consent | None",
    *,
    planned: bool,
    quiet: bool = False,
    result: "CommitResult | None" = None,
) -> None:
    """Print the plan: as JSON, or in lines unless it was shown before the question."""
    plan = draft.plan(run)
    if not run.values["json"]:
        is_shown = quiet and (draft.reviews or draft.strangers or draft.differences)
        write("" if is_shown else plan_view(plan, run.display, run.environment.env, planned=planned))
        return
    more = {
        "findings": consent.rows() if consent is not None else [],
        "reviews": [
            review_json(review, run.shown_folder(name, draft.entries[name][0]))
            for name, review in draft.reviews.items()
        ],
        "differences": [
            difference_json(name, (before, draft.entries[name][0].tree), difference)
            for name, (before, difference) in draft.differences.items()
        ],
    }
    write(as_json(plan_json(with_refused_hosts(plan, result), **more)))


def with_refused_hosts(plan: InstallPlan, result: "CommitResult | None") -> InstallPlan:
    """Return a plan with the hosts that could not be served, for programs; people read a line about each."""
    refused = result.refused if result is not None else ()
    return plan._replace(refused=(*plan.refused, *((one.skill, _refusal(one)) for one in refused)))


def _refusal(one: "LinkRefusal") -> str:
    return f"{one.host}: {one.reason}" if one.host else one.reason


def _commit(run: InstallRun, draft: InstallDraft) -> "CommitResult":
    """Store the bytes that were shown, make them the installed ones by one commit, and remember what was approved."""
    from skillshelf.install.transaction import SkillChange, commit, nothing_done, store_in_use

    with slow_work("Storing"), store_in_use(run.environment):
        with nothing_done(run.store.folder):
            for name, contents in draft.contents.items():
                # Exactly what was shown: nothing is fetched again.
                if (tree := run.store.put(contents)) != draft.entries[name][0].tree:
                    raise SkillChanged(name, (tree,))
        # First: a process that is killed in between must not leave a skill that nobody approved.
        _approve(run, draft)
        changes = [SkillChange(name, skill, wish) for name, (skill, wish) in draft.entries.items()]
        label = f"{draft.kind} {' '.join(draft.entries)}"
        return commit(run.scope, run.environment, changes, label=label, force=draft.replaced)


def _approve(run: InstallRun, draft: InstallDraft) -> None:
    """Remember that the user agreed to the trees that were shown, wherever they are installed."""
    from skillshelf.config.approvals import Approval, add_approvals

    approved = [
        Approval(tool, name, None, review.tree, draft.entries[name][0].source, "")
        for name, review in draft.reviews.items()
        for tool in ("skill_load", "skill_read")
    ]
    if approved:
        add_approvals(run.environment, approved)


def say_result(run: InstallRun, result: "CommitResult") -> int:
    """Say what else happened; return the status of it: a host that could not be served is a negative answer."""
    for line in result.notes:
        note(line)
    for one in result.refused:
        note(f"{one.skill}, {_refusal(one)}")
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
    if chosen_by(run.environment, run.settings) == "all":
        # Nothing says which agents the user has, so the others are no news.
        return ", ".join(
            [*named, *([f"every agent that reads .agents/skills ({len(others)} known)"] if others else [])]
        )
    unseen = [host for host in own if host not in (*named, *reading)]
    hint = f"; not by {', '.join(unseen)} (to change that: --host {unseen[0]})" if unseen else ""
    return (", ".join([*named, *others]) or "no host") + hint


def consent_to(run: InstallRun, reviews: Mapping[str, "SkillReview"]) -> "Consent | None":
    """Return what the user has to agree to; None where nothing was reviewed, as locked bytes were agreed to before."""
    if not reviews and not run.values["accept_rule"]:
        return None
    from skillshelf.lint.consent import accepted_rules, consent_needed

    accepted = accepted_rules(run.values["accept_rule"])
    found = {f"{run.shown_folder(name)}/SKILL.md": review.security for name, review in reviews.items()}
    return consent_needed(found, accepted)


def reviewed(run: InstallRun, one: "FetchedSkill", *, claims: Sequence[str] = ()) -> "SkillReview":
    from skillshelf.install.review import review_skill

    require_permitted(run, one.name, one.tree)
    return review_skill(one.name, one.identity, one.contents, notes=one.notes, claims=claims)


def require_permitted(run: InstallRun, name: str, after: str | None) -> None:
    """Raise PermissionDenied if the system policy does not let a skill become this tree, or go."""
    known = run.locked.get(name)
    require_permitted_change(run.policy, name, run.shown_folder(name), known.tree if known else None, after)


def is_edited(found: "SkillFound") -> bool:
    """Return whether a folder holds bytes of somebody's own, which a restore would destroy."""
    if found.state != "changed":
        return False
    return not found.files or any(file.state != "missing" for file in found.files)


def edit_refusal(found: "SkillFound") -> str:
    """Return why an edited skill is left alone, and how to settle it."""
    name = found.name
    which = ", ".join(f"{file.path} ({file.state})" for file in found.files[:3])
    more = f" and {len(found.files) - 3} more" if len(found.files) > 3 else ""
    cause = f"; {found.cause}" if found.cause and which else ""
    what = f"edited on the disk: {which}" if which or not found.cause else f"not as locked: {found.cause}"
    return (
        f"{what}{more}{cause} "
        f"(to see it: skillshelf diff {name}; to settle it: skillshelf update {name} --restore, or --accept)"
    )


def draft_difference(
    run: InstallRun, draft: InstallDraft, name: str, before: LockedSkill, after: Mapping[str, bytes]
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


def references_of(run: InstallRun, skills: Mapping[str, Wish | LockedSkill]) -> "list[SourceReference]":
    from skillshelf.install.sources import locked_reference

    return [locked_reference(one, run.environment, run.scope) for one in skills.values()]


def draft_locked(run: InstallRun, draft: InstallDraft, needed: Mapping[str, LockedSkill]) -> None:
    """Add the exact bytes of locked skills: those of the store, else those that the source still has."""
    missing = {}
    for name, skill in needed.items():
        require_permitted(run, name, skill.tree)
        if run.store.is_intact(skill.tree):
            draft.entries[name] = (skill, None)
        else:
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
        return {name: reader.fetch_locked(name, reference, skills[name]) for name, reference in references.items()}


def print_plan(run: InstallRun, plan: InstallPlan, status: int) -> int:
    if run.values["json"]:
        write(as_json(plan_json(plan, findings=[], reviews=[], differences=[])))
    return status


def show_plan(run: InstallRun, plan: InstallPlan) -> None:
    """Show what would be done, unless it is done at once and said then."""
    if not run.values["json"] and (run.dry_run or not run.values["yes"] or not plan.actions):
        write(plan_view(plan, run.display, run.environment.env, planned=True))


def show_done(run: InstallRun, plan: InstallPlan) -> None:
    if not run.values["json"]:
        write(plan_view(plan, run.display, run.environment.env, planned=False))
