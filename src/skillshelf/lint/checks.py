"""Text of a Markdown page to what it names: files beside it, and other skills.

Only forms that cannot mean anything else count. What stands in a code block is an example, and what looks like
a placeholder or an address on the web is no file; a miss is better here than a false alarm.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from posixpath import join, normpath
from typing import Any, NamedTuple
from urllib.parse import unquote

from skillshelf.catalog.document import Document
from skillshelf.catalog.document import body as body_of
from skillshelf.catalog.rules import description_of
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import CHECKED_MENTIONS, CHECKED_PAGES, CHECKED_SCRIPTS, RESOURCE_BYTES
from skillshelf.core.text import is_false, is_true
from skillshelf.core.values import Finding

__all__ = [
    "Mention",
    "Note",
    "Page",
    "advise",
    "files_named",
    "links_in",
    "page_of",
    "portability",
    "prose_lines",
    "skills_named",
]


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


_SAFEGUARDS: Mapping[str, str] = {
    "disable-model-invocation": "dangerous: the model may still call this skill by itself in {hosts}",
    "disallowed-tools": "dangerous: the skill may still use those tools in {hosts}",
    "hooks": "dangerous where they check or stop something: its hooks do not run in {hosts}",
    "hide": "the model is still told of this skill in {hosts}",
    "user-invocable": "people can still call this skill by its name in {hosts}",
    "paths": "this skill is not limited to those files in {hosts}",
    "globs": "this skill is not limited to those files in {hosts}",
}
"""Fields that hold something back, the most dangerous first, and what happens where they are not honoured."""

_EVERYWHERE = frozenset({"name", "description", "license", "compatibility", "metadata"})
"""Fields that change nothing where they are ignored."""

_DEFAULTS: Mapping[str, bool] = {"user-invocable": True}
"""What a switch says that changes nothing; for any other field that is `false`."""


def portability(document: Document) -> list[Finding]:
    """What some hosts do with the fields of a frontmatter and others do not, the dangerous first."""
    fields = document.fields
    honoured = {field for host in HOSTS.values() for field in host.fields} - _EVERYWHERE
    asked = [field for field in fields if field in honoured and _says_something(field, fields[field])]
    dangerous = [field for field in _SAFEGUARDS if field in asked]
    others = sorted(field for field in asked if field not in _SAFEGUARDS)
    return [
        *_types(document),
        *_findings("portability-safeguard", dangerous, document),
        *_findings("portability-field", others, document),
    ]


def _types(document: Document) -> Iterator[Finding]:
    """Fields of which the specification says nothing, and for which some hosts leave the whole skill out."""
    for field, value in document.fields.items():
        strict = [host for host in HOSTS.values() if field in host.text_fields and host.rules["field-type"] == "reject"]
        if strict and field not in _EVERYWHERE and not isinstance(value, str):
            hosts = ", ".join(host.name for host in strict)
            message = f"the whole skill is left out by {hosts}: `{field}` is not text; put quotes around it"
            yield Finding("field-type", message, *document.place(field))


def _says_something(field: str, value: Any) -> bool:
    """Whether a field asks for anything else than what happens without it."""
    is_idle = is_true if _DEFAULTS.get(field, False) else is_false
    return value is not None and not is_idle(value)


def _findings(rule: str, fields: list[str], document: Document) -> Iterator[Finding]:
    for field in fields:
        strangers = [host for host in HOSTS.values() if field not in host.fields and "hides_on" not in host.unknown]
        if strangers:
            what = _SAFEGUARDS.get(field, "no effect in {hosts}").format(hosts=_names_portability(strangers))
            yield Finding(rule, f"{what}: `{field}` is not known there", *document.place(field))


def _names_portability(hosts: list[Profile]) -> str:
    """The hosts, those last whose documentation is all that is known about their fields."""
    sure = [host.name for host in hosts if "fields" not in host.unknown]
    documented = [host.name for host in hosts if "fields" in host.unknown]
    said = f"{', '.join(documented)} (by their documentation)" if documented else ""
    return " and ".join(words for words in (", ".join(sure), said) if words)


BODY_LINES = 500
BODY_TOKENS = 5000
DESCRIPTION_LONG = 500
DESCRIPTION_WORDS = 6


class Note(NamedTuple):
    """A finding in one of a skill's files, by its path inside the skill."""

    file: str
    finding: Finding


class Page(NamedTuple):
    """A SKILL.md as its advisers see it: frontmatter, the text after it, and the folder it lies in.

    `lines` is the text without code blocks; its first line is line `start` of the file.
    """

    document: Document
    directory: str
    folder: str
    body: bytes
    lines: list[str]
    start: int


Adviser = Callable[[Page], Iterator[Note]]
"""What one rule, or a few that look at the same thing, say about a page."""


def page_of(data: bytes, document: Document, *, directory: str, folder: str) -> Page:
    """The page that a file is; `folder` is where it really lies."""
    body = body_of(data)
    text = body.decode("utf-8", "replace").replace("\r\n", "\n")
    start = data.count(b"\n", 0, len(data) - len(body)) + 1
    return Page(document, directory, folder, body, prose_lines(text), start)


