"""A query to its terms, where a word that no skill has gives way to one that is a letter away."""

import re
from collections.abc import Sequence, Set

from skillshelf.core.values import CatalogSkill
from skillshelf.search.gathering import body_of
from skillshelf.search.scoring import SkillIndex
from skillshelf.search.terms import STOP_WORDS, analyzer

__all__ = ["corrected"]

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
