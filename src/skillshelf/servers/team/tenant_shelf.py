"""The catalog of one tenant: the releases of the database, and for the default tenant the server's own disk.

Names and descriptions come from the database; the files of a skill are fetched from the blob store when somebody uses
them, into a store of this machine. Without the database the last catalog goes on.
"""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from skillshelf.catalog.build import order_key
from skillshelf.catalog.source import PUBLISHED_SCHEME
from skillshelf.core import files
from skillshelf.core.console import note
from skillshelf.core.limits import CATALOG_POLL_SECONDS, SNAPSHOT_LAG
from skillshelf.core.text import cut, fold
from skillshelf.core.values import Catalog, CatalogSkill, RootReport, Shadowed
from skillshelf.errors import SkillError
from skillshelf.search.index import folder_for, index_stamps, indexed_terms, open_index
from skillshelf.servers.team.release_skills import (
    KeptSkills,
    MadeSkill,
    ReleaseSkills,
    SkillMaker,
    keep_skills,
    kept_skills,
)
from skillshelf.servers.team.release_source import UNKNOWN, CatalogState, ReleaseSource
from skillshelf.servers.team.releases import (
    CHANNELS,
    PUBLISHED,
    Channel,
)
from skillshelf.servers.team.snapshots import SnapshotRecord
from skillshelf.servers.team.values import (
    FILES_AWAY,
    NO_SPACE,
    BlobsAway,
    BlobsFull,
    DatabaseAway,
    NoSuchTenant,
    TooNew,
)
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from skillshelf.search.rank import IndexSnapshot

__all__ = ["TenantShelf", "digests_of"]

_APPROVED_ONLY = "policy of the tenant: approved_only"
_TURN_SECONDS = 1.0
"""Time after which texts that were fetched are searched, although more are missing."""


