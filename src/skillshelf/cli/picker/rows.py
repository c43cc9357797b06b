"""Convert a catalog into the picker's rows, select rows, and describe one; nothing here draws."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from skillshelf.catalog.load import omissions
from skillshelf.config.system_policy import is_kept_untrusted
from skillshelf.core.console import PathDisplay
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, plural, shorten, visible, width
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic, Hidden, Shadowed
from skillshelf.errors import SkillError

if TYPE_CHECKING:
    from skillshelf.hosts.stages import Verdict
    from skillshelf.shelf import Shelf

__all__ = [
    "HELP",
    "SHOWN",
    "Column",
    "MatchingRows",
    "RowFilter",
    "ScreenLine",
    "Shown",
    "SkillRow",
    "State",
    "cells_of",
    "columns_for",
    "details",
    "host_lines",
    "preview",
    "rows_of",
    "select_rows",
    "wrapped",
]

State = Literal["on", "off", "untrusted", "denied", "changed", "hidden", "error", "shadowed", "filtered"]
Shown = Literal["skills", "all", "problems"]
SHOWN: tuple[Shown, ...] = ("skills", "problems", "all")
Tone = Literal["plain", "quiet", "strong", "good", "bad", "doubt"]

_STATES: Mapping[Hidden | None, State] = {
    None: "on",
    "disabled": "off",
    "untrusted": "untrusted",
    "denied": "denied",
    "changed": "changed",
    "disable-model-invocation": "hidden",
}

TONES: Mapping[State, Tone] = {
    "on": "good",
    "off": "quiet",
    "untrusted": "doubt",
    "denied": "bad",
    "changed": "bad",
    "hidden": "quiet",
    "error": "bad",
    "shadowed": "doubt",
    "filtered": "doubt",
}


class SkillRow(NamedTuple):
    """One line of the list: a skill of the catalog, or a file that is not in the catalog if `skill` is None.

    `text` is the description, or the reason why the file is not in the catalog.
    """

    name: str
    scope: str
    root: str
    state: State
    text: str
    path: str
    skill: CatalogSkill | None = None
    warnings: tuple[Diagnostic, ...] = ()
    has_namesake: bool = False

    @property
    def identifier(self) -> str:
        """The name if it identifies the skill for the other commands, else the path of its SKILL.md."""
        is_plain = self.name.isprintable() and self.name == self.name.strip() and not self.name.startswith(("-", "."))
        return self.name if is_plain and "/" not in self.name and not self.has_namesake else self.path

    @property
    def folder(self) -> str:
        """The folder of the skill."""
        return os.path.dirname(self.path) if os.path.basename(self.path).lower() == "skill.md" else self.path


class RowFilter(NamedTuple):
    """The rows that the person wants to see: a query and filters."""

    query: str = ""
    scope: str | None = None
    shown: Shown = "skills"
    host: str | None = None


class MatchingRows(NamedTuple):
    """The rows that match a filter, of `total` rows; `more` means that the search stopped at its limit.

    `ranked` is False where only names were compared, because the index was not ready; `weak` means that no row clearly
    fits the query. `notes` are those of the search.
    """

    row_filter: RowFilter
    rows: Sequence[SkillRow]
    total: int
    more: bool = False
    ranked: bool = True
    weak: bool = False
    notes: tuple[str, ...] = ()


# Rows ---------------------------------------------------------------------------------------------


def rows_of(catalog: Catalog, where: PathDisplay) -> list[SkillRow]:
    """Return every skill of a catalog in its order, then the files that are not in it, by path."""
    warned: dict[str, list[Diagnostic]] = {}
    for warning in catalog.warnings:
        warned.setdefault(warning.path, []).append(warning)
    roots = [where.short(root.path) for root in catalog.roots]
    names = Counter(skill.name for skill in catalog.skills)
    skills = [
        SkillRow(
            skill.name,
            skill.scope,
            roots[skill.root],
            _STATES[skill.hidden],
            fold(skill.description),
            skill.path,
            skill,
            tuple(warned.get(skill.path, ())),
            names[skill.name] > 1,
        )
        for skill in catalog.skills
    ]
    return [*skills, *sorted(_missing(catalog, where), key=lambda row: row.path)]


def _missing(catalog: Catalog, where: PathDisplay) -> Iterator[SkillRow]:
    def row(state: State, path: str, text: str, name: str = "") -> SkillRow:
        inside = [root for root in catalog.roots if path == root.path or path.startswith(root.path.rstrip("/") + "/")]
        root = max(inside, key=lambda root: len(root.path), default=None)
        bare = SkillRow("", root.scope if root else "-", where.short(root.path) if root else "-", state, text, path)
        return bare._replace(name=name or os.path.basename(bare.folder))

    for name, path, entry in omissions(catalog):
        if isinstance(entry, Diagnostic):
            at = f" (line {entry.line})" if entry.line else ""
            yield row("error", path, f"{entry.rule}: {fold(entry.message)}{at}", name)
        elif isinstance(entry, Shadowed):
            behind = ("the same file as " if entry.same_file else "behind ") + where.short(entry.by)
            yield row("shadowed", path, behind, name)
        else:
            yield row("filtered", path, _FILTERED[entry.reason], name)
    listed = {skill.path for skill in catalog.skills}
    known = listed | {entry.path for entries in (catalog.errors, catalog.shadowed) for entry in entries}
    for warning in catalog.warnings:
        if warning.path not in known:
            yield row("filtered", warning.path, f"{warning.rule}: {fold(warning.message)}")


_FILTERED = {
    "ignored": "ignored by configuration (skills.ignored)",
    "not-included": "not included by configuration (skills.include)",
    "source-off": "its source is disabled by configuration",
    "inside-skill": "it is inside another skill",
    "too-deep": "it is deeper than this profile searches",
    "limit": "a limit of this profile was reached first",
}


# Selection ----------------------------------------------------------------------------------------


def select_rows(
    shelf: "Shelf",
    rows: Sequence[SkillRow],
    row_filter: RowFilter,
    *,
    rank: bool = True,
) -> MatchingRows:
    """Return the rows that match a filter: all in their order, or the results of a search, best first.

    After the results come rows whose name contains the query, because a search knows only whole words. Without `rank`
    there are only those.
    """
    shown = [row for row in rows if _is_shown(row, row_filter.shown)]
    left = [row for row in shown if row_filter.scope in (None, row.scope)]
    query = row_filter.query.strip()
    if not query:
        return MatchingRows(row_filter, left, len(shown))
    best: list[SkillRow] = []
    more = weak = False
    notes: tuple[str, ...] = ()
    if rank:
        by_path = {row.path: row for row in left if row.skill is not None}
        report = shelf.search(
            query, limit=shelf.settings.max_limit, keep=lambda skill: skill.path in by_path, every=True
        )
        best, more = [by_path[result.skill.path] for result in report.results], report.truncated
        weak, notes = report.weak and bool(best), report.notes
    found = {row.path for row in best}
    rest = [row for row in left if row.path not in found and _contains(row, query.casefold())]
    return MatchingRows(row_filter, [*best, *rest], len(shown), more, rank, weak and not rest, notes)


def _is_shown(row: SkillRow, shown: Shown) -> bool:
    problem = row.skill is None or bool(row.warnings)
    return {"skills": row.skill is not None, "all": True, "problems": problem}[shown]


def _contains(row: SkillRow, query: str) -> bool:
    text = row.name if row.skill is not None else f"{row.name} {row.text} {row.path}"
    return query in text.casefold()


# Columns ------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of the list, with its width in cells."""

    title: str
    cells: int


