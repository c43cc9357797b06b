"""Send a journal to a team server: the lines that it does not have yet, exactly as they are, or reduced.

The server says up to which line it has the journal; nothing about that is kept here. So a push that was stopped at
any moment goes on where it was, and one that is repeated sends nothing.
"""

import gzip
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from skillshelf.core import files
from skillshelf.core.disk_writes import replace_file
from skillshelf.core.http_client import HttpAnswer, HttpClient, HttpRequest, refusal_in, require_found
from skillshelf.core.limits import (
    JOURNAL_BATCH_BYTES,
    JOURNAL_BATCH_LINES,
    JOURNAL_LINE_BYTES,
    JOURNAL_PUSH_TRIES,
    JOURNAL_ROWS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.errors import ConfigurationError, SourceRefused, SourceUnreachable
from skillshelf.journal.file import exact_lines, force_to_disk
from skillshelf.journal.format import digest_of
from skillshelf.journal.parts import base_of
from skillshelf.journal.sent_lines import Content, Reported, SentLine, broken_link, reduced_line, sent_line

__all__ = [
    "FORGOTTEN_THERE",
    "STREAM_FILE",
    "STREAM_VERSION",
    "JournalPush",
    "JournalServer",
    "KnownStream",
    "StreamState",
    "emptied_stream",
    "known_stream",
    "machine_id",
    "push_journal",
    "stream_of",
]

STREAM_FILE: Final = ".stream"
"""The end of the name of the file beside a journal that keeps the id of its stream."""

FORGOTTEN_THERE: Final = "the person of this journal was forgotten on the server, which takes nothing more of it"

_PATH = "/api/v1/journal"
_STREAM_DIGITS = 32
_ANSWER_BYTES = 64 * 1024
_PAGE_BYTES = 16 * 1024 * 1024
_AWAY = frozenset({429, 502, 503, 504})
_FIRST_PAUSE = 0.5
STREAM_VERSION = 1
_MOST_LINES = 2**62
_LINES_AT_ONCE = 1000
_HEAD = re.compile("[0-9a-f]{64}")
_STREAM = "[0-9a-f]{16,64}"


class JournalPush(NamedTuple):
    """The result of a push: the last line that the server has with all before it, and how many were new to it.

    `problem` is why the rest was not sent: the journal was changed, or does not fit to what the server has.
    """

    stream: str
    acknowledged: int | None
    stored: int
    problem: str | None = None
    content: Content = "full"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {name: getattr(self, name) for name in ("stream", "acknowledged", "stored", "problem")}


class StreamState(NamedTuple):
    """The end of a journal at a server: the `seq` and the `sum` of its last line; and how it wants the next ones.

    It takes no more of a journal whose person was `forgotten` there.
    """

    acknowledged: int | None
    head: str | None
    content: Content
    forgotten: bool = False


# The server ---------------------------------------------------------------------------------------


class JournalServer:
    """A team server that takes journals; a request to one that is away is repeated, until `deadline`."""

    def __init__(
        self,
        url: str,
        client: HttpClient,
        token: str,
        *,
        tries: int = JOURNAL_PUSH_TRIES,
        deadline: float | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise SourceRefused("url", "the address of a server has no query")
        self._base = url.rstrip("/").removesuffix(_PATH) + _PATH
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._tries, self._deadline, self._pause = tries, deadline, pause

    def state(self, stream: str) -> StreamState:
        """Return what the server has of a stream."""
        answer = self._asked(HttpRequest(f"{self._base}/streams/{stream}", _ANSWER_BYTES, headers=self._headers))
        found = _object_in(_found(answer))
        head = found.get("head")
        return StreamState(
            _place(found.get("acknowledged")),
            head if isinstance(head, str) and _HEAD.fullmatch(head) else None,
            "digest" if found.get("content") == "digest" else "full",
            found.get("forgotten") is True,
        )

    def send(self, stream: str, machine: str, body: bytes) -> tuple[int | None, int, str | None]:
        """Send a compressed batch; return the last line that the server has now, how many were new, and its complaint.

        A batch whose answer was lost is sent again, and is then not new.
        """
        answer = self._asked(self._post(stream, body, machine=machine))
        if answer.status not in (200, 409, 422):
            _found(answer)
        found = _object_in(answer)
        acknowledged, stored, error = _place(found.get("acknowledged")), _place(found.get("stored")), found.get("error")
        if answer.status == 200 and error is None:
            return acknowledged, stored or 0, None
        message = visible(cut(str(error.get("message")), 500)) if isinstance(error, Mapping) else "no reason given"
        return acknowledged, stored or 0, f"the server refuses these lines: {message}"

    def report(self, stream: str, machine: str, lines: list[bytes], problem: Reported | None) -> bool:
        """Tell the server, once, of a journal that does not fit; return whether it was told.

        It refuses a line that shows the problem, and keeps an alarm; `problem` is what no line shows.
        """
        request = self._post(stream, _body(lines), machine=machine, problem=problem or "")
        try:
            return self._asked(request, tries=1).status in (200, 409, 422)
        except (SourceRefused, SourceUnreachable):
            return False

    def _post(self, stream: str, body: bytes, **values: str) -> HttpRequest:
        headers = {**self._headers, "Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
        query = urlencode({"stream": stream, **{name: value for name, value in values.items() if value}})
        return HttpRequest(f"{self._base}?{query}", _ANSWER_BYTES, "POST", headers, body)

    def lines(self, stream: str) -> Iterator[Mapping[str, Any]]:
        """Yield what the server has of each line of a stream, in their order; it needs the scope `journal:read`."""
        after, rows = -1, JOURNAL_ROWS
        while True:
            query = urlencode({"stream": stream, "limit": rows, **({"after": after} if after >= 0 else {})})
            try:
                page = self._page(f"?{query}")
            except SourceRefused as error:
                # Lines have very different sizes, and one alone always fits.
                if error.rule != "too-large" or rows == 1:
                    raise
                rows = max(rows // 8, 1)
                continue
            yield from _rows_in(page, "lines")
            following = _place(page.get("next"))
            if following is None:
                return
            if following <= after:
                raise SourceUnreachable("the server gives the same page of lines again")
            after = following

    def streams(self) -> Iterator[str]:
        """Yield the id of each stream that the server has; it needs the scope `journal:read`."""
        after = ""
        while True:
            page = self._page(f"/streams?{urlencode({'after': after})}" if after else "/streams")
            for row in _rows_in(page, "streams"):
                if not re.fullmatch(_STREAM, str(row.get("stream"))):
                    raise SourceUnreachable("the server names a stream that has no id")
                yield str(row["stream"])
            following = page.get("next")
            if following is None:
                return
            if not isinstance(following, str) or following <= after:
                raise SourceUnreachable("the server gives the same page of streams again")
            after = following

    def _page(self, path: str) -> Mapping[str, Any]:
        return _object_in(_found(self._asked(HttpRequest(self._base + path, _PAGE_BYTES, headers=self._headers))))

    def require_time(self) -> None:
        """Raise SourceUnreachable after the deadline."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise SourceUnreachable("it takes too long; the next push goes on where this one ended")

    def _asked(self, request: HttpRequest, *, tries: int | None = None) -> HttpAnswer:
        self.require_time()
        seconds = _FIRST_PAUSE
        for left in reversed(range(tries or self._tries)):
            try:
                answer = self._client.send(request)
                if answer.status not in _AWAY:
                    return answer
                told = refusal_in(answer)
                problem = SourceUnreachable(
                    f"{self._client.named.text} answers with status {answer.status}{f': {told}' if told else ''}"
                )
            except SourceUnreachable as error:
                problem = error
            if not left or (self._deadline is not None and time.monotonic() + seconds > self._deadline):
                break
            self._pause(seconds)
            seconds *= 2
        raise problem


def _found(answer: HttpAnswer) -> HttpAnswer:
    return require_found(answer, reason=refusal_in(answer))


def _object_in(answer: HttpAnswer) -> Mapping[str, Any]:
    try:
        found = json.loads(answer.data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SourceUnreachable(f"the server does not answer as a team server does (status {answer.status})")
    return found


def _rows_in(page: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = page.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SourceUnreachable(f"the server does not answer as a team server does: no {name}")
    return rows


def _body(lines: list[bytes]) -> bytes:
    return gzip.compress(b"".join(line + b"\n" for line in lines), 5, mtime=0)


def _place(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_LINES else None


# The journal --------------------------------------------------------------------------------------


def machine_id() -> str:
    """Return a name for this machine that tells nothing about it and stays the same; empty if it has no id."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            data = files.read_file(path, limit=256, links="follow")
        except OSError:
            continue
        if data and data.strip():
            return digest_of(b"skillshelf journal\0" + data.strip())[:16]
    return ""


def stream_of(path: str, first: SentLine, *, keep: bool = True) -> str:
    """Return the id of a journal's stream, and `keep` it in a file beside the journal.

    It is made from the first line, so a copy of a journal has the same id: if both go on, the server sees a fork. Once
    rotation has removed the first line, the kept one counts.
    """
    beside = _stream_file(path)
    made = first.sum[:_STREAM_DIGITS]
    kept = _kept_stream(beside)
    if kept is not None and (first.seq > 0 or kept == made):
        return kept
    # A link is not followed: whoever made it could have any file of the user replaced.
    if not keep or files.kind_at(beside) == "link":
        return made
    try:
        replace_file(beside, json.dumps({"version": STREAM_VERSION, "stream": made}).encode() + b"\n")
    except OSError:
        # In a folder that cannot be written the first line alone counts.
        return made
    return made


def _stream_file(path: str) -> str:
    return base_of(files.real_path(path)) + STREAM_FILE


class KnownStream(NamedTuple):
    """The stream of a journal, what a server has of it, and the `seq` of the journal's first line.

    `file` names the stream. It `is_replaced` if the first line of the journal is not that of the stream.
    """

    id: str
    state: StreamState
    file: str
    first_seq: int
    is_replaced: bool = False

    @property
    def replaced(self) -> str:
        """The text about a file that does not have the last line of the stream, and how to go on."""
        return (
            f"another journal is in the place of the one that was sent: the server has that one up to seq "
            f"{self.state.acknowledged}, with the sum {self.state.head}, and this file does not; {self._go_on}"
        )

    @property
    def gap(self) -> str | None:
        """The text about a journal that begins after the next line that the server wants; None if it does not."""
        acknowledged = self.state.acknowledged
        if acknowledged is None or self.first_seq <= acknowledged + 1:
            return None
        return (
            f"the server has lines up to seq {acknowledged}, and this journal begins with {self.first_seq}: those "
            f"between were removed before they were sent; {self._go_on}"
        )

    @property
    def _go_on(self) -> str:
        return f"to send this one as a new journal, remove {visible(self.file)}"


def known_stream(path: str, first: SentLine, server: JournalServer, *, keep: bool = True) -> KnownStream:
    """Return the stream of a journal, and what a server has of it; `keep` its id beside the journal.

    If another journal was there before, its stream counts as long as the server has it: a file that was replaced must
    not pass for a new one.
    """
    beside = _stream_file(path)
    kept = _kept_stream(beside)
    if kept is not None and first.seq == 0 and kept != first.sum[:_STREAM_DIGITS]:
        state = server.state(kept)
        if state.acknowledged is not None and state.head is not None:
            return KnownStream(kept, state, beside, first.seq, is_replaced=True)
    stream = stream_of(path, first, keep=keep)
    return KnownStream(stream, server.state(stream), beside, first.seq)


def emptied_stream(path: str, server: JournalServer) -> KnownStream | None:
    """Return the stream of a file whose first line cannot be read, or is gone; None if the server has nothing of it."""
    beside = _stream_file(path)
    kept = _kept_stream(beside)
    state = server.state(kept) if kept is not None else None
    if kept is None or state is None or state.acknowledged is None or state.head is None:
        return None
    return KnownStream(kept, state, beside, 0)


def _kept_stream(path: str) -> str | None:
    try:
        data = files.read_file(path, limit=1024, links="never")
        found = json.loads(data or b"")
    except (OSError, ValueError, RecursionError):
        return None
    version = found.get("version") if isinstance(found, dict) else None
    if type(version) is int and version > STREAM_VERSION:
        raise ConfigurationError(
            f"{visible(path)}: version {version} is of a newer skillshelf (this one reads {STREAM_VERSION}; update it)"
        )
    stream = found.get("stream") if isinstance(found, dict) else None
    return stream if isinstance(stream, str) and re.fullmatch(_STREAM, stream) else None


def push_journal(
    path: str,
    server: JournalServer,
    *,
    content: Content = "full",
    machine: str = "",
    batch_lines: int = JOURNAL_BATCH_LINES,
) -> JournalPush:
    """Send the lines of a journal that a server does not have; raise OSError if it cannot be read.

    Lines are sent up to the first that was changed. The server's wish for reduced lines counts before the first one
    is sent. A part stands for its journal: alone it would look as if its end had been cut off.
    """
    path = base_of(path)
    first, _ = _opened(path)
    if not isinstance(first, SentLine):
        emptied = emptied_stream(path, server)
        if emptied is None:
            return JournalPush("", None, 0, first, content)
        return _Push(path, server, emptied, machine, content, batch_lines).run_without_lines(first)
    known = known_stream(path, first, server)
    if known.state.forgotten:
        return JournalPush(known.id, None, 0, FORGOTTEN_THERE, content)
    push = _Push(path, server, known, machine, content, batch_lines)
    # Opened again: what another program appended and sent before the server answered must not look cut off.
    first, lines = _opened(path)
    if not isinstance(first, SentLine):
        return JournalPush(push.stream, None, 0, first, content)
    return push.run(first, _in_time(lines, server))


def _opened(path: str) -> tuple[SentLine | str | None, Iterator[bytes | None]]:
    """Return the first line of a journal, what is wrong with it, or None without one; and all lines."""
    lines = exact_lines(path)
    for opening in lines:
        # An empty line is one that was changed, and not the end.
        first = sent_line(opening) if opening is not None else "it is longer than JOURNAL_LINE_BYTES"
        return f"line 1: {first}" if isinstance(first, str) else first, chain([opening], lines)
    return None, lines


def _in_time(lines: Iterator[bytes | None], server: JournalServer) -> Iterator[bytes | None]:
    """Yield lines until the deadline of the server: only to read a large journal may take longer."""
    for number, line in enumerate(lines):
        if number % _LINES_AT_ONCE == 0:
            server.require_time()
        yield line


class _Misfit(NamedTuple):
    """Why a journal does not fit to what the server has; what to report, and the line that shows it, if one does."""

    problem: str
    reported: Reported | None = None
    line: SentLine | None = None


class _Push:
    """One journal on its way to a server."""

    def __init__(
        self, path: str, server: JournalServer, known: KnownStream, machine: str, content: Content, batch_lines: int
    ) -> None:
        self._path = path
        self._forced: set[str] = set()
        self._server = server
        self._batch_lines = batch_lines
        self._known_stream = known
        self.stream = known.id
        self._machine = machine
        state = known.state
        self._head = state.head
        self._content: Content = "digest" if "digest" in (content, state.content) else "full"
        self._acknowledged = state.acknowledged
        self._changed: int | None = None
        self._stored = 0

    def run(self, first: SentLine, lines: Iterator[bytes | None]) -> JournalPush:
        """Send all lines that the server does not have; also those after a sent line that was changed."""
        before = self._known(first, lines)
        if isinstance(before, _Misfit):
            return self._done(self._reported(before))
        batch: list[bytes] = []
        size, problem = 0, None
        for line in _checked(lines, before, before.seq - first.seq + 1 if before else 0):
            if isinstance(line, str):
                problem = line
                break
            sent = self._form_of(line)
            if batch and (len(batch) >= self._batch_lines or size + len(sent) >= JOURNAL_BATCH_BYTES // 4):
                if refused := self._send(batch):
                    return self._done(refused)
                batch, size = [], 0
            batch.append(sent)
            size += len(sent) + 1
        refused = self._send(batch) if batch else None
        if self._changed is not None and not problem:
            problem = (
                f"line {self._changed}, or the one after it, was changed or moved after it was sent "
                "(run `skillshelf log verify`)"
            )
        if problem and not refused:
            problem = self._reported(_Misfit(problem, "edited"))
        return self._done(refused or problem)

    def run_without_lines(self, problem: str | None) -> JournalPush:
        """Report a journal that has no line any more, or none before the `problem`."""
        misfit = _Misfit(problem, "edited") if problem is not None else _Misfit(self._cut, "cut")
        return self._done(self._reported(misfit))

    @property
    def _cut(self) -> str:
        return f"the end was cut off: the server has lines up to seq {self._acknowledged}, with the sum {self._head}"

    def _form_of(self, line: SentLine) -> bytes:
        return line.data if self._content == "full" else reduced_line(line.data, line.record)

    def _reported(self, misfit: _Misfit) -> str:
        """Tell the server that the journal does not fit, so that it keeps an alarm; return what to tell the user."""
        lines = [self._form_of(misfit.line)] if misfit.line else []
        if self._server.report(self.stream, self._machine, lines, misfit.reported):
            return misfit.problem
        return f"{misfit.problem} (the server could not be told)"

    def _known(self, first: SentLine, lines: Iterator[bytes | None]) -> SentLine | _Misfit | None:
        """Pass the lines that the server has; return the last of them, or why it is not that of the server.

        If only a line before it was changed, what follows still fits.
        """
        acknowledged = self._acknowledged
        if acknowledged is None or first.seq == acknowledged + 1:
            return None
        if gap := self._known_stream._replace(first_seq=first.seq).gap:
            return _Misfit(gap, line=first)
        skipped = acknowledged - first.seq
        number, data, self._changed = _passed(islice(lines, skipped + 1))
        line = sent_line(data) if data is not None else "too long"
        replaced = self._known_stream.replaced if self._known_stream.is_replaced else None
        if isinstance(line, SentLine) and line.seq - first.seq >= number:
            return _Misfit(replaced or f"lines that the server has are missing before line {number}", "edited")
        if number <= skipped:
            return _Misfit(replaced or self._cut, "cut", line if isinstance(line, SentLine) else None)
        problem = (
            f"line {number} is not the line with seq {acknowledged} that the server has: it was changed, or two copies "
            "of this journal both went on"
        )
        if isinstance(line, str) or line.seq != acknowledged:
            return _Misfit(replaced or problem, "edited")
        return line if line.sum == self._head else _Misfit(replaced or problem, line=line)

    def _send(self, batch: list[bytes]) -> str | None:
        """Send a batch; return the complaint of the server."""
        # A machine that loses power must not lose lines that were sent: its journal would be a fork from then on.
        force_to_disk(self._path, self._forced)
        acknowledged, stored, refused = self._server.send(self.stream, self._machine, _body(batch))
        self._stored += min(stored, len(batch))
        last = sent_line(batch[-1])
        sent = last.seq if isinstance(last, SentLine) else -1
        known = -1 if self._acknowledged is None else self._acknowledged
        if acknowledged is not None:
            # Of what the server says beyond these lines nothing counts: another program may have sent more, or it lies.
            self._acknowledged = max(min(acknowledged, sent), known)
        if refused is None and (acknowledged is None or acknowledged < sent):
            return f"the server does not acknowledge the lines that it was sent, the last of which has seq {sent}"
        return refused

    def _done(self, problem: str | None) -> JournalPush:
        return JournalPush(self.stream, self._acknowledged, self._stored, problem, self._content)


def _passed(lines: Iterator[bytes | None]) -> tuple[int, bytes | None, int | None]:
    """Pass lines; return number and bytes of the last, and the number of the first that the next does not continue."""
    number, data, changed = 0, next(lines), None
    for number, following in enumerate(lines, 1):
        if changed is None and not _continues(following, data):
            changed = number
        data = following
    return number + 1, data, changed


def _continues(data: bytes | None, before: bytes | None) -> bool:
    """Return whether a line names the digest of the one before it.

    It is not parsed if it can have no other member of that name: a push passes all lines that were sent.
    """
    if data is None or before is None:
        return False
    digest = digest_of(before)
    if data.count(b'"prev":') == 1:
        return b'"prev":"%s"' % digest.encode() in data
    found = sent_line(data)
    return isinstance(found, SentLine) and found.record["prev"] == digest


def _checked(lines: Iterator[bytes | None], before: SentLine | None, number: int) -> Iterator[SentLine | str]:
    """Yield the lines that follow each other; the problem of the first that does not is the last that is yielded."""
    for place, data in enumerate(lines, number + 1):
        line = sent_line(data) if data is not None else f"longer than JOURNAL_LINE_BYTES ({JOURNAL_LINE_BYTES:,})"
        if isinstance(line, str) or (before and broken_link(line, before.seq, before.digest)):
            why = line if isinstance(line, str) else f"it does not follow seq {before.seq if before else 0}"
            yield f"line {place}: {why} (run `skillshelf log verify`)"
            return
        yield line
        before = line
