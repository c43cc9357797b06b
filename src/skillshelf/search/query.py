"""Search the skills of a catalog: those it names, those it ranks best, and a report."""

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog.document import body
from skillshelf.catalog.load import read_skill
from skillshelf.catalog.packed import SkillTable
from skillshelf.config.profile import PrefixMatch, Ranking, TermKind
from skillshelf.core.blake2 import blake2b
from skillshelf.core.limits import COPIES_BYTES, COPIES_COMPARED, QUERY_CHARS, SKILL_FILE_BYTES
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, folded_name, plural
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError, FileReadError, LimitExceeded, PathEscape, ResourceNotFound
from skillshelf.search.confidence import (
    BEGUN,
    NAMED,
    WEAK_BELOW,
    MatchFeatures,
    estimate,
    has_content,
    of_shared_words,
)
from skillshelf.search.rank import STOP_WORDS, Analyzer, IndexSnapshot, Word, analyzer, is_single, query_terms
from skillshelf.search.relevance import SCORES, Ranked, RankRequest, Reason, Scorer, by_relevance

if TYPE_CHECKING:
    from skillshelf.search.usage_prior import Prior, QueryPrior

__all__ = [
    "RANKINGS",
    "Finder",
    "Scorer",
    "SearchReport",
    "SearchResult",
    "clamped_limit",
    "excerpt",
    "places",
    "terms_in",
]


class SearchResult(NamedTuple):
    """A skill, its score, and the reason for it.

    `why` says in words what matched; `copies` are the paths of skills with the same text, which it stands for.
    """

    score: float
    reason: Reason
    skill: CatalogSkill
    why: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def and_copies(self) -> str:
        """The number of copies in words; empty if there are none."""
        count = len(self.copies)
        return "" if not count else "and 1 copy" if count == 1 else f"and {count} copies"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "score": self.score,
            "reason": self.reason,
            "skill": self.skill.to_dict(),
            "why": [*self.why],
            "copies": [*self.copies],
        }


class SearchReport(NamedTuple):
    """The best results, their number, and whether there were more.

    `notes` says how the query was changed; `terms` are the terms that were searched for, as the index spells them;
    `total` is the number of all skills that match, if they were counted. `confidence` is the estimated probability
    that the first result fits; the report is `weak` if it is low, or if there is no result. `prior` is what earlier use
    added to the scores, if it added anything.
    """

    query: str
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which is not used on a report
    truncated: bool
    results: tuple[SearchResult, ...]
    notes: tuple[str, ...] = ()
    terms: frozenset[str] = frozenset()
    total: int | None = None
    confidence: float = 0.0
    weak: bool = False
    prior: "QueryPrior | None" = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "query": self.query,
            "count": self.count,
            "truncated": self.truncated,
            "confidence": self.confidence,
            "weak": self.weak,
            "notes": [*self.notes],
            "results": [result.to_dict() for result in self.results],
        }


