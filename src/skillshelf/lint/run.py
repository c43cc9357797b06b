"""Check the SKILL.md files at some paths, or in the roots of a shelf, and return a report."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TextIO

from skillshelf.catalog.build import build
from skillshelf.catalog.discovery import NEAR_MISSES, SKILL_FILE, Found, discover, probe, read_skill_head
from skillshelf.catalog.document import ParsedFrontmatter, parse, parse_options
from skillshelf.catalog.facts import Facts
from skillshelf.catalog.rules import name_of, placed
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.builtin_profiles import author_severities
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.console import watched
from skillshelf.core.disk_writes import replace_file, why_not_replaced
from skillshelf.core.environment import find_repository
from skillshelf.core.limits import CHECKED_BYTES, CHECKED_DIRECTORIES, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate, Catalog, Diagnostic, Filtered, Finding, Root, Severity
from skillshelf.errors import ConfigurationError, ResourceNotFound, SkillFileNotFound
from skillshelf.lint.checks import FileFinding, Mention, page_of, run_checks, skills_named
from skillshelf.lint.fix import (
    CheckedDocument,
    FixInput,
    FixResult,
    check_document,
    fix_text,
    is_valid_name,
    unified_diff,
    why_not_fixed,
)
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
    "file_problems",
    "in_paths",
    "in_roots",
]


class Target(NamedTuple):
    """A SKILL.md to check: its path as found, its real path, and the name of the folder in which it was found.

    `data` is the whole file, if it was kept when it was found.
    """

    path: str
    real_path: str
    directory: str
    description_required: bool = True
    data: bytes | None = None


class Targets(NamedTuple):
    """The files to check, the problems of the search for them, the folders that may be written to, and the shelf.

    `catalog` and `facts` are what the search made of the kept files of the shelf's own roots.
    """

    found: tuple[Target, ...]
    problems: tuple[Diagnostic, ...]
    writable: tuple[str, ...]
    shelf: Shelf
    catalog: Catalog | None
    facts: Facts


class _WholeFiles:
    """Read whole files until they are too many to keep; of the others only the frontmatter."""

    def __init__(self) -> None:
        self._left = CHECKED_BYTES

    def __call__(self, folder: int, name: str) -> files.Head:
        if self._left <= 0:
            return read_skill_head(folder, name)
        head = files.read_whole(folder, name, limit=SKILL_FILE_BYTES)
        self._left -= head.size
        return head


def in_roots(shelf: Shelf) -> Targets:
    """Return every skill in the roots of a shelf, including those that are not in the catalog."""
    roots = resolve_roots(shelf.profile, shelf.environment, shelf.settings, trust=shelf.trust)
    read = _WholeFiles()
    found = list(discover(roots.roots, shelf.profile, repository=roots.repository, account=True, read=read))
    targets = [_target(item, roots.roots[item.root]) for item in found if isinstance(item, Candidate)]
    problems = [*roots.problems, *(item for item in found if isinstance(item, Diagnostic))]
    for item in found:
        if isinstance(item, Filtered) and item.reason in _NOT_LISTED:
            problems.append(Diagnostic(item.path, item.reason, _NOT_LISTED[item.reason]))
        if isinstance(item, Filtered) and item.reason == "too-deep":
            more, more_problems = _one_folder(os.path.dirname(item.path), shelf.profile, roots.repository, read)
            targets += more
            problems += more_problems
    facts = Facts()
    catalog = build(found, roots, shelf.profile, shelf.settings, facts=facts)
    problems += [warning for warning in catalog.warnings if warning.rule in ("name-collision", "name-confusable")]
    writable = [roots.repository, *(root.real_path for root in roots.roots if root.real_path)]
    listed = catalog if shelf.settings.enabled else None
    return Targets(_once(targets), tuple(problems), tuple(writable), shelf, listed, facts)


_NOT_LISTED = {
    "too-deep": "it is deeper than this profile searches; move it up, or raise `max_depth` in a profile of your own",
    "inside-skill": "it is inside another skill, so no agent lists it; that is right for an example",
}


def in_paths(paths: Sequence[str], shelf: Shelf) -> Targets:
    """Return every skill at or below some paths."""
    targets: list[Target] = []
    problems: list[Diagnostic] = []
    writable = []
    read = _WholeFiles()
    for given in paths:
        path = os.path.normpath(os.path.join(shelf.environment.cwd, files.from_system(given)))
        found, found_problems = _at(path, shelf.profile, read)
        if not found and not found_problems:
            raise SkillFileNotFound(path)
        targets += found
        problems += found_problems
        writable.append(files.real_path(path))
    return Targets(_once(targets), tuple(dict.fromkeys(problems)), tuple(writable), shelf, None, Facts())


Findings = tuple[list[Target], list[Diagnostic]]


def _at(path: str, profile: Profile, read: _WholeFiles) -> Findings:
    """Return the skills at one path, which may be a folder of skills, a skill, or a SKILL.md."""
    kind = files.kind_at(files.real_path(path)) if "\0" not in path else None
    name = os.path.basename(path)
    if kind is None and files.kind_at(path) is None:
        raise ResourceNotFound(path)
    if kind == "folder" and name != SKILL_FILE:
        return _folder(path, profile, read)
    if name == SKILL_FILE:
        folder = os.path.dirname(path)
        return _one_folder(folder, profile, find_repository(files.real_path(folder), profile.markers), read)
    if name.lower() in NEAR_MISSES:
        return [], [Diagnostic(path, "file-name", f"{name!r} is not read; rename it to {SKILL_FILE}")]
    raise ConfigurationError(f"{path} is not a {SKILL_FILE}; name a skill, its {SKILL_FILE}, or a folder of skills")


def _folder(path: str, profile: Profile, read: _WholeFiles) -> Findings:
    real = files.real_path(path)
    anywhere = profile._replace(
        max_depth=None, root_file="skill", below_skill="enter", hidden="enter", max_directories=CHECKED_DIRECTORIES
    )
    repository = find_repository(real, profile.markers) or real
    return _split(discover([_root(path)], anywhere, repository=repository, read=read), _root(path))


def _one_folder(folder: str, profile: Profile, repository: str | None, read: _WholeFiles) -> Findings:
    root = _root(folder)
    return _split(probe(root, profile, repository=repository or root.real_path or folder, read=read), root)


def _root(path: str) -> Root:
    """Return a root for a folder of the command line."""
    return Root(path, files.real_path(path), "custom", "custom", "custom", "contained", trusted=True)


def _split(found: Iterable[Found], root: Root) -> Findings:
    items = [*found]
    targets = [_target(item, root) for item in items if isinstance(item, Candidate)]
    return targets, [item for item in items if isinstance(item, Diagnostic)]


def _target(candidate: Candidate, root: Root) -> Target:
    directory = os.path.basename(os.path.dirname(candidate.path))
    data = candidate.head if len(candidate.head) == candidate.size else None
    return Target(candidate.path, candidate.real_path, directory, root.description_required, data)


def _once(targets: Iterable[Target]) -> tuple[Target, ...]:
    """Return the targets sorted by path, each real file once; its real path is preferred to a link."""
    ordered = sorted(targets, key=lambda target: (target.path != target.real_path, target.path), reverse=True)
    return tuple(sorted({target.real_path: target for target in ordered}.values()))


Level = Literal["error", "warning", "info"]
Mode = Literal["look", "diff", "fix"]
_LEVELS: Mapping[Severity, Level] = {"reject": "error", "warn": "warning", "info": "info"}

# With these findings of the parser the fields could be read anyway; with any other there are no fields to check.
_READABLE = frozenset({"bom", "crlf", "fence-blanks", "yaml-colon", "yaml-brackets", "yaml-tab"})


class CheckFinding(NamedTuple):
    """A finding of a rule in a file; `fix` is the text that `--fix` would write on that line."""

    path: str
    line: int | None
    column: int | None
    rule: str
    severity: Level
    message: str
    fix: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self._asdict()


class Change(NamedTuple):
    """The fix of one file: its diff if requested, the number of findings it resolves, and why it cannot be written."""

    path: str
    diff: tuple[str, ...]
    findings: int
    refusal: str | None = None


class Report(NamedTuple):
    """The result of a check; `fixed` is the number of findings that were fixed on disk."""

    checked: int
    findings: tuple[CheckFinding, ...]
    fixed: int
    changes: tuple[Change, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Return whether there are no errors and no warnings."""
        return all(finding.severity == "info" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"checked": self.checked, "findings": findings, "fixed": self.fixed}


