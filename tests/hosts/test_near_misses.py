"""Misspelt roots and SKILL.md files, and skills that are where no host reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.trees import Machine, write_skill

from skillshelf.core.environment import Environment
from skillshelf.hosts.near_misses import near_misses, rename_for
from skillshelf.hosts.stages import judge
from skillshelf.hosts.survey import take_survey


def place_of(machine: Machine, cwd: Path | None = None) -> Environment:
    return Environment(str(cwd or machine.repo), str(machine.home), {})


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["skills.md", "SKILLS.md", "Skill.md", "skill.md", "SKILL.MD", "SKILL.txt", "SKILL"])
def test_a_file_that_is_nearly_called_right_is_warned_about_with_its_rename(machine: Machine, name: str) -> None:
    file = write_skill(machine.repo / ".agents/skills", "deploy")
    file.rename(file.with_name(name))

    shown = machine.run("hosts").stdout

    who = (
        "is read by pi only: all other hosts require"
        if name.endswith(".md")
        else "is not read by any host: the file must be"
    )
    assert f"warning: .agents/skills/deploy/{name} {who}" in shown
    assert f"mv .agents/skills/deploy/{name} .agents/skills/deploy/SKILL.md" in shown


@pytest.mark.parametrize("name", ["skill", "Skill"])
def test_a_folder_of_that_name_is_none(machine: Machine, name: str) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy", folder=f"ops/{name}")

    assert "warning" not in machine.run("hosts").stdout


def test_a_file_beside_a_real_one_is_none(machine: Machine) -> None:
    file = write_skill(machine.repo / ".agents/skills", "deploy")
    file.with_name("SKILL.txt").write_text("notes")

    assert "warning" not in machine.run("hosts").stdout


def test_of_many_such_files_the_first_are_named_and_the_others_counted(machine: Machine) -> None:
    for number in range(15):
        file = write_skill(machine.repo / ".agents/skills", f"deploy-{number:02}")
        file.rename(file.with_name("skill.md"))

    warnings = [line for line in machine.run("hosts").stdout.splitlines() if line.startswith("warning: ")]

    assert len(warnings) == 11
    assert warnings[-1] == ("warning: .agents/skills/deploy-10/skill.md and 4 more are not named SKILL.md either")


# Folders ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        (".claude/skill", "mv .claude/skill .claude/skills"),
        (".agents/Skills", "mv .agents/Skills .agents/skills"),
        (".Agents/skills", "mv .Agents .agents"),
    ],
)
def test_a_folder_that_is_nearly_called_right_is_renamed(machine: Machine, folder: str, command: str) -> None:
    file = write_skill(machine.repo / folder, "deploy")
    survey = take_survey(place_of(machine), ["codex"], path=str(file))

    (miss,) = near_misses(survey)

    assert miss.message.endswith(f"; to fix it: {command}")
    rename = rename_for(survey.by_path[str(file)], survey)
    assert rename is not None
    assert rename.command == command


def test_what_lies_in_a_folder_of_the_wrong_name_is_moved_where_the_right_one_exists(machine: Machine) -> None:
    file = write_skill(machine.repo / ".claude/skill", "deploy")
    other = write_skill(machine.repo / ".claude/skills", "review")
    survey = take_survey(place_of(machine), ["claude-code"], path=str(file))

    rename = rename_for(survey.by_path[str(file)], survey)
    assert rename is not None
    assert rename.command == "mv .claude/skill/* .claude/skills/"
    assert rename_for(survey.by_path[str(other)], survey) is None


@pytest.mark.parametrize("moved", [False, True])
def test_a_folder_at_home_is_named_as_it_can_be_typed(machine: Machine, moved: bool) -> None:
    file = write_skill(machine.home / ".claude/skill", "deploy")
    survey = take_survey(place_of(machine)._replace(home_moved=moved), ["claude-code"], path=str(file))

    home = str(machine.home) if moved else "~"
    rename = rename_for(survey.by_path[str(file)], survey)
    assert rename is not None
    assert rename.command == f"mv {home}/.claude/skill {home}/.claude/skills"


def test_no_link_from_a_project_to_a_misspelt_folder_at_home_is_advised(machine: Machine) -> None:
    write_skill(machine.home / ".claude/skill", "deploy")

    shown = machine.run("why", "deploy").stdout

    home = machine.home
    assert f"mv {home}/.claude/skill {home}/.claude/skills" in shown
    assert "skillshelf link" not in shown


# Elsewhere in the repository ----------------------------------------------------------------------


def test_07_a_skill_of_another_package_of_the_repository_is_found_by_its_name(machine: Machine) -> None:
    file = write_skill(machine.repo / "packages/api/.agents/skills", "deploy")
    cwd = machine.repo / "packages/web"
    cwd.mkdir()

    done = machine.run("why", "deploy", "--json", cwd=cwd)

    (found,) = json.loads(done.stdout)["candidates"]
    details = {host["host"]: (host["verdict"], host["detail"]) for host in found["hosts"]}
    assert (done.returncode, found["path"]) == (1, str(file))
    assert details["codex"] == ("outside-boundary", "not in ../api: .agents/skills is read up to the repository root")
    assert details["goose"] == (
        "outside-boundary",
        "not in ../api: .agents/skills is read in the working directory only",
    )


def test_a_skill_below_here_is_meant_before_one_elsewhere(machine: Machine) -> None:
    write_skill(machine.repo / "a/.agents/skills", "deploy")
    file = write_skill(machine.repo / "web/parts/.agents/skills", "deploy")

    done = machine.run("why", "deploy", "--json", cwd=machine.repo / "web")

    assert [found["path"] for found in json.loads(done.stdout)["candidates"]] == [str(file)]


def test_nothing_above_the_repository_is_searched(machine: Machine) -> None:
    write_skill(machine.base / "neighbour/.agents/skills", "deploy")

    assert machine.run("why", "deploy").returncode == 3


def test_a_path_without_a_name_means_nothing_else(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    done = machine.run("why", "/")

    assert done.returncode == 3
    assert "did you mean" not in done.stderr


# Links --------------------------------------------------------------------------------------------


def test_a_root_that_is_a_link_is_open_where_nobody_knows_whether_links_are_followed(machine: Machine) -> None:
    file = write_skill(machine.repo / "shared", "deploy")
    for top in (".kiro", ".cursor", ".goose", ".github"):
        (machine.repo / top).mkdir()
        (machine.repo / top / "skills").symlink_to("../shared")
    hosts = ["kiro", "cursor", "goose", "vscode"]
    survey = take_survey(place_of(machine), hosts)

    found = [judge(survey.by_path[str(file)], survey.states[host], survey) for host in hosts]

    assert [verdict.verdict for verdict in found] == ["unknown", "unknown", "visible", "visible"]
    assert found[0].detail == "not tested: the root is a link"


def test_a_link_above_the_folder_of_the_roots_is_no_linked_root(machine: Machine) -> None:
    write_skill(machine.home / ".kiro/skills", "deploy")
    (machine.base / "way").symlink_to(machine.home)
    survey = take_survey(Environment(str(machine.repo), f"{machine.base}/way", {}), ["kiro"])

    assert [judge(one, survey.states["kiro"], survey).verdict for one in survey.skill_files] == ["visible"]
