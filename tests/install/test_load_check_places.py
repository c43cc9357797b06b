"""A lock speaks of what lies at a place, however a stranger arranges links, markers, other locks and inner skills."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from support.locked import install, locked_entry, write_lock
from support.needs import needs_sandbox
from support.trees import Machine, write_skill

import skillshelf
from skillshelf.catalog.lock import Locks, UnusableLock, parse_lock
from skillshelf.catalog.store import Store
from skillshelf.config.hosts import HOSTS
from skillshelf.core.limits import TREE_FILES
from skillshelf.errors import PermissionDenied, SkillChanged, SkillError

OTHER = "---\nname: deploy\ndescription: Does deploy things. Use when deploy is asked for.\n---\nother\n"


def installed(machine: Machine, contents: dict[str, str | bytes] | None = None, **entry: Any) -> Path:
    folder = install(machine.repo, "deploy", contents)
    write_lock(machine.repo / "skillshelf.lock", {"deploy": locked_entry(folder, **entry)})
    return folder


def moved(folder: Path, target: Path) -> Path:
    """Put a link to another skill of the same name in the place of an installed one, or of a folder above it."""
    shutil.copytree(folder, target)
    shutil.rmtree(folder)
    folder.symlink_to(target)
    (target if (target / "SKILL.md").exists() else target / "deploy").joinpath("SKILL.md").write_text(OTHER)
    return target


def require_refused(machine: Machine, *, name: str = "deploy", **options: Any) -> None:
    """Every door is closed: Python, tools, the listing for models."""
    shelf = machine.shelf(**options)
    with pytest.raises(SkillChanged):
        shelf.load(name)
    with pytest.raises(SkillChanged):
        shelf.read(f"skill://{name}/SKILL.md")
    session = shelf.session("full-auto")
    calls = {
        "skill_load": {"name": name},
        "skill_read": {"uri": f"skill://{name}/SKILL.md"},
        "skill_run": {"name": name, "script": "run.sh"},
    }
    for tool, given in calls.items():
        if tool in shelf.profile.tools:
            result = session.call(tool, given)
            assert result.error is not None, tool
            assert result.error.code == "changed", tool
    assert [skill.hidden for skill in shelf.catalog.skills if skill.name == name] == ["changed"]


# Links ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [".agents/skills/deploy", ".agents/skills", ".agents"])
def test_a_link_in_the_place_of_an_installed_skill_leads_to_it_or_is_refused(machine: Machine, level: str) -> None:
    installed(machine, {"scripts/run.sh": "#!/bin/sh\necho ran\n"})
    folder, other = machine.repo / level, machine.repo / "elsewhere"
    shutil.copytree(folder, other)
    shutil.rmtree(folder)
    folder.symlink_to(other)
    assert machine.shelf().load("deploy").tree == machine.catalog().skills[0].tree
    assert machine.run("show", "deploy").returncode == 0

    next(other.rglob("SKILL.md")).write_text(OTHER)
    require_refused(machine)
    done = machine.run("show", "deploy", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (4, "changed")
    assert "lock-changed" in machine.run("check").stdout
    [candidate] = json.loads(machine.run("why", "deploy", "--json").stdout)["candidates"]
    assert candidate["changed"] is True


def test_a_link_of_the_user_that_leads_elsewhere_is_refused(machine: Machine) -> None:
    store = Store(str(machine.home / ".local/share/skillshelf/store/1"))
    tree = store.put({"SKILL.md": OTHER.replace("other", "installed").encode()})
    folder = machine.home / ".agents/skills/deploy"
    folder.parent.mkdir(parents=True)
    folder.symlink_to(store.path_of(tree))
    entry = locked_entry(Path(store.path_of(tree)))
    write_lock(machine.home / ".config/skillshelf/skillshelf.lock", {"deploy": entry})
    assert machine.shelf().load("deploy").tree == tree

    folder.unlink()
    folder.symlink_to(store.path_of(store.put({"SKILL.md": OTHER.encode()})))
    require_refused(machine)
    folder.unlink()
    folder.symlink_to(write_skill(machine.base / "own", "deploy").parent)
    require_refused(machine)


def test_a_tree_of_the_store_that_is_a_link_is_refused(machine: Machine) -> None:
    store = Store(str(machine.home / ".local/share/skillshelf/store/1"))
    tree = store.put({"SKILL.md": OTHER.replace("other", "installed").encode()})
    kept = Path(store.path_of(tree))
    folder = machine.home / ".agents/skills/deploy"
    folder.parent.mkdir(parents=True)
    folder.symlink_to(kept)
    write_lock(machine.home / ".config/skillshelf/skillshelf.lock", {"deploy": locked_entry(kept)})
    kept.chmod(0o755)
    (kept / "SKILL.md").chmod(0o644)
    moved(kept, machine.base / "evil")
    require_refused(machine)


@pytest.mark.slow
@needs_sandbox
def test_a_script_behind_a_link_is_one_of_the_installed_files(machine: Machine) -> None:
    folder = installed(machine, {"scripts/run.sh": "#!/bin/sh\necho ran\n"})
    shutil.copytree(folder, machine.repo / "elsewhere/deploy")
    shutil.rmtree(folder)
    folder.symlink_to(machine.repo / "elsewhere/deploy")
    session = machine.shelf().session("full-auto")
    assert "ran" in session.call("skill_run", {"name": "deploy", "script": "run.sh"}).text
    (machine.repo / "elsewhere/deploy/scripts/run.sh").write_text("#!/bin/sh\necho other\n")
    result = session.call("skill_run", {"name": "deploy", "script": "run.sh"})
    assert result.error is not None
    assert result.error.code == "changed"


def test_loaders_of_other_systems_see_the_place_too(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in machine.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(machine.home))
    folder = installed(machine)
    moved(folder, machine.base / "evil")
    with pytest.raises(SkillChanged):
        skillshelf.SkillLoader.load_full(folder)


# Markers and other locks ------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", [".git", ".hg", ".jj"])
@pytest.mark.parametrize("place", [".agents", ".agents/skills", ".agents/skills/deploy"])
@pytest.mark.parametrize("with_lock", [False, True])
def test_a_marker_among_installed_skills_takes_none_from_the_lock(
    machine: Machine, marker: str, place: str, with_lock: bool
) -> None:
    installed(machine)
    (machine.repo / place / marker).mkdir()
    if with_lock:
        write_lock(machine.repo / place / "skillshelf.lock", {})
    (machine.repo / ".agents/skills/deploy/SKILL.md").write_text(OTHER)
    require_refused(machine)


def test_a_lock_among_installed_skills_takes_none_from_the_lock_of_a_folder_that_is_no_repository(
    machine: Machine,
) -> None:
    folder = installed(machine)
    shutil.rmtree(machine.repo / ".git")
    write_lock(folder.parent / "skillshelf.lock", {})
    (folder / "SKILL.md").write_text(OTHER)
    require_refused(machine)


def test_a_lock_that_cannot_be_read_refuses_nothing_in_projects_below_it(machine: Machine) -> None:
    (machine.base / "skillshelf.lock").write_text("{")
    write_skill(machine.base / ".agents/skills", "deploy")
    for name in ("repo", "plain"):
        folder = install(machine.base / name, "deploy")
        machine.env["AGENT_SKILLS_PATH"] = str(folder.parent)
        assert machine.shelf().load(path=str(folder)).tree is None


def test_a_lock_that_appears_nearer_counts_at_once(machine: Machine) -> None:
    """A process that runs for long must not keep to the lock that it found first."""
    shutil.rmtree(machine.repo / ".git")
    write_lock(machine.base / "skillshelf.lock", {})
    folder = install(machine.repo, "deploy")
    shelf = machine.shelf()
    assert shelf.load("deploy").tree is None
    write_lock(machine.repo / "skillshelf.lock", {"deploy": locked_entry(folder)})
    assert shelf.load("deploy").tree is not None


def test_every_host_looks_for_skills_of_a_project_in_a_hidden_folder() -> None:
    """What `Locks` relies on to tell places of skills from others."""
    paths = {path for host in HOSTS.values() for rule in host.roots if rule.kind == "project" for path in rule.paths}
    assert [path for path in paths if not path.startswith(".")] == []


# Skills inside an installed skill ---------------------------------------------------------------------


INNER = "---\nname: inner\ndescription: Does inner things. Use when inner is asked for.\n---\ninner\n"


@pytest.mark.parametrize("change", ["inner/SKILL.md", "references/a.md"])
def test_a_skill_inside_an_installed_one_is_handed_out_only_with_all_files_of_it(machine: Machine, change: str) -> None:
    folder = installed(machine, {"inner/SKILL.md": INNER, "inner/a.md": "a", "references/a.md": "a"})
    shelf = machine.shelf(profile="codex")
    assert {skill.name for skill in shelf.catalog.skills} == {"deploy", "inner"}
    loaded = shelf.load("inner")
    assert (loaded.body, loaded.files) == ("inner\n", ("a.md",))
    assert loaded.tree == skillshelf_tree(folder / "inner")
    (folder / change).write_text(INNER.replace("---\ninner", "---\nother"))
    require_refused(machine, name="inner", profile="codex")
    with pytest.raises(SkillChanged, match="update deploy --restore"):
        shelf.load("inner")


@pytest.mark.parametrize("place", ["__pycache__", "scripts/__pycache__/a/b"])
def test_a_skill_in_a_folder_that_python_makes_is_none(machine: Machine, place: str) -> None:
    folder = installed(machine)
    (folder / place).mkdir(parents=True)
    (folder / place / "SKILL.md").write_text(INNER)
    shelf = machine.shelf(profile="codex")
    assert {skill.name: skill.hidden for skill in shelf.catalog.skills} == {"deploy": None, "inner": "changed"}
    assert "inner" not in shelf.prompt()
    with pytest.raises(SkillError):
        shelf.load("inner")
    assert shelf.load("deploy").files == ()


def skillshelf_tree(folder: Path) -> str | None:
    from skillshelf.catalog.tree import skill_tree

    return skill_tree(str(folder)).digest


def test_a_skill_inside_a_tree_of_the_store_or_a_copy_is_checked_with_it(machine: Machine) -> None:
    store = Store(str(machine.home / ".local/share/skillshelf/store/1"))
    tree = store.put({"SKILL.md": OTHER.encode(), "inner/SKILL.md": INNER.encode()})
    copy = machine.home / "copies/deploy"
    shutil.copytree(store.path_of(tree), copy)
    state = machine.home / ".local/state/skillshelf/links.json"
    state.parent.mkdir(parents=True)
    record = {"path": str(copy), "how": "copy", "source": store.path_of(tree), "tree": tree}
    state.write_text(json.dumps({"version": 1, "links": [record]}))
    locks = Locks(machine.shelf().environment)
    for whole in (store.path_of(tree), str(copy)):
        found = locks.tree_of(f"{whole}/inner")
        assert found is not None
        assert (found.tree, found.folder, found.inside) == (tree, whole, "inner")
        assert locks.is_ours(whole, tree)
        assert not locks.is_ours(f"{whole}/inner", tree)


# Size ---------------------------------------------------------------------------------------------------


def test_a_lock_with_many_names_twice_is_refused_at_once() -> None:
    names = [f'"a{number}": 0' for number in range(100_000)]
    data = f'{{"lock": 1, "skills": {{{", ".join([*names, names[-1]])}}}}}'.encode()
    begun = time.process_time()
    with pytest.raises(UnusableLock, match="'a99999' occurs twice"):
        parse_lock(data, "lock")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "text",
    [
        '{{"lock": 1, "skills": {{"{0}": 0}}}}',
        '{{"lock": 1, "skills": {{"{0}": 0, "{0}": 0}}}}',
        '{{"lock": 1, "skills": {{"a": {{"{0}": 0}}}}}}',
    ],
)
def test_a_message_about_a_lock_is_no_longer_than_a_line(text: str) -> None:
    with pytest.raises(UnusableLock) as caught:
        parse_lock(text.format("x" * 1_000_000).encode(), "lock")
    assert len(str(caught.value)) < 600


def test_of_a_folder_with_too_many_files_only_so_many_are_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = installed(machine)
    for number in range(3 * TREE_FILES):
        (folder / f"{number}").touch()
    opened: list[object] = []
    from skillshelf.core import files

    read = files._contents_at

    def counted(folder: int, name: str, limit: int) -> files.Contents:
        opened.append(name)
        return read(folder, name, limit)

    monkeypatch.setattr(files, "_contents_at", counted)
    with pytest.raises(SkillChanged):
        machine.shelf().load("deploy")
    assert len(opened) <= 3 * (TREE_FILES + 2)


# What is shown ------------------------------------------------------------------------------------------


def test_a_search_quotes_nothing_of_a_changed_skill(machine: Machine) -> None:
    folder = installed(machine)
    (folder / "SKILL.md").write_text(OTHER.replace("other", "zebra stripes are deployed"))
    assert "stripes" not in machine.run("search", "zebra").stdout


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "endless link"])
def test_a_lock_that_is_no_file_refuses_and_never_hangs(machine: Machine, kind: str) -> None:
    installed(machine)
    lock = machine.repo / "skillshelf.lock"
    lock.rename(machine.base / "moved.lock")
    if kind == "fifo":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(machine.base / "moved.lock" if kind == "link" else lock)
    with pytest.raises(PermissionDenied):
        machine.shelf().load("deploy")
    assert machine.catalog().skills[0].hidden == "changed"
    assert [error.rule for error in machine.catalog().errors] == ["lock-unusable"]


# The MCP server -----------------------------------------------------------------------------------------


def test_an_entry_of_the_skills_extension_is_made_of_the_bytes_that_were_checked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = installed(machine, {"references/a.md": "a", "references/__pycache__/a.pyc": b"a"})
    published = pytest.importorskip("skillshelf.servers.mcp.skills")
    skills = published.PublishedSkills(machine.shelf())
    [before] = skills.entries(skills.visible[0])
    scan = published.EntryBuilder.scan

    def changed_meanwhile(*given: Any) -> Any:
        state = scan(*given)
        (folder / "SKILL.md").write_text(OTHER.replace("Does deploy", "Does other"))
        (folder / "references/a.md").write_text("other")
        (folder / "references/new.md").write_text("new")
        return state

    monkeypatch.setattr(published.EntryBuilder, "scan", changed_meanwhile)
    assert [entry.to_dict() for entry in skills.entries(skills.visible[0])] == [before.to_dict()]
    assert [file["uri"] for file in before.resources] == ["skill://deploy/SKILL.md", "skill://deploy/references/a.md"]

    [left_out] = skills.entries(skills.visible[0])
    assert left_out.reason == "its files are not those that its lock names"
    with pytest.raises(SkillChanged):
        skills.scan(skills.locate("skill://deploy/references"))
