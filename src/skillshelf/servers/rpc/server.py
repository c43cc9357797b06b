"""File descriptors to lines and threads: what `rpcserver` is made of, none of it knows the protocol."""

import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

from skillshelf.core.console import note
from skillshelf.core.limits import (
    RPC_ASKING,
    RPC_CONFIRM_SECONDS,
    RPC_END_SECONDS,
    RPC_LINE_BYTES,
    RPC_SESSIONS,
    RPC_WAITING_BYTES,
)
from skillshelf.core.validation import validate
from skillshelf.servers.rpc.messages import (
    INTERNAL,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REFUSED,
    InvalidMessage,
    Request,
    ResponseMessage,
    error_answer,
    line_of,
    parse_message,
    too_long,
)
from skillshelf.servers.rpc.methods import Client, Options, Refused, Runtime
from skillshelf.servers.rpc.schema import METHODS
from skillshelf.session.results import message_text
from skillshelf.session.tools import ToolError
from skillshelf.shelf import open_shelf

__all__ = ["Server", "Workers", "Writer", "read_lines", "rpc"]


_CHUNK = 64 * 1024
# A pipe that is ready to be written takes so much without blocking.
_PIECE = select.PIPE_BUF
_LOOK_SECONDS = 0.2


def read_lines(fd: int, wake: int | None = None) -> Iterator[bytes | None]:
    """Each line without its newline, None for one that is too long; ends with the stream, or when `wake` is readable.

    Of a line that is too long nothing is kept. What follows the last newline is a line too.
    """
    held = bytearray()
    is_long = False
    while (chunk := _next_chunk(fd, wake)) != b"":
        if chunk is None:
            return
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            held += part
            yield None if is_long or len(held) > RPC_LINE_BYTES else bytes(held)
            held.clear()
            is_long = False
        held += rest
        if is_long or len(held) > RPC_LINE_BYTES:
            is_long = True
            held.clear()
    if held or is_long:
        yield None if is_long else bytes(held)


def _next_chunk(fd: int, wake: int | None) -> bytes | None:
    """What can be read now, nothing at the end of the stream; None if the reader is to stop."""
    watched = [fd] if wake is None else [fd, wake]
    try:
        ready, _, _ = select.select(watched, [], [])
        return None if wake in ready else os.read(fd, _CHUNK)
    except OSError:
        # Standard input is closed, or its terminal is gone: the client is.
        return b""


