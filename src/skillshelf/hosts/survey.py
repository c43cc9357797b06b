"""A place and hosts to a survey: every SKILL.md that any host could mean, and what each host makes of the place.

The disk is read once. Every file's head is kept, and parsed once for all hosts that take it apart alike; each
host then goes through the same stages as a listing, with its own profile.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TextIO

from skillshelf.catalog.build import build
from skillshelf.catalog.build_context import Documents
from skillshelf.catalog.discovery import SKILL_FILE, Found, Repeat, discover
from skillshelf.catalog.document import DEFAULT_OPTIONS, parse
from skillshelf.catalog.host_settings import Off, switched_off
from skillshelf.catalog.prompt import CatalogText, catalog_text, visible_to_model
from skillshelf.catalog.search_roots import Roots, resolve_roots
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.console import watched
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
    """One file that is a skill or was meant as one: where it really is, every way to it, and its first bytes.

    `declared` is the name it gives itself, `base` the folder whose skills it is among: the home folder for a `user`'s,
    else one of the project. `problem` is why it could not be read, `broken` a link on the way that leads nowhere.
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
        """The way to show: the file's own place if a root leads there."""
        return self.real_path if self.real_path in self.paths else self.paths[0]

    @property
    def folder(self) -> str:
        """The name of the folder the file lies in."""
        return os.path.basename(os.path.dirname(self.path))

    @property
    def file_name(self) -> str:
        """How the file is called where it was found."""
        return os.path.basename(self.paths[0])


class HostState(NamedTuple):
    """What one host makes of a place, ready to be asked about a path; `below` is how every path in a root begins.

    `entered` are the roots it reads, and `found` what it met there, from which all the rest was made. `switched` is
    what its settings do to a skill, by path.
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
    switched: Mapping[str, Off]


class Survey(NamedTuple):
    """Everything one look at the disk gave, through the eyes of every host asked; `by_path` knows every way."""

    environment: Environment
    skill_files: tuple[SkillFile, ...]
    by_path: Mapping[str, SkillFile]
    states: Mapping[str, HostState]
    documents: Documents
    bodies: dict[str, Finding | None]
    unseen: tuple[Diagnostic, ...]


def take_survey(
    environment: Environment, hosts: Sequence[str], *, path: str | None = None, progress: TextIO | None = None
) -> Survey:
    """Look at a place as these hosts do; `path` adds a file that may lie outside every root."""
    return _survey(environment, hosts, _roots_of_all(environment), None, path, progress)


def survey_one(environment: Environment, hosts: Sequence[str], path: str, rivals: Iterable[str] = ()) -> Survey:
    """Look at one skill only, and at those that have its folder's name or are known to have its name.

    So verdicts on one of thousands are there at once. They leave open what only all skills together tell: budgets,
    limits of a walk, and a rival that nobody knows of.
    """
    resolved = _roots_of_all(environment)
    folder = os.path.basename(os.path.dirname(path))
    only: dict[str, set[str]] = {}
    for root in {root.path for roots in resolved.values() for root in roots.roots}:
        only.setdefault(root, set()).add(folder)
        for file in (path, *rivals):
            if file.startswith(f"{root}/"):
                _lead_to(file, root, only)
    return _survey(environment, hosts, resolved, only, path, None)


def _lead_to(file: str, root: str, only: dict[str, set[str]]) -> None:
    """Add every step from a root to a file."""
    here = root
    for name in file[len(root) + 1 :].split("/"):
        only.setdefault(here, set()).add(name)
        here = f"{here}/{name}"
    only[os.path.dirname(file)].add(SKILL_FILE)


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
    # Parsed plainly first: most hosts read most files just so.
    for real_path, skill_file in skill_files.items():
        document = parse(skill_file.head, whole=len(skill_file.head) >= skill_file.size)
        documents[real_path, DEFAULT_OPTIONS] = document
        if isinstance(name := document.fields.get("name"), str):
            skill_files[real_path] = skill_file._replace(declared=name)
    asked = watched(hosts, "Asking hosts", progress, len(hosts))
    states = {name: _look(HOSTS[name], resolved[name], heads, documents, only) for name in asked}
    ordered = sorted(skill_files.values(), key=lambda skill_file: (skill_file.folder, skill_file.path))
    by_path = {path: skill_file for skill_file in ordered for path in (*skill_file.paths, skill_file.real_path)}
    return Survey(environment, tuple(ordered), by_path, states, documents, {}, tuple(unseen))


def _kind_at(path: str, environment: Environment) -> Literal["project", "user"]:
    """Whose a file is that lies in no root: the user's in a hidden folder at home, unless the work is done there."""
    home = f"{environment.home}/" if environment.home else ""
    if not home or not path.startswith(f"{home}."):
        return "project"
    top = home + path[len(home) :].split("/")[0]
    return "project" if files.is_inside(environment.cwd, top) else "user"


