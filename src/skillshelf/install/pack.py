"""Pack a skill into an archive whose bytes follow from its files alone.

Nothing is compressed: what a compressor writes changes with its version, and then the digest of the same skill would
change with the machine. The formats are written here for the same reason, and hold no times, owners or order of a disk.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping

from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import PROBLEMS, skill_tree, tree_digest
from skillshelf.core import files
from skillshelf.errors import FileReadError, SourceRefused

__all__ = ["skill_files", "tar_gzip_of", "zip_of"]

_FIRST_DAY = 0x21
"""The first of January 1980, as a zip writes it."""

_UTF8_NAMES = 0x800
_MADE_ON_UNIX = (3 << 8) | 20
_BLOCK = 512
_STORED = 0xFFFF


def skill_files(folder: str) -> tuple[dict[str, bytes], str]:
    """Return the files of a skill on disk, by a real path, and the digest of their tree.

    Raise SourceRefused for a skill that cannot be installed elsewhere, FileReadError for one that changes meanwhile.
    """
    tree = skill_tree(folder)
    if tree.digest is None:
        reason = PROBLEMS[tree.problem] if tree.problem is not None else "it has no digest"
        raise SourceRefused(str(tree.problem), f"{folder} cannot be published: {reason}")
    contents: dict[str, bytes] = {}
    try:
        with files.Folder(folder) as opened:
            for path, known in tree.listed.items():
                data, _, runs = opened.read(path.split("/"), limit=known.size)
                contents[path] = ExecutableFile(data) if runs else data
    except OSError as error:
        raise FileReadError(folder, error) from error
    if tree_digest(listed_files(contents)) != tree.digest:
        raise FileReadError(folder, OSError("it changed while it was read"))
    return contents, tree.digest


def _ordered(contents: Mapping[str, bytes], wrapper: str) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield path, bytes and mode of every file, sorted by the bytes of the paths."""
    start = f"{wrapper}/" if wrapper else ""
    for path in sorted(contents, key=files.path_bytes):
        mode = 0o755 if isinstance(contents[path], ExecutableFile) else 0o644
        yield f"{start}{path}".encode(), contents[path], mode


# Zip ----------------------------------------------------------------------------------------------


def zip_of(contents: Mapping[str, bytes], *, wrapper: str = "") -> bytes:
    """Return a zip with these files, below a folder `wrapper` if it is given."""
    parts, directory, at = [], [], 0
    for name, data, mode in _ordered(contents, wrapper):
        fields = (20, _UTF8_NAMES, 0, 0, _FIRST_DAY, zlib.crc32(data), len(data), len(data), len(name), 0)
        parts.append(struct.pack("<4s5H3L2H", b"PK\x03\x04", *fields) + name + data)
        attributes = (0o100000 | mode) << 16
        directory.append(
            struct.pack("<4sH5H3L5H2L", b"PK\x01\x02", _MADE_ON_UNIX, *fields, 0, 0, 0, attributes, at) + name
        )
        at += len(parts[-1])
    listing = b"".join(directory)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, len(parts), len(parts), len(listing), at, 0)
    return b"".join((*parts, listing, end))


# Tar ----------------------------------------------------------------------------------------------


def tar_gzip_of(contents: Mapping[str, bytes], *, wrapper: str = "") -> bytes:
    """Return a tar in a gzip with these files, below a folder `wrapper` if it is given."""
    parts = []
    for name, data, mode in _ordered(contents, wrapper):
        if len(name) > 100 or not name.isascii():
            record = _pax_record(name)
            parts += [_tar_header(b"././@PaxHeader", len(record), 0o644, b"x"), _filled(record)]
        parts += [_tar_header(name[:100], len(data), mode, b"0"), _filled(data)]
    return _gzip(b"".join((*parts, bytes(2 * _BLOCK))))


def _tar_header(name: bytes, size: int, mode: int, kind: bytes) -> bytes:
    # The first 100 bytes of a long name may end inside a character; who reads that field alone reads bytes.
    head = name.ljust(100, b"\0") + b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (mode, 0, 0, size, 0)
    rest = kind + bytes(100) + b"ustar\x0000" + bytes(64) + b"%07o\0%07o\0" % (0, 0) + bytes(167)
    total = sum(head) + sum(rest) + 8 * ord(" ")
    return head + b"%06o\0 " % total + rest


def _pax_record(name: bytes) -> bytes:
    """Return the record of a long name, which begins with its own length."""
    body = b" path=" + name + b"\n"
    size = len(body)
    while len(b"%d" % size) + len(body) != size:
        size = len(b"%d" % size) + len(body)
    return b"%d" % size + body


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % _BLOCK)


def _gzip(data: bytes) -> bytes:
    """Return a gzip of blocks that are stored as they are."""
    parts = [b"\x1f\x8b\x08\0\0\0\0\0\0\xff"]
    for at in range(0, len(data), _STORED):
        block = data[at : at + _STORED]
        is_last = at + _STORED >= len(data)
        parts.append(struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF) + block)
    return b"".join((*parts, struct.pack("<LL", zlib.crc32(data), len(data) & 0xFFFFFFFF)))
