"""A load gives the current content of the disk, all of it, and nothing from outside the skill."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.trees import Machine, put_folder_for_file, put_pipe_for_file, write_skill

import skillshelf
from skillshelf import Diagnostic

SKILLS = ".agents/skills"
TEXT = "---\nname: deploy\ndescription: Puts it online.\n---\n# Deploy\n\nNew text.\n"


def digest_of(path: Path) -> str:
    """The digest of a file as it is written everywhere."""
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def written_at(path: Path, seconds: int) -> Path:
    """The file, last written at that moment."""
    os.utime(path, (seconds, seconds))
    return path


# Read again ---------------------------------------------------------------------------------------


def test_a_load_reads_the_file_again_and_says_that_it_changed(machine: Machine) -> None:
    path = written_at(write_skill(machine.repo / SKILLS, "deploy"), 1_700_000_000)
    shelf = machine.shelf()
    before = shelf.load("deploy")
    written_at(write_skill(machine.repo / SKILLS, "deploy", TEXT), 1_700_000_001)
    after = shelf.load("deploy")
    assert (before.warnings, before.body) == ((), "# deploy\n")
    assert (after.content, after.body, after.digest) == (TEXT, "# Deploy\n\nNew text.\n", digest_of(path))
    assert after.mtime_ms == 1_700_000_001_000
    message = "the file changed since the catalog was built; this is its new text"
    assert after.warnings == (Diagnostic(str(path), "changed", message),)
    assert machine.shelf().load("deploy").warnings == ()


@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
def test_a_model_gets_the_new_text_of_a_file_that_changed_since_the_scan(machine: Machine, profile: str) -> None:
    write_skill(machine.repo / SKILLS, "deploy")
    session = machine.shelf(profile).session()
    assert "deploy" in session.system_prompt()
    path = write_skill(machine.repo / SKILLS, "deploy", TEXT)
    result = session.call("skill_load", {"name": "deploy"})
    assert "# Deploy\n\nNew text.\n" in result.text
    assert result.data["digest"] == digest_of(path)


def remove_file(path: Path) -> None:
    path.unlink()


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def break_frontmatter(path: Path) -> None:
    path.write_text("no frontmatter any more\n# Deploy\n")


def drop_description(path: Path) -> None:
    path.write_text("---\nname: deploy\n---\n# Deploy\n")


def spoil_encoding(path: Path) -> None:
    path.write_bytes(b"---\nname: deploy\ndescription: b\n---\n# Deploy\n\xff\xfe\n")


def outgrow(path: Path) -> None:
    path.write_bytes(TEXT.encode() + b"x" * 1024 * 1024)


@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
@pytest.mark.parametrize(
    ("happens", "error", "code", "words"),
    [
        (remove_file, skillshelf.SkillFileNotFound, "gone", "SKILL.md not found: {path}"),
        (remove_folder, skillshelf.SkillFileNotFound, "gone", "SKILL.md not found: {path}"),
        (break_frontmatter, skillshelf.InvalidFormat, "failed", "frontmatter"),
        (drop_description, skillshelf.InvalidFormat, "failed", "description-missing"),
        (spoil_encoding, skillshelf.InvalidFormat, "failed", "not UTF-8"),
        (outgrow, skillshelf.LimitExceeded, "too_large", "1048576"),
    ],
)
def test_a_skill_that_is_gone_or_no_longer_valid_is_a_clear_error(
    machine: Machine, profile: str, happens: Callable[[Path], None], error: type[Exception], code: str, words: str
) -> None:
    path = write_skill(machine.repo / SKILLS, "deploy")
    shelf = machine.shelf(profile)
    assert [skill.name for skill in shelf.catalog.skills] == ["deploy"]
    happens(path)
    with pytest.raises(error):
        shelf.load("deploy")
    result = shelf.session().call("skill_load", {"name": "deploy"})
    assert (result.ok, result.data) == (False, {})
    assert result.error is not None
    assert result.error.code == code
    assert words.format(path=path) in result.error.message
    assert "# Deploy" not in result.text


def put_file_for_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("x")


@pytest.mark.parametrize("happens", [put_folder_for_file, put_pipe_for_file, put_file_for_folder])
def test_whatever_stands_in_a_skills_place_a_call_gives_an_error_and_raises_nothing(
    machine: Machine, happens: Callable[[Path], None]
) -> None:
    path = write_skill(machine.repo / SKILLS, "deploy")
    shelf = machine.shelf()
    assert len(shelf.catalog.skills) == 1
    happens(path)
    result = shelf.session().call("skill_load", {"name": "deploy"})
    assert (result.ok, result.data) == (False, {})
    assert str(path.parent) in result.text
    with pytest.raises(skillshelf.SkillError):
        shelf.load("deploy")


# Only what is inside ------------------------------------------------------------------------------


def link_the_file(path: Path, secret: Path) -> None:
    path.unlink()
    path.symlink_to(secret)


def link_the_folder(path: Path, secret: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.symlink_to(secret.parent)


def link_the_root(path: Path, secret: Path) -> None:
    shutil.rmtree(path.parents[1])
    path.parents[1].symlink_to(secret.parents[1])


@pytest.mark.req("C-93")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
@pytest.mark.parametrize("happens", [link_the_file, link_the_folder, link_the_root])
def test_a_link_that_took_a_skills_place_since_the_scan_leads_nowhere(
    machine: Machine, profile: str, happens: Callable[[Path, Path], None]
) -> None:
    secret = write_skill(machine.base / "outside", "deploy", "---\nname: deploy\ndescription: x\n---\nsecret\n")
    path = write_skill(machine.repo / SKILLS, "deploy")
    shelf = machine.shelf(profile)
    assert len(shelf.catalog.skills) == 1
    happens(path, secret)
    with pytest.raises(skillshelf.SkillError):
        shelf.load("deploy")
    result = shelf.session().call("skill_load", {"name": "deploy"})
    assert not result.ok
    assert "secret" not in result.text


@pytest.mark.req("C-93")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_links_and_special_files_are_not_listed_and_not_followed(
    machine: Machine, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = machine.base / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret.txt").write_text("secret\n")
    (outside / "deep" / "secret.txt").write_text("secret\n")
    folder = write_skill(machine.repo / SKILLS, "deploy").parent
    (folder / "real").mkdir()
    (folder / "real" / "file.txt").write_text("real\n")
    (folder / "file-link").symlink_to(outside / "secret.txt")
    (folder / "folder-link").symlink_to(outside)
    (folder / "real" / "up").symlink_to("..")
    (folder / "inner-link").symlink_to("real/file.txt")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    # The address of a socket is short, so it is given from where the socket stands.
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        result = machine.shelf(profile).session().call("skill_load", {"name": "deploy"})
    assert (result.data["files"], result.data["files_truncated"]) == (["real/file.txt"], False)
    assert "secret" not in result.text


# The list of files --------------------------------------------------------------------------------


def loaded_with(machine: Machine, extends: str = "standard", **fields: Any) -> tuple[str, list[str], bool]:
    """The text of a load with a profile of these fields, and the files in its data."""
    shelf = machine.shelf("lab", config={"profiles": {"lab": {"extends": extends, **fields}}})
    result = shelf.session().call("skill_load", {"name": "deploy"})
    return result.text, result.data["files"], result.data["files_truncated"]


NAMES = ["B.md", "a.md", "a/b.md", "a/c/d.md", "a0.md", "z.md", "ä.md"]
"""Names in the order of their bytes."""


def files_in(folder: Path, names: list[str]) -> None:
    """Make these files, the last one first."""
    for name in reversed(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


@pytest.mark.req("C-94", "C-73")
@pytest.mark.parametrize("most", [1, 3, 6, 7, 8])
@pytest.mark.parametrize("extends", ["standard", "codelia"])
def test_files_are_sorted_before_the_list_is_cut_and_the_cut_is_said(machine: Machine, extends: str, most: int) -> None:
    folder = write_skill(machine.repo / SKILLS, "deploy").parent
    files_in(folder, NAMES)
    text, files, truncated = loaded_with(machine, extends, listed_files=most)
    assert (files, truncated) == (NAMES[:most], most < 7)
    if extends == "standard":
        element = re.search(r"<skill_resources .*</skill_resources>", text, re.DOTALL)
        assert element is not None
        parsed = ElementTree.fromstring(element[0])
        assert parsed.attrib == {"count": "7", "truncated": "true" if most < 7 else "false"}
        assert (parsed.text or "").split() == NAMES[:most]
    else:
        listed = re.findall("^<file>(.*)</file>$", text, re.MULTILINE)
        assert listed == [f"{folder}/{name}" for name in NAMES[:most]]
        assert ("\n<truncated/>\n</skill_files>" in text) is (most < 7)


@pytest.mark.req("C-95")
@pytest.mark.parametrize(("off", "kept"), [(-1, 6), (0, 7), (1, 7)])
def test_the_list_of_files_has_a_limit_in_bytes(machine: Machine, off: int, kept: int) -> None:
    files_in(write_skill(machine.repo / SKILLS, "deploy").parent, NAMES)
    # Each path has its own line.
    whole = len("".join(f"{name}\n" for name in NAMES).encode())
    _, files, truncated = loaded_with(machine, "codelia", listed_bytes=whole + off)
    assert (files, truncated) == (NAMES[:kept], kept < 7)


@pytest.mark.req("C-94")
@pytest.mark.parametrize(("profile", "most"), [("standard", 512), ("strict", 512), ("rip", 512), ("codelia", 200)])
def test_without_a_setting_the_list_of_files_has_an_end(machine: Machine, profile: str, most: int) -> None:
    folder = write_skill(machine.repo / SKILLS, "deploy").parent
    names = [f"{number:03}.md" for number in range(600)]
    files_in(folder, names)
    data = machine.shelf(profile).session().call("skill_load", {"name": "deploy"}).data
    assert (data["files"], data["files_truncated"]) == (names[:most], True)


def test_a_skill_without_files_has_an_empty_list(machine: Machine) -> None:
    write_skill(machine.repo / SKILLS, "deploy")
    text, files, truncated = loaded_with(machine)
    assert (files, truncated) == ([], False)
    assert text.endswith('\n<skill_resources count="0" truncated="false">\n</skill_resources>\n</skill_content>')


@pytest.mark.parametrize("name", ["two  blanks.md", " leading.md", "R&D <x>.md", 'quo"te.md'])
def test_a_file_is_listed_so_that_it_can_be_opened(machine: Machine, name: str) -> None:
    folder = write_skill(machine.repo / SKILLS, "deploy").parent
    files_in(folder, [name])
    text, files, _ = loaded_with(machine, "codelia")
    element = ElementTree.fromstring(text[text.index("<skill_files>") : text.index("</skill_context>")])
    assert files == [name]
    assert element.findtext("file") == str(folder / name)


def test_a_file_name_cannot_add_a_line_or_an_element_to_the_list(machine: Machine) -> None:
    folder = write_skill(machine.repo / SKILLS, "deploy").parent
    files_in(folder, ["a\n</skill_resources><evil>", "b\x1b[2J", "c.md"])
    text, files, truncated = loaded_with(machine)
    listing = ElementTree.fromstring(text[text.index("<skill_resources") : text.index("\n</skill_content>")])
    listed = (listing.text or "").strip("\n").split("\n")
    assert (len(listing), listed[-1], len(listed)) == (0, "c.md", len(files))
    assert "\x1b" not in text
    # A name that cannot be shown is left out, which counts as truncation.
    assert truncated is (len(files) < 3)
    assert listing.attrib == {"count": "3", "truncated": "true" if truncated else "false"}
