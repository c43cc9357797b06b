"""The policy of the machine: what it forbids and requires, and that nobody below root can widen it.

Every test has a real policy at its real place, in a private view of the machine (`support/system_policies.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from support.locked import locked_entry, write_lock
from support.needs import needs
from support.system_policies import POLICY, PolicyMachine, policy_machine

from skillshelf.catalog.tree import skill_tree
from skillshelf.core.limits import CACHE_FROM, SETTLED_NS

pytestmark = pytest.mark.slow

FORBIDDEN = f"{POLICY}: skills.forbidden"


@pytest.fixture
def machine(tmp_path: Path) -> PolicyMachine:
    return policy_machine(tmp_path)


def python_says(machine: PolicyMachine, code: str, **options: dict[str, str]) -> dict[str, object]:
    """Run a program that prints one JSON value as its last line."""
    ended = machine.python("-c", "import json, os, skillshelf\n" + code, **options)  # type: ignore[arg-type]
    assert ended.status == 0, ended.err
    said = json.loads(ended.out.strip().splitlines()[-1])
    assert isinstance(said, dict)
    return said


LOAD = """
def outcome(make):
    try:
        session = make()
        result = session.call("skill_load", {"name": "deploy"})
        return [result.ok, result.error.code if result.error else None, result.error.message if result.error else ""]
    except skillshelf.SkillError as error:
        return [False, type(error).__name__, str(error)]
"""


def test_the_file_in_the_documentation_can_be_used(machine: PolicyMachine) -> None:
    page = (Path(__file__).parents[2] / "docs/policy.md").read_text(encoding="utf-8")
    machine.write(page.partition("```toml\n")[2].partition("```")[0])

    assert machine.run("policy", "--json").json["files"][0]["state"] == "ok"


# What it forbids ----------------------------------------------------------------------------------


def test_a_forbidden_skill_is_listed_with_the_reason_and_reaches_nobody(machine: PolicyMachine) -> None:
    script = machine.skill("deploy") / "scripts/x.py"
    script.parent.mkdir()
    script.write_text("print('ran')\n")
    machine.skill("notes")
    machine.write('[skills]\nforbidden = ["deploy"]\n')

    skills = {skill["name"]: skill for skill in machine.run("list", "--json").json["skills"]}
    assert (skills["deploy"]["hidden"], skills["deploy"]["hidden_by"]) == ("denied", FORBIDDEN)
    assert skills["notes"]["hidden"] is None
    assert FORBIDDEN in machine.run("list", "--all").out
    assert FORBIDDEN in machine.run("why", "deploy").err
    assert "deploy" not in machine.run("prompt").out
    assert machine.run("search", "deploy", "--json").json["results"] == []
    for words in (
        ("show", "deploy"),
        ("show", "deploy", "--raw"),
        ("read", "skill://deploy/SKILL.md"),
        ("run", "deploy", "scripts/x.py"),
        ("link", "deploy", "--to", "codex"),
        ("sync", "deploy", "--to", "codex", "--yes"),
    ):
        ended = machine.run(*words)
        assert (ended.status, FORBIDDEN in ended.err) == (4, True), words


@pytest.mark.parametrize("name", ["DEPLOY", "ｄｅｐｌｏｙ", "deploy\u200b", "De*"])
def test_a_forbidden_name_is_folded_as_in_any_denial(machine: PolicyMachine, name: str) -> None:
    machine.skill("deploy")
    machine.write(f'[skills]\nforbidden = ["{name}"]\n')

    assert machine.run("list", "--json").json["skills"][0]["hidden_by"] == FORBIDDEN


def test_a_forbidden_tree_is_found_under_any_name_and_place(machine: PolicyMachine) -> None:
    folder = machine.skill("deploy")
    tree = skill_tree(str(folder)).digest
    machine.skill("notes")
    shutil.copytree(folder, machine.home / ".claude/skills/deploy")
    machine.write(f'[skills]\nforbidden = ["{tree}"]\n')

    shelf = machine.run("list", "--json").json
    assert [s["hidden_by"] for s in shelf["skills"]] == [FORBIDDEN, None]
    assert machine.run("show", str(machine.home / ".claude/skills/deploy")).status != 0
    (folder / "SKILL.md").write_text((folder / "SKILL.md").read_text() + "More.\n")
    assert machine.run("show", "deploy").status == 0


def test_a_forbidden_place_is_found_through_links_and_by_the_real_path(machine: PolicyMachine) -> None:
    store = machine.base / "store"
    machine.skill("deploy", root=store)
    root = machine.home / ".agents/skills"
    root.mkdir(parents=True)
    (root / "deploy").symlink_to(store / "deploy")
    machine.write(f'[skills]\nforbidden = ["{store}/deploy"]\n')

    assert machine.run("list", "--json").json["skills"][0]["hidden_by"] == FORBIDDEN
    assert machine.run("show", "deploy").status == 4


def test_a_hard_link_to_a_forbidden_place_is_found(machine: PolicyMachine) -> None:
    store = machine.skill("deploy", root=machine.base / "store")
    (machine.home / ".agents/skills/deploy").mkdir(parents=True)
    os.link(store / "SKILL.md", machine.home / ".agents/skills/deploy/SKILL.md")
    machine.write(f'[skills]\nforbidden = ["{store}"]\n')

    assert machine.run("show", "deploy").status == 4
    assert machine.run("list", "--json").json["skills"][0]["hidden_by"] == FORBIDDEN


def test_scripts_run_nowhere_where_the_policy_says_so(machine: PolicyMachine) -> None:
    folder = machine.skill("deploy")
    (folder / "scripts").mkdir()
    (folder / "scripts/x.py").write_text("print('ran')\n")
    machine.configure('[permissions]\nallow = [{ tool = "skill_run" }]\nrun.unsandboxed = true\n')
    machine.write("[run]\nallow = false\n")

    tree = skill_tree(str(folder)).digest
    ended = machine.run("run", "deploy", "scripts/x.py", "--yes", str(tree))
    assert (ended.status, ended.out) == (4, "")
    assert f"{POLICY}: run.allow" in ended.err
    said = python_says(
        machine,
        """
