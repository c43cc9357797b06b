"""Scan the disk once and build the catalog of every host from that scan.

The first bytes of every SKILL.md are kept and parsed once for all hosts that parse alike; each host then goes through
the same stages as a listing, with its own profile.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from shlex import quote
from typing import Literal, NamedTuple, TextIO

from skillshelf.catalog.build import build
from skillshelf.catalog.build_context import Documents
from skillshelf.catalog.discovery import SKILL_FILE, Found, Repeat, discover
from skillshelf.catalog.document import DEFAULT_OPTIONS, ParsedFrontmatter, parse
from skillshelf.catalog.host_settings import SettingEffect, setting_effect
from skillshelf.catalog.prompt import CatalogText, catalog_text, visible_to_model
from skillshelf.catalog.search_roots import Roots, resolve_roots
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, watched
from skillshelf.core.environment import Environment
from skillshelf.core.limits import SKILL_FILE_BYTES, SURVEY_DIRECTORIES
from skillshelf.core.values import Candidate, Catalog, CatalogSkill, Diagnostic, Filtered, Finding, Root, Shadowed

__all__ = [
    "HostState",
    "SkillFile",
    "Survey",
    "base_of",
    "is_broken",
    "skill_file_at",
    "state_of",
    "survey_one",
    "take_survey",
]

Heads = dict[str, files.Head]
Only = Mapping[str, Collection[str]]


class SkillFile(NamedTuple):
    """A file that is a skill or was meant as one: its real path, all paths that lead to it, and its first bytes.

    `declared` is the name in its frontmatter, `base` the folder that its root belongs to: the home folder for a `user`
    skill, else one of the project. `problem` says why it could not be read, `broken` is a broken link to it.
    """

    real_path: str
    paths: tuple[str, ...]
    head: bytes
    size: int
    kind: Literal["project", "user"] = "project"
    base: str = ""
    declared: str = ""
    problem: str = ""
    broken: str = ""

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
        """The first bytes and the size: files with the same value are taken to have the same text."""
        return self.head, self.size

    def parsed(self) -> ParsedFrontmatter:
        """Parse the frontmatter without the peculiarities of any host."""
        return parse(self.head, whole=len(self.head) >= self.size)


class HostState(NamedTuple):
    """The catalog of one host, indexed for questions about single paths.

    `entered` are the roots it reads, `found` everything discovered there, `below` the prefix of every path in a root,
    `switched` the effect of its settings on a skill by path.
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
    text: CatalogText
    cut: frozenset[str]
    dropped: frozenset[str]
    below: tuple[str, ...]
    entered: Roots
    found: Sequence[Found]
    switched: Mapping[str, SettingEffect]


class Survey(NamedTuple):
    """The result of one scan: every skill file by each of its paths, and the state of every requested host."""

    environment: Environment
    skill_files: tuple[SkillFile, ...]
    by_path: Mapping[str, SkillFile]
    states: Mapping[str, HostState]
    documents: Documents
    bodies: dict[str, Finding | None]
    unseen: tuple[Diagnostic, ...]

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


def take_survey(
    environment: Environment, hosts: Sequence[str], *, path: str | None = None, progress: TextIO | None = None
) -> Survey:
    """Scan all roots and build the catalogs of these hosts; `path` adds a file that may be outside every root."""
    return _survey(environment, hosts, _roots_of_all(environment), None, path, progress)


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
) -> Survey:
    heads: Heads = {}
    documents: Documents = {}
    skill_files, unseen = _census(resolved.values(), heads, only)
    if path is not None and (named := skill_file_at(path)) is not None and named.real_path not in skill_files:
        skill_files[named.real_path] = named._replace(kind=_kind_at(named.path, environment))
    # Most hosts parse most files without peculiarities.
    for real_path, skill_file in skill_files.items():
        document = skill_file.parsed()
        documents[real_path, DEFAULT_OPTIONS] = document
        if isinstance(name := document.fields.get("name"), str):
            skill_files[real_path] = skill_file._replace(declared=name)
    states = {}
    for name in watched(hosts, "Checking hosts", progress, len(hosts)):
        # A host that requires trust does not read an untrusted folder: skills in it take no name from others.
        entered = resolved[name]._replace(roots=tuple(root for root in resolved[name].roots if root.trusted))
        found = list(discover(entered.roots, HOSTS[name], repository=entered.repository, heads=heads, only=only))
        states[name] = state_of(HOSTS[name], resolved[name].roots, entered, found, documents)
    ordered = sorted(skill_files.values(), key=lambda skill_file: (skill_file.folder, skill_file.path))
    by_path = {path: skill_file for skill_file in ordered for path in (*skill_file.paths, skill_file.real_path)}
    return Survey(environment, tuple(ordered), by_path, states, documents, {}, tuple(unseen))


