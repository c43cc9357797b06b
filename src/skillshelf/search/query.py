"""A query to its terms, where a word that no skill has gives way to one that is a letter away."""

import math
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any, Literal, NamedTuple, Protocol

from skillshelf.config.profile import Ranking
from skillshelf.core.limits import QUERY_CHARS, QUERY_TERMS
from skillshelf.core.text import cut
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError
from skillshelf.search.index import body_of
from skillshelf.search.rank import STOP_WORDS, SkillIndex, analyzer

__all__ = ["RANKINGS", "Finder", "Scorer", "SearchReport", "SearchResult", "checked_limit", "corrected"]


_CORRECTED = 4
"""So many words of a query are corrected."""
_SHORTEST = 4
_CANDIDATES = 5
"""Of the words one letter away, so many are asked for."""
_WITNESSES = 8
"""So many skills are asked whether they have a word."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def corrected(query: str, index: SkillIndex, skills: Sequence[CatalogSkill]) -> tuple[dict[str, int], tuple[str, ...]]:
    """The terms of a query, where a word that no skill has gives way to the commonest that is one letter away."""
    terms = analyzer().asked(query)
    unknown = [
        (term, word)
        for term, word in analyzer().spelled(query).items()
        if term in terms and len(word) >= _SHORTEST and not index.skills_with(term)
    ]
    better: dict[str, str] = {}
    notes = []
    for term, word in unknown[:_CORRECTED]:
        if other := _nearest(word, index, skills):
            better[term] = analyzer().stem(other)
            notes.append(f"no skill has {word!r}; looked for {other!r}")
    result: dict[str, int] = {}
    for term, times in terms.items():
        result[better.get(term, term)] = result.get(better.get(term, term), 0) + times
    return result, tuple(notes)


def _nearest(word: str, index: SkillIndex, skills: Sequence[CatalogSkill]) -> str | None:
    """The word one letter away whose term most skills have, if one of those that have it most has that very word."""
    near: dict[str, set[str]] = {}
    stem = analyzer().stem
    for other in _one_edit_away(word) - STOP_WORDS:
        near.setdefault(stem(other), set()).add(other)
    known = [term for term in near if term not in STOP_WORDS and index.skills_with(term)]
    for term in sorted(known, key=lambda term: (-index.skills_with(term), term))[:_CANDIDATES]:
        if found := _spelled(term, near[term], index, skills):
            return found
    return None


def _spelled(term: str, words: Set[str], index: SkillIndex, skills: Sequence[CatalogSkill]) -> str | None:
    """The first of some words that stands in one of the skills that have most of a term."""
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(sorted(words))})(?![^\W_])", re.IGNORECASE)
    found = index.best({term: 1.0}, len(skills))
    first = sorted(found, key=lambda entry: (-entry[0], skills[entry[1]].path))[:_WITNESSES]
    for skill in (skills[position] for _, position in first):
        if match := pattern.search(f"{skill.name} {skill.description} {body_of(skill)}"):
            return match[0].lower()
    return None


def _one_edit_away(word: str) -> set[str]:
    """Everything that one letter more, less, other or swapped makes of a word."""
    halves = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    near = {left + right[1:] for left, right in halves}
    near |= {left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1}
    near |= {left + letter + right[1:] for left, right in halves for letter in _LETTERS}
    return near | {left + letter + right for left, right in halves for letter in _LETTERS}


Reason = Literal["exact_path", "exact_name", "prefix", "token_overlap"]
SCORES: dict[Reason, int] = {"exact_path": 1000, "exact_name": 900, "prefix": 700, "token_overlap": 100}


class Scorer(Protocol):
    """A second opinion on the last class, for example by embeddings."""

    def score(self, query: str, skills: Sequence[CatalogSkill]) -> Sequence[float]:
        """One number for each skill, added to what its words give, where the best of all words gives 1."""
        ...


class SearchResult(NamedTuple):
    """A skill, how well it fits, and in which way."""

    score: float
    reason: Reason
    skill: CatalogSkill


class SearchReport(NamedTuple):
    """The best results, how many they are, and whether there were more.

    `notes` says what was done to the query, `terms` what was looked for in the end, as the index spells it.
    """

    query: str
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which nobody calls on a report
    truncated: bool
    results: tuple[SearchResult, ...]
    notes: tuple[str, ...] = ()
    terms: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "query": self.query,
            "count": self.count,
            "truncated": self.truncated,
            "results": [
                {"score": result.score, "reason": result.reason, "skill": result.skill.to_dict()}
                for result in self.results
            ],
        }


def checked_limit(limit: int, most: int) -> tuple[int, tuple[str, ...]]:
    """How many results are given at most, where so many were asked for, and what is to be said about it."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigurationError(f"a limit is a whole number of at least 1, not {limit!r}")
    return min(limit, most), (f"a limit is at most {most}, so not {limit}",) if limit > most else ()


