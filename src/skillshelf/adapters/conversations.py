"""Give each conversation of an agent its own session: by a key of the framework, or by the value of its messages."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, TypeVar

from skillshelf.adapters.messages import (
    SeenItem,
    joined,
    marks_of,
    result_digest,
    resume_skills,
    seen_call,
    visible_digests,
    with_call,
    with_calls,
)
from skillshelf.adapters.registry import SkillTool
from skillshelf.core.limits import CONVERSATION_IDLE_SECONDS, CONVERSATIONS_KEPT
from skillshelf.errors import ConfigurationError
from skillshelf.session.session import Session
from skillshelf.session.tools import Tool, ToolResult, fixed_tools
from skillshelf.shelf import Shelf

__all__ = [
    "ConversationTools",
    "Conversations",
    "SameObject",
    "Target",
    "conversations_of",
    "own_conversations",
]


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
        seen = {item.id for item in answers} | {result_digest(item.text) for item in answers}
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
            return self._open(kept, joined(items, since))

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
        whole = joined(items, since)
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
        whole = joined(items, since)
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
        whole = with_call(items, call if in_items else None) if items is not None else None
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
        answered |= {result_digest(item.text) for item in items if item.kind == "result"}
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
            new = [item for item in items or () if item.kind == "result" and result_digest(item.text) not in kept.known]
            if new:
                resume_skills(kept.session, with_calls(new, items or (), self.prefix))
                kept.known |= {result_digest(item.text) for item in new}
            return kept.session

    def _answered(self, kept: _Kept, call_id: str, text: str) -> None:
        digest = result_digest(text)
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
"""The values that adapters take: a shelf or a `SkillTool`, whose conversations get a session each; one session, for one
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
