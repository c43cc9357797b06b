"""The command `pick`: a terminal to one name or path on standard output."""

import os
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from skillshelf.core.console import as_json
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError

if TYPE_CHECKING:
    from skillshelf.cli.picker.rows import SkillRow
    from skillshelf.shelf import Shelf

__all__ = ["pick"]


def pick(values: Mapping[str, Any], open_shelf: "Callable[[], Shelf]") -> int:
    """Let a person choose a skill; prints its name, or with `path` its folder."""
    try:
        from skillshelf.cli.picker.app import Picker
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise ConfigurationError("pick needs the extra tui; install it: pip install 'skillshelf[tui]'") from None
    from skillshelf.cli.picker.model import PickerModel

    # A thread that is busy gives way to a key five times sooner than it would by itself.
    sys.setswitchinterval(0.001)
    stock = PickerModel(open_shelf)
    app = Picker(stock, query=values["query"] or "", takes_problems=values["path"])
    with _terminal_on_every_stream(), closing(stock):
        # Without the mouse: a terminal's own selecting and copying go on working.
        chosen = app.run(mouse=False)
    if app.failure is not None:
        raise app.failure
    if chosen is None:
        return app.return_code or NEGATIVE
    _print(chosen, values)
    return DONE


@contextmanager
def _terminal_on_every_stream() -> Iterator[None]:
    """Put the terminal on the three streams, wherever they lead, and give them back with the terminal as it was.

    Standard output is a pipe in `cd "$(skillshelf pick --path)"`, and other streams may be anything.
    """
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        raise ConfigurationError("pick needs a terminal that can place text; TERM says there is none")
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
        before = termios.tcgetattr(terminal)
    except (OSError, termios.error):
        raise ConfigurationError("pick needs a terminal; without one there are: skillshelf list, search") from None
    if sys.__stdin__ is None or sys.__stdout__ is None or sys.__stderr__ is None:
        raise ConfigurationError("pick needs its three standard streams; one of them is closed")
    sys.__stdout__.flush()
    kept = [os.dup(stream) for stream in range(3)]
    for stream in range(3):
        os.dup2(terminal, stream)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        for stream, saved in enumerate(kept):
            os.dup2(saved, stream)
            os.close(saved)
        os.close(terminal)


def _print(row: "SkillRow", values: Mapping[str, Any]) -> None:
    from skillshelf.core.console import write, write_data

    if values["json"] and row.skill is not None:
        write(as_json(row.skill.to_dict()))
    else:
        # A path is bytes: exact for the program that reads it.
        write_data(os.fsencode(row.folder if values["path"] else row.name) + b"\n")
