"""Measures whether search knows when no skill fits: its confidence for right answers and for requests off topic."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from search_answers import Answer
from search_measures import area_interval, mean_interval, rights
from search_pools import golds, linked_tree, near_copies
from search_robustness import Pool, Rows, ask
from search_variants import APART, TEXTS, VARIANTS

RIGHT_VARIANTS = ("clean, all", "chat", "trace", "chat, kept apart", "trace, kept apart")
THRESHOLDS = tuple(n / 20 for n in range(1, 20))


class Request(NamedTuple):
    """The confidence of an answer, whether it was called weak, and the group by which requests are drawn."""

    confidence: float
    weak: bool
    group: str


def _request(answer: Answer, group: str) -> Request:
    return Request(answer.confidence or 0.0, bool(answer.weak), group)


def right_requests(pool: Pool) -> dict[str, list[Request]]:
    """Return the queries whose first answer is right, by variant, and those with a right one among three."""
    variants = {name: list(VARIANTS[name](pool.queries, pool.skills)) for name in RIGHT_VARIANTS}
    found = {}
    for name, queries in variants.items():
        answers = ask(pool.pythons[-1], pool.root, [query.text for query in queries]).answers
        for places, told in ((1, "right first"), (3, "right among three")):
            found[f"{name}: {told}"] = [
                _request(answer, min(query.gold))
                for query, answer in zip(queries, answers, strict=True)
                if any(rights(answer, query.gold)[:places])
            ]
    return found


def off_topic_requests(pool: Pool, more: Mapping[str, Sequence[str]]) -> dict[str, list[Request]]:
    """Return the requests for which no skill is right, by source."""
    sources = {**TEXTS["off_topic"], **APART["off_topic"], **more}
    found = {}
    for name, texts in sources.items():
        answers = ask(pool.pythons[-1], pool.root, texts).answers
        found[name] = [_request(answer, text) for text, answer in zip(texts, answers, strict=True)]
    found["right skill and its copies removed"] = _absent(pool)
    return found


def _absent(pool: Pool) -> list[Request]:
    """Return all queries, each asked of a collection without its right skills and what is like them.

    The right skills are removed in two halves, so that the others of a family stay.
    """
    chosen = golds(pool.queries)
    copies = near_copies(pool.root, sorted({path for query in pool.queries for path in query.gold}), pool.skills)
    found = []
    for half in (0, 1):
        mine = set(chosen[half::2])
        queries = [query for query in pool.queries if min(query.gold) in mine]
        removed = {path for query in queries for gold in query.gold for path in (gold, *copies.get(gold, ()))}
        with tempfile.TemporaryDirectory() as folder:
            root = linked_tree(pool.root, Path(folder) / "skills", removed)
            answers = ask(pool.pythons[-1], root, [query.text for query in queries]).answers
        found += [_request(answer, min(query.gold)) for query, answer in zip(queries, answers, strict=True)]
    return found


def _share(requests: Sequence[Request], values: Sequence[bool]) -> str:
    return f"{mean_interval([float(value) for value in values], [one.group for one in requests])} %"


def confidence_tables(pool: Pool, more: Mapping[str, Sequence[str]]) -> dict[str, Rows]:
    """Return the shares at the threshold in use and the areas by source, and the whole curve."""
    right, wrong = right_requests(pool), off_topic_requests(pool, more)
    base = right[f"{RIGHT_VARIANTS[0]}: right first"]
    rows = [["requests", "number", "told that no skill clearly fits", "AUC against right first answers"]]
    for name, requests in {**right, **wrong}.items():
        area = "" if name in right else _area(base, requests)
        rows.append([name, str(len(requests)), _share(requests, [one.weak for one in requests]), area])
    every = [one for requests in wrong.values() for one in requests]
    rows.append(["all off topic", str(len(every)), _share(every, [one.weak for one in every]), _area(base, every)])
    return {"confidence": rows, "confidence-curve": _curve(right, wrong)}


def _area(right: Sequence[Request], wrong: Sequence[Request]) -> str:
    area = area_interval(*([(one.confidence, one.group) for one in side] for side in (right, wrong)))
    return f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f})"


def _curve(right: Mapping[str, Sequence[Request]], wrong: Mapping[str, Sequence[Request]]) -> Rows:
    """Return for each threshold the share of right answers above it, and that of the requests off topic below it."""
    kept = {name: requests for name, requests in right.items() if name.endswith("first")}
    rows = [["threshold", *(f"{name}, unflagged" for name in kept), *(f"{name}, told" for name in wrong), "all told"]]
    every = [one for requests in wrong.values() for one in requests]
    for threshold in THRESHOLDS:
        above = [_percent([one.confidence >= threshold for one in requests]) for requests in kept.values()]
        below = [_percent([one.confidence < threshold for one in group]) for group in [*wrong.values(), every]]
        rows.append([f"{threshold:.2f}", *above, *below])
    return rows


def _percent(values: Sequence[bool]) -> str:
    return f"{100 * sum(values) / len(values):.0f}" if values else ""


def off_topic_file(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Return the lines of files of requests, by the name of the file."""
    return {path.stem: [line for line in path.read_text("utf-8").splitlines() if line.strip()] for path in paths}
