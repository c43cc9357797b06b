"""A place to everything the picker asks of it: rows, answers, previews, switches.

Every call may come from a thread of its own; none of them draws.
"""

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from skillshelf.errors import ConfigurationError
from skillshelf.picking import Answer, Line, Look, Row, answer, details, preview, rows_of
from skillshelf.place import expand, user_config_path
from skillshelf.userfile import change_list
from skillshelf.views import Where

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

__all__ = ["Stock"]


class Stock:
    """What is on the shelf now; `open_shelf` opens it anew, with the configuration as it is then."""

    def __init__(self, open_shelf: "Callable[[], Shelf]") -> None:
        self._open = open_shelf
        self._lock = Lock()
        self.shelf = open_shelf()
        self.where = Where(self.shelf.place.cwd, self.shelf.place.home)
        self._rows: Sequence[Row] | None = None

    def rows(self) -> Sequence[Row]:
        """Every row there is; the disk is looked at when they are first asked for."""
        with self._lock:
            if self._rows is None:
                self._rows = rows_of(self.shelf.catalog, self.where)
            return self._rows

    def answer(self, look: Look) -> Answer:
        """The rows that fit a look."""
        return answer(self.shelf, self.rows(), look)

    def about(self, row: Row) -> list[Line]:
        """Everything there is to say about a row, and what a model would get of it."""
        told = preview(self.shelf, row)
        return [*details(row, self.where), *([Line("")] if told else []), *told]

    def switch(self, row: Row) -> str:
        """Disable a skill, or enable it, in the user's own file; says what came of it."""
        if row.skill is None:
            raise ConfigurationError(f"{row.name} is not in the catalog; there is nothing to switch")
        wanted = not row.skill.enabled
        changed = self._change(row.skill.name, self._key(row), row, enable=wanted)
        self._look_again()
        now = next((other.skill for other in self.rows() if other.path == row.path), None)
        if now is not None and now.enabled != wanted:
            state = "enabled" if now.enabled else "disabled"
            return f"{row.name} stays {state}: another configuration file or --config decides"
        return f"{row.name} is {'enabled' if wanted else 'disabled'} ({self.where.short(changed)})"

    def _key(self, row: Row) -> str:
        """The name, as the command disable keeps it; the path where a name alone would mean several."""
        several = sum(other.name == row.name for other in self.rows() if other.skill is not None) > 1
        return row.path if several else row.name

    def _change(self, name: str, key: str, row: Row, *, enable: bool) -> str:
        assert row.skill is not None
        place = self.shelf.place
        skill = row.skill
        base = os.path.dirname(user_config_path(place) or "")
        meant = {name, skill.path, skill.real_path, skill.dir, os.path.dirname(skill.real_path)}

        def is_meant(entry: str) -> bool:
            return (expand(entry, place, base=base) if "/" in entry else entry) in meant

        def change(entries: list[str]) -> list[str]:
            others = [entry for entry in entries if not is_meant(entry)]
            return others if enable else [*others, key]

        return change_list(place, "skills", "disabled", change)[0]

    def _look_again(self) -> None:
        shelf = self._open()
        rows = rows_of(shelf.catalog, self.where)
        with self._lock:
            self.shelf, self._rows = shelf, rows
