"""The walk below a root: its depth, skipped folders and limits, and the bytes it reads."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.trees import SOURCE, Machine, write_skill

import skillshelf
from skillshelf import SkillDiscovery, SkillLoader, SkillMeta


def left_out(catalog: skillshelf.Catalog, root: Path) -> list[tuple[str, str]]:
    """Path below the root, and reason, of everything in `filtered`."""
    return [(os.path.relpath(entry.path, root), entry.reason) for entry in catalog.filtered]


def problems(diagnostics: Sequence[skillshelf.Diagnostic], root: Path) -> list[tuple[str, str]]:
    """Path below the root, and rule, of each problem."""
    return [(os.path.relpath(diagnostic.path, root), diagnostic.rule) for diagnostic in diagnostics]


# How deep -----------------------------------------------------------------------------------------


def test_the_sixth_level_is_in_and_the_seventh_is_too_deep(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "sixth", folder="1/2/3/4/5/sixth")
    write_skill(root, "seventh", folder="1/2/3/4/5/6/seventh")

    catalog = machine.catalog()

    assert [skill.name for skill in catalog.skills] == ["sixth"]
    assert left_out(catalog, root) == [("1/2/3/4/5/6/seventh/SKILL.md", "too-deep")]
    assert (catalog.errors, catalog.warnings, catalog.truncated) == ((), (), False)


@pytest.mark.req("K-19", "M-04")
@pytest.mark.parametrize(
    ("profile", "root"), [("codelia", ".agents/skills"), ("rip", ".agents/skills"), ("mycodeagent", "skills")]
)
def test_a_profile_without_a_depth_finds_a_skill_on_any_level(machine: Machine, profile: str, root: str) -> None:
    write_skill(machine.repo / root, "deep", folder="/".join([*"123456789", "deep"]))
    assert machine.names(profile) == ["deep"]


@pytest.mark.req("O-07", "O-08")
@pytest.mark.parametrize(
    ("profile", "root"),
    [
        ("swiftagent", ".agent/skills"),
        ("omp", ".omp/skills"),
        ("omp", ".claude/skills"),
        ("omp", ".agents/skills"),
        ("omp", ".codex/skills"),
    ],
)
def test_a_profile_of_one_level_says_what_lies_deeper(machine: Machine, profile: str, root: str) -> None:
    write_skill(machine.repo / root, "flat")
    write_skill(machine.repo / root, "nested", folder="group/nested")

    catalog = machine.catalog(profile)

    assert [skill.name for skill in catalog.skills] == ["flat"]
    assert left_out(catalog, machine.repo / root) == [("group/nested/SKILL.md", "too-deep")]


@pytest.mark.req("O-09", "O-10", "O-69")
def test_a_custom_directory_is_one_level_and_can_point_at_the_nested_parent(machine: Machine) -> None:
    custom = machine.base / "custom"
    write_skill(custom, "flat")
    write_skill(custom, "nested", folder="group/nested")

    above = machine.catalog("omp", config={"skills": {"customDirectories": [str(custom)]}})
    parent = machine.catalog("omp", config={"skills": {"customDirectories": [str(custom / "group")]}})

    assert [skill.name for skill in above.skills] == ["flat"]
    assert left_out(above, custom) == [("group/nested/SKILL.md", "too-deep")]
    assert [skill.name for skill in parent.skills] == ["nested"]


# Which folders ------------------------------------------------------------------------------------


def test_git_and_node_modules_are_not_entered_and_only_a_full_account_lists_them(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "good")
    write_skill(root, "packaged", folder="group/node_modules/packaged")
    write_skill(root, "versioned", folder=".git/versioned")
    shelf = machine.shelf()

    assert [skill.name for skill in shelf.catalog.skills] == ["good"]
    assert shelf.catalog.filtered == ()
    account = shelf.scan(account=True)
    assert account.skills == shelf.catalog.skills
    assert left_out(account, root) == [
        ("group/node_modules/packaged/SKILL.md", "ignored"),
        (".git/versioned/SKILL.md", "ignored"),
    ]


@pytest.mark.parametrize(
    ("profile", "root", "listed"),
    [
        ("standard", ".agents/skills", True),
        ("codelia", ".agents/skills", True),
        ("mycodeagent", "skills", True),
        ("swiftagent", ".agent/skills", False),
        ("omp", ".omp/skills", False),
    ],
)
def test_hidden_folders_are_a_matter_of_the_profile(machine: Machine, profile: str, root: str, listed: bool) -> None:
    write_skill(
        machine.repo / root, "tucked-away", "---\nname: tucked-away\ndescription: D.\n---\n", folder=".tucked-away"
    )
    catalog = machine.shelf(profile).scan(account=True)
    paths = [skill.path for skill in catalog.skills] + [error.path for error in catalog.errors]
    assert paths == ([f"{machine.repo}/{root}/.tucked-away/SKILL.md"] if listed else [])
    assert [entry.reason for entry in catalog.filtered] == ([] if listed else ["ignored"])


@pytest.mark.parametrize("profile", ["codelia", "mycodeagent"])
def test_where_nothing_is_skipped_node_modules_holds_skills_too(machine: Machine, profile: str) -> None:
    root = {"codelia": ".agents/skills", "mycodeagent": "skills"}[profile]
    write_skill(machine.repo / root, "packaged", folder="node_modules/packaged")
    assert machine.names(profile) == ["packaged"]


def test_a_skill_inside_a_skill_is_none_and_only_a_full_account_lists_it(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "outer")
    write_skill(root, "inner", folder="outer/assets/inner")
    shelf = machine.shelf()

    assert [skill.name for skill in shelf.catalog.skills] == ["outer"]
    assert shelf.catalog.filtered == ()
    account = shelf.scan(account=True)
    assert account.skills == shelf.catalog.skills
    assert left_out(account, root) == [("outer/assets/inner/SKILL.md", "inside-skill")]
    assert [entry["reason"] for entry in machine.run_json("list")["filtered"]] == []
    assert [entry["reason"] for entry in machine.run_json("list", "--all")["filtered"]] == ["inside-skill"]


@pytest.mark.parametrize(
    ("profile", "root"), [("codelia", ".agents/skills"), ("rip", ".agents/skills"), ("mycodeagent", "skills")]
)
def test_a_pattern_of_two_stars_also_matches_inside_a_skill(machine: Machine, profile: str, root: str) -> None:
    write_skill(machine.repo / root, "outer")
    write_skill(machine.repo / root, "inner", folder="outer/inner")
    assert machine.names(profile) == ["inner", "outer"]


@pytest.mark.req("M-09", "O-66")
@pytest.mark.parametrize(
    ("profile", "root", "listed"),
    [
        ("standard", ".agents/skills", False),
        ("strict", ".agents/skills", False),
        ("swiftagent", ".agent/skills", False),
        ("omp", ".omp/skills", False),
        ("codelia", ".agents/skills", True),
        ("mycodeagent", "skills", True),
        ("rip", ".agents/skills", True),
    ],
)
def test_a_skill_has_a_folder_of_its_own_unless_the_pattern_says_otherwise(
    machine: Machine, profile: str, root: str, listed: bool
) -> None:
    write_skill(machine.repo / root, "skills", folder=".")
    write_skill(machine.repo / root, "own-folder")

    catalog = machine.catalog(profile)

    assert [skill.name for skill in catalog.skills] == ["own-folder", *(["skills"] if listed else [])]
    assert problems(catalog.errors, machine.repo / root) == ([] if listed else [("SKILL.md", "root-file")])


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILLS.md", "skills.md"])
def test_a_file_that_is_nearly_called_right_is_a_warning(machine: Machine, name: str) -> None:
    folder = machine.repo / ".agents/skills/deploy"
    folder.mkdir(parents=True)
    (folder / name).write_text("---\nname: deploy\ndescription: D.\n---\n")
    if (folder / "SKILL.md").exists():
        pytest.skip("this disk does not tell upper and lower case apart")

    catalog = machine.catalog()

    assert catalog.skills == ()
    assert problems(catalog.warnings, folder) == [(name, "file-name")]
    assert "SKILL.md" in catalog.warnings[0].message


@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_a_file_beside_a_skill_that_differs_only_in_case_is_a_warning(machine: Machine, profile: str) -> None:
    path = write_skill(machine.repo / ".agents/skills", "deploy")
    (path.parent / "Skill.md").write_text("---\nname: deploy\ndescription: Evil.\n---\n")
    (path.parent / "skills.md").write_text("Another file.\n")
    if (path.parent / "skill.md").exists():
        pytest.skip("this disk does not tell upper and lower case apart")

    listed = machine.run_json("list", "--all", "--profile", profile)
    checks = [machine.run("check", *words, "--json") for words in ((), (str(path),), (str(path.parent.parent),))]

    assert [skill["name"] for skill in listed["skills"]] == ["deploy"]
    assert [(w["path"], w["rule"]) for w in listed["warnings"]] == [(str(path.with_name("Skill.md")), "file-case")]
    for done in checks:
        assert ("file-case", "warning") in [(f["rule"], f["severity"]) for f in json.loads(done.stdout)["findings"]]
        assert done.returncode == 1


# How much -----------------------------------------------------------------------------------------

SMALL = {"profiles": {"small": {"extends": "standard", "max_directories": 50}}}


def test_a_walk_ends_at_its_limit_and_says_how_much_it_left(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    for number in range(60):
        (root / f"empty-{number:02}").mkdir(parents=True)
    write_skill(root, "after")
    write_skill(root, "late", folder="zz/late")
    write_skill(machine.home / ".agents/skills", "mine")

    catalog = machine.catalog("small", config=SMALL)

    assert [skill.name for skill in catalog.skills] == ["after", "mine"]
    assert catalog.errors == (
        skillshelf.Diagnostic(
            str(root),
            "walk-limit",
            "stopped after 50 folders without a skill; 11 entries were not visited; "
            "to visit more, raise `max_directories` in your own profile",
        ),
    )
    assert catalog.truncated


def test_exactly_as_many_folders_as_the_limit_are_walked_whole(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    for number in range(50):
        (root / f"empty-{number:02}").mkdir(parents=True)
    catalog = machine.catalog("small", config=SMALL)
    assert (catalog.errors, catalog.truncated) == ((), False)


def test_skills_and_plain_files_do_not_count_towards_the_limit(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    for number in range(60):
        write_skill(root, f"skill-{number:02}")
        (root / f"file-{number:02}").touch()

    catalog = machine.catalog("small", config=SMALL)

    assert len(catalog.skills) == 60
    assert (catalog.errors, catalog.truncated) == ((), False)


def test_looking_where_no_skill_counts_does_not_end_the_search_where_one_does(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    for number in range(60):
        (root / "node_modules" / f"package-{number:02}").mkdir(parents=True)
    write_skill(root, "zz")

    catalog = machine.shelf("small", config=SMALL).scan(account=True)

    assert [skill.name for skill in catalog.skills] == ["zz"]
    assert problems(catalog.errors, root) == [(".", "walk-limit")]


# Where it leads -----------------------------------------------------------------------------------


def test_a_root_that_is_not_a_folder_is_an_error(machine: Machine) -> None:
    (machine.repo / ".agents").mkdir()
    (machine.repo / ".agents/skills").write_text("not a folder")
    assert problems(machine.catalog().errors, machine.repo) == [(".agents/skills", "root-not-a-directory")]


@pytest.mark.req("M-50")
def test_a_projects_skills_lie_below_the_project(machine: Machine) -> None:
    write_skill(machine.base / "elsewhere", "outside")
    write_skill(machine.repo / "skills", "inside")
    (machine.repo / "skills/outside").symlink_to(machine.base / "elsewhere/outside")

    catalog = machine.catalog("mycodeagent")

    assert [skill.real_path for skill in catalog.skills] == [f"{machine.repo}/skills/inside/SKILL.md"]
    assert problems(catalog.errors, machine.repo) == [("skills/outside", "link-outside")]


# What is read -------------------------------------------------------------------------------------


@pytest.mark.req("C-04", "C-14", "M-02", "K-01")
@pytest.mark.parametrize("profile", ["standard", "codelia", "mycodeagent", "rip"])
def test_a_listing_knows_the_frontmatter_and_nothing_of_the_body(machine: Machine, profile: str) -> None:
    root = machine.repo / ("skills" if profile == "mycodeagent" else ".agents/skills")
    head = "---\nname: deploy\ndescription: Ships it.\n---\n"
    path = write_skill(root, "deploy", head + "BODY-TEXT\n")
    shelf = machine.shelf(profile)

    catalog = shelf.catalog

    assert [(skill.name, skill.description, skill.path) for skill in catalog.skills] == [
        ("deploy", "Ships it.", str(path))
    ]
    assert "BODY-TEXT" not in repr(catalog)
    path.write_text(head + "ANOTHER-TEXT\n")
    assert shelf.load("deploy").body == "ANOTHER-TEXT\n", "a body is read when it is asked for"


WATCHED = """
import os, sys
opened, acts = [], []
def watch(event, args):
    if event == "open":
        opened.append(os.path.basename(str(args[0])))
    elif event.split(".")[0] in ("subprocess", "socket", "urllib", "ctypes") or event in (
        "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn",
        "os.remove", "os.rename", "os.mkdir", "os.chmod", "os.link", "os.symlink", "os.truncate",
    ):
        acts.append(event)
