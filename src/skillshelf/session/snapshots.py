"""A conversation to a JSON value, and what is different on disk since one was taken."""

from collections.abc import Iterator, Mapping
from typing import Any

from skillshelf.config.profile import Profile
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.session.desk import Desk

__all__ = ["check_snapshot", "differences", "take_snapshot"]

_MEMBERS = frozenset({"version", "profile", "active", "preloaded", "asked_for", "loaded", "texts"})
_VERSION = 1


def take_snapshot(desk: Desk) -> dict[str, Any]:
    """What a conversation is made of now."""
    return {
        "version": _VERSION,
        "profile": desk.profile.name,
        "active": sorted(desk.active),
        "preloaded": [loaded.skill.name for loaded in desk.preloaded],
        "asked_for": sorted(desk.guard.asked_for),
        **desk.memory.to_dict(),
    }


def check_snapshot(snapshot: Mapping[str, Any], profile: Profile) -> None:
    """Refuse what cannot be restored with a profile."""
    if not isinstance(snapshot, Mapping) or not set(snapshot) >= _MEMBERS:
        raise ConfigurationError("not a snapshot of a session")
    if snapshot["version"] != _VERSION or snapshot["profile"] != profile.name:
        raise ConfigurationError("not a snapshot of a session with this profile")


def differences(desk: Desk) -> Iterator[str]:
    """What the disk holds now in the place of what the model was sent."""
    known = {skill.path: skill for skill in desk.skills}
    for path, sent in desk.memory.sent.items():
        if path not in known:
            yield f"missing: {sent.name} ({path})"
            continue
        try:
            loaded = desk.world.load(known[path], desk.profile)
        except SkillError as error:
            yield f"broken: {sent.name}: {error}"
            continue
        if loaded.digest != sent.digest:
            yield f"updated: {sent.name} ({path})"
