"""Split text into terms, weight them, and score skills: normalised, split, stemmed; pairs in unspaced scripts."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from skillshelf.config.profile import TermKind
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.search.spellings import american, compounds, joined_words, signs, without_accents, without_signs

if TYPE_CHECKING:
    import tantivy

__all__ = [
    "PER_UNIT",
    "STOP_WORDS",
    "UNIT",
    "WEIGHTS",
    "Analyzer",
    "IndexSnapshot",
    "TermCounts",
    "Weights",
    "Word",
    "analyzer",
    "impact_terms",
    "is_mostly_unspaced",
    "is_single",
    "language_mark",
    "query_terms",
    "unspaced_runs",
]


_STOP_TEXT = (
    "a about above after again all also am an and any are as at be because been before being below between both but"
    " by can could d did do does doing don down during each few for from further get give had has have having he help"
    " her here hers him his how i if in into is it its just let like ll m make me more most my need no nor not now of"
    " off on once only or other our ours out over own please re s same she should so some such t than that the their"
    " theirs them then there these they this those through to too under until up us use used using ve very want was"
    " we were what when where which while who whom why will with would you your yours"
)
STOP_WORDS = frozenset(_STOP_TEXT.split())
"""English words in a query that say nothing about a skill."""

WORD_CHARS = 64
"""A longer run of letters is a key or an encoded file, which is not searched for."""

_WORD = lazy_pattern(r"[^\W_]+")
_CAMEL_CASE = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Chinese characters, kana and hangul: written without blanks, or with endings that change the word.
_UNSPACED = lazy_pattern(
    "([\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f]+)"
)
_FIRST_UNSPACED = "\u3005"
# Every ASCII character other than letters and digits ends a chunk; other characters are split chunk by chunk.
_BLANKS = bytes(point if point > 0x7F or chr(point).isalnum() else 0x20 for point in range(256))

_CHUNKS_KEPT = 200_000


class Word(NamedTuple):
    """The position of a word in a text, and its terms."""

    start: int
    end: int
    terms: tuple[str, ...]

    @property
    def order(self) -> tuple[int, int]:
        """The sort key by which a compound comes before its parts."""
        return self.start, -self.end


class TermCounts(NamedTuple):
    """The terms of a text with their counts, the number of its words, and its language if it is not English."""

    counts: dict[str, int]
    length: int
    language: str | None = None


class Analyzer(dict[str, str]):
    """A mapping from chunks of text to their terms, computed once each: texts repeat few chunks often.

    Plain terms are stems of words as they are written. Extended ones bring spellings together, and a text has compounds
    and stems of its own language besides.
    """

    def __init__(self, kind: TermKind) -> None:
        import tantivy

        super().__init__()
        self.kind = kind
        self._is_extended = kind == "extended"
        builder, stemmer = tantivy.TextAnalyzerBuilder, tantivy.Filter.stemmer("english")
        self._stem_one = builder(tantivy.Tokenizer.raw()).filter(stemmer).build().analyze
        self._stem_all = builder(tantivy.Tokenizer.whitespace()).filter(stemmer).build().analyze

    def __missing__(self, chunk: str) -> str:
        if len(self) >= _CHUNKS_KEPT:
            self.clear()
        if not chunk.isascii():
            terms = " ".join(self._analyze(chunk))
        elif (lowered := chunk.lower())[1:] != chunk[1:] and not chunk.isupper():
            terms = " ".join(self._plain(chunk))
        else:
            # Nearly all chunks are of this kind, and the general way takes ten times as long.
            terms = self._stem(lowered) if len(chunk) <= WORD_CHARS else ""
        self[chunk] = terms
        return terms

    def count(self, text: str) -> dict[str, int]:
        """Return every term of a text with its count."""
        # Counted before they are looked up: a text has each of its chunks more than twice.
        return self._count(Counter(self._chunks(text)))

    def indexed(self, text: str, least: int = 0) -> "TermCounts":
        """Return the terms by which a text is found: also compounds as one word, and stems in its own language.

        A language is told by that many of its commonest words; by 0, none is.
        """
        chunks = Counter(self._chunks(text))
        counts = self._count(chunks)
        length = sum(counts.values())
        if not self._is_extended:
            return TermCounts(counts, length)
        for word, times in Counter(joined_words(text)).items():
            counts[self[word]] = counts.get(self[word], 0) + times
        from skillshelf.search.languages import language_of

        language = language_of(chunks, least=least) if least else None
        if language:
            for term, times in self._stems(chunks, language):
                counts.setdefault(term, times)
        return TermCounts(counts, length, language)

    def _stems(self, chunks: Mapping[str, int], language: str) -> Iterator[tuple[str, int]]:
        from skillshelf.search.languages import stemmed

        for chunk, times in chunks.items():
            for word in _WORD.findall(chunk):
                if term := stemmed(word.lower(), language):
                    yield term, times

    def stems(self, text: str, language: str) -> dict[str, str]:
        """Return the stems of the words of a text in a language, with their usual terms."""
        from skillshelf.search.languages import stemmed

        found = {}
        for word in _WORD.findall(text):
            if word.lower() not in STOP_WORDS and (term := stemmed(word.lower(), language)) and term != self[word]:
                found[term] = self[word]
        return found

    def _count(self, chunks: Mapping[str, int]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for terms, times in zip(map(self.__getitem__, chunks), chunks.values(), strict=True):
            counts[terms] = counts.get(terms, 0) + times
        counts.pop("", None)
        for several in [terms for terms in counts if " " in terms]:
            times = counts.pop(several)
            for term in several.split():
                counts[term] = counts.get(term, 0) + times
        return counts

    def query_terms(self, text: str, *, joined: bool = True) -> Mapping[str, int]:
        """Return the terms of a query with their counts; stop words count only if there is nothing else."""
        is_ascii = text.isascii()
        words = self._chunks(text)
        if not is_ascii:
            words = [word for chunk in words for word in self._words(chunk)]
        if joined and self._is_extended and (whole := joined_words(text)):
            # What is left of `e-mail` and `a/b` is a letter that says nothing.
            letters = {word[0] for word in whole} | {word[-1] for word in whole}
            words = [word for word in words if len(word) > 1 or word.lower() not in letters] + whole
        significant = [word for word in words if word.lower() not in STOP_WORDS]
        terms = dict(Counter(" ".join(map(self.__getitem__, significant or words)).split()))
        if is_ascii:
            return terms
        # A single character of an unspaced script is nearly everywhere: it too counts only if there is nothing else.
        return {term: times for term, times in terms.items() if not is_single(term)} or terms

    def adjacent(self, text: str) -> Iterator[tuple[str, str, str]]:
        """Yield the term of adjacent words of a query as if they were one word, such as `data base`, and theirs."""
        words = text.split()
        firsts = [word.lower() if _is_joinable(word) else None for word in words[:-1]]
        for first, second in zip(firsts, words[1:], strict=True):
            if not first or not _is_joinable(second := second.rstrip(".,;:!?)")):
                continue
            # Two long words are no word together.
            if joined := self[first + second.lower()]:
                yield joined, self[first], self[second.lower()]

    def plain_words(self, text: str) -> dict[str, str]:
        """Return the plain words of a text by term, as they were written; not those in camel case."""
        plain = filter(_is_plain, self._chunks(text))
        return {self[chunk]: chunk.lower() for chunk in plain if " " not in self[chunk]}

    def stems_of(self, words: Iterable[str]) -> list[str]:
        """Return the terms of plain words in small letters, without keeping them: most are no words at all."""
        if self._is_extended:
            words = map(american, words)
        found: list[str] = self._stem_all(" ".join(words))
        return found

    def words(self, text: str) -> Iterator[Word]:
        """Yield the words of a text with their positions, to mark matches; for unspaced scripts, the pairs.

        A compound comes before its parts.
        """
        found = list(self._simple_words(text))
        if self._is_extended and (other := [*compounds(text), *signs(text)]):
            found = [*(Word(start, end, (self[joined],)) for start, end, joined in other), *found]
            found.sort(key=lambda word: word.order)
        yield from found

    def _simple_words(self, text: str) -> Iterator[Word]:
        for match in _WORD.finditer(text):
            at = match.start()
            if match[0].isascii():
                yield Word(at, match.end(), tuple(self[match[0]].split()))
                continue
            for number, part in enumerate(_by_script(match[0])):
                if number % 2:
                    yield from (Word(at + n, at + n + 2, (part[n : n + 2],)) for n in range(len(part) - 1))
                elif part:
                    yield Word(at, at + len(part), tuple(self[part].split()))
                at += len(part)

    def _analyze(self, chunk: str) -> list[str]:
        terms: list[str] = []
        for word in self._words(chunk):
            parts = _by_script(word)
            for run in parts[1::2]:
                terms += map(str.__add__, run, run[1:])
                # The last is a single character: a query for one finds it at any position.
                terms.append(run[-1])
            for part in filter(None, parts[::2]):
                terms += self._plain(part)
        return terms

    def _plain(self, word: str) -> list[str]:
        """Return the whole word and the parts of camel case: `GitHub` is found as `github` and as `hub`."""
        if len(word) > WORD_CHARS:
            return []
        whole = self._stem(word.lower())
        if word.islower() or word.isupper() or len(parts := _CAMEL_CASE.split(word)) == 1:
            return [whole]
        return [whole, *(self._stem(part.lower()) for part in parts)]

    def _stem(self, word: str) -> str:
        if self._is_extended:
            if word == _NO_PLURAL:
                return word
            word = american(word)
        stem: str = self._stem_one(word)[0]
        return stem

    def _chunks(self, text: str) -> list[str]:
        text = without_signs(text) if self._is_extended else text
        return text.encode("utf-8", "replace").translate(_BLANKS).decode("utf-8").split()

    def _words(self, chunk: str) -> list[str]:
        """Return the words of a chunk: beyond ASCII it may contain other quotes and dashes."""
        if chunk.isascii():
            return [chunk]
        from unicodedata import normalize

        text = normalize("NFKC", chunk)
        return _WORD.findall(without_accents(text) if self._is_extended else text)


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and len(word) <= WORD_CHARS


def _is_joinable(word: str) -> bool:
    return _is_plain(word) and word.lower() not in STOP_WORDS


def _by_script(word: str) -> list[str]:
    """Return the parts of a word in turn: other scripts, unspaced ones, and so on."""
    return _UNSPACED.split(word) if max(word) >= _FIRST_UNSPACED else [word]


def unspaced_runs(text: str) -> list[str]:
    """Return the runs of Chinese characters, kana and hangul in a text."""
    return _UNSPACED.findall(text)


def is_single(term: str) -> bool:
    """Return whether a term is one character of an unspaced script."""
    return len(term) == 1 and term >= _FIRST_UNSPACED and bool(_UNSPACED.match(term))


def is_mostly_unspaced(text: str) -> bool:
    """Return whether most letters of a text are Chinese characters, kana or hangul."""
    unspaced = sum(map(len, _UNSPACED.findall(text)))
    return 2 * unspaced > sum(map(str.isalnum, text))


_NO_PLURAL = "ios"
"""A name that the stemmer takes for several `io`, which is `I/O`."""


@lru_cache(maxsize=1 << 4)
def query_terms(text: str, kind: TermKind = "extended") -> Mapping[str, int]:
    """Return the terms of a query with their counts, not to be changed: a search asks for them several times."""
    return analyzer(kind).query_terms(text)


@cache
def analyzer(kind: TermKind = "extended") -> Analyzer:
    """Return the analyzer of this process for a kind of terms, with the English stemmer."""
    return Analyzer(kind)


PER_UNIT = 4
"""Steps of an impact per unit; finer ones rank no better."""


class Weights(NamedTuple):
    """The constants of the ranking. `bench/search.py --tables constants` shows how they were chosen."""

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
    terms: TermKind = "extended"


WEIGHTS = Weights()
"""The constants in use."""


_DESCRIPTION_LANGUAGE = 3
_BODY_LANGUAGE = 10
"""Common words of a language that a text must have to be in it."""


def impact_terms(name: str, description: str, body: str, analyzer: Analyzer, weights: Weights) -> str:
    """Return the indexed text of a skill: each of its terms with the step of its impact, separated by blanks."""
    described = analyzer.indexed(description, _DESCRIPTION_LANGUAGE)
    text = analyzer.indexed(body, _BODY_LANGUAGE)
    metadata = _metadata(analyzer.indexed(name), described, weights)
    counts = text.counts
    length = _length(text.length, weights.body_terms, weights.body_slope)
    impacts = {times: weights.body * _saturated(times / length, weights.saturation) for times in {0, *counts.values()}}
    steps = {times: _step(impact) for times, impact in impacts.items()}
    tokens = [term + _step(impact + impacts[counts.pop(term, 0)]) for term, impact in metadata.items()]
    tokens += map(str.__add__, counts, map(steps.__getitem__, counts.values()))
    if languages := {described.language, text.language} - {None}:
        tokens += [f"{language_mark(language)}/1" for language in ("", *sorted(filter(None, languages)))]
    return " ".join(tokens)


def language_mark(language: str) -> str:
    """Return the term that every skill with a text in a language has; an empty one stands for all but English."""
    return f"={language}"


def _metadata(name: TermCounts, description: TermCounts, weights: Weights) -> dict[str, float]:
    name_length = _length(name.length, weights.name_terms, weights.name_slope)
    length = _length(description.length, weights.description_terms, weights.description_slope)
    times = {term: count / length for term, count in description.counts.items()}
    for term, count in name.counts.items():
        times[term] = times.get(term, 0) + weights.name * count / name_length
    return {term: _saturated(often, weights.saturation) for term, often in times.items()}


def _length(terms: int, usual: float, slope: float) -> float:
    return 1 - slope + slope * terms / usual


def _saturated(times: float, saturation: float) -> float:
    return times * (saturation + 1) / (times + saturation)


def _step(impact: float) -> str:
    return f"/{max(1, round(PER_UNIT * impact))}"


UNIT = 256
"""Score units per point; sums stay whole numbers that 32-bit floats represent exactly."""
_SCORE_BITS = 23
"""Bits of a whole number that a 32-bit float represents exactly, at least."""
_POSTINGS_KEPT = 20_000


class _TermPostings(NamedTuple):
    """The queries for the tokens of a term with their steps, and the number of skills that have it."""

    steps: "tuple[tuple[tantivy.Query, int], ...]"
    skills: int
    weight: float


class IndexSnapshot:
    """One state of an index, to be searched; later changes of the files do not affect it.

    It may have two layers, the last commit of an index and what changed since; `outdated` are the stamps of documents
    in them that no longer count, `unread` those of skills whose text could not be read.
    """

    def __init__(
        self,
        layers: "Sequence[tantivy.Searcher]",
        schema: "tantivy.Schema",
        positions: Mapping[int, int],
        *,
        coverage: float,
        terms: TermKind = "extended",
        outdated: Collection[int] = (),
        unread: Collection[int] = (),
    ) -> None:
        from tantivy import Query

        self.coverage = coverage
        self.analyzer = analyzer(terms)
        self._unread = frozenset(unread)
        self._term_query = Query.term_query
        self._layers = layers
        self._schema = schema
        self._positions = positions
        self._outdated = outdated
        self._whole = not outdated and all(layer.doc_freq("terms", "/") == layer.num_docs for layer in layers)
        self._known: dict[str, _TermPostings] = {}
        self._stamps: Mapping[int, int] | None = None

    def joined(self, other: "IndexSnapshot", own: Sequence[int], others: Sequence[int]) -> "IndexSnapshot":
        """Return one index of both; `own` and `others` are the new positions of the skills of each."""
        positions = {stamp: own[position] for stamp, position in self._positions.items()}
        positions |= {stamp: others[position] for stamp, position in other._positions.items()}
        return IndexSnapshot(
            [*self._layers, *other._layers],
            self._schema,
            positions,
            coverage=self.coverage,
            terms=self.analyzer.kind,
            outdated=[*self._outdated, *other._outdated],
            unread=self._unread | other._unread,
        )

    @property
    def unread(self) -> int:
        """The number of skills whose text could not be read."""
        return len(self._unread)

    def weight(self, term: str) -> float:
        """Return the rarity of a term among the skills; 0 if none has it."""
        return self._postings(term).weight

    def skills_with(self, term: str) -> int:
        """Return the number of skills that have a term."""
        return self._postings(term).skills

    def has(self, term: str) -> bool:
        """Return whether some skill may have a term, without keeping what is known of it."""
        return any(layer.terms_with_prefix("terms", f"{term}/") for layer in self._layers)

    def query(
        self, weights: Mapping[str, float], segments: Sequence[Mapping[str, float]] = (), share: float = 0.0
    ) -> "tantivy.Query | None":
        """Return a search for weighted terms, for `best`; None if no skill has any of them.

        Of the weighted terms of each segment, if there are any, the best sum is added. With a `share`, all segments
        together are the whole: that share of their sums counts in place of the weighted terms.
        """
        from tantivy import Query

        if share:
            # The library adds a part of the other sums to the best one; it reads each list of skills once.
            scaled = [{term: weight / (1 - share) for term, weight in segment.items()} for segment in segments]
            sums = [Query.boolean_query(clauses) for clauses in map(self._clauses, scaled) if clauses]
            return Query.disjunction_max_query(sums, share) if sums else None
        clauses = self._clauses(weights)
        if not clauses:
            return None
        if segments:
            sums = [Query.boolean_query(self._clauses(segment)) for segment in segments]
            clauses.append((clauses[0][0], Query.disjunction_max_query(sums)))
        return Query.boolean_query(clauses)

    def best(self, query: "tantivy.Query | None", most: int) -> list[tuple[int, int]]:
        """Return scores and positions of the skills that match a search best; equal scores are unordered."""
        if query is None:
            return []
        found = [hit for layer in self._layers for hit in self._hits(layer, query, most)]
        if len(self._layers) > 1:
            found.sort(key=lambda hit: -hit[0])
        return found[:most]

    def _clauses(self, weights: Mapping[str, float]) -> "list[tuple[tantivy.Occur, tantivy.Query]]":
        from tantivy import Occur, Query

        should, with_score = Occur.Should, Query.const_score_query
        scaled = [(self._postings(term).steps, weight * UNIT / PER_UNIT) for term, weight in weights.items()]
        return [
            (should, with_score(query, round(per_step * step))) for steps, per_step in scaled for query, step in steps
        ]

    def matched(self, positions: Collection[int], terms: Collection[str]) -> dict[int, set[str]]:
        """Return those of some terms that each of some skills has."""
        from tantivy import Occur, Query

        if self._stamps is None:
            self._stamps = {position: stamp for stamp, position in self._positions.items()}
        should, with_score = Occur.Should, Query.const_score_query
        stamps = [(should, self._term_query(self._schema, "stamp", self._stamps[position])) for position in positions]
        skills = with_score(Query.boolean_query(stamps), 0.0)
        known = [term for term in sorted(terms) if self._postings(term).skills]
        found: dict[int, set[str]] = {position: set() for position in positions}
        for start in range(0, len(known), _SCORE_BITS):
            # The score of a skill tells which terms it has: each of them adds a bit of its own.
            batch = known[start : start + _SCORE_BITS]
            clauses = [
                (should, with_score(query, 1 << bit)) for bit, term in enumerate(batch) for query in self._either(term)
            ]
            query = Query.boolean_query([(Occur.Must, skills), *clauses])
            for layer in self._layers:
                for bits, position in self._hits(layer, query, len(found)):
                    found[position].update(term for bit, term in enumerate(batch) if bits >> bit & 1)
        return found

    def _hits(self, layer: "tantivy.Searcher", query: "tantivy.Query", most: int) -> Iterator[tuple[int, int]]:
        limit = min(most, len(self._positions)) + len(self._outdated)
        found = layer.search(query, limit=limit, count=False).hits
        stamps = layer.fast_field_values("stamp", [address for _, address in found])
        for (score, _), stamp in zip(found, stamps, strict=True):
            position = self._positions.get(int(stamp or 0))
            if position is not None:
                yield int(score), position

    def _token(self, token: str) -> "tantivy.Query":
        return self._term_query(self._schema, "terms", token, index_option="basic")

    def _either(self, term: str) -> "list[tantivy.Query]":
        """Return queries for a term of which a skill matches one at most."""
        found = [query for query, _ in self._postings(term).steps]
        if not is_single(term):
            return found
        from tantivy import Occur, Query

        return [Query.boolean_query([(Occur.Should, query) for query in found])]

    def _postings(self, term: str) -> _TermPostings:
        known = self._known.get(term)
        if known is None:
            # A single character begins every pair it is the first of, and is a term itself at the end of a run.
            single = is_single(term)
            prefix = term if single else f"{term}/"
            found = [pair for layer in self._layers for pair in layer.terms_with_prefix("terms", prefix)]
            tokens = list(dict.fromkeys(token for token, _ in found))
            counted = self._whole and not single
            skills = sum(skills for _, skills in found) if counted or not found else self._count(tokens)
            steps = tuple((self._token(token), int(token.rpartition("/")[2])) for token in tokens)
            weight = math.log(1 + (len(self._positions) - skills + 0.5) / (skills + 0.5)) if skills else 0.0
            known = _TermPostings(steps, skills, weight)
            if len(self._known) >= _POSTINGS_KEPT:
                self._known.clear()
            self._known[term] = known
        return known

    def _count(self, tokens: Sequence[str]) -> int:
        """Count the skills that have one of the tokens: an index counts deleted documents until it merges."""
        from tantivy import Occur, Query

        query = Query.boolean_query([(Occur.Should, self._token(token)) for token in tokens])
        if self._outdated:
            stamps = [self._term_query(self._schema, "stamp", stamp) for stamp in self._outdated]
            query = Query.boolean_query([(Occur.Must, query), *((Occur.MustNot, stamp) for stamp in stamps)])
        found: list[Any] = [layer.search(query, limit=1, count=True) for layer in self._layers]
        return sum(result.count for result in found)
