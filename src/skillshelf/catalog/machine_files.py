"""Remember paths and names of all skills of a machine, so that any view can say at once how many it does not show.

The paths count only while every folder that was searched is as it was, no further root has come into being, and the
variables that move roots have the same values. A file that is damaged, foreign or old is as good as none.
"""

import marshal
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from skillshelf.catalog.disk_state import DiskState
from skillshelf.catalog.packed_file import read_latest, write_sections
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.records import NamedTuple

__all__ = ["MachineFiles", "keep_machine_files", "known_machine_files"]

_FORMAT = 2


class MachineFiles(NamedTuple):
    """Every SKILL.md of a machine, each with its place, all paths that lead to it, and its name.

    `variables` and `absent` are what they depend on besides the folders: the values of variables of the environment,
    None if one is not set, and paths at which there was nothing.
    """

    rows: Sequence[tuple[str, Sequence[str], str]]
    variables: Mapping[str, str | None]
    absent: Sequence[str]

    def outside(self, shown: AbstractSet[str]) -> list[str]:
        """Return the place of each file to which none of the paths `shown` leads."""
        return [place for place, paths, _ in self.rows if shown.isdisjoint(paths)]


def _key(environment: Environment, custom: Iterable[str]) -> str:
    from skillshelf import __version__

    place = (environment.cwd, environment.home, tuple(custom))
    return repr(("files of a machine", _FORMAT, __version__, files.reader(), place))


def keep_machine_files(
    folder: str, environment: Environment, custom: Iterable[str], found: MachineFiles, state: DiskState
) -> None:
    """Write the files of a machine for later processes; `custom` are the folders that the configuration adds."""
    rows = [(place, list(paths), name) for place, paths, name in found.rows]
    data = marshal.dumps((rows, dict(found.variables), list(found.absent)))
    write_sections(folder, _key(environment, custom), {"state": state.encoded(), "files": data})


def known_machine_files(
    folder: str, environment: Environment, custom: Iterable[str], *, stale: bool = False
) -> MachineFiles | None:
    """Return the files that an earlier process found; None if that was never, or if anything has changed since.

    With `stale` they are returned whatever has changed, and nothing on the disk is looked at.
    """
    found = read_latest(folder, _key(environment, custom))
    if found is None or not (stale or found[1].is_current()):
        return None
    try:
        made: Any = MachineFiles(*marshal.loads(found[0]["files"]))
        is_same = all(environment.env.get(name) == value for name, value in made.variables.items())
        return made if stale or (is_same and all(files.kind_at(path) is None for path in made.absent)) else None
    except (AttributeError, EOFError, TypeError, ValueError):
        return None
