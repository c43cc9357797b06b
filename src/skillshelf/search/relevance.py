"""Rank the skills of an index by the words of a query: correct its spelling, score, and add other scores."""

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import Literal, Protocol

from skillshelf.config.profile import TermKind
from skillshelf.core.limits import QUERY_RAREST, QUERY_SINGLES, QUERY_TERMS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, plural
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError
from skillshelf.search.index import body_of
from skillshelf.search.rank import (
    STOP_WORDS,
    UNIT,
    IndexSnapshot,
    analyzer,
    is_single,
    language_mark,
    query_terms,
    unspaced_runs,
)
from skillshelf.search.segments import Kind, Segment, kept_segments, segments

__all__ = ["SCORES", "MatchEvidence", "RankRequest", "Ranked", "Reason", "Scorer", "by_relevance", "corrected"]


Reason = Literal["exact_path", "exact_name", "prefix", "token_overlap"]
SCORES: dict[Reason, int] = {"exact_path": 1000, "exact_name": 900, "prefix": 700, "token_overlap": 100}


class Scorer(Protocol):
    """A second ranking for skills that match by words, for example by embeddings."""

    def score(self, query: str, skills: Sequence[CatalogSkill]) -> Sequence[float]:
        """Return one number for each skill, added to the score of its words, of which the best counts as 1."""
        ...


class MatchEvidence(NamedTuple):
    """Numbers that tell how well the best skill fits the words of a query.

    A query of several segments is represented by the one that fits the best skill best: `weight` is the sum of the
    weights of its terms, `matched` the share of it whose terms the skill has, `summary` the same in name and
    description. `second` and `others` are the scores of the next skill, and of the mean of the next nine, relative to
    the best.
    """

    score: float
    weight: float
    matched: float
    summary: float
    second: float
    others: float
    terms: int
    segments: int = 1


class RankRequest(NamedTuple):
    """Inputs of a ranking: the query, which skills may be results, and how many are needed."""

    query: str
    keep: Callable[[int], bool]
    needed: int
    scorer: Scorer | None
    prior: Callable[[Mapping[str, float]], Mapping[int, float]] | None = None
    """Return what earlier use adds for skills by position, as the second scorer does, for weighted terms."""


class Ranked(NamedTuple):
    """The result of a ranking: scores and positions, with notes and terms of the query."""

    found: Sequence[tuple[float, int]]
    notes: tuple[str, ...] = ()
    terms: frozenset[str] = frozenset()
    is_complete: bool = True
    evidence: MatchEvidence | None = None


# Spelling ----------------------------------------------------------------------------------------

_WORDS_CORRECTED = 4
"""The most words of a query that are corrected."""
_SHORTEST = 4
_CANDIDATES = 5
"""The most terms one letter away whose skills are read."""
_SKILLS_READ = 8
"""The most skills that are read to find a word as it is spelled."""
_SKILLS_SORTED = 64
"""The skills among which those that are read are, unless more of them are equally good."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def corrected(
    query: str, terms: Mapping[str, int], index: IndexSnapshot, skills: Sequence[CatalogSkill]
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the terms of words that no skill has with those of the commonest ones a letter away, and notes."""
    lacking = {term for term in terms if not index.skills_with(term)}
    if not lacking:
        return {}, ()
    words = index.analyzer.plain_words(query)
    unknown = [(term, word) for term, word in words.items() if term in lacking and len(word) >= _SHORTEST]
    better: dict[str, str] = {}
    notes = []
    for term, word in unknown[:_WORDS_CORRECTED]:
        if other := _nearest(word, index, skills):
            better[term] = index.analyzer[other]
            notes.append(f"no skill has {word!r}; searched for {other!r}")
    return better, tuple(notes)


def _nearest(word: str, index: IndexSnapshot, skills: Sequence[CatalogSkill]) -> str | None:
    """Return the word one letter away whose term most skills have; None if none of the skills read spells it so."""
    near: dict[str, set[str]] = {}
    others = _one_edit_away(word) - STOP_WORDS
    for other, term in zip(others, index.analyzer.stems_of(others), strict=True):
        near.setdefault(term, set()).add(other)
    known = [term for term in near if term not in STOP_WORDS and index.has(term)]
    for term in sorted(known, key=lambda term: (-index.skills_with(term), term))[:_CANDIDATES]:
        if found := _spelled(term, near[term], index, skills):
            return found
    return None


