"""Define what is measured: the trees, and a table of rows (a name, a section of the page and a command)."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from environments import PEERS, Unavailable, command_of, is_installed, set_up
from trees import real_files, write_real_tree, write_tree

import skillshelf

__all__ = [
    "PREPARATION",
    "Kind",
    "Place",
    "Row",
    "Section",
    "Tree",
    "compile_c",
    "edit",
    "make_trees",
    "our_rows",
    "peer_rows",
]

BENCH = Path(__file__).parent
Kind = Literal["real", "synthetic"]
Section = Literal["listing", "commands", "calls"]
Place = tuple[Kind, int]
"""The kind and the size of a tree."""

FLOOR, BARE, START = "C floor", "floor's calls from Python", "bare Python start"
COLD, WARM = "skillshelf, cold", "skillshelf, warm cache"
LIST_COLD, LIST = "`skillshelf list`, cold", "`skillshelf list`"
VERSION, SHOW, READ, SEARCH = "`--version`", "`show NAME`", "`read URI`", "`search WORDS`"
WHY, HOSTS, CHECK = "`why NAME`", "`hosts`", "`check`"
MCP_FIRST, RPC_AGAIN = "MCP: start to first page", "RPC: `skills.list` again"
INDEX, QUERY = "search: index from nothing", "search: one query, median of ten"
SKILL_RUN, BUBBLEWRAP = "`skill_run` of `echo hi`", "bare bubblewrap, `echo hi`"
WORDS = "draft release notes"
SETTLE_SECONDS = 3.0
"""The cache does not trust the time stamp of a file that was written just now."""


class Tree(NamedTuple):
    """A home folder with this many skills in `.agents/skills`, and one with a single skill to start on."""

    kind: Kind
    size: int
    home: Path
    small: Path

    @property
    def place(self) -> Place:
        """The key of the tree in the results."""
        return self.kind, self.size

    @property
    def roots(self) -> list[str]:
        """The two folders every driver of a peer is called with."""
        return [str(home / ".agents" / "skills") for home in (self.small, self.home)]


class Row(NamedTuple):
    """One line of a table; a row without a command says in `reason` why it has none.

    A row is not measured at the sizes in `skip`, and on one tree only if it is measured `once`. `codes` are the
    exit codes that mean an answer. `is_counted` asks for system calls and allocations as well. Before each run of a
    row that `edits`, one SKILL.md in the tree gets another text.
    """

    name: str
    section: Section
    command: Callable[[Tree], list[str]] | None
    reason: str = ""
    in_python: bool = True
    is_counted: bool = False
    once: bool = False
    skip: frozenset[int] = frozenset({17_700})
    codes: frozenset[int] = frozenset({0})
    edits: bool = False


# Trees ----------------------------------------------------------------------------------------------


def make_trees(folder: Path, sizes: Sequence[int], real: Path | None) -> list[Tree]:
    """Return the trees of these sizes, the real ones first; each is written once and used again."""
    trees, before = [], time.time()
    files = real_files(real) if real else []
    if real and not files:
        sys.exit(f"no SKILL.md below {real}")
    # Another collection gets other trees.
    told = "\n".join(f"{path.parent.name} {path.stat().st_size}" for path in files)
    label = {"synthetic": "synthetic", "real": f"real-{sha256(told.encode()).hexdigest()[:8]}"}
    for kind in ("real", "synthetic") if files else ("synthetic",):
        for size in sizes:
            homes = [folder / "trees" / f"{label[kind]}-{number}" for number in (size, 1)]
            for home, number in zip(homes, (size, 1), strict=True):
                _write(home, number, files if kind == "real" else [])
            trees.append(Tree(kind, size, *homes))
    if any((tree.home / "work").stat().st_mtime >= before for tree in trees):
        time.sleep(SETTLE_SECONDS)
    return trees


def _write(home: Path, count: int, files: Sequence[Path]) -> None:
    if (home / "work").is_dir():
        return
    print(f"writing {count} skills", file=sys.stderr)
    if files:
        write_real_tree(home / ".agents" / "skills", count, files)
    else:
        write_tree(home / ".agents" / "skills", count)
    # Last, so that a tree whose writing was interrupted is written again.
    (home / "work").mkdir()


def edit(tree: Tree) -> None:
    """Add an empty line to a SKILL.md in the middle, or take it away again, and wait until the change has settled."""
    paths = sorted((tree.home / ".agents" / "skills").glob("*/SKILL.md"))
    path = paths[len(paths) // 3]
    text = path.read_bytes()
    path.write_bytes(text[:-1] if text.endswith(b"\n\n") else text + b"\n")
    time.sleep(SETTLE_SECONDS)


@cache
def a_name(tree: Tree) -> str:
    """Return the name of a listed skill in the middle."""
    skills = skillshelf.open_shelf(tree.home / "work", home=tree.home, env={}).catalog.skills
    names = sorted(skill.name for skill in skills if skill.name.isascii())
    return names[len(names) // 2]


# Our rows -------------------------------------------------------------------------------------------


def _ours(*words: str) -> Callable[[Tree], list[str]]:
    script = Path(sys.executable).with_name("skillshelf")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "skillshelf"]

    def command(tree: Tree) -> list[str]:
        place = ["--home", str(tree.home), "--cwd", str(tree.home / "work")]
        return [*program, *(a_name(tree) if word == "NAME" else _address(word, tree) for word in words), *place]

    return command


def _address(word: str, tree: Tree) -> str:
    return f"skill://{a_name(tree)}/SKILL.md" if word == "URI" else word


def _call(name: str) -> Callable[[Tree], list[str]]:
    return lambda tree: [sys.executable, str(BENCH / "calls.py"), name, str(tree.small), str(tree.home)]


def _server(name: str, *words: str) -> Callable[[Tree], list[str]]:
    return lambda tree: [sys.executable, str(BENCH / "servers.py"), name, str(tree.home), *words]


PREPARATION = tuple(_ours(*words) for words in (("list",), ("search", WORDS), ("hosts",), ("why", "NAME")))
"""The commands that are run before anything is measured, so that caches and index are there."""

EVERY: frozenset[int] = frozenset()
FINDINGS = frozenset({0, 1})
START_ROW = Row(START, "listing", lambda tree: [sys.executable, "-c", "pass"], skip=EVERY)

OURS = (
    START_ROW,
    Row(COLD, "listing", _call("scan-cold"), is_counted=True),
    Row(WARM, "listing", _call("scan-warm"), is_counted=True),
    Row(f"{WARM}, each skill read", "listing", _call("scan-read"), is_counted=True),
    Row(LIST_COLD, "listing", _ours("list", "--no-cache")),
    Row(LIST, "listing", _ours("list")),
    Row("`skillshelf list --json`", "listing", _ours("list", "--json")),
    # Whole processes.
    Row(VERSION, "commands", lambda tree: [*_ours()(tree)[:-4], "--version"], once=True),
    Row(SHOW, "commands", _ours("show", "NAME")),
    Row(READ, "commands", _ours("read", "URI")),
    Row(SEARCH, "commands", _ours("search", WORDS)),
    Row(WHY, "commands", _ours("why", "NAME")),
    Row(f"{WHY}, cold", "commands", _ours("why", "NAME", "--no-cache")),
    Row(HOSTS, "commands", _ours("hosts")),
    Row(f"{HOSTS}, cold", "commands", _ours("hosts", "--no-cache")),
    Row(CHECK, "commands", _ours("check", "--user"), codes=FINDINGS),
    *(
        Row(f"{name}, one file edited", "commands", _ours(*words), edits=True)
        for name, words in (
            (LIST, ("list",)),
            (SHOW, ("show", "NAME")),
            (READ, ("read", "URI")),
            (SEARCH, ("search", WORDS)),
            (WHY, ("why", "NAME")),
            (HOSTS, ("hosts",)),
        )
    ),
    # Calls in a process that runs already, and answers of servers.
    Row(MCP_FIRST, "calls", _server("mcp-first")),
    Row(f"{MCP_FIRST}, cold", "calls", _server("mcp-first", "--no-cache")),
    Row("MCP: `resources/read`, later", "calls", _server("mcp-read")),
    Row("RPC: start to `skills.list`", "calls", _server("rpc-first")),
    Row(RPC_AGAIN, "calls", _server("rpc-again")),
    Row("RPC: `skills.list` with `force_reload`", "calls", _server("rpc-reload")),
    Row("picker: start to first line", "calls", _server("picker-start")),
    Row("picker: a letter, median of six", "calls", _server("picker-letter")),
    Row("`Shelf.refresh`", "calls", _call("refresh")),
    Row("`Shelf.prompt`", "calls", _call("prompt")),
    Row("`AgentSession` turn, function model", "calls", _call("agent-turn")),
    Row(INDEX, "calls", _call("index")),
    Row(QUERY, "calls", _call("query"), skip=EVERY),
    Row("plain line appended to a file", "calls", _call("journal-lines"), once=True),
    Row("journal event, fsync never", "calls", _call("journal-never"), once=True),
    Row("journal event, fsync always", "calls", _call("journal-always"), once=True),
    Row("journal event, eight writers", "calls", _call("journal-together"), once=True),
    Row(SKILL_RUN, "calls", _call("skill-run"), once=True),
    Row(BUBBLEWRAP, "calls", _call("bubblewrap"), once=True),
    Row("plain subprocess, `echo hi`", "calls", _call("subprocess"), once=True),
)


def our_rows(folder: Path) -> list[Row]:
    """Return the floor, a bare start, the library, the commands and the servers."""
    floor = compile_c("floor.c", folder / "floor")
    bare = str(BENCH / "peers" / "list_bare.py")
    return [
        Row(FLOOR, "listing", lambda tree: [str(floor), *tree.roots], in_python=False, is_counted=True),
        Row(BARE, "listing", lambda tree: [sys.executable, bare, *tree.roots], is_counted=True),
        *OURS,
    ]


# Peers ----------------------------------------------------------------------------------------------


def peer_rows(folder: Path, names: Sequence[str] | None, *, install: bool) -> list[Row]:
    """A row for each peer, `None` for all of them; `install` those that are not there yet."""
    rows = []
    for peer in PEERS:
        if names is not None and peer.name.lower() not in names:
            continue
        label = f"{peer.name} {peer.version}"
        skip = frozenset({3_000, 17_700})
        try:
            if not install and not is_installed(peer, folder):
                raise Unavailable("not installed")
            set_up(peer, folder)
            words = command_of(peer, folder)
        except Unavailable as problem:
            rows.append(Row(label, "listing", None, f"not measured: {problem}", skip=skip))
        else:
            in_python = peer.installer == "pip"
            rows.append(Row(label, "listing", _driver(words), in_python=in_python, is_counted=True, skip=skip))
    return rows


def _driver(words: list[str]) -> Callable[[Tree], list[str]]:
    return lambda tree: [*words, *tree.roots]


def compile_c(source: str, target: Path, *options: str) -> Path:
    """A C program of this folder, compiled; the compiler's own message says why it cannot be."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-Wall", *options, "-o", str(target), str(BENCH / source)], check=True)
    return target
