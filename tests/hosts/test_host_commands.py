"""`why` and `hosts` as a person or a program uses them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.host_cases import skill, trust
from support.host_runs import Run, json_output, verdicts
from support.trees import Machine, write_skill

from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import Screen
from skillshelf.core.limits import STRAY_FOLDERS

GOLDENS = Path(__file__).parent / "screens"

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


def stale(machine: Machine) -> None:
    """A skill of which two copies were made, before it changed."""
    path = write_skill(machine.repo / ".claude/skills", "deploy")
    assert machine.run("link", "deploy", "--to", "codelia", "--to", "kiro").returncode == 0
    path.write_text(skill("name: deploy\ndescription: Changed.\n"))


@pytest.mark.parametrize(
    ("build", "name", "status"),
    [
        (fine, "deploy", 0),
        (broken, "release-notes", 1),
        (missing, "deploi", 3),
        (stray, "deploy", 1),
        (copied, "deploy", 0),
        (stale, "deploy", 0),
    ],
)
def test_an_answer_fits_one_screen_and_says_what_to_do(
    machine: Machine, run: Run, build: Callable[[Machine], None], name: str, status: int
) -> None:
    build(machine)

    got, out, err = run("why", name, "--all-hosts")

    shown = (out + err).replace(str(machine.base), "")
    assert got == status
    # A line for each host and eleven others fit a screen of 24 lines.
    assert len(shown.splitlines()) <= len(HOSTS) + 11
    golden = GOLDENS / f"why-{build.__name__}.txt"
    if os.environ.get("SKILLSHELF_GOLDENS") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text()


def nowhere(machine: Machine) -> None:
    """A skill whose folder is a link that leads nowhere."""
    (machine.repo / ".claude/skills").mkdir(parents=True)
    (machine.repo / ".claude/skills/deploy").symlink_to("../../somewhere/else/entirely/skills/deploy")


def below(machine: Machine) -> None:
    """A skill in a category folder that two hosts do not trust."""
    write_skill(machine.repo / ".agents/skills", "deploy", folder="ops/deploy")


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("build", [fine, broken, stray, copied, nowhere, below, stale])
def test_an_answer_fits_the_terminal(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch, build: Callable[[Machine], None], columns: int
) -> None:
    build(machine)
    monkeypatch.setattr("skillshelf.core.console.screen", lambda env: Screen(columns=columns))

    for words in (["why", "release-notes" if build is broken else "deploy"], ["hosts"]):
        lines = run(*words)[1].splitlines()

        assert len(lines) <= 40
        assert [line for line in lines if len(line) > columns] == []


@pytest.mark.parametrize("columns", [None, 80])
def test_every_skill_has_a_row_sorted_by_the_name_that_is_shown(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    for number in range(50):
        name = f"probe-{number:02}"
        text = f"---\nname: {name}\ndescription: Probes. Use when asked.\n---\n"
        write_skill(machine.repo / ".agents/skills", name, text, folder=f"folder-{99 - number}")
    monkeypatch.setattr("skillshelf.core.console.screen", lambda env: Screen(columns=columns))

    out = run("hosts")[1]

    shown = [line.split()[-1] for line in out.splitlines() if line[:2] in ("+ ", "- ") and "probe-" in line]
    assert len(shown) == 50
    assert shown == sorted(shown)
    # Each column is explained where it is shown.
    assert all(f"{column}:" in out for column in ("VISIBLE", "MISSING", "SILENT", "LIST"))


def test_the_exit_status_is_about_the_hosts_that_were_asked(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")

    assert run("why", "deploy")[0] == 0
    assert run("why", "deploy", "--host", "claude-code", "--host", "codex")[0] == 0
    assert run("why", "deploy", "--host", "codex")[0] == 1
    assert run("why", "deploi", "--host", "codex")[0] == 3
    assert run("why", "deploy", "--host", "nonsense")[0] == 2
    usage = "missing argument NAME-or-PATH: a skill, its folder or its SKILL.md (usage: skillshelf why NAME-or-PATH)"
    assert (run("why")[0], run("why")[2]) == (2, f"skillshelf: {usage}\n")


def test_what_is_missing_is_answered_with_names_that_look_like_it(machine: Machine, run: Run) -> None:
    write_skill(machine.home / ".codex/skills", "deploy")

    assert json_output(run, "why", "depoly", schema="why") == {"name": "depoly", "candidates": [], "near": ["deploy"]}


def test_every_copy_of_a_name_is_a_candidate_and_a_link_is_none(machine: Machine, run: Run) -> None:
    real = write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / ".claude/skills").mkdir(parents=True)
    (machine.repo / ".claude/skills/deploy").symlink_to(real.parent)
    mine = write_skill(machine.home / ".claude/skills", "deploy", skill("name: deploy\ndescription: Mine.\n"))

    found = json_output(run, "why", "deploy", schema="why")

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

    assert f"was not changed: it is behind a link out of this project, to {diary}" in err
    assert diary.read_bytes() == before


def test_what_helps_names_one_of_several_copies_by_its_path(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "deploy")

    out = run("why", ".claude/skills/deploy", "--host", "kiro")[1]

    assert "skillshelf link .claude/skills/deploy --to kiro" in out


# Hosts --------------------------------------------------------------------------------------------


def test_the_matrix_counts_who_misses_what_and_who_says_nothing(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "broken", '---\nname: "broken\ndescription: D.\n---\n')
    trust(machine, machine.repo)

    found = json_output(run, "hosts", "--all-hosts", schema="hosts")

    counts = {host["host"]: (host["seen"], host["missing"], host["silent"]) for host in found["hosts"]}
    assert found["cwd"] == str(machine.repo)
    assert counts["claude-code"] == (1, 1, 1)
    assert counts["codex"] == (0, 2, 1)
    assert counts["goose"] == (1, 1, 1)
    assert [row["name"] for row in found["skills"]] == ["broken", "deploy"]
    assert found["skills"][1]["hosts"]["codex"] is False
    assert found["skills"][0]["hosts"]["cursor"] is None


def test_a_copy_with_the_same_text_is_not_missing(machine: Machine, run: Run) -> None:
    for root in (".agents/skills", ".claude/skills"):
        write_skill(machine.repo / root, "same")
        write_skill(machine.repo / root, "other", skill(f"name: other\ndescription: In {root}.\n"))

    found = {host["host"]: host for host in json_output(run, "hosts", schema="hosts")["hosts"]}

    assert [(found[host]["seen"], found[host]["missing"]) for host in ("claude-code", "codex")] == [(2, 1), (2, 1)]


def test_an_empty_machine_is_told_where_to_begin(machine: Machine, run: Run) -> None:
    status, out, err = run("hosts")

    assert (status, err) == (0, "")
    assert out.startswith(f"None of {len(HOSTS)} hosts finds a skill here or at home")
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
        (".agents/skills", "no SKILL.md in the folder .agents/skills"),
        ("./nowhere", "no such file or folder: ./nowhere"),
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


def test_a_folder_too_large_to_be_searched_is_told(machine: Machine, run: Run) -> None:
    plain = machine.base / "plain"
    for number in range(STRAY_FOLDERS):
        (plain / f"a{number:04}").mkdir(parents=True)
    write_skill(plain / "b/.claude/skills", "deploy")

    status, _, err = run("why", "deploy", cwd=plain)

    assert (status, f"only the first {STRAY_FOLDERS:,} folders were searched" in err) == (3, True)


def test_a_skill_that_no_host_reads_is_found_by_its_name_with_what_makes_it_visible(machine: Machine, run: Run) -> None:
    file = write_skill(machine.repo / "docs/skills", "deploy", folder="odd-folder")
    write_skill(machine.repo / ".claude/skills", "review")

    status, out, _ = run("why", "deploy", "--host", "claude-code")

    assert (status, out.splitlines()[:2]) == (
        1,
        ["deploy  docs/skills/odd-folder/SKILL.md", "This is in a folder that no host reads."],
    )
    assert "skillshelf link deploy --to claude-code" in out
    assert run("link", "review", "deploy", "--to", "claude-code,codex")[0] == 0
    assert (machine.repo / ".claude/skills/deploy/SKILL.md").resolve() == file
    assert run("why", "deploy", "--host", "claude-code")[0] == 0


def test_a_skill_that_no_host_reads_is_synced_by_its_name_alone(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / "docs/skills", "deploy")
    before = sorted(machine.repo.rglob("*"))

    assert run("sync", "--to", "claude-code", "--yes")[0] == 0
    assert sorted(machine.repo.rglob("*")) == before
    assert run("sync", "deploy", "--to", "claude-code", "--yes")[0] == 0
    assert (machine.repo / ".claude/skills/deploy").is_symlink()
    assert run("sync", "deploy", "--remove", "--yes")[0] == 0
    assert sorted(machine.repo.rglob("*")) == before


def test_a_skill_that_no_host_reads_is_named_to_who_misspells_it(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / "docs/skills", "deploy")

    for words in (("why", "deplyo"), ("link", "deplyo", "--to", "codex"), ("sync", "deplyo", "--to", "codex")):
        status, _, err = run(*words)
        assert (status, "did you mean deploy" in err) == (3, True), words


def test_a_folder_of_one_host_is_no_near_miss_when_another_is_asked(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".opencode/skill", "deploy")

    assert "not read by any host" not in run("why", "nothing-like-it", "--host", "codex")[2]


def test_two_hosts_can_be_compared(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    write_skill(machine.repo / ".agents/skills", "review")

    found = json_output(run, "hosts", "--diff", "claude-code", "opencode", schema="hosts")

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

    found = {
        host["host"]: host["catalog"] for host in json_output(run, "hosts", "--all-hosts", schema="hosts")["hosts"]
    }

    assert {host: (cost["cut"], cost["dropped"]) for host, cost in found.items() if host != "codelia"} == {
        host: {"claude-code": (23, 0), "copilot-cli": (51, 0), "codex": (80, 0)}.get(host, (0, 0))
        for host in HOSTS
        if host != "codelia"
    }
    assert found["codex"]["chars"] <= found["codex"]["budget"] == 21_760
    assert found["copilot-cli"]["cut_skills"] == [f"probe-{number:02}" for number in range(29, 80)]
    assert [host for host, cost in found.items() if cost["least_used_first"]] == ["claude-code"]
    assert found["codelia"]["dropped_skills"][-1] == "probe-79"
    told = run("hosts", "--all-hosts")[1]
    assert "claude-code drops 23 descriptions: those of the least used skills" in told
    assert "copilot-cli drops the description of probe-29, probe-30, probe-31 and 48 more" in told
    assert 0 < found["codelia"]["dropped"] < 80
    dropped = verdicts(run, str(machine.repo / ".agents/skills/probe-79"), "--host", "codelia")
    assert dropped == {"codelia": "over-budget"}
