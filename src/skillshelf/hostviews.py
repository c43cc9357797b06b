"""Verdicts, counts and links to what a person is shown about hosts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from skillshelf.hosts import HOSTS
from skillshelf.terminal import Screen, Style
from skillshelf.text import fold, visible
from skillshelf.verdicts import Verdict
from skillshelf.views import Where

__all__ = ["Asked", "HostCount", "diff_view", "hosts_view", "why_view"]

_WORDS = {True: "yes", False: "no", None: "?"}
_STYLES: Mapping[str, Style] = {"yes": "green", "no": "red", "?": "yellow"}
_MARKS = {True: "+", False: "-", None: "?"}


class Asked(NamedTuple):
    """One file, the verdict of every host asked, and what helps: who would see it, and how."""

    path: str
    verdicts: Sequence[Verdict]
    help: Sequence[tuple[tuple[str, ...], str]]


# One skill ----------------------------------------------------------------------------------------

_FIXES_SHOWN = 4


def why_view(name: str, asked: Sequence[Asked], where: Where, screen: Screen) -> str:
    """For each file that is meant: a line for each host, the failing ones first, and what to do."""
    lines: list[str] = []
    for file in asked:
        seen = sum(verdict.visible is True for verdict in file.verdicts)
        lines += [
            *([""] if lines else []),
            screen.paint(visible(name), "bold") + f"  {visible(where.short(file.path))}",
            f"{seen} of {len(file.verdicts)} hosts tell their model about it.",
        ]
        lines += _verdict_lines(file.verdicts, screen, fold_seen=len(asked) > 1)
        lines += _help_lines(file, screen)
    doubts = sorted({verdict.host for file in asked for verdict in file.verdicts if HOSTS[verdict.host].grade != "R"})
    if doubts:
        lines += ["", screen.paint(f"Not run, but read or documented: {', '.join(doubts)}. More: docs/hosts.md", "dim")]
    return "\n".join(lines) + "\n"


def _verdict_lines(verdicts: Sequence[Verdict], screen: Screen, *, fold_seen: bool) -> Iterator[str]:
    rank = {False: 0, None: 1, True: 2}
    ordered = sorted(verdicts, key=lambda verdict: rank[verdict.visible])
    plain = [verdict.host for verdict in ordered if verdict.verdict == "visible"]
    if not fold_seen and len(plain) < len(verdicts):
        plain = []
    rows = [
        (verdict.host, _WORDS[verdict.visible], verdict.verdict, _told(verdict), fold(verdict.detail) or "-")
        for verdict in ordered
        if verdict.host not in plain
    ]
    if rows:
        head = ("HOST", "SEES", "VERDICT", "SAYS SO", "DETAIL")
        yield from screen.table([head, *rows], ("bold", None, None, "dim", None))
    if plain:
        yield from screen.table([("visible:", ", ".join(plain))], ("green", None), wrap=True)


def _told(verdict: Verdict) -> str:
    if verdict.visible is not False or verdict.verdict == "hidden-from-model":
        return "-"
    return _WORDS[verdict.told]


def _help_lines(file: Asked, screen: Screen) -> Iterator[str]:
    if not file.help:
        return
    yield "What helps:"
    rows = [(_count(hosts), what) for hosts, what in file.help[:_FIXES_SHOWN]]
    yield from screen.table(rows, ("bold", "green"), indent=2, wrap=True)
    if len(file.help) > _FIXES_SHOWN:
        yield f"  … and {len(file.help) - _FIXES_SHOWN} more: --json"


def _count(hosts: Sequence[str]) -> str:
    return hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"


# All skills ---------------------------------------------------------------------------------------


class HostCount(NamedTuple):
    """How many skills of a place one host sees and misses, and what its list costs."""

    host: str
    seen: int
    missing: int
    silent: int
    chars: int
    tokens: int
    budget: int | None
    cut: int
    dropped: int


_SKILLS_SHOWN = 40


class Row(NamedTuple):
    """One skill, and who sees it."""

    name: str
    path: str
    hosts: Mapping[str, bool | None]


def hosts_view(
    counts: Sequence[HostCount],
    rows: Sequence[Row],
    *,
    expensive: Sequence[tuple[str, int]],
    warnings: Sequence[str],
    screen: Screen,
) -> str:
    """Who sees how many, then a line for each skill with a mark for each host."""
    keys = {count.host: chr(ord("a") + number) for number, count in enumerate(counts)}
    head = ("", "HOST", "SEES", "MISSES", "SILENTLY", "ITS LIST")
    table = [(keys[c.host], c.host, str(c.seen), str(c.missing), str(c.silent), _cost(c)) for c in counts]
    lines = screen.table([head, *table], ("dim", "bold", None, None, "yellow", None))
    uneven = sorted(rows, key=lambda row: all(row.hosts.values()))
    shown = uneven[:_SKILLS_SHOWN]
    marks = [(" ".join(_MARKS[row.hosts[host]] for host in keys), row.name) for row in shown]
    lines += ["", *screen.table([(" ".join(keys.values()), "SKILL"), *marks], (None, "bold"))]
    if len(uneven) > len(shown):
        lines.append(f"… and {len(uneven) - len(shown)} more: --json")
    lines += ["", "+ told to the model, - not, ? not established.  One skill: skillshelf why NAME"]
    if expensive:
        dear = ", ".join(f"{visible(name)} ({chars:,})" for name, chars in expensive)
        lines.append(f"Longest descriptions, in characters: {dear}")
    lines += [screen.paint(f"warning: {visible(warning)}", "yellow") for warning in warnings]
    return "\n".join(lines) + "\n"


def _cost(count: HostCount) -> str:
    text = f"{count.chars:,} chars, ~{count.tokens:,} tokens"
    if count.budget is not None:
        text += f" of {count.budget:,}"
    lost = [f"{count.cut} cut"] if count.cut else []
    lost += [f"{count.dropped} dropped"] if count.dropped else []
    return text + (f": {', '.join(lost)}" if lost else "")


def diff_view(first: str, second: str, rows: Sequence[tuple[str, Verdict, Verdict]], screen: Screen) -> str:
    """The skills that two hosts treat differently."""
    if not rows:
        return f"{first} and {second} see the same skills here.\n"
    table = [(name, _side(one), _side(two)) for name, one, two in rows]
    lines = screen.table([("SKILL", first, second), *table], ("bold", None, None))
    return "\n".join([*lines, "", "Why: skillshelf why NAME"]) + "\n"


def _side(verdict: Verdict) -> str:
    return f"{_WORDS[verdict.visible]} ({verdict.verdict})" if verdict.verdict != "visible" else "yes"
