"""Check the SKILL.md files at some paths, or in the roots of a shelf, and return a report."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TextIO, get_args

from skillshelf.catalog.build import build
from skillshelf.catalog.discovery import NEAR_MISSES, SKILL_FILE, Found, discover, probe, read_skill_head
from skillshelf.catalog.document import ParsedFrontmatter, ParseOptions, parse, parse_options
from skillshelf.catalog.facts import Facts
from skillshelf.catalog.rules import name_of, placed
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.catalog.tree import covered_entries
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, author_severities, find_profile
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.console import watched
from skillshelf.core.disk_writes import replace_file, why_not_replaced
from skillshelf.core.environment import find_repository
from skillshelf.core.limits import CHECKED_BYTES, CHECKED_DIRECTORIES, CONFIG_BYTES, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import is_ignored as matches_ignore_pattern
from skillshelf.core.text import plural
from skillshelf.core.values import Candidate, Catalog, Diagnostic, Filtered, Finding, Root, Severity
from skillshelf.errors import ConfigurationError, ResourceNotFound, SkillFileNotFound
from skillshelf.lint.checks import FileFinding, Mention, page_of, run_checks, security_checks, skills_named
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
from skillshelf.lint.locks import lock_findings
from skillshelf.lint.security import SecurityFinding, folder_findings, unchecked
from skillshelf.lint.suppression import (
    IgnoreComment,
    RuleChoice,
    choose_rules,
    comment_findings,
    comments_in,
    may_have_comments,
    without_project,
)
from skillshelf.shelf import Shelf

__all__ = [
    "LEVELS",
    "Change",
    "CheckFinding",
    "CheckOptions",
    "Level",
    "Mode",
    "Report",
    "Target",
    "Targets",
    "check_paths",
    "check_targets",
    "file_problems",
    "in_paths",
    "in_repository",
    "in_roots",
    "is_excluded",
    "security_findings_of",
    "walked_folder",
    "without_excluded",
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

    `catalog` and `facts` are what the search made of the kept files of the shelf's own roots. `scope` are the paths
    below which everything was found, `excluded` the number of files that the configuration leaves out.
    """

    found: tuple[Target, ...]
    problems: tuple[Diagnostic, ...]
    writable: tuple[str, ...]
    shelf: Shelf
    catalog: Catalog | None
    facts: Facts
    scope: tuple[str, ...] = ()
    excluded: int = 0


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
    return _in(shelf, None)


def in_repository(shelf: Shelf, *, user: bool = False) -> Targets:
    """Return every skill in the repository, or in the working directory if that is in none.

    `user` adds the roots of the shelf that lie elsewhere, such as those of the home folder. If the home folder lies
    in the repository, no folder is walked, and all roots count.
    """
    top = walked_folder(shelf)
    return _in(shelf, top, user=user or top is None)


def walked_folder(shelf: Shelf) -> str | None:
    """Return the folder that is walked for a check without paths; None if the home folder would be walked, too."""
    home = files.real_path(shelf.environment.home) if shelf.environment.home else None
    for folder in (shelf.project_root, shelf.environment.cwd):
        if home is None or not files.is_inside(home, files.real_path(folder)):
            return folder
    return None


