"""Give each conversation of an agent its own session: by a key of the framework, or by the value of its messages."""

import asyncio
import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeVar

from skillshelf.adapters.registry import SkillTool
from skillshelf.catalog.document import parse
from skillshelf.catalog.load import SKILL_FILE, digest_of, parse_address
from skillshelf.core.limits import CONVERSATION_IDLE_SECONDS, CONVERSATIONS_KEPT
from skillshelf.core.text import path_text
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.render import render
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult, fixed_tools
from skillshelf.shelf import Shelf

__all__ = [
    "ConversationTools",
    "Conversations",
    "SameObject",
    "SeenItem",
    "Target",
    "conversations_of",
    "marks_of",
    "own_conversations",
    "seen_call",
    "seen_result",
    "seen_text",
    "visible_digests",
]


class SeenItem(NamedTuple):
    """One item of a conversation by value: a text of a role, a call of a tool, or the result of one.

    A message of a framework becomes one item or several. Whatever else it carries does not count, so that the
    dictionaries of an API and the objects of its package give the same items.
    """

    kind: Literal["text", "call", "result"]
    text: str
    role: str = ""
    id: str = ""
    name: str = ""


def seen_text(role: str, text: str) -> list[SeenItem]:
    """Return a text of a role as items: none if it is empty, and none for the system prompt, which may change."""
    return [SeenItem("text", text, role)] if text and role not in ("system", "developer") else []


