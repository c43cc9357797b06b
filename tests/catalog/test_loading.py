"""A request resolves to one skill, and a model gets its text."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import ToolError
from skillshelf.catalog.load import omissions, omissions_of
from skillshelf.core.values import Filtered, Shadowed

SKILLS = ".agents/skills"


def digest_of(path: Path) -> str:
    """The digest of a file as it is written everywhere."""
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


# Which skill is meant -----------------------------------------------------------------------------


@pytest.mark.req("C-83", "C-81")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_a_name_that_is_unique_resolves(machine: Machine, profile: str) -> None:
    path = write_skill(machine.repo / SKILLS, "deploy")
    write_skill(machine.repo / SKILLS, "deploy-all")
    assert machine.shelf(profile).load("deploy").skill.path == str(path)
    assert machine.shelf(profile).session().call("skill_load", {"name": "deploy"}).data["path"] == str(path)


@pytest.mark.req("C-81", "C-15")
@pytest.mark.parametrize(
    "words",
    [
        "{repo}/.agents/skills/deploy/SKILL.md",
        "{repo}/.agents/skills/deploy",
        "{repo}/.agents/skills/deploy/",
        "../.agents/skills/deploy/SKILL.md",
        "../.agents/skills/deploy",
        "./.././.agents//skills/deploy/.",
        "../.agents/skills/build/../deploy",
        "a-link",
        "a-link/SKILL.md",
        "a-file-link",
    ],
)
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_a_path_is_taken_from_the_shelfs_folder_and_may_be_folder_or_file(
    machine: Machine, profile: str, words: str
) -> None:
    path = write_skill(machine.repo / SKILLS, "deploy")
    write_skill(machine.repo / SKILLS, "build")
    here = machine.repo / "src"
    here.mkdir()
    (here / "a-link").symlink_to(path.parent)
    (here / "a-file-link").mkdir()
    (here / "a-file-link" / "SKILL.md").symlink_to(path)
    shelf = machine.shelf(profile, cwd=here)
    words = words.format(repo=machine.repo)
    assert shelf.load(path=words).skill.path == str(path)
    assert shelf.load(path=Path(words)).skill.path == str(path)
    assert shelf.session().call("skill_load", {"path": words}).data["path"] == str(path)


@pytest.mark.req("C-82", "C-17")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
@pytest.mark.parametrize("name", ["deploy", "no-such-skill"])
def test_a_path_wins_over_a_name(machine: Machine, profile: str, name: str) -> None:
    write_skill(machine.repo / SKILLS, "deploy")
    build = write_skill(machine.repo / SKILLS, "build")
    shelf = machine.shelf(profile)
    assert shelf.load(name, path=f"{SKILLS}/build").skill.path == str(build)
    given = {"name": name, "path": f"{SKILLS}/build"}
    assert shelf.session().call("skill_load", given).data["path"] == str(build)


@pytest.mark.parametrize("given", [{"name": "deploy", "path": ""}, {"name": "", "path": f"{SKILLS}/deploy"}])
def test_an_empty_text_counts_as_not_given(machine: Machine, given: dict[str, str]) -> None:
    write_skill(machine.repo / SKILLS, "deploy")
    assert machine.shelf().session().call("skill_load", given).ok


@pytest.mark.req("C-07")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_the_same_request_means_the_same_skill_every_time(machine: Machine, profile: str) -> None:
    path = write_skill(machine.repo / SKILLS, "deploy")
    write_skill(machine.home / SKILLS, "build")
    for _ in range(3):
        session = machine.shelf(profile).session()
        mentions = session.resolve_mentions("please use $deploy on it")
        assert mentions.skills == ("deploy",)
        by_name = session.call("skill_load", {"name": mentions.skills[0]}).data
        by_path = session.call("skill_load", {"path": f"{SKILLS}/deploy/SKILL.md"}).data
        assert (by_name["path"], by_name["skill_id"]) == (by_path["path"], by_path["skill_id"])
        assert by_name["path"] == str(path)


@pytest.mark.req("C-84", "C-113", "C-17")
def test_a_name_that_several_skills_have_is_an_error_with_all_their_paths(machine: Machine) -> None:
    here = machine.repo / "src"
    paths = [write_skill(place / SKILLS, "deploy") for place in (machine.repo, here, machine.home)]
    shelf = machine.shelf("codelia", cwd=here)
    with pytest.raises(skillshelf.AmbiguousSkill) as caught:
        shelf.load("deploy")
    assert (caught.value.name, set(caught.value.paths)) == ("deploy", {str(path) for path in paths})

    result = shelf.session().call("skill_load", {"name": "deploy"})
    assert (result.ok, result.data) == (False, {})
    assert result.error is not None
    assert (result.error.code, result.error.candidates) == ("ambiguous", caught.value.paths)
    assert all(str(path) in result.text for path in paths)
    assert "by its path" in result.error.message


@pytest.mark.req("C-17", "C-82")
def test_each_of_several_skills_of_one_name_can_be_loaded_by_its_path(machine: Machine) -> None:
    paths = [write_skill(place / SKILLS, "deploy") for place in (machine.repo, machine.home)]
    session = machine.shelf("codelia").session()
    loaded = [session.call("skill_load", {"name": "deploy", "path": str(path)}).data["path"] for path in paths]
    assert loaded == [str(path) for path in paths]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("elsewhere/deploy", "not_found"),
        (".agents/skills/broken", "failed"),
        (".agents/skills/build/inner", "not_found"),
        (".agents/skills", "not_found"),
        ("/etc/passwd", "not_found"),
        ("a\0b", "not_found"),
    ],
)
def test_only_what_is_in_the_catalog_can_be_loaded(machine: Machine, words: str, code: str) -> None:
    write_skill(machine.repo / "elsewhere", "deploy")
    write_skill(machine.repo / SKILLS, "broken", "no frontmatter\n")
    write_skill(machine.repo / SKILLS / "build", "inner")
    write_skill(machine.repo / SKILLS, "build")
    shelf = machine.shelf()
    with pytest.raises(skillshelf.SkillNotFound):
        shelf.load(path=words)
    result = shelf.session().call("skill_load", {"path": words})
    assert (result.ok, result.error and result.error.code) == (False, code)


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("relase-notes", ("release-notes",)),
        ("Release-Note", ("release-notes",)),
        ("release notes", ("release-notes",)),
        ("relaese", ("release-notes",)),
        ("zzz", ()),
    ],
)
def test_for_a_typo_close_names_are_suggested(machine: Machine, name: str, candidates: tuple[str, ...]) -> None:
    for known in ("release-notes", "deploy", "hidden-notes"):
        write_skill(machine.repo / SKILLS, known)
    shelf = machine.shelf(config={"skills": {"disabled": ["hidden-notes"]}})
    result = shelf.session().call("skill_load", {"name": name})
    message = f"Skill not found: {name}" + (f"; did you mean {candidates[0]}?" if candidates else "")
    assert result.error == ToolError("not_found", message, candidates)


def test_the_error_about_a_typo_holds_close_names_for_a_program(machine: Machine) -> None:
    write_skill(machine.repo / SKILLS, "release-notes")
    with pytest.raises(skillshelf.SkillNotFound) as caught:
        machine.shelf().load("relase-notes")
    assert (caught.value.name, caught.value.near) == ("relase-notes", ("release-notes",))


def test_a_name_that_is_not_in_the_catalog_has_an_entry_that_says_why(machine: Machine) -> None:
    broken = write_skill(machine.repo / SKILLS, "broken", "no frontmatter\n")
    hidden = write_skill(machine.home / SKILLS, "deploy")
    winner = write_skill(machine.repo / SKILLS, "deploy")
    ignored = write_skill(machine.repo / SKILLS, "ignored")
    catalog = machine.shelf(config={"skills": {"ignored": ["ignored"]}}).catalog

    assert [(entry.name, entry.path) for entry in omissions(catalog)] == [
        ("broken", str(broken)),
        ("deploy", str(hidden)),
        ("ignored", str(ignored)),
    ]
    assert [entry.entry for entry in omissions_of(catalog, name="broken")] == list(catalog.errors)
    assert [entry.entry for entry in omissions_of(catalog, name="deploy")] == [
        Shadowed("deploy", str(hidden), str(winner), same_file=False)
    ]
    folder = f"{SKILLS}/ignored"
    assert [entry.entry for entry in omissions_of(catalog, path=folder, cwd=str(machine.repo))] == [
        Filtered("ignored", str(ignored), "ignored", f"{machine.repo}/<config>: skills.ignored")
    ]
    assert omissions_of(catalog, name="nowhere") == omissions_of(catalog, path="nowhere") == []


@pytest.mark.parametrize("given", [{}, {"name": ""}, {"args": "x"}])
def test_a_load_needs_a_name_or_a_path(machine: Machine, given: dict[str, str]) -> None:
    write_skill(machine.repo / SKILLS, "deploy")
    result = machine.shelf().session().call("skill_load", given)
    assert result.error == ToolError("invalid_params", "name or path is required")


def test_with_skills_switched_off_nothing_is_loaded(machine: Machine) -> None:
    write_skill(machine.repo / SKILLS, "deploy")
    with pytest.raises(skillshelf.SkillsDisabled):
        machine.shelf(config={"skills": {"enabled": False}}).load("deploy")


# What a model gets of it --------------------------------------------------------------------------

TEXT = "---\nname: deploy\ndescription: Puts it online.\nx-own: 1\n---\n# Deploy\n\nSee references/a.md & <run>.\n"
BODY = "# Deploy\n\nSee references/a.md & <run>.\n"


def deploy_in(root: Path) -> Path:
    """A skill with two bundled files, one of them in a folder."""
    path = write_skill(root, "deploy", TEXT)
    (path.parent / "references").mkdir()
    (path.parent / "references" / "a.md").write_text("reference\n")
    (path.parent / "LICENSE & more").write_text("license\n")
    return path


@pytest.mark.parametrize("profile", ["standard", "strict"])
def test_the_standard_gives_the_body_in_an_element_with_directory_digest_and_files(
    machine: Machine, profile: str
) -> None:
    path = deploy_in(machine.repo / SKILLS)
    assert machine.shelf(profile).session().call("skill_load", {"name": "deploy"}).text == (
        f'<skill_content name="deploy" directory="{path.parent}" digest="{digest_of(path)}">\n'
        f"{BODY}"
        '<skill_resources count="2" truncated="false">\n'
        "LICENSE &amp; more\n"
        "references/a.md\n"
        "</skill_resources>\n"
        "</skill_content>"
    )


@pytest.mark.req("K-08", "K-18", "K-28")
def test_rip_gives_the_full_file(machine: Machine) -> None:
    path = deploy_in(machine.repo / SKILLS)
    text = machine.shelf("rip").session().call("skill_load", {"name": "deploy"}).text
    assert text.startswith(
        f'<skill_content name="deploy" directory="{path.parent}" digest="{digest_of(path)}">\n{TEXT}<skill_resources '
    )


@pytest.mark.req("C-20", "C-69", "C-70", "C-71", "C-72", "C-73", "C-85", "C-115", "C-15")
def test_codelia_gives_the_full_file_its_base_directory_and_its_files(machine: Machine) -> None:
    path = deploy_in(machine.repo / SKILLS)
    assert machine.shelf("codelia").session().call("skill_load", {"name": "deploy"}).text == (
        f'<skill_context name="deploy" path="{path}">\n'
        f"{TEXT}\n"
        f"Base directory: file://{path.parent}/\n"
        "Relative paths in this skill are resolved from this directory.\n"
        "<skill_files>\n"
        f"<file>{path.parent}/LICENSE &amp; more</file>\n"
        f"<file>{path.parent}/references/a.md</file>\n"
        "</skill_files>\n"
        "</skill_context>"
    )


@pytest.mark.req("C-71")
@pytest.mark.parametrize(
    ("folder", "url"), [("a b", "a%20b"), ("R&D", "R%26D"), ("größe", "gr%C3%B6%C3%9Fe"), ("50%", "50%25")]
)
def test_the_base_directory_is_a_url_that_can_be_opened(machine: Machine, folder: str, url: str) -> None:
    here = machine.repo / folder
    write_skill(here / SKILLS, "deploy")
    text = machine.shelf("codelia", cwd=here).session().call("skill_load", {"name": "deploy"}).text
    assert f"\nBase directory: file://{machine.repo}/{url}/.agents/skills/deploy/\n" in text


@pytest.mark.req("C-86", "C-20", "C-115")
@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
def test_the_data_of_a_load_says_what_was_loaded(machine: Machine, profile: str) -> None:
    path = deploy_in(machine.repo / SKILLS)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    result = machine.shelf(profile).session().call("skill_load", {"name": "deploy"})
    assert result.error is None
    assert result.data == {
        "skill_id": hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:24],
        "name": "deploy",
        "path": str(path),
        "dir": str(path.parent),
        "mtime_ms": 1_700_000_000_000,
        "digest": digest_of(path),
        "ref": result.data["ref"],
        "already_loaded": False,
        "files": ["LICENSE & more", "references/a.md"],
        "files_truncated": False,
    }


@pytest.mark.req("K-09", "K-29", "K-58")
def test_the_text_of_a_referenced_file_comes_only_with_a_read_of_its_own(machine: Machine) -> None:
    deploy_in(machine.repo / SKILLS)
    session = machine.shelf("rip").session()
    assert "reference\n" not in session.system_prompt()
    loaded = session.call("skill_load", {"name": "deploy"})
    assert "references/a.md" in loaded.data["files"]
    assert "reference\n" not in loaded.text
    assert session.call("skill_read", {"uri": "skill://deploy/references/a.md"}).text == "reference\n"


@pytest.mark.req("C-15")
def test_a_relative_path_in_a_skill_means_a_file_of_the_skill_and_not_of_the_working_directory(
    machine: Machine,
) -> None:
    deploy_in(machine.repo / SKILLS)
    (machine.repo / "references").mkdir()
    (machine.repo / "references" / "a.md").write_text("not this one\n")
    shelf = machine.shelf("codelia")
    folder = Path(shelf.session().call("skill_load", {"name": "deploy"}).data["dir"])
    assert (folder / "references/a.md").read_text() == "reference\n"
    assert shelf.read("skill://deploy/references/a.md").content == "reference\n"
