"""Parse the bytes of a SKILL.md into a Document: find the fences, read the frontmatter, repair common mistakes."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from skillshelf.catalog.frontmatter import (
    YamlProblem,
    load_colon_lines,
    load_first_lines,
    load_lines,
    load_untagged,
    load_yaml,
)
from skillshelf.config.profile import (
    REPAIRED_MARKS,
    ClosingFence,
    FieldKind,
    FieldType,
    OpeningFence,
    Profile,
    YamlFallback,
    YamlMode,
)
from skillshelf.core.limits import FRONTMATTER_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Finding

__all__ = [
    "BOM",
    "DEFAULT_OPTIONS",
    "FENCE",
    "ParseOptions",
    "ParsedFrontmatter",
    "body",
    "body_problem",
    "frontmatter_span",
    "has_frontmatter_end",
    "kind_of_value",
    "parse",
    "parse_again",
    "parse_options",
    "repaired_lines",
]

FENCE = b"---"
BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"

YAML_MODES: Mapping[YamlMode, Callable[[str], Any]] = {
    "full": load_yaml,
    "simple": load_lines,
    "lines": load_colon_lines,
    "first-lines": load_first_lines,
}
"""`full` is YAML; `simple` takes `key: value` lines only; `lines` takes those and skips all others; `first-lines` takes
the first line of each key, quotes included."""


class ParseOptions(NamedTuple):
    """The fields of a profile that decide how a SKILL.md is parsed; `typed` are the types that change a value."""

    yaml_mode: YamlMode = "full"
    yaml_fallback: YamlFallback = "none"
    repaired_keys: Literal["any", "words"] = "any"
    repaired_marks: str = REPAIRED_MARKS
    duplicate_keys: Literal["reject", "last"] = "reject"
    tags: Literal["reject", "drop"] = "reject"
    opening_fence: OpeningFence = "first-line"
    closing_fence: ClosingFence = "line"
    frontmatter_blanks: Literal["keep", "strip"] = "keep"
    line_ends: Literal["lf", "any"] = "lf"
    body_text: Literal["any", "utf-8"] = "any"
    empty_file: Literal["text", "no-bytes", "blanks", "no-body"] = "text"
    typed: tuple[FieldType, ...] = ()


def parse_options(profile: Profile) -> ParseOptions:
    """Return the options that a profile parses with."""
    typed = tuple(one for one in profile.types if one.otherwise in ("ignore", "text"))
    return ParseOptions._make([*(getattr(profile, name) for name in ParseOptions._fields[:-1]), typed])


class ParsedFrontmatter(NamedTuple):
    """The fields of a frontmatter, with the findings of parsing it.

    `text` is the frontmatter as the author wrote it; `fields` is empty if it could not be parsed.
    """

    fields: dict[str, Any]
    text: str
    findings: tuple[Finding, ...]

    def place(self, field: str) -> tuple[int | None, int | None]:
        """Return line and column of a top-level field in the file, from 1."""
        for number, line in enumerate(self.text.split("\n"), 2):
            if line.startswith(field) and line[len(field) :].lstrip().startswith(":"):
                return number, 1
        return None, None

    def written(self, field: str) -> str:
        """Return the text of a top-level field as the author wrote it, on its line."""
        number, _ = self.place(field)
        return self.text.split("\n")[number - 2].partition(":")[2].partition(" #")[0].strip() if number else ""


DEFAULT_OPTIONS = ParseOptions()


class _Fences(NamedTuple):
    start: int
    end: int
    after: int


def has_frontmatter_end(head: bytes) -> bool:
    """Return whether the end of the frontmatter is certain, whatever bytes follow."""
    first = _first_line_end(head)
    return first is None or _closing(head, first, whole=False) is not None


def parse(head: bytes, *, whole: bool, options: ParseOptions = DEFAULT_OPTIONS) -> ParsedFrontmatter:
    """Return the document that begins with these bytes; `whole` says that there are no more."""
    if options.line_ends == "any" and b"\r" in head:
        head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if whole and _is_empty(head, options):
        what = "no text follows the frontmatter" if head.strip() else "the file has no text"
        return _broken(Finding("file-empty", what, 1, 1))
    if options.closing_fence == "end":
        return _read(head.decode("utf-8", "replace"), (), options)
    if options.opening_fence == "anywhere":
        head = head[max(0, head.find(FENCE)) :]
    first = OPENINGS[options.opening_fence](head)
    if first is None:
        return _broken(_why_no_frontmatter(head))
    fences = CLOSINGS[options.closing_fence](head, first, whole=whole)
    if fences is None:
        return _broken(_why_unclosed(head, whole=whole))
    block = head[fences.start : fences.end]
    if len(block) > FRONTMATTER_BYTES:
        return _broken(Finding("frontmatter-size", f"the frontmatter is larger than {FRONTMATTER_BYTES} bytes", 1, 1))
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        return _broken(_not_utf8(head, fences.start + error.start))
    findings = _format_findings(head[: fences.after], first) if first != 4 or b"\r" in block else ()
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if options.body_text == "utf-8" and (broken := _body_not_utf8(head, fences.after, whole=whole)):
        findings = (*findings, broken)
    return _finished(_read(text, findings, options), options)


def _is_empty(head: bytes, options: ParseOptions) -> bool:
    """Return whether a file is one that is left out because it has no text."""
    if options.empty_file == "no-body":
        return not body(head).strip()
    return options.empty_file != "text" and not (head if options.empty_file == "no-bytes" else head.strip())


def parse_again(
    plain: ParsedFrontmatter, head: bytes, *, whole: bool, options: ParseOptions
) -> ParsedFrontmatter | None:
    """Return the document under other options from the one under the default options.

    Return None where the options may find other fences, which is so in few files.
    """
    if not plain.text or not head.startswith(b"---\n") or "---" in plain.text or b"\r" in head:
        return None
    if options.closing_fence == "end" or (whole and _is_empty(head, options)):
        return None
    document = plain
    is_indented = options.frontmatter_blanks == "strip" and plain.text[:1].isspace()
    if options.yaml_mode != "full" or plain.findings or is_indented:
        document = _read(plain.text, (), options)
    if options.body_text == "utf-8" and not head.isascii():
        after = head.find(b"\n", head.find(FENCE, 4)) + 1 or len(head)
        if broken := _body_not_utf8(head, after, whole=whole):
            document = document._replace(findings=(broken, *document.findings))
    return _finished(document, options)


def _finished(document: ParsedFrontmatter, options: ParseOptions) -> ParsedFrontmatter:
    """Return a document with the lines that stand in for broken YAML, and with the values that other types become."""
    if options.yaml_fallback != "none" and _needs_lines(document, options.yaml_fallback):
        document = _read_as_lines(document, options.yaml_fallback)
    wrong = [one for one in options.typed if one.field in document.fields]
    wrong = [one for one in wrong if kind_of_value(document.fields[one.field]) not in one.accepts]
    if not wrong:
        return document
    fields = {**document.fields}
    for one in wrong:
        if one.otherwise == "ignore":
            del fields[one.field]
        else:
            fields[one.field] = document.written(one.field)
    return document._replace(fields=fields)


_KINDS: Mapping[type, FieldKind] = {
    str: "text",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "list",
    dict: "map",
    type(None): "null",
}


def kind_of_value(value: object) -> FieldKind:
    """Return the kind of a value in a frontmatter."""
    return _KINDS[type(value)]


def body(data: bytes) -> bytes:
    """Return the text after the closing fence; the whole text if there is no frontmatter."""
    fences = _fences(data)
    return data[fences.after :] if fences else data


def frontmatter_span(data: bytes) -> tuple[int, int] | None:
    """Return the offsets of the text between the fences; None if there is no frontmatter."""
    fences = _fences(data)
    return (fences.start, fences.end) if fences else None


def _fences(data: bytes) -> _Fences | None:
    first = _first_line_end(data)
    return _closing(data, first, whole=True) if first is not None else None


def repaired_lines(text: str) -> list[str] | None:
    """Return the lines of a frontmatter after repair; None if nothing needed repair or it failed."""
    try:
        load_yaml(text)
    except YamlProblem as problem:
        repaired = _repaired(text, problem, load_yaml) if problem.rule == "yaml" else None
        return repaired.lines if repaired else None
    return None


def body_problem(data: bytes) -> Finding | None:
    """Return a finding if the text after the frontmatter of a whole file is not UTF-8."""
    return _body_not_utf8(data, len(data) - len(body(data)), whole=True)


def _body_not_utf8(data: bytes, start: int, *, whole: bool) -> Finding | None:
    """Return a finding if the text from `start` is not UTF-8; in a partial file the last character may be cut."""
    try:
        data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        if whole or start + error.end < len(data):
            return _not_utf8(data, start + error.start)._replace(rule="body-encoding")
    return None


_BROKEN_YAML = frozenset({"yaml", "yaml-alias", "yaml-duplicate-key", "yaml-tag", "yaml-merge"})


def _needs_lines(document: ParsedFrontmatter, fallback: YamlFallback) -> bool:
    """Return whether YAML failed, or gave no text for the two fields that every reader needs."""
    if any(finding.rule in _BROKEN_YAML for finding in document.findings):
        return True
    return fallback == "lines" and any(
        not isinstance(document.fields.get(field, ""), str) for field in ("name", "description")
    )


def _read_as_lines(document: ParsedFrontmatter, fallback: YamlFallback) -> ParsedFrontmatter:
    lines = document.text.split("\n")
    if fallback == "lines-on-error":
        # Only keys at the top level are read then.
        lines = [line for line in lines if not line.startswith((" ", "\t"))]
    findings = tuple(finding for finding in document.findings if finding.rule not in _BROKEN_YAML)
    finding = Finding("yaml-lines", "no readable YAML, or a field that is not text; read line by line", 2, 1)
    fields = {**document.fields, **load_colon_lines("\n".join(lines))}
    return ParsedFrontmatter(fields, document.text, (*findings, finding))


def _read(text: str, findings: tuple[Finding, ...], options: ParseOptions, tries: int = 32) -> ParsedFrontmatter:
    load = YAML_MODES[options.yaml_mode]
    load = load_untagged if load is load_yaml and options.tags == "drop" else load
    text = text.strip() if options.frontmatter_blanks == "strip" else text
    try:
        value = load(text)
    except YamlProblem as problem:
        shorter = _without_duplicate(text, problem) if options.duplicate_keys == "last" and tries else None
        if shorter is not None:
            return _read(shorter, findings, options, tries - 1)._replace(text=text)
        is_alias = problem.rule == "yaml-alias" and "*" in options.repaired_marks
        if (problem.rule == "yaml" or is_alias) and (repaired := _repaired(text, problem, load, options)):
            value = repaired.value
            findings += repaired.findings
        else:
            finding = Finding(problem.rule, problem.message, problem.line + 1, problem.column)
            return ParsedFrontmatter({}, text, (*findings, finding))
    if value is None:
        return ParsedFrontmatter({}, text, findings)
    if not isinstance(value, dict):
        return ParsedFrontmatter(
            {}, text, (*findings, Finding("frontmatter-type", "the frontmatter is not a map of fields", 2, 1))
        )
    return ParsedFrontmatter(value, text, findings)


def _broken(finding: Finding) -> ParsedFrontmatter:
    return ParsedFrontmatter({}, "", (finding,))


# Fences -------------------------------------------------------------------------------------------


def _first_line_end(head: bytes) -> int | None:
    """Return the offset of the line after the opening fence, or None if the file has no such fence."""
    if head.startswith(b"---\n"):
        return 4
    start = 3 if head.startswith(BOM) else 0
    end = head.find(b"\n", start)
    line = head[start : end if end >= 0 else len(head)]
    if line.rstrip(_BLANKS) != FENCE:
        return None
    return end + 1 if end >= 0 else len(head)


def _first_hyphens_end(head: bytes) -> int | None:
    """Return the offset of the line after a first line of three hyphens or more."""
    start = 3 if head.startswith(BOM) else 0
    end = head.find(b"\n", start)
    line = head[start:end].rstrip(_BLANKS) if end >= 0 else b""
    return end + 1 if line.startswith(FENCE) and not line.strip(b"-") else None


OPENINGS: Mapping[OpeningFence, Callable[[bytes], int | None]] = {
    "first-line": _first_line_end,
    "anywhere": _first_line_end,
    "hyphens": _first_hyphens_end,
}


def _closing(head: bytes, start: int, *, whole: bool) -> _Fences | None:
    # Whole lines only: a description may contain "---", and cutting there would silently shorten it.
    at = start - 1
    while (at := head.find(b"\n---", at)) >= 0:
        end = head.find(b"\n", at + 4)
        if end < 0:
            if not whole:
                return None
            end = len(head)
        if not head[at + 4 : end].rstrip(_BLANKS):
            # The newline before the fence belongs to the text: it decides how a last block scalar ends.
            return _Fences(start, at + 1, min(end + 1, len(head)))
        at += 1
    return None


def _closing_anywhere(head: bytes, start: int, *, whole: bool) -> _Fences | None:
    """Return the next three hyphens, even inside a line: several hosts split a file there."""
    end = head.find(FENCE, start)
    return _Fences(start, end, end + len(FENCE)) if end >= 0 else None


def _closing_line_start(head: bytes, start: int, *, whole: bool) -> _Fences | None:
    """Return the next line that begins with three hyphens, whatever follows them."""
    at = head.find(b"\n---", start - 1)
    if at < 0:
        return None
    end = head.find(b"\n", at + 4)
    return _Fences(start, at + 1, end + 1 if end >= 0 else len(head))


def _closing_or_end(head: bytes, start: int, *, whole: bool) -> _Fences | None:
    """Return the next line that begins with three hyphens, or else the end of the file."""
    found = _closing_line_start(head, start, whole=whole)
    return found or (_Fences(start, len(head), len(head)) if whole else None)


CLOSINGS: Mapping[ClosingFence, Callable[..., _Fences | None]] = {
    "line": _closing,
    "anywhere": _closing_anywhere,
    "line-start": _closing_line_start,
    "line-start-or-end": _closing_or_end,
}
"""`end` has no entry: the whole file is read."""


def _why_no_frontmatter(head: bytes) -> Finding:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Finding("encoding", "the file is UTF-16; save it as UTF-8", 1, 1)
    if not head.strip():
        return Finding("frontmatter-missing", "the file is empty; it must begin with a line `---`", 1, 1)
    if b"\r" in head and b"\n" not in head:
        return Finding("frontmatter-missing", "the line ends are CR alone; save the file with LF", 1, 1)
    if head.lstrip().partition(b"\n")[0].rstrip() == FENCE:
        return Finding("frontmatter-missing", "there is text before the first `---`, which must be line 1", 1, 1)
    return Finding("frontmatter-missing", "the file does not begin with a line `---`", 1, 1)


def _why_unclosed(head: bytes, *, whole: bool) -> Finding:
    if not whole or len(head) > FRONTMATTER_BYTES:
        message = f"no closing line `---` within {FRONTMATTER_BYTES} bytes"
        return Finding("frontmatter-size", message, 1, 1)
    return Finding("frontmatter-unclosed", "the frontmatter has no closing line `---`", 1, 1)


def _not_utf8(head: bytes, offset: int) -> Finding:
    line = head.count(b"\n", 0, offset) + 1
    column = len(head[head.rfind(b"\n", 0, offset) + 1 : offset].decode("utf-8", "replace")) + 1
    return Finding("encoding", f"not UTF-8: byte 0x{head[offset]:02x} at offset {offset}", line, column)


def _format_findings(head: bytes, first: int) -> tuple[Finding, ...]:
    """Return the unusual features of a file that can be parsed anyway: byte order mark, line ends, blanks."""
    findings = []
    if head.startswith(BOM):
        findings.append(
            Finding("bom", "the file begins with a byte order mark, which several agents do not accept", 1, 1)
        )
    if b"\r\n" in head:
        findings.append(Finding("crlf", "the line ends are CRLF", 1, None))
    opening = head[3 if head.startswith(BOM) else 0 : first].rstrip(b"\r\n")
    if opening != FENCE:
        findings.append(Finding("fence-blanks", "blanks follow the opening `---`", 1, 4))
    return tuple(findings)


# Repairs ------------------------------------------------------------------------------------------

_MOST_REPAIRS = 32
_MISTAKES = {
    "yaml-colon": "a value with `: ` in it needs quotes",
    "yaml-brackets": "a value that begins like a list or a reserved mark needs quotes",
    "yaml-tab": "tabs cannot indent YAML",
}


class _Repaired(NamedTuple):
    """The value of a text after its common mistakes were repaired, with a finding for each changed line."""

    value: Any
    lines: list[str]
    findings: tuple[Finding, ...]


def _repaired(
    text: str, problem: YamlProblem, load: Callable[[str], Any], options: ParseOptions = DEFAULT_OPTIONS
) -> _Repaired | None:
    """Repair common mistakes; return None if the text cannot be repaired.

    Only the line where the parser stopped is changed, then it parses again: a correct line is never touched.
    """
    lines = text.split("\n")
    findings: dict[int, Finding] = {}
    for _ in range(_MOST_REPAIRS):
        number = problem.line
        if number > len(lines):
            return None
        before = lines[number - 1]
        rule, line = _rewritten(before, options.repaired_marks)
        is_word = options.repaired_keys == "any" or before.partition(":")[0].replace("_", "").isalnum()
        if rule is None or not (is_word or rule == "yaml-tab"):
            return None
        lines[number - 1] = line
        column = len(before) - len(before.lstrip(" \t")) + 1
        findings[number] = Finding(rule, f"{_MISTAKES[rule]}; read as: {line.strip()}", number + 1, column)
        try:
            return _Repaired(load("\n".join(lines)), lines, tuple(findings[n] for n in sorted(findings)))
        except YamlProblem as next_problem:
            problem = next_problem
    return None


def _without_duplicate(text: str, problem: YamlProblem) -> str | None:
    """Return the text without the first of two equal keys at its top level; None if that is not the problem."""
    lines = text.split("\n")
    if problem.rule != "yaml-duplicate-key" or problem.line > len(lines):
        return None
    key = lines[problem.line - 1].partition(":")[0]
    first = next((at for at, line in enumerate(lines) if line.partition(":")[0] == key), problem.line)
    if first >= problem.line - 1 or key.startswith((" ", "\t")):
        return None
    after = next(at for at in range(first + 1, problem.line) if not lines[at].startswith((" ", "\t", "-")))
    return "\n".join([*lines[:first], *lines[after:]])


def _rewritten(line: str, marks: str = REPAIRED_MARKS) -> tuple[str | None, str]:
    """Return the rule that a line breaks and the repaired line; no rule if it cannot be repaired."""
    bare = line.lstrip(" \t")
    indent = line[: len(line) - len(bare)]
    if "\t" in indent:
        return "yaml-tab", indent.replace("\t", "  ") + bare
    key, colon, value = bare.partition(":")
    value = value.strip(" \t")
    if not colon or not value or not _is_key(key.removeprefix("- ")):
        return None, line
    # A `#` is part of the value here: an author who forgot the quotes meant no comment.
    start = line.index(value, len(indent + key) + 1)
    gap = "" if line[start - 1] in " \t" else " "
    quoted = line[:start] + gap + "'" + value.replace("'", "''") + "'" + line[start + len(value) :]
    if value[0] in marks and not _is_flow(value):
        return "yaml-brackets", quoted
    if value[0] not in "\"'[{|>#&*!@`%" and (": " in value or value.endswith(":")):
        return "yaml-colon", quoted
    return None, line


def _is_key(text: str) -> bool:
    """Return whether a text is one word of letters, digits, hyphens, dots and underscores."""
    return bool(text) and text.replace("-", "").replace("_", "").replace(".", "").isalnum()


def _is_flow(value: str) -> bool:
    try:
        return isinstance(load_yaml(value), list | dict)
    except YamlProblem:
        return False