def seen_call(id: str | None, name: str, arguments: Any) -> SeenItem:  # noqa: A002 - it is called so everywhere.
    """Return a call of a tool as an item; arguments count by their value, not by their spelling as JSON."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return SeenItem("call", arguments, id=id or "", name=name)
    return SeenItem("call", _canonical(arguments or {}), id=id or "", name=name)


def seen_result(id: str | None, text: str, name: str | None = None) -> SeenItem:  # noqa: A002
    """Return the result of a tool call as an item; `name` is the name of the tool where the message has it."""
    return SeenItem("result", text, id=id or "", name=name or "")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


class _Kept:
    """The session of one conversation, with what its messages were at its last call.

    `mark` identifies the items up to that call, `given` holds the results that the session gave since, by call id, and
    `known` the digests of all results that the session knows about.
    """

    def __init__(self, key: Hashable | None, run: Hashable | None) -> None:
        self.key = key
        self.run = run
        self.session: Session | None = None
        self.opening = threading.Lock()
        self.mark: bytes | None = None
        self.given: dict[str, str] = {}
        self.known: set[str] = set()
        self.used = 0.0
        self.busy = 0

    def continues(self, rest: Sequence[SeenItem], call_id: str) -> bool:
        """Return True if items after the mark can follow from what this session did since."""
        answers = [item for item in rest if item.kind == "result"]
        if not self.given:
            return self.run is None
        seen = {item.id for item in answers} | {_digest(item.text) for item in answers}
        if answers and all(entry in seen for entry in self.given):
            return True
        # The same turn: another of its calls, with results of others. A call that was answered before is of another
        # conversation.
        same_turn = all(item.kind == ("result" if answers else "call") for item in rest)
        return same_turn and self.run is None and call_id not in self.given


class Conversations:
    """The sessions of a shelf, one for each conversation; or one session, which is one conversation.

    `options` are those of `shelf.session`. All sessions write to one journal, each under its own `session`. At most
    `limit` sessions are kept, and none that was idle for `idle_seconds`; a conversation that comes back later gets a
    new session, which sends texts again. `prefix` is put before the names of the tools. Safe to use from several
    threads.
    """

    def __init__(
        self,
        target: Shelf | Session,
        *,
        prefix: str = "",
        limit: int = CONVERSATIONS_KEPT,
        idle_seconds: float = CONVERSATION_IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        if isinstance(target, Session) and options:
            raise ConfigurationError(f"a session has its options already: {', '.join(sorted(options))}")
        if options.get("memory", "none") not in ("messages", "none"):
            raise ConfigurationError(
                "memory of conversations is `messages` or `none`: only a session remembers by itself"
            )
        self.prefix = prefix
        self._shelf = target if isinstance(target, Shelf) else None
        self._only = target if isinstance(target, Session) else None
        self._options = options
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._by_key: dict[Hashable, _Kept] = {}
        self._by_run: dict[Hashable, _Kept] = {}
        self._by_mark: dict[bytes, list[_Kept]] = {}
        self._gone: list[_Kept] = []

    def session_for(
        self,
        *,
        key: Hashable | None = None,
        scope: str = "",
        run: Hashable | None = None,
        items: Sequence[SeenItem] | None = None,
        since: Sequence[SeenItem] | None = None,
    ) -> Session:
        """Return the session of a conversation.

        `key` identifies the conversation. Without one, its items do: a session whose items at its last call are the
        beginning of these, and whose results since then are among them; `scope` limits that to sessions of the same
        scope. `run` identifies one run of an agent; its first items decide. Without anything, it is a new session.
        `since` are calls and results of the run in no certain order, where a framework shows only its first items.
        """
        with self._lease(key, scope, run, items, None) as kept:
            return self._open(kept, _joined(items, since))

    def call(
        self,
        tool: str,
        arguments: Any = None,
        *,
        key: Hashable | None = None,
        scope: str = "",
        run: Hashable | None = None,
        items: Sequence[SeenItem] | None = None,
        since: Sequence[SeenItem] | None = None,
        call_id: str = "",
        visible: Set[str] | None = None,
    ) -> ToolResult:
        """Call a tool in the session of a conversation; items that cannot be seen count as not there.

        `visible` are the digests of the results that were in the last request to the model, where the adapter knows
        that request and it may hold less than the items.
        """
        name = self.tool_name(tool)
        call = seen_call(call_id, tool, arguments)
        whole = _joined(items, since)
        with self._lease(key, scope, run, items, call, in_items=since is None) as kept:
            seen = visible_digests(whole) if visible is None else visible_digests(whole) & visible
            result = self._open(kept, whole).call(name, arguments, visible=seen)
            self._answered(kept, call_id, result.text)
        if key is None and run is None and items is None:
            self._forget(kept)
        return result

    def system_prompt(self, base: str = "", **conversation: Any) -> str:
        """Return the system prompt of a conversation, composed now; without one it belongs to none."""
        session = self.session_for(**conversation)
        text = session.system_prompt(base)
        if self._only is None and not any(conversation.values()):
            self._end(session)
        return text

    async def acall(
        self,
        tool: str,
        arguments: Any = None,
        *,
        key: Hashable | None = None,
        scope: str = "",
        run: Hashable | None = None,
        items: Sequence[SeenItem] | None = None,
        since: Sequence[SeenItem] | None = None,
        call_id: str = "",
        visible: Set[str] | None = None,
    ) -> ToolResult:
        """Call a tool as `call` does, without blocking the event loop; `confirm` may be a coroutine function."""
        name = self.tool_name(tool)
        call = seen_call(call_id, tool, arguments)
        whole = _joined(items, since)
        with self._lease(key, scope, run, items, call, in_items=since is None) as kept:
            seen = visible_digests(whole) if visible is None else visible_digests(whole) & visible
            session = await asyncio.to_thread(self._open, kept, whole)
            result = await session.acall(name, arguments, visible=seen)
            await asyncio.to_thread(self._answered, kept, call_id, result.text)
        if key is None and run is None and items is None:
            await asyncio.to_thread(self._forget, kept)
        return result

    async def asession_for(self, **conversation: Any) -> Session:
        """Return the session of a conversation as `session_for` does, without blocking the event loop."""
        return await asyncio.to_thread(lambda: self.session_for(**conversation))

    def tools(self, session: Session) -> list[Tool]:
        """Return the current tools of a session, with the prefix before their names."""
        return [tool._replace(name=self.prefix + tool.name) for tool in session.tools()]

    def current_tools(self) -> list[Tool]:
        """Return the tools that a new conversation has now."""
        if self._only is not None:
            return self.tools(self._only)
        assert self._shelf is not None
        quiet = {name: value for name, value in self._options.items() if name in ("policy", "confirm")}
        with self._shelf.session(**quiet) as session:
            return self.tools(session)

    def fixed_tools(self) -> list[Tool]:
        """Return the tools for a framework that takes a list once: without the names of skills, which may change.

        They are the current ones, or else those of the profile.
        """
        target = self._only or self._shelf
        assert target is not None
        fixed = {self.prefix + tool.name: tool for tool in fixed_tools(target.profile)}
        if current := self.current_tools():
            return [tool._replace(input_schema=fixed[tool.name].input_schema) for tool in current]
        return [tool._replace(name=name) for name, tool in fixed.items()]

    def tool_name(self, name: str) -> str:
        """Return the name of a tool without the prefix."""
        return name.removeprefix(self.prefix)

    def end_run(self, run: Hashable) -> None:
        """Note that a run is over, so that a later one can continue its conversation."""
        with self._lock:
            if kept := self._by_run.pop(run, None):
                kept.run = None

    def close(self) -> None:
        """End every session that was opened here."""
        with self._lock:
            gone = [*self._gone, *self._kept.values()]
            self._gone = []
            for kept in gone:
                self._remove(kept)
        _close(gone)

    # Finding the session ----------------------------------------------------------------------------

    @contextmanager
    def _lease(
        self,
        key: Hashable | None,
        scope: str,
        run: Hashable | None,
        items: Sequence[SeenItem] | None,
        call: SeenItem | None,
        *,
        in_items: bool = True,
    ) -> Iterator[_Kept]:
        """Find or make the entry of a conversation and keep it from being removed in the `with` block."""
        if self._only is not None:
            yield _Kept(None, None)
            return
        whole = _with_call(items, call if in_items else None) if items is not None else None
        with self._lock:
            gone = self._take_idle()
            kept = self._find(key, scope, run, whole, call.id if call else "")
            known = kept is not None
            if kept is None:
                kept = self._add(key, run)
            if whole is not None and key is None and (call is not None or not known):
                self._move_mark(kept, scope, whole)
            if call is not None and call.id:
                kept.given[call.id] = ""
            kept.used = self._clock()
            self._kept.move_to_end(id(kept))
            kept.busy += 1
            gone += self._take_surplus()
            self._gone += gone
        try:
            yield kept
        except BaseException:
            # The model gets no result of this call, so its messages will hold none.
            with self._lock:
                kept.given.pop(call.id if call else "", None)
            raise
        finally:
            with self._lock:
                kept.busy -= 1
                kept.used = self._clock()

    def _find(
        self, key: Hashable | None, scope: str, run: Hashable | None, items: Sequence[SeenItem] | None, call_id: str
    ) -> _Kept | None:
        if key is not None:
            return self._by_key.get(key)
        if run is not None and run in self._by_run:
            return self._by_run[run]
        if not items:
            return None
        marks = marks_of(scope, items)
        for length in range(len(items), 0, -1):
            for kept in self._by_mark.get(marks[length], ()):
                if kept.continues(items[length:], call_id):
                    if run is not None:
                        self._by_run.pop(kept.run, None)
                        kept.run = run
                        self._by_run[run] = kept
                    return kept
        return None

    def _add(self, key: Hashable | None, run: Hashable | None) -> _Kept:
        kept = _Kept(key, run)
        self._kept[id(kept)] = kept
        if key is not None:
            self._by_key[key] = kept
        if run is not None:
            self._by_run[run] = kept
        return kept

    def _move_mark(self, kept: _Kept, scope: str, items: Sequence[SeenItem]) -> None:
        self._drop_mark(kept)
        if not items:
            return
        answered = {item.id for item in items if item.kind == "result"}
        answered |= {_digest(item.text) for item in items if item.kind == "result"}
        kept.given = {entry: text for entry, text in kept.given.items() if entry not in answered}
        kept.mark = marks_of(scope, items)[-1]
        self._by_mark.setdefault(kept.mark, []).append(kept)

    def _drop_mark(self, kept: _Kept) -> None:
        if kept.mark is None:
            return
        same = self._by_mark[kept.mark]
        same.remove(kept)
        if not same:
            del self._by_mark[kept.mark]
        kept.mark = None

    def _open(self, kept: _Kept, items: Sequence[SeenItem] | None) -> Session:
        """Return the session of an entry: opened, with the skills active whose texts came into the items elsewhere.

        Sessions that had to go are closed here too, because a journal may have to be waited for.
        """
        if self._only is not None:
            return self._only
        with self._lock:
            gone, self._gone = self._gone, []
        _close(gone)
        with kept.opening:
            if kept.session is None:
                assert self._shelf is not None
                try:
                    kept.session = self._shelf.session(**{"memory": "messages", **self._options})
                except BaseException:
                    with self._lock:
                        self._remove(kept)
                    raise
            new = [item for item in items or () if item.kind == "result" and _digest(item.text) not in kept.known]
            if new:
                _resume(kept.session, _with_calls(new, items or (), self.prefix))
                kept.known |= {_digest(item.text) for item in new}
            return kept.session

    def _answered(self, kept: _Kept, call_id: str, text: str) -> None:
        digest = _digest(text)
        with self._lock:
            kept.given.pop(call_id, None)
            kept.given[call_id or digest] = digest
            kept.known.add(digest)

    # Ending sessions --------------------------------------------------------------------------------

    def _forget(self, kept: _Kept) -> None:
        if self._only is None:
            with self._lock:
                self._remove(kept)
            _close([kept])

    def _end(self, session: Session) -> None:
        for kept in [kept for kept in list(self._kept.values()) if kept.session is session]:
            self._forget(kept)

    def _take_idle(self) -> list[_Kept]:
        oldest = self._clock() - self._idle_seconds
        return self._take(kept for kept in self._kept.values() if kept.used < oldest)

    def _take_surplus(self) -> list[_Kept]:
        surplus = len(self._kept) - self._limit
        return self._take(list(self._kept.values())[:surplus]) if surplus > 0 else []

    def _take(self, entries: Iterable[_Kept]) -> list[_Kept]:
        gone = [kept for kept in entries if not kept.busy]
        for kept in gone:
            self._remove(kept)
        return gone

    def _remove(self, kept: _Kept) -> None:
        if self._kept.pop(id(kept), None) is None:
            return
        self._drop_mark(kept)
        if kept.key is not None:
            self._by_key.pop(kept.key, None)
        if kept.run is not None:
            self._by_run.pop(kept.run, None)


def _close(gone: Iterable[_Kept]) -> None:
    for kept in gone:
        if kept.session is not None:
            kept.session.close()


Target = Shelf | Session | Conversations | SkillTool
"""What adapters take: a shelf or a `SkillTool`, whose conversations get a session each; one session, for one
conversation; or conversations with options of their own."""

_ATTACHED = "conversations"
_attaching = threading.Lock()


def conversations_of(target: Target, **options: Any) -> Conversations:
    """Return the conversations of a target with these options; those of a shelf live as long as the shelf."""
    if isinstance(target, SkillTool):
        target = target.shelf
    if not isinstance(target, Shelf):
        return own_conversations(target, **options)
    with _attaching:
        attached: Any = target.attachments.setdefault(_ATTACHED, [])
        for known, conversations in attached:
            if known == options:
                return conversations  # type: ignore[no-any-return]
        attached.append((options, Conversations(target, **options)))
        return attached[-1][1]  # type: ignore[no-any-return]


def own_conversations(target: Target, **options: Any) -> Conversations:
    """Return new conversations of a target with these options; conversations that are given have theirs already."""
    if not isinstance(target, Conversations):
        return Conversations(target.shelf if isinstance(target, SkillTool) else target, **options)
    if options:
        raise ConfigurationError(f"conversations have their options already: {', '.join(sorted(options))}")
    return target


ToolT = TypeVar("ToolT")


class ConversationTools(list[ToolT]):
    """The tools of an adapter, as a list; `session_for` gives the session of what a framework hands to a tool."""

    def __init__(self, tools: Iterable[ToolT], find: Callable[[Any], Session]) -> None:
        super().__init__(tools)
        self.session_for = find


class SameObject:
    """A key of a conversation that is equal only to one of the same object, which it keeps."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


