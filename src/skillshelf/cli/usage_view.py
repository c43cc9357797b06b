"""Show the use of skills on a screen: what is never used first, then by skill, user, week, search and denial."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillshelf.core.console import Screen, Style
from skillshelf.core.text import plural
from skillshelf.journal.usage import Usage

__all__ = ["VIEWS", "stats_view"]

_ROWS = 10
"""Rows of a section on the screen with all sections."""


def stats_view(usage: Usage, screen: Screen, *, by: str | None = None, damaged: Sequence[str] = ()) -> str:
    """Return the screen with all sections, or one of them whole."""
    blocks = []
    if by is None:
        blocks.append(_never_used(usage, screen))
        for title, (rows, styles) in _sections(usage).items():
            blocks.append(_section(title, rows, styles, screen))
    else:
        blocks.append(_whole(by, usage, screen))
    blocks.append(_summary(usage, damaged, screen))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _summary(usage: Usage, damaged: Sequence[str], screen: Screen) -> list[str]:
    """Return the number of events, and what was not counted."""
    lines = []
    if usage.unlisted:
        sessions = plural(usage.unlisted, "session")
        lines.append(f"{sessions} without a list of the skills: what was never used there is not known")
    lines.append(screen.paint(f"{plural(usage.events, 'event')} of {plural(usage.sessions, 'session')}", "bold"))
    if usage.broken:
        broken = f"{plural(usage.broken, 'line')} damaged or changed, not counted (run `skillshelf log verify`)"
        lines.append(screen.paint(broken, "red"))
    lines += [screen.paint(line, "red") for line in damaged]
    return lines


def _never_used(usage: Usage, screen: Screen) -> list[str]:
    """Return the skills that were offered and never used, with a path where the name does not tell them apart."""
    if not usage.catalog:
        return [] if usage.skills else ["No skill was used."]
    never = usage.never_used
    title = f"Never used: {len(never):,} of {plural(usage.catalog, 'skill')}"
    often = Counter(row["name"] for row in usage.skills)
    shown = [
        f"{row['name']} ({row['paths'][0]})" if often[row["name"]] > 1 and row["paths"] else row["name"]
        for row in never
    ]
    if not shown:
        return [screen.paint(title, "green")]
    more = f", … and {len(shown) - 40:,} more (--by skill)" if len(shown) > 40 else ""
    text = ", ".join(shown[:40]) + more
    return [screen.paint(title, "yellow"), *screen.table([(text,)], (None,), indent=2, wrap=True)]


Table = tuple[list[tuple[str, ...]], tuple[Style | None, ...]]


def _sections(usage: Usage) -> dict[str, Table]:
    """Return the tables of the screen with all sections, by their titles."""
    return {
        "Used:skill": _used(usage),
        "By user:user": _users(usage),
        "Per week (ISO, UTC):week": _weeks(usage),
        "Loaded after a search:search": _searches(usage),
        "Denied:denial": _denials(usage),
        "Failed:error": _errors(usage),
    }


def _section(title: str, rows: list[tuple[str, ...]], styles: tuple[Style | None, ...], screen: Screen) -> list[str]:
    """Return the first rows of a table below its title."""
    if len(rows) < 2:
        return []
    title, _, view = title.partition(":")
    # The last weeks are the interesting ones.
    shown = [rows[0], *(rows[1:][-_ROWS:] if view == "week" else rows[1 : _ROWS + 1])]
    lines = [screen.paint(title, "bold"), *screen.table(_aligned(shown), styles, indent=2)]
    if len(rows) > len(shown):
        lines.append(f"  … {len(rows) - len(shown):,} more: --by {view}")
    return lines


def _whole(by: str, usage: Usage, screen: Screen) -> list[str]:
    """Return one view with all its rows."""
    rows, styles = VIEWS[by](usage)
    return screen.table(_aligned(rows), styles) if len(rows) > 1 else [f"Nothing to show by {by}."]


def _aligned(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows with columns of numbers aligned to the right."""
    columns = list(zip(*rows, strict=True))
    for place, column in enumerate(columns[:-1]):
        if all(cell == "-" or cell[:1].isdigit() for cell in column[1:]):
            widest = max(map(len, column))
            columns[place] = tuple(cell.rjust(widest) for cell in column)
    return list(zip(*columns, strict=True))


