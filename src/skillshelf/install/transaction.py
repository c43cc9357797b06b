"""Change what is installed, all of it or nothing: copies, lock and wishes, then the links of hosts.

A change is done once its generation is the current one; see `staged_change` for what happens before and after that.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from skillshelf.catalog.lock import LockedSkill, parse_lock
from skillshelf.catalog.store import Store, listed_files, store_of
from skillshelf.catalog.tree import SkillTree
from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.disk_writes import locked_within, make_own_folder
from skillshelf.core.environment import Environment
from skillshelf.core.limits import CONFIG_BYTES, INSTALL_WAIT_SECONDS, LOCK_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import SkillChanged, SkillError, SkillNotFound, SourceRefused
from skillshelf.hosts.link_plan import LinkAction, LinkRefusal, UnchangedLink
from skillshelf.install.garbage import collect_garbage, store_in_use
from skillshelf.install.generation import (
    Generation,
    current_generation,
    generation_numbers,
    generations,
    make_current,
    new_generation,
    read_generation,
    remove_generation,
    remove_old_generations,
    sweep_history,
    write_generation,
)
from skillshelf.install.git_attributes import ATTRIBUTES_FILE, with_attributes
from skillshelf.install.host_links import follow_lock
from skillshelf.install.lock_file import encode_lock
from skillshelf.install.scope import InstallScope
from skillshelf.install.staged_change import (
    CopyStep,
    FileStep,
    OpenScope,
    PendingCommit,
    apply_steps,
    digest_of,
    forget_pending,
    missing_in_store,
    new_token,
    read_pending,
    stage_steps,
    tidy_steps,
    tree_without_bytecode,
    undo_steps,
    write_pending,
)
from skillshelf.install.wishes import Wish, changed_wishes, wishes_in, with_wishes, without_wishes

__all__ = [
    "CommitResult",
    "Generation",
    "SkillChange",
    "collect_garbage",
    "commit",
    "generations",
    "nothing_done",
    "recover",
    "rollback",
    "store_in_use",
]

_FILE_BYTES = max(LOCK_BYTES, CONFIG_BYTES)


class SkillChange(NamedTuple):
    """One skill to install, to update or, without `after`, to remove together with its wish.

    The tree of `after` is in the store. Without `wish`, the wishes stay as they are.
    """

    name: str
    after: LockedSkill | None
    wish: Wish | None = None


class CommitResult(NamedTuple):
    """The generation that counts now, the copies that were written or removed, and what became of the links of hosts.

    `changed` is False if everything was so before. `notes` are for the user, one line each.
    """

    generation: int
    changed: bool
    copies: tuple[str, ...] = ()
    actions: tuple[LinkAction, ...] = ()
    unchanged: tuple[UnchangedLink, ...] = ()
    refused: tuple[LinkRefusal, ...] = ()
    notes: tuple[str, ...] = ()


class _Target(NamedTuple):
    """The state to reach: the skills of the lock, None for no lock, the file of wishes, and the skills it is about.

    `unfollowed` are the skills of an earlier change whose links could not follow then.
    """

    skills: Mapping[str, LockedSkill] | None
    wishes: bytes | None
    names: tuple[str, ...]
    label: str
    unfollowed: tuple[str, ...] = ()
    number: int | None = None


# The public functions -----------------------------------------------------------------------------


def commit(
    scope: InstallScope,
    environment: Environment,
    changes: Sequence[SkillChange],
    *,
    label: str,
    force: Collection[str] = (),
) -> CommitResult:
    """Carry out all changes or none; `label` says in a few words what was done.

    A copy that was edited, or a folder that is not ours, is replaced or removed only for the names in `force`. Raise a
    SkillError if it cannot be done; then nothing is changed.
    """
    with _locked(scope), nothing_done():
        left = _recover(scope, environment)
        with OpenScope(scope) as opened:
            skills, wishes = _present(opened)
            after = dict(skills or {})
            listed = wishes_in(wishes or b"", scope.wishes_path)
            for change in changes:
                before = after.pop(change.name, None)
                if change.after is not None:
                    after[change.name] = change.after
                    listed = changed_wishes(listed, change.name, change.wish) if change.wish is not None else listed
                else:
                    source, path = (before.source, before.path) if before is not None else ("", "")
                    listed = without_wishes(listed, change.name, source, path)
            edited = with_wishes(wishes or b"", listed, scope.wishes_path)
            names = tuple(dict.fromkeys(change.name for change in changes))
            lock = after if after or skills is not None else None
            target = _Target(lock, edited if edited or wishes == b"" else None, names, label, left)
            return _carry_out(target, opened, environment, force)


def rollback(
    scope: InstallScope, environment: Environment, number: int | None = None, *, force: Collection[str] = ()
) -> CommitResult:
    """Bring back the copies, the lock and the wishes of a generation; without a number, of the one before this."""
    with _locked(scope), nothing_done():
        left = _recover(scope, environment)
        current = current_generation(scope.history)
        wanted = _earlier(scope, current) if number is None else number
        if wanted not in generation_numbers(scope.history):
            known = ", ".join(map(str, generation_numbers(scope.history))) or "none"
            raise SkillNotFound(f"generation {wanted} (there are: {known})")
        generation = read_generation(scope.history, wanted)
        with OpenScope(scope) as opened:
            skills, wishes = _present(opened)
            names = tuple(sorted({*generation.skills, *(skills or {})}))
            target = _Target(
                generation.skills if generation.lock is not None else None,
                _wishes_of(generation, wishes, scope),
                names,
                f"rollback to {wanted}",
                left,
                # The present one again is a new one: the switch to it is what tells done from undone.
                wanted if wanted != current else None,
            )
            return _carry_out(target, opened, environment, force)


def recover(scope: InstallScope, environment: Environment) -> None:
    """Finish or undo what a killed process left; every command calls it first, and it costs next to nothing."""
    if read_pending(scope.history) is None:
        return
    with _locked(scope), nothing_done():
        _recover(scope, environment)


# One change ---------------------------------------------------------------------------------------


@contextmanager
def _locked(scope: InstallScope) -> Iterator[None]:
    """Let no other process change this scope; say so if that takes more than a second."""

    def say() -> None:
        seconds = f"{INSTALL_WAIT_SECONDS:.0f} seconds"
        note(f"waiting for another skillshelf that changes {visible(scope.shown)}, at most {seconds}")

    path = f"{scope.history}/install.lock"
    try:
        make_own_folder(scope.history)
        holder = locked_within(path, INSTALL_WAIT_SECONDS, say=say)
        held = holder.__enter__()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SkillError(f"nothing was changed: {scope.history} cannot be written: {reason}") from None
    try:
        if not held:
            raise SkillError(f"nothing was changed: another program holds {path}; run the command again when it ended")
        yield
    finally:
        holder.__exit__(None, None, None)


@contextmanager
def nothing_done(place: str = "") -> Iterator[None]:
    """Turn a failure of the machine into one line; it names the file, or else the place."""
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename or place
        reason = (error.strerror or str(error)).lower()
        what = f"{os.fsdecode(where)}: " if where and isinstance(where, str | bytes) else ""
        raise SkillError(f"nothing was changed: {visible(what)}{reason}") from None


def _present(opened: OpenScope) -> tuple[dict[str, LockedSkill] | None, bytes | None]:
    """Return the skills of the lock, None if there is none, and the bytes of the file of wishes."""
    scope = opened.scope
    if scope.kind == "user":
        make_own_folder(scope.root)
    lock = opened.read(_real(scope.lock_path, scope), LOCK_BYTES)
    wishes = opened.read(_real(scope.wishes_path, scope), CONFIG_BYTES)
    return parse_lock(lock, scope.lock_path) if lock is not None else None, wishes


def _real(path: str, scope: InstallScope) -> str:
    """Return the path by which a file is opened without links; those on the way to the user's own are the user's."""
    if scope.kind == "project":
        return path
    if path == scope.wishes_path:
        return files.real_path(path)
    return f"{files.real_path(os.path.dirname(path))}/{os.path.basename(path)}"


def _carry_out(target: _Target, opened: OpenScope, environment: Environment, force: Collection[str]) -> CommitResult:
    """Make everything as it shall be, or leave everything as it is; then let the links of hosts follow."""
    scope, store = opened.scope, store_of(environment)
    pending, notes = None, []
    with store_in_use(environment):
        copies = _copy_steps(target, opened, store, force)
        _require_trees(target, copies, scope, store)
        contents = _contents(target, opened)
        steps = [
            FileStep(path, digest_of(old), digest_of(new))
            for path, new in contents.items()
            if (old := opened.read(path, _FILE_BYTES)) != new
        ]
        current = current_generation(scope.history)
        is_known = current is not None or not target.names
        if copies or steps or target.number is not None or not is_known:
            before = _keep_present(opened, target.label)
            pending = _pending_for(target, opened, steps, copies)
            _run(pending, target, opened, contents, store, before)
            notes = [line for line in (_attributes_note(steps, target, scope),) if line]
    number = pending.number if pending is not None else current or 0
    done, is_complete = follow_lock(scope, environment, _followed(target), target.skills or {})
    _finish(pending or read_pending(scope.history), opened, is_complete=is_complete)
    return CommitResult(
        number,
        pending is not None or bool(done.actions),
        tuple(step.name for step in copies),
        done.actions,
        done.unchanged,
        done.refused,
        (*notes, *done.remarks),
    )


def _followed(target: _Target) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*target.names, *target.unfollowed)))


def _pending_for(
    target: _Target, opened: OpenScope, steps: Sequence[FileStep], copies: Sequence[CopyStep]
) -> PendingCommit:
    history = opened.scope.history
    is_new = target.number is None
    number = max(generation_numbers(history), default=0) + 1 if target.number is None else target.number
    folders = opened.missing_folders() if copies else ()
    return PendingCommit(number, is_new, new_token(), tuple(steps), tuple(copies), folders, _followed(target))


def _keep_present(opened: OpenScope, label: str) -> int:
    """Return the generation of what is there; write it before the first change, and after changes by others."""
    scope = opened.scope
    lock_data = opened.read(_real(scope.lock_path, scope), LOCK_BYTES)
    wishes = opened.read(_real(scope.wishes_path, scope), CONFIG_BYTES)
    numbers = generation_numbers(scope.history)
    current = current_generation(scope.history)
    number = numbers[-1] + 1 if numbers else 0
    present = new_generation(number, f"before: {label}", scope, lock_data, wishes, before=current)
    for known in (current, *numbers[-1:]):
        if known is not None and _is_same(read_generation(scope.history, known), present):
            return known
    write_generation(scope.history, present)
    return present.number


def _is_same(one: Generation, other: Generation) -> bool:
    return _state_of(one) == _state_of(other)


def _state_of(one: Generation) -> tuple[Any, ...]:
    return one.skills, one.lock is None, sorted(one.wishes, key=str)


def _run(
    pending: PendingCommit,
    target: _Target,
    opened: OpenScope,
    contents: Mapping[str, bytes | None],
    store: Store,
    before: int,
) -> None:
    """Carry out a change up to the switch to its generation; undo it if a step before that fails."""
    scope = opened.scope
    try:
        write_pending(scope.history, pending)
        if pending.is_new:
            lock_data, wishes = (contents[_real(path, scope)] for path in (scope.lock_path, scope.wishes_path))
            generation = new_generation(pending.number, target.label, scope, lock_data, wishes, before=before)
            write_generation(scope.history, generation)
        stage_steps(pending, opened, contents, store)
        apply_steps(pending, opened)
        make_current(scope.history, pending.number)
    except BaseException as error:
        if current_generation(scope.history) != pending.number:
            # What cannot be undone now, because the disk fails, is undone by the next command.
            with suppress(OSError):
                _undo(pending, opened)
            raise
        # Only the flush behind the switch failed: it is done.
        if not isinstance(error, OSError):
            raise


def _undo(pending: PendingCommit, opened: OpenScope) -> None:
    undo_steps(pending, opened)
    if pending.is_new:
        remove_generation(opened.scope.history, pending.number)
    forget_pending(opened.scope.history)


def _finish(pending: PendingCommit | None, opened: OpenScope, *, is_complete: bool) -> None:
    """Remove what a change that is done left beside; unless the links followed, the next command has to do that."""
    if pending is None:
        return
    # It is done, so a failure is none of the change: the next command tries again.
    with suppress(OSError):
        tidy_steps(pending, opened)
        if is_complete:
            forget_pending(opened.scope.history)
        remove_old_generations(opened.scope.history)


def _recover(scope: InstallScope, environment: Environment) -> tuple[str, ...]:
    """Finish or undo what a killed process left, with the lock of the scope held.

    Return the skills whose links could not follow, because the machine failed again.
    """
    sweep_history(scope.history)
    pending = read_pending(scope.history)
    if pending is None:
        return ()
    with OpenScope(scope) as opened:
        if current_generation(scope.history) != pending.number:
            _undo(pending, opened)
            note("undid what an interrupted command had begun to change")
            return ()
        skills, _ = _present(opened)
        done, is_complete = follow_lock(scope, environment, pending.names, skills or {})
        _finish(pending, opened, is_complete=is_complete)
        if not is_complete:
            note(visible(f"links of hosts still cannot follow: {done.refused[0].reason}"))
            return pending.names
        note("finished what an interrupted command had begun to change")
        return ()


# What has to be done ------------------------------------------------------------------------------


def _copy_steps(target: _Target, opened: OpenScope, store: Store, force: Collection[str]) -> list[CopyStep]:
    """Return the copies of a project that have to change; raise if that would lose what somebody else wrote."""
    if opened.scope.kind == "user":
        return []
    folder = opened.skills()
    steps = []
    known: dict[str, list[str]] | None = None
    for name in target.names:
        wanted = target.skills.get(name) if target.skills is not None else None
        tree = wanted.tree if wanted is not None else None
        found = opened.tree(folder, name) if folder is not None else None
        if found is None:
            steps += [CopyStep(name, False, tree)] if tree is not None else []
        elif tree is None or tree not in (found.digest, tree_without_bytecode(found)):
            if name not in force:
                known = _known_trees(opened) if known is None else known
                _require_own(name, found, known.get(name, []), opened.scope, store)
            steps.append(CopyStep(name, True, tree))
    return steps


def _known_trees(opened: OpenScope) -> dict[str, list[str]]:
    """Return the trees that we put into the folder of each skill: that of the lock first, then of generations."""
    skills, _ = _present(opened)
    known: dict[str, list[str]] = {}
    for locked in (skills or {}, *(one.skills for one in generations(opened.scope))):
        for name, skill in locked.items():
            known.setdefault(name, []).append(skill.tree)
    return known


def _require_own(name: str, found: SkillTree, trees: Sequence[str], scope: InstallScope, store: Store) -> None:
    """Raise unless a folder is what we put there."""
    if found.digest is not None and {found.digest, tree_without_bytecode(found)} & {*trees}:
        return
    path = f"{scope.skills_folder}/{name}"
    if not trees:
        raise SourceRefused("occupied", f"{path} is there, and skillshelf did not install it; move it away")
    raise SkillChanged(name, _differences(trees[0], found, store) or (path,))


def _differences(tree: str, found: SkillTree, store: Store) -> tuple[str, ...]:
    """Return the files that differ from a tree, as far as the store has it."""
    try:
        before = listed_files(store.read(tree))
    except SkillError:
        return ()
    return tuple(sorted(path for path in {*before, *found.listed} if before.get(path) != found.listed.get(path)))


def _require_trees(target: _Target, copies: Sequence[CopyStep], scope: InstallScope, store: Store) -> None:
    """Raise if the store lacks a tree that is needed; those of copies are read, and so checked, when they are made."""
    needed = {step.name: step.new for step in copies}
    if scope.kind == "user" and target.skills is not None:
        needed = {name: target.skills[name].tree for name in target.names if name in target.skills}
    is_there = store.is_intact if scope.kind == "user" else store.has
    for name, tree in needed.items():
        if tree is not None and not is_there(tree):
            raise missing_in_store(name, tree, store)


def _contents(target: _Target, opened: OpenScope) -> dict[str, bytes | None]:
    """Return the bytes that each file of the scope shall have, None for no file."""
    scope = opened.scope
    path = _real(scope.lock_path, scope)
    present = opened.read(path, LOCK_BYTES)
    found: dict[str, bytes | None] = {path: None}
    if target.skills is not None:
        # A lock that says the same keeps its bytes.
        is_same = present is not None and parse_lock(present, scope.lock_path) == target.skills
        found[path] = present if is_same else encode_lock(target.skills, scope.lock_path)
    found[_real(scope.wishes_path, scope)] = target.wishes
    if scope.kind == "project" and (attributes := _attributes(target, opened)) is not None:
        found[_attributes_path(scope)] = attributes or None
    return found


def _attributes_path(scope: InstallScope) -> str:
    return f"{scope.root.rstrip('/')}/{ATTRIBUTES_FILE}"


def _attributes(target: _Target, opened: OpenScope) -> bytes | None:
    """Return the bytes of `.gitattributes`; None if it is a link or too large, and so is none of git's either."""
    skills = target.skills or {}
    try:
        before = opened.read(_attributes_path(opened.scope), CONFIG_BYTES)
    except SourceRefused as error:
        note(f"{error}: line ends are not protected")
        return None
    added = [name for name in target.names if name in skills]
    return with_attributes(before or b"", added, [name for name in target.names if name not in skills])


