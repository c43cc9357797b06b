"""Text between the fences to plain values: the one YAML function.

The parser is `ryaml`. Around it stands what it does not do: it expands aliases (30 KB can take a minute),
drops tags without a word, reads `010` as text, and names no line for some errors.
"""

import re
from itertools import count
from typing import Any, NamedTuple

from skillshelf.core.limits import FRONTMATTER_DEPTH, FRONTMATTER_KEYS

__all__ = ["YamlProblem", "load_colon_lines", "load_lines", "load_yaml"]

_PLACE = re.compile(r"at line (\d+) column (\d+)")
_DUPLICATE = re.compile(r"with key (?:\"(.*)\"|`(.*)`|(\S+))", re.DOTALL)
_POSITION = re.compile(r"at position (\d+)")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_SURROGATE_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_TAG_PLACE = re.compile(r"(?<![^\s\[{,:?-])!")
_ALIAS = re.compile(r"\*[0-9A-Za-z_-]+")
# Numbers that the parser takes for text or for a float: leading zeros, and more digits than it can hold.
_ODD_NUMBER = r"[-+]?(?:0[0-9]+|[0-9]{20,}|0x[0-9a-fA-F]{17,}|0o[0-7]{22,}|0b[01]{65,})"
_ODD_TOKEN = re.compile(rf"(?<![\w.+-]){_ODD_NUMBER}(?![\w.+-])")
_ODD_VALUE = re.compile(rf"{_ODD_NUMBER}\Z")
_LARGEST = 2**64
_BRACKET = re.compile(r"[\[\]{}]")
_BRACKETS = 128
_TOO_DEEP = f"nested deeper than {FRONTMATTER_DEPTH} levels"
_TOO_LONG = "an integer beyond 64 bits"


