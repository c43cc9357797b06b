"""Paths to bytes: the one door to the disk.

Everything is opened relative to a directory descriptor, one component at a time, and no component may be
a link. Whoever wants to follow a link asks `resolve_link` where it leads, decides on the answer, and opens
that; if the path has become a link in the meantime, opening it fails.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple, NoReturn

from skillshelf.limits import FIRST_READ, FRONTMATTER_BYTES, WALK_DEPTH
from skillshelf.values import Stamp

__all__ = [
    "Contents",
    "DiskUse",
    "Folder",
    "Head",
    "Kind",
    "NotRegular",
    "TooLarge",
    "append",
    "begins_with",
    "close",
    "disk_use",
    "entries_in",
    "free_bytes",
    "from_system",
    "give_tree",
    "is_at",
    "is_inside",
    "is_own_file",
    "keep_content",
    "kept_content",
    "kind_at",
    "kind_of",
    "link_target",
    "lock",
    "locked",
    "locked_within",
    "make_folder",
    "make_link",
    "make_own_folder",
    "make_parents",
    "make_private_folder",
    "measure",
    "nameless_files",
    "names_in",
    "open_folder",
    "open_folder_at",
    "open_to_append",
    "open_to_read",
    "read_file",
    "read_head",
    "real_path",
    "remove",
    "remove_empty",
    "remove_folder",
    "remove_link",
    "remove_tree",
    "replace_file",
    "resolve_link",
    "stamp_at",
    "stamp_below",
    "stamp_of",
    "stamps_in",
    "stat_at",
    "sync_folder",
    "unlock",
    "why_not_replaced",
    "write_new",
]

Kind = Literal["file", "folder", "link", "pipe", "socket", "device"]

# O_PATH needs no right to read a folder, only to pass through it.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, so that a pipe put in the place of a file cannot hold us up.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

# A frontmatter of the largest allowed size with both fences, and a little more to see that it was exceeded.
_MOST = FRONTMATTER_BYTES + FIRST_READ

close = os.close


# Paths are UTF-8 on every system we run on; only an odd locale makes Python decode them otherwise.
_UTF8 = sys.getfilesystemencoding().lower() == "utf-8"


def from_system(path: str) -> str:
    """A path that Python decoded, as the text its bytes are in UTF-8."""
    return path if _UTF8 else os.fsencode(path).decode("utf-8", "surrogateescape")


def _to_system(path: str) -> str | bytes:
    return path if _UTF8 else path.encode("utf-8", "surrogateescape")


class Head(NamedTuple):
    """The first bytes of a file and what its descriptor said about it; `data` is None for what is no file."""

    data: bytes | None
    kind: Kind
    stamp: Stamp

    @property
    def size(self) -> int:
        """The bytes of the whole file."""
        return self.stamp[2]


def open_folder(path: str) -> int:
    """A descriptor of an absolute path in which no component is a link."""
    descriptor = os.open("/", _PASS)
    for name in path.split("/"):
        if not name:
            continue
        try:
            following = os.open(_to_system(name), _PASS, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = following
    return descriptor


def open_folder_at(folder: int, name: str) -> int:
    """A descriptor of a folder directly below another; fails for a link."""
    return os.open(_to_system(name), _PASS, dir_fd=folder)


def names_in(folder: int) -> list[str]:
    """The names in a folder, sorted by bytes, so that the order of the disk does not matter."""
    return [name for name, _ in entries_in(folder)]


def entries_in(folder: int) -> list[tuple[str, bool]]:
    """The names in a folder, sorted by bytes, each with whether it is a folder itself and no link to one."""
    descriptor = os.open(".", _LIST, dir_fd=folder)
    try:
        with os.scandir(descriptor) as scan:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in scan]
    finally:
        os.close(descriptor)
    entries.sort(key=lambda entry: os.fsencode(entry[0]))
    return entries if _UTF8 else [(from_system(name), is_folder) for name, is_folder in entries]


def stat_at(folder: int, name: str) -> os.stat_result:
    """What is known of an entry itself, never of what it links to."""
    return os.stat(_to_system(name), dir_fd=folder, follow_symlinks=False)


def stamp_of(status: os.stat_result) -> Stamp:
    """The state of a file, from what the system says of it."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def stamp_below(folder: int, path: str) -> Stamp | None:
    """The state of what stands at a path below a folder, whatever it is; None where nothing does."""
    try:
        return stamp_of(os.stat(_to_system(path), dir_fd=folder, follow_symlinks=False))
    except OSError:
        return None


