"""Run the terminal picker: a search box, a list of skills and a preview.

Whatever takes time runs in a thread, so that the picker answers every key at once.
"""

import asyncio
import signal
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, ClassVar, Literal, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.events import Key, Resize
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.worker import Worker, WorkerFailed

from skillshelf.cli.picker.model import PickerModel
from skillshelf.cli.picker.rows import HELP, SHOWN, MatchingRows, RowFilter, ScreenLine, Shown, SkillRow, Tone
from skillshelf.cli.picker.widgets import STYLES, Menu, Pane, Rows, Search
from skillshelf.config.hosts import HOSTS
from skillshelf.core.text import shorten, visible, width
from skillshelf.errors import SkillError

__all__ = ["Picker"]

_KEYS = (
    # The texts of the last line, each with the width of the screen from which on it is shown.
    (0, "↵ pick"),
    (60, "{ctrl}T on/off"),
    (60, "{ctrl}S scope"),
    (60, "{ctrl}O host"),
    (60, "{ctrl}P problems"),
    (30, "Tab {next}"),
    (0, "{help} help"),
    (0, "Esc quit"),
)

_FILTER_NAMES: Mapping[Shown, Sequence[str]] = {"skills": (), "all": ("and problems",), "problems": ("problems",)}

Part = Literal["search", "rows", "pane"]
_ORDER: tuple[Part, ...] = ("search", "rows", "pane")
_NEXT: dict[Part, str] = {"search": "list", "rows": "preview", "pane": "search"}

# From this width on, list and preview are side by side; below both sizes only one of them is visible.
_WIDE, _HIGH = 120, 16
_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]

_SLOW = 0.2
"""Seconds after which the status line says that a search is still running."""

_STYLE = """
Screen { background: ansi_default; color: ansi_default; layout: vertical; overflow: hidden; }
ModalScreen { background: ansi_default; }
Pane, Rows, Menu, Static { background: ansi_default; color: ansi_default; }
Static { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
#top { height: 1; }
#prompt { width: 2; }
#search, #search:focus {
    width: 1fr; height: 1; border: none; padding: 0;
    background: ansi_default; color: ansi_default; background-tint: transparent;
}
#search > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
#search > .input--placeholder { background: ansi_default; color: ansi_default; text-style: dim; }
#status { width: auto; margin-right: 1; }
#body { height: 1fr; layout: vertical; }
#rows { height: 2fr; }
#pane { height: 3fr; }
.-wide #body { layout: horizontal; }
.-wide #rows { width: 11fr; height: 1fr; }
.-wide #pane { width: 9fr; height: 1fr; margin-left: 1; }
ModalScreen > Pane, ModalScreen > Menu { height: 100%; }
"""

_Result = TypeVar("_Result")


class _Help(ModalScreen[None]):
    """The page that explains the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,f1,tab", "dismiss", priority=True),
        Binding("up", "move(-1)"),
        Binding("down", "move(1)"),
        Binding("pageup", "move(-10)"),
        Binding("pagedown,space", "move(10)"),
    ]

    def compose(self) -> ComposeResult:
        """Show one page of text."""
        yield Pane("skillshelf pick: keys (Esc closes)", [ScreenLine(line) for line in HELP.splitlines()], part="help")

    def action_move(self, by: int) -> None:
        """Scroll."""
        self.query_one(Pane).move(by)


class _HostMenu(ModalScreen[str]):
    """The menu of hosts; it returns an empty text for any host."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # None of these has priority: it would overtake keys that were pressed before it.
        Binding("escape,q", "dismiss"),
        Binding("enter", "choose"),
        Binding("up", "move(-1)"),
        Binding("down", "move(1)"),
    ]

    def __init__(self, chosen: str | None) -> None:
        super().__init__()
        self._names = ["", *HOSTS]
        self._chosen = self._names.index(chosen or "")

    def compose(self) -> ComposeResult:
        """Show one line for each host."""
        title = "Show the skills that this host gives to its model (Enter selects, Esc closes)"
        yield Menu(title, ["any host", *HOSTS], self._chosen)

    def action_move(self, by: int) -> None:
        """Move to another host."""
        self.query_one(Menu).move(by)

    def action_choose(self) -> None:
        """Select this host."""
        self.dismiss(self._names[self.query_one(Menu).cursor])


