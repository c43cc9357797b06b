"""The configuration filters and hides skills, and a hidden skill never takes the place of another.

`test_row_38_` and `test_row_39_` are rows of the table of conflicts; the other rows are in test_profiles.py.
"""

from pathlib import Path
from typing import Any

import pytest
from support.trees import PROJECT_ROOTS, Machine, write_skill

import skillshelf
from skillshelf import Filtered, Shadowed


def in_skills(**settings: Any) -> dict[str, Any]:
    """A configuration with these keys of `skills`."""
    return {"skills": settings}


def left_out(catalog: skillshelf.Catalog) -> list[tuple[str, str]]:
    """Name and reason of everything that was filtered."""
    return [(entry.name, entry.reason) for entry in catalog.filtered]


# Patterns -----------------------------------------------------------------------------------------


@pytest.mark.req("O-28", "O-29")
@pytest.mark.parametrize("profile", ["standard", "omp"])
@pytest.mark.parametrize(
    ("ignored", "include", "kept"),
    [
        ([], [], ["deploy", "draft-a", "draft-b", "test"]),
        (["draft-*"], [], ["deploy", "test"]),
        (["draft-?", "test"], [], ["deploy"]),
        (["draft-[ac]"], [], ["deploy", "draft-b", "test"]),
        ([], ["draft-*"], ["draft-a", "draft-b"]),
        ([], ["draft-a", "deploy"], ["deploy", "draft-a"]),
        (["draft-a"], ["draft-*"], ["draft-b"]),
        (["*"], ["*"], []),
        ([], ["nothing"], []),
        (["eploy"], [], ["deploy", "draft-a", "draft-b", "test"]),
        (["DEPLOY", "ＤＲＡＦＴ-[A]"], [], ["draft-b", "test"]),
        ([], ["DEPLOY", "test"], ["test"]),
    ],
)
def test_patterns_on_the_name_leave_skills_out(
    machine: Machine, profile: str, ignored: list[str], include: list[str], kept: list[str]
) -> None:
    everything = ["deploy", "draft-a", "draft-b", "test"]
    for name in everything:
        write_skill(machine.repo / ".claude/skills", name)

    catalog = machine.catalog(profile, config=in_skills(ignoredSkills=ignored, includeSkills=include))

    assert [skill.name for skill in catalog.skills] == kept
    assert [entry.name for entry in catalog.filtered] == [name for name in everything if name not in kept]
    assert catalog.warnings == ()


@pytest.mark.req("O-28", "O-29", "O-30")
@pytest.mark.parametrize("profile", list(PROJECT_ROOTS))
def test_row_39_include_and_exclude(machine: Machine, profile: str) -> None:
    for name in ("draft-a", "ship-a", "ship-b"):
        write_skill(machine.repo / PROJECT_ROOTS[profile], name)
    config = {"skills": {"ignored": ["*-a"], "include": ["ship-*"]}}
    catalog = machine.catalog(profile, config=config)
    assert [skill.name for skill in catalog.skills] == ["ship-b"]
    assert [(entry.name, entry.reason) for entry in catalog.filtered] == [("draft-a", "ignored"), ("ship-a", "ignored")]


@pytest.mark.req("O-30")
def test_the_first_filter_that_objects_gives_the_reason(machine: Machine) -> None:
    for place, name in [(".claude/skills", "a-off"), (".omp/skills", "b-ignored"), (".omp/skills", "c-other")]:
        write_skill(machine.repo / place, name)
    config = in_skills(ignored=["a-*", "b-*"], include=["z-*"], sources={"enableClaudeProject": False})
    assert left_out(machine.catalog("omp", config=config)) == [
        ("a-off", "source-off"),
        ("b-ignored", "ignored"),
        ("c-other", "not-included"),
    ]


# Sources ------------------------------------------------------------------------------------------

OMP_ROOTS = {
    "pi-project": "repo/.omp/skills",
    "pi-user": "home/.omp/agent/skills",
    "claude-user": "home/.claude/skills",
    "claude-project": "repo/.claude/skills",
    "plugin": "plugin/skills",
    "agents-project": "repo/.agents/skills",
    "agents-user": "home/.agents/skills",
    "codex-user": "home/.codex/skills",
    "codex-project": "repo/.codex/skills",
    "custom": "custom",
}
SWITCHES = ["enableCodexUser", "enableClaudeUser", "enableClaudeProject", "enablePiUser", "enablePiProject"]


def fill_providers(machine: Machine) -> dict[str, Any]:
    """A skill in every root of omp, named after it; returns the configuration that names the custom one."""
    for name, place in OMP_ROOTS.items():
        write_skill(machine.base / place, name)
    plugins = machine.home / ".claude/plugins/installed_plugins.json"
    plugins.parent.mkdir(parents=True)
    plugins.write_text(f'{{"plugins": {{"p": {{"installPath": "{machine.base}/plugin"}}}}}}')
    return {"custom_directories": [str(machine.base / "custom")]}


