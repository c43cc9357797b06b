"""No command runs code of the folder it is run in, however its files are called."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from support.trees import SOURCE, Machine, write_skill

from skillshelf.cli.command_table import COMMANDS

pytestmark = pytest.mark.slow

RUNS: dict[str, tuple[str, ...]] = {
    "": (),
    "inventory": (),
    "list": (),
    "search": ("deploy the service",),
    "usage": (),
    "eval": (),
    "pick": (),
    "show": ("deploy",),
    "read": ("skill://deploy/SKILL.md",),
    "digest": (".agents/skills/deploy",),
    "why": ("deploy",),
    "hosts": (),
    "link": ("deploy", "--to", "claude-code"),
    "sync": ("--to", "claude-code", "--yes"),
    "add": ("./.agents/skills/deploy", "--yes"),
    "install": ("--frozen", "--yes"),
    "outdated": (),
    "update": ("--yes",),
    "diff": ("deploy",),
    "verify": (),
    "remove": ("deploy", "--yes"),
    "rollback": ("--yes",),
    "gc": ("--yes",),
    "import": ("skills-lock.json", "--yes"),
    "export": ("--format", "vercel", "--yes"),
    "pack": ("deploy",),
    "publish": ("deploy", "--site", "site", "--yes"),
    "release": ("list", "http://127.0.0.1:9", "--allow-http"),
    "prompt": ("--trust",),
    "tools": ("--trust",),
    "check": ("--fix",),
    "explain": ("name-directory",),
    "new": ("fresh",),
    "run": ("deploy", "x.sh"),
    "enable": ("deploy",),
    "disable": ("deploy",),
    "trust": (),
    "profile": ("standard",),
    "log": ("verify", "run.jsonl"),
    "ui": ("--port", "99999"),
    "serve": ("--listen", "nowhere"),
    "site": ("public",),
    "mcp": ("--trust", "--journal", "run.jsonl"),
    "rpc": ("--trust",),
    "chat": ("--once", "hello", "--model", "test"),
    "completion": ("bash",),
    "doctor": (),
    "policy": (),
    "uninstall": ("--dry-run",),
    "help": ("list",),
}
SERVED = {
    "rpc": b'{"jsonrpc":"2.0","id":1,"method":"skills.search","params":{"query":"deploy"}}\n',
    "mcp": b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n',
}
PLANTED = """\
import os
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "RAN"), "a") as ran:
    ran.write(__name__ + "\\n")
raise ImportError("planted")
"""


@pytest.fixture
def clone(machine: Machine) -> Path:
    """A repository with a skill, and beside it a file for every module that any program here could import."""
    (write_skill(machine.repo / ".agents/skills", "deploy").parent / "scripts").mkdir()
    (machine.repo / ".agents/skills/deploy/scripts/x.sh").write_text("#!/bin/sh\necho ran\n")
    names = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", "tests"}
    for name in names - {"skillshelf"}:
        if name.isidentifier():
            (machine.repo / f"{name}.py").write_text(PLANTED)
    return machine.repo


def environment(machine: Machine, python_path: str = SOURCE) -> dict[str, str]:
    # No variable that changes where Python looks but the one that says where the package is.
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(machine.home), "PYTHONPATH": python_path}


def loaded_before_us(machine: Machine, folder: Path) -> list[str]:
    """Return the modules that Python itself imports for `-m`, before the first line of any package."""
    (folder / "bare").mkdir(parents=True)
    (folder / "bare/__init__.py").write_text("")
    (folder / "bare/__main__.py").write_text("import sys\nprint(*{name.split('.')[0] for name in sys.modules})\n")
    command = [sys.executable, "-m", "bare"]
    done = subprocess.run(command, cwd=folder, env=environment(machine), capture_output=True, text=True, check=True)
    return done.stdout.split()


def run(command: list[str], words: tuple[str, ...], clone: Path, env: dict[str, str]) -> None:
    given = SERVED.get(words[0] if words else "", b"")
    done = subprocess.run([*command, *words], cwd=clone, env=env, input=given, capture_output=True, timeout=60)
    ran = (clone / "RAN").read_text() if (clone / "RAN").exists() else ""
    assert ran == "", (words, done.stderr)
    assert b"planted" not in done.stderr + done.stdout
    assert b"Traceback" not in done.stderr
    assert b'"result"' in done.stdout or not given or b"needs the extra" in done.stderr


def test_every_command_is_run_here() -> None:
    assert set(RUNS) == set(COMMANDS)


def test_python_m_imports_nothing_from_the_folder_it_is_run_in(machine: Machine, clone: Path, tmp_path: Path) -> None:
    for name in loaded_before_us(machine, tmp_path / "elsewhere"):
        (clone / f"{name}.py").unlink(missing_ok=True)
    for name, words in RUNS.items():
        run([sys.executable, "-m", "skillshelf"], (name, *words) if name else (), clone, environment(machine))


@pytest.mark.parametrize("python_path", ["{}", ":{}", "{}:", ".:{}", "{}::.", "./:{}"])
def test_the_console_script_imports_nothing_from_there_even_if_a_variable_names_it(
    machine: Machine, clone: Path, tmp_path: Path, python_path: str
) -> None:
    script = tmp_path / "bin/skillshelf"
    script.parent.mkdir()
    # The text that installers write for the entry point of `pyproject.toml`.
    script.write_text("import sys\nfrom skillshelf.__main__ import main\nsys.exit(main())\n")
    if python_path != "{}":
        # Python itself looks for these, and for what it starts with, before it reads our first line.
        bare = subprocess.run(
            [sys.executable, "-c", "import sys; print(*{name.split('.')[0] for name in sys.modules})"],
            env=environment(machine),
            capture_output=True,
            text=True,
            check=True,
        )
        for name in {*bare.stdout.split(), "sitecustomize", "usercustomize"}:
            (clone / f"{name}.py").unlink(missing_ok=True)
    names = RUNS if python_path == "{}" else ["list", "search", "rpc"]
    for name in names:
        words = (name, *RUNS[name]) if name else ()
        run([sys.executable, str(script)], words, clone, environment(machine, python_path.format(SOURCE)))


def test_a_checkout_can_be_run_from_its_own_source_folder(machine: Machine) -> None:
    env = environment(machine)
    del env["PYTHONPATH"]
    command = [sys.executable, "-m", "skillshelf", "--version"]
    done = subprocess.run(command, cwd=SOURCE, env=env, capture_output=True, text=True)
    assert done.stdout.startswith("skillshelf "), done.stderr
