"""Lay out search results: where the terms match, and which line of a text shows them best."""

import os
from collections.abc import Callable, Set

from skillshelf.core.console import PathDisplay, Screen
from skillshelf.core.text import fold, shorten, visible, width
from skillshelf.core.values import CatalogSkill
from skillshelf.search.query import SearchReport, SearchResult, excerpt, places, terms_in
from skillshelf.search.rank import analyzer

__all__ = ["nothing_found", "search_view"]


_NAME_CELLS = 40
_DESCRIPTION_LINES = 2
_INDENT = 4
_NARROWEST = 30
_COPIES_SHOWN = 4
_IN_TEXT = "in its text: "


def search_view(
    report: SearchReport, screen: Screen, body_of: Callable[[CatalogSkill], str], where: PathDisplay | None = None
) -> str:
    """Return the results in order, each with a line of its body if that has terms which its description lacks.

    With `where` each has its folder, too.
    """
    head = ("#", "NAME", "SCORE", "REASON", "SCOPE")
    rows = [
        (str(rank), shorten(result.skill.name, _NAME_CELLS), f"{result.score:.1f}", result.reason, result.skill.scope)
        for rank, result in enumerate(report.results, 1)
    ]
    if screen.columns is None:
        more = [[where.short(result.skill.dir)] if where else [] for result in report.results]
        whole = [
            (*row, *folder, fold(result.skill.description) + (f" ({result.and_copies})" if result.copies else ""))
            for row, folder, result in zip(rows, more, report.results, strict=True)
        ]
        heads = (*head, *(["FOLDER"] if where else []), "DESCRIPTION")
        return "\n".join(screen.table([heads, *whole], (None,) * len(heads))) + "\n"
    terms = report.terms or frozenset(analyzer().query_terms(report.query))
    first, *lines = screen.table([head, *rows], ("dim", "bold", None, "dim", "dim"))
    blocks = [
        "\n".join([line, *_folder_line(result, where), *_below(result, terms, screen, body_of, where)])
        for line, result in zip(lines, report.results, strict=True)
    ]
    cut = [screen.paint(f"Showing the first {report.count}; use --limit N to see more.", "dim")]
    # A larger limit shows no more of what does not fit.
    return "\n".join([first, *blocks, *(["", *cut] if report.truncated and not report.weak else [])]) + "\n"


def _folder_line(result: SearchResult, where: PathDisplay | None) -> list[str]:
    return [" " * _INDENT + visible(f"in {where.short(result.skill.dir)}")] if where else []


def _below(
    result: SearchResult,
    terms: Set[str],
    screen: Screen,
    body_of: Callable[[CatalogSkill], str],
    where: PathDisplay | None,
) -> list[str]:
    description = visible(fold(result.skill.description))
    room = max(_NARROWEST, (screen.columns or 80) - _INDENT)
    texts = _wrapped(description, room)
    missing = terms - terms_in(" ".join([result.skill.name, *texts]), terms)
    if missing and (line := excerpt(f"{description}\n{body_of(result.skill)}", missing)):
        texts.append(_IN_TEXT + _around(visible(fold(line)), missing, room - len(_IN_TEXT)))
    # The first says which words matched, which are highlighted here.
    texts += [shorten(visible(fold(why)), room) for why in result.why[1:]]
    if result.copies:
        texts.append(shorten(_about_copies(result, where), room))
    if result.skill.hidden:
        by = f" ({visible(result.skill.hidden_by)})" if result.skill.hidden_by else ""
        texts.append(f"hidden from models: {result.skill.hidden}{by}")
    return [" " * _INDENT + _marked(text, terms, screen) for text in texts]


def _about_copies(result: SearchResult, where: PathDisplay | None) -> str:
    """Return the number of copies of a result, and where they lie if that is asked."""
    folders = [os.path.dirname(path) for path in result.copies] if where else []
    shown = [where.short(folder) for folder in folders[:_COPIES_SHOWN]] if where else []
    rest = ", …" if len(folders) > len(shown) else ""
    return visible(result.and_copies + (f": {', '.join(shown)}{rest}" if shown else ""))


def _around(line: str, terms: Set[str], cells: int) -> str:
    """Cut a line to a width so that the first of the terms stays in it."""
    # An invisible character between two words may have been escaped into one of them, so a term may be missing.
    start = next((start for start, _ in places(line, terms)), 0)
    if width(line) <= cells or width(line[:start]) < cells // 2:
        return shorten(line, cells)
    before = line.rfind(" ", 0, max(0, start - cells // 4)) + 1 or start
    return shorten(f"…{line[before:]}", cells)


def _wrapped(text: str, cells: int) -> list[str]:
    """Return the first lines of a text; a text without blanks, such as Chinese, is divided anywhere."""
    lines: list[str] = []
    while text and len(lines) < _DESCRIPTION_LINES:
        end = len(shorten(text, cells + 1)) - 1 if width(text) > cells else len(text)
        if end < len(text) and (blank := text.rfind(" ", cells // 2, end + 1)) > 0:
            end = blank
        lines.append(text[:end].rstrip())
        text = text[end:].lstrip()
    if text:
        lines[-1] = shorten(lines[-1], cells - 2) + (" …" if width(lines[-1]) <= cells - 2 else "")
    return lines


def _marked(text: str, terms: Set[str], screen: Screen) -> str:
    parts, done = [], 0
    for start, end in places(text, terms):
        parts += [text[done:start], screen.paint(text[start:end], "yellow")]
        done = end
    return "".join([*parts, text[done:]])


def nothing_found(report: SearchReport, skills: int, near: list[str], scope: str | None, *, options: str = "") -> str:
    """Return one line about a search without results: what was searched, and what to try with which `options`."""
    if not report.query.strip():
        return "the query is empty; describe in a few words what the skill should do"
    where = f" of scope {scope}" if scope else ""
    if not skills:
        return (
            f"there are no skills{where} here (run `skillshelf list --all{options}` to see which folders were searched)"
        )
    query = visible(shorten(report.query.strip(), 60))
    result = f"no skill{where} fits '{query}' ({skills} searched)"
    return (
        f"{result}; did you mean {', '.join(near)}?" if near else f"{result}; skillshelf list{options} shows them all"
    )
