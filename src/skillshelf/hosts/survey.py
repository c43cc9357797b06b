"""Scan the disk once for all hosts, and build of their catalogs what a question needs.

Every SKILL.md is read and parsed once for all hosts that parse alike; each host then goes through the same stages as a
listing, with its own profile: for one skill and the files that may have its name, or for all.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from skillshelf.catalog.build import build
from skillshelf.catalog.build import order_key as order_key_of
from skillshelf.catalog.discovery import SKILL_FILE, Found
from skillshelf.catalog.disk_state import DiskState
from skillshelf.catalog.facts import Facts
from skillshelf.catalog.host_settings import SettingEffect, setting_effect
from skillshelf.catalog.lock_places import may_be_locked
from skillshelf.catalog.prompt import TextSizes, catalog_size, visible_to_model
from skillshelf.catalog.search_roots import Roots, resolve_roots
from skillshelf.catalog.shared_scan import Only, ProfileWalk, SharedScan
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, watched
from skillshelf.core.environment import Environment
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic, Filtered, Finding, Root, Shadowed
from skillshelf.hosts.packed_survey import (
    PackedSurvey,
    SurveyContents,
    add_to_packed,
    open_survey,
    pack_survey,
    state_of_scan,
    survey_key,
)
from skillshelf.hosts.skill_files import (
    BROKEN_LINKS,
    EVERYTHING,
    EVERYTHING_ON_MACHINE,
    MachineRoots,
    NameIndex,
    SkillFile,
    census_roots,
    census_walk,
    declared_in,
    matters_to_names_alone,
    order_key,
    skill_file_at,
    take_census,
)
from skillshelf.hosts.survey_update import (
    UpdatedFiles,
    finds_known_files,
    rescan_changes,
    updated_files,
    updated_learning,
)

if TYPE_CHECKING:
    from skillshelf.catalog.locked_catalog import LockState

__all__ = [
    "HostScan",
    "HostState",
    "ListSize",
    "MachineRoots",
    "NameIndex",
    "SkillFile",
    "Survey",
    "is_broken",
    "is_decided_by_name",
    "order_key",
    "roots_of_hosts",
    "size_of",
    "skill_file_at",
    "state_of",
    "survey_one",
    "take_survey",
]


class ListSize(NamedTuple):
    """How a host's list of skills fits its budget: its size, and the paths of skills it cuts short or leaves out.

    Those in `unsure` lose something only where the model has a smaller context window than most.
    """

    chars: int = 0
    tokens: int = 0
    entries: int = 0
    cut: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()


class HostScan(NamedTuple):
    """The folders of one host and what it finds there, before anything is accepted or refused.

    `entered` are the roots it reads, `below` is the prefix of every path in a root.
    """

    profile: Profile
    roots: tuple[Root, ...]
    entered: Roots
    walk: ProfileWalk

    @property
    def below(self) -> tuple[str, ...]:
        """The prefix of every path in a root."""
        return tuple(f"{root.path}/" for root in self.roots)


class HostState(NamedTuple):
    """The catalog of one host, indexed for questions about single paths.

    The catalog holds all skills of the host, or only those that matter to one skill; `size` is always about all.
    `switched` is the effect of the host's settings on a skill by path.
    """

    profile: Profile
    roots: tuple[Root, ...]
    catalog: Catalog
    by_file: Mapping[str, CatalogSkill]
    by_name: Mapping[str, Sequence[CatalogSkill]]
    errors: Mapping[str, Diagnostic]
    folder_errors: Mapping[str, Diagnostic]
    shadowed: Mapping[str, Shadowed]
    losers: Mapping[str, Sequence[str]]
    filtered: Mapping[str, Filtered]
    below: tuple[str, ...]
    entered: Roots
    switched: Mapping[str, SettingEffect]
    size: Callable[[], ListSize]

    @property
    def listed(self) -> list[CatalogSkill]:
        """The skills that the host's settings leave in its list."""
        hidden = ("disabled-by-config", "hidden-from-model")
        switched = self.switched
        return [
            one for one in self.catalog.skills if one.path not in switched or switched[one.path].verdict not in hidden
        ]


