"""Render the results of `why` and `hosts` as tables for people."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import PathDisplay, Screen, Style
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, visible
from skillshelf.hosts.detection import ChosenBy
from skillshelf.hosts.explain import FileExplanation
from skillshelf.hosts.fixes import Fix
from skillshelf.hosts.overview import HostCount
from skillshelf.hosts.stages import NO_WINNER, Verdict

__all__ = [
    "HostTableNotes",
    "SkillHostsRow",
    "best_of",
    "choice_line",
    "diff_view",
    "hosts_view",
    "why_view",
]

_WORDS = {True: "yes", False: "no", None: "?"}
_MARKS = {True: "+", False: "-", None: "?"}
_RANK = {False: 0, None: 1, True: 2}


# One skill ----------------------------------------------------------------------------------------

_FIXES_SHOWN = 4
_TABLE_LINES = 24
_COPIES_SHOWN = 3
_ROOM_FOR_WARNS = 72
"""A narrower screen leaves out the column WARNS USER, so that there is room for the details."""


def choice_line(reason: ChosenBy, hosts: Sequence[str]) -> str:
    """Say of which hosts a view speaks, and how to see or choose others."""
    if reason == "all":
        count = len(HOSTS)
        return f"No host is set or found here, so all {count} are shown; to choose: skillshelf hosts --set HOST,..."
    where = "Your hosts" if reason == "set" else "Hosts found on this machine"
    others = len(HOSTS) - len(hosts)
    return f"{where}: {', '.join(hosts)}" + (f" ({others} others: --all-hosts)" if others else "")


def why_view(
    name: str, explanations: Sequence[FileExplanation], display: PathDisplay, screen: Screen, *, choice: str = ""
) -> str:
    """Render a line for each host, the failing ones first, and the fixes; several files of a name get a column each."""
    if len(explanations) == 1:
        lines = _one_file(name, explanations[0], display, screen)
    else:
        lines = _several_files(name, explanations, display, screen)
    return "\n".join([*lines, *(_wrapped(choice, screen, "dim") if choice else ())]) + "\n"


def _one_file(name: str, file: FileExplanation, display: PathDisplay, screen: Screen) -> Iterator[str]:
    yield screen.paint(visible(name), "bold") + f"  {visible(display.short(file.path))}"
    if file.note:
        yield from _wrapped(f"This is {file.note}.", screen)
    others = len({*file.by_copy} - {verdict.host for verdict in file.verdicts if verdict.visible})
    more = f", and to {others} more through a copy made by skillshelf" if others else ""
    yield from _wrapped(f"Visible to {_visible_count(file.verdicts)}{more}.", screen)
    yield from _verdict_lines(file.verdicts, screen)
    if file.fixes:
        yield "How to fix:"
        rows = [(_beneficiaries(fix), _fix_text(fix, display)) for fix in file.fixes[:_FIXES_SHOWN]]
        yield from screen.table(rows, ("bold", "green"), indent=2, wrap=True)
    if len(file.fixes) > _FIXES_SHOWN:
        yield f"  … and {len(file.fixes) - _FIXES_SHOWN} more: --json"
    if command := _fix_command(name, file.fixes):
        yield from _wrapped(command, screen)
    if doubts := sorted(verdict.host for verdict in file.verdicts if HOSTS[verdict.host].grade != "R"):
        text = f"Based on source or documentation, not on a run: {', '.join(doubts)}"
        yield from ("", *_wrapped(text, screen, "dim"))


_HOSTS_NAMED = 4


def _fix_command(name: str, fixes: Sequence[Fix]) -> str:
    """Return the line with the command that applies the safe fixes and makes the links; empty if there are none."""
    is_text = any(fix.kind == "text" for fix in fixes)
    hosts = list(dict.fromkeys(host for fix in fixes if fix.kind == "link" for host in fix.hosts))
    if not is_text and not hosts:
        return ""
    what = " and make the links" if hosts else ""
    start = f"To apply safe fixes{what}" if is_text else "To make the links"
    shown = f" --host {','.join(hosts) if len(hosts) <= _HOSTS_NAMED else 'HOST,...'}" if hosts else ""
    return f"{start}: skillshelf why {visible(quote(name))} --fix{shown}"


def _several_files(
    name: str, explanations: Sequence[FileExplanation], display: PathDisplay, screen: Screen
) -> Iterator[str]:
    groups = _by_text(explanations)
    texts = "" if len(groups) == len(explanations) else f", {len(groups)} different texts"
    texts = ", all with the same text" if len(groups) == 1 else texts
    yield screen.paint(visible(name), "bold") + f"  {len(explanations)} files have this name{texts}"
    # A host that takes one of several sees one of them, even if it is not known which.
    rows = list(zip(*(file.verdicts for file in explanations), strict=True))
    seeing = sum(any(one.visible or one.rule == NO_WINNER for one in row) for row in rows)
    yield f"{seeing} of {len(rows)} hosts see one of them."
    shown = groups[:_COPIES_SHOWN]
    yield from _file_lines(shown, display, screen)
    columns = [best_of([file.verdicts for file in group]) for group in shown]
    yield from _verdict_lines(columns[0], screen) if len(groups) == 1 else _verdict_columns(columns, screen)
    room = max(1, _FIXES_SHOWN // len(shown))
    fixes = []
    for number, group in enumerate(shown, 1):
        # All files of a group have the same text, so the fixes of any of them will do.
        first = next((file.fixes for file in group if file.fixes), ())
        fixes += [(str(number), _beneficiaries(fix), _fix_text(fix, display)) for fix in first[:room]]
    if fixes:
        yield "How to fix:"
        yield from _numbered(fixes, shown, screen, "green")
    more = f"{len(groups) - len(shown)} more: --json.  " if len(groups) > len(shown) else ""
    yield f"{more}Details of one file: skillshelf why PATH"


def _by_text(explanations: Sequence[FileExplanation]) -> list[list[FileExplanation]]:
    """Group files with the same text, originals before copies."""
    groups: dict[tuple[bytes, int], list[FileExplanation]] = {}
    for file in sorted(explanations, key=lambda file: file.is_copy):
        groups.setdefault(file.text, []).append(file)
    return list(groups.values())


def best_of(files: Sequence[Sequence[Verdict]]) -> list[Verdict]:
    """Return the best verdict of each host on any of these files."""
    return [max(row, key=lambda verdict: _RANK[verdict.visible]) for row in zip(*files, strict=True)]


def _file_lines(groups: Sequence[Sequence[FileExplanation]], display: PathDisplay, screen: Screen) -> list[str]:
    """Render every file with the number of hosts that see it, under the number of its text."""
    rows = []
    for number, group in enumerate(groups, 1):
        for n, file in enumerate(group[:_COPIES_SHOWN]):
            path = display.short(file.path) + (f"  ({file.note})" if file.note else "")
            rows.append((str(number) if n == 0 else "", _visible_count(file.verdicts), path))
        if len(group) > _COPIES_SHOWN:
            rows.append(("", f"{len(group) - _COPIES_SHOWN} more", "with the same text: --json"))
    return _numbered(rows, groups, screen)


def _numbered(
    rows: Sequence[tuple[str, str, str]],
    groups: Sequence[Sequence[FileExplanation]],
    screen: Screen,
    style: Style | None = None,
) -> list[str]:
    """Render lines that start with the number of a text, if there are several texts."""
    if len(groups) == 1:
        return screen.table([row[1:] for row in rows], (None, style), indent=2, wrap=True)
    return screen.table(rows, ("bold", None, style), indent=2, wrap=True)


def _verdict_columns(columns: Sequence[Sequence[Verdict]], screen: Screen) -> list[str]:
    """Render a line for each host with a column for each text, the hosts that see the fewest first."""
    ordered = sorted(zip(*columns, strict=True), key=lambda row: sum(_RANK[verdict.visible] for verdict in row))
    head = ("HOST", *(str(n) for n, _ in enumerate(columns, 1)))
    styles: tuple[Style | None, ...] = ("bold", *(None for _ in columns))
    full = [head, *((row[0].host, *map(_with_name, row)) for row in ordered)]
    if screen.columns is None or max(map(len, Screen().table(full, styles))) <= screen.columns:
        return screen.table(full, styles)
    # A narrow screen has no room for the names of verdicts; `why PATH` shows them.
    return screen.table([head, *((row[0].host, *(_WORDS[one.visible] for one in row)) for row in ordered)], styles)


def _visible_count(verdicts: Sequence[Verdict]) -> str:
    return f"{sum(verdict.visible is True for verdict in verdicts)} of {len(verdicts)} hosts"


def _verdict_lines(verdicts: Sequence[Verdict], screen: Screen) -> Iterator[str]:
    ordered = sorted(verdicts, key=lambda verdict: _RANK[verdict.visible])
    if all(verdict.verdict == "visible" and not verdict.detail for verdict in verdicts):
        names = ", ".join(verdict.host for verdict in ordered)
        yield from screen.table([("visible:", names)], ("green", None), wrap=True)
        return
    rows: list[tuple[str, ...]] = [("HOST", "VISIBLE", "VERDICT", "WARNS USER", "DETAIL")]
    for one in ordered:
        warns = _WORDS[one.warns] if one.visible is False and one.verdict != "hidden-from-model" else "-"
        rows.append((one.host, _WORDS[one.visible], one.verdict, warns, fold(one.detail) or "-"))
    styles: tuple[Style | None, ...] = ("bold", None, None, "dim", None)
    if screen.columns is not None and screen.columns < _ROOM_FOR_WARNS:
        rows, styles = [(*row[:3], row[4]) for row in rows], (*styles[:3], None)
    lines = screen.table(rows, styles, wrap=True)
    # Details are shown in full as long as the whole answer fits one screen.
    yield from lines if len(lines) <= _TABLE_LINES else screen.table(rows, styles)


def _beneficiaries(fix: Fix) -> str:
    """Return the hosts that will see the skill after a fix alone."""
    if len(fix.hosts) == 1:
        return fix.hosts[0]
    if fix.hosts:
        return f"{len(fix.hosts)} hosts"
    return "partly" if fix.need_more else "users only" if fix.users_only else "first"


def _fix_text(fix: Fix, display: PathDisplay) -> str:
    """Return the step to take, and its other consequences."""
    remarks = []
    if fix.placement:
        remarks.append(f"{fix.placement.how} in {display.short(fix.placement.root)}")
    if fix.users_only:
        remarks.append(f"users can then invoke it in {', '.join(fix.users_only)}")
    if fix.need_trust:
        remarks.append(f"{len(fix.need_trust)} more would then require trust")
    if fix.need_more:
        who = f"{len(fix.need_more)} more" if fix.hosts else ", ".join(fix.need_more)
        remarks.append(f"{who} also {'needs' if len(fix.need_more) == 1 else 'need'} another step")
    if fix.in_doubt:
        remarks.append(f"{', '.join(fix.in_doubt)} would then find two skills of this name, either may win")
    return f"{fix.what}  ({'; '.join(remarks)})" if remarks else fix.what


# All skills ---------------------------------------------------------------------------------------


class SkillHostsRow(NamedTuple):
    """One skill and the hosts that see it."""

    name: str
    path: str
    hosts: Mapping[str, bool | None]


class HostTableNotes(NamedTuple):
    """The text below the table of hosts: the longest descriptions, warnings about misspelt folders, why these hosts."""

    long_descriptions: Sequence[tuple[str, int]]
    warnings: Sequence[str]
    choice: str = ""


_NAMES_SHOWN = 3


def hosts_view(
    counts: Sequence[HostCount],
    rows: Sequence[SkillHostsRow],
    remarks: HostTableNotes,
    display: PathDisplay,
    screen: Screen,
) -> str:
    """Render the numbers of each host, then a line for each skill with a mark for each host."""
    lines = _matrix(counts, rows, display, screen) if rows else _nothing(counts, screen)
    lines += [line for count in counts for loss in _losses(count) for line in _wrapped(loss, screen)]
    if remarks.long_descriptions:
        longest = ", ".join(f"{visible(name)} ({chars:,})" for name, chars in remarks.long_descriptions)
        lines += _wrapped(f"Longest descriptions, in characters: {longest}", screen)
    lines += [line for warning in remarks.warnings for line in _wrapped(f"warning: {warning}", screen, "yellow")]
    lines += _wrapped(remarks.choice, screen, "dim") if remarks.choice else []
    return "\n".join(lines) + "\n"


def _wrapped(text: str, screen: Screen, style: Style | None = None) -> list[str]:
    return screen.table([(text,)], (style,), wrap=True)


def _nothing(counts: Sequence[HostCount], screen: Screen) -> list[str]:
    return [
        *_wrapped(f"None of {len(counts)} hosts finds a skill here or at home.", screen),
        *_wrapped("Folders of a host: skillshelf profile host:NAME.  Create a skill: skillshelf new NAME", screen),
    ]


def _matrix(
    counts: Sequence[HostCount], rows: Sequence[SkillHostsRow], display: PathDisplay, screen: Screen
) -> list[str]:
    keys = {count.host: chr(ord("a") + number) for number, count in enumerate(counts)}
    head = ("", "HOST", "VISIBLE", "MISSING", "SILENT", "?", "LIST")
    table = [
        (keys[c.host], c.host, str(c.visible), str(c.missing), str(c.silent), str(c.unknown), _list_size(c))
        for c in counts
    ]
    lines = screen.table([head, *table], ("dim", "bold", None, None, "yellow", None, None))
    # Skills that some host misses come first; each part is sorted by the name that is shown.
    ordered = sorted(
        zip(rows, _distinct_names(rows, display), strict=True), key=lambda pair: (all(pair[0].hosts.values()), pair[1])
    )
    marks = [(" ".join(_MARKS[row.hosts[host]] for host in keys), name) for row, name in ordered]
    lines += ["", *screen.table([(" ".join(keys.values()), "SKILL"), *marks], (None, "bold"))]
    legend = "+ visible, - not visible, ? unknown.  One skill: skillshelf why NAME"
    columns = (
        "VISIBLE: skills that the host tells its model about.  MISSING: skills of other hosts that it does not.  "
        "SILENT: those of them that it leaves out without a word.  LIST: what its list of skills takes."
    )
    return [*lines, "", *_wrapped(legend, screen), *_wrapped(columns, screen, "dim")]


def _distinct_names(rows: Sequence[SkillHostsRow], display: PathDisplay) -> list[str]:
    """Return the name of each row, with its path if several rows have the name."""
    several = Counter(row.name for row in rows)
    return [f"{row.name}  {display.short(row.path)}" if several[row.name] > 1 else row.name for row in rows]


def _losses(count: HostCount) -> Iterator[str]:
    """Yield which skills lose their description or their place because the list of a host is too long."""
    overflow = HOSTS[count.host].overflow
    if count.cut and overflow == "drop-least-used":
        yield f"{count.host} drops {len(count.cut)} descriptions: those of the least used skills"
    elif count.cut:
        verb = "drops" if overflow == "drop-descriptions" else "shortens"
        yield f"{count.host} {verb} the description of {_some(count.cut)}"
    if count.dropped:
        yield f"{count.host} omits {_some(count.dropped)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return visible(", ".join(names[:_NAMES_SHOWN])) + more


def _list_size(count: HostCount) -> str:
    budget = f" of {count.budget:,}" if count.budget is not None else ""
    lost = f"{len(count.cut)} cut, " if count.cut else ""
    lost += f"{len(count.dropped)} dropped, " if count.dropped else ""
    # Losses come first: a narrow screen cuts off the rest.
    return f"{lost}~{count.tokens:,} tokens, {count.chars:,}{budget} chars"


def diff_view(
    first: str,
    second: str,
    rows: Sequence[tuple[SkillHostsRow, Verdict, Verdict]],
    display: PathDisplay,
    screen: Screen,
) -> str:
    """Render the skills that only one of two hosts sees."""
    if not rows:
        return f"{first} and {second} see the same skills here.\n"
    names = _distinct_names([row for row, _, _ in rows], display)
    table = [(name, _with_name(one), _with_name(two)) for name, (_, one, two) in zip(names, rows, strict=True)]
    lines = screen.table([("SKILL", first, second), *table], ("bold", None, None))
    return "\n".join([*lines, "", "Details: skillshelf why NAME"]) + "\n"


def _with_name(verdict: Verdict) -> str:
    return f"{_WORDS[verdict.visible]} ({verdict.verdict})" if verdict.verdict != "visible" else "yes"
