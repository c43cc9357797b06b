"""Measures search: how often the right skill is found, what an index costs, and how the constants were chosen.

    python bench/search.py --corpus skills.tar.xz --queries queries.jsonl [--peers PYTHON] [--sizes 3000,10000,50000]
    python bench/search.py --corpus skills.tar.xz --queries queries.jsonl --cross-validate

The corpus is unpacked to a temporary folder. Each line of the queries has `query`, `lang` and `gold`, the paths
of the right skills inside the corpus. `--peers` names a Python that has `bm25s`, `PyStemmer` and
`agentskills-retrieval`. `--write` puts the tables into docs/search.md. Times are CPU times unless they say otherwise.
"""

import argparse
import json
import math
import os
import random
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import skillshelf
from skillshelf.catalog.document import body
from skillshelf.search.index import open_index
from skillshelf.search.query import Finder
from skillshelf.search.rank import WEIGHTS, Weights

REPOSITORY = Path(__file__).resolve().parent.parent
DEPTH = 10
"""The number of results of a query that count."""


class Query(NamedTuple):
    """A query and the paths of the skills that answer it."""

    text: str
    lang: str
    gold: frozenset[str]


class Quality(NamedTuple):
    """Shares in per cent: the first answer is right, one of eight is, and the discounted gain of ten."""

    hit1: float
    hit8: float
    ndcg: float


Answer = Callable[[str], Sequence[str]]
"""A query to the paths of its answers, best first."""


# Quality ------------------------------------------------------------------------------------------


def gain(answers: Sequence[str], gold: frozenset[str]) -> float:
    """NDCG of the first ten answers."""
    found = sum(1 / math.log2(rank + 2) for rank, path in enumerate(answers[:DEPTH]) if path in gold)
    return found / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(gold))))


def quality(answers: Sequence[Sequence[str]], queries: Sequence[Query]) -> Quality:
    """How good the answers to some queries are."""
    pairs = list(zip(answers, queries, strict=True))

    def share(numbers: list[float]) -> float:
        return 100 * sum(numbers) / len(numbers) if numbers else math.nan

    return Quality(
        share([float(bool(set(found[:1]) & query.gold)) for found, query in pairs]),
        share([float(bool(set(found[:8]) & query.gold)) for found, query in pairs]),
        share([gain(found, query.gold) for found, query in pairs]),
    )


def quality_row(name: str, answer: Answer, queries: Sequence[Query]) -> list[str]:
    """One row of the table: a method, its quality in both groups of languages, and its time."""
    answers, times = [], []
    for query in queries:
        start = time.process_time()
        answers.append(answer(query.text))
        times.append(1000 * (time.process_time() - start))
    english = [n for n, query in enumerate(queries) if query.lang == "en"]
    others = [n for n, query in enumerate(queries) if query.lang != "en"]
    cells = []
    for group in (english, others):
        q = quality([answers[n] for n in group], [queries[n] for n in group])
        cells.append(f"{q.hit1:.1f} / {q.hit8:.1f} / {q.ndcg:.1f}")
    return [name, *cells, f"{statistics.median(times):.1f} / {percentile(times, 99):.1f}"]


