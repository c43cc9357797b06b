"""The hosts that are the user's own: set in the user's file, or found on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.host_runs import Run, json_output
from support.trees import Machine, write_skill

from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, load_settings
from skillshelf.core.environment import Environment
from skillshelf.hosts.detection import DetectedHost, chosen_hosts, host_states


def place(machine: Machine, **variables: str) -> Environment:
    """The machine with nothing on PATH but a folder of its own."""
    return Environment(str(machine.repo), str(machine.home), {"PATH": str(machine.base / "bin"), **variables}, True)


def program(folder: Path, name: str, mode: int = 0o755) -> Path:
    """A program of that name in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def trace(home: Path, path: str) -> Path:
    """A file in a home folder."""
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).touch()
    return home / path


def test_with_nothing_set_and_nothing_found_all_hosts_are_spoken_of(machine: Machine) -> None:
    assert chosen_hosts(place(machine), Settings()) == tuple(HOSTS)
    assert host_states(place(machine), Settings())[0] == DetectedHost("claude-code", False, None, True)


def test_a_host_is_found_by_its_program_or_by_what_only_it_makes_at_home(machine: Machine) -> None:
    claude = program(machine.base / "bin", "claude")
    codex = trace(machine.home, ".codex/config.toml")

    states = {state.host: state for state in host_states(place(machine), Settings())}

    assert states["claude-code"] == DetectedHost("claude-code", True, str(claude), True)
    assert states["codex"] == DetectedHost("codex", True, str(codex), True)
    assert states["pi"] == DetectedHost("pi", False, None, False)
    assert chosen_hosts(place(machine), Settings()) == ("claude-code", "codex")
    assert chosen_hosts(place(machine), Settings(), all_hosts=True) == tuple(HOSTS)


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_every_host_can_be_found_and_by_nothing_that_another_has(machine: Machine, host: Profile) -> None:
    assert host.programs + host.home_paths

    for path in host.home_paths:
        trace(machine.home, path)
    for name in host.programs:
        program(machine.base / "bin", name)

    assert chosen_hosts(place(machine), Settings()) == (host.name,)


def test_skills_in_the_folders_of_a_host_do_not_show_that_it_is_installed(machine: Machine) -> None:
    for profile in HOSTS.values():
        for rule in profile.roots:
            for path in rule.paths if rule.base == "home" else ():
                write_skill(machine.home / path, "deploy")

    assert not any(state.detected for state in host_states(place(machine), Settings()))


