"""The lists of skills that the pages of a team server show, kept while the catalog changes.

What follows from a skill is made when a page shows it, and what follows from all of them is taken over from the list
before: a publish changes a few of many skills.
"""

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

from skillshelf.core.limits import RELEASE_FINDINGS, TEAM_CATALOGS, TENANTS_OPEN
from skillshelf.core.text import fold, plural
from skillshelf.core.values import CatalogSkill
from skillshelf.servers.team.catalogs import CatalogKey
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.host_verdicts import HostVerdicts
from skillshelf.servers.team.release_findings import SkillFindings, TenantFindings
from skillshelf.servers.team.releases import PUBLISHED
from skillshelf.servers.team.similar_skills import SimilarPair, SimilarSkills
from skillshelf.servers.web.catalogue import (
    Preparation,
    ProblemEntry,
    ProblemGroup,
    SkillSummary,
    findings_group,
    slug_of,
    slugs_of,
)
from skillshelf.servers.web.paths import ShownPaths
from skillshelf.shelf import Shelf

__all__ = ["SkillList", "SkillLists"]

_ON_DISK = "the disk of the server"


class SkillList:
    """What follows from the skills that some callers see, which are sorted by name.

    `before` is the list that it takes the place of.
    """

    def __init__(self, skills: tuple[CatalogSkill, ...], shown: ShownPaths, before: "SkillList | None" = None) -> None:
        self.skills = skills
        self._shown = shown
        self._slugs_before: Mapping[str, str] | None = vars(before).get("slug_by_path") if before is not None else None
        self._similar: SimilarSkills = before._similar if before is not None else SimilarSkills()
        # Of these callers alone: a verdict that is there at once would tell them that somebody else has the same files.
        self.host_verdicts: HostVerdicts = before.host_verdicts if before is not None else HostVerdicts()
        self._lock = threading.Lock()
        self._comparison: threading.Thread | None = None
        # Until the new skills are compared, those of the list before are shown.
        self._collisions: tuple[ProblemEntry, ...] | None = before._collisions if before is not None else None
        self._is_compared = False
        # The findings as they were shown last, and of which state.
        self._findings: tuple[int, ProblemGroup] | None = None

    # Addresses ------------------------------------------------------------------------------------

    @cached_property
    def by_slug(self) -> Mapping[str, CatalogSkill]:
        """The skills by their addresses."""
        return {self.slug_by_path[skill.path]: skill for skill in self.skills}

    @cached_property
    def slug_by_path(self) -> Mapping[str, str]:
        """The addresses of the skills."""
        before, self._slugs_before = self._slugs_before, None
        found = self._changed(before) if before is not None else None
        if found is not None:
            return found
        slugs = slugs_of([skill.name for skill in self.skills])
        return {skill.path: slug for skill, slug in zip(self.skills, slugs, strict=True)}

    def _changed(self, before: Mapping[str, str]) -> dict[str, str] | None:
        """Return the addresses after a few skills changed; None if an address is taken, or was shared with another."""
        found = dict(before)
        new = [skill for skill in self.skills if skill.path not in before]
        if len(before) + len(new) > len(self.skills):
            paths = {skill.path for skill in self.skills}
            for path in before.keys() - paths:
                del found[path]
        slugs = [slug_of(skill.name) for skill in new]
        taken = {slug.lower() for slug in slugs}
        if len(taken) < len(new) or any(slug.lower() in taken or "~~" in slug for slug in found.values()):
            return None
        found.update((skill.path, slug) for skill, slug in zip(new, slugs, strict=True))
        return found

    def slug_named(self, name: str) -> str:
        """Return the address of the first skill of a name, empty if there is none."""
        place = bisect_left(self.skills, name, key=lambda skill: skill.name)
        found = self.skills[place : place + 1]
        return self.slug_by_path[found[0].path] if found and found[0].name == name else ""

    # Summaries ------------------------------------------------------------------------------------

    def summary(self, skill: CatalogSkill) -> SkillSummary:
        """Return a skill in short."""
        place = PUBLISHED if skill.source == PUBLISHED else _ON_DISK
        return SkillSummary(
            self.slug_by_path[skill.path], skill.name, self._shown.known(fold(skill.description)), place
        )

    @cached_property
    def places(self) -> "Mapping[str, _Summaries]":
        """All skills in short, by place and name."""
        published = [skill for skill in self.skills if skill.source == PUBLISHED]
        own = [skill for skill in self.skills if skill.source != PUBLISHED] if len(published) < len(self.skills) else []
        found = ((PUBLISHED, published), (_ON_DISK, own))
        return {place: _Summaries(self, skills) for place, skills in found if skills}

    @cached_property
    def summaries(self) -> Sequence[SkillSummary]:
        """All skills in short, by place and name."""
        return _Summaries(self, [skill for place in self.places.values() for skill in place.skills])

    # Findings -------------------------------------------------------------------------------------

    def finding_entries(self, skill: CatalogSkill, found: SkillFindings, *, slug: str = "") -> Iterator[ProblemEntry]:
        """Yield what the rules of `check` find in a skill."""
        for one in found.first:
            yield ProblemEntry(
                "error" if one.severity == "error" else "warning",
                skill.name,
                self._shown.text(fold(one.message)),
                one.rule,
                slug,
                self._shown.text(one.path) + (f":{one.line}" if one.line else ""),
                f"skillshelf explain {one.rule}",
            )

    def findings(self, findings: TenantFindings, shelf: Shelf) -> ProblemGroup:
        """Return what `check` finds in all skills; those that were not checked are checked behind the first answer."""
        shown = self._findings
        if shown is not None and shown[0] == findings.changes:
            return shown[1]
        changes, known = findings.changes, findings.of_all(self.skills, shelf)
        if known.preparing is not None:
            return findings_group(())._replace(preparing=known.preparing)
        group = findings_group(
            entry
            for skill in self.skills
            if (found := known.by_path.get(skill.path)) is not None and found.first
            for entry in self.finding_entries(skill, found, slug=self.slug_by_path[skill.path])
        )
        cut = sum(found.left_out > 0 for found in known.by_path.values())
        more = f"Of {plural(cut, 'skill')} only the first {RELEASE_FINDINGS} findings are listed." if cut else ""
        if problem := " ".join(filter(None, (known.problem, more))):
            group = group._replace(empty=problem, is_complete=False)
        if not known.problem and findings.changes == changes:
            self._findings = changes, group
        return group

    # Collisions -----------------------------------------------------------------------------------

    def collisions(self) -> ProblemGroup:
        """Return the skills whose descriptions say nearly the same; they are compared behind the first answer."""
        with self._lock:
            if not self._is_compared and self._comparison is None:
                self._comparison = threading.Thread(target=self._compare, name="skillshelf-collisions", daemon=True)
                self._comparison.start()
            found = self._collisions
        waiting = None
        if found is None:
            waiting = Preparation("Comparing descriptions", self._similar.done, self._similar.total)
        empty = "No two descriptions collide."
        return ProblemGroup("collisions", "Similar descriptions", found or (), empty, None, waiting)

    def _compare(self) -> None:
        pairs = self._similar.update(self.skills)
        by_path = {skill.path: skill for skill in self.skills} if pairs else {}
        found = tuple(self._collision(pair, by_path) for pair in pairs)
        with self._lock:
            self._collisions, self._is_compared, self._comparison = found, True, None

    def _collision(self, pair: SimilarPair, by_path: Mapping[str, CatalogSkill]) -> ProblemEntry:
        one, other = by_path[pair.path], by_path[pair.other]
        slug, second = self.slug_by_path[pair.path], self.slug_by_path[pair.other]
        entry = ProblemEntry("warning", one.name, "says nearly the same as", "description-collision", slug)
        return entry._replace(other=(other.name, second))


