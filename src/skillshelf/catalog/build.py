"""What was found to the skills whose text the profile accepts; everything else goes to where it is explained."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

from skillshelf.catalog.build_context import BuildContext, CacheEntries, Diagnostics, Documents, hidden_by, report
from skillshelf.catalog.discovery import Found, Repeat
from skillshelf.catalog.search_roots import Roots
from skillshelf.config.profile import Filter as FilterName
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core.values import (
    Candidate,
    Catalog,
    CatalogSkill,
    Diagnostic,
    Entry,
    Filtered,
    FilterReason,
    Kept,
    Root,
    RootReport,
    Shadowed,
)

__all__ = ["accept", "build", "empty"]


def accept(found: Iterable[Found], ground: BuildContext) -> list[CatalogSkill]:
    """The skills among what was found, in the same order."""
    accepted: list[CatalogSkill] = []
    by_file: dict[str, CatalogSkill] = {}
    refused: dict[str, Candidate] = {}
    parts, notes = ground.parts, ground.notes
    for item in found:
        if isinstance(item, Kept):
            kept = _remembered(item, ground)
            accepted.append(kept)
            by_file[kept.real_path] = kept
            if notes:
                notes[item.root][item.path] = item.entry
        elif isinstance(item, Candidate):
            # Imported here: the parser and its rules take longer to load than a thousand entries of the cache.
            from skillshelf.catalog.parse import parse_candidate

            told = len(parts.warnings)
            skill = parse_candidate(item, ground)
            if skill is None:
                refused[item.real_path] = item
            else:
                accepted.append(skill)
                by_file[item.real_path] = skill
                if notes:
                    notes[item.root][item.path] = _entry(skill, item, parts.warnings[told:])
        elif isinstance(item, Repeat):
            from skillshelf.catalog.parse import parse_repeat

            again = parse_repeat(item, by_file, refused, ground)
            if again is not None:
                accepted.append(again)
                by_file.setdefault(item.real_path, again)
        elif isinstance(item, Filtered):
            parts.filtered.append(item)
        else:
            report(parts, item, ground.profile)
    return accepted


def _entry(skill: CatalogSkill, candidate: Candidate, warnings: Sequence[Diagnostic]) -> Entry:
    return Entry(
        stamp=candidate.stamp,
        real_path=skill.real_path,
        name=skill.name,
        description=skill.description,
        fields=skill.frontmatter,
        warnings=tuple((warning.rule, warning.message, warning.line) for warning in warnings),
    )


def _remembered(kept: Kept, ground: BuildContext) -> CatalogSkill:
    """The skill that an unchanged file is: what the rules said stands, what the settings say is asked anew."""
    entry = kept.entry
    root = ground.roots[kept.root]
    for rule, message, line in entry.warnings:
        ground.parts.warnings.append(Diagnostic(kept.path, rule, message, line))
    _, _, size, mtime_ns, _ = entry.stamp
    hidden = hidden_by(entry.name, kept.path, entry.real_path, entry.fields, root, ground.settings, ground.profile)
    return CatalogSkill(
        name=entry.name,
        description=entry.description,
        path=kept.path,
        real_path=entry.real_path,
        real_dir=kept.real_dir,
        scope=root.scope,
        source=root.source,
        root=kept.root,
        mtime_ns=mtime_ns,
        size=size,
        enabled=hidden != "disabled",
        trusted=root.trusted,
        hidden=hidden,
        frontmatter=entry.fields,
    )


def build(
    found: Iterable[Found],
    roots: Roots,
    profile: Profile,
    settings: Settings,
    notes: CacheEntries | None = None,
    documents: Documents | None = None,
) -> Catalog:
    """The catalog of everything that was found below the roots.

    `notes` are taken for the next look, `documents` keeps what was parsed for other profiles.
    """
    parts = Diagnostics([], list(settings.warnings), [], [])
    for problem in roots.problems:
        report(parts, problem, profile)
    read = {} if documents is None else documents
    accepted = accept(found, BuildContext(roots.roots, profile, settings, parts, notes, read))
    kept = SETTLEMENTS[profile.filter_order](accepted, roots.roots, profile, settings, parts)
    kept.sort(key=_order_key(profile, roots.roots))
    return _catalog(kept, roots, profile, parts)


def empty(roots: Roots, profile: Profile, settings: Settings) -> Catalog:
    """The catalog of a machine on which skills are switched off."""
    parts = Diagnostics([], list(settings.warnings), [], [])
    message = "skills are switched off here by `skills.enabled = false`; nothing was looked into"
    parts.warnings.append(Diagnostic(settings.switched_off_by, "skills-disabled", message))
    return _catalog([], roots, profile, parts)


def _catalog(skills: list[CatalogSkill], roots: Roots, profile: Profile, parts: Diagnostics) -> Catalog:
    paths = {skill.path for skill in skills}
    counts = [0] * len(roots.roots)
    for skill in skills:
        counts[skill.root] += 1
    return Catalog(
        profile=profile.name,
        roots=tuple(
            RootReport(root.path, root.scope, root.exists, count)
            for root, count in zip(roots.roots, counts, strict=True)
        ),
        skills=tuple(skills),
        errors=tuple(sorted(dict.fromkeys(parts.errors), key=_diagnostic_key)),
        warnings=tuple(sorted(dict.fromkeys(parts.warnings), key=_diagnostic_key)),
        shadowed=tuple(sorted(parts.shadowed, key=lambda loser: (loser.name, loser.path))),
        # With one root inside another, what one of them leaves out the other may have found.
        filtered=tuple(sorted(left_out for left_out in dict.fromkeys(parts.filtered) if left_out.path not in paths)),
        truncated=any(error.rule == "walk-limit" for error in parts.errors),
    )


def _diagnostic_key(diagnostic: Diagnostic) -> tuple[str, int, str, str]:
    return (diagnostic.path, diagnostic.line or 0, diagnostic.rule, diagnostic.message)


# Filtering ----------------------------------------------------------------------------------------

Filter = Callable[[CatalogSkill, Root, Settings], FilterReason | None]
"""Why a skill is left out, or None if this filter lets it pass."""

FILTERS: Mapping[FilterName, Filter] = {
    "source": lambda skill, root, settings: "source-off" if root.switched_off else None,
    "ignored": lambda skill, root, settings: "ignored" if _matches(skill.name, settings.ignored) else None,
    "include": lambda skill, root, settings: (
        "not-included" if settings.include and not _matches(skill.name, settings.include) else None
    ),
}


def _filter(
    skills: Iterable[CatalogSkill], roots: Sequence[Root], profile: Profile, settings: Settings, parts: Diagnostics
) -> list[CatalogSkill]:
    if not (settings.ignored or settings.include or any(root.switched_off for root in roots)):
        return list(skills)
    kept = []
    for skill in skills:
        reasons = (FILTERS[name](skill, roots[skill.root], settings) for name in profile.filters)
        reason = next((reason for reason in reasons if reason), None)
        if reason is None:
            kept.append(skill)
        else:
            parts.filtered.append(Filtered(skill.name, skill.path, reason))
    return kept


def _matches(name: str, patterns: Sequence[str]) -> bool:
    if not patterns:
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for pattern in patterns)


# Settling names -----------------------------------------------------------------------------------

Resolver = Callable[[Sequence[CatalogSkill]], Sequence[CatalogSkill]]
"""Given all skills of one name in search order, return those that keep it."""

RESOLVERS: Mapping[Literal["first", "last", "keep-all", "race"], Resolver] = {
    "first": lambda same_name: same_name[:1],
    "last": lambda same_name: same_name[-1:],
    "keep-all": lambda same_name: same_name,
    # Nobody can say who wins; the warning about the name does.
    "race": lambda same_name: same_name[:1],
}


def _settle(skills: Sequence[CatalogSkill], profile: Profile, parts: Diagnostics) -> list[CatalogSkill]:
    """The skills that keep their file and their name; the others are shadowed."""
    return _settle_names(_settle_files(skills, profile, parts), profile, parts)


def _settle_files(skills: Sequence[CatalogSkill], profile: Profile, parts: Diagnostics) -> list[CatalogSkill]:
    if len({skill.real_path for skill in skills}) == len(skills):
        return list(skills)
    by_file: dict[str, list[CatalogSkill]] = {}
    for skill in skills:
        by_file.setdefault(skill.real_path, []).append(skill)
    kept = []
    for same_file in by_file.values():
        winner = _rivals(same_file, profile)[0]
        kept.append(winner)
        for loser in same_file:
            # Two roots, one inside the other, can lead to a file by one and the same path.
            if loser.path != winner.path:
                parts.shadowed.append(Shadowed(loser.name, loser.path, winner.path, same_file=True))
    return kept


def _settle_names(skills: Sequence[CatalogSkill], profile: Profile, parts: Diagnostics) -> list[CatalogSkill]:
    key = COLLISION_KEYS[profile.collision_key]
    if len({key(skill.name) for skill in skills}) == len(skills):
        return list(skills)
    by_name: dict[str, list[CatalogSkill]] = {}
    for skill in skills:
        by_name.setdefault(key(skill.name), []).append(skill)
    kept: list[CatalogSkill] = []
    for same_name in by_name.values():
        if len(same_name) == 1:
            kept.append(same_name[0])
            continue
        winners = RESOLVERS[profile.collision](_rivals(same_name, profile))
        kept.extend(winners)
        for loser in same_name:
            if not any(loser is winner for winner in winners):
                parts.shadowed.append(Shadowed(loser.name, loser.path, winners[0].path, same_file=False))
        for diagnostic in _collisions(same_name, winners):
            report(parts, diagnostic, profile)
    return kept


def _rivals(skills: Sequence[CatalogSkill], profile: Profile) -> Sequence[CatalogSkill]:
    """Who may win a name: one that is held back, disabled or denied never shadows one that is not.

    A skill that only its author hides from models keeps its place. Where all are hidden a stranger's skill gives way:
    a project that disables one of the user's must not get its name, and with it the rules for that name.
    """
    if profile.filter_order == "after-collisions" or profile.collision == "keep-all":
        return skills
    shown = [skill for skill in skills if skill.hidden in (None, "disable-model-invocation")]
    return shown or [skill for skill in skills if skill.trusted] or skills


def _collisions(same_name: Sequence[CatalogSkill], winners: Sequence[CatalogSkill]) -> list[Diagnostic]:
    if len(winners) > 1:
        message = f"{len(winners)} skills are named {winners[0].name!r}; by name alone this one is ambiguous"
        return [Diagnostic(skill.path, "name-collision", message) for skill in winners]
    winner = winners[0]
    return [
        Diagnostic(skill.path, "name-collision", f"{skill.name!r} is taken by {winner.path}")
        for skill in same_name
        if skill is not winner
    ]


def _folded(name: str) -> str:
    """The name as a reader would mistake it: without case and compatibility forms."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFKC", normalize("NFKC", name).casefold())


