"""The skills among which a skill is searched for: a catalog, another root, or what a host shows."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from skillshelf.catalog.build import build
from skillshelf.catalog.build_context import required_first, shown_though_untrusted
from skillshelf.catalog.discovery import discover
from skillshelf.catalog.prompt import as_shown, catalog_text, visible_to_model
from skillshelf.catalog.search_roots import Roots
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.text import cut, fold
from skillshelf.core.values import CatalogSkill, Root
from skillshelf.errors import ConfigurationError
from skillshelf.search.collisions import copy_classes
from skillshelf.search.index import open_index, text_index
from skillshelf.search.query import Finder, SearchResult
from skillshelf.search.rank import WEIGHTS

if TYPE_CHECKING:
    from skillshelf.hosts.survey import Survey
    from skillshelf.shelf import Shelf

__all__ = ["Rivals", "is_copy", "rivals_against", "rivals_in_catalog", "rivals_on_host"]

_Rank = Callable[[str, int, Callable[[CatalogSkill], bool]], Sequence[SearchResult]]


class Rivals:
    """Skills that compete for the same requests: how they are ranked, and which of them a model is told of.

    `listed` are the positions of the skills in the catalog text, `host` the host whose text that is.
    """

    def __init__(
        self, skills: Sequence[CatalogSkill], rank: _Rank, listed: frozenset[int], host: str | None = None
    ) -> None:
        self.skills = skills
        self.listed = listed
        self.host = host
        self._rank = rank

    @cached_property
    def classes(self) -> list[int]:
        """The position of the first skill with the same text, for each skill."""
        return copy_classes(self.skills)

    def position_of(self, name: str, real_path: str) -> int | None:
        """Return the position of a file, or that of a copy of it under the same name; None if there is neither."""
        known = self._positions.get(real_path)
        return known if known is not None else self._copy_of(name, real_path)

    def _copy_of(self, name: str, real_path: str) -> int | None:
        same = self._named.get(name, ())
        return next((n for n in same if is_copy(self.skills[n].real_path, real_path)), None)

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        """The position of each skill by its real path."""
        return {skill.real_path: n for n, skill in reversed(list(enumerate(self.skills)))}

    @cached_property
    def _named(self) -> Mapping[str, Sequence[int]]:
        """The positions of the skills of each name."""
        named: dict[str, list[int]] = {}
        for n, skill in enumerate(self.skills):
            named.setdefault(skill.name, []).append(n)
        return named

    @cached_property
    def _by_path(self) -> Mapping[str, int]:
        return {skill.path: n for n, skill in enumerate(self.skills)}

    def search(self, query: str, most: int) -> Sequence[SearchResult]:
        """Return the best skills that models are told of."""
        return self._rank(query, most, lambda skill: self._is_shown(skill, None))

    def rank(self, query: str, most: int, own: int | None) -> list[tuple[float, int]]:
        """Return scores and positions of the best skills; a skill under test takes part although it is hidden."""
        results = self._rank(query, most, lambda skill: self._is_shown(skill, own))
        return [(result.score, self._by_path[result.skill.path]) for result in results]

    def _is_shown(self, skill: CatalogSkill, own: int | None) -> bool:
        position = self._by_path[skill.path]
        return self.skills[position].hidden is None or position == own


def is_copy(path: str, other: str) -> bool:
    """Return whether two files have the same bytes."""
    try:
        one, two = (files.read_file(file, limit=SKILL_FILE_BYTES, links="follow") for file in (path, other))
    except OSError:
        return False
    return one is not None and one == two


def rivals_in_catalog(shelf: "Shelf") -> Rivals:
    """Return the skills of a catalog, as the search tool ranks them; those of untrusted folders count like others."""
    skills = _judged_alike(shelf.catalog.skills, shelf)
    listed = _listed(required_first(skills, shelf.settings.system)[0], shelf.profile, shelf.settings_in_force)
    return Rivals(
        skills,
        lambda query, most, keep: shelf.ranking(query, most=most, keep=keep),
        frozenset(n for n, skill in enumerate(skills) if skill.path in listed),
    )


def rivals_against(shelf: "Shelf", judged: Sequence[CatalogSkill], root: str) -> Rivals:
    """Return some skills and those of a root as one catalog; a name in both is that of the skill under test."""
    names = {skill.name for skill in judged}
    others = [skill for skill in _skills_below(shelf, root) if skill.name not in names]
    skills = sorted([*_judged_alike(judged, shelf), *others], key=lambda skill: (skill.name, skill.path))
    listed = _listed(skills, shelf.profile, shelf.settings_in_force)
    weights = WEIGHTS._replace(terms=shelf.profile.search_terms)
    finder = Finder(
        skills,
        cwd=shelf.environment.cwd,
        scopes=shelf.scopes,
        ranking=shelf.profile.ranking,
        terms=shelf.profile.search_terms,
        prefix=shelf.profile.search_prefix,
        open_index=lambda: open_index(skills, None, stream=shelf.progress, weights=weights),
    )
    return _of_finder(finder, frozenset(n for n, skill in enumerate(skills) if skill.path in listed))


def rivals_on_host(survey: "Survey", host: str) -> Rivals:
    """Return the skills that a host lists, each with as much of its description as its model is shown.

    The model of a host chooses by this text, so bodies do not count, and a skill that is cut from it is not found.
    """
    state = survey.state(host)
    listed = visible_to_model(state.listed)
    shown = [
        skill._replace(description=text)
        for skill, text in zip(listed, _shown_descriptions(listed, state.profile), strict=False)
    ]
    finder = Finder(
        shown,
        cwd=survey.environment.cwd,
        scopes=(),
        ranking="relevance",
        open_index=lambda: text_index(shown),
    )
    return _of_finder(finder, frozenset(range(len(shown))), host)


def _of_finder(finder: Finder, listed: frozenset[int], host: str | None = None) -> Rivals:
    return Rivals(finder.skills, lambda query, most, keep: finder.ranking(query, most=most, keep=keep), listed, host)


def _judged_alike(skills: Sequence[CatalogSkill], shelf: "Shelf") -> list[CatalogSkill]:
    return [
        shown_though_untrusted(skill, shelf.settings, shelf.profile) if skill.hidden == "untrusted" else skill
        for skill in skills
    ]


def _listed(skills: Sequence[CatalogSkill], profile: Profile, settings: Settings) -> frozenset[str]:
    """Return the paths of the skills that the catalog text has within its budget."""
    text = catalog_text(skills, profile, settings)
    return frozenset(skill.path for skill in visible_to_model(skills)[: text.entries])


def _skills_below(shelf: "Shelf", root: str) -> list[CatalogSkill]:
    """Return the skills of a folder by the rules of the profile, whoever it belongs to."""
    real = files.real_path(root)
    if files.kind_at(real) != "folder":
        raise ConfigurationError(f"--against {root}: no such folder")
    one = Root(root, real, "custom", "custom", "against", "contained", trusted=True)
    found = discover([one], shelf.profile, repository=real)
    catalog = build(found, Roots((one,), real, ()), shelf.profile, Settings(), look_alikes="ignore")
    return [skill for skill in catalog.skills if skill.hidden is None]


def _shown_descriptions(skills: Sequence[CatalogSkill], profile: Profile) -> list[str]:
    """Return what a host's list says of each skill that is in it."""
    text = catalog_text(skills, profile, Settings())
    most = profile.description_shown
    whole = [fold(skill.description) if most is None else cut(fold(skill.description), most) for skill in skills]
    lines = text.text.split("\n") if profile.catalog_form.startswith("bullets") else []
    cut_paths = frozenset(text.cut)
    shown = as_shown(skills, profile)[: text.entries]
    return [
        _after_name(lines[n], skill.name)
        if lines and skill.path in cut_paths
        else ""
        if skill.path in cut_paths
        else whole[n]
        for n, skill in enumerate(shown)
    ]


def _after_name(line: str, name: str) -> str:
    """Return the description in a line of a list, without the path behind it."""
    rest = line.removeprefix(f"- {fold(name)}").removeprefix(": ")
    return rest.rpartition(" (file: ")[0] if rest.endswith(")") and " (file: " in rest else rest
