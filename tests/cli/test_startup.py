"""What a command loads before it answers: every module takes time, and most commands need few."""

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

LISTING = {
    "skillshelf.catalog.build",
    "skillshelf.catalog.cache",
    "skillshelf.cli.main",
    "skillshelf.cli.commands",
    "skillshelf.config.settings",
    "skillshelf.catalog.discovery",
    "skillshelf.errors",
    "skillshelf.core.files",
    "skillshelf.core.limits",
    "skillshelf.core.environment",
    "skillshelf.config.profile",
    "skillshelf.config.systems",
    "skillshelf.catalog.search_roots",
    "skillshelf.shelf",
    "skillshelf.core.console",
    "skillshelf.core.text",
    "skillshelf.core.values",
    "skillshelf.core.version",
    "skillshelf.cli.views",
    "skillshelf",
}
"""What a table of skills needs that finds everything in the cache."""

READING = {
    "skillshelf.catalog.document",
    "skillshelf.catalog.build",
    "skillshelf.catalog.rules",
    "skillshelf.catalog.frontmatter",
    "ryaml",
    "ryaml._ryaml",
}
"""What reading a SKILL.md needs."""

LOADING = {
    "skillshelf.session.arguments",
    "skillshelf.catalog.prompt",
    "skillshelf.session.calling",
    "skillshelf.session.delivery",
    "skillshelf.session.desk",
    "skillshelf.session.envelope",
    "skillshelf.journal.events",
    "skillshelf.session.permissions",
    "skillshelf.catalog.load",
    "skillshelf.core.text",
    "skillshelf.session.memory",
    "skillshelf.session.mentioning",
    "skillshelf.session.patterns",
    "skillshelf.session.policy",
    "skillshelf.session.proposals",
    "skillshelf.session.recorder",
    "skillshelf.session.rendering",
    "skillshelf.session.results",
    "skillshelf.session.running",
    "skillshelf.session.session",
    "skillshelf.session.tools",
    "skillshelf.session.effects",
}
"""What handing over a skill needs."""

SEARCHING = {
    "skillshelf.search.query",
    "skillshelf.search.index",
    "skillshelf.search.rank",
    "skillshelf.catalog.load",
    "skillshelf.core.console",
    "skillshelf.cli.searchview",
    "skillshelf.cli.snippets",
    "skillshelf.core.atomic_write",
    "tantivy",
    "tantivy.tantivy",
}
"""What a search needs."""

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
}
"""What costs so much that none of these commands may load it."""


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


def ours_and_foreign(modules: set[str]) -> set[str]:
    """Our modules, and those of packages we depend on."""
    return {name for name in modules if name.partition(".")[0] in ("skillshelf", "ryaml", "tantivy", "tomlkit")}


@pytest.mark.req("K-06")
@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("list",), LISTING | READING),
        (("list", "--json"), LISTING | READING),
        (("show", "s001"), LISTING | READING | LOADING),
        (("search", "checks"), LISTING | READING | SEARCHING),
    ],
    ids=("list", "list --json", "show", "search"),
)
def test_a_command_loads_what_it_needs_and_nothing_else(
    machine: Machine, words: tuple[str, ...], allowed: set[str]
) -> None:
    for number in range(3):
        write_skill(machine.home / ".agents" / "skills", f"s{number:03}")

    modules = loaded(machine, *words)

    assert ours_and_foreign(modules) - allowed == set()
    assert modules & NEVER == set()


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
