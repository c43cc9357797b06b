"""Run the user's git as a program that can do nothing but fetch and read objects, bounded in time and disk.

Its own configuration stays in force, since it has the credentials; the repository that is fetched has none. Transports,
hooks, redirects and everything that would run a program or read another repository are switched off.
"""

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from skillshelf.core.disk_writes import disk_use
from skillshelf.core.limits import GIT_MEMORY_BYTES, GIT_PACK_RATIO, SOURCE_WHOLE_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.errors import SourceRefused, SourceUnreachable
from skillshelf.install.reference import SourceContext

__all__ = ["GitAnswer", "GitProcess"]

_OLDEST = (2, 38)

# Everything else of git's variables could name another repository, another program or another configuration.
_KEPT_VARIABLES = frozenset(
    [
        "GIT_ASKPASS",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_PROXY_SSL_CAINFO",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_KEY",
    ]
)
_KEPT_STARTS = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.bigFileThreshold=1m",
    "fetch.fsckObjects=true",
    "fetch.fsck.gitmodulesUrl=ignore",
    "fetch.recurseSubmodules=false",
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "http.followRedirects=false",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
    "transfer.fsckObjects=true",
)

# A pack of some kilobytes can hold gigabytes, so the system limits memory and files before git starts.
_LIMITED = """ulimit -d "$1" 2>/dev/null; ulimit -f "$2" 2>/dev/null; ulimit -c 0 2>/dev/null; shift 2; exec "$@" """

_POLL_SECONDS = 0.1
_ERRORS_KEPT = 64 * 1024
_EXIT_SECONDS = 5.0
_TYPED_SECONDS = 300.0
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s']*@")
_PROGRESS = re.compile(r"(Counting|Receiving|Resolving)[^\r\n]*?[0-9]+%")


class GitAnswer(NamedTuple):
    """How git ended: its status, its output, and what it said about errors, without secrets."""

    status: int
    output: bytes
    errors: str


