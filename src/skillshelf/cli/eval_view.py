"""Lay out the results of `eval` for a person."""

from collections import Counter
from collections.abc import Iterator, Sequence

from skillshelf.core.console import PathDisplay, Screen
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, plural, shorten, visible
from skillshelf.evals.findability import FOUND_AMONG, NamedCollision, QueryResult, SkillResult
from skillshelf.evals.reports import Worsening, reason_of

__all__ = ["EvalView", "eval_text"]

_COLLISIONS_SHOWN = 20
_QUERY_CELLS = 60
_CALIBRATION = (
    "This is a test of findability, without a model: a skill that is not found is not chosen, but one that is found "
    "may still not be. Over 271 queries with known answers among 3,000 skills the right skill is first for {} %, "
    "among the first three for {} % and among the first eight for {} %."
)
FOUND_AT = (71, 87, 94)
"""Shares of the open queries with a known answer, in per cent, as docs/eval.md gives them."""


class EvalView(NamedTuple):
    """The results, the number of skills they were found among, and what is worse than before."""

    results: Sequence[SkillResult]
    among: int
    profile: str
    worse: Sequence[Worsening]
    where: PathDisplay


def eval_text(view: EvalView, screen: Screen, *, compared: bool) -> str:
    """Return the results as lines: failed queries first, then descriptions that collide."""
    tested = [result for result in view.results if result.queries]
    lines = [*(_no_queries(view) if not tested else _tested(tested, view, screen)), ""]
    lines += _collisions(view.results, screen)
    if compared:
        lines += [*_compared(view.worse, screen), ""]
    text = _CALIBRATION.format(*FOUND_AT)
    return "\n".join([*lines, *screen.table([(text,)], ("dim",), wrap=True)]) + "\n"


def _no_queries(view: EvalView) -> Iterator[str]:
    number = len(view.results)
    if not number:
        yield "There are no skills to test here. Make one: skillshelf new NAME"
        return
    yield f"No queries to test {plural(number, 'skill')} with."
    yield ""
    if notes := [(view.where.short(result.path), note) for result in view.results for note in result.notes]:
        yield from (f"{visible(path)}: {visible(note)}" for path, note in notes)
        return
    folder = view.where.short(view.results[0].path.rpartition("/")[0])
    yield f"Write some, as {visible(folder)}/evals/eval_queries.json:"
    yield ""
    yield '  [{"query": "a request that should find this skill", "should_trigger": true},'
    yield '   {"query": "a request for something near it", "should_trigger": false}]'
    yield ""
    yield "Then run: skillshelf eval"


def _tested(tested: Sequence[SkillResult], view: EvalView, screen: Screen) -> Iterator[str]:
    number = plural(len({result.path for result in tested}), "skill")
    hosts = len({result.host for result in tested if result.host})
    where = f"on {plural(hosts, 'host')}" if hosts else f"among {view.among:,} (profile {view.profile})"
    yield f"{number} tested {where}"
    names = Counter((result.name, result.host) for result in tested)
    for result in tested:
        yield ""
        passed = sum(query.outcome == "pass" for query in result.queries)
        is_good = passed == len(result.queries)
        name = shorten(visible(result.name), 64) + (f" on {result.host}" if result.host else "")
        head = f"{passed} of {len(result.queries)} queries pass"
        yield f"{screen.paint(name, 'bold')}  {screen.paint(head, 'green' if is_good else 'red')}{_shares(result)}"
        if names[result.name, result.host] > 1:
            yield f"  {screen.paint(visible(view.where.short(result.path)), 'dim')}"
        if result.problem:
            yield f"  {visible(result.problem)}"
        failed = [query for query in result.queries if query.outcome != "pass"]
        rows = [_row(query, result.host) for query in failed]
        yield from screen.table(rows, ("red", None, "dim"), indent=2)


def _shares(result: SkillResult) -> str:
    count = len(result.positives)
    if not count:
        return ""
    at = [sum(query.rank is not None and query.rank <= places for query in result.positives) for places in (1, 3, 8)]
    wins = f"; {plural(result.false_wins, 'false win')}" if result.false_wins else ""
    return f"  (first {at[0]}, in {FOUND_AMONG} {at[1]}, in 8 {at[2]} of {count}{wins})"


def _row(query: QueryResult, host: str | None) -> tuple[str, str, str]:
    return query.outcome.upper(), shorten(visible(fold(query.query)), _QUERY_CELLS), reason_of(query, host)


def _collisions(results: Sequence[SkillResult], screen: Screen) -> Iterator[str]:
    """Yield each pair of similar descriptions once, the closest first."""
    pairs: dict[tuple[str, ...], tuple[float, str, NamedCollision]] = {}
    for result in results:
        for other in result.collisions:
            pairs.setdefault(tuple(sorted((result.path, other.path))), (other.margin, result.name, other))
    if not pairs:
        return
    yield f"{plural(len(pairs), 'pair')} of skills with nearly the same description:"
    ordered = sorted(pairs.items(), key=lambda item: (item[1][0], item[0]))
    for _, (margin, name, other) in ordered[:_COLLISIONS_SHOWN]:
        names = f"{shorten(visible(name), 40)} and {shorten(visible(other.name), 40)}"
        yield f"  {screen.paint(names, 'bold')}  margin {margin:.2f}"
        rows = [("both:", other.shared), (f"{name}:", other.own), (f"{other.name}:", other.other)]
        shown = [(shorten(visible(label), 40), ", ".join(words) or "(no word of its own)") for label, words in rows]
        yield from screen.table(shown, ("dim", None), indent=4)
    if len(pairs) > _COLLISIONS_SHOWN:
        yield f"  ... and {len(pairs) - _COLLISIONS_SHOWN:,} more (--json lists all)"
    yield ""


def _compared(worse: Sequence[Worsening], screen: Screen) -> Iterator[str]:
    if not worse:
        yield "Nothing is worse than in the baseline."
        return
    yield f"{plural(len(worse), 'result')} worse than in the baseline:"
    rows = [(one.skill, one.host or "", shorten(visible(fold(one.query)), _QUERY_CELLS)) for one in worse]
    yield from screen.table(rows, ("bold", None, "red"), indent=2)
