"""A place and a profile to a shelf: the object everything else hangs on."""

import os
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from skillshelf import catalog as catalogs
from skillshelf import files
from skillshelf.cache import Cache
from skillshelf.config import Settings, Trust, load_settings
from skillshelf.discovery import discover
from skillshelf.errors import ConfigurationError, SkillDirectoryNotFound, SkillsDisabled
from skillshelf.limits import RESOURCE_BYTES
from skillshelf.place import Place, find_repository, locate, user_cache_folder
from skillshelf.profile import Profile
from skillshelf.profiles import DEFAULT_PROFILE, find_profile
from skillshelf.roots import Roots, resolve_roots
from skillshelf.values import Catalog, Entry

if TYPE_CHECKING:
    from skillshelf.loader import LoadedSkill
    from skillshelf.policy import Confirm, Policy
    from skillshelf.resources import Resource
    from skillshelf.search import SearchReport
    from skillshelf.session import Session

__all__ = ["Shelf", "open_shelf"]


class Shelf:
    """The skills of one place, as one profile sees them.

    What a method needs is imported when it is called: listing must not wait for what only a session uses.
    """

    def __init__(
        self, place: Place, profile: Profile, settings: Settings, trust: Trust, *, use_cache: bool = True
    ) -> None:
        self.place = place
        self.profile = profile
        self.settings = settings
        self.trust: Trust = trust
        self._catalog: Catalog | None = None
        self._cache = Cache(user_cache_folder(place), profile) if use_cache else None

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
        if self._cache is None:
            found = discover(roots.roots, self.profile, repository=roots.repository, account=account)
            return catalogs.build(found, roots, self.profile, self.settings)
        return self._scan_with(self._cache, roots, account=account)

    def _scan_with(self, cache: Cache, roots: Roots, *, account: bool) -> Catalog:
        now = time.time_ns()
        notes: list[dict[str, Entry]] = [{} for _ in roots.roots]
        found = discover(
            roots.roots, self.profile, repository=roots.repository, account=account, remembered=cache.entries
        )
        catalog = catalogs.build(found, roots, self.profile, self.settings, notes)
        for root, entries in zip(roots.roots, notes, strict=True):
            cache.keep(root, entries, looked_at_ns=now)
        return catalog

    @property
    def project_root(self) -> str:
        """The repository by the profile's markers, or the working directory."""
        return find_repository(self.place.cwd, self.profile.markers) or self.place.cwd

    @property
    def settings_in_force(self) -> Settings:
        """The settings with what the profile's environment variable says about the budget."""
        variable = self.profile.budget_env
        given = self.place.env.get(variable, "") if variable else ""
        return self.settings._replace(max_chars=int(given)) if given.isdecimal() and int(given) else self.settings

    def search(
        self, query: str, *, limit: int | None = None, scope: str | None = None, model: bool = False
    ) -> "SearchReport":
        """The skills that fit a query, best first; `model` leaves out those a model is not told of."""
        from skillshelf.prompt import told_to_models
        from skillshelf.search import search

        most = self.settings.default_limit if limit is None else limit
        skills = told_to_models(self.catalog.skills) if model else self.catalog.skills
        return search(skills, query, limit=min(most, self.settings.max_limit), scope=scope, cwd=self.place.cwd)

    def load(self, name: str | None = None, *, path: str | os.PathLike[str] | None = None) -> "LoadedSkill":
        """A skill of the catalog by its name or path, read anew; a path wins."""
        from skillshelf.loader import load, resolve

        if not self.settings.enabled:
            raise SkillsDisabled("skills are disabled")
        return load(resolve(self.catalog.skills, name=name, path=_text(path), cwd=self.place.cwd), self.profile)

    def read(self, uri: str, *, limit: int = RESOURCE_BYTES) -> "Resource":
        """The file of a skill that an address `skill://name/path` names."""
        from skillshelf.resources import read_resource

        return read_resource(uri, self.catalog.skills, self.profile, limit=limit)[1]

    def prompt(self) -> str:
        """The catalog as this profile writes it for a model."""
        from skillshelf.prompt import catalog_text

        return catalog_text(self.catalog.skills, self.profile, self.settings_in_force).text

    def session(
        self,
        policy: "Policy | Mapping[str, Any] | str | None" = None,
        *,
        confirm: "Confirm | None" = None,
        preload: Iterable[str] = (),
    ) -> "Session":
        """A conversation on this shelf."""
        from skillshelf.session import Session

        return Session(self, policy=policy, confirm=confirm, preload=preload)

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
    keys, replaces both configuration files. `use_cache=False` reads every file anew.
    `trust` says whose skills a model is told of: `all`, `ask` (those of trusted folders) or `user`.
    """
    if trust not in get_args(Trust):
        raise ConfigurationError(f"trust is one of {', '.join(get_args(Trust))}, not {trust!r}")
    place = locate(_text(cwd), _text(home), env)
    if files.kind_at(files.real_path(place.cwd)) != "folder":
        raise SkillDirectoryNotFound(place.cwd)
    settings = load_settings(place, file=config if isinstance(config, Mapping) else _text(config), trust=trust)
    chosen = find_profile(profile or settings.profile or DEFAULT_PROFILE, settings.profiles)
    return Shelf(place, chosen, settings, trust, use_cache=use_cache)


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