@pytest.mark.parametrize("variable", ["", ".", "bin", ":::"])
def test_relative_folders_on_the_path_do_not_count(
    machine: Machine, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(machine.repo / "bin", "claude")
    program(machine.repo, "claude")
    monkeypatch.chdir(machine.repo)

    assert not any(state.detected for state in host_states(place(machine, PATH=variable), Settings()))


def test_a_file_that_cannot_be_executed_and_a_folder_are_no_programs(machine: Machine) -> None:
    program(machine.base / "bin", "claude", 0o644)
    (machine.base / "bin/codex").mkdir()

    assert not any(state.detected for state in host_states(place(machine), Settings()))


def test_a_moved_home_of_a_host_is_looked_into_and_the_old_one_is_not(machine: Machine) -> None:
    trace(machine.home, ".codex/config.toml")
    moved = place(machine, CODEX_HOME=str(machine.base / "moved"))

    assert not any(state.detected for state in host_states(moved, Settings()))

    found = trace(machine.base / "moved", "config.toml")

    assert [state.by for state in host_states(moved, Settings()) if state.detected] == [str(found)]


def test_hosts_that_are_set_win_over_those_that_are_found(machine: Machine) -> None:
    trace(machine.home, ".codex/config.toml")
    machine.configure("hosts = ['pi', 'claude-code', 'pi']\n")
    settings = load_settings(place(machine))

    states = {state.host: state for state in host_states(place(machine), settings)}

    assert settings.hosts == ("pi", "claude-code")
    assert chosen_hosts(place(machine), settings) == ("claude-code", "pi")
    assert (states["codex"].detected, states["codex"].enabled) == (True, False)


@pytest.mark.parametrize("trust", ["all", "ask"])
def test_a_project_does_not_set_the_hosts_of_its_users(machine: Machine, trust: str) -> None:
    (machine.repo / "skillshelf.toml").write_text("hosts = ['kiro']\n")

    settings = load_settings(place(machine), trust=trust)  # type: ignore[arg-type]

    assert settings.hosts == ()
    assert ["`hosts`" in warning.message for warning in settings.warnings] == [True]


def test_why_and_hosts_list_the_users_hosts_and_end_with_who_they_are(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    trace(machine.home, ".codex/config.toml")
    program(machine.base / "bin", "claude")
    others = len(HOSTS) - 2

    for command in (("why", "deploy"), ("hosts",)):
        lines = run(*command)[1].splitlines()
        assert lines[-1] == f"Hosts found on this machine: claude-code, codex ({others} others: --all-hosts)"
        assert not any(line.startswith("pi ") for line in lines)

    asked = json_output(run, "why", "deploy", schema="why")["candidates"][0]["hosts"]
    assert [one["host"] for one in asked] == ["claude-code", "codex"]
    assert list(json_output(run, "hosts", schema="hosts")["skills"][0]["hosts"]) == ["claude-code", "codex"]


def test_all_hosts_shows_all_and_a_named_host_wins_without_a_word_about_others(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    machine.configure("hosts = ['kiro']\n")

    everything = run("hosts", "--all-hosts")[1]
    named = run("why", "deploy", "--host", "codex,pi")[1]

    assert all(f" {host} " in everything for host in HOSTS)
    assert "kiro" not in named
    assert "--all-hosts" not in everything + named


def test_setting_hosts_writes_the_users_file_and_auto_takes_that_back(machine: Machine, run: Run) -> None:
    before = "# mine\nprofile = 'strict'\n\n[trust]\nfolders = []\n# end\n"
    path = machine.configure(before)

    status, out, _ = run("hosts", "--set", "codex, claude-code", "--dry-run")

    assert (status, path.read_text()) == (0, before)
    assert out.startswith(
        f"Your hosts: claude-code, codex ({len(HOSTS) - 2} others: --all-hosts)\nwould be written to "
    )
    assert json_output(run, "hosts", "--set", "codex", "--dry-run", schema="hosts-set")["changed"] is True
    assert run("hosts", "--dry-run")[0] == 2

    status, out, _ = run("hosts", "--set", "codex, claude-code")

    assert (status, path.read_text()) == (0, before.replace("\n\n", '\nhosts = ["codex", "claude-code"]\n\n'))
    assert out.startswith(f"Your hosts: claude-code, codex ({len(HOSTS) - 2} others: --all-hosts)\n")
    assert json_output(run, "hosts", "--set", "codex,claude-code", schema="hosts-set")["changed"] is False

    status, out, _ = run("hosts", "--set", "auto")

    assert (status, path.read_text()) == (0, before)
    assert out.startswith("No host is set or found here")


@pytest.mark.parametrize("wrong", ["codx", "", "codex,,nonsense"])
def test_setting_an_unknown_host_changes_nothing(machine: Machine, run: Run, wrong: str) -> None:
    status, _, err = run("hosts", "--set", wrong)

    assert status == 2
    assert "unknown host" in err
    assert not (machine.home / ".config").exists()


def test_a_configuration_that_cannot_be_used_costs_a_line_and_no_answer(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    machine.configure("hosts = ['nonsense']\n")

    status, out, err = run("why", "deploy")

    assert status == 0
    assert f"of {len(HOSTS)} hosts" in out
    assert "unknown host 'nonsense'" in err


def test_link_without_hosts_is_for_the_users_own(machine: Machine, run: Run) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    assert run("link", "deploy")[0] == 2
    machine.configure("hosts = ['claude-code', 'codex']\n")

    status, out, _ = run("link", "deploy")

    assert status == 0
    assert [line.split(":")[0] for line in out.splitlines()[:2]] == ["claude-code", "codex"]