def _in(shelf: Shelf, top: str | None, *, user: bool = True) -> Targets:
    """Return every skill in the roots of a shelf and in a folder; without `user` only the roots in that folder."""
    roots = resolve_roots(shelf.profile, shelf.environment, shelf.settings, trust=shelf.trust)
    is_whole = True
    if top is not None and not user:
        kept = tuple(root for root in roots.roots if files.is_inside(root.path, top))
        is_whole = all(root in kept for root in roots.roots if root.real_path)
        problems = [problem for problem in roots.problems if files.is_inside(problem.path, top)]
        roots = roots._replace(roots=kept, problems=tuple(problems))
    read = _WholeFiles()
    found = [*discover(roots.roots, shelf.profile, repository=roots.repository, account=True, read=read)]
    targets = [_target(item, roots.roots[item.root]) for item in found if isinstance(item, Candidate)]
    problems = [*roots.problems, *(item for item in found if isinstance(item, Diagnostic))]
    for item in found:
        if isinstance(item, Filtered) and item.reason in _NOT_LISTED:
            problems.append(Diagnostic(item.path, item.reason, _NOT_LISTED[item.reason]))
        if isinstance(item, Filtered) and (item.reason == "too-deep" or (top and item.reason == "inside-skill")):
            more, more_problems = _one_folder(os.path.dirname(item.path), shelf.profile, roots.repository, read)
            targets += more
            problems += more_problems
    facts = Facts()
    catalog = build(found, roots, shelf.profile, shelf.settings, facts=facts)
    problems += [warning for warning in catalog.warnings if warning.rule in ("name-collision", "name-confusable")]
    # The catalog of some of the roots does not know every skill.
    listed = catalog if shelf.settings.enabled and is_whole else None
    tops = [top] if top is not None else []
    settled = {item.real_dir for item in found if isinstance(item, Candidate)}
    for folder in tops:
        more, more_problems = _folder(folder, shelf.profile, read, settled | _worktrees(folder))
        targets += more
        problems += _about_skills(more_problems, folder, targets)
    files_found = [(target.path, target.real_path) for target in targets]
    problems += lock_findings(files_found, tops or [shelf.project_root], shelf.environment, user=user)
    writable = [roots.repository, *tops, *(root.real_path for root in roots.roots if root.real_path)]
    scope = (*tops, *(root.path for root in roots.roots))
    return Targets(_once(targets), tuple(dict.fromkeys(problems)), tuple(writable), shelf, listed, facts, scope)


def _worktrees(repository: str) -> set[str]:
    """Return the other working trees of a repository, by real path: one that lies in it holds the same skills again."""
    listing, found = files.real_path(f"{repository}/.git/worktrees"), set()
    try:
        descriptor = files.open_folder(listing)
    except OSError:
        return set()
    try:
        names = files.names_in(descriptor)
    except OSError:
        names = []
    finally:
        files.close(descriptor)
    for name in names:
        with suppress(OSError):
            data = files.read_file(f"{listing}/{name}/gitdir", limit=CONFIG_BYTES, links="never") or b""
            mark = data.decode("utf-8", "surrogateescape").removesuffix("\n")
            if files.kind_at(mark) == "file":
                found.add(files.real_path(os.path.dirname(mark)))
    return found


_LINK_RULES = ("link-broken", "link-outside", "link-loop")


def _about_skills(problems: Iterable[Diagnostic], top: str, targets: Iterable[Target]) -> list[Diagnostic]:
    """Return the problems of a walk that concern skills: a link elsewhere in a repository is not their affair."""
    skills = {os.path.dirname(target.path) for target in targets}
    beside = {os.path.dirname(skill) for skill in skills}

    def is_near(path: str) -> bool:
        above = os.path.dirname(path)
        if above in beside or "skills" in path[len(top) :].split("/"):
            return True
        while above not in skills and len(above) > len(top):
            above = os.path.dirname(above)
        return above in skills

    return [problem for problem in problems if problem.rule not in _LINK_RULES or is_near(problem.path)]


def without_excluded(targets: Targets, patterns: Sequence[tuple[str, str]]) -> Targets:
    """Return the targets without those that patterns leave out, each for paths below its own folder."""
    if not patterns:
        return targets
    found = tuple(target for target in targets.found if not is_excluded(target.path, patterns))
    problems = tuple(problem for problem in targets.problems if not is_excluded(problem.path, patterns))
    return targets._replace(found=found, problems=problems, excluded=len(targets.found) - len(found))


def is_excluded(path: str, patterns: Sequence[tuple[str, str]]) -> bool:
    """Return whether a pattern leaves out a path, or a folder above it; each is for paths below its own folder."""
    for folder, pattern in patterns:
        if not path.startswith(folder.rstrip("/") + "/"):
            continue
        parts = path[len(folder.rstrip("/")) + 1 :].split("/")
        for count in range(1, len(parts) + 1):
            if matches_ignore_pattern(
                "/".join(parts[:count]), (pattern.removeprefix("./"),), folder=count < len(parts)
            ):
                return True
    return False


_NOT_LISTED = {
    "too-deep": "it is deeper than this profile searches; move it up, or raise `max_depth` in a profile of your own",
    "inside-skill": "it is inside another skill, so no agent lists it; that is right for an example",
}


