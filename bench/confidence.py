"""Fits and measures the confidence of a search: how probable it is that the first result fits.

    python bench/confidence.py --corpus FOLDER --queries queries.jsonl [--write] [--save rows.json]

The corpus is a folder of unpacked skills; each line of the queries has `query`, `lang` and `gold`. Right answers are
queries whose first result is right, as they are and inside messages, beside traces, or of a word or two. Against them
stand the same queries without their right skills, and requests for which no skill is right. Folds are divided by
right answer, so that no query is judged by a model that has seen its skill. `--write` puts the coefficients into
`skillshelf/search/confidence.py`.
"""

import argparse
import json
import math
import random
import re
import statistics
import tempfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import search_variants
from search_answers import our_shelf
from search_measures import area_interval

from skillshelf.core.values import CatalogSkill
from skillshelf.search.confidence import MatchFeatures
from skillshelf.search.index import open_index
from skillshelf.search.query import Finder

MODULE = Path(__file__).resolve().parent.parent / "src/skillshelf/search/confidence.py"
FOLDS = 5
RESAMPLES = 2000
RIDGE = 1.0
GROUPS = {
    "clean": "clean, all",
    "chat": "chat",
    "trace": "trace",
    "one word": "one word of a name",
    "two words": "two words of a name",
}
KEPT = 0.86
"""The share of right answers that are not to be called weak: the goal is 0.80, and other queries will be harder."""
FEW = 20
"""The queries that are asked of one small catalog."""
PER_GROUP = 240
"""The most queries of a group: groups of many variants must not outweigh the others."""
OFF_TOPIC = "off topic"
LANGUAGES = ("en", "zh", "ja", "ko")


FinderOf = Callable[[Sequence[CatalogSkill]], Finder]
"""Takes skills, and returns a finder of them as the default profile has it."""


class Row(NamedTuple):
    """A judged query: its group, whether its first result is right, and the numbers of its ranking.

    `key` is the path of its right answer, or its text if there is none. Where the confidence is settled without them,
    there are no numbers.
    """

    group: str
    lang: str
    key: str
    right: bool
    absent: bool
    features: tuple[float, ...]
    settled: float

    @property
    def fold(self) -> int:
        """The fold of the right answer."""
        return zlib.crc32(self.key.encode()) % FOLDS


def rows_of(finder: Finder, root: Path, queries: Sequence[search_variants.Query], texts: Any) -> Iterator[Row]:
    """Yield each query with and without its right skills, and the requests for which no skill is right."""
    for group, variant in GROUPS.items():
        asked = sorted(
            search_variants.VARIANTS[variant](queries, texts), key=lambda query: zlib.crc32(query.text.encode())
        )
        for query in asked[:PER_GROUP] if group != "clean" else asked:
            paths = {str(root / path) for path in query.gold}
            key = min(query.gold)
            yield row(finder, query.text, group, query.lang, key, paths, absent=False)
            if group not in ("one word", "two words"):
                yield row(finder, query.text, group, query.lang, key, paths, absent=True)
    for source, requests in search_variants.TEXTS["off_topic"].items():
        for request in requests:
            yield row(finder, request, f"{OFF_TOPIC}: {source}", "en", request, set(), absent=True)


def small_rows(
    skills: Sequence[CatalogSkill], root: Path, queries: Sequence[search_variants.Query], finder_of: FinderOf
) -> Iterator[Row]:
    """Yield queries among few skills, as one person has them: the right ones of some queries, and as many others."""
    dice = random.Random("few")
    by_path = {skill.path: skill for skill in skills}
    asked = sorted(queries, key=lambda query: zlib.crc32(query.text.encode()))
    off_topic = [request for requests in search_variants.TEXTS["off_topic"].values() for request in requests]
    for start in range(0, len(asked), FEW):
        batch = asked[start : start + FEW]
        gold = {str(root / path) for query in batch for path in query.gold}
        few = [by_path[path] for path in sorted(gold & by_path.keys())] + dice.sample(list(skills), FEW)
        finder = finder_of(list({skill.path: skill for skill in few}.values()))
        for query in batch:
            paths = {str(root / path) for path in query.gold}
            for absent in (False, True):
                yield row(finder, query.text, "few skills", query.lang, min(query.gold), paths, absent=absent)
        for request in dice.sample(off_topic, FEW):
            yield row(finder, request, "few skills", "en", request, set(), absent=True)


def row(finder: Finder, query: str, group: str, lang: str, key: str, gold: set[str], *, absent: bool) -> Row:
    """Return one judged query."""

    def keep(skill: CatalogSkill) -> bool:
        return not absent or skill.path not in gold

    report = finder.search(query, limit=1, keep=keep)
    first = report.results[0] if report.results else None
    right = first is not None and not gold.isdisjoint((first.skill.path, *first.copies))
    settled, found = finder.features(query, keep=keep)
    return Row(group, lang, key, right, absent, tuple(found) if found and settled is None else (), settled or 0.0)


