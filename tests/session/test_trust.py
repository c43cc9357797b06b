"""Trust: whose skills are visible to a model, and which settings of a project's own file count."""

from typing import Any

import pytest
from support.trees import Machine, write_skill

import skillshelf


def hidden_by_scope(machine: Machine, trust: str, **options: Any) -> dict[str, str | None]:
    """The reason why each skill is hidden, by scope; None for one that is not."""
    return {skill.scope: skill.hidden for skill in machine.catalog(trust=trust, **options).skills}


# Which skills -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trust", "trusted_folder", "project"),
    [
        ("all", False, None),
        ("ask", False, "untrusted"),
        ("user", False, "untrusted"),
        ("all", True, None),
        ("ask", True, None),
        ("user", True, "untrusted"),
    ],
)
def test_what_the_user_chose_is_trusted_and_a_project_when_the_mode_says_so(
    machine: Machine, trust: str, trusted_folder: bool, project: str | None
) -> None:
    for place in ("repo/.agents/skills", "home/.agents/skills", "env", "custom"):
        write_skill(machine.base / place, place.split("/")[0])
    machine.env = {"AGENT_SKILLS_PATH": str(machine.base / "env")}
    folders = f"'{machine.repo}'" if trusted_folder else ""
    machine.configure(f"skills.custom_directories = ['{machine.base}/custom']\ntrust.folders = [{folders}]\n")

    assert hidden_by_scope(machine, trust) == {"env": None, "project": project, "custom": None, "user": None}


