"""The baseline of `check`: what is known stays quiet, what is new fails, what is fixed is reported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from schemas import SCHEMAS
from support.needs import needs_program
from support.trees import Machine, write_skill

from skillshelf.lint.baseline import BaselineKey
from skillshelf.lint.run import CheckFinding

GOOD = "Drafts release notes from merged pull requests. Use when the user asks for a changelog."
SKILLS = 50


def old_repository(repo: Path) -> None:
    """Write fifty skills with four findings each: three warnings, two of them equal, and an error."""
    for number in range(SKILLS):
        name = f"old-{number:02}"
        body = "See [a](gone.md).\n\nSee [b](gone.md).\n"
        write_skill(repo / "skills", name, f"---\nname: Old{number}\ndescription: Short.\n---\n# Old\n{body}")


def report_of(machine: Machine, *words: str) -> Any:
    """Return the status and the report of `check`."""
    done = machine.run("check", *words, "--json")
    report = json.loads(done.stdout)
    jsonschema.validate(report, SCHEMAS["check"])
    return done.returncode, report


@pytest.mark.slow
def test_an_old_repository_is_green_with_a_baseline_and_red_with_one_new_finding(machine: Machine) -> None:
    old_repository(machine.repo)
    home = ["--home", str(machine.home)]

    def check(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "skillshelf", "check", *words, *home]
        return subprocess.run(command, cwd=machine.repo, capture_output=True, text=True, timeout=60, check=False)

    before, written = check(), check("--write-baseline", "known.json")
    assert before.returncode == 1
    assert "50 skills checked: 100 errors, 150 warnings\n" in before.stdout
    assert (written.returncode, written.stderr) == (0, "")
    assert "known.json written: 250 findings known from now on\n" in written.stdout

    green = check("--baseline", "known.json")
    assert green.returncode == 0
    assert "50 skills checked: no findings\n" in green.stdout
    assert "compared with known.json: 250 known findings, 0 new\n" in green.stdout

    path = machine.repo / "skills/old-07/SKILL.md"
    path.write_text(path.read_text().replace("# Old\n", "# Old\n\n\nNew: [c](new.md)\n"))
    red = check("--baseline", "known.json")
    assert red.returncode == 1
    assert "  8:10  warning  reference-missing  new.md does not exist\n" in red.stdout
    assert "50 skills checked: 1 warning\n" in red.stdout

    write_skill(machine.repo / "skills", "old-07", f"---\nname: old-07\ndescription: {GOOD}\n---\n# Old\n")
    kept = (machine.repo / "known.json").read_bytes()
    fixed = check("--baseline", "known.json")
    prune = f"skillshelf check --home {machine.home} --baseline known.json --write-baseline known.json"
    assert fixed.returncode == 0
    assert f"5 findings of the baseline are fixed; to take them out: {prune}\n" in fixed.stdout
    assert (machine.repo / "known.json").read_bytes() == kept

    pruned = check("--baseline", "known.json", "--write-baseline", "known.json")
    assert "known.json written: 245 findings known from now on\n" in pruned.stdout
    assert "fixed" not in check("--baseline", "known.json").stdout


def test_json_counts_what_is_known_new_and_fixed(machine: Machine) -> None:
    old_repository(machine.repo)
    _, written = report_of(machine, "--write-baseline", "known.json")
    write_skill(machine.repo / "skills", "new", "---\nname: new\ndescription: Short.\n---\n# x\n")
    shutil.rmtree(machine.repo / "skills/old-03")

    status, report = report_of(machine, "--baseline", "known.json")

    file = str(machine.repo / "known.json")
    assert written["baseline"] == {"file": file, "known": 250, "new": 0, "fixed": 0, "written": True}
    assert written["findings"] == []
    assert (status, report["baseline"]) == (1, {"file": file, "known": 245, "new": 1, "fixed": 5, "written": False})
    assert [finding["relative"] for finding in report["findings"]] == ["skills/new/SKILL.md"]


def test_two_equal_findings_count_twice(machine: Machine) -> None:
    path = write_skill(
        machine.repo / "skills", "demo", f"---\nname: demo\ndescription: {GOOD}\n---\n[a](a.md)\n[b](a.md)\n"
    )
    report_of(machine, "--write-baseline", "known.json")
    text = path.read_text()

    found = []
    for changed in (text + "[c](a.md)\n", text.replace("[b](a.md)\n", "")):
        path.write_text(changed)
        baseline = report_of(machine, "--baseline", "known.json")[1]["baseline"]
        found.append((baseline["known"], baseline["new"], baseline["fixed"]))

    assert found == [(2, 1, 0), (1, 0, 1)]


def test_the_file_is_sorted_versioned_and_the_same_on_every_machine(machine: Machine, tmp_path: Path) -> None:
    write_skill(machine.repo / ".agents/skills", "b")
    write_skill(machine.repo / ".claude/skills", "b")
    write_skill(machine.repo / "skills", "a", "---\nname: a\ndescription: Short.\nauthor: me\n---\n# x\n")
    machine.run("check", "--write-baseline", "known.json")
    other = Machine(tmp_path)
    shutil.copytree(machine.repo, other.repo, dirs_exist_ok=True)

    text = (machine.repo / "known.json").read_text()

    assert json.loads(text)["version"] == 1
    assert [(row["file"], row["rule"], row["count"]) for row in json.loads(text)["findings"]] == [
        (".claude/skills/b/SKILL.md", "name-collision", 1),
        ("skills/a/SKILL.md", "description-vague", 1),
        ("skills/a/SKILL.md", "unknown-field", 1),
    ]
    assert str(machine.repo) not in text
    assert text.count("\n") == 8
    assert report_of(other, "--baseline", "known.json")[0] == 0


def test_what_was_not_checked_is_not_fixed_and_stays_in_the_file(machine: Machine) -> None:
    old_repository(machine.repo)
    machine.run("check", "--write-baseline", "known.json")
    words = ("--baseline", "known.json")
    (machine.repo / "skillshelf.toml").write_text('[check]\nexclude = ["old-49"]\n')

    parts = [
        report_of(machine, "skills/old-01", *words),
        report_of(machine, "skills/old-01/SKILL.md", "--select", "name", *words),
        report_of(machine, "--ignore", "description-vague", *words, "--write-baseline", "known.json"),
    ]

    assert [report["baseline"]["fixed"] for _, report in parts] == [0, 0, 0]
    assert [report["baseline"]["known"] for _, report in parts] == [5, 2, 196]
    (machine.repo / "skillshelf.toml").unlink()
    assert report_of(machine, *words)[1]["baseline"]["known"] == 250


def test_a_severity_hides_findings_and_fixes_none(machine: Machine) -> None:
    old_repository(machine.repo)
    machine.run("check", "--severity", "error", "--write-baseline", "errors.json")
    machine.run("check", "--write-baseline", "known.json")

    assert len(json.loads((machine.repo / "errors.json").read_text())["findings"]) == 100
    baseline = report_of(machine, "--severity", "error", "--baseline", "known.json")[1]["baseline"]
    assert (baseline["known"], baseline["fixed"]) == (250, 0)


def test_the_configuration_names_the_baseline_and_a_new_one_can_be_written(machine: Machine) -> None:
    old_repository(machine.repo)
    (machine.repo / "skillshelf.toml").write_text('[check]\nbaseline = "known.json"\n')

    missing = machine.run("check")
    written = machine.run("check", "--write-baseline", "known.json")
    below = machine.run("check", cwd=machine.repo / "skills")

    assert missing.returncode == 2
    assert missing.stderr == (
        f"skillshelf: baseline {machine.repo}/known.json does not exist; "
        "to write it: skillshelf check --write-baseline FILE\n"
    )
    assert (written.returncode, below.returncode) == (0, 0)


def test_sarif_says_what_is_new_unchanged_and_absent(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", "---\nname: demo\ndescription: Short.\n---\n[a](a.md)\n")
    machine.run("check", "--write-baseline", "known.json")
    path.write_text("---\nname: demo\ndescription: Short.\n---\n[a](b.md)\n")

    done = machine.run("check", "--baseline", "known.json", "--format", "sarif")

    results = json.loads(done.stdout)["runs"][0]["results"]
    assert [(result["message"]["text"][:4], result["baselineState"]) for result in results] == [
        ("b.md", "new"),
        ("only", "unchanged"),
        ("a.md", "absent"),
    ]
    place = results[2]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "skills/demo/SKILL.md", "uriBaseId": "SRCROOT"}


# Files that are no baseline -----------------------------------------------------------------------

ROW = {"file": "a", "rule": "bom", "text": "x", "count": 1}
BROKEN = {
    "empty": b"",
    "text": b"no baseline",
    "list": b"[]",
    "conflict": b'{"version": 1, "findings": [\n<<<<<<< HEAD\n]}',
    "no version": b'{"findings": []}',
    "true": b'{"version": true, "findings": []}',
    "newer": b'{"version": 2, "findings": []}',
    "no findings": b'{"version": 1}',
    "no texts": json.dumps({"version": 1, "findings": [{**ROW, "text": 3}]}).encode(),
    "count": json.dumps({"version": 1, "findings": [{**ROW, "count": 10**30}]}).encode(),
    "deep": b"[" * 200_000,
    "bytes": b"\xff\xfe{",
    "digits": b'{"version": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("option", ["--baseline", "--write-baseline"])
def test_a_file_that_is_no_baseline_is_one_line_and_is_not_replaced(
    machine: Machine, content: bytes, option: str
) -> None:
    write_skill(machine.repo / "skills", "demo")
    path = machine.repo / "known.json"
    path.write_bytes(content)

    done = machine.run("check", option, "known.json")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "known.json" in done.stderr
    assert path.read_bytes() == content
    assert sorted(os.listdir(machine.repo)) == [".git", "known.json", "skills"]


def test_a_pipe_a_folder_and_a_link_of_a_stranger_are_no_baselines(machine: Machine) -> None:
    write_skill(machine.repo / "skills", "demo")
    (machine.repo / "folder").mkdir()
    os.mkfifo(machine.repo / "pipe")
    (machine.base / "secret.json").write_text('{"version": 1, "findings": []}')
    (machine.repo / "link").symlink_to(machine.base / "secret.json")

    for name in ("folder", "pipe", "link", "nowhere/known.json"):
        (machine.repo / "skillshelf.toml").write_text(f'[check]\nbaseline = "{name}"\n')
        done = machine.run("check")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    for name in ("folder", "pipe", "nowhere/known.json"):
        done = machine.run("check", "--write-baseline", name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
@needs_program("git")
def test_baselines_of_two_branches_merge(machine: Machine) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost", "-c", "commit.gpgsign=false"]
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(machine.home)}
        subprocess.run(
            ["git", *identity, *words], cwd=machine.repo, env=environment, check=True, capture_output=True, timeout=60
        )

    def write(name: str) -> None:
        write_skill(machine.repo / "skills", name, f"---\nname: {name}\ndescription: Short.\n---\n# x\n")
        machine.run("check", "--write-baseline", "known.json")

    (machine.repo / ".git").rmdir()
    git("init", "--quiet", "--initial-branch=main")
    for name in ("a", "d", "g"):
        write(name)
    for branch, name in (("main", ""), ("one", "b"), ("two", "f")):
        git("checkout", "--quiet", *(("-b", branch, "main") if name else ("-B", branch)))
        if name:
            write(name)
        git("add", "--all")
        git("commit", "--quiet", "--message", branch)
    git("merge", "--quiet", "one")

    status, report = report_of(machine, "--baseline", "known.json")

    assert (status, report["baseline"]["known"], report["baseline"]["fixed"]) == (0, 5, 0)


def test_after_a_conflict_the_advice_works(machine: Machine) -> None:
    write_skill(machine.repo / "skills", "demo")
    path = machine.repo / "known.json"
    path.write_text("<<<<<<< ours\n{}\n")
    assert "remove it and write it again" in machine.run("check", "--baseline", "known.json").stderr
    path.unlink()
    assert machine.run("check", "--write-baseline", "known.json").returncode == 0


def test_a_file_is_named_by_where_it_is_and_found_again() -> None:
    paths = ["/r/a/SKILL.md", "/srv/r/a/SKILL.md", "/home/ada/x/SKILL.md", "/r/~/a/SKILL.md", "/srv/home/ada/SKILL.md"]
    key = BaselineKey("/r", "/home/ada")
    names = [key.of(CheckFinding(path, None, None, "bom", "info", "m")) for path in paths]
    assert [name.file for name in names] == [
        "a/SKILL.md",
        "/srv/r/a/SKILL.md",
        "~/x/SKILL.md",
        "./~/a/SKILL.md",
        "/srv/home/ada/SKILL.md",
    ]
    assert [key.path(name) for name in names] == paths
    whole = BaselineKey("/", None).of(CheckFinding("/a/b/SKILL.md", None, None, "bom", "info", "see /a/b"))
    assert (whole.file, whole.text) == ("a/b/SKILL.md", "see /a/b")
