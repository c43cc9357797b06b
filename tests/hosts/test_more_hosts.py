"""Amp, Kilo, Grok, Qoder, Qwen Code, Kimi Code and Cline: what is special about each, as their programs showed it."""

from __future__ import annotations

import json

import pytest
from support.host_cases import skill, trust
from support.trees import Machine, write_skill

GROK_TRUST = ".grok/trusted_folders.toml"


@pytest.mark.parametrize(
    ("host", "project", "user"),
    [
        ("amp", [".agents", ".claude"], [".agents", ".claude", ".config/agents", ".config/amp"]),
        (
            *("kilo", [".agents", ".claude", ".kilo", ".kilocode"]),
            [".agents", ".claude", ".kilo", ".kilocode", ".config/kilo"],
        ),
        ("grok", [".grok", ".agents", ".claude", ".cursor"], [".grok", ".agents", ".claude", ".cursor"]),
        ("qoder", [".qoder", ".agents"], [".qoder", ".agents"]),
        ("qwen-code", [".qwen", ".agents"], [".qwen", ".agents"]),
        ("kimi-code", [".kimi-code", ".agents"], [".kimi-code", ".agents"]),
        ("cline", [".cline", ".clinerules", ".agents"], [".cline", ".agents"]),
    ],
)
def test_a_host_reads_these_folders_of_a_project_and_of_home_and_no_other(
    machine: Machine, host: str, project: list[str], user: list[str]
) -> None:
    trust(machine, machine.repo)
    everywhere = [".agents", ".agent", ".claude", ".codex", ".cursor", ".cline", ".clinerules", ".gemini", ".grok"]
    everywhere += [".kilo", ".kilocode", ".kimi-code", ".qoder", ".qwen", ".config/agents", ".config/amp"]
    everywhere += [".config/kilo"]
    for base in ("repo", "home"):
        for folder in everywhere:
            write_skill(machine.base / base / folder / "skills", f"in-{base}-{folder.strip('.').replace('/', '-')}")

    expected = {f"in-repo-{folder.strip('.')}" for folder in project}
    expected |= {f"in-home-{folder.strip('.').replace('/', '-')}" for folder in user}
    assert {*machine.names(f"host:{host}")} == expected


@pytest.mark.parametrize(
    ("host", "winner"),
    [("amp", "home"), ("qoder", "home"), ("grok", "repo"), ("qwen-code", "repo"), ("kimi-code", "repo")],
)
def test_a_personal_and_a_project_skill_of_one_name(machine: Machine, host: str, winner: str) -> None:
    trust(machine, machine.repo)
    for base in ("repo", "home"):
        write_skill(machine.base / base / ".agents/skills", "deploy", skill(f"name: deploy\ndescription: {base}\n"))

    (found,) = machine.catalog(f"host:{host}").skills

    assert found.description == winner


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (None, "untrusted"),
        ("[folders.CWD]\ntrusted = true\n", "visible"),
        ("[folders.ABOVE]\ntrusted = true\n", "untrusted"),
        ("[folders.ABOVE]\ntrusted = true\n[folders.CWD]\ntrusted = false\n", "untrusted"),
        ("[folders.CWD]\n", "untrusted"),
        ("[folders.CWD]\ntrusted = 'maybe'\n", "unknown"),
        ("folders = 1\n", "untrusted"),
        ("[folders", "unknown"),
    ],
)
def test_grok_reads_a_project_once_its_own_record_trusts_the_folder(
    machine: Machine, text: str | None, verdict: str
) -> None:
    write_skill(machine.repo / ".grok/skills", "deploy")
    if text is not None:
        (machine.home / ".grok").mkdir()
        for word, folder in {"CWD": machine.repo, "ABOVE": machine.base}.items():
            text = text.replace(word, json.dumps(str(folder)))
        (machine.home / GROK_TRUST).write_text(text)

    found = json.loads(machine.run("why", "deploy", "--host", "grok", "--json").stdout)

    assert found["candidates"][0]["hosts"][0]["verdict"] == verdict


def test_grok_trusts_a_repository_and_not_a_folder_in_it(machine: Machine) -> None:
    cwd = machine.repo / "packages/api"
    cwd.mkdir(parents=True)
    write_skill(machine.repo / ".grok/skills", "deploy")
    record = machine.home / GROK_TRUST
    record.parent.mkdir()

    record.write_text(f"[folders.{json.dumps(str(cwd))}]\ntrusted = true\n")
    (before,) = machine.catalog("host:grok", cwd=cwd).skills
    record.write_text(f"[folders.{json.dumps(str(machine.repo))}]\ntrusted = true\n")
    (after,) = machine.catalog("host:grok", cwd=cwd).skills

    assert (before.trusted, after.trusted) == (False, True)


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        *(("Probe Tool", "probe-tool"), ("probe_x", "probe-x"), ("1.5", "1-5"), ("-probe", "probe")),
        *(("a/probe", "a-probe"), ("'probe: x'", "probe-x"), ("probe-é", "probe"), ('""', "tool"), ("x" * 70, "tool")),
    ],
)
def test_grok_makes_a_word_of_a_name_and_takes_the_folder_for_a_long_one(
    machine: Machine, declared: str, name: str
) -> None:
    trust(machine, machine.repo)
    write_skill(machine.repo / ".grok/skills", "", skill(f"name: {declared}\ndescription: D.\n"), folder="tool")

    assert machine.names("host:grok") == [name]


def test_amp_asks_the_shared_folders_of_home_then_the_project_and_then_what_is_for_claude(machine: Machine) -> None:
    cwd = machine.repo / "packages/api"
    order = ["home/.config/agents", "home/.agents", "home/.config/amp", "repo/packages/api/.agents", "repo/.agents"]
    order += ["repo/packages/api/.claude", "repo/.claude", "home/.claude"]
    for folder in order:
        write_skill(machine.base / folder / "skills", "deploy", skill(f"name: deploy\ndescription: {folder}\n"))

    taken = []
    for folder in order:
        (found,) = machine.catalog("host:amp", cwd=cwd).skills
        taken.append(found.description)
        (machine.base / folder / "skills/deploy/SKILL.md").unlink()

    assert taken == order


def test_qoder_takes_the_folder_for_the_name_and_the_text_for_a_missing_description(machine: Machine) -> None:
    write_skill(machine.repo / ".qoder/skills", "", skill("name: other\n"), folder="deploy")

    (found,) = machine.catalog("host:qoder").skills

    assert found.name == "deploy"


@pytest.mark.parametrize("host", ["kimi-code", "cline"])
def test_a_host_reads_the_folders_of_the_repository_and_not_those_of_a_package(machine: Machine, host: str) -> None:
    cwd = machine.repo / "packages/api"
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(cwd / ".agents/skills", "review")

    assert machine.names(f"host:{host}", cwd=cwd) == ["deploy"]
