"""Check what only authors care about: description, body, references and scripts.

Files and other skills count as named only in forms that cannot mean anything else: code blocks are examples, and
placeholders and web addresses are not files. A miss is better here than a false alarm.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from posixpath import join, normpath
from urllib.parse import unquote

from skillshelf.catalog.document import ParsedFrontmatter
from skillshelf.catalog.document import body as body_of
from skillshelf.catalog.rules import description_of
from skillshelf.catalog.tree import covered_entries
from skillshelf.core import files
from skillshelf.core.limits import CHECKED_MENTIONS, CHECKED_PAGES, CHECKED_SCRIPTS, RESOURCE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import encoded_path, plural, visible
from skillshelf.core.values import Finding
from skillshelf.lint.security import folder_findings

__all__ = [
    "FileFinding",
    "Mention",
    "SkillPage",
    "description_findings",
    "page_of",
    "run_checks",
    "security_checks",
    "skills_named",
    "without_code",
    "without_code_blocks",
]


class Mention(NamedTuple):
    """A name in a page, with its line and column, from 1."""

    target: str
    line: int
    column: int


# Prose --------------------------------------------------------------------------------------------

# No part can begin with what the part before it may hold, so a long line is not tried in more than one way.
_FENCE = re.compile(r"\n[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]) [ \t]*)?(`{3,}|~{3,}(?!~))([^`\n]*)(?![^\n])")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]{1,300})\1(?!`)")


def _prose(text: str) -> str:
    """Return the text of a page with empty lines instead of code blocks and comments; every line keeps its number."""
    return without_code_blocks(_without_comments(text))


def without_code_blocks(text: str) -> str:
    """Return the text of a page with empty lines instead of code blocks."""
    if "```" not in text and "~~~" not in text:
        return text
    # Every line, the first one as well, comes after the end of another.
    text = f"\n{text}"
    parts = []
    at = 1
    open_fences: list[str] = []
    for fence in _FENCE.finditer(text):
        start = fence.start() + 1
        parts.append("\n" * text.count("\n", at, start) if open_fences else text[at:start])
        at = fence.end()
        _toggle_fence(open_fences, fence[1], fence[2].strip())
    parts.append("\n" * text.count("\n", at) if open_fences else text[at:])
    return "".join(parts)


def _spans_with(text: str, *words: str) -> Iterable[tuple[int, int]]:
    """Return start and end of each line with one of some words in it; all other lines cost one search for each word."""
    present = [word for word in words if word in text]
    if len(present) < 2:
        return _spans(text, _hits(text, present[0])) if present else ()
    return sorted({span for word in present for span in _spans(text, _hits(text, word))})


def _hits(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _spans(text: str, hits: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line with one of some offsets, which ascend."""
    end = -1
    for at in hits:
        if at > end:
            end = text.find("\n", at)
            if end < 0:
                end = len(text)
            yield text.rfind("\n", 0, at) + 1, end