def clamped_limit(limit: int, most: int) -> tuple[int, tuple[str, ...]]:
    """Clamp the requested limit; return it with a note if it was reduced."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigurationError(f"a limit must be a whole number of at least 1, not {limit!r}")
    return min(limit, most), (f"the limit was reduced from {limit} to {most}",) if limit > most else ()


class _Match(NamedTuple):
    """A skill that matches: its score and reason, its order within a prefix, and its position in the catalog."""

    score: float
    reason: Reason
    relevance: float
    position: int
    copies: tuple[int, ...] = ()

    @property
    def is_exact(self) -> bool:
        return self.reason in ("exact_path", "exact_name")


def _within_length(query: str, terms: TermKind) -> tuple[str, tuple[str, ...]]:
    """Return a query without blanks around it; of a long one its beginning, and perhaps its end, with a note."""
    if terms == "plain" and len(query) > QUERY_CHARS:
        return query[:QUERY_CHARS].strip(), (f"the query was cut to its first {QUERY_CHARS} characters",)
    query = query.strip()
    if len(query) <= QUERY_CHARS:
        return query, ()
    # A request stands before or after what it is about; the middle of so long a message is a log or a file.
    half = QUERY_CHARS // 2
    note = f"the query has {len(query):,} characters; its first and last {half:,} were searched for"
    return f"{query[:half]}\n{query[-half:]}", (note,)


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
        terms: TermKind = "extended",
        prefix: PrefixMatch = "flat",
        copies: Literal["keep", "collapse"] = "keep",
        weak: Literal["keep", "few"] = "keep",
    ) -> None:
        self.skills = skills
        self._cwd = cwd
        self._ranking = ranking
        self._open_index: Callable[[], IndexSnapshot] | None = open_index
        self._index: IndexSnapshot | None = None
        self._rank = {scope: n for n, scope in enumerate(scopes)}
        self._table = SkillTable.of(skills)
        self._terms: TermKind = terms
        self._prefix = prefix
        self._copies = copies
        self._weak = weak
        self._texts: dict[int, bytes | None] = {}
        self._starts: dict[int, tuple[str, ...]] = {}
        self._trusted: dict[str, list[int]] | None = None

    @property
    def index(self) -> "IndexSnapshot":
        """The index of these skills, opened at the first use."""
        if self._index is None:
            assert self._open_index is not None
            self._index = self._open_index()
            # It knows the shelf, which knows this finder: without it both go when the last user does.
            self._open_index = None
        return self._index

    def part(self, keep: Callable[[CatalogSkill], bool]) -> "Finder":
        """Return a finder of some of these skills; nothing that it finds or says depends on the others."""
        from skillshelf.search.index_part import IndexPart

        kept = [position for position, skill in enumerate(self.skills) if keep(skill)]
        return Finder(
            [self.skills[position] for position in kept],
            cwd=self._cwd,
            scopes=[*self._rank],
            ranking=self._ranking,
            open_index=lambda: IndexPart(self.index, kept),
            terms=self._terms,
            prefix=self._prefix,
            copies=self._copies,
            weak=self._weak,
        )

    @property
    def is_prepared(self) -> bool:
        """True if a search has nothing to open first."""
        return self._index is not None or self._ranking != "relevance"

    def prepare(self) -> None:
        """Open the index now if the ranking uses it."""
        if self._ranking == "relevance":
            self._index = self.index

    def tie_break(self, position: int) -> tuple[int, str]:
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
        every: bool = False,
        prior: "Prior | None" = None,
    ) -> SearchReport:
        """Return the skills that match a query, best first; the result depends on skills, query and prior only.

        With `every`, copies are results of their own, and weak results are not cut.
        """
        shown = cut(query, QUERY_CHARS + 1)
        wanted, about_length = _within_length(query, self._terms)
        notes += about_length
        if not wanted:
            return SearchReport(shown, 0, False, (), notes, weak=True)
        used: list[QueryPrior] = []
        bonuses = None if prior is None else lambda weights: self._bonuses(prior, weights, used)
        request = RankRequest(wanted, lambda n: keep(self.skills[n]), limit + 1, scorer, bonuses)
        collapse = self._copies == "collapse" and not every
        while True:
            found, ranked = self._matches(request)
            total = len(found) if ranked.is_complete else None
            matches, about_copies = self._collapsed(found, limit) if collapse else (found, ())
            if ranked.is_complete or len(matches) > limit or len(found) < request.needed:
                break
            request = request._replace(needed=4 * request.needed)
        best = (_with_half_prefixes(matches, limit) if self._prefix == "word" else matches)[:limit]
        confidence = self._confidence(wanted, matches, ranked)
        weak = confidence < WEAK_BELOW
        if weak and self._weak == "few" and not every:
            best = best[:_FEW]
        results = tuple(
            _with_use(result, self._trusted_paths(match), used) if used else result
            for result, match in zip(self._results(best, wanted, ranked.terms), best, strict=True)
        )
        return SearchReport(
            shown,
            len(results),
            len(matches) > len(results),
            results,
            notes + ranked.notes + about_copies,
            ranked.terms,
            total,
            confidence,
            weak,
            *used,
        )

    def _matches(self, request: RankRequest) -> tuple[list[_Match], Ranked]:
        """Return what matches, best first: skills that the query names, and, where there is room, those it ranks."""
        named = {n: reason for n, reason in self._named(request.query).items() if request.keep(n)}
        is_flat = self._prefix == "flat"
        first = {n: reason for n, reason in named.items() if is_flat or reason != "prefix"}
        ranked = Ranked((), is_complete=False)
        if len(first) < request.needed:
            keep = request.keep
            ranked = RANKINGS[self._ranking](
                self,
                request._replace(keep=lambda n: n not in first and keep(n), needed=request.needed - len(first)),
            )
        points = {position: score for score, position in ranked.found}
        found = [_Match(SCORES[reason], reason, points.pop(n, 0.0), n) for n, reason in named.items()]
        found += [_Match(score, "token_overlap", 0.0, position) for position, score in points.items()]
        return self._sorted(found), ranked

    def _sorted(self, found: Iterable[_Match]) -> list[_Match]:
        """Return matches, best first; few are equal, and only those need a tie-break."""
        groups: dict[tuple[float, float], list[_Match]] = {}
        for match in found:
            groups.setdefault((-match.score, -match.relevance), []).append(match)
        for group in groups.values():
            if len(group) > 1:
                group.sort(key=lambda match: self.tie_break(match.position))
        return [match for key in sorted(groups) for match in groups[key]]

    def _bonuses(self, prior: "Prior", weights: Mapping[str, float], used: "list[QueryPrior]") -> Mapping[int, float]:
        """Return what a prior adds for trusted skills by position; the part that counts becomes the only one `used`."""
        used.clear()
        if (found := prior(weights)) is None:
            return {}
        if self._trusted is None:
            self._trusted = {}
            for position, skill in enumerate(self.skills):
                if skill.trusted:
                    self._trusted.setdefault(skill.real_path, []).append(position)
        known = {path: bonus for path, bonus in found.bonuses.items() if path in self._trusted}
        if known:
            used.append(found._replace(bonuses=known))
        return {position: bonus.share for path, bonus in known.items() for position in self._trusted[path]}

    def ranking(self, query: str, *, most: int, keep: Callable[[CatalogSkill], bool]) -> tuple[SearchResult, ...]:
        """Return the best skills for a query; none is left out for being a copy or a weak match.

        A report may show fewer: tests of where a skill stands need the order that it is made from.
        """
        wanted, _ = _within_length(query, self._terms)
        if not wanted:
            return ()
        found, _ = self._matches(RankRequest(wanted, lambda n: keep(self.skills[n]), most + 1, None))
        return tuple(SearchResult(match.score, match.reason, self.skills[match.position]) for match in found[:most])

    def _named(self, query: str) -> dict[int, Reason]:
        """Return the skills whose path or name equals the query, or whose name begins with it, with the reason."""
        folded = folded_name(query)
        exact = set(self._table.named(folded))
        begun = self._table.begun(folded)
        if self._prefix == "word":
            begun = [n for n in begun if n in exact or _ends_word(self.skills[n].name, folded)]
        reasons: dict[int, Reason] = {position: "exact_name" if position in exact else "prefix" for position in begun}
        path = os.path.normpath(os.path.join(self._cwd, query))
        for candidate in (path, os.path.join(path, "SKILL.md")):
            reasons |= dict.fromkeys(self._table.at_path(candidate), "exact_path")
        return reasons

    def _results(self, best: Sequence[_Match], query: str, terms: Set[str]) -> Iterator[SearchResult]:
        """Yield matches as results, each with the reason for it in words."""
        by_words = [match.position for match in best if match.reason not in _NAMED]
        why_words = self._why_words(by_words, query, terms)
        for match in best:
            why = _NAMED.get(match.reason) or _matched(why_words[match.position])
            copies = tuple(self.skills[n].path for n in match.copies)
            yield SearchResult(match.score, match.reason, self.skills[match.position], (why,), copies)

    def _why_words(self, positions: Sequence[int], query: str, terms: Set[str]) -> Mapping[int, Sequence[str]]:
        """Return the words of a query for which each of some skills is a result."""
        if self._ranking != "relevance":
            return {position: _shared_words(query, self.skills[position]) for position in positions}
        analyzer = self.index.analyzer
        has: dict[int, Set[str]] = {}
        for position in positions:
            skill = self.skills[position]
            has[position] = _summary_terms(skill.name, skill.description, analyzer.kind).intersection(terms)
        # Asking the index for the words of texts costs as much as the whole search.
        has |= self._in_text([position for position in positions if not has[position]], terms)
        words = _QueryWords(query, analyzer)
        # What was searched for instead of a word is not in the query.
        return {position: words.written(found) or sorted(found) for position, found in has.items()}

    def _trusted_paths(self, match: _Match) -> list[str]:
        """Return the real paths of the trusted skills behind a match: itself, and its copies."""
        skills = [self.skills[position] for position in (match.position, *match.copies)]
        return [skill.real_path for skill in skills if skill.trusted]

    def _in_text(self, positions: Collection[int], terms: Set[str]) -> dict[int, Set[str]]:
        """Return the rarest terms that each of some skills has; of a long query some, if it has any of these."""
        found: dict[int, Set[str]] = {}
        rarest = sorted(terms, key=lambda term: (-self.index.weight(term), term)) if positions else []
        for start in range(0, len(rarest), _TERMS_ASKED):
            if left := [position for position in positions if not found.get(position)]:
                found |= self.index.matched(left, rarest[start : start + _TERMS_ASKED])
        return found

    def _confidence(self, query: str, matches: Sequence[_Match], ranked: Ranked) -> float:
        """Return how probable it is that the first match fits."""
        if (settled := self._settled(query, matches, ranked)) is not None:
            return settled
        if self._ranking == "overlap":
            words = set(_TOKEN.findall(query.lower())) - STOP_WORDS
            return of_shared_words(
                len(words.intersection(_shared_words(query, self.skills[matches[0].position]))), len(words)
            )
        features = self._features(query, matches, ranked)
        return 0.0 if features is None else estimate(features)

    def _settled(self, query: str, matches: Sequence[_Match], ranked: Ranked) -> float | None:
        """Return the confidence if it does not depend on scores: the query says nothing, or is in a name."""
        if not matches:
            return 0.0
        if matches[0].is_exact:
            return NAMED
        if not has_content(query) or (ranked.evidence is not None and not ranked.evidence.score):
            # Small talk, or words that every skill has.
            return 0.0
        name = self.skills[matches[0].position].name
        if matches[0].reason == "prefix" and _ends_word(name, folded_name(query)):
            return BEGUN
        terms = query_terms(query, self._terms)
        return BEGUN if terms and terms.keys() <= _query_terms_of(name, self._terms) else None

    def _features(self, query: str, matches: Sequence[_Match], ranked: Ranked) -> MatchFeatures | None:
        """Return the numbers that tell how well the first match by words fits; None if there is none."""
        evidence = ranked.evidence
        if evidence is None:
            return None
        by_description: dict[str, float] = {}
        for match in matches[: 4 * _COMPARED]:
            if points := match.relevance or (match.reason == "token_overlap" and match.score):
                description = self.skills[match.position].description
                if by_description.setdefault(description, points) < points:
                    by_description[description] = points
        scores = sorted(map(_words_score, by_description.values()), reverse=True)[:_COMPARED]
        first, others = (scores[:1] or [0.0])[0] or 1.0, scores[1:]
        terms = query_terms(query, self._terms)
        unknown = 0 if evidence.segments > 1 else sum(not self.index.skills_with(term) for term in terms)
        # A word that no skill has weighs as much as the rarest that one has.
        known = evidence.weight / (evidence.weight + unknown * math.log(1 + (len(self.skills) - 0.5) / 1.5))
        return MatchFeatures(
            score=math.log1p(evidence.score),
            share=evidence.score / evidence.weight,
            matched=evidence.matched * known,
            summary=evidence.summary * known,
            second=others[0] / first if others else 0.0,
            others=sum(others) / (_COMPARED - 1) / first,
            terms=math.log1p(evidence.terms),
            known=known,
        )

    def features(
        self, query: str, *, keep: Callable[[CatalogSkill], bool]
    ) -> tuple[float | None, MatchFeatures | None]:
        """Return the confidence of a search if it is settled, and else the numbers that it is computed from."""
        matches, ranked = self._matches(RankRequest(query.strip(), lambda n: keep(self.skills[n]), _COMPARED, None))
        return self._settled(query, matches, ranked), self._features(query, matches, ranked)

    def _collapsed(self, found: Sequence[_Match], limit: int) -> tuple[list[_Match], tuple[str, ...]]:
        """Return the matches with equal texts as one, as far as places go, and a note if a limit was reached.

        The skill that is shown is one that models may use if there is one, else any; of these the first by scope, and
        then the best match. It takes the best place among its equals. A skill that the query names exactly is not
        shown under another name.
        """
        texts = _ComparedTexts(self.skills, self._texts, self._starts)
        alike = texts.alike([match.position for match in found[:COPIES_COMPARED]])
        collapsed: dict[int, _Match] = {}
        gone: set[int] = set()
        places = 0
        for at, match in enumerate(found):
            if places > limit:
                break
            if at not in gone and at in alike and (text := texts.digest(match.position)):
                same = [n for n in alike[at] if n not in gone and texts.digest(found[n].position) == text]
                one = self._with_named([(n, found[n]) for n in same])
                collapsed.update([self._shown_of(one)])
                gone.update(n for n, _ in one)
            places += at in collapsed or at not in gone
        rest = [collapsed.get(at, match) for at, match in enumerate(found) if at in collapsed or at not in gone]
        return rest, texts.notes

    def _with_named(self, same: Sequence[tuple[int, _Match]]) -> Sequence[tuple[int, _Match]]:
        """Return those of some matches with one text that one result stands for.

        A skill that the query names, but that models may not use, does not stand for one that they may use.
        """
        named = [(at, match) for at, match in same if match.is_exact]
        usable = [match for _, match in same if _is_usable(self.skills[match.position])]
        return named if named and usable and not any(match.is_exact for match in usable) else same

    def _shown_of(self, same: Sequence[tuple[int, _Match]]) -> tuple[int, _Match]:
        """Return the place of some matches with one text, and the match that is shown there for all of them."""
        # An untrusted copy neither stands for a trusted skill nor moves it.
        usable = [(at, match) for at, match in same if _is_usable(self.skills[match.position])] or same
        place, best = usable[0]
        equals = [match.position for _, match in usable if match.reason == best.reason]
        shown = min(equals, key=lambda position: self.tie_break(position)[0])
        others = sorted((match.position for _, match in same if match.position != shown), key=self.tie_break)
        return place, best._replace(position=shown, copies=tuple(others))


_FEW = 3
"""The most results of a weak report."""


def _with_half_prefixes(matches: Sequence[_Match], limit: int) -> list[_Match]:
    """Return matches in which prefixes have at most half of the places; the others of them rank by their words."""
    exact = [match for match in matches if match.is_exact]
    begun = [match for match in matches if match.reason == "prefix"]
    others = [match for match in matches if match.reason == "token_overlap"]
    room = max(0, limit - len(exact))
    first = max(1, room // 2, room - len(others))
    by_words = [match._replace(score=match.relevance, reason="token_overlap") for match in begun[first:]]
    return [*exact, *begun[:first], *sorted([*by_words, *others], key=lambda match: -match.score)]


_WITH_DIGIT = 3
"""The letters after which a digit begins a word: `python` begins `python3-tools`, but `k` does not begin `k8s`."""


def _ends_word(name: str, start: str) -> bool:
    """Return whether a word of a name ends after its first letters, which are folded."""
    folded = folded_name(name)
    written = name if len(name) == len(folded) else folded
    before, after = written[len(start) - 1], written[len(start)]
    if not (before.isalnum() and after.isalnum()):
        return True
    if after.isdigit() and not before.isdigit():
        return len(start) >= _WITH_DIGIT
    # Chinese, Japanese and Korean have no blanks; other scripts change at the end of a word.
    return is_single(after) or is_single(before) or (before.islower() and after.isupper())


# Why a skill is a result --------------------------------------------------------------------------

_NAMED: Mapping[Reason, str] = {
    "exact_path": "its path is the query",
    "exact_name": "its name is the query",
    "prefix": "its name begins with the query",
}
_COMPARED = 10
"""The number of matches whose scores tell how far the first one is ahead."""
_WORDS_NAMED = 8
_WORD_CHARS = 32
_TERMS_ASKED = 46
"""The terms that the index is asked about at once for a sentence that names eight."""


@lru_cache(maxsize=1 << 12)
def _summary_terms(name: str, description: str, kind: TermKind) -> frozenset[str]:
    return frozenset(analyzer(kind).query_terms(f"{name} {description}"))


@lru_cache(maxsize=1 << 12)
def _query_terms_of(name: str, kind: TermKind) -> frozenset[str]:
    return frozenset(analyzer(kind).query_terms(name))


def _words_score(points: float) -> float:
    """Return a number in proportion to the score of words behind the points of a result."""
    share = (points - SCORES["token_overlap"]) / (SCORES["prefix"] - SCORES["token_overlap"])
    return share / max(1 - share, 1e-6)


def _matched(words: Iterable[str]) -> str:
    """Return in words what of a query matched, each word once and as it is written there."""
    once = list({word.casefold(): cut(word, _WORD_CHARS) for word in words}.values())
    if not once:
        return "matched by the second scorer"
    more = f" and {len(once) - _WORDS_NAMED} more" if len(once) > _WORDS_NAMED else ""
    return f"matched: {', '.join(once[:_WORDS_NAMED])}{more}"


def _with_use(result: SearchResult, paths: Iterable[str], used: "Sequence[QueryPrior]") -> SearchResult:
    """Return a result that also says how often it was loaded after similar searches, if that raised its score.

    The real `paths` are those of trusted skills that it is or stands for.
    """
    bonuses = [used[0].bonuses[path] for path in {*paths} & used[0].bonuses.keys()] if used else []
    if not bonuses or result.reason in ("exact_path", "exact_name"):
        return result
    times = sum(bonus.times for bonus in bonuses)
    return result._replace(why=(*result.why, f"loaded {plural(times, 'time')} after similar searches"))


def places(text: str, terms: Set[str]) -> list[tuple[int, int]]:
    """Return the start and end of each match of the terms in a text."""
    return _places(analyzer().words(text), terms)


def _places(words: Iterable[Word], terms: Set[str]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for word in words:
        if not terms.isdisjoint(word.terms):
            # Overlapping pairs of characters, as in Chinese, are one match, and so are a compound and its parts.
            start, end = found.pop() if found and found[-1][1] > word.start else (word.start, word.end)
            found.append((start, max(end, word.end)))
    return found


class _QueryWords:
    """The words of a query, divided once for all results."""

    def __init__(self, text: str, analyzer: Analyzer) -> None:
        self.text = text
        self._words = list(analyzer.words(text))
        self._numbers: dict[str, list[int]] = {}
        for number, word in enumerate(self._words):
            for term in word.terms:
                self._numbers.setdefault(term, []).append(number)

    def written(self, terms: Set[str]) -> list[str]:
        """Return what stands in the query for some terms."""
        numbers = {number for term in terms for number in self._numbers.get(term, ())}
        return [self.text[start:end] for start, end in _places(map(self._words.__getitem__, sorted(numbers)), terms)]


def terms_in(text: str, terms: Set[str]) -> frozenset[str]:
    """Return the terms that occur in a text."""
    return frozenset(term for word in analyzer().words(text) for term in word.terms if term in terms)


_LINES_SEARCHED = 5000


def excerpt(body: str, terms: Set[str]) -> str:
    """Return the first line of a body with the most terms, or an empty text if no line has one."""
    best, most = "", 0
    for line in body.splitlines()[:_LINES_SEARCHED]:
        found = len(terms_in(line, terms))
        if found > most:
            best, most = line, found
    return best.lstrip(" \t#*->|").rstrip(" \t|")


# Equal texts --------------------------------------------------------------------------------------

_FILE_COST = 16 * 1024
"""The bytes that opening a file counts for."""


class _ComparedTexts:
    """The texts of skills without name and blanks; those read before are in `known`, their first words in `starts`."""

    def __init__(
        self, skills: Sequence[CatalogSkill], known: dict[int, bytes | None], starts: dict[int, tuple[str, ...]]
    ) -> None:
        self._skills = skills
        self._known = known
        self._digests: dict[int, bytes | None] = {}
        self._starts = starts
        self._left = COPIES_BYTES

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said about the comparison."""
        return ("there are too many copies to compare all of them",) if self._left < 0 else ()

    def alike(self, found: Iterable[int]) -> dict[int, list[int]]:
        """Return for each place whose skill may have a copy the places of skills with descriptions that begin alike."""
        groups: dict[object, list[int]] = {}
        for at, position in enumerate(found):
            if (start := self._starts.get(position)) is None:
                start = self._starts[position] = tuple(self._skills[position].description.split(None, 4)[:4])
            groups.setdefault(start, []).append(at)
        return {at: group for group in groups.values() if len(group) > 1 for at in group}

    def digest(self, position: int) -> bytes | None:
        """Return the digest of a text; None if it cannot be read, or too much was read for one search."""
        if position not in self._digests:
            skill = self._skills[position]
            # What an earlier search read costs as much: no answer depends on what was asked before.
            self._left -= _FILE_COST + skill.size
            if self._left >= 0 and position not in self._known:
                self._known[position] = _text_digest(skill)
            self._digests[position] = self._known[position] if self._left >= 0 else None
        return self._digests[position]


