"""A stranger narrows only what is its own: whatever a clone's file says, the user's skills stay, and it is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs
from support.rpcclient import rpc_in_process
from support.trees import PROJECT_ROOTS, Machine, put_folder_for_file, put_pipe_for_file, write_skill

import skillshelf
from skillshelf.session.policy import Policy, make_policy

USER_ROOTS = {
    "standard": ".agents/skills",
    "strict": ".agents/skills",
    "codelia": ".agents/skills",
    "swiftagent": ".agent/skills",
    "rip": ".agents/skills",
    "omp": ".omp/agent/skills",
}
"""A root of the user in each profile that has one."""

TAKES_AWAY = {
    "disabled": "skills.disabled = ['guard']\n",
    "disabled by path": "skills.disabled = ['{user}/guard', '~/{root}/guard']\n",
    "ignored": "skills.ignored = ['*']\n",
    "include": "skills.include = ['nothing']\n",
    "deny": "permissions.deny = [{{tool = 'skill_load'}}, {{tool = 'Skill'}}, {{tool = 'activate_skill'}}]\n",
    "deny by name": "permissions.deny = [{{tool = 'skill_load', skill_name = 'guard'}}]\n",
    "enabled": "skills.enabled = false\n",
    "budgets": "[skills.initial]\nmax_tokens = 1\nmax_chars = 1\nmax_bytes = 1\nmax_entries = 1\n",
    "profile": "profile = 'mycodeagent'\n",
    "shadowing profile": "profile = 'omp'\n",
    "sources": "[skills.sources]\nenable_codex_user = false\nenable_claude_user = false\nenable_pi_user = false\n"
    "enable_claude_project = false\nenable_pi_project = false\n",
    "a profile of its own": "profile = 'lab'\n[profiles.lab]\nroots = []\n",
}
"""Files of a clone that would take the user's skill `guard` away."""


def clone(machine: Machine, case: str, profile: str, file: str = "skillshelf.toml") -> Path:
    """Put the user's `guard`, a clone with a skill of its own and one of that name, and the clone's file."""
    root = USER_ROOTS[profile]
    user = machine.home / root
    write_skill(user, "guard")
    write_skill(machine.repo / PROJECT_ROOTS[profile], "stranger")
    write_skill(machine.repo / ".omp/skills", "guard" if profile != "omp" else "other")
    text = TAKES_AWAY[case].format(user=user, root=root)
    if file == "pyproject.toml":
        text = text.replace("[skills", "[tool.skillshelf.skills").replace("[profiles", "[tool.skillshelf.profiles")
        text = text if text.startswith("[") else f"tool.skillshelf.{text}"
    path = machine.repo / file
    path.write_text(text)
    return path


every_case = pytest.mark.parametrize("case", list(TAKES_AWAY))
every_profile = pytest.mark.parametrize("profile", list(USER_ROOTS))


# The user's skill stays, on every surface ---------------------------------------------------------


@every_profile
@every_case
def test_the_users_skill_stays_whatever_a_clone_says_and_the_command_says_who_wanted_it(
    machine: Machine, profile: str, case: str
) -> None:
    path = clone(machine, case, profile)

    told = machine.run("prompt", "--profile", profile)
    tools = machine.run("tools", "--profile", profile)
    listed = machine.run_json("list", "--profile", profile)

    assert "guard" in told.stdout
    assert tools.returncode == 0
    assert "No tools" not in tools.stdout
    (guard,) = [skill for skill in listed["skills"] if skill["name"] == "guard" and skill["trusted"]]
    assert (guard["hidden"], guard["hidden_by"]) == (None, None)
    for done in (told, tools):
        assert len(done.stderr.splitlines()) == 1
        if not (case == "shadowing profile" and profile == "omp"):
            assert f"{path} would " in done.stderr
        # A skill that its own file leaves out is not held back for want of trust.
        assert (f"skillshelf trust {machine.repo}" in done.stderr) == (case != "ignored")


