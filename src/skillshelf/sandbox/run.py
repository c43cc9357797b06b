"""Run a script of a skill: supervise its time, output and use of resources, and report how it ended."""

import os
import selectors
import signal
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Literal, TypedDict

from skillshelf.catalog.load import Listing
from skillshelf.catalog.locked_files import LockedFiles
from skillshelf.core import files
from skillshelf.core.disk_writes import append, write_new
from skillshelf.core.limits import RUN_ARGUMENT_BYTES, RUN_ARGUMENTS
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Wall
from skillshelf.core.worker_thread import CallerLeft, CallerThread, run_in_thread
from skillshelf.errors import ConfigurationError, LimitExceeded, ScriptNotRunnable
from skillshelf.sandbox import bubblewrap as sandbox
from skillshelf.sandbox import launch
from skillshelf.sandbox.bubblewrap import Grants, sandbox_problem
from skillshelf.sandbox.launch import Started
from skillshelf.sandbox.scripts import (
    RunFolder,
    Script,
    StagedScript,
    find_script,
    make_staged_paths,
    produced_files,
    remove_staged_paths,
    script_segments,
    stage,
)
from skillshelf.sandbox.storage import StorageUnavailable, copy_work, work_folder
from skillshelf.sandbox.usage import RunLimits, ScriptUsage
from skillshelf.sandbox.walls import check_required, in_order

__all__ = [
    "Grants",
    "OnOutput",
    "Output",
    "Run",
    "RunLimits",
    "Script",
    "Stream",
    "find_script",
    "run_script",
    "sandbox_problem",
]


Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]
"""Receive each piece of output as it comes, up to the limit; no piece ends within a character."""

_NOTE = b"\n[the rest is not kept]\n"


class Output:
    """The output of a script: up to the limit in memory, and whole in a file if it is more."""

    def __init__(self, *, limit: int, on_output: OnOutput | None, folder: str | None, folder_limit: int) -> None:
        self.artifact: str | None = None
        self.artifact_truncated = False
        self.seen: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        self._limit = limit
        self._on_output = on_output
        self._folder = folder
        self._left = folder_limit
        self._pieces: list[tuple[Stream, bytes]] = []
        self._waiting: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    @property
    def truncated(self) -> bool:
        """True if there was more output than the limit."""
        return any(seen > self._limit for seen in self.seen.values())

    def kept(self, stream: Stream) -> bytes:
        """Return the output of a stream up to the limit."""
        return b"".join(piece for name, piece in self._pieces if name == stream)

    def add(self, stream: Stream, data: bytes) -> None:
        """Add a piece of output; an empty one is the end of its stream."""
        room = max(0, self._limit - self.seen[stream])
        self.seen[stream] += len(data)
        cut = len(data) > room
        if cut or self.artifact:
            self._keep_whole(data)
        ready = self._waiting[stream] + data[:room]
        # At the end of a stream an incomplete character is passed on as it is.
        whole = _whole_characters(ready) if data else len(ready)
        self._waiting[stream] = b"" if cut else ready[whole:]
        if piece := ready[:whole]:
            self._pieces.append((stream, piece))
            if self._on_output:
                self._on_output(stream, piece)

    def _keep_whole(self, data: bytes) -> None:
        """Append a piece to the file with the whole output; the first piece brings what came before."""
        if self._folder is None or self.artifact_truncated:
            return
        if self.artifact is None:
            before = [piece for _, piece in self._pieces]
            data = b"".join([*before, *self._waiting.values(), data])
        cut = len(data) > self._left
        data, self._left = data[: self._left] + (_NOTE if cut else b""), self._left - len(data)
        try:
            if self.artifact is None:
                path = os.path.join(self._folder, f"output-{os.urandom(8).hex()}.txt")
                write_new(path, data)
                self.artifact = path
            else:
                append(self.artifact, data)
        except OSError:
            # For example a full disk: that is not the script's fault, and it runs on.
            cut = True
        self.artifact_truncated = cut


def _whole_characters(data: bytes) -> int:
    """Return the number of bytes before an incomplete UTF-8 character at the end."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) if back >= needed else len(data) - back
        if byte < 0x80:
            break
    return len(data)


_TICK = 0.1
"""Seconds between two checks of a script's resources."""

_GRACE = 1.0
"""Seconds to wait for remaining output after a script has ended."""

_START_SECONDS = 30.0
"""Seconds that a sandbox may take to be set up."""

_PIECE = 64 * 1024


