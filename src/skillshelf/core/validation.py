"""Check JSON values against Python types, and write such types as JSON Schema.

A type is made of typed dictionaries, named tuples, lists, tuples of one item type, maps, literals, unions and plain
values. `Annotated[int, N]` is a whole number of at least N.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut

__all__ = ["Invalid", "members_of", "schema_of", "validate"]

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
_SCHEMAS: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    None: {"type": "null"},
    Any: {},
}
_UNIONS = (UnionType, Union)
_LISTS = (list, tuple, Sequence)
_MAPS = (dict, Mapping)
_KEY_CHARS = 50


class Invalid(NamedTuple):
    """The path of a value that does not have its type, and what is wrong with it."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path or 'it'} {self.problem}"


def validate(value: Any, expected: Any, path: str = "") -> Invalid | None:
    """Return the first part of a value that does not have the expected type, or None.

    An unknown member is an error too: a misspelt one would otherwise be ignored silently.
    """
    if expected is Any:
        return None
    if _is_record(expected):
        return _validate_members(value, expected, path)
    origin, arguments = get_origin(expected), get_args(expected)
    items: list[tuple[str, Any]] = []
    if origin in _UNIONS:
        fits = any(validate(value, one, path) is None for one in arguments)
    elif origin is Literal:
        fits = isinstance(value, str) and value in arguments
    elif origin is Annotated:
        fits = validate(value, arguments[0]) is None and value >= arguments[1]
    elif origin in _LISTS:
        fits = isinstance(value, list | tuple)
        items = [(f"{path}[{n}]", item) for n, item in enumerate(value)] if fits else []
    elif origin in _MAPS:
        fits = isinstance(value, dict)
        items = [(_member(path, key), item) for key, item in value.items()] if fits else []
    else:
        fits = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
    if not fits:
        return Invalid(path, f"must be {_in_words(expected)}")
    item_type = arguments[1 if origin in _MAPS else 0] if items else None
    return next((wrong for place, item in items if (wrong := validate(item, item_type, place))), None)


def _validate_members(value: Any, expected: Any, path: str) -> Invalid | None:
    if not isinstance(value, dict):
        return Invalid(path, f"must be {_in_words(expected)}")
    members, required = members_of(expected)
    if unknown := [key for key in value if key not in members]:
        known = ", ".join(members) or "none"
        return Invalid(_member(path, unknown[0]), f"is not a known member (known: {known})")
    for key, hint in members.items():
        if key in value:
            if wrong := validate(value[key], hint, _member(path, key)):
                return wrong
        elif key in required:
            return Invalid(_member(path, key), "is missing")
    return None


def _is_record(expected: Any) -> bool:
    return is_typeddict(expected) or hasattr(expected, "_field_defaults")


@cache
def members_of(record: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Return the members of a typed dictionary or named tuple with their types, and the names of the required ones."""
    if is_typeddict(record):
        # Without extras: `NotRequired` is said by the keys.
        return get_type_hints(record), record.__required_keys__
    members = get_type_hints(record, include_extras=True)
    return members, frozenset(members) - frozenset(record._field_defaults)


def _member(path: str, key: object) -> str:
    shown = cut(str(key), _KEY_CHARS)
    return f"{path}.{shown}" if path else shown


def _in_words(expected: Any) -> str:
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in _UNIONS:
        return " or ".join(_in_words(one) for one in arguments if one is not NoneType)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is Annotated:
        return f"{_WORDS[arguments[0]]} of at least {arguments[1]}"
    if origin in _LISTS:
        return "a list of texts" if arguments[0] is str else "a list"
    return _WORDS.get(expected, "an object")


def schema_of(expected: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type."""
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if origin is Annotated:
        return {**schema_of(arguments[0]), "minimum": arguments[1]}
    if origin in _LISTS:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin in _MAPS:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if expected in _SCHEMAS:
        return dict(_SCHEMAS[expected])
    if not _is_record(expected):
        raise TypeError(f"no schema for {expected!r}")
    members, required = members_of(expected)
    # Python before 3.13 keeps the blanks before the lines of a docstring.
    description = "\n".join(line.strip() for line in (expected.__doc__ or "").strip().splitlines())
    return {
        **({"description": description} if description else {}),
        "type": "object",
        "properties": {name: schema_of(hint) for name, hint in members.items()},
        "required": [name for name in members if name in required],
        "additionalProperties": False,
    }
