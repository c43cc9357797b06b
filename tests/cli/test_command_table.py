"""The table of commands: every row is complete, and lines made from it can be typed."""

from __future__ import annotations

import shlex
from importlib import import_module
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf.cli.command_table import COMMANDS, command_again
from skillshelf.cli.main import parse
from skillshelf.core.text import did_you_mean, near


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


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("lst", "list"),
        ("unlink x", "link"),
        ("help shwo", "show"),
        ("list --scop user", "--scope"),
        ("list --profile codx", "codex"),
        ("list --profile HOST:CODX", "host:codex"),
        ("list --profile standart", "standard"),
        ("list --scope usr", "user"),
        ("search x --scope proyect", "project"),
        ("why x --host claude-cod", "claude-code"),
        ("check --format sarf", "sarif"),
        ("log shwo run.jsonl", "show"),
        ("show apha", "alpha"),
    ],
)
def test_a_misspelt_word_of_any_set_gets_the_nearest_one(machine: Machine, line: str, meant: str) -> None:
    write_skill(machine.home / ".agents" / "skills", "alpha")

    done = machine.run(*line.split())

    assert done.returncode in (2, 3)
    assert f"; did you mean {meant}?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_rule_of_a_profile_that_is_misspelt_gets_the_nearest_one(machine: Machine) -> None:
    machine.configure('[profiles.lab.rules]\n"name-patern" = "warn"\n')

    assert "is not a rule; did you mean name-pattern?" in machine.run("list", "--profile", "lab").stderr


def test_near_names_are_found_in_any_case_and_a_long_word_takes_no_time() -> None:
    assert near("DEPLYO", ["deploy", "other", ""]) == ["deploy"]
    assert near("b" * 10**7, ["c" * 10**6, "a"]) == []
    assert did_you_mean("zzz", ["list"]) == ""
