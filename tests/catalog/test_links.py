"""Links: whose are followed, how far, and how often."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf import Catalog
from skillshelf.core.values import skill_id


def content_of(machine: Machine, catalog: Catalog) -> dict[str, list[Any]]:
    """The content of a catalog, with paths relative to the base of the machine."""

    def at(path: str) -> str:
        return os.path.relpath(path, machine.base)

    return {
        "skills": [at(skill.path) for skill in catalog.skills],
        "errors": [(at(error.path), error.rule) for error in catalog.errors],
        "warnings": [(at(warning.path), warning.rule) for warning in catalog.warnings],
        "shadowed": [(at(loser.path), at(loser.by), loser.same_file) for loser in catalog.shadowed],
    }


def expected(skills: list[str], **rest: list[Any]) -> dict[str, list[Any]]:
    """The expected content of a catalog; members that are not given are empty."""
    return {"skills": skills, "errors": [], "warnings": [], "shadowed": [], **rest}


# Where links lead ---------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_link_in_a_home_root_is_followed_wherever_it_leads(machine: Machine, what: str) -> None:
    real = write_skill(machine.base / "dotfiles", "tool")
    link = machine.home / ".agents" / "skills" / "tool" / "SKILL.md"
    if what == "folder":
        link.parent.parent.mkdir(parents=True)
        link.parent.symlink_to(real.parent)
    else:
        link.parent.mkdir(parents=True)
        link.symlink_to(real)

    catalog = machine.catalog()

    assert content_of(machine, catalog) == expected(["home/.agents/skills/tool/SKILL.md"])
    # Its path is as found, its identity the real file's.
    assert catalog.skills[0].id == skill_id(str(real))


ROOTS = {"project": "repo/.agents/skills", "env": "named", "custom": "custom"}
"""The roots in which a link must not leave what the user named."""

ALLOWED = {
    "inside the repository": "repo/tools",
    "in the same root": "{root}/group",
    "in a root of the user": "home/.claude/skills",
    "in another root of the project": "repo/.claude/skills",
}


def machine_with_roots(machine: Machine, root: str) -> Path:
    """Configure the folders `named` and `custom` as roots; create and return the one of that kind."""
    machine.env["AGENT_SKILLS_PATH"] = str(machine.base / "named")
    machine.configure(f'[skills]\ncustom_directories = ["{machine.base / "custom"}"]\n')
    for folder in ROOTS.values():
        (machine.base / folder).mkdir(parents=True, exist_ok=True)
    return machine.base / ROOTS[root]


@pytest.mark.parametrize("what", ["folder", "file"])
@pytest.mark.parametrize("where", ALLOWED)
@pytest.mark.parametrize("root", ROOTS)
def test_a_link_in_another_root_is_followed_inside_the_repository_and_the_roots(
    machine: Machine, root: str, where: str, what: str
) -> None:
    folder = machine_with_roots(machine, root)
    real = write_skill(machine.base / ALLOWED[where].format(root=ROOTS[root]), "tool")
    link = folder / "linked"
    if what == "folder":
        link.symlink_to(real.parent)
    else:
        link.mkdir()
        (link / "SKILL.md").symlink_to(os.path.relpath(real, link))

    catalog = machine.catalog()

    assert [skill.id for skill in catalog.skills] == [skill_id(str(real))]
    assert catalog.errors == ()
    ways = {skill.path for skill in catalog.skills} | {loser.path for loser in catalog.shadowed}
    assert f"{link}/SKILL.md" in ways


@pytest.mark.parametrize("what", ["folder", "file", "folder of skills"])
@pytest.mark.parametrize("root", ROOTS)
def test_a_link_out_of_another_root_is_an_error_that_says_where_it_leads(
    machine: Machine, root: str, what: str
) -> None:
    folder = machine_with_roots(machine, root)
    real = write_skill(machine.base / "outside", "tool")
    write_skill(folder, "good")
    if what == "file":
        place = write_skill(folder, "tool")
        place.unlink()
        place.symlink_to(real)
    else:
        place = folder / "tool"
        place.symlink_to(real.parent if what == "folder" else real.parent.parent)

    catalog = machine.catalog()

    assert content_of(machine, catalog) == expected(
        [f"{ROOTS[root]}/good/SKILL.md"], errors=[(os.path.relpath(place, machine.base), "link-outside")]
    )
    assert str(place.readlink()) in catalog.errors[0].message


def last_path(message: str) -> str:
    """The last absolute path in a message."""
    words = [word.strip("`'\".,;:()") for word in message.split()]
    return [word for word in words if word.startswith("/")][-1]


@pytest.mark.parametrize("what", ["folder", "file"])
def test_whoever_does_what_a_refused_link_advises_has_the_skill_and_no_error(machine: Machine, what: str) -> None:
    real = write_skill(machine.base / "outside", "tool")
    place = write_skill(machine.repo / ".agents" / "skills", "tool")
    place.unlink()
    if what == "folder":
        place.parent.rmdir()
        place.parent.symlink_to(real.parent)
    else:
        place.symlink_to(real)
    message = machine.catalog().errors[0].message
    assert "AGENT_SKILLS_PATH" in message
    assert "skills.custom_directories" in message

    machine.env["AGENT_SKILLS_PATH"] = last_path(message)
    catalog = machine.catalog()

    assert [skill.name for skill in catalog.skills] == ["tool"]
    assert catalog.errors == ()


def test_advice_about_a_link_names_only_what_the_profile_reads(machine: Machine) -> None:
    """Codelia reads neither AGENT_SKILLS_PATH nor custom directories."""
    (machine.repo / ".agents" / "skills").mkdir(parents=True)
    (machine.repo / ".agents" / "skills" / "tool").symlink_to(write_skill(machine.base / "outside", "tool").parent)

    (error,) = machine.catalog("codelia").errors

    assert error.rule == "link-outside"
    assert "AGENT_SKILLS_PATH" not in error.message
    assert "custom_directories" not in error.message


def test_a_folder_whose_name_begins_like_the_repositorys_is_outside(machine: Machine) -> None:
    real = write_skill(machine.base / "repo-evil", "tool")
    (machine.repo / ".agents" / "skills").mkdir(parents=True)
    (machine.repo / ".agents" / "skills" / "tool").symlink_to(real.parent)

    assert content_of(machine, machine.catalog()) == expected([], errors=[("repo/.agents/skills/tool", "link-outside")])


def test_a_link_to_a_link_counts_by_where_the_last_one_leads(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    root.mkdir(parents=True)
    inside = write_skill(machine.repo / "tools", "inside").parent
    outside = write_skill(machine.base / "outside", "outside").parent
    (machine.repo / "to-inside").symlink_to(inside)
    (machine.repo / "to-outside").symlink_to(outside)
    (machine.base / "back-in").symlink_to(inside)
    (root / "one").symlink_to(machine.repo / "to-inside")
    (root / "two").symlink_to("../../to-outside")
    (root / "three").symlink_to(machine.base / "back-in")

    assert content_of(machine, machine.catalog()) == expected(
        ["repo/.agents/skills/one/SKILL.md"],
        errors=[("repo/.agents/skills/two", "link-outside")],
        warnings=[("repo/.agents/skills/one/SKILL.md", "name-directory")],
        shadowed=[("repo/.agents/skills/three/SKILL.md", "repo/.agents/skills/one/SKILL.md", True)],
    )


def test_a_folder_outside_is_refused_even_if_its_file_leads_back_in(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    good = write_skill(root, "good")
    (machine.base / "outside").mkdir()
    (machine.base / "outside" / "SKILL.md").symlink_to(good)
    (root / "out-and-in").symlink_to(machine.base / "outside")

    assert content_of(machine, machine.catalog()) == expected(
        ["repo/.agents/skills/good/SKILL.md"], errors=[("repo/.agents/skills/out-and-in", "link-outside")]
    )


def test_a_file_outside_is_refused_even_below_a_link_that_is_allowed(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    root.mkdir(parents=True)
    (machine.repo / "tools" / "x").mkdir(parents=True)
    (machine.repo / "tools" / "x" / "SKILL.md").symlink_to(write_skill(machine.base / "outside", "secret"))
    (root / "x").symlink_to("../../tools/x")

    assert content_of(machine, machine.catalog()) == expected(
        [], errors=[("repo/.agents/skills/x/SKILL.md", "link-outside")]
    )


def test_a_profile_may_follow_no_links_at_all(machine: Machine) -> None:
    machine.configure('[profiles.lab]\nother_links = "never"\nuser_links = "never"\n')
    for folder in (machine.home, machine.repo):
        real = write_skill(folder / ".agents" / "skills", f"real-{folder.name}")
        (real.parent.parent / "linked").symlink_to(real.parent)

    assert content_of(machine, machine.catalog("lab")) == expected(
        ["home/.agents/skills/real-home/SKILL.md", "repo/.agents/skills/real-repo/SKILL.md"],
        errors=[("home/.agents/skills/linked", "link-skipped"), ("repo/.agents/skills/linked", "link-skipped")],
    )


@pytest.mark.parametrize("kind", ["file", "pipe", "device"])
def test_a_link_to_something_other_than_a_folder_is_skipped_and_does_not_hang(machine: Machine, kind: str) -> None:
    root = machine.home / ".agents" / "skills"
    write_skill(root, "good")
    os.mkfifo(machine.base / "pipe")
    (machine.base / "file").write_text("---\n")
    target = Path("/dev/zero") if kind == "device" else machine.base / kind
    (root / "entry").symlink_to(target)
    (root / "skill").mkdir()
    (root / "skill" / "SKILL.md").symlink_to(target)

    catalog = machine.catalog()

    rule = "frontmatter-unclosed" if kind == "file" else "not-a-file"
    assert content_of(machine, catalog) == expected(
        ["home/.agents/skills/good/SKILL.md"], errors=[("home/.agents/skills/skill/SKILL.md", rule)]
    )


# Once ---------------------------------------------------------------------------------------------


@pytest.mark.req("C-48")
def test_one_file_reached_by_several_ways_is_one_skill(machine: Machine) -> None:
    root = machine.home / ".agents" / "skills"
    real = write_skill(machine.base / "dotfiles", "tool")
    root.mkdir(parents=True)
    (root / "first").symlink_to(real.parent)
    (root / "second").symlink_to(real.parent)
    (root / "third").mkdir()
    (root / "third" / "SKILL.md").symlink_to(real)

    first = "home/.agents/skills/first/SKILL.md"
    assert content_of(machine, machine.catalog()) == expected(
        [first],
        warnings=[(first, "name-directory")],
        shadowed=[(f"home/.agents/skills/{way}/SKILL.md", first, True) for way in ("second", "third")],
    )


@pytest.mark.req("C-48")
@pytest.mark.parametrize("profile", ["strict", "codelia"])
def test_a_way_that_is_refused_does_not_take_the_file_from_one_that_is_accepted(machine: Machine, profile: str) -> None:
    """The name must equal the folder's name here, and each path has another folder."""
    root = machine.home / ".agents" / "skills"
    write_skill(root, "tool")
    (root / "another").symlink_to("tool")

    assert content_of(machine, machine.catalog(profile)) == expected(
        ["home/.agents/skills/tool/SKILL.md"],
        shadowed=[("home/.agents/skills/another/SKILL.md", "home/.agents/skills/tool/SKILL.md", True)],
    )


