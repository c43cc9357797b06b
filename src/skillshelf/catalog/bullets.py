"""Skills to a list with one line each, kept within a number of characters the way hosts do it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from skillshelf.core.markup import cut
from skillshelf.core.text import fold
from skillshelf.core.values import CatalogSkill

__all__ = ["Bullets", "bullets"]


class Bullets(NamedTuple):
    """The lines, how many skills are not among them, and the paths of those that lost some of their description."""

    lines: list[str]
    omitted: int
    cut: tuple[str, ...] = ()


def bullets(
    skills: Sequence[CatalogSkill],
    *,
    most: float,
    overflow: Literal["none", "shorten", "drop-descriptions", "drop-least-used"],
    shown: int | None,
    with_file: bool,
) -> Bullets:
    """One line a skill; what does not fit is settled as `overflow` says."""
    entries = [_Entry(skill, _description(skill, shown), skill.path if with_file else "") for skill in skills]
    lines = [entry.line() for entry in entries]
    if _size(lines) <= most:
        return Bullets(lines, 0)
    return OVERFLOWS[overflow](entries, most)


class _Entry(NamedTuple):
    skill: CatalogSkill
    description: str
    file: str

    def line(self, length: int | None = None) -> str:
        """The line of a skill with so much of its description; nothing of it at 0."""
        text = self.description if length is None else cut(self.description, length) if length else ""
        file = f" (file: {self.file})" if self.file else ""
        return f"- {fold(self.skill.name)}{': ' if text else ''}{text}{file}"


def _description(skill: CatalogSkill, shown: int | None) -> str:
    text = fold(skill.description)
    return text if shown is None else cut(text, shown)


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _everything(entries: Sequence[_Entry], most: float) -> Bullets:
    return Bullets([entry.line() for entry in entries], 0)


def _shortened(entries: Sequence[_Entry], most: float) -> Bullets:
    """Paths from their root, then all descriptions cut to one length; if even none fit, the last entries go."""
    entries = [entry._replace(file="/".join(["r", *entry.file.split("/")[-2:]])) for entry in entries]
    low, high = 0, max((len(entry.description) for entry in entries), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size([e.line(middle) for e in entries]) <= most else (low, middle - 1)
    lines = [entry.line(low) for entry in entries]
    kept = 0
    room = most
    while kept < len(lines) and room >= len(lines[kept]) + 1:
        room -= len(lines[kept]) + 1
        kept += 1
    shorter = [entry.skill.path for entry in entries[:kept] if len(entry.description) > low]
    return Bullets(lines[:kept], len(lines) - kept, tuple(shorter))


def _without_descriptions(entries: Sequence[_Entry], most: float) -> Bullets:
    """Every name stays; descriptions stay in order as long as there is room."""
    room = most - _size([entry.line(0) for entry in entries])
    lines = []
    lost = []
    for entry in entries:
        needed = len(entry.line()) - len(entry.line(0))
        if needed <= room:
            room -= needed
            lines.append(entry.line())
        else:
            room = min(room, 0)
            lost += [entry.skill.path] if entry.description else []
            lines.append(entry.line(0))
    return Bullets(lines, 0, tuple(lost))


OVERFLOWS: Mapping[str, Callable[[Sequence[_Entry], float], Bullets]] = {
    "none": _everything,
    "shorten": _shortened,
    "drop-descriptions": _without_descriptions,
    "drop-least-used": _without_descriptions,
}