_WIDTHS = (
    # From this width on: the widths of the columns; the column with 0 takes the rest.
    (100, {"NAME": 30, "SCOPE": 8, "ROOT": 20, "STATE": 10, "DESCRIPTION": 0}),
    (60, {"NAME": 0, "SCOPE": 8, "ROOT": 22, "STATE": 10}),
    (46, {"NAME": 0, "SCOPE": 8, "STATE": 10}),
    (0, {"NAME": 0, "STATE": 10}),
)


def columns_for(total: int) -> list[Column]:
    """Return the columns for a list of this width; a blank precedes each."""
    widths = next(widths for least, widths in _WIDTHS if total >= least)
    left = max(1, total - sum(widths.values()) - len(widths))
    return [Column(title, cells or left) for title, cells in widths.items()]


def cells_of(row: SkillRow, columns: Sequence[Column]) -> list[str]:
    """Return the text of each column, cut to its width."""
    texts = {"NAME": row.name, "SCOPE": row.scope, "ROOT": row.root, "STATE": row.state, "DESCRIPTION": row.text}
    return [shorten(visible(texts[column.title]), column.cells) for column in columns]


# Details ------------------------------------------------------------------------------------------


class ScreenLine(NamedTuple):
    """A line of text that is safe to draw; `hang` is the indentation of its continuation lines."""

    text: str
    tone: Tone = "plain"
    hang: int = 0


_HIDDEN: Mapping[State, str] = {
    "off": "you disabled it; models do not see it",
    "untrusted": "models do not see it; to allow it, run: {trust}",
    "denied": "a rule of your configuration denies it (permissions.deny)",
    "changed": "its files are not those that its lock names; to settle it: skillshelf verify",
    "hidden": "only users can call it: disable-model-invocation is set",
}


