"""Chooses the constants of the ranking on four fifths of the queries, and says what they are worth on the rest."""

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from search_answers import DEPTH, Answer, copy_paths, our_shelf
from search_measures import gain
from search_variants import PER_QUERY, VARIANTS, Query

from skillshelf.search.index import open_index
from skillshelf.search.query import Finder, SearchResult
from skillshelf.search.rank import WEIGHTS, Weights

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
IN_USE = "the constants in use"


def settings() -> Iterator[Weights]:
    """The constants in use, and those that differ from them in one place."""
    yield WEIGHTS
    for axis, values in AXES.items():
        yield from (WEIGHTS._replace(**{axis: v}) for v in values if v != getattr(WEIGHTS, axis))


def cross_validate(root: Path, queries: Sequence[Query], home: Path) -> list[list[str]]:
    """Each fold's choice on the other four, and what it is worth on the fold; folds are divided by right answer."""
    skills = our_shelf(root, home=home, use_cache=False).catalog.skills
    gains: dict[str, list[float]] = {}
    for weights in settings():
        index = open_index(skills, None, weights=weights)
        finder = Finder(skills, cwd=str(root), scopes=["custom"], ranking="relevance", open_index=lambda i=index: i)
        for coverage in COVERAGES:
            index.coverage = coverage
            gains[told(weights, coverage)] = _gains(finder, root, queries)
    return fold_rows(gains, queries)


SEGMENT_AXES: Mapping[str, Sequence[float]] = {
    "_DIVIDED_FROM": (10, 24),
    "_WHOLE": (0.2, 0.5),
    "_LENGTH": (0.2, 0.5),
    "_JOINED": (0.25, 0.75),
    "_STEMMED": (0.4, 1.0),
    "_TRANSLATED": (0.5, 0.75),
    "prose": (0.5, 1.0),
    "machine": (0.0, 0.3),
    "courtesy": (0.0, 0.5),
}
NOISY = ("chat", "trace")


def cross_validate_segments(root: Path, queries: Sequence[Query], home: Path) -> list[list[str]]:
    """Return the same for the constants of long queries, on clean ones, messages and traces.

    They are constants of the module that divides queries; lower case names the weight of a kind of segment.
    """
    skills = our_shelf(root, home=home, use_cache=False).catalog.skills
    index = open_index(skills, None)
    finder = Finder(skills, cwd=str(root), scopes=["custom"], ranking="relevance", open_index=lambda: index)
    asked = [*queries, *(query for name in NOISY for query in list(VARIANTS[name](queries, {}))[::PER_QUERY])]
    gains = {IN_USE: _gains(finder, root, asked)}
    for axis, values in SEGMENT_AXES.items():
        for value in values:
            with _changed(axis, value):
                gains[f"{axis.strip('_').lower()} {value}"] = _gains(finder, root, asked)
    return fold_rows(gains, asked)


@contextmanager
def _changed(axis: str, value: float) -> Iterator[None]:
    """Give a constant another value for a while."""
    from skillshelf.search import relevance

    name = axis if axis.startswith("_") else "_KIND_WEIGHTS"
    used = getattr(relevance, name)
    setattr(relevance, name, value if name == axis else {**used, axis: value})
    try:
        yield
    finally:
        setattr(relevance, name, used)


def _gains(finder: Finder, root: Path, queries: Sequence[Query]) -> list[float]:
    found = [finder.search(query.text, limit=DEPTH, keep=lambda skill: True).results for query in queries]
    return [gain(_answer(results, root), query.gold) for results, query in zip(found, queries, strict=True)]


def _answer(results: Sequence[SearchResult], root: Path) -> Answer:
    paths = [os.path.relpath(result.skill.path, root) for result in results]
    return Answer(paths, [[os.path.relpath(path, root) for path in copy_paths(result)] for result in results], 0.0)


def fold_rows(gains: Mapping[str, list[float]], queries: Sequence[Query]) -> list[list[str]]:
    """The table of the folds, with the constants in use for comparison."""
    golds = sorted({min(query.gold) for query in queries})
    random.Random(FOLDS).shuffle(golds)
    fold_of = {gold: n % FOLDS for n, gold in enumerate(golds)}
    folds = [fold_of[min(query.gold)] for query in queries]

    def mean(setting: str, wanted: Callable[[int], bool]) -> float:
        chosen = [100 * value for value, fold in zip(gains[setting], folds, strict=True) if wanted(fold)]
        return sum(chosen) / len(chosen)

    rows = [["fold", "chosen on the other four", "NDCG@10 there", "on this fold", "constants in use, on this fold"]]

    def fold_row(fold: int) -> tuple[str, float, float, float]:
        best = max(gains, key=lambda setting: mean(setting, lambda other: other != fold))
        here = [mean(setting, lambda other: other == fold) for setting in (best, IN_USE)]
        return best, mean(best, lambda other: other != fold), here[0], here[1]

    chosen = [fold_row(fold) for fold in range(FOLDS)]
    rows += [[str(n), row[0], *(f"{number:.1f}" for number in row[1:])] for n, row in enumerate(chosen, 1)]
    rows.append(["mean", "", "", *(f"{sum(row[n] for row in chosen) / FOLDS:.1f}" for n in (2, 3))])
    ranked = sorted(gains, key=lambda setting: -mean(setting, lambda fold: True))
    for setting in [*ranked[:5], IN_USE]:
        rows.append(["all", setting, f"{mean(setting, lambda fold: True):.1f}", "", ""])
    return rows


def told(weights: Weights, coverage: float) -> str:
    """Return how a setting differs from the constants in use."""
    used = WEIGHTS
    parts = [f"{name} {value}" for name, value in weights._asdict().items() if value != getattr(used, name)]
    parts += [f"coverage {coverage}"] if coverage != used.coverage else []
    return ", ".join(parts) or IN_USE
