"""Discover candidates: walk each root within limits and read the head of each SKILL.md, nothing else.

`<child>/SKILL.md` is probed before a folder is listed, because listing every skill's folder would cost twice
the whole scan. A folder without a SKILL.md is listed and walked.
"""

import errno
import os
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress

from skillshelf.catalog.disk_state import ScanRecord
from skillshelf.config.profile import Profile, how_to_allow
from skillshelf.core import files
from skillshelf.core.limits import CACHE_FROM, LINKED_FOLDERS, SKILL_FILE_BYTES, WALK_DEPTH
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import is_ignored
from skillshelf.core.values import CacheEntry, Candidate, Diagnostic, Filtered, FilterReason, Root, UnchangedCandidate

__all__ = [
    "NEAR_MISSES",
    "SKILL_FILE",
    "Found",
    "ReadHead",
    "Repeat",
    "RootContents",
    "discover",
    "discover_root",
    "is_text_path",
    "left_out",
    "probe",
    "read_skill_head",
]

SKILL_FILE = "SKILL.md"
_IGNORE_BYTES, _IGNORE_LINES = 64 * 1024, 256
_IGNORED_BY = "an ignore file in the skills folder"
NEAR_MISSES = frozenset({"skill.md", "skills.md", "skill.txt", "skill"})


def _case_twins(folder: str, names: Collection[str]) -> Iterator[Diagnostic]:
    """Yield the files beside a SKILL.md whose names differ from it only in case."""
    for name in names if SKILL_FILE in names else ():
        if name != SKILL_FILE and name.casefold() == SKILL_FILE.casefold():
            message = f"{name!r} is beside SKILL.md; a disk that ignores case keeps one of them, and that is the skill"
            yield Diagnostic(f"{folder}/{name}", "file-case", message)


class Repeat(NamedTuple):
    """A SKILL.md that was already found by another path."""

    root: int
    path: str
    real_path: str
    real_dir: str


Found = Candidate | UnchangedCandidate | Repeat | Filtered | Diagnostic

CachedEntries = Callable[[Root], Mapping[str, CacheEntry]]
"""Return the cached entries of the skills below a root, by path."""

ReadHead = Callable[[int, str], files.Head]
"""Read a SKILL.md, given the descriptor of its folder and its name there; at least as much as its frontmatter."""


def read_skill_head(folder: int, name: str) -> files.Head:
    """Read a SKILL.md as far as its frontmatter goes."""
    # Imported here: a scan that finds everything in the cache parses nothing.
    from skillshelf.catalog.document import has_frontmatter_end

    return files.read_head(folder, name, limit=SKILL_FILE_BYTES, enough=has_frontmatter_end)


def discover(
    roots: Sequence[Root],
    profile: Profile,
    *,
    repository: str,
    account: bool = False,
    cached: CachedEntries = lambda root: {},
    heads: dict[str, files.Head] | None = None,
    only: Mapping[str, Collection[str]] | None = None,
    record: ScanRecord | None = None,
    read: ReadHead = read_skill_head,
    settled: Collection[str] = frozenset(),
) -> Iterator[Found]:
    """Yield everything below the roots, root by root in order.

    `account` also reports files in folders that no skill counts in. A file with a `cached` entry that has not changed
    since is not read again. `heads` keeps what was read, by real path, so that several profiles can scan one disk.
    With `only`, no folder is listed: it gives the names to visit in each folder, by the folder's path. `record` takes
    in everything that the walk depends on. `read` may read more of each file than discovery needs. Folders in
    `settled`, by their real paths, are not entered: another walk has done that.
    """
    record = record or ScanRecord(0)
    reachable = [repository, *(root.real_path for root in roots if root.real_path)]
    seen: set[str] = set()
    for index, root in enumerate(roots):
        if root.real_path is not None:
            walk = _Walk(index, root, profile, reachable, seen, account, cached, heads, only, record, read)
            walk.settled = settled
            yield from walk.run()


class RootContents(NamedTuple):
    """Everything that was found below one root, and how much of the limit of folders its walk used."""

    found: list[Found]
    used: int


