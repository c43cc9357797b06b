"""Find skills whose descriptions say nearly the same, so that one takes the requests of the other.

Every skill is searched for by its own description. A neighbour that is above it, or close behind, collides with it if
the two descriptions also share most of their rare words, or one has nearly all of those of the other: among a thousand
skills many are close neighbours of another without being meant for the same requests.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold
from skillshelf.core.values import CatalogSkill
from skillshelf.search.index import body_of
from skillshelf.search.query import SearchResult
from skillshelf.search.rank import STOP_WORDS, analyzer
from skillshelf.search.relevance import SCORES

__all__ = ["Collision", "copy_classes", "find_collisions", "margin_to", "near_duplicates", "words_of"]

MARGIN = 0.1
"""A neighbour whose score is at most this share below the skill's own is close."""
SIMILAR = 0.7
"""The cosine of two descriptions from which on neighbours collide; docs/eval.md shows how both were chosen."""
CONTAINED = 0.95
"""The share of a description that another one says too, by weight, from which on a smaller cosine is enough."""
SIMILAR_CONTAINED = 0.5
"""That smaller cosine: a description that is nearly a part of another one collides with it."""
DUPLICATE = 0.85
"""The same cosine where nothing is searched for, so that it alone decides."""
_NEIGHBOURS = 12
"""Places of a ranking that are looked at."""
_WORDS_SHOWN = 8
_LEAST_TERMS = 5
_LEAST_NUMBER = 200
"""Rarity is measured as if there were at least so many descriptions."""

Rank = Callable[[str, int], Sequence[SearchResult]]
"""Takes a query and a number of places, and returns that many of the best skills."""


class Collision(NamedTuple):
    """Two skills by their positions, how close they are, the words they share, and those that only one of them has.

    A `margin` below 0 means that one is above the other in a search for the other's description.
    """

    first: int
    second: int
    margin: float
    shared: tuple[str, ...]
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]


def margin_to(own: float | None, other: float | None) -> float | None:
    """Return the share by which another score is below one's own, from -1 to 1; None without an own score."""
    if own is None:
        return None
    if other is None:
        return 1.0
    mine, theirs = _words(own), _words(other)
    return round(max(-1.0, 1 - theirs / mine), 4) if mine else -1.0


def _words(score: float) -> float:
    """Return the score of the words of a result, from which its score was made; the scale does not matter."""
    low, high = SCORES["token_overlap"], SCORES["prefix"]
    # From `prefix` on it is the name that matched, and no number of words does that.
    return max(0.0, score - low) / (high - score) if score < high else 1e6 * score


def copy_classes(skills: Sequence[CatalogSkill]) -> list[int]:
    """Return for each skill the position of the first one with the same text but for its name and blanks."""
    by_description: dict[str, list[int]] = {}
    for position, skill in enumerate(skills):
        by_description.setdefault(fold(skill.description), []).append(position)
    classes = list(range(len(skills)))
    for positions in by_description.values():
        first: dict[str, int] = {}
        # Bodies are read only where descriptions are the same.
        for position in positions if len(positions) > 1 else ():
            classes[position] = first.setdefault(" ".join(body_of(skills[position]).split()), position)
    return classes


def find_collisions(
    skills: Sequence[CatalogSkill], rank: Rank, *, of: Iterable[int], classes: Sequence[int]
) -> list[Collision]:
    """Return the pairs of skills that collide, in the order of the catalog; at least one of each pair is in `of`."""
    vectors = _vectors([skill.description for skill in skills])
    at = {skill.path: position for position, skill in enumerate(skills)}
    margins: dict[tuple[int, int], float] = {}
    for position in of:
        if (first := classes[position]) != position:
            # A copy under the same name in another place is the same skill.
            if skills[first].name != skills[position].name:
                margins[first, position] = 0.0
            continue
        for other, margin in _neighbours(position, rank(skills[position].description, _NEIGHBOURS), at, classes):
            pair = (min(position, other), max(position, other))
            margins[pair] = min(margin, margins.get(pair, 1.0))
    return [
        _collision(pair, margins[pair], skills, vectors)
        for pair in sorted(margins)
        if margins[pair] <= MARGIN and _is_similar(vectors[pair[0]], vectors[pair[1]])
    ]


def _neighbours(
    position: int, results: Sequence[SearchResult], at: Mapping[str, int], classes: Sequence[int]
) -> Iterable[tuple[int, float]]:
    """Yield the other texts in a search for a skill's description, each once, with the margin to it."""
    found: dict[int, float] = {}
    for result in results:
        found.setdefault(classes[at[result.skill.path]], result.score)
    own = found.pop(position, 0.0)
    for other, score in found.items():
        yield other, margin_to(own, score) or 0.0


