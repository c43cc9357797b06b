"""Give the English words for Chinese, Japanese and Korean terms of software, documents, data and office work."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

__all__ = ["in_english"]

_ALTERNATIVE = 0.5
"""The weight of further English words for a term, relative to the first."""
_SHORT_KATAKANA = 3
"""The length up to which a term in katakana must be a word of its own: `test` is part of `contest`."""
_PARTICLES_TEXT = "은 는 이 가 을 를 의 에 로 와 과 도 만 들 으로 에서 에게 까지 부터 처럼 이나 들을 들이"
_PARTICLES = frozenset(_PARTICLES_TEXT.split())

_English = Sequence[tuple[str, float]]
"""English words for a term, with their weights."""


@cache
def _terms() -> tuple[Mapping[str, _English], int]:
    """Return the glossary by folded term, and the length of its longest term."""
    from skillshelf.search.glossary import GLOSSARY

    found: dict[str, _English] = {}
    for line in GLOSSARY.strip().splitlines():
        words, _, terms = line.partition(": ")
        first, *others = words.split(", ")
        english = ((first, 1.0), *((other, _ALTERNATIVE) for other in others))
        for term in map(_folded, terms.split()):
            # A term of several lines has the words of all of them.
            found[term] = (*found.get(term, ()), *english)
    return found, max(map(len, found))


@cache
def _variants() -> Mapping[int, str | None]:
    """Return the characters that are replaced before a term is looked up."""
    from skillshelf.search.glossary import VARIANTS

    pairs = {ord(pair[0]): pair[1] for pair in VARIANTS.split()}
    # Katakana words are written with and without the long mark, and with small vowels or not.
    return {**pairs, **dict(zip(map(ord, "ァィゥェォ"), "アイウエオ", strict=True)), ord("ー"): None}


def _folded(text: str) -> str:
    """Return a text with simplified characters, and katakana in one spelling."""
    return text.translate(_variants())


def in_english(runs: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield the English words for the terms in some runs of characters without blanks, with weights up to 1.

    The longest term counts. From the start of a run it may go on in the next one: Korean compounds are written
    with and without blanks.
    """
    terms, longest = _terms()
    words = list(filter(None, map(_folded, runs)))
    text = "".join(words)
    end = at = known = 0
    for word in words:
        start, end = end, end + len(word)
        while at < end:
            limit = len(text) if at == start else end
            length = min(longest, limit - at)
            while length and not (text[at : at + length] in terms and _is_word(text, at, length, (start, end), known)):
                length -= 1
            if length:
                yield from terms[text[at : at + length]]
                known = at + length
            at += length or 1


def _is_word(text: str, at: int, length: int, run: tuple[int, int], known: int) -> bool:
    """Return whether a term is not likely to be a part of another word; a long one never is.

    Before it, there is the start of its run, another term, or another script.
    """
    script = _script(text[at])
    if length > 1 and (script != "katakana" or length > _SHORT_KATAKANA):
        return True
    if at not in (run[0], known) and _script(text[at - 1]) == script:
        return False
    end = at + length
    if length > 1 or end >= run[1] or _script(text[end]) != script:
        return True
    return script == "hangul" and text[end : run[1]] in _PARTICLES


def _script(character: str) -> str:
    if character < "\u30a0":
        return "hiragana" if character > "\u303f" else "other"
    if character <= "\u30ff":
        return "katakana"
    return "hangul" if "\uac00" <= character <= "\ud7af" else "han"
