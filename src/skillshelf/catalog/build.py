"""What a look at skills goes by, and how a skill stands with the person: disabled, held back, denied or told of."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from skillshelf.catalog.discovery import Found, Repeat
from skillshelf.catalog.document import PLAIN_FORM, Document, body, form_of, parse, reads_alike
from skillshelf.catalog.rules import check, description_of, name_of, placed
from skillshelf.catalog.search_roots import Roots
from skillshelf.config.profile import Filter as FilterName
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.values import (
    Candidate,
    Catalog,
    CatalogSkill,
    Diagnostic,
    Entry,
    Filtered,
    FilterReason,
    Finding,
    Hidden,
    Kept,
    Root,
    RootReport,
    Shadowed,
    SkillMetadata,
)

__all__ = [
    "Documents",
    "Ground",
    "Notes",
    "Parts",
    "accept",
    "build",
    "empty",
    "held_back",
    "hidden_by",
    "is_disabled",
    "judge",
    "judge_again",
    "read_document",
    "report",
    "vouched_for",
]


Documents = dict[tuple[str, Any], Any]
"""What was parsed so far, a `Document` by real path and `Form`, which are not imported before something is parsed."""

Notes = Sequence[dict[str, Entry]]
"""For each root, the entries of its skills by their paths."""


class Parts(NamedTuple):
    """What is told of a catalog beside its skills."""

    errors: list[Diagnostic]
    warnings: list[Diagnostic]
    shadowed: list[Shadowed]
    filtered: list[Filtered]


class Ground(NamedTuple):
    """By what skills are judged, and where it is told what became of them."""

    roots: Sequence[Root]
    profile: Profile
    settings: Settings
    parts: Parts
    notes: Notes | None
    documents: Documents


def report(parts: Parts, diagnostic: Diagnostic, profile: Profile) -> None:
    """Tell of something as the profile weighs it."""
    weight = profile.rules[diagnostic.rule]
    if weight == "reject":
        parts.errors.append(diagnostic)
    elif weight == "warn":
        parts.warnings.append(diagnostic)


def hidden_by(
    name: str,
    path: str,
    real_path: str,
    fields: Mapping[str, Any],
    root: Root,
    settings: Settings,
    profile: Profile,
) -> Hidden | None:
    """Why a model is not told of a skill; the person's own choice is named first."""
    if settings.disabled and is_disabled(name, path, real_path, settings):
        return "disabled"
    if not root.trusted:
        return "untrusted"
    if settings.deny and any(r.tool == "skill_load" and r.skill_name in (None, name) for r in settings.deny):
        return "denied"
    return held_back(fields, profile)


def held_back(fields: Mapping[str, Any], profile: Profile) -> Hidden | None:
    """Why a model is not told of a skill, as far as its author decides that."""
    for field in profile.hides_on:
        # Several agents read these words as true; a deploy skill must not slip through on spelling.
        if field in fields and str(fields[field]).strip().lower() in ("true", "yes", "on", "1"):
            return "disable-model-invocation"
    if profile.description_from == "or-hide" and not fields.get("description"):
        return "no-description"
    return None


def is_disabled(name: str, path: str, real_path: str, settings: Settings) -> bool:
    """Whether the person switched a skill off, by its name or by its place."""
    names = {name, path, real_path, os.path.dirname(path), os.path.dirname(real_path)}
    return any(entry in names for entry in settings.disabled)


def vouched_for(metadata: SkillMetadata, path: str, profile: Profile, settings: Settings) -> CatalogSkill:
    """A skill that a program registered by itself: trusted, and under the user's choices like any other."""
    real_path = files.real_path(path)
    stamp = files.stamp_at(real_path)
    folder = os.path.dirname(path)
    root = Root(folder, None, "custom", metadata.scope or "custom", "registered", "follow", trusted=True)
    hidden = hidden_by(metadata.name, path, real_path, metadata.frontmatter, root, settings, profile)
    return CatalogSkill(
        name=metadata.name,
        description=metadata.description,
        path=path,
        real_path=real_path,
        real_dir=os.path.dirname(real_path),
        scope=root.scope,
        source=root.source,
        root=0,
        mtime_ns=stamp[3] if stamp else 0,
        size=stamp[2] if stamp else 0,
        enabled=hidden != "disabled",
        trusted=True,
        hidden=hidden,
        frontmatter=metadata.frontmatter,
    )


