"""Run the commands: each one opens a shelf, does its work and prints the result.

Imports are inside the functions, so that a command loads only what it needs.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skillshelf.core.console import PathDisplay, as_json, note, screen, write, write_data, write_text
from skillshelf.core.text import TRUST_FOR_MODELS, did_you_mean
from skillshelf.errors import (
    DONE,
    NEGATIVE,
    ConfigurationError,
    PermissionDenied,
    ResourceNotFound,
    SkillDirectoryNotFound,
    SkillError,
)

if TYPE_CHECKING:
    from skillshelf.config.settings import Trust
    from skillshelf.core.environment import Environment
    from skillshelf.core.values import Catalog
    from skillshelf.session.session import Session
    from skillshelf.shelf import Shelf

__all__ = [
    "DONE",
    "NEGATIVE",
    "Values",
    "chat",
    "digest",
    "list_skills",
    "mcp",
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


def list_skills(values: Values) -> int:
    """Print the catalog."""
    from skillshelf.cli import views
    from skillshelf.config.profile import scopes_of

    shelf = shelf_for(values)
    catalog = shelf.scan(account=values["all"])
    if scope := values["scope"]:
        scopes = scopes_of(shelf.profile)
        if scope not in scopes:
            hint = f"{did_you_mean(scope, scopes)} (known: {', '.join(scopes)})"
            raise ConfigurationError(f"unknown scope {scope!r} in profile {catalog.profile}{hint}")
        catalog = catalog._replace(skills=tuple(skill for skill in catalog.skills if skill.scope == scope))
    if values["json"]:
        write(as_json(catalog.to_dict()))
    else:
        display = screen(shelf.environment.env)
        wanted = views.ListOptions(values["all"], scope, _options(values), _command_to_trust(shelf, values))
        write(views.list_view(catalog, _paths(shelf), display, wanted))
        _note_outside(shelf, values, catalog)
    return DONE


def _options(values: Values) -> str:
    """Return the options that a command in a hint needs to see the same skills."""
    from skillshelf.cli.outside import shared_options

    return shared_options(values)


def _command_to_trust(shelf: "Shelf", values: Values) -> str:
    """Return the command that trusts the project of a shelf, from wherever the command that ran was typed."""
    from skillshelf.cli.command_table import command_again

    root = shelf.project_root
    return command_again(values, "trust", dir=root if root != shelf.environment.cwd else None)


def _note_outside(shelf: "Shelf", values: Values, catalog: "Catalog", command: str = "") -> None:
    """Say on a terminal how many skills of the machine a view of a catalog does not show."""
    from skillshelf.cli.outside import is_on_terminal, note_outside, paths_in

    if not values["json"] and is_on_terminal():
        custom = shelf.settings.custom_directories
        note_outside(values, shelf.environment, custom, lambda: paths_in(catalog), command)


def search(values: Values) -> int:
    """Print the skills that fit a query."""
    shelf = shelf_for(values, learn=None)
    if values["everywhere"]:
        from skillshelf.cli.outside import everywhere

        shelf = everywhere(shelf, values)
    limit = values["limit"]
    if limit is not None and not (limit.isdecimal() and limit.isascii() and int(limit) > 0):
        raise ConfigurationError(f"--limit takes a whole number of at least 1, not {limit!r}")
    report = shelf.search(values["query"], limit=limit and int(limit), scope=values["scope"])
    for message in report.notes:
        note(message)
    if report.weak and report.results and not values["json"]:
        note("no skill clearly fits; these are the closest")
    if values["json"]:
        write(as_json(report.to_dict()))
    elif report.results:
        from skillshelf.cli.search_view import search_view
        from skillshelf.search.index import body_of

        where = _paths(shelf) if values["everywhere"] else None
        write(search_view(report, screen(shelf.environment.env), body_of, where))
    if not report.results:
        from skillshelf.catalog.load import near_names
        from skillshelf.cli.search_view import nothing_found
        from skillshelf.config.system_policy import is_banned

        found = (skill for skill in shelf.catalog.skills if not is_banned(skill.hidden_by))
        skills = [skill for skill in found if values["scope"] in (None, skill.scope)]
        near = near_names(values["query"], skills)
        note(nothing_found(report, len(skills), near, values["scope"], options=_options(values)))
    if not values["everywhere"]:
        from skillshelf.cli.command_table import command_again

        _note_outside(shelf, values, shelf.catalog, command_again(values, "search", everywhere=True))
        if report.results and shelf.settings.learn is None and not values["json"]:
            _offer_to_learn(shelf)
    return DONE if report.results else NEGATIVE


_OFFER = (
    "Shall searches learn from use? A skill that you load after a search then ranks higher in similar ones. {file} "
    "keeps its path, the time, and the words of the search as salted hashes; nothing leaves this machine, and "
    "`skillshelf usage --clear` removes it. [y/N]"
)


def _offer_to_learn(shelf: "Shelf") -> None:
    """Ask the person at a terminal once whether searches may learn from use; the answer goes to the user's file."""
    from skillshelf.cli.outside import is_on_terminal
    from skillshelf.config.settings_edit import set_flag
    from skillshelf.core.console import ask_within, can_ask
    from skillshelf.core.environment import user_config_path
    from skillshelf.core.limits import USAGE_QUESTION_SECONDS
    from skillshelf.core.text import visible

    environment = shelf.environment
    if not (can_ask() and is_on_terminal()) or environment.env.get("CI") or shelf.profile.search_prior == "none":
        return
    from skillshelf.search.usage_history import usage_path

    file = usage_path(environment)
    if file is None or user_config_path(environment) is None:
        return
    question = _OFFER.format(file=_paths(shelf).short(file))
    lines = screen(environment.env).table([(question,)], (None,), wrap=True)
    answer = ask_within("\n" + "\n".join(lines) + " ", USAGE_QUESTION_SECONDS)
    if answer is None:
        return
    try:
        path = set_flag(environment, "search", "learn", value=answer)
    except SkillError as error:
        note(str(error))
        return
    note(f"wrote `search.learn = {str(answer).lower()}` to {visible(path)}")