class _CheckedFile(NamedTuple):
    """The result for one SKILL.md."""

    target: Target
    name: str
    mentions: tuple[Mention, ...]
    findings: tuple[CheckFinding, ...]
    change: Change | None


def check_targets(targets: Targets, profile: Profile, *, mode: Mode = "look", progress: TextIO | None = None) -> Report:
    """Check every target; the mode `fix` changes files, `diff` only shows the changes."""
    severities = author_severities(profile)
    found = [finding for problem in targets.problems for finding in _with_severity(_as_finding(problem), severities)]
    checked = []
    with _OpenFolders() as folders:
        for target in watched(targets.found, "Checking skills", progress, len(targets.found)):
            try:
                checked.append(_check_file(target, targets, profile, mode, folders))
            except Exception as error:
                # One file must never prevent the report, not even through an error in skillshelf.
                message = f"{type(error).__name__}: {error}"
                found += _with_severity(CheckFinding(target.path, None, None, "internal", "error", message), severities)
    found += [finding for one in checked for finding in one.findings]
    # Names may be others after a fix.
    catalog = targets.catalog if mode != "fix" else None
    for problem in _mention_findings(checked, targets, catalog):
        found += _with_severity(problem, severities)
    changes = tuple(one.change for one in checked if one.change)
    fixed = sum(change.findings for change in changes if change.refusal is None) if mode == "fix" else 0
    return Report(len(targets.found), tuple(sorted(dict.fromkeys(found), key=_order)), fixed, changes)