@pytest.mark.req("O-27", "O-31")
@pytest.mark.parametrize(
    ("off", "gone"),
    [
        ([], []),
        (["enableCodexUser"], ["codex-user"]),
        (["enableClaudeUser"], ["claude-user"]),
        (["enableClaudeProject"], ["claude-project"]),
        (["enablePiUser"], ["pi-user"]),
        (["enablePiProject"], ["pi-project"]),
        (SWITCHES[:4], ["claude-project", "claude-user", "codex-user", "pi-user"]),
        (
            SWITCHES,
            [
                "agents-project",
                "agents-user",
                "claude-project",
                "claude-user",
                "codex-user",
                "pi-project",
                "pi-user",
                "plugin",
            ],
        ),
    ],
    ids=lambda value: " ".join(value) or "none" if isinstance(value, list) else None,
)
def test_a_switch_turns_its_source_off_and_the_last_switch_turns_off_the_others(
    machine: Machine, off: list[str], gone: list[str]
) -> None:
    config = in_skills(**fill_providers(machine), **dict.fromkeys(off, False))

    catalog = machine.catalog("omp", config=config)

    assert left_out(catalog) == [(name, "source-off") for name in gone]
    assert [skill.name for skill in catalog.skills] == sorted(set(OMP_ROOTS) - set(gone))


def test_the_switches_say_nothing_to_a_profile_that_has_none(machine: Machine) -> None:
    write_skill(machine.home / ".claude/skills", "deploy")
    assert machine.names("standard", config=in_skills(**dict.fromkeys(SWITCHES, False))) == ["deploy"]


@pytest.mark.req("C-96", "O-21")
@pytest.mark.parametrize("profile", list(PROJECT_ROOTS))
def test_row_38_enable_switch(machine: Machine, profile: str) -> None:
    write_skill(machine.repo / PROJECT_ROOTS[profile], "deploy")
    assert machine.names(profile, config={"skills": {"enabled": True}}) == machine.names(profile) == ["deploy"]
    catalog = machine.catalog(profile, config={"skills": {"enabled": False}})
    assert (catalog.skills, catalog.errors) == ((), ())
    assert [warning.rule for warning in catalog.warnings] == ["skills-disabled"]
    assert [root.skills for root in catalog.roots] == [0] * len(catalog.roots)


# omp's two passes ---------------------------------------------------------------------------------


@pytest.mark.req("O-19", "O-20", "O-36")
def test_providers_come_first_and_custom_directories_join_them(machine: Machine) -> None:
    custom = machine.base / "custom"
    provided = write_skill(machine.repo / ".agents/skills", "deploy")
    taken = write_skill(custom, "deploy")
    write_skill(custom, "extra")
    write_skill(custom, "terse", "---\nname: terse\n---\n")
    write_skill(custom, "nested", folder="group/nested")

    catalog = skillshelf.discover_skills(machine.repo, home=machine.home, custom_directories=(str(custom),))

    assert [(skill.name, skill.source) for skill in catalog.skills] == [
        ("deploy", "agents:project"),
        ("extra", "custom:user"),
    ]
    assert catalog.shadowed == (Shadowed("deploy", str(taken), str(provided), same_file=False),)
    assert [(warning.path, warning.rule) for warning in catalog.warnings] == [(str(taken), "name-collision")]
    assert [(error.path, error.rule) for error in catalog.errors] == [
        (f"{custom}/terse/SKILL.md", "description-missing")
    ]
    assert catalog.filtered == (Filtered("nested", f"{custom}/group/nested/SKILL.md", "too-deep"),)


@pytest.mark.req("O-19", "O-21", "O-27", "O-28", "O-29")
def test_discovering_takes_the_switches_and_patterns_as_arguments(machine: Machine) -> None:
    fill_providers(machine)

    catalog = skillshelf.discover_skills(
        machine.repo,
        home=machine.home,
        include_skills=("*-user",),
        ignored_skills=("codex-*",),
        enable_pi_user=False,
    )

    assert [skill.name for skill in catalog.skills] == ["agents-user", "claude-user"]
    assert skillshelf.discover_skills(machine.repo, home=machine.home, enabled=False).skills == ()
    with pytest.raises(TypeError, match="enable_everything"):
        skillshelf.discover_skills(machine.repo, home=machine.home, enable_everything=True)


