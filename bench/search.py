"""Measures search: how often the right skill is found, also where that is hard, and what an index costs.

    python bench/search.py --corpus skills.tar.xz --queries queries.jsonl [--peers PYTHON] [--before PYTHON]
    python bench/search.py --corpus skills.tar.xz --queries queries.jsonl --tables cost --sizes 3000,10000,50000
    python bench/search.py --corpus skills.tar.xz --queries queries.jsonl --tables constants

The corpus is a tar file, unpacked to a temporary folder, or a folder. Each line of the queries has `query`, `lang` and
`gold`, the paths of the right skills inside the corpus. `--tables` names what is measured. `--peers` names a Python
that has `bm25s`, `PyStemmer` and `agentskills-retrieval`, `--before` one that has another version of this package.
`--off-topic` names files with a request in each line for which no skill is right. `--write` puts the tables into
docs/search.md. Times are CPU times unless they say otherwise; intervals hold 95 % of 1,000 samples in which the
right skills are drawn anew.
"""

import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from search_answers import DEPTH, Answer, our_shelf
from search_confidence import confidence_tables, off_topic_file
from search_constants import cross_validate, cross_validate_segments
from search_cost import cost_table
from search_history import history_table
from search_measures import percentile, scored
from search_robustness import (
    Pool,
    Rows,
    hostile_table,
    kinds_table,
    large_table,
    measured_variants,
    short_table,
    variants_table,
)
from search_variants import Query, read_corpus

import skillshelf
from skillshelf.catalog.document import body

REPOSITORY = Path(__file__).resolve().parent.parent
SYNTHETIC = 15_000
"""The number of skills that the large collection has besides the corpus."""

Method = Callable[[str], Sequence[str]]
"""A query to the paths of its answers, best first."""


# The methods --------------------------------------------------------------------------------------


def quality_row(name: str, method: Method, queries: Sequence[Query]) -> list[str]:
    """Return one row of the table: a method, its quality in both groups of languages, and its time."""
    found, times = [], []
    for query in queries:
        start = time.process_time()
        paths = method(query.text)
        times.append(1000 * (time.process_time() - start))
        found.append(scored(query, Answer(paths, [[] for _ in paths], 0.0)))
    cells = []
    for is_english in (True, False):
        group = [one for one, query in zip(found, queries, strict=True) if (query.lang == "en") == is_english]
        sums = [sum(values) for values in zip(*(one[1:] for one in group), strict=True)]
        cells.append(" / ".join(f"{100 * total / len(group):.1f}" for total in sums))
    return [name, *cells, f"{statistics.median(times):.1f} / {percentile(times, 99):.1f}"]


def ours(shelf: skillshelf.Shelf, root: Path) -> Method:
    """Return our own search."""

    def answer(query: str) -> Sequence[str]:
        return [os.path.relpath(result.skill.path, root) for result in shelf.search(query, limit=DEPTH).results]

    return answer


def fts5(texts: Mapping[str, tuple[str, str, str]]) -> Method:
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
    parser.add_argument("--corpus", type=Path, required=True, help="a tar file or a folder of skills")
    parser.add_argument("--queries", type=Path, required=True, help="a file of JSON lines")
    parser.add_argument("--tables", default="quality,variants,confidence", help=f"some of {', '.join(TABLES)}")
    parser.add_argument("--peers", help="a Python with the peers installed")
    parser.add_argument("--before", help="a Python with another version of this package, to compare with")
    parser.add_argument("--off-topic", type=Path, action="append", default=[], help="a file of requests")
    parser.add_argument("--synthetic", type=int, default=SYNTHETIC, help="how many skills the large collection adds")
    parser.add_argument("--sizes", default="3000", help="numbers of skills for the costs, such as 3000,10000,50000")
    parser.add_argument("--cap", type=int, default=900, help="seconds after which a size is given up")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/search.md")
    given = parser.parse_args()
    names = [name for name in given.tables.split(",") if name]
    if unknown := set(names) - TABLES.keys():
        parser.error(f"there is no table {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        root = given.corpus
        if not root.is_dir():
            root = Path(folder) / "corpus"
            with tarfile.open(given.corpus) as archive:
                archive.extractall(root, filter="data")
        pool = Pool(root.resolve(), *read_corpus(given.queries, root), given.before)
        for name in names:
            for title, rows in TABLES[name](pool, given, Path(folder)):
                print(f"\n{title}\n\n{markdown(rows)}", flush=True)
                if given.write:
                    write_part(title, markdown(rows))


# Tables -------------------------------------------------------------------------------------------

Titled = Iterator[tuple[str, Rows]]
Table = Callable[[Pool, argparse.Namespace, Path], Titled]


def _quality(pool: Pool, given: argparse.Namespace, home: Path) -> Titled:
    yield "quality", quality_table(pool.root, pool.queries, home, given.peers)


def _variants(pool: Pool, given: argparse.Namespace, home: Path) -> Titled:
    measured = measured_variants(pool)
    yield "variants", variants_table(measured)
    yield "kinds", kinds_table(measured)


def _confidence(pool: Pool, given: argparse.Namespace, home: Path) -> Titled:
    yield from confidence_tables(pool, off_topic_file(given.off_topic)).items()


def _cost(pool: Pool, given: argparse.Namespace, home: Path) -> Titled:
    sizes = [int(size) for size in given.sizes.split(",") if size]
    yield "cost", cost_table(sizes, pool.queries, pool.root, given.cap)


TABLES: Mapping[str, Table] = {
    "quality": _quality,
    "variants": _variants,
    "confidence": _confidence,
    "hostile": lambda pool, given, home: iter([("hostile", hostile_table(pool))]),
    "history": lambda pool, given, home: iter([("history", history_table(pool, home))]),
    "large": lambda pool, given, home: iter([("large", large_table(pool, given.synthetic))]),
    "short": lambda pool, given, home: iter([("short", short_table(pool))]),
    "cost": _cost,
    "constants": lambda pool, given, home: iter([("constants", cross_validate(pool.root, pool.queries, home))]),
    "segments": lambda pool, given, home: iter([("segments", cross_validate_segments(pool.root, pool.queries, home))]),
}


if __name__ == "__main__":
    main()
