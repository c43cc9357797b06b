"""Measure skillshelf, the peers and the floor in one interleaved run, and write docs/benchmarks.md.

    python bench/scan.py --real FOLDER              all rows, on copies of the skills in FOLDER and on synthetic ones
    python bench/scan.py --peers none --sizes 1000  ours and the floor only, on synthetic skills
    python bench/scan.py --real FOLDER --write docs/benchmarks.md
    python bench/scan.py --quick --real FOLDER --write docs/benchmarks.md
                                                    the same page in about a quarter of an hour
    python bench/scan.py --profile-ours             where our own time goes

Every run is a fresh process. Each round runs every row once (a quick row up to five times), so that a busy moment of
the machine hits all of them; the minimum counts. Caches and index are made before the first round. The first round also
warms the page cache and reads the peak memory; it counts like the others.
"""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import cache_from_source
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from environments import PARSERS, PEERS, Unavailable, python_of, set_up
from measure import Failed, Run, count_allocations, count_calls, run, run_for_peak
from report import GOALS, Counts, Report, goals_table, page, profile_table, whole_report
from rows import FLOOR, PREPARATION, START, Place, Row, Tree, compile_c, edit, make_trees, our_rows, peer_rows

import skillshelf

BENCH = Path(__file__).parent
QUICK_RUNS, QUICK_MS = 5, 500.0
SLOW_MS, SLOW_RUNS = 10_000.0, 2
PREPARATION_CAPS = 10
"""The time for the making of caches and index, in caps: it is not measured, but without it nothing is warm."""
SIZES = [1_000, 3_000, 10_000, 17_700, 50_000]
QUICK_SIZES = [1_000, 3_000, 10_000]
"""The sizes of a quick run; of the one in the middle only what a goal is set for."""
WAYS = {"PyYAML": {"CSafeLoader": "pyyaml-c", "safe_load": "pyyaml"}, "ruamel.yaml": {"safe": "ruamel"}}
"""The ways to call a parser, by the names `parsing.py` has for them."""


class Results(NamedTuple):
    """By tree and row: the runs, the peak memory in MiB, and why there are none."""

    runs: dict[tuple[Place, str], list[Run]]
    peaks: dict[tuple[Place, str], float]
    notes: dict[tuple[Place, str], str]


def measure_tree(rows: Sequence[Row], tree: Tree, results: Results, *, rounds: int, cap: float, peak: Path) -> None:
    """All rounds over all rows on one tree, put into the results."""
    for row in rows:
        if reason := row.reason or _too_slow(row, tree, results, cap):
            results.notes[tree.place, row.name] = reason
    # Edits come last: after one of them, the caches of the others would be old.
    for edits, number in product((False, True), range(rounds)):
        for row in (row for row in rows if row.edits == edits):
            key = (tree.place, row.name)
            if key in results.notes or _is_done(results.runs.get(key, [])):
                continue
            _tell(f"{tree.size:>7} {tree.kind} skills, round {number + 1}/{rounds}: {row.name}")
            try:
                if number == 0:
                    results.runs[key], results.peaks[key] = _first_run(row, tree, peak, cap)
                else:
                    results.runs[key] += _runs(row, tree, cap)
            except Failed as problem:
                results.notes[key] = f"not measured: {problem}"


def rows_at(rows: Sequence[Row], tree: Tree, earlier: Results) -> list[Row]:
    """Return the rows that are measured on a tree, without those that are measured once and were."""
    known = {name for _, name in (*earlier.runs, *earlier.notes)}
    return [row for row in rows if tree.size not in row.skip and not (row.once and row.name in known)]


def prepare(tree: Tree, *, cap: float) -> None:
    """Make the caches and the index of a tree; the rows that need them fail by themselves if this does."""
    for command in PREPARATION:
        words = command(tree)
        _tell(f"{tree.size:>7} {tree.kind} skills, preparing: {words[1]}")
        with tempfile.TemporaryDirectory() as home:
            try:
                run(words, Path(home), cap=PREPARATION_CAPS * cap)
            except Failed as problem:
                _tell(f"not prepared: {problem}")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _first_run(row: Row, tree: Tree, peak: Path, cap: float) -> tuple[list[Run], float]:
    assert row.command
    _edited(row, tree)
    with tempfile.TemporaryDirectory() as home:
        once, memory = run_for_peak(row.command(tree), Path(home), peak, cap=cap, codes=row.codes)
    return [once], memory