_LOCKS = "locks"
"""Where a survey keeps what it found out about installed skills; nothing of that is packed."""


class Survey(NamedTuple):
    """The result of one scan: every skill file by each of its paths, and what every requested host finds.

    The state of a host is built when it is asked for: `state` builds all of it, `state_about` what matters to one file.
    `built` keeps the one, `built_among` the other, `learned` what follows from all of them and was not in `packed`;
    `key` is that of the survey in a cache, `disk` the state of the disk if only some of it was scanned. `roots` are
    those that were scanned, whoever reads them, and `packages` those that a walk of the repository found; None if it
    was not walked.
    """

    environment: Environment
    skill_files: tuple[SkillFile, ...]
    by_path: Mapping[str, SkillFile]
    hosts: Mapping[str, HostScan]
    scan: SharedScan
    census: ProfileWalk
    names: NameIndex
    bodies: dict[str, Finding | None]
    unseen: tuple[Diagnostic, ...]
    built: dict[str, HostState]
    built_among: dict[tuple[str, frozenset[str]], HostState]
    sizes: dict[str, ListSize]
    lists: dict[str, list[CatalogSkill]]
    recalled: dict[str, Any]
    learned: dict[str, Any]
    packed: PackedSurvey | None = None
    key: str = ""
    disk: DiskState | None = None
    roots: tuple[Root, ...] = ()
    packages: tuple[str, ...] | None = None

    def lock_state(self, folder: str, place: str | None = None) -> "LockState | None":
        """Return the state of the installed skill in a real folder; None for any other. Each is looked at once.

        `place` is the path that the folder was found at.
        """
        if _LOCKS not in self.recalled:
            roots = [self.environment.cwd, *(root.real_path for root in self.roots if root.real_path is not None)]
            self.recalled[_LOCKS] = {} if may_be_locked(self.environment, roots) else None
        known = self.recalled[_LOCKS]
        if known is None:
            return None
        if (folder, place) not in known:
            # Imported here: most machines have no installed skill.
            from skillshelf.catalog.locked_catalog import lock_state

            known[folder, place] = lock_state(folder, self.environment, place=place)
        return cast("LockState | None", known[folder, place])

    def lock_members(self, folder: str, place: str | None = None) -> dict[str, Any]:
        """Return the origin and version of the installed skill in a real folder, and whether it changed, as JSON."""
        state = self.lock_state(folder, place)
        if state is None:
            return {"origin": None, "version": None, "changed": False}
        return {"origin": state.locked.source, "version": state.locked.version, "changed": state.changed}

    @property
    def states(self) -> dict[str, HostState]:
        """The whole state of every requested host."""
        return {host: self.state(host) for host in self.hosts}

    def state(self, host: str) -> HostState:
        """Return the whole state of a host."""
        if host not in self.built:
            scan = self.hosts[host]
            self.built[host] = state_of(scan, scan.walk.found(), self.scan.facts)
        return self.built[host]

    def list_size(self, host: str) -> ListSize:
        """Return how the whole list of a host fits its budget."""
        if host not in self.sizes:
            known = self.recall(f"size of {host}")
            if type(known) is tuple and len(known) == len(ListSize._fields):
                size = ListSize(*known[:3], *map(frozenset, known[3:]))
            else:
                profile = self.hosts[host].profile
                # The list is learned as well: after a change it tells the size without the whole state.
                listed = self.visible_list(host) if profile.catalog_budget else []
                is_whole = host in self.built or not profile.catalog_budget
                size = self.state(host).size() if is_whole else size_of(listed, profile, self.scan.facts.sizes)
                self.learned[f"size of {host}"] = (*size[:3], *map(tuple, size[3:]))
            self.sizes[host] = size
        return self.sizes[host]

    def visible_list(self, host: str) -> list[CatalogSkill]:
        """Return the whole list that the model of a host sees, each skill with what its line in the list needs."""
        if host not in self.lists:
            self.lists[host] = self._visible_list(host)
        return self.lists[host]

    def _visible_list(self, host: str) -> list[CatalogSkill]:
        lists = self.recall("lists")
        known = lists.get(host) if isinstance(lists, dict) else None
        rows, waiting = known if type(known) is tuple and len(known) == 2 else (None, ())
        if rows is not None and not waiting:
            return list(map(_listed, rows))
        listed = visible_to_model(self.state(host).listed) if rows is None else self._completed(host, rows, waiting)
        kept = [(one.name, one.description, one.path, one.scope, one.source, one.root) for one in listed]
        self.learned["lists"] = {**(lists if isinstance(lists, dict) else {}), host: (kept, [])}
        return listed

    def _completed(self, host: str, rows: Iterable[tuple[Any, ...]], real_paths: Collection[str]) -> list[CatalogSkill]:
        """Return the list of a host of which the files at some real paths were left out."""
        known = [self.names.files[path] for path in real_paths if path in self.names.files]
        rivals = self.names.rivals({name for skill_file in known for name in self.names.of(skill_file)})
        added = [one for one in self.state_among(host, rivals).listed if one.real_path in real_paths]
        key = order_key_of(self.hosts[host].profile, self.hosts[host].entered.roots)
        return sorted([*map(_listed, rows), *visible_to_model(added)], key=key)

    def recall(self, what: str) -> Any:
        """Return what this survey or an earlier one of the same disk learned; None if nothing did."""
        if what in self.learned:
            return self.learned[what]
        if what not in self.recalled:
            self.recalled[what] = self.packed.recall(what) if self.packed else None
        return self.recalled[what]

    def keep(self, folder: str) -> None:
        """Write to a folder what a later survey of the same disk need not find out again."""
        if self.packed is not None:
            if self.learned:
                add_to_packed(self.packed, self.learned)
        elif self.key:
            rows = [self._packable(one) for one in self.skill_files]
            walks = {host: scan.walk for host, scan in self.hosts.items()}
            contents = SurveyContents(rows, self.names.positions, walks, self.census, self.unseen, self.packages)
            state = self.disk or state_of_scan(self.scan, contents)
            if state is not None:
                pack_survey(folder, self.key, self.scan, state, contents, self.learned)

    def _packable(self, skill_file: SkillFile) -> SkillFile:
        """Return a file without the bytes that can be read again; near misses were read in another way."""
        if skill_file.real_path not in self.scan.heads:
            return skill_file
        return skill_file._replace(data=None, digest=skill_file.text[0])

    def state_about(self, host: str, skill_file: SkillFile) -> HostState:
        """Return the state of a host as far as it matters to one file: with the files that may have its name."""
        if host in self.built:
            return self.built[host]
        return self.state_among(host, self.names.rivals(self.names.of(skill_file)))

    def state_among(self, host: str, real_paths: frozenset[str]) -> HostState:
        """Return the state of a host with some files only, and with the size of its whole list."""
        scan = self.hosts[host]
        if not is_decided_by_name(scan):
            return self.state(host)
        real_paths |= self.names.preventing(scan.profile)
        key = (host, real_paths)
        if key not in self.built_among:
            found = scan.walk.found(real_paths, self.names.files)
            # Not of `self`, which keeps this state, nor of what is recalled, which keeps trials that have this state
            # too: a cycle would hold all of it in memory until it is collected.
            whole = self._replace(built_among={}, recalled={})
            size = (lambda: whole.list_size(host)) if scan.profile.catalog_budget else ListSize
            self.built_among[key] = state_of(scan, found, self.scan.facts, size)
        return self.built_among[key]

    def with_host(self, scan: HostScan) -> "Survey":
        """Return the survey of a disk on which one host finds something else."""
        host = scan.profile.name
        return self._replace(
            hosts={**self.hosts, host: scan},
            built={name: state for name, state in self.built.items() if name != host},
            built_among={key: state for key, state in self.built_among.items() if key[0] != host},
            sizes={},
            lists={},
            recalled={},
            learned={},
            packed=None,
            key="",
        )

    def short(self, path: str) -> str:
        """Return a path as people read it: relative to the working directory or the home folder."""
        return PathDisplay(self.environment.cwd, self.environment.home).short(path)

    def typed(self, path: str) -> str:
        """Return a path as it is typed in a command in the working directory."""
        cwd, home = self.environment.cwd, self.environment.home
        if path.startswith(f"{cwd}/"):
            below = path[len(cwd) + 1 :]
            # A path that begins with a dash would be taken for an option.
            return quote(f"./{below}" if below.startswith("-") else below)
        # The shell expands an unquoted tilde to the home folder of the user, not to one given with --home.
        if home and path.startswith(f"{home}/") and not self.environment.home_moved:
            return f"~/{quote(path[len(home) + 1 :])}"
        return quote(path)