class _Summaries(Sequence[SkillSummary]):
    """The summaries of some skills, each made when it is asked for."""

    def __init__(self, listed: SkillList, skills: Sequence[CatalogSkill]) -> None:
        self._listed = listed
        self.skills = skills

    def __len__(self) -> int:
        return len(self.skills)

    @overload
    def __getitem__(self, at: int) -> SkillSummary: ...
    @overload
    def __getitem__(self, at: slice) -> list[SkillSummary]: ...
    def __getitem__(self, at: int | slice) -> SkillSummary | list[SkillSummary]:
        if isinstance(at, slice):
            return [self._listed.summary(skill) for skill in self.skills[at]]
        return self._listed.summary(self.skills[at])

    def __iter__(self) -> Iterator[SkillSummary]:
        return map(self._listed.summary, self.skills)


class SkillLists:
    """The lists of skills in use, by tenant and subset; the one that was not used for longest is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[CatalogKey, SkillList] = OrderedDict()
        self._findings: OrderedDict[str, TenantFindings] = OrderedDict()

    def of(self, key: CatalogKey, skills: tuple[CatalogSkill, ...], shown: ShownPaths) -> SkillList:
        """Return the list for a key, a new one if its skills have changed."""
        with self._lock:
            found = self._lists.get(key)
            if found is None or (found.skills is not skills and found.skills != skills):
                found = self._lists[key] = SkillList(skills, shown, found)
            self._lists.move_to_end(key)
            while len(self._lists) > TEAM_CATALOGS:
                self._lists.popitem(last=False)
            return found

    def findings_of(self, tenant: str, database: Database, shelf: Shelf) -> TenantFindings:
        """Return what is known of the skills of a tenant."""
        with self._lock:
            found = self._findings.get(tenant)
            if found is None:
                found = self._findings[tenant] = TenantFindings(database, tenant, shelf.profile)
            self._findings.move_to_end(tenant)
            while len(self._findings) > TENANTS_OPEN:
                self._findings.popitem(last=False)
            return found
