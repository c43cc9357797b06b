"""Run the commands that install skills: add, install, import."""

import sys
from collections.abc import Mapping, Sequence
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
    references_of,
    require_permitted,
    reviewed,
)
from skillshelf.cli.install_run import InstallRun
from skillshelf.cli.install_view import (
    InstallPlan,
    plan_json,
    slow_work,
)
from skillshelf.core import files
from skillshelf.core.console import as_json, can_ask, note, write
from skillshelf.core.text import plural, visible
from skillshelf.errors import (
    DENIED,
    DONE,
    NEGATIVE,
    ConfigurationError,
    PermissionDenied,
    SkillError,
    SourceRefused,
)
from skillshelf.install.wishes import Wish

if TYPE_CHECKING:
    from skillshelf.catalog.source import SourceEntry
    from skillshelf.install.foreign import ForeignSkill
    from skillshelf.install.reference import SourceReference
    from skillshelf.install.review import SkillReview
    from skillshelf.install.sources import FetchedSkill

__all__ = ["add", "import_lock", "install"]


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


def add(values: Values) -> int:
    """Install skills of a source that the user names, after showing what they are."""
    from skillshelf.install.sources import scoped_reference

    run = InstallRun("add", values)
    hosts = _named_hosts(run)
    try:
        text = values["source"]
        reference = scoped_reference(text, run.environment, run.scope, path=values["path"], ref=values["ref"])
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}{_folder_hint(run)}") from None
    if reference.kind == "git" and (hint := _folder_hint(run)):
        note(f"{reference.canonical} is fetched{hint}")
    run.require_permitted([reference])
    if run.scope.kind == "project" and run.scope.root == files.real_path(run.environment.home or "/"):
        note(f"your home folder is taken for a project; to add it for all your projects: {run.again(user=True)}")
    draft = InstallDraft("add")
    fetched = _fetch_chosen(run, reference)
    with slow_work("Checking") as progress:
        for number, one in enumerate(fetched, 1):
            progress(f"Checking {one.name} ({number} of {len(fetched)})")
            _draft_added(run, draft, one, reference, hosts)
    consent = consent_to(run, draft.reviews)
    names = ", ".join(visible(name) for name in draft.entries)
    status = carry_out(run, draft, f"Install {names}", consent, refused=DENIED)
    if draft.entries and status == DONE and not run.dry_run and not values["json"]:
        name, scope = next(iter(draft.entries)), " --user" if values["user"] else ""
        note(f"to read it: skillshelf show {name}; to check it later: skillshelf verify{scope}")
    return status


def _folder_hint(run: InstallRun) -> str:
    """Return how to name a file or folder that is here, and was typed as a name without a path before it."""
    text = run.values["source"]
    if ":" in text or text[:1] in ("", "/", ".", "~") or files.kind_at(f"{run.environment.cwd}/{text}") is None:
        return ""
    return f" (for the one in this folder: {run.again(source=f'./{text}')})"


def _fetch_chosen(run: InstallRun, reference: "SourceReference") -> "list[FetchedSkill]":
    """Fetch the skills of a source that are named, or its only one, or those that a person picks."""
    from skillshelf.install.sources import (
        SourceSkill,
        fetch_skill,
        listed_entries,
        named_entries,
        open_source,
        with_named,
    )

    with slow_work(f"Reading {reference.canonical}") as progress:
        # The address was typed: a team server at it may have the token.
        context = run.context(progress)._replace(typed=True)
        source = open_source(reference, context)
        entries = listed_entries(source, reference)
    names = [name.strip() for given in run.values["skill"] for name in given.split(",") if name.strip()]
    if not names and len(entries) > 1:
        names = _picked_names(run, entries, reference)
    elif not names or names == ["*"]:
        names = [entry.name for entry in entries]
    # Two skills of one name cannot both be installed: that is an error which names their paths.
    entries = named_entries(with_named(source, entries, names), names, reference.canonical)
    with slow_work(f"Fetching {plural(len(entries), 'skill')}") as progress:
        context = run.context(progress)
        return [fetch_skill(SourceSkill(source, entry), context) for entry in entries]


def _picked_names(run: InstallRun, entries: "Sequence[SourceEntry]", reference: "SourceReference") -> list[str]:
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
    return sorted(chosen)


