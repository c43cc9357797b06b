"""Resolve the extras: each alone, and all but `claude` together: `python tools/extras.py`. Nothing is installed.

`claude` is resolved alone only: its wheel carries a large program, so no other extra may bring it.
"""

import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
LARGE = "claude"
_OWN = re.compile(r"skillshelf\[(?P<extras>[a-z0-9,-]+)\]")


def extras_in(pyproject: Path = PYPROJECT) -> dict[str, list[str]]:
    """Return the requirements of each extra, with those of the extras that it names, and of the package itself."""
    project: dict[str, Any] = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    optional: dict[str, list[str]] = project["optional-dependencies"]

    def requirements(extra: str) -> list[str]:
        found = []
        for requirement in optional[extra]:
            match = _OWN.fullmatch(requirement)
            named = match["extras"].split(",") if match else []
            found += [inner for name in named for inner in requirements(name)] if match else [requirement]
        return found

    return {extra: [*project["dependencies"], *requirements(extra)] for extra in optional}


def problem_of(requirements: list[str]) -> str:
    """Return what pip says about requirements that cannot be installed together; nothing if they can."""
    options = ["--dry-run", "--quiet", "--ignore-installed", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *requirements], capture_output=True, text=True, check=False
    )
    return done.stderr or f"pip ended with {done.returncode}" if done.returncode else ""


def main() -> int:
    """Resolve and report; return the exit status."""
    extras = extras_in()
    together = [requirement for name, found in extras.items() if name != LARGE for requirement in found]
    # The longest first.
    cases = {"all but claude": sorted(set(together)), **extras}
    with ThreadPoolExecutor(2) as pool:
        problems = dict(zip(cases, pool.map(problem_of, cases.values()), strict=True))
    for name, problem in problems.items():
        print(f"{name}: {'cannot be resolved' if problem else 'resolved'}")
        sys.stdout.write(problem)
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
