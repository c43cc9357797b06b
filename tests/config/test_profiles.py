"""Seven systems on one tree, and one test for each point on which the systems disagree about discovery.

The tests whose names begin with `test_row_` follow the table of conflicts between the systems, row by row.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.trees import PROJECT_ROOTS, Machine, write_skill

import skillshelf
from skillshelf.config.builtin_profiles import SYSTEMS

# One tree -----------------------------------------------------------------------------------------

TREE = {
    ".agents/skills": ["above"],
    "env": ["from-env", "shared"],
    "custom": ["from-custom", "group/custom-nested"],
    "plugin/skills": ["from-plugin"],
    "home/.agents/skills": ["group/user-nested", "shared"],
    "home/.agent/skills": ["swift-shared", "swift-user"],
    "home/.claude/skills": ["claude-user", "terse"],
    "home/.omp/agent/skills": ["pi-user"],
    "home/.codex/skills": ["codex-user"],
    "repo/.agents/skills": ["Loud_Name", "renamed", "shared"],
    "repo/skills": ["a/mvp", "b/mvp", "mvp-flat"],
    "repo/app/.agents/skills": ["near", "near/inner", "shared"],
    "repo/app/.agent/skills": ["swift-shared"],
    "repo/app/.claude/skills": ["claude-here"],
    "repo/app/.omp/skills": ["pi-here", "shared", "terse"],
    "repo/app/.codex/skills": ["codex-here"],
    "repo/app/skills": ["not-the-root"],
}
TEXTS = {"renamed": "---\nname: other-name\ndescription: D.\n---\n", "terse": "---\nname: terse\n---\n"}

STRICT = """
skill    claude-here project repo/app/.claude/skills/claude-here
skill    claude-user user home/.claude/skills/claude-user
skill    custom-nested custom custom/group/custom-nested
skill    from-custom custom custom/from-custom
skill    from-env env env/from-env
skill    near project repo/app/.agents/skills/near
skill    shared env env/shared
skill    user-nested user home/.agents/skills/group/user-nested
error    description-missing home/.claude/skills/terse
error    name-pattern repo/.agents/skills/Loud_Name
error    name-directory repo/.agents/skills/renamed
warning  name-collision home/.agents/skills/shared
warning  name-collision repo/.agents/skills/shared
warning  name-collision repo/app/.agents/skills/shared
shadowed home/.agents/skills/shared by env/shared
shadowed repo/.agents/skills/shared by env/shared
shadowed repo/app/.agents/skills/shared by env/shared
filtered inside-skill repo/app/.agents/skills/near/inner
"""
EXPECTED = {
    "standard": """
skill    Loud_Name project repo/.agents/skills/Loud_Name
skill    claude-here project repo/app/.claude/skills/claude-here
skill    claude-user user home/.claude/skills/claude-user
skill    custom-nested custom custom/group/custom-nested
skill    from-custom custom custom/from-custom
skill    from-env env env/from-env
skill    near project repo/app/.agents/skills/near
skill    other-name project repo/.agents/skills/renamed
skill    shared env env/shared
skill    user-nested user home/.agents/skills/group/user-nested
error    description-missing home/.claude/skills/terse
warning  name-collision home/.agents/skills/shared
warning  name-pattern repo/.agents/skills/Loud_Name
warning  name-directory repo/.agents/skills/renamed
warning  name-collision repo/.agents/skills/shared
warning  name-collision repo/app/.agents/skills/shared
shadowed home/.agents/skills/shared by env/shared
shadowed repo/.agents/skills/shared by env/shared
shadowed repo/app/.agents/skills/shared by env/shared
filtered inside-skill repo/app/.agents/skills/near/inner
""",
    "strict": STRICT,
    "rip": STRICT.replace(
        "skill    near project", "skill    inner project repo/app/.agents/skills/near/inner\nskill    near project"
    ).replace("filtered inside-skill repo/app/.agents/skills/near/inner\n", ""),
    "codelia": """
