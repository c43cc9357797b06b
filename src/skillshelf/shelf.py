"""Shelf: the facade over catalog, search and sessions."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from skillshelf.catalog.lock_places import may_be_locked
from skillshelf.catalog.scan import Scanner
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.config.profile import Profile, scopes_of
from skillshelf.config.settings import Settings, Trust, load_settings, load_system_policy, with_system_policy
from skillshelf.config.system_policy import is_banned, is_outdated, lock_required
from skillshelf.core import files
from skillshelf.core.environment import Environment, find_repository, make_environment, user_cache_folder
from skillshelf.core.limits import RESOURCE_BYTES
from skillshelf.core.text import did_you_mean
from skillshelf.core.values import Catalog, CatalogSkill
from skillshelf.errors import ConfigurationError, FileReadError, SkillDirectoryNotFound, SkillNotFound, SkillsDisabled

if TYPE_CHECKING:
    from typing import TextIO

    from skillshelf.catalog.discovery import Found
    from skillshelf.catalog.held_back import HeldBack
    from skillshelf.catalog.load import LoadedSkill, Resource
    from skillshelf.catalog.locked_files import LockedFiles
    from skillshelf.catalog.remote import RemoteSkills
    from skillshelf.catalog.source import Source
    from skillshelf.journal.otlp import EventExporter
    from skillshelf.journal.parts import Rotation
    from skillshelf.search.query import Finder, Scorer, SearchReport, SearchResult
    from skillshelf.search.rank import IndexSnapshot
    from skillshelf.search.usage_history import UsageHistory
    from skillshelf.search.usage_prior import Prior, QueryPrior
    from skillshelf.session.policy import Policy
    from skillshelf.session.recorder import OnEvent
    from skillshelf.session.replay import Replay
    from skillshelf.session.sent_texts import Memory
    from skillshelf.session.session import Session
    from skillshelf.session.threads import AnyConfirm

__all__ = ["Shelf", "open_shelf", "replay"]


class _UnlockedScorer:
    """A second scorer that works without the lock of the shelf: it may wait for a server."""

    def __init__(self, scorer: "Scorer", lock: "threading.RLock") -> None:
        self._scorer = scorer
        self._lock = lock

    def score(self, query: str, skills: Sequence[CatalogSkill]) -> Sequence[float]:
        """Return the score of each skill."""
        self._lock.release()
        try:
            return self._scorer.score(query, skills)
        finally:
            self._lock.acquire()


class Shelf:
    """The skills of one environment, as one profile sees them.

    Methods import what they need when they are called, so that listing does not import what only a session uses. If
    `progress` is a terminal, slow work shows its progress there. `indexing` is how many skills the search index has to
    add and how many it has added, while it does that. A `catalog` that was made elsewhere counts until `refresh`.
    `remote` has the skills of live sources, if there are any. A shelf that may `learn` ranks by the history of use and
    adds to it, where its profile does so.
    """

    def __init__(
        self,
        environment: Environment,
        profile: Profile,
        settings: Settings,
        trust: Trust,
        *,
        use_cache: bool = True,
        scorer: "Scorer | None" = None,
        catalog: Catalog | None = None,
        remote: "RemoteSkills | None" = None,
        learn: bool = False,
    ) -> None:
        self.environment = environment
        self.profile = profile
        self.settings = settings
        self.trust: Trust = trust
        self.cache = user_cache_folder(environment) if use_cache else None
        self.scorer = scorer
        self.remote = remote
        self.learn = learn and profile.search_prior == "use"
        self._usage: UsageHistory | None = None
        self.progress: TextIO | None = None
        self.indexing: tuple[int, int] | None = None
        # What adapters keep for as long as the shelf lives.
        self.attachments: dict[str, object] = {}
        self._catalog = catalog
        self._scanner = Scanner(self.cache, profile, settings) if use_cache else None
        self._finder: tuple[Catalog, Finder] | None = None
        self._own_scorer: tuple[Settings, Scorer] | None = None
        # A catalog as it was scanned, the same with installed skills marked, and these.
        self._last_locked: tuple[Catalog, Catalog, Mapping[int, CatalogSkill]] | None = None
        self._lock = threading.RLock()

    @property
    def catalog(self) -> Catalog:
        """The catalog of the last scan; the first use and `refresh` scan."""
        if self._catalog is None:
            self._catalog = self.scan()
        return self._catalog

    def scan(self, *, account: bool = False) -> Catalog:
        """Scan the roots; `account` also lists the files inside skills and in skipped folders."""
        found = self._locked(self._scan(account=account))
        if self.remote is not None and self.settings.enabled:
            found = self.remote.merged(found, self.profile, self.settings)
        if not self.settings.system.files:
            return found
        from skillshelf.catalog.build_context import unmet

        missing = unmet(found.skills, self.settings.system)
        return found._replace(errors=(*missing, *found.errors)) if missing else found

    def _locked(self, found: Catalog) -> Catalog:
        """Return a catalog with its installed skills marked, and those hidden whose files are others."""
        system, environment = self.settings.system, self.environment
        # The folder of a root may be a link; a lock may speak of the place, and one of where it leads.
        known = [root.path for root in found.roots if root.exists]
        roots = (folder for path in known for folder in (path, files.real_path(path)))
        if not may_be_locked(environment, roots) and lock_required(system) is None:
            return found
        from skillshelf.catalog.locked_catalog import with_locks

        last = self._last_locked
        approved = self._shown_though_untrusted if self.trust == "ask" else None
        result, marked = with_locks(found, environment, self.cache, system, approved=approved)
        if last is not None and last[0] is found and last[1].errors == result.errors and last[2] == marked:
            return last[1]
        self._last_locked = found, result, marked
        return result

    def _shown_though_untrusted(self, skill: CatalogSkill) -> CatalogSkill:
        from skillshelf.catalog.build_context import shown_though_untrusted

        return shown_though_untrusted(skill, self.settings, self.profile)

    def renew_policy(self) -> bool:
        """Follow the system policy if it changed since, or was never read; return True if it did."""
        if not is_outdated(self.settings.system, self.environment):
            return False
        system = load_system_policy(self.environment)
        if self.settings.project_file is not None:
            # Whether the project's file counts is a matter of trust, too.
            self.settings = load_settings(self.environment, trust=self.trust, system=system)
        else:
            self.settings = with_system_policy(self.settings, system)
        self._catalog = None
        if self._scanner is not None:
            self._scanner = Scanner(self.cache, self.profile, self.settings)
        return True

    def _scan(self, *, account: bool) -> Catalog:
        roots = resolve_roots(self.profile, self.environment, self.settings, trust=self.trust)
        if self.settings.enabled and self._scanner is not None:
            return self._scanner.scan(roots, watch=self._watched, account=account)
        from skillshelf.catalog.build import build, empty
        from skillshelf.catalog.discovery import discover

        if not self.settings.enabled:
            return empty(roots, self.profile, self.settings)
        found = self._watched(discover(roots.roots, self.profile, repository=roots.repository, account=account))
        return build(found, roots, self.profile, self.settings)

    def _watched(self, found: "Iterator[Found]") -> "Iterator[Found]":
        if self.progress is None or not self.progress.isatty():
            return found
        from skillshelf.core.console import watched

        return watched(found, "Reading skills", self.progress)

    @property
    def project_root(self) -> str:
        """The repository root by the profile's markers, or the working directory."""
        return find_repository(self.environment.cwd, self.profile.markers) or self.environment.cwd

    @property
    def scopes(self) -> list[str]:
        """The scopes that skills of this shelf can have: those of the profile, and `remote` with live sources."""
        return [*scopes_of(self.profile), *(["remote"] if self.remote is not None else [])]

    @property
    def held_back(self) -> "HeldBack":
        """The count of what models are not told: skills of an untrusted project, and what its own file takes away."""
        from skillshelf.catalog.held_back import held_back

        return held_back(self.catalog, self.settings, self.project_root)

    @property
    def settings_in_force(self) -> Settings:
        """The settings, with the budget of the profile's environment variable."""
        variable = self.profile.budget_env
        given = self.environment.env.get(variable, "").strip() if variable else ""
        return self.settings._replace(max_chars=int(given)) if _is_count(given) else self.settings

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        scope: str | None = None,
        model: bool = False,
        keep: Callable[[CatalogSkill], bool] | None = None,
        scorer: "Scorer | None" = None,
        every: bool = False,
        prior: "QueryPrior | None" = None,
    ) -> "SearchReport":
        """Return the skills that match a query, best first.

        `model` leaves out skills that are hidden from models, `keep` those that it returns False for. A `scorer` adds
        its scores to those of the words. With `every`, copies are results of their own, and weak results are not cut. A
        `prior` is that of a recorded search, and counts instead of the history of use.
        """
        from skillshelf.search.query import clamped_limit

        if scope is not None and scope not in (known := self.scopes):
            raise ConfigurationError(
                f"unknown scope {scope!r} in profile {self.profile.name}{did_you_mean(scope, known)} "
                f"(known: {', '.join(known)})"
            )

        def wanted(skill: CatalogSkill) -> bool:
            visible = skill.hidden is None or (not model and not is_banned(skill.hidden_by))
            return visible and scope in (None, skill.scope) and (keep is None or keep(skill))

        self.renew_policy()
        requested = self.settings.default_limit if limit is None else limit
        most, notes = clamped_limit(requested, self.settings.max_limit)
        finder, scorer = self._current_finder, scorer or self.scorer or self._configured_scorer()
        # Neither the history of use nor a second scorer is waited for with the lock: another process may hold the one,
        # and a server the other.
        given, problem = self._prior() if prior is None else (lambda weights: prior, "")
        with self._lock:
            current = finder()
            second = _UnlockedScorer(scorer, self._lock) if scorer is not None else None
            report = current.search(
                query, limit=most, keep=wanted, scorer=second, notes=notes, every=every, prior=given
            )
            weights = {term: current.index.weight(term) for term in report.terms} if self.learn else {}
        return self._remember_search(report, weights, problem) if self.learn and prior is None else report

    @property
    def usage(self) -> "UsageHistory | None":
        """The history of use that this shelf ranks by and adds to; None if it does not learn."""
        if self._usage is None and self.learn:
            from skillshelf.search.usage_history import UsageHistory, usage_path

            path = usage_path(self.environment)
            self._usage = UsageHistory(path) if path is not None else None
        return self._usage

    def _prior(self) -> "tuple[Prior | None, str]":
        """Return the uses to rank by, None if there are none, and what is wrong with the history."""
        if self.usage is None:
            return None, ""
        from skillshelf.search.usage_history import UnusableUsage

        try:
            found = self.usage.prior()
        except UnusableUsage as error:
            return None, str(error)
        return (found.for_query if found is not None else None), ""

    def _remember_search(self, report: "SearchReport", weights: Mapping[str, float], problem: str) -> "SearchReport":
        """Keep a search until one of its results is loaded; return the report with a note on what failed."""
        from skillshelf.search.usage_history import UnusableUsage
        from skillshelf.search.usage_prior import rarest

        told = f"earlier use does not count: {problem}" if problem else ""
        trusted = [result.skill.real_path for result in report.results if _may_be_learned(result.skill)]
        if self.usage is not None and not told and weights and trusted:
            try:
                self.usage.add_search(rarest(weights), trusted)
            except UnusableUsage as error:
                told = f"a load after this search will not count: {error}"
        return report._replace(notes=(*report.notes, told)) if told else report

    def learn_load(self, skill: CatalogSkill) -> None:
        """Count the load of a skill for the last search that found it, if this shelf learns."""
        if self.usage is None or not _may_be_learned(skill):
            return
        from skillshelf.search.usage_history import UnusableUsage

        try:
            self.usage.add_load(skill.real_path)
        except UnusableUsage:
            # The search before it told the reason; a load is worth more than its record.
            return

    def _configured_scorer(self) -> "Scorer | None":
        """Return the scorer of the user's configuration, if it counts in the profile."""
        if self.settings.scorer_url is None or self.profile.configured_scorer == "ignored":
            return None
        if self._own_scorer is None or self._own_scorer[0] is not self.settings:
            from skillshelf.search.embeddings import ConfiguredScorer

            self._own_scorer = self.settings, ConfiguredScorer(self.settings, self.environment, self.cache)
        return self._own_scorer[1]

    def ranking(self, query: str, *, most: int, keep: Callable[[CatalogSkill], bool]) -> "Sequence[SearchResult]":
        """Return the order that a report of `search` is made from, with weak matches and all copies."""
        with self._lock:
            return self._current_finder().ranking(query, most=most, keep=keep)

    def prepare_search(self) -> None:
        """Open the search index of the catalog, which otherwise the first search does; searches wait meanwhile."""
        with self._lock:
            self._current_finder().prepare()

    @property
    def is_search_ready(self) -> bool:
        """True if the next search need not open an index first, as far as the last scan of the disk tells."""
        found = self._finder
        return found is not None and found[0] is self._catalog and found[1].is_prepared

    @property
    def is_search_brief(self) -> bool:
        """True if the next search only computes: it opens no index, and waits for no scorer and no history of use."""
        return self.is_search_ready and self.scorer is None and self.settings.scorer_url is None and not self.learn

    def _current_finder(self) -> "Finder":
        """Return the finder of the current catalog; a new scan makes a new one."""
        from skillshelf.search.query import Finder

        catalog = self.catalog
        # Read once: another thread may drop it.
        found = self._finder
        if found is None or found[0] is not catalog:
            finder = Finder(
                catalog.skills,
                cwd=self.environment.cwd,
                scopes=self.scopes,
                ranking=self.profile.ranking,
                open_index=partial(self._open_index, catalog),
                terms=self.profile.search_terms,
                prefix=self.profile.search_prefix,
                copies=self.profile.search_copies,
                weak=self.profile.search_weak,
            )
            found = self._finder = catalog, finder
        return found[1]

    def _open_index(self, catalog: Catalog) -> "IndexSnapshot":
        from skillshelf.search.index import ScanStamps, folder_for, open_index
        from skillshelf.search.rank import WEIGHTS

        roots = [root.path for root in catalog.roots]
        terms = self.profile.search_terms
        folder = folder_for(self.cache, roots, self.profile.name, terms) if self.cache else None
        # Read once: another thread may scan meanwhile.
        last = self._scanner.last if self._scanner else None
        marked = self._last_locked
        scanned = marked[0] if marked is not None and marked[1] is catalog else catalog
        is_known = last is not None and last.catalog is scanned
        look = ScanStamps(last.at_ns, last.entries, last.generation) if last and is_known else None
        try:
            return open_index(
                catalog.skills,
                folder,
                scan=look,
                stream=self.progress,
                report=self._indexed,
                weights=WEIGHTS._replace(terms=terms),
            )
        finally:
            self.indexing = None

    def _indexed(self, total: int, done: int) -> None:
        self.indexing = total, done

    def load(self, name: str | None = None, *, path: str | os.PathLike[str] | None = None) -> "LoadedSkill":
        """Load a skill by name or path; a path wins. The file is always read from disk.

        A skill of a live source is fetched; raise PermissionDenied if the user has not approved it.
        """
        from skillshelf.catalog.load import load, loaded_locked, resolve

        self._require_usable()
        if not self.settings.enabled:
            raise SkillsDisabled
        catalog = self.catalog
        try:
            found = resolve(
                catalog.skills,
                name=name,
                path=_text(path),
                cwd=self.environment.cwd,
                catalog=catalog,
                names=self.profile.collision_key,
            )
        except SkillNotFound as error:
            self._require_not_changed(error.name)
            raise
        self._require_allowed(found)
        if self.remote is not None and found.scope == "remote":
            return self.remote.load(found, self.profile, approved=True)
        self.make_ready(found)
        installed = self._installed_files(found)
        loaded = load(found, self.profile) if installed is None else loaded_locked(found, installed, self.profile)
        self.learn_load(found)
        return loaded

    def make_ready(self, skill: CatalogSkill) -> None:
        """Bring the files of a skill to this disk if they are kept elsewhere, as a server of a team does."""

    def _require_not_changed(self, name: str) -> None:
        """Raise SkillChanged if a name that nobody finds is that of an installed skill whose files were changed."""
        from skillshelf.session.effects import require_not_changed

        require_not_changed(name, self.environment)

    def _installed_files(self, skill: CatalogSkill) -> "LockedFiles | None":
        """Return the files of an installed skill, checked; None for any other; raise SkillChanged."""
        if not may_be_locked(self.environment, (skill.real_dir, skill.dir)):
            return None
        from skillshelf.catalog.locked_files import read_locked

        return read_locked(skill.real_dir, self.environment, name=skill.name, place=skill.dir)

    def _require_usable(self) -> None:
        """Raise PermissionDenied if nobody knows what the system policy forbids."""
        self.renew_policy()
        if self.settings.system.problem:
            from skillshelf.session.system_rules import require_usable

            require_usable(self.settings.system)

    def _require_allowed(self, skill: CatalogSkill) -> None:
        """Raise PermissionDenied for a skill that the system policy forbids; its files are looked at as they are."""
        if self.settings.system.files:
            from skillshelf.catalog.build_context import require_allowed

            subject = (skill.name, skill.path, skill.real_path, skill.real_dir)
            require_allowed(self.settings.system, *subject, declared=skill.frontmatter.get("name"))

    def read(self, uri: str, *, limit: int = RESOURCE_BYTES) -> "Resource":
        """Read the file of a skill at an address `skill://name/path`; a link is followed if it stays in the skill."""
        from skillshelf.catalog.load import read_resource

        self._require_usable()
        if not self.settings.enabled:
            raise SkillsDisabled
        catalog = self.catalog
        if self.remote is not None and (remote := self._remote_skill(uri)) is not None:
            self._require_allowed(remote)
            return self.remote.read(uri, remote, self.profile, limit, approved=True)

        def installed(skill: CatalogSkill) -> "LockedFiles | None":
            self.make_ready(skill)
            return self._installed_files(skill)

        try:
            skill, resource = read_resource(
                uri, catalog.skills, self.profile, limit=limit, catalog=catalog, locked=installed
            )
        except SkillNotFound as error:
            self._require_not_changed(error.name)
            raise
        self._require_allowed(skill)
        return resource

    def _remote_skill(self, uri: str) -> CatalogSkill | None:
        """Return the skill of an address if it is one of a live source."""
        from skillshelf.catalog.load import parse_address, resolve

        catalog, name = self.catalog, parse_address(uri).name
        skill = resolve(catalog.skills, name=name, catalog=catalog, names=self.profile.collision_key)
        return skill if skill.scope == "remote" else None

    def prompt(self) -> str:
        """Return the catalog text for a model."""
        from skillshelf.catalog.prompt import catalog_text

        self.renew_policy()
        skills = self.catalog.skills
        if self.settings.system.files:
            from skillshelf.catalog.build_context import required_first
            from skillshelf.session.system_rules import require_served

            require_served(self)
            skills = required_first(skills, self.settings.system)[0]
        return catalog_text(skills, self.profile, self.settings_in_force).text

    def session(
        self,
        policy: "Policy | Mapping[str, Any] | str | None" = None,
        *,
        journal: str | os.PathLike[str] | None = None,
        confirm: "AnyConfirm | None" = None,
        preload: Iterable[str] = (),
        keep: bool = False,
        rotate: "str | Mapping[str, Any] | None" = None,
        otlp: "str | EventExporter | None" = None,
        fsync: Literal["never", "end", "always"] = "never",
        on_event: "OnEvent | None" = None,
        memory: "Memory" = "session",
        client: str | None = None,
        subject: str | None = None,
        per_request: bool = False,
        person: bool = False,
    ) -> "Session":
        """Open a conversation on this shelf.

        Its events are appended to the `journal` and passed to `on_event`. `keep` stores all inputs by the
        journal, so that it can be replayed where the skills are changed or gone. `rotate` begins a new part of the
        journal by size or age, such as `10MB,7d,keep=8`, instead of the configuration's `[journal]`. `otlp` sends the
        use of skills without content to an OpenTelemetry receiver: its address, or an `EventExporter` that the caller
        closes. `memory` decides when a second load is only a reminder: while this session remembers it, while the
        messages of a call hold it, or never (`none`). `client`, `subject` and `per_request` only go to the journal: the
        client program and the person that a server serves, and whether this session is a single request. A session
        for a `person` shows what a model would get, also where the system policy lets no model be served, and then
        gives nothing to a model.
        """
        from skillshelf.session.recorder import RecordingOptions
        from skillshelf.session.session import Session

        if keep and journal is None:
            raise ConfigurationError("contents are kept beside a journal; name one")
        recording = RecordingOptions(
            _text(journal),
            keep,
            fsync,
            on_event,
            client,
            subject,
            per_request,
            _rotation(rotate),
            _exporter(otlp),
        )
        return Session(
            self, policy=policy, confirm=confirm, preload=preload, recording=recording, memory=memory, person=person
        )

    def refresh(self, *, sources_after: float = 0.0) -> bool:
        """Scan again and return True if anything changed since the last scan.

        Live sources list their skills again, unless they did so less than `sources_after` seconds ago.
        """
        before = self.catalog
        self.renew_policy()
        if self.remote is not None:
            self.remote.refresh(sources_after)
        self._catalog = self.scan()
        try:
            return before != self._catalog
        except FileReadError:
            # The file of the old catalog was damaged, and the disk is another one.
            return True


