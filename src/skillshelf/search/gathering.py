"""Skills to what an index keeps of each, found out by two processes where there is much to do."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.catalog import resources
from skillshelf.catalog.document import body
from skillshelf.core import files
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.values import CatalogSkill, Stamp
from skillshelf.errors import FileReadError, LimitExceeded, PathEscape, ResourceNotFound
from skillshelf.search.impacts import Weights, entry
from skillshelf.search.terms import analyzer

# The second process is seldom needed, and takes much to import.
if TYPE_CHECKING:
    from queue import SimpleQueue

    from skillshelf.core.worker_process import Partner

__all__ = ["Gathered", "answers", "body_of", "gather"]

_MANY = 250
"""So many skills take longer than it takes to start a process."""
_PIECE = 16
"""So many go to the other process at once; one piece is what we may have to wait for in the end."""


class Gathered(NamedTuple):
    """The terms of a skill with their impacts, and the state of its file after it was read."""

    terms: str
    after: Stamp | None


_Done = tuple[range, list[Gathered]]
"""Some positions, and what is kept of the skills there."""


def gather(skills: Sequence[CatalogSkill], weights: Weights) -> Generator[tuple[int, Gathered], None, None]:
    """What is kept of each skill, with its position, in the order in which they are done."""
    if len(skills) >= _MANY:
        from skillshelf.core.worker_process import Partner, can_have_partner

        if can_have_partner():
            yield from _by_two(skills, weights, Partner("skillshelf.search.gathering", weights))
            return
    yield from ((position, _gathered(skill, weights)) for position, skill in enumerate(skills))


def _by_two(skills: Sequence[CatalogSkill], weights: Weights, partner: "Partner") -> Iterator[tuple[int, Gathered]]:
    from queue import SimpleQueue
    from threading import Thread

    pieces = deque(range(start, min(start + _PIECE, len(skills))) for start in range(0, len(skills), _PIECE))
    done: SimpleQueue[_Done | None] = SimpleQueue()
    thread = Thread(target=_by_partner, args=(partner, skills, pieces, done.put), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # No thread is to be had: we do it all.
        done.put(None)
    try:
        yield from _from_both_ends(skills, weights, pieces, done)
    finally:
        pieces.clear()
        partner.close()
        if thread.ident is not None:
            thread.join()


def _from_both_ends(
    skills: Sequence[CatalogSkill], weights: Weights, pieces: deque[range], done: "SimpleQueue[_Done | None]"
) -> Iterator[tuple[int, Gathered]]:
    """What we do ourselves from the front, and in between what the other process did from the back."""
    is_helped = True
    while is_helped or pieces:
        while is_helped and (not pieces or not done.empty()):
            other = done.get()
            is_helped = other is not None
            yield from zip(*other, strict=True) if other else ()
        if piece := _take(pieces.popleft):
            yield from ((position, _gathered(skills[position], weights)) for position in piece)


def _by_partner(
    partner: "Partner",
    skills: Sequence[CatalogSkill],
    pieces: deque[range],
    hand_over: Callable[[_Done | None], None],
) -> None:
    """Have pieces done from the back until there are none; a piece that is not answered goes back."""
    from skillshelf.core.worker_process import PartnerLost

    piece = _take(pieces.pop)
    try:
        with suppress(PartnerLost):
            while piece is not None:
                # What is in the rest of the frontmatter is not searched.
                hand_over((piece, partner.ask([skills[position]._replace(frontmatter={}) for position in piece])))
                piece = _take(pieces.pop)
    finally:
        # Whatever happened to the other process, or on the way to it, costs its help and nothing else.
        if piece is not None:
            pieces.append(piece)
        hand_over(None)


def _take(end: Callable[[], range]) -> range | None:
    """A piece from one end; None where the other side took the last one."""
    try:
        return end()
    except IndexError:
        return None


def answers(weights: Weights) -> Callable[[Sequence[CatalogSkill]], list[Gathered]]:
    """What the other process answers: what is kept of each of some skills."""
    return lambda skills: [_gathered(skill, weights) for skill in skills]


def _gathered(skill: CatalogSkill, weights: Weights) -> Gathered:
    try:
        text = _body(skill)
    except FileReadError:
        # The machine failed. A state that the file does not have makes that the next look reads it again.
        return Gathered(_entry(skill, "", weights), None)
    return Gathered(_entry(skill, text, weights), files.stamp_at(skill.real_path))


def _entry(skill: CatalogSkill, text: str, weights: Weights) -> str:
    return entry(skill.name, skill.description, text, analyzer(), weights)


def _body(skill: CatalogSkill) -> str:
    """The text after the frontmatter; empty where the file is gone or refused, as a load would say."""
    try:
        data = resources.read_skill(skill, limit=SKILL_FILE_BYTES).data
    except (IsADirectoryError, ResourceNotFound, PathEscape, LimitExceeded):
        return ""
    return body(data).decode("utf-8", "replace")


def body_of(skill: CatalogSkill) -> str:
    """The text after the frontmatter, as far as it can be read, to show some of it."""
    try:
        return _body(skill)
    except FileReadError:
        return ""
