"""Name, description and body of a skill to how much each of its terms says about it.

What a term says is a function of the skill alone: lengths are measured against fixed ones and not against the
average of a collection, so that a skill's entry in an index never depends on the other skills. It is BM25's
saturation, once for name and description together and once for the body, added.
"""

from collections.abc import Mapping
from typing import NamedTuple

from skillshelf.search.terms import Analyzer

__all__ = ["PER_UNIT", "WEIGHTS", "Weights", "entry"]

PER_UNIT = 4
"""Steps of an impact; finer ones rank no better."""


class Weights(NamedTuple):
    """The constants of the ranking. `bench/search.py --cross-validate` shows how they were chosen."""

    saturation: float = 1.2
    name: float = 1.0
    body: float = 0.7
    coverage: float = 0.3
    name_slope: float = 0.3
    description_slope: float = 0.2
    body_slope: float = 0.75
    name_terms: float = 3
    description_terms: float = 35
    body_terms: float = 900


WEIGHTS = Weights()
"""The constants in use."""


def entry(name: str, description: str, body: str, analyzer: Analyzer, weights: Weights) -> str:
    """What an index keeps of a skill: each of its terms with the step of its impact, divided by blanks."""
    told = _metadata(analyzer.count(name), analyzer.count(description), weights)
    counts = analyzer.count(body)
    length = _length(sum(counts.values()), weights.body_terms, weights.body_slope)
    impacts = {times: weights.body * _saturated(times / length, weights.saturation) for times in {0, *counts.values()}}
    steps = {times: _step(impact) for times, impact in impacts.items()}
    tokens = [term + _step(impact + impacts[counts.pop(term, 0)]) for term, impact in told.items()]
    tokens += map(str.__add__, counts, map(steps.__getitem__, counts.values()))
    return " ".join(tokens)


def _metadata(name: Mapping[str, int], description: Mapping[str, int], weights: Weights) -> dict[str, float]:
    name_length = _length(sum(name.values()), weights.name_terms, weights.name_slope)
    length = _length(sum(description.values()), weights.description_terms, weights.description_slope)
    times = {term: count / length for term, count in description.items()}
    for term, count in name.items():
        times[term] = times.get(term, 0) + weights.name * count / name_length
    return {term: _saturated(often, weights.saturation) for term, often in times.items()}


def _length(terms: int, usual: float, slope: float) -> float:
    return 1 - slope + slope * terms / usual


def _saturated(times: float, saturation: float) -> float:
    return times * (saturation + 1) / (times + saturation)


def _step(impact: float) -> str:
    return f"/{max(1, round(PER_UNIT * impact))}"
