"""A stock to a choice: the terminal picker. Whatever takes time is done in a thread, so that a key is never late."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.events import Key, Resize
from textual.screen import ModalScreen
from textual.widgets import Input

from skillshelf.cli.picker.model import Errands, PickerModel
from skillshelf.cli.picker.rows import HELP, SHOWN, PickerAnswer, RowFilter, ScreenLine, Shown, SkillRow
from skillshelf.cli.picker.widgets import Bar, Menu, Pane, Rows, Search
from skillshelf.core.text import shorten, visible, width
from skillshelf.errors import SkillError

__all__ = ["Picker"]

_KEYS = (
    # What the last line says, and from how many cells on it says so.
    (0, "↵ pick"),
    (60, "{ctrl}T on/off"),
    (60, "{ctrl}S scope"),
    (60, "{ctrl}O host"),
    (60, "{ctrl}P problems"),
    (30, "Tab {next}"),
    (0, "{help} help"),
    (0, "Esc quit"),
)

_SHOWN_AS: Mapping[Shown, Sequence[str]] = {"skills": (), "all": ("with problems",), "problems": ("problems",)}

Part = Literal["search", "rows", "pane"]
_ORDER: tuple[Part, ...] = ("search", "rows", "pane")
_NEXT: dict[Part, str] = {"search": "list", "rows": "preview", "pane": "search"}

# From so many columns on list and preview stand side by side; with fewer columns and lines only one of them is seen.
_WIDE, _HIGH = 120, 16
_WIDTHS = [(0, "-narrow"), (_WIDE, "-wide")]

_SLOW = 0.2
"""Seconds after which it is said that a search is still going on."""

_STYLE = """
Screen { background: ansi_default; color: ansi_default; layout: vertical; overflow: hidden; }
ModalScreen { background: ansi_default; }
Pane, Rows, Menu { background: ansi_default; color: ansi_default; }
#top { height: 1; }
#prompt { width: 2; }
#search, #search:focus {
    width: 1fr; height: 1; border: none; padding: 0;
    background: ansi_default; color: ansi_default; background-tint: transparent;
}
#search > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
#search > .input--placeholder { background: ansi_default; color: ansi_default; text-style: dim; }
#status { width: auto; }
#body { height: 1fr; layout: vertical; }
#rows { height: 2fr; }
#pane { height: 3fr; }
#keys { height: 1; }
.-wide #body { layout: horizontal; }
.-wide #rows { width: 11fr; height: 1fr; }
.-wide #pane { width: 9fr; height: 1fr; margin-left: 1; }
ModalScreen > Pane { height: 100%; }
ModalScreen > Bar { height: 1; }
ModalScreen > Menu { height: 1fr; }
"""


class _Help(ModalScreen[None]):
    """What the keys do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,f1,tab", "dismiss", priority=True),
        Binding("up", "move(-1)"),
        Binding("down", "move(1)"),
        Binding("pageup", "move(-10)"),
        Binding("pagedown,space", "move(10)"),
    ]

    def compose(self) -> ComposeResult:
        """One page of text."""
        yield Pane("skillshelf pick: keys (Esc closes)", [ScreenLine(line) for line in HELP.splitlines()], part="help")

    def action_move(self, by: int) -> None:
        """Scroll."""
        self.query_one(Pane).move(by)