shelf = skillshelf.open_shelf(env={}, home=os.environ["HOME"])
session = shelf.session("full-auto", confirm=lambda *about: "remember")
result = session.call("skill_run", {"name": "deploy", "script": "scripts/x.py"})
print(json.dumps({"tools": [tool.name for tool in session.tools()], "code": result.error.code}))
""",
    )
    assert "skill_run" not in said["tools"]  # type: ignore[operator]
    assert said["code"] == "denied"


def test_only_allowed_hosts_get_skills(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    machine.write('[hosts]\nallow = ["codex"]\n')
    named = f"{POLICY}: hosts.allow"

    for words in (
        ("link", "deploy", "--to", "claude-code"),
        ("sync", "--to", "codex,claude-code", "--yes"),
        ("new", "other", "--for", "claude-code"),
        ("disable", "deploy", "--in", "claude-code"),
        ("prompt", "--profile", "host:claude-code"),
    ):
        ended = machine.run(*words)
        assert (ended.status, named in ended.err) == (4, True), (words, ended)
    assert not (machine.home / ".claude").exists()
    assert machine.run("link", "deploy", "--to", "codex").status == 0


def test_only_folders_below_those_of_the_policy_can_be_trusted(machine: PolicyMachine) -> None:
    approved = machine.base / "approved"
    approved.mkdir()
    machine.skill("deploy", root=machine.project / ".agents/skills")
    machine.configure(f'[trust]\nfolders = ["{machine.project}"]\n')
    machine.write(f'[trust]\nfolders_below = ["{approved}"]\n')
    named = f"{POLICY}: trust.folders_below"

    ended = machine.run("trust", str(machine.project))
    assert (ended.status, named in ended.err) == (4, True)
    prompt = machine.run("prompt", "--trust")
    assert "deploy" not in prompt.out
    assert named in prompt.err
    said = python_says(
        machine,
        f"""{LOAD}
