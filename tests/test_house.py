"""The structure of the package: imports, access to files, names of systems."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from schemas import write_schemas
from support.trees import SOURCE, Machine, write_skill

import skillshelf
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.hosts import HOSTS

PACKAGE = Path(skillshelf.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

_ENGINE = {"core", "config", "journal", "catalog", "search", "sandbox", "session", "shelf"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "core": {"errors"},
    "config": {"errors", "core"},
    "journal": {"errors", "core"},
    "catalog": {"errors", "core", "config"},
    "search": {"errors", "core", "config", "catalog"},
    "sandbox": {"errors", "core", "catalog"},
    "session": {"errors", "core", "config", "journal", "catalog", "search", "sandbox"},
    "shelf": {"errors", "core", "config", "journal", "catalog", "search", "session"},
    "lint": {"errors", "core", "config", "catalog", "search", "shelf"},
    "hosts": {"errors", "core", "config", "catalog", "lint"},
    "install": {"errors", "core", "config", "catalog", "lint", "hosts", "shelf"},
    "servers.mcp": {"errors", *_ENGINE},
    "servers.rpc": {"errors", *_ENGINE},
    "adapters": {"errors", *_ENGINE},
    "servers.web": {"errors", *_ENGINE, "lint", "hosts", "install"},
    "evals": {"errors", "core", "config", "journal", "catalog", "search", "session", "shelf", "hosts", "adapters"},
    "servers.team": {"errors", *_ENGINE, "lint", "hosts", "install", "servers.mcp", "servers.web"},
    "cli": {
        *("errors", *_ENGINE, "lint", "hosts", "install", "servers.mcp", "servers.rpc", "servers.web", "servers.team"),
        *("adapters", "evals"),
    },
}
"""Every package, and the packages it may import; `skillshelf` itself gives its version to all of them."""


def name_of(path: Path) -> str:
    """The name of a module inside the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


NAMES = {name_of(path) for path in MODULES}


def package_of(module: str) -> str:
    """The package that a module belongs to, as `ALLOWED` names it."""
    head, _, rest = module.partition(".")
    return f"servers.{rest.partition('.')[0]}" if head == "servers" else head


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported_modules(tree: ast.Module) -> set[str]:
    """The modules of this package that a module imports: at the top, later, and for types alone."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] == "skillshelf"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the package"
            if node.module and node.module.partition(".")[0] == "skillshelf":
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {name if name.removeprefix("skillshelf.") in NAMES else node.module for name in inside}
    return {name.removeprefix("skillshelf").lstrip(".") or "__init__" for name in found}


def import_edges() -> Iterator[tuple[str, str]]:
    """Each import of one of our modules by another."""
    for path in MODULES:
        for imported in sorted(imported_modules(tree_of(path))):
            yield name_of(path), imported


# Imports ------------------------------------------------------------------------------------------


def test_packages_import_only_what_they_may() -> None:
    offenders = [
        f"{module} imports {imported}"
        for module, imported in import_edges()
        if module not in ("__init__", "__main__") and imported != "__init__"
        if package_of(imported) not in {package_of(module), *ALLOWED[package_of(module)]}
    ]

    assert not offenders, "\n".join(offenders)


def test_no_modules_import_each_other_in_a_circle() -> None:
    edges: dict[str, set[str]] = {}
    for module, imported in import_edges():
        if module != "__init__" and imported != "__init__":
            edges.setdefault(module, set()).add(imported)

    while free := {module for module in edges if not edges[module] & set(edges)}:
        edges = {module: imported for module, imported in edges.items() if module not in free}

    assert edges == {}


def test_the_import_test_sees_every_form_of_import() -> None:
    tree = ast.parse(
        "import skillshelf.core.files\nfrom skillshelf import errors, __version__\n"
        "from skillshelf.core.values import Root\nfrom skillshelf.adapters import json_tools\n"
        "def late():\n    from skillshelf.cli.main import main\n"
        "if TYPE_CHECKING:\n    from skillshelf.shelf import Shelf\nimport os\n"
    )

    assert imported_modules(tree) == {
        *("__init__", "adapters.json_tools", "cli.main", "core.files", "core.values", "errors", "shelf")
    }


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


@pytest.mark.slow
def test_importing_the_package_imports_nothing_else() -> None:
    loaded = modules_after("import skillshelf")

    assert {module for module in loaded if module.startswith("skillshelf")} == {"skillshelf"}
    heavy = {"ryaml", "dataclasses", "argparse", "json", "pathlib", "asyncio", "tomllib", "logging", "inspect"}
    assert heavy & loaded == set()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], []], ids=["list", "json", "overview"])
def test_a_listing_in_a_pipe_imports_nothing_it_does_not_need(machine: Machine, words: list[str]) -> None:
    write_skill(machine.repo / ".agents" / "skills", "alpha")
    place = ["--cwd", str(machine.repo), "--home", str(machine.home)]

    loaded = modules_after("import sys, skillshelf.cli.main; skillshelf.cli.main.main(sys.argv[1:])", *words, *place)

    assert "skillshelf.catalog.discovery" in loaded
    slow = {"dataclasses", "argparse", "asyncio", "pathlib", "tomllib", "platformdirs", "importlib.metadata"}
    slow |= {
        "inspect",
        "logging",
        "subprocess",
        "tempfile",
        "skillshelf.session.session",
        "skillshelf.adapters.loaders",
    }
    assert slow & loaded == set()


# Names --------------------------------------------------------------------------------------------


def test_every_public_name_is_there() -> None:
    assert [name for name in skillshelf.__all__ if getattr(skillshelf, name, None) is None] == []
    assert set(skillshelf.__all__) <= set(dir(skillshelf))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = skillshelf.nonsense


def test_a_module_says_what_it_is_for_and_what_it_gives() -> None:
    silent = []
    for path in MODULES:
        tree = tree_of(path)
        assigned = [ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)]
        if not ast.get_docstring(tree) or ("__all__" not in assigned and path.stem[:2] != "__"):
            silent.append(name_of(path))

    assert silent == []


def test_a_class_name_occurs_once_and_no_module_is_named_after_an_activity() -> None:
    classes = [node.name for path in MODULES for node in tree_of(path).body if isinstance(node, ast.ClassDef)]

    assert sorted(name for name in set(classes) if classes.count(name) > 1) == []
    assert [name for name in NAMES if name.endswith("ing")] == []


PROGRAMS = {*HOSTS, *SYSTEMS, "claude", "gemini", "copilot"}


def test_only_the_profile_tables_know_a_system_by_name() -> None:
    offenders = [
        f"{name_of(path)}: {node.value}"
        for path in MODULES
        if name_of(path) not in ("config.builtin_profiles", "config.hosts")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and node.value in PROGRAMS
    ]

    assert offenders == []


# Files --------------------------------------------------------------------------------------------

OPENERS = {"open", "io.open", "os.open", "os.listdir", "os.scandir", "os.walk", "os.fwalk", "codecs.open"}
PATH_READS = {"read_text", "read_bytes", "iterdir", "glob", "rglob", "open"}


def file_calls(tree: ast.Module) -> list[str]:
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
    # No part of a skill is there: one discards output, the other is the user's terminal.
    return [call for call in (*found, *imported) if not call.startswith(("os.open(os.devnull,", "os.open('/dev/tty',"))]


FILE_MODULES = ("core.files", "core.disk_writes")
"""The module that reads files and the one that writes them."""


def test_only_the_file_modules_open_files() -> None:
    offenders = {name_of(path): file_calls(tree_of(path)) for path in MODULES if name_of(path) not in FILE_MODULES}

    assert {module: calls for module, calls in offenders.items() if calls} == {}


def test_the_check_of_file_calls_sees_every_form_of_opening() -> None:
    tree = ast.parse(
        "open('a')\nos.open('a', 0)\nPath('a').read_text()\nos.listdir('.')\n"
        "from os import scandir\nos.open(os.devnull, 1)\n"
    )

    assert len(file_calls(tree)) == 5
    assert file_calls(tree_of(PACKAGE / "core" / "files.py"))


# Patterns -----------------------------------------------------------------------------------------


def texts_of(tree: ast.Module) -> Iterator[str | bytes]:
    """Every text of a module; where one is put together, with a letter for each part that is put in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)