@pytest.mark.req("O-32", "O-34")
def test_omp_settles_names_before_it_filters(machine: Machine) -> None:
    # The first provider's skill takes the name and is then filtered: no skill is left, as its document says.
    first = write_skill(machine.home / ".claude/skills", "deploy")
    second = write_skill(machine.home / ".codex/skills", "deploy")

    catalog = machine.catalog("omp", config=in_skills(enableClaudeUser=False))

    assert catalog.skills == ()
    assert catalog.filtered == (
        Filtered("deploy", str(first), "source-off", f"{machine.repo}/<config>: skills.sources.enable_claude_user"),
    )
    assert catalog.shadowed == (Shadowed("deploy", str(second), str(first), same_file=False),)
    assert [(warning.path, warning.rule) for warning in catalog.warnings] == [(str(second), "name-collision")]


@pytest.mark.req("O-36")
def test_a_custom_skill_takes_a_name_that_no_provider_kept(machine: Machine) -> None:
    write_skill(machine.home / ".claude/skills", "deploy")
    custom = write_skill(machine.base / "custom", "deploy")
    config = in_skills(enableClaudeUser=False, custom_directories=[str(machine.base / "custom")])
    assert [skill.path for skill in machine.catalog("omp", config=config).skills] == [str(custom)]


@pytest.mark.req("O-16", "O-17", "O-18", "O-67")
@pytest.mark.parametrize(
    ("provider", "listed"),
    [(name, name not in ("pi-project", "pi-user", "custom")) for name in OMP_ROOTS],
)
def test_native_and_custom_skills_need_a_description_and_the_others_do_not(
    machine: Machine, provider: str, listed: bool
) -> None:
    config = in_skills(**fill_providers(machine))
    path = write_skill(machine.base / OMP_ROOTS[provider], "terse", "# No frontmatter at all\n")

    catalog = machine.catalog("omp", config=config)

    assert ("terse", "", str(path)) in [(s.name, s.description, s.path) for s in catalog.skills] or not listed
    assert [(error.path, error.rule) for error in catalog.errors] == (
        [] if listed else [(str(path), "description-missing")]
    )


@pytest.mark.req("O-35")
def test_one_folder_is_scanned_under_the_source_that_the_caller_names(tmp_path: Path) -> None:
    write_skill(tmp_path, "deploy")
    write_skill(tmp_path, "nested", folder="group/nested")

    catalog = skillshelf.discover_skills_from_dir(tmp_path, "pack:user")

    assert [(skill.name, skill.source) for skill in catalog.skills] == [("deploy", "pack:user")]
    assert left_out(catalog) == [("nested", "too-deep")]


# Held back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["name", "file", "folder", "folder/", "real path", "~", "relative", "a link"])
def test_a_skill_is_disabled_by_its_name_or_its_path(machine: Machine, by: str) -> None:
    real = write_skill(machine.home / "dotfiles", "deploy")
    root = machine.home / ".agents/skills"
    write_skill(root, "release")
    (root / "deploy").symlink_to(real.parent)
    entry = {
        "name": "deploy",
        "file": f"{root}/deploy/SKILL.md",
        "folder": f"{root}/deploy",
        "folder/": f"{root}/deploy/",
        "real path": str(real),
        "~": "~/.agents/skills/deploy",
        "relative": "../../.agents/skills/deploy",
        "a link": f"{machine.base}/link/skills/deploy",
    }[by]
    (machine.base / "link").symlink_to(machine.home / ".agents")
    machine.configure(f"skills.disabled = ['{entry}']\n")

    assert [(skill.name, skill.enabled, skill.hidden) for skill in machine.catalog().skills] == [
        ("deploy", False, "disabled"),
        ("release", True, None),
    ]


@pytest.mark.parametrize(
    ("rule", "hidden"),
    [
        ("{tool = 'skill_load', skill_name = 'deploy'}", {"deploy": "denied", "release": None}),
        ("{tool = 'skill_load'}", {"deploy": "denied", "release": "denied"}),
        ("{tool = 'skill_run', skill_name = 'deploy'}", {"deploy": None, "release": None}),
        ("{tool = 'skill_load', skill_name = 'dep'}", {"deploy": None, "release": None}),
    ],
)
def test_a_skill_that_may_not_be_loaded_is_denied(machine: Machine, rule: str, hidden: dict[str, str | None]) -> None:
    for name in hidden:
        write_skill(machine.home / ".agents/skills", name)
    machine.configure(f"permissions.deny = [{rule}]\n")
    assert {skill.name: skill.hidden for skill in machine.catalog().skills} == hidden


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ("true", "disable-model-invocation"),
        ("'true'", "disable-model-invocation"),
        ("yes", "disable-model-invocation"),
        ("1", "disable-model-invocation"),
        ("false", None),
        ("no", None),
        ("", None),
    ],
)
def test_a_skill_can_hide_itself_from_models(machine: Machine, value: str, hidden: str | None) -> None:
    text = f"---\nname: deploy\ndescription: D.\ndisable-model-invocation: {value}\n---\n"
    write_skill(machine.repo / ".agents/skills", "deploy", text)
    assert [skill.hidden for skill in machine.catalog().skills] == [hidden]


