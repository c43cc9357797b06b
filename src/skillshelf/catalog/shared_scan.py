"""Scan roots once for many profiles: read each SKILL.md once, and give every profile its own walk of what was read.

Nearly every entry of a root is a folder with a SKILL.md, a few files and nothing that any profile reports. Every walk
finds such a *plain* folder alike, so it is read once and added to the walks of all profiles; only the other entries
are walked for each profile.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set

from skillshelf.catalog.discovery import (
    NEAR_MISSES,
    SKILL_FILE,
    Found,
    Repeat,
    discover_root,
    is_text_path,
    read_skill_head,
)
from skillshelf.catalog.disk_state import ScanRecord
from skillshelf.catalog.facts import Facts
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Candidate, Root, Stamp

__all__ = [
    "NOTHING_SCANNED",
    "NOT_READ",
    "Only",
    "ProfileWalk",
    "RescannedRoot",
    "RootWalk",
    "ScannedRoot",
    "SharedScan",
    "read_head_at",
]

Only = Mapping[str, Collection[str]]

_ENTRIES_BELOW = 200
"""Entries below a skill beyond which its folder is not plain: walks have limits of their own."""

_DEPTH_BELOW = 16

NOT_READ: Stamp = (0, 0, 0, 0, 0)
"""The stamp of a candidate of a stored walk, whose file is read again when it is asked for."""


class ScannedRoot(NamedTuple):
    """The entries of one folder: the names of plain ones in the order of a walk, and all others.

    Each plain one has the number of folders and of files in it; `folders` and `files` are their sums.
    """

    plain: Mapping[str, tuple[int, int]]
    others: Sequence[tuple[str, bool]]
    folders: int = 0
    files: int = 0

    @classmethod
    def of(cls, plain: Mapping[str, tuple[int, int]], others: Sequence[tuple[str, bool]]) -> "ScannedRoot":
        """Return the entries of a folder with their sums."""
        return cls(plain, others, sum(count for count, _ in plain.values()), sum(count for _, count in plain.values()))


NOTHING_SCANNED = ScannedRoot({}, ())


class RootWalk(NamedTuple):
    """The findings of a profile in one root: the plain folders of a scan, and everything else.

    `used` is how much of the limit of folders everything else used.
    """

    root: Root
    scanned: ScannedRoot
    others: Sequence[Found]
    used: int = 0

    def is_within_limit(self, profile: Profile) -> bool:
        """Return whether a walk of the whole root would visit everything."""
        scanned = self.scanned
        folders, inside = (scanned.folders, scanned.files) if profile.below_skill == "enter" else (0, 0)
        # Files count a fifth of a folder each. The walk looks at its limit before each entry, so the last file does
        # not count; what the other entries left over counts as four files.
        left_over = 4 if scanned.others else 0
        return self.used + folders + max(0, inside + left_over - 1) // 5 < profile.max_directories


class RescannedRoot(NamedTuple):
    """A scanned folder after a change.

    `edited` are the names of plain folders whose SKILL.md was read again, `replaced` those that came, went, or were
    listed again.
    """

    scanned: ScannedRoot
    edited: Set[str]
    replaced: Set[str]


class ProfileWalk(NamedTuple):
    """Everything that a profile finds in its roots."""

    walks: Sequence[RootWalk]
    profile: Profile
    head_of: Callable[[str], files.Head]

    def found(self, among: Collection[str] | None = None, known: Collection[str] = ()) -> list[Found]:
        """Return what was found, root by root in the order of the walk.

        With `among`, of the files in `known` only those with these real paths.
        """
        result: list[Found] = []
        seen: set[str] = set()
        for index, walk in enumerate(self.walks):
            for item in self._items(walk, index, among, known):
                if isinstance(item, Candidate | Repeat):
                    if item.real_path in seen:
                        item = Repeat(index, item.path, item.real_path, item.real_dir)
                    else:
                        seen.add(item.real_path)
                result.append(item)
        return result

    def _items(
        self, walk: RootWalk, index: int, among: Collection[str] | None, known: Collection[str]
    ) -> Iterator[Found]:
        plain = self._names(walk, walk.scanned.plain if among is None else _below(walk, among))
        others = walk.others
        if among is not None:
            others = [item for item in others if _is_about(item, among, known)]
        top, waiting = f"{walk.root.path}/", iter(plain)
        name = next(waiting, None)
        for item in others:
            if isinstance(item, Candidate | Repeat):
                child, below, _ = item.path[len(top) :].partition("/")
                while below and name is not None and self._comes_first(name, child):
                    yield self._candidate(walk, index, name)
                    name = next(waiting, None)
                item = self._with_head(item)._replace(root=index)
            yield item
        while name is not None:
            yield self._candidate(walk, index, name)
            name = next(waiting, None)

    def _names(self, walk: RootWalk, names: Iterable[str]) -> list[str]:
        """Return those of the names that the profile visits, in its order."""
        skipped, skips_hidden = self.profile.skip_directories, walk.root.hidden == "skip"
        visited = [name for name in names if name not in skipped and not (skips_hidden and name.startswith("."))]
        return visited if self.profile.folder_order == "sorted" else visited[::-1]

    def _candidate(self, walk: RootWalk, index: int, name: str) -> Candidate:
        folder = f"{walk.root.real_path}/{name}"
        real_path = f"{folder}/{SKILL_FILE}"
        head = self.head_of(real_path)
        return Candidate(
            index, f"{walk.root.path}/{name}/{SKILL_FILE}", real_path, folder, head.data or b"", head.stamp
        )

    def _with_head(self, item: Candidate | Repeat) -> Candidate | Repeat:
        """Return a candidate with its first bytes, which a stored walk does not hold."""
        if isinstance(item, Candidate) and item.stamp == NOT_READ:
            head = self.head_of(item.real_path)
            return item._replace(head=head.data or b"", stamp=head.stamp)
        return item

    def _comes_first(self, name: str, other: str) -> bool:
        is_before = files.path_bytes(name) < files.path_bytes(other)
        return is_before == (self.profile.folder_order == "sorted")


def _is_about(item: Found, among: Collection[str], known: Collection[str]) -> bool:
    return not isinstance(item, Candidate | Repeat) or item.real_path in among or item.real_path not in known


def _below(walk: RootWalk, among: Collection[str]) -> list[str]:
    """Return the names of those plain folders whose SKILL.md has one of these real paths."""
    top, end = f"{walk.root.real_path}/", f"/{SKILL_FILE}"
    names = [path[len(top) : -len(end)] for path in among if path.startswith(top) and path.endswith(end)]
    return sorted((name for name in names if name in walk.scanned.plain), key=files.path_bytes)


class SharedScan:
    """One scan of the disk for many profiles; with `only`, of these names in each folder and nothing else.

    `heads` keeps what was read, by real path, and `facts` what was parsed. In lists for models, paths are measured from
    the folder `top` on.
    """

    def __init__(self, only: Only | None = None, *, top: str | None = None) -> None:
        self.heads: dict[str, files.Head] = {}
        self.facts = Facts(top)
        self.record = ScanRecord(time.time_ns())
        self._only = only
        self.scanned: dict[str, ScannedRoot] = {}

    def head_of(self, real_path: str) -> files.Head:
        """Return the first bytes of a file that was found; one of a stored scan is read when it is asked for."""
        head = self.heads.get(real_path)
        if head is None:
            head = self.heads[real_path] = read_head_at(real_path)
        return head

    def walk(self, roots: Sequence[Root], profile: Profile, *, repository: str) -> ProfileWalk:
        """Return what a profile finds in its roots."""
        reachable = [repository, *(root.real_path for root in roots if root.real_path)]
        return ProfileWalk([self._walk_root(root, profile, reachable) for root in roots], profile, self.head_of)

    def _walk_root(self, root: Root, profile: Profile, reachable: Sequence[str]) -> RootWalk:
        if root.real_path is None:
            return RootWalk(root, NOTHING_SCANNED, ())
        heads, record = self.heads, self.record
        scanned = self._scan(root, profile)
        if scanned is not None:
            entries = scanned.others
            others, used = discover_root(
                root, profile, reachable=reachable, heads=heads, record=record, entries=entries
            )
            walk = RootWalk(root, scanned, others, used)
            if walk.is_within_limit(profile):
                return walk
        found = discover_root(root, profile, reachable=reachable, heads=heads, record=record, only=self._only).found
        return RootWalk(root, NOTHING_SCANNED, found)

    def _scan(self, root: Root, profile: Profile) -> ScannedRoot | None:
        """Return the scan of a root; None if it has to be walked for this profile alone."""
        assert root.real_path is not None
        if self._only is not None or not is_text_path(root.path):
            return None
        if root.loose_files != "none" and profile.below_skill == "enter":
            # Such a walk takes Markdown files in the folders of a skill for skills.
            return None
        if root.real_path not in self.scanned:
            try:
                self.scanned[root.real_path] = self._scan_folder(root.real_path)
            except OSError:
                return None
        scanned = self.scanned[root.real_path]
        return None if _decides_for_all(scanned, profile) else scanned

    def _scan_folder(self, path: str) -> ScannedRoot:
        plain: dict[str, tuple[int, int]] = {}
        others: list[tuple[str, bool]] = []
        folder = files.open_folder(path)
        try:
            self.record.listed(path, files.stamp_of_open(folder))
            for name, is_folder in files.entries_in(folder):
                counts = self._plain(folder, path, name) if is_folder else None
                if counts is None:
                    others.append((name, is_folder))
                else:
                    plain[name] = counts
        finally:
            files.close(folder)
        return ScannedRoot.of(plain, others)

    def _plain(self, folder: int, path: str, name: str) -> tuple[int, int] | None:
        """Read an entry of a folder that every walk finds alike; return how many folders and files are in it."""
        found = _plain_folder(folder, name) if _is_ordinary(name) else None
        if found is None:
            return None
        self.heads[f"{path}/{name}/{SKILL_FILE}"] = found.head
        self.record.saw(f"{path}/{name}/{SKILL_FILE}", found.head.stamp)
        for below, stamp in found.folders.items():
            self.record.listed(f"{path}/{below}", stamp)
        # Its own folder is a skill, and as such does not count.
        return len(found.folders) - 1, found.files

    def rescan(self, path: str, changed: Collection[str]) -> RescannedRoot | None:
        """Look again at what changed in a scanned folder, by real path; None if more than plain folders did.

        What every walk says about the other entries stays as it was.
        """
        before = self.scanned[path]
        edited, touched = _names_below(path, changed)
        if not edited | touched <= before.plain.keys():
            return None
        try:
            folder = files.open_folder(path)
        except OSError:
            return None
        try:
            names = self._names_now(folder, path, before) if path in changed else before.plain.keys()
            if names is None:
                return None
            gone, again = before.plain.keys() - names, (names - before.plain.keys()) | (touched & names)
            found = {name: self._plain(folder, path, name) for name in again}
            if None in found.values() or not all(self._read_again(f"{path}/{name}") for name in edited - gone):
                return None
        except OSError:
            return None
        finally:
            files.close(folder)
        plain = {name: counts for name, counts in before.plain.items() if name not in gone}
        plain.update((name, counts) for name, counts in found.items() if counts is not None)
        if again - before.plain.keys():
            plain = {name: plain[name] for name in sorted(plain, key=files.path_bytes)}
        return RescannedRoot(ScannedRoot.of(plain, before.others), edited - gone, gone | again)

    def _names_now(self, folder: int, path: str, before: ScannedRoot) -> Set[str] | None:
        """List a folder again; return its plain and new folders, or None if another entry came, went or changed."""
        self.record.listed(path, files.stamp_of_open(folder))
        entries, others = {*files.entries_in(folder)}, {*before.others}
        new = entries - others
        return {name for name, _ in new} if others <= entries and all(is_folder for _, is_folder in new) else None

    def _read_again(self, folder: str) -> bool:
        """Read the SKILL.md of a plain folder that has changed itself, and nothing else in the folder."""
        path = f"{folder}/{SKILL_FILE}"
        head = self.heads[path] = read_head_at(path)
        self.record.saw(path, head.stamp)
        return head.data is not None


def _names_below(path: str, changed: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the names in a folder in which nothing but the SKILL.md has changed, and those in which more has."""
    below: dict[str, set[str]] = {}
    for one in changed:
        if one.startswith(f"{path}/"):
            name, _, rest = one[len(path) + 1 :].partition("/")
            below.setdefault(name, set()).add(rest)
    edited = {name for name, rests in below.items() if rests == {SKILL_FILE}}
    return edited, below.keys() - edited