@pytest.mark.req("C-48")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_the_other_ways_to_a_file_are_shadowed_without_a_warning(machine: Machine, profile: str) -> None:
    root = machine.home / ".agents" / "skills"
    write_skill(root, "tool")
    (machine.repo / ".agents" / "skills").mkdir(parents=True)
    (machine.repo / ".agents" / "skills" / "tool").symlink_to(root / "tool")

    assert content_of(machine, machine.catalog(profile)) == expected(
        ["repo/.agents/skills/tool/SKILL.md"],
        shadowed=[("home/.agents/skills/tool/SKILL.md", "repo/.agents/skills/tool/SKILL.md", True)],
    )


@pytest.mark.req("C-48")
def test_a_file_that_two_roots_hold_under_one_path_does_not_shadow_itself(machine: Machine) -> None:
    write_skill(machine.repo / ".agents" / "skills", "tool")
    machine.env["AGENT_SKILLS_PATH"] = str(machine.repo / ".agents")

    assert content_of(machine, machine.catalog()) == expected(["repo/.agents/skills/tool/SKILL.md"])


def test_a_refused_file_is_accounted_for_by_every_way_to_it(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "broken", "no frontmatter")
    (root / "linked").mkdir()
    (root / "linked" / "SKILL.md").symlink_to("../broken/SKILL.md")

    catalog = machine.catalog()

    paths = {error.path for error in catalog.errors} | {loser.path for loser in catalog.shadowed}
    assert paths == {str(root / "broken" / "SKILL.md"), str(root / "linked" / "SKILL.md")}


