"""A skill's text and folder to findings: what the standard recommends, and what would fail an agent at work."""

import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from posixpath import join, normpath
from typing import NamedTuple

from skillshelf.catalog.document import Document
from skillshelf.catalog.document import body as body_of
from skillshelf.catalog.rules import description_of
from skillshelf.core import files
from skillshelf.core.limits import CHECKED_MENTIONS, CHECKED_PAGES, CHECKED_SCRIPTS, RESOURCE_BYTES
from skillshelf.core.values import Finding
from skillshelf.lint.mentions import Mention, files_named, links_in, prose_lines

__all__ = ["Note", "Page", "advise", "page_of"]

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


class _Named(NamedTuple):
    """A file that a page names: its path inside the skill, and where it is named."""

    path: str
    mention: Mention


def _references(page: Page) -> Iterator[Note]:
    links = [*islice(links_in(page.lines), CHECKED_MENTIONS)]
    words = [*islice(files_named(page.lines), CHECKED_MENTIONS)]
    linked = [_Named(normpath(link.target), link) for link in links]
    told = [_Named(normpath(word.target), word) for word in words]
    yield from _mentions_left("SKILL.md", links, words)
    for named in linked:
        place = (page.start + named.mention.line - 1, named.mention.column)
        if _is_outside(named.path):
            message = f"{named.mention.target} lies outside the skill and does not travel with it"
            yield _here("reference-outside", message, *place)
        elif not _exists(page.folder, named.path):
            yield _here("reference-missing", f"{named.mention.target} does not exist", *place)
    for named in told:
        if _is_ours(page.folder, named.path) and not _exists(page.folder, named.path):
            place = (page.start + named.mention.line - 1, named.mention.column)
            yield _here("reference-missing", f"{named.path} does not exist", *place)
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
