"""Nothing gets through: every known attack, and generated ones with fixed seeds.

`python tools/attack.py --minutes N` generates others; what it finds is kept in `found` and played here.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.attack_rows import ROWS, Row, Tally
from support.examples import examples
from support.hostile import Case, lay_out, make_case, smaller
from support.needs import needs, needs_sandbox
from support.probes import play
from support.sandbox_rows import SANDBOX_ROWS, as_ordinary_user
from support.trees import Machine

SEEDS = examples(120)
IN_ONE_TEST = 10

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))
"""Cases that once found a defect."""

FAST = [row for row in ROWS if not row.slow]
SLOW = [row for row in ROWS if row.slow]


def _area(row: Row) -> str:
    return row.area


def _held(row: Row) -> None:
    tally = Tally()
    row.attack(tally, 1)
    assert tally.lost == []
    assert tally.tried > 0


@pytest.mark.parametrize("row", FAST, ids=_area)
def test_no_attack_of_the_table_succeeds(row: Row) -> None:
    _held(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", SLOW, ids=_area)
def test_no_attack_of_the_table_on_a_process_succeeds(row: Row) -> None:
    _held(row)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("row", SANDBOX_ROWS, ids=_area)
def test_no_attack_of_the_table_on_the_sandbox_succeeds(row: Row) -> None:
    _held(row)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("number", range(len(SANDBOX_ROWS)), ids=[row.area for row in SANDBOX_ROWS])
def test_no_attack_of_an_ordinary_user_on_the_sandbox_succeeds(number: int) -> None:
    tally = as_ordinary_user(number)
    if tally is None:
        pytest.skip("needs root, and a Python that every user may start")
    assert tally["lost"] == []


@pytest.mark.heavy
@pytest.mark.parametrize("first", range(0, SEEDS, IN_ONE_TEST))
def test_a_generated_machine_shows_no_defect(first: int) -> None:
    for seed in range(first, first + IN_ONE_TEST):
        assert play(make_case(seed)).defects == (), f"seed {seed}"


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_case_that_once_found_a_defect_finds_none(path: Path) -> None:
    assert play(Case.from_json(path.read_text())).defects == ()


def test_a_case_is_the_same_for_the_same_seed_and_survives_its_file() -> None:
    assert make_case(7) == make_case(7)
    assert make_case(7) != make_case(8)
    assert play(Case.from_json(make_case(7).to_json())).seen == play(make_case(7)).seen


def test_nothing_of_a_case_is_made_outside_of_its_folder(tmp_path: Path) -> None:
    machine, outside = tmp_path / "machine", tmp_path / "outside"
    machine.mkdir()
    outside.mkdir()
    files = {"repo/link": {"link": str(outside)}, "repo/link/scripts/run.sh": {"text": "x"}}

    lay_out(make_case(1)._replace(files=files), machine)

    assert list(outside.iterdir()) == []


def test_a_case_is_made_smaller_as_long_as_it_shows_the_same() -> None:
    case = make_case(3)

    found = smaller(case, lambda candidate: any("guard" in path for path in candidate.files))

    assert (len(found.files), found.addresses, found.words) == (1, [], [])


def test_a_defect_is_noticed() -> None:
    """A machine without the user's guard is one that lost it."""
    case = make_case(2)
    without = {path: what for path, what in case.files.items() if "guard" not in path}

    defects = play(case._replace(files=without, profile="standard"), surfaces=False).defects

    assert "lost: the user's guard is not in the catalog text" in defects


@pytest.mark.slow
def test_after_malformed_lines_the_rpc_server_answers(machine: Machine) -> None:
    from support.hostile_messages import attack_rpc

    assert attack_rpc(machine, random.Random(1), examples(300)) == []


@pytest.mark.slow
@needs("mcp")
def test_after_malformed_lines_the_mcp_server_answers(machine: Machine) -> None:
    from support.hostile_messages import attack_mcp

    assert attack_mcp(machine, random.Random(1), examples(100)) == []
