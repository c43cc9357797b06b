"""An installed skill is handed out only if all of its files are those that its lock names, on every surface."""

import json
import os
import time
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.locked import CHANGES, change, install, locked_entry, write_lock
from support.needs import needs_sandbox
from support.rpcclient import rpc_process
from support.trees import Machine, write_skill

import skillshelf
from skillshelf.adapters.json_tools import anthropic_result, openai_result
from skillshelf.catalog.packed import PackedSkills
from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.store import Store
from skillshelf.config.approvals import is_approved
from skillshelf.core.limits import CACHE_FROM, SETTLED_NS
from skillshelf.errors import PermissionDenied, ResourceNotFound, SkillChanged
from skillshelf.journal.events import SkillLoaded, SkillRead, SkillWarning, ToolStdout

CASES = 100
"""Changed skills; each is asked for on every surface."""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A hundred installed skills, each with one change of one of the six kinds."""
    machine = Machine(tmp_path_factory.mktemp("changed"))
    random, entries, kinds = Random(21), {}, list(CHANGES)
    for number in range(CASES):
        contents: dict[str, str | bytes] = {
            "scripts/run.sh": "#!/bin/sh\necho ran\n",
            **{f"references/{n}.md": random.randbytes(random.randrange(1, 300)) for n in range(random.randrange(1, 4))},
        }
        folder = install(machine.repo, f"skill-{number}", contents)
        entries[folder.name] = locked_entry(folder)
    write_lock(machine.repo / "skillshelf.lock", entries)
    assert {skill.hidden for skill in machine.catalog().skills} == {None}
    for number in range(CASES):
        change(machine.repo / f".agents/skills/skill-{number}", kinds[number % len(kinds)], random)
    return machine


def names() -> list[str]:
    return [f"skill-{number}" for number in range(CASES)]


def test_a_load_and_a_read_from_python_are_refused(changed: Machine) -> None:
    shelf = changed.shelf()
    for name in names():
        with pytest.raises(SkillChanged) as caught:
            shelf.load(name)
        assert (caught.value.name, len(caught.value.files) > 0) == (name, True)
        with pytest.raises(SkillChanged):
            shelf.read(f"skill://{name}/SKILL.md")


def test_every_tool_of_a_session_is_refused_and_leaves_a_warning(changed: Machine) -> None:
    events: list[Any] = []
    session = changed.shelf().session("full-auto", on_event=events.append)
    for name in names():
        for tool, given in (
            ("skill_load", {"name": name}),
            ("skill_read", {"uri": f"skill://{name}/SKILL.md"}),
            ("skill_run", {"name": name, "script": "run.sh"}),
        ):
            result = session.call(tool, given)
            assert result.error is not None, (name, tool)
            assert (result.error.code, result.text == "" or name in result.text) == ("changed", True)
    warned = [event.name for event in events if isinstance(event, SkillWarning) and event.kind == "lock-changed"]
    assert [name for name in warned if name in names()][-3 * CASES :] == [name for name in names() for _ in range(3)]
    assert not [event for event in events if isinstance(event, SkillLoaded | SkillRead | ToolStdout)]


def test_adapters_are_refused(changed: Machine) -> None:
    session = changed.shelf().session()
    for name in names():
        call = {"type": "tool_use", "id": "t", "name": "skill_load", "input": {"name": name}}
        answer = anthropic_result(session, call)
        assert answer["is_error"] is True
        assert "Skill changed since it was installed" in answer["content"]
        function = {"name": "skill_load", "arguments": json.dumps({"name": name})}
        other = openai_result(session, {"id": "t", "type": "function", "function": function})
        assert "Skill changed since it was installed" in other["content"]


def test_show_and_read_exit_4_with_the_code(changed: Machine) -> None:
    for name in names():
        for words in (("show", name), ("read", f"skill://{name}/SKILL.md")):
            done = changed.run(*words, "--json")
            assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "changed"), done.stderr


def test_models_are_not_told_of_a_changed_skill_and_people_see_why(changed: Machine) -> None:
    catalog = changed.catalog()
    lock = str(changed.repo / "skillshelf.lock")
    assert {(skill.hidden, skill.hidden_by, skill.origin) for skill in catalog.skills} == {
        ("changed", lock, "./source")
    }
    assert changed.shelf().prompt() == ""
    assert changed.shelf().search("things", model=True).results == ()
    listed = changed.run_json("list")
    assert {skill["hidden"] for skill in listed["skills"]} == {"changed"}
    assert {warning["rule"] for warning in listed["warnings"]} == {"lock-changed"}


@pytest.mark.slow
def test_scripts_are_not_run_by_the_command(changed: Machine) -> None:
    for name in names()[:6]:
        done = changed.run("run", name, "run.sh", "--json")
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "changed"), done.stderr


@pytest.mark.slow
def test_a_real_mcp_server_refuses(changed: Machine) -> None:
    mcps = pytest.importorskip("support.mcps")

    async def ask() -> None:
        async with mcps.Client(mcps.command_of(changed, "--trust")) as client:
            for name in names():
                for tool, given in (
                    ("skill_load", {"name": name}),
                    ("skill_read", {"uri": f"skill://{name}/SKILL.md"}),
                ):
                    result = await client.call_tool(tool, given)
                    assert result.is_error
                    assert "Skill changed since it was installed" in result.content[0].text, (name, tool)
                    if result.structured_content is not None:
                        assert result.structured_content["error"]["code"] == "changed"

    mcps.run(ask)


@pytest.mark.slow
def test_a_server_that_watches_follows_a_lock(machine: Machine) -> None:
    mcps = pytest.importorskip("support.mcps")
    folder = install(machine.home, "deploy")
    lock, entry = machine.home / ".config/skillshelf/skillshelf.lock", locked_entry(folder)

    async def follow() -> None:
        async with mcps.client_of(machine, watching=True) as client:
            for tree, expected in ((entry.tree, 1), (f"sha256:{'0' * 64}", 0), (entry.tree, 1)):
                write_lock(lock, {"deploy": entry._replace(tree=tree)})
                while len(list(filter(is_deploy, (await mcps.ask(client, "resources/list"))["resources"]))) != expected:
                    await mcps.anyio.sleep(0.05)

    mcps.run(follow)


def is_deploy(resource: dict[str, Any]) -> bool:
    return bool(resource["uri"] == "skill://deploy/SKILL.md")


@pytest.mark.slow
def test_a_real_rpc_server_refuses(changed: Machine) -> None:
    with rpc_process(changed, "--trust") as client:
        session = client.open()
        for name in names():
            assert client.fail("skills.load", name=name)[1] == "changed"
            assert client.fail("skills.read", uri=f"skill://{name}/SKILL.md")[1] == "changed"
            answer = client.ask("session.call", session=session, tool="skill_load", arguments={"name": name})
            assert answer["error"]["code"] == "changed"


# What refuses nothing ----------------------------------------------------------------------------


def installed(machine: Machine, name: str = "deploy") -> Path:
    folder = install(machine.repo, name, {"references/a.md": "text\n", "scripts/run.sh": "#!/bin/sh\nls -R .. $PWD\n"})
    write_lock(machine.repo / "skillshelf.lock", {name: locked_entry(folder)})
    return folder


def test_an_unchanged_installed_skill_is_handed_out_with_its_tree(machine: Machine) -> None:
    folder = installed(machine)
    tree = locked_entry(folder).tree
    loaded = machine.shelf().load("deploy")

    assert (loaded.tree, loaded.skill.tree, loaded.files) == (tree, tree, ("references/a.md", "scripts/run.sh"))
    assert machine.shelf().read("skill://deploy/references/a.md").content == "text\n"
    assert machine.shelf().read("skill://deploy/references").content == "a.md"
    assert machine.run_json("show", "deploy")["tree"] == tree
    events: list[Any] = []
    assert machine.shelf().session(on_event=events.append).call("skill_load", {"name": "deploy"}).ok
    assert [event.tree for event in events if isinstance(event, SkillLoaded)] == [tree]


def test_an_unlocked_skill_has_no_tree(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "own")
    events: list[Any] = []
    assert machine.shelf().session(on_event=events.append).call("skill_load", {"name": "own"}).ok
    assert [event.tree for event in events if isinstance(event, SkillLoaded)] == [None]
    assert machine.shelf().load("own").tree is None


def test_folders_that_python_made_are_reported_and_never_handed_out(machine: Machine) -> None:
    folder = installed(machine)
    for place in ("scripts/__pycache__", "__pycache__"):
        (folder / place).mkdir()
        (folder / place / "evil.cpython-311.pyc").write_bytes(b"evil")
    (folder / "__pycache__/link").symlink_to("/etc")
    shelf = machine.shelf()

    assert {warning.rule for warning in shelf.catalog.warnings} == {"lock-extra"}
    assert shelf.catalog.skills[0].hidden is None
    loaded = shelf.load("deploy")
    assert (loaded.files, [warning.rule for warning in loaded.warnings]) == (
        ("references/a.md", "scripts/run.sh"),
        ["lock-extra"],
    )
    for path in ("scripts/__pycache__/evil.cpython-311.pyc", "__pycache__", "__pycache__/link/passwd"):
        with pytest.raises(ResourceNotFound):
            shelf.read(f"skill://deploy/{path}")
    assert shelf.read("skill://deploy/scripts").content == "run.sh"


def test_an_installed_folder_of_python_must_be_as_it_was(machine: Machine) -> None:
    folder = install(machine.repo, "deploy", {"scripts/__pycache__/a.pyc": b"one"})
    write_lock(machine.repo / "skillshelf.lock", {"deploy": locked_entry(folder)})
    assert machine.shelf().read("skill://deploy/scripts/__pycache__/a.pyc").content == "one"

    (folder / "scripts/__pycache__/a.pyc").write_bytes(b"two")
    with pytest.raises(SkillChanged):
        machine.shelf().load("deploy")


def test_a_link_in_the_place_of_such_a_folder_is_a_change(machine: Machine) -> None:
    folder = installed(machine)
    (folder / "__pycache__").symlink_to("/tmp")
    with pytest.raises(SkillChanged, match="__pycache__"):
        machine.shelf().load("deploy")


@pytest.mark.slow
@needs_sandbox
def test_a_script_sees_exactly_the_installed_files(machine: Machine) -> None:
    folder = installed(machine)
    (folder / "scripts/__pycache__").mkdir()
    (folder / "scripts/__pycache__/evil.pyc").write_bytes(b"evil")
    session = machine.shelf().session("full-auto")
    result = session.call("skill_run", {"name": "deploy", "script": "run.sh"})
    assert result.ok, result.error
    assert "__pycache__" not in result.text


# What a lock speaks of ----------------------------------------------------------------------------


def test_line_ends_alone_are_a_change_that_names_the_file(machine: Machine) -> None:
    data = Path(machine.home / ".local/share/skillshelf/store/1")
    text = b"---\nname: deploy\ndescription: Deploys. Use when asked to deploy.\n---\nbody\n"
    contents = {"SKILL.md": text, "references/a.md": b"one\ntwo\n", "run.sh": ExecutableFile(b"#!/bin/sh\n")}
    tree = Store(str(data)).put(contents)
    folder = install(machine.repo, "deploy", {path: bytes(one) for path, one in contents.items()})
    write_lock(machine.repo / "skillshelf.lock", {"deploy": locked_entry(folder)._replace(tree=tree)})
    assert machine.shelf().load("deploy").tree == tree

    (folder / "references/a.md").write_bytes(b"one\r\ntwo\r\n")
    (folder / "run.sh").chmod(0o644)
    (folder / "added").write_bytes(b"")
    with pytest.raises(SkillChanged) as caught:
        machine.shelf().load("deploy")
    assert caught.value.files == ("added", "references/a.md", "run.sh")


def test_a_skill_in_the_store_is_what_its_place_says(machine: Machine) -> None:
    store = Store(str(machine.home / ".local/share/skillshelf/store/1"))
    text = b"---\nname: deploy\ndescription: Deploys. Use when asked to deploy.\n---\nbody\n"
    tree = store.put({"SKILL.md": text})
    link = machine.home / ".agents/skills/deploy"
    link.parent.mkdir(parents=True)
    link.symlink_to(store.path_of(tree))
    assert machine.shelf().load("deploy").tree == tree

    file = Path(store.path_of(tree)) / "SKILL.md"
    file.chmod(0o644)
    file.write_bytes(text + b"more\n")
    with pytest.raises(SkillChanged, match=r"SKILL\.md"):
        machine.shelf().load("deploy")
    assert machine.catalog().skills[0].hidden == "changed"


def test_a_folder_where_the_lock_of_the_user_wants_an_installed_skill_must_be_it(machine: Machine) -> None:
    folder = install(machine.home, "deploy")
    write_lock(machine.home / ".config/skillshelf/skillshelf.lock", {"deploy": locked_entry(folder)})
    assert machine.shelf().load("deploy").tree is not None

    (folder / "SKILL.md").write_text((folder / "SKILL.md").read_text() + "more")
    with pytest.raises(SkillChanged):
        machine.shelf().load("deploy")


def test_the_lock_of_a_project_speaks_of_no_other_folder(machine: Machine) -> None:
    other = install(machine.base / "other", "deploy")
    (machine.base / "other/.git").mkdir()
    entry = locked_entry(other)._replace(tree=f"sha256:{'0' * 64}")
    write_lock(machine.repo / "skillshelf.lock", {"deploy": entry})
    (machine.repo / ".agents").mkdir()
    write_skill(machine.repo / "tools/skills", "deploy")
    for folder in (other, machine.repo / "tools/skills/deploy"):
        machine.env["AGENT_SKILLS_PATH"] = str(folder.parent)
        assert machine.shelf().load(path=str(folder)).tree is None


def test_a_copy_for_a_host_that_the_lock_names_must_be_the_skill(machine: Machine) -> None:
    folder = install(machine.repo, "deploy")
    host = next(name for name, profile in skillshelf_hosts() if ".claude/skills" in profile)
    write_lock(machine.repo / "skillshelf.lock", {"deploy": locked_entry(folder, hosts=[host])})
    copy = machine.repo / ".claude/skills/deploy"
    copy.mkdir(parents=True)
    (copy / "SKILL.md").write_bytes((folder / "SKILL.md").read_bytes() + b"more")
    shelf = machine.shelf()
    with pytest.raises(SkillChanged):
        shelf.load(path=str(copy)) if copy in [Path(s.dir) for s in shelf.catalog.skills] else shelf_at(machine, copy)


def skillshelf_hosts() -> list[tuple[str, set[str]]]:
    from skillshelf.config.hosts import HOSTS

    return [(name, {path for rule in host.roots for path in rule.paths}) for name, host in HOSTS.items()]


def shelf_at(machine: Machine, folder: Path) -> skillshelf.LoadedSkill:
    machine.env["AGENT_SKILLS_PATH"] = str(folder.parent)
    return machine.shelf().load(path=str(folder))


def test_a_copy_that_we_made_of_an_installed_skill_must_be_as_we_made_it(machine: Machine) -> None:
    store = Store(str(machine.home / ".local/share/skillshelf/store/1"))
    text = b"---\nname: deploy\ndescription: Deploys. Use when asked to deploy.\n---\nbody\n"
    tree = store.put({"SKILL.md": text})
    copies = {name: machine.home / f".claude/skills/{name}" for name in ("deploy", "own")}
    for folder in copies.values():
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(text.replace(b"deploy", folder.name.encode()))
    write_skill(machine.home / "skills", "own")
    sources = {"deploy": store.path_of(tree), "own": str(machine.home / "skills/own")}
    links = [
        {"path": str(folder), "how": "copy", "source": sources[name], "tree": tree} for name, folder in copies.items()
    ]
    state = machine.home / ".local/state/skillshelf/links.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"version": 1, "links": links}))
    assert {skill.name: skill.tree for skill in machine.catalog().skills} == {"deploy": tree, "own": None}

    for folder in copies.values():
        (folder / "SKILL.md").write_bytes((folder / "SKILL.md").read_bytes() + b"more\n")
    with pytest.raises(SkillChanged):
        machine.shelf().load("deploy")
    assert machine.shelf().load("own").tree is None


@pytest.mark.parametrize("text", ["{", '{"lock": 1,\n<<<<<<< ours\n"skills": {}}', '{"lock": 2, "skills": {}}'])
def test_a_lock_that_cannot_be_read_refuses_what_it_may_name(machine: Machine, text: str) -> None:
    installed(machine)
    write_skill(machine.repo / ".claude/skills", "own")
    (machine.repo / "skillshelf.lock").write_text(text)
    shelf = machine.shelf()

    (error,) = [error for error in shelf.catalog.errors if error.rule == "lock-unusable"]
    assert (error.path, error.line) == (str(machine.repo / "skillshelf.lock"), 2 if "ours" in text else error.line)
    assert {skill.name: skill.hidden for skill in shelf.catalog.skills} == {"deploy": "changed", "own": None}
    with pytest.raises(PermissionDenied, match="skillshelf verify"):
        shelf.load("deploy")
    assert shelf.load("own")
    assert shelf.session().call("skill_load", {"name": "deploy"}).error is not None


def test_a_settled_skill_is_handed_out_again_without_a_new_scan(machine: Machine) -> None:
    folder = installed(machine)
    before = (folder / "references/a.md").read_bytes()
    (folder / "references/a.md").write_bytes(b"other")
    session = machine.shelf().session()
    assert session.call("skill_load", {"name": "deploy"}).error is not None

    (folder / "references/a.md").write_bytes(before)
    assert session.call("skill_load", {"name": "deploy"}).ok


@pytest.mark.parametrize("skills", [1, 400])
def test_a_listing_never_tells_an_old_state(machine: Machine, skills: int) -> None:
    """With few skills no catalog is packed, with many it is; a change behind the catalog's back is seen in both."""
    entries = {}
    for number in range(skills):
        folder = install(machine.repo, f"skill-{number}", {"references/a.md": "text"})
        entries[folder.name] = locked_entry(folder)
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (1, 1))
    write_lock(machine.repo / "skillshelf.lock", entries)
    for _ in range(2):
        assert {skill.hidden for skill in machine.catalog().skills} == {None}
    (machine.repo / ".agents/skills/skill-0/references/a.md").write_text("next")
    os.utime(machine.repo / ".agents/skills/skill-0/references/a.md", (1, 1))
    for _ in range(2):
        hidden = {skill.name: skill.hidden for skill in machine.catalog().skills}
        assert [name for name, why in hidden.items() if why] == ["skill-0"]
        assert machine.run("list").stdout.count("changed") == 1
    (machine.repo / ".agents/skills/skill-0/references/a.md").write_text("text")
    assert {skill.hidden for skill in machine.catalog().skills} == {None}