def test_of_several_reasons_the_users_own_choice_is_named_first(machine: Machine) -> None:
    text = "---\nname: {0}\ndescription: D.\ndisable-model-invocation: true\n---\n"
    for name in ("a", "b", "c", "d"):
        root = machine.home if name in "cd" else machine.repo
        write_skill(root / ".agents/skills", name, text.format(name))
    names = ", ".join(f"{{tool='skill_load', skill_name='{name}'}}" for name in "abc")
    machine.configure(f"skills.disabled = ['a']\npermissions.deny = [{names}]\n")
    assert [(skill.name, skill.hidden) for skill in machine.catalog(trust="ask").skills] == [
        ("a", "disabled"),
        ("b", "untrusted"),
        ("c", "denied"),
        ("d", "disable-model-invocation"),
    ]


@pytest.mark.parametrize("profile", ["standard", "strict", "rip"])
@pytest.mark.parametrize("why", ["disabled", "untrusted"])
def test_a_hidden_skill_never_shadows_one_that_is_not(machine: Machine, profile: str, why: str) -> None:
    near = write_skill(machine.repo / ".agents/skills", "deploy")
    far = write_skill(machine.home / ".agents/skills", "deploy")
    if why == "disabled":
        machine.configure(f"skills.disabled = ['{near}']\n")

    catalog = machine.catalog(profile, trust="ask" if why == "untrusted" else "all")

    assert [(skill.path, skill.hidden) for skill in catalog.skills] == [(str(far), None)]
    assert catalog.shadowed == (Shadowed("deploy", str(near), str(far), same_file=False),)


def test_of_several_that_are_all_hidden_the_first_stays(machine: Machine) -> None:
    near = write_skill(machine.repo / ".agents/skills", "deploy")
    far = write_skill(machine.home / ".agents/skills", "deploy")
    machine.configure("permissions.deny = [{tool = 'skill_load', skill_name = 'deploy'}]\n")

    catalog = machine.catalog()

    assert [(skill.path, skill.hidden) for skill in catalog.skills] == [(str(near), "denied")]
    assert catalog.shadowed == (Shadowed("deploy", str(far), str(near), same_file=False),)


def test_what_is_ignored_denied_or_disabled_is_so_in_every_spelling_of_the_name(machine: Machine) -> None:
    for near, far in [("Draft", "draft"), ("build", "Build"), ("test", "Ｔest")]:
        write_skill(machine.repo / ".agents/skills", near, folder=f"near-{near}")
        write_skill(machine.home / ".agents/skills", far, folder=f"far-{far}")
    machine.configure(
        "skills.ignored = ['Draft']\nskills.disabled = ['tESt']\n"
        "permissions.deny = [{tool = 'skill_load', skill_name = 'build'}]\n"
    )

    catalog = machine.catalog()

    assert [(skill.name, skill.scope, skill.hidden) for skill in catalog.skills] == [
        ("build", "project", "denied"),
        ("test", "project", "disabled"),
    ]
    assert [entry.name for entry in catalog.shadowed] == ["Build", "Ｔest"]
    assert left_out(catalog) == [("Draft", "ignored"), ("draft", "ignored")]


def test_a_hidden_skill_stays_in_the_catalog_when_it_is_alone(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (skill,) = machine.catalog(trust="ask").skills
    assert (skill.name, skill.enabled, skill.trusted, skill.hidden) == ("deploy", True, False, "untrusted")


# Braces -------------------------------------------------------------------------------------------


@pytest.mark.req("O-28", "O-29")
@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("{deploy,review}", ["deploy", "review"]),
        ("{deploy,rev*}", ["deploy", "revert", "review"]),
        ("re{v{iew,ert},ally}", ["revert", "review"]),
        ("rev{ert,}", ["revert"]),
        ("{,x-}deploy", ["deploy"]),
        ("{a,b", []),
        ("{deploy}", ["deploy"]),
        ("{[a-d]*,?e?i*}", ["deploy", "review"]),
        ("*{y,w}", ["deploy", "review"]),
        ("{}deploy{}", ["deploy"]),
        ("{*,*}" * 400, ["deploy", "revert", "review"]),
        ("{a,b}" * 5000, []),
        ("{" * 20_000, []),
        ("{" * 3000 + "deploy" + "}" * 3000, []),
    ],
)
def test_braces_in_a_pattern_stand_for_alternatives(machine: Machine, pattern: str, matched: list[str]) -> None:
    for name in ("deploy", "review", "revert"):
        write_skill(machine.repo / ".omp/skills", name)

    ignored = machine.catalog("omp", config={"skills": {"ignored": [pattern]}})
    included = machine.catalog("omp", config={"skills": {"include": [pattern]}})

    assert sorted(entry.name for entry in ignored.filtered) == matched
    assert sorted(skill.name for skill in included.skills) == matched
