"""Unpack archives in memory, `.zip`, `.skill` and `.tar.gz`, and read skills from them.

Two programs must not see two different archives in one file. So everything is refused that programs read differently:
headers that disagree, bytes that no header explains, names given twice. What is unpacked is regular files alone.
"""

import stat
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from skillshelf.catalog.source import ExecutableFile, SourceEntry, SourceIdentity, SourceLimits
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.limits import ARCHIVE_RATIO, ARCHIVE_RATIO_FROM
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import plural, visible
from skillshelf.errors import SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.reference import SourceContext, SourceReference
from skillshelf.install.skill_entries import (
    SKILL_FILE,
    check_names,
    check_sizes,
    chosen_folders,
    entry_of,
    files_below,
    some_of,
)

__all__ = ["ArchiveKind", "ArchiveSource", "unpack"]

ArchiveKind = Literal["zip", "tar.gz", "tar"]

_CHUNK = 1 << 16


class _Budget:
    """The files and bytes that one archive may still hold; several skills fit into it."""

    def __init__(self, compressed: int, limits: SourceLimits) -> None:
        self.compressed = compressed
        self.entries = 4 * limits.files
        self.bytes = 2 * limits.bytes
        self._most = self.bytes
        self._end = time.monotonic() + limits.seconds
        if compressed > self.bytes:
            raise SourceRefused("too-large", f"the archive has {compressed} bytes; at most {self.bytes}")

    def take_entry(self) -> None:
        """Count an entry."""
        self.entries -= 1
        if self.entries < 0:
            raise SourceRefused("too-many-files", "the archive has more entries than an archive of skills may have")
        self.check_time()

    def take(self, size: int) -> None:
        """Count unpacked bytes."""
        self.bytes -= size
        expanded = self._most - self.bytes
        if self.bytes < 0:
            raise SourceRefused("too-large", f"the archive holds more than {self._most} bytes")
        self.check_ratio(expanded)

    def check_ratio(self, expanded: int) -> None:
        """Refuse what unpacks to much more than it is."""
        if expanded > ARCHIVE_RATIO_FROM and expanded > ARCHIVE_RATIO * self.compressed:
            raise SourceRefused("ratio", f"the archive unpacks to more than {ARCHIVE_RATIO} times its size")
        self.check_time()

    def check_time(self) -> None:
        """Refuse what takes too long."""
        if time.monotonic() > self._end:
            raise SourceRefused("too-slow", "unpacking the archive takes too long")


def unpack(data: bytes, limits: SourceLimits, *, kind: ArchiveKind) -> dict[str, bytes]:
    """Return the files of an archive by path; one that its owner may execute is an `ExecutableFile`.

    Names are checked, and a leading `./` is dropped. Folders are not returned. An archive may hold several skills:
    four times the files and twice the bytes of the limits. Raise SourceRefused with the rule that is broken.
    """
    budget = _Budget(len(data), limits)
    if kind == "zip":
        entries = _zip_entries(data, budget)
    else:
        entries = _tar_entries(_gunzipped(data, budget) if kind == "tar.gz" else data, budget, kind)
    found: list[tuple[str, bytes]] = []
    folders: list[str] = []
    for name, content in entries:
        path = _without_dots(name)
        if content is None:
            folders.append(path.rstrip("/"))
        else:
            found.append((path, content))
    check_names((path for path, _ in found), (folder for folder in folders if folder not in ("", ".")))
    return dict(found)


def _without_dots(name: str) -> str:
    while name.startswith("./"):
        name = name[2:]
    return name


def _refused(rule: str, name: str, reason: str) -> SourceRefused:
    return SourceRefused(rule, f"the archive's entry {visible(name)!r} {reason}")


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        shown = name.decode("utf-8", "backslashreplace")
        raise _refused("name", shown, "has a name that is not UTF-8") from None


# Zip ----------------------------------------------------------------------------------------------

