"""Fixtures that every test may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A home folder and a repository that nothing else touches."""
    return Machine(tmp_path)
