"""A JSON value and a type to what is wrong with it, in words that name the place."""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from skillshelf.core.text import cut

__all__ = ["misfit"]

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
_SHOWN = 50
_UNIONS = (UnionType, Union)


def misfit(value: Any, form: Any, where: str = "") -> str | None:
    """Why a value is not of a type made of typed dictionaries, lists, maps, literals and plain values.

    None if it is. An unknown member is wrong too: a misspelt one would otherwise change nothing without a word.
    """
    if form is Any:
        return None
    if is_typeddict(form):
        return _misfit_of_members(value, form, where)
    origin, arguments = get_origin(form), get_args(form)
    if origin in _UNIONS:
        return None if any(misfit(value, one, where) is None for one in arguments) else _not(form, where)
    if origin is Literal:
        return None if isinstance(value, str) and value in arguments else _not(form, where)
    if origin is list:
        return _first(value, list, form, where, lambda: ((f"{where}[{n}]", item) for n, item in enumerate(value)))
    if origin is dict:
        return _first(value, dict, form, where, lambda: ((f"{where}.{cut(key, _SHOWN)}", value[key]) for key in value))
    is_plain = isinstance(value, form) and (form is bool or not isinstance(value, bool))
    return None if is_plain else _not(form, where)


def _first(value: Any, kind: type, form: Any, where: str, items: Any) -> str | None:
    """What is wrong with a list or map, or with the first of its items that is wrong."""
    if not isinstance(value, kind):
        return _not(form, where)
    inner = get_args(form)[-1]
    return next((wrong for place, item in items() if (wrong := misfit(item, inner, place))), None)


def _misfit_of_members(value: Any, form: Any, where: str) -> str | None:
    if not isinstance(value, dict):
        return _not(form, where)
    hints = get_type_hints(form)
    if strange := [key for key in value if key not in hints]:
        known = ", ".join(hints) or "none"
        return f"there is no member {_at(where, cut(strange[0], _SHOWN))}; there are: {known}"
    for key, hint in hints.items():
        if key not in value:
            if key in form.__required_keys__:
                return f"the member {_at(where, key)} is missing"
        elif wrong := misfit(value[key], hint, _at(where, key)):
            return wrong
    return None


def _at(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _not(form: Any, where: str) -> str:
    return f"{where or 'it'} must be {_in_words(form)}"


def _in_words(form: Any) -> str:
    origin, arguments = get_origin(form), get_args(form)
    if origin in _UNIONS:
        return " or ".join(_in_words(one) for one in arguments)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is list:
        return "a list"
    return _WORDS.get(form, "an object")