import skillshelf, skillshelf.cli.main
sys.addaudithook(watch)
names = [skill.name for skill in skillshelf.open_shelf(sys.argv[1], home=sys.argv[2], env={}).catalog.skills]
print(names, opened.count("SKILL.md"), sorted({"run.sh", "tool.py", "GUIDE.md", "data.json"} & set(opened)), acts)
"""


@pytest.mark.slow
@pytest.mark.req("K-14", "K-15", "K-24")
def test_discovery_opens_only_skill_files_and_starts_nothing(machine: Machine) -> None:
    folder = write_skill(
        machine.repo / ".agents/skills", "deploy", "---\nname: deploy\ndescription: '!`run.sh`'\n---\n"
    )
    for name in ("scripts/run.sh", "scripts/tool.py", "references/GUIDE.md", "assets/data.json"):
        path = folder.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\ntouch started\n")
        path.chmod(0o755)

    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED, str(machine.repo), str(machine.home)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": SOURCE},
    )

    assert (done.stdout, done.stderr) == ("['deploy'] 1 [] []\n", "")


@pytest.mark.slow
@pytest.mark.req("C-107")
def test_the_types_of_a_catalog_know_nothing_of_how_one_is_found() -> None:
    code = "import sys, skillshelf.core.values; print(*sorted(m for m in sys.modules if m.startswith('skillshelf.')))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, env={"PYTHONPATH": SOURCE}
    )
    assert (done.stdout, done.stderr) == ("skillshelf.core skillshelf.core.records skillshelf.core.values\n", "")
    assert {skillshelf.Catalog.__module__, skillshelf.SkillMetadata.__module__} == {"skillshelf.core.values"}


@pytest.mark.req("O-68")
def test_what_a_skill_needs_lies_beside_its_file(machine: Machine) -> None:
    folder = write_skill(machine.repo / ".omp/skills", "deploy").parent
    (folder / "assets").mkdir()
    (folder / "assets" / "plan.md").write_text("the plan")

    shelf = machine.shelf("omp")

    assert [(skill.name, skill.dir) for skill in shelf.catalog.skills] == [("deploy", str(folder))]
    assert shelf.read("skill://deploy/assets/plan.md").content == "the plan"


@pytest.mark.req("S-04")
@pytest.mark.parametrize(("profile", "root"), [("standard", ".agents/skills"), ("swiftagent", ".agent/skills")])
def test_skills_made_for_other_agents_are_read(machine: Machine, profile: str, root: str) -> None:
    about = "description: Reviews a change.\n"
    fields = {
        "claude-code": "allowed-tools: Read Bash(git diff:*)\nmodel: opus\nuser-invocable: true\nargument-hint: file\n",
        "cursor": "globs: ['*.ts']\nalwaysApply: false\n",
        "vs-code": "license: MIT\ncompatibility: Needs git.\nmetadata:\n  author: someone\n  version: '1.0'\n",
    }
    for name, extra in fields.items():
        write_skill(machine.repo / root, name, f"---\nname: {name}\n{about}{extra}---\n# Review\n")

    catalog = machine.catalog(profile)

    assert [skill.name for skill in catalog.skills] == list(fields)
    assert catalog.errors == ()


# The names of the seeds ---------------------------------------------------------------------------


@pytest.fixture
def stand_in_repository(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return the machine, with its repository as working directory of this process."""
    monkeypatch.chdir(machine.repo)
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("AGENT_SKILLS_PATH", f"~/more::{machine.base}/most")
    return machine