class Picker(App[SkillRow]):
    """The picker; it returns the chosen row, or None."""

    CSS = _STYLE
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", f"stop({128 + signal.SIGINT})", priority=True),
        Binding("escape", "stop(1)"),
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

    def __init__(self, model: PickerModel, *, query: str = "", takes_problems: bool = False) -> None:
        # The terminal's own colours, whatever they are.
        super().__init__(ansi_color=True)
        self.model = model
        self.failure: Exception | None = None
        self._filter = RowFilter(query)
        self._takes_problems = takes_problems
        self._answer: MatchingRows | None = None
        self._loading_host: str | None = None
        self._picks_next = False
        self._pane_has_message = False
        self._part: Part = "search"
        self._locks: dict[str, Lock] = defaultdict(Lock)

    def compose(self) -> ComposeResult:
        """Lay out the search box on top, list and preview below, keys at the bottom."""
        with Horizontal(id="top"):
            yield Static(Text("> ", STYLES["strong"]), id="prompt")
            query = self._filter.query
            yield Search(query, placeholder="type to search", select_on_focus=False, id="search", compact=True)
            yield Static(id="status")
        with Container(id="body"):
            yield Rows(id="rows")
            yield Pane(part="pane")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Request the first rows."""
        self.query_one(Input).cursor_blink = False
        self._rows.show((), empty="reading skills …", follow=None)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.action_stop, 128 + number)
        self._request_rows()

    def on_resize(self, event: Resize) -> None:
        """Arrange the parts again once the new size is known."""
        for update in (self._arrange, self._show_keys, self._show_status):
            self.call_later(update)

    # Background jobs ------------------------------------------------------------------------------

    def _start(
        self, group: str, job: Callable[[], _Result], then: Callable[[_Result], object], *, exclusive: bool = True
    ) -> None:
        """Run a job in a thread and pass its result to `then`; a newer exclusive job of the group replaces it."""

        async def work() -> None:
            try:
                result = await _in_thread(job, self._locks[group])
            except (SkillError, OSError) as error:
                self._rows.busy = self._loading_host = None
                self._rows.refresh()
                self._show_status()
                self._say(str(error), "bad")
            else:
                then(result)

        _worker: Worker[None] = self.run_worker(work, group=group, exclusive=exclusive)

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print a page about it; the command prints one line.
        error = error.error if isinstance(error, WorkerFailed) and isinstance(error.error, Exception) else error
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        self._exit_renderables.clear()

    # List and preview -----------------------------------------------------------------------------

    @property
    def _rows(self) -> Rows:
        return self.query_one("#rows", Rows)

    @property
    def _pane(self) -> Pane:
        return self.query_one("#pane", Pane)

    def _request_rows(self, *, follow: str | None = None) -> None:
        wanted = self._filter
        self._start("rows", lambda: self.model.select(wanted), lambda answer: self._show_rows(answer, follow))
        self.set_timer(_SLOW, self._show_status)

    def _show_rows(self, answer: MatchingRows, follow: str | None) -> None:
        if self._answer is None:
            self._start("index", self.model.build_index, self._indexed)
            self._start("survey", self.model.survey_hosts, lambda _: self._request_preview(stay=True))
        self._answer = answer
        self._rows.show(answer.rows, empty=self._text_if_empty(), follow=follow)
        self._show_status()
        self._request_preview()
        if self._picks_next:
            self.action_pick()

    def _indexed(self, _: None) -> None:
        """Search again: without the index only names were compared."""
        if self._filter.query.strip():
            row = self._rows.row
            self._request_rows(follow=row.path if row and self._rows.cursor else None)

    def _text_if_empty(self) -> str:
        if self._filter.query.strip():
            return f"no skill matches {self._filter.query.strip()!r}"
        if self._filter != RowFilter():
            return "no skill matches this filter"
        return "no skills here; skillshelf list shows the folders that were searched"

    def _request_preview(self, *, stay: bool = False) -> None:
        """Show details of the row under the cursor."""
        row = self._rows.row
        if row is None:
            self._pane.show("", ())
            return

        def show(lines: list[ScreenLine]) -> None:
            # A message in the preview stays until the person moves on.
            if row is self._rows.row and not (stay and self._pane_has_message):
                self._pane_has_message = False
                self._pane.show(row.name, lines, stay=stay)

        host = self._answer.row_filter.host if self._answer is not None else None
        self._start("preview", lambda: self.model.describe(row, host), show)

    # Messages -------------------------------------------------------------------------------------

    def _say(self, text: str, tone: Literal["strong", "bad"] = "strong") -> None:
        """Show a message in the last line until the next key, and in the preview too if it is longer."""
        self._write("keys", text, tone)
        if width(visible(text)) > self.size.width:
            self._pane_has_message = True
            self._pane.show("", [ScreenLine(visible(text), tone)])

    def _write(self, part: str, text: str, tone: Tone) -> None:
        self.query_one(f"#{part}", Static).update(Text(visible(text), STYLES[tone]))

    def _show_keys(self) -> None:
        typing = self._part == "search"
        keys = {"ctrl": "^" if typing else "", "help": "F1" if typing else "?", "next": _NEXT[self._part]}
        words = [text.format(**keys) for least, text in _KEYS if self.size.width >= least]
        self._write("keys", "  ".join(words), "quiet")

    def _show_status(self) -> None:
        if self._answer is None:
            return
        shown = self._answer.row_filter
        count = f"{len(self._answer.rows):,}{'+' if self._answer.more else ''}"
        words = [f"{count} of {self._answer.total:,}" if self.size.width >= 60 else count]
        words += [*filter(None, (shown.scope, shown.host)), *_FILTER_NAMES[shown.shown]]
        if self._loading_host is not None:
            words.append(f"loading {self._loading_host} …")
        elif self._filter != shown or not self._answer.ranked:
            words.append("searching …")
        else:
            words += ["no clear match"] if self._answer.weak else []
            words += self._answer.notes
        self._write("status", shorten(" · ".join(words), max(4, self.size.width - 12)), "quiet")

    # Keys -----------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Replace a message by the keys."""
        self._show_keys()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search for the text of the box."""
        if event.value != self._filter.query:
            self._filter = self._filter._replace(query=event.value)
            self._picks_next = False
            self._show_keys()
            self._request_rows()

    def on_input_submitted(self) -> None:
        """Pick the row under the cursor."""
        self.action_pick()

    def action_pick(self) -> None:
        """Leave with the row under the cursor, or with the first row of a search that is still running."""
        self._picks_next = self._answer is None or self._answer.row_filter != self._filter
        row = self._rows.row
        if row is None or self._picks_next:
            return
        if row.skill is None and not self._takes_problems:
            self._say(f"{row.name} is not in the catalog ({row.state}); pick --path prints its folder", "bad")
            return
        self.exit(row)

    def action_stop(self, code: int) -> None:
        """Leave without a choice."""
        self.exit(None, return_code=code)

    def action_move(self, by: int) -> None:
        """Move the cursor, or scroll the preview if it has the focus."""
        if self._part == "pane":
            self._pane.move(by)
        elif self._rows.row is not None:
            self._rows.move(by)
            self._request_preview()

    def action_page(self, by: int) -> None:
        """Move by one screen."""
        self.action_move(by * (self._pane if self._part == "pane" else self._rows).room)

    def action_next(self, by: int) -> None:
        """Give the focus to the next part, or to the one before it."""
        if not isinstance(self.screen, ModalScreen):
            self.action_go(_ORDER[(_ORDER.index(self._part) + by) % len(_ORDER)])

    def action_go(self, part: Part) -> None:
        """Give the focus to a part."""
        self._part = part
        self._arrange()
        self.screen.set_focus(self.query_one(f"#{part}"))
        self._show_keys()

    def _arrange(self) -> None:
        """Show either the list or the preview on a screen that is too small for both."""
        small = self.size.width < _WIDE and self.size.height < _HIGH
        self._rows.display = not small or self._part != "pane"
        self._pane.display = not small or self._part == "pane"

    def action_switch(self) -> None:
        """Disable or enable the skill under the cursor."""
        row = self._rows.row
        if row is None:
            return

        def toggled(message: str) -> None:
            self._rows.busy = None
            self._say(message)
            self._request_rows(follow=row.path)

        self._rows.busy = row.path
        self._rows.refresh()
        self._start("toggle", lambda: self.model.toggle(row), toggled, exclusive=False)

    def action_scope(self) -> None:
        """Show only the next scope; after the last one, all."""
        if self._answer is not None:
            scopes = [None, *dict.fromkeys(row.scope for row in self.model.rows(self._filter.host))]
            self._change_filter(scope=_after(scopes, self._filter.scope))

    def action_host(self) -> None:
        """Open the menu of hosts, and show the skills that the selected one gives to its model."""
        self.push_screen(_HostMenu(self._filter.host), self._select_host)

    def _select_host(self, host: str | None) -> None:
        if host is None:
            return

        def loaded(_: None) -> None:
            self._loading_host = None
            self._change_filter(host=host or None)

        if not host:
            self.workers.cancel_group(self, "host")
            loaded(None)
            return
        self._loading_host = host
        self._show_status()
        self._start("host", lambda: self.model.load_host(host), loaded)

    def action_problems(self) -> None:
        """Show only problems, then everything, then skills."""
        self._change_filter(shown=_after(SHOWN, self._filter.shown))

    def action_help(self) -> None:
        """Explain the keys."""
        self.push_screen(_Help())

    def _change_filter(self, **changes: Any) -> None:
        self._filter = self._filter._replace(**changes)
        row = self._rows.row
        self._request_rows(follow=row.path if row else None)


def _after(values: Sequence[Any], value: Any) -> Any:
    position = values.index(value) if value in values else -1
    return values[(position + 1) % len(values)]


async def _in_thread(job: Callable[[], _Result], lock: Lock) -> _Result:
    """Return the result of a job that runs in a daemon thread, after the jobs that hold the lock.

    A job that is cancelled while it waits is not run. Textual's own threads are not daemons: leaving the picker would
    wait for a slow disk.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        with lock:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(job())
            except Exception as error:
                future.set_exception(error)

    Thread(target=run, name="picker", daemon=True).start()
    return await asyncio.wrap_future(future)
