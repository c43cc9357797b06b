"""Several skills of one name, one file found twice, and the order of what is left."""

import logging
import os
from pathlib import Path

import pytest
from support.trees import Machine, write_skill

from skillshelf import AmbiguousSkill, Diagnostic, Shadowed, SkillLoader


def settled(machine: Machine, profile: str | None = None, **options: object) -> dict[str, object]:
    """Return the winners of names, the shadowed skills with their winner, and the diagnostics, by relative path."""
    catalog = machine.catalog(profile, **options)

    def short(path: str) -> str:
        return os.path.dirname(os.path.relpath(path, machine.base))

    return {
        "skills": [short(skill.path) for skill in catalog.skills],
        "shadowed": [(short(loser.path), short(loser.by), loser.same_file) for loser in catalog.shadowed],
        "warnings": [(short(warning.path), warning.rule) for warning in catalog.warnings],
        "errors": [(short(error.path), error.rule) for error in catalog.errors],
    }


# One name, several files --------------------------------------------------------------------------


def test_a_loser_is_shadowed_and_the_warning_names_both(machine: Machine) -> None:
    winner = write_skill(machine.repo / ".agents/skills", "deploy")
    loser = write_skill(machine.home / ".agents/skills", "deploy")

    catalog = machine.catalog()

    assert [skill.path for skill in catalog.skills] == [str(winner)]
    assert catalog.shadowed == (Shadowed("deploy", str(loser), str(winner), same_file=False),)
    assert catalog.warnings == (Diagnostic(str(loser), "name-collision", f"'deploy' is taken by {winner}"),)
    assert catalog.errors == ()


def test_every_loser_is_shadowed_by_the_one_that_won(machine: Machine) -> None:
    for root in ("repo/.agents/skills/b", "repo/.agents/skills/a", "home/.claude/skills"):
        write_skill(machine.base / root, "deploy")

    assert settled(machine) == {
        "skills": ["repo/.agents/skills/a/deploy"],
        "shadowed": [
            ("home/.claude/skills/deploy", "repo/.agents/skills/a/deploy", False),
            ("repo/.agents/skills/b/deploy", "repo/.agents/skills/a/deploy", False),
        ],
        "warnings": [
            ("home/.claude/skills/deploy", "name-collision"),
            ("repo/.agents/skills/b/deploy", "name-collision"),
        ],
        "errors": [],
    }


@pytest.mark.req("M-23")
def test_the_last_of_a_name_by_the_bytes_of_its_path_stays(machine: Machine) -> None:
    for folder in ("é/deploy", "b/deploy", "Z/deploy"):
        write_skill(machine.repo / "skills", "deploy", folder=folder)

    assert settled(machine, "mycodeagent") == {
        "skills": ["repo/skills/é/deploy"],
        "shadowed": [
            ("repo/skills/Z/deploy", "repo/skills/é/deploy", False),
            ("repo/skills/b/deploy", "repo/skills/é/deploy", False),
        ],
        "warnings": [("repo/skills/Z/deploy", "name-collision"), ("repo/skills/b/deploy", "name-collision")],
        "errors": [],
    }


@pytest.mark.req("C-49", "C-50")
def test_where_all_are_kept_each_is_said_to_be_ambiguous(machine: Machine) -> None:
    repo = write_skill(machine.repo / ".agents/skills", "deploy")
    nested = write_skill(machine.repo / ".agents/skills", "deploy", folder="more/deploy")
    user = write_skill(machine.home / ".agents/skills", "deploy")
    write_skill(machine.home / ".agents/skills", "alone")

    shelf = machine.shelf("codelia")
    catalog = shelf.catalog

    message = "3 skills are named 'deploy'; the name alone is ambiguous"
    assert [(skill.name, skill.scope) for skill in catalog.skills] == [
        ("alone", "user"),
        ("deploy", "repo"),
        ("deploy", "repo"),
        ("deploy", "user"),
    ]
    assert catalog.shadowed == ()
    assert set(catalog.warnings) == {Diagnostic(str(path), "name-collision", message) for path in (repo, nested, user)}
    with pytest.raises(AmbiguousSkill) as caught:
        shelf.load("deploy")
    assert caught.value.paths == (str(repo), str(nested), str(user))


@pytest.mark.req("C-49")
@pytest.mark.parametrize("hidden", ["disabled", "untrusted"])
def test_where_all_are_kept_a_hidden_one_is_kept_too(machine: Machine, hidden: str) -> None:
    repo = write_skill(machine.repo / ".agents/skills", "deploy")
    user = write_skill(machine.home / ".agents/skills", "deploy")
    if hidden == "disabled":
        machine.configure(f"skills.disabled = ['{repo}']\n")

    catalog = machine.catalog("codelia", trust="all" if hidden == "disabled" else "ask")

    assert [(skill.path, skill.hidden) for skill in catalog.skills] == [(str(repo), hidden), (str(user), None)]
    assert catalog.shadowed == ()


