"""The recipes of CONTRIBUTING.md work as written: each is applied in a copy of the repository, and its commands run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

REPOSITORY = Path(__file__).parent.parent
PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## Recipe: ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
STEP = re.compile(r"(?:<!-- (edit|new): (\S+) -->\s+)?^( *)```(\w+)\n(.*?)^\3```", re.DOTALL | re.MULTILINE)


def apply_diff(text: str, diff: str) -> str:
    """Return the text with a change applied; the lines that stay or go must occur once, one after the other."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"not found, or not once:\n{before}"
    return text.replace(before, after)


def follow(recipe: str, repository: Path) -> None:
    """Edit and create the files that a recipe shows, and run its commands, in order."""
    for action, name, _, language, block in STEP.findall(recipe):
        text = dedent(block)
        if action == "edit":
            path = repository / name
            path.write_text(apply_diff(path.read_text(encoding="utf-8"), text), encoding="utf-8")
        elif action == "new":
            assert not (repository / name).exists()
            (repository / name).write_text(text, encoding="utf-8")
        else:
            assert language == "sh", "a block of a recipe is an edit, a new file or commands"
            for command in text.splitlines():
                run(command, repository)


def run(command: str, repository: Path) -> None:
    """Run one line of a recipe in the copy."""
    program = os.path.dirname(sys.executable)
    environment = {
        "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(repository / "src"),
        "PYTEST_ADDOPTS": "-n 0 -p no:cacheprovider",
        "HOME": str(repository.parent),
    }
    done = subprocess.run(["bash", "-c", command], cwd=repository, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_there_is_a_recipe_for_each_kind_of_addition() -> None:
    assert list(RECIPES) == ["add a host", "add a lint rule", "add a command", "add a requirement"]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_works_as_written(recipe: str, tmp_path: Path) -> None:
    copy = tmp_path / "repository"
    left_out = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "build", "dist")
    shutil.copytree(REPOSITORY, copy, ignore=left_out, symlinks=True)
    (copy / ".git").mkdir()

    follow(RECIPES[recipe], copy)
