"""Run a script of a skill: supervise its time, output and use of resources, and report how it ended."""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Literal, NamedTuple

from skillshelf.core.disk_writes import append, disk_use, free_bytes, write_new
from skillshelf.core.limits import (
    RUN_ARGUMENT_BYTES,
    RUN_ARGUMENTS,
    RUN_ARTIFACT_BYTES,
    RUN_FILE_BYTES,
    RUN_MEMORY_BYTES,
    RUN_OPEN_FILES,
    RUN_OUTPUT_BYTES,
    RUN_PROCESSES,
    RUN_SECONDS,
    RUN_WORK_BYTES,
    RUN_WORK_FILES,
)
from skillshelf.errors import ConfigurationError, LimitExceeded
from skillshelf.sandbox import bubblewrap as sandbox
from skillshelf.sandbox import launch
from skillshelf.sandbox.bubblewrap import Grants, sandbox_problem
from skillshelf.sandbox.launch import Started
from skillshelf.sandbox.reaper import descendants, usage_of
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

_PIECE = 64 * 1024


class RunLimits(NamedTuple):
    """The limits of a script: `output_bytes` of each stream, `memory_bytes` of each process and of all together."""

    seconds: float = RUN_SECONDS
    output_bytes: int = RUN_OUTPUT_BYTES
    artifact_bytes: int = RUN_ARTIFACT_BYTES
    memory_bytes: int = RUN_MEMORY_BYTES
    file_bytes: int = RUN_FILE_BYTES
    work_bytes: int = RUN_WORK_BYTES
    work_files: int = RUN_WORK_FILES
    processes: int = RUN_PROCESSES
    open_files: int = RUN_OPEN_FILES