def stamp_at(path: str) -> Stamp | None:
    """The state of what stands at a path, never of what it links to; None where nothing does."""
    try:
        return stamp_of(os.lstat(_to_system(path)))
    except (OSError, ValueError):
        return None


def kind_of(mode: int) -> Kind:
    """The kind of a file from its mode."""
    return _KINDS.get(stat.S_IFMT(mode), "device")


_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


def kind_at(path: str) -> Kind | None:
    """The kind of what stands at a path, or None where nothing does."""
    try:
        return kind_of(os.lstat(_to_system(path)).st_mode)
    except (OSError, ValueError):
        return None


def read_head(folder: int, name: str, *, limit: int, enough: Callable[[bytes], bool], most: int = _MOST) -> Head:
    """The first 4 KiB of a regular file, and up to `most` bytes if those are not enough; None above the limit."""
    descriptor = os.open(_to_system(name), _READ, dir_fd=folder)
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
    """All bytes of a regular file; None for what is larger or no regular file."""
    descriptor = os.open(_to_system(path), _READ & ~os.O_NOFOLLOW if links == "follow" else _READ)
    try:
        status = os.fstat(descriptor)
        if kind_of(status.st_mode) != "file" or status.st_size > limit:
            return None
        data = _read_up_to(descriptor, limit + 1)
        return data if len(data) <= limit else None
    finally:
        os.close(descriptor)


def begins_with(path: str, start: bytes) -> bool:
    """Whether a program of the user's begins with these bytes; a link to it is followed."""
    descriptor = os.open(_to_system(path), _READ & ~os.O_NOFOLLOW)
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


def open_to_append(path: str) -> int:
    """A descriptor of a regular file that is read and added to, made for its owner alone; a link is refused."""
    # Looked at before it is opened: opening a device can have effects.
    if (kind := kind_at(path)) and kind != "file":
        _refuse_kind(kind)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return _regular(os.open(_to_system(path), flags, 0o600))


def open_to_read(path: str) -> int:
    """A descriptor of a regular file that somebody named; a link is followed."""
    _refuse_irregular(os.stat(_to_system(path)).st_mode)
    return _regular(os.open(_to_system(path), _READ & ~os.O_NOFOLLOW))


def _regular(descriptor: int) -> int:
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def lock(descriptor: int, how: Literal["alone", "shared"], *, seconds: float) -> bool:
    """Hold a lock on an open file until it is closed; False if others held it for all that time."""
    import fcntl
    import time

    kind = fcntl.LOCK_EX if how == "alone" else fcntl.LOCK_SH
    end, pause = time.monotonic() + seconds, 0.0001
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            # Not the call that waits by itself: a holder that was stopped would stop us too.
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.002)
        else:
            return True


def unlock(descriptor: int) -> None:
    """Give up the lock on an open file."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def sync_folder(path: str) -> None:
    """Force to the disk which names a folder holds."""
    descriptor = os.open(_to_system(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_at(path: str, descriptor: int) -> bool:
    """Whether an open file is still what stands at a path."""
    try:
        return os.path.samestat(os.lstat(_to_system(path)), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def resolve_link(path: str) -> str:
    """Where a path leads when every link in it is followed; OSError where that is nowhere."""
    # The kernel gives up after 40 links; realpath would follow thousands, one by one.
    os.stat(_to_system(path))
    return _as_text(os.path.realpath(_to_system(path), strict=True))


def real_path(path: str) -> str:
    """Where a path leads as far as it exists."""
    return _as_text(os.path.realpath(_to_system(path)))


def _as_text(path: str | bytes) -> str:
    return path if isinstance(path, str) else path.decode("utf-8", "surrogateescape")


def is_inside(path: str, folder: str) -> bool:
    """Whether a resolved path is a resolved folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class NotRegular(OSError):
    """What stands at a path is a link, pipe, socket or device."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.kind = kind


class TooLarge(OSError):
    """A file has more bytes than may be read."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Contents(NamedTuple):
    """All bytes of a file, and when it was last written."""

    data: bytes
    mtime_ns: int


