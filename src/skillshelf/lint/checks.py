"""Check what only authors care about: description, body, references and scripts.

Files and other skills count as named only in forms that cannot mean anything else: code blocks are examples, and
placeholders and web addresses are not files. A miss is better here than a false alarm.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from posixpath import join, normpath
from typing import NamedTuple
from urllib.parse import unquote

from skillshelf.catalog.document import ParsedFrontmatter
from skillshelf.catalog.document import body as body_of
from skillshelf.catalog.rules import description_of
from skillshelf.core import files
from skillshelf.core.limits import CHECKED_MENTIONS, CHECKED_PAGES, CHECKED_SCRIPTS, RESOURCE_BYTES
from skillshelf.core.text import plural
from skillshelf.core.values import Finding

__all__ = [
    "FileFinding",
    "Mention",
    "SkillPage",
    "page_of",
    "run_checks",
    "skills_named",
]


class Mention(NamedTuple):
    """A name in a page, with its line and column, from 1."""

    target: str
    line: int
    column: int


# Prose --------------------------------------------------------------------------------------------

# Possessive (`*+`): on a line of blanks or tildes, backtracking would take exponential time.
_FENCE = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)]) [ \t]*+)?(`{3,}+|~{3,}+)([^`\n]*+)$")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]{1,300})\1(?!`)")


def _prose_lines(text: str) -> list[str]:
    """Return the lines of a page, empty where they are in code blocks or comments; every line keeps its number."""
    lines = []
    open_fences: list[str] = []
    for line in _without_comments(text).split("\n"):
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence is None:
            lines.append("" if open_fences else line)
            continue
        lines.append("")
        _toggle_fence(open_fences, fence[1], fence[2].strip())
    return lines


def _without_comments(text: str) -> str:
    """Return the text with blanks instead of comments; an unclosed comment is text."""
    # Not a pattern: `<!--.*?-->` searches the whole rest of the text once for every unclosed comment.
    parts = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts += [text[at:start], re.sub(r"[^\n]", " ", text[start : end + 3])]
        at = end + 3
    return "".join([*parts, text[at:]])


def _toggle_fence(open_fences: list[str], fence: str, language: str) -> None:
    """Open or close a code block; a block of Markdown may contain blocks, though its fence should then be longer."""
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


def _links_in(lines: list[str]) -> Iterator[Mention]:
    """Yield the relative paths of links and images in a page."""
    for number, line in enumerate(lines, 1):
        if "](" in line:
            yield from _targets(_LINK.finditer(_without_code(line)), number)
        elif "]:" in line and (definition := _DEFINITION.match(line)):
            yield from _targets([definition], number)


def _targets(matches: Iterable[re.Match[str]], number: int) -> Iterator[Mention]:
    for match in matches:
        path = unquote(re.split("[#?]", match[1], maxsplit=1)[0])
        if _is_relative_file(path):
            yield Mention(path, number, match.start(1) + 1)


def _is_relative_file(path: str) -> bool:
    if not path or path[0] in "/~#" or _SCHEME.match(path) or _DOMAIN.match(path) or _PLACEHOLDER.search(path):
        return False
    return "/" in path or bool(_EXTENSION.search(path))


def _files_named(lines: list[str]) -> Iterator[Mention]:
    """Yield the paths below `scripts/`, `references/` and `assets/` that a page names as code within a sentence."""
    for number, line in enumerate(lines, 1):
        if not any(folder in line for folder in _FOLDERS):
            continue
        for span in _CODE_SPAN.finditer(line):
            if line.startswith("](", span.end()):
                continue  # The text of a link: its target counts.
            # A command names its script, too: `python scripts/run.py --help`.
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
# "a `x` skill" is an example; "the `x` skill" should exist.
_BEFORE = re.compile(rf"(?<!\ba )(?<!\ban )(?<!original )`({_NAME})`(?:\*\*)? skill(?![\w-])", re.IGNORECASE)
_AFTER = re.compile(rf"\b(?:the|use|load|invoke|run|see|activate) skill `({_NAME})`", re.IGNORECASE)
_PLACEHOLDERS = frozenset(
    {"name", "skill", "skill-name", "my-skill", "your-skill", "x", "foo", "bar", "example", "agent"}
)


def skills_named(lines: list[str]) -> Iterator[Mention]:
    """Yield the skills that a page names in a form that cannot mean anything else."""
    for number, line in enumerate(lines, 1):
        if "kill" in line:
            for pattern in (_COMMAND, _ADDRESS, _BEFORE, _AFTER):
                yield from _skill_names(pattern, line, number)
        if "$" in line:
            yield from _skill_names(_DOLLAR, _without_code(line), number)


def _skill_names(pattern: re.Pattern[str], line: str, number: int) -> Iterator[Mention]:
    for match in pattern.finditer(line):
        if match[1] not in _PLACEHOLDERS and match[1] == match[1].lower():
            yield Mention(match[1], number, match.start(1) + 1)


# Checks -------------------------------------------------------------------------------------------

_BODY_LINES = 500
_BODY_TOKENS = 5000
_DESCRIPTION_CHARACTERS = 500
_DESCRIPTION_WORDS = 6


class FileFinding(NamedTuple):
    """A finding in one of a skill's files, by its path inside the skill."""

    file: str
    finding: Finding


