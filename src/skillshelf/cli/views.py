"""Lay out catalogs, tools, profiles and errors as text for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.packed import listed_cells
from skillshelf.config.profile import Profile, profile_to_dict
from skillshelf.core.console import PathDisplay, Screen, Style
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, plural, shorten, visible
from skillshelf.core.values import Catalog, Diagnostic, Filtered
from skillshelf.errors import (
    AmbiguousSkill,
    ResourceNotFound,
    SkillDirectoryNotFound,
    SkillError,
    SkillNotFound,
    SkillNotUsable,
    SourceNotFound,
)

if TYPE_CHECKING:
    from skillshelf.session.tools import Tool

__all__ = ["ListOptions", "error_line", "list_view", "profile_view", "profiles_view", "tools_view"]


_NAME_CELLS = 64

# The list -----------------------------------------------------------------------------------------


class ListOptions(NamedTuple):
    """The contents of a list: with `everything` also what is not in the catalog, with the reasons.

    `scope` is the one that was asked for, `shared` the options that commands in hints need to see the same catalog,
    `trust` the command that trusts the project.
    """

    everything: bool = False
    scope: str | None = None
    shared: str = ""
    trust: str = "skillshelf trust"


def list_view(catalog: Catalog, where: PathDisplay, screen: Screen, options: ListOptions) -> str:
    """Return the catalog as a table, and what is not in it as far as the options say."""
    cells = listed_cells(catalog.skills)
    lines = _skills_table(cells, screen) if cells else [*_nothing(catalog, where, screen)]
    if options.everything:
        lines += [*_left_out(catalog, where, screen)]
    lines += ["", _count_line(catalog, cells, screen)]
    lines += [line for line in _notes(catalog, cells, screen, options) if line]
    return "\n".join(lines) + "\n"


def _skills_table(cells: Sequence[Sequence[str]], screen: Screen) -> list[str]:
    # A name is shortened if it would push the other columns off the screen.
    if any(hidden for _, _, hidden, _ in cells):
        head = ("NAME", "SCOPE", "HIDDEN", "DESCRIPTION")
        rows = [(shorten(name, _NAME_CELLS), scope, hidden or "-", text) for name, scope, hidden, text in cells]
        return screen.table([head, *rows], ("bold", "dim", "yellow", None))
    rows3 = [(shorten(name, _NAME_CELLS), scope, text) for name, scope, _, text in cells]
    return screen.table([("NAME", "SCOPE", "DESCRIPTION"), *rows3], ("bold", "dim", None))


def _nothing(catalog: Catalog, where: PathDisplay, screen: Screen) -> Iterator[str]:
    if any(root.skills for root in catalog.roots):
        yield "No skill has that scope."
        return
    if off := next((warning for warning in catalog.warnings if warning.rule == "skills-disabled"), None):
        yield f"{visible(where.short(off.path))}: {off.message}"
        return
    yield "No skills here. Folders searched:"
    rows = [
        (where.short(root.path), root.scope, "no skill" if root.exists else "does not exist") for root in catalog.roots
    ]
    yield from screen.table(rows, (None, "dim", "dim"), indent=2)
    yield "A skill is a folder in one of them with a SKILL.md that has a name and a description."


def _left_out(catalog: Catalog, where: PathDisplay, screen: Screen) -> Iterator[str]:
    """Yield a table for each kind of skill that is missing or has a warning."""

    def rows_of(diagnostics: Sequence[Diagnostic]) -> list[tuple[str, str, str]]:
        places = (f"{where.short(d.path)}:{d.line}" if d.line else where.short(d.path) for d in diagnostics)
        return [(place, d.rule, fold(d.message)) for place, d in zip(places, diagnostics, strict=True)]

    def named(entry: Filtered) -> str:
        return f"{entry.name} ({where.short(entry.by)})" if entry.by else entry.name

    hidden: list[tuple[str, str, str]] = [
        (where.short(s.path), s.hidden, where.short(s.hidden_by or "")) for s in catalog.skills if s.hidden
    ]
    relations = {True: "the same file as", False: "behind"}
    tables: tuple[tuple[str, Style, list[tuple[str, str, str]]], ...] = (
        ("Hidden from models, and the file or rule that says so", "yellow", hidden),
        ("Errors: skills that are not in the catalog", "red", rows_of(catalog.errors)),
        (
            "Shadowed: another skill has the same name, or is the same file",
            "yellow",
            [(where.short(s.path), s.name, f"{relations[s.same_file]} {where.short(s.by)}") for s in catalog.shadowed],
        ),
        (
            "Filtered: excluded by the profile or the configuration",
            "yellow",
            [(where.short(f.path), f.reason, named(f)) for f in catalog.filtered],
        ),
        ("Warnings", "yellow", rows_of(catalog.warnings)),
    )
    for title, style, rows in tables:
        if rows:
            yield from ("", screen.paint(title, style))
            yield from screen.table(rows, (None, style, None), indent=2, wrap=True)


def _count_line(catalog: Catalog, cells: Sequence[Sequence[str]], screen: Screen) -> str:
    scopes: dict[str, int] = {}
    for _, scope, _, _ in cells:
        scopes[scope] = scopes.get(scope, 0) + 1
    by_scope = ", ".join(f"{count} {scope}" for scope, count in scopes.items())
    total = plural(len(catalog.skills), "skill")
    counted = f"{total} ({by_scope})" if by_scope else total
    return screen.paint(f"{counted}, profile {visible(catalog.profile)}", "bold")


def _notes(catalog: Catalog, cells: Sequence[Sequence[str]], screen: Screen, options: ListOptions) -> Iterator[str]:
    missing = [
        plural(len(catalog.errors), "error"),
        f"{len(catalog.shadowed)} shadowed",
        f"{len(catalog.filtered)} filtered",
        plural(len(catalog.warnings), "warning"),
    ]
    if any((catalog.errors, catalog.shadowed, catalog.filtered, catalog.warnings)):
        scope = f" --scope {options.scope}" if options.scope else ""
        hint = "" if options.everything else visible(f"; details: skillshelf list --all{scope}{options.shared}")
        yield screen.paint(", ".join(missing) + hint, "red" if catalog.errors else "yellow")
    if hidden := sum(why == "untrusted" for _, _, why, _ in cells):
        yield visible(f"{hidden} hidden from models until you trust this project: {options.trust}")


# Tools --------------------------------------------------------------------------------------------


def tools_view(tools: Sequence["Tool"], screen: Screen) -> str:
    """Return every tool with its parameters."""
    if not tools:
        return "No tools: models see no skill here.\n"
    lines: list[str] = []
    for tool in tools:
        required = tool.input_schema["required"]
        lines += [screen.paint(visible(tool.name), "bold")]
        lines += screen.table([(line,) for line in tool.description.splitlines()], (None,), indent=2)
        rows = [
            (name + ("" if name in required else "?"), schema["type"], schema["description"])
            for name, schema in tool.input_schema["properties"].items()
        ]
        lines += [*screen.table(rows, ("green", "dim", None), indent=4), ""]
    return "\n".join(lines)


# Profiles -----------------------------------------------------------------------------------------


def profiles_view(profiles: Mapping[str, Profile], screen: Screen) -> str:
    """Return every profile with its summary."""
    rows = [(profile.name, profile.as_of, profile.summary) for profile in profiles.values()]
    lines = screen.table([("PROFILE", "AS OF", "SUMMARY"), *rows], ("bold", "dim", None))
    return "\n".join([*lines, "", "To see every field of one: skillshelf profile NAME"]) + "\n"


def profile_view(profile: Profile, screen: Screen) -> str:
    """Return every field of a profile, each rule and root on a line of its own."""
    rows: list[tuple[str, str]] = []
    for field, value in profile_to_dict(profile).items():
        rows += _field_rows(field, value)
    return "\n".join(screen._replace(columns=None).table(rows, ("bold", None))) + "\n"


def _field_rows(field: str, value: Any) -> list[tuple[str, str]]:
    if field == "roots":
        return [
            (f"roots[{n}]", ", ".join(f"{k}={_value(v)}" for k, v in root.items() if v)) for n, root in enumerate(value)
        ]
    if isinstance(value, dict) and value:
        return [(f"{field}.{key}", _value(item)) for key, item in value.items()]
    return [(field, _value(value))]


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return " ".join(_value(item) for item in value) or "none"
    if isinstance(value, dict) and value:
        return f"({', '.join(f'{key}={_value(item)}' for key, item in value.items() if item)})"
    return str(value) or "none" if not isinstance(value, dict) else "none"


# Errors -------------------------------------------------------------------------------------------


def error_line(error: SkillError, details: str = "skillshelf list --all") -> str:
    """Return one line with the error and the step that resolves it; `details` is the command that lists every skill."""
    if isinstance(error, SkillDirectoryNotFound):
        return f"folder '{error.path}' not found (--cwd must name a folder that exists)"
    if isinstance(error, ResourceNotFound):
        return f"file '{error.path}' not found"
    if isinstance(error, AmbiguousSkill):
        return f"{len(error.paths)} skills are named '{error.name}'; name one by its path: {', '.join(error.paths)}"
    if isinstance(error, SkillNotUsable):
        return f"skill '{error.name}' cannot be used: {error.reason}"
    if isinstance(error, SkillNotFound) and error.near:
        return f"skill '{error.name}' not found; did you mean {', '.join(error.near)}?"
    if isinstance(error, SkillNotFound):
        return f"skill '{error.name}' not found (run `{details}` to see every skill and why some are missing)"
    if isinstance(error, SourceNotFound) and error.near:
        return f"{error}; did you mean {', '.join(map(visible, error.near))}?"
    return str(error)