def file_problems(targets: Iterable[Target], profile: Profile) -> Iterator[tuple[CheckFinding, ...]]:
    """Yield the errors and warnings of each file by itself; advice, and what other skills decide, is left out."""
    severities = author_severities(profile)
    with _OpenFolders() as folders:
        for target in targets:
            try:
                found = _findings_in(target, profile, folders)
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                found = _with_severity(CheckFinding(target.path, None, None, "internal", "error", message), severities)
            problems = dict.fromkeys(finding for finding in found if finding.severity != "info")
            yield tuple(sorted(problems, key=_order))


def _findings_in(target: Target, profile: Profile, folders: "_OpenFolders") -> Sequence[CheckFinding]:
    try:
        with folders.folder(os.path.dirname(target.real_path)) as skill:
            data = _bytes(skill, target)
            document = parse(data, whole=True, options=parse_options(profile))
            checked = check_document(document, target.directory, profile)
            return _check_page(target, data, checked, skill, profile, {}).findings
    except OSError as error:
        return _unreadable(target, error, profile).findings


_RANKS = {"portability-safeguard": 0, "portability-field": 2}
"""Rules whose findings come before or after those that are sorted by line."""


def _order(finding: CheckFinding) -> tuple[str, int, int, int, str, str]:
    rank = _RANKS.get(finding.rule, 1)
    if rank != 1:
        # These keep the order of their check: the most dangerous first.
        return (finding.path, rank, 0, 0, "", "")
    return (finding.path, rank, finding.line or 0, finding.column or 0, finding.rule, finding.message)


def _as_finding(problem: Diagnostic) -> CheckFinding:
    column = None if problem.line is None else 1
    return CheckFinding(problem.path, problem.line, column, problem.rule, "error", problem.message)


def _with_severity(finding: CheckFinding, severities: Mapping[str, Severity]) -> list[CheckFinding]:
    severity = severities[finding.rule]
    return [] if severity == "off" else [finding._replace(severity=_LEVELS[severity])]


# One file -----------------------------------------------------------------------------------------


