"""Find every link and copy that skillshelf made, tell the state of each, and remove those that nobody changed."""

from collections.abc import Iterator, Sequence
from typing import Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.records import NamedTuple
from skillshelf.errors import SkillError
from skillshelf.hosts.copy_contents import contents_at
from skillshelf.hosts.link_changes import finish_pending, has_source, how_it_stands, remove_recorded
from skillshelf.hosts.link_records import (
    LinkRecord,
    LinkState,
    locked_state,
    place_of,
    read_state,
    with_manifests,
    write_state,
)
from skillshelf.hosts.placement import project_of

__all__ = [
    "MADE_STATES",
    "MadeLink",
    "MadeState",
    "forget_records",
    "is_forgettable",
    "made_links",
    "remove_made_links",
]

MadeState = Literal["current", "stale", "modified", "dangling", "orphan", "gone", "foreign"]

MADE_STATES: dict[MadeState, str] = {
    "current": "as it was made",
    "stale": "the skill changed since this copy was made",
    "modified": "this copy was modified",
    "dangling": "the skill that this link leads to is gone",
    "orphan": "the skill is gone, so this may be the only copy left",
    "gone": "it is no longer there",
    "foreign": "something else is there now, which skillshelf did not make",
}
"""Every state of a link or copy, with its meaning."""

_REMOVABLE = ("current", "stale", "dangling", "gone")


class MadeLink(NamedTuple):
    """A link or copy that is recorded, and how it compares with its record."""

    record: LinkRecord
    state: MadeState

    @property
    def path(self) -> str:
        """The path of the link or copy."""
        return self.record.path

    @property
    def is_removable(self) -> bool:
        """Whether it can be removed without losing anything that a person wrote."""
        return self.state in _REMOVABLE


def made_links(environment: Environment) -> list[MadeLink]:
    """Return what skillshelf made, wherever it is, sorted by path; raise UnusableRecords.

    Manifests of earlier versions are looked for in the roots of every host, here and in the home folder.
    """
    state, _ = with_manifests(read_state(environment), _roots(environment))
    return [MadeLink(record, _state(record)) for record in sorted(state.links)]


def _roots(environment: Environment) -> Iterator[str]:
    """Yield the folders of skills; one of the project that is reached by a link out of it is left out."""
    project = project_of(environment)
    for profile in HOSTS.values():
        for root in resolve_roots(profile, environment, Settings(), trust="all").roots:
            if root.kind != "project" or files.is_inside(files.real_path(root.path), project):
                yield root.path


def _state(record: LinkRecord) -> MadeState:
    path, source = record.path, record.source
    stands = how_it_stands(path, record)
    if stands != "as-made":
        return stands
    if not has_source(record):
        return "dangling" if record.how == "link" else "orphan"
    if record.how == "link":
        return "current"
    copied, original = (contents_at(one, f"{one}/{SKILL_FILE}") if one else None for one in (path, source))
    return "current" if original is None or copied is None or original.files == copied.files else "stale"


def remove_made_links(made: Sequence[MadeLink], environment: Environment) -> list[str]:
    """Remove links and copies with their records, in one change, or one by one where that fails.

    Return for each why it stays, judged anew, or an empty text.
    """
    try:
        return [one.reason for one in remove_recorded([one.record for one in made], environment)]
    except (OSError, SkillError):
        return [_remove_alone(one.record, environment) for one in made]


def _remove_alone(record: LinkRecord, environment: Environment) -> str:
    try:
        (removed,) = remove_recorded([record], environment)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except SkillError as error:
        return str(error)
    return removed.reason


def forget_records(environment: Environment) -> str:
    """Remove the file of records if it names no link and no copy; return why it stays, or an empty text.

    What is left in it then are folders that others use by now, and places that somebody has put something else in.
    """
    finish_pending(environment)
    if read_state(environment) == LinkState():
        return ""
    with locked_state(environment) as state:
        if state.pending is not None or any(not is_forgettable(MadeLink(one, _state(one))) for one in state.links):
            return "it names links or copies that are left"
        write_state(environment, LinkState())
    return ""


def is_forgettable(made: MadeLink) -> bool:
    """Return whether a record is of no use: something else is at its place, which is still where it was."""
    return made.state == "foreign" and place_of(made.path) == made.path
