"""Scan the disk once for all hosts, and build of their catalogs what a question needs.

Every SKILL.md is read and parsed once for all hosts that parse alike; each host then goes through the same stages as a
listing, with its own profile: for one skill and the files that may have its name, or for all.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from shlex import quote
from typing import Any, Literal, TextIO

from skillshelf.catalog.build import build
from skillshelf.catalog.discovery import SKILL_FILE, Found, Repeat, is_text_path
from skillshelf.catalog.document import ParsedFrontmatter, parse, parse_options
from skillshelf.catalog.facts import Facts
from skillshelf.catalog.host_settings import SettingEffect, setting_effect
from skillshelf.catalog.prompt import TextSizes, catalog_size, visible_to_model
from skillshelf.catalog.rules import name_of
from skillshelf.catalog.search_roots import Roots, resolve_roots
from skillshelf.catalog.shared_scan import Only, ProfileWalk, SharedScan, read_head_at
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, watched
from skillshelf.core.environment import Environment
from skillshelf.core.limits import REPOSITORY_FOLDERS, SKILL_FILE_BYTES, SURVEY_DIRECTORIES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate, Catalog, CatalogSkill, Diagnostic, Filtered, Finding, Root, Shadowed
from skillshelf.hosts.packed_survey import (
    PackedSurvey,
    SurveyContents,
    add_to_packed,
    open_survey,
    pack_survey,
    survey_key,
)
from skillshelf.hosts.repository_walk import walk_repository

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
    "size_of",
    "skill_file_at",
    "state_of",
    "survey_one",
    "take_survey",
]


class SkillFile(NamedTuple):
    """A file that is a skill or was meant as one: its real path, all paths that lead to it, and its first bytes.

    `data` are its first bytes and `digest` stands for them; `declared` is the name in its frontmatter, `base` the
    folder that its root belongs to: the home folder for a `user` skill, else one of the project. `problem` says why it
    could not be read, `broken` is a broken link to it.
    """

    real_path: str
    paths: tuple[str, ...]
    data: bytes | None
    size: int
    kind: Literal["project", "user"] = "project"
    base: str = ""
    declared: str = ""
    problem: str = ""
    broken: str = ""
    digest: bytes = b""

    @property
    def head(self) -> bytes:
        """The first bytes; those of a file in a packed survey are read when they are asked for."""
        return self.data if self.data is not None else read_head_at(self.real_path).data or b""

    @property
    def path(self) -> str:
        """The path to show: the real one if it is below a root, else the first that was found."""
        return self.real_path if self.real_path in self.paths else self.paths[0]

    @property
    def folder(self) -> str:
        """The name of the folder that contains the file."""
        return os.path.basename(os.path.dirname(self.path))

    @property
    def file_name(self) -> str:
        """The name of the file where it was found."""
        return os.path.basename(self.paths[0])

    @property
    def text(self) -> tuple[bytes, int]:
        """A digest of the first bytes, and the size: files with the same value are taken to have the same text."""
        return self.digest or blake2b(self.head, digest_size=16).digest(), self.size

    def candidate(self) -> Candidate:
        """Return the file as discovery finds it, for what does not depend on its root."""
        folder = os.path.dirname(self.real_path)
        return Candidate(0, self.path, self.real_path, folder, self.head, (0, 0, self.size, 0, 0))

    def parsed(self) -> ParsedFrontmatter:
        """Parse the frontmatter without the peculiarities of any host."""
        return parse(self.head, whole=len(self.head) >= self.size)


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


class MachineRoots(NamedTuple):
    """Where to look for skills besides the roots of hosts: in further roots, and below `top` in the repository."""

    roots: tuple[Root, ...]
    top: str | None
    repository: str | None


class Survey(NamedTuple):
    """The result of one scan: every skill file by each of its paths, and what every requested host finds.

    The state of a host is built when it is asked for: `state_about` builds what matters to one file, `state` all of
    it. `built` keeps both, `learned` what follows from all of them and was not in `packed`; `key` is that of the survey
    in a cache. `roots` are those that were scanned, whoever reads them, and `packages` those that a walk of the
    repository found; None if it was not walked.
    """

    environment: Environment
    skill_files: tuple[SkillFile, ...]
    by_path: Mapping[str, SkillFile]
    hosts: Mapping[str, HostScan]
    scan: SharedScan
    names: "NameIndex"
    bodies: dict[str, Finding | None]
    unseen: tuple[Diagnostic, ...]
    built: dict[str | tuple[str, frozenset[str]], HostState]
    sizes: dict[str, ListSize]
    learned: dict[str, Any]
    packed: PackedSurvey | None = None
    key: str = ""
    roots: tuple[Root, ...] = ()
    packages: tuple[str, ...] | None = None

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
                size = self.state(host).size()
                self.learned[f"size of {host}"] = (*size[:3], *map(tuple, size[3:]))
            self.sizes[host] = size
        return self.sizes[host]

    def visible_list(self, host: str) -> list[CatalogSkill]:
        """Return the whole list that the model of a host sees, each skill with what its line in the list needs."""
        rows = self.recall(f"list of {host}")
        if type(rows) is not list:
            listed = visible_to_model(self.state(host).listed)
            rows = [(one.name, one.description, one.path, one.scope, one.root) for one in listed]
            self.learned[f"list of {host}"] = rows
        rest: dict[str, Any] = {"mtime_ns": 0, "size": 0, "enabled": True, "trusted": True, "hidden": None}
        return [
            CatalogSkill(name, description, path, "", "", scope, "", root, **rest, frontmatter={})
            for name, description, path, scope, root in rows
        ]

    def recall(self, what: str) -> Any:
        """Return what this survey or an earlier one of the same disk learned; None if nothing did."""
        return self.learned[what] if what in self.learned else self.packed.recall(what) if self.packed else None

    def keep(self, folder: str) -> None:
        """Write to a folder what a later survey of the same disk need not find out again."""
        if self.packed is not None:
            if self.learned:
                add_to_packed(self.packed, self.learned)
        elif self.key:
            rows = [tuple(self._packable(one)) for one in self.skill_files]
            walks = {host: scan.walk for host, scan in self.hosts.items()}
            contents = SurveyContents(rows, self.names.positions, walks, self.unseen, self.packages)
            pack_survey(folder, self.key, self.scan, contents, self.learned)

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
        key = (host, real_paths)
        if key not in self.built:
            found = scan.walk.found(real_paths, self.names.files)
            size = (lambda: self.list_size(host)) if scan.profile.catalog_budget else ListSize
            self.built[key] = state_of(scan, found, self.scan.facts, size)
        return self.built[key]

    def with_host(self, scan: HostScan) -> "Survey":
        """Return the survey of a disk on which one host finds something else."""
        host = scan.profile.name
        kept = {key: state for key, state in self.built.items() if host != (key if isinstance(key, str) else key[0])}
        return self._replace(hosts={**self.hosts, host: scan}, built=kept, sizes={}, learned={}, packed=None, key="")

    def short(self, path: str) -> str:
        """Return a path as people read it: relative to the working directory or the home folder."""
        return PathDisplay(self.environment.cwd, self.environment.home).short(path)

    def typed(self, path: str) -> str:
        """Return a path as it is typed in a command in the working directory."""
        cwd, home = self.environment.cwd, self.environment.home
        if path.startswith(f"{cwd}/"):
            return quote(path[len(cwd) + 1 :])
        # The shell expands an unquoted tilde to the home folder of the user, not to one given with --home.
        if home and path.startswith(f"{home}/") and not self.environment.home_moved:
            return f"~/{quote(path[len(home) + 1 :])}"
        return quote(path)


def is_decided_by_name(scan: HostScan) -> bool:
    """Return whether only files of one name can affect each other in the list of a host, apart from its budget."""
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

    With a `cache_folder`, a survey that was kept there counts if nothing has changed on the disk since.
    """
    resolved = _roots_of_all(environment)
    key = survey_key(environment, hosts, resolved, machine) if cache_folder else ""
    packed = open_survey(cache_folder, key) if cache_folder else None
    if packed is not None and (found := _unpacked(packed, environment, hosts, resolved)) is not None:
        found = found._replace(roots=tuple(_all_roots(resolved.values(), machine, environment.home)))
        named = skill_file_at(path) if path is not None else None
        if named is None or named.real_path in found.by_path:
            return found
    survey = _survey(environment, hosts, resolved, None, path, progress, machine)
    return survey._replace(key=key if path is None else "")


