"""Send the use of skills to an OpenTelemetry receiver, as spans over OTLP and HTTP.

A call is a span `execute_tool` with the names of the GenAI conventions; what was used and denied is an event of its
span, at the time and with the count of `log stats`. Without `content` no query, argument, text or path leaves the
machine. The records are taken to a thread by a bounded queue: a receiver that is slow or away costs the session
nothing but the spans.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from skillshelf import __version__
from skillshelf.core.limits import JOURNAL_NAMES, OTLP_CLOSE_SECONDS, OTLP_EXPORT_SECONDS, OTLP_QUEUE, OTLP_SECONDS
from skillshelf.errors import ConfigurationError
from skillshelf.journal.acts import SessionContext, SkillKey, TrackedEvent, Tracker, as_text
from skillshelf.journal.format import digest_of
from skillshelf.journal.parts import CONTINUED

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["EventExporter", "SessionExport"]

_PACKAGES = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_BATCH = 256
_PAUSE_SECONDS = 1.0
_STUCK_SECONDS = 4 * OTLP_EXPORT_SECONDS
_ARGUMENT_CHARS = 4096
_DECISIONS = ("permission_decided", "tool_decided", "tool_answered")


class EventExporter:
    """Sends what sessions do to one receiver; safe to use from several threads. Close it to send the rest.

    `content` adds arguments, queries and paths. With `owned` the session that has it closes it. With `wait` a full
    queue is waited for, as when a journal is exported. `sent` and `lost` count spans, and lost records; `problem` has
    the reason for the first loss.
    """

    def __init__(self, url: str, *, content: bool = False, owned: bool = False, wait: bool = False) -> None:
        self._endpoint = _endpoint(url)
        self.url = _without_credentials(self._endpoint)
        if not all(_is_installed(package) for package in _PACKAGES):
            raise ConfigurationError("--otlp needs an extra; install it with: pip install 'skillshelf[otlp]'")
        self.owned = owned
        self.sent = self.lost = 0
        self.problem: str | None = None
        self._content, self._wait = content, wait
        self._queue: deque[tuple[Mapping[str, Any], str, bool]] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._exporter: Any = None

    def listener(self, session: str) -> "SessionExport":
        """Return what takes the events of one session."""
        return SessionExport(self, session)

    def take(self, record: Mapping[str, Any], source: str = "", *, send: bool = True) -> None:
        """Take an event with its time and session; without `send` it is only context for those that follow."""
        with self._changed:
            if self._wait:
                self._changed.wait_for(lambda: len(self._queue) < OTLP_QUEUE or self._stopping, _STUCK_SECONDS)
            if len(self._queue) >= OTLP_QUEUE or self._stopping:
                self._lose(1, "the queue is full")
                return
            self._queue.append((record, source, send))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="skillshelf-otlp", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self) -> None:
        """Send the rest, for at most OTLP_CLOSE_SECONDS, or with `wait` for as long as something is sent."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is None:
            return
        self._thread.join(_STUCK_SECONDS if self._wait else OTLP_CLOSE_SECONDS)
        before = -1
        while self._wait and self._thread.is_alive() and before != (before := self.sent + self.lost):
            self._thread.join(_STUCK_SECONDS)
        if self._thread.is_alive():
            with self._changed:
                self._lose(len(self._queue) + 1, "the receiver does not answer")
                self._queue.clear()
        if self._exporter is not None:
            self._exporter.shutdown()

    # The thread -------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self._exporter = _make_exporter(self._endpoint, OTLP_EXPORT_SECONDS if self._wait else OTLP_SECONDS)
            spans = _Spans(content=self._content)
            while self._send_next(spans):
                pass
        except Exception as error:  # The outermost frame of this thread: a session must not fail by it.
            with self._changed:
                self._lose(1, self._in_words(error))
                self._stopping = True
                self._changed.notify_all()

    def _send_next(self, spans: "_Spans") -> bool:
        """Send what has come; return False when it was the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopping)
            # More may come soon, and fits into the same request.
            self._changed.wait_for(lambda: len(self._queue) >= _BATCH or self._stopping, timeout=_PAUSE_SECONDS)
            taken = [self._queue.popleft() for _ in range(min(len(self._queue), 4 * _BATCH))]
            is_last = self._stopping and not self._queue
            self._changed.notify_all()
        finished = [span for record, source, send in taken for span in spans.take(record, source, send=send)]
        finished += spans.rest() if is_last else []
        for start in range(0, len(finished), _BATCH):
            self._export(finished[start : start + _BATCH])
        return not is_last

    def _export(self, spans: "Sequence[ReadableSpan]") -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        problem = "the receiver is away or refuses them"
        try:
            done = self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception as error:  # Whatever these spans do to the exporter, the next ones are sent.
            done, problem = False, self._in_words(error)
        with self._changed:
            if done:
                self.sent += len(spans)
            else:
                self._lose(len(spans), problem)

    def _in_words(self, error: Exception) -> str:
        return f"{type(error).__name__}: {error}".replace(self._endpoint, self.url)

    def _lose(self, number: int, reason: str) -> None:
        self.lost += number
        self.problem = self.problem or f"events were not sent to {self.url}: {reason}"


class SessionExport:
    """Takes the events of one session for an exporter."""

    def __init__(self, exporter: EventExporter, session: str) -> None:
        self._exporter, self._session = exporter, session

    @property
    def problem(self) -> str | None:
        """The reason why something was not sent."""
        return self._exporter.problem

    def take(self, type_name: str, payload: Mapping[str, Any]) -> None:
        """Take an event that happens now."""
        now = time.time_ns() // 1_000_000
        self._exporter.take({**payload, "session": self._session, "type": type_name, "ts_ms": now})

    def close(self) -> None:
        """Send the rest if this session has the exporter alone."""
        if self._exporter.owned:
            self._exporter.close()


def _endpoint(url: str) -> str:
    """Return the address for traces of a receiver; raise ConfigurationError unless it is one of HTTP."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        shown = url.rpartition("@")[2][:200]
        raise ConfigurationError(f"--otlp needs an address such as http://127.0.0.1:4318, not {shown!r}")
    path = parts.path if parts.path.endswith("/v1/traces") else f"{parts.path.rstrip('/')}/v1/traces"
    return parts._replace(path=path, fragment="").geturl()


