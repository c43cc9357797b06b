"""The table of small changes that tests must notice: it cannot rot, and the tool tells what happens to each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mutants
import pytest
from mutants import TEAM, Mutant, problem_of, read_table
from requirements import REQUIREMENTS, SYSTEMS
from support.needs import needs_checkout

pytestmark = needs_checkout

ROWS = read_table()
REPOSITORY = Path(__file__).parents[1]
TIES = "tests/search/test_search.py::test_equal_scores_are_ordered_by_scope_and_then_by_path"
C_55 = next(row for row in ROWS if row.id == "C-55")


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.id} {row.breaks}" for row in ROWS])
def test_a_row_changes_one_place_and_names_tests_that_carry_its_mark(row: Mutant) -> None:
    assert problem_of(row) is None


def test_the_rows_are_many_of_every_system_and_each_breaks_something_else() -> None:
    known = {requirement.id for requirement in REQUIREMENTS}

    assert {row.mark for row in ROWS} <= known | {""}
    assert len({row.id for row in ROWS}) >= 60
    assert {row.id.partition("-")[0] for row in ROWS} == {*SYSTEMS, TEAM}
    assert len({(row.id, row.breaks) for row in ROWS}) == len(ROWS)
    assert len({(row.file, row.old, row.new) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (C_55._replace(file="search/nothing.py"), "no such file: search/nothing.py"),
        (C_55._replace(old="no such text"), "the old text occurs 0 times in search/query.py"),
        (C_55._replace(old="return "), "times in search/query.py"),
        (C_55._replace(new=C_55.old), "the new text is the old one"),
        (C_55._replace(tests=("tests/search/test_search.py::test_nothing",)), "no such test: "),
        (C_55._replace(tests=("tests/search/test_nothing.py::test_nothing",)), "no such test: "),
        (C_55._replace(id="C-57"), f"not marked with C-57: {TIES}"),
    ],
)
def test_a_row_that_proves_nothing_is_a_problem(row: Mutant, problem: str) -> None:
    assert problem in str(problem_of(row))


def test_marks_are_found_on_functions_classes_and_files(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(
        'pytestmark = pytest.mark.req("C-01")\n'
        '@pytest.mark.req("C-02")\ndef test_one(): ...\n'
        '@pytest.mark.req("C-03")\nclass TestIt:\n    async def test_two(self): ...\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("C-04"))])\ndef test_three(x): ...\n'
    )

    assert mutants.marked_tests(file) == {
        "test_one": {"C-01", "C-02"},
        "TestIt::test_two": {"C-01", "C-03"},
        "test_three": {"C-01", "C-04"},
    }


def run_tool(*words: str) -> tuple[int, str, str]:
    """The tool as a person runs it: its status and what it printed."""
    command = [sys.executable, str(REPOSITORY / "tools/mutants.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_the_list_has_a_row_for_each_change() -> None:
    status, out, err = run_tool("--list")

    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == [row.id for row in ROWS]


@pytest.mark.slow
def test_a_change_of_each_system_is_killed() -> None:
    status, out, err = run_tool("--only", "C-55", "S-66", "M-10", "K-22", "O-62", "-j", "2")

    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "5 changes: 5 killed"


@pytest.mark.slow
def test_a_change_that_no_marked_test_notices_survives_and_fails_the_run(tmp_path: Path) -> None:
    survivor = C_55._replace(breaks="nothing", new=f"{C_55.old}  # the same")
    unmarked = C_55._replace(id="C-57", breaks="something else")
    invalid = C_55._replace(breaks="the syntax", new="return (")
    table = tmp_path / "mutants.toml"
    # A text of JSON is one of TOML too.
    table.write_text(
        "".join(
            "[[mutant]]\n"
            + "".join(f"{key} = {json.dumps(getattr(row, key))}\n" for key in ("id", "breaks", "file", "old", "new"))
            + f"test = {json.dumps(row.tests)}\n"
            for row in (survivor, unmarked, invalid)
        )
    )

    status, out, _ = run_tool("--table", str(table), "-j", "1")

    assert status == 1
    lines = out.splitlines()
    assert lines[0].startswith("does not apply C-57   something else: not marked with C-57")
    assert lines[1] == "SURVIVED       C-55   nothing"
    assert lines[2].startswith("does not apply C-55   the syntax: the changed source cannot be imported")
    assert lines[3] == "3 changes: 2 does not apply, 1 SURVIVED"
