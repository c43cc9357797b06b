"""Keep sections of bytes in files of the cache: one file for each key, with a checksum for each section.

A packed file is replaced as a whole. One that is damaged, foreign or old is as good as none.
"""

import marshal
import os
from collections.abc import Iterator, Mapping, Sequence
from zlib import adler32, crc32

from skillshelf.catalog.disk_state import DiskState
from skillshelf.core import files
from skillshelf.core.limits import PACKED_BYTES, PACKED_KEPT

__all__ = [
    "PACKED_FORMAT",
    "Damaged",
    "PackedFile",
    "Sections",
    "SectionsInMemory",
    "packed_damage",
    "place_of",
    "read_any",
    "read_latest",
    "write_sections",
]

PACKED_FORMAT = 1
_ANY_MAGIC = b"skillshelf packed "
_MAGIC = b"%b%d\n" % (_ANY_MAGIC, PACKED_FORMAT)

Sections = Mapping[str, bytes]
"""The parts of a packed file by name; each has a checksum of its own."""

_FIRST_READ = 1 << 16


class Damaged(ValueError):
    """A packed file is not what it was, or never was what it should be."""


class PackedFile(Sections):
    """A packed file as its sections; each is read and checked when it is used.

    The file stays open, because another process may replace it: what is read later is what was there first.
    """

    def __init__(self, path: str, descriptor: int, places: dict[str, tuple[int, int, int | None]]) -> None:
        self.path = path
        self._descriptor = descriptor
        self._places = places
        self._read: dict[str, bytes] = {}

    # Kept here, because at the end of a program the module may be gone before this object.
    _close = staticmethod(files.close)

    def __del__(self) -> None:
        self._close(self._descriptor)

    def __getitem__(self, name: str) -> bytes:
        if name not in self._read:
            _, size, checksum = self._places[name]
            data = self.part(name, 0, size)
            # A section without a checksum is checked piece by piece when it is used.
            if checksum is not None and crc32(data) != checksum:
                raise Damaged(name)
            self._read[name] = data
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def part(self, name: str, start: int, end: int) -> bytes:
        """Return the bytes of a section between two places in it, unchecked."""
        if name in self._read:
            return self._read[name][start:end]
        first, size, _ = self._places[name]
        if not 0 <= start <= end <= size:
            raise Damaged(name)
        try:
            data = files.read_at(self._descriptor, end - start, first + start)
        except OSError:
            raise Damaged(name) from None
        if len(data) != end - start:
            raise Damaged(name)
        return data


class SectionsInMemory(PackedFile):
    """Sections that were just made, as if they were read from the file at a path."""

    def __init__(self, path: str, sections: Sections) -> None:
        self.path = path
        self._read = {**sections}
        self._places = {name: (0, len(data), None) for name, data in sections.items()}

    def __del__(self) -> None:
        # There is no file to close.
        pass


def place_of(folder: str, key: str) -> str:
    """Return the path of the file for a key."""
    # Two keys with one name take turns; the whole key in the file decides.
    data = key.encode("utf-8", "surrogatepass")
    return f"{folder}/packed/{crc32(data):08x}{adler32(data):08x}"


def _opened(path: str, key: str | None) -> PackedFile | None:
    """Return the file that was written for a key; None if there is none, or if its table of sections is damaged."""
    try:
        descriptor = files.open_own_file(path)
    except OSError:
        return None
    places = None
    try:
        places = _places(descriptor, key)
    except (EOFError, OSError, TypeError, ValueError):
        pass
    finally:
        if places is None:
            files.close(descriptor)
    return PackedFile(path, descriptor, places) if places is not None else None


def packed_damage(path: str) -> str | None:
    """Return what is wrong with a packed file, or None if it can be used or is of another version."""
    if not files.is_own_file(path):
        return "it is not a file of yours that only you can write, so it is not used"
    if not files.begins_with(path, _MAGIC) and files.begins_with(path, _ANY_MAGIC):
        return None
    sections = _opened(path, None)
    try:
        return (
            None if sections is not None and all(sections[name] is not None for name in sections) else "it is damaged"
        )
    except Damaged:
        return "it is damaged"


def _places(descriptor: int, key: str | None) -> dict[str, tuple[int, int, int | None]] | None:
    """Return where each section of a packed file is, its size and its checksum; None if it is not for this key."""
    data = files.read_at(descriptor, _FIRST_READ, 0)
    start = len(_MAGIC) + 8
    size, checksum = (int.from_bytes(data[at : at + 4], "big") for at in (len(_MAGIC), len(_MAGIC) + 4))
    if data[: len(_MAGIC)] != _MAGIC or size > PACKED_BYTES:
        return None
    header = data[start : start + size]
    if len(header) < size:
        header = files.read_at(descriptor, size, start)
    if crc32(header) != checksum:
        return None
    written_for, table = marshal.loads(header)
    if key is not None and written_for != key:
        return None
    places = {}
    at = start + size
    for name, length, section_checksum in table:
        places[name] = (at, length, section_checksum)
        at += length
    return places if at == files.stamp_of_open(descriptor)[2] else None


def read_any(folder: str, key: str) -> PackedFile | None:
    """Return the file that was written for a key, whatever the disk is now; None if there is none."""
    return _opened(place_of(folder, key), key)


def read_latest(folder: str, key: str) -> tuple[PackedFile, DiskState] | None:
    """Return the file that was written for a key, and the state of the disk in its section `state`.

    Only if that state is current, the file tells what is on the disk. Another section raises Damaged when it is used,
    if it is damaged.
    """
    sections = read_any(folder, key)
    if sections is None:
        return None
    try:
        return sections, DiskState.decoded(sections["state"])
    except (EOFError, KeyError, TypeError, ValueError):
        return None


def write_sections(folder: str, key: str, sections: Sections, *, unchecked: Sequence[str] = ()) -> None:
    """Write sections for a key, and remove the oldest files if there are too many; a failure costs the next scan time.

    The reader checks the checksums of all sections but those `unchecked`, which have others inside.
    """
    from skillshelf.core.disk_writes import make_own_folder, remove, replace_file

    table = [(name, len(data), None if name in unchecked else crc32(data)) for name, data in sections.items()]
    header = marshal.dumps((key, table))
    start = _MAGIC + len(header).to_bytes(4, "big") + crc32(header).to_bytes(4, "big")
    whole = b"".join((start, header, *sections.values()))
    path = place_of(folder, key)
    if len(whole) > PACKED_BYTES or (files.kind_at(path) is not None and not files.is_own_file(path)):
        return
    parent = os.path.dirname(path)
    try:
        make_own_folder(parent)
        if not files.is_own_folder(parent):
            return
        replace_file(path, whole, durable=False)
        kept = files.stamps_in(parent)
    except OSError:
        return
    if len(kept) > PACKED_KEPT:
        for name in sorted(kept, key=lambda name: kept[name][3])[: len(kept) - PACKED_KEPT]:
            remove(f"{parent}/{name}")