def _runs(row: Row, tree: Tree, cap: float) -> list[Run]:
    """The runs of one round: one, or several of a quick row."""
    assert row.command
    command = row.command(tree)
    runs: list[Run] = []
    _edited(row, tree)
    while len(runs) < (1 if row.edits else QUICK_RUNS) and sum(each.process_wall for each in runs) < QUICK_MS:
        with tempfile.TemporaryDirectory() as home:
            runs.append(run(command, Path(home), cap=cap, codes=row.codes))
    return runs


def _edited(row: Row, tree: Tree) -> None:
    """Edit a skill before a run that is about that."""
    if row.edits:
        edit(tree)


def _is_done(runs: Sequence[Run]) -> bool:
    return len(runs) >= SLOW_RUNS and runs[-1].process_wall > SLOW_MS


def _too_slow(row: Row, tree: Tree, earlier: Results, cap: float) -> str:
    """Why a row is not tried at this size: its time at a smaller one says it would be stopped."""
    known = [
        (size, runs)
        for ((kind, size), name), runs in earlier.runs.items()
        if (kind, name) == (tree.kind, row.name) and size < tree.size
    ]
    if not known:
        return ""
    size, runs = max(known, key=lambda entry: entry[0])
    # By CPU time, because a busy moment must not keep a peer out; and only the listing grows, not the start.
    fastest = min(runs, key=lambda each: each.process_cpu)
    listing = fastest.process_cpu if fastest.cpu is None else fastest.cpu
    expected = (fastest.process_cpu + listing * (tree.size / size - 1)) / 1e3
    return f"not run: about {expected:.0f} s expected, the cap is {cap:.0f} s" if expected > cap else ""


def count_all(rows: Iterable[Row], small: Tree, large: Tree, library: Path | None, *, cap: float) -> list[Counts]:
    """System calls and allocations of the listings, for each skill."""
    counts = []
    for row in rows:
        if row.command is None or not row.is_counted:
            continue
        _tell(f"counting: {row.name}")
        commands = row.command(small), row.command(large)
        more = large.size - small.size
        calls = _for_each(more, commands, partial(count_calls, cap=2 * cap))
        made: float | str = "–"
        if library and row.in_python:
            made = _for_each(more, commands, partial(count_allocations, library=library, cap=cap))
        counts.append(Counts(row.name, calls, made))
    return counts


def _for_each(more: int, commands: tuple[list[str], list[str]], count: Callable[[list[str], Path], int]) -> float | str:
    """How much larger the count of the second command is, for each skill it lists more than the first."""
    with tempfile.TemporaryDirectory() as home:
        try:
            few, many = (count(command, Path(home)) for command in commands)
        except (Failed, FileNotFoundError) as problem:
            return f"not counted: {problem}"
    return (many - few) / more


def parse_all(tree: Tree, folder: Path, *, peers: bool) -> list[tuple[str, dict[str, float] | str]]:
    """The throughput of each parser, the best of turns they take, or why there is none."""
    turns = {
        "skillshelf: fences, YAML, limits, odd forms": (sys.executable, "ours"),
        "ryaml": (sys.executable, "ryaml"),
    }
    found: dict[str, dict[str, float] | str] = dict.fromkeys(turns, "")
    for parser in PARSERS if peers else ():
        labels = {f"{parser.name} {parser.version}, {way}": name for way, name in WAYS[parser.name].items()}
        try:
            set_up(parser, folder)
        except Unavailable as problem:
            found |= dict.fromkeys(labels, f"not measured: {problem}")
        else:
            turns |= {label: (str(python_of(parser, folder)), name) for label, name in labels.items()}
    for _ in range(3):
        for label, (python, name) in turns.items():
            once, before = _answer(python, "parsing.py", name, tree.roots[1]), found.get(label)
            if isinstance(once, str) or not isinstance(before, dict) or once["documents"] > before["documents"]:
                found[label] = once
    return list(found.items())


def _answer(python: str, script: str, *words: str) -> Any:
    done = subprocess.run([python, str(BENCH / script), *words], capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout) if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1][:160]}"


def profiles(trees: Iterable[Tree]) -> list[tuple[str, Any]]:
    """The profile of a cold and of a warm listing of each tree."""
    return [
        (f"{tree.size:,} {tree.kind} skills, {state}", _answer(sys.executable, "stages.py", str(tree.home), state))
        for tree in trees
        for state in ("cold", "warm")
    ]


def compile_ours() -> None:
    """Compile our sources, or end: a start that has to compile what it imports takes several times as long."""
    package = os.path.dirname(skillshelf.__file__)
    for folder in (package, str(BENCH)):
        compileall.compile_dir(folder, quiet=2)
    if not os.path.exists(cache_from_source(skillshelf.__file__)):
        sys.exit(f"{package} cannot be compiled; run `python -m compileall` there as a user who may write to it")


