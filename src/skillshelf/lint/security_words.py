"""Find the places of a text where signs of an attack are worth a try, with the optional extension in one pass.

`security.py` looks for the same places in Python, word by word; that is the reference. Here all words are handed to
the extension once, with a plan of what each is needed for, and a text comes back as its marks and candidates.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from re import Pattern
from re import compile as compile_pattern
from zlib import crc32

from skillshelf.core.files import native_core
from skillshelf.core.limits import SECURITY_WINDOWS
from skillshelf.core.records import NamedTuple
from skillshelf.lint.security_literals import LITERALS
from skillshelf.lint.security_signals import SIGNALS, Signal, words_by_token

__all__ = [
    "AFTER",
    "BEFORE",
    "FOLLOWING",
    "Alternatives",
    "Mark",
    "Sighting",
    "WordSearch",
    "Words",
    "alternatives_in",
    "alternatives_record",
    "near_pattern",
    "pattern_key",
]

BEFORE, AFTER = 240, 560
"""How far from a word the other parts of a sign are looked for, in bytes."""

FOLLOWING: Mapping[str, int] = {"line": 0, "lines": 2, "block": 5}
"""How many lines after that of the word belong to a window."""


Words = Mapping[bytes, None] | bytes
"""Says by `in` whether a text has a word: the words of marks that were seen in it, in their order, or the text."""


class Mark(NamedTuple):
    """A sign that a text needs a closer look: it has one of these words, or one of these tokens."""

    words: tuple[bytes, ...] = ()
    tokens: tuple[bytes, ...] = ()

    def is_in(self, lowered: bytes, tokens: frozenset[bytes]) -> bool:
        """Return whether a text has the mark."""
        return not tokens.isdisjoint(self.tokens) or any(word in lowered for word in self.words)


class Sighting(NamedTuple):
    """What was seen in a text: a byte for each mark, the words of marks, the known tokens, and the places to try.

    The words are in the order of the marks.
    """

    marks: bytes
    words: Mapping[bytes, None]
    tokens: frozenset[bytes]
    numbers: memoryview

    def candidates(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield the number of each signal, the place, start and end of the window, and whether it can match there."""
        one = iter(self.numbers)
        return zip(one, one, one, one, one, strict=True)


@cache
def near_pattern(source: str) -> Pattern[bytes]:
    """Return the compiled pattern of what is near a sign."""
    return compile_pattern(source.encode())


def pattern_key(pattern: str) -> str:
    """Return the key of a pattern in the table of literals."""
    return f"{crc32(pattern.encode()):08x}{len(pattern):x}"


class _Plan:
    """The words to look for, by what is asked about them, and the numbers that tell the extension what they are for."""

    def __init__(self, marks: tuple[Mark, ...]) -> None:
        self._marks = marks
        self._found = [word for _, words in sorted(words_by_token().items()) for word in words]
        placed = dict.fromkeys(word.word for word in self._found)
        marked = dict.fromkeys(word for mark in marks for word in mark.words)
        tokens = dict.fromkeys(token for word in self._found for token in sorted(word.tokens))
        tokens |= dict.fromkeys(token for mark in marks for token in mark.tokens)
        inside = dict.fromkeys(text for signal in SIGNALS for line in _alternatives(signal) for text in chain(*line))
        near = dict.fromkeys(word.encode() for signal in SIGNALS for group in signal.needs for word in group)
        self.words: list[bytes] = []
        self.bounds: list[int] = []
        self._placed, self._marked, self._tokens, self._inside, self._near = map(
            self._numbered, (placed, marked, tokens, inside, near)
        )

    def _numbered(self, words: Collection[bytes]) -> dict[bytes, int]:
        """Return the numbers of words that are of one kind, and note where they end."""
        numbers = {word: number for number, word in enumerate(words, len(self.words))}
        self.words += words
        self.bounds.append(len(self.words))
        return numbers

    def _mark(self, mark: Mark) -> list[int]:
        return _group([*(self._marked[word] for word in mark.words), *(self._tokens[token] for token in mark.tokens)])

    def _sign(self, signal: Signal) -> list[int]:
        """Return the record of a signal: the lines of its window, what is near, and what is in the window."""
        needs = [_group(self._near[word.encode()] for word in group) for group in signal.needs]
        alternatives = alternatives_record(_alternatives(signal), self._inside)
        return [FOLLOWING[signal.reach], len(needs), *chain(*needs), *alternatives]

    def _sought(self) -> Iterator[list[int]]:
        """Yield the record of each word of a signal, in the order in which they are tried."""
        for word in self._found:
            tokens = _group(self._tokens[token] for token in sorted(word.tokens))
            record = [self._placed[word.word], *tokens, *_group(one.number for one in word.sought)]
            yield _group(record)

    def numbers(self) -> list[int]:
        """Return the whole plan."""
        sought = [*self._sought()]
        signs = [self._sign(signal) for signal in SIGNALS]
        plan = [*self.bounds[:4], len(self._marks), *chain(*map(self._mark, self._marks))]
        plan += [len(sought), *chain(*sought), len(signs)]
        at = len(plan) + len(signs)
        for sign in signs:
            plan.append(at)
            at += len(sign)
        return [*plan, *chain(*signs)]


