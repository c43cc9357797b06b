"""Derive a profile from another one by the overrides that a user writes below `[profiles.NAME]`."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.config.profile import RULES, Profile, severities
from skillshelf.core.text import did_you_mean
from skillshelf.core.validation import members_of, validate
from skillshelf.core.values import Severity
from skillshelf.errors import ConfigurationError

__all__ = ["InvalidField", "derive"]


class InvalidField(Exception):
    """An override that cannot be used; the configuration adds file and line."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


def derive(name: str, overrides: Mapping[str, Any], known: Mapping[str, Profile], *, evidence: str) -> Profile:
    """Return the profile that `extends` another (default: standard) with these fields changed."""
    extends = overrides.get("extends", DEFAULT_PROFILE)
    _require(extends, str, "extends")
    try:
        base = find_profile(extends, known)
    except ConfigurationError as error:
        raise InvalidField("extends", f"names an {error}") from None
    changes = {field: _value(field, value, base) for field, value in overrides.items() if field != "extends"}
    return base._replace(**{**changes, "name": name, "evidence": evidence})


def _value(field: str, value: Any, base: Profile) -> Any:
    if field not in Profile._fields or field in ("name", "evidence", "host"):
        hint = did_you_mean(field, Profile._fields)
        raise InvalidField(field, f"is not a field of a profile{hint} (`skillshelf profile standard` lists them)")
    if field == "rules":
        return severities(_checked_rules(value), base.rules)
    expected = members_of(Profile)[0][field]
    _require(value, expected, field)
    if field == "name_pattern":
        try:
            re.compile(value)
        except re.error as error:
            raise InvalidField(field, f"is not a valid regular expression: {error}") from None
    return _built(value, expected)


def _built(value: Any, expected: Any) -> Any:
    """Return a validated value as profiles hold it: tuples for lists, records for tables with fixed members."""
    if isinstance(value, list):
        return tuple(_built(item, get_args(expected)[0]) for item in value)
    record = next((one for one in (expected, *get_args(expected)) if hasattr(one, "_fields")), None)
    if record is None:
        return value
    members = members_of(record)[0]
    return record(**{name: _built(item, members[name]) for name, item in value.items()})


def _require(value: Any, expected: Any, field: str) -> None:
    if wrong := validate(value, expected, field):
        # TOML calls an object a table.
        raise InvalidField(wrong.path, wrong.problem.replace("an object", "a table"))


def _checked_rules(value: Any) -> dict[str, Any]:
    _require(value, dict[str, Any], "rules")
    for rule, severity in value.items():
        if rule not in RULES:
            hint = did_you_mean(rule, RULES)
            raise InvalidField(f"rules.{rule}", f"is not a rule{hint} (docs/reference/rules.md lists them)")
        _require(severity, Severity, f"rules.{rule}")
        if RULES[rule].fixed and severity != RULES[rule].severity:
            raise InvalidField(f"rules.{rule}", "cannot be changed: what it refuses is unsafe or unreadable")
    checked: dict[str, Any] = value
    return checked
