"""Every requirement is accounted for: the table in `requirements.py` against the `req` marks of the tests.

The marks are read from the source of the tests, so that the answer is the same when only this file runs,
or when several processes share the tests.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requirements
from requirements import REQUIREMENTS, SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TESTS = Path(__file__).parent
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}


@dataclass(frozen=True, slots=True)
class Mark:
    """One `req` mark: its place, the ids it names, and why it does not count, if it does not."""

    place: str
    ids: tuple[str, ...]
    problem: str = ""


def marks_below(folder: Path) -> Iterator[Mark]:
    """The marks of every Python file below the folder, in the order of their paths."""
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        # Skills among the fixtures hold scripts that need not be valid Python; none of them carries a mark.
        if b"mark" in source and b"req" in source and b"pytest" in source:
            yield from marks_in(source, name=path.relative_to(folder).as_posix())


def marks_in(source: str | bytes, *, name: str) -> Iterator[Mark]:
    """The marks of one file, in the order of their lines."""
    tree = ast.parse(source, filename=name)
    called = {call.func: call for call in ast.walk(tree) if isinstance(call, ast.Call)}
    carried = {node for carrier in carriers(tree) for node in ast.walk(carrier)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_req(node)]
    for node in sorted(found, key=lambda node: node.lineno):
        ids, problem = read_ids(called.get(node))
        if not problem and node not in carried:
            problem = "is not on a test: use a decorator, pytestmark, or marks= of pytest.param"
        yield Mark(f"{name}:{node.lineno}", ids, problem)


def is_req(node: ast.Attribute) -> bool:
    """The expression is `pytest.mark.req`, or `mark.req` where `mark` was imported."""
    return node.attr == "req" and ast.unparse(node.value) in ("pytest.mark", "mark")


def carriers(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions in which pytest looks for the marks of a test."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
                yield from node.decorator_list
            case ast.ClassDef() if node.name.startswith("Test"):
                yield from node.decorator_list
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield value
            case ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value):
                yield value
            case ast.keyword(arg="marks", value=value):
                yield value


def read_ids(call: ast.Call | None) -> tuple[tuple[str, ...], str]:
    """The ids a mark names, and what is wrong with the way it names them."""
    if call is None or not call.args:
        return (), "names no requirement"
    values = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    ids = tuple(value for value in values if isinstance(value, str))
    if call.keywords or len(ids) < len(call.args):
        return ids, f"has arguments that are not literal strings: {ast.unparse(call)}"
    return ids, ""


@cache
def all_marks() -> tuple[Mark, ...]:
    """The marks of all tests, read when they are first asked for."""
    return tuple(marks_below(TESTS))


def lines(problems: Sequence[str]) -> str:
    """The problems as the message of an assertion, one a line."""
    return "\n  ".join([f"{len(problems)} found:", *problems])


def test_every_requirement_has_an_entry_of_its_own() -> None:
    listed = Counter(requirement.id for requirement in REQUIREMENTS)
    # The systems describe these; a row that is added to them cannot be lost, because a test names it.
    described = {"C": 121, "S": 140, "M": 77, "K": 62, "O": 70}
    systems = Counter(key.partition("-")[0] for key in listed)
    numbers = {system: max(least, systems[system]) for system, least in described.items()}
    expected = [f"{system}-{number:02}" for system, last in numbers.items() for number in range(1, last + 1)]

    assert sum(described.values()) == 470
    assert list(SYSTEMS) == list(numbers)
    wrong = [
        *(f"{key} is missing" for key in expected if key not in listed),
        *(f"{key} is no requirement" for key in listed if key not in expected),
        *(f"{key} has {count} entries" for key, count in listed.items() if count > 1),
    ]
    assert not wrong, lines(wrong)
    assert list(listed) == expected, "the entries are not in the order of their ids"


def test_every_behaviour_is_one_short_line() -> None:
    wrong = [
        f"{requirement.id}: {requirement.behaviour!r}"
        for requirement in REQUIREMENTS
        if not 0 < len(requirement.behaviour) <= 160 or not requirement.behaviour.isprintable()
    ]
    assert not wrong, lines(wrong)


def test_every_state_but_tested_has_a_reason() -> None:
    wrong = [
        f"{requirement.id} is {requirement.state} and does not say why"
        for requirement in REQUIREMENTS
        if requirement.state != "tested" and not requirement.reason.strip()
    ]
    assert not wrong, lines(wrong)


def test_every_mark_can_be_read_and_stands_on_a_test() -> None:
    wrong = [f"{mark.place} {mark.problem}" for mark in all_marks() if mark.problem]
    assert not wrong, lines(wrong)


def test_every_marked_id_is_a_requirement() -> None:
    wrong = [f"{mark.place} names {key}" for mark in all_marks() for key in mark.ids if key not in BY_ID]
    assert not wrong, lines(wrong)


def test_every_requirement_marked_tested_is_named_by_a_test() -> None:
    named = {key for mark in all_marks() if not mark.problem for key in mark.ids}
    wrong = [
        f"{requirement.id}  {requirement.behaviour}"
        for requirement in REQUIREMENTS
        if requirement.state == "tested" and requirement.id not in named
    ]
    assert not wrong, lines(wrong)


def test_no_test_names_a_requirement_that_is_deferred_or_not_testable() -> None:
    wrong = [
        f"{mark.place} names {key}, which is {BY_ID[key].state}: {BY_ID[key].reason}"
        for mark in all_marks()
        for key in mark.ids
        if key in BY_ID and BY_ID[key].state in ("deferred", "not testable")
    ]
    assert not wrong, lines(wrong)


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.req("C-48", "S-12")\ndef test_it(): ...',
        '@pytest.mark.req("C-48", "S-12")\nasync def test_it(): ...',
        '@mark.req("C-48", "S-12")\nclass TestIt: ...',
        'pytestmark = pytest.mark.req("C-48", "S-12")',
        'pytestmark = [pytest.mark.slow, pytest.mark.req("C-48", "S-12")]',
        'class TestIt:\n    pytestmark: list[Any] = [pytest.mark.req("C-48", "S-12")]',
        'CASES = [pytest.param(1, marks=pytest.mark.req("C-48", "S-12"))]',
        'CASES = [pytest.param(1, marks=[pytest.mark.slow, pytest.mark.req("C-48", "S-12")])]',
    ],
)
def test_a_mark_is_found_wherever_a_test_can_carry_it(source: str) -> None:
    (mark,) = marks_in(source, name="test_it.py")
    assert (mark.ids, mark.problem) == (("C-48", "S-12"), "")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("@pytest.mark.req\ndef test_it(): ...", "names no requirement"),
        ("@pytest.mark.req()\ndef test_it(): ...", "names no requirement"),
        ("@pytest.mark.req(KEY)\ndef test_it(): ...", "not literal strings"),
        ("@pytest.mark.req(*KEYS)\ndef test_it(): ...", "not literal strings"),
        ('@pytest.mark.req("C-48", id="S-12")\ndef test_it(): ...', "not literal strings"),
        ('@pytest.mark.req(f"C-{n}")\ndef test_it(): ...', "not literal strings"),
        ('@pytest.mark.req("C-48")\ndef a_function_that_is_no_test(): ...', "is not on a test"),
        ('duplicates = pytest.mark.req("C-48")', "is not on a test"),
        ("proves = pytest.mark.req", "names no requirement"),
    ],
)
def test_a_mark_that_proves_nothing_is_a_problem(source: str, problem: str) -> None:
    (mark,) = marks_in(source, name="test_it.py")
    assert problem in mark.problem


def run_script(*options: str) -> str:
    """The output of the table run as a script, after checking that it wrote nothing else."""
    command = [sys.executable, str(TESTS / "requirements.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def first_words(output: str) -> list[str]:
    """The first column of the table, without heading and counts."""
    heading, *rows = output.partition("\n\n")[0].splitlines()
    assert heading.split() == ["id", "state", "behaviour", "reason"]
    return [row.split()[0] for row in rows]


@pytest.mark.slow
def test_the_script_prints_every_requirement_and_the_counts_of_each_system() -> None:
    output = run_script()
    assert first_words(output) == list(BY_ID)
    assert [line[0] for line in output.partition("\n\n")[2].splitlines()] == [*SYSTEMS, "="]


@pytest.mark.slow
def test_the_script_prints_only_the_state_and_the_system_asked_for() -> None:
    output = run_script("--state", "not testable", "--system", "O")
    expected = [r.id for r in REQUIREMENTS if r.state == "not testable" and r.id.startswith("O-")]
    assert first_words(output) == expected


@pytest.mark.slow
def test_the_script_is_quiet_when_nobody_reads_its_output() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, requirements.__file__], stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
