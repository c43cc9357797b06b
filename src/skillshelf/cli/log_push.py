"""Send a journal to a team server, by `log push` or at the end of a command, and verify what a server has."""

import os
import re
import time

from skillshelf.cli.commands import Values
from skillshelf.cli.host_commands import environment_of
from skillshelf.config.settings import load_settings
from skillshelf.core import files
from skillshelf.core.console import Screen, as_json, note, screen, write
from skillshelf.core.environment import Environment
from skillshelf.core.http_client import HttpClient, bearer_token
from skillshelf.core.limits import JOURNAL_PUSH_SECONDS
from skillshelf.core.text import plural, visible
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError, FileReadError, ResourceNotFound, SkillError
from skillshelf.journal.file import exact_lines, in_words
from skillshelf.journal.push import (
    JournalPush,
    JournalServer,
    KnownStream,
    emptied_stream,
    known_stream,
    machine_id,
    push_journal,
)
from skillshelf.journal.sent_lines import sent_line
from skillshelf.journal.stored_chain import StoredVerification, verify_stored

__all__ = ["push", "push_recorded", "stream_on_server", "verify_on_server"]


def push(path: str, values: Values) -> int:
    """Send the lines of a journal that a server does not have."""
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


def stream_on_server(path: str, values: Values) -> KnownStream | None:
    """Return the stream of a journal and what the server of `--server` has of it; None if it has nothing."""
    first, server = sent_line(next(exact_lines(path), None) or b""), _named_server(values)
    return emptied_stream(path, server) if isinstance(first, str) else known_stream(path, first, server, keep=False)


def _named_server(values: Values) -> JournalServer:
    environment = environment_of(values)
    settings = load_settings(environment, trust="ask")
    return _server(values["server"], values, environment, settings.journal_token_file)


def verify_on_server(values: Values) -> int:
    """Verify the chain of the journal that `--stream` names, or of `all`, as the server of `--server` stores it."""
    server, named = _named_server(values), values["stream"]
    if named != "all" and not re.fullmatch("[0-9a-f]{16,64}", named):
        raise ConfigurationError("--stream needs the id of a journal, 16 to 64 hex digits, or all")
    found = []
    for stream in server.streams() if named == "all" else [named]:
        state = server.state(stream)
        one = verify_stored(stream, server.lines(stream), acknowledged=state.acknowledged, head=state.head)
        found.append(one)
        if not values["json"]:
            write(_stored_view(one, screen(os.environ)))
    is_ok = all(one.ok for one in found)
    if values["json"]:
        write(as_json({"server": values["server"], "ok": is_ok, "streams": [one.to_dict() for one in found]}))
    elif not found:
        write("The server has no journal.\n")
    return DONE if is_ok else NEGATIVE


def _stored_view(found: StoredVerification, screen: Screen) -> str:
    """Return the verdict about one journal, and each problem with its line."""
    verdict = screen.paint("unchanged", "green") if found.ok else screen.paint("not as it was written", "red")
    size = plural(found.lines, "line") if found.lines else "no line is kept"
    parts = [
        f"{number:,} {what}" for number, what in ((found.reduced, "reduced"), (found.removed, "removed")) if number
    ]
    lines = [f"{found.stream}: {verdict}, {size}" + (f" ({', '.join(parts)})" if parts else "")]
    if found.first_seq:
        lines.append(
            f"The beginning is missing, it begins with seq {found.first_seq}: the lines before it were removed, by "
            "retention or in the database, or were never sent."
        )
    rows = [(f"seq {p.seq}" if p.seq is not None else f"line {p.line}", p.kind, p.detail) for p in found.problems]
    lines += screen.table(rows, (None, "red", None), indent=2, wrap=True)
    return "\n".join(lines) + "\n"


def push_recorded(values: Values) -> None:
    """Send the journal of a command that has ended, if the user's own file has `journal.push`.

    It takes a bounded time, and a failure is one line: what was not sent is sent by the next push.
    """
    path = os.path.abspath(values["journal"])
    if files.kind_at(path) is None:
        # Nothing was recorded.
        return
    try:
        environment = environment_of(values)
        settings = load_settings(environment, trust="ask")
        url = settings.journal_push
        if url is None:
            return
        token = bearer_token(settings.journal_token_file, environment.env)
        deadline = time.monotonic() + JOURNAL_PUSH_SECONDS
        client = HttpClient(
            url,
            environment,
            allow_http=True,
            seconds=JOURNAL_PUSH_SECONDS,
            limit="JOURNAL_PUSH_SECONDS",
            deadline=deadline,
            netrc=False,
        )
        server = JournalServer(url, client, token, tries=2, deadline=deadline)
        done = push_journal(path, server, content=settings.journal_content, machine=machine_id())
        if done.problem:
            note(f"the journal was not sent whole: {done.problem}")
    except (SkillError, OSError) as error:
        reason = in_words(error) if isinstance(error, OSError) else str(error)
        note(f"the journal was not sent (`skillshelf log push` sends it later): {reason}")
