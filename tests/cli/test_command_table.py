"""The table of commands: every row is complete, and lines made from it can be typed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from importlib import import_module
from typing import Any

import pytest
from support.model_server import model_server
from support.needs import needs, require
from support.trees import SOURCE, Machine, run_command, write_skill

from skillshelf.cli.command_table import COMMANDS, GROUPS, command_again, usage_of
from skillshelf.cli.main import main, parse
from skillshelf.core.text import did_you_mean, near


@pytest.mark.parametrize("name", COMMANDS)
def test_the_function_of_a_command_is_there(name: str) -> None:
    run = COMMANDS[name].run
    # Rows name a function instead of importing it, so nothing else notices a wrong name.
    named = dict(zip(run.__code__.co_freevars, (cell.cell_contents for cell in run.__closure__ or ()), strict=True))

    assert not named or callable(getattr(import_module(f"skillshelf.{named['module']}"), named["name"]))


@pytest.mark.parametrize(("line", "start"), [("serve nonsense", "one of: "), ("release nonsense https://x", "known: ")])
def test_help_shows_every_action_of_a_command_in_a_line_of_its_own(line: str, start: str, machine: Machine) -> None:
    name, *words = line.split()
    known = machine.run(name, *words).stderr.rpartition(start)[2].strip(" )\n").split(", ")

    text = machine.run(name, "--help").stdout
    assert len(known) == len(COMMANDS[name].actions) > 4
    assert [one for one in known if not any(action.startswith(one) for action, _ in COMMANDS[name].actions)] == []
    assert [action for action, _ in COMMANDS[name].actions if f"\n  {action} " not in text] == []


@pytest.mark.parametrize(
    ("line", "name", "changes", "again"),
    [
        ("list --profile host:codex --json", "list", {"all": True}, "skillshelf list --profile host:codex --all"),
        ("list --scope user --no-cache", "search", {"query": "QUERY"}, "skillshelf search --scope user QUERY"),
        ("show 'a b' --home /h", "why", {}, "skillshelf why --home /h 'a b'"),
        ("link '$(x)' --to a --to b", "link", {"to": ["c"]}, "skillshelf link --to c '$(x)'"),
        ("search --scope=-x -- -q", "search", {}, "skillshelf search --scope=-x -- -q"),
        ("--cwd /x", "list", {"cwd": None}, "skillshelf list"),
    ],
)
def test_a_hint_is_made_from_the_command_that_ran(line: str, name: str, changes: dict[str, Any], again: str) -> None:
    _, values = parse(shlex.split(line))

    made = command_again(values, name, **changes)

    assert made == again
    assert parse(shlex.split(made)[1:])[0] == name


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("lst", "list"),
        ("unlink x", "link"),
        ("list --scop user", "--scope"),
        ("list --profile codx", "codex"),
        ("list --profile HOST:CODX", "host:codex"),
        ("list --profile standart", "standard"),
        ("list --scope usr", "user"),
        ("search x --scope proyect", "project"),
        ("why x --host claude-cod", "claude-code"),
        ("check --format sarf", "sarif"),
        ("log shwo run.jsonl", "show"),
        ("show apha", "alpha"),
    ],
)
def test_a_misspelt_word_of_any_set_gets_the_nearest_one(machine: Machine, line: str, meant: str) -> None:
    write_skill(machine.home / ".agents" / "skills", "alpha")

    done = machine.run(*line.split())

    assert done.returncode in (2, 3)
    assert f"; did you mean {meant}?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_who_wants_to_install_a_source_is_sent_to_add(machine: Machine) -> None:
    said = "skillshelf: install takes no source: to add one: skillshelf add owner/repo\n"
    assert machine.run("install", "owner/repo").stderr == said


def test_a_rule_of_a_profile_that_is_misspelt_gets_the_nearest_one(machine: Machine) -> None:
    machine.configure('[profiles.lab.rules]\n"name-patern" = "warn"\n')

    assert "is not a rule; did you mean name-pattern?" in machine.run("list", "--profile", "lab").stderr


def test_near_names_are_found_in_any_case_and_a_long_word_takes_no_time() -> None:
    assert near("DEPLYO", ["deploy", "other", ""]) == ["deploy"]
    assert near("b" * 10**7, ["c" * 10**6, "a"]) == []
    assert did_you_mean("zzz", ["list"]) == ""
    assert near("z" * 300, ["z" * 3000, "z" * 199]) == ["z" * 199]


# Help ---------------------------------------------------------------------------------------------


def test_help_shows_the_commands_by_group_and_the_shared_options_once(machine: Machine) -> None:
    text = run_command("help", cwd=machine.repo).stdout
    sections = dict(part.split(":\n", 1) for part in text.split("\n\n") if ":\n" in part)

    for group in GROUPS:
        shown = [line.split()[0] for line in sections[group].splitlines() if line[2:3].strip()]
        assert shown == [name for name, row in COMMANDS.items() if name and row.group == group]
    assert text.count("--no-cache") == 1


def test_a_command_without_a_group_is_shown_too(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {**COMMANDS, "extra": COMMANDS["list"]._replace(group="", examples=())}
    monkeypatch.setattr("skillshelf.cli.help.COMMANDS", rows)

    assert "Other commands:\n  extra " in run_command("help", cwd=machine.repo).stdout
    assert "Examples" not in run_command("help", "extra", cwd=machine.repo).stdout


@pytest.mark.parametrize("name", [name for name in COMMANDS if name])
def test_help_of_a_command_shows_what_it_needs_and_its_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", name]) == 0
    text = capsys.readouterr().out

    command = COMMANDS[name]
    assert text.startswith(f"usage: {usage_of(name)} [OPTIONS]\n")
    assert all(line in text and what in text for line, what in command.examples)
    needed = [one.name for one in (*command.arguments, *command.options) if one.required]
    assert [one for one in needed if f" {one}" not in text.splitlines()[0] or f"[{one}" in text] == []


def test_a_command_that_help_does_not_know_gets_the_nearest_one(machine: Machine) -> None:
    done = run_command("help", "shwo", cwd=machine.repo)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "skillshelf: unknown command 'shwo'; did you mean show? (run `skillshelf --help`)\n"


# Examples -----------------------------------------------------------------------------------------

EXAMPLES = [(name, line) for name, command in COMMANDS.items() for line, _ in command.examples]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_group_and_two_examples(name: str) -> None:
    command = COMMANDS[name]

    assert command.group in GROUPS
    assert len(command.examples) == 2
    assert [
        line for line, _ in command.examples if line.split()[: 1 + bool(name)] != f"skillshelf {name}".split()
    ] == []
    assert [parse(shlex.split(line)[1:])[0] for line, _ in command.examples] == [name, name]


def place_for_examples(machine: Machine) -> dict[str, str]:
    """The folder that the examples are written for, and the environment that they run in."""
    skill = machine.repo / ".agents" / "skills" / "release-notes"
    text = "---\nname: release-notes\ndescription: Drafts release notes. Use when a pdf is released.\n---\n# Notes\n"
    write_skill(skill.parent, "release-notes", f"{text}See [style](references/style.md) and scripts/collect.py.\n")
    for file in ("scripts/collect.py", "references/style.md"):
        (skill / file).parent.mkdir()
        (skill / file).write_text("# Short\n")
    write_skill(machine.home / ".claude" / "skills", "at-home")
    write_skill(machine.repo / "drafts", "review")
    done = run_command("add", "./drafts/review", "--yes", cwd=machine.repo, env=home_of(machine))
    assert done.returncode == 0, done.stderr
    done = run_command("show", "release-notes", "--journal", "run.jsonl", cwd=machine.repo, env=home_of(machine))
    assert done.returncode == 0, done.stderr
    return home_of(machine)


def home_of(machine: Machine) -> dict[str, str]:
    return {"HOME": str(machine.home)}


OUTSIDE = ("mcp", "rpc", "chat", "pick", "run", "add", "import", "site", "ui", "serve", "release")
"""Commands that need more than a folder; their examples have tests of their own."""


@pytest.mark.parametrize("line", [line for name, line in EXAMPLES if name not in OUTSIDE])
def test_an_example_does_what_it_says(machine: Machine, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    env = place_for_examples(machine)
    # What runs of other tests left when they were killed is a problem that `doctor` reports.
    monkeypatch.setattr(tempfile, "tempdir", str(machine.base))
    if "--remove" in line:
        run_command(*shlex.split(line.replace(" --remove", ""))[1:], cwd=machine.repo, env=env)
    if "--in " in line:
        # A host can turn off what it sees.
        run_command("link", "release-notes", "--to", "claude-code", cwd=machine.repo, env=env)

    done = run_command(*shlex.split(line)[1:], cwd=machine.repo, env=env)

    assert (done.returncode, done.stdout != "") == (0, True), done.stderr


@needs("nh3")
@needs("jinja2")
@pytest.mark.parametrize("line", [line for name, line in EXAMPLES if name == "site"])
def test_an_example_of_a_site_writes_its_pages(machine: Machine, line: str) -> None:
    env = place_for_examples(machine)

    done = run_command(*shlex.split(line)[1:], cwd=machine.repo, env=env)

    assert (done.returncode, done.stdout != "") == (0, True), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for name, line in EXAMPLES if name in ("rpc", "pick", "run")])
def test_an_example_for_a_person_or_a_program_does_what_it_says(machine: Machine, line: str) -> None:
    if line.split()[1] == "pick":
        require("textual")
    env = place_for_examples(machine)

    done = run_command(*shlex.split(line)[1:], cwd=machine.repo, env=env, input="", start_new_session=True)

    # Without a terminal nobody can confirm a script or use the picker; but for that the line is right.
    known = {"run": (4, "--yes sha256:"), "pick": (2, "terminal"), "rpc": (0, "")}
    status, said = known[line.split()[1]]
    assert done.returncode == status, done.stderr
    assert said in done.stderr


@pytest.mark.slow
@needs("mcp")
@pytest.mark.parametrize("line", [line for name, line in EXAMPLES if name == "mcp"])
def test_an_example_of_a_server_serves(machine: Machine, line: str) -> None:
    env = place_for_examples(machine)
    words = [sys.executable, "-m", "skillshelf", *shlex.split(line.replace(":8000", ":0"))[1:]]
    process = subprocess.Popen(
        words,
        cwd=machine.repo,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        if "--http" in line:
            assert any("http://127.0.0.1:" in said for said in process.stderr)
        else:
            process.communicate("", timeout=60)
            assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream
            stream.close()


@pytest.mark.slow
@needs("pydantic_ai")
@needs("openai")
@pytest.mark.parametrize("line", [line for name, line in EXAMPLES if name == "chat"])
def test_an_example_of_a_chat_gets_an_answer(machine: Machine, line: str) -> None:
    env = place_for_examples(machine)
    with model_server("I have one.", "I have one.") as server:
        model = [] if "--model" in line else ["--model", "m"]
        done = run_command(
            *shlex.split(line)[1:], *model, cwd=machine.repo, env={**env, **server.env}, input="Which skills?\n"
        )

    assert (done.returncode, done.stdout) == (0, "I have one.\n"), done.stderr
