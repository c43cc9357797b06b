"""Show the inventory of the machine: all of it, or on one screen with the problems first and what to do about them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf import __version__
from skillshelf.cli.commands import list_skills, shelf_for
from skillshelf.cli.outside import inventory_of, shared_options
from skillshelf.core import console
from skillshelf.core.console import PathDisplay, Screen, Style, as_json, note, write
from skillshelf.core.text import fold, plural, shorten, visible, width
from skillshelf.errors import DONE

if TYPE_CHECKING:
    from skillshelf.hosts.inventory import Inventory, InventoryPlace, InventoryProblem, InventorySkill
    from skillshelf.shelf import Shelf

__all__ = ["first_screen", "inventory", "overview", "whole_view"]

Values = Mapping[str, Any]


def inventory(values: Values) -> int:
    """Print every skill of the machine."""
    shelf = shelf_for(values)
    found = _under_policy(inventory_of(shelf, values, trees=values["json"]), shelf)
    if values["json"]:
        write(as_json(found.to_dict()))
        for problem in found.problems:
            note(f"{problem.path}: {problem.message}")
        return DONE
    write(whole_view(found, _display(shelf), console.screen(shelf.environment.env)))
    return DONE


def overview(values: Values) -> int:
    """Print the inventory on one screen, or the version; as JSON the catalog of the profile, as `list` does."""
    if values["version"]:
        write(f"skillshelf {__version__}\n")
        return DONE
    if values["json"]:
        return list_skills({**values, "scope": None, "all": False})
    shelf = shelf_for(values)
    found = _under_policy(inventory_of(shelf, values, trees=False), shelf)
    screen = console.screen(shelf.environment.env)
    write(first_screen(found, _display(shelf), screen, shared_options(values)))
    return DONE


def _under_policy(found: "Inventory", shelf: "Shelf") -> "Inventory":
    """Return an inventory with an error for each skill that the system policy requires and models are not told of."""
    if not shelf.settings.system.files:
        return found
    from skillshelf.hosts.inventory import InventoryProblem

    missing = [error for error in shelf.catalog.errors if error.rule == "policy-required"]
    more = [InventoryProblem(error.rule, "error", error.message, None, error.path) for error in missing]
    return found._replace(problems=(*more, *found.problems))


def _display(shelf: "Shelf") -> PathDisplay:
    return PathDisplay(shelf.environment.cwd, shelf.environment.home)


# Words for both views -----------------------------------------------------------------------------

_HOSTS_NAMED = 3
"""Hosts up to which each is named wherever it sees something; more are counted."""

_NOBODY = "none"
_UNKNOWN = "unknown"
_NARROW = 80
_NAME_CELLS = 40


def _headline(found: "Inventory") -> str:
    counts = found.counts()
    filled = sum(place.skills > 0 for place in found.places)
    if not found.skills:
        return "No skills yet"
    texts = f"{plural(counts['skills'], 'skill')} in {plural(filled, 'place')}"
    return f"{texts}, {counts['files']} files" if counts["files"] > counts["skills"] else texts


def _hosts_line(found: "Inventory") -> str:
    """Return which hosts the inventory speaks of."""
    if found.chosen_by == "all":
        return f"for all {len(found.names)} agents that skillshelf knows"
    return f"for {_joined(found.names)}, {'as you set' if found.chosen_by == 'set' else 'found on this machine'}"


def _short(path: str, display: PathDisplay) -> str:
    return "." if path == display.cwd else display.short(path)


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _seen_by(answers: Sequence[Mapping[str, bool | None]], names: Sequence[str]) -> str:
    """Return which hosts see some skills: by name, each with how many if not all, or how many hosts see any."""
    seen = {host: sum(answer[host] is True for answer in answers) for host in names}
    unsure = {host: sum(answer[host] is None for answer in answers) for host in names}
    if not any(seen.values()) and not any(unsure.values()):
        return _NOBODY
    if len(names) > _HOSTS_NAMED:
        count = sum(number > 0 for number in seen.values())
        return f"{count} of {len(names)} agents" if count else _UNKNOWN
    parts = []
    for host in names:
        if seen[host] == len(answers):
            parts.append(host)
        elif seen[host]:
            parts.append(f"{host} ({seen[host]} of {len(answers)})")
        elif unsure[host]:
            parts.append(f"{host} (unknown)")
    return ", ".join(parts)


def _seen_at(skill: "InventorySkill", place: str, found: "Inventory") -> dict[str, bool | None]:
    """Return whether each host sees a skill where it lies in this place; a copy elsewhere does not count."""
    paths = [path for path in (skill.path, *skill.copies) if found.place_of(path) == place]
    columns = zip(*(found.seen_by_path[path] for path in paths), strict=True)
    answers = (True if True in column else None if None in column else False for column in columns)
    return dict(zip(found.names, answers, strict=True))


def _problem_rows(found: "Inventory", display: PathDisplay) -> list[tuple[str, str, str, int]]:
    """Return severity, skill or path, text and number of all problems, errors first; those of one rule are one row."""
    grouped: dict[tuple[str, str, str], tuple[str, list[InventoryProblem]]] = {}
    for skill in found.skills:
        for problem in skill.problems:
            name, same = shorten(skill.name, _NAME_CELLS), (problem.severity, skill.path, problem.rule)
            grouped.setdefault(same, (name, []))[1].append(problem)
    for problem in found.problems:
        name = _shortened(display.short(problem.path), _NAME_CELLS)
        grouped.setdefault((problem.severity, problem.path, problem.rule), (name, []))[1].append(problem)
    rows = [
        (problems[0].severity, name, _problems_text(problems), len(problems)) for name, problems in grouped.values()
    ]
    return sorted(rows, key=lambda row: row[0])


def _problems_text(problems: "Sequence[InventoryProblem]") -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    first = problems[0]
    return f"{first.rule}{more}: {fold(first.message)}"


def _problem_text(problem: "InventoryProblem") -> str:
    return f"{problem.rule}: {fold(problem.message)}"


def _shortened(path: str, cells: int) -> str:
    """Cut a path at its beginning: its end tells more."""
    if width(path) <= cells:
        return path
    while width(path) >= cells:
        path = path[1:]
    return f"…{path}"


# One screen ---------------------------------------------------------------------------------------

_LINES = 40
_LEAST_LINES = 20
_LEAST_PART = 5
"""Lines that the problems and the places get at least, each with its title and an empty line."""

_STYLES: Mapping[str, Style] = {"error": "red", "warning": "yellow", "unseen": "yellow"}


def first_screen(found: "Inventory", display: PathDisplay, screen: Screen, options: str = "") -> str:
    """Return the problems, the skills by place and the next commands, as far as they fit the screen.

    `options` are those that the commands to run next need to see the same machine.
    """
    screen = screen._replace(columns=screen.columns or 100)
    # The directory may be longer than a line, and then it is cut at its beginning.
    here = _shortened(visible(display.cwd), max(20, (screen.columns or 100) - width(_headline(found)) - 9))
    lines = [f"{screen.paint(_headline(found), 'bold')}, from {here}"]
    lines += screen.table([(f"{_hosts_line(found)}{_not_walked(found)}",)], ("dim",), wrap=True)
    commands = _next_commands(found, options, screen.columns or 100)
    after = ["", screen.paint("Next commands:", "bold"), *_command_lines(commands, screen)]
    # The last line is for the prompt.
    room = max(_LEAST_LINES, (screen.lines or _LINES) - 1) - len(lines) - len(after)
    filled = [place for place in found.places if place.skills]
    problems = _problem_lines(found, display, screen, max(_LEAST_PART, room - 2 - len(filled)))
    places = _place_lines(found, filled, display, screen, max(_LEAST_PART, room - len(problems)))
    lines += [*problems, *(places if filled else _nothing(found, display, screen))]
    return _text([*lines, *after])


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _not_walked(found: "Inventory") -> str:
    if found.walked is not None:
        return ""
    why = "there is no repository here" if found.repository is None else "the home folder is not walked"
    return f"; {why}, so only the folders that agents read were searched"


def _nothing(found: "Inventory", display: PathDisplay, screen: Screen) -> list[str]:
    roots = [root.path for name in found.names for root in found.survey.hosts[name].roots]
    shown = list(dict.fromkeys(map(display.short, roots)))[:8]
    text = f"A skill is a folder with a SKILL.md in a folder that agents read: {', '.join(shown)}"
    return ["", *screen.table([(text,)], (None,), wrap=True)]


def _problem_lines(found: "Inventory", display: PathDisplay, screen: Screen, most: int) -> list[str]:
    """Return at most so many lines about problems: how many there are, and the first of them."""
    rows = _problem_rows(found, display)
    unseen = [skill.name for skill in found.skills if skill.is_unseen]
    if not rows and not unseen:
        return ["", screen.paint("No problems", "green")] if found.skills else []
    if unseen:
        whom = "no agent" if found.chosen_by == "all" else "none of these agents"
        rows = [*rows, ("unseen", plural(len(unseen), "skill"), f"{whom} sees {', '.join(unseen)}", 0)]
    shown = [*rows[: most - 3], *rows[-1:]] if len(rows) > most - 2 else rows
    cells = 18 if (screen.columns or 100) < _NARROW else _NAME_CELLS
    errors, warnings = (sum(row[3] for row in rows if row[0] == severity) for severity in ("error", "warning"))
    parts = [plural(errors, "error")] * bool(errors) + [plural(warnings, "warning")] * bool(warnings)
    parts += [f"{len(unseen)} unseen"] * bool(unseen)
    lines = ["", screen.paint(f"Problems: {', '.join(parts)}", "bold")]
    for row in _aligned([(severity, _shortened(name, cells), text) for severity, name, text, _ in shown]):
        lines += screen.table([row], (_STYLES[row[0].strip()], "bold", None), indent=2)
    return lines


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows with all but the last column padded, for tables that are made row by row."""
    columns = list(zip(*rows, strict=True))
    padded = []
    for column in columns[:-1]:
        most = max(width(visible(cell)) for cell in column)
        padded.append([cell + " " * (most - width(visible(cell))) for cell in column])
    return list(zip(*padded, columns[-1], strict=True))


