"""Verdicts, counts and links to what a person is shown about hosts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import NamedTuple

from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import PathDisplay, Screen, Style
from skillshelf.core.text import fold, visible
from skillshelf.hosts.explain import Explanation
from skillshelf.hosts.fixes import Fix
from skillshelf.hosts.stages import NO_WINNER, Verdict

__all__ = ["HostCount", "best_of", "diff_view", "hosts_view", "why_view"]

_WORDS = {True: "yes", False: "no", None: "?"}
_STYLES: Mapping[str, Style] = {"yes": "green", "no": "red", "?": "yellow"}
_MARKS = {True: "+", False: "-", None: "?"}


# One skill ----------------------------------------------------------------------------------------

_FIXES_SHOWN = 4
_TABLE_LINES = 24
_COPIES_SHOWN = 3


def why_view(name: str, asked: Sequence[Explanation], where: PathDisplay, screen: Screen) -> str:
    """A line for each host, the failing ones first, and what to do; with a column for each copy of a name."""
    lines = list(_one(name, asked[0], where, screen) if len(asked) == 1 else _several(name, asked, where, screen))
    return "\n".join(lines) + "\n"


def _one(name: str, file: Explanation, where: PathDisplay, screen: Screen) -> Iterator[str]:
    yield screen.paint(visible(name), "bold") + f"  {visible(where.short(file.path))}"
    if file.note:
        yield from _wrapped(f"It is {file.note}.", screen)
    others = len({*file.by_copy} - {verdict.host for verdict in file.verdicts if verdict.visible})
    more = f", {others} more about a copy that skillshelf made" if others else ""
    yield from _wrapped(f"{_told_by(file.verdicts)} tell their model about it{more}.", screen)
    yield from _verdict_lines(file.verdicts, screen)
    yield from _help_lines(name, file, where, screen)
    doubts = [verdict.host for verdict in file.verdicts if HOSTS[verdict.host].grade != "R"]
    if doubts:
        yield from ("", *_wrapped(f"Not run, but read or documented: {', '.join(sorted(doubts))}.", screen, "dim"))


def _help_lines(name: str, file: Explanation, where: PathDisplay, screen: Screen) -> Iterator[str]:
    if not file.help:
        return
    yield "What helps:"
    rows = [(_count(fix), _how(fix, where)) for fix in file.help[:_FIXES_SHOWN]]
    yield from screen.table(rows, ("bold", "green"), indent=2, wrap=True)
    if len(file.help) > _FIXES_SHOWN:
        yield f"  … and {len(file.help) - _FIXES_SHOWN} more: --json"
    if any(fix.kind == "text" for fix in file.help):
        yield f"The text is repaired by: skillshelf why {visible(quote(name))} --fix"


def _several(name: str, asked: Sequence[Explanation], where: PathDisplay, screen: Screen) -> Iterator[str]:
    groups = _by_text(asked)
    yield screen.paint(visible(name), "bold") + f"  {len(asked)} files have this name{_texts(asked, groups)}"
    yield f"{_told_of_one(asked)} of {len(asked[0].verdicts)} hosts tell their model about one of them."
    shown = groups[:_COPIES_SHOWN]
    yield from _file_lines(shown, where, screen)
    if len(groups) == 1:
        yield from _verdict_lines(_best(asked), screen)
    else:
        yield from _columns([_best(group) for group in shown], screen)
    room = max(1, _FIXES_SHOWN // len(shown))
    numbered = [(str(n), one) for n, group in enumerate(shown, 1) for one in _help_of(group)[:room]]
    if numbered:
        yield "What helps:"
        yield from _numbered([(n, _count(one), _how(one, where)) for n, one in numbered], shown, screen, "green")
    more = f"{len(groups) - len(shown)} more: --json.  " if len(groups) > len(shown) else ""
    yield f"{more}One of them with all details: skillshelf why PATH"


def _told_of_one(asked: Sequence[Explanation]) -> int:
    """How many hosts tell their model about one of several files, also where nobody can say about which."""
    by_host = zip(*(file.verdicts for file in asked), strict=True)
    return sum(any(one.visible or one.rule == NO_WINNER for one in row) for row in by_host)


def _by_text(asked: Sequence[Explanation]) -> list[list[Explanation]]:
    """Files that say the same together, what somebody wrote before the copies of it."""
    groups: dict[tuple[bytes, int], list[Explanation]] = {}
    for file in sorted(asked, key=lambda file: file.is_copy):
        groups.setdefault(file.text, []).append(file)
    return list(groups.values())


def _texts(asked: Sequence[Explanation], groups: Sequence[Sequence[Explanation]]) -> str:
    if len(groups) == 1:
        return " and the same text"
    return "" if len(groups) == len(asked) else f" and {len(groups)} different texts"


def best_of(files: Sequence[Sequence[Verdict]]) -> list[Verdict]:
    """For each host the best that it makes of any of these files."""
    return [max(row, key=lambda verdict: _RANK[verdict.visible]) for row in zip(*files, strict=True)]


def _best(files: Sequence[Explanation]) -> list[Verdict]:
    return best_of([file.verdicts for file in files])


def _help_of(group: Sequence[Explanation]) -> Sequence[Fix]:
    """What helps one of the files, which is as good as any other."""
    return next((file.help for file in group if file.help), ())


def _file_lines(groups: Sequence[Sequence[Explanation]], where: PathDisplay, screen: Screen) -> list[str]:
    """Every file with who tells its model of it, under the number of its text."""
    rows = []
    for number, group in enumerate(groups, 1):
        for n, file in enumerate(group[:_COPIES_SHOWN]):
            rows.append((str(number) if n == 0 else "", _told_by(file.verdicts), _path_of(file, where)))
        if len(group) > _COPIES_SHOWN:
            rows.append(("", f"{len(group) - _COPIES_SHOWN} more", "with the same text: --json"))
    return _numbered(rows, groups, screen)


def _numbered(
    rows: Sequence[tuple[str, str, str]],
    groups: Sequence[Sequence[Explanation]],
    screen: Screen,
    style: Style | None = None,
) -> list[str]:
    """Lines that begin with the number of a text, where there are several."""
    if len(groups) == 1:
        return screen.table([row[1:] for row in rows], (None, style), indent=2, wrap=True)
    return screen.table(rows, ("bold", None, style), indent=2, wrap=True)


def _columns(columns: Sequence[Sequence[Verdict]], screen: Screen) -> list[str]:
    """A line for each host with a column for each text, the hosts that see the fewest first."""
    ordered = sorted(zip(*columns, strict=True), key=lambda row: sum(_RANK[verdict.visible] for verdict in row))
    head = ("HOST", *(str(n) for n, _ in enumerate(columns, 1)))
    styles: tuple[Style | None, ...] = ("bold", *(None for _ in columns))
    lines = Screen().table([head, *((row[0].host, *map(_side, row)) for row in ordered)], styles)
    # On a narrow screen without the verdicts, which `why PATH` has.
    side = _side if screen.columns is None or max(map(len, lines)) <= screen.columns else _word
    return screen.table([head, *((row[0].host, *map(side, row)) for row in ordered)], styles)


def _told_by(verdicts: Sequence[Verdict]) -> str:
    seen = sum(verdict.visible is True for verdict in verdicts)
    return f"{seen} of {len(verdicts)} hosts"


def _path_of(file: Explanation, where: PathDisplay) -> str:
    return where.short(file.path) + (f"  ({file.note})" if file.note else "")


_RANK = {False: 0, None: 1, True: 2}


def _verdict_lines(verdicts: Sequence[Verdict], screen: Screen) -> Iterator[str]:
    ordered = sorted(verdicts, key=lambda verdict: _RANK[verdict.visible])
    if all(verdict.verdict == "visible" and not verdict.detail for verdict in verdicts):
        names = ", ".join(verdict.host for verdict in ordered)
        yield from screen.table([("visible:", names)], ("green", None), wrap=True)
        return
    rows = [
        (verdict.host, _WORDS[verdict.visible], verdict.verdict, _told(verdict), fold(verdict.detail) or "-")
        for verdict in ordered
    ]
    head = ("HOST", "SEES", "VERDICT", "TOLD", "DETAIL")
    styles: tuple[Style | None, ...] = ("bold", None, None, "dim", None)
    lines = screen.table([head, *rows], styles, wrap=True)
    # Details in full as long as the whole answer stays on one screen.
    yield from lines if len(lines) <= _TABLE_LINES else screen.table([head, *rows], styles)


def _told(verdict: Verdict) -> str:
    if verdict.visible is not False or verdict.verdict == "hidden-from-model":
        return "-"
    return _WORDS[verdict.told]


def _count(fix: Fix) -> str:
    """Who will see the skill after a remedy alone."""
    if len(fix.hosts) == 1:
        return fix.hosts[0]
    if fix.hosts:
        return f"{len(fix.hosts)} hosts"
    return "not alone" if fix.needing else "for people" if fix.calling else "first"


def _how(fix: Fix, where: PathDisplay) -> str:
    """What to do, and what else will come of it."""
    notes = []
    if fix.put:
        notes.append(f"{'into' if fix.put.how == 'link' else 'a copy in'} {where.short(fix.put.root)}")
    if fix.calling:
        notes.append(f"people can then call it in {', '.join(fix.calling)}")
    if fix.asking:
        notes.append(f"{len(fix.asking)} more would then ask for trust")
    if fix.needing:
        who = f"{len(fix.needing)} more" if fix.hosts else ", ".join(fix.needing)
        notes.append(f"{who} {'needs' if len(fix.needing) == 1 else 'need'} another step, too")
    if fix.doubtful:
        notes.append(f"{', '.join(fix.doubtful)} would then have two of that name: which one wins is open")
    return f"{fix.what}  ({'; '.join(notes)})" if notes else fix.what


# All skills ---------------------------------------------------------------------------------------


class HostCount(NamedTuple):
    """How many skills of a place one host sees and misses, what its list costs, and which skills pay for that.

    `silent` are those of the missing that it says nothing about, `open` those of which nobody can say.
    """

    host: str
    seen: int
    missing: int
    silent: int
    open: int
    chars: int
    tokens: int
    budget: int | None
    cut: Sequence[str]
    dropped: Sequence[str]


_SKILLS_ON_SCREEN = 14


class HostRow(NamedTuple):
    """One skill, and who sees it."""

    name: str
    path: str
    hosts: Mapping[str, bool | None]


class Beside(NamedTuple):
    """What is said below the table: the longest descriptions, and folders that are spelt nearly right."""

    expensive: Sequence[tuple[str, int]]
    warnings: Sequence[str]


def hosts_view(
    counts: Sequence[HostCount], rows: Sequence[HostRow], beside: Beside, where: PathDisplay, screen: Screen
) -> str:
    """Who sees how many, then a line for each skill with a mark for each host."""
    lines = _matrix(counts, rows, where, screen) if rows else _nothing(counts, screen)
    lines += [line for count in counts for loss in _losses(count) for line in _wrapped(loss, screen)]
    if beside.expensive:
        dear = ", ".join(f"{visible(name)} ({chars:,})" for name, chars in beside.expensive)
        lines += _wrapped(f"Longest descriptions, in characters: {dear}", screen)
    lines += [line for warning in beside.warnings for line in _wrapped(f"warning: {warning}", screen, "yellow")]
    return "\n".join(lines) + "\n"


def _wrapped(text: str, screen: Screen, style: Style | None = None) -> list[str]:
    return screen.table([(text,)], (style,), wrap=True)


def _nothing(counts: Sequence[HostCount], screen: Screen) -> list[str]:
    return [
        *_wrapped(f"No skill lies where any of {len(counts)} hosts looks, here or at home.", screen),
        *_wrapped("Where they look: skillshelf profile host:NAME.  A first skill: skillshelf new NAME", screen),
    ]


def _matrix(counts: Sequence[HostCount], rows: Sequence[HostRow], where: PathDisplay, screen: Screen) -> list[str]:
    keys = {count.host: chr(ord("a") + number) for number, count in enumerate(counts)}
    head = ("", "HOST", "SEES", "MISSES", "SILENT", "?", "ITS LIST")
    table = [(keys[c.host], c.host, str(c.seen), str(c.missing), str(c.silent), str(c.open), _cost(c)) for c in counts]
    lines = screen.table([head, *table], ("dim", "bold", None, None, "yellow", None, None))
    names = _told_apart(rows, where)
    uneven = sorted(zip(rows, names, strict=True), key=lambda pair: all(pair[0].hosts.values()))
    shown = uneven[:_SKILLS_ON_SCREEN] if screen.columns is not None else uneven
    marks = [(" ".join(_MARKS[row.hosts[host]] for host in keys), name) for row, name in shown]
    lines += ["", *screen.table([(" ".join(keys.values()), "SKILL"), *marks], (None, "bold"))]
    if len(uneven) > len(shown):
        lines.append(f"… and {len(uneven) - len(shown)} more: skillshelf hosts | less")
    legend = "+ told to the model, - not, ? not established.  One skill: skillshelf why NAME"
    return [*lines, "", *_wrapped(legend, screen)]


def _told_apart(rows: Sequence[HostRow], where: PathDisplay) -> list[str]:
    """The name of each row, with its path where several have the name."""
    several = Counter(row.name for row in rows)
    return [f"{row.name}  {where.short(row.path)}" if several[row.name] > 1 else row.name for row in rows]


_NAMES_SHOWN = 3


def _losses(count: HostCount) -> Iterator[str]:
    """Which skills a list that is too long costs their description or their place."""
    if count.cut and HOSTS[count.host].overflow == "drop-descriptions":
        yield f"{count.host} has no room for the description of {_some(count.cut)}"
    elif count.cut and HOSTS[count.host].overflow == "drop-least-used":
        yield f"{count.host} has no room for {len(count.cut)} descriptions: those of the skills used least"
    elif count.cut:
        yield f"{count.host} shortens the description of {_some(count.cut)}"
    if count.dropped:
        yield f"{count.host} leaves out {_some(count.dropped)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return visible(", ".join(names[:_NAMES_SHOWN])) + more


def _cost(count: HostCount) -> str:
    budget = f" of {count.budget:,}" if count.budget is not None else ""
    lost = f"{len(count.cut)} cut, " if count.cut else ""
    lost += f"{len(count.dropped)} dropped, " if count.dropped else ""
    # What is lost stands first: a narrow screen ends before the rest.
    return f"{lost}~{count.tokens:,} tokens, {count.chars:,}{budget} chars"


def diff_view(
    first: str, second: str, rows: Sequence[tuple[HostRow, Verdict, Verdict]], where: PathDisplay, screen: Screen
) -> str:
    """The skills that two hosts treat differently."""
    if not rows:
        return f"{first} and {second} see the same skills here.\n"
    names = _told_apart([row for row, _, _ in rows], where)
    table = [(name, _side(one), _side(two)) for name, (_, one, two) in zip(names, rows, strict=True)]
    lines = screen.table([("SKILL", first, second), *table], ("bold", None, None))
    return "\n".join([*lines, "", "Why: skillshelf why NAME"]) + "\n"


def _side(verdict: Verdict) -> str:
    return f"{_WORDS[verdict.visible]} ({verdict.verdict})" if verdict.verdict != "visible" else "yes"


def _word(verdict: Verdict) -> str:
    return _WORDS[verdict.visible]