def advise(page: Page) -> Iterator[Note]:
    """What all advisers say about a page."""
    for adviser in ADVISERS:
        yield from adviser(page)


def _here(rule: str, message: str, line: int | None = None, column: int | None = None) -> Note:
    return Note("SKILL.md", Finding(rule, message, line, column))


# The description ----------------------------------------------------------------------------------

# Scripts that put no blanks between words: there a character says about as much as half a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WHEN = re.compile(
    r"\b(?:use|uses|used|using|when|whenever|if|for|while|before|after|during|upon|triggers?|triggered|invoke[ds]?|"
    r"asks?|asked|needs?|wants?|requests?|mentions?|helps?|"
    r"cuando|usar|úsal[oa]|para|quando|lorsque|quand|pour|wenn|für|bei|когда|для|если)\b",
    re.IGNORECASE,
)


def _description(page: Page) -> Iterator[Note]:
    text = description_of(page.document.fields)
    if not text:
        return
    if (line := page.document.place("description")[0]) is not None:
        yield from _cut(page.document.text.split("\n")[line - 2], line)
    unspaced = len(_UNSPACED.findall(text))
    words = len(re.findall(r"\w+", _UNSPACED.sub(" ", text))) + unspaced // 2
    if _letters(text) == _letters(page.directory) or words < DESCRIPTION_WORDS:
        yield _here("description-vague", f"{words} words; say what the skill does and when to use it")
    elif not unspaced and not _WHEN.search(text):
        yield _here("description-when", 'no word about when to use it; add a sentence such as "Use when ..."')
    if len(text) > DESCRIPTION_LONG:
        message = f"{len(text)} characters, and every conversation pays for them; {DESCRIPTION_LONG} are enough"
        yield _here("description-long", message)


def _cut(line: str, number: int) -> Iterator[Note]:
    """A plain value that goes on behind ` #`: a comment that somebody meant to write says less than a sentence."""
    plain = _PLAIN.match(line)
    if plain and len(plain[2].split()) > _COMMENT_WORDS:
        message = "YAML takes the rest of this line for a comment; put quotes around the description"
        yield _here("description-cut", message, number, plain.start(2) + 1)


_PLAIN = re.compile(r"description[ \t]*:[ \t]+([^\s\"'|>\[{#&*!%@`][^\n]*?)[ \t](#[^\n]*)$")
_COMMENT_WORDS = 4


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text.lower())


# The body -----------------------------------------------------------------------------------------

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")


def _body(page: Page) -> Iterator[Note]:
    if not page.body.strip():
        yield _here("body-empty", "nothing follows the frontmatter; write what to do", page.start, 1)
        return
    try:
        page.body.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{page.body[error.start]:02x}; save the file as UTF-8"
        yield _here("body-encoding", message, *_place(page, error.start))
    if control := _CONTROL.search(page.body):
        message = f"a control character (0x{control[0][0]:02x}); delete it"
        yield _here("body-control-character", message, *_place(page, control.start()))


def _place(page: Page, offset: int) -> tuple[int, int]:
    """Line and column, in characters, of a byte of the body."""
    start = page.body.rfind(b"\n", 0, offset) + 1
    column = len(page.body[start:offset].decode("utf-8", "replace")) + 1
    return page.start + page.body.count(b"\n", 0, offset), column