@every_case
@pytest.mark.parametrize("profile", ["standard", "codelia", "rip"])
def test_a_session_of_a_model_has_the_users_skill_whatever_a_clone_says(
    machine: Machine, profile: str, case: str
) -> None:
    clone(machine, case, profile)
    shelf = machine.shelf(profile, trust="ask")

    with shelf.session() as session:
        assert "guard" in session.system_prompt()
        loaded = session.call("skill_load", {"name": "guard"})
        assert loaded.ok, loaded.text
        assert session.commands() == [] or "/skill:guard" in session.commands()
        if "skill_search" in shelf.profile.tools:
            found = session.call("skill_search", {"query": "guard"})
            assert [one["skill"]["name"] for one in found.data["results"]] == ["guard"]


@every_case
def test_a_client_of_rpc_has_the_users_skill_and_the_line(machine: Machine, case: str) -> None:
    path = clone(machine, case, "standard")
    with rpc_in_process(machine) as client:
        opened = client.ask("session.open")
        assert "guard" in client.ask("session.system_prompt", session=opened["session"])["text"]
        assert client.ask("skills.load", name="guard")["skill"]["name"] == "guard"
        assert client.ask("skills.search", query="guard")["count"] == 1
        assert f"{path} would " in opened["held_back"]
        assert ("1 skill of this project is hidden from models" in opened["held_back"]) == (case != "ignored")


@needs("mcp")
@every_case
def test_a_client_of_mcp_has_the_users_skill_and_the_sentence(machine: Machine, case: str) -> None:
    from support.mcps import client_of, run, text_of

    clone(machine, case, "standard")

    async def check() -> None:
        async with client_of(machine, "older") as client:
            instructions = client.instructions or ""
            loaded = await text_of(client, "skill_load", name="guard")
            nothing = await text_of(client, "skill_search", query="zzz")
        assert "# guard" in loaded
        for text in (instructions, nothing):
            assert "The configuration file of this project would " in text

    run(check)


@every_case
def test_a_file_in_pyproject_is_no_different(machine: Machine, case: str) -> None:
    path = clone(machine, case, "standard", "pyproject.toml")
    done = machine.run("prompt")
    assert "guard" in done.stdout
    assert f"{path} would " in done.stderr


@pytest.mark.parametrize("trust", ["ask", "user"])
def test_no_setting_of_the_user_changes_by_the_file_of_a_stranger(machine: Machine, trust: str) -> None:
    machine.configure("skills.initial.max_entries = 7\n[profiles.mine]\nmax_depth = 2\n")
    before = machine.shelf(trust=trust).settings
    for case in TAKES_AWAY:
        clone(machine, case, "standard")
        after = machine.shelf(trust=trust).settings
        scoped = tuple(rule for rule in after.deny if rule.within is None)
        assert after._replace(files=(), warnings=(), deny=scoped) == before._replace(files=(), warnings=())


@pytest.mark.parametrize("case", ["disabled", "ignored", "include", "deny", "enabled"])
def test_trusted_or_named_by_the_user_the_file_counts_and_is_said_to_have_taken_it(machine: Machine, case: str) -> None:
    path = clone(machine, case, "standard")
    machine.configure(f"trust.folders = ['{machine.repo}']\n")

    done = machine.run("prompt")

    assert "guard" not in done.stdout
    effect = "turns all skills off" if case == "enabled" else "hides "
    assert f"{path} {effect}" in done.stderr
    assert case == "enabled" or "guard" in done.stderr
    assert "would" not in done.stderr
    # The same file by --config is the user's own: nobody took anything.
    assert machine.run("prompt", "--config", str(path)).stderr.count("hides") == 0