def _attributes_note(steps: Sequence[FileStep], target: _Target, scope: InstallScope) -> str:
    """Say that `.gitattributes` was changed."""
    if not any(step.path == _attributes_path(scope) for step in steps):
        return ""
    if not any(name in (target.skills or {}) for name in target.names):
        return f"changed {ATTRIBUTES_FILE}: took out the lines about what was removed"
    return f"changed {ATTRIBUTES_FILE}: git leaves the line ends of installed skills alone"


def _earlier(scope: InstallScope, current: int | None) -> int:
    """Return the generation before the current one that is not the same."""
    if current is None:
        raise SkillNotFound("an earlier generation (nothing was installed here)")
    now = generation = read_generation(scope.history, current)
    numbers = generation_numbers(scope.history)
    while generation.before is not None and generation.before in numbers and generation.before < generation.number:
        generation = read_generation(scope.history, generation.before)
        if not _is_same(generation, now):
            return generation.number
    raise SkillNotFound("an earlier generation (this is the first that is kept)")


def _wishes_of(generation: Generation, present: bytes | None, scope: InstallScope) -> bytes | None:
    """Return the file of wishes of a generation; other settings that were written since then stay."""
    text = generation.wishes_text.encode() if generation.wishes_text is not None else None
    if scope.kind == "project" and (present is None or _settings_in(present) == _settings_in(text or b"")):
        return text
    edited = with_wishes(present or b"", generation.wishes, scope.wishes_path)
    return edited if edited or present == b"" else None


def _settings_in(data: bytes) -> dict[str, Any]:
    import tomllib

    return {key: value for key, value in tomllib.loads(data.decode()).items() if key != "install"}
