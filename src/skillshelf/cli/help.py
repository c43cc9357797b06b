"""Explain the commands: `help`, and the option `--help` of each command."""

from collections.abc import Mapping
from typing import Any

from skillshelf.cli.command_table import COMMANDS, SHARED, usage_of
from skillshelf.core.text import did_you_mean
from skillshelf.errors import DONE, ConfigurationError

__all__ = ["show_help", "unexpected_word"]


def show_help(values: Mapping[str, Any]) -> int:
    """Print the commands, or the arguments and options of one command."""
    from os import environ
    from textwrap import wrap

    from skillshelf.core.console import screen, write

    name = values["command"] or ""
    if name not in COMMANDS:
        raise ConfigurationError(unexpected_word(name, "", is_option=name.startswith("-")))
    command = COMMANDS[name]
    usage, summary = usage_of(name), f"{command.help[0].upper()}{command.help[1:]}."
    if not name:
        usage, summary = (
            "skillshelf [COMMAND]",
            f"Find Agent Skills, and why one is missing. Without a command: {command.help}.",
        )
    lines = [f"usage: {usage} [OPTIONS]", "", *wrap(summary, 80)]
    own = [option for option in command.options if option not in SHARED]
    shared = [option for option in command.options if option in SHARED]
    sections = {
        "Commands": [(other, row.help) for other, row in COMMANDS.items() if other and not name],
        "Arguments": [(argument.name, argument.help) for argument in command.arguments],
        "Options": [(f"{option.name} {option.value or ''}", option.help) for option in own],
        "Options of every command": [(f"{option.name} {option.value or ''}", option.help) for option in shared],
    }
    display = screen(environ)
    display = display._replace(columns=display.columns or 80)
    width = max(len(text) for rows in sections.values() for text, _ in (*rows, ("", "")))
    for title, rows in sections.items():
        if rows:
            padded = [(text.ljust(width), meaning) for text, meaning in rows]
            lines += ["", f"{title}:", *display.table(padded, ("bold", None), indent=2, wrap=True)]
    write("\n".join(lines) + "\n")
    return DONE


def unexpected_word(word: str, name: str, *, is_option: bool) -> str:
    """Return the error about a word that is no option of a command, no argument of it, or no command."""
    what = "option" if is_option else "argument" if name else "command"
    known = [option.name for option in COMMANDS[name].options] if is_option else [] if name else list(COMMANDS)
    hint = did_you_mean(word, known)
    help_line = " ".join(filter(None, ("skillshelf", name, "--help")))
    return f"{'unexpected' if what == 'argument' else 'unknown'} {what} {word!r}{hint} (run `{help_line}`)"
