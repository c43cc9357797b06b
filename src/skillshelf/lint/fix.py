"""Fix the bytes of a SKILL.md, where the fix is unambiguous and changes the meaning of nothing else."""

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from skillshelf.catalog.document import (
    BOM,
    FENCE,
    ParsedFrontmatter,
    body,
    frontmatter_span,
    parse,
    parse_options,
    repaired_lines,
)
from skillshelf.catalog.frontmatter import YamlProblem, load_yaml
from skillshelf.catalog.rules import check, placed
from skillshelf.config.profile import Profile
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural
from skillshelf.core.values import Finding
from skillshelf.lint.portability import portability

__all__ = [
    "FIXERS",
    "CheckedDocument",
    "FixInput",
    "FixResult",
    "check_document",
    "fix_text",
    "is_valid_name",
    "rename",
    "unified_diff",
    "why_not_fixed",
    "yaml_word",
]


class FixInput(NamedTuple):
    """A file to fix; `name_source` is the name of its folder if the skill may take it.

    Without `renames` a skill that has a name keeps it.
    """

    data: bytes
    directory: str
    profile: Profile
    name_source: str | None
    renames: bool = True


class FixResult(NamedTuple):
    """The fixed bytes, and the new text of each line by the rule and the line of the finding it resolves.

    `renamed` are those of the lines that give the skill another name.
    """

    data: bytes
    lines: Mapping[tuple[str, int], str]
    renamed: frozenset[tuple[str, int]] = frozenset()


class _FixerResult(NamedTuple):
    """The result of one fix; findings of rules that it `may_add` were there before, hidden behind those it resolves."""

    data: bytes
    fields: dict[str, Any]
    lines: dict[tuple[str, int], str]
    may_add: frozenset[str] = frozenset()


Fixer = Callable[[FixInput, ParsedFrontmatter], "_FixerResult | None"]
"""A function that fixes one kind of mistake and returns the fields to expect, or None if it cannot."""


class CheckedDocument(NamedTuple):
    """A parsed document with the findings about its fields: those of the rules, and those about other hosts."""

    document: ParsedFrontmatter
    findings: list[Finding]
    portability: list[Finding]

    @property
    def rules(self) -> frozenset[str]:
        """The rules of all findings."""
        return frozenset(finding.rule for finding in (*self.findings, *self.portability))

    @property
    def may_be_fixed(self) -> bool:
        """True if there is a fix for one of the findings."""
        return not self.rules.isdisjoint(_FIXED_RULES)


def check_document(document: ParsedFrontmatter, directory: str, profile: Profile) -> CheckedDocument:
    """Return a document with the findings about its fields."""
    return CheckedDocument(document, check(document, directory, profile), portability(document))


def fix_text(
    text: FixInput,
    *,
    only: frozenset[str] | None = None,
    without: AbstractSet[str] = frozenset(),
    checked: CheckedDocument | None = None,
) -> FixResult:
    """Apply every fix, or `only` those of some rules; a step counts only if its result can be verified.

    No fix is applied that would also resolve a finding of the rules in `without`. `checked` is the document of this
    text, if it is known already.
    """
    lines: dict[tuple[str, int], str] = {}
    renamed: set[tuple[str, int]] = set()
    before = _checked(text) if checked is None else checked
    for rules, fixer in FIXERS:
        is_selected = before.rules & rules and (only is None or rules <= only) and not before.rules & rules & without
        step = fixer(text, before.document) if is_selected else None
        if step is None:
            continue
        after = _checked(text._replace(data=step.data))
        if _is_verified(step, text, before, after, rules):
            text, before = text._replace(data=step.data), after
            lines |= step.lines
            renamed.update(step.lines if fixer is rename else ())
    return FixResult(text.data, lines, frozenset(renamed))


def _checked(text: FixInput) -> CheckedDocument:
    document = parse(text.data, whole=True, options=parse_options(text.profile))
    return check_document(document, text.directory, text.profile)


def _is_verified(
    step: _FixerResult, text: FixInput, before: CheckedDocument, after: CheckedDocument, rules: frozenset[str]
) -> bool:
    """Return whether a step resolved its findings, added none, and left the other fields and the body unchanged."""
    same_body = body(step.data).replace(b"\r\n", b"\n") == body(text.data).replace(b"\r\n", b"\n")
    is_resolved = not after.rules & rules and after.rules - step.may_add < before.rules
    return is_resolved and after.document.fields == step.fields and same_body


def why_not_fixed(rule: str, data: bytes) -> str | None:
    """Return the reason if only the author can fix a finding of a rule."""
    count = data.count(b"\r\r\n") if rule == "crlf" else 0
    return f"{plural(count, 'line end')} of CR CR LF may mean one line or two: fix those first" if count else None


# The fixes ----------------------------------------------------------------------------------------


