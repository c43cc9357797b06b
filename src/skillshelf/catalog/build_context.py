"""What a look at skills goes by, and how a skill stands with the person: disabled, held back, denied or told of."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.text import is_true
from skillshelf.core.values import CatalogSkill, Diagnostic, Entry, Filtered, Hidden, Root, Shadowed, SkillMetadata

__all__ = [
    "BuildContext",
    "CacheEntries",
    "Diagnostics",
    "Documents",
    "held_back_by",
    "hidden_by",
    "is_disabled",
    "report",
    "vouched_for",
]

Documents = dict[tuple[str, Any], Any]
"""What was parsed so far, a `Document` by real path and `Form`, which are not imported before something is parsed."""

CacheEntries = Sequence[dict[str, Entry]]
"""For each root, the entries of its skills by their paths."""


class Diagnostics(NamedTuple):
    """What is told of a catalog beside its skills."""

    errors: list[Diagnostic]
    warnings: list[Diagnostic]
    shadowed: list[Shadowed]
    filtered: list[Filtered]


class BuildContext(NamedTuple):
    """By what skills are judged, and where it is told what became of them."""

    roots: Sequence[Root]
    profile: Profile
    settings: Settings
    parts: Diagnostics
    notes: CacheEntries | None
    documents: Documents


def report(parts: Diagnostics, diagnostic: Diagnostic, profile: Profile) -> None:
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
    return held_back_by(fields, profile)


def held_back_by(fields: Mapping[str, Any], profile: Profile) -> Hidden | None:
    """Why a model is not told of a skill, as far as its author decides that."""
    for field in profile.hides_on:
        # Several agents read these words as true; a deploy skill must not slip through on spelling.
        if is_true(fields.get(field)):
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