_ZIP_END = struct.Struct("<4s4H2LH")
_ZIP_CENTRAL = struct.Struct("<4s6H3L5H2L")
_ZIP_LOCAL = struct.Struct("<4s5H3L2H")
_ZIP_VERSION = 63
_UNIX = (3, 19)
_ENCRYPTED, _DESCRIPTOR, _PATCHED, _STRONG, _UTF8, _MASKED = 0x1, 0x8, 0x20, 0x40, 0x800, 0x2000
_UNICODE_PATH, _ZIP64, _AES = 0x7075, 0x0001, 0x9901
_DOS_FOLDER, _DOS_LINK = 0x10, 0x400


class _ZipEntry(NamedTuple):
    """One entry of the directory at the end of a zip."""

    name: bytes
    made_by: int
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    attributes: int
    offset: int

    @property
    def text(self) -> str:
        return _text(self.name)


def _zip_entries(data: bytes, budget: _Budget) -> Iterator[tuple[str, bytes | None]]:
    entries, start = _zip_directory(data, budget)
    at = 0
    for entry in sorted(entries, key=lambda one: one.offset):
        # Entries follow each other without a gap: nothing is hidden between them, and none is unpacked twice.
        if entry.offset != at:
            raise _refused(
                "overlap" if entry.offset < at else "hidden-data", entry.text, "does not follow the one before"
            )
        begin = _zip_local(data, entry)
        at = begin + entry.packed + _descriptor_size(data, entry, begin + entry.packed)
        if at > start:
            raise _refused("overlap", entry.text, "overlaps the directory of the archive")
        is_folder = _is_zip_folder(entry)
        content = _inflated(data[begin : begin + entry.packed], entry, budget)
        yield entry.text, None if is_folder else content
    if at != start:
        raise SourceRefused("hidden-data", "the archive has bytes that belong to no entry")


def _zip_directory(data: bytes, budget: _Budget) -> tuple[list[_ZipEntry], int]:
    """Return the entries of the directory at the end, and where it starts."""
    where = data.rfind(b"PK\x05\x06")
    if where < 0 or len(data) - where < _ZIP_END.size:
        raise SourceRefused("not-an-archive", "it is not a zip file, or its end is missing")
    _, disk, first_disk, here, total, size, start, comment = _ZIP_END.unpack_from(data, where)
    if 0xFFFF in (disk, here, total) or 0xFFFFFFFF in (size, start) or data[max(0, where - 20) :][:4] == b"PK\x06\x07":
        raise SourceRefused("zip64", "the archive uses the fields of archives over 4 GiB")
    if where + _ZIP_END.size + comment != len(data):
        raise SourceRefused("trailing-data", "bytes follow the end of the archive")
    if disk or first_disk or here != total:
        raise SourceRefused("header-mismatch", "the archive is a part of several files")
    if start + size != where:
        raise SourceRefused("header-mismatch", "the directory of the archive is not where its end says")
    entries, at = [], start
    for _ in range(total):
        budget.take_entry()
        entry, at = _zip_directory_entry(data, at, where)
        entries.append(entry)
    if at != where:
        raise SourceRefused("header-mismatch", "the directory of the archive has more entries than its end says")
    return entries, start


