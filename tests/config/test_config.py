"""Configuration files: which ones are read, the effect of each key, and the errors for wrong ones."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

import skillshelf
from skillshelf import ConfigurationError
from skillshelf.config.settings import KEYS, Settings

COUNT = "must be a whole number of at least 1"


def settings_of(machine: Machine, **options: Any) -> Settings:
    """Return the settings of the repository or of a folder in it."""
    return machine.shelf(**options).settings


def failure(machine: Machine, **options: Any) -> str:
    """Return the error message for a wrong configuration."""
    with pytest.raises(ConfigurationError) as caught:
        machine.shelf(**options)
    return str(caught.value)


# What holds without any file ----------------------------------------------------------------------


@pytest.mark.req("C-96", "C-97", "C-98")
def test_the_defaults_hold_where_no_file_says_otherwise(machine: Machine) -> None:
    assert settings_of(machine) == Settings(
        profile=None,
        enabled=True,
        disabled=(),
        ignored=(),
        include=(),
        custom_directories=(),
        commands=True,
        sources={},
        max_entries=200,
        max_bytes=32768,
        max_tokens=2000,
        max_chars=12000,
        default_limit=8,
        max_limit=50,
        allow=(),
        deny=(),
        grant_from_skills=(),
        trusted_folders=(),
        profiles={},
        warnings=(),
    )


# Which files --------------------------------------------------------------------------------------


def test_the_projects_file_wins_over_the_users_key_by_key(machine: Machine) -> None:
    machine.configure("[skills.initial]\nmax_entries = 10\nmax_bytes = 1000\n")
    (machine.repo / "skillshelf.toml").write_text("[skills.initial]\nmax_entries = 20\n")
    settings = settings_of(machine)
    assert (settings.max_entries, settings.max_bytes) == (20, 1000)


@pytest.mark.parametrize("key", ["disabled", "ignored"])
def test_lists_that_leave_skills_out_add_up(machine: Machine, key: str) -> None:
    machine.configure(f"skills.{key} = ['mine']\n")
    (machine.repo / "skillshelf.toml").write_text(f"skills.{key} = ['theirs']\n")
    assert getattr(settings_of(machine), key) == ("mine", "theirs")


def test_both_spellings_of_a_list_in_one_file_add_up(machine: Machine) -> None:
    machine.configure("[skills]\nignored = ['one']\nignoredSkills = ['two']\n")
    assert settings_of(machine).ignored == ("one", "two")


def test_the_nearest_project_file_is_the_one(machine: Machine) -> None:
    here = machine.repo / "a" / "b"
    here.mkdir(parents=True)
    (machine.base / "skillshelf.toml").write_text("profile = 'above-the-repository'\n")
    (machine.repo / "skillshelf.toml").write_text("profile = 'strict'\nskills.initial.max_entries = 5\n")
    assert machine.shelf(cwd=here).profile.name == "strict"
    (machine.repo / "a" / "skillshelf.toml").write_text("profile = 'codelia'\n")
    shelf = machine.shelf(cwd=here)
    assert (shelf.profile.name, shelf.settings.max_entries) == ("codelia", 200)


def test_without_a_repository_only_the_working_directory_has_a_project_file(machine: Machine) -> None:
    here = machine.base / "plain" / "folder"
    here.mkdir(parents=True)
    (here.parent / "skillshelf.toml").write_text("profile = 'strict'\n")
    assert machine.shelf(cwd=here).profile.name == "standard"


@pytest.mark.parametrize(
    "text",
    [
        "[project]\nname = 'x'\n[tool.skillshelf]\nprofile = 'strict'\n",
        "tool.skillshelf.profile = 'strict'\n",
        "[tool]\nskillshelf.profile = 'strict'\n",
        "[tool]\nskillshelf = {profile = 'strict'}\n",
        "[tool.'skillshelf']\nprofile = 'strict'\n",
        "[ tool . skillshelf ]\nprofile = 'strict'\n",
    ],
)
def test_a_table_in_pyproject_is_a_project_file_however_toml_spells_it(machine: Machine, text: str) -> None:
    (machine.repo / "pyproject.toml").write_text(text)
    assert machine.shelf().profile.name == "strict"


def test_a_file_of_our_own_wins_over_a_nearer_pyproject(machine: Machine) -> None:
    here = machine.repo / "app"
    here.mkdir()
    (machine.repo / "skillshelf.toml").write_text("profile = 'codelia'\n")
    (here / "pyproject.toml").write_text("[tool.skillshelf]\nprofile = 'strict'\n")
    assert machine.shelf(cwd=here).profile.name == "codelia"


def test_a_pyproject_without_our_table_is_passed_on_the_way_up(machine: Machine) -> None:
    here = machine.repo / "app"
    here.mkdir()
    (machine.repo / "pyproject.toml").write_text("[tool.skillshelf]\nprofile = 'strict'\n")
    (here / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert machine.shelf(cwd=here).profile.name == "strict"


@pytest.mark.parametrize("text", ["this is = = not TOML", "[tool.black]\n", "tool = 5 # not tool.skillshelf\n"])
def test_a_pyproject_that_does_not_speak_of_us_is_nobodys_concern(machine: Machine, text: str) -> None:
    (machine.repo / "pyproject.toml").write_text(text)
    assert machine.shelf().profile.name == "standard"


@pytest.mark.parametrize("text", ["tool.skillshelf = 5\n", "[[tool.skillshelf]]\n"])
def test_a_pyproject_with_something_else_in_our_place_is_an_error(machine: Machine, text: str) -> None:
    path = machine.repo / "pyproject.toml"
    path.write_text(text)
    assert failure(machine).startswith(f"{path}, line 1: `tool.skillshelf` ")


def test_a_file_named_on_the_command_line_replaces_both(machine: Machine) -> None:
    machine.configure("skills.ignored = ['mine']\nprofile = 'strict'\n")
    (machine.repo / "skillshelf.toml").write_text("skills.ignored = ['theirs']\n")
    (machine.repo / "only.toml").write_text("skills.initial.max_entries = 3\n")
    settings = settings_of(machine, config="only.toml")
    assert (settings.ignored, settings.profile, settings.max_entries) == ((), None, 3)
    assert machine.run_json("list", "--config", "only.toml")["profile"] == "standard"
    assert machine.run_json("list")["profile"] == "strict"


def test_the_profile_of_the_call_wins_over_the_one_of_the_file(machine: Machine) -> None:
    machine.configure("profile = 'strict'\n")
    assert machine.shelf().profile.name == "strict"
    assert machine.shelf("codelia").profile.name == "codelia"
    assert machine.run_json("list", "--profile", "omp")["profile"] == "omp"


def test_a_file_that_was_named_and_is_missing_is_an_error(machine: Machine) -> None:
    assert failure(machine, config="missing.toml").startswith(f"{machine.repo}/missing.toml: cannot be read")
    done = machine.run("list", "--config", "missing.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"skillshelf: {machine.repo}/missing.toml: cannot be read")


def test_the_users_own_file_may_be_a_link(machine: Machine) -> None:
    path = machine.configure("")
    (machine.home / "dotfile.toml").write_text("profile = 'strict'\n")
    path.unlink()
    path.symlink_to(machine.home / "dotfile.toml")
    assert machine.shelf().profile.name == "strict"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a folder of their own for configuration")
@pytest.mark.parametrize(("given", "expected"), [("{base}/xdg", "strict"), ("relative", "codelia"), ("", "codelia")])
def test_on_linux_the_users_file_is_where_xdg_says(machine: Machine, given: str, expected: str) -> None:
    machine.configure("profile = 'codelia'\n")
    other = machine.base / "xdg" / "skillshelf" / "config.toml"
    other.parent.mkdir(parents=True)
    other.write_text("profile = 'strict'\n")
    env = {"HOME": str(machine.home), "XDG_CONFIG_HOME": given.format(base=machine.base)}
    assert skillshelf.open_shelf(machine.repo, env=env).profile.name == expected


# Files that are no good ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["skillshelf.toml", "pyproject.toml"])
def test_a_projects_file_that_is_a_link_is_not_followed(machine: Machine, name: str) -> None:
    secret = machine.home / "secret.toml"
    secret.write_text("tool.skillshelf.token = 'abc'\ntoken = 'abc'\n")
    (machine.repo / name).symlink_to(secret)
    if name == "skillshelf.toml":
        message = failure(machine)
        assert message.startswith(f"{machine.repo}/skillshelf.toml: cannot be read")
        assert "abc" not in message
        assert "token" not in message
    else:
        assert machine.shelf().profile.name == "standard"


@pytest.mark.parametrize("name", ["skillshelf.toml", "pyproject.toml"])
def test_a_projects_file_that_is_a_pipe_does_not_hold_us_up(machine: Machine, name: str) -> None:
    os.mkfifo(machine.repo / name)
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    done = machine.run("list")
    assert done.returncode == (2 if name == "skillshelf.toml" else 0)
    if name == "skillshelf.toml":
        assert done.stderr.startswith(f"skillshelf: {machine.repo}/skillshelf.toml: not a regular file")


def test_a_folder_in_the_place_of_a_file_is_an_error(machine: Machine) -> None:
    (machine.repo / "skillshelf.toml").mkdir()
    assert failure(machine).startswith(f"{machine.repo}/skillshelf.toml: not a regular file")


def test_a_huge_file_is_refused_by_its_size(machine: Machine) -> None:
    path = machine.repo / "skillshelf.toml"
    path.write_text("profile = 'strict'\n#" + "x" * (1 << 20))
    assert failure(machine) == f"{path}: not a regular file of at most 1048576 bytes"


@pytest.mark.parametrize(
    "text",
    [
        b"profile = 'strict'\nskills = = 5\n",
        b"profile = 'strict'\nprofile = 'codelia'\n",
        b"profile = '\xff'\n",
        b"x = " + b"[" * 20_000 + b"]" * 20_000,
        b"x = " + b"{a=" * 20_000,
        b"a" + b".a" * 5_000 + b" = 1\n",
    ],
    ids=["syntax", "twice", "not UTF-8", "deep list", "deep table", "deep dotted key"],
)
def test_a_file_that_cannot_be_parsed_is_one_error_that_names_it(machine: Machine, text: bytes) -> None:
    path = machine.repo / "skillshelf.toml"
    path.write_bytes(text)
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    assert failure(machine).startswith(str(path))
    done = machine.run("list", "--json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_key_of_very_many_parts_does_not_hold_us_up(machine: Machine) -> None:
    # The parser of the standard library takes minutes for it: its time grows with the square of the parts.
    (machine.repo / "skillshelf.toml").write_text("a" + ".a" * 100_000 + " = 1\n")
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    done = machine.run("list")
    assert done.returncode == 2
    assert done.stderr.startswith(f"skillshelf: {machine.repo}/skillshelf.toml")


@pytest.mark.parametrize(
    "text",
    [
        "#" + "-" * 900_000,
        "x = '" + "9" * 900_000 + "'",
        "x = '''\ny" + " " * 900_000 + "z\n'''",
        "x = '''\n" + "[" * 900_000 + "\n'''",
        "a" + ".a" * 90 + " = 1\n" + "".join(f"b{number} = 1\n" for number in range(60_000)),
    ],
    ids=["a comment", "a value", "blanks", "brackets", "keys"],
)
def test_a_long_line_does_not_hold_us_up(machine: Machine, text: str) -> None:
    # Less than a second; a pattern that tries every beginning and end would take hours.
    (machine.repo / "skillshelf.toml").write_text(text + "\n")
    assert machine.run("list").returncode == 0


def test_the_line_of_a_mistake_in_the_syntax_is_told(machine: Machine) -> None:
    path = machine.configure("profile = 'strict'\n\nskills.enabled = yes\n")
    message = failure(machine)
    assert message.startswith(f"{path}: ")
    assert "line 3" in message


# Keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "key", "what"),
    [
        ("skils.enabled = true\n", 1, "skils.enabled", "did you mean `skills.enabled`?"),
        ("[skills]\n\nenable = true\n", 3, "skills.enable", "did you mean `skills.enabled`?"),
        ("[skills]\nmaxentries = 1\n", 2, "skills.maxentries", "is not a key of skillshelf"),
        ("profile = 'strict'\nnonsense = 1\n", 2, "nonsense", "is not a key of skillshelf"),
        ("[skills.search]\ndefault_limit = 5\nlimit = 5\n", 3, "skills.search.limit", "is not a key"),
        ("skills = 5\n", 1, "skills", "is not a key of skillshelf"),
        ("[skills.enabled]\nx = 1\n", 2, "skills.enabled.x", "is not a key of skillshelf"),
    ],
)
def test_an_unknown_key_is_an_error_with_file_line_and_key(
    machine: Machine, text: str, line: int, key: str, what: str
) -> None:
    path = machine.configure(text)
    message = failure(machine)
    assert message.startswith(f"{path}, line {line}: `{key}` is not a key of skillshelf")
    assert what in message


@pytest.mark.parametrize(
    ("text", "line", "key", "what"),
    [
        ("profile = 5\n", 1, "profile", "must be text"),
        ("[skills]\nenabled = 'yes'\n", 2, "skills.enabled", "must be true or false"),
        ("[skills]\nenabled = 1\n", 2, "skills.enabled", "must be true or false"),
        ("skills.disabled = 'deploy'\n", 1, "skills.disabled", "must be a list of texts"),
        ("skills.ignored = ['a', 5]\n", 1, "skills.ignored[1]", "must be text"),
        (
            "[skills.initial]\nmax_bytes = 5\nmax_entries = 0\n",
            3,
            "skills.initial.max_entries",
            COUNT,
        ),
        (
            "[skills.initial]\nmaxEntries = -1\n",
            2,
            "skills.initial.max_entries",
            COUNT,
        ),
        (
            "[skills.initial]\nmax_tokens = 1.5\n",
            2,
            "skills.initial.max_tokens",
            COUNT,
        ),
        ("[skills.search]\nmax_limit = true\n", 2, "skills.search.max_limit", COUNT),
        ("[skills]\nenablePiUser = 'no'\n", 2, "skills.sources.enable_pi_user", "must be true or false"),
        ("permissions.deny = 'all'\n", 1, "permissions.deny", "must be a list of rules"),
        ("[permissions]\n# none\ndeny = ['all']\n", 3, "permissions.deny", "holds 'all'"),
        ("[[permissions.deny]]\nskill_name = 'x'\n", 1, "permissions.deny", "a rule is { tool"),
        ("permissions.deny = [{tool = 'skill_load', name = 'x'}]\n", 1, "permissions.deny", "a rule with name"),
        ("permissions.allow = [{tool = 'skill_load', skill_name = 'A/B'}]\n", 1, "permissions.allow", "'A/B'"),
        ("trust.folders = '~'\n", 1, "trust.folders", "must be a list of texts"),
        ("hosts = 'codex'\n", 1, "hosts", "must be a list of texts"),
        ("# mine\nhosts = ['codx']\n", 2, "hosts", "unknown host 'codx'; did you mean codex?"),
        ("[profiles]\nlab = 5\n", 2, "profiles.lab", "must be a table"),
        ("[profiles.a]\nmax_depth = 3\n[profiles.b]\nmax_depth = 'x'\n", 4, "profiles.b.max_depth", "must be a"),
        ("[profiles.a]\nhidden = 'skip'\n[skills]\nhidden = 1\n", 4, "skills.hidden", "is not a key"),
    ],
)
def test_a_wrong_type_is_an_error_with_file_line_and_key(
    machine: Machine, text: str, line: int, key: str, what: str
) -> None:
    path = machine.configure(text)
    message = failure(machine)
    assert message.startswith(f"{path}, line {line}: `{key}` ")
    assert what in message


@pytest.mark.parametrize(
    ("text", "setting", "value"),
    [
        ("skills.ignoredSkills = ['a-*']", "ignored", ("a-*",)),
        ("skills.includeSkills = ['a-*']", "include", ("a-*",)),
        ("skills.customDirectories = ['/a']", "custom_directories", ("/a",)),
        ("skills.enableSkillCommands = false", "commands", False),
        ("skills.initial.maxEntries = 5", "max_entries", 5),
        ("skills.initial.maxBytes = 5", "max_bytes", 5),
        ("skills.search.defaultLimit = 5", "default_limit", 5),
        ("skills.search.maxLimit = 5", "max_limit", 5),
        ("skills.enableCodexUser = false", "sources", {"enable_codex_user": False}),
        ("skills.enableClaudeUser = false", "sources", {"enable_claude_user": False}),
        ("skills.enableClaudeProject = false", "sources", {"enable_claude_project": False}),
        ("skills.enablePiUser = false", "sources", {"enable_pi_user": False}),
        ("skills.sources.enablePiProject = false", "sources", {"enable_pi_project": False}),
        ("permissions.grantFromSkills = ['a']", "grant_from_skills", ("a",)),
    ],
)
def test_the_spellings_of_the_seeds_are_accepted(machine: Machine, text: str, setting: str, value: object) -> None:
    machine.configure(text + "\n")
    assert getattr(settings_of(machine), setting) == value


def test_every_key_of_the_contract_is_read(machine: Machine) -> None:
    assert sorted(KEYS) == sorted(
        [
            "profile",
            "hosts",
            "journal.content",
            "journal.keep",
            "journal.max_age_days",
            "journal.max_bytes",
            "journal.push",
            "journal.token_file",
            "skills.enabled",
            "skills.disabled",
            *[f"skills.initial.max_{what}" for what in ("entries", "bytes", "tokens", "chars")],
            "skills.search.default_limit",
            "skills.search.max_limit",
            "skills.custom_directories",
            "skills.ignored",
            "skills.include",
            "skills.commands",
            *[f"skills.sources.enable_{what}" for what in ("codex_user", "claude_user", "claude_project")],
            *[f"skills.sources.enable_{what}" for what in ("pi_user", "pi_project")],
            "permissions.allow",
            "permissions.deny",
            "permissions.grant_from_skills",
            *[f"permissions.run.{what}" for what in ("network", "read", "write", "unsandboxed", "seccomp", "require")],
            "trust.folders",
            *[f"search.scorer.{what}" for what in ("url", "model", "key_variable", "english_only")],
            "search.learn",
            *[f"check.{what}" for what in ("select", "ignore", "severity", "baseline", "exclude")],
        ]
    )


def test_a_configuration_given_in_python_has_the_same_keys(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    machine.configure("profile = 'strict'\n")
    config = {"profile": "codelia", "skills": {"initial": {"maxEntries": 7}, "disabled": ["deploy"]}}
    shelf = machine.shelf(config=config)
    assert (shelf.profile.name, shelf.settings.max_entries) == ("codelia", 7)
    assert [skill.hidden for skill in shelf.catalog.skills] == ["disabled"]
    with pytest.raises(ConfigurationError, match=r"`skills\.nonsense` is not a key"):
        machine.shelf(config={"skills": {"nonsense": 1}})


def test_an_unknown_profile_is_an_error_that_lists_the_known_ones(machine: Machine) -> None:
    machine.configure("[profiles.lab]\n")
    with pytest.raises(ConfigurationError, match=r"unknown profile 'nonsense' \(known: standard, .*omp, lab"):
        machine.shelf("nonsense")
    with pytest.raises(ConfigurationError, match=r"unknown profile 'labs'; did you mean lab\?$"):
        machine.shelf("labs")
    done = machine.run("list", "--profile", "labs", "--json")
    assert done.returncode == 2
    assert "unknown profile 'labs'" in done.stderr


def test_a_working_directory_that_is_missing_is_an_error(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(skillshelf.SkillDirectoryNotFound):
        machine.shelf(cwd=tmp_path / "missing")
