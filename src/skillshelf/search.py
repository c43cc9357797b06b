"""A query to ranked skills: exact path, exact name, prefix of a name, then shared words."""

import os
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from skillshelf.errors import ConfigurationError
from skillshelf.values import CatalogSkill

__all__ = ["SearchReport", "SearchResult", "search"]

Reason = Literal["exact_path", "exact_name", "prefix", "token_overlap"]
SCORES: dict[Reason, int] = {"exact_path": 1000, "exact_name": 900, "prefix": 700, "token_overlap": 100}
_TOKEN = re.compile(r"[^\W_]+")


class SearchResult(NamedTuple):
    """A skill, how well it fits, and in which way."""

    score: float
    reason: Reason
    skill: CatalogSkill


class SearchReport(NamedTuple):
    """The best results, how many they are, and whether there were more."""

    query: str
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which nobody calls on a report
    truncated: bool
    results: tuple[SearchResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "query": self.query,
            "count": self.count,
            "truncated": self.truncated,
            "results": [
                {"score": result.score, "reason": result.reason, "skill": result.skill.to_dict()}
                for result in self.results
            ],
        }


def search(skills: Sequence[CatalogSkill], query: str, *, limit: int, scope: str | None, cwd: str) -> SearchReport:
    """The skills that fit a query, best first; the same answer for the same skills, always."""
    if limit < 1:
        raise ConfigurationError(f"a limit is at least 1, not {limit}")
    wanted = query.strip()
    chosen = [skill for skill in skills if scope is None or skill.scope == scope]
    found = [result for skill in chosen if wanted and (result := _fit(skill, wanted, cwd))]
    found.sort(key=lambda result: (-result.score, result.skill.root, result.skill.path))
    return SearchReport(query, min(limit, len(found)), len(found) > limit, tuple(found[:limit]))


def _fit(skill: CatalogSkill, query: str, cwd: str) -> SearchResult | None:
    lowered = query.lower()
    path = os.path.normpath(os.path.join(cwd, query))
    if path in (skill.path, skill.dir):
        return SearchResult(SCORES["exact_path"], "exact_path", skill)
    name = skill.name.lower()
    if name == lowered:
        return SearchResult(SCORES["exact_name"], "exact_name", skill)
    if name.startswith(lowered):
        return SearchResult(SCORES["prefix"], "prefix", skill)
    shared = set(_TOKEN.findall(lowered)) & set(_TOKEN.findall(f"{name} {skill.description.lower()}"))
    if not shared:
        return None
    return SearchResult(SCORES["token_overlap"] + len(shared), "token_overlap", skill)