# Trust --------------------------------------------------------------------------------------------


def approve(machine: Machine, tree: str, path: str | None) -> None:
    row = {"tool": "skill_load", "name": "deploy", "path": path, "tree": tree, "origin": "./source", "at": "now"}
    file = machine.home / ".local/state/skillshelf/approvals.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": 1, "approvals": [row]}))
    file.chmod(0o600)


def test_the_lock_of_a_project_approves_nothing(machine: Machine) -> None:
    folder = installed(machine)
    approve(machine, locked_entry(folder).tree, None)
    result = machine.shelf(trust="ask").session().call("skill_load", {"name": "deploy"})
    assert result.error is not None
    assert result.error.code == "denied"


def test_an_approval_without_a_path_counts_for_its_tree_in_the_store(machine: Machine) -> None:
    store = Store(str(machine.home / ".local/share/skillshelf/store/1"))
    tree = store.put({"SKILL.md": b"---\nname: deploy\ndescription: Deploys. Use when asked.\n---\nbody\n"})
    link = machine.repo / ".agents/skills/deploy"
    link.parent.mkdir(parents=True)
    machine.env["AGENT_SKILLS_PATH"] = ""
    link.symlink_to(store.path_of(tree))
    machine.configure(f'[skills]\ncustom_directories = ["{store.folder}"]\n')
    shelf = machine.shelf(trust="ask")
    assert [skill.tree for skill in shelf.catalog.skills] == [tree]
    assert is_approved_here(machine, shelf, tree)


