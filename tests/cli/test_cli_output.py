"""The output to a terminal, a pipe and a program: colours only on a terminal, nothing raw, nothing forgotten."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.trees import SOURCE, Machine, write_skill

from skillshelf.core.console import Screen
from skillshelf.core.text import width

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def in_terminal(machine: Machine, *words: str, env: Mapping[str, str] | None = None, columns: int = 100) -> str:
    """The text that a person sees after typing the command in a terminal of that width."""
    screen, keyboard = pty.openpty()
    fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "skillshelf", *words, "--home", str(machine.home)],
        cwd=machine.repo,
        # With CI nobody is asked whether searches may learn.
        env={"PYTHONPATH": SOURCE, "TERM": "xterm-256color", "SKILLSHELF_PAGER": "", "CI": "1", **(env or {})},
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
    )
    os.close(keyboard)
    parts = []
    try:
        while part := os.read(screen, 65536):
            parts.append(part)
    except OSError:
        # The other end is closed: Linux calls that an error.
        pass
    finally:
        os.close(screen)
    assert process.wait(timeout=60) == 0
    return b"".join(parts).decode("utf-8").replace("\r\n", "\n")


def printed(shown: str) -> str:
    """What stands on the screen without colours, and without the line about skills outside the view."""
    lines = COLOUR.sub("", shown).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("skillshelf: there may be more outside this view: "))


# Colours ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("list",), ("list", "--all"), ("profile",), ("profile", "omp")], ids=" ".join)
def test_a_terminal_gets_colours_and_a_pipe_gets_the_same_words_without(
    machine: Machine, words: tuple[str, ...]
) -> None:
    write_skill(machine.repo / ".agents" / "skills", "alpha")
    write_skill(machine.repo / ".agents" / "skills", "broken", "")

    shown = in_terminal(machine, *words, columns=1000)
    piped = machine.run(*words).stdout

    assert COLOUR.search(shown)
    assert "\x1b" not in piped
    if words:
        assert printed(shown) == piped


@pytest.mark.slow
@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
@pytest.mark.parametrize("words", [(), ("list", "--all"), ("profile",)], ids=" ".join)
def test_a_person_may_do_without_colours(machine: Machine, words: tuple[str, ...], env: dict[str, str]) -> None:
    write_skill(machine.repo / ".agents" / "skills", "broken", "")

    assert "\x1b" not in in_terminal(machine, *words, env=env)


@pytest.mark.slow
def test_json_is_the_same_in_a_terminal(machine: Machine) -> None:
    write_skill(machine.repo / ".agents" / "skills", "alpha")

    assert in_terminal(machine, "list", "--json") == machine.run("list", "--json").stdout


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 120])
def test_descriptions_are_cut_at_the_edge_of_the_terminal(machine: Machine, columns: int) -> None:
    for name, word in (("latin", "words "), ("wide", "日本語"), ("marked", "e\u0301")):
        text = f"---\nname: {name}\ndescription: {word * 150}\n---\n"
        write_skill(machine.home / ".agents" / "skills", name, text)

    lines = printed(in_terminal(machine, "list", columns=columns)).splitlines()

    def cells(line: str) -> int:
        return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)

    assert [line[-1] for line in lines[1:4]] == ["…"] * 3
    assert max(cells(line) for line in lines) <= columns
    assert cells(lines[1]) == columns


# Control characters -------------------------------------------------------------------------------

RAW = {
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    "\u061c",
    "\u200e",
    "\u200f",
    "\u2028",
    "\u2029",
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
    *map(chr, range(0xE0000, 0xE0080)),
} - {"\n"}
"""Characters that a terminal would obey or hide: controls, direction, tags."""

ATTACK = "".join(sorted(RAW - {"\0"})) + "\n"


def escaped(text: str) -> str:
    """The text as a double-quoted YAML value writes it."""
    return '"' + "".join(f"\\U{ord(c):08X}" for c in text) + '"'


def fill_with_attacks(machine: Machine) -> None:
    """Everything that an author, a file name, a link or a configuration file can put on the screen."""
    root = machine.repo / ".agents" / "skills"
    attack = escaped(ATTACK)
    write_skill(root, "description", f"---\nname: description\ndescription: {attack}\n---\n")
    write_skill(root, "name", f"---\nname: {attack}\ndescription: d\n---\n")
    fields = "\n".join(f"{field}: {attack}" for field in ("license", "compatibility", "metadata", "version", "globs"))
    write_skill(root, "fields", f"---\nname: fields\ndescription: d\n{fields}\n{attack}: {attack}\n---\n")
    write_skill(root, "twice", f"---\nname: twice\ndescription: d\n{attack}: 1\n{attack}: 2\n---\n")
    # In a name direction and tags are allowed, though warned about; so is a second skill of that name.
    marks = "\u202e\u2066\U000e0041"
    for folder in ("marks-a", "marks-b"):
        write_skill(root, folder, f"---\nname: 'm{marks}'\ndescription: d\n---\n")
    write_skill(root / "marks-a", "inner", folder=f"inner{marks}")
    for character in ("\x1b", "\n", "\r", "\x7f", "\x9b", *marks, "\u2028"):
        write_skill(root, f"folder{character}", "---\nname: folder\ndescription: d\n---\n")
        (root / f"broken{character}").mkdir()
        (root / f"broken{character}" / "SKILL.md").mkdir()
        (root / f"link{character}").symlink_to(f"/nonexistent{character}")
        (root / f"out{character}").symlink_to(machine.base / f"outside{character}")
        write_skill(machine.base / f"outside{character}", "x")
    machine.configure(
        f'[skills]\nignored = ["folder"]\n[profiles."lab{marks}"]\nsummary = "s{marks}"\nextends = "omp"\n'
    )


ATTACKED = {
    "overview": (),
    "list": ("list",),
    "list all": ("list", "--all"),
    "list json": ("list", "--all", "--json"),
    "strict": ("list", "--all", "--profile", "strict"),
    "codelia": ("list", "--all", "--profile", "codelia"),
    "profiles": ("profile",),
    "profiles json": ("profile", "--json"),
    "profile": ("profile", "lab\u202e\u2066\U000e0041"),
    "profile json": ("profile", "lab\u202e\u2066\U000e0041", "--json"),
    "unknown profile": ("profile", "\x1b[31m\u202e"),
    "unknown profile json": ("profile", "\x1b[31m\u202e", "--json"),
    "unknown option": ("list", "--\x1b]0;x\x07\u2066"),
    "unknown folder": ("list", "--json", "--cwd", "/\x1b[31m\u202e\x9b"),
}


@pytest.mark.parametrize("command", ATTACKED)
def test_no_control_character_is_printed_raw(machine: Machine, command: str) -> None:
    fill_with_attacks(machine)

    done = machine.run(*ATTACKED[command])

    assert done.returncode in (0, 2)
    assert done.stdout or done.stderr
    assert sorted(RAW.intersection(done.stdout + done.stderr)) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("list",), ("list", "--all")], ids=" ".join)
def test_a_terminal_gets_no_control_characters_but_our_colours(machine: Machine, words: tuple[str, ...]) -> None:
    fill_with_attacks(machine)

    shown = in_terminal(machine, *words)

    assert sorted(RAW.intersection(COLOUR.sub("", shown))) == []


def test_json_still_holds_what_the_author_wrote(machine: Machine) -> None:
    fill_with_attacks(machine)

    catalog = machine.run_json("list")

    (skill,) = [skill for skill in catalog["skills"] if skill["name"] == "description"]
    assert skill["frontmatter"]["description"] == ATTACK
    (warning,) = [one for one in catalog["warnings"] if one["path"] == skill["path"]]
    assert warning["rule"] == "hidden-text"
    for told in ("control", "bidirectional", "tag", "line separator"):
        assert told in warning["message"]


def test_one_skill_is_one_line_whatever_it_holds(machine: Machine) -> None:
    fill_with_attacks(machine)

    lines = machine.run("list").stdout.splitlines()

    names = [skill["name"] for skill in machine.run_json("list")["skills"]]
    assert len(lines[1 : lines.index("")]) == len(names)


# Nothing is forgotten -----------------------------------------------------------------------------


def fill_with_every_fate(machine: Machine) -> list[Path]:
    """SKILL.md files for every reason not to be in a catalog, and the roots below which they lie."""
    roots = [
        machine.repo / folder
        for folder in (".agents/skills", ".claude/skills", "skills", ".agent/skills", ".omp/skills")
    ]
    roots += [machine.home / folder for folder in (".agents/skills", ".claude/skills")]
    for root in roots:
        write_skill(root, "good")
        write_skill(root, "twin", folder="twin-a")
        write_skill(root, "twin", folder="twin-b")
        write_skill(root, "unwanted")
        write_skill(root, "hidden", folder=".hidden")
        write_skill(root, "Bad Name", folder="bad-name")
        write_skill(root, "no-description", "---\nname: no-description\n---\n")
        write_skill(root, "no-frontmatter", "text")
        write_skill(root, "inner", folder="good/inner")
        write_skill(root, "deeper", folder="good/a/b/c/deeper")
        write_skill(root, "module", folder="node_modules/module")
        write_skill(root, "module", folder="group/node_modules/a/b/module")
        write_skill(root, "vcs", folder=".git/vcs")
        write_skill(root, "deep", folder="1/2/3/4/5/6/7/8/deep")
        write_skill(root, "root", folder=".")
        (root / "linked").mkdir()
        (root / "linked" / "SKILL.md").symlink_to("../good/SKILL.md")
        (root / "linked-bad").mkdir()
        (root / "linked-bad" / "SKILL.md").symlink_to("../no-frontmatter/SKILL.md")
        (root / "lost").mkdir()
        (root / "lost" / "SKILL.md").symlink_to("nowhere")
        (root / "special").mkdir()
        os.mkfifo(root / "special" / "SKILL.md")
    machine.configure('[skills]\nignored = ["unwanted"]\n')
    return roots


@pytest.mark.parametrize("profile", ["standard", "strict", "codelia", "swiftagent", "mycodeagent", "rip", "omp"])
def test_every_skill_file_below_the_roots_is_accounted_for(machine: Machine, profile: str) -> None:
    fill_with_every_fate(machine)

    catalog = machine.run_json("list", "--all", "--profile", profile)

    parts = ("skills", "errors", "shadowed", "filtered")
    told = {entry["path"] for part in parts for entry in catalog[part]}
    on_disk = {
        os.path.join(folder, "SKILL.md")
        for root in catalog["roots"]
        for folder, folders, files in os.walk(root["path"])
        if "SKILL.md" in files or "SKILL.md" in folders
    }
    assert len(on_disk) > 18
    assert {os.path.relpath(path, machine.base) for path in on_disk - told} == set()
    assert {os.path.relpath(path, machine.base) for path in told - on_disk} == set()


@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_no_skill_file_has_two_fates(machine: Machine, profile: str) -> None:
    fill_with_every_fate(machine)

    catalog = json.loads(machine.run("list", "--all", "--json", "--profile", profile).stdout)

    parts = ("skills", "errors", "shadowed", "filtered")
    fates = [entry["path"] for part in parts for entry in catalog[part]]
    assert sorted({os.path.relpath(path, machine.base) for path in fates if fates.count(path) > 1}) == []


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("name", ["n" * 64, "日本" * 16, "short"])
def test_a_table_fits_the_screen_however_long_its_names_are(columns: int, name: str) -> None:
    rows = [("NAME", "SCOPE", "HIDDEN", "DESCRIPTION"), (name, "project", "untrusted", "word " * 40)]

    lines = Screen(columns=columns).table(rows, (None,) * 4)

    fits = columns >= 60 or name == "short"
    assert all(width(line) <= (columns if fits else 50) for line in lines), lines
    assert columns < 100 or name in lines[1]