def read_document(candidate: Candidate, profile: Profile, documents: Documents) -> Document:
    """The candidate as this profile takes it apart, parsed once for all profiles that do it alike."""
    key = (candidate.real_path, form_of(profile))
    document: Document | None = documents.get(key)
    if document is None:
        plain = documents.get((candidate.real_path, PLAIN_FORM))
        if plain is not None and reads_alike(candidate.head, plain, key[1]):
            document = plain
        else:
            document = parse(candidate.head, whole=len(candidate.head) >= candidate.size, form=key[1])
        documents[key] = document
    return document


def judge(candidate: Candidate, ground: Ground) -> CatalogSkill | None:
    """The skill a candidate is, or None with an error that says why it is none."""
    _, profile, settings, parts, _, documents = ground
    root = ground.roots[candidate.root]
    directory = os.path.basename(os.path.dirname(candidate.path))
    try:
        document = read_document(candidate, profile, documents)
        findings = check(document, directory, profile)
    except Exception as error:
        # One file must never cost the listing, not even by a mistake of ours.
        parts.errors.append(Diagnostic(candidate.path, "internal", f"{type(error).__name__}: {error}"))
        return None
    if findings and not _weigh(findings, document, candidate.path, root, profile, parts):
        return None
    fields = document.fields
    name = root.prefix + name_of(fields, directory, profile)
    description = description_of(fields)
    if not description and profile.description_from == "or-body":
        description = _first_line(candidate.head)
    hidden = hidden_by(name, candidate.path, candidate.real_path, fields, root, settings, profile)
    return CatalogSkill(
        name=name,
        description=description,
        path=candidate.path,
        real_path=candidate.real_path,
        real_dir=candidate.real_dir,
        scope=root.scope,
        source=root.source,
        root=candidate.root,
        mtime_ns=candidate.stamp[3],
        size=candidate.size,
        enabled=hidden != "disabled",
        trusted=root.trusted,
        hidden=hidden,
        frontmatter=fields,
    )


def judge_again(
    repeat: Repeat, by_file: Mapping[str, CatalogSkill], refused: Mapping[str, Candidate], ground: Ground
) -> CatalogSkill | None:
    """The same file by another way: its folder, and so the verdict on it, may be another one."""
    _, profile, settings, parts, _, _ = ground
    root = ground.roots[repeat.root]
    known = by_file.get(repeat.real_path)
    if known is None:
        candidate = refused[repeat.real_path]
        return judge(candidate._replace(root=repeat.root, path=repeat.path, real_dir=repeat.real_dir), ground)
    directory = os.path.basename(os.path.dirname(repeat.path))
    document = Document(dict(known.frontmatter), "", ())
    # What it is warned about was said where it was found first; and it is in the catalog, so this way is no loss.
    unsaid = parts._replace(errors=[], warnings=[])
    if not _weigh(check(document, directory, profile), document, repeat.path, root, profile, unsaid):
        parts.shadowed.append(Shadowed(known.name, repeat.path, known.path, same_file=True))
        return None
    return known._replace(
        name=root.prefix + name_of(known.frontmatter, directory, profile),
        path=repeat.path,
        real_dir=repeat.real_dir,
        scope=root.scope,
        source=root.source,
        root=repeat.root,
        enabled=not is_disabled(known.name, repeat.path, known.real_path, settings),
        trusted=root.trusted,
        hidden=hidden_by(known.name, repeat.path, known.real_path, known.frontmatter, root, settings, profile),
    )