def _listed(row: tuple[Any, ...]) -> CatalogSkill:
    """Return a skill of the list of a host, with what its line in the list needs."""
    name, description, path, scope, source, root = row
    return CatalogSkill(name, description, path, "", "", scope, source, root, 0, 0, True, True, None, {})


def is_decided_by_name(scan: HostScan) -> bool:
    """Return whether only files of one name can affect each other in the list of a host.

    Apart from its budget, and from the files because of which it lists nothing.
    """
    return scan.profile.collision_key == "exact" and not any(root.prefix for root in scan.roots)


def take_survey(
    environment: Environment,
    hosts: Sequence[str],
    *,
    path: str | None = None,
    progress: TextIO | None = None,
    cache_folder: str | None = None,
    machine: MachineRoots | None = None,
) -> Survey:
    """Scan all roots for these hosts; `path` adds a file that may be outside every root, `machine` other folders.

    With a `cache_folder`, a survey that was kept there counts, brought up to date with what has changed since.
    """
    resolved = roots_of_hosts(environment)
    key = survey_key(environment, hosts, resolved, machine) if cache_folder else ""
    packed = open_survey(cache_folder, key) if cache_folder else None
    if packed is not None and (found := _unpacked(packed, environment, hosts, resolved, machine)) is not None:
        named = skill_file_at(path) if path is not None else None
        if named is None or named.real_path in found.by_path:
            return found
    survey = _survey(environment, hosts, resolved, None, path, progress, machine)
    return survey._replace(key=key if path is None else "")