def test_a_trusted_file_that_only_narrows_the_budget_or_the_profile_is_said_to(machine: Machine) -> None:
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    path = clone(machine, "budgets", "standard")
    assert f"{path} narrows what models see by `skills.initial.max_entries`" in machine.run("prompt").stderr
    path = clone(machine, "profile", "standard")
    assert f"{path} narrows what models see by `profile`" in machine.run("prompt").stderr
    assert machine.run("prompt", "--profile", "standard").stderr == ""
    path.write_text("profile = 'standard'\n[skills.initial]\nmax_tokens = 9999\n")
    assert machine.run("prompt").stderr == ""


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("permissions.deny = [{tool = 'skill_search'}]", "permissions.deny"),
        ("permissions.deny = [{tool = 'skill_read', skill_name = 'GUARD'}]", "permissions.deny"),
        ("permissions.deny = [{tool = 'skill_run', skill_name = 'g*'}]", "permissions.deny"),
        ("permissions.run.require = ['cgroup']", "permissions.run.require"),
        ("skills.commands = false", "skills.commands"),
        ("profiles.lab.extends = 'mycodeagent'", "profiles.lab"),
    ],
)
def test_what_a_project_takes_without_hiding_a_skill_is_said_too(
    machine: Machine, text: str, key: str, trusted: bool
) -> None:
    write_skill(machine.home / ".agents/skills", "guard")
    folders = f"trust.folders = ['{machine.repo}']" if trusted else ""
    machine.configure(f"profile = 'lab'\n{folders}\n[profiles.lab]\nextends = 'standard'\n")
    path = machine.repo / "skillshelf.toml"
    path.write_text(text)
    said = f"{path} {'narrows' if trusted else 'would narrow'} what models see by `{key}`"
    assert said in machine.run("prompt").stderr


@pytest.mark.parametrize(
    "text",
    [
        "permissions.deny = [{tool = 'skill_load', path = '/'}]",
        "permissions.deny = [{tool = 'skill_run', skill_name = 'other'}]",
        "profiles.unused.extends = 'mycodeagent'",
    ],
)
def test_what_would_not_count_in_a_trusted_folder_either_is_not_counted(machine: Machine, text: str) -> None:
    write_skill(machine.home / ".agents/skills", "guard")
    (machine.repo / "skillshelf.toml").write_text(text)
    assert machine.run("prompt").stderr == ""


def test_a_program_that_chose_the_folder_gets_what_its_file_says(machine: Machine) -> None:
    clone(machine, "disabled", "standard")
    shelf = machine.shelf()
    assert {skill.name: skill.hidden for skill in shelf.catalog.skills} == {"guard": "disabled", "stranger": None}


# What is its own ----------------------------------------------------------------------------------

NARROWS = (
    "skills.ignored = ['a-*']\n"
    "skills.disabled = ['b-disabled']\n"
    "permissions.deny = [{tool = 'skill_load', skill_name = 'c-denied'}]\n"
)


def test_a_stranger_narrows_its_own_skills_and_no_namesake_of_the_user(machine: Machine) -> None:
    for name in ("a-ignored", "b-disabled", "c-denied", "d-kept"):
        write_skill(machine.repo / ".agents/skills", name)
        write_skill(machine.home / ".agents/skills", name)
    path = machine.repo / "skillshelf.toml"
    path.write_text(NARROWS)

    catalog = machine.catalog("codelia", trust="ask")

    assert sorted((skill.scope, skill.name, skill.hidden, skill.hidden_by) for skill in catalog.skills) == [
        ("repo", "b-disabled", "disabled", f"{path}: skills.disabled"),
        ("repo", "c-denied", "untrusted", "rule: trust.folders"),
        ("repo", "d-kept", "untrusted", "rule: trust.folders"),
        ("user", "a-ignored", None, None),
        ("user", "b-disabled", None, None),
        ("user", "c-denied", None, None),
        ("user", "d-kept", None, None),
    ]
    assert [(entry.name, entry.reason, entry.by) for entry in catalog.filtered] == [
        ("a-ignored", "ignored", f"{path}: skills.ignored")
    ]
    assert "config-untrusted" not in [warning.rule for warning in catalog.warnings]


def test_a_denial_of_a_stranger_denies_its_own_skill_even_if_the_user_would_say_yes(machine: Machine) -> None:
    for name in ("c-denied", "d-kept"):
        write_skill(machine.repo / ".agents/skills", name)
    (machine.repo / "skillshelf.toml").write_text(NARROWS)
    asked: list[str] = []

    def confirm(tool: str, name: str, reason: str) -> bool:
        asked.append(name)
        return True

    with machine.shelf(trust="ask").session(confirm=confirm) as session:
        denied = session.call("skill_load", {"path": f"{machine.repo}/.agents/skills/c-denied/SKILL.md"})
        read = session.call("skill_read", {"uri": "skill://c-denied/SKILL.md"})
        kept = session.call("skill_load", {"path": f"{machine.repo}/.agents/skills/d-kept/SKILL.md"})

    assert not denied.ok
    assert not read.ok
    assert (kept.ok, asked) == (True, ["d-kept"])