def _unpacked(
    packed: PackedSurvey, environment: Environment, hosts: Sequence[str], resolved: Mapping[str, Roots]
) -> Survey | None:
    """Return the survey in a packed file; None if the file has another shape."""
    scan = SharedScan()
    entered = {host: _entered(resolved[host]) for host in hosts}
    contents = packed.contents(scan, {host: roots.roots for host, roots in entered.items()})
    if contents is None:
        return None
    try:
        skill_files = tuple(map(SkillFile._make, contents.rows))
    except TypeError:
        return None
    scans = {host: HostScan(HOSTS[host], resolved[host].roots, entered[host], contents.walks[host]) for host in hosts}
    names = NameIndex(skill_files, scan.facts, contents.positions)
    by_path = _by_path(skill_files)
    packages = None if contents.packages is None else tuple(contents.packages)
    unseen = tuple(contents.unseen)
    survey = Survey(environment, skill_files, by_path, scans, scan, names, {}, unseen, {}, {}, {}, packed)
    return survey._replace(packages=packages)


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
    resolved = _roots_of_all(environment)
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


def _roots_of_all(environment: Environment) -> dict[str, Roots]:
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
    scan = SharedScan(only)
    roots = _all_roots(resolved.values(), machine, environment.home)
    skill_files, unseen, packages = _census(roots, scan, machine)
    if path is not None and (named := skill_file_at(path)) is not None and named.real_path not in skill_files:
        skill_files[named.real_path] = named._replace(kind=_kind_at(named.path, environment))
    for real_path, skill_file in skill_files.items():
        if isinstance(name := scan.facts.plain(skill_file.candidate()).fields.get("name"), str):
            skill_files[real_path] = skill_file._replace(declared=name)
    scans = {}
    for name in watched(hosts, "Checking hosts", progress, len(hosts)):
        entered = _entered(resolved[name])
        walk = scan.walk(entered.roots, HOSTS[name], repository=entered.repository)
        scans[name] = HostScan(HOSTS[name], resolved[name].roots, entered, walk)
    ordered = sorted(skill_files.values(), key=order_key)
    names = NameIndex(ordered, scan.facts)
    survey = Survey(environment, tuple(ordered), _by_path(ordered), scans, scan, names, {}, tuple(unseen), {}, {}, {})
    return survey._replace(roots=tuple(roots), packages=packages)