def _bom(text: FixInput, document: ParsedFrontmatter) -> _FixerResult:
    return _FixerResult(text.data.removeprefix(BOM), document.fields, {("bom", 1): "---"})


def _line_ends(text: FixInput, document: ParsedFrontmatter) -> _FixerResult:
    return _FixerResult(text.data.replace(b"\r\n", b"\n"), document.fields, {("crlf", 1): "---"})


def _fence(text: FixInput, document: ParsedFrontmatter) -> _FixerResult:
    start = len(BOM) if text.data.startswith(BOM) else 0
    first, newline, rest = text.data[start:].partition(b"\n")
    ending = b"\r" + newline if first.endswith(b"\r") else newline
    return _FixerResult(text.data[:start] + FENCE + ending + rest, document.fields, {("fence-blanks", 1): "---"})


def _yaml_lines(text: FixInput, document: ParsedFrontmatter) -> _FixerResult | None:
    block = _block(text.data)
    if block is None or (lines := repaired_lines(block)) is None or _tabs_are_ambiguous(text, document, block):
        return None
    fixed = {
        (finding.rule, finding.line): lines[finding.line - 2].strip()
        for finding in document.findings
        if finding.rule in _YAML_RULES and finding.line is not None
    }
    return _FixerResult(_with_block(text.data, "\n".join(lines)), document.fields, fixed)


def _tabs_are_ambiguous(text: FixInput, document: ParsedFrontmatter, block: str) -> bool:
    """Return whether wider tabs, as an editor may show them, would give other fields."""
    numbers = [finding.line - 2 for finding in document.findings if finding.rule == "yaml-tab" and finding.line]
    for width in (4, 8) if numbers else ():
        lines = block.split("\n")
        for number in numbers:
            bare = lines[number].lstrip(" \t")
            lines[number] = lines[number].removesuffix(bare).replace("\t", " " * width) + bare
        fields = parse(_with_block(text.data, "\n".join(lines)), whole=True).fields
        if fields and fields != document.fields:
            return True
    return False


# No part can begin with what the part before it may hold, so a long line is not tried in more than one way.
_NAME_LINE = re.compile(
    r"""(?P<key>name[ \t]*:)(?P<gap>(?:[ \t]+(?=[^\s#]))?)
    (?P<value>"[^"\\\n]*"|'[^'\n]*'|(?:[^\s#"']+(?:[ \t]+[^\s#"']+)*)?)
    (?P<rest>(?:[ \t]+(?:\#.*)?)?)$""",
    re.VERBOSE,
)


def _name(text: FixInput, document: ParsedFrontmatter) -> _FixerResult | None:
    block = _block(text.data)
    if block is None or text.name_source is None:
        return None
    word = yaml_word(text.name_source)
    line = f"name: {word}"
    lines = block.split("\n")
    number, _ = document.place("name")
    if number is None:
        lines.insert(0, line)
    else:
        if (match := _NAME_LINE.match(lines[number - 2])) is None:
            return None
        line = match["key"] + (match["gap"] or " ") + word + match["rest"]
        lines[number - 2] = line
    fields = {**document.fields, "name": text.name_source}
    fixed = {
        (finding.rule, placed(finding, document).line or 1): line
        for finding in check(document, text.directory, text.profile)
        if finding.rule in _NAME_RULES
    }
    return _FixerResult(_with_block(text.data, "\n".join(lines)), fields, fixed)


def rename(text: FixInput, document: ParsedFrontmatter) -> _FixerResult | None:
    """Give a skill the name of its folder, if that may be done."""
    return _name(text, document) if text.renames else None


_PLAIN_NAME = re.compile(r"(?P<key>name[ \t]*:[ \t]*)(?P<value>[\w.+-]+)(?P<rest>[ \t]*)$", re.ASCII)


def _quoted_name(text: FixInput, document: ParsedFrontmatter) -> _FixerResult | None:
    """Quote a name that YAML reads as a number, a date or a truth value: its author wrote a word."""
    block, (number, _) = _block(text.data), document.place("name")
    lines = block.split("\n") if block is not None else []
    match = _PLAIN_NAME.match(lines[number - 2]) if number is not None and lines else None
    if match is None or number is None or document.fields.get("name") is None:
        return None
    lines[number - 2] = line = f'{match["key"]}"{match["value"]}"{match["rest"]}'
    fields = {**document.fields, "name": match["value"]}
    data = _with_block(text.data, "\n".join(lines))
    return _FixerResult(data, fields, {("name-type", number): line}, may_add=_NAME_RULES)


_RESERVED_LINE = re.compile(r"(?P<key>(?P<name>[A-Za-z][\w-]*)[ \t]*:[ \t]+)(?P<value>[*&@`%].*)", re.ASCII)