def percentile(numbers: Sequence[float], share: int) -> float:
    """The number that so many per cent do not exceed."""
    return sorted(numbers)[min(len(numbers) - 1, len(numbers) * share // 100)]


# The methods --------------------------------------------------------------------------------------


def our_shelf(root: Path, *, home: Path, ranking: str = "relevance", use_cache: bool = True) -> skillshelf.Shelf:
    """The shelf of all skills below a folder, every copy of a name kept."""
    config = our_settings(root, ranking)
    return skillshelf.open_shelf(home, "bench", home=home, env={}, config=config, use_cache=use_cache)


def our_settings(root: Path, ranking: str = "relevance") -> dict[str, Any]:
    """A profile that keeps all skills of one name, and where they are."""
    profile = {"extends": "standard", "collision": "keep-all", "max_depth": 24, "ranking": ranking}
    return {"skills": {"custom_directories": [str(root)]}, "profiles": {"bench": profile}}


def ours(shelf: skillshelf.Shelf, root: Path) -> Answer:
    """Our own search."""

    def answer(query: str) -> Sequence[str]:
        return [os.path.relpath(result.skill.path, root) for result in shelf.search(query, limit=DEPTH).results]

    return answer


def fts5(texts: Mapping[str, tuple[str, str, str]]) -> Answer:
    """SQLite's own full-text index, with its stemmer and weights 10, 5, 1."""
    base = sqlite3.connect(":memory:")
    base.execute("create virtual table skills using fts5(name, description, body, path unindexed, tokenize='porter')")
    base.executemany("insert into skills values (?, ?, ?, ?)", ((*text, path) for path, text in texts.items()))

    def answer(query: str) -> Sequence[str]:
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", query.lower())))
        order = "select path from skills where skills match ? order by bm25(skills, 10, 5, 1), path limit ?"
        return [path for (path,) in base.execute(order, (words or '""', DEPTH))]

    return answer


def peer_answers(python: str, texts: Mapping[str, tuple[str, str, str]], queries: Sequence[Query]) -> dict[str, Any]:
    """Return the results of the peers, run in an environment of their own."""
    work = {"skills": [[path, *text] for path, text in texts.items()], "queries": [query.text for query in queries]}
    script = REPOSITORY / "bench" / "search_peers.py"
    done = subprocess.run([python, str(script)], input=json.dumps(work), capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"the peers failed: {done.stderr[-500:]}", file=sys.stderr)
        return {}
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def quality_table(root: Path, queries: Sequence[Query], home: Path, peers: str | None) -> list[list[str]]:
    """Every method over the same skills and queries."""
    shelf = our_shelf(root, home=home)
    texts = {
        os.path.relpath(skill.path, root): (
            skill.name,
            skill.description,
            body(Path(skill.path).read_bytes()).decode("utf-8", "replace"),
        )
        for skill in shelf.catalog.skills
    }
    rows = [["method", "English: Hit@1 / Hit@8 / NDCG@10", "CJK: the same", "ms a query, p50 / p99"]]
    overlap = our_shelf(root, home=home, ranking="overlap")
    rows.append(quality_row("token overlap, as `codelia` has it", ours(overlap, root), queries))
    rows.append(quality_row("SQLite FTS5, porter, 10-5-1", fts5(texts), queries))
    for name, told in peer_answers(peers, texts, queries).items() if peers else ():
        given = {query.text: found for query, found in zip(queries, told["answers"], strict=True)}
        row = quality_row(name, given.__getitem__, queries)
        rows.append([*row[:-1], f"{told['p50']:.1f} / {told['p99']:.1f}"])
    ours_first = ours(shelf, root)
    ours_first("warm")
    rows.append(quality_row("**skillshelf**", ours_first, queries))
    return rows


# Cost ---------------------------------------------------------------------------------------------


def cost_table(sizes: Sequence[int], queries: Sequence[Query], real: Path, cap: int) -> list[list[str]]:
    """Measure an index at several sizes, each in its own process, so that memory is measured alone."""
    rows = [
        [
            *("skills", "build, CPU s (wall)", "after one edit, CPU ms (wall)", "rebuild / edit"),
            *("ms a query, p50 / p99", "new process, bare starts", "index MB", "peak memory MiB"),
        ]
    ]
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "skills"
            mixed_tree(real, root, size)
            work = {"root": str(root), "home": folder, "queries": [query.text for query in queries]}
            words = [sys.executable, __file__, "--one-size"]
            try:
                done = subprocess.run(words, input=json.dumps(work), stdout=-1, text=True, check=True, timeout=cap)
                cells = json.loads(done.stdout)
            except subprocess.TimeoutExpired:
                cells = [f"over {cap} s", *[""] * (len(rows[0]) - 2)]
            rows.append([f"{size:,}", *cells])
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def mixed_tree(real: Path, root: Path, size: int) -> None:
    """So many skills: the real ones, then some with the frontmatter of one and lines of the bodies of two."""
    dice = random.Random(size)
    texts = [path.read_bytes() for path in sorted(real.rglob("SKILL.md"))]
    bodies = [body(text).splitlines(keepends=True) for text in texts]
    for number in range(size):
        text = texts[number % len(texts)]
        if number >= len(texts):
            lines = bodies[number % len(texts)] + dice.choice(bodies)
            text = text[: len(text) - len(body(text))] + b"".join(dice.sample(lines, len(lines) // 2))
        folder = root / f"skill-{number:05d}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(text)


def one_size(work: Mapping[str, Any]) -> list[str]:
    """The numbers for the skills below one folder."""
    root, home = Path(work["root"]), Path(work["home"])
    shelf = our_shelf(root, home=home)
    count = len(shelf.catalog.skills)
    before = peak_memory()
    with memory_of_children() as helper:
        build = timed(lambda: shelf.search("a first query"))
    edited = Path(shelf.catalog.skills[count // 2].path)
    text = edited.read_text(encoding="utf-8")
    edits = []
    for turn in range(5):
        edited.write_text(f"{text}\nxylophonequartet{turn}\n", encoding="utf-8")
        time.sleep(0.06)
        shelf.refresh()
        edits.append(timed(lambda: shelf.search("what changed")))
        found = shelf.search(f"xylophonequartet{turn}").results
        assert [result.skill.path for result in found] == [str(edited)], found
    edited.write_text(text, encoding="utf-8")
    times = [1000 * timed(lambda query=query: shelf.search(query))[0] for query in work["queries"]]
    size = sum(path.stat().st_size for path in (home / ".cache").rglob("*") if path.is_file())
    edit = sorted(edits)[2]
    return [
        f"{build[0]:.2f} ({build[1]:.2f})",
        f"{1000 * edit[0]:.0f} ({1000 * edit[1]:.0f})",
        f"{build[0] / edit[0]:.0f}",
        f"{statistics.median(times):.1f} / {percentile(times, 99):.1f}",
        f"{starts(root, home):.1f}",
        f"{size / 1e6:.1f}",
        f"{peak_memory():.0f} ({before:.0f} before) + {max(helper):.0f} while building",
    ]


def starts(root: Path, home: Path) -> float:
    """Measure a search in a new process, in bare Python starts; the minimum CPU time of both counts."""
    lines = [f"{table} = {json.dumps(value)}" for table, value in our_settings(root)["skills"].items()]
    profile = [f"{key} = {json.dumps(value)}" for key, value in our_settings(root)["profiles"]["bench"].items()]
    config = home / "bench.toml"
    config.write_text("\n".join(["[skills]", *lines, "[profiles.bench]", *profile]), encoding="utf-8")
    options = ["--config", str(config), "--profile", "bench", "--home", str(home), "--cwd", str(home), "--json"]
    search = [sys.executable, "-m", "skillshelf", "search", "draft release notes", *options]
    least = {}
    for name, words in (("bare", [sys.executable, "-c", "pass"]), ("search", search)):
        least[name] = min(cpu_of(words) for _ in range(7))
    return least["search"] / least["bare"]


def cpu_of(words: Sequence[str]) -> float:
    """CPU seconds of a process."""
    before = cpu_of_children()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return cpu_of_children() - before


def cpu_of_children() -> float:
    """CPU seconds of all processes that this one had started and that ended."""
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken.ru_utime + taken.ru_stime


def peak_memory(process: str = "self") -> float:
    """The most memory a process ever held, in MiB; what its parent held before it does not count."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def memory_of_children() -> Iterator[list[float]]:
    """The peaks of memory that were seen in processes which this one started meanwhile."""
    seen, done = [0.0], threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            for children in Path("/proc/self/task").glob("*/children"):
                # One may end between two looks.
                with suppress(OSError, IndexError, ValueError):
                    seen.extend(peak_memory(child) for child in children.read_text(encoding="utf-8").split())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds, with those of processes that were started for the work, and wall seconds."""
    cpu, wall = time.process_time() + cpu_of_children(), time.perf_counter()
    work()
    return time.process_time() + cpu_of_children() - cpu, time.perf_counter() - wall


# The constants ------------------------------------------------------------------------------------

AXES: Mapping[str, Sequence[float]] = {
    "body": (0.4, 0.7, 1.0),
    "name": (0.7, 1.0, 1.5, 2.5),
    "saturation": (0.8, 1.2, 1.8),
    "description_slope": (0.0, 0.2, 0.5),
    "body_slope": (0.5, 0.75),
    "name_slope": (0.0, 0.3),
}
COVERAGES = (0.0, 0.15, 0.3, 0.45)
FOLDS = 5


def settings() -> Iterator[Weights]:
    """The constants in use, and those that differ from them in one place."""
    yield WEIGHTS
    for axis, values in AXES.items():
        yield from (WEIGHTS._replace(**{axis: v}) for v in values if v != getattr(WEIGHTS, axis))


def cross_validate(root: Path, queries: Sequence[Query], home: Path) -> list[list[str]]:
    """Each fold's choice on the other four, and what it is worth on the fold; folds are divided by right answer."""
    skills = our_shelf(root, home=home, use_cache=False).catalog.skills
    gains: dict[tuple[Weights, float], list[float]] = {}
    for weights in settings():
        index = open_index(skills, None, weights=weights)
        finder = Finder(skills, cwd=str(root), scopes=["custom"], ranking="relevance", open_index=lambda i=index: i)
        for coverage in COVERAGES:
            index.coverage = coverage
            answers = [finder.search(query.text, limit=DEPTH, keep=lambda skill: True).results for query in queries]
            gains[weights, coverage] = [
                gain([os.path.relpath(result.skill.path, root) for result in found], query.gold)
                for found, query in zip(answers, queries, strict=True)
            ]
    return fold_rows(gains, queries)


def fold_rows(gains: Mapping[tuple[Weights, float], list[float]], queries: Sequence[Query]) -> list[list[str]]:
    """The table of the folds, with the constants in use for comparison."""
    golds = sorted({min(query.gold) for query in queries})
    random.Random(FOLDS).shuffle(golds)
    fold_of = {gold: n % FOLDS for n, gold in enumerate(golds)}
    folds = [fold_of[min(query.gold)] for query in queries]

    def mean(setting: tuple[Weights, float], wanted: Callable[[int], bool]) -> float:
        chosen = [100 * value for value, fold in zip(gains[setting], folds, strict=True) if wanted(fold)]
        return sum(chosen) / len(chosen)

    rows = [["fold", "chosen on the other four", "NDCG@10 there", "on this fold", "constants in use, on this fold"]]
    used = (WEIGHTS, WEIGHTS.coverage)

    def fold_row(fold: int) -> tuple[str, float, float, float]:
        best = max(gains, key=lambda setting: mean(setting, lambda other: other != fold))
        here = [mean(setting, lambda other: other == fold) for setting in (best, used)]
        return told(best), mean(best, lambda other: other != fold), here[0], here[1]

    chosen = [fold_row(fold) for fold in range(FOLDS)]
    rows += [[str(n), row[0], *(f"{number:.1f}" for number in row[1:])] for n, row in enumerate(chosen, 1)]
    rows.append(["mean", "", "", *(f"{sum(row[n] for row in chosen) / FOLDS:.1f}" for n in (2, 3))])
    ranked = sorted(gains, key=lambda setting: -mean(setting, lambda fold: True))
    for setting in [*ranked[:5], used]:
        rows.append(["all", told(setting), f"{mean(setting, lambda fold: True):.1f}", "", ""])
    return rows


def told(setting: tuple[Weights, float]) -> str:
    """How a setting differs from the constants in use."""
    weights, coverage = setting
    used = WEIGHTS
    parts = [f"{name} {value}" for name, value in weights._asdict().items() if value != getattr(used, name)]
    parts += [f"coverage {coverage}"] if coverage != used.coverage else []
    return ", ".join(parts) or "the constants in use"


# Output -------------------------------------------------------------------------------------------


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def write_part(name: str, text: str) -> None:
    """Put a table with its date into docs/search.md."""
    page = REPOSITORY / "docs" / "search.md"
    part = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- /measured -->)", re.DOTALL)
    version = f"{date.today().isoformat()}, Python {sys.version.split()[0]}, {os.cpu_count()} cores"
    page.write_text(part.sub(lambda m: f"{m[1]}\n{text}\n\nMeasured {version}.\n\n{m[2]}", page.read_text()))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a tar file of skills")
    parser.add_argument("--queries", type=Path, help="a file of JSON lines")
    parser.add_argument("--peers", help="a Python with the peers installed")
    parser.add_argument("--sizes", default="", help="numbers of skills for the costs, such as 3000,10000,50000")
    parser.add_argument("--cap", type=int, default=900, help="seconds after which a size is given up")
    parser.add_argument("--cross-validate", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/search.md")
    parser.add_argument("--one-size", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one_size:
        print(json.dumps(one_size(json.load(sys.stdin))))
        return
    if not given.corpus or not given.queries:
        parser.error("--corpus and --queries are needed")
    lines = [json.loads(line) for line in given.queries.read_text(encoding="utf-8").splitlines()]
    queries = [Query(line["query"], line["lang"], frozenset(line["gold"])) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "corpus"
        with tarfile.open(given.corpus) as archive:
            archive.extractall(root, filter="data")
        for name, rows in tables(given, root, queries, Path(folder)):
            print(f"\n{name}\n\n{markdown(rows)}", flush=True)
            if given.write:
                write_part(name, markdown(rows))


def tables(
    given: argparse.Namespace, root: Path, queries: Sequence[Query], home: Path
) -> Iterator[tuple[str, list[list[str]]]]:
    """The tables that were asked for, by name."""
    if given.cross_validate:
        yield "constants", cross_validate(root, queries, home)
        return
    yield "quality", quality_table(root, queries, home, given.peers)
    sizes = [int(size) for size in given.sizes.split(",") if size]
    if sizes:
        yield "cost", cost_table(sizes, queries, root, given.cap)


if __name__ == "__main__":
    main()
