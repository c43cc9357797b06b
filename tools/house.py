"""Measure the structure of the code: `python tools/house.py [SOURCE]`; `--trace` follows six operations through it.

SOURCE is a folder that holds the package `skillshelf` (default: `src` of this repository), so that two versions can be
compared. The output is Markdown.
"""

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent


class Module(NamedTuple):
    """One module: its dotted name inside the package, its text and its syntax."""

    name: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The first folder, two for servers, or the module itself at the top."""
        parts = self.name.split(".")
        return ".".join(parts[:2]) if parts[0] == "servers" and len(parts) > 2 else parts[0] if parts[1:] else "(top)"


def modules_of(source: Path) -> dict[str, Module]:
    """Return every module of the package by its name; a package itself is `folder.__init__`."""
    root = source / "skillshelf"
    found = {}
    for path in sorted(root.rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, text, ast.parse(text))
    return found


def edges_of(modules: dict[str, Module]) -> set[tuple[str, str]]:
    """Return each import of one module by another, later and type-only imports included."""
    edges = set()
    for module in modules.values():
        for node in ast.walk(module.tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
            for name in names:
                inside = name.removeprefix("skillshelf.")
                if name.startswith("skillshelf.") and inside in modules and inside != module.name:
                    edges.add((module.name, inside))
    return edges


def in_cycles(edges: set[tuple[str, str]]) -> set[str]:
    """Return the modules that are left when modules without unresolved imports are removed repeatedly."""
    imports: dict[str, set[str]] = {}
    for module, imported in edges:
        imports.setdefault(module, set()).add(imported)
    while free := {module for module in imports if not imports[module] & set(imports)}:
        imports = {module: names for module, names in imports.items() if module not in free}
    return set(imports)


def function_lengths(tree: ast.Module) -> Iterator[int]:
    """Yield the number of lines of each function and method, without its docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = ast.get_docstring(node) is not None and isinstance(first, ast.Expr)
            docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if has_docstring else 0
            yield (node.end_lineno or node.lineno) - node.lineno + 1 - docstring


def text_lines(module: Module) -> tuple[int, int, int]:
    """Return the lines of code, docstrings and comments of a module."""
    docstrings = 0
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            docstrings += (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    comments: set[int] = set()
    code: set[int] = set()
    skipped = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in skipped:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code) - docstrings, docstrings, len(comments - code)


def measurements(source: Path) -> dict[str, str]:
    """Return what is measured, as texts by their labels."""
    modules = modules_of(source)
    real = {name: module for name, module in modules.items() if not name.endswith("__init__")}
    edges = edges_of(real)
    importers = Counter(imported for _, imported in edges)
    classes = Counter(
        node.name for module in modules.values() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)
    )
    repeated = sorted(name for name, count in classes.items() if count > 1)
    lines = {name: len(module.text.splitlines()) for name, module in modules.items()}
    longest = max(lines, key=lambda name: lines[name])
    lengths = [length for module in modules.values() for length in function_lengths(module.tree)]
    code, docstrings, comments = (sum(column) for column in zip(*map(text_lines, modules.values()), strict=True))
    return {
        "modules": str(len(real)),
        "lines": f"{sum(lines.values()):,}",
        "import edges per module": f"{len(edges) / len(real):.1f}",
        "modules in import cycles": str(len(in_cycles(edges))),
        "class names defined more than once": f"{len(repeated)} ({', '.join(repeated) or 'none'})",
        "functions": f"{len(lengths):,}",
        "lines of a function, median": f"{median(lengths):g}",
        "longest module": f"{longest}, {lines[longest]} lines",
        "modules with one importer": str(sum(count == 1 for count in importers.values())),
        "docstring lines per 100 lines of code": f"{100 * docstrings / code:.0f}",
        "comment lines per 100 lines of code": f"{100 * comments / code:.0f}",
    }


def packages(source: Path) -> list[tuple[str, int, int]]:
    """Return each package with its modules and lines."""
    found: dict[str, tuple[int, int]] = {}
    for module in modules_of(source).values():
        count, lines = found.get(module.package, (0, 0))
        is_module = not module.name.endswith("__init__")
        found[module.package] = count + is_module, lines + len(module.text.splitlines())
    return [(name, count, lines) for name, (count, lines) in sorted(found.items())]


# Traces -------------------------------------------------------------------------------------------

