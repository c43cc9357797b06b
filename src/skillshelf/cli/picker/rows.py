"""A catalog to the rows of the picker, and a row to what is said about it; nothing here draws."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from skillshelf.catalog.load import omissions
from skillshelf.core.console import PathDisplay
from skillshelf.core.text import fold, plural, shorten, visible, width
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic, Hidden, Shadowed
from skillshelf.errors import SkillError

if TYPE_CHECKING:
    from skillshelf.hosts.stages import Verdict
    from skillshelf.shelf import Shelf

__all__ = [
    "COLUMNS",
    "HELP",
    "SHOWN",
    "Column",
    "PickerAnswer",
    "RowFilter",
    "ScreenLine",
    "Sees",
    "Shown",
    "SkillRow",
    "State",
    "answer",
    "cells_of",
    "columns_for",
    "details",
    "hosts_of",
    "preview",
    "rows_of",
    "wrapped",
]

State = Literal["on", "off", "untrusted", "denied", "hidden", "error", "shadowed", "filtered"]
Shown = Literal["skills", "all", "problems"]
SHOWN: tuple[Shown, ...] = ("skills", "all", "problems")
Tone = Literal["plain", "quiet", "strong", "good", "bad", "doubt"]

_STATES: Mapping[Hidden | None, State] = {
    None: "on",
    "disabled": "off",
    "untrusted": "untrusted",
    "denied": "denied",
    "disable-model-invocation": "hidden",
}

TONES: Mapping[State, Tone] = {
    "on": "good",
    "off": "quiet",
    "untrusted": "doubt",
    "denied": "bad",
    "hidden": "quiet",
    "error": "bad",
    "shadowed": "doubt",
    "filtered": "doubt",
}


class SkillRow(NamedTuple):
    """One line of the list: a skill of the catalog, or with `skill` None something that is not in it.

    `text` is the description, or why it is not in the catalog; `notes` are the catalog's warnings about it.
    """

    name: str
    scope: str
    root: str
    state: State
    text: str
    path: str
    skill: CatalogSkill | None = None
    notes: tuple[Diagnostic, ...] = ()

    @property
    def folder(self) -> str:
        """The folder of the skill."""
        return os.path.dirname(self.path) if os.path.basename(self.path).lower() == "skill.md" else self.path


class RowFilter(NamedTuple):
    """What the person wants to see: a query and filters."""

    query: str = ""
    scope: str | None = None
    shown: Shown = "skills"
    host: str | None = None


Sees = Callable[[SkillRow], bool]
"""Whether the host that was asked tells its model about a row."""


class PickerAnswer(NamedTuple):
    """The rows that fit a look, and of how many; `more` says that the search stopped at its limit.

    `ranked` is False where only names were compared, because the index is not there yet.
    """

    look: RowFilter
    rows: Sequence[SkillRow]
    total: int
    more: bool = False
    ranked: bool = True


# Rows ---------------------------------------------------------------------------------------------


def rows_of(catalog: Catalog, where: PathDisplay) -> list[SkillRow]:
    """Every skill of a catalog in its order, then what is not in it, by path."""
    warned: dict[str, list[Diagnostic]] = {}
    for warning in catalog.warnings:
        warned.setdefault(warning.path, []).append(warning)
    roots = [where.short(root.path) for root in catalog.roots]
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
        )
        for skill in catalog.skills
    ]
    return [*skills, *sorted(_left_out(catalog, where), key=lambda row: row.path)]


def _left_out(catalog: Catalog, where: PathDisplay) -> Iterator[SkillRow]:
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
    known = listed | {entry.path for part in (catalog.errors, catalog.shadowed) for entry in part}
    for warning in catalog.warnings:
        if warning.path not in known:
            yield row("filtered", warning.path, f"{warning.rule}: {fold(warning.message)}")


_FILTERED = {
    "ignored": "ignored by configuration (skills.ignored)",
    "not-included": "not among the skills that configuration includes (skills.include)",
    "source-off": "its source is switched off by configuration",
    "inside-skill": "it lies inside another skill",
    "too-deep": "it lies deeper than this profile looks",
    "limit": "a limit of this profile was reached before it",
}


# What fits ----------------------------------------------------------------------------------------


def answer(
    shelf: "Shelf", rows: Sequence[SkillRow], look: RowFilter, *, sees: Sees | None = None, rank: bool = True
) -> PickerAnswer:
    """The rows that fit: all in their order, or for a query those the search finds, best first.

    After them come rows whose name holds what was typed so far: a search knows words, not halves of them. Without
    `rank` these are all.
    """
    shown = [row for row in rows if _is_shown(row, look.shown)]
    fitting = [row for row in shown if look.scope in (None, row.scope) and (sees is None or sees(row))]
    query = look.query.strip()
    if not query:
        return PickerAnswer(look, fitting, len(shown))
    best, more = _ranked(shelf, query, fitting) if rank else ([], False)
    found = {row.path for row in best}
    typed = query.casefold()
    rest = [row for row in fitting if row.path not in found and _holds(row, typed)]
    return PickerAnswer(look, [*best, *rest], len(shown), more, rank)


def _ranked(shelf: "Shelf", query: str, rows: Sequence[SkillRow]) -> tuple[list[SkillRow], bool]:
    by_path = {row.path: row for row in rows if row.skill is not None}
    report = shelf.search(query, limit=shelf.settings.max_limit, keep=lambda skill: skill.path in by_path)
    return [by_path[result.skill.path] for result in report.results], report.truncated


def _is_shown(row: SkillRow, shown: Shown) -> bool:
    problem = row.skill is None or bool(row.notes)
    return {"skills": row.skill is not None, "all": True, "problems": problem}[shown]


def _holds(row: SkillRow, typed: str) -> bool:
    inside = row.name if row.skill is not None else f"{row.name} {row.text} {row.path}"
    return typed in inside.casefold()


# Columns ------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column: its title, its width in cells, and what it shows of a row."""

    title: str
    cells: int
    value: Callable[[SkillRow], str]