class Folder:
    """An open folder, for reading what lies below it; use it in a `with` statement."""

    def __init__(self, path: str) -> None:
        self._descriptor = open_folder(path)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def read(self, segments: Sequence[str], *, limit: int) -> "Contents":
        """A regular file; IsADirectoryError, NotRegular or TooLarge for what is none."""
        data, status = self._read(segments, limit)
        return Contents(data, status.st_mtime_ns)

    def copy(self, segments: Sequence[str], target: str, *, limit: int) -> bytes:
        """The bytes of a regular file, which are now those of a new file too; only its right to be run is kept."""
        data, status = self._read(segments, limit)
        write_new(target, data, mode=0o755 if status.st_mode & 0o111 else 0o644)
        return data

    def _read(self, segments: Sequence[str], limit: int) -> tuple[bytes, os.stat_result]:
        parent = self._open(segments[:-1])
        try:
            # Looked at before it is opened: opening a device can have effects.
            _refuse_irregular(stat_at(parent, segments[-1]).st_mode)
            descriptor = os.open(_to_system(segments[-1]), _READ, dir_fd=parent)
        finally:
            os.close(parent)
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

    def mode(self, segments: Sequence[str]) -> int:
        """The permissions of an entry itself."""
        parent = self._open(segments[:-1])
        try:
            return stat.S_IMODE(stat_at(parent, segments[-1]).st_mode)
        finally:
            os.close(parent)

    def children(self, segments: Sequence[str]) -> list[str]:
        """The names in a folder that are files or folders; folders end with a slash."""
        descriptor = self._open(segments)
        try:
            kinds = [(name, kind_of(stat_at(descriptor, name).st_mode)) for name in names_in(descriptor)]
        finally:
            os.close(descriptor)
        return [name + ("/" if kind == "folder" else "") for name, kind in kinds if kind in ("file", "folder")]

    def files(self, most: int, below: tuple[str, ...] = ()) -> tuple[list[str], bool]:
        """The regular files down to a depth, and whether all entries were looked at; links are left out."""
        found: list[str] = []
        waiting = [below]
        while waiting:
            segments = waiting.pop()
            # Each folder is opened from the top: a deep one costs its depth, and all above it did too.
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
                if name.endswith("/"):
                    waiting.append((*segments, name[:-1]))
                else:
                    found.append("/".join((*segments, name)))
        return found, True

    def _open(self, segments: Sequence[str]) -> int:
        descriptor = os.open(".", _PASS, dir_fd=self._descriptor)
        for name in segments:
            try:
                following = os.open(_to_system(name), _PASS, dir_fd=descriptor)
            except OSError as error:
                raise _not_passable(descriptor, name, error) from None
            finally:
                os.close(descriptor)
            descriptor = following
        return descriptor


def _not_passable(folder: int, name: str, error: OSError) -> OSError:
    """Why a name on the way is no folder: Linux and macOS give different errors for a link."""
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
        _refuse_kind(kind)


def _refuse_kind(kind: Kind) -> NoReturn:
    if kind == "folder":
        raise IsADirectoryError
    raise NotRegular(kind)


def is_own_file(path: str) -> bool:
    """Whether a path is a regular file that belongs to this user and that nobody else can write."""
    try:
        status = os.lstat(_to_system(path))
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def make_own_folder(path: str) -> None:
    """Make a folder that only this user may enter, with those above it, unless it is there."""
    os.makedirs(_to_system(path), mode=0o700, exist_ok=True)