class SkillPage(NamedTuple):
    """A SKILL.md with its frontmatter, its body, and the folder that contains it.

    `body` is the body as it is in the file; `lines` is its text, with empty lines instead of code blocks and comments.
    Its first line is line `start` of the file.
    """

    document: ParsedFrontmatter
    directory: str
    folder: str
    body: bytes
    lines: list[str]
    start: int


Check = Callable[[SkillPage], Iterator[FileFinding]]
"""A function that yields the findings of one rule, or of a few rules about the same thing."""


def page_of(data: bytes, document: ParsedFrontmatter, *, directory: str, folder: str) -> SkillPage:
    """Return the page for the bytes of a SKILL.md; `folder` is its real location."""
    body = body_of(data)
    text = body.decode("utf-8", "replace").replace("\r\n", "\n")
    start = data.count(b"\n", 0, len(data) - len(body)) + 1
    return SkillPage(document, directory, folder, body, _prose_lines(text), start)


def run_checks(page: SkillPage) -> Iterator[FileFinding]:
    """Yield the findings of all checks."""
    for check in CHECKS:
        yield from check(page)


def _finding(rule: str, message: str, line: int | None = None, column: int | None = None) -> FileFinding:
    return FileFinding("SKILL.md", Finding(rule, message, line, column))


# The description ----------------------------------------------------------------------------------

# Writing systems without blanks between words: a character counts as half a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WHEN = re.compile(
    r"\b(?:use|uses|used|using|when|whenever|if|for|while|before|after|during|upon|triggers?|triggered|invoke[ds]?|"
    r"asks?|asked|needs?|wants?|requests?|mentions?|helps?|"
    r"cuando|usar|úsal[oa]|para|quando|lorsque|quand|pour|wenn|für|bei|когда|для|если)\b",
    re.IGNORECASE,
)


def _description(page: SkillPage) -> Iterator[FileFinding]:
    text = description_of(page.document.fields)
    if not text:
        return
    if (line := page.document.place("description")[0]) is not None:
        yield from _cut(page.document.text.split("\n")[line - 2], line)
    unspaced = len(_UNSPACED.findall(text))
    words = len(re.findall(r"\w+", _UNSPACED.sub(" ", text))) + unspaced // 2
    if _letters(text) == _letters(page.directory) or words < _DESCRIPTION_WORDS:
        yield _finding("description-vague", f"only {plural(words, 'word')}; say what the skill does and when to use it")
    elif not unspaced and not _WHEN.search(text):
        yield _finding(
            "description-when", 'it does not say when to use the skill; add a sentence such as "Use when ..."'
        )
    if len(text) > _DESCRIPTION_CHARACTERS:
        message = f"{len(text)} characters in every conversation; {_DESCRIPTION_CHARACTERS} are enough"
        yield _finding("description-long", message)