class _Asked(NamedTuple):
    """What a ranking is given: the query, which skills may be in the answer, and how many are needed."""

    query: str
    keep: Callable[[int], bool]
    needed: int
    scorer: Scorer | None


class _Ranked(NamedTuple):
    """What a ranking gives: scores and positions, with what it did to the query."""

    found: Sequence[tuple[float, int]]
    notes: tuple[str, ...] = ()
    terms: frozenset[str] = frozenset()


class Finder:
    """The skills of one catalog, ready to be searched; safe to use from several threads."""

    def __init__(
        self,
        skills: Sequence[CatalogSkill],
        *,
        cwd: str,
        scopes: Sequence[str],
        ranking: Ranking,
        open_index: "Callable[[], SkillIndex]",
    ) -> None:
        self.skills = skills
        self._cwd = cwd
        self._ranking = ranking
        self._open_index = open_index
        self._index: SkillIndex | None = None
        self._rank = {scope: n for n, scope in enumerate(scopes)}
        names = [skill.name.lower() for skill in skills]
        self._by_name = sorted(range(len(skills)), key=names.__getitem__)
        self._names = [names[position] for position in self._by_name]
        self._paths = {skill.path: position for position, skill in enumerate(skills)}

    @property
    def index(self) -> "SkillIndex":
        """The index of these skills, opened at the first use."""
        if self._index is None:
            self._index = self._open_index()
        return self._index

    def _place(self, position: int) -> tuple[int, str]:
        """What decides between equal scores."""
        skill = self.skills[position]
        return self._rank.get(skill.scope, len(self._rank)), skill.path

    def search(
        self,
        query: str,
        *,
        limit: int,
        keep: Callable[[CatalogSkill], bool],
        scorer: Scorer | None = None,
        notes: tuple[str, ...] = (),
    ) -> SearchReport:
        """The skills that fit a query, best first; the same answer for the same skills, always."""
        shown = query
        if len(query) > QUERY_CHARS:
            shown = cut(query, QUERY_CHARS + 1)
            query, notes = query[:QUERY_CHARS], (*notes, f"the query was cut to its first {QUERY_CHARS} characters")
        wanted = query.strip()
        if not wanted:
            return SearchReport(shown, 0, False, (), notes)
        named = {n: reason for n, reason in self._named(wanted).items() if keep(self.skills[n])}
        found: list[tuple[float, Reason, int]] = [(SCORES[reason], reason, n) for n, reason in named.items()]
        ranked = _Ranked(())
        if len(found) <= limit:
            asked = _Asked(wanted, lambda n: n not in named and keep(self.skills[n]), limit + 1 - len(found), scorer)
            ranked = RANKINGS[self._ranking](self, asked)
            found += [(score, "token_overlap", position) for score, position in ranked.found]
        found.sort(key=lambda entry: (-entry[0], self._place(entry[2])))
        best = tuple(SearchResult(score, reason, self.skills[n]) for score, reason, n in found[:limit])
        return SearchReport(shown, len(best), len(found) > limit, best, notes + ranked.notes, ranked.terms)

    def _named(self, query: str) -> dict[int, Reason]:
        """The skills whose path or name the query is, or whose name begins with it, by the best class of each."""
        lowered = query.lower()
        first = bisect_left(self._names, lowered)
        begun = takewhile(lambda name: name.startswith(lowered), islice(self._names, first, None))
        reasons: dict[int, Reason] = {
            self._by_name[at]: "exact_name" if name == lowered else "prefix" for at, name in enumerate(begun, first)
        }
        path = os.path.normpath(os.path.join(self._cwd, query))
        for place in (path, os.path.join(path, "SKILL.md")):
            if place in self._paths:
                reasons[self._paths[place]] = "exact_path"
        return reasons


# Shared words, counted ----------------------------------------------------------------------------

_TOKEN = re.compile(r"[a-z0-9]+")


