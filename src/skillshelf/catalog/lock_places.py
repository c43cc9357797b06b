"""Say where locks and installed skills lie, and whether there may be any: all that a listing without them needs."""

import os
from collections.abc import Iterable

from skillshelf.core import files
from skillshelf.core.environment import Environment, user_config_path, user_data_folder

__all__ = ["CHANGED", "EXTRA", "INSTALLED", "LOCK_FILE", "UNUSABLE", "lock_states", "may_be_locked", "user_lock_path"]

LOCK_FILE = "skillshelf.lock"

INSTALLED = ".agents/skills"
"""The folder of a project, or of the home folder, that installed skills lie in."""

CHANGED = "lock-changed"
"""The rule of the warning, and the kind of the event, about an installed skill that is not what its lock names."""

EXTRA = "lock-extra"
"""The rule of the warning about folders that Python made in a skill that was installed without them."""

UNUSABLE = "lock-unusable"
"""The rule of the error about a lock that cannot be used."""


def user_lock_path(environment: Environment) -> str | None:
    """Return the path of the user's own lock, whether or not it exists; None without a home folder."""
    path = user_config_path(environment._replace(config=None))
    return f"{os.path.dirname(path)}/{LOCK_FILE}" if path is not None else None


def lock_states(environment: Environment, folders: Iterable[str]) -> dict[str, tuple[int, ...] | None]:
    """Return what tells two states of every lock apart that may speak of skills below these real folders."""
    own = user_lock_path(environment)
    paths = {own} if own is not None else set()
    for folder in folders:
        while folder and f"{folder}/{LOCK_FILE}" not in paths:
            paths.add(f"{folder}/{LOCK_FILE}")
            folder = folder.rpartition("/")[0]
    return {path: files.state_at(path) for path in paths}


def may_be_locked(environment: Environment, folders: Iterable[str]) -> bool:
    """Return False if nothing is installed that a skill below these real folders could be: a few stats, no read."""
    data = user_data_folder(environment)
    own = user_lock_path(environment)
    if any(path is not None and files.state_at(path) for path in (own, f"{data}/store" if data else None)):
        return True
    above = {""}
    for folder in folders:
        while folder not in above:
            above.add(folder)
            if files.state_at(f"{folder}/{LOCK_FILE}"):
                return True
            folder = folder.rpartition("/")[0]
    return False