def details(row: SkillRow, where: PathDisplay, trust: str = "skillshelf trust") -> list[ScreenLine]:
    """Return the description, the path and the problems of a row; `trust` is the command that trusts its project."""
    lines = [_labelled("about", row.text)] if row.skill is not None else []
    lines.append(_labelled("path", where.short(row.path)))
    if row.skill is not None and row.skill.tree is not None:
        from_source = f"{visible(row.skill.origin)}, " if row.skill.origin else ""
        lines.append(_labelled("origin", f"{from_source}tree {row.skill.tree[7:19]}"))
    if row.skill is None:
        lines.append(_labelled(row.state, row.text, TONES[row.state]))
    elif row.state in _HIDDEN:
        said = _hidden_text(row.state, row.skill.hidden_by, trust)
        lines.append(_labelled("state", f"{row.state}: {said}", TONES[row.state]))
    for warning in row.warnings:
        at = f" (line {warning.line})" if warning.line else ""
        lines.append(_labelled("warning", f"{warning.rule}: {fold(warning.message)}{at}", "doubt"))
    return lines


def _hidden_text(state: State, by: str | None, trust: str) -> str:
    """Return why models do not see a skill, and what allows it, if the user can."""
    if state == "untrusted" and is_kept_untrusted(by):
        return f"the system policy trusts no folder there ({by})"
    if state == "denied" and by:
        return f"models do not see it because of {by}"
    return _HIDDEN[state].replace("{trust}", trust)


def host_lines(verdicts: "Sequence[Verdict]") -> list[ScreenLine]:
    """Return the hosts that give a skill to their models, those that do not with the reason, and the unknown ones."""
    unseen: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.visible is False:
            unseen.setdefault(verdict.verdict, []).append(verdict.host)
    lines: Sequence[tuple[str, str, Tone]] = (
        ("seen by", ", ".join(verdict.host for verdict in verdicts if verdict.visible), "good"),
        ("not by", "; ".join(f"{', '.join(hosts)}: {reason}" for reason, hosts in unseen.items()), "doubt"),
        ("unknown", ", ".join(verdict.host for verdict in verdicts if verdict.visible is None), "quiet"),
    )
    return [_labelled(label, text, tone) for label, text, tone in lines if text]


def _labelled(label: str, text: str, tone: Tone = "plain") -> ScreenLine:
    return ScreenLine(f"{label:<8} {visible(text)}", tone, hang=9)


def preview(shelf: "Shelf", row: SkillRow) -> list[ScreenLine]:
    """Return the text that a model would get, below a headline. It is not a load: no event is recorded."""
    if row.skill is None:
        return []
    try:
        with shelf.session(person=True) as session:
            text = session.load(path=row.path).text
    except (SkillError, OSError) as error:
        return [ScreenLine(f"The model would get an error: {visible(str(error))}", "bad")]
    size = plural(len(text), "character")
    lines = text.replace("\t", "    ").removesuffix("\n").split("\n")
    return [ScreenLine(f"The model would get {size}:", "strong"), *(ScreenLine(visible(line)) for line in lines)]


def wrapped(lines: Sequence[ScreenLine], cells: int) -> list[ScreenLine]:
    """Return the lines wrapped to a width, at blanks if possible; continuation lines are indented."""
    cells = max(8, cells)
    return [line._replace(text=piece) for line in lines for piece in _pieces(line.text, cells, line.hang)]


def _pieces(text: str, cells: int, hang: int) -> Iterator[str]:
    hang = hang if hang < cells // 2 else 0
    while len(text) > cells or width(text) > cells:
        fitting = text[:cells]
        while width(fitting) > cells:
            fitting = fitting[:-1]
        end = text.rfind(" ", 0, len(fitting) + 1) + 1
        # A first word that is longer than the line, or a deep indentation, is cut at the end of the line.
        end = end if text[hang:end].strip() else max(1, len(fitting))
        yield text[:end].rstrip()
        text = " " * hang + text[end:]
    yield text


# Help ---------------------------------------------------------------------------------------------

HELP = """\
Type to search, as with skillshelf search; an empty box lists every skill.

↑ ↓  PgUp PgDn    move; in the preview, scroll
Enter             pick the skill and leave
Esc, Ctrl-C       leave without picking one
Tab, Shift-Tab    search box, list, preview

In the list and in the preview press the letter; while you type, hold Ctrl.

T, Space          disable the skill, or enable it again, in your configuration
S                 show only one scope
O                 show the skills that one host gives to its model
P                 show only problems; skills and problems; skills
/                 back to the search box
?                 this help (while you type: F1)

STATE
on         models see it
off        you disabled it
untrusted  hidden from models until you trust its folder
denied     denied by a rule, yours or of the system policy
hidden     only users can call it
error      invalid, and not in the catalog
shadowed   another skill has the same name, or is the same file
filtered   excluded by a rule of the profile or the configuration
"""
