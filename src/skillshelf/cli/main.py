"""Read a command line, run the command, and turn every failure into one line and an exit status."""

import gc
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from skillshelf.cli.command_table import COMMANDS, HELP, NO_PAGER, SHARED, Option, command_again, usage_of
from skillshelf.core.console import as_json, note
from skillshelf.errors import FAILED, ConfigurationError, SkillError, SkillNotFound, kind_of

__all__ = ["main", "parse"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if _LASTING.isdisjoint(words):
        # Most commands end before there is garbage worth collecting, and looking for it takes a tenth of their time.
        gc.set_threshold(100_000)
    try:
        if words[:1] == ["_complete"]:
            from skillshelf.cli.completion import complete

            return complete(words[1:])
        return _run(words)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # A full disk, or a standard output that fails.
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return _break(f"the machine failed: {place}{(error.strerror or str(error)).lower()}", words)
    except Exception as error:
        return _break(f"internal error in skillshelf, please report it: {type(error).__name__}: {error}", words)


def _break(message: str, words: Sequence[str]) -> int:
    """Say what no command expects, to programs too."""
    if _wants_json(words):
        from skillshelf.core.console import write

        # It may be standard output that failed.
        with suppress(OSError, ValueError):
            write(as_json({"error": {"code": "failed", "message": message, "candidates": []}}))
    note(message)
    return FAILED


_LASTING = frozenset({"mcp", "rpc", "chat", "pick", "serve", "ui"})
"""Commands that may run for days."""


def _run(words: list[str]) -> int:
    values: dict[str, Any] = {}
    try:
        name, values = parse(words)
        if values.get("no_pager") is False and not values.get("json") and sys.stdout and sys.stdout.isatty():
            from skillshelf.cli.pager import paged

            with paged(os.environ):
                return _recorded(name, values)
        return _recorded(name, values)
    except SkillError as error:
        return _fail(error, values, wants_json=_wants_json(words))
    except FileNotFoundError:
        # Files that a user names are reported as SkillError, so this is the working directory, or a failing machine.
        if _has_working_directory():
            raise
        return _fail(
            ConfigurationError("the working directory no longer exists"), values, wants_json=_wants_json(words)
        )


def _recorded(name: str, values: dict[str, Any]) -> int:
    """Run a command; send its journal at the end, if it wrote one and the user's own file says so."""
    try:
        return COMMANDS[name].run(values)
    finally:
        # A command that takes several journals reads them.
        if isinstance(values.get("journal"), str):
            from skillshelf.cli.log_push import push_recorded

            push_recorded(values)


def _has_working_directory() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _wants_json(words: Sequence[str]) -> bool:
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)


# Failures -----------------------------------------------------------------------------------------


def _fail(error: SkillError, values: Mapping[str, Any], *, wants_json: bool) -> int:
    code, status = kind_of(error)
    from skillshelf.cli.views import error_line
    from skillshelf.core.console import write

    if wants_json:
        candidates = [*getattr(error, "paths", ()), *getattr(error, "near", ())]
        form: dict[str, Any] = {"error": {"code": code, "message": str(error), "candidates": candidates}}
        if findings := getattr(error, "findings", ()):
            form["findings"] = [*findings]
        write(as_json(form))
    note(error_line(error, command_again(values, "list", all=True)) + _elsewhere(error, values))
    return status


def _elsewhere(error: SkillError, values: Mapping[str, Any]) -> str:
    """Return where to look for a skill by its name that is perhaps in a folder that the profile does not read."""
    given = values.get("name_or_path") or values.get("name")
    if not isinstance(error, SkillNotFound) or given != error.name or "/" in given:
        return ""
    return f" (in the folders of all hosts: {command_again(values, 'why', name_or_path=given, profile=None)})"


# The grammar --------------------------------------------------------------------------------------


def parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the command and its values; raise ConfigurationError for an invalid line.

    The grammar is that of argparse without abbreviations, and arguments may appear anywhere between the options; a
    test compares the two. It is written out because importing argparse costs more than half a start of Python.
    """
    name, rest = _split_command(words)
    command = COMMANDS[name]
    values: dict[str, Any] = {
        option.key: [] if option.many else None if option.value else False
        for option in (*command.options, *command.arguments)
    }
    options = {option.name: option for option in (*command.options, *HELP)}
    arguments, unexpected, only_arguments = list(command.arguments), [], False
    while rest:
        word = rest.pop(0)
        option = None if only_arguments else options.get(word) or options.get(word.partition("=")[0])
        if option:
            value = _option_value(option, word, rest, options)
            if option in HELP:
                return "help", {"command": name, "no_pager": NO_PAGER.name in words}
            if option.form and not re.fullmatch(option.form[0], str(value)):
                is_argument = word == option.name and len(arguments) == len(command.arguments) and bool(rest)
                raise ConfigurationError(_wrong_value(option, str(value), words, is_argument=is_argument))
            values[option.key] = [*values[option.key], value] if option.many else value
        elif word == "--" and not only_arguments:
            only_arguments = True
        elif not arguments or not (only_arguments or arguments[0].dashes or not _is_option(word, options)):
            unexpected.append((word, only_arguments))
        elif arguments[0].many:
            values[arguments[0].key].append(word)
        else:
            values[arguments.pop(0).key] = word
    if unexpected:
        word, after_dashes = unexpected[0]
        from skillshelf.cli.help import unexpected_word

        raise ConfigurationError(unexpected_word(word, name, is_option=word.startswith("-") and not after_dashes))
    _require_values(name, values)
    return name, values


def _require_values(name: str, values: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for an option that is empty and must not be, or an argument that is missing."""
    for option in COMMANDS[name].options:
        value = values[option.key]
        given = value if isinstance(value, list) else [value]
        if option.never_empty and not all(one is None or one.strip(" ,") for one in given):
            raise ConfigurationError(f"{option.name} is empty; give it a value, or leave it out")
    for argument in COMMANDS[name].arguments:
        value = values[argument.key]
        if argument.required and (value in (None, []) or (value == "" and not argument.may_be_empty)):
            usage = f"{argument.help} (usage: {usage_of(name)})"
            raise ConfigurationError(f"missing argument {argument.name}: {usage}")


def _wrong_value(option: Option, value: str, words: Sequence[str], *, is_argument: bool) -> str:
    """Explain what an option takes, with the line without it; the wrong value may be the first argument of that."""
    from shlex import join

    at = next(at for at, word in enumerate(words) if word in (option.name, f"{option.name}={value}"))
    left = words[at + 1 :] if is_argument or words[at] != option.name else words[at + 2 :]
    line = join(["skillshelf", *words[:at], *left])
    takes = option.form[1] if option.form else option.value
    return f"{option.name} takes {takes}, not {value!r}; without it you are asked, or told what to type: {line}"


def _split_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command and the words without it; options may come before it."""
    with_value = {option.name for option in SHARED if option.value}
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in with_value else 1
    if position < len(words) and words[position] and words[position] in COMMANDS:
        return words[position], [*words[:position], *words[position + 1 :]]
    return "", list(words)


def _option_value(option: Option, word: str, rest: list[str], options: Mapping[str, Option]) -> str | bool:
    """Return the value of an option, taken from its own word or from the next one; a flag has the value True."""
    _, equals, value = word.partition("=")
    if not option.value:
        if equals and word != option.name:
            raise ConfigurationError(f"option {option.name} takes no value")
        return True
    if equals:
        return value
    if not rest or rest[0] == "--" or _is_option(rest[0], options):
        usage = f"{option.name} {option.value}, or {option.name}={option.value} if it begins with a dash"
        raise ConfigurationError(f"option {option.name} needs a value: {usage}")
    return rest.pop(0)


def _is_option(word: str, options: Mapping[str, Option]) -> bool:
    """Return True for a word that names an option, known or not: a dash, a number or a phrase in quotes does not."""
    if not word.startswith("-") or word == "-":
        return False
    known = word in options or word.partition("=")[0] in options
    return known or not (" " in word or re.fullmatch(r"-(\d+|\d*\.\d+)", word))
