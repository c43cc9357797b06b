"""Paths, or the roots of a shelf, to the SKILL.md files a check is about."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TextIO

from skillshelf.catalog.build import build
from skillshelf.catalog.discovery import NEAR_MISSES, SKILL_FILE, Found, discover, probe
from skillshelf.catalog.document import Document, form_of, parse
from skillshelf.catalog.rules import check, name_of, placed
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.profile import Profile
from skillshelf.config.systems import severities_for_authors
from skillshelf.core import files
from skillshelf.core.atomic_write import replace_file, why_not_replaced
from skillshelf.core.console import watched
from skillshelf.core.environment import find_repository
from skillshelf.core.limits import CHECKED_DIRECTORIES, SKILL_FILE_BYTES
from skillshelf.core.values import Candidate, Diagnostic, Filtered, Finding, Root, Severity
from skillshelf.errors import ConfigurationError, ResourceNotFound, SkillFileNotFound
from skillshelf.lint.checks import Mention, Note, advise, page_of, portability, skills_named
from skillshelf.lint.fix import Text, is_valid_name, repair, unified_diff, why_left
from skillshelf.shelf import Shelf

__all__ = [
    "Change",
    "CheckFinding",
    "Level",
    "Mode",
    "Report",
    "Target",
    "Targets",
    "check_targets",
    "in_paths",
    "in_roots",
    "is_beside",
]


class Target(NamedTuple):
    """A SKILL.md to check: as found, where it really is, and the name of the folder it was found in."""

    path: str
    real_path: str
    directory: str
    description_required: bool = True


class Targets(NamedTuple):
    """What to check, what was wrong on the way, where files may be written, and the shelf around it."""

    found: tuple[Target, ...]
    problems: tuple[Diagnostic, ...]
    writable: tuple[str, ...]
    shelf: Shelf


def is_beside(target: Target, name: str) -> bool:
    """Whether a skill of that name lies beside another one."""
    folder = os.path.dirname(os.path.dirname(target.path))
    return files.kind_at(f"{folder}/{name}/{SKILL_FILE}") is not None


def in_roots(shelf: Shelf) -> Targets:
    """Every skill that the roots of a shelf hold, also those that are in no catalog."""
    roots = resolve_roots(shelf.profile, shelf.environment, shelf.settings, trust=shelf.trust)
    found = list(discover(roots.roots, shelf.profile, repository=roots.repository, account=True))
    targets = [_target(item, roots.roots[item.root]) for item in found if isinstance(item, Candidate)]
    problems = [*roots.problems, *(item for item in found if isinstance(item, Diagnostic))]
    for item in found:
        if isinstance(item, Filtered) and item.reason in _LEFT_OUT:
            problems.append(Diagnostic(item.path, item.reason, _LEFT_OUT[item.reason]))
        if isinstance(item, Filtered) and item.reason == "too-deep":
            more, trouble = _one_folder(os.path.dirname(item.path), shelf.profile, roots.repository)
            targets += more
            problems += trouble
    catalog = build(found, roots, shelf.profile, shelf.settings)
    problems += [warning for warning in catalog.warnings if warning.rule == "name-collision"]
    writable = [roots.repository, *(root.real_path for root in roots.roots if root.real_path)]
    return Targets(_once(targets), tuple(problems), tuple(writable), shelf)


_LEFT_OUT = {
    "too-deep": "it lies deeper than this profile looks; move it up, or raise `max_depth` in a profile of your own",
    "inside-skill": "it lies inside another skill, so no agent lists it; that is right for an example",
}


def in_paths(paths: Sequence[str], shelf: Shelf) -> Targets:
    """Every skill at or below the paths that somebody named."""
    targets: list[Target] = []
    problems: list[Diagnostic] = []
    writable = []
    for given in paths:
        path = os.path.normpath(os.path.join(shelf.environment.cwd, files.from_system(given)))
        found, trouble = _at(path, shelf.profile)
        if not found and not trouble:
            raise SkillFileNotFound(path)
        targets += found
        problems += trouble
        writable.append(files.real_path(path))
    return Targets(_once(targets), tuple(dict.fromkeys(problems)), tuple(writable), shelf)


Findings = tuple[list[Target], list[Diagnostic]]


def _at(path: str, profile: Profile) -> Findings:
    """The skills at one path, which may be a folder of skills, a skill, or a SKILL.md."""
    kind = files.kind_at(files.real_path(path)) if "\0" not in path else None
    name = os.path.basename(path)
    if kind is None and files.kind_at(path) is None:
        raise ResourceNotFound(path)
    if kind == "folder" and name != SKILL_FILE:
        return _folder(path, profile)
    if name == SKILL_FILE:
        folder = os.path.dirname(path)
        return _one_folder(folder, profile, find_repository(files.real_path(folder), profile.markers))
    if name.lower() in NEAR_MISSES:
        return [], [Diagnostic(path, "file-name", f"{name!r} is not read; rename it to {SKILL_FILE}")]
    raise ConfigurationError(f"{path} is no {SKILL_FILE}; name a skill, its {SKILL_FILE}, or a folder of skills")


def _folder(path: str, profile: Profile) -> Findings:
    real = files.real_path(path)
    anywhere = profile._replace(
        max_depth=None, root_file="skill", below_skill="enter", hidden="enter", max_directories=CHECKED_DIRECTORIES
    )
    repository = find_repository(real, profile.markers) or real
    return _sorted_out(discover([_root(path)], anywhere, repository=repository), _root(path))


def _one_folder(folder: str, profile: Profile, repository: str | None) -> Findings:
    root = _root(folder)
    return _sorted_out(probe(root, profile, repository=repository or root.real_path or folder), root)


def _root(path: str) -> Root:
    """A folder that somebody named, as a root."""
    return Root(path, files.real_path(path), "custom", "custom", "custom", "contained", trusted=True)


def _sorted_out(found: Iterable[Found], root: Root) -> Findings:
    targets: list[Target] = []
    problems: list[Diagnostic] = []
    for item in found:
        if isinstance(item, Candidate):
            targets.append(_target(item, root))
        elif isinstance(item, Diagnostic):
            problems.append(item)
    return targets, problems


def _target(candidate: Candidate, root: Root) -> Target:
    directory = os.path.basename(os.path.dirname(candidate.path))
    return Target(candidate.path, candidate.real_path, directory, root.description_required)


def _once(targets: Iterable[Target]) -> tuple[Target, ...]:
    """The targets by path, each real file once; where it really lies comes before a link to it."""
    ordered = sorted(targets, key=lambda target: (target.path != target.real_path, target.path), reverse=True)
    return tuple(sorted({target.real_path: target for target in ordered}.values()))


Level = Literal["error", "warning", "info"]
Mode = Literal["look", "diff", "fix"]
LEVELS: Mapping[Severity, Level] = {"reject": "error", "warn": "warning", "info": "info"}

# With one of these the fields could be read all the same; with any other there are none to speak of.
_READABLE = frozenset({"bom", "crlf", "fence-blanks", "yaml-colon", "yaml-brackets", "yaml-tab"})


class CheckFinding(NamedTuple):
    """What a rule says about a file; `fix` is the text that `--fix` would put on that line."""

    path: str
    line: int | None
    column: int | None
    rule: str
    severity: Level
    message: str
    fix: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return self._asdict()


class Change(NamedTuple):
    """A repair of one file: its diff if that is wanted, how many findings it answers, and why it cannot be written."""

    path: str
    diff: tuple[str, ...]
    findings: int
    refusal: str | None = None


class Report(NamedTuple):
    """What a check gave; `fixed` counts the findings that are gone from the disk."""

    checked: int
    findings: tuple[CheckFinding, ...]
    fixed: int
    changes: tuple[Change, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing but advice is left."""
        return all(finding.severity == "info" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"checked": self.checked, "findings": findings, "fixed": self.fixed}


