"""The modules that a command loads before it answers: every module takes time, and most commands need few."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.trees import SOURCE, Machine, write_skill

from skillshelf.core.limits import CACHE_FROM

LOADED = """
import sys, os
before = set(sys.modules)
from skillshelf.cli.main import main
sys.stdout.flush()
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
main(sys.argv[1:])
os.write(out, "\\n".join(sorted(set(sys.modules) - before)).encode())
"""

READING = {
    *("skillshelf.catalog.document", "skillshelf.catalog.frontmatter", "skillshelf.catalog.parse"),
    *("skillshelf.catalog.rules", "ryaml", "ryaml._ryaml"),
}
"""Modules needed to read a SKILL.md."""

NOT_FOR_A_LISTING = ("search", "journal", "sandbox", "session", "lint", "hosts", "servers", "adapters")
NOT_FOR_A_LOAD = ("search", "journal", "sandbox", "lint", "hosts", "servers", "adapters")
NOT_FOR_A_SEARCH = ("journal", "sandbox", "session", "lint", "hosts", "servers", "adapters")

NOT_YET = ("skillshelf.config.hosts", "skillshelf.config.custom_profiles", "skillshelf.catalog.host_settings")
"""Modules that only some profiles and commands need."""

NEVER = {
    "argparse",
    "asyncio",
    "dataclasses",
    "importlib.metadata",
    "inspect",
    "platformdirs",
    "rich",
    "tomlkit",
    "tomllib",
    "subprocess",
    "shlex",
    "wcwidth",
    "skillshelf.cli.help",
    "skillshelf.cli.pager",
    "skillshelf.cli.completion",
}
"""Modules that cost so much that none of these commands may load them."""


def loaded(machine: Machine, *words: str) -> set[str]:
    """The modules that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words, "--home", str(machine.home), "--cwd", str(machine.repo)],
        env={"PATH": "", "HOME": str(machine.home), "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.req("K-06")
@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (("list",), NOT_FOR_A_LISTING),
        (("list", "--json"), NOT_FOR_A_LISTING),
        (("show", "s001"), NOT_FOR_A_LOAD),
        (("search", "checks"), NOT_FOR_A_SEARCH),
    ],
    ids=("list", "list --json", "show", "search"),
)
def test_a_command_loads_what_it_needs_and_nothing_else(
    machine: Machine, words: tuple[str, ...], unneeded: tuple[str, ...]
) -> None:
    for number in range(3):
        write_skill(machine.home / ".agents" / "skills", f"s{number:03}")

    modules = loaded(machine, *words)

    assert {
        name for name in modules if name.split(".")[:2] in [["skillshelf", package] for package in unneeded]
    } == set()
    assert modules & set(NOT_YET) == set()
    assert modules & NEVER == set()


@pytest.mark.slow
def test_a_listing_that_finds_everything_in_the_cache_loads_no_parser(machine: Machine) -> None:
    script = "import skillshelf.catalog.cache as c, sys; c.SETTLED_NS = 0\n" + LOADED
    for number in range(CACHE_FROM):
        write_skill(machine.home / ".agents" / "skills", f"s{number:03}")
    words = [sys.executable, "-c", script, "list", "--home", str(machine.home), "--cwd", str(machine.repo)]
    environment = {"PATH": "", "HOME": str(machine.home), "PYTHONPATH": SOURCE}
    for _ in range(2):
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)

    assert set(done.stdout.split()) & READING == set()
    assert "sqlite3" in done.stdout.split()
