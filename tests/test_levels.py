"""How the package is put together: who imports whom, who may open files, who may know a system by name."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from trees import SOURCE, Machine, write_skill

import skillshelf
from skillshelf import cache
from skillshelf.profiles import SYSTEMS
from skillshelf.version import VERSION

PACKAGE = Path(skillshelf.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS = (
    # What everything speaks: values, errors, limits, text.
    ("arguments", "errors", "fitting", "guidance", "hidden", "limits", "mentions", "text", "values", "version"),
    ("events", "files", "lines", "markup", "patterns", "profile", "progress", "rulebook", "terminal", "terms"),
    ("hostbase", "scratch", "wire", "writing", "yamltext"),
    ("hosts",),
    # Disk to places, text to documents, profiles as rows.
    ("agentsmd", "cache", "chain", "document", "impacts", "output", "partner", "place", "processes", "profiles"),
    ("resources",),
    ("rpcforms",),
    ("gathering", "hostsettings", "schemas", "scoring", "snippets", "state", "usage"),
    (
        "discovery",
        "index",
        "journal",
        "keeper",
        "ownprofiles",
        "portability",
        "rules",
        "scripts",
        "switches",
        "userfile",
    ),
    ("advice", "bullets", "config", "correcting", "fixing", "loader", "staging"),
    ("search",),
    ("made", "memory", "policy", "prompt", "rendering", "roots", "sandbox"),
    # A script to a run of it.
    ("launch", "proposals"),
    ("runner",),
    ("world",),
    # Candidates to a catalog, a catalog to what a model or a person gets.
    ("standing",),
    ("judging",),
    ("accepting",),
    ("catalog", "tools"),
    ("envelope", "results", "searchview", "survey", "views"),
    # Who sees what, and what helps.
    ("questions",),
    ("listings",),
    ("verdicts",),
    ("nearmisses", "putting"),
    ("copies", "foresight"),
    ("fixes",),
    ("remedies",),
    ("hostfinding", "hostviews", "linking"),
    ("asking", "handing"),
    # One conversation: what is recorded, what is allowed, what is run and handed over.
    ("delivery", "logviews", "recorder", "rpcmessages"),
    ("guard",),
    ("running",),
    ("desk",),
    ("calling", "mentioning", "snapshots"),
    ("session",),
    ("shelf",),
    # What authors are told.
    ("scaffold", "targets"),
    ("checking",),
    ("reports",),
    ("replaying",),
    ("replayviews",),
    ("logcommands",),
    # A shelf to a server.
    (
        *("mcp_server.__init__", "mcp_server.guests", "mcp_server.lanes"),
        *("mcp_server.pages", "mcp_server.publishing", "mcp_server.sending"),
    ),
    ("mcp_server.library",),
    ("mcp_server.tools",),
    ("mcp_server.server",),
    ("mcp_server.http", "mcp_server.stdio", "mcp_server.watching"),
    ("mcp_server.command",),
    # What a person chooses from.
    ("errands", "picking", "surveyor"),
    ("linkcommand", "panels", "stock"),
    ("picker",),
    ("pickcommand",),
    # The JSON-RPC server.
    ("rpcmethods", "rpcstreams"),
    ("rpcserver",),
    # What others build on.
    ("adapters.__init__", "adapters.json_tools", "adapters.tasks", "chatmodels", "hostcommands", "seeds"),
    ("adapters.langchain", "adapters.openai_agents", "adapters.pydantic_ai"),
    ("registry",),
    ("registered",),
    ("agent",),
    ("chat",),
    ("commands",),
    ("choicecommands",),
    ("__init__",),
    ("cli",),
    ("__main__",),
)
LEVELS = {module: level for level, layer in enumerate(LAYERS) for module in layer}
"""Every module and how far up it stands; data flows upward, imports point downward."""


def name_of(path: Path) -> str:
    """The name of a module inside the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def running_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of a module except what only a type checker looks at."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            yield from (node for part in child.orelse for node in (part, *running_nodes(part)))
        else:
            yield child
            yield from running_nodes(child)


def imported_modules(tree: ast.Module) -> set[str]:
    """The modules of this package that a module imports, now or later."""
    found = set()
    for node in running_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] == "skillshelf"}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "skillshelf":
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if in_package(name) in LEVELS else node.module for name in inside}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the level"
    return {in_package(name) for name in found}


def in_package(name: str) -> str:
    """The name inside the package of `skillshelf.x`; the package itself is `__init__`."""
    inside = name.removeprefix("skillshelf").lstrip(".")
    return f"{inside}.__init__".lstrip(".") if inside in ("", "adapters", "mcp_server") else inside


# Imports ------------------------------------------------------------------------------------------


def test_every_module_has_one_level() -> None:
    assert sorted(LEVELS) == sorted(name_of(path) for path in MODULES)
    assert len(LEVELS) == sum(map(len, LAYERS))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_to_a_lower_level(path: Path) -> None:
    here = LEVELS[name_of(path)]

    upward = {module for module in imported_modules(tree_of(path)) if LEVELS[module] >= here}

    assert not upward, f"{name_of(path)} (level {here}) imports {sorted(upward)}"


def test_the_level_test_sees_every_form_of_import() -> None:
    tree = ast.parse(
        "import skillshelf.files\nfrom skillshelf import text, __version__\nfrom skillshelf.values import Root\n"
        "from skillshelf.adapters import json_tools\n"
        "def late():\n    from skillshelf.cli import main\n"
        "if TYPE_CHECKING:\n    from skillshelf.shelf import Shelf\nimport os\n"
    )

    assert imported_modules(tree) == {"files", "text", "__init__", "values", "adapters.json_tools", "cli"}