shelf = skillshelf.open_shelf(trust="all", env={{}})
found = [outcome(lambda: shelf.session(policy, confirm=lambda *about: "remember")) for policy in (None, "full-auto")]
allow = {{"allow": [{{"tool": "skill_load", "path": os.getcwd()}}]}}
found += [outcome(lambda: shelf.session(allow))]
print(json.dumps({{"found": found, "hidden": shelf.catalog.skills[0].hidden_by}}))
""",
    )
    assert said["hidden"] == named
    assert [found[:2] for found in said["found"]] == [[False, "denied"]] * 3  # type: ignore[attr-defined]
    assert all(named in found[2] for found in said["found"])  # type: ignore[attr-defined]


def test_neither_a_home_nor_a_variable_nor_a_link_makes_a_folder_trusted(machine: PolicyMachine) -> None:
    elsewhere = machine.base / "elsewhere"
    folder = machine.skill("deploy", root=elsewhere / ".agents/skills")
    root = machine.home / ".agents/skills"
    root.mkdir(parents=True)
    (root / "deploy").symlink_to(folder)
    machine.write('[trust]\nfolders_below = ["/srv/approved"]\n')

    for words, env in (
        (("--home", str(elsewhere)), {}),
        ((), {"HOME": str(elsewhere)}),
        ((), {"AGENT_SKILLS_PATH": str(elsewhere / ".agents/skills")}),
        ((), {}),
    ):
        ended = machine.run("prompt", "--trust", *words, env=env)
        assert (ended.status, "deploy" in ended.out) == (0, False), (words, env)


# What it requires ---------------------------------------------------------------------------------


def test_no_model_is_served_without_a_required_skill(machine: PolicyMachine) -> None:
    machine.skill("notes")
    machine.write('[skills]\nrequired = ["guide"]\n')
    named = f"the required skill guide is missing ({POLICY}: skills.required)"

    for words in (("prompt",), ("tools",), ("mcp",)):
        ended = machine.run(*words)
        assert (ended.status, named in ended.err) == (4, True), words
    listed = machine.run("list", "--json")
    assert [(e["rule"], e["message"]) for e in listed.json["errors"]] == [("policy-required", named)]
    assert machine.run("show", "notes").status == 0
    assert named in machine.run("doctor", "policy").out.replace("\n", " ")
    assert machine.run("policy").status == 1
    problems = machine.run("inventory", "--json").json["problems"]
    assert [problem["message"] for problem in problems] == [named]
    machine.skill("guide")
    assert "guide" in machine.run("prompt").out


def test_a_user_cannot_disable_a_required_skill(machine: PolicyMachine) -> None:
    machine.skill("guide")
    machine.configure('[skills]\ndisabled = ["Guide"]\n')
    machine.write('[skills]\nrequired = ["guide"]\n')

    assert "guide" in machine.run("prompt").out
    ended = machine.run("disable", "guide")
    assert (ended.status, f"{POLICY}: skills.required" in ended.err) == (4, True)
    machine.configure('[skills]\nignored = ["guide"]\n')
    ended = machine.run("prompt")
    assert (ended.status, "the required skill guide is missing" in ended.err) == (4, True)


def test_a_required_tree_that_changed_is_missing(machine: PolicyMachine) -> None:
    folder = machine.skill("guide")
    machine.write(f'[skills]\nrequired = ["{skill_tree(str(folder)).digest}"]\n')

    assert machine.run("prompt").status == 0
    (folder / "more.md").write_text("x\n")
    assert machine.run("prompt").status == 4


# Attempts to widen it -----------------------------------------------------------------------------

ATTEMPTS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "user file": ((), {}),
    "project file": (("--trust",), {}),
    "environment": (
        (),
        {"SKILLSHELF_SYSTEM_POLICY": "", "XDG_CONFIG_HOME": "{base}/xdg", "XDG_CACHE_HOME": "{base}/c"},
    ),
    "--config": (("--config", "{base}/free.toml"), {}),
    "--home": (("--home", "{home}"), {}),
    "profile": (("--profile", "free"), {}),
    "working directory": (("--cwd", "{project}"), {}),
    "no cache": (("--no-cache",), {}),
}

FREE = """
profile = "free"
[permissions]
allow = [{ tool = "skill_load" }, { tool = "skill_load", skill_name = "deploy" }]
grant_from_skills = ["deploy"]
[profiles.free]
extends = "standard"
"""


def give_everything(machine: PolicyMachine) -> None:
    """Let the user's file, the project's and a third one allow everything."""
    machine.configure(FREE + f'[trust]\nfolders = ["/", "{machine.project}"]\n')
    (machine.base / "free.toml").write_text(FREE)
    (machine.project / "skillshelf.toml").write_text(FREE)
    (machine.base / "xdg/skillshelf").mkdir(parents=True)
    (machine.base / "xdg/skillshelf/config.toml").write_text(FREE)


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_file_option_or_variable_widens_it(machine: PolicyMachine, attempt: str) -> None:
    machine.skill("deploy")
    give_everything(machine)
    places = {"base": machine.base, "home": machine.home, "project": machine.project}
    words, env = ATTEMPTS[attempt]
    options = [word.format(**places) for word in words]
    env = {name: value.format(**places) for name, value in env.items()}
    # What was kept before the policy appeared must not be served afterwards.
    assert "deploy" in machine.run("prompt", *options, env=env).out
    machine.write('[skills]\nforbidden = ["deploy"]\n')

    prompt = machine.run("prompt", *options, env=env)
    shown = machine.run("show", "deploy", *[word for word in options if word != "--trust"], env=env)

    assert (prompt.status, "deploy" in prompt.out) == (0, False)
    assert (shown.status, FORBIDDEN in shown.err) == (4, True)


def test_no_python_argument_widens_it(machine: PolicyMachine) -> None:
    folder = machine.skill("deploy")
    machine.write('[skills]\nforbidden = ["deploy"]\n')
    said = python_says(
        machine,
        f"""{LOAD}