# Values of messages -------------------------------------------------------------------------------


def _digest(text: str) -> str:
    return digest_of(text.encode("utf-8", "surrogatepass"))


def visible_digests(items: Sequence[SeenItem] | None) -> set[str]:
    """Return the digests of the results that a model sees with these items."""
    # A result whose call was trimmed away is not sent to the model.
    return {_digest(result.text) for result, call in _pairs(items or ()) if call is not None}


def _pairs(items: Iterable[SeenItem]) -> Iterator[tuple[SeenItem, SeenItem | None]]:
    """Return each result with the call that it answers; None if that is not there.

    Ids may come again in a later turn, and some services have none: a result answers the oldest call of its id, and of
    its tool where it names one, that has no result yet.
    """
    waiting: dict[str, list[SeenItem]] = {}
    for item in items:
        calls = waiting.setdefault(item.id, [])
        if item.kind == "call":
            calls.append(item)
        elif item.kind == "result":
            named = [call for call in calls if item.name in ("", call.name)]
            call = next(iter(named or (calls if item.id else ())), None)
            if call is not None:
                calls.remove(call)
            yield item, call


def _joined(items: Sequence[SeenItem] | None, since: Sequence[SeenItem] | None) -> Sequence[SeenItem] | None:
    return items if not since else [*(items or ()), *since]


