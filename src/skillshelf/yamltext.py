"""Text between the fences to plain values: the one YAML function.

The parser is `ryaml`. Around it stands what it does not do: it expands aliases (30 KB can take a minute),
drops tags without a word, reads `010` as text, and names no line for some errors.
"""

import re
from typing import Any, NamedTuple

from skillshelf.limits import FRONTMATTER_DEPTH, FRONTMATTER_KEYS

__all__ = ["YamlProblem", "load_lines", "load_yaml"]

_PLACE = re.compile(r"at line (\d+) column (\d+)")
_POSITION = re.compile(r"at position (\d+)")
# An anchor, alias or tag can only stand where a value or key begins.
_INDICATOR = re.compile(r"(?:^[ \t]*|[:\-?,\[{][ \t]+|[\[{,])([&*!])", re.MULTILINE)
_SURROGATE_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_LONG_INTEGER = re.compile(r"(?<![\w.'\"])[-+]?\d{20,}(?![\w.'\"])")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+\Z")
_ANCHOR = re.compile(r"&[0-9A-Za-z_-]+")
# A private-use character stands in for `!` while we ask whether it was syntax.
_STAND_IN = "\uf5a1"
_TOO_DEEP = f"nested deeper than {FRONTMATTER_DEPTH} levels"
_TOO_LONG = "an integer beyond 64 bits"


class YamlProblem(Exception):
    """Why the text gives no values, by rule, with the place in the text."""

    def __init__(self, rule: str, message: str, line: int = 1, column: int | None = None) -> None:
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
    if "*" in text or "!" in text or "&" in text:
        _refuse_references(text)
    value = _parse(text)
    if type(value) is dict and _is_flat(value):
        return value
    return _plain(value, _Tally(text, [0]), 1)


def load_lines(text: str) -> dict[str, Any]:
    """The values of `key: value` lines, for systems that read no more than that."""
    fields: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        key, colon, value = stripped.partition(":")
        if not colon:
            raise YamlProblem("yaml", "a line without a colon, in a profile that reads `key: value` lines", number)
        fields[key.strip()] = _unquoted(value.strip())
    return fields


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _is_flat(value: dict[Any, Any]) -> bool:
    """Whether the map holds nothing but ordinary text, which needs no second look."""
    if len(value) > FRONTMATTER_KEYS:
        return False
    for key, item in value.items():
        if type(key) is not str or type(item) is not str or key == "<<":
            return False
        if item and item[0] in "0123456789+-" and item[-1].isdigit():
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


def _refuse_references(text: str) -> None:
    """Raise if an anchor with its alias, or a tag, is part of the syntax and not of some text."""
    if "*" in text and "&" in text:
        # With its anchor blanked out an alias is an error at once, before anything is expanded. Any
        # other error is final too: only this text is known to be safe to parse.
        try:
            _parse(_ANCHOR.sub(lambda anchor: " " * len(anchor[0]), text))
        except YamlProblem as problem:
            if problem.rule == "yaml-alias":
                raise YamlProblem("yaml-alias", "aliases are not read", *_first(text, "*")) from None
            raise
    if "!" not in text or not any(match[1] == "!" for match in _INDICATOR.finditer(text)):
        return
    if _restored(_parse(text.replace("!", _STAND_IN))) != _parse(text):
        raise YamlProblem("yaml-tag", "tags such as `!!str` are not read", *_first(text, "!"))


def _restored(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(_STAND_IN, "!")
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if isinstance(value, dict):
        return {_restored(key): _restored(item) for key, item in value.items()}
    return value


def _first(text: str, mark: str) -> tuple[int, int]:
    starts = (match.start(1) for match in _INDICATOR.finditer(text) if match[1] == mark)
    return _place_of(text, next(starts, text.index(mark)))


def _place_of(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _problem(message: str, text: str) -> YamlProblem:
    """The parser's complaint under the rule it belongs to, with a line."""
    if place := _PLACE.search(message):
        line, column = int(place[1]), int(place[2])
    elif position := _POSITION.search(message):
        line, column = _place_of(text, int(position[1]))
    else:
        line, column = 1, 1
    for part, rule, told in _COMPLAINTS:
        if part in message:
            if rule == "yaml-duplicate-key":
                key = message.partition('"')[2].rpartition('"')[0]
                line, column = _second_line_of(text, key)
                told = f"the key {key!r} stands twice"
            return YamlProblem(rule, told, line, column)
    clean = _PLACE.sub("", message).split(", while")[0].replace("  ", " ").strip()
    return YamlProblem("yaml", clean or "not readable YAML", line, column)


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


def _second_line_of(text: str, key: str) -> tuple[int, int]:
    lines = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.lstrip(" -{\"'").startswith(key) and line.partition(key)[2].lstrip("\"' ").startswith(":")
    ]
    return (lines[1] if len(lines) > 1 else lines[0] if lines else 1), 1


def _plain(value: Any, tally: _Tally, depth: int) -> Any:
    """The same value with text keys and nothing that JSON cannot hold."""
    kind = type(value)
    if kind is str:
        return _number_or_text(value, tally.text)
    if kind is dict:
        return _plain_map(value, tally, depth)
    if kind is list:
        if depth > FRONTMATTER_DEPTH:
            raise YamlProblem("frontmatter-depth", _TOO_DEEP)
        return [_plain(item, tally, depth + 1) for item in value]
    if kind is float and not -(2.0**63) < value < 2.0**63:
        _refuse_float(value, tally.text)
    return value


def _refuse_float(value: float, text: str) -> None:
    """Raise for infinity and NaN, and for digits that the parser could only hold as a float."""
    if value - value != 0:
        raise YamlProblem("yaml-value", "not a number, or infinity", *_line_with(text, (".nan", ".inf")))
    if digits := _LONG_INTEGER.search(text):
        raise YamlProblem("yaml-value", _TOO_LONG, *_place_of(text, digits.start()))


def _plain_map(value: dict[Any, Any], tally: _Tally, depth: int) -> dict[str, Any]:
    if depth > FRONTMATTER_DEPTH:
        raise YamlProblem("frontmatter-depth", _TOO_DEEP)
    tally.keys[0] += len(value)
    if tally.keys[0] > FRONTMATTER_KEYS:
        raise YamlProblem("frontmatter-keys", f"more than {FRONTMATTER_KEYS} keys")
    plain: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str else _key_text(key)
        if name == "<<":
            raise YamlProblem("yaml-merge", "merge keys (`<<`) are not read", *_line_with(tally.text, ("<<",)))
        if name in plain:
            raise YamlProblem(
                "yaml-duplicate-key", f"the key {name!r} stands twice", *_second_line_of(tally.text, name)
            )
        plain[name] = _plain(item, tally, depth + 1)
    return plain


def _key_text(key: object) -> str:
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _number_or_text(value: str, text: str) -> int | str:
    """`010` is the integer 10, as the 1.2 core schema says, unless it was quoted."""
    digits = value.lstrip("+-")
    if not digits.isdecimal() or not digits.isascii() or f"'{value}'" in text or f'"{value}"' in text:
        return value
    if len(digits) > 38:
        raise YamlProblem("yaml-value", _TOO_LONG, *_line_with(text, (value,)))
    return int(value) if _LEADING_ZERO.match(value) else value


def _line_with(text: str, needles: tuple[str, ...]) -> tuple[int, int]:
    for number, line in enumerate(text.splitlines(), 1):
        for needle in needles:
            if (column := line.lower().find(needle)) >= 0:
                return number, column + 1
    return 1, 1
