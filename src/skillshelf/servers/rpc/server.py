"""Serve JSON-RPC on two file descriptors: read lines, run requests in threads, write responses."""

import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from skillshelf.core.console import note
from skillshelf.core.limits import (
    RPC_ASKING,
    RPC_CONFIRM_SECONDS,
    RPC_END_SECONDS,
    RPC_LINE_BYTES,
    RPC_SESSIONS,
    RPC_WAIT_SECONDS,
    RPC_WAITING_BYTES,
)
from skillshelf.core.validation import validate
from skillshelf.journal.parts import rotation_of
from skillshelf.servers.rpc.messages import (
    INTERNAL,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REFUSED,
    ClientResponse,
    InvalidMessage,
    Message,
    Request,
    error_response,
    line_of,
    parse_message,
    too_long,
)
from skillshelf.servers.rpc.methods import METHODS, run_method
from skillshelf.servers.rpc.runtime import ClientCallbacks, Options, Refused, Runtime
from skillshelf.session.recorder import recording_options
from skillshelf.session.results import message_text
from skillshelf.session.system_rules import require_usable
from skillshelf.shelf import open_shelf

__all__ = ["Server", "Workers", "Writer", "read_lines", "rpc"]

_CHUNK = 64 * 1024
# A pipe that is ready for writing takes this many bytes without blocking.
_PIECE = select.PIPE_BUF
_POLL_SECONDS = 0.2