@pytest.mark.parametrize(
    ("first", "second", "profile", "kept"),
    [
        ("Deploy", "deploy", "standard", 1),
        ("café", "cafe\u0301", "standard", 1),
        ("ﬁle", "file", "standard", 1),
        ("straße", "STRASSE", "standard", 1),
        ("deploy", "deploy-2", "standard", 2),
        ("cafe", "café", "standard", 2),
        ("Deploy", "deploy", "omp", 2),
        ("café", "cafe\u0301", "omp", 2),
        ("deploy", "deploy", "omp", 1),
    ],
)
def test_names_that_a_reader_mistakes_for_each_other_collide(
    machine: Machine, first: str, second: str, profile: str, kept: int
) -> None:
    folder = {"standard": ".agents/skills", "omp": ".claude/skills"}[profile]
    nearer, farther = (
        write_skill(root / folder, "", f"---\nname: {name}\ndescription: D.\n---\n", folder=place)
        for root, name, place in [(machine.repo, first, "one"), (machine.home, second, "two")]
    )

    catalog = machine.catalog(profile)

    assert len(catalog.skills) == kept
    if kept == 1:
        winner, loser = (nearer, farther) if profile == "standard" else (farther, nearer)
        assert [skill.path for skill in catalog.skills] == [str(winner)]
        assert [(entry.path, entry.by) for entry in catalog.shadowed] == [(str(loser), str(winner))]


# One file, several ways ---------------------------------------------------------------------------


@pytest.mark.req("C-48", "O-33")
@pytest.mark.parametrize(
    ("profile", "near", "far"),
    [
        ("standard", "repo/.agents/skills", "home/.agents/skills"),
        ("codelia", "repo/.agents/skills", "home/.agents/skills"),
        ("rip", "repo/.agents/skills", "home/.agents/skills"),
        ("omp", "repo/.omp/skills", "home/.claude/skills"),
    ],
)
@pytest.mark.parametrize("link", ["folder", "file"])
def test_one_file_found_twice_is_one_skill_and_no_warning(
    machine: Machine, profile: str, near: str, far: str, link: str
) -> None:
    target = write_skill(machine.base / far, "deploy")
    found = machine.base / near / "deploy"
    (found if link == "file" else found.parent).mkdir(parents=True)
    (found / "SKILL.md" if link == "file" else found).symlink_to(target if link == "file" else target.parent)

    assert settled(machine, profile) == {
        "skills": [f"{near}/deploy"],
        "shadowed": [(f"{far}/deploy", f"{near}/deploy", True)],
        "warnings": [],
        "errors": [],
    }


