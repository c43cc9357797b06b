"""The command: what it prints for people and for programs, and how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.trees import SOURCE, Machine, run_command, write_skill

import skillshelf
from skillshelf import Profile
from skillshelf.cli.command_table import COMMANDS
from skillshelf.cli.main import main
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.core.console import write_piece

SCHEMAS = Path(skillshelf.__file__).parent / "json_schemas"


def validate(value: Any, schema: str) -> None:
    """Fail unless the value is what the shipped schema says."""
    jsonschema.validate(value, json.loads((SCHEMAS / f"{schema}.json").read_text(encoding="utf-8")))


def fill(machine: Machine) -> None:
    """One of everything: visible, hidden, shadowed, filtered, refused, and warned about."""
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "alpha")
    write_skill(root, "beta", "---\nname: beta\ndescription: |\n  Two\n  lines.\n---\n")
    write_skill(root, "broken", "# No frontmatter\n")
    write_skill(root / "alpha", "inner")
    write_skill(machine.repo / ".claude" / "skills", "alpha")
    write_skill(machine.home / ".agents" / "skills", "gamma")
    write_skill(machine.home / ".agents" / "skills", "unwanted")
    machine.configure('[skills]\nignored = ["unwanted"]\n')


# Hints --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("words", [("list",), ("run", "alpha", "go.sh")])
def test_the_command_that_trusts_a_project_names_it_where_the_user_is_elsewhere(
    machine: Machine, words: tuple[str, ...]
) -> None:
    folder = write_skill(machine.repo / ".agents" / "skills", "alpha").parent
    (folder / "scripts").mkdir()
    (folder / "scripts" / "go.sh").write_text("#!/bin/sh\n")
    below = machine.repo / "packages" / "api"
    below.mkdir(parents=True)

    for where in ({"cwd": below}, {"cwd": machine.home, "from": below}):
        named = ["--cwd", str(where["from"])] if "from" in where else []
        done = machine.run(*words, *named, cwd=where["cwd"])
        hint = (done.stdout + done.stderr).partition("skillshelf trust")[2].splitlines()[0].partition(";")[0]
        # The line of a person, as they would paste it.
        assert run_command("trust", *shlex.split(hint), cwd=where["cwd"]).returncode == 0
        assert "hidden from models" not in machine.run("list", cwd=below).stdout, hint
        machine.run("trust", "--remove")


def test_a_skill_of_a_folder_that_the_profile_does_not_read_is_looked_for_in_all_hosts(machine: Machine) -> None:
    write_skill(machine.home / ".codex" / "skills", "elsewhere")

    done = machine.run("show", "elsewhere", "--profile", "standard")

    assert (done.returncode, done.stdout) == (3, "")
    [line] = done.stderr.splitlines()
    line = line.rpartition(" (in the folders of all hosts: ")[2].removesuffix(")")
    found = run_command(*shlex.split(line)[1:], cwd=machine.repo)
    assert (found.returncode, "~/.codex/skills/elsewhere/SKILL.md" in found.stdout) == (0, True)


# Tables -------------------------------------------------------------------------------------------


def test_a_list_is_a_plain_table_in_a_pipe(machine: Machine) -> None:
    root = machine.home / ".agents" / "skills"
    write_skill(root, "long-name", "---\nname: long-name\ndescription: " + "Words " * 60 + "\n---\n")
    write_skill(root, "b", "---\nname: b\ndescription: |\n  Two\n  lines.\n---\n")

    done = machine.run("list")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "NAME       SCOPE  DESCRIPTION\n"
        "b          user   Two lines.\n"
        f"long-name  user   {('Words ' * 60).strip()}\n"
        "\n"
        "2 skills (2 user), profile standard\n"
    )


def test_a_list_of_everything_gives_each_its_reason(machine: Machine) -> None:
    fill(machine)

    lines = machine.run("list", "--all").stdout.splitlines()
    config = "~/.config/skillshelf/config.toml"

    def section(title: str) -> list[list[str]]:
        start = next(number for number, line in enumerate(lines) if line.startswith(title))
        end = next(number for number, line in enumerate(lines) if number > start and not line)
        return [line.split(maxsplit=2) for line in lines[start + 1 : end]]

    assert [row[:2] for row in section("NAME")] == [["alpha", "project"], ["beta", "project"], ["gamma", "user"]]
    assert section("Hidden from models") == [
        [f".agents/skills/{name}/SKILL.md", "untrusted", f"{config}: trust.folders"] for name in ("alpha", "beta")
    ]
    assert section("Errors") == [
        [".agents/skills/broken/SKILL.md:1", "frontmatter-missing", "the file does not begin with a line `---`"]
    ]
    assert section("Shadowed") == [[".claude/skills/alpha/SKILL.md", "alpha", "behind .agents/skills/alpha/SKILL.md"]]
    assert section("Filtered") == [
        [".agents/skills/alpha/inner/SKILL.md", "inside-skill", "inner"],
        [
            "~/.agents/skills/unwanted/SKILL.md",
            "ignored",
            "unwanted (~/.config/skillshelf/config.toml: skills.ignored)",
        ],
    ]
    assert [row[:2] for row in section("Warnings")] == [[".claude/skills/alpha/SKILL.md", "name-collision"]]


def test_a_list_counts_what_it_leaves_out_and_says_how_to_see_it(machine: Machine) -> None:
    fill(machine)

    done = machine.run("list")

    assert "3 skills (2 project, 1 user), profile standard" in done.stdout
    assert "1 error, 1 shadowed, 1 filtered, 1 warning; details: skillshelf list --all" in done.stdout
    assert "broken" not in done.stdout


def test_a_held_back_skill_says_why(machine: Machine) -> None:
    fill(machine)

    rows = [line.split()[:3] for line in machine.run("list").stdout.splitlines()[:4]]

    assert rows == [
        ["NAME", "SCOPE", "HIDDEN"],
        ["alpha", "project", "untrusted"],
        ["beta", "project", "untrusted"],
        ["gamma", "user", "-"],
    ]


def test_an_empty_machine_says_where_it_looked_and_what_a_skill_is(machine: Machine) -> None:
    done = machine.run("list")

    assert done.returncode == 0
    assert done.stdout.startswith("No skills here.")
    for folder in (".agents/skills", ".claude/skills", "~/.agents/skills", "~/.claude/skills"):
        assert f"  {folder} " in done.stdout
    assert "SKILL.md" in done.stdout


def test_the_overview_is_one_screen_whose_advice_works(machine: Machine) -> None:
    fill(machine)
    for number in range(30):
        write_skill(machine.home / ".claude" / "skills", f"many-{number:02}")

    done = machine.run()

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    commands = [line for line in lines if line.startswith("  skillshelf ")]
    assert max(map(len, set(lines[1:]) - set(commands))) <= 100
    assert lines[0].startswith("37 skills in 4 places, from ")
    places = {row[1]: row[0] for line in lines[1:] if (row := line.split()) and row[0].isdecimal()}
    assert places == {".agents/skills": "4", ".claude/skills": "1", "~/.agents/skills": "2", "~/.claude/skills": "30"}
    advised = [shlex.split(line.strip().split("  ")[0])[1:] for line in commands]
    assert [words[0] for words in advised] == ["check", "why", "inventory", "search", "list"]
    typed = [[{"NAME": "gamma", "WORDS": "gamma"}.get(word, word) for word in words] for words in advised]
    # One skill is broken, which `check` reports.
    assert [run_command(*words, cwd=machine.repo).returncode for words in typed] == [1, 0, 0, 0, 0]


# Scopes -------------------------------------------------------------------------------------------


def test_a_scope_narrows_the_skills(machine: Machine) -> None:
    fill(machine)

    names = {
        scope: [skill["name"] for skill in machine.run_json("list", "--scope", scope)["skills"]]
        for scope in ("project", "user")
    }

    assert names == {"project": ["alpha", "beta"], "user": ["gamma"]}
    assert machine.run("list", "--scope=user").stdout.splitlines()[1].split()[:2] == ["gamma", "user"]


@pytest.mark.parametrize(
    ("profile", "scopes"),
    [
        ("standard", ["env", "project", "custom", "user"]),
        ("codelia", ["repo", "user"]),
        ("swiftagent", ["user", "project", "env"]),
        ("omp", ["project", "user", "custom"]),
    ],
)
def test_every_scope_of_a_profile_may_be_asked_for(machine: Machine, profile: str, scopes: list[str]) -> None:
    """A script that asks for `env` must not fail on the machine where the variable is not set."""
    done = {scope: machine.run("list", "--profile", profile, "--scope", scope) for scope in scopes}

    assert {scope: one.returncode for scope, one in done.items()} == dict.fromkeys(scopes, 0)


def test_a_scope_without_skills_does_not_call_the_other_folders_empty(machine: Machine) -> None:
    write_skill(machine.repo / ".agents" / "skills", "alpha")

    lines = machine.run("list", "--scope", "user").stdout.splitlines()

    assert [line for line in lines if ".agents/skills" in line and "project" in line and "empty" in line] == []


# JSON ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("list",), ("list", "--all"), ("list", "--scope", "user")], ids=" ".join)
@pytest.mark.parametrize("profile", ["standard", "omp"])
def test_json_is_one_line_that_its_schema_describes(machine: Machine, words: tuple[str, ...], profile: str) -> None:
    fill(machine)

    done = machine.run(*words, "--profile", profile, "--json")

    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    catalog = json.loads(done.stdout)
    validate(catalog, "catalog")
    for skill in catalog["skills"]:
        validate(skill, "skill")
    for entry in (*catalog["errors"], *catalog["warnings"]):
        validate(entry, "load-error")


def test_json_tells_everything_without_being_asked_except_what_lies_inside_skills(machine: Machine) -> None:
    fill(machine)

    plain, everything = machine.run_json("list"), machine.run_json("list", "--all")

    assert [entry["reason"] for entry in plain["filtered"]] == ["ignored"]
    assert sorted(entry["reason"] for entry in everything["filtered"]) == ["ignored", "inside-skill"]
    assert {**everything, "filtered": []} == {**plain, "filtered": []}
    assert plain == machine.run_json()


def test_an_option_before_the_command_counts_as_much_as_one_behind_it(machine: Machine) -> None:
    fill(machine)
    behind = machine.run("list", "--json", "--profile", "strict")

    before = machine.run("--json", "--profile", "strict", "list")

    assert (before.returncode, before.stdout) == (behind.returncode, behind.stdout)


# Profiles and help --------------------------------------------------------------------------------


def test_profiles_are_listed_by_name(machine: Machine) -> None:
    machine.configure('[profiles.lab]\nextends = "codelia"\nmax_depth = 2\n')

    assert machine.run_json("profile") == [*SYSTEMS, "lab"]
    rows = machine.run("profile").stdout.split("\n\n")[0].splitlines()
    assert [row.split()[0] for row in rows] == ["PROFILE", *SYSTEMS, "lab"]


@pytest.mark.parametrize("name", ["standard", "omp"])
def test_a_profile_shows_every_field(machine: Machine, name: str) -> None:
    shown = machine.run_json("profile", name)
    table = machine.run("profile", name).stdout.splitlines()

    assert list(shown) == list(Profile._fields)
    assert shown["name"] == name
    assert {line.split()[0].split(".")[0].split("[")[0] for line in table} == set(Profile._fields)


def test_a_profile_may_be_named_by_the_option_too(machine: Machine) -> None:
    assert machine.run_json("profile", "--profile", "omp") == machine.run_json("profile", "omp")


@pytest.mark.parametrize("words", [("help",), ("--help",), ("-h",)], ids=" ".join)
def test_help_names_every_command(machine: Machine, words: tuple[str, ...]) -> None:
    done = run_command(*words, cwd=machine.repo)

    assert (done.returncode, done.stderr) == (0, "")
    assert [name for name in COMMANDS if name and f"\n  {name} " not in done.stdout] == []


@pytest.mark.parametrize("command", [name for name in COMMANDS if name])
def test_every_command_explains_its_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0

    shown = capsys.readouterr()
    assert shown.err == ""
    assert [option.name for option in COMMANDS[command].options if option.name not in shown.out] == []
    assert main(["help", command]) == 0
    assert capsys.readouterr().out == shown.out


def test_the_version_is_that_of_the_package(machine: Machine) -> None:
    assert run_command("--version", cwd=machine.repo).stdout == f"skillshelf {skillshelf.__version__}\n"


# Failures -----------------------------------------------------------------------------------------

WRONG = {
    "command": ("nonsense",),
    "option": ("list", "--nonsense"),
    "argument": ("list", "nonsense"),
    "short option": ("list", "-x"),
    "abbreviated option": ("list", "--prof", "omp"),
    "option without its value": ("list", "--profile"),
    "flag with a value": ("list", "--all=yes"),
    "scope": ("list", "--scope", "nonsense"),
    "profile": ("list", "--profile", "nonsense"),
    "profile of the overview": ("--profile", "nonsense"),
    "profile to show": ("profile", "nonsense"),
    "folder to start from": ("list", "--cwd", "/nonexistent/folder"),
    "folder of the overview": ("--cwd", "/nonexistent/folder"),
    "folder of a profile": ("profile", "--cwd", "/nonexistent/folder"),
    "file to start from": ("list", "--cwd", "/dev/null"),
    "configuration": ("list", "--config", "/nonexistent/file.toml"),
    "escape sequence": ("list", "--profile", "\x1b[31m\u202e"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_usage_is_one_line_that_helps(machine: Machine, wrong: str) -> None:
    plain = machine.run(*WRONG[wrong])
    as_json = machine.run(*WRONG[wrong], "--json")

    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr.startswith("skillshelf: ")
    assert plain.stderr.count("\n") == 1
    assert "\x1b" not in plain.stderr + as_json.stdout
    assert as_json.returncode == 2
    validate(json.loads(as_json.stdout), "failure")
    assert json.loads(as_json.stdout)["error"]["code"] == "invalid_params"
    assert as_json.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "wrong", ["[skills]\nnonsense = 1\n", "[skills\n", '[skills]\ncustom_directories = ["a\\u0000b"]\n']
)
def test_a_wrong_configuration_file_is_wrong_usage(machine: Machine, wrong: str) -> None:
    path = machine.configure(wrong)

    done = machine.run("list")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert str(path) in done.stderr


def test_errors_in_skills_are_no_failure_of_the_command(machine: Machine) -> None:
    write_skill(machine.repo / ".agents" / "skills", "broken", "")

    assert machine.run("list").returncode == 0
    assert machine.run("list", "--all").returncode == 0


@pytest.mark.slow
def test_a_working_directory_that_is_gone_is_one_line(machine: Machine) -> None:
    gone = machine.base / "gone"
    gone.mkdir()

    done = subprocess.run(
        ["sh", "-c", f'rmdir {gone}; exec "$@"', "sh", sys.executable, "-m", "skillshelf", "list"],
        cwd=gone,
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home)},
        capture_output=True,
        text=True,
    )

    assert (done.returncode in (2, 5), done.stdout, done.stderr.count("\n")) == (True, "", 1)
    assert done.stderr.startswith("skillshelf: ")


# Where the output goes ----------------------------------------------------------------------------

SPOKEN = [(), ("list", "--json"), ("profile", "omp"), ("--help",)]


def run_into(machine: Machine, words: tuple[str, ...], target: str) -> subprocess.CompletedProcess[str]:
    """The command with its standard output where a shell puts it."""
    command = [sys.executable, "-m", "skillshelf", *words]
    return subprocess.run(
        ["sh", "-c", f'"$@" {target}', "sh", *command],
        cwd=machine.repo,
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("words", SPOKEN, ids=lambda words: " ".join(words) or "overview")
def test_a_pipe_that_nobody_reads_ends_the_command_quietly(machine: Machine, words: tuple[str, ...]) -> None:
    fill(machine)
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "skillshelf", *words],
        cwd=machine.repo,
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home)},
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_the_first_line_of_a_long_list_may_be_all_that_is_read(machine: Machine) -> None:
    for number in range(300):
        write_skill(
            machine.home / ".agents" / "skills",
            f"skill-{number}",
            f"---\nname: skill-{number}\ndescription: {'d' * 900}\n---\n",
        )

    done = run_into(machine, ("list",), "| head -1")

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["NAME", "SCOPE", "DESCRIPTION"], "")


@pytest.mark.slow
@pytest.mark.parametrize("words", SPOKEN, ids=lambda words: " ".join(words) or "overview")
def test_a_closed_output_is_no_traceback(machine: Machine, words: tuple[str, ...]) -> None:
    fill(machine)

    done = run_into(machine, words, ">&-")

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "words", [("list",), ("list", "--json"), ("profile",), ("help",), ("nonsense", "--json")], ids=" ".join
)
def test_a_full_disk_is_a_failure_of_the_machine_in_one_line(machine: Machine, words: tuple[str, ...]) -> None:
    done = run_into(machine, words, "> /dev/full")

    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert done.stderr.startswith("skillshelf: ")


REDIRECTED = {
    "list": (0, "shows"),
    "list --json": (0, '"name":"shows"'),
    "list --all": (0, "Errors"),
    "show shows": (0, "# shows"),
    "show shows --raw": (0, "name: shows"),
    "read skill://shows/notes.txt": (0, "héllo"),
    "read skill://shows/image.png": (0, "4 bytes that are not text"),
    "search shows": (0, "shows"),
    "why shows --host codex": (0, "codex"),
    "check": (1, "broken"),
    "check --json": (1, '"rule"'),
    "show nope": (3, ""),
    "nonsense --json": (2, '"code":"invalid_params"'),
    "--help": (0, "usage: skillshelf"),
}


@pytest.mark.parametrize("line", REDIRECTED)
def test_a_program_may_redirect_the_output_to_a_text_stream(machine: Machine, line: str) -> None:
    folder = write_skill(machine.home / ".agents" / "skills", "shows").parent
    (folder / "notes.txt").write_text("héllo")
    (folder / "image.png").write_bytes(b"\x89PN\xff")
    write_skill(machine.repo / ".agents" / "skills", "broken", "")
    status, text = REDIRECTED[line]
    place = [] if line == "--help" else ["--home", str(machine.home), "--cwd", str(machine.repo)]
    out, err = io.StringIO(), io.StringIO()

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        answer = main([*line.split(), *place])

    assert (answer, text in out.getvalue()) == (status, True), out.getvalue() + err.getvalue()
    assert err.getvalue().startswith("skillshelf: ") == (status > 1)


def test_the_output_of_a_program_goes_to_a_text_stream_too() -> None:
    out, err = io.StringIO(), io.StringIO()

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        write_piece("stdout", b"out\xff")
        write_piece("stderr", b"err\xff")

    assert (out.getvalue(), err.getvalue()) == ("out\\xff", "err\\xff")
