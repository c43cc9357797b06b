"""Run the command `pick`, which lets a person choose a skill and prints its name or path."""

import os
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from skillshelf.core.console import as_json, write, write_data
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError

if TYPE_CHECKING:
    from skillshelf.cli.picker.model import PickerModel
    from skillshelf.cli.picker.rows import SkillRow
    from skillshelf.shelf import Shelf

__all__ = ["pick"]


def pick(
    values: Mapping[str, Any], open_shelf: "Callable[[], Shelf]", to_trust: "Callable[[Shelf], str] | None" = None
) -> int:
    """Let a person choose a skill; print what identifies it: its name, or its path if several skills have the name.

    With `path` print its folder. `to_trust` returns the command that trusts the project of a shelf.
    """
    from skillshelf.cli.picker import model

    def open_model() -> "PickerModel":
        return model.PickerModel(open_shelf, to_trust=to_trust)

    chosen, code = (_pick_plain if values["plain"] else _pick)(values, open_model)
    if chosen is None:
        return code
    if values["json"] and chosen.skill is not None:
        write(as_json(chosen.skill.to_dict()))
    else:
        # A path is bytes: exact for the program that reads it.
        write_data(os.fsencode(chosen.folder if values["path"] else chosen.identifier) + b"\n")
    return DONE


def _pick_plain(values: Mapping[str, Any], open_model: "Callable[[], PickerModel]") -> "tuple[SkillRow | None, int]":
    """Ask on the terminal itself: standard output may be a pipe."""
    from skillshelf.cli.picker.plain import choose_plain

    terminal = _open_terminal()
    with (
        closing(open_model()) as model,
        os.fdopen(os.dup(terminal), encoding="utf-8", errors="replace") as source,
        os.fdopen(terminal, "w", encoding="utf-8", errors="backslashreplace") as screen,
    ):
        query = values["query"] or ""
        return choose_plain(model, source, screen, query=query, takes_problems=values["path"]), NEGATIVE


def _pick(values: Mapping[str, Any], open_model: "Callable[[], PickerModel]") -> "tuple[SkillRow | None, int]":
    try:
        from skillshelf.cli.picker.app import Picker
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise ConfigurationError(
            "pick needs the extra tui: run pip install 'skillshelf[tui]', or use pick --plain"
        ) from None
    # A busy thread gives way to a key five times sooner than by default.
    sys.setswitchinterval(0.001)
    model = open_model()
    app = Picker(model, query=values["query"] or "", takes_problems=values["path"])
    with _terminal_on_every_stream(), closing(model):
        # Without the mouse: the terminal's own selection and copying keep working.
        chosen = app.run(mouse=False)
    if app.failure is not None:
        raise app.failure
    return chosen, app.return_code or NEGATIVE


@contextmanager
def _terminal_on_every_stream() -> Iterator[None]:
    """Connect the three standard streams to the terminal; restore them, and the terminal's settings, afterwards.

    Standard output is a pipe in `cd "$(skillshelf pick --path)"`, and the other streams may be anything.
    """
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        raise ConfigurationError("pick cannot draw on this terminal (TERM is dumb or not set); use pick --plain")
    terminal = _open_terminal()
    before = termios.tcgetattr(terminal)
    if sys.__stdin__ is None or sys.__stdout__ is None or sys.__stderr__ is None:
        raise ConfigurationError("pick needs its three standard streams; one of them is closed")
    sys.__stdout__.flush()
    saved = [os.dup(stream) for stream in range(3)]
    for stream in range(3):
        os.dup2(terminal, stream)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        for stream, copy in enumerate(saved):
            os.dup2(copy, stream)
            os.close(copy)
        os.close(terminal)


def _open_terminal() -> int:
    try:
        return os.open("/dev/tty", os.O_RDWR)
    except OSError:
        raise ConfigurationError("pick needs a terminal; without one, use skillshelf list or search") from None
