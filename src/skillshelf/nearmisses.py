"""A place to folders that look like roots and are none to any host, or to hardly any."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from skillshelf import files
from skillshelf.hosts import HOSTS
from skillshelf.place import Place
from skillshelf.survey import Survey, base_of

__all__ = ["NearMiss", "near_misses"]

_FOLDERS = {path.split("/")[0] for host in HOSTS.values() for rule in host.roots for path in rule.paths} - {
    "",
    ".config",
}


class NearMiss(NamedTuple):
    """A folder or file that somebody meant as a root, and what to do about it."""

    path: str
    message: str


def near_misses(survey: Survey) -> list[NearMiss]:
    """Everything in the folders that hold roots which is spelt nearly like one."""
    bases = dict.fromkeys(_bases(survey))
    roots = {root.path for view in survey.views.values() for root in view.roots}
    return [miss for base in bases for miss in _misses_in(base, roots)]


def _bases(survey: Survey) -> Iterator[str]:
    place: Place = survey.place
    yield place.cwd
    if place.home:
        yield place.home
    for view in survey.views.values():
        yield from (base_of(root) for root in view.roots if root.kind == "project" and root.exists)


def _misses_in(base: str, roots: Iterable[str]) -> Iterator[NearMiss]:
    known = set(roots)
    for name in _names(base):
        if name not in _FOLDERS and name.lower() in _FOLDERS and _names(f"{base}/{name}"):
            yield NearMiss(f"{base}/{name}", "is not read: folders are spelt in lower case")
        elif name in _FOLDERS:
            for child in _names(f"{base}/{name}"):
                path = f"{base}/{name}/{child}"
                if child.lower() in ("skill", "skills", "skills.md") and path not in known:
                    yield NearMiss(path, "is not read by any host: the folder must be called skills")
    if f"{base}/.agent/skills" in known and files.kind_at(f"{base}/.agent/skills"):
        few = [host.name for host in HOSTS.values() if any(".agent/skills" in rule.paths for rule in host.roots)]
        yield NearMiss(f"{base}/.agent/skills", f"is read by {' and '.join(few)} only: most read .agents/skills")


def _names(folder: str) -> Sequence[str]:
    try:
        descriptor = files.open_folder(files.real_path(folder))
    except OSError:
        return ()
    try:
        return files.names_in(descriptor)
    except OSError:
        return ()
    finally:
        files.close(descriptor)