def _text_digest(skill: CatalogSkill) -> bytes | None:
    if skill.scope == "remote" or skill.hidden == "changed":
        # The text of the one is not fetched before a load, that of the other is not handed out.
        return None
    try:
        data = read_skill(skill, limit=SKILL_FILE_BYTES).data
    except (FileReadError, IsADirectoryError, ResourceNotFound, PathEscape, LimitExceeded):
        return None
    text = body(data)
    head = re.sub(rb"(?m)^name[ \t]*:.*$", b"", data[: len(data) - len(text)])
    return blake2b(b" ".join([*head.split(), b"\0", *text.split()]), digest_size=16).digest()


def _is_usable(skill: CatalogSkill) -> bool:
    return skill.trusted and skill.hidden is None


# Shared words, counted ----------------------------------------------------------------------------

_TOKEN = lazy_pattern(r"[a-z0-9]+")


def _by_overlap(finder: Finder, request: RankRequest) -> Ranked:
    """Score 100, plus one for each word that the query shares with name and description."""
    words = set(_TOKEN.findall(request.query.lower()))
    found = []
    for position, skill in enumerate(finder.skills):
        if request.keep(position) and (shared := words.intersection(_words_of(skill))):
            found.append((float(SCORES["token_overlap"] + len(shared)), position))
    return Ranked(found)


def _shared_words(query: str, skill: CatalogSkill) -> list[str]:
    """Return the words of a query that a name and description have, in the order of the query."""
    words = dict.fromkeys(_TOKEN.findall(query.lower()))
    has = set(_words_of(skill))
    return [word for word in words if word in has]


def _words_of(skill: CatalogSkill) -> list[str]:
    return _TOKEN.findall(f"{skill.name} {skill.description}".lower())


RANKINGS: Mapping[Ranking, Callable[[Finder, RankRequest], Ranked]] = {
    "relevance": lambda finder, request: by_relevance(finder.index, finder.skills, request),
    "overlap": _by_overlap,
}
