"""What `skillshelf log` does, one function for each of its actions."""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from skillshelf.core.console import as_json
from skillshelf.errors import ConfigurationError, FileReadError, ResourceNotFound, SkillError
from skillshelf.journal.file import Line, in_words, read
from skillshelf.journal.file import verify as verify_journal

__all__ = ["ACTIONS", "Action", "log"]

DONE, NEGATIVE = 0, 1
_MOST_LAST = 1_000_000
_USAGE = "usage: skillshelf log ACTION FILE"

Values = Mapping[str, Any]


class Action(NamedTuple):
    """One action on a journal: what it does, and which of the options are its own."""

    run: Callable[[str, Values], int]
    takes: tuple[str, ...]


def log(values: Values) -> int:
    """Find the action and do it on the file."""
    name = values["action"]
    if name not in ACTIONS:
        told = f"no action {name!r}" if name else "something is missing"
        raise ConfigurationError(f"{told}; {_USAGE}, with one of: {', '.join(ACTIONS)}")
    if not values["file"]:
        raise ConfigurationError(f"something is missing; {_USAGE.replace('ACTION', name)}")
    action = ACTIONS[name]
    own = {option for other in ACTIONS.values() for option in other.takes}
    if strange := sorted(option for option in own - set(action.takes) if values[option] not in (None, False, [])):
        raise ConfigurationError(f"log {name} takes no --{strange[0].replace('_', '-')}; try: skillshelf log --help")
    # From where the command was typed and not from `--cwd`, as with `--config`.
    return action.run(os.path.abspath(values["file"]), values)


def show(path: str, values: Values) -> int:
    """The events, one a line, or as one JSON list."""
    from skillshelf.cli.logviews import EventLines
    from skillshelf.core.console import screen, write

    events, opening, shown = EventLines(screen(os.environ)), "[", 0
    for line in _last(_wanted(_lines(path), values), values["last"]):
        shown += line.record is not None
        write(opening + as_json(_as_value(line)) if values["json"] else events.text(line))
        opening = ","
    narrowed = any(values[name] for name in ("session", "type", "skill"))
    if values["json"]:
        write("[]\n" if opening == "[" else "]\n")
    elif not shown:
        write("No such event.\n" if narrowed else "No events.\n")
    return NEGATIVE if narrowed and not shown else DONE


def verify(path: str, values: Values) -> int:
    """Whether the journal is as it was written."""
    from skillshelf.cli.logviews import verify_view
    from skillshelf.core.console import screen, write

    head = values["head"]
    if head is not None and not re.fullmatch("(sha256:)?[0-9a-fA-F]{64}", head):
        raise ConfigurationError("--head needs a sum of 64 hex digits, as log verify prints it")
    try:
        found = verify_journal(path, head)
    except OSError as error:
        raise _failure(path, error) from None
    if values["json"]:
        write(as_json(found.to_dict()))
    else:
        write(verify_view(found, values["file"], screen(os.environ)))
    return DONE if found.ok else NEGATIVE


def stats(path: str, values: Values) -> int:
    """Which skills were used, how often, how, and how long."""
    from skillshelf.cli.logviews import stats_view
    from skillshelf.core.console import screen, write
    from skillshelf.journal.state import count_usage

    usage = count_usage(_lines(path), session=values["session"] or "")
    write(as_json({"file": path, **usage._asdict()}) if values["json"] else stats_view(usage, screen(os.environ)))
    return DONE


def replay(path: str, values: Values) -> int:
    """Whether the acts of the journal give the same here and now; nothing is run and nobody is asked."""
    from skillshelf.cli.replayviews import replay_view
    from skillshelf.core.console import screen, write
    from skillshelf.shelf import replay as replay_journal

    if not os.path.exists(path):
        raise ResourceNotFound(path)
    config = os.path.abspath(values["config"]) if values["config"] else None
    found = replay_journal(
        path,
        cwd=os.path.abspath(values["cwd"]) if values["cwd"] else None,
        home=values["home"],
        config=config,
        trust="all" if values["trust"] else "ask",
        kept=not values["disk"],
    )
    if values["json"]:
        write(as_json({"file": path, **found.to_dict()}))
    else:
        write(replay_view(found, values["file"], screen(os.environ)))
    return NEGATIVE if found.differences else DONE


ACTIONS: Mapping[str, Action] = {
    "show": Action(show, ("session", "type", "skill", "last")),
    "verify": Action(verify, ("head",)),
    "stats": Action(stats, ("session",)),
    "replay": Action(replay, ("disk", "trust")),
}


# Lines of the file --------------------------------------------------------------------------------


def _lines(path: str) -> Iterator[Line]:
    try:
        yield from read(path)
    except OSError as error:
        raise _failure(path, error) from None


def _failure(path: str, error: OSError) -> SkillError:
    if isinstance(error, FileNotFoundError):
        return ResourceNotFound(path)
    return FileReadError(path, OSError(in_words(error)))


def _wanted(lines: Iterator[Line], values: Values) -> Iterator[Line]:
    """The lines that the options ask for; broken ones always, since nobody knows what they were."""
    from skillshelf.journal.state import Calls

    calls = Calls()
    for line in lines:
        if line.record is None:
            yield line
            continue
        _, skill = calls.follow(line.record)
        fits = (
            line.record["session"].startswith(values["session"] or ""),
            not values["type"] or line.record["type"] in values["type"],
            values["skill"] is None or skill == values["skill"],
        )
        if all(fits):
            yield line


def _last(lines: Iterator[Line], number: str | None) -> Iterable[Line]:
    if number is None:
        return lines
    if not number.isdecimal() or not 0 < int(number[:10]) <= _MOST_LAST:
        raise ConfigurationError(f"--last needs a number from 1 to {_MOST_LAST:,}, not {number!r}")
    return deque(lines, maxlen=int(number))


def _as_value(line: Line) -> dict[str, Any]:
    """The record; where something is wrong with its line, that beside it."""
    if line.record is not None and line.problem is None:
        return line.record
    return {"line": line.number, "problem": line.problem, "record": line.record}