def _cut(line: str, number: int) -> Iterator[FileFinding]:
    """Yield a finding for an unquoted value that continues after ` #`; an intended comment has only a few words."""
    plain = _PLAIN.match(line)
    if plain and len(plain[2].split()) > _COMMENT_WORDS:
        message = "YAML reads the rest of this line as a comment; quote the description"
        yield _finding("description-cut", message, number, plain.start(2) + 1)


_PLAIN = re.compile(r"description[ \t]*:[ \t]+([^\s\"'|>\[{#&*!%@`][^\n]*?)[ \t](#[^\n]*)$")
_COMMENT_WORDS = 4


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text.lower())


# The body -----------------------------------------------------------------------------------------

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def _body(page: SkillPage) -> Iterator[FileFinding]:
    if not page.body.strip():
        yield _finding("body-empty", "nothing follows the frontmatter; write instructions", page.start, 1)
        return
    try:
        page.body.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{page.body[error.start]:02x}; save the file as UTF-8"
        yield _finding("body-encoding", message, *_position(page, error.start))
    if control := _CONTROL.search(page.body):
        message = f"a control character (0x{control[0][0]:02x}); delete it"
        yield _finding("body-control-character", message, *_position(page, control.start()))


def _position(page: SkillPage, offset: int) -> tuple[int, int]:
    """Return line and column, in characters, of a byte of the body."""
    start = page.body.rfind(b"\n", 0, offset) + 1
    column = len(page.body[start:offset].decode("utf-8", "replace")) + 1
    return page.start + page.body.count(b"\n", 0, offset), column


