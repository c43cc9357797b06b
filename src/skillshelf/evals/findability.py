"""Test without a model whether skills are found: by search, and in the list that a model is shown.

This is a test of findability and no more. A skill that is found may still not be chosen by a model.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.core import files
from skillshelf.core.console import watched
from skillshelf.core.limits import EVAL_COLLISION_SKILLS, EVAL_DEPTH
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import near
from skillshelf.core.values import Catalog, CatalogSkill
from skillshelf.errors import SkillNotFound
from skillshelf.evals.cases import SkillCases, TriggerQuery, read_cases
from skillshelf.evals.rivals import Rivals, is_copy
from skillshelf.hosts.explain import absolute_path, is_path
from skillshelf.search.collisions import find_collisions, margin_to, words_of

if TYPE_CHECKING:
    from typing import TextIO

    from skillshelf.core.json_types import EvalModelForm, EvalOutputForm
    from skillshelf.shelf import Shelf

__all__ = [
    "FOUND_AMONG",
    "NamedCollision",
    "QueryResult",
    "SkillResult",
    "SkillUnderTest",
    "judge_skills",
    "skills_under_test",
    "with_folders",
]

Outcome = Literal["pass", "fail", "error"]

FOUND_AMONG = 3
"""A query finds a skill if it is among this many first results."""
_RECALLS = (1, 3, 8)


class QueryResult(NamedTuple):
    """Where a skill stands for one query: its rank, who is first, and whether a model is told of the skill at all.

    `margin` is the share by which the next skill is behind, or below 0 by how much the first one is ahead. `words` are
    those that a change of the description is about if the query fails: words of the query that name and description
    lack, or that they have though the skill should not be found. `model` is what runs with a model gave, in the JSON
    form.
    """

    query: str
    should_trigger: bool
    rank: int | None
    winner: str | None
    in_catalog: bool
    outcome: Outcome
    margin: float | None
    origin: str
    words: tuple[str, ...] = ()
    model: "EvalModelForm | None" = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**self._asdict(), "words": [*self.words]}

    def with_model(self, runs: "EvalModelForm") -> "QueryResult":
        """Return the result with the runs of a model, whose choice decides the outcome."""
        return self._replace(model=runs, outcome=runs["outcome"])


class NamedCollision(NamedTuple):
    """Another skill with nearly the same description, and the words that the two share or do not share."""

    name: str
    path: str
    margin: float
    shared: tuple[str, ...]
    own: tuple[str, ...]
    other: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        words = {"shared": [*self.shared], "own": [*self.own], "other": [*self.other]}
        return {"with": self.name, "path": self.path, "margin": self.margin, **words}


class SkillResult(NamedTuple):
    """The results of one skill; `problem` says why it is in no catalog, `host` whose list was tested."""

    name: str
    path: str
    host: str | None
    problem: str | None
    queries: tuple[QueryResult, ...]
    collisions: tuple[NamedCollision, ...]
    notes: tuple[str, ...] = ()
    outputs: "tuple[EvalOutputForm, ...]" = ()

    @property
    def positives(self) -> list[QueryResult]:
        """The queries that should find the skill."""
        return [query for query in self.queries if query.should_trigger]

    @property
    def false_wins(self) -> int:
        """The number of queries that should not find the skill, and whose first result it is."""
        return sum(not query.should_trigger and query.rank == 1 for query in self.queries)

    def recall(self, places: int) -> float | None:
        """Return the share of queries that find the skill among so many results; None if there are no such queries."""
        found = [query.rank is not None and query.rank <= places for query in self.positives]
        return round(sum(found) / len(found), 4) if found else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "path": self.path,
            "host": self.host,
            "problem": self.problem,
            "queries": [query.to_dict() for query in self.queries],
            "recall": {str(places): self.recall(places) for places in _RECALLS},
            "positives": len(self.positives),
            "negatives": len(self.queries) - len(self.positives),
            "false_wins": self.false_wins,
            "collisions": [collision.to_dict() for collision in self.collisions],
            "notes": [*self.notes],
            "outputs": [*self.outputs],
        }


class SkillUnderTest(NamedTuple):
    """A file with its test cases, and the skill that it is; `problem` says why it is none of the catalog.

    A file that another one shadows, and that is a copy of it, is that skill: whoever loads it gets the same.
    """

    name: str
    path: str
    cases: SkillCases
    skill: CatalogSkill | None = None
    problem: str | None = None

    @property
    def real_path(self) -> str:
        """The real path of the file."""
        return self.skill.real_path if self.skill is not None else files.real_path(self.path)


def skills_under_test(shelf: "Shelf", names: Sequence[str], queries: SkillCases | None = None) -> list[SkillUnderTest]:
    """Return the skills of a catalog with their test cases, or those of some names or paths.

    Files that are no skill of the catalog count if they have queries, or are named. `queries` are tried for the named
    skill besides its own. Raise SkillNotFound for a name that nothing has.
    """
    catalog = shelf.catalog
    found = [*_accepted(catalog.skills), *_left_out(catalog)]
    if not names:
        tested = {one.path: one.cases.queries for one in found}
        return [one for one in found if _is_tested(one, tested)]
    chosen: dict[str, SkillUnderTest] = {}
    for name in names:
        path = files.real_path(absolute_path(name, shelf.environment))
        same = [one for one in found if one.name == name or (is_path(name) and _is_at(one.path, path))]
        if not same:
            missing = SkillNotFound(name)
            missing.near = tuple(near(name, [one.name for one in found], 3))
            raise missing
        chosen |= {one.path: one for one in same}
    if queries is None:
        return list(chosen.values())
    return [one._replace(cases=_joined(queries, one.cases)) for one in chosen.values()]


def _is_tested(one: SkillUnderTest, queries: Mapping[str, Sequence[TriggerQuery]]) -> bool:
    """Return whether a file is tested where none is named: a copy only if its queries are others."""
    if one.skill is None or one.path == one.skill.path:
        return one.skill is not None or bool(one.cases.queries)
    known = {query[:2] for query in queries[one.skill.path]}
    return any(query[:2] not in known for query in one.cases.queries)


def _accepted(skills: Iterable[CatalogSkill]) -> Iterator[SkillUnderTest]:
    for skill in skills:
        # Files of a live source are not on this disk.
        cases = read_cases(skill.real_dir) if skill.scope != "remote" else SkillCases()
        yield SkillUnderTest(skill.name, skill.path, cases, skill)


def _left_out(catalog: Catalog) -> Iterator[SkillUnderTest]:
    """Yield the files that the catalog rejected, shadowed or filtered, each once."""
    rows = [(error.path, getattr(error, "name", None), f"rejected: {error.message}", "") for error in catalog.errors]
    rows += [(one.path, one.name, f"shadowed by {one.by}", one.by) for one in catalog.shadowed if not one.same_file]
    rows += [(one.path, one.name, f"left out: {one.reason}", "") for one in catalog.filtered]
    skills = {skill.path: skill for skill in catalog.skills}
    known = set(skills)
    for path, name, problem, by in rows:
        folder, _, file = path.rpartition("/")
        if path not in known and file.lower().endswith(".md"):
            known.add(path)
            one = SkillUnderTest(name or os.path.basename(folder), path, read_cases(folder), None, problem)
            winner = skills.get(by)
            is_same = winner is not None and is_copy(path, winner.real_path)
            yield one._replace(skill=winner, problem=None) if is_same else one


def _is_at(path: str, wanted: str) -> bool:
    """Return whether a file is the wanted one, or in the wanted folder: that of a skill, or of several."""
    return files.is_inside(files.real_path(path), wanted)


def with_folders(shelf: "Shelf", names: Sequence[str]) -> "Shelf":
    """Return the shelf with the folders in `names` that no root of skills has, as roots of its own.

    Skills beside a named one are among its rivals, as they are where people get a whole collection.
    """
    paths = [files.real_path(absolute_path(name, shelf.environment)) for name in names if is_path(name)]
    catalog = shelf.catalog if paths else None
    if catalog is None:
        return shelf
    known = [skill.real_path for skill in catalog.skills]
    known += [files.real_path(one.path) for one in _left_out(catalog)]
    folders = dict.fromkeys(
        folder
        for path in paths
        if not any(files.is_inside(file, path) for file in known) and (folder := _folder_of_skills(path)) is not None
    )
    if not folders:
        return shelf
    settings = shelf.settings._replace(custom_directories=(*shelf.settings.custom_directories, *folders))
    more = type(shelf)(shelf.environment, shelf.profile, settings, shelf.trust, scorer=shelf.scorer, use_cache=False)
    more.progress = shelf.progress
    return more


def _folder_of_skills(path: str) -> str | None:
    """Return the folder that has a skill, for the path of its folder or its file; a folder of skills is returned."""
    folder = os.path.dirname(path) if os.path.basename(path) == SKILL_FILE else path
    if files.kind_at(folder) != "folder":
        return None
    return os.path.dirname(folder) if files.kind_at(f"{folder}/{SKILL_FILE}") is not None else folder


def _joined(first: SkillCases, then: SkillCases) -> SkillCases:
    queries = {query.query: query for query in (*then.queries, *first.queries)}
    return SkillCases(tuple(queries.values()), then.outputs, (*first.problems, *then.problems))


def judge_skills(
    tested: Sequence[SkillUnderTest], rivals: Rivals, *, progress: "TextIO | None" = None
) -> list[SkillResult]:
    """Return the results of skills among their rivals, in the same order."""
    named = _collisions(tested, rivals, progress)
    work = watched(tested, "Trying queries", progress, total=len(tested))
    return [
        SkillResult(
            one.name,
            one.path,
            rivals.host,
            _absence(one, rivals),
            tuple(_judge(query, one, rivals) for query in one.cases.queries),
            tuple(sorted(_named(one, rivals, named), key=lambda other: (other.margin, other.name, other.path))),
            tuple(map(str, one.cases.problems)),
        )
        for one in work
    ]


def _named(
    one: SkillUnderTest, rivals: Rivals, named: Mapping[int, Sequence[NamedCollision]]
) -> Sequence[NamedCollision]:
    position = rivals.position_of(one.name, one.real_path)
    return named.get(position, ()) if position is not None else ()


def _absence(one: SkillUnderTest, rivals: Rivals) -> str | None:
    """Return why a model is not told of a skill, if that does not depend on the budget."""
    if one.problem is not None and rivals.host is None:
        return one.problem
    position = rivals.position_of(one.name, one.real_path)
    if position is None:
        return f"{rivals.host} does not list it; run `skillshelf why {one.name}`" if rivals.host else None
    hidden = rivals.skills[position].hidden
    return None if hidden is None else f"hidden from models: {hidden}"


def _judge(query: TriggerQuery, one: SkillUnderTest, rivals: Rivals) -> QueryResult:
    # What a catalog rejects, a host may list.
    own = rivals.position_of(one.name, one.real_path) if one.problem is None or rivals.host else None
    ranked = _distinct(rivals, rivals.rank(query.query, EVAL_DEPTH, own))
    place = next((n for n, (text, _) in enumerate(ranked) if own is not None and text == rivals.classes[own]), None)
    winner = None
    if ranked:
        # The copy of a skill has its text: whoever loads it gets the same.
        winner = one.name if place == 0 else rivals.skills[ranked[0][0]].name
    listed = own is not None and any(rivals.classes[at] == rivals.classes[own] for at in rivals.listed)
    found = place is not None and place < FOUND_AMONG and listed
    passed = found if query.should_trigger else place != 0
    rank = None if place is None else place + 1
    outcome: Outcome = "pass" if passed else "fail"
    text = "" if own is None or passed else f"{rivals.skills[own].name} {rivals.skills[own].description}"
    words = words_of(query.query, text, shared=not query.should_trigger) if text else ()
    return QueryResult(*query[:2], rank, winner, listed, outcome, _margin(ranked, place), query.origin, words)


def _distinct(rivals: Rivals, results: Iterable[tuple[float, int]]) -> list[tuple[int, float]]:
    """Return each text once, by the first skill that has it, with the score of its best copy."""
    found: dict[int, float] = {}
    for score, position in results:
        found.setdefault(rivals.classes[position], score)
    return list(found.items())


def _margin(ranked: Sequence[tuple[int, float]], place: int | None) -> float | None:
    if place is None:
        return None
    other = ranked[0] if place else ranked[1] if len(ranked) > 1 else None
    return margin_to(ranked[place][1], other[1] if other else None)


def _collisions(
    tested: Sequence[SkillUnderTest], rivals: Rivals, progress: "TextIO | None"
) -> Mapping[int, Sequence[NamedCollision]]:
    """Return the collisions of each skill by its position."""
    own = [rivals.position_of(one.name, one.real_path) for one in tested]
    known = [at for at in dict.fromkeys(own) if at is not None and rivals.skills[at].hidden is None]
    positions = known[:EVAL_COLLISION_SKILLS]
    found: dict[int, list[NamedCollision]] = {}
    work = watched(positions, "Comparing descriptions", progress, total=len(positions))
    for pair in find_collisions(rivals.skills, rivals.search, of=work, classes=rivals.classes):
        for own_at, other, own_words, other_words in (
            (pair.first, pair.second, pair.first_only, pair.second_only),
            (pair.second, pair.first, pair.second_only, pair.first_only),
        ):
            skill = rivals.skills[other]
            named = NamedCollision(skill.name, skill.path, pair.margin, pair.shared, own_words, other_words)
            found.setdefault(own_at, []).append(named)
    return found
