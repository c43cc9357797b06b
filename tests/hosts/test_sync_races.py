"""`sync` that is killed at every step, and many at once: the disk is as before or as after, and the records agree."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.host_runs import Run
from support.trees import SOURCE, Machine, write_skill

from skillshelf.core.environment import Environment
from skillshelf.hosts.link_changes import finish_pending
from skillshelf.hosts.link_records import read_state

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

_EVENTS = ("os.symlink", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree")


def text_of(path: Path) -> str:
    """The text of a file or the target of a link; a folder has none."""
    if path.is_symlink():
        return os.readlink(path)
    return path.read_text() if path.is_file() else ""


def snapshot(folder: Path) -> dict[str, str]:
    """Every path below a folder, with the text of a file or the target of a link."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_text()
        if path.is_file()
        else ""
        for path in sorted(folder.rglob("*"))
    }


def place(machine: Machine) -> Environment:
    """The environment of the machine."""
    return Environment(str(machine.repo), str(machine.home), {}, home_moved=True)


def killed_at(number: int, words: list[str], machine: Machine) -> bool:
    """Run a command in a child that kills itself at its N-th change of the disk; return whether it came so far."""
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, arguments: object) -> None:
            nonlocal count
            if event in _EVENTS:
                count += 1
                if count == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        from skillshelf.cli.main import main

        with open(os.devnull, "w") as nothing:
            sys.stdout = sys.stderr = nothing
            sys.addaudithook(hook)
            main([*words, "--cwd", str(machine.repo), "--home", str(machine.home), "--no-cache"])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def skills(machine: Machine) -> None:
    """Skills that one host gets as links and another as copies."""
    for name in ("deploy", "review"):
        write_skill(machine.repo / ".agents/skills", name)


def stale(machine: Machine) -> None:
    """Copies whose skills have changed, and a new skill."""
    skills(machine)
    assert machine.run("sync", "--to", "claude-code,kiro", "--yes").returncode == 0
    for path in (machine.repo / ".agents/skills").rglob("SKILL.md"):
        path.write_text(path.read_text() + "More.\n")
    write_skill(machine.repo / ".agents/skills", "ship")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (skills, ["sync", "--to", "claude-code,kiro", "--yes"]),
        (stale, ["sync", "--to", "claude-code,kiro", "--yes"]),
        (stale, ["sync", "--remove", "--yes"]),
    ],
    ids=["new", "stale", "remove"],
)
def test_a_sync_that_is_killed_is_undone_or_finished_by_the_next_run(
    tmp_path: Path, build: Callable[[Machine], None], words: list[str]
) -> None:
    reached = 0
    for number in range(1, 200):
        folder = tmp_path / str(number)
        folder.mkdir()
        machine = Machine(folder)
        build(machine)
        before = snapshot(machine.repo)
        if words[1] == "--remove":
            # Copies that are stale are as they were made, so they can be removed.
            assert len(read_state(place(machine)).links) == 4
        was_killed = killed_at(number, words, machine)

        finish_pending(place(machine))

        state = read_state(place(machine))
        assert state.pending is None
        now = snapshot(machine.repo)
        assert not [path for path in now if path.endswith((".new", ".old"))]
        assert all(os.path.lexists(record.path) for record in state.links)
        machine.run(*words)
        after = snapshot(machine.repo)
        assert now in (before, after), number
        assert machine.run("sync", "--remove", "--yes").returncode == 0
        assert not (machine.repo / ".kiro").exists()
        assert not (machine.repo / ".claude").exists()
        if not was_killed:
            break
        reached = number
    assert 5 < reached < 199


def test_a_command_after_a_killed_one_plans_from_the_tree_as_it_was(tmp_path: Path) -> None:
    words = ["sync", "--to", "claude-code", "--yes"]
    for number in range(1, 20):
        folder = tmp_path / str(number)
        folder.mkdir()
        machine = Machine(folder)
        skills(machine)
        was_killed = killed_at(number, words, machine)

        assert machine.run(*words).returncode == 0

        made = {path.name for path in (machine.repo / ".claude/skills").iterdir()}
        assert made == {"deploy", "review"}, number
        assert {os.path.basename(record.path) for record in read_state(place(machine)).links} == made, number
        if not was_killed:
            break
    assert number > 3


def test_many_syncs_at_once_leave_what_one_leaves(machine: Machine) -> None:
    for number in range(8):
        write_skill(machine.repo / ".agents/skills", f"skill-{number}")
    command = [sys.executable, "-m", "skillshelf", "sync", "--to", "claude-code,kiro", "--yes"]
    environment = {"PATH": "/nonexistent", "HOME": str(machine.home), "PYTHONPATH": SOURCE}

    running = [
        subprocess.Popen(command, cwd=machine.repo, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    ended = [(process.communicate(timeout=120)[1].decode(), process.returncode) for process in running]

    assert {status for _, status in ended} == {0}, ended
    state = read_state(Environment(str(machine.repo), str(machine.home), {}, home_moved=False))
    assert len(state.links) == 16
    assert len(list((machine.repo / ".claude/skills").iterdir())) == 8
    assert len(list((machine.repo / ".kiro/skills").iterdir())) == 8
    again = subprocess.run(command, cwd=machine.repo, env=environment, capture_output=True, text=True, check=True)
    assert again.stdout == "0 actions, 16 unchanged, 0 refused\n"


def started(machine: Machine, *words: str) -> subprocess.Popen[str]:
    """Start a command in the repository."""
    environment = {"PATH": "/nonexistent", "HOME": str(machine.home), "PYTHONPATH": SOURCE}
    command = [sys.executable, "-m", "skillshelf", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=machine.repo, env=environment, text=True, stdout=pipe, stderr=pipe)


def test_many_links_at_once_are_all_made(machine: Machine) -> None:
    names = [f"skill-{number}" for number in range(3)]
    for name in names:
        write_skill(machine.repo / ".agents/skills", name)

    running = [started(machine, "link", name, "--to", host) for name in names for host in ("claude-code", "kiro")]
    ended = [(*process.communicate(timeout=120), process.returncode) for process in running]

    assert {status for *_, status in ended} == {0}, ended
    assert len(read_state(Environment(str(machine.repo), str(machine.home), {}, home_moved=False)).links) == 6


def lock_of_links(machine: Machine) -> int:
    """Take the lock of the records, as another process would; return what holds it."""
    path = machine.home / ".local/state/skillshelf/links.json.lock"
    path.parent.mkdir(parents=True)
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def test_a_command_says_that_it_waits_for_another_one_and_is_done_then(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    held = lock_of_links(machine)

    process = started(machine, "link", "deploy", "--to", "claude-code")
    assert process.stderr is not None
    said = process.stderr.readline()
    os.close(held)
    out, _ = process.communicate(timeout=120)

    assert said == "skillshelf: waiting for another skillshelf that changes links, at most 60 seconds\n"
    assert (process.returncode, "now visible" in out) == (0, True)


@pytest.mark.parametrize("words", [("link", "deploy", "--to", "claude-code"), ("sync", "--to", "kiro", "--yes")])
def test_a_command_that_waited_in_vain_says_why_and_does_nothing(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    monkeypatch.setattr("skillshelf.hosts.link_records._LOCK_SECONDS", 1.1)
    held = lock_of_links(machine)

    status, _, err = run(*words)

    os.close(held)
    assert (status, "run the command again when it has ended" in err) == (5, True), err
    assert not (machine.repo / ".claude").exists()
    assert not (machine.repo / ".kiro").exists()