class TenantShelf(Shelf):
    """The skills of a tenant. `state` is that of the database when it was last asked, `away` why it does not answer."""

    def __init__(self, own: Shelf, tenant: str, source: ReleaseSource) -> None:
        super().__init__(
            own.environment,
            own.profile,
            own.settings,
            own.trust,
            use_cache=own.cache is not None,
            scorer=own.scorer,
            remote=own.remote,
        )
        self.tenant = tenant
        self.state = UNKNOWN
        self.away: str | None = None
        self._expected = 0
        self._followed = 0
        self._follow_lock = threading.RLock()
        self._source = source
        self._store = source.store_of(tenant)
        self._published = ReleaseSkills(SkillMaker(own.settings, own.profile, 0, self._store), {})
        # The archives of the trees of this catalog and of the one before, which somebody may still be using.
        self._artifacts: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self._channel: Channel = self.state.channel
        self._merged: tuple[Catalog, ReleaseSkills, Channel, Catalog] | None = None
        self._kept: tuple[str, SkillMaker] | None = None
        self._ready: set[str] = set()
        # The snapshot that searches use; the names that changed since then, or since the start; the terms of skills
        # that it lacks, by their stamps, and of which of them the text was there.
        self._used: SnapshotRecord | None = None
        self._recent: dict[str, None] = {}
        self._terms: dict[int, str] = {}
        self._with_text: frozenset[int] = frozenset()
        self._try_after: dict[int, float] = {}
        self._problem = ""
        self._nearing = threading.Lock()
        self._near: tuple[SnapshotRecord | None, ReleaseSkills] | None = None
        self.follow()

    @property
    def catalog(self) -> Catalog:
        """The catalog, which follows a change that this server made when it is next looked at."""
        if self.is_outdated:
            self.follow()
        return super().catalog

    @property
    def has_releases(self) -> bool:
        """Whether any release is served."""
        return bool(self._published.by_name)

    @property
    def has_snapshot(self) -> bool:
        """Whether the newest snapshot, or the one before that searches still use, is on this machine."""
        return any(self._source.snapshots.placed(self.tenant, one) for one in (self.state.snapshot, self._used))

    def expect_change(self) -> None:
        """Follow the database before the next look: this server has changed something."""
        self._expected += 1

    @property
    def is_outdated(self) -> bool:
        """Whether this server changed something that the catalog may not have yet."""
        return self._followed != self._expected

    @property
    def is_search_brief(self) -> bool:
        """True if the next search only computes: it does not ask the database either."""
        return super().is_search_brief and not self.is_outdated

    def follow(self) -> None:
        """Ask the database for a new revision or snapshot."""
        with self._follow_lock:
            self._follow()

    def _follow(self) -> None:
        expected = self._expected
        try:
            if self.state is UNKNOWN:
                self._begin_with_kept()
            news = self._source.news(self.tenant, self.state)
        except (DatabaseAway, NoSuchTenant) as error:
            # The file of a tenant that was open may be away with its disk.
            self.away = str(error)
            return
        self.away = None
        if news.state is not self.state or self._catalog is None:
            is_new = news.is_whole or news.state.rev != self.state.rev
            self._channel = news.state.channel
            if news.is_whole:
                served = [release for release in news.changes.values() if release is not None]
                self._published = ReleaseSkills.of(self._maker(super().scan()), served)
            elif news.changes:
                self._published = self._published.changed(news.changes)
                self._recent = {**self._recent, **dict.fromkeys(news.changes)}
            if is_new or self._catalog is None:
                self._catalog = self.scan()
            # Last: whoever reads the revision first never gets skills that are older.
            self.state = news.state
        self._followed = expected

    # What is kept for the next start --------------------------------------------------------------

    def _begin_with_kept(self) -> None:
        """Begin with the skills that an earlier server kept beside the snapshot that the database names."""
        snapshot = self._source.recorded(self.tenant)
        if snapshot is None:
            return
        path = self._source.snapshots.beside(self.tenant, snapshot)
        kept = kept_skills(path, self._maker(super().scan()))
        if kept is not None and kept.rev == snapshot.rev and kept.channel in CHANNELS:
            self._published, self._kept = kept.skills, (path, kept.skills.maker)
            self.state, self._channel = CatalogState(kept.rev, kept.channel, snapshot), kept.channel

    def keep(self) -> None:
        """Keep the skills beside their snapshot, unless they are there."""
        with self._follow_lock:
            state, published = self.state, self._published
        if state.snapshot is None or state.snapshot.rev != state.rev or not published.by_name:
            return
        path = self._source.snapshots.beside(self.tenant, state.snapshot)
        is_kept = self._kept == (path, published.maker) and files.kind_at(path) == "file"
        if not is_kept and files.kind_at(os.path.dirname(path)) == "folder":
            keep_skills(path, KeptSkills(state.rev, state.channel, published))
            self._kept = path, published.maker

    def _maker(self, own: Catalog) -> SkillMaker:
        return SkillMaker(self.settings, self.profile, len(own.roots), self._store)

    def require_rev(self, rev: int) -> None:
        """Raise `TooNew` unless the catalog has at least a revision; the database is asked again before."""
        if self.state.rev < rev or self.is_outdated:
            self.follow()
        if self.state.rev < rev:
            raise TooNew(self.state.rev, rev)

    def scan(self, *, account: bool = False) -> Catalog:
        """Scan the server's own disk, and add the releases; a published name wins."""
        own, channel = super().scan(account=account), self._channel
        published = self._published = self._published.made_with(self._maker(own))
        if not published.by_name and channel != "approved":
            return own
        if self._merged is None or self._merged[0] is not own or self._merged[1:3] != (published, channel):
            mine = _held_back(own) if channel == "approved" else own
            self._merged = own, published, channel, self._with_releases(mine, published)
        return self._merged[3]

    def _with_releases(self, own: Catalog, published: ReleaseSkills) -> Catalog:
        found = [one.skill for one in published.by_name.values()]
        self._artifacts = published.artifacts, self._artifacts[0]
        names = published.by_name.keys()
        lost = [skill for skill in own.skills if skill.name in names]
        shadowed = [
            Shadowed(one.name, one.path, f"{PUBLISHED_SCHEME}{one.name}/SKILL.md", same_file=False) for one in lost
        ]
        roots = (*own.roots, RootReport(PUBLISHED_SCHEME, "custom", exists=True, skills=len(found)))
        kept = [skill for skill in own.skills if skill.name not in names]
        skills = tuple(sorted([*kept, *found], key=order_key(self.profile, roots)))
        return own._replace(roots=roots, skills=skills, shadowed=(*own.shadowed, *shadowed))

    def make_ready(self, skill: CatalogSkill) -> None:
        """Fetch the files of a release into the store of this machine, unless they are there; raise `BlobsAway`."""
        try:
            self._fetch(skill)
        except BlobsAway as error:
            note(f"tenant {self.tenant}: {skill.name}: {cut(fold(str(error)), 200)}")
            raise (BlobsFull(NO_SPACE) if isinstance(error, BlobsFull) else BlobsAway(FILES_AWAY)) from None

    def artifact_of(self, skill: CatalogSkill) -> str | None:
        """Return the digest of the archive of a release of this catalog; None for any other skill."""
        return self._artifacts[0].get(skill.tree or "") if skill.source == PUBLISHED else None

    def _fetch(self, skill: CatalogSkill, artifact: str | None = None) -> None:
        """Fetch the files of a release; `artifact` is that of a catalog which may have gone on since."""
        if skill.source != PUBLISHED or skill.tree is None:
            return
        if skill.tree in self._ready and self._store.has(skill.tree):
            return
        now, before = self._artifacts
        self._source.fetch(self._store, skill.tree, artifact or now.get(skill.tree) or before.get(skill.tree))
        self._ready.add(skill.tree)

    def _open_index(self, catalog: Catalog) -> "IndexSnapshot":
        published = [n for n, skill in enumerate(catalog.skills) if skill.source == PUBLISHED]
        if not published:
            return super()._open_index(catalog)
        skills = [catalog.skills[n] for n in published]
        found = open_index(
            skills,
            self._index_folder(),
            digests=digests_of(skills),
            stamps=self._stamps(skills),
            known=self._terms,
            readonly=True,
        )
        own = [n for n, skill in enumerate(catalog.skills) if skill.source != PUBLISHED]
        if not own:
            return found
        roots = [root.path for root in catalog.roots if root.path != PUBLISHED_SCHEME]
        place = folder_for(self.cache, roots, self.profile.name) if self.cache else None
        local = open_index([catalog.skills[n] for n in own], place, stream=self.progress, report=self._indexed)
        self.indexing = None
        return local.joined(found, own, published)

    def _index_folder(self) -> str | None:
        """Return the folder of the newest snapshot on this machine; only if there is none, the newest is fetched."""
        snapshots, newest = self._source.snapshots, self.state.snapshot
        for record in (newest, self._used):
            if (path := snapshots.placed(self.tenant, record)) is not None:
                return path
        path = snapshots.opened(self.tenant, newest)
        if path is not None:
            self._used = newest
        return path

    def bring_near(self) -> tuple[bool, bool]:
        """Bring the newest snapshot to this machine, and the texts of newer releases; searches go on meanwhile.

        Return whether there are more texts, and whether the snapshot can be had.
        """
        with self._nearing:
            with self._follow_lock:
                newest, published, names = self.state.snapshot, self._published, self._recent
            if self._near is not None and self._near[0] == newest and self._near[1] is published:
                return False, True
            before, folder = (self._used, self._with_text), self._source.snapshots.opened(self.tenant, newest)
            is_had = folder is not None or newest is None
            if folder is not None:
                self._used = newest
            else:
                folder = self._source.snapshots.placed(self.tenant, self._used)
            have = index_stamps(folder) if folder is not None else frozenset[int]()
            lacking = [one for one in published.by_name.values() if one.stamp not in have]
            terms = {one.stamp: self._terms[one.stamp] for one in lacking if one.stamp in self._terms}
            if len(lacking) > SNAPSHOT_LAG:
                # A server that begins without a snapshot leaves most of them to it.
                lacking = [one for one in lacking if one.skill.name in names][-SNAPSHOT_LAG:]
            more = self._add_texts(terms, lacking)
            is_same = before == (self._used, self._with_text)
            self._near = (newest, published) if is_had and len(self._with_text) == len(lacking) else None
            with self._follow_lock:
                lacks = {one.skill.name for one in lacking}
                self._recent = {name: None for name in self._recent if name not in names or name in lacks}
        if not is_same:
            with self._lock:
                self._finder = None
        return more, is_had

    def _add_texts(self, terms: dict[int, str], lacking: Sequence[MadeSkill]) -> bool:
        """Add the terms of skills with their texts, as many as one turn has time for; return whether some are left."""
        done = {one.stamp for one in lacking if one.stamp in self._with_text and one.stamp in terms}
        end, problem, more = time.monotonic() + _TURN_SECONDS, "", False
        for one in reversed(lacking):
            if one.stamp in done or time.monotonic() < self._try_after.get(one.stamp, 0.0):
                continue
            if more := time.monotonic() > end:
                break
            try:
                self._fetch(one.skill, one.artifact)
            except (SkillError, OSError) as error:
                # It is found by its name and description, and tried again after the others.
                problem = problem or str(error)
                self._try_after[one.stamp] = time.monotonic() + CATALOG_POLL_SECONDS
                continue
            found = indexed_terms(one.skill)
            if found is not None:
                terms[one.stamp] = found
                done.add(one.stamp)
        if problem and problem != self._problem:
            note(f"tenant {self.tenant}: the text of a release is not searched: {cut(fold(problem), 200)}")
        self._problem = problem or (self._problem if more or len(done) < len(lacking) else "")
        self._try_after = {stamp: at for stamp, at in self._try_after.items() if stamp not in done}
        self._terms, self._with_text = terms, frozenset(done)
        return more

    def _stamps(self, skills: Sequence[CatalogSkill]) -> list[int] | None:
        """Return the numbers of skills in the index; None if the catalog is not that of the releases any more."""
        known = self._published.by_name
        made = [known.get(skill.name) for skill in skills]
        stamps = [one.stamp for one, skill in zip(made, skills, strict=True) if one is not None and one.skill is skill]
        return stamps if len(stamps) == len(skills) else None

    def build_snapshot(self) -> None:
        """Build the snapshot of the revision that this shelf has, unless there is one that can be had."""
        with self._follow_lock:
            # In this order: a look at the catalog follows what this server has published.
            catalog, state, artifacts = self.catalog, self.state, self._artifacts[0]
        skills = [skill for skill in catalog.skills if skill.source == PUBLISHED]
        if skills:
            self._source.snapshots.build(
                self.tenant,
                state.rev,
                skills,
                digests_of(skills),
                lambda skill: self._fetch(skill, artifacts.get(skill.tree or "")),
            )


def _held_back(own: Catalog) -> Catalog:
    """Return the catalog of the server's disk as a tenant that serves approved releases alone sees it."""
    return own._replace(skills=tuple(skill._replace(hidden="denied", hidden_by=_APPROVED_ONLY) for skill in own.skills))


def digests_of(skills: list[CatalogSkill]) -> dict[str, str]:
    """Return the digests of published skills by path."""
    return {skill.path: skill.tree for skill in skills if skill.tree is not None}
