"""Change one value in the text of a JSON file, and keep everything else: comments, order, blanks and line ends.

The text may have comments and last commas. It must be valid; the caller compares the values before and after.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from skillshelf.core.records import NamedTuple

__all__ = ["add_item", "add_member", "comments_in", "remove_item", "remove_member"]

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}:/]+")
_REST_OF_LINE = re.compile(r"[ \t]*(,?)[ \t]*(?://[^\n]*|/\*[^\n*]*\*/)(?=[ \t]*\n)")
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)


class _Node(NamedTuple):
    """A value in the text: where it begins and ends, and its parts; `begin` of a part is that of its key."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    key: str = ""
    begin: int = 0
    parts: Sequence["_Node"] = ()


def comments_in(text: str) -> list[str]:
    """Return the comments of a text, in order."""
    return [match[1] for match in _COMMENT.finditer(text) if match[1] is not None]


def add_item(text: str, keys: Sequence[str], item: Any) -> str:
    """Return the text with an item at the end of the list at a path of keys, which is made if it is missing."""
    node, left = _find(text, keys)
    if left:
        return _insert(text, node, _member(left[0], _nested(left[1:], [item]), text, node))
    return _insert(text, node, json.dumps(item, ensure_ascii=False))


def add_member(text: str, keys: Sequence[str], key: str, value: Any) -> str:
    """Return the text with a member of the object at a path of keys set to a value."""
    node, left = _find(text, keys)
    if left:
        return _insert(text, node, _member(left[0], _nested(left[1:], {key: value}), text, node))
    known = next((part for part in node.parts if part.key == key), None)
    if known is not None:
        return text[: known.start] + json.dumps(value) + text[known.end :]
    return _insert(text, node, _member(key, value, text, node))


def remove_item(text: str, keys: Sequence[str], position: int) -> str:
    """Return the text without the item at a position of a list; a list that is empty then goes with its key."""
    node, _ = _find(text, keys)
    return _removed(text, keys, node, position)


def remove_member(text: str, keys: Sequence[str], key: str) -> str:
    """Return the text without a member of an object; an object that is empty then goes with its key."""
    node, _ = _find(text, keys)
    return _removed(text, keys, node, [part.key for part in node.parts].index(key))


def _removed(text: str, keys: Sequence[str], node: _Node, position: int) -> str:
    if len(node.parts) == 1 and keys and not comments_in(text[node.start : node.end]):
        return remove_member(text, keys[:-1], keys[-1])
    return _without(text, node, position)


# Reading ------------------------------------------------------------------------------------------


def _find(text: str, keys: Sequence[str]) -> tuple[_Node, list[str]]:
    """Return the value at a path of keys, or the deepest one there is, and the keys that are missing."""
    if not text.strip():
        return _Node("object", 0, 0), list(keys)
    node = _value(text, _skip(text, 0), "", 0)
    left = list(keys)
    while left:
        part = next((part for part in node.parts if part.key == left[0]), None)
        if part is None:
            break
        node = part
        left.pop(0)
    return node, left


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _value(text: str, position: int, key: str, begin: int) -> _Node:
    if text[position] in "{[":
        return _container(text, position, key, begin)
    match = _STRING.match(text, position) or _SCALAR.match(text, position)
    if match is None:
        raise ValueError(f"no value at character {position}")
    return _Node("scalar", position, match.end(), key, begin)


def _container(text: str, start: int, key: str, begin: int) -> _Node:
    is_object = text[start] == "{"
    parts = []
    position = _skip(text, start + 1)
    while text[position] not in "}]":
        name, first = "", position
        if is_object:
            match = _STRING.match(text, position)
            if match is None:
                raise ValueError(f"no key at character {position}")
            name = json.loads(match[0])
            position = _skip(text, _skip(text, match.end()) + 1)
        part = _value(text, position, name, first)
        parts.append(part)
        position = _skip(text, part.end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return _Node("object" if is_object else "array", start, position + 1, key, begin, tuple(parts))


# Writing ------------------------------------------------------------------------------------------


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _indent_at(text: str, position: int) -> str:
    """Return the blanks at the beginning of the line of a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


def _member(key: str, value: Any, text: str, node: _Node) -> str:
    """Return a member as it is written at its place: over several lines if its object is."""
    indent = _indent_of_parts(text, node)
    step = indent[len(_indent_at(text, node.start)) :] or "  "
    written = json.dumps(value, ensure_ascii=False, indent=step if "\n" in text or not text else None)
    return f"{json.dumps(key, ensure_ascii=False)}: " + written.replace("\n", "\n" + indent)


def _indent_of_parts(text: str, node: _Node) -> str:
    if node.parts and text[: node.parts[0].begin].rpartition("\n")[2].strip() == "":
        return _indent_at(text, node.parts[0].begin)
    return _indent_at(text, node.start) + "  "


def _insert(text: str, node: _Node, part: str) -> str:
    """Return the text with a part at the end of a container."""
    if not text.strip():
        return "{\n  " + part + "\n}\n"
    if node.parts:
        last = node.parts[-1]
        begin = last.begin if node.kind == "object" else last.start
        line = text[text.rfind("\n", 0, begin) + 1 : begin]
        if "\n" not in text[node.start : begin] or line.strip():
            return f"{text[: last.end]}, {part}{text[last.end :]}"
        # A comment at the end of the line belongs to the part before it.
        rest = _REST_OF_LINE.match(text, last.end)
        comma, end = ("," if rest is None or not rest[1] else ""), rest.end() if rest else last.end
        return f"{text[: last.end]}{comma}{text[last.end : end]}\n{line}{part}{text[end:]}"
    inner = text[node.start + 1 : node.end - 1]
    if node.kind == "array" and not inner.strip():
        return f"{text[: node.start + 1]}{part}{text[node.end - 1 :]}"
    indent = _indent_at(text, node.start)
    kept = inner.rstrip()
    return f"{text[: node.start + 1]}\n{indent}  {part}{kept}\n{indent}{text[node.end - 1 :]}"


def _without(text: str, node: _Node, position: int) -> str:
    """Return the text without one part of a container, and without the comma that belonged to it."""
    part = node.parts[position]
    begin = part.begin if node.kind == "object" else part.start
    after = _skip_blanks(text, part.end)
    comma = text.find(",", after, _skip(text, part.end) + 1)
    if comma >= 0:
        end = comma + 1
        if not text[text.rfind("\n", 0, begin) + 1 : begin].strip() and text[end : end + 1] == "\n":
            # The part had a line of its own.
            return text[: text.rfind("\n", 0, begin)] + text[end:]
        return text[:begin] + text[_skip_blanks(text, end) :]
    before = node.parts[position - 1].end if position else node.start + 1
    gap = text[before:begin]
    kept = "" if not comments_in(gap) else gap.replace(",", "", 1).rstrip()
    return text[:before] + kept + text[part.end :]


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t":
        position += 1
    return position
