"""Rows and lines to a screen: the parts of the picker that draw.

Each draws line by line, and only the lines that are seen; no text is ever read as markup.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from skillshelf.cli.picker.rows import TONES, Column, ScreenLine, SkillRow, Tone, cells_of, columns_for, wrapped
from skillshelf.core.text import shorten, visible, width

__all__ = ["Bar", "Menu", "Pane", "Rows", "Search"]

STYLES: Mapping[Tone, Style] = {
    "plain": Style(),
    "quiet": Style(dim=True),
    "strong": Style(bold=True),
    "good": Style(color="green"),
    "bad": Style(color="red"),
    "doubt": Style(color="yellow"),
}
_CHOSEN = Style(reverse=True)

_LETTERS: list[BindingType] = [
    Binding("t,space", "app.switch"),
    Binding("s", "app.scope"),
    Binding("o", "app.host"),
    Binding("p", "app.problems"),
    Binding("slash", "app.search"),
    Binding("q", "app.cancel"),
    Binding("question_mark", "app.help"),
]


class Search(Input):
    """The box that is typed into; a question mark in an empty one asks for help."""

    # Enter is a line feed if it was pressed before the terminal was told to pass keys on as they are.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+j", "submit")]

    async def on_key(self, event: Key) -> None:
        """Open the help for a question mark that begins a query."""
        if event.character == "?" and not self.value:
            event.prevent_default().stop()
            await self.app.run_action("help")


class _Lines(Widget):
    """A part of the screen that shows some of many lines."""

    top = 0

    def line(self, y: int) -> list[Segment]:
        """What stands on a line of the screen."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """The line, exactly as wide as this part."""
        return Strip(self.line(y)).adjust_cell_length(self.size.width, Style())


class Rows(_Lines, can_focus=True):
    """The list, with its heads in the first line."""

    BINDINGS: ClassVar[list[BindingType]] = _LETTERS

    rows: Sequence[SkillRow] = ()
    cursor = 0
    empty = ""
    switching: str | None = None

    @property
    def room(self) -> int:
        """How many rows are seen at once."""
        return max(1, self.size.height - 1)

    @property
    def row(self) -> SkillRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, rows: Sequence[SkillRow], *, empty: str, follow: str | None) -> None:
        """Show other rows; the cursor follows a path where it can, else it goes to the first."""
        self.rows, self.empty = rows, empty
        found = (n for n, row in enumerate(rows) if row.path == follow) if follow else iter(())
        self.cursor = next(found, 0)
        self._keep_in_sight()

    def move(self, by: int) -> None:
        """Move the cursor, as far as there are rows."""
        self.cursor = max(0, min(self.cursor + by, len(self.rows) - 1))
        self._keep_in_sight()

    def on_resize(self, event: Resize) -> None:
        """Keep the cursor in sight."""
        self._keep_in_sight()

    def _keep_in_sight(self) -> None:
        low, high = self.cursor - self.room + 1, self.cursor
        self.top = max(0, min(max(self.top, low), high, len(self.rows) - self.room))
        self.refresh()

    def line(self, y: int) -> list[Segment]:
        """The heads, a row, or why there is none."""
        columns = columns_for(self.size.width)
        if y == 0:
            titles = [f" {column.title:<{column.cells}}"[: column.cells + 1] for column in columns]
            return [Segment(title, STYLES["quiet"]) for title in titles]
        position = self.top + y - 1
        if position < len(self.rows):
            return self._row(self.rows[position], columns, chosen=position == self.cursor)
        return [Segment(f" {shorten(visible(self.empty), self.size.width - 2)}")] if y == 1 else []

    def _row(self, row: SkillRow, columns: Sequence[Column], *, chosen: bool) -> list[Segment]:
        segments: list[Segment] = []
        for column, text in zip(columns, cells_of(row, columns), strict=True):
            if column.title == "STATE" and row.path == self.switching:
                text = "…"
            style = STYLES[TONES[row.state]] if column.title == "STATE" else STYLES["plain"]
            first = ">" if chosen and not segments else " "
            padded = first + text + " " * (column.cells - width(text))
            segments.append(Segment(padded, _CHOSEN if chosen else style))
        return segments


class Pane(_Lines, can_focus=True):
    """Lines to read, below a title."""

    BINDINGS: ClassVar[list[BindingType]] = _LETTERS

    def __init__(self, title: str = "", lines: Sequence[ScreenLine] = (), *, part: str) -> None:
        super().__init__(id=part)
        self._title, self._whole = title, lines
        self._broken: list[ScreenLine] = []

    def show(self, title: str, lines: Sequence[ScreenLine], *, stay: bool = False) -> None:
        """Show other lines, from their beginning unless the reader is to stay where they are."""
        self._title, self._whole = title, lines
        self.top = self.top if stay else 0
        self._break()

    def move(self, by: int) -> None:
        """Scroll, as far as there are lines."""
        self.top = max(0, min(self.top + by, len(self._broken) - self.room))
        self.refresh()

    @property
    def room(self) -> int:
        """How many lines are seen at once."""
        return max(1, self.size.height - 1)

    def on_resize(self, event: Resize) -> None:
        """Break the lines anew."""
        self._break()

    def _break(self) -> None:
        self._broken = wrapped(self._whole, self.size.width - 2)
        self.move(0)

    def line(self, y: int) -> list[Segment]:
        """The title with the part that is seen, or a line."""
        if y == 0:
            return self._head()
        position = self.top + y - 1
        if position >= len(self._broken):
            return []
        line = self._broken[position]
        return [Segment(f" {line.text}", STYLES[line.tone])]

    def _head(self) -> list[Segment]:
        more = len(self._broken) > self.room
        last = min(self.top + self.room, len(self._broken))
        part = f" {self.top + 1}-{last} of {len(self._broken)} ─" if more else ""
        title = shorten(visible(self._title), max(4, self.size.width - len(part) - 5))
        head = f"── {title} " if title else ""
        rule = "─" * max(0, self.size.width - width(head) - len(part))
        return [Segment(head + rule + part, STYLES["strong" if self.has_focus else "quiet"])]


class Menu(_Lines, can_focus=True):
    """A few choices, one a line."""

    def __init__(self, choices: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._choices = choices
        self.cursor = chosen

    def move(self, by: int) -> None:
        """Move the cursor, as far as there are choices."""
        self.cursor = max(0, min(self.cursor + by, len(self._choices) - 1))
        self.refresh()

    def line(self, y: int) -> list[Segment]:
        """A choice; the list moves only when the cursor would leave it."""
        position = max(0, self.cursor - self.size.height + 1) + y
        if position >= len(self._choices):
            return []
        chosen = position == self.cursor
        text = f"{'>' if chosen else ' '}{visible(self._choices[position])}"
        return [Segment(text.ljust(self.size.width), _CHOSEN if chosen else STYLES["plain"])]


class Bar(_Lines):
    """One line of text."""

    def __init__(self, part: str, tone: Tone = "plain", text: str = "") -> None:
        super().__init__(id=part)
        self._line = ScreenLine(text, tone)

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Show another text."""
        self._line = ScreenLine(visible(text), tone)
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        """Draw again: what was drawn before the width was known may be empty."""
        self.refresh()

    def line(self, y: int) -> list[Segment]:
        """The text, cut to fit."""
        return [Segment(shorten(self._line.text, self.size.width), STYLES[self._line.tone])]
