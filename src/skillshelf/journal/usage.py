"""Count over journals which skills are used, by whom, when, after which search, and what was denied or failed.

Counting is one pass with bounded memory: what exceeds a limit is counted under `(others)`.
"""

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from skillshelf.core.limits import JOURNAL_NAMES, JOURNAL_SESSIONS
from skillshelf.core.records import NamedTuple
from skillshelf.journal.acts import OpenCall, SkillKey, TrackedEvent, Tracker, User, as_text
from skillshelf.journal.format import Line, digest_of
from skillshelf.journal.parts import CONTINUED

__all__ = ["OTHERS", "Period", "Usage", "UsageCounter", "count_usage", "week_of"]

OTHERS = "(others)"
SKILL_COUNTS = ("auto", "manual", "repeated", "loaded", "read", "denied", "calls", "failed", "uses", "after_search")
TOOL_COUNTS = ("calls", "failed", "denied")
_SIZES = ("total_ms", "longest_ms", "bytes")
_ENDS = ("tool_ended", "tool_failed")
_PATHS_SHOWN = 20
_PAIRS = 20 * JOURNAL_NAMES
_SEARCHES = JOURNAL_NAMES


class Period(NamedTuple):
    """The time that is counted, in milliseconds: from `since` on, before `until`; None is no limit."""

    since: int | None = None
    until: int | None = None

    def __contains__(self, ts_ms: object) -> bool:
        assert isinstance(ts_ms, int)
        return (self.since is None or ts_ms >= self.since) and (self.until is None or ts_ms < self.until)


class Usage(NamedTuple):
    """The use of skills and tools in journals, most used first.

    `catalog` is the number of skills that the sessions were offered, `unlisted` the number of sessions whose journal
    does not list them.
    """

    events: int
    sessions: int
    broken: int
    skills: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    catalog: int = 0
    never_used: list[dict[str, Any]] = []  # noqa: RUF012 - a default that is never changed.
    unlisted: int = 0
    users: list[dict[str, Any]] = []  # noqa: RUF012
    weeks: list[dict[str, Any]] = []  # noqa: RUF012
    searches: list[dict[str, Any]] = []  # noqa: RUF012
    denials: list[dict[str, Any]] = []  # noqa: RUF012
    errors: list[dict[str, Any]] = []  # noqa: RUF012


def count_usage(lines: Iterable[Line], *, session: str = "", period: Period = Period()) -> Usage:  # noqa: B008
    """Count the use of skills and tools in one journal."""
    counter = UsageCounter(session=session, period=period)
    for line in lines:
        counter.add(line)
    return counter.usage()


def week_of(ts_ms: int) -> str:
    """Return the ISO week of a time in UTC, such as `2026-W47`; `?` for a time that no calendar has."""
    try:
        year, week, _ = datetime.fromtimestamp(ts_ms / 1000, UTC).isocalendar()
    except (OverflowError, ValueError, OSError):
        return "?"
    return f"{year:04d}-W{week:02d}"


class _Counts:
    """Numbers by key and name, and the first and last time of each key; keys beyond the limit are one."""

    def __init__(self, names: Sequence[str], limit: int, others: Hashable = OTHERS) -> None:
        self.rows: dict[Any, dict[str, int]] = {}
        self.times: dict[Any, tuple[int, int]] = {}
        self._names, self._limit, self._others = names, limit, others

    def add(self, key: Hashable, name: str, number: int = 1) -> None:
        """Add to a number if these rows have it."""
        row = self.row(key)
        if name == "longest_ms":
            row[name] = max(row[name], number)
        elif name in row:
            row[name] += number

    def row(self, key: Hashable) -> dict[str, int]:
        """Return the numbers of a key."""
        if key not in self.rows and len(self.rows) >= self._limit:
            key = self._others
        return self.rows.setdefault(key, dict.fromkeys(self._names, 0))

    def at(self, key: Hashable, ts_ms: int) -> None:
        """Note a time of a key."""
        if key in self.rows:
            first, last = self.times.get(key, (ts_ms, ts_ms))
            self.times[key] = min(first, ts_ms), max(last, ts_ms)

    def span(self, key: Hashable) -> dict[str, int | None]:
        """Return the first and last time of a key."""
        first, last = self.times.get(key, (None, None))
        return {"first_ms": first, "last_ms": last}


