"""Fixtures that every test may ask for."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from support.trees import Machine

if TYPE_CHECKING:
    from support.host_runs import Run

pytest_plugins = ("support.team_databases",)

_NUMBERS = itertools.count(1)

# A checkout may be read-only: nothing is kept in it. The same examples everywhere, unless a run asks for more of them.
settings.register_profile(
    "skillshelf", database=None, deadline=None, derandomize="SKILLSHELF_EXAMPLES" not in os.environ
)
settings.load_profile("skillshelf")

_PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system"}
_RUNNING: list[pytest.Item] = []


def _refuse_processes(event: str, arguments: object) -> None:
    """Fail a test that starts a process without being marked slow: the fast run stays fast."""
    if event in _PROCESS_EVENTS and _RUNNING and _RUNNING[-1].get_closest_marker("slow") is None:
        if audit := os.environ.get("SKILLSHELF_AUDIT"):
            with open(audit, "a") as file:
                file.write(_RUNNING[-1].nodeid + "\n")
            return
        raise RuntimeError(f"{event}: a test that starts a process is marked slow")


sys.addaudithook(_refuse_processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Let what several tests share end its processes after any of them."""
    _RUNNING.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember which test is running."""
    _RUNNING.append(item)
    try:
        return (yield)
    finally:
        _RUNNING.clear()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for a run in one more environment."""
    parser.addoption(
        "--few", action="store_true", help="run a test with the first and the last of its parameters, not with all"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `--few` leaves out, after `-m` and `-k` have chosen."""
    if not config.getoption("few"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {id(item) for found in cases.values() for item in _ends(found)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def _ends(cases: list[pytest.Item]) -> tuple[pytest.Item, pytest.Item]:
    """Return the first and the last case of a test; among those that can run here, if there are any."""
    able = [item for item in cases if not any(any(mark.args) for mark in item.iter_markers("skipif"))] or cases
    return able[0], able[-1]


def pytest_collection_finish() -> None:
    """Spare the thousands of tests, and all that was imported for them, from being looked through for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A home folder and a repository that nothing else touches."""
    # Not `tmp_path`, which takes longer to be made than most tests take to run.
    base = tmp_path_factory.getbasetemp() / f"machine-{next(_NUMBERS)}"
    base.mkdir()
    return Machine(base)


@pytest.fixture
def reachable_machine() -> Iterator[Machine]:
    """A machine that every user may read and a script may be granted, wherever TMPDIR is and whatever the umask."""
    before = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o755)
            yield Machine(Path(os.path.realpath(folder)))
    finally:
        os.umask(before)


@pytest.fixture
def run(machine: Machine, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process: its status, what it printed and what it said on the side."""
    from skillshelf.cli.main import main

    monkeypatch.setenv("HOME", str(machine.home))
    for variable in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "GEMINI_CLI_TRUST_WORKSPACE"):
        monkeypatch.delenv(variable, raising=False)
    # No program of a host is found, whatever is installed here.
    monkeypatch.setenv("PATH", str(machine.base / "bin"))

    def command(*words: str, cwd: Path | None = None) -> tuple[int, str, str]:
        status = main([*words, "--cwd", str(cwd or machine.repo), "--home", str(machine.home)])
        out, err = capfd.readouterr()
        return status, out, err

    return command
