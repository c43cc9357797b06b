"""What each command does, once its words are understood.

Imports stand inside the functions: a command loads what it needs and nothing else.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skillshelf.core.console import PathDisplay, as_json, note
from skillshelf.errors import DONE, NEGATIVE, ConfigurationError, SkillDirectoryNotFound, SkillNotFound

if TYPE_CHECKING:
    from skillshelf.config.settings import Trust
    from skillshelf.core.environment import Environment
    from skillshelf.lint.check import Mode
    from skillshelf.session.session import Session
    from skillshelf.shelf import Shelf

__all__ = [
    "DONE",
    "NEGATIVE",
    "Values",
    "chat",
    "check",
    "list_skills",
    "mcp",
    "needed",
    "new",
    "overview",
    "pick",
    "profile",
    "prompt",
    "read",
    "run",
    "search",
    "shelf_for",
    "show",
    "tools",
]


Values = Mapping[str, Any]


def overview(values: Values) -> int:
    """One screen about this place."""
    from skillshelf.cli import views
    from skillshelf.core.console import screen, write
    from skillshelf.core.environment import user_config_path

    shelf = shelf_for(values)
    if values["json"]:
        write(as_json(shelf.catalog.to_dict()))
        return DONE
    where = PathDisplay(shelf.environment.cwd, shelf.environment.home)
    path = user_config_path(shelf.environment)
    write(views.overview(shelf.catalog, where, screen(shelf.environment.env), config_path=path))
    return DONE


def list_skills(values: Values) -> int:
    """The catalog."""
    from skillshelf.cli import views
    from skillshelf.config.profile import scopes_of
    from skillshelf.core.console import screen, write

    shelf = shelf_for(values)
    catalog = shelf.scan(account=values["all"])
    if scope := values["scope"]:
        scopes = scopes_of(shelf.profile)
        if scope not in scopes:
            known = ", ".join(scopes)
            raise ConfigurationError(f"no scope {scope!r} in profile {catalog.profile}; there are: {known}")
        catalog = catalog._replace(skills=tuple(skill for skill in catalog.skills if skill.scope == scope))
    if values["json"]:
        write(as_json(catalog.to_dict()))
    else:
        where = PathDisplay(shelf.environment.cwd, shelf.environment.home)
        write(views.list_view(catalog, where, screen(shelf.environment.env), everything=values["all"]))
    return DONE


def search(values: Values) -> int:
    """The skills that fit a query."""
    from skillshelf.core.console import screen, write

    if values["query"] is None:
        raise ConfigurationError("something is missing; usage: skillshelf search QUERY")
    shelf = shelf_for(values)
    limit = _whole_number(values["limit"], "--limit")
    report = shelf.search(values["query"], limit=limit, scope=values["scope"])
    for message in report.notes:
        note(message)
    if values["json"]:
        write(as_json(report.to_dict()))
    elif report.results:
        from skillshelf.cli.search_view import search_view
        from skillshelf.search.index import body_of

        write(search_view(report, screen(shelf.environment.env), body_of))
    if not report.results:
        from skillshelf.catalog.load import near_names
        from skillshelf.cli.search_view import nothing_found

        skills = [skill for skill in shelf.catalog.skills if values["scope"] in (None, skill.scope)]
        note(nothing_found(report, len(skills), near_names(values["query"], skills), values["scope"]))
    return DONE if report.results else NEGATIVE


def _whole_number(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    if not (text.isdecimal() and text.isascii() and int(text) > 0):
        raise ConfigurationError(f"{option} takes a whole number of at least 1, not {text!r}")
    return int(text)


def pick(values: Values) -> int:
    """A skill that a person chooses."""
    from skillshelf.cli.picker import command

    return command.pick(values, lambda: shelf_for(values))


def show(values: Values) -> int:
    """What a model would get of one skill."""
    from skillshelf.catalog.load import near_names
    from skillshelf.core.console import write, write_data, write_text

    shelf = shelf_for(values)
    wanted = needed(values, "name_or_path", "skillshelf show NAME-or-PATH")
    by_path = "/" in wanted or wanted in (".", "SKILL.md")
    arguments = values["args"] or ""
    if arguments and shelf.profile.arguments == "none":
        note(f"skills take no words in profile {shelf.profile.name}; --args changes nothing")
    with _session(shelf, values) as session:
        try:
            shown = session.load(None if by_path else wanted, path=wanted if by_path else None, arguments=arguments)
        except SkillNotFound as error:
            error.near = tuple(near_names(error.name, shelf.catalog.skills))
            raise
    if values["json"]:
        raw = {"text": shown.loaded.data.decode("utf-8")} if values["raw"] else {}
        write(as_json({**shown.to_dict(), **raw}))
    else:
        if values["raw"]:
            write_data(shown.loaded.data)
        else:
            write_text(shown.text)
        for warning in shown.warnings:
            note(f"{warning.message} ({warning.path})")
    return DONE


def read(values: Values) -> int:
    """One file of a skill."""
    from base64 import b64decode

    from skillshelf.catalog.load import near_names
    from skillshelf.core.console import write, write_data, write_text

    shelf = shelf_for(values)
    uri = needed(values, "uri", "skillshelf read skill://NAME/PATH")
    try:
        if values["journal"] or values["keep"]:
            with _session(shelf, values) as session:
                resource = session.read(uri)
        else:
            resource = shelf.read(uri)
    except SkillNotFound as error:
        error.near = tuple(near_names(error.name, shelf.catalog.skills))
        raise
    if values["json"]:
        write(as_json(resource._asdict()))
    elif resource.encoding == "utf-8":
        write_text(resource.content)
    else:
        write_data(b64decode(resource.content))
    return DONE


def run(values: Values) -> int:
    """A script of a skill, after somebody said yes."""
    from skillshelf.catalog.load import near_names
    from skillshelf.core.console import can_ask, exit_on_signals, write, write_piece

    shelf = shelf_for(values)
    usage = "skillshelf run NAME SCRIPT [ARGS ...]"
    name, script = needed(values, "name", usage), needed(values, "script", usage)
    exit_on_signals()
    with _session(shelf, values, confirm=_ask if can_ask() else None) as session:
        try:
            done, result = session.run(
                name, script, values["args"] or (), on_output=None if values["json"] else write_piece
            )
        except SkillNotFound as error:
            error.near = tuple(near_names(error.name, shelf.catalog.skills))
            raise
    if values["json"]:
        write(as_json({**result.data, "reason": done.reason, "files": list(done.files)}))
    if done.truncated:
        kept = f"; all of it is in {done.artifact}" if values["journal"] else "; --journal FILE keeps all of it"
        note(f"the output was cut{kept}")
    if done.exit_code == 0:
        return DONE
    note(f"{result.data['script']} ended with exit code {done.exit_code}" + (f": {done.reason}" if done.reason else ""))
    return NEGATIVE


def _ask(tool: str, name: str, reason: str) -> bool:
    """Ask the person at the terminal."""
    from skillshelf.core.console import ask
    from skillshelf.core.text import visible

    return ask(f"{visible(name)}: {visible(reason)}\nRun it in a sandbox? [y/N] ")


@contextmanager
def _session(shelf: "Shelf", values: Values, **options: Any) -> Iterator["Session"]:
    """A session for one command, recorded where `--journal` says; what could not be recorded is said at its end."""
    journal = os.path.abspath(values["journal"]) if values["journal"] else None
    session = shelf.session(journal=journal, keep=values["keep"], **options)
    try:
        with session:
            yield session
    finally:
        # Whether the command is done or failed: nobody may take the journal for complete.
        for told in filter(None, (session.journal_problem, session.journal_notice)):
            note(told)


def prompt(values: Values) -> int:
    """The catalog as a model is told of it."""
    from skillshelf.core.console import write, write_text

    shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
    text = shelf.session().catalog_text()
    _held_back(shelf)
    if values["json"]:
        counts = {"entries": text.entries, "omitted": text.omitted, "truncated": text.truncated}
        write(as_json({"text": text.text, "chars": text.chars, "tokens": text.tokens, **counts}))
    else:
        write_text(text.text)
    return DONE


def tools(values: Values) -> int:
    """The tools a model is offered."""
    from skillshelf.cli import views
    from skillshelf.core.console import screen, write

    shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
    offered = shelf.session().tools()
    _held_back(shelf)
    if values["json"]:
        write(as_json([tool.to_dict() for tool in offered]))
    else:
        write(views.tools_view(offered, screen(shelf.environment.env)))
    return DONE


def mcp(values: Values) -> int:
    """Serve the skills over the Model Context Protocol."""
    import gc

    # What is made until the server runs stays as long as it does; to look through it again and again for what can go
    # takes a third of the start.
    gc.disable()
    try:
        serve = _mcp_server()
        shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
        _held_back(shelf)
        gc.freeze()
    finally:
        gc.enable()
    serve(shelf, values)
    return DONE


def _mcp_server() -> "Callable[[Shelf, Values], None]":
    try:
        from skillshelf.servers.mcp.command import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("skillshelf"):
            raise
        wanted = "pip install 'skillshelf[mcp]'"
        raise ConfigurationError(f"this needs the package {error.name}; install it with: {wanted}") from None
    return serve


def chat(values: Values) -> int:
    """A small agent with skills."""
    from skillshelf.cli import chat as chats

    shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
    _held_back(shelf)
    return chats.chat(shelf, values)


def check(values: Values) -> int:
    """What is wrong with skills, for those who write them."""
    from skillshelf.core.console import screen, write
    from skillshelf.lint.check import check_targets, in_paths, in_roots
    from skillshelf.lint.report import FORMATS, Reader

    shelf = shelf_for(values)
    form = _report_form(values, list(FORMATS))
    targets = in_paths(values["path"], shelf) if values["path"] else in_roots(shelf)
    mode: Mode = "fix" if values["fix"] else "diff" if values["diff"] else "look"
    report = check_targets(targets, shelf.profile, mode=mode, progress=shelf.progress)
    where = PathDisplay(shelf.environment.cwd, shelf.environment.home)
    reader = Reader(where, screen(shelf.environment.env), shelf.profile, shelf.project_root, tuple(values["path"]))
    write(FORMATS[form](report, reader))
    for change in report.changes:
        if change.refusal:
            note(f"{change.path} {'was not' if mode == 'fix' else 'cannot be'} repaired: {change.refusal}")
    return DONE if report.is_clean else NEGATIVE


def _report_form(values: Values, known: list[str]) -> str:
    given = values["format"] or ("json" if values["json"] else "text")
    if given not in known:
        raise ConfigurationError(f"no format {given!r}; there are: {', '.join(known)}")
    if values["json"] and given != "json":
        raise ConfigurationError(f"--json and --format {given} exclude each other")
    return str(given)


def new(values: Values) -> int:
    """Make a skill."""
    from skillshelf.core.console import write
    from skillshelf.lint import scaffold

    shelf = shelf_for(values)
    wish = scaffold.NewSkillOptions(
        name=needed(values, "name", "skillshelf new NAME"),
        description=values["description"],
        scripts=values["scripts"],
        references=values["references"],
        assets=values["assets"],
    )
    made = scaffold.make(wish, shelf, root=values["root"], user=values["user"])
    for message in made.notes:
        note(message)
    if values["json"]:
        write(as_json(made.to_dict()))
    else:
        write(scaffold.told(made, PathDisplay(shelf.environment.cwd, shelf.environment.home)))
    return DONE


def profile(values: Values) -> int:
    """Every field of a profile, or every profile."""
    from skillshelf.cli import views
    from skillshelf.config.profile import profile_to_dict
    from skillshelf.config.settings import load_settings
    from skillshelf.config.systems import SYSTEMS, find_profile
    from skillshelf.core.console import screen, write

    environment = environment_for(values)
    if not os.path.isdir(environment.cwd):
        raise SkillDirectoryNotFound(environment.cwd)
    settings = load_settings(environment, trust="ask")
    known = {**SYSTEMS, **settings.profiles}
    name = values["name"] or values["profile"]
    if name is None:
        write(as_json(list(known)) if values["json"] else views.profiles_view(known, screen(environment.env)))
        return DONE
    found = find_profile(name, settings.profiles)
    write(as_json(profile_to_dict(found)) if values["json"] else views.profile_view(found, screen(environment.env)))
    return DONE


def environment_for(values: Values) -> "Environment":
    """The place that the words of a command name."""
    from skillshelf.core.environment import make_environment

    return make_environment(values["cwd"], values["home"], None, config=_config(values))


def shelf_for(values: Values, *, trust: "Trust" = "ask") -> "Shelf":
    """The shelf that the words of a command ask for."""
    from skillshelf.shelf import open_shelf

    shelf = open_shelf(
        cwd=values["cwd"],
        profile=values["profile"],
        home=values["home"],
        config=_config(values),
        use_cache=not values["no_cache"],
        trust=trust,
    )
    shelf.progress = sys.stderr
    return shelf


def _config(values: Values) -> str | None:
    """The configuration file, from where the command was typed and not from `--cwd`."""
    return os.path.abspath(values["config"]) if values["config"] else None


def needed(values: Values, key: str, usage: str) -> str:
    """A word that a command cannot do without."""
    value = values[key]
    if not value:
        raise ConfigurationError(f"something is missing; usage: {usage}")
    return os.fspath(value)


def _held_back(shelf: "Shelf") -> None:
    """Say how many skills a model is not told of because nobody trusts their folder."""
    from skillshelf.core.text import plural

    held = sum(skill.hidden == "untrusted" for skill in shelf.catalog.skills)
    if held:
        note(
            f"{plural(held, 'skill')} of this project held back; to allow it once: --trust, "
            f"always: skillshelf trust {shelf.project_root}"
        )
