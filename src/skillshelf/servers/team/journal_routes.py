"""The routes about journals: machines send lines, and people with the scope read sessions, lines, alarms and use."""

from collections.abc import Mapping
from typing import Any, get_args

from skillshelf.core.json_types import (
    TeamAlarmsForm,
    TeamJournalLinesForm,
    TeamJournalSessionsForm,
    TeamReceiptForm,
    TeamStreamsForm,
    TeamStreamStateForm,
    TeamUsageForm,
)
from skillshelf.core.limits import JOURNAL_BATCH_BYTES, JOURNAL_ROWS
from skillshelf.errors import ConfigurationError, PermissionDenied, ResourceNotFound
from skillshelf.journal.sent_lines import Reported
from skillshelf.servers.team.journal_intake import (
    FORGOTTEN,
    MACHINES,
    checked_stream,
    demanded_content,
    head_of,
    lines_in,
    take,
)
from skillshelf.servers.team.journal_records import (
    UsageView,
    alarms,
    journal_lines,
    journal_sessions,
    streams,
    usage,
)
from skillshelf.servers.team.journal_rows import stored_text
from skillshelf.servers.team.routes import Parameter, TeamAnswer, TeamRequest, TeamRoute, json_answer
from skillshelf.servers.team.values import JOURNAL_READ, JOURNAL_WRITE, READ

__all__ = ["JOURNAL_PATH", "journal_routes"]

JOURNAL_PATH = "/api/v1/journal"
_MOST = 2**63 - 1
_REPORTS: Mapping[str, Reported] = {name: name for name in get_args(Reported)}
_VIEWS: Mapping[str, UsageView] = {"skill": "skill", "day": "day", "person": "person"}


def push_lines(request: TeamRequest) -> TeamAnswer:
    """Take a batch of lines."""
    encoding = request.headers.get("content-encoding", "")
    if encoding.strip().lower() not in ("", "identity", "gzip"):
        raise ConfigurationError("a batch is plain or compressed with gzip")
    lines = lines_in(request.body, encoding)
    machine = stored_text(request.query.get("machine", ""))
    reported = request.query.get("problem")
    if reported is not None and reported not in _REPORTS:
        raise ConfigurationError(f"problem takes one of {', '.join(_REPORTS)}")
    receipt = take(
        request.services.database,
        request.caller,
        request.query.get("stream", ""),
        lines,
        machine=machine,
        reported=_REPORTS[reported] if reported else None,
    )
    metrics = request.services.metrics
    metrics.add("skillshelf_journal_lines_total", receipt.stored)
    if kind := receipt.problem or reported:
        metrics.add("skillshelf_journal_refused_total", kind=kind)
    return json_answer(receipt.to_dict(), receipt.status)


def show_stream(request: TeamRequest) -> TeamAnswer:
    """Give the head of a stream; one of somebody else looks as if it did not exist, unless journals may be read.

    That of a person who was forgotten says so to everybody who knows its id: their machine must send nothing more.
    """
    stream, caller = checked_stream(request.parts["stream"]), request.caller
    with request.services.database.transaction(caller.tenant, readonly=True) as transaction:
        head, content = head_of(transaction, stream), demanded_content(transaction)
    is_own = head is not None and head.origin == MACHINES and head.subject == caller.subject
    is_forgotten = head is not None and head.origin == FORGOTTEN
    shown = head if is_own or caller.may(JOURNAL_READ) else None
    found: TeamStreamStateForm = {
        "stream": stream,
        "acknowledged": shown.seq if shown else None,
        "head": shown.sum if shown else None,
        "content": content,
        "forgotten": is_forgotten,
    }
    return json_answer(found)


def list_streams(request: TeamRequest) -> TeamAnswer:
    """Give the journals of the tenant."""
    after = _text(request, "after")
    with request.services.database.transaction(request.caller.tenant, readonly=True) as transaction:
        found = streams(transaction, subject=_text(request, "subject"), after=after)
    return json_answer({"streams": found, "next": found[-1]["stream"] if len(found) == JOURNAL_ROWS else None})