def _zip_directory_entry(data: bytes, at: int, end: int) -> tuple[_ZipEntry, int]:
    if at + _ZIP_CENTRAL.size > end or data[at : at + 4] != b"PK\x01\x02":
        raise SourceRefused("header-mismatch", "the directory of the archive has fewer entries than its end says")
    fields = _ZIP_CENTRAL.unpack_from(data, at)
    (
        _,
        made_by,
        version,
        flags,
        method,
        _,
        _,
        crc,
        packed,
        size,
        name_size,
        extra_size,
        comment,
        disk,
        _,
        attributes,
        start,
    ) = fields
    at += _ZIP_CENTRAL.size
    name, extra = data[at : at + name_size], data[at + name_size : at + name_size + extra_size]
    entry = _ZipEntry(name, made_by >> 8, flags, method, crc, packed, size, attributes, start)
    at += name_size + extra_size + comment
    if at > end or disk:
        raise _refused("header-mismatch", entry.text, "reaches beyond the directory of the archive")
    if 0xFFFFFFFF in (packed, size, start):
        raise _refused("zip64", entry.text, "uses the fields of archives over 4 GiB")
    if flags & (_ENCRYPTED | _STRONG | _MASKED) or method == 99 or _AES in _extra_ids(extra, entry):
        raise _refused("encrypted", entry.text, "is encrypted")
    if method not in (0, 8) or flags & _PATCHED or version > _ZIP_VERSION:
        raise _refused("compression", entry.text, f"is packed by a method that is not read ({method})")
    return entry, at


def _extra_ids(extra: bytes, entry: _ZipEntry) -> set[int]:
    """Return the kinds of the extra fields; those that name the entry or its size again are refused."""
    found, at = set(), 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        field = extra[at + 4 : at + 4 + size]
        found.add(kind)
        if kind == _UNICODE_PATH and field[5:] != entry.name:
            raise _refused("header-mismatch", entry.text, "has a second name")
        if kind == _ZIP64:
            raise _refused("zip64", entry.text, "uses the fields of archives over 4 GiB")
        at += 4 + size
    return found


def _zip_local(data: bytes, entry: _ZipEntry) -> int:
    """Return where the bytes of an entry start; its own header must say what the directory says."""
    at = entry.offset
    if at + _ZIP_LOCAL.size > len(data) or data[at : at + 4] != b"PK\x03\x04":
        raise _refused("header-mismatch", entry.text, "has no header where the directory says")
    _, _, flags, method, _, _, crc, packed, size, name_size, extra_size = _ZIP_LOCAL.unpack_from(data, at)
    at += _ZIP_LOCAL.size
    if data[at : at + name_size] != entry.name:
        raise _refused("header-mismatch", entry.text, "has another name in its own header")
    _extra_ids(data[at + name_size : at + name_size + extra_size], entry)
    said, known = (crc, packed, size), (entry.crc, entry.packed, entry.size)
    is_later = bool(flags & _DESCRIPTOR)
    compared = _ENCRYPTED | _DESCRIPTOR | _PATCHED | _STRONG | _UTF8 | _MASKED
    if method != entry.method or (flags ^ entry.flags) & compared:
        raise _refused("header-mismatch", entry.text, "has another method in its own header")
    if any(value != other and not (is_later and value == 0) for value, other in zip(said, known, strict=True)):
        raise _refused("header-mismatch", entry.text, "has another size or checksum in its own header")
    return int(at + name_size + extra_size)


def _descriptor_size(data: bytes, entry: _ZipEntry, at: int) -> int:
    """Return the size of what repeats sizes and checksum after the bytes of an entry, if it is announced."""
    if not entry.flags & _DESCRIPTOR:
        return 0
    expected = struct.pack("<3L", entry.crc, entry.packed, entry.size)
    if data[at : at + 16] == b"PK\x07\x08" + expected:
        return 16
    if data[at : at + 12] == expected:
        return 12
    raise _refused("header-mismatch", entry.text, "has another size or checksum after its bytes")


def _is_zip_folder(entry: _ZipEntry) -> bool:
    mode = entry.attributes >> 16
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFLNK or entry.attributes & _DOS_LINK:
        raise _refused("link", entry.text, "is a link")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused("special-file", entry.text, "is a pipe, a socket or a device")
    is_folder = entry.name.endswith(b"/")
    if (kind == stat.S_IFDIR) != is_folder and kind != 0:
        raise _refused("header-mismatch", entry.text, "is a folder by its name or by its mode, and not by the other")
    if is_folder and entry.size:
        raise _refused("header-mismatch", entry.text, "is a folder with bytes in it")
    if not is_folder and entry.attributes & _DOS_FOLDER:
        raise _refused("header-mismatch", entry.text, "is a folder by its attributes, and not by its name")
    return is_folder