def remove(path: str) -> None:
    """Remove a file, if it is there and may be removed."""
    with suppress(OSError):
        os.unlink(_to_system(path))


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold a lock that belongs to a path; it ends with its process, whatever happens to that."""
    import fcntl

    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(_to_system(path + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: str, data: bytes) -> None:
    """Put bytes in the place of a file at once: a reader sees the old ones or the new ones."""
    target = real_path(path)
    before = os.stat(_to_system(target)) if kind_at(target) else None
    temporary = f"{target}.{os.getpid()}.new"
    descriptor = os.open(_to_system(temporary), _CREATE, 0o600)
    try:
        try:
            _write_all(descriptor, data)
            if before is not None:
                _take_after(descriptor, before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(_to_system(temporary), _to_system(target))
    except OSError:
        os.unlink(_to_system(temporary))
        raise


def _write_all(descriptor: int, data: bytes) -> None:
    # One call may write less than it was given, when the disk is nearly full.
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _take_after(descriptor: int, before: os.stat_result) -> None:
    """Give a new file the owner and the permissions of the one it replaces."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        # Only root may give a file away; for others it becomes theirs, as with any editor.
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def why_not_replaced(path: str) -> str | None:
    """Why a file should be left as it is, although the system might allow to replace it."""
    status = os.lstat(_to_system(path))
    if kind_of(status.st_mode) != "file":
        return f"it is a {kind_of(status.st_mode)}"
    if not status.st_mode & 0o222:
        return "it is read-only"
    if status.st_nlink > 1:
        return f"it has {status.st_nlink} names (hard links), and only this one would get the new text"
    return None


def make_folder(path: str, contents: Mapping[str, bytes]) -> None:
    """Put a folder with files at a path where nothing stands, whole or not at all; `#!` makes a file runnable."""
    parent = os.path.dirname(path)
    made = make_parents(parent)
    temporary = os.path.join(parent, f".{os.path.basename(path)}.{os.getpid()}.new")
    try:
        os.mkdir(_to_system(temporary))
        for relative, data in contents.items():
            _write_new(os.path.join(temporary, relative), data)
        if kind_at(path) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        # What came into its place in the meantime stays: only an empty folder can be replaced by this.
        os.rename(_to_system(temporary), _to_system(path))
    except OSError:
        remove_folder(temporary)
        for folder in made:
            with suppress(OSError):
                os.rmdir(_to_system(folder))
        raise


def make_parents(folder: str) -> list[str]:
    """Make a folder with those above it; returns the new ones, innermost first."""
    missing = []
    while kind_at(folder) is None:
        missing.append(folder)
        folder = os.path.dirname(folder)
    made: list[str] = []
    for new in reversed(missing):
        # Somebody else may be making the same folders at the same time.
        with suppress(FileExistsError):
            os.mkdir(_to_system(new))
            made.insert(0, new)
    return made


def _write_new(path: str, data: bytes) -> None:
    os.makedirs(_to_system(os.path.dirname(path)), exist_ok=True)
    descriptor = os.open(_to_system(path), _CREATE, 0o777 if data.startswith(b"#!") else 0o666)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def keep_content(folder: str, data: bytes) -> None:
    """Put bytes into a folder under their digest, once; a reader finds them whole or not at all."""
    from hashlib import sha256

    path = f"{folder}/sha256/{sha256(data).hexdigest()}"
    if kind_at(path) is None:
        os.makedirs(_to_system(os.path.dirname(path)), mode=0o700, exist_ok=True)
        replace_file(path, data)


def kept_content(folder: str, digest: str, *, limit: int) -> bytes | None:
    """The bytes that were kept under a digest; None if they are not there or are not those."""
    from hashlib import sha256

    kind, _, value = digest.partition(":")
    if kind != "sha256" or len(value) != 64 or not value.isalnum():
        return None
    try:
        data = read_file(f"{folder}/sha256/{value}", limit=limit, links="never")
    except OSError:
        return None
    return data if data is not None and sha256(data).hexdigest() == value else None


def measure(path: str) -> tuple[int, str]:
    """The number of bytes of a regular file, and their digest, without holding them all."""
    from hashlib import sha256

    descriptor = os.open(_to_system(path), _READ)
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
    """The stamp of every entry of a folder by its name."""
    with os.scandir(_to_system(folder)) as entries:
        return {os.fsdecode(entry.name): stamp_of(entry.stat(follow_symlinks=False)) for entry in entries}


def remove_folder(path: str) -> None:
    """Remove a folder with everything in it, as far as that is possible."""
    from shutil import rmtree

    rmtree(_to_system(path), ignore_errors=True)


# Folders of our own ---------------------------------------------------------------------------------


def make_private_folder(prefix: str) -> str:
    """A new folder that only this user may enter, by its real path."""
    import tempfile

    return real_path(from_system(tempfile.mkdtemp(prefix=prefix)))


