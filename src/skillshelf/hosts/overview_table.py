"""Hold what is known of every file on every host, and forget only what a change may have made wrong."""

from array import array
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from skillshelf.core.records import NamedTuple

__all__ = ["ANSWERS", "NOT_JUDGED", "HostColumns", "ListSummary", "OverviewTable"]

ANSWERS = (False, True, None)
"""The answers by the numbers that stand for them in a column."""

NOT_JUDGED = len(ANSWERS)

Columns = tuple[bytes, bytes, bytes, bytes]


class ListSummary(NamedTuple):
    """The size of the list of a host, and the names that do not fit into it."""

    chars: int
    tokens: int
    cut: Sequence[str]
    dropped: Sequence[str]


class HostColumns(NamedTuple):
    """The verdict of one host on each file: whether it is visible, whether the host warns, and its size in the list.

    The columns are bytes, `chars` and `bytes` numbers of 64 bits. `dropped` are the paths of the skills that the host
    was known to drop when the files were judged; without `summary` that may have changed.
    """

    host: str
    visible: bytes
    warns: bytes
    chars: bytes
    bytes: bytes
    dropped: Sequence[str] = ()
    summary: ListSummary | None = None

    @classmethod
    def empty(cls, host: str, count: int) -> "HostColumns":
        """Return the columns of so many files of which nothing is known."""
        return cls(host, bytes([NOT_JUDGED]) * count, bytes(count), bytes(8 * count), bytes(8 * count))

    @property
    def waiting(self) -> list[int]:
        """The positions of the files that are not judged."""
        return (
            [at for at, answer in enumerate(self.visible) if answer == NOT_JUDGED] if NOT_JUDGED in self.visible else []
        )

    def numbers(self) -> "tuple[array[int], array[int]]":
        """Return the sizes in characters and bytes."""
        return array("Q", self.chars), array("Q", self.bytes)

    def updated(self, runs: Sequence[tuple[int, int]], affected: Collection[int]) -> "HostColumns":
        """Return the columns of other files: runs of these, each by its first and the one after its last."""
        new = HostColumns.empty("", 1)
        columns = []
        for width, column, nothing in zip((1, 1, 8, 8), self[1:5], new[1:5], strict=True):
            parts = [column[first * width : end * width] if first >= 0 else nothing for first, end in runs]
            columns.append(b"".join(parts))
        visible = bytearray(columns[0])
        for at in affected:
            visible[at] = NOT_JUDGED
        _, warns, chars, total = columns
        return HostColumns(self.host, bytes(visible), warns, chars, total, self.dropped)


class OverviewTable(NamedTuple):
    """The columns of all hosts, and the length of the description of each skill by its name.

    `lengths` is None if it is not known, and may be wrong for the names in `doubtful`.
    """

    hosts: Sequence[HostColumns]
    lengths: Mapping[str, int] | None = None
    doubtful: Sequence[str] = ()

    @classmethod
    def empty(cls, hosts: Collection[str], count: int) -> "OverviewTable":
        """Return the table of so many files of which nothing is known."""
        return cls([HostColumns.empty(host, count) for host in hosts])

    @property
    def is_complete(self) -> bool:
        """Whether everything is known."""
        known = all(one.summary is not None and NOT_JUDGED not in one.visible for one in self.hosts)
        return known and self.lengths is not None and not self.doubtful

    def updated(
        self, origins: Sequence[int], affected: Collection[int], names: Set[str], hosts: Collection[str]
    ) -> "OverviewTable":
        """Return the table of the files that came from these positions, -1 for new ones.

        Nothing is known of those `affected`, of the skills with these names, and of other hosts than these.
        """
        runs = _runs(origins)
        columns = [
            one.updated(runs, affected) if one.host in hosts else HostColumns.empty(one.host, len(origins))
            for one in self.hosts
        ]
        if self.lengths is None or not all(one.host in hosts for one in self.hosts):
            return OverviewTable(columns)
        lengths = {name: length for name, length in self.lengths.items() if name not in names}
        return OverviewTable(columns, lengths, sorted({*self.doubtful, *names}))

    def packed(self) -> tuple[Any, ...]:
        """Return the table as values that can be written."""
        rows = [(*one[:6], tuple(one.summary) if one.summary else None) for one in self.hosts]
        return rows, self.lengths, list(self.doubtful)

    @classmethod
    def unpacked(cls, values: Any, hosts: Collection[str], count: int) -> "OverviewTable | None":
        """Return the table in some values; None if they hold none of these hosts and so many files."""
        try:
            rows, lengths, doubtful = values
            columns = [HostColumns._make((*row[:6], ListSummary(*row[6]) if row[6] else None)) for row in rows]
        except (IndexError, TypeError, ValueError):
            return None
        sizes = [count, count, 8 * count, 8 * count]
        is_whole = [one.host for one in columns] == [*hosts] and all(
            [len(column) for column in one[1:5]] == sizes for one in columns
        )
        return cls(columns, lengths, doubtful) if is_whole else None


def _runs(origins: Sequence[int]) -> list[tuple[int, int]]:
    """Return the positions as runs of neighbours, by the first and the one after the last; (-1, 0) for a new one."""
    runs: list[tuple[int, int]] = []
    for origin in origins:
        if runs and 0 <= runs[-1][0] < origin == runs[-1][1]:
            runs[-1] = runs[-1][0], origin + 1
        else:
            runs.append((origin, origin + 1))
    return runs
