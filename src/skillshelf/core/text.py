"""Make untrusted text safe to print or to send: escape, fold, truncate, and escape for XML."""

import re

__all__ = [
    "OWN_ELEMENTS",
    "attribute",
    "cut",
    "escape_closing_tags",
    "escape_surrogates",
    "field",
    "fold",
    "hidden_skills_note",
    "is_false",
    "is_true",
    "matches_glob",
    "path_text",
    "plural",
    "shorten",
    "visible",
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


_SURROGATE = re.compile("[\ud800-\udfff]")


def escape_surrogates(text: str) -> str:
    """Return the text with lone surrogates, such as bytes of a file name that are not UTF-8, as escapes."""
    return text if text.isascii() else _SURROGATE.sub(lambda found: _escape(ord(found[0])), text)


def fold(text: str) -> str:
    """Return the text with each run of blanks, line ends and control characters as one blank."""
    if text.isprintable():
        if "  " not in text and text.isascii():
            return text.strip()
    else:
        text = "".join(" " if c < " " or "\x7f" <= c < "\xa0" or c in "\u2028\u2029" else c for c in text)
    return " ".join(text.split())


def width(text: str) -> int:
    """Return the number of terminal cells that the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, characters: int) -> str:
    """Return the text in at most N characters, ending in an ellipsis if it was longer."""
    return text if len(text) <= characters else text[: max(0, characters - 1)].rstrip() + "…"


def shorten(text: str, cells: int) -> str:
    """Return the text in at most N terminal cells, ending in an ellipsis if it was longer."""
    if width(text) <= cells:
        return text
    kept = text[: max(0, cells - 1)]
    while kept and width(kept) >= cells:
        kept = kept[:-1]
    return kept + "…" if cells > 0 else ""


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


def hidden_skills_note(count: int, folder: str) -> str:
    """Return a note that skills of an untrusted folder are hidden from models, and how to allow them."""
    hidden = f"{plural(count, 'skill')} of this project {'is' if count == 1 else 'are'} hidden from models"
    return f"{hidden} because the folder is not trusted; allow once: --trust, always: skillshelf trust {folder}"


OWN_ELEMENTS = ("skill_content", "skill_context", "active_skill", "preloaded_skills")
"""Elements that hold an author's text unchanged except for their own closing tag."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_SPECIAL = re.compile("[&<>\"']")


def field(text: str) -> str:
    """Return text for an XML element: folded to one line, all five special characters escaped."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], _printable(fold(text)))


def attribute(text: str) -> str:
    """Return text for an XML attribute."""
    return field(text)


def path_text(path: str) -> str:
    """Return a path for XML on one line: escaped, with its blanks kept so that it can be opened."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], _printable(visible(path)))


def escape_closing_tags(body: str, element: str) -> tuple[str, int]:
    """Return the body with each closing tag of its element escaped, and their number."""
    return re.subn(rf"<(?=/\s*{element}\s*>)", r"<\\", body, flags=re.IGNORECASE)


def _printable(text: str) -> str:
    """Return the text without characters that XML cannot hold."""
    if text.isascii():
        return text
    return "".join(c for c in text if c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")


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
