"""Keep finished catalogs in files, each with the state of the disk that it was made from.

A packed catalog counts only while that state is current, so it is never stale: every folder and file is looked at, and
an object is made only of a skill that somebody asks for. A file that is damaged, foreign or old costs a scan.
"""

import marshal
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise, takewhile
from typing import Any, Literal, TypeVar, overload
from zlib import crc32

from skillshelf.catalog.disk_state import DiskState, Entries
from skillshelf.catalog.packed_file import Damaged, PackedFile, Sections
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, folded_name, visible
from skillshelf.core.values import (
    Catalog,
    CatalogSkill,
    Diagnostic,
    Filtered,
    RejectedFile,
    Root,
    RootReport,
    Shadowed,
)
from skillshelf.errors import FileReadError

__all__ = [
    "PackedSkills",
    "PackedTables",
    "SkillTable",
    "is_same_catalog",
    "listed_cells",
    "open_packed",
    "pack_catalog",
    "pack_tables",
    "skills_at",
    "skills_named",
    "tables_of",
]

T = TypeVar("T")

# Rows ---------------------------------------------------------------------------------------------


class _LazyRows(Sequence[T]):
    """A sequence whose rows are made when the first of them is used; it does whatever a tuple of the same rows does."""

    def __init__(self, count: int, make: Callable[[], tuple[T, ...]]) -> None:
        self._count = count
        self._make = make
        self._rows: tuple[T, ...] | None = None

    @property
    def rows(self) -> tuple[T, ...]:
        """All rows."""
        if self._rows is None:
            self._rows = self._make()
        return self._rows

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[T]: ...
    def __getitem__(self, position: int | slice) -> T | Sequence[T]:
        return self.rows[position]

    def __iter__(self) -> Iterator[T]:
        return iter(self.rows if self._count else ())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, tuple | _LazyRows):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    def __lt__(self, other: Any) -> bool:
        return self.rows < tuple(other)

    def __add__(self, other: Any) -> tuple[Any, ...]:
        return self.rows + (other.rows if isinstance(other, _LazyRows) else other)

    def __radd__(self, other: Any) -> tuple[Any, ...]:
        return other + self.rows  # type: ignore[no-any-return]

    def __mul__(self, times: int) -> tuple[T, ...]:
        return self.rows * times

    __rmul__ = __mul__

    def __hash__(self) -> int:
        return hash(self.rows)

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


_ASKED_OFTEN = 16
"""Look-ups in a table after which dictionaries of it pay; a command makes a few, a server one for each request."""


class SkillTable:
    """The folded names and the paths of skills as two texts, in which a name or path is found without a loop.

    A name has no line break, and a path no NUL. After some look-ups, dictionaries are made of both.
    """

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._encoded = texts
        self._decoded: dict[str, str] = {}
        self._asked = 0

    @classmethod
    def of(cls, skills: Sequence[CatalogSkill]) -> "SkillTable":
        """Return the table of some skills."""
        if isinstance(skills, PackedSkills):
            return skills.table
        return cls(_texts((folded_name(skill.name) for skill in skills), (skill.path for skill in skills)))

    def text(self, name: Literal["names", "paths"]) -> str:
        """Return all names, or all paths."""
        if name not in self._decoded:
            self._decoded[name] = self._encoded[name].decode("utf-8", "surrogatepass")
        return self._decoded[name]

    def named(self, name: str) -> list[int]:
        """Return the positions of the skills whose folded name is this one."""
        if self._is_asked_often():
            return self._by_name.get(name, [])
        return _positions(self.text("names"), "\n", f"\n{name}\n")

    def begun(self, start: str) -> list[int]:
        """Return the positions of the skills whose folded name begins so."""
        if not start:
            return []
        if not self._is_asked_often():
            return _positions(self.text("names"), "\n", f"\n{start}")
        from bisect import bisect_left

        first = bisect_left(self._sorted_names, start)
        names = takewhile(lambda name: name.startswith(start), islice(self._sorted_names, first, None))
        return sorted(position for name in names for position in self._by_name[name])

    def at_path(self, path: str) -> list[int]:
        """Return the positions of the skills that were found at a path."""
        if self._is_asked_often():
            return self._by_path.get(path, [])
        return _positions(self.text("paths"), "\0", f"\0{path}\0")

    def _is_asked_often(self) -> bool:
        self._asked += 1
        return self._asked > _ASKED_OFTEN

    @cached_property
    def _by_name(self) -> Mapping[str, list[int]]:
        return _positions_of(self.text("names").split("\n")[1:-1])

    @cached_property
    def _sorted_names(self) -> list[str]:
        return sorted(self._by_name)

    @cached_property
    def _by_path(self) -> Mapping[str, list[int]]:
        return _positions_of(self.text("paths").split("\0")[1:-1])