def _group(numbers: Iterable[int]) -> list[int]:
    """Return numbers with their number in front."""
    group = [*numbers]
    return [len(group), *group]


Alternatives = list[list[list[bytes]]]
"""What a match has: alternatives, each of them groups of texts in order, of which one must occur."""


def _alternatives(signal: Signal) -> Alternatives:
    return alternatives_in(LITERALS.get(pattern_key(signal.pattern), ""))


def alternatives_in(row: str) -> Alternatives:
    """Return the alternatives in a row of the table of literals."""
    return [[group.split(b"\v") for group in line.split(b"\t")] for line in row.encode().split(b"\n") if line]


def alternatives_record(alternatives: Alternatives, numbers: Mapping[bytes, int]) -> list[int]:
    """Return alternatives as a plan has them; `numbers` are those of the texts."""
    record = [len(alternatives)]
    for groups in alternatives:
        inner = [*chain(*(_group(numbers[text] for text in group) for group in groups))]
        record += [len(inner) + 1, len(groups), *inner]
    return record


class _Compiled(NamedTuple):
    """The words in the form of the extension; those of marks and the tokens in the order of their numbers."""

    words: object
    known: tuple[bytes, ...]
    marked: int


class WordSearch:
    """Looks for the words of all signals and of some marks in texts, if the extension can be used."""

    def __init__(self, marks: tuple[Mark, ...]) -> None:
        self._marks = marks
        self._compiled: _Compiled | None = None

    def seen_in(self, lowered: bytes) -> Sighting | None:
        """Return what a text in lower case holds; None if there is no extension, or the text is not a plain case."""
        native = native_core()
        if native is None or (native.BEFORE, native.AFTER, native.MOST_TRIES) != (BEFORE, AFTER, SECURITY_WINDOWS):
            return None
        if self._compiled is None:
            plan = _Plan(self._marks)
            lengths, numbers = array("i", map(len, plan.words)), array("i", plan.numbers())
            words = native.compile_words(b"".join(plan.words), lengths.tobytes(), numbers.tobytes())
            placed, marked, tokens = plan.bounds[:3]
            self._compiled = _Compiled(words, tuple(plan.words[placed:tokens]), marked - placed)
        found = native.find_words(self._compiled.words, lowered)
        if found is None:
            return None
        seen = memoryview(found[1]).cast("i").tolist()
        first_token = bisect_left(seen, self._compiled.marked)
        known = [*map(self._compiled.known.__getitem__, seen)]
        places = memoryview(found[2]).cast("i")
        return Sighting(found[0], dict.fromkeys(known[:first_token]), frozenset(known[first_token:]), places)
