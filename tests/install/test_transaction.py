"""Changes of installed skills: all or nothing, with generations to go back to, and links of hosts that follow."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.install_driver import contents
from support.install_kills import problems
from support.trees import SOURCE, Machine
from support.users import ordinary_user

from skillshelf.catalog.lock import LockedSkill, read_lock
from skillshelf.catalog.store import store_of
from skillshelf.catalog.tree import skill_tree
from skillshelf.config.approvals import (
    Approval,
    add_approval,
    add_approvals,
    approved_trees,
    is_approved,
    read_approvals,
)
from skillshelf.core.disk_writes import lock, open_to_append, remove_tree
from skillshelf.core.environment import make_environment
from skillshelf.core.limits import GENERATIONS_KEPT
from skillshelf.errors import SkillChanged, SkillError, SkillNotFound, SourceNotFound, SourceRefused
from skillshelf.install.generation import UnusableGeneration, current_generation, generation_numbers
from skillshelf.install.git_attributes import attributes_line
from skillshelf.install.scope import InstallScope, scope_of
from skillshelf.install.staged_change import UnusablePending
from skillshelf.install.transaction import (
    CommitResult,
    SkillChange,
    collect_garbage,
    commit,
    generations,
    recover,
    rollback,
)
from skillshelf.install.wishes import Wish


class Installer:
    """The two scopes of a machine, and short ways to change what is installed in one."""

    def __init__(self, machine: Machine, *, user: bool = False) -> None:
        self.machine = machine
        self.environment = make_environment(str(machine.repo), str(machine.home), {})
        self.store = store_of(self.environment)
        self.scope: InstallScope = scope_of(self.environment, user=user)

    def locked(self, name: str, version: str = "one", hosts: Sequence[str] = ()) -> LockedSkill:
        """Store a version of a skill and return its entry."""
        files = contents(name, version)
        size = sum(map(len, files.values()))
        return LockedSkill(f"./{name}", "", None, None, None, self.store.put(files), len(files), size, list(hosts))

    def add(self, name: str, version: str = "one", *, hosts: Sequence[str] = (), **options: Any) -> CommitResult:
        """Install a version of a skill."""
        change = SkillChange(name, self.locked(name, version, hosts), Wish(f"./{name}", hosts=tuple(hosts)))
        return commit(self.scope, self.environment, [change], label=f"add {name}", **options)

    def remove(self, name: str, **options: Any) -> CommitResult:
        """Remove a skill."""
        return commit(self.scope, self.environment, [SkillChange(name, None)], label=f"remove {name}", **options)

    def names(self) -> list[str]:
        """Return the names in the lock."""
        return sorted(read_lock(self.scope.lock_path) or {})

    def copy(self, name: str) -> Path:
        """Return the folder of a copy."""
        return Path(f"{self.scope.skills_folder}/{name}")


@pytest.fixture
def project(machine: Machine) -> Installer:
    return Installer(machine)


@pytest.fixture
def user(machine: Machine) -> Installer:
    return Installer(machine, user=True)


def everything(folder: Path) -> dict[str, tuple[bytes | str, int]]:
    """Return every file and link below a folder, but for the lock files and the history."""
    return {
        path.relative_to(folder).as_posix(): (os.readlink(path), 0)
        if path.is_symlink()
        else (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
        if (path.is_file() or path.is_symlink()) and ".local" not in path.parts
    }


# A project ----------------------------------------------------------------------------------------


def test_a_project_gets_a_copy_a_lock_a_wish_and_a_line_for_git(project: Installer) -> None:
    result = project.add("pdf")

    assert (result.generation, result.changed, result.copies) == (1, True, ("pdf",))
    assert result.notes == ("changed .gitattributes: git leaves the line ends of installed skills alone",)
    locked = (read_lock(project.scope.lock_path) or {})["pdf"]
    assert skill_tree(str(project.copy("pdf"))).digest == locked.tree
    assert (project.copy("pdf") / "scripts/run.sh").stat().st_mode & 0o100
    assert (project.copy("pdf") / "SKILL.md").stat().st_mode & 0o200
    assert (project.machine.repo / "skillshelf.toml").read_text() == '[[install]]\nsource = "./pdf"\nname = "pdf"\n'
    assert (project.machine.repo / ".gitattributes").read_text() == "/.agents/skills/pdf/** -text\n"
    assert os.listdir(project.machine.repo / ".agents") == ["skills"]
    assert [*problems(project.machine.base, "project")] == []


def test_what_is_removed_leaves_nothing_but_an_empty_lock(project: Installer) -> None:
    project.add("pdf")
    project.remove("pdf")

    assert sorted(os.listdir(project.machine.repo)) == [".git", "skillshelf.lock"]
    assert read_lock(project.scope.lock_path) == {}


def test_a_change_to_what_is_there_already_is_none(project: Installer) -> None:
    project.add("pdf")
    before = everything(project.machine.base)

    assert project.add("pdf") == CommitResult(1, changed=False)
    assert everything(project.machine.base) == before
    assert commit(project.scope, project.environment, [], label="nothing") == CommitResult(1, changed=False)


def test_a_lock_in_another_order_keeps_its_bytes(project: Installer) -> None:
    project.add("pdf")
    path = Path(project.scope.lock_path)
    path.write_text(path.read_text().replace("  ", "\t"))
    before = path.read_bytes()
    shutil.rmtree(project.copy("pdf"))

    assert project.add("pdf").copies == ("pdf",)
    assert path.read_bytes() == before


def test_other_lines_of_the_attributes_stay(project: Installer) -> None:
    path = project.machine.repo / ".gitattributes"
    path.write_bytes(b"*.png binary\r\n*.md text")
    project.add("pdf")
    assert path.read_bytes() == b"*.png binary\r\n*.md text\n/.agents/skills/pdf/** -text\r\n"
    project.remove("pdf")
    assert path.read_bytes() == b"*.png binary\r\n*.md text\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("name", ["pdf", "two words", "a[b]*c", 'say "hi"', "grün"])
def test_git_takes_the_lines_for_the_installed_folder(tmp_path: Path, name: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitattributes").write_text(f"* text=auto\n{attributes_line(name)}\n", encoding="utf-8")
    paths = [f".agents/skills/{name}/SKILL.md", f".agents/skills/{name}/a/b.md", ".agents/skills/other/SKILL.md"]
    found = subprocess.run(
        ["git", "-C", str(tmp_path), "check-attr", "-z", "text", "--", *paths], check=True, capture_output=True
    )
    assert found.stdout.split(b"\0")[2::3] == [b"unset", b"unset", b"auto"]


def test_a_folder_that_is_not_ours_is_never_replaced(project: Installer) -> None:
    project.copy("pdf").mkdir(parents=True)
    (project.copy("pdf") / "mine.txt").write_text("mine")
    before = everything(project.machine.base)

    with pytest.raises(SourceRefused, match="occupied"):
        project.add("pdf")
    assert everything(project.machine.base) == before

    assert project.add("pdf", force={"pdf"}).copies == ("pdf",)
    assert not (project.copy("pdf") / "mine.txt").exists()


@pytest.mark.parametrize("change", ["update", "remove"])
def test_an_edited_copy_is_never_lost(project: Installer, change: str) -> None:
    project.add("pdf")
    (project.copy("pdf") / "SKILL.md").write_text("my words")
    before = everything(project.machine.base)

    with pytest.raises(SkillChanged, match=r"SKILL\.md"):
        project.add("pdf", "two") if change == "update" else project.remove("pdf")
    assert everything(project.machine.base) == before
    assert generation_numbers(project.scope.history) == [0, 1]

    project.add("pdf", "two", force={"pdf"}) if change == "update" else project.remove("pdf", force={"pdf"})
    assert [*problems(project.machine.base, "project")] == []


def test_bytecode_beside_the_locked_files_is_no_edit(project: Installer) -> None:
    project.add("pdf")
    (project.copy("pdf") / "scripts/__pycache__").mkdir()
    (project.copy("pdf") / "scripts/__pycache__/run.cpython-311.pyc").write_bytes(b"x")

    assert project.add("pdf") == CommitResult(1, changed=False)
    assert project.add("pdf", "two").copies == ("pdf",)
    assert not (project.copy("pdf") / "scripts/__pycache__").exists()


def test_a_copy_of_an_earlier_generation_is_replaced_when_the_lock_came_from_elsewhere(project: Installer) -> None:
    project.add("pdf")
    old = Path(project.scope.lock_path).read_bytes()
    project.add("pdf", "two")
    Path(project.scope.lock_path).write_bytes(old)

    assert project.add("pdf").copies == ("pdf",)
    assert [*problems(project.machine.base, "project")] == []


@pytest.mark.parametrize("where", [".agents", ".agents/skills"])
@pytest.mark.parametrize("leads", ["outside", "inside"])
def test_nothing_is_written_through_a_link(project: Installer, where: str, leads: str) -> None:
    target = project.machine.base / "elsewhere" if leads == "outside" else project.machine.repo / "inside"
    target.mkdir()
    (project.machine.repo / where).parent.mkdir(exist_ok=True)
    (project.machine.repo / where).symlink_to(target)

    with pytest.raises(SourceRefused, match="is a link"):
        project.add("pdf")
    assert os.listdir(target) == []
    assert not Path(project.scope.lock_path).exists()


@pytest.mark.parametrize("name", ["skillshelf.lock", "skillshelf.toml"])
def test_files_of_a_project_that_are_links_are_refused(project: Installer, name: str) -> None:
    (project.machine.base / "target").write_text("")
    (project.machine.repo / name).symlink_to(project.machine.base / "target")

    with pytest.raises(SourceRefused, match="is a link"):
        project.add("pdf")
    assert (project.machine.base / "target").read_text() == ""


def test_attributes_that_are_a_link_are_left_alone(project: Installer, capsys: pytest.CaptureFixture[str]) -> None:
    (project.machine.base / "target").write_text("")
    (project.machine.repo / ".gitattributes").symlink_to(project.machine.base / "target")

    assert project.add("pdf").notes == ()
    assert (project.machine.base / "target").read_text() == ""
    assert "line ends are not protected" in capsys.readouterr().err


def test_a_tree_that_the_store_does_not_have_is_refused_before_anything_is_written(project: Installer) -> None:
    locked = project.locked("pdf")
    project.store.remove(locked.tree)
    before = everything(project.machine.base)

    with pytest.raises(SourceNotFound, match="does not have"):
        commit(project.scope, project.environment, [SkillChange("pdf", locked)], label="add")
    assert everything(project.machine.base) == before


def test_a_tree_that_is_damaged_in_the_store_is_refused_and_leaves_no_copy(project: Installer) -> None:
    project.add("docx")
    locked = project.locked("pdf")
    path = Path(project.store.path_of(locked.tree)) / "SKILL.md"
    path.chmod(0o644)
    path.write_text("other")
    before = everything(project.machine.repo)

    with pytest.raises(SourceNotFound, match="has other files"):
        commit(project.scope, project.environment, [SkillChange("pdf", locked)], label="add")
    assert everything(project.machine.repo) == before
    assert [*problems(project.machine.base, "project")] == []


@pytest.mark.parametrize("place", ["repo", "repo/.agents", "home/.local"])
def test_a_folder_that_is_read_only_changes_nothing(place: str) -> None:
    # Not below the folder of pytest, which belongs to root if root runs the tests.
    base = Path(tempfile.mkdtemp(prefix="skillshelf-test-"))
    try:
        project = Installer(Machine(base))
        project.add("pdf")
        locked = project.locked("pdf", "two")
        before = everything(base)
        Path(project.scope.history, "install.lock").unlink()
        for path in (base, *base.rglob("*")):
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534, follow_symlinks=False)
        for path in (base / place, *(base / place).rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
        with ordinary_user(), pytest.raises(SkillError) as caught:
            commit(project.scope, project.environment, [SkillChange("pdf", locked)], label="update")
        assert str(caught.value).startswith("nothing was changed: /")
        assert "permission denied" in str(caught.value)
        for path in ((base / place), *(base / place).rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        assert {name: data for name, (data, _) in everything(base).items()} == {
            name: data for name, (data, _) in before.items()
        }
        assert [*problems(base, "project")] == []
    finally:
        remove_tree(str(base))


# The user -----------------------------------------------------------------------------------------


def test_the_users_skill_is_linked_into_the_store_where_most_hosts_look(user: Installer) -> None:
    result = user.add("pdf")

    link = user.machine.home / ".agents/skills/pdf"
    assert [(one.kind, one.path) for one in result.actions] == [("link", str(link))]
    assert str(link.resolve()) == user.store.path_of(user.locked("pdf").tree)
    assert (user.machine.home / ".config/skillshelf/config.toml").read_text().startswith("[[install]]")

    user.add("pdf", "two")
    assert str(link.resolve()) == user.store.path_of(user.locked("pdf", "two").tree)
    user.remove("pdf")
    assert not link.is_symlink()


def test_hosts_get_links_that_move_with_the_skill_and_go_with_it(user: Installer) -> None:
    result = user.add("pdf", hosts=["claude-code", "codex"])
    links = [user.machine.home / place / "pdf" for place in (".agents/skills", ".claude/skills")]
    assert sorted(one.path for one in result.actions) == sorted(map(str, links))
    assert result.refused == ()

    user.add("pdf", "two", hosts=["claude-code"])
    assert [link.is_symlink() for link in links] == [False, True]
    assert str(links[1].resolve()) == user.store.path_of(user.locked("pdf", "two").tree)

    user.add("pdf", "two")
    assert [link.is_symlink() for link in links] == [True, False]
    user.remove("pdf")
    assert [link.is_symlink() for link in links] == [False, False]


def test_a_host_that_follows_no_links_gets_a_copy_that_is_renewed(user: Installer) -> None:
    user.add("pdf", hosts=["kiro"])
    copy = user.machine.home / ".kiro/skills/pdf"
    assert not copy.is_symlink()
    assert skill_tree(str(copy)).digest == user.locked("pdf").tree

    user.add("pdf", "two", hosts=["kiro"])
    assert skill_tree(str(copy)).digest == user.locked("pdf", "two").tree
    (copy / "SKILL.md").chmod(0o644)
    (copy / "SKILL.md").write_text("mine")
    refused = user.remove("pdf").refused
    assert [(one.host, one.path) for one in refused] == [("kiro", str(copy))]
    assert (copy / "SKILL.md").read_text() == "mine"


def test_a_place_that_is_taken_is_refused_and_not_claimed(user: Installer) -> None:
    taken = user.machine.home / ".agents/skills/pdf"
    taken.mkdir(parents=True)

    result = user.add("pdf")
    assert result.actions == ()
    assert "did not make it" in result.refused[0].reason


def test_settings_of_the_user_survive_a_rollback(user: Installer) -> None:
    user.add("pdf")
    path = user.machine.home / ".config/skillshelf/config.toml"
    path.write_text('profile = "strict"  # since today\n\n' + path.read_text())
    user.add("web")

    rollback(user.scope, user.environment)
    assert user.names() == ["pdf"]
    assert path.read_text() == 'profile = "strict"  # since today\n\n[[install]]\nsource = "./pdf"\nname = "pdf"\n'


def test_a_configuration_that_is_a_link_of_the_users_stays_one(user: Installer) -> None:
    path, real = user.machine.home / ".config/skillshelf/config.toml", user.machine.home / "dotfiles/shelf.toml"
    for folder in (path.parent, real.parent):
        folder.mkdir(parents=True)
    real.write_text("# mine\n")
    path.symlink_to(real)

    user.add("pdf")
    assert path.is_symlink()
    assert real.read_text().startswith("# mine\n\n[[install]]\n")
    rollback(user.scope, user.environment)
    assert real.read_text() == "# mine\n"


# A project and hosts ------------------------------------------------------------------------------


def test_hosts_of_a_project_that_do_not_read_the_copy_get_a_link_inside_it(project: Installer) -> None:
    project.add("pdf", hosts=["claude-code", "codex"])
    link = project.machine.repo / ".claude/skills/pdf"

    assert os.readlink(link) == "../../.agents/skills/pdf"
    project.add("pdf", "two", hosts=["claude-code", "codex"])
    assert os.readlink(link) == "../../.agents/skills/pdf"
    project.remove("pdf")
    assert not (project.machine.repo / ".claude").exists()


# Generations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["project", "user"])
def test_rollback_brings_back_copies_lock_wishes_and_links(machine: Machine, kind: str) -> None:
    one = Installer(machine, user=kind == "user")
    states = [everything(machine.base)]
    one.add("pdf", hosts=["claude-code"])
    states.append(everything(machine.base))
    one.add("pdf", "two", hosts=["claude-code"])
    one.add("web")
    states.append(everything(machine.base))

    assert rollback(one.scope, one.environment, 1).generation == 1
    assert everything(machine.base) == states[1]
    rollback(one.scope, one.environment, 3)
    assert everything(machine.base) == states[2]
    rollback(one.scope, one.environment, 1)
    rollback(one.scope, one.environment)
    assert everything(machine.base) == states[0]
    assert [(entry.number, entry.label) for entry in generations(one.scope)] == [
        (0, "before: add pdf"),
        (1, "add pdf"),
        (2, "add pdf"),
        (3, "add web"),
    ]
    with pytest.raises(SkillNotFound, match="this is the first that is kept"):
        rollback(one.scope, one.environment)
    with pytest.raises(SkillNotFound, match="generation 9"):
        rollback(one.scope, one.environment, 9)


def test_what_others_wrote_between_two_changes_is_a_generation_too(project: Installer) -> None:
    project.add("pdf")
    toml = project.machine.repo / "skillshelf.toml"
    toml.write_text(toml.read_text() + '[[install]]\nsource = "./web"\n')
    project.add("notes")

    assert rollback(project.scope, project.environment).generation == 2
    assert '"./web"' in toml.read_text()
    assert project.names() == ["pdf"]


def test_rollback_goes_back_the_way_that_was_gone(project: Installer) -> None:
    project.add("a")
    project.add("b")
    rollback(project.scope, project.environment, 1)
    project.add("c")

    assert rollback(project.scope, project.environment).generation == 1
    assert project.names() == ["a"]


def test_only_the_last_generations_are_kept(project: Installer) -> None:
    for number in range(GENERATIONS_KEPT + 3):
        project.add("pdf", "one" if number % 2 else "two")
    assert len(generation_numbers(project.scope.history)) == GENERATIONS_KEPT
    assert current_generation(project.scope.history) == GENERATIONS_KEPT + 3


def test_a_generation_or_a_record_of_a_newer_version_is_refused_and_left(project: Installer) -> None:
    project.add("pdf")
    path = Path(project.scope.history, "generations/0.json")
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    before = path.read_bytes()
    with pytest.raises(UnusableGeneration, match="newer skillshelf"):
        rollback(project.scope, project.environment)
    assert path.read_bytes() == before

    pending = Path(project.scope.history, "pending.json")
    pending.write_text('{"version": 2}')
    with pytest.raises(UnusablePending, match="newer skillshelf"):
        recover(project.scope, project.environment)
    assert pending.exists()


# Two at once --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_installs_at_once_wait_for_each_other(project: Installer) -> None:
    script = (
        "import sys; from support.install_driver import *\n"
        "environment = make_environment(sys.argv[1], sys.argv[2], {}); scope = scope_of(environment, user=False)\n"
        "for n in range(5):\n"
        "    name = f'{sys.argv[3]}-{n}'; store_of(environment).put(contents(name, 'one'))\n"
        "    commit(scope, environment, [SkillChange(name, locked(name, 'one')._replace(hosts=[]))], label='add')\n"
    )
    tests = str(Path(__file__).resolve().parent.parent)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(project.machine.repo), str(project.machine.home), name],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCE}:{tests}", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        for name in ("a", "b", "c")
    ]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    assert project.names() == [f"{name}-{n}" for name in "abc" for n in range(5)]
    assert [*problems(project.machine.base, "project")] == []


def test_whoever_waits_long_says_so(project: Installer, capsys: pytest.CaptureFixture[str]) -> None:
    import threading

    project.add("pdf")
    held = open_to_append(f"{project.scope.history}/install.lock")
    assert lock(held, "alone", seconds=0)
    timer = threading.Timer(1.5, os.close, [held])
    timer.start()
    project.add("web")
    timer.join()
    assert "waiting for another skillshelf that changes" in capsys.readouterr().err


# Garbage ------------------------------------------------------------------------------------------


def test_gc_removes_what_no_generation_and_no_lock_names(project: Installer, user: Installer) -> None:
    project.add("pdf")
    user.add("web")
    unused = project.locked("unused").tree
    half = Path(project.store.folder, ".new-99999999-00000000")
    (half / "inner").mkdir(parents=True)
    half.chmod(0o555)

    found = collect_garbage(project.environment, dry_run=True)
    assert found == [
        f"{unused}: no generation and no lock names it",
        f"{half}: a process ended while it wrote or removed this",
    ]
    assert project.store.has(unused)
    assert collect_garbage(project.environment, dry_run=False) == found
    assert not project.store.has(unused)
    assert not half.exists()
    assert collect_garbage(project.environment, dry_run=False) == []
    assert user.store.is_intact(user.locked("web").tree)


def test_gc_keeps_what_a_lock_in_conflict_names(project: Installer) -> None:
    project.add("pdf")
    tree = project.locked("pulled").tree
    Path(project.scope.lock_path).write_text(f"<<<<<<< ours\n{tree}\n")

    assert collect_garbage(project.environment, dry_run=False) == []
    assert project.store.has(tree)


def test_gc_forgets_a_project_that_is_gone(project: Installer) -> None:
    project.add("pdf")
    shutil.rmtree(project.machine.repo)
    tree = contents("pdf", "one")

    assert collect_garbage(project.environment, dry_run=False) == [
        f"{project.store.put(tree)}: no generation and no lock names it",
        f"{project.machine.repo}: the project is gone, and its generations are forgotten",
    ]
    assert not Path(project.scope.history).exists()


def test_a_tree_with_folders_as_deep_as_a_path_can_be_is_stored_and_copied(project: Installer) -> None:
    deep = {**contents("pdf", "one"), f"{'a/' * 200}end.md": b"deep"}
    tree = project.store.put(deep)
    locked = project.locked("pdf")._replace(tree=tree, files=len(deep), bytes=sum(map(len, deep.values())))

    commit(project.scope, project.environment, [SkillChange("pdf", locked)], label="add")
    assert project.store.read(tree) == deep
    assert skill_tree(str(project.copy("pdf"))).digest == tree


# Approvals ----------------------------------------------------------------------------------------


def test_an_installed_tree_is_approved_wherever_we_put_it(user: Installer) -> None:
    tree = user.locked("pdf").tree
    assert add_approval(user.environment, "skill_load", "pdf", None, tree, origin="./pdf")
    assert not add_approval(user.environment, "skill_load", "pdf", None, tree, origin="./pdf")

    approvals = read_approvals(user.environment)
    assert [(one.path, one.origin) for one in approvals] == [(None, "./pdf")]
    assert is_approved(approvals, "skill_load", "/anywhere/SKILL.md", tree, ours=True)
    assert not is_approved(approvals, "skill_load", "/anywhere/SKILL.md", tree)
    assert not is_approved(approvals, "skill_run", "/anywhere/SKILL.md", tree, ours=True)
    assert not is_approved(approvals, "skill_load", "/anywhere/SKILL.md", user.locked("pdf", "two").tree, ours=True)


def test_many_approvals_are_one_change_that_returns_the_new_ones(user: Installer) -> None:
    wanted = [Approval("skill_load", name, None, user.locked(name).tree, f"./{name}", "") for name in ("pdf", "docx")]

    assert [one.name for one in add_approvals(user.environment, [wanted[0], wanted[0]])] == ["pdf"]
    assert [one.name for one in add_approvals(user.environment, wanted)] == ["docx"]
    assert add_approvals(user.environment, wanted) == []
    approvals = read_approvals(user.environment)
    assert [one._replace(at="") for one in approvals] == wanted
    assert all(one.at for one in approvals)
    assert approved_trees(approvals, "skill_load") == {(None, one.tree) for one in wanted}
    assert approved_trees(approvals, "skill_run") == frozenset()


# Many ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_change_to_nothing_among_500_skills_is_quick(project: Installer) -> None:
    changes = [SkillChange(f"skill-{n}", project.locked(f"skill-{n}")) for n in range(500)]
    commit(project.scope, project.environment, changes, label="add")

    began = time.process_time()
    recover(project.scope, project.environment)
    assert commit(project.scope, project.environment, changes, label="install") == CommitResult(1, changed=False)
    assert time.process_time() - began < 1
