"""Say where installed skills live: the wishes, the lock, the copies and the history of the user or of one project."""

import os
from typing import Literal

from skillshelf.catalog.lock import LOCK_FILE
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.environment import Environment, find_repository, user_config_path, user_data_folder
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError

__all__ = ["MARKERS", "PROJECTS", "WISHES_FILE", "InstallScope", "scope_of"]

MARKERS = (".git", ".jj", ".hg")
"""The entries that mark the root of a repository."""

WISHES_FILE = "skillshelf.toml"
PROJECTS = "projects"
"""The folder below the data folder with the history of each project."""

_SKILLS = ".agents/skills"


class InstallScope(NamedTuple):
    """The places of one scope.

    `root` is the repository, or the working directory where there is none; for the user it is the configuration
    folder. `skills_folder` holds the copies of a project and is None for the user, whose trees stay in the store below
    `data_folder`.
    """

    kind: Literal["user", "project"]
    root: str
    lock_path: str
    wishes_path: str
    skills_folder: str | None
    data_folder: str

    @property
    def history(self) -> str:
        """The folder with the generations of this scope, and with what is pending."""
        if self.kind == "user":
            return self.data_folder
        return f"{self.data_folder}/{PROJECTS}/{sha256(files.path_bytes(self.root)).hexdigest()[:16]}"

    @property
    def shown(self) -> str:
        """The scope in words, for messages."""
        return "your own skills" if self.kind == "user" else self.root


def scope_of(environment: Environment, *, user: bool) -> InstallScope:
    """Return the scope of the user, or of the project around the working directory.

    `--config` replaces settings, not this place: wishes and lock of the user lie in the configuration folder in any
    case, since what is installed does not change with the settings of one command.
    """
    data = user_data_folder(environment)
    config = user_config_path(environment._replace(config=None))
    if data is None or config is None:
        raise ConfigurationError("there is no home folder to keep skills in; name one with --home")
    if user:
        folder = os.path.dirname(config)
        return InstallScope("user", folder, f"{folder}/{LOCK_FILE}", config, None, data)
    here = files.real_path(environment.cwd)
    root = find_repository(here, MARKERS) or here
    return InstallScope(
        "project", root, f"{root}/{LOCK_FILE}", f"{root}/{WISHES_FILE}", f"{root}/{_SKILLS}".replace("//", "/"), data
    )