def test_python_trusts_all_unless_told_otherwise(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    assert [(skill.trusted, skill.hidden) for skill in machine.catalog().skills] == [(True, None)]


def test_the_command_shows_a_person_what_is_held_back_from_models(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (skill,) = machine.run_json("list")["skills"]
    assert (skill["name"], skill["trusted"], skill["hidden"]) == ("deploy", False, "untrusted")
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    (skill,) = machine.run_json("list")["skills"]
    assert (skill["name"], skill["trusted"], skill["hidden"]) == ("deploy", True, None)


# Which folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "trusted"),
    [
        ("{base}/repo", True),
        ("{base}/repo/", True),
        ("{base}", True),
        ("/", True),
        ("~/../repo", True),
        ("{base}/rep", False),
        ("{base}/repo2", False),
        ("{base}/repo/sub", False),
        ("{base}/home", False),
        ("{base}/REPO/elsewhere", False),
        ("", False),
    ],
)
def test_a_folder_is_trusted_with_everything_below_it_and_never_by_the_start_of_its_name(
    machine: Machine, folder: str, trusted: bool
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    machine.configure(f"trust.folders = ['{folder.format(base=machine.base)}']\n")
    assert hidden_by_scope(machine, "ask") == {"project": None if trusted else "untrusted"}


def test_trust_in_a_subfolder_covers_the_roots_below_it_only(machine: Machine) -> None:
    here = machine.repo / "vetted"
    write_skill(machine.repo / ".agents/skills", "top")
    write_skill(here / ".agents/skills", "near")
    machine.configure(f"trust.folders = ['{here}']\n")
    skills = machine.catalog(trust="ask", cwd=here).skills
    assert [(skill.name, skill.hidden) for skill in skills] == [("near", None), ("top", "untrusted")]


def test_a_trusted_folder_is_known_by_its_real_path(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.base / "work").symlink_to(machine.repo)
    machine.configure(f"trust.folders = ['{machine.base}/work']\n")
    assert hidden_by_scope(machine, "ask") == {"project": None}


def test_a_link_in_a_trusted_folder_does_not_make_its_target_trusted(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    vetted = machine.base / "vetted"
    vetted.mkdir()
    (vetted / "clone").symlink_to(machine.repo)
    machine.configure(f"trust.folders = ['{vetted}']\n")
    assert hidden_by_scope(machine, "ask", cwd=vetted / "clone") == {"project": "untrusted"}


def test_a_users_skill_stays_trusted_when_an_untrusted_project_links_to_it(machine: Machine) -> None:
    path = write_skill(machine.home / ".agents/skills", "deploy")
    (machine.repo / ".agents/skills").mkdir(parents=True)
    (machine.repo / ".agents/skills/deploy").symlink_to(path.parent)

    catalog = machine.catalog(trust="ask")

    assert [(skill.path, skill.trusted) for skill in catalog.skills] == [(str(path), True)]
    assert [(entry.path, entry.same_file) for entry in catalog.shadowed] == [
        (f"{machine.repo}/.agents/skills/deploy/SKILL.md", True)
    ]


# The project's own file ---------------------------------------------------------------------------

WISHES = {
    "skills.custom_directories": "skills.custom_directories = ['tools']\n",
    "permissions.allow": "permissions.allow = [{tool = 'skill_run'}]\n",
    "permissions.grant_from_skills": "permissions.grant_from_skills = ['deploy']\n",
    "profiles.lab": "[profiles.lab]\nmax_depth = 1\n",
    "trust.folders": "trust.folders = ['.']\n",
    "profile": "profile = 'mycodeagent'\n",
    "skills.enabled": "skills.enabled = false\n",
    "skills.include": "skills.include = ['nothing']\n",
    "skills.commands": "skills.commands = false\n",
    "skills.initial.max_tokens": "skills.initial.max_tokens = 1\n",
    "skills.search.max_limit": "skills.search.max_limit = 1\n",
    "skills.sources.enable_pi_user": "skills.enablePiUser = false\n",
    "permissions.run.network": "permissions.run.network = true\n",
    "skills.no_such_key": "skills.no_such_key = 1\n",
}

MORE = ("skills.custom_directories", "permissions.allow", "permissions.grant_from_skills", "trust.folders")


@pytest.mark.parametrize("key", list(WISHES))
@pytest.mark.parametrize("file", ["skillshelf.toml", "pyproject.toml"])
def test_a_strangers_file_cannot_ask_for_more_and_the_warning_says_so(machine: Machine, key: str, file: str) -> None:
    path = machine.repo / file
    text = WISHES[key]
    if file == "pyproject.toml":
        prefix = "tool.skillshelf."
        text = text.replace("[profiles", f"[{prefix}profiles") if "[profiles" in text else prefix + text
    path.write_text("# A file of the project\n" + text)
    without = machine.shelf(trust="ask", config={}).settings

    settings = machine.shelf(trust="ask").settings

    assert settings._replace(warnings=(), files=()) == without._replace(files=())
    (warning,) = settings.warnings
    assert (warning.path, warning.rule, warning.line) == (str(path), "config-untrusted", 2)
    assert f"`{key}`" in warning.message
    assert f"skillshelf trust {machine.repo}" in warning.message
    assert machine.catalog(trust="ask").warnings == (warning,)


def test_a_strangers_file_cannot_make_its_own_folder_trusted(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    (machine.repo / "skillshelf.toml").write_text("trust.folders = ['.', '/']\n")
    assert hidden_by_scope(machine, "ask") == {"project": "untrusted"}


@pytest.mark.parametrize("trust", ["ask", "all"])
def test_a_trusted_projects_file_counts_except_for_trust_itself(machine: Machine, trust: str) -> None:
    write_skill(machine.repo / "tools", "from-custom")
    (machine.repo / "skillshelf.toml").write_text("".join(WISHES[key] for key in (*MORE, "profiles.lab")))
    machine.configure(f"trust.folders = ['{machine.repo}']\n" if trust == "ask" else "")

    shelf = machine.shelf("lab", trust=trust)

    assert [(skill.name, skill.scope, skill.hidden) for skill in shelf.catalog.skills] == [
        ("from-custom", "custom", None)
    ]
    assert (shelf.profile.name, shelf.profile.max_depth) == ("lab", 1)
    assert [rule.tool for rule in shelf.settings.allow] == ["skill_run"]
    assert shelf.settings.grant_from_skills == ("deploy",)
    assert shelf.settings.trusted_folders == ((str(machine.repo),) if trust == "ask" else ())
    assert [(warning.rule, "`trust.folders`" in warning.message) for warning in shelf.settings.warnings] == [
        ("config-untrusted", True)
    ]


def test_the_mode_user_trusts_no_projects_file(machine: Machine) -> None:
    (machine.repo / "skillshelf.toml").write_text(WISHES["skills.custom_directories"])
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    assert machine.shelf(trust="user").settings.custom_directories == ()
    assert machine.shelf(trust="ask").settings.custom_directories == (f"{machine.repo}/tools",)


def test_trust_is_asked_for_the_folder_of_the_file_and_not_for_the_working_directory(machine: Machine) -> None:
    here = machine.repo / "vetted"
    here.mkdir()
    (machine.repo / "skillshelf.toml").write_text(WISHES["skills.custom_directories"])
    machine.configure(f"trust.folders = ['{here}']\n")
    settings = machine.shelf(trust="ask", cwd=here).settings
    assert settings.custom_directories == ()
    assert [warning.rule for warning in settings.warnings] == ["config-untrusted"]


@pytest.mark.parametrize(
    ("user", "project", "setting", "value"),
    [
        ("skills.enabled = false", "skills.enabled = true", "enabled", True),
        ("skills.include = ['a']", "skills.include = ['*']", "include", ("*",)),
        ("", "skills.initial.max_entries = 5000", "max_entries", 5000),
        ("skills.enablePiUser = false", "skills.enablePiUser = true", "sources", {"enable_pi_user": True}),
    ],
)
def test_a_trusted_projects_file_wins_over_the_users(
    machine: Machine, user: str, project: str, setting: str, value: object
) -> None:
    machine.configure(f"{user}\ntrust.folders = ['{machine.repo}']\n")
    (machine.repo / "skillshelf.toml").write_text(project + "\n")
    assert getattr(machine.shelf(trust="ask").settings, setting) == value


def test_a_strangers_file_cannot_lift_a_denial_of_the_user(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    machine.configure("permissions.deny = [{tool = 'skill_load', skill_name = 'deploy'}]\n")
    (machine.repo / "skillshelf.toml").write_text("permissions.deny = []\n")
    for trust in ("ask", "all"):
        assert hidden_by_scope(machine, trust) == {"user": "denied"}


def test_a_file_named_by_the_user_is_the_users_even_in_a_strangers_folder(machine: Machine) -> None:
    file = machine.repo / "skillshelf.toml"
    file.write_text(WISHES["skills.custom_directories"])
    settings = machine.shelf(trust="ask", config=file).settings
    assert settings.custom_directories == (f"{machine.repo}/tools",)
    assert settings.warnings == ()


def test_trust_has_three_modes(machine: Machine) -> None:
    with pytest.raises((ValueError, TypeError, skillshelf.SkillError)):
        machine.catalog(trust="everyone")


def test_a_trusted_folder_that_became_a_link_out_of_its_repository_is_not_trusted(machine: Machine) -> None:
    other = machine.base / "other"
    (other / ".git").mkdir(parents=True)
    write_skill(other / ".agents/skills", "stranger")
    (machine.repo / "pkg").symlink_to(machine.base)
    (machine.repo / "inside").mkdir()
    (machine.repo / "own").symlink_to("inside")
    machine.configure(f'trust.folders = ["{machine.repo}/pkg", "{machine.repo}/own"]')

    shelf = machine.shelf(trust="ask", cwd=other)

    assert [skill.trusted for skill in shelf.catalog.skills] == [False]
    assert shelf.settings.trusted_folders == (str(machine.repo / "inside"),)
    assert [(warning.rule, "is a link out" in warning.message) for warning in shelf.catalog.warnings] == [
        ("config-untrusted", True)
    ]


def test_a_link_of_the_home_folder_may_lead_to_a_trusted_folder(machine: Machine) -> None:
    (machine.home / ".git").mkdir()
    (machine.home / "work").symlink_to(machine.repo)
    write_skill(machine.repo / ".agents/skills", "own")
    machine.configure('trust.folders = ["~/work"]')

    assert [skill.trusted for skill in machine.catalog(trust="ask").skills] == [True]