@pytest.mark.parametrize("tool", ["skill_search", "skill_load", "skill_read", "skill_run", "Bash", "read"])
def test_a_denial_of_a_stranger_without_a_name_leaves_the_users_tools_alone(machine: Machine, tool: str) -> None:
    write_skill(machine.home / ".agents/skills", "guard")
    script = machine.home / ".agents/skills/guard/scripts/x.sh"
    script.parent.mkdir()
    script.write_text("echo\n")
    before = machine.shelf(trust="ask").session(confirm=lambda *_: True)
    (machine.repo / "skillshelf.toml").write_text(f"permissions.deny = [{{tool = '{tool}'}}]\n")
    after = machine.shelf(trust="ask").session(confirm=lambda *_: True)
    for call, arguments in (
        ("skill_search", {"query": "guard"}),
        ("skill_load", {"name": "guard"}),
        ("skill_read", {"uri": "skill://guard/SKILL.md"}),
        ("skill_run", {"name": "guard", "script": "scripts/x.sh"}),
        ("Bash", {"command": "ls"}),
        ("read", {"path": "x"}),
    ):
        assert after.decide(call, arguments) == before.decide(call, arguments)
    assert [offered.name for offered in after.tools()] == [offered.name for offered in before.tools()]


def test_a_denial_of_a_host_tool_counts_while_a_skill_of_that_project_is_active(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "guard")
    write_skill(machine.repo / ".agents/skills", "own")
    (machine.repo / "skillshelf.toml").write_text("permissions.deny = [{tool = 'Bash'}]\n")
    with machine.shelf(trust="ask").session(policy="full-auto", confirm=lambda *_: True) as session:
        assert session.call("skill_load", {"name": "guard"}).ok
        assert session.decide("Bash", {"command": "ls"}).verdict == "allow"
        assert session.call("skill_load", {"path": f"{machine.repo}/.agents/skills/own/SKILL.md"}).ok
        assert session.decide("Bash", {"command": "ls"}).verdict == "deny"
        session.deactivate("own")
        assert session.decide("Bash", {"command": "ls"}).verdict == "allow"


@every_profile
def test_a_link_of_a_clone_to_the_users_skill_is_the_users_skill(machine: Machine, profile: str) -> None:
    path = write_skill(machine.home / USER_ROOTS[profile], "guard")
    root = machine.repo / PROJECT_ROOTS[profile]
    root.mkdir(parents=True)
    (root / "guard").symlink_to(path.parent)
    (machine.repo / "skillshelf.toml").write_text(
        "skills.disabled = ['guard', '.agents/skills/guard']\nskills.ignored = ['guard']\n"
        "permissions.deny = [{tool = 'skill_load', skill_name = 'guard'}]\n"
    )
    ways = machine.catalog(profile, trust="ask")
    assert {skill.hidden for skill in ways.skills} <= {None, "untrusted"}
    assert ways.filtered == ()


def test_a_skill_of_the_user_that_lies_in_the_clone_stays_the_users(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "guard")
    root = machine.home / ".agents/skills"
    root.mkdir(parents=True)
    (root / "guard").symlink_to(path.parent)
    (machine.repo / "skillshelf.toml").write_text(
        "skills.disabled = ['guard']\nskills.ignored = ['guard']\npermissions.deny = [{tool = 'skill_load'}]\n"
    )
    shelf = machine.shelf(trust="ask")
    assert [(skill.name, skill.hidden) for skill in shelf.catalog.skills] == [("guard", None)]
    assert shelf.session().call("skill_load", {"name": "guard"}).ok


def test_a_folder_that_the_user_trusts_is_not_narrowed_by_the_stranger_around_it(machine: Machine) -> None:
    here = machine.repo / "vetted"
    write_skill(here / ".agents/skills", "near")
    write_skill(machine.repo / ".agents/skills", "top")
    (machine.repo / "skillshelf.toml").write_text("skills.disabled = ['near', 'top']\n")
    machine.configure(f"trust.folders = ['{here}']\n")
    skills = machine.catalog(trust="ask", cwd=here).skills
    assert [(skill.name, skill.hidden) for skill in skills] == [("near", None), ("top", "disabled")]