class Run(NamedTuple):
    """The result of a script.

    `exit_code` is as in a shell: 128 plus the number of a signal. `reason` says why we ended the script, if we did.
    `stdout_bytes` and `stderr_bytes` count the whole output, `stdout` and `stderr` hold it up to the limit. If that
    is less, `truncated` is True and `artifact` is the file with both streams as they came, if a folder was given;
    `artifact_truncated` is True if even this file is not complete. `files` are the files that the script left in its
    work folder; `work` is that folder if it was kept.
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
    reason: str | None = None
    digest: str = ""
    files: tuple[str, ...] = ()
    files_truncated: bool = False
    work: str | None = None


class _Ended(NamedTuple):
    exit_code: int
    timed_out: bool
    reason: str | None
    kind: Literal["bubblewrap", "none"]


def run_script(
    skill_dir: str,
    script: str,
    args: Sequence[str] = (),
    *,
    digest: str | None,
    version: str | None = None,
    limits: RunLimits = RunLimits(),  # noqa: B008 - a value that never changes
    grants: Grants = Grants(),  # noqa: B008 - a value that never changes
    on_output: OnOutput | None = None,
    artifacts: str | None = None,
    keep: bool = False,
) -> Run:
    """Run a script if it is unchanged: `digest` is that of the script, `version` that of the tree of its skill.

    `skill_dir` is a real path. `artifacts` is a folder for output beyond the limit. With `keep` the work folder
    stays, and the caller removes it.
    """
    segments = script_segments(script)
    _check_arguments(args)
    sandbox.check_grants(grants)
    bubblewrap = _bubblewrap(grants)
    paths = make_staged_paths(sandbox.user_for_root() if bubblewrap else None)
    with ExitStack() as on_error:
        on_error.callback(remove_staged_paths, paths, keep_work=False)
        staged = stage(skill_dir, segments, paths, digest=digest, version=version)
        output = Output(
            limit=limits.output_bytes, on_output=on_output, folder=artifacts, folder_limit=limits.artifact_bytes
        )
        begun = time.monotonic()
        with _started(bubblewrap, paths, staged, args, limits, grants) as started:
            ended = _follow(started, output, limits, paths)
        duration_ms = int((time.monotonic() - begun) * 1000)
        left = produced_files(paths)
        on_error.pop_all()
    remove_staged_paths(paths, keep_work=keep)
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
        reason=ended.reason,
        digest=staged.digest,
        files=left.files,
        files_truncated=left.truncated,
        work=paths.work if keep else None,
    )


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


def _started(
    bubblewrap: str | None,
    paths: RunFolder,
    staged: StagedScript,
    args: Sequence[str],
    limits: RunLimits,
    grants: Grants,
) -> AbstractContextManager[Started]:
    system_limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_DATA": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_NPROC": limits.processes,
    }
    if bubblewrap:
        return launch.in_sandbox(bubblewrap, paths, staged, args, limits=system_limits, grants=grants)
    return launch.without_sandbox(paths, staged, args, limits=system_limits)


# Supervision ----------------------------------------------------------------------------------------


def _follow(started: Started, output: Output, limits: RunLimits, paths: RunFolder) -> _Ended:
    """Collect the output until the script ends or exceeds a limit; return after all its processes are dead."""
    process = started.process
    deadline = time.monotonic() + limits.seconds
    with selectors.DefaultSelector() as streams:
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert stream is not None
            streams.register(stream, selectors.EVENT_READ, name)
        reason = _until_it_ends(started, streams, output, limits, paths, deadline)
        timed_out = reason is None and process.poll() is None
        started.end()
        last = time.monotonic() + _GRACE
        while streams.get_map() and time.monotonic() < last:
            _take(streams, output, _TICK)
    if timed_out:
        reason = f"it was stopped after {limits.seconds:g} seconds"
    if reason is None and not started.began():
        raise launch.not_started(output.kept("stderr"))
    code = process.returncode
    return _Ended(code if code >= 0 else 128 - code, timed_out, reason, started.kind)


def _until_it_ends(
    started: Started,
    streams: selectors.BaseSelector,
    output: Output,
    limits: RunLimits,
    paths: RunFolder,
    deadline: float,
) -> str | None:
    """Return the limit that a script exceeded, or None if it ended or its time is up."""
    free = free_bytes(paths.path)
    next_check = time.monotonic() + _TICK
    while started.process.poll() is None and (now := time.monotonic()) < deadline:
        if now >= next_check:
            if reason := _excess(started, limits, paths, free):
                return reason
            # Measuring a full folder takes time, and most of the time is for the script.
            next_check = time.monotonic() + max(_TICK, 5 * (time.monotonic() - now))
        pause = max(0.0, min(deadline, next_check) - now)
        if streams.get_map():
            _take(streams, output, pause)
        else:
            with suppress(subprocess.TimeoutExpired):
                started.process.wait(pause)
    return None


def _take(streams: selectors.BaseSelector, output: Output, pause: float) -> None:
    """Add the output that arrives within the pause."""
    for key, _ in streams.select(pause):
        stream: Stream = key.data
        data = os.read(key.fd, _PIECE)
        output.add(stream, data)
        if not data:
            streams.unregister(key.fileobj)


def _excess(started: Started, limits: RunLimits, paths: RunFolder, free: int) -> str | None:
    """Return the limit that a script exceeds, or None; `free` is the free disk space when it began."""
    usage = usage_of(descendants(started.root))
    if usage.threads > limits.processes:
        return f"it had more than {limits.processes} processes at one time"
    if usage.memory > limits.memory_bytes:
        return f"it took more than {limits.memory_bytes} bytes of memory"
    if usage.nameless > limits.work_bytes:
        return f"it held more than {limits.work_bytes} bytes in unnamed or deleted files"
    used = [disk_use(path, limits.work_files) for path in (paths.work, paths.temporary, paths.shared_memory)]
    if not all(use.whole for use in used) and free - free_bytes(paths.path) > limits.work_bytes:
        return f"it hid its files, and more than {limits.work_bytes} bytes of disk space are used"
    if usage.nameless + sum(use.size for use in used) > limits.work_bytes:
        return f"it wrote more than {limits.work_bytes} bytes to disk"
    if sum(use.entries for use in used) > limits.work_files:
        return f"it made more than {limits.work_files} files"
    return None