_TRACE = """
import json, os, sys
folder = sys.argv[1]
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
import threading
seen, path, upward = set(), [], {}
order = sys.argv[5].split()
def package(frame):
    name = frame.f_globals.get("__name__", "")
    # A module or class body that is run by an import is no call.
    return name.split(".")[1] if name.startswith("skillshelf.") and frame.f_code.co_flags & 1 else None
def follow(frame, event, argument):
    if event != "call" or (here := package(frame)) is None:
        return
    name = frame.f_globals["__name__"]
    seen.add((name, frame.f_code.co_qualname))
    path.append(name)
    caller = frame.f_back
    while caller is not None and package(caller) is None:
        caller = caller.f_back
    if caller is not None and here in order and (above := package(caller)) in order:
        if order.index(here) > order.index(above):
            key = f"{caller.f_globals['__name__']} -> {name}.{frame.f_code.co_qualname}"
            upward[key] = upward.get(key, 0) + 1
def command(*words):
    module = __import__("skillshelf.cli.main" if os.path.isdir(folder + "/skillshelf/cli") else "skillshelf.cli")
    main = sys.modules["skillshelf.cli.main" if "skillshelf.cli.main" in sys.modules else "skillshelf.cli"].main
    return lambda: main([*words, "--cwd", sys.argv[3], "--home", sys.argv[4]])
def load():
    import skillshelf
    session = skillshelf.open_shelf(sys.argv[3], home=sys.argv[4]).session()
    return lambda: session.call("skill_load", {"name": "deploy"})
def read():
    import skillshelf
    shelf = skillshelf.open_shelf(sys.argv[3], home=sys.argv[4])
    shelf.catalog
    import anyio
    if os.path.isdir(folder + "/skillshelf/servers"):
        from skillshelf.servers.mcp import skills, server
        served = server.SkillServer(skills.PublishedSkills(shelf), show_paths=False)
    else:
        from skillshelf.mcp_server import library, server
        served = server.SkillServer(library.Library(shelf, shelf.session), show_paths=False)
    from mcp.client import Client
    async def client():
        async with Client(served.server) as inside:
            sys.setprofile(follow)
            threading.setprofile(follow)
            await inside.read_resource("skill://deploy/SKILL.md")
            sys.setprofile(None)
    return lambda: anyio.run(client)
acts = {"list": lambda: command("list"), "skill_load": load, "search": lambda: command("search", "deploy"),
        "why": lambda: command("why", "deploy"), "run": lambda: command("run", "deploy", "go.sh"), "mcp read": read}
act = acts[sys.argv[2]]()
if sys.argv[2] != "mcp read":
    sys.setprofile(follow)
try:
    act()
finally:
    sys.setprofile(None)
    found = {"functions": len(seen), "modules": len({name for name, _ in seen}), "path": path, "upward": upward}
    os.write(out, json.dumps(found).encode())
"""

ORDER = (
    *("errors", "core", "config", "journal", "catalog", "search", "sandbox", "session", "shelf"),
    *("lint", "hosts", "servers", "adapters", "cli"),
)
"""Packages from the bottom up; a call goes down or stays, a callback goes up."""

OPERATIONS = ("list", "skill_load", "search", "why", "run", "mcp read")


def trace(source: Path, operation: str, cwd: str, home: str) -> dict[str, object]:
    """Run one operation in a process of its own and return the modules it passed."""
    done = subprocess.run(
        [sys.executable, "-c", _TRACE, str(source), operation, cwd, home, " ".join(ORDER)],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    if not done.stdout:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _first_visits(path: list[str]) -> list[str]:
    """Return the packages in the order in which they were first entered."""
    return list(dict.fromkeys(name.split(".")[1] for name in path))


def traces(source: Path) -> Iterator[list[str]]:
    """Yield a row for each operation: functions, modules, packages in the order of first entry."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        skill = Path(folder, "repo/.agents/skills/deploy")
        (skill / "scripts").mkdir(parents=True)
        Path(folder, "repo/.git").mkdir()
        Path(folder, "home").mkdir()
        (skill / "SKILL.md").write_text(
            "---\nname: deploy\ndescription: Deploys it. Use when asked to.\n---\nRun it.\n"
        )
        (skill / "scripts/go.sh").write_text("#!/bin/sh\necho done\n")
        for operation in OPERATIONS:
            found = trace(source, operation, f"{folder}/repo", f"{folder}/home")
            if "error" in found:
                yield [operation, "", "", str(found["error"]), ""]
                continue
            path = [str(name) for name in found["path"]]  # type: ignore[attr-defined]
            upward = ", ".join(sorted(found["upward"])) or "none"  # type: ignore[call-overload]
            yield [operation, str(found["functions"]), str(found["modules"]), " ".join(_first_visits(path)), upward]


def table(rows: list[list[str]]) -> str:
    """Return rows as a Markdown table; the first is the head."""
    head, *body = rows
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)]
    return "\n".join(lines)


def main() -> None:
    """Print the measurements of one or more versions side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="*", type=Path, default=[REPOSITORY / "src"])
    parser.add_argument("--trace", action="store_true", help="follow six operations through the packages")
    options = parser.parse_args()
    if options.trace:
        for source in options.source:
            print(
                table(
                    [
                        ["operation", "functions", "modules", "packages in order of entry", "calls upward"],
                        *traces(source),
                    ]
                ),
                "\n",
            )
        return
    columns = [measurements(source) for source in options.source]
    print(table([["", *map(str, options.source)], *([label, *(c[label] for c in columns)] for label in columns[0])]))
    for source in options.source:
        rows = [[name, str(count), f"{lines:,}"] for name, count, lines in packages(source)]
        print("\n" + table([["package", "modules", "lines"], *rows]))


if __name__ == "__main__":
    main()
