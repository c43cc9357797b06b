"""Read a command line, run the command, and turn every failure into one line and an exit status."""

import gc
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from skillshelf.cli import commands
from skillshelf.core.console import as_json, note
from skillshelf.core.records import NamedTuple
from skillshelf.errors import (
    FAILED,
    ConfigurationError,
    SkillError,
    kind_of,
)

__all__ = ["COMMANDS", "SHARED", "Option", "main", "parse", "usage_of"]


class Option(NamedTuple):
    """One option or argument of a command; without `value` it is a flag, with `many` it may be repeated.

    An argument with `dashes` also takes words that look like options, unless they are options of the command. An
    argument may be `required`; unless it `may_be_empty`, an empty word counts as missing.
    """

    name: str
    help: str
    value: str | None = None
    many: bool = False
    dashes: bool = False
    required: bool = False
    may_be_empty: bool = False

    @property
    def key(self) -> str:
        """The key of its value after parsing."""
        return self.name.lstrip("-").replace("-", "_").lower()


class Command(NamedTuple):
    """One command: its summary, its options and arguments, and the function that runs it."""

    help: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]
    run: Callable[[Mapping[str, Any]], int]


SHARED = (
    Option("--profile", "the system whose rules apply (default: standard)", "NAME"),
    Option("--cwd", "start from this folder (default: the working directory)", "DIR"),
    Option("--home", "use another home folder, with its configuration and cache", "DIR"),
    Option("--config", "read this configuration file instead of the user's and the project's", "FILE"),
    Option("--json", "print one JSON value"),
    Option("--no-cache", "ignore the cache"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if _LASTING.isdisjoint(words):
        # Most commands end before there is garbage worth collecting, and looking for it takes a tenth of their time.
        gc.set_threshold(100_000)
    try:
        return _run(words)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # A full disk, or a standard output that fails.
        note(f"the machine failed: {error}")
        return FAILED
    except Exception as error:
        note(f"internal error in skillshelf, please report it: {type(error).__name__}: {error}")
        return FAILED


_LASTING = frozenset({"mcp", "rpc", "chat", "pick"})
"""Commands that may run for days."""


def _run(words: list[str]) -> int:
    try:
        name, values = parse(words)
        return COMMANDS[name].run(values)
    except SkillError as error:
        return _fail(error, wants_json=_wants_json(words))
    except FileNotFoundError:
        # Files that a user names are reported as SkillError, so this can only be the working directory.
        return _fail(ConfigurationError("the working directory no longer exists"), wants_json=_wants_json(words))


def _wants_json(words: Sequence[str]) -> bool:
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)


# The table of commands ----------------------------------------------------------------------------

_TRUST = Option("--trust", "for this run, show this project's skills to the model too")

_ALL_HOSTS = Option("--all-hosts", "all known hosts, not only those that are set or found on this machine")

_DRY_RUN = Option("--dry-run", "say what would be done, and do nothing")
_YES = Option("--yes", "do not ask")
_IN_HOST = Option("--in", "in this host, by its own settings; may be repeated", "HOST,...", many=True)

_JOURNAL = (
    Option("--journal", "record what happens in this file, as events", "FILE"),
    Option("--keep", "keep all inputs beside the journal, for `log replay`"),
)


def _later(module: str, name: str) -> Callable[[Mapping[str, Any]], int]:
    """Return a command that imports its module when it is run."""

    def run(values: Mapping[str, Any]) -> int:
        from importlib import import_module

        status: int = getattr(import_module(f"skillshelf.{module}"), name)(values)
        return status

    return run


COMMANDS: Mapping[str, Command] = {
    "": Command(
        "print one screen: skills by scope, problems, next commands",
        (*SHARED, Option("--version", "print the version")),
        (),
        commands.overview,
    ),
    "list": Command(
        "list the skills of the catalog",
        (
            *SHARED,
            Option("--scope", "only skills of this scope", "S"),
            Option("--all", "also errors, shadowed and filtered skills, with the reason for each"),
        ),
        (),
        commands.list_skills,
    ),
    "search": Command(
        "find the skills that fit a query, best first",
        (
            *SHARED,
            Option("--limit", "return at most N results (default: 8)", "N"),
            Option("--scope", "only skills of this scope", "S"),
        ),
        (Option("QUERY", "words of a task in quotes, a name, or a path", "QUERY", required=True, may_be_empty=True),),
        commands.search,
    ),
    "pick": Command(
        "choose a skill in the terminal (search, preview, enable, disable) and print its name",
        (
            *SHARED,
            Option("--path", "print the folder of the skill instead of its name"),
            Option("--plain", "list skills as numbered lines, for screen readers and simple terminals"),
        ),
        (Option("QUERY", "the first query", "QUERY"),),
        commands.pick,
    ),
    "show": Command(
        "print exactly what a model gets when it loads a skill",
        (
            *SHARED,
            *_JOURNAL,
            Option("--args", "what the user asks the skill to work on", "TEXT"),
            Option("--raw", "print the file itself"),
        ),
        (Option("NAME-or-PATH", "a skill of the catalog, its folder or its SKILL.md", "NAME", required=True),),
        commands.show,
    ),
    "read": Command(
        "print one file of a skill",
        (*SHARED, *_JOURNAL),
        (Option("URI", "skill://NAME or skill://NAME/PATH; a folder lists its files", "URI", required=True),),
        commands.read,
    ),
    "digest": Command(
        "print the digest of all files of a skill (skill-tree-v1)",
        SHARED,
        (Option("PATH", "the folder of a skill, or its SKILL.md", "PATH", required=True),),
        commands.digest,
    ),
    "why": Command(
        "explain which agent hosts see a skill, and why the others do not",
        (
            *SHARED,
            Option("--host", "only this host; may be given several times", "H", many=True),
            _ALL_HOSTS,
            Option("--fix", "apply safe fixes, and link the skill for every --host"),
            Option("--dry-run", "say what --fix would do, and do nothing"),
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME", required=True),),
        _later("cli.host_commands", "why"),
    ),
    "hosts": Command(
        "compare agent hosts: the skills that each one sees, and what its catalog costs",
        (
            *SHARED,
            Option("--diff", "show only what two hosts see differently: --diff A B", "A"),
            _ALL_HOSTS,
            Option("--set", "your hosts, separated by commas; auto: those found on this machine", "HOST,..."),
        ),
        (Option("B", "the second host of --diff", "B"),),
        _later("cli.host_commands", "hosts"),
    ),
    "link": Command(
        "make a skill visible to another agent host, by a link or a copy",
        (
            *SHARED,
            Option("--to", "the hosts, separated by commas (default: yours); may be repeated", "HOST,...", many=True),
            _ALL_HOSTS,
            Option("--force", "also for a host that ignores disable-model-invocation, so that its model may call it"),
            Option("--even-so", "the old name of --force"),
            Option("--remove", "remove the links and copies made for these hosts"),
            _DRY_RUN,
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME", many=True, required=True),),
        _later("cli.link_commands", "link"),
    ),
    "sync": Command(
        "make skills visible to agent hosts in one plan, which is shown first and carried out whole or not at all",
        (
            *SHARED,
            Option("--to", "the hosts, separated by commas (default: yours); may be repeated", "HOST,...", many=True),
            _DRY_RUN,
            Option("--remove", "remove the links and copies that were made, and the folders made for them"),
            _YES,
        ),
        (Option("NAME", "a skill, or its path (default: all of the project and the home folder)", "NAME", True),),
        _later("cli.link_commands", "sync"),
    ),
    "prompt": Command("print the catalog text that a model gets", (*SHARED, _TRUST), (), commands.prompt),
    "tools": Command("print the tools that a model gets, with their schemas", (*SHARED, _TRUST), (), commands.tools),
    "check": Command(
        "check skills against the standard and good practice, with the line and the fix of each finding",
        (
            *SHARED,
            Option("--fix", "apply safe fixes, and show what changed"),
            Option("--diff", "show what --fix would change, and change nothing"),
            Option("--format", "text, json, sarif or github (default: text)", "F"),
        ),
        (Option("PATH", "a skill, its SKILL.md, or a folder of skills (default: the profile's roots)", "PATH", True),),
        commands.check,
    ),
    "new": Command(
        "create a skill that passes `check`, in this repository or in the home folder",
        (
            *SHARED,
            Option("--root", "create it in this folder of skills", "DIR"),
            Option("--user", "create it in the home folder"),
            Option("--description", "what it does and when to use it", "TEXT"),
            Option("--scripts", "include a script"),
            Option("--references", "include a page that is read on demand"),
            Option("--assets", "include a template"),
            Option("--for", "make it visible to these hosts, separated by commas", "HOST,...", many=True),
            _ALL_HOSTS,
            _DRY_RUN,
        ),
        (Option("NAME", "lower-case letters, digits and single hyphens", "NAME", required=True),),
        _later("cli.link_commands", "new"),
    ),
    "run": Command(
        "run a script of a skill in a sandbox, after you confirm",
        (*SHARED, *_JOURNAL),
        (
            Option("NAME", "a skill of the catalog", "NAME", required=True),
            Option("SCRIPT", "a file below its scripts folder", "SCRIPT", required=True),
            Option(
                "ARGS",
                "arguments of the script; put options that this command has too after --",
                "ARGS",
                True,
                True,
            ),
        ),
        commands.run,
    ),
    "enable": Command(
        "enable a disabled skill for agents that get their skills from skillshelf, or in a host itself",
        (*SHARED, _IN_HOST, _DRY_RUN),
        (Option("NAME", "a skill, or its path", "NAME", required=True),),
        _later("cli.settings_commands", "enable"),
    ),
    "disable": Command(
        "disable a skill for agents that get their skills from skillshelf, or in a host itself",
        (*SHARED, _IN_HOST, _DRY_RUN),
        (Option("NAME", "a skill, or its path", "NAME", required=True),),
        _later("cli.settings_commands", "disable"),
    ),
    "trust": Command(
        "trust a folder and everything below it, so that models that skillshelf serves see its skills",
        (
            *SHARED,
            Option("--list", "list the trusted folders and the approvals"),
            Option("--remove", "stop trusting the folder, and take back the approvals of the skills below it"),
            _DRY_RUN,
        ),
        (Option("DIR", "a folder, or a skill whose approvals are taken back (default: the working directory)", "DIR"),),
        _later("cli.settings_commands", "trust"),
    ),
    "profile": Command(
        "print every field of a profile, or list the profiles",
        SHARED,
        (Option("NAME", "a profile", "NAME"),),
        commands.profile,
    ),
    "log": Command(
        "show the events of a journal, verify that nothing was changed, count which skills were used, or replay it",
        (
            *SHARED,
            Option("--session", "show, stats: only sessions whose id begins with S", "S"),
            Option("--type", "show: only events of this type; may be repeated", "T", many=True),
            Option("--skill", "show: only events about this skill", "NAME"),
            Option("--last", "show: only the last N events", "N"),
            Option("--head", "verify: a sum that you kept elsewhere; its line must still be there", "SUM"),
            Option(
                "--against",
                "replay: `kept` inputs (the default where there are some), or the `disk` as it is now",
                "WHAT",
            ),
            Option("--disk", "replay: the same as --against=disk"),
            Option("--trust", "replay: treat the journal's project as trusted"),
        ),
        (
            Option("ACTION", "show, verify, stats or replay", "ACTION", required=True),
            Option("FILE", "the journal", "FILE", required=True),
        ),
        _later("cli.log", "log"),
    ),
    "mcp": Command(
        "serve the skills to agents over the Model Context Protocol, on standard input and output or over HTTP",
        (
            *SHARED,
            *_JOURNAL,
            _TRUST,
            Option("--http", "serve over HTTP at this address, such as 127.0.0.1:8000; port 0: a free one", "ADDRESS"),
            Option("--token-file", "HTTP: require the token in this file; $SKILLSHELF_MCP_TOKEN works too", "FILE"),
            Option("--allow-host", "HTTP: another name of this server; may be repeated", "NAME", True),
            Option("--paths", "HTTP: show clients the paths of the skills on this machine"),
        ),
        (),
        commands.mcp,
    ),
    "rpc": Command(
        "serve another program with JSON-RPC 2.0 on standard input and output, one message a line",
        (*SHARED, *_JOURNAL, _TRUST),
        (),
        _later("servers.rpc.server", "rpc"),
    ),
    "chat": Command(
        "try your skills with a small agent, line by line or for one answer",
        (
            *SHARED,
            *_JOURNAL,
            _TRUST,
            Option("--model", "the model, such as anthropic:NAME, openai:NAME, or the NAME at a local server", "M"),
            Option("--once", "answer TEXT and exit", "TEXT"),
        ),
        (),
        commands.chat,
    ),
    "help": Command(
        "explain the commands, or one of them",
        (),
        (Option("COMMAND", "the command to explain", "COMMAND"),),
        lambda values: show_help(values),
    ),
}


_HELP = (Option("-h", "explain this command"), Option("--help", "explain this command"))


# Failures -----------------------------------------------------------------------------------------


def _fail(error: SkillError, *, wants_json: bool) -> int:
    code, status = kind_of(error)
    from skillshelf.cli.views import error_line
    from skillshelf.core.console import write

    if wants_json:
        candidates = [*getattr(error, "paths", ()), *getattr(error, "near", ())]
        write(as_json({"error": {"code": code, "message": str(error), "candidates": candidates}}))
    note(error_line(error))
    return status


# The grammar --------------------------------------------------------------------------------------


def parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the command and its values; raise ConfigurationError for an invalid line.

    The grammar is that of argparse without abbreviations, and arguments may appear anywhere between the options; a
    test compares the two. It is written out because importing argparse costs more than half a start of Python.
    """
    name, rest = _split_command(words)
    command = COMMANDS[name]
    values: dict[str, Any] = {
        option.key: [] if option.many else None if option.value else False
        for option in (*command.options, *command.arguments)
    }
    options = {option.name: option for option in (*command.options, *_HELP)}
    arguments, unexpected, only_arguments = list(command.arguments), [], False
    while rest:
        word = rest.pop(0)
        option = None if only_arguments else options.get(word.partition("=")[0])
        if option:
            value = _option_value(option, word, rest, options)
            if option in _HELP:
                return "help", {"command": name}
            values[option.key] = [*values[option.key], value] if option.many else value
        elif word == "--" and not only_arguments:
            only_arguments = True
        elif not arguments or not (only_arguments or arguments[0].dashes or not _is_option(word, options)):
            unexpected.append((word, only_arguments))
        elif arguments[0].many:
            values[arguments[0].key].append(word)
        else:
            values[arguments.pop(0).key] = word
    if unexpected:
        word, after_dashes = unexpected[0]
        raise ConfigurationError(_unexpected(word, name, is_option=word.startswith("-") and not after_dashes))
    for argument in command.arguments:
        value = values[argument.key]
        if argument.required and (value in (None, []) or (value == "" and not argument.may_be_empty)):
            usage = f"{argument.help} (usage: {usage_of(name)})"
            raise ConfigurationError(f"missing argument {argument.name}: {usage}")
    return name, values


def _split_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command and the words without it; options may come before it."""
    with_value = {option.name for option in SHARED if option.value}
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in with_value else 1
    if position < len(words) and words[position] and words[position] in COMMANDS:
        return words[position], [*words[:position], *words[position + 1 :]]
    return "", list(words)


def _option_value(option: Option, word: str, rest: list[str], options: Mapping[str, Option]) -> str | bool:
    """Return the value of an option, taken from its own word or from the next one; a flag has the value True."""
    _, equals, value = word.partition("=")
    if not option.value:
        if equals:
            raise ConfigurationError(f"option {option.name} takes no value")
        return True
    if equals:
        return value
    if not rest or rest[0] == "--" or _is_option(rest[0], options):
        usage = f"{option.name} {option.value}, or {option.name}={option.value} if it begins with a dash"
        raise ConfigurationError(f"option {option.name} needs a value: {usage}")
    return rest.pop(0)


def _is_option(word: str, options: Mapping[str, Option]) -> bool:
    """Return True for a word that names an option, known or not: a dash, a number or a phrase in quotes does not."""
    if not word.startswith("-") or word == "-":
        return False
    known = word.partition("=")[0] in options
    return known or not (" " in word or re.fullmatch(r"-(\d+|\d*\.\d+)", word))


def _unexpected(word: str, name: str, *, is_option: bool) -> str:
    from difflib import get_close_matches

    what = "option" if is_option else "argument" if name else "command"
    known = [option.name for option in COMMANDS[name].options] if is_option else [] if name else list(COMMANDS)
    near = get_close_matches(word, known, 1, 0.7)
    hint = f"; did you mean {near[0]}?" if near else ""
    help_line = " ".join(filter(None, ("skillshelf", name, "--help")))
    return f"{'unexpected' if what == 'argument' else 'unknown'} {what} {word!r}{hint} (run `{help_line}`)"


# Help ---------------------------------------------------------------------------------------------


def usage_of(name: str) -> str:
    """Return the command with its arguments, as it is typed."""
    words = ["skillshelf", *filter(None, [name])]
    for argument in COMMANDS[name].arguments:
        text = f"{argument.name} ..." if argument.many else argument.name
        words.append(text if argument.required else f"[{text}]")
    return " ".join(words)


def show_help(values: Mapping[str, Any]) -> int:
    """Print the commands, or the arguments and options of one command."""
    from os import environ
    from textwrap import wrap

    from skillshelf.core.console import screen, write

    name = values["command"] or ""
    if name not in COMMANDS:
        raise ConfigurationError(_unexpected(name, "", is_option=name.startswith("-")))
    command = COMMANDS[name]
    usage, summary = usage_of(name), f"{command.help[0].upper()}{command.help[1:]}."
    if not name:
        usage, summary = (
            "skillshelf [COMMAND]",
            f"Find Agent Skills, and why one is missing. Without a command: {command.help}.",
        )
    lines = [f"usage: {usage} [OPTIONS]", "", *wrap(summary, 80)]
    own = [option for option in command.options if option not in SHARED]
    shared = [option for option in command.options if option in SHARED]
    sections = {
        "Commands": [(other, row.help) for other, row in COMMANDS.items() if other and not name],
        "Arguments": [(argument.name, argument.help) for argument in command.arguments],
        "Options": [(f"{option.name} {option.value or ''}", option.help) for option in own],
        "Options of every command": [(f"{option.name} {option.value or ''}", option.help) for option in shared],
    }
    display = screen(environ)
    display = display._replace(columns=display.columns or 80)
    width = max(len(text) for rows in sections.values() for text, _ in (*rows, ("", "")))
    for title, rows in sections.items():
        if rows:
            padded = [(text.ljust(width), meaning) for text, meaning in rows]
            lines += ["", f"{title}:", *display.table(padded, ("bold", None), indent=2, wrap=True)]
    write("\n".join(lines) + "\n")
    return commands.DONE
