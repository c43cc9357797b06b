"""Find every link and copy that `link` made, tell the state of each, and remove those that nobody changed."""

import os
from collections.abc import Iterator
from typing import Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.disk_writes import remove_empty, remove_link, set_aside_and_remove
from skillshelf.core.environment import Environment
from skillshelf.core.records import NamedTuple
from skillshelf.hosts.placement import (
    contents_at,
    copied_from,
    hosts_of,
    is_as_made,
    manifest_entry,
    manifest_names,
    own_kind,
    project_of,
    record_entry,
)

__all__ = ["MADE_STATES", "MadeLink", "MadeState", "made_links", "remove_made_link"]

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
    """A link or copy that is recorded; `source` is the folder of the skill."""

    path: str
    how: Literal["link", "copy"]
    source: str | None
    hosts: tuple[str, ...]
    state: MadeState

    @property
    def removable(self) -> bool:
        """Whether it can be removed without losing anything that a person wrote."""
        return self.state in _REMOVABLE


def made_links(environment: Environment) -> list[MadeLink]:
    """Return what `link` made in the roots of every host, here and in the home folder, sorted by path."""
    paths = {f"{root}/{name}" for root in _roots(environment) for name in manifest_names(root)}
    found = (_made_link(path) for path in sorted(paths))
    return [one for one in found if one is not None]


def _roots(environment: Environment) -> Iterator[str]:
    """Yield the folders of skills; one of the project that is reached by a link out of it is left out."""
    project = project_of(environment)
    for profile in HOSTS.values():
        for root in resolve_roots(profile, environment, Settings(), trust="all").roots:
            if root.kind != "project" or files.is_inside(files.real_path(root.path), project):
                yield root.path


def _made_link(path: str) -> MadeLink | None:
    entry = manifest_entry(path)
    if entry is None or (how := entry.get("how")) not in ("link", "copy"):
        return None
    source = copied_from(path)
    if how == "link" and isinstance(target := entry.get("target"), str):
        source = os.path.normpath(os.path.join(files.real_path(os.path.dirname(path)), target))
    return MadeLink(path, how, source, tuple(hosts_of(entry)), _state(path, how, source))


def _state(path: str, how: str, source: str | None) -> MadeState:
    if files.kind_at(path) is None:
        return "gone"
    if own_kind(path) != how:
        return "foreign"
    has_source = source is None or files.kind_at(files.real_path(f"{source}/{SKILL_FILE}")) is not None
    if how == "link":
        return "current" if has_source else "dangling"
    contents = contents_at(path, f"{path}/{SKILL_FILE}")
    # A copy that we make holds no link, and the digest does not know of one.
    if contents is None or contents.left_out or not is_as_made(contents, manifest_entry(path)):
        return "modified"
    if not has_source:
        return "orphan"
    original = contents_at(source, f"{source}/{SKILL_FILE}") if source is not None else None
    return "current" if original is None or original.files == contents.files else "stale"


def remove_made_link(path: str) -> str | None:
    """Remove a link or copy and its record; return why it stays, judged anew, or None. Raise an OSError."""
    made = _made_link(path)
    if made is None:
        return "skillshelf has no record of it"
    if not made.removable:
        return MADE_STATES[made.state]
    entry = manifest_entry(path) or {}
    if made.state != "gone":
        remove_one = remove_link if made.how == "link" else set_aside_and_remove
        remove_one(path)
    record_entry(path, None)
    folders = entry.get("folders", 0)
    remove_empty(os.path.dirname(path), folders if isinstance(folders, int) else 0)
    return None
