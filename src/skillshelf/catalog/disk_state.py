"""Remember what a scan looked at, and tell without reading anything whether the disk is still as it was.

A scan is a function of the folders that it listed, the files whose first bytes it read and the links that it resolved.
As long as all of them have the stamps they had, another scan would find the same.
"""

import marshal
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from errno import ELOOP
from zlib import adler32, crc32

from skillshelf.core import files
from skillshelf.core.limits import SETTLED_NS
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Stamp

__all__ = ["DiskState", "Entries", "ScanRecord", "is_reached"]


Entries = Sequence[tuple[str, bool]]
"""The names in a folder, each with whether it is a folder."""


class _Group(NamedTuple):
    """Entries below one folder: their relative paths, separated by NUL, and their stamps as `files` packs them."""

    folder: str
    paths: bytes
    stamps: bytes

    def updated(self, names: Collection[bytes], seen: Mapping[str, Stamp]) -> "_Group":
        """Return the entries without those below these names, and with others that were seen."""
        start, size = len(self.folder.rstrip("/")) + 1, files.STAMP_BYTES
        added = {files.path_bytes(path[start:] or "."): stamp for path, stamp in seen.items()}
        paths = self.paths.split(b"\0")
        kept = [at for at, path in enumerate(paths) if path not in added and path.partition(b"/")[0] not in names]
        stamps = b"".join(self.stamps[at * size : (at + 1) * size] for at in kept)
        whole = b"\0".join((*(paths[at] for at in kept), *added))
        return _Group(self.folder, whole, stamps + files.pack_stamps(added.values()))


class DiskState(NamedTuple):
    """The stamps of everything that a scan depends on, where each link led, and what some folders hold.

    A folder is in `listings` if its stamp does not tell: on some file systems it stays when an entry comes or goes.
    """

    groups: tuple[_Group, ...]
    links: tuple[tuple[str, str], ...]
    listings: tuple[tuple[str, int], ...] = ()

    def is_current(self) -> bool:
        """Return whether everything is as it was: each folder, file and link is looked at."""
        return (
            all(map(_is_unchanged, self.groups))
            and all(_end_of(path) == end for path, end in self.links)
            and all(_listing_at(path) == listing for path, listing in self.listings)
        )

    def changes(self) -> set[str] | None:
        """Return the real paths of all entries that are not as they were; None if a link leads elsewhere."""
        if any(_end_of(path) != end for path, end in self.links):
            return None
        changed = {path for path, listing in self.listings if _listing_at(path) != listing}
        for group in self.groups:
            found = _changes_in(group)
            if found is None:
                return None
            changed |= found
        return changed

    def has_only(self, folder: str, names: Iterable[str], file: str) -> bool:
        """Return whether in the folders of these names below a folder nothing but that file was looked at."""
        paths = next((b"\0%b\0" % group.paths for group in self.groups if group.folder == folder), b"")
        starts = [b"\0" + files.path_bytes(name) for name in names]
        end = b"/%b\0" % files.path_bytes(file)
        return not any(
            start + b"\0" in paths or paths.count(start + b"/") > paths.count(start + end) for start in starts
        )

    def updated(self, folder: str, names: Collection[str], record: "ScanRecord") -> "DiskState | None":
        """Return the state after a folder was looked at again: entries of these names with all below, and others.

        `record` has what was seen; an entry that it does not have, below none of these names, is as it was. None if
        the record cannot prove anything.
        """
        at = next((at for at, group in enumerate(self.groups) if group.folder == folder), None)
        if at is None or not record.is_settled():
            return None
        prefix = f"{folder.rstrip('/')}/"
        tops = tuple(f"{prefix}{name}/" for name in names)
        listings = {path: listing for path, listing in self.listings if not f"{path}/".startswith(tops)}
        listings.update((path, listing) for path, listing in record.listings.items() if files.is_inside(path, folder))
        added = {path: stamp for path, stamp in record.stamps.items() if files.is_inside(path, folder)}
        groups = [*self.groups]
        groups[at] = groups[at].updated({files.path_bytes(name) for name in names}, added)
        return DiskState(tuple(groups), self.links, tuple(listings.items()))

    def without(self, real_paths: Collection[str]) -> "DiskState":
        """Return the state without the stamps at some real paths."""
        groups = []
        for group in self.groups:
            prefix, size = f"{group.folder.rstrip('/')}/", files.STAMP_BYTES
            paths = group.paths.split(b"\0")
            names = (path.decode("utf-8", "surrogateescape") for path in paths)
            kept = [at for at, name in enumerate(names) if prefix + name not in real_paths]
            if kept:
                stamps = b"".join(group.stamps[at * size : (at + 1) * size] for at in kept)
                groups.append(_Group(group.folder, b"\0".join(paths[at] for at in kept), stamps))
        return self._replace(groups=tuple(groups))

    def joined(self, other: "DiskState") -> "DiskState":
        """Return the state of all that this one or another one knows."""
        return DiskState(self.groups + other.groups, self.links + other.links, self.listings + other.listings)

    @property
    def size(self) -> int:
        """The number of entries and links that are looked at."""
        return sum(group.paths.count(b"\0") + 1 for group in self.groups) + len(self.links)

    def encoded(self) -> bytes:
        """Return the bytes from which `decoded` makes an equal state."""
        return marshal.dumps((tuple(map(tuple, self.groups)), self.links, self.listings))

    @classmethod
    def decoded(cls, data: bytes) -> "DiskState":
        """Return the state in some bytes; raise ValueError or TypeError if they hold none."""
        groups, links, listings = marshal.loads(data)
        made = tuple(_Group(*group) for group in groups)
        shapes = [*((str, bytes, bytes) for _ in made), *((str, str) for _ in links), *((str, int) for _ in listings)]
        if [tuple(map(type, row)) for row in (*made, *links, *listings)] != shapes:
            raise ValueError("not a state of the disk")
        return cls(made, tuple(links), tuple(listings))


