"""The first screen, the whole inventory, and the line about what a view does not show.

With `SKILLSHELF_REGENERATE=1` the screens are written again; review the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.newcomer import in_terminal, make_newcomer
from support.trees import Machine, write_skill

from skillshelf.cli.inventory import first_screen, whole_view
from skillshelf.core.console import PathDisplay, Screen
from skillshelf.core.environment import Environment
from skillshelf.core.text import width
from skillshelf.hosts.inventory import Inventory, take_inventory

SCREENS = Path(__file__).parent / "screens"


def taken(machine: Machine, cwd: Path | None = None) -> tuple[Inventory, PathDisplay]:
    settings = machine.shelf(trust="ask", cwd=cwd).settings
    place = Environment(str(cwd or machine.repo), str(machine.home), {"HOME": str(machine.home)})
    return take_inventory(place, settings, trees=False), PathDisplay(place.cwd, place.home)


def first(machine: Machine, columns: int, lines: int = 40, cwd: Path | None = None) -> str:
    return first_screen(*taken(machine, cwd), Screen(columns=columns, lines=lines))


def compare(name: str, text: str, machine: Machine) -> None:
    """Compare a screen with the one that is kept."""
    shown = re.sub(r", from .*", ", from HERE", text)
    path = SCREENS / f"{name}.txt"
    if os.environ.get("SKILLSHELF_REGENERATE") == "1":
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


# The first screen ---------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_the_first_screen_accounts_for_every_skill_at_any_width(machine: Machine, columns: int) -> None:
    make_newcomer(machine)

    screen = first(machine, columns)

    compare(f"inventory-{columns}", screen, machine)
    rows = re.findall(r"^ +(\d+)  \S", screen, re.MULTILINE)
    assert sum(map(int, rows)) == 46
    assert max(map(width, screen.splitlines())) <= columns


def one(machine: Machine) -> None:
    write_skill(machine.home / ".claude/skills", "single")


def many(machine: Machine) -> None:
    for number in range(300):
        write_skill(machine.repo / f".agents/skills/group-{number % 7}", f"skill-{number:04}")
    for number in range(30):
        write_skill(machine.repo / f"packages/p{number:02}/skills", f"bad-{number}", "---\nname: bad\n---\n")


def no_repository(machine: Machine) -> None:
    one(machine)
    (machine.repo / ".git").rmdir()


@pytest.mark.parametrize("columns", [60, 100, 200])
@pytest.mark.parametrize("fill", [lambda machine: None, one, make_newcomer, many, no_repository])
@pytest.mark.parametrize("lines", [24, 50])
def test_the_first_screen_fits_and_ends_with_what_to_do(
    machine: Machine, columns: int, fill: Callable[[Machine], None], lines: int
) -> None:
    fill(machine)

    shown = first(machine, columns, lines).splitlines()

    assert len(shown) < lines
    assert max(map(width, shown)) <= columns
    start = shown.index("Next commands:") + 1
    assert len(shown[start:]) >= 2
    assert all(line.startswith("  skillshelf ") for line in shown[start:])


def test_a_machine_without_skills_is_told_where_one_goes(machine: Machine) -> None:
    machine.configure('hosts = ["claude-code"]\n')

    shown = first(machine, 100)

    assert shown.startswith("No skills yet, from ")
    assert "A skill is a folder with a SKILL.md in a folder that agents read: ~/.claude/skills, .claude/skills" in shown
    assert "  skillshelf new NAME  " in shown


def test_why_no_repository_was_walked_is_said(machine: Machine) -> None:
    one(machine)
    (machine.home / ".git").mkdir()
    (machine.base / "plain").mkdir()

    at_home, nowhere = first(machine, 200, cwd=machine.home), first(machine, 200, cwd=machine.base / "plain")

    assert "; the home folder is not walked, so only the folders that agents read were searched" in at_home
    assert "; there is no repository here, so only the folders that agents read were searched" in nowhere
    assert "1  .claude/skills  user" in at_home


def test_the_whole_inventory_has_a_line_for_every_path(machine: Machine) -> None:
    make_newcomer(machine)
    link = machine.repo / ".claude/skills/linked"
    link.symlink_to(machine.home / ".claude/skills/task-01")

    shown = whole_view(*taken(machine), Screen())

    compare("inventory-whole", shown, machine)
    assert whole_view(*taken(machine), Screen(columns=60)).count("\n") >= shown.count("\n")


# Outside a view -----------------------------------------------------------------------------------

VIEWS = {
    "list": (("list",), 20),
    "list of a profile": (("list", "--profile", "host:codex"), 29),
    "search": (("search", "task"), 20),
    "hosts": (("hosts",), 9),
    "check": (("check",), 19),
    "check of a folder": (("check", ".github/skills"), 41),
    "prompt": (("prompt",), 20),
}


@pytest.fixture
def settled(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A newcomer's machine whose inventory was taken, without waiting for files to settle."""
    for module in ("skillshelf.catalog.disk_state", "skillshelf.catalog.cache", "skillshelf.hosts.inventory"):
        monkeypatch.setattr(f"{module}.SETTLED_NS", 0)
    make_newcomer(machine)
    machine.env = {"PATH": ""}
    assert machine.run("inventory").returncode == 0
    return machine


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_ends_on_a_terminal_with_what_is_outside_it(settled: Machine, view: str) -> None:
    words, count = VIEWS[view]

    *_, last = in_terminal(settled, *words, "--home", str(settled.home)).splitlines()

    assert last.startswith(f"skillshelf: {count} more outside this view: ")
    home = f"--home {settled.home}"
    command = f"inventory --profile host:codex {home}" if "--profile" in words else f"inventory {home}"
    command = f"search {home} --everywhere task" if words[0] == "search" else command
    assert last.endswith(f"; to see them: skillshelf {command}")


