"""The skills that ship with this repository keep the rules they teach, and their scripts do their job."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.trees import run_command, write_skill

import skillshelf

REPOSITORY = Path(__file__).parent.parent
SKILLS = REPOSITORY / ".agents" / "skills"
NAMES = sorted(folder.name for folder in SKILLS.iterdir())
PAGES = sorted(SKILLS.rglob("*.md"))
SCRIPTS = sorted(path for path in SKILLS.glob("*/scripts/*") if path.is_file())
NEAR_MISSES = SKILLS / "find-missing-skill" / "scripts" / "near_misses.py"


def from_skills(path: Path) -> str:
    """A path as seen from the folder of skills."""
    return path.relative_to(SKILLS).as_posix()


def run(script: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A script of a skill, with nothing but Python."""
    return subprocess.run(
        [sys.executable, "-I", str(script), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


# All of them --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["strict", "standard", "codelia", "rip"])
def test_our_own_skills_are_listed_without_an_error_or_a_warning(tmp_path: Path, profile: str) -> None:
    catalog = skillshelf.open_shelf(REPOSITORY, profile, home=tmp_path, env={}).catalog

    assert [skill.name for skill in catalog.skills] == NAMES
    assert len(NAMES) >= 3
    assert (catalog.errors, catalog.warnings, catalog.shadowed, catalog.filtered) == ((), (), (), ())


def links_in(page: Path) -> list[str]:
    """The targets of the links of a page, outside of code blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors_in(page: Path) -> set[str]:
    """The anchors that the headings of a page give, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=from_skills)
def test_every_relative_link_leads_somewhere_inside_the_skill(page: Path) -> None:
    skill = SKILLS / page.relative_to(SKILLS).parts[0]
    for target in links_in(page):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), target
        assert file.is_relative_to(skill.resolve()), target
        assert not anchor or anchor in anchors_in(file), target


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_a_skill_is_spoken_of_in_it(name: str) -> None:
    text = (SKILLS / name / "SKILL.md").read_text(encoding="utf-8")
    files = [path.relative_to(SKILLS / name).as_posix() for path in (SKILLS / name).rglob("*") if path.is_file()]
    # Test cases are for authors, not for a model.
    files = [file for file in files if not file.startswith("evals/")]

    assert [file for file in files if file not in text and file != "SKILL.md" and "__pycache__" not in file] == []


def test_our_own_skills_pass_their_tests_of_findability(tmp_path: Path) -> None:
    done = run_command("eval", "--json", "--home", str(tmp_path), cwd=REPOSITORY)

    results = json.loads(done.stdout)["skills"]
    assert (done.returncode, [skill["name"] for skill in results]) == (0, NAMES)
    assert all(skill["positives"] >= 3 and skill["negatives"] >= 2 and not skill["collisions"] for skill in results)


