"""Measures what the history of use adds: half of the queries ended in a load before, the other half is asked now.

Queries are divided by right skill for the loss of skills without history, and within each skill for the gain of those
that have one.
"""

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from search_answers import DEPTH, Answer, our_shelf
from search_measures import Scored, mean_interval, scored
from search_robustness import Pool, Rows
from search_variants import Query

CONSTANT = 0.3
"""The bonus of every skill that was loaded before, whatever the query, for comparison."""


class PastSearch(NamedTuple):
    """A past query, and the path of the skill that was loaded after it."""

    query: str
    path: str


Prior = Callable[[Mapping[str, float]], Any]


class Machine:
    """The skills of a pool with a finder of their own, so that a history can be given to each search."""

    def __init__(self, pool: Pool, home: Path) -> None:
        from skillshelf.search.index import open_index
        from skillshelf.search.query import Finder

        self.root = pool.root
        shelf = our_shelf(pool.root, home=home, use_cache=False)
        skills = shelf.catalog.skills
        index = open_index(skills, None)
        options = {"cwd": str(pool.root), "scopes": ["custom"], "ranking": "relevance"}
        self._finder = Finder(skills, open_index=lambda: index, **options)
        self.hostile = ""
        self._real = {os.path.relpath(skill.path, pool.root): skill.real_path for skill in skills}

    def report(self, query: str, prior: Prior | None = None) -> Any:
        """Return the report of one search."""
        return self._finder.search(query, limit=DEPTH, keep=lambda skill: True, prior=prior)

    def scores(self, queries: Sequence[Query], prior: Prior | None) -> Iterator[tuple[Scored, bool]]:
        """Yield what the answers to some queries are worth, and whether the hostile skill is among the first eight."""
        for query in queries:
            results = self.report(query.text, prior).results
            paths = [os.path.relpath(result.skill.path, self.root) for result in results]
            yield scored(query, Answer(paths, [[] for _ in paths], 0.0)), self.hostile in paths[:8]

    def similar(self, past: Sequence[PastSearch]) -> Prior:
        """Return the prior of the product for some past searches."""
        from skillshelf.search.usage_prior import UsagePrior, rarest

        def terms(query: str) -> list[str]:
            return list(rarest({term: self._finder.index.weight(term) for term in self.report(query).terms}))

        known = [one for one in past if one.path in self._real]
        return UsagePrior.from_searches((terms(one.query), self._real[one.path]) for one in known).for_query

    def constant(self, past: Sequence[PastSearch]) -> Prior:
        """Return a prior that gives the same bonus to every skill of some past searches."""
        from skillshelf.search.usage_prior import PRIOR_VERSION, QueryPrior, UsageBonus

        paths = sorted({self._real[one.path] for one in past if one.path in self._real})
        prior = QueryPrior(PRIOR_VERSION, {path: UsageBonus(CONSTANT, 1) for path in paths})
        return lambda weights: prior if paths else None


# Histories ----------------------------------------------------------------------------------------


class Division(NamedTuple):
    """Past queries, later ones about the same skills, and those about skills that were never loaded."""

    past: Sequence[Query]
    later: Sequence[Query]
    never: Sequence[Query]


def divisions(queries: Sequence[Query]) -> Iterator[Division]:
    """Divide queries by right skill, and within each skill, in the four ways in which each half is asked once."""
    dice = random.Random(2)
    by_gold: dict[str, list[Query]] = {}
    for query in queries:
        by_gold.setdefault(min(query.gold), []).append(query)
    golds = sorted(by_gold)
    dice.shuffle(golds)
    for mine in by_gold.values():
        dice.shuffle(mine)
    for half, turn in ((0, 0), (0, 1), (1, 0), (1, 1)):
        used = [by_gold[gold] for gold in golds[half::2]]
        past = [query for mine in used for query in mine[turn::2]]
        later = [query for mine in used if len(mine) > 1 for query in mine[1 - turn :: 2]]
        yield Division(past, later, [query for gold in golds[1 - half :: 2] for query in by_gold[gold]])


HISTORIES = ("the right skill each time", "a wrong skill in 20 %", "and a hostile skill once", "a hostile skill alone")


def histories(division: Division, paths: Sequence[str]) -> tuple[dict[str, list[PastSearch]], str]:
    """Return what may have been loaded after the past searches, and the path of the hostile skill.

    The hostile one was loaded once, after a search that has the words of all the others.
    """
    dice = random.Random(5)
    right = [PastSearch(query.text, min(query.gold)) for query in division.past]
    wrong = [one._replace(path=dice.choice(paths)) if dice.random() < 0.2 else one for one in right]
    innocent = {path for query in (*division.past, *division.never) for path in query.gold}
    hostile = dice.choice(sorted(set(paths) - innocent))
    once = PastSearch(" ".join(query.text for query in division.past), hostile)
    return dict(zip(HISTORIES, ([*right], wrong, [*right, once], [once]), strict=True)), hostile


Group = tuple[list[Scored], list[Scored], list[bool]]
"""What later queries and those about other skills are worth, and whether the hostile skill is among the first eight."""


def history_table(pool: Pool, home: Path) -> Rows:
    """Return what histories add for skills that were loaded before, and cost those that never were."""
    machine = Machine(pool, home)
    found: dict[tuple[str, str], Group] = {}
    for division in divisions(pool.queries):
        past, hostile = histories(division, sorted(pool.skills))
        machine.hostile = hostile
        _add(found, ("none", ""), machine, division, None)
        for name, history in past.items():
            _add(found, (name, "similar searches"), machine, division, machine.similar(history))
            _add(found, (name, "constant"), machine, division, machine.constant(history))
    plain = found["none", ""]
    heads = [
        f"{told} ({len(group)}): NDCG@10" for told, group in zip(("loaded before", "never loaded"), plain, strict=False)
    ]
    rows = [["history", "bonus", *heads, "difference, loaded before", "difference, never loaded", "hostile in 8, %"]]
    for (name, bonus), group in found.items():
        means = [f"{100 * sum(one.ndcg for one in part) / max(1, len(part)):.1f}" for part in group[:2]]
        changes = [_change(group[n], plain[n]) if bonus else "" for n in (0, 1)]
        rows.append([name, bonus, *means, *changes, f"{100 * sum(group[2]) / len(group[2]):.1f}"])
    return [*rows, _empty_history(machine, pool.queries)]


def _add(
    found: dict[tuple[str, str], Group], key: tuple[str, str], machine: Machine, division: Division, prior: Prior | None
) -> None:
    """Ask all queries of a division with a history, and add what they are worth."""
    later, never, hostile = found.setdefault(key, ([], [], []))
    for queries, group in ((division.later, later), (division.never, never)):
        for one, is_hostile in machine.scores(queries, prior):
            group.append(one)
            hostile.append(is_hostile)


def _change(now: Sequence[Scored], plain: Sequence[Scored]) -> str:
    differences = [one.ndcg - old.ndcg for one, old in zip(now, plain, strict=True)]
    return str(mean_interval(differences, [one.group for one in now]))


def _empty_history(machine: Machine, queries: Sequence[Query]) -> list[str]:
    """Return whether a history without uses gives the same results and scores as none."""
    prior = machine.similar([])
    same = sum(_results(machine, query, prior) == _results(machine, query, None) for query in queries)
    told = f"{same} of {len(queries)} reports are the same to the last digit"
    return ["without uses", "similar searches", told, "", "", "", ""]


def _results(machine: Machine, query: Query, prior: Prior | None) -> list[tuple[float, str]]:
    return [(result.score, result.skill.path) for result in machine.report(query.text, prior).results]