def in_paths(paths: Sequence[str], shelf: Shelf) -> Targets:
    """Return every skill at or below some paths."""
    targets: list[Target] = []
    problems: list[Diagnostic] = []
    writable, scope = [], []
    read = _WholeFiles()
    for given in paths:
        path = os.path.normpath(os.path.join(shelf.environment.cwd, files.from_system(given)))
        found, found_problems = _at(path, shelf.profile, read)
        if not found and not found_problems:
            raise SkillFileNotFound(path)
        targets += found
        problems += found_problems
        writable.append(files.real_path(path))
        scope.append(os.path.dirname(path) if os.path.basename(path) == SKILL_FILE else path)
    problems += lock_findings([(target.path, target.real_path) for target in targets], (), shelf.environment)
    told = tuple(dict.fromkeys(problems))
    return Targets(_once(targets), told, tuple(writable), shelf, None, Facts(), tuple(scope))


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


def _folder(path: str, profile: Profile, read: _WholeFiles, settled: Collection[str] = frozenset()) -> Findings:
    real = files.real_path(path)
    anywhere = profile._replace(
        max_depth=None, root_file="skill", below_skill="enter", hidden="enter", max_directories=CHECKED_DIRECTORIES
    )
    repository = find_repository(real, profile.markers) or real
    found = discover([_root(path)], anywhere, repository=repository, read=read, settled=settled)
    return _split(found, _root(path))


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
LEVELS: tuple[Level, ...] = get_args(Level)
Mode = Literal["look", "diff", "fix"]
_LEVELS: Mapping[Severity, Level] = {"reject": "error", "warn": "warning", "info": "info"}

# With these findings of the parser the fields could be read anyway; with any other there are no fields to check.
_READABLE = frozenset({"bom", "crlf", "fence-blanks", "yaml-colon", "yaml-brackets", "yaml-tab"})


class CheckFinding(NamedTuple):
    """A finding of a rule in a file; `fix` is the text that `--fix` would write on that line.

    If it `renames` the skill, only `--fix=names` would.
    """

    path: str
    line: int | None
    column: int | None
    rule: str
    severity: Level
    message: str
    fix: str | None = None
    renames: bool = False

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
    """The result of a check; `fixed` is the number of findings that were fixed on disk.

    Findings that comments in the files ignore are in `ignored`; those of rules that were not chosen are counted in
    `left_out`, those of a lower severity than wanted in `hidden`. `excluded` is the number of files that the
    configuration leaves out.
    """

    checked: int
    findings: tuple[CheckFinding, ...]
    fixed: int
    changes: tuple[Change, ...] = ()
    ignored: tuple[CheckFinding, ...] = ()
    left_out: int = 0
    excluded: int = 0
    hidden: int = 0

    @property
    def is_clean(self) -> bool:
        """Return whether there are no errors and no warnings."""
        return all(finding.severity == "info" for finding in self.findings)

    def at_least(self, severity: Level) -> "Report":
        """Return the report with findings of this severity and above; the others are counted in `hidden`."""
        shown = LEVELS[: LEVELS.index(severity) + 1]
        kept = tuple(finding for finding in self.findings if finding.severity in shown)
        return self._replace(findings=kept, hidden=self.hidden + len(self.findings) - len(kept))


class CheckOptions(NamedTuple):
    """The options of a check: the rules, whether comments in files count, and whether a fix may rename.

    Without `rules` those of the profile apply.
    """

    rules: RuleChoice | None = None
    comments: bool = True
    renames: bool = False


class _CheckedFile(NamedTuple):
    """The result for one SKILL.md."""

    target: Target
    name: str
    mentions: tuple[Mention, ...]
    findings: tuple[CheckFinding, ...]
    change: Change | None
    comments: tuple[IgnoreComment, ...] = ()
    description: str = ""


class _FileContext(NamedTuple):
    """The values that the check of each file needs."""

    profile: Profile
    rules: RuleChoice
    options: CheckOptions
    folders: "_OpenFolders"
    parse: ParseOptions