def _weigh(
    findings: Sequence[Finding], document: Document, path: str, root: Root, profile: Profile, parts: Parts
) -> bool:
    """Report the findings as the profile weighs them; False if one of them rejects the skill."""
    warnings = []
    for finding in findings:
        weight = profile.rules[finding.rule]
        if weight not in ("reject", "warn") or (
            finding.rule == "description-missing" and not root.description_required
        ):
            continue
        _, message, line, _ = finding if finding.line is not None else placed(finding, document)
        if weight == "reject":
            parts.errors.append(Diagnostic(path, finding.rule, message, line))
            return False
        warnings.append(Diagnostic(path, finding.rule, message, line))
    parts.warnings.extend(warnings)
    return True


def _first_line(head: bytes) -> str:
    """The first line of the body that says something, without the marks of a heading."""
    lines = body(head).decode("utf-8", "replace").splitlines()
    return next((text for line in lines if (text := line.strip().lstrip("#").strip())), "")


def accept(found: Iterable[Found], ground: Ground) -> list[CatalogSkill]:
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

            told = len(parts.warnings)
            skill = judge(item, ground)
            if skill is None:
                refused[item.real_path] = item
            else:
                accepted.append(skill)
                by_file[item.real_path] = skill
                if notes:
                    notes[item.root][item.path] = _entry(skill, item, parts.warnings[told:])
        elif isinstance(item, Repeat):
            again = judge_again(item, by_file, refused, ground)
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


def _remembered(kept: Kept, ground: Ground) -> CatalogSkill:
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
    notes: Notes | None = None,
    documents: Documents | None = None,
) -> Catalog:
    """The catalog of everything that was found below the roots.

    `notes` are taken for the next look, `documents` keeps what was parsed for other profiles.
    """
    parts = Parts([], list(settings.warnings), [], [])
    for problem in roots.problems:
        report(parts, problem, profile)
    read = {} if documents is None else documents
    accepted = accept(found, Ground(roots.roots, profile, settings, parts, notes, read))
    kept = SETTLEMENTS[profile.filter_order](accepted, roots.roots, profile, settings, parts)
    kept.sort(key=_order_key(profile, roots.roots))
    return _catalog(kept, roots, profile, parts)


def empty(roots: Roots, profile: Profile, settings: Settings) -> Catalog:
    """The catalog of a machine on which skills are switched off."""
    parts = Parts([], list(settings.warnings), [], [])
    message = "skills are switched off here by `skills.enabled = false`; nothing was looked into"
    parts.warnings.append(Diagnostic(settings.switched_off_by, "skills-disabled", message))
    return _catalog([], roots, profile, parts)


def _catalog(skills: list[CatalogSkill], roots: Roots, profile: Profile, parts: Parts) -> Catalog:
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
    skills: Iterable[CatalogSkill], roots: Sequence[Root], profile: Profile, settings: Settings, parts: Parts
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


def _settle(skills: Sequence[CatalogSkill], profile: Profile, parts: Parts) -> list[CatalogSkill]:
    """The skills that keep their file and their name; the others are shadowed."""
    return _settle_names(_settle_files(skills, profile, parts), profile, parts)


def _settle_files(skills: Sequence[CatalogSkill], profile: Profile, parts: Parts) -> list[CatalogSkill]:
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


def _settle_names(skills: Sequence[CatalogSkill], profile: Profile, parts: Parts) -> list[CatalogSkill]:
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
    skills: list[CatalogSkill], roots: Sequence[Root], profile: Profile, settings: Settings, parts: Parts
) -> list[CatalogSkill]:
    return _settle(_filter(skills, roots, profile, settings, parts), profile, parts)


def _settle_then_filter(
    skills: list[CatalogSkill], roots: Sequence[Root], profile: Profile, settings: Settings, parts: Parts
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
