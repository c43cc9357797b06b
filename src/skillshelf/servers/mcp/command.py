"""Run the `mcp` command: answer a client at once, and import the SDK of the protocol behind the first answers."""

import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any

from skillshelf.core.console import note
from skillshelf.core.disk_writes import open_to_append
from skillshelf.core.limits import REQUEST_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.first_messages import Opening
from skillshelf.servers.mcp.listings import Listings
from skillshelf.servers.mcp.skills import PublishedSkills
from skillshelf.session.recorder import recording_options
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from skillshelf.journal.otlp import EventExporter
    from skillshelf.servers.mcp.event_loop import Run
    from skillshelf.servers.mcp.server import SkillServer

__all__ = ["UnansweredInput", "answer_opening", "require_extra", "serve"]

_BLOCK = 1 << 16
_PAUSE_SECONDS = 0.2
_EXIT_SECONDS = 0.5
_EXTRA = ("mcp", "mcp_types", "anyio", "pydantic", "pydantic_core", "watchfiles")
_INSTALL = "mcp needs the extra mcp: run pip install 'skillshelf[mcp]'"
# In parts, so that a message that comes meanwhile does not wait for all of it.
_PARTS = ("pydantic", "mcp_types", "mcp_types.methods", "mcp", "skillshelf.servers.mcp.event_loop")


def require_extra() -> None:
    """Raise `ConfigurationError` if a package of the extra `mcp` is missing; nothing is imported."""
    if not all(find_spec(package) for package in _EXTRA):
        raise ConfigurationError(_INSTALL)


def serve(shelf: Shelf, values: Mapping[str, Any]) -> None:
    """Serve a shelf with the options of the command line, until the client leaves or a signal comes."""
    over_http = bool(values["http"])
    if not over_http and (given := [name for name in ("token_file", "allow_host", "paths") if values[name]]):
        raise ConfigurationError(f"--{given[0].replace('_', '-')} needs --http")
    run = _http(values, shelf) if over_http else None

    recorded = recording_options(values)
    skills = PublishedSkills(shelf, **recorded)
    try:
        _note_at_start(recorded["journal"], over_stdio=not over_http)
        if run is not None:
            _run_http(skills, run, show_paths=values["paths"])
        else:
            _run_stdio(skills)
    finally:
        skills.sessions.close()
        _close_exporter(recorded["otlp"])
    _exit()


def _close_exporter(exporter: "EventExporter | None") -> None:
    """Send the last events; print what could not be sent."""
    if exporter is not None:
        exporter.close()
        if exporter.problem:
            note(exporter.problem)


def _note_at_start(journal: str | None, *, over_stdio: bool) -> None:
    """Print that the journal cannot be written, and a hint for a user who started the server in a terminal."""
    if journal is not None:
        try:
            os.close(open_to_append(journal))
        except OSError as error:
            note(f"nothing will be recorded in {journal}: {error.strerror or error}")
    if over_stdio and os.isatty(0):
        note("this is a server for programs that speak the Model Context Protocol; press Ctrl-C to stop it")


def _exit() -> None:
    """Exit now if a thread cannot be stopped: it reads our input, waits for a client to read, or runs a script."""
    threads = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in threads:
        thread.join(_EXIT_SECONDS / len(threads))
    if any(thread.is_alive() and not thread.daemon for thread in threads):
        os._exit(0)


# HTTP ---------------------------------------------------------------------------------------------


def _http(values: Mapping[str, Any], shelf: Shelf) -> "Run":
    """Bind the address of `--http`, and return the function that serves there."""
    with _importing():
        from skillshelf.servers.mcp.http import bind, listen_address, serve_http

    address = listen_address(values, shelf.environment.env)
    return partial(serve_http, address=address, bound=bind(address))


def _run_http(skills: PublishedSkills, run: "Run", *, show_paths: bool) -> None:
    from skillshelf.servers.mcp.server import SkillServer

    # A request over HTTP has a time limit, which the first search of many skills would exceed. Connections wait until
    # then. A search reports why there is no index.
    with suppress(OSError):
        skills.prepare_search()
    # A program that starts its own server may know the paths of skills; a remote client need not.
    _run(SkillServer(skills, show_paths=show_paths), run)