def check_paths(paths: Sequence[str], shelf: Shelf, *, vouched: bool = True, progress: TextIO | None = None) -> Report:
    """Check the skills at or below some paths.

    With `vouched=False` the checked files have no say: nothing that a project's configuration, its profile, a baseline
    or a comment in a file says takes a finding away, and severities are those of the default profile. Only the user's
    own configuration counts. Whoever decides about trust asks so.
    """
    targets = in_paths(paths, shelf)
    if vouched:
        rules = choose_rules(shelf.profile, shelf.settings)
        chosen = without_excluded(targets, shelf.settings.check_exclude)
        return check_targets(chosen, shelf.profile, progress=progress, options=CheckOptions(rules))
    profile = find_profile(DEFAULT_PROFILE)
    options = CheckOptions(without_project(profile, shelf.settings), comments=False)
    return check_targets(targets, profile, progress=progress, options=options)


def check_targets(
    targets: Targets,
    profile: Profile,
    *,
    mode: Mode = "look",
    progress: TextIO | None = None,
    options: CheckOptions = CheckOptions(),  # noqa: B008 - a value that never changes
) -> Report:
    """Check every target; the mode `fix` changes files, `diff` only shows the changes."""
    rules = options.rules or RuleChoice(author_severities(profile))
    severities = rules.severities
    found = [finding for problem in targets.problems for finding in _with_severity(_as_finding(problem), severities)]
    checked = []
    with _OpenFolders() as folders:
        context = _FileContext(profile, rules, options, folders, parse_options(profile))
        for target in watched(targets.found, "Checking skills", progress, len(targets.found)):
            try:
                checked.append(_check_file(target, targets, mode, context))
            except Exception as error:
                # One file must never prevent the report, not even through an error in skillshelf.
                message = f"{type(error).__name__}: {error}"
                found += _with_severity(CheckFinding(target.path, None, None, "internal", "error", message), severities)
    found += [finding for one in checked for finding in one.findings]
    # Names may be others after a fix.
    catalog = targets.catalog if mode != "fix" else None
    for problem in (*_mention_findings(checked, targets, catalog), *_collision_findings(checked, severities)):
        found += _with_severity(problem, severities)
    changes = tuple(one.change for one in checked if one.change)
    fixed = sum(change.findings for change in changes if change.refusal is None) if mode == "fix" else 0
    found, ignored = _without_ignored(list(dict.fromkeys(found)), checked, profile, severities)
    kept = sorted((finding for finding in found if finding.rule not in rules.left_out), key=_order)
    counts = (len(found) - len(kept), targets.excluded)
    return Report(len(targets.found), tuple(kept), fixed, changes, tuple(sorted(ignored, key=_order)), *counts)


def _without_ignored(
    found: list[CheckFinding], checked: Sequence[_CheckedFile], profile: Profile, severities: Mapping[str, Severity]
) -> tuple[list[CheckFinding], list[CheckFinding]]:
    """Return the findings that no comment ignores, with those about the comments, and the findings that one ignores."""
    comments = {one.target.path: one.comments for one in checked if one.comments}
    if not comments:
        return found, []
    rules: dict[str, set[str]] = {path: set() for path in comments}
    for finding in found:
        if finding.path in rules:
            rules[finding.path].add(finding.rule)
    ignored: dict[str, frozenset[str]] = {}
    more = []
    for path, words in comments.items():
        ignored[path], about = comment_findings(words, rules[path], profile)
        for rule, message, line, column in about:
            more += _with_severity(CheckFinding(path, line, column, rule, "info", message), severities)
    is_ignored = [finding.rule in ignored.get(finding.path, ()) for finding in found]
    kept = [finding for finding, left_out in zip(found, is_ignored, strict=True) if not left_out]
    return [*kept, *more], [finding for finding, left_out in zip(found, is_ignored, strict=True) if left_out]


def security_findings_of(target: Target) -> list[SecurityFinding]:
    """Return what the security rules find in the folder of a skill, whatever its project configures."""
    path = os.path.dirname(target.real_path)
    try:
        with files.Folder(path) as folder:
            return folder_findings(folder, covered_entries(folder))
    except OSError as error:
        return [unchecked(SKILL_FILE, f"the folder cannot be read: {_reason(error)}")]