@pytest.mark.req("S-74", "S-75", "S-76", "S-79", "S-82")
def test_the_search_paths_are_the_standard_ones_and_then_those_of_the_environment(stand_in_repository: Machine) -> None:
    home, repo, base = stand_in_repository.home, stand_in_repository.repo, stand_in_repository.base

    assert list(SkillDiscovery.standard_paths) == ["~/.agent/skills", "./.agent/skills"]
    assert SkillDiscovery.environment_variable == "AGENT_SKILLS_PATH"
    assert SkillDiscovery.search_paths() == [
        f"{home}/.agent/skills",
        f"{repo}/.agent/skills",
        f"{home}/more",
        f"{base}/most",
    ]


@pytest.mark.req("S-77", "S-81", "S-134")
def test_discovering_all_gives_every_search_path_without_instructions(stand_in_repository: Machine) -> None:
    for place in ("home/.agent/skills", "repo/.agent/skills", "home/more", "base/most"):
        root = stand_in_repository.base / place.removeprefix("base/")
        write_skill(root, "everywhere")
        write_skill(root, place.split("/")[0] + "-" + place.split("/")[-1])

    skills = SkillDiscovery.discover_all()

    assert [(skill.id, skill.instructions) for skill in skills] == [
        ("base-most", None),
        ("everywhere", None),
        ("home-more", None),
        ("home-skills", None),
        ("repo-skills", None),
    ]
    assert skills[1].directory_path == f"{stand_in_repository.base}/most/everywhere"


