"""Hold the inputs for building a catalog, and decide which skills are hidden from a model."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.text import is_true
from skillshelf.core.values import (
    CacheEntry,
    CatalogSkill,
    Diagnostic,
    Filtered,
    Hidden,
    Root,
    Shadowed,
    SkillMetadata,
    Stamp,
)

__all__ = [
    "BuildContext",
    "CacheEntries",
    "Diagnostics",
    "Documents",
    "hidden_by",
    "hidden_by_author",
    "make_skill",
    "registered_skill",
    "spellings",
]

Documents = dict[tuple[str, Any], Any]
"""Each parsed `Document` by real path and `ParseOptions`; neither type is imported before something is parsed."""

CacheEntries = Sequence[dict[str, CacheEntry]]
"""For each root, the entries of its skills by path."""


class Diagnostics(NamedTuple):
    """The lists that collect what a catalog reports beside its skills."""

    errors: list[Diagnostic]
    warnings: list[Diagnostic]
    shadowed: list[Shadowed]
    filtered: list[Filtered]

    def report(self, diagnostic: Diagnostic, profile: Profile) -> None:
        """Add a diagnostic as an error or a warning, or drop it, by its severity in the profile."""
        severity = profile.rules[diagnostic.rule]
        if severity == "reject":
            self.errors.append(diagnostic)
        elif severity == "warn":
            self.warnings.append(diagnostic)


class BuildContext(NamedTuple):
    """Inputs for building a catalog, plus the lists that collect diagnostics and cache entries."""

    roots: Sequence[Root]
    profile: Profile
    settings: Settings
    diagnostics: Diagnostics
    cache_entries: CacheEntries | None
    documents: Documents


def make_skill(
    name: str,
    description: str,
    path: str,
    *,
    real_path: str,
    real_dir: str,
    root: Root,
    root_index: int,
    stamp: Stamp | None,
    fields: Mapping[str, Any],
    settings: Settings,
    profile: Profile,
) -> CatalogSkill:
    """Return the skill of an accepted file, hidden or not as its root, the settings and its author say."""
    hidden = hidden_by(name, path, real_path, fields, root, settings, profile)
    return CatalogSkill(
        name=name,
        description=description,
        path=path,
        real_path=real_path,
        real_dir=real_dir,
        scope=root.scope,
        source=root.source,
        root=root_index,
        mtime_ns=stamp[3] if stamp else 0,
        size=stamp[2] if stamp else 0,
        enabled=hidden != "disabled",
        trusted=root.trusted,
        hidden=hidden,
        frontmatter=fields,
    )


def registered_skill(metadata: SkillMetadata, path: str, profile: Profile, settings: Settings) -> CatalogSkill:
    """Return a skill that a program registered: trusted, and subject to the user's settings like any other."""
    real_path = files.real_path(path)
    folder = os.path.dirname(path)
    return make_skill(
        metadata.name,
        metadata.description,
        path,
        real_path=real_path,
        real_dir=os.path.dirname(real_path),
        root=Root(folder, None, "custom", metadata.scope or "custom", "registered", "follow", trusted=True),
        root_index=0,
        stamp=files.stamp_at(real_path),
        fields=metadata.frontmatter,
        settings=settings,
        profile=profile,
    )


def hidden_by(
    name: str,
    path: str,
    real_path: str,
    fields: Mapping[str, Any],
    root: Root,
    settings: Settings,
    profile: Profile,
) -> Hidden | None:
    """Return why a skill is hidden from models, or None; the user's own choice comes first."""
    if settings.disabled and not spellings(name, path, real_path).isdisjoint(settings.disabled):
        return "disabled"
    if not root.trusted:
        return "untrusted"
    if settings.deny and any(r.tool == "skill_load" and r.skill_name in (None, name) for r in settings.deny):
        return "denied"
    return hidden_by_author(fields, profile)


def hidden_by_author(fields: Mapping[str, Any], profile: Profile) -> Hidden | None:
    """Return why a skill is hidden from models by its own frontmatter, or None."""
    for field in profile.hides_on:
        # Several agents read these words as true; a deploy skill must not slip through on spelling.
        if is_true(fields.get(field)):
            return "disable-model-invocation"
    if profile.description_from == "or-hide" and not fields.get("description"):
        return "no-description"
    return None


def spellings(name: str, path: str, real_path: str) -> set[str]:
    """Return everything that a list in the settings may call a skill: its name, its file and its folder."""
    return {name, path, real_path, os.path.dirname(path), os.path.dirname(real_path)}
