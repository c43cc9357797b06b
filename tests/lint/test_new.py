"""The command `skillshelf new`: a skill that passes `check`, in the right folder, completely or not at all."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import Machine, write_skill

from skillshelf.config.hosts import HOSTS

EVERYTHING = ["--scripts", "--references", "--assets"]


@pytest.mark.parametrize("extras", [[], EVERYTHING], ids=["plain", "with everything"])
@pytest.mark.parametrize("name", ["deploy", "2024-report", "no", "1e5", "a" * 64])
def test_a_new_skill_passes_check_without_any_finding(machine: Machine, name: str, extras: list[str]) -> None:
    made = machine.run_json("new", name, *extras)

    jsonschema.validate(made, SCHEMAS["new"])
    folder = machine.repo / ".agents" / "skills" / name
    assert made["dir"] == str(folder)
    assert made["files"] == sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    report = machine.run_json("check")
    assert (report["checked"], report["findings"], report["fixed"]) == (1, [], 0)
    assert machine.names("strict") == [name]


def test_a_person_sees_where_it_is_and_what_to_do_next(machine: Machine) -> None:
    machine.configure("hosts = ['claude-code', 'codex', 'gemini-cli']\n")

    done = machine.run("new", "deploy", *EVERYTHING)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "Created .agents/skills/deploy\n  SKILL.md\n  assets/template.md\n  evals/eval_queries.json\n"
        "  references/details.md\n  scripts/run.py\n\n"
        "Next:\n  write the instructions in .agents/skills/deploy/SKILL.md\n  skillshelf check .agents/skills/deploy\n"
        "  write real requests into .agents/skills/deploy/evals/eval_queries.json\n  skillshelf eval deploy\n"
        "  skillshelf show deploy\n"
        "\nVisible to codex\n"
        "Not visible to claude-code (root-not-read), gemini-cli (untrusted)\n"
        "To make it visible: skillshelf link deploy --to claude-code\n"
    )


@pytest.mark.parametrize(
    "description",
    [
        None,
        "Sorts issues by label. Use when new bug reports arrive.",
        "Collects every joke about penguins and potatoes that the user tells. Use for a party.",
        "从PDF文件中提取表格并转换为CSV。当用户需要转换报告时使用。",
        "Never use this for anything that matters",
    ],
)
def test_a_new_skill_passes_its_first_queries(machine: Machine, description: str | None) -> None:
    machine.run_json("new", "triage-issues", *(["--description", description] if description else []))
    machine.run_json("new", "other-skill")

    found = {skill["name"]: skill for skill in machine.run_json("eval")["skills"]}

    assert found["triage-issues"]["recall"]["1"] == 1.0
    assert found["triage-issues"]["negatives"] >= 1


def test_what_a_skill_is_not_for_is_no_query_that_should_find_it(machine: Machine) -> None:
    description = "Sorts issues by label. Do not use for pull requests. Use when new bug reports arrive."
    machine.run_json("new", "triage-issues", "--description", description)

    (found,) = machine.run_json("eval")["skills"]

    asked = [query["query"] for query in found["queries"] if query["should_trigger"]]
    assert asked == ["Sorts issues by label", "new bug reports arrive"]


def test_it_is_made_visible_to_the_hosts_that_it_is_for(machine: Machine) -> None:
    done = machine.run("new", "deploy", "--for", "claude-code,codex", "--for", "kiro")

    assert done.returncode == 0
    assert done.stdout.endswith("Visible to claude-code, codex, kiro\n")
    assert (machine.repo / ".claude/skills/deploy").is_symlink()

    done = machine.run("new", "review", "--for", "gemini-cli")

    assert done.returncode == 1
    assert done.stdout.endswith("Not visible to gemini-cli (untrusted)\n")
    assert machine.run("new", "ship", "--for", "codx").returncode == 2
    assert not (machine.repo / ".agents/skills/ship").exists()


def test_a_program_is_told_which_hosts_see_it(machine: Machine) -> None:
    machine.configure("hosts = ['claude-code', 'codex']\n")

    made = machine.run_json("new", "deploy")
    everywhere = machine.run_json("new", "review", "--all-hosts")

    assert made["hosts"] == {"claude-code": False, "codex": True}
    assert list(everywhere["hosts"]) == list(HOSTS)


def test_a_dry_run_says_what_would_be_created_and_creates_nothing(machine: Machine) -> None:
    done = machine.run("new", "deploy", "--scripts", "--dry-run", "--for", "claude-code")

    assert (done.returncode, done.stdout) == (
        0,
        "Would create .agents/skills/deploy\n  SKILL.md\n  evals/eval_queries.json\n  scripts/run.py\n",
    )
    assert [path.name for path in machine.repo.iterdir()] == [".git"]
    machine.run("new", "deploy")
    assert machine.run("new", "deploy", "--dry-run").returncode != 0


@pytest.mark.slow
def test_its_script_runs(machine: Machine) -> None:
    machine.run("new", "deploy", "--scripts")
    folder = machine.repo / ".agents" / "skills" / "deploy"

    done = subprocess.run([folder / "scripts" / "run.py", "SKILL.md"], cwd=folder, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "SKILL.md: 19 lines\n")


@pytest.mark.parametrize(
    ("words", "cwd", "expected"),
    [
        ([], "repo/src/deep", "repo/.agents/skills/x"),
        (["--user"], "repo", "home/.agents/skills/x"),
        ([], "plain", "home/.agents/skills/x"),
        (["--root", "lib"], "repo/src", "repo/src/lib/x"),
        (["--root", "~/lib"], "repo", "home/lib/x"),
        (["--profile", "omp"], "repo/src", "repo/src/.omp/skills/x"),
        (["--profile", "mycodeagent"], "repo/src", "repo/skills/x"),
    ],
)
def test_it_goes_to_the_root_that_the_profile_names_first(
    machine: Machine, words: list[str], cwd: str, expected: str
) -> None:
    (machine.base / cwd).mkdir(parents=True, exist_ok=True)

    assert machine.run_json("new", "x", *words, cwd=machine.base / cwd)["dir"] == str(machine.base / expected)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("My Skill", "my-skill"),
        ("PDFForms", "pdfforms"),
        ("releaseNotes", "release-notes"),
        ("größe", "groe"),
        ("a--b", "a-b"),
        ("a/b", "a-b"),
        ("a" * 65, "a" * 64),
        ("..", None),
    ],
)
def test_a_name_that_is_not_valid_is_refused_with_one_that_is(machine: Machine, name: str, near: str | None) -> None:
    done = machine.run("new", name)

    assert done.returncode == 2
    assert (f"try: skillshelf new {near}\n" in done.stderr) == (near is not None)
    assert list(machine.repo.iterdir()) == [machine.repo / ".git"]


@pytest.mark.parametrize("there", ["skill", "empty folder", "file", "dangling link"])
def test_what_is_there_is_never_touched(machine: Machine, there: str) -> None:
    place = machine.repo / ".agents" / "skills" / "deploy"
    place.parent.mkdir(parents=True)
    if there == "skill":
        write_skill(place.parent, "deploy")
    elif there == "empty folder":
        place.mkdir()
    elif there == "file":
        place.write_text("mine")
    else:
        place.symlink_to(machine.base / "elsewhere")
    before = sorted(path.name for path in place.parent.rglob("*"))

    done = machine.run("new", "deploy")

    assert (done.returncode, done.stderr) == (1, f"skillshelf: Skill already exists: {place}\n")
    assert sorted(path.name for path in place.parent.rglob("*")) == before
    assert not (machine.base / "elsewhere").exists()


def test_after_a_failure_nothing_is_left(machine: Machine) -> None:
    (machine.repo / "lib").write_text("a file where a folder should be")

    done = machine.run("new", "deploy", "--root", "lib/skills", "--json")

    assert done.returncode == 5
    jsonschema.validate(json.loads(done.stdout), SCHEMAS["failure"])
    assert "cannot be created: not a directory" in done.stderr
    assert sorted(path.name for path in machine.repo.iterdir()) == [".git", "lib"]


def test_half_a_skill_is_taken_away_again(machine: Machine, tmp_path: Path) -> None:
    from skillshelf.core.disk_writes import make_folder

    with pytest.raises(OSError, match="File name too long"):
        make_folder(str(tmp_path / "new" / "skills" / "x"), {"SKILL.md": b"x", "a" * 300: b"y"})

    assert not (tmp_path / "new").exists()


def test_two_at_once_in_a_place_without_a_root_are_both_made(tmp_path: Path) -> None:
    from skillshelf.core.disk_writes import make_folder

    roots = [str(tmp_path / str(number) / ".agents" / "skills") for number in range(300)]

    def make(name: str) -> int:
        for root in roots:
            together.wait()
            make_folder(f"{root}/{name}", {"SKILL.md": b"x"})
        return len(roots)

    together = Barrier(2, timeout=30)
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(make, ("a", "b"))] == [len(roots)] * 2


def test_a_cloned_repository_cannot_lead_it_elsewhere(machine: Machine) -> None:
    (machine.base / "outside").mkdir()
    (machine.repo / ".agents").mkdir()
    (machine.repo / ".agents" / "skills").symlink_to(machine.base / "outside")

    done = machine.run("new", "deploy")

    assert done.returncode == 2
    assert "outside the repository" in done.stderr
    assert os.listdir(machine.base / "outside") == []


@pytest.mark.parametrize("profile", ["standard", "codelia", "omp", "swiftagent", "mycodeagent"])
@pytest.mark.parametrize("target", ["outside", "../outside", "nowhere"])
def test_a_link_above_a_root_that_does_not_exist_yet_cannot_lead_it_elsewhere(
    machine: Machine, profile: str, target: str
) -> None:
    (machine.base / "outside").mkdir()
    parent = {"omp": ".omp", "swiftagent": ".agent", "mycodeagent": "skills"}.get(profile, ".agents")
    (machine.repo / parent).symlink_to(target if target.startswith(".") else machine.base / target)

    done = machine.run("new", "fresh", "--profile", profile)

    assert done.returncode == 2, done.stdout
    assert "outside the repository" in done.stderr or "broken link" in done.stderr
    assert os.listdir(machine.base / "outside") == []
    assert not (machine.base / "nowhere").exists()


def test_a_link_above_a_root_that_stays_in_the_repository_is_followed(machine: Machine) -> None:
    (machine.repo / "shared").mkdir()
    (machine.repo / ".agents").symlink_to("shared")
    assert machine.run("new", "fresh").returncode == 0
    assert (machine.repo / "shared/skills/fresh/SKILL.md").exists()


HIDDEN = (
    "skillshelf: --description: the description contains 1 bidirectional character(s) (U+202E RIGHT-TO-LEFT OVERRIDE)\n"
)
NO_WHEN = 'skillshelf: description: it does not say when to use the skill; add a sentence such as "Use when ..."\n'


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ('Uses: colons, "quotes", it\'s # all [here] {now} and \\ too, größe', 0, ""),
        ("Deploys", 2, "skillshelf: --description: only 1 word; say what the skill does and when to use it\n"),
        ("Two words", 2, "skillshelf: --description: only 2 words; say what the skill does and when to use it\n"),
        ("Turns \u202e it round", 2, HIDDEN),
        ("Turns all of it round and round", 0, NO_WHEN),
        ("two\nlines are one when they are read as a description", 0, ""),
        ("x" * 1025, 2, "skillshelf: --description: the description has 1025 characters; at most 1024 are allowed\n"),
        (
            "Deploys \x1b[31mit\x07\x85. Use when asked.",
            2,
            "skillshelf: --description: control characters are not allowed (U+0007, U+001B, U+0085)\n",
        ),
        ("", 2, "skillshelf: --description: no `description`; say what the skill does and when to use it\n"),
    ],
    ids=["odd", "one word", "short", "hidden", "advice", "two lines", "long", "controls", "empty"],
)
def test_a_description_is_kept_as_given_or_refused(machine: Machine, text: str, status: int, message: str) -> None:
    done = machine.run("new", "deploy", f"--description={text}")

    assert (done.returncode, done.stderr) == (status, message)
    assert [skill.description for skill in machine.catalog().skills] == [" ".join(text.split())] * (status == 0)


def test_a_name_that_is_taken_elsewhere_is_reported(machine: Machine) -> None:
    path = write_skill(machine.home / ".agents" / "skills", "deploy")

    assert machine.run("new", "deploy").stderr == f"skillshelf: another skill already has this name: {path}\n"


def test_root_and_user_exclude_each_other(machine: Machine) -> None:
    assert machine.run("new", "deploy", "--root", "x", "--user").returncode == 2