COLUMNS: Mapping[str, Callable[[SkillRow], str]] = {
    "NAME": lambda row: row.name,
    "SCOPE": lambda row: row.scope,
    "ROOT": lambda row: row.root,
    "STATE": lambda row: row.state,
    "DESCRIPTION": lambda row: row.text,
}

_WIDTHS = (
    # From this many cells on: the widths of the columns, of which 0 takes what is left.
    (100, {"NAME": 30, "SCOPE": 8, "ROOT": 20, "STATE": 10, "DESCRIPTION": 0}),
    (60, {"NAME": 0, "SCOPE": 8, "ROOT": 22, "STATE": 10}),
    (46, {"NAME": 0, "SCOPE": 8, "STATE": 10}),
    (0, {"NAME": 0, "STATE": 10}),
)


def columns_for(cells: int) -> list[Column]:
    """The columns that a list of this width has room for; a blank stands before each."""
    widths = next(widths for least, widths in _WIDTHS if cells >= least)
    left = max(1, cells - sum(widths.values()) - len(widths))
    return [Column(title, wanted or left, COLUMNS[title]) for title, wanted in widths.items()]


def cells_of(row: SkillRow, columns: Sequence[Column]) -> list[str]:
    """The text of each column, cut to its width."""
    return [shorten(visible(column.value(row)), column.cells) for column in columns]


# What is said about a row -------------------------------------------------------------------------


class ScreenLine(NamedTuple):
    """A line of text that is safe to draw, how it is meant, and how far in it goes on when it is broken."""

    text: str
    tone: Tone = "plain"
    hang: int = 0


_HIDDEN: Mapping[State, str] = {
    "off": "you disabled it; models are not told of it",
    "untrusted": "models are not told of it; to allow it: skillshelf trust",
    "denied": "a rule of your configuration denies it (permissions.deny)",
    "hidden": "only people can call it: disable-model-invocation is set",
}