@pytest.mark.parametrize("is_here", [True, False])
def test_an_approval_without_a_path_counts_in_a_project_that_was_installed_here(
    machine: Machine, is_here: bool
) -> None:
    folder = installed(machine)
    root, lock = str(machine.repo), (machine.repo / "skillshelf.lock").read_text()
    mark = sha256(root.encode()).hexdigest()[:16]
    history = machine.home / f".local/share/skillshelf/projects/{mark}"
    history.mkdir(parents=True)
    generation = {"version": 1, "number": 1, "root": root if is_here else "/elsewhere", "lock": lock}
    (history / "1.json").write_text(json.dumps(generation))
    (history / "current").symlink_to("1.json")
    approve(machine, locked_entry(folder).tree, None)
    result = machine.shelf(trust="ask").session().call("skill_load", {"name": "deploy"})
    assert result.ok is is_here

    (folder / "references/a.md").write_text("other")
    changed = machine.shelf(trust="ask").session().call("skill_load", {"name": "deploy"})
    assert changed.error is not None
    assert changed.error.code == "changed"


@pytest.mark.parametrize("by", ["author", "user", "project", "nobody"])
def test_an_installed_skill_of_an_untrusted_project_stays_hidden_for_other_reasons(machine: Machine, by: str) -> None:
    line = "disable-model-invocation: true\n" if by == "author" else ""
    text = f"---\nname: deploy\ndescription: Deploys. Use when asked.\n{line}---\nbody\n"
    folder = install(machine.repo, "deploy", {"SKILL.md": text})
    lock = write_lock(machine.repo / "skillshelf.lock", {"deploy": locked_entry(folder)}).read_text()
    history = machine.home / f".local/share/skillshelf/projects/{sha256(bytes(machine.repo)).hexdigest()[:16]}"
    history.mkdir(parents=True)
    (history / "1.json").write_text(json.dumps({"version": 1, "number": 1, "root": str(machine.repo), "lock": lock}))
    (history / "current").symlink_to("1.json")
    approve(machine, locked_entry(folder).tree, None)
    place = {"user": machine.home / ".config/skillshelf/config.toml", "project": machine.repo / "skillshelf.toml"}
    if by in place:
        place[by].parent.mkdir(parents=True, exist_ok=True)
        place[by].write_text('[[permissions.deny]]\ntool = "skill_load"\nskill_name = "deploy"\n')
    shelf = machine.shelf(trust="ask")
    hidden = {"author": "disable-model-invocation", "nobody": None}.get(by, "denied")
    assert [skill.hidden for skill in shelf.catalog.skills] == [hidden]
    assert ("deploy" in shelf.prompt()) is (hidden is None)


