"""The grammar of the command line is that of argparse, with arguments in any place."""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest

from skillshelf.cli.command_table import COMMANDS, SHARED, Option
from skillshelf.cli.main import parse
from skillshelf.errors import ConfigurationError

Reading = tuple[str, dict[str, Any]] | str
SEED = 15


def _count_of(argument: Option) -> str | None:
    if argument.many:
        return "+" if argument.required else "*"
    return None if argument.required else "?"


class Refused(Exception):
    """A line that argparse does not accept."""


class Oracle(argparse.ArgumentParser):
    """Argparse with the options or the arguments of one command; what it refuses is raised."""

    def __init__(self, options: Sequence[Option] = (), arguments: Sequence[Option] = ()) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        # What a negative number is differs between versions of Python; from 3.14 on `-5x` is one.
        self._negative_number_matcher = re.compile(r"-\d+$|-\d*\.\d+$")
        for option in options:
            if option.many:
                self.add_argument(option.name, dest=option.key, action="append", default=[])
            else:
                action = "store" if option.value else "store_true"
                self.add_argument(option.name, dest=option.key, action=action)
        for argument in arguments:
            self.add_argument(argument.key, nargs=_count_of(argument))

    def error(self, message: str) -> NoReturn:
        raise Refused(message)


ORACLES = {
    name: (Oracle(command.options), Oracle(arguments=command.arguments), [a.dashes for a in command.arguments])
    for name, command in COMMANDS.items()
}

ESCAPED = "a second --"


def read_by_argparse(name: str, words: Sequence[str]) -> Reading:
    """Read the options first, and then the arguments among what is left, as `parse_intermixed_args` does.

    That function loses what stands after `--`, and argparse loses a second `--`; neither is meant.
    """
    options, arguments, dashes = ORACLES[name]
    end = words.index("--") if "--" in words else len(words)
    after = [ESCAPED if word == "--" else word for word in words[end + 1 :]]
    try:
        values, left = options.parse_known_args(words[:end])
        # Words for a script may look like options once the other arguments are there.
        plain = dashes.index(True) if True in dashes else len(left)
        after = [*left[plain:], *after]
        found = vars(arguments.parse_args([*left[:plain], *(["--", *after] if after else [])]))
    except Refused:
        return "usage error"
    for key, value in found.items():
        found[key] = [word.replace(ESCAPED, "--") for word in value] if isinstance(value, list) else value
        found[key] = "--" if value == ESCAPED else found[key]
    if any(a.required and not a.may_be_empty and found[a.key] == "" for a in COMMANDS[name].arguments):
        return "usage error"
    if any(option.never_empty and getattr(values, option.key) == "" for option in COMMANDS[name].options):
        return "usage error"
    forms = [(option.form[0], getattr(values, option.key)) for option in COMMANDS[name].options if option.form]
    if any(value is not None and not re.fullmatch(form, value) for form, value in forms):
        return "usage error"
    return name, {**vars(values), **found}


def read_by_us(words: Sequence[str]) -> Reading:
    """Read the line as the command does."""
    try:
        return parse(words)
    except ConfigurationError:
        return "usage error"


PLAIN = ["deploy", "a b", "", "x=y", "é", "list", "8", "skill://a/b", "=", "-", "S"]
DASHED = ["--nonsense", "--nonsense=1", "-x", "-xyz", "--", "-5", "-0.5", "-5x", "-a b", "--a b", "---", "--=", "-=x"]


def random_line(random: random.Random) -> tuple[list[str], str, list[str]]:
    """Return a command with the words before it, options that every command has, and those after it."""
    name = random.choice(list(COMMANDS))
    options, arguments = COMMANDS[name].options, COMMANDS[name].arguments
    words: list[str] = []
    for _ in range(random.choice([0, 1, 1, 2, 3, 4])):
        words += _random_option(random, options)
    for _ in range(random.choice([len(arguments)] * 4 + [0, 1, 2, 3])):
        words.insert(random.randint(0, len(words)), random.choice(PLAIN))
    for _ in range(random.choice([0, 0, 0, 0, 1, 2])):
        words.insert(random.randint(0, len(words)), random.choice(DASHED))
    if not name:
        # Its first argument would be a command.
        return [], name, [word for word in words if not word or word not in COMMANDS]
    before: list[str] = []
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        option = random.choice(SHARED)
        before += [option.name, random.choice(PLAIN)] if option.value else [option.name]
    return before, name, words


def _random_option(random: random.Random, options: Sequence[Option]) -> list[str]:
    if not options:
        return []
    option = random.choice(options)
    value = random.choice([*PLAIN, *DASHED] if random.random() < 0.2 else PLAIN)
    form = random.random()
    if form < 0.1:
        return [option.name[: random.randint(min(3, len(option.name)), len(option.name))]]
    if form < 0.2:
        return [option.name]
    if form < 0.3:
        # Argparse of Python 3.11 loses the value `--`.
        return [f"{option.name}={'' if value == '--' else value}"]
    return [option.name, value] if option.value else [option.name]


def check_lines(count: int) -> None:
    """Fail with the first line that the two read differently."""
    source = random.Random(SEED)
    refused = 0
    for _ in range(count):
        before, name, after = random_line(source)
        line = [*before, *filter(None, [name]), *after]
        expected = read_by_argparse(name, [*before, *after])
        refused += expected == "usage error"
        assert read_by_us(line) == expected, line
    assert 0.2 < refused / count < 0.8


def test_a_line_is_read_as_argparse_reads_it() -> None:
    check_lines(1000)


@pytest.mark.slow
def test_ten_thousand_lines_are_read_as_argparse_reads_them() -> None:
    check_lines(10_000)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("search", "x", "--jsn"), "unknown option '--jsn'; did you mean --json? (run `skillshelf search --help`)"),
        (("search", "--", "-x", "--json"), "unexpected argument '--json' (run `skillshelf search --help`)"),
    ],
)
def test_after_two_dashes_a_word_is_an_argument_in_the_error_too(line: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(line)

    assert str(caught.value) == message
