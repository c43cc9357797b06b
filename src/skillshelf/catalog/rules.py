"""Check documents against the rules, including text that a reader cannot see.

Every rule always runs and yields findings; the profile decides their severity.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal

from skillshelf.catalog.document import ParsedFrontmatter, kind_of_value
from skillshelf.config.profile import FieldKind, FieldType, Profile
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.text import is_name
from skillshelf.core.values import Finding

__all__ = [
    "NAME_FORMS",
    "check",
    "description_of",
    "is_kept_empty",
    "name_of",
    "placed",
    "prevents_list",
    "split_tools",
    "tool_groups",
]


FieldRule = Callable[[Any, Profile], Iterator[Finding]]
"""Yield what is wrong with the value of a field under a profile."""


def check(document: ParsedFrontmatter, directory: str, profile: Profile) -> list[Finding]:
    """Return the findings for one document in that folder; `placed` adds the line of each."""
    fields = document.fields
    found = [*document.findings]
    # Most files break no rule; finding that out must not cost more than parsing them.
    if not _has_ordinary_name(fields, directory, profile):
        found.extend(_name(fields, directory, profile))
    if not _has_ordinary_description(fields, profile):
        found.extend(_description(fields, profile))
    for field, value in fields.items():
        rule = FIELD_RULES.get(field)
        if rule is not None and value is not None:
            found.extend(rule(value, profile))
    for one in profile.types:
        if one.otherwise in ("reject", "no-list") and one.field in fields and not _is_of(fields[one.field], one):
            found.append(Finding("field-type", f"`{one.field}` {_not_of(fields[one.field], one)}"))
    known = _field_names(profile.fields)
    if not fields.keys() <= known:
        unknown = [field for field in fields if field not in known]
        found.append(Finding("unknown-field", f"not a field of this profile: {', '.join(sorted(unknown))}"))
    return found


def placed(finding: Finding, document: ParsedFrontmatter) -> Finding:
    """Return the finding with the line of its field, or else with line 1."""
    if finding.line is not None:
        return finding
    line, column = document.place(_field_of(finding))
    return finding._replace(line=line or 1, column=column or 1)


def name_of(fields: Mapping[str, Any], directory: str, profile: Profile) -> str:
    """Return the name of a skill: the declared one, or the name of its folder."""
    declared = fields.get("name")
    if profile.name_form == "slug":
        directory = NAME_FORMS["slug"](directory) or directory
    if declared is None or profile.name_source == "directory" or (declared == "" and profile.odd_name == "folder"):
        return directory
    if not isinstance(declared, str):
        if profile.odd_name == "folder":
            return directory
        declared = _scalar_text(declared)
    name = declared if profile.name_form == "as-is" else NAME_FORMS[profile.name_form](declared)
    return directory if profile.long_name == "folder" and not 0 < len(name) <= profile.name_max else name


NAME_FORMS: Mapping[Literal["one-blank", "hyphens", "slug", "file-name"], Callable[[str], str]] = {
    "one-blank": lambda name: " ".join(name.split()),
    "hyphens": lambda name: "-".join(name.split()),
    "slug": lambda name: re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
    "file-name": lambda name: re.sub(r'[:\\/<>*?"|]', "-", name),
}
"""Return the name that some hosts derive from a declared name."""


def description_of(fields: Mapping[str, Any]) -> str:
    """Return the description without blanks around it; empty if there is none."""
    value = fields.get("description")
    if value is None or isinstance(value, dict | list):
        return ""
    return _scalar_text(value).strip()


def split_tools(text: str) -> tuple[str, ...]:
    """Return the patterns of an `allowed-tools` text; blanks and commas inside parentheses do not split."""
    return tuple(pattern for group in tool_groups(text) for pattern in group)


def tool_groups(text: str) -> list[list[str]]:
    """Return the patterns of an `allowed-tools` text, in one group for each part between commas.

    What is inside brackets or quotes of any kind is not split either: it is the argument of something, well written
    or not.
    """
    groups = [[""]]
    depth, opening, closing = 0, "", ""
    for character in text:
        if depth == 0 and (character.isspace() or character == ","):
            if character == ",":
                groups.append([])
            groups[-1].append("")
            continue
        if depth == 0 and (closer := _closer_of(character)):
            depth, opening, closing = 1, character, closer
        elif depth and character == closing:
            depth -= 1
        elif depth and character == opening:
            depth += 1
        groups[-1][-1] += character
    return [kept for group in groups if (kept := [pattern for pattern in group if pattern])]


_CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "`": "`"}


def _closer_of(character: str) -> str | None:
    """Return the character that closes a bracket or a quote; in Unicode it follows the opening one nearly always."""
    if character.isascii():
        return _CLOSERS.get(character)
    from unicodedata import category

    return chr(ord(character) + 1) if category(character) in ("Ps", "Pi") else None


def _scalar_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _field_of(finding: Finding) -> str:
    """Return the field of a finding, from its rule id or, for a general rule, from its message."""
    for field in (
        "name",
        "description",
        "license",
        "version",
        "compatibility",
        "metadata",
        "allowed-tools",
        "globs",
    ):
        if finding.rule.startswith(field + "-"):
            return field
    if finding.rule == "always-apply-type":
        return "alwaysApply"
    if finding.rule == "field-type":
        return finding.message.split("`")[1]
    if finding.rule == "unknown-field":
        return finding.message.partition(": ")[2].partition(",")[0]
    return "name" if finding.message.startswith("the name ") else "description"


# Name and description -----------------------------------------------------------------------------


_field_names = cache(frozenset[str])
_compiled = cache(re.compile)


def _has_ordinary_name(fields: Mapping[str, Any], directory: str, profile: Profile) -> bool:
    """Return whether a name is declared, is that of the folder, and breaks no rule under any profile."""
    name = fields.get("name")
    return (
        name == directory
        and type(name) is str
        and len(name) <= profile.name_max
        and name.isascii()
        and _ORDINARY_NAME.fullmatch(name) is not None
        and _compiled(profile.name_pattern).fullmatch(name) is not None
    )


_ORDINARY_NAME = lazy_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _has_ordinary_description(fields: Mapping[str, Any], profile: Profile) -> bool:
    text = fields.get("description")
    return (
        type(text) is str
        and len(text) <= profile.description_max
        and text.isascii()
        and text.replace("\n", " ").isprintable()
        and text != ""
        and not text.isspace()
    )


def _name(fields: Mapping[str, Any], directory: str, profile: Profile) -> Iterator[Finding]:
    declared = fields.get("name")
    if declared is None:
        yield Finding("name-missing", f"no `name`; the folder is called {directory!r}")
    elif not isinstance(declared, str):
        yield Finding("name-type", f"`name` is {_kind(declared)}; put quotes around it")
        if isinstance(declared, dict | list) and profile.name_source == "frontmatter" and profile.odd_name == "text":
            yield Finding("name-address", "`name` is not one text")
            return
    name = name_of(fields, directory, profile)
    if not is_name(name):
        yield Finding("name-address", f"{name!r} cannot be a name: names become addresses")
        return
    if len(name) > profile.name_max:
        yield Finding("name-length", f"the name has {len(name)} characters; at most {profile.name_max} are allowed")
    if not _compiled(profile.name_pattern).fullmatch(name):
        yield Finding("name-pattern", f"{name!r} is not {_pattern_words(profile)}")
    if name != directory:
        yield Finding("name-directory", f"{name!r} lives in the folder {directory!r}")
    if not (name.isascii() and name.isprintable()):
        yield from _hidden_text("name", name)


def _description(fields: Mapping[str, Any], profile: Profile) -> Iterator[Finding]:
    value = fields.get("description")
    if value is not None and not isinstance(value, str):
        yield Finding("description-type", f"`description` is {_kind(value)}; put quotes around it")
    text = description_of(fields)
    if not text and not is_kept_empty(value, profile):
        yield Finding("description-missing", "no `description`; say what the skill does and when to use it")
    if not text:
        return
    if len(text) > profile.description_max:
        message = f"the description has {len(text)} characters; at most {profile.description_max} are allowed"
        yield Finding("description-length", message)
    if not (text.isascii() and text.isprintable()):
        yield from _hidden_text("description", text)


def is_kept_empty(value: Any, profile: Profile) -> bool:
    """Return whether a description without text is an empty one under a profile, and not a missing one."""
    if profile.empty_description == "of-other-types":
        return value is not None and not isinstance(value, str)
    return profile.empty_description == "kept" and isinstance(value, str)


def _hidden_text(field: str, text: str) -> Iterator[Finding]:
    from skillshelf.core.hidden_text import hidden_text

    if hidden := hidden_text(text):
        yield Finding("hidden-text", f"the {field} contains {hidden}")


# The other fields ---------------------------------------------------------------------------------


def _license(value: Any, profile: Profile) -> Iterator[Finding]:
    if not isinstance(value, str):
        yield Finding("license-type", f"`license` is {_kind(value)}, not text")


def _version(value: Any, profile: Profile) -> Iterator[Finding]:
    if not isinstance(value, str):
        yield Finding("version-type", f"`version` is {_kind(value)}, not text; put quotes around it")


def _compatibility(value: Any, profile: Profile) -> Iterator[Finding]:
    if not isinstance(value, str):
        yield Finding("compatibility-type", f"`compatibility` is {_kind(value)}, not text")
    elif not 1 <= len(value.strip()) <= profile.compatibility_max:
        message = f"`compatibility` has {len(value.strip())} characters; 1 to {profile.compatibility_max} are allowed"
        yield Finding("compatibility-length", message)


def _metadata(value: Any, profile: Profile) -> Iterator[Finding]:
    if not isinstance(value, dict):
        yield Finding("metadata-type", f"`metadata` is {_kind(value)}, not a map")
        return
    if wrong := [key for key, item in value.items() if not isinstance(item, str)]:
        yield Finding("metadata-values", f"not text in `metadata`: {', '.join(wrong)}; put quotes around the values")


def _allowed_tools(value: Any, profile: Profile) -> Iterator[Finding]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        yield Finding("allowed-tools-list", "`allowed-tools` is a list; the standard asks for one text with blanks")
    elif not isinstance(value, str):
        yield Finding("allowed-tools-type", f"`allowed-tools` is {_kind(value)}, neither text nor a list of texts")


def _globs(value: Any, profile: Profile) -> Iterator[Finding]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        yield Finding("globs-type", f"`globs` is {_kind(value)}, not a list of texts")


def _always_apply(value: Any, profile: Profile) -> Iterator[Finding]:
    if not isinstance(value, bool):
        yield Finding("always-apply-type", f"`alwaysApply` is {_kind(value)}, not true or false")


FIELD_RULES: Mapping[str, FieldRule] = {
    "license": _license,
    "version": _version,
    "compatibility": _compatibility,
    "metadata": _metadata,
    "allowed-tools": _allowed_tools,
    "globs": _globs,
    "alwaysApply": _always_apply,
}


def _pattern_words(profile: Profile) -> str:
    if profile.name_pattern == Profile._field_defaults["name_pattern"]:
        return "lower-case letters, digits and single hyphens"
    return f"a name of the form {profile.name_pattern}"


def _is_of(value: object, one: FieldType) -> bool:
    if isinstance(value, list) and "list" in one.accepts:
        return all(isinstance(item, str) for item in value)
    return kind_of_value(value) in one.accepts


def prevents_list(fields: Mapping[str, Any], profile: Profile) -> bool:
    """Return whether a host lists no skill at all while one file has these fields."""
    wrong = (one for one in profile.types if one.field in fields and not _is_of(fields[one.field], one))
    return any(one.otherwise == "no-list" for one in wrong)


def _not_of(value: object, one: FieldType) -> str:
    """Return what is wrong with the type of a value, and what to write."""
    if value is None:
        return "has no value; write one, or remove it"
    if "text" in one.accepts:
        return f"is {_kind(value)}; put quotes around it"
    wanted = " or ".join(_WORDS[kind] for kind in one.accepts if kind != "null")
    return f"is {_kind(value)}, not {wanted}"


_WORDS: Mapping[FieldKind, str] = {"number": "a number", "boolean": "true or false", "list": "a list", "map": "a map"}


def _kind(value: object) -> str:
    kinds = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a map"}
    return kinds.get(type(value), "not text")