home = {str(machine.home)!r}
allow = {{"allow": [{{"tool": "skill_load", "skill_name": "deploy"}}], "grant_from_skills": ["deploy"]}}
shelves = {{
    "env": lambda: skillshelf.open_shelf(env={{}}, home=home),
    "config": lambda: skillshelf.open_shelf(home=home, config={{"permissions": allow}}),
    "trust": lambda: skillshelf.open_shelf(home=home, trust="all", use_cache=False),
}}
found = {{name: outcome(lambda: make().session()) for name, make in shelves.items()}}
found |= {{name: outcome(lambda: shelves["env"]().session(name)) for name in ("full-auto", "default")}}
found["policy"] = outcome(lambda: shelves["env"]().session(allow, confirm=lambda *about: "remember"))
found["person"] = outcome(lambda: shelves["env"]().session(person=True))
from skillshelf.shelf import Shelf
from skillshelf.config.settings import Settings
base = shelves["env"]()
found["settings"] = outcome(lambda: Shelf(base.environment, base.profile, Settings(), "all").session("full-auto"))
def error(act):
    try:
        act()
    except skillshelf.SkillError as problem:
        return [False, type(problem).__name__, str(problem)]
    return [True, None, ""]
found["load"] = error(lambda: shelves["env"]().load("deploy"))
found["read"] = error(lambda: shelves["env"]().read("skill://deploy/SKILL.md"))
found["preload"] = error(lambda: shelves["env"]().session(preload=["deploy"]))
found["loader"] = error(lambda: skillshelf.SkillLoader.load_full({str(folder)!r}))
registry = skillshelf.SkillRegistry()
registry.register([skillshelf.SkillLoader.load_metadata({str(folder)!r})])
found["registry"] = error(lambda: registry.activate("deploy"))
from skillshelf.adapters import json_tools
block = {{"type": "tool_use", "id": "1", "name": "skill_load", "input": {{"name": "deploy"}}}}
answer = json_tools.anthropic_result(shelves["env"](), block)
found["adapter"] = [not answer["is_error"], None, json.dumps(answer)]
found["search"] = [bool(shelves["env"]().search("deploy").results), None, {FORBIDDEN!r}]
print(json.dumps(found))
""",
        env={"HOME": "/nonexistent"},
    )
    assert {name: outcome[0] for name, outcome in said.items()} == dict.fromkeys(said, False)  # type: ignore[index]
    unsaid = [name for name, outcome in said.items() if FORBIDDEN not in outcome[2]]  # type: ignore[index]
    assert unsaid == []


def test_catalogs_that_were_kept_before_are_not_served(machine: PolicyMachine) -> None:
    for number in range(CACHE_FROM + 1):
        machine.skill(f"skill-{number:04}")
    machine.skill("deploy")
    # What changed just now is not kept.
    time.sleep(SETTLED_NS / 1e9 + 0.2)
    for _ in range(2):
        assert machine.run("list", "--json").json["skills"][0]["hidden"] is None
    assert list((machine.home / ".cache/skillshelf/packed").iterdir())

    machine.write('[skills]\nforbidden = ["deploy"]\n')
    for _ in range(2):
        assert machine.run("list", "--json").json["skills"][0]["hidden_by"] == FORBIDDEN
    machine.skill("deploy", body="Changed.\n")
    assert machine.run("list", "--json").json["skills"][0]["hidden_by"] == FORBIDDEN
    assert machine.run("search", "deploy", "--json").json["results"] == []
    (machine.policy / "policy.toml").unlink()
    assert machine.run("list", "--json").json["skills"][0]["hidden"] is None


@pytest.mark.parametrize("words", [("-P",), ("-I",), ("-E",), ("-s", "-O")])
def test_no_option_of_python_widens_it(machine: PolicyMachine, words: tuple[str, ...]) -> None:
    machine.skill("deploy")
    machine.write('[skills]\nforbidden = ["deploy"]\n')

    assert machine.python(*words, "-m", "skillshelf", "show", "deploy").status == 4


# A file that cannot be used -----------------------------------------------------------------------

BROKEN = {
    "not TOML": ("[skills\n", "not valid TOML"),
    "not UTF-8": ("\udcff", "not valid TOML"),
    "unknown key": ("[skills]\nforbiden = []\n", "line 2: `skills.forbiden` is not a key"),
    "unknown table": ("[skill]\nforbidden = []\n", "`skill.forbidden` is not a key"),
    "wrong type": ('[run]\nallow = "no"\n', "line 2: `run.allow` must be true or false"),
    "unknown host": ('[hosts]\nallow = ["clawde"]\n', "`hosts.allow` names an unknown host"),
    "relative path": ('[trust]\nfolders_below = ["src"]\n', "a folder is an absolute path"),
    "half a rule": ('[permissions]\ndeny = [{ skill_name = "x" }]\n', "`permissions.deny`"),
    "newer version": ("version = 2\n", "version` 2 is of a newer skillshelf"),
    "version of no kind": ("version = true\n", "must be a whole number"),
    "too large": ("#" * (1024 * 1024 + 1), "is larger than"),
}


SERVING = (
    ("prompt",),
    ("tools", "--json"),
    ("mcp",),
    ("rpc",),
    ("run", "deploy", "x.py"),
    ("chat", "--once", "x"),
)
LOOKING = (("list",), ("show", "deploy"), ("read", "skill://deploy/SKILL.md"), ("search", "deploy"))


# Each way to be broken at one command of each kind, and some of them at every command.
@pytest.mark.parametrize(
    ("how", "serving", "looking"),
    [
        *((how, SERVING[:1], LOOKING[:1]) for how in BROKEN),
        *((how, SERVING[1:], LOOKING[1:]) for how in ("not TOML", "unknown key", "newer version")),
    ],
)
def test_a_broken_policy_serves_no_model_and_says_why(
    machine: PolicyMachine, how: str, serving: tuple[tuple[str, ...], ...], looking: tuple[tuple[str, ...], ...]
) -> None:
    text, reason = BROKEN[how]
    machine.skill("deploy")
    (machine.policy / "policy.toml").write_bytes(text.encode("utf-8", "surrogateescape"))

    for words in serving:
        ended = machine.run(*words)
        assert (ended.status, len(ended.err.splitlines())) == (4, 1), (words, ended)
        assert POLICY in ended.err
        assert reason in ended.err
    for words in looking:
        ended = machine.run(*words)
        assert ended.status == 0, words
        assert f"the system policy cannot be used, so no model is served: {POLICY}" in ended.err
    opened = "outcome(lambda: skillshelf.open_shelf(env={}).session())"
    said = python_says(machine, f"{LOAD}\nprint(json.dumps({{'found': {opened}}}))")
    assert said["found"][:2] == [False, "PermissionDenied"]  # type: ignore[index]


def _writable_folder(machine: PolicyMachine) -> str:
    machine.policy.chmod(0o777)
    return "/etc/skillshelf can be written by everybody"


def _shared_folder(machine: PolicyMachine) -> str:
    # As /tmp: whoever takes away its rights breaks other programs.
    machine.policy.chmod(0o1777)
    return "/etc/skillshelf can be written by everybody (keep the file in a folder of root)"


def _group_file(machine: PolicyMachine) -> str:
    (machine.policy / "policy.toml").chmod(0o664)
    return "can be written by its group"


def _link(machine: PolicyMachine) -> str:
    (machine.policy / "policy.toml").rename(machine.policy / "real.toml")
    (machine.policy / "policy.toml").symlink_to("real.toml")
    return "is a link"


def _dangling(machine: PolicyMachine) -> str:
    (machine.policy / "policy.toml").unlink()
    (machine.policy / "policy.toml").symlink_to("nowhere")
    return "is a link"


def _folder(machine: PolicyMachine) -> str:
    (machine.policy / "policy.toml").unlink()
    (machine.policy / "policy.toml").mkdir()
    return "is a folder, not a regular file"


def _pipe(machine: PolicyMachine) -> str:
    (machine.policy / "policy.toml").unlink()
    os.mkfifo(machine.policy / "policy.toml", 0o644)
    return "is a pipe, not a regular file"


@pytest.mark.parametrize("spoil", [_writable_folder, _shared_folder, _group_file, _link, _dangling, _folder, _pipe])
def test_a_policy_that_somebody_else_may_have_put_there_is_refused(machine: PolicyMachine, spoil) -> None:  # type: ignore[no-untyped-def]
    machine.skill("deploy")
    machine.write("")
    reason = spoil(machine)

    ended = machine.run("prompt")

    assert (ended.status, reason in ended.err) == (4, True), ended.err
    assert machine.run("policy", "--json").json["files"][0]["state"] == "refused"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of several owners")
def test_a_policy_of_another_owner_is_refused(machine: PolicyMachine) -> None:
    os.chown(machine.write(""), 1000, 1000)

    ended = machine.run("prompt")

    assert (ended.status, "belongs to user 1000, not to root" in ended.err) == (4, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file that a user may not read")
def test_a_policy_in_a_folder_of_another_owner_is_refused(machine: PolicyMachine) -> None:
    machine.write("")
    os.chown(machine.policy, 1000, 1000)

    assert "/etc/skillshelf belongs to user 1000, not to root" in machine.run("prompt").err


# The second file ----------------------------------------------------------------------------------


def test_a_second_file_only_forbids_more(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    machine.skill("notes")
    machine.write('[skills]\nforbidden = ["deploy"]\n[hosts]\nallow = ["codex", "goose"]\n')
    (machine.policy / "more.toml").write_text(
        '[skills]\nforbidden = ["notes"]\n[hosts]\nallow = ["claude-code", "codex"]\n'
    )
    env = {"SKILLSHELF_SYSTEM_POLICY": "/etc/skillshelf/more.toml"}

    assert machine.run("prompt", env=env).out == ""
    assert "/etc/skillshelf/more.toml: skills.forbidden" in machine.run("show", "notes", env=env).err
    for host, status in (("goose", 4), ("claude-code", 4), ("codex", 4)):
        assert machine.run("link", "deploy", "--to", host, env=env).status == status
    said = python_says(
        machine,
        "shelf = skillshelf.open_shelf(env={'SKILLSHELF_SYSTEM_POLICY': '/etc/skillshelf/more.toml'})\n"
        "print(json.dumps({s.name: s.hidden for s in shelf.catalog.skills}))",
        env={"SKILLSHELF_SYSTEM_POLICY": ""},
    )
    assert set(said.values()) <= {"denied"}
    rules = machine.run("policy", "--json", env=env).json["rules"]
    assert {(rule["key"], rule["value"], rule["origin"]) for rule in rules} >= {
        ("skills.forbidden", "deploy", "system"),
        ("skills.forbidden", "notes", "added"),
    }


@pytest.mark.parametrize("named", ["/etc/skillshelf/missing.toml", "relative.toml", "{base}/own.toml", "/etc/../etc/x"])
def test_a_second_file_that_cannot_be_used_serves_no_model(machine: PolicyMachine, named: str) -> None:
    machine.skill("deploy")
    (machine.base / "own.toml").write_text("")
    path = named.format(base=machine.base)

    ended = machine.run("prompt", env={"SKILLSHELF_SYSTEM_POLICY": path})

    assert (ended.status, f"{path}: " in ended.err) == (4, True)


# Over time ----------------------------------------------------------------------------------------


@needs("uvicorn")
def test_a_team_server_ends_with_one_line_where_the_policy_cannot_be_used(machine: PolicyMachine) -> None:
    machine.write("this is no policy\n")

    ended = machine.run("serve", "--listen", "127.0.0.1:0", "--access-log", "none")

    last = ended.err.splitlines()[-1]
    assert ended.status == 4
    assert f"no model is served, because the system policy cannot be used: {POLICY}" in last
    assert "internal error" not in ended.err


def test_running_sessions_follow_a_policy_that_comes_later(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    said = python_says(
        machine,
        f"""{LOAD}