def main() -> None:
    """Measure, print, and write the page if asked to."""
    options = _options()
    names = _peer_names(options.peers)
    install = options.peers != "installed"
    folder: Path = options.environments.resolve()
    compile_ours()
    trees = make_trees(folder, options.sizes, options.real)
    if options.quick:
        trees = [tree for tree in trees if tree.kind == trees[0].kind]
    profiled = [tree for tree in trees if tree.kind == trees[0].kind][:3]
    if options.profile_ours:
        print("\n\n".join(profile_table(title, found, functions=True) for title, found in profiles(profiled)))
        return
    _tell(f"measuring {os.path.dirname(skillshelf.__file__)}")
    began, load = time.monotonic(), os.getloadavg()[2]
    rows = [*our_rows(folder), *peer_rows(folder, names, install=install)]
    results = Results({}, {}, {})
    peak = compile_c("peak.c", folder / "peak")
    report = Report(
        places=[tree.place for tree in trees],
        rows=rows,
        runs=results.runs,
        peaks=results.peaks,
        notes=results.notes,
        folder=folder,
        load=(load, load),
        words=" ".join(_told(sys.argv[1:])),
        rounds=options.rounds,
    )
    for tree in trees:
        prepare(tree, cap=options.cap)
        here = rows_at(rows, tree, results)
        if options.quick and tree.size not in (options.sizes[0], options.sizes[-1]):
            wanted = {FLOOR, START, *(goal.row for goal in GOALS if goal.size == tree.size)}
            here = [row for row in here if row.name in wanted]
        measure_tree(here, tree, results, rounds=options.rounds, cap=options.cap, peak=peak)
        if options.write:
            # What was measured in hours is kept if the run is stopped; the page says that it is not complete.
            options.write.write_text(page(report), encoding="utf-8")
    if options.quick:
        report = report._replace(load=(load, os.getloadavg()[2]), minutes=(time.monotonic() - began) / 60)
        print(goals_table(report), whole_report(report), sep="\n\n")
        if options.write:
            options.write.write_text(page(report), encoding="utf-8")
        return
    # Counted and parsed are the synthetic skills: all have frontmatter, and the same one with each version of the tree.
    small, plain = make_trees(folder, [1, options.sizes[0]], None)
    report = report._replace(
        counts=count_all(rows, small, plain, _allocation_counter(folder), cap=options.cap),
        parsing=parse_all(plain, folder, peers=names != []),
        profiles=profiles(profiled[:1]),
        load=(load, os.getloadavg()[2]),
        minutes=(time.monotonic() - began) / 60,
    )
    print(goals_table(report), whole_report(report), sep="\n\n")
    if options.write:
        options.write.write_text(page(report), encoding="utf-8")


def _told(words: Sequence[str]) -> Iterable[str]:
    """Return the options of this run without the paths of this machine."""
    for before, word in zip(["", *words], words, strict=False):
        yield {"--real": "FOLDER", "--environments": "DIR", "--write": "docs/benchmarks.md"}.get(before, word)


def _peer_names(wish: str) -> list[str] | None:
    """The peers somebody asked for in lower case, None for all of them."""
    if wish in ("all", "installed"):
        return None
    names = [] if wish == "none" else wish.lower().split(",")
    known = [peer.name.lower() for peer in PEERS]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no such peer: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def _allocation_counter(folder: Path) -> Path | None:
    try:
        return compile_c("allocations.c", folder / "allocations.so", "-shared", "-fPIC")
    except subprocess.CalledProcessError:
        return None


def _sizes(text: str) -> list[int]:
    sizes = sorted(int(word) for word in text.split(","))
    if sizes[0] < 2:
        raise ValueError(text)
    return sizes


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--sizes", type=_sizes, help="numbers of skills with commas between them")
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="also measure copies of the SKILL.md files in it")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds, and only peers that are there")
    parser.add_argument("--peers", help="all, installed, none, or names with commas between them")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--cap", type=float, default=60, help="seconds after which a run is stopped")
    cache = Path(tempfile.gettempdir()) / "skillshelf-bench"
    parser.add_argument("--environments", type=Path, default=cache, help="where peers and trees are kept")
    parser.add_argument("--write", type=Path, help="also write the page")
    parser.add_argument("--profile-ours", action="store_true", help="only show where our time goes")
    options = parser.parse_args()
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    options.rounds = options.rounds or (3 if options.quick else 5)
    options.peers = options.peers or ("installed" if options.quick else "all")
    return options


if __name__ == "__main__":
    main()
