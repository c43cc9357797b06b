"""`usage` shows and clears what searches learned, which a person at a terminal is asked about once."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from support.trees import SOURCE, Machine, write_skill

from skillshelf.core.json_types import UseHistoryForm
from skillshelf.core.validation import validate


@pytest.fixture
def skills(machine: Machine) -> Machine:
    for name, description in (
        ("notes", "Prepare the release: notes for each release."),
        ("checks", "Checks a release."),
    ):
        root = machine.home / ".agents" / "skills"
        write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n")
    return machine


def history(machine: Machine) -> Path:
    return machine.home / ".local" / "state" / "skillshelf" / "usage.sqlite"


def test_a_search_and_a_show_in_two_processes_are_one_use(skills: Machine) -> None:
    skills.configure("search.learn = true\n")
    skills.run("search", "prepare a release")
    skills.run("show", "checks")

    found = skills.run_json("usage")

    assert not validate(found, UseHistoryForm)
    assert (found["file"], found["learn"], found["rows"], found["removed"]) == (str(history(skills)), True, 2, 0)
    assert [(Path(one["path"]).parent.name, one["loads"]) for one in found["skills"]] == [("checks", 1)]
    why = skills.run_json("search", "prepare a release")["results"]
    assert ["loaded 1 time after similar searches" in one["why"] for one in why].count(True) == 1
    shown = skills.run("usage").stdout.splitlines()
    assert shown[0] == "searches learn from use"
    assert shown[1].startswith("~/.local/state/skillshelf/usage.sqlite: ")
    assert "of at most 5,000 rows, since " in shown[1]
    assert shown[-1].split()[0] == "1"
    assert shown[-1].endswith("~/.agents/skills/checks/SKILL.md")


def test_clear_removes_the_file(skills: Machine) -> None:
    skills.configure("search.learn = true\n")
    skills.run("search", "prepare a release")
    skills.run("show", "checks")

    done = skills.run("usage", "--clear")

    assert (done.returncode, done.stdout) == (0, "~/.local/state/skillshelf/usage.sqlite: removed\n")
    assert not history(skills).exists()
    assert skills.run_json("usage", "--clear") == {
        "file": str(history(skills)),
        "learn": True,
        "cleared": False,
        "rows": 0,
        "most_rows": 5000,
        "removed": 0,
        "since": None,
        "skills": [],
    }


def test_without_the_setting_nothing_is_kept_and_usage_says_how_to_turn_it_on(skills: Machine) -> None:
    skills.run("search", "prepare a release")
    skills.run("show", "checks")

    assert not history(skills).exists()
    assert "`search.learn = true`" in skills.run("usage").stdout


def test_a_replaced_configuration_counts_as_the_users(skills: Machine) -> None:
    other = skills.base / "other.toml"
    other.write_text("[search]\nlearn = true\n")
    for words in (("search", "prepare a release"), ("show", "checks")):
        assert skills.run(*words, "--config", str(other)).returncode == 0

    assert history(skills).exists()


def test_a_damaged_history_is_named_by_search_usage_and_doctor_and_emptied_by_none(skills: Machine) -> None:
    skills.configure("search.learn = true\n")
    history(skills).parent.mkdir(parents=True)
    history(skills).write_bytes(b"something else" * 400)
    history(skills).chmod(0o600)

    search, usage = skills.run("search", "prepare a release"), skills.run("usage")

    assert search.returncode == 0
    assert [line for line in search.stderr.splitlines() if "not a history of use" in line]
    assert usage.returncode == 2
    assert "skillshelf usage --clear" in usage.stderr
    checked = skills.run("doctor", "usage", "--fix")
    assert checked.returncode == 1
    assert "not a history of use" in checked.stdout
    assert history(skills).read_bytes().startswith(b"something else")


def test_uninstall_removes_the_history(skills: Machine) -> None:
    skills.configure("search.learn = true\n")
    skills.run("search", "prepare a release")
    assert history(skills).exists()

    assert skills.run("uninstall", "--yes").returncode == 0
    assert not history(skills).exists()


# The question -------------------------------------------------------------------------------------


def in_terminal(machine: Machine, answer: str, *words: str, **variables: str) -> str:
    """All that a command writes to a terminal where somebody types an answer to a question."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "skillshelf", *words, "--home", str(machine.home)],
        cwd=machine.repo,
        env={"PYTHONPATH": SOURCE, "PATH": "", "NO_COLOR": "1", "COLUMNS": "100", **variables},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written, is_answered = b"", False
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            # The other end is closed.
            break
        written += part
        if b"[y/N]" in written and not is_answered:
            is_answered = True
            os.write(ours, answer.encode())
    assert process.wait(60) == 0
    os.close(ours)
    return written.decode()


SEARCH = ("search", "prepare a release")


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "said"), [("y\n", "true"), ("n\n", "false"), ("\n", "false")])
def test_a_person_is_asked_once_and_the_answer_is_kept_in_the_configuration(
    skills: Machine, answer: str, said: str
) -> None:
    path = skills.configure("# mine\n[permissions]\nallow = []\n")

    first, second = in_terminal(skills, answer, *SEARCH), in_terminal(skills, answer, *SEARCH)

    assert "Shall searches learn from use?" in first
    assert "usage.sqlite" in first
    assert "Shall searches learn" not in second
    assert path.read_text().startswith("# mine\n[permissions]\nallow = []\n")
    assert f"[search]\nlearn = {said}\n" in path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "variables"),
    [((*SEARCH, "--json"), {}), (SEARCH, {"CI": "true"}), ((*SEARCH, "--profile", "strict"), {}), (("list",), {})],
)
def test_nobody_is_asked_by_a_program_in_ci_or_where_nothing_would_be_learned(
    skills: Machine, words: tuple[str, ...], variables: dict[str, str]
) -> None:
    assert "[y/N]" not in in_terminal(skills, "y\n", *words, **variables)
    assert not (skills.home / ".config").exists()


def test_nobody_is_asked_without_a_terminal(skills: Machine) -> None:
    assert "[y/N]" not in skills.run(*SEARCH).stderr
    assert not (skills.home / ".config").exists()