COLLISION_KEYS: Mapping[Literal["exact", "folded"], Callable[[str], str]] = {"exact": str, "folded": _folded}


def _filter_then_settle(
    skills: list[CatalogSkill], roots: Sequence[Root], profile: Profile, settings: Settings, parts: Diagnostics
) -> list[CatalogSkill]:
    return _settle(_filter(skills, roots, profile, settings, parts), profile, parts)


def _settle_then_filter(
    skills: list[CatalogSkill], roots: Sequence[Root], profile: Profile, settings: Settings, parts: Diagnostics
) -> list[CatalogSkill]:
    """Names are settled among providers, then filters apply, then custom directories join."""
    provided = [skill for skill in skills if roots[skill.root].kind != "custom"]
    custom = [skill for skill in skills if roots[skill.root].kind == "custom"]
    kept = _filter(_settle(provided, profile, parts), roots, profile, settings, parts)
    return _settle([*kept, *_filter(custom, roots, profile, settings, parts)], profile, parts)


SETTLEMENTS: Mapping[Literal["before-collisions", "after-collisions"], Callable[..., list[CatalogSkill]]] = {
    "before-collisions": _filter_then_settle,
    "after-collisions": _settle_then_filter,
}


# Order --------------------------------------------------------------------------------------------


def _order_key(profile: Profile, roots: Sequence[Root]) -> Callable[[CatalogSkill], Any]:
    """What to sort by; scopes come in the order of the roots that have them."""
    fields = attrgetter(*profile.order)
    if "scope" not in profile.order:
        return fields
    first_root = {root.scope: place for place, root in reversed(list(enumerate(roots)))}
    scope = profile.order.index("scope")
    return lambda skill: (*(key := fields(skill))[:scope], first_root[skill.scope], *key[scope + 1 :])