def _decides_for_all(scanned: ScannedRoot, profile: Profile) -> bool:
    """Return whether a file in a root decides about the folders beside it: a skill of its own, or an ignore file."""
    deciding = (*profile.ignore_files, *((SKILL_FILE,) if profile.root_file == "alone" else ()))
    return bool(deciding) and any(name in deciding for name, _ in scanned.others)


def read_head_at(real_path: str) -> files.Head:
    """Read the first bytes of a file by its real path, of which no component may be a link."""
    path, name = real_path.rsplit("/", 1)
    folder = files.open_folder(path or "/")
    try:
        return read_skill_head(folder, name)
    finally:
        files.close(folder)


# Plain folders ------------------------------------------------------------------------------------


def _is_ordinary(name: str) -> bool:
    """Return whether no walk says anything about a folder for its name alone."""
    return name.lower() not in NEAR_MISSES and not name.endswith(".md") and is_text_path(name)


class _PlainFolder(NamedTuple):
    """A folder that every walk finds alike: its SKILL.md, itself and all folders in it by path, the number of files."""

    head: files.Head
    folders: dict[str, Stamp]
    files: int


def _plain_folder(parent: int, name: str) -> _PlainFolder | None:
    """Return a folder that every walk finds alike; None if walks may differ."""
    try:
        folder = files.open_to_list(parent, name)
    except OSError:
        return None
    folders: dict[str, Stamp] = {}
    try:
        # Before it is listed: whatever changes meanwhile changes the stamp.
        folders[name] = files.stamp_of_open(folder)
        kinds = files.listed_kinds(folder)
        if kinds.pop(SKILL_FILE, None) != "file":
            return None
        count = _files_inside(folder, name, kinds, folders)
        if count is None:
            return None
        head = read_skill_head(folder, SKILL_FILE)
    except OSError:
        return None
    finally:
        files.close(folder)
    return _PlainFolder(head, folders, count + 1) if head.data is not None else None


def _files_inside(folder: int, path: str, kinds: Mapping[str, files.Kind], folders: dict[str, Stamp]) -> int | None:
    """Return the number of files in a folder and add the folders in it; None if a walk may find something there."""
    count = 0
    if len(kinds) > _ENTRIES_BELOW or path.count("/") > _DEPTH_BELOW:
        return None
    for name, kind in kinds.items():
        if name.lower() in NEAR_MISSES or name.casefold() == SKILL_FILE.casefold():
            return None
        if kind == "file":
            count += 1
        elif kind != "folder" or (below := _files_below(folder, name, path, folders)) is None:
            return None
        else:
            count += below
        if len(folders) + count > _ENTRIES_BELOW:
            return None
    return count


def _files_below(parent: int, name: str, path: str, folders: dict[str, Stamp]) -> int | None:
    folder = files.open_to_list(parent, name)
    try:
        folders[f"{path}/{name}"] = files.stamp_of_open(folder)
        return _files_inside(folder, f"{path}/{name}", files.listed_kinds(folder), folders)
    finally:
        files.close(folder)
