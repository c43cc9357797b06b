"""Read from the disk: the only module that does; `disk_writes` is the one that writes.

Everything is opened relative to a directory descriptor, one component at a time, and no component may be
a link. To follow a link, a caller resolves it by `resolve_link`, decides on the target, and opens that;
if the path has become a link meanwhile, opening it fails.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

from skillshelf.core.limits import FIRST_READ, FRONTMATTER_BYTES, LINKS_FOLLOWED, WALK_DEPTH
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Stamp

__all__ = [
    "STAMP_BYTES",
    "Contents",
    "Folder",
    "Head",
    "Kind",
    "Measured",
    "NotOfRoot",
    "NotRegular",
    "TooLarge",
    "Tree",
    "WholeFolder",
    "begins_with",
    "belongs_to_user",
    "close",
    "entries_in",
    "from_system",
    "has_native_core",
    "identity_at",
    "is_inside",
    "is_own_file",
    "is_own_folder",
    "is_program",
    "kind_at",
    "kind_of",
    "link_target",
    "listed_kinds",
    "measure",
    "names_in",
    "native_core",
    "open_folder",
    "open_folder_at",
    "open_folder_of",
    "open_own_file",
    "open_to_list",
    "open_to_read",
    "owner_of_open",
    "pack_stamps",
    "packed_stamps",
    "path_bytes",
    "read_at",
    "read_file",
    "read_head",
    "read_of_root",
    "read_own_file",
    "read_whole",
    "reader",
    "real_path",
    "refuse_kind",
    "regular",
    "resolve_link",
    "stamp_at",
    "stamp_below",
    "stamp_of",
    "stamp_of_open",
    "stamps_in",
    "stamps_listings",
    "stat_at",
    "state_at",
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


_rights_of_root: list[str] = []


def reader() -> tuple[object, ...]:
    """Return what decides which files this process may read: user, groups, and for root the rights it started with."""
    user = os.geteuid()
    if user == 0 and not _rights_of_root:
        # A root without the right to read everything sees less.
        try:
            with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
                _rights_of_root.append(next((line for line in lines if line.startswith("CapEff")), ""))
        except OSError:
            _rights_of_root.append("")
    return user, os.getegid(), os.getgroups(), *(_rights_of_root if user == 0 else ())


def path_bytes(path: str) -> bytes:
    """Return the bytes of a path on disk, by which paths are sorted and measured in every locale."""
    return path.encode("utf-8", "surrogateescape")


# Native core --------------------------------------------------------------------------------------


if TYPE_CHECKING:

    class _NativeCore(Protocol):
        """The functions of the optional extension `_native`; each does what the Python code that calls it does."""

        BEFORE: int
        AFTER: int
        MOST_TRIES: int

        def packed_stamps(self, folder: int, paths: bytes, /) -> bytes: ...

        def compile_words(self, text: bytes, lengths: bytes, plan: bytes, /) -> object: ...

        def find_words(self, words: object, text: bytes, /) -> tuple[bytes, bytes, bytes] | None: ...

        def possible_signs(self, words: object, text: bytes, first: int, count: int, /) -> bytes | None: ...


_INTERFACE = 3
"""The interface of the extension that this module can use; an older or newer one is left alone."""

_native_cores: "list[_NativeCore | None]" = []
"""The extension, or None if it cannot be used; empty before it was needed."""


def native_core() -> "_NativeCore | None":
    """Return the extension, or None where it is missing, broken or switched off by `SKILLSHELF_NATIVE=off`."""
    if os.environ.get("SKILLSHELF_NATIVE") == "off":
        return None
    if not _native_cores:
        try:
            from skillshelf.core import _native  # type: ignore[attr-defined]  # it has no types

            fits = (_native.INTERFACE, _native.FIRST_READ) == (_INTERFACE, FIRST_READ)
        except (ImportError, AttributeError, SyntaxError, SystemError):
            fits = False
        _native_cores.append(_native if fits else None)
    return _native_cores[0]


def has_native_core() -> bool:
    """Return whether the extension is used."""
    return native_core() is not None


# Reading ------------------------------------------------------------------------------------------


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
    return _opened_below(os.open("/", _PASS), filter(None, path.split("/")), _PASS)


def open_folder_of(process: int, path: str) -> int:
    """Open a folder as another process sees it, by an absolute path of which no component is a link there."""
    top = os.open(f"/proc/{process}/root", _PASS & ~os.O_NOFOLLOW)
    return _opened_below(top, path.split("/")[1:], _LIST)


def _opened_below(descriptor: int, names: Iterable[str], flags: int) -> int:
    """Open one folder after another, each below the one before, which is closed."""
    for name in names:
        try:
            following = os.open(to_system(name), flags, dir_fd=descriptor)
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


def open_to_list(folder: int, name: str) -> int:
    """Open a folder directly below another for `listed_kinds`; fail for a link, and where names cannot be read."""
    return os.open(to_system(name), _LIST, dir_fd=folder)


def listed_kinds(folder: int) -> dict[str, Kind]:
    """Return the kinds of the entries of a folder that was opened by `open_to_list`."""
    with os.scandir(folder) as scan:
        return {from_system(entry.name): _kind_of_entry(entry) for entry in scan}


def _kinds_in(folder: int) -> list[tuple[str, Kind]]:
    """Return the names in a folder sorted by bytes, each with its kind as the listing gives it."""
    descriptor = os.open(".", _LIST, dir_fd=folder)
    try:
        with os.scandir(descriptor) as scan:
            entries = [(from_system(entry.name), _kind_of_entry(entry)) for entry in scan]
    finally:
        os.close(descriptor)
    return sorted(entries, key=lambda entry: path_bytes(entry[0]))


def _kind_of_entry(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "link" if entry.is_symlink() else kind_of(entry.stat(follow_symlinks=False).st_mode)


def owner_of_open(descriptor: int) -> int:
    """Return the user id of the owner of an open file or folder."""
    return os.fstat(descriptor).st_uid


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


def identity_at(path: str) -> tuple[int, int] | None:
    """Return device and inode of what a path leads to, which are the same by any other name; None if nothing does."""
    try:
        status = os.stat(to_system(path))
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def state_at(path: str) -> tuple[int, ...] | None:
    """Return what tells two states of an entry apart, or the error that hides it; None only if nothing is there."""
    try:
        status = os.lstat(to_system(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        return (error.errno or 0,)
    except ValueError:
        return (0,)
    return (*stamp_of(status), status.st_uid, status.st_mode)


def stamp_of_open(descriptor: int) -> Stamp:
    """Return the stamp of an open file or folder."""
    return stamp_of(os.fstat(descriptor))


_STAMPED = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "ramfs", "zfs", "bcachefs", "apfs", "hfs"}
)
"""File systems on which the stamp of a folder changes whenever an entry comes or goes."""

_devices_known: dict[int, bool] = {}


def stamps_listings(device: int) -> bool:
    """Return whether the stamp of a folder on a device tells that its entries are the same.

    Not on an overlay, whose folders have the stamp of one layer, nor where nothing is known: FAT, FUSE, networks.
    """
    if device not in _devices_known:
        _devices_known.update((number, name in _STAMPED) for number, name in _mounted())
    return _devices_known.setdefault(device, False)


def _mounted() -> list[tuple[int, str]]:
    """Return the device number and the type of every mounted file system; nothing where the system does not say."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
            fields = [line.partition(" - ") for line in lines]
        numbers = [before.split()[2].split(":") for before, _, _ in fields]
        kinds = [after.split()[0] for _, _, after in fields]
        return [(os.makedev(int(major), int(minor)), kind) for (major, minor), kind in zip(numbers, kinds, strict=True)]
    except (OSError, ValueError, IndexError):
        return []


