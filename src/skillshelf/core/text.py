"""Make untrusted text safe to print or to send: escape, fold, truncate, and escape for XML."""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from skillshelf.core.patterns import lazy_pattern

__all__ = [
    "OWN_ELEMENTS",
    "TRUST_FOR_MODELS",
    "attribute",
    "closing_tags",
    "cut",
    "did_you_mean",
    "encoded_path",
    "escape_closing_tags",
    "escape_surrogates",
    "field",
    "fold",
    "folded_name",
    "for_model",
    "hidden_skills_note",
    "holds_back",
    "is_false",
    "is_ignored",
    "is_name",
    "is_true",
    "matches_folded_glob",
    "matches_glob",
    "near",
    "path_text",
    "plural",
    "shorten",
    "visible",
    "visible_for_model",
    "width",
]


# Shown as escapes: C0 and C1 controls, DEL, invisible and bidirectional characters. Line ends too: one
# entry is one line, whatever its author wrote. Not the two joiners (U+200C, U+200D): emoji and several
# scripts need them.
_ESCAPED = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0xAD,
    0x034F,
    0x061C,
    *range(0x115F, 0x1161),
    *range(0x17B4, 0x17B6),
    *range(0x180B, 0x1810),
    0x200B,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0x3164,
    0xFEFF,
    0xFFA0,
    *range(0xFFF0, 0xFFFC),
    *range(0xE0000, 0xE0080),
    *range(0xD800, 0xE000),
)
_TABLE: dict[int, str] = {}

# The escaped characters that Python calls printable.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")


def visible(text: str) -> str:
    """Return the text on one line, with every character escaped that a terminal would obey or hide."""
    if text.isprintable() and (text.isascii() or _UNSEEN.isdisjoint(text)):
        return text
    if not _TABLE:
        _TABLE.update((point, _escape(point)) for point in _ESCAPED)
    return text.translate(_TABLE)


def _escape(point: int) -> str:
    names = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
    if point in names:
        return names[point]
    # A byte of a file name that is not UTF-8 is decoded to one of these.
    if 0xDC80 <= point <= 0xDCFF:
        return f"\\x{point - 0xDC00:02x}"
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def escape_surrogates(text: str) -> str:
    """Return the text with lone surrogates, such as bytes of a file name that are not UTF-8, as escapes."""
    return text if text.isascii() else _SURROGATE.sub(lambda found: _escape(ord(found[0])), text)


_NOT_LITERAL = lazy_pattern("%(?=[0-9A-Fa-f]{2})|[\udc80-\udcff]")


def encoded_path(path: str) -> str:
    """Return a path with its bytes that are not UTF-8 percent-encoded, as in an address.

    So that no other name looks the same, a `%` before two hexadecimal digits is encoded, too.
    """
    if path.isascii() and "%" not in path:
        return path
    return _NOT_LITERAL.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", path)


def fold(text: str) -> str:
    """Return the text with each run of blanks, line ends and control characters as one blank."""
    if text.isprintable():
        if "  " not in text and text.isascii():
            return text.strip()
    else:
        text = text.translate(_BLANKS)
    return " ".join(text.split())


_BLANKS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " ")
"""Control characters and ends of lines, each as a blank."""


def width(text: str) -> int:
    """Return the number of terminal cells that the text takes."""
    if text.isascii() or not _NOT_ONE_CELL.search(text):
        return len(text)
    from wcwidth import wcswidth, wcwidth

    # A joiner joins emoji; between other characters it takes no cell, and hides none.
    cells = wcswidth(_IDLE_JOINER.sub("", text))
    return cells if cells >= 0 else sum(max(0, wcwidth(character)) for character in text)


# Importing `wcwidth` takes three times as long as starting Python: not for accents, quotes, dashes, Greek, Cyrillic,
# arrows and mathematics, which take one cell each.
_NOT_ONE_CELL = lazy_pattern("[^\x00-\x7f\xa0-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u2190-\u22ff]")
_IDLE_JOINER = lazy_pattern("(?<=[\x00-\u02ff])\u200d")