def order_key(skill_file: SkillFile) -> tuple[str, str]:
    """Return the key that sorts the files of a survey: by folder name, then by path."""
    return skill_file.folder, skill_file.path


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
    size = catalog_size(skills, profile, Settings(), texts)
    shown = visible_to_model(skills)
    dropped = frozenset(skill.path for skill in shown[len(shown) - size.omitted :])
    found = ListSize(size.chars, size.tokens, size.entries, frozenset(size.cut), dropped)
    if profile.budget_least is None:
        return found
    least = size_of(skills, profile._replace(budget_chars=profile.budget_least, budget_least=None), texts)
    return found._replace(unsure=(least.cut | least.dropped) - found.cut - found.dropped)


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


_BROKEN = ("link-broken", "link-loop")
_ABOUT_FOLDERS = ("link-skipped", "unreadable", *_BROKEN)

# Every skill file ---------------------------------------------------------------------------------

_EVERYTHING = Profile(
    name="everything",
    summary="",
    evidence="",
    as_of="",
    max_depth=None,
    skip_directories=(".git",),
    below_skill="enter",
    root_file="skill",
    max_directories=SURVEY_DIRECTORIES,
)
"""A walk that skips nothing, because some host may read it."""


def _all_roots(resolved: Iterable[Roots], machine: MachineRoots | None, home: str | None) -> list[Root]:
    """Return every root of any host, and those of the machine, each once and open to everything below it.

    For a machine no link leads to the home folder, which is never walked.
    """
    roots: dict[str, Root] = {}
    spared = files.real_path(home) if home and machine else ""
    for root in (*(root for roots in resolved for root in roots.roots), *(machine.roots if machine else ())):
        open_root = root._replace(links="follow", hidden="enter", loose_files="none", spared=spared)
        roots.setdefault(root.path, open_root)
    return list(roots.values())


