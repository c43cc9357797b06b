"""Walk a repository for skills outside the known roots: folders of packages, and any other folder with a SKILL.md.

The walk leaves out `.git` and whatever git ignores. Of `node_modules` it looks only at the folders of skills that a
package brings along, although git ignores them.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.disk_state import ScanRecord
from skillshelf.core import files
from skillshelf.core.limits import CONFIG_BYTES, IGNORE_RULES, IGNORE_STEPS, REPOSITORY_FOLDERS, WALK_DEPTH
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Diagnostic

__all__ = ["RepositoryFolders", "walk_repository"]

_PACKAGES = "node_modules"
_GIT = ".git"
_IGNORE = ".gitignore"


class RepositoryFolders(NamedTuple):
    """The result of a walk: roots of packages, folders that hold a SKILL.md elsewhere, links to such, and problems."""

    roots: list[str]
    skills: list[str]
    links: list[str]
    problems: list[Diagnostic]


def walk_repository(
    top: str,
    repository: str,
    *,
    labels: Collection[str],
    known: Collection[str],
    record: ScanRecord,
    most: int = REPOSITORY_FOLDERS,
    here: str = "",
) -> RepositoryFolders:
    """Return what lies in the first folders below `top`, a real path in a repository; `known` roots are not entered.

    The folder `here` is entered although git ignores it: whoever stands there means what lies there. `labels` are the
    paths of roots below the folder they belong to, such as those of hosts in a project. `record` takes in all that the
    result depends on.
    """
    return _RepositoryWalk(repository, labels, known, record, most).run(top, here)


class _RepositoryWalk:
    """One walk, from the top down, so that a limit cuts off what is deepest."""

    def __init__(
        self, repository: str, labels: Collection[str], known: Collection[str], record: ScanRecord, most: int
    ) -> None:
        self.repository = repository
        self.labels = {*labels}
        self.endings = {label.rpartition("/")[2] for label in labels}
        self.known = known
        self.record = record
        self.found = RepositoryFolders([], [], [], [])
        self.most = self.left = most
        self.packages_left = 0
        self.effort = _Effort()

    def run(self, top: str, here: str) -> RepositoryFolders:
        waiting = deque([(top, self._rules_above(top))])
        if self._is_left_out(here, top):
            waiting.append((here, self._rules_above(here)))
        while waiting and self.left > 0 and self.effort.left > 0:
            path, rules = waiting.popleft()
            kinds = self._listed(path)
            if kinds.get(_IGNORE) == "file":
                rules = (*rules, self._rules_in(path, f"{path}/{_IGNORE}"))
            if SKILL_FILE in kinds:
                self.found.skills.append(path)
            waiting.extend((child, rules) for child in self._below(path, kinds, rules))
        if not_entered := len(waiting) + self.packages_left:
            message = f"stopped after {min(self.most, self.most - self.left):,} folders; "
            message += f"{not_entered:,} more were not entered"
            message += "" if self.effort.left > 0 else ", as its ignore files have too many patterns"
            self.found.problems.append(Diagnostic(self.repository, "walk-limit", message))
        return self.found

    def _is_left_out(self, here: str, top: str) -> bool:
        """Return whether a folder below the top is not reached by the walk, because it or one above it is ignored."""
        if here == top or not files.is_inside(here, top) or _GIT in here[len(top) :].split("/"):
            return False
        folder, rules = top, self._rules_above(top)
        for name in here[len(top) :].strip("/").split("/"):
            rules = (*rules, self._rules_in(folder, f"{folder}/{_IGNORE}"))
            folder = f"{folder.rstrip('/')}/{name}"
            if name == _PACKAGES or _is_ignored(folder, rules):
                return True
        return False

    def _listed(self, path: str) -> Mapping[str, files.Kind]:
        """Return the entries of a folder by name, in order; nothing if it cannot be read."""
        self.left -= 1
        try:
            folder = files.open_folder(path)
            try:
                self.record.listed(path, files.stamp_of_open(folder))
                listed = files.open_to_list(folder, ".")
                try:
                    kinds = files.listed_kinds(listed)
                finally:
                    files.close(listed)
            finally:
                files.close(folder)
        except OSError as error:
            self.record.doubt()
            self.found.problems.append(Diagnostic(path, "unreadable", (error.strerror or str(error)).lower()))
            return {}
        return {name: kinds[name] for name in sorted(kinds, key=files.path_bytes)}

    def _below(self, path: str, kinds: Mapping[str, files.Kind], rules: Sequence["_IgnoreRules"]) -> Iterator[str]:
        """Yield the folders to enter, and keep the others that matter."""
        is_deep = path.count("/") - self.repository.count("/") >= WALK_DEPTH
        for name, kind in kinds.items():
            child = f"{path}/{name}"
            if name == _GIT or child in self.known or kind not in ("folder", "link"):
                continue
            if name == _PACKAGES and kind == "folder":
                self._packages(child)
            elif name in self.endings and self._is_root(child):
                if not _is_ignored(child, rules):
                    self.found.roots.append(child)
            elif kind == "link":
                self._link(child)
            elif not _is_ignored(child, rules):
                if is_deep:
                    message = f"it lies deeper than {WALK_DEPTH} levels and was not entered"
                    self.found.problems.append(Diagnostic(child, "walk-limit", message))
                else:
                    yield child

    def _is_root(self, path: str) -> bool:
        return any(path.endswith(f"/{label}") for label in self.labels)

    def _link(self, path: str) -> None:
        """Keep a link to a skill of this repository."""
        self.record.followed(path)
        target = files.real_path(path)
        if files.is_inside(target, self.repository) and files.kind_at(f"{target}/{SKILL_FILE}") is not None:
            self.found.links.append(path)

    # Installed packages ---------------------------------------------------------------------------

    def _packages(self, path: str) -> None:
        """Keep the folders of skills in each package of a `node_modules`; nothing else in there is looked at."""
        for name, kind in self._listed(path).items():
            if name.startswith(".") or kind not in ("folder", "link"):
                continue
            if self.left <= 0 or not name.startswith("@"):
                self._package(f"{path}/{name}", kind)
            elif kind == "folder":
                for inner, inner_kind in self._listed(f"{path}/{name}").items():
                    if inner_kind in ("folder", "link"):
                        self._package(f"{path}/{name}/{inner}", inner_kind)

    def _package(self, path: str, kind: files.Kind) -> None:
        if self.left <= 0:
            self.packages_left += 1
            return
        if kind == "link":
            self.record.followed(path)
            target = files.real_path(path)
            # A package of this repository is walked where it lies; only a store of packages is entered by a link.
            if _PACKAGES not in target.split("/") or files.kind_at(target) != "folder":
                return
            path = target
        kinds = self._listed(path)
        tops = {label.split("/")[0] for label in self.labels} | {"skills"}
        for name in tops.intersection(kinds):
            for root in [f"{path}/skills"] if name == "skills" else self._labelled(path, name):
                if files.kind_at(root) == "folder" and root not in self.known:
                    self.found.roots.append(root)

    def _labelled(self, path: str, name: str) -> list[str]:
        below = [label for label in sorted(self.labels) if label.startswith(f"{name}/")]
        self.record.saw(f"{path}/{name}", files.stamp_at(f"{path}/{name}"))
        return [f"{path}/{label}" for label in below]

    # Ignored folders ------------------------------------------------------------------------------

    def _rules_above(self, top: str) -> tuple["_IgnoreRules", ...]:
        """Return the rules of the repository and of every folder above the first one that is walked."""
        rules = [self._rules_in(self.repository, f"{self.repository}/{_GIT}/info/exclude")]
        folder = self.repository
        for name in top[len(self.repository) :].strip("/").split("/"):
            if folder != top:
                rules.append(self._rules_in(folder, f"{folder}/{_IGNORE}"))
                folder = f"{folder}/{name}"
        return tuple(rules)

    def _rules_in(self, folder: str, path: str) -> "_IgnoreRules":
        if files.kind_at(path) != "file":
            return _IgnoreRules(folder, (), self.effort)
        try:
            self.record.saw(path, files.stamp_at(path))
            data = files.read_file(path, limit=CONFIG_BYTES, links="never") or b""
        except OSError as error:
            self.record.doubt()
            self.found.problems.append(Diagnostic(path, "unreadable", (error.strerror or str(error)).lower()))
            return _IgnoreRules(folder, (), self.effort)
        lines = data.decode("utf-8", "surrogateescape").splitlines()
        if len(lines) > IGNORE_RULES:
            message = f"only its first {IGNORE_RULES:,} lines were followed"
            self.found.problems.append(Diagnostic(path, "walk-limit", message))
        return _IgnoreRules(folder, lines[:IGNORE_RULES], self.effort)


# Rules of .gitignore ------------------------------------------------------------------------------


def _is_ignored(path: str, rules: Sequence["_IgnoreRules"]) -> bool:
    """Return whether git ignores a folder: the last rule that matches decides, those nearest to it first."""
    for group in reversed(rules):
        answer = group.answer(path)
        if answer is not None:
            return answer
    return False


class _Effort:
    """The number of comparisons that the rules of all files may still make; without any left they say nothing."""

    def __init__(self) -> None:
        self.left = IGNORE_STEPS


class _IgnoreRules:
    """The rules of one file for the folders below its own; names without a wildcard are looked up, not compared."""

    def __init__(self, folder: str, lines: Sequence[str], effort: _Effort) -> None:
        self._effort = effort
        self._start = len(folder.rstrip("/")) + 1
        self._negated: list[bool] = []
        self._names: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._name_globs: list[tuple[int, str]] = []
        self._path_globs: list[tuple[int, list[str]]] = []
        self._by_name: dict[str, int] = {}
        for line in lines:
            self._add(line)
        self._path_steps = sum(len(pattern) for _, pattern in self._path_globs)
        self._name_steps = sum(1 + len(pattern) // 32 for _, pattern in self._name_globs)

    def _add(self, line: str) -> None:
        pattern = line.rstrip("\r")
        while pattern.endswith(" ") and not pattern.endswith("\\ "):
            pattern = pattern[:-1]
        is_negated = pattern.startswith("!")
        pattern = pattern[is_negated:].rstrip("/")
        if not pattern or line.startswith("#"):
            return
        number = len(self._negated)
        self._negated.append(is_negated)
        is_plain = not any(c in pattern for c in "*?[\\")
        if "/" not in pattern:
            if is_plain:
                self._names[pattern] = number
            else:
                self._name_globs.append((number, pattern))
        elif is_plain:
            self._paths[pattern.lstrip("/")] = number
        else:
            self._path_globs.append((number, pattern.lstrip("/").split("/")))

    def answer(self, path: str) -> bool | None:
        """Return whether the rules ignore a folder; None if they say nothing about it."""
        if not self._negated or self._effort.left <= 0:
            return None
        self._effort.left -= self._path_steps
        below = path[self._start :]
        name = below.rpartition("/")[2]
        last = max(self._paths.get(below, -1), self._last_by_name(name))
        parts = below.split("/")
        for number, pattern in self._path_globs:
            if number > last and _fits_path(parts, pattern):
                last = number
        return None if last < 0 else not self._negated[last]

    def _last_by_name(self, name: str) -> int:
        if name not in self._by_name:
            self._effort.left -= self._name_steps
            globs = (number for number, pattern in self._name_globs if _fits(name, pattern))
            self._by_name[name] = max(self._names.get(name, -1), *globs, -1)
        return self._by_name[name]


def _fits_path(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path fits a pattern; `**` stands for any number of folders."""
    # As with characters: only the last `**` is ever tried again, so the time is at most parts times pattern.
    at, here, again, start = 0, 0, -1, 0
    while at < len(parts):
        if here < len(pattern) and pattern[here] == "**":
            again, start, here = here, at, here + 1
            if here == len(pattern):
                return True
        elif here < len(pattern) and _fits(parts[at], pattern[here]):
            at, here = at + 1, here + 1
        elif again >= 0:
            start += 1
            at, here = start, again + 1
        else:
            return False
    return here == len(pattern)


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name fits a pattern with `*`, `?` and `[...]`."""
    at, here, again, start = 0, 0, -1, 0
    while at < len(name):
        if here < len(pattern) and pattern[here] == "*":
            again, start, here = here, at, here + 1
            continue
        taken = _taken(name[at], pattern, here) if here < len(pattern) else 0
        if taken:
            at, here = at + 1, here + taken
        elif again >= 0:
            start += 1
            at, here = start, again + 1
        else:
            return False
    return not pattern[here:].strip("*")


def _taken(character: str, pattern: str, here: int) -> int:
    """Return how much of a pattern stands for this character; 0 if it does not fit."""
    if pattern[here] == "?":
        return 1
    if pattern[here] == "\\" and here + 1 < len(pattern):
        return 2 if pattern[here + 1] == character else 0
    if pattern[here] != "[":
        return 1 if pattern[here] == character else 0
    end = pattern.find("]", here + 2 + (pattern[here + 1 : here + 2] in ("!", "^")))
    if end < 0:
        # To git a class without an end fits nothing.
        return 0
    inside = pattern[here + 1 : end]
    is_negated = inside[:1] in ("!", "^")
    return end + 1 - here if _is_in_class(character, inside[is_negated:]) is not is_negated else 0


def _is_in_class(character: str, inside: str) -> bool:
    position = 0
    while position < len(inside):
        if inside[position + 1 : position + 2] == "-" and position + 2 < len(inside):
            if inside[position] <= character <= inside[position + 2]:
                return True
            position += 3
        else:
            if inside[position] == character:
                return True
            position += 1
    return False