@pytest.mark.parametrize("scope", ["project", "user"])
def test_what_add_approved_is_taken_back_by_the_path_of_the_skill(machine: Machine, scope: str) -> None:
    write_skill(machine.base / "source", "deploy")
    write_skill(machine.base / "source", "other")
    options = ("--user",) if scope == "user" else ()
    for name in ("deploy", "other"):
        assert machine.run("add", f"../source/{name}", "--yes", *options).returncode == 0
    base = machine.home if scope == "user" else machine.repo
    assert {one["name"] for one in machine.run_json("trust", "--list")} == {"deploy", "other"}
    assert "approved" in machine.run("trust", "--remove", str(base / ".agents/skills/deploy"), "--dry-run").stdout
    assert {one["name"] for one in machine.run_json("trust", "--list")} == {"deploy", "other"}

    assert machine.run("trust", "--remove", str(base / ".agents/skills/deploy")).returncode == 0
    assert {one["name"] for one in machine.run_json("trust", "--list")} == {"other"}
    if scope == "project":
        found = {skill.name: skill.hidden for skill in machine.shelf(trust="ask").catalog.skills}
        assert found == {"deploy": "untrusted", "other": None}
    machine.run("trust", "--remove", str(base))
    assert machine.run_json("trust", "--list") == []