def discover_root(
    root: Root,
    profile: Profile,
    *,
    reachable: Sequence[str],
    heads: dict[str, files.Head],
    record: ScanRecord,
    only: Mapping[str, Collection[str]] | None = None,
    entries: Sequence[tuple[str, bool]] | None = None,
) -> RootContents:
    """Return everything below one root, as items of root 0 and as if no other root were walked before it.

    `reachable` are the folders that a contained link may lead to. With `entries`, names each with whether it is a
    folder, only these are visited in the root itself, and everything below them. `discover` explains the others.
    """
    walk = _Walk(0, root, profile, [*reachable], set(), account=False, heads=heads, only=only, record=record)
    walk.listed = {} if entries is None else {root.path: entries}
    found = list(walk.run())
    return RootContents(found, profile.max_directories - walk.budget[True])


def probe(root: Root, profile: Profile, *, repository: str, read: ReadHead = read_skill_head) -> Iterator[Found]:
    """Yield the SKILL.md of one folder, and nothing below it."""
    assert root.real_path is not None
    try:
        folder = files.open_folder(root.real_path)
    except OSError as error:
        yield Diagnostic(root.path, "unreadable", _reason(error))
        return
    try:
        walk = _Walk(0, root, profile, [repository, root.real_path], set(), account=False, read=read)
        yield from walk._probe(folder, _WalkFrame(root.path, root.real_path, 0, None))
        with suppress(OSError):
            yield from _case_twins(root.path, files.names_in(folder))
    finally:
        files.close(folder)


class _WalkFrame(NamedTuple):
    """One folder of the walk: the path it was reached by, its real path and depth, and why its skills do not count.

    `ignored` are the patterns of the ignore files above it, for paths below the root; `by` is the file that says so.
    """

    path: str
    real_path: str
    depth: int
    filtered_as: FilterReason | None
    ignored: tuple[str, ...] = ()
    by: str | None = None