STAMP_BYTES = 40
"""The bytes of a packed stamp."""


def pack_stamps(stamps: Iterable[Stamp]) -> bytes:
    """Return stamps as bytes that are equal if and only if the stamps are."""
    from array import array

    return array("Q", [number & _64_BITS for stamp in stamps for number in stamp]).tobytes()


def packed_stamps(folder: int, paths: bytes) -> bytes:
    """Return the stamps of the entries at paths below a folder, separated by NUL, as `pack_stamps` does.

    The result is empty if an entry is missing. No link is followed in the last component of a path.
    """
    if (native := native_core()) is not None:
        return native.packed_stamps(folder, paths)
    from array import array

    stat_of = os.stat
    numbers: list[int] = []
    add = numbers.extend
    try:
        for path in paths.split(b"\0"):
            status = stat_of(path, dir_fd=folder, follow_symlinks=False)
            add((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    except OSError:
        return b""
    try:
        return array("Q", numbers).tobytes()
    except OverflowError:
        # Times before 1970 are negative.
        return array("Q", [number & _64_BITS for number in numbers]).tobytes()


_64_BITS = (1 << 64) - 1


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


def is_program(path: str) -> bool:
    """Return whether a path leads to a regular file that may be executed."""
    try:
        mode = os.stat(to_system(path)).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


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


def read_whole(folder: int, name: str, *, limit: int) -> Head:
    """Read a whole regular file by one call, or by more if it changes meanwhile."""
    descriptor = os.open(to_system(name), _READ, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        kind = kind_of(status.st_mode)
        if kind != "file" or status.st_size > limit:
            return Head(None, kind, stamp_of(status))
        # One byte more than the file has: a shorter answer means that this was all.
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:
            data += _read_up_to(descriptor, limit + 1 - len(data))
            status = os.fstat(descriptor)
        return Head(data if len(data) <= limit else None, kind, stamp_of(status))
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


class NotOfRoot(OSError):
    """A file may have been written by somebody else than root; the message says how."""


def read_of_root(path: str, *, limit: int) -> bytes:
    """Return the bytes of a file that nobody but root can have put there; raise OSError for any other.

    The file and every folder above it belong to root, are writable by nobody else, and are no links. All of that is
    asked of what was opened, so that nothing can change between the question and the use.
    """
    names = path.split("/")[1:]
    if not path.startswith("/") or not {"", ".", ".."}.isdisjoint(names):
        raise NotOfRoot("the path must be absolute, without empty and dotted parts")
    above, descriptor = "", os.open("/", _PASS)
    try:
        _refuse_others(descriptor, "/")
        for number, name in enumerate(names, 1):
            above = f"{above}/{name}"
            inner = _open_unlinked(descriptor, name, _READ if number == len(names) else _PASS, above)
            os.close(descriptor)
            descriptor = inner
            _refuse_others(descriptor, above)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotOfRoot(f"{path} is a {kind_of(status.st_mode)}, not a regular file")
        data = _read_up_to(descriptor, limit + 1) if status.st_size <= limit else b""
        if status.st_size > limit or len(data) > limit:
            raise NotOfRoot(f"{path} is larger than {limit} bytes")
        return data
    finally:
        os.close(descriptor)


def _open_unlinked(folder: int, name: str, flags: int, path: str) -> int:
    try:
        return os.open(to_system(name), flags, dir_fd=folder)
    except OSError:
        # The name in a message need not be what was opened: nothing is decided by it.
        if stat.S_ISLNK(stat_at(folder, name).st_mode):
            raise NotOfRoot(f"{path} is a link") from None
        raise


def _refuse_others(descriptor: int, path: str) -> None:
    """Raise unless what was opened belongs to root and nobody else can write it."""
    status = os.fstat(descriptor)
    if status.st_uid != 0:
        raise NotOfRoot(f"{path} belongs to user {status.st_uid}, not to root")
    if status.st_mode & 0o022:
        who = "everybody" if status.st_mode & 0o002 else "its group"
        # A folder such as /tmp is meant to be written by everybody.
        is_shared = status.st_mode & stat.S_ISVTX
        help_text = "keep the file in a folder of root" if is_shared else f"as root: chmod go-w {path}"
        raise NotOfRoot(f"{path} can be written by {who} ({help_text})")


def open_own_file(path: str) -> int:
    """Open a regular file that belongs to this user and that no other user can write; no link is followed."""
    descriptor = regular(os.open(to_system(path), _READ))
    if not _is_private(os.fstat(descriptor)):
        os.close(descriptor)
        raise PermissionError(path)
    return descriptor


def read_own_file(path: str, *, limit: int) -> bytes | None:
    """Return the bytes of such a file, or None if it has more than `limit`."""
    descriptor = open_own_file(path)
    try:
        data = _read_up_to(descriptor, limit + 1)
    finally:
        os.close(descriptor)
    return data if len(data) <= limit else None


read_at = os.pread


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
    """Return a path with every link followed as far as it exists, and as it may be read."""
    try:
        return _as_text(os.path.realpath(to_system(path)))
    except OSError:
        # What a link of another process says is not told to everybody.
        above, _, name = path.rstrip("/").rpartition("/")
        return f"{real_path(above or '/').rstrip('/')}/{name}"


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


class WholeFolder(NamedTuple):
    """Every file below a folder with its bytes, entries of other kinds, and the folders that were not entered.

    `complete` is False if a limit was reached or an entry changed its kind meanwhile.
    """

    files: dict[str, Contents]
    others: dict[str, Kind]
    skipped: list[str]
    complete: bool


class Folder:
    """An open folder, for reading what lies below it; use it in a `with` statement.

    With `descriptor` it is one that is open already, and `path` is only its name. With `parent` it is the folder of
    that name directly below one that is open.
    """

    def __init__(self, path: str, *, descriptor: int | None = None, parent: "Folder | None" = None) -> None:
        self._path = path
        self._descriptor: int
        if parent is not None:
            self._descriptor = open_folder_at(parent._descriptor, path.rpartition("/")[2])
        else:
            self._descriptor = open_folder(path) if descriptor is None else os.dup(descriptor)

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

    def kind(self, path: str) -> Kind | None:
        """Return the kind of the entry at a path below this folder, as `kind_at` does, or None if there is none."""
        try:
            return kind_of(os.stat(to_system(path), dir_fd=self._descriptor, follow_symlinks=False).st_mode)
        except (OSError, ValueError):
            return None

    def has(self, name: str) -> bool:
        """Return whether an entry of that name, of any kind, lies directly in this folder."""
        return stamp_below(self._descriptor, name) is not None

    def children(self, segments: Sequence[str], *, links: Literal["inside", "never"] = "never") -> list[str]:
        """Return the names of the files and folders in a folder; folders end with a slash.

        Links are left out, or with `inside` those that leave this folder or lead nowhere.
        """
        descriptor = self._open(segments)
        try:
            kinds = _kinds_in(descriptor)
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

    def contents(self, *, most: int, limit: int, without: Container[str] = (), depth: int = WALK_DEPTH) -> WholeFolder:
        """Read every file below this folder, at most so many of so many bytes together; no link is followed.

        Folders with a name in `without` are named and not entered, wherever they are.
        """
        whole = WholeFolder({}, {}, [], complete=True)
        waiting = [""]
        try:
            while waiting:
                above = waiting.pop()
                first, *rest = above.split("/")[:-1] or ["."]
                descriptor = _opened_below(open_to_list(self._descriptor, first), rest, _LIST)
                try:
                    for name, kind in listed_kinds(descriptor).items():
                        path = above + name
                        if len(whole.files) + len(whole.others) + len(waiting) > most:
                            return whole._replace(complete=False)
                        if kind == "file":
                            found = whole.files[path] = _contents_at(descriptor, name, limit)
                            limit -= len(found.data)
                        elif kind != "folder":
                            whole.others[path] = kind
                        elif name in without:
                            whole.skipped.append(path)
                        else:
                            waiting.append(f"{path}/")
                finally:
                    os.close(descriptor)
                if len(whole.files) + len(whole.others) + len(waiting) > most or above.count("/") > depth:
                    return whole._replace(complete=False)
        except (FileNotFoundError, NotADirectoryError, NotRegular, TooLarge):
            return whole._replace(complete=False)
        return whole

    def read_stamped(self, segments: Sequence[str], *, limit: int) -> tuple[bytes, Stamp]:
        """Read a regular file and return its bytes with its stamp."""
        data, status = self._read(segments, limit)
        return data, stamp_of(status)

    def _open(self, segments: Sequence[str]) -> int:
        descriptor = os.dup(self._descriptor)
        for name in segments:
            try:
                following = os.open(to_system(name), _PASS, dir_fd=descriptor)
            except OSError as error:
                raise _not_passable(descriptor, name, error) from None
            finally:
                os.close(descriptor)
            descriptor = following
        return descriptor


def _contents_at(folder: int, name: str, limit: int) -> Contents:
    """Read a file directly below an open folder, which a listing just called a regular file."""
    try:
        descriptor = os.open(to_system(name), _READ, dir_fd=folder)
    except OSError as error:
        refused = _not_passable(folder, name, error)
        raise (refused if isinstance(refused, NotRegular) else error) from None
    try:
        status = os.fstat(descriptor)
        _refuse_irregular(status.st_mode)
        if status.st_size > limit:
            raise TooLarge(status.st_size)
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:
            data += _read_up_to(descriptor, limit + 1 - len(data))
        if len(data) > limit:
            raise TooLarge(len(data))
        return Contents(data, status.st_mtime_ns, bool(status.st_mode & stat.S_IXUSR))
    finally:
        os.close(descriptor)


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
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise NotRegular(kind)


def is_own_file(path: str) -> bool:
    """Return whether a path is a regular file that belongs to this user and that no other user can write."""
    return _is_own(path, stat.S_ISREG)


def belongs_to_user(path: str) -> bool:
    """Return whether a file, links followed, belongs to this user and not everybody can write it."""
    try:
        status = os.stat(to_system(path))
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & 0o002


def is_own_folder(path: str) -> bool:
    """Return whether a path is a folder, not a link, that belongs to this user and that no other user can write."""
    return _is_own(path, stat.S_ISDIR)


def _is_own(path: str, is_kind: Callable[[int], bool]) -> bool:
    try:
        status = os.lstat(to_system(path))
    except OSError:
        return False
    return is_kind(status.st_mode) and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


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
