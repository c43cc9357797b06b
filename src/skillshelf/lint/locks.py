"""Check locks against the folders that they name."""

import json
import os
from collections.abc import Iterable, Iterator

from skillshelf.catalog.lock import INSTALLED, LockedSkill, Locks, UnusableLock
from skillshelf.catalog.lock_places import CHANGED, EXTRA, LOCK_FILE, may_be_locked, user_lock_path
from skillshelf.catalog.locked_catalog import lock_problems, lock_state
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.limits import LOCK_BYTES
from skillshelf.core.values import Diagnostic

__all__ = ["lock_findings"]


def lock_findings(
    skill_files: Iterable[tuple[str, str]], tops: Iterable[str], environment: Environment, *, user: bool = False
) -> list[Diagnostic]:
    """Return what is wrong with the locks of some skills, given by path and real path, and with those in folders.

    `user` adds the user's own lock.
    """
    skills = [(path, os.path.dirname(real_path)) for path, real_path in skill_files]
    folders = [files.real_path(top) for top in tops]
    if not may_be_locked(environment, [*folders, *{os.path.dirname(folder) for _, folder in skills}]):
        return []
    locks = Locks(environment)
    found = [finding for path, folder in skills for finding in _skill_findings(path, folder, locks, environment)]
    known = {f"{folder}/{LOCK_FILE}": folder for folder in folders}
    known |= {
        path: os.path.dirname(path)
        for _, folder in skills
        if (path := locks.project_lock(os.path.dirname(folder))) is not None
    }
    for path, root in sorted(known.items()):
        found += _lock_findings(path, root, root, locks)
    own = user_lock_path(environment)
    if user and own is not None and environment.home is not None:
        found += _lock_findings(own, files.real_path(environment.home), None, locks)
    return [*found, *lock_problems(locks)]


def _skill_findings(path: str, folder: str, locks: Locks, environment: Environment) -> Iterator[Diagnostic]:
    state = lock_state(folder, environment, locks, os.path.dirname(path))
    if state is not None and state.changed and state.locked.problem is None:
        yield Diagnostic(path, CHANGED, state.message)
    if state is not None and state.extra:
        yield Diagnostic(path, EXTRA, f"{state.extra[0]} is not part of the installed skill")


def _lock_findings(path: str, root: str, boundary: str | None, locks: Locks) -> Iterator[Diagnostic]:
    """Yield what is wrong with the folders that a lock names; they may not lead out of the boundary."""
    try:
        skills = locks.skills_in(path)
    except UnusableLock:
        return
    lines = _lines(path, skills) if skills else {}
    for name in skills:
        folder = f"{root.rstrip('/')}/{INSTALLED}/{name}"
        real = files.real_path(folder)
        if boundary is not None and not files.is_inside(real, boundary):
            yield Diagnostic(path, "lock-outside", f"{name!r} leads out of the project, to {real}", lines.get(name))
        elif boundary is not None and files.kind_at(real) != "folder":
            message = f"{name!r} is not in {INSTALLED}; to restore it: skillshelf install"
            yield Diagnostic(path, "lock-missing", message, lines.get(name))


def _lines(path: str, skills: Iterable[str] | dict[str, LockedSkill]) -> dict[str, int]:
    """Return the line of each skill in a lock."""
    try:
        text = (files.read_file(path, limit=LOCK_BYTES, links="never") or b"").decode("utf-8", "replace")
    except OSError:
        return {}
    found = {}
    for name in skills:
        at = text.find(f"{json.dumps(name, ensure_ascii=False)}: {{")
        if at >= 0:
            found[name] = text.count("\n", 0, at) + 1
    return found
