"""Build the catalog: accept candidates, filter them, resolve collisions of names, and sort."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog.build_context import BuildContext, CacheEntries, Diagnostics, make_skill, reaches
from skillshelf.catalog.discovery import Found, Repeat
from skillshelf.catalog.search_roots import Roots
from skillshelf.config.profile import Filter as FilterName
from skillshelf.config.profile import Profile
from skillshelf.config.settings import SWITCHES, Settings
from skillshelf.core.text import folded_name, matches_folded_glob, matches_glob
from skillshelf.core.values import (
    CacheEntry,
    Candidate,
    Catalog,
    CatalogSkill,
    Diagnostic,
    Filtered,
    FilterReason,
    Root,
    RootReport,
    Shadowed,
    UnchangedCandidate,
)

if TYPE_CHECKING:
    from skillshelf.catalog.facts import Facts

__all__ = ["COLLISION_KEYS", "build", "diagnostic_key", "empty", "order_key"]


def build(
    found: Iterable[Found],
    roots: Roots,
    profile: Profile,
    settings: Settings,
    cache_entries: CacheEntries | None = None,
    facts: "Facts | None" = None,
    look_alikes: Literal["report", "ignore"] = "report",
) -> Catalog:
    """Return the catalog of everything that was found below the roots.

    `cache_entries` is filled for the next scan; `facts` keeps what was parsed for other profiles.
    `look_alikes` says what happens to names that look the same and are not, which no skill is left out for.
    """
    diagnostics = Diagnostics([], list(settings.warnings), [], [])
    for problem in roots.problems:
        diagnostics.report(problem, profile)
    context = BuildContext(roots.roots, profile, settings, diagnostics, cache_entries, facts)
    skills = SELECTIONS[profile.filter_order](_accept(found, context), context)
    skills.sort(key=order_key(profile, roots.roots))
    if look_alikes == "report" and _may_look_alike([skill.name for skill in skills]):
        from skillshelf.catalog.look_alikes import find_look_alikes

        for diagnostic in find_look_alikes(skills):
            diagnostics.report(diagnostic, profile)
    return _catalog(skills, roots, profile, diagnostics)


def empty(roots: Roots, profile: Profile, settings: Settings) -> Catalog:
    """Return the catalog where the settings disable skills."""
    diagnostics = Diagnostics([], list(settings.warnings), [], [])
    message = "skills are disabled by `skills.enabled = false`; no folder was scanned"
    diagnostics.warnings.append(Diagnostic(settings.switched_off_by, "skills-disabled", message))
    return _catalog([], roots, profile, diagnostics)


def _catalog(skills: list[CatalogSkill], roots: Roots, profile: Profile, diagnostics: Diagnostics) -> Catalog:
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
        errors=tuple(sorted(dict.fromkeys(diagnostics.errors), key=diagnostic_key)),
        warnings=tuple(sorted(dict.fromkeys(diagnostics.warnings), key=diagnostic_key)),
        shadowed=tuple(sorted(diagnostics.shadowed, key=lambda loser: (loser.name, loser.path))),
        # Where one root lies inside another, one may accept what the other leaves out.
        filtered=tuple(
            sorted((e for e in dict.fromkeys(diagnostics.filtered) if e.path not in paths), key=lambda e: e[:3])
        ),
        truncated=any(error.rule == "walk-limit" for error in diagnostics.errors),
    )


def diagnostic_key(diagnostic: Diagnostic) -> tuple[str, int, str, str]:
    """Return the key that sorts errors and warnings."""
    return (diagnostic.path, diagnostic.line or 0, diagnostic.rule, diagnostic.message)


# Accepting ----------------------------------------------------------------------------------------


def _accept(found: Iterable[Found], context: BuildContext) -> list[CatalogSkill]:
    """Return the skills among what was found, in the same order; report the rest."""
    accepted: list[CatalogSkill] = []
    by_file: dict[str, CatalogSkill] = {}
    rejected: dict[str, Candidate] = {}
    real_paths: dict[str, str] = {}
    diagnostics, cache_entries = context.diagnostics, context.cache_entries
    for item in found:
        if isinstance(item, UnchangedCandidate):
            kept = _from_cache(item, context)
            accepted.append(kept)
            by_file[kept.real_path] = kept
            if cache_entries:
                cache_entries[item.root][item.path] = item.entry
        elif isinstance(item, Candidate):
            # Imported here: loading the parser and its rules takes longer than reading a thousand cache entries.
            from skillshelf.catalog.parse import parse_candidate

            warned = len(diagnostics.warnings)
            skill = parse_candidate(item, context)
            if skill is None:
                rejected[item.real_path] = item
                real_paths[item.path] = item.real_path
            else:
                accepted.append(skill)
                by_file[item.real_path] = skill
                if cache_entries:
                    cache_entries[item.root][item.path] = _entry(skill, item, diagnostics.warnings[warned:])
        elif isinstance(item, Repeat):
            from skillshelf.catalog.parse import parse_repeat

            again = parse_repeat(item, by_file, rejected, context)
            if again is not None:
                accepted.append(again)
                by_file.setdefault(item.real_path, again)
            else:
                real_paths[item.path] = item.real_path
        elif isinstance(item, Filtered):
            diagnostics.filtered.append(item)
        else:
            diagnostics.report(item, context.profile)
    _settle_links(real_paths, by_file, diagnostics)
    return accepted


def _settle_links(real_paths: Mapping[str, str], by_file: Mapping[str, CatalogSkill], diagnostics: Diagnostics) -> None:
    """Report a link with another name as shadowed by the folder it leads to, whichever was found first."""
    if not real_paths.keys() & {error.path for error in diagnostics.errors}:
        return
    errors = diagnostics.errors[:]
    diagnostics.errors.clear()
    for error in errors:
        kept = by_file.get(real_paths.get(error.path, ""))
        if kept is not None and error.rule == "name-directory":
            diagnostics.shadowed.append(Shadowed(kept.name, error.path, kept.path, same_file=True))
        else:
            diagnostics.errors.append(error)


def _entry(skill: CatalogSkill, candidate: Candidate, warnings: Sequence[Diagnostic]) -> CacheEntry:
    return CacheEntry(
        stamp=candidate.stamp,
        real_path=skill.real_path,
        name=skill.name,
        description=skill.description,
        fields=skill.frontmatter,
        warnings=tuple((warning.rule, warning.message, warning.line) for warning in warnings),
    )


def _from_cache(kept: UnchangedCandidate, context: BuildContext) -> CatalogSkill:
    """Return the skill of an unchanged file: findings come from the cache, the settings are applied again."""
    entry = kept.entry
    for rule, message, line in entry.warnings:
        context.diagnostics.warnings.append(Diagnostic(kept.path, rule, message, line))
    return make_skill(
        entry.name,
        entry.description,
        kept.path,
        real_path=entry.real_path,
        real_dir=kept.real_dir,
        root=context.roots[kept.root],
        root_index=kept.root,
        stamp=entry.stamp,
        fields=entry.fields,
        settings=context.settings,
        profile=context.profile,
    )


# Filtering ----------------------------------------------------------------------------------------

Filter = Callable[[CatalogSkill, Root, Settings], FilterReason | None]
"""Return why a skill is left out, or None if this filter lets it pass."""

FILTERS: Mapping[FilterName, Filter] = {
    "source": lambda skill, root, settings: "source-off" if root.switched_off else None,
    "ignored": lambda skill, root, settings: "ignored" if _is_ignored(skill, settings) else None,
    "include": lambda skill, root, settings: (
        "not-included"
        if settings.include and not any(matches_glob(skill.name, pattern) for pattern in settings.include)
        else None
    ),
}


def _filter(skills: Iterable[CatalogSkill], context: BuildContext) -> list[CatalogSkill]:
    roots, profile, settings, diagnostics = context[:4]
    ignores = settings.ignored or (settings.stranger and settings.stranger.ignored)
    if not (ignores or settings.include or any(root.switched_off for root in roots)):
        return list(skills)
    kept = []
    for skill in skills:
        reasons = (FILTERS[name](skill, roots[skill.root], settings) for name in profile.filters)
        reason = next((reason for reason in reasons if reason), None)
        if reason is None:
            kept.append(skill)
        else:
            by = _said_by(reason, skill, roots[skill.root], settings)
            diagnostics.filtered.append(Filtered(skill.name, skill.path, reason, by))
    return kept


def _is_ignored(skill: CatalogSkill, settings: Settings) -> bool:
    return _holds_back(skill.name, settings.ignored) or _is_ignored_by_stranger(skill, settings)


def _is_ignored_by_stranger(skill: CatalogSkill, settings: Settings) -> bool:
    stranger = settings.stranger
    if stranger is None or not stranger.ignored or not reaches(stranger, skill.trusted, skill.real_path):
        return False
    return _holds_back(skill.name, stranger.ignored)


def _said_by(reason: FilterReason, skill: CatalogSkill, root: Root, settings: Settings) -> str | None:
    """Return the file and the key behind a filter; None for a source that the environment turns off."""
    if reason == "ignored" and not _holds_back(skill.name, settings.ignored) and settings.stranger:
        return f"{settings.stranger.path}: skills.ignored"
    if reason == "ignored":
        return settings.said_by("skills.ignored", lambda file: _holds_back(skill.name, file.ignored))
    if reason == "not-included":
        return settings.said_by("skills.include", lambda file: bool(file.include))
    switches = SWITCHES if root.switch == "any" else (root.switch or "",)
    off = [switch for switch in switches if not settings.sources.get(switch, True)]
    return settings.said_by(f"skills.sources.{off[0]}", lambda file: off[0] in file.sources) if off else None


def _holds_back(name: str, patterns: Sequence[str]) -> bool:
    return any(matches_folded_glob(name, pattern) for pattern in patterns)


# Collisions ---------------------------------------------------------------------------------------

Resolver = Callable[[Sequence[CatalogSkill], Sequence[Root]], Sequence[CatalogSkill]]
"""Given all skills of one name in search order, and the roots, return those that keep it."""


def _first_and_folders(same_name: Sequence[CatalogSkill], roots: Sequence[Root]) -> Sequence[CatalogSkill]:
    """Return the first skill, and those beside it for which the name of a folder is free: their own or the first's.

    The working directory, the folders above it and the home folder are looked at one after the other.
    """
    # A listing from the cache parses nothing, and most names occur once.
    from skillshelf.catalog.rules import NAME_FORMS

    here = next((root.base for root in roots if root.kind == "project"), "")
    levels = [(roots[skill.root].kind, roots[skill.root].base == here) for skill in same_name]
    folders = [NAME_FORMS["slug"](os.path.basename(skill.dir)) for skill in same_name]
    kept, name, holder = [same_name[0]], same_name[0].name, folders[0]
    taken = {name}
    for skill, level, folder in zip(same_name[1:], levels[1:], folders[1:], strict=True):
        # A skill in the folder of that name takes it from one in another folder.
        used = holder if folder == name else folder
        if level == levels[0] and used not in taken:
            kept.append(skill)
            taken.add(used)
            holder = name if folder == name else holder
    return kept


RESOLVERS: Mapping[Literal["first", "last", "keep-all", "race", "first-and-folders"], Resolver] = {
    "first": lambda same_name, _: same_name[:1],
    "last": lambda same_name, _: same_name[-1:],
    "keep-all": lambda same_name, _: same_name,
    # The winner cannot be predicted; the warning about the name says so.
    "race": lambda same_name, _: same_name[:1],
    "first-and-folders": _first_and_folders,
}


COLLISION_KEYS: Mapping[Literal["exact", "folded"], Callable[[str], str]] = {"exact": str, "folded": folded_name}


def _resolve_collisions(skills: Sequence[CatalogSkill], context: BuildContext) -> list[CatalogSkill]:
    """Return the skills that keep their file and their name; the others are shadowed."""
    return _resolve_names(_resolve_files(skills, context), context)


def _resolve_files(skills: Sequence[CatalogSkill], context: BuildContext) -> list[CatalogSkill]:
    if len({skill.real_path for skill in skills}) == len(skills):
        return list(skills)
    by_file: dict[str, list[CatalogSkill]] = {}
    for skill in skills:
        by_file.setdefault(skill.real_path, []).append(skill)
    kept = []
    for same_file in by_file.values():
        winner = _eligible(same_file, context.profile)[0]
        kept.append(winner)
        for loser in same_file:
            # Two roots, one inside the other, can lead to a file by one and the same path.
            if loser.path != winner.path:
                shadowed = Shadowed(loser.name, loser.path, winner.path, same_file=True)
                context.diagnostics.shadowed.append(shadowed)
    return kept


def _resolve_names(skills: Sequence[CatalogSkill], context: BuildContext) -> list[CatalogSkill]:
    profile, diagnostics = context.profile, context.diagnostics
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
        eligible = same_name if profile.collision == "keep-all" else _eligible(same_name, profile)
        winners = RESOLVERS[profile.collision](eligible, context.roots)
        kept.extend(winners)
        for loser in same_name:
            if not any(loser is winner for winner in winners):
                diagnostics.shadowed.append(Shadowed(loser.name, loser.path, winners[0].path, same_file=False))
        for diagnostic in _collisions(same_name, winners):
            diagnostics.report(diagnostic, profile)
    return kept


def _eligible(skills: Sequence[CatalogSkill], profile: Profile) -> Sequence[CatalogSkill]:
    """Return the skills that may win a name or a file.

    Trust decides before anything else, in every profile: no stranger's skill, and no stranger's link to a file, takes
    the place of a trusted one. Then one that is disabled or denied never shadows one that is not; a skill that only
    its author hides from models stays eligible.
    """
    trusted = [skill for skill in skills if skill.trusted] or skills
    if profile.filter_order == "after-collisions":
        return trusted
    return [skill for skill in trusted if skill.hidden in (None, "disable-model-invocation")] or trusted


def _collisions(same_name: Sequence[CatalogSkill], winners: Sequence[CatalogSkill]) -> list[Diagnostic]:
    if len(winners) > 1:
        message = f"{len(winners)} skills are named {winners[0].name!r}; the name alone is ambiguous"
        return [Diagnostic(skill.path, "name-collision", message) for skill in winners]
    winner = winners[0]
    return [
        Diagnostic(skill.path, "name-collision", f"{skill.name!r} is taken by {winner.path}")
        for skill in same_name
        if skill is not winner
    ]


def _may_look_alike(names: Sequence[str]) -> bool:
    """Return False if no two names can have one skeleton: all ASCII, and different without its look-alikes.

    One pass over all names, since nearly every catalog ends here.
    """
    text = "\n".join(names)
    if not text.isascii():
        return True
    for form in {text.lower(), text.replace("I", "l").lower()}:
        for character, looks_like in (("0", "o"), ("1", "l"), ("|", "l"), ("m", "rn")):
            form = form.replace(character, looks_like)
        if len(set(form.split("\n"))) < len(names):
            return True
    return False


def _filter_first(skills: list[CatalogSkill], context: BuildContext) -> list[CatalogSkill]:
    return _resolve_collisions(_filter(skills, context), context)


def _filter_last(skills: list[CatalogSkill], context: BuildContext) -> list[CatalogSkill]:
    """Resolve collisions among providers, then filter, then add the skills of custom directories."""
    provided = [skill for skill in skills if context.roots[skill.root].kind != "custom"]
    custom = [skill for skill in skills if context.roots[skill.root].kind == "custom"]
    kept = _filter(_resolve_collisions(provided, context), context)
    return _resolve_collisions([*kept, *_filter(custom, context)], context)


Selection = Callable[[list[CatalogSkill], BuildContext], list[CatalogSkill]]
"""Return the accepted skills that stay in the catalog; report the others as filtered or shadowed."""

SELECTIONS: Mapping[Literal["before-collisions", "after-collisions"], Selection] = {
    "before-collisions": _filter_first,
    "after-collisions": _filter_last,
}


# Order --------------------------------------------------------------------------------------------


def order_key(profile: Profile, roots: Sequence[Root | RootReport]) -> Callable[[CatalogSkill], Any]:
    """Return the sort key of the profile; scopes come in the order of their first roots."""
    fields = attrgetter(*profile.order)
    if "scope" not in profile.order:
        return fields
    first_root = {root.scope: index for index, root in reversed(list(enumerate(roots)))}
    scope = profile.order.index("scope")
    return lambda skill: (*(key := fields(skill))[:scope], first_root[skill.scope], *key[scope + 1 :])
