"""Completion: the scripts are made from the table of commands, and no name of a skill can do harm in a shell."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from completion import scripts
from support.needs import needs_program, needs_tmux
from support.terminals import terminal
from support.trees import SOURCE, Machine, run_command, write_skill

import skillshelf
from skillshelf.cli.command_table import COMMANDS, KINDS
from skillshelf.cli.completion import SCRIPTS
from skillshelf.config.hosts import HOSTS
from skillshelf.config.rules import RULES

FOLDER = Path(skillshelf.__file__).parent / "completions"

HOSTILE = (
    "x$(touch pwned)",
    "x`touch pwned`",
    "x;touch pwned;#",
    "x' \"*",
    "x & touch pwned",
    "x>pwned",
    "y$(touch pwned)",
)
"""Names that a catalog can hold."""

NEVER_SHOWN = ("-rf", "x\u202egnp.exe", "x\u200bhidden")
"""Names that a person cannot type, would not recognize, or would give as an option."""


@pytest.fixture
def place(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A repository with plain and hostile skills, its inventory, and the program as one that shells find."""
    # Files need not settle before they are remembered.
    for module in ("skillshelf.catalog.disk_state", "skillshelf.catalog.cache", "skillshelf.hosts.inventory"):
        monkeypatch.setattr(f"{module}.SETTLED_NS", 0)
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "release-notes")
    write_skill(machine.repo / "docs/skills", "unread-notes")
    for number, name in enumerate((*HOSTILE, *NEVER_SHOWN)):
        text = f"---\nname: {json.dumps(name)}\ndescription: Does harm. Use when asked.\n---\n"
        write_skill(root, name, text, folder=f"hostile-{number}")
    program = machine.base / "bin" / "skillshelf"
    program.parent.mkdir()
    line = shlex.join([sys.executable, "-m", "skillshelf"])
    program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(SOURCE)} exec {line} "$@"\n')
    program.chmod(0o755)
    machine.env = {"HOME": str(machine.home), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    assert machine.run("inventory").returncode == 0
    return machine


def assert_unharmed(machine: Machine) -> None:
    """Fail if a name was run as a command."""
    assert not [path for path in machine.base.rglob("pwned*") if path.is_file()]


# Scripts ------------------------------------------------------------------------------------------


def test_the_shipped_scripts_are_those_that_the_table_makes() -> None:
    shipped = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}

    assert shipped == scripts(), "run: python tools/completion.py"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_printed_and_names_every_command(machine: Machine, shell: str) -> None:
    done = machine.run("completion", shell)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (FOLDER / SCRIPTS[shell]).read_text(encoding="utf-8")
    assert [name for name in COMMANDS if name not in done.stdout] == []
    assert machine.run_json("completion", shell) == {"shell": shell, "script": done.stdout}


def test_an_unknown_shell_gets_the_nearest_one(machine: Machine) -> None:
    done = machine.run("completion", "fsh")

    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown shell 'fsh'; did you mean fish? (known: bash, zsh, fish)" in done.stderr


def test_what_an_option_takes_is_a_known_kind_or_words() -> None:
    given = [one.of for row in COMMANDS.values() for one in (*row.options, *row.arguments) if one.of]

    assert [kind for kind in given if kind not in KINDS and " " not in kind] == []


# Names --------------------------------------------------------------------------------------------


