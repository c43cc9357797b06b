"""Custom profiles in the configuration: the fields they may change, and the errors for invalid ones."""

from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf import ConfigurationError
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.profile import Profile, profile_to_dict

COUNT = "must be a whole number of at least 1"


def lab(**fields: Any) -> dict[str, Any]:
    """Return a configuration with a profile `lab` of these fields."""
    return {"profiles": {"lab": fields}}


# What they are ------------------------------------------------------------------------------------


def test_an_own_profile_is_the_one_it_extends_with_its_fields_changed(machine: Machine) -> None:
    path = machine.configure("[profiles.lab]\nextends = 'codelia'\nmax_depth = 12\ncollision = 'last'\n")
    profile = machine.shelf("lab").profile
    assert profile == SYSTEMS["codelia"]._replace(name="lab", evidence=str(path), max_depth=12, collision="last")


def test_without_extends_it_starts_from_the_standard(machine: Machine) -> None:
    profile = machine.shelf("lab", config=lab(max_depth=2)).profile
    assert profile == SYSTEMS["standard"]._replace(name="lab", evidence=profile.evidence, max_depth=2)


def test_an_own_profile_can_extend_another_own_one(machine: Machine) -> None:
    machine.configure("[profiles.base]\nmax_depth = 3\n[profiles.lab]\nextends = 'base'\nhidden = 'skip'\n")
    profile = machine.shelf("lab").profile
    assert (profile.max_depth, profile.hidden) == (3, "skip")


def test_an_own_profile_of_a_trusted_project_can_extend_one_of_the_user(machine: Machine) -> None:
    machine.configure("[profiles.mine]\nmax_depth = 3\n")
    (machine.repo / "skillshelf.toml").write_text("profile = 'ours'\n[profiles.ours]\nextends = 'mine'\n")
    shelf = machine.shelf()
    assert (shelf.profile.name, shelf.profile.max_depth) == ("ours", 3)


def test_fields_may_be_spelled_as_the_seeds_spell_keys(machine: Machine) -> None:
    assert machine.shelf("lab", config=lab(maxDepth=2, skipDirectories=["build"])).profile.max_depth == 2


def test_the_configuration_can_choose_an_own_profile(machine: Machine) -> None:
    machine.configure("profile = 'lab'\n[profiles.lab]\n")
    assert machine.catalog().profile == "lab"


def test_the_command_knows_own_profiles(machine: Machine) -> None:
    machine.configure("[profiles.lab]\nextends = 'omp'\nmax_depth = 3\n")
    shown = machine.run_json("profile", "lab")
    assert list(shown) == list(Profile._fields)
    assert (shown["name"], shown["max_depth"], shown["collision"]) == ("lab", 3, "first")
    assert machine.run_json("list", "--profile", "lab")["profile"] == "lab"
    assert machine.run_json("profile") == [*SYSTEMS, "lab"]


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_field_of_a_profile_can_be_written_back(machine: Machine, name: str) -> None:
    # What `profile NAME --json` prints is a table that `[profiles.copy]` accepts, and gives the same profile.
    fields = {
        field: value
        for field, value in profile_to_dict(SYSTEMS[name]).items()
        if field not in ("name", "evidence") and value is not None
    }
    fields["roots"] = [
        {field: value for field, value in root.items() if value is not None and (field != "priority" or value)}
        for root in fields["roots"]
    ]
    profile = machine.shelf("copy", config={"profiles": {"copy": {"extends": name, **fields}}}).profile
    assert profile == SYSTEMS[name]._replace(name="copy", evidence=profile.evidence)


# What the fields do -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collision", "kept"),
    [("first", ["repo"]), ("last", ["home"]), ("keep-all", ["repo", "home"])],
)
def test_collision_says_who_keeps_a_name(machine: Machine, collision: str, kept: list[str]) -> None:
    for place in (machine.repo, machine.home):
        write_skill(place / ".agents/skills", "deploy")
    skills = machine.catalog("lab", config=lab(collision=collision)).skills
    assert [skill.path.split("/")[-5] for skill in skills] == kept


def test_max_depth_says_how_deep_a_skill_may_lie(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "twelfth", folder="/".join([*map(str, range(11)), "twelfth"]))
    write_skill(root, "thirteenth", folder="/".join([*map(str, range(12)), "thirteenth"]))
    catalog = machine.catalog("lab", config=lab(max_depth=12))
    assert [skill.name for skill in catalog.skills] == ["twelfth"]
    assert [(entry.name, entry.reason) for entry in catalog.filtered] == [("thirteenth", "too-deep")]


@pytest.mark.parametrize(
    ("weight", "skills", "errors", "warnings"),
    [
        ("off", ["other"], [], []),
        ("info", ["other"], [], []),
        ("warn", ["other"], [], ["name-directory"]),
        ("reject", [], ["name-directory"], []),
    ],
)
def test_a_rule_weighs_what_the_profile_says(
    machine: Machine, weight: str, skills: list[str], errors: list[str], warnings: list[str]
) -> None:
    write_skill(machine.repo / ".agents/skills", "other", folder="folder")
    catalog = machine.catalog("lab", config=lab(rules={"name-directory": weight}))
    assert (
        [skill.name for skill in catalog.skills],
        [error.rule for error in catalog.errors],
        [warning.rule for warning in catalog.warnings],
    ) == (skills, errors, warnings)


