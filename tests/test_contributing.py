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
from requirements import REQUIREMENTS
from support.needs import needs_checkout

REPOSITORY = Path(__file__).parent.parent
PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## Recipe: ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
STEP = re.compile(r"(?:<!-- (edit|new): (\S+) -->\s+)?^( *)```(\w+)\n(.*?)^\3```", re.DOTALL | re.MULTILINE)


def apply_diff(text: str, diff: str) -> str:
    """Return the text with a change applied; the lines that stay or go must occur once, one after the other."""
    lines = [line or " " for line in diff.splitlines()]
    before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
    after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
    assert text.count(f"\n{before}") == 1, f"not found, or not once:\n{before}"
    return text.replace(f"\n{before}", f"\n{after}")


def with_free_number(recipe: str) -> str:
    """Return a recipe with the next number of a requirement, whatever number the page shows."""
    last = sum(requirement.id.startswith("C-") for requirement in REQUIREMENTS)
    return recipe.replace("C-122", f"C-{last + 1}")


def follow(recipe: str, repository: Path) -> list[str]:
    """Edit and create the files that a recipe shows, and return its commands."""
    commands = []
    for action, name, _, language, block in STEP.findall(recipe):
        path, text = repository / name, dedent(block)
        if action == "edit":
            path.write_text(apply_diff(path.read_text(encoding="utf-8"), text), encoding="utf-8")
        elif action == "new":
            assert not path.exists()
            path.write_text(text, encoding="utf-8")
        else:
            assert language == "sh", "a block of a recipe is an edit, a new file or commands"
            commands += text.splitlines()
    return commands


def run(command: str, repository: Path) -> None:
    """Run one line of a recipe in the copy."""
    program = os.path.dirname(sys.executable)
    environment = {
        "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(repository / "src"),
        "PYTEST_ADDOPTS": f"-n 0 -p no:cacheprovider --basetemp {repository.parent / 'pytest'}",
        "HOME": str(repository.parent),
    }
    done = subprocess.run(["bash", "-c", command], cwd=repository, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_there_is_a_recipe_for_each_kind_of_addition() -> None:
    assert list(RECIPES) == ["add a host", "add a lint rule", "add a command", "add a requirement"]


@needs_checkout
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_can_be_followed_again(recipe: str) -> None:
    """A recipe leaves the lines in place that the next reader looks for."""
    for action, name, _, _, block in STEP.findall(RECIPES[recipe]):
        if action == "edit":
            text = (REPOSITORY / name).read_text(encoding="utf-8")
            apply_diff(apply_diff(text, dedent(block)), dedent(block))


@pytest.mark.heavy
@pytest.mark.slow
def test_the_recipes_work_as_written(tmp_path: Path) -> None:
    """All are followed in one copy, so that the pages are generated once."""
    copy = tmp_path / "repository"
    left_out = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "build", "dist")
    shutil.copytree(REPOSITORY, copy, ignore=left_out, symlinks=True)
    (copy / ".git").mkdir()

    commands = [command for recipe in RECIPES.values() for command in follow(with_free_number(recipe), copy)]

    for command in dict.fromkeys(commands):
        run(command, copy)