def _unpacked(
    packed: PackedSurvey,
    environment: Environment,
    hosts: Sequence[str],
    resolved: Mapping[str, Roots],
    machine: MachineRoots | None,
) -> Survey | None:
    """Return the survey in a packed file, with what has changed since; None if that is too much, or it is damaged."""
    if machine is not None and packed.changed:
        # The walk of a repository is not brought up to date.
        return None
    scan, entered = SharedScan(top=environment.ceiling), {host: _entered(resolved[host]) for host in hosts}
    scan.scanned = packed.scanned() or {}
    rescans = rescan_changes(packed, scan)
    if rescans is None:
        return None
    roots = {host: one.roots for host, one in entered.items()}
    all_roots = census_roots(resolved.values(), machine, environment.home)
    contents = packed.contents(scan, roots, all_roots, EVERYTHING_ON_MACHINE if machine else EVERYTHING)
    if contents is None:
        return None
    try:
        skill_files = tuple(map(SkillFile._make, contents.rows))
    except TypeError:
        return None
    scans = {host: HostScan(HOSTS[host], resolved[host].roots, entered[host], contents.walks[host]) for host in hosts}
    names = NameIndex(skill_files, scan.facts, contents.positions)
    survey = Survey(
        environment,
        skill_files,
        {},
        scans,
        scan,
        contents.census,
        names,
        {},
        tuple(contents.unseen),
        {},
        {},
        {},
        {},
        {},
        {},
    )
    packages = None if contents.packages is None else tuple(contents.packages)
    survey = survey._replace(roots=tuple(all_roots), packages=packages)
    if not rescans:
        return survey._replace(by_path=_by_path(skill_files), packed=packed)
    update = updated_files(rescans, packed, contents, names, scan)
    return _updated(survey, update, packed) if update is not None else None


