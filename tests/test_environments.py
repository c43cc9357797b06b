"""The environments of `tools/environments.py`, which runs the tests in each of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from environments import EVERYTHING, REQUIRED, ROWS, Bench, copy_checkout, counts_in, readme_commands, run_row
from environments import steps_in_system as steps
from environments import variables_in_system as variables
from extras import LARGE, extras_in
from support.needs import needs_checkout
from support.trees import Machine
from support.users import ordinary_user

REPOSITORY = Path(__file__).parent.parent


def test_the_page_for_contributors_names_every_row() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE) == [
        (name, row.summary) for name, row in ROWS.items()
    ]


def test_continuous_integration_runs_the_rows_that_differ_most_and_requires_what_they_require() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")

    assert "tools/environments.py bare --light --few --folder" in script
    assert 'tools/environments.py sealed --fast --few --release "$environment/dist"' in script
    assert 'SKILLSHELF_REQUIRE="native,pyseccomp,$(python3 tools/environments.py --required)"' in script
    assert {"bwrap", "tmux"} <= set(REQUIRED.split(","))


def test_with_everything_installed_no_framework_is_left_out_but_the_large_one() -> None:
    extras = extras_in()
    installed = {requirement for name in EVERYTHING.split(",") for requirement in extras[name]}
    left_out = {name for name, found in extras.items() if not set(found) <= installed}

    # What `pydantic-ai` brings is in `agent`, with one model more.
    assert left_out == {LARGE, "lint", "release", "pydantic-ai"}


def test_the_bare_row_runs_the_commands_of_the_readme_as_they_stand() -> None:
    install, test = readme_commands((REPOSITORY / "README.md").read_text(encoding="utf-8"))

    assert install.startswith("python3 -m pip install --quiet . && ")
    assert test == "python3 -m pip install --quiet -e '.[test]' && python3 -m pytest"
    assert [step.rpartition("; ")[2] for step in steps(ROWS["bare"])] == [install, test]
    assert "SKILLSHELF_REQUIRE" not in variables(ROWS["bare"], tests=True, options="")


def test_the_sealed_row_has_everything_odd_at_once() -> None:
    found = variables(ROWS["sealed"], tests=True, options="-n 1")

    assert {name: found[name] for name in ("LANG", "TZ", "HOME", "TMPDIR")} == {
        "LANG": "C",
        "TZ": "Pacific/Apia",
        "HOME": "/home/hö me ☃",
        "TMPDIR": "/dev/shm/tester",
    }
    assert "LC_ALL" not in found
    assert "pip install --quiet ../a.whl'[test," in steps(ROWS["sealed"], "../a.whl")[0]
    assert "umask 077" in steps(ROWS["sealed"])[1]
    assert "setpriv --reuid" in steps(ROWS["sealed"])[1]


@pytest.mark.parametrize(
    ("printed", "counts"),
    [
        (
            "..F\n1 failed, 6225 passed, 225 skipped in 154.20s (0:02:34)\n",
            {"failed": 1, "passed": 6225, "skipped": 225},
        ),
        ("= 2 passed, 3 deselected, 2 errors in 1.05s =\n", {"passed": 2, "error": 2}),
        ("5 passed in 1 go\nno tests ran in 0.01s\n", {}),
        ("", {}),
    ],
    ids=["failed", "errors", "none", "empty"],
)
def test_the_line_of_a_row_has_the_numbers_of_pytest(printed: str, counts: dict[str, int]) -> None:
    assert counts_in(printed) == counts


@pytest.mark.slow
def test_a_run_with_few_parameters_has_every_test_with_the_first_and_the_last_that_are_chosen() -> None:
    words = [sys.executable, "-m", "pytest", "--collect-only", "-n", "0", "-p", "no:cacheprovider", __file__]
    # A row gives its own options to pytest by this variable.
    own = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    few, every = (
        subprocess.run([*words, *more], cwd=REPOSITORY, env=own, capture_output=True, text=True).stdout
        for more in (["--few", "-k", "not empty"], [])
    )
    name = test_the_line_of_a_row_has_the_numbers_of_pytest.__name__

    assert re.findall(rf"{name}\[(\w+)\]", few) == ["failed", "none"]
    assert re.findall(rf"{name}\[(\w+)\]", every) == ["failed", "errors", "none", "empty"]
    assert set(re.findall(r"::(\w+)", few)) == set(re.findall(r"::(\w+)", every))


@pytest.mark.parametrize(("ci", "fine"), [("", True), ("true", False)])
def test_a_row_that_cannot_be_provided_is_named_and_fails_in_continuous_integration_alone(
    ci: str,
    fine: bool,
    reachable_machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CI", ci)
    bench = Bench(reachable_machine.base, (), 60)

    with ordinary_user():
        assert run_row(bench, "odd") is fine

    assert capsys.readouterr().out == (
        "odd      cannot be provided here: needs root, to make a system of its own and to mount\n"
    )


@needs_checkout
@pytest.mark.slow
def test_a_row_gets_what_belongs_to_the_checkout_and_nothing_that_was_made_in_it(tmp_path: Path) -> None:
    copy_checkout(tmp_path / "copy")

    names = {path.name for path in (tmp_path / "copy").rglob("*")}
    assert {"README.md", "conftest.py", ".ci", "SKILL.md"} <= names
    assert not names & {".git", "__pycache__", ".pytest_cache"}