def _kind_at(path: str, environment: Environment) -> Literal["project", "user"]:
    """Return the kind of a file outside every root: `user` in a hidden folder at home, unless it contains cwd."""
    home = f"{environment.home}/" if environment.home else ""
    if not home or not path.startswith(f"{home}."):
        return "project"
    top = home + path[len(home) :].split("/")[0]
    return "project" if files.is_inside(environment.cwd, top) else "user"


def state_of(
    profile: Profile, roots: tuple[Root, ...], entered: Roots, found: Sequence[Found], documents: Documents
) -> HostState:
    """Build the state of a host from what was discovered in the roots that it enters."""
    catalog = build(found, entered, profile, Settings(), documents=documents)
    by_name: dict[str, list[CatalogSkill]] = {}
    for skill in catalog.skills:
        by_name.setdefault(skill.name, []).append(skill)
    losers: dict[str, list[str]] = {}
    for loser in catalog.shadowed:
        if not loser.same_file:
            losers.setdefault(loser.by, []).append(loser.path)
    switched = _switched(catalog, entered)
    hidden = ("disabled-by-config", "hidden-from-model")
    left = [one for one in catalog.skills if one.path not in switched or switched[one.path].verdict not in hidden]
    text = catalog_text(left, profile, Settings())
    shown = visible_to_model(left)
    return HostState(
        profile,
        roots,
        catalog,
        {skill.real_path: skill for skill in catalog.skills},
        by_name,
        {error.path: error for error in (*catalog.warnings, *catalog.errors)},
        {error.path: error for error in (*catalog.warnings, *catalog.errors) if error.rule in _ABOUT_FOLDERS},
        {loser.path: loser for loser in catalog.shadowed if not loser.same_file},
        losers,
        {left_out.path: left_out for left_out in catalog.filtered},
        text,
        frozenset(text.cut),
        frozenset(skill.path for skill in shown[len(shown) - text.omitted :]),
        tuple(f"{root.path}/" for root in roots),
        entered,
        found,
        switched,
    )


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


def _census(
    resolved: Iterable[Roots], heads: Heads, only: Only | None
) -> tuple[dict[str, SkillFile], list[Diagnostic]]:
    """Find every SKILL.md and near miss below any root of any host, by real path, and what could not be read."""
    roots: dict[str, Root] = {}
    for host_roots in resolved:
        for root in host_roots.roots:
            open_root = root._replace(links="follow", hidden="enter", loose_files="none")
            roots.setdefault(root.path, open_root)
    found: dict[str, SkillFile] = {}
    folders: set[str] = set()
    unseen: list[Diagnostic] = []
    ordered = list(roots.values())
    for item in discover(ordered, _EVERYTHING, repository="/", heads=heads, only=only):
        if isinstance(item, Candidate):
            root = ordered[item.root]
            kind: Literal["project", "user"] = "user" if root.kind == "user" else "project"
            skill_file = SkillFile(item.real_path, (item.path,), item.head, item.size, kind, base_of(root))
            found[item.real_path] = skill_file
            folders.add(os.path.dirname(item.path))
        elif isinstance(item, Repeat):
            known = found[item.real_path]
            found[item.real_path] = known._replace(paths=(*known.paths, item.path))
        elif isinstance(item, Diagnostic):
            if _is_meant(item, folders) and (seen := skill_file_at(item.path)) is not None:
                known = found.setdefault(seen.real_path, seen)
                if seen.broken and known is not seen:
                    found[seen.real_path] = known._replace(paths=(*known.paths, *seen.paths))
            elif item.rule in ("walk-limit", "unreadable", "root-unreadable"):
                unseen.append(item._replace(path=item.path.removesuffix(f"/{SKILL_FILE}")))
    return found, list(dict.fromkeys(unseen))


def base_of(root: Root) -> str:
    """Return the folder that a root belongs to: its path without the label."""
    return root.path.removesuffix(f"/{root.label}")


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
