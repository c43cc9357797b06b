"""The pager: started where the output is longer than the terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.needs import needs_program, needs_tmux
from support.terminals import COMMAND, Terminal, terminal
from support.trees import Machine, write_skill

from skillshelf.cli.command_table import COMMANDS, NO_PAGER
from skillshelf.cli.pager import pager_words

PAGED = ("list", "show", "read", "check", "hosts", "log", "help")
SHOWN = "s00"


def test_commands_with_long_output_have_a_pager() -> None:
    assert [name for name in PAGED if NO_PAGER not in COMMANDS[name].options] == []


# Which one ----------------------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with two programs."""
    for name in ("less", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, ["less", "-FRX"]),
        ({"PAGER": "other -x 'a b'"}, ["other", "-x", "a b"]),
        ({"PAGER": "less", "SKILLSHELF_PAGER": "other"}, ["other"]),
        ({"PAGER": "less", "SKILLSHELF_PAGER": ""}, None),
        ({"PAGER": " "}, None),
        ({"TERM": "dumb"}, None),
    ],
)
def test_the_pager_is_the_one_that_the_user_named(
    programs: Path, env: Mapping[str, str], words: list[str] | None
) -> None:
    found = pager_words({"TERM": "xterm", "PATH": str(programs), **env})

    assert found == (words and [f"{programs}/{words[0]}", *words[1:]])