def file_problems(targets: Iterable[Target], profile: Profile) -> Iterator[tuple[CheckFinding, ...]]:
    """Yield the errors and warnings of each file by itself; advice, and what other skills decide, is left out."""
    rules = RuleChoice(author_severities(profile))
    severities = rules.severities
    with _OpenFolders() as folders:
        context = _FileContext(profile, rules, CheckOptions(comments=False), folders, parse_options(profile))
        for target in targets:
            try:
                found = _findings_in(target, context)
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                found = _with_severity(CheckFinding(target.path, None, None, "internal", "error", message), severities)
            problems = dict.fromkeys(finding for finding in found if finding.severity != "info")
            yield tuple(sorted(problems, key=_order))


def _findings_in(target: Target, context: _FileContext) -> Sequence[CheckFinding]:
    try:
        with context.folders.folder(os.path.dirname(target.real_path)) as skill:
            data = _bytes(skill, target)
            document = parse(data, whole=True, options=context.parse)
            checked = check_document(document, target.directory, context.profile)
            return _check_page(target, data, checked, skill, context, FixResult(data, {})).findings
    except OSError as error:
        return _unreadable(target, error, context.rules.severities).findings


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


_OPEN_FOLDERS = 16
"""How many folders stay open: a tree may be deeper than a process may have open files."""


class _OpenFolders:
    """The folders above the skill that was checked last, which stay open: the next skill is nearly always near it."""

    def __init__(self) -> None:
        self._above: list[tuple[str, files.Folder]] = []

    def __enter__(self) -> "_OpenFolders":
        return self

    def __exit__(self, *exception: object) -> None:
        while self._above:
            self._above.pop()[1].__exit__()

    def folder(self, path: str) -> files.Folder:
        """Open a folder by its real path, no component of which may be a link."""
        above, _, name = path.rpartition("/")
        return files.Folder(path, parent=self._opened(above)) if name else files.Folder(path)

    def _opened(self, path: str) -> files.Folder:
        """Return an open folder, which stays open, with all folders above it, until one elsewhere is needed."""
        while self._above and not f"{path}/".startswith(f"{self._above[-1][0]}/"):
            self._above.pop()[1].__exit__()
        if not self._above:
            self._above.append(("", files.Folder("/")))
        done = self._above[-1][0]
        for name in path[len(done) + 1 :].split("/") if path != done else ():
            done = f"{done}/{name}"
            self._above.append((done, files.Folder(done, parent=self._above[-1][1])))
            if len(self._above) > _OPEN_FOLDERS:
                self._above.pop(0)[1].__exit__()
        return self._above[-1][1]


def _check_file(target: Target, targets: Targets, mode: Mode, context: _FileContext) -> _CheckedFile:
    try:
        skill = context.folders.folder(os.path.dirname(target.real_path))
    except OSError as error:
        return _unreadable(target, error, context.rules.severities)
    with skill:
        try:
            data = _bytes(skill, target) if target.data is None else target.data
        except OSError as error:
            return _unreadable(target, error, context.rules.severities)
        checked = _checked_document(target, targets, data, context)
        if not checked.may_be_fixed:
            return _check_page(target, data, checked, skill, context, FixResult(data, {}))
        return _check_fixable(target, targets, mode, data, checked, skill, context)


def _check_fixable(
    target: Target,
    targets: Targets,
    mode: Mode,
    data: bytes,
    checked: CheckedDocument,
    skill: files.Folder,
    context: _FileContext,
) -> _CheckedFile:
    """Check a file that may be fixed: offer the fixes, show them or write them, as the mode demands."""
    profile = context.profile
    left_out = context.rules.left_out
    if context.options.comments and may_have_comments(data):
        page = page_of(data, checked.document, directory=target.directory, folder=skill)
        # What is ignored is not fixed either.
        left_out |= comment_findings(comments_in(page), (), profile)[0]
    text = FixInput(data, target.directory, profile, _name_source(target, skill, profile))
    offered = applied = fix_text(text, without=left_out, checked=checked)
    if offered.renamed and not context.options.renames:
        is_more = len(offered.lines) > len(offered.renamed)
        kept_name = text._replace(renames=False)
        applied = fix_text(kept_name, without=left_out, checked=checked) if is_more else FixResult(data, {})
    if applied.data == data:
        return _check_page(target, data, checked, skill, context, offered)
    refusal = _write(target, targets, data, applied.data) if mode == "fix" else _why_not_writable(target, targets)
    diff = () if mode == "look" else tuple(unified_diff(data, applied.data, target.path.lstrip("/")))
    change = Change(target.path, diff, len(applied.lines), refusal)
    if mode == "fix" and refusal is None:
        checked = _checked_document(target._replace(data=None), targets, data := applied.data, context)
        left = applied is not offered
        text = text._replace(data=data)
        offered = fix_text(text, without=left_out, checked=checked) if left else FixResult(data, {})
    return _check_page(target, data, checked, skill, context, offered)._replace(change=change)


