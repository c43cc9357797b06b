"""Read from the disk: the only module that does; `disk_writes` is the one that writes.

Everything is opened relative to a directory descriptor, one component at a time, and no component may be
a link. To follow a link, a caller resolves it by `resolve_link`, decides on the target, and opens that;
if the path has become a link meanwhile, opening it fails.
"""

import os
import stat
import sys
from collections.abc import Callable, Container, Sequence
from typing import Literal, NamedTuple, NoReturn

from skillshelf.core.limits import FIRST_READ, FRONTMATTER_BYTES, LINKS_FOLLOWED, WALK_DEPTH
from skillshelf.core.values import Stamp

__all__ = [
    "Contents",
    "Folder",
    "Head",
    "Kind",
    "Measured",
    "NotRegular",
    "TooLarge",
    "Tree",
    "begins_with",
    "close",
    "entries_in",
    "from_system",
    "is_inside",
    "is_own_file",
    "is_own_folder",
    "kind_at",
    "kind_of",
    "link_target",
    "measure",
    "names_in",
    "open_folder",
    "open_folder_at",
    "open_to_read",
    "path_bytes",
    "read_file",
    "read_head",
    "real_path",
    "refuse_kind",
    "regular",
    "resolve_link",
    "stamp_at",
    "stamp_below",
    "stamp_of",
    "stamps_in",
    "stat_at",
    "to_system",
]

Kind = Literal["file", "folder", "link", "pipe", "socket", "device"]

# O_PATH needs permission to pass through a folder, not to read it.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, so that a pipe in place of a file cannot stall us.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# The largest allowed frontmatter with both fences, and a little more to detect a larger one.
_MOST = FRONTMATTER_BYTES + FIRST_READ

close = os.close


# Paths are UTF-8 on every system we run on; only an odd locale makes Python decode them otherwise.
_UTF8 = sys.getfilesystemencoding().lower() == "utf-8"


def from_system(path: str) -> str:
    """Return a path that Python decoded as its UTF-8 text."""
    return path if _UTF8 else os.fsencode(path).decode("utf-8", "surrogateescape")


def to_system(path: str) -> str | bytes:
    """Return a path as Python's own functions take it."""
    return path if _UTF8 else path_bytes(path)


def path_bytes(path: str) -> bytes:
    """Return the bytes of a path on disk, by which paths are sorted and measured in every locale."""
    return path.encode("utf-8", "surrogateescape")


class Head(NamedTuple):
    """The first bytes and the state of a file; `data` is None if it is not a regular file or too large."""

    data: bytes | None
    kind: Kind
    stamp: Stamp

    @property
    def size(self) -> int:
        """The size of the whole file in bytes."""
        return self.stamp[2]


def open_folder(path: str) -> int:
    """Open a folder by an absolute path of which no component is a link."""
    descriptor = os.open("/", _PASS)
    for name in path.split("/"):
        if not name:
            continue
        try:
            following = os.open(to_system(name), _PASS, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = following
    return descriptor


def open_folder_at(folder: int, name: str) -> int:
    """Open a folder directly below another; fail for a link."""
    return os.open(to_system(name), _PASS, dir_fd=folder)


def names_in(folder: int) -> list[str]:
    """Return the names in a folder sorted by bytes, so that the order on disk does not matter."""
    return [name for name, _ in entries_in(folder)]


def entries_in(folder: int) -> list[tuple[str, bool]]:
    """Return the names in a folder sorted by bytes, each with whether it is a folder, not a link to one."""
    descriptor = os.open(".", _LIST, dir_fd=folder)
    try:
        with os.scandir(descriptor) as scan:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan]
    finally:
        os.close(descriptor)
    # For valid text the order of characters is that of their bytes.
    if all(name.isascii() for name, _ in entries):
        entries.sort()
    else:
        entries.sort(key=lambda entry: os.fsencode(entry[0]))
    return entries if _UTF8 else [(from_system(name), is_folder) for name, is_folder in entries]


def stat_at(folder: int, name: str) -> os.stat_result:
    """Return the status of an entry itself, never of a link's target."""
    return os.stat(to_system(name), dir_fd=folder, follow_symlinks=False)


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the stamp of a file from its status."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def stamp_below(folder: int, path: str) -> Stamp | None:
    """Return the stamp of the entry at a path below a folder, or None."""
    try:
        return stamp_of(os.stat(to_system(path), dir_fd=folder, follow_symlinks=False))
    except OSError:
        return None