def _updated(survey: Survey, update: UpdatedFiles, packed: PackedSurvey) -> Survey:
    """Return a survey with the files that changed, and with what was learned about the others."""
    by_name = [
        host
        for host, scan in survey.hosts.items()
        if is_decided_by_name(scan) and matters_to_names_alone(scan.profile, update.shared)
        if finds_known_files(scan.walk, update.names)
    ]
    return survey._replace(
        skill_files=update.skill_files,
        by_path=_by_path(update.skill_files),
        names=update.names,
        learned=updated_learning(update, packed, survey.hosts, by_name),
        key=packed.key if update.state is not None else "",
        disk=update.state,
    )


def _entered(roots: Roots) -> Roots:
    """Return the roots that a host reads: one that requires trust does not read an untrusted folder.

    Skills in such a folder take no name from others.
    """
    return roots._replace(roots=tuple(root for root in roots.roots if root.trusted))


def _by_path(skill_files: Iterable[SkillFile]) -> dict[str, SkillFile]:
    return {path: skill_file for skill_file in skill_files for path in (*skill_file.paths, skill_file.real_path)}


def survey_one(environment: Environment, hosts: Sequence[str], path: str, rivals: Iterable[str] = ()) -> Survey:
    """Scan only one skill, those with the same folder name, and known rivals for its name.

    This gives verdicts on one of thousands of skills at once. They ignore what depends on all skills together:
    budgets, limits of a walk, and rivals that are not known.
    """
    resolved = roots_of_hosts(environment)
    folder = os.path.basename(os.path.dirname(path))
    only: dict[str, set[str]] = {}
    for root in {root.path for roots in resolved.values() for root in roots.roots}:
        only.setdefault(root, set()).add(folder)
        for file in (path, *rivals):
            if file.startswith(f"{root}/"):
                here = root
                for name in file[len(root) + 1 :].split("/"):
                    only.setdefault(here, set()).add(name)
                    here = f"{here}/{name}"
                only[os.path.dirname(file)].add(SKILL_FILE)
    return _survey(environment, hosts, resolved, only, path, None)


def roots_of_hosts(environment: Environment) -> dict[str, Roots]:
    """Return the roots of every known host."""
    return {name: resolve_roots(profile, environment, Settings(), trust="all") for name, profile in HOSTS.items()}


def _survey(
    environment: Environment,
    hosts: Sequence[str],
    resolved: Mapping[str, Roots],
    only: Only | None,
    path: str | None,
    progress: TextIO | None,
    machine: MachineRoots | None = None,
) -> Survey:
    scan = SharedScan(only, top=environment.ceiling)
    census = census_walk(census_roots(resolved.values(), machine, environment.home), scan, machine)
    skill_files, unseen, packages = take_census(census, scan, machine)
    if path is not None and (named := skill_file_at(path)) is not None and named.real_path not in skill_files:
        named = named._replace(kind=_kind_at(named.path, environment))
        skill_files[named.real_path] = declared_in(named, scan.facts)
    scans = {}
    for name in watched(hosts, "Checking hosts", progress, len(hosts)):
        entered = _entered(resolved[name])
        walk = scan.walk(entered.roots, HOSTS[name], repository=entered.repository)
        scans[name] = HostScan(HOSTS[name], resolved[name].roots, entered, walk)
    ordered = sorted(skill_files.values(), key=order_key)
    names = NameIndex(ordered, scan.facts)
    survey = Survey(
        environment,
        tuple(ordered),
        _by_path(ordered),
        scans,
        scan,
        census,
        names,
        {},
        tuple(unseen),
        {},
        {},
        {},
        {},
        {},
        {},
    )
    return survey._replace(roots=tuple(one.root for one in census.walks), packages=packages)