def read_lines(fd: int, wake: int | None = None) -> Iterator[bytes | None]:
    """Yield each line without its newline, or None for one that is too long, of which nothing is kept.

    The text after the last newline is a line too. Ends with the stream, or when `wake` is readable.
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
    """Return the next bytes, nothing at the end of the stream, or None if the reader is to stop."""
    watched = [fd] if wake is None else [fd, wake]
    try:
        ready, _, _ = select.select(watched, [], [])
        return None if wake in ready else os.read(fd, _CHUNK)
    except OSError:
        # Standard input is closed, or its terminal has gone: so has the client.
        return b""


class Writer:
    """Writes whole lines from any thread, until the client is gone or no longer reads at the end."""

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
        """From now on wait at most this long for a client to read."""
        self._give_up_after = seconds

    def _has_room(self) -> bool:
        since = time.monotonic()
        while not self.is_broken:
            try:
                if select.select([], [self._fd], [], _POLL_SECONDS)[1]:
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
    """Up to `most` threads that run jobs in their order; a single thread runs them one after the other."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._undone = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Queue a job, which must not raise."""
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
        """Let the threads end after the jobs that are queued."""
        for _ in self._threads:
            self._jobs.put(None)

    def has_finished(self, seconds: float) -> bool:
        """Wait up to `seconds` for the threads; return True if all have ended."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)


_SHARED_THREADS = 4
_REQUEST_BYTES = 1024
"""The approximate size of a request in memory besides its text."""

Reply = Callable[[dict[str, Any] | None], None]
"""Takes the response to a message, or None if there is none."""


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
        most_sessions: int = RPC_SESSIONS,
        most_waiting_bytes: int = RPC_WAITING_BYTES,
        wait_seconds: float = RPC_WAIT_SECONDS,
    ) -> None:
        self._read = read
        self._wake = wake
        self._confirm_seconds = confirm_seconds
        self._end_seconds = end_seconds
        self._most_sessions = most_sessions
        self._most_waiting_bytes = most_waiting_bytes
        self._wait_seconds = wait_seconds
        self._writer = Writer(write)
        self._runtime = Runtime(options, ClientCallbacks(self._confirm, self._send_event, note))
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._waiting_bytes = 0
        self._opened = 0
        self._confirms = 0
        self._open_confirms: dict[str, _PendingConfirm] = {}
        self._is_ending = False
        self._is_stopped = False
        self._shared_workers = {"shared": Workers(_SHARED_THREADS), "confirming": Workers(RPC_ASKING)}
        self._session_workers: dict[str, Workers] = {}

    def serve(self) -> None:
        """Answer until the client is gone or a signal comes; then end every session."""
        for line in read_lines(self._read, self._wake):
            if self._writer.is_broken:
                break
            if line is None or line.strip():
                self._receive(line)
        self._end()

    # Incoming messages ----------------------------------------------------------------------------

    def _receive(self, line: bytes | None) -> None:
        incoming = too_long() if line is None else parse_message(line)
        size = len(line or b"") // len(incoming.messages) + _REQUEST_BYTES
        if incoming.form == "single":
            self._handle(incoming.messages[0], size, self._send)
            return
        batch = _Batch(len(incoming.messages), self._send)
        for index, message in enumerate(incoming.messages):
            self._handle(message, size, batch.reply_for(index))

    def _handle(self, message: Message, size: int, reply: Reply) -> None:
        if isinstance(message, InvalidMessage):
            reply(error_response(*message))
        elif isinstance(message, ClientResponse):
            # A response that comes too late, or to no request, is dropped.
            confirm = self._open_confirms.get(message.id) if isinstance(message.id, str) else None
            if confirm is not None:
                confirm.answer = message.result
                confirm.is_answered.set()
            reply(None)
        else:
            respond = reply if message.has_id else lambda response: reply(None)
            try:
                self._dispatch(message, size, respond)
            except _RpcError as error:
                respond(error_response(message.id, *error.args))

    def _dispatch(self, request: Request, size: int, reply: Reply) -> None:
        """Queue a request for the threads that run it, or raise `_RpcError`."""
        method = METHODS.get(request.method)
        if method is None:
            known = ", ".join(METHODS)
            raise _RpcError(METHOD_NOT_FOUND, f"unknown method {message_text(request.method)[:100]!r} (known: {known})")
        if isinstance(request.params, list):
            raise _refusal("invalid_params", "params must be an object with named members")
        if wrong := validate(request.params, method.params):
            raise _refusal("invalid_params", message_text(str(wrong)))
        if not self._has_room(size):
            raise _refusal("too_large", "too many requests are waiting (RPC_WAITING_BYTES)")
        name = request.params.get("session")
        # Under the same lock as `_finish`: a job for workers that have ended would never run.
        with self._lock:
            if method.queue == "new-session":
                if len(self._session_workers) >= self._most_sessions:
                    raise _refusal("too_large", f"{self._most_sessions} sessions are open (RPC_SESSIONS); close one")
                self._opened += 1
                name = f"s{self._opened}"
                self._session_workers[name] = Workers(1)
            workers = self._session_workers.get(name) if name is not None else self._shared_workers[method.queue]
            if workers is None:
                raise _refusal("not_found", f"no session {message_text(name)[:100]!r}; it is not open")
            self._waiting_bytes += size
            workers.submit(lambda: self._run(request, name, size, reply))

    def _has_room(self, size: int) -> bool:
        """Wait until other requests have been answered, and return True if there is room for one more.

        Nothing is read meanwhile, so a client that sends faster than it is served waits, too. But an answer to
        `confirm` must be read, or nothing would go on.
        """
        until = time.monotonic() + self._wait_seconds
        with self._room:
            while self._waiting_bytes + size > self._most_waiting_bytes:
                cannot_come = size > self._most_waiting_bytes or self._open_confirms or self._must_stop()
                if cannot_come or time.monotonic() > until:
                    return False
                self._room.wait(_POLL_SECONDS)
        return True

    def _run(self, request: Request, name: str | None, size: int, reply: Reply) -> None:
        """Run a request and reply; the outermost frame of a thread."""
        response: dict[str, Any] | None = None
        try:
            if not self._is_stopped:
                result = run_method(request.method, request.params, self._runtime, name)
                response = {"jsonrpc": "2.0", "id": request.id, "result": result}
        except Refused as refused:
            response = error_response(request.id, *_refusal(*refused.error).args)
        except OSError as error:
            response = error_response(request.id, *_refusal("failed", message_text(f"system error: {error}")).args)
        except Exception as error:
            note(f"internal error in skillshelf, please report it: {type(error).__name__}: {error}")
            response = error_response(request.id, INTERNAL, f"internal error in skillshelf: {type(error).__name__}")
        self._finish(name, size)
        reply(response)

    def _finish(self, name: str | None, size: int) -> None:
        """Release the memory of a request; the workers of a session that is closed or could not be opened end."""
        with self._lock:
            self._waiting_bytes -= size
            self._room.notify()
            if name not in self._runtime.sessions and (workers := self._session_workers.pop(name or "", None)):
                workers.finish()

    # Outgoing messages ----------------------------------------------------------------------------

    def _send(self, value: Any) -> None:
        if value is not None:
            self._writer.send(line_of(value))

    def _send_event(self, params: dict[str, Any]) -> None:
        self._send({"jsonrpc": "2.0", "method": "event", "params": params})

    def _confirm(self, session: str, tool: str, name: str, reason: str) -> bool | Literal["remember"]:
        """Return the answer of the client's user; no answer in time means no."""
        confirm = _PendingConfirm()
        with self._lock:
            if self._is_ending:
                return False
            self._confirms += 1
            id_ = f"confirm-{self._confirms}"
            self._open_confirms[id_] = confirm
        params = {"session": session, "tool": tool, "name": name, "reason": reason}
        self._send({"jsonrpc": "2.0", "id": id_, "method": "confirm", "params": params})
        confirm.is_answered.wait(self._confirm_seconds)
        with self._lock:
            self._open_confirms.pop(id_, None)
        return "remember" if confirm.answer == "remember" else confirm.answer is True

    # The end --------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Close every session.

        At the end of the input, waiting requests are still run and answered. After a signal, or when the client no
        longer reads, only requests that are running are finished, within `end_seconds`.
        """
        with self._lock:
            self._is_ending = True
            self._is_stopped = self._must_stop()
            confirms, session_workers = list(self._open_confirms.values()), dict(self._session_workers)
        for confirm in confirms:
            confirm.is_answered.set()
        for name, workers in session_workers.items():
            workers.submit(partial(self._close, name))
        all_workers = [*self._shared_workers.values(), *session_workers.values()]
        for workers in all_workers:
            workers.finish()
        until: float | None = None
        while not all(workers.has_finished(_POLL_SECONDS / len(all_workers)) for workers in all_workers):
            if until is None and self._must_stop():
                self._is_stopped = True
                self._writer.give_up_after(self._end_seconds)
                until = time.monotonic() + self._end_seconds
            elif until is not None and time.monotonic() > until:
                note("a request was still running when the server ended; the journal has no end of its session")
                return

    def _must_stop(self) -> bool:
        """Return True if the client no longer reads, or a signal came."""
        return self._writer.is_broken or (self._wake is not None and bool(select.select([self._wake], [], [], 0)[0]))

    def _close(self, name: str) -> None:
        if name in self._runtime.sessions:
            try:
                self._runtime.close(name)
            except Exception as error:
                note(f"session {name} could not be closed: {type(error).__name__}: {error}")


class _PendingConfirm:
    """A `confirm` request that the client has not answered yet."""

    def __init__(self) -> None:
        self.is_answered = threading.Event()
        self.answer: Any = False


class _Batch:
    """Collects the responses to a batch, which are sent together in the order of its requests."""

    def __init__(self, count: int, send: Callable[[Any], None]) -> None:
        self._missing = count
        self._responses: list[dict[str, Any] | None] = [None] * count
        self._send = send
        self._lock = threading.Lock()

    def reply_for(self, index: int) -> Reply:
        """Return the callback that takes the response to one of the messages."""

        def reply(response: dict[str, Any] | None) -> None:
            with self._lock:
                self._responses[index] = response
                self._missing -= 1
                is_last = self._missing == 0
            if is_last:
                self._send([response for response in self._responses if response is not None] or None)

        return reply


class _RpcError(Exception):
    """An error to return: its code, message and data."""


def _refusal(code: str, message: str, candidates: Sequence[str] = ()) -> _RpcError:
    number = INVALID_PARAMS if code == "invalid_params" else REFUSED
    return _RpcError(number, message, {"code": code, "candidates": list(candidates)})


# The command --------------------------------------------------------------------------------------


def rpc(values: Mapping[str, Any]) -> int:
    """Serve the client on standard input and output until it is gone or a signal comes."""
    recorded = recording_options(values)
    options = Options(
        cwd=os.path.abspath(values["cwd"] or os.getcwd()),
        profile=values["profile"],
        home=values["home"],
        config=os.path.abspath(values["config"]) if values["config"] else None,
        use_cache=not values["no_cache"],
        trust="all" if values["trust"] else "ask",
        journal=recorded["journal"],
        keep=recorded["keep"],
        rotate=rotation_of(recorded["rotate"]),
        otlp=recorded["otlp"],
    )
    # A wrong folder, profile or configuration is reported before the first request.
    shelf = open_shelf(options.cwd, options.profile, home=options.home, config=options.config, trust=options.trust)
    require_usable(shelf.settings.system)
    write = _take_standard_output()
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: None)
    try:
        Server(options, read=0, write=write, wake=wake).serve()
    finally:
        if options.otlp is not None:
            options.otlp.close()
            if options.otlp.problem:
                note(options.otlp.problem)
    return 0


def _take_standard_output() -> int:
    """Return a descriptor for messages alone; everything else printed from now on goes to standard error."""
    write = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return write