def _with_call(items: Sequence[SeenItem], call: SeenItem | None) -> list[SeenItem]:
    """Return the items with the call that is answered now, for callers that add the model's turn only afterwards."""
    if call is None:
        return list(items)
    for item in reversed(items):
        # Ids may come again in a later turn: a call that has its result is an earlier one.
        if item.kind == "result" and item.id == call.id:
            break
        if item.kind == "call" and (item.id, item.name) == (call.id, call.name):
            return list(items)
    return [*items, call]


def marks_of(scope: str, items: Sequence[SeenItem]) -> list[bytes]:
    """Return one digest for each beginning of the items; the first is that of no items."""
    marks = [sha256(scope.encode("utf-8", "surrogatepass")).digest()]
    for item in items:
        # The tool of a result is in its call; only some frameworks repeat it.
        value = item._replace(name="") if item.kind == "result" else item
        marks.append(sha256(marks[-1] + json.dumps(value).encode()).digest())
    return marks


# Skills that the messages hold --------------------------------------------------------------------

_HEADS = (
    re.compile(r'<skill_content name="[^"\n]*" directory="(?P<place>[^"\n]*)" digest="[^"\n]*">\n'),
    re.compile(r'<skill_context name="[^"\n]*" path="(?P<place>[^"\n]*)">\n'),
)


