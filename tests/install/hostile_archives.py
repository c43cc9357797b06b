"""Archives that attack whoever unpacks them, each with the rule that refuses it, and healthy ones beside them.

They are put together byte by byte: the modules of the standard library refuse to write most of them.
"""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple

from skillshelf.install.archive import ArchiveKind

__all__ = ["HEALTHY", "HOSTILE", "Healthy", "Hostile", "Zipped", "tar_block", "tar_of", "zip_of"]

SKILL = b"---\nname: pdf\ndescription: Reads PDF files.\n---\n\nRead it.\n"
FILE = stat.S_IFREG | 0o644


class Zipped(NamedTuple):
    """One entry of a zip; the members with a default can lie."""

    name: bytes
    data: bytes = b""
    mode: int = FILE
    method: int = 8
    flags: int = 0x800
    local_name: bytes | None = None
    local_method: int | None = None
    size: int | None = None
    local_size: int | None = None
    crc: int | None = None
    extra: bytes = b""
    local_extra: bytes = b""
    dos: int = 0
    system: int = 3
    offset: int | None = None
    before: bytes = b""
    descriptor: bytes = b""
    packed: bytes | None = None


def zip_of(*entries: Zipped, end: dict[str, int] | None = None, comment: bytes = b"", prefix: bytes = b"") -> bytes:
    """Return a zip of these entries; `end` replaces numbers in its last record."""
    out, directory = bytearray(prefix), bytearray()
    for one in entries:
        out += one.before
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = one.packed
        if packed is None:
            packed = packer.compress(one.data) + packer.flush() if one.method == 8 else one.data
        crc = zlib.crc32(one.data) if one.crc is None else one.crc
        size = len(one.data) if one.size is None else one.size
        local = one.name if one.local_name is None else one.local_name
        method = one.method if one.local_method is None else one.local_method
        offset = len(out) if one.offset is None else one.offset
        sizes = (0, 0, 0) if one.flags & 8 else (crc, len(packed), size if one.local_size is None else one.local_size)
        out += struct.pack(
            "<4s5H3L2H", b"PK\3\4", 20, one.flags, method, 0, 33, *sizes, len(local), len(one.local_extra)
        )
        out += local + one.local_extra + packed + one.descriptor
        directory += struct.pack(
            "<4s6H3L5H2L", b"PK\1\2", one.system << 8 | 20, 20, one.flags, one.method, 0, 33, crc, len(packed), size,
            len(one.name), len(one.extra), 0, 0, 0, one.mode << 16 | one.dos, offset,
        )  # fmt: skip
        directory += one.name + one.extra
    said = {"disk": 0, "here": len(entries), "total": len(entries), "size": len(directory), "start": len(out)}
    said |= end or {}
    out += directory
    out += struct.pack(
        "<4s4H2LH", b"PK\5\6", said["disk"], 0, said["here"], said["total"], said["size"], said["start"], len(comment)
    )
    return bytes(out + comment)


def zipped(*more: Zipped) -> bytes:
    """Return a zip of a skill and more."""
    return zip_of(Zipped(b"SKILL.md", SKILL), *more)


def tar_block(
    name: bytes, data: bytes = b"", kind: bytes = b"0", *, mode: int = 0o644, link: bytes = b"", size: bytes = b"",
    magic: bytes = b"ustar\x0000", prefix: bytes = b"",
) -> bytes:  # fmt: skip
    """Return the header and the bytes of one entry of a tar."""
    said = size or b"%011o\0" % len(data)
    head = bytearray(
        name.ljust(100, b"\0") + b"%07o\0" % mode + b"0000000\0" * 2 + said + b"%011o\0" % 0 + b" " * 8
        + kind + link.ljust(100, b"\0") + magic + b"\0" * 64 + b"0000000\0" * 2 + prefix.ljust(155, b"\0")
    )  # fmt: skip
    head = head.ljust(512, b"\0")
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + b"\0" * (-len(data) % 512)


def tar_of(*blocks: bytes, end: bytes = b"\0" * 1024) -> bytes:
    """Return a packed tar of a skill and more blocks."""
    return gzip.compress(tar_block(b"SKILL.md", SKILL) + b"".join(blocks) + end, mtime=0)


def pax(**records: str) -> bytes:
    """Return an extra header with these records."""
    return tar_block(b"PaxHeader", pax_data(*records.items()), b"x")


