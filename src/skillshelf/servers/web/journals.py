"""Read journals for the pages: the use of skills, the sessions, and one session as a story."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any, Literal

from skillshelf.core import files
from skillshelf.core.limits import WEB_SESSIONS, WEB_STORY_EVENTS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, shorten
from skillshelf.journal.acts import as_text
from skillshelf.journal.file import journals_in, read
from skillshelf.journal.format import Line
from skillshelf.journal.parts import CONTINUED
from skillshelf.journal.usage import UsageCounter
from skillshelf.journal.words import event_time, event_words
from skillshelf.servers.web.catalogue import SessionStory, SessionSummary, StoryLine, UsageReport
from skillshelf.servers.web.paths import ShownPaths

__all__ = ["JournalReader", "Journals", "session_shown"]

Tone = Literal["plain", "good", "warning", "bad", "quiet"]

_SKILLS_NAMED = 8
_DETAIL_CHARS = 4_000
_SESSION_CHARS = 8

_TITLES: Mapping[str, tuple[str, Tone]] = {
    "session_started": ("Session began", "good"),
    "session_ended": ("Session ended", "good"),
    "skill_catalog_updated": ("Catalog read", "quiet"),
    "prompt_composed": ("Catalog given to the model", "quiet"),
    "skill_loaded": ("Skill loaded", "plain"),
    "skill_invoked": ("Skill used", "good"),
    "skill_read": ("File of a skill read", "plain"),
    "skill_warning": ("Warning", "warning"),
    "skill_mentioned": ("Skill mentioned", "plain"),
    "skill_activated": ("Skill activated", "plain"),
    "skill_deactivated": ("Skill deactivated", "plain"),
    "override_proposed": ("Change proposed", "plain"),
    "policy_widened": ("Policy widened", "warning"),
    "tool_started": ("Tool called", "plain"),
    "tool_stdout": ("Output", "quiet"),
    "tool_stderr": ("Error output", "quiet"),
    "tool_ended": ("Tool ended", "plain"),
    "tool_failed": ("Tool failed", "bad"),
    "tool_decided": ("Tool decided on", "plain"),
    "tool_answered": ("Question answered", "plain"),
    "permission_decided": ("Permission decided", "plain"),
    "result_dropped": ("Result dropped", "warning"),
    "context_compacted": ("Context compacted", "quiet"),
}
"""The heading of an event of each type, and how it is marked."""


_ASKED: Mapping[str, str] = {
    "query": "Searched for",
    "script": "Asked to run",
    "uri": "Asked to read",
    "name": "Asked for",
}
"""What a call of one of our tools asks for, by the argument that says what."""

_ASKED_SHOWN = 200


class Journals(NamedTuple):
    """What some journals hold: the use of skills, the sessions, and the file and name of each session by its key."""

    usage: UsageReport | None
    sessions: tuple[SessionSummary, ...]
    places: Mapping[str, tuple[str, str]]


class JournalReader:
    """Reads the journals at some paths; what has not changed is not read again."""

    def __init__(self, paths: Sequence[str], shown: ShownPaths) -> None:
        self._paths = tuple(os.path.abspath(path) for path in paths)
        self._shown = shown
        self._known: tuple[object, Journals] | None = None

    def read(self) -> Journals:
        """Return what the journals hold now; one that cannot be read is named among the sources."""
        found: list[str] = []
        problems: list[str] = []
        for path in self._paths:
            try:
                found += journals_in(path)
            except OSError as error:
                problems.append(f"{os.path.basename(path)}: {(error.strerror or str(error)).lower()}")
        stamps = tuple((path, files.state_at(path)) for path in found)
        if self._known is not None and self._known[0] == (stamps, problems):
            return self._known[1]
        result = self._counted(list(dict.fromkeys(found)), problems)
        self._known = (stamps, problems), result
        return result

    def _counted(self, paths: Sequence[str], problems: list[str]) -> Journals:
        counter, sessions = UsageCounter(), _SessionList()
        for path in paths:
            name = os.path.basename(path)
            try:
                for line in read(path):
                    counter.add(line, name)
                    sessions.add(line, path)
            except OSError as error:
                problems.append(f"{name}: {(error.strerror or str(error)).lower()}")
        if not self._paths:
            return Journals(None, (), {})
        names = [os.path.basename(path) for path in paths]
        usage = counter.usage()
        report = UsageReport(
            (*names, *problems),
            usage.sessions,
            usage.events,
            usage.broken,
            self._without_paths(usage.skills),
            self._without_paths(usage.users),
            usage.weeks,
            self._without_paths(usage.searches),
            self._without_paths(usage.denials),
            tuple(self._shown.text(row["name"]) for row in usage.never_used),
        )
        return Journals(report, tuple(sessions.listed(self._shown)), sessions.places())

    def _without_paths(self, value: Any) -> Any:
        """Return rows of texts, numbers and further rows without a path in any text."""
        if isinstance(value, str):
            return self._shown.text(value)
        if isinstance(value, Mapping):
            return {key: self._without_paths(inner) for key, inner in value.items()}
        return [self._without_paths(inner) for inner in value] if isinstance(value, list | tuple) else value

    def story(self, journals: Journals, key: str) -> SessionStory | None:
        """Return the events of one session; None if the journal is gone or has no such session."""
        summary = next((one for one in journals.sessions if one.key == key), None)
        if summary is None or key not in journals.places:
            return None
        path, session = journals.places[key]
        try:
            lines = (line for line in read(path) if line.record is not None and line.record["session"] == session)
            return self.story_of(summary, lines)
        except OSError:
            return None

    def story_of(self, summary: SessionSummary, found: Iterable[Line]) -> SessionStory:
        """Return the story that the lines of a session tell."""
        lines: list[StoryLine] = []
        left_out = 0
        for line in found:
            if line.record is None or line.record["type"] == CONTINUED:
                continue
            if len(lines) < WEB_STORY_EVENTS:
                lines.append(self._line(line, line.record))
            else:
                left_out += 1
        return SessionStory(summary, tuple(_joined(lines)), left_out)

    def _line(self, line: Line, record: Mapping[str, Any]) -> StoryLine:
        kind = record["type"]
        title, tone = _TITLES.get(kind, (kind.replace("_", " "), "plain"))
        words = event_words(record)
        if kind == "tool_started":
            title, words = _call(record, title, words)
        elif kind == "permission_decided" and record.get("verdict") == "allow":
            title, tone, words = "Allowed", "quiet", words.removeprefix("allow: ")
        elif record.get("verdict") == "deny":
            title, tone, words = "Denied", "bad", words.removeprefix("deny: ")
        elif kind == "tool_ended":
            title, tone = ("Answered", "quiet") if record.get("exit_code") in (0, None) else ("Ended badly", "bad")
        if line.problem is not None:
            title, tone = f"{title} (line {line.number}: {line.problem})", "bad"
        details, chunk = "", record.get("chunk")
        if isinstance(chunk, str):
            words, details = f"{len(chunk.encode('utf-8', 'replace')):,} bytes", chunk[:_DETAIL_CHARS]
        when = event_time(record["ts_ms"])
        title, words = self._shown.text(fold(title)), self._shown.text(fold(words))
        return StoryLine(when, title, words, tone, self._shown.text(details), line.number)


def _call(record: Mapping[str, Any], title: str, words: str) -> tuple[str, str]:
    """Return what a call of one of our tools asks for; of any other tool its name and arguments."""
    args = record.get("args")
    for key, asked in _ASKED.items():
        if isinstance(args, Mapping) and isinstance(args.get(key), str) and str(record.get("name")).startswith("skill"):
            return asked, shorten(args[key], _ASKED_SHOWN)
    return title, words


def _joined(lines: Sequence[StoryLine]) -> Iterator[StoryLine]:
    """Yield the lines of a story; several warnings in a row are one line, which can be opened."""
    for is_warning, group in groupby(lines, key=lambda line: line.kind == "Warning"):
        found = list(group)
        if is_warning and len(found) > 1:
            text = "\n".join(line.text for line in found)
            yield found[0]._replace(kind=f"{len(found)} warnings", text="about the catalog", details=text)
        else:
            yield from found


class _Session:
    """What the events of one session say so far."""

    def __init__(self, path: str, session: str) -> None:
        self.path, self.session = path, session
        self.first_ms = self.last_ms = 0
        self.events = self.denied = self.failed = 0
        self.who = ""
        self.ended = False
        self.broken = False
        self.skills: dict[str, None] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Count an event."""
        kind, ts_ms = record["type"], record["ts_ms"]
        self.first_ms = min(self.first_ms, ts_ms) if self.events else ts_ms
        self.last_ms = max(self.last_ms, ts_ms)
        self.events += 1
        if kind == "session_started":
            self.who = as_text(record.get("subject")) or as_text(record.get("client")) or ""
        self.ended |= kind == "session_ended"
        self.denied += record.get("verdict") == "deny"
        self.failed += kind == "tool_failed" and record.get("code") != "denied"
        name = as_text(record.get("name")) if kind in ("skill_invoked", "skill_loaded", "skill_read") else None
        if name and len(self.skills) < _SKILLS_NAMED:
            self.skills[name] = None