class Writer:
    """Writes whole lines from any thread; a client that is gone, or no longer reads at the end, gets nothing more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._give_up_after: float | None = None
        self.is_broken = False

    def send(self, line: bytes) -> None:
        """Write one line."""
        with self._lock:
            for start in range(0, len(line), _PIECE):
                if not self._has_room():
                    self.is_broken = True
                    return
                self._write(line[start : start + _PIECE])

    def give_up_after(self, seconds: float) -> None:
        """From now on wait no longer than this for a client to read."""
        self._give_up_after = seconds

    def _has_room(self) -> bool:
        since = time.monotonic()
        while not self.is_broken:
            try:
                if select.select([], [self._fd], [], _LOOK_SECONDS)[1]:
                    return True
            except OSError:
                return False
            if self._give_up_after is not None and time.monotonic() - since > self._give_up_after:
                return False
        return False

    def _write(self, piece: bytes) -> None:
        try:
            while piece:
                piece = piece[os.write(self._fd, piece) :]
        except OSError:
            self.is_broken = True


class Workers:
    """Up to `most` threads that do what they are given in its order; with one of them, one after the other."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._undone = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Have a job done; it must not raise."""
        with self._lock:
            self._undone += 1
            if self._undone > len(self._threads) < self._most:
                thread = threading.Thread(target=self._work, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._undone -= 1

    def finish(self) -> None:
        """Let the threads end when all that was given to them is done."""
        for _ in self._threads:
            self._jobs.put(None)

    def has_finished(self, seconds: float) -> bool:
        """Whether all threads end within so many seconds."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)


_AT_ONCE = 4
_REQUEST_BYTES = 1024
"""What a request takes besides its text, about."""

Reply = Callable[[dict[str, Any] | None], None]
"""Takes the answer to a message, or None where there is none."""


class Server:
    """Serves one client on two file descriptors."""

    def __init__(
        self,
        options: Options,
        *,
        read: int,
        write: int,
        wake: int | None = None,
        confirm_seconds: float = RPC_CONFIRM_SECONDS,
        end_seconds: float = RPC_END_SECONDS,
    ) -> None:
        self._read = read
        self._wake = wake
        self._confirm_seconds = confirm_seconds
        self._end_seconds = end_seconds
        self._writer = Writer(write)
        self._runtime = Runtime(options, Client(self._ask, self._tell, note))
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self._opened = 0
        self._asked = 0
        self._questions: dict[str, _ClientRequest] = {}
        self._is_ending = False
        self._is_stopped = False
        self._workers = {"at-once": Workers(_AT_ONCE), "asking": Workers(RPC_ASKING)}
        self._lanes: dict[str, Workers] = {}

    def serve(self) -> None:
        """Answer until the client is gone or a signal comes; then end every session."""
        for line in read_lines(self._read, self._wake):
            if self._writer.is_broken:
                break
            if line is None or line.strip():
                self._take(line)
        self._end()

    # What comes in --------------------------------------------------------------------------------

    def _take(self, line: bytes | None) -> None:
        incoming = too_long() if line is None else parse_message(line)
        size = len(line or b"") // len(incoming.messages) + _REQUEST_BYTES
        if incoming.form == "single":
            self._handle(incoming.messages[0], size, self._send)
            return
        batch = _Batch(len(incoming.messages), self._send)
        for place, message in enumerate(incoming.messages):
            self._handle(message, size, batch.reply_for(place))

    def _handle(self, message: Request | ResponseMessage | InvalidMessage, size: int, reply: Reply) -> None:
        if isinstance(message, InvalidMessage):
            reply(error_answer(*message))
        elif isinstance(message, ResponseMessage):
            self._heard(message)
            reply(None)
        else:
            answered = reply if message.is_answered else lambda answer: reply(None)
            wrong = self._placed(message, size, answered)
            if wrong is not None:
                answered(error_answer(message.id, *wrong))

    def _placed(self, request: Request, size: int, reply: Reply) -> tuple[Any, ...] | None:
        """Give a request to the thread that does it; returns the error if it cannot be done."""
        method = METHODS.get(request.method)
        if method is None:
            known = ", ".join(METHODS)
            return METHOD_NOT_FOUND, f"no method {message_text(request.method)[:100]!r}; there are: {known}"
        if isinstance(request.params, list):
            return _refusal(ToolError("invalid_params", "parameters are given by name, as an object"))
        if wrong := validate(request.params, method.params):
            return _refusal(ToolError("invalid_params", message_text(str(wrong))))
        if self._waiting_bytes + size > RPC_WAITING_BYTES:
            return _refusal(ToolError("too_large", "too many requests wait for their answers (RPC_WAITING_BYTES)"))
        name = request.params.get("session")
        # Together with `_left`: a job given to a lane that has ended would never be done.
        with self._lock:
            if method.turn == "opening":
                if len(self._lanes) >= RPC_SESSIONS:
                    return _refusal(
                        ToolError("too_large", f"{RPC_SESSIONS} sessions are open (RPC_SESSIONS); close one")
                    )
                self._opened += 1
                name = f"s{self._opened}"
                self._lanes[name] = Workers(1)
            workers = self._lanes.get(name) if name is not None else self._workers[method.turn]
            if workers is None:
                return _refusal(ToolError("not_found", f"no session {message_text(name)[:100]!r}; it is not open"))
            self._waiting_bytes += size
            workers.submit(lambda: self._run(request, name, size, reply))
        return None

    def _run(self, request: Request, name: str | None, size: int, reply: Reply) -> None:
        """Do a request and answer it; the outermost frame of a thread."""
        answer: dict[str, Any] | None = None
        try:
            if not self._is_stopped:
                result = self._runtime.run(request.method, request.params, name)
                answer = {"jsonrpc": "2.0", "id": request.id, "result": result}
        except Refused as refused:
            answer = error_answer(request.id, *_refusal(refused.error))
        except OSError as error:
            answer = error_answer(
                request.id, *_refusal(ToolError("failed", message_text(f"the machine failed: {error}")))
            )
        except Exception as error:
            note(f"this is a mistake in skillshelf, please report it: {type(error).__name__}: {error}")
            answer = error_answer(request.id, INTERNAL, f"a mistake in skillshelf: {type(error).__name__}")
        self._left(name, size)
        reply(answer)

    def _left(self, name: str | None, size: int) -> None:
        """A request is done; its lane ends with the session, or where none could be opened."""
        with self._lock:
            self._waiting_bytes -= size
            if name is not None and name not in self._runtime.sessions and (lane := self._lanes.pop(name, None)):
                lane.finish()

    # What goes out --------------------------------------------------------------------------------

    def _send(self, value: Any) -> None:
        """Write a message, if there is one."""
        if value is not None:
            self._writer.send(line_of(value))

    def _tell(self, params: dict[str, Any]) -> None:
        self._send({"jsonrpc": "2.0", "method": "event", "params": params})

    def _ask(self, session: str, tool: str, name: str, reason: str) -> bool | Literal["remember"]:
        """What the client's user says; no answer in time, or ever, means no."""
        question = _ClientRequest()
        with self._lock:
            if self._is_ending:
                return False
            self._asked += 1
            id_ = f"confirm-{self._asked}"
            self._questions[id_] = question
        params = {"session": session, "tool": tool, "name": name, "reason": reason}
        self._send({"jsonrpc": "2.0", "id": id_, "method": "confirm", "params": params})
        question.is_answered.wait(self._confirm_seconds)
        with self._lock:
            self._questions.pop(id_, None)
        if question.answer == "remember":
            return "remember"
        return question.answer is True

    def _heard(self, answer: ResponseMessage) -> None:
        """Hand an answer to who asked; one that nobody waits for any more is dropped."""
        question = self._questions.get(answer.id) if isinstance(answer.id, str) else None
        if question is not None:
            question.answer = answer.result
            question.is_answered.set()

    # The end --------------------------------------------------------------------------------------

    def _end(self) -> None:
        """End every session. At the end of the input what was asked for is still done and answered; after a signal,
        or when nobody can read the answers, only what runs already, for a while."""
        with self._lock:
            self._is_ending = True
            self._is_stopped = self._writer.is_broken or self._is_woken()
            questions, lanes = list(self._questions.values()), dict(self._lanes)
        for question in questions:
            question.is_answered.set()
        for name, lane in lanes.items():
            lane.submit(partial(self._close, name))
        everybody = [*self._workers.values(), *lanes.values()]
        for workers in everybody:
            workers.finish()
        until: float | None = None
        while not all(workers.has_finished(_LOOK_SECONDS / len(everybody)) for workers in everybody):
            if until is None and (self._writer.is_broken or self._is_woken()):
                self._is_stopped = True
                self._writer.give_up_after(self._end_seconds)
                until = time.monotonic() + self._end_seconds
            elif until is not None and time.monotonic() > until:
                note("a request was still running when the server ended; its session has no end in the journal")
                return

    def _is_woken(self) -> bool:
        return self._wake is not None and bool(select.select([self._wake], [], [], 0)[0])

    def _close(self, name: str) -> None:
        if name in self._runtime.sessions:
            try:
                self._runtime.close(name)
            except Exception as error:
                note(f"session {name} did not end well: {type(error).__name__}: {error}")


class _ClientRequest:
    """What a client was asked and has not answered yet."""

    def __init__(self) -> None:
        self.is_answered = threading.Event()
        self.answer: Any = False


class _Batch:
    """Collects the answers of a batch, which are sent together in the order of its requests."""

    def __init__(self, count: int, send: Callable[[Any], None]) -> None:
        self._left = count
        self._answers: list[dict[str, Any] | None] = [None] * count
        self._send = send
        self._lock = threading.Lock()

    def reply_for(self, place: int) -> Reply:
        """Where the answer to one of its messages goes."""

        def reply(answer: dict[str, Any] | None) -> None:
            with self._lock:
                self._answers[place] = answer
                self._left -= 1
                is_last = self._left == 0
            if is_last:
                self._send([answer for answer in self._answers if answer is not None] or None)

        return reply


def _refusal(error: ToolError) -> tuple[int, str, dict[str, Any]]:
    code = INVALID_PARAMS if error.code == "invalid_params" else REFUSED
    return code, error.message, {"code": error.code, "candidates": list(error.candidates)}


# The command --------------------------------------------------------------------------------------


def rpc(values: Mapping[str, Any]) -> int:
    """Serve the client on standard input and output until it is gone, or a signal comes."""
    options = Options(
        cwd=os.path.abspath(values["cwd"] or os.getcwd()),
        profile=values["profile"],
        home=values["home"],
        config=os.path.abspath(values["config"]) if values["config"] else None,
        use_cache=not values["no_cache"],
        trust="all" if values["trust"] else "ask",
        journal=os.path.abspath(values["journal"]) if values["journal"] else None,
        keep=values["keep"],
    )
    # What is wrong with the folder, the profile or the configuration is said before anybody is served.
    open_shelf(options.cwd, options.profile, home=options.home, config=options.config, trust=options.trust)
    write = _take_standard_output()
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: None)
    Server(options, read=0, write=write, wake=wake).serve()
    return 0


def _take_standard_output() -> int:
    """A descriptor for the messages alone; whatever else is printed from now on goes to standard error."""
    write = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return write