class _Examined(NamedTuple):
    """One SKILL.md after its check."""

    target: Target
    name: str
    mentions: tuple[Mention, ...]
    findings: tuple[CheckFinding, ...]
    change: Change | None


def check_targets(targets: Targets, profile: Profile, *, mode: Mode = "look", progress: TextIO | None = None) -> Report:
    """What the rules say about every target; `fix` repairs files, `diff` only shows how."""
    weights = severities_for_authors(profile)
    found = [finding for problem in targets.problems for finding in _weighed(_of(problem), weights)]
    examined = []
    for target in watched(targets.found, "Checking skills", progress, len(targets.found)):
        try:
            examined.append(_examine(target, targets, profile, mode))
        except Exception as error:
            # One file must never cost the report, not even by a mistake of ours.
            message = f"{type(error).__name__}: {error}"
            found += _weighed(CheckFinding(target.path, None, None, "internal", "error", message), weights)
    found += [finding for one in examined for finding in one.findings]
    for problem in _names(examined, targets):
        found += _weighed(problem, weights)
    changes = tuple(one.change for one in examined if one.change)
    fixed = sum(change.findings for change in changes if change.refusal is None) if mode == "fix" else 0
    return Report(len(targets.found), tuple(sorted(dict.fromkeys(found), key=_order)), fixed, changes)


