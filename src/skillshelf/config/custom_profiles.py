"""A table of wishes to a profile: what a user writes below `[profiles.NAME]`, checked by the types of `Profile`."""

import re
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from skillshelf.config.profile import RULES, Profile, RootRule, severities
from skillshelf.config.systems import DEFAULT_PROFILE, find_profile
from skillshelf.errors import ConfigurationError

__all__ = ["InvalidField", "derive"]


class InvalidField(Exception):
    """A wish that cannot be granted; the configuration adds file and line."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(f"{field} {what}")
        self.field = field
        self.what = what


def derive(name: str, wishes: Mapping[str, Any], known: Mapping[str, Profile], *, evidence: str) -> Profile:
    """The profile that `extends` another (default: standard) with the wished fields changed."""
    try:
        base = find_profile(_fitting("extends", wishes.get("extends", DEFAULT_PROFILE), str), known)
    except ConfigurationError as error:
        raise InvalidField("extends", str(error)) from None
    changes = {field: _value(field, value, base) for field, value in wishes.items() if field != "extends"}
    return base._replace(**{**changes, "name": name, "evidence": evidence})


def _value(field: str, value: Any, base: Profile) -> Any:
    if field not in Profile._fields or field in ("name", "evidence"):
        raise InvalidField(field, "is not a field of a profile; `skillshelf profile standard` lists them")
    if field == "rules":
        return severities(_weights(value), base.rules)
    if field == "roots":
        return _root_rules(value)
    checked = _fitting(field, value, get_type_hints(Profile)[field])
    if field == "name_pattern":
        _refuse_broken_pattern(checked)
    return checked


def _fitting(field: str, value: Any, kind: Any) -> Any:
    """The value in the form that the type asks for; WrongField if it is of another type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType or str(origin) == "typing.Union":
        return _fitting(field, value, next(part for part in arguments if part is not NoneType))
    if origin is Literal:
        if not isinstance(value, str) or value not in arguments:
            raise InvalidField(field, f"must be one of {', '.join(arguments)}")
        return value
    if origin is tuple and isinstance(value, list):
        return tuple(_fitting(field, item, arguments[0]) for item in value)
    if kind is int and isinstance(value, int) and not isinstance(value, bool) and value >= (field != "roots.priority"):
        return value
    if kind is str and isinstance(value, str):
        return value
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
        return {key: _fitting(field, item, arguments[1]) for key, item in value.items()}
    raise InvalidField(field, f"must be {_words(kind)}")


def _words(kind: Any) -> str:
    if kind is int:
        return "a positive whole number"
    if kind is str:
        return "text"
    return "a list" if get_origin(kind) is tuple else "a table of texts"


def _refuse_broken_pattern(value: str) -> None:
    try:
        re.compile(value)
    except re.error as error:
        raise InvalidField("name_pattern", f"is no regular expression: {error}") from None


def _weights(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidField("rules", "must be a table of rule ids")
    for rule, weight in value.items():
        if rule not in RULES:
            raise InvalidField(f"rules.{rule}", "is not a rule; docs/reference/rules.md lists them")
        if not isinstance(weight, str) or weight not in ("off", "info", "warn", "reject"):
            raise InvalidField(f"rules.{rule}", "must be off, info, warn or reject")
        if RULES[rule].fixed and weight != RULES[rule].severity:
            raise InvalidField(f"rules.{rule}", "cannot be changed: what it refuses is unsafe or unreadable")
    return value


def _root_rules(value: Any) -> tuple[RootRule, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InvalidField("roots", "must be a list of tables")
    kinds = get_type_hints(RootRule)
    rules = []
    for entry in value:
        if extra := sorted(set(entry) - set(kinds)):
            raise InvalidField("roots", f"has an entry with {', '.join(extra)}; known are {', '.join(kinds)}")
        if missing := {"kind", "base"} - set(entry):
            raise InvalidField("roots", f"has an entry without {', '.join(sorted(missing))}")
        rules.append(RootRule(**{name: _fitting(f"roots.{name}", item, kinds[name]) for name, item in entry.items()}))
    return tuple(rules)
