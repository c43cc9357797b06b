"""A part of a search index, for somebody who may know of some skills only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillshelf.search.rank import IndexSnapshot

if TYPE_CHECKING:
    import tantivy

__all__ = ["IndexPart"]


class IndexPart(IndexSnapshot):
    """Some skills of an index, by their positions there, which are 0, 1, 2 and so on here.

    It uses the files of the whole index, but counts words and compares scores among its own skills alone: nothing that
    it returns depends on the others. How often a word occurs is counted once for each part.
    """

    def __init__(self, whole: IndexSnapshot, kept: Sequence[int]) -> None:
        here = {position: number for number, position in enumerate(kept)}
        positions = {stamp: here[position] for stamp, position in whole._positions.items() if position in here}
        super().__init__(
            whole._layers,
            whole._schema,
            positions,
            coverage=whole.coverage,
            terms=whole.analyzer.kind,
            outdated=whole._outdated,
            unread=[stamp for stamp in whole._unread if stamp in positions],
        )
        # The numbers in the files are those of the whole.
        self._whole = False

    def has(self, term: str) -> bool:
        """Return whether some skill of the part has a term."""
        return super().has(term) and self.skills_with(term) > 0

    def best(self, query: "tantivy.Query | None", most: int) -> list[tuple[int, int]]:
        """Return scores and positions of the skills that match a search best, and of all that equal the last of them.

        Which of several equal ones come first depends on the order of the files, and so on skills of other parts.
        """
        if query is None or most < 1:
            return []
        found = [hit for layer in self._layers for hit in self._best_in(layer, query, most)]
        found.sort(key=lambda hit: -hit[0])
        last = found[most - 1][0] if len(found) > most else 0
        return [hit for hit in found if hit[0] >= last]

    def _best_in(self, layer: "tantivy.Searcher", query: "tantivy.Query", most: int) -> list[tuple[int, int]]:
        """Return hits of the part: the best ones of a layer, and all that equal the last of them."""
        documents = max(1, layer.num_docs)
        limit = 2 + 2 * min(most, len(self._positions)) * documents // max(1, len(self._positions))
        while True:
            limit = min(limit, documents)
            hits = layer.search(query, limit=limit, count=False).hits
            found = self._own(layer, hits)
            is_all = len(hits) < limit or limit == documents
            if is_all or (len(found) >= most and found[most - 1][0] > int(hits[-1][0])):
                return found
            limit *= 4

    def _own(
        self, layer: "tantivy.Searcher", hits: "Sequence[tuple[float, tantivy.DocAddress]]"
    ) -> list[tuple[int, int]]:
        stamps = layer.fast_field_values("stamp", [address for _, address in hits])
        places = [self._positions.get(int(stamp or 0)) for stamp in stamps]
        return [(int(hit[0]), place) for hit, place in zip(hits, places, strict=True) if place is not None]

    def _count(self, tokens: Sequence[str]) -> int:
        """Count the skills of the part that have one of the tokens."""
        from tantivy import Occur, Query

        query = Query.boolean_query([(Occur.Should, self._token(token)) for token in tokens])
        query = Query.const_score_query(query, 1.0)
        counted = 0
        for layer in self._layers:
            most = min(layer.num_docs, sum(layer.doc_freq("terms", token) for token in tokens))
            if most:
                counted += len(self._own(layer, layer.search(query, limit=most, count=False).hits))
        return counted
