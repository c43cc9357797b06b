"""Text of a Markdown page to what it names: files beside it, and other skills.

Only forms that cannot mean anything else count. What stands in a code block is an example, and what looks like
a placeholder or an address on the web is no file; a miss is better here than a false alarm.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

__all__ = ["Mention", "files_named", "links_in", "prose_lines", "skills_named"]


class Mention(NamedTuple):
    """Something a page names, and where, from 1."""

    target: str
    line: int
    column: int


# Prose --------------------------------------------------------------------------------------------

# Nothing is given back that was taken (`*+`): a line of blanks, or of tildes, would otherwise be tried in every way.
_FENCE = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)]) [ \t]*+)?(`{3,}+|~{3,}+)([^`\n]*+)$")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]{1,300})\1(?!`)")


def prose_lines(text: str) -> list[str]:
    """The lines of a page with blanks for those in code blocks and comments; every line keeps its number."""
    lines = []
    open_fences: list[str] = []
    for line in _without_comments(text).split("\n"):
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence is None:
            lines.append("" if open_fences else line)
            continue
        lines.append("")
        _turn(open_fences, fence[1], fence[2].strip())
    return lines


def _without_comments(text: str) -> str:
    """The text with blanks in the place of comments; one that is not closed is none."""
    # No pattern: `<!--.*?-->` looks through the whole rest once for every comment that is not closed.
    parts = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts += [text[at:start], re.sub(r"[^\n]", " ", text[start : end + 3])]
        at = end + 3
    return "".join([*parts, text[at:]])


def _turn(open_fences: list[str], fence: str, language: str) -> None:
    """Open or close a code block; a block of Markdown may hold blocks, though its fence should then be longer."""
    if not open_fences:
        open_fences.append(fence + language)
        return
    inner = open_fences[-1]
    if fence[0] == inner[0] and len(fence) >= len(inner) - len(inner.lstrip("`~")) and not language:
        open_fences.pop()
    elif language and inner.lstrip("`~").lower() in ("markdown", "md"):
        open_fences.append(fence + language)


# Files --------------------------------------------------------------------------------------------

_LINK = re.compile(r"\]\([ \t]{0,3}<?([^()<>\s\"']{1,500})>?(?:[ \t]+[\"'(][^\n]{0,300}?[\"')])?[ \t]{0,3}\)")
_DEFINITION = re.compile(r" {0,3}\[[^\]^\n][^\]\n]{0,200}\]:[ \t]+<?([^\s<>]{1,500})>?[ \t]*(?:[\"'(].{0,300})?$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)+/")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_PLACEHOLDER = re.compile(r"[{}<>$*|\\\[\]]|\.\.\.|…|(?:^|/)path/to/|(?:^|/)(?:xxx|foo|bar)\b|YYYY|XXX")
_FOLDERS = ("scripts/", "references/", "assets/")
_FILE_IN_CODE = re.compile(r"(?:\./)?((?:scripts|references|assets)/[\w./@+-]{1,300})$")


def links_in(lines: list[str]) -> Iterator[Mention]:
    """The relative paths that links and images of a page lead to."""
    for number, line in enumerate(lines, 1):
        if "](" in line:
            plain = _without_code(line)
            yield from _targets(_LINK.finditer(plain), number)
        elif "]:" in line and (definition := _DEFINITION.match(line)):
            yield from _targets([definition], number)


def _targets(matches: "Iterator[re.Match[str]] | list[re.Match[str]]", number: int) -> Iterator[Mention]:
    for match in matches:
        path = unquote(re.split("[#?]", match[1], maxsplit=1)[0])
        if _is_relative_file(path):
            yield Mention(path, number, match.start(1) + 1)


def _is_relative_file(path: str) -> bool:
    if not path or path[0] in "/~#" or _SCHEME.match(path) or _DOMAIN.match(path) or _PLACEHOLDER.search(path):
        return False
    return "/" in path or bool(_EXTENSION.search(path))


def files_named(lines: list[str]) -> Iterator[Mention]:
    """The paths below `scripts/`, `references/` and `assets/` that a page names as code within a sentence."""
    for number, line in enumerate(lines, 1):
        if not any(folder in line for folder in _FOLDERS):
            continue
        for span in _CODE_SPAN.finditer(line):
            if line.startswith("](", span.end()):
                continue  # The text of a link: where it leads counts.
            # A command names its script too: `python scripts/run.py --help`.
            for word in re.finditer(r"\S+", span[2]):
                path = _FILE_IN_CODE.match(word[0])
                if path and _EXTENSION.search(path[1]) and not _PLACEHOLDER.search(path[1]):
                    yield Mention(path[1], number, span.start(2) + word.start() + path.start(1) + 1)


def _without_code(line: str) -> str:
    return _CODE_SPAN.sub(lambda span: " " * len(span[0]), line) if "`" in line else line


# Skills -------------------------------------------------------------------------------------------

_NAME = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_COMMAND = re.compile(rf"(?<![\w/.])/skill:({_NAME})(?![\w:-])")
_ADDRESS = re.compile(rf"(?<!\w)skill://({_NAME})(?![\w:.<{{-])")
_DOLLAR = re.compile(r"(?<![\w$`'\"=(/{])\$([a-z][a-z0-9]*(?:-[a-z0-9]+)+)(?![\w:./-])")
# "a `x` skill" is an example; "the `x` skill" is one that should be there.
_BEFORE = re.compile(rf"(?<!\ba )(?<!\ban )(?<!original )`({_NAME})`(?:\*\*)? skill(?![\w-])", re.IGNORECASE)
_AFTER = re.compile(rf"\b(?:the|use|load|invoke|run|see|activate) skill `({_NAME})`", re.IGNORECASE)
_STAND_INS = frozenset({"name", "skill", "skill-name", "my-skill", "your-skill", "x", "foo", "bar", "example", "agent"})


def skills_named(lines: list[str]) -> Iterator[Mention]:
    """The skills that a page names in a form which can mean nothing else."""
    for number, line in enumerate(lines, 1):
        if "kill" in line:
            for pattern in (_COMMAND, _ADDRESS, _BEFORE, _AFTER):
                yield from _names(pattern, line, number)
        if "$" in line:
            yield from _names(_DOLLAR, _without_code(line), number)


def _names(pattern: re.Pattern[str], line: str, number: int) -> Iterator[Mention]:
    for match in pattern.finditer(line):
        if match[1] not in _STAND_INS and match[1] == match[1].lower():
            yield Mention(match[1], number, match.start(1) + 1)