@pytest.mark.parametrize("pager", ["nonsense", "'unclosed"])
def test_a_pager_that_is_not_there_is_said_in_one_line(
    programs: Path, pager: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pager_words({"TERM": "xterm", "PATH": str(programs), "PAGER": pager}) is None

    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "is not installed (to print without a pager: --no-pager, or SKILLSHELF_PAGER=)" in said


def test_nothing_is_said_where_nobody_named_a_pager(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pager_words({"TERM": "xterm", "PATH": str(tmp_path)}) is None
    assert capsys.readouterr().err == ""


def test_no_pager_is_taken_from_the_folder_one_works_in(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(programs)

    assert pager_words({"TERM": "xterm", "PATH": f".:{os.pathsep}:"}) is None


# On a terminal ------------------------------------------------------------------------------------


@pytest.fixture
def many(machine: Machine) -> Machine:
    """A home folder with more skills than a terminal has lines."""
    for number in range(40):
        write_skill(machine.home / ".agents" / "skills", f"s{number:02}")
    (machine.home / ".agents/skills/s00/SKILL.md").write_text(
        "---\nname: s00\ndescription: Long. Use when asked.\n---\n" + "line\n" * 60
    )
    return machine


def started(screen: Terminal, machine: Machine, line: str, **env: str) -> None:
    """Run the command, with less where a test names no pager."""
    command = f"{shlex.join(COMMAND)} {line} --home {shlex.quote(str(machine.home))}"
    # The shell of a script leaves with Ctrl-C, one at a prompt does not.
    screen.start(f"trap : INT\n{command}", cwd=machine.repo, env={"HOME": str(machine.home), **env})


def recorder(machine: Machine, status: int = 0, read: str = "cat >{}") -> tuple[str, Path]:
    """A pager that keeps what it gets in a file, and ends with a status."""
    program, kept = machine.base / "pager", machine.base / "kept"
    program.write_text(f"#!/bin/sh\n{read.format(shlex.quote(str(kept)))}\nexit {status}\n")
    program.chmod(0o755)
    return shlex.quote(str(program)), kept


@pytest.mark.slow
@needs_tmux
@needs_program("less")
def test_a_long_list_waits_in_less_and_keeps_its_status(many: Machine) -> None:
    with terminal(80, 20) as screen:
        started(screen, many, "list")
        first = screen.wait("s10")
        assert first.splitlines()[0].startswith("NAME")
        assert "exit" not in first
        # A pager has its own meaning of Ctrl-C; the program must stay, or both would read the keys.
        screen.keys("C-c")
        screen.press_until("G", "40 skills (40 user), profile standard")
        screen.keys("q")
        screen.wait("exit 0")
        assert screen.is_as_before


@pytest.mark.slow
@needs_tmux
@needs_program("less")
def test_who_leaves_early_gets_the_status_of_the_command(many: Machine) -> None:
    # Warnings make `check` fail, and this one prints more than a pipe holds.
    for number in range(400):
        text = f"---\nname: Wrong_{number}\ndescription: {'x ' * 600}\n---\n"
        write_skill(many.home / ".agents" / "skills", f"wrong-{number}", text)
    with terminal(80, 20) as screen:
        started(screen, many, "check --user")
        screen.wait_until(lambda text: len(text.split()) > 40 and "exit" not in text)
        screen.keys("q")
        screen.wait("exit 1", lacks=["Traceback", "Broken"])


@pytest.mark.slow
@needs_tmux
@pytest.mark.parametrize(
    ("line", "env"),
    [
        ("list --no-pager", {}),
        ("list", {"SKILLSHELF_PAGER": ""}),
        ("list --json", {}),
        ("list --scope env", {}),
        ("list | tail -n 3", {}),
        ("help completion", {}),
    ],
)
def test_there_is_no_pager_for_what_fits_or_is_for_programs(many: Machine, line: str, env: dict[str, str]) -> None:
    program, kept = recorder(many)
    line, pipe, rest = line.partition(" | ")
    home = f"--home {shlex.quote(str(many.home))}" if "help" not in line else ""
    with terminal(80, 30) as screen:
        command = f"{shlex.join(COMMAND)} {line} {home} {pipe}{rest}"
        screen.start(command, cwd=many.repo, env={"HOME": str(many.home), "PAGER": program, **env})
        screen.wait("exit 0")
    assert not kept.exists()


@pytest.mark.slow
def test_a_terminal_without_a_size_gets_everything_at_once(many: Machine) -> None:
    program, kept = recorder(many)
    main, side = pty.openpty()
    command = [*COMMAND, "list", "--home", str(many.home)]
    env = {**os.environ, "PAGER": program, "TERM": "xterm", "HOME": str(many.home)}
    # A new terminal is one of 0 columns and 0 lines.
    with subprocess.Popen(command, cwd=many.repo, env=env, stdin=subprocess.DEVNULL, stdout=side) as process:
        os.close(side)
        shown = b""
        while piece := _read_terminal(main):
            shown += piece
        assert process.wait(timeout=60) == 0
    os.close(main)
    assert b"40 skills (40 user)" in shown
    assert not kept.exists()


def _read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        # Linux reports the end of a terminal as an error.
        return b""


@pytest.mark.slow
@needs_tmux
def test_the_pager_gets_everything_and_notes_come_after_it(many: Machine) -> None:
    program, kept = recorder(many)
    with terminal(80, 20) as screen:
        started(screen, many, "show s00 --args x --profile codelia", PAGER=program)
        shown = screen.wait("exit 0")
    assert kept.read_text().count("line\n") == 60
    assert "passes no arguments to skills" in shown


@pytest.mark.slow
@needs_tmux
@pytest.mark.parametrize(
    ("pager", "said", "is_printed"),
    [
        ("nonsense-pager", "the pager nonsense-pager is not installed", True),
        ("/nonexistent/pager", "the pager /nonexistent/pager cannot be started", True),
        ("/bin/false", "the pager /bin/false ended with status 1", False),
    ],
)
def test_a_broken_pager_costs_one_line_and_not_the_status(
    many: Machine, pager: str, said: str, is_printed: bool
) -> None:
    with terminal(200, 20) as screen:
        started(screen, many, "list", PAGER=pager)
        shown = screen.wait("exit 0", said)
    assert shown.count("the pager ") == 1
    assert "--no-pager, or SKILLSHELF_PAGER=" in shown
    assert ("40 skills (40 user)" in shown) == is_printed


@pytest.mark.slow
@needs_tmux
@needs_program("less")
def test_an_error_after_output_is_shown_when_the_pager_is_left(many: Machine) -> None:
    journal = many.base / "run.jsonl"
    journal.write_text("".join(f"broken {number}\n" for number in range(50)))
    with terminal(80, 20) as screen:
        started(screen, many, f"log show {shlex.quote(str(journal))}")
        screen.wait("line 1 ", "broken")
        screen.keys("q")
        screen.wait("exit 0")