_RANKS = {"portability-safeguard": 0, "portability-field": 2}
"""What comes before and behind the findings of a file that stand in the order of its lines."""


def _order(finding: CheckFinding) -> tuple[str, int, int, int, str, str]:
    rank = _RANKS.get(finding.rule, 1)
    if rank != 1:
        # They come from one rule each, in the order of their weight, and keep it.
        return (finding.path, rank, 0, 0, "", "")
    return (finding.path, rank, finding.line or 0, finding.column or 0, finding.rule, finding.message)


def _of(problem: Diagnostic) -> CheckFinding:
    column = None if problem.line is None else 1
    return CheckFinding(problem.path, problem.line, column, problem.rule, "error", problem.message)


def _weighed(finding: CheckFinding, weights: Mapping[str, Severity]) -> list[CheckFinding]:
    weight = weights[finding.rule]
    return [] if weight == "off" else [finding._replace(severity=LEVELS[weight])]


# One file -----------------------------------------------------------------------------------------


def _examine(target: Target, targets: Targets, profile: Profile, mode: Mode) -> _Examined:
    try:
        data = _bytes(target.real_path)
    except OSError as error:
        weights = severities_for_authors(profile)
        problem = _of(Diagnostic(target.path, "unreadable", _in_words(error)))
        return _Examined(target, "", (), tuple(_weighed(problem, weights)), None)
    repaired = repair(Text(data, target.directory, profile, _name_source(target, profile)))
    change = None
    if repaired.data != data:
        refusal = _write(target, targets, data, repaired.data) if mode == "fix" else _why_not(target, targets)
        diff = () if mode == "look" else tuple(unified_diff(data, repaired.data, target.path.lstrip("/")))
        change = Change(target.path, diff, len(repaired.lines), refusal)
        if mode == "fix" and refusal is None:
            data, repaired = repaired.data, repaired._replace(lines={})
    return _judged(target, data, profile, repaired.lines)._replace(change=change)


def _judged(target: Target, data: bytes, profile: Profile, repairs: Mapping[tuple[str, int], str]) -> _Examined:
    """What the rules and the advisers say about a file with these bytes."""
    weights = severities_for_authors(profile)
    document = parse(data, whole=True, form=form_of(profile))
    page = page_of(data, document, directory=target.directory, folder=os.path.dirname(target.real_path))
    notes = [Note("SKILL.md", finding) for finding in _about_fields(document, target, profile)]
    if page.body != data:
        notes += advise(page)
    found = []
    for note in notes:
        finding = placed(note.finding, document)
        if note.file == "SKILL.md" and (reason := why_left(finding.rule, data)):
            finding = finding._replace(message=f"{finding.message}; {reason}")
        environment = (finding.line, finding.column or 1)
        path = target.path if note.file == "SKILL.md" else os.path.join(os.path.dirname(target.path), note.file)
        fix = repairs.get((finding.rule, finding.line or 1)) if note.file == "SKILL.md" else None
        found += _weighed(CheckFinding(path, *environment, finding.rule, "error", finding.message, fix), weights)
    mentions = [mention._replace(line=mention.line + page.start - 1) for mention in skills_named(page.lines)]
    return _Examined(target, name_of(document.fields, target.directory, profile), tuple(mentions), tuple(found), None)