def _positions_of(texts: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for position, text in enumerate(texts):
        found.setdefault(text, []).append(position)
    return found


def _texts(names: Iterable[str], paths: Iterable[str]) -> dict[str, bytes]:
    texts = {"names": "\n".join(("", *names, "")), "paths": "\0".join(("", *paths, ""))}
    return {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}


def _positions(text: str, separator: str, wanted: str) -> list[int]:
    """Return which of the parts between separators are wanted; the wanted text begins with one."""
    found: list[int] = []
    if separator in wanted[1:].removesuffix(separator):
        # No name or path has one inside, and two neighbours are not one name.
        return found
    at = text.find(wanted)
    while at >= 0:
        found.append(text.count(separator, 0, at))
        at = text.find(wanted, at + 1)
    return found


_FEW = 32
"""Skills of a packed catalog that are read one by one; after that, all are read at once."""


class PackedSkills(_LazyRows[CatalogSkill]):
    """The skills of a packed catalog in its order; each is made when it is used, and found by name without that."""

    def __init__(
        self, file: PackedFile, count: int, roots: Sequence[Root], scan: Callable[[], Sequence[CatalogSkill]]
    ) -> None:
        super().__init__(count, tuple)
        self.generation = file["generation"]
        self.table = SkillTable(file)
        self._file = file
        self._roots = roots
        self._scan = scan
        self._offsets: Sequence[int] = ()
        self._made: dict[int, CatalogSkill] = {}
        self._replaced: Mapping[int, CatalogSkill] = {}

    def moved(self) -> tuple[str, ...]:
        """Return the paths below which a skill may really lie elsewhere: links that were followed, and linked roots."""
        links = DiskState.decoded(self._file["state"]).links
        roots = (root.path for root in self._roots if root.path != root.real_path)
        return (*(path for path, _ in links), *roots)

    def replaced(self, others: Mapping[int, CatalogSkill]) -> "PackedSkills":
        """Return the same skills with others at some positions; names and paths stay."""
        from skillshelf.core.blake2 import blake2b

        def again() -> Sequence[CatalogSkill]:
            return [others.get(at, skill) for at, skill in enumerate(self._scan())]

        made = PackedSkills(self._file, self._count, self._roots, again)
        made._offsets = self._offsets
        made._made = {**self._made, **others}
        made._replaced = others
        mark = repr(sorted(others.items())).encode("utf-8", "surrogatepass")
        made.generation = blake2b(self.generation + mark, digest_size=16).digest()
        return made

    @property
    def rows(self) -> tuple[CatalogSkill, ...]:
        """All skills."""
        # Not by a function that knows this object: then it would not go away before the next search for garbage.
        if self._rows is None:
            self._rows = tuple(map(self._skill, range(self._count)))
        return self._rows

    def __getitem__(self, position: Any) -> Any:
        if not isinstance(position, int):
            return self.rows[position]
        if (made := self._made.get(position)) is not None:
            return made
        if not -self._count <= position < self._count:
            raise IndexError(position)
        return self._skill(position % self._count)

    def _skill(self, position: int) -> CatalogSkill:
        made = self._made.get(position)
        if made is None:
            try:
                made = self._decoded(position)
            except (EOFError, IndexError, TypeError, ValueError):
                self._made = dict(enumerate(self._scan()))
                return self._made[position]
            self._made[position] = made
        return made

    def _decoded(self, position: int) -> CatalogSkill:
        if not self._offsets:
            from array import array

            self._offsets = array("Q", self._file["offsets"])
        start, end = self._offsets[position], self._offsets[position + 1]
        if len(self._made) >= _FEW:
            # Somebody asks for all of them.
            self._file["entries"]
        whole = self._file.part("entries", start, end)
        data = whole[4:]
        if crc32(data) != int.from_bytes(whole[:4], "big"):
            raise Damaged("entries")
        name, description, below, *real, at, mtime_ns, size, hidden, hidden_by, fields = marshal.loads(data)
        texts = (name, description, below, *real)
        if {*map(type, texts)} != {str} or {type(at), type(mtime_ns), type(size)} != {int} or type(fields) is not dict:
            raise Damaged("entries")
        root = self._roots[at]
        real_path, real_dir = real or (f"{root.real_path}/{below}", "")
        real_dir = real_dir or real_path.rpartition("/")[0]
        return CatalogSkill(
            name,
            description,
            f"{root.path}/{below}",
            real_path,
            real_dir,
            root.scope,
            root.source,
            at,
            mtime_ns,
            size,
            hidden != "disabled",
            root.trusted,
            hidden,
            fields,
            hidden_by,
        )

    def tables(self) -> "PackedTables":
        """Return all skills as they are packed; raise ValueError if the file is damaged."""
        from array import array

        offsets, entries = array("Q", self._file["offsets"]), self._file["entries"]
        parts = [entries[start:end] for start, end in pairwise(offsets)]
        names, paths = self.table.text("names").split("\n")[1:-1], self.table.text("paths").split("\0")[1:-1]
        lines = self.lines
        is_whole = all(crc32(part[4:]) == int.from_bytes(part[:4], "big") for part in parts)
        if not is_whole or not len(names) == len(paths) == len(lines) == len(parts) == self._count:
            raise Damaged("entries")
        return PackedTables(names, paths, lines, parts)

    @property
    def lines(self) -> list[str]:
        """The line of each skill in a table."""
        try:
            lines = self._file["lines"].decode("utf-8", "surrogatepass").split("\n")
        except ValueError:
            lines = []
        if len(lines) != self._count:
            return [_line(skill) for skill in self]
        for position, skill in self._replaced.items():
            lines[position] = _line(skill)
        return lines

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedSkills) and other.generation == self.generation:
            return True
        return super().__eq__(other)

    __hash__ = _LazyRows.__hash__


