"""What a user says about a model, and the environment, to the name of one that pydantic-ai knows."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from skillshelf.adapters.agent import AgentConfiguration, AgentSession, check_installed, usable_model
from skillshelf.catalog.prompt import visible_to_model
from skillshelf.cli.views import error_line
from skillshelf.core.console import ask, can_ask, note, write, write_piece
from skillshelf.core.limits import DESCRIPTION_SHOWN
from skillshelf.core.text import cut, plural, visible
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.journal.events import (
    Event,
    PermissionDecided,
    SkillInvoked,
    SkillLoaded,
    SkillMentioned,
    SkillRead,
    ToolStarted,
)
from skillshelf.shelf import Shelf

__all__ = ["breaking_off_waits", "chat", "choose_model"]


KEYS: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-4-5",
    "OPENAI_API_KEY": "openai:gpt-5",
}
"""Where a key usually lies, and the model that is taken if nobody names one; the first key that is set counts."""

_LOCAL = "OPENAI_BASE_URL"


def choose_model(given: str | None, env: Mapping[str, str]) -> str:
    """The model to talk to; an error says exactly what to set."""
    if given:
        return _on_own_server(given) if env.get(_LOCAL) else _named(given, env)
    if env.get(_LOCAL):
        raise ConfigurationError(f"{_LOCAL} is set, but no model is named; add --model NAME, as that server calls it")
    for key, model in KEYS.items():
        if env.get(key):
            return model
    raise ConfigurationError(
        f"no model to talk to; set {' or '.join(KEYS)}, "
        f"or for a local server with the OpenAI API set {_LOCAL} and add --model NAME"
    )


def _named(given: str, env: Mapping[str, str]) -> str:
    provider, colon, _ = given.partition(":")
    for key, model in KEYS.items():
        if provider == model.partition(":")[0] and not env.get(key):
            raise ConfigurationError(f"{given} needs a key; set {key}")
    if not colon:
        names = ", ".join(KEYS.values())
        raise ConfigurationError(
            f"--model {given}: say whose model it is, for example {names}; or set {_LOCAL} for a local server"
        )
    return given


def _on_own_server(given: str) -> str:
    """A model of the server that the environment names; every such server has chat completions."""
    provider, colon, name = given.partition(":")
    if colon and provider == "openai":
        return f"openai-chat:{name}"
    # `llama3:8b` is a name with a colon in it.
    return given if colon and _is_provider(provider) else f"openai-chat:{given}"


def _is_provider(name: str) -> bool:
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(name)
    except ValueError:
        return False
    except ImportError:
        # Known, and not installed: the error for that is better said when it is used.
        return True
    return True


INSTRUCTIONS = "You are a helpful assistant in a terminal. Answer briefly, in plain text."
DONE, FAILED, STOPPED = 0, 5, 130
_EXIT = ("/exit", "/quit")
_PATIENCE = 2.0
_TICK = 0.2


def chat(shelf: Shelf, values: Mapping[str, Any]) -> int:
    """Talk until the user leaves, or answer once; the exit status."""
    once = values["once"]
    if values["json"] and once is None:
        raise ConfigurationError("--json is for one answer; add --once TEXT")
    if once is not None and not once.strip():
        raise ConfigurationError("--once needs a text; usage: skillshelf chat --once TEXT")
    check_installed()
    # The framework would print an advertisement on the terminal.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    name = choose_model(values["model"], os.environ)
    configuration = AgentConfiguration(INSTRUCTIONS, usable_model(name))
    journal = os.path.abspath(values["journal"]) if values["journal"] else None
    talk = _Talk(quiet=values["json"])
    with asyncio.Runner() as runner, talk.interruptible():
        session = runner.run(
            AgentSession.create(
                configuration,
                shelf=shelf,
                confirm=talk.confirm if can_ask() else None,
                journal=journal,
                keep=values["keep"],
                on_event=talk.tell,
            )
        )
        talk.begin(runner, session)
        try:
            status = talk.answer_once(once) if once is not None else talk.until_left(name)
        finally:
            talk.end()
            if session.session is not None and (problem := session.session.journal_problem):
                note(problem)
            if journal:
                note(f"the journal is {journal}")
    if values["json"]:
        from skillshelf.core.console import as_json

        cut_off = session.cut is not None
        answer = {"model": name, "answer": talk.answer, "cut": cut_off, "skills": talk.loaded, "journal": journal}
        write(as_json(answer))
    return status


class _Talk:
    """One chat: its session, what was said last, and how often the user interrupted."""

    def __init__(self, *, quiet: bool) -> None:
        self.answer = ""
        self.loaded: list[str] = []
        self._quiet = quiet
        self._interrupts = 0
        self._task: asyncio.Task[str] | None = None
        self._is_asking = False
        self._is_in_line = False

    def begin(self, runner: asyncio.Runner, session: AgentSession) -> None:
        """Take the session to talk in."""
        self._runner = runner
        self._session = session

    # Turns ----------------------------------------------------------------------------------------

    def until_left(self, model: str) -> int:
        """Answer line by line until the user leaves."""
        if can_ask():
            session = self._session.session
            count = plural(len(visible_to_model(session.skills)) if session else 0, "skill")
            note(f"{model}, {count}; /skill:NAME or $NAME uses one, Ctrl-C stops an answer, Ctrl-D leaves")
        for line in self._lines():
            try:
                self._turn(line)
            except SkillError as error:
                note(error_line(error))
            except asyncio.CancelledError:
                note("stopped; Ctrl-C once more leaves")
            except KeyboardInterrupt:
                return STOPPED
        return STOPPED if self._interrupts > 1 else DONE

    def answer_once(self, text: str) -> int:
        """Answer one text."""
        try:
            self._turn(text)
        except (asyncio.CancelledError, KeyboardInterrupt):
            return STOPPED
        return FAILED if self._session.cut else DONE

    def _turn(self, text: str) -> None:
        """Show what the model answers; an error says why it did not."""
        from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelHTTPError, UserError

        try:
            self.answer = self._runner.run(self._prompted(text))
        except (AgentRunError, UserError) as error:
            unreached = isinstance(error, ModelAPIError) and not isinstance(error, ModelHTTPError)
            hint = (
                "; is the server of OPENAI_BASE_URL running?" if unreached and os.environ.get("OPENAI_BASE_URL") else ""
            )
            raise SkillError(f"the model failed: {cut(visible(str(error)), DESCRIPTION_SHOWN)}{hint}") from None
        finally:
            self._end_line()
        if self._session.cut:
            note(self._session.cut)

    async def _prompted(self, text: str) -> str:
        self._task = asyncio.ensure_future(self._session.prompt(text, on_text=self._show))
        try:
            return await self._task
        finally:
            self._task = None

    def _lines(self) -> Iterator[str]:
        """What the user types, without empty lines, until the end."""
        with suppress(ImportError):
            # Importing it gives `input` a line editor with a history.
            import readline  # noqa: F401
        prompts = can_ask() and sys.stdout.isatty()
        while True:
            try:
                line = (input("> ") if prompts else _read_line()).strip()
            except (EOFError, KeyboardInterrupt) as end:
                # What comes next stands on a line of its own, not behind the prompt.
                write("\n" if prompts else "")
                if isinstance(end, EOFError) or self._interrupts > 1:
                    return
                note("Ctrl-C once more leaves")
                continue
            if line in _EXIT:
                return
            if line:
                self._interrupts = 0
                yield line

    # What the user sees ---------------------------------------------------------------------------

    def _show(self, piece: str) -> None:
        if piece and not self._quiet:
            write_piece("stdout", piece.encode("utf-8", "backslashreplace"))
            self._is_in_line = not piece.endswith("\n")

    def _end_line(self) -> None:
        if self._is_in_line:
            self._show("\n")

    def tell(self, event: Event) -> None:
        """Say what happens with skills while an answer is made."""
        if isinstance(event, SkillLoaded):
            self.loaded.append(event.name)
        if isinstance(event, ToolStarted):
            # A tool may show how far it is, on a line that it takes for itself.
            self._end_line()
        told = _TOLD.get(type(event))
        if told is not None and (words := told(event)):
            self._end_line()
            note(words)

    async def confirm(self, tool: str, name: str, reason: str) -> bool:
        """Ask the user; here and not in a thread, so that Ctrl-C reaches the question."""
        self._end_line()
        self._is_asking = True
        try:
            return ask(f"{visible(name)}: {visible(reason)}\n{_QUESTIONS.get(tool, 'Allow it?')} [y/N] ")
        except KeyboardInterrupt:
            if self._task is not None:
                self._task.cancel()
            return False
        finally:
            self._is_asking = False

    # Interrupting ---------------------------------------------------------------------------------

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C stop an answer, and a second one leave."""
        before = signal.signal(signal.SIGINT, self._interrupted)
        try:
            with breaking_off_waits():
                yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupted(self, number: int, frame: object) -> None:
        self._interrupts += 1
        if self._interrupts == 1 and self._task is not None and not self._is_asking:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        elif self._interrupts <= 2:
            raise KeyboardInterrupt

    def end(self) -> None:
        """Close the session; a script that is still running is not waited for if the user wants to leave."""
        closing: Coroutine[Any, Any, Any] = self._session.close()
        if self._interrupts:
            closing = asyncio.wait_for(
                asyncio.shield(asyncio.ensure_future(closing, loop=self._runner.get_loop())), _PATIENCE
            )
        try:
            self._runner.run(closing)
        except TimeoutError:
            note("a script is still running; leaving without waiting for it")
            os._exit(STOPPED)


