"""Parse frontmatter text into plain values; all YAML of the package is read here.

The parser is `ryaml`. This module adds what it lacks: it expands aliases (30 KB can take a minute),
drops tags silently, reads `010` as text, and gives no line for some errors.
"""

import re
from collections.abc import Iterable
from itertools import count
from typing import Any

from skillshelf.core.limits import FRONTMATTER_DEPTH, FRONTMATTER_KEYS
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple

__all__ = [
    "NO_ANCHOR",
    "YamlProblem",
    "load_colon_lines",
    "load_first_lines",
    "load_lines",
    "load_untagged",
    "load_yaml",
]

NO_ANCHOR = "an alias without its anchor; aliases are not read"
"""The message about a text that is no YAML, although it has the rule of aliases, which are."""

_LINE_COLUMN = lazy_pattern(r"at line (\d+) column (\d+)")
_DUPLICATE = lazy_pattern(r"with key (?:\"(.*)\"|`(.*)`|(\S+))", re.DOTALL)
_OFFSET = lazy_pattern(r"at position (\d+)")
_BREAK = lazy_pattern("\r\n|[\n\r\x85\u2028\u2029]")
_SURROGATE_PAIR = lazy_pattern(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_TAG_START = lazy_pattern(r"(?<![^\s\[{,:?-])!")
_FIELD_TAG = lazy_pattern(r"^([ \t]*[\w.-]+:[ \t]+)!\S*[ \t]*", re.MULTILINE)
_ALIAS = lazy_pattern(r"\*[0-9A-Za-z_-]+")
# Numbers that the parser takes for text or for a float: leading zeros, and more digits than it can hold.
_ODD_NUMBER = r"[-+]?(?:0[0-9]+|[0-9]{20,}|0x[0-9a-fA-F]{17,}|0o[0-7]{22,}|0b[01]{65,})"
_ODD_TOKEN = lazy_pattern(rf"(?<![\w.+-]){_ODD_NUMBER}(?![\w.+-])")
_ODD_VALUE = lazy_pattern(rf"{_ODD_NUMBER}\Z")
# Every odd number has one of these, and looking for them is ten times faster.
_MAY_BE_ODD = lazy_pattern(r"0[0-9xob]|[0-9]{20}")
_LARGEST = 2**64
_BRACKET = lazy_pattern(r"[\[\]{}]")
_BRACKETS = 128
_TOO_DEEP = f"nested deeper than {FRONTMATTER_DEPTH} levels"
_TOO_LONG = "an integer beyond 64 bits"


class YamlProblem(Exception):
    """The reason why a text cannot be parsed: rule, message, and position in the text."""

    def __init__(self, rule: str, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.line = line
        self.column = column


class _Conversion(NamedTuple):
    """The text that is converted, the number of keys so far, and how many there may be."""

    text: str
    keys: list[int]
    most: int


def load_yaml(text: str, *, most_keys: int = FRONTMATTER_KEYS) -> Any:
    """Return the value of a YAML text: text, numbers, booleans, None, lists and maps with text keys."""
    if text.count("[") + text.count("{") > _BRACKETS:
        _refuse_deep_brackets(text)
    if "*" in text and "&" in text:
        _refuse_aliases(text)
    value = _parse(text)
    if "!" in text and _TAG_START.search(text):
        _refuse_tags(text, value)
    if type(value) is dict and (keys := _keys_of_plain(value)) is not None and keys <= most_keys:
        return value
    return _plain(value, _twin(text), _Conversion(text, [0], most_keys), 1)


def load_untagged(text: str) -> Any:
    """Return the value of a YAML text without the tags of its fields, which several hosts do not regard."""
    try:
        return load_yaml(text)
    except YamlProblem as problem:
        if problem.rule != "yaml-tag":
            raise
        return load_yaml(_FIELD_TAG.sub(r"\1", text))


def load_lines(text: str) -> dict[str, Any]:
    """Return the values of `key: value` lines, for systems that read nothing else."""
    fields: dict[str, Any] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        key, colon, value = stripped.partition(":")
        if not colon:
            raise YamlProblem("yaml", "a line without a colon, in a profile that reads `key: value` lines", number)
        fields[key.strip()] = _unquoted(value.strip())
    return fields


def load_colon_lines(text: str) -> dict[str, Any]:
    """Return the values of the lines that have a colon, at any depth; the others are skipped."""
    return load_lines("\n".join(line for line in text.split("\n") if ":" in line))


def load_first_lines(text: str) -> dict[str, Any]:
    """Return the first value of each key at the start of a line, as it is written; a value may be on the next line.

    Name and description count anywhere in the text, other keys before the second fence.
    """
    head = text.partition("---")[2].partition("\n---")[0]
    keys = dict.fromkeys(("name", "description", *re.findall(r"^([A-Za-z][\w-]*):", head, re.MULTILINE)[:64]))
    found = {key: re.search(rf"^{key}:\s*(\S[^\n]*)", text, re.MULTILINE) for key in keys}
    return {key: match[1].strip() for key, match in found.items() if match}


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _keys_of_plain(value: dict[Any, Any] | list[Any], depth: int = 1) -> int | None:
    """Return the number of keys in a value that `_plain` would not change; None if it may change or refuse it."""
    if depth > FRONTMATTER_DEPTH:
        return None
    keys = 0
    items: Iterable[Any] = value
    if type(value) is dict:
        for key in value:
            if type(key) is not str or key == "<<":
                return None
        keys, items = len(value), value.values()
    for item in items:
        kind = type(item)
        if kind is str:
            if item and item[0] in "0123456789+-" and _ODD_VALUE.match(item):
                return None
        elif kind is dict or kind is list:
            below = _keys_of_plain(item, depth + 1)
            if below is None:
                return None
            keys += below
        elif kind is not bool and kind is not int and item is not None:
            return None
    return keys


def _parse(text: str) -> Any:
    # Imported here: a listing that finds everything in the cache parses nothing.
    import ryaml

    try:
        return ryaml.loads(text)  # type: ignore[attr-defined]  # its stub exports nothing
    except (ValueError, TypeError) as error:
        if "Unicode character escape" in str(error) and _SURROGATE_PAIR.search(text):
            return _parse(_SURROGATE_PAIR.sub(_joined_pair, text))
        raise _problem(str(error), text) from None
    except RecursionError:
        raise YamlProblem("frontmatter-depth", _TOO_DEEP) from None


def _joined_pair(match: re.Match[str]) -> str:
    high, low = int(match[1], 16), int(match[2], 16)
    return f"\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08X}"


# Aliases, tags, odd numbers: a changed copy of the text shows what is syntax ----------------------


def _refuse_aliases(text: str) -> None:
    """Raise if the text has an alias as YAML syntax, not inside a string."""
    # Every alias gets a name that no anchor has, which is an error at once, before anything is expanded; inside
    # a string it is only a longer word. Any other error is final too: only this copy is known to be safe to parse.
    unused = next(word for number in count() if (word := f"Zq{number}") not in text)
    try:
        _parse(_ALIAS.sub(lambda alias: alias[0] + unused, text))
    except YamlProblem as problem:
        if problem.rule == "yaml-alias":
            raise YamlProblem("yaml-alias", "aliases are not read", *_token(text, "*")) from None
        raise


def _refuse_deep_brackets(text: str) -> None:
    """Raise for brackets nested so deeply that the parser would take seconds to reject them."""
    depth = 0
    for match in _BRACKET.finditer(text):
        depth = max(0, depth + (1 if match[0] in "[{" else -1))
        if depth > _BRACKETS:
            raise YamlProblem("frontmatter-depth", _TOO_DEEP, *_position(text, match.start()))


def _refuse_tags(text: str, value: Any) -> None:
    """Raise if the text has a tag as YAML syntax, not inside a string."""
    stand_in = next(chr(point) for point in range(0xA000, 0xA48C) if chr(point) not in text)
    try:
        # Compared as Python writes them, since NaN is not equal to itself; the stand-in is written as it is.
        same = repr(_parse(text.replace("!", stand_in))).replace(stand_in, "!") == repr(value)
    except YamlProblem:
        same = False
    if not same:
        raise YamlProblem("yaml-tag", "tags such as `!!str` are not read", *_token(text, "!"))


def _token(text: str, mark: str) -> tuple[int, int]:
    """Return the offset at which a mark first begins a word, or else at which it first occurs."""
    for match in re.finditer(re.escape(mark), text):
        before = text[max(0, match.start() - 1) : match.start()]
        if not before or before in " \t\n[{,:":
            return _position(text, match.start())
    return _position(text, text.index(mark))


def _twin(text: str) -> Any:
    """Return the value with every odd number replaced by a plain one: if the twin is a number, the original is too."""
    if not (_MAY_BE_ODD.search(text) and _ODD_TOKEN.search(text)):
        return None
    numbers = count(1)
    try:
        return _parse(_ODD_TOKEN.sub(lambda match: str(next(numbers)), text))
    except YamlProblem:
        return None


# Problems -----------------------------------------------------------------------------------------


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _problem(message: str, text: str) -> YamlProblem:
    """Return the parser's error under our rule, with a line."""
    if match := _LINE_COLUMN.search(message):
        line, column = _in_line_feeds(text, int(match[1]), int(match[2]))
    elif match := _OFFSET.search(message):
        line, column = _position(text, int(match[1]))
    else:
        line, column = 1, 1
    for part, rule, shown in _PARSER_ERRORS:
        if part in message:
            if rule == "yaml-duplicate-key":
                return _duplicate(message, text)
            if part == "more than one document":
                line, column = _second_document(text), 1
            return YamlProblem(rule, shown, line, column)
    clean = " ".join(_LINE_COLUMN.sub("", message).partition(", while")[0].split())
    return YamlProblem("yaml", clean or "not readable YAML", line, column)


def _duplicate(message: str, text: str) -> YamlProblem:
    match = _DUPLICATE.search(message)
    key = next((part for part in match.groups() if part), None) if match else None
    if key is None:
        return YamlProblem("yaml-duplicate-key", "a key occurs twice")
    return YamlProblem("yaml-duplicate-key", f"the key {key!r} occurs twice", *_second_line_of(text, key))


_PARSER_ERRORS = (
    ("duplicate entry", "yaml-duplicate-key", ""),
    ("repetition limit", "yaml-alias", "aliases are not read"),
    ("unknown anchor", "yaml-alias", NO_ANCHOR),
    ("recursion limit", "frontmatter-depth", _TOO_DEEP),
    ("control characters", "control-character", "a control character in the frontmatter"),
    ("invalid type: integer", "yaml-value", _TOO_LONG),
    ("unhashable type", "yaml-key", "a list or map as key"),
    ("more than one document", "yaml", "a second YAML document begins inside the frontmatter"),
)


def _in_line_feeds(text: str, line: int, column: int) -> tuple[int, int]:
    """Convert a position to lines that end with a line feed; in YAML a few other characters end a line too."""
    if text.isascii() and "\r" not in text:
        return line, column
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    if len(starts) == text.count("\n") + 1 or line > len(starts):
        return line, column
    return _position(text, starts[line - 1] + column - 1)


def _second_line_of(text: str, key: str) -> tuple[int, int]:
    """Return the line where a key occurs again at the same depth, without a line of less depth between."""
    depths: set[int] = set()
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        depth = len(line) - len(line.lstrip(" "))
        if line.strip():
            depths = {other for other in depths if other <= depth}
        if line.lstrip(" -{\"'").startswith(key) and line.partition(key)[2].lstrip("\"' ").startswith(":"):
            if depth in depths:
                return number, 1
            depths.add(depth)
            first = number
    return first, 1


def _second_document(text: str) -> int:
    lines = text.split("\n")
    return next((n for n, line in enumerate(lines, 1) if line.startswith(("...", "--- ", "---\t"))), 1)


# Plain values -------------------------------------------------------------------------------------


def _plain(value: Any, twin: Any, state: _Conversion, depth: int) -> Any:
    """Return the same value with text keys and nothing that JSON cannot hold."""
    kind = type(value)
    if kind is str:
        return _number(value, state.text) if type(twin) is int and _ODD_VALUE.match(value) else value
    if kind is dict:
        return _plain_map(value, twin, state, depth)
    if kind is list:
        if depth > FRONTMATTER_DEPTH:
            raise YamlProblem("frontmatter-depth", _TOO_DEEP)
        twins = twin if type(twin) is list and len(twin) == len(value) else [None] * len(value)
        return [_plain(item, other, state, depth + 1) for item, other in zip(value, twins, strict=True)]
    if kind is float:
        if value - value != 0:
            raise YamlProblem("yaml-value", "not a number, or infinity", *_line_with(state.text, (".nan", ".inf")))
        if type(twin) is int:
            raise YamlProblem("yaml-value", _TOO_LONG, *_odd_position(state.text))
    return value


def _plain_map(value: dict[Any, Any], twin: Any, state: _Conversion, depth: int) -> dict[str, Any]:
    if depth > FRONTMATTER_DEPTH:
        raise YamlProblem("frontmatter-depth", _TOO_DEEP)
    state.keys[0] += len(value)
    if state.keys[0] > state.most:
        raise YamlProblem("frontmatter-keys", f"more than {state.most} keys")
    # Keys may differ in the twin, but the order of the values is the same.
    twins = list(twin.values()) if type(twin) is dict and len(twin) == len(value) else [None] * len(value)
    plain: dict[str, Any] = {}
    for (key, item), other in zip(value.items(), twins, strict=True):
        name = key if type(key) is str else _key_text(key)
        if name == "<<":
            raise YamlProblem("yaml-merge", "merge keys (`<<`) are not read", *_line_with(state.text, ("<<",)))
        if name in plain:
            problem = f"the key {name!r} occurs twice"
            raise YamlProblem("yaml-duplicate-key", problem, *_second_line_of(state.text, name))
        plain[name] = _plain(item, other, state, depth + 1)
    return plain


def _key_text(key: object) -> str:
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _number(value: str, text: str) -> int:
    """Return the integer of an odd number, as the YAML 1.2 core schema reads it: `010` is 10."""
    digits = value.lstrip("+-")
    if len(digits) > 70:
        raise YamlProblem("yaml-value", _TOO_LONG, *_odd_position(text))
    number = int(digits, {"x": 16, "o": 8, "b": 2}.get(digits[1:2], 10))
    if number >= _LARGEST or (value[0] == "-" and number > _LARGEST // 2):
        raise YamlProblem("yaml-value", _TOO_LONG, *_odd_position(text))
    return -number if value[0] == "-" else number


def _odd_position(text: str) -> tuple[int, int]:
    longest = max(_ODD_TOKEN.finditer(text), key=lambda match: len(match[0]))
    return _position(text, longest.start())


def _line_with(text: str, needles: tuple[str, ...]) -> tuple[int, int]:
    for number, line in enumerate(text.split("\n"), 1):
        for needle in needles:
            if (column := line.lower().find(needle)) >= 0:
                return number, column + 1
    return 1, 1