def test_the_file_of_a_trusted_folder_is_not_displaced_by_one_of_a_stranger(machine: Machine) -> None:
    here = machine.repo / "vetted"
    write_skill(machine.home / ".agents/skills", "old-deploy")
    here.mkdir()
    (here / "pyproject.toml").write_text("tool.skillshelf.skills.disabled = ['old-deploy']\n")
    (machine.repo / "skillshelf.toml").write_text("# nothing\n")
    machine.configure(f"trust.folders = ['{here}']\n")
    assert [skill.hidden for skill in machine.catalog(trust="ask", cwd=here).skills] == ["disabled"]


@every_profile
def test_where_the_home_folder_is_a_repository_its_skills_are_the_users(machine: Machine, profile: str) -> None:
    (machine.home / ".git").mkdir()
    below = machine.home / "work"
    below.mkdir()
    write_skill(machine.home / USER_ROOTS[profile], "guard")
    (machine.home / "skillshelf.toml").write_text("skills.disabled = ['guard']\nskills.ignored = ['*']\n")
    for cwd in (machine.home, below):
        catalog = machine.catalog(profile, trust="ask", cwd=cwd)
        assert [(skill.name, skill.hidden) for skill in catalog.skills] == [("guard", None)]


# One warning --------------------------------------------------------------------------------------


def test_one_warning_names_every_key_without_effect(machine: Machine) -> None:
    path = machine.repo / "skillshelf.toml"
    path.write_text(
        "profile = 'omp'\nno_such = 1\n[skills]\ndisabled = ['x']\ninclude = ['y']\nenabled = 'maybe'\n"
        "[permissions]\nallow = 'all'\n[trust]\nfolders = ['.']\n[profiles.lab]\nroots = 1\n"
    )
    (warning,) = machine.catalog(trust="ask").warnings
    keys = ("profile", "no_such", "skills.include", "skills.enabled", "permissions.allow", "trust.folders")
    assert (warning.path, warning.rule, warning.line) == (str(path), "config-untrusted", 1)
    assert all(f"`{key}`" in warning.message for key in (*keys, "profiles.lab"))
    assert "skills.disabled" not in warning.message


def test_the_warning_is_bounded_whatever_a_stranger_writes(machine: Machine) -> None:
    text = "".join(f"k{number} = 1\n" for number in range(20_000)) + f'"{"x" * 5000}\\u001b[31m" = 1\n'
    (machine.repo / "skillshelf.toml").write_text(text)
    (warning,) = machine.catalog(trust="ask").warnings
    assert len(warning.message) < 4000
    assert "and 19961 more do not count" in warning.message


# A file that cannot be used -----------------------------------------------------------------------


def _pipe(path: Path) -> None:
    path.touch()
    put_pipe_for_file(path)


def _folder(path: Path) -> None:
    path.touch()
    put_folder_for_file(path)