def test_rules_that_are_not_named_keep_the_weight_of_the_base(machine: Machine) -> None:
    profile = machine.shelf("lab", config=lab(extends="strict", rules={"name-length": "off"})).profile
    assert profile.rules == {**SYSTEMS["strict"].rules, "name-length": "off"}


def test_roots_replace_those_of_the_base(machine: Machine) -> None:
    for place in ("repo/.lab", "home/lab/skills", "repo/.agents/skills", "from-env"):
        write_skill(machine.base / place, place.replace("/", "-").replace(".", ""))
    machine.env = {"LAB_PATH": str(machine.base / "from-env")}
    machine.configure(
        "[[profiles.lab.roots]]\nkind = 'user'\nbase = 'home'\npaths = ['lab/skills']\n"
        "[[profiles.lab.roots]]\nkind = 'project'\nbase = 'chain'\npaths = ['.lab']\n"
        "[[profiles.lab.roots]]\nkind = 'env'\nbase = 'env'\npaths = ['LAB_PATH']\n"
    )
    catalog = machine.catalog("lab")
    assert [(root.scope, root.path) for root in catalog.roots] == [
        ("user", f"{machine.home}/lab/skills"),
        ("project", f"{machine.repo}/.lab"),
        ("env", f"{machine.base}/from-env"),
    ]
    assert [skill.name for skill in catalog.skills] == ["from-env", "home-lab-skills", "repo-lab"]


@pytest.mark.req("O-22")
def test_roots_of_a_higher_priority_come_first_and_equal_ones_as_they_are_written(machine: Machine) -> None:
    names: dict[str, dict[str, int]] = {
        "none": {},
        "low": {"priority": 10},
        "high": {"priority": 90},
        "also-high": {"priority": 90},
    }
    roots = [
        {"kind": "project", "base": "cwd", "paths": [name], "provider": name, **priority}
        for name, priority in names.items()
    ]
    for name in names:
        write_skill(machine.repo / name, "deploy")
    catalog = machine.catalog("lab", config=lab(roots=roots))
    assert [root.path.rpartition("/")[2] for root in catalog.roots] == ["high", "also-high", "low", "none"]
    assert [skill.source for skill in catalog.skills] == ["high:project"]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, [".hidden", "group", "outer"]),
        ({"hidden": "skip"}, ["group", "outer"]),
        ({"skip_directories": ["group"]}, [".hidden", "outer", "packaged"]),
        ({"below_skill": "enter"}, [".hidden", "group", "inner", "outer"]),
        ({"max_depth": 1}, [".hidden", "outer"]),
    ],
)
def test_a_field_of_the_walk_changes_what_is_found(machine: Machine, fields: dict[str, Any], names: list[str]) -> None:
    folders = {".hidden": ".hidden", "group": "group/group", "outer": "outer", "inner": "outer/inner"}
    for name, folder in {**folders, "packaged": "node_modules/packaged"}.items():
        write_skill(machine.repo / ".agents/skills", name, folder=folder)
    assert machine.names("lab", config=lab(**fields)) == names


def test_a_name_can_be_taken_from_the_folder(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "declared", folder="folder")
    assert machine.names("lab", config=lab(name_source="frontmatter")) == ["declared"]
    assert machine.names("lab", config=lab(name_source="directory")) == ["folder"]


