"""Computes how good answers are: hits, discounted gain, areas under curves, each with an interval by resampling."""

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from search_answers import DEPTH, Answer
from search_variants import Query

RESAMPLES = 1000
"""The number of times that right skills are drawn anew for an interval of 95 %."""


class Interval(NamedTuple):
    """A number, and between which two it lies in 95 % of the samples."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1f} ({self.low:.1f} to {self.high:.1f})"


def rights(answer: Answer, gold: frozenset[str]) -> list[bool]:
    """Return for each result whether it is right; a result stands for its copies, and a right skill counts once."""
    seen: set[str] = set()
    found = []
    for path, copies in zip(answer.paths, answer.copies, strict=True):
        here = ({path, *copies} & gold) - seen
        seen |= here
        found.append(bool(here))
    return found


def gain(answer: Answer, gold: frozenset[str]) -> float:
    """Return the NDCG of the first ten answers."""
    found = sum(1 / math.log2(rank + 2) for rank, right in enumerate(rights(answer, gold)[:DEPTH]) if right)
    return found / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(gold))))


def hit(answer: Answer, gold: frozenset[str], places: int) -> float:
    """Return whether one of the first places is right."""
    return float(any(rights(answer, gold)[:places]))


class Scored(NamedTuple):
    """What one answer is worth, and the right skill by which queries are drawn together."""

    group: str
    hit1: float
    hit8: float
    ndcg: float


def scored(query: Query, answer: Answer) -> Scored:
    """Return what an answer is worth."""
    group = min(query.gold)
    return Scored(group, hit(answer, query.gold, 1), hit(answer, query.gold, 8), gain(answer, query.gold))


def mean_interval(values: Sequence[float], groups: Sequence[str]) -> Interval:
    """Return the mean in per cent; whole groups are drawn, since the queries for one skill are alike."""
    sums: dict[str, tuple[float, int]] = {}
    for value, group in zip(values, groups, strict=True):
        total, count = sums.get(group, (0.0, 0))
        sums[group] = total + value, count + 1
    drawn = list(sums.values())
    if not drawn:
        return Interval(math.nan, math.nan, math.nan)
    dice = random.Random(len(values))
    means = []
    for _ in range(RESAMPLES):
        sample = dice.choices(drawn, k=len(drawn))
        means.append(100 * sum(total for total, _ in sample) / sum(count for _, count in sample))
    return _interval(100 * sum(values) / len(values), means)


def _interval(value: float, samples: list[float]) -> Interval:
    samples.sort()
    return Interval(value, samples[len(samples) * 25 // 1000], samples[len(samples) * 975 // 1000 - 1])


def area(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Return the probability that a right one has the larger number, in which ties count half."""
    ranked = sorted([(value, 1) for value in right] + [(value, 0) for value in wrong])
    total, below, place = 0.0, 0, 0
    while place < len(ranked):
        end = place
        while end < len(ranked) and ranked[end][0] == ranked[place][0]:
            end += 1
        ones = sum(kind for _, kind in ranked[place:end])
        zeros = end - place - ones
        total += ones * (below + zeros / 2)
        below += zeros
        place = end
    return total / (len(right) * len(wrong)) if right and wrong else math.nan


def area_interval(right: Sequence[tuple[float, str]], wrong: Sequence[tuple[float, str]]) -> Interval:
    """Return the area under the curve with its interval; both sides are drawn anew by group."""
    dice = random.Random(len(right) + len(wrong))
    draws = [_drawn(side, dice) for side in (right, wrong)]
    samples = [area(draws[0](), draws[1]()) for _ in range(RESAMPLES // 4)]
    return _interval(area([value for value, _ in right], [value for value, _ in wrong]), samples)


def _drawn(side: Sequence[tuple[float, str]], dice: random.Random) -> Callable[[], list[float]]:
    groups: dict[str, list[float]] = {}
    for value, group in side:
        groups.setdefault(group, []).append(value)
    values = list(groups.values())
    return lambda: [value for group in dice.choices(values, k=len(values)) for value in group]


def percentile(numbers: Sequence[float], share: int) -> float:
    """Return the number that so many per cent do not exceed."""
    return sorted(numbers)[min(len(numbers) - 1, len(numbers) * share // 100)]