def _unreadable(target: Target, error: OSError, severities: Mapping[str, Severity]) -> _CheckedFile:
    problem = _as_finding(Diagnostic(target.path, "unreadable", _reason(error)))
    return _CheckedFile(target, "", (), tuple(_with_severity(problem, severities)), None)


def _bytes(skill: files.Folder, target: Target) -> bytes:
    return skill.read([os.path.basename(target.real_path)], limit=SKILL_FILE_BYTES).data


def _checked_document(target: Target, targets: Targets, data: bytes, context: _FileContext) -> CheckedDocument:
    """Return what the rules say of these bytes; they were parsed already if they are those that were found."""
    known: ParsedFrontmatter | None = None
    if target.data is not None:
        known = targets.facts.parsed_before(target.real_path, context.parse)
    document = parse(data, whole=True, options=context.parse) if known is None else known
    return check_document(document, target.directory, context.profile)


def _check_page(
    target: Target,
    data: bytes,
    checked: CheckedDocument,
    skill: files.Folder,
    context: _FileContext,
    fixes: FixResult,
) -> _CheckedFile:
    severities = context.rules.severities
    document = checked.document
    page = page_of(data, document, directory=target.directory, folder=skill)
    findings = [FileFinding("SKILL.md", finding) for finding in _about_fields(checked, target)]
    findings += run_checks(page) if page.body != data else security_checks(page)
    found = []
    for file, finding in findings:
        severity = severities[finding.rule]
        if severity == "off":
            continue
        finding, path, fix, renames = placed(finding, document), target.path, None, False
        if file != "SKILL.md":
            path = os.path.join(os.path.dirname(target.path), file)
        else:
            place = (finding.rule, finding.line or 1)
            fix, renames = fixes.lines.get(place), place in fixes.renamed
            if reason := why_not_fixed(finding.rule, data):
                finding = finding._replace(message=f"{finding.message}; {reason}")
        _, message, line, column = finding
        found.append(CheckFinding(path, line, column or 1, finding.rule, _LEVELS[severity], message, fix, renames))
    mentions = [mention._replace(line=mention.line + page.start - 1) for mention in skills_named(page.text)]
    name = name_of(document.fields, target.directory, context.profile)
    comments = tuple(comments_in(page)) if context.options.comments and may_have_comments(data) else ()
    said = document.fields.get("description")
    description = said if isinstance(said, str) else ""
    return _CheckedFile(target, name, tuple(mentions), tuple(found), None, comments, description)


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


def _collision_findings(checked: Sequence[_CheckedFile], severities: Mapping[str, Severity]) -> Iterator[CheckFinding]:
    """Yield a finding for each skill whose description is nearly that of another one, which it names."""
    told = [one for one in checked if one.description.strip()]
    if len({one.name for one in told}) < 2 or severities["description-collision"] == "off":
        return
    from skillshelf.search.collisions import near_duplicates

    others: dict[int, list[int]] = {}
    for first, second in near_duplicates([one.description for one in told]):
        # A skill of the same name is its copy for another agent.
        if told[first].name != told[second].name:
            others.setdefault(first, []).append(second)
            others.setdefault(second, []).append(first)
    for position, near in others.items():
        named = {told[other].name: None for other in near}
        more = f" and of {plural(len(named) - 1, 'more skill')}" if len(named) > 1 else ""
        message = f"nearly the description of {next(iter(named))!r}{more}; say what only this skill does"
        yield CheckFinding(told[position].target.path, None, None, "description-collision", "warning", message)


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
