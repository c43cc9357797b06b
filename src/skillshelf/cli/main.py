"""Read a command line, run the command, and turn every failure into one line and an exit status."""

import gc
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from skillshelf.cli import commands
from skillshelf.core.console import as_json, note
from skillshelf.errors import (
    FAILED,
    AmbiguousSkill,
    ConfigurationError,
    SkillDirectoryNotFound,
    SkillError,
    SkillNotFound,
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
        name, values = parse(words)
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
    "": Command(
        "one screen: skills by scope, problems, what to try next",
        (*SHARED, Option("--version", "print the version")),
        (),
        commands.overview,
    ),
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
        (Option("QUERY", "words of a task in quotes, a name, or a path", "QUERY", required=True, may_be_empty=True),),
        commands.search,
    ),
    "pick": Command(
        "choose a skill in the terminal: search, preview, enable and disable; prints its name",
        (
            *SHARED,
            Option("--path", "print the folder of the skill instead of its name"),
            Option("--plain", "list skills as numbered lines, for screen readers and simple terminals"),
        ),
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
        (Option("NAME-or-PATH", "a skill of the catalog, its folder or its SKILL.md", "NAME", required=True),),
        commands.show,
    ),
    "read": Command(
        "one file of a skill",
        (*SHARED, *_JOURNAL),
        (Option("URI", "skill://NAME or skill://NAME/PATH; a folder lists its files", "URI", required=True),),
        commands.read,
    ),
    "why": Command(
        "which agent hosts see a skill, and what keeps it from the others",
        (
            *SHARED,
            Option("--host", "only this host; may be given several times", "H", many=True),
            Option("--fix", "repair what needs no guessing, and link the skill for every --host"),
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME", required=True),),
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
            Option("--even-so", "also for a host that ignores disable-model-invocation, so that its model may call it"),
            Option("--remove", "take back what was made for these hosts"),
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME", required=True),),
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
        (Option("NAME", "lower-case letters, digits and single hyphens", "NAME", required=True),),
        commands.new,
    ),
    "run": Command(
        "a script of a skill in a sandbox, after you said yes",
        (*SHARED, *_JOURNAL),
        (
            Option("NAME", "a skill of the catalog", "NAME", required=True),
            Option("SCRIPT", "a file below its scripts folder", "SCRIPT", required=True),
            Option(
                "ARGS", "words for the script; what looks like one of these options stands after --", "ARGS", True, True
            ),
        ),
        commands.run,
    ),
    "enable": Command(
        "let a skill be used again",
        SHARED,
        (Option("NAME", "a skill, or its path", "NAME", required=True),),
        _later("cli.settings_commands", "enable"),
    ),
    "disable": Command(
        "keep a skill from being used, here and everywhere",
        SHARED,
        (Option("NAME", "a skill, or its path", "NAME", required=True),),
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
        (
            Option("ACTION", "show, verify, stats or replay", "ACTION", required=True),
            Option("FILE", "the journal", "FILE", required=True),
        ),
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


# The grammar --------------------------------------------------------------------------------------


def parse(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the command and its values; raise ConfigurationError for an invalid line.

    The grammar is that of argparse without abbreviations, and arguments may stand anywhere between the options; a
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
            unexpected.append(word)
        elif arguments[0].many:
            values[arguments[0].key].append(word)
        else:
            values[arguments.pop(0).key] = word
    if unexpected:
        raise ConfigurationError(_unexpected(unexpected[0], name))
    for argument in command.arguments:
        value = values[argument.key]
        if argument.required and (value is None or (value == "" and not argument.may_be_empty)):
            usage = f"{argument.help} (usage: {usage_of(name)})"
            raise ConfigurationError(f"missing argument {argument.name}: {usage}")
    return name, values


def _split_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command and the words without it; options may stand before it."""
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


def _unexpected(word: str, name: str) -> str:
    from difflib import get_close_matches

    is_option = word.startswith("-")
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
        raise ConfigurationError(_unexpected(name, ""))
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
