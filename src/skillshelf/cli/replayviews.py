"""What a replay found, to what a person is shown."""

from collections.abc import Iterator
from typing import Any

from skillshelf.core.console import Screen, as_json
from skillshelf.core.text import plural, visible
from skillshelf.session.replay import Difference, Replay

__all__ = ["replay_view"]


def replay_view(found: Replay, file: str, screen: Screen) -> str:
    """One line that says it all, then each difference with what stands in the journal and what came here."""
    number = len(found.differences)
    told = f"{plural(number, 'difference')}" if number else "no difference"
    sessions = plural(len(found.sessions), "session")
    lines = [f"{visible(file)}: {sessions}, " + screen.paint(told, "red" if number else "green")]
    for difference in found.differences:
        lines += [f"line {difference.line}: {visible(difference.detail)}", *_members(difference, screen)]
    lines += [f"not repeated: {visible(reason)}" for reason in found.skipped]
    return "\n".join(lines) + "\n"


def _members(difference: Difference, screen: Screen) -> Iterator[str]:
    """The members that are not the same, one below the other."""
    old, new = difference.recorded or {}, difference.repeated or {}
    if not new:
        return
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            rows = [("journal", _text(old, key)), ("here", _text(new, key))]
            yield f"  {visible(key)}"
            yield from screen.table(rows, ("dim", None), indent=4)


def _text(members: dict[str, Any], key: str) -> str:
    if key not in members:
        return "(missing)"
    value = members[key]
    return value if isinstance(value, str) else as_json(value).strip()