def _spelled(term: str, words: Set[str], index: IndexSnapshot, skills: Sequence[CatalogSkill]) -> str | None:
    """Return the first of some words that occurs in one of the skills that rank best for a term."""
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(sorted(words))})(?![^\W_])")
    search = index.query({term: 1.0})
    found = index.best(search, _SKILLS_SORTED)
    if len(found) == _SKILLS_SORTED and found[-1][0] == found[_SKILLS_READ - 1][0]:
        found = index.best(search, len(skills))
    last = found[_SKILLS_READ - 1][0] if len(found) > _SKILLS_READ else 0
    good = [(-score, skills[position].path, position) for score, position in found if score >= last]
    for skill in (skills[position] for _, _, position in sorted(good)[:_SKILLS_READ]):
        text = f"{skill.name} {skill.description} {body_of(skill)}".lower()
        # A pattern takes ten times as long as a look for each word.
        if any(map(text.__contains__, words)) and (match := pattern.search(text)):
            return match[0]
    return None


def _one_edit_away(word: str) -> set[str]:
    """Return every word that differs by one letter added, removed, replaced or swapped."""
    halves = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    near = {left + right[1:] for left, right in halves}
    near |= {left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1}
    near |= {left + letter + right[1:] for left, right in halves for letter in _LETTERS}
    return near | {left + letter + right for left, right in halves for letter in _LETTERS}


# Weights ------------------------------------------------------------------------------------------

_DIVIDED_FROM = 16
"""The number of terms from which on a query is divided: a shorter one is about one thing."""
_KIND_WEIGHTS: Mapping[Kind, float] = {"request": 1.0, "prose": 0.7, "machine": 0.1, "courtesy": 0.25}
_WHOLE = 0.34
"""The weight of the whole of a divided query; its best segment has the rest."""
_LENGTH = 0.35
"""The power of the weight of a segment by which its score is divided: a long one matches something by chance."""
_USUAL_WEIGHT = 30.0
"""The weight of the terms of a usual short query."""


class WeightedQuery(NamedTuple):
    """The terms of a query with their weights, and those of each of its segments if it was divided.

    With a `share`, the segments together have all terms, and that share of their scores is the score of the whole.
    """

    terms: Mapping[str, float]
    segments: Sequence[Mapping[str, float]] = ()
    share: float = 0.0


def weighted_query(
    text: str, index: IndexSnapshot, skills: Sequence[CatalogSkill]
) -> tuple[WeightedQuery, tuple[str, ...]]:
    """Return the weighted terms of a query, corrected, and notes about what was corrected and left out."""
    terms, limits = _bounded(query_terms(text, index.analyzer.kind))
    if index.analyzer.kind == "plain":
        better, notes = corrected(text, terms, index, skills)
        return _rarest(_own_weights(terms, better, index)), (*notes, *limits)
    parts: Sequence[Segment] = segments(text) if len(terms) >= _DIVIDED_FROM else ()
    language = _language(text, index)
    if len(parts) < 2:
        better, notes = corrected(text, terms, index, skills)
        whole = _weights(text, terms, better, index, language)
        return _undivided(whole, _translated(text, index)), (*notes, *limits, *_terms_note(len(whole)))
    parts, left_out = kept_segments(parts)
    spoken = " ".join(part.text for part in parts if part.kind != "machine")
    better, notes = corrected(spoken or text, terms, index, skills)
    whole = _weights(text, terms, better, index, language)
    of_part = [index.analyzer.query_terms(part.text) for part in parts]
    weights = [
        {**_translated(part.text, index), **_weights(part.text, found, better, index, language)}
        for part, found in zip(parts, of_part, strict=True)
    ]
    whole = {**_translated(text, index), **whole}
    query = _divided(whole, [(part.kind, found) for part, found in zip(parts, weights, strict=True)])
    if left_out:
        limits = (*limits, f"{left_out} of the sentences of the query were not searched for")
    return query, (*notes, *limits, *_terms_note(len(whole)))


def _bounded(terms: Mapping[str, int]) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """Return the terms of a query; of single characters of an unspaced script, which are in many skills, the first."""
    if len(terms) <= QUERY_SINGLES or not all(map(is_single, terms)):
        return terms, ()
    note = f"of {len(terms)} single characters of the query, {QUERY_SINGLES} were searched for"
    return dict(islice(terms.items(), QUERY_SINGLES)), (note,)


def _rarest(weights: Mapping[str, float]) -> WeightedQuery:
    """Return the terms of a query that weigh most."""
    most = sorted(weights, key=lambda term: (-weights[term], term))[:QUERY_RAREST]
    return WeightedQuery({term: weights[term] for term in most})