def _day(ts_ms: int | None) -> str:
    """Return the day of a time in UTC."""
    if ts_ms is None:
        return "-"
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(ts_ms // 1000))
    except (OverflowError, ValueError, OSError):
        return "????-??-??"


def _who(users: Sequence[Mapping[str, Any]]) -> str:
    """Return the first users in brackets."""
    names = [user["user"] for user in users if user["user"]]
    more = f" +{len(names) - 3}" if len(names) > 3 else ""
    return f" ({', '.join(names[:3])}{more})" if names else ""


def _count(number: int) -> str:
    return f"{number:,}" if number else "-"


def _used(usage: Usage) -> Table:
    rows: list[tuple[str, ...]] = [("USES", "USERS", "FIRST", "LAST", "SKILL")]
    for row in sorted(usage.skills, key=lambda row: (-row["uses"], row["name"])):
        if row["uses"]:
            days = _day(row["first_ms"]), _day(row["last_ms"])
            rows.append((_count(row["uses"]), str(len(row["users"])), *days, f"{row['name']}{_who(row['users'])}"))
    return rows, (None, None, "dim", "dim", "bold")


def _users(usage: Usage) -> Table:
    rows: list[tuple[str, ...]] = [("USES", "SKILLS", "SESSIONS", "DENIED", "LAST", "USER")]
    for row in usage.users:
        counts = (_count(row[name]) for name in ("uses", "skills", "sessions", "denied"))
        rows.append((*counts, _day(row["last_ms"]), row["user"] or "-"))
    return rows, (None, None, None, None, "dim", "bold")


def _weeks(usage: Usage) -> Table:
    names = ("uses", "searches", "sessions", "denied", "failed")
    rows: list[tuple[str, ...]] = [(*(name.upper() for name in names), "WEEK")]
    rows += [(*(_count(row[name]) for name in names), row["week"]) for row in usage.weeks]
    return rows, (*([None] * len(names)), "bold")


def _searches(usage: Usage) -> Table:
    rows: list[tuple[str, ...]] = [("LOADS", "SEARCHES", "QUERY -> SKILLS")]
    for row in usage.searches:
        skills = ", ".join(f"{skill['name']} {skill['loads']}" for skill in row["skills"]) or "nothing"
        query = row["query"] if row["query"] is not None else "(not recorded)"
        rows.append((_count(row["loads"]), _count(row["searches"]), f"{query} -> {skills}"))
    return rows, (None, None, "bold")


def _denials(usage: Usage) -> Table:
    rows: list[tuple[str, ...]] = [("COUNT", "LAST", "TOOL", "WHAT")]
    for row in usage.denials:
        why = ", ".join(filter(None, (row["rule"], f"by {row['by']}" if row["by"] else "")))
        what = f"{row['skill'] or 'no skill'}{f': {why}' if why else ''}{_who(row['users'])}"
        rows.append((_count(row["count"]), _day(row["last_ms"]), row["tool"], what))
    return rows, (None, "dim", None, "red")


def _errors(usage: Usage) -> Table:
    rows: list[tuple[str, ...]] = [("COUNT", "TOOL", "CODE", "SKILL")]
    rows += [(_count(row["count"]), row["tool"], row["code"], row["skill"] or "-") for row in usage.errors]
    return rows, (None, None, "red", None)


def _skills(usage: Usage) -> Table:
    names = ("uses", "auto", "manual", "loaded", "read", "denied")
    rows: list[tuple[str, ...]] = [(*(name.upper() for name in names), "TIME", "BYTES", "LAST", "SKILL")]
    for row in usage.skills:
        counts = (_count(row[name]) for name in names)
        place = f"  {row['paths'][0]}" if row["paths"] else ""
        more = f" +{len(row['paths']) - 1}" if len(row["paths"]) > 1 else ""
        times = _duration(row["total_ms"]), _count(row["bytes"]), _day(row["last_ms"])
        rows.append((*counts, *times, f"{row['name']}{place}{more}"))
    return rows, (*([None] * (len(names) + 2)), "dim", "bold")


def _tools(usage: Usage) -> Table:
    names = ("calls", "failed", "denied")
    rows: list[tuple[str, ...]] = [(*(name.upper() for name in names), "TIME", "LONGEST", "BYTES", "TOOL")]
    for row in usage.tools:
        times = _duration(row["total_ms"]), _duration(row["longest_ms"])
        rows.append((*(_count(row[name]) for name in names), *times, _count(row["bytes"]), row["name"]))
    return rows, (*([None] * 6), "bold")


def _duration(ms: int) -> str:
    if not ms:
        return "-"
    return f"{ms} ms" if ms < 10_000 else f"{ms / 1000:.1f} s" if ms < 600_000 else f"{ms // 60_000:,} min"


VIEWS: Mapping[str, Callable[[Usage], Table]] = {
    "skill": _skills,
    "user": _users,
    "week": _weeks,
    "search": _searches,
    "denial": _denials,
    "error": _errors,
    "tool": _tools,
}
"""The views of `log stats --by`."""
