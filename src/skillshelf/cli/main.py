"""Command lines to exit codes: the outermost frame, which turns every failure into one line that helps."""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from skillshelf.cli import commands
from skillshelf.core.console import as_json, note
from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    InvalidFormat,
    LimitExceeded,
    PathEscape,
    PermissionDenied,
    ResourceNotFound,
    SkillAlreadyExists,
    SkillDirectoryNotFound,
    SkillError,
    SkillFileNotFound,
    SkillNotFound,
)

__all__ = ["COMMANDS", "main"]

NEGATIVE, USAGE, NOT_FOUND, DENIED, FAILED = 1, 2, 3, 4, 5


class Option(NamedTuple):
    """One option or argument of a command; without `value` it is a flag, with `many` it may be repeated.

    An argument with `dashes` takes words that look like options too, unless they are options of the command.
    """

    name: str
    help: str
    value: str | None = None
    many: bool = False
    dashes: bool = False

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
    # Most commands end before there is anything worth collecting, and looking for it takes a tenth of their time.
    gc.set_threshold(100_000)
    try:
        return _run(words)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not isinstance(error, OSError):
            note(f"this is a mistake in skillshelf, please report it: {type(error).__name__}: {error}")
            return FAILED
        # Standard output may be what failed.
        note(f"the machine failed: {error}")
        return FAILED


def _run(words: list[str]) -> int:
    try:
        name, values = _parse(words)
        return COMMANDS[name].run(values)
    except SkillError as error:
        return _fail(error, wants_json=_wants_json(words))
    except FileNotFoundError:
        # What is missing without anybody having named it can only be the folder we stand in.
        return _fail(SkillDirectoryNotFound("the working directory is gone"), wants_json=_wants_json(words))


def _wants_json(words: Sequence[str]) -> bool:
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)


# The table of commands ----------------------------------------------------------------------------

_TRUST = Option("--trust", "for this run, tell the model about this project's skills too")

_JOURNAL = (
    Option("--journal", "add what happens to this file, as events", "FILE"),
    Option("--keep", "keep the contents of what is loaded beside the journal, for log replay"),
)


def _later(module: str, name: str) -> Callable[[Mapping[str, Any]], int]:
    """A command whose module is loaded when it is run."""

    def act(values: Mapping[str, Any]) -> int:
        from importlib import import_module

        done: int = getattr(import_module(f"skillshelf.{module}"), name)(values)
        return done

    return act