def open_shelf(
    cwd: str | os.PathLike[str] | None = None,
    profile: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    use_cache: bool = True,
    trust: Trust = "all",
    scorer: "Scorer | None" = None,
    sources: "Sequence[Source]" = (),
    learn: bool | None = False,
) -> Shelf:
    """Open the shelf of a working directory. Nothing is read from the roots before the catalog is used.

    `home` and `env` replace the home folder and the environment; `config`, a file or a mapping with the same
    keys, replaces both configuration files. `use_cache=False` ignores the cache and keeps no search index. `trust`
    decides whose skills are visible to a model: `all`, `ask` (those of trusted folders) or `user`. `scorer` adds its
    scores to every search, in place of the one that the user's configuration may name. `learn` ranks by the history of
    use and adds to it: True unless the user's file says `search.learn = false`, None only if it says `true`.

    `sources` add skills that are not on this disk, with the scope `remote`. They are asked what they offer now and by
    `refresh`, and for a file when it is used. No `trust` covers them: a model is told of such a skill once the user
    approved exactly its files from that source. Raise ConfigurationError for a profile that has no such skills.
    """
    if trust not in get_args(Trust):
        raise ConfigurationError(f"trust is one of {', '.join(get_args(Trust))}, not {trust!r}")
    environment = make_environment(
        _text(cwd), _text(home), env, config=config if isinstance(config, Mapping) else _text(config)
    )
    if files.kind_at(files.real_path(environment.cwd)) != "folder":
        raise SkillDirectoryNotFound(environment.cwd)
    settings = load_settings(environment, trust=trust)
    chosen = find_profile(profile or settings.profile or DEFAULT_PROFILE, settings.profiles)
    if settings.odd_allow and chosen.rule_names == "kebab-case":
        raise ConfigurationError(settings.odd_allow[0])
    remote = _remote_skills(sources, environment, chosen) if sources else None
    learns = settings.learn is True if learn is None else learn and settings.learn is not False
    return Shelf(environment, chosen, settings, trust, use_cache=use_cache, scorer=scorer, remote=remote, learn=learns)