def cut(text: str, characters: int) -> str:
    """Return the text in at most N characters, ending in an ellipsis if it was longer."""
    if len(text) <= characters:
        return text
    kept = text[: max(0, characters - 1)].rstrip()
    # Joiners and the letters of a flag have no function at the end of a part.
    return (kept if kept.isascii() else kept.rstrip(_JOINING).rstrip()) + "…"


_JOINING = "\u200c\u200d" + "".join(map(chr, range(0xE0020, 0xE0080)))


def shorten(text: str, cells: int) -> str:
    """Return the text in at most N terminal cells, ending in an ellipsis if it was longer."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    if text.isascii() or not _NOT_ONE_CELL.search(text):
        return text[: cells - 1] + "…"
    from wcwidth import iter_graphemes

    kept, used = "", 0
    for grapheme in iter_graphemes(text):
        used += width(grapheme)
        if used >= cells or len(kept) + len(grapheme) > cells * _CHARACTERS_PER_CELL:
            break
        kept += grapheme
    return kept + "…"


_CHARACTERS_PER_CELL = 8
"""More than any letter or emoji needs; an author can put a thousand marks on one letter."""


# Near names ---------------------------------------------------------------------------------------

_LONGEST_COMPARED = 64
"""As long as a name may be; the time of a comparison grows faster than the square of the length."""

_LONGEST_OFFERED = 200
"""Nobody types a longer name, and it would hide the rest of the message."""


def near(word: str, known: Iterable[str], limit: int = 1) -> list[str]:
    """Return the known words that look most like a word, the nearest first; upper and lower case are alike."""
    from difflib import get_close_matches

    spellings: dict[str, str] = {}
    for one in known:
        if one and len(one) <= _LONGEST_OFFERED:
            spellings.setdefault(one[:_LONGEST_COMPARED].lower(), one)
    return [spellings[one] for one in get_close_matches(word[:_LONGEST_COMPARED].lower(), list(spellings), limit, 0.6)]


def did_you_mean(word: str, known: Iterable[str], limit: int = 1) -> str:
    """Return the end of a message about an unknown word: the known words that it may stand for, or nothing."""
    close = near(word, known, limit)
    return f"; did you mean {', '.join(close)}?" if close else ""


_TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
_FALSE_WORDS = frozenset({"0", "false", "no", "off"})


def is_true(value: object) -> bool:
    """Return whether a frontmatter value means yes, in any spelling that agents accept."""
    return str(value).strip().lower() in _TRUE_WORDS


def is_false(value: object) -> bool:
    """Return whether a frontmatter value means no."""
    return str(value).strip().lower() in _FALSE_WORDS


def is_true_variable(value: str) -> bool:
    """Return whether an environment variable means yes: the systems also accept `y` there."""
    return is_true(value) or value.strip().lower() == "y"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun in the right number."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def trust_command(folder: str) -> str:
    """Return the command that trusts a folder, as it is typed in a shell."""
    from shlex import quote

    return f"skillshelf trust {quote(folder)}"


TRUST_FOR_MODELS = "skillshelf trust, in its folder"
"""The command that trusts a project, as models and clients are told it: where the project lies is for people only."""


def hidden_skills_note(count: int, folder: str) -> str:
    """Return a note that skills of an untrusted folder are hidden from models, and how to allow them."""
    hidden = f"{plural(count, 'skill')} of this project {'is' if count == 1 else 'are'} hidden from models"
    return f"{hidden} because the folder is not trusted; allow once: --trust, always: {trust_command(folder)}"


OWN_ELEMENTS = ("skill_content", "skill_context", "active_skill", "preloaded_skills")
"""Elements that hold an author's text unchanged except for their own closing tag."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_SPECIAL = lazy_pattern("[&<>\"']")


