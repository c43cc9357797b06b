"""Install from a real git server: pinned commits, restore, updates by branch, and questions on a real terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate
from schemas import SCHEMAS
from support.git_server import GitEntry, GitRepository, needs_git, serving_git
from support.installs import everything, lose_store, skill_text, trusted
from support.needs import needs_program
from support.system_policies import policy_machine
from support.terminals import COMMAND, terminal
from support.trees import SOURCE, Machine, run_command

from skillshelf.core.disk_writes import remove_tree

pytestmark = [pytest.mark.slow, needs_git]


class Git:
    """A machine, a repository with skills, and its address."""

    def __init__(self, machine: Machine, address: str) -> None:
        self.machine = machine
        self.repository = GitRepository(machine.base / "server/skills.git")
        self.source = f"git+{address}/skills.git"

    def commit(self, *, body: str = "Do it.", branch: str = "main", names: tuple[str, ...] = ("pdf",)) -> str:
        files: dict[str, bytes | GitEntry] = {}
        for name in names:
            files[f"skills/{name}/SKILL.md"] = skill_text(name, body).encode()
            files[f"skills/{name}/scripts/run.sh"] = GitEntry("100755", b"#!/bin/sh\necho done\n")
        return self.repository.commit(files, branch=branch)

    def run(self, *words: str) -> tuple[int, str, str]:
        env = {"HOME": str(self.machine.home), "PATH": os.environ["PATH"]}
        web = () if words[0] in ("verify", "remove", "rollback", "gc") else ("--allow-http",)
        done = run_command(*words, *web, cwd=self.machine.repo, env=env)
        return done.returncode, done.stdout, done.stderr

    def json(self, *words: str, schema: str) -> Any:
        found = json.loads(self.run(*words, "--json")[1])
        validate(found, SCHEMAS[schema])
        return found

    @property
    def lock(self) -> Path:
        return self.machine.repo / "skillshelf.lock"

    def lose_store(self) -> None:
        lose_store(self.machine)


@pytest.fixture
def git(machine: Machine) -> Iterator[Git]:
    (machine.base / "server").mkdir()
    with serving_git(machine.base / "server") as address:
        yield Git(machine, address)


def test_a_locked_commit_is_restored_whatever_the_branch_has_become(git: Git) -> None:
    first = git.commit()
    status, _, err = git.run("add", git.source, "--ref", "main", "--skill", "pdf", "--yes")
    assert status == 0, err
    locked = json.loads(git.lock.read_text())["skills"]["pdf"]
    assert (locked["commit"], locked["ref"], locked["path"]) == (first, "main", "skills/pdf")
    before, lock = everything(git.machine.repo / ".agents"), git.lock.read_bytes()

    git.commit(body="Changed upstream.")
    git.lose_store()
    shutil.rmtree(git.machine.repo / ".agents")
    status, _, err = git.run("install", "--frozen", "--yes")

    assert status == 0, err
    assert everything(git.machine.repo / ".agents") == before
    assert git.lock.read_bytes() == lock


def test_bytes_that_the_source_does_not_have_any_more_are_never_replaced_by_others(git: Git) -> None:
    git.commit()
    assert git.run("add", git.source, "--skill", "pdf", "--yes")[0] == 0
    git.lose_store()
    shutil.rmtree(git.machine.repo / ".agents")
    shutil.rmtree(git.repository.path)
    git.repository = GitRepository(git.repository.path)
    git.commit(body="Another history.")
    before = everything(git.machine.repo)

    status, _, err = git.run("install", "--frozen", "--yes")

    assert (status, everything(git.machine.repo)) == (3, before), err
    assert git.run("install", "--frozen", "--offline", "--yes")[0] == 5


def test_a_tampered_lock_does_not_install_what_the_commit_has(git: Git) -> None:
    git.commit()
    assert git.run("add", git.source, "--skill", "pdf", "--yes")[0] == 0
    trusted(git.machine)
    git.lose_store()
    shutil.rmtree(git.machine.repo / ".agents")
    lock = json.loads(git.lock.read_text())
    lock["skills"]["pdf"]["tree"] = f"sha256:{'0' * 64}"
    git.lock.write_text(json.dumps(lock))
    before = everything(git.machine.repo)

    plan = git.json("install", "--frozen", "--yes", schema="install")

    assert git.run("install", "--frozen", "--yes")[0] == 1
    assert plan["actions"] == []
    assert "other bytes than the lock" in plan["refused"][0]["reason"]
    assert everything(git.machine.repo) == before


def test_an_update_installs_exactly_what_was_shown(git: Git) -> None:
    git.commit()
    assert git.run("add", git.source, "--skill", "pdf", "--yes")[0] == 0
    second = git.commit(body="Second.")

    row = git.json("outdated", schema="outdated")["skills"][0]
    assert (row["state"], row["new_commit"]) == ("outdated", second)
    status, out, err = git.run("update", "--yes")

    assert status == 0, err
    assert "+Second." in out
    assert json.loads(git.lock.read_text())["skills"]["pdf"]["commit"] == second
    assert "Second." in (git.machine.repo / ".agents/skills/pdf/SKILL.md").read_text()
    assert git.run("verify")[0] == 0
    assert git.run("rollback", "--yes")[0] == 0
    assert "Second." not in (git.machine.repo / ".agents/skills/pdf/SKILL.md").read_text()


def test_a_commit_that_leaves_a_skill_alone_makes_nothing_outdated(git: Git) -> None:
    git.commit(names=("pdf", "docx"))
    assert git.run("add", git.source, "--skill", "pdf,docx", "--yes")[0] == 0
    git.repository.git("commit-tree", "-m", "x", git.repository.git("rev-parse", "main^{tree}"))
    git.commit(names=("pdf", "docx"))

    assert git.run("outdated")[0] == 0
    git.commit(names=("pdf", "docx"), body="New.")
    assert [row["state"] for row in git.json("outdated", schema="outdated")["skills"]] == ["outdated", "outdated"]


def test_a_server_that_is_gone_is_a_failure_of_the_machine(git: Git) -> None:
    git.commit()
    assert git.run("add", git.source, "--skill", "pdf", "--yes")[0] == 0
    # The user agreed to another server, so the project speaks here.
    git.lock.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", git.lock.read_text()))

    assert git.run("outdated")[0] == 4
    trusted(git.machine)
    assert git.run("outdated")[0] == 5


# Nobody connects ----------------------------------------------------------------------------------


@needs_program("strace")
def test_a_frozen_install_from_a_warm_store_opens_no_socket(git: Git) -> None:
    git.commit(names=("pdf", "docx"))
    assert git.run("add", git.source, "--skill", "*", "--yes")[0] == 0
    shutil.rmtree(git.machine.repo / ".agents")
    log = git.machine.base / "trace"
    command = [sys.executable, "-m", "skillshelf", "install", "--offline", "--frozen", "--yes"]
    done = subprocess.run(
        ["strace", "-f", "-e", "trace=%network,execve", "-o", str(log), *command],
        cwd=git.machine.repo,
        env={"HOME": str(git.machine.home), "PATH": os.environ["PATH"], "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")

    assert done.returncode == 0, done.stderr
    assert (git.machine.repo / ".agents/skills/docx/SKILL.md").exists()
    calls = [line for line in log.read_text().splitlines() if "(" in line]
    assert [line for line in calls if "execve(" not in line] == []
    assert len([line for line in calls if "execve(" in line and "= 0" in line]) == 1


# On a terminal ------------------------------------------------------------------------------------


@needs_program("tmux")
def test_a_person_picks_sees_and_agrees(git: Git) -> None:
    git.commit(names=("pdf", "docx"))
    line = " ".join([*COMMAND, "add", git.source, "--allow-http"])
    with terminal(200, 50) as screen:
        screen.start(line, cwd=git.machine.repo, env={"HOME": str(git.machine.home)})
        screen.wait("1  docx", "2  pdf", "Which of them?")
        screen.keys("2", "Enter")
        screen.wait("scripts/run.sh", "Install pdf? [y/N]", lacks=["Install docx"])
        assert not git.lock.exists()
        screen.keys("y", "Enter")
        screen.wait("added  pdf", "exit 0")
    assert sorted(json.loads(git.lock.read_text())["skills"]) == ["pdf"]


@needs_program("tmux")
def test_a_person_in_a_strangers_folder_is_asked_before_the_first_connection(git: Git) -> None:
    git.commit()
    assert git.run("add", git.source, "--skill", "pdf", "--yes")[0] == 0
    shutil.rmtree(git.machine.repo / ".agents")
    remove_tree(str(git.machine.home / ".local"))
    line = " ".join([*COMMAND, "install", "--allow-http", "--yes"])
    with terminal(200, 50) as screen:
        screen.start(line, cwd=git.machine.repo, env={"HOME": str(git.machine.home)})
        screen.wait("pdf: from git+http", "is not trusted. Read 1 skill from these sources? [y/N]")
        screen.keys("n", "Enter")
        screen.wait("nothing was read or written", "exit 4")
    assert not (git.machine.repo / ".agents").exists()


@needs_program("tmux")
def test_a_person_sees_what_the_lock_of_a_strangers_folder_would_install(git: Git) -> None:
    git.commit()
    assert git.run("add", git.source, "--skill", "pdf", "--yes")[0] == 0
    shutil.rmtree(git.machine.repo / ".agents")
    remove_tree(str(git.machine.home / ".local"))
    lock = json.loads(git.lock.read_text())
    lock["skills"]["pdf"]["hosts"] = ["ghost\u202e"]
    git.lock.write_text(json.dumps(lock))
    line = " ".join([*COMMAND, "install", "--allow-http"])
    with terminal(200, 50) as screen:
        screen.start(line, cwd=git.machine.repo, env={"HOME": str(git.machine.home)})
        screen.wait("Read 1 skill from these sources? [y/N]")
        screen.keys("y", "Enter")
        screen.wait("scripts/run.sh", "seen by", r"ghost\u202e", "Install 1 skill? [y/N]")
        screen.keys("n", "Enter")
        screen.wait("nothing was written", "exit 4")
    assert not (git.machine.repo / ".agents").exists()


# Policy -------------------------------------------------------------------------------------------


def test_the_policy_of_the_machine_says_what_may_be_installed(tmp_path: Path) -> None:
    machine = policy_machine(tmp_path)
    folder = machine.skill("pdf", root=machine.base / "up")
    policy = "/etc/skillshelf/policy.toml"

    machine.write('[sources]\nallow = ["oci://registry.example/*"]\n')
    done = machine.run("add", "../up/pdf", "--yes")
    assert (done.status, f"({policy}: sources.allow)" in done.err) == (4, True)

    machine.write('[sources]\ndeny = ["../up/*"]\n')
    assert f"({policy}: sources.deny)" in machine.run("add", "../up/pdf", "--yes").err

    tree = machine.run("digest", str(folder), "--json").json["tree"]
    machine.write(f'[skills]\nforbidden = ["{tree}"]\n')
    done = machine.run("add", "../up/pdf", "--yes")
    assert (done.status, f"({policy}: skills.forbidden)" in done.err) == (4, True)

    machine.write('[hosts]\nallow = ["codex"]\n')
    assert f"({policy}: hosts.allow)" in machine.run("add", "../up/pdf", "--yes", "--host", "claude-code").err

    machine.write(f'[skills]\nrequired = ["{tree}"]\n')
    assert machine.run("add", "../up/pdf", "--yes").status == 0
    done = machine.run("remove", "pdf", "--yes")
    assert (done.status, f"({policy}: skills.required)" in done.err) == (4, True)
    assert not (machine.project / "skillshelf.lock").read_text().count('"skills": {}')


def test_another_spelling_of_a_source_is_the_same_source_for_the_policy(tmp_path: Path) -> None:
    machine = policy_machine(tmp_path)
    up = machine.base / "up"
    machine.skill("pdf", root=up)
    (machine.base / "alias").symlink_to(up)
    market = up / ".claude-plugin/marketplace.json"
    market.parent.mkdir()
    market.write_text('{"name": "m", "plugins": [{"name": "office", "source": "./pdf"}]}')
    spellings = ("../up/pdf", f"{up}/pdf", "../alias/pdf", f"git+file://{up}/pdf", "plugin:../up/office")

    machine.write(f'[sources]\ndeny = ["{up}*", "git+file://{up}*"]\n')
    for source in spellings:
        done = machine.run("add", source, "--yes")
        assert (done.status, "sources.deny)" in done.err) == (4, True), source

    machine.write(f'[sources]\nallow = ["{up}/pdf"]\n')
    assert machine.run("add", "../up/pdf", "--yes").status == 0


def test_a_marketplace_leads_to_no_repository_that_the_policy_denies(tmp_path: Path) -> None:
    machine = policy_machine(tmp_path)
    market = machine.base / "up/.claude-plugin/marketplace.json"
    market.parent.mkdir(parents=True)
    elsewhere = {"source": "github", "repo": "evil/skills"}
    market.write_text(json.dumps({"name": "m", "plugins": [{"name": "office", "source": elsewhere}]}))
    machine.write('[sources]\ndeny = ["git+https://github.com/evil/*"]\n')

    done = machine.run("add", "plugin:../up/office", "--yes")

    assert done.status == 4
    assert "source git+https://github.com/evil/skills is not allowed by the system policy" in done.err


def test_what_the_policy_requires_is_kept_from_every_command(tmp_path: Path) -> None:
    machine = policy_machine(tmp_path)
    folder = machine.skill("pdf", root=machine.base / "up")
    assert machine.run("add", "../up/pdf", "--yes").status == 0
    tree = json.loads((machine.project / "skillshelf.lock").read_text())["skills"]["pdf"]["tree"]
    (folder / "more.md").write_text("more\n")
    lines = (("rollback", "--yes"), ("rollback", "0", "--yes"), ("remove", "pdf", "--yes"))

    for entry in ("PDF", tree, f"{machine.project}/.agents/skills/pdf"):
        machine.write(f'[skills]\nrequired = ["{entry}"]\n')
        for line in lines:
            done = machine.run(*line)
            assert (done.status, "pdf cannot be removed" in done.err) == (4, True), (entry, line)
    machine.write(f'[skills]\nrequired = ["{tree}"]\n')
    for line in (("update", "--yes"), ("add", "../up/pdf", "--yes")):
        done = machine.run(*line)
        assert (done.status, f"pdf cannot be changed: the system policy requires {tree}" in done.err) == (4, True)


def test_nothing_is_installed_in_a_folder_that_the_policy_forbids(tmp_path: Path) -> None:
    machine = policy_machine(tmp_path)
    machine.skill("pdf", root=machine.base / "up")
    machine.write(f'[skills]\nforbidden = ["{machine.project}/.agents/skills"]\n')

    done = machine.run("add", "../up/pdf", "--yes")

    assert (done.status, "pdf is forbidden by the system policy" in done.err) == (4, True)


def test_a_repository_that_is_also_a_folder_here_is_told_apart(tmp_path: Path) -> None:
    machine = policy_machine(tmp_path)
    machine.skill("pdf", root=machine.project / "vendor")
    machine.write('[sources]\ndeny = ["git+https://github.com/*"]\n')

    done = machine.run("add", "vendor/pdf", "--yes")

    assert done.status == 4
    assert "git+https://github.com/vendor/pdf is fetched (for the one in this folder: skillshelf add" in done.err
    assert "./vendor/pdf" in done.err