BROKEN: dict[str, bytes | Callable[[Path], Any]] = {
    "syntax": b"skills = = 5\n",
    "twice": b"profile = 'strict'\nprofile = 'codelia'\n",
    "not UTF-8": b"profile = '\xff'\n",
    "deep list": b"x = " + b"[" * 20_000 + b"]" * 20_000,
    "deep table": b"x = " + b"{a=" * 20_000,
    "deep key": b"a" + b".a" * 5_000 + b" = 1\n",
    "a long number": b"x = " + b"9" * 5_000 + b"\n",
    "huge": b"#" * (1 << 21),
    "a wrong type": b"skills.disabled = 5\n",
    "a wrong rule": b"permissions.deny = [{tool = 'skill_laod'}]\n",
    "a NUL": b'skills.ignored = ["a\\u0000"]\n',
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "broken link": lambda path: path.symlink_to("nowhere"),
    "pipe": _pipe,
    "folder": _folder,
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_a_strangers_broken_file_takes_nothing_from_the_user_and_opens_nothing(machine: Machine, case: str) -> None:
    write_skill(machine.home / ".agents/skills", "guard")
    write_skill(machine.repo / ".agents/skills", "own")
    path, broken = machine.repo / "skillshelf.toml", BROKEN[case]
    if isinstance(broken, bytes):
        path.write_bytes(broken)
    else:
        broken(path)

    told, listed = machine.run("prompt"), machine.run("list", "--json")

    assert (told.returncode, listed.returncode) == (0, 0)
    assert "guard" in told.stdout
    assert len(told.stderr.splitlines()) == 1
    assert f"{path} cannot be used" in told.stderr
    (warning,) = json.loads(listed.stdout)["warnings"]
    assert (warning["path"], warning["rule"]) == (str(path), "config-untrusted")
    assert "cannot be used" in warning["message"]
    assert warning["message"] in listed.stderr
    assert "passwd" not in told.stderr + listed.stderr
    hidden = {skill["name"]: skill["hidden"] for skill in json.loads(listed.stdout)["skills"]}
    assert hidden == {"guard": None, "own": "untrusted"}
    with machine.shelf(trust="ask").session(confirm=lambda *_: True) as session:
        assert session.call("skill_load", {"name": "guard"}).ok
        assert not session.call("skill_load", {"path": f"{machine.repo}/.agents/skills/own/SKILL.md"}).ok
    # Once the user trusts the folder, it is an error as in any other file.
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    assert machine.run("list").returncode == 2
    with pytest.raises(skillshelf.ConfigurationError):
        machine.shelf()


def test_a_pyproject_that_is_broken_and_speaks_of_us_is_no_different(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "guard")
    (machine.repo / "pyproject.toml").write_text("[tool.skillshelf\n")
    assert "guard" in machine.run("prompt").stdout
    (machine.repo / "pyproject.toml").write_text("[tool]\nskillshelf = 5\n")
    assert "guard" in machine.run("prompt").stdout


def test_a_key_that_is_only_unknown_does_not_close_the_projects_skills(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "own")
    (machine.repo / "skillshelf.toml").write_text("[[install]]\nsource = 'a/b'\n")
    with machine.shelf(trust="ask").session(confirm=lambda *_: True) as session:
        assert session.call("skill_load", {"path": f"{machine.repo}/.agents/skills/own/SKILL.md"}).ok


def test_the_line_counts_and_names_what_would_be_taken(machine: Machine) -> None:
    for number in range(7):
        write_skill(machine.home / ".agents/skills", f"guard-{number}")
    write_skill(machine.home / ".agents/skills", "kept")
    path = machine.repo / "skillshelf.toml"
    path.write_text("skills.ignored = ['guard-*']\n")
    names = ", ".join(f"guard-{number}" for number in range(5))
    line = f"skillshelf: {path} would hide 7 skills of yours ({names} and 2 more) if the folder were trusted\n"
    assert machine.run("prompt").stderr == line
    path.write_text("skills.enabled = false\n")
    assert f"{path} would turn all skills off and would hide 8 skills of yours (guard-0" in machine.run("tools").stderr


# Who said so --------------------------------------------------------------------------------------


def test_every_hidden_skill_says_by_whom(machine: Machine) -> None:
    user = machine.home / ".agents/skills"
    for name in ("by-name", "by-path", "denied", "both"):
        write_skill(user, name)
    author = write_skill(user, "author", "---\nname: author\ndescription: x\ndisable-model-invocation: true\n---\n")
    write_skill(machine.repo / ".agents/skills", "stranger")
    write_skill(machine.repo / ".agents/skills", "own")
    config = machine.configure(
        f"skills.disabled = ['by-name', '{user}/by-path', 'both']\n"
        "permissions.deny = [{tool = 'skill_load', skill_name = 'denied'}]\n"
    )
    path = machine.repo / "skillshelf.toml"
    path.write_text("skills.disabled = ['own', 'both']\n")

    listed = {skill["name"]: (skill["hidden"], skill["hidden_by"]) for skill in machine.run_json("list")["skills"]}

    assert listed == {
        "by-name": ("disabled", f"{config}: skills.disabled"),
        "by-path": ("disabled", f"{config}: skills.disabled"),
        "both": ("disabled", f"{config}: skills.disabled"),
        "denied": ("denied", f"{config}: permissions.deny"),
        "author": ("disable-model-invocation", f"{author}: disable-model-invocation"),
        "stranger": ("untrusted", f"{config}: trust.folders"),
        "own": ("disabled", f"{path}: skills.disabled"),
    }
    for name in ("by-name", "stranger", "own"):
        assert machine.run_json("show", name)["skill"]["hidden_by"] == listed[name][1]
    why = json.loads(machine.run("why", "own", "--json").stdout)
    assert [(one["hidden"], one["hidden_by"]) for one in why["candidates"]] == [listed["own"]]
    assert f"disabled ({path}: skills.disabled)" in machine.run("why", "own").stderr
    assert "~/.config/skillshelf/config.toml: trust.folders" in machine.run("list", "--all").stdout


def test_where_no_project_is_trusted_that_is_said(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "own")
    machine.configure(f"trust.folders = ['{machine.repo}']\n")
    (own,) = machine.catalog(trust="user").skills
    assert (own.hidden, own.hidden_by) == ("untrusted", "rule: trust = user")


def test_a_skill_that_a_policy_denies_says_the_rule(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "guard")
    with machine.shelf(trust="ask").session({"deny": [{"tool": "skill_load", "skill_name": "guard"}]}) as session:
        (guard,) = session.skills
    assert (guard.hidden, guard.hidden_by) == ("denied", "rule: permissions.deny: skill_load guard")


def test_what_is_filtered_says_by_whom(machine: Machine) -> None:
    for name in ("a", "b", "c"):
        write_skill(machine.home / ".agents/skills", name)
    write_skill(machine.home / ".codex/skills", "coded")
    config = machine.configure(f"skills.ignored = ['a']\ntrust.folders = ['{machine.repo}']\n")
    path = machine.repo / "skillshelf.toml"
    path.write_text("skills.include = ['a', 'b', 'coded']\nskills.sources.enable_codex_user = false\n")
    by = {entry["name"]: (entry["reason"], entry["by"]) for entry in machine.run_json("list")["filtered"]}
    assert by == {"a": ("ignored", f"{config}: skills.ignored"), "c": ("not-included", f"{path}: skills.include")}
    by = {
        entry["name"]: (entry["reason"], entry["by"])
        for entry in machine.run_json("list", "--profile", "omp")["filtered"]
    }
    assert by["coded"] == ("source-off", f"{path}: skills.sources.enable_codex_user")


def test_the_cache_holds_nothing_of_a_strangers_word(machine: Machine) -> None:
    clone(machine, "disabled", "standard")
    write_skill(machine.repo / ".agents/skills", "guard2")
    for text, hidden in (("skills.disabled = ['guard2']\n", "disabled"), ("", "untrusted")):
        (machine.repo / "skillshelf.toml").write_text(text)
        for _ in range(2):
            found = {skill.name: skill.hidden for skill in machine.catalog(trust="ask").skills}
            assert (found["guard"], found["guard2"]) == (None, hidden)


def test_only_a_denial_may_be_bound_to_a_folder(machine: Machine) -> None:
    policy = make_policy({"deny": [{"tool": "skill_load", "within": "/x"}]}, machine.shelf().settings)
    assert isinstance(policy, Policy)
    assert policy.deny[0].within == "/x"
    with pytest.raises(skillshelf.ConfigurationError):
        make_policy({"allow": [{"tool": "skill_load", "within": "/x"}]}, machine.shelf().settings)
    machine.configure("permissions.deny = [{tool = 'skill_load', within = '/x'}]\n")
    with pytest.raises(skillshelf.ConfigurationError):
        machine.shelf()


def test_a_session_in_a_strangers_folder_replays_from_what_was_kept(machine: Machine) -> None:
    clone(machine, "ignored", "standard")
    journal = machine.base / "j.jsonl"
    with machine.shelf(trust="ask").session(journal=journal, keep=True) as session:
        session.system_prompt()
        assert "would hide 1 skill of yours" in session.call("skill_search", {"query": "zzzz"}).text
    (machine.repo / "skillshelf.toml").unlink()
    replayed = skillshelf.replay(journal, against="kept")
    assert replayed.differences == ()
