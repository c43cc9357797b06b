"""Command lines to exit codes: the outermost frame, which turns every failure into one line that helps."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    PermissionDenied,
    SkillDirectoryNotFound,
    SkillError,
    SkillNotFound,
)

__all__ = ["COMMANDS", "main"]

DONE, NEGATIVE, USAGE, NOT_FOUND, DENIED, FAILED = range(6)


class Option(NamedTuple):
    """One option or argument of a command; without `value` it is a flag."""

    name: str
    help: str
    value: str | None = None

    @property
    def key(self) -> str:
        """The name of the value after parsing."""
        return self.name.lstrip("-").replace("-", "_").lower()


class Command(NamedTuple):
    """One command: what it says of itself, what it takes, what it does."""

    help: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]
    run: Callable[[Mapping[str, Any]], int]


SHARED = (
    Option("--profile", "the system whose rules apply (default: standard)", "NAME"),
    Option("--cwd", "the folder to start from (default: the working directory)", "DIR"),
    Option("--home", "another home folder, with its configuration and cache", "DIR"),
    Option("--config", "a configuration file instead of the user's and the project's", "FILE"),
    Option("--json", "print one JSON value"),
    Option("--no-cache", "read every file anew"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        name, values = _parse(words)
        return COMMANDS[name].run(values)
    except SkillError as error:
        return _fail(error, as_json="--json" in words)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        _say(f"the machine failed: {error}")
        return FAILED


# Commands -----------------------------------------------------------------------------------------


def _overview(values: Mapping[str, Any]) -> int:
    from skillshelf import views
    from skillshelf.config import user_config_path
    from skillshelf.terminal import screen, write

    opened = _open(values)
    catalog = opened.scan()
    if values["json"]:
        write(views.as_json(catalog.to_dict()))
        return DONE
    where = views.Where(opened.place.cwd, opened.place.home)
    path = user_config_path(opened.place)
    write(views.overview(catalog, where, screen(opened.place.env), config_path=path))
    return DONE


def _list(values: Mapping[str, Any]) -> int:
    from skillshelf import views
    from skillshelf.terminal import screen, write

    shelf = _open(values)
    catalog = shelf.scan(account=values["all"])
    if scope := values["scope"]:
        scopes = list(dict.fromkeys(root.scope for root in catalog.roots))
        if scope not in scopes:
            raise ConfigurationError(f"no scope {scope!r} in profile {catalog.profile}; there are: {', '.join(scopes)}")
        catalog = catalog._replace(skills=tuple(skill for skill in catalog.skills if skill.scope == scope))
    if values["json"]:
        write(views.as_json(catalog.to_dict()))
    else:
        where = views.Where(shelf.place.cwd, shelf.place.home)
        write(views.list_view(catalog, where, screen(shelf.place.env), everything=values["all"]))
    return DONE


def _profile(values: Mapping[str, Any]) -> int:
    from skillshelf import views
    from skillshelf.profile import profile_to_dict
    from skillshelf.profiles import SYSTEMS, find_profile
    from skillshelf.terminal import screen, write

    place, settings = _settings(values)
    known = {**SYSTEMS, **settings.profiles}
    name = values["name"] or values["profile"]
    if name is None:
        text = views.as_json(list(known)) if values["json"] else views.profiles_view(known, screen(place.env))
    else:
        profile = find_profile(name, settings.profiles)
        text = (
            views.as_json(profile_to_dict(profile))
            if values["json"]
            else views.profile_view(profile, screen(place.env))
        )
    write(text)
    return DONE


def _help(values: Mapping[str, Any]) -> int:
    _parser().print_help()
    return DONE


COMMANDS: Mapping[str, Command] = {
    "": Command("one screen: skills by scope, problems, what to try next", SHARED, (), _overview),
    "list": Command(
        "the catalog",
        (
            *SHARED,
            Option("--scope", "only skills of this scope", "S"),
            Option("--all", "also errors, shadowed and filtered skills, with the reason for each"),
        ),
        (),
        _list,
    ),
    "profile": Command(
        "every field of a profile; without a name, the profiles there are",
        SHARED,
        (Option("NAME", "a profile", "NAME"),),
        _profile,
    ),
    "help": Command("this text", (), (), _help),
}


def _open(values: Mapping[str, Any]) -> Any:
    from skillshelf.shelf import open_shelf

    return open_shelf(
        cwd=values["cwd"],
        profile=values["profile"],
        home=values["home"],
        config=values["config"],
        trust="ask",
    )


def _settings(values: Mapping[str, Any]) -> Any:
    from skillshelf.config import load_settings, locate

    place = locate(values["cwd"], values["home"], None)
    return place, load_settings(place, file=values["config"], trust="ask")


# Failures -----------------------------------------------------------------------------------------

_STATUS: tuple[tuple[type[SkillError], int, str], ...] = (
    (ConfigurationError, USAGE, "invalid_params"),
    (SkillDirectoryNotFound, USAGE, "invalid_params"),
    (AmbiguousSkill, NOT_FOUND, "ambiguous"),
    (SkillNotFound, NOT_FOUND, "not_found"),
    (PermissionDenied, DENIED, "denied"),
    (SkillError, FAILED, "failed"),
)


def _fail(error: SkillError, *, as_json: bool) -> int:
    status, code = next((status, code) for kind, status, code in _STATUS if isinstance(error, kind))
    if as_json:
        from skillshelf import views
        from skillshelf.terminal import write

        candidates = list(getattr(error, "paths", ()))
        write(views.as_json({"error": {"code": code, "message": str(error), "candidates": candidates}}))
    _say(str(error))
    return status


def _say(message: str) -> None:
    from skillshelf.text import visible

    line = f"skillshelf: {visible(message)}\n".encode("utf-8", "backslashreplace")
    try:
        os.write(2, line)
    except OSError:
        # Standard error is closed: the exit status says it all.
        return


# Arguments ----------------------------------------------------------------------------------------


def _parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command and its values. What is not plain goes to argparse, which costs as much as starting Python."""
    name = words[0] if words and words[0] in COMMANDS else ""
    command = COMMANDS[name]
    values: dict[str, Any] = {
        option.key: None if option.value else False for option in (*command.options, *command.arguments)
    }
    options = {option.name: option for option in command.options}
    places = list(command.arguments)
    rest = list(words[1:] if name else words)
    while rest:
        word = rest.pop(0)
        text, equals, given = word.partition("=")
        option = options.get(text)
        if option is None and places and not word.startswith("-"):
            values[places.pop(0).key] = word
        elif option is None or (equals and not option.value) or (option.value and not equals and not rest):
            return _parse_with_argparse(words)
        elif not option.value:
            values[option.key] = True
        elif equals or not rest[0].startswith("--"):
            values[option.key] = given if equals else rest.pop(0)
        else:
            return _parse_with_argparse(words)
    return name, values


def _parse_with_argparse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    values = vars(_parser().parse_args(list(words)))
    return values.pop("command") or "", values


def _parser() -> Any:
    import argparse

    from skillshelf import __version__

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise ConfigurationError(f"{message}; try: {self.prog} --help")

    parser = Parser(
        prog="skillshelf",
        description="Finds Agent Skills, and says why one is missing.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"skillshelf {__version__}")
    _add(parser, COMMANDS[""])
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, command in COMMANDS.items():
        if name:
            _add(
                commands.add_parser(name, help=command.help, description=command.help, allow_abbrev=False),
                command,
            )
    return parser


def _add(parser: Any, command: Command) -> None:
    for option in command.options:
        if option.value:
            parser.add_argument(option.name, help=option.help, metavar=option.value)
        else:
            parser.add_argument(option.name, help=option.help, action="store_true")
    for argument in command.arguments:
        parser.add_argument(argument.key, help=argument.help, metavar=argument.name, nargs="?")
