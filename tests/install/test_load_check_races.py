"""Nothing but the locked bytes is handed out while somebody changes the files of an installed skill."""

import pytest
from support.lock_races import race
from support.trees import Machine


@pytest.mark.slow
def test_files_that_change_between_scan_and_load_are_never_mixed(machine: Machine) -> None:
    came, refused = race(machine, 1_500)
    assert came > 0
    assert refused > 0