def test_a_folder_of_skills_behind_two_links_is_walked_once(machine: Machine) -> None:
    root = machine.home / ".agents" / "skills"
    root.mkdir(parents=True)
    write_skill(machine.base / "dotfiles", "tool")
    (root / "a").symlink_to(machine.base / "dotfiles")
    (root / "b").symlink_to(machine.base / "dotfiles")

    assert content_of(machine, machine.catalog()) == expected(
        ["home/.agents/skills/a/tool/SKILL.md"], warnings=[("home/.agents/skills/b", "link-loop")]
    )


# Loops and dead ends ------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["home", "repo"])
def test_loops_and_dead_ends_are_reported_and_cost_no_neighbour(machine: Machine, root: str) -> None:
    folder = machine.base / root / ".agents" / "skills"
    write_skill(folder, "good")
    write_skill(folder / "group", "better")
    links = {
        "self": "self",
        "pair-a": "pair-b",
        "pair-b": "pair-a",
        "up": "..",
        "here": ".",
        "top": str(machine.base / root),
        "dangling": "nothing",
        "through-a-file": "good/SKILL.md/x",
        "group/back": "../group",
        "group/again": "../../skills",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)

    catalog = machine.catalog()

    at = f"{root}/.agents/skills"
    assert content_of(machine, catalog) == expected(
        [f"{at}/group/better/SKILL.md", f"{at}/good/SKILL.md"],
        warnings=sorted(
            (f"{at}/{name}", "link-broken" if name in ("dangling", "through-a-file") else "link-loop") for name in links
        ),
    )


