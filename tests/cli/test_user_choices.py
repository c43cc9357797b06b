"""`enable`, `disable` and `trust` change the user's own file, and nothing else in it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.trees import SOURCE, Machine, run_command, write_skill

FILE = """\
# My skills.
[skills]          # what I use
ignored = ["draft-*"]   # not ready

# Never in production.
disabled = [
  "old",  # replaced
]

[profiles.lab]
extends = "standard"
"""


def test_disabling_and_enabling_leaves_every_comment_and_every_other_line(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.configure(FILE)

    assert machine.run("disable", "deploy").returncode == 0
    disabled = path.read_text()
    assert machine.run("enable", "deploy").returncode == 0

    assert [(skill.name, skill.hidden) for skill in machine.catalog().skills] == [("deploy", None)]
    assert [line for line in disabled.splitlines() if "deploy" not in line] == FILE.splitlines()
    assert '"deploy"' in disabled
    assert path.read_text().replace(",\n]", ",\n]") == FILE


def test_a_disabled_skill_is_listed_as_disabled_everywhere(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")

    assert machine.run("disable", "deploy").returncode == 0

    assert [(skill.enabled, skill.hidden) for skill in machine.catalog().skills] == [(False, "disabled")]
    assert machine.run_json("disable", "deploy")["changed"] is False


@pytest.mark.parametrize(
    "path", [".agents/skills/deploy", ".agents/skills/deploy/", "./.agents/skills/deploy/SKILL.md"]
)
@pytest.mark.parametrize("again", [".agents/skills/deploy", "deploy"])
def test_a_path_means_the_skill_there_from_wherever_it_is_named(machine: Machine, path: str, again: str) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "notes")

    machine.run("disable", path)
    disabled = [skill.name for skill in machine.catalog().skills if skill.hidden == "disabled"]
    machine.run("enable", again)

    assert disabled == ["deploy"]
    assert [skill.hidden for skill in machine.catalog().skills] == [None, None]


def test_a_path_without_a_skill_is_not_disabled(machine: Machine) -> None:
    assert machine.run("disable", "no/such").returncode == 3
    assert not (machine.home / ".config").exists()


def test_a_skill_that_the_project_disables_is_told_to_be_disabled_still(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / "skillshelf.toml").write_text('[skills]\ndisabled = ["deploy"]\n')

    done = machine.run("enable", "deploy")
    assert done.returncode == 1
    assert f"deploy is still disabled, by its name or its path, in {machine.repo}/skillshelf.toml" in done.stderr


def test_trust_that_came_by_a_link_is_taken_back_and_trust_from_above_is_told(machine: Machine) -> None:
    (machine.base / "link").symlink_to(machine.repo)
    machine.run("trust", str(machine.base / "link"))
    machine.run("trust", str(machine.base))

    done = machine.run("trust", "--remove")

    assert "no longer trusted" in done.stdout
    assert f"is still trusted, with {machine.base}; to end that" in done.stderr
    assert machine.run_json("trust", "--list") == [str(machine.base)]


def test_a_name_that_is_no_skill_is_not_disabled(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")

    done = machine.run("disable", "deplo")

    assert (done.returncode, done.stdout) == (3, "")
    assert "did you mean deploy?" in done.stderr
    assert not (machine.home / ".config").exists()


def test_a_trusted_folder_is_trusted_with_everything_below_it_until_that_is_taken_back(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    inner = machine.repo / "packages" / "app"
    inner.mkdir(parents=True)

    def hidden() -> list[str | None]:
        return [skill.hidden for skill in machine.catalog(trust="ask", cwd=inner).skills]

    before = hidden()
    assert machine.run("trust").returncode == 0
    after = hidden()
    listed = machine.run_json("trust", "--list")
    assert machine.run("trust", "--remove").returncode == 0

    assert (before, after, hidden()) == (["untrusted"], [None], ["untrusted"])
    assert listed == [str(machine.repo)]


def test_trusting_what_is_no_folder_is_wrong_usage(machine: Machine) -> None:
    assert machine.run("trust", "nowhere").returncode == 2


@pytest.mark.parametrize("text", ["skills = 5\n", "[skills]\ndisabled = 'deploy'\n", "[skills\n"])
def test_a_file_that_cannot_be_understood_is_left_alone(machine: Machine, text: str) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.configure(text)

    done = machine.run("enable", "deploy")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert path.read_text() == text


@pytest.mark.parametrize("words", [("disable", "deploy"), ("trust",)])
def test_a_file_that_is_too_large_to_be_read_is_not_replaced(machine: Machine, words: tuple[str, ...]) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    path = machine.configure("# mine\n" * 200_000)
    before = path.read_bytes()

    done = machine.run(*words)

    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "undo", "expected"),
    [
        (("disable", "deploy"), ("enable", "deploy"), '[skills]\ndisabled = ["deploy"]\n'),
        (("trust", "."), ("trust", "--remove"), '[trust]\nfolders = ["{repo}"]\n'),
    ],
)
def test_a_file_named_with_config_takes_the_choices_and_the_user_file_stays_away(
    machine: Machine, words: tuple[str, ...], undo: tuple[str, ...], expected: str
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    named = machine.base / "named.toml"
    named.write_text("# mine\n")

    done = machine.run_json(*words, "--config", "../named.toml")
    written = named.read_text()
    undone = machine.run_json(*undo, "--config", "../named.toml")

    assert [(one["file"], one["changed"]) for one in (done, undone)] == [(str(named), True)] * 2
    assert written == "# mine\n\n" + expected.format(repo=machine.repo)
    assert json.dumps(str(machine.repo)) not in named.read_text()
    assert '"deploy"' not in named.read_text()
    assert not (machine.home / ".config").exists()


def test_a_choice_in_a_file_named_with_config_counts_where_that_file_does(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    named = machine.base / "named.toml"
    named.touch()

    machine.run("disable", "deploy", "--config", str(named))
    machine.run("trust", "--config", str(named))

    assert machine.run_json("trust", "--list", "--config", str(named)) == [str(machine.repo)]
    assert machine.run_json("trust", "--list") == []
    assert [skill.hidden for skill in machine.catalog(config=named, trust="ask").skills] == ["disabled"]
    assert [skill.hidden for skill in machine.catalog(trust="ask").skills] == ["untrusted"]


@pytest.mark.parametrize("words", [("disable", "deploy"), ("trust",), ("trust", "--list")])
def test_a_file_named_with_config_that_is_not_there_is_not_made(machine: Machine, words: tuple[str, ...]) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    done = machine.run(*words, "--config", "nowhere/mispelt.toml")

    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "mispelt.toml: cannot be read" in done.stderr
    assert not (machine.repo / "nowhere").exists()


@pytest.mark.parametrize("words", [("disable", "deploy"), ("trust",)])
def test_a_home_that_cannot_be_written_is_a_failure_of_the_machine(machine: Machine, words: tuple[str, ...]) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    done = run_command(*words, "--json", cwd=machine.repo, env={"HOME": "/proc/nope"})

    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, "failed")
    assert (
        done.stderr
        == "skillshelf: /proc/nope/.config/skillshelf/config.toml cannot be written: no such file or directory\n"
    )


@pytest.mark.slow
def test_two_at_once_lose_nothing(machine: Machine) -> None:
    folders = [machine.base / f"folder-{n}" for n in range(8)]
    for folder in folders:
        folder.mkdir()
    words = [sys.executable, "-m", "skillshelf", "trust", "--home", str(machine.home)]

    running = [subprocess.Popen([*words, str(folder)], env={"PYTHONPATH": SOURCE}) for folder in folders]
    assert [process.wait(timeout=60) for process in running] == [0] * len(folders)

    assert sorted(json.loads(machine.run("trust", "--list", "--json").stdout)) == sorted(map(str, folders))


def test_a_file_behind_a_link_stays_behind_it(machine: Machine) -> None:
    kept = machine.base / "dotfiles.toml"
    kept.write_text("# mine\n")
    path = machine.home / ".config/skillshelf/config.toml"
    path.parent.mkdir(parents=True)
    path.symlink_to(kept)

    assert machine.run("trust").returncode == 0

    assert path.is_symlink()
    assert Path(kept).read_text().startswith("# mine\n")
    assert str(machine.repo) in kept.read_text()


@pytest.mark.parametrize("spelling", ["Deploy", "DEPLOY", "ｄｅｐｌｏｙ"])
def test_a_name_in_another_spelling_is_disabled_once_and_enabled_again(machine: Machine, spelling: str) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")

    disabled = [machine.run_json("disable", name)["changed"] for name in (spelling, "deploy", "dePloy")]
    hidden = [skill.hidden for skill in machine.catalog().skills]
    enabled = machine.run_json("enable", spelling)["changed"]

    assert (disabled, hidden, enabled) == ([True, False, False], ["disabled"], True)
    assert [skill.hidden for skill in machine.catalog().skills] == [None]
    machine.configure(f"skills.disabled = ['{spelling}']\n")
    assert [skill.hidden for skill in machine.catalog().skills] == ["disabled"]
    assert machine.run("enable", "deploy").returncode == 0
    assert [skill.hidden for skill in machine.catalog().skills] == [None]