class _OpenFolders:
    """The folder above the skill that was checked last, which stays open: the next skill is nearly always beside it."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._folder: files.Folder | None = None

    def __enter__(self) -> "_OpenFolders":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            self._folder.__exit__()

    def folder(self, path: str) -> files.Folder:
        """Open a folder by its real path, no component of which may be a link."""
        above, _, name = path.rpartition("/")
        if not name:
            return files.Folder(path)
        if self._path != above or self._folder is None:
            folder = files.Folder(above)
            self.__exit__()
            self._path, self._folder = above, folder
        return files.Folder(path, parent=self._folder)


def _check_file(target: Target, targets: Targets, profile: Profile, mode: Mode, folders: _OpenFolders) -> _CheckedFile:
    try:
        skill = folders.folder(os.path.dirname(target.real_path))
    except OSError as error:
        return _unreadable(target, error, profile)
    with skill:
        try:
            data = _bytes(skill, target) if target.data is None else target.data
        except OSError as error:
            return _unreadable(target, error, profile)
        checked = _checked_document(target, targets, data, profile)
        result = FixResult(data, {})
        if checked.may_be_fixed:
            text = FixInput(data, target.directory, profile, _name_source(target, skill, profile))
            result = fix_text(text, checked=checked)
        if result.data == data:
            return _check_page(target, data, checked, skill, profile, result.lines)
        refusal = _write(target, targets, data, result.data) if mode == "fix" else _why_not_writable(target, targets)
        diff = () if mode == "look" else tuple(unified_diff(data, result.data, target.path.lstrip("/")))
        change = Change(target.path, diff, len(result.lines), refusal)
        if mode == "fix" and refusal is None:
            data, result = result.data, result._replace(lines={})
            checked = _checked_document(target._replace(data=None), targets, data, profile)
        return _check_page(target, data, checked, skill, profile, result.lines)._replace(change=change)


def _unreadable(target: Target, error: OSError, profile: Profile) -> _CheckedFile:
    problem = _as_finding(Diagnostic(target.path, "unreadable", _reason(error)))
    return _CheckedFile(target, "", (), tuple(_with_severity(problem, author_severities(profile))), None)


def _bytes(skill: files.Folder, target: Target) -> bytes:
    return skill.read([os.path.basename(target.real_path)], limit=SKILL_FILE_BYTES).data


def _checked_document(target: Target, targets: Targets, data: bytes, profile: Profile) -> CheckedDocument:
    """Return what the rules say of these bytes; they were parsed already if they are those that were found."""
    options = parse_options(profile)
    known: ParsedFrontmatter | None = None
    if target.data is not None:
        known = targets.facts.parsed_before(target.real_path, options)
    document = parse(data, whole=True, options=options) if known is None else known
    return check_document(document, target.directory, profile)


def _check_page(
    target: Target,
    data: bytes,
    checked: CheckedDocument,
    skill: files.Folder,
    profile: Profile,
    fixes: Mapping[tuple[str, int], str],
) -> _CheckedFile:
    severities = author_severities(profile)
    document = checked.document
    page = page_of(data, document, directory=target.directory, folder=skill)
    findings = [FileFinding("SKILL.md", finding) for finding in _about_fields(checked, target)]
    if page.body != data:
        findings += run_checks(page)
    found = []
    for file, finding in findings:
        severity = severities[finding.rule]
        if severity == "off":
            continue
        finding, path, fix = placed(finding, document), target.path, None
        if file != "SKILL.md":
            path = os.path.join(os.path.dirname(target.path), file)
        else:
            fix = fixes.get((finding.rule, finding.line or 1))
            if reason := why_not_fixed(finding.rule, data):
                finding = finding._replace(message=f"{finding.message}; {reason}")
        _, message, line, column = finding
        found.append(CheckFinding(path, line, column or 1, finding.rule, _LEVELS[severity], message, fix))
    mentions = [mention._replace(line=mention.line + page.start - 1) for mention in skills_named(page.text)]
    name = name_of(document.fields, target.directory, profile)
    return _CheckedFile(target, name, tuple(mentions), tuple(found), None)


def _about_fields(checked: CheckedDocument, target: Target) -> Sequence[Finding]:
    found = checked.document.findings
    if any(finding.rule not in _READABLE for finding in found):
        return found
    needed = [f for f in checked.findings if target.description_required or f.rule != "description-missing"]
    return [*needed, *checked.portability]


def _name_source(target: Target, skill: files.Folder, profile: Profile) -> str | None:
    """Return the folder's name if the skill may take it.

    It may not if the folder is named by a link, or is a whole repository: whoever clones one chooses its name.
    """
    if any(skill.kind(marker) for marker in profile.markers):
        return None
    is_own = os.path.basename(os.path.dirname(target.real_path)) == target.directory
    return target.directory if is_own and is_valid_name(target.directory, profile) else None


def _write(target: Target, targets: Targets, before: bytes, after: bytes) -> str | None:
    """Replace the file with the fixed bytes, or return the reason why not."""
    try:
        if (reason := _why_not_writable(target, targets)) is not None:
            return reason
        # By its whole path, as it is replaced.
        with files.Folder(os.path.dirname(target.real_path)) as folder:
            if _bytes(folder, target) != before:
                return "it changed meanwhile; check it again"
        replace_file(target.real_path, after)
    except OSError as error:
        return _reason(error)
    return None


def _why_not_writable(target: Target, targets: Targets) -> str | None:
    """Return the reason why a file must not be changed."""
    if not any(files.is_inside(target.real_path, folder) for folder in targets.writable):
        return f"it is a link to {target.real_path}, outside the checked folders; check that path itself"
    try:
        return why_not_replaced(target.real_path)
    except OSError as error:
        return _reason(error)


def _reason(error: OSError) -> str:
    if isinstance(error, files.NotRegular):
        return f"it is a {error.kind}, not a file"
    if isinstance(error, files.TooLarge):
        return f"it has {error.size:,} bytes, more than are read"
    return (error.strerror or type(error).__name__).lower()


# Names of other skills ----------------------------------------------------------------------------


def _mention_findings(
    checked: Sequence[_CheckedFile], targets: Targets, catalog: Catalog | None
) -> Iterator[CheckFinding]:
    """Yield findings about bodies that name unknown skills, or name each other in a cycle."""
    here = {name for one in checked for name in (one.name, one.target.directory)}
    unknown = [
        (one.target.path, mention)
        for one in checked
        for mention in one.mentions
        if mention.target not in here and not _is_beside(one.target, mention.target)
    ]
    listed = (
        {skill.name for skill in (targets.shelf.catalog if catalog is None else catalog).skills} if unknown else set()
    )
    for path, mention in unknown:
        if mention.target not in listed:
            message = f"there is no skill {mention.target!r} here; correct the name, or say where it comes from"
            yield CheckFinding(path, mention.line, mention.column, "skill-unknown", "info", message)
    yield from _cycles(checked)


def _is_beside(target: Target, name: str) -> bool:
    folder = os.path.dirname(os.path.dirname(target.path))
    return files.kind_at(f"{folder}/{name}/{SKILL_FILE}") is not None


def _cycles(checked: Sequence[_CheckedFile]) -> Iterator[CheckFinding]:
    by_name = {one.name: one for one in sorted(checked, key=lambda one: one.target.path, reverse=True)}
    edges = {
        name: {mention.target for mention in one.mentions if mention.target in by_name and mention.target != name}
        for name, one in by_name.items()
    }
    while edges := _pruned(edges):
        cycle = _cycle_from(min(edges), edges)
        first = by_name[cycle[0]]
        mention = next(mention for mention in first.mentions if mention.target == cycle[1])
        message = f"skills refer to each other in a cycle: {' -> '.join(cycle)}"
        yield CheckFinding(first.target.path, mention.line, mention.column, "skill-cycle", "info", message)
        edges = {name: targets for name, targets in edges.items() if name not in cycle}


def _pruned(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the names that are in a cycle or lead to one: names without successors are removed until none is left."""
    left = dict(edges)
    while True:
        kept = {name: {target for target in targets if target in left} for name, targets in left.items()}
        kept = {name: targets for name, targets in kept.items() if targets}
        if len(kept) == len(left):
            return kept
        left = kept


def _cycle_from(start: str, edges: Mapping[str, set[str]]) -> list[str]:
    """Return a cycle that can be reached from a name; it begins and ends with its first name."""
    path = [start]
    while (following := min(edges[path[-1]])) not in path:
        path.append(following)
    cycle = path[path.index(following) :]
    first = cycle.index(min(cycle))
    return [*cycle[first:], *cycle[:first], cycle[first]]
