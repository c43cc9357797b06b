"""Draw the parts of the picker: the search box, the list of skills, the preview and the menu of hosts.

The widgets draw only the lines that are on the screen. Textual's DataTable builds every row whenever the list changes,
which takes 0.8 s for 10,000 skills, at each key of a search. No text is ever read as markup.
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

from skillshelf.cli.picker.rows import TONES, ScreenLine, SkillRow, Tone, cells_of, columns_for, wrapped
from skillshelf.core.text import shorten, visible, width

__all__ = ["STYLES", "Menu", "Pane", "Rows", "Search"]

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
    Binding("slash", "app.go('search')"),
    Binding("q", "app.stop(1)"),
    Binding("question_mark", "app.help"),
]


class Search(Input):
    """The search box; a question mark in an empty box opens the help."""

    # The terminal sends Enter as a line feed if it was pressed before the terminal entered raw mode.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+j", "submit")]

    async def on_key(self, event: Key) -> None:
        """Open the help for a question mark that begins a query."""
        if event.character == "?" and not self.value:
            event.prevent_default().stop()
            await self.app.run_action("help")


class _Lines(Widget, can_focus=True):
    """A title, and below it as many lines as fit, from line `top` on."""

    top = 0

    @property
    def room(self) -> int:
        """The number of lines that fit below the title."""
        return max(1, self.size.height - 1)

    def head(self) -> list[Segment]:
        """Return the title."""
        raise NotImplementedError

    def line(self, position: int) -> list[Segment]:
        """Return a line of the text, or nothing after its end."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen, exactly as wide as this widget."""
        segments = self.line(self.top + y - 1) if y else self.head()
        return Strip(segments).adjust_cell_length(self.size.width, Style())


class _Choices(_Lines):
    """Lines of which one is under the cursor."""

    count = 0
    cursor = 0

    def move(self, by: int) -> None:
        """Move the cursor within the lines, and scroll so that it stays visible."""
        self.cursor = max(0, min(self.cursor + by, self.count - 1))
        lowest, highest = self.cursor - self.room + 1, self.cursor
        self.top = max(0, min(max(self.top, lowest), highest, self.count - self.room))
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        """Keep the cursor visible."""
        self.move(0)


class Rows(_Choices):
    """The list of skills, with the names of its columns as title."""

    BINDINGS: ClassVar[list[BindingType]] = _LETTERS

    rows: Sequence[SkillRow] = ()
    empty = ""
    busy: str | None = None
    """The path of the row whose state is being changed."""

    @property
    def row(self) -> SkillRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def show(self, rows: Sequence[SkillRow], *, empty: str, follow: str | None) -> None:
        """Show other rows, or the text `empty`; the cursor goes to the path `follow`, or else to the first row."""
        self.rows, self.count, self.empty = rows, len(rows), empty
        self.cursor = next((n for n, row in enumerate(rows) if row.path == follow), 0) if follow else 0
        self.move(0)

    def head(self) -> list[Segment]:
        """Return the names of the columns."""
        columns = columns_for(self.size.width)
        return [Segment(f" {column.title:<{column.cells}}"[: column.cells + 1], STYLES["quiet"]) for column in columns]

    def line(self, position: int) -> list[Segment]:
        """Return a row with the state in its colour, or the text for an empty list."""
        if position >= self.count:
            return [Segment(f" {shorten(visible(self.empty), self.size.width - 2)}")] if position == 0 else []
        row, columns = self.rows[position], columns_for(self.size.width)
        chosen = position == self.cursor
        segments: list[Segment] = []
        for column, text in zip(columns, cells_of(row, columns), strict=True):
            is_state = column.title == "STATE"
            shown = "…" if is_state and row.path == self.busy else text
            mark = ">" if chosen and not segments else " "
            style = _CHOSEN if chosen else STYLES[TONES[row.state] if is_state else "plain"]
            segments.append(Segment(mark + shown + " " * (column.cells - width(shown)), style))
        return segments


class Menu(_Choices):
    """A few choices, one on each line."""

    def __init__(self, title: str, choices: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._title, self._choices = title, choices
        self.count, self.cursor = len(choices), chosen

    def head(self) -> list[Segment]:
        """Return the title."""
        return [Segment(shorten(self._title, self.size.width), STYLES["quiet"])]

    def line(self, position: int) -> list[Segment]:
        """Return a choice, marked if it is under the cursor."""
        if position >= self.count:
            return []
        chosen = position == self.cursor
        text = f"{'>' if chosen else ' '}{visible(self._choices[position])}"
        return [Segment(text.ljust(self.size.width), _CHOSEN if chosen else STYLES["plain"])]


class Pane(_Lines):
    """A text to read, below a title that says which part of it is visible."""

    BINDINGS: ClassVar[list[BindingType]] = _LETTERS

    def __init__(self, title: str = "", lines: Sequence[ScreenLine] = (), *, part: str) -> None:
        super().__init__(id=part)
        self._title, self._lines = title, lines
        self._wrapped: list[ScreenLine] = []

    def show(self, title: str, lines: Sequence[ScreenLine], *, stay: bool = False) -> None:
        """Show another text, from its beginning unless the reader is to `stay` at the same line."""
        self._title, self._lines = title, lines
        self.top = self.top if stay else 0
        self._wrap()

    def move(self, by: int) -> None:
        """Scroll within the text."""
        self.top = max(0, min(self.top + by, len(self._wrapped) - self.room))
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        """Wrap the text again."""
        self._wrap()

    def _wrap(self) -> None:
        self._wrapped = wrapped(self._lines, self.size.width - 2)
        self.move(0)

    def head(self) -> list[Segment]:
        """Return a rule with the title and, of a long text, the visible lines."""
        count = len(self._wrapped)
        part = f" {self.top + 1}-{min(self.top + self.room, count)} of {count} ─" if count > self.room else ""
        title = shorten(visible(self._title), max(4, self.size.width - len(part) - 5))
        head = f"── {title} " if title else ""
        rule = "─" * max(0, self.size.width - width(head) - len(part))
        return [Segment(head + rule + part, STYLES["strong" if self.has_focus else "quiet"])]

    def line(self, position: int) -> list[Segment]:
        """Return a line of the wrapped text."""
        lines = self._wrapped[position : position + 1]
        return [Segment(f" {line.text}", STYLES[line.tone]) for line in lines]