def list_lines(request: TeamRequest) -> TeamAnswer:
    """Give the lines of a stream; without one, the streams."""
    if "stream" not in request.query:
        return list_streams(request)
    stream = checked_stream(request.query.get("stream", ""))
    after = _number(request, "after")
    with request.services.database.transaction(request.caller.tenant, readonly=True) as transaction:
        if head_of(transaction, stream) is None:
            raise ResourceNotFound(stream)
        found = journal_lines(
            transaction,
            stream,
            session=_text(request, "session"),
            after=-1 if after is None else after,
            limit=_limit(request),
        )
    return json_answer({"stream": stream, "lines": found.lines, "next": found.next})


def list_sessions(request: TeamRequest) -> TeamAnswer:
    """Give the sessions, the latest first."""
    wanted: dict[str, Any] = {name: _text(request, name) for name in ("subject", "client", "stream")}
    wanted |= {name: _number(request, name) for name in ("since", "until")}
    limit = _limit(request)
    with request.services.database.transaction(request.caller.tenant, readonly=True) as transaction:
        found = journal_sessions(transaction, **wanted, after=_session_after(request), limit=limit)
    last = found[-1] if len(found) == limit else None
    following = f"{last['latest_ms']}.{last['stream']}.{last['session']}" if last else None
    return json_answer({"sessions": found, "next": following})


def _session_after(request: TeamRequest) -> tuple[int, str, str] | None:
    """Return the time of the latest event, the stream and the id of the session that `next` of a page names."""
    given = request.query.get("after")
    if given is None:
        return None
    latest, _, rest = given.partition(".")
    stream, _, session = rest.partition(".")
    if not _is_number(latest):
        raise ConfigurationError("after takes `next` of a page")
    return int(latest), stored_text(stream), stored_text(session)


def list_alarms(request: TeamRequest) -> TeamAnswer:
    """Give the alarms, the latest first."""
    limit = _limit(request)
    with request.services.database.transaction(request.caller.tenant, readonly=True) as transaction:
        found = alarms(
            transaction,
            stream=_text(request, "stream"),
            kind=_text(request, "kind"),
            after=_alarm_after(request),
            limit=limit,
        )
    last = found[-1] if len(found) == limit else None
    return json_answer({"alarms": found, "next": f"{last['at_ms']}.{last['id']}" if last else None})


def _alarm_after(request: TeamRequest) -> tuple[int, str] | None:
    """Return the time and id of the alarm that `next` of a page names."""
    given = _text(request, "after")
    if given is None:
        return None
    at, _, name = given.partition(".")
    if not _is_number(at):
        raise ConfigurationError("after takes `next` of a page")
    return int(at), name


def show_usage(request: TeamRequest) -> TeamAnswer:
    """Give the use of skills, from the counts of each day.

    Whoever may not read journals is told how much each skill that they see is used, and nothing about people.
    """
    by, names = request.query.get("by", "skill"), None
    if by not in _VIEWS:
        raise ConfigurationError(f"by takes one of {', '.join(_VIEWS)}")
    if not request.caller.may(JOURNAL_READ):
        if by != "skill":
            raise PermissionDenied(f"the use by {by} needs the scope {JOURNAL_READ}")
        names = {skill.name for skill in request.services.catalogs.of(request.caller).visible}
    options: dict[str, Any] = {name: _number(request, name) for name in ("since", "until")}
    start, limit = _number(request, "after") or 0, _limit(request)
    with request.services.database.transaction(request.caller.tenant, readonly=True) as transaction:
        found = usage(
            transaction,
            by=_VIEWS[by],
            skill=_text(request, "skill"),
            names=names,
            limit=limit,
            start=start,
            **options,
        )
    return json_answer({"by": by, "usage": found, "next": start + limit if len(found) == limit else None})


def _text(request: TeamRequest, name: str) -> str | None:
    given = request.query.get(name)
    return stored_text(given) if given is not None else None