class _Walk:
    """The walk of one root."""

    def __init__(
        self,
        index: int,
        root: Root,
        profile: Profile,
        reachable: list[str],
        seen: set[str],
        account: bool,
        cached: CachedEntries = lambda root: {},
        heads: dict[str, files.Head] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
        record: ScanRecord | None = None,
        read: ReadHead = read_skill_head,
    ) -> None:
        self.index = index
        self.root = root
        self.profile = profile
        self.reachable = reachable
        self.seen = seen
        self.account = account
        self.depth_limit = WALK_DEPTH if profile.max_depth is None else profile.max_depth
        # Two budgets: reporting folders where no skill counts must not end the walk where skills do count.
        self.budget = {True: profile.max_directories, False: profile.max_directories}
        self.others = {True: 0, False: 0}
        self.left = {True: 0, False: 0}
        self.linked = {True: LINKED_FOLDERS, False: LINKED_FOLDERS}
        self.left_behind_links = 0
        self.too_deep = 0
        self.followed: set[str] = set()
        self.heads = heads
        self.settled: Collection[str] = frozenset()
        self.only = only
        self.listed: Mapping[str, Sequence[tuple[str, bool]]] = {}
        self.read = read
        self.cached = cached
        self.entries: Mapping[str, CacheEntry] | None = None
        self.record = record or ScanRecord(0)
        self.files = 0

    def run(self) -> Iterator[Found]:
        """Yield everything below the root."""
        assert self.root.real_path is not None
        try:
            folder = files.open_folder(self.root.real_path)
        except OSError as error:
            self.record.doubt()
            yield Diagnostic(self.root.path, "root-unreadable", _reason(error))
            return
        frame = _WalkFrame(self.root.path, self.root.real_path, 0, None)
        try:
            if self.profile.root_file == "report" or not (yield from self._root_skill(folder, frame)):
                yield from self._children(folder, frame)
        finally:
            files.close(folder)
        yield from self._limits_hit()

    def _root_skill(self, folder: int, frame: _WalkFrame) -> Generator[Found, None, bool]:
        """Yield the SKILL.md of the root itself; return whether it makes the whole root one skill."""
        is_skill = yield from self._probe(folder, frame)
        if not is_skill or self.profile.root_file != "alone":
            return False
        self.record.listed(frame.real_path, files.stamp_of_open(folder))
        if self.account:
            yield from self._children(folder, frame._replace(filtered_as="inside-skill"))
        return True

    def _limits_hit(self) -> Iterator[Diagnostic]:
        limit = self.profile.max_directories
        if self.left[True]:
            message = (
                f"stopped after {limit} folders without a skill; {self.left[True]} entries were not visited; "
                "to visit more, raise `max_directories` in your own profile"
            )
            yield Diagnostic(self.root.path, "walk-limit", message)
        if self.left[False]:
            message = f"stopped in folders where no skill counts; {self.left[False]} entries were not visited"
            yield Diagnostic(self.root.path, "walk-limit", message)
        if self.left_behind_links:
            message = f"stopped after {LINKED_FOLDERS} folders without a skill behind links of the project"
            message += f"; {self.left_behind_links} entries were not visited"
            yield Diagnostic(self.root.path, "walk-limit", message)
        if self.too_deep:
            message = f"{self.too_deep} entries lie deeper than {WALK_DEPTH} levels and were not visited"
            yield Diagnostic(self.root.path, "walk-limit", message)

    def _children(self, folder: int, frame: _WalkFrame) -> Iterator[Found]:
        """Yield what lies below a folder that is not a skill, or below a skill where that counts."""
        counts = frame.filtered_as is None
        try:
            # Before it is listed: whatever changes meanwhile changes the stamp.
            self.record.listed(frame.real_path, files.stamp_of_open(folder))
            entries = self._entries(folder, frame)
            if frame.depth == 0:
                self.record.entered(frame.real_path, entries)
        except OSError as error:
            self.record.doubt()
            rule = "unreadable" if frame.depth else "root-unreadable"
            yield Diagnostic(frame.path, rule, _reason(error))
            return
        if self.profile.ignore_files and counts:
            frame = self._with_ignored(frame, [name for name, _ in entries])
        if frame.filtered_as in (None, "inside-skill"):
            yield from _case_twins(frame.path, [name for name, _ in entries])
        if counts:
            names = [name for name, _ in entries]
            yield from self._odd_names(frame, names)
            yield from self._loose_files(folder, frame, names)
        may_be_cached = counts and self._uses_cache(len(entries))
        ordered = entries if self.profile.folder_order == "sorted" else entries[::-1]
        for position, (name, is_folder) in enumerate(ordered):
            if self.budget[counts] <= 0:
                self.left[counts] += len(entries) - position
                return
            if may_be_cached and is_folder and not frame.ignored:
                below = f"{name}/{SKILL_FILE}"
                kept = self._unchanged(folder, below, f"{frame.path}/{below}", f"{frame.real_path}/{below}")
                if kept is not None:
                    yield kept
                    continue
            if counts and is_folder and (known := self._known_skill(frame, name)) is not None:
                yield from self._read(folder, SKILL_FILE, known, f"{known.real_path}/{SKILL_FILE}")
                continue
            if self.heads and name == SKILL_FILE and f"{frame.real_path}/{name}" in self.heads:
                self._charge(frame, "file")
                continue
            yield from self._child(folder, frame, name)

    def _entries(self, folder: int, frame: _WalkFrame) -> Sequence[tuple[str, bool]]:
        if (known := self.listed.get(frame.path)) is not None:
            return known
        if self.only is not None:
            return self._named(folder, self.only, frame)
        entries = files.entries_in(folder)
        if not self.settled:
            return entries
        return [entry for entry in entries if f"{frame.real_path}/{entry[0]}" not in self.settled]

    def _named(self, folder: int, only: Mapping[str, Collection[str]], frame: _WalkFrame) -> list[tuple[str, bool]]:
        """Return those of the names in `only` that exist in a folder, each with whether it is a folder."""
        found = []
        for name in sorted(only.get(frame.path, ()), key=files.path_bytes):
            try:
                found.append((name, files.kind_of(files.stat_at(folder, name).st_mode) == "folder"))
            except FileNotFoundError:
                continue
        return found

    def _known_skill(self, frame: _WalkFrame, name: str) -> _WalkFrame | None:
        """Return the frame of a child whose SKILL.md another walk has read, if nothing below it needs a visit."""
        if not self.heads or self.profile.below_skill == "enter" or self.account or frame.ignored:
            return None
        head = self.heads.get(f"{frame.real_path}/{name}/{SKILL_FILE}")
        below = self._below(frame, name) if head is not None and head.data is not None else None
        return below if below is not None and below.filtered_as is None else None

    def _with_ignored(self, frame: _WalkFrame, names: list[str]) -> _WalkFrame:
        """Return a frame with the patterns of the ignore files in its folder, each for paths below the root."""
        above = frame.real_path[len(self.root.real_path or "") + 1 :]
        for name in self.profile.ignore_files:
            path = f"{frame.real_path}/{name}"
            if name not in names and (self.only is None or files.kind_at(path) is None):
                continue
            self.record.saw(path, files.stamp_at(path))
            if files.kind_at(path) == "link":
                # The stamp of a link does not show a change of what it leads to.
                self.record.doubt()
            patterns = _patterns_in(path)
            if patterns is None:
                self.record.doubt()
            frame = frame._replace(ignored=(*frame.ignored, *(_below_root(one, above) for one in patterns or ())))
        return frame

    def _is_ignored(self, frame: _WalkFrame, name: str, *, folder: bool) -> bool:
        path = f"{frame.real_path}/{name}"[len(self.root.real_path or "") + 1 :]
        return is_ignored(path, frame.ignored, folder=folder)

    def _loose_files(self, folder: int, frame: _WalkFrame, names: list[str]) -> Iterator[Found]:
        """Yield Markdown files that count as skills without being called SKILL.md, if the root allows them."""
        if self.root.loose_files == "none" or SKILL_FILE in names:
            return
        if (self.root.loose_files == "in-root") != (frame.depth == 0):
            return
        for name in names:
            if name.endswith(".md") and files.kind_of(files.stat_at(folder, name).st_mode) == "file":
                if frame.ignored and self._is_ignored(frame, name, folder=False):
                    yield Filtered(name, f"{frame.path}/{name}", "ignored", _IGNORED_BY)
                    continue
                yield from self._read(folder, name, frame, f"{frame.real_path}/{name}", shown=name)

    # Cache ----------------------------------------------------------------------------------------

    def _uses_cache(self, coming: int) -> bool:
        """Return whether cached entries can be used; they are fetched once there are enough files."""
        if self.entries is None and self.files + coming >= CACHE_FROM:
            self.entries = self.cached(self.root)
        return bool(self.entries) and self.profile.below_skill == "skip" and not self.account

    def _unchanged(self, folder: int, name: str, path: str, real_path: str) -> UnchangedCandidate | None:
        """Return the cached entry of a SKILL.md if its stamp is unchanged."""
        entry = self.entries.get(path) if self.entries else None
        if entry is None or entry.real_path != real_path or real_path in self.seen:
            return None
        if files.stamp_below(folder, name) != entry.stamp:
            return None
        self.seen.add(real_path)
        self.record.saw(real_path, entry.stamp)
        return UnchangedCandidate(self.index, path, real_path.rpartition("/")[0], entry)

    # Walking --------------------------------------------------------------------------------------

    def _odd_names(self, frame: _WalkFrame, names: list[str]) -> Iterator[Diagnostic]:
        if frame.depth == 0 and SKILL_FILE in names and self.profile.root_file == "report":
            message = "a SKILL.md in the root itself is not a skill; move it to a folder, or make the parent a root"
            yield Diagnostic(f"{frame.path}/{SKILL_FILE}", "root-file", message)
        for name in names if self.root.loose_files == "none" else ():
            if name == SKILL_FILE or name.lower() not in NEAR_MISSES or SKILL_FILE in names:
                continue
            # A folder may well have such a name.
            if "." in name or files.kind_at(f"{frame.real_path}/{name}") == "file":
                yield Diagnostic(f"{frame.path}/{name}", "file-name", f"{name!r} is not read; rename it to SKILL.md")

    def _child(self, parent: int, frame: _WalkFrame, name: str) -> Iterator[Found]:
        below = self._below(frame, name)
        if below is None:
            return
        if name == SKILL_FILE and below.real_path in self.seen:
            # It was read as a file when its folder was probed.
            self._charge(below, "file")
            return
        try:
            folder = files.open_folder_at(parent, name)
        except OSError as error:
            yield from self._not_a_folder(parent, below, name, error)
            return
        try:
            yield from self._folder(folder, below)
        finally:
            files.close(folder)

    def _below(self, frame: _WalkFrame, name: str) -> _WalkFrame | None:
        """Return the frame of a child, with the reason why skills in it do not count; None if it is not visited."""
        filtered_as, by = frame.filtered_as, frame.by
        depth = frame.depth + 1
        if filtered_as is None and frame.ignored and self._is_ignored(frame, name, folder=True):
            filtered_as, by = "ignored", _IGNORED_BY
        if filtered_as is None:
            skipped = name in self.profile.skip_directories
            if skipped or (self.root.hidden == "skip" and name.startswith(".")):
                if not self.account:
                    return None
                filtered_as = "ignored"
            elif depth > self.depth_limit:
                filtered_as = "too-deep"
        if depth > WALK_DEPTH:
            self.too_deep += 1
            return None
        return _WalkFrame(f"{frame.path}/{name}", f"{frame.real_path}/{name}", depth, filtered_as, frame.ignored, by)

    def _folder(self, folder: int, frame: _WalkFrame) -> Iterator[Found]:
        if frame.ignored and frame.filtered_as is None and self._is_ignored(frame, SKILL_FILE, folder=False):
            frame = frame._replace(filtered_as="ignored", by=_IGNORED_BY)
        is_skill = yield from self._probe(folder, frame)
        if is_skill and self.profile.below_skill == "skip" and frame.filtered_as is None:
            if not self.account:
                return
            frame = frame._replace(filtered_as="inside-skill")
        elif not is_skill:
            self.budget[frame.filtered_as is None] -= 1
        yield from self._children(folder, frame)

    def _probe(self, folder: int, frame: _WalkFrame) -> Generator[Found, None, bool]:
        """Yield the SKILL.md of a folder, if it has one; return whether it has."""
        path = f"{frame.path}/{SKILL_FILE}"
        try:
            status = files.stat_at(folder, SKILL_FILE)
        except FileNotFoundError:
            return False
        except OSError as error:
            self.record.doubt()
            yield Diagnostic(path, "unreadable", _reason(error))
            return True
        kind = files.kind_of(status.st_mode)
        if frame.filtered_as is not None or kind != "file" or not is_text_path(path):
            # It is not read, so nothing else records it.
            self.record.saw(f"{frame.real_path}/{SKILL_FILE}", files.stamp_of(status))
        if frame.filtered_as is not None:
            yield Filtered(os.path.basename(frame.path), path, frame.filtered_as, frame.by)
            return True
        if kind == "link":
            if self.profile.linked_file == "skip":
                yield Diagnostic(path, "link-skipped", "SKILL.md is a link; this profile reads only real files")
            else:
                yield from self._linked_file(frame, path)
            return True
        if kind != "file":
            yield Diagnostic(path, "not-a-file", f"SKILL.md is a {kind}, not a file")
            return kind != "folder"
        yield from self._read(folder, SKILL_FILE, frame, f"{frame.real_path}/{SKILL_FILE}")
        return True

    def _read(
        self, folder: int, name: str, frame: _WalkFrame, real_path: str, *, shown: str = SKILL_FILE
    ) -> Iterator[Found]:
        path = f"{frame.path}/{shown}"
        if not is_text_path(path):
            yield Diagnostic(path, "path-encoding", "the path is not UTF-8 or holds a control character")
            return
        if real_path in self.seen:
            yield Repeat(self.index, path, real_path, frame.real_path)
            return
        self.files += 1
        if (kept := self._unchanged(folder, name, path, real_path)) is not None:
            yield kept._replace(real_dir=frame.real_path)
            return
        try:
            head = self._head(folder, name, real_path)
        except FileNotFoundError:
            self.record.doubt()
            return
        except OSError as error:
            self.record.doubt()
            yield Diagnostic(path, "unreadable", _reason(error))
            return
        self.record.saw(real_path, head.stamp)
        if head.data is not None:
            self.seen.add(real_path)
            yield Candidate(self.index, path, real_path, frame.real_path, head.data, head.stamp)
        elif head.kind != "file":
            yield Diagnostic(path, "not-a-file", f"SKILL.md is a {head.kind}, not a file")
        else:
            yield Diagnostic(path, "file-size", f"{head.size} bytes; the limit is {SKILL_FILE_BYTES}")

    def _head(self, folder: int, name: str, real_path: str) -> files.Head:
        known = self.heads.get(real_path) if self.heads is not None else None
        if known is not None:
            return known
        head = self.read(folder, name)
        if self.heads is not None:
            self.heads[real_path] = head
        return head

    # Links ----------------------------------------------------------------------------------------

    def _not_a_folder(self, parent: int, frame: _WalkFrame, name: str, error: OSError) -> Iterator[Found]:
        """Handle a child that could not be opened as a folder."""
        try:
            kind = files.kind_of(files.stat_at(parent, name).st_mode)
        except OSError:
            self.record.doubt()
            return
        self._charge(frame, kind)
        if kind == "link" and frame.filtered_as is None:
            yield from self._linked_folder(frame)
        elif kind == "link" and frame.by is not None and files.kind_at(f"{frame.path}/{SKILL_FILE}") is not None:
            self.record.followed(frame.path)
            yield Filtered(name, f"{frame.path}/{SKILL_FILE}", "ignored", frame.by)
        elif kind == "folder":
            self.record.doubt()
            yield Diagnostic(frame.path, "unreadable", _reason(error))

    def _charge(self, frame: _WalkFrame, kind: files.Kind) -> None:
        """Charge the budget for what is not a folder: a link costs as much as a folder, five files as much as one."""
        counts = frame.filtered_as is None
        self.others[counts] += 5 if kind == "link" else 1
        if self.others[counts] >= 5:
            self.others[counts] -= 5
            self.budget[counts] -= 1

    def _linked_folder(self, frame: _WalkFrame) -> Iterator[Found]:
        try:
            target = self._target(frame.path)
        except OSError as error:
            # A broken SKILL.md link was reported when its folder was probed.
            if os.path.basename(frame.path) != SKILL_FILE:
                yield _nowhere(frame.path, error)
            return
        self.record.saw(target, files.stamp_at(target))
        if files.kind_at(target) != "folder":
            return
        is_skill = files.kind_at(f"{target}/{SKILL_FILE}") is not None
        if (refusal := self._refusal(frame.path, target, os.path.dirname(target) if is_skill else None)) is not None:
            yield refusal
            return
        if files.is_inside(os.path.dirname(frame.real_path), target):
            yield Diagnostic(frame.path, "link-loop", "the link leads back to a folder above it")
            return
        try:
            folder = files.open_folder(target)
        except OSError as error:
            self.record.doubt()
            yield Diagnostic(frame.path, "unreadable", _reason(error))
            return
        try:
            yield from self._followed(folder, frame._replace(real_path=target))
        finally:
            files.close(folder)

    def _followed(self, folder: int, frame: _WalkFrame) -> Iterator[Found]:
        """Yield what a linked folder holds: a skill, or a folder of skills that is walked once."""
        try:
            files.stat_at(folder, SKILL_FILE)
        except OSError:
            if frame.real_path in self.followed:
                yield Diagnostic(frame.path, "link-loop", "another link led to the same folder; it is walked once")
                return
            self.followed.add(frame.real_path)
        if self.root.kind == "project" and self.root.links == "follow":
            yield from self._behind_link(folder, frame)
        else:
            yield from self._folder(folder, frame)

    def _behind_link(self, folder: int, frame: _WalkFrame) -> Iterator[Found]:
        """Yield what a linked folder of a project holds: it may be any folder of the machine, so little is walked."""
        before, left, linked = dict(self.budget), dict(self.left), dict(self.linked)
        room = {counts: min(before[counts], linked[counts]) for counts in before}
        self.budget.update(room)
        yield from self._folder(folder, frame)
        for counts in before:
            used = room[counts] - self.budget[counts]
            self.budget[counts], self.linked[counts] = before[counts] - used, linked[counts] - used
            if room[counts] < before[counts]:
                self.left_behind_links += self.left[counts] - left[counts]
                self.left[counts] = left[counts]

    def _target(self, path: str) -> str:
        """Return where a link leads; raise OSError if that does not exist."""
        self.record.followed(path)
        return files.resolve_link(path)

    def _linked_file(self, frame: _WalkFrame, path: str) -> Iterator[Found]:
        try:
            target = self._target(path)
        except OSError as error:
            yield Diagnostic(path, "not-a-file", f"SKILL.md is a link; {_nowhere(path, error).message}")
            return
        folder_of_skills = os.path.dirname(os.path.dirname(target))
        is_skill = os.path.basename(target) == SKILL_FILE
        if (refusal := self._refusal(path, target, folder_of_skills if is_skill else None)) is not None:
            yield refusal
            return
        self.record.saw(target, files.stamp_at(target))
        kind = files.kind_at(target)
        if kind != "file":
            yield Diagnostic(path, "not-a-file", f"SKILL.md is a link to a {kind}, not a file")
            return
        try:
            folder = files.open_folder(os.path.dirname(target))
        except OSError as error:
            self.record.doubt()
            yield Diagnostic(path, "unreadable", _reason(error))
            return
        try:
            yield from self._read(folder, os.path.basename(target), frame, target)
        finally:
            files.close(folder)

    def _refusal(self, path: str, target: str, root: str | None) -> Diagnostic | None:
        """Return why a link is not followed, decided on its real target; `root` is the folder to suggest as a root.

        No root is suggested where there is no skill: an untrusted link must not persuade the user to add `/etc`.
        """
        if self.root.spared and files.is_inside(self.root.spared, target):
            return Diagnostic(path, "link-outside", f"a link to {target}, which is too much to walk")
        if self.root.links == "follow":
            return None
        if self.root.links == "never":
            return Diagnostic(path, "link-skipped", f"a link (to {target}); this profile follows no links")
        if any(files.is_inside(target, folder) for folder in self.reachable):
            return None
        message = f"a link to {target}, outside the repository and every root"
        message += how_to_allow(root, self.profile) if root and root != "/" else ""
        return Diagnostic(path, "link-outside", message)