def pax_data(*records: tuple[str, str]) -> bytes:
    """Return the records of an extra header."""
    lines = b""
    for key, value in records:
        body = f" {key}={value}\n".encode()
        size = len(body) + 1
        size = size if len(str(size)) + len(body) == size else len(str(size + 1)) + len(body)
        lines += str(size).encode() + body
    return lines


class Hostile(NamedTuple):
    """An archive that must be refused, and the rule that says why."""

    name: str
    kind: ArchiveKind
    rule: str
    make: Callable[[], bytes]


def _named(title: str, rule: str, name: bytes) -> list[Hostile]:
    """Return a zip and a tar with an entry of one name."""
    return [
        Hostile(f"zip {title}", "zip", rule, lambda: zipped(Zipped(name, b"x"))),
        Hostile(f"tar {title}", "tar.gz", rule, lambda: tar_of(tar_block(name, b"x"))),
    ]


def _bomb(size: int) -> bytes:
    return zipped(Zipped(b"bomb", b"\0" * size))


def _overlap() -> bytes:
    first = Zipped(b"SKILL.md", SKILL)
    return zip_of(first, Zipped(b"a", b"aaaa"), Zipped(b"b", b"aaaa", offset=0, local_name=b"SKILL.md"))


def _quine() -> bytes:
    """Return a zip whose second entry holds the header and the bytes of the third: the overlap of better bombs."""
    inner = zip_of(Zipped(b"c", b"x" * 50, method=0))
    local = inner[: 30 + 1 + 50]
    at = len(zip_of(Zipped(b"SKILL.md", SKILL))) - 22 - 46 - 8
    return zip_of(
        Zipped(b"SKILL.md", SKILL),
        Zipped(b"b", local, method=0),
        Zipped(b"c", b"x" * 50, method=0, offset=at + 31),
    )


def _zip64() -> bytes:
    whole = zipped()
    where = whole.rindex(b"PK\5\6")
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, where, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, where, 1)
    return whole[:where] + record + locator + whole[where:]


def _two_archives() -> bytes:
    """Return an archive that ends with a comment which is another archive."""
    return zip_of(Zipped(b"SKILL.md", SKILL), comment=zipped(Zipped(b"evil.sh", b"x")))


def _members() -> bytes:
    whole = tar_block(b"SKILL.md", SKILL) + tar_block(b"evil.sh", b"x") + b"\0" * 1024
    return gzip.compress(whole[:1024], mtime=0) + gzip.compress(whole[1024:], mtime=0)