class GitProcess:
    """Runs git in a private folder; `scheme` is the transport of the repository that may be fetched."""

    def __init__(self, folder: str, scheme: str, context: SourceContext) -> None:
        self._folder = folder
        self._context = context
        # What the user's own configuration makes of an address may be https or ssh, and nothing else.
        self._protocols = tuple(dict.fromkeys((scheme, "https", "ssh")))
        self._program = _program(context.environment.env)

    def run(
        self,
        *arguments: str,
        limit: int,
        sent: bytes = b"",
        what: str = "",
    ) -> GitAnswer:
        """Run git with these arguments and return its answer of at most `limit` bytes; `what` names slow work.

        Raise SourceRefused if it writes or says too much, SourceUnreachable if it takes too long.
        """
        # With a terminal it shares our process group, or it could not ask there.
        process = subprocess.Popen(
            self._command(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder,
            env=self._variables(),
            start_new_session=not self._context.ask,
        )
        try:
            watch = _Watch(process, self._folder, self._context, limit, sent, what)
            watch.wait()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_SECONDS)
        finally:
            _end(process, alone=self._context.ask)
        return GitAnswer(process.returncode, bytes(watch.output), _without_secrets(bytes(watch.errors)))

    def check_version(self) -> None:
        """Raise SourceUnreachable for a git that is too old."""
        said = self.run("version", limit=1024).output.decode("utf-8", "replace")
        numbers = re.match(r"git version ([0-9]+)\.([0-9]+)", said)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
            raise SourceUnreachable(
                f"git {_OLDEST[0]}.{_OLDEST[1]} or newer is needed, this is {visible(said.strip())}"
            )

    def _command(self, arguments: Sequence[str]) -> list[str]:
        settings = [*_SETTINGS, f"credential.interactive={str(self._context.ask).lower()}"]
        settings += [f"protocol.{name}.allow=always" for name in self._protocols]
        options = [part for setting in settings for part in ("-c", setting)]
        # In blocks of 1,024 and 512 bytes.
        limits = [str(GIT_MEMORY_BYTES // 1024), str(GIT_PACK_RATIO * self._context.limits.bytes // 512)]
        git = [self._program, "--no-pager", f"--git-dir={self._folder}", *options, *arguments]
        return ["/bin/sh", "-c", _LIMITED, "sh", *limits, *git]

    def _variables(self) -> dict[str, str]:
        environment = self._context.environment
        kept = {
            name: value
            for name, value in environment.env.items()
            if not name.startswith("GIT_") or name in _KEPT_VARIABLES or name.startswith(_KEPT_STARTS)
        }
        if environment.home is not None:
            kept["HOME"] = environment.home
        if environment.home_moved:
            kept.pop("XDG_CONFIG_HOME", None)
        if "SSL_CERT_FILE" in kept:
            kept.setdefault("GIT_SSL_CAINFO", kept["SSL_CERT_FILE"])
        if not self._context.ask:
            kept |= {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never"}
        return kept | {
            "GIT_ALLOW_PROTOCOL": ":".join(self._protocols),
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PROTOCOL_FROM_USER": "0",
            "LC_ALL": "C",
        }


def _program(env: Mapping[str, str]) -> str:
    from shutil import which

    found = which("git", path=env.get("PATH") or os.defpath)
    if found is None or not os.path.isabs(found):
        raise SourceUnreachable("git is not installed, and a repository cannot be read without it")
    return found


def _end(process: "subprocess.Popen[bytes]", *, alone: bool) -> None:
    """End git and the programs that it started, and close its pipes."""
    if process.poll() is None and not alone:
        os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


class _Watch:
    """Reads what a process says, feeds it, and gives up when it says, writes or waits too much."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        folder: str,
        context: SourceContext,
        limit: int,
        sent: bytes,
        what: str,
    ) -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self._process = process
        self._folder = folder
        self._limit = limit
        self._sent = memoryview(sent)
        self._what = what
        self._progress: Callable[[str], None] | None = context.progress if what else None
        # A person who is asked for a password needs time to type it.
        self._idle = _TYPED_SECONDS if context.ask else context.limits.seconds
        self._end = time.monotonic() + (_TYPED_SECONDS if context.ask else SOURCE_WHOLE_SECONDS)
        self._size = 0
        self._most = GIT_PACK_RATIO * context.limits.bytes

    def wait(self) -> None:
        """Return when the process has closed its output."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        heard = said = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for stream in (process.stdout, process.stderr):
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
            while selector.get_map():
                ready = selector.select(_POLL_SECONDS)
                moved = [key.fileobj for key, _ in ready if self._step(selector, key)]
                now = time.monotonic()
                if moved or self._has_grown():
                    heard = now
                self._check(now, heard)
                if now - said > 1:
                    said = now
                    self._tell()

    def _step(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        """Move some bytes through one pipe; return whether there were any."""
        if key.fileobj is self._process.stdin:
            count = self._write(key.fd)
            if not self._sent:
                selector.unregister(key.fileobj)
                self._process.stdin.close()
            return bool(count)
        part = os.read(key.fd, 1 << 16)
        if not part:
            selector.unregister(key.fileobj)
        elif key.fileobj is self._process.stdout:
            self.output += part
        else:
            self.errors += part
            del self.errors[:-_ERRORS_KEPT]
        return bool(part)

    def _write(self, descriptor: int) -> int:
        try:
            count = os.write(descriptor, self._sent[: 1 << 14]) if self._sent else 0
        except BrokenPipeError:
            count = len(self._sent)
        self._sent = self._sent[count:]
        return count

    def _has_grown(self) -> bool:
        size, before = disk_use(self._folder, 1_000).size, self._size
        self._size = size
        return size > before

    def _check(self, now: float, heard: float) -> None:
        if len(self.output) > self._limit:
            raise SourceRefused("too-large", "git says more about the repository than may be read")
        if self._size > self._most:
            raise SourceRefused("too-large", f"the repository has more than {self._most} bytes")
        if now - heard > self._idle:
            raise SourceUnreachable(f"the repository sent nothing for {self._idle:.0f} s")
        if now > self._end:
            raise SourceUnreachable("the repository takes too long to be fetched")

    def _tell(self) -> None:
        if self._progress is None:
            return
        found = _PROGRESS.findall(self.errors.decode("ascii", "replace"))
        self._progress(f"{self._what}: {found[-1]}" if found else self._what)


def _without_secrets(errors: bytes) -> str:
    """Return the lines in which git itself speaks of errors; what a server says is left out."""
    lines = errors.decode("utf-8", "replace").replace("\r", "\n").split("\n")
    said = [line.strip() for line in lines if line.startswith(("fatal:", "error:"))]
    return cut(visible(_USER_IN_URL.sub("", " ".join(said))), 500)