def _number(request: TeamRequest, name: str) -> int | None:
    given = request.query.get(name)
    if given is None:
        return None
    if not _is_number(given):
        raise ConfigurationError(f"{name} takes a whole number")
    return int(given)


def _limit(request: TeamRequest) -> int:
    return min(_number(request, "limit") or JOURNAL_ROWS, JOURNAL_ROWS)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= _MOST


_LIMIT = Parameter("limit", f"rows, at most {JOURNAL_ROWS}", kind="integer")
_STREAM = Parameter("stream", "the id of a journal, 16 to 64 hex digits")
_NDJSON = {"application/x-ndjson": {"schema": {"type": "string"}}}


def _times(what: str) -> tuple[Parameter, ...]:
    return (
        Parameter("since", f"from this {what} on", kind="integer"),
        Parameter("until", f"before this {what}", kind="integer"),
    )


def journal_routes() -> list[TeamRoute]:
    """Return the routes about journals and use."""
    return [
        TeamRoute(
            "POST",
            JOURNAL_PATH,
            JOURNAL_WRITE,
            "send lines of a journal, exactly as they are, plain or with gzip",
            push_lines,
            parameters=(
                _STREAM._replace(required=True),
                Parameter("machine", "a name that stands for the machine"),
                Parameter("problem", "cut or edited: what the machine found in its journal, which is an alarm"),
            ),
            body_bytes=JOURNAL_BATCH_BYTES,
            gives=TeamReceiptForm,
            takes=_NDJSON,
        ),
        TeamRoute(
            "GET",
            JOURNAL_PATH,
            JOURNAL_READ,
            "read lines of a journal; without `stream`, list the journals",
            list_lines,
            parameters=(
                _STREAM,
                Parameter("session", "only lines of this session"),
                Parameter("after", "only lines after this seq", kind="integer"),
                _LIMIT,
            ),
            gives=TeamJournalLinesForm | TeamStreamsForm,
        ),
        TeamRoute(
            "GET",
            f"{JOURNAL_PATH}/streams",
            JOURNAL_READ,
            "list the journals",
            list_streams,
            parameters=(Parameter("subject", "only those of this subject"), Parameter("after", "`next` of a page")),
            gives=TeamStreamsForm,
        ),
        TeamRoute(
            "GET",
            f"{JOURNAL_PATH}/streams/{{stream}}",
            f"{JOURNAL_WRITE} {JOURNAL_READ}",
            "show the last line of a journal that is stored, and how the server wants the next ones",
            show_stream,
            parameters=(_STREAM._replace(place="path"),),
            gives=TeamStreamStateForm,
        ),
        TeamRoute(
            "GET",
            f"{JOURNAL_PATH}/sessions",
            JOURNAL_READ,
            "list sessions, the latest first",
            list_sessions,
            parameters=(
                Parameter("subject", "only sessions of this subject"),
                Parameter("client", "only sessions of this client program"),
                _STREAM,
                *_times("time in milliseconds"),
                Parameter("after", "`next` of a page"),
                _LIMIT,
            ),
            gives=TeamJournalSessionsForm,
        ),
        TeamRoute(
            "GET",
            f"{JOURNAL_PATH}/alarms",
            JOURNAL_READ,
            "list journals that do not fit together, the latest first",
            list_alarms,
            parameters=(
                _STREAM,
                Parameter("kind", "fork, gap, cut, edited, subject or owner"),
                Parameter("after", "`next` of a page"),
                _LIMIT,
            ),
            gives=TeamAlarmsForm,
        ),
        TeamRoute(
            "GET",
            "/api/v1/usage",
            f"{READ} {JOURNAL_READ}",
            "count the use of skills; by day or person it needs the scope journal:read",
            show_usage,
            parameters=(
                Parameter("by", "skill, day or person"),
                Parameter("skill", "only this skill"),
                *_times("day, such as 20261117"),
                Parameter("after", "`next` of a page", kind="integer"),
                _LIMIT,
            ),
            gives=TeamUsageForm,
        ),
    ]