def give_tree(path: str, user: int) -> None:
    """Make a folder of our own with all that is in it belong to another user, as only root can."""
    top = path.encode("utf-8", "surrogateescape")
    for folder, _, names in os.walk(top):
        for entry in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(entry, user, user, follow_symlinks=False)


def write_new(path: str, data: bytes = b"", *, mode: int = 0o600) -> None:
    """Put bytes in a file that must not exist yet; the folders on the way are made."""
    os.makedirs(_to_system(os.path.dirname(path)), mode=0o755, exist_ok=True)
    descriptor = os.open(_to_system(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def append(path: str, data: bytes) -> None:
    """Put bytes at the end of a file of our own."""
    descriptor = os.open(_to_system(path), os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


class DiskUse(NamedTuple):
    """What lies below a folder: bytes that are taken on the disk, and entries; `whole` if every folder could be
    looked into."""

    size: int
    entries: int
    whole: bool = True


def disk_use(path: str, most: int) -> DiskUse:
    """How much lies below a folder; counting ends after so many entries."""
    size, entries, whole = 0, 0, True
    waiting = [_to_system(path)]
    while waiting and entries <= most:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    entries += 1
                    if entries > most:
                        break
                    # One that went away while it was counted takes nothing.
                    with suppress(FileNotFoundError):
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                # What lies so deep was meant not to be counted.
                return DiskUse(size, most + 1, whole)
            whole = False
    return DiskUse(size, entries, whole)


def free_bytes(path: str) -> int:
    """What is left of the disk that a folder is on."""
    about = os.statvfs(path)
    return about.f_bavail * about.f_frsize


def nameless_files(process: int) -> dict[tuple[int, int], int]:
    """The bytes of each file that a process has open and that is in no folder, by device and number."""
    found = {}
    folder = f"/proc/{process}/fd"
    # It ended in the meantime, or may not be looked at.
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                about = os.stat(f"{folder}/{name}")
                if stat.S_ISREG(about.st_mode) and about.st_nlink == 0:
                    found[about.st_dev, about.st_ino] = about.st_blocks * 512
    return found


def remove_tree(path: str) -> None:
    """Remove a folder with all that is in it, however deep it is and whatever its rights are."""
    top = path.encode("utf-8", "surrogateescape")
    # A name that nobody can have guessed, so that it is free.
    token, moved = os.urandom(8).hex(), 0
    while folders := _with_folders_only(top):
        for folder in folders:
            # What lies deeper is moved up before it is emptied: no path gets long, and nothing recurs.
            for inner in _with_folders_only(folder):
                moved += 1
                os.rename(inner, os.path.join(top, f"{token}-{moved}".encode()))
            os.rmdir(folder)
    os.rmdir(top)


def _with_folders_only(folder: bytes) -> list[bytes]:
    """The folders in a folder, from which everything else is gone now."""
    os.chmod(folder, 0o700)
    with os.scandir(folder) as found:
        entries = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in found]
    for path, is_folder in entries:
        if is_folder:
            # Who moves a folder needs the right to write in it.
            os.chmod(path, 0o700)
        else:
            os.unlink(path)
    return [path for path, is_folder in entries if is_folder]


@contextmanager
def locked_within(path: str, seconds: float) -> Iterator[bool]:
    """Hold the lock that a file is; False, without it, where others hold it for all that time."""
    import fcntl
    import time

    descriptor = os.open(_to_system(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + seconds
    held = False
    try:
        while not held:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                # Not the call that waits by itself: a holder that was stopped would stop us too.
                if time.monotonic() >= end:
                    break
                time.sleep(0.005)
        yield held
    finally:
        os.close(descriptor)


def make_link(path: str, target: str) -> None:
    """Put a link where nothing stands."""
    os.symlink(_to_system(target), _to_system(path))


def link_target(path: str) -> str:
    """What a link says, which may lead anywhere."""
    return os.fsdecode(os.readlink(os.fsencode(path))) if _UTF8 else from_system(os.readlink(path))


def remove_link(path: str) -> None:
    """Remove a link or a file, never a folder."""
    os.unlink(_to_system(path))


def remove_empty(folder: str, levels: int) -> None:
    """Remove a folder and so many above it, as long as they are empty."""
    for _ in range(levels):
        try:
            os.rmdir(_to_system(folder))
        except OSError:
            return
        folder = os.path.dirname(folder)
