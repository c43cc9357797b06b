"""Skip tests that need something which this machine lacks.

`SKILLSHELF_REQUIRE=bwrap,tmux` says that they must be there: nothing is left out then, and what is missing fails.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from skillshelf.core import files
from skillshelf.sandbox.run import sandbox_problem

REQUIRED = os.environ.get("SKILLSHELF_REQUIRE", "").split(",")

# Asked in any case: the answer is kept, and a fast test may not start the process that gives it.
_WHY = sandbox_problem()
needs_sandbox = pytest.mark.skipif(_WHY is not None and "bwrap" not in REQUIRED, reason=f"needs bwrap: {_WHY}")

needs_tmux = pytest.mark.skipif(
    "tmux" not in REQUIRED and shutil.which("tmux") is None, reason="needs tmux: it is not installed"
)

needs_native = pytest.mark.skipif(
    "native" not in REQUIRED and files.native_core() is None, reason="needs the extension: it was not built"
)

needs_checkout = pytest.mark.skipif(
    not (Path(__file__).parents[2] / "src").exists(), reason="needs a checkout: the package is installed elsewhere"
)


def is_absent(package: str) -> bool:
    """Return True if a package, or a part of one such as `google.adk`, is not installed."""
    if package == "native":
        return files.native_core() is None
    try:
        return find_spec(package) is None
    except ModuleNotFoundError:
        return True


def needs(package: str) -> pytest.MarkDecorator:
    """Leave a test out where an optional package is missing, unless `SKILLSHELF_REQUIRE` names it."""
    absent = package not in REQUIRED and is_absent(package)
    return pytest.mark.skipif(absent, reason=f"{package} is not installed")


def require(package: str) -> None:
    """Leave the running test out where an optional package is missing, unless `SKILLSHELF_REQUIRE` names it."""
    if package not in REQUIRED and is_absent(package):
        pytest.skip(f"{package} is not installed")


def needs_program(name: str) -> pytest.MarkDecorator:
    """Leave a test out where a program is missing, unless `SKILLSHELF_REQUIRE` names it."""
    absent = name not in REQUIRED and shutil.which(name) is None
    return pytest.mark.skipif(absent, reason=f"needs {name}: it is not installed")