def near_duplicates(descriptions: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of positions whose descriptions are nearly the same, the most similar first.

    Much cheaper than a search for each: two descriptions can only be that similar if they share one of the rarest terms
    of each, those without which too little of its length is left. A description of a few words says too little to be
    compared.
    """
    vectors = _vectors(descriptions)
    having: dict[str, list[int]] = {}
    found = []
    for position, vector in enumerate(vectors):
        rarest = _rarest(vector) if len(vector) >= _LEAST_TERMS else []
        candidates = sorted({other for term in rarest for other in having.get(term, ())})
        similar = [(_cosine(vector, vectors[other]), other) for other in candidates]
        found += [(-cosine, other, position) for cosine, other in similar if cosine >= DUPLICATE]
        for term in rarest:
            having.setdefault(term, []).append(position)
    return [pair[1:] for pair in sorted(found)]


def _rarest(vector: Mapping[str, float]) -> list[str]:
    """Return the terms with the most weight, until those that are left are shorter than a duplicate's cosine."""
    ordered = sorted(vector, key=lambda term: (-vector[term], term))
    left = 1.0
    for count, term in enumerate(ordered):
        if left < DUPLICATE * DUPLICATE:
            return ordered[:count]
        left -= vector[term] ** 2
    return ordered


def _vectors(descriptions: Sequence[str]) -> list[dict[str, float]]:
    """Return the terms of each description, weighted by their rarity among all descriptions, with length 1."""
    counted = [analyzer().query_terms(description) for description in descriptions]
    having = Counter(term for terms in counted for term in terms)
    # Among few descriptions a word that two of them share would count as common.
    number = max(_LEAST_NUMBER, len(descriptions))
    rarity = {term: math.log(1 + (number - n + 0.5) / (n + 0.5)) for term, n in having.items()}
    vectors = []
    for terms in counted:
        weights = {term: (1 + math.log(times)) * rarity[term] for term, times in terms.items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values())) or 1.0
        vectors.append({term: weight / length for term, weight in weights.items()})
    return vectors


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return math.fsum(weight * other.get(term, 0.0) for term, weight in one.items())


def _is_similar(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Return whether two descriptions say nearly the same, or one of them nearly a part of the other."""
    cosine, least = _cosine(one, other), min(len(one), len(other))
    if cosine >= SIMILAR or cosine < SIMILAR_CONTAINED or least < _LEAST_TERMS:
        return cosine >= SIMILAR
    return max(_contained(one, other), _contained(other, one)) >= CONTAINED


def _contained(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the share of the weight of a description, whose length is 1, that is in terms of another one."""
    return math.fsum(weight * weight for term, weight in one.items() if term in other)


def _collision(
    pair: tuple[int, int], margin: float, skills: Sequence[CatalogSkill], vectors: Sequence[Mapping[str, float]]
) -> Collision:
    first, second = (vectors[position] for position in pair)
    shared = [term for term in first if term in second]
    alone = [[term for term in one if term not in other] for one, other in ((first, second), (second, first))]
    spelled = [_spelled(skills[position].description) for position in pair]
    return Collision(
        *pair,
        margin,
        _shown(shared, first, spelled[0]),
        _shown(alone[0], first, spelled[0]),
        _shown(alone[1], second, spelled[1]),
    )


def words_of(query: str, description: str, *, shared: bool) -> tuple[str, ...]:
    """Return the words of a query that a description has, or those that it has not, in their order."""
    has = analyzer().query_terms(description)
    found = [word for term, word in _spelled(query).items() if (term in has) == shared]
    return tuple(dict.fromkeys(found))[:_WORDS_SHOWN]


def _spelled(description: str) -> dict[str, str]:
    """Return the words of a description by their terms, as they are first written."""
    words: dict[str, str] = {}
    for word in analyzer().words(description):
        text = description[word.start : word.end].lower()
        for term in word.terms if text not in STOP_WORDS else ():
            words.setdefault(term, text)
    return words


def _shown(terms: Iterable[str], weights: Mapping[str, float], words: Mapping[str, str]) -> tuple[str, ...]:
    """Return the rarest of some terms as words."""
    rarest = sorted(terms, key=lambda term: (-weights[term], term))
    return tuple(dict.fromkeys(words.get(term, term) for term in rarest))[:_WORDS_SHOWN]