class _SessionList:
    """The sessions of all journals; beyond the limit the oldest are forgotten."""

    def __init__(self) -> None:
        self._found: dict[str, _Session] = {}

    def add(self, line: Line, path: str) -> None:
        """Count a line of a journal."""
        record = line.record
        if record is None or record["type"] == CONTINUED:
            return
        key = _key(path, record["session"])
        if key not in self._found:
            if len(self._found) >= WEB_SESSIONS:
                del self._found[next(iter(self._found))]
            self._found[key] = _Session(path, record["session"])
        self._found[key].add(record)
        self._found[key].broken |= line.problem is not None

    def listed(self, shown: ShownPaths) -> Iterable[SessionSummary]:
        """Yield the sessions, the newest first."""
        for key, one in sorted(self._found.items(), key=lambda item: (-item[1].first_ms, item[0])):
            yield SessionSummary(
                key,
                session_shown(one.session, shown),
                event_time(one.first_ms)[:19],
                event_time(one.last_ms)[:19] if one.ended else "",
                shown.text(one.who) or os.path.basename(one.path),
                one.events,
                tuple(map(shown.text, one.skills)),
                one.denied,
                one.failed,
                "some of its lines were changed or damaged" if one.broken else "",
            )

    def places(self) -> dict[str, tuple[str, str]]:
        """Return the file and the name of each session by its key."""
        return {key: (one.path, one.session) for key, one in self._found.items()}


def session_shown(session: str, shown: ShownPaths) -> str:
    """Return the beginning of the name of a session; nothing of one that is a path."""
    return session[:_SESSION_CHARS] if shown.text(session) == session else ""


def _key(path: str, session: str) -> str:
    """Return the last part of the address of a session, the same wherever the journal lies."""
    text = f"{os.path.basename(path)}\n{session}".encode("utf-8", "replace")
    return blake2b(text, digest_size=8).hexdigest()