def is_possessive(text: str | bytes) -> bool:
    """Return True for a pattern that never gives back what it took: `a*+`, `a?+`, `(?>a)`."""
    for flags in (0, re.VERBOSE):
        try:
            # Shows the parsed pattern, as far as there is one; a text that is no pattern raises.
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as shown:
                warnings.simplefilter("ignore")
                re.compile(text, flags | re.DEBUG)
        except (re.error, OverflowError, RecursionError):
            continue
        if re.search(r"^ *(?:POSSESSIVE_REPEAT|ATOMIC_GROUP)", shown.getvalue(), re.MULTILINE):
            return True
    return False


def test_no_pattern_needs_what_the_oldest_python_gets_wrong() -> None:
    """Python 3.11.2 does not match optional groups in possessive ones; `check --fix` did nothing there."""
    marks = re.compile(r"[*+?}]\+|\(\?>")
    offenders = [
        f"{name_of(path)}: {text!r}"
        for path in MODULES
        for text in texts_of(tree_of(path))
        if marks.search(text if isinstance(text, str) else text.decode("latin-1")) and is_possessive(text)
    ]

    assert offenders == []


@pytest.mark.parametrize("text", ["a*+", "(?:a|b){2}+", "(?x) (?: a ?+ )", b"[a]++", "a(?=(?>b))", "x\n*+ # (verbose"])
def test_the_check_of_patterns_sees_every_form(text: str | bytes) -> None:
    assert is_possessive(text)


@pytest.mark.parametrize("text", ["[*+]+", "C\\++", "+++ a", "a+?", "("])
def test_the_check_of_patterns_lets_others_pass(text: str) -> None:
    assert not is_possessive(text)


def test_the_package_ships_its_types_and_the_schemas_made_from_them(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    made, shipped = (
        {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
        for folder in (tmp_path, PACKAGE / "json_schemas")
    )

    assert (PACKAGE / "py.typed").exists()
    assert {"scope", "metadata", "load-error", "catalog", "search-result", "skill", "failure"} <= set(shipped)
    stale = [name for name in sorted({*made, *shipped}) if made.get(name) != shipped.get(name)]
    assert stale == [], "run: python tools/schemas.py src/skillshelf/json_schemas"