def _kind_at(path: str, environment: Environment) -> Literal["project", "user"]:
    """Return the kind of a file outside every root: `user` in a hidden folder at home, unless it contains cwd."""
    home = f"{environment.home}/" if environment.home else ""
    if not home or not path.startswith(f"{home}."):
        return "project"
    top = home + path[len(home) :].split("/")[0]
    return "project" if files.is_inside(environment.cwd, top) else "user"


def state_of(
    scan: HostScan, found: Sequence[Found], facts: Facts, size: Callable[[], ListSize] | None = None
) -> HostState:
    """Build the state of a host from what it found; `size` is that of its list if not all of it was found."""
    profile, entered = scan.profile, scan.entered
    catalog = build(found, entered, profile, Settings(), facts=facts, look_alikes="ignore")
    by_name: dict[str, list[CatalogSkill]] = {}
    for skill in catalog.skills:
        by_name.setdefault(skill.name, []).append(skill)
    losers: dict[str, list[str]] = {}
    for loser in catalog.shadowed:
        if not loser.same_file:
            losers.setdefault(loser.by, []).append(loser.path)
    state = HostState(
        profile,
        scan.roots,
        catalog,
        {skill.real_path: skill for skill in catalog.skills},
        by_name,
        {error.path: error for error in (*catalog.warnings, *catalog.errors)},
        {error.path: error for error in (*catalog.warnings, *catalog.errors) if error.rule in _ABOUT_FOLDERS},
        {loser.path: loser for loser in catalog.shadowed if not loser.same_file},
        losers,
        {left_out.path: left_out for left_out in catalog.filtered},
        scan.below,
        entered,
        _switched(catalog, entered),
        size or _whole_list,
    )
    return state if size else state._replace(size=cache(lambda: size_of(state.listed, profile, facts.sizes)))


def _whole_list() -> ListSize:
    raise AssertionError("the size of a list is set once its skills are known")


def size_of(skills: Sequence[CatalogSkill], profile: Profile, texts: TextSizes) -> ListSize:
    """Return how a list of these skills fits the budget of a host; `texts` keeps what was measured for others."""
    found = _size_within(profile.budget_chars, skills, profile, texts)
    if found.cut and profile.budget_chars and profile.budget_unit == "token-lines":
        # Some lines get one token more than others.
        more = _size_within(profile.budget_chars + 4 * found.entries, skills, profile, texts)
        found = found._replace(cut=found.cut & more.cut, unsure=found.cut - more.cut)
    if profile.budget_least is None:
        return found
    least = _size_within(profile.budget_least, skills, profile, texts)
    return found._replace(unsure=(found.unsure | least.cut | least.dropped) - found.cut - found.dropped)


def _size_within(most: int | None, skills: Sequence[CatalogSkill], profile: Profile, texts: TextSizes) -> ListSize:
    """Return how a list fits a budget of so many characters."""
    size = catalog_size(skills, profile._replace(budget_chars=most), Settings(), texts)
    shown = visible_to_model(skills)
    dropped = frozenset(skill.path for skill in shown[len(shown) - size.omitted :])
    return ListSize(size.chars, size.tokens, size.entries, frozenset(size.cut), dropped)


def _switched(catalog: Catalog, entered: Roots) -> dict[str, SettingEffect]:
    """Return the effect of a host's settings on its skills, by path."""
    for problem in entered.problems:
        if problem.rule == "settings-unreadable":
            # Such a host may not even start.
            return {skill.path: SettingEffect("unknown", problem.message) for skill in catalog.skills}
    if not entered.switches:
        return {}
    effects = ((skill.path, setting_effect(skill.name, skill.real_path, entered.switches)) for skill in catalog.skills)
    return {path: effect for path, effect in effects if effect is not None}


_ABOUT_FOLDERS = ("link-skipped", "unreadable", *BROKEN_LINKS)


def is_broken(root: Root) -> bool:
    """Return true if a root exists but cannot be entered: a broken link, or a file."""
    return root.exists and root.real_path is None