def _without_credentials(url: str) -> str:
    """Return an address as it may be printed."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _make_exporter(url: str, seconds: float) -> Any:
    import logging

    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from requests import Session

    # Its retries are not for people; a program that configures logging still gets them.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    session = Session()
    session.hooks["response"].append(_status_alone)
    return OTLPSpanExporter(endpoint=url, timeout=seconds, session=session)


def _status_alone(answer: Any, **_options: Any) -> Any:
    """Return an answer without headers and text, so that no text without end is read; raise if it leads elsewhere."""
    from requests import Response, TooManyRedirects

    if 300 <= answer.status_code < 400:
        answer.close()
        raise TooManyRedirects("spans go only to the address that was given")
    status = Response()
    status.status_code, status.reason, status.url = answer.status_code, answer.reason, answer.url
    status.request, status.raw = answer.request, BytesIO()
    answer.close()
    return status


# Events to spans ----------------------------------------------------------------------------------


class _Call:
    """A call that is not finished: its attributes, and the events of its span."""

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self.attributes: dict[str, Any] = {}
        self.events: list[tuple[str, int, dict[str, Any]]] = []
        self.search_id: str | None = None


class _Spans:
    """Turns the events of sessions into spans; a trace is a session, and has the same ids whenever it is sent."""

    def __init__(self, *, content: bool) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._content = content
        self._tracker = Tracker()
        self._calls: dict[tuple[str, str, str], _Call] = {}
        self._open: dict[tuple[str, str], tuple[SessionContext, int, int, dict[str, Any]]] = {}
        self._resource = Resource.create({"service.name": "skillshelf", "service.version": __version__})
        self._scope = InstrumentationScope("skillshelf", __version__)

    def take(self, record: Mapping[str, Any], source: str, *, send: bool) -> "list[ReadableSpan]":
        """Take an event and return the spans that it finishes."""
        if record["type"] == CONTINUED:
            return []
        step = self._tracker.follow(record, source)
        self._note_session(record, source, step, send=send)
        call = self._call(record, source, step)
        if send:
            self._add_events(record, step, call)
        return self._finished(record, source, step, call) if send else []

    def rest(self) -> "list[ReadableSpan]":
        """Return the spans of sessions that have no end."""
        spans = [self._session_span(key[1], *entry) for key, entry in self._open.items()]
        self._open = {}
        return spans

    def _note_session(self, record: Mapping[str, Any], source: str, step: TrackedEvent, *, send: bool) -> None:
        key, now = (source, record["session"]), record["ts_ms"]
        if not send or (key not in self._open and len(self._open) >= JOURNAL_NAMES):
            return
        _, began, last, attributes = self._open.get(key, (None, now, now, {}))
        if record["type"] == "session_started":
            policy = record.get("policy")
            attributes = {
                "skillshelf.profile": as_text(record.get("profile")),
                "skillshelf.policy": as_text(policy.get("name")) if isinstance(policy, Mapping) else None,
                "skillshelf.version": as_text(record.get("version")),
                **({"skillshelf.cwd": as_text(record.get("cwd"))} if self._content else {}),
            }
        self._open[key] = step.context, min(began, now), max(last, now), attributes

    def _call(self, record: Mapping[str, Any], source: str, step: TrackedEvent) -> _Call | None:
        """Return the call of an event, with what the event says about it."""
        if step.call is None:
            return None
        key = source, record["session"], step.call.identity
        if record["type"] == "tool_started":
            if len(self._calls) >= JOURNAL_NAMES:
                del self._calls[next(iter(self._calls))]
            call = self._calls[key] = _Call(record["ts_ms"])
            call.attributes["skillshelf.mode"] = as_text(record.get("mode"))
            if self._content:
                arguments = json.dumps(record.get("args"), ensure_ascii=False, default=str)
                call.attributes["gen_ai.tool.call.arguments"] = arguments[:_ARGUMENT_CHARS]
        found = self._calls.get(key)
        if found is not None and record["type"] in ("skill_loaded", "skill_read"):
            found.attributes["skillshelf.skill.digest"] = as_text(record.get("digest"))
            if record["type"] == "skill_read" and (uri := as_text(record.get("uri"))):
                found.attributes["gen_ai.skill.resource.name"] = uri.removeprefix("skill://").partition("/")[2]
        return found

    def _add_events(self, record: Mapping[str, Any], step: TrackedEvent, call: _Call | None) -> None:
        """Add a use or a denial to the span of its call."""
        if call is None:
            return
        if step.uses and step.skill:
            call.events.append(self._use(record, step, step.skill))
            call.search_id = step.search_id
        if record["type"] in _DECISIONS and record.get("verdict") == "deny":
            call.events.append(self._denial(record, step))

    def _use(self, record: Mapping[str, Any], step: TrackedEvent, skill: SkillKey) -> tuple[str, int, dict[str, Any]]:
        attributes = {
            **self._about(skill),
            **_about_user(step.context),
            "skillshelf.repeat": record.get("repeat") is True,
        }
        if step.search_id is not None:
            attributes["skillshelf.after_search"] = True
            if self._content:
                attributes["skillshelf.search.query"] = step.query
        return "skillshelf.skill.used", record["ts_ms"], attributes

    def _denial(self, record: Mapping[str, Any], step: TrackedEvent) -> tuple[str, int, dict[str, Any]]:
        rule = as_text(record.get("rule"))
        attributes = {
            "gen_ai.tool.name": as_text(record.get("tool")),
            # A rule may name a place on this machine.
            "skillshelf.rule": rule if rule is None or self._content or "/" not in rule else "(path)",
            "skillshelf.by": as_text(record.get("by")),
            **(self._about(step.skill) if step.skill else {}),
            **_about_user(step.context),
        }
        return "skillshelf.denied", record["ts_ms"], attributes

    def _about(self, skill: SkillKey) -> dict[str, Any]:
        if skill.path is None and skill.mark is None and not self._content:
            # A name that a model made up, which is content.
            return {}
        path = {"skillshelf.skill.path": skill.path} if self._content else {}
        return {"gen_ai.skill.name": skill.name, "skillshelf.skill.mark": skill.mark, **path}

    def _finished(
        self, record: Mapping[str, Any], source: str, step: TrackedEvent, call: _Call | None
    ) -> "list[ReadableSpan]":
        """Return the span that an event ends."""
        kind, session = record["type"], record["session"]
        if kind == "session_ended":
            entry = self._open.pop((source, session), None)
            return [self._session_span(session, *entry)] if entry else []
        if kind == "skill_catalog_updated":
            return self._catalog_span(record, step)
        if kind in ("tool_ended", "tool_failed") and call is not None and step.call is not None:
            self._calls.pop((source, session, step.call.identity), None)
            return [self._call_span(record, step, call)]
        denied = kind in _DECISIONS and record.get("verdict") == "deny"
        if call is None and (denied or (step.uses and step.skill)):
            event = self._denial(record, step) if denied or not step.skill else self._use(record, step, step.skill)
            name = f"decide {as_text(record.get('tool')) or '?'}" if denied else "use_skill"
            times = record["ts_ms"], record["ts_ms"]
            return [self._span(session, f"{record.get('seq', record['ts_ms'])}", name, times, event[2], [event])]
        return []

    def _call_span(self, record: Mapping[str, Any], step: TrackedEvent, call: _Call) -> "ReadableSpan":
        assert step.call is not None
        failed = as_text(record.get("code")) or "failed" if record["type"] == "tool_failed" else None
        # A name that a model made up is content, too.
        tool = step.call.tool if failed != "unknown_tool" or self._content else "(unknown)"
        skill = step.skill
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": step.call.identity,
            **(self._about(skill) if skill else {}),
            **_about_user(step.context),
            **call.attributes,
        }
        exit_code = record.get("exit_code")
        if step.call.act == "skill_run" and isinstance(exit_code, int):
            attributes["process.exit.code"] = exit_code
        if failed:
            attributes["error.type"] = failed
        if self._content and step.call.query is not None:
            attributes["skillshelf.search.query"] = step.call.query
        times = call.began_ms, record["ts_ms"]
        return self._span(
            record["session"],
            step.call.identity,
            f"execute_tool {tool}",
            times,
            attributes,
            call.events,
            failed=failed,
            after=call.search_id,
        )

    def _catalog_span(self, record: Mapping[str, Any], step: TrackedEvent) -> "list[ReadableSpan]":
        """Return a span with the names of the skills that a session is offered."""
        listing = self._tracker.listing(step.context.listing) or {}
        skills = [skill for keys in listing.values() for skill in keys]
        attributes = {
            "skillshelf.catalog.count": record.get("count"),
            "skillshelf.catalog.skills": [skill.name for skill in skills],
            "skillshelf.catalog.marks": [skill.mark or "" for skill in skills],
            **_about_user(step.context),
        }
        times = record["ts_ms"], record["ts_ms"]
        return [self._span(record["session"], f"catalog {record['ts_ms']}", "skill_catalog", times, attributes, [])]

    def _session_span(
        self, session: str, context: SessionContext, began: int, ended: int, attributes: dict[str, Any]
    ) -> "ReadableSpan":
        return self._span(session, "", "skill_session", (began, ended), {**attributes, **_about_user(context)}, [])

    def _span(
        self,
        session: str,
        identity: str,
        name: str,
        times: tuple[int, int],
        attributes: Mapping[str, Any],
        events: Sequence[tuple[str, int, Mapping[str, Any]]],
        *,
        failed: str | None = None,
        after: str | None = None,
    ) -> "ReadableSpan":
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.trace import Link, Status, StatusCode

        return ReadableSpan(
            _as_unicode(name),
            context=_context(session, identity),
            parent=_context(session, "") if identity else None,
            resource=self._resource,
            attributes=_set({**attributes, "gen_ai.conversation.id": session}),
            events=[Event(kind, _set(about), _nanoseconds(at)) for kind, at, about in events],
            links=[Link(_context(session, after))] if after is not None else [],
            status=Status(StatusCode.ERROR, _as_unicode(failed)) if failed else Status(),
            start_time=_nanoseconds(times[0]),
            end_time=_nanoseconds(max(times)),
            instrumentation_scope=self._scope,
        )


def _about_user(context: SessionContext) -> dict[str, Any]:
    """Return who the session is for; the name of a journal stands for its user where no server knows one."""
    user = context.user
    if not user.name:
        return {}
    return {"skillshelf.user": user.name, "skillshelf.user.kind": user.kind}


def _set(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value which can be sent; a record may hold anything."""
    found = {name: _sendable(value) for name, value in attributes.items()}
    return {name: value for name, value in found.items() if value is not None}


def _sendable(value: object) -> str | int | float | list[str] | None:
    if isinstance(value, str):
        return _as_unicode(value)
    if isinstance(value, list):
        return [_as_unicode(text) for text in value if isinstance(text, str)]
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    return value if isinstance(value, float) else None


def _as_unicode(text: str) -> str:
    """Return a text with escapes for what is no character, such as a byte of a file name."""
    return text.encode("utf-8", "backslashreplace").decode()


def _nanoseconds(ms: int) -> int:
    """Return a time as spans have it, in 64 bits."""
    return min(max(0, ms) * 1_000_000, 2**64 - 1)


def _context(session: str, identity: str) -> Any:
    """Return the ids of a span, which follow from its session and call."""
    from opentelemetry.trace import SpanContext, TraceFlags

    trace = int(digest_of(session.encode("utf-8", "replace"))[:32], 16) or 1
    span = int(digest_of(f"{session} {identity}".encode("utf-8", "replace"))[:16], 16) or 1
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
