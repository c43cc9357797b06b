"""Hold the inputs for building a catalog, and decide which skills are hidden from a model."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.config.permission_rules import LOAD_TOOLS, PermissionRule, RuleSubject, denies
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, SettingsFile
from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import holds_back, is_true
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

if TYPE_CHECKING:
    # Neither the parser nor the rules are imported before something is parsed.
    from skillshelf.catalog.facts import Facts

__all__ = [
    "BuildContext",
    "CacheEntries",
    "Diagnostics",
    "HiddenState",
    "denies_load",
    "hidden_by_author",
    "hidden_state",
    "is_listed",
    "is_set",
    "make_skill",
    "reaches",
    "registered_skill",
    "spellings",
]

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
    facts: "Facts | None"


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
    hidden, by = hidden_state(name, path, real_path, real_dir, fields, root, settings, profile)
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
        hidden_by=by,
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


class HiddenState(NamedTuple):
    """Why a skill is hidden from models, and the file or rule that said so; None where it is not."""

    hidden: Hidden | None = None
    by: str | None = None


_SHOWN = HiddenState()


def hidden_state(
    name: str,
    path: str,
    real_path: str,
    real_dir: str,
    fields: Mapping[str, Any],
    root: Root,
    settings: Settings,
    profile: Profile,
) -> HiddenState:
    """Return whether a skill is hidden from models, why and by whom; the user's own choice comes first."""
    if settings.disabled and is_listed(settings.disabled, name, path, real_path):
        by = settings.said_by("skills.disabled", lambda file: is_listed(file.disabled, name, path, real_path))
        return HiddenState("disabled", by)
    if not root.trusted:
        stranger = settings.stranger
        own = stranger is not None and stranger.disabled and reaches(stranger, root.trusted, real_path)
        if stranger and own and is_listed(stranger.disabled, name, path, real_path):
            return HiddenState("disabled", f"{stranger.path}: skills.disabled")
        return HiddenState("untrusted", root.untrusted_by)
    subject = (name, path, real_path, real_dir)
    if settings.deny and denies_load(settings.deny, *subject):
        by = settings.said_by("permissions.deny", lambda file: denies_load(file.deny, *subject))
        return HiddenState("denied", by)
    if hidden := hidden_by_author(fields, profile):
        return HiddenState(hidden, f"{path}: {_author_field(fields, profile)}")
    return _SHOWN


def reaches(stranger: SettingsFile, trusted: bool, real_path: str) -> bool:
    """Return whether the file of an untrusted project may narrow a skill: one of its own, by the real path."""
    return not trusted and files.is_inside(real_path, stranger.within)


def denies_load(rules: Sequence[PermissionRule], name: str, path: str, real_path: str, real_dir: str) -> bool:
    """Return whether rules deny the load of a skill that the user trusts."""

    def tree() -> str | None:
        # Imported here: only a rule that names files needs their digest.
        from skillshelf.catalog.tree import skill_tree

        return skill_tree(real_dir).digest

    subject = RuleSubject(name, path, real_path, real_dir, trusted=True, tree=tree)
    return any(denies(rule, LOAD_TOOLS, subject) for rule in rules)


def hidden_by_author(fields: Mapping[str, Any], profile: Profile) -> Hidden | None:
    """Return why a skill is hidden from models by its own frontmatter, or None."""
    if any(is_set(fields.get(field), profile) for field in profile.hides_on):
        return "disable-model-invocation"
    if any(_waits(fields.get(field)) for field in profile.waits_for):
        return "on-use"
    if profile.description_from == "or-hide" and not fields.get("description"):
        return "no-description"
    return None


def is_set(value: object, profile: Profile) -> bool:
    """Return whether a field that hides a skill has an effect under a profile.

    Several agents read words as true; a deploy skill must not slip through on spelling where they do.
    """
    if profile.truth == "words":
        return is_true(value)
    return value is True or (profile.truth == "boolean-or-text" and value == "true")


def _waits(value: object) -> bool:
    """Return whether a skill waits for files: those of a pattern other than that of all files."""
    patterns = value if isinstance(value, list) else [value]
    return any(isinstance(one, str) and one.strip() not in ("", "**") for one in patterns)


def _author_field(fields: Mapping[str, Any], profile: Profile) -> str:
    """Return the field of a frontmatter that hides its skill."""
    waiting = [field for field in profile.waits_for if _waits(fields.get(field))]
    return next(
        (field for field in profile.hides_on if is_set(fields.get(field), profile)), *(waiting or ["description"])
    )


def is_listed(entries: Sequence[str], name: str, path: str, real_path: str) -> bool:
    """Return True if a list of names and paths that are held back means a skill; names are folded."""
    if not spellings(name, path, real_path).isdisjoint(entries):
        return True
    return any("/" not in entry and holds_back(entry, name) for entry in entries)


def spellings(name: str, path: str, real_path: str) -> set[str]:
    """Return everything that a list in the settings may call a skill: its name, its file and its folder."""
    return {name, path, real_path, os.path.dirname(path), os.path.dirname(real_path)}
