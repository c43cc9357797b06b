"""Find published skills whose descriptions say nearly the same, and keep what was found while the catalog changes.

`near_duplicates` compares all descriptions with each other whenever one has changed. A server of a hundred thousand
skills cannot do that after each publish, so here a change costs as much as it changes.
"""

import math
import threading
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill
from skillshelf.search.collisions import DUPLICATE
from skillshelf.search.rank import analyzer

__all__ = ["SimilarPair", "SimilarSkills"]

_LEAST_TERMS = 5
"""A description with fewer terms says too little to be compared."""
_LEAST_NUMBER = 200
"""Rarity is measured as if there were at least so many descriptions."""
_LOOKED_AT = 2_000
"""Skills with a rare term of a description that are looked at, those with the rarest term first."""
_TURN_SECONDS = 0.02
"""Time for which descriptions are compared before requests have a turn as long."""
_COMPARED = 20
"""Skills that are compared with a description: those that share the most of its rare terms."""


class SimilarPair(NamedTuple):
    """A skill and the other one that its description is most similar to, by their paths."""

    path: str
    other: str
    cosine: float


class _Description(NamedTuple):
    """A description as the numbers of its terms, the rarest first, with their weights; its length is 1.

    Without the first `rare` terms too little of its length is left to be similar to anything.
    """

    skill: CatalogSkill
    terms: "array[int]"
    weights: "array[float]"
    rare: int


class SimilarSkills:
    """The pairs of similar skills of a catalog that changes. One thread at a time updates it; all may read it.

    Each skill is in at most one pair as the first: a thousand copies are a thousand pairs, not half a million.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._having: list[int] = []
        self._known: dict[str, int] = {}
        self._descriptions: dict[int, _Description] = {}
        self._with_term: dict[int, array[int]] = {}
        self._pairs: dict[str, SimilarPair] = {}
        self._next = 0
        self.done = self.total = 0

    def update(self, skills: Sequence[CatalogSkill]) -> Sequence[SimilarPair]:
        """Take the skills as they are now, and return the pairs, the most similar first."""
        with self._lock:
            now = {skill.path: skill for skill in skills if skill.description.strip()}
            gone = [path for path, number in self._known.items() if self._is_gone(number, now.get(path))]
            # What was similar to something that is gone may be similar to something else.
            alone = self._forget(frozenset(gone))
            if self._next > 2 * len(now) + _LEAST_NUMBER:
                self._forget_all()
            new = [skill for path, skill in now.items() if path not in self._known]
            self.done, self.total = 0, len(new) + len(alone)
            began = time.monotonic()
            # One after the other: each is compared with those before it.
            for number in chain([self._known[path] for path in alone if path in self._known], self._added(new)):
                self._compare(number)
                self.done += 1
                if (worked := time.monotonic() - began) > _TURN_SECONDS:
                    time.sleep(worked)
                    began = time.monotonic()
            return sorted(self._pairs.values(), key=lambda pair: (-pair.cosine, pair.path))

    def _is_gone(self, number: int, skill: CatalogSkill | None) -> bool:
        return skill is None or skill.description != self._descriptions[number].skill.description

    def _forget(self, gone: frozenset[str]) -> list[str]:
        """Forget some skills; return those that were similar to one of them."""
        for path in gone:
            for term in self._descriptions.pop(self._known.pop(path)).terms:
                self._having[term] -= 1
            self._pairs.pop(path, None)
        alone = [pair.path for pair in self._pairs.values() if pair.other in gone] if gone else []
        for path in alone:
            del self._pairs[path]
        return alone

    def _forget_all(self) -> None:
        """Begin again: the lists of skills by their terms have more that are gone than others."""
        self._numbers, self._having, self._known = {}, [], {}
        self._descriptions, self._with_term, self._pairs, self._next = {}, {}, {}, 0

    # Descriptions ---------------------------------------------------------------------------------

    def _added(self, skills: Sequence[CatalogSkill]) -> Iterator[int]:
        """Add skills; yield the number of each when it can be compared with those before it."""
        counted = [self._counted(skill.description) for skill in skills]
        among = max(_LEAST_NUMBER, len(self._known) + len(skills))
        for skill, terms in zip(skills, counted, strict=True):
            found = self._weighted(skill, terms, among)
            number = self._next
            self._next += 1
            self._known[skill.path], self._descriptions[number] = number, found
            yield number
            for term in found.terms[: found.rare]:
                self._with_term.setdefault(term, array("I")).append(number)

    def _counted(self, description: str) -> Mapping[int, int]:
        """Return how often a description has each of its terms, by the numbers of the terms."""
        found = {}
        for term, times in analyzer().query_terms(description).items():
            number = self._numbers.setdefault(term, len(self._having))
            if number == len(self._having):
                self._having.append(0)
            self._having[number] += 1
            found[number] = times
        return found

    def _weighted(self, skill: CatalogSkill, counted: Mapping[int, int], among: int) -> _Description:
        weights = {term: (1 + math.log(times)) * self._rarity(term, among) for term, times in counted.items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values())) or 1.0
        terms = sorted(weights, key=lambda term: (-weights[term], term))
        left, rare = 1.0, 0
        while rare < len(terms) and left >= DUPLICATE * DUPLICATE:
            left -= (weights[terms[rare]] / length) ** 2
            rare += 1
        found = array("f", (weights[term] / length for term in terms))
        return _Description(skill, array("I", terms), found, rare if len(terms) >= _LEAST_TERMS else 0)

    def _rarity(self, term: int, among: int) -> float:
        having = self._having[term]
        return math.log(1 + (among - having + 0.5) / (having + 0.5))

    # Comparing ------------------------------------------------------------------------------------

    def _compare(self, number: int) -> None:
        """Find the skill whose description is most similar to that of another; it must be similar enough."""
        mine = self._descriptions[number]
        weights = dict(zip(mine.terms, mine.weights, strict=True))
        best, cosine = None, 0.0
        for other in self._candidates(number, mine):
            theirs = self._descriptions[other]
            found = sum(weight * weights.get(term, 0.0) for term, weight in zip(*theirs[1:3], strict=True))
            # A skill of the same name is its copy.
            if found > cosine and theirs.skill.name != mine.skill.name:
                best, cosine = theirs, found
        if best is not None and cosine >= DUPLICATE:
            self._pairs[mine.skill.path] = SimilarPair(mine.skill.path, best.skill.path, round(cosine, 4))

    def _candidates(self, number: int, mine: _Description) -> list[int]:
        """Return the skills that share the most of the rare terms of one, and are not similar to it already."""
        shared: Counter[int] = Counter()
        looked_at = 0
        for term in mine.terms[: mine.rare]:
            having = self._with_term.get(term, ())[: _LOOKED_AT - looked_at]
            looked_at += len(having)
            shared.update(having)
        path = mine.skill.path
        found = []
        for other, _ in shared.most_common():
            known = self._descriptions.get(other)
            pair = self._pairs.get(known.skill.path) if known is not None else None
            if known is not None and other != number and (pair is None or pair.other != path):
                found.append(other)
            if len(found) == _COMPARED:
                break
        return found
