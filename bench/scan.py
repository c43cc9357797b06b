"""Skills listed by us, by the peers and by the floor, in one interleaved run.

    python bench/scan.py                            all peers, 1,000, 10,000 and 50,000 skills
    python bench/scan.py --peers none --sizes 1000  ours and the floor only
    python bench/scan.py --write docs/benchmarks.md
    python bench/scan.py --profile-ours             where our own time goes

Every run is a fresh process. Each round runs every row once (a quick row up to five times), so that a busy moment of
the machine hits all of them; the minimum counts. The first round is there to warm the page cache and our own cache,
and to read the peak memory; it counts like the others.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from environments import PARSERS, PEERS, Unavailable, python_of, set_up
from measure import Failed, Run, count_allocations, count_calls, run, run_for_peak
from report import Counts, Report, goals_table, page, profile_table, whole_report
from rows import START, Row, Tree, compile_c, make_tree, our_rows, peer_rows

import skillshelf

BENCH = Path(__file__).parent
QUICK_RUNS, QUICK_MS = 5, 500.0
SLOW_MS, SLOW_RUNS = 10_000.0, 2
WAYS = {"PyYAML": {"CSafeLoader": "pyyaml-c", "safe_load": "pyyaml"}, "ruamel.yaml": {"safe": "ruamel"}}
"""The ways to call a parser, by the names `parsing.py` has for them."""


class Results(NamedTuple):
    """By size and row: the runs, the peak memory in MiB, and why there are none."""

    runs: dict[tuple[int, str], list[Run]]
    peaks: dict[tuple[int, str], float]
    notes: dict[tuple[int, str], str]


def measure_size(rows: Sequence[Row], tree: Tree, results: Results, *, rounds: int, cap: float, peak: Path) -> None:
    """All rounds over all rows at one size, put into the results."""
    for row in rows:
        if reason := row.reason or _too_slow(row, tree, results, cap):
            results.notes[tree.size, row.name] = reason
    for number in range(rounds):
        for row in rows:
            key = (tree.size, row.name)
            if key in results.notes or _is_done(results.runs.get(key, [])):
                continue
            print(f"{tree.size:>7} skills, round {number + 1}/{rounds}: {row.name}", file=sys.stderr)
            try:
                if number == 0:
                    results.runs[key], results.peaks[key] = _first_run(row, tree, peak, cap)
                else:
                    results.runs[key] += _runs(row, tree, cap)
            except Failed as problem:
                results.notes[key] = f"not measured: {problem}"


def _first_run(row: Row, tree: Tree, peak: Path, cap: float) -> tuple[list[Run], float]:
    assert row.command
    with tempfile.TemporaryDirectory() as home:
        once, memory = run_for_peak(row.command(tree), Path(home), peak, cap=cap)
    return [once], memory


def _runs(row: Row, tree: Tree, cap: float) -> list[Run]:
    """The runs of one round: one, or several of a quick row."""
    assert row.command
    command = row.command(tree)
    runs: list[Run] = []
    while len(runs) < QUICK_RUNS and sum(each.process_wall for each in runs) < QUICK_MS:
        with tempfile.TemporaryDirectory() as home:
            runs.append(run(command, Path(home), cap=cap))
    return runs


def _is_done(runs: Sequence[Run]) -> bool:
    return len(runs) >= SLOW_RUNS and runs[-1].process_wall > SLOW_MS


def _too_slow(row: Row, tree: Tree, earlier: Results, cap: float) -> str:
    """Why a row is not tried at this size: its time at a smaller one says it would be stopped."""
    known = [(size, runs) for (size, name), runs in earlier.runs.items() if name == row.name and size < tree.size]
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
        if row.command is None or row.name == START or row.name.startswith("`"):
            continue
        print(f"counting: {row.name}", file=sys.stderr)
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
        (f"{tree.size:,} skills, {state}", _answer(sys.executable, "stages.py", str(tree.home), state))
        for tree in trees
        for state in ("cold", "warm")
    ]


def main() -> None:
    """Measure, print, and write the page if asked to."""
    options = _options()
    names = _peer_names(options.peers)
    folder: Path = options.environments.resolve()
    trees = [make_tree(folder, size) for size in options.sizes]
    if options.profile_ours:
        print("\n\n".join(profile_table(title, found, functions=True) for title, found in profiles(trees)))
        return
    print(f"measuring {os.path.dirname(skillshelf.__file__)}", file=sys.stderr)
    rows = [*our_rows(folder), *peer_rows(folder, names)]
    results = Results({}, {}, {})
    peak = compile_c("peak.c", folder / "peak")
    for tree in trees:
        measure_size(rows, tree, results, rounds=options.rounds, cap=options.cap, peak=peak)
    library = _allocation_counter(folder)
    report = Report(
        sizes=options.sizes,
        rows=[row.name for row in rows],
        runs=results.runs,
        peaks=results.peaks,
        notes=results.notes,
        counts=count_all(rows, make_tree(folder, 1), trees[0], library, cap=options.cap),
        parsing=parse_all(trees[0], folder, peers=names != []),
        profiles=profiles(trees[:2]),
        folder=folder,
        has_cache=(trees[0].home / ".cache" / "skillshelf").exists(),
    )
    print(goals_table(report), whole_report(report), sep="\n\n")
    if options.write:
        options.write.write_text(page(report), encoding="utf-8")


def _peer_names(wish: str) -> list[str] | None:
    """The peers somebody asked for in lower case, None for all of them."""
    if wish == "all":
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
    sizes = [1_000, 10_000, 50_000]
    parser.add_argument("--sizes", type=_sizes, default=sizes, help="numbers of skills with commas between them")
    parser.add_argument("--peers", default="all", help="all, none, or names with commas between them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cap", type=float, default=60, help="seconds after which a run is stopped")
    cache = Path(tempfile.gettempdir()) / "skillshelf-bench"
    parser.add_argument("--environments", type=Path, default=cache, help="where peers and trees are kept")
    parser.add_argument("--write", type=Path, help="also write the page")
    parser.add_argument("--profile-ours", action="store_true", help="only show where our time goes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
