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
        ("[folders.ABOVE]\ntrusted = true\n", "visible"),
        ("[folders.ABOVE]\ntrusted = true\n[folders.CWD]\ntrusted = false\n", "untrusted"),
        ("[folders.CWD]\n", "unknown"),
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


def test_grok_writes_a_name_in_small_letters_with_hyphens(machine: Machine) -> None:
    trust(machine, machine.repo)
    write_skill(machine.repo / ".grok/skills", "", skill("name: Probe Tool\ndescription: D.\n"), folder="tool")

    assert machine.names("host:grok") == ["probe-tool"]


def test_qoder_takes_the_folder_for_the_name_and_the_text_for_a_missing_description(machine: Machine) -> None:
    write_skill(machine.repo / ".qoder/skills", "", skill("name: other\n"), folder="deploy")

    (found,) = machine.catalog("host:qoder").skills

    assert found.name == "deploy"
