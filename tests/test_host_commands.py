"""`why`, `hosts` and `link` as a person or a program uses them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host_cases import skill, trust
from jsonschema import validate
from trees import Machine, write_skill

from skillshelf.cli import main
from skillshelf.hosts import HOSTS
from skillshelf.schemas import SCHEMAS

GOLDENS = Path(__file__).parent / "host_screens"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(machine: Machine, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process: its status, what it printed and what it said on the side."""
    monkeypatch.setenv("HOME", str(machine.home))
    for variable in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "GEMINI_CLI_TRUST_WORKSPACE"):
        monkeypatch.delenv(variable, raising=False)

    def command(*words: str, cwd: Path | None = None) -> tuple[int, str, str]:
        status = main([*words, "--cwd", str(cwd or machine.repo), "--home", str(machine.home)])
        out, err = capfd.readouterr()
        return status, out, err

    return command


def asked(run: Run, *words: str, schema: str, **options: Any) -> Any:
    """What a command prints with `--json`, checked against its schema."""
    _, out, _ = run(*words, "--json", **options)
    found = json.loads(out)
    validate(found, SCHEMAS[schema])
    return found


def verdicts(run: Run, *words: str, **options: Any) -> dict[str, str]:
    """The verdict of each host on the one file that is meant."""
    (candidate,) = asked(run, "why", *words, schema="why", **options)["candidates"]
    return {host["host"]: host["verdict"] for host in candidate["hosts"]}


FIVE_WAYS = (
    b"\xef\xbb\xbf--- \nname: Release Notes\ndescription: Use when: notes are asked for\n"
    b"argument-hint: [version] [date]\nmodel: fast\n---\n# Notes\n"
)


def fine(machine: Machine) -> None:
    """A skill that lies where nearly everybody looks."""
    for root in (".agents/skills", ".claude/skills", ".kiro/skills"):
        (machine.repo / root).mkdir(parents=True)
    path = write_skill(machine.repo / ".agents/skills", "deploy").parent
    for root in (".claude/skills", ".kiro/skills"):
        (machine.repo / root / "deploy").symlink_to(os.path.relpath(path, machine.repo / root))
    trust(machine, machine.repo)


def broken(machine: Machine) -> None:
    """A skill with five mistakes, too deep and in one root only."""
    write_skill(machine.repo / ".agents/skills", "", FIVE_WAYS, folder="docs/release-notes")
    trust(machine, machine.repo)


def missing(machine: Machine) -> None:
    """Another skill than the one asked for, and a folder that is spelt wrong."""
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".claude/skill", "review")


def stray(machine: Machine) -> None:
    """A skill in a folder that is spelt wrong."""
    write_skill(machine.repo / ".claude/skill", "deploy")


def copied(machine: Machine) -> None:
    """Three copies of one name, one of them in the home folder."""
    for place in ("repo/.agents/skills", "repo/.claude/skills", "home/.claude/skills"):
        write_skill(machine.base / place, "deploy", skill(f"name: deploy\ndescription: {place}\n"))


@pytest.mark.parametrize(
    ("build", "name", "status"),
    [
        (fine, "deploy", 0),
        (broken, "release-notes", 1),
        (missing, "deploi", 3),
        (stray, "deploy", 1),
        (copied, "deploy", 0),
    ],
)
def test_an_answer_fits_one_screen_and_says_what_to_do(
    machine: Machine, run: Run, build: Callable[[Machine], None], name: str, status: int
) -> None:
    build(machine)

    got, out, err = run("why", name)

    shown = (out + err).replace(str(machine.base), "")
    assert got == status
    assert len(shown.splitlines()) <= 24
    golden = GOLDENS / f"why-{build.__name__}.txt"
    if os.environ.get("SKILLSHELF_GOLDENS") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text()


def test_the_exit_status_is_about_the_hosts_that_were_asked(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")

    assert run("why", "deploy")[0] == 0
    assert run("why", "deploy", "--host", "claude-code", "--host", "codex")[0] == 0
    assert run("why", "deploy", "--host", "codex")[0] == 1
    assert run("why", "deploi", "--host", "codex")[0] == 3
    assert run("why", "deploy", "--host", "nonsense")[0] == 2
    assert run("why")[0] == 2


def test_what_is_missing_is_answered_with_names_that_look_like_it(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".codex/skills", "deploy")

    assert asked(run, "why", "depoly", schema="why") == {"name": "depoly", "candidates": [], "near": ["deploy"]}


def test_every_copy_of_a_name_is_a_candidate_and_a_link_is_none(machine: Machine, run: Run) -> None:
    real = write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / ".claude/skills").mkdir(parents=True)
    (machine.repo / ".claude/skills/deploy").symlink_to(real.parent)
    mine = write_skill(machine.home / ".claude/skills", "deploy", skill("name: deploy\ndescription: Mine.\n"))

    found = asked(run, "why", "deploy", schema="why")

    assert [candidate["path"] for candidate in found["candidates"]] == [str(mine), str(real)]