def _is_unchanged(group: _Group) -> bool:
    try:
        folder = files.open_folder(group.folder)
    except OSError:
        return False
    try:
        return files.packed_stamps(folder, group.paths) == group.stamps
    finally:
        files.close(folder)


_AT_ONCE = 256
"""Entries whose stamps are compared together, to find those that changed."""


def _changes_in(group: _Group) -> set[str] | None:
    """Return the real paths of the entries of a group that changed or are gone; None if its folder is."""
    try:
        folder = files.open_folder(group.folder)
    except OSError:
        return None
    try:
        now = files.packed_stamps(folder, group.paths)
        if now == group.stamps:
            return set()
        paths = group.paths.split(b"\0")
        stamps = _stamps(now) if now else _stamps_of_each(folder, paths)
    finally:
        files.close(folder)
    prefix = f"{group.folder.rstrip('/')}/"
    changed = [path for path, *both in zip(paths, _stamps(group.stamps), stamps, strict=True) if both[0] != both[1]]
    names = (path.decode("utf-8", "surrogateescape") for path in changed)
    return {group.folder if name == "." else prefix + name for name in names}


def _stamps(packed: bytes) -> list[bytes]:
    return [packed[at : at + files.STAMP_BYTES] for at in range(0, len(packed), files.STAMP_BYTES)]


def _stamps_of_each(folder: int, paths: Sequence[bytes]) -> list[bytes]:
    """Return the stamps of entries of which some are gone; those have none."""
    result: list[bytes] = []
    for start in range(0, len(paths), _AT_ONCE):
        few = paths[start : start + _AT_ONCE]
        stamps = _stamps(files.packed_stamps(folder, b"\0".join(few)))
        result += stamps or [files.packed_stamps(folder, path) for path in few]
    return result


def _end_of(path: str) -> str:
    """Return where a link leads; for one that leads nowhere the error, and how far one gets."""
    try:
        return files.resolve_link(path)
    except OSError as error:
        # Python would follow a chain that the kernel gives up on, link by link.
        far = "" if error.errno == ELOOP else files.real_path(path)
        return f"\0{error.errno}\0{far}"


