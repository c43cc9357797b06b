"""Weighted terms to the skills of an index that have most of them.

Scores are sums of whole numbers, so that they do not depend on the order or the segments in which the documents
came, and frequencies are counted among the skills that are there, not among those deleted or changed since.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.search.impacts import PER_UNIT
from skillshelf.search.terms import is_single

if TYPE_CHECKING:
    import tantivy

__all__ = ["SkillIndex"]

_UNIT = 256
"""Parts of a point in which scores are counted; sums stay whole numbers that 32-bit floats hold exactly."""
_REMEMBERED = 50_000


class _Postings(NamedTuple):
    """A term's tokens with their steps, and in how many skills it is."""

    steps: tuple[tuple[str, int], ...]
    skills: int


_NOWHERE = _Postings((), 0)


class SkillIndex:
    """One state of an index, for asking; what others do to the files does not change it.

    It may have two layers, the last commit of an index and what changed since; `outdated` are the stamps of documents
    in them that count no more. Of `unread` skills the text could not be had.
    """

    def __init__(
        self,
        layers: "Sequence[tantivy.Searcher]",
        schema: "tantivy.Schema",
        positions: Mapping[int, int],
        *,
        coverage: float,
        outdated: Collection[int] = (),
        unread: int = 0,
    ) -> None:
        from tantivy import Query

        self.coverage = coverage
        self.unread = unread
        self._term_query = Query.term_query
        self._layers = layers
        self._schema = schema
        self._positions = positions
        self._outdated = outdated
        self._whole = not outdated and all(layer.doc_freq("terms", "/") == layer.num_docs for layer in layers)
        self._known: dict[str, _Postings] = {}

    def weight(self, term: str) -> float:
        """How rare a term is among the skills; 0 if none has it."""
        skills = self._postings(term).skills
        return math.log(1 + (len(self._positions) - skills + 0.5) / (skills + 0.5)) if skills else 0.0

    def skills_with(self, term: str) -> int:
        """In how many skills a term is."""
        return self._postings(term).skills

    def best(self, asked: Mapping[str, float], most: int) -> list[tuple[int, int]]:
        """The scores and positions of the skills that fit weighted terms best, in no order where scores are equal."""
        from tantivy import Occur, Query

        should, with_score = Occur.Should, Query.const_score_query
        clauses = [
            (should, with_score(self._token(token), float(round(_UNIT * weight * step / PER_UNIT))))
            for term, weight in asked.items()
            for token, step in self._postings(term).steps
        ]
        if not clauses:
            return []
        query = Query.boolean_query(clauses)
        found = [hit for layer in self._layers for hit in self._hits(layer, query, most)]
        if len(self._layers) > 1:
            found.sort(key=lambda hit: -hit[0])
        return found[:most]

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

    def _postings(self, term: str) -> _Postings:
        known = self._known.get(term)
        if known is None:
            # A single character of a run is at the beginning of every pair it stands in, or at the end of the run.
            single = is_single(term)
            prefix = term if single else f"{term}/"
            found = [pair for layer in self._layers for pair in layer.terms_with_prefix("terms", prefix)]
            if not found:
                return _NOWHERE
            tokens = list(dict.fromkeys(token for token, _ in found))
            counted = self._whole and not single
            skills = sum(skills for _, skills in found) if counted else self._count(tokens)
            known = _Postings(tuple((token, int(token.rpartition("/")[2])) for token in tokens), skills)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[term] = known
        return known

    def _count(self, tokens: Sequence[str]) -> int:
        """How many skills have one of the tokens: an index counts deleted documents until it gets rid of them."""
        from tantivy import Occur, Query

        query = Query.boolean_query([(Occur.Should, self._token(token)) for token in tokens])
        if self._outdated:
            stamps = [self._term_query(self._schema, "stamp", stamp) for stamp in self._outdated]
            query = Query.boolean_query([(Occur.Must, query), *((Occur.MustNot, stamp) for stamp in stamps)])
        found: list[Any] = [layer.search(query, limit=1, count=True) for layer in self._layers]
        return sum(result.count for result in found)
