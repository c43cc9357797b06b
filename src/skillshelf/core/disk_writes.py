"""Write to the disk: atomic files and folders, locks, links, temporary folders, and their removal."""

import errno
import os
import stat
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal

from skillshelf.core.files import (
    from_system,
    kind_at,
    kind_of,
    open_folder,
    open_folder_at,
    path_bytes,
    read_file,
    real_path,
    refuse_kind,
    regular,
    stat_at,
    to_system,
)
from skillshelf.core.records import NamedTuple

__all__ = [
    "DiskUse",
    "OwnedFolder",
    "append",
    "disk_use",
    "free_bytes",
    "give_tree",
    "is_at",
    "keep_content",
    "keep_owned_folder",
    "kept_content",
    "lock",
    "locked",
    "locked_within",
    "make_folder",
    "make_folder_at",
    "make_link",
    "make_own_folder",
    "make_owned_folder",
    "make_parents",
    "make_private_folder",
    "move",
    "open_to_append",
    "open_to_write",
    "owned_folders",
    "remove",
    "remove_at",
    "remove_below",
    "remove_empty",
    "remove_empty_at",
    "remove_folder",
    "remove_link",
    "remove_owned_folder",
    "remove_stored",
    "remove_tree",
    "remove_whole_below",
    "rename_at",
    "replace_file",
    "replace_folder",
    "store_folder",
    "sweep_owned_folders",
    "switch_link",
    "sync_file_system",
    "sync_folder",
    "sync_open_folder",
    "tighten",
    "unlinked_files",
    "unlock",
    "why_not_replaced",
    "write_at",
    "write_new",
    "write_tree_at",
]


_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def open_to_append(path: str) -> int:
    """Open a regular file to read and append, created with mode 0600; refuse a link."""
    # Checked before it is opened: opening a device can have effects.
    if (kind := kind_at(path)) and kind != "file":
        refuse_kind(kind)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return regular(os.open(to_system(path), flags, 0o600))


def lock(descriptor: int, how: Literal["alone", "shared"], *, seconds: float) -> bool:
    """Lock an open file until it is closed; return False if others held the lock all that time."""
    import fcntl
    import time

    kind = fcntl.LOCK_EX if how == "alone" else fcntl.LOCK_SH
    end, pause = time.monotonic() + seconds, 0.0001
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            # Not the blocking call: a holder that was stopped would stop us too.
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.002)
        else:
            return True