def _numbered(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of the lines between some offsets."""
    number, counted = 1, 0
    for start, end in spans:
        number += text.count("\n", counted, start)
        counted = start
        yield number, text[start:end]


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
_LINK_MARK = re.compile(r"\][(:]")
_DEFINITION = re.compile(r" {0,3}\[[^\]^\n][^\]\n]{0,200}\]:[ \t]+<?([^\s<>]{1,500})>?[ \t]*(?:[\"'(].{0,300})?$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)+/")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_PLACEHOLDER = re.compile(r"[{}<>$*|\\\[\]]|\.\.\.|…|(?:^|/)path/to/|(?:^|/)(?:xxx|foo|bar)\b|YYYY|XXX")
_FOLDERS = ("scripts/", "references/", "assets/")
_FILE_IN_CODE = re.compile(r"(?:\./)?((?:scripts|references|assets)/[\w./@+-]{1,300})$")


def _links_in(text: str) -> Iterator[Mention]:
    """Yield the relative paths of links and images in a page."""
    for number, line in _numbered(text, _spans(text, (mark.start() for mark in _LINK_MARK.finditer(text)))):
        if "](" in line:
            yield from _targets(_LINK.finditer(_without_code(line)), number)
        elif definition := _DEFINITION.match(line):
            yield from _targets([definition], number)


def _targets(matches: Iterable[re.Match[str]], number: int) -> Iterator[Mention]:
    for match in matches:
        path = unquote(re.split("[#?]", match[1], maxsplit=1)[0], errors="surrogateescape")
        if _is_relative_file(path):
            yield Mention(path, number, match.start(1) + 1)


def _is_relative_file(path: str) -> bool:
    if not path or path[0] in "/~#" or _SCHEME.match(path) or _DOMAIN.match(path) or _PLACEHOLDER.search(path):
        return False
    return "/" in path or bool(_EXTENSION.search(path))


def _files_named(text: str) -> Iterator[Mention]:
    """Yield the paths below `scripts/`, `references/` and `assets/` that a page names as code within a sentence."""
    for number, line in _numbered(text, _spans_with(text, *_FOLDERS)):
        for span in _CODE_SPAN.finditer(line):
            if line.startswith("](", span.end()):
                continue  # The text of a link: its target counts.
            # A command names its script, too: `python scripts/run.py --help`.
            for word in re.finditer(r"\S+", span[2]):
                path = _FILE_IN_CODE.match(word[0])
                if path and _EXTENSION.search(path[1]) and not _PLACEHOLDER.search(path[1]):
                    yield Mention(path[1], number, span.start(2) + word.start() + path.start(1) + 1)


def without_code(text: str) -> str:
    """Return the text of a page with blanks and empty lines instead of code; all else stays in its place."""
    return _without_code(without_code_blocks(text))


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
_SKILL_FORMS = (("/skill:", _COMMAND), ("skill://", _ADDRESS), ("`", _BEFORE), ("`", _AFTER))
"""Each form that names a skill, with a text that it always has."""

_PLACEHOLDERS = frozenset(
    {"name", "skill", "skill-name", "my-skill", "your-skill", "x", "foo", "bar", "example", "agent"}
)


def skills_named(text: str) -> Iterator[Mention]:
    """Yield the skills that a page names in a form that cannot mean anything else."""
    for number, line in _numbered(text, _spans_with(text, "kill", "$")):
        if "kill" in line:
            for mark, pattern in _SKILL_FORMS:
                if mark in line:
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
    """A SKILL.md with its frontmatter, its body, and the open folder that contains it.

    `body` is the body as it is in the file; `text` is its text, with empty lines instead of code blocks and comments,
    and `lines` its lines. Its first line is line `start` of the file; `data` is the whole file.
    """

    document: ParsedFrontmatter
    directory: str
    folder: files.Folder
    body: bytes
    text: str
    start: int
    data: bytes = b""

    @property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")


Check = Callable[[SkillPage], Iterator[FileFinding]]
"""A function that yields the findings of one rule, or of a few rules about the same thing."""


def page_of(data: bytes, document: ParsedFrontmatter, *, directory: str, folder: files.Folder) -> SkillPage:
    """Return the page for the bytes of a SKILL.md; `folder` is its real location, and stays open."""
    body = body_of(data)
    text = body.decode("utf-8", "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    start = data.count(b"\n", 0, len(data) - len(body)) + 1
    return SkillPage(document, directory, folder, body, _prose(text), start, data)


def run_checks(page: SkillPage) -> Iterator[FileFinding]:
    """Yield the findings of all checks."""
    for check in CHECKS:
        yield from check(page)


def _finding(rule: str, message: str, line: int | None = None, column: int | None = None) -> FileFinding:
    return FileFinding("SKILL.md", Finding(rule, message, line, column))


# The description ----------------------------------------------------------------------------------

# Writing systems without blanks between words: a character counts as half a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"\w+")
_WHEN_WORDS = (
    *("use", "uses", "used", "using", "when", "whenever", "if", "for", "while", "before", "after", "during", "upon"),
    *("trigger", "triggers", "triggered", "invoke", "invoked", "invokes", "ask", "asks", "asked", "need", "needs"),
    *("want", "wants", "request", "requests", "mention", "mentions", "help", "helps"),
    *("cuando", "usar", "úsalo", "úsala", "para", "quando", "lorsque", "quand", "pour", "wenn", "für", "bei"),
    *("когда", "для", "если"),
)
_WHEN_SET = frozenset(_WHEN_WORDS)
_WHEN = re.compile(rf"\b(?:{'|'.join(_WHEN_WORDS)})\b", re.IGNORECASE)


def _description(page: SkillPage) -> Iterator[FileFinding]:
    return description_findings(page.document, page.directory)


def description_findings(document: ParsedFrontmatter, directory: str) -> Iterator[FileFinding]:
    """Yield what an author could say better in the description of a skill in a folder of that name."""
    text = description_of(document.fields)
    if not text:
        return
    if (line := document.place("description")[0]) is not None:
        yield from _cut(document.text.split("\n")[line - 2], line)
    unspaced = 0 if text.isascii() else len(_UNSPACED.findall(text))
    found = _WORD.findall(_UNSPACED.sub(" ", text) if unspaced else text)
    words = len(found) + unspaced // 2
    if words < _DESCRIPTION_WORDS or _letters(text, found) == _letters(directory):
        yield _finding("description-vague", f"only {plural(words, 'word')}; say what the skill does and when to use it")
    elif not unspaced and not _says_when(text, found):
        yield _finding(
            "description-when", 'it does not say when to use the skill; add a sentence such as "Use when ..."'
        )
    if len(text) > _DESCRIPTION_CHARACTERS:
        message = f"{len(text)} characters in every conversation; {_DESCRIPTION_CHARACTERS} are enough"
        yield _finding("description-long", message)


def _cut(line: str, number: int) -> Iterator[FileFinding]:
    """Yield a finding for an unquoted value that continues after ` #`; an intended comment has only a few words."""
    plain = _PLAIN.match(line) if "#" in line else None
    if plain and len(plain[2].split()) > _COMMENT_WORDS and not plain[2].lstrip("# \t").startswith("skillshelf:"):
        message = "YAML reads the rest of this line as a comment; quote the description"
        yield _finding("description-cut", message, number, plain.start(2) + 1)


_PLAIN = re.compile(r"description[ \t]*:[ \t]+([^\s\"'|>\[{#&*!%@`][^\n]*?)[ \t](#[^\n]*)$")
_COMMENT_WORDS = 4


def _letters(text: str, words: list[str] | None = None) -> str:
    """Return the letters and digits of a text in lower case; `words` are its words, if they are known."""
    if words is not None and text.isascii():
        return "".join(words).replace("_", "").lower()
    return re.sub(r"[\W_]", "", text.lower())


def _says_when(text: str, words: list[str]) -> bool:
    if text.isascii():
        return not _WHEN_SET.isdisjoint([word.lower() for word in words])
    return _WHEN.search(text) is not None


# The body -----------------------------------------------------------------------------------------

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_ALL_BUT_CONTROL = bytes(byte for byte in range(256) if not _CONTROL.match(bytes([byte])))


def _body(page: SkillPage) -> Iterator[FileFinding]:
    if not page.body.strip():
        yield _finding("body-empty", "nothing follows the frontmatter; write instructions", page.start, 1)
        return
    try:
        if not page.body.isascii():
            page.body.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{page.body[error.start]:02x}; save the file as UTF-8"
        yield _finding("body-encoding", message, *_position(page, error.start))
    # Deleting all other bytes takes a fraction of the time of a search, and most files have none of these.
    if page.body.translate(None, _ALL_BUT_CONTROL) and (control := _CONTROL.search(page.body)):
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
    links = [*islice(_links_in(page.text), CHECKED_MENTIONS)]
    words = [*islice(_files_named(page.text), CHECKED_MENTIONS)]
    yield from _mention_limit("SKILL.md", links, words)
    missing = set()
    for mention in links:
        path, position = normpath(mention.target), (page.start + mention.line - 1, mention.column)
        if _is_outside(path):
            message = f"{encoded_path(mention.target)} is outside the skill and is not installed with it"
            yield _finding("reference-outside", message, *position)
        elif not _exists(page.folder, path):
            missing.add(path)
            yield _finding("reference-missing", f"{encoded_path(mention.target)} does not exist", *position)
    for mention in words:
        path, position = normpath(mention.target), (page.start + mention.line - 1, mention.column)
        if _belongs_to_skill(page.folder, path) and not _exists(page.folder, path):
            missing.add(path)
            yield _finding("reference-missing", f"{path} does not exist", *position)
    paths = [normpath(mention.target) for mention in (*links, *words)]
    yield from _pages(page.folder, dict.fromkeys(path for path in paths if not _is_outside(path)), missing)


def _mention_limit(page: str, *taken: Collection[Mention]) -> Iterator[FileFinding]:
    """Yield a finding for a page that may name more than was checked."""
    if any(len(mentions) == CHECKED_MENTIONS for mentions in taken):
        message = f"too many links or paths; those after the first {CHECKED_MENTIONS} were not checked"
        yield FileFinding(encoded_path(page), Finding("check-limit", message, 1, 1))


def _is_outside(path: str) -> bool:
    return path == ".." or path.startswith("../")


def _exists(folder: files.Folder, path: str) -> bool:
    return folder.kind(path) is not None


def _belongs_to_skill(folder: files.Folder, path: str) -> bool:
    """Return whether a path in a sentence means a file of the skill, not one of the project that it works on."""
    if _is_outside(path):
        return False
    # Measured on real skills: `references/x.md` always does; `scripts/build.sh` only where there are scripts.
    return path.startswith("references/") or folder.kind(path.partition("/")[0]) == "folder"


def _pages(folder: files.Folder, known: Collection[str], missing: Collection[str]) -> Iterator[FileFinding]:
    """Yield findings about the links of the pages that SKILL.md names, except those that are known to be missing."""
    pages = [path for path in known if path.lower().endswith((".md", ".mdx", ".markdown")) and path != "SKILL.md"]
    if len(pages) > CHECKED_PAGES:
        yield _finding("check-limit", f"{len(pages)} pages are named; only the first {CHECKED_PAGES} were read", 1, 1)
    for path in pages[:CHECKED_PAGES]:
        text = _text(folder, path) if path not in missing else None
        if text is None:
            continue
        links = [*islice(_links_in(_prose(text)), CHECKED_MENTIONS)]
        yield from _mention_limit(path, links)
        for link in links:
            yield from _link_in_page(folder, path, link, known)


def _link_in_page(folder: files.Folder, page: str, link: Mention, known: Collection[str]) -> Iterator[FileFinding]:
    beside = normpath(join(page.rpartition("/")[0], link.target))
    # Some authors write paths relative to the page, some relative to the skill's folder.
    target = next((path for path in (beside, normpath(link.target)) if _exists(folder, path)), beside)
    if _is_outside(target):
        return
    if not _exists(folder, target):
        message = f"{encoded_path(link.target)} does not exist"
        yield FileFinding(encoded_path(page), Finding("reference-missing", message, link.line, link.column))
    elif target not in known and target != "SKILL.md" and target.lower().endswith(".md"):
        message = f"{encoded_path(target)} is named only here; name it in SKILL.md, too, or an agent may not find it"
        yield FileFinding(encoded_path(page), Finding("reference-deep", message, link.line, link.column))


def _text(folder: files.Folder, path: str) -> str | None:
    try:
        data = folder.read(path.split("/"), limit=RESOURCE_BYTES).data
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
    if not _has_scripts(page.folder):
        return
    try:
        names = page.folder.children(["scripts"])
    except OSError:
        # There is no readable folder of scripts.
        return
    if len(names) > CHECKED_SCRIPTS:
        message = f"{len(names)} entries in scripts/; only the first {CHECKED_SCRIPTS} were checked"
        yield _finding("check-limit", message, 1, 1)
    for name in names[:CHECKED_SCRIPTS]:
        yield from _script(page, name)


def _has_scripts(folder: files.Folder) -> bool:
    """Return whether there is a folder of scripts; other checks need the list of all entries anyway."""
    try:
        entries = _entries(folder)
    except OSError:
        return folder.kind("scripts") == "folder"
    return "scripts" in entries.folders or (not entries.complete and folder.kind("scripts") == "folder")


def _script(page: SkillPage, name: str) -> Iterator[FileFinding]:
    extension = "." + name.rpartition(".")[2] if "." in name else ""
    if name.endswith("/") or extension not in _INTERPRETERS:
        return
    path = f"scripts/{name}"
    try:
        data = page.folder.read(["scripts", name], limit=RESOURCE_BYTES).data
        runnable = bool(page.folder.mode(["scripts", name]) & 0o111)
    except OSError:
        return
    if data.startswith(b"#!"):
        if not runnable:
            message = f"it names its interpreter but is not executable; run chmod +x {path}"
            yield FileFinding(path, Finding("script-run-bit", message, 1, 1))
    # A Python file without a main block, or another script that the body does not name, is imported by others.
    elif runnable or (_MAIN.search(data) if extension == ".py" else files.path_bytes(path) in page.body):
        message = f"no line `#!` names its interpreter; begin with {_INTERPRETERS[extension]}"
        yield FileFinding(path, Finding("script-shebang", message, 1, 1))


@lru_cache(maxsize=1)
def _entries(folder: files.Folder) -> files.Tree:
    """Return the entries of a skill; two checks need them, one after the other."""
    return covered_entries(folder)


def security_checks(page: SkillPage) -> Iterator[FileFinding]:
    """Yield the findings of the security rules in all files of a skill."""
    try:
        entries = _entries(page.folder)
    except OSError as error:
        yield _finding("security-unchecked", f"the folder cannot be listed: {error.strerror}", 1, 1)
        return
    for one in folder_findings(page.folder, entries, {"SKILL.md": page.data}):
        yield FileFinding(encoded_path(one.path), Finding(one.rule, one.message, one.line, one.column))


def _file_names(page: SkillPage) -> Iterator[FileFinding]:
    try:
        paths = [*_entries(page.folder).files]
    except OSError:
        return
    odd = [path for path in paths if not (path.isascii() and path.isprintable()) or "\\" in path]
    for path in sorted(odd, key=files.path_bytes):
        shown = visible(encoded_path(path))
        if any("\udc80" <= c <= "\udcff" for c in path):
            message = f"the name of this file is not UTF-8; its address is percent-encoded: {shown}"
        elif "\\" in path or any(c < " " or "\x7f" <= c < "\xa0" for c in path):
            message = "no address can hold the name of this file, for its control character or backslash"
        else:
            continue
        yield FileFinding(shown, Finding("file-name-encoding", message, 1, 1))


CHECKS: tuple[Check, ...] = (
    _description,
    _body,
    _size,
    _references,
    _scripts,
    security_checks,
    _file_names,
)