class YamlProblem(Exception):
    """Why the text gives no values, by rule, with the place in the text."""

    def __init__(self, rule: str, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.line = line
        self.column = column


class _Tally(NamedTuple):
    text: str
    keys: list[int]


def load_yaml(text: str) -> Any:
    """The values of a YAML text as text, numbers, booleans, None, lists and maps with text keys."""
    if text.count("[") + text.count("{") > _BRACKETS:
        _refuse_bracket_towers(text)
    if "*" in text and "&" in text:
        _refuse_aliases(text)
    value = _parse(text)
    if "!" in text and _TAG_PLACE.search(text):
        _refuse_tags(text, value)
    if type(value) is dict and _is_text_only(value):
        return value
    return _plain(value, _twin(text), _Tally(text, [0]), 1)


def load_lines(text: str) -> dict[str, Any]:
    """The values of `key: value` lines, for systems that read no more than that."""
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
    """The values of the lines that have a colon, at whatever depth; the others count for nothing."""
    return load_lines("\n".join(line for line in text.split("\n") if ":" in line))


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _is_text_only(value: dict[Any, Any], most: int = FRONTMATTER_KEYS // 4, depth: int = 2) -> bool:
    """Whether the map, and maps in it, hold nothing but ordinary text, which needs no second look."""
    if len(value) > most:
        return False
    for key, item in value.items():
        if type(key) is not str or key == "<<":
            return False
        if type(item) is str:
            if item and item[0] in "0123456789+-" and _ODD_VALUE.match(item):
                return False
        elif type(item) is not dict or depth == 1 or not _is_text_only(item, 3, depth - 1):
            return False
    return True


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


# Aliases, tags, odd numbers: a changed copy of the text tells what is syntax ----------------------


def _refuse_aliases(text: str) -> None:
    """Raise if an alias is part of the syntax and not of some text."""
    # Every alias gets a name that no anchor has, which is an error at once, before anything is expanded; in
    # text it is only a longer word. Any other error is final too: only this copy is known to be safe to parse.
    unused = next(word for number in count() if (word := f"Zq{number}") not in text)
    try:
        _parse(_ALIAS.sub(lambda alias: alias[0] + unused, text))
    except YamlProblem as problem:
        if problem.rule == "yaml-alias":
            raise YamlProblem("yaml-alias", "aliases are not read", *_token(text, "*")) from None
        raise


def _refuse_bracket_towers(text: str) -> None:
    """Raise for brackets nested so deeply that the parser would take seconds to say so."""
    depth = 0
    for match in _BRACKET.finditer(text):
        depth = max(0, depth + (1 if match[0] in "[{" else -1))
        if depth > _BRACKETS:
            raise YamlProblem("frontmatter-depth", _TOO_DEEP, *_place_of(text, match.start()))


def _refuse_tags(text: str, value: Any) -> None:
    """Raise if an exclamation mark is part of the syntax and not of some text."""
    stand_in = next(chr(point) for point in range(0xA000, 0xA48C) if chr(point) not in text)
    try:
        # Compared as Python writes them, since NaN is not equal to itself; the stand-in is written as it is.
        same = repr(_parse(text.replace("!", stand_in))).replace(stand_in, "!") == repr(value)
    except YamlProblem:
        same = False
    if not same:
        raise YamlProblem("yaml-tag", "tags such as `!!str` are not read", *_token(text, "!"))


def _token(text: str, mark: str) -> tuple[int, int]:
    """Where a mark first stands at the beginning of a word, or at all."""
    for match in re.finditer(re.escape(mark), text):
        before = text[max(0, match.start() - 1) : match.start()]
        if not before or before in " \t\n[{,:":
            return _place_of(text, match.start())
    return _place_of(text, text.index(mark))


def _twin(text: str) -> Any:
    """The values with every odd number replaced by a plain one: where the twin is a number, it was no text."""
    if not _ODD_TOKEN.search(text):
        return None
    numbers = count(1)
    try:
        return _parse(_ODD_TOKEN.sub(lambda match: str(next(numbers)), text))
    except YamlProblem:
        return None


# Problems -----------------------------------------------------------------------------------------


def _place_of(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _problem(message: str, text: str) -> YamlProblem:
    """The parser's complaint under the rule it belongs to, with a line."""
    if place := _PLACE.search(message):
        line, column = _in_line_feeds(text, int(place[1]), int(place[2]))
    elif position := _POSITION.search(message):
        line, column = _place_of(text, int(position[1]))
    else:
        line, column = 1, 1
    for part, rule, told in _COMPLAINTS:
        if part in message:
            if rule == "yaml-duplicate-key":
                return _duplicate(message, text)
            if part == "more than one document":
                line, column = _second_document(text), 1
            return YamlProblem(rule, told, line, column)
    clean = " ".join(_PLACE.sub("", message).partition(", while")[0].split())
    return YamlProblem("yaml", clean or "not readable YAML", line, column)


def _duplicate(message: str, text: str) -> YamlProblem:
    match = _DUPLICATE.search(message)
    key = next((part for part in match.groups() if part), None) if match else None
    if key is None:
        return YamlProblem("yaml-duplicate-key", "a key stands twice")
    return YamlProblem("yaml-duplicate-key", f"the key {key!r} stands twice", *_second_line_of(text, key))


_COMPLAINTS = (
    ("duplicate entry", "yaml-duplicate-key", ""),
    ("repetition limit", "yaml-alias", "aliases are not read"),
    ("unknown anchor", "yaml-alias", "an alias without its anchor; aliases are not read"),
    ("recursion limit", "frontmatter-depth", _TOO_DEEP),
    ("control characters", "control-character", "a control character in the frontmatter"),
    ("invalid type: integer", "yaml-value", _TOO_LONG),
    ("unhashable type", "yaml-key", "a list or map as key"),
    ("more than one document", "yaml", "a second YAML document begins inside the frontmatter"),
)


def _in_line_feeds(text: str, line: int, column: int) -> tuple[int, int]:
    """The place in lines that end with a line feed; for YAML a few other characters end a line too."""
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    if len(starts) == text.count("\n") + 1 or line > len(starts):
        return line, column
    return _place_of(text, starts[line - 1] + column - 1)


def _second_line_of(text: str, key: str) -> tuple[int, int]:
    """The line where a key stands again at the same depth, without a line of less depth between."""
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


def _plain(value: Any, twin: Any, tally: _Tally, depth: int) -> Any:
    """The same value with text keys and nothing that JSON cannot hold."""
    kind = type(value)
    if kind is str:
        return _number(value, tally.text) if type(twin) is int and _ODD_VALUE.match(value) else value
    if kind is dict:
        return _plain_map(value, twin, tally, depth)
    if kind is list:
        if depth > FRONTMATTER_DEPTH:
            raise YamlProblem("frontmatter-depth", _TOO_DEEP)
        twins = twin if type(twin) is list and len(twin) == len(value) else [None] * len(value)
        return [_plain(item, other, tally, depth + 1) for item, other in zip(value, twins, strict=True)]
    if kind is float:
        if value - value != 0:
            raise YamlProblem("yaml-value", "not a number, or infinity", *_line_with(tally.text, (".nan", ".inf")))
        if type(twin) is int:
            raise YamlProblem("yaml-value", _TOO_LONG, *_odd_place(tally.text))
    return value


def _plain_map(value: dict[Any, Any], twin: Any, tally: _Tally, depth: int) -> dict[str, Any]:
    if depth > FRONTMATTER_DEPTH:
        raise YamlProblem("frontmatter-depth", _TOO_DEEP)
    tally.keys[0] += len(value)
    if tally.keys[0] > FRONTMATTER_KEYS:
        raise YamlProblem("frontmatter-keys", f"more than {FRONTMATTER_KEYS} keys")
    # Keys may differ in the twin; the order of the values is the same.
    twins = list(twin.values()) if type(twin) is dict and len(twin) == len(value) else [None] * len(value)
    plain: dict[str, Any] = {}
    for (key, item), other in zip(value.items(), twins, strict=True):
        name = key if type(key) is str else _key_text(key)
        if name == "<<":
            raise YamlProblem("yaml-merge", "merge keys (`<<`) are not read", *_line_with(tally.text, ("<<",)))
        if name in plain:
            problem = f"the key {name!r} stands twice"
            raise YamlProblem("yaml-duplicate-key", problem, *_second_line_of(tally.text, name))
        plain[name] = _plain(item, other, tally, depth + 1)
    return plain


def _key_text(key: object) -> str:
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _number(value: str, text: str) -> int:
    """The integer that an odd number is, as the 1.2 core schema reads it: `010` is 10."""
    digits = value.lstrip("+-")
    if len(digits) > 70:
        raise YamlProblem("yaml-value", _TOO_LONG, *_odd_place(text))
    number = int(digits, {"x": 16, "o": 8, "b": 2}.get(digits[1:2], 10))
    if number >= _LARGEST or (value[0] == "-" and number > _LARGEST // 2):
        raise YamlProblem("yaml-value", _TOO_LONG, *_odd_place(text))
    return -number if value[0] == "-" else number


def _odd_place(text: str) -> tuple[int, int]:
    longest = max(_ODD_TOKEN.finditer(text), key=lambda match: len(match[0]))
    return _place_of(text, longest.start())


def _line_with(text: str, needles: tuple[str, ...]) -> tuple[int, int]:
    for number, line in enumerate(text.split("\n"), 1):
        for needle in needles:
            if (column := line.lower().find(needle)) >= 0:
                return number, column + 1
    return 1, 1