def unlock(descriptor: int) -> None:
    """Release the lock on an open file."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock file of a path; the system releases it when the process ends, however it ends."""
    import fcntl

    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(to_system(path + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_within(path: str, seconds: float, *, say: Callable[[], None] | None = None) -> Iterator[bool]:
    """Hold a lock file; yield False, without the lock, if others held it all that time.

    `say` is called if that takes more than a second.
    """
    descriptor = os.open(to_system(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        held = lock(descriptor, "alone", seconds=min(1.0, seconds) if say else seconds)
        if not held and say is not None and seconds > 1:
            say()
            held = lock(descriptor, "alone", seconds=seconds - 1)
        yield held
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Flush the entries of a folder to the disk."""
    descriptor = os.open(to_system(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_at(path: str, descriptor: int) -> bool:
    """Return whether a path still leads to this open file."""
    try:
        return os.path.samestat(os.lstat(to_system(path)), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def make_own_folder(path: str) -> None:
    """Create a folder with mode 0700, and its parents, unless it exists."""
    above = os.path.dirname(path)
    if above != path and kind_at(above) is None:
        make_own_folder(above)
    try:
        os.mkdir(to_system(path), 0o700)
    except FileExistsError:
        if kind_at(path) != "folder":
            raise


def remove(path: str) -> None:
    """Remove a file if possible."""
    with suppress(OSError):
        os.unlink(to_system(path))


def replace_file(path: str, data: bytes, *, mode: int = 0o600, durable: bool = True, closed: bool = False) -> None:
    """Replace the bytes of a file atomically; `mode` is used for a new file.

    A file that is not `durable` can be made again, so nobody waits for the disk. A `closed` one gives others no rights.
    """
    target = real_path(path)
    before = os.stat(to_system(target)) if kind_at(target) else None
    # Two threads may write the same file, and a process that was killed may have had the same number.
    temporary = f"{target}.{os.getpid()}-{os.urandom(4).hex()}.new"
    descriptor = os.open(to_system(temporary), _CREATE, mode)
    try:
        try:
            _write_all(descriptor, data)
            if before is not None:
                _take_after(descriptor, before, hidden=0o077 if closed else 0)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(to_system(temporary), to_system(target))
    except OSError:
        os.unlink(to_system(temporary))
        raise


def _write_all(descriptor: int, data: bytes) -> None:
    # One call may write less than it was given, when the disk is nearly full.
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _take_after(descriptor: int, before: os.stat_result, *, hidden: int = 0) -> None:
    """Copy the owner and the permissions of the file that is replaced, without the `hidden` ones."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        # Only root may give a file away; for others it becomes theirs, as with any editor.
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & ~hidden)


def why_not_replaced(path: str) -> str | None:
    """Return why a file should not be replaced although the system might allow it, or None."""
    status = os.lstat(to_system(path))
    if kind_of(status.st_mode) != "file":
        return f"it is a {kind_of(status.st_mode)}"
    if not status.st_mode & 0o222:
        return "it is read-only"
    if status.st_nlink > 1:
        return f"it has {status.st_nlink} names (hard links), and only this one would get the new text"
    if not os.access(to_system(os.path.dirname(path)), os.W_OK):
        return "its folder is not writable"
    return None


def make_folder(path: str, contents: Mapping[str, bytes], *, executables: Container[str] | None = None) -> None:
    """Create a folder with files atomically at a free path; without `executables`, those with `#!` are executable."""
    parent = os.path.dirname(path)
    created = make_parents(parent)
    temporary = os.path.join(parent, f".{os.path.basename(path)}.{os.getpid()}.new")
    try:
        os.mkdir(to_system(temporary))
        for relative, data in contents.items():
            runs = data.startswith(b"#!") if executables is None else relative in executables
            _write_new(os.path.join(temporary, relative), data, mode=0o777 if runs else 0o666)
        if kind_at(path) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        # A folder created meanwhile is kept: rename replaces only an empty one.
        os.rename(to_system(temporary), to_system(path))
    except OSError:
        remove_folder(temporary)
        for folder in created:
            with suppress(OSError):
                os.rmdir(to_system(folder))
        raise


def replace_folder(path: str, contents: Mapping[str, bytes], *, executables: Container[str] | None = None) -> None:
    """Replace a folder by one with these files; restore the old one if that fails."""
    aside = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.old")
    os.rename(to_system(path), to_system(aside))
    try:
        make_folder(path, contents, executables=executables)
    except OSError:
        os.rename(to_system(aside), to_system(path))
        raise
    remove_folder(aside)


def store_folder(
    path: str, contents: Mapping[str, bytes], executables: Container[str], *, beside: tuple[str, bytes]
) -> None:
    """Create a read-only folder with these files by one rename, after everything in it is on the disk.

    A folder that is there is replaced; one that another process stores meanwhile has the same files, and stays.
    `beside` is the end of the name of a file by the folder, and its bytes.
    """
    parent, token = os.path.dirname(path), f"{os.getpid()}-{os.urandom(4).hex()}"
    make_own_folder(parent)
    is_replaced = kind_at(path) is not None
    # Beside the folders of digests, where nobody looks for one.
    temporary, aside = (f"{os.path.dirname(parent)}/.{kind}-{token}" for kind in ("new", "removed"))
    try:
        os.mkdir(to_system(temporary), 0o700)
        folders = {""}
        for relative, data in contents.items():
            _write_new(f"{temporary}/{relative}", data, mode=0o555 if relative in executables else 0o444, durable=True)
            folders.update(relative[:end] for end in _folder_ends(relative))
        for folder in sorted(folders, key=len, reverse=True):
            inner = f"{temporary}/{folder}".rstrip("/")
            # Moving a folder needs write permission in it, so the top one gets its mode afterwards.
            os.chmod(to_system(inner), 0o555 if folder else 0o755)
            sync_folder(inner)
        replace_file(path + beside[0], beside[1], mode=0o444)
        if is_replaced:
            os.chmod(to_system(path), 0o700)
            os.rename(to_system(path), to_system(aside))
        if _took_place(temporary, path):
            os.chmod(to_system(path), 0o555)
            sync_folder(parent)
    except OSError:
        with suppress(OSError):
            remove_tree(temporary)
        raise
    if kind_at(aside) is not None:
        remove_tree(aside)


def _took_place(temporary: str, path: str) -> bool:
    """Rename a new folder to its place; return False if another process was faster, and remove it then."""
    try:
        os.rename(to_system(temporary), to_system(path))
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        remove_tree(temporary)
        return False
    return True


def _folder_ends(relative: str) -> Iterator[int]:
    """Return where the path of each folder above a file ends."""
    end = relative.find("/")
    while end >= 0:
        yield end
        end = relative.find("/", end + 1)


def remove_stored(path: str, *, beside: str) -> None:
    """Remove a folder that `store_folder` made, and the file by it: first from its place, then from the disk."""
    aside = f"{os.path.dirname(os.path.dirname(path))}/.removed-{os.getpid()}-{os.urandom(4).hex()}"
    os.chmod(to_system(path), 0o700)
    os.rename(to_system(path), to_system(aside))
    remove(path + beside)
    remove_tree(aside)


def make_parents(folder: str) -> list[str]:
    """Create a folder and its parents; return the new ones, innermost first."""
    missing = []
    while kind_at(folder) is None:
        missing.append(folder)
        folder = os.path.dirname(folder)
    created: list[str] = []
    for new in reversed(missing):
        # Another process may create the same folders at the same time.
        with suppress(FileExistsError):
            os.mkdir(to_system(new))
            created.insert(0, new)
    return created


def _write_new(path: str, data: bytes, *, mode: int, durable: bool = False) -> None:
    os.makedirs(to_system(os.path.dirname(path)), exist_ok=True)
    descriptor = os.open(to_system(path), _CREATE, mode)
    try:
        _write_all(descriptor, data)
        if durable:
            # The umask does not count for what has one mode everywhere.
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Below an open folder ------------------------------------------------------------------------------
# The folder is the one that was opened, whatever becomes of its path, and no name leads through a link.


def make_folder_at(folder: int, name: str) -> tuple[int, bool]:
    """Open the folder of a name, made if it is missing; return its descriptor and whether it was made."""
    try:
        os.mkdir(to_system(name), dir_fd=folder)
        is_new = True
    except FileExistsError:
        is_new = False
    return open_folder_at(folder, name), is_new


def write_at(
    folder: int, name: str, data: bytes, *, mode: int, like: os.stat_result | None = None, flush: bool = True
) -> None:
    """Create a file and flush it to the disk; with `like` it gets the owner and the permissions of another file."""
    descriptor = os.open(to_system(name), _CREATE | os.O_NOFOLLOW, mode, dir_fd=folder)
    try:
        _write_all(descriptor, data)
        if like is not None:
            _take_after(descriptor, like)
        elif mode & 0o700 & ~(now := stat.S_IMODE(os.fstat(descriptor).st_mode)):
            # Whatever the umask is, the owner's bits are part of a tree.
            os.fchmod(descriptor, now | mode & 0o700)
        if flush:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_tree_at(
    folder: int, name: str, contents: Mapping[str, bytes], executables: Container[str], *, flush: bool = True
) -> None:
    """Create a folder with these files and flush all of it to the disk; else `sync_file_system` has to."""
    opened: dict[str, int] = {}
    try:
        opened[""], _ = make_folder_at(folder, name)
        for relative, data in contents.items():
            for end in _folder_ends(relative):
                above, _, last = relative[:end].rpartition("/")
                if relative[:end] not in opened:
                    opened[relative[:end]], _ = make_folder_at(opened[above], last)
            inner, _, last = relative.rpartition("/")
            write_at(opened[inner], last, data, mode=0o777 if relative in executables else 0o666, flush=flush)
        for descriptor in reversed(opened.values()) if flush else ():
            sync_open_folder(descriptor)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def rename_at(folder: int, name: str, new_folder: int, new_name: str) -> None:
    """Rename an entry; what has the new name is replaced if it is a file, a link or an empty folder."""
    os.rename(to_system(name), to_system(new_name), src_dir_fd=folder, dst_dir_fd=new_folder)


def remove_at(folder: int, name: str) -> None:
    """Remove an entry of any kind, a folder with its contents, whatever their permissions are; fine if it is gone."""
    try:
        kind = kind_of(stat_at(folder, name).st_mode)
        if kind != "folder":
            os.unlink(to_system(name), dir_fd=folder)
            return
        inner = os.open(to_system(name), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        os.fchmod(inner, 0o700)
        for child in os.listdir(inner):
            remove_at(inner, from_system(child))
    finally:
        os.close(inner)
    os.rmdir(to_system(name), dir_fd=folder)


def remove_empty_at(folder: int, name: str) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        os.rmdir(to_system(name), dir_fd=folder)


def sync_open_folder(folder: int) -> None:
    """Flush the entries of an open folder to the disk."""
    # A descriptor that is only a path cannot be flushed.
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(folder: int) -> None:
    """Flush everything that was written to the file system of an open folder to the disk."""
    import ctypes

    program = ctypes.CDLL(None, use_errno=True)
    if not hasattr(program, "syncfs"):
        os.sync()
        return
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        if program.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def switch_link(path: str, target: str) -> None:
    """Make a link at a path, or turn the one that is there to another target, by one rename; flush it to the disk."""
    temporary = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.new"
    os.symlink(to_system(target), to_system(temporary))
    try:
        os.rename(to_system(temporary), to_system(path))
    except OSError:
        os.unlink(to_system(temporary))
        raise
    sync_folder(os.path.dirname(path))


def keep_content(folder: str, data: bytes) -> None:
    """Store bytes in a folder under their digest, atomically and once."""
    from hashlib import sha256

    path = f"{folder}/sha256/{sha256(data).hexdigest()}"
    if kind_at(path) is None:
        os.makedirs(to_system(os.path.dirname(path)), mode=0o700, exist_ok=True)
        replace_file(path, data)


def kept_content(folder: str, digest: str, *, limit: int) -> bytes | None:
    """Return the bytes stored under a digest, or None if they are missing or differ."""
    from hashlib import sha256

    kind, _, value = digest.partition(":")
    if kind != "sha256" or len(value) != 64 or not value.isalnum():
        return None
    try:
        data = read_file(f"{folder}/sha256/{value}", limit=limit, links="never")
    except OSError:
        return None
    return data if data is not None and sha256(data).hexdigest() == value else None


def remove_folder(path: str) -> None:
    """Remove a folder with its contents, ignoring errors."""
    from shutil import rmtree

    rmtree(to_system(path), ignore_errors=True)


def write_new(path: str, data: bytes = b"", *, mode: int = 0o600) -> None:
    """Write a file that must not exist yet, and create its parent folders."""
    os.makedirs(to_system(os.path.dirname(path)), mode=0o755, exist_ok=True)
    descriptor = os.open(to_system(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def append(path: str, data: bytes) -> None:
    """Append bytes to a file of our own."""
    descriptor = os.open(to_system(path), os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def open_to_write(path: str) -> int:
    """Open a file of the kernel for somebody else, who writes to it; refuse a link."""
    return os.open(to_system(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def make_link(path: str, target: str) -> None:
    """Create a symbolic link at a free path."""
    os.symlink(to_system(target), to_system(path))


def remove_link(path: str) -> None:
    """Remove a link or a file, never a folder."""
    os.unlink(to_system(path))


def move(path: str, target: str) -> None:
    """Give what is at a path another name in the same file system; the target must be free."""
    if kind_at(target) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(to_system(path), to_system(target))


def remove_empty(folder: str, levels: int) -> None:
    """Remove up to N folders from this one upward, as long as they are empty."""
    for _ in range(levels):
        try:
            os.rmdir(to_system(folder))
        except OSError:
            return
        folder = os.path.dirname(folder)


def remove_below(folder: str, path: str) -> None:
    """Remove a regular file or an empty folder of this user by its path below a folder; no link is followed.

    Anything else raises an OSError, whatever lay there when somebody looked before.
    """
    *above, name = path.split("/")
    descriptor = open_folder(folder)
    try:
        for part in above:
            inner = open_folder_at(descriptor, part)
            os.close(descriptor)
            descriptor = inner
        status = stat_at(descriptor, name)
        if status.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", path)
        if (kind := kind_of(status.st_mode)) not in ("file", "folder"):
            raise FileExistsError(errno.EEXIST, f"it is a {kind}", path)
        remove_entry = os.rmdir if kind == "folder" else os.unlink
        remove_entry(to_system(name), dir_fd=descriptor)
    finally:
        os.close(descriptor)


def remove_whole_below(folder: str, path: str) -> None:
    """Remove a file, a link, or a folder of this user with its contents, by its path below a folder, through no link.

    Permissions do not keep a folder: those of the store are read-only.
    """
    *above, name = path.split("/")
    descriptor = open_folder(folder)
    try:
        for part in above:
            inner = open_folder_at(descriptor, part)
            os.close(descriptor)
            descriptor = inner
        if stat_at(descriptor, name).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", path)
        remove_at(descriptor, name)
    finally:
        os.close(descriptor)


def tighten(path: str) -> None:
    """Take the right to write away from other users, for a folder of this user that is no link."""
    descriptor = os.open(to_system(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) & ~0o022)
    finally:
        os.close(descriptor)


def make_private_folder(prefix: str) -> str:
    """Create a temporary folder with mode 0700 and return its real path."""
    import tempfile

    return real_path(from_system(tempfile.mkdtemp(prefix=prefix)))


_OWNER = "owner"
"""A file in a temporary folder that its owner holds the lock of: the system releases it however the owner ends."""


class OwnedFolder(NamedTuple):
    """A temporary folder with mode 0700, by its real path, and the descriptor that marks it as in use."""

    path: str
    owner: int


def make_owned_folder(prefix: str) -> OwnedFolder:
    """Create a temporary folder that a sweep leaves alone while this process lives."""
    for _ in range(100):
        path = make_private_folder(prefix)
        marker = os.path.join(path, _OWNER)
        # A sweep may take the folder for an abandoned one until the lock is held.
        with suppress(FileNotFoundError):
            owner = os.open(to_system(marker), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if lock(owner, "alone", seconds=0) and is_at(marker, owner):
                return OwnedFolder(path, owner)
            os.close(owner)
    raise FileExistsError(errno.EEXIST, "others remove each folder that is made", prefix)


def remove_owned_folder(folder: OwnedFolder) -> None:
    """Remove a temporary folder of our own and release it; what cannot be removed is left to a sweep."""
    with suppress(OSError):
        _remove_owned(folder.path)
    os.close(folder.owner)


def keep_owned_folder(folder: OwnedFolder, prefix: str) -> str:
    """Release a temporary folder for good, under a name that no sweep looks for; return its path."""
    name = os.path.basename(folder.path).rpartition("-")[2]
    kept = os.path.join(os.path.dirname(folder.path), f"{prefix}{name}")
    os.rename(to_system(folder.path), to_system(kept))
    remove(os.path.join(kept, _OWNER))
    os.close(folder.owner)
    return kept


def sweep_owned_folders(prefix: str, *, seconds: float) -> None:
    """Remove temporary folders of this user whose owners are dead, until the time is up."""
    import tempfile
    import time

    end = time.monotonic() + seconds
    place = from_system(tempfile.gettempdir())
    for name in _names(place):
        if name.startswith(prefix) and time.monotonic() < end:
            # One that cannot be removed keeps no other from being removed.
            with suppress(OSError):
                _sweep(os.path.join(place, name))


def owned_folders(prefix: str, *, released: bool = False) -> list[str]:
    """Return the temporary folders of this user with a prefix whose owners are dead: those that a sweep removes.

    With `released`, also those that are without a mark: they were kept for good, or are not ours.
    """
    import tempfile

    place = from_system(tempfile.gettempdir())
    try:
        paths = [os.path.join(place, name) for name in sorted(_names(place)) if name.startswith(prefix)]
    except OSError:
        return []
    return [path for path in paths if _is_abandoned(path, released=released)]


def _is_abandoned(path: str, *, released: bool) -> bool:
    try:
        status = os.lstat(to_system(path))
        if kind_of(status.st_mode) != "folder" or status.st_uid != os.geteuid():
            return False
        owner = regular(
            os.open(to_system(f"{path}/{_OWNER}"), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        )
    except FileNotFoundError:
        return released or _is_empty(path)
    except OSError:
        return False
    try:
        return lock(owner, "alone", seconds=0)
    finally:
        os.close(owner)


def _is_empty(path: str) -> bool:
    try:
        return not _names(path)
    except OSError:
        return False


def _names(folder: str) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in os.listdir(path_bytes(folder))]


def _sweep(path: str) -> None:
    folder = os.open(to_system(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return
        try:
            owner = regular(os.open(_OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder))
        except FileNotFoundError:
            # Empty if its owner died as it made or removed it. Anything else was made by another program or version.
            os.rmdir(to_system(path))
            return
        try:
            if lock(owner, "alone", seconds=0) and is_at(path, folder):
                _remove_owned(path)
        finally:
            os.close(owner)
    finally:
        os.close(folder)


def _remove_owned(path: str) -> None:
    """Remove an owned folder; the marker goes last, so that a sweep can go on where this ends."""
    for name in _names(path):
        inner = os.path.join(path, name)
        if kind_at(inner) == "folder":
            remove_tree(inner)
        elif name != _OWNER:
            os.unlink(to_system(inner))
    os.unlink(to_system(os.path.join(path, _OWNER)))
    os.rmdir(to_system(path))


def give_tree(path: str, user: int) -> None:
    """Give a folder with its contents to another user; only root can."""
    top = path.encode("utf-8", "surrogateescape")
    for folder, _, names in os.walk(top):
        for entry in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(entry, user, user, follow_symlinks=False)


class DiskUse(NamedTuple):
    """The disk space and the number of entries below a folder; `whole` if every folder could be read."""

    size: int
    entries: int
    whole: bool = True


def disk_use(path: str, most: int) -> DiskUse:
    """Measure what lies below a folder; stop counting after `most` entries."""
    size, entries, whole = 0, 0, True
    waiting = [to_system(path)]
    while waiting and entries <= most:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    entries += 1
                    if entries > most:
                        break
                    # An entry that was removed meanwhile takes no space.
                    with suppress(FileNotFoundError):
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                # Only a path built to escape the count is this deep.
                return DiskUse(size, most + 1, whole)
            whole = False
    return DiskUse(size, entries, whole)


def free_bytes(path: str) -> int:
    """Return the free bytes on the file system of a folder."""
    about = os.statvfs(path)
    return about.f_bavail * about.f_frsize


def unlinked_files(process: int) -> dict[tuple[int, int], int]:
    """Return the sizes of the unlinked files that a process has open, by device and inode."""
    found = {}
    folder = f"/proc/{process}/fd"
    # The process may have ended, or be protected.
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                about = os.stat(f"{folder}/{name}")
                if stat.S_ISREG(about.st_mode) and about.st_nlink == 0:
                    found[about.st_dev, about.st_ino] = about.st_blocks * 512
    return found


def remove_tree(path: str) -> None:
    """Remove a folder with its contents, however deep it is and whatever its permissions are."""
    top = path.encode("utf-8", "surrogateescape")
    # A name that cannot be guessed, so it is free.
    token, moved = os.urandom(8).hex(), 0
    while folders := _with_folders_only(top):
        for folder in folders:
            # Deeper folders are moved up before they are emptied: no path gets long, and no recursion is needed.
            for inner in _with_folders_only(folder):
                moved += 1
                os.rename(inner, os.path.join(top, f"{token}-{moved}".encode()))
            os.rmdir(folder)
    os.rmdir(top)


def _with_folders_only(folder: bytes) -> list[bytes]:
    """Delete everything in a folder but its folders, and return those."""
    os.chmod(folder, 0o700)
    with os.scandir(folder) as found:
        entries = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in found]
    for path, is_folder in entries:
        if is_folder:
            # Moving a folder needs write permission in it.
            os.chmod(path, 0o700)
        else:
            os.unlink(path)
    return [path for path, is_folder in entries if is_folder]