def test_a_path_outside_every_root_is_judged_too(machine: Machine, run: Run) -> None:
    path = write_skill(machine.base / "elsewhere", "deploy")

    assert set(verdicts(run, str(path)).values()) == {"root-not-read"}
    assert set(verdicts(run, str(path.parent)).values()) == {"root-not-read"}


def test_fix_repairs_the_text_and_links_only_for_hosts_that_were_named(machine: Machine, run: Run) -> None:
    broken(machine)
    path = machine.repo / ".agents/skills/docs/release-notes/SKILL.md"

    status, _, err = run("why", "release-notes", "--fix", "--host", "pi")

    assert status == 0
    assert "+description: 'Use when: notes are asked for'" in err
    assert path.read_bytes().startswith(b"---\nname: Release Notes\n")
    assert sorted(p.name for p in machine.repo.iterdir()) == [".agents", ".git"]

    run("why", "release-notes", "--fix", "--host", "claude-code")

    assert os.readlink(machine.repo / ".claude/skills/release-notes") == "../../.agents/skills/docs/release-notes"
    assert verdicts(run, "release-notes", "--host", "claude-code") == {"claude-code": "name-from-folder"}


def test_fix_writes_nothing_where_a_link_leads_out_of_the_project(machine: Machine, run: Run) -> None:
    diary = machine.home / "diary.md"
    diary.write_bytes(b"---\r\nname: a\r\ndescription: b: c\r\n---\r\n")
    before = diary.read_bytes()
    folder = machine.repo / ".claude/skills/deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(diary)

    _, _, err = run("why", "deploy", "--fix")

    assert f"was left as it is: a link leads out of this project, to {diary}" in err
    assert diary.read_bytes() == before


def test_what_helps_names_one_of_several_copies_by_its_path(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "deploy")

    out = run("why", ".claude/skills/deploy", "--host", "kiro")[1]

    assert "skillshelf link .claude/skills/deploy --to kiro" in out


def test_a_link_to_nothing_is_called_that(machine: Machine, run: Run) -> None:
    root = machine.repo / ".claude/skills"
    root.mkdir(parents=True)
    (root / "deploy").symlink_to("nowhere")

    assert "the link leads to nothing: remove it, or put back what it led to" in run("why", ".claude/skills/deploy")[1]


# Hosts --------------------------------------------------------------------------------------------


def test_the_matrix_counts_who_misses_what_and_who_says_nothing(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "broken", '---\nname: "broken\ndescription: D.\n---\n')
    trust(machine, machine.repo)

    found = asked(run, "hosts", schema="hosts")

    counts = {host["host"]: (host["seen"], host["missing"], host["silent"]) for host in found["hosts"]}
    assert found["cwd"] == str(machine.repo)
    assert counts["claude-code"] == (1, 1, 1)
    assert counts["codex"] == (0, 2, 1)
    assert counts["goose"] == (1, 1, 1)
    assert [row["name"] for row in found["skills"]] == ["broken", "deploy"]
    assert found["skills"][1]["hosts"]["codex"] is False
    assert found["skills"][0]["hosts"]["cursor"] is None


def test_an_empty_machine_is_told_where_to_begin(machine: Machine, run: Run) -> None:
    status, out, err = run("hosts")

    assert (status, err) == (0, "")
    assert out.startswith("No skill lies where any of 13 hosts looks")
    assert "skillshelf new NAME" in out


def test_rows_of_one_name_are_told_apart_by_their_paths(machine: Machine, run: Run) -> None:
    for place in ("repo/.agents/skills", "home/.agents/skills"):
        write_skill(machine.base / place, "deploy")

    out = run("hosts")[1]

    assert "deploy  .agents/skills/deploy/SKILL.md" in out
    assert "deploy  ~/.agents/skills/deploy/SKILL.md" in out


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".agents/skills", "there is no SKILL.md in the folder .agents/skills"),
        ("./nowhere", "there is nothing at ./nowhere"),
    ],
)
def test_a_path_that_holds_no_skill_is_called_that(machine: Machine, run: Run, path: str, said: str) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    status, _, err = run("why", path)

    assert (status, err.splitlines()[0]) == (3, f"skillshelf: {said}")


def test_a_skill_of_a_package_below_is_found_by_its_name(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / "packages/api/.claude/skills", "deploy")

    found = verdicts(run, "deploy")

    assert (found["opencode"], found["claude-code"], found["codex"]) == ("outside-boundary", "unknown", "root-not-read")


