"""Search a text for a pattern of several alternatives, and try only those that its words allow.

A pattern of an idea has dozens of alternatives, and most texts have no word of any. `security_literals.py` knows the
words of each; the extension looks for all of them in one pass. Without it, the whole pattern is searched.
"""

import re
from array import array
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from itertools import accumulate, chain, compress
from types import MappingProxyType

from skillshelf.core.files import native_core
from skillshelf.core.records import NamedTuple
from skillshelf.lint.security_literals import PARTS
from skillshelf.lint.security_signals import pattern_of
from skillshelf.lint.security_words import alternatives_in, alternatives_record, pattern_key

__all__ = ["may_match", "parts_of", "search"]


def search(pattern: str, text: str, *, needed: Mapping[str, str] = MappingProxyType({})) -> "re.Match[str] | None":
    """Return the first match of a pattern, as `re.search` does.

    `needed` has for some alternatives another pattern, without which in the text they are not tried.
    """
    possible = _possible(pattern, text)
    if possible is None:
        return pattern_of(pattern).search(text)
    best = None
    for part in possible:
        if part in needed and pattern_of(needed[part]).search(text) is None:
            continue
        found = pattern_of(part).search(text)
        # The first alternative that matches at the first place, as in the pattern.
        if found is not None and (best is None or found.start() < best.start()):
            best = found
    return best


def may_match(patterns: tuple[str, ...], data: bytes) -> bool:
    """Return whether one of some patterns may match a text after it was made lower case and its lines were joined."""
    return any(_possible(pattern, data) != () for pattern in patterns)


def _possible(pattern: str, text: str | bytes) -> tuple[str, ...] | None:
    """Return the alternatives of a pattern that a text has the words of; None if that is not known."""
    known, possible_signs = _numbered(pattern), _asked(text)
    if known is None or possible_signs is None:
        return None
    flags = possible_signs(known.first, len(known.parts))
    return None if flags is None else tuple(compress(known.parts, flags))


# The same text is asked about several patterns, one after the other.
@lru_cache(maxsize=4)
def _asked(text: str | bytes) -> "Callable[[int, int], bytes | None] | None":
    """Return the function of the extension for a text, which takes numbers of alternatives."""
    native = native_core()
    if native is None:
        return None
    if isinstance(text, bytes) and not text.isascii():
        text = text.decode("utf-8", "replace").lower()
    encoded = text.encode("utf-8", "replace") if isinstance(text, str) else text
    return partial(native.possible_signs, _compiled(), encoded)


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