@pytest.mark.slow
def test_the_hint_about_what_a_list_leaves_out_keeps_its_options(settled: Machine) -> None:
    shown = in_terminal(settled, "list", "--profile", "host:codex", "--scope", "user", "--home", str(settled.home))

    assert f"; details: skillshelf list --all --scope user --profile host:codex --home {settled.home}\n" in shown


@pytest.mark.slow
def test_without_facts_the_line_has_no_number_and_in_a_pipe_or_json_there_is_none(settled: Machine) -> None:
    home = ("--home", str(settled.home))
    unnumbered = f"skillshelf: there may be more outside this view: skillshelf inventory --home {settled.home}"

    assert in_terminal(settled, "list", "--no-cache", *home).splitlines()[-1] == unnumbered
    write_skill(settled.home / ".codex/skills", "later")
    assert in_terminal(settled, "list", *home).splitlines()[-1] == unnumbered
    assert "outside" not in in_terminal(settled, "list", "--json", *home)
    assert "outside" not in in_terminal(settled, "check", "--format", "sarif", *home)
    assert settled.run("list").stderr == ""


@pytest.mark.slow
def test_a_view_of_everything_says_nothing_more(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 0)
    write_skill(machine.repo / ".agents/skills", "fine")
    write_skill(machine.repo / ".agents/skills", "broken", "---\nname: broken\n---\n")
    write_skill(machine.home / ".agents/skills", "fine")
    machine.env = {"PATH": ""}
    machine.run("inventory")

    assert "outside" not in in_terminal(machine, "list", "--home", str(machine.home))


@pytest.mark.parametrize(
    "change",
    [
        lambda machine: write_skill(machine.home / ".gemini/skills", "in-a-new-root"),
        lambda machine: write_skill(machine.repo / "deep/new/folder", "stray"),
        lambda machine: machine.env.update(CODEX_HOME=str(machine.base / "moved")),
        lambda machine: machine.configure('[skills]\ncustom_directories = ["/tmp"]\n'),
    ],
    ids=["root", "stray", "variable", "configuration"],
)
def test_what_was_found_counts_only_while_nothing_has_changed(
    settled: Machine, change: Callable[[Machine], None]
) -> None:
    assert is_known(settled, settled.repo)
    change(settled)
    assert not is_known(settled, settled.repo)