def _about_fields(document: Document, target: Target, profile: Profile) -> Sequence[Finding]:
    if any(finding.rule not in _READABLE for finding in document.findings):
        return document.findings
    findings = check(document, target.directory, profile)
    needed = [f for f in findings if target.description_required or f.rule != "description-missing"]
    return [*needed, *portability(document)]


def _bytes(path: str) -> bytes:
    with files.Folder(os.path.dirname(path)) as folder:
        return folder.read([os.path.basename(path)], limit=SKILL_FILE_BYTES).data


def _name_source(target: Target, profile: Profile) -> str | None:
    """The folder's name, where the name of the skill may be taken from it.

    Not where a link gave the folder its name, and not where the folder is a whole repository: that is called
    whatever the one who cloned it wanted.
    """
    folder = os.path.dirname(target.real_path)
    if any(files.kind_at(f"{folder}/{marker}") for marker in profile.markers):
        return None
    is_own = os.path.basename(folder) == target.directory
    return target.directory if is_own and is_valid_name(target.directory, profile) else None


def _write(target: Target, targets: Targets, before: bytes, after: bytes) -> str | None:
    """Put the repaired bytes in the place of the file, or say why not."""
    try:
        if (reason := _why_not(target, targets)) is not None:
            return reason
        if _bytes(target.real_path) != before:
            return "it was changed in the meantime; check it again"
        replace_file(target.real_path, after)
    except OSError as error:
        return _in_words(error)
    return None


def _why_not(target: Target, targets: Targets) -> str | None:
    """Why a file is not for us to repair."""
    if not any(files.is_inside(target.real_path, folder) for folder in targets.writable):
        return f"it is a link to {target.real_path}, outside of what is checked; check that path itself"
    try:
        return why_not_replaced(target.real_path)
    except OSError as error:
        return _in_words(error)


def _in_words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


# Names in bodies ----------------------------------------------------------------------------------


def _names(examined: Sequence[_Examined], targets: Targets) -> Iterator[CheckFinding]:
    """Which bodies name skills that are not here, and which name each other in a circle."""
    here = {name for one in examined for name in (one.name, one.target.directory)}
    strange = [
        (one.target.path, mention)
        for one in examined
        for mention in one.mentions
        if mention.target not in here and not is_beside(one.target, mention.target)
    ]
    listed = {skill.name for skill in targets.shelf.catalog.skills} if strange else set()
    for path, mention in strange:
        if mention.target not in listed:
            message = f"there is no skill {mention.target!r} here; mend the name, or say where it comes from"
            yield CheckFinding(path, mention.line, mention.column, "skill-unknown", "info", message)
    yield from _circles(examined)


def _circles(examined: Sequence[_Examined]) -> Iterator[CheckFinding]:
    by_name = {one.name: one for one in sorted(examined, key=lambda one: one.target.path, reverse=True)}
    edges = {
        name: {mention.target for mention in one.mentions if mention.target in by_name and mention.target != name}
        for name, one in by_name.items()
    }
    while edges := _pruned(edges):
        circle = _circle_from(min(edges), edges)
        first = by_name[circle[0]]
        mention = next(mention for mention in first.mentions if mention.target == circle[1])
        message = f"skills name each other in a circle: {' -> '.join(circle)}"
        yield CheckFinding(first.target.path, mention.line, mention.column, "skill-cycle", "info", message)
        edges = {name: targets for name, targets in edges.items() if name not in circle}


def _pruned(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The names that lead to another one for ever: those without a way on are taken out until none is left."""
    left = dict(edges)
    while True:
        kept = {name: {target for target in targets if target in left} for name, targets in left.items()}
        kept = {name: targets for name, targets in kept.items() if targets}
        if len(kept) == len(left):
            return kept
        left = kept


def _circle_from(start: str, edges: Mapping[str, set[str]]) -> list[str]:
    """A circle that a walk from there runs into, beginning and ending with its first name."""
    way = [start]
    while (following := min(edges[way[-1]])) not in way:
        way.append(following)
    circle = way[way.index(following) :]
    first = circle.index(min(circle))
    return [*circle[first:], *circle[:first], circle[first]]