shelf = skillshelf.open_shelf(env={{}}, home={str(machine.home)!r})
session = shelf.session(journal="run.jsonl", keep=True)
before = outcome(lambda: session)
snapshot = session.snapshot()
open({POLICY!r}, "w").write('[skills]\\nforbidden = ["deploy"]\\n')
after, ended = outcome(lambda: session), outcome(lambda: session)
restored = skillshelf.Session.restore(snapshot, shelf)
texts = [restored.recall(ref) for ref in snapshot["texts"]]
print(json.dumps({{
    "before": before, "after": after, "ended": ended, "again": outcome(lambda: shelf.session()),
    "restored": outcome(lambda: restored), "texts": texts, "changes": list(restored.changes),
    "replay": [str(one) for one in skillshelf.replay("run.jsonl", home={str(machine.home)!r}, env={{}}).differences],
}}))
""",
    )
    assert said["before"][0] is True  # type: ignore[index]
    assert said["after"][1] == "denied"  # type: ignore[index]
    assert "policy changed" in said["after"][2]  # type: ignore[index]
    assert said["ended"][0] is False  # type: ignore[index]
    for name in ("again", "restored"):
        assert said[name][:2] == [False, "denied"]  # type: ignore[index]
        assert FORBIDDEN in said[name][2]  # type: ignore[index]
    assert said["texts"] == [""]
    assert said["replay"] == []


def test_a_running_server_follows_a_policy_that_comes_later(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    with machine.start("-m", "skillshelf", "rpc") as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(method: str, **params: object) -> dict[str, object]:
            assert server.stdin is not None
            assert server.stdout is not None
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            while "id" not in (answer := json.loads(server.stdout.readline())):
                pass
            assert isinstance(answer, dict)
            return answer

        try:
            assert "result" in ask("skills.load", name="deploy")
            machine.write('[skills]\nforbidden = ["deploy"]\n')
            refused = ask("skills.load", name="deploy")
            machine.write("[skills]\nforbiden = []\n")
            broken = ask("skills.load", name="deploy")
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=30)
    assert FORBIDDEN in json.dumps(refused["error"])
    assert refused["error"]["data"]["code"] == "denied"  # type: ignore[index]
    assert "cannot be used" in json.dumps(broken["error"])


@needs("mcp")
def test_a_running_mcp_server_follows_a_policy_that_comes_later(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    machine.skill("notes")
    with machine.start("-m", "skillshelf", "mcp") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        sent = iter(range(1, 100))

        def ask(method: str, **params: object) -> str:
            assert server.stdin is not None
            assert server.stdout is not None
            number = next(sent)
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            while json.loads(line := server.stdout.readline()).get("id") != number:
                pass
            return line

        def load(name: str) -> str:
            return ask("tools/call", name="skill_load", arguments={"name": name})

        try:
            client = {"name": "test", "version": "1"}
            ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
            before = load("deploy")
            machine.write('[skills]\nforbidden = ["deploy"]\n')
            refused, other = load("deploy"), load("notes")
            listed = ask("resources/list")
            machine.write("broken")
            broken, listed_then = load("notes"), ask("resources/list")
            tools = ask("tools/list")
        finally:
            server.send_signal(signal.SIGTERM)
            _, err = server.communicate(timeout=30)
    assert "Do it well" in before
    assert FORBIDDEN in refused
    assert "Do it well" in other
    assert "deploy" not in listed
    assert "cannot be used" in broken
    assert json.loads(broken)["error"]["code"] == -32600
    assert "problem in the library" not in err
    assert "notes" not in listed_then
    assert "notes" not in tools


def test_a_journal_is_replayed_with_and_without_the_policy_it_was_made_under(machine: PolicyMachine) -> None:
    machine.skill("deploy")
    machine.skill("notes")
    code = """
