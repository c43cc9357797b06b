"""Answers queries about the skills below a folder with the installed version, and says what that costs.

    python bench/search_answers.py < work.json > answers.json

It runs in a process of its own, so that another version can be measured in its environment. The work has `root`,
`home`, `queries` and `repeats`: how often each query is asked to find its least time.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import skillshelf
from skillshelf.config.profile import Profile

DEPTH = 10
"""The number of results of a query that count."""


class Answer(NamedTuple):
    """The paths of the results, best first, those of the copies of each, its times, and what the report says of it."""

    paths: Sequence[str]
    copies: Sequence[Sequence[str]]
    ms: float
    confidence: float | None = None
    weak: bool | None = None


def our_settings(root: Path, ranking: str = "relevance") -> dict[str, Any]:
    """Return a profile that keeps all skills of one name, and where they are."""
    profile: dict[str, Any] = {"extends": "standard", "collision": "keep-all", "max_depth": 24, "ranking": ranking}
    # All ten results are judged; an older version, which never cuts them, has no such field.
    if "search_weak" in Profile.__annotations__:
        profile["search_weak"] = "keep"
    return {"skills": {"custom_directories": [str(root)]}, "profiles": {"bench": profile}}


def our_shelf(root: Path, *, home: Path, ranking: str = "relevance", use_cache: bool = True) -> skillshelf.Shelf:
    """Return the shelf of all skills below a folder, every copy of a name kept."""
    config = our_settings(root, ranking)
    return skillshelf.open_shelf(home, "bench", home=home, env={}, config=config, use_cache=use_cache)


def answer(shelf: skillshelf.Shelf, root: Path, query: str, repeats: int) -> Answer:
    """Return the answer to one query, with the least CPU time of its repeats in milliseconds."""
    times = []
    for _ in range(max(1, repeats)):
        start = time.process_time_ns()
        report = shelf.search(query, limit=DEPTH)
        times.append((time.process_time_ns() - start) / 1e6)
    paths = [os.path.relpath(result.skill.path, root) for result in report.results]
    copies = [[os.path.relpath(path, root) for path in copy_paths(result)] for result in report.results]
    # A version that cannot tell how sure it is has neither.
    return Answer(paths, copies, min(times), getattr(report, "confidence", None), getattr(report, "weak", None))


def copy_paths(result: Any) -> list[str]:
    """Return the paths of the skills that a result stands for besides its own; none in a version without that."""
    copies = getattr(result, "copies", ())
    return [getattr(copy, "path", copy) for copy in copies] if isinstance(copies, (tuple, list)) else []


def answers(work: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers to all queries, the CPU time of the first one, and the size of the index."""
    root, home = Path(work["root"]), Path(work["home"])
    shelf = our_shelf(root, home=home)
    count = len(shelf.catalog.skills)
    start = sum(os.times()[:4])
    shelf.search("a first query")
    # The time of the processes that help to build counts too.
    build = sum(os.times()[:4]) - start
    found = [answer(shelf, root, query, work.get("repeats", 1)) for query in work["queries"]]
    size = sum(path.stat().st_size for path in (home / ".cache").rglob("*") if path.is_file())
    return {"skills": count, "build": build, "bytes": size, "answers": found}


if __name__ == "__main__":
    json.dump(answers(json.load(sys.stdin)), sys.stdout)
