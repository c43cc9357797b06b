"""The picker driven by keys, without a terminal; and the command where there is no terminal or no Textual."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.trees import SOURCE, Machine, write_skill

pytest.importorskip("textual", reason="needs textual: it is not installed")

from textual.pilot import Pilot
from textual.widgets import Static

from skillshelf.cli.picker.app import Picker
from skillshelf.cli.picker.model import PickerModel
from skillshelf.cli.picker.rows import SkillRow
from skillshelf.cli.picker.widgets import Pane, Rows, Search
from skillshelf.config.hosts import HOSTS

pytestmark = pytest.mark.slow

Drive = Callable[[Picker, Pilot[Any]], Awaitable[None]]


def driven(machine: Machine, drive: Drive, *, size: tuple[int, int] = (80, 24), **options: Any) -> tuple[str, int]:
    """Run the picker without a terminal; what was chosen, and the exit status."""
    model = PickerModel(machine.shelf)
    app = Picker(model, **options)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: not app.query_one(Rows).empty.startswith("reading"))
            await drive(app, pilot)

    with closing(model):
        asyncio.run(run())
    chosen: SkillRow | None = app.return_value
    return (chosen.name if chosen else "", app.return_code or 0)


async def until(pilot: Pilot[Any], ready: Callable[[], bool]) -> None:
    """Let the picker work until something is so."""
    for _ in range(2000):
        if ready():
            return
        await pilot.pause(0.01)
    raise AssertionError("it never came")


def said(app: Picker) -> str:
    """The last line."""
    return str(app.query_one("#keys", Static).render())


def names(app: Picker) -> list[str]:
    """The rows that are shown."""
    return [row.name for row in app.query_one(Rows).rows]


def drawn(pane: Pane) -> str:
    """The text of the preview."""
    return "\n".join(pane.render_line(y).text for y in range(pane.size.height))


@pytest.fixture
def place(machine: Machine) -> Machine:
    """Two skills, and one that is none."""
    write_skill(machine.repo / ".agents/skills", "alpha")
    write_skill(machine.repo / ".agents/skills", "beta")
    write_skill(machine.repo / ".agents/skills", "broken", "---\nname: broken\n---\n")
    return machine


@pytest.mark.parametrize(
    ("keys", "end"),
    [
        (["up", "pagedown", "pagedown", "enter"], ("beta", 0)),
        (["b", "e", "t", "enter"], ("beta", 0)),
        (["tab", "tab", "down", "enter"], ("alpha", 0)),
        (["q", "escape"], ("", 1)),
        (["tab", "q"], ("", 1)),
        (["question_mark", "q", "down", "enter"], ("beta", 0)),
        (["tab", "slash", "b", "enter"], ("beta", 0)),
        (["ctrl+o", "tab", "down", "escape", "enter"], ("alpha", 0)),
        (["f1", "ctrl+t", "ctrl+c"], ("", 130)),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_keys_lead_to_a_choice_or_out(place: Machine, keys: list[str], end: tuple[str, int]) -> None:
    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        await pilot.press(*keys)
        await until(pilot, lambda: not app.is_running or app.return_code is not None)

    assert driven(place, drive) == end


def test_enter_takes_what_was_typed_and_not_what_still_stands_there(place: Machine) -> None:
    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        app.query_one(Search).value = "beta"
        app.query_one(Search).post_message(Search.Submitted(app.query_one(Search), "beta"))
        await until(pilot, lambda: app.return_code is not None)

    assert driven(place, drive) == ("beta", 0)


def test_what_arrives_while_the_help_is_open_is_there_when_it_closes(place: Machine) -> None:
    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        await pilot.press("f1")
        await until(pilot, lambda: "not by" in drawn(app.query_one(Pane)))
        await pilot.press("escape", "down", "enter")
        await until(pilot, lambda: app.return_code is not None)

    assert driven(place, drive) == ("beta", 0)


def test_what_is_not_in_the_catalog_is_taken_only_where_its_folder_is_asked_for(place: Machine) -> None:
    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: names(app) == ["broken"])
        await pilot.press("enter")
        await pilot.pause()
        if app.return_code is None:
            assert said(app).startswith("broken is not in the catalog (error); pick --path prints its folder")
            await pilot.press("escape")

    assert driven(place, drive) == ("", 1)
    assert driven(place, drive, takes_problems=True) == ("broken", 0)


def test_a_file_that_cannot_be_changed_is_said_and_nothing_is_lost(place: Machine) -> None:
    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: "not by" in drawn(app.query_one(Pane)))
        config = place.configure("[skills\n")
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "fix it first" in " ".join(drawn(app.query_one(Pane)).split()))
        assert said(app)[:20] == str(config)[:20]
        assert config.read_text() == "[skills\n"
        await pilot.press("down")
        assert "Esc quit" in said(app)
        await pilot.press("escape")

    assert driven(place, drive) == ("", 1)


def test_markup_in_a_skill_is_text(machine: Machine) -> None:
    text = '---\nname: loud\ndescription: "[red]x[/red] [@click=app.quit]y[/]"\n---\n[bold]body[/bold] [/]\n'
    write_skill(machine.repo / ".agents/skills", "loud", text)

    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        pane = app.query_one(Pane)
        await until(pilot, lambda: "not by" in drawn(pane))
        assert "[bold]body[/bold] [/]" in drawn(pane)
        assert "about    [red]x[/red] [@click=app.quit]y[/]" in drawn(pane)
        await pilot.press("escape")

    assert driven(machine, drive, size=(130, 40)) == ("", 1)


def test_a_host_is_asked_for_as_long_as_it_takes_and_a_later_choice_counts(place: Machine) -> None:
    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        gate = Event()
        ask, first, second = app.model.load_host, *list(HOSTS)[:2]
        app.model.load_host = lambda host: (gate.wait(30), ask(host))  # type: ignore[method-assign,assignment]

        def status() -> str:
            return str(app.query_one("#status", Static).render())

        await pilot.press("ctrl+o", "down", "enter", "down")
        await until(pilot, lambda: status().endswith(f"loading {first} …"))
        await pilot.press("ctrl+o", "down", "down", "enter")
        await until(pilot, lambda: status().endswith(f"loading {second} …"))
        gate.set()
        await until(pilot, lambda: status().endswith(f"2 · {second}"))
        await pilot.press("escape")

    assert driven(place, drive) == ("", 1)


def test_an_empty_place_says_where_to_look(machine: Machine) -> None:
    async def drive(app: Picker, pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: "no skills here" in app.query_one(Rows).empty)
        await pilot.press("enter", "ctrl+t", "down", "escape")

    assert driven(machine, drive) == ("", 1)


# The command --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_a_terminal_the_command_says_so_in_one_line(place: Machine) -> None:
    place.env["TERM"] = "xterm"

    done = place.run("pick", start_new_session=True, stdin=subprocess.DEVNULL)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "skillshelf: pick needs a terminal; without one, use skillshelf list or search\n"


def test_a_terminal_that_cannot_place_text_is_none(place: Machine) -> None:
    place.env["TERM"] = "dumb"

    done = place.run("pick")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "skillshelf: pick cannot draw on this terminal (TERM is dumb or not set); use pick --plain\n"


@pytest.mark.slow
def test_without_the_extra_the_command_says_what_to_install(place: Machine, tmp_path: Path) -> None:
    (tmp_path / "textual.py").write_text("raise ModuleNotFoundError('No module named textual', name='textual')\n")
    done = subprocess.run(
        [sys.executable, "-m", "skillshelf", "pick", "--home", str(place.home)],
        cwd=place.repo,
        env={"PYTHONPATH": f"{tmp_path}:{SOURCE}", "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "skillshelf: pick needs the extra tui: run pip install 'skillshelf[tui]', or use pick --plain\n"
    )


def test_a_wrong_configuration_is_said_before_anything_is_drawn(place: Machine) -> None:
    place.configure("nonsense = 1\n")

    done = place.run("pick")

    assert (done.returncode, done.stdout) == (2, "")
    assert "nonsense" in done.stderr


# The picture --------------------------------------------------------------------------------------

TOOLS = Path(__file__).parents[2] / "tools"


def texts_of(picture: str) -> list[str]:
    """The text in a picture; how it is drawn depends on the version of Textual."""
    return re.findall(r"<text[^>]*>([^<]*)", picture)


def test_the_picture_in_the_readme_is_what_the_picker_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("picture", TOOLS / "picture.py")
    assert spec
    assert spec.loader
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)

    kept = (TOOLS.parent / "docs/picker.svg").read_text(encoding="utf-8")

    assert texts_of(kept) == texts_of(asyncio.run(picture.draw())), "run: python tools/picture.py"