def _with_calls(
    results: Iterable[SeenItem], items: Iterable[SeenItem], prefix: str
) -> list[tuple[SeenItem, SeenItem | None]]:
    """Return results with the calls that they answer among the items, without the prefix of their tools."""
    wanted = {id(item) for item in results}
    return [
        (result, call and call._replace(name=call.name.removeprefix(prefix)))
        for result, call in _pairs(items)
        if id(result) in wanted
    ]


def _resume(session: Session, results: Iterable[tuple[SeenItem, SeenItem | None]]) -> None:
    """Make the skills active whose texts are among the results, so that a new session never allows more tools."""
    paths = {path for result, call in results if (path := _skill_path(session, result, call))}
    for path in sorted(paths - set(session.snapshot()["active"])):
        try:
            session.resume(path)
        except SkillError as error:
            session.warn("not-resumed", f"a skill in the messages cannot be made active: {error}")


def _skill_path(session: Session, result: SeenItem, call: SeenItem | None) -> str | None:
    """Return the path of the skill whose text this result is; None if it is anything else.

    Only results of our own tools count, and a head only as the result of a load: any other text can be written by
    someone who wants a skill to be active.
    """
    name = call.name if call is not None else result.name
    # A framework or a server may have put a name of its own before that of the tool.
    tools = [tool for tool in session.profile.tools if name == tool or ("_" in tool and name.endswith(tool))]
    if not tools:
        return None
    what = NAMES_OF_TOOLS[tools[0]]
    for head in _HEADS if what == "skill_load" else ():
        if match := head.match(result.text):
            places = {path_text(place): skill.path for skill in session.skills for place in (skill.path, skill.dir)}
            return places.get(match["place"])
    return _path_by_call(session, result.text, what, call.text) if call is not None else None


def _path_by_call(session: Session, text: str, what: str, arguments: str) -> str | None:
    """Return the path of a skill whose text has no head of its own: by the call, if text or file is the same."""
    try:
        given = json.loads(arguments)
        if what == "skill_read":
            address = parse_address(str(given.get("uri") or given.get("path")))
            name = address.name if address.segments in ((), (SKILL_FILE,)) else ""
        else:
            name = str(given.get("name") or given.get("skillName") or "") if what == "skill_load" else ""
        if not name:
            return None
        loaded = session.shelf.load(name)
        arguments = str(given.get("args") or "")
        whole = render(loaded, session.profile, arguments, root=session.shelf.project_root).text
    except (SkillError, ValueError, AttributeError):
        return None
    same = text in (whole, loaded.content) or _in_envelope(text, whole)
    return loaded.skill.path if same or (what == "skill_read" and _is_file_of(text, loaded.skill.name)) else None


def _is_file_of(text: str, name: str) -> bool:
    """Return True for a SKILL.md of this name, also an earlier version of the file."""
    return parse(text.encode("utf-8", "replace"), whole=True).fields.get("name") == name


def _in_envelope(text: str, whole: str) -> bool:
    try:
        return bool(json.loads(text)["data"]["content"] == whole)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