class _Census:
    """Every SKILL.md and near miss that was found, by real path, and the problems on the way."""

    def __init__(self, scan: SharedScan) -> None:
        self.scan = scan
        self.found: dict[str, SkillFile] = {}
        self.folders: set[str] = set()
        self.unseen: list[Diagnostic] = []

    def add(self, roots: Sequence[Root], repository: str, *, every_problem: bool) -> None:
        """Add what lies below some roots; with `every_problem` also those that are about no folder or whole root."""
        profile = _EVERYTHING._replace(max_directories=REPOSITORY_FOLDERS) if every_problem else _EVERYTHING
        for item in self.scan.walk(roots, profile, repository=repository).found():
            if isinstance(item, Candidate):
                self.add_candidate(item, roots[item.root])
            elif isinstance(item, Repeat):
                self.add_path(item.real_path, item.path)
            elif isinstance(item, Diagnostic):
                self._add_problem(item, every_problem=every_problem)

    def add_candidate(self, item: Candidate, root: Root) -> None:
        """Add a file that was read."""
        if item.real_path in self.found:
            self.add_path(item.real_path, item.path)
            return
        kind: Literal["project", "user"] = "user" if root.kind == "user" else "project"
        self.found[item.real_path] = SkillFile(item.real_path, (item.path,), item.head, item.size, kind, root.base)
        self.folders.add(os.path.dirname(item.path))

    def add_path(self, real_path: str, path: str) -> None:
        """Add another path to a file."""
        known = self.found[real_path]
        if path not in known.paths:
            self.found[real_path] = known._replace(paths=(*known.paths, path))

    def add_unread(self, path: str, *, is_link: bool = False) -> bool:
        """Add a file that a walk did not read, or a link to one that it did; return whether there is one."""
        seen = skill_file_at(path)
        if seen is None:
            return False
        if not seen.broken:
            # Where a broken link leads was recorded when it was resolved.
            self.scan.record.saw(seen.real_path, files.stamp_at(seen.real_path))
        if seen.real_path not in self.found:
            self.found[seen.real_path] = seen
        elif seen.broken or is_link:
            self.add_path(seen.real_path, seen.paths[0])
        return True

    def _add_problem(self, item: Diagnostic, *, every_problem: bool) -> None:
        if every_problem and item.rule == "link-outside" and self._is_known_target(item.path):
            return
        is_file = _is_meant(item, self.folders) and self.add_unread(item.path)
        if every_problem or (not is_file and item.rule in ("walk-limit", "unreadable", "root-unreadable")):
            self.unseen.append(item if is_file else item._replace(path=item.path.removesuffix(f"/{SKILL_FILE}")))

    def _is_known_target(self, path: str) -> bool:
        """Add a link to a skill that was found elsewhere; return whether it is one."""
        below = "" if os.path.basename(path) == SKILL_FILE else f"/{SKILL_FILE}"
        real_path = files.real_path(path + below)
        if real_path in self.found:
            self.add_path(real_path, path + below)
        return real_path in self.found