def stamp_at(path: str) -> Stamp | None:
    """Return the stamp of the entry at a path, never of a link's target, or None."""
    try:
        return stamp_of(os.lstat(to_system(path)))
    except (OSError, ValueError):
        return None


def kind_of(mode: int) -> Kind:
    """Return the kind of a file from its mode."""
    return _KINDS.get(stat.S_IFMT(mode), "device")


_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


def kind_at(path: str) -> Kind | None:
    """Return the kind of the entry at a path, or None if there is none."""
    try:
        return kind_of(os.lstat(to_system(path)).st_mode)
    except (OSError, ValueError):
        return None


def read_head(folder: int, name: str, *, limit: int, enough: Callable[[bytes], bool], most: int = _MOST) -> Head:
    """Read the first 4 KiB of a regular file, and up to `most` bytes if those are not enough."""
    descriptor = os.open(to_system(name), _READ, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        kind = kind_of(status.st_mode)
        if kind != "file" or status.st_size > limit:
            return Head(None, kind, stamp_of(status))
        data = os.read(descriptor, FIRST_READ)
        if len(data) == FIRST_READ and status.st_size > FIRST_READ and not enough(data):
            data += _read_up_to(descriptor, most - FIRST_READ)
        return Head(data, kind, stamp_of(status))
    finally:
        os.close(descriptor)


def read_file(path: str, *, limit: int, links: Literal["follow", "never"]) -> bytes | None:
    """Return the bytes of a file, or None if it is larger than the limit or not a regular file."""
    descriptor = os.open(to_system(path), _READ & ~os.O_NOFOLLOW if links == "follow" else _READ)
    try:
        status = os.fstat(descriptor)
        if kind_of(status.st_mode) != "file" or status.st_size > limit:
            return None
        data = _read_up_to(descriptor, limit + 1)
        return data if len(data) <= limit else None
    finally:
        os.close(descriptor)


def begins_with(path: str, start: bytes) -> bool:
    """Return whether a file begins with these bytes; a link is followed."""
    descriptor = os.open(to_system(path), _READ & ~os.O_NOFOLLOW)
    try:
        return os.read(descriptor, len(start)) == start
    finally:
        os.close(descriptor)


def _read_up_to(descriptor: int, limit: int) -> bytes:
    parts = []
    while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 16))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def open_to_read(path: str) -> int:
    """Open a regular file that the user named; a link is followed."""
    _refuse_irregular(os.stat(to_system(path)).st_mode)
    return regular(os.open(to_system(path), _READ & ~os.O_NOFOLLOW))


def regular(descriptor: int) -> int:
    """Return the descriptor of a regular file; close any other and raise."""
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def resolve_link(path: str) -> str:
    """Return the target of a path with every link followed; raise OSError if it does not exist."""
    # The kernel gives up after 40 links; realpath would follow thousands, one by one.
    os.stat(to_system(path))
    return _as_text(os.path.realpath(to_system(path), strict=True))


def real_path(path: str) -> str:
    """Return a path with every link followed as far as it exists."""
    return _as_text(os.path.realpath(to_system(path)))


def _as_text(path: str | bytes) -> str:
    return path if isinstance(path, str) else path.decode("utf-8", "surrogateescape")


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is this resolved folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class NotRegular(OSError):
    """The entry at a path is a link, pipe, socket or device."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.kind = kind


class TooLarge(OSError):
    """A file has more bytes than may be read."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Contents(NamedTuple):
    """The bytes of a file, its modification time, and whether its owner may execute it."""

    data: bytes
    mtime_ns: int
    runnable: bool


class Measured(NamedTuple):
    """The SHA-256 of a file in hex, its stamp when it was opened and after it was read, and the owner's execute bit."""

    sha256: str
    before: Stamp
    after: Stamp
    executable: bool


class Tree(NamedTuple):
    """The entries below a folder by relative path: files with their stamps, folders, and others with their kind."""

    files: dict[str, Stamp]
    folders: list[str]
    others: dict[str, Kind]
    complete: bool
    other_stamps: dict[str, Stamp]


