"""Define what is measured: rows (a name and the command that lists a tree) and the trees."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from environments import PEERS, Unavailable, command_of, set_up
from trees import write_tree

__all__ = [
    "COLD",
    "FLOOR",
    "LIST",
    "SEARCH",
    "SHOW",
    "START",
    "WARM",
    "Row",
    "Tree",
    "compile_c",
    "make_tree",
    "our_rows",
    "peer_rows",
]

BENCH = Path(__file__).parent
DRIVERS = BENCH / "peers"
FLOOR, BARE, START = "C floor", "floor's calls from Python", "bare Python start"
COLD, WARM = "skillshelf, cold", "skillshelf, warm cache"
LIST, SHOW, SEARCH = "`skillshelf list`", "`skillshelf show NAME`", "`skillshelf search WORDS`"


class Tree(NamedTuple):
    """A home folder with this many skills in `.agents/skills`, and one with a single skill to start on."""

    size: int
    home: Path
    small: Path

    @property
    def roots(self) -> list[str]:
        """The two folders every driver is called with."""
        return [str(home / ".agents" / "skills") for home in (self.small, self.home)]

    @property
    def a_name(self) -> str:
        """The name of a skill in the middle."""
        names = sorted(path.name for path in (self.home / ".agents" / "skills").iterdir())
        return names[len(names) // 2]


class Row(NamedTuple):
    """One line of the table; a row without a command says in `reason` why it has none."""

    name: str
    command: Callable[[Tree], list[str]] | None
    reason: str = ""
    in_python: bool = True


def make_tree(folder: Path, size: int) -> Tree:
    """A tree of this size, written once and used again."""
    for number in (1, size):
        home = folder / "trees" / str(number)
        if not (home / "work").is_dir():
            print(f"writing {number} skills", file=sys.stderr)
            write_tree(home / ".agents" / "skills", number)
            (home / "work").mkdir()
    return Tree(size, folder / "trees" / str(size), folder / "trees" / "1")


def our_rows(folder: Path) -> list[Row]:
    """The floor, a bare start, the library and the commands."""
    floor = compile_c("floor.c", folder / "floor")
    ours, bare = str(DRIVERS / "list_ours.py"), str(DRIVERS / "list_bare.py")
    rows = [
        Row(FLOOR, lambda tree: [str(floor), *tree.roots], in_python=False),
        Row(BARE, lambda tree: [sys.executable, bare, *tree.roots]),
        Row(START, lambda tree: [sys.executable, "-c", "pass"]),
        Row(COLD, lambda tree: [sys.executable, ours, *tree.roots, "cold"]),
        Row(WARM, lambda tree: [sys.executable, ours, *tree.roots, "warm"]),
        Row(f"{LIST}, cold", _ours("list", "--no-cache")),
        Row(f"{LIST}, warm", _ours("list")),
        Row(f"{LIST[:-1]} --json`, warm", _ours("list", "--json")),
        Row(f"{SHOW}, warm", lambda tree: _ours("show", tree.a_name)(tree)),
    ]
    from skillshelf.cli.main import COMMANDS

    if "search" in COMMANDS:
        rows.append(Row(f"{SEARCH}, warm", _ours("search", "draft release notes")))
    return rows


def _ours(*words: str) -> Callable[[Tree], list[str]]:
    script = Path(sys.executable).with_name("skillshelf")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "skillshelf"]
    return lambda tree: [*program, *words, "--home", str(tree.home), "--cwd", str(tree.home / "work")]


def peer_rows(folder: Path, names: Sequence[str] | None) -> list[Row]:
    """A row for each peer, `None` for all of them; installs those that are not there yet."""
    rows = []
    for peer in PEERS:
        if names is not None and peer.name.lower() not in names:
            continue
        label = f"{peer.name} {peer.version}"
        try:
            set_up(peer, folder)
            words = command_of(peer, folder)
        except Unavailable as problem:
            rows.append(Row(label, None, f"not measured: {problem}"))
        else:
            rows.append(Row(label, _driver(words), in_python=peer.installer == "pip"))
    return rows


def _driver(words: list[str]) -> Callable[[Tree], list[str]]:
    return lambda tree: [*words, *tree.roots]


def compile_c(source: str, target: Path, *options: str) -> Path:
    """A C program of this folder, compiled; the compiler's own message says why it cannot be."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-Wall", *options, "-o", str(target), str(BENCH / source)], check=True)
    return target
