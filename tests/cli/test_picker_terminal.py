"""The picker in a real terminal: the text on the screen, the effect of keys, and the state of the terminal afterwards.

With `SKILLSHELF_REGENERATE=1` the screens are written again; review the difference before you commit it.
`SKILLSHELF_PICK_SKILLS=10000` sets the size of the large shelf.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.needs import needs_tmux
from support.pickertrees import SHOWN_AS, picker_machine
from support.terminals import COMMAND, Terminal, terminal
from support.trees import Machine, write_skill

pytest.importorskip("textual", reason="needs textual: it is not installed")
pytestmark = [needs_tmux, pytest.mark.slow]

SCREENS = Path(__file__).parent / "screens"
MANY = int(os.environ.get("SKILLSHELF_PICK_SKILLS", "2000"))


@pytest.fixture
def place() -> Iterator[Machine]:
    """The tree of the screens."""
    with picker_machine() as machine:
        yield machine


def start(opened: Terminal, machine: Machine, line: str = "{pick}", **env: str) -> None:
    """Run a line of shell in which `{pick}` is the picker."""
    pick = shlex.join([*COMMAND, "pick", "--home", str(machine.home)])
    opened.start(line.replace("{pick}", pick), cwd=machine.repo, env={"HOME": str(machine.home), **env})


def compare(name: str, opened: Terminal, machine: Machine, *, most: int | None = None) -> None:
    """Wait until the screen, or its first lines, is the one that is kept; a terminal draws piece by piece."""

    def seen(screen: str) -> str:
        text = re.sub(f" +1 of {MANY + 5:,}", " 1 of MANY", screen.replace(str(machine.base), SHOWN_AS))
        return "\n".join(text.split("\n")[:most])

    path = SCREENS / f"{name}.txt"
    if os.environ.get("SKILLSHELF_REGENERATE") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen(opened.settled()), encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    opened.wait_until(lambda screen: seen(screen) == kept)


COLOURS = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)(?:;\d+)*m")

SETTLED = "not by"
"""A text of the hosts, which appears last; then the screen does not change."""


@pytest.mark.req("C-121")
def test_a_screen_of_any_size_shows_name_and_state_and_where_there_is_room_scope_root_and_preview(
    place: Machine,
) -> None:
    with terminal() as opened:
        start(opened, place)
        opened.wait(SETTLED)
        compare("80x24", opened, place)
        assert COLOURS.search(opened.screen("-e"))
        opened.resize(200, 50)
        compare("200x50", opened, place)
        opened.resize(40, 10)
        compare("40x10", opened, place)
        opened.keys("Tab", "Tab")
        compare("40x10-reading", opened, place)


@pytest.mark.req("C-121")
def test_typing_searches_keys_filter_switch_and_preview_and_enter_prints_the_name(place: Machine) -> None:
    with terminal() as opened:
        start(opened, place)
        opened.wait(SETTLED)

        opened.keys("before a release")
        compare("search", opened, place)
        opened.keys("C-t")
        compare("disabled", opened, place)
        opened.keys("C-u", "C-p")
        opened.wait("3 of 3 · problems")
        opened.keys("Tab", "Down")
        compare("problems", opened, place)
        opened.keys("p", "p", "s")
        opened.wait("3 of 5 · user")
        opened.keys("s")
        opened.wait("2 of 5 · project")
        opened.keys("o", "Down")
        compare("hosts", opened, place)
        opened.keys("Enter")
        opened.wait("no skill matches this filter")
        opened.keys("Escape")
        last = opened.wait("exit 1")
        assert last.startswith("skillshelf: there may be more outside this view: skillshelf inventory --home ")
        assert last.rstrip("\n").endswith("\nexit 1")
        assert opened.is_as_before
    assert 'disabled = ["retired", "release-notes"]' in (place.home / ".config/skillshelf/config.toml").read_text()


def test_a_large_shelf_is_listed_and_searched(place: Machine) -> None:
    for n in range(MANY):
        write_skill(place.home / ".agents/skills", f"skill-{n:05d}")
    with terminal() as opened:
        start(opened, place)
        opened.wait(">code-review", "── code-review")
        opened.keys("PageDown", "PageDown")
        opened.wait(">skill-00010")
        opened.keys("l-00777")
        # Below the list stands what hosts say, which takes longer for so many.
        compare("many", opened, place, most=9)


@pytest.mark.parametrize(
    ("line", "keys", "printed"),
    [
        ('cd "$({pick} --path 2>err)"; pwd', ["dep", "Enter"], "REPO/.agents/skills/deploy\nexit 0\n"),
        ("echo x | {pick} deploy 2>err | tr a-z A-Z; cat err", ["Enter"], "DEPLOY\nexit 0\n"),
        ("{pick}", ["C-c"], "exit 130\n"),
    ],
    ids=["cd", "pipes", "interrupt"],
)
def test_the_choice_goes_to_standard_output_and_the_terminal_is_left_as_it_was(
    place: Machine, line: str, keys: list[str], printed: str
) -> None:
    with terminal() as opened:
        start(opened, place, line)
        opened.wait("── ")
        for key in keys:
            opened.keys(key)
        screen = opened.wait("exit ")

        assert screen.rstrip("\n") + "\n" == printed.replace("REPO", str(place.repo))
        assert opened.is_as_before


@pytest.mark.req("C-121")
def test_the_choice_of_an_ambiguous_name_is_a_path_that_show_accepts(machine: Machine) -> None:
    here = write_skill(machine.repo / ".agents/skills", "dup", "---\nname: dup\ndescription: Here.\n---\nTHE-ONE\n")
    write_skill(machine.home / ".agents/skills", "dup")
    show = shlex.join([*COMMAND, "show", "--home", str(machine.home), "--profile", "codelia"])
    with terminal() as opened:
        start(opened, machine, f'{show} "$({{pick}} --profile codelia)"; echo exit $?')
        opened.wait("── ")
        opened.keys("Enter")
        screen = opened.wait("exit ")

    assert "exit 0" in screen
    assert str(here.parent) in screen.replace("\n", "")
    assert "THE-ONE" in screen


def test_what_is_typed_before_the_picker_listens_counts(place: Machine) -> None:
    """The terminal still makes a line feed of Enter then."""
    with terminal() as opened:
        start(opened, place, "echo typed; while [ ! -e ready ]; do sleep 0.02; done; {pick}")
        opened.wait("typed")
        opened.keys("dep", "Enter")
        opened.wait("dep")
        (place.repo / "ready").touch()

        screen = opened.wait("exit ")
        assert "\ndeploy\nskillshelf: there may be more outside this view: " in screen
        assert "\nexit 0\n" in screen


CRASH = """\
import sys
from skillshelf.cli import main
from skillshelf.cli.picker import model
def crash(*words): raise ValueError("[red]boom")
model.PickerModel.describe = crash
sys.exit(main.main(sys.argv[1:]))
"""


def test_a_crash_is_one_line_and_leaves_the_terminal_as_it_was(place: Machine) -> None:
    (place.repo / "crash.py").write_text(CRASH)
    with terminal() as opened:
        start(opened, place, shlex.join([COMMAND[0], "crash.py", "pick"]))
        screen = opened.wait("exit 5")

        said = "skillshelf: internal error in skillshelf, please report it: ValueError: [red]boom"
        assert screen.replace("\n", "").rstrip() == f"{said}exit 5"
        assert opened.is_as_before


def test_a_program_that_is_told_to_end_leaves_the_terminal_as_it_was(place: Machine) -> None:
    with terminal() as opened:
        start(opened, place, "sh -c 'echo $$ >pid; exec \"$@\"' sh {pick}")
        opened.wait("── code-review")
        os.kill(int((place.repo / "pid").read_text()), 15)
        opened.wait("exit 143")

        assert opened.is_as_before


def test_no_color_means_no_colour(place: Machine) -> None:
    with terminal() as opened:
        start(opened, place, NO_COLOR="1")
        opened.wait(SETTLED)

        assert COLOURS.search(opened.screen("-e")) is None