def _size(page: SkillPage) -> Iterator[FileFinding]:
    lines = page.body.count(b"\n") + (not page.body.endswith(b"\n"))
    tokens = -(-len(page.body) // 4)
    hint = "move what only some tasks need to references/"
    if lines > _BODY_LINES:
        yield _finding("body-lines", f"{lines} lines; at most {_BODY_LINES} are recommended: {hint}", page.start, 1)
    if tokens > _BODY_TOKENS:
        message = f"about {tokens:,} tokens; at most {_BODY_TOKENS:,} are recommended: {hint}"
        yield _finding("body-tokens", message, page.start, 1)


# References ---------------------------------------------------------------------------------------


def _references(page: SkillPage) -> Iterator[FileFinding]:
    links = [*islice(_links_in(page.lines), CHECKED_MENTIONS)]
    words = [*islice(_files_named(page.lines), CHECKED_MENTIONS)]
    yield from _mention_limit("SKILL.md", links, words)
    for mention in links:
        path, position = normpath(mention.target), (page.start + mention.line - 1, mention.column)
        if _is_outside(path):
            message = f"{mention.target} is outside the skill and is not installed with it"
            yield _finding("reference-outside", message, *position)
        elif not _exists(page.folder, path):
            yield _finding("reference-missing", f"{mention.target} does not exist", *position)
    for mention in words:
        path, position = normpath(mention.target), (page.start + mention.line - 1, mention.column)
        if _belongs_to_skill(page.folder, path) and not _exists(page.folder, path):
            yield _finding("reference-missing", f"{path} does not exist", *position)
    paths = [normpath(mention.target) for mention in (*links, *words)]
    yield from _pages(page.folder, dict.fromkeys(path for path in paths if not _is_outside(path)))


def _mention_limit(page: str, *taken: Collection[Mention]) -> Iterator[FileFinding]:
    """Yield a finding for a page that may name more than was checked."""
    if any(len(mentions) == CHECKED_MENTIONS for mentions in taken):
        message = f"too many links or paths; those after the first {CHECKED_MENTIONS} were not checked"
        yield FileFinding(page, Finding("check-limit", message, 1, 1))


def _is_outside(path: str) -> bool:
    return path == ".." or path.startswith("../")


def _exists(folder: str, path: str) -> bool:
    return files.kind_at(join(folder, path)) is not None


def _belongs_to_skill(folder: str, path: str) -> bool:
    """Return whether a path in a sentence means a file of the skill, not one of the project that it works on."""
    if _is_outside(path):
        return False
    # Measured on real skills: `references/x.md` always does; `scripts/build.sh` only where there are scripts.
    return path.startswith("references/") or files.kind_at(join(folder, path.partition("/")[0])) == "folder"


def _pages(folder: str, known: Collection[str]) -> Iterator[FileFinding]:
    """Yield findings about the links of the pages that SKILL.md names."""
    pages = [path for path in known if path.lower().endswith((".md", ".mdx", ".markdown")) and path != "SKILL.md"]
    if len(pages) > CHECKED_PAGES:
        yield _finding("check-limit", f"{len(pages)} pages are named; only the first {CHECKED_PAGES} were read", 1, 1)
    for path in pages[:CHECKED_PAGES]:
        text = _text(folder, path)
        if text is None:
            continue
        links = [*islice(_links_in(_prose_lines(text)), CHECKED_MENTIONS)]
        yield from _mention_limit(path, links)
        for link in links:
            yield from _link_in_page(folder, path, link, known)


def _link_in_page(folder: str, page: str, link: Mention, known: Collection[str]) -> Iterator[FileFinding]:
    beside = normpath(join(page.rpartition("/")[0], link.target))
    # Some authors write paths relative to the page, some relative to the skill's folder.
    target = next((path for path in (beside, normpath(link.target)) if _exists(folder, path)), beside)
    if _is_outside(target):
        return
    if not _exists(folder, target):
        message = f"{link.target} does not exist"
        yield FileFinding(page, Finding("reference-missing", message, link.line, link.column))
    elif target not in known and target != "SKILL.md" and target.lower().endswith(".md"):
        message = f"{target} is named only here; name it in SKILL.md, too, or an agent may not find it"
        yield FileFinding(page, Finding("reference-deep", message, link.line, link.column))


def _text(folder: str, path: str) -> str | None:
    try:
        with files.Folder(folder) as skill:
            data = skill.read(path.split("/"), limit=RESOURCE_BYTES).data
            return data.decode("utf-8", "replace").replace("\r\n", "\n")
    except (OSError, ValueError):
        # A missing file is reported where it is named; anything else that cannot be read is not a page.
        return None


# Scripts ------------------------------------------------------------------------------------------

_INTERPRETERS = {
    ".py": "#!/usr/bin/env python3",
    ".sh": "#!/bin/sh",
    ".bash": "#!/usr/bin/env bash",
    ".zsh": "#!/usr/bin/env zsh",
    ".js": "#!/usr/bin/env node",
    ".mjs": "#!/usr/bin/env node",
    ".rb": "#!/usr/bin/env ruby",
    ".pl": "#!/usr/bin/env perl",
}
_MAIN = re.compile(rb"^if __name__ *== *['\"]__main__['\"]", re.MULTILINE)


def _scripts(page: SkillPage) -> Iterator[FileFinding]:
    try:
        with files.Folder(page.folder) as skill:
            names = skill.children(["scripts"])
            if len(names) > CHECKED_SCRIPTS:
                message = f"{len(names)} entries in scripts/; only the first {CHECKED_SCRIPTS} were checked"
                yield _finding("check-limit", message, 1, 1)
            for name in names[:CHECKED_SCRIPTS]:
                yield from _script(skill, page, name)
    except OSError:
        # There is no readable folder of scripts.
        return


def _script(skill: files.Folder, page: SkillPage, name: str) -> Iterator[FileFinding]:
    extension = "." + name.rpartition(".")[2] if "." in name else ""
    if name.endswith("/") or extension not in _INTERPRETERS:
        return
    path = f"scripts/{name}"
    try:
        data = skill.read(["scripts", name], limit=RESOURCE_BYTES).data
        runnable = bool(skill.mode(["scripts", name]) & 0o111)
    except OSError:
        return
    if data.startswith(b"#!"):
        if not runnable:
            message = f"it names its interpreter but is not executable; run chmod +x {path}"
            yield FileFinding(path, Finding("script-run-bit", message, 1, 1))
    # A Python file without a main block, or another script that the body does not name, is imported by others.
    elif runnable or (_MAIN.search(data) if extension == ".py" else path.encode() in page.body):
        message = f"no line `#!` names its interpreter; begin with {_INTERPRETERS[extension]}"
        yield FileFinding(path, Finding("script-shebang", message, 1, 1))


CHECKS: tuple[Check, ...] = (
    _description,
    _body,
    _size,
    _references,
    _scripts,
)