def is_same_catalog(one: Catalog, other: Catalog) -> bool:
    """Return whether two catalogs are one object or stand for one packed file; others may be equal, too."""
    if one is other:
        return True
    if not isinstance(one.skills, PackedSkills) or not isinstance(other.skills, PackedSkills):
        return False
    return one.skills.generation == other.skills.generation


def skills_named(skills: Sequence[CatalogSkill], folded: str) -> list[CatalogSkill]:
    """Return the skills of a folded name, without making others of a packed catalog."""
    if isinstance(skills, PackedSkills):
        return [skills[position] for position in skills.table.named(folded)]
    return [skill for skill in skills if folded_name(skill.name) == folded]


def skills_at(skills: Sequence[CatalogSkill], path: str) -> list[CatalogSkill]:
    """Return the skills found at a path, without making others of a packed catalog."""
    if isinstance(skills, PackedSkills):
        return [skills[position] for position in skills.table.at_path(path)]
    return [skill for skill in skills if skill.path == path]


# Catalogs -----------------------------------------------------------------------------------------


def _line(skill: CatalogSkill) -> str:
    """Return what a table of skills shows of one, on one line: no cell holds a tab or an end of line."""
    return "\t".join((visible(skill.name), skill.scope, skill.hidden or "", visible(fold(skill.description))))


def listed_cells(skills: Sequence[CatalogSkill]) -> list[list[str]]:
    """Return name, scope, why it is hidden, and description of each skill for a table, without making the skills."""
    lines = skills.lines if isinstance(skills, PackedSkills) else map(_line, skills)
    return [line.split("\t") for line in lines]


class PackedTables(NamedTuple):
    """The skills of a catalog in its order: folded names, paths, lines of a table, and packed entries."""

    names: Sequence[str]
    paths: Sequence[str]
    lines: Sequence[str]
    entries: Sequence[bytes]


def tables_of(skills: Iterable[CatalogSkill], roots: Sequence[Root]) -> PackedTables:
    """Return some skills as they are packed; raise ValueError for one that cannot be packed."""
    skills = tuple(skills)
    return PackedTables(
        [folded_name(skill.name) for skill in skills],
        [skill.path for skill in skills],
        [_line(skill) for skill in skills],
        [_packed_entry(skill, roots) for skill in skills],
    )


def _packed_entry(skill: CatalogSkill, roots: Sequence[Root]) -> bytes:
    root = roots[skill.root]
    below = skill.path[len(root.path) + 1 :]
    is_plain = skill.real_path == f"{root.real_path}/{below}" and skill.real_dir == os.path.dirname(skill.real_path)
    real = () if is_plain else (skill.real_path, skill.real_dir)
    numbers = (skill.root, skill.mtime_ns, skill.size)
    rest: tuple[Any, ...] = (*numbers, skill.hidden, skill.hidden_by, skill.frontmatter)
    data = marshal.dumps((skill.name, skill.description, below, *real, *rest))
    return crc32(data).to_bytes(4, "big") + data


