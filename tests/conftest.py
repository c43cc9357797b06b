"""Fixtures that every test may ask for."""

from __future__ import annotations

import gc
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from trees import Machine

_NUMBERS = itertools.count(1)


def pytest_collection_finish() -> None:
    """Spare the thousands of tests, and all that was imported for them, from being looked through for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A home folder and a repository that nothing else touches."""
    # Not `tmp_path`, which takes longer to be made than most tests take to run.
    base = tmp_path_factory.getbasetemp() / f"machine-{next(_NUMBERS)}"
    base.mkdir()
    return Machine(base)


@pytest.fixture
def reachable_machine() -> Iterator[Machine]:
    """A machine in a folder that every user may pass through."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Machine(Path(os.path.realpath(folder)))
