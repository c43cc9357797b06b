"""A real terminal for tests: tmux keeps the screen, a test types into it and reads what stands there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.trees import SOURCE

PATIENCE = 60.0
"""Seconds until a screen that never comes is a failure."""

COMMAND = (sys.executable, "-m", "skillshelf")


class Terminal:
    """A terminal of a size of its own; what runs in it is followed by a line `exit N`."""

    def __init__(self, folder: str, columns: int, lines: int) -> None:
        self._socket = f"{folder}/tmux"
        self._size = ("-x", str(columns), "-y", str(lines))
        self.folder = Path(folder)

    def start(self, line: str, *, cwd: Path, env: Mapping[str, str]) -> None:
        """Run a line of shell; the state of the terminal before and after it is kept."""
        before, after = (shlex.quote(str(self.folder / name)) for name in ("before", "after"))
        script = f"stty -g >{before}\n{line}\ncode=$?\nstty -g >{after}\necho exit $code\nexec sleep {int(PATIENCE)}\n"
        (self.folder / "script").write_text(script)
        clean = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "LC_ALL": "C.UTF-8", **env}
        words = ["env", "-i", *(f"{key}={value}" for key, value in clean.items()), "TERM=tmux-256color"]
        command = shlex.join([*words, "sh", f"{self.folder}/script"])
        self._tmux("-f", "/dev/null", "new-session", "-d", *self._size, "-c", str(cwd), command)

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names for them; anything else is typed."""
        self._tmux("send-keys", *keys)

    def screen(self, *options: str) -> str:
        """The text on the screen, without blanks at the ends of lines."""
        text = self._tmux("capture-pane", "-p", *options)
        return "\n".join(line.rstrip() for line in text.split("\n"))

    def wait(self, *wanted: str, lacks: Sequence[str] = ()) -> str:
        """The screen, once it holds these texts and none of those."""
        return self.wait_until(
            lambda screen: all(text in screen for text in wanted) and not any(text in screen for text in lacks)
        )

    def wait_until(self, ready: Callable[[str], bool]) -> str:
        """The screen, once it is as it should be."""
        end = time.monotonic() + PATIENCE
        while not ready(screen := self.screen()):
            assert time.monotonic() < end, f"this is still on the screen:\n{screen}"
            time.sleep(0.03)
        return screen

    def press_until(self, key: str, wanted: str) -> str:
        """Press a key until a text is on the screen: a program may drop what is typed while it is interrupted."""
        end = time.monotonic() + PATIENCE
        while wanted not in (screen := self.screen()):
            assert time.monotonic() < end, f"this is still on the screen:\n{screen}"
            self.keys(key)
            time.sleep(0.2)
        return screen

    def settled(self) -> str:
        """The screen, once it has not changed for a while."""
        last = ""
        while (screen := self.screen()) != last:
            last = screen
            time.sleep(2)
        return screen

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    @property
    def is_as_before(self) -> bool:
        """True if the terminal is as it was found: its modes, the normal screen, the cursor, no mouse."""
        state = self._tmux("display", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{wrap_flag}").strip()
        same = (self.folder / "before").read_text() == (self.folder / "after").read_text()
        return same and state == "0 1 0 1"

    def close(self) -> None:
        """End everything that runs in it."""
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self._socket, *words], capture_output=True, encoding="utf-8", timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def terminal(columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    """A terminal that is gone afterwards."""
    # Not below the test's own folder: the path of a socket may have about a hundred characters.
    folder = tempfile.mkdtemp()
    opened = Terminal(folder, columns, lines)
    try:
        yield opened
    finally:
        opened.close()
        shutil.rmtree(folder)