def details(row: SkillRow, where: PathDisplay) -> list[ScreenLine]:
    """Where a row comes from and what is the matter with it."""
    lines = [_labelled("about", row.text)] if row.skill is not None else []
    lines.append(_labelled("path", where.short(row.path)))
    if row.skill is None:
        lines.append(_labelled(row.state, row.text, TONES[row.state]))
    elif row.state in _HIDDEN:
        lines.append(_labelled("state", f"{row.state}: {_HIDDEN[row.state]}", TONES[row.state]))
    for note in row.notes:
        at = f" (line {note.line})" if note.line else ""
        lines.append(_labelled("warns", f"{note.rule}: {fold(note.message)}{at}", "doubt"))
    return lines


def hosts_of(verdicts: "Sequence[Verdict]") -> list[ScreenLine]:
    """Which hosts tell their models about a row, which do not and why, and of which that is not known."""
    unseen: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.visible is False:
            unseen.setdefault(verdict.verdict, []).append(verdict.host)
    parts: Sequence[tuple[str, str, Tone]] = (
        ("seen by", ", ".join(verdict.host for verdict in verdicts if verdict.visible), "good"),
        ("not by", "; ".join(f"{', '.join(hosts)}: {reason}" for reason, hosts in unseen.items()), "doubt"),
        ("unknown", ", ".join(verdict.host for verdict in verdicts if verdict.visible is None), "quiet"),
    )
    return [_labelled(label, text, tone) for label, text, tone in parts if text]


def _labelled(label: str, text: str, tone: Tone = "plain") -> ScreenLine:
    return ScreenLine(f"{label:<8} {visible(text)}", tone, hang=9)


def preview(shelf: "Shelf", row: SkillRow) -> list[ScreenLine]:
    """What a model would get of the skill, under a headline. No load: nobody is told, nothing is recorded."""
    if row.skill is None:
        return []
    try:
        with shelf.session() as session:
            text = session.load(path=row.path).text
    except (SkillError, OSError) as error:
        return [ScreenLine(f"The model would get an error: {visible(str(error))}", "bad")]
    size = plural(len(text), "character")
    lines = text.replace("\t", "    ").removesuffix("\n").split("\n")
    return [ScreenLine(f"The model would get {size}:", "strong"), *(ScreenLine(visible(line)) for line in lines)]


def wrapped(lines: Sequence[ScreenLine], cells: int) -> list[ScreenLine]:
    """The lines broken to a width, at blanks where there are some; what is broken off stands below its column."""
    cells = max(8, cells)
    return [line._replace(text=piece) for line in lines for piece in _pieces(line.text, cells, line.hang)]


def _pieces(text: str, cells: int, hang: int) -> Iterator[str]:
    hang = hang if hang < cells // 2 else 0
    while len(text) > cells or width(text) > cells:
        fitting = text[:cells]
        while width(fitting) > cells:
            fitting = fitting[:-1]
        end = text.rfind(" ", 0, len(fitting) + 1) + 1
        # A first word that is longer than the line, or a deep indent, is cut where the line ends.
        end = end if text[hang:end].strip() else max(1, len(fitting))
        yield text[:end].rstrip()
        text = " " * hang + text[end:]
    yield text


# The page of help ---------------------------------------------------------------------------------

HELP = """\
Typing searches, as skillshelf search does; an empty box lists everything.

↑ ↓  PgUp PgDn    move; in the preview, scroll
Enter             take the skill and leave
Esc, Ctrl-C       leave without one
Tab, Shift-Tab    search box, list, preview

In the list and in the preview a letter is enough; while you type, hold Ctrl.

T, Space          disable the skill, or enable it again; your configuration keeps it
S                 only one scope
O                 only what one host tells its model
P                 skills; with them what is not in the catalog; only problems
/                 back to the search box
?                 this text (while you type: F1)

STATE
on         models are told of it
off        you disabled it
untrusted  held back from models until you trust its folder
denied     a rule of your configuration denies it
hidden     only people can call it
error      broken, and not in the catalog
shadowed   another skill has its name, or is the same file
filtered   left out by a rule of the profile or the configuration
"""