def _reserved(text: FixInput, document: ParsedFrontmatter) -> _FixerResult | None:
    """Quote a value that begins with a character that YAML reserves, if the text is valid then."""
    block = _block(text.data)
    numbers = [finding.line for finding in document.findings if finding.rule == "yaml" and finding.line]
    lines = block.split("\n") if block is not None else []
    if not numbers or not 2 <= numbers[0] < len(lines) + 2:
        return None
    match = _RESERVED_LINE.match(lines[numbers[0] - 2])
    if match is None or " #" in match["value"]:
        return None
    value = match["value"].rstrip(" \t")
    quoted = value.replace("'", "''")
    lines[numbers[0] - 2] = line = f"{match['key']}'{quoted}'"
    data = _with_block(text.data, "\n".join(lines))
    fields = parse(data, whole=True, options=parse_options(text.profile)).fields
    if fields.get(match["name"]) != value:
        return None
    return _FixerResult(data, fields, {("yaml", numbers[0]): line}, may_add=_BEHIND_YAML)


_HINT_LINE = re.compile(r"(?P<key>argument-hint[ \t]*:[ \t]*)(?P<value>\[[^]\"\\#\n]*\])[ \t]*$")


def _hint(text: FixInput, document: ParsedFrontmatter) -> _FixerResult | None:
    """Quote a hint in brackets: every host that knows the field shows it as text; it is a list only by mistake."""
    block, (number, _) = _block(text.data), document.place("argument-hint")
    lines = block.split("\n") if block is not None else []
    match = _HINT_LINE.match(lines[number - 2]) if number is not None and lines else None
    if match is None or number is None:
        return None
    quoted = match["value"].replace("'", "''")
    lines[number - 2] = f"{match['key']}'{quoted}'"
    fields = {**document.fields, "argument-hint": match["value"]}
    return _FixerResult(_with_block(text.data, "\n".join(lines)), fields, {("field-type", number): lines[number - 2]})


def _block(data: bytes) -> str | None:
    """Return the text between the fences, or None if its line ends must be fixed first."""
    span = frontmatter_span(data)
    if span is None or b"\r\n" in data[slice(*span)]:
        return None
    return data[slice(*span)].decode("utf-8")


def _with_block(data: bytes, block: str) -> bytes:
    span = frontmatter_span(data)
    assert span is not None
    return data[: span[0]] + block.encode("utf-8") + data[span[1] :]


_YAML_RULES = frozenset({"yaml-colon", "yaml-brackets", "yaml-tab"})
_RENAMING_RULES = frozenset({"name-type", "name-address", "name-length", "name-pattern", "name-directory"})
_NAME_RULES = _RENAMING_RULES | {"name-missing"}

_BEHIND_YAML = frozenset({*_NAME_RULES, *_YAML_RULES, "description-length", "description-type", "field-type"})

# Line ends come before the fixes that rewrite single lines.
FIXERS: tuple[tuple[frozenset[str], Fixer], ...] = (
    (frozenset({"bom"}), _bom),
    (frozenset({"fence-blanks"}), _fence),
    (frozenset({"crlf"}), _line_ends),
    (frozenset({"yaml"}), _reserved),
    (_YAML_RULES, _yaml_lines),
    (frozenset({"name-type"}), _quoted_name),
    (frozenset({"name-missing"}), _name),
    (_RENAMING_RULES, rename),
    (frozenset({"field-type"}), _hint),
)
_FIXED_RULES = frozenset[str]().union(*(rules for rules, _ in FIXERS))


# Names --------------------------------------------------------------------------------------------


def is_valid_name(name: str, profile: Profile) -> bool:
    """Return whether a skill may have that name."""
    return len(name) <= profile.name_max and re.fullmatch(profile.name_pattern, name) is not None


def yaml_word(name: str) -> str:
    """Return a valid name as YAML, quoted if it would be read as a number, a date or a truth value."""
    try:
        plain = load_yaml(name) == name
    except YamlProblem:
        plain = False
    # Older parsers read more words as truth values, and dates as dates.
    return name if plain and not name[0].isdigit() and name not in _YAML_WORDS else f'"{name}"'


_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


# Diff ---------------------------------------------------------------------------------------------


def unified_diff(before: bytes, after: bytes, name: str) -> list[str]:
    """Return the lines of a unified diff; changed line ends are counted on one line, not shown one by one."""
    from difflib import unified_diff as compare

    lines = [*compare(_lines(before), _lines(after), f"a/{name}", f"b/{name}", lineterm="")]
    lines = lines or [f"--- a/{name}", f"+++ b/{name}"]
    if changed := before.count(b"\r\n") - after.count(b"\r\n"):
        lines.insert(2, f"# {changed} line ends: CRLF to LF")
    return lines


def _lines(data: bytes) -> list[str]:
    return data.replace(b"\r\n", b"\n").decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")
