"""Find every file that is a skill or was meant as one, below any root of any host, with all names it may have."""

import os
import re
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Literal

from skillshelf.catalog.discovery import SKILL_FILE, Repeat, is_text_path
from skillshelf.catalog.document import ParsedFrontmatter, parse, parse_options
from skillshelf.catalog.facts import Facts
from skillshelf.catalog.rules import name_of, prevents_list
from skillshelf.catalog.search_roots import Roots
from skillshelf.catalog.shared_scan import ProfileWalk, SharedScan, read_head_at
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import REPOSITORY_FOLDERS, SKILL_FILE_BYTES, SURVEY_DIRECTORIES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate, Diagnostic, Root
from skillshelf.hosts.repository_walk import walk_repository

__all__ = [
    "BROKEN_LINKS",
    "EVERYTHING",
    "EVERYTHING_ON_MACHINE",
    "Census",
    "MachineRoots",
    "NameIndex",
    "SkillFile",
    "census_roots",
    "census_walk",
    "declared_in",
    "matters_to_names_alone",
    "order_key",
    "skill_file_at",
    "take_census",
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


def order_key(skill_file: SkillFile) -> tuple[str, str]:
    """Return the key that sorts the files of a survey: by folder name, then by path."""
    return skill_file.folder, skill_file.path


BROKEN_LINKS = ("link-broken", "link-loop")
"""The rules about links that lead nowhere."""

# Every skill file ---------------------------------------------------------------------------------

EVERYTHING = Profile(
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

EVERYTHING_ON_MACHINE = EVERYTHING._replace(max_directories=REPOSITORY_FOLDERS)
"""The same in the roots of a machine, where what is left unseen is told."""


class MachineRoots(NamedTuple):
    """Where to look for skills besides the roots of hosts: in further roots, and below `top` in the repository.

    `here` is the working directory, which is walked even if git ignores it.
    """

    roots: tuple[Root, ...]
    top: str | None
    repository: str | None
    here: str = ""


def census_roots(resolved: Iterable[Roots], machine: MachineRoots | None = None, home: str | None = None) -> list[Root]:
    """Return every root of any host, and those of the machine, each once and open to everything below it.

    For a machine no link leads to the home folder, which is never walked.
    """
    roots: dict[str, Root] = {}
    spared = files.real_path(home) if home and machine else ""
    for root in (*(root for host_roots in resolved for root in host_roots.roots), *(machine.roots if machine else ())):
        open_root = root._replace(links="follow", hidden="enter", loose_files="none", spared=spared)
        roots.setdefault(root.path, open_root)
    return list(roots.values())


def census_walk(roots: Sequence[Root], scan: SharedScan, machine: MachineRoots | None = None) -> ProfileWalk:
    """Walk all roots for everything that may be meant as a skill."""
    return scan.walk(roots, EVERYTHING, repository="/") if machine is None else _machine_walk(roots, scan, "/")


def _machine_walk(roots: Sequence[Root], scan: SharedScan, repository: str) -> ProfileWalk:
    return scan.walk(roots, EVERYTHING_ON_MACHINE, repository=repository)


class Census:
    """Every SKILL.md and near miss that was found, by real path, and the problems on the way."""

    def __init__(self, scan: SharedScan) -> None:
        self.scan = scan
        self.found: dict[str, SkillFile] = {}
        self.unseen: list[Diagnostic] = []
        self._folders: set[str] = set()

    def add(self, walk: ProfileWalk, *, every_problem: bool) -> None:
        """Add what a walk finds; with `every_problem` also those that are about no folder or whole root."""
        for item in walk.found():
            if isinstance(item, Candidate):
                self.add_candidate(item, walk.walks[item.root].root)
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
        self._folders.add(os.path.dirname(item.path))

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

    def declare(self) -> dict[str, SkillFile]:
        """Return the files, each with the name that it declares."""
        return {path: declared_in(one, self.scan.facts) for path, one in self.found.items()}

    def _add_problem(self, item: Diagnostic, *, every_problem: bool) -> None:
        if every_problem and item.rule == "link-outside" and self._is_known_target(item.path):
            return
        is_file = _is_meant(item, self._folders) and self.add_unread(item.path)
        if every_problem or (not is_file and item.rule in ("walk-limit", "unreadable", "root-unreadable")):
            self.unseen.append(item if is_file else item._replace(path=item.path.removesuffix(f"/{SKILL_FILE}")))

    def _is_known_target(self, path: str) -> bool:
        """Add a link to a skill that was found elsewhere; return whether it is one."""
        below = "" if os.path.basename(path) == SKILL_FILE else f"/{SKILL_FILE}"
        real_path = files.real_path(path + below)
        if real_path in self.found:
            self.add_path(real_path, path + below)
        return real_path in self.found


class CensusResult(NamedTuple):
    """Every SKILL.md and near miss, by real path, what could not be read, and the roots found in the repository."""

    found: dict[str, SkillFile]
    unseen: list[Diagnostic]
    packages: tuple[str, ...] | None


def take_census(walk: ProfileWalk, scan: SharedScan, machine: MachineRoots | None = None) -> CensusResult:
    """Return every SKILL.md and near miss of a walk of all roots, and with a `machine` of its repository."""
    census = Census(scan)
    census.add(walk, every_problem=machine is not None)
    packages = None
    if machine is not None:
        packages = _add_repository(census, machine, {one.root.path for one in walk.walks}) if machine.top else ()
    return CensusResult(census.declare(), list(dict.fromkeys(census.unseen)), packages)


def _add_repository(census: Census, machine: MachineRoots, known: Collection[str]) -> tuple[str, ...]:
    """Add the skills of packages in the repository, and those in folders that are no roots; return the new roots."""
    assert machine.top is not None
    assert machine.repository is not None
    repository = files.real_path(machine.repository)
    rules = [rule for host in HOSTS.values() for rule in host.roots if rule.kind == "project"]
    labels = {path for rule in rules for path in rule.paths}
    record = census.scan.record
    walk = walk_repository(machine.top, repository, labels=labels, known=known, record=record, here=machine.here)
    packages = []
    for path in walk.roots:
        label = next((label for label in sorted(labels) if path.endswith(f"/{label}")), "skills")
        real = files.real_path(path) if files.kind_at(files.real_path(path)) == "folder" else None
        packages.append(Root(path, real, "project", "project", "project", "contained", trusted=True, label=label))
    inside = [root for root in packages if root.real_path and files.is_inside(root.real_path, repository)]
    census.add(_machine_walk(inside, census.scan, repository), every_problem=True)
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


def _add_stray(census: Census, folder: str) -> None:
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


def declared_in(skill_file: SkillFile, facts: Facts) -> SkillFile:
    """Return a file with the name in its frontmatter."""
    name = facts.plain(skill_file.candidate()).fields.get("name")
    return skill_file._replace(declared=name) if isinstance(name, str) else skill_file


def _is_meant(problem: Diagnostic, folders: Collection[str]) -> bool:
    """Return true if a problem is about a skill file, or about a broken link in the place of a skill."""
    if problem.rule == "file-name" or os.path.basename(problem.path) == SKILL_FILE:
        return True
    if problem.rule not in BROKEN_LINKS or problem.path.endswith(".md"):
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
        try:
            problem = f"the link leads nowhere: target {files.link_target(path)}"
        except OSError as error:
            problem = f"the link cannot be read: {(error.strerror or str(error)).lower()}"
        return SkillFile(real + below, (path + below,), b"", 0, problem=problem, broken=path)
    problem = ""
    try:
        data = files.read_file(real, limit=SKILL_FILE_BYTES, links="never")
    except OSError as error:
        data, problem = None, (error.strerror or str(error)).lower()
    return SkillFile(real, (path,), data or b"", len(data or b""), problem=problem)


# Names --------------------------------------------------------------------------------------------


_PREVENTS_LISTS = "\0no list"
"""The entry among the names for a file because of which some host lists no skill; no folder can have this name."""


class NameIndex:
    """The files by every name that some host may give them.

    Which name a host gives to a file depends on how it parses the file; the index has all of them, so that the files
    that can have one name in common are found without the catalogs of all hosts. It also knows the files because of
    which a host lists no skill, whatever their names.
    """

    def __init__(
        self,
        skill_files: Sequence[SkillFile],
        facts: Facts,
        positions: dict[str, list[int]] | None = None,
    ) -> None:
        self._facts = facts
        self.skill_files = skill_files
        self._readings = _name_readings()
        self._strict = [profile for profile in HOSTS.values() if _may_list_nothing(profile)]
        self.positions = self._all_positions() if positions is None else positions
        self.files = {skill_file.real_path: skill_file for skill_file in skill_files}

    def updated(self, skill_files: Sequence[SkillFile], origins: Sequence[int]) -> "NameIndex":
        """Return the index of other files, each with its position here; -1 for one that is new or has changed."""
        known: list[list[str]] = [[] for _ in self.skill_files]
        for name, found in self.positions.items():
            for position in found:
                known[position].append(name)
        positions: dict[str, list[int]] = {}
        for position, origin in enumerate(origins):
            for name in self._possible(skill_files[position]) if origin < 0 else known[origin]:
                positions.setdefault(name, []).append(position)
        return NameIndex(skill_files, self._facts, positions)

    def _all_positions(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for position, skill_file in enumerate(self.skill_files):
            for name in self._possible(skill_file):
                positions.setdefault(name, []).append(position)
        return positions

    def of(self, skill_file: SkillFile) -> frozenset[str]:
        """Return every name that some host may give to a file, in any of its places."""
        known = self.files.get(skill_file.real_path)
        return self._possible(skill_file) | (self._possible(known) if known else frozenset())

    def named(self, name: str) -> list[SkillFile]:
        """Return the files that some host may give this name, in the order of the survey."""
        return [self.skill_files[position] for position in self.positions.get(name, ())]

    def names_of(self, real_paths: Collection[str]) -> frozenset[str]:
        """Return every name that some host may give to one of the files at these real paths."""
        found = {at for at, skill_file in enumerate(self.skill_files) if skill_file.real_path in real_paths}
        return frozenset(name for name, positions in self.positions.items() if not found.isdisjoint(positions))

    def rivals(self, names: Iterable[str]) -> frozenset[str]:
        """Return the real paths of all files that may have one of these names."""
        return frozenset(skill_file.real_path for name in names for skill_file in self.named(name))

    def preventing(self, profile: Profile) -> frozenset[str]:
        """Return the real paths of all files that matter to every skill of a host: it may list none because of them."""
        return self.rivals((_PREVENTS_LISTS,)) if _may_list_nothing(profile) else frozenset()

    def _possible(self, skill_file: SkillFile) -> frozenset[str]:
        names, candidate = self._possible_names(skill_file), skill_file.candidate()
        is_obstacle = any(prevents_list(self._facts.document(candidate, host).fields, host) for host in self._strict)
        return names | {_PREVENTS_LISTS} if is_obstacle else names

    def _possible_names(self, skill_file: SkillFile) -> frozenset[str]:
        folders = {os.path.basename(os.path.dirname(path)) for path in (*skill_file.paths, skill_file.path)}
        candidate = skill_file.candidate()
        plain = self._facts.plain(candidate)
        declared = plain.fields.get("name")
        if isinstance(declared, str) and _is_same_in_all_readings(declared, plain.text, skill_file.head):
            return frozenset((*folders, declared))
        read = [(self._facts.document(candidate, profile).fields, profile) for profile in self._readings]
        names = {name_of(fields, folder, profile) for fields, profile in read for folder in folders}
        return frozenset((*folders, *names, skill_file.declared))


def matters_to_names_alone(profile: Profile, changed: Collection[str]) -> bool:
    """Return whether a change of files with these names matters to no file of other names in the list of a host."""
    return _PREVENTS_LISTS not in changed or not _may_list_nothing(profile)


def _may_list_nothing(profile: Profile) -> bool:
    return any(one.otherwise == "no-list" for one in profile.types)


def _name_readings() -> list[Profile]:
    """Return one host for each way of parsing a file and taking its name."""
    readings = {}
    for profile in HOSTS.values():
        if profile.name_source == "frontmatter":
            readings[parse_options(profile), profile.name_form, profile.odd_name] = profile
    return list(readings.values())


_NAME_LINE = re.compile(r"^[^\S\n]*name[^\S\n]*:(.*)$", re.MULTILINE)
_SIMPLE_NAME = re.compile(r"[a-z0-9_-]+")


def _is_same_in_all_readings(name: str, text: str, head: bytes) -> bool:
    """Return whether every way of parsing finds this name, or none, in a frontmatter.

    The fences must be the same for all, and so must the value of every line that begins with `name`, of which readers
    of single lines take the first or the last, some with its quotes. No host changes a name of these characters.
    """
    if not head.startswith(b"---\n") or "---" in text or "\r" in text or not _SIMPLE_NAME.fullmatch(name):
        return False
    lines = _NAME_LINE.findall(text)
    return bool(lines) and all(line.strip() == name for line in lines)