@pytest.mark.parametrize("target", ["nothing", "SKILL.md", "../pair/SKILL.md"], ids=["dangling", "self", "pair"])
def test_a_skill_file_that_leads_nowhere_is_an_error(machine: Machine, target: str) -> None:
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "good")
    (root / "lost").mkdir()
    (root / "lost" / "SKILL.md").symlink_to(target)
    if "pair" in target:
        (root / "pair").mkdir()
        (root / "pair" / "SKILL.md").symlink_to("../lost/SKILL.md")

    catalog = machine.catalog()

    lost = [root / "lost" / "SKILL.md", *([root / "pair" / "SKILL.md"] if "pair" in target else [])]
    assert [skill.name for skill in catalog.skills] == ["good"]
    assert [error.path for error in catalog.errors] == [str(path) for path in lost]
    assert all(error.message for error in catalog.errors)


def test_folders_that_link_to_each_other_are_walked_once_each(machine: Machine) -> None:
    root = machine.home / ".agents" / "skills"
    for name in "abcd":
        write_skill(root / name, f"skill-{name}")
        for other in "abcd".replace(name, ""):
            (root / name / f"to-{other}").symlink_to(f"../{other}")

    catalog = machine.catalog()

    assert sorted(skill.name for skill in catalog.skills) == ["skill-a", "skill-b", "skill-c", "skill-d"]
    assert catalog.errors == ()
    # Four folders, and each once more by a link.
    assert len(catalog.shadowed) <= 4