def _undivided(whole: Mapping[str, float], english: Mapping[str, float]) -> WeightedQuery:
    """Return the first terms of a query; of one that was translated, each language is a segment."""
    first = dict(list(whole.items())[: QUERY_TERMS - len(english)])
    if not english:
        return WeightedQuery(first)
    own = {term: weight * _HIRAGANA ** sum(map(_is_hiragana, term)) for term, weight in first.items()}
    parts = (own, _for_unspaced(own, english))
    scaled = [{term: weight * (1 - _WHOLE) for term, weight in part.items()} for part in parts]
    return WeightedQuery({term: weight * _WHOLE for term, weight in {**english, **own}.items()}, scaled, _WHOLE)


def _divided(whole: Mapping[str, float], parts: Sequence[tuple[Kind, Mapping[str, float]]]) -> WeightedQuery:
    """Return the weights of the whole and of each segment; the first terms of those that weigh most are kept."""
    used: dict[str, float] = {}
    divided = []
    for kind, weights in sorted(parts, key=lambda part: -_KIND_WEIGHTS[part[0]]):
        factor = _KIND_WEIGHTS[kind]
        kept: dict[str, float] = {}
        for term, weight in weights.items():
            if term in used or (term in whole and len(used) < QUERY_TERMS):
                kept[term] = weight
                used.setdefault(term, factor)
        if kept:
            scale = factor * (1 - _WHOLE) * (_USUAL_WEIGHT / sum(kept.values())) ** _LENGTH
            divided.append({term: weight * scale for term, weight in kept.items()})
    of_whole = {term: whole[term] * factor for term, factor in used.items()}
    scale = _WHOLE * (_USUAL_WEIGHT / (sum(of_whole.values()) or 1.0)) ** _LENGTH
    return WeightedQuery({term: weight * scale for term, weight in of_whole.items()}, divided)


def _terms_note(terms: int) -> tuple[str, ...]:
    return (f"of {terms} different words of the query, {QUERY_TERMS} were searched for",) if terms > QUERY_TERMS else ()


def _weights(
    text: str, terms: Mapping[str, int], better: Mapping[str, str], index: IndexSnapshot, language: str | None
) -> dict[str, float]:
    """Return the weights of the terms that some skill has, also as other spellings and stems."""
    weights = _own_weights(terms, better, index)
    for joined, *parts in index.analyzer.adjacent(text.replace("-", " ")):
        if index.skills_with(joined) <= min(map(index.skills_with, parts)):
            weights.setdefault(joined, _JOINED * index.weight(joined))
            continue
        # More skills have the one word than a part of it: the parts are another spelling.
        weights[joined] = _USUALLY_JOINED * index.weight(joined)
        weights.update({part: _APART * index.weight(part) for part in parts})
    for term in index.analyzer.stems(text, language) if language else ():
        weights.setdefault(term, _STEMMED * index.weight(term))
    return {term: weight for term, weight in weights.items() if weight}


def _own_weights(terms: Mapping[str, int], better: Mapping[str, str], index: IndexSnapshot) -> dict[str, float]:
    """Return the weights of terms that some skill has: their rarity, more if they are repeated."""
    times: dict[str, int] = {}
    for term, number in terms.items():
        term = better.get(term, term)
        times[term] = times.get(term, 0) + number
    return {
        term: weight if number == 1 else (1 + math.log(number)) * weight
        for term, number in times.items()
        if (weight := index.weight(term))
    }


_JOINED = 0.5
_USUALLY_JOINED = 2.0
_APART = 0.3
_STEMMED = 0.7
"""The weights of other spellings and stems of the words of a query, relative to its own."""
_MOST_PAIRS = 4.0
_PAIRS = 0.5
"""The largest ratio and its power by which English terms weigh more: those of a query are pairs of characters."""
_TRANSLATED_TERMS = QUERY_TERMS // 4
"""The most English terms that are searched for beside those of a query."""
_HIRAGANA = 0.3
"""The factor of a pair for each hiragana: most of them are grammar, which every Japanese text has."""


def _translated(text: str, index: IndexSnapshot) -> dict[str, float]:
    """Return the weights of English terms for the Chinese, Japanese and Korean ones of a query."""
    runs = () if text.isascii() else unspaced_runs(text)
    if not runs:
        return {}
    from skillshelf.search.translations import in_english

    weights: dict[str, float] = {}
    for words, share in in_english(runs):
        for term in index.analyzer.query_terms(words):
            weights[term] = max(weights.get(term, 0.0), share * index.weight(term))
    return dict([(term, weight) for term, weight in weights.items() if weight][:_TRANSLATED_TERMS])