import sys
shelf = skillshelf.open_shelf(env={}, home=os.environ["HOME"])
with shelf.session(journal=sys.argv[1], keep=True) as session:
    session.system_prompt()
    for name in ("deploy", "notes"):
        session.call("skill_load", {"name": name})
print("{}")
"""
    machine.python("-c", "import json, os, skillshelf\n" + code, "without.jsonl")
    machine.write('[skills]\nforbidden = ["deploy"]\n')
    machine.python("-c", "import json, os, skillshelf\n" + code, "with.jsonl")
    events = [json.loads(line) for line in (machine.project / "with.jsonl").read_text().splitlines()]
    decided = [event for event in events if event["type"] == "permission_decided" and event["verdict"] == "deny"]
    assert [(event["by"], event["rule"]) for event in decided] == [("system", f"{FORBIDDEN}: deploy")]
    assert events[0]["system"] == [{"path": POLICY, "forbidden": ["deploy"]}]

    for text in ('[skills]\nforbidden = ["deploy"]\n', '[skills]\nforbidden = ["notes"]\n', "", "broken"):
        machine.write(text)
        for name in ("with.jsonl", "without.jsonl"):
            for against in ("kept", "disk"):
                ended = machine.run("log", "replay", name, "--against", against)
                assert ended.status == 0, (text, name, against, ended)
        assert machine.run("log", "verify", "with.jsonl").status == 0


# What it says of itself ---------------------------------------------------------------------------


def test_policy_shows_every_rule_with_its_origin_and_what_it_overrides(machine: PolicyMachine) -> None:
    machine.configure(
        'hosts = ["codex", "goose"]\n[skills]\ndisabled = ["guide"]\n[permissions]\n'
        'allow = [{ tool = "skill_load", skill_name = "deploy" }]\n[trust]\nfolders = ["/srv/x"]\n'
    )
    machine.skill("guide")
    machine.write(
        '[permissions]\ndeny = [{ tool = "Bash" }]\n[skills]\nrequired = ["guide"]\nforbidden = ["deploy"]\n'
        '[sources]\nallow = ["acme/*"]\ndeny = ["acme/bad"]\n[hosts]\nallow = ["codex"]\n[run]\nallow = false\n'
        '[trust]\nfolders_below = ["/srv/approved"]\n[lock]\nrequired = true\n'
    )

    said = machine.run("policy", "--json").json

    rules = {(rule["key"], rule["origin"]): rule for rule in said["rules"]}
    above = {key for key, origin in rules if origin == "system"}
    assert above == {
        *("permissions.deny", "skills.required", "skills.forbidden", "sources.allow", "sources.deny"),
        *("hosts.allow", "run.allow", "trust.folders_below", "lock.required"),
    }
    assert rules["skills.forbidden", "system"]["overrides"] == ["permissions.allow: skill_load deploy"]
    assert rules["hosts.allow", "system"]["overrides"] == ["hosts: goose"]
    assert rules["trust.folders_below", "system"]["overrides"] == ["trust.folders: /srv/x"]
    assert rules["skills.required", "system"]["overrides"] == ["skills.disabled: guide"]
    assert rules["permissions.allow", "user"]["file"] == str(machine.home / ".config/skillshelf/config.toml")
    assert said["files"] == [{"path": POLICY, "origin": "system", "state": "ok", "problem": None}]
    text = machine.run("policy").out
    assert POLICY in text
    assert "without effect now" in text


def test_policy_without_any_says_so(machine: PolicyMachine) -> None:
    ended = machine.run("policy")

    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(f"No system policy ({POLICY} does not exist)")


def test_where_there_is_no_policy_one_look_is_all_it_takes(machine: PolicyMachine) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace: it is not installed")
    machine.skill("deploy")
    words = f"[{strace!r}, '-f', '-o', 'calls', sys.executable, '-m', 'skillshelf', 'list']"
    machine.python("-c", f"import subprocess, sys; subprocess.run({words})")
    if not (machine.project / "calls").exists():
        pytest.skip("needs strace: it cannot trace here")
    lines = (machine.project / "calls").read_text(errors="replace").splitlines()
    if not any("SKILL.md" in line for line in lines):
        pytest.skip("needs strace: it cannot trace here")

    assert len([line for line in lines if "policy.toml" in line]) == 1
    assert not [line for line in lines if "tomllib" in line]


def test_the_questions_of_an_install(machine: PolicyMachine) -> None:
    machine.write(
        '[sources]\nallow = ["acme/*", "https://*.acme.org/*"]\ndeny = ["ACME/bad*"]\n[lock]\nrequired = true\n'
    )
    said = python_says(
        machine,
        """
