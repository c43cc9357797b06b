"""Nothing is left out of a test run that asked for everything."""

from __future__ import annotations

import shutil

import pytest
from support.needs import REQUIRED, is_absent


@pytest.mark.parametrize("name", [name for name in REQUIRED if name])
def test_what_is_required_is_on_this_machine(name: str) -> None:
    assert shutil.which(name) or not is_absent(name), f"SKILLSHELF_REQUIRE names {name}, and it is not here"