def test_a_project_too_large_to_be_searched_is_told(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillshelf.hostfinding.STRAY_FOLDERS", 3)
    for name in ("a", "b", "c"):
        (machine.repo / name).mkdir()
    write_skill(machine.repo / "d/.claude/skills", "deploy")

    status, _, err = run("why", "deploy")

    assert (status, "only the first 3 folders below were searched" in err) == (3, True)


def test_a_folder_of_one_host_is_no_near_miss_when_another_is_asked(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".opencode/skill", "deploy")

    assert "not read by any host" not in run("why", "nothing-like-it", "--host", "codex")[2]


def test_two_hosts_can_be_compared(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "review")

    found = asked(run, "hosts", "--diff", "claude-code", "opencode", schema="hosts")

    assert [row["name"] for row in found["skills"]] == ["review"]
    assert run("hosts", "--diff", "claude-code")[0] == 2
    assert "review  no (root-not-read)  yes" in run("hosts", "--diff", "claude-code", "opencode")[1]


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (".agents/skill/x", ".agents/skill is not read by any host"),
        (".claude/Skills/x", ".claude/Skills is not read by any host"),
        (".Agents/skills", ".Agents is not read"),
        (".agent/skills/x", ".agent/skills is read by oh-my-pi and openskills only"),
    ],
)
def test_folders_that_nearly_are_roots_are_warned_about(machine: Machine, run: Run, folder: str, said: str) -> None:
    (machine.repo / folder).mkdir(parents=True)

    assert f"warning: {said}" in run("hosts")[1]
    assert said in run("hosts", "--json")[2]


def test_eighty_skills_show_what_each_list_costs_and_who_loses_descriptions(machine: Machine, run: Run) -> None:
    for number in range(80):
        text = skill(f"name: probe-{number:02}\ndescription: {'d' * 400}\n")
        for root in (".agents/skills", ".claude/skills"):
            write_skill(machine.repo / root, f"probe-{number:02}", text)
    trust(machine, machine.repo)

    found = {host["host"]: host["catalog"] for host in asked(run, "hosts", schema="hosts")["hosts"]}

    assert {host: (cost["cut"], cost["dropped"]) for host, cost in found.items() if host != "codelia"} == {
        host: {"claude-code": (22, 0), "copilot-cli": (50, 0), "codex": (80, 0)}.get(host, (0, 0))
        for host in HOSTS
        if host != "codelia"
    }
    assert found["codex"]["chars"] <= found["codex"]["budget"] == 8000
    assert found["copilot-cli"]["cut_skills"] == [f"probe-{number:02}" for number in range(30, 80)]
    assert [host for host, cost in found.items() if cost["least_used_first"]] == ["claude-code"]
    assert found["codelia"]["dropped_skills"][-1] == "probe-79"
    told = run("hosts")[1]
    assert "claude-code has no room for 22 descriptions: those of the skills used least" in told
    assert "copilot-cli has no room for the description of probe-30, probe-31, probe-32 and 47 more" in told
    assert 0 < found["codelia"]["dropped"] < 80
    dropped = verdicts(run, str(machine.repo / ".agents/skills/probe-79"), "--host", "codelia")
    assert dropped == {"codelia": "over-budget"}


# Link ---------------------------------------------------------------------------------------------


def test_a_link_makes_a_skill_visible_and_is_taken_back_without_a_trace(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")

    made = asked(run, "link", "deploy", "--to", "codex", "--to", "kiro", schema="link")["made"]

    assert [(one["host"], one["how"], one["visible"]) for one in made] == [
        ("codex", "link", True),
        ("kiro", "link", None),
    ]
    assert os.readlink(machine.repo / ".agents/skills/deploy") == "../../.claude/skills/deploy"
    assert verdicts(run, "deploy", "--host", "codex") == {"codex": "visible"}

    assert run("link", "deploy", "--to", "codex", "--to", "kiro", "--remove")[0] == 0

    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]
    assert (machine.repo / ".claude/skills/deploy/SKILL.md").exists()