@pytest.mark.req("S-78", "S-80")
def test_discovering_one_folder_gives_its_own_skills(tmp_path: Path) -> None:
    write_skill(tmp_path, "deploy")
    write_skill(tmp_path, "nested", folder="group/nested")
    write_skill(tmp_path, "wrong", "---\nname: other\ndescription: D.\n---\n")

    assert [skill.id for skill in SkillDiscovery.discover(tmp_path)] == ["deploy"]
    assert SkillDiscovery.is_skill_directory(tmp_path / "deploy")
    assert not SkillDiscovery.is_skill_directory(tmp_path / "group")
    with pytest.raises(skillshelf.SkillDirectoryNotFound):
        SkillDiscovery.discover(tmp_path / "missing")


@pytest.mark.req("M-14", "M-16", "M-17", "M-18", "M-19", "M-68", "M-69")
def test_a_projects_loader_scans_lists_and_gets_by_name(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    loader = SkillLoader(tmp_path)
    assert loader.list_skills() == []
    path = write_skill(tmp_path / "skills", "review", "---\nname: code-review\ndescription: Reviews.\n---\nLook.\n")
    write_skill(tmp_path / "skills", "broken", "---\nname: broken\n---\n")
    assert loader.list_skills() == [], "a list is what the last scan found"

    expected = SkillMeta("code-review", "Reviews.", str(path), "skills/review", path.stat().st_mtime_ns / 1e9)

    assert loader.scan() == [expected]
    assert loader.list_skills() == [expected]
    assert loader.get_skill("code-review") == expected
    assert loader.get_skill("broken") is None
    assert [type(value) for value in expected] == [str, str, str, str, float]
