"""The file systems in memory that a script in the sandbox writes to, seen from outside.

They are opened before the script starts. The descriptors keep them when its processes and their mounts are gone.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

from skillshelf.core import files
from skillshelf.core.disk_writes import DiskUse, remove, write_new
from skillshelf.core.limits import LISTED_ENTRIES
from skillshelf.core.records import NamedTuple
from skillshelf.sandbox.bubblewrap import WORK

__all__ = [
    "Storage",
    "StorageUnavailable",
    "close_storage",
    "copy_work",
    "open_storage",
    "size_of_open_storage",
    "storage_use",
    "work_folder",
]


class StorageUnavailable(Exception):
    """The file systems of a sandbox cannot be seen from outside."""


class Storage(NamedTuple):
    """Descriptors of the file systems: that of the work folder, and those for temporary files and shared memory."""

    work: int
    others: tuple[int, ...]


_OPEN: set[Storage] = set()
"""Those of all scripts that this process runs now, in several threads."""


def open_storage(process: int, places: Sequence[str], *, size: int, user: int | None) -> Storage:
    """Open the file systems of a sandbox whose script has not started yet; `user` becomes their owner.

    `places` are where they are mounted, the work folder first. Raise StorageUnavailable.
    """
    opened: list[int] = []
    try:
        for path in places:
            opened.append(files.open_folder_of(process, path))
            about = os.fstatvfs(opened[-1])
            if about.f_blocks * about.f_frsize > size + about.f_frsize:
                raise OSError(f"{path} in the sandbox is larger than {size} bytes")
            if user is not None:
                os.fchown(opened[-1], user, user)
        storage = Storage(opened[0], tuple(opened[1:]))
        _OPEN.add(storage)
        return storage
    except OSError as error:
        for descriptor in opened:
            os.close(descriptor)
        raise StorageUnavailable(str(error)) from error


def close_storage(storage: Storage) -> None:
    """Give the memory of the file systems back."""
    _OPEN.discard(storage)
    for descriptor in (storage.work, *storage.others):
        os.close(descriptor)


def storage_use(storage: Storage) -> DiskUse:
    """Return what all files take, those without a name included, and how many there are."""
    size = entries = 0
    for descriptor in (storage.work, *storage.others):
        about = os.fstatvfs(descriptor)
        size += (about.f_blocks - about.f_bfree) * about.f_frsize
        # The folder itself is one of them.
        entries += about.f_files - about.f_ffree - 1
    return DiskUse(size, entries)


def size_of_open_storage() -> int:
    """Return what the files of all scripts take that this process runs now."""
    size = 0
    for storage in tuple(_OPEN):
        # Another thread may close it meanwhile.
        with suppress(OSError):
            size += storage_use(storage).size
    return size


def work_folder(storage: Storage) -> files.Folder:
    """Return the work folder for reading."""
    return files.Folder(WORK, descriptor=storage.work)


def copy_work(storage: Storage, target: str, *, limit: int) -> bool:
    """Copy the regular files of the work folder to a new folder; return False if some were left out.

    The script chose what is there: links are not followed, devices and pipes not opened, and sizes count as they are
    shown, so that a file with holes cannot fill the disk.
    """
    os.mkdir(target, 0o755)
    with work_folder(storage) as work:
        found, whole = work.files(LISTED_ENTRIES)
        for path in found:
            try:
                contents = work.read(path.split("/"), limit=limit)
            except OSError:
                # It may not be read, or is too large for what is left.
                whole = False
                continue
            limit -= len(contents.data)
            try:
                write_new(f"{target}/{path}", contents.data, mode=0o755 if contents.runnable else 0o644)
            except OSError:
                # Its path is too long here, or the disk is full.
                remove(f"{target}/{path}")
                whole = False
    return whole
