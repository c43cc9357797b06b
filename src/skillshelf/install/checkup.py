"""Tell what is wrong with what is installed: trees that are needed and not intact, and files that cannot be read."""

from collections.abc import Collection, Iterator, Mapping

from skillshelf.catalog.lock import read_lock
from skillshelf.catalog.store import store_of
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.errors import SkillError
from skillshelf.install.garbage import known_projects, unfinished_trees
from skillshelf.install.generation import current_generation, generations, read_generation
from skillshelf.install.scope import InstallScope, scope_of
from skillshelf.install.staged_change import read_pending
from skillshelf.install.wishes import read_wishes

__all__ = ["half_written", "missing_trees", "needed_trees", "scope_problems"]


def needed_trees(environment: Environment) -> Mapping[str, tuple[str, str]]:
    """Return the trees of the current generations: each with a name, and the root of its project, empty for the user.

    A project has its own copies, so its trees are needed only if the store ever had them.
    """
    data = scope_of(environment, user=True).data_folder
    store = store_of(environment)
    found: dict[str, tuple[str, str]] = {}
    for history, root in (*known_projects(data), (data, "")):
        number = current_generation(history)
        skills = read_generation(history, number).skills if number is not None else {}
        found |= {skill.tree: (name, root) for name, skill in skills.items() if not root or store.has(skill.tree)}
    return found


def missing_trees(environment: Environment, trees: Collection[str]) -> list[str]:
    """Return those trees that the store does not have as they should be."""
    store = store_of(environment)
    return [tree for tree in trees if not store.is_intact(tree)]


def half_written(environment: Environment) -> Iterator[str]:
    """Yield what dead processes left in the store, by the path below the data folder."""
    data, store = scope_of(environment, user=True).data_folder, store_of(environment)
    for path in unfinished_trees(store.folder):
        yield path.removeprefix(f"{data}/")


def scope_problems(scope: InstallScope) -> Iterator[tuple[str, str]]:
    """Yield each file of a scope that cannot be used, and why."""
    checks = (
        (scope.lock_path, lambda: read_lock(scope.lock_path)),
        (scope.wishes_path, lambda: read_wishes(scope)),
        (f"{scope.history}/pending.json", lambda: read_pending(scope.history)),
        (f"{scope.history}/generations", lambda: [one.skills for one in generations(scope)]),
    )
    for path, check in checks:
        try:
            check()
        except SkillError as error:
            yield path, str(error).removeprefix(f"{path}: ")
    number = current_generation(scope.history)
    if number is not None and files.kind_at(f"{scope.history}/generations/{number}.json") is None:
        yield f"{scope.history}/current", f"generation {number}, which counts, is missing"
