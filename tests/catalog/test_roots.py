"""A profile resolves to search roots, in an order, each with scope and source."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

import skillshelf

CHAIN = ["repo/packages/app", "repo/packages", "repo"]
STANDARD_ROOTS = [
    ("env", "env"),
    *[("project", f"{folder}/{place}") for folder in CHAIN for place in (".agents/skills", ".claude/skills")],
    ("custom", "custom"),
    ("user", "home/.agents/skills"),
    ("user", "home/.claude/skills"),
]


def roots_of(machine: Machine, profile: str | None = None, **options: Any) -> list[tuple[str, str]]:
    """Scope and path of every root, the path as seen from the folder that holds home and repository."""
    return [
        (root.scope, os.path.relpath(root.path, machine.base)) for root in machine.catalog(profile, **options).roots
    ]


def problems_of(machine: Machine, problems: Sequence[skillshelf.Diagnostic]) -> list[tuple[str, str]]:
    """Path and rule of each problem."""
    return [(os.path.relpath(problem.path, machine.base), problem.rule) for problem in problems]


# All of a profile ---------------------------------------------------------------------------------


@pytest.mark.req("C-10", "C-21", "C-25", "C-34", "C-35", "C-36", "S-81", "M-72", "O-22", "O-23", "O-24", "O-25")
@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("standard", STANDARD_ROOTS),
        ("strict", STANDARD_ROOTS),
        ("rip", STANDARD_ROOTS),
        (
            "codelia",
            [*[("repo", f"{folder}/.agents/skills") for folder in reversed(CHAIN)], ("user", "home/.agents/skills")],
        ),
        (
            "swiftagent",
            [("user", "home/.agent/skills"), ("project", "repo/packages/app/.agent/skills"), ("env", "env")],
        ),
        ("mycodeagent", [("project", "repo/skills")]),
        (
            "omp",
            [
                ("project", "repo/packages/app/.omp/skills"),
                ("user", "home/.omp/agent/skills"),
                ("user", "home/.claude/skills"),
                ("project", "repo/packages/app/.claude/skills"),
                ("user", "plugin/skills"),
                *[
                    ("project", f"{folder}/{place}")
                    for folder in CHAIN
                    for place in (".agents/skills", ".agent/skills")
                ],
                ("user", "home/.agents/skills"),
                ("user", "home/.agent/skills"),
                ("user", "home/.codex/skills"),
                ("project", "repo/packages/app/.codex/skills"),
                ("custom", "custom"),
            ],
        ),
    ],
)
def test_a_profile_looks_into_its_own_roots_in_its_own_order(
    machine: Machine, profile: str, expected: list[tuple[str, str]]
) -> None:
    cwd = machine.repo / "packages" / "app"
    cwd.mkdir(parents=True)
    install_plugins(machine, {"tool@market": {"installPath": str(machine.base / "plugin")}})
    machine.env = {"AGENT_SKILLS_PATH": str(machine.base / "env")}
    machine.configure(f"skills.custom_directories = ['{machine.base}/custom']\n")

    assert roots_of(machine, profile, cwd=cwd) == expected


# The environment's list ---------------------------------------------------------------------------


@pytest.mark.req("S-76", "S-82")
def test_the_environments_list_is_read_from_left_to_right(machine: Machine) -> None:
    for name in ("home/mine", "repo/tools", "base"):
        write_skill(machine.base / name, name.replace("/", "-"))
    machine.env = {"AGENT_SKILLS_PATH": f"~/mine::tools:{machine.base}/base:~/mine:"}

    assert [root for root in roots_of(machine) if root[0] == "env"] == [
        ("env", "home/mine"),
        ("env", "repo/tools"),
        ("env", "base"),
    ]
    assert [(skill.name, skill.scope, skill.source) for skill in machine.catalog().skills] == [
        ("base", "env", "env"),
        ("home-mine", "env", "env"),
        ("repo-tools", "env", "env"),
    ]


def test_an_empty_environment_list_names_no_folder(machine: Machine) -> None:
    without = roots_of(machine)
    machine.env = {"AGENT_SKILLS_PATH": "::"}
    assert roots_of(machine) == without


def test_a_folder_that_the_user_named_and_that_is_missing_is_a_warning(machine: Machine) -> None:
    machine.env = {"AGENT_SKILLS_PATH": str(machine.base / "env")}
    machine.configure(f"skills.custom_directories = ['{machine.base}/custom']\n")

    catalog = machine.catalog()

    assert problems_of(machine, catalog.warnings) == [("custom", "root-missing"), ("env", "root-missing")]
    assert catalog.errors == ()
    assert {root.exists for root in catalog.roots} == {False}


def test_a_folder_named_twice_counts_where_it_stands_first(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    machine.env = {"AGENT_SKILLS_PATH": ".agents/skills/"}

    catalog = machine.catalog()

    assert roots_of(machine)[:2] == [("env", "repo/.agents/skills"), ("project", "repo/.claude/skills")]
    assert [(skill.name, skill.scope) for skill in catalog.skills] == [("deploy", "env")]
    assert catalog.shadowed == ()


# The chain from here to the repository ------------------------------------------------------------


@pytest.mark.parametrize("marker", [".git/", ".git", ".jj/", ".hg/"])
def test_the_chain_ends_at_the_nearest_marker_of_a_repository(machine: Machine, marker: str) -> None:
    top = machine.repo / "vendor"
    here = top / "sub" / "deeper"
    here.mkdir(parents=True)
    if marker.endswith("/"):
        (top / marker).mkdir()
    else:
        (top / marker).write_text("gitdir: ../.git/modules/vendor\n")

    assert [path for scope, path in roots_of(machine, cwd=here) if scope == "project"] == [
        f"repo/vendor/{folder}{place}"
        for folder in ("sub/deeper/", "sub/", "")
        for place in (".agents/skills", ".claude/skills")
    ]


@pytest.mark.req("C-39")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_above_the_repository_nothing_is_searched(machine: Machine, profile: str) -> None:
    write_skill(machine.base / ".agents/skills", "above")
    write_skill(machine.repo / ".agents/skills", "inside")
    (machine.repo / "docs").mkdir()

    catalog = machine.catalog(profile, cwd=machine.repo / "docs")

    assert [skill.name for skill in catalog.skills] == ["inside"]
    inside = (str(machine.repo), str(machine.home))
    assert [root.path for root in catalog.roots if not root.path.startswith(inside)] == []


@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_without_a_marker_only_the_working_directory_counts(machine: Machine, profile: str) -> None:
    here = machine.base / "plain" / "folder"
    write_skill(machine.base / "plain" / ".agents/skills", "above")
    write_skill(here / ".agents/skills", "here")
    assert machine.names(profile, cwd=here) == ["here"]


@pytest.mark.req("C-35", "C-111")
def test_every_folder_from_the_boundary_to_here_is_searched_to_any_depth(machine: Machine) -> None:
    here = machine.repo / "a" / "b"
    write_skill(machine.repo / ".agents/skills", "top", folder="group/inner/top")
    write_skill(machine.repo / "a" / ".agents/skills", "between")
    write_skill(here / ".agents/skills", "here")
    write_skill(here / "c" / ".agents/skills", "below")

    skills = machine.catalog("codelia", cwd=here).skills

    assert [(skill.name, skill.scope) for skill in skills] == [("between", "repo"), ("here", "repo"), ("top", "repo")]


@pytest.mark.req("C-36", "C-112")
def test_the_users_folder_is_searched_to_any_depth(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "mine", folder="group/inner/mine")
    skills = machine.catalog("codelia").skills
    assert [(skill.name, skill.scope, skill.source) for skill in skills] == [("mine", "user", "user:.agents/skills")]


# The home folder ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "scope"),
    [("standard", "user"), ("strict", "user"), ("rip", "user"), ("codelia", "repo"), ("omp", "user")],
)
def test_when_the_home_folder_is_the_repository_a_skill_has_one_scope(
    machine: Machine, profile: str, scope: str
) -> None:
    (machine.home / ".git").mkdir()
    (machine.home / "notes").mkdir()
    write_skill(machine.home / ".agents/skills", "deploy")

    catalog = machine.catalog(profile, cwd=machine.home / "notes")

    assert [(skill.name, skill.scope) for skill in catalog.skills] == [("deploy", scope)]
    assert catalog.shadowed == ()


def test_the_home_folder_is_known_by_its_real_path(machine: Machine) -> None:
    # A process gets the real path of its working directory, and HOME is often a link to it.
    house = machine.base / "house"
    house.symlink_to(machine.home)
    (machine.home / ".git").mkdir()
    write_skill(machine.home / ".agents/skills", "deploy")

    catalog = skillshelf.open_shelf(machine.home, home=house, env={}).catalog

    assert [(skill.name, skill.scope) for skill in catalog.skills] == [("deploy", "user")]


def test_a_repository_that_holds_the_home_folder_is_a_project_above_it(machine: Machine) -> None:
    (machine.base / ".git").mkdir()
    cwd = machine.home / "work"
    cwd.mkdir()
    assert [root for root in roots_of(machine, cwd=cwd) if root[1].endswith(".agents/skills")] == [
        ("project", "home/work/.agents/skills"),
        ("project", ".agents/skills"),
        ("user", "home/.agents/skills"),
    ]


@pytest.mark.parametrize("home", ["relative/home", "."])
def test_a_home_that_is_not_absolute_is_not_a_root(machine: Machine, home: str) -> None:
    shelf = skillshelf.open_shelf(machine.repo, env={"HOME": home})
    assert [root.scope for root in shelf.catalog.roots] == ["project", "project"]


# Codelia's environment ----------------------------------------------------------------------------


@pytest.mark.req("C-37", "C-38")
@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param({}, ["top", "here"], id="the marker decides"),
        pytest.param({"CODELIA_AGENTS_ROOT": "{base}"}, ["outer", "top", "here"], id="a boundary above the marker"),
        pytest.param({"CODELIA_AGENTS_ROOT": "{base}/repo/app"}, ["here"], id="a boundary below the marker"),
        pytest.param({"CODELIA_AGENTS_ROOT": ".."}, ["top", "here"], id="a relative boundary"),
        pytest.param({"CODELIA_AGENTS_ROOT": "  "}, ["top", "here"], id="a blank boundary is none"),
        pytest.param({"CODELIA_AGENTS_MARKERS": ".fence"}, ["outer", "top", "here"], id="another marker"),
        pytest.param({"CODELIA_AGENTS_MARKERS": " .x , .git "}, ["top", "here"], id="several markers"),
        pytest.param({"CODELIA_AGENTS_MARKERS": " "}, ["top", "here"], id="blank markers are none"),
        pytest.param({"CODELIA_AGENTS_MARKERS": ".nowhere"}, ["here"], id="a marker that is nowhere"),
        pytest.param(
            {"CODELIA_AGENTS_ROOT": "{base}/repo/app", "CODELIA_AGENTS_MARKERS": ".fence"},
            ["here"],
            id="the boundary beats the markers",
        ),
    ],
)
def test_codelias_variables_say_where_the_chain_ends(
    machine: Machine, env: Mapping[str, str], expected: list[str]
) -> None:
    (machine.base / ".fence").touch()
    places = {"outer": machine.base, "top": machine.repo, "here": machine.repo / "app"}
    for name, folder in places.items():
        write_skill(folder / ".agents/skills", name)
    machine.env = {name: value.format(base=machine.base) for name, value in env.items()}

    assert sorted(machine.names("codelia", cwd=machine.repo / "app")) == sorted(expected)


@pytest.mark.req("C-38")
@pytest.mark.parametrize(
    ("marker", "expected"), [(".codelia", ["here"]), (".git", ["here"]), (".jj", ["here"]), (".hg", ["here", "top"])]
)
def test_codelias_own_markers(machine: Machine, marker: str, expected: list[str]) -> None:
    write_skill(machine.repo / ".agents/skills", "top")
    write_skill(machine.repo / "app" / ".agents/skills", "here")
    (machine.repo / "app" / marker).mkdir()
    assert machine.names("codelia", cwd=machine.repo / "app") == expected


@pytest.mark.req("C-37")
def test_a_boundary_that_is_not_above_here_leaves_no_repository_roots_and_says_so(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "project")
    write_skill(machine.home / ".agents/skills", "mine")
    machine.env = {"CODELIA_AGENTS_ROOT": f"{machine.repo}-other"}

    catalog = machine.catalog("codelia")

    assert [skill.name for skill in catalog.skills] == ["mine"]
    assert roots_of(machine, "codelia") == [("user", "home/.agents/skills")]
    assert problems_of(machine, catalog.warnings) == [("repo-other", "boundary-outside")]


# Plugins ------------------------------------------------------------------------------------------


def install_plugins(machine: Machine, plugins: Any) -> Path:
    """Write the list of installed plugins."""
    path = machine.home / ".claude/plugins/installed_plugins.json"
    path.parent.mkdir(parents=True)
    path.write_text(plugins if isinstance(plugins, str) else json.dumps({"version": 2, "plugins": plugins}))
    return path


@pytest.mark.req("O-07", "O-25")
@pytest.mark.parametrize("listed", [False, True], ids=["an entry for each plugin", "a list for each plugin"])
def test_plugins_are_found_by_the_list_of_installed_ones(machine: Machine, listed: bool) -> None:
    for name in ("zeta", "alpha"):
        write_skill(machine.base / name / "skills", f"{name}-skill")
    entries = {f"{name}@market": {"installPath": str(machine.base / name)} for name in ("zeta", "alpha")}
    install_plugins(machine, {key: [entry] for key, entry in entries.items()} if listed else entries)

    catalog = machine.catalog("omp")

    assert [root for root in roots_of(machine, "omp") if "/skills" in root[1] and "." not in root[1]] == [
        ("user", "zeta/skills"),
        ("user", "alpha/skills"),
    ]
    assert [(skill.name, skill.source) for skill in catalog.skills] == [
        ("alpha-skill", "claude-plugins:user"),
        ("zeta-skill", "claude-plugins:user"),
    ]


@pytest.mark.parametrize(
    "text",
    ["{", "", "[]", "5", '{"plugins": []}', '{"plugins": {"a": 5}}', '{"plugins": {"a": {}}}', "\xff", "[" * 100_000],
    ids=["cut", "empty", "list", "number", "plugins list", "entry number", "no path", "not UTF-8", "deep"],
)
def test_a_broken_list_of_plugins_is_a_warning_and_costs_nothing_else(machine: Machine, text: str) -> None:
    path = install_plugins(machine, "")
    path.write_bytes(text.encode("latin-1"))
    write_skill(machine.home / ".omp/agent/skills", "mine")

    catalog = machine.catalog("omp")

    assert [skill.name for skill in catalog.skills] == ["mine"]
    assert problems_of(machine, catalog.warnings) == [
        ("home/.claude/plugins/installed_plugins.json", "plugins-unreadable")
    ]
    assert catalog.errors == ()


@pytest.mark.req("M-73")
@pytest.mark.parametrize("profile", ["standard", "strict", "codelia", "swiftagent", "mycodeagent", "rip"])
def test_only_omp_looks_into_plugins(machine: Machine, profile: str) -> None:
    install_plugins(machine, {"tool@market": {"installPath": str(machine.base / "plugin")}})
    write_skill(machine.base / "plugin/skills", "from-plugin")
    assert machine.names("omp") == ["from-plugin"]
    assert machine.names(profile) == []


# Custom directories -------------------------------------------------------------------------------


def test_custom_directories_are_meant_from_the_file_that_names_them(machine: Machine) -> None:
    file = machine.configure('skills.custom_directories = ["~/mine", "beside", "/absolute"]\n')
    custom = [root.path for root in machine.catalog().roots if root.scope == "custom"]
    assert custom == [f"{machine.home}/mine", f"{file.parent}/beside", "/absolute"]


def test_custom_directories_given_in_python_are_meant_from_the_working_directory(machine: Machine) -> None:
    config = {"skills": {"customDirectories": ["tools", "~/mine"]}}
    custom = [root for root in roots_of(machine, config=config) if root[0] == "custom"]
    assert custom == [("custom", "repo/tools"), ("custom", "home/mine")]


# What a skill says of its root --------------------------------------------------------------------


@pytest.mark.req("O-05")
@pytest.mark.parametrize(
    ("profile", "root", "scope", "source"),
    [
        ("standard", "repo/.agents/skills", "project", "project:.agents/skills"),
        ("standard", "repo/.claude/skills", "project", "project:.claude/skills"),
        ("standard", "home/.claude/skills", "user", "user:.claude/skills"),
        ("standard", "custom", "custom", "custom"),
        ("standard", "env", "env", "env"),
        ("codelia", "repo/.agents/skills", "repo", "project:.agents/skills"),
        ("swiftagent", "home/.agent/skills", "user", "user:.agent/skills"),
        ("mycodeagent", "repo/skills", "project", "project:skills"),
        ("omp", "repo/.omp/skills", "project", "native:project"),
        ("omp", "home/.omp/agent/skills", "user", "native:user"),
        ("omp", "home/.claude/skills", "user", "claude:user"),
        ("omp", "repo/.agent/skills", "project", "agents:project"),
        ("omp", "home/.agents/skills", "user", "agents:user"),
        ("omp", "home/.codex/skills", "user", "codex:user"),
        ("omp", "repo/.codex/skills", "project", "codex:project"),
        ("omp", "custom", "custom", "custom:user"),
    ],
)
def test_scope_and_source_say_where_a_skill_comes_from(
    machine: Machine, profile: str, root: str, scope: str, source: str
) -> None:
    path = write_skill(machine.base / root, "deploy")
    machine.env = {"AGENT_SKILLS_PATH": str(machine.base / "env")}
    machine.configure(f"skills.custom_directories = ['{machine.base}/custom']\n")

    (skill,) = machine.catalog(profile).skills

    assert (skill.name, skill.description, skill.path, skill.dir, skill.scope, skill.source) == (
        "deploy",
        "Does deploy things. Use when deploy is asked for.",
        str(path),
        str(path.parent),
        scope,
        source,
    )
