"""`run --yes DIGEST`: an answer that counts for the files that it names, and for nothing else."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.needs import needs_sandbox
from support.trees import Machine, run_command, write_skill

pytestmark = pytest.mark.slow

OTHER = f"sha256:{'0' * 64}"


@pytest.fixture
def skill(reachable_machine: Machine) -> Path:
    """A skill of an untrusted project, with a script and another file."""
    folder = write_skill(reachable_machine.repo / ".agents" / "skills", "deploy").parent
    (folder / "scripts").mkdir()
    (folder / "scripts" / "go.sh").write_text("#!/bin/sh\necho ran $*\n")
    (folder / "notes.md").write_text("Notes.\n")
    return folder


def refused(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The command that a refusal names."""
    assert (done.returncode, done.stdout) == (4, "")
    [line] = done.stderr.splitlines()
    command = line.rpartition("to run exactly these: ")[2]
    assert command.startswith("skillshelf run "), line
    return shlex.split(command)[1:]


@needs_sandbox
def test_the_line_that_a_refusal_shows_runs_the_script(skill: Path, reachable_machine: Machine) -> None:
    words = refused(reachable_machine.run("run", "deploy", "go.sh", "a b", "--x"))

    # The line has the options of the first one, the home folder too.
    again = run_command(*words, cwd=reachable_machine.repo)

    digest = reachable_machine.run("digest", str(skill)).stdout.strip()
    assert digest in words
    assert (again.returncode, again.stdout) == (0, "ran a b --x\n"), again.stderr


@needs_sandbox
@pytest.mark.parametrize("changed", ["scripts/go.sh", "notes.md", "SKILL.md", "new.txt"])
def test_a_change_of_any_file_makes_the_digest_void(skill: Path, reachable_machine: Machine, changed: str) -> None:
    words = refused(reachable_machine.run("run", "deploy", "go.sh"))
    with (skill / changed).open("a") as file:
        file.write("\n")

    again = reachable_machine.run(*words)

    assert refused(again) != words
    assert "and not the one of --yes" in again.stderr


@needs_sandbox
def test_the_digest_of_one_skill_is_no_answer_about_another_of_its_name(
    skill: Path, reachable_machine: Machine
) -> None:
    words = refused(reachable_machine.run("run", "deploy", "go.sh"))
    (skill / "scripts" / "go.sh").write_text("#!/bin/sh\necho other\n")

    assert reachable_machine.run(*words).returncode == 4


def test_a_rule_that_denies_is_stronger_and_no_line_goes_around_it(skill: Path, reachable_machine: Machine) -> None:
    digest = reachable_machine.run("digest", str(skill)).stdout.strip()
    reachable_machine.configure('[permissions]\ndeny = [{ tool = "skill_run", skill_name = "deploy" }]\n')

    done = reachable_machine.run("run", "deploy", "go.sh", "--yes", digest)

    assert done.returncode == 4
    assert "--yes" not in done.stderr


@pytest.mark.parametrize("given", ["", "yes", "sha256:12", OTHER.upper(), f"{OTHER}\n"])
def test_what_is_no_digest_is_wrong_usage(skill: Path, reachable_machine: Machine, given: str) -> None:
    done = reachable_machine.run("run", "deploy", "go.sh", f"--yes={given}")

    assert done.returncode == 2
    assert re.fullmatch(
        r"skillshelf: --yes takes the digest of the skill's files \(sha256:...\), not .*; without it you are asked, or "
        rf"told what to type: skillshelf run deploy go.sh --home {re.escape(str(reachable_machine.home))}\n",
        done.stderr,
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("run", "--yes", "deploy", "go.sh"), "run deploy go.sh"),
        (("run", "--yes", "deploy", "go.sh", "a b"), "run deploy go.sh 'a b'"),
        (("--no-cache", "run", "--yes", "deploy", "go.sh"), "--no-cache run deploy go.sh"),
        (("run", "deploy", "go.sh", "--yes", "yes"), "run deploy go.sh"),
    ],
)
def test_who_forgets_the_digest_gets_the_line_that_tells_it(
    skill: Path, reachable_machine: Machine, words: tuple[str, ...], line: str
) -> None:
    done = reachable_machine.run(*words)

    assert (done.returncode, f"told what to type: skillshelf {line} --home" in done.stderr) == (2, True), done.stderr
    refused(run_command(*shlex.split(done.stderr.rpartition(": skillshelf ")[2]), cwd=reachable_machine.repo))


def test_files_without_a_digest_cannot_be_confirmed_by_one(skill: Path, reachable_machine: Machine) -> None:
    (skill / "link").symlink_to("notes.md")

    done = reachable_machine.run("run", "deploy", "go.sh", "--yes", OTHER)

    assert done.returncode == 4
    assert "it cannot be confirmed by a digest: " in done.stderr
