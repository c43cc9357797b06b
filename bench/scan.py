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
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from environments import PARSERS, Unavailable, python_of, set_up
from measure import Failed, Run, count_allocations, count_calls, run, run_for_peak
from report import Counts, Report, goals_table, page, profile_table, whole_report
from rows import SEARCH, SHOW, START, Row, Tree, compile_c, make_tree, our_rows, peer_rows

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
    expected = min(each.process_wall for each in runs) * tree.size / size / 1e3
    return f"not run: about {expected:.0f} s expected, the cap is {cap:.0f} s" if expected > cap else ""


def count_all(rows: Iterable[Row], trees: Sequence[Tree], library: Path | None, *, cap: float) -> list[Counts]:
    """System calls and allocations of each row for each skill: the difference of two trees over that of their sizes."""
    counts = []
    small, large = trees
    for row in rows:
        if row.command is None or row.name.startswith((START, SHOW, SEARCH)):
            continue
        print(f"counting: {row.name}", file=sys.stderr)
        counts.append(Counts(row.name, _calls(row, small, large, cap), _allocations(row, small, large, library, cap)))
    return counts


def _calls(row: Row, small: Tree, large: Tree, cap: float) -> float | str:
    assert row.command
    with tempfile.TemporaryDirectory() as home:
        try:
            few, many = (count_calls(row.command(tree), Path(home), cap=cap * 2) for tree in (small, large))
        except (Failed, FileNotFoundError) as problem:
            return str(problem)
    return (many - few) / (large.size - small.size)


def _allocations(row: Row, small: Tree, large: Tree, library: Path | None, cap: float) -> float | str:
    assert row.command
    if library is None or not row.in_python:
        return "–"
    with tempfile.TemporaryDirectory() as home:
        try:
            few, many = (count_allocations(row.command(tree), Path(home), library, cap=cap) for tree in (small, large))
        except Failed as problem:
            return str(problem)
    return (many - few) / (large.size - small.size)


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
    folder: Path = options.environments.resolve()
    trees = [make_tree(folder, size) for size in options.sizes]
    if options.profile_ours:
        print("\n\n".join(profile_table(title, found, functions=True) for title, found in profiles(trees)))
        return
    names = None if options.peers == "all" else options.peers.lower().split(",")
    rows = [*our_rows(folder), *peer_rows(folder, names)]
    results = Results({}, {}, {})
    peak = compile_c("peak.c", folder / "peak")
    for tree in trees:
        measure_size(rows, tree, results, rounds=options.rounds, cap=options.cap, peak=peak)
    pair = (make_tree(folder, 1), trees[0])
    library = _allocation_counter(folder)
    report = Report(
        sizes=options.sizes,
        rows=[row.name for row in rows],
        runs=results.runs,
        peaks=results.peaks,
        notes=results.notes,
        counts=count_all(rows, pair, library, cap=options.cap) if trees[0].size > 1 else [],
        parsing=parse_all(trees[0], folder, peers=options.peers != "none"),
        profiles=profiles(trees[:2]),
        folder=folder,
        has_cache=(trees[0].home / ".cache" / "skillshelf").exists(),
    )
    print(goals_table(report), whole_report(report), sep="\n\n")
    if options.write:
        options.write.write_text(page(report), encoding="utf-8")


def _allocation_counter(folder: Path) -> Path | None:
    try:
        return compile_c("allocations.c", folder / "allocations.so", "-shared", "-fPIC")
    except subprocess.CalledProcessError:
        return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    sizes = [1_000, 10_000, 50_000]
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=sizes)
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
