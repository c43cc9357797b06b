"""The command `search`: what a person and a program get of it."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.trees import Machine, run_command, write_skill

from skillshelf.cli.search_view import search_view
from skillshelf.core.console import Progress, Screen
from skillshelf.core.text import width
from skillshelf.search.index import body_of

COLOUR = re.compile("\x1b\\[[0-9;]*m")


def put(machine: Machine, name: str, description: str, body: str = "", more: str = "") -> Path:
    """A skill of the user."""
    root = machine.home / ".agents" / "skills"
    return write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}\n")


def shown(machine: Machine, query: str, screen: Screen) -> str:
    """The text that a person sees on a screen."""
    return search_view(machine.shelf().search(query), screen, body_of)


def test_a_pipe_gets_one_line_for_each_skill(machine: Machine) -> None:
    put(machine, "release-notes", "Draft release notes.")
    put(machine, "changelog", "What a release changed.")

    done = machine.run("search", "release")

    lines = [re.split(r" {2,}", line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == ["#", "NAME", "SCORE", "REASON", "SCOPE", "DESCRIPTION"]
    assert lines[1] == ["1", "release-notes", "700.0", "prefix", "user", "Draft release notes."]
    assert (lines[2][:2], lines[2][3:]) == (
        ["2", "changelog"],
        ["token_overlap", "user", "What a release changed."],
    )


def test_a_pipe_is_told_of_copies_and_of_results_that_do_not_clearly_fit(machine: Machine) -> None:
    for name in ("fence-a", "fence-b", "fence-c"):
        put(machine, name, "Paint wooden fences.")
    put(machine, "baker", "Bakes bread in an oven.")

    copies = machine.run("search", "paint wooden fences")
    weak = machine.run("search", "which train leaves for the wooden lake tomorrow evening")

    assert copies.stdout.splitlines()[1].endswith("Paint wooden fences. (and 2 copies)")
    assert (weak.returncode, weak.stderr) == (0, "skillshelf: no skill clearly fits; these are the closest\n")


def test_a_program_gets_the_contract(machine: Machine) -> None:
    put(machine, "release-notes", "Draft release notes.")

    answer = machine.run_json("search", "release", "--limit", "1", "--scope", "user")

    assert {key: answer[key] for key in ("query", "count", "truncated")} == {
        "query": "release",
        "count": 1,
        "truncated": False,
    }
    assert [(entry["reason"], entry["score"], entry["skill"]["name"]) for entry in answer["results"]] == [
        ("prefix", 700, "release-notes")
    ]


def test_a_terminal_gets_the_matched_words_highlighted(machine: Machine) -> None:
    put(machine, "alpha", "Paints old fences. 将代码库转换为主题。")

    text = shown(machine, "painting the fence 转换", Screen(colour=True, columns=80))

    assert re.findall("\x1b\\[33m(.*?)\x1b", text) == ["Paints", "fences", "转换"]


def test_where_only_the_body_matched_its_line_is_shown(machine: Machine) -> None:
    put(
        machine,
        "alpha",
        "Does things.",
        "# Start\n\n- first mix the colour\n- calibrate the telescope, with \x1b[31mcare\n",
    )

    text = shown(machine, "calibrate telescope", Screen(colour=False, columns=80))

    assert "    in its text: calibrate the telescope, with [31mcare" in text
    assert "\x1b" not in text


def test_a_word_that_is_only_in_the_body_is_shown_beside_one_of_the_description(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.", f"# Start\n\n{'First of all, ' * 20}calibrate the telescope with care.\n")

    shown_text = shown(machine, "paint with a telescope", Screen(colour=True, columns=60))

    assert [COLOUR.sub("", line) for line in shown_text.splitlines()[2:]] == [
        "    Paints fences.",
        "    in its text: …calibrate the telescope with care.",
    ]
    assert re.findall("\x1b\\[33m(.*?)\x1b", shown_text) == ["Paints", "telescope"]


def test_a_word_in_the_part_of_a_description_that_is_cut_off_is_shown(machine: Machine) -> None:
    put(machine, "alpha", f"Paints {'old and new fences, ' * 20}and telescopes.")

    assert "in its text: …" in shown(machine, "paint telescope", Screen(colour=False, columns=80))


@pytest.mark.parametrize("sign", ["\u202e", "\u200b", "\u00ad", "\ufeff"])
def test_a_sign_that_is_not_to_be_seen_beside_the_word_does_not_cost_the_answer(machine: Machine, sign: str) -> None:
    put(machine, "alpha", "Does things.", f"Look through the{sign}telescope.")

    assert "in its text: Look through the" in shown(machine, "telescope", Screen(colour=True, columns=80))


def test_words_are_highlighted_in_a_profile_that_counts_them_too(machine: Machine) -> None:
    put(machine, "alpha", "Paints old fences.")
    report = machine.shelf("codelia").search("paint fences")

    text = search_view(report, Screen(colour=True, columns=80), body_of)

    assert re.findall("\x1b\\[33m(.*?)\x1b", text) == ["Paints", "fences"]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(machine: Machine, columns: int) -> None:
    put(machine, "alpha", "Paints fences " + "and walls, " * 60, "x")
    put(machine, "beta", "画" * 500 + " paints")

    lines = shown(machine, "paints", Screen(colour=True, columns=columns)).splitlines()

    assert max(width(COLOUR.sub("", line)) for line in lines if line.startswith("    ")) <= columns


def test_a_person_sees_hidden_skills_and_that_they_are_hidden(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.", more="disable-model-invocation: true\n")

    assert "hidden from models: disable-model-invocation" in shown(machine, "paint", Screen(columns=80))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zzqqxx"], "no skill fits 'zzqqxx' (1 searched); skillshelf list --home "),
        (["rellleasse-nooottes"], "no skill fits 'rellleasse-nooottes' (1 searched); did you mean release-notes?"),
        ([""], "the query is empty; describe in a few words what the skill should do"),
        (["notes", "--scope", "project"], "there are no skills of scope project here"),
    ],
)
def test_no_match_is_a_negative_answer_with_help(machine: Machine, words: list[str], said: str) -> None:
    put(machine, "release-notes", "Draft.")

    done = machine.run("search", *words)

    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert json.loads(machine.run("search", *words, "--json").stdout)["results"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: skillshelf search QUERY"),
        (["x", "--limit", "0"], "--limit takes a whole number of at least 1, not '0'"),
        (["x", "--limit=-3"], "--limit takes a whole number of at least 1, not '-3'"),
        (["x", "--limit", "many"], "--limit takes a whole number of at least 1, not 'many'"),
        (["x", "--limit", "²"], "--limit takes a whole number of at least 1, not '²'"),
        (["x", "--scope", "moon"], "unknown scope 'moon' in profile standard (known: env, project, custom, user)"),
    ],
)
def test_wrong_usage_says_what_is_right(machine: Machine, words: list[str], said: str) -> None:
    done = machine.run("search", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_more_than_the_most_is_cut_and_said(machine: Machine) -> None:
    for number in range(52):
        put(machine, f"paints-{number}", "Paints fences.", f"# {number}")

    done = machine.run("search", "paints", "--limit", "99")

    assert (done.returncode, len(done.stdout.splitlines())) == (0, 51)
    assert "the limit was reduced from 99 to 50" in done.stderr


def test_without_a_cache_nothing_is_kept(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.")

    assert machine.run("search", "paints", "--no-cache").returncode == 0
    assert not (machine.home / ".cache").exists()
    assert machine.run("search", "paints").returncode == 0
    (folder,) = (machine.home / ".cache" / "skillshelf" / "search").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_home_folder_that_is_not_there_is_not_made(machine: Machine) -> None:
    write_skill(machine.repo / ".agents" / "skills", "alpha")
    absent = machine.base / "absent"

    assert run_command("search", "alpha", "--home", str(absent), cwd=machine.repo).returncode == 0
    assert not absent.exists()


# Waiting ------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "seconds", "drawn"), [(Terminal, 2.0, True), (Terminal, 0.5, False), (io.StringIO, 2.0, False)]
)
def test_progress_is_drawn_after_a_second_and_only_on_a_terminal(
    stream: Callable[[], io.StringIO], seconds: float, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    output = stream()

    with Progress("Indexing skills", 10, output) as bar:
        bar.advance()
        now = seconds
        bar.advance(4)

    assert ("Indexing skills [############............] 5/10" in output.getvalue()) is drawn
    assert output.getvalue().endswith("\r\x1b[K" if drawn else "")
