"""What each command does, once its words are understood.

Imports stand inside the functions: a command loads what it needs and nothing else.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skillshelf.errors import AmbiguousSkill, ConfigurationError, SkillDirectoryNotFound, SkillNotFound

if TYPE_CHECKING:
    from skillshelf.checking import Mode
    from skillshelf.config import Trust
    from skillshelf.session import Session
    from skillshelf.shelf import Shelf

__all__ = [
    "DONE",
    "chat",
    "check",
    "disable",
    "enable",
    "list_skills",
    "mcp",
    "new",
    "overview",
    "pick",
    "profile",
    "prompt",
    "read",
    "run",
    "search",
    "show",
    "tools",
    "trust",
]

DONE, NEGATIVE = 0, 1

Values = Mapping[str, Any]


def overview(values: Values) -> int:
    """One screen about this place."""
    from skillshelf import views
    from skillshelf.place import user_config_path
    from skillshelf.terminal import screen, write

    shelf = _open(values)
    if values["json"]:
        write(views.as_json(shelf.catalog.to_dict()))
        return DONE
    where = views.Where(shelf.place.cwd, shelf.place.home)
    path = user_config_path(shelf.place)
    write(views.overview(shelf.catalog, where, screen(shelf.place.env), config_path=path))
    return DONE


def list_skills(values: Values) -> int:
    """The catalog."""
    from skillshelf import views
    from skillshelf.profile import scopes_of
    from skillshelf.terminal import screen, write

    shelf = _open(values)
    catalog = shelf.scan(account=values["all"])
    if scope := values["scope"]:
        scopes = scopes_of(shelf.profile)
        if scope not in scopes:
            known = ", ".join(scopes)
            raise ConfigurationError(f"no scope {scope!r} in profile {catalog.profile}; there are: {known}")
        catalog = catalog._replace(skills=tuple(skill for skill in catalog.skills if skill.scope == scope))
    if values["json"]:
        write(views.as_json(catalog.to_dict()))
    else:
        where = views.Where(shelf.place.cwd, shelf.place.home)
        write(views.list_view(catalog, where, screen(shelf.place.env), everything=values["all"]))
    return DONE


def search(values: Values) -> int:
    """The skills that fit a query."""
    from skillshelf import views
    from skillshelf.terminal import screen, write

    if values["query"] is None:
        raise ConfigurationError("something is missing; usage: skillshelf search QUERY")
    shelf = _open(values)
    most = shelf.settings.max_limit
    limit = _whole_number(values["limit"], "--limit")
    report = shelf.search(values["query"], limit=limit, scope=values["scope"])
    notes = [*report.notes, *([f"--limit is at most {most}"] if limit is not None and limit > most else [])]
    for note in notes:
        _note(note)
    if values["json"]:
        write(views.as_json(report.to_dict()))
    elif report.results:
        from skillshelf.index import body_of
        from skillshelf.searchview import search_view

        write(search_view(report, screen(shelf.place.env), body_of))
    if not report.results:
        from skillshelf.loader import near_names
        from skillshelf.searchview import nothing_found

        skills = [skill for skill in shelf.catalog.skills if values["scope"] in (None, skill.scope)]
        _note(nothing_found(report, len(skills), near_names(values["query"], skills), values["scope"]))
    return DONE if report.results else NEGATIVE


def _whole_number(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    if not (text.isdecimal() and text.isascii() and int(text) > 0):
        raise ConfigurationError(f"{option} takes a whole number of at least 1, not {text!r}")
    return int(text)


def pick(values: Values) -> int:
    """A skill that a person chooses."""
    from skillshelf import pickcommand

    return pickcommand.pick(values, lambda: _open(values))


def show(values: Values) -> int:
    """What a model would get of one skill."""
    from skillshelf import views
    from skillshelf.loader import near_names
    from skillshelf.terminal import write, write_data, write_text

    shelf = _open(values)
    wanted = _needed(values, "name_or_path", "skillshelf show NAME-or-PATH")
    by_path = "/" in wanted or wanted in (".", "SKILL.md")
    arguments = values["args"] or ""
    if arguments and shelf.profile.arguments == "none":
        _note(f"skills take no words in profile {shelf.profile.name}; --args changes nothing")
    with _session(shelf, values) as session:
        try:
            shown = session.load(None if by_path else wanted, path=wanted if by_path else None, arguments=arguments)
        except SkillNotFound as error:
            error.near = tuple(near_names(error.name, shelf.catalog.skills))
            raise
    if values["json"]:
        raw = {"text": shown.loaded.data.decode("utf-8")} if values["raw"] else {}
        write(views.as_json({**shown.to_dict(), **raw}))
    else:
        if values["raw"]:
            write_data(shown.loaded.data)
        else:
            write_text(shown.text)
        for warning in shown.warnings:
            _note(f"{warning.message} ({warning.path})")
    return DONE


def read(values: Values) -> int:
    """One file of a skill."""
    from base64 import b64decode

    from skillshelf import views
    from skillshelf.loader import near_names
    from skillshelf.terminal import write, write_data, write_text

    shelf = _open(values)
    uri = _needed(values, "uri", "skillshelf read skill://NAME/PATH")
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
        write(views.as_json(resource._asdict()))
    elif resource.encoding == "utf-8":
        write_text(resource.content)
    else:
        write_data(b64decode(resource.content))
    return DONE


def run(values: Values) -> int:
    """A script of a skill, after somebody said yes."""
    from skillshelf import views
    from skillshelf.loader import near_names
    from skillshelf.terminal import can_ask, heed_requests_to_end, write, write_piece

    shelf = _open(values)
    usage = "skillshelf run NAME SCRIPT [ARGS ...]"
    name, script = _needed(values, "name", usage), _needed(values, "script", usage)
    heed_requests_to_end()
    with _session(shelf, values, confirm=_ask if can_ask() else None) as session:
        try:
            done, result = session.run(
                name, script, values["args"] or (), on_output=None if values["json"] else write_piece
            )
        except SkillNotFound as error:
            error.near = tuple(near_names(error.name, shelf.catalog.skills))
            raise
    if values["json"]:
        write(views.as_json({**result.data, "reason": done.reason, "files": list(done.files)}))
    if done.truncated:
        kept = f"; all of it is in {done.artifact}" if values["journal"] else "; --journal FILE keeps all of it"
        _note(f"the output was cut{kept}")
    if done.exit_code == 0:
        return DONE
    _note(
        f"{result.data['script']} ended with exit code {done.exit_code}" + (f": {done.reason}" if done.reason else "")
    )
    return NEGATIVE


def _ask(tool: str, name: str, reason: str) -> bool:
    """Ask the person at the terminal."""
    from skillshelf.terminal import ask
    from skillshelf.text import visible

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
            _note(told)


def prompt(values: Values) -> int:
    """The catalog as a model is told of it."""
    from skillshelf import views
    from skillshelf.terminal import write, write_text

    shelf = _open(values, trust="all" if values["trust"] else "ask")
    text = shelf.session().catalog_text()
    _held_back(shelf)
    if values["json"]:
        counts = {"entries": text.entries, "omitted": text.omitted, "truncated": text.truncated}
        write(views.as_json({"text": text.text, "chars": text.chars, "tokens": text.tokens, **counts}))
    else:
        write_text(text.text)
    return DONE


def tools(values: Values) -> int:
    """The tools a model is offered."""
    from skillshelf import views
    from skillshelf.terminal import screen, write

    shelf = _open(values, trust="all" if values["trust"] else "ask")
    offered = shelf.session().tools()
    _held_back(shelf)
    if values["json"]:
        write(views.as_json([tool.to_dict() for tool in offered]))
    else:
        write(views.tools_view(offered, screen(shelf.place.env)))
    return DONE


def mcp(values: Values) -> int:
    """Serve the skills over the Model Context Protocol."""
    import gc

    # What is made until the server runs stays as long as it does; to look through it again and again for what can go
    # takes a third of the start.
    gc.disable()
    try:
        serve = _mcp_server()
        shelf = _open(values, trust="all" if values["trust"] else "ask")
        _held_back(shelf)
        gc.freeze()
    finally:
        gc.enable()
    serve(shelf, values)
    return DONE


def _mcp_server() -> "Callable[[Shelf, Values], None]":
    try:
        from skillshelf.mcp_server.command import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("skillshelf"):
            raise
        wanted = "pip install 'skillshelf[mcp]'"
        raise ConfigurationError(f"this needs the package {error.name}; install it with: {wanted}") from None
    return serve


def chat(values: Values) -> int:
    """A small agent with skills."""
    from skillshelf import chat as chats

    shelf = _open(values, trust="all" if values["trust"] else "ask")
    _held_back(shelf)
    return chats.chat(shelf, values)


def check(values: Values) -> int:
    """What is wrong with skills, for those who write them."""
    from skillshelf import reports, views
    from skillshelf.checking import check_targets
    from skillshelf.targets import in_paths, in_roots
    from skillshelf.terminal import screen, write

    shelf = _open(values)
    form = _report_form(values, list(reports.FORMATS))
    targets = in_paths(values["path"], shelf) if values["path"] else in_roots(shelf)
    mode: Mode = "fix" if values["fix"] else "diff" if values["diff"] else "look"
    report = check_targets(targets, shelf.profile, mode=mode, progress=shelf.progress)
    where = views.Where(shelf.place.cwd, shelf.place.home)
    reader = reports.Reader(where, screen(shelf.place.env), shelf.profile, shelf.project_root, tuple(values["path"]))
    write(reports.FORMATS[form](report, reader))
    for change in report.changes:
        if change.refusal:
            _note(f"{change.path} was not repaired: {change.refusal}")
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
    from skillshelf import scaffold, views
    from skillshelf.terminal import write

    shelf = _open(values)
    wish = scaffold.Wish(
        name=_needed(values, "name", "skillshelf new NAME"),
        description=values["description"],
        scripts=values["scripts"],
        references=values["references"],
        assets=values["assets"],
    )
    made = scaffold.make(wish, shelf, root=values["root"], user=values["user"])
    for note in made.notes:
        _note(note)
    if values["json"]:
        write(views.as_json(made.to_dict()))
    else:
        write(scaffold.told(made, views.Where(shelf.place.cwd, shelf.place.home)))
    return DONE


def enable(values: Values) -> int:
    """Take a skill off the list of disabled ones."""
    name = _needed(values, "name", "skillshelf enable NAME")
    spellings = _spellings(name, _open(values))
    status = _choose(
        values, name, lambda names: [other for other in names if other not in spellings], "enabled", "was not disabled"
    )
    if any(
        skill.hidden == "disabled" and {skill.name, skill.dir} & spellings for skill in _open(values).catalog.skills
    ):
        _note(f"{name} is still disabled, by the project's configuration or by its name; see skills.disabled there")
    return status


def _spellings(name: str, shelf: "Shelf") -> set[str]:
    """What a list may call the skills that somebody means by a name or a path."""
    from skillshelf.place import expand

    meant = {name, expand(name, shelf.place, base=shelf.place.cwd)} if "/" in name else {name}
    for skill in shelf.catalog.skills:
        paths = {skill.path, skill.dir, skill.real_path, os.path.dirname(skill.real_path)}
        if skill.name == name or paths & meant:
            meant |= paths
    return meant


def disable(values: Values) -> int:
    """Put a skill on the list of disabled ones."""
    name = _needed(values, "name", "skillshelf disable NAME")
    listed = _disabled_path(name, values) if "/" in name else _disabled_name(name, values)
    return _choose(
        values, listed, lambda names: names if listed in names else [*names, listed], "disabled", "was disabled already"
    )


def _disabled_path(path: str, values: Values) -> str:
    """The folder of the skill at a path, as a list must name it to be understood from everywhere."""
    from skillshelf import files
    from skillshelf.place import expand, locate

    place = locate(values["cwd"], values["home"], None)
    folder = expand(files.from_system(path), place, base=place.cwd)
    folder = os.path.dirname(folder) if os.path.basename(folder) == "SKILL.md" else folder
    if files.kind_at(f"{folder}/SKILL.md") is None:
        raise SkillNotFound(path)
    return folder


def _disabled_name(name: str, values: Values) -> str:
    from skillshelf.loader import near_names, resolve

    shelf = _open(values)
    try:
        resolve(shelf.catalog.skills, name=name, cwd=shelf.place.cwd)
    except SkillNotFound as error:
        error.near = tuple(near_names(name, shelf.catalog.skills))
        raise
    except AmbiguousSkill:
        pass  # All of that name are disabled together.
    return name


def _choose(values: Values, name: str, change: Callable[[list[str]], list[str]], done: str, idle: str) -> int:
    from skillshelf import views
    from skillshelf.place import locate
    from skillshelf.terminal import write
    from skillshelf.text import visible
    from skillshelf.userfile import change_list

    path, changed = change_list(locate(values["cwd"], values["home"], None), "skills", "disabled", change)
    if values["json"]:
        write(views.as_json({"name": name, "file": path, "changed": changed}))
    else:
        write(f"{visible(name)} {done if changed else idle} ({visible(path)})\n")
    return DONE


def trust(values: Values) -> int:
    """Trust a folder with everything below, take that back, or list what is trusted."""
    from skillshelf import files, views
    from skillshelf.place import expand, locate
    from skillshelf.terminal import write
    from skillshelf.text import visible
    from skillshelf.userfile import change_list, listed

    place = locate(values["cwd"], values["home"], None)
    if values["list"]:
        folders = listed(place, "trust", "folders")
        lines = "".join(f"{visible(folder)}\n" for folder in folders) or "No folder is trusted.\n"
        write(views.as_json(folders) if values["json"] else lines)
        return DONE
    folder = os.path.abspath(os.path.join(place.cwd, values["dir"] or "."))
    if files.kind_at(files.real_path(folder)) != "folder" and not values["remove"]:
        raise SkillDirectoryNotFound(folder)

    def real(other: str) -> str:
        return files.real_path(expand(other, place, base=place.cwd))

    def change(folders: list[str]) -> list[str]:
        if values["remove"]:
            return [other for other in folders if real(other) != real(folder)]
        return folders if folder in folders else [*folders, folder]

    path, changed = change_list(place, "trust", "folders", change)
    for other in listed(place, "trust", "folders") if values["remove"] else ():
        if files.is_inside(real(folder), real(other)):
            _note(f"{folder} is still trusted, with {other}; to end that: skillshelf trust {other} --remove")
    if values["json"]:
        write(views.as_json({"folder": folder, "file": path, "changed": changed}))
        return DONE
    verb = (
        ("no longer trusted" if changed else "was not trusted")
        if values["remove"]
        else ("trusted, with everything below it" if changed else "was trusted already")
    )
    write(f"{visible(folder)} {verb} ({visible(path)})\n")
    return DONE


def profile(values: Values) -> int:
    """Every field of a profile, or every profile."""
    from skillshelf import views
    from skillshelf.config import load_settings
    from skillshelf.place import locate
    from skillshelf.profile import profile_to_dict
    from skillshelf.profiles import SYSTEMS, find_profile
    from skillshelf.terminal import screen, write

    place = locate(values["cwd"], values["home"], None)
    if not os.path.isdir(place.cwd):
        raise SkillDirectoryNotFound(place.cwd)
    settings = load_settings(place, file=_config(values), trust="ask")
    known = {**SYSTEMS, **settings.profiles}
    name = values["name"] or values["profile"]
    if name is None:
        write(views.as_json(list(known)) if values["json"] else views.profiles_view(known, screen(place.env)))
        return DONE
    found = find_profile(name, settings.profiles)
    write(views.as_json(profile_to_dict(found)) if values["json"] else views.profile_view(found, screen(place.env)))
    return DONE


def _open(values: Values, *, trust: "Trust" = "ask") -> "Shelf":
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


def _needed(values: Values, key: str, usage: str) -> str:
    value = values[key]
    if not value:
        raise ConfigurationError(f"something is missing; usage: {usage}")
    return os.fspath(value)


def _held_back(shelf: "Shelf") -> None:
    """Say how many skills a model is not told of because nobody trusts their folder."""
    held = sum(skill.hidden == "untrusted" for skill in shelf.catalog.skills)
    if held:
        _note(
            f"{held} of this project's skills are held back; to allow them once: --trust, "
            f"always: skillshelf trust {shelf.project_root}"
        )


def _note(message: str) -> None:
    from skillshelf.text import visible

    if sys.stderr is not None:
        print(f"skillshelf: {visible(message)}", file=sys.stderr)