def _listing_at(path: str) -> int | None:
    """Return the checksum of what a folder holds; None if it cannot be listed."""
    try:
        folder = files.open_folder(path)
    except OSError:
        return None
    try:
        return _checksum(files.entries_in(folder))
    except OSError:
        return None
    finally:
        files.close(folder)


def _checksum(entries: Iterable[tuple[str, bool]]) -> int:
    names = "\0".join(f"{name}/" if is_folder else name for name, is_folder in entries)
    data = names.encode("utf-8", "surrogatepass")
    return crc32(data) << 32 | adler32(data)


def is_reached(folders: Set[str], places: Iterable[str]) -> bool:
    """Return whether a place, such as the end of a link, is one of these folders, in one, or above one."""
    if not folders:
        return False
    above = {folder[:at] for folder in folders for at, letter in enumerate(folder) if letter == "/"} | folders
    inside = tuple(f"{folder}/" for folder in folders)
    return any(place in above or place.startswith(inside) for place in places)


class ScanRecord:
    """The record of what a running scan looks at: stamps and listings; nobody reads one that began at 0."""

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns
        self.stamps: dict[str, Stamp] = {}
        self._links: dict[str, str] = {}
        self.listings: dict[str, int] = {}
        self.roots: dict[str, Entries] = {}
        self._is_provable = True

    def saw(self, real_path: str, stamp: Stamp | None) -> None:
        """Record an entry that was looked at: a listed folder, or a file; None if it has vanished."""
        if stamp is None:
            self._is_provable = False
        elif self.stamps.setdefault(real_path, stamp) != stamp:
            # It changed while the scan looked at it twice.
            self._is_provable = False

    def listed(self, real_path: str, stamp: Stamp) -> None:
        """Record a folder that is about to be listed."""
        self.saw(real_path, stamp)
        if self.at_ns and real_path not in self.listings and not files.stamps_listings(stamp[0]):
            listing = _listing_at(real_path)
            if listing is None:
                self.doubt()
            else:
                self.listings[real_path] = listing

    def entered(self, real_path: str, entries: Entries) -> None:
        """Record what the folder of a root holds, by which a change of the folder is understood later."""
        self.roots[real_path] = entries

    def followed(self, path: str) -> None:
        """Record where a link leads, or how far one that leads nowhere."""
        self._links[path] = _end_of(path)

    def doubt(self) -> None:
        """Record that the scan depends on something that no stamp shows, such as a file that may not be read."""
        self._is_provable = False

    def is_settled(self) -> bool:
        """Return whether the stamps prove what was seen.

        An entry that changed just before the scan may change again within the same tick of the clock, and keep its
        stamp.
        """
        latest = self.at_ns - SETTLED_NS
        return self._is_provable and all(stamp[4] <= latest for stamp in self.stamps.values())

    def state(
        self, roots: Iterable[str], *, without: Collection[str] = (), most: int | None = None
    ) -> DiskState | None:
        """Return the state of the disk, with the entries below each root together, but for those `without`.

        None if there are more than `most`, or if it cannot prove anything.
        """
        if not self.is_settled():
            return None
        waiting = {path: stamp for path, stamp in self.stamps.items() if path not in without}
        if most is not None and len(waiting) + len(self._links) > most:
            return None
        groups = []
        # The longest first: where one root lies inside another, its entries are its own.
        for folder in sorted({*roots, "/"}, key=len, reverse=True):
            prefix = folder.rstrip("/") + "/"
            start = len(prefix)
            inside = {path: stamp for path, stamp in waiting.items() if path.startswith(prefix) or path == folder}
            if not inside:
                continue
            waiting = {path: stamp for path, stamp in waiting.items() if path not in inside}
            paths = b"\0".join(files.path_bytes(path[start:] or ".") for path in inside)
            groups.append(_Group(folder, paths, files.pack_stamps(inside.values())))
        return DiskState(tuple(groups), tuple(self._links.items()), tuple(self.listings.items()))