def _for_unspaced(own: Mapping[str, float], english: Mapping[str, float]) -> Mapping[str, float]:
    """Return the terms of a query with English ones in place of those of unspaced scripts."""
    unspaced = {term: weight for term, weight in own.items() if unspaced_runs(term)}
    # What is one word in English has several pairs of characters in its own language.
    ratio = min(max(sum(unspaced.values()) / sum(english.values()), 1.0), _MOST_PAIRS)
    spaced = {term: weight for term, weight in own.items() if term not in unspaced}
    return {**{term: weight * ratio**_PAIRS for term, weight in english.items()}, **spaced}


def _is_hiragana(character: str) -> bool:
    return "\u3041" <= character <= "\u309f"


def _language(text: str, index: IndexSnapshot) -> str | None:
    """Return the language of a query, if it is not English and some skill is in it."""
    if not index.skills_with(language_mark("")):
        return None
    from skillshelf.search.languages import language_of_query

    language = language_of_query(Counter(text.lower().split()), STOP_WORDS)
    return language if language and index.skills_with(language_mark(language)) else None


# Scores ------------------------------------------------------------------------------------------

_FIRST_RESULTS = 48
_COMPARED = 10
"""The number of results whose scores are evidence of how well the first one fits."""

_Scores = list[tuple[float, int]]
"""Scores of the index with the positions of their skills."""


def by_relevance(index: IndexSnapshot, skills: Sequence[CatalogSkill], request: RankRequest) -> Ranked:
    """Score by the index, raised by the share of the skill's name that the query covers."""
    query, notes = weighted_query(request.query, index, skills)
    if index.unread:
        notes = (
            *notes,
            f"the text of {plural(index.unread, 'skill')} could not be read; name and description are searched",
        )
    bonus, failed = _bonus(request, skills)
    if request.prior is not None:
        bonus = _summed(bonus, request.prior(query.terms))
    # With additions any skill may become a result, and what the best is worth must not depend on who may see it.
    needed = len(skills) if bonus else max(request.needed, _COMPARED)
    by_words, is_complete = _by_words(index, skills, query, None if bonus else request.keep, needed)
    kept = [entry for entry in by_words if request.keep(entry[1])] if bonus else by_words
    found = [(_points(score), n) for score, n in _combined(by_words, bonus) if not bonus or request.keep(n)]
    return Ranked(found, (*notes, *failed), frozenset(query.terms), is_complete, _evidence(index, skills, query, kept))


def _by_words(
    index: IndexSnapshot,
    skills: Sequence[CatalogSkill],
    query: WeightedQuery,
    keep: Callable[[int], bool] | None,
    needed: int,
) -> tuple[_Scores, bool]:
    """Return at least so many of the skills that match best, if there are, and whether these are all that match."""
    most = _FIRST_RESULTS if needed < len(skills) else len(skills)
    search = index.query(query.terms, query.segments, query.share)
    while True:
        rough = index.best(search, most)
        found = [(score, n) for score, n in _covered(index, skills, rough, query) if keep is None or keep(n)]
        if len(rough) < min(most, len(skills)) or len(rough) == len(skills):
            return found, True
        found.sort(key=lambda entry: -entry[0])
        # No skill further down can be a result, even if the query covers its whole name.
        beyond = rough[-1][0] * (1 + index.coverage)
        if len(found) >= needed and _points(found[needed - 1][0]) > _points(beyond):
            return found, False
        most *= 4


def _covered(
    index: IndexSnapshot, skills: Sequence[CatalogSkill], rough: Sequence[tuple[int, int]], query: WeightedQuery
) -> Iterator[tuple[float, int]]:
    kind, coverage = index.analyzer.kind, index.coverage
    parts = query.segments or (query.terms,)
    has_term = set().union(*parts).__contains__
    for score, position in rough:
        name = _name_terms(skills[position].name, kind)
        shared = sum(map(has_term, name))
        if shared > 1 and len(parts) > 1:
            # The most terms of the name that are in one part.
            shared = max(sum(map(part.__contains__, name)) for part in parts)
        yield score * (1 + coverage * shared / (len(name) or 1)), position


@lru_cache(maxsize=1 << 15)
def _name_terms(name: str, kind: TermKind) -> tuple[str, ...]:
    """Return the terms of a skill's name, as a query for it would have them."""
    return tuple(analyzer(kind).query_terms(name, joined=False))


@lru_cache(maxsize=1 << 12)
def _summary_terms(name: str, description: str, kind: TermKind) -> frozenset[str]:
    return frozenset(analyzer(kind).count(f"{name} {description}"))


