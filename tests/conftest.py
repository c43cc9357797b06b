"""Fixtures that every test may ask for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from trees import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A home folder and a repository that nothing else touches."""
    return Machine(tmp_path)


@pytest.fixture
def reachable_machine() -> Iterator[Machine]:
    """A machine in a folder that every user may pass through."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Machine(Path(os.path.realpath(folder)))
