"""A place to folders that look like roots and are none to any host, or to hardly any, and roots that are none."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skillshelf import files
from skillshelf.hosts import HOSTS
from skillshelf.place import Place
from skillshelf.survey import Survey, base_of, is_broken

__all__ = ["NearMiss", "broken_roots", "entries_in", "near_misses"]

_ROOTS = {path for host in HOSTS.values() for rule in host.roots for path in rule.paths}
_FOLDERS = {path.split("/")[0] for path in _ROOTS} - {"", ".config"}


class NearMiss(NamedTuple):
    """A folder or file that somebody meant as a root, and what to do about it."""

    path: str
    message: str


def near_misses(survey: Survey) -> list[NearMiss]:
    """Roots that cannot be entered, and all in the folders that hold roots which is spelt nearly like one."""
    misses = [miss for base in dict.fromkeys(_bases(survey)) for miss in _misses_in(base)]
    return [*dict.fromkeys(broken_roots(survey)), *misses]


def broken_roots(survey: Survey) -> Iterator[NearMiss]:
    """Roots that hosts read and that cannot be entered."""
    for root in (root for view in survey.views.values() for root in view.roots if is_broken(root)):
        if files.kind_at(root.path) == "link":
            said = f"the link leads nowhere: target {files.link_target(root.path)}"
        else:
            said = "it is no folder"
        yield NearMiss(root.path, f"cannot be entered by any host: {said}")


def _bases(survey: Survey) -> Iterator[str]:
    place: Place = survey.place
    yield place.cwd
    if place.home:
        yield place.home
    for view in survey.views.values():
        yield from (base_of(root) for root in view.roots if root.kind == "project" and root.exists)


def _misses_in(base: str) -> Iterator[NearMiss]:
    for name in _names(base):
        if name not in _FOLDERS and name.lower() in _FOLDERS and _names(f"{base}/{name}"):
            yield NearMiss(f"{base}/{name}", "is not read: folders are spelt in lower case")
        elif name in _FOLDERS:
            for child in _names(f"{base}/{name}"):
                if child.lower() in ("skill", "skills", "skills.md") and f"{name}/{child}" not in _ROOTS:
                    message = "is not read by any host: the folder must be called skills"
                    yield NearMiss(f"{base}/{name}/{child}", message)
    if files.kind_at(f"{base}/.agent/skills"):
        few = [host.name for host in HOSTS.values() if any(".agent/skills" in rule.paths for rule in host.roots)]
        yield NearMiss(f"{base}/.agent/skills", f"is read by {' and '.join(few)} only: most read .agents/skills")


def _names(folder: str) -> list[str]:
    return [name for name, _ in entries_in(folder)]


def entries_in(folder: str) -> Sequence[tuple[str, bool]]:
    """The names in a folder, each with whether it is a folder itself; none where it cannot be read."""
    try:
        descriptor = files.open_folder(files.real_path(folder))
    except OSError:
        return ()
    try:
        return files.entries_in(descriptor)
    except OSError:
        return ()
    finally:
        files.close(descriptor)