def _look(profile: Profile, resolved: Roots, heads: Heads, documents: Documents, only: Only | None) -> HostState:
    # A host that asks for trust does not read a folder without it: what lies there takes no name from anybody.
    entered = resolved._replace(roots=tuple(root for root in resolved.roots if root.trusted))
    found = list(discover(entered.roots, profile, repository=entered.repository, heads=heads, only=only))
    return state_of(profile, resolved.roots, entered, found, documents)


def state_of(
    profile: Profile, roots: tuple[Root, ...], entered: Roots, found: Sequence[Found], documents: Documents
) -> HostState:
    """What a host makes of what it found in the roots that it entered."""
    catalog = build(found, entered, profile, Settings(), documents=documents)
    by_name: dict[str, list[CatalogSkill]] = {}
    for skill in catalog.skills:
        by_name.setdefault(skill.name, []).append(skill)
    losers: dict[str, list[str]] = {}
    for loser in catalog.shadowed:
        if not loser.same_file:
            losers.setdefault(loser.by, []).append(loser.path)
    switched = _switched(catalog, entered)
    left = [
        skill for skill in catalog.skills if skill.path not in switched or switched[skill.path].verdict not in _KEPT
    ]
    text = catalog_text(left, profile, Settings())
    told = visible_to_model(left)
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
        frozenset(skill.path for skill in told[len(told) - text.omitted :]),
        tuple(f"{root.path}/" for root in roots),
        entered,
        found,
        switched,
    )


_KEPT = ("disabled-by-config", "hidden-from-model")
"""What a setting does to a skill that its model is not told of."""


def _switched(catalog: Catalog, entered: Roots) -> dict[str, Off]:
    """What the settings of a host do to the skills that it found."""
    for problem in entered.problems:
        if problem.rule == "settings-unreadable":
            # Such a host does not even start: what it would have found nobody sees.
            return {skill.path: Off("unknown", problem.message) for skill in catalog.skills}
    if not entered.switches:
        return {}
    effects = ((skill.path, switched_off(skill.name, skill.real_path, entered.switches)) for skill in catalog.skills)
    return {path: off for path, off in effects if off is not None}


_BROKEN = ("link-broken", "link-loop")
_ABOUT_FOLDERS = ("link-skipped", "unreadable", *_BROKEN)

# Every file that could be meant -------------------------------------------------------------------

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
"""A walk that leaves nothing out, because some host may look there."""


def _census(
    resolved: Iterable[Roots], heads: Heads, only: Only | None
) -> tuple[dict[str, SkillFile], list[Diagnostic]]:
    """Every SKILL.md and every near miss below any root of any host, by real path, and where nobody could look."""
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
    """The folder a root belongs to: what stands before the words that make it a root."""
    return root.path.removesuffix(f"/{root.label}")


def is_broken(root: Root) -> bool:
    """Whether something stands where a root should be that cannot be entered: a link to nothing, or a file."""
    return root.exists and root.real_path is None


def _is_meant(problem: Diagnostic, folders: Collection[str]) -> bool:
    """Whether a problem is about what somebody may ask about: a file, or a link that was to lead to a skill."""
    if problem.rule == "file-name" or os.path.basename(problem.path) == SKILL_FILE:
        return True
    if problem.rule not in _BROKEN or problem.path.endswith(".md"):
        return False
    if files.kind_at(files.real_path(problem.path)) not in (None, "link"):
        # A link back to a folder above leads somewhere.
        return False
    # A link that leads nowhere inside a skill is one of its files.
    above = problem.path
    while len(above) > 1:
        above = os.path.dirname(above)
        if above in folders:
            return False
    return True


def skill_file_at(path: str) -> SkillFile | None:
    """The file at a path, or the SKILL.md of the folder at it; None where there is none."""
    path = path.rstrip("/") or "/"
    if files.kind_at(files.real_path(path)) == "folder":
        path = f"{path}/{SKILL_FILE}"
    kind = files.kind_at(path)
    if kind is None:
        return None
    real = files.real_path(path)
    if kind == "link" and files.kind_at(real) in (None, "link"):
        return _leading_nowhere(path, real)
    problem = ""
    try:
        data = files.read_file(real, limit=SKILL_FILE_BYTES, links="never")
    except OSError as error:
        data, problem = None, (error.strerror or str(error)).lower()
    return SkillFile(real, (path,), data or b"", len(data or b""), problem=problem)


def _leading_nowhere(link: str, target: str) -> SkillFile:
    """What a link was to lead to: a SKILL.md, or else a folder with one."""
    below = "" if link.endswith(".md") else f"/{SKILL_FILE}"
    said = f"the link leads nowhere: target {files.link_target(link)}"
    return SkillFile(target + below, (link + below,), b"", 0, problem=said, broken=link)