def test_what_was_found_is_remembered_again_although_the_disk_is_as_it_was(settled: Machine) -> None:
    folder = settled.home / ".cache/skillshelf/packed"
    for path in folder.iterdir():
        if b"files of a machine" in path.read_bytes():
            path.unlink()
    assert not is_known(settled, settled.repo)

    settled.run("inventory")

    assert is_known(settled, settled.repo)
    write_skill(settled.repo / "deep/new/folder", "stray")
    assert not is_known(settled, settled.repo)


def test_an_inventory_after_why_of_a_skill_that_no_host_reads_is_remembered(settled: Machine) -> None:
    write_skill(settled.repo / "docs/skills", "deploy")
    settled.run("why", "deploy")
    assert not is_known(settled, settled.repo)

    settled.run("inventory")

    assert is_known(settled, settled.repo)


def is_known(machine: Machine, cwd: Path) -> bool:
    """Whether a view would still say what an earlier inventory found."""
    from skillshelf.catalog.machine_files import known_machine_files
    from skillshelf.core.environment import user_cache_folder

    shelf = machine.shelf(cwd=cwd, trust="ask")
    place = Environment(shelf.environment.cwd, str(machine.home), {"HOME": str(machine.home), **machine.env}, True)
    folder = user_cache_folder(place)
    assert folder is not None
    return known_machine_files(folder, place, shelf.settings.custom_directories) is not None


@pytest.mark.parametrize(
    ("link", "target"),
    [(".codex/skills", "skills"), (".gemini", "."), (".claude/plugins/installed_plugins.json", "plugins.json")],
)
def test_what_was_found_does_not_count_once_a_root_or_list_is_a_link_to_another(
    settled: Machine, link: str, target: str
) -> None:
    path = settled.home / link
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    for name in ("first", "second"):
        folder = settled.base / name
        write_skill(folder / "skills", name)
        (folder / "plugins.json").write_text(json.dumps({"plugins": {name: [{"installPath": str(folder)}]}}))
        path.unlink(missing_ok=True)
        path.symlink_to(folder / target)
        time.sleep(0.01)
        assert not is_known(settled, settled.repo), name
        settled.run("inventory")
        assert is_known(settled, settled.repo), name


def test_what_was_found_does_not_count_in_a_new_repository_above(settled: Machine) -> None:
    folder = settled.base / "above/here"
    folder.mkdir(parents=True)
    write_skill(settled.base / "above/other", "stray")
    time.sleep(0.01)
    settled.run("inventory", cwd=folder)

    assert is_known(settled, folder)
    (settled.base / "above/.jj").mkdir()
    assert not is_known(settled, folder)


# Search -------------------------------------------------------------------------------------------


def test_a_search_everywhere_finds_what_no_profile_reads(machine: Machine) -> None:
    make_newcomer(machine)
    text = (
        "---\nname: speed\ndescription: Speeds up the training of neural networks. Use when it is slow.\n---\n# Speed\n"
    )
    write_skill(machine.repo / "packages/web/.agents/skills", "speed", text)
    write_skill(machine.repo / "packages/api/skills", "speed", text)

    here = machine.run("search", "training of neural networks")
    everywhere = machine.run("search", "training of neural networks", "--everywhere")
    found = machine.run_json("search", "training of neural networks", "--everywhere")

    assert (here.returncode, here.stdout) == (1, "")
    assert "packages/web/.agents/skills/speed" in everywhere.stdout
    assert [result["skill"]["name"] for result in found["results"]].count("speed") == 1
    assert machine.run_json("search", "task-20", "--everywhere")["results"][0]["skill"]["name"] == "task-20"
    assert machine.run("search", "training", "--everywhere", "--no-cache").stdout
