"""Write `lint/security_literals.py`: texts without which a pattern of the security rules cannot match.

    python tools/security_literals.py [FILE]

They are taken from the patterns as Python parses them, so nobody keeps them by hand. A pattern that is not in the
table is tried everywhere, so an old table costs time, never a finding.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from skillshelf.lint import security_code, security_intents, security_prose
from skillshelf.lint.security_search import parts_of
from skillshelf.lint.security_signals import SIGNALS
from skillshelf.lint.security_words import pattern_key

TARGET = Path(__file__).resolve().parent.parent / "src/skillshelf/lint/security_literals.py"
Texts = frozenset[str]
Alternatives = tuple[tuple[tuple[str, ...], ...], ...]
MOST_EXACT, MOST_TEXTS, MOST_ALTERNATIVES, LEAST = 64, 200, 40, 2
FOLDED = re.compile(r"[\\`^>\0-\x1f\x7f-\xbf]+|  +|(?<![!-~\xc0-\U0010ffff]{2}) |^ +| +$")
"""What may be another text in a window than in the file: marks of continued and of quoted lines, blanks of all kinds,
and letters whose first byte is that of a blank.

One blank stands for any blanks, which a search can compare if two other characters come before it.
"""


RARE = re.compile(r"[@$|&<~%]|^-|^\./")


class Needed(NamedTuple):
    """What a part of a pattern needs: all its texts if they are few, else None; groups, in the order of
    the pattern, of which one text occurs."""

    exact: Texts | None
    groups: tuple[Texts, ...] = ()

    def all_groups(self) -> tuple[Texts, ...]:
        """Return the groups, with that of the exact texts."""
        return self.groups + _groups(self.exact or ())


EMPTY = Needed(frozenset({""}))
ANYTHING = Needed(None)


def _groups(texts: Iterable[str]) -> tuple[Texts, ...]:
    """Return the longest lasting piece of each text as a group; none if a text has no such piece."""
    pieces = {max(FOLDED.split(text), key=len).strip() for text in texts}
    kept = frozenset(one for one in pieces if not any(other != one and other in one for other in pieces))
    if not kept or len(kept) > MOST_TEXTS or not all(len(one.encode()) >= LEAST or RARE.search(one) for one in kept):
        return ()
    return (kept,)


def _sequence(nodes: Iterable[Any]) -> Needed:
    groups: tuple[Texts, ...] = ()
    exact, is_whole = frozenset({""}), True
    for node in nodes:
        part = _node(*node)
        if part.exact is not None and len(exact) * len(part.exact) <= MOST_EXACT:
            exact = frozenset(one + other for one in exact for other in part.exact)
            continue
        groups += _groups(exact) + part.groups
        exact, is_whole = part.exact or frozenset({""}), False
    return Needed(exact, groups) if is_whole else Needed(None, groups + _groups(exact))


def _node(kind: object, value: Any) -> Needed:
    if kind is kinds.LITERAL:
        return Needed(frozenset({chr(value)}))
    if kind in (kinds.AT, kinds.ASSERT, kinds.ASSERT_NOT):
        return EMPTY
    if kind is kinds.IN:
        few = len(value) <= 4 and all(one is kinds.LITERAL for one, _ in value)
        return Needed(frozenset(chr(code) for _, code in value)) if few else ANYTHING
    if kind is kinds.SUBPATTERN:
        return _sequence(value[-1])
    if kind is kinds.BRANCH:
        return _branch([_sequence(one) for one in value[1]])
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
        return _repeated(value[0], value[1], _sequence(value[2]))
    return ANYTHING


def _branch(parts: Sequence[Needed]) -> Needed:
    exact: set[str] = set()
    for part in parts:
        exact.update(part.exact or ())
    if all(part.exact is not None for part in parts) and len(exact) <= MOST_EXACT:
        return Needed(frozenset(exact))
    best = [max(part.all_groups(), key=lambda group: min(map(len, group)), default=None) for part in parts]
    texts = [text for group in best if group is not None for text in group]
    return Needed(None, _groups(texts) if None not in best else ())


def _repeated(least: int, most: int, part: Needed) -> Needed:
    if (least, most) == (1, 1):
        return part
    if (least, most) == (0, 1) and part.exact is not None:
        return Needed(part.exact | {""})
    return Needed(None, part.all_groups() if least else ())


def _alternatives(nodes: Sequence[Any], depth: int = 3) -> Iterator[list[Any]]:
    """Yield the sequences of which one matches, taking apart the branches at the end of others."""
    if nodes and depth:
        kind, value = nodes[-1]
        if kind is kinds.BRANCH:
            for one in value[1]:
                yield from _alternatives([*nodes[:-1], *one], depth - 1)
            return
        if kind is kinds.SUBPATTERN:
            yield from _alternatives([*nodes[:-1], *value[-1]], depth - 1)
            return
    yield [*nodes]


def _is_rare(group: Sequence[str]) -> bool:
    """Return whether texts of a group are seldom in others: two letters are in every second line."""
    return min(len(text.encode()) for text in group) > LEAST


def _tells(group: Texts, words: Iterable[str]) -> bool:
    """Return whether a group says more than that one of the words is there, which is known."""
    return not all(any(text in word for text in group) for word in words)


def alternatives_of(pattern: str, words: Sequence[str] = ()) -> Alternatives:
    """Return for each alternative of a pattern the groups of texts that it needs; nothing if one needs nothing.

    `words` are those of which a text has one anyway.
    """
    parsed = [*parser.parse(pattern)]
    for depth in (3, 2, 1, 0):
        needed = [dict.fromkeys(_sequence(one).all_groups()) for one in _alternatives(parsed, depth)]
        found = [[group for group in groups if not words or _tells(group, words)] for groups in needed]
        if len(found) <= MOST_ALTERNATIVES:
            break
    if not all(found):
        return ()
    return tuple(dict.fromkeys(tuple(tuple(sorted(group)) for group in groups) for groups in found))


def _quoted(text: str) -> str:
    """Return a literal with the quotes that a formatter leaves alone."""
    mark = "'" if text.count('"') > text.count("'") else '"'
    return mark + text.encode("unicode_escape").decode().replace(mark, f"\\{mark}") + mark


def _row(alternatives: Alternatives) -> str:
    return "\n".join("\t".join("\v".join(group) for group in groups) for groups in alternatives)


def _part_row(pattern: str) -> str:
    """Return the row of a part of a pattern; groups that every longer text has would only cost time."""
    rare = [tuple(filter(_is_rare, groups)) or groups for groups in alternatives_of(pattern)]
    return _row(tuple(dict.fromkeys(rare)))


def _rows(rows: dict[str, str]) -> Iterator[str]:
    for key, row in rows.items():
        if row.strip("\f"):
            yield f'    "{key}": {_quoted(row)},'


def table() -> str:
    """Return the text of the module."""
    signals = {pattern_key(signal.pattern): _row(alternatives_of(signal.pattern, signal.words)) for signal in SIGNALS}
    searched = (*security_prose.SEARCHED, *security_intents.SEARCHED, *security_code.SEARCHED)
    parts = {pattern_key(pattern): "\f".join(map(_part_row, parts_of(pattern))) for pattern in searched}
    lines = [
        '"""What every match of a pattern of the security rules has: made by `tools/security_literals.py`.',
        "",
        "By the key of each pattern: alternatives, each of them groups of texts in order, of which one must occur.",
        '"""',
        "",
        '__all__ = ["LITERALS", "PARTS"]',
        "",
        "LITERALS: dict[str, str] = {",
        *_rows(signals),
        "}",
        "",
        "PARTS: dict[str, str] = {",
        *_rows(parts),
        "}",
        '"""The same for each of the outermost alternatives of other patterns."""',
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else TARGET).write_text(table(), "utf-8")
