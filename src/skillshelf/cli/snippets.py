"""A text and the terms of a search to the places that matched, and to the lines that show them best."""

from collections.abc import Set

from skillshelf.search.rank import analyzer

__all__ = ["excerpt", "places", "terms_in"]

_LINES_LOOKED_AT = 5000


def places(text: str, terms: Set[str]) -> list[tuple[int, int]]:
    """From where to where in a text words stand that were looked for."""
    found: list[tuple[int, int]] = []
    for word in analyzer().words(text):
        if not terms.isdisjoint(word.terms):
            # Pairs of a run overlap: together they are one place.
            start = found.pop()[0] if found and found[-1][1] > word.start else word.start
            found.append((start, word.end))
    return found


def terms_in(text: str, terms: Set[str]) -> frozenset[str]:
    """Those of the terms that a text has."""
    return frozenset(term for word in analyzer().words(text) for term in word.terms if term in terms)


def excerpt(body: str, terms: Set[str]) -> str:
    """The line of a body that has most of the terms, the first of several; empty if none has one."""
    best, most = "", 0
    for line in body.splitlines()[:_LINES_LOOKED_AT]:
        found = len(terms_in(line, terms))
        if found > most:
            best, most = line, found
    return best.lstrip(" \t#*->|").rstrip(" \t|")
