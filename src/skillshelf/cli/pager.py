"""Show output that is longer than the terminal in a pager: `$SKILLSHELF_PAGER`, `$PAGER`, or less."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from skillshelf.core.console import divert, note, write_raw
from skillshelf.core.patterns import lazy_pattern

TYPE_CHECKING = False

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["paged", "pager_words"]

_DEFAULT = ("less", "-FRX")
_OFF = "to print without a pager: --no-pager, or SKILLSHELF_PAGER="
_STYLES = lazy_pattern(r"\x1b\[[0-9;]*m")


def pager_words(env: Mapping[str, str]) -> list[str] | None:
    """Return the pager and its arguments as they are started, or None where there is no pager or nobody wants one."""
    import shlex
    from shutil import which

    given = env.get("SKILLSHELF_PAGER", env.get("PAGER"))
    if env.get("TERM", "dumb") == "dumb" or (given is not None and not given.strip()):
        return None
    try:
        words = shlex.split(given) if given is not None else [*_DEFAULT]
    except ValueError:
        # A quote that is not closed; the name of such a program is not found below.
        words = [given or ""]
    # Not from a folder that is named by a relative path: a cloned repository may hold a `less`.
    folders = [folder for folder in env.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    found = words[0] if "/" in words[0] else which(words[0], path=os.pathsep.join(folders))
    if found is None and given is not None:
        note(f"the pager {words[0]} is not installed ({_OFF})")
    return [found, *words[1:]] if found is not None else None


@contextmanager
def paged(env: Mapping[str, str]) -> Iterator[None]:
    """Hold back what is written to standard output; start a pager as soon as it is longer than the terminal."""
    try:
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        columns = lines = 0
    if not columns or not lines:
        # Terminals of programs often have no size; nobody is there to leave a pager.
        yield
        return
    output = _PagedOutput(env, columns, lines)
    divert(output.send, output.keep_note)
    try:
        yield
    finally:
        divert(None, None)
        output.end()


class _PagedOutput:
    """Output that goes to the terminal at the end, or to a pager once it needs more lines than there are."""

    def __init__(self, env: Mapping[str, str], columns: int, lines: int) -> None:
        self._env = env
        self._columns = columns
        # The prompt of the shell takes one.
        self._lines = lines - 1
        self._held: list[bytes] = []
        self._notes: list[str] = []
        self._process: Popen[bytes] | None = None
        self._program = ""
        self._is_direct = False

    def send(self, data: bytes) -> None:
        """Take a piece of the output."""
        if self._is_direct:
            write_raw(data)
        elif self._process is not None:
            self._feed(data)
        else:
            self._held.append(data)
            self._lines -= self._rows(data)
            if self._lines < 0:
                self._start()

    def keep_note(self, line: str) -> None:
        """Take a line for standard error, which would disturb the pager."""
        self._notes.append(line)

    def _rows(self, data: bytes) -> int:
        """Return the number of lines on the terminal, by the number of characters: less leaves by itself if all fit."""
        lines = _STYLES.sub("", data.decode("utf-8", "replace")).split("\n")
        return sum(max(1, -(-len(line) // self._columns)) for line in lines) - 1

    def _start(self) -> None:
        from subprocess import PIPE, Popen

        words = pager_words(self._env)
        self._program = words[0] if words else ""
        try:
            if words is not None:
                defaults = {"LESS": "FRX", "LESSCHARSET": "utf-8"}
                self._process = Popen(words, stdin=PIPE, env={**defaults, **self._env})
        except (OSError, ValueError) as error:
            note(f"the pager {self._program} cannot be started: {error} ({_OFF})")
        self._is_direct = self._process is None
        held, self._held = b"".join(self._held), []
        self.send(held)

    def _feed(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        # Who leaves the pager has read enough.
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def end(self) -> None:
        """Write what was held back, or wait until the user leaves the pager."""
        if self._process is None:
            write_raw(b"".join(self._held))
        else:
            self._wait(self._process)
        for line in self._notes:
            note(line)

    def _wait(self, process: "Popen[bytes]") -> None:
        assert process.stdin is not None
        before = None
        with suppress(ValueError):
            # Ctrl-C means something to a pager; and it must not lose its terminal to the shell.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with suppress(BrokenPipeError):
                process.stdin.close()
            status = process.wait()
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)
        if status not in (0, -signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP):
            how = f"with status {status}" if status > 0 else f"by signal {-status}"
            self._notes.append(f"the pager {self._program} ended {how} ({_OFF})")
