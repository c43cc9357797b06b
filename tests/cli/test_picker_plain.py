"""The picker as numbered lines: in process with given streams, and on a terminal that can only print."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import subprocess
import termios
from contextlib import closing
from pathlib import Path

import pytest
from support.embedding_server import EmbeddingServer
from support.needs import needs
from support.pickertrees import picker_machine
from support.terminals import COMMAND
from support.trees import SOURCE, Machine, write_skill

from skillshelf.cli.picker.model import PickerModel
from skillshelf.cli.picker.plain import choose_plain


@pytest.fixture
def place(machine: Machine) -> Machine:
    """Two skills, and one that is not valid."""
    write_skill(machine.repo / ".agents/skills", "alpha")
    write_skill(machine.repo / ".agents/skills", "beta")
    write_skill(machine.repo / ".agents/skills", "broken", "---\nname: broken\n---\n")
    return machine


def chosen(machine: Machine, typed: str, *, query: str = "", takes_problems: bool = False) -> tuple[str, str]:
    """Choose with these lines; return the name of the chosen row and the text on the screen."""
    screen = io.StringIO()
    with closing(PickerModel(machine.shelf)) as model:
        row = choose_plain(model, io.StringIO(typed), screen, query=query, takes_problems=takes_problems)
    return row.name if row else "", screen.getvalue()


@pytest.mark.req("C-121")
@pytest.mark.slow
def test_what_is_printed_for_one_of_two_skills_of_a_name_is_accepted_by_show(machine: Machine) -> None:
    here = write_skill(machine.repo / ".agents/skills", "dup")
    write_skill(machine.home / ".agents/skills", "dup")
    write_skill(machine.home / ".agents/skills", "single")

    rows = {}
    with closing(PickerModel(lambda: machine.shelf("codelia"))) as model:
        for typed in ("1\n", "2\n", "3\n"):
            row = choose_plain(model, io.StringIO(typed), io.StringIO())
            assert row
            rows[row.path] = row.identifier

    assert sorted(rows.values())[2] == "single"
    for path, identifier in rows.items():
        shown = machine.run("show", identifier, "--json", "--profile", "codelia")
        assert json.loads(shown.stdout)["skill"]["path"] == path
    assert rows[str(here)] == str(here)


PROMPT = "number, words to search, or q: "
BOTH = """\
2 skills:
1. alpha (project, on): Does alpha things. Use when alpha is asked for.
2. beta (project, on): Does beta things. Use when beta is asked for.
"""
BETA = """\
1 skill for 'beta':
1. beta (project, on): Does beta things. Use when beta is asked for.
"""


def test_a_number_chooses_words_search_and_an_empty_line_lists_everything(place: Machine) -> None:
    assert chosen(place, "2\n") == ("beta", BOTH + PROMPT)
    assert chosen(place, "beta\n1\n") == ("beta", BOTH + PROMPT + BETA + PROMPT)
    assert chosen(place, "\n1\n", query="beta") == ("alpha", BETA + PROMPT + BOTH + PROMPT)


@pytest.mark.parametrize("typed", ["q\n", ""], ids=["q", "end"])
def test_q_or_the_end_of_the_input_leaves_without_a_choice(place: Machine, typed: str) -> None:
    assert chosen(place, typed) == ("", BOTH + PROMPT)


def test_a_number_that_is_not_in_the_list_is_rejected(place: Machine) -> None:
    name, screen = chosen(place, "3\n0\n1\n")

    assert name == "alpha"
    assert screen == BOTH + PROMPT + f"no number 3 in the list\n{PROMPT}no number 0 in the list\n" + PROMPT


def test_a_file_that_is_not_in_the_catalog_is_listed_only_for_its_path(place: Machine) -> None:
    assert chosen(place, "broken\nq\n")[1].endswith(f"0 skills for 'broken'\n{PROMPT}")
    name, screen = chosen(place, "3\n", takes_problems=True)
    assert name == "broken"
    assert "\n3. broken (project, error): description-missing: " in screen


def test_a_long_list_names_its_rest_and_no_text_controls_the_terminal(machine: Machine) -> None:
    for n in range(22):
        write_skill(machine.repo / ".agents/skills", f"skill-{n:02d}")
    text = '---\nname: loud\ndescription: "a\\u001b[31mb. Use when asked."\n---\n'
    write_skill(machine.repo / ".agents/skills", "loud", text)

    name, screen = chosen(machine, "21\n20\n")

    assert name == "skill-18"
    assert "\nand 3 more; type words to search\n" in screen
    assert "no number 21 in the list" in screen
    assert screen.replace("\n", "").isprintable()


def test_the_lines_in_the_documentation_are_the_lines_of_the_picker() -> None:
    with picker_machine() as machine:
        _, screen = chosen(machine, "q\n")

    assert screen + "\n" == (Path(__file__).parent / "screens/plain.txt").read_text(encoding="utf-8")


def test_what_a_search_has_to_say_stands_before_its_results(place: Machine) -> None:
    _, screen = chosen(place, f"beta {'x' * 9000}\nq\n")

    assert "\n(the query has 9,005 characters; its first and last 4,096 were searched for)\n1. beta" in screen


def picked(machine: Machine, *typed: bytes) -> tuple[bytes, str]:
    """Type a line at each prompt of `pick --plain`; return what is printed, and what the terminal shows."""
    terminal, other = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "pick", "--plain", "--home", str(machine.home)],
        stdin=other,
        stdout=subprocess.PIPE,
        stderr=other,
        cwd=machine.repo,
        env={**os.environ, "PYTHONPATH": SOURCE, "TERM": "dumb"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(other)
    seen = b""
    for number, line in enumerate(typed, 1):
        while seen.count(PROMPT.encode()) < number:
            seen += os.read(terminal, 4096)
        os.write(terminal, line)
    printed, _ = process.communicate()
    os.close(terminal)
    assert process.returncode == 0
    return printed, seen.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_a_terminal_that_can_only_print_is_enough(place: Machine) -> None:
    """The list and the prompt go to the terminal, the name to standard output, with no control of the screen."""
    listed = BOTH.replace("(project, on)", "(project, untrusted)")

    assert picked(place, b"2\n") == (b"beta\n", listed + PROMPT)


@needs("numpy")
@pytest.mark.slow
def test_no_beginning_of_a_query_is_sent_to_a_server_of_embeddings(place: Machine) -> None:
    server = EmbeddingServer()
    with server:
        place.configure(f'[search.scorer]\nurl = "{server.address}"\nmodel = "small"\n')

        assert picked(place, b"be\n", b"beta\n", b"1\n")[0] == b"beta\n"
        assert server.requests == []
        # The same words, typed as a whole command.
        place.run("search", "beta")
        assert server.requests