def _remote_skills(sources: "Sequence[Source]", environment: Environment, profile: Profile) -> "RemoteSkills":
    """Return the skills of live sources, as they list them now."""
    from skillshelf.catalog.remote import RemoteSkills

    if profile.live_sources == "refused":
        raise ConfigurationError(f"the profile {profile.name} knows no scope for skills of live sources")
    remote = RemoteSkills(tuple(sources), environment)
    remote.refresh()
    return remote


def replay(
    path: str | os.PathLike[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    config: str | Mapping[str, Any] | None = None,
    trust: Literal["all", "ask"] = "ask",
    against: Literal["kept", "disk"] | None = None,
    kept: bool = True,
) -> "Replay":
    """Rebuild the sessions of a journal from its events, and repeat them.

    Profile, policy and answers come from the journal. With `against="kept"` everything else comes from the inputs that
    were kept by the journal, and nothing from today's disk; with `"disk"` it comes from there, which shows what is
    different today. Without it the kept inputs count where there are some. A session of version 0.1 kept contents only,
    which replace files that changed since.

    On the disk the working directory is that of the journal unless `cwd` names another, and a project's own
    configuration counts only if its folder is trusted, or with `trust="all"`. `kept=False` is another way to say
    `against="disk"`.
    """
    from skillshelf.session.replay import replay_journal

    if against not in (None, "kept", "disk"):
        raise ConfigurationError(f"against is kept or disk, not {against!r}")
    if not kept:
        against = "disk"
    return replay_journal(path, Shelf, cwd=cwd, home=home, env=env, config=config, trust=trust, against=against)


def _may_be_learned(skill: CatalogSkill) -> bool:
    """Return whether the use of a skill counts: it is trusted, and has a place on this disk."""
    return skill.trusted and skill.scope != "remote"


def _is_count(text: str) -> bool:
    """Return True for a whole number of at least 1."""
    return text.isascii() and text.isdecimal() and len(text) < 19 and int(text) > 0


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _rotation(rotate: "str | Mapping[str, Any] | None") -> "Rotation | None":
    if rotate is None:
        return None
    # Imported here: most sessions have no journal.
    from skillshelf.journal.parts import rotation_of

    return rotation_of(rotate)


def _exporter(otlp: "str | EventExporter | None") -> "EventExporter | None":
    if not isinstance(otlp, str):
        return otlp
    from skillshelf.journal.otlp import EventExporter

    return EventExporter(otlp, owned=True)
