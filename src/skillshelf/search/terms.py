"""Text to the terms that are searched for: normalised, split, stemmed; pairs where words are not set apart."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

__all__ = ["STOP_WORDS", "Analyzer", "Word", "analyzer", "is_single"]

_STOP_TEXT = (
    "a about above after again all also am an and any are as at be because been before being below between both but"
    " by can could d did do does doing don down during each few for from further get give had has have having he help"
    " her here hers him his how i if in into is it its just let like ll m make me more most my need no nor not now of"
    " off on once only or other our ours out over own please re s same she should so some such t than that the their"
    " theirs them then there these they this those through to too under until up us use used using ve very want was"
    " we were what when where which while who whom why will with would you your yours"
)
STOP_WORDS = frozenset(_STOP_TEXT.split())
"""English words that a query may hold and that say nothing about a skill."""

WORD_CHARS = 64
"""A longer run of letters is a key or an encoded file, and nobody looks for it."""

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Chinese characters, kana and hangul: written without blanks, or with endings that hide the word.
_JOINED = re.compile(
    "([\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f]+)"
)
# Every ASCII character that is no letter and no digit ends a chunk; what lies beyond is looked at chunk by chunk.
_BLANKS = bytes(point if point > 0x7F or chr(point).isalnum() else 0x20 for point in range(256))

_REMEMBERED = 200_000


class Word(NamedTuple):
    """Where a word stands in a text, and its terms."""

    start: int
    end: int
    terms: tuple[str, ...]


class Analyzer(dict[str, str]):
    """Chunks of text to their terms, divided by blanks and worked out once: texts repeat few chunks often."""

    def __init__(self, stem: Callable[[str], str]) -> None:
        super().__init__()
        self._stem = stem

    def __missing__(self, chunk: str) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        lowered = chunk.lower()
        # Nearly all are of this kind, and the general way takes ten times as long.
        is_one = chunk.isascii() and len(chunk) <= WORD_CHARS and (chunk[1:] == lowered[1:] or chunk.isupper())
        terms = self[chunk] = self._stem(lowered) if is_one else " ".join(self._analyze(chunk))
        return terms

    def count(self, text: str) -> dict[str, int]:
        """Every term of a text, and how often it is there."""
        counts = Counter(map(self.__getitem__, _chunks(text)))
        counts.pop("", None)
        several = [terms for terms in counts if " " in terms]
        counts.update("".join([f"{terms} " * counts.pop(terms) for terms in several]).split())
        return counts

    def asked(self, text: str) -> Mapping[str, int]:
        """The terms a text asks for, and how often: stop words only count where there is nothing else."""
        words = [word for chunk in _chunks(text) for word in _words(chunk)]
        telling = [word for word in words if word.lower() not in STOP_WORDS]
        terms = Counter(term for word in telling or words for term in self[word].split())
        # A single character of a run is nearly everywhere: it too counts only where there is nothing else.
        return {term: times for term, times in terms.items() if not is_single(term)} or terms

    def spelled(self, text: str) -> dict[str, str]:
        """The plain words of a text by their terms, as they were written; not those that humps divide."""
        return {self[chunk]: chunk.lower() for chunk in _chunks(text) if _is_plain(chunk) and " " not in self[chunk]}

    def stem(self, word: str) -> str:
        """The term of a plain word, which is not remembered."""
        return self._stem(word)

    def words(self, text: str) -> Iterator[Word]:
        """The words of a text with their places, for showing which of them matched; of a run, its pairs."""
        for match in _WORD.finditer(text):
            at = match.start()
            for part in _JOINED.split(match[0]):
                if _JOINED.match(part):
                    yield from (Word(at + n, at + n + 2, (part[n : n + 2],)) for n in range(len(part) - 1))
                elif part:
                    yield Word(at, at + len(part), tuple(self[part].split()))
                at += len(part)

    def _analyze(self, chunk: str) -> list[str]:
        terms: list[str] = []
        for word in _words(chunk):
            parts = _JOINED.split(word)
            for run in parts[1::2]:
                terms += map(str.__add__, run, run[1:])
                # The last is a single character: who asks for one finds it wherever it stands.
                terms.append(run[-1])
            for part in filter(None, parts[::2]):
                terms += self._plain(part)
        return terms

    def _plain(self, word: str) -> list[str]:
        """The whole word and, where humps divide it, its parts: `GitHub` is found as `github` and as `hub`."""
        if len(word) > WORD_CHARS:
            return []
        whole = self._stem(word.lower())
        if word.islower() or word.isupper() or len(parts := _HUMP.split(word)) == 1:
            return [whole]
        return [whole, *(self._stem(part.lower()) for part in parts)]


def _chunks(text: str) -> list[str]:
    return text.encode("utf-8", "replace").translate(_BLANKS).decode("utf-8").split()


def _words(chunk: str) -> list[str]:
    """The words of a chunk: what lies beyond ASCII may have quotes and dashes of its own in it."""
    if chunk.isascii():
        return [chunk]
    from unicodedata import normalize

    return _WORD.findall(normalize("NFKC", chunk))


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and len(word) <= WORD_CHARS


def is_single(term: str) -> bool:
    """Whether a term is one character of those that are written in runs."""
    return len(term) == 1 and bool(_JOINED.match(term))


@cache
def analyzer() -> Analyzer:
    """The one analyzer of this process, with the English stemmer."""
    import tantivy

    stemmer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer("english")).build()
    return Analyzer(lambda word: stemmer.analyze(word)[0])