def is_approved_here(machine: Machine, shelf: skillshelf.Shelf, tree: str) -> bool:
    from skillshelf.session.effects import real_effects

    approve(machine, tree, None)
    found = real_effects(shelf.environment).approvals(shelf.environment, "skill_load", list(shelf.catalog.skills))
    return is_approved(found, "skill_load", "/elsewhere", tree, ours=True)


# Interplay ----------------------------------------------------------------------------------------


def test_why_and_inventory_show_origin_version_and_change(machine: Machine) -> None:
    folder = installed(machine)
    row = machine.run_json("inventory")["skills"][0]
    assert (row["origin"], row["version"], row["changed"]) == ("./source", "v1", False)
    (folder / "references/a.md").write_text("other")

    (candidate,) = machine.run_json("why", "deploy")["candidates"]
    assert (candidate["origin"], candidate["version"], candidate["changed"]) == ("./source", "v1", True)
    assert candidate["hidden"] == "changed"
    assert {(verdict["verdict"], verdict["visible"]) for verdict in candidate["hosts"] if verdict["visible"]} == {
        ("changed", True)
    }
    row = machine.run_json("inventory")["skills"][0]
    assert (row["changed"], row["problems"][0]["rule"]) == (True, "lock-changed")
    assert {row["changed"] for row in machine.run_json("hosts")["skills"]} == {True}