class Run(NamedTuple):
    """The result of a script.

    `exit_code` is as in a shell: 128 plus the number of a signal. `reason` says why we ended the script, if we did.
    `stdout_bytes` and `stderr_bytes` count the whole output, `stdout` and `stderr` hold it up to the limit. If that
    is less, `truncated` is True and `artifact` is the file with both streams as they came, if a folder was given;
    `artifact_truncated` is True if even this file is not complete. `files` are the files that the script left in its
    work folder; `work` is that folder if it was kept. `missing` are the parts of the sandbox that this run did not
    have; `sandbox/walls.py` lists them all.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    truncated: bool
    timed_out: bool = False
    duration_ms: int = 0
    artifact: str | None = None
    artifact_truncated: bool = False
    sandbox: Literal["bubblewrap", "none"] = "none"
    missing: tuple[str, ...] = ()
    reason: str | None = None
    digest: str = ""
    files: tuple[str, ...] = ()
    files_truncated: bool = False
    work: str | None = None


class _Walls(NamedTuple):
    require: Collection[Wall]
    without: Collection[Wall]


class _Start(TypedDict):
    seconds: float
    caller: int
    on_ready: launch.OnReady


class _Ended(NamedTuple):
    exit_code: int
    timed_out: bool
    reason: str | None
    kind: Literal["bubblewrap", "none"]
    missing: tuple[Wall, ...]


def run_script(
    skill_dir: str,
    script: str,
    args: Sequence[str] = (),
    *,
    digest: str | None,
    version: str | None = None,
    limits: RunLimits = RunLimits(),  # noqa: B008 - a value that never changes
    grants: Grants = Grants(),  # noqa: B008 - a value that never changes
    require: Collection[Wall] = (),
    without: Collection[Wall] = (),
    on_output: OnOutput | None = None,
    artifacts: str | None = None,
    keep: bool = False,
    locked: LockedFiles | None = None,
) -> Run:
    """Run a script if it is unchanged: `digest` is that of the script, `version` that of the tree of its skill.

    `skill_dir` is a real path. `require` are parts of the sandbox without which the script is not run; those in
    `without` (`cgroup`, `tmpfs`) are not used even where they are available. `artifacts` is a folder for output beyond
    the limit. With `keep` the work folder stays, and the caller removes it. Of a skill that is `locked` the script sees
    exactly those files.
    """
    segments = script_segments(script)
    _check_arguments(args)
    sandbox.check_grants(grants)

    def staged(paths: RunFolder) -> StagedScript:
        return stage(skill_dir, segments, paths, digest=digest, version=version, locked=locked)

    def work(caller: CallerThread[tuple[Stream, bytes]]) -> Run:
        output = Output(
            limit=limits.output_bytes,
            on_output=on_output and (lambda stream, data: caller.send((stream, data))),
            folder=artifacts,
            folder_limit=limits.artifact_bytes,
        )
        walls = _Walls(require, without)
        try:
            try:
                return _run(staged, args, limits, grants, walls, output, caller, keep=keep)
            except StorageUnavailable:
                # The script has not started; it gets folders on the disk instead.
                walls = walls._replace(without=(*without, "tmpfs"))
                return _run(staged, args, limits, grants, walls, output, caller, keep=keep)
        except OSError as error:
            # For example too many open files in this process.
            raise ScriptNotRunnable(f"it cannot be run: {error}") from error

    def receive(piece: tuple[Stream, bytes]) -> None:
        assert on_output
        on_output(*piece)

    return run_in_thread(work, receive)


def _run(
    stage_in: Callable[[RunFolder], StagedScript],
    args: Sequence[str],
    limits: RunLimits,
    grants: Grants,
    walls: _Walls,
    output: Output,
    caller: CallerThread[tuple[Stream, bytes]],
    *,
    keep: bool,
) -> Run:
    bubblewrap = _bubblewrap(grants)
    user = sandbox.user_for_root() if bubblewrap else None
    if user is not None:
        sandbox.check_access(grants)
    sized = bubblewrap is not None and sandbox.has_sized_storage(bubblewrap) and "tmpfs" not in walls.without
    paths = make_staged_paths(user, limits.work_bytes if sized else None)
    with (
        ExitStack() as on_error,
        ScriptUsage(limits, paths, sandbox.writable_places(grants), without=walls.without) as usage,
    ):
        on_error.callback(remove_staged_paths, paths, keep_work=False)
        staged = stage_in(paths)

        def on_ready(root: int, waiting: int | None, missing: Iterable[Wall]) -> tuple[Wall, ...]:
            all_missing = in_order((*missing, *usage.attach(root, waiting)))
            check_required(all_missing, walls.require)
            return all_missing

        start: _Start = {"seconds": _START_SECONDS, "caller": caller.fileno(), "on_ready": on_ready}
        begun = time.monotonic()
        cgroups = usage.prepare() if bubblewrap else ()
        with _started(bubblewrap, paths, staged, args, limits, grants, cgroups, start) as started:
            ended = _follow(started, output, limits, usage, caller)
        duration_ms = int((time.monotonic() - begun) * 1000)
        left = _left_files(paths, usage, limits, keep=keep)
        on_error.pop_all()
    kept = remove_staged_paths(paths, keep_work=keep)
    return Run(
        exit_code=ended.exit_code,
        stdout=output.kept("stdout"),
        stderr=output.kept("stderr"),
        stdout_bytes=output.seen["stdout"],
        stderr_bytes=output.seen["stderr"],
        truncated=output.truncated,
        timed_out=ended.timed_out,
        duration_ms=duration_ms,
        artifact=output.artifact,
        artifact_truncated=output.artifact_truncated,
        sandbox=ended.kind,
        missing=ended.missing,
        reason=ended.reason,
        digest=staged.digest,
        files=left.files,
        files_truncated=left.truncated,
        work=kept,
    )


def _left_files(paths: RunFolder, usage: ScriptUsage, limits: RunLimits, *, keep: bool) -> Listing:
    """Return the files that a script left in its work folder; with `keep` they are on the disk then."""
    if usage.storage is None or keep:
        whole = usage.storage is None or copy_work(usage.storage, paths.work, limit=limits.work_bytes)
        with files.Folder(paths.work) as work:
            left = produced_files(work)
        return left._replace(truncated=left.truncated or not whole)
    with work_folder(usage.storage) as work:
        return produced_files(work)


def _check_arguments(args: Sequence[str]) -> None:
    if isinstance(args, str) or not all(isinstance(word, str) for word in args):
        raise ConfigurationError("the arguments of a script are a list of texts")
    if len(args) > RUN_ARGUMENTS:
        raise LimitExceeded(f"a script takes at most {RUN_ARGUMENTS} arguments, not {len(args)}")
    if any("\0" in word for word in args):
        raise ConfigurationError("an argument of a script may not hold a NUL")
    try:
        size = sum(len(word.encode()) for word in args)
    except UnicodeEncodeError:
        raise ConfigurationError("an argument of a script must be text that UTF-8 can write") from None
    if size > RUN_ARGUMENT_BYTES:
        raise LimitExceeded(f"the arguments of a script have at most {RUN_ARGUMENT_BYTES} bytes together, not {size}")


def _bubblewrap(grants: Grants) -> str | None:
    """Return the path of bubblewrap; None only if there is no sandbox and the grants allow that."""
    why = sandbox_problem()
    if why is None:
        return sandbox.find_bubblewrap()
    if not grants.unsandboxed:
        raise launch.no_sandbox(why)
    return None


_RESERVED = 2
"""Times its memory that a process may reserve without using it: Node 24 maps 512 MiB for the code of each thread that
runs a program of its own. What is used counts at once in a cgroup, else at the next look."""


def _started(
    bubblewrap: str | None,
    paths: RunFolder,
    staged: StagedScript,
    args: Sequence[str],
    limits: RunLimits,
    grants: Grants,
    cgroups: Sequence[str],
    start: _Start,
) -> AbstractContextManager[Started]:
    system_limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_DATA": _RESERVED * limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_NPROC": limits.processes,
    }
    if bubblewrap:
        return launch.in_sandbox(
            bubblewrap, paths, staged, args, limits=system_limits, grants=grants, cgroups=cgroups, **start
        )
    return launch.without_sandbox(paths, staged, args, limits=system_limits, grants=grants, **start)


# Supervision ----------------------------------------------------------------------------------------


def _follow(
    started: Started, output: Output, limits: RunLimits, usage: ScriptUsage, caller: CallerThread[tuple[Stream, bytes]]
) -> _Ended:
    """Collect the output until the script ends or exceeds a limit; return after all its processes are dead."""
    process = started.launched.process
    deadline = time.monotonic() + limits.seconds
    with selectors.DefaultSelector() as events:
        streams = {"stdout": process.stdout, "stderr": process.stderr, "ended": started.launched, "left": caller}
        for name, stream in streams.items():
            assert stream is not None
            events.register(stream, selectors.EVENT_READ, name)
        reason = _until_it_ends(started, events, output, usage, deadline)
        timed_out = reason is None and started.launched in events.get_map()
        started.launched.end()
        last = time.monotonic() + _GRACE
        while any(key.data in output.seen for key in events.get_map().values()) and time.monotonic() < last:
            _take(events, output, _TICK)
    if timed_out:
        reason = f"it was stopped after {limits.seconds:g} seconds"
    code = started.launched.exit_code
    reason = reason or usage.ended()
    if reason is not None and code == 0:
        # It ended by itself at the same moment, or went on without a process that the kernel ended.
        code = 128 + signal.SIGKILL
    return _Ended(code, timed_out, reason, started.kind, started.missing)


def _until_it_ends(
    started: Started,
    events: selectors.BaseSelector,
    output: Output,
    usage: ScriptUsage,
    deadline: float,
) -> str | None:
    """Return the limit that a script exceeded, or None if it ended or its time is up."""
    next_check = time.monotonic() + _TICK
    while started.launched in events.get_map() and (now := time.monotonic()) < deadline:
        if now >= next_check:
            if reason := usage.excess():
                return reason
            # Measuring a full folder takes time, and most of the time is for the script.
            next_check = time.monotonic() + max(_TICK, 5 * (time.monotonic() - now))
        _take(events, output, max(0.0, min(deadline, next_check) - now))
    return None


def _take(events: selectors.BaseSelector, output: Output, pause: float) -> None:
    """Add the output that arrives within the pause; stop to watch what has ended. Raise CallerLeft."""
    for key, _ in events.select(pause):
        if isinstance(key.fileobj, CallerThread):
            raise CallerLeft
        if isinstance(key.fileobj, launch.Launched):
            data = key.fileobj.hear()
        else:
            data = os.read(key.fd, _PIECE)
            output.add(key.data, data)
        if not data:
            events.unregister(key.fileobj)