def field(text: str) -> str:
    """Return text for an XML element: folded to one line, all five special characters escaped."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], _printable(fold(text)))


def attribute(text: str) -> str:
    """Return text for an XML attribute, without what a reader cannot see."""
    return field(for_model(text))


def path_text(path: str) -> str:
    """Return a path for XML on one line: escaped, with its blanks kept so that it can be opened."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], _printable(visible_for_model(path)))


def visible_for_model(text: str) -> str:
    """Return the text on one line, with an escape for every character that no reader can see and no script needs."""
    if not text.isascii():
        from skillshelf.core.hidden_text import replace_hidden

        text = replace_hidden(text, lambda character: _escape(ord(character)))
    return visible(text)


def for_model(text: str) -> str:
    """Return an author's name or description for a model: without what a reader cannot see.

    A closing tag written in look-alikes of its characters, which XML escapes do not reach, is broken by a backslash.
    """
    return text if text.isascii() else _for_model(text)


@lru_cache(maxsize=1 << 11)
def _for_model(text: str) -> str:
    # Kept: a server shows the same descriptions again and again, and this takes longer than finding them.
    from skillshelf.core.hidden_text import without_hidden

    text = without_hidden(text)
    return _with_backslashes(text, [at for at in closing_tags(text) if text[at] != "<"])


def escape_closing_tags(body: str, *elements: str) -> tuple[str, int]:
    """Return the body with each closing tag of these elements escaped, and their number.

    A tag counts in every spelling in which it looks or reads like one: blanks and characters that nobody sees around
    the slash, those also inside the name, any case, look-alikes of Unicode, and anything but a name character after
    it. The tag is broken by a backslash, and every other byte stays.
    """
    found = closing_tags(body, *elements)
    return _with_backslashes(body, found), len(found)


def _with_backslashes(text: str, positions: list[int]) -> str:
    """Return the text with a backslash after each of these characters."""
    starts = [0, *(position + 1 for position in positions)]
    ends = [*starts[1:], len(text)]
    return "\\".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def closing_tags(text: str, *elements: str) -> list[int]:
    """Return the positions of the closing tags of these elements, or of all, in every spelling."""
    if text.isascii():
        folded = text.lower()
    else:
        from skillshelf.core.hidden_text import fold_to_ascii

        folded = fold_to_ascii(text)
    if "<" not in folded:
        return []
    return [match.start() for match in _closing_tag(elements).finditer(folded)]


