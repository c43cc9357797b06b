"""Relate each event of a journal to its session, its user, its call and its skill."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal

from skillshelf.core.limits import JOURNAL_LISTED_SKILLS, JOURNAL_NAMES
from skillshelf.core.records import NamedTuple
from skillshelf.journal.parts import CONTINUED

__all__ = ["OpenCall", "OpenCalls", "SessionContext", "SkillKey", "TrackedEvent", "Tracker", "User", "as_text"]

_NAME_CHARS = 256
_PATH_CHARS = 4096
_QUERY_CHARS = 200
_ENDS = ("tool_ended", "tool_failed")
_LISTED_AT_ONCE = 40 * JOURNAL_LISTED_SKILLS


# Calls --------------------------------------------------------------------------------------------


class OpenCall(NamedTuple):
    """A running tool call: the tool, its start, its skill as far as known, and whether it has given something of it.

    `act` is the tool by the name that rules use, `query` what was searched for.
    """

    tool: str
    began_ms: int
    skill: str | None
    path: str | None = None
    act: str = ""
    query: str | None = None
    identity: str = ""
    used: bool = False


class OpenCalls:
    """The open calls of a journal, to relate each event to its call and skill; events come in order."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], OpenCall] = {}
        self._current: dict[str, str] = {}

    def follow(self, record: Mapping[str, Any]) -> tuple[OpenCall | None, str | None]:
        """Return the call that an event belongs to, and the skill that it concerns."""
        session, kind = record["session"], record["type"]
        if kind in ("tool_decided", "tool_answered", CONTINUED):
            # A tool of the host, or no session at all: it belongs to no call of ours.
            return None, None
        if kind == "tool_started":
            call = _started(record)
            self._begin(session, call)
            return call, call.skill
        open_call = self.open_call(record)
        identity = open_call.identity if open_call else ""
        name = None if kind.startswith("tool_") else as_text(record.get("name"))
        if open_call and kind != "skill_warning":
            # The arguments may name a path or nothing; the resolved skill counts.
            open_call = self._open[session, identity] = _learned(open_call, record, name)
        if kind in _ENDS:
            self._open.pop((session, identity), None)
            self._current.pop(session, None)
        return open_call, name or (open_call.skill if open_call else None)

    def open_call(self, record: Mapping[str, Any]) -> OpenCall | None:
        """Return the call that is open before an event."""
        identity = as_text(record.get("tool_id")) or self._current.get(record["session"], "")
        return self._open.get((record["session"], identity))

    def _begin(self, session: str, call: OpenCall) -> None:
        if len(self._open) >= JOURNAL_NAMES:
            # Thousands of calls that never ended: the oldest will not end any more.
            del self._open[next(iter(self._open))]
        if len(self._current) >= JOURNAL_NAMES:
            del self._current[next(iter(self._current))]
        self._open[session, call.identity] = call
        self._current[session] = call.identity


def _started(record: Mapping[str, Any]) -> OpenCall:
    """Return the call that a `tool_started` begins."""
    args = record.get("args")
    query = args.get("query") if isinstance(args, Mapping) else None
    return OpenCall(
        as_text(record.get("name")) or "?",
        record["ts_ms"],
        _skill_in(args),
        act=as_text(record.get("name")) or "?",
        query=" ".join(query.split())[:_QUERY_CHARS] if isinstance(query, str) else None,
        identity=str(record.get("tool_id"))[:_NAME_CHARS],
    )


def _learned(call: OpenCall, record: Mapping[str, Any], name: str | None) -> OpenCall:
    """Return a call with what an event says about it: the resolved skill, and whether it was used."""
    kind = record["type"]
    changes: dict[str, Any] = {"skill": name} if name and name != call.skill else {}
    if kind in ("permission_decided", "skill_loaded", "skill_invoked") and (path := _path(record)):
        changes["path"] = path
    if kind == "permission_decided":
        changes["act"] = as_text(record.get("tool")) or call.act
    if _gives(record, call):
        changes["used"] = True
    return call._replace(**changes) if changes else call


def _gives(record: Mapping[str, Any], call: OpenCall | None) -> bool:
    """Return whether an event means that a model or a person got something of a skill."""
    if record["type"] in ("skill_invoked", "skill_read"):
        return True
    return record["type"] == "tool_ended" and call is not None and call.act == "skill_run" and call.skill is not None


def _skill_in(args: object) -> str | None:
    """Return the skill that the arguments of a call name."""
    if not isinstance(args, Mapping):
        return None
    for key in ("name", "skillName"):
        if name := as_text(args.get(key)):
            return name
    for key in ("uri", "path"):
        address = as_text(args.get(key)) or ""
        if address.startswith("skill://"):
            return address.removeprefix("skill://").partition("/")[0] or None
    return None


def as_text(value: object) -> str | None:
    """Return a text of an untrusted record, cut to the length of a name; None if it is none."""
    return value[:_NAME_CHARS] if isinstance(value, str) and value else None


def _path(record: Mapping[str, Any]) -> str | None:
    path = record.get("path")
    return path[:_PATH_CHARS] if isinstance(path, str) and path else None


# Sessions -----------------------------------------------------------------------------------------


class User(NamedTuple):
    """The user of a skill: the person that a server knows, else its client program, else whoever has the journal."""

    kind: Literal["subject", "client", "journal"]
    name: str


