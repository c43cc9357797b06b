"""A place and a profile to a shelf: the object everything else hangs on."""

import os
from collections.abc import Mapping
from typing import Any

from skillshelf import catalog as catalogs
from skillshelf import files
from skillshelf.config import Place, Settings, Trust, load_settings, locate
from skillshelf.discovery import discover
from skillshelf.errors import SkillDirectoryNotFound
from skillshelf.profile import Profile
from skillshelf.profiles import DEFAULT_PROFILE, find_profile
from skillshelf.roots import resolve_roots
from skillshelf.values import Catalog

__all__ = ["Shelf", "open_shelf"]


class Shelf:
    """The skills of one place, as one profile sees them."""

    def __init__(self, place: Place, profile: Profile, settings: Settings, trust: Trust) -> None:
        self.place = place
        self.profile = profile
        self.settings = settings
        self.trust: Trust = trust
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """What one look at the disk gave; the look is taken at the first use and by `refresh`."""
        if self._catalog is None:
            self._catalog = self.scan()
        return self._catalog

    def scan(self, *, account: bool = False) -> Catalog:
        """A fresh catalog; `account` also lists what lies inside skills and in skipped folders."""
        roots = resolve_roots(self.profile, self.place, self.settings, trust=self.trust)
        if not self.settings.enabled:
            return catalogs.empty(roots, self.profile, self.settings)
        found = discover(roots.roots, self.profile, repository=roots.repository, account=account)
        return catalogs.build(found, roots, self.profile, self.settings)

    def refresh(self) -> bool:
        """Look at the disk again; True if anything changed since the last look."""
        before = self.catalog
        self._catalog = self.scan()
        return before != self._catalog


def open_shelf(
    cwd: str | os.PathLike[str] | None = None,
    profile: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    use_cache: bool = True,
    trust: Trust = "all",
) -> Shelf:
    """Open the shelf of a working directory. Nothing is read from the roots before the catalog is asked for.

    `home` and `env` replace the home folder and the environment; `config`, a file or a mapping with the same
    keys, replaces both configuration files. `use_cache=False` reads every file anew, which this version always does.
    `trust` says whose skills a model is told of: `all`, `ask` (those of trusted folders) or `user`.
    """
    place = locate(_text(cwd), _text(home), env)
    if files.kind_at(files.real_path(place.cwd)) != "folder":
        raise SkillDirectoryNotFound(place.cwd)
    settings = load_settings(place, file=config if isinstance(config, Mapping) else _text(config), trust=trust)
    chosen = find_profile(profile or settings.profile or DEFAULT_PROFILE, settings.profiles)
    return Shelf(place, chosen, settings, trust)


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