@cache
def _closing_tag(elements: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of a closing tag in folded text.

    No class overlaps with what follows it, so that the time is linear in the length of the text.
    """
    unseen = r"[\x00-\x08\x0e-\x1f\x7f]*"
    gap = r"[\x00-\x20\x7f]*"
    names = "|".join(unseen.join(element) for element in elements)
    return re.compile(rf"<{gap}/{gap}(?:{names})(?![\w.:\-\xb7])" if elements else f"<{gap}/")


def _printable(text: str) -> str:
    """Return the text without characters that XML cannot hold."""
    if text.isascii():
        return text
    return "".join(c for c in text if c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")


# Names --------------------------------------------------------------------------------------------

_NOT_IN_A_NAME = r"[\x00-\x1f\x7f-\x9f\u2028\u2029/\\]"


def is_name(text: str) -> bool:
    """Return True if a text can be the name of a skill: names become addresses and paths."""
    return bool(text.strip()) and text not in (".", "..") and not re.search(_NOT_IN_A_NAME, text)


def folded_name(name: str) -> str:
    """Return the identity of a name: two names are the same if this is equal.

    It has no differences of case, compatibility form and number of blanks, and no invisible characters: names that a
    model sees alike are the same. Folding it again changes nothing.
    """
    if name.isascii():
        return " ".join(name.lower().split()) or name
    from unicodedata import normalize

    from skillshelf.core.hidden_text import without_invisible

    before, folded = None, name
    while folded != before:
        before, folded = folded, normalize("NFKC", normalize("NFKC", folded).casefold())
        # A name of nothing else keeps what it has: it must not be equal to every other one of them.
        folded = " ".join(without_invisible(folded).split()) or folded
    return folded


def holds_back(entry: str, name: str) -> bool:
    """Return True if a name in a list of what is denied or disabled means a skill."""
    return name == entry or folded_name(name) == folded_name(entry)


def matches_folded_glob(name: str, pattern: str) -> bool:
    """Return True if a glob matches a name as it is written or folded: for patterns that leave skills out."""
    if matches_glob(name, pattern):
        return True
    folded = folded_name(name), folded_name(pattern)
    return folded != (name, pattern) and matches_glob(*folded)


def matches_glob(name: str, pattern: str) -> bool:
    """Return True if a glob with `*`, `?`, `[...]` and `{a,b}` matches a whole name.

    Braces may be nested and alternatives empty. They are followed, not expanded, so that the time grows with the
    length of the pattern and not with the number of texts that it stands for.
    """
    if "{" not in pattern:
        from fnmatch import fnmatchcase

        return fnmatchcase(name, pattern)
    return len(name) in _ends(name, {0}, pattern, 0)


_BRACES_DEEP = 32


def _ends(name: str, starts: set[int], pattern: str, depth: int) -> set[int]:
    """Return the positions in a name where a match of the pattern that begins at one of `starts` can end."""
    at = 0
    pairs = _closing_braces(pattern) if depth < _BRACES_DEEP else {}
    while at < len(pattern) and starts:
        token = pattern[at]
        close = pairs.get(at)
        if close is not None:
            found = [_ends(name, starts, one, depth + 1) for one in _alternatives(pattern[at + 1 : close])]
            starts, at = set[int]().union(*found), close + 1
            continue
        if token == "[" and (end := pattern.find("]", at + 2)) > 0:
            token = pattern[at : end + 1]
        at += len(token)
        if token == "*":
            starts = set(range(min(starts), len(name) + 1))
        else:
            starts = {start + 1 for start in starts if start < len(name) and _is_one(name[start], token)}
    return starts


def _is_one(character: str, token: str) -> bool:
    """Return True if a token of a glob matches one character."""
    if token == "?" or len(token) == 1:
        return token in ("?", character)
    from fnmatch import fnmatchcase

    return fnmatchcase(character, token.replace("[^", "[!", 1))


def _closing_braces(pattern: str) -> dict[int, int]:
    """Return the position of each opening brace that is closed, with that of its closing one."""
    pairs, waiting = {}, []
    for at, character in enumerate(pattern):
        if character == "{":
            waiting.append(at)
        elif character == "}" and waiting:
            pairs[waiting.pop()] = at
    return pairs


def _alternatives(text: str) -> list[str]:
    """Return the parts between the commas that are not inside other braces."""
    parts, depth = [""], 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def is_ignored(path: str, patterns: Sequence[str], *, folder: bool) -> bool:
    """Return True if the last pattern of an ignore file that matches a path leaves it out.

    The patterns are those of git, without regard to case. One with a slash is about the whole path, one without about
    its last part; whether a folder above is left out is for the caller to know.
    """
    parts, left_out = path.lower().split("/"), False
    for pattern in patterns:
        text = pattern.strip().lower()
        is_kept = text.startswith("!")
        text = text[1:] if is_kept else text
        if not text or text.startswith("#") or (text.endswith("/") and not folder):
            continue
        wanted = text.rstrip("/").split("/")
        if _is_same_path(wanted, parts if len(wanted) > 1 else parts[-1:]):
            left_out = not is_kept
    return left_out


def _is_same_path(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Return True if patterns of single parts, of which `**` is any number of parts, match all parts of a path."""
    from fnmatch import fnmatchcase

    ends = {0}
    for pattern in wanted:
        if pattern == "**":
            ends = set(range(min(ends, default=len(parts) + 1), len(parts) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(parts) and fnmatchcase(parts[end], pattern)}
    return len(parts) in ends
