"""`disable --in HOST`: a skill turned off by the host's own settings, which keep everything else."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.host_runs import Run, json_output, verdicts
from support.trees import Machine, write_skill

from skillshelf.catalog.host_settings import parse_settings
from skillshelf.hosts.json_text import add_item, add_member, comments_in, remove_item, remove_member

CLAUDE = """{
  "model": "opus",
  "env": {"A": "b"},
  "permissions": {
    "allow": [ "Bash(git status)" ]
  }
}
"""
GEMINI = """{
  // Only mine.
  "security": {"folderTrust": {"enabled": false}}, /* trusted */
  "skills": {
    "disabled": [
      "other" // not this one
    ]
  }
}
"""
CODEX = """# my configuration
model = "gpt"  # the fast one

[tui]
theme = "dark"

[[skills.config]]
name = "other"
enabled = false
"""
COPILOT = """{
  "disabledSkills": [
    "other",
    "DEPLOY"
  ]
}
"""

FILES = {
    "claude-code": (".claude/settings.json", CLAUDE),
    "gemini-cli": (".gemini/settings.json", GEMINI),
    "codex": (".codex/config.toml", CODEX),
    "copilot-cli": (".copilot/settings.json", COPILOT),
}


@pytest.fixture
def deploy(machine: Machine) -> Machine:
    """A skill that all these hosts see, and their settings."""
    write_skill(machine.home / ".agents/skills", "deploy")
    (machine.home / ".claude/skills").mkdir(parents=True)
    (machine.home / ".claude/skills/deploy").symlink_to("../../.agents/skills/deploy")
    for path, text in FILES.values():
        (machine.home / path).parent.mkdir(exist_ok=True)
        (machine.home / path).write_text(text)
    return machine


def verdict(run: Run, host: str, name: str = "deploy") -> str:
    """The verdict of one host."""
    return verdicts(run, name, "--host", host)[host]


@pytest.mark.parametrize("host", sorted(FILES))
def test_a_skill_is_turned_off_and_on_in_a_host_and_the_file_is_as_before(deploy: Machine, run: Run, host: str) -> None:
    path, before = deploy.home / FILES[host][0], FILES[host][1]
    path.chmod(0o640)

    status, out, err = run("disable", "deploy", "--in", host)

    assert (status, verdict(run, host)) == (0, "disabled-by-config")
    assert f"{host}: deploy turned off by " in out
    assert f"to undo: skillshelf enable deploy --in {host}" in err
    lines = path.read_text().splitlines()
    assert all(line.partition(" //")[0].rstrip(",") in path.read_text() for line in before.splitlines())
    assert '"other", // not this one\n      "deploy"\n' in path.read_text() or host != "gemini-cli"
    assert len(lines) > len(before.splitlines())
    assert path.stat().st_mode & 0o777 == 0o640
    assert run("disable", "deploy", "--in", host)[0] == 0

    status, _, _ = run("enable", "deploy", "--in", host)

    assert (status, path.read_text()) == (0, before)
    assert verdict(run, host) in ("visible", "shadows")
    assert "already on" in run("enable", "deploy", "--in", host)[1]


@pytest.mark.parametrize("host", sorted(FILES))
def test_a_missing_settings_file_is_made(deploy: Machine, run: Run, host: str) -> None:
    path = deploy.home / FILES[host][0]
    path.unlink()

    # Without its settings the host trusts no folder, but personal skills are seen anyway.
    assert run("disable", "deploy", "--in", host)[0] == 0

    assert verdict(run, host) == "disabled-by-config"
    assert path.stat().st_mode & 0o777 == 0o600
    run("enable", "deploy", "--in", host)
    assert verdict(run, host) != "disabled-by-config"


def switched(machine: Machine, run: Run, host: str, *orders: tuple[str, str]) -> None:
    """Turn skills on and off in a host, and expect that every step is done."""
    for word, name in orders:
        status, out, err = run(word, name, "--in", host)
        assert (status, "turned" in out) == (0, True), (out, err)


EMPTY = ("", "\n", "{}", "{}\n", "{ }", "{\n\n}\n")
ODD = {
    "claude-code": ('{"skillOverrides":{}}', '{"a":1}'),
    "gemini-cli": ('{"skills":{}}', '{"skills":{"disabled":[]}}', "// mine\n{}\n"),
    "copilot-cli": ('{"disabledSkills": []}\n',),
    "codex": (
        "a = 1",
        "a = 1\n\n\n",
        "[skills]\n",
        "[skills]\nconfig = [ ]\n",
        '[[skills.config]]\nname = "x"\nenabled = false',
    ),
}


@pytest.mark.parametrize(
    ("host", "text"),
    [(host, text) for host in ODD for text in (*ODD[host], *(EMPTY if host != "codex" else ("", "\n", "# mine\n")))],
)
def test_empty_and_odd_settings_are_brought_back_to_the_byte(deploy: Machine, run: Run, host: str, text: str) -> None:
    path = deploy.home / FILES[host][0]
    path.write_text(text)

    switched(deploy, run, host, ("disable", "deploy"), ("enable", "deploy"))

    assert path.read_text() == text


@pytest.mark.parametrize("host", sorted(FILES))
@pytest.mark.parametrize("last", ["deploy", "review"])
def test_a_missing_file_is_missing_again_in_whatever_order_skills_are_turned_on(
    deploy: Machine, run: Run, host: str, last: str
) -> None:
    write_skill(deploy.home / ".agents/skills", "review")
    (deploy.home / ".claude/skills/review").symlink_to("../../.agents/skills/review")
    (first,) = {"deploy", "review"} - {last}
    (deploy.home / FILES[host][0]).unlink()

    switched(deploy, run, host, ("disable", "deploy"), ("disable", "review"), ("enable", first), ("enable", last))

    assert not (deploy.home / FILES[host][0]).exists()
    state = json.loads((deploy.home / ".local/state/skillshelf/switches.json").read_text())
    assert state == {"version": 1, "switches": []}


def test_a_file_that_somebody_edited_meanwhile_keeps_what_they_wrote(deploy: Machine, run: Run) -> None:
    path = deploy.home / ".claude/settings.json"
    path.unlink()
    switched(deploy, run, "claude-code", ("disable", "deploy"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "opus"}))

    switched(deploy, run, "claude-code", ("enable", "deploy"))

    assert json.loads(path.read_text()) == {"model": "opus"}


def test_a_memory_that_is_damaged_costs_blanks_and_nothing_else(deploy: Machine, run: Run) -> None:
    path = deploy.home / ".claude/settings.json"
    path.unlink()
    switched(deploy, run, "claude-code", ("disable", "deploy"))
    (deploy.home / ".local/state/skillshelf/switches.json").write_text('{"version": 1, "switches": [{"x": 1}]}')

    switched(deploy, run, "claude-code", ("enable", "deploy"))

    assert json.loads(path.read_text()) == {}


def test_a_dry_run_shows_the_change_and_writes_nothing(deploy: Machine, run: Run) -> None:
    status, out, _ = run("disable", "deploy", "--in", "claude-code,codex", "--dry-run")

    assert status == 0
    assert '+    "deploy": "off"' in out
    assert "would be turned off" in out
    assert (deploy.home / ".claude/settings.json").read_text() == CLAUDE
    assert (deploy.home / ".codex/config.toml").read_text() == CODEX


def test_a_path_turns_off_one_of_two_skills_of_a_name(deploy: Machine, run: Run) -> None:
    write_skill(deploy.repo / ".agents/skills", "deploy", "---\nname: deploy\ndescription: Another.\n---\n")

    assert run("disable", "deploy", "--in", "codex")[0] == 3
    assert run("disable", ".agents/skills/deploy", "--in", "codex")[0] == 0

    assert verdict(run, "codex", ".agents/skills/deploy") == "disabled-by-config"
    assert verdict(run, "codex", str(deploy.home / ".agents/skills/deploy")) != "disabled-by-config"


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("opencode", "no switch for one skill that is known from a run"),
        ("kiro", "no switch for one skill that is known from a run"),
        ("vscode", "no switch for one skill that is known from a run"),
    ],
)
def test_a_host_whose_switch_is_not_known_is_refused_with_the_reason(
    deploy: Machine, run: Run, host: str, reason: str
) -> None:
    status, out, _ = run("disable", "deploy", "--in", host)

    assert status == 1
    assert reason in out


def test_a_skill_that_a_host_does_not_see_is_refused(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    rows = json_output(run, "disable", "deploy", "--in", "claude-code", schema="switch")["hosts"]

    assert rows == [
        {
            "host": "claude-code",
            "file": None,
            "changed": False,
            "reason": "claude-code does not see it: root-not-read, reads .claude/skills",
        }
    ]
    assert run("disable", "nothing", "--in", "claude-code")[0] == 3


@pytest.mark.parametrize(
    "text",
    ["{ not json", '{"skillOverrides": []}', '{"skillOverrides": {"deploy": "odd"}}', "[]", "[" * 100_000],
)
def test_settings_of_another_form_are_left_as_they_are(deploy: Machine, run: Run, text: str) -> None:
    path = deploy.home / ".claude/settings.json"
    path.write_text(text)

    status, out, _ = run("disable", "deploy", "--in", "claude-code")

    assert (status, path.read_text()) == (1, text)
    assert "refused" in out


def test_a_project_file_that_says_otherwise_makes_the_change_be_taken_back(deploy: Machine, run: Run) -> None:
    (deploy.repo / ".claude").mkdir()
    (deploy.repo / ".claude/settings.json").write_text('{"skillOverrides": {"deploy": "on"}}')

    status, out, _ = run("disable", "deploy", "--in", "claude-code")

    assert (status, (deploy.home / ".claude/settings.json").read_text()) == (1, CLAUDE)
    assert "has its old text again" in out

    (deploy.repo / ".claude/settings.json").write_text('{"skillOverrides": {"deploy": "off"}}')
    status, out, _ = run("enable", "deploy", "--in", "claude-code")
    assert (status, "another file does" in out) == (1, True)


@pytest.mark.parametrize("host", ["claude-code", "codex", "copilot-cli"])
def test_line_ends_of_two_characters_stay(deploy: Machine, run: Run, host: str) -> None:
    path, text = deploy.home / FILES[host][0], FILES[host][1].replace("\n", "\r\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.replace('"DEPLOY"', '"others"').encode())
    before = path.read_bytes()

    assert run("disable", "deploy", "--in", host)[0] == 0
    changed = path.read_bytes()
    assert changed != before
    assert changed.count(b"\n") == changed.count(b"\r\n")
    assert run("enable", "deploy", "--in", host)[0] == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("comments", [(" # mine", ""), ("", "# about the next table\n")])
def test_a_comment_that_would_go_with_an_entry_of_toml_keeps_it_there(
    deploy: Machine, run: Run, comments: tuple[str, str]
) -> None:
    path = deploy.home / ".codex/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    beside, below = comments
    text = f'[[skills.config]]\nname = "deploy"\nenabled = false{beside}\n\n{below}[tui]\ntheme = "dark"\n'
    path.write_text(text)

    status, out, _ = run("enable", "deploy", "--in", "codex")

    assert status == 1
    assert "a comment in its settings file would be lost" in out
    assert path.read_text() == text


def test_a_state_that_could_not_be_brought_back_is_left(deploy: Machine, run: Run) -> None:
    path = deploy.home / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = '{"skillOverrides": {"deploy": "name-only"}}\n'
    path.write_text(text)

    status, out, _ = run("disable", "deploy", "--in", "claude-code")

    assert status == 1
    assert "has `name-only` for it" in out
    assert path.read_text() == text


def test_a_settings_file_behind_a_link_stays_a_link_and_a_read_only_one_is_left(deploy: Machine, run: Run) -> None:
    path = deploy.home / ".claude/settings.json"
    dotfiles = deploy.base / "dotfiles.json"
    path.rename(dotfiles)
    path.symlink_to(dotfiles)

    assert run("disable", "deploy", "--in", "claude-code")[0] == 0
    assert path.is_symlink()
    assert json.loads(dotfiles.read_text())["skillOverrides"] == {"deploy": "off"}

    (deploy.home / ".codex/config.toml").chmod(0o400)
    status, out, _ = run("disable", "deploy", "--in", "codex")
    assert (status, "read-only" in out) == (1, True)


def test_without_a_host_it_is_said_how_far_it_reaches(deploy: Machine, run: Run) -> None:
    status, out, err = run("disable", "deploy", "--dry-run")
    assert (status, "would be disabled" in out) == (0, True)
    assert not (deploy.home / ".config").exists()

    _, _, err = run("disable", "deploy")

    assert "counts for agents that get their skills from skillshelf" in err
    assert "skillshelf disable deploy --in HOST" in err
    assert verdict(run, "codex") != "disabled-by-config"
    status, out, err = run("trust", "--dry-run")
    assert "would be trusted" in out
    assert "counts for agents that get their skills from skillshelf" in err
    assert "trust" not in tomllib.loads((deploy.home / ".config/skillshelf/config.toml").read_text())


# The text of JSON files ---------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
STYLES = st.sampled_from([None, 2, 4, "\t"])


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), STYLES, st.text(min_size=1, max_size=4))
def test_an_item_is_added_and_removed_in_any_text(data: dict[str, object], indent: int | str | None, name: str) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    for keys in (["@list"], ["@a", "@b"]):
        added = add_item(text, keys, name)
        expected = {**data, "@list": [name]} if keys == ["@list"] else {**data, "@a": {"@b": [name]}}
        assert json.loads(added) == expected
        again = add_item(added, keys, "x")
        assert json.loads(remove_item(again, keys, 1)) == expected
        assert json.loads(remove_item(added, keys, 0)) == data


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), STYLES, st.text(max_size=4))
def test_a_member_is_added_and_removed_in_any_text(
    data: dict[str, object], indent: int | str | None, name: str
) -> None:
    text = json.dumps(data, indent=indent)
    added = add_member(text, ["@t"], name, "off")
    assert json.loads(added) == {**data, "@t": {name: "off"}}
    assert json.loads(add_member(added, ["@t"], name, "on")) == {**data, "@t": {name: "on"}}
    assert json.loads(remove_member(added, ["@t"], name)) == data


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n", "{}", "{ }", "{\n}\n", "{ // nothing\n}\n", '{"a": 1,}', '{"@l": [ /* x */ ]}'),
        *('{\n"a": 1, // one\n}', '{\n"a": 1 /* one */ // two\n}', '{\n"a": 1, /* one */\n}'),
    ],
)
def test_an_item_is_added_to_odd_texts_and_comments_stay(text: str) -> None:
    added = add_item(text, ["@l"], "deploy")

    assert parse_settings(added, "jsonc")["@l"] == ["deploy"]
    assert comments_in(added) == comments_in(text)


def test_a_long_text_costs_little(tmp_path: Path) -> None:
    text = json.dumps({"a": ["x" * 10] * 50_000, "@l": []}, indent=1)

    assert json.loads(add_item(text, ["@l"], "deploy"))["@l"] == ["deploy"]
    assert os.listdir(tmp_path) == []


def test_what_settings_that_cannot_be_read_say_is_not_claimed(deploy: Machine, run: Run) -> None:
    settings = deploy.home / ".claude/settings.json"
    settings.write_text("{ // a comment\n}\n", encoding="utf-8")

    for command in ("disable", "enable"):
        status, out, _ = run(command, "deploy", "--in", "claude-code")
        assert (status, "cannot be read" in out) == (1, True), out
    assert settings.read_text(encoding="utf-8") == "{ // a comment\n}\n"