_QUESTIONS = {"skill_run": "Run it in a sandbox?", "skill_load": "Load it?", "skill_read": "Let the model read it?"}

_TOLD: Mapping[type, Callable[[Any], str]] = {
    SkillLoaded: lambda event: f"loaded {event.name} ({event.path})",
    SkillRead: lambda event: f"read {event.uri}",
    SkillInvoked: lambda event: f"{event.name} is in the conversation already" if event.repeat else "",
    SkillMentioned: lambda event: f"no skill named {', '.join(event.unknown)}" if event.unknown else "",
    PermissionDecided: lambda event: (
        f"{event.tool} {event.name or ''} was denied"
        if event.verdict == "deny"
        else f"running {event.name} {event.script}"
        if event.script
        else ""
    ),
}
"""What is said of an event; nothing where the words are empty."""


@contextmanager
def breaking_off_waits() -> Iterator[None]:
    """Break off every wait now and then, for a Ctrl-C that came just before it began.

    A signal is heeded between two steps of the program, or where it breaks off a wait. One that comes after the last
    step and before the wait would be heeded with the next key only: a prompt that is there and deaf.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, _TICK, _TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _read_line() -> str:
    line = sys.stdin.readline() if sys.stdin is not None else ""
    if not line:
        raise EOFError
    return line
