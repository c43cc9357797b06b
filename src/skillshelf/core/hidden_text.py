"""Find, remove and fold the characters that a reader cannot see; the one definition of "invisible".

A character counts as hidden only where it has no function: emoji, and scripts that need joiners or direction marks,
keep theirs.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from skillshelf.core.records import NamedTuple

__all__ = ["fold_to_ascii", "hidden_text", "replace_hidden", "without_hidden", "without_invisible"]


_CLASSES = {
    "control": "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f",
    "line": "\u2028\u2029",
    "bidi": "\u202a-\u202e\u2066-\u2069",
    "mark": "\u061c\u200e\u200f",
    "invisible": "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200b\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff",
    "joiner": "\u200c\u200d",
    "selector": "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef",
    "tag": "\U000e0000-\U000e007f",
}
# A black flag, three to six letters or digits of a region, and the end of the sequence.
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
_KNOWN_REGIONS = frozenset({"gbeng", "gbsct", "gbwls"})
_SKIN_AND_STYLE = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"

_LABELS = {
    "control": "control",
    "line": "line separator",
    "bidi": "bidirectional",
    "mark": "bidirectional",
    "invisible": "invisible",
    "joiner": "invisible",
    "selector": "variation selector",
    "tag": "tag",
}


class _Mark(NamedTuple):
    kind: str
    position: int
    character: str


@cache
def _matching(*kinds: str) -> re.Pattern[str]:
    """Return the pattern for classes of characters; compiled when needed, since nearly all text is plain."""
    return re.compile(f"[{''.join(_CLASSES[kind] for kind in kinds)}]")


def hidden_text(text: str) -> str | None:
    """Return a phrase that names each class of hidden characters with count and first code point, or None."""
    found = list(_hidden_marks(text))
    if not found:
        return None
    classes = []
    for label in dict.fromkeys(_LABELS.values()):
        # Sorted by kind, then position: the first one of a class is named.
        marks = [mark for kind in _LABELS for mark in found if mark.kind == kind and _LABELS[kind] == label]
        if marks:
            classes.append(f"{len(marks)} {label} character(s) ({_code(marks[0].character)})")
    return ", ".join(classes) + _decoded(mark.character for mark in found if mark.kind == "tag")


def without_invisible(text: str) -> str:
    """Return a text without any character that a reader cannot see, also where it has a function."""
    # Of bytes that are not UTF-8, and of code points that are no characters, nothing is left in a text for a model.
    kept = re.sub("[\ud800-\udfff\ufffe\uffff]", "", text)
    return _matching("bidi", "mark", "invisible", "joiner", "selector", "tag").sub("", kept)


def _code(character: str) -> str:
    from unicodedata import name

    label = name(character, "")
    return f"U+{ord(character):04X}{' ' + label if label else ''}"


def _decoded(tags: Iterator[str]) -> str:
    """Return the text that tag characters spell, since that is what they are misused for."""
    readable = "".join(c for tag in tags if (c := chr(ord(tag) - 0xE0000)).isprintable())
    return f" spelling {readable[:80]!r}" if readable else ""


def without_hidden(text: str) -> str:
    """Return the text for a model without hidden characters; controls and line separators become blanks.

    Stricter than the finding about them: direction marks go too, and so do the flags of regions without a known flag,
    which can spell anything.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _matching("control", "line").sub(" ", _without_unknown_flags(text))
    return replace_hidden(_matching("mark").sub("", text), lambda character: "")


_MOST_PASSES = 4


def replace_hidden(text: str, replacement: Callable[[str], str]) -> str:
    """Return the text with each hidden character replaced; a replacement is visible or empty."""
    for _ in range(_MOST_PASSES):
        hidden = {mark.position for mark in _hidden_marks(text)}
        if not hidden:
            return text
        # A hidden character may have given its neighbour a function, so look again.
        text = "".join(replacement(c) if at in hidden else c for at, c in enumerate(text))
    return _matching(*_CLASSES).sub(lambda match: replacement(match[0]), text)


def _without_unknown_flags(text: str) -> str:
    def kept(flag: re.Match[str]) -> str:
        region = "".join(chr(ord(tag) - 0xE0000) for tag in flag[0][1:-1])
        return flag[0] if region in _KNOWN_REGIONS else flag[0][0]

    return re.sub(_FLAG, kept, text)


def _hidden_marks(text: str) -> Iterator[_Mark]:
    """Yield the hidden characters in order."""
    if not _matching(*_CLASSES).search(text):
        return
    flags = {position for flag in re.finditer(_FLAG, text) for position in range(*flag.span())}
    right_to_left = _matching("mark").search(text) is not None and _is_right_to_left(text)
    for kind in _CLASSES:
        for match in _matching(kind).finditer(text):
            position = match.start()
            if kind == "mark" and right_to_left:
                continue
            if position not in flags and not _has_function(kind, text, position):
                yield _Mark(kind, position, match[0])


def _has_function(kind: str, text: str, position: int) -> bool:
    """Return whether emoji or a script needs the character at a position."""
    character = text[position]
    left, right = text[position - 1 : position] if position else "", text[position + 1 : position + 2]
    if kind == "joiner":
        return _joins(text, position)
    if kind == "selector":
        return _has_variants(left, character)
    if "\U00013430" <= character <= "\U0001343f":
        return all(c and 0x13000 <= ord(c) <= 0x1345F for c in (left, right))
    return character == "\u200b" and _is_unspaced(left, right)


