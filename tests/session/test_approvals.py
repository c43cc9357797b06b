"""Answers are about things: the real path and the files of a skill. No name opens anything that is not trusted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf import Policy, Session, SkillError, open_shelf, replay
from skillshelf.catalog.tree import skill_tree
from skillshelf.config.approvals import add_approval, approvals_path, read_approvals
from skillshelf.config.permission_rules import PermissionRule
from skillshelf.core.environment import make_environment
from skillshelf.journal.events import PermissionDecided, SkillLoaded, SkillWarning

NAME = "deploy"
PROFILES = {
    "standard": ".agents/skills",
    "strict": ".agents/skills",
    "codelia": ".agents/skills",
    "swiftagent": ".agent/skills",
    "mycodeagent": "skills",
    "rip": ".agents/skills",
    "omp": ".omp/skills",
}
"""Each profile with a folder of a project in which it searches."""

TOOLS = ("skill_load", "skill_read", "skill_run", "activate_skill", "Skill", "read")


def put(root: Path, text: str = "Theirs.") -> Path:
    """Put a skill with a reference and a script into a folder of skills; return the folder of the skill."""
    folder = root / NAME
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {NAME}\ndescription: {text}\n---\n{text}\n")
    (folder / "notes.md").write_text(text)
    (folder / "scripts/hello.sh").write_text("#!/bin/sh\necho hello\n")
    return folder


def calls(session: Session) -> list[Any]:
    """Try everything that a model can do with the skill; return the results that are not errors."""
    tries: list[tuple[str, dict[str, Any]]] = [
        ("skill_load", {"name": NAME}),
        ("activate_skill", {"skillName": NAME}),
        ("Skill", {"name": NAME}),
        ("read", {"path": f"skill://{NAME}"}),
        ("read", {"path": f"skill://{NAME}/notes.md"}),
        ("skill_read", {"uri": f"skill://{NAME}/notes.md"}),
        ("skill_read", {"uri": f"skill://{NAME}"}),
        ("skill_run", {"name": NAME, "script": "hello.sh"}),
    ]
    done = [session.call(tool, given) for tool, given in tries if tool in session.profile.tools]
    paths = [skill.path for skill in session.skills]
    if "path" in session.profile.load_by:
        done += [session.call("skill_load", {"path": path}) for path in paths]
    return [result for result in done if result.ok]


def shelf(project: Path, machine: Machine, profile: str, trust: Any) -> Any:
    """A shelf of a project of this machine."""
    return open_shelf(project, profile, home=machine.home, env={}, trust=trust)


# Every rule form, every profile ---------------------------------------------------------------------

RULES = [{"tool": tool, "skill_name": NAME} for tool in TOOLS]
WIDE = [{"tool": tool} for tool in TOOLS]
TOML = "permissions.allow = [{}]\npermissions.grant_from_skills = ['deploy']\n"


def _toml(rules: list[dict[str, str]]) -> str:
    tables = ("{ " + ", ".join(f"{key} = '{value}'" for key, value in rule.items()) + " }" for rule in rules)
    return TOML.format(", ".join(tables))


class Setting:
    """One form in which a user or a program allowed something of this name elsewhere."""

    def __init__(self, user: str = "", project: str = "", policy: Any = None, remembered: bool = False) -> None:
        self.user = user
        self.project = project
        self.policy = policy
        self.remembered = remembered


FORMS: dict[str, Setting] = {
    "nothing": Setting(),
    "user file, named": Setting(user=_toml(RULES)),
    "user file, wide": Setting(user=_toml(WIDE)),
    "project file, named": Setting(project=_toml(RULES)),
    "project file, wide": Setting(project=_toml(WIDE)),
    "project trusts itself": Setting(project="trust.folders = ['.', '/']\n"),
    "another folder is trusted": Setting(user="trust.folders = ['{mine}']\n"),
    "mapping, named": Setting(policy={"allow": RULES, "grant_from_skills": [NAME]}),
    "mapping, wide": Setting(policy={"allow": WIDE}),
    "Policy, named": Setting(policy=Policy(allow=tuple(PermissionRule(**rule) for rule in RULES))),
    "Policy, wide": Setting(policy=Policy(allow=tuple(PermissionRule(**rule) for rule in WIDE))),
    "default": Setting(policy="default"),
    "read-only": Setting(policy="read-only"),
    "remembered elsewhere": Setting(remembered=True),
    "remembered and allowed": Setting(remembered=True, user=_toml(RULES), policy={"allow": WIDE}),
}


@pytest.mark.req("C-91", "K-36")
@pytest.mark.parametrize("trust", ["ask", "user"])
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("form", FORMS)
def test_a_cloned_repository_opens_nothing_by_the_name_of_something_allowed_elsewhere(
    machine: Machine, form: str, profile: str, trust: str
) -> None:
    setting = FORMS[form]
    mine, clone, same, linked = (machine.base / name for name in ("mine", "clone", "same", "linked"))
    for project in (mine, clone, same, linked):
        (project / ".git").mkdir(parents=True)
    put(mine / PROFILES[profile], "Mine.")
    put(clone / PROFILES[profile])
    shutil.copytree(mine / PROFILES[profile], same / PROFILES[profile])
    (linked / PROFILES[profile]).mkdir(parents=True)
    (linked / PROFILES[profile] / NAME).symlink_to(clone / PROFILES[profile] / NAME)
    if setting.remembered:
        session = shelf(mine, machine, profile, trust).session({"run_unsandboxed": True}, confirm=lambda *_: "remember")
        for tool, given in (
            ("skill_load", {"name": NAME}),
            ("activate_skill", {"skillName": NAME}),
            ("Skill", {"name": NAME}),
            ("read", {"path": f"skill://{NAME}"}),
            ("skill_read", {"uri": f"skill://{NAME}/notes.md"}),
        ):
            assert tool not in session.profile.tools or session.call(tool, given).ok
    machine.configure(setting.user.replace("{mine}", str(mine)))
    for project in (clone, same, linked):
        (project / "skillshelf.toml").write_text(setting.project)
        session = shelf(project, machine, profile, trust).session(setting.policy)
        assert calls(session) == []
        assert session.active == ()
    # The same place with one other file is another thing, too.
    (mine / PROFILES[profile] / NAME / "scripts/more.sh").write_text("echo more\n")
    if form != "another folder is trusted" or trust == "user":
        assert calls(shelf(mine, machine, profile, trust).session(setting.policy)) == []


@pytest.mark.parametrize("trust", ["ask", "user"])
@pytest.mark.parametrize("profile", PROFILES)
def test_full_auto_allows_loads_of_everything_and_no_script_of_a_stranger(
    machine: Machine, profile: str, trust: str
) -> None:
    put(machine.repo / PROFILES[profile])
    session = shelf(machine.repo, machine, profile, trust).session({"name": "full-auto", "allow": [*RULES, *WIDE]})
    assert not session.call("skill_run", {"name": NAME, "script": "hello.sh"}).ok


def test_a_rule_for_a_tool_of_the_host_counts_while_a_trusted_skill_of_that_name_is_active(machine: Machine) -> None:
    put(machine.repo / ".agents/skills")
    policy = {"allow": [{"tool": "Bash", "skill_name": NAME}]}
    verdicts = []
    for trust in ("all", "ask"):
        session = shelf(machine.repo, machine, "standard", trust).session(policy, confirm=lambda *_: True)
        assert session.call("skill_load", {"name": NAME}).ok
        verdicts.append(session.decide("Bash", {"command": "ls"}).verdict)
    assert verdicts == ["allow", "confirm"]


# Approvals --------------------------------------------------------------------------------------------


def file_of(machine: Machine) -> Path:
    """The file of approvals."""
    return machine.home / ".local/state/skillshelf/approvals.json"


def remember(machine: Machine, tool: str = "skill_load", given: Any = None) -> Path:
    """Remember a load of the skill in the repository; return its folder."""
    folder = put(machine.repo / ".agents/skills")
    session = machine.shelf(trust="ask").session({"run_unsandboxed": True}, confirm=lambda *_: "remember")
    assert session.call(tool, given or {"name": NAME}).ok
    return folder


def can_load(machine: Machine, **options: Any) -> bool:
    """Whether a session without a user to ask loads the skill."""
    ok: bool = machine.shelf(trust="ask").session(**options).call("skill_load", {"name": NAME}).ok
    return ok


@pytest.mark.req("C-91")
@pytest.mark.parametrize("profile", PROFILES)
def test_an_approval_names_tool_path_and_tree_and_is_for_the_user_alone(machine: Machine, profile: str) -> None:
    folder = put(machine.repo / PROFILES[profile])
    session = machine.shelf(profile, trust="ask").session(confirm=lambda *_: "remember")
    (tool, given) = {
        "swiftagent": ("activate_skill", {"skillName": NAME}),
        "mycodeagent": ("Skill", {"name": NAME}),
        "omp": ("read", {"path": f"skill://{NAME}"}),
    }.get(profile, ("skill_load", {"name": NAME}))

    assert session.call(tool, given).ok

    value = json.loads(file_of(machine).read_text())
    (one,) = value["approvals"]
    assert value["version"] == 1
    assert one.pop("at").endswith("Z")
    assert one == {
        "tool": "skill_read" if profile == "omp" else "skill_load",
        "name": NAME,
        "path": str(folder / "SKILL.md"),
        "tree": skill_tree(str(folder)).digest,
        "origin": None,
    }
    assert file_of(machine).stat().st_mode & 0o777 == 0o600
    assert machine.shelf(profile, trust="ask").session().call(tool, given).ok
    assert (machine.home / ".config").exists() is (profile == "codelia")


CHANGES: dict[str, Callable[[Path], object]] = {
    "another text": lambda folder: (folder / "SKILL.md").write_text(f"---\nname: {NAME}\ndescription: D.\n---\nNew.\n"),
    "another reference": lambda folder: (folder / "notes.md").write_text("new"),
    "a new file": lambda folder: (folder / "more.md").write_text("new"),
    "a file less": lambda folder: (folder / "notes.md").unlink(),
    "another mode": lambda folder: (folder / "scripts/hello.sh").chmod(0o755),
    "a link": lambda folder: (folder / "more.md").symlink_to("notes.md"),
}


@pytest.mark.req("K-10")
@pytest.mark.parametrize("change", CHANGES)
def test_after_any_change_of_a_file_the_user_is_asked_again(machine: Machine, change: str) -> None:
    folder = put(machine.repo / ".agents/skills")
    questions: list[Any] = []

    def confirm(*question: str) -> Any:
        questions.append(question)
        return "remember"

    session = machine.shelf(trust="ask").session(confirm=confirm)
    for _ in range(3):
        assert session.call("skill_load", {"name": NAME}).ok
    assert len(questions) == 1
    assert can_load(machine)

    CHANGES[change](folder)

    assert not can_load(machine)
    assert session.call("skill_load", {"name": NAME}).ok
    assert len(questions) == 2


@pytest.mark.req("K-10")
def test_a_plain_yes_counts_once_and_is_not_kept(machine: Machine) -> None:
    put(machine.repo / ".agents/skills")
    questions: list[Any] = []

    def confirm(*question: str) -> bool:
        questions.append(question)
        return True

    session = machine.shelf(trust="ask").session(confirm=confirm)

    assert [session.call("skill_load", {"name": NAME}).ok for _ in range(2)] == [True, True]

    assert len(questions) == 2
    assert not can_load(machine)


@pytest.mark.req("K-10")
def test_a_yes_is_for_one_tool(machine: Machine) -> None:
    remember(machine)
    session = machine.shelf(trust="ask").session()
    assert not session.call("skill_read", {"uri": f"skill://{NAME}/notes.md"}).ok
    assert not session.call("skill_run", {"name": NAME, "script": "hello.sh"}).ok


@pytest.mark.slow
def test_a_remembered_run_is_for_all_scripts_of_these_files_and_offers_the_tool(machine: Machine) -> None:
    # A skill of the user's own, because no tool is offered where a model is told of no skill.
    write_skill(machine.home / ".agents/skills", "mine")
    folder = put(machine.repo / ".agents/skills")
    (folder / "scripts/other.sh").write_text("#!/bin/sh\necho other\n")
    asking = machine.shelf(trust="ask").session({"run_unsandboxed": True}, confirm=lambda *_: "remember")
    assert asking.call("skill_run", {"name": NAME, "script": "hello.sh"}).ok

    session = machine.shelf(trust="ask").session({"run_unsandboxed": True})

    assert "skill_run" in [tool.name for tool in session.tools()]
    assert session.call("skill_run", {"name": NAME, "script": "other.sh"}).ok
    (folder / "scripts/other.sh").write_text("#!/bin/sh\necho changed\n")
    assert not session.call("skill_run", {"name": NAME, "script": "hello.sh"}).ok


@pytest.mark.slow
def test_a_script_never_sees_a_git_folder_that_no_digest_covers(machine: Machine) -> None:
    folder = put(machine.home / ".agents/skills")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("x")
    (folder / "scripts/hello.sh").write_text('#!/bin/sh\nls -A "$SKILL_DIR"\n')
    session = machine.shelf().session({"allow": [{"tool": "skill_run"}], "run_unsandboxed": True})
    result = session.call("skill_run", {"name": NAME, "script": "hello.sh"})
    assert result.data["stdout"].split() == ["SKILL.md", "notes.md", "scripts"]


def test_a_file_that_no_approval_covers_is_not_read(machine: Machine) -> None:
    folder = put(machine.repo / ".agents/skills")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("x")
    session = machine.shelf(trust="ask").session(confirm=lambda *_: True)
    assert session.call("skill_read", {"uri": f"skill://{NAME}/scripts"}).ok
    assert session.call("skill_read", {"uri": f"skill://{NAME}/notes.md"}).ok
    assert not session.call("skill_read", {"uri": f"skill://{NAME}/.git/config"}).ok


def test_the_tree_is_in_the_event_only_where_it_decides(machine: Machine) -> None:
    folder = put(machine.repo / ".agents/skills")
    trees = []
    for trust in ("all", "ask"):
        events: list[Any] = []
        session = machine.shelf(trust=trust).session(confirm=lambda *_: True, on_event=events.append)
        # A plain load of a trusted skill reads no other file, so one that cannot be read does not matter.
        assert session.call("skill_load", {"name": NAME}).ok
        assert [event.digest for event in events if isinstance(event, SkillLoaded)]
        trees += [event.tree for event in events if isinstance(event, PermissionDecided)]
    assert trees == [None, skill_tree(str(folder)).digest]


def test_an_old_rule_that_no_longer_reaches_a_skill_is_named_once_with_the_command(machine: Machine) -> None:
    put(machine.repo / ".agents/skills")
    machine.configure(_toml([{"tool": "skill_load", "skill_name": NAME}]))
    events: list[Any] = []
    session = machine.shelf(trust="ask").session(on_event=events.append)
    results = [session.call("skill_load", {"name": NAME}) for _ in range(3)]

    warnings = [event.detail for event in events if isinstance(event, SkillWarning)]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"`permissions.allow: skill_load {NAME}` counts for trusted skills only")
    assert warnings[0].endswith(f"skillshelf trust {machine.repo}")
    assert results[0].error is not None
    assert "counts for trusted skills only" in results[0].error.message


# The file ---------------------------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_text(path.read_text()[:-20]),
    "empty": lambda path: path.write_text(""),
    "a list": lambda path: path.write_text("[]"),
    "no version": lambda path: path.write_text('{"approvals": []}'),
    "newer": lambda path: path.write_text(path.read_text().replace('"version": 1', '"version": 2')),
    "a member twice": lambda path: path.write_text(
        path.read_text().replace('"version": 1', '"version": 1, "version": 1')
    ),
    "a wrong member": lambda path: path.write_text(path.read_text().replace('"tool"', '"tools"')),
    "not UTF-8": lambda path: path.write_bytes(b"\xff"),
    "nested": lambda path: path.write_text("[" * 100_000),
    "writable by others": lambda path: path.chmod(0o666),
    "a link": lambda path: (path.rename(path.with_suffix(".moved")), path.symlink_to(path.with_suffix(".moved"))),  # type: ignore[func-returns-value]
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_cannot_be_used_allows_nothing_is_named_once_and_never_written_over(
    machine: Machine, damage: str
) -> None:
    remember(machine)
    path = file_of(machine)
    DAMAGE[damage](path)
    before = path.read_bytes()
    events: list[Any] = []

    session = machine.shelf(trust="ask").session(on_event=events.append)
    assert [session.call("skill_load", {"name": NAME}).ok for _ in range(2)] == [False, False]
    answered = machine.shelf(trust="ask").session(confirm=lambda *_: "remember", on_event=events.append)
    assert answered.call("skill_load", {"name": NAME}).ok

    kinds = [event.kind for event in events if isinstance(event, SkillWarning)]
    assert kinds == ["approvals", "approvals", "not-remembered"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("home", ["XDG_STATE_HOME", "HOME"])
def test_the_file_lies_in_the_state_folder(tmp_path: Path, home: str) -> None:
    env = {"HOME": str(tmp_path / "h"), **({"XDG_STATE_HOME": str(tmp_path / "s")} if home != "HOME" else {})}
    found = approvals_path(make_environment(str(tmp_path), None, env))
    place = "s" if home != "HOME" else "h/.local/state"
    assert found == f"{tmp_path}/{place}/skillshelf/approvals.json"
    moved = approvals_path(make_environment(str(tmp_path), str(tmp_path / "m"), env))
    assert moved == f"{tmp_path}/m/.local/state/skillshelf/approvals.json"


def test_an_entry_without_a_path_is_read_and_opens_no_project(machine: Machine) -> None:
    folder = put(machine.repo / ".agents/skills")
    tree = skill_tree(str(folder)).digest
    entry = {
        "tool": "skill_load",
        "name": NAME,
        "path": None,
        "tree": tree,
        "origin": "git+x",
        "at": "2026-01-01T00:00:00Z",
    }
    file_of(machine).parent.mkdir(parents=True)
    file_of(machine).write_text(json.dumps({"version": 1, "approvals": [entry]}))
    os.chmod(file_of(machine), 0o600)
    assert not can_load(machine)
    assert machine.run_json("trust", "--list") == [entry]


# Commands ---------------------------------------------------------------------------------------------


def test_trust_lists_approvals_and_takes_them_back(machine: Machine) -> None:
    folder = remember(machine)
    listed = machine.run("trust", "--list")
    assert f"approved: skill_load of {NAME} ({folder}/SKILL.md), {skill_tree(str(folder)).digest}" in listed.stdout
    assert can_load(machine)

    other = machine.run("trust", "--remove", str(machine.home))
    assert "not trusted" in other.stdout
    assert can_load(machine)
    removed = machine.run("trust", "--remove", str(folder))

    assert f"skill_load of {NAME} is no longer approved" in removed.stdout
    assert not can_load(machine)
    assert machine.run_json("trust", "--list") == []


def test_a_folder_is_no_longer_trusted_even_if_the_approvals_cannot_be_used(machine: Machine) -> None:
    file_of(machine).parent.mkdir(parents=True)
    file_of(machine).write_text("damaged")
    assert machine.run("trust", ".").returncode == 0

    done = machine.run("trust", ".", "--remove")

    assert (done.returncode, "no longer trusted" in done.stdout) == (0, True)
    assert "nothing in it counts" in done.stderr
    assert machine.run("trust", "--list").stdout == "No folder is trusted.\n"


def test_digest_prints_the_tree_and_show_has_it(machine: Machine) -> None:
    folder = put(machine.home / ".agents/skills")
    tree = skill_tree(str(folder))

    assert machine.run("digest", str(folder)).stdout == f"{tree.digest}\n"
    form = machine.run_json("digest", str(folder / "SKILL.md"))
    assert form == {
        "path": str(folder),
        "tree": tree.digest,
        "files": 3,
        "bytes": tree.size,
        "tree_problem": None,
    }
    shown = machine.run_json("show", NAME)
    assert (shown["tree"], "tree_problem" in shown) == (tree.digest, False)
    (folder / ".git").mkdir()
    assert machine.run_json("digest", str(folder))["tree_problem"] == "git-folder"
    assert machine.run_json("show", NAME)["tree_problem"] == "git-folder"
    (folder / "link").symlink_to("nowhere")
    done = machine.run("digest", str(folder), "--json")
    assert (done.returncode, json.loads(done.stdout)["tree"], json.loads(done.stdout)["tree_problem"]) == (
        1,
        None,
        "link",
    )
    assert machine.run("digest", str(folder / "nothing")).returncode == 3


def test_writers_at_once_lose_no_approval(machine: Machine) -> None:
    environment = make_environment(str(machine.repo), str(machine.home), {})

    def add(number: int) -> bool:
        return add_approval(environment, "skill_load", NAME, f"/skills/{number}/SKILL.md", "sha256:0")

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(add, range(40)))
        assert not any(pool.map(add, range(40)))

    assert {one.path for one in read_approvals(environment)} == {f"/skills/{n}/SKILL.md" for n in range(40)}


# Replay -----------------------------------------------------------------------------------------------


def test_replay_takes_answers_from_the_journal_and_neither_reads_nor_writes_approvals(machine: Machine) -> None:
    folder = remember(machine)
    linking = machine.repo / ".agents/skills/linking"
    shutil.copytree(folder, linking)
    (linking / "SKILL.md").write_text("---\nname: linking\ndescription: D.\n---\nBody.\n")
    (linking / "link").symlink_to("notes.md")
    journal = machine.base / "run.jsonl"

    def confirm(tool: str, name: str, reason: str) -> Any:
        if tool == "skill_read":
            raise RuntimeError("the window is gone")
        return "remember"

    with machine.shelf(trust="ask").session(journal=journal, confirm=confirm) as session:
        assert session.call("skill_load", {"name": NAME}).ok
        assert not session.call("skill_read", {"uri": f"skill://{NAME}/notes.md"}).ok
        assert session.call("skill_load", {"name": "linking"}).ok
    with machine.shelf(trust="ask").session(journal=journal) as session:
        assert session.call("skill_load", {"name": NAME}).ok
        assert not session.call("skill_load", {"name": "linking"}).ok
    file_of(machine).unlink()

    def again() -> Any:
        return replay(journal, cwd=machine.repo, home=machine.home, env={}).differences

    assert again() == ()
    assert not file_of(machine).exists()
    (folder / "more.md").write_text("new")
    assert ["tree" in difference.detail for difference in again()] == [True, True]


# Between the question and the use -------------------------------------------------------------------------


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize(
    ("tool", "given", "file"),
    [
        ("skill_load", {"name": NAME}, "SKILL.md"),
        ("skill_read", {"uri": f"skill://{NAME}"}, "SKILL.md"),
        ("skill_read", {"uri": f"skill://{NAME}/notes.md"}, "notes.md"),
    ],
)
def test_a_file_that_is_swapped_while_the_user_is_asked_is_not_given_to_the_model(
    machine: Machine, tool: str, given: dict[str, Any], file: str, link: bool
) -> None:
    folder = put(machine.repo / ".agents/skills")
    if link:
        (folder / "link.md").symlink_to("notes.md")

    def confirm(*_: str) -> bool:
        (folder / file).write_text(f"---\nname: {NAME}\ndescription: Other.\n---\nEVIL\n")
        return True

    result = machine.shelf(trust="ask").session(confirm=confirm).call(tool, given)

    assert (result.ok, "EVIL" in result.text) == (False, False)


@pytest.mark.parametrize("target", ["../../../shared.md", ".git/shared.md"])
def test_a_yes_to_a_skill_whose_file_is_a_link_ends_when_what_it_leads_to_changes(
    machine: Machine, target: str
) -> None:
    folder = put(machine.repo / ".agents/skills")
    shared = folder / target
    shared.parent.mkdir(exist_ok=True)
    (folder / "SKILL.md").rename(shared)
    (folder / "SKILL.md").symlink_to(target)
    questions: list[str] = []

    def confirm(tool: str, name: str, reason: str) -> Any:
        questions.append(reason)
        return "remember"

    session = machine.shelf(trust="ask").session(confirm=confirm)
    for text in ("One.", "Other text.", None):
        if text is not None:
            shared.write_text(f"---\nname: {NAME}\ndescription: x\n---\n{text}\n")
        assert session.call("skill_load", {"name": NAME}).ok

    assert len(questions) == 2
    assert "it holds a link" in questions[0]


def test_an_approval_is_kept_and_said_to_be_kept_if_only_its_rule_cannot_be_written(machine: Machine) -> None:
    put(machine.repo / ".agents/skills")
    events: list[Any] = []

    def confirm(*_: str) -> Any:
        config = machine.home / ".config/skillshelf"
        config.parent.mkdir(parents=True)
        config.write_text("not a folder")
        return "remember"

    shelf = machine.shelf("codelia", trust="ask")
    journal = machine.base / "run.jsonl"
    with shelf.session(confirm=confirm, on_event=events.append, journal=journal) as session:
        assert session.call("skill_load", {"name": NAME}).ok

    (warning,) = [event for event in events if isinstance(event, SkillWarning)]
    assert (warning.kind, "this session only" in warning.detail) == ("rule-not-written", False)
    (machine.home / ".config/skillshelf").unlink()
    assert machine.shelf("codelia", trust="ask").session().call("skill_load", {"name": NAME}).ok
    assert replay(journal, cwd=machine.repo, home=machine.home, env={}).differences == ()


@pytest.mark.req("K-59")
@pytest.mark.parametrize("answer", [True, "remember", False])
def test_a_session_beside_a_damaged_file_of_approvals_replays_without_a_difference(
    machine: Machine, answer: Any
) -> None:
    put(machine.repo / ".agents/skills")
    file_of(machine).parent.mkdir(parents=True)
    file_of(machine).write_text("damaged")
    journal = machine.base / "run.jsonl"
    with machine.shelf(trust="ask").session(confirm=lambda *_: answer, journal=journal) as session:
        assert [session.call("skill_load", {"name": NAME}).ok for _ in range(2)] == [bool(answer)] * 2

    assert replay(journal, cwd=machine.repo, home=machine.home, env={}).differences == ()


def test_a_full_file_of_approvals_takes_no_more_and_stays_readable(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(machine)
    before = file_of(machine).read_bytes()
    monkeypatch.setattr("skillshelf.config.approvals.APPROVALS_BYTES", len(before))
    environment = make_environment(cwd=str(machine.repo), home=str(machine.home), env={})

    with pytest.raises(SkillError, match="is full; take some back: skillshelf trust --remove PATH"):
        add_approval(environment, "skill_load", NAME, "/other/SKILL.md", "sha256:0")

    assert file_of(machine).read_bytes() == before
    assert can_load(machine)


def test_the_file_of_approvals_is_read_once_for_all_skills_of_a_list_of_tools(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three"):
        write_skill(machine.repo / ".agents/skills", name)
    reads: list[int] = []

    def count(environment: Any) -> list[Any]:
        reads.append(1)
        return []

    monkeypatch.setattr("skillshelf.config.approvals.read_approvals", count)
    machine.shelf().session().tools()

    assert len(reads) == 1
