"""Search the skills of a catalog: correct the spelling of a query, rank the skills and report the best."""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Literal, Protocol

from skillshelf.catalog.packed import SkillTable
from skillshelf.config.profile import Ranking
from skillshelf.core.limits import QUERY_CHARS, QUERY_TERMS
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, folded_name
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError
from skillshelf.search.index import body_of
from skillshelf.search.rank import STOP_WORDS, IndexSnapshot, analyzer

__all__ = ["RANKINGS", "Finder", "Scorer", "SearchReport", "SearchResult", "clamped_limit", "corrected"]


_WORDS_CORRECTED = 4
"""The most words of a query that are corrected."""
_SHORTEST = 4
_CANDIDATES = 5
"""The most terms one letter away whose skills are read."""
_SKILLS_READ = 8
"""The most skills that are read to find a word as it is spelled."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def corrected(
    query: str, index: IndexSnapshot, skills: Sequence[CatalogSkill]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the terms of a query with notes; a word that no skill has becomes the commonest one a letter away."""
    terms = analyzer().query_terms(query)
    unknown = [
        (term, word)
        for term, word in analyzer().plain_words(query).items()
        if term in terms and len(word) >= _SHORTEST and not index.skills_with(term)
    ]
    better: dict[str, str] = {}
    notes = []
    for term, word in unknown[:_WORDS_CORRECTED]:
        if other := _nearest(word, index, skills):
            better[term] = analyzer().stem(other)
            notes.append(f"no skill has {word!r}; searched for {other!r}")
    result: dict[str, int] = {}
    for term, times in terms.items():
        result[better.get(term, term)] = result.get(better.get(term, term), 0) + times
    return result, tuple(notes)


def _nearest(word: str, index: IndexSnapshot, skills: Sequence[CatalogSkill]) -> str | None:
    """Return the word one letter away whose term most skills have; None if none of the skills read spells it so."""
    near: dict[str, set[str]] = {}
    stem = analyzer().stem
    for other in _one_edit_away(word) - STOP_WORDS:
        near.setdefault(stem(other), set()).add(other)
    known = [term for term in near if term not in STOP_WORDS and index.skills_with(term)]
    for term in sorted(known, key=lambda term: (-index.skills_with(term), term))[:_CANDIDATES]:
        if found := _spelled(term, near[term], index, skills):
            return found
    return None


def _spelled(term: str, words: Set[str], index: IndexSnapshot, skills: Sequence[CatalogSkill]) -> str | None:
    """Return the first of some words that occurs in one of the skills that rank best for a term."""
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(sorted(words))})(?![^\W_])", re.IGNORECASE)
    found = index.best({term: 1.0}, len(skills))
    first = sorted(found, key=lambda entry: (-entry[0], skills[entry[1]].path))[:_SKILLS_READ]
    for skill in (skills[position] for _, position in first):
        if match := pattern.search(f"{skill.name} {skill.description} {body_of(skill)}"):
            return match[0].lower()
    return None


def _one_edit_away(word: str) -> set[str]:
    """Return every word that differs by one letter added, removed, replaced or swapped."""
    halves = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    near = {left + right[1:] for left, right in halves}
    near |= {left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1}
    near |= {left + letter + right[1:] for left, right in halves for letter in _LETTERS}
    return near | {left + letter + right for left, right in halves for letter in _LETTERS}


Reason = Literal["exact_path", "exact_name", "prefix", "token_overlap"]
SCORES: dict[Reason, int] = {"exact_path": 1000, "exact_name": 900, "prefix": 700, "token_overlap": 100}


class Scorer(Protocol):
    """A second ranking for skills that match by words, for example by embeddings."""

    def score(self, query: str, skills: Sequence[CatalogSkill]) -> Sequence[float]:
        """Return one number for each skill, added to the score of its words, of which the best counts as 1."""
        ...


class SearchResult(NamedTuple):
    """A skill, its score, and the reason for it."""

    score: float
    reason: Reason
    skill: CatalogSkill


