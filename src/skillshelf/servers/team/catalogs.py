"""The skills that each caller sees: one catalog for a tenant, and a part of it for each subset of names."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from skillshelf.core.limits import TEAM_CATALOGS
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Catalog, CatalogSkill
from skillshelf.servers.mcp.skills import PublishedSkills
from skillshelf.servers.team.own_journals import ROTATION
from skillshelf.servers.team.values import DEFAULT_TENANT, Caller
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from skillshelf.search.query import Finder, Scorer

__all__ = ["OWN_CATALOG", "CatalogKey", "PartOfShelf", "ShelfOf", "TeamCatalogs", "key_of", "local_shelves"]

ShelfOf = Callable[[str], Shelf]
"""Return all skills of a tenant. It is called once for each tenant and subset in use, and may be called again later."""

_ALL = ("*",)
_NEVER_SECONDS = 10.0**9


class CatalogKey(NamedTuple):
    """What decides which skills a caller sees: the tenant, and the patterns of names."""

    tenant: str
    subset: tuple[str, ...]


OWN_CATALOG = CatalogKey(DEFAULT_TENANT, _ALL)
"""The catalog of the server's own disk, which stays open: it is what follows changes there."""


def key_of(caller: Caller) -> CatalogKey:
    """Return the key of the catalog that a caller sees."""
    return CatalogKey(caller.tenant, caller.subset)


class PartOfShelf(Shelf):
    """The skills of another shelf whose names match. Searches use the index of the whole, and count in the part alone.

    Everything that names a skill outside the part is left out too: findings, shadowed and filtered files.
    """

    def __init__(self, whole: Shelf, keep: Callable[[CatalogSkill], bool]) -> None:
        super().__init__(
            whole.environment,
            whole.profile,
            whole.settings,
            whole.trust,
            use_cache=False,
            scorer=whole.scorer,
            remote=whole.remote,
        )
        self._whole = whole
        self._keep = keep
        self._seen: tuple[Catalog, Catalog] | None = None
        self._searched: tuple[Finder, Finder] | None = None

    @property
    def catalog(self) -> Catalog:
        """The part of the whole's catalog as it is now."""
        whole = self._whole.catalog
        seen = self._seen
        if seen is None or seen[0] is not whole:
            seen = self._seen = whole, self._part(whole)
        self.settings = self._whole.settings
        return seen[1]

    def scan(self, *, account: bool = False) -> Catalog:
        """Return the part of a new scan of the whole."""
        return self._part(self._whole.scan(account=account))

    def _part(self, whole: Catalog) -> Catalog:
        kept = tuple(skill for skill in whole.skills if self._keep(skill))
        return whole._replace(skills=kept, errors=(), warnings=(), shadowed=(), filtered=())

    def refresh(self, *, sources_after: float = 0.0) -> bool:
        """Scan the whole again, and return True if the part has changed."""
        before = self.catalog.skills
        self._whole.refresh(sources_after=sources_after)
        return self.catalog.skills != before

    def renew_policy(self) -> bool:
        """Follow the system policy, as the whole does."""
        changed = self._whole.renew_policy()
        self.settings = self._whole.settings
        return changed

    def _current_finder(self) -> "Finder":
        """Return a finder of the part, for the catalog and the index that the whole has now."""
        with self._whole._lock:
            whole = self._whole._current_finder()
            whole.prepare()
        searched = self._searched
        if searched is None or searched[0] is not whole:
            searched = self._searched = whole, whole.part(self._keep)
        return searched[1]

    def _configured_scorer(self) -> "Scorer | None":
        """Return the scorer of the whole, which keeps what it knows of texts."""
        return self._whole._configured_scorer()

    def make_ready(self, skill: CatalogSkill) -> None:
        """Bring the files of a skill to this disk, as the whole does."""
        self._whole.make_ready(skill)

    def prepare_search(self) -> None:
        """Open the index of the whole."""
        self._whole.prepare_search()

    @property
    def is_search_ready(self) -> bool:
        """True if the index of the whole is open."""
        return self._whole.is_search_ready

    @property
    def is_search_brief(self) -> bool:
        """True if a search of the whole only computes."""
        return self._whole.is_search_brief


def local_shelves(local: Shelf) -> ShelfOf:
    """Return the shelves of a server without releases: its own disk for the default tenant, nothing for others."""

    def shelf_of(tenant: str) -> Shelf:
        return local if tenant == DEFAULT_TENANT else PartOfShelf(local, lambda skill: False)

    return shelf_of


class TeamCatalogs:
    """The catalogs in use, by tenant and subset; the least recently used one is closed when there are too many.

    `options` are those of `Shelf.session`, for the sessions of clients; `journal_of` returns the journal of a tenant.
    """

    def __init__(
        self,
        shelf_of: ShelfOf,
        *,
        most: int = TEAM_CATALOGS,
        journal_of: Callable[[str], str] | None = None,
        **options: Any,
    ) -> None:
        self._shelf_of = shelf_of
        self._journal_of = journal_of
        self._most = most
        self._options = options
        self._lock = threading.Lock()
        self._open: OrderedDict[CatalogKey, PublishedSkills] = OrderedDict()
        self._openings: WeakValueDictionary[CatalogKey, threading.Lock] = WeakValueDictionary()
        self.closed: Callable[[CatalogKey], None] = lambda key: None

    def __len__(self) -> int:
        return len(self._open)

    def skills(self, key: CatalogKey) -> PublishedSkills:
        """Return the skills for a key; opening them reads the catalog of the tenant."""
        with self._lock:
            if (found := self._used(key)) is not None:
                return found
            opening = self._openings.setdefault(key, threading.Lock())
        # Of this key alone: whoever waits for a database that hangs keeps no other catalog from being opened or used.
        with opening:
            with self._lock:
                found = self._used(key)
            return found if found is not None else self._add(key, self._opened(key))

    def _used(self, key: CatalogKey) -> PublishedSkills | None:
        """Return the skills for a key as the ones used last, if they are open."""
        found = self._open.get(key)
        if found is not None:
            self._open.move_to_end(key)
        return found

    def _add(self, key: CatalogKey, skills: PublishedSkills) -> PublishedSkills:
        """Keep skills open, and close those that were not used for longest if there are too many."""
        gone: list[tuple[CatalogKey, PublishedSkills]] = []
        with self._lock:
            self._open[key] = skills
            while len(self._open) > self._most:
                oldest = next(key for key in self._open if key != OWN_CATALOG)
                gone.append((oldest, self._open.pop(oldest)))
        for other, closed in gone:
            self.closed(other)
            closed.sessions.close()
        return skills

    def opened(self, key: CatalogKey) -> PublishedSkills | None:
        """Return the skills for a key if they are open."""
        with self._lock:
            return self._used(key)

    def of(self, caller: Caller) -> PublishedSkills:
        """Return the skills that a caller sees."""
        return self.skills(key_of(caller))

    def _opened(self, key: CatalogKey) -> PublishedSkills:
        whole = self._shelf_of(key.tenant)
        part = whole if key.subset == _ALL else PartOfShelf(whole, lambda skill: _matches(skill.name, key.subset))
        # The disk is watched once for all of them.
        options = self._options
        if self._journal_of is not None:
            options = {**options, "journal": self._journal_of(key.tenant), "rotate": ROTATION}
        return PublishedSkills(part, refresh_seconds=_NEVER_SECONDS, **options)

    def close(self) -> None:
        """End all sessions of clients."""
        with self._lock:
            opened, self._open = self._open, OrderedDict()
        for skills in opened.values():
            skills.sessions.close()


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
