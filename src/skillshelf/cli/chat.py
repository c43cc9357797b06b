"""Choose a model and talk to it in the terminal: the command `chat`."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from skillshelf.adapters.agent import AgentConfiguration, AgentSession, check_installed, usable_model
from skillshelf.catalog.prompt import visible_to_model
from skillshelf.cli.chat_input import OTHER_NAMES, SLASH_COMMANDS, line_reader, unknown_command
from skillshelf.cli.views import error_line
from skillshelf.core import files
from skillshelf.core.console import ask, can_ask, note, screen, write, write_piece
from skillshelf.core.limits import DESCRIPTION_SHOWN
from skillshelf.core.text import cut, fold, plural, trust_command, visible
from skillshelf.errors import DONE, FAILED, ConfigurationError, SkillError
from skillshelf.journal.events import (
    Event,
    PermissionDecided,
    SkillInvoked,
    SkillLoaded,
    SkillMentioned,
    SkillRead,
    ToolStarted,
)
from skillshelf.session.recorder import recording_options
from skillshelf.session.render import agents_md_files, joined_agents_md
from skillshelf.shelf import Shelf

__all__ = ["chat", "choose_model", "interrupted_waits"]


KEYS: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-4-5",
    "OPENAI_API_KEY": "openai:gpt-5",
}
"""The variable of each API key, and the default model for it; the first one that is set decides."""

_LOCAL = "OPENAI_BASE_URL"


def choose_model(given: str | None, env: Mapping[str, str]) -> str:
    """Return the model to talk to, by the name that pydantic-ai knows; an error says exactly what to set."""
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
            f"--model {given} has no provider; name it, for example {names}, or set {_LOCAL} for a local server"
        )
    return given


def _on_own_server(given: str) -> str:
    """Return the name of a model at a local server; every such server has chat completions."""
    provider, colon, name = given.partition(":")
    if colon and provider == "openai":
        return f"openai-chat:{name}"
    # A name may have a colon in it, as `llama3:8b`.
    return given if colon and _is_provider(provider) else f"openai-chat:{given}"


def _is_provider(name: str) -> bool:
    from pydantic_ai.providers import infer_provider_class

    try:
        infer_provider_class(name)
    except ValueError:
        return False
    except ImportError:
        # It is known but not installed, which is reported when it is used.
        return True
    return True


INSTRUCTIONS = "You are a helpful assistant in a terminal. Answer briefly, in plain text."
STOPPED = 130
_CLOSE_SECONDS = 2.0
_WAKE_SECONDS = 0.2


def chat(shelf: Shelf, values: Mapping[str, Any]) -> int:
    """Talk until the user leaves, or answer once; return the exit status."""
    once = _message(values)
    if values["json"] and once is None:
        raise ConfigurationError("--json is for one answer; add a MESSAGE")
    check_installed()
    # Without this the framework prints an advertisement.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    name = choose_model(values["model"], os.environ)
    configuration = AgentConfiguration(_instructions(shelf), usable_model(name))
    recorded = recording_options(values, owned=True)
    journal = recorded["journal"]
    talk = _Talk(shelf, name, quiet=values["json"])
    with asyncio.Runner() as runner, talk.interruptible():
        session = runner.run(
            AgentSession.create(
                configuration,
                shelf=shelf,
                confirm=talk.confirm if can_ask() else None,
                **recorded,
                on_event=talk.report,
            )
        )
        talk.begin(runner, session)
        try:
            status = talk.answer_once(once) if once is not None else talk.until_left()
        finally:
            talk.end()
            if session.session is not None:
                for problem in filter(None, (session.session.journal_problem, session.session.journal_notice)):
                    note(problem)
            if journal:
                note(f"journal: {journal}")
    if values["json"]:
        from skillshelf.core.console import as_json

        cut_off = session.cut is not None
        answer = {"model": name, "answer": talk.answer, "cut": cut_off, "skills": talk.loaded, "journal": journal}
        write(as_json(answer))
    return status


def _message(values: Mapping[str, Any]) -> str | None:
    """Return the text to answer once, or None for a conversation."""
    words, once = values["message"], values["once"]
    if words and once is not None:
        raise ConfigurationError("--once TEXT and a MESSAGE exclude each other")
    text: str | None = " ".join(words) if words else once
    if text is not None and not text.strip():
        raise ConfigurationError("there is nothing to answer: the text is empty (usage: skillshelf chat [MESSAGE ...])")
    return text


def _instructions(shelf: Shelf) -> str:
    """Return the instructions of the agent, and the standing context that the profile has; the files are named."""
    if shelf.profile.context_files != "agents-md":
        return INSTRUCTIONS
    place = shelf.environment
    sent, held = agents_md_files(place.cwd, shelf.trust, shelf.settings.trusted_folders, place.home)
    if sent:
        note(f"in the prompt: {', '.join(visible(file.path) for file in sent)}")
    if held:
        paths = ", ".join(visible(file.path) for file in held)
        root = shelf.project_root
        is_above = not any(files.is_inside(os.path.dirname(file.path), root) for file in held)
        above = f"run {trust_command(os.path.dirname(held[-1].path))}"
        how = above if is_above else f"add --trust, or run {trust_command(root)}"
        note(f"not in the prompt: {paths}; to send it too: {how}")
    return "\n\n".join(part for part in (INSTRUCTIONS, joined_agents_md(sent)) if part)


class _Talk:
    """One chat: its session, the last answer, and the number of interrupts."""

    def __init__(self, shelf: Shelf, model: str, *, quiet: bool) -> None:
        self.answer = ""
        self._model = model
        self._environment = shelf.environment
        self._screen = screen(shelf.environment.env)
        self.loaded: list[str] = []
        self._quiet = quiet
        self._interrupts = 0
        self._task: asyncio.Task[str] | None = None
        self._is_asking = False
        self._is_in_line = False

    def begin(self, runner: asyncio.Runner, session: AgentSession) -> None:
        """Set the session to talk in."""
        self._runner = runner
        self._session = session

    # Turns ----------------------------------------------------------------------------------------

    def until_left(self) -> int:
        """Answer line by line until the user leaves."""
        if can_ask():
            session = self._session.session
            count = plural(len(visible_to_model(session.skills)) if session else 0, "skill")
            note(f"{self._model}, {count}; /help explains, /skill:NAME or $NAME uses a skill, Ctrl-D leaves")
        for line in self._lines():
            try:
                if not self._slash(line):
                    self._turn(line)
            except SkillError as error:
                note(error_line(error))
            except asyncio.CancelledError:
                note("stopped; press Ctrl-C again to leave")
            except KeyboardInterrupt:
                return STOPPED
        return STOPPED if self._interrupts > 1 else DONE

    def answer_once(self, text: str) -> int:
        """Answer one text."""
        try:
            if self._slash(text):
                return DONE
            self._turn(text)
        except (asyncio.CancelledError, KeyboardInterrupt):
            return STOPPED
        return FAILED if self._session.cut else DONE

    def _turn(self, text: str) -> None:
        """Show the answer of the model; raise SkillError if it fails."""
        from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelHTTPError, UserError

        try:
            self.answer = self._runner.run(self._prompted(text))
        except (AgentRunError, UserError) as error:
            unreached = isinstance(error, ModelAPIError) and not isinstance(error, ModelHTTPError)
            hint = f"; is the server of {_LOCAL} running?" if unreached and os.environ.get(_LOCAL) else ""
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

    def _slash(self, line: str) -> bool:
        """Answer a command of the chat itself; return False for a line to send to the model."""
        word = line.split(maxsplit=1)[0]
        command = OTHER_NAMES.get(word, word)
        if command == "/help":
            skill = [("/skill:NAME [TEXT]", "use a skill, with what it shall work on")] if self._skill_commands else []
            mention = [("$NAME", "mention a skill anywhere in a line")] if self._mentions else []
            rows = [*SLASH_COMMANDS.items(), *skill, *mention, ("Ctrl-C", "stop an answer; twice: leave")]
            self._reply("\n".join(self._screen.table(rows, ("bold", None), wrap=True)))
        elif command == "/skills":
            skills = visible_to_model(self._session.session.skills) if self._session.session else []
            rows = [(skill.name, fold(skill.description)) for skill in skills]
            self._reply("\n".join(self._screen.table(rows, ("bold", None)) or ["The model knows about no skill."]))
        elif command == "/model":
            self._reply(visible(self._model))
        elif message := unknown_command(line):
            note(message)
        return command in SLASH_COMMANDS or unknown_command(line) is not None

    def _reply(self, text: str) -> None:
        """Print what a command of the chat answers, or keep it as the answer of `--json`."""
        self.answer = text
        write("" if self._quiet else f"{text}\n")

    @property
    def _skill_commands(self) -> list[str]:
        return self._session.session.commands() if self._session.session else []

    @property
    def _mentions(self) -> list[str]:
        session = self._session.session
        if session is None or session.profile.mentions == "none":
            return []
        return [f"${skill.name}" for skill in session.skills if skill.enabled and " " not in skill.name]

    def _lines(self) -> Iterator[str]:
        """Yield the lines that the user types, without empty ones."""
        with suppress(ImportError):
            # Importing it gives `input` a line editor, where there is no better one.
            import readline  # noqa: F401
        read, takes_keys = line_reader(self._environment, self._skill_commands, self._mentions, self._runner.run)
        prompts = can_ask() and sys.stdout.isatty()
        while True:
            try:
                line = read().strip()
            except (EOFError, KeyboardInterrupt) as end:
                # An editor gets Ctrl-C as a key, and ends the line of the prompt.
                self._interrupts += takes_keys and isinstance(end, KeyboardInterrupt)
                write("\n" if prompts and not takes_keys else "")
                if isinstance(end, EOFError) or self._interrupts > 1:
                    return
                note("press Ctrl-C again to leave")
                continue
            word = line.split(maxsplit=1)[0] if line else ""
            if OTHER_NAMES.get(word, word) == "/quit":
                return
            if line:
                self._interrupts = 0
                yield line

    # Output ---------------------------------------------------------------------------------------

    def _show(self, piece: str) -> None:
        if piece and not self._quiet:
            write_piece("stdout", piece.encode("utf-8", "backslashreplace"))
            self._is_in_line = not piece.endswith("\n")

    def _end_line(self) -> None:
        if self._is_in_line:
            self._show("\n")

    def report(self, event: Event) -> None:
        """Report what happens with skills while the model answers."""
        if isinstance(event, SkillLoaded):
            self.loaded.append(event.name)
        if isinstance(event, ToolStarted):
            # A tool may draw its progress on a line of its own.
            self._end_line()
        describe = _DESCRIPTIONS.get(type(event))
        if describe is not None and (text := describe(event)):
            self._end_line()
            note(text)

    async def confirm(self, tool: str, name: str, reason: str) -> bool:
        """Ask the user, in this thread so that Ctrl-C reaches the question."""
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
        """Let Ctrl-C stop an answer, and a second Ctrl-C end the chat."""
        before = signal.signal(signal.SIGINT, self._interrupted)
        try:
            with interrupted_waits():
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
        """Close the session; after an interrupt, do not wait for a script that is still running."""
        closing: Coroutine[Any, Any, Any] = self._session.close()
        if self._interrupts:
            closing = asyncio.wait_for(
                asyncio.shield(asyncio.ensure_future(closing, loop=self._runner.get_loop())), _CLOSE_SECONDS
            )
        try:
            self._runner.run(closing)
        except TimeoutError:
            note("a script is still running; leaving without waiting for it")
            os._exit(STOPPED)


_QUESTIONS = {"skill_run": "Run it in a sandbox?", "skill_load": "Load it?", "skill_read": "Let the model read it?"}

_DESCRIPTIONS: Mapping[type, Callable[[Any], str]] = {
    SkillLoaded: lambda event: f"loaded {event.name} ({event.path})",
    SkillRead: lambda event: f"read {event.uri}",
    SkillInvoked: lambda event: f"{event.name} is already in the conversation" if event.repeat else "",
    SkillMentioned: lambda event: f"no skill named {', '.join(event.unknown)}" if event.unknown else "",
    PermissionDecided: lambda event: (
        f"{event.tool} {event.name or ''} was denied"
        if event.verdict == "deny"
        else f"running {event.name} {event.script}"
        if event.script
        else ""
    ),
}
"""The line that reports an event; an empty text reports nothing."""


@contextmanager
def interrupted_waits() -> Iterator[None]:
    """Interrupt every wait at short intervals, for a Ctrl-C that came just before it began.

    Python handles a signal between two instructions, or when it interrupts a system call. A signal that comes after
    the last instruction and before the call would be handled only after the next key.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, _WAKE_SECONDS, _WAKE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