def _inflated(packed: bytes, entry: _ZipEntry, budget: _Budget) -> bytes:
    budget.take(entry.size)
    if entry.method == 0:
        content, whole = packed, True
    else:
        stream = zlib.decompressobj(-15)
        try:
            content = stream.decompress(packed, entry.size + 1)
        except zlib.error:
            raise _refused("damaged", entry.text, "cannot be unpacked") from None
        whole = stream.eof and not stream.unused_data
    if len(content) != entry.size or not whole:
        raise _refused("header-mismatch", entry.text, "does not have the size that its header says")
    if zlib.crc32(content) != entry.crc:
        raise _refused("damaged", entry.text, "does not have its checksum")
    runnable = entry.made_by in _UNIX and entry.attributes >> 16 & stat.S_IXUSR
    return ExecutableFile(content) if runnable else content


# Tar ----------------------------------------------------------------------------------------------

_BLOCK = 512
_FILE, _FOLDER = b"0\0", b"5"
_LONG_NAME, _PAX, _PAX_ALL = b"L", b"x", b"g"
_KINDS = {b"1": "link", b"2": "link", b"K": "link", b"3": "special-file", b"4": "special-file", b"6": "special-file"}
_TAR_NUMBERS = ((108, 116), (116, 124), (136, 148), (329, 337), (337, 345))
_PAX_IGNORED = ("mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment")
_PAX_IGNORED_STARTS = ("LIBARCHIVE.", "SCHILY.xattr.", "SCHILY.dev", "SCHILY.ino", "SCHILY.nlink", "SCHILY.fflags")


def _gunzipped(data: bytes, budget: _Budget) -> bytes:
    """Return the bytes of a single gzip stream."""
    if not data.startswith(b"\x1f\x8b\x08"):
        raise SourceRefused("not-an-archive", "it is not a gzip file")
    stream = zlib.decompressobj(31)
    parts: list[bytes] = []
    # Each file of a tar has a header and is filled up to whole blocks, which are not its bytes.
    room = budget.bytes + budget.entries * 4 * _BLOCK
    at, expanded = 0, 0
    while not stream.eof:
        piece = stream.unconsumed_tail or data[at : at + _CHUNK]
        at += 0 if stream.unconsumed_tail else len(piece)
        try:
            part = stream.decompress(piece, 4 * _CHUNK)
        except zlib.error:
            raise SourceRefused("damaged", "the archive cannot be unpacked") from None
        if not piece and not part and not stream.eof:
            raise SourceRefused("damaged", "the archive ends in the middle")
        parts.append(part)
        expanded += len(part)
        if expanded > room:
            raise SourceRefused("too-large", "the archive holds more bytes than an archive of skills may have")
        budget.check_ratio(expanded)
    rest = stream.unused_data + data[at:]
    if rest.startswith(b"\x1f\x8b"):
        raise SourceRefused("gzip-members", "the archive is several gzip files, one after the other")
    if rest:
        raise SourceRefused("trailing-data", "bytes follow the end of the archive")
    return b"".join(parts)


class _TarHeader(NamedTuple):
    """One header of a tar."""

    name: bytes
    mode: int
    size: int
    kind: bytes
    link: bytes