@pytest.mark.parametrize("hops", [30, 60])
def test_a_chain_of_links_ends_in_a_skill_or_a_message(machine: Machine, hops: int) -> None:
    root = machine.repo / ".agents" / "skills"
    real = write_skill(root, "good")
    for number in range(hops):
        (root / f"hop{number:04}").symlink_to(f"hop{number + 1:04}" if number < hops - 1 else real.parent.name)

    catalog = machine.catalog()

    assert [skill.path for skill in catalog.skills] == [str(real)]
    problems = {Path(problem.path) for problem in (*catalog.errors, *catalog.warnings)}
    told_of = problems | {Path(loser.path) for loser in catalog.shadowed} | {real}
    folders = {path.parent if path.name == "SKILL.md" else path for path in told_of}
    assert len(folders) == hops + 1


# Roots that are links -----------------------------------------------------------------------------


@pytest.mark.parametrize("link", [".agents", ".agents/skills"])
@pytest.mark.parametrize(
    ("target", "followed"),
    [("repo/shared", True), ("home/.agents", True), ("elsewhere", False)],
    ids=["inside the repository", "a root of the user", "outside"],
)
def test_a_project_root_may_be_a_link_to_the_repository_or_another_root(
    machine: Machine, link: str, target: str, followed: bool
) -> None:
    write_skill(machine.base / target / "skills", "tool")
    (machine.repo / link).parent.mkdir(exist_ok=True)
    (machine.repo / link).symlink_to(machine.base / target / link.removeprefix(".agents").lstrip("/"))

    catalog = machine.catalog()

    root = f"{machine.repo}/.agents/skills"
    if followed:
        assert [skill.path for skill in catalog.skills] == [f"{root}/tool/SKILL.md"]
        assert catalog.errors == ()
    else:
        assert catalog.skills == ()
        assert [(error.path, error.rule) for error in catalog.errors] == [(root, "root-link")]
        assert "AGENT_SKILLS_PATH" in catalog.errors[0].message


def test_two_project_roots_that_lead_out_do_not_vouch_for_each_other(machine: Machine) -> None:
    write_skill(machine.base / "elsewhere", "secret")
    for name in (".agents", ".claude"):
        (machine.repo / name).mkdir()
        (machine.repo / name / "skills").symlink_to(machine.base / "elsewhere")

    assert content_of(machine, machine.catalog()) == expected(
        [], errors=[("repo/.agents/skills", "root-link"), ("repo/.claude/skills", "root-link")]
    )


@pytest.mark.parametrize("root", ["env", "custom", "user"])
def test_a_root_that_the_user_named_may_be_a_link_to_anywhere(machine: Machine, root: str) -> None:
    write_skill(machine.base / "elsewhere", "tool")
    folder = machine.home / ".agents" / "skills" if root == "user" else machine.base / ROOTS[root]
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to(machine.base / "elsewhere")
    machine.env["AGENT_SKILLS_PATH"] = str(machine.base / "named") if root == "env" else ""
    if root == "custom":
        machine.configure(f'[skills]\ncustom_directories = ["{folder}"]\n')

    assert content_of(machine, machine.catalog()) == expected(
        [f"{os.path.relpath(folder, machine.base)}/tool/SKILL.md"]
    )


@pytest.mark.parametrize("target", ["nothing", "skills"], ids=["dangling", "self"])
def test_a_root_that_is_a_broken_link_is_reported(machine: Machine, target: str) -> None:
    (machine.repo / ".agents").mkdir()
    (machine.repo / ".agents" / "skills").symlink_to(target)

    catalog = machine.catalog()

    assert catalog.skills == ()
    assert [entry.path for entry in (*catalog.errors, *catalog.warnings)] == [str(machine.repo / ".agents" / "skills")]
