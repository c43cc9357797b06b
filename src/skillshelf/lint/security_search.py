"""Search a text for a pattern of several alternatives, and try only those that its words allow.

A pattern of an idea has dozens of alternatives, and most texts have no word of any. `security_literals.py` knows the
words of each; the extension looks for all of them in one pass. Without it, the whole pattern is searched.
"""

import re
from array import array
from functools import cache, lru_cache
from itertools import accumulate, chain

from skillshelf.core.files import native_core
from skillshelf.core.records import NamedTuple
from skillshelf.lint.security_literals import PARTS
from skillshelf.lint.security_signals import pattern_of
from skillshelf.lint.security_words import alternatives_in, alternatives_record, pattern_key

__all__ = ["may_match", "parts_of", "search"]


def search(pattern: str, text: str) -> "re.Match[str] | None":
    """Return the first match of a pattern, as `re.search` does."""
    known = _numbered(pattern)
    if known is None or (possible := _possible(text)) is None:
        return pattern_of(pattern).search(text)
    best = None
    number = possible.find(1, known.first, known.first + len(known.parts))
    while number >= 0:
        found = pattern_of(known.parts[number - known.first]).search(text)
        # The first alternative that matches at the first place, as in the pattern.
        if found is not None and (best is None or found.start() < best.start()):
            best = found
        number = possible.find(1, number + 1, known.first + len(known.parts))
    return best


def may_match(patterns: tuple[str, ...], data: bytes) -> bool:
    """Return whether one of some patterns may match a text after it was made lower case and its lines were joined."""
    possible = _possible(data)
    for known in map(_numbered, patterns):
        if possible is None or known is None or possible.find(1, known.first, known.first + len(known.parts)) >= 0:
            return True
    return False


class _Numbered(NamedTuple):
    """The alternatives of a pattern, and the number of the first one."""

    first: int
    parts: tuple[str, ...]


@cache
def _firsts() -> dict[str, int]:
    return dict(zip(PARTS, accumulate((row.count("\f") + 1 for row in PARTS.values()), initial=0), strict=False))


@cache
def _numbered(pattern: str) -> _Numbered | None:
    """Return the numbered alternatives of a pattern; None if the table does not know it."""
    key, parts = pattern_key(pattern), parts_of(pattern)
    if key not in PARTS or PARTS[key].count("\f") + 1 != len(parts):
        return None
    return _Numbered(_firsts()[key], parts)


def parts_of(pattern: str) -> tuple[str, ...]:
    """Return the outermost alternatives of a pattern."""
    parts, start, depth = [], 0, 0
    for match in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[(|)]", pattern, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if match[0] == "|" and depth == 0:
            parts.append(pattern[start : match.start()])
            start = match.end()
    return (*parts, pattern[start:])


@cache
def _compiled() -> object:
    """Return the words of all alternatives in the form of the extension."""
    rows = [alternatives_in(part) for row in PARTS.values() for part in row.split("\f")]
    texts = dict.fromkeys(text for row in rows for groups in row for text in chain(*groups))
    numbers = {text: number for number, text in enumerate(texts)}
    records = [[0, 0, *alternatives_record(row, numbers)] for row in rows]
    # There is nothing but words in windows, and signs; see `_native.c`.
    plan = [0, 0, 0, len(texts), 0, 0, len(records)]
    plan += accumulate(map(len, records[:-1]), initial=len(plan) + len(records))
    plan += chain(*records)
    native = native_core()
    assert native is not None
    return native.compile_words(b"".join(texts), array("i", map(len, texts)).tobytes(), array("i", plan).tobytes())


# The same text is asked about several patterns, one after the other.
@lru_cache(maxsize=4)
def _possible(text: str | bytes) -> bytes | None:
    """Return for each alternative whether a text has its words; None without the extension."""
    native = native_core()
    if isinstance(text, bytes) and not text.isascii():
        text = text.decode("utf-8", "replace").lower()
    if isinstance(text, str):
        text = text.encode("utf-8", "replace")
    return None if native is None else native.possible_signs(_compiled(), text)