def _evidence(
    index: IndexSnapshot, skills: Sequence[CatalogSkill], query: WeightedQuery, found: _Scores
) -> MatchEvidence | None:
    """Return the numbers about the best of some skills; None if there is none."""
    if not found:
        return None
    highest = heapq.nlargest(_COMPARED, [score for score, _ in found])
    position = min((n for score, n in found if score == highest[0]), key=lambda n: skills[n].path)
    # Words that every skill of a large catalog has weigh nothing.
    top = highest[0] or 1.0
    summary = _summary_terms(skills[position].name, skills[position].description, index.analyzer.kind)
    part, matched = _best_part(index, position, query.segments or (query.terms,), summary)
    weight = sum(part.values())
    return MatchEvidence(
        score=highest[0] / UNIT,
        weight=weight,
        matched=matched / weight,
        summary=_shared_weight(part, summary) / weight,
        second=highest[1] / top if len(highest) > 1 else 0.0,
        others=sum(highest[1:]) / (_COMPARED - 1) / top,
        terms=len(part),
        segments=len(query.segments) or 1,
    )


def _best_part(
    index: IndexSnapshot, position: int, parts: Sequence[Mapping[str, float]], summary: Collection[str]
) -> tuple[Mapping[str, float], float]:
    """Return the first of the parts that have most weight in common with a skill, and that weight."""
    # A skill has the terms of its summary. Asking the index for the others takes long, so the parts with most weight in
    # the summary come first, and a part that weighs less than what is matched already cannot be the best.
    described = [_shared_weight(part, summary) for part in parts]
    asked: dict[str, bool] = dict.fromkeys(summary, True)
    best, most = -1, -1.0
    for number in sorted(range(len(parts)), key=lambda number: -described[number]):
        part = parts[number]
        if sum(part.values()) < most:
            continue
        new = [term for term in part if term not in asked]
        has = index.matched((position,), new)[position] if new else ()
        asked.update((term, term in has) for term in new)
        shared = sum(weight for term, weight in part.items() if asked[term])
        if shared > most or (shared == most and number < best):
            best, most = number, shared
    return parts[best], most


def _shared_weight(part: Mapping[str, float], terms: Collection[str]) -> float:
    return sum(weight for term, weight in part.items() if term in terms)


def _points(score: float) -> float:
    """Return a score between `token_overlap` and `prefix`."""
    top = SCORES["prefix"] - SCORES["token_overlap"]
    return round(SCORES["token_overlap"] + top * score / (score + _HALF), 4)


_HALF = 25_600.0
"""The score of the index that lies halfway between `token_overlap` and `prefix`."""


# Other scores -------------------------------------------------------------------------------------


_REASON_CHARS = 300
"""The most characters of the error of a scorer that a note has."""


def _bonus(request: RankRequest, skills: Sequence[CatalogSkill]) -> tuple[Mapping[int, float], tuple[str, ...]]:
    """Return what is added to the score of words for skills by position, where the best is 1, and notes."""
    if request.scorer is None:
        return {}, ()
    try:
        second = _second_scores(request.scorer, request.query, skills)
    except Exception as error:
        # The scorer is not our code: its failure costs its scores, not the search.
        reason = cut(fold(f"{type(error).__name__}: {error}"), _REASON_CHARS)
        return {}, (f"ranked by words alone, since the second scorer failed: {reason}",)
    return {position: score for position, score in enumerate(second) if score}, ()


def _summed(bonus: Mapping[int, float], more: Mapping[int, float]) -> Mapping[int, float]:
    """Return two additions together."""
    return {position: bonus.get(position, 0.0) + more.get(position, 0.0) for position in {**bonus, **more}}


def _combined(by_words: _Scores, bonus: Mapping[int, float]) -> _Scores:
    """Return the scores of words and additions together; without additions, the scores of words as they are."""
    if not bonus:
        return by_words
    top = max((score for score, _ in by_words), default=1.0) or 1.0
    sums = {position: score / top for score, position in by_words}
    for position, more in bonus.items():
        sums[position] = sums.get(position, 0.0) + more
    return [(_HALF * total, position) for position, total in sums.items()]


def _second_scores(scorer: Scorer, query: str, skills: Sequence[CatalogSkill]) -> list[float]:
    """Return the score of a second scorer for each skill; a negative number or NaN counts as 0."""
    given = [float(number) for number in scorer.score(query, skills)]
    if len(given) != len(skills):
        raise ConfigurationError(f"it gave {len(given)} numbers for {len(skills)} skills")
    if any(map(math.isinf, given)):
        raise ConfigurationError("it gave an infinite number")
    return [number if number > 0 else 0.0 for number in given]
