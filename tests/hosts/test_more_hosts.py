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


@pytest.mark.parametrize(("trusted", "is_read"), [("main", True), ("worktree", False)])
def test_grok_trusts_a_worktree_with_the_repository_that_it_belongs_to(
    machine: Machine, trusted: str, is_read: bool
) -> None:
    main, worktree = machine.base / "main", machine.base / "worktree"
    (main / ".git/worktrees/side").mkdir(parents=True)
    write_skill(worktree / ".grok/skills", "deploy")
    (worktree / ".git").write_text(f"gitdir: {main}/.git/worktrees/side\n")
    record = machine.home / GROK_TRUST
    record.parent.mkdir()
    record.write_text(f"[folders.{json.dumps(str(machine.base / trusted))}]\ntrusted = true\n")

    (found,) = machine.catalog("host:grok", cwd=worktree).skills

    assert found.trusted == is_read


def test_grok_does_not_climb_where_only_the_home_folder_is_a_repository(machine: Machine) -> None:
    (machine.home / ".git").mkdir()
    cwd = machine.home / "work/shop"
    write_skill(cwd / ".grok/skills", "here")
    write_skill(machine.home / "work/.grok/skills", "above")
    trust(machine, cwd)

    assert machine.names("host:grok", cwd=cwd) == ["here"]


@pytest.mark.parametrize(
    ("folders", "listed"),
    [
        (["repo/.grok/skills/a", "repo/.grok/skills/b"], 2),
        (["repo/.grok/skills/a", "repo/.agents/skills/a"], 2),
        (["repo/.grok/skills/a", "repo/.agents/skills/c", "home/.grok/skills/d"], 2),
        (["home/.grok/skills/d", "home/.agents/skills/c"], 2),
        (["repo/.grok/skills/a", "repo/.grok/skills/x"], 2),
        (["repo/.grok/skills/x", "repo/.grok/skills/z"], 2),
        (["repo/.grok/skills/a", "repo/.agents/skills/a", "repo/.agents/skills/x"], 2),
        (["repo/.grok/skills/x", "repo/.agents/skills/x"], 1),
        (["repo/.grok/skills/x", "repo/.agents/skills/.x"], 1),
        (["repo/.grok/skills/b", "repo/.grok/skills/dev/b", "repo/.grok/skills/ops/b"], 2),
    ],
)
def test_grok_lists_a_second_skill_of_a_name_if_the_name_of_its_folder_is_free(
    machine: Machine, folders: list[str], listed: int
) -> None:
    trust(machine, machine.repo)
    for folder in folders:
        write_skill(machine.base / folder, "", skill("name: x\ndescription: D.\n"), folder=".")

    assert machine.names("host:grok") == ["x"] * listed


def test_of_the_folders_above_grok_lists_no_second_skill_of_a_name_that_is_here(machine: Machine) -> None:
    cwd = machine.repo / "packages/api"
    for folder in (cwd, machine.repo / "packages", machine.repo):
        write_skill(folder / ".grok/skills", "x", folder=f"in-{folder.name}")
    trust(machine, machine.repo)

    here = machine.names("host:grok", cwd=cwd)
    (cwd / ".grok/skills/in-api/SKILL.md").unlink()

    assert (here, machine.names("host:grok", cwd=cwd)) == (["x"], ["x", "x"])


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


def test_amp_climbs_past_the_repository(machine: Machine) -> None:
    write_skill(machine.base / ".agents/skills", "above")
    write_skill(machine.repo / ".agents/skills", "here")

    assert machine.names("host:amp") == ["above", "here"]


@pytest.mark.parametrize("value", ["42", "4.5", "true", "{a: b}"])
def test_what_amp_lists_is_open_while_one_description_is_neither_text_nor_a_list(machine: Machine, value: str) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.repo / ".claude/skills", "odd", skill(f"name: odd\ndescription: {value}\n"))

    told = json.loads(machine.run("why", "deploy", "--host", "amp", "--json").stdout)["candidates"][0]["hosts"][0]

    assert (told["verdict"], told["detail"].startswith("in .claude/skills/odd/SKILL.md")) == ("unknown", True)


def test_amp_lists_a_skill_whose_description_is_a_list(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "odd", skill("name: odd\ndescription: [a, b]\n"))

    assert machine.names("host:amp") == ["odd"]


@pytest.mark.parametrize(
    ("host", "root", "listed"),
    [
        ("qoder", ".qoder", ["plain"]),
        ("cline", ".cline", ["plain"]),
        ("oh-my-pi", ".agents", ["blank", "plain"]),
        ("claude-code", ".claude", ["blank", "empty", "plain"]),
        ("openskills", ".agent", ["blank", "empty", "plain"]),
    ],
)
def test_a_file_without_text_is_left_out_by_some_hosts(
    machine: Machine, host: str, root: str, listed: list[str]
) -> None:
    for name, text in {"empty": b"", "blank": b"\n \n", "plain": b"# Title\n"}.items():
        write_skill(machine.repo / root / "skills", name, text)

    assert sorted(machine.names(f"host:{host}")) == listed


def test_cline_leaves_out_a_skill_without_a_text_after_its_frontmatter(machine: Machine) -> None:
    write_skill(machine.repo / ".cline/skills", "bare", "---\nname: bare\ndescription: D.\n---\n")
    write_skill(machine.repo / ".cline/skills", "deploy")

    assert machine.names("host:cline") == ["deploy"]


@pytest.mark.parametrize("value", ["[a, b]", "42", "true"])
@pytest.mark.parametrize("root", [".omp", ".agents"])
def test_oh_my_pi_shows_a_description_that_is_no_text_as_an_empty_one(machine: Machine, root: str, value: str) -> None:
    write_skill(machine.repo / root / "skills", "odd", skill(f"name: odd\ndescription: {value}\n"))
    write_skill(machine.repo / root / "skills", "none", skill('name: none\ndescription: ""\n'))

    described = {one.name: one.description for one in machine.catalog("host:oh-my-pi").skills}

    assert described == ({"odd": ""} if root == ".omp" else {"odd": "", "none": ""})


@pytest.mark.parametrize(("host", "root"), [("pi", ".pi"), ("oh-my-pi", ".omp")])
def test_an_empty_name_is_that_of_the_folder(machine: Machine, host: str, root: str) -> None:
    trust(machine, machine.repo)
    write_skill(machine.repo / root / "skills", "", skill('name: ""\ndescription: D.\n'), folder="deploy")

    assert machine.names(f"host:{host}") == ["deploy"]


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