COMMANDS: Mapping[str, Command] = {
    "": Command("one screen: skills by scope, problems, what to try next", SHARED, (), commands.overview),
    "list": Command(
        "the catalog",
        (
            *SHARED,
            Option("--scope", "only skills of this scope", "S"),
            Option("--all", "also errors, shadowed and filtered skills, with the reason for each"),
        ),
        (),
        commands.list_skills,
    ),
    "search": Command(
        "the skills that fit a query, best first",
        (
            *SHARED,
            Option("--limit", "how many at most (default: 8)", "N"),
            Option("--scope", "only skills of this scope", "S"),
        ),
        (Option("QUERY", "words of a task in quotes, a name, or a path", "QUERY"),),
        commands.search,
    ),
    "pick": Command(
        "choose a skill in the terminal: search, preview, enable and disable; prints its name",
        (*SHARED, Option("--path", "print the folder of the skill instead of its name")),
        (Option("QUERY", "what to search for at first", "QUERY"),),
        commands.pick,
    ),
    "show": Command(
        "exactly what a model would get when it loads a skill",
        (
            *SHARED,
            *_JOURNAL,
            Option("--args", "what the user asks the skill to work on", "TEXT"),
            Option("--raw", "the file itself"),
        ),
        (Option("NAME-or-PATH", "a skill of the catalog, its folder or its SKILL.md", "NAME"),),
        commands.show,
    ),
    "read": Command(
        "one file of a skill",
        (*SHARED, *_JOURNAL),
        (Option("URI", "skill://NAME or skill://NAME/PATH; a folder lists its files", "URI"),),
        commands.read,
    ),
    "why": Command(
        "which agent hosts see a skill, and what keeps it from the others",
        (
            *SHARED,
            Option("--host", "only this host; may be given several times", "H", many=True),
            Option("--fix", "repair what needs no guessing, and link the skill for every --host"),
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME"),),
        _later("cli.host_commands", "why"),
    ),
    "hosts": Command(
        "every skill here and every agent host: who sees what, and what the lists cost",
        (*SHARED, Option("--diff", "only what two hosts see differently: --diff A B", "A")),
        (Option("B", "the second host of --diff", "B"),),
        _later("cli.host_commands", "hosts"),
    ),
    "link": Command(
        "make a skill visible to another agent host, by a link or a copy",
        (
            *SHARED,
            Option("--to", "the host; may be given several times", "HOST", many=True),
            Option("--force", "also for a host that ignores disable-model-invocation, so that its model may call it"),
            Option("--even-so", "the old name of --force"),
            Option("--remove", "take back what was made for these hosts"),
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME"),),
        _later("cli.host_commands", "link"),
    ),
    "prompt": Command("the catalog as a model is told of it", (*SHARED, _TRUST), (), commands.prompt),
    "tools": Command("the tools a model is offered, with their schemas", (*SHARED, _TRUST), (), commands.tools),
    "check": Command(
        "what is wrong with skills, by the standard and by advice, with line and repair",
        (
            *SHARED,
            Option("--fix", "repair what needs no guessing, and show what changed"),
            Option("--diff", "only show what --fix would change"),
            Option("--format", "text, json, sarif or github (default: text)", "F"),
        ),
        (Option("PATH", "a skill, its SKILL.md, or a folder of skills (default: the profile's roots)", "PATH", True),),
        commands.check,
    ),
    "new": Command(
        "make a skill that passes check, in this repository or in the home folder",
        (
            *SHARED,
            Option("--root", "the folder of skills to put it in", "DIR"),
            Option("--user", "put it in the home folder"),
            Option("--description", "what it does and when to use it", "TEXT"),
            Option("--scripts", "with a script to run"),
            Option("--references", "with a page to read on demand"),
            Option("--assets", "with a template to copy"),
        ),
        (Option("NAME", "lower-case letters, digits and single hyphens", "NAME"),),
        commands.new,
    ),
    "run": Command(
        "a script of a skill in a sandbox, after you said yes",
        (*SHARED, *_JOURNAL),
        (
            Option("NAME", "a skill of the catalog", "NAME"),
            Option("SCRIPT", "a file below its scripts folder", "SCRIPT"),
            Option(
                "ARGS", "words for the script; what looks like one of these options stands after --", "ARGS", True, True
            ),
        ),
        commands.run,
    ),
    "enable": Command(
        "let a skill be used again",
        SHARED,
        (Option("NAME", "a skill, or its path", "NAME"),),
        _later("cli.settings_commands", "enable"),
    ),
    "disable": Command(
        "keep a skill from being used, here and everywhere",
        SHARED,
        (Option("NAME", "a skill, or its path", "NAME"),),
        _later("cli.settings_commands", "disable"),
    ),
    "trust": Command(
        "trust a folder, with everything below it; its skills are then told to models",
        (*SHARED, Option("--list", "the folders that are trusted"), Option("--remove", "trust it no longer")),
        (Option("DIR", "a folder (default: the working directory)", "DIR"),),
        _later("cli.settings_commands", "trust"),
    ),
    "profile": Command(
        "every field of a profile; without a name, the profiles there are",
        SHARED,
        (Option("NAME", "a profile", "NAME"),),
        commands.profile,
    ),
    "log": Command(
        "the journal of one or more sessions: show it, verify that nobody changed it, count which skills were used, "
        "repeat it here and compare",
        (
            *SHARED,
            Option("--session", "show, stats: only sessions whose name begins so", "S"),
            Option("--type", "show: only events of this type; may be repeated", "T", many=True),
            Option("--skill", "show: only events that concern this skill", "NAME"),
            Option("--last", "show: only the last N of them", "N"),
            Option("--head", "verify: a sum that was kept elsewhere; its line must still be there", "SUM"),
            Option("--disk", "replay: take the files as they are now, also where their contents were kept"),
            Option("--trust", "replay: let the configuration of the journal's project count as if it were trusted"),
        ),
        (Option("ACTION", "show, verify, stats or replay", "ACTION"), Option("FILE", "the journal", "FILE")),
        _later("cli.log", "log"),
    ),
    "mcp": Command(
        "serve the skills to agents over the Model Context Protocol: on standard input and output, or over HTTP",
        (
            *SHARED,
            *_JOURNAL,
            _TRUST,
            Option("--http", "serve over HTTP here, for example at 127.0.0.1:8000; port 0 takes a free one", "ADDRESS"),
            Option("--token-file", "HTTP: ask for the token in this file; $SKILLSHELF_MCP_TOKEN does so too", "FILE"),
            Option("--allow-host", "HTTP: a name of this server besides its address; may be repeated", "NAME", True),
            Option("--paths", "HTTP: tell clients where the skills lie on this machine"),
        ),
        (),
        commands.mcp,
    ),
    "rpc": Command(
        "serve another program by JSON-RPC 2.0 on standard input and output, one message a line",
        (*SHARED, *_JOURNAL, _TRUST),
        (),
        _later("servers.rpc.server", "rpc"),
    ),
    "chat": Command(
        "a small agent with skills, for trying them: line by line, or one answer",
        (
            *SHARED,
            *_JOURNAL,
            _TRUST,
            Option("--model", "whom to talk to, such as anthropic:NAME, openai:NAME, or a local server's NAME", "M"),
            Option("--once", "answer this and leave", "TEXT"),
        ),
        (),
        commands.chat,
    ),
    "help": Command("this text", (), (), lambda values: _help()),
}


def _help() -> int:
    from skillshelf.core.console import write

    write(_parser().format_help())
    return commands.DONE


# Failures -----------------------------------------------------------------------------------------

_STATUS: tuple[tuple[type[SkillError], int, str], ...] = (
    (ConfigurationError, USAGE, "invalid_params"),
    (SkillDirectoryNotFound, USAGE, "invalid_params"),
    (PathEscape, USAGE, "invalid_params"),
    (AmbiguousSkill, NOT_FOUND, "ambiguous"),
    (SkillNotFound, NOT_FOUND, "not_found"),
    (ResourceNotFound, NOT_FOUND, "not_found"),
    (SkillFileNotFound, NOT_FOUND, "gone"),
    (SkillAlreadyExists, NEGATIVE, "failed"),
    (LimitExceeded, FAILED, "too_large"),
    (InvalidFormat, FAILED, "failed"),
    (PermissionDenied, DENIED, "denied"),
    (SkillError, FAILED, "failed"),
)


def _fail(error: SkillError, *, wants_json: bool) -> int:
    status, code = next((status, code) for kind, status, code in _STATUS if isinstance(error, kind))
    if wants_json:
        from skillshelf.core.console import write

        candidates = [*getattr(error, "paths", ()), *getattr(error, "near", ())]
        write(as_json({"error": {"code": code, "message": str(error), "candidates": candidates}}))
    note(str(error) + _help_for(error))
    return status


def _help_for(error: SkillError) -> str:
    """What to do about it, where there is more to say than the error does."""
    if isinstance(error, SkillDirectoryNotFound):
        return "; --cwd must name a folder that exists"
    if isinstance(error, AmbiguousSkill):
        return "; take one by its path: " + ", ".join(error.paths)
    if isinstance(error, SkillNotFound):
        if error.near:
            return f"; did you mean {', '.join(error.near)}?"
        return "; skillshelf list --all says what there is, and what not"
    return ""


# Arguments ----------------------------------------------------------------------------------------


_HELP = ("-h", "--help")


def _parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command and its values. What is not plain goes to argparse, which costs as much as starting Python."""
    name, rest = _command_of(words)
    command = COMMANDS[name]
    values: dict[str, Any] = {
        option.key: [] if option.many else None if option.value else False
        for option in (*command.options, *command.arguments)
    }
    options = {option.name: option for option in command.options}
    places = list(command.arguments)
    ordered = [*([name] if name else []), *rest]
    while rest:
        word = rest.pop(0)
        text, equals, given = word.partition("=")
        option = options.get(text)
        if word == "--" and places and places[0].many:
            values[places[0].key] += rest
            rest = []
        elif option is None and places and (not word.startswith("-") or (places[0].dashes and word not in _HELP)):
            _fill(values, places, word)
        elif option is None or (equals and not option.value) or (option.value and not equals and not rest):
            return _parse_with_argparse(ordered)
        elif not option.value:
            values[option.key] = True
        elif equals or not rest[0].startswith("--"):
            value = given if equals else rest.pop(0)
            values[option.key] = [*values[option.key], value] if option.many else value
        else:
            return _parse_with_argparse(ordered)
    return name, values


def _fill(values: dict[str, Any], places: list[Option], word: str) -> None:
    """Give a word to the next argument; one that takes many keeps its place."""
    if places[0].many:
        values[places[0].key].append(word)
    else:
        values[places.pop(0).key] = word


def _command_of(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command, and the words without it; options may stand before it."""
    with_value = {option.name for option in SHARED if option.value}
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in with_value else 1
    if position < len(words) and words[position] in COMMANDS:
        return words[position], [*words[:position], *words[position + 1 :]]
    return "", list(words)


def _parse_with_argparse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    values = vars(_parser().parse_args(list(words)))
    return values.pop("command") or "", values


def _parser() -> Any:
    import argparse

    from skillshelf import __version__

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise ConfigurationError(f"{message}; try: {self.prog} --help")

        def _print_message(self, message: str, file: Any = None) -> None:
            from skillshelf.core.console import write

            write(message)

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
        if option.many:
            parser.add_argument(option.name, help=option.help, metavar=option.value, action="append", default=[])
        elif option.value:
            parser.add_argument(option.name, help=option.help, metavar=option.value)
        else:
            parser.add_argument(option.name, help=option.help, action="store_true")
    for argument in command.arguments:
        nargs = "*" if argument.many else "?"
        parser.add_argument(argument.key, help=argument.help, metavar=argument.name, nargs=nargs)