def _tar_entries(data: bytes, budget: _Budget, kind: ArchiveKind) -> Iterator[tuple[str, bytes | None]]:
    at, name = 0, None
    while data[at : at + _BLOCK].strip(b"\0"):
        budget.take_entry()
        header = _tar_header(data, at)
        begin = at + _BLOCK
        content = data[begin : begin + header.size]
        at = begin + -(-header.size // _BLOCK) * _BLOCK
        if at > len(data):
            raise SourceRefused("damaged", "the archive ends in the middle")
        if header.kind in (_PAX, _PAX_ALL, _LONG_NAME):
            if name is not None:
                raise SourceRefused("header-mismatch", "two headers of the archive name one entry")
            name = _second_name(header, content, data[at : at + _BLOCK])
            continue
        yield _tar_file(header, content, name, budget)
        name = None
    if name is not None:
        raise SourceRefused("header-mismatch", "the last header of the archive names no entry")
    _check_tar_end(data, at, kind)


def _check_tar_end(data: bytes, at: int, kind: ArchiveKind) -> None:
    if not data:
        raise SourceRefused("not-an-archive", "the archive is empty")
    if len(data) - at < 2 * _BLOCK:
        raise SourceRefused("damaged", "the end of the archive is missing")
    if data[at:].strip(b"\0"):
        raise SourceRefused("trailing-data", f"bytes follow the end of the {kind}")


def _tar_file(header: _TarHeader, content: bytes, name: bytes | None, budget: _Budget) -> tuple[str, bytes | None]:
    text = _text(name or header.name)
    if header.kind in _KINDS:
        raise _refused(_KINDS[header.kind], text, "is not a file or a folder")
    if header.kind == b"S":
        raise _refused("sparse", text, "is a file with holes")
    if header.kind == _FOLDER:
        if header.size:
            raise _refused("header-mismatch", text, "is a folder with bytes in it")
        return text, None
    if header.kind not in _FILE or header.link:
        raise _refused("header-mismatch", text, "is of a kind that is not read")
    if text.endswith("/"):
        raise _refused("header-mismatch", text, "is a folder by its name, and not by its kind")
    budget.take(header.size)
    return text, ExecutableFile(content) if header.mode & stat.S_IXUSR else content


def _tar_header(data: bytes, at: int) -> _TarHeader:
    block = data[at : at + _BLOCK]
    if len(block) < _BLOCK:
        raise SourceRefused("damaged" if at else "not-an-archive", "the archive ends in the middle")
    said = _octal(block[148:156])
    if said != sum(block[:148]) + 8 * 32 + sum(block[156:]):
        raise SourceRefused("damaged" if at else "not-an-archive", "a header of the archive has not its checksum")
    for start, end in _TAR_NUMBERS:
        # What is not used here may be binary, as the number of a user can be.
        if block[start] not in (0x80, 0xFF):
            _octal(block[start:end])
    name, prefix = block[:100].partition(b"\0")[0], block[345:500].partition(b"\0")[0]
    is_plain = block[257:265] == b"ustar  \0" or not block[257:265].strip(b"\0")
    if (prefix and is_plain) or (block[257:265] != b"ustar\x0000" and not is_plain):
        raise _refused("header-mismatch", _shown_bytes(name), "has a header of a format that is not read")
    link = block[157:257].strip(b"\0")
    whole = prefix + b"/" + name if prefix else name
    return _TarHeader(whole, _octal(block[100:108]), _octal(block[124:136]), block[156:157], link)


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits:
        return 0
    if digits.strip(b"01234567"):
        # Among them the binary numbers of files over 8 GiB.
        raise SourceRefused("header-mismatch", "a header of the archive has a number that is not octal")
    return int(digits, 8)


def _second_name(header: _TarHeader, content: bytes, following: bytes) -> bytes | None:
    """Return the name that an extra header gives to the entry after it; empty if it gives none, None if it is global.

    It may only say what has no room in the header of the entry itself: a name of more than 100 bytes or not in ASCII.
    """
    if header.kind == _LONG_NAME:
        name = content.removesuffix(b"\0")
        short = following[:100].partition(b"\0")[0]
        if len(name) < 100 or b"\0" in name or not name.startswith(short) or len(short) < 99:
            raise _refused("long-name", _shown_bytes(name), "has two names")
        return name
    records = dict(_pax_records(content))
    name = records.pop("path", b"")
    size = records.pop("size", None)
    if name and (header.kind == _PAX_ALL or (len(name) <= 100 and name.isascii()) or b"\0" in name):
        raise _refused("pax-override", _shown_bytes(name), "has two names")
    if size is not None and size.strip() != b"%d" % _octal(following[124:136]):
        raise SourceRefused("pax-override", "an entry of the archive has two sizes")
    for key in records:
        if key not in _PAX_IGNORED and not key.startswith(_PAX_IGNORED_STARTS):
            raise SourceRefused("pax-override", f"a header of the archive says {visible(key)!r}, which is not read")
    return None if header.kind == _PAX_ALL else name


def _pax_records(content: bytes) -> Iterable[tuple[str, bytes]]:
    """Return the records of an extra header, `LENGTH KEY=VALUE` and a newline each."""
    seen: set[str] = set()
    at = 0
    while at < len(content):
        length, space, _ = content[at : at + 20].partition(b" ")
        if not space or not length.isdigit() or not 4 < int(length) <= len(content) - at:
            raise SourceRefused("pax-override", "a header of the archive has a record of the wrong length")
        record = content[at + len(length) + 1 : at + int(length)]
        key, equals, value = record.partition(b"=")
        text = key.decode("utf-8", "backslashreplace")
        if not equals or not value.endswith(b"\n") or text in seen:
            raise SourceRefused("pax-override", f"a header of the archive says {visible(text)!r} twice or wrongly")
        seen.add(text)
        yield text, value[:-1]
        at += int(length)


def _shown_bytes(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


# The source ---------------------------------------------------------------------------------------


class ArchiveSource:
    """Skills in an archive on this machine, which is read once."""

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self.label = reference.canonical
        self.notes: list[str] = []
        self._reference = reference
        self._limits = context.limits
        self._contents: Mapping[str, bytes] | None = None
        self._digest = ""

    def list(self) -> Iterable[SourceEntry]:
        """Return the skills in the archive."""
        contents, path = self._unpacked(), self._reference.path
        stem = self._reference.location.rpartition("/")[2].partition(".")[0]
        folders = chosen_folders(contents, path, self._limits, self.label)
        return [entry_of(folder, contents[f"{folder}/{SKILL_FILE}".lstrip("/")], stem) for folder in folders]

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of a skill in the archive."""
        contents = self._unpacked()
        found = files_below(contents, entry.path)
        if SKILL_FILE not in found:
            raise SourceNotFound(f"{visible(self.label)}: no {SKILL_FILE} found in {visible(entry.path or '.')!r}")
        check_sizes({path: len(data) for path, data in found.items()}, limits)
        self.notes = []
        if beside := len(contents) - len(found):
            self.notes.append(f"{plural(beside, 'file')} of the archive outside the skill left out")
        return some_of(found, paths)

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return the archive with the digest of its bytes."""
        self._unpacked()
        return SourceIdentity(self.label, entry.path, None, None, self._digest, "a file on this machine")

    def _unpacked(self) -> Mapping[str, bytes]:
        if self._contents is None:
            path = self._reference.location
            data = _read_archive(path, 2 * self._limits.bytes)
            self._digest = f"sha256:{sha256(data).hexdigest()}"
            kind: ArchiveKind = "tar.gz" if path.lower().endswith((".tar.gz", ".tgz")) else "zip"
            self._contents = unpack(data, self._limits, kind=kind)
        return self._contents


def _read_archive(path: str, limit: int) -> bytes:
    try:
        data = files.read_file(path, limit=limit, links="follow")
    except FileNotFoundError:
        raise SourceNotFound(f"no such file: {visible(path)}") from None
    except OSError as error:
        raise SourceUnreachable(f"{visible(path)}: {error.strerror}") from None
    if data is None:
        raise SourceRefused("too-large", f"{visible(path)} is not a file of at most {limit} bytes")
    return data
