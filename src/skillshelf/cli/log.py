"""Show, verify, count and replay a journal: the command `log` and what it prints."""

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from skillshelf.cli.commands import Values
from skillshelf.core.console import Screen, Style, as_json, note, screen, write
from skillshelf.core.limits import JOURNAL_SESSIONS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, fold, plural, visible
from skillshelf.errors import DONE, FAILED, NEGATIVE, ConfigurationError, FileReadError, ResourceNotFound, SkillError
from skillshelf.journal.acts import OpenCalls
from skillshelf.journal.events import EVENTS
from skillshelf.journal.file import JournalCheck, Problem, Verification, in_words, journals_in, read
from skillshelf.journal.file import verify as verify_journal
from skillshelf.journal.format import Line
from skillshelf.journal.parts import base_of, is_part
from skillshelf.journal.usage import Period
from skillshelf.journal.words import event_time, event_words
from skillshelf.session.replay import Difference, Replay

if TYPE_CHECKING:
    from skillshelf.journal.push import KnownStream

__all__ = ["ACTIONS", "Action", "EventLines", "log", "replay_view", "verify_view"]


_SESSION_SHOWN = 8
_TYPE_CELLS = 21


# One event ----------------------------------------------------------------------------------------


class EventLines:
    """Formats events as lines: the time, the session, the type and a description, or the problem with the line.

    In a pipe each line has the full time. On a terminal the date is printed on a line of its own when it changes, which
    leaves room for the description.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._day = ""

    def text(self, line: Line) -> str:
        """Return the event as one line, after a line with the date if that is new."""
        if line.record is None:
            blank = " " * (_SESSION_SHOWN + 2 + _TYPE_CELLS)
            cells = (f"line {line.number}".ljust(len(self._time(0))), blank, f"broken: {line.problem}")
            return self._screen.table([cells], ("red", None, "red"))[0] + "\n"
        day = event_time(line.record["ts_ms"])[:10]
        is_new = self._screen.columns is not None and day != self._day
        self._day = day
        heading = self._screen.paint(f"{day} (UTC)", "bold") + "\n" if is_new else ""
        return heading + self._row(line, line.record) + "\n"

    def _row(self, line: Line, record: Mapping[str, Any]) -> str:
        words = event_words(record)
        if line.problem:
            words = f"[line {line.number}: {line.problem}] {words}"
        style = "red" if line.problem else _style(record)
        cells = (
            self._time(record["ts_ms"]),
            record["session"][:_SESSION_SHOWN].ljust(_SESSION_SHOWN),
            record["type"][:_TYPE_CELLS].ljust(_TYPE_CELLS),
            fold(words),
        )
        return self._screen.table([cells], ("dim", "dim", style or "bold", style))[0]

    def _time(self, ts_ms: int) -> str:
        return event_time(ts_ms) if self._screen.columns is None else event_time(ts_ms)[11:19]


def _style(record: Mapping[str, Any]) -> Style | None:
    if record["type"] == "tool_failed" or record.get("verdict") == "deny":
        return "red"
    return _STYLES.get(record["type"])


_STYLES: Mapping[str, Style] = {
    "skill_warning": "yellow",
    "policy_widened": "yellow",
    "tool_stdout": "dim",
    "tool_stderr": "dim",
    "session_started": "green",
    "session_ended": "green",
}


# Views of verify, stats and replay ----------------------------------------------------------------


def verify_view(found: Verification, name: str, screen: Screen) -> str:
    """Return the verdict, each problem with its line, and the sum to keep."""
    sessions = plural(found.sessions, "session") + (" or more" if found.sessions >= JOURNAL_SESSIONS else "")
    size = f"{plural(found.lines, 'line')}, {sessions}"
    verdict = screen.paint("unchanged", "green") if found.ok else screen.paint("not as it was written", "red")
    lines = screen.table([(f"{name}:",)], (None,))
    lines[0] += f" {verdict}, {size}"
    if found.parts:
        lines[0] += f" in {plural(len(found.parts), 'part')}"
    if found.ok and found.removed_parts:
        before = "the part before was" if found.removed_parts == 1 else "the parts before were"
        lines.append(f"Begins with part {found.removed_parts + 1}: {before} removed by rotation.")
    rows = [(_where(p), p.kind, p.detail) for p in found.problems]
    lines += screen.table(rows, (None, "red", None), indent=2, wrap=True)
    if found.open_end:
        lines.append("The end is open: a session has no session_ended; it still runs, was killed, or was cut off.")
    if found.head:
        lines.append(f"Last sum: {found.head}")
    if found.ok and found.head:
        lines.append("Keep it elsewhere: log verify --head SUM detects a journal whose end was cut off.")
    return "\n".join(lines) + "\n"


def _where(problem: Problem) -> str:
    if not problem.file:
        return f"line {problem.line}"
    return f"{os.path.basename(problem.file)} line {problem.line_in_file}"


def replay_view(found: Replay, file: str, screen: Screen) -> str:
    """Return a summary, then each difference with the recorded and the repeated values."""
    number = len(found.differences)
    result = plural(number, "difference") if number else "no difference"
    sessions = plural(len(found.sessions), "session")
    lines = [f"{visible(file)}: {sessions}, " + screen.paint(result, "red" if number else "green")]
    for difference in found.differences:
        lines += [f"line {difference.line}: {visible(difference.detail)}", *_changed_members(difference, screen)]
    lines += [f"not repeated: {visible(reason)}" for reason in found.skipped]
    return "\n".join(lines) + "\n"


def _changed_members(difference: Difference, screen: Screen) -> Iterator[str]:
    """Yield the members whose values differ."""
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


# The command --------------------------------------------------------------------------------------

_MOST_LAST = 1_000_000


class Action(NamedTuple):
    """One action on a journal or on `many`, and the options that only it takes."""

    run: Callable[[str, Values], int]
    takes: tuple[str, ...]
    many: bool = False


def log(values: Values) -> int:
    """Run an action on a journal."""
    name = values["action"]
    if name not in ACTIONS:
        known = f"{did_you_mean(name, ACTIONS)} (known: {', '.join(ACTIONS)})"
        raise ConfigurationError(f"unknown action {name!r}{known}")
    action = ACTIONS[name]
    own = {option for other in ACTIONS.values() for option in other.takes}
    if strange := sorted(option for option in own - set(action.takes) if values[option] not in (None, False, [])):
        option = strange[0].replace("_", "-")
        raise ConfigurationError(f"log {name} takes no option --{option} (run `skillshelf log --help`)")
    paths = values["file"]
    if values["stream"] is not None:
        return _verify_on_server(values)
    if name == "push" and (len(paths) != 2 or "://" not in paths[0]):
        raise ConfigurationError("log push takes the address of a server and one journal: log push URL FILE")
    if not paths:
        raise ConfigurationError("missing argument FILE: the journal; of stats and export also several, or folders")
    if len(paths) > 1 and not action.many:
        raise ConfigurationError(f"log {name} takes one journal (log stats and log export take several)")
    # As with `--config`, a relative path starts where the command was typed, not at `--cwd`.
    return action.run(os.path.abspath(paths[0]), {**values, "file": paths[0], "files": paths})


def show(path: str, values: Values) -> int:
    """Print the events, one a line, or as one JSON list."""
    events, opening, shown = EventLines(screen(os.environ)), "[", 0
    for line in _last(_wanted(_lines(path), values), values["last"]):
        shown += line.record is not None
        write(opening + as_json(_as_value(line)) if values["json"] else events.text(line))
        opening = ","
    narrowed = any(values[name] for name in ("session", "type", "skill", "since", "until"))
    if values["json"]:
        write("[]\n" if opening == "[" else "]\n")
    elif not shown:
        write("No event matches.\n" if narrowed else "No events.\n")
    for name in values["type"] if not shown else ():
        # Only a hint: a journal may hold kinds of another version.
        if name not in EVENTS and (hint := did_you_mean(name, EVENTS)):
            note(f"no kind of event is called {name!r}{hint}")
    return NEGATIVE if narrowed and not shown else DONE


def verify(path: str, values: Values) -> int:
    """Check that the journal is as it was written."""
    if values["server"] is not None:
        # A server has the journal with all its parts.
        path = base_of(path)
    known = _stream_on_server(path, values) if not values["head"] else None
    head = known.state.head if known is not None else values["head"]
    if known is not None and known.first_seq > (known.state.acknowledged or 0):
        # Rotation has removed the line that the server has last.
        head = None
    if head is not None and not re.fullmatch("(sha256:)?[0-9a-fA-F]{64}", head):
        raise ConfigurationError("--head needs a sum of 64 hex digits, as printed by log verify")
    try:
        found = verify_journal(path, head)
    except OSError as error:
        raise _failure(path, error) from None
    if known is not None and known.gap:
        missing = Problem(1, (known.state.acknowledged or 0) + 1, "removed", known.gap)
        found = found._replace(ok=False, problems=(missing, *found.problems))
    if values["json"]:
        write(as_json(found.to_dict()))
    else:
        write(verify_view(found, values["file"], screen(os.environ)))
    if known is not None and known.is_replaced and any(problem.kind == "cut" for problem in found.problems):
        note(known.replaced)
    return DONE if found.ok else NEGATIVE


def _stream_on_server(path: str, values: Values) -> "KnownStream | None":
    """Return what the server of `--server` has of the journal; None without that option."""
    if values["server"] is None:
        return None
    from skillshelf.cli.log_push import stream_on_server
    from skillshelf.journal.push import FORGOTTEN_THERE

    try:
        known = stream_on_server(path, values)
    except OSError as error:
        raise _failure(path, error) from None
    if known is not None and known.state.forgotten and known.state.head is None:
        raise ConfigurationError(FORGOTTEN_THERE)
    if known is None or known.state.head is None:
        raise ConfigurationError("the server has nothing of this journal (run `skillshelf log push URL FILE`)")
    return known


def _verify_on_server(values: Values) -> int:
    """Verify a journal, or all, as the server of `--server` stores it."""
    if values["server"] is None or values["file"] or values["head"]:
        raise ConfigurationError(
            "--stream is for what a server has: log verify --server URL --stream ID, without a file"
        )
    from skillshelf.cli.log_push import verify_on_server

    return verify_on_server(values)


def _push(path: str, values: Values) -> int:
    from skillshelf.cli.log_push import push

    return push(path, values)


def stats(path: str, values: Values) -> int:
    """Count which skills were used, how often, how, and by whom; and which never were."""
    from skillshelf.cli.usage_view import VIEWS, stats_view
    from skillshelf.journal.usage import UsageCounter

    by = values["by"]
    if by is not None and by not in VIEWS:
        raise ConfigurationError(f"--by needs one of {', '.join(VIEWS)}, not {by!r}{did_you_mean(by, VIEWS)}")
    counter = UsageCounter(session=values["session"] or "", period=_period(values))
    found = [_counted_journal(file, source, counter.add) for file, source in _sources(values["files"])]
    usage = counter.usage()
    if values["json"]:
        times = dict(zip(("since_ms", "until_ms"), _period(values), strict=True))
        write(as_json({"file": path, **usage._asdict(), "files": found, **times}))
    else:
        damaged = [f"{journal['source']}: {journal['problem']}" for journal in found if journal["problem"]]
        write(stats_view(usage, screen(os.environ), by=by, damaged=damaged))
    return DONE


def _counted_journal(file: str, source: str, add: Callable[[Line, str], None]) -> dict[str, Any]:
    """Pass the lines of a journal on, and return whether its chain holds."""
    chain, lines = JournalCheck(is_part(file)), 0
    for line in _lines(file):
        lines += 1
        chain.add(line)
        add(line, source)
    problems = chain.problems()
    problem = None
    if problems:
        problem = f"{plural(len(problems), 'problem')}, the first at line {problems[0].line}: {problems[0].detail}"
    return {"file": file, "source": source, "lines": lines, "ok": not problems, "problem": problem}


def _sources(paths: list[str]) -> list[tuple[str, str]]:
    """Return each journal of the arguments once, with a short name; a folder stands for the journals in it."""
    found: dict[str, None] = {}
    for path in map(os.path.abspath, paths):
        try:
            found |= dict.fromkeys(journals_in(path))
        except OSError as error:
            raise _failure(path, error) from None
    # A part that is named beside its journal is in it already.
    files = [file for file in found if not is_part(file) or base_of(file) not in found]
    if not files:
        raise ConfigurationError(f"there is no journal in {os.path.abspath(paths[0])}")
    above = os.path.commonpath([os.path.dirname(file) for file in files])
    return [(file, os.path.relpath(file, above)) for file in files]


def export(path: str, values: Values) -> int:
    """Send the use of skills in journals to an OpenTelemetry receiver."""
    from skillshelf.journal.otlp import EventExporter

    if not values["otlp"]:
        raise ConfigurationError("log export needs --otlp URL, the address of a receiver")
    exporter = EventExporter(values["otlp"], content=values["otlp_content"], wait=True)
    period = _period(values)
    sources = _sources(values["files"])
    try:
        for file, source in sources:
            for line in _lines(file):
                if exporter.problem:
                    break
                if line.record is not None and line.problem is None:
                    exporter.take(line.record, source, send=line.record["ts_ms"] in period)
    finally:
        exporter.close()
    if values["json"]:
        counts = {"spans": exporter.sent, "lost": exporter.lost, "problem": exporter.problem}
        write(as_json({"files": [file for file, _ in sources], "otlp": exporter.url, **counts}))
    else:
        journals = plural(len(sources), "journal")
        write(f"{plural(exporter.sent, 'span')} of {journals} sent to {visible(exporter.url)}\n")
    if exporter.problem:
        note(exporter.problem)
    return FAILED if exporter.lost else DONE


def replay(path: str, values: Values) -> int:
    """Repeat the calls of the journal and print the differences; no script runs and the user gets no question."""
    from skillshelf.shelf import replay as replay_journal

    try:
        journals_in(path)
    except OSError as error:
        raise _failure(path, error) from None
    config = os.path.abspath(values["config"]) if values["config"] else None
    found = replay_journal(
        path,
        cwd=os.path.abspath(values["cwd"]) if values["cwd"] else None,
        home=values["home"],
        config=config,
        trust="all" if values["trust"] else "ask",
        against="disk" if values["disk"] else values["against"],
    )
    if values["json"]:
        write(as_json({"file": path, **found.to_dict()}))
    else:
        write(replay_view(found, values["file"], screen(os.environ)))
    return NEGATIVE if found.differences else DONE


ACTIONS: Mapping[str, Action] = {
    "show": Action(show, ("session", "type", "skill", "last", "since", "until")),
    "verify": Action(verify, ("head", "server", "stream", "token_file", "allow_http")),
    "stats": Action(stats, ("session", "since", "until", "by"), many=True),
    "replay": Action(replay, ("against", "disk", "trust")),
    "export": Action(export, ("since", "until", "otlp", "otlp_content"), many=True),
    "push": Action(_push, ("token_file", "allow_http"), many=True),
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
    """Yield the lines that the options select, and every broken line, since its event is unknown."""
    calls, period = OpenCalls(), _period(values)
    for line in lines:
        if line.record is None:
            yield line
            continue
        _, skill = calls.follow(line.record)
        if (
            line.record["session"].startswith(values["session"] or "")
            and (not values["type"] or line.record["type"] in values["type"])
            and values["skill"] in (None, skill)
            and line.record["ts_ms"] in period
        ):
            yield line


def _period(values: Values) -> Period:
    """Return the time that `--since` and `--until` name."""
    return Period(_time_of(values["since"], "--since"), _time_of(values["until"], "--until"))


def _time_of(text: str | None, option: str) -> int | None:
    """Return a date, or a time before now such as `7d`, in milliseconds."""
    if text is None:
        return None
    if match := re.fullmatch(r"([0-9]{1,6})([hdw])", text):
        hours = int(match[1]) * {"h": 1, "d": 24, "w": 168}[match[2]]
        return time.time_ns() // 1_000_000 - hours * 3_600_000
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        needs = "a date such as 2026-11-01, or a time before now such as 12h, 7d or 4w"
        raise ConfigurationError(f"{option} needs {needs}, not {text!r}") from None
    # Without a zone it is UTC, as everything that `log` prints.
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _last(lines: Iterator[Line], number: str | None) -> Iterable[Line]:
    if number is None:
        return lines
    if not number.isdecimal() or not 0 < int(number[:10]) <= _MOST_LAST:
        raise ConfigurationError(f"--last needs a number from 1 to {_MOST_LAST:,}, not {number!r}")
    return deque(lines, maxlen=int(number))


def _as_value(line: Line) -> dict[str, Any]:
    """Return the record, with the problem of its line if it has one."""
    if line.record is not None and line.problem is None:
        return line.record
    return {"line": line.number, "problem": line.problem, "record": line.record}