def names(machine: Machine, *words: str) -> list[str]:
    """What the hidden command prints."""
    done = machine.run("_complete", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_names_are_printed_one_a_line_without_those_that_nobody_can_type(place: Machine) -> None:
    assert names(place, "skill") == sorted(["release-notes", *HOSTILE])
    assert "skill://release-notes" in names(place, "uri")


def test_what_the_last_inventory_found_is_offered_where_any_skill_of_the_machine_counts(place: Machine) -> None:
    # An inventory calls a broken skill by its folder.
    folders = [f"hostile-{number}" for number in range(len(HOSTILE) + len(NEVER_SHOWN))]
    everything = sorted(["release-notes", "unread-notes", *HOSTILE, *folders])

    for words in (["why"], ["--no-cwd", "link", "x", "--to", "codex"], ["sync"], ["enable", "--in", "codex"]):
        assert names(place, "skill", *words) == everything, words
    for words in (["show"], ["disable"]):
        assert "unread-notes" not in names(place, "skill", *words)
    # Nothing is searched: what came since is not known, and what went is.
    write_skill(place.repo / "docs/skills", "newer-notes")
    assert names(place, "skill", "why") == everything


def test_names_of_hosts_profiles_rules_and_scopes_are_known_too(machine: Machine) -> None:
    machine.configure("[profiles.lab]\n")

    assert names(machine, "host") == list(HOSTS)
    assert {"standard", "lab", f"host:{next(iter(HOSTS))}"} <= set(names(machine, "profile"))
    assert names(machine, "rule") == list(RULES)
    assert names(machine, "scope") == ["env", "project", "custom", "user"]
    assert "skill_loaded" in names(machine, "event")


def test_options_before_the_cursor_count_however_they_are_quoted(place: Machine) -> None:
    other = place.base / "another home"
    write_skill(other / ".agents" / "skills", "elsewhere")

    for words in (["--home", f"'{other}'"], [f'--home="{other}"'], ["show", "--home", str(other).replace(" ", "\\ ")]):
        done = run_command("_complete", "skill", *words, cwd=place.base)
        assert (done.stdout, done.stderr) == ("elsewhere\n", "")


@pytest.mark.parametrize(
    "words",
    [(), ("nonsense",), ("skill", "--profile", "nonsense"), ("skill", "--cwd", "'/nonexistent"), ("skill", "=")],
)
def test_a_problem_prints_nothing(machine: Machine, words: tuple[str, ...]) -> None:
    assert names(machine, *words) == []


# Shells -------------------------------------------------------------------------------------------

LINES = {
    "skillshelf li": {"list", "link"},
    "skillshelf show rel": {"release-notes"},
    "skillshelf --profile strict show rel": {"release-notes"},
    "skillshelf show unr": set[str](),
    "skillshelf why unr": {"unread-notes"},
    "skillshelf link unr": {"unread-notes"},
    "skillshelf sync release-notes unr": {"unread-notes"},
    "skillshelf disable --in codex unr": {"unread-notes"},
    "skillshelf list --prof": {"--profile"},
    "skillshelf list --profile standa": {"standard"},
    "skillshelf log st": {"stats"},
    "skillshelf log show run.jsonl --type skill_load": {"skill_loaded"},
    "skillshelf why release-notes --host claude-c": {"claude-code"},
    "skillshelf hosts --diff claude-code curs": {"cursor"},
    "skillshelf check --format ": {"text", "json", "sarif", "github"},
    "skillshelf completion ": {"bash", "zsh", "fish"},
    "skillshelf serve tok": {"token"},
    "skillshelf serve token ": {"create", "list", "revoke"},
    "skillshelf serve --database-file x token cr": {"create"},
    "skillshelf serve token create ": set[str](),
    "skillshelf serve journal ": {"full", "digest"},
    "skillshelf serve --rotate security-": set[str](),
    "skillshelf release channel https://skills.example deploy ": {"latest", "approved"},
    "skillshelf help wh": {"why"},
    "skillshelf nonsense x": set[str](),
}

BASH = r"""
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_skillshelf
printf '%s\n' "${COMPREPLY[@]}"
"""


def in_bash(machine: Machine, line: str) -> list[str]:
    """What bash would put into the line."""
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", str(FOLDER / SCRIPTS["bash"]), line],
        cwd=machine.repo,
        env={**machine.env, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [word for word in done.stdout.splitlines() if word]


def in_fish(machine: Machine, line: str) -> list[str]:
    """What fish would offer."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", str(FOLDER / SCRIPTS["fish"]), line],
        cwd=machine.repo,
        env={**machine.env, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [word.split("\t")[0] for word in done.stdout.splitlines()]


@pytest.mark.slow
@needs_program("bash")
def test_bash_completes_commands_options_and_names(place: Machine) -> None:
    assert {line: set(in_bash(place, line)) for line in LINES} == LINES
    # Bash replaces what follows the last colon or equal sign.
    assert in_bash(place, "skillshelf list --profile host:code") == ["codex", "codelia"]
    assert in_bash(place, "skillshelf list --profile=stric") == ["strict"]
    assert in_bash(place, "skillshelf serve token create ada --scope journal:wr") == ["write"]
    assert in_bash(place, "skillshelf why a --host codex,claude-c") == ["codex,claude-code"]
    assert in_bash(place, "skillshelf show ./.ag") == ["./.agents"]
    assert in_bash(place, "skillshelf show 'rel") == ["release-notes"]


@pytest.mark.slow
@needs_program("bash")
def test_bash_quotes_hostile_names_and_runs_none_of_them(place: Machine) -> None:
    offered = in_bash(place, "skillshelf show x")

    assert sorted(shlex.split(" ".join(offered))) == sorted(HOSTILE[:-1])
    assert in_bash(place, 'skillshelf show "x') == []
    for words in ("$(touch pwned) show x", "--home `touch pwned` show x", ";touch pwned x"):
        in_bash(place, f"skillshelf {words}")
    assert_unharmed(place)


@pytest.mark.slow
@needs_program("fish")
def test_fish_completes_commands_options_and_names(place: Machine) -> None:
    assert {line: set(in_fish(place, line)) for line in LINES} == LINES
    assert in_fish(place, "skillshelf serve token create ada --scope journal:wr") == ["journal:write"]
    assert sorted(in_fish(place, "skillshelf list --profile host:code")) == ["host:codelia", "host:codex"]
    assert in_fish(place, "skillshelf why a --host codex,claude-c") == ["codex,claude-code"]
    assert in_fish(place, "skillshelf show ./.ag") == ["./.agents/"]


@pytest.mark.slow
@needs_program("fish")
def test_fish_offers_hostile_names_as_they_are_and_runs_none_of_them(place: Machine) -> None:
    assert sorted(in_fish(place, "skillshelf show x")) == sorted(HOSTILE[:-1])
    assert_unharmed(place)


TYPED = {
    "skillshelf completion f": "skillshelf completion fish",
    "skillshelf show rel": "skillshelf show release-notes",
    "skillshelf why unr": "skillshelf why unread-notes",
    "skillshelf list --profile host:openc": "skillshelf list --profile host:opencode",
    "skillshelf why a --host codex,claude-c": "skillshelf why a --host codex,claude-code",
    "skillshelf serve token rev": "skillshelf serve token revoke",
    "skillshelf serve token create ada --scope journal:wr": "skillshelf serve token create ada --scope journal:write",
}

RC = {
    "bash": "PS1='% '\nsource {script}\n",
    "zsh": "PS1='%% '\nautoload -Uz compinit\ncompinit -u -D\nsource {script}\n",
    "fish": "source {script}\nfunction fish_prompt\n    echo '% '\nend\n",
}
STARTED = {
    "bash": "bash --rcfile {rc} -i",
    # A relative folder: zsh does not find one with every character.
    "zsh": "ZDOTDIR=.. zsh -i",
    "fish": 'fish --no-config -i -C "source {rc}"',
}


@pytest.mark.slow
@needs_tmux
@pytest.mark.parametrize("shell", [pytest.param(shell, marks=needs_program(shell)) for shell in SCRIPTS])
def test_the_tab_key_completes_in_a_real_shell(place: Machine, shell: str) -> None:
    rc = place.base / ".zshrc"
    rc.write_text(RC[shell].format(script=shlex.quote(str(FOLDER / SCRIPTS[shell]))))
    with terminal(100, 24) as screen:
        screen.start(STARTED[shell].format(rc=shlex.quote(str(rc))), cwd=place.repo, env=place.env)
        screen.wait("%")
        for typed, whole in TYPED.items():
            screen.keys("-l", typed)
            screen.wait(typed)
            screen.keys("Tab")
            screen.wait(whole)
            screen.keys("C-u")
            screen.wait("%", lacks=["skillshelf"])
        # The line that was completed means the name and not a command.
        screen.keys("-l", "skillshelf show y")
        screen.keys("Tab")
        screen.wait("pwned")
        screen.keys("Enter")
        screen.wait("skill_content")
    assert_unharmed(place)