class SkillKey(NamedTuple):
    """The facts about a skill: its name, its `SKILL.md`, a mark of its description, and the digest of the file."""

    name: str
    path: str | None = None
    mark: str | None = None
    digest: str | None = None


class SessionContext:
    """The state of a session after the events so far: the user, the list of its catalog, and its last search."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.listing: str | None = None
        self.query: str | None = None
        self.search_id: str | None = None
        self.notes: dict[str, Any] = {}
        """The memory of a consumer of the steps, for as long as the session lasts."""


class TrackedEvent(NamedTuple):
    """An event in its place: `uses` if a call gave something of a skill for the first time; `query` of the search
    that the event belongs to, or that a load followed; `search_id` of the call that searched."""

    context: SessionContext
    call: OpenCall | None
    skill: SkillKey | None
    uses: bool
    query: str | None = None
    search_id: str | None = None


Listing = Mapping[str, list[SkillKey]]
"""The skills of a catalog by name."""


class Tracker:
    """Follows the events of journals; what it remembers is bounded."""

    def __init__(self) -> None:
        self._calls = OpenCalls()
        self._sessions: OrderedDict[tuple[str, str], SessionContext] = OrderedDict()
        self._listings: OrderedDict[str, Listing] = OrderedDict()
        self._listed = 0

    def follow(self, record: Mapping[str, Any], source: str = "") -> TrackedEvent:
        """Return an event in its place; `source` names the journal."""
        context = self._context(record, source)
        kind = record["type"]
        before = self._calls.open_call(record)
        call, name = self._calls.follow(record)
        uses = _gives(record, call) and not (before and before.used)
        skill = self._skill(record, context, call, name) if name else None
        if kind == "session_ended":
            self._sessions.pop((source, record["session"]), None)
        if call and call.act == "skill_search":
            if kind == "tool_ended":
                context.query, context.search_id = call.query, call.identity
            return TrackedEvent(context, call, skill, uses, call.query, call.identity)
        # A person's own choice follows no search.
        followed = (
            uses and kind == "skill_invoked" and record.get("mode") == "auto" and record.get("repeat") is not True
        )
        search = (context.query, context.search_id) if followed else (None, None)
        return TrackedEvent(context, call, skill, uses, *search)

    def listing(self, digest: str | None) -> Listing | None:
        """Return the skills of a catalog that was listed; None if it is not known any more."""
        return self._listings.get(digest) if digest else None

    def _context(self, record: Mapping[str, Any], source: str) -> SessionContext:
        key = source, record["session"]
        context = self._sessions.get(key)
        if context is None:
            context = self._sessions[key] = SessionContext(User("journal", source))
            if len(self._sessions) > JOURNAL_NAMES:
                self._sessions.popitem(last=False)
        if record["type"] == "session_started":
            context.user = _user(record, source)
        elif record["type"] == "skill_catalog_updated":
            context.listing = self._take_listing(record)
        return context

    def _take_listing(self, record: Mapping[str, Any]) -> str | None:
        """Remember the list of a catalog and return its digest; None if the event has none."""
        digest = as_text(record.get("listing"))
        if digest is None:
            return None
        if digest in self._listings:
            self._listings.move_to_end(digest)
        elif isinstance(listed := record.get("listed"), list):
            found = _skills_of(listed)
            self._listings[digest] = found
            self._listed += len(found)
            while self._listed > _LISTED_AT_ONCE and len(self._listings) > 1:
                self._listed -= len(self._listings.popitem(last=False)[1])
        return digest

    def _skill(self, record: Mapping[str, Any], context: SessionContext, call: OpenCall | None, name: str) -> SkillKey:
        """Return what is known of the skill of an event."""
        path = call.path if call and call.skill == name else None
        if record["type"] != "skill_read":
            path = _path(record) or path
        digest = as_text(record.get("digest")) if record["type"] == "skill_loaded" else None
        known = (self.listing(context.listing) or {}).get(name, ())
        found = next((key for key in known if path in (None, key.path)), None)
        return found._replace(digest=digest) if found else SkillKey(name, path, None, digest)


def _user(record: Mapping[str, Any], source: str) -> User:
    if subject := as_text(record.get("subject")):
        return User("subject", subject)
    if client := as_text(record.get("client")):
        # One program, whatever its version.
        return User("client", client.rpartition("/")[0] or client)
    return User("journal", source)


def _skills_of(listed: list[Any]) -> Listing:
    """Return the skills of a list in an untrusted record; leave out what is none."""
    found: dict[str, list[SkillKey]] = {}
    for entry in listed:
        folder, skills = (entry.get("folder"), entry.get("skills")) if isinstance(entry, Mapping) else (None, None)
        if not isinstance(folder, str) or not isinstance(skills, list):
            continue
        for skill in skills:
            if not isinstance(skill, list) or len(skill) < 2 or not all(isinstance(part, str) for part in skill):
                continue
            name, mark, *file = skill
            path = f"{folder}/{file[0] if file else f'{name}/SKILL.md'}"
            found.setdefault(name[:_NAME_CHARS], []).append(
                SkillKey(name[:_NAME_CHARS], path[:_PATH_CHARS], mark[:_NAME_CHARS])
            )
    return found