class _SkillIds:
    """Numbers for skills over sessions, users and machines.

    Two records mean the same skill if they have the same name and the same file, or the same name and the same
    description or text: copies are one skill, a skill that was edited stays the same one, and two skills that merely
    share a name, or one that was renamed, are two.
    """

    def __init__(self) -> None:
        self.names: list[str] = [OTHERS]
        self.paths: list[list[str]] = [[]]
        self._same: list[int] = [0]
        self._ids: dict[tuple[str, str, str], int] = {}

    def id_of(self, key: SkillKey) -> int:
        """Return the number of a skill."""
        marks = [(key.name, kind, mark) for kind, mark in zip("pmd", key[1:], strict=True) if mark]
        marks = marks or [(key.name, "", "")]
        known = [self._ids[mark] for mark in marks if mark in self._ids]
        if not known and len(self.names) > JOURNAL_NAMES:
            return 0
        number = self.first(known[0]) if known else self._new(key.name)
        for other in known[1:]:
            self._same[self.first(other)] = number
        for mark in marks:
            if mark not in self._ids and len(self._ids) < 4 * JOURNAL_NAMES:
                self._ids[mark] = number
                if mark[1] == "p" and len(self.paths[number]) < _PATHS_SHOWN:
                    self.paths[number].append(mark[2])
        return number

    def _new(self, name: str) -> int:
        self.names.append(name)
        self.paths.append([])
        self._same.append(len(self._same))
        return len(self._same) - 1

    def first(self, number: int) -> int:
        """Return the number that stands for all that mean the same skill."""
        while self._same[number] != number:
            self._same[number] = number = self._same[self._same[number]]
        return number

    def settle(self) -> None:
        """Join a name without a file to the only skill of that name."""
        named: dict[str, set[int]] = {}
        for (name, kind, _), number in self._ids.items():
            if kind:
                named.setdefault(name, set()).add(self.first(number))
        for name, numbers in named.items():
            alone = self._ids.get((name, "", ""))
            if alone and len(numbers) == 1:
                self._same[self.first(alone)] = next(iter(numbers))
        for number, paths in enumerate(self.paths):
            if (first := self.first(number)) != number:
                self.paths[first] += paths


