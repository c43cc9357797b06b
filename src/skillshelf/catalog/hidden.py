"""Text to what a reader cannot see in it: invisible, bidirectional, tag and control characters.

Emoji, and scripts that need joiners or marks of direction, are not accused: a character counts only where
its script gives it no work to do.
"""

import re
from unicodedata import bidirectional, category, name

__all__ = ["hidden_text"]

# A black flag, three to six letters or digits of a region, and the end of the sequence.
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
_CLASSES = {
    "control": "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f",
    "line": "\u2028\u2029",
    "bidi": "\u202a-\u202e\u2066-\u2069",
    "mark": "\u061c\u200e\u200f",
    "invisible": "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200b\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff",
    "joiner": "\u200c\u200d",
    "selector": "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef",
    "tag": "\U000e0000-\U000e007f",
}
_EACH = {kind: re.compile(f"[{characters}]") for kind, characters in _CLASSES.items()}
_ANY = re.compile(f"[{''.join(_CLASSES.values())}]")


def hidden_text(text: str) -> str | None:
    """A sentence part that names each class with its count and first code point, or None."""
    if not _ANY.search(text):
        return None
    text = _FLAG.sub("", text)
    found = [
        ("control", _EACH["control"].findall(text)),
        ("line separator", _EACH["line"].findall(text)),
        ("bidirectional", _EACH["bidi"].findall(text) + _idle_marks(text)),
        ("invisible", _idle_invisible(text) + _idle_joiners(text)),
        ("variation selector", _idle_selectors(text)),
        ("tag", _EACH["tag"].findall(text)),
    ]
    told = [f"{len(marks)} {kind} character(s) ({_code(marks[0])})" for kind, marks in found if marks]
    if not told:
        return None
    return ", ".join(told) + _decoded(text)


def _code(character: str) -> str:
    label = name(character, "")
    return f"U+{ord(character):04X}{' ' + label if label else ''}"


def _decoded(text: str) -> str:
    """What the tag characters spell, since that is what they are misused for."""
    spelled = "".join(chr(ord(mark) - 0xE0000) for mark in _EACH["tag"].findall(text))
    readable = "".join(c for c in spelled if c.isprintable())
    return f" spelling {readable[:80]!r}" if readable else ""


def _idle_marks(text: str) -> list[str]:
    """Direction marks in a text without a letter that is written from right to left."""
    if any(bidirectional(c) in ("R", "AL") and c not in "\u061c\u200f" for c in text):
        return []
    return _EACH["mark"].findall(text)


def _idle_invisible(text: str) -> list[str]:
    """Invisible characters; a zero-width space between words of a script without blanks has work to do."""
    return [
        match[0]
        for match in _EACH["invisible"].finditer(text)
        if match[0] != "\u200b" or not _is_unspaced(text[match.start() - 1 : match.start()], text[match.end() :][:1])
    ]


def _is_unspaced(left: str, right: str) -> bool:
    """Whether Thai, Lao, Myanmar or Khmer stands on both sides."""
    return all(
        c and (0x0E00 <= ord(c) <= 0x0EFF or 0x1000 <= ord(c) <= 0x109F or 0x1780 <= ord(c) <= 0x17FF)
        for c in (left, right)
    )


def _idle_joiners(text: str) -> list[str]:
    return [m[0] for m in _EACH["joiner"].finditer(text) if not _joins(text[: m.start()], text[m.end() :])]


def _joins(before: str, after: str) -> bool:
    """Whether a joiner stands where emoji or a joining script needs one."""
    left = before.rstrip("\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")[-1:]
    right = after[:1]
    if not left:
        return False
    if right and category(left) == "So" and category(right) in ("So", "Sm"):
        return True
    return _is_joining_script(left) and (not right or _is_joining_script(right) or not right.isalnum())


def _is_joining_script(character: str) -> bool:
    """Letters and marks of Arabic to Tibetan, Myanmar, Khmer and Mongolian."""
    point = ord(character)
    return (
        0x0600 <= point <= 0x109F or 0x1780 <= point <= 0x18AF or 0xA840 <= point <= 0xABFF or 0xFB50 <= point <= 0xFEFC
    )


def _idle_selectors(text: str) -> list[str]:
    """Variation selectors after something that has no variants."""
    return [m[0] for m in _EACH["selector"].finditer(text) if not _has_variants(text[: m.start()][-1:], m[0])]


def _has_variants(left: str, selector: str) -> bool:
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
