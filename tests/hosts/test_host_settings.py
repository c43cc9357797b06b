"""Trust of hosts in a folder, and skills that their own settings turn off."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.host_setting_cases import (
    CODEX,
    CODEX_OFF,
    GEMINI_TRUST,
    OFF,
    OMP,
    SWITCH_CASES,
    TRUST_CASES,
    SwitchCase,
    TrustCase,
    build_switch,
    build_trust,
    put,
)
from support.trees import Machine, write_skill

from skillshelf.core.environment import Environment
from skillshelf.hosts.fixes import fix_for
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import Survey, take_survey


def verdict_on(
    machine: Machine, host: str, file: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[Verdict, str | None]:
    """Return the verdict of a host on a skill, and the fix."""
    survey: Survey = take_survey(Environment(str(cwd or machine.repo), str(machine.home), env or {}), [host])
    skill_file = survey.by_path[str(file)]
    verdict = judge(skill_file, survey.states[host], survey)
    return verdict, fix_for(verdict, skill_file, survey)


# Trust --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TRUST_CASES, ids=lambda case: f"{case.host}: {case.title}")
def test_the_nearest_record_decides_whether_a_host_trusts_a_folder(case: TrustCase, machine: Machine) -> None:
    verdict, _ = verdict_on(machine, case.host, build_trust(case, machine), env=case.env)

    assert verdict.verdict == case.verdict
    if case.verdict == "unknown":
        assert "~/." in verdict.detail
        assert "cannot be read" in verdict.detail


def test_the_record_of_trust_may_be_another_file(machine: Machine) -> None:
    file = write_skill(machine.repo / ".agents/skills", "deploy")
    put(machine, "~/elsewhere.json", {"CWD": "TRUST_FOLDER"})
    env = {"GEMINI_CLI_TRUSTED_FOLDERS_PATH": str(machine.home / "elsewhere.json")}

    assert verdict_on(machine, "gemini-cli", file, env=env)[0].verdict == "visible"


def test_a_host_that_does_not_start_sees_no_skill_of_the_user_either(machine: Machine) -> None:
    file = write_skill(machine.home / ".agents/skills", "deploy")
    put(machine, GEMINI_TRUST, "{")

    assert verdict_on(machine, "gemini-cli", file)[0].verdict == "unknown"


# Switches -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SWITCH_CASES, ids=lambda case: f"{case.host}: {case.title}")
def test_a_setting_of_a_host_leaves_a_skill_out(case: SwitchCase, machine: Machine) -> None:
    verdict, fix = verdict_on(machine, case.host, build_switch(case, machine))

    assert verdict.verdict == case.verdict
    assert case.said in verdict.detail
    if case.fix is not None:
        assert fix == case.fix


def test_a_folder_that_is_off_by_itself_may_have_been_turned_on(machine: Machine) -> None:
    file = write_skill(machine.home / ".claude/skills", "deploy")
    before = verdict_on(machine, "oh-my-pi", file)
    put(machine, OMP, "skills:\n  enableClaudeUser: true\n")
    after, _ = verdict_on(machine, "oh-my-pi", file)

    assert (before[0].verdict, before[1]) == ("disabled-by-config", "turn skills.enableClaudeUser on in oh-my-pi")
    assert (after.verdict, after.detail) == (
        "unknown",
        "the host has settings about skills: skills in ~/.omp/agent/config.yml",
    )


def test_a_skill_beside_one_that_is_off_stays_visible(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    file = write_skill(machine.repo / ".agents/skills", "other")
    put(machine, CODEX, CODEX_OFF)

    assert verdict_on(machine, "codex", file)[0].verdict == "visible"


def test_settings_of_a_project_that_is_not_trusted_do_not_count(machine: Machine) -> None:
    file = write_skill(machine.home / ".agents/skills", "deploy")
    put(machine, ".gemini/settings.json", {"skills": {"disabled": ["deploy"]}})

    assert verdict_on(machine, "gemini-cli", file)[0].verdict == "visible"


def test_settings_count_from_the_folders_from_which_the_program_takes_them(machine: Machine) -> None:
    cwd = machine.repo / "packages/api"
    file = write_skill(cwd / ".claude/skills", "deploy")

    put(machine, ".claude/settings.json", OFF)
    above = verdict_on(machine, "claude-code", file, cwd=cwd)[0].verdict
    put(machine, ".claude/settings.local.json", OFF)
    local = verdict_on(machine, "claude-code", file, cwd=cwd)[0].verdict

    assert (above, local) == ("visible", "disabled-by-config")


def test_settings_move_with_the_folder_of_the_host(machine: Machine) -> None:
    file = write_skill(machine.repo / ".agents/skills", "deploy")
    put(machine, "~/moved/config.toml", CODEX_OFF)

    verdict, _ = verdict_on(machine, "codex", file, env={"CODEX_HOME": str(machine.home / "moved")})

    assert (verdict.verdict, verdict.detail) == (
        "disabled-by-config",
        "skills.config in ~/moved/config.toml turns it off",
    )


@pytest.mark.parametrize(
    ("variable", "value", "off"),
    [
        ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1", {".claude", ".agents"}),
        ("OPENCODE_DISABLE_CLAUDE_CODE_SKILLS", "true", {".claude"}),
        ("OPENCODE_DISABLE_CLAUDE_CODE", "1", {".claude"}),
        ("OPENCODE_DISABLE_PROJECT_CONFIG", "1", {".opencode"}),
        ("OPENCODE_DISABLE_CLAUDE_CODE_SKILLS", "0", set()),
    ],
)
def test_a_variable_turns_folders_of_a_host_off(variable: str, value: str, off: set[str], machine: Machine) -> None:
    tops = (".claude", ".agents", ".opencode")
    paths = {top: write_skill(machine.repo / top / "skills", f"deploy-{top[1:]}") for top in tops}

    found = {top: verdict_on(machine, "opencode", paths[top], env={variable: value}) for top in tops}

    assert {top for top, (verdict, _) in found.items() if verdict.verdict == "disabled-by-config"} == off
    assert {verdict.detail for verdict, _ in found.values()} - {""} == (
        {f"the variable {variable} turns its folder off"} if off else set()
    )
    assert {found[top][1] for top in off} == ({f"unset {variable}"} if off else set())


def test_a_host_is_not_advised_a_link_to_a_skill_that_its_settings_turn_off(machine: Machine) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    put(machine, CODEX, CODEX_OFF)

    shown = machine.run("why", "deploy", "--host", "codex")

    assert "skillshelf link" not in shown.stdout
    assert "root-not-read" in shown.stdout


def test_what_is_off_takes_no_room_in_the_list_of_a_model(machine: Machine) -> None:
    for name in ("deploy", "other"):
        text = f"---\nname: {name}\ndescription: {'x' * 600}\n---\n"
        write_skill(machine.repo / ".agents/skills", name, text)
    place = Environment(str(machine.repo), str(machine.home), {})

    before = take_survey(place, ["codex"]).states["codex"].size()
    put(machine, CODEX, CODEX_OFF)
    after = take_survey(place, ["codex"]).states["codex"].size()

    assert (before.entries, after.entries) == (2, 1)
    assert before.chars - after.chars > 600
