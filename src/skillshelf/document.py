"""Bytes of a SKILL.md to a Document: where the fences are, what stands between them, what had to be repaired."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from skillshelf.limits import FRONTMATTER_BYTES
from skillshelf.values import Finding
from skillshelf.yamltext import YamlProblem, load_lines, load_yaml

__all__ = ["BOM", "FENCE", "Document", "Reading", "body", "frontmatter_span", "has_frontmatter_end", "mended", "parse"]

FENCE = b"---"
BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"

Reading = Literal["full", "simple"]
READINGS: Mapping[Reading, Callable[[str], Any]] = {"full": load_yaml, "simple": load_lines}
"""`full` is YAML; `simple` is `key: value` lines and nothing else."""


class Document(NamedTuple):
    """The fields of a frontmatter, with what was found while reading it.

    `text` is the frontmatter as the author wrote it; `fields` is empty where it could not be read.
    """

    fields: dict[str, Any]
    text: str
    findings: tuple[Finding, ...]

    def place(self, field: str) -> tuple[int | None, int | None]:
        """Line and column of a top-level field in the file, from 1."""
        for number, line in enumerate(self.text.split("\n"), 2):
            if line.startswith(field) and line[len(field) :].lstrip().startswith(":"):
                return number, 1
        return None, None


class _Fences(NamedTuple):
    start: int
    end: int
    after: int


def has_frontmatter_end(head: bytes) -> bool:
    """Whether reading further could not change where the frontmatter ends."""
    first = _first_line_end(head)
    return first is None or _closing(head, first, whole=False) is not None


def parse(head: bytes, *, whole: bool, reading: Reading = "full") -> Document:
    """The document whose first bytes these are; `whole` says that there are no more."""
    first = _first_line_end(head)
    if first is None:
        return _broken(_why_no_frontmatter(head))
    fences = _closing(head, first, whole=whole)
    if fences is None:
        return _broken(_why_unclosed(head, whole=whole))
    block = head[fences.start : fences.end]
    if len(block) > FRONTMATTER_BYTES:
        return _broken(Finding("frontmatter-size", f"the frontmatter is larger than {FRONTMATTER_BYTES} bytes", 1, 1))
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        return _broken(_not_utf8(head, fences.start + error.start))
    findings = _form(head[: fences.after], first) if first != 4 or b"\r" in block else ()
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return _read(text, findings, READINGS[reading])


def body(data: bytes) -> bytes:
    """What stands after the closing fence; everything where there is no frontmatter."""
    first = _first_line_end(data)
    fences = _closing(data, first, whole=True) if first is not None else None
    return data[fences.after :] if fences else data


def frontmatter_span(data: bytes) -> tuple[int, int] | None:
    """Where the text between the fences begins and ends."""
    first = _first_line_end(data)
    fences = _closing(data, first, whole=True) if first is not None else None
    return (fences.start, fences.end) if fences else None


def mended(text: str) -> list[str] | None:
    """The lines of a frontmatter as they were read, where some had to be put right for that."""
    try:
        load_yaml(text)
    except YamlProblem as problem:
        repaired = _repaired(text, problem, load_yaml) if problem.rule == "yaml" else None
        return repaired.lines if repaired else None
    return None


def _read(text: str, findings: tuple[Finding, ...], load: Callable[[str], Any]) -> Document:
    try:
        value = load(text)
    except YamlProblem as problem:
        if problem.rule == "yaml" and (repaired := _repaired(text, problem, load)):
            value = repaired.value
            findings += repaired.findings
        else:
            finding = Finding(problem.rule, problem.message, problem.line + 1, problem.column)
            return Document({}, text, (*findings, finding))
    if value is None:
        return Document({}, text, findings)
    if not isinstance(value, dict):
        return Document(
            {}, text, (*findings, Finding("frontmatter-type", "the frontmatter is not a map of fields", 2, 1))
        )
    return Document(value, text, findings)


def _broken(finding: Finding) -> Document:
    return Document({}, "", (finding,))


# Fences -------------------------------------------------------------------------------------------


def _first_line_end(head: bytes) -> int | None:
    """Where the line after the opening fence starts, or None if the file has no such fence."""
    if head.startswith(b"---\n"):
        return 4
    start = 3 if head.startswith(BOM) else 0
    end = head.find(b"\n", start)
    line = head[start : end if end >= 0 else len(head)]
    if line.rstrip(_BLANKS) != FENCE:
        return None
    return end + 1 if end >= 0 else len(head)


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


def _why_no_frontmatter(head: bytes) -> Finding:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Finding("encoding", "the file is UTF-16; save it as UTF-8", 1, 1)
    if not head.strip():
        return Finding("frontmatter-missing", "the file is empty; it must begin with a line `---`", 1, 1)
    if b"\r" in head and b"\n" not in head:
        return Finding("frontmatter-missing", "the line ends are CR alone; save the file with LF", 1, 1)
    if head.lstrip().partition(b"\n")[0].rstrip() == FENCE:
        return Finding("frontmatter-missing", "something stands before the first `---`, which must be line 1", 1, 1)
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


def _form(head: bytes, first: int) -> tuple[Finding, ...]:
    """What is unusual about the form of a file that can be read all the same."""
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
    """What a text says once its usual mistakes are put right, and a finding for each line changed."""

    value: Any
    lines: list[str]
    findings: tuple[Finding, ...]


def _repaired(text: str, problem: YamlProblem, load: Callable[[str], Any]) -> _Repaired | None:
    """The text with its usual mistakes put right.

    Only the line where the parser stopped is touched, then it is asked again: a line that is right stays as it is.
    """
    lines = text.split("\n")
    findings: dict[int, Finding] = {}
    for _ in range(_MOST_REPAIRS):
        number = problem.line
        if number > len(lines):
            return None
        before = lines[number - 1]
        rule, line = _rewritten(before)
        if rule is None:
            return None
        lines[number - 1] = line
        column = len(before) - len(before.lstrip(" \t")) + 1
        findings[number] = Finding(rule, f"{_MISTAKES[rule]}; read as: {line.strip()}", number + 1, column)
        try:
            return _Repaired(load("\n".join(lines)), lines, tuple(findings[n] for n in sorted(findings)))
        except YamlProblem as next_problem:
            problem = next_problem
    return None


def _rewritten(line: str) -> tuple[str | None, str]:
    """The rule a line breaks and the line put right; no rule where it cannot be."""
    bare = line.lstrip(" \t")
    indent = line[: len(line) - len(bare)]
    if "\t" in indent:
        return "yaml-tab", indent.replace("\t", "  ") + bare
    key, colon, value = bare.partition(":")
    value = value.strip(" \t")
    if not colon or not value or not _is_key(key.removeprefix("- ")):
        return None, line
    # A comment is part of the value here: nobody who forgot the quotes meant one.
    start = line.index(value, len(indent + key) + 1)
    gap = "" if line[start - 1] in " \t" else " "
    quoted = line[:start] + gap + "'" + value.replace("'", "''") + "'" + line[start + len(value) :]
    if value[0] in "[{@`%" and not _is_flow(value):
        return "yaml-brackets", quoted
    if value[0] not in "\"'[{|>#&*!@`%" and (": " in value or value.endswith(":")):
        return "yaml-colon", quoted
    return None, line


def _is_key(text: str) -> bool:
    """Whether a text is one word of letters, digits, hyphens, dots and underscores."""
    return bool(text) and text.replace("-", "").replace("_", "").replace(".", "").isalnum()


def _is_flow(value: str) -> bool:
    try:
        return isinstance(load_yaml(value), list | dict)
    except YamlProblem:
        return False