def pack_catalog(
    catalog: Catalog, roots: Sequence[Root], state: DiskState, key: str, listed: Mapping[str, Entries]
) -> Sections | None:
    """Return the sections of a catalog for a key; None for one that cannot be packed.

    `listed` is what the folders of its roots hold. The section `generation` marks this catalog: no other has the same
    mark.
    """
    try:
        return pack_tables(tables_of(catalog.skills, roots), catalog, state, key, listed)
    except ValueError:
        # A value that marshal does not know.
        return None


def pack_tables(
    tables: PackedTables, catalog: Catalog, state: DiskState, key: str, listed: Mapping[str, Entries]
) -> Sections | None:
    """Return the same sections with the skills of these tables; raise ValueError for a value that cannot be packed."""
    texts = _texts(tables.names, tables.paths)
    if not texts["names"].count(b"\n") == texts["paths"].count(b"\0") == len(tables.entries) + 1:
        return None
    from array import array

    about = marshal.dumps((catalog.profile, tuple(map(tuple, catalog.roots)), catalog.truncated))
    errors = [(*error, error.name) if isinstance(error, RejectedFile) else tuple(error) for error in catalog.errors]
    others: dict[str, list[Any]] = {
        "errors": errors,
        "warnings": list(map(tuple, catalog.warnings)),
        "shadowed": list(map(tuple, catalog.shadowed)),
        "filtered": list(map(tuple, catalog.filtered)),
    }
    counts = marshal.dumps([len(tables.entries), *(len(rows) for rows in others.values())])
    sections = {
        "state": state.encoded(),
        "about": about,
        "counts": counts,
        **{name: marshal.dumps(rows) for name, rows in others.items()},
        **texts,
        "lines": "\n".join(tables.lines).encode("utf-8", "surrogatepass"),
        "offsets": array("Q", accumulate(map(len, tables.entries), initial=0)).tobytes(),
        "entries": b"".join(tables.entries),
        "listed": marshal.dumps({path: list(entries) for path, entries in listed.items()}),
    }
    from skillshelf.core.blake2 import blake2b

    mark = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16)
    for data in sections.values():
        mark.update(data)
    return {"generation": mark.digest(), **sections}


def open_packed(file: PackedFile, roots: Sequence[Root], scan: Callable[[], Catalog | None]) -> Catalog | None:
    """Return the catalog in a packed file; None if its sections have another shape.

    If a part turns out to be damaged when it is used, `scan` gives the same catalog again, or None if the disk has
    changed; then the part is gone, and using it raises FileReadError.
    """
    rescanned: list[Catalog] = []

    def again() -> Catalog:
        if not rescanned:
            found = scan()
            if found is None:
                reason = "this file of the cache was damaged while it was used, and the skills have changed; scan again"
                raise FileReadError(file.path, OSError(reason))
            rescanned.append(found)
        return rescanned[0]

    def rows(name: str, count: int, make: Callable[[Any], Any]) -> Any:
        def made() -> Any:
            try:
                return tuple(map(make, marshal.loads(file[name])))
            except (EOFError, TypeError, ValueError):
                return getattr(again(), name)

        return _LazyRows(count, made) if count else ()

    try:
        for name in ("names", "paths", "offsets"):
            # What finds a skill is checked now: later there is no other way to find it.
            file[name]
        profile, reports, truncated = marshal.loads(file["about"])
        skills, errors, warnings, shadowed, filtered = marshal.loads(file["counts"])
        return Catalog(
            profile,
            tuple(RootReport(*report) for report in reports),
            PackedSkills(file, skills, roots, lambda: again().skills),
            rows("errors", errors, _error),
            rows("warnings", warnings, Diagnostic._make),
            rows("shadowed", shadowed, Shadowed._make),
            rows("filtered", filtered, Filtered._make),
            truncated,
        )
    except (EOFError, KeyError, TypeError, ValueError):
        return None


def _error(row: tuple[Any, ...]) -> Diagnostic:
    if len(row) == 4:
        return Diagnostic(*row)
    error = RejectedFile(*row[:4])
    error.name = row[4]
    return error