class _Offers:
    """The number of sessions that were offered each catalog."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._sessions: dict[str, int] = {}
        self._offered: dict[int, int] = {}
        self._size = 0

    def add(self, digest: str, ids: Callable[[], Iterable[int]]) -> None:
        """Count a session that was offered the catalog with this digest."""
        if digest not in self._rows:
            rows = self._rows[digest] = array("L", set(ids()))
            self._size += len(rows)
        self._sessions[digest] = self._sessions.get(digest, 0) + 1
        if self._size > 100 * JOURNAL_NAMES:
            self.settle()

    def settle(self) -> dict[int, int]:
        """Add up the catalogs so far, and return how many sessions were offered each skill."""
        for digest, rows in self._rows.items():
            for row in rows:
                self._offered[row] = self._offered.get(row, 0) + self._sessions[digest]
        self._rows, self._sessions, self._size = {}, {}, 0
        return self._offered


class UsageCounter:
    """Counts journals line by line; each may be continued over several files."""

    def __init__(self, *, session: str = "", period: Period = Period()) -> None:  # noqa: B008 - a value.
        self._session, self._period = session, period
        self._tracker, self._ids, self._offers = Tracker(), _SkillIds(), _Offers()
        self._sessions: set[bytes] = set()
        self._events = self._broken = self._listed = 0
        self._skills = _Counts((*SKILL_COUNTS, *_SIZES), JOURNAL_NAMES, 0)
        self._tools = _Counts((*TOOL_COUNTS, *_SIZES), JOURNAL_NAMES)
        self._users = _Counts(("sessions", "uses", "denied", "failed"), JOURNAL_NAMES, User("journal", OTHERS))
        self._weeks = _Counts(("sessions", "uses", "searches", "denied", "failed"), JOURNAL_NAMES)
        self._by_user = _Counts(("uses",), _PAIRS, (0, User("journal", OTHERS)))
        self._by_week = _Counts(("uses",), _PAIRS, (0, OTHERS))
        self._searches = _Counts(("searches", "loads"), _SEARCHES)
        self._found = _Counts(("loads",), _PAIRS, (OTHERS, 0))
        self._denials = _Counts(("count",), JOURNAL_NAMES, (OTHERS, None, None, None))
        self._denied_users = _Counts(("count",), _PAIRS, (OTHERS, User("journal", OTHERS)))
        self._errors = _Counts(("count",), JOURNAL_NAMES, (OTHERS, None, OTHERS))

    def add(self, line: Line, source: str = "") -> None:
        """Count a line of a journal; one that was changed or damaged is not counted."""
        if line.problem is not None or line.record is None:
            self._broken += 1
            return
        record = line.record
        if record["type"] == CONTINUED or not record["session"].startswith(self._session):
            return
        step = self._tracker.follow(record, source)
        if record["ts_ms"] not in self._period:
            return
        self._events += 1
        self._count_session(record, step)
        number = self._ids.id_of(step.skill) if step.skill else None
        if number is not None and record["type"] != "skill_warning":
            self._count(self._skills, number, record, step.call)
        if tool := step.call.tool if step.call else as_text(record.get("tool")):
            self._count(self._tools, tool, record, step.call)
        self._count_use(record, step, number)
        self._count_refusals(record, step, number)

    def _count_session(self, record: Mapping[str, Any], step: TrackedEvent) -> None:
        """Count a session, once, and each catalog that it was offered."""
        notes, user = step.context.notes, step.context.user
        if "counted" not in notes:
            notes["counted"] = True
            self._users.add(user, "sessions")
            self._weeks.add(week_of(record["ts_ms"]), "sessions")
            if len(self._sessions) < JOURNAL_SESSIONS:
                self._sessions.add(bytes.fromhex(digest_of(record["session"].encode("utf-8", "replace")))[:16])
        self._users.at(user, record["ts_ms"])
        digest = step.context.listing
        if digest is None or notes.get("offered") == digest:
            return
        if (listing := self._tracker.listing(digest)) is None:
            return
        self._listed += "offered" not in notes
        notes["offered"] = digest
        self._offers.add(digest, lambda: (self._ids.id_of(key) for keys in listing.values() for key in keys))

    @staticmethod
    def _count(rows: _Counts, key: Hashable, record: Mapping[str, Any], call: OpenCall | None) -> None:
        kind = record["type"]
        if kind in _COUNTED:
            rows.add(key, _COUNTED[kind](record))
        if kind in _ENDS and call:
            took = _number(record.get("duration_ms")) or max(0, record["ts_ms"] - call.began_ms)
            rows.add(key, "total_ms", took)
            rows.add(key, "longest_ms", took)
        chunk = record.get("chunk")
        size = len(chunk.encode("utf-8", "replace")) if isinstance(chunk, str) else _number(record.get("size"))
        rows.add(key, "bytes", size)

    def _count_use(self, record: Mapping[str, Any], step: TrackedEvent, number: int | None) -> None:
        """Count a use of a skill by user and week, and a load by the search before it."""
        ts_ms, user, week = record["ts_ms"], step.context.user, week_of(record["ts_ms"])
        if record["type"] == "tool_ended" and step.call and step.call.act == "skill_search":
            self._weeks.add(week, "searches")
            self._searches.add(step.query or "", "searches")
        if not step.uses or number is None:
            return
        self._skills.add(number, "uses")
        self._skills.at(number, ts_ms)
        self._users.add(user, "uses")
        self._weeks.add(week, "uses")
        self._by_user.add((number, user), "uses")
        self._by_user.at((number, user), ts_ms)
        self._by_week.add((number, week), "uses")
        if step.search_id is not None:
            self._skills.add(number, "after_search")
            self._searches.add(step.query or "", "loads")
            self._found.add((step.query or "", number), "loads")

    def _count_refusals(self, record: Mapping[str, Any], step: TrackedEvent, number: int | None) -> None:
        """Count a denial by tool, skill, rule and origin, or a failure by tool, skill and code."""
        kind, user, week = record["type"], step.context.user, week_of(record["ts_ms"])
        if kind in _DECISIONS and record.get("verdict") == "deny":
            key = (as_text(record.get("tool")) or "?", number, as_text(record.get("rule")), as_text(record.get("by")))
            self._denials.add(key, "count")
            self._denials.at(key, record["ts_ms"])
            self._denied_users.add((key, user), "count")
            self._users.add(user, "denied")
            self._weeks.add(week, "denied")
        elif kind == "tool_failed" and record.get("code") != "denied":
            tool = step.call.tool if step.call else "?"
            self._errors.add((tool, number, as_text(record.get("code")) or "?"), "count")
            self._users.add(user, "failed")
            self._weeks.add(week, "failed")

    # The result -------------------------------------------------------------------------------------

    def usage(self) -> Usage:
        """Return what was counted."""
        self._ids.settle()
        skills = self._skill_rows()
        # What the catalogs hold; a name that was never found is no skill.
        offered = [row for row in skills if row["sessions"]]
        never = [{"name": row["name"], "paths": row["paths"]} for row in offered if not row["uses"]]
        tools = [{"name": name, **row} for name, row in self._tools.rows.items()]
        return Usage(
            self._events,
            len(self._sessions),
            self._broken,
            skills,
            sorted(tools, key=lambda row: (-row["calls"], row["name"])),
            len(offered),
            sorted(never, key=lambda row: (row["name"], row["paths"])),
            max(0, len(self._sessions) - self._listed),
            self._user_rows(),
            [{"week": week, **row} for week, row in sorted(self._weeks.rows.items())],
            self._search_rows(),
            self._denial_rows(),
            self._error_rows(),
        )

    def _skill_rows(self) -> list[dict[str, Any]]:
        """Return one row for each skill that was offered or concerned, most used first."""
        rows: dict[int, dict[str, Any]] = {}
        for number, count in self._offers.settle().items():
            self._skill_row(rows, number)["sessions"] += count
        for number, counts in self._skills.rows.items():
            row = self._skill_row(rows, number)
            for name, value in counts.items():
                row[name] = max(row[name], value) if name == "longest_ms" else row[name] + value
            span = self._skills.span(number)
            row["first_ms"] = min(filter(None, (row["first_ms"], span["first_ms"])), default=None)
            row["last_ms"] = max(filter(None, (row["last_ms"], span["last_ms"])), default=None)
        for (number, user), counts in self._by_user.rows.items():
            users = self._skill_row(rows, number)["users"]
            users[user.name] = users.get(user.name, 0) + counts["uses"]
        for (number, week), counts in self._by_week.rows.items():
            weeks = self._skill_row(rows, number)["weeks"]
            weeks[week] = weeks.get(week, 0) + counts["uses"]
        for row in rows.values():
            row["users"] = [{"user": name, "uses": uses} for name, uses in _most(row["users"])]
            row["weeks"] = [{"week": week, "uses": uses} for week, uses in sorted(row["weeks"].items())]
            row["paths"] = sorted(row["paths"])
        order = lambda row: (-(row["auto"] + row["manual"] + row["calls"]), row["name"], row["paths"])  # noqa: E731
        return sorted(rows.values(), key=order)

    def _skill_row(self, rows: dict[int, dict[str, Any]], number: int) -> dict[str, Any]:
        first = self._ids.first(number)
        if first not in rows:
            paths = dict.fromkeys(self._ids.paths[first])
            counts = dict.fromkeys((*SKILL_COUNTS, *_SIZES), 0)
            more: dict[str, Any] = {"sessions": 0, "first_ms": None, "last_ms": None, "users": {}, "weeks": {}}
            rows[first] = {"name": self._ids.names[first], **counts, "paths": list(paths), **more}
        return rows[first]

    def _user_rows(self) -> list[dict[str, Any]]:
        skills: dict[User, set[int]] = {}
        for number, user in self._by_user.rows:
            skills.setdefault(user, set()).add(self._ids.first(number))
        rows: list[dict[str, Any]] = [
            {"user": user.name, "kind": user.kind, **counts, "skills": len(skills.get(user, ()))}
            | self._users.span(user)
            for user, counts in self._users.rows.items()
        ]
        return sorted(rows, key=lambda row: (-row["uses"], row["user"]))

    def _search_rows(self) -> list[dict[str, Any]]:
        """Return the searches, those that most loads followed first; the query is null where none is recorded."""
        found: dict[str, dict[str, int]] = {}
        for (query, number), counts in self._found.rows.items():
            names = found.setdefault(query, {})
            name = self._ids.names[number]
            names[name] = names.get(name, 0) + counts["loads"]
        rows: list[dict[str, Any]] = [
            {
                "query": query or None,
                **counts,
                "skills": [{"name": name, "loads": loads} for name, loads in _most(found.get(query, {}))],
            }
            for query, counts in self._searches.rows.items()
        ]
        return sorted(rows, key=lambda row: (-row["loads"], -row["searches"], row["query"] or ""))

    def _denial_rows(self) -> list[dict[str, Any]]:
        joined, users = _Counts(("count",), _PAIRS), _Counts(("count",), _PAIRS)
        for key, counts in self._denials.rows.items():
            joined.add(self._settled(key), "count", counts["count"])
            for ts_ms in self._denials.times.get(key, ()):
                joined.at(self._settled(key), ts_ms)
        for (key, user), counts in self._denied_users.rows.items():
            users.add((self._settled(key), user.name), "count", counts["count"])
        by_key: dict[Any, dict[str, int]] = {}
        for (key, user), counts in users.rows.items():
            by_key.setdefault(key, {})[user] = counts["count"]
        rows: list[dict[str, Any]] = [
            {
                "tool": key[0],
                "skill": self._name(key[1]),
                "rule": key[2],
                "by": key[3],
                **counts,
                **joined.span(key),
                "users": [{"user": name, "count": number} for name, number in _most(by_key.get(key, {}))],
            }
            for key, counts in joined.rows.items()
        ]
        return sorted(rows, key=lambda row: (-row["count"], row["tool"], row["skill"] or "", row["rule"] or ""))

    def _error_rows(self) -> list[dict[str, Any]]:
        joined = _Counts(("count",), _PAIRS)
        for key, counts in self._errors.rows.items():
            joined.add(self._settled(key), "count", counts["count"])
        rows: list[dict[str, Any]] = [
            {"tool": tool, "skill": self._name(number), "code": code, **counts}
            for (tool, number, code), counts in joined.rows.items()
        ]
        return sorted(rows, key=lambda row: (-row["count"], row["tool"], row["skill"] or "", row["code"]))

    def _settled(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the key of a row with the number that stands for its skill."""
        tool, number, *rest = key
        return (tool, None if number is None else self._ids.first(number), *rest)

    def _name(self, number: int | None) -> str | None:
        return None if number is None else self._ids.names[number]


def _most(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield names with their numbers, the highest first."""
    yield from sorted(counts.items(), key=lambda item: (-item[1], item[0]))


_DECISIONS = ("permission_decided", "tool_decided", "tool_answered")

_COUNTED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "tool_started": lambda _: "calls",
    "tool_failed": lambda record: "" if record.get("code") == "denied" else "failed",
    **dict.fromkeys(_DECISIONS, lambda record: "denied" if record.get("verdict") == "deny" else ""),
    "skill_loaded": lambda record: "loaded",
    "skill_read": lambda record: "read",
    "skill_invoked": lambda record: "repeated" if record.get("repeat") is True else str(record.get("mode")),
}
"""The count that an event of each type adds to; the empty text means none."""


def _number(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