def _is_right_to_left(text: str) -> bool:
    """Return whether a text has a letter that is written from right to left; direction marks serve there."""
    from unicodedata import bidirectional

    return any(bidirectional(c) in ("R", "AL") and c not in "\u061c\u200f" for c in text)


def _is_unspaced(left: str, right: str) -> bool:
    """Return whether the characters on both sides are Thai, Lao, Myanmar or Khmer, which have no blanks."""
    return all(
        c and (0x0E00 <= ord(c) <= 0x0EFF or 0x1000 <= ord(c) <= 0x109F or 0x1780 <= ord(c) <= 0x17FF)
        for c in (left, right)
    )


def _joins(text: str, position: int) -> bool:
    """Return whether emoji or a joining script needs the joiner at a position."""
    from unicodedata import category

    before = position - 1
    while before >= 0 and text[before] in _SKIN_AND_STYLE:
        before -= 1
    if before < 0:
        return False
    left, right = text[before], text[position + 1 : position + 2]
    if right and category(left) == "So" and category(right) in ("So", "Sm"):
        return True
    return _is_joining_script(left) and (not right or _is_joining_script(right) or not right.isalnum())


def _is_joining_script(character: str) -> bool:
    """Return whether a character belongs to Arabic to Tibetan, Myanmar, Khmer or Mongolian."""
    point = ord(character)
    return not _matching(*_CLASSES).match(character) and (
        0x0600 <= point <= 0x109F or 0x1780 <= point <= 0x18AF or 0xA840 <= point <= 0xABFF or 0xFB50 <= point <= 0xFEFC
    )


def _has_variants(left: str, selector: str) -> bool:
    """Return whether a character has the variant that a selector after it asks for."""
    from unicodedata import category

    if not left:
        return False
    if "\u180b" <= selector <= "\u180f":
        return 0x1820 <= ord(left) <= 0x18AA
    if selector in "\ufe0e\ufe0f":
        return left in "#*0123456789\u200d" or category(left) in ("So", "Sm", "Po", "Pd", "Sk") or left == "\u2139"
    point = ord(left)
    if "\ufe00" <= left <= "\ufe0f" or point >= 0xE0000:
        return False
    ideograph = 0x3400 <= point <= 0x9FFF or 0xF900 <= point <= 0xFAFF or 0x20000 <= point <= 0x3FFFF
    # Ideographs have hundreds of registered variants; a few symbols and Myanmar letters have one.
    return ideograph or (selector <= "\ufe0f" and (0x2190 <= point <= 0x2BFF or 0x1000 <= point <= 0x109F))


# Look-alikes that Unicode's compatibility forms do not name, from its list of confusable characters: of the brackets
# and slashes of a tag, and of the letters of our elements.
_LOOK_ALIKES = {
    character: plain
    for plain, characters in {
        "<": "\u02c2\u1438\u16b2\u2039\u276e\u2329\u27e8\u3008\U0001d236",
        "/": "\u1735\u2041\u2044\u2215\u2571\u27cb\u29f8\u2cc6\u2f03\u3033\u30ce\u31d3\u4e3f\U0001d23a",
        "a": "\u0251\u03b1\u0430",
        "c": "\u03f2\u0441\u1d04",
        "d": "\u0501\u146f",
        "e": "\u0435\u04bd\u212e",
        "i": "\u0131\u0269\u03b9\u0456\u04cf\u13a5",
        "k": "\u03ba\u043a\u1d0b",
        "l": "\u01c0\u05c0\u07ca\u2223",
        "n": "\u0578\u057c",
        "o": "\u03bf\u043e\u0585\u0966\u1d0f",
        "p": "\u03c1\u0440\u2374",
        "r": "\u0433\u1d26\uab47",
        "s": "\u01bd\u0455\ua731",
        "t": "\u03c4\u0442\u1d1b",
        "u": "\u03c5\u057d\u1d1c",
        "v": "\u03bd\u0475\u1d20",
        "x": "\u03c7\u0445",
        "_": "\u203f\u2040",
    }.items()
    for character in characters
}
_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Me")


def fold_to_ascii(text: str) -> str:
    """Return a text of the same length to compare with: look-alikes of ASCII as lower-case ASCII, blanks as blanks.

    Characters that a reader cannot see become NUL, others stay.
    """
    return text.translate({ord(c): _ascii_of(c) for c in set(text) if not c.isascii() or c.isupper()})


@lru_cache(maxsize=65536)
def _ascii_of(character: str) -> str:
    from unicodedata import category, normalize

    if character.casefold() in _LOOK_ALIKES:
        return _LOOK_ALIKES[character.casefold()]
    kind = category(character)
    if kind in ("Zs", "Zl", "Zp") or character.isspace():
        return " "
    if kind in _UNSEEN_CATEGORIES or _matching(*_CLASSES).match(character):
        return "\0"
    # Decomposed, so that a letter with an accent is its letter: the wider reading.
    plain = normalize("NFKD", normalize("NFKD", character).casefold())
    base = "".join(c for c in plain if category(c) not in ("Mn", "Me"))
    return base if len(base) == 1 and base.isascii() else character