def _place_lines(
    found: "Inventory", places: "Sequence[InventoryPlace]", display: PathDisplay, screen: Screen, most: int
) -> list[str]:
    """Return at most so many lines, one for each place: how many skills it has, who sees them, the first names."""
    columns = screen.columns or 100
    by_place = _by_place(found)
    shown = places if len(places) <= most - 2 else places[: most - 3]
    cells = max(16, min(44, columns // 2 - 8))
    head = ("SKILLS", "PLACE", "KIND", "SEEN BY", "NAMES")
    rows: list[tuple[str, ...]] = [head if columns >= _NARROW else (*head[:2], head[3])]
    for place in shown:
        skills = by_place[place.path]
        row = [f"{place.skills:>6}", _shortened(_short(place.path, display), cells), place.kind]
        seen = [_seen_at(skill, place.path, found) for skill in skills]
        row += [_seen_by(seen, found.names), ", ".join(skill.name for skill in skills)]
        rows.append(tuple(row if columns >= _NARROW else [*row[:2], row[3]]))
    styles: tuple[Style | None, ...] = ("bold", None, "dim", None, "dim")
    lines = ["", *screen.table(rows, styles if columns >= _NARROW else (*styles[:2], "dim"))]
    if len(places) > len(shown):
        rest = places[len(shown) :]
        lines.append(f"{sum(place.skills for place in rest):>6}  in {plural(len(rest), 'more place')}")
    return lines


def _by_place(found: "Inventory") -> "dict[str, list[InventorySkill]]":
    """Return the skills of each place; one with copies is in several."""
    by_place: dict[str, list[InventorySkill]] = {place.path: [] for place in found.places}
    for skill in found.skills:
        for place in dict.fromkeys(map(found.place_of, (skill.path, *skill.copies))):
            by_place[place].append(skill)
    return by_place


def _next_commands(found: "Inventory", options: str, columns: int) -> list[tuple[str, str]]:
    typed = found.survey.typed
    rows = []
    ordered = sorted((skill for skill in found.skills if skill.problems), key=lambda skill: not skill.is_broken)
    if places := list(dict.fromkeys(typed(found.place_of(skill.path)) for skill in ordered)):
        # As many places as fit the line.
        fitting = [f"skillshelf check {' '.join(places[: n + 1])}{options}" for n in range(len(places))]
        command = next((line for line in reversed(fitting) if width(line) <= columns - 2), fitting[0])
        rows.append((command, "line and fix of each problem"))
    if unseen := next((skill for skill in found.skills if skill.is_unseen), None):
        path = typed(os.path.dirname(unseen.path))
        rows.append((f"skillshelf why {path}{options}", "why it is not seen, and how to fix that"))
    elif found.skills:
        rows.append((f"skillshelf why NAME{options}", "which agents see a skill, and why others do not"))
    if not found.skills:
        return [(f"skillshelf new NAME{options}", "create one"), (f"skillshelf hosts{options}", "what agents read")]
    rows.append((f"skillshelf inventory{options}", "every skill, its copies, agents and problems"))
    rows.append((f"skillshelf search WORDS --everywhere{options}", "find a skill in all places"))
    rows.append((f"skillshelf list{options}", "what models get"))
    return rows


def _command_lines(rows: Sequence[tuple[str, str]], screen: Screen) -> list[str]:
    """Return each command in full, and what it shows where that fits beside it."""
    room = max(0, (screen.columns or 100) - max(width(meaning) for _, meaning in rows) - 4)
    short = [row for row in rows if width(visible(row[0])) <= room]
    most = max((width(visible(command)) for command, _ in short), default=0)
    lines = []
    for row in rows:
        command = visible(row[0])
        meaning = f"{' ' * (most - width(command))}  {row[1]}" if row in short else ""
        lines.append(f"  {screen.paint(command, 'green')}{meaning}")
    return lines


# The whole inventory ------------------------------------------------------------------------------


def whole_view(found: "Inventory", display: PathDisplay, screen: Screen) -> str:
    """Return every skill under its place, with the hosts that see it, its copies and its problems."""
    lines = [screen.paint(_headline(found), "bold"), *_wrapped(f"{_hosts_line(found)}{_not_walked(found)}", screen)]
    if not found.skills:
        lines += _nothing(found, display, screen)
    by_place = _by_place(found)
    for place in found.places:
        if place.skills:
            count = plural(place.skills, "skill")
            lines += ["", f"{screen.paint(visible(_short(place.path, display)), 'bold')}  {place.kind}, {count}"]
            lines += _skill_lines(found, by_place[place.path], place.path, display, screen)
    if found.problems:
        lines += ["", screen.paint("Other problems", "bold")]
        rows = [(one.severity, f"{display.short(one.path)}: {_problem_text(one)}") for one in found.problems]
        lines += screen.table(rows, (None, None), indent=2, wrap=True)
    counts = found.counts()
    totals = f"{plural(counts['skills'], 'skill')}: {counts['broken']} broken, {counts['unseen']} unseen"
    return _text([*lines, "", screen.paint(totals, "bold")])


def _wrapped(text: str, screen: Screen) -> list[str]:
    return screen.table([(text,)], ("dim",), wrap=True)


def _skill_lines(
    found: "Inventory", skills: "Sequence[InventorySkill]", place: str, display: PathDisplay, screen: Screen
) -> Iterator[str]:
    rows = []
    for skill in skills:
        if found.place_of(skill.path) == place:
            seen_by = _seen_by([skill.hosts], found.names)
            seen = {_NOBODY: "not seen", _UNKNOWN: "not known whether it is seen"}.get(seen_by, f"seen by {seen_by}")
            rows.append((shorten(skill.name, _NAME_CELLS), seen))
            installed = found.survey.lock_members(
                os.path.dirname(skill.skill_file.real_path), os.path.dirname(skill.path)
            )
            if (version := installed["version"]) is not None:
                rows.append(("", f"installed from {installed['origin'] or 'an unknown source'}, {version}"))
            rows += [("", f"copy: {display.short(os.path.dirname(path))}") for path in skill.copies]
            rows += [("", f"{one.severity}: {_with_line(one)}") for one in skill.problems]
        for path in skill.copies:
            if found.place_of(path) == place:
                name = os.path.basename(os.path.dirname(path))
                rows.append((shorten(name, _NAME_CELLS), f"copy of {display.short(os.path.dirname(skill.path))}"))
    yield from screen.table(rows, ("bold", None), indent=2, wrap=True)


def _with_line(problem: "InventoryProblem") -> str:
    line = f"line {problem.line}: " if problem.line else ""
    return f"{problem.rule}: {line}{fold(problem.message)}"