def _by_overlap(finder: Finder, asked: _Asked) -> _Ranked:
    """A hundred, and one for each word that the query shares with name and description."""
    words = set(_TOKEN.findall(asked.query.lower()))
    found = []
    for position, skill in enumerate(finder.skills):
        if asked.keep(position):
            shared = words.intersection(_TOKEN.findall(f"{skill.name} {skill.description}".lower()))
            if shared:
                found.append((float(SCORES["token_overlap"] + len(shared)), position))
    return _Ranked(found)


# Shared words, weighed ----------------------------------------------------------------------------

_FIRST_LOOK = 128


def _by_relevance(finder: Finder, asked: _Asked) -> _Ranked:
    """What the index says of the terms, times how much of the skill's name the query covers."""

    index = finder.index
    terms, notes = corrected(asked.query, index, finder.skills)
    if index.unread:
        notes = (*notes, f"{index.unread} skills could not be read, and are found by name and description alone")
    weights = {term: (1 + math.log(times)) * index.weight(term) for term, times in terms.items()}
    rarest = sorted((term for term in weights if weights[term]), key=lambda term: (-weights[term], term))[:QUERY_TERMS]
    weights = {term: weights[term] for term in rarest}
    if asked.scorer is not None:
        try:
            opinions = _opinions(asked.scorer, asked.query, finder.skills)
        except Exception as error:
            # It is somebody else's code: what it does wrong costs its opinion and not the answer.
            notes = (*notes, f"ranked by words alone, since the second scorer failed: {type(error).__name__}: {error}")
        else:
            found = _with_second_opinion(finder, asked, weights, opinions)
            return _Ranked(found, notes, frozenset(weights))
    most = _FIRST_LOOK
    while True:
        rough = index.best(weights, most)
        found = [(_points(score), n) for score, n in _covered(finder, rough, weights) if asked.keep(n)]
        if len(rough) < min(most, len(finder.skills)) or len(rough) == len(finder.skills):
            return _Ranked(found, notes, frozenset(weights))
        found.sort(reverse=True)
        # No skill further down can get in, even if the query covers its name wholly.
        beyond = _points(rough[-1][0] * (1 + finder.index.coverage))
        if len(found) >= asked.needed and found[asked.needed - 1][0] > beyond:
            return _Ranked(found, notes, frozenset(weights))
        most *= 4


def _covered(
    finder: Finder, rough: Sequence[tuple[int, int]], weights: Mapping[str, float]
) -> Iterator[tuple[float, int]]:
    for score, position in rough:
        name = _name_terms(finder.skills[position].name)
        share = sum(map(weights.__contains__, name)) / len(name) if name else 0.0
        yield score * (1 + finder.index.coverage * share), position


@lru_cache(maxsize=1 << 15)
def _name_terms(name: str) -> tuple[str, ...]:
    """The terms of a skill's name, as a query for it would have them."""
    from skillshelf.search.rank import analyzer

    return tuple(analyzer().asked(name))


def _points(score: float) -> float:
    """A score between those of the last class and of the class before it."""
    top = SCORES["prefix"] - SCORES["token_overlap"]
    return round(SCORES["token_overlap"] + top * score / (score + _HALF), 4)


_HALF = 25_600.0
"""The score that lies in the middle of its class."""


def _opinions(scorer: Scorer, query: str, skills: Sequence[CatalogSkill]) -> list[float]:
    """What a second scorer gives each skill; what is no number, or below zero, is no opinion."""
    given = [float(number) for number in scorer.score(query, skills)]
    if len(given) != len(skills):
        raise ConfigurationError(f"it gave {len(given)} numbers for {len(skills)} skills")
    if any(map(math.isinf, given)):
        raise ConfigurationError("it gave an infinite number")
    return [number if number > 0 else 0.0 for number in given]


def _with_second_opinion(
    finder: Finder, asked: _Asked, weights: Mapping[str, float], opinions: Sequence[float]
) -> list[tuple[float, int]]:
    by_words = {n: score for score, n in _covered(finder, finder.index.best(weights, len(finder.skills)), weights)}
    top = max(by_words.values(), default=1.0)
    sums = [by_words.get(n, 0.0) / top + opinion for n, opinion in enumerate(opinions)]
    return [(_points(_HALF * total), n) for n, total in enumerate(sums) if total > 0 and asked.keep(n)]


RANKINGS: Mapping[Ranking, Callable[[Finder, _Asked], _Ranked]] = {"relevance": _by_relevance, "overlap": _by_overlap}
