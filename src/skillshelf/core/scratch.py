"""Folders of our own, for scripts and what they write: made, measured, given away and removed."""

import errno
import os
import stat
from contextlib import suppress
from typing import NamedTuple

from skillshelf.core.files import from_system, real_path, to_system

__all__ = [
    "DiskUse",
    "disk_use",
    "free_bytes",
    "give_tree",
    "make_private_folder",
    "nameless_files",
    "remove_tree",
]


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


class DiskUse(NamedTuple):
    """What lies below a folder: bytes that are taken on the disk, and entries; `whole` if every folder could be
    looked into."""

    size: int
    entries: int
    whole: bool = True


def disk_use(path: str, most: int) -> DiskUse:
    """How much lies below a folder; counting ends after so many entries."""
    size, entries, whole = 0, 0, True
    waiting = [to_system(path)]
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