# The model ----------------------------------------------------------------------------------------

Model = Sequence[float]
"""An intercept, and a coefficient for each number."""


def fit(x: Sequence[Sequence[float]], y: Sequence[bool]) -> Model:
    """Return a logistic model in the units of the numbers as they are, by Newton's method."""
    columns = list(zip(*x, strict=True))
    means = [statistics.fmean(column) for column in columns]
    scales = [statistics.pstdev(column) + 1e-9 for column in columns]
    rows = [[1.0, *((n - m) / s for n, m, s in zip(one, means, scales, strict=True))] for one in x]
    # Both classes weigh the same: how often requests have no skill is not known.
    share = sum(y) / len(y)
    weights = [0.5 / share if right else 0.5 / (1 - share) for right in y]
    size = len(rows[0])
    beta = [0.0] * size
    for _ in range(12):
        gradient = [0.0, *(-RIDGE * b for b in beta[1:])]
        hessian = [[RIDGE * (i == j and i > 0) for j in range(size)] for i in range(size)]
        for one, right, weight in zip(rows, y, weights, strict=True):
            p = 1 / (1 + math.exp(-sum(map(float.__mul__, one, beta))))
            for i, number in enumerate(one):
                gradient[i] += weight * (right - p) * number
                factor = weight * p * (1 - p) * number
                for j in range(i + 1):
                    hessian[i][j] += factor * one[j]
        for i in range(size):
            for j in range(i):
                hessian[j][i] = hessian[i][j]
        beta = [b + step for b, step in zip(beta, solved(hessian, gradient), strict=True)]
    slopes = [b / s for b, s in zip(beta[1:], scales, strict=True)]
    return [beta[0] - sum(map(float.__mul__, slopes, means)), *slopes]


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Return the solution of a system of linear equations with a positive matrix, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i, pivot in enumerate(rows):
        for j, other in enumerate(rows):
            if j != i:
                factor = other[i] / pivot[i]
                rows[j] = [a - factor * b for a, b in zip(other, pivot, strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def predicted(model: Model, features: Sequence[float]) -> float:
    """Return a confidence."""
    return round(1 / (1 + math.exp(-model[0] - sum(map(float.__mul__, model[1:], features)))), 2)


def auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Return how often a right answer has the higher confidence; equal ones count half."""
    order = sorted(wrong)
    return statistics.fmean(bisect_left(order, one) + bisect_right(order, one) for one in right) / 2 / len(order)


def below(numbers: Sequence[float], threshold: float) -> float:
    """Return the share of the numbers below a threshold."""
    return sum(one < threshold for one in numbers) / len(numbers)


def interval(numbers: Sequence[float], measure: Callable[[Sequence[float]], float]) -> str:
    """Return a measure with its 95 % interval by bootstrap."""
    dice = random.Random(1)
    drawn = sorted(measure(dice.choices(numbers, k=len(numbers))) for _ in range(RESAMPLES))
    low, high = drawn[RESAMPLES // 40], drawn[-RESAMPLES // 40]
    return f"{100 * measure(numbers):.1f} % ({100 * low:.1f} to {100 * high:.1f})"


class Judged(NamedTuple):
    """The rows with a confidence each, from a model that has not seen their right answers."""

    rows: list[Row]
    confidence: list[float]

    def of(self, choose: Callable[..., bool]) -> list[float]:
        """Return the confidences of some rows."""
        return [confidence for confidence, _ in self.keyed(choose)]

    def keyed(self, choose: Callable[..., bool]) -> list[tuple[float, str]]:
        """Return the confidences of some rows with the keys by which they are drawn."""
        return [(number, one.key) for one, number in zip(self.rows, self.confidence, strict=True) if choose(one)]


def model_of(rows: Sequence[Row]) -> Model:
    """Return the model of some rows: those with a right first result, and those without a right skill."""
    used = [one for one in rows if one.features and (one.right or one.absent)]
    return fit([one.features for one in used], [one.right for one in used])


def cross_validated(rows: list[Row]) -> Judged:
    """Return the confidence of each row by the model of the other folds, unless it is settled."""
    models = [model_of([one for one in rows if one.fold != fold]) for fold in range(FOLDS)]
    return Judged(rows, [predicted(models[one.fold], one.features) if one.features else one.settled for one in rows])


def chosen_threshold(judged: Judged) -> float:
    """Return the highest threshold that calls few right answers of any group weak."""
    groups = [
        judged.of(lambda one, group=group: one.right and one.group == group)
        for group in ("clean", "chat", "trace", "few skills")
    ]
    return max(n / 100 for n in range(100) if all(1 - below(some, n / 100) >= KEPT for some in groups))


def areas(judged: Judged) -> Iterator[str]:
    """Yield how often a right answer has the higher confidence; intervals draw the right skills anew."""
    right = judged.keyed(lambda one: one.right and one.group == "clean")
    removed = judged.keyed(lambda one: one.absent and one.group == "clean")
    off = judged.keyed(lambda one: one.group.startswith(OFF_TOPIC))
    for name, wrong in {"right skill removed": removed, "off topic": off, "both": [*removed, *off]}.items():
        area = area_interval(right, wrong)
        numbers = f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f})"
        yield f"AUC, right on top against {name}: {numbers} ({len(right)}, {len(wrong)})"


def report_lines(judged: Judged, threshold: float) -> Iterator[str]:
    """Yield the measures of the judged rows."""
    right = judged.of(lambda one: one.right and one.group == "clean")
    removed = judged.of(lambda one: one.absent and one.group == "clean")
    off = judged.of(lambda one: one.group.startswith(OFF_TOPIC))
    yield f"threshold {threshold:.2f}"
    yield from areas(judged)
    yield f"right on top, not weak: {interval(right, lambda some: 1 - below(some, threshold))}"
    yield f"off topic, weak: {interval(off, lambda some: below(some, threshold))}"
    yield f"right skill removed, weak: {interval(removed, lambda some: below(some, threshold))}"
    for source in sorted({one.group for one in judged.rows if one.group.startswith(OFF_TOPIC)}):
        some = judged.of(lambda one, source=source: one.group == source)
        yield f"  {source}: weak {100 * below(some, threshold):.0f} % of {len(some)}"
    for group, lang in [*((one, "") for one in (*GROUPS, "few skills")), *(("clean", one) for one in LANGUAGES)]:
        some = judged.of(
            lambda one, group=group, lang=lang: one.group == group and one.right and lang in ("", one.lang)
        )
        yield f"  right on top, {group} {lang}: not weak {100 - 100 * below(some, threshold):.0f} % of {len(some)}"
    for lang in LANGUAGES:
        some = judged.of(lambda one, lang=lang: one.group == "clean" and one.absent and one.lang == lang)
        same = judged.of(lambda one, lang=lang: one.group == "clean" and one.right and one.lang == lang)
        told = f"weak {100 * below(some, threshold):.0f} % of {len(some)}"
        yield f"  right skill removed, {lang}: {told}, AUC {auc(same, some):.3f}" if same and some else f"  no {lang}"
    few = judged.of(lambda one: one.group == "few skills" and one.absent)
    yield f"  few skills, none right: weak {100 * below(few, threshold):.0f} % of {len(few)}"
    yield "threshold: right not weak / off topic weak / removed weak"
    for t in (n / 100 for n in range(10, 95, 5)):
        cells = [1 - below(right, t), below(off, t), below(removed, t)]
        yield f"  {t:.2f}: " + " / ".join(f"{100 * cell:.0f}" for cell in cells)


def write_model(model: Model, threshold: float) -> None:
    """Put the coefficients and the threshold into the module."""
    text = MODULE.read_text(encoding="utf-8")
    numbers = ", ".join(f"{name}={number:.4f}" for name, number in zip(MatchFeatures._fields, model[1:], strict=True))
    text = re.sub(r"(?m)^INTERCEPT = .*$", f"INTERCEPT = {model[0]:.4f}", text)
    text = re.sub(r"(?ms)^COEFFICIENTS = MatchFeatures\(.*?\)$", f"COEFFICIENTS = MatchFeatures({numbers})", text)
    text = re.sub(r"(?m)^WEAK_BELOW = .*$", f"WEAK_BELOW = {threshold:.2f}", text)
    MODULE.write_text(text, encoding="utf-8")


def main() -> None:
    """Fit, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="the folder of the unpacked skills")
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--save", type=Path, help="keep the rows in this file, or read them from it")
    parser.add_argument("--write", action="store_true", help="put the coefficients into the module")
    given = parser.parse_args()
    if given.save and given.save.exists():
        rows = [
            Row._make([*one[:5], tuple(one[5]), one[6]]) for one in json.loads(given.save.read_text(encoding="utf-8"))
        ]
    else:
        with tempfile.TemporaryDirectory() as home:
            shelf = our_shelf(given.corpus, home=Path(home), use_cache=False)
            skills = shelf.catalog.skills

        def finder_of(some: Sequence[CatalogSkill]) -> Finder:
            index = open_index(some, None)
            options: Any = {"ranking": "relevance", "prefix": "word", "copies": "collapse"}
            return Finder(some, cwd="/", scopes=shelf.scopes, open_index=lambda: index, **options)

        queries, texts = search_variants.read_corpus(given.queries, given.corpus)
        rows = [*rows_of(finder_of(skills), given.corpus, queries, texts)]
        rows += small_rows(skills, given.corpus, queries, finder_of)
        if given.save:
            given.save.write_text(json.dumps(rows), encoding="utf-8")
    judged = cross_validated(rows)
    threshold = chosen_threshold(judged)
    print("\n".join(report_lines(judged, threshold)))
    model = model_of(rows)
    print(dict(zip(("intercept", *MatchFeatures._fields), [round(number, 4) for number in model], strict=True)))
    if given.write:
        write_model(model, threshold)


if __name__ == "__main__":
    main()
