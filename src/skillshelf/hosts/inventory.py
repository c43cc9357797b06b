"""List every skill of the machine once: its copies, the user's hosts that see it, and its problems.

The files come from the survey of all hosts, which for this also walks the repository. What has to be read of each skill
is kept with the survey, and counts while no file of the skill has changed.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, TextIO

from skillshelf.catalog.build import build
from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.disk_state import ScanRecord
from skillshelf.catalog.lock_places import CHANGED
from skillshelf.catalog.machine_files import MachineFiles, keep_machine_files, known_machine_files
from skillshelf.catalog.search_roots import Roots
from skillshelf.catalog.tree import GIT, skill_tree
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, author_severities, find_profile
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, is_trusted
from skillshelf.core import files
from skillshelf.core.console import watched
from skillshelf.core.environment import Environment, find_repository
from skillshelf.core.limits import LISTED_ENTRIES, OUTSIDE_STAMPS, SETTLED_NS
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate, Catalog, Diagnostic, Root, Scope
from skillshelf.errors import SkillError
from skillshelf.hosts.detection import ChosenBy, DetectedHost, chosen_by, chosen_hosts, host_states
from skillshelf.hosts.machine_roots import machine_roots, plugin_lists
from skillshelf.hosts.near_misses import misspelt_roots
from skillshelf.hosts.overview import overview_of
from skillshelf.hosts.packed_survey import recall_stale
from skillshelf.hosts.survey import MachineRoots, SkillFile, Survey, take_survey
from skillshelf.lint.run import CheckFinding, Target, file_problems

__all__ = [
    "Inventory",
    "InventoryPlace",
    "InventoryProblem",
    "InventorySkill",
    "PlaceKind",
    "catalog_of",
    "take_inventory",
]

PlaceKind = Literal["user", "project", "package", "plugin", "custom", "unread"]

_ORDER: tuple[PlaceKind, ...] = ("project", "package", "user", "custom", "plugin", "unread")
"""The order of places, and of the files of a skill that is in several of them."""

_SCOPES: Mapping[PlaceKind, Scope] = {"user": "user", "plugin": "user", "custom": "custom"}


class InventoryPlace(NamedTuple):
    """A folder of skills, and how many files called SKILL.md are in it, links included.

    It is one that hosts read at home (`user`) or for this folder (`project`), in a package of the repository or of
    `node_modules` (`package`), of a plugin, from the configuration (`custom`), or one that no host reads (`unread`).
    """

    path: str
    kind: PlaceKind
    scope: Scope
    skills: int


class InventoryProblem(NamedTuple):
    """An error or warning about a skill, or about a folder or file at `path`."""

    rule: str
    severity: Literal["error", "warning"]
    message: str
    line: int | None
    path: str


class InventorySkill(NamedTuple):
    """One text of a name: where it is, which hosts see it, and its problems; `tree` is None if it has none."""

    name: str
    path: str
    copies: tuple[str, ...]
    tree: str | None
    hosts: Mapping[str, bool | None]
    problems: tuple[InventoryProblem, ...]
    skill_file: SkillFile

    @property
    def is_broken(self) -> bool:
        """Whether it has an error."""
        return any(problem.severity == "error" for problem in self.problems)

    @property
    def is_unseen(self) -> bool:
        """Whether no host sees it."""
        return all(seen is False for seen in self.hosts.values())


class Inventory(NamedTuple):
    """All skills of a machine; `problems` are those of no skill, `walked` is the folder of the repository searched.

    `seen_by_path` says of each file by itself, without its copies elsewhere, whether the hosts see it.
    """

    hosts: tuple[DetectedHost, ...]
    names: tuple[str, ...]
    chosen_by: ChosenBy
    places: tuple[InventoryPlace, ...]
    skills: tuple[InventorySkill, ...]
    problems: tuple[InventoryProblem, ...]
    files: int
    repository: str | None
    walked: str | None
    place_by_path: Mapping[str, str]
    seen_by_path: Mapping[str, Sequence[bool | None]]
    survey: Survey

    def place_of(self, path: str) -> str:
        """Return the place of a file."""
        return self.place_by_path[path]

    def counts(self) -> dict[str, int]:
        """Return the number of skills and files, of broken skills, and of those that none of the hosts sees."""
        broken = sum(skill.is_broken for skill in self.skills)
        unseen = sum(skill.is_unseen for skill in self.skills)
        return {"skills": len(self.skills), "files": self.files, "broken": broken, "unseen": unseen}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        skills = [
            {
                "name": skill.name,
                "path": skill.path,
                "copies": list(skill.copies),
                "tree": skill.tree,
                "hosts": dict(skill.hosts),
                "problems": [_problem_form(problem) for problem in skill.problems],
                **self.survey.lock_members(os.path.dirname(skill.skill_file.real_path), os.path.dirname(skill.path)),
            }
            for skill in self.skills
        ]
        return {
            "hosts": [host._asdict() for host in self.hosts],
            "places": [place._asdict() for place in self.places],
            "skills": skills,
            "problems": [{"path": problem.path, **_problem_form(problem)} for problem in self.problems],
            "counts": self.counts(),
        }


def _problem_form(problem: InventoryProblem) -> dict[str, Any]:
    return {
        "rule": problem.rule,
        "severity": problem.severity,
        "message": problem.message,
        "line": problem.line,
    }


def take_inventory(
    environment: Environment,
    settings: Settings,
    *,
    all_hosts: bool = False,
    trees: bool = True,
    cache_folder: str | None = None,
    progress: TextIO | None = None,
    within: str | None = None,
) -> Inventory:
    """Find all skills of the machine; without `trees` only those of skills that may be copies are computed.

    With `within`, skills that do not really lie in that folder are problems instead.
    """
    states = host_states(environment, settings)
    names = chosen_hosts(environment, settings, all_hosts=all_hosts)
    machine, problems = machine_roots(environment, settings)
    survey = take_survey(environment, names, progress=progress, cache_folder=cache_folder, machine=machine)
    overview = overview_of(survey)
    known = survey.recall(_FACTS)
    if known is None and cache_folder is not None:
        # Each fact tells whether it still counts.
        known = recall_stale(cache_folder, survey.key, _FACTS)
    facts = _SkillFacts(survey, _unpacked(known), find_profile(DEFAULT_PROFILE), progress)
    places = _Places(survey, machine)
    columns = list(zip(*(host.visible for host in overview.hosts), strict=True))
    seen = {one.real_path: column for one, column in zip(survey.skill_files, columns, strict=True)}
    skill_files = [one for one in survey.skill_files if _is_skill_file(one)]
    if within is not None:
        problems = (*problems, *_outside(skill_files, within))
        skill_files = [one for one in skill_files if files.is_inside(one.real_path, within)]
    skills = [
        _with_lock(_skill(group, tree, names, seen, places, facts), survey)
        for group, tree in _groups(skill_files, facts, places, trees=trees)
    ]
    found = Inventory(
        states,
        names,
        "all" if all_hosts else chosen_by(environment, settings),
        places.listed(skill_files),
        tuple(sorted(skills, key=lambda skill: (skill.name, skill.path))),
        tuple(_other_problems(survey, (*problems, *_settings_problems(survey)), skill_files)),
        len(skill_files),
        machine.repository,
        machine.top,
        {path: places.of(path) for one in skill_files for path in one.paths},
        {path: seen[one.real_path] for one in skill_files for path in one.paths},
        survey,
    )
    if cache_folder is not None:
        facts.keep()
        _keep_files(found, cache_folder, environment, settings)
        survey.keep(cache_folder)
    return found


def catalog_of(found: Inventory, profile: Profile, settings: Settings) -> Catalog:
    """Return the skills of all places as one catalog, by the rules of a profile for a single skill; no copies."""
    roots = []
    for place in found.places:
        is_own = place.kind in ("user", "plugin", "custom")
        trusted = is_own or is_trusted(place.path, settings.trusted_folders)
        kind: Literal["custom", "project", "user"] = (
            "custom" if place.kind == "custom" else "user" if is_own else "project"
        )
        scope = profile.scope_labels.get(kind, kind)
        untrusted_by = "" if trusted else settings.said_by("trust.folders", lambda file: file.owner == "user")
        root = Root(place.path, place.path, kind, scope, kind, "follow", trusted=trusted, untrusted_by=untrusted_by)
        roots.append(root)
    positions = {place.path: number for number, place in enumerate(found.places)}
    candidates = []
    for skill in found.skills:
        real_path = skill.skill_file.real_path
        try:
            head = found.survey.scan.head_of(real_path)
        except OSError:
            continue
        if head.data is not None:
            number = positions[found.place_of(skill.path)]
            folder = os.path.dirname(real_path)
            candidates.append(Candidate(number, skill.path, real_path, folder, head.data, head.stamp))
    whole = Roots(tuple(roots), found.survey.environment.cwd, ())
    return build(candidates, whole, profile._replace(collision="keep-all"), settings, look_alikes="ignore")


def _is_skill_file(skill_file: SkillFile) -> bool:
    """Return whether there is something called SKILL.md at the path of a file, not only something like it."""
    return skill_file.file_name == SKILL_FILE and (not skill_file.broken or skill_file.broken == skill_file.path)


# Places -------------------------------------------------------------------------------------------


class _Places:
    """The folders of skills, and what kind each is."""

    def __init__(self, survey: Survey, machine: MachineRoots) -> None:
        environment = survey.environment
        rules = [rule for host in HOSTS.values() for rule in host.roots if rule.base == "home"]
        at_home = {os.path.join(environment.home or "/", path) for rule in rules for path in rule.paths}
        by_source: Mapping[str, PlaceKind] = {"plugin": "plugin", "misspelt": "unread"}
        sources = {root.path: by_source[root.source] for root in machine.roots if root.source in by_source}
        by_kind: Mapping[str, PlaceKind] = {"user": "user", "project": "project", "env": "custom", "custom": "custom"}
        self.kinds: dict[str, PlaceKind] = {}
        for root in survey.roots:
            if root.real_path is not None:
                kind = "user" if root.path in at_home else by_kind[root.kind]
                self.kinds[root.path] = sources.get(root.path, kind)
        self.kinds |= dict.fromkeys(survey.packages or (), "package")
        self._walked = machine.top

    def of(self, path: str) -> str:
        """Return the nearest root above a file; without one, the folder that contains the skill."""
        folder = own = os.path.dirname(path)
        while folder not in self.kinds:
            parent = os.path.dirname(folder)
            if parent == folder:
                return own if own == self._walked else os.path.dirname(own)
            folder = parent
        return folder

    def order(self, path: str) -> tuple[int, bytes]:
        """Return the key that sorts paths: by the kind of their place."""
        return _ORDER.index(self.kind_at(path)), files.path_bytes(path)

    def kind_at(self, path: str) -> PlaceKind:
        """Return the kind of the place of a file."""
        return self.kinds.get(self.of(path), "unread")

    def listed(self, skill_files: Iterable[SkillFile]) -> tuple[InventoryPlace, ...]:
        """Return every place that exists or has a skill."""
        counts = dict.fromkeys(self.kinds, 0)
        for skill_file in skill_files:
            for place in map(self.of, skill_file.paths):
                counts[place] = counts.get(place, 0) + 1
        kinds = {path: self.kinds.get(path, "unread") for path in counts}
        ordered = sorted(counts, key=lambda path: (_ORDER.index(kinds[path]), files.path_bytes(path)))
        return tuple(
            InventoryPlace(path, kinds[path], _SCOPES.get(kinds[path], "project"), counts[path]) for path in ordered
        )


# One skill ----------------------------------------------------------------------------------------


class _Fact(NamedTuple):
    """The facts about one skill: its problems, and its tree if `has_tree`.

    `signature` stands for the stamps of all files in its folder; it is empty if they cannot tell.
    """

    signature: bytes
    problems: tuple[InventoryProblem, ...]
    tree: str | None
    has_tree: bool


class _SkillFacts:
    """The facts about each skill, by the real path of its SKILL.md; some of them are from an earlier process."""

    def __init__(
        self, survey: Survey, before: Mapping[str, "_Fact"], profile: Profile, progress: TextIO | None
    ) -> None:
        self._survey = survey
        self._before = before
        self._severities = author_severities(profile)
        self._reported: dict[str, list[Diagnostic]] = {}
        for problem in survey.unseen:
            self._reported.setdefault(problem.path, []).append(problem)
        self._facts = dict(self._all(profile, progress))

    def _all(self, profile: Profile, progress: TextIO | None) -> Iterator[tuple[str, _Fact]]:
        skill_files = self._survey.skill_files
        signed = [(one, _signature(one, self._survey)) for one in skill_files if _is_skill_file(one)]
        new = []
        for skill_file, signature in signed:
            known = self._before.get(skill_file.real_path)
            if known is not None and signature and known.signature == signature:
                yield skill_file.real_path, known
            elif (found := self._reported_problems(skill_file)) is not None:
                yield skill_file.real_path, _Fact(b"", tuple(found), None, has_tree=True)
            else:
                new.append((skill_file, signature))
        targets = [Target(one.path, one.real_path, one.folder) for one, _ in new]
        checked = zip(new, file_problems(targets, profile), strict=True)
        for (skill_file, signature), findings in watched(checked, "Checking skills", progress, len(new)):
            problems = tuple(_as_problem(finding, skill_file.path) for finding in findings)
            yield skill_file.real_path, _Fact(signature, problems, None, has_tree=False)

    def _reported_problems(self, skill_file: SkillFile) -> list[InventoryProblem] | None:
        """Return the problems of a file that the survey could not take in; None if it could."""
        found = [problem for path in skill_file.paths for problem in self._reported.get(path, ())]
        if skill_file.problem and not found:
            found = [Diagnostic(skill_file.path, "unreadable", skill_file.problem)]
        return [*_with_severities(found, self._severities)] if found else None

    def problems(self, skill_file: SkillFile) -> tuple[InventoryProblem, ...]:
        """Return the errors and warnings of a file."""
        return self._facts[skill_file.real_path].problems

    def name(self, skill_file: SkillFile) -> str:
        """Return the name of a skill; that of its folder if it is broken."""
        is_broken = any(problem.severity == "error" for problem in self.problems(skill_file))
        return skill_file.folder if is_broken else skill_file.declared or skill_file.folder

    def tree(self, skill_file: SkillFile) -> str | None:
        """Return the digest of all files of a skill; None if it has none."""
        fact = self._facts[skill_file.real_path]
        if not fact.has_tree:
            try:
                folder = _own_folder(skill_file, self._survey.environment.home)
                fact = fact._replace(tree=skill_tree(folder).digest if folder else None, has_tree=True)
            except SkillError:
                fact = fact._replace(has_tree=True, signature=b"")
            self._facts[skill_file.real_path] = fact
        return fact.tree

    def keep(self) -> None:
        """Let the survey keep what is new."""
        settled = {path: fact for path, fact in self._facts.items() if fact.signature}
        if settled != self._before or self._survey.packed is None:
            packed = {path: (*fact[:1], [tuple(one) for one in fact[1]], *fact[2:]) for path, fact in settled.items()}
            self._survey.learned[_FACTS] = packed


_FACTS = "skills"


def _unpacked(values: Any) -> dict[str, _Fact]:
    try:
        return {
            path: _Fact(signature, tuple(InventoryProblem(*one) for one in problems), tree, has_tree)
            for path, (signature, problems, tree, has_tree) in values.items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}


def _own_folder(skill_file: SkillFile, home: str | None) -> str | None:
    """Return the real folder with the files of a skill; None if its SKILL.md is a link to a file of something else.

    The home folder, and what contains it, is never one of a skill.
    """
    folder, name = os.path.split(skill_file.real_path)
    if name != SKILL_FILE and folder != files.real_path(os.path.dirname(skill_file.path)):
        return None
    return None if home and files.is_inside(files.real_path(home), folder) else folder


def _signature(skill_file: SkillFile, survey: Survey) -> bytes:
    """Return what changes with every change of a file in the folder of a skill; nothing without a cache."""
    own_folder = _own_folder(skill_file, survey.environment.home)
    if own_folder is None or (not survey.key and survey.packed is None):
        return b""
    try:
        with files.Folder(own_folder) as folder:
            tree = folder.tree(LISTED_ENTRIES, without=(), without_at_top=(GIT,))
    except OSError:
        return b""
    stamps = {**tree.files, **tree.other_stamps}
    latest = time.time_ns() - SETTLED_NS
    if not tree.complete or any(stamp[4] > latest for stamp in stamps.values()):
        return b""
    text = repr((skill_file.path, sorted(stamps.items()), sorted(tree.folders)))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _as_problem(finding: CheckFinding, path: str) -> InventoryProblem:
    """Return a finding about a skill; one about another of its files names that file."""
    message = finding.message
    if finding.path != path:
        message = f"{os.path.relpath(finding.path, os.path.dirname(path))}: {message}"
    severity: Literal["error", "warning"] = "error" if finding.severity == "error" else "warning"
    return InventoryProblem(finding.rule, severity, message, finding.line, path)


def _with_severities(found: Iterable[Diagnostic], severities: Mapping[str, str]) -> Iterator[InventoryProblem]:
    for problem in found:
        severity: Literal["error", "warning"] = "error" if severities[problem.rule] == "reject" else "warning"
        if severities[problem.rule] in ("reject", "warn"):
            yield InventoryProblem(problem.rule, severity, problem.message, problem.line, problem.path)


def _groups(
    skill_files: Sequence[SkillFile], facts: _SkillFacts, places: _Places, *, trees: bool
) -> Iterator[tuple[list[SkillFile], str | None]]:
    """Yield the files of each skill, the first of them where it is read first, and its tree as far as it is needed."""
    alike: dict[tuple[str, tuple[bytes, int]], list[SkillFile]] = {}
    for skill_file in skill_files:
        alike.setdefault((facts.name(skill_file), skill_file.text), []).append(skill_file)
    for group in alike.values():
        if len(group) == 1:
            yield group, facts.tree(group[0]) if trees else None
            continue
        ordered = sorted(group, key=lambda one: places.order(one.path))
        by_tree: dict[str, list[SkillFile]] = {}
        for skill_file in ordered:
            # What has no tree is a copy of nothing.
            by_tree.setdefault(facts.tree(skill_file) or skill_file.real_path, []).append(skill_file)
        for same in by_tree.values():
            yield same, facts.tree(same[0])


def _skill(
    group: Sequence[SkillFile],
    tree: str | None,
    names: Sequence[str],
    seen: Mapping[str, Sequence[bool | None]],
    places: _Places,
    facts: _SkillFacts,
) -> InventorySkill:
    first = group[0]
    others = sorted({path for one in group for path in one.paths} - {first.path}, key=places.order)
    columns = zip(*(seen[one.real_path] for one in group), strict=True)
    hosts = dict(zip(names, map(_any_seen, columns), strict=True))
    return InventorySkill(facts.name(first), first.path, tuple(others), tree, hosts, facts.problems(first), first)


def _with_lock(skill: InventorySkill, survey: Survey) -> InventorySkill:
    """Return a skill with one more problem if it is installed and its files are not those of its lock."""
    state = survey.lock_state(os.path.dirname(skill.skill_file.real_path), os.path.dirname(skill.path))
    if state is None or not state.changed:
        return skill
    problem = InventoryProblem(CHANGED, "error", state.message, None, skill.path)
    return skill._replace(problems=(problem, *skill.problems))


def _any_seen(answers: Sequence[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


# The rest -----------------------------------------------------------------------------------------


def _outside(skill_files: Iterable[SkillFile], folder: str) -> Iterator[Diagnostic]:
    """Yield a problem for each skill that links lead to, and that does not lie in a folder."""
    for one in skill_files:
        if not files.is_inside(one.real_path, folder):
            yield Diagnostic(one.path, "link-outside", "it is a link out of the repository, so it is left out")


def _settings_problems(survey: Survey) -> list[Diagnostic]:
    return [problem for host in survey.hosts.values() for problem in host.entered.problems]


def _other_problems(
    survey: Survey, more: Sequence[Diagnostic], skill_files: Sequence[SkillFile]
) -> Iterator[InventoryProblem]:
    """Yield the problems that are about no skill: misspelt and unreadable folders and files, links and limits."""
    known = {path for one in skill_files for path in one.paths}
    found = [problem for problem in (*more, *survey.unseen) if problem.path not in known]
    home = survey.environment.home
    for miss in misspelt_roots(home) if home else ():
        if miss.rename:
            found.append(Diagnostic(miss.path, "file-name", miss.message))
    severities = author_severities(find_profile(DEFAULT_PROFILE))
    yield from sorted(dict.fromkeys(_with_severities(found, severities)), key=lambda one: (one.path, one.rule))


def _keep_files(found: Inventory, folder: str, environment: Environment, settings: Settings) -> None:
    """Remember the paths of all files for other views, unless that is done already or the disk proves nothing."""
    survey = found.survey
    custom = settings.custom_directories
    if known_machine_files(folder, environment, custom) is not None:
        return
    # Of a survey that was kept the state of the disk is known, and only the rest has to be looked at.
    record = survey.scan.record if survey.packed is None else ScanRecord(time.time_ns())
    absent = [root.path for root in survey.roots if not root.exists]
    absent += _absent_markers(environment.cwd)
    for root in survey.roots:
        if root.exists and root.real_path != root.path:
            _depend_on(root.path, record)
    for path in plugin_lists(environment):
        if files.kind_at(path) is None:
            absent.append(path)
        else:
            _depend_on(path, record)
    contents = {one.real_path for one in survey.skill_files}
    real = [root.real_path for root in survey.roots if root.real_path]
    state = record.state([*real, found.walked or "/"], without=contents, most=OUTSIDE_STAMPS)
    if state is not None and survey.packed is not None:
        state = survey.packed.state.without(contents).joined(state)
    if state is None or state.size > OUTSIDE_STAMPS:
        return
    names = {path: skill.name for skill in found.skills for path in (skill.path, *skill.copies)}
    rows = [
        (found.place_of(one.path), sorted({*one.paths, one.real_path}), names[one.path])
        for one in survey.skill_files
        if _is_skill_file(one)
    ]
    profiles = (*HOSTS.values(), find_profile(DEFAULT_PROFILE))
    variables = {name: environment.env.get(name) for profile in profiles for name in profile.env}
    keep_machine_files(folder, environment, custom, MachineFiles(rows, variables, absent), state)


def _depend_on(path: str, record: ScanRecord) -> None:
    """Record an entry and where it leads: the root of a host may be a link, and so may be a file."""
    record.followed(path)
    real_path = files.real_path(path)
    if (stamp := files.stamp_at(real_path)) is not None:
        record.saw(real_path, stamp)


def _absent_markers(cwd: str) -> list[str]:
    """Return what would make another folder the repository of some host if it were there."""
    absent: dict[str, None] = {}
    for markers in dict.fromkeys(profile.markers for profile in (*HOSTS.values(), find_profile(DEFAULT_PROFILE))):
        folder, top = cwd, find_repository(cwd, markers)
        while folder != top:
            absent.update((os.path.join(folder, marker), None) for marker in markers)
            if folder == "/":
                break
            folder = os.path.dirname(folder)
    return list(absent)