from skillshelf.config.settings import load_settings
from skillshelf.config.system_policy import lock_required, source_refusal
from skillshelf.core.environment import make_environment
system = load_settings(make_environment(None, None, {})).system
sources = ("acme/good", "acme/bad-one", "other/x", "https://x.acme.org/y")
print(json.dumps({**{source: source_refusal(system, source) for source in sources}, "lock": lock_required(system)}))
""",
    )
    assert said == {
        "acme/good": None,
        "acme/bad-one": f"{POLICY}: sources.deny",
        "other/x": f"{POLICY}: sources.allow",
        "https://x.acme.org/y": None,
        "lock": f"{POLICY}: lock.required",
    }


def test_a_required_lock_keeps_every_other_skill_from_models(machine: PolicyMachine) -> None:
    machine.skill("own")
    locked = machine.skill("locked", root=machine.project / ".agents/skills")
    write_lock(machine.project / "skillshelf.lock", {"locked": locked_entry(locked)})
    machine.write("[lock]\nrequired = true\n")

    by = f"{POLICY}: lock.required"
    skills = {skill["name"]: skill for skill in machine.run("list", "--json").json["skills"]}
    assert (skills["own"]["hidden"], skills["own"]["hidden_by"]) == ("denied", by)
    assert skills["locked"]["hidden"] == "untrusted"
    shown = machine.run("prompt", "--trust").out
    assert "<name>locked</name>" in shown
    assert "<name>own</name>" not in shown
    assert machine.run("show", "own").status == 0
    said = python_says(
        machine,
        """
session = skillshelf.open_shelf().session("full-auto", confirm=lambda *asked: True)
results = {name: session.call("skill_load", {"name": name}) for name in ("own", "locked")}
print(json.dumps({name: [result.ok, result.error and result.error.code] for name, result in results.items()}))
""",
    )
    assert said == {"own": [False, "denied"], "locked": [True, None]}