def _patterns_in(path: str) -> list[str] | None:
    """Return the lines of an ignore file; None if it cannot be read."""
    try:
        data = files.read_file(path, limit=_IGNORE_BYTES, links="follow") or b""
    except OSError:
        return None
    return data.decode("utf-8", "replace").splitlines()[:_IGNORE_LINES]


def left_out(root: Root, name: str, profile: Profile) -> Filtered | None:
    """Return what a walk finds instead of a new folder of that name in a root whose ignore files leave it out."""
    found = [_patterns_in(f"{root.path}/{file}") or () for file in profile.ignore_files]
    patterns = [_below_root(one, "") for lines in found for one in lines]
    if not is_ignored(name, patterns, folder=True):
        return None
    return Filtered(name, f"{root.path}/{name}/{SKILL_FILE}", "ignored", _IGNORED_BY)


def _below_root(pattern: str, above: str) -> str:
    """Return a pattern of an ignore file in the folder `above` for paths below the root."""
    kept, text = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    text = text.removeprefix("/")
    return f"{kept}{above}/{text}" if above and text.strip() and not text.startswith("#") else kept + text


def _nowhere(path: str, error: OSError) -> Diagnostic:
    try:
        target = files.link_target(path)
    except OSError:
        # The link was removed in the meantime.
        return Diagnostic(path, "link-broken", _reason(error))
    why = "" if isinstance(error, FileNotFoundError) else f" ({_reason(error)})"
    rule = "link-loop" if error.errno == errno.ELOOP else "link-broken"
    return Diagnostic(path, rule, f"the link leads nowhere: target {target}{why}")


_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _reason(error: OSError) -> str:
    """Return why an entry cannot be read; raise the error again if it is about this process, not about the entry."""
    if error.errno in _SHORTAGES:
        raise error
    return (error.strerror or str(error)).lower()


def is_text_path(path: str) -> bool:
    """Return whether a path can be printed, stored and sent as it is."""
    if path.isascii():
        return path.isprintable()
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not any(c < " " or "\x7f" <= c < "\xa0" for c in path)
