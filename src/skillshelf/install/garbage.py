"""Remove the trees of the store that nothing names any more, and what killed processes left in it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from skillshelf.catalog.store import Store, store_of
from skillshelf.core import files
from skillshelf.core.disk_writes import lock, make_own_folder, open_to_append, remove_tree
from skillshelf.core.environment import Environment
from skillshelf.core.limits import INSTALL_WAIT_SECONDS, LOCK_BYTES
from skillshelf.errors import SkillError
from skillshelf.install.generation import generation_numbers, read_generation
from skillshelf.install.scope import PROJECTS, scope_of

__all__ = ["STORE_LOCK", "collect_garbage", "known_projects", "store_in_use", "unfinished_trees"]

STORE_LOCK = "store.lock"
"""The lock file that whoever needs trees of the store holds together with others, and who removes some holds alone."""

_TREE = re.compile(rb"sha256:[0-9a-f]{64}")
_LEFT = re.compile(r"\.(?:new|removed)-([0-9]+)-[0-9a-f]{8}")


@contextmanager
def store_in_use(environment: Environment) -> Iterator[None]:
    """Keep `gc` from removing trees between the moment they are stored and the commit that names them."""
    data = scope_of(environment, user=True).data_folder
    make_own_folder(data)
    descriptor = open_to_append(f"{data}/{STORE_LOCK}")
    try:
        if not lock(descriptor, "shared", seconds=INSTALL_WAIT_SECONDS):
            raise SkillError("nothing was changed: another skillshelf removes unused skills; run the command again")
        yield
    finally:
        files.close(descriptor)


def collect_garbage(environment: Environment, *, dry_run: bool) -> list[str]:
    """Remove what no generation and no known lock names; return one line for each thing that is, or would be, removed.

    Raise a SkillError, with nothing removed, if it cannot be told what is needed.
    """
    store = store_of(environment)
    data = scope_of(environment, user=True).data_folder
    if files.kind_at(data) is None:
        return []
    make_own_folder(data)
    descriptor = open_to_append(f"{data}/{STORE_LOCK}")
    try:
        if not lock(descriptor, "alone", seconds=INSTALL_WAIT_SECONDS):
            raise SkillError("nothing was removed: another skillshelf installs skills; run the command again")
        return list(_collected(environment, store, data, dry_run=dry_run))
    except OSError as error:
        raise SkillError(f"gc failed: {error.filename or data}: {(error.strerror or str(error)).lower()}") from None
    finally:
        files.close(descriptor)


def _collected(environment: Environment, store: Store, data: str, *, dry_run: bool) -> Iterator[str]:
    needed = _trees_in_lock(scope_of(environment, user=True).lock_path) | _trees_in(data)
    gone = []
    for history, root in known_projects(data):
        if root and files.kind_at(root) is None:
            gone.append((history, root))
            continue
        needed |= _trees_in(history) | (_trees_in_lock(f"{root}/skillshelf.lock") if root else set())
    for tree in list(store.trees()):
        if tree not in needed:
            if not dry_run:
                store.remove(tree)
            yield f"{tree}: no generation and no lock names it"
    for history, root in gone:
        if not dry_run:
            remove_tree(history)
        yield f"{root}: the project is gone, and its generations are forgotten"
    for path in list(unfinished_trees(store.folder)):
        if not dry_run:
            remove_tree(path)
        yield f"{path}: a process ended while it wrote or removed this"


def known_projects(data: str) -> Iterator[tuple[str, str]]:
    """Yield the folder of each project with generations, and the root that they name; an empty text if none does."""
    folder = f"{data}/{PROJECTS}"
    try:
        names = sorted(files.stamps_in(folder))
    except OSError:
        return
    for name in names:
        history = f"{folder}/{name}"
        numbers = generation_numbers(history)
        yield history, read_generation(history, numbers[-1]).root if numbers else ""


def _trees_in(history: str) -> set[str]:
    """Return the trees that the generations of a scope name; raise for one that cannot be read."""
    read = (read_generation(history, number) for number in generation_numbers(history))
    return {skill.tree for one in read for skill in one.skills.values()}


def _trees_in_lock(path: str) -> set[str]:
    """Return every tree that the text of a lock names: also one in conflict may be needed again."""
    if files.kind_at(path) is None:
        return set()
    data = files.read_file(path, limit=LOCK_BYTES, links="follow")
    if data is None:
        raise SkillError(f"nothing was removed: {path} is not a file of at most {LOCK_BYTES} bytes (LOCK_BYTES)")
    return {tree.decode() for tree in _TREE.findall(data)}


def unfinished_trees(folder: str) -> Iterator[str]:
    """Yield the folders of a store that dead processes were writing or removing."""
    try:
        names = sorted(files.stamps_in(folder))
    except OSError:
        return
    for name in names:
        found = _LEFT.fullmatch(name)
        if found is not None and files.kind_at(f"/proc/{found[1]}") is None:
            yield f"{folder}/{name}"
