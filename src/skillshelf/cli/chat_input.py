"""Read the lines of a chat: its own commands, a line editor with completion, and the history of former lines."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.core import files
from skillshelf.core.console import can_ask, note
from skillshelf.core.disk_writes import locked_within, make_own_folder, replace_file
from skillshelf.core.environment import Environment, user_state_folder
from skillshelf.core.text import did_you_mean, visible

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer

__all__ = [
    "HISTORY_VERSION",
    "OTHER_NAMES",
    "SLASH_COMMANDS",
    "ChatHistory",
    "completions",
    "line_reader",
    "unknown_command",
]

SLASH_COMMANDS: Mapping[str, str] = {
    "/help": "what you can type here",
    "/skills": "the skills that the model knows about",
    "/model": "the model that answers",
    "/quit": "leave; Ctrl-D does, too",
}
"""The commands of the chat itself, and what they do. `/skill:NAME` belongs to the profile."""

OTHER_NAMES: Mapping[str, str] = {"/exit": "/quit", "/?": "/help"}

PROMPT = "> "


def unknown_command(line: str) -> str | None:
    """Return the message about a line that looks like a command and is none, or None for a line to send.

    A path or `/skill:NAME` is no such line.
    """
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    if not word.startswith("/") or not word[1:].replace("-", "").isalpha() or word in {*SLASH_COMMANDS, *OTHER_NAMES}:
        return None
    hint = did_you_mean(word, [*SLASH_COMMANDS, "/skill:NAME"])
    return f"there is no command {word}{hint} (/help lists them; to send this line, put a word before it)"


# Completion ---------------------------------------------------------------------------------------


def completions(text: str, skill_commands: Sequence[str], mentions: Sequence[str]) -> list[str]:
    """Return what the last word before the cursor can become: a command at the beginning, a mention anywhere."""
    word = text.rpartition(" ")[2]
    if word.startswith("$"):
        return [mention for mention in mentions if mention.startswith(word)]
    if text.startswith("/"):
        return [command for command in (*SLASH_COMMANDS, *skill_commands) if command.startswith(text)]
    return []


def _completer(skill_commands: Sequence[str], mentions: Sequence[str]) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion

    class ChatCompleter(Completer):
        """Offers the commands of the chat, skills and mentions."""

        def get_completions(self, document: Any, complete_event: object) -> Iterator[Completion]:
            text = document.text_before_cursor
            taken = len(text) if text.startswith("/") else len(text.rpartition(" ")[2])
            for found in completions(text, skill_commands, mentions):
                yield Completion(found, start_position=-taken, display_meta=SLASH_COMMANDS.get(found, ""))

    return ChatCompleter()


# History ------------------------------------------------------------------------------------------

HISTORY_VERSION = 1
_LINES_KEPT = 1000
_LARGEST_HISTORY = 4_000_000
_LOCK_SECONDS = 2.0


class ChatHistory:
    """The lines of former chats, in a file of the user's state folder that only the user can read.

    A file of a newer version is left alone. A history that cannot be kept costs one line and not the chat.
    """

    def __init__(self, environment: Environment) -> None:
        folder = user_state_folder(environment)
        self.path = f"{folder}/chat-history.json" if folder else None
        self._is_usable = folder is not None

    def lines(self) -> list[str]:
        """Return the kept lines, the oldest first; none if there is no file or it cannot be used."""
        try:
            data = files.read_file(self.path, limit=_LARGEST_HISTORY, links="never") if self.path else b""
            kept = {"version": HISTORY_VERSION, "lines": []} if data == b"" else json.loads(data or b"null")
        except FileNotFoundError:
            return []
        except (OSError, ValueError, RecursionError):
            kept = None
        if (
            not isinstance(kept, dict)
            or not isinstance(kept.get("lines"), list)
            or kept.get("version") != HISTORY_VERSION
        ):
            self._give_up("it is not a history of this version")
            return []
        return [line for line in kept["lines"] if isinstance(line, str)]

    def add(self, line: str) -> None:
        """Keep a line; other chats may write at the same time."""
        if not self._is_usable or self.path is None:
            return
        try:
            make_own_folder(os.path.dirname(self.path))
            with locked_within(f"{self.path}.lock", _LOCK_SECONDS) as is_locked:
                lines = [one for one in self.lines() if one != line][1 - _LINES_KEPT :] if is_locked else []
                if is_locked and self._is_usable:
                    text = json.dumps({"version": HISTORY_VERSION, "lines": [*lines, line]}, ensure_ascii=True)
                    replace_file(self.path, text.encode(), mode=0o600, durable=False)
        except OSError as error:
            self._give_up(str(error))

    def _give_up(self, reason: str) -> None:
        if self._is_usable:
            note(f"the history of this chat is not kept: {self.path}: {reason}")
        self._is_usable = False


# Lines --------------------------------------------------------------------------------------------


def line_reader(
    environment: Environment, skill_commands: Sequence[str], mentions: Sequence[str], run: Callable[[Any], str]
) -> tuple[Callable[[], str], bool]:
    """Return a function that reads one line, and whether it takes Ctrl-C as a key and not as a signal.

    At a terminal it is an editor with history and completion, elsewhere it is a plain line; the end of the input
    raises EOFError. `run` runs a coroutine.
    """
    if not (can_ask() and sys.stdout.isatty()):
        return _read_line, False
    if os.environ.get("TERM", "dumb") != "dumb":
        try:
            return _editor(ChatHistory(environment), skill_commands, mentions, run), True
        except ImportError:
            # An older installation of the extra lacks it.
            note("without the package prompt_toolkit there is no completion (pip install 'skillshelf[agent]')")
    return lambda: input(PROMPT), False


def _editor(
    kept: ChatHistory, skill_commands: Sequence[str], mentions: Sequence[str], run: Callable[[Any], str]
) -> Callable[[], str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory

    def typeable(names: Sequence[str]) -> list[str]:
        return [name for name in names if visible(name) == name]

    session: PromptSession[str] = PromptSession(
        history=InMemoryHistory(kept.lines()),
        completer=_completer(typeable(skill_commands), typeable(mentions)),
        complete_while_typing=False,
    )

    def read() -> str:
        line = run(session.prompt_async(PROMPT))
        if line.strip():
            kept.add(line)
        return line

    return read


def _read_line() -> str:
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise EOFError
    return line