class SearchReport(NamedTuple):
    """The best results, their number, and whether there were more.

    `notes` says how the query was changed; `terms` are the terms that were searched for, as the index spells them;
    `total` is the number of all skills that match, if they were counted.
    """

    query: str
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which is not used on a report
    truncated: bool
    results: tuple[SearchResult, ...]
    notes: tuple[str, ...] = ()
    terms: frozenset[str] = frozenset()
    total: int | None = None

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


def clamped_limit(limit: int, most: int) -> tuple[int, tuple[str, ...]]:
    """Clamp the requested limit; return it with a note if it was reduced."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigurationError(f"a limit must be a whole number of at least 1, not {limit!r}")
    return min(limit, most), (f"the limit was reduced from {limit} to {most}",) if limit > most else ()


class _RankRequest(NamedTuple):
    """Inputs of a ranking: the query, which skills may be results, and how many are needed."""

    query: str
    keep: Callable[[int], bool]
    needed: int
    scorer: Scorer | None


class _Ranked(NamedTuple):
    """The result of a ranking: scores and positions, with notes and terms of the query."""

    found: Sequence[tuple[float, int]]
    notes: tuple[str, ...] = ()
    terms: frozenset[str] = frozenset()
    is_complete: bool = True


class Finder:
    """The skills of one catalog, ready to be searched; safe to use from several threads."""

    def __init__(
        self,
        skills: Sequence[CatalogSkill],
        *,
        cwd: str,
        scopes: Sequence[str],
        ranking: Ranking,
        open_index: "Callable[[], IndexSnapshot]",
    ) -> None:
        self.skills = skills
        self._cwd = cwd
        self._ranking = ranking
        self._open_index: Callable[[], IndexSnapshot] | None = open_index
        self._index: IndexSnapshot | None = None
        self._rank = {scope: n for n, scope in enumerate(scopes)}
        self._table = SkillTable.of(skills)

    @property
    def index(self) -> "IndexSnapshot":
        """The index of these skills, opened at the first use."""
        if self._index is None:
            assert self._open_index is not None
            self._index = self._open_index()
            # It knows the shelf, which knows this finder: without it both go when the last user does.
            self._open_index = None
        return self._index

    def prepare(self) -> None:
        """Open the index now if the ranking uses it."""
        if self._ranking == "relevance":
            self._index = self.index

    def _tie_break(self, position: int) -> tuple[int, str]:
        """Return the sort key among equal scores."""
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
        """Return the skills that match a query, best first; the result depends on the skills and the query only."""
        shown = query
        if len(query) > QUERY_CHARS:
            shown = cut(query, QUERY_CHARS + 1)
            query, notes = query[:QUERY_CHARS], (*notes, f"the query was cut to its first {QUERY_CHARS} characters")
        wanted = query.strip()
        if not wanted:
            return SearchReport(shown, 0, False, (), notes)
        named = {n: reason for n, reason in self._named(wanted).items() if keep(self.skills[n])}
        found: list[tuple[float, Reason, int]] = [(SCORES[reason], reason, n) for n, reason in named.items()]
        ranked = _Ranked((), is_complete=False)
        if len(found) <= limit:
            request = _RankRequest(
                wanted, lambda n: n not in named and keep(self.skills[n]), limit + 1 - len(found), scorer
            )
            ranked = RANKINGS[self._ranking](self, request)
            found += [(score, "token_overlap", position) for score, position in ranked.found]
        found.sort(key=lambda entry: (-entry[0], self._tie_break(entry[2])))
        best = tuple(SearchResult(score, reason, self.skills[n]) for score, reason, n in found[:limit])
        total = len(found) if ranked.is_complete else None
        return SearchReport(shown, len(best), len(found) > limit, best, notes + ranked.notes, ranked.terms, total)

    def _named(self, query: str) -> dict[int, Reason]:
        """Return the skills whose path or name equals the query, or whose name begins with it, with the reason."""
        folded = folded_name(query)
        exact = set(self._table.named(folded))
        reasons: dict[int, Reason] = {
            position: "exact_name" if position in exact else "prefix" for position in self._table.begun(folded)
        }
        path = os.path.normpath(os.path.join(self._cwd, query))
        for candidate in (path, os.path.join(path, "SKILL.md")):
            reasons |= dict.fromkeys(self._table.at_path(candidate), "exact_path")
        return reasons


# Shared words, counted ----------------------------------------------------------------------------

_TOKEN = lazy_pattern(r"[a-z0-9]+")


def _by_overlap(finder: Finder, request: _RankRequest) -> _Ranked:
    """Score 100, plus one for each word that the query shares with name and description."""
    words = set(_TOKEN.findall(request.query.lower()))
    found = []
    for position, skill in enumerate(finder.skills):
        if request.keep(position):
            shared = words.intersection(_TOKEN.findall(f"{skill.name} {skill.description}".lower()))
            if shared:
                found.append((float(SCORES["token_overlap"] + len(shared)), position))
    return _Ranked(found)


# Shared words, weighted ---------------------------------------------------------------------------

_FIRST_RESULTS = 128


def _by_relevance(finder: Finder, request: _RankRequest) -> _Ranked:
    """Score by the index, raised by the share of the skill's name that the query covers."""
    index = finder.index
    terms, notes = corrected(request.query, index, finder.skills)
    if index.unread:
        notes = (*notes, f"{index.unread} skills could not be read, and are found by name and description alone")
    weights = {term: (1 + math.log(times)) * index.weight(term) for term, times in terms.items()}
    rarest = sorted((term for term in weights if weights[term]), key=lambda term: (-weights[term], term))[:QUERY_TERMS]
    weights = {term: weights[term] for term in rarest}
    if request.scorer is not None:
        try:
            second_scores = _second_scores(request.scorer, request.query, finder.skills)
        except Exception as error:
            # The scorer is not our code: its failure costs its scores, not the search.
            notes = (*notes, f"ranked by words alone, since the second scorer failed: {type(error).__name__}: {error}")
        else:
            found = _with_second_scores(finder, request, weights, second_scores)
            return _Ranked(found, notes, frozenset(weights))
    most = _FIRST_RESULTS
    while True:
        rough = index.best(weights, most)
        found = [(_points(score), n) for score, n in _covered(finder, rough, weights) if request.keep(n)]
        if len(rough) < min(most, len(finder.skills)) or len(rough) == len(finder.skills):
            return _Ranked(found, notes, frozenset(weights))
        found.sort(reverse=True)
        # No skill further down can be a result, even if the query covers its whole name.
        beyond = _points(rough[-1][0] * (1 + finder.index.coverage))
        if len(found) >= request.needed and found[request.needed - 1][0] > beyond:
            return _Ranked(found, notes, frozenset(weights), is_complete=False)
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
    """Return the terms of a skill's name, as a query for it would have them."""
    return tuple(analyzer().query_terms(name))


