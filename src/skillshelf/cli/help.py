"""Explain the commands: `help`, the option `--help` of each command, and words that no command knows."""

from collections.abc import Iterator, Mapping, Sequence
from os import environ
from typing import Any

from skillshelf.cli.command_table import COMMANDS, GROUPS, SHARED, Option, command_again, usage_of
from skillshelf.core.console import Screen, screen, write
from skillshelf.core.text import did_you_mean, shorten
from skillshelf.errors import DONE, ConfigurationError

__all__ = ["show_help", "unexpected_word"]

_COLUMNS = 80
_WIDEST = 100
"""Lines longer than this are hard to read, however wide the terminal is."""


def show_help(values: Mapping[str, Any]) -> int:
    """Print the commands by group, or the arguments, options and examples of one command."""
    name = values["command"] or ""
    if name not in COMMANDS:
        raise ConfigurationError(unexpected_word(name, "", is_option=name.startswith("-")))
    display = screen(environ)
    display = display._replace(columns=min(display.columns or _COLUMNS, _WIDEST))
    lines = _one_command(name, display) if name else _all_commands(display)
    write("\n".join(lines) + "\n")
    return DONE


def _all_commands(display: Screen) -> Iterator[str]:
    yield "usage: skillshelf [COMMAND] [ARGUMENTS] [OPTIONS]"
    yield ""
    summary = f"Find Agent Skills, and why one is missing. Without a command: {COMMANDS[''].help}."
    yield from display.table([(summary,)], (None,), wrap=True)
    named = {name: row for name, row in COMMANDS.items() if name}
    width = max(map(len, named))
    for group in (*GROUPS, "Other commands"):
        rows = [
            (name.ljust(width), row.help) for name, row in named.items() if (row.group or "Other commands") == group
        ]
        yield from _section(group, rows, display)
    own = [option for option in COMMANDS[""].options if option not in SHARED]
    yield from _section("Options of every command", _options(SHARED), display)
    yield from _section("Options without a command", _options(own), display)
    yield from ("", display.paint("Examples:", "bold"), *_examples(COMMANDS[""].examples, display))
    yield from ("", "Arguments, options and examples of a command: skillshelf help COMMAND")


def _one_command(name: str, display: Screen) -> Iterator[str]:
    command = COMMANDS[name]
    yield f"usage: {usage_of(name)} [OPTIONS]"
    yield ""
    yield from display.table([(f"{command.help[0].upper()}{command.help[1:]}.",)], (None,), wrap=True)
    arguments = [(argument.name, argument.help) for argument in command.arguments]
    yield from _section("Arguments", arguments, display)
    yield from _section("Actions", command.actions, display)
    yield from _section("Options", _options([one for one in command.options if one not in SHARED]), display)
    if command.examples:
        yield from ("", display.paint("Examples:", "bold"), *_examples(command.examples, display))
    if shared := [option.name for option in SHARED if option in command.options]:
        text = f"Also the options of every command: {', '.join(shared)} (skillshelf help)"
        yield from ("", *display.table([(text,)], (None,), wrap=True))


def _examples(examples: Sequence[tuple[str, str]], display: Screen) -> Iterator[str]:
    """Yield each example beside its meaning, or above it where both do not fit on a line."""
    longest = max(len(line) for line, _ in examples)
    if longest + max(len(what) for _, what in examples) + 4 <= (display.columns or _COLUMNS):
        yield from display.table(examples, ("green", None), indent=2)
        return
    for line, what in examples:
        # Never cut or wrapped: it is for pasting.
        yield f"  {display.paint(line, 'green')}"
        yield from display.table([(what,)], (None,), indent=6, wrap=True)


def _options(options: Sequence[Option]) -> list[tuple[str, str]]:
    return [
        (f"{option.name} {option.value or ''}".rstrip(), option.help + (" (required)" if option.required else ""))
        for option in options
    ]


def _section(title: str, rows: Sequence[tuple[str, str]], display: Screen) -> Iterator[str]:
    if rows:
        yield from ("", display.paint(f"{title}:", "bold"))
        yield from display.table(rows, ("bold", None), indent=2, wrap=True)


def unexpected_word(word: str, name: str, *, is_option: bool) -> str:
    """Return the error about a word that is no option of a command, no argument of it, or no command."""
    if name == "install" and not is_option:
        # Other tools install what one names; here the lock says what is installed.
        return f"install takes no source: to add one: {command_again({}, 'add', source=shorten(word, 100))}"
    what = "option" if is_option else "argument" if name else "command"
    known = [option.name for option in COMMANDS[name].options] if is_option else [] if name else list(COMMANDS)
    hint = did_you_mean(word.partition("=")[0] if is_option else word, known)
    help_line = " ".join(filter(None, ("skillshelf", name, "--help")))
    shown = shorten(word, 100)
    return f"{'unexpected' if what == 'argument' else 'unknown'} {what} {shown!r}{hint} (run `{help_line}`)"
