"""Check documents against the rules, including text that a reader cannot see.

Every rule always runs and yields findings; the profile decides their severity. Invisible characters are reported only
where they have no function: emoji, and scripts that need joiners or direction marks, are not.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal

from skillshelf.catalog.document import ParsedFrontmatter
from skillshelf.config.profile import Profile
from skillshelf.core.values import Finding

__all__ = ["check", "description_of", "hidden_text", "name_of", "placed", "split_tools"]


_CLASSES = {
    "control": "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f",
    "line": "\u2028\u2029",
    "bidi": "\u202a-\u202e\u2066-\u2069",
    "mark": "\u061c\u200e\u200f",
    "invisible": "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200b\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff",
    "joiner": "\u200c\u200d",
    "selector": "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef",
    "tag": "\U000e0000-\U000e007f",
}
# A black flag, three to six letters or digits of a region, and the end of the sequence.
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"


@cache
def _matching(*kinds: str) -> re.Pattern[str]:
    """Return the pattern for classes of characters; compiled when needed, since nearly all text is plain."""
    return re.compile(f"[{''.join(_CLASSES[kind] for kind in kinds)}]")


def hidden_text(text: str) -> str | None:
    """Return a phrase that names each class of hidden characters with count and first code point, or None."""
    if not _matching(*_CLASSES).search(text):
        return None
    text = re.sub(_FLAG, "", text)
    found = [
        ("control", _matching("control").findall(text)),
        ("line separator", _matching("line").findall(text)),
        ("bidirectional", _matching("bidi").findall(text) + _idle_marks(text)),
        ("invisible", _idle_invisible(text) + _idle_joiners(text)),
        ("variation selector", _idle_selectors(text)),
        ("tag", _matching("tag").findall(text)),
    ]
    classes = [f"{len(marks)} {kind} character(s) ({_code(marks[0])})" for kind, marks in found if marks]
    if not classes:
        return None
    return ", ".join(classes) + _decoded(text)


def _code(character: str) -> str:
    from unicodedata import name

    label = name(character, "")
    return f"U+{ord(character):04X}{' ' + label if label else ''}"


def _decoded(text: str) -> str:
    """Return the text that tag characters spell, since that is what they are misused for."""
    spelled = "".join(chr(ord(mark) - 0xE0000) for mark in _matching("tag").findall(text))
    readable = "".join(c for c in spelled if c.isprintable())
    return f" spelling {readable[:80]!r}" if readable else ""


def _idle_marks(text: str) -> list[str]:
    """Return direction marks in a text without a letter that is written from right to left."""
    from unicodedata import bidirectional

    if any(bidirectional(c) in ("R", "AL") and c not in "\u061c\u200f" for c in text):
        return []
    return _matching("mark").findall(text)


def _idle_invisible(text: str) -> list[str]:
    """Return invisible characters; a zero-width space between words of a script without blanks has a function."""
    return [
        match[0]
        for match in _matching("invisible").finditer(text)
        if match[0] != "\u200b" or not _is_unspaced(text[match.start() - 1 : match.start()], text[match.end() :][:1])
    ]


def _is_unspaced(left: str, right: str) -> bool:
    """Return whether the characters on both sides are Thai, Lao, Myanmar or Khmer."""
    return all(
        c and (0x0E00 <= ord(c) <= 0x0EFF or 0x1000 <= ord(c) <= 0x109F or 0x1780 <= ord(c) <= 0x17FF)
        for c in (left, right)
    )


def _idle_joiners(text: str) -> list[str]:
    return [m[0] for m in _matching("joiner").finditer(text) if not _joins(text[: m.start()], text[m.end() :])]


def _joins(before: str, after: str) -> bool:
    """Return whether emoji or a joining script needs a joiner between these texts."""
    from unicodedata import category

    left = before.rstrip("\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")[-1:]
    right = after[:1]
    if not left:
        return False
    if right and category(left) == "So" and category(right) in ("So", "Sm"):
        return True
    return _is_joining_script(left) and (not right or _is_joining_script(right) or not right.isalnum())


def _is_joining_script(character: str) -> bool:
    """Return whether a character belongs to Arabic to Tibetan, Myanmar, Khmer or Mongolian."""
    point = ord(character)
    return (
        0x0600 <= point <= 0x109F or 0x1780 <= point <= 0x18AF or 0xA840 <= point <= 0xABFF or 0xFB50 <= point <= 0xFEFC
    )


def _idle_selectors(text: str) -> list[str]:
    """Return variation selectors after a character that has no variants."""
    return [m[0] for m in _matching("selector").finditer(text) if not _has_variants(text[: m.start()][-1:], m[0])]


def _has_variants(left: str, selector: str) -> bool:
    from unicodedata import category

    if not left:
        return False
    if "\u180b" <= selector <= "\u180f":
        return 0x1820 <= ord(left) <= 0x18AA
    if selector in "\ufe0e\ufe0f":
        return left in "#*0123456789\u200d" or category(left) in ("So", "Sm", "Po", "Pd", "Sk") or left == "\u2139"
    point = ord(left)
    if "\ufe00" <= left <= "\ufe0f" or point >= 0xE0000:
        return False
    ideograph = 0x3400 <= point <= 0x9FFF or 0xF900 <= point <= 0xFAFF or 0x20000 <= point <= 0x3FFFF
    # Ideographs have hundreds of registered variants; a few symbols and Myanmar letters have one.
    return ideograph or (selector <= "\ufe0f" and (0x2190 <= point <= 0x2BFF or 0x1000 <= point <= 0x109F))


# Control characters, line ends, slashes.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029/\\]")

FieldRule = Callable[[Any, Profile], Iterator[Finding]]
"""Yield what is wrong with the value of a field under a profile."""


def check(document: ParsedFrontmatter, directory: str, profile: Profile) -> list[Finding]:
    """Return the findings for one document in that folder; `placed` adds the line of each."""
    fields = document.fields
    found = [*document.findings, *_name(fields, directory, profile), *_description(fields, profile)]
    for field, value in fields.items():
        rule = FIELD_RULES.get(field)
        if rule is not None and value is not None:
            found.extend(rule(value, profile))
    found.extend(
        Finding("field-type", f"`{field}` {_not_text(fields[field])}")
        for field in profile.text_fields
        if field in fields and not isinstance(fields[field], str)
    )
    if unknown := [field for field in fields if field not in profile.fields]:
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
    if declared is None or profile.name_source == "directory":
        return directory
    if not isinstance(declared, str):
        return directory if profile.odd_name == "folder" else _scalar_text(declared)
    return declared if profile.name_form == "as-is" else NAME_FORMS[profile.name_form](declared)


NAME_FORMS: Mapping[Literal["one-blank", "hyphens", "file-name"], Callable[[str], str]] = {
    "one-blank": lambda name: " ".join(name.split()),
    "hyphens": lambda name: "-".join(name.split()),
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
    patterns = [""]
    depth = 0
    for character in text:
        if depth == 0 and (character.isspace() or character == ","):
            patterns.append("")
            continue
        depth = max(0, depth + (character == "(") - (character == ")"))
        patterns[-1] += character
    return tuple(pattern for pattern in patterns if pattern)


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
    if not name.strip() or name in (".", "..") or _CONTROL.search(name):
        yield Finding("name-address", f"{name!r} cannot be a name: names become addresses")
        return
    if len(name) > profile.name_max:
        yield Finding("name-length", f"the name has {len(name)} characters; at most {profile.name_max} are allowed")
    if not re.fullmatch(profile.name_pattern, name):
        yield Finding("name-pattern", f"{name!r} is not lower-case letters, digits and single hyphens")
    if name != directory:
        yield Finding("name-directory", f"{name!r} lives in the folder {directory!r}")
    if not (name.isascii() and name.isprintable()):
        yield from _hidden_text("name", name)


def _description(fields: Mapping[str, Any], profile: Profile) -> Iterator[Finding]:
    value = fields.get("description")
    if value is not None and not isinstance(value, str):
        yield Finding("description-type", f"`description` is {_kind(value)}; put quotes around it")
    text = description_of(fields)
    if not text:
        yield Finding("description-missing", "no `description`; say what the skill does and when to use it")
        return
    if len(text) > profile.description_max:
        message = f"the description has {len(text)} characters; at most {profile.description_max} are allowed"
        yield Finding("description-length", message)
    if not (text.isascii() and text.isprintable()):
        yield from _hidden_text("description", text)


def _hidden_text(field: str, text: str) -> Iterator[Finding]:
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


def _not_text(value: object) -> str:
    return "has no value; write one, or remove it" if value is None else f"is {_kind(value)}; put quotes around it"


def _kind(value: object) -> str:
    kinds = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a map"}
    return kinds.get(type(value), "not text")
