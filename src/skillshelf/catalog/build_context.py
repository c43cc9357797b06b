"""Hold the inputs for building a catalog, and decide which skills are hidden from a model."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.config.permission_rules import LOAD_TOOLS, PermissionRule, RuleSubject, denies
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, SettingsFile
from skillshelf.config.system_policy import SystemPolicy, is_banned, is_required, trust_refusal
from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, holds_back, is_true
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
from skillshelf.errors import PermissionDenied

if TYPE_CHECKING:
    # Neither the parser nor the rules are imported before something is parsed.
    from skillshelf.catalog.facts import Facts

__all__ = [
    "BuildContext",
    "CacheEntries",
    "Diagnostics",
    "HiddenState",
    "ban_on",
    "denial_of_load",
    "hidden_by_author",
    "hidden_state",
    "is_listed",
    "is_set",
    "make_skill",
    "reaches",
    "registered_skill",
    "require_allowed",
    "required_by",
    "required_first",
    "shown_though_untrusted",
    "spellings",
    "unmet",
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
    if settings.system.files:
        root = _as_policy_says(root, real_path, real_dir, settings.system)
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
    """Return whether a skill is hidden from models, why and by whom.

    The system policy comes first, then the user's own choice, which cannot take a required skill away.
    """
    subject = (name, path, real_path, real_dir)
    if settings.system.rules and (rule := _denial_from_above(subject, fields, root, settings)):
        return HiddenState("denied", rule.system)
    is_disabled = settings.disabled and is_listed(settings.disabled, name, path, real_path)
    if is_disabled and not (settings.system.files and required_by(settings.system, *subject)):
        by = settings.said_by("skills.disabled", lambda file: is_listed(file.disabled, name, path, real_path))
        return HiddenState("disabled", by)
    if not root.trusted:
        stranger = settings.stranger
        own = stranger is not None and stranger.disabled and reaches(stranger, root.trusted, real_path)
        if stranger and own and is_listed(stranger.disabled, name, path, real_path):
            return HiddenState("disabled", f"{stranger.path}: skills.disabled")
        return HiddenState("untrusted", root.untrusted_by)
    return _hidden_if_trusted(subject, fields, settings, profile)


def shown_though_untrusted(skill: CatalogSkill, settings: Settings, profile: Profile) -> CatalogSkill:
    """Return a skill that the user approved in an untrusted folder: it is hidden from models for other reasons only."""
    subject, stranger = (skill.name, skill.path, skill.real_path, skill.real_dir), settings.stranger
    is_denied = stranger is not None and reaches(stranger, False, skill.real_path) and stranger.deny
    if stranger is not None and is_denied and denial_of_load(stranger.deny, *subject, trusted=False):
        return skill._replace(hidden="denied", hidden_by=f"{stranger.path}: permissions.deny")
    hidden, by = _hidden_if_trusted(subject, skill.frontmatter, settings, profile)
    return skill._replace(hidden=hidden, hidden_by=by)


def _hidden_if_trusted(
    subject: tuple[str, str, str, str], fields: Mapping[str, Any], settings: Settings, profile: Profile
) -> HiddenState:
    if settings.deny and denial_of_load(settings.deny, *subject):
        by = settings.said_by("permissions.deny", lambda file: bool(denial_of_load(file.deny, *subject)))
        return HiddenState("denied", by)
    if hidden := hidden_by_author(fields, profile):
        return HiddenState(hidden, f"{subject[1]}: {_author_field(fields, profile)}")
    return _SHOWN


def _denial_from_above(
    subject: tuple[str, str, str, str], fields: Mapping[str, Any], root: Root, settings: Settings
) -> PermissionRule | None:
    declared = fields.get("name")
    return denial_of_load(settings.system.rules, *subject, trusted=root.trusted, declared=declared)


def reaches(stranger: SettingsFile, trusted: bool, real_path: str) -> bool:
    """Return whether the file of an untrusted project may narrow a skill: one of its own, by the real path."""
    return not trusted and files.is_inside(real_path, stranger.within)


def _as_policy_says(root: Root, real_path: str, real_dir: str, system: SystemPolicy) -> Root:
    """Return a root as it counts for one skill: a link may lead to where the system policy lets nobody trust."""
    inside = root.real_path is not None and all(files.is_inside(one, root.real_path) for one in (real_path, real_dir))
    by = None if inside else trust_refusal(system, real_path, real_dir)
    return root._replace(trusted=False, untrusted_by=by) if by else root


def denial_of_load(
    rules: Sequence[PermissionRule],
    name: str,
    path: str,
    real_path: str,
    real_dir: str,
    *,
    trusted: bool = True,
    declared: object = None,
) -> PermissionRule | None:
    """Return the first of the rules that denies the load of a skill, or None."""
    subject = RuleSubject(name, path, real_path, real_dir, trusted, _tree_of(real_dir), declared)
    return next((rule for rule in rules if denies(rule, LOAD_TOOLS, subject)), None)


def required_by(system: SystemPolicy, name: str, path: str, real_path: str, real_dir: str) -> str | None:
    """Return the file and key that require a skill, or None."""
    tree = _tree_of(real_dir)
    subject = (name, path, real_path, real_dir, tree)
    return next((one.by for one in system.required if is_required(one.entry, *subject)), None)


def _tree_of(real_dir: str) -> Callable[[], str | None]:
    def tree() -> str | None:
        # Imported here: only a rule that names files needs their digest.
        from skillshelf.catalog.source import is_remote, tree_named_in
        from skillshelf.catalog.tree import skill_tree

        return tree_named_in(real_dir) if is_remote(real_dir) else skill_tree(real_dir).digest

    return tree


def ban_on(
    system: SystemPolicy, name: str, path: str, real_path: str, real_dir: str, *, declared: object = None
) -> str | None:
    """Return the file and key that forbid a skill to everybody, or None."""
    rules = [rule for rule in system.rules if is_banned(rule.system)]
    rule = denial_of_load(rules, name, path, real_path, real_dir, declared=declared) if rules else None
    return rule.system if rule else None


def require_allowed(
    system: SystemPolicy, name: str, path: str, real_path: str, real_dir: str, *, declared: object = None
) -> None:
    """Raise PermissionDenied for a skill that the policy forbids to everybody."""
    if by := ban_on(system, name, path, real_path, real_dir, declared=declared):
        raise PermissionDenied(f"{name} may not be used: the system policy denies it ({by})")


def unmet(skills: Iterable[CatalogSkill], system: SystemPolicy) -> list[Diagnostic]:
    """Return an error for each skill that the system policy requires and that models are not told of."""
    required = system.required
    if not required:
        return []
    found = [(skill, _tree_of(skill.real_dir)) for skill in skills]
    errors = []
    for entry, by in required:
        meant = [s for s, tree in found if is_required(entry, s.name, s.path, s.real_path, s.real_dir, tree)]
        if any(skill.hidden is None for skill in meant):
            continue
        what = f"is hidden as {meant[0].hidden} by {meant[0].hidden_by}" if meant else "is missing"
        message = f"the required skill {fold(entry)} {what} ({by})"
        errors.append(Diagnostic(meant[0].path if meant else by.rpartition(": ")[0], "policy-required", message))
    return errors


def required_first(skills: Sequence[CatalogSkill], system: SystemPolicy) -> tuple[Sequence[CatalogSkill], int]:
    """Return skills for a catalog text, those first that the policy requires, and how many of these models are told of.

    A budget that has no room for all skills then leaves out others. A tree has no place in the order: a text depends on
    what a session knows of its skills, and not on their files.
    """
    entries = [one.entry for one in system.required if not one.entry.startswith("sha256:")]
    if not entries:
        return skills, 0

    def is_meant(skill: CatalogSkill) -> bool:
        subject = (skill.name, skill.path, skill.real_path, skill.real_dir, lambda: None)
        return skill.hidden is None and any(is_required(entry, *subject) for entry in entries)

    meant = [is_meant(skill) for skill in skills]
    first = [skill for skill, required in zip(skills, meant, strict=True) if required]
    others = [skill for skill, required in zip(skills, meant, strict=True) if not required]
    return (*first, *others), len(first)


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
