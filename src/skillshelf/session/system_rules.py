"""Decide whether models are served at all under the system policy, and record that policy for replay."""

from collections.abc import Sequence
from typing import Any

from skillshelf.catalog.build_context import required_first, unmet
from skillshelf.catalog.prompt import catalog_text
from skillshelf.config.permission_rules import rule_to_dict
from skillshelf.config.system_policy import PolicyFile, SystemPolicy, host_refusal
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import PermissionDenied
from skillshelf.session.effects import ShelfProtocol

__all__ = ["as_record", "is_served", "require_required", "require_served", "require_usable", "still_required"]


def require_usable(system: SystemPolicy) -> None:
    """Raise PermissionDenied if a file of the policy cannot be used: nobody knows what it forbids."""
    if system.problem:
        raise PermissionDenied(f"no model is served, because the system policy cannot be used: {system.problem}")


def require_served(shelf: ShelfProtocol) -> None:
    """Raise PermissionDenied unless the policy lets this shelf serve a model."""
    system = shelf.settings.system
    if not system.files:
        return
    require_usable(system)
    host = shelf.profile.host
    if host is not None and (by := host_refusal(system, host)):
        raise PermissionDenied(f"no model is served as host {host}: the system policy forbids it ({by})")
    require_required(shelf.catalog.skills, system)
    if reason := _no_room(shelf):
        raise PermissionDenied(f"no model is served: {reason}")


def require_required(skills: Sequence[CatalogSkill], system: SystemPolicy) -> None:
    """Raise PermissionDenied if a required skill is not among these, or is hidden from models."""
    if missing := unmet(skills, system):
        raise PermissionDenied(f"no model is served: {missing[0].message}")


def _no_room(shelf: ShelfProtocol) -> str | None:
    """Return the sentence about required skills that the budget of the catalog text leaves out; they come first."""
    system = shelf.settings.system
    skills, required = required_first(shelf.catalog.skills, system)
    if not required:
        return None
    text = catalog_text(skills, shelf.profile, shelf.settings_in_force)
    if not text.omitted or text.entries >= required:
        return None
    return f"the budget of the catalog text has no room for the required skills ({system.required[0].by})"


def is_served(shelf: ShelfProtocol) -> bool:
    """Return whether the policy lets this shelf serve a model."""
    try:
        require_served(shelf)
    except PermissionDenied:
        return False
    return True


def still_required(skills: Sequence[CatalogSkill], system: SystemPolicy) -> str | None:
    """Return the sentence about a required skill that went away; trees are compared when a session begins."""
    named = system._replace(
        files=tuple(
            file._replace(required=tuple(entry for entry in file.required if not entry.startswith("sha256:")))
            for file in system.files
        )
    )
    missing = unmet(skills, named)
    return missing[0].message if missing else None


# Recording ----------------------------------------------------------------------------------------


def as_record(system: SystemPolicy) -> list[dict[str, Any]]:
    """Return what the policy says as a JSON value."""
    from skillshelf.journal.events import plain

    return [
        {
            key: [rule_to_dict(rule) for rule in value] if key == "deny" else plain(value)
            for key, value in file._asdict().items()
            if value != PolicyFile._field_defaults.get(key)
        }
        for file in system.files
    ]
