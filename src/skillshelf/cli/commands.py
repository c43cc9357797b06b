"""Run the commands: each one opens a shelf, does its work and prints the result.

Imports are inside the functions, so that a command loads only what it needs.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skillshelf.core.console import PathDisplay, as_json, note, screen, write, write_data, write_text
from skillshelf.errors import (
    DONE,
    NEGATIVE,
    ConfigurationError,
    ResourceNotFound,
    SkillDirectoryNotFound,
)

if TYPE_CHECKING:
    from skillshelf.config.settings import Trust
    from skillshelf.core.environment import Environment
    from skillshelf.lint.run import Mode
    from skillshelf.session.session import Session
    from skillshelf.shelf import Shelf

__all__ = [
    "DONE",
    "NEGATIVE",
    "Values",
    "chat",
    "check",
    "digest",
    "list_skills",
    "mcp",
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
    """Print one screen about this folder."""
    from skillshelf.cli import views
    from skillshelf.core.environment import user_config_path

    if values["version"]:
        from skillshelf import __version__

        write(f"skillshelf {__version__}\n")
        return DONE
    shelf = shelf_for(values)
    if values["json"]:
        write(as_json(shelf.catalog.to_dict()))
        return DONE
    path = user_config_path(shelf.environment)
    write(views.overview(shelf.catalog, _paths(shelf), screen(shelf.environment.env), config_path=path))
    return DONE


def list_skills(values: Values) -> int:
    """Print the catalog."""
    from skillshelf.cli import views
    from skillshelf.config.profile import scopes_of

    shelf = shelf_for(values)
    catalog = shelf.scan(account=values["all"])
    if scope := values["scope"]:
        scopes = scopes_of(shelf.profile)
        if scope not in scopes:
            known = ", ".join(scopes)
            raise ConfigurationError(f"unknown scope {scope!r} in profile {catalog.profile} (known: {known})")
        catalog = catalog._replace(skills=tuple(skill for skill in catalog.skills if skill.scope == scope))
    if values["json"]:
        write(as_json(catalog.to_dict()))
    else:
        write(views.list_view(catalog, _paths(shelf), screen(shelf.environment.env), everything=values["all"]))
    return DONE


def search(values: Values) -> int:
    """Print the skills that fit a query."""
    shelf = shelf_for(values)
    limit = values["limit"]
    if limit is not None and not (limit.isdecimal() and limit.isascii() and int(limit) > 0):
        raise ConfigurationError(f"--limit takes a whole number of at least 1, not {limit!r}")
    report = shelf.search(values["query"], limit=limit and int(limit), scope=values["scope"])
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


def pick(values: Values) -> int:
    """Let a person choose a skill."""
    from skillshelf.cli.picker import command

    return command.pick(values, lambda: shelf_for(values))


def show(values: Values) -> int:
    """Print what a model gets when it loads a skill."""
    shelf = shelf_for(values)
    wanted = values["name_or_path"]
    by_path = "/" in wanted or wanted in (".", "SKILL.md")
    arguments = values["args"] or ""
    if arguments and shelf.profile.arguments == "none":
        note(f"profile {shelf.profile.name} passes no arguments to skills; --args has no effect")
    with _session(shelf, values) as session:
        shown = session.load(None if by_path else wanted, path=wanted if by_path else None, arguments=arguments)
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


def digest(values: Values) -> int:
    """Print the digest of all files of a skill, without a limit of their number or size."""
    from skillshelf.catalog.load import SKILL_FILE
    from skillshelf.catalog.tree import PROBLEMS, skill_tree
    from skillshelf.core import files

    environment = environment_for(values)
    given = files.from_system(os.path.abspath(os.path.join(environment.cwd, files.from_system(values["path"]))))
    folder = os.path.dirname(given) if os.path.basename(given) == SKILL_FILE else given
    if files.kind_at(files.real_path(folder)) != "folder":
        raise ResourceNotFound(given)
    tree = skill_tree(files.real_path(folder), bounded=False)
    if values["json"]:
        counts = {"files": tree.files, "bytes": tree.size}
        write(as_json({"path": folder, "tree": tree.digest, **counts, "tree_problem": tree.problem}))
    elif tree.digest is not None:
        write(f"{tree.digest}\n")
    if tree.problem is not None:
        note(f"{folder}{' has no digest' if tree.digest is None else ''}: {PROBLEMS[tree.problem]}")
    return DONE if tree.digest is not None else NEGATIVE


def read(values: Values) -> int:
    """Print one file of a skill."""
    from base64 import b64decode

    shelf = shelf_for(values)
    if values["journal"] or values["keep"]:
        with _session(shelf, values) as session:
            resource = session.read(values["uri"])
    else:
        resource = shelf.read(values["uri"])
    if values["json"]:
        write(as_json(resource._asdict()))
    elif resource.encoding == "utf-8":
        write_text(resource.content)
    else:
        write_data(b64decode(resource.content))
    return DONE


def run(values: Values) -> int:
    """Run a script of a skill after the user confirmed it."""
    from skillshelf.core.console import can_ask, exit_on_signals, write_piece
    from skillshelf.sandbox.walls import described

    shelf = shelf_for(values)
    exit_on_signals()
    on_output = None if values["json"] else write_piece
    with _session(shelf, values, confirm=_ask if can_ask() else None) as session:
        done, result = session.run(values["name"], values["script"], values["args"], on_output=on_output)
    if values["json"]:
        write(as_json({**result.data, "reason": done.reason, "files": list(done.files)}))
    if done.truncated:
        whole = f"all of it is in {done.artifact}" if values["journal"] else "--journal FILE keeps all of it"
        note(f"the output was cut; {whole}")
    if done.missing:
        note(f"it ran without {described(done.missing)}")
    if done.exit_code == 0:
        return DONE
    reason = f": {done.reason}" if done.reason else ""
    note(f"{result.data['script']} ended with exit code {done.exit_code}{reason}")
    return NEGATIVE


def _ask(tool: str, name: str, reason: str) -> bool:
    """Ask the person at the terminal whether a script may run."""
    from skillshelf.core.console import ask
    from skillshelf.core.text import visible

    return ask(f"{visible(name)}: {visible(reason)}\nRun it in a sandbox? [y/N] ")


@contextmanager
def _session(shelf: "Shelf", values: Values, **options: Any) -> Iterator["Session"]:
    """Open a session for one command, recorded in `--journal`; report at its end what could not be recorded."""
    journal = os.path.abspath(values["journal"]) if values["journal"] else None
    # A command is no conversation: every load is whole.
    session = shelf.session(journal=journal, keep=values["keep"], memory="none", **options)
    try:
        with session:
            yield session
    finally:
        # After a failure too: an incomplete journal must not pass for a complete one.
        for problem in filter(None, (session.journal_problem, session.journal_notice)):
            note(problem)


def prompt(values: Values) -> int:
    """Print the catalog text that a model gets."""

    shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
    text = shelf.session().catalog_text()
    _note_hidden(shelf)
    if values["json"]:
        counts = {"entries": text.entries, "omitted": text.omitted, "truncated": text.truncated}
        write(as_json({"text": text.text, "chars": text.chars, "tokens": text.tokens, **counts}))
    else:
        write_text(text.text)
    return DONE


def tools(values: Values) -> int:
    """Print the tools that a model gets."""
    from skillshelf.cli import views

    shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
    offered = shelf.session().tools()
    _note_hidden(shelf)
    if values["json"]:
        write(as_json([tool.to_dict() for tool in offered]))
    else:
        write(views.tools_view(offered, screen(shelf.environment.env)))
    return DONE


def mcp(values: Values) -> int:
    """Serve the skills over the Model Context Protocol."""
    import gc

    from skillshelf.servers.mcp.command import require_extra, serve

    require_extra()
    # Objects created before the server runs live until it ends, so there is no garbage to look for.
    gc.disable()
    try:
        shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
        _note_hidden(shelf)
        gc.freeze()
    finally:
        gc.enable()
    serve(shelf, values)
    return DONE


def chat(values: Values) -> int:
    """Talk to a small agent with skills."""
    from skillshelf.cli import chat as chats

    shelf = shelf_for(values, trust="all" if values["trust"] else "ask")
    _note_hidden(shelf)
    return chats.chat(shelf, values)


def check(values: Values) -> int:
    """Check skills, and fix what is safe to fix."""
    from skillshelf.lint.report import FORMATS, ReportContext
    from skillshelf.lint.run import check_targets, in_paths, in_roots

    shelf = shelf_for(values)
    form = values["format"] or ("json" if values["json"] else "text")
    if form not in FORMATS:
        raise ConfigurationError(f"unknown format {form!r} (known: {', '.join(FORMATS)})")
    if values["json"] and form != "json":
        raise ConfigurationError(f"--json and --format {form} exclude each other")
    targets = in_paths(values["path"], shelf) if values["path"] else in_roots(shelf)
    mode: Mode = "fix" if values["fix"] else "diff" if values["diff"] else "look"
    report = check_targets(targets, shelf.profile, mode=mode, progress=shelf.progress)
    display = screen(shelf.environment.env)
    reader = ReportContext(_paths(shelf), display, shelf.profile, shelf.project_root, tuple(values["path"]))
    write(FORMATS[form](report, reader))
    for change in report.changes:
        if change.refusal:
            note(f"{change.path} {'was not' if mode == 'fix' else 'cannot be'} repaired: {change.refusal}")
    return DONE if report.is_clean else NEGATIVE


def profile(values: Values) -> int:
    """Print every field of a profile, or every profile."""
    from skillshelf.cli import views
    from skillshelf.config.builtin_profiles import SYSTEMS, find_profile
    from skillshelf.config.profile import profile_to_dict
    from skillshelf.config.settings import load_settings

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


def _paths(shelf: "Shelf") -> PathDisplay:
    return PathDisplay(shelf.environment.cwd, shelf.environment.home)


def environment_for(values: Values) -> "Environment":
    """Return the environment that the options of a command name."""
    from skillshelf.core.environment import make_environment

    return make_environment(values["cwd"], values["home"], None, config=_config(values))


def shelf_for(values: Values, *, trust: "Trust | None" = None) -> "Shelf":
    """Open the shelf that the options of a command name.

    Commands for models name a `trust`, and report what they hold back; the others report a project's file that
    cannot be used.
    """
    from skillshelf.shelf import open_shelf

    shelf = open_shelf(
        cwd=values["cwd"],
        profile=values["profile"],
        home=values["home"],
        config=_config(values),
        use_cache=not values["no_cache"],
        trust=trust or "ask",
    )
    shelf.progress = sys.stderr
    if trust is None and shelf.settings.stranger is not None and shelf.settings.stranger.problem:
        for warning in shelf.settings.warnings:
            note(f"{warning.path}: {warning.message}")
    return shelf


def _config(values: Values) -> str | None:
    """Return the configuration file; a relative path starts where the command was typed, not at `--cwd`."""
    return os.path.abspath(values["config"]) if values["config"] else None


def _note_hidden(shelf: "Shelf") -> None:
    """Report what models are not told because a folder is not trusted, or because the project's file says so."""
    if line := shelf.held_back.for_user():
        note(line)
