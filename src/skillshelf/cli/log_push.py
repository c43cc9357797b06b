"""Send a journal to a team server: by `log push`, and at the end of a command if the user's own file says so."""

import os
import time

from skillshelf.cli.commands import Values
from skillshelf.cli.host_commands import environment_of
from skillshelf.config.settings import load_settings
from skillshelf.core.console import as_json, note, write
from skillshelf.core.environment import Environment
from skillshelf.core.http_client import HttpClient, bearer_token
from skillshelf.core.limits import JOURNAL_PUSH_SECONDS
from skillshelf.core.text import plural, visible
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError, FileReadError, ResourceNotFound, SkillError
from skillshelf.journal.file import exact_lines, in_words
from skillshelf.journal.push import JournalPush, JournalServer, machine_id, push_journal, stream_of
from skillshelf.journal.sent_lines import sent_line

__all__ = ["head_on_server", "push", "push_recorded"]


def push(path: str, values: Values) -> int:
    """Send the lines of a journal that a server does not have."""
    if len(values["files"]) != 2:
        raise ConfigurationError("log push takes the address of a server and one journal: log push URL FILE")
    url, file = values["files"]
    environment = environment_of(values)
    settings = load_settings(environment, trust="ask")
    server = _server(url, values, environment, settings.journal_token_file)
    path = os.path.abspath(file)
    try:
        done = push_journal(path, server, content=settings.journal_content, machine=machine_id())
    except FileNotFoundError:
        raise ResourceNotFound(path) from None
    except OSError as error:
        raise FileReadError(path, OSError(in_words(error))) from None
    if values["json"]:
        write(as_json(done.to_dict()))
    else:
        write(f"{_sentence(done)}\n")
    if done.content == "digest" and settings.journal_content != "digest" and done.stored:
        note("the server takes sizes and digests only; arguments and output were not sent")
    if done.problem:
        note(f"{visible(file)}: {done.problem}")
    return NEGATIVE if done.problem else DONE


def _sentence(done: JournalPush) -> str:
    if done.acknowledged is None:
        return "nothing to send" if done.problem is None else "nothing was sent"
    return f"sent {plural(done.stored, 'line')}; the server has all up to seq {done.acknowledged} of {done.stream}"


def _server(url: str, values: Values, environment: Environment, token_file: str | None) -> JournalServer:
    token = bearer_token(os.path.abspath(values["token_file"]) if values["token_file"] else token_file, environment.env)
    client = HttpClient(url, environment, allow_http=values["allow_http"], netrc=False)
    return JournalServer(url, client, token)


def head_on_server(path: str, values: Values) -> str | None:
    """Return the sum of the last line that a server has of a journal; None if it has none."""
    environment = environment_of(values)
    settings = load_settings(environment, trust="ask")
    server = _server(values["server"], values, environment, settings.journal_token_file)
    first = sent_line(next(exact_lines(path), None) or b"")
    return server.state(stream_of(path, first, keep=False)).head if not isinstance(first, str) else None


def push_recorded(values: Values) -> None:
    """Send the journal of a command that has ended, if the user's own file has `journal.push`.

    It takes a bounded time, and a failure is one line: what was not sent is sent by the next push.
    """
    try:
        environment = environment_of(values)
        settings = load_settings(environment, trust="ask")
        url = settings.journal_push
        if url is None:
            return
        token = bearer_token(settings.journal_token_file, environment.env)
        seconds = {"seconds": JOURNAL_PUSH_SECONDS, "limit": "JOURNAL_PUSH_SECONDS"}
        client = HttpClient(url, environment, allow_http=True, netrc=False, **seconds)  # type: ignore[arg-type]
        server = JournalServer(url, client, token, tries=2, deadline=time.monotonic() + JOURNAL_PUSH_SECONDS)
        path = os.path.abspath(values["journal"])
        done = push_journal(path, server, content=settings.journal_content, machine=machine_id())
        if done.problem:
            note(f"the journal was not sent whole: {done.problem}")
    except FileNotFoundError:
        # Nothing was recorded.
        return
    except (SkillError, OSError) as error:
        reason = in_words(error) if isinstance(error, OSError) else str(error)
        note(f"the journal was not sent (`skillshelf log push` sends it later): {reason}")