class _HostMenu(ModalScreen[str]):
    """The hosts there are; the answer is empty for all of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # None with priority: it would overtake keys that were pressed before it.
        Binding("escape,q", "dismiss"),
        Binding("enter", "choose"),
        Binding("up", "move(-1)"),
        Binding("down", "move(1)"),
    ]

    def __init__(self, hosts: Sequence[str], chosen: str | None) -> None:
        super().__init__()
        self._names = ["", *hosts]
        self._chosen = self._names.index(chosen or "")

    def compose(self) -> ComposeResult:
        """One line for each."""
        yield Bar("title", "quiet", "Only what this host tells its model (Enter takes it, Esc closes)")
        yield Menu(["any host", *self._names[1:]], self._chosen)

    def action_move(self, by: int) -> None:
        """Move to another host."""
        self.query_one(Menu).move(by)

    def action_choose(self) -> None:
        """Take this host."""
        self.dismiss(self._names[self.query_one(Menu).cursor])


class Picker(App[SkillRow]):
    """The picker; it returns the chosen row, or nothing."""

    CSS = _STYLE
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("escape", "cancel"),
        Binding("enter,ctrl+j", "pick"),
        Binding("up", "move(-1)"),
        Binding("down", "move(1)"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown", "page(1)"),
        Binding("tab", "next(1)", priority=True),
        Binding("shift+tab", "next(-1)", priority=True),
        Binding("ctrl+t", "switch"),
        Binding("ctrl+s", "scope"),
        Binding("ctrl+o", "host"),
        Binding("ctrl+p", "problems"),
        Binding("f1", "help"),
    ]

    def __init__(self, stock: PickerModel, *, query: str = "", takes_problems: bool = False) -> None:
        # The terminal's own colours, whatever they are.
        super().__init__(ansi_color=True)
        self.stock = stock
        self.failure: Exception | None = None
        self._look = RowFilter(query)
        self._takes_problems = takes_problems
        self._answer: PickerAnswer | None = None
        self._asked: str | None = None
        self._switches = 0
        self._picks_next = False
        self._pane_tells = False
        self._part: Part = "search"
        self._listing = Errands("picker-list", self.call_later)
        self._reading = Errands("picker-pane", self.call_later)
        self._preparing = Errands("picker-index", self.call_later)
        self._asking = Errands("picker-hosts", self.call_later)

    def compose(self) -> ComposeResult:
        """Search on top, list and preview below, keys at the bottom."""
        with Horizontal(id="top"):
            yield Bar("prompt", "strong", "> ")
            yield Search(
                self._look.query, placeholder="type to search", select_on_focus=False, id="search", compact=True
            )
            yield Bar("status", "quiet")
        with Container(id="body"):
            yield Rows(id="rows")
            yield Pane(part="pane")
        yield Bar("keys", "quiet")

    def on_mount(self) -> None:
        """Ask for the first rows."""
        self.query_one(Input).cursor_blink = False
        self._rows.show((), empty="looking at the disk …", follow=None)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, 128 + number)
        self._ask()

    def on_resize(self, event: Resize) -> None:
        """Say as much as there is room for, once the new size is known."""
        for catch_up in (self._arrange, self._say_keys, self._say_state):
            self.call_later(catch_up)

    # What is shown --------------------------------------------------------------------------------

    @property
    def _rows(self) -> Rows:
        return self.query_one("#rows", Rows)

    @property
    def _pane(self) -> Pane:
        return self.query_one("#pane", Pane)

    def _ask(self, *, follow: str | None = None) -> None:
        """Ask for the rows of this look; they come when they are there."""
        look = self._look
        self._listing.ask("answer", lambda: self.stock.answer(look), lambda result: self._show(result, follow))
        self.set_timer(_SLOW, self._say_state)

    def _show(self, result: Any, follow: str | None) -> None:
        if self._failed(result):
            return
        if self._answer is None:
            self._preparing.ask("index", self.stock.make_index, self._indexed)
            self._asking.ask("hosts", self.stock.ask_hosts, self._hosts_answered)
        self._answer = result
        self._rows.show(result.rows, empty=self._nothing(result.look), follow=follow)
        self._say_state()
        self._read()
        if self._picks_next and result.look == self._look:
            self.action_pick()

    def _indexed(self, result: object) -> None:
        """Search once more: so far only names were compared."""
        if not self._failed(result) and self._look.query.strip():
            row = self._rows.row
            self._ask(follow=row.path if row and self._rows.cursor else None)

    def _hosts_answered(self, result: object) -> None:
        if not self._failed(result):
            self._read(stay=True)

    def _nothing(self, look: RowFilter) -> str:
        if look.query.strip():
            return f"nothing fits {look.query.strip()!r}"
        if look != RowFilter():
            return "nothing here"
        return "no skills here; skillshelf list says where they were looked for"

    def _read(self, *, stay: bool = False) -> None:
        """Show what there is to say about the row under the cursor."""
        row = self._rows.row
        if row is None:
            self._pane.show("", ())
            return
        self._reading.ask("about", lambda: self.stock.about(row), lambda lines: self._show_pane(row, lines, stay=stay))

    def _show_pane(self, row: SkillRow, lines: Any, *, stay: bool) -> None:
        # A message that stands in the preview is not taken away before it was read.
        if not self._failed(lines) and row is self._rows.row and not (stay and self._pane_tells):
            self._pane_tells = False
            self._pane.show(row.name, lines, stay=stay)

    def _failed(self, result: object) -> bool:
        """Whether a job failed: what the machine or a file did is said, anything else is our mistake."""
        if isinstance(result, SkillError | OSError):
            self._say(str(result), "bad")
            return True
        if isinstance(result, Exception):
            raise result
        return False

    # What is said ---------------------------------------------------------------------------------

    def _say(self, text: str, tone: Literal["strong", "bad"] = "strong") -> None:
        """One line at the bottom, until the next key; what is longer stands in the preview too."""
        self.query_one("#keys", Bar).say(text, tone)
        if width(visible(text)) > self.size.width:
            self._pane_tells = True
            self._pane.show("", [ScreenLine(visible(text), tone)])

    def _say_keys(self) -> None:
        typing = self._part == "search"
        keys = {"ctrl": "^" if typing else "", "help": "F1" if typing else "?", "next": _NEXT[self._part]}
        words = [text.format(**keys) for least, text in _KEYS if self.size.width >= least]
        self.query_one("#keys", Bar).say("  ".join(words), "quiet")

    def _say_state(self) -> None:
        if self._answer is None:
            return
        look = self._answer.look
        count = f"{len(self._answer.rows):,}{'+' if self._answer.more else ''}"
        parts = [f"{count} of {self._answer.total:,}" if self.size.width >= 60 else count]
        parts += [*filter(None, (look.scope, look.host)), *_SHOWN_AS[look.shown]]
        if self._asked is not None:
            parts.append(f"asking {self._asked} …")
        elif self._look != look or not self._answer.ranked:
            parts.append("searching …")
        status = shorten(" · ".join(parts), max(4, self.size.width - 12))
        bar = self.query_one("#status", Bar)
        bar.styles.width = len(status) + 1
        bar.say(status, "quiet")

    # What keys do ---------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """A key takes a message away."""
        self._say_keys()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search for what stands in the box now."""
        if event.value != self._look.query:
            self._look = self._look._replace(query=event.value)
            self._picks_next = False
            self._say_keys()
            self._ask()

    def on_input_submitted(self) -> None:
        """Take the row under the cursor."""
        self.action_pick()

    def action_pick(self) -> None:
        """Leave with the row under the cursor; with the first of an answer that is not there yet."""
        self._picks_next = self._answer is None or self._answer.look != self._look
        row = self._rows.row
        if row is None or self._picks_next:
            return
        if row.skill is None and not self._takes_problems:
            self._say(f"{row.name} is not in the catalog ({row.state}); pick --path gives its folder", "bad")
            return
        self.exit(row)

    def action_cancel(self) -> None:
        """Leave without a choice."""
        self._stop(1)

    def action_interrupt(self) -> None:
        """Leave as an interrupted program does."""
        self._stop(128 + signal.SIGINT)

    def _stop(self, code: int) -> None:
        self.exit(None, return_code=code)

    def action_move(self, by: int) -> None:
        """Move the cursor, or scroll what is read."""
        if self._part == "pane":
            self._pane.move(by)
        elif self._rows.row is not None:
            self._rows.move(by)
            self._read()

    def action_page(self, by: int) -> None:
        """Move by as much as is seen."""
        self.action_move(by * (self._pane if self._part == "pane" else self._rows).room)

    def action_next(self, by: int) -> None:
        """Go to the next part, around and around."""
        if not isinstance(self.screen, ModalScreen):
            self._go(_ORDER[(_ORDER.index(self._part) + by) % len(_ORDER)])

    def action_search(self) -> None:
        """Go to the search box."""
        self._go("search")

    def _go(self, part: Part) -> None:
        self._part = part
        self._arrange()
        self.screen.set_focus(self.query_one(f"#{part}"))
        self._say_keys()

    def _arrange(self) -> None:
        """Where there is no room for both, reading takes the place of the list."""
        small = self.size.width < _WIDE and self.size.height < _HIGH
        self._rows.display = not small or self._part != "pane"
        self._pane.display = not small or self._part == "pane"

    def action_switch(self) -> None:
        """Disable or enable the skill under the cursor."""
        row = self._rows.row
        if row is None:
            return
        self._switches += 1
        self._rows.switching = row.path
        self._rows.refresh()
        self._listing.ask(
            ("switch", self._switches), lambda: self.stock.switch(row), lambda said: self._switched(row, said)
        )

    def _switched(self, row: SkillRow, said: Any) -> None:
        self._rows.switching = None
        self._rows.refresh()
        if not self._failed(said):
            self._say(said)
            self._ask(follow=row.path)

    def action_scope(self) -> None:
        """Show the next scope only; after the last, all."""
        if self._answer is None:
            return
        scopes = [None, *dict.fromkeys(row.scope for row in self.stock.rows())]
        self._change(scope=_after(scopes, self._look.scope))

    def action_host(self) -> None:
        """Let the person choose a host, and show what it tells its model."""
        self.push_screen(_HostMenu(self.stock.hosts, self._look.host), self._ask_host)

    def _ask_host(self, choice: str | None) -> None:
        if choice is None:
            return
        self._asked = choice or None
        if not choice:
            self._change(host=None)
            return
        self._say_state()
        self._asking.ask("host", lambda: self.stock.ask_host(choice), lambda result: self._answered(choice, result))

    def _answered(self, host: str, result: object) -> None:
        if host != self._asked:
            # Another one was chosen in the meantime.
            return
        self._asked = None
        self._say_state()
        if not self._failed(result):
            self._change(host=host)

    def action_problems(self) -> None:
        """Show skills, then everything, then problems."""
        self._change(shown=_after(SHOWN, self._look.shown))

    def action_help(self) -> None:
        """Say what the keys do."""
        self.push_screen(_Help())

    def _change(self, **changes: Any) -> None:
        self._look = self._look._replace(**changes)
        row = self._rows.row
        self._ask(follow=row.path if row else None)

    # What goes wrong ------------------------------------------------------------------------------

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print a page about it; whoever runs this says it in one line.
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        self._exit_renderables.clear()


def _after(values: Sequence[Any], value: Any) -> Any:
    place = values.index(value) if value in values else -1
    return values[(place + 1) % len(values)]