def _run(server: "SkillServer", run: "Run") -> None:
    import anyio

    from skillshelf.servers.mcp.event_loop import run_until_stopped
    from skillshelf.servers.mcp.notices import library_notices

    with library_notices():
        anyio.run(run_until_stopped, server, run)


@contextmanager
def _importing() -> Iterator[None]:
    """Import without looking for garbage, which takes a third of that time: modules live until the end.

    Raise `ConfigurationError` for a package that the extra should have brought.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("skillshelf"):
            raise
        raise ConfigurationError(_INSTALL) from None
    finally:
        gc.enable()


# Standard input and output ------------------------------------------------------------------------


class _Stopped(BaseException):
    """A signal that ends the server."""


class _Signals:
    """Ends the server at a signal: where it waits or imports at once, otherwise when it is done with a message."""

    def __init__(self) -> None:
        self._came = False
        self._waits = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        if self._waits:
            raise _Stopped

    def end_at_once(self) -> None:
        """Raise at a signal from now on, until the event loop takes the signals over."""
        self._waits = True
        if self._came:
            raise _Stopped

    def release(self) -> None:
        """Let signals do again what they do by default."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Raise at a signal inside, and at one that came before."""
        self.end_at_once()
        try:
            yield
        finally:
            self._waits = False


def _run_stdio(skills: PublishedSkills) -> None:
    """Serve one client on standard input and output."""
    signals = _Signals()
    listings = Listings(skills, show_paths=True)
    opening = Opening(skills, listings)
    try:
        read, write = _own_streams()
        # The SDK leaves a trace of each message, if there is a program that collects them.
        is_traced = "opentelemetry.trace" in sys.modules
        rest = UnansweredInput(b"") if is_traced else answer_opening(opening, read, write, waiting=signals.wait)
        if rest is None:
            return
        signals.end_at_once()
        with _importing():
            from skillshelf.servers.mcp.event_loop import ClientInput, serve_stdio
            from skillshelf.servers.mcp.server import SkillServer

        client = ClientInput(read, write, tuple(opening.replayed), opening.replayed_id, *rest)
        server = SkillServer(skills, show_paths=True, one_client=True, listings=listings, client=opening.client)
        _run(server, partial(serve_stdio, client=client))
    except _Stopped:
        return
    finally:
        signals.release()


class UnansweredInput(NamedTuple):
    """The bytes of a client that were not answered; `ended` is True if they are its last."""

    data: bytes
    ended: bool = False


def _own_streams() -> tuple[int, int]:
    """Return standard input and output as other descriptors, so that no other output gets between the messages."""
    read, write = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return read, write


def answer_opening(
    opening: Opening,
    read: int,
    write: int,
    *,
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    pause_seconds: float = _PAUSE_SECONDS,
) -> UnansweredInput | None:
    """Answer a client until the SDK is imported or needed, and import it in parts while the client sends nothing.

    Return what was not answered, or None if the client has left. `waiting` is entered wherever this may take long.
    """

    def is_answered(line: bytes) -> bool:
        answer = opening.answer(line) if len(line) <= REQUEST_BYTES else None
        with waiting():
            _write(write, answer or b"")
        return answer is not None

    kept, pause, parts = b"", pause_seconds, list(_PARTS)
    while True:
        with waiting():
            if not select.select([read], [], [], pause)[0]:
                if not parts:
                    return UnansweredInput(kept)
                _import(parts.pop(0))
                pause = 0.0
                continue
            block = os.read(read, _BLOCK)
        if not block:
            return None if is_answered(kept) else UnansweredInput(kept, ended=True)
        pause = pause_seconds
        *lines, kept = (kept + block).split(b"\n")
        for number, line in enumerate(lines):
            if not is_answered(line):
                return UnansweredInput(b"\n".join([*lines[number:], kept]))
        if len(kept) > REQUEST_BYTES:
            return UnansweredInput(kept)


def _import(module: str) -> None:
    # What cannot be imported is reported when it is needed.
    with suppress(ConfigurationError), _importing():
        import_module(module)


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except BrokenPipeError:
        # The client no longer reads; the end of its input will end the server.
        return
