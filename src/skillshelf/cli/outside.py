"""Look beyond the profile of a command: how many skills its view does not show, and a shelf with all of them."""

import sys
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from skillshelf.cli.command_table import command_again
from skillshelf.core.console import PathDisplay, note

if TYPE_CHECKING:
    from skillshelf.core.environment import Environment
    from skillshelf.core.values import Catalog
    from skillshelf.hosts.inventory import Inventory
    from skillshelf.shelf import Shelf

__all__ = ["everywhere", "inventory_of", "is_on_terminal", "note_outside", "paths_in", "shared_options"]

_PLACES_SHOWN = 2


def shared_options(values: Mapping[str, Any]) -> str:
    """Return the options that decide what any command sees, as they are typed, with a blank before each."""
    return command_again(values, "inventory", all_hosts=None).removeprefix("skillshelf inventory")


def is_on_terminal() -> bool:
    """Return whether a person reads both what a command prints and what it notes."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))


def paths_in(catalog: "Catalog") -> set[str]:
    """Return the path of every file that a catalog accounts for: its skills, and what is missing from it."""
    from skillshelf.catalog.packed import SkillTable

    skills = set(SkillTable.of(catalog.skills).text("paths").split("\0"))
    skills.update(error.path for error in catalog.errors)
    skills.update(loser.path for loser in catalog.shadowed)
    return skills.union(entry.path for entry in catalog.filtered)


def note_outside(
    values: Mapping[str, Any],
    environment: "Environment",
    custom: Iterable[str],
    shown: Callable[[], AbstractSet[str]],
    command: str = "",
) -> None:
    """Say how many skills of the machine are in none of the paths `shown`, and which `command` lists them.

    No skill is opened for that: what an inventory found counts while no folder has changed, and without it the line
    has no number.
    """
    from collections import Counter

    from skillshelf.catalog.machine_files import known_machine_files
    from skillshelf.core.environment import user_cache_folder

    command = command or command_again(values, "inventory")
    folder = None if values["no_cache"] else user_cache_folder(environment)
    known = known_machine_files(folder, environment, custom) if folder is not None else None
    if known is None:
        note(f"there may be more outside this view: {command}")
        return
    places = Counter(known.outside(shown()))
    if not places:
        return
    display = PathDisplay(environment.cwd, environment.home)
    first = places.most_common(_PLACES_SHOWN if len(places) > _PLACES_SHOWN + 1 else None)
    parts = [
        f"{count} in {display.short(place)}" if len(places) > 1 else display.short(place) for place, count in first
    ]
    rest = places.total() - sum(count for _, count in first)
    parts += [f"{rest} elsewhere"] if rest else []
    note(f"{places.total()} more outside this view: {', '.join(parts)}; to see them: {command}")


def inventory_of(shelf: "Shelf", values: Mapping[str, Any], *, trees: bool) -> "Inventory":
    """Take the inventory of the machine as the options of a command ask for it."""
    from skillshelf.hosts.inventory import take_inventory

    return take_inventory(
        shelf.environment,
        shelf.settings,
        all_hosts=values.get("all_hosts", False),
        trees=trees,
        cache_folder=shelf.cache,
        progress=sys.stderr,
    )


def everywhere(shelf: "Shelf", values: Mapping[str, Any]) -> "Shelf":
    """Return a shelf with the skills of the whole inventory, by the rules of the profile for a single skill."""
    from skillshelf.hosts.inventory import catalog_of
    from skillshelf.shelf import Shelf

    catalog = catalog_of(inventory_of(shelf, values, trees=False), shelf.profile, shelf.settings)
    place = (shelf.environment, shelf.profile, shelf.settings, shelf.trust)
    made = Shelf(*place, use_cache=shelf.cache is not None, catalog=catalog)
    made.progress = shelf.progress
    return made