def _draft_added(
    run: InstallRun,
    draft: InstallDraft,
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
        if is_edited(found):
            draft.refused.append((name, edit_refusal(found)))
            return
    else:
        _require_free(run, draft, one, hosts)
    review = reviewed(run, one, claims=[*claims, *_claims(run, one)])
    wish = Wish(one.identity.source, one.identity.path, reference.ref, name, hosts)
    draft.reviews[name] = review
    draft.put(name, review.locked(hosts), one.contents, wish)
    if known is not None and known.tree != one.tree:
        draft_difference(run, draft, name, known, one.contents)


def _require_free(run: InstallRun, draft: InstallDraft, one: "FetchedSkill", hosts: Sequence[str]) -> None:
    """Raise PermissionDenied if something that nobody installed is in the way; a copy with the same bytes is not."""
    from skillshelf.catalog.tree import name_problem, skill_tree

    for other in (*run.locked, *draft.entries):
        if other != one.name and name_problem([other, one.name]) is not None:
            reason = f"{visible(one.name)} and {visible(other)} are one name on many disks"
            raise SourceRefused("name-taken", f"{reason}; only one of them can be installed here")
    path, is_project = run.shown_folder(one.name), run.scope.kind == "project"
    kind = files.kind_at(path)
    if kind is None or (hosts and not is_project):
        return
    if not (is_project and kind == "folder" and skill_tree(path, without_git=False).digest == one.tree):
        where = run.display.short(path)
        raise PermissionDenied(
            f"{where} exists and was not installed by skillshelf; move it away, then: {run.again(yes=None)}"
        )


def _claims(run: InstallRun, one: "FetchedSkill") -> list[str]:
    return _claims_of(run, one.name, one.identity.source)


def _claims_of(run: InstallRun, name: str, source: str) -> list[str]:
    from skillshelf.install.review import claims_of

    folder = run.shown_folder(name).rpartition("/")[0]
    return list(claims_of(name, source, folder, run.locked, run.catalog))


def install(values: Values) -> int:
    """Make the disk what the lock says; without `--frozen` also install wishes that no lock has."""
    run = InstallRun("install", values)
    new = _wishes_to_resolve(run)
    if new and values["frozen"]:
        return _not_locked(run, new)
    if not run.locked and not new:
        where = run.display.short(run.scope.lock_path)
        note(f"nothing to install: {where} has no skill (to add one: skillshelf add SOURCE)")
    draft = InstallDraft("install")
    needed = _needed(run, draft)
    if draft.refused:
        # Somebody's own bytes lie there; a part of a lock is never installed.
        return carry_out(run, draft, "", None, refused=NEGATIVE)
    unserved = _unserved(run, draft)
    if not needed and not new and not unserved:
        return carry_out(run, draft, "", None, refused=NEGATIVE)
    run.require_permitted(references_of(run, {**needed, **new}))
    run.require_vouched({**needed, **new, **unserved}, as_locked=True)
    draft_locked(run, draft, needed)
    if draft.refused:
        draft.entries.clear()
        return carry_out(run, draft, "", None, refused=NEGATIVE)
    for name, wish in new.items():
        _draft_wish(run, draft, name, wish)
    if not run.is_vouched({**needed, **unserved}, as_locked=True):
        draft.strangers = _reviews_of_locked(run, draft, {**needed, **unserved})
    consent = consent_to(run, {**draft.reviews, **draft.strangers})
    for name, skill in unserved.items():
        # The copy is as locked, so nothing but the links and copies of hosts is made.
        require_permitted(run, name, skill.tree)
        draft.entries.setdefault(name, (skill, None))
    draft.unchanged = [row for row in draft.unchanged if row[0] not in draft.entries]
    return carry_out(run, draft, f"Install {plural(len(draft.entries), 'skill')}", consent, refused=NEGATIVE)


def _wishes_to_resolve(run: InstallRun) -> dict[str, Wish]:
    """Return the wishes that the lock does not answer, by name; one without a name by its source."""
    from skillshelf.install.sources import locked_reference

    found = {}
    for wish in run.wishes:
        reference = locked_reference(wish, run.environment, run.scope)
        candidates = run.locked.values() if wish.name is None else [run.locked.get(wish.name)]
        if not any(skill is not None and _answers(skill, reference) for skill in candidates):
            found[wish.name or wish.source] = wish
    return found


def _answers(skill: LockedSkill, reference: "SourceReference") -> bool:
    """Return whether a locked skill is what a wish asks for."""
    is_same = (skill.source, skill.ref) == (reference.canonical, reference.ref)
    return is_same and (not reference.path or skill.path == reference.path)


def _not_locked(run: InstallRun, new: Mapping[str, Wish]) -> int:
    """Say that the lock does not have all wishes; a frozen install resolves nothing."""
    reason = f"it is in {run.display.short(run.scope.wishes_path)} and not in the lock (to lock it: skillshelf install)"
    plan = InstallPlan(refused=tuple((name, reason) for name in new))
    if run.values["json"]:
        write(as_json(plan_json(plan, findings=[], reviews=[], differences=[])))
    for name, why in plan.refused:
        note(f"{name}: {why}")
    return NEGATIVE


def _needed(run: InstallRun, draft: InstallDraft) -> dict[str, LockedSkill]:
    """Return the locked skills that are not on the disk; all others go to the draft, as unchanged or refused."""
    needed = {}
    for name, skill in run.locked.items():
        found = run.found(name, skill)
        if found.ok:
            draft.unchanged.append((name, skill.tree, run.shown_folder(name)))
        elif is_edited(found):
            draft.refused.append((name, edit_refusal(found)))
        else:
            # Nothing of anybody's own is lost where only files are missing.
            draft.replaced.add(name)
            needed[name] = skill
    return needed


def _unserved(run: InstallRun, draft: InstallDraft) -> dict[str, LockedSkill]:
    """Return the skills of a project that are as locked, and for which a named host has nothing on this machine yet."""
    from skillshelf.install.host_links import unserved_hosts

    if run.scope.kind == "user":
        return {}
    skills = {name: run.locked[name] for name, _, _ in draft.unchanged if run.locked[name].hosts}
    return {name: skill for name, skill in skills.items() if unserved_hosts(run.scope.root, name, skill.hosts)}


def _draft_wish(run: InstallRun, draft: InstallDraft, name: str, wish: Wish) -> None:
    """Resolve a wish that the lock does not answer, as `add` would."""
    from skillshelf.install.sources import SourceReader, locked_reference

    reference = locked_reference(wish, run.environment, run.scope)
    with slow_work(f"Reading {reference.canonical}") as progress:
        reader = SourceReader(run.context(progress))
        names = reader.names(reference) if wish.name is None else [wish.name]
        if len(names) > 1:
            where = f"{run.scope.wishes_path}: {visible(wish.source)}"
            raise ConfigurationError(f"{where} has {len(names)} skills: {', '.join(names)}; name one in the table")
        one = reader.fetch(names[0], reference)
    review = reviewed(run, one, claims=_claims(run, one))
    draft.reviews[one.name] = review
    known = run.locked.get(one.name)
    if known is None:
        _require_free(run, draft, one, wish.hosts)
    draft.put(one.name, review.locked(wish.hosts), one.contents, wish._replace(name=one.name))
    draft.unchanged = [row for row in draft.unchanged if row[0] != one.name]
    if known is not None and known.tree != one.tree:
        draft_difference(run, draft, one.name, known, one.contents)


def _reviews_of_locked(
    run: InstallRun, draft: InstallDraft, needed: Mapping[str, LockedSkill]
) -> "dict[str, SkillReview]":
    """Return reviews of locked skills of a stranger's project, whose bytes nobody on this machine has approved."""
    from skillshelf.catalog.source import SourceIdentity
    from skillshelf.install.review import review_skill
    from skillshelf.install.verify import disk_contents

    made = {}
    for name, skill in needed.items():
        identity = SourceIdentity(skill.source, skill.path, skill.ref, skill.commit, skill.artifact, "")
        is_drafted = name in draft.entries
        contents = draft.contents_of(run, name) if is_drafted else disk_contents(run.folder_of(name, skill))
        made[name] = review_skill(name, identity, contents, claims=_claims_of(run, name, skill.source))
    return made


def import_lock(values: Values) -> int:
    """Install what the lock or list of another tool names, and say where its hashes are not those of the bytes."""
    from skillshelf.core.environment import expand
    from skillshelf.install.foreign import read_foreign
    from skillshelf.install.sources import scoped_reference

    run = InstallRun("import", values)
    path = expand(files.from_system(values["file"]), run.environment, base=run.environment.cwd)
    draft, wishes, known = InstallDraft("import"), {}, {}
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
    if wishes:
        run.require_own_list(path, wishes)
    for skill, reference in known.values():
        _draft_foreign(run, draft, skill, reference)
    consent = consent_to(run, draft.reviews)
    return carry_out(run, draft, f"Install {plural(len(draft.entries), 'skill')}", consent, refused=NEGATIVE)


def _draft_foreign(run: InstallRun, draft: InstallDraft, skill: "ForeignSkill", reference: "SourceReference") -> None:
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