def test_scope_labels_name_the_kinds_of_root(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    config = lab(scope_labels={"project": "repo", "user": "custom"})
    catalog = machine.catalog("lab", config=config)
    assert [skill.scope for skill in catalog.skills] == ["repo"]
    assert list(dict.fromkeys(root.scope for root in catalog.roots)) == ["repo", "custom"]


def test_simple_reading_takes_lines_and_nothing_else(machine: Machine) -> None:
    text = "---\nname: deploy\ndescription: Ships: it.\n---\n"
    write_skill(machine.repo / ".agents/skills", "deploy", text)
    full = machine.catalog("standard")
    simple = machine.catalog("lab", config=lab(yaml_mode="simple"))
    assert [warning.rule for warning in full.warnings] == ["yaml-colon"]
    assert [(skill.description, simple.warnings) for skill in simple.skills] == [("Ships: it.", ())]


@pytest.mark.parametrize(
    ("links", "listed", "rule"),
    [("follow", True, None), ("contained", False, "link-outside"), ("never", False, "link-skipped")],
)
def test_links_are_followed_as_the_profile_says(machine: Machine, links: str, listed: bool, rule: str | None) -> None:
    target = write_skill(machine.base / "elsewhere", "deploy").parent
    (machine.repo / ".agents/skills").mkdir(parents=True)
    (machine.repo / ".agents/skills/deploy").symlink_to(target)
    catalog = machine.catalog("lab", config=lab(other_links=links))
    assert [skill.name for skill in catalog.skills] == (["deploy"] if listed else [])
    assert [error.rule for error in catalog.errors] == ([rule] if rule else [])


# Invalid fields -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "key", "what"),
    [
        ("extends = 'labs'", 2, "extends", "names an unknown profile 'labs'"),
        ("extends = 5", 2, "extends", "must be text"),
        ("extends = []", 2, "extends", "must be text"),
        ("max_dept = 3", 2, "max_dept", "is not a field of a profile"),
        ("name = 'other'", 2, "name", "is not a field of a profile"),
        ("max_depth = 'deep'", 2, "max_depth", COUNT),
        ("max_depth = 0", 2, "max_depth", COUNT),
        ("max_depth = true", 2, "max_depth", COUNT),
        ("max_directories = -1", 2, "max_directories", COUNT),
        ("collision = 'newest'", 2, "collision", "must be one of first, last, keep-all"),
        ("collision = ['first']", 2, "collision", "must be one of first, last, keep-all"),
        ("hidden = true", 2, "hidden", "must be one of enter, skip"),
        ("other_links = 'always'", 2, "other_links", "must be one of never, contained, follow"),
        ("markers = '.git'", 2, "markers", "must be a list"),
        ("markers = ['.git', 5]", 2, "markers[1]", "must be text"),
        ("filters = ['nonsense']", 2, "filters[0]", "must be one of source, ignored, include"),
        ("order = ['age']", 2, "order[0]", "must be one of name, root, scope, path"),
        ("scope_labels = ['x']", 2, "scope_labels", "must be a table"),
        ("scope_labels = {project = 5}", 2, "scope_labels.project", "must be one of repo, project, user"),
        ("scope_labels = {project = 'system'}", 2, "scope_labels.project", "must be one of repo, project, user"),
        ("name_pattern = '('", 2, "name_pattern", "is not a valid regular expression"),
        ("summary = 5", 2, "summary", "must be text"),
        ("rules = []", 2, "rules", "must be a table"),
        ("rules = {name-color = 'warn'}", 2, "rules.name-color", "is not a rule"),
        (
            "[profiles.lab.rules]\nname-length = 'error'",
            3,
            "rules.name-length",
            "must be one of off, info, warn",
        ),
        ("[profiles.lab.rules]\n\nname-address = 'warn'", 4, "rules.name-address", "cannot be changed"),
        ("roots = 'here'", 2, "roots", "must be a list"),
        ("roots = ['here']", 2, "roots[0]", "must be a table"),
        ("roots = [{base = 'home'}]", 2, "roots[0].kind", "is missing"),
        ("roots = [{kind = 'user'}]", 2, "roots[0].base", "is missing"),
        ("roots = [{kind = 'team', base = 'home'}]", 2, "roots[0].kind", "must be one of env, project, custom, user"),
        ("roots = [{kind = 'user', base = 'moon'}]", 2, "roots[0].base", "must be one of env"),
        (
            "roots = [{kind = 'user', base = 'home', path = 'x'}]",
            2,
            "roots[0].path",
            "is not a known member",
        ),
        ("roots = [{kind = 'user', base = 'home', paths = 'x'}]", 2, "roots[0].paths", "must be a list"),
        (
            "roots = [{kind = 'user', base = 'home', priority = 'x'}]",
            2,
            "roots[0].priority",
            "whole number of at least 0",
        ),
        ("roots = [{kind = 'user', base = 'home', provider = 5}]", 2, "roots[0].provider", "must be text"),
        ("roots = [{kind = 'user', base = 'home', switch = 'x'}]", 2, "roots[0].switch", "must be one of"),
        ("roots = [{kind = 'user', base = 'home', description = 'x'}]", 2, "roots[0].description", "must be one of"),
    ],
)
def test_an_invalid_field_is_an_error_with_file_line_and_field(
    machine: Machine, text: str, line: int, key: str, what: str
) -> None:
    path = machine.configure(f"[profiles.lab]\n{text}\n")
    with pytest.raises(ConfigurationError) as caught:
        machine.shelf()
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: `profiles.lab.{key}` ")
    assert what in message


def test_a_profile_that_is_wrong_says_so_even_if_nobody_asks_for_it(machine: Machine) -> None:
    machine.configure("[profiles.lab]\ncollision = 'newest'\n")
    done = machine.run("list", "--profile", "standard")
    assert (done.returncode, done.stdout) == (2, "")
    assert "`profiles.lab.collision` must be one of first, last, keep-all" in done.stderr


@pytest.mark.parametrize("rule", ["name-address", "encoding", "link-outside", "walk-limit", "yaml-alias", "internal"])
def test_what_is_unsafe_cannot_be_allowed(machine: Machine, rule: str) -> None:
    for weight in ("off", "info", "warn"):
        with pytest.raises(ConfigurationError, match=f"`profiles.lab.rules.{rule}` cannot be changed"):
            machine.shelf(config=lab(rules={rule: weight}))
    assert machine.shelf("lab", config=lab(rules={rule: "reject"})).profile.rules[rule] == "reject"