def test_one_file_found_twice_in_one_root_is_one_skill(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    (machine.home / ".agents/skills/also").symlink_to("deploy")

    catalog = machine.catalog()

    assert len(catalog.skills) == 1
    assert [entry.same_file for entry in catalog.shadowed] == [True]


@pytest.mark.parametrize("profile", ["strict", "codelia", "rip"])
def test_a_link_of_another_name_does_not_take_the_file_from_its_own_folder(machine: Machine, profile: str) -> None:
    # Name and folder must agree here. Whatever is said of the link, the folder itself is right.
    write_skill(machine.home / ".agents/skills", "deploy")
    (machine.repo / ".agents/skills").mkdir(parents=True)
    (machine.repo / ".agents/skills/alias").symlink_to(machine.home / ".agents/skills/deploy")

    assert machine.names(profile) == ["deploy"]


@pytest.mark.req("O-16", "O-18")
def test_a_file_that_one_provider_refuses_is_still_found_by_another(machine: Machine) -> None:
    write_skill(machine.home / ".claude/skills", "terse", "---\nname: terse\n---\n# Terse\n")
    (machine.repo / ".omp/skills").mkdir(parents=True)
    (machine.repo / ".omp/skills/terse").symlink_to(machine.home / ".claude/skills/terse")

    catalog = machine.catalog("omp")

    assert [(skill.name, skill.source) for skill in catalog.skills] == [("terse", "claude:user")]
    assert [error.rule for error in catalog.errors] == ["description-missing"]


# Order --------------------------------------------------------------------------------------------


def test_skills_are_in_the_order_of_code_points_of_their_names(machine: Machine) -> None:
    for name in ("zeta", "Zulu", "alpha", "éclair", "a10", "a2", "Ω"):
        write_skill(machine.repo / ".agents/skills", name)
    assert machine.names() == ["Zulu", "a10", "a2", "alpha", "zeta", "éclair", "Ω"]


def test_skills_of_one_name_are_in_the_order_of_their_roots_and_then_paths(machine: Machine) -> None:
    for place in ("home/.agents/skills", "repo/.claude/skills/b", "repo/.claude/skills/a", "repo/.agents/skills"):
        write_skill(machine.base / place, "deploy")
    config = {"profiles": {"all": {"collision": "keep-all"}}}
    assert settled(machine, "all", config=config)["skills"] == [
        "repo/.agents/skills/deploy",
        "repo/.claude/skills/a/deploy",
        "repo/.claude/skills/b/deploy",
        "home/.agents/skills/deploy",
    ]


def test_codelia_puts_the_repository_before_the_user_and_then_goes_by_path(machine: Machine) -> None:
    for place in ("home/.agents/skills", "repo/b/.agents/skills", "repo/.agents/skills/z", "repo/.agents/skills/a"):
        write_skill(machine.base / place, "deploy")
    assert settled(machine, "codelia", cwd=machine.repo / "b")["skills"] == [
        "repo/.agents/skills/a/deploy",
        "repo/.agents/skills/z/deploy",
        "repo/b/.agents/skills/deploy",
        "home/.agents/skills/deploy",
    ]


@pytest.mark.req("K-57")
@pytest.mark.parametrize("profile", ["standard", "codelia", "swiftagent", "mycodeagent", "rip", "omp"])
def test_the_order_in_which_a_disk_was_filled_does_not_matter(tmp_path: Path, profile: str) -> None:
    places = [
        f"{root}/{group}/{name}"
        for root in (
            "repo/.agents/skills",
            "home/.agents/skills",
            "repo/skills",
            "repo/.agent/skills",
            "repo/.omp/skills",
        )
        for group in (".", "b", "a")
        for name in ("deploy", "release", "test-it")
    ]
    seen = []
    for attempt, order in enumerate((places, places[::-1], sorted(places, key=lambda place: place[::-1]))):
        base = tmp_path / str(attempt)
        base.mkdir()
        machine = Machine(base)
        for place in order:
            write_skill(base, place.rpartition("/")[2], folder=place)
        seen.append(settled(machine, profile))

    assert seen[0]["skills"]
    assert seen == [seen[0]] * 3


@pytest.mark.req("K-57")
def test_of_many_skills_of_one_name_the_first_by_bytes_wins_whatever_the_order_of_the_disk(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    # The first is neither made first nor last: no disk lists it first by chance.
    for number in [*range(7, 24), 3, *range(24, 40), *range(4, 7)]:
        write_skill(root, "deploy", folder=f"group-{number:02}/deploy")

    (skill,) = machine.catalog().skills

    assert skill.path == str(root / "group-03/deploy/SKILL.md")


def test_two_looks_at_one_disk_are_equal(machine: Machine) -> None:
    for root in (machine.repo, machine.home):
        write_skill(root / ".agents/skills", "deploy")
    shelf = machine.shelf()
    assert shelf.scan() == shelf.scan() == machine.catalog()
    assert shelf.refresh() is False
    write_skill(machine.repo / ".agents/skills", "release")
    assert shelf.refresh() is True
    assert [skill.name for skill in shelf.catalog.skills] == ["deploy", "release"]


# A project's loader -------------------------------------------------------------------------------


@pytest.mark.req("M-23", "M-24")
def test_a_projects_loader_keeps_the_last_of_a_name_and_logs_the_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = write_skill(tmp_path / "skills", "review", folder="a/review")
    last = write_skill(tmp_path / "skills", "review", folder="b/review")

    with caplog.at_level(logging.WARNING, logger="skillshelf"):
        (skill,) = SkillLoader(tmp_path).scan()

    assert skill.path == str(last)
    (record,) = caplog.records
    assert (record.levelname, record.args) == (
        "WARNING",
        (str(first), f"'review' is taken by {last}", "name-collision"),
    )


# A link to a folder of the same root --------------------------------------------------------------


@pytest.mark.req("C-47", "C-48")
@pytest.mark.parametrize("alias", ["alias", "zz-alias"], ids=["found first", "found later"])
@pytest.mark.parametrize("use_cache", [True, False])
def test_a_link_with_another_name_is_the_same_file_whichever_is_found_first(
    machine: Machine, alias: str, use_cache: bool
) -> None:
    orig = write_skill(machine.repo / ".agents/skills", "orig")
    (machine.repo / ".agents/skills" / alias).symlink_to("orig")

    for _ in range(2):
        catalog = machine.catalog("codelia", use_cache=use_cache)
        assert [skill.path for skill in catalog.skills] == [str(orig)]
        assert catalog.errors == ()
        loser = str(machine.repo / ".agents/skills" / alias / "SKILL.md")
        assert catalog.shadowed == (Shadowed("orig", loser, str(orig), same_file=True),)