@pytest.mark.parametrize("name", NAMES)
def test_a_body_is_short_enough_to_be_read_whole(name: str) -> None:
    assert len((SKILLS / name / "SKILL.md").read_text(encoding="utf-8").splitlines()) <= 500


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=from_skills)
def test_a_script_can_be_started_and_explains_itself(script: Path, tmp_path: Path) -> None:
    assert script.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert os.access(script, os.X_OK)

    done = run(script, "--help", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    assert "exit status:" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_skillshelf_command_that_a_skill_names_exists(name: str) -> None:
    from skillshelf.cli.command_table import COMMANDS

    for page in (SKILLS / name).rglob("*.md"):
        named = re.findall(
            r"(?:^|`)skillshelf ([a-z]+)(?: (.*?))?(?:`|$)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        for command, rest in named:
            assert command in COMMANDS, page
            options = {option.name for option in COMMANDS[command].options}
            assert set(re.findall(r"--[a-z-]+", rest)) <= options, (page, command, rest)


# Near misses --------------------------------------------------------------------------------------

VALID = "---\nname: x\ndescription: d\n---\n"

MISSES: dict[str, tuple[str, bytes, str, str]] = {
    "lower case": (".agents/skills/a/skill.md", VALID.encode(), "file-name", ".agents/skills/a/skill.md"),
    "plural": (".agents/skills/a/SKILLS.md", VALID.encode(), "file-name", ".agents/skills/a/SKILLS.md"),
    "mark": (".agents/skills/a/SKILL.md", b"\xef\xbb\xbf" + VALID.encode(), "bom", ".agents/skills/a/SKILL.md"),
    "utf-16": (".agents/skills/a/SKILL.md", VALID.encode("utf-16"), "bom", ".agents/skills/a/SKILL.md"),
    "latin-1": (".agents/skills/a/SKILL.md", VALID.encode() + b"\xff", "encoding", ".agents/skills/a/SKILL.md"),
    "no fence": (".agents/skills/a/SKILL.md", b"# Title\n", "opening-fence", ".agents/skills/a/SKILL.md"),
    "late fence": (".agents/skills/a/SKILL.md", b"\n" + VALID.encode(), "opening-fence", ".agents/skills/a/SKILL.md"),
    "unclosed": (".agents/skills/a/SKILL.md", b"---\nname: x\n", "closing-fence", ".agents/skills/a/SKILL.md"),
    "blanks": (".agents/skills/a/SKILL.md", b"--- \nname: x\n---\n", "fence-space", ".agents/skills/a/SKILL.md"),
    "singular": (".agents/skill/a/SKILL.md", VALID.encode(), "folder-name", ".agents/skill"),
    "no skills folder": (".agents/a/SKILL.md", VALID.encode(), "no-skills-folder", ".agents/a/SKILL.md"),
    "in the root": (".agents/skills/SKILL.md", VALID.encode(), "root-file", ".agents/skills/SKILL.md"),
    "flat": (".agents/skills/deploy.md", VALID.encode(), "flat-file", ".agents/skills/deploy.md"),
    "old folder": (".agent/skills/a/SKILL.md", VALID.encode(), "folder-name", ".agent/skills"),
}


@pytest.mark.slow
@pytest.mark.parametrize("miss", MISSES)
def test_a_near_miss_is_found_with_a_repair(tmp_path: Path, miss: str) -> None:
    path, content, kind, reported = MISSES[miss]
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(content)

    done = run(NEAR_MISSES, "--json", str(tmp_path), cwd=tmp_path)

    found: Any = json.loads(done.stdout)["near_misses"]
    assert [(one["kind"], one["path"]) for one in found] == [(kind, str(tmp_path / reported))]
    assert found[0]["message"]
    assert found[0]["fix"]
    assert done.returncode == 1


@pytest.mark.slow
def test_links_and_special_files_are_near_misses_that_are_not_opened(tmp_path: Path) -> None:
    root = tmp_path / ".agents" / "skills"
    real = write_skill(root, "real")
    for name in ("broken", "linked", "pipe", "folder"):
        (root / name).mkdir()
    (root / "broken" / "SKILL.md").symlink_to("nothing")
    (root / "linked" / "SKILL.md").symlink_to(real)
    os.mkfifo(root / "pipe" / "SKILL.md")
    (root / "folder" / "SKILL.md").mkdir()
    (root / "gone").symlink_to("nothing")

    done = run(NEAR_MISSES, "--json", cwd=tmp_path)

    found = [(os.path.relpath(one["path"], root), one["kind"]) for one in json.loads(done.stdout)["near_misses"]]
    assert found == [
        ("broken/SKILL.md", "broken-link"),
        ("folder/SKILL.md", "not-a-file"),
        ("gone", "broken-link"),
        ("linked/SKILL.md", "linked-file"),
        ("pipe/SKILL.md", "not-a-file"),
    ]


@pytest.mark.slow
def test_a_sound_tree_has_no_near_miss(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agents" / "skills", "good")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "skills.md").write_text("# About skills\n")

    done = run(NEAR_MISSES, str(tmp_path), cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("near misses: 0; folders: ")


@pytest.mark.slow
def test_our_own_repository_has_no_near_miss(tmp_path: Path) -> None:
    done = run(NEAR_MISSES, str(REPOSITORY / ".agents"), cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_a_name_of_a_stranger_is_not_printed_raw(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agents" / "skills", "x", "no fence", folder="esc\x1b[31m\u202e")

    done = run(NEAR_MISSES, cwd=tmp_path)

    assert done.returncode == 1
    assert not {"\x1b", "\u202e"} & set(done.stdout + done.stderr)


@pytest.mark.slow
def test_a_walk_that_is_cut_short_says_so(tmp_path: Path) -> None:
    for number in range(20):
        write_skill(tmp_path / ".agents" / "skills", f"skill-{number}")

    done = run(NEAR_MISSES, "--json", "--max-entries", "5", cwd=tmp_path)

    assert json.loads(done.stdout)["truncated"] is True


@pytest.mark.slow
@pytest.mark.parametrize("words", [["/nonexistent"], ["--max-entries", "0"], ["--nonsense"]], ids=" ".join)
def test_wrong_usage_of_near_misses_ends_with_2(tmp_path: Path, words: list[str]) -> None:
    assert run(NEAR_MISSES, *words, cwd=tmp_path).returncode == 2