def _census(
    roots: Sequence[Root], scan: SharedScan, machine: MachineRoots | None
) -> tuple[dict[str, SkillFile], list[Diagnostic], tuple[str, ...] | None]:
    """Find every SKILL.md and near miss below any root, by real path, and what could not be read.

    With a `machine` also in the folders of its repository; the third value are the roots that were found there.
    """
    census = _Census(scan)
    census.add(roots, "/", every_problem=machine is not None)
    packages = None
    if machine is not None:
        packages = _add_repository(census, machine, {root.path for root in roots}) if machine.top else ()
    return census.found, list(dict.fromkeys(census.unseen)), packages


def _add_repository(census: _Census, machine: MachineRoots, known: Collection[str]) -> tuple[str, ...]:
    """Add the skills of packages in the repository, and those in folders that are no roots; return the new roots."""
    assert machine.top is not None
    assert machine.repository is not None
    repository = files.real_path(machine.repository)
    rules = [rule for host in HOSTS.values() for rule in host.roots if rule.kind == "project"]
    labels = {path for rule in rules for path in rule.paths}
    record = census.scan.record
    walk = walk_repository(machine.top, repository, labels=labels, known=known, record=record)
    packages = []
    for path in walk.roots:
        label = next((label for label in sorted(labels) if path.endswith(f"/{label}")), "skills")
        real = files.real_path(path) if files.kind_at(files.real_path(path)) == "folder" else None
        packages.append(Root(path, real, "project", "project", "project", "contained", trusted=True, label=label))
    inside = [root for root in packages if root.real_path and files.is_inside(root.real_path, repository)]
    census.add(inside, repository, every_problem=True)
    for folder in walk.skills:
        _add_stray(census, folder)
    for path in walk.links:
        census.add_unread(f"{path}/{SKILL_FILE}", is_link=True)
    outside = [root for root in packages if root not in inside]
    for root in outside:
        message = f"a link to {files.real_path(root.path)}, which is no folder of this repository"
        census.unseen.append(Diagnostic(root.path, "root-link", message))
    census.unseen += walk.problems
    return tuple(root.path for root in inside)


def _add_stray(census: _Census, folder: str) -> None:
    """Add the SKILL.md of a folder that is in no root."""
    real_path = f"{folder}/{SKILL_FILE}"
    try:
        head = census.scan.head_of(real_path)
    except OSError:
        # A link, or what may not be read.
        head = None
    if head is None or head.data is None or not is_text_path(real_path):
        census.add_unread(real_path)
        return
    census.scan.record.saw(real_path, head.stamp)
    item = Candidate(0, real_path, real_path, folder, head.data, head.stamp)
    census.add_candidate(item, Root(folder, folder, "project", "project", "project", "never", trusted=True))


def is_broken(root: Root) -> bool:
    """Return true if a root exists but cannot be entered: a broken link, or a file."""
    return root.exists and root.real_path is None


def _is_meant(problem: Diagnostic, folders: Collection[str]) -> bool:
    """Return true if a problem is about a skill file, or about a broken link in the place of a skill."""
    if problem.rule == "file-name" or os.path.basename(problem.path) == SKILL_FILE:
        return True
    if problem.rule not in _BROKEN or problem.path.endswith(".md"):
        return False
    if files.kind_at(files.real_path(problem.path)) not in (None, "link"):
        # A link back to a folder above is not broken.
        return False
    # A broken link inside a skill is one of its files.
    above = problem.path
    while len(above) > 1:
        above = os.path.dirname(above)
        if above in folders:
            return False
    return True


