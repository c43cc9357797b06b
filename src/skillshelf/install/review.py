"""Gather what a person sees of a skill before it is installed: files, scripts, findings, and what it would shadow."""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import parse
from skillshelf.catalog.lock import LockedSkill, is_installable_name
from skillshelf.catalog.look_alikes import looks_like_others
from skillshelf.catalog.source import SourceIdentity
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import TreeFile, tree_digest
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core.disk_writes import make_folder, make_owned_folder, remove_owned_folder, sweep_owned_folders
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import folded_name, visible
from skillshelf.core.values import Catalog, CatalogSkill
from skillshelf.errors import SourceRefused
from skillshelf.install.difference import is_script
from skillshelf.lint.run import CheckFinding, Target, file_problems
from skillshelf.lint.security import SecurityFinding, security_findings

__all__ = ["SkillReview", "claims_of", "hosts_reading", "problems_in", "review_skill"]

_QUARANTINE = "skillshelf-review-"
_SECURITY = "security-"


class SkillReview(NamedTuple):
    """A fetched skill that nobody agreed to yet: where it came from, all its bytes, and what was found in them.

    `claims` are what the name of the skill would do to others: shadow one, look like one, replace one.
    """

    name: str
    identity: SourceIdentity
    contents: Mapping[str, bytes]
    listed: Mapping[str, TreeFile]
    tree: str
    description: str
    scripts: tuple[str, ...]
    problems: tuple[CheckFinding, ...]
    security: tuple[SecurityFinding, ...]
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.listed.values())

    def locked(self, hosts: Iterable[str]) -> LockedSkill:
        """Return the entry of a lock for exactly these bytes."""
        one = self.identity
        return LockedSkill(
            one.source, one.path, one.ref, one.commit, one.artifact, self.tree, len(self.listed), self.size, [*hosts]
        )


def review_skill(
    name: str,
    identity: SourceIdentity,
    contents: Mapping[str, bytes],
    *,
    notes: Sequence[str] = (),
    claims: Sequence[str] = (),
) -> SkillReview:
    """Check fetched files, which are not installed yet; raise SourceRefused if no skill may have them.

    The rules of `check` run on a copy in a private folder, where nothing is executable and nobody looks for skills.
    """
    if not is_installable_name(name):
        raise SourceRefused("skill-name", f"{name!r} is not a name that a skill can be installed as")
    listed = listed_files(contents)
    if SKILL_FILE not in contents:
        raise SourceRefused("no-skill-file", f"{name} has no {SKILL_FILE}")
    fields = parse(contents[SKILL_FILE], whole=True).fields
    declared = fields.get("name")
    if isinstance(declared, str) and declared != name:
        raise SourceRefused("name-differs", f"the source calls it {name!r}, its {SKILL_FILE} {declared!r}")
    return SkillReview(
        name,
        identity,
        contents,
        listed,
        tree_digest(listed),
        str(fields.get("description") or ""),
        tuple(path for path in sorted(contents) if is_script(path, contents[path])),
        _problems(name, contents),
        tuple(security_findings(contents)),
        tuple(notes),
        tuple(claims),
    )


@cache
def _sweep() -> None:
    """Remove what dead processes left, once: a command may review hundreds of skills."""
    sweep_owned_folders(_QUARANTINE, seconds=0.5)


def problems_in(
    name: str, contents: Mapping[str, bytes], profile: Profile, *, executables: Container[str] = frozenset()
) -> tuple[CheckFinding, ...]:
    """Return the errors and warnings of `check` in files that lie nowhere yet; their paths start at the skill."""
    _sweep()
    quarantine = make_owned_folder(_QUARANTINE)
    try:
        folder = f"{quarantine.path}/{name}"
        make_folder(folder, contents, executables=executables)
        (found,) = file_problems([Target(f"{folder}/{SKILL_FILE}", f"{folder}/{SKILL_FILE}", name)], profile)
    finally:
        remove_owned_folder(quarantine)
    inside = len(f"{folder}/")
    return tuple(one._replace(path=one.path[inside:]) for one in found)


def _problems(name: str, contents: Mapping[str, bytes]) -> tuple[CheckFinding, ...]:
    """Return the problems in files; those of the security rules are asked about by themselves."""
    found = problems_in(name, contents, find_profile(DEFAULT_PROFILE))
    return tuple(one for one in found if not one.rule.startswith(_SECURITY))


# What a name does to others -----------------------------------------------------------------------


def claims_of(
    name: str, source: str, folder: str, locked: Mapping[str, LockedSkill], catalog: Catalog
) -> Iterator[str]:
    """Yield what a skill of this name from this source, in this folder, would do to skills that exist."""
    known = locked.get(name)
    if known is not None and known.source != source:
        yield f"{name} is installed from {known.source}; this one comes from {source}"
    others = {skill.name for skill in catalog.skills} | {*locked}
    for other in sorted(others - {name}):
        if folded_name(other) == folded_name(name) or looks_like_others((name,), (other,)):
            yield f"its name looks like {visible(other)}, which is another skill"
    roots = [root.path for root in catalog.roots]
    here = roots.index(folder) if folder in roots else len(roots)
    for skill in catalog.skills:
        if folded_name(skill.name) == folded_name(name) and os.path.dirname(skill.dir) != folder:
            yield _shadow(skill, is_first=here < skill.root)


def _shadow(skill: CatalogSkill, *, is_first: bool) -> str:
    which = "a trusted skill" if skill.trusted else "a skill"
    if is_first:
        return f"it would shadow {which} of that name: {visible(skill.path)}"
    return f"it would be shadowed by {which} of that name: {visible(skill.path)}"


def hosts_reading(folder: str, kind: str, hosts: Iterable[str]) -> list[str]:
    """Return which of these hosts read a folder such as `.agents/skills` of a project or of the home folder."""
    return [
        host
        for host in hosts
        if any(rule.kind == kind and folder in rule.paths and rule.switch is None for rule in HOSTS[host].roots)
    ]
