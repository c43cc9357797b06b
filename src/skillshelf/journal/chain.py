"""The lines of a journal to what was done to them: edited, removed, moved.

Every line names its place (`seq`) and the bytes before it (`prev`). Lines that follow each other by both are
one run, and an untouched journal is one run. Where there are several, those that leave the most lines in
their place are kept; what stands between them was moved, what lacks between them was removed.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from skillshelf.core.limits import JOURNAL_PROBLEMS
from skillshelf.journal.lines import NOTHING_BEFORE, Line

__all__ = ["Chain", "Kind", "Problem"]

Kind = Literal["edited", "removed", "reordered", "torn", "cut"]


class Problem(NamedTuple):
    """What is wrong at a line: the number it has now, and the `seq` that is concerned where one is known."""

    line: int
    seq: int | None
    kind: Kind
    detail: str

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return self._asdict()


class _Run(NamedTuple):
    """Lines that follow each other: number and seq of the first, what it continues, and the last two digests."""

    line: int
    seq: int
    size: int
    prev: str
    digest: str
    digest_before: str

    @property
    def end(self) -> int:
        return self.seq + self.size - 1

    @property
    def last_line(self) -> int:
        return self.line + self.size - 1

    def longer(self, digest: str) -> "_Run":
        return self._replace(size=self.size + 1, digest=digest, digest_before=self.digest)


_START = _Run(line=0, seq=-1, size=1, prev="", digest=NOTHING_BEFORE, digest_before="")


class Chain:
    """The lines of a journal, added one by one; it remembers only where they do not follow each other."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._broken: list[Line] = []

    @property
    def full(self) -> bool:
        """Whether so much is wrong that no more is worth adding."""
        return len(self._runs) + len(self._broken) > JOURNAL_PROBLEMS

    def add(self, line: Line) -> None:
        """The next line of the file."""
        if line.problem or line.record is None:
            self._broken.append(line)
            return
        seq, prev = line.record["seq"], line.record["prev"]
        if self._runs:
            last = self._runs[-1]
            if seq == last.end + 1 and prev == last.digest and line.number == last.last_line + 1:
                self._runs[-1] = last.longer(line.digest)
                return
            rivals = seq == last.end and prev == last.digest_before and line.digest != last.digest
            if rivals and last.size > 1:
                # Both continue the same line: the first of them was put in.
                kept = last._replace(size=last.size - 1, digest=last.digest_before, digest_before="")
                put_in = _Run(last.last_line, seq, 1, prev, last.digest, "")
                self._runs[-1:] = [kept, put_in]
        self._runs.append(_Run(line.number, seq, 1, prev, line.digest, prev))

    def problems(self) -> list[Problem]:
        """Everything that is wrong, in the order of the lines."""
        kept = _in_place(self._runs)
        moved = [run for run in self._runs if run not in kept]
        found = [*self._edited(kept), *_reordered(kept, moved)]
        for before, run in zip([_START, *kept], kept, strict=False):
            between = sum(before.last_line < line.number < run.line for line in self._broken)
            found += _between(before, run, between, moved)
        return sorted(found)

    def _edited(self, kept: Sequence[_Run]) -> Iterator[Problem]:
        for line in self._broken:
            before = max((run for run in kept if run.line < line.number), default=_START)
            after = next((run for run in kept if run.line > line.number), None)
            put_in = after is not None and _follows(before, after)
            note = "; it was put in: the lines around it follow each other" if put_in else ""
            seq = line.record["seq"] if line.record else None
            yield Problem(line.number, seq, "edited", f"{line.problem}{note}")


def _follows(before: _Run, run: _Run) -> bool:
    return run.seq == before.end + 1 and run.prev == before.digest


def _in_place(runs: Sequence[_Run]) -> list[_Run]:
    """The runs with rising seq that hold the most lines; of equal choices that with more links, then fewer runs."""
    best: list[tuple[tuple[int, int, int], int]] = []
    for place, run in enumerate(runs):
        choices = [(_score(_START, run, (0, 0, 0)), -1)]
        for earlier in range(place):
            before = runs[earlier]
            if before.seq < run.seq and before.end < run.end:
                choices.append((_score(before, run, best[earlier][0]), earlier))
        best.append(max(choices))
    kept: list[_Run] = []
    place = max(range(len(runs)), key=lambda place: best[place][0], default=-1)
    while place >= 0:
        kept.append(runs[place])
        place = best[place][1]
    return kept[::-1]


def _score(before: _Run, run: _Run, score: tuple[int, int, int]) -> tuple[int, int, int]:
    lines, links, fewer = score
    return lines + run.end - max(before.end, run.seq - 1), links + _follows(before, run), fewer - 1


def _between(before: _Run, run: _Run, broken: int, moved: Sequence[_Run]) -> Iterator[Problem]:
    """What is wrong where two runs meet that are both in their place."""
    if run.seq <= before.end:
        copies = min(run.size, before.end - run.seq + 1)
        yield Problem(run.line, run.seq, "reordered", f"{_place(run, copies)} a second time")
        return
    missing = _missing(before.end + 1, run.seq - 1, moved)
    lost = sum(end - first + 1 for first, end in missing) - broken
    if lost > 0:
        first = next(_after(missing, broken))
        told = f"the line with seq {first} is missing here" if lost == 1 else f"{lost} lines are missing here"
        yield Problem(run.line, first, "removed", f"{told}, from seq {first} on" if lost > 1 else told)
    elif run.seq == before.end + 1 and not broken and not _follows(before, run):
        if before is _START:
            yield Problem(run.line, run.seq, "edited", "it says that something stands before it")
        else:
            detail = f"its sum was made anew: line {run.line} was written after another text"
            yield Problem(before.last_line, before.end, "edited", detail)


def _missing(first: int, end: int, moved: Sequence[_Run]) -> list[tuple[int, int]]:
    """The ranges of seq that no moved line has."""
    left = []
    for run in sorted(moved, key=lambda run: run.seq):
        if run.end < first or run.seq > end:
            continue
        if run.seq > first:
            left.append((first, run.seq - 1))
        first = run.end + 1
    return [*left, (first, end)] if first <= end else left


def _after(ranges: Sequence[tuple[int, int]], skipped: int) -> Iterator[int]:
    """The first seq in the ranges after some were skipped."""
    for first, end in ranges:
        if first + skipped <= end:
            yield first + skipped
        skipped -= min(skipped, end - first + 1)


def _reordered(kept: Sequence[_Run], moved: Sequence[_Run]) -> Iterator[Problem]:
    for run in moved:
        what = _place(run, run.size)
        if any(other.seq <= run.seq and run.end <= other.end for other in kept):
            yield Problem(run.line, run.seq, "reordered", f"{what} a second time")
            continue
        before = max((other for other in kept if other.line < run.line), default=None)
        after = min((other for other in kept if other.line > run.line), default=None)
        around = [f"after seq {before.end}"] if before else []
        around += [f"before seq {after.seq}"] if after else []
        yield Problem(run.line, run.seq, "reordered", f"{what} {' and '.join(around)}")


def _place(run: _Run, lines: int) -> str:
    if lines == 1:
        return f"seq {run.seq} stands here"
    return f"seq {run.seq} to {run.seq + lines - 1} (up to line {run.line + lines - 1}) stand here"
