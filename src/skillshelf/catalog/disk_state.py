"""Remember what a scan looked at, and tell without reading anything whether the disk is still as it was.

A scan is a function of the folders that it listed, the files whose first bytes it read and the links that it resolved.
As long as all of them have the stamps they had, another scan would find the same.
"""

import marshal
from collections.abc import Collection, Iterable
from errno import ELOOP
from zlib import adler32, crc32

from skillshelf.core import files
from skillshelf.core.limits import SETTLED_NS
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Stamp

__all__ = ["DiskState", "ScanRecord"]


class _Group(NamedTuple):
    """Entries below one folder: their relative paths, separated by NUL, and their stamps as `files` packs them."""

    folder: str
    paths: bytes
    stamps: bytes


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


class ScanRecord:
    """The record of what a running scan looks at; nobody reads one that began at 0."""

    def __init__(self, at_ns: int) -> None:
        self.at_ns = at_ns
        self._stamps: dict[str, Stamp] = {}
        self._links: dict[str, str] = {}
        self._listings: dict[str, int] = {}
        self._is_provable = True

    def saw(self, real_path: str, stamp: Stamp | None) -> None:
        """Record an entry that was looked at: a listed folder, or a file; None if it has vanished."""
        if stamp is None:
            self._is_provable = False
        elif self._stamps.setdefault(real_path, stamp) != stamp:
            # It changed while the scan looked at it twice.
            self._is_provable = False

    def listed(self, real_path: str, stamp: Stamp) -> None:
        """Record a folder that is about to be listed."""
        self.saw(real_path, stamp)
        if self.at_ns and real_path not in self._listings and not files.stamps_listings(stamp[0]):
            listing = _listing_at(real_path)
            if listing is None:
                self.doubt()
            else:
                self._listings[real_path] = listing

    def followed(self, path: str) -> None:
        """Record where a link leads, or how far one that leads nowhere."""
        self._links[path] = _end_of(path)

    def doubt(self) -> None:
        """Record that the scan depends on something that no stamp shows, such as a file that may not be read."""
        self._is_provable = False

    def state(
        self, roots: Iterable[str], *, without: Collection[str] = (), most: int | None = None
    ) -> DiskState | None:
        """Return the state of the disk, with the entries below each root together, but for those `without`.

        None if there are more than `most`, or if it cannot prove anything: an entry that changed just before the scan
        may change again within the same tick of the clock, and keep its stamp.
        """
        latest = self.at_ns - SETTLED_NS
        if not self._is_provable or any(stamp[4] > latest for stamp in self._stamps.values()):
            return None
        waiting = {path: stamp for path, stamp in self._stamps.items() if path not in without}
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
        return DiskState(tuple(groups), tuple(self._links.items()), tuple(self._listings.items()))