def skill_file_at(path: str) -> SkillFile | None:
    """Return the file at a path, or the SKILL.md of the folder at it; None if there is none."""
    path = path.rstrip("/") or "/"
    if files.kind_at(files.real_path(path)) == "folder":
        path = f"{path}/{SKILL_FILE}"
    kind = files.kind_at(path)
    if kind is None:
        return None
    real = files.real_path(path)
    if kind == "link" and files.kind_at(real) in (None, "link"):
        # The missing target is a SKILL.md, or else a folder with one.
        below = "" if path.endswith(".md") else f"/{SKILL_FILE}"
        problem = f"the link leads nowhere: target {files.link_target(path)}"
        return SkillFile(real + below, (path + below,), b"", 0, problem=problem, broken=path)
    problem = ""
    try:
        data = files.read_file(real, limit=SKILL_FILE_BYTES, links="never")
    except OSError as error:
        data, problem = None, (error.strerror or str(error)).lower()
    return SkillFile(real, (path,), data or b"", len(data or b""), problem=problem)


# Names --------------------------------------------------------------------------------------------


class NameIndex:
    """The files by every name that some host may give them.

    Which name a host gives to a file depends on how it parses the file; the index has all of them, so that the files
    that can have one name in common are found without the catalogs of all hosts.
    """

    def __init__(
        self,
        skill_files: Sequence[SkillFile],
        facts: Facts,
        positions: dict[str, list[int]] | None = None,
    ) -> None:
        self._facts = facts
        self._skill_files = skill_files
        self._readings = _name_readings()
        self.positions = self._all_positions() if positions is None else positions
        self.files = {skill_file.real_path: skill_file for skill_file in skill_files}

    def _all_positions(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for position, skill_file in enumerate(self._skill_files):
            for name in self._possible(skill_file):
                positions.setdefault(name, []).append(position)
        return positions

    def of(self, skill_file: SkillFile) -> frozenset[str]:
        """Return every name that some host may give to a file, in any of its places."""
        known = self.files.get(skill_file.real_path)
        return self._possible(skill_file) | (self._possible(known) if known else frozenset())

    def named(self, name: str) -> list[SkillFile]:
        """Return the files that some host may give this name, in the order of the survey."""
        return [self._skill_files[position] for position in self.positions.get(name, ())]

    def rivals(self, names: Iterable[str]) -> frozenset[str]:
        """Return the real paths of all files that may have one of these names."""
        return frozenset(skill_file.real_path for name in names for skill_file in self.named(name))

    def _possible(self, skill_file: SkillFile) -> frozenset[str]:
        folders = {os.path.basename(os.path.dirname(path)) for path in (*skill_file.paths, skill_file.path)}
        candidate = skill_file.candidate()
        plain = self._facts.plain(candidate)
        declared = plain.fields.get("name")
        if isinstance(declared, str) and _is_same_in_all_readings(declared, plain.text, skill_file.head):
            return frozenset((*folders, declared))
        read = [(self._facts.document(candidate, profile).fields, profile) for profile in self._readings]
        names = {name_of(fields, folder, profile) for fields, profile in read for folder in folders}
        return frozenset((*folders, *names, skill_file.declared))


def _name_readings() -> list[Profile]:
    """Return one host for each way of parsing a file and taking its name."""
    readings = {}
    for profile in HOSTS.values():
        if profile.name_source == "frontmatter":
            readings[parse_options(profile), profile.name_form, profile.odd_name] = profile
    return list(readings.values())


_NAME_LINE = re.compile(r"^[^\S\n]*name[^\S\n]*:(.*)$", re.MULTILINE)
_SIMPLE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def _is_same_in_all_readings(name: str, text: str, head: bytes) -> bool:
    """Return whether every way of parsing finds this name, or none, in a frontmatter.

    The fences must be the same for all, and so must the value of the last line that begins with `name`, which is what
    readers of single lines take. No host changes a name of these characters.
    """
    if not head.startswith(b"---\n") or "---" in text or not _SIMPLE_NAME.fullmatch(name):
        return False
    lines = _NAME_LINE.findall(text)
    return bool(lines) and lines[-1].strip() in (name, f'"{name}"', f"'{name}'")
