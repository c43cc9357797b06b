"""Measures search where it is hard: noisy, short and foreign queries, copies, stuffed skills, a large collection."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from search_answers import Answer
from search_measures import Interval, Scored, mean_interval, percentile, rights, scored
from search_pools import (
    COPIES,
    copied_tree,
    eight_copies,
    golds,
    recombined_tree,
    stuffed_tree,
    targeted_copy,
)
from search_variants import TEXTS, VARIANTS, Query, SkillText, short

LANGUAGES = {"en": "English", "zh": "Chinese", "ja": "Japanese", "ko": "Korean"}
ASK = Path(__file__).with_name("search_answers.py")
CLEAN = "clean, all"
FEW = 3
"""The number of results of an answer that is called weak."""
Rows = list[list[str]]


class Pool(NamedTuple):
    """The skills below a folder, clean queries about them, and the Pythons to compare: an older version, and this."""

    root: Path
    queries: Sequence[Query]
    skills: Mapping[str, SkillText]
    before: str | None = None

    @property
    def pythons(self) -> list[str]:
        """The interpreters to ask, this one last."""
        return [*filter(None, [self.before]), sys.executable]


class Told(NamedTuple):
    """The answers of one version, what building its index took, and the size of that."""

    skills: int
    build: float
    size: int
    answers: Sequence[Answer]


def ask(python: str, root: Path, texts: Sequence[str], repeats: int = 1) -> Told:
    """Return the answers of a version to some queries about the skills below a folder."""
    with tempfile.TemporaryDirectory() as home:
        work = {"root": str(root), "home": home, "queries": list(texts), "repeats": repeats}
        done = subprocess.run([python, str(ASK)], input=json.dumps(work), stdout=-1, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return Told(told["skills"], told["build"], told["bytes"], [Answer(*line) for line in told["answers"]])


def interval(found: Sequence[Scored], value: Callable[[Scored], float]) -> Interval:
    """Return the mean of a value in per cent with its interval."""
    return mean_interval([value(one) for one in found], [one.group for one in found])


# Harder queries -----------------------------------------------------------------------------------


class Measured(NamedTuple):
    """One variant of the queries, with what each version made of it."""

    name: str
    queries: Sequence[Query]
    versions: Sequence[Sequence[Scored]]


def measured_variants(pool: Pool, names: Sequence[str] = tuple(VARIANTS)) -> list[Measured]:
    """Ask all versions for all variants."""
    variants = {name: list(VARIANTS[name](pool.queries, pool.skills)) for name in names}
    texts = [query.text for queries in variants.values() for query in queries]
    told = [iter(ask(python, pool.root, texts).answers) for python in pool.pythons]
    measured = []
    for name, queries in variants.items():
        versions = [[next(answers) for _ in queries] for answers in told]
        measured.append(Measured(name, queries, [_scored(queries, answers) for answers in versions]))
        if name == CLEAN:
            cut = [_scored(queries, map(_cut, answers)) for answers in versions]
            measured.append(Measured(f"{name}, weak ones cut to {FEW}", queries, cut))
    return measured


def _scored(queries: Iterable[Query], answers: Iterable[Answer]) -> list[Scored]:
    return [scored(query, answer) for query, answer in zip(queries, answers, strict=True)]


def _cut(answer: Answer) -> Answer:
    """Return an answer as a model gets it: a weak one has few results."""
    return answer._replace(paths=answer.paths[:FEW], copies=answer.copies[:FEW]) if answer.weak else answer


def variants_table(measured: Sequence[Measured]) -> Rows:
    """Return a row for each variant and language; with an older version, its gain and the difference."""
    compared = bool(measured) and len(measured[0].versions) > 1
    rows = [["queries", "language", "number", "Hit@1", "Hit@8", "NDCG@10 (95 %)"]]
    rows[0] += ["NDCG@10 before", "difference (95 %)"] if compared else []
    for variant in measured:
        for lang, language in LANGUAGES.items():
            places = [n for n, query in enumerate(variant.queries) if query.lang == lang]
            if places:
                versions = [[version[n] for n in places] for version in variant.versions]
                rows.append([variant.name, language, str(len(places)), *_cells(versions)])
    return rows


def _cells(versions: Sequence[Sequence[Scored]]) -> list[str]:
    now = versions[-1]
    hits = [f"{interval(now, lambda one: one.hit1).value:.1f}", f"{interval(now, lambda one: one.hit8).value:.1f}"]
    cells = [*hits, str(interval(now, lambda one: one.ndcg))]
    if len(versions) > 1:
        before = versions[0]
        change = [after.ndcg - old.ndcg for after, old in zip(now, before, strict=True)]
        difference = mean_interval(change, [one.group for one in now])
        cells += [f"{interval(before, lambda one: one.ndcg).value:.1f}", f"{difference}"]
    return cells


def kinds_table(measured: Sequence[Measured]) -> Rows:
    """Return the gain for each kind of message and trace, in English, worst first."""
    rows = [["variant", "kind", "number", "NDCG@10 (95 %)"]]
    for variant in measured:
        kinds: dict[str, list[Scored]] = {}
        for query, one in zip(variant.queries, variant.versions[-1], strict=True):
            if query.lang == "en" and query.kind and "+" not in query.kind:
                kinds.setdefault(query.kind, []).append(one)
        gains = {kind: interval(found, lambda one: one.ndcg) for kind, found in kinds.items()}
        for kind in sorted(gains, key=lambda kind: gains[kind].value):
            rows.append([variant.name, kind, str(len(kinds[kind])), str(gains[kind])])
    return rows


def short_lists(pool: Pool) -> dict[str, list[list[str]]]:
    """Return the names of the first eight results of each short query, for each version."""
    texts = list(TEXTS["short"])
    told = [ask(python, pool.root, texts).answers for python in pool.pythons]
    names = {path: skill.name for path, skill in pool.skills.items()}
    return {
        text: [[names.get(path, path) for path in answers[n].paths[:8]] for answers in told]
        for n, text in enumerate(texts)
    }


def short_table(pool: Pool) -> Rows:
    """Return the first eight results of each short query, by name."""
    heads = ["before", "now"] if pool.before else ["now"]
    return [["query", *heads], *([text, *map(", ".join, lists)] for text, lists in short_lists(pool).items())]


# Skills that want to be found ---------------------------------------------------------------------


def hostile_table(pool: Pool) -> Rows:
    """Return what copies and stuffed skills do to the short English queries, for each version."""
    queries = short(pool.queries)
    rows = [["collection", "version", "places of 8 taken", "one of them first", "right one lost from 8", "NDCG@10"]]
    chosen = golds(queries)
    others = sorted(pool.skills.keys() - set(chosen))[:: max(1, len(pool.skills) // max(1, len(chosen)))]
    with tempfile.TemporaryDirectory() as folder:
        trees: dict[str, tuple[Path, Mapping[str, set[str]]]] = {}
        makers = {
            "eight copies of each right skill": (chosen, eight_copies),
            "eight copies of other skills": (others[: len(chosen)], eight_copies),
            "a targeted copy of each right skill": (chosen, targeted_copy),
        }
        for number, (name, (paths, copier)) in enumerate(makers.items()):
            root = Path(folder) / str(number)
            trees[name] = root, copied_tree(pool.root, root, paths, pool.skills, copier)
        stuffed = Path(folder) / "stuffed"
        trees["four stuffed skills"] = stuffed, {"": stuffed_tree(pool.root, stuffed)}
        clean = [ask(python, pool.root, [query.text for query in queries]).answers for python in pool.pythons]
        for name, (root, made) in trees.items():
            for python, unharmed in zip(pool.pythons, clean, strict=True):
                version = "now" if python == sys.executable else "before"
                answers = ask(python, root, [query.text for query in queries]).answers
                rows.append([name, version, *_harm(queries, answers, unharmed, made)])
    return rows


def _harm(
    queries: Sequence[Query], answers: Sequence[Answer], unharmed: Sequence[Answer], made: Mapping[str, set[str]]
) -> list[str]:
    """Return the share of places that copies take, and what is lost; a right skill that a copy stands for is lost."""
    bad = set().union(*made.values())
    taken = [sum(path in bad for path in answer.paths[:8]) for answer in answers]
    first = [float(bool(bad & set(answer.paths[:1]))) for answer in answers]
    plain = [answer._replace(copies=[[] for _ in answer.paths]) for answer in answers]
    lost = [
        float(any(rights(old, query.gold)[:8]) and not any(rights(new, query.gold)[:8]))
        for query, new, old in zip(queries, plain, unharmed, strict=True)
    ]
    groups = [min(query.gold) for query in queries]
    gains = [scored(query, answer).ndcg for query, answer in zip(queries, plain, strict=True)]
    shares = [f"{mean_interval(values, groups)} %" for values in (first, lost)]
    return [f"{sum(taken) / len(taken):.2f}", *shares, str(mean_interval(gains, groups))]


assert COPIES == 8, "the tables say eight"


# Large collections, and versions side by side -----------------------------------------------------


def large_table(pool: Pool, more: int) -> Rows:
    """Return gain, time and size of the corpus alone and with so many synthetic skills."""
    names = ["clean, all", "chat", "trace"]
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large"
        recombined_tree(pool.root, large, more, pool.skills)
        return cost_rows(pool, {"the corpus": pool.root, f"and {more:,} synthetic": large}, names)


def cost_rows(pool: Pool, trees: Mapping[str, Path], names: Sequence[str]) -> Rows:
    """Return gain in English and CJK, time, and size for some variants over some collections, for each version."""
    rows = [
        ["skills", "version", "queries", "English NDCG@10", "CJK NDCG@10", "ms p50 / p99", "build CPU s", "index MB"]
    ]
    variants = {name: list(VARIANTS[name](pool.queries, pool.skills)) for name in names}
    texts = [query.text for queries in variants.values() for query in queries]
    for name, root in trees.items():
        for python in pool.pythons:
            version = "now" if python == sys.executable else "before"
            told = ask(python, root, texts, repeats=3)
            answers = iter(told.answers)
            for variant, queries in variants.items():
                cells = _cost_cells(queries, [next(answers) for _ in queries])
                size = f"{told.size / 1e6:.1f}"
                rows.append([f"{name} ({told.skills:,})", version, variant, *cells, f"{told.build:.1f}", size])
    return rows


def _cost_cells(queries: Sequence[Query], answers: Sequence[Answer]) -> list[str]:
    """Return the gain in English and in other languages, and the times of some answers."""
    pairs = list(zip(queries, answers, strict=True))
    groups = [[scored(*pair) for pair in pairs if (pair[0].lang == "en") == english] for english in (True, False)]
    times = [answer.ms for answer in answers]
    gains = [str(interval(group, lambda one: one.ndcg)) for group in groups]
    return [*gains, f"{percentile(times, 50):.1f} / {percentile(times, 99):.1f}"]