def test_a_host_that_follows_no_links_gets_a_copy(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    (folder / "scripts").mkdir()
    (folder / "scripts/run.sh").write_text("#!/bin/sh\n")

    made = asked(run, "link", "deploy", "--to", "codelia", schema="link")["made"]

    copy = machine.repo / ".agents/skills/deploy"
    assert [(one["how"], one["path"], one["visible"]) for one in made] == [("copy", str(copy), True)]
    assert not copy.is_symlink()
    assert os.access(copy / "scripts/run.sh", os.X_OK)

    (copy / "SKILL.md").write_text("changed")
    status, out, _ = run("link", "deploy", "--to", "codelia", "--remove")
    assert (status, "changed since" in out, copy.exists()) == (1, True, True)


def test_nothing_is_overwritten_and_nothing_of_others_is_removed(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    theirs = write_skill(machine.repo / ".kiro/skills", "deploy", "---\nname: deploy\n---\nTheirs.\n")
    before = theirs.read_bytes()

    assert run("link", "deploy", "--to", "kiro")[0] == 3
    path = str(machine.repo / ".claude/skills/deploy")
    assert run("link", path, "--to", "kiro")[0] == 1
    assert run("link", "deploy", "--to", "kiro", "--remove")[0] == 1
    assert theirs.read_bytes() == before


def test_a_personal_skill_is_linked_at_home(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".claude/skills", "deploy")

    assert run("link", "deploy", "--to", "gemini-cli")[0] == 0

    assert os.readlink(machine.home / ".agents/skills/deploy") == "../../.claude/skills/deploy"
    assert sorted(path.name for path in machine.repo.iterdir()) == [".git"]


def test_a_link_says_what_still_keeps_the_skill_out(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy", skill("description: No name.\n"))

    status, out, _ = run("link", "deploy", "--to", "opencode", "--to", "gemini-cli")

    assert status == 1
    assert "opencode: nothing done .claude/skills/deploy/SKILL.md (no link would help; add `name: deploy`)" in out
    assert "gemini-cli: linked .agents/skills/deploy (leads to ../../.claude/skills/deploy; still untrusted" in out


def test_a_file_that_is_not_called_skill_md_is_renamed_not_linked(machine: Machine, run: Run) -> None:
    folder = write_skill(machine.repo / ".claude/skills", "deploy").parent
    (folder / "SKILL.md").rename(folder / "skill.md")

    status, out, err = run("link", "deploy", "--to", "codex")

    assert (status, err) == (1, "")
    assert "no link would help; rename the file to SKILL.md" in out
    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]


def test_a_link_says_that_a_host_ignores_what_the_author_holds_back(machine: Machine, run: Run) -> None:
    text = skill("name: deploy\ndescription: D.\ndisable-model-invocation: true\n")
    write_skill(machine.repo / ".claude/skills", "deploy", text)

    assert "link deploy --to codex" not in run("why", "deploy")[1]
    assert "ignores disable-model-invocation: its model may call it" in run("link", "deploy", "--to", "codex")[1]


def test_a_link_for_a_host_that_heeds_the_author_hands_the_skill_to_no_other(machine: Machine, run: Run) -> None:
    text = skill("name: deploy\ndescription: D.\ndisable-model-invocation: true\n")
    write_skill(machine.repo / ".claude/skills", "deploy", text)
    before = verdicts(run, "deploy", "--host", "codex")

    run("link", "deploy", "--to", "pi")

    assert (machine.repo / ".pi/skills/deploy").is_symlink()
    assert verdicts(run, "deploy", "--host", "codex") == before == {"codex": "root-not-read"}


def test_what_was_made_for_two_hosts_stays_until_neither_needs_it(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".claude/skills", "deploy")
    link = machine.home / ".agents/skills/deploy"
    assert run("link", "deploy", "--to", "codex", "--to", "gemini-cli")[0] == 0

    status, out, _ = run("link", "deploy", "--to", "codex", "--remove")
    assert (status, link.exists()) == (0, True)
    assert f"{link} stays, for gemini-cli" in out

    assert run("link", "deploy", "--to", "gemini-cli", "--remove")[0] == 0
    assert not link.is_symlink()


def test_what_was_made_for_another_host_is_not_removed(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    copy, link = machine.repo / ".agents/skills/deploy", machine.repo / ".codex/skills/deploy"
    run("link", "deploy", "--to", "codex", "--to", "codelia")

    assert run("link", "deploy", "--to", "codex", "--remove")[0] == 0
    assert (copy.exists(), link.exists()) == (True, False)

    status, out, _ = run("link", "deploy", "--to", "opencode", "--remove")
    assert (status, copy.exists()) == (1, True)
    assert "what there is was made for codelia" in out

    assert run("link", "deploy", "--to", "codelia", "--remove")[0] == 0
    assert sorted(path.name for path in machine.repo.iterdir()) == [".claude", ".git"]


@pytest.mark.parametrize("words", [["link"], ["link", "deploy"], ["link", "deploy", "--to", "nonsense"]])
def test_wrong_usage_is_said_in_one_line(run: Run, words: list[str]) -> None:
    status, _, err = run(*words)

    assert (status, len(err.splitlines())) == (2, 1)