def test_check_finds_what_is_wrong_with_a_lock(machine: Machine) -> None:
    folder = installed(machine)
    outside = install(machine.base / "elsewhere", "away")
    (machine.repo / ".agents/skills/away").symlink_to(outside)
    entry = locked_entry(folder)
    write_lock(machine.repo / "skillshelf.lock", {"deploy": entry, "gone": entry, "away": entry})
    (folder / "added.md").write_text("x")
    done = machine.run("check", "--json", "--select", "lock")
    findings = {
        (one["rule"], one["severity"], os.path.basename(one["path"])) for one in json.loads(done.stdout)["findings"]
    }
    assert done.returncode == 1
    assert findings == {
        ("lock-changed", "error", "SKILL.md"),
        ("lock-missing", "warning", "skillshelf.lock"),
        ("lock-outside", "error", "skillshelf.lock"),
    }
    (machine.repo / "skillshelf.lock").write_text('{"lock": 1,\n=======\n}')
    (found,) = json.loads(machine.run("check", "--json", "--select", "lock").stdout)["findings"]
    assert (found["rule"], found["line"]) == ("lock-unusable", 2)


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_journal_of_installed_skills_replays(machine: Machine, is_changed: bool) -> None:
    folder = installed(machine)
    (folder / "__pycache__").mkdir()
    if is_changed:
        (folder / "references/a.md").write_text("other")
    journal = machine.base / "run.jsonl"
    with machine.shelf().session(journal=journal, keep=True) as session:
        assert session.call("skill_load", {"name": "deploy"}).ok is not is_changed
        assert session.call("skill_read", {"uri": "skill://deploy/references/a.md"}).ok is not is_changed
    for against in ("kept", "disk"):
        replayed = skillshelf.replay(
            journal, home=machine.home, env={"HOME": str(machine.home)}, trust="all", against=against
        )
        assert replayed.differences == (), against
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_text("gone")
    replayed = skillshelf.replay(journal, home=machine.home, env={}, trust="all", against="kept")
    assert replayed.differences == ()