class Folder:
    """An open folder, for reading what lies below it; use it in a `with` statement."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = open_folder(path)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def read(self, segments: Sequence[str], *, limit: int) -> "Contents":
        """Read a regular file; raise IsADirectoryError, NotRegular or TooLarge otherwise."""
        data, status = self._read(segments, limit)
        return Contents(data, status.st_mtime_ns, bool(status.st_mode & stat.S_IXUSR))

    def _read(self, segments: Sequence[str], limit: int) -> tuple[bytes, os.stat_result]:
        descriptor = self._open_file(segments)
        try:
            status = os.fstat(descriptor)
            _refuse_irregular(status.st_mode)
            if status.st_size > limit:
                raise TooLarge(status.st_size)
            data = _read_up_to(descriptor, limit + 1)
            if len(data) > limit:
                raise TooLarge(len(data))
            return data, status
        finally:
            os.close(descriptor)

    def _open_file(self, segments: Sequence[str]) -> int:
        parent = self._open(segments[:-1])
        try:
            # Checked before it is opened: opening a device can have effects.
            _refuse_irregular(stat_at(parent, segments[-1]).st_mode)
            return os.open(to_system(segments[-1]), _READ, dir_fd=parent)
        finally:
            os.close(parent)

    def measure(self, segments: Sequence[str]) -> Measured:
        """Digest a regular file without holding all of it in memory; raise as `read` does."""
        from hashlib import sha256

        descriptor = self._open_file(segments)
        try:
            status = os.fstat(descriptor)
            _refuse_irregular(status.st_mode)
            digest = sha256()
            while part := os.read(descriptor, 1 << 16):
                digest.update(part)
            after = os.fstat(descriptor)
            return Measured(digest.hexdigest(), stamp_of(status), stamp_of(after), bool(after.st_mode & stat.S_IXUSR))
        finally:
            os.close(descriptor)

    def resolve(self, segments: Sequence[str]) -> tuple[str, ...]:
        """Return the segments with every link followed; raise NotRegular for one that leaves this folder.

        Nothing is opened through a link: what is read next is opened by the returned segments, without links, so a
        link that appears or changes meanwhile is an error there.
        """
        real: list[str] = []
        waiting = [*reversed(segments)]
        links = 0
        while waiting:
            name = waiting.pop()
            if name == ".." and real:
                real.pop()
            elif name == "..":
                raise NotRegular("link")
            elif name not in ("", "."):
                try:
                    target = self._link_at(real, name)
                except FileNotFoundError:
                    if links:
                        raise NotRegular("link") from None
                    raise
                if target is None:
                    real.append(name)
                    continue
                links += 1
                if links > LINKS_FOLLOWED or (target.startswith("/") and not is_inside(target, self._path)):
                    raise NotRegular("link")
                if target.startswith("/"):
                    real, target = [], target[len(self._path.rstrip("/")) :]
                waiting += reversed(target.split("/"))
        return tuple(real)

    def _link_at(self, segments: Sequence[str], name: str) -> str | None:
        """Return the target of an entry that is a link, else None."""
        parent = self._open(segments)
        try:
            if kind_of(stat_at(parent, name).st_mode) != "link":
                return None
            target: bytes = os.readlink(name.encode("utf-8", "surrogateescape"), dir_fd=parent)
        finally:
            os.close(parent)
        return target.decode("utf-8", "surrogateescape")

    def mode(self, segments: Sequence[str]) -> int:
        """Return the permission bits of an entry itself."""
        parent = self._open(segments[:-1])
        try:
            return stat.S_IMODE(stat_at(parent, segments[-1]).st_mode)
        finally:
            os.close(parent)

    def has(self, name: str) -> bool:
        """Return whether an entry of that name, of any kind, lies directly in this folder."""
        return stamp_below(self._descriptor, name) is not None

    def children(self, segments: Sequence[str], *, links: Literal["inside", "never"] = "never") -> list[str]:
        """Return the names of the files and folders in a folder; folders end with a slash.

        Links are left out, or with `inside` those that leave this folder or lead nowhere.
        """
        descriptor = self._open(segments)
        try:
            kinds = [(name, kind_of(stat_at(descriptor, name).st_mode)) for name in names_in(descriptor)]
        finally:
            os.close(descriptor)
        if links == "inside":
            kinds = [(name, self._kind_behind((*segments, name)) if kind == "link" else kind) for name, kind in kinds]
        return [name + ("/" if kind == "folder" else "") for name, kind in kinds if kind in ("file", "folder")]

    def _kind_behind(self, segments: Sequence[str]) -> Kind:
        """Return the kind of what a link leads to; `link` if that is not inside this folder."""
        try:
            real = self.resolve(segments)
            if not real:
                return "folder"
            parent = self._open(real[:-1])
            try:
                return kind_of(stat_at(parent, real[-1]).st_mode)
            finally:
                os.close(parent)
        except OSError:
            return "link"

    def files(self, most: int, *, without: Container[str] = ()) -> tuple[list[str], bool]:
        """Return the regular files below this folder, and whether that is all of them; links are left out.

        `without` are names at the top that are left out, too.
        """
        found: list[str] = []
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            segments = waiting.pop()
            # Each folder is opened from the top, so the cost of a deep one grows with its depth.
            if len(segments) > WALK_DEPTH:
                return found, False
            try:
                names = self.children(segments)
            except OSError:
                return found, False
            most -= len(names)
            if most < 0:
                return found, False
            for name in names:
                if not segments and name.rstrip("/") in without:
                    continue
                if name.endswith("/"):
                    waiting.append((*segments, name[:-1]))
                else:
                    found.append("/".join((*segments, name)))
        return found, True

    def tree(
        self, most: int, *, without: Container[str], without_at_top: Container[str] = (), depth: int = WALK_DEPTH
    ) -> Tree:
        """Return every entry below this folder except some names; no file is read and no link followed."""
        tree = Tree({}, [], {}, complete=True, other_stamps={})
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            segments = waiting.pop()
            if len(segments) > depth:
                return tree._replace(complete=False)
            descriptor = self._open(segments)
            try:
                names = [n for n in names_in(descriptor) if n not in without and (segments or n not in without_at_top)]
                entries = [(name, stat_at(descriptor, name)) for name in names]
            finally:
                os.close(descriptor)
            most -= len(entries)
            if most < 0:
                return tree._replace(complete=False)
            for name, status in entries:
                path, kind = "/".join((*segments, name)), kind_of(status.st_mode)
                if kind == "file":
                    tree.files[path] = stamp_of(status)
                elif kind == "folder":
                    tree.folders.append(path)
                    waiting.append((*segments, name))
                else:
                    tree.others[path] = kind
                    tree.other_stamps[path] = stamp_of(status)
        return tree

    def read_stamped(self, segments: Sequence[str], *, limit: int) -> tuple[bytes, Stamp]:
        """Read a regular file and return its bytes with its stamp."""
        data, status = self._read(segments, limit)
        return data, stamp_of(status)

    def _open(self, segments: Sequence[str]) -> int:
        descriptor = os.open(".", _PASS, dir_fd=self._descriptor)
        for name in segments:
            try:
                following = os.open(to_system(name), _PASS, dir_fd=descriptor)
            except OSError as error:
                raise _not_passable(descriptor, name, error) from None
            finally:
                os.close(descriptor)
            descriptor = following
        return descriptor


def _not_passable(folder: int, name: str, error: OSError) -> OSError:
    """Return the error for a path component that is not a folder; systems differ in their error for a link."""
    try:
        kind = kind_of(stat_at(folder, name).st_mode)
    except OSError:
        return error
    if kind == "link":
        return NotRegular("link")
    return error if kind == "folder" else FileNotFoundError(name)


def _refuse_irregular(mode: int) -> None:
    kind = kind_of(mode)
    if kind != "file":
        refuse_kind(kind)


def refuse_kind(kind: Kind) -> NoReturn:
    """Raise the error for an entry that is not a regular file."""
    if kind == "folder":
        raise IsADirectoryError
    raise NotRegular(kind)


def is_own_file(path: str) -> bool:
    """Return whether a path is a regular file that belongs to this user and that no other user can write."""
    return _is_own(path, stat.S_ISREG)


def is_own_folder(path: str) -> bool:
    """Return whether a path is a folder, not a link, that belongs to this user and that no other user can write."""
    return _is_own(path, stat.S_ISDIR)


def _is_own(path: str, is_kind: Callable[[int], bool]) -> bool:
    try:
        status = os.lstat(to_system(path))
    except OSError:
        return False
    return is_kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def measure(path: str) -> tuple[int, str]:
    """Return the size and the digest of a regular file without holding all of it in memory."""
    from hashlib import sha256

    descriptor = os.open(to_system(path), _READ)
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode)
        size, digest = 0, sha256()
        while part := os.read(descriptor, 1 << 16):
            size += len(part)
            digest.update(part)
        return size, f"sha256:{digest.hexdigest()}"
    finally:
        os.close(descriptor)


def stamps_in(folder: str) -> dict[str, Stamp]:
    """Return the stamp of every entry of a folder by name."""
    with os.scandir(to_system(folder)) as entries:
        return {os.fsdecode(entry.name): stamp_of(entry.stat(follow_symlinks=False)) for entry in entries}


def link_target(path: str) -> str:
    """Return the target that a link names, which may be anywhere."""
    return os.fsdecode(os.readlink(os.fsencode(path))) if _UTF8 else from_system(os.readlink(path))