def pick(values: Values) -> int:
    """Let a person choose a skill."""
    from skillshelf.cli.picker import command

    opened: list[Shelf] = []

    def open_one() -> "Shelf":
        opened[:] = [shelf_for(values)]
        # Every key searches: a server of embeddings would get each beginning of a word, and the list wait for it.
        opened[0].profile = opened[0].profile._replace(configured_scorer="ignored")
        return opened[0]

    status = command.pick(values, open_one, lambda shelf: _command_to_trust(shelf, values))
    # Standard output is often a pipe here.
    is_read = sys.stderr is not None and sys.stderr.isatty() and not values["json"]
    if opened and is_read and status in (DONE, NEGATIVE):
        from skillshelf.cli.outside import note_outside, paths_in

        shelf = opened[0]
        note_outside(values, shelf.environment, shelf.settings.custom_directories, lambda: paths_in(shelf.catalog))
    return status


def show(values: Values) -> int:
    """Print what a model gets when it loads a skill."""
    shelf = shelf_for(values, learn=None)
    wanted = values["name_or_path"]
    by_path = "/" in wanted or wanted in (".", "SKILL.md")
    arguments = values["args"] or ""
    if arguments and shelf.profile.arguments == "none":
        note(f"profile {shelf.profile.name} passes no arguments to skills; --args has no effect")
    with _session(shelf, values, person=True) as session:
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
    if (
        any(values[name] for name in ("journal", "keep", "rotate", "otlp", "otlp_content"))
        or shelf.settings.system.problem
    ):
        with _session(shelf, values, person=True) as session:
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

    shelf = shelf_for(values, person=False, learn=None)
    exit_on_signals()
    on_output = None if values["json"] else write_piece
    # Whoever names a digest has answered: about these files, and no others.
    confirm = _ask if can_ask() and values["yes"] is None else None
    with _session(shelf, values, confirm=confirm, policy=_run_policy(values["yes"])) as session:
        try:
            done, result = session.run(values["name"], values["script"], values["args"], on_output=on_output)
        except PermissionDenied as error:
            how = "" if confirm else _how_to_confirm(session, values)
            # The session says it for models, which are not told where the project lies.
            text = str(error)
            if text.endswith(f": {TRUST_FOR_MODELS}"):
                text = text.removesuffix(TRUST_FOR_MODELS) + _command_to_trust(shelf, values)
            raise PermissionDenied(f"{text}{how}") from None
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


def _run_policy(digest: str | None) -> Mapping[str, Any] | None:
    """Return the policy that allows scripts of a skill with these files."""
    if digest is None:
        return None
    return {"allow": [{"tool": "skill_run", "tree": digest}]}


def _how_to_confirm(session: "Session", values: Values) -> str:
    """Return how to run a script that was refused only because nobody confirmed it."""
    from skillshelf.catalog.load import resolve
    from skillshelf.catalog.tree import PROBLEMS, skill_tree
    from skillshelf.cli.command_table import command_again

    name, script = values["name"], values["script"]
    if session.decide("skill_run", {"name": name, "script": script}).verdict != "confirm":
        return ""
    tree = skill_tree(resolve(session.skills, name=name).real_dir)
    if tree.digest is None:
        return f"; it cannot be confirmed by a digest: {PROBLEMS[tree.problem] if tree.problem else 'unreadable files'}"
    differs = " and not the one of --yes" if values["yes"] else ""
    line = command_again(values, "run", yes=tree.digest)
    return f"; its files have the digest {tree.digest}{differs}, and to run exactly these: {line}"


def _ask(tool: str, name: str, reason: str) -> bool:
    """Ask the person at the terminal whether a script may run."""
    from skillshelf.core.console import ask
    from skillshelf.core.text import visible

    return ask(f"{visible(name)}: {visible(reason)}\nRun it in a sandbox? [y/N] ")


@contextmanager
def _session(shelf: "Shelf", values: Values, **options: Any) -> Iterator["Session"]:
    """Open a session for one command, recorded in `--journal`; report at its end what could not be recorded."""
    from skillshelf.session.recorder import recording_options

    # A command is no conversation: every load is whole.
    session = shelf.session(memory="none", **recording_options(values, owned=True), **options)
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
        _note_outside(shelf, values, shelf.catalog)
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
    from skillshelf.session.system_rules import require_served

    shelf = shelf_for(values, trust="all" if values["trust"] else "ask", learn=None)
    require_served(shelf)
    _note_hidden(shelf)
    return chats.chat(shelf, values)


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


def shelf_for(
    values: Values, *, trust: "Trust | None" = None, person: bool = True, learn: bool | None = False
) -> "Shelf":
    """Open the shelf that the options of a command name.

    Commands for models name a `trust`, and report what they hold back; the others report a project's file that
    cannot be used. Commands for a `person` report a system policy that cannot be used, and go on. Those that learn
    from use as the user's file says pass None as `learn`.
    """
    from skillshelf.shelf import open_shelf

    shelf = open_shelf(
        cwd=values["cwd"],
        profile=values["profile"],
        home=values["home"],
        config=_config(values),
        use_cache=not values["no_cache"],
        trust=trust or "ask",
        learn=learn,
    )
    shelf.progress = sys.stderr
    if trust is None and person and shelf.settings.system.problem:
        note(f"the system policy cannot be used, so no model is served: {shelf.settings.system.problem}")
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