skill    inner repo repo/app/.agents/skills/near/inner
skill    near repo repo/app/.agents/skills/near
skill    shared repo repo/.agents/skills/shared
skill    shared repo repo/app/.agents/skills/shared
skill    shared user home/.agents/skills/shared
skill    user-nested user home/.agents/skills/group/user-nested
error    name-pattern repo/.agents/skills/Loud_Name
error    name-directory repo/.agents/skills/renamed
warning  name-collision home/.agents/skills/shared
warning  name-collision repo/.agents/skills/shared
warning  name-collision repo/app/.agents/skills/shared
""",
    "swiftagent": """
skill    from-env env env/from-env
skill    shared env env/shared
skill    swift-shared project repo/app/.agent/skills/swift-shared
skill    swift-user user home/.agent/skills/swift-user
warning  name-collision home/.agent/skills/swift-shared
shadowed home/.agent/skills/swift-shared by repo/app/.agent/skills/swift-shared
""",
    "mycodeagent": """
skill    mvp project repo/skills/b/mvp
skill    mvp-flat project repo/skills/mvp-flat
warning  name-collision repo/skills/a/mvp
shadowed repo/skills/a/mvp by repo/skills/b/mvp
""",
    "omp": """
skill    Loud_Name project repo/.agents/skills/Loud_Name
skill    claude-here project repo/app/.claude/skills/claude-here
skill    claude-user user home/.claude/skills/claude-user
skill    codex-here project repo/app/.codex/skills/codex-here
skill    codex-user user home/.codex/skills/codex-user
skill    from-custom custom custom/from-custom
skill    from-plugin user plugin/skills/from-plugin
skill    near project repo/app/.agents/skills/near
skill    other-name project repo/.agents/skills/renamed
skill    pi-here project repo/app/.omp/skills/pi-here
skill    pi-user user home/.omp/agent/skills/pi-user
skill    shared project repo/app/.omp/skills/shared
skill    swift-shared project repo/app/.agent/skills/swift-shared
skill    swift-user user home/.agent/skills/swift-user
skill    terse user home/.claude/skills/terse
error    description-missing repo/app/.omp/skills/terse
warning  name-collision home/.agent/skills/swift-shared
warning  name-collision home/.agents/skills/shared
warning  name-collision repo/.agents/skills/shared
warning  name-collision repo/app/.agents/skills/shared
shadowed home/.agents/skills/shared by repo/app/.omp/skills/shared
shadowed repo/.agents/skills/shared by repo/app/.omp/skills/shared
shadowed repo/app/.agents/skills/shared by repo/app/.omp/skills/shared
shadowed home/.agent/skills/swift-shared by repo/app/.agent/skills/swift-shared
filtered too-deep custom/group/custom-nested
filtered inside-skill repo/app/.agents/skills/near/inner
filtered too-deep home/.agents/skills/group/user-nested
""",
}


@pytest.fixture
def tree(machine: Machine) -> Machine:
    """Build the whole tree, a list of plugins, and both kinds of folder that a user names."""
    for root, folders in TREE.items():
        for folder in folders:
            name = folder.rpartition("/")[2]
            write_skill(machine.base / root, name, TEXTS.get(name), folder=folder)
    plugins = machine.home / ".claude/plugins/installed_plugins.json"
    plugins.parent.mkdir(parents=True)
    plugins.write_text(json.dumps({"plugins": {"tool@market": [{"installPath": str(machine.base / "plugin")}]}}))
    machine.env = {"AGENT_SKILLS_PATH": str(machine.base / "env")}
    machine.configure(f"skills.custom_directories = ['{machine.base}/custom']\n")
    return machine


def report(catalog: skillshelf.Catalog, base: Path) -> Iterator[str]:
    """Return the whole catalog, one entry a line, with paths relative to the base."""

    def short(path: str) -> str:
        return os.path.relpath(path, base).removesuffix("/SKILL.md")

    for skill in catalog.skills:
        yield f"skill    {skill.name} {skill.scope} {short(skill.path)}"
    for error in catalog.errors:
        yield f"error    {error.rule} {short(error.path)}"
    for warning in catalog.warnings:
        yield f"warning  {warning.rule} {short(warning.path)}"
    for loser in catalog.shadowed:
        yield f"shadowed {short(loser.path)} by {short(loser.by)}"
    for left_out in catalog.filtered:
        yield f"filtered {left_out.reason} {short(left_out.path)}"


@pytest.mark.req("C-09", "C-21", "C-34", "C-39", "C-46", "C-47", "C-49", "C-111", "C-112", "S-81", "M-04", "M-23")
@pytest.mark.req("M-72", "M-73", "K-19", "K-22", "O-07", "O-08", "O-09", "O-16", "O-18", "O-26", "O-34", "O-69")
@pytest.mark.parametrize("profile", list(SYSTEMS))
def test_one_tree_as_each_profile_sees_it(tree: Machine, profile: str) -> None:
    catalog = tree.shelf(profile, cwd=tree.repo / "app").scan(account=True)
    assert list(report(catalog, tree.base)) == EXPECTED[profile].strip().splitlines()


@pytest.mark.parametrize("profile", list(SYSTEMS))
def test_every_skill_file_below_the_roots_is_accounted_for_once(tree: Machine, profile: str) -> None:
    for hidden in ("home/.agents/skills/.git/x", "repo/skills/node_modules/x", "repo/app/.omp/skills/.x"):
        write_skill(tree.base, "x", folder=hidden)

    catalog = tree.shelf(profile, cwd=tree.repo / "app").scan(account=True)

    told = [item.path for part in (catalog.skills, catalog.errors, catalog.shadowed, catalog.filtered) for item in part]
    below = {str(path) for root in catalog.roots for path in Path(root.path).glob("**/SKILL.md")}
    assert sorted(told) == sorted(below)


# Rows 1 to 7: roots, recursion and collisions -----------------------------------------------------


@pytest.mark.req("C-49", "C-50", "M-23", "M-24", "K-22", "O-26", "O-34", "O-70")
@pytest.mark.parametrize(
    ("profile", "first", "second", "kept"),
    [
        ("standard", "repo/.agents/skills", "home/.agents/skills", "first"),
        ("strict", "repo/.agents/skills", "home/.agents/skills", "first"),
        ("codelia", "repo/.agents/skills", "home/.agents/skills", "both"),
        ("swiftagent", "home/.agent/skills", "repo/.agent/skills", "second"),
        ("mycodeagent", "repo/skills/a", "repo/skills/b", "second"),
        ("rip", "repo/.agents/skills", "home/.agents/skills", "first"),
        ("omp", "home/.claude/skills", "repo/.claude/skills", "first"),
    ],
)
def test_row_1_name_collision(machine: Machine, profile: str, first: str, second: str, kept: str) -> None:
    paths = {place: str(write_skill(machine.base / place, "deploy")) for place in (first, second)}
    winners = {"first": [first], "second": [second], "both": [first, second]}[kept]
    losers = [place for place in (first, second) if place not in winners]

    catalog = machine.catalog(profile)

    assert [skill.path for skill in catalog.skills] == [paths[place] for place in winners]
    assert [(loser.path, loser.by) for loser in catalog.shadowed] == [(paths[p], paths[winners[0]]) for p in losers]
    assert {(warning.path, warning.rule) for warning in catalog.warnings} == {
        (paths[place], "name-collision") for place in losers or winners
    }


@pytest.mark.req("K-22", "S-81", "O-22", "O-23", "O-24", "O-25", "O-26", "O-32", "O-36", "O-70")
@pytest.mark.parametrize(
    ("profile", "order"),
    [
        ("standard", "env app/.agents app/.claude repo/.agents repo/.claude custom home/.agents home/.claude"),
        ("strict", "env app/.agents app/.claude repo/.agents repo/.claude custom home/.agents home/.claude"),
        ("rip", "env app/.agents app/.claude repo/.agents repo/.claude custom home/.agents home/.claude"),
        ("swiftagent", "env app/.agent home/.agent"),
        ("mycodeagent", "repo"),
        (
            "omp",
            "app/.omp home/.omp/agent home/.claude app/.claude plugin app/.agents app/.agent repo/.agents repo/.agent"
            " home/.agents home/.agent home/.codex app/.codex custom",
        ),
    ],
)
def test_row_2_which_root_wins(tree: Machine, profile: str, order: str) -> None:
    places = {place.removesuffix("/skills").replace("repo/app", "app"): tree.base / place for place in TREE}
    places |= {"repo/.claude": tree.repo / ".claude/skills", "repo/.agent": tree.repo / ".agent/skills"}
    for root in places.values():
        write_skill(root, "wanted")
    by_path = {str(root / "wanted/SKILL.md"): place for place, root in places.items()}

    winners = []
    while found := [skill for skill in tree.catalog(profile, cwd=tree.repo / "app").skills if skill.name == "wanted"]:
        winners.append(by_path[found[0].path])
        shutil.rmtree(found[0].dir)

    assert winners == order.split()


@pytest.mark.req("C-35", "C-36", "M-04", "K-19", "O-07", "O-08")
@pytest.mark.parametrize(
    ("profile", "levels"),
    [
        ("standard", [1, 2, 6]),
        ("strict", [1, 2, 6]),
        ("codelia", [1, 2, 6, 7]),
        ("swiftagent", [1]),
        ("mycodeagent", [1, 2, 6, 7]),
        ("rip", [1, 2, 6, 7]),
        ("omp", [1]),
    ],
)
def test_row_3_recursion(machine: Machine, profile: str, levels: list[int]) -> None:
    for level in (1, 2, 6, 7):
        folder = "/".join(["group"] * (level - 1) + [f"level-{level}"])
        write_skill(machine.repo / PROJECT_ROOTS[profile], f"level-{level}", folder=folder)
    catalog = machine.catalog(profile)
    assert [skill.name for skill in catalog.skills] == [f"level-{level}" for level in levels]
    assert {entry.reason for entry in catalog.filtered} == ({"too-deep"} if 7 not in levels else set())


STANDARD_ROOTS = [
    "repo/.agents repo/.claude repo/app/.agents repo/app/.claude",
    "home/.agents home/.claude",
    "custom env",
]


@pytest.mark.req("C-09", "C-10", "C-21", "C-34", "C-35", "C-36", "C-112", "S-82", "M-04", "M-72", "O-20")
@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("standard", STANDARD_ROOTS),
        ("strict", STANDARD_ROOTS),
        ("rip", STANDARD_ROOTS),
        ("codelia", ["repo/.agents repo/app/.agents", "home/.agents", ""]),
        ("swiftagent", ["repo/app/.agent", "home/.agent", "env"]),
        ("mycodeagent", ["repo", "", ""]),
        (
            "omp",
            [
                "repo/.agent repo/.agents repo/app/.agent repo/app/.agents"
                " repo/app/.claude repo/app/.codex repo/app/.omp",
                "home/.agent home/.agents home/.claude home/.codex home/.omp/agent plugin",
                "custom",
            ],
        ),
    ],
)
def test_rows_4_5_and_6_project_user_and_extra_roots(tree: Machine, profile: str, expected: list[str]) -> None:
    # Every root that any profile has holds a skill of its own.
    for place in [*TREE, "repo/.claude/skills", "repo/.agent/skills", "repo/.omp/skills", "home/skills"]:
        write_skill(tree.base / place, "in-" + place.replace("/", "-").replace(".", ""))
    found: dict[str, list[str]] = {"project": [], "user": [], "extra": []}
    for skill in tree.catalog(profile, cwd=tree.repo / "app").skills:
        if skill.name.startswith("in-"):
            kind = {"repo": "project", "env": "extra", "custom": "extra"}.get(skill.scope, skill.scope)
            root = os.path.relpath(os.path.dirname(skill.dir), tree.base).removesuffix("/skills")
            found[kind].append(root)

    assert [" ".join(sorted(roots)) for roots in found.values()] == expected


@pytest.mark.req("C-25", "O-05")
@pytest.mark.parametrize(
    ("profile", "scope", "source"),
    [
        ("standard", "project", "project:.agents/skills"),
        ("strict", "project", "project:.agents/skills"),
        ("codelia", "repo", "project:.agents/skills"),
        ("swiftagent", "project", "project:.agent/skills"),
        ("mycodeagent", "project", "project:skills"),
        ("rip", "project", "project:.agents/skills"),
        ("omp", "project", "native:project"),
    ],
)
def test_row_7_scope_labels(machine: Machine, profile: str, scope: str, source: str) -> None:
    write_skill(machine.repo / PROJECT_ROOTS[profile], "deploy")
    assert [(skill.scope, skill.source) for skill in machine.catalog(profile).skills] == [(scope, source)]


# Rows 8 to 15: what a SKILL.md must be ------------------------------------------------------------


def verdicts(machine: Machine, text: str, *, folder: str = "deploy") -> dict[str, str]:
    """Return for each profile `listed`, or the rule that rejected a text in its own root."""
    found = {}
    for profile, root in PROJECT_ROOTS.items():
        path = write_skill(machine.repo / root, "", text, folder=folder)
        catalog = machine.catalog(profile)
        rules = [error.rule for error in catalog.errors if error.path == str(path)]
        found[profile] = "listed" if str(path) in [skill.path for skill in catalog.skills] else " ".join(rules)
    return found


def every_profile(default: str, **others: str) -> dict[str, str]:
    """Return a verdict for each profile."""
    return {profile: others.get(profile, default) for profile in PROJECT_ROOTS}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a" * 64, every_profile("listed")),
        ("a" * 65, every_profile("name-length", standard="listed", mycodeagent="listed", omp="listed")),
        ("Deploy_It", every_profile("name-pattern", standard="listed", omp="listed")),
        ("bad--name", every_profile("name-pattern", standard="listed", omp="listed")),
        ("a/b", every_profile("name-address")),
    ],
)
def test_row_8_name_pattern_and_length(machine: Machine, name: str, expected: dict[str, str]) -> None:
    folder = name.replace("/", "-")
    assert verdicts(machine, f"---\nname: {name}\ndescription: D.\n---\n", folder=folder) == expected


def test_row_9_name_against_directory(machine: Machine) -> None:
    text = "---\nname: declared\ndescription: D.\n---\n"
    lenient = {"standard", "mycodeagent", "omp"}
    assert verdicts(machine, text) == every_profile("name-directory", **dict.fromkeys(lenient, "listed"))
    assert {name for profile in lenient for name in machine.names(profile)} == {"declared"}


@pytest.mark.req("O-67")
def test_row_10_missing_name(machine: Machine) -> None:
    lenient = {"standard", "omp"}
    expected = every_profile("name-missing", **dict.fromkeys(lenient, "listed"))
    assert verdicts(machine, "---\ndescription: D.\n---\n") == expected
    assert {name for profile in lenient for name in machine.names(profile)} == {"deploy"}


@pytest.mark.req("O-16", "O-18")
@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("", every_profile("description-missing")),
        ("   ", every_profile("description-missing")),
        ("d" * 1024, every_profile("listed")),
        ("d" * 1025, every_profile("description-length", standard="listed", mycodeagent="listed", omp="listed")),
    ],
    ids=["none", "blank", "1024", "1025"],
)
def test_row_11_description_required(machine: Machine, description: str, expected: dict[str, str]) -> None:
    text = f"---\nname: deploy\ndescription: '{description}'\n---\n"
    assert verdicts(machine, text) == expected
    write_skill(machine.home / ".claude/skills", "by-claude", "---\nname: by-claude\n---\n")
    assert "by-claude" in machine.names("omp")


@pytest.mark.req("C-46", "C-47")
@pytest.mark.parametrize("profile", list(SYSTEMS))
def test_row_12_an_invalid_skill_is_an_error_beside_the_valid_ones(machine: Machine, profile: str) -> None:
    root = machine.repo / PROJECT_ROOTS[profile]
    bad = write_skill(root, "bad", '---\nname: "bad\ndescription: D.\n---\n')
    write_skill(root, "good")
    catalog = machine.catalog(profile)
    assert [skill.name for skill in catalog.skills] == ["good"]
    (error,) = catalog.errors
    assert (error.path, error.rule, bool(error.message)) == (str(bad), "yaml", True)


@pytest.mark.parametrize("profile", list(SYSTEMS))
def test_row_13_unknown_fields_are_kept(machine: Machine, profile: str) -> None:
    text = "---\nname: deploy\ndescription: D.\nx-team: {colour: blue, size: [1, 2]}\n---\n"
    write_skill(machine.repo / PROJECT_ROOTS[profile], "deploy", text)
    (skill,) = machine.catalog(profile).skills
    assert skill.frontmatter["x-team"] == {"colour": "blue", "size": [1, 2]}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("compatibility: " + "c" * 501, {"strict", "swiftagent", "rip"}),
        ("metadata: text", {"strict", "codelia", "swiftagent", "rip"}),
        ("allowed-tools: 5", {"strict", "swiftagent", "rip"}),
        ("version: 5\nlicense: 5\nglobs: 5\nalwaysApply: 5", set()),
    ],
    ids=["compatibility", "metadata", "allowed-tools", "others"],
)
def test_row_14_a_field_is_checked_where_the_system_knows_it(machine: Machine, field: str, expected: set[str]) -> None:
    found = verdicts(machine, f"---\nname: deploy\ndescription: D.\n{field}\n---\n")
    assert {profile for profile, verdict in found.items() if verdict != "listed"} == expected


def test_row_14_the_fields_of_each_system() -> None:
    common = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
    assert {name: profile.fields for name, profile in SYSTEMS.items() if name not in ("standard", "rip")} == {
        "strict": common,
        "codelia": ("name", "description", "version", "license", "metadata"),
        "swiftagent": common,
        "mycodeagent": ("name", "description"),
        "omp": ("name", "description", "globs", "alwaysApply"),
    }
    assert set(common) < set(SYSTEMS["standard"].fields)
    assert set(common) <= set(SYSTEMS["rip"].fields)


@pytest.mark.parametrize("profile", list(SYSTEMS))
def test_row_15_every_profile_reads_real_yaml(machine: Machine, profile: str) -> None:
    text = "---\nname: deploy\ndescription: >-\n  Ships\n  it. # not a comment\nmetadata:\n  name: other\n---\n"
    write_skill(machine.repo / PROJECT_ROOTS[profile], "deploy", text)
    assert [(skill.name, skill.description) for skill in machine.catalog(profile).skills] == [
        ("deploy", "Ships it. # not a comment")
    ]


# Rows 38 and 39 are in test_filters.py -----------------------------------------------------------


@pytest.mark.req("C-48", "O-33")
@pytest.mark.parametrize("profile", list(SYSTEMS))
def test_row_40_links(machine: Machine, profile: str) -> None:
    root = machine.repo / PROJECT_ROOTS[profile]
    inside = write_skill(machine.repo / "shared", "inside").parent
    outside = write_skill(machine.base / "elsewhere", "outside").parent
    write_skill(root, "real")
    for name, target in {"inside": inside, "outside": outside, "zz-real": root / "real"}.items():
        (root / name).symlink_to(target)

    catalog = machine.catalog(profile)

    assert [skill.path for skill in catalog.skills] == [f"{root}/inside/SKILL.md", f"{root}/real/SKILL.md"]
    assert [(error.path, error.rule) for error in catalog.errors] == [(f"{root}/outside", "link-outside")]
    assert [(entry.path, entry.same_file) for entry in catalog.shadowed] == [(f"{root}/zz-real/SKILL.md", True)]
    assert catalog.warnings == ()