def _sparse_by_pax() -> bytes:
    records = pax_data(("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "999999999"))
    return tar_of(tar_block(b"PaxHeader", records, b"x"), tar_block(b"hole", b"x"))


DEVICE = stat.S_IFCHR | 0o600

HOSTILE: list[Hostile] = [
    # Names, in both formats.
    *_named("absolute path", "path-escape", b"/tmp/evil"),
    *_named("parent folder", "path-escape", b"../evil"),
    *_named("parent folder in the middle", "path-escape", b"a/../../evil"),
    *_named("parent folder after a dot", "path-escape", b"./../evil"),
    *_named("drive letter", "path-escape", b"C:/evil"),
    *_named("backslash", "backslash", b"..\\evil"),
    *_named("hook of git", "git-folder", b".git/hooks/post-checkout"),
    *_named("hook of git in capitals", "git-folder", b"sub/.GIT/config"),
    *_named("hook of git with an unseen character", "git-folder", ".g\u200cit/config".encode()),
    *_named("hook of git by its short name", "git-folder", b"git~1/config"),
    *_named("hook of git with a final dot", "git-folder", b".git./config"),
    *_named("hook of git as a stream", "git-folder", b".git::$INDEX_ALLOCATION/config"),
    *_named("escape sequence", "control-character", b"a\x1b[2Jb"),
    *_named("line break", "control-character", b"a\nSKILL.md"),
    *_named("device of Windows", "name", b"nul.txt"),
    *_named("device of Windows with a digit", "name", "sub/com\u00b9.md".encode()),
    *_named("final dot", "name", b"evil."),
    *_named("final blank", "name", b"SKILL.md "),
    *_named("bytes that are not UTF-8", "name", b"a\xff"),
    *_named("empty segment", "name", b"a//b"),
    *_named("dot in the middle", "name", b"a/./b"),
    *_named("exact duplicate", "duplicate", b"SKILL.md"),
    *_named("duplicate behind a dot", "duplicate", b"./SKILL.md"),
    *_named("case twin", "twin", b"skill.MD"),
    *_named("twin by compatibility", "twin", "\uff33KILL.md".encode()),
    *_named("file where a folder is needed", "twin", b"SKILL.md/x"),
    *_named("deep path", "depth", b"/".join([b"a"] * 33)),
    Hostile(
        "zip twin by composition", "zip", "twin", lambda: zipped(Zipped("\u00e9".encode()), Zipped("e\u0301".encode()))
    ),
    Hostile("zip long segment", "zip", "name", lambda: zipped(Zipped(b"a" * 256))),
    Hostile("zip null character", "zip", "control-character", lambda: zipped(Zipped(b"SKILL.md\0.txt"))),
    Hostile("zip folder named as a file", "zip", "twin", lambda: zipped(Zipped(b"SKILL.md/", mode=stat.S_IFDIR))),
    Hostile("tar folder outside", "tar.gz", "path-escape", lambda: tar_of(tar_block(b"../x/", kind=b"5"))),
    Hostile("zip folder of git", "zip", "git-folder", lambda: zipped(Zipped(b".git/", mode=stat.S_IFDIR))),
    # Kinds.
    Hostile("zip link", "zip", "link", lambda: zipped(Zipped(b"l", b"/etc/passwd", stat.S_IFLNK | 0o777))),
    Hostile("zip link of Windows", "zip", "link", lambda: zipped(Zipped(b"l", b"x", 0, dos=0x400, system=0))),
    Hostile("zip link by another system", "zip", "link", lambda: zipped(Zipped(b"l", b"x", stat.S_IFLNK, system=0))),
    Hostile("zip pipe", "zip", "special-file", lambda: zipped(Zipped(b"p", mode=stat.S_IFIFO))),
    Hostile("zip device", "zip", "special-file", lambda: zipped(Zipped(b"d", mode=DEVICE))),
    Hostile("zip folder with bytes", "zip", "header-mismatch", lambda: zipped(Zipped(b"d/", b"x", stat.S_IFDIR))),
    Hostile("zip folder by mode alone", "zip", "header-mismatch", lambda: zipped(Zipped(b"d", mode=stat.S_IFDIR))),
    Hostile("zip folder by attribute alone", "zip", "header-mismatch", lambda: zipped(Zipped(b"d", mode=0, dos=0x10))),
    Hostile("tar link", "tar.gz", "link", lambda: tar_of(tar_block(b"l", kind=b"2", link=b"/etc/passwd"))),
    Hostile("tar link inside", "tar.gz", "link", lambda: tar_of(tar_block(b"l", kind=b"2", link=b"SKILL.md"))),
    Hostile("tar hard link", "tar.gz", "link", lambda: tar_of(tar_block(b"l", kind=b"1", link=b"SKILL.md"))),
    Hostile("tar long link", "tar.gz", "link", lambda: tar_of(tar_block(b"././@LongLink", b"/etc\0", b"K"))),
    Hostile("tar character device", "tar.gz", "special-file", lambda: tar_of(tar_block(b"d", kind=b"3"))),
    Hostile("tar block device", "tar.gz", "special-file", lambda: tar_of(tar_block(b"d", kind=b"4"))),
    Hostile("tar pipe", "tar.gz", "special-file", lambda: tar_of(tar_block(b"p", kind=b"6"))),
    Hostile("tar kind of nobody", "tar.gz", "header-mismatch", lambda: tar_of(tar_block(b"p", kind=b"Z"))),
    Hostile("tar volume label", "tar.gz", "header-mismatch", lambda: tar_of(tar_block(b"p", kind=b"V"))),
    Hostile("tar folder with bytes", "tar.gz", "header-mismatch", lambda: tar_of(tar_block(b"d/", b"x", b"5"))),
    Hostile("tar file that is a folder", "tar.gz", "header-mismatch", lambda: tar_of(tar_block(b"d/", b"x"))),
    Hostile("tar sparse file", "tar.gz", "sparse", lambda: tar_of(tar_block(b"s", b"x", b"S"))),
    Hostile("tar sparse file by extra header", "tar.gz", "pax-override", _sparse_by_pax),
    # What two programs read differently.
    Hostile("zip other name inside", "zip", "header-mismatch", lambda: zipped(Zipped(b"a.md", local_name=b"b.sh"))),
    Hostile("zip other method inside", "zip", "header-mismatch", lambda: zipped(Zipped(b"a", b"x", local_method=0))),
    Hostile("zip other size inside", "zip", "header-mismatch", lambda: zipped(Zipped(b"a", b"x", local_size=7))),
    Hostile("zip smaller size than true", "zip", "header-mismatch", lambda: zipped(Zipped(b"a", b"x" * 99, size=1))),
    Hostile("zip larger size than true", "zip", "header-mismatch", lambda: zipped(Zipped(b"a", b"x", size=99))),
    Hostile(
        "zip bytes after the stream",
        "zip",
        "header-mismatch",
        lambda: zipped(Zipped(b"a", b"", packed=b"\x03\x00evil")),
    ),
    Hostile("zip wrong checksum", "zip", "damaged", lambda: zipped(Zipped(b"a", b"x", crc=1))),
    Hostile("zip broken stream", "zip", "damaged", lambda: zipped(Zipped(b"a", b"x", packed=b"\xff\xff"))),
    Hostile(
        "zip second name",
        "zip",
        "header-mismatch",
        lambda: zipped(Zipped(b"a", extra=struct.pack("<2HBL", 0x7075, 9, 1, 0) + b"evil")),
    ),
    Hostile(
        "zip second name inside",
        "zip",
        "header-mismatch",
        lambda: zipped(Zipped(b"a", local_extra=struct.pack("<2HBL", 0x7075, 9, 1, 0) + b"evil")),
    ),
    Hostile(
        "zip other sizes after the bytes",
        "zip",
        "header-mismatch",
        lambda: zipped(Zipped(b"a", b"x", flags=0x808, descriptor=b"PK\7\10" + struct.pack("<3L", 1, 2, 3))),
    ),
    Hostile("zip overlap", "zip", "overlap", _overlap),
    Hostile("zip entry inside another", "zip", "overlap", _quine),
    Hostile(
        "zip hidden bytes between entries",
        "zip",
        "hidden-data",
        lambda: zipped(Zipped(b"a", before=zip_of(Zipped(b"SKILL.md", b"evil"))[:60])),
    ),
    Hostile(
        "zip program before it", "zip", "hidden-data", lambda: zip_of(Zipped(b"SKILL.md", SKILL), prefix=b"#!/bin/sh\n")
    ),
    Hostile(
        "zip entry not in the directory",
        "zip",
        "header-mismatch",
        lambda: zip_of(Zipped(b"SKILL.md", SKILL), Zipped(b"evil"), end={"here": 1, "total": 1}),
    ),
    Hostile(
        "zip more entries than said",
        "zip",
        "header-mismatch",
        lambda: zip_of(Zipped(b"SKILL.md", SKILL), end={"here": 2, "total": 2}),
    ),
    Hostile(
        "zip directory elsewhere",
        "zip",
        "header-mismatch",
        lambda: zip_of(Zipped(b"SKILL.md", SKILL), end={"start": 4}),
    ),
    Hostile(
        "zip of several disks", "zip", "header-mismatch", lambda: zip_of(Zipped(b"SKILL.md", SKILL), end={"disk": 1})
    ),
    Hostile("zip header that is nowhere", "zip", "hidden-data", lambda: zipped(Zipped(b"a", offset=4_000_000_000))),
    Hostile("zip bytes after the end", "zip", "trailing-data", lambda: zipped() + b"evil"),
    Hostile("zip in a comment", "zip", "header-mismatch", _two_archives),
    Hostile("zip64 end", "zip", "zip64", _zip64),
    Hostile("zip64 sizes", "zip", "zip64", lambda: zipped(Zipped(b"a", b"x", size=0xFFFFFFFF))),
    Hostile(
        "zip64 extra field", "zip", "zip64", lambda: zipped(Zipped(b"a", b"x", extra=struct.pack("<2H2Q", 1, 16, 1, 1)))
    ),
    Hostile("zip64 count", "zip", "zip64", lambda: zip_of(Zipped(b"SKILL.md", SKILL), end={"total": 0xFFFF})),
    Hostile("zip encrypted", "zip", "encrypted", lambda: zipped(Zipped(b"a", b"x", flags=0x801))),
    Hostile("zip strongly encrypted", "zip", "encrypted", lambda: zipped(Zipped(b"a", b"x", flags=0x841))),
    Hostile("zip encrypted by AES", "zip", "encrypted", lambda: zipped(Zipped(b"a", b"x", method=99))),
    Hostile("zip of LZMA", "zip", "compression", lambda: zipped(Zipped(b"a", b"x", method=14))),
    Hostile("zip of Zstandard", "zip", "compression", lambda: zipped(Zipped(b"a", b"x", method=93))),
    Hostile("zip of nothing known", "zip", "compression", lambda: zipped(Zipped(b"a", b"x", method=1234))),
    Hostile("tar short extra name", "tar.gz", "pax-override", lambda: tar_of(pax(path="evil.sh"), tar_block(b"a.md"))),
    Hostile(
        "tar extra name outside",
        "tar.gz",
        "path-escape",
        lambda: tar_of(pax(path="\u00e9/../../evil"), tar_block(b"a.md")),
    ),
    Hostile(
        "tar extra name of git", "tar.gz", "git-folder", lambda: tar_of(pax(path="\u00e9/.git/x"), tar_block(b"a"))
    ),
    Hostile(
        "tar extra name for all",
        "tar.gz",
        "pax-override",
        lambda: tar_of(tar_block(b"PaxHeader", pax_data(("path", "\u00e9vil")), b"g"), tar_block(b"a")),
    ),
    Hostile("tar extra size", "tar.gz", "pax-override", lambda: tar_of(pax(size="0"), tar_block(b"a", b"evil"))),
    Hostile("tar extra link", "tar.gz", "pax-override", lambda: tar_of(pax(linkpath="/etc"), tar_block(b"a"))),
    Hostile(
        "tar extra character set", "tar.gz", "pax-override", lambda: tar_of(pax(hdrcharset="BINARY"), tar_block(b"a"))
    ),
    Hostile(
        "tar extra header of wrong length",
        "tar.gz",
        "pax-override",
        lambda: tar_of(tar_block(b"p", b"99999 path=x\n", b"x"), tar_block(b"a")),
    ),
    Hostile(
        "tar extra header said twice",
        "tar.gz",
        "pax-override",
        lambda: tar_of(tar_block(b"p", pax_data(("mtime", "1"), ("mtime", "2")), b"x"), tar_block(b"a")),
    ),
    Hostile(
        "tar two extra headers",
        "tar.gz",
        "header-mismatch",
        lambda: tar_of(pax(mtime="1"), pax(path="\u00e9"), tar_block(b"a")),
    ),
    Hostile("tar extra header of nothing", "tar.gz", "header-mismatch", lambda: tar_of(pax(mtime="1"))),
    Hostile(
        "tar long name that is short",
        "tar.gz",
        "long-name",
        lambda: tar_of(tar_block(b"././@LongLink", b"evil\0", b"L"), tar_block(b"a.md")),
    ),
    Hostile(
        "tar long name of another entry",
        "tar.gz",
        "long-name",
        lambda: tar_of(tar_block(b"././@LongLink", b"e" * 120 + b"\0", b"L"), tar_block(b"a.md")),
    ),
    Hostile(
        "tar binary size",
        "tar.gz",
        "header-mismatch",
        lambda: tar_of(tar_block(b"a", b"x", size=b"\x80" + b"\0" * 10 + b"\1")),
    ),
    Hostile(
        "tar negative size", "tar.gz", "header-mismatch", lambda: tar_of(tar_block(b"a", b"x", size=b"-0000000001\0"))
    ),
    Hostile(
        "tar size of more than there is",
        "tar.gz",
        "damaged",
        lambda: tar_of(tar_block(b"a", b"x", size=b"00077777777\0")),
    ),
    Hostile("tar wrong checksum", "tar.gz", "damaged", lambda: tar_of(b"evil" + tar_block(b"a")[4:])),
    Hostile("tar without an end", "tar.gz", "damaged", lambda: tar_of(end=b"")),
    Hostile(
        "tar bytes after the end",
        "tar.gz",
        "trailing-data",
        lambda: tar_of(end=b"\0" * 1024 + tar_block(b"evil.sh", b"x")),
    ),
    Hostile("tar prefix outside", "tar.gz", "path-escape", lambda: tar_of(tar_block(b"evil", prefix=b".."))),
    Hostile("gzip of several members", "tar.gz", "gzip-members", _members),
    Hostile("gzip with bytes after it", "tar.gz", "trailing-data", lambda: tar_of() + b"evil"),
    Hostile("gzip cut short", "tar.gz", "damaged", lambda: tar_of()[:-9]),
    Hostile("gzip with a wrong checksum", "tar.gz", "damaged", lambda: tar_of()[:-8] + b"\0" * 8),
    # Bombs.
    Hostile("zip bomb", "zip", "ratio", lambda: _bomb(8 << 20)),
    Hostile(
        "zip bomb of many files", "zip", "too-many-files", lambda: zipped(*(Zipped(b"%d" % n) for n in range(2100)))
    ),
    Hostile(
        "zip of too many bytes by its headers",
        "zip",
        "too-large",
        lambda: zipped(Zipped(b"a", b"", size=1 << 30, local_size=1 << 30)),
    ),
    Hostile("zip that is too large", "zip", "too-large", lambda: b"PK\3\4" + b"\0" * (33 << 20)),
    Hostile("gzip bomb", "tar.gz", "ratio", lambda: tar_of(tar_block(b"bomb", b"\0" * (16 << 20)))),
    Hostile("gzip bomb after the end", "tar.gz", "ratio", lambda: tar_of(end=b"\0" * (16 << 20))),
    Hostile(
        "tar of many files", "tar.gz", "too-many-files", lambda: tar_of(*(tar_block(b"%d" % n) for n in range(2100)))
    ),
    Hostile("tar of many extra headers", "tar.gz", "ratio", lambda: tar_of(*[pax(mtime="1")] * 2100)),
    # What is no archive.
    Hostile("empty zip file", "zip", "not-an-archive", lambda: b""),
    Hostile("page in place of a zip", "zip", "not-an-archive", lambda: b"<html>not found</html>"),
    Hostile("empty tar file", "tar.gz", "not-an-archive", lambda: b""),
    Hostile("page in place of a tar", "tar.gz", "not-an-archive", lambda: b"<html>not found</html>"),
    Hostile("text in a gzip", "tar.gz", "not-an-archive", lambda: gzip.compress(b"text", mtime=0)),
]


class Healthy(NamedTuple):
    """An archive that must be unpacked, and the files in it; those that may be executed are in `executables`."""

    name: str
    kind: ArchiveKind
    make: Callable[[], bytes]
    files: dict[str, bytes]
    executables: tuple[str, ...] = ()


LONG = "references/" + "/".join(["a-folder-with-a-name"] * 6) + "/page.md"


def _by_zipfile() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SKILL.md", SKILL)
        archive.writestr("references/\u65e5\u672c\u8a9e.md", "\u65e5")
        archive.writestr("empty", b"")
    return made.getvalue()


def _streamed() -> bytes:
    """Return a zip as a program writes it that cannot go back: sizes follow the bytes."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError

        def tell(self) -> int:
            raise OSError

    made = Pipe()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SKILL.md", SKILL)
    return made.getvalue()


def _by_tarfile(format: int, *names: str) -> bytes:  # noqa: A002
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", format=format) as archive:
        for name in names:
            about = tarfile.TarInfo(name)
            about.size, about.mtime = len(SKILL), 1.5 if format == tarfile.PAX_FORMAT else 1
            archive.addfile(about, io.BytesIO(SKILL))
    return made.getvalue()


RUN = Zipped(b"pdf/run.sh", b"#!/bin/sh\n", stat.S_IFREG | 0o755)

HEALTHY: list[Healthy] = [
    Healthy("zip", "zip", zipped, {"SKILL.md": SKILL}),
    Healthy(
        "zip with a comment", "zip", lambda: zip_of(Zipped(b"SKILL.md", SKILL), comment=b"made"), {"SKILL.md": SKILL}
    ),
    Healthy(
        "zip of the standard library",
        "zip",
        _by_zipfile,
        {"SKILL.md": SKILL, "references/\u65e5\u672c\u8a9e.md": "\u65e5".encode(), "empty": b""},
    ),
    Healthy("zip that was streamed", "zip", _streamed, {"SKILL.md": SKILL}),
    Healthy(
        "zip with a wrapper folder",
        "zip",
        lambda: zip_of(Zipped(b"pdf/", mode=stat.S_IFDIR | 0o755), Zipped(b"pdf/SKILL.md", SKILL), RUN),
        {"pdf/SKILL.md": SKILL, "pdf/run.sh": b"#!/bin/sh\n"},
        ("pdf/run.sh",),
    ),
    Healthy("zip with dots", "zip", lambda: zip_of(Zipped(b"./SKILL.md", SKILL)), {"SKILL.md": SKILL}),
    Healthy("zip with stored bytes", "zip", lambda: zip_of(Zipped(b"SKILL.md", SKILL, method=0)), {"SKILL.md": SKILL}),
    Healthy("zip of DOS", "zip", lambda: zip_of(Zipped(b"SKILL.md", SKILL, 0, system=0)), {"SKILL.md": SKILL}),
    Healthy(
        "zip of two folders with a set-uid file",
        "zip",
        lambda: zip_of(
            Zipped(b"a/SKILL.md", SKILL), Zipped(b"b/SKILL.md", SKILL), Zipped(b"b/x", b"", stat.S_IFREG | 0o4755)
        ),
        {"a/SKILL.md": SKILL, "b/SKILL.md": SKILL, "b/x": b""},
        ("b/x",),
    ),
    Healthy("zip of small zeros", "zip", lambda: _bomb(1000), {"SKILL.md": SKILL, "bomb": b"\0" * 1000}),
    Healthy(
        "zip with an empty folder", "zip", lambda: zipped(Zipped(b"scripts/", mode=stat.S_IFDIR)), {"SKILL.md": SKILL}
    ),
    Healthy("zip of a deep path", "zip", lambda: zipped(Zipped(LONG.encode())), {"SKILL.md": SKILL, LONG: b""}),
    Healthy("tar", "tar.gz", tar_of, {"SKILL.md": SKILL}),
    Healthy(
        "tar with folders and dots",
        "tar.gz",
        lambda: tar_of(
            tar_block(b"./", kind=b"5"), tar_block(b"./a/", kind=b"5"), tar_block(b"./a/x", b"1", mode=0o755)
        ),
        {"SKILL.md": SKILL, "a/x": b"1"},
        ("a/x",),
    ),
    Healthy(
        "tar with a prefix",
        "tar.gz",
        lambda: tar_of(tar_block(b"x", b"1", prefix=b"a/b")),
        {"SKILL.md": SKILL, "a/b/x": b"1"},
    ),
    Healthy(
        "tar with a name not in ASCII",
        "tar.gz",
        lambda: tar_of(tar_block("\u65e5.md".encode())),
        {"SKILL.md": SKILL, "\u65e5.md": b""},
    ),
    Healthy(
        "tar of the oldest format",
        "tar.gz",
        lambda: tar_of(tar_block(b"x", b"1", b"\0", magic=b"\0" * 8)),
        {"SKILL.md": SKILL, "x": b"1"},
    ),
    Healthy(
        "tar of git archive",
        "tar.gz",
        lambda: tar_of(tar_block(b"pax_global_header", pax_data(("comment", "0" * 40)), b"g"), tar_block(b"x", b"1")),
        {"SKILL.md": SKILL, "x": b"1"},
    ),
    Healthy(
        "tar of a Mac",
        "tar.gz",
        lambda: tar_of(
            tar_block(b"p", pax_data(("mtime", "1.5"), ("LIBARCHIVE.xattr.com.apple.provenance", "AQ")), b"x"),
            tar_block(b"x", b"1"),
        ),
        {"SKILL.md": SKILL, "x": b"1"},
    ),
    Healthy(
        "tar of the standard library",
        "tar.gz",
        lambda: _by_tarfile(tarfile.PAX_FORMAT, "SKILL.md", "\u65e5\u672c\u8a9e.md", LONG),
        {"SKILL.md": SKILL, "\u65e5\u672c\u8a9e.md": SKILL, LONG: SKILL},
    ),
    Healthy(
        "tar of GNU",
        "tar.gz",
        lambda: _by_tarfile(tarfile.GNU_FORMAT, "SKILL.md", "\u65e5\u672c\u8a9e.md", LONG),
        {"SKILL.md": SKILL, "\u65e5\u672c\u8a9e.md": SKILL, LONG: SKILL},
    ),
    Healthy("tar without gzip", "tar", lambda: gzip.decompress(tar_of()), {"SKILL.md": SKILL}),
]