def test_loaders_of_other_systems_refuse_a_changed_skill(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(machine.home))
    folder = installed(machine)
    assert skillshelf.SkillLoader.load_full(folder).instructions
    (folder / "references/a.md").write_text("other")
    with pytest.raises(SkillChanged):
        skillshelf.SkillLoader.load_full(folder)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["link", "folder of links", "linked root"])
def test_a_packed_catalog_knows_installed_skills_behind_links(machine: Machine, place: str) -> None:
    store = Store(str(machine.home / ".local/share/skillshelf/store/1"))
    tree = store.put({"SKILL.md": b"---\nname: deploy\ndescription: Deploys. Use when asked.\n---\nbody\n"})
    root = machine.home / ".agents/skills"
    if place == "linked root":
        (machine.home / "elsewhere").mkdir()
        root.parent.mkdir()
        root.symlink_to(machine.home / "elsewhere")
    for number in range(CACHE_FROM + 10):
        write_skill(root, f"own-{number}")
    link = root / ("group/deploy" if place == "folder of links" else "deploy")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(store.path_of(tree))
    write_lock(machine.home / ".config/skillshelf/skillshelf.lock", {})
    time.sleep(SETTLED_NS / 1e9 + 0.1)

    def hidden() -> dict[str, str | None]:
        shelf = machine.shelf()
        assert shelf.catalog.skills[0].name == "deploy"
        return {skill.name: skill.hidden for skill in shelf.catalog.skills if skill.tree == tree}

    assert hidden() == {"deploy": None}
    assert isinstance(machine.shelf().catalog.skills, PackedSkills)
    file = Path(store.path_of(tree)) / "more"
    file.parent.chmod(0o755)
    file.write_text("x")
    assert hidden() == {"deploy": "changed"}
    assert machine.run("list").stdout.count("changed") == 1