def _size(page: Page) -> Iterator[Note]:
    lines = page.body.count(b"\n") + (not page.body.endswith(b"\n"))
    tokens = -(-len(page.body) // 4)
    advice = "move what only some tasks need to references/"
    if lines > BODY_LINES:
        yield _here("body-lines", f"{lines} lines; at most {BODY_LINES} are advised: {advice}", page.start, 1)
    if tokens > BODY_TOKENS:
        yield _here(
            "body-tokens", f"about {tokens:,} tokens; at most {BODY_TOKENS:,} are advised: {advice}", page.start, 1
        )


# References ---------------------------------------------------------------------------------------


class _NamedField(NamedTuple):
    """A file that a page names: its path inside the skill, and where it is named."""

    path: str
    mention: Mention


def _references(page: Page) -> Iterator[Note]:
    links = [*islice(links_in(page.lines), CHECKED_MENTIONS)]
    words = [*islice(files_named(page.lines), CHECKED_MENTIONS)]
    linked = [_NamedField(normpath(link.target), link) for link in links]
    told = [_NamedField(normpath(word.target), word) for word in words]
    yield from _mentions_left("SKILL.md", links, words)
    for named in linked:
        environment = (page.start + named.mention.line - 1, named.mention.column)
        if _is_outside(named.path):
            message = f"{named.mention.target} lies outside the skill and does not travel with it"
            yield _here("reference-outside", message, *environment)
        elif not _exists(page.folder, named.path):
            yield _here("reference-missing", f"{named.mention.target} does not exist", *environment)
    for named in told:
        if _is_ours(page.folder, named.path) and not _exists(page.folder, named.path):
            environment = (page.start + named.mention.line - 1, named.mention.column)
            yield _here("reference-missing", f"{named.path} does not exist", *environment)
    known = dict.fromkeys(named.path for named in (*linked, *told) if not _is_outside(named.path))
    yield from _pages(page.folder, known)


def _mentions_left(page: str, *taken: Collection[Mention]) -> Iterator[Note]:
    """That a page names more than is looked for, if it may."""
    if any(len(mentions) == CHECKED_MENTIONS for mentions in taken):
        message = f"it names very much; what comes after the first {CHECKED_MENTIONS} links or paths was not looked for"
        yield Note(page, Finding("check-limit", message, 1, 1))


def _is_outside(path: str) -> bool:
    return path == ".." or path.startswith("../")


def _exists(folder: str, path: str) -> bool:
    return files.kind_at(join(folder, path)) is not None


def _is_ours(folder: str, path: str) -> bool:
    """Whether a path in a sentence means a file of the skill and not one of the project it works on."""
    if _is_outside(path):
        return False
    # Measured on real skills: `references/x.md` always does; `scripts/build.sh` only where there are scripts.
    return path.startswith("references/") or files.kind_at(join(folder, path.partition("/")[0])) == "folder"


def _pages(folder: str, known: Collection[str]) -> Iterator[Note]:
    """What is wrong with the links of the pages that SKILL.md names."""
    pages = [path for path in known if path.lower().endswith((".md", ".mdx", ".markdown")) and path != "SKILL.md"]
    if len(pages) > CHECKED_PAGES:
        yield _here("check-limit", f"{len(pages)} pages are named; the first {CHECKED_PAGES} were read", 1, 1)
    for path in pages[:CHECKED_PAGES]:
        text = _text(folder, path)
        if text is None:
            continue
        links = [*islice(links_in(prose_lines(text)), CHECKED_MENTIONS)]
        yield from _mentions_left(path, links)
        for link in links:
            yield from _onward(folder, path, link, known)


def _onward(folder: str, page: str, link: Mention, known: Collection[str]) -> Iterator[Note]:
    beside = normpath(join(page.rpartition("/")[0], link.target))
    # Some authors count from the page, some from the skill's folder.
    target = next((path for path in (beside, normpath(link.target)) if _exists(folder, path)), beside)
    if _is_outside(target):
        return
    if not _exists(folder, target):
        message = f"{link.target} does not exist"
        yield Note(page, Finding("reference-missing", message, link.line, link.column))
    elif target not in known and target != "SKILL.md" and target.lower().endswith(".md"):
        message = f"{target} is named here only; an agent that reads SKILL.md does not learn of it: name it there too"
        yield Note(page, Finding("reference-deep", message, link.line, link.column))


def _text(folder: str, path: str) -> str | None:
    try:
        with files.Folder(folder) as skill:
            return (
                skill.read(path.split("/"), limit=RESOURCE_BYTES).data.decode("utf-8", "replace").replace("\r\n", "\n")
            )
    except (OSError, ValueError):
        # Missing is reported where it is named; what is too large, no file or no path (`%00`) is not a page.
        return None


# Scripts ------------------------------------------------------------------------------------------

_RUN_BY = {
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


def _scripts(page: Page) -> Iterator[Note]:
    try:
        with files.Folder(page.folder) as skill:
            names = skill.children(["scripts"])
            if len(names) > CHECKED_SCRIPTS:
                message = f"{len(names)} entries in scripts/; the first {CHECKED_SCRIPTS} were looked at"
                yield _here("check-limit", message, 1, 1)
            for name in names[:CHECKED_SCRIPTS]:
                yield from _script(skill, page, name)
    except OSError:
        # There is no folder of scripts, or none that may be read.
        return


def _script(skill: files.Folder, page: Page, name: str) -> Iterator[Note]:
    extension = "." + name.rpartition(".")[2] if "." in name else ""
    if name.endswith("/") or extension not in _RUN_BY:
        return
    path = f"scripts/{name}"
    try:
        data = skill.read(["scripts", name], limit=RESOURCE_BYTES).data
        runnable = bool(skill.mode(["scripts", name]) & 0o111)
    except OSError:
        return
    if data.startswith(b"#!"):
        if not runnable:
            message = f"it has a first line that says what runs it, but may not be run; chmod +x {path}"
            yield Note(path, Finding("script-run-bit", message, 1, 1))
    elif runnable or _is_run(extension, data, path.encode() in page.body):
        message = f"no line `#!` says what runs it; begin with {_RUN_BY[extension]}"
        yield Note(path, Finding("script-shebang", message, 1, 1))


def _is_run(extension: str, data: bytes, is_named: bool) -> bool:
    """Whether a file is meant to be run and not to be imported by one that is."""
    return bool(_MAIN.search(data)) if extension == ".py" else is_named


ADVISERS: tuple[Adviser, ...] = (_description, _body, _size, _references, _scripts)