def _points(score: float) -> float:
    """Return a score between `token_overlap` and `prefix`."""
    top = SCORES["prefix"] - SCORES["token_overlap"]
    return round(SCORES["token_overlap"] + top * score / (score + _HALF), 4)


_HALF = 25_600.0
"""The score of the index that lies halfway between `token_overlap` and `prefix`."""


def _second_scores(scorer: Scorer, query: str, skills: Sequence[CatalogSkill]) -> list[float]:
    """Return the score of a second scorer for each skill; a negative number or NaN counts as 0."""
    given = [float(number) for number in scorer.score(query, skills)]
    if len(given) != len(skills):
        raise ConfigurationError(f"it gave {len(given)} numbers for {len(skills)} skills")
    if any(map(math.isinf, given)):
        raise ConfigurationError("it gave an infinite number")
    return [number if number > 0 else 0.0 for number in given]


def _with_second_scores(
    finder: Finder, request: _RankRequest, weights: Mapping[str, float], second_scores: Sequence[float]
) -> list[tuple[float, int]]:
    by_words = {n: score for score, n in _covered(finder, finder.index.best(weights, len(finder.skills)), weights)}
    top = max(by_words.values(), default=1.0)
    sums = [by_words.get(n, 0.0) / top + second for n, second in enumerate(second_scores)]
    return [(_points(_HALF * total), n) for n, total in enumerate(sums) if total > 0 and request.keep(n)]


RANKINGS: Mapping[Ranking, Callable[[Finder, _RankRequest], _Ranked]] = {
    "relevance": _by_relevance,
    "overlap": _by_overlap,
}
