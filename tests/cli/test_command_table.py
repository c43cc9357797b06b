"""The table of commands: every row is complete, and lines made from it can be typed."""

from __future__ import annotations

import shlex
from importlib import import_module
from typing import Any

import pytest

from skillshelf.cli.command_table import COMMANDS, command_again
from skillshelf.cli.main import parse


@pytest.mark.parametrize("name", COMMANDS)
def test_the_function_of_a_command_is_there(name: str) -> None:
    assert COMMANDS[name].run.__closure__ is not None
    cells = dict(zip(COMMANDS[name].run.__code__.co_freevars, COMMANDS[name].run.__closure__, strict=True))
    module = import_module(f"skillshelf.{cells['module'].cell_contents}")

    assert callable(getattr(module, cells["name"].cell_contents))


@pytest.mark.parametrize(
    ("line", "name", "changes", "again"),
    [
        ("list --profile host:codex --json", "list", {"all": True}, "skillshelf list --profile host:codex --all"),
        ("list --scope user --no-cache", "search", {"query": "QUERY"}, "skillshelf search --scope user QUERY"),
        ("show 'a b' --home /h", "why", {}, "skillshelf why --home /h 'a b'"),
        ("link '$(x)' --to a --to b", "link", {"to": ["c"]}, "skillshelf link --to c '$(x)'"),
        ("search --scope=-x -- -q", "search", {}, "skillshelf search --scope=-x -- -q"),
        ("--cwd /x", "list", {"cwd": None}, "skillshelf list"),
    ],
)
def test_a_hint_is_made_from_the_command_that_ran(line: str, name: str, changes: dict[str, Any], again: str) -> None:
    _, values = parse(shlex.split(line))

    made = command_again(values, name, **changes)

    assert made == again
    assert parse(shlex.split(made)[1:])[0] == name