def test_a_skill_passes_each_stage_once_in_one_direction() -> None:
    stages = ["files", "document", "rules", "catalog", "shelf", "commands", "cli"]

    assert [LEVELS[stage] for stage in stages] == sorted({LEVELS[stage] for stage in stages})


def modules_after(code: str, *words: str) -> set[str]:
    """The modules that are loaded after the code ran, without those that Python loads by itself."""
    loaded = []
    for program in ("", code):
        done = subprocess.run(
            [sys.executable, "-c", f"{program}\nimport sys\nsys.stderr.write(' '.join(sys.modules))", *words],
            env={"PYTHONPATH": SOURCE, "HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            check=True,
        )
        loaded.append(set(done.stderr.split()))
    return loaded[1] - loaded[0]


def test_importing_the_package_imports_nothing_else() -> None:
    loaded = modules_after("import skillshelf")

    assert {module for module in loaded if module.startswith("skillshelf")} == {"skillshelf"}
    heavy = {"ryaml", "dataclasses", "argparse", "json", "pathlib", "asyncio", "tomllib", "logging", "inspect"}
    assert heavy & loaded == set()


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], []], ids=["list", "json", "overview"])
def test_a_listing_in_a_pipe_imports_nothing_it_does_not_need(machine: Machine, words: list[str]) -> None:
    write_skill(machine.repo / ".agents" / "skills", "alpha")
    place = ["--cwd", str(machine.repo), "--home", str(machine.home)]

    loaded = modules_after("import sys, skillshelf.cli; skillshelf.cli.main(sys.argv[1:])", *words, *place)

    assert "skillshelf.discovery" in loaded
    slow = {"dataclasses", "argparse", "asyncio", "pathlib", "tomllib", "platformdirs", "importlib.metadata"}
    slow |= {"inspect", "logging", "subprocess", "tempfile", "skillshelf.session", "skillshelf.seeds"}
    assert slow & loaded == set()


# Names --------------------------------------------------------------------------------------------


def test_the_version_that_events_tell_is_that_of_the_package() -> None:
    assert skillshelf.__version__ == VERSION


def test_every_public_name_is_there() -> None:
    assert [name for name in skillshelf.__all__ if getattr(skillshelf, name, None) is None] == []
    assert set(skillshelf.__all__) <= set(dir(skillshelf))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = skillshelf.nonsense


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path) != "__main__"], ids=name_of)
def test_a_module_says_what_it_is_for_and_what_it_gives(path: Path) -> None:
    tree = tree_of(path)

    assert ast.get_docstring(tree)
    if path.name != "__init__.py":
        assert any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__" for node in tree.body)


HOSTS = {
    *("claude-code", "codex", "opencode", "gemini-cli", "goose", "pi", "oh-my-pi", "vscode", "copilot-cli"),
    *("cursor", "kiro", "openskills", "claude", "gemini", "copilot"),
}


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path) not in ("profiles", "hosts")], ids=name_of)
def test_only_the_profile_tables_know_a_system_by_name(path: Path) -> None:
    texts = {node.value for node in running_nodes(tree_of(path)) if isinstance(node, ast.Constant)}

    assert texts & (set(SYSTEMS) | HOSTS) == set()


# Files --------------------------------------------------------------------------------------------

OPENERS = {"open", "io.open", "os.open", "os.listdir", "os.scandir", "os.walk", "os.fwalk", "codecs.open"}
PATH_READS = {"read_text", "read_bytes", "iterdir", "glob", "rglob", "open"}


def doors(tree: ast.Module) -> list[str]:
    """The calls of a module that open or list something, as they are written."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func) in OPENERS or (isinstance(call.func, ast.Attribute) and call.func.attr in PATH_READS)
    ]
    imported = [
        f"from os import {alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "os"
        for alias in node.names
        if f"os.{alias.name}" in OPENERS
    ]
    # Nothing of a skill lies there: it is where output goes that nobody reads, and the person's own terminal.
    return [door for door in (*found, *imported) if not door.startswith(("os.open(os.devnull,", "os.open('/dev/tty',"))]


DOORS = ("files", "schemas", "scratch", "writing")
"""One to read through, two to write, and the one that makes the files of the package itself."""


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path) not in DOORS], ids=name_of)
def test_the_disk_is_reached_by_its_doors_alone(path: Path) -> None:
    assert doors(tree_of(path)) == []


def test_the_door_test_sees_every_form_of_opening() -> None:
    tree = ast.parse(
        "open('a')\nos.open('a', 0)\nPath('a').read_text()\nos.listdir('.')\n"
        "from os import scandir\nos.open(os.devnull, 1)\n"
    )

    assert len(doors(tree)) == 5
    assert doors(tree_of(PACKAGE / "files.py"))


def test_the_package_ships_its_schemas_and_types() -> None:
    assert (PACKAGE / "py.typed").exists()
    schemas = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (PACKAGE / "json_schemas").glob("*.json")
    }
    assert {"scope", "metadata", "load-error", "catalog", "search-result", "skill", "failure"} <= set(schemas)


def closure_of(*names: str) -> set[str]:
    """The modules that some modules import, directly or through others."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += imported_modules(tree_of(PACKAGE / f"{name}.py"))
    return found


def test_what_is_remembered_of_a_file_is_given_up_with_every_module_that_decides_it() -> None:
    # A profile is part of the key by its value, and what the settings say is asked anew.
    others = {
        "config",
        "errors",
        "files",
        "hostbase",
        "hosts",
        "ownprofiles",
        "place",
        "profile",
        "profiles",
        "rulebook",
    }

    deciding = closure_of("judging", "accepting") - others

    assert deciding | {"cache"} == set(cache._DECIDING)
