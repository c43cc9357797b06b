"""Let a person choose a skill from numbered lines, without colours, boxes or control of the screen."""

from typing import TextIO

from skillshelf.cli.picker.model import PickerModel
from skillshelf.cli.picker.rows import MatchingRows, RowFilter, SkillRow
from skillshelf.core.text import plural, shorten, visible

__all__ = ["choose_plain"]

_PAGE = 20
"""The number of rows that are listed at once."""

_PROMPT = "number, words to search, or q: "
_TEXT_CELLS = 120


def choose_plain(
    model: PickerModel, source: TextIO, screen: TextIO, *, query: str = "", takes_problems: bool = False
) -> SkillRow | None:
    """List skills and read lines from `source` until one is a number of the list; return None for `q` or the end.

    Any other line is a search, and an empty line lists everything. With `takes_problems` the list includes files that
    are not in the catalog.
    """
    model.build_index()
    row_filter = RowFilter(query, shown="all" if takes_problems else "skills")
    answer = model.select(row_filter)
    screen.write(_listing(answer))
    while True:
        screen.write(_PROMPT)
        screen.flush()
        line = source.readline()
        words = line.strip()
        if not line or words == "q":
            return None
        if not words.isdecimal():
            answer = model.select(row_filter._replace(query=words))
            screen.write(_listing(answer))
        elif 0 < int(words) <= min(len(answer.rows), _PAGE):
            return answer.rows[int(words) - 1]
        else:
            screen.write(f"no number {words} in the list\n")


def _listing(answer: MatchingRows) -> str:
    query, count = visible(answer.row_filter.query.strip()), len(answer.rows)
    match = f" for {query!r}" if query else ""
    lines = [f"{plural(count, 'skill')}{match}{', no clear match' if answer.weak else ''}{':' if count else ''}"]
    lines += [f"({visible(note)})" for note in answer.notes]
    for number, row in enumerate(answer.rows[:_PAGE], 1):
        text = shorten(visible(row.text), _TEXT_CELLS)
        lines.append(f"{number}. {visible(row.name)} ({row.scope}, {row.state}): {text}")
    if count > _PAGE:
        lines.append(f"and {count - _PAGE} more; type words to search")
    return "\n".join(lines) + "\n"
